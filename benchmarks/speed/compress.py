"""compress: an SVC on 10 000 MNIST digits brought down to a tenth and a twentieth of its vectors.

The machine: `SVC(C=100, gamma=1 / (2 * 6.47^2))` on the first 10 000 training images, pixels over
256. Beside it `compress` with a tenth and a twentieth of its vectors: with the coefficients as they
come, refitted to the machine's own values on the training rows, moved to these, moved to the values
on rows drawn around its vectors, and (a twentieth) refitted to the largest margin; and kernel
matching pursuit on the same rows with as many vectors (squared error, same kernel).
Test errors on the 10 000 test images; rows a second are medians of three passes over the first
2000 of them, in turn. The time to compress stands beside the time to train.

The second table is on two classes, where dlib can be imported: `dlib.reduce` takes machines that
`dlib.auto_train_rbf_classifier` makes; both reduce the same ones, to a twentieth, a tenth and a
fifth of their vectors, and dlib adjusts what it finds on the training rows, as least squares and
moved vectors do here. The default number of steps is 100. The third table is on banana: SVMs on 400
rows (`gamma=1`, `C=316.2`), test errors on the 4900 others.
"""

from importlib.util import find_spec

import numpy as np
from sklearn.svm import SVC

from benchmarks.report import percent
from benchmarks.timing import alternate, seconds
from pursuit import KernelMatchingPursuitClassifier, compress, datasets
from pursuit._validation import Samples
from pursuit.kernels import RBF
from pursuit.svm.from_sklearn import KernelModel
from pursuit.svm.moved_expansion import move_expansion
from pursuit.svm.reduction import reduce_expansion

C, GAMMA = 100.0, 1 / (2 * 6.47**2)
N_ROWS, N_TIMED, N_BINARY, N_SPLITS = 10_000, 2000, 600, 3
N_BANANA, BANANA_VECTORS = 10, (9, 15, 20)
# The largest margin of 45 machines takes longest, and matters most where vectors are few.
REFITS = {
    10: (None, "least_squares", "move", "move, rows drawn"),
    20: (None, "least_squares", "move", "move, rows drawn", "margin"),
}
NO_ROWS = (None, "move, rows drawn")


def run(report):
    """All tables."""
    X, y = datasets.load("mnist", "train")
    X_test, y_test = datasets.load("mnist", "test")
    train, test = (X[:N_ROWS] / 256, y[:N_ROWS]), (X_test / 256, y_test)
    ten_classes(report, train, test)
    two_classes(report)
    banana(report)


def ten_classes(report, train, test):
    """The machine, its compressed ones, and as many vectors by matching pursuit."""
    fit_time, svc = seconds(lambda: SVC(C=C, gamma=GAMMA).fit(*train))
    n_vectors = len(svc.support_)
    models, costs, notes = {"SVC": svc}, {"SVC": fit_time}, {"SVC": ""}
    for share in (10, 20):
        for refit in REFITS[share]:
            name = f"compress, 1/{share}, {refit or 'as they come'}"
            data = () if refit in NO_ROWS else train
            refit = refit and refit.partition(",")[0]
            costs[name], models[name] = seconds(
                lambda data=data, refit=refit, share=share: compress(
                    svc, n_vectors // share, *data, refit=refit
                )
            )
            notes[name] = f"{models[name].relative_error_:.3f}"
        name = f"KMP, 1/{share}"
        kmp = KernelMatchingPursuitClassifier(
            n_vectors // share, gamma=GAMMA, n_candidates=2500, random_state=0
        )
        costs[name], models[name] = seconds(lambda kmp=kmp: kmp.fit(*train))
        notes[name] = ""
    errors = {name: np.mean(model.predict(test[0]) != test[1]) for name, model in models.items()}
    rates = rows_a_second(models, test[0][:N_TIMED])
    sizes = {name: len(model.support_vectors_) for name, model in models.items()}
    rows = [
        [name, sizes[name], notes[name], percent(errors[name]), f"{rates[name]:.0f}"]
        + [f"{costs[name]:.1f}"]
        for name in models
    ]
    report.table(
        ["", "vectors", "relative error", "test error, %", "rows a second", "seconds to make"],
        rows,
        "Ten classes",
    )
    for share, most in ((10, 0.5), (20, 1.5)):
        plain = f"compress, 1/{share}, as they come"
        worse = 100 * (errors[plain] - errors["SVC"])
        report.check(f"points of error above the SVC's at 1/{share}", worse, at_most=most)
        report.check(
            f"rows a second, compressed to 1/{share} / SVC",
            rates[plain] / rates["SVC"],
            at_least=share / 2,
        )
    moved = "compress, 1/20, move"
    report.check(f"{moved}: test error, %", 100 * errors[moved], at_most=3.6)
    report.check(f"{moved}: seconds", costs[moved], at_most=20)


def rows_a_second(models, X):
    """Median rate of prediction of each model, in turn."""
    times, _ = alternate(
        {name: lambda model=model: model.predict(X) for name, model in models.items()}
    )
    return {name: len(X) / elapsed for name, elapsed in times.items()}


