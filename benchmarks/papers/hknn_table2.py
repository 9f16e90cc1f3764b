"""Table 11.2 of Vincent's thesis: local neighbours among the vectors of a machine alone.

Source: P. Vincent and Y. Bengio, K-Local Hyperplane and Convex Distance Nearest Neighbor
Algorithms, NIPS 14 (2002), here as chapter 11 of P. Vincent's thesis (2003).
Fixed by the paper: MNIST, all 60000 training rows for a support vector machine with a Gaussian
kernel, its vectors as the only reference rows, K = 60 and lambda = 10 (HKNN), K = 45 (CKNN), chosen
on the test rows, as there is no validation part.
Our choice: pixels divided by 255, sigma = 6.47 and C = 100 as for table 11.1, scikit-learn's SVC
(its 45 machines, one for each pair of classes, share their vectors). Then the same on USPS, raw,
with all 7291 training rows and the parameters of table 11.1, where the vectors of kernel matching
pursuit with all classes on one basis stand beside those of the SVM.
"""

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.report import percent
from benchmarks.timing import seconds
from pursuit import (
    ConvexKNeighborsClassifier,
    HyperplaneKNeighborsClassifier,
    KernelMatchingPursuitClassifier,
    datasets,
    reference_rows,
)

SIGMA, C = {"mnist": 6.47, "usps": 8.0}, 100.0
PAPER = [
    ["SVM vectors: 16712", "", "1.23", "1.36"],
    ["all rows (table 11.1)", "2.95", "1.26", "1.46"],
]
METHODS = ("KNN", "HKNN", "CKNN")


def run(report):
    """MNIST, then USPS."""
    report.table(["MNIST", *METHODS], PAPER, "Paper: test errors, %")
    machines = {"SVM": lambda: SVC(C=C, gamma=gamma("mnist"), cache_size=2000)}
    rows = one_set(report, "mnist", 255.0, machines, {"knn": 3, "hknn": (60, 10.0), "cknn": 45})
    for paper, ours in ((PAPER[0], rows[0]), (PAPER[1], rows[-1])):
        for method, theirs, error in zip(METHODS, paper[1:], ours[1:], strict=True):
            if theirs:
                what = f"MNIST, {paper[0].split(':')[0]}: error of {method}, %"
                report.published(what, theirs, error, peers=ours[0])
    machines = {
        "SVM": lambda: SVC(C=C, gamma=gamma("usps")),
        "KMP": lambda: KernelMatchingPursuitClassifier(1500, gamma=gamma("usps")),
    }
    one_set(report, "usps", 1.0, machines, {"knn": 1, "hknn": (15, 30.0), "cknn": 20})


def gamma(name):
    """The machine's exp(-|x - z|^2 / (2 sigma^2)) as exp(-gamma |x - z|^2)."""
    return 1 / (2 * SIGMA[name] ** 2)


def one_set(report, name, unit, machines, parameters):
    """Errors with the vectors of each machine and with all rows, as rows of a table."""
    (X, y), (X_test, y_test) = (datasets.load(name, part) for part in ("train", "test"))
    X, X_test = ((part / unit).astype(np.float32) for part in (X, X_test))
    rows, notes = [], []
    for label, make in machines.items():
        fit_seconds, machine = seconds(lambda make=make: make().fit(X, y))
        vectors = reference_rows(machine)
        error = percent(machine.predict(X_test) != y_test)
        notes.append(
            f"{label}: {error} % error, {len(vectors)} vectors, {fit_seconds:.0f} s to fit"
        )
        errors = neighbor_errors(X[vectors], y[vectors], X_test, y_test, parameters)
        rows.append([f"{label} vectors: {len(vectors)}", *errors])
    rng = np.random.default_rng(0)
    few = np.sort(rng.choice(len(X), len(vectors), replace=False))
    rows.append(
        [f"random rows: {len(few)}", *neighbor_errors(X[few], y[few], X_test, y_test, parameters)]
    )
    rows.append([f"all rows: {len(X)}", *neighbor_errors(X, y, X_test, y_test, parameters)])
    report.table([name.upper(), *METHODS], rows, "Ours: test errors, %")
    report.add("The machines: " + "; ".join(notes) + ".")
    return rows


def neighbor_errors(X, y, X_test, y_test, parameters):
    """Test errors of the three methods with these reference rows."""
    k, alpha = parameters["hknn"]
    models = (
        KNeighborsClassifier(parameters["knn"], algorithm="brute"),
        HyperplaneKNeighborsClassifier(k, alpha=alpha),
        ConvexKNeighborsClassifier(parameters["cknn"]),
    )
    return [percent(model.fit(X, y).predict(X_test) != y_test) for model in models]
