"""Kernel regression and kernel centroids against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_density import kernel_regression
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris, make_moons
from sklearn.gaussian_process.kernels import RBF as GaussianKernel
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestCentroid

import pursuit
from pursuit import (
    DensityClassifier,
    KernelCentroidClassifier,
    NadarayaWatsonRegressor,
    ParzenDensity,
)

# Regression


@pytest.fixture
def curve(rng):
    X = rng.uniform(-3, 3, size=(80, 1))
    Y = np.hstack([np.sin(X), 100 * X**2]) + 0.1 * rng.normal(size=(80, 2))
    return X, Y, rng.integers(1, 4, size=80).astype(float)


def test_the_definition(curve):
    X, Y, weights = curve
    queries = np.linspace(-3, 3, 11)[:, None]
    model = NadarayaWatsonRegressor(0.3).fit(X, Y, weights)
    expected = kernel_regression(X, Y, weights, 0.3, queries)
    assert_allclose(model.predict(queries), expected, rtol=1e-10)
    one = NadarayaWatsonRegressor(0.3).fit(X, Y[:, 0], weights)
    assert_allclose(one.predict(queries), expected[:, 0], rtol=1e-10)


def left_out_error(X, Y, weights, sigma):
    """Squared error of each row predicted by the others, targets in units of their deviation."""
    found = [
        kernel_regression(
            *(a[np.arange(len(X)) != r] for a in (X, Y, weights)), sigma, X[r : r + 1]
        )[0]
        for r in range(len(X))
    ]
    mean = np.average(Y, axis=0, weights=weights)
    return np.average((Y - found) ** 2, axis=0, weights=weights) @ (
        1 / np.average((Y - mean) ** 2, axis=0, weights=weights)
    )


def test_bandwidth_by_leaving_out(curve):
    X, Y, weights = curve
    model = NadarayaWatsonRegressor().fit(X, Y, weights)
    best = minimize_scalar(
        lambda log: left_out_error(X, Y, weights, np.exp(log)),
        bounds=np.log([0.5 * model.bandwidth_, 2 * model.bandwidth_]),
        method="bounded",
    )
    assert_allclose(model.bandwidth_, np.exp(best.x), rtol=2e-3)
    scaled = NadarayaWatsonRegressor().fit(X, Y * [1.0, 1e6], weights)
    assert_allclose(scaled.bandwidth_, model.bandwidth_, rtol=1e-6)
    assert model.score(X, Y) > 0.9


def test_copies_share_the_mean_of_their_targets(curve, rng):
    X, Y, weights = curve
    twice = np.vstack([X, X])
    noise = rng.normal(size=Y.shape)
    model = NadarayaWatsonRegressor().fit(twice, np.vstack([Y + noise, Y - noise]))
    plain = NadarayaWatsonRegressor().fit(X, Y)
    assert_allclose(model.bandwidth_, plain.bandwidth_, rtol=1e-6)
    assert_allclose(model.predict(X), plain.predict(X), rtol=1e-6)
    repeated = np.repeat(np.arange(80), weights.astype(int))
    model = NadarayaWatsonRegressor().fit(X[repeated], Y[repeated])
    weighted = NadarayaWatsonRegressor().fit(X, Y, weights)
    assert_allclose(model.predict(X), weighted.predict(X), rtol=1e-6)


def test_far_away_the_nearest_row_decides(curve):
    X, Y, _ = curve
    model = NadarayaWatsonRegressor(0.3).fit(X, Y)
    assert_allclose(model.predict([[1e4]]), Y[[X[:, 0].argmax()]], rtol=1e-12)
    assert_allclose(model.predict([[1e200]]), Y.mean(axis=0)[None], rtol=1e-12)
    far = NadarayaWatsonRegressor(0.3).fit(X + 1e6, Y)
    assert_allclose(far.predict(X + 1e6), model.predict(X), rtol=1e-5)


def test_nothing_to_learn(rng):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = NadarayaWatsonRegressor().fit(X, y)
    assert np.isfinite(model.bandwidth_)
    assert_allclose(NadarayaWatsonRegressor().fit(X, np.full(60, 4.0)).predict(X), 4.0)
    assert_allclose(
        NadarayaWatsonRegressor().fit(np.ones((3, 2)), [1.0, 2.0, 6.0]).predict(X[:, :2]), 3.0
    )


def test_parameters_and_files(curve, tmp_path):
    X, Y, _ = curve
    with pytest.raises(ValueError, match="bandwidth must be one of"):
        NadarayaWatsonRegressor("scott").fit(X, Y)
    with pytest.raises(ValueError, match="bandwidth must be"):
        NadarayaWatsonRegressor(-1.0).fit(X, Y)
    model = NadarayaWatsonRegressor().fit(X.astype(np.float32), Y)
    assert model.gaussians_.centres.dtype == np.float32
    pursuit.save(model, tmp_path / "model")
    assert_array_equal(pursuit.load(tmp_path / "model").predict(X), model.predict(X))


# Centroids


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["c", "a", "b"])[y]


def distances(kernel, X, y, weights, queries):
    """Squared distances to the centroids, as section 5.3.4 prints them."""
    columns = []
    for c in np.unique(y):
        own = y == c
        a = weights[own] / weights[own].sum()
        cross = kernel(queries, X[own]) @ a
        norm = np.array([kernel(x[None], x[None])[0, 0] for x in queries])
        columns.append(norm - 2 * cross + a @ kernel(X[own], X[own]) @ a)
    return np.column_stack(columns)


def test_distances_to_the_centroids(iris, rng):
    X, y = iris
    weights = rng.integers(0, 3, size=150).astype(float)
    model = KernelCentroidClassifier(gamma=0.5).fit(X, y, weights)
    expected = distances(lambda A, B: rbf_kernel(A, B, 0.5), X, y, weights, X)
    values = model.decision_function(X)
    assert_allclose(values - values[:, :1], expected[:, :1] - expected, atol=1e-12)
    assert_allclose(1 - values, expected, atol=1e-12)
    assert_array_equal(model.predict(X), model.classes_[expected.argmin(axis=1)])
    assert_array_equal(model.predict_proba(X).argmax(axis=1), expected.argmin(axis=1))
    assert_array_equal(model.support_, np.flatnonzero(weights))


def test_two_classes(iris):
    X, y = iris[0][50:], iris[1][50:]
    model = KernelCentroidClassifier("poly", degree=2).fit(X, y)
    gamma = 1 / (4 * X.var())
    expected = distances(lambda A, B: (gamma * A @ B.T + 1) ** 2, X, y, np.ones(100), X)
    assert_allclose(model.decision_function(X), expected[:, 0] - expected[:, 1], atol=1e-10)


def test_a_linear_kernel_is_the_nearest_centroid(iris):
    X, y = iris
    model = KernelCentroidClassifier("linear").fit(X, y)
    assert_array_equal(model.predict(X), NearestCentroid().fit(X, y).predict(X))
    assert_array_equal(
        KernelCentroidClassifier("linear").fit(sparse.csr_matrix(X), y).predict(X), model.predict(X)
    )


def test_a_gaussian_kernel_is_parzen_windows_but_for_a_constant():
    X, y = make_moons(100, noise=0.2, random_state=0)
    model = KernelCentroidClassifier(gamma=2.0).fit(X, y)
    windows = DensityClassifier(ParzenDensity(0.5), priors=[0.5, 0.5]).fit(X, y)
    p = [np.exp(d.score_samples(X)) * (2 * np.pi * 0.25) for d in windows.densities_]
    differences = 2 * (p[1] - p[0])
    assert_allclose(
        model.decision_function(X) - model.intercept_, differences, rtol=1e-9, atol=1e-12
    )


def test_precomputed_and_callable_kernels(iris):
    X, y = iris
    kernel = GaussianKernel(1.0)
    expected = KernelCentroidClassifier(gamma=0.5).fit(X, y).decision_function(X)
    model = KernelCentroidClassifier(kernel).fit(X, y)
    assert_allclose(model.decision_function(X), expected, rtol=1e-10)
    model = KernelCentroidClassifier("precomputed").fit(kernel(X), y)
    assert_allclose(model.decision_function(kernel(X)), expected, rtol=1e-10)


def test_classifier_in_a_file(iris, tmp_path):
    X, y = iris
    model = KernelCentroidClassifier().fit(X, y)
    pursuit.save(model, tmp_path / "model")
    assert_array_equal(pursuit.load(tmp_path / "model").predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="one class only"):
        KernelCentroidClassifier().fit(X, np.zeros(150))
