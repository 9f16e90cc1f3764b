"""The nearest point of a convex hull: many small quadratic programs at once.

Points p_1, ..., p_K, seen from a query, have the Gram matrix G = [p_i'p_j]. The point of their hull
that is nearest to the query has the weights

    min_w w'G w,    w >= 0,  sum w = 1.                                            (P)

With the gradient g = G w the weights are optimal if and only if g_i >= w'g for every i and equal
where w_i > 0, and for any feasible w, by convexity,

    0 <= w'G w - min (P) <= 2 (w'g - min_i g_i).                                   (gap)

P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11 (1976): the active
points A are affinely independent and w is the nearest point of their affine hull, with w > 0.

1. The point of the smallest g joins A; the end is where the gap is nothing but rounding.
2. u, the nearest point of the affine hull of A: u = v / sum v with (G_AA + t 1 1') v = 1, for any
   t > 0.
3. If u > 0, w = u; go to 1.
4. Otherwise w moves towards u until one of its weights is 0; that point leaves A; go to 2.

Every step 3 has a smaller w'G w than the one before, so that no A comes twice and the end is exact.
It takes as many steps as there are active points, and a few more. So before it, for as long as that
helps, points are exchanged in blocks (Portugal, Judice and Vicente, "A comparison of block pivoting
and interior-point algorithms for linear least squares problems with nonnegative variables",
Mathematics of Computation 63, 1994): all points of u <= 0 leave and all with g below w'g join. A
starts as those points that have the least g at the mean of all. Most programs end there, by the
same gap; the others start step 1 from one point.

=======  ============  =========================================
symbol   name in code  shape, of B programs in lockstep
=======  ============  =========================================
G        ``grams``     (B, K, K)
w        ``weights``   (B, K)
A        ``active``    (B, K) bool
t        ``scale``     (B,) the largest entry of the diagonal
=======  ============  =========================================

Where we differ. G gets a small number, (4 K + 100) u t for u the precision, on its diagonal, so
that copies of a point are no obstacle; the minimum of (P) moves by no more than that. Cost of a
step: a product with G and the solution of a system of the size of A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._warnings import warn

__all__ = ["HullPoints", "nearest_in_hull"]

# A gap of this share of the largest squared distance is rounding.
TOLERANCE = 1e-12
BLOCK_STEPS = 12
# Points that are active at first, in percent: with all of them the first steps take the longest.
FIRST_SHARE = 40


class HullPoints(NamedTuple):
    """Solutions of (P).

    Attributes
    ----------
    weights : ndarray of shape (B, K)
        w.
    squared_distances : ndarray of shape (B,)
        w'G w.
    gaps : ndarray of shape (B,)
        How far above the minimum these may be at most, to rounding.
    """

    weights: Array
    squared_distances: Array
    gaps: Array


def nearest_in_hull(grams: Array) -> HullPoints:
    """Solve B programs.

    Parameters
    ----------
    grams : ndarray of shape (B, K, K)
        Gram matrix of K points each, seen from the query, from products in float64.

    Returns
    -------
    points : HullPoints
        Weights, squared distances and duality gaps.

    Warns
    -----
    ConvergenceWarning
        If rounding keeps a gap above 1e-8 of the largest squared distance.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.convex_hull import nearest_in_hull
    >>> segment = np.array([[1.0, -1.0], [1.0, 3.0]])
    >>> found = nearest_in_hull((segment @ segment.T)[None])
    >>> found.weights.round(6), found.squared_distances.round(6)
    (array([[0.75, 0.25]]), array([1.]))
    """
    n_programs, k = grams.shape[:2]
    scale = np.maximum(np.einsum("bkk->bk", grams).max(axis=1), np.finfo(np.float64).tiny)
    ridge = (4.0 * k + 100.0) * np.finfo(np.float64).eps * scale
    ridged = grams + ridge[:, None, None] * np.eye(k)
    weights = np.zeros((n_programs, k))
    _exchange_blocks(ridged, scale, weights)
    _exchange_points(ridged, scale, weights)
    gradients = _gradients(grams, weights)
    values = np.einsum("bk,bk->b", weights, gradients)
    gaps = 2.0 * np.maximum(values - gradients.min(axis=1), 0.0)
    if (gaps > 1e-8 * scale).any():
        warn(
            f"rounding leaves a duality gap of {(gaps / scale).max():.1e} of the largest squared "
            "distance in the search of the nearest point of a convex hull",
            ConvergenceWarning,
        )
    return HullPoints(weights, np.maximum(values, 0.0), gaps)


def _gradients(grams: Array, weights: Array) -> Array:
    """G w for each program."""
    products: Array = (grams @ weights[:, :, None])[:, :, 0]
    return products


def _affine_weights(grams: Array, scale: Array, active: Array) -> Array:
    """Weights u of step 2: zero outside A."""
    n_programs, k = active.shape
    size = max(int(active.sum(axis=1).max()), 1)
    places = np.argsort(~active, axis=1, kind="stable")[:, :size]
    inside = np.take_along_axis(active, places, axis=1)
    starts = k * np.arange(n_programs)[:, None]
    rows = (k * (starts + places))[:, :, None]
    systems = grams.ravel().take(rows + places[:, None, :], mode="clip")
    systems += scale[:, None, None]
    systems *= inside[:, :, None] & inside[:, None, :]
    filler = np.where(inside, 0.0, scale[:, None])
    systems[:, np.arange(size), np.arange(size)] += filler
    solution = np.linalg.solve(systems, inside[:, :, None].astype(np.float64))[:, :, 0]
    solution /= solution.sum(axis=1, keepdims=True)
    weights = np.zeros(active.shape)
    weights.ravel()[starts + places] = solution
    return weights


def _exchange_blocks(grams: Array, scale: Array, weights: Array) -> None:
    """Exchange points in blocks; the weights of programs that end here are set."""
    live = np.arange(len(grams))
    active = _first_active(grams)
    for _ in range(BLOCK_STEPS):
        trial = _affine_weights(grams, scale, active)
        gradients = _gradients(grams, trial)
        values = np.einsum("bk,bk->b", trial, gradients)
        negative = trial < 0.0
        below = gradients < (values - 0.5 * TOLERANCE * scale)[:, None]
        active = (active & ~negative) | (below & ~active)
        on = (negative | below).any(axis=1)
        if on.all():
            continue
        weights[live[~on]] = trial[~on]
        live, grams, scale, active = live[on], grams[on], scale[on], active[on]
        if not len(live):
            return


def _first_active(grams: Array) -> Array:
    """The points towards which w'G w falls fastest from the mean of all."""
    gradients = grams.mean(axis=2)
    size = -(-gradients.shape[1] * FIRST_SHARE // 100)
    return np.asarray(gradients <= np.partition(gradients, size - 1, axis=1)[:, size - 1 : size])


def _exchange_points(grams: Array, scale: Array, weights: Array) -> None:
    """Wolfe's method for the programs without weights so far."""
    live = np.flatnonzero(~weights.any(axis=1))
    if not len(live):
        return
    nearest = np.einsum("bkk->bk", grams[live]).argmin(axis=1)
    weights[live, nearest] = 1.0
    moving = np.zeros(len(live), dtype=bool)  # those that go to step 2 from step 4
    for _ in range(10 * grams.shape[1] + 10):
        part, w, size = grams[live], weights[live], scale[live]
        gradients = _gradients(part, w)
        gap = np.einsum("bk,bk->b", w, gradients) - gradients.min(axis=1)
        entering = gradients.argmin(axis=1)
        known = w[np.arange(len(live)), entering] > 0.0
        on = moving | ((gap > 0.5 * TOLERANCE * size) & ~known)
        live, moving, part, w, size = live[on], moving[on], part[on], w[on], size[on]
        if not len(live):
            return
        active = w > 0.0
        join = np.flatnonzero(~moving)
        active[join, entering[on][join]] = True
        u = _affine_weights(part, size, active)
        weights[live], moving = _towards(w, u, active)


def _towards(w: Array, u: Array, active: Array) -> tuple[Array, Array]:
    """Steps 3 and 4: w moved to u or as far as it stays feasible, and which stopped short."""
    blocked = active & (u <= 0.0)
    room = np.full(w.shape, np.inf)
    room[blocked] = w[blocked] / np.maximum(w[blocked] - u[blocked], np.finfo(np.float64).tiny)
    share = np.minimum(room.min(axis=1), 1.0)
    moved = w + share[:, None] * (u - w)
    moved[blocked & (room <= share[:, None])] = 0.0
    np.maximum(moved, 0.0, out=moved)
    moved /= moved.sum(axis=1, keepdims=True)
    return moved, np.asarray(blocked.any(axis=1))
