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
2. The slope of W is the partial one at that optimum (the envelope theorem; lemma 1 and eq. 34 of Wu
   et al.). For a Gaussian,
   with M_z = (B B') * K_Z,

       dW/dZ     = 2 gamma (M'U - diag(M'1) Z + M_z Z - diag(M_z 1) Z)                     (1)
       dW/dgamma = -sum(M * D^2) - 1/2 sum(M_z * D_z^2)                                    (2)
       dW/dU     = 2 gamma (M Z - diag(M 1) U),      dW/dA = X' dW/dU                      (3)

   by ``kernel_blocks.py``, in the pass over the rows that forms G.
3. L-BFGS moves Z (and log gamma, and A), in standard deviations of the data.

Cost of an evaluation: 2 n N (2 p + N + 3 T) operations in products of row blocks, in float32 where
there are many rows; systems of N unknowns in float64. Two passes over the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import minimize

from pursuit._arrays import beside
from pursuit._typing import Array, Watch
from pursuit.kernels import is_gaussian, kernel_name
from pursuit.linalg import blocks
from pursuit.losses import Loss, MarginLoss, SquaredError
from pursuit.optimize.coefficients import Coefficients, Targets, best_coefficients
from pursuit.optimize.device_values import DeviceValues
from pursuit.optimize.kernel_blocks import (
    BlockValues,
    Place,
    Room,
    Table,
    homogeneous,
    kernel_values,
    slopes,
    with_gamma,
)
from pursuit.optimize.svm import MarginSolution
from pursuit.optimize.svm_on_vectors import definite_factor, jittered, solve_on_values

__all__ = [
    "Descent",
    "Energy",
    "Frame",
    "Free",
    "Hinge",
    "Outer",
    "Problem",
    "Step",
    "assembled",
    "descend",
    "energy",
    "frame_of",
    "outer_slopes",
    "pulled_by",
    "squared_errors",
    "unreliable",
]

# The diagonal of K_z is multiplied by one plus this, by the type of the products.
JITTER = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}
# Relative decrement of the inner problem.
INNER = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-14}
# Sums of the squared error in float32 lead the way while the objective that they promise is within
# this share of what the outputs show; else all further ones are in float64, as the last ones are.
RELIABLE = 1e-3
# Rows without a slope are left out where those with one are no more than this share.
WORTH_A_COPY = 0.6
# Relative duality gap of the hinge loss: its slope is that of W to about the root of this.
INNER_GAP = 1e-8
# Pairs of vectors that L-BFGS keeps, and the iterations over which a fall of W is judged.
CORRECTIONS, WINDOW = 10, 5
# Why L-BFGS ends of its own accord.
ENDS = ("tol", "max_iter")


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 - m), for solvers that know of its kink: `energy`, and ``hinge.py``."""

    convex = True
    smooth = False

    def _value(self, m: Array) -> Array:
        return np.maximum(0.0, 1.0 - m)

    def _first_derivative(self, m: Array) -> Array:
        return np.where(m < 1.0, -1.0, 0.0)

    def _second_derivative(self, m: Array) -> Array:
        return np.zeros_like(m)


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

    def step(
        self,
        place: Place,
        last: Step | None = None,
        *,
        learn_gamma: bool = False,
        exact: bool = False,
    ) -> Step:
        """W at a place; `exact`: sums of the squared error in float64, whatever `last` says."""
        if exact:
            return _evaluated(self, place, last, learn_gamma, True)
        return energy(self, place, last, learn_gamma=learn_gamma)


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
    >>> from pursuit.optimize.kernel_blocks import Place, Table
    >>> from pursuit.optimize.variable_projection import Problem, energy
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> rows = Table(X, np.zeros(1), np.float64)
    >>> problem = Problem(rows, np.array([[1.0], [-1.0], [1.0]]), np.ones(3), SquaredError())
    >>> step = energy(problem, Place(RBF(1.0), X[:2]))
    >>> round(step.value, 4), step.Z.round(4).tolist()
    (1.6313, [[0.0892], [0.8391]])
    """
    exact = last is not None and last.coefficients.exact
    step = _evaluated(problem, place, last, learn_gamma, exact)
    if isinstance(problem.loss, SquaredError) and unreliable(step):
        return _evaluated(problem, place, last, learn_gamma, True)
    return step


def unreliable(step: Step) -> bool:
    """Whether sums of the squared error in float32 promise another W than the outputs show."""
    if step.coefficients.exact:
        return False
    return abs(step.value - step.coefficients.objective) > RELIABLE * step.value


def _evaluated(
    problem: Problem, place: Place, last: Step | None, learn_gamma: bool, exact: bool
) -> Step:
    """Steps 1 and 2; `exact`: sums of the squared error in float64."""
    values = _values(problem, place)
    frame = frame_of(place, problem.table.dtype)
    if isinstance(problem.loss, Hinge):
        found, machines, pulled = _hinge(problem, frame.gram, last, values)
    else:
        (found, pulled), machines = _smooth(problem, frame.gram, last, values, exact), None
    wanted = (learn_gamma, place.A is not None)
    if isinstance(values, DeviceValues):
        outer = Outer(*values.slopes(found, problem.Y, problem.weights, wanted=wanted))
    else:
        outer = outer_slopes(values, found, pulled, wanted)
    squares = None
    if isinstance(problem.loss, SquaredError):
        squares = squared_errors(outer.G, problem.weights)
    step = assembled(place, frame, found, outer, learn_gamma=learn_gamma, squares=squares)
    return step._replace(machines=machines)


