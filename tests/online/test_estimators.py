"""Regression and classification from one row after another."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.kernel_ridge import KernelRidge

from pursuit import OnlineKernelClassifier, OnlineKernelRegressor, load, save


def wave(rng, n=300):
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_with_all_rows_it_is_kernel_ridge_regression(rng, kernel):
    X, y = wave(rng, 60)
    model = OnlineKernelRegressor(60, kernel=kernel, gamma=3.0, fit_intercept=False).fit(X, y)
    ridge = KernelRidge(kernel=kernel, gamma=3.0, alpha=0.1).fit(X, y)
    assert_allclose(model.predict(X), ridge.predict(X), atol=1e-7)
    assert_array_equal(model.support_vectors_, X)


def test_the_constant_is_all_but_free(rng):
    X, y = wave(rng, 200)
    near = OnlineKernelRegressor(50, gamma=0.5, alpha=0.01).fit(X, y)
    far = OnlineKernelRegressor(50, gamma=0.5, alpha=0.01).fit(X, y + 1e6)
    assert_allclose(far.predict(X) - 1e6, near.predict(X), atol=1e-6)
    # Targets that move away from the mean of the first rows.
    moved = OnlineKernelRegressor(50, gamma=0.5, alpha=0.01).partial_fit(X[:20], y[:20])
    moved.partial_fit(X, y + 50).partial_fit(X[::-1], y[::-1] + 50)
    assert abs(moved.predict([[100.0, 100.0]])[0] - 50) < 5
    plain = OnlineKernelRegressor(50, gamma=0.5, fit_intercept=False).fit(X, y)
    assert plain.intercept_[0] == 0.0


def test_blocks_do_not_matter(rng):
    X, y = wave(rng, 700)
    whole = OnlineKernelRegressor(20, gamma=0.5, forgetting=0.99).partial_fit(X[:50], y[:50])
    parts = OnlineKernelRegressor(20, gamma=0.5, forgetting=0.99).partial_fit(X[:50], y[:50])
    whole.partial_fit(X[50:], y[50:])
    for start in range(50, 700, 130):
        parts.partial_fit(X[start : start + 130][: 700 - start], y[start : start + 130])
    assert_array_equal(parts.support_vectors_, whole.support_vectors_)
    assert_allclose(parts.dual_coef_, whole.dual_coef_, rtol=1e-8, atol=1e-10)
    assert whole.n_samples_seen_ == parts.n_samples_seen_ == 700


def test_it_recovers_from_a_change(rng):
    X = rng.uniform(-3, 3, size=(3000, 1))
    model = OnlineKernelRegressor(20, gamma=1.0, forgetting=0.995)
    model.partial_fit(X[:1500], np.sin(X[:1500, 0]))
    assert model.score(X, np.sin(X[:, 0])) > 0.99
    model.partial_fit(X[1500:], -np.sin(X[1500:, 0]))
    assert model.score(X, -np.sin(X[:, 0])) > 0.99
    stubborn = OnlineKernelRegressor(20, gamma=1.0).partial_fit(X[:1500], np.sin(X[:1500, 0]))
    assert stubborn.partial_fit(X[1500:], -np.sin(X[1500:, 0])).score(X, -np.sin(X[:, 0])) < 0.5


def test_the_error_band_covers(rng):
    X, y = wave(rng, 2000)
    model = OnlineKernelRegressor(60, gamma=0.5, alpha=0.05).fit(X[:1000], y[:1000])
    mean, std = model.predict(X[1000:], return_std=True)
    inside = np.abs(y[1000:] - mean) < 1.96 * std
    assert 0.9 < inside.mean() < 0.99
    assert_allclose(np.sqrt(model.noise_variance_), 0.1, rtol=0.15)
    _, far = model.predict([[50.0, 50.0]], return_std=True)
    assert far[0] > 2 * std.max()


def test_several_targets_sparse_rows_and_weights(rng):
    X, y = wave(rng)
    Y = np.stack([y, -2 * y + 3], axis=1)
    weights = rng.integers(0, 3, 300).astype(float)
    dense = OnlineKernelRegressor(15, gamma=0.5).fit(X, Y, weights)
    thin = OnlineKernelRegressor(15, gamma=0.5).fit(sparse.csr_matrix(X), Y, weights)
    assert_allclose(thin.predict(X), dense.predict(X), atol=1e-8)
    assert_allclose(dense.predict(X)[:, 1], -2 * dense.predict(X)[:, 0] + 3, atol=1e-8)
    assert dense.n_samples_seen_ == (weights > 0).sum()
    assert dense.predict(X, return_std=True)[1].shape == (300, 2)
    assert dense.noise_variance_.shape == (2,)


def test_digits_one_after_another():
    X, y = load_digits(return_X_y=True)
    model = OnlineKernelClassifier(100, gamma=1e-3, alpha=0.01)
    for rows in np.array_split(np.arange(1400), 7):
        model.partial_fit(X[rows], y[rows], classes=range(10))
    assert model.score(X[1400:], y[1400:]) > 0.88
    assert model.n_components_ == 100
    probability = model.predict_proba(X[1400:])
    assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X[1400:]))
    right = probability[np.arange(397), y[1400:]]
    assert -np.log(right).mean() < 0.5


def test_fit_is_partial_fit_from_the_start_and_class_weights_multiply():
    X, y = make_moons(200, noise=0.2, random_state=0)
    labels = np.array(["b", "a"])[y]
    fitted = OnlineKernelClassifier(20, gamma=2.0, class_weight={"a": 3.0}).fit(X, labels)
    fitted.fit(X, labels)
    other = OnlineKernelClassifier(20, gamma=2.0)
    other.partial_fit(X, labels, ["a", "b"], np.where(labels == "a", 3.0, 1.0))
    assert_allclose(fitted.decision_function(X), other.decision_function(X), atol=1e-10)
    assert fitted.temperature_ == other.temperature_
    assert_array_equal(fitted.classes_, ["a", "b"])


@pytest.mark.parametrize("estimator", [OnlineKernelClassifier, OnlineKernelRegressor])
def test_a_loaded_model_goes_on(tmp_path, estimator):
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = estimator(20, gamma=2.0).fit(X[:150], y[:150])
    save(model, tmp_path / "online.pursuit")
    again = load(tmp_path / "online.pursuit").partial_fit(X[150:], y[150:])
    model.partial_fit(X[150:], y[150:])
    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"alpha": 0.0}, "alpha"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"forgetting": 1.1}, "forgetting must be at most 1"),
        ({"tol": -1.0}, "tol"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"kernel": "precomputed"}, "kernel"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X = np.eye(4)
    with pytest.raises(ValueError, match=message):
        OnlineKernelRegressor(**options).fit(X, [0.0, 1, 2, 3])


def test_bad_calls_are_named(rng):
    X, y = wave(rng, 20)
    model = OnlineKernelRegressor(5).fit(X, y)
    with pytest.raises(ValueError, match="y has 2 targets, but had 1 before"):
        model.partial_fit(X, np.stack([y, y], axis=1))
    labels = y > 0
    with pytest.raises(ValueError, match="classes must be passed"):
        OnlineKernelClassifier().partial_fit(X, labels)
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows"):
        OnlineKernelClassifier(class_weight="balanced").fit(X, labels)
