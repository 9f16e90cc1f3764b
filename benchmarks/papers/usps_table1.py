"""Table 1 of Kernel Matching Pursuit: test errors on USPS, one digit against the others.

Source: P. Vincent and Y. Bengio, Kernel Matching Pursuit, Machine Learning 48 (2002), section 5.2.
Fixed by the paper: 7291 training and 2007 test images of 16 x 16 pixels, "preprocessed", ten tasks
(each digit against the others), the same Gaussian kernel for all methods, KMP by pre-fitting with
squared error and with as many vectors as the SVM of the task has, and with half as many; no
validation. The paper leaves the kernel, C and the row of k-means RBFs to Schoelkopf et al. (1997).
Our choice: gamma = 1/128 (their exp(-|x - z|^2 / (0.5 * 256))), C = 10. The preprocessing is not
said. After a Gaussian filter of 0.75 pixel, which the thesis' figures of chapter 11 ask for too,
the SVMs have nearly the paper's number of vectors; that is the reproduction, and comes first. The
set as it is published (raw) asks for twice as many, so there a further row gives KMP the paper's
numbers. k-means RBF: as many cluster centres as the SVM has vectors, of all training rows, and
weights by least squares with an intercept, which finds better ones than the gradient descent of
1997. All ten KMP models of a row come from one `fit` with `multi_class="ovr"` and one budget a
class. Bounds: those of the first run, on raw digits, for both forms.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks.report import log_axis
from benchmarks.usps import FORMS, load
from pursuit import KernelMatchingPursuitClassifier

GAMMA, C = 1 / 128, 10
PAPER_VECTORS = np.array([274, 104, 377, 361, 334, 388, 236, 235, 342, 263])
PAPER_ERRORS = {
    "SVM": [16, 8, 25, 19, 29, 23, 14, 12, 25, 16],
    "k-means RBF": [20, 16, 43, 38, 46, 31, 15, 18, 37, 26],
    "KMP, same N": [15, 15, 26, 17, 30, 23, 14, 14, 25, 13],
    "KMP, half N": [16, 15, 29, 27, 29, 24, 17, 16, 28, 18],
}
BOUNDS = {"KMP, same N": 195, "KMP, half N": 220}


def run(report):
    """The paper's table, then both forms of the digits, and their pictures."""
    report.table(
        ["", *range(10), "sum"],
        [["number of vectors", *PAPER_VECTORS, PAPER_VECTORS.sum()]]
        + [[name, *row, sum(row)] for name, row in PAPER_ERRORS.items()],
        "Paper: test errors by digit",
    )
    figure = Figure(figsize=(10, 4), layout="constrained")
    for form, axes in zip(FORMS, figure.subplots(1, 2, sharey=True), strict=True):
        run_form(report, form, axes)
    report.figure("usps_table1", figure)


def run_form(report, form, axes):
    """Fit the ten SVMs, the RBFs and the KMP models of the budgets; count the test errors."""
    (X, y), (X_test, y_test) = load("train", form), load("test", form)
    truth = y_test[:, None] == np.arange(10)
    svms = [SVC(C=C, gamma=GAMMA).fit(X, y == digit) for digit in range(10)]
    vectors = np.array([len(svm.support_) for svm in svms])
    positive = np.column_stack([svm.predict(X_test) for svm in svms])
    errors = {
        "SVM": (positive != truth).sum(axis=0),
        "k-means RBF": cluster_errors(X, y, X_test, truth, vectors),
    }
    budgets = {"KMP, same N": vectors, "KMP, half N": vectors // 2}
    if form == "raw":
        budgets["KMP, the paper's N"] = PAPER_VECTORS
    for name, budget in budgets.items():
        model = one_against_others(budget).fit(X, y)
        errors[name] = ((model.decision_function(X_test) > 0) != truth).sum(axis=0)
        if name == "KMP, same N":
            path = list(errors_by_step(model, X_test, truth))
            n_distinct = model.n_components_
    report.table(
        ["", *range(10), "sum"],
        [["number of vectors", *vectors, vectors.sum()]]
        + [[name, *row, row.sum()] for name, row in errors.items()],
        f"Ours, {form} digits",
    )
    report.add(
        f"{form}: the {vectors.sum()} vectors of the ten models with the same N are {n_distinct} "
        "distinct training images, as some serve several digits."
    )
    draw(axes, form, path, vectors, errors["SVM"])
    publish(report, form, vectors, errors)


def one_against_others(budgets, **parameters):
    """The model of the table: a path of its own for each class."""
    return KernelMatchingPursuitClassifier(budgets, gamma=GAMMA, multi_class="ovr", **parameters)


def cluster_errors(X, y, X_test, truth, vectors):
    """Test errors of radial basis functions around cluster centres, one task after the other."""
    errors = []
    for digit, n in enumerate(vectors):
        centres = KMeans(n, n_init=1, random_state=digit).fit(X).cluster_centers_
        weights = LinearRegression().fit(rbf_kernel(X, centres, GAMMA), 2.0 * (y == digit) - 1)
        positive = weights.predict(rbf_kernel(X_test, centres, GAMMA)) > 0
        errors.append((positive != truth[:, digit]).sum())
    return np.array(errors)


def errors_by_step(model, X, truth):
    """Sum of the ten tasks' errors after each step of the ten paths, dealt in turn."""
    for values in model.staged_decision_function(X):
        yield ((values > 0) != truth).sum()


def publish(report, form, vectors, errors):
    """Every figure of the table, and the bounds."""
    rows = {"number of vectors": (PAPER_VECTORS, vectors)}
    rows |= {name: (paper, errors[name]) for name, paper in PAPER_ERRORS.items()}
    for name, (paper, ours) in rows.items():
        for digit in range(10):
            what = f"{form} digits, {digit} against the others: {name}"
            report.published(what, paper[digit], ours[digit])
        if name not in BOUNDS:
            report.published(f"{form} digits, sum: {name}", sum(paper), ours.sum())
    for name, bound in BOUNDS.items():
        report.check(f"{form} digits, sum of the ten test errors: {name}", errors[name].sum(),
                     at_most=bound, paper=sum(PAPER_ERRORS[name]),
                     peers=f"SVM {errors['SVM'].sum()}")  # fmt: skip


def draw(axes, form, path, vectors, svm_errors):
    """Errors against the vectors of the ten models together."""
    axes.plot(np.arange(1, len(path) + 1), path, label="KMP, ten paths dealt in turn")
    axes.plot(vectors.sum(), svm_errors.sum(), "o", color="C1", label="SVM (C = 10)")
    axes.set(
        xlabel="vectors of the ten models together",
        ylabel="sum of the ten test errors",
        title=f"USPS, each digit against the others, {form}",
    )
    log_axis(axes.xaxis, [1, 10, 100, 1000, 5000])
    log_axis(axes.yaxis, [200, 250, 300, 400, 600, 1000, 2000])
    axes.legend()
