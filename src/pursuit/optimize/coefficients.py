"""The best coefficients of given vectors under any convex loss, from kernel values in row blocks.

Problem. Given kernel values K (n, N) of n rows with N vectors and K_z among the vectors, find the
coefficients B (N, T) and constants b (T,) that minimise

    J(B, b) = 1/2 tr(B' K_z B) + sum_i w_i loss(y_i, f_i),      F = K B + 1 b'.

===========  ==============  =============================================================
symbol       name in code    shape and meaning
===========  ==============  =============================================================
K            ``values``      (n, N) in blocks of rows, kept or computed for each pass
K_z          ``gram``        (N, N) float64, its diagonal times 1 + jitter
B, b         ``B``, ``b``    (N, T), (T,)
w            ``weights``     (n,) C times the sample weights
===========  ==============  =============================================================

Squared error: one Gram matrix K'WK serves all outputs, its sums over a block of rows in the type of
the values (in float64 where that is asked for), those over blocks in float64:

    (K_z + 2 K'WK) B = 2 K'WY,    rows and targets less their weighted means if b is free.

Any other loss: Newton's method. Its system (K_z + K'DK) is solved by conjugate gradients, whose
preconditioner is the same matrix output by output, D the diagonal of the curvature, without the
rows whose curvature is negligible: for a loss of separate outputs one iteration does. It is kept
from one set of vectors to the next while it serves. Where a step of Newton's is cut short (kinks
that are barely smooth), the next takes the slopes of the chords of L' from zero, which bound the
loss from above for every even loss with a concave slope (absolute error, quantile, Huber).

Cost: n N^2 for each Gram matrix, 4 n N T for each product; nothing of n N numbers is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from pursuit._typing import Array
from pursuit.linalg.factor import add_gram, gram_zeros, mirror
from pursuit.losses import Loss, ResidualLoss, SquaredError
from pursuit.optimize.device_values import DeviceValues
from pursuit.optimize.kernel_blocks import BlockValues, Room

__all__ = [
    "Coefficients",
    "Curvature",
    "Normal",
    "Spread",
    "Targets",
    "best_coefficients",
    "least_squares",
    "normal_equations",
    "normal_sums",
]

# Newton steps at most, halvings of a step, and iterations of conjugate gradients.
MOST_STEPS, MOST_HALVINGS, MOST_PRODUCTS = 60, 30, 60
# A fall of J by this share of what the slope promises is enough.
ENOUGH = 1e-4
# The residual of the conjugate gradients, squared, in the preconditioner's norm.
FORCING = 1e-4
# A preconditioner that needs more iterations than this is made anew.
STALE = 8
# Rows whose curvature is below this share of the largest do not enter the preconditioner.
NEGLIGIBLE = 1e-3
# A step shorter than this calls for chords.
SHORT = 0.25


class Curvature(NamedTuple):
    """Cholesky factors that precondition Newton's system, one an output."""

    factors: list[Array]
    n_products: int


class Coefficients(NamedTuple):
    """The minimiser of J.

    Attributes
    ----------
    B : ndarray of shape (N, T)
        Coefficients.
    b : ndarray of shape (T,)
        Constants.
    objective : float
        J.
    curvature : Curvature or None
        For the next problem nearby.
    exact : bool
        Whether all sums were in float64.
    """

    B: Array
    b: Array
    objective: float
    curvature: Curvature | None = None
    exact: bool = False


class Targets(NamedTuple):
    """What is fitted: targets (n, T), weights (n,), the loss, whether b is free, all in float64."""

    Y: Array
    weights: Array
    loss: Loss
    intercept: bool = True
    exact: bool = False


