"""Coefficients of moved vectors from sums over rows equal those of a fit on the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward

from pursuit import KernelStatistics, SparseKernelClassifier, SparseKernelRegressor
from pursuit.expansion.intervals import error_quantiles

P = awkward()
CLASSES = np.unique(P.labels)
OPTIONS = [
    {},
    {"metric": "diagonal"},
    {"metric": 2, "gamma": 1.0},  # by the default gamma the condition is 1e10
    {"kernel": "laplacian", "metric": "diagonal"},
    {"gamma": np.array([0.1, 0.4, 0.2, 0.3])},
]


def solved(model, X, Y, weights):
    """The coefficients by a plain linear system with the constant in it."""
    Z, kernel = model.expansion_.atoms.centres, model.expansion_.kernel
    K = model.expansion_.atoms.functions(X)
    K = np.hstack([K, np.ones((len(K), 1))])
    ridge = np.zeros((len(Z) + 1,) * 2)
    ridge[:-1, :-1] = kernel(Z, Z) * (1 + 1e-8 * np.eye(len(Z)))
    w = model.C * weights[:, None]
    return np.linalg.solve(ridge + 2 * K.T @ (w * K), 2 * K.T @ (w * Y))


def values_of(model, X, coefficients):
    return model.expansion_.atoms.functions(X) @ coefficients[:-1] + coefficients[-1]


@pytest.mark.parametrize("options", OPTIONS)
def test_numbers(options):
    model = SparseKernelRegressor(5, max_iter=5, random_state=0, **options).fit(P.X[:30], P.Y[:30])
    vectors = model.support_vectors_.copy()
    total = model.empty_statistics().update(P.X[:25], P.Y[:25], P.weights[:25])
    total.merge(model.empty_statistics().update(P.X[25:], P.Y[25:], P.weights[25:]))
    model.refit(total)
    expected = solved(model, P.X, P.Y, P.weights)
    assert_allclose(model.dual_coef_, expected[:-1].T, rtol=1e-6, atol=1e-7)
    assert_allclose(model.intercept_, expected[-1], rtol=1e-7, atol=1e-7)
    assert_allclose(model.predict(P.X), values_of(model, P.X, expected), rtol=1e-8, atol=1e-8)
    assert_array_equal(model.support_vectors_, vectors)
    residuals = P.Y - model.predict(P.X)
    Z = model.expansion_.atoms.centres
    gram = model.kernel_(Z, Z) * (1 + 1e-8 * np.eye(len(Z)))
    norm = np.trace(model.dual_coef_ @ gram @ model.dual_coef_.T)
    energy = 0.5 * norm + model.C * (P.weights @ residuals**2).sum()
    assert_allclose(model.energy_, energy, rtol=1e-6)


def test_errors_are_those_of_fits_without_each_row():
    y = P.Y[:, 0]
    model = SparseKernelRegressor(4, max_iter=3, random_state=0).fit(P.X, y)
    model.refit(model.empty_statistics().update(P.X, y))
    errors = []
    for i in range(60):
        rows = np.arange(60) != i
        found = solved(model, P.X[rows], y[rows, None], np.ones(59))
        values = model.expansion_.atoms.functions(P.X[i : i + 1])
        errors.append(abs(y[i] - values @ found[:-1] - found[-1]).ravel())
    expected = error_quantiles(np.array(errors), np.ones(60), np.ones(60))
    assert_allclose(model.error_quantiles_, expected, rtol=1e-6)


def test_classes():
    model = SparseKernelClassifier(6, max_iter=5, random_state=0).fit(P.X[:30], P.labels[:30])
    model.refit(model.empty_statistics().update(P.X, P.labels, P.weights))
    Y = np.where(P.labels[:, None] == CLASSES, 1.0, -1.0)
    expected = solved(model, P.X, Y, P.weights)
    assert_allclose(model.dual_coef_, expected[:-1].T, rtol=1e-6, atol=1e-7)
    assert_allclose(model.predict_proba(P.X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"loss": "huber"}, lambda m: m.empty_statistics(), "loss='squared_error'"),
        ({"precision": "float16"}, lambda m: m.empty_statistics(), "rounded to float16"),
        ({}, lambda m: m.empty_statistics(), "holds no rows"),
        ({}, lambda m: KernelStatistics(P.X[:4]).update(P.X, P.Y), "kernel"),
        (
            {},
            lambda m: KernelStatistics(P.X[:4], kernel=m.kernel_).update(P.X, P.Y),
            "other vectors",
        ),
        ({}, lambda m: m.empty_statistics().update(P.X, P.Y[:, 0]), "number of targets"),
    ],
)
def test_bad_calls_name_what_is_wrong(options, given, message):
    model = SparseKernelRegressor(4, max_iter=1, random_state=0, **options).fit(P.X, P.Y)
    with pytest.raises(ValueError, match=message):
        model.refit(given(model))
