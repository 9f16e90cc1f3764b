"""Leaving rows out, against fits without them; the bandwidth of the highest likelihood."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import pairwise
from reference_density import leave_one_out, manifold_parzen, parzen
from scipy.optimize import minimize_scalar

from pursuit.density import bandwidth
from pursuit.density.bandwidth import LeaveOneOutNeighbors, best_bandwidth, left_out_densities
from pursuit.density.gaussian_mixture import CovarianceModel, oriented, spheres
from pursuit.geometry.local_covariance import nearest_indices
from pursuit.geometry.unique_rows import distinct_rows
from pursuit.linalg import blocks


def cloud(rng, m, n):
    t = rng.uniform(0.0, 3.0, size=(m, 1))
    directions = rng.normal(size=(2, n)) / np.sqrt(n)
    X = np.hstack([np.sin(2 * t), t]) @ directions + 0.1 * rng.normal(size=(m, n)) + 5.0
    return X, rng.uniform(0.5, 2.0, size=m)


def windows(sigma):
    """How to fit Parzen windows and evaluate them."""
    return lambda X, weights, queries: parzen(X, weights, sigma, queries)


def fitted(X, weights, k, d):
    distinct = distinct_rows(X, weights)
    m = len(distinct.X)
    near = nearest_indices(distinct, np.arange(m), min(k + 1, m - 1))
    k = min(k, near.shape[1])
    near_weights = distinct.weights[near]
    spherical = spheres(distinct.X, distinct.weights)
    gaussians = oriented(spherical, near[:, :k], near_weights[:, :k], d, 0.001)
    return gaussians, LeaveOneOutNeighbors(near, near_weights, k), distinct


@pytest.mark.parametrize(("n", "k", "d"), [(12, 5, 3), (12, 5, 5), (3, 6, 2), (2, 4, 2), (1, 3, 1)])
def test_axes_are_fitted_without_the_row_too(n, k, d, rng):
    X, weights = cloud(rng, 25, n)
    gaussians, around, distinct = fitted(X, weights, k, d)
    models = [CovarianceModel(noise, c) for noise in (0.01, 0.2) for c in (d, 1, 0)]
    found = left_out_densities(gaussians, models, around)
    for (noise, c), values in zip(models, found, strict=True):

        def fit(X, weights, queries, c=c, noise=noise):
            return manifold_parzen(X, weights, k, c, noise, queries)

        expected = leave_one_out(X, weights, fit)
        assert_allclose(values[distinct.places], expected, rtol=1e-8)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_few_rows(m, rng):
    X, weights = cloud(rng, m, 3)
    gaussians, around, distinct = fitted(X, weights, 3, 2)
    found = left_out_densities(gaussians, [CovarianceModel(0.1, 2)], around)[0]
    expected = leave_one_out(
        X, weights, lambda *data: manifold_parzen(data[0], data[1], 3, 2, 0.1, data[2])
    )
    assert_allclose(found[distinct.places], expected, rtol=1e-9)


def test_without_axes(rng):
    X, weights = cloud(rng, 40, 5)
    found = left_out_densities(spheres(X, weights), [CovarianceModel(0.04), CovarianceModel(1e-8)])
    for values, sigma in zip(found, (0.2, 1e-4), strict=True):
        assert_allclose(values, leave_one_out(X, weights, windows(sigma)), rtol=1e-9)


def test_one_row_has_no_others():
    found = left_out_densities(spheres(np.ones((1, 2)), np.ones(1)), [CovarianceModel(1.0)])
    assert_array_equal(found, -np.inf)


def test_axes_through_the_row_left_out_do_not_count(rng):
    """With d = k neighbours the fitted axes hold every neighbour, and any sigma looks good."""
    X = rng.normal(size=(60, 10))
    gaussians, around, _ = fitted(X, np.ones(60), 2, 2)
    found = left_out_densities(
        gaussians, [CovarianceModel(v, 2) for v in (1e-4, 1e-2, 1.0)], around
    ).mean(1)
    assert found[0] < found[1] < found[2]


def test_batches_and_threads_change_nothing(rng, monkeypatch):
    X, weights = cloud(rng, 41, 6)
    gaussians, around, _ = fitted(X, weights, 5, 3)
    expected = left_out_densities(gaussians, [CovarianceModel(0.01, 3)], around)
    monkeypatch.setattr(bandwidth, "BATCH_BYTES", 50_000)
    monkeypatch.setattr(blocks, "n_threads", lambda: 3)
    found = left_out_densities(gaussians, [CovarianceModel(0.01, 3)], around)
    assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("n", "scale", "start"), pairwise([1, 2, 40], [1e-6, 1.0, 1e6], [1e-9, 0.05, 1e4])
)
def test_the_bandwidth_of_the_highest_likelihood(n, scale, start, rng):
    X, weights = cloud(rng, 50, n)

    def likelihood(logarithm):
        fit = leave_one_out(X, weights, windows(np.exp(logarithm)))
        return -np.average(fit, weights=weights)

    found = best_bandwidth(spheres(scale * X, weights), start * scale**2) / scale
    best = minimize_scalar(
        likelihood, bounds=(np.log(found) - 2, np.log(found) + 2), method="bounded"
    )
    assert_allclose(found, np.exp(best.x), rtol=1e-3)


def test_the_start_is_a_variance_for_each_feature(rng):
    X = rng.normal(size=(31, 4))
    squared = np.sort(((X - X[:, None]) ** 2).sum(axis=2), axis=1)
    distinct = distinct_rows(X)
    for k in (1, 3):
        expected = np.median(squared[:, k]) / 4
        assert_allclose(bandwidth.neighbor_variance(distinct, k), expected, rtol=1e-10)
