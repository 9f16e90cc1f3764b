"""Small things: one prediction, an import, a command; and cross-validation with its defaults.

1. `predict` of one row, 100 vectors and 64 features (the digits that scikit-learn ships, ten
   classes), checked and by the frozen evaluator `model.predictor()`; means over many calls.
2. Processor seconds of a fresh ``import pursuit`` and of ``pursuit --version``, interpreter
   included, whose own start stands beside them; and of an import of one estimator, as names are
   loaded when they are first used.
3. `KernelMatchingPursuitRegressorCV` with its defaults on 5500 drawn rows of 13 features
   (scikit-learn's `make_friedman1`, noise 1).

One thread does the first two; the third uses all.
"""

import resource
import subprocess
import sys

from sklearn.datasets import load_digits, make_friedman1
from sklearn.metrics import r2_score

from benchmarks.compare import Measured, Spent, spend
from pursuit import KernelMatchingPursuitClassifier, KernelMatchingPursuitRegressorCV

N_CALLS, N_STARTS, N_ROWS = 5000, 5, 5500
IMPORT, VERSION, START = (
    ("-c", "import pursuit"),
    ("-m", "pursuit.cli", "--version"),
    ("-c", ""),
)
ESTIMATOR = ("-c", "from pursuit import KernelMatchingPursuitClassifier")


def run(report):
    """All of it."""
    checked, frozen = checked_row(), frozen_row()
    report.table(
        ["one row", "microseconds"],
        [
            ["predict", f"{1e6 * checked.wall:.0f}"],
            ["predictor().predict", f"{1e6 * frozen.wall:.1f}"],
        ],
    )
    report.check("predict one row, microseconds", 1e6 * checked.wall, at_most=60)
    report.check("predictor(), microseconds", 1e6 * frozen.wall, at_most=15)
    rows = {
        "import pursuit": import_row(),
        "import of one estimator": start(ESTIMATOR),
        "pursuit --version": version_row(),
        "the interpreter alone": start(START),
    }
    report.table(
        ["fresh process", "processor seconds"],
        [[name, f"{row.processor:.2f}"] for name, row in rows.items()],
    )
    report.check("import pursuit, processor s", rows["import pursuit"].processor, at_most=0.5)
    report.check("--version, processor s", rows["pursuit --version"].processor, at_most=0.2)
    searched = cross_validation_row()
    report.add(f"Cross-validation: {searched.wall:.1f} s, {searched.scores}.")
    report.check("cross-validation, s", searched.wall, at_most=8)


def digits_model():
    """A model of 100 vectors, and one row."""
    X, y = load_digits(return_X_y=True)
    return KernelMatchingPursuitClassifier(100).fit(X, y), X[:1]


def checked_row():
    """A row of ``all``: `predict` of one row."""
    model, x = digits_model()
    spent, _ = spend(lambda: model.predict(x), N_CALLS)
    return Measured(*spent, model.decision_function(x))


def frozen_row():
    """A row of ``all``: the same by the frozen evaluator."""
    model, x = digits_model()
    predictor = model.predictor()
    spent, _ = spend(lambda: predictor.decision(x[0]), N_CALLS)
    return Measured(*spent, predictor.decision(x[0]))


def import_row():
    """A row of ``all``: ``import pursuit``; beside it an import of one estimator."""
    estimator = start(ESTIMATOR).processor
    return start(IMPORT)._replace(scores={"one estimator, processor s": estimator})


def version_row():
    """A row of ``all``: ``pursuit --version``."""
    return start(VERSION)


def start(arguments):
    """Processor seconds of a fresh interpreter, the mean of a few after one."""
    run = [sys.executable, *arguments]
    subprocess.run(run, check=True, capture_output=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent, _ = spend(lambda: subprocess.run(run, check=True, capture_output=True), N_STARTS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(*Spent(spent.wall, used / N_STARTS))


def cross_validation_row():
    """A row of ``all``: gamma and the budget chosen for 5500 rows, 2000 others to test."""
    X, y = make_friedman1(N_ROWS + 2000, 13, noise=1.0, random_state=0)
    model = KernelMatchingPursuitRegressorCV(random_state=0)
    spent, _ = spend(lambda: model.fit(X[:N_ROWS], y[:N_ROWS]))
    values = model.predict(X[N_ROWS:])
    return Measured(*spent, values, {"R2": r2_score(y[N_ROWS:], values)})