def best_coefficients(
    values: BlockValues, gram: Array, targets: Targets, start: Coefficients | None, tol: float
) -> Coefficients:
    """Minimise J.

    Parameters
    ----------
    values : BlockValues
        K.
    gram : ndarray of shape (N, N)
        K_z.
    targets : Targets
        Targets, weights and the loss, which is convex.
    start : Coefficients or None
        Those of a problem nearby.
    tol : float
        Newton's decrement to reach, relative to J.
    """
    if isinstance(targets.loss, SquaredError):
        return _least_squares(values, gram, targets)
    return _Newton(values, gram, targets, start).run(tol)


class Normal(NamedTuple):
    """The system of the squared error: K_z + 2 K'WK and K'WY, the latter and K'w as they are.

    Rows and targets are less their weighted means where b is free.
    """

    matrix: Array
    cross: Array
    level: Array


class Spread(NamedTuple):
    """Of the targets: sum of the weights, mean (zero where b is not free), squares about it."""

    weight: float
    mean: Array
    square: float


def normal_equations(values: BlockValues | DeviceValues, gram: Array, targets: Targets) -> Normal:
    """The system of the squared error, in one pass over the rows."""
    weight = float(targets.weights.sum()) if targets.intercept else np.inf
    return _system(gram, normal_sums(values, targets), weight)


def normal_sums(values: BlockValues | DeviceValues, targets: Targets) -> tuple[Array, Array]:
    """K'WK and K'W(Y, 1), which add up over rows."""
    if isinstance(values, DeviceValues):
        return values.normal_sums(targets.Y, targets.weights)
    Y, weights, _, _, exact = targets
    dtype = np.dtype(np.float64) if exact else values.table.dtype
    root = None if (weights == weights[0]).all() else np.sqrt(weights).astype(dtype)
    right = np.hstack([weights[:, None] * Y, weights[:, None]]).astype(dtype)

    def statistics(rows: slice, block: Array, room: Room) -> tuple[Array, Array]:
        block = block.astype(dtype, copy=False)
        wide = block if root is None else room("wide", block.shape, dtype)
        wide = wide if root is None else np.multiply(block, root[rows, None], out=wide)
        return wide.T @ wide, block.T @ right[rows]

    square, cross = values.sum(statistics)
    square *= weights[0] if root is None else 1.0
    return square, cross


def _system(gram: Array, sums: tuple[Array, Array], weight: float) -> Normal:
    """The system from the sums; the weight is infinite where b is not free."""
    square, cross = sums
    cross, level = cross[:, :-1], cross[:, -1]
    return Normal(gram + 2.0 * (square - np.outer(level, level / weight)), cross, level)


def least_squares(
    gram: Array, sums: tuple[Array, Array], spread: Spread, *, intercept: bool, exact: bool
) -> Coefficients:
    """The coefficients from sums over rows.

    Parameters
    ----------
    gram : ndarray of shape (N, N)
        K_z.
    sums : tuple of ndarray
        `normal_sums` of targets less their mean.
    spread : Spread
        Of the targets.
    intercept, exact : bool
        Whether b is free, and whether the sums are in float64.
    """
    weight, mean, square = spread
    matrix, cross, level = _system(gram, sums, weight if intercept else np.inf)
    B = _solve(_factor(matrix), 2.0 * cross)
    b = mean - level @ B / weight if intercept else mean
    return Coefficients(B, b, square - float((cross * B).sum()), exact=exact)


def _least_squares(values: BlockValues, gram: Array, targets: Targets) -> Coefficients:
    """The linear system of the squared error."""
    Y, weights, _, intercept, exact = targets
    total = float(weights.sum())
    mean = weights @ Y / total if intercept else np.zeros(Y.shape[1])
    centred = Y - mean
    spread = Spread(total, mean, float((weights[:, None] * centred**2).sum()))
    sums = normal_sums(values, targets._replace(Y=centred))
    exact = exact or values.table.dtype == np.float64
    return least_squares(gram, sums, spread, intercept=intercept, exact=exact)


