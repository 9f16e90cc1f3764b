"""Regression on local hyperplanes: ridge regression of its own for each query, edges, layouts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

import pursuit
from pursuit import HyperplaneKNeighborsRegressor
from pursuit.neighbors import regressors


@pytest.fixture
def surface(rng):
    """A smooth function of six features, two targets, and queries."""
    X = rng.normal(size=(120, 6)) * [1.0, 2.0, 0.5, 1.0, 1.0, 3.0] + 4.0
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] * X[:, 5]])
    return X, Y, X[::7] + 0.3 * rng.normal(size=(18, 6))


def nearest(X, q, k):
    """Indices of the k nearest rows."""
    return np.argsort(((X - q) ** 2).sum(axis=1), kind="stable")[:k]


def by_ridge(X, Y, Q, k, alpha):
    """scikit-learn's own ridge regression, on the neighbours of each query."""
    found = []
    for q in Q:
        near = nearest(X, q, k)
        model = Ridge(alpha, solver="cholesky") if alpha else LinearRegression()
        found.append(model.fit(X[near], Y[near]).predict(q[None])[0])
    return np.array(found)


# Hand-worked.


def test_on_a_line_between_two_rows():
    """Targets 1 and 5 at 0 and 2, seen from 3: the line says 7.

    With V = (-1, 1) and r = 2 the penalised slope is V'T / (V'V + lambda) = 4 / (2 + lambda), and
    f = 3 + 2 * 4 / (2 + lambda).
    """
    model = HyperplaneKNeighborsRegressor(2, alpha=0.0).fit([[0.0], [2.0], [9.0]], [1.0, 5.0, 0.0])
    assert_allclose(model.predict([[3.0], [1.0]]), [7.0, 3.0])
    assert_allclose(model.set_params(alpha=2.0).predict([[3.0]]), [5.0])


# The definition.


@pytest.mark.parametrize("alpha", [0.0, 0.01, 2.0, 1e4])
@pytest.mark.parametrize("k", [2, 5, 20])
def test_ridge_regression_on_the_neighbors(surface, k, alpha):
    X, Y, Q = surface
    model = HyperplaneKNeighborsRegressor(k, alpha=alpha).fit(X, Y)
    assert_allclose(model.predict(Q), by_ridge(X, Y, Q, k, alpha), rtol=1e-9, atol=1e-9)
    one = HyperplaneKNeighborsRegressor(k, alpha=alpha).fit(X, Y[:, 1])
    assert_allclose(one.predict(Q), model.predict(Q)[:, 1], rtol=1e-12)


def test_a_small_penalty_and_rows_that_nearly_depend(surface):
    """Where the system is nearly singular: pivots that are uncertain, and singular values."""
    X, Y, Q = surface
    X[:, 3] = X[:, 2] + 1e-7 * X[:, 3]
    Q[:, 3] = Q[:, 2] + 1e-7 * Q[:, 3]
    model = HyperplaneKNeighborsRegressor(12, alpha=1e-8).fit(X, Y)
    expected = []
    for q in Q:
        near = nearest(X, q, 12)
        centre, mean = X[near].mean(axis=0), Y[near].mean(axis=0)
        V = X[near] - centre
        rows = np.vstack([V, 1e-4 * np.eye(6)])  # ridge regression as least squares
        targets = np.vstack([Y[near] - mean, np.zeros((6, 2))])
        slopes = np.linalg.lstsq(rows, targets)[0]
        expected.append(mean + (q - centre) @ slopes)
    assert_allclose(model.predict(Q), expected, rtol=1e-7)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_on_principal_components_of_the_neighbors(surface, alpha):
    X, Y, Q = surface
    expected = []
    for q in Q:
        near = nearest(X, q, 9)
        centre, mean = X[near].mean(axis=0), Y[near].mean(axis=0)
        axes = np.linalg.svd(X[near] - centre)[2][:2]
        Z = (X[near] - centre) @ axes.T
        slopes = np.linalg.solve(Z.T @ Z + alpha * np.eye(2), Z.T @ (Y[near] - mean))
        expected.append(mean + (q - centre) @ axes.T @ slopes)
    model = HyperplaneKNeighborsRegressor(9, alpha=alpha, n_components=2).fit(X, Y)
    assert_allclose(model.predict(Q), expected, rtol=1e-9)
    whole = HyperplaneKNeighborsRegressor(9, alpha=alpha).fit(X, Y).predict(Q)
    assert_allclose(model.set_params(n_components=8).predict(Q), whole, rtol=1e-9)
    assert np.abs(whole - expected).max() > 0.1