def squared_errors(G: Array, weights: Array) -> float:
    """sum_i w_i |y_i - f_i|^2, from the slopes 2 w_i (f_i - y_i)."""
    return float(((G**2).sum(axis=1) / weights).sum()) / 4.0


class Frame(NamedTuple):
    """What a place is without rows: vectors as h, K_z, and K_z with its jitter."""

    vectors: Array
    plain: Array
    gram: Array
    jitter: float


def frame_of(place: Place, dtype: Any) -> Frame:
    """The frame for products in a type."""
    vectors, jitter = homogeneous(place.Z), JITTER[np.dtype(dtype)]
    plain = kernel_values(place.kernel, vectors, place.Z) if len(place.Z) else np.empty((0, 0))
    return Frame(vectors, plain, jittered(plain, jitter), jitter)


class Outer(NamedTuple):
    """G, and the slopes of sum(G * F) in Z, log(gamma) and A, which add up over rows."""

    G: Array
    Z: Array
    log_gamma: float
    A: Array | None


def assembled(
    place: Place,
    frame: Frame,
    found: Coefficients,
    outer: Outer,
    *,
    learn_gamma: bool,
    squares: float | None,
) -> Step:
    """W and its slopes, from sums over rows.

    Parameters
    ----------
    place, frame : Place, Frame
        Where.
    found : Coefficients
        B and b.
    outer : Outer
        Sums over rows.
    learn_gamma : bool
        Whether the slope in log(gamma) is wanted.
    squares : float or None
        For the squared error sum_i w_i |y_i - f_i|^2, which is nearer than what was solved for.
    """
    B, value = found.B, found.objective
    wanted = (learn_gamma, False)
    pairs = jittered(B @ B.T, frame.jitter)
    inner = slopes(place, pairs, frame.plain, frame.vectors, wanted=wanted)
    log_gamma = outer.log_gamma + 0.5 * inner.log_gamma
    if squares is not None:
        value = 0.5 * float((B * (frame.gram @ B)).sum()) + squares
    return Step(place, value, found, None, outer.G, outer.Z + inner.Z, log_gamma, outer.A)


def _values(problem: Problem, place: Place) -> Any:
    """Kernel values in blocks; of a Gaussian under the squared error on the device in use."""
    device = beside()
    if device is not None and isinstance(problem.loss, SquaredError) and is_gaussian(place.kernel):
        return DeviceValues(problem.table, place, device)
    return BlockValues(problem.table, place)


# The slopes of the loss at the outputs of some rows.
Pulled = Callable[[slice, Array], Array]


def _smooth(
    problem: Problem, gram: Array, last: Step | None, values: BlockValues, exact: bool
) -> tuple[Coefficients, Pulled]:
    """Step 1 for a smooth loss: the best coefficients and the slopes of the loss there."""
    table, Y, weights, loss, intercept = problem
    start = None if last is None else last.coefficients
    targets = Targets(Y, weights, loss, intercept, exact)
    found = best_coefficients(values, gram, targets, start, INNER[table.dtype])
    return found, pulled_by(problem, found)


def pulled_by(problem: Problem, found: Coefficients) -> Pulled:
    """The slopes of a smooth loss at given coefficients."""
    table, Y, weights, loss, _ = problem
    B = found.B.astype(table.dtype)

    def pulled(rows: slice, K: Array) -> Array:
        F = (K @ B).astype(np.float64) + found.b
        return np.asarray(weights[rows, None] * loss.gradient(Y[rows], F))

    return pulled


def _hinge(
    problem: Problem, gram: Array, last: Step | None, values: BlockValues
) -> tuple[Coefficients, tuple[MarginSolution, ...], Pulled]:
    """Step 1 for the hinge loss; its slopes are the dual variables with the labels' signs."""
    K = np.empty((values.n_rows, values.n_vectors))

    def fill(rows: slice, block: Array, room: Room) -> None:
        K[rows] = block

    factor = definite_factor(values.place.kernel, gram)
    values.each(fill)
    starts = None if last is None else last.machines
    solution = solve_on_values(K, factor, problem.Y, problem.weights, tol=INNER_GAP, starts=starts)
    found = Coefficients(solution.beta, solution.intercept, solution.objective)
    G = -solution.signed(problem.Y)
    return found, solution.outputs, lambda rows, K: G[rows]


