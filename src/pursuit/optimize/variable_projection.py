"""Vectors that move: the energy W(Z, theta) by variable projection, and its descent.

G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate", SIAM J. Numer. Anal. 1973; M. Wu, B. Schoelkopf and G. Bakir,
"Building sparse large margin classifiers", ICML 2005 (the hinge loss).

Problem.

    W(Z, theta) = min over B, b of  1/2 tr(B' K_Z B) + sum_i w_i loss(y_i, B' k_Z(x_i) + b)

===========  ================  ==========================================================
symbol       name in code      shape and meaning
===========  ================  ==========================================================
Z            ``Z``             (N, p) vectors, in the coordinates u
theta        ``gamma``, ``A``  the kernel's gamma; A (d, p) or its diagonal (d,): u = A'x
B, b         ``B``, ``b``      (N, T), (T,) the best coefficients for these vectors
G            ``G``             (n, T) w dloss/df at the best coefficients
M            ``M``             (n, N) G B' times K, entry by entry
===========  ================  ==========================================================

Steps.

1. B and b at (Z, theta): ``coefficients.py``; for the hinge loss the interior point of ``svm.py``.
2. The slope of W is the partial one at that optimum (the envelope theorem). For a Gaussian,
   with M_z = (B B') * K_Z,

       dW/dZ     = 2 gamma (M'U - diag(M'1) Z + M_z Z - diag(M_z 1) Z)                     (1)
       dW/dgamma = -sum(M * D^2) - 1/2 sum(M_z * D_z^2)                                    (2)
       dW/dU     = 2 gamma (M Z - diag(M 1) U),      dW/dA = X' dW/dU                      (3)

   and for other kernels what `Kernel.weighted_gradient` gives.
3. L-BFGS moves Z (and log gamma, and A), in standard deviations of the data.

Cost of an evaluation: 2 n N (2 d + N + 2 T) operations in products of row blocks, in float32 where
there are many rows; systems of N unknowns in float64. Memory: blocks, N^2 and N d, and the kernel
values where they fit. Rows are spread over threads of our own, each with one BLAS thread.

Numerics. Gaussians below exp(-32) in float32 (1e-30 in float64) are zero: that constant is
subtracted, so that no denormal number arises and W stays smooth to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from pursuit._typing import Array
from pursuit.kernels import RBF, Kernel, kernel_name
from pursuit.linalg import blocks
from pursuit.losses import Loss, MarginLoss
from pursuit.optimize.coefficients import Coefficients, Room, Targets, best_coefficients
from pursuit.optimize.svm import MarginSolution
from pursuit.optimize.svm_on_vectors import solve_on_vectors

__all__ = [
    "Descent",
    "Free",
    "Hinge",
    "Place",
    "Problem",
    "Step",
    "Table",
    "descend",
    "energy",
    "kernel_values",
    "slopes",
]

# The diagonal of K_z is multiplied by one plus this, by the type of the products.
JITTER = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}
# Exponents at and below which a Gaussian is zero.
LOWEST = {np.dtype(np.float32): -32.0, np.dtype(np.float64): -69.0}
# Relative decrement of the inner problem.
INNER = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-14}
# Relative duality gap of the hinge loss.
INNER_GAP = 1e-9
# Numbers in a block of kernel values and rows: it should stay in the cache.
BLOCK_ENTRIES, SMALLEST_BLOCK = 1 << 19, 128
# Evaluations of less work than this stay on one thread.
PARALLEL_WORK = 3e7
# Rows and kernel values are kept if they take no more than this share of the working memory.
KEPT_SHARE = 2.0
# Pairs of vectors that L-BFGS keeps, and the iterations over which a fall of W is judged.
CORRECTIONS, WINDOW = 20, 5
# Relative step of the difference quotient in gamma, for kernels other than the Gaussian.
GAMMA_STEP = 1e-5


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 - m), for `energy` alone: it has a kink."""

    convex = True

    def _value(self, m: Array) -> Array:
        return np.maximum(0.0, 1.0 - m)

    def _slope(self, m: Array) -> Array:
        return np.where(m < 1.0, -1.0, 0.0)

    def _bend(self, m: Array) -> Array:
        return np.zeros_like(m)


