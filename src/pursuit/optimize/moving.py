"""From a start to moved vectors: a growing part of the rows, principal axes, and vectors that died.

The energy of ``variable_projection.py`` is followed on a random part of the rows
first, on a larger one next and on all of them last: the vectors reach the same place for a
fraction of the cost. The coefficients are always those of the rows at hand, so nothing of a part
is left in the result but where the vectors are.

Fewer rows than features. Under a Gaussian the slope of a vector is a combination of the differences
x_i - z to the rows, so that vectors that begin in the span of the rows stay there. With orthonormal
axes Q of that span (d x n), |x - z| = |Q'x - Q'z|: the descent in n coordinates is that in d.

A vector that no row sees has no slope. After each part such vectors start again, at the rows whose
outputs the loss pulls at most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA

from pursuit._typing import Array, Watch
from pursuit._validation import Samples, fits_single
from pursuit.geometry.unique_rows import parted
from pursuit.kernels import RBF, Kernel, Laplacian, Mahalanobis, is_gaussian
from pursuit.linalg import blocks
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
    "most_steps",
    "move",
    "origin",
    "precision",
    "shift_invariant",
    "spread",
    "unit_of",
    "varying",
]

# A part of the rows is used first where there are more rows than this many times the part.
WORTH_A_PART = 1.5
# Rows of the first part, and of the later ones; a vector has at least ROWS_A_VECTOR.
FIRST_PART, LATER_PARTS, ROWS_A_VECTOR = 2000, (10_000, 50_000), 8
# Iterations on each part.
PART_ITERATIONS = 30
# Of the iterations on a Gaussian of many features, this share is spent on the principal axes that
# hold this share of the variance, found from so many rows, where so much work (n N d) is at stake.
REDUCED_SHARE, REDUCED_VARIANCE, AXES_ROWS, REDUCED_WORK = 0.9, 0.93, 3000, 1e8
# Fewer rows where these have more numbers in all, but never fewer than the first number.
LEAST_ROWS, AXES_ENTRIES = 100, 10_000_000
# Rows are taken by their coordinates in their own span where they are at least so many times fewer
# than the features, and so much work (n N d) is at stake. Vectors are in the span that leave it by
# so many units of rounding.
SPAN_PAYS, SPAN_WORK, IN_SPAN = 2, 1e6, 1e3
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
        Looks at each step on all rows; a text ends the descent and says why.
    report : callable or None
        Is told of every step, those on parts of the rows and in fewer coordinates among them; a
        text ends the way there and says why. The coefficients are still those of all rows.
    """

    max_iter: int
    tol: float
    free: Free
    rng: Any
    watch: Watch[Step] | None = None
    report: Watch[Step] | None = None

    def told(self, step: Step) -> str | None:
        """What those who look at steps say, if anything."""
        said = self.watch and self.watch(step)
        return said or (self.report and self.report(step))

    def through(self, axes: Array) -> Plan:
        """The plan in coordinates of which these are the axes, for rows without a map."""

        def lifted(told: Watch[Step] | None) -> Watch[Step] | None:
            if told is None:
                return None
            return lambda step: told(_lifted(step, axes))

        return self._replace(watch=lifted(self.watch), report=lifted(self.report))


def shift_invariant(kernel: Kernel) -> bool:
    """Whether the kernel depends on differences alone, so that the origin is free."""
    return isinstance(kernel, RBF | Laplacian | Mahalanobis)


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


def precision(
    kernel: Kernel, samples: Samples, n_vectors: int, centre: Array, scale: Array | None = None
) -> Any:
    """float32 for large problems that bear it, in their numbers and exponents; else float64.

    The kernel is one of rows through the map `scale`, if there is one.
    """
    n, d = samples.X.shape
    if n * n_vectors * d < DOUBLE_WORK or not is_gaussian(kernel):
        return np.float64
    few = samples.X[blocks.evenly_spaced(n, 1000)]
    few = through((few.toarray() if sparse.issparse(few) else few) - centre, scale)
    if not fits_single(float(np.abs(few).max(initial=0.0))):
        return np.float64
    exponent = kernel.gamma * float(np.einsum("ij,ij->i", few, few).max())
    return np.float32 if exponent < LARGEST_EXPONENT else np.float64


def unit_of(problem: Problem, place: Place) -> float:
    """Length in which the ways of vectors are measured: the data's standard deviation there."""
    return spread(problem.table, problem.weights) * _length(place)


def spread(table: Table, weights: Array) -> float:
    """Root of the mean weighted variance of the columns over some rows; 1 where it is zero."""
    few = blocks.evenly_spaced(table.shape[0], 2000)
    rows, shares = table.block(few).astype(np.float64), weights[few] / weights[few].sum()
    variance = (shares @ (rows - shares @ rows) ** 2).mean() if rows.shape[1] else 0.0
    return float(np.sqrt(variance)) or 1.0


def parts(n_rows: int, n_vectors: int) -> list[int]:
    """Sizes of the parts of the rows before all of them."""
    first = max(FIRST_PART, ROWS_A_VECTOR * n_vectors)
    sizes = [first, *(size for size in LATER_PARTS if size > 2 * first)]
    return [size for size in sizes if n_rows > WORTH_A_PART * size]


