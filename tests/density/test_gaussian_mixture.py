"""Log-densities of mixtures: eq. 13.1 by brute force, in every form, and what rounding spares."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from reference_density import flat_manifold_parzen, manifold_parzen, parzen
from scipy.special import logsumexp

from pursuit.density import gaussian_mixture
from pursuit.density.gaussian_mixture import (
    CovarianceModel,
    LogSum,
    draw,
    log_densities,
    oriented,
    softmax_means,
    spheres,
    truncated,
)
from pursuit.geometry.local_covariance import nearest_indices
from pursuit.geometry.unique_rows import distinct_rows
from pursuit.linalg import blocks


def cloud(rng, m, n):
    """Rows near a curve in n dimensions, away from the origin, and their weights."""
    t = rng.uniform(0.0, 3.0, size=m)
    curve = np.stack([np.sin(2 * t), np.cos(3 * t), t**2])[: min(n, 3)]
    directions = rng.normal(size=(len(curve), n)) / np.sqrt(n)
    X = 3.0 * curve.T @ directions + 0.2 * rng.normal(size=(m, n)) + 5.0
    return X, rng.uniform(0.5, 2.0, size=m)


def fitted(X, weights, k, d, noise):
    distinct = distinct_rows(X, weights)
    near = nearest_indices(distinct, np.arange(len(distinct.X)), k)
    spherical = spheres(distinct.X.astype(X.dtype), distinct.weights)
    return oriented(spherical, near, distinct.weights[near], d, noise)


# The sum over rows


@pytest.mark.parametrize("n", [2, 64, 784])
@pytest.mark.parametrize("m", [79, 81, 1000])
@pytest.mark.parametrize("sigma", [0.05, 1.0])
def test_parzen_by_brute_force(m, n, sigma, rng):
    X, weights = cloud(rng, m, n)
    queries = np.vstack([X[:3], X[3:10] + 0.1 * rng.normal(size=(7, n)), np.zeros((1, n))])
    found = log_densities(spheres(X, weights), queries, [CovarianceModel(sigma**2)])
    assert_allclose(found[0], parzen(X, weights, sigma, queries), rtol=1e-9)


@pytest.mark.parametrize(("m", "n"), [(79, 784), (81, 784), (300, 784), (1000, 64)])
def test_manifold_parzen_in_many_dimensions_by_brute_force(m, n, rng):
    X, weights = cloud(rng, m, n)
    queries = np.vstack([X[:2], X[3:8] + 0.1 * rng.normal(size=(5, n)), np.zeros((1, n))])
    gaussians = fitted(X, weights, 10, 4, 0.01)
    assert gaussians.neighbors is not None
    found = log_densities(gaussians, queries, [CovarianceModel(0.01, 4)])[0]
    assert_allclose(found, flat_manifold_parzen(X, weights, 10, 4, 0.01, queries), rtol=1e-9)


FORMS = {  # n, k, d: with neighbours, with axes, with all axes
    "neighbours": (20, 8, 4),
    "all neighbours": (20, 8, 8),
    "axes": (6, 9, 3),
    "complete": (3, 9, 3),
    "flat": (2, 5, 2),
    "line": (1, 5, 1),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("m", [79, 81])
def test_every_form_by_full_matrices(form, m, rng):
    n, k, d = FORMS[form]
    X, weights = cloud(rng, m, n)
    queries = np.vstack([X[:2], X[4:8] + 0.3 * rng.normal(size=(4, n))])
    gaussians = fitted(X, weights, k, d, 0.01)
    assert (gaussians.neighbors is not None) == (k < n)
    assert gaussians.complete == (form in ("complete", "flat", "line"))
    models = [CovarianceModel(noise, c) for noise in (0.01, 0.3) for c in range(d + 1)]
    found = log_densities(gaussians, queries, models)
    for (noise, c), values in zip(models, found, strict=True):
        expected = manifold_parzen(X, weights, k, c, noise, queries)
        assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


def test_without_axes_it_is_parzen(rng):
    X, weights = cloud(rng, 81, 20)
    gaussians = fitted(X, weights, 8, 4, 0.04)
    queries = X + 0.1
    found = log_densities(gaussians, queries, [CovarianceModel(0.04, 0)])
    expected = log_densities(spheres(X, weights), queries, [CovarianceModel(0.04)])
    assert_allclose(found, expected, rtol=1e-12)


def test_tiny_noise_needs_no_cancellation_where_the_axes_are_all_there(rng):
    X, weights = cloud(rng, 40, 2)
    found = log_densities(fitted(X, weights, 6, 2, 1e-10), X + 0.01, [CovarianceModel(1e-10, 2)])
    assert_allclose(found[0], manifold_parzen(X, weights, 6, 2, 1e-10, X + 0.01), rtol=1e-9)


# Rounding


@pytest.mark.parametrize("n", [3, 30])
def test_clusters_far_from_the_origin_and_from_each_other(n, rng):
    near, weights = cloud(rng, 40, n)
    X = np.vstack([near, near + 1e6])
    weights = np.concatenate([weights, weights])
    queries = np.vstack([near[:5] + 0.05, near[:5] + 0.05 + 1e6])
    alone = parzen(near, weights[:40], 0.3, queries[:5]) - np.log(2)
    found = log_densities(spheres(X, weights), queries, [CovarianceModel(0.09)])[0]
    assert_allclose(found, np.concatenate([alone, alone]), rtol=1e-7)
    alone = manifold_parzen(near, weights[:40], 5, 2, 0.09, queries[:5]) - np.log(2)
    gaussians = fitted(X, weights, 5, 2, 0.09)
    assert gaussians.neighbors is None  # inner products would lose everything
    found = log_densities(gaussians, queries, [CovarianceModel(0.09, 2)])[0]
    assert_allclose(found, np.concatenate([alone, alone]), rtol=1e-7)


def test_far_away_rows_and_outliers_are_finite(rng):
    X, weights = cloud(rng, 40, 20)
    X[0] = 1e8
    gaussians = fitted(X, weights, 5, 2, 0.01)
    queries = np.vstack([X[:3], np.full((1, 20), -1e7), np.full((1, 20), 1e100)])
    found = log_densities(gaussians, queries, [CovarianceModel(0.01, 2)])[0]
    assert np.isfinite(found).all()
    expected = flat_manifold_parzen(X, weights, 5, 2, 0.01, X[:3])
    assert_allclose(found[:3], expected, rtol=1e-7)


@pytest.mark.parametrize(("n", "k", "d"), [(2, 5, 0), (2, 5, 1), (2, 5, 2), (20, 5, 3), (6, 9, 3)])
def test_a_query_beyond_the_range_of_numbers_has_no_density(n, k, d, rng):
    gaussians = fitted(*cloud(rng, 30, n), k, d, 0.01)
    found = log_densities(gaussians, np.full((1, n), 1e200), [CovarianceModel(0.01, d)])
    assert_array_equal(found, -np.inf)


def test_constant_features_and_one_row(rng):
    X, weights = cloud(rng, 30, 12)
    X[:, 3:] = 7.0
    found = log_densities(fitted(X, weights, 5, 4, 0.01), X[:4], [CovarianceModel(0.01, 4)])[0]
    assert_allclose(found, manifold_parzen(X, weights, 5, 4, 0.01, X[:4]), rtol=1e-9)
    one = spheres(X[:1], np.array([3.0]))
    assert_allclose(
        log_densities(one, X[:1], [CovarianceModel(1.0)]), -6 * np.log(2 * np.pi), rtol=1e-12
    )


@pytest.mark.parametrize(("n", "k"), [(20, 8), (6, 9), (2, 5)])
def test_float32_rows_and_axes_stay_so_and_sums_are_in_float64(n, k, rng):
    X, weights = cloud(rng, 81, n)
    X = X.astype(np.float32)
    gaussians = fitted(X, weights, k, 2, 0.05)
    assert gaussians.centres.dtype == gaussians.factors.dtype == np.float32
    found = log_densities(gaussians, X, [CovarianceModel(0.05, 2)])[0]
    assert found.dtype == np.float64
    wide = fitted(X.astype(np.float64), weights, k, 2, 0.05)
    assert_allclose(
        found, log_densities(wide, X, [CovarianceModel(0.05, 2)])[0], rtol=1e-4, atol=1e-4
    )


def test_memory_of_the_axes(rng):
    for n, k, d in [(20, 8, 4), (6, 9, 3), (3, 9, 3)]:
        X, weights = cloud(rng, 81, n)
        gaussians = fitted(X, weights, k, d, 0.01)
        assert gaussians.centres.nbytes + gaussians.factors.nbytes <= (d + 1) * X.nbytes


# Blocks, threads, pairs left out


@pytest.mark.parametrize(("n", "k"), [(20, 8), (6, 9), (2, 5)])
def test_blocks_and_threads_change_nothing(n, k, rng, monkeypatch):
    X, weights = cloud(rng, 81, n)
    gaussians = fitted(X, weights, k, 2, 0.05)
    models = [CovarianceModel(0.05, 2), CovarianceModel(0.1, 0)]
    expected = log_densities(gaussians, X, models)
    monkeypatch.setattr(gaussian_mixture, "BLOCK_BYTES", 5000)
    monkeypatch.setattr(gaussian_mixture, "CHUNK_ROWS", 17)
    monkeypatch.setattr(blocks, "n_threads", lambda: 3)
    assert_allclose(log_densities(gaussians, X, models), expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "k", "d"), [(1, 5, 0), (2, 5, 0), (2, 5, 1), (6, 4, 2)])
@pytest.mark.parametrize("noise", [1e-4, 10.0])
def test_far_groups_change_nothing(n, k, d, noise, rng, monkeypatch):
    X, weights = cloud(rng, 300, n)
    X[150:] += 100.0
    gaussians = fitted(X, weights, k, d, noise)
    left_out = np.column_stack([np.arange(300), (np.arange(300) + 5) % 300])
    queries = gaussians.centres + 0.01
    values = rng.normal(size=(300, 2))
    models = [CovarianceModel(noise, d), CovarianceModel(2 * noise, 0)]

    def results():
        yield log_densities(gaussians, queries, models)
        yield log_densities(gaussians, queries, models, left_out)
        yield softmax_means(gaussians, values, queries, models, left_out)

    expected = list(results())
    monkeypatch.setattr(gaussian_mixture, "LEAST_GROUPED", 10)
    monkeypatch.setattr(gaussian_mixture, "GROUP_ROWS", 9)
    looked_at = []
    plain = gaussian_mixture._Centres._distances

    def watched(self, part, *rest):
        looked_at.append(len(self.rows[part]))
        return plain(self, part, *rest)

    monkeypatch.setattr(gaussian_mixture._Centres, "_distances", watched)
    for found, wanted in zip(results(), expected, strict=True):
        assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    full = 3 * 300 * len(gaussian_mixture.kd_tree_leaves(queries, 9))
    if noise < 1.0:
        assert sum(looked_at) < (0.3 if d == 0 else 0.6) * full


def test_softmax_means(rng):
    X, weights = cloud(rng, 50, 3)
    values = rng.normal(size=(50, 2))
    found = softmax_means(
        spheres(X, weights), values, X[:7] + 0.1, [CovarianceModel(0.2), CovarianceModel(1.0)]
    )
    for noise, means in zip((0.2, 1.0), found, strict=True):
        squared = ((X[:7, None] + 0.1 - X) ** 2).sum(axis=2)
        terms = weights * np.exp(-squared / (2 * noise))
        assert_allclose(means, terms @ values / terms.sum(axis=1, keepdims=True), rtol=1e-10)
    far = softmax_means(spheres(X, weights), values, np.full((1, 3), 1e200), [CovarianceModel(1.0)])
    assert_allclose(far[0, 0], weights @ values / weights.sum())


def test_no_rows():
    assert log_densities(
        spheres(np.ones((2, 2)), np.ones(2)), np.ones((0, 2)), [CovarianceModel(1.0)] * 2
    ).shape == (2, 0)


def test_pairs_left_out(rng, monkeypatch):
    X, weights = cloud(rng, 30, 4)
    monkeypatch.setattr(gaussian_mixture, "CHUNK_ROWS", 7)
    monkeypatch.setattr(gaussian_mixture, "BLOCK_BYTES", 3000)
    left_out = np.column_stack([np.arange(30), (np.arange(30) + 5) % 30])
    found = log_densities(spheres(X, weights), X, [CovarianceModel(0.2)], left_out)[0]
    for r in range(30):
        rest = np.setdiff1d(np.arange(30), [r, (r - 5) % 30])
        expected = parzen(X[rest], weights[rest], np.sqrt(0.2), X[r : r + 1])
        expected += np.log(weights[rest].sum() / weights.sum())
        assert_allclose(found[r], expected[0], rtol=1e-10)


def test_sums_gathered_block_by_block(rng):
    terms = rng.normal(scale=300.0, size=(50, 4)) - 1e4
    terms[:, 3] = -np.inf
    values = rng.normal(size=(50, 2))
    total = LogSum(4, 2)
    for start in range(0, 50, 7):
        total.add(terms[start : start + 7].copy(), values[start : start + 7])
    assert_allclose(total.value, logsumexp(terms, axis=0), rtol=1e-13)
    shares = np.exp(terms[:, :3] - logsumexp(terms[:, :3], axis=0))
    assert_allclose(total.moments[:, :3] / total.total[:3], values.T @ shares, rtol=1e-12)


# It is a density


@pytest.mark.parametrize("d", [0, 1, 2])
def test_it_integrates_to_one(d, rng):
    X, weights = cloud(rng, 60, 2)
    gaussians = fitted(X, weights, 6, 2, 0.02)
    lines = [np.linspace(X[:, j].min() - 12, X[:, j].max() + 12, 450) for j in range(2)]
    grid = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 2)
    cell = np.prod([line[1] - line[0] for line in lines])
    found = np.exp(log_densities(gaussians, grid, [CovarianceModel(0.02, d)])[0])
    assert_allclose(found.sum() * cell, 1.0, rtol=1e-6)


@pytest.mark.parametrize(("n", "k", "d"), [(20, 8, 3), (6, 9, 3), (2, 5, 1), (6, 9, 0)])
def test_draws_have_the_mean_and_the_covariance_of_their_gaussian(n, k, d, rng):
    X, weights = cloud(rng, 60, n)
    gaussians = fitted(X, weights, k, d, 0.02)
    picks = np.full(40_000, 11)
    drawn = draw(gaussians, CovarianceModel(0.02, d), picks, np.random.RandomState(1))
    plain = np.array(manifold_covariance(gaussians, 11, d, 0.02))
    assert_allclose(drawn.mean(axis=0), gaussians.centres[11], atol=0.03)
    assert_allclose(np.cov(drawn.T), plain, atol=0.03 * plain.max())


def manifold_covariance(gaussians, i, d, noise):
    """C_i from what the mixture keeps."""
    factors = gaussians.factors[i, :d]
    n = gaussians.centres.shape[1]
    if gaussians.neighbors is None:
        axes = np.sqrt(gaussians.variances[i, :d, None]) * factors
    else:
        axes = factors @ (gaussians.centres[gaussians.neighbors[i]] - gaussians.centres[i])
        assert_allclose(axes @ axes.T, np.diag(gaussians.variances[i, :d]), atol=1e-12)
    return axes.T @ axes + noise * np.eye(n)


def test_draws_do_not_depend_on_blocks(rng):
    X, weights = cloud(rng, 60, 20)
    gaussians, picks = fitted(X, weights, 8, 3, 0.02), np.arange(60)
    expected = draw(gaussians, CovarianceModel(0.02, 3), picks, np.random.RandomState(1))
    with sklearn.config_context(working_memory=0.01):
        found = draw(gaussians, CovarianceModel(0.02, 3), picks, np.random.RandomState(1))
    assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_fewer_axes(form, rng):
    n, k, d = FORMS[form]
    X, weights = cloud(rng, 50, n)
    gaussians = fitted(X, weights, k, d, 0.01)
    for c in range(d + 1):
        less = truncated(gaussians, c)
        assert less.centres.nbytes + less.factors.nbytes <= (c + 1) * X.nbytes
        found = log_densities(less, X, [CovarianceModel(0.01, c)])
        assert_allclose(
            found, log_densities(gaussians, X, [CovarianceModel(0.01, c)]), rtol=1e-9, atol=1e-9
        )


# What rounding may cost.


def test_groups_are_left_out_only_where_a_double_loses_them(rng, monkeypatch):
    """Half of the rows nearby are at 7 sigma: a share of exp(-24.5), below it no more is lost."""
    X = np.concatenate([[0.0, 7.0], 100.0 * np.arange(1, 11)]).repeat(10)[:, None]
    X += rng.uniform(0.0, 1e-3, size=X.shape)
    monkeypatch.setattr(gaussian_mixture, "LEAST_GROUPED", 1)
    monkeypatch.setattr(gaussian_mixture, "GROUP_ROWS", 10)
    monkeypatch.setattr(gaussian_mixture, "MOST_LOST", 0.0)  # distances keep all digits
    queries, weights = np.array([[0.0]]), np.ones(len(X))
    expected = parzen(X, weights, 1.0, queries)
    assert np.abs(parzen(X[:10], weights[:10], 1.0, queries) - np.log(12) - expected) > 1e-11
    found = log_densities(spheres(X, weights), queries, [CovarianceModel(1.0)])[0]
    assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_inner_products_are_used_only_where_ten_digits_are_left(rng):
    X = np.vstack([rng.normal(size=(20, 3)) - 1e4, rng.normal(size=(20, 3)) + 1e4])
    weights = rng.uniform(0.5, 2.0, size=40)
    expected = parzen(X, weights, 1.0, X[:5] + 0.1)
    found = log_densities(spheres(X, weights), X[:5] + 0.1, [CovarianceModel(1.0)])[0]
    assert_allclose(found, expected, rtol=0, atol=1e-10)