def two_classes(report):
    """Machines that dlib trains, reduced by dlib and by the reduced set method here."""
    if find_spec("dlib") is None:
        report.add("dlib is not installed here; the comparison on two classes is left out.")
        return
    found = [one_machine(split) for split in range(N_SPLITS)]
    rows = [
        [name, *(f"{np.mean([one[name][i] for one in found]):.{digits}f}"
                 for i, digits in enumerate((0, 3, 2, 2)))]
        for name in found[0]
    ]  # fmt: skip
    report.table(
        ["", "vectors", "relative error", "test error, %", "seconds"],
        rows,
        f"Two classes: dlib's machines on {N_BINARY} rows of ida_image, means of {N_SPLITS} splits",
    )
    for share in (20, 10, 5):
        theirs, ours = (
            np.mean([one[f"1/{share}: {name}"][2] for one in found])
            for name in ("dlib.reduce", "moved")
        )
        report.check(f"ida_image, 1/{share}: error, moved / dlib.reduce", ours / theirs, at_most=1)


def banana(report):
    """SVMs on two features, down to few vectors."""
    X, y = datasets.load("ida_banana")
    ways = {"as they come": (None, False), "least squares": ("least_squares", True)}
    ways |= {"moved, rows drawn": ("move", False), "moved": ("move", True)}
    errors = {name: [] for name in ("SVM", *ways)}
    for split in range(N_BANANA):
        first, rest = datasets.splits("ida_banana", split)
        svc = SVC(C=316.2, gamma=1.0).fit(X[first], y[first])
        errors["SVM"].append([1 - svc.score(X[rest], y[rest])] * len(BANANA_VECTORS))
        for name, (refit, given) in ways.items():
            data = (X[first],) if given else ()
            models = [compress(svc, n, *data, refit=refit) for n in BANANA_VECTORS]
            errors[name].append([1 - model.score(X[rest], y[rest]) for model in models])
    means = {name: 100 * np.mean(found, axis=0) for name, found in errors.items()}
    report.table(
        ["", *(f"{n} vectors" for n in BANANA_VECTORS)],
        [[name, *(f"{error:.2f}" for error in found)] for name, found in means.items()],
        f"Two classes: banana, test error in %, means of {N_BANANA} splits",
    )
    more = means["moved"][BANANA_VECTORS.index(15)] - means["SVM"][0]
    report.check("banana, 15 moved vectors: points of error above the SVM's", more, at_most=1)


def one_machine(split):
    """Vectors, relative error, test error and seconds of each way to reduce one machine."""
    import dlib

    X, y = datasets.load("ida_image")
    first, rest = datasets.splits("ida_image", split)
    signs = np.where(y > 0, 1.0, -1.0)
    train, test = np.asarray(X[first][:N_BINARY], dtype=np.float64), X[rest]
    machine = dlib.auto_train_rbf_classifier(train, signs[first][:N_BINARY], 3.0, False)
    kernel = RBF(machine.kernel_function.gamma)

    def scaled(rows):
        return (rows - np.ravel(machine.means)) * np.ravel(machine.invstd_devs)

    def error(values):
        return 100 * np.mean(np.where(np.ravel(values) > 0, 1.0, -1.0) != signs[rest])

    vectors, a = expansion(machine)
    own = kernel(scaled(train), vectors) @ a - machine.b
    norm = np.sqrt((a.T @ kernel(vectors, vectors) @ a).item())
    found = {"dlib's machine": (len(vectors), 0, error(machine.batch_predict(test)), 0)}
    for share in (20, 10, 5):
        number = len(vectors) // share
        cost, theirs = seconds(lambda n=number: dlib.reduce(machine, train, n))
        Z, beta = expansion(theirs)
        both, signed = np.vstack([vectors, Z]), np.vstack([a, -beta])
        left = np.sqrt((signed.T @ kernel(both, both) @ signed).item()) / norm
        wrong = error(theirs.batch_predict(test))
        found[f"1/{share}: dlib.reduce"] = (number, left, wrong, cost)
        for steps in (100, 1000):
            cost, ours = seconds(
                lambda n=number, steps=steps: reduce_expansion(
                    kernel, vectors, a, n, max_iter=steps
                )
            )
            wrong = error(kernel(scaled(test), ours.vectors) @ ours.coefficients - machine.b)
            name = f"1/{share}: reduced set, {steps} steps"
            found[name] = (number, ours.relative_error, wrong, cost)
        table = np.column_stack([kernel(scaled(train), ours.vectors), np.ones(len(train))])
        fitted = np.linalg.lstsq(table, own, rcond=None)[0]
        wrong = error(kernel(scaled(test), ours.vectors) @ fitted[:-1] + fitted[-1])
        found[f"{name}, least squares"] = (number, ours.relative_error, wrong, cost)
        model = KernelModel("classifier", kernel, vectors, a, np.array([-machine.b]))
        rows = Samples(scaled(train), own, np.ones(len(train)))
        for name, samples in (("moved, rows drawn", None), ("moved", rows)):
            cost, (ours, b) = seconds(
                lambda s=samples, n=number, model=model: move_expansion(model, n, s)
            )
            wrong = error(kernel(scaled(test), ours.vectors) @ ours.coefficients + b)
            found[f"1/{share}: {name}"] = (number, ours.relative_error, wrong, cost)
    return found


def expansion(function):
    """Vectors and coefficients of one of dlib's functions."""
    vectors = np.array([np.ravel(vector) for vector in function.basis_vectors])
    return vectors, np.ravel(function.alpha)[:, None]
