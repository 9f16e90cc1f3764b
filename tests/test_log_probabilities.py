"""Logarithms of probabilities, of every classifier, come from decision values and stay numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.datasets import make_blobs
from sklearn.neighbors import KernelDensity

import pursuit
from pursuit import DensityClassifier, LocalGaussianDensity, ManifoldParzenDensity
from pursuit.expansion.probabilities import log_probabilities, probabilities

SMALL = {"n_components": 6, "random_state": 0, "max_iter": 20, "tol": 1e-2}
CLASSES = [
    value
    for value in (getattr(pursuit, name) for name in pursuit.__all__)
    if isinstance(value, type) and hasattr(value, "predict_proba") and is_classifier(value())
]


def small(estimator):
    """The estimator with a small budget, where it has one."""
    if estimator.__name__.endswith("NeighborsClassifier"):
        return estimator()
    names = estimator().get_params()
    return estimator(**{name: value for name, value in SMALL.items() if name in names})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", CLASSES)
def test_logarithms_of_the_probabilities(estimator, n_classes):
    X, y = make_blobs(60, centers=n_classes, random_state=0)
    model = small(estimator).fit(X, y)
    logs, plain = model.predict_log_proba(X), model.predict_proba(X)
    sure = plain > 1e-3
    assert_allclose(logs[sure], np.log(plain[sure]), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.classes_[logs.argmax(axis=1)], model.predict(X))
    far = model.predict_log_proba(np.array([[1e4, -1e5], [-3e6, 0.0], [1e3, 1e3]]))
    assert np.isfinite(far).all()


@pytest.mark.parametrize(
    "density", [None, ManifoldParzenDensity(3), LocalGaussianDensity(3), KernelDensity()]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_log_posterior_is_exact_far_out(density, n_classes):
    X, y = make_blobs(60, centers=n_classes, random_state=0)
    model = DensityClassifier(density).fit(X, y)
    Q = np.array([[1e3, -1e3], [-2e3, 5e2]])
    joint = np.array([d.score_samples(Q) for d in model.densities_]).T + np.log(model.priors_)
    expected = joint - np.logaddexp.reduce(joint, axis=1)[:, None]
    assert expected.min() < -800  # whose exponential is 0
    assert_allclose(model.predict_log_proba(Q), expected, rtol=1e-9, atol=1e-12)


def test_values_of_any_size():
    largest = np.finfo(float).max
    for values in (np.array([[1e308], [-1e308], [0.0]]), np.array([[1e308, -1e308, 0.0]])):
        logs = log_probabilities(values, 1e3)
        assert np.isfinite(logs).all() and logs.min() == -largest
    impossible = log_probabilities(np.array([[-2.0, -np.inf, -3.0]]), 1.0)
    assert np.isneginf(impossible[0, 1])
    assert_allclose(np.exp(impossible).sum(), 1.0)


def test_the_largest_logarithm_is_that_of_the_largest_value():
    values = np.array([[1.0, 1.0 + 2e-16, 0.0], [5e-324, 1e-323, 0.0]])
    for table in (log_probabilities(values, 1e-3), probabilities(values, 1e-3)):
        assert_array_equal(table.argmax(axis=1), [1, 1])
