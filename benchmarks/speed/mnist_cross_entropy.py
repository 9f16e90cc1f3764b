"""MNIST: cross-entropy on one basis for ten classes, beside SVC and Nystroem features.

The first 7000 training images and the 10000 test images, pixels / 256, gamma = 1 / (2 * 6.47^2),
400 vectors, with an intercept. KMP with loss="log_loss", which for ten classes on one basis is the
softmax cross-entropy, in three forms:

* vectors chosen under squared error through the Gram matrix (selection="squared_error"), then one
  fit of all coefficients under the cross-entropy at the end (refit_every=400), with the default
  ridge (alpha = 0.01) and with a tenth of it;
* vectors chosen by the gradient of the cross-entropy (selection="loss", section 3 of the paper),
  all coefficients fitted again every 50 vectors. Between these fits a vector only gets a
  coefficient of its own, which makes the path cheap and the choice a poorer one.

Beside them KMP with squared error, SVC (C = 100, no probabilities), and multinomial
`LogisticRegression` on 400 `Nystroem` features of the same kernel, random components drawn once,
with C = 1, 100 and 10000; the bound compares with the best of these on the test images.
Every method fits float64 pixels in one process, in turn, once. The
log-likelihoods are those of `predict_proba` on the test images; KMP with squared error has one
temperature, SVC has none.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.compare import Measured, spend
from benchmarks.papers.mnist_path import GAMMA
from benchmarks.report import percent
from benchmarks.timing import alternate, seconds
from pursuit import KernelMatchingPursuitClassifier, datasets

N_ROWS, N_VECTORS, ROUNDS = 7000, 400, 1
BY_LOSS = "KMP, chosen by the cross-entropy"
BY_SQUARES = "KMP, chosen by squared error"
LESS_RIDGE = f"{BY_SQUARES}, alpha = 0.001"


def run(report):
    """Fit all in turn; errors, log-likelihoods and times."""
    X, y, X_test, y_test = load()
    fits = {name: lambda model=model: fit(model, X, y) for name, model in models().items()}
    times, fitted = alternate(fits, ROUNDS)
    rows, errors = [], {}
    for name, model in fitted.items():
        predict_seconds, labels = seconds(lambda model=model: model.predict(X_test))
        errors[name] = np.mean(labels != y_test)
        rows.append(
            [name, n_vectors(model), f"{times[name]:.1f}", percent(errors[name]),
             likelihood(model, X_test, y_test), f"{predict_seconds:.2f}"]
        )  # fmt: skip
    report.table(
        ["", "vectors", "fit, s", "test error, %", "minus log-likelihood", "predict, s"], rows
    )
    best = min(errors[name] for name in errors if name.startswith("Nystroem"))
    report.check(
        f"{LESS_RIDGE}: test error %, no higher than Nystroem and logistic regression",
        100 * errors[LESS_RIDGE],
        at_most=100 * best,
    )


def load():
    """Training and test part."""
    X, y = datasets.load("mnist", "train")
    X_test, y_test = datasets.load("mnist", "test")
    return X[:N_ROWS] / 256, y[:N_ROWS], X_test / 256, y_test


def models():
    """The programs to compare, not fitted."""
    shared = {"gamma": GAMMA, "loss": "log_loss"}
    nystroem = Nystroem(gamma=GAMMA, n_components=N_VECTORS, random_state=0)
    logistic = {
        f"Nystroem + LogisticRegression, C = {C:g}": make_pipeline(
            nystroem, LogisticRegression(C=C, max_iter=1000)
        )
        for C in (1, 100, 10000)
    }
    by_squares = {"selection": "squared_error", "refit_every": N_VECTORS}
    return {
        BY_SQUARES: KernelMatchingPursuitClassifier(N_VECTORS, **shared, **by_squares),
        LESS_RIDGE: KernelMatchingPursuitClassifier(N_VECTORS, alpha=0.001, **shared, **by_squares),
        BY_LOSS: KernelMatchingPursuitClassifier(N_VECTORS, refit_every=50, **shared),
        "KMP, squared error": KernelMatchingPursuitClassifier(N_VECTORS, gamma=GAMMA),
        "SVC, C = 100": SVC(C=100, gamma=GAMMA),
        **logistic,
    }


def fit(model, X, y):
    """Fit; a program that stops before it has converged says so in a line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    for warning in caught:
        print(f"  {str(warning.message).splitlines()[0]}", flush=True)
    return model


def n_vectors(model):
    """Number of kernel functions that a prediction evaluates."""
    return len(model.support_) if hasattr(model, "support_") else N_VECTORS


def likelihood(model, X, y):
    """Mean negative log-likelihood of the test labels, where there are probabilities."""
    if not hasattr(model, "predict_proba"):
        return ""
    return f"{log_loss(y, model.predict_proba(X)):.3f}"


def cross_entropy_row():
    """A row of ``all``: vectors chosen by squared error, the default ridge."""
    return row_of(models()[BY_SQUARES])


def logistic_row():
    """A row of ``all``: logistic regression on Nystroem features, C = 100."""
    return row_of(models()["Nystroem + LogisticRegression, C = 100"])


def shared_row():
    """A row of ``all``: squared error."""
    return row_of(models()["KMP, squared error"])


def svm_row():
    """A row of ``all``: the ten-class SVC."""
    return row_of(models()["SVC, C = 100"])


def row_of(model):
    """Decision values of the test images less their means, and the fit timed.

    Labels and probabilities do not depend on the mean over the classes.
    """
    X, y, X_test, y_test = load()
    spent, _ = spend(lambda: fit(model, X, y))
    values = model.decision_function(X_test)
    scores = {"error, %": 100 * np.mean(model.classes_[values.argmax(axis=1)] != y_test)}
    if hasattr(model, "predict_proba"):
        scores["log-loss"] = log_loss(y_test, model.predict_proba(X_test))
    return Measured(*spent, values - values.mean(axis=1, keepdims=True), scores)