def outer_slopes(
    values: BlockValues, fitted: Coefficients, pulled: Pulled, wanted: tuple[bool, bool]
) -> Outer:
    """Step 2 over the rows; `wanted`: the slopes in log(gamma), in A."""
    place, coefficients = values.place, fitted.B.T.astype(values.table.dtype)
    G = np.empty((values.n_rows, len(coefficients)))

    def part(span: slice, K: Array, room: Room) -> tuple[Any, ...]:
        G[span] = slope = pulled(span, K)
        X, H = values.rows(span)
        used = np.flatnonzero(slope.any(axis=1))
        if 0 < len(used) < WORTH_A_COPY * len(slope):  # few rows pull under a hinge
            slope, K, X, H = slope[used], K[used], X[used], H[used]
        weights = room("weights", K.shape, K.dtype)
        np.matmul(slope.astype(K.dtype), coefficients, out=weights)
        found = slopes(place, weights, K, H, wanted=wanted)
        if found.U is None:
            return found.Z, found.log_gamma
        one = place.A is not None and place.A.ndim == 1
        return found.Z, found.log_gamma, (X * found.U).sum(axis=0) if one else X.T @ found.U

    in_Z, in_gamma, *rest = values.sum(part)
    return Outer(G, in_Z, float(in_gamma), rest[0] if rest else None)


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
        The step of the lowest W.
    values : ndarray of shape (n_iter + 1,)
        W, with the price of moving A, at the start and after each iteration.
    reason : str
        Why the iteration ended: one of `ENDS`, or what a watch said.
    n_before : int
        Iterations on parts of the rows, or in fewer coordinates, that came before.
    """

    best: Step
    values: Array
    reason: str
    n_before: int = 0

    @property
    def stopped(self) -> bool:
        """Whether a watch ended it."""
        return self.reason not in ENDS


class Energy(Protocol):
    """What `descend` goes down on: `Problem`, or one whose rows are elsewhere."""

    @property
    def loss(self) -> Loss:
        """The loss."""

    def step(
        self,
        place: Place,
        last: Step | None = None,
        *,
        learn_gamma: bool = False,
        exact: bool = False,
    ) -> Step:
        """W at a place."""


def descend(
    problem: Energy,
    place: Place,
    unit: float,
    *,
    max_iter: int,
    tol: float,
    free: Free = Free(),  # noqa: B008  an immutable value
    watch: Watch[Step] | None = None,
) -> Descent:
    """Move the vectors by L-BFGS.

    Parameters
    ----------
    problem : Energy
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
        Called with the step after each iteration; a text ends the descent and says why.

    Returns
    -------
    descent : Descent
        The best step seen.

    Raises
    ------
    ValueError
        If the energy is finite nowhere; the message names the kernel.
    """
    with blocks.blas_threads(0), blocks.waiting_threads():
        way = _Way(problem, place, unit, free)
        first = way.at(np.zeros(way.size))
        values, reason = [first[0]], "tol" if max_iter else "max_iter"
        if max_iter and way.size and first[0] > 0.0:
            reason = _follow(way, values, max_iter, tol, watch)
        best = way.best
        if best is None:
            raise ValueError(
                f"kernel: {kernel_name(place.kernel)} gives values that are not finite, or whose "
                "sums are not; rescale the features or change the kernel"
            )
        if isinstance(problem.loss, SquaredError) and not best.coefficients.exact:
            best = problem.step(best.place, best, learn_gamma=free.gamma, exact=True)
    return Descent(best, np.array(values), reason)


def _follow(
    way: _Way,
    values: list[float],
    max_iter: int,
    tol: float,
    watch: Watch[Step] | None,
) -> str:
    """L-BFGS on W over its first value; `values` grows by one an iteration."""
    first, reasons = values[0], ["tol"]

    def scaled(z: Array) -> tuple[float, Array]:
        value, slope = way.at(z)
        return value / first, slope / first

    def look(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun) * first)
        if watch is not None and (reason := watch(way.step(intermediate_result.x))):
            reasons.append(reason)
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

    def __init__(self, problem: Energy, start: Place, unit: float, free: Free) -> None:
        self.problem, self.start, self.free = problem, start, free
        self.unit = unit
        self.n_Z = start.Z.size
        moving = free.A and start.A is not None
        self.n_A = start.A.size if moving and start.A is not None else 0
        self.A_unit = float(np.sqrt(np.mean(start.A**2))) if start.A is not None else 1.0
        self.size = self.n_Z + int(free.gamma) + self.n_A
        self.last: Step | None = None
        self.last_z = np.zeros(0)
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
        step = self.step(z)
        slope = np.empty(self.size)
        slope[: self.n_Z] = (self.unit * step.Z).ravel()
        if self.free.gamma:
            slope[self.n_Z] = step.log_gamma
        value = step.value
        if self.n_A and step.A is not None:
            moved = z[-self.n_A :]
            value += 0.5 * self.free.pull * float(moved @ moved)
            slope[-self.n_A :] = self.A_unit * step.A.ravel() + self.free.pull * moved
        if value < self.lowest:
            self.best, self.lowest = step, value
        return value, slope

    def step(self, z: Array) -> Step:
        """The step at z, which is nearly always the last one computed where it is asked again."""
        if self.last is None or not np.array_equal(z, self.last_z):
            place = self.place(z)
            self.last = self.problem.step(place, self.last, learn_gamma=self.free.gamma)
            self.last_z = np.array(z)
        return self.last
