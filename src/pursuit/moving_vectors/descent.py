"""From rows to moved vectors: a start, a growing part of the rows, and vectors that died.

The energy of `pursuit.optimize.variable_projection` is followed on a random part of the rows
first, on a larger one next and on all of them last: the vectors reach the same place for a
fraction of the cost. The coefficients are always those of the rows at hand, so nothing of a part
is left in the result but where the vectors are.

A vector that no row sees has no slope. After each part such vectors start again, at the rows whose
outputs the loss pulls at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._validation import Samples, fits_single
from pursuit.dictionary import draw_candidates, n_candidate_rows, training_rows
from pursuit.geometry.unique_rows import parted
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.kernels import RBF, Kernel, Laplacian
from pursuit.optimize.kernel_blocks import Place, Table, through
from pursuit.optimize.variable_projection import (
    Descent,
    Free,
    Hinge,
    Problem,
    Step,
    descend,
)

__all__ = [
    "Plan",
    "chosen_rows",
    "cluster_centres",
    "move",
    "origin",
    "precision",
    "spread",
    "varying",
]

# A part of the rows is used first where there are more rows than this many times the part.
WORTH_A_PART = 1.5
# Rows of the first part, and of the later ones; a vector has at least ROWS_A_VECTOR.
FIRST_PART, LATER_PARTS, ROWS_A_VECTOR = 2000, (10_000, 50_000), 8
# Iterations on each part.
PART_ITERATIONS = 40
# Of the iterations on a Gaussian of many features, this share is spent on the principal axes that
# hold this share of the variance, found from so many rows, where so much work (n N d) is at stake.
REDUCED_SHARE, REDUCED_VARIANCE, AXES_ROWS, REDUCED_WORK = 0.9, 0.97, 3000, 1e8
# A vector is dead if it moves the outputs by less than this share of what vectors do on average.
DEAD = 1e-6
# Problems of less work than this, n N d, are solved in float64.
DOUBLE_WORK = 1e7
# Products are in float32 only where gamma |u|^2 is below this: exponents err by 1e-7 of it.
LARGEST_EXPONENT = 1e3
# Vectors at one place are moved apart by so many standard deviations of the data.
APART = 0.1


class Plan(NamedTuple):
    """How the vectors move.

    Attributes
    ----------
    max_iter : int
        Iterations on all rows at most.
    tol : float
        Relative fall of the energy an iteration at which the descent ends.
    free : Free
        What moves beside the vectors.
    rng : RandomState
        Draws the parts of the rows.
    watch : callable or None
        Looks at each step on all rows; true ends the descent.
    """

    max_iter: int
    tol: float
    free: Free
    rng: Any
    watch: Callable[[Step], bool] | None = None


def shift_invariant(kernel: Kernel) -> bool:
    """Whether the kernel depends on differences alone, so that the origin is free."""
    return isinstance(kernel, RBF | Laplacian)


def origin(kernel: Kernel, samples: Samples) -> Array:
    """The weighted mean of the rows, or zero where the kernel is not one of differences."""
    if not shift_invariant(kernel):
        return np.zeros(samples.X.shape[1])
    shares = samples.weights / samples.weights.sum()
    if sparse.issparse(samples.X):
        return np.asarray(samples.X.T @ shares, dtype=np.float64)
    first = np.asarray(samples.X[0], dtype=np.float64)
    total = np.zeros(samples.X.shape[1])
    for start in range(0, len(shares), 4096):
        part = samples.X[start : start + 4096] - first
        total += shares[start : start + 4096] @ part
    return np.asarray(first + total)


def varying(kernel: Kernel, X: Any) -> Array | None:
    """Columns that are not constant, where a kernel of differences may do without the others."""
    if not shift_invariant(kernel):
        return None
    if sparse.issparse(X):
        varies = np.asarray((X.max(axis=0) - X.min(axis=0)).todense()).ravel() != 0
    else:
        varies = np.ptp(X[:1], axis=0) != 0
        for start in range(0, X.shape[0], 4096):
            varies |= (X[start : start + 4096] != X[0]).any(axis=0)
    return None if varies.all() or not varies.any() else np.flatnonzero(varies)


def precision(kernel: Kernel, samples: Samples, n_vectors: int, centre: Array) -> Any:
    """float32 for large problems that bear it, in their numbers and exponents; else float64."""
    n, d = samples.X.shape
    if n * n_vectors * d < DOUBLE_WORK or not isinstance(kernel, RBF):
        return np.float64
    few = samples.X[:: max(1, n // 1000)]
    few = (few.toarray() if sparse.issparse(few) else few) - centre
    if not fits_single(float(np.abs(few).max(initial=0.0))):
        return np.float64
    exponent = kernel.gamma * float(np.einsum("ij,ij->i", few, few).max())
    return np.float32 if exponent < LARGEST_EXPONENT else np.float64


def spread(table: Table, weights: Array) -> float:
    """Root of the mean weighted variance of the columns over some rows; 1 where it is zero."""
    few = np.arange(0, table.shape[0], max(1, table.shape[0] // 2000))
    rows, shares = table.block(few).astype(np.float64), weights[few] / weights[few].sum()
    variance = (shares @ (rows - shares @ rows) ** 2).mean() if rows.shape[1] else 0.0
    return float(np.sqrt(variance)) or 1.0


def cluster_centres(samples: Samples, n: int, rng: Any) -> Array:
    """Means of clusters of the weighted rows."""
    means = KMeans(n, n_init=1, random_state=rng)
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: centres that coincide are moved apart.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = means.fit(samples.X, sample_weight=samples.weights).cluster_centers_
    return np.asarray(centres, dtype=np.float64)


def chosen_rows(kernel: Kernel, samples: Samples, n: int, rng: Any) -> Array:
    """Indices of the rows that pre-fitting matching pursuit chooses; others where it ends early."""
    n_rows = samples.X.shape[0]
    candidates = draw_candidates(np.arange(n_rows), n_candidate_rows(None, n_rows, n), rng)
    search = make_pursuit(training_rows(kernel, samples.X, candidates), samples, [n], Method())
    search.extend(n)
    picks = candidates[np.array(search.pursuits[0].pivots, dtype=int)]
    others = rng.permutation(np.setdiff1d(np.arange(n_rows), picks))
    return np.concatenate([picks, others])[:n]


def parts(n_rows: int, n_vectors: int) -> list[int]:
    """Sizes of the parts of the rows before all of them."""
    first = max(FIRST_PART, ROWS_A_VECTOR * n_vectors)
    sizes = [first, *(size for size in LATER_PARTS if size > 2 * first)]
    return [size for size in sizes if n_rows > WORTH_A_PART * size]


def move(problem: Problem, place: Place, plan: Plan) -> Descent:
    """Move the vectors from a start, on growing parts of the rows.

    Parameters
    ----------
    problem : Problem
        All rows.
    place : Place
        The start.
    plan : Plan
        How.

    Returns
    -------
    descent : Descent
        That on all rows.
    """
    unit = spread(problem.table, problem.weights) * _length(place)
    place = place._replace(Z=parted(place.Z, APART * unit, plan.rng))
    axes = leading_axes(problem, place) if plan.watch is None and plan.max_iter else None
    if axes is None:
        place = _through_parts(problem, place, unit, plan)
        return _descend(problem, place, unit, plan)
    n_reduced = round(REDUCED_SHARE * plan.max_iter)
    shorter = problem._replace(table=problem.table.mapped(axes))
    reduced = plan._replace(max_iter=n_reduced, free=Free())
    low = place._replace(Z=place.Z @ axes)
    unit_low = spread(shorter.table, problem.weights)
    low = _through_parts(shorter, low, unit_low, reduced)
    low = _descend(shorter, low, unit_low, reduced).best.place
    place = place._replace(Z=low.Z @ axes.T)
    return _descend(problem, place, unit, plan._replace(max_iter=plan.max_iter - n_reduced))


def leading_axes(problem: Problem, place: Place) -> Array | None:
    """Principal axes that hold nearly all variance, if they are few and much work is saved."""
    (n, d), N = problem.table.shape, len(place.Z)
    fits = isinstance(place.kernel, RBF) and place.A is None and not _is_hinge(problem)
    if not fits or n * N * d < REDUCED_WORK:
        return None
    rows = problem.table.block(np.arange(0, n, max(1, n // AXES_ROWS))).astype(np.float64)
    rows -= rows.mean(axis=0)
    values, axes = np.linalg.eigh(rows.T @ rows)
    held = np.cumsum(values[::-1]) / values.sum() if values.sum() > 0 else np.ones(d)
    rank = int(np.searchsorted(held, REDUCED_VARIANCE)) + 1
    return np.ascontiguousarray(axes[:, ::-1][:, :rank]) if 2 * rank <= d else None


def _through_parts(problem: Problem, place: Place, unit: float, plan: Plan) -> Place:
    """Where the vectors are after the parts of the rows."""
    n_rows = problem.table.shape[0]
    order = plan.rng.permutation(n_rows)
    sizes = parts(n_rows, len(place.Z)) if plan.max_iter and not _is_hinge(problem) else []
    iterations = min(PART_ITERATIONS, plan.max_iter)
    for size in sizes:
        part = problem.take(np.sort(order[:size]))
        found = _descend(part, place, unit, plan._replace(max_iter=iterations, watch=None))
        place = revived(part, found.best)
    return place


def _descend(problem: Problem, place: Place, unit: float, plan: Plan) -> Descent:
    """L-BFGS as planned."""
    return descend(
        problem, place, unit, max_iter=plan.max_iter, tol=plan.tol, free=plan.free, watch=plan.watch
    )


def _is_hinge(problem: Problem) -> bool:
    """The hinge loss keeps its dual variables row by row: no parts."""
    return isinstance(problem.loss, Hinge)


def _length(place: Place) -> float:
    """By how much a map that moves stretches lengths at its start."""
    if place.A is None:
        return 1.0
    square = float((place.A**2).sum())
    return float(np.sqrt(square / place.A.shape[-1])) if square > 0 else 1.0


def revived(problem: Problem, step: Step) -> Place:
    """The place with its dead vectors at the rows that the loss pulls at most."""
    place, B = step.place, step.coefficients.B
    if not len(place.Z) or not B.any():
        return place
    few = np.arange(0, problem.table.shape[0], max(1, problem.table.shape[0] // 2000))
    rows = problem.table.block(few).astype(np.float64)
    rows = through(rows, place.A)
    moved = (place.kernel(rows, place.Z) ** 2).sum(axis=0) * (B**2).sum(axis=1)
    dead = np.flatnonzero(moved < DEAD * moved.mean())
    if not len(dead):
        return place
    pulled = np.argsort(-np.abs(step.G[few]).sum(axis=1), kind="stable")[: len(dead)]
    Z = place.Z.copy()
    Z[dead[: len(pulled)]] = rows[pulled]
    return place._replace(Z=Z)