def most_steps(n_rows: int, n_vectors: int, max_iter: int) -> int:
    """How many iterations a way takes at most, on parts of the rows and on all of them."""
    return max_iter + PART_ITERATIONS * len(parts(n_rows, n_vectors)) if max_iter else 0


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
        That on all rows in all coordinates.
    """
    unit = unit_of(problem, place)
    place = place._replace(Z=parted(place.Z, APART * unit, plan.rng))
    axes = span_axes(problem, place) if plan.max_iter else None
    if axes is None:
        return _moved(problem, place, unit, plan)
    within = problem._replace(table=problem.table.mapped(axes))
    place = place._replace(Z=place.Z @ axes)
    found = _moved(within, place, spread(within.table, problem.weights), plan.through(axes))
    return found._replace(best=_lifted(found.best, axes))


def _moved(problem: Problem, place: Place, unit: float, plan: Plan) -> Descent:
    """The descent, most of it on the leading axes where these are few."""
    axes = leading_axes(problem, place) if plan.watch is None and plan.max_iter else None
    if axes is None:
        return _whole(problem, place, unit, plan)
    n_reduced = round(REDUCED_SHARE * plan.max_iter)
    shorter = problem._replace(table=problem.table.mapped(axes))
    reduced = plan.through(axes)._replace(max_iter=n_reduced, free=Free(gamma=plan.free.gamma))
    unit_low = spread(shorter.table, problem.weights)
    low = _whole(shorter, place._replace(Z=place.Z @ axes), unit_low, reduced)
    place = place._replace(kernel=low.best.place.kernel, Z=low.best.place.Z @ axes.T)
    n_left = 0 if low.stopped else plan.max_iter - n_reduced
    last = _descend(problem, place, unit, plan._replace(max_iter=n_left))
    reason = low.reason if low.stopped else last.reason
    return last._replace(n_before=low.n_before + len(low.values) - 1, reason=reason)


def _lifted(step: Step, axes: Array) -> Step:
    """A step in the coordinates that these axes have."""
    place = step.place._replace(Z=step.place.Z @ axes.T)
    return step._replace(place=place, Z=step.Z @ axes.T)


def span_axes(problem: Problem, place: Place) -> Array | None:
    """Orthonormal axes of the span of rows and vectors, if that has few dimensions."""
    (n, d), N, table = problem.table.shape, len(place.Z), problem.table
    fits = is_gaussian(place.kernel) and place.A is None and not _is_hinge(problem)
    if not fits or SPAN_PAYS * n > d or n * N * d < SPAN_WORK or sparse.issparse(table.X):
        return None
    axes: Array = np.linalg.qr(table.block(slice(None)).astype(np.float64).T)[0]
    outside = np.linalg.norm(place.Z - (place.Z @ axes) @ axes.T)
    rounding = IN_SPAN * float(np.finfo(table.dtype).eps)
    return axes if outside <= rounding * np.linalg.norm(place.Z) else None


def leading_axes(problem: Problem, place: Place) -> Array | None:
    """Principal axes that hold nearly all variance, if they are few and much work is saved."""
    (n, d), N = problem.table.shape, len(place.Z)
    fits = is_gaussian(place.kernel) and place.A is None and not _is_hinge(problem)
    if not fits or n * N * d < REDUCED_WORK:
        return None
    few = problem.table.block(
        blocks.evenly_spaced(n, max(LEAST_ROWS, min(AXES_ROWS, AXES_ENTRIES // d)))
    )
    solver = "covariance_eigh" if d <= len(few) else "full"
    axes = PCA(REDUCED_VARIANCE, svd_solver=solver).fit(few.astype(np.float64)).components_.T
    return np.ascontiguousarray(axes) if 2 * axes.shape[1] <= d else None


def _whole(problem: Problem, place: Place, unit: float, plan: Plan) -> Descent:
    """The descent on the parts of the rows, and then on all of them."""
    n_rows, n_before = problem.table.shape[0], 0
    order = plan.rng.permutation(n_rows)
    sizes = parts(n_rows, len(place.Z)) if plan.max_iter and not _is_hinge(problem) else []
    short = plan._replace(max_iter=PART_ITERATIONS, watch=None)
    for size in sizes:
        part = problem.take(np.sort(order[:size]))
        found = _descend(part, place, unit, short)
        place, n_before = revived(part, found.best), n_before + len(found.values) - 1
        if found.stopped:
            last = _descend(problem, place, unit, plan._replace(max_iter=0))
            return last._replace(n_before=n_before, reason=found.reason)
    return _descend(problem, place, unit, plan)._replace(n_before=n_before)


def _descend(problem: Problem, place: Place, unit: float, plan: Plan) -> Descent:
    """L-BFGS as planned."""
    watch = None if plan.watch is None and plan.report is None else plan.told
    return descend(
        problem, place, unit, max_iter=plan.max_iter, tol=plan.tol, free=plan.free, watch=watch
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
    few = blocks.evenly_spaced(problem.table.shape[0], 2000)
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