def test_one_neighbor_and_a_large_penalty_are_means(surface):
    X, Y, Q = surface
    for k, alpha in ((1, 0.0), (1, 3.0), (7, 1e12)):
        model = HyperplaneKNeighborsRegressor(k, alpha=alpha).fit(X, Y)
        expected = KNeighborsRegressor(k).fit(X, Y).predict(Q)
        assert_allclose(model.predict(Q), expected, rtol=1e-9)


def test_the_penalty_that_scale_stands_for(surface):
    X, Y, Q = surface
    model = HyperplaneKNeighborsRegressor().fit(X, Y)
    assert model.feature_variance_ == pytest.approx(X.var(axis=0).mean())
    given = HyperplaneKNeighborsRegressor(15, alpha=model.feature_variance_).fit(X, Y)
    assert_array_equal(model.predict(Q), given.predict(Q))


def test_a_linear_function_is_found_exactly(rng):
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0
    Q = rng.normal(size=(20, 3))
    model = HyperplaneKNeighborsRegressor(5, alpha=0.0).fit(X, y)
    assert_allclose(model.predict(Q), Q @ [1.0, -2.0, 0.5] + 3.0, atol=1e-9)


# Edges.


def test_the_order_of_the_rows_changes_nothing(rng):
    """Neither where rows are equal and the targets are not, nor where distances are."""
    X = rng.integers(0, 3, size=(80, 3)).astype(float)
    y = rng.normal(size=80)
    Q = rng.integers(0, 3, size=(20, 3)).astype(float)
    order = rng.permutation(80)
    for k in (1, 4, 15):
        model = HyperplaneKNeighborsRegressor(k).fit(X, y)
        turned = HyperplaneKNeighborsRegressor(k).fit(X[order], y[order])
        assert_array_equal(model.predict(Q), turned.predict(Q))


def test_equal_rows_alone_give_the_mean_of_their_targets():
    model = HyperplaneKNeighborsRegressor(4, alpha=0.0).fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0])
    assert_allclose(model.predict([[5.0, 0.0]]), [3.0])


def test_fewer_rows_than_neighbors(surface):
    X, Y, Q = surface
    model = HyperplaneKNeighborsRegressor(50, alpha=1.0).fit(X[:5], Y[:5])
    assert_allclose(model.predict(Q), Ridge(1.0).fit(X[:5], Y[:5]).predict(Q), rtol=1e-9)


def test_layouts_and_blocks(surface, monkeypatch):
    X, Y, Q = surface
    model = HyperplaneKNeighborsRegressor(6).fit(X, Y)
    expected = model.predict(Q)
    monkeypatch.setattr(regressors, "BATCH_BYTES", 1)
    assert_allclose(model.predict(Q), expected, rtol=1e-12)
    assert_allclose(model.predict(sparse.csr_array(Q)), expected, rtol=1e-9)
    of_sparse = HyperplaneKNeighborsRegressor(6).fit(sparse.csr_array(X), Y)
    assert_allclose(of_sparse.predict(Q), expected, rtol=1e-9)
    single = HyperplaneKNeighborsRegressor(6).fit(X.astype(np.float32), Y)
    assert_allclose(single.predict(Q.astype(np.float32)), expected, rtol=1e-4)


def test_far_from_the_origin(surface):
    X, Y, Q = surface
    near, far = (
        HyperplaneKNeighborsRegressor(6, alpha=0.5).fit(X + shift, Y).predict(Q + shift)
        for shift in (0.0, 2.0**20)
    )
    assert_allclose(far, near, rtol=1e-6)


def test_saved_and_loaded(surface, tmp_path):
    X, Y, Q = surface
    model = HyperplaneKNeighborsRegressor(4).fit(X, Y)
    pursuit.save(model, tmp_path / "model.pursuit")
    assert_array_equal(pursuit.load(tmp_path / "model.pursuit").predict(Q), model.predict(Q))


@pytest.mark.parametrize(
    "params", [{"n_neighbors": 0}, {"alpha": -1.0}, {"alpha": "auto"}, {"n_components": 0}]
)
def test_errors_name_the_parameter(surface, params):
    X, Y, Q = surface
    with pytest.raises(ValueError, match=next(iter(params))):
        HyperplaneKNeighborsRegressor(**params).fit(X, Y)
    model = HyperplaneKNeighborsRegressor().fit(X, Y).set_params(**params)
    with pytest.raises(ValueError, match=next(iter(params))):
        model.predict(Q)