class Table:
    """Rows less a common origin, in one floating type, kept where they fit.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    origin : ndarray of shape (d,)
        What is subtracted.
    dtype : dtype
        float32 or float64.
    scale : ndarray of shape (d,) or (d, p), optional
        A fixed linear map that the rows are put through.
    columns : ndarray of int, optional
        Those that matter, where the others are constant; not with a map.
    """

    def __init__(
        self,
        X: Any,
        origin: Array,
        dtype: Any,
        scale: Array | None = None,
        columns: Array | None = None,
    ) -> None:
        self.X, self.origin, self.dtype = X, origin, np.dtype(dtype)
        self.scale, self.columns = scale, columns
        self.rooms: list[Room] = []
        width = X.shape[1] if columns is None else len(columns)
        width = width if scale is None or scale.ndim == 1 else scale.shape[1]
        self.shape = (X.shape[0], width)
        self.kept: Array | None = None
        if blocks.fits(KEPT_SHARE * self.dtype.itemsize * self.shape[0] * width):
            kept = np.empty(self.shape, dtype=self.dtype)
            for rows in blocks.row_blocks(self.shape[0], 256.0 * (X.shape[1] + width)):
                kept[rows] = self._converted(rows)
            self.kept = kept

    def take(self, rows: Array) -> Table:
        """Return some of the rows."""
        return Table(self.X[rows], self.origin, self.dtype, self.scale, self.columns)

    def mapped(self, axes: Array) -> Table:
        """The rows by their coordinates on some axes."""
        if self.columns is not None:
            whole = np.zeros((self.X.shape[1], axes.shape[1]))
            whole[self.columns] = axes
        else:
            whole = axes if self.scale is None else _product(self.scale, axes)
        return Table(self.X, self.origin, self.dtype, whole)

    def block(self, rows: slice | Array) -> Array:
        """Rows as a dense array."""
        return self._converted(rows) if self.kept is None else self.kept[rows]

    def room(self, share: int) -> Room:
        """Arrays that one thread uses again and again: new ones would cost more than sums."""
        while len(self.rooms) <= share:
            self.rooms.append(Room())
        return self.rooms[share]

    def _converted(self, rows: slice | Array) -> Array:
        part = self.X[rows]
        part = part.toarray() if sparse.issparse(part) else part
        shifted = np.subtract(part, self.origin, dtype=np.float64)
        if self.columns is not None:
            shifted = shifted[:, self.columns]
        if self.scale is not None:
            shifted = shifted * self.scale if self.scale.ndim == 1 else shifted @ self.scale
        return np.asarray(shifted, dtype=self.dtype)


def _product(scale: Array, axes: Array) -> Array:
    """The map `scale`, which may be a diagonal, and then `axes`."""
    return np.asarray(scale[:, None] * axes if scale.ndim == 1 else scale @ axes)


class Problem(NamedTuple):
    """Rows, targets (n, T), weights C c_i (n,), the loss, and whether there is a constant."""

    table: Table
    Y: Array
    weights: Array
    loss: Loss
    intercept: bool = True

    def take(self, rows: Array) -> Problem:
        """The problem of some of the rows."""
        part = self.table.take(rows)
        return self._replace(table=part, Y=self.Y[rows], weights=self.weights[rows])


class Place(NamedTuple):
    """Where the search is: the kernel with its gamma, vectors Z, and the map A or None."""

    kernel: Kernel
    Z: Array
    A: Array | None = None


class Step(NamedTuple):
    """W at a place, with the coefficients and the slopes.

    Attributes
    ----------
    place : Place
        Where.
    value : float
        W.
    coefficients : Coefficients
        B and b.
    machines : tuple of MarginSolution or None
        For the hinge loss, to start from.
    G : ndarray of shape (n, T)
        Slopes of the loss in the outputs, with the weights.
    Z : ndarray of shape (N, p)
        dW/dZ.
    log_gamma : float
        dW/dlog(gamma).
    A : ndarray or None
        dW/dA.
    """

    place: Place
    value: float
    coefficients: Coefficients
    machines: tuple[MarginSolution, ...] | None
    G: Array
    Z: Array
    log_gamma: float
    A: Array | None


