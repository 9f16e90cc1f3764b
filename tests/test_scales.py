"""The unit of the features changes nothing: fits of X and of 2^k X answer alike.

Powers of two keep every digit, so that what differs is an absolute number in the code or a square
that leaves the range of floating point numbers.
"""

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from test_properties import ESTIMATORS, fitted

from pursuit import (
    HyperplaneKNeighborsClassifier,
    HyperplaneKNeighborsRegressor,
    KernelCentroidClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressorCV,
    KernelMetric,
    LocalGaussianDensity,
    ManifoldParzenDensity,
    ManifoldParzenDensityCV,
    NadarayaWatsonRegressor,
    NearestFeatureLineClassifier,
    ParzenDensity,
    SparseKernelClassifierCV,
    SparseKernelRegressor,
    SparseKernelRegressorCV,
)

N, D = 24, 3
# The power of the features' unit in parameters that are numbers.
UNITS = {
    HyperplaneKNeighborsClassifier: {"alpha": 2},
    HyperplaneKNeighborsRegressor: {"alpha": 2},
    KernelMatchingPursuitClassifierCV: {"gammas": -2},
    KernelMatchingPursuitRegressorCV: {"gammas": -2},
    SparseKernelClassifierCV: {"gammas": -2},
    SparseKernelRegressorCV: {"gammas": -2},
    LocalGaussianDensity: {"noise_variance": 2},
    ManifoldParzenDensity: {"noise_variance": 2},
    NadarayaWatsonRegressor: {"bandwidth": 1},
    ParzenDensity: {"bandwidth": 1},
}
DENSITIES = (LocalGaussianDensity, ManifoldParzenDensity, ManifoldParzenDensityCV, ParzenDensity)


@dataclass(frozen=True)
class Turned:
    """Tangents of a turn around the last axis."""

    def __call__(self, X):
        return (X @ [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])[:, None]


VARIANTS = [
    HyperplaneKNeighborsClassifier(3, alpha=0.5),
    HyperplaneKNeighborsClassifier(5, n_components=1),
    HyperplaneKNeighborsClassifier(4, tangents=Turned()),
    NearestFeatureLineClassifier(4),
    HyperplaneKNeighborsRegressor(4, alpha=0.5),
    HyperplaneKNeighborsRegressor(5, alpha=0.0),
    KernelMatchingPursuitClassifierCV(3, cv=2),
    KernelCentroidClassifier("cosine"),
    LocalGaussianDensity(None, noise_variance=0.1),
    ManifoldParzenDensity(6, n_components=3),
    ManifoldParzenDensity(4, n_components=2, tangents=Turned()),
    NadarayaWatsonRegressor(0.7),
    ParzenDensity("loo"),
    ParzenDensity("silverman"),
    ParzenDensity("loo", kernel="triweight"),
    NadarayaWatsonRegressor(kernel="epanechnikov"),
]


@cache
def table():
    """Two classes in three dimensions, and numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * [1.0, 0.5, 2.0] + 0.3
    labels = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.4, "yes", "no")
    return X, labels, np.sin(X[:, 0]) + 0.2 * X[:, 2]


def in_unit(estimator, k):
    """The estimator for features that are 2^k times as large."""
    model, units = clone(estimator), UNITS.get(type(estimator), {})
    if model.get_params().get("gamma", "scale") is None:
        model.set_params(gamma="scale")
    if isinstance(model, LocalGaussianDensity) and model.n_neighbors is None:
        units = units | {"bandwidth": 1}
    for name, power in units.items():
        value = getattr(model, name)
        if value is not None and not isinstance(value, str):
            with np.errstate(over="ignore"):
                scaled = np.ldexp(value, power * k)
            model.set_params(**{name: scaled.tolist()})
    return model


def answers(estimator, k):
    """What the fit of 2^k X says of 2^k X, by method."""
    X, labels, numbers = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = fitted(in_unit(estimator, k), np.ldexp(X, k), labels, numbers, None)
        methods = ("predict", "predict_proba", "transform", "score_samples")
        found = {
            name: getattr(model, name)(np.ldexp(X, k)) for name in methods if hasattr(model, name)
        }
    if isinstance(model, DENSITIES):
        found["score_samples"] = found["score_samples"] + D * k * np.log(2.0)
    if isinstance(model, KernelMetric):  # its map starts at the identity
        found["transform"] = np.ldexp(found["transform"], -k)
    return found


@cache
def expected(i):
    """Answers in the first unit."""
    return answers((ESTIMATORS + VARIANTS)[i], 0)


def same(found, wanted):
    """Labels are equal, numbers to some 1e-6 of the largest."""
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        values = np.asarray(values)
        if values.dtype.kind == "f":
            least = 1e-6 * np.abs(values).max()
            assert_allclose(found[name], values, rtol=1e-6, atol=least, err_msg=name)
        else:
            assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("k", [-300, 60])
@pytest.mark.parametrize("i", range(len(ESTIMATORS)), ids=lambda i: type(ESTIMATORS[i]).__name__)
def test_the_unit_changes_nothing(i, k):
    """A far unit and a near one; of each pair of neighbours in the list one goes the other way."""
    same(answers(ESTIMATORS[i], k if i % 2 else -k), expected(i))


@pytest.mark.parametrize("k", [-300, 300])
@pytest.mark.parametrize("i", range(len(VARIANTS)), ids=lambda i: repr(VARIANTS[i]))
def test_nor_on_other_ways_through_the_code(i, k):
    same(answers(VARIANTS[i], k), expected(len(ESTIMATORS) + i))


@pytest.mark.parametrize("k", [-300, 300])
def test_single_precision_of_large_problems(k, monkeypatch):
    monkeypatch.setattr("pursuit.optimize.moving.DOUBLE_WORK", 0)
    model = SparseKernelRegressor(3, max_iter=2, random_state=0)
    found, wanted = answers(model, k)["predict"], answers(model, 0)["predict"]
    assert_allclose(found, wanted, atol=1e-3)


@pytest.mark.parametrize("k", [-700, 700])
@pytest.mark.parametrize("i", range(len(ESTIMATORS)), ids=lambda i: type(ESTIMATORS[i]).__name__)
def test_beyond_all_squares_it_is_that_or_one_error(i, k):
    try:
        found = answers(ESTIMATORS[i], k)
    except ValueError as error:
        assert type(error) is ValueError
        assert "rescale" in str(error) or "must be a finite number" in str(error), error
    else:
        same(found, expected(i))
