"""Kernel values that are not finite, or not square, are one error that names kernel or shape."""

import warnings
from inspect import signature

import numpy as np
import pytest
from problems import pairwise
from sklearn.base import clone
from test_properties import ESTIMATORS, fitted

from pursuit import (
    KernelCentroidClassifier,
    NadarayaWatsonRegressor,
    ParzenDensity,
    SparseKernelClassifier,
)
from pursuit.kernels import Polynomial, check_values

WINDOWS = (NadarayaWatsonRegressor, ParzenDensity)  # whose `kernel` is the name of a window
WITH_KERNEL = [
    model
    for model in ESTIMATORS
    if "kernel" in signature(type(model)).parameters and not isinstance(model, WINDOWS)
]
WITH_NEIGHBORHOOD = [
    model for model in ESTIMATORS if "neighborhood" in signature(type(model)).parameters
]


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(24, 3))
    return X, np.where(X[:, 0] > 0, "a", "b"), X[:, 0] + 0.1 * X[:, 1]


def hollow(bad, everywhere):
    """A Gaussian kernel with some values that are none."""

    def strange(A, B):
        K = np.exp(-((A[:, None] - B) ** 2).sum(axis=2))
        wrong = (A[:, :1] > 1.0) & (B[:, 0] < 0.0)
        K[(wrong | wrong.any()) if everywhere else wrong] = bad
        return K

    return strange


def message(model, X, labels, numbers):
    """What the error of a fit says."""
    if "gammas" in model.get_params():
        model.set_params(gammas=None)
    with warnings.catch_warnings(), pytest.raises(ValueError) as caught:
        warnings.simplefilter("ignore", UserWarning)
        fitted(model, X, labels, numbers, None)
    assert type(caught.value) is ValueError
    return str(caught.value)


@pytest.mark.parametrize(
    ("model", "bad", "everywhere"),
    pairwise(WITH_KERNEL, [np.nan, np.inf, -np.inf], [False, True]),
    ids=lambda value: str(value) if isinstance(value, (bool, float)) else type(value).__name__,
)
def test_a_function_whose_values_are_not_finite(model, bad, everywhere, problem):
    said = message(clone(model).set_params(kernel=hollow(bad, everywhere)), *problem)
    assert said.startswith("kernel: ")
    # Some take no functions at all, as they need a derivative.
    assert (
        "strange gives a value that is not finite" in said
        or "derivative" in said
        or ("needs the rbf" in said)
    )


@pytest.mark.parametrize("model", WITH_NEIGHBORHOOD, ids=lambda model: type(model).__name__)
def test_a_neighborhood_whose_weights_are_not_finite(model, problem):
    said = message(clone(model).set_params(neighborhood=hollow(np.nan, False)), *problem)
    assert "strange gives a value that is not finite" in said


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("model", WITH_KERNEL, ids=lambda model: type(model).__name__)
def test_a_polynomial_that_overflows(model, problem):
    X, labels, numbers = problem
    said = message(
        clone(model).set_params(kernel=Polynomial(1.0, 5, 1.0)), 1e70 * X, labels, numbers
    )
    assert said.startswith("kernel: ")


@pytest.mark.parametrize("shape", [(24, 3), (24, 48)])
@pytest.mark.parametrize("model", WITH_KERNEL, ids=lambda model: type(model).__name__)
def test_precomputed_values_must_be_square(model, shape, problem, rng):
    X, labels, numbers = problem
    said = message(
        clone(model).set_params(kernel="precomputed"), rng.random(shape), labels, numbers
    )
    assert f"needs a square X, got shape {shape}" in said or "recomputed" in said


def test_shape_and_kernel_are_named(problem):
    X, labels, _ = problem
    with pytest.raises(ValueError, match=r"needs a square X, got shape \(24, 3\)"):
        KernelCentroidClassifier(kernel="precomputed").fit(X, labels)
    for make, sizes in (
        (KernelCentroidClassifier, {}),
        (SparseKernelClassifier, {"n_components": 3}),
    ):
        with pytest.raises(ValueError, match=r"kernel: Polynomial\(gamma=1.0, degree=5"):
            with np.errstate(all="ignore"):
                make(**sizes, kernel=Polynomial(1.0, 5, 1.0)).fit(1e70 * X, labels)


def test_great_values_are_no_error():
    check_values(Polynomial(), np.full((2, 2), 1e308))
    with pytest.raises(ValueError, match=r"inf in row 1, column 0 of \(2, 2\)"):
        check_values(Polynomial(), np.array([[1.0, 2.0], [np.inf, 3.0]]))