class _BlockValues:
    """Kernel values of a table and vectors, kept after the first pass where they fit."""

    def __init__(self, table: Table, place: Place) -> None:
        self.table, self.place = table, place
        (self.n_rows, d), self.n_vectors = table.shape, len(place.Z)
        self.Z = place.Z.astype(table.dtype)
        entries = self.n_rows * max(self.n_vectors, 1)
        self.kept = None
        if blocks.fits(KEPT_SHARE * table.dtype.itemsize * entries):
            self.kept = table.room(0)("kept", (self.n_rows, self.n_vectors), table.dtype)
        self.filled = False
        size = max(SMALLEST_BLOCK, BLOCK_ENTRIES // (self.n_vectors + d + 1))
        self.spans = [
            slice(start, min(start + size, self.n_rows)) for start in range(0, self.n_rows, size)
        ]
        self.parallel = entries * (d + self.n_vectors) > PARALLEL_WORK

    def rows(self, span: slice) -> tuple[Array, Array]:
        """Rows x and their coordinates u."""
        X = self.table.block(span)
        A = self.place.A
        if A is None:
            return X, X
        A = A.astype(X.dtype)
        return X, X * A if A.ndim == 1 else X @ A

    def block(self, span: slice, room: Room) -> Array:
        """Kernel values of some rows."""
        if self.kept is not None and self.filled:
            return self.kept[span]
        U = self.rows(span)[1]
        shape = (len(U), self.n_vectors)
        out = room("values", shape, U.dtype) if self.kept is None else self.kept[span]
        return kernel_values(self.place.kernel, U, self.Z, out)

    def _run(self, work: Callable[[list[slice], Room], Any]) -> list[Any]:
        """`work` for each thread's share of the blocks."""
        n_shares = min(blocks.n_threads() if self.parallel else 1, len(self.spans))
        bounds = np.linspace(0, len(self.spans), n_shares + 1).astype(int)
        shares = [
            (self.spans[a:b], self.table.room(i))
            for i, (a, b) in enumerate(zip(bounds[:-1], bounds[1:], strict=True))
        ]
        results = blocks.in_parallel(lambda share: work(*share), shares, parallel=n_shares > 1)
        self.filled = True
        return results

    def sum(self, task: Callable[[slice, Array, Room], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Sums over all blocks of what `task` returns."""

        def work(spans: list[slice], room: Room) -> list[Any]:
            totals: list[Any] = []
            for span in spans:
                parts = task(span, self.block(span, room), room)
                totals = [t + p for t, p in zip(totals, parts, strict=True)] if totals else [*parts]
            return totals

        return tuple(sum(parts[1:], start=parts[0]) for parts in zip(*self._run(work), strict=True))

    def each(self, task: Callable[[slice, Array, Room], None]) -> None:
        """Call `task` for each block."""

        def work(spans: list[slice], room: Room) -> None:
            for span in spans:
                task(span, self.block(span, room), room)

        self._run(work)


def kernel_values(kernel: Kernel, U: Array, Z: Array, out: Array | None = None) -> Array:
    """K(u, z) in the type of U; a Gaussian by one product and one exponential."""
    values = np.empty((len(U), len(Z)), U.dtype) if out is None else out
    if not isinstance(kernel, RBF):
        values[:] = kernel(U.astype(np.float64), Z.astype(np.float64))
        return values
    gamma, lowest = U.dtype.type(kernel.gamma), U.dtype.type(LOWEST[U.dtype])
    np.matmul(U, (2 * gamma * Z).T, out=values)
    values -= (gamma * np.einsum("ij,ij->i", U, U))[:, None]
    values -= gamma * np.einsum("ij,ij->i", Z, Z)
    np.clip(values, lowest, 0.0, out=values)
    np.exp(values, out=values)
    values -= np.exp(lowest)
    return values


class _Slopes(NamedTuple):
    """Slopes of sum(weights * K(U, Z)): in Z, in log(gamma), and in U where wanted."""

    Z: Array
    log_gamma: float
    U: Array | None


def slopes(
    place: Place, weights: Array, K: Array, U: Array, *, wanted: tuple[bool, bool]
) -> _Slopes:
    """Slopes of sum(weights * K(U, Z)), which may write on `weights`; `wanted`: in gamma, in U."""
    kernel = place.kernel
    if not isinstance(kernel, RBF):
        return _slopes_of_any_kernel(place, weights, U, wanted)
    Z, gamma = place.Z.astype(U.dtype), kernel.gamma
    M = np.multiply(weights, K, out=weights if weights.flags.writeable else None)
    columns, MU = M.sum(axis=0, dtype=np.float64), M.T @ U
    in_Z = 2.0 * gamma * (MU.astype(np.float64) - columns[:, None] * place.Z)  # eq. 1
    in_gamma, in_U = 0.0, None
    if wanted[0]:
        rows = M.sum(axis=1, dtype=np.float64)
        far = float(rows @ np.einsum("ij,ij->i", U, U)) - 2.0 * float((MU * Z).sum())
        in_gamma = -gamma * (far + float(columns @ np.einsum("ij,ij->i", Z, Z)))  # eq. 2
    if wanted[1]:
        in_U = 2.0 * U.dtype.type(gamma) * (M @ Z - M.sum(axis=1)[:, None] * U)  # eq. 3
    return _Slopes(in_Z, in_gamma, in_U)


def _slopes_of_any_kernel(
    place: Place, weights: Array, U: Array, wanted: tuple[bool, bool]
) -> _Slopes:
    """The same by the kernel's own derivative; in gamma by a central difference."""
    kernel, Z = place.kernel, place.Z
    U, weights = U.astype(np.float64), weights.astype(np.float64)
    try:
        in_Z = kernel.weighted_gradient(Z, U, weights.T)
        in_U = kernel.weighted_gradient(U, Z, weights) if wanted[1] else None
    except NotImplementedError:
        raise ValueError(f"kernel: {kernel} has no derivative in its vectors") from None
    in_gamma = 0.0
    if wanted[0]:
        above, below = (
            with_gamma(kernel, np.exp(GAMMA_STEP)),
            with_gamma(kernel, np.exp(-GAMMA_STEP)),
        )
        in_gamma = float((weights * (above(U, Z) - below(U, Z))).sum()) / (2.0 * GAMMA_STEP)
    return _Slopes(in_Z, in_gamma, in_U)


def with_gamma(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with its gamma times a factor."""
    return replace(kernel, gamma=kernel.gamma * float(factor))  # type: ignore[type-var,attr-defined]


def _jittered(gram: Array, jitter: float) -> Array:
    """The matrix with its diagonal times 1 + jitter; a zero becomes the unit of that."""
    diagonal = gram.diagonal()
    floor = jitter * (float(np.abs(diagonal).max(initial=0.0)) or 1.0)
    return np.asarray(gram + np.diag(np.where(diagonal > 0, jitter * diagonal, floor)))


def energy(
    problem: Problem, place: Place, last: Step | None = None, *, learn_gamma: bool = False
) -> Step:
    """W with its slopes in Z, log(gamma) where wanted, and A where the place has one.

    Parameters
    ----------
    problem : Problem
        Rows, targets and loss.
    place : Place
        Kernel, vectors and map.
    last : Step, optional
        A step nearby on the same rows, from which the inner problem starts.
    learn_gamma : bool, default=False
        Whether the slope in log(gamma) is wanted.

    Returns
    -------
    step : Step
        W and what goes with it.

    Raises
    ------
    ValueError
        If the kernel has no derivative or is not positive semidefinite on the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> from pursuit.losses import SquaredError
    >>> from pursuit.optimize.variable_projection import Place, Problem, Table, energy
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> rows = Table(X, np.zeros(1), np.float64)
    >>> problem = Problem(rows, np.array([[1.0], [-1.0], [1.0]]), np.ones(3), SquaredError())
    >>> step = energy(problem, Place(RBF(1.0), X[:2]))
    >>> round(step.value, 4), step.Z.round(4).tolist()
    (1.6313, [[0.0892], [0.8391]])
    """
    values = _BlockValues(problem.table, place)
    dtype = problem.table.dtype
    plain = place.kernel(place.Z, place.Z) if len(place.Z) else np.empty((0, 0))
    gram = _jittered(plain, JITTER[dtype])
    if isinstance(problem.loss, Hinge):
        found, machines, G = _hinge(problem, place, last, values)
    else:
        (found, G), machines = _inner(problem, gram, last, values), None
    wanted = (learn_gamma, place.A is not None)
    B = found.B
    inner = slopes(
        place, _jittered(B @ B.T, JITTER[dtype]), plain, place.Z, wanted=(learn_gamma, False)
    )
    in_Z, in_gamma, in_A = _outer_slopes(values, B, G, wanted)
    log_gamma = in_gamma + 0.5 * inner.log_gamma
    return Step(place, found.objective, found, machines, G, in_Z + inner.Z, log_gamma, in_A)


def _inner(
    problem: Problem, gram: Array, last: Step | None, values: _BlockValues
) -> tuple[Coefficients, Array]:
    """Step 1 for a smooth loss: the best coefficients and the slopes of the loss there."""
    table, Y, weights, loss, intercept = problem
    start = None if last is None else last.coefficients
    targets = Targets(Y, weights, loss, intercept)
    found = best_coefficients(values, gram, targets, start, INNER[table.dtype])
    G = np.empty(Y.shape)
    B = found.B.astype(table.dtype)

    def pull(rows: slice, block: Array, room: Room) -> None:
        F = (block @ B).astype(np.float64) + found.b
        G[rows] = weights[rows, None] * loss.gradient(Y[rows], F)

    values.each(pull)
    return found, G


def _hinge(
    problem: Problem, place: Place, last: Step | None, values: _BlockValues
) -> tuple[Coefficients, tuple[MarginSolution, ...], Array]:
    """Step 1 for the hinge loss; its slopes are the dual variables with the labels' signs."""
    rows = np.vstack([values.rows(span)[1] for span in values.spans]).astype(np.float64)
    starts = None if last is None else last.machines
    solution = solve_on_vectors(
        place.kernel, place.Z, rows, problem.Y, problem.weights, tol=INNER_GAP, starts=starts
    )
    found = Coefficients(solution.beta, solution.intercept, solution.objective)
    return found, solution.outputs, -solution.signed(problem.Y)


def _outer_slopes(
    values: _BlockValues, B: Array, G: Array, wanted: tuple[bool, bool]
) -> tuple[Array, float, Array | None]:
    """Slopes of sum(G * F) in Z, log(gamma) and A."""
    place, coefficients = values.place, B.T.astype(values.table.dtype)

    def part(span: slice, K: Array, room: Room) -> tuple[Any, ...]:
        X, U = values.rows(span)
        weights = room("weights", K.shape, K.dtype)
        np.matmul(G[span].astype(X.dtype), coefficients, out=weights)
        found = slopes(place, weights, K, U, wanted=wanted)
        if found.U is None:
            return found.Z, found.log_gamma
        one = place.A is not None and place.A.ndim == 1
        in_A = (X * found.U).sum(axis=0) if one else X.T @ found.U
        return found.Z, found.log_gamma, in_A.astype(np.float64)

    in_Z, in_gamma, *rest = values.sum(part)
    return in_Z, in_gamma, rest[0] if rest else None


class Free(NamedTuple):
    """What moves beside Z.

    Attributes
    ----------
    gamma : bool
        Whether the kernel's gamma does.
    A : bool
        Whether the map does, if the place has one.
    pull : float
        Price of moving an entry of A by the root mean square of its entries at the start.
    """

    gamma: bool = False
    A: bool = False
    pull: float = 1.0


class Descent(NamedTuple):
    """Where L-BFGS has come to.

    Attributes
    ----------
    best : Step
        The step of the lowest W, or the one that `watch` liked best.
    values : ndarray of shape (n_iter + 1,)
        W, with the price of moving A, at the start and after each iteration.
    reason : {"tol", "max_iter", "watch"}
        Why the iteration ended.
    """

    best: Step
    values: Array
    reason: str


def descend(
    problem: Problem,
    place: Place,
    unit: float,
    *,
    max_iter: int,
    tol: float,
    free: Free = Free(),  # noqa: B008  an immutable value
    watch: Callable[[Step], bool] | None = None,
) -> Descent:
    """Move the vectors by L-BFGS.

    Parameters
    ----------
    problem : Problem
        Rows, targets and loss.
    place : Place
        The start.
    unit : float
        Length in which the vectors' ways are measured: the data's standard deviation.
    max_iter : int
        Iterations at most.
    tol : float
        The iteration ends where W falls by no more than this share an iteration, over 5 of them.
    free : Free
        What moves beside the vectors.
    watch : callable, optional
        Called with the step after each iteration; true ends the descent.

    Returns
    -------
    descent : Descent
        The best step seen.

    Raises
    ------
    ValueError
        If the energy is finite nowhere; the message names the kernel.
    """
    with blocks.blas_threads(0):
        way = _Way(problem, place, unit, free)
        first = way.at(np.zeros(way.size))
        values, reason = [first[0]], "max_iter"
        if max_iter and way.size and first[0] > 0.0:
            reason = _follow(way, values, max_iter, tol, watch)
    if way.best is None:
        raise ValueError(
            f"kernel: {kernel_name(place.kernel)} gives values that are not finite, or whose sums "
            "are not; rescale the features or change the kernel"
        )
    return Descent(way.best, np.array(values), reason)


def _follow(
    way: _Way,
    values: list[float],
    max_iter: int,
    tol: float,
    watch: Callable[[Step], bool] | None,
) -> str:
    """L-BFGS on W over its first value; `values` grows by one an iteration."""
    first, reasons = values[0], ["tol"]

    def scaled(z: Array) -> tuple[float, Array]:
        value, slope = way.at(z)
        return value / first, slope / first

    def look(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun) * first)
        if watch is not None and watch(way.at_last(intermediate_result.x)):
            reasons.append("watch")
            raise StopIteration
        if len(values) > WINDOW and values[-1 - WINDOW] - values[-1] <= WINDOW * tol * values[-1]:
            raise StopIteration
        if len(values) > max_iter:
            reasons.append("max_iter")
            raise StopIteration

    options = {
        "maxiter": max_iter + 1, "maxfun": 20 * max_iter, "maxcor": CORRECTIONS,
        "ftol": 0.0, "gtol": 0.0,
    }  # fmt: skip
    minimize(
        scaled, np.zeros(way.size), jac=True, method="L-BFGS-B", callback=look, options=options
    )
    return reasons[-1]


class _Way:
    """W along the way of L-BFGS, whose variables are Z, log(gamma) and A in their units."""

    def __init__(self, problem: Problem, start: Place, unit: float, free: Free) -> None:
        self.problem, self.start, self.unit, self.free = problem, start, unit, free
        self.n_Z = start.Z.size
        moving = free.A and start.A is not None
        self.n_A = start.A.size if moving and start.A is not None else 0
        self.A_unit = float(np.sqrt(np.mean(start.A**2))) if start.A is not None else 1.0
        self.size = self.n_Z + int(free.gamma) + self.n_A
        self.last: Step | None = None
        self.last_z: Array | None = None
        self.best: Step | None = None
        self.lowest = np.inf

    def place(self, z: Array) -> Place:
        """The place that is z units from the start."""
        kernel, Z, A = self.start
        Z = Z + self.unit * z[: self.n_Z].reshape(Z.shape)
        if self.free.gamma:
            kernel = with_gamma(kernel, np.exp(np.clip(z[self.n_Z], -20.0, 20.0)))
        if self.n_A and A is not None:
            A = A + self.A_unit * z[-self.n_A :].reshape(A.shape)
        return Place(kernel, Z, A)

    def at(self, z: Array) -> tuple[float, Array]:
        """W with the price of moving A, and the slope, at z."""
        step = energy(self.problem, self.place(z), self.last, learn_gamma=self.free.gamma)
        slope = np.empty(self.size)
        slope[: self.n_Z] = self.unit * step.Z.ravel()
        if self.free.gamma:
            slope[self.n_Z] = step.log_gamma
        value = step.value
        if self.n_A and step.A is not None:
            moved = z[-self.n_A :]
            value += 0.5 * self.free.pull * float(moved @ moved)
            slope[-self.n_A :] = self.A_unit * step.A.ravel() + self.free.pull * moved
        self.last, self.last_z = step, np.array(z)
        if value < self.lowest:
            self.best, self.lowest = step, value
        return value, slope

    def at_last(self, z: Array) -> Step:
        """The step at z, which is nearly always the last one computed."""
        if self.last_z is None or not np.array_equal(z, self.last_z):
            self.at(z)
        return self.last  # type: ignore[return-value]
