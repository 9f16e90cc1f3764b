"""Nearest points of convex hulls: hand-worked, against other solvers, and by their own gap."""

import numpy as np
import pytest
from scipy.optimize import nnls

from pursuit.geometry import convex_hull as simplex
from pursuit.geometry.convex_hull import nearest_in_hull


def gram(points):
    return np.asarray(points) @ np.asarray(points).T


def by_least_squares(points):
    """Weights of (P) as those of min |P'v|^2 + t (1 - sum v)^2 over v >= 0, divided by their sum.

    The two problems have the same conditions but for the scale of v.
    """
    t = np.abs(points).max()
    system = np.vstack([points.T, t * np.ones(len(points))])
    v, _ = nnls(system, np.append(np.zeros(points.shape[1]), t), maxiter=10_000)
    return v / v.sum()


@pytest.fixture(params=["blocks", "points"])
def route(request, monkeypatch):
    """Both phases on their own: all ends in blocks, or no block step at all."""
    if request.param == "points":
        monkeypatch.setattr(simplex, "BLOCK_STEPS", 0)
    return request.param


CASES = {
    "a point": ([[3.0, 4.0]], [1.0], 25.0),
    "inside a segment": ([[1.0, -1.0], [1.0, 3.0]], [0.75, 0.25], 1.0),
    "beyond the end of a segment": ([[1.0, 1.0], [4.0, 2.0]], [1.0, 0.0], 2.0),
    "the far end first": ([[4.0, 2.0], [1.0, 1.0]], [0.0, 1.0], 2.0),
    "the middle of a triangle": (
        [[2.0, 0.0, 1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, 1.0]],
        [1 / 3, 1 / 3, 1 / 3],
        1.0,
    ),
    "an edge of a triangle": ([[1.0, -1.0], [1.0, 1.0], [3.0, 0.0]], [0.5, 0.5, 0.0], 1.0),
    "on a vertex": ([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]], [1.0, 0.0, 0.0], 0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_hand_worked(name, route):
    points, weights, squared_distance = CASES[name]
    found = nearest_in_hull(gram(points)[None])
    np.testing.assert_allclose(found.weights[0], weights, atol=1e-12)
    np.testing.assert_allclose(found.squared_distances, squared_distance, atol=1e-12)
    np.testing.assert_allclose(found.gaps, 0.0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 5, 30])
@pytest.mark.parametrize("dimension", [1, 3, 60])
@pytest.mark.parametrize("offset", [0.3, 3.0])
def test_equals_least_squares_without_negative_weights(k, dimension, offset, rng, route):
    clouds = rng.normal(size=(25, k, dimension)) + offset
    grams = clouds @ clouds.swapaxes(1, 2)
    found = nearest_in_hull(grams)
    assert (found.weights >= 0).all()
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, rtol=1e-13)
    for points, squared_distance in zip(clouds, found.squared_distances, strict=True):
        weights = by_least_squares(points)
        expected = np.sum((weights @ points) ** 2)
        np.testing.assert_allclose(squared_distance, expected, rtol=1e-9, atol=1e-9)
    scale = np.einsum("bkk->bk", grams).max(axis=1)
    assert (found.gaps <= 2e-12 * scale).all()


def test_the_gap_bounds_the_distance_to_the_minimum(rng, monkeypatch):
    clouds = rng.normal(size=(40, 12, 6)) + 1.0
    grams = clouds @ clouds.swapaxes(1, 2)
    best = nearest_in_hull(grams).squared_distances
    monkeypatch.setattr(simplex, "_exchange_points", lambda grams, scale, weights: None)
    weights = rng.dirichlet(np.ones(12), size=40)
    monkeypatch.setattr(simplex, "_exchange_blocks", lambda g, s, w: w.__setitem__(..., weights))
    with pytest.warns(Warning, match="duality gap"):
        found = nearest_in_hull(grams)
    excess = found.squared_distances - best
    assert (excess > 0).all() and (excess <= found.gaps + 1e-12).all()
    p = (weights[:, :, None] * clouds).sum(axis=1)
    lowest = (clouds @ p[:, :, None])[:, :, 0].min(axis=1)
    np.testing.assert_allclose(found.gaps, 2 * ((p**2).sum(axis=1) - lowest), rtol=1e-10)


def test_copies_and_flat_clouds(rng, route):
    points = np.repeat(rng.normal(size=(4, 2)), 5, axis=0) + 2.0
    alone = nearest_in_hull(gram(points[::5])[None])
    found = nearest_in_hull(gram(points)[None])
    np.testing.assert_allclose(found.squared_distances, alone.squared_distances, rtol=1e-11)
    np.testing.assert_allclose(found.weights.reshape(4, 5).sum(axis=1), alone.weights[0], atol=1e-6)
    zero = nearest_in_hull(np.zeros((1, 3, 3)))
    assert zero.squared_distances[0] == 0.0 and np.isfinite(zero.weights).all()


def test_scale_and_company_change_nothing(rng, route):
    clouds = rng.normal(size=(30, 9, 4)) + 0.7
    grams = clouds @ clouds.swapaxes(1, 2)
    together = nearest_in_hull(grams)
    for i in (0, 7, 29):
        alone = nearest_in_hull(grams[i : i + 1])
        np.testing.assert_allclose(alone.weights[0], together.weights[i], atol=1e-12)
    for factor in (1e-12, 1e12):
        scaled = nearest_in_hull(factor * grams)
        np.testing.assert_allclose(
            scaled.squared_distances,
            factor * together.squared_distances,
            rtol=1e-9,
            atol=1e-11 * factor,
        )


def test_most_programs_end_in_blocks(rng):
    clouds = rng.normal(size=(200, 25, 30)) + 0.3
    grams = clouds @ clouds.swapaxes(1, 2)
    weights = np.zeros((200, 25))
    simplex._exchange_blocks(grams, np.einsum("bkk->bk", grams).max(axis=1), weights)
    assert weights.any(axis=1).mean() > 0.9


def test_a_point_that_stops_the_way_leaves(rng):
    w, u = rng.dirichlet(np.ones(6), size=500), rng.normal(size=(500, 6))
    u /= u.sum(axis=1, keepdims=True)
    active = rng.random((500, 6)) < 0.8
    w, u = w * active, u * active
    moved, stopped = simplex._towards(w, u, active)
    np.testing.assert_array_equal(stopped, ((u <= 0) & active).any(axis=1))
    assert ((moved[stopped] == 0) & active[stopped]).any(axis=1).all()
    assert (moved >= 0).all()
    shares = np.array([min(wi[b] / (wi[b] - ui[b])) for wi, ui, b in zip(
        w[stopped], u[stopped], ((u <= 0) & active)[stopped], strict=True)])  # fmt: skip
    expected = w[stopped] + shares[:, None] * (u - w)[stopped]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved[stopped], expected, atol=1e-12)
    free = u[~stopped] / u[~stopped].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved[~stopped], free, atol=1e-12)