class _Newton:
    """Newton's method from a start; the point is B over b, (N + 1, T)."""

    def __init__(
        self, values: BlockValues, gram: Array, targets: Targets, start: Coefficients | None
    ) -> None:
        self.values, self.gram = values, gram
        self.Y, self.weights, self.loss, self.intercept, _ = targets
        shape = (len(gram) + 1, self.Y.shape[1])
        self.point = np.zeros(shape) if start is None else np.vstack([start.B, start.b])
        self.curvature = None if start is None else start.curvature
        self.cold = start is None and isinstance(self.loss, ResidualLoss)

    def run(self, tol: float) -> Coefficients:
        """Steps until Newton's decrement is below `tol` times J."""
        outputs = self.outputs(self.point)
        J, chords = self.objective(self.point, outputs), self.cold
        nothing = self.objective(np.zeros_like(self.point), np.zeros_like(outputs))
        if not J <= nothing:  # the start is of no use here
            self.point, outputs, J = np.zeros_like(self.point), np.zeros_like(outputs), nothing
        for _ in range(MOST_STEPS):
            slope = self.slope(outputs)
            product, diagonal = self._curvature(outputs, chords)
            step, change = self._direction(slope, product, diagonal)
            decrement = -float((slope * step).sum())
            if not decrement > tol * abs(J):
                break
            length, lower = self._search(step, change, outputs, J, decrement)
            if length == 0.0:
                if chords or not isinstance(self.loss, ResidualLoss):
                    break
            else:
                self.point = self.point + length * step
                outputs, J = outputs + length * change, lower
            chords = length < SHORT and isinstance(self.loss, ResidualLoss)
        return Coefficients(self.point[:-1], self.point[-1], J, self.curvature)

    def outputs(self, point: Array) -> Array:
        """F = K B + b."""
        F = np.empty(self.Y.shape)

        def fill(rows: slice, block: Array, room: Room) -> None:
            F[rows] = block @ point[:-1].astype(block.dtype)

        self.values.each(fill)
        F += point[-1]
        return F

    def pulled(self, G: Array) -> Array:
        """K'G over the sums of G, which are zero where b is not free."""

        def pull(rows: slice, block: Array, room: Room) -> tuple[Array]:
            return (block.T @ G[rows].astype(block.dtype),)

        (cross,) = self.values.sum(pull)
        return np.vstack([cross, self.intercept * G.sum(axis=0)])

    def objective(self, point: Array, F: Array) -> float:
        """J."""
        penalty = 0.5 * float((point[:-1] * (self.gram @ point[:-1])).sum())
        with np.errstate(over="ignore", invalid="ignore"):  # of a step that is too long
            losses = self.loss.value(self.Y, F).reshape(len(F), -1)
            return penalty + float(self.weights @ losses.sum(axis=1))

    def slope(self, F: Array) -> Array:
        """dJ/dB over dJ/db."""
        slope = self.pulled(self.weights[:, None] * self.loss.gradient(self.Y, F))
        slope[:-1] += self.gram @ self.point[:-1]
        return slope

    def _curvature(self, F: Array, chords: bool) -> tuple[Callable[[Array], Array], Array]:
        """The function V -> w times curvature times V, and the diagonal of the curvature."""
        w = self.weights[:, None]
        if self.loss.coupled:
            P = self.loss.gradient(self.Y, F) + (self.Y > 0)
            coupled = self.loss.curvature_product(self.Y, F)
            return lambda V: w * coupled(V), w * np.maximum(P * (1.0 - P), 0.0)
        D = self.loss.curvature(self.Y, F)
        if chords or (isinstance(self.loss, ResidualLoss) and not D.any(axis=0).all()):
            r = F - self.Y
            rise = self.loss.gradient(self.Y, F) - self.loss.gradient(self.Y, self.Y)
            D = np.where(np.abs(r) > 1e-12, rise / np.where(r == 0.0, 1.0, r), D)
        D = w * D
        return lambda V: D * V, D

    def _direction(
        self, slope: Array, product: Callable[[Array], Array], diagonal: Array
    ) -> tuple[Array, Array]:
        """Newton's step and how it changes F, by conjugate gradients."""
        stale = self.curvature is None or self.curvature.n_products > STALE
        factors = self._factors(diagonal) if stale else self.curvature.factors  # type: ignore[union-attr]
        step, change = np.zeros(slope.shape), np.zeros(self.Y.shape)
        residual = -slope
        z = _preconditioned(factors, residual)
        way, now = z, float((residual * z).sum())
        first, n_products = now, 0
        while n_products < MOST_PRODUCTS and now > FORCING * first:
            n_products += 1
            along = self.outputs(way)
            image = self.pulled(product(along))
            image[:-1] += self.gram @ way[:-1]
            bend = float((way * image).sum())
            if not bend > 0.0:
                break
            length = now / bend
            step, change = step + length * way, change + length * along
            residual = residual - length * image
            z = _preconditioned(factors, residual)
            before, now = now, float((residual * z).sum())
            way = z + (now / before) * way
        self.curvature = Curvature(factors, n_products)
        return step, change

    def _factors(self, diagonal: Array) -> list[Array]:
        """Cholesky factors of K_z + K'DK bordered by the constant, one an output."""
        N, T = len(self.gram), diagonal.shape[1]
        smallest = NEGLIGIBLE * diagonal.max(axis=0) if T > 1 else np.zeros(1)

        def add(rows: slice, block: Array, room: Room) -> tuple[Array, ...]:
            return tuple(
                _bordered_gram(block, diagonal[rows, t], smallest[t], self.intercept)
                for t in range(T)
            )

        factors = []
        for t, square in enumerate(self.values.sum(add)):
            mirror(square)
            square[:N, :N] += self.gram
            # A constant that nothing bends: the loss has no curvature at any row.
            square[N, N] += 1e-8 * float(self.weights.sum()) if self.intercept else 1.0
            if not diagonal[:, t].any():
                square[N, N] += float(self.weights.sum())
            factors.append(_factor(square))
        return factors

    def _search(
        self, step: Array, change: Array, F: Array, J: float, decrement: float
    ) -> tuple[float, float]:
        """The longest of the lengths 1, 1/2, 1/4 ... that lowers J enough; 0 if none does."""
        length = 1.0
        for _ in range(MOST_HALVINGS):
            lower = self.objective(self.point + length * step, F + length * change)
            if lower <= J - ENOUGH * length * decrement:
                return length, lower
            length *= 0.5
        return 0.0, J


