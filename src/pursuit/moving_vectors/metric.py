"""A metric for the kernel, learned from the slopes of a fitted function.

A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural
networks and backpropagation-free machine learning models", Science 2024: the average gradient
outer product.

    M = mean_i w_i sum_t grad f_t(x_i) grad f_t(x_i)',        x <- x M^power, rescaled

===========  ============  ===================================================================
symbol       name in code  shape and meaning
===========  ============  ===================================================================
M            ``outer``     (p, p) average gradient outer product in the coordinates at hand
A            ``scale``     (d, p) or (d,) the map to the coordinates, u = A'(x - mean)
===========  ============  ===================================================================

Steps. From A = I, the map of a kernel that has one, or that of a fit nearby, a few rounds:

1. Vectors and gamma move for a few iterations in the coordinates at hand.
2. Rows held out say how good this round's metric is.
3. M in these coordinates; A <- A M^power, scaled so that the rows keep their total variance.

The best round is kept, which may be the first. Directions along which the function does not
change shrink; with power 1/4 the metric of the distances is the root of M. A diagonal metric takes
the diagonal of M alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.gradients import average_outer_product
from pursuit.kernels import RBF, Kernel
from pursuit.linalg import blocks
from pursuit.optimize.kernel_blocks import (
    Place,
    Table,
    homogeneous,
    kernel_values,
    through,
)
from pursuit.optimize.moving import Plan, move
from pursuit.optimize.variable_projection import Free, Problem, Step

__all__ = ["LearnedMetric", "learn_metric", "outputs", "principal_axes"]

# Rows on which rounds are fitted, and which are held out, at most.
FITTED_ROWS, HELD_OUT_ROWS, HELD_OUT_SHARE = 8000, 2000, 0.2
# Iterations of a round.
ROUND_ITERATIONS = 30
# Rows over which the outer product is averaged.
OUTER_ROWS = 2000
# The power of M.
POWER = 0.25
# Directions of less than this share of the largest eigenvalue keep that share.
SMALLEST_SHARE = 1e-12


class LearnedMetric(NamedTuple):
    """What the rounds came to.

    Attributes
    ----------
    scale : ndarray of shape (d,) or (d, d)
        A of the best round.
    kernel : Kernel
        With the gamma of the best round.
    losses : ndarray of shape (n_rounds + 1,)
        Mean held-out loss of each round, that of the first map first.
    """

    scale: Array
    kernel: Kernel
    losses: Array


def outputs(step: Step, X: Array) -> Array:
    """F of rows less the origin."""
    place, found = step.place, step.coefficients
    H = homogeneous(through(X, place.A))
    K = kernel_values(place.kernel, H, place.Z.astype(X.dtype))
    return np.asarray((K @ found.B.astype(X.dtype)).astype(np.float64) + found.b)


def _outer_product(step: Step, table: Table, weights: Array) -> Array:
    """M in the coordinates of the table, over at most 2000 rows."""
    place, rows = step.place, blocks.evenly_spaced(table.shape[0], OUTER_ROWS)
    found = KernelExpansion(Atoms(place.kernel, place.Z), step.coefficients.B.T, np.zeros(0))
    return average_outer_product(found, table.block(rows), weights[rows] / weights[rows].sum())


def principal_axes(table: Table, rank: int) -> Array:
    """The leading principal axes of at most 5000 rows, (d, rank)."""
    rows = table.block(blocks.evenly_spaced(table.shape[0], 5000))
    centred = rows.astype(np.float64) - rows.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(axes[:, ::-1][:, :rank])


def learn_metric(
    problem: Problem,
    kernel: Kernel,
    form: str,
    n_vectors: int,
    n_rounds: int,
    rng: Any,
    start: Array | None = None,
    report: Callable[[Step, Array], str | None] | None = None,
) -> LearnedMetric:
    """Steps 1 to 3.

    Parameters
    ----------
    problem : Problem
        Rows, targets and loss; a map of its table is where the rounds start from.
    kernel : Kernel
        A kernel of distances.
    form : {"diagonal", "full"}
        Of the metric.
    n_vectors : int
        Vectors of the fits.
    n_rounds : int
        Rounds at most.
    rng : RandomState
        Draws rows.
    start : ndarray of shape (d,) or (d, d), optional
        A at the start; None: I, or the map of a kernel that has one.
    report : callable, optional
        Told of each step, with the map that it is behind; a text ends the rounds.

    Raises
    ------
    ValueError
        If a diagonal is wanted from a matrix on.
    """
    fitted, held_out = _split(problem, rng)
    table = fitted.table
    scale = _first_map(table, form) if start is None else start
    drawn = rng.permutation(table.shape[0])[:n_vectors]
    best: tuple[Array, Kernel] = (scale, kernel)
    losses: list[float] = []
    for r in range(n_rounds + 1):
        rows = Table(table.X, table.origin, table.dtype, scale)
        told = None if report is None else partial(_told, report, scale)
        plan = Plan(ROUND_ITERATIONS, 0.0, Free(gamma=isinstance(kernel, RBF)), rng, report=told)
        place = Place(kernel, rows.block(drawn).astype(np.float64))
        descent = move(fitted._replace(table=rows), place, plan)
        step = descent.best
        losses.append(_held_out_loss(step, held_out, scale))
        kernel = step.place.kernel
        if losses[-1] <= min(losses):
            best = (scale, kernel)
        if descent.stopped:
            break
        if r < n_rounds:
            outer = _outer_product(step, rows, fitted.weights)
            scale = _rescaled(_sharpened(scale, outer), rows, scale)
    return LearnedMetric(*best, np.array(losses))


def _told(report: Callable[[Step, Array], str | None], scale: Array, step: Step) -> str | None:
    """What is said of a step behind a map."""
    return report(step, scale)


def _first_map(table: Table, form: str) -> Array:
    """A of the first round: that of the table, or I."""
    scale = np.ones(table.shape[1]) if table.scale is None else table.scale
    if form == "full":
        return np.diag(scale) if scale.ndim == 1 else scale
    if scale.ndim == 2:
        raise ValueError("metric='diagonal' does not go with a kernel that has a matrix")
    return scale


def _split(problem: Problem, rng: Any) -> tuple[Problem, Problem]:
    """Some rows to fit and others to judge by."""
    n = problem.table.shape[0]
    order = rng.permutation(n)
    n_held = max(1, min(HELD_OUT_ROWS, int(HELD_OUT_SHARE * n)))
    fitted = order[n_held : n_held + FITTED_ROWS] if n > 1 else order
    return problem.take(np.sort(fitted)), problem.take(np.sort(order[:n_held]))


def _held_out_loss(step: Step, held_out: Problem, scale: Array) -> float:
    """Mean loss on the rows held out."""
    table = Table(held_out.table.X, held_out.table.origin, held_out.table.dtype, scale)
    F = outputs(step, table.block(slice(0, table.shape[0])))
    losses = held_out.loss.value(held_out.Y, F).reshape(len(F), -1).sum(axis=1)
    return float(np.average(losses, weights=held_out.weights))


def _sharpened(scale: Array, outer: Array) -> Array:
    """A M^power."""
    if scale.ndim == 1:
        diagonal = np.maximum(outer.diagonal(), 0.0)
        largest = float(diagonal.max(initial=0.0))
        return scale * (diagonal / largest) ** POWER if largest > 0 else scale
    values, axes = np.linalg.eigh(outer)
    largest = float(values[-1])
    if not largest > 0:
        return scale
    powers = np.maximum(values / largest, SMALLEST_SHARE) ** POWER
    return np.asarray(scale @ ((axes * powers) @ axes.T))


def _rescaled(scale: Array, rows: Table, before: Array) -> Array:
    """The map, scaled so that the rows keep their total variance."""
    few = blocks.evenly_spaced(rows.shape[0], OUTER_ROWS)
    now = Table(rows.X[few], rows.origin, rows.dtype, scale).block(slice(None)).var(axis=0).sum()
    kept = rows.block(few).var(axis=0).sum()
    return np.asarray(scale * np.sqrt(float(kept) / float(now))) if now > 0 else before