def _bordered_gram(block: Array, diagonal: Array, smallest: float, intercept: bool) -> Array:
    """[K 1]' D [K 1] of one block, its upper triangle."""
    rows = np.flatnonzero(diagonal > smallest)
    wide = np.empty((len(rows), block.shape[1] + 1))
    wide[:, :-1] = block[rows]
    wide[:, -1] = float(intercept)
    wide *= np.sqrt(diagonal[rows])[:, None]
    square = gram_zeros((wide.shape[1],) * 2)
    add_gram(square, wide)
    return square


def _factor(matrix: Array) -> Array:
    """Cholesky factor; the diagonal grows until the matrix is definite to rounding."""
    boost = 0.0
    while True:
        factor, failed = lapack.dpotrf(matrix, clean=0)
        if not failed:
            return np.asarray(factor)
        boost = max(100.0 * boost, 1e-15)
        matrix = matrix + np.diag(boost * np.abs(matrix.diagonal()))
        if boost > 1.0:
            raise ValueError("kernel: not positive semidefinite on the vectors")


def _solve(factor: Array, right: Array) -> Array:
    """Solution of the system whose Cholesky factor is given."""
    return np.asarray(lapack.dpotrs(factor, right)[0])


def _preconditioned(factors: list[Array], residual: Array) -> Array:
    """The residual of each output through the factor of its matrix."""
    solved = np.empty(residual.shape)
    for t, factor in enumerate(factors):
        solved[:, t] = _solve(factor, residual[:, t])
    return solved
