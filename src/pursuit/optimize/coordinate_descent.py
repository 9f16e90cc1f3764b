"""The constrained Gauss-Seidel method for convex networks, with joint steps.

Paper: K. Kovacs and A. Kocsor, "Classification using a sparse combination of basis functions"
(convex networks, 2006); the equation numbers are theirs.

Problem (eq. 8). For given functions and a convex loss, minimise over beta in a box

    F = sum_i w_i L(y_i, f_i) + lambda beta'A beta,    f = Phi beta,    lower <= beta <= upper.

============  ==================  ========================================================
symbol        name in code        shape and meaning
============  ==================  ========================================================
Phi           ``matrix``          (n, q)  functions on the rows; see ``design_matrix.py``
beta          ``beta``            (q,)
f             ``outputs``         (n,)
A             ``penalty``         (q, q)  symmetric, positive semidefinite; None: the identity
A beta        ``image``           (q,)
w L'          ``derivatives``     (n,)  derivatives of the loss
grad F        ``gradient``        (q,)  Phi'(w L') + 2 lambda A beta
============  ==================  ========================================================

The loss is any convex one of separate outputs; where its curvature is not everywhere defined (the
squared hinge) one of its values is taken.

Steps.

1. A sweep (definition 2): for one coordinate j after the other, with the newest outputs,

       beta_j <- clip(beta_j - gamma dF/dbeta_j, lower_j, upper_j).

   gamma is a constant, or (``rate=None``) 1 / (sum_i w_i L''_i Phi_ij^2 + 2 lambda A_jj) with the
   curvatures L'' from the beginning of the sweep. Such a step is too long where the slope has
   changed its sign at its end. Then, while F there is not below its value at the start, the step
   is cut to where the secant of the slope crosses zero. So F, which is convex along the
   coordinate, never rises. Coordinates at a bound whose slope points outwards are left out: they
   would not move.

2. A joint step (``rate=None`` only; beyond the paper): all coordinates S that are not left out go
   together towards the minimum in the box (``box_qp.py``) of the model

       (grad F)_S'd + d'H d / 2,    H = Phi_S' diag(w L'') Phi_S + 2 lambda A_SS,

   the whole way, or up to where F has become flat. Without bounds this is Newton's method. Where F
   does not fall, beta stays, and the next sweeps go alone. Functions that resemble each other, as
   kernels do, would take thousands of sweeps; the minimum, which is unique for A positive definite,
   is the same.

3. Steps 1 and 2 alternate; after a joint step that was taken whole the next one follows at once.
   The end is where the projected gradient is small:

       max_j |P_j| <= tol max_j sum_i w_i |L'(y_i, 0)| |Phi_ij|,

   P_j = dF/dbeta_j inside the box, and at a bound only what points inwards. The right side is what
   the terms of a slope add up to, so that neither the scale of the functions nor the start matters.

Cost. A coordinate of a sweep takes O(n): two products with a column, one sum, one evaluation of
L'. A joint step takes n q^2 / 2 multiplications and one Cholesky factorisation, some 15 where many
coordinates meet their bounds; above `LARGEST_FACTOR` coordinates, or where their Hessian does not
fit in memory, conjugate gradients with O(n q) a product, clipped at the box.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array, Watch
from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.linalg import blocks
from pursuit.losses import Loss
from pursuit.optimize.box_qp import box_minimum, has_bounds
from pursuit.optimize.newton import conjugate_gradients

__all__ = [
    "Point",
    "Problem",
    "Solution",
    "joint_step",
    "solve",
    "sweep",
]

# Hessians are factorised up to this number of coordinates.
LARGEST_FACTOR = 4_000
# Conjugate gradients end at this share of the first residual.
FORCING = 1e-2
# A joint step ends where the slope of F is this share of the first one.
FLAT = 0.1
# A step is cut so often.
MOST_CUTS = 40
# Differences of F below this share of it are rounding.
EPSILON = 4.0 * float(np.finfo(np.float64).eps)
# Sweeps alone after joint steps that failed: 1, 2, 4, ...
MOST_SWEEPS_ALONE = 16
# So many sweeps and joint steps in a row that change F by rounding alone end the iteration.
MOST_IDLE = 3


class _Terms(NamedTuple):
    """What a `Problem` is made of."""

    loss: Loss
    targets: Array
    weights: Array
    matrix: DesignMatrix
    alpha: float
    penalty: Array | None
    lower: Array
    upper: Array


class Problem(_Terms):
    """The objective F and the box; see the table of this module.

    Attributes
    ----------
    loss : Loss
        L, convex, of separate outputs.
    targets : ndarray of shape (n, 1)
        y.
    weights : ndarray of shape (n,)
        w, positive.
    matrix : DesignMatrix
        Phi.
    alpha : float
        lambda, positive.
    penalty : ndarray of shape (q, q) or None
        A; None: the identity.
    lower, upper : ndarray of shape (q,)
        The box; infinite entries leave a coordinate free.
    """

    def product_threads(self) -> AbstractContextManager[Any]:
        """As many threads as a product with Phi pays for."""
        return blocks.blas_threads(float(self.matrix.shape[0]) * self.matrix.shape[1])

    def data_loss(self, outputs: Array) -> float:
        """sum_i w_i L(y_i, f_i)."""
        return float(self.weights @ self.loss.value(self.targets, outputs[:, None])[:, 0])

    def weighted_gradient(self, outputs: Array) -> Array:
        """The vector w L'."""
        slopes = self.loss.gradient(self.targets, outputs[:, None])[:, 0]
        return np.asarray(self.weights * slopes)

    def weighted_curvature(self, outputs: Array) -> Array:
        """The vector w L''."""
        curvatures = self.loss.curvature(self.targets, outputs[:, None])[:, 0]
        return np.asarray(self.weights * curvatures)

    def image(self, beta: Array) -> Array:
        """A beta."""
        return beta.copy() if self.penalty is None else np.asarray(self.penalty @ beta)

    def penalty_block(self, chosen: Array) -> Array:
        """A_SS, or its diagonal as a vector where A is the identity."""
        return (
            np.ones(len(chosen)) if self.penalty is None else self.penalty[np.ix_(chosen, chosen)]
        )

    @cached_property
    def penalty_diagonal(self) -> Array:
        """A_jj."""
        return np.ones(len(self.lower)) if self.penalty is None else self.penalty.diagonal().copy()

    def gradient(self, point: Point) -> Array:
        """Gradient of F."""
        with self.product_threads():
            slopes = self.matrix.rmatvec(self.weighted_gradient(point.outputs))
        return np.asarray(slopes + 2.0 * self.alpha * point.image)

    def projected(self, beta: Array, gradient: Array) -> Array:
        """P: the gradient, at a bound only what points inwards."""
        inwards = np.where(beta <= self.lower, np.minimum(gradient, 0.0), gradient)
        return np.where(beta >= self.upper, np.maximum(inwards, 0.0), inwards)

    @cached_property
    def scale(self) -> float:
        """The largest sum of the absolute terms of a slope at f = 0; see step 3."""
        if not self.matrix.shape[1]:
            return 1.0
        terms = np.abs(self.weighted_gradient(np.zeros(len(self.weights))))
        return float(self.matrix.absolute_sums(terms).max()) or 1.0

    def at(self, beta: Array) -> Point:
        """The point `beta` of the box."""
        with self.product_threads():
            outputs, image = self.matrix.matvec(beta), self.image(beta)
        objective = self.data_loss(outputs) + self.alpha * float(beta @ image)
        return Point(beta, outputs, image, objective)


class Point(NamedTuple):
    """Coefficients with what depends on them: outputs, A beta and F."""

    beta: Array
    outputs: Array
    image: Array
    objective: float


class Solution(NamedTuple):
    """Where the method ended.

    Attributes
    ----------
    beta : ndarray of shape (q,)
        Coefficients; at a bound they equal it exactly.
    outputs : ndarray of shape (n,)
        Phi beta.
    objectives : ndarray of shape (n_iter + 1,)
        F at the start, and after each sweep and each joint step.
    residual : float
        max |P| over the scale of step 3.
    n_iter : int
        Number of sweeps and joint steps.
    reason : {"tol", "max_iter", "rounding", "diverged"}
        ``"rounding"``: F cannot be lowered in floating point numbers, though the projected gradient
        is above the tolerance. ``"diverged"``: the constant step was too long; beta is the best
        point met. Or what a watch said.
    """

    beta: Array
    outputs: Array
    objectives: Array
    residual: float
    n_iter: int
    reason: str


def solve(
    problem: Problem,
    start: Array | None = None,
    *,
    rate: float | None = None,
    joint: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-6,
    watch: Watch[Point] | None = None,
) -> Solution:
    """Minimise F by the steps at the top of this module.

    Parameters
    ----------
    problem : Problem
        F and the box.
    start : ndarray of shape (q,), optional
        First point, brought into the box; zeros if not given.
    rate : float, optional
        The constant gamma of definition 2; then there are no joint steps, and F may rise. None:
        steps by curvature.
    joint : bool, default True
        Whether to take joint steps.
    max_iter : int, default 1000
        Most sweeps and joint steps.
    tol : float, default 1e-6
        Bound on the residual.
    watch : callable, optional
        Looks at the point after each sweep and each joint step; a text ends the method and says
        why.

    Returns
    -------
    solution : Solution
        The last point; with a constant step the best one.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.design_matrix import DesignMatrix
    >>> from pursuit.optimize.coordinate_descent import Problem, solve
    >>> from pursuit.losses import LOSSES
    >>> Phi, y = DesignMatrix(None, np.eye(2)), np.array([[1.0], [3.0]])
    >>> box = np.array([0.0, 0.0]), np.array([9.0, 1.0])
    >>> found = solve(Problem(LOSSES["squared_error"], y, np.ones(2), Phi, 1.0, None, *box))
    >>> found.beta, found.reason
    (array([0.5, 1. ]), 'tol')
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _solve(problem, start, rate, joint, max_iter, tol, watch)


def _solve(
    problem: Problem,
    start: Array | None,
    rate: float | None,
    joint: bool,
    max_iter: int,
    tol: float,
    watch: Watch[Point] | None,
) -> Solution:
    """See `solve`."""
    beta = np.zeros(len(problem.lower)) if start is None else start
    point = problem.at(np.clip(beta, problem.lower, problem.upper))
    driver = _Driver(problem, rate, joint and rate is None)
    best, objectives = point, [point.objective]
    reason, said = "max_iter", None
    for n_iter in range(max_iter + 1):
        gradient = problem.gradient(point)
        projected = problem.projected(point.beta, gradient)
        residual = float(np.abs(projected).max(initial=0.0)) / problem.scale
        if residual <= tol or n_iter == max_iter or driver.idle >= MOST_IDLE:
            reason = "tol" if residual <= tol else "max_iter" if n_iter == max_iter else "rounding"
            break
        if said:
            reason = said
            break
        point = driver.advance(point, gradient, projected)
        objectives.append(point.objective)
        if not np.isfinite(point.objective):
            reason = "diverged"
            break
        best = point if point.objective <= best.objective else best
        said = watch and watch(best)
    if reason == "diverged" or (rate is not None and reason != "tol"):
        point = best
        projected = problem.projected(point.beta, problem.gradient(point))
        residual = float(np.abs(projected).max(initial=0.0)) / problem.scale
    path = np.array(objectives)
    return Solution(point.beta, point.outputs, path, residual, len(path) - 1, reason)


class _Driver:
    """Step 3: which step is next.

    Attributes
    ----------
    idle : int
        Steps in a row that did not lower F by more than rounding.
    """

    def __init__(self, problem: Problem, rate: float | None, joint: bool) -> None:
        self.problem, self.rate, self.joint = problem, rate, joint
        self.idle = 0
        # Sweeps until the next joint step, and how many there will be after the next failure.
        self.wait, self.patience = 1, 1

    def advance(self, point: Point, gradient: Array, projected: Array) -> Point:
        """One sweep, or one joint step, or one after the other where the latter fails."""
        moving = np.flatnonzero(self._moving(point.beta, gradient))
        new = None
        if self.joint and self.wait == 0:
            new, whole = joint_step(self.problem, point, gradient, moving)
            if new is None:
                self.wait = self.patience
                self.patience = min(2 * self.patience, MOST_SWEEPS_ALONE)
            else:
                self.wait, self.patience = (0 if whole else 1), 1
        if new is None:
            new = sweep(self.problem, point, moving, self.rate)
            self.wait = max(self.wait - 1, 0)
        fell = point.objective - new.objective > EPSILON * abs(point.objective)
        self.idle = 0 if fell or self.rate is not None else self.idle + 1
        return new

    def _moving(self, beta: Array, gradient: Array) -> Array:
        """Coordinates whose slope does not hold them at a bound."""
        falls = (beta > self.problem.lower) | (gradient < 0.0)
        rises = (beta < self.problem.upper) | (gradient > 0.0)
        return np.asarray(falls & rises)


def sweep(problem: Problem, point: Point, order: Array, rate: float | None = None) -> Point:
    """Step 1, definition 2: the coordinates in `order`, one after the other.

    Parameters
    ----------
    problem : Problem
        F and the box.
    point : Point
        Where to start.
    order : ndarray of int
        The coordinates.
    rate : float, optional
        The constant gamma; None: by curvature.

    Returns
    -------
    point : Point
        Where the sweep ends.
    """
    state = _Sweep(problem, point, rate)
    with blocks.blas_threads(0.0):
        for j, column in problem.matrix.each_column(order):
            state.visit(j, column)
    return state.point()


class _Sweep:
    """The newest coefficients, outputs and derivatives during a sweep."""

    def __init__(self, problem: Problem, point: Point, rate: float | None) -> None:
        self.problem, self.rate = problem, rate
        self.beta, self.outputs = point.beta.copy(), point.outputs.copy()
        self.image = None if problem.penalty is None else point.image.copy()
        self.derivatives = problem.weighted_gradient(self.outputs)
        self.curvatures = problem.weighted_curvature(self.outputs) if rate is None else None
        self.squares = np.empty_like(self.outputs)

    def visit(self, j: int, column: Array) -> None:
        """One coordinate."""
        problem, old = self.problem, float(self.beta[j])
        slope = float(column @ self.derivatives) + 2.0 * problem.alpha * self._image(j)
        new = old - self._gamma(j, column) * slope
        new = float(min(max(new, problem.lower[j]), problem.upper[j]))
        if new == old:
            return
        before = self.outputs, self.derivatives
        self._move(before, column, new - old)
        if self.rate is None:
            new = self._cut(j, column, slope, new, before)
        self.beta[j] = new
        if self.image is not None and problem.penalty is not None:
            self.image += (new - old) * problem.penalty[j]

    def point(self) -> Point:
        """Where the sweep is."""
        image = self.beta if self.image is None else self.image
        ridge = self.problem.alpha * float(self.beta @ image)
        objective = self.problem.data_loss(self.outputs) + ridge
        return Point(self.beta, self.outputs, image, objective)

    def _image(self, j: int) -> float:
        """(A beta)_j."""
        return float(self.beta[j] if self.image is None else self.image[j])

    def _gamma(self, j: int, column: Array) -> float:
        """The step for a slope of one."""
        if self.rate is not None or self.curvatures is None:
            return float(self.rate or 0.0)
        np.multiply(column, column, out=self.squares)
        ridge = 2.0 * self.problem.alpha * self.problem.penalty_diagonal[j]
        curvature = float(self.squares @ self.curvatures) + ridge
        return 1.0 / curvature if curvature > 0.0 else 0.0

    def _move(self, before: tuple[Array, Array], column: Array, step: float) -> None:
        """Outputs and derivatives after a step from where they were before."""
        self.outputs = before[0] + step * column
        self.derivatives = self.problem.weighted_gradient(self.outputs)

    def _cut(
        self, j: int, column: Array, slope: float, new: float, before: tuple[Array, Array]
    ) -> float:
        """Cut a step that is too long, until F does not rise."""
        problem, old = self.problem, float(self.beta[j])
        step, value = new - old, None
        ridge = 2.0 * problem.alpha * problem.penalty_diagonal[j]
        first = 2.0 * problem.alpha * self._image(j)
        for _ in range(MOST_CUTS):
            end = float(column @ self.derivatives) + first + ridge * step
            if end * slope >= 0.0:
                return new
            if np.isfinite(end):
                value = problem.data_loss(before[0]) if value is None else value
                rise = problem.data_loss(self.outputs) - value + step * (first + ridge * step / 2)
                if rise <= 0.0:
                    return new
            step *= slope / (slope - end) if np.isfinite(end) else 0.1
            new = old + step
            self._move(before, column, step)
        self.outputs, self.derivatives = before
        return old


def joint_step(
    problem: Problem, point: Point, gradient: Array, moving: Array
) -> tuple[Point | None, bool]:
    """Step 2: a Newton step of some coordinates together.

    Parameters
    ----------
    problem : Problem
        F and the box.
    point : Point
        Where to start.
    gradient : ndarray of shape (q,)
        Gradient of F there.
    moving : ndarray of int
        The coordinates.

    Returns
    -------
    point : Point or None
        A point where F is lower; None if none was found.
    whole : bool
        Whether the step was taken whole.
    """
    target = point.beta.copy()
    with blocks.blas_threads(float(len(problem.weights)) * len(moving) ** 2):
        target[moving] = _model_minimum(problem, point, gradient[moving], moving)
    with problem.product_threads():
        line = _Line(problem, point, target)
        length = line.length()
    new = line.point(length)
    return (new, length == 1.0) if _better(problem, point, gradient, new) else (None, False)


def _better(problem: Problem, point: Point, gradient: Array, new: Point) -> bool:
    """Whether F fell; where that drowns in rounding, whether it became flatter."""
    fall = point.objective - new.objective
    if abs(fall) > EPSILON * abs(point.objective):
        return fall > 0.0
    change = new.beta - point.beta
    return abs(float(problem.gradient(new) @ change)) < 0.5 * abs(float(gradient @ change))


class _Line:
    """F along the way from a point to another one."""

    def __init__(self, problem: Problem, point: Point, target: Array) -> None:
        self.problem, self.start, self.target = problem, point, target
        self.direction = target - point.beta
        self.moved = problem.matrix.matvec(self.direction)
        self.image = problem.image(self.direction)

    def slope(self, length: float) -> float:
        """Derivative of F after a part of the way."""
        derivatives = self.problem.weighted_gradient(self.start.outputs + length * self.moved)
        ridge = self.direction @ (self.start.image + length * self.image)
        return float(self.moved @ derivatives + 2.0 * self.problem.alpha * ridge)

    def length(self) -> float:
        """The whole way, or the part of it where F has become flat."""
        first, end = self.slope(0.0), self.slope(1.0)
        if end <= FLAT * abs(first):
            return 1.0
        low, high, below = 0.0, 1.0, first
        length = 1.0
        for _ in range(MOST_CUTS):
            width = high - low
            secant = -below / (end - below) if np.isfinite(end) else 0.0
            length = low + width * min(max(secant, 0.1), 0.9)
            slope = self.slope(length)
            if abs(slope) <= FLAT * abs(first):
                break
            if slope < 0.0:
                low, below = length, slope
            else:
                high, end = length, slope
        fell = slope <= 0.0 or self.point(length).objective < self.start.objective
        return length if fell else low

    def point(self, length: float) -> Point:
        """The point there; at the end computed anew, so that rounding does not add up."""
        if length == 1.0:
            return self.problem.at(self.target)
        start, problem = self.start, self.problem
        beta = start.beta + length * self.direction
        image = start.image + length * self.image
        outputs = start.outputs + length * self.moved
        objective = problem.data_loss(outputs) + problem.alpha * float(beta @ image)
        return Point(beta, outputs, image, objective)


def _model_minimum(problem: Problem, point: Point, slopes: Array, moving: Array) -> Array:
    """Where in the box the quadratic model of F in the coordinates S is smallest."""
    beta = point.beta[moving]
    lower, upper = problem.lower[moving], problem.upper[moving]
    curvatures = np.maximum(problem.weighted_curvature(point.outputs), 0.0)
    n = len(moving)
    if n > LARGEST_FACTOR or not blocks.fits(40.0 * n * n):
        free = beta + _by_products(problem, curvatures, slopes, moving)
        return np.asarray(np.clip(free, lower, upper))
    hessian = problem.matrix.gram(curvatures, moving, whole=has_bounds(lower, upper))
    ridge = 2.0 * problem.alpha * problem.penalty_block(moving)
    if ridge.ndim == 1:
        hessian[np.diag_indices(n)] += ridge
    else:
        hessian += ridge
    step = box_minimum(hessian, slopes, lower - beta, upper - beta)
    bounds = np.where(step.bound_state < 0, lower, upper)
    return np.asarray(np.where(step.bound_state == 0, np.clip(beta + step.x, lower, upper), bounds))


def _by_products(problem: Problem, curvatures: Array, slopes: Array, moving: Array) -> Array:
    """A Newton step by conjugate gradients, preconditioned by the diagonal of the Hessian."""
    matrix, weight = problem.matrix, 2.0 * problem.alpha
    diagonal = matrix.diagonal(curvatures, moving) + weight * problem.penalty_diagonal[moving]
    full = np.zeros(len(problem.lower))

    def product(v: Array) -> Array:
        full[moving] = v
        image = matrix.rmatvec(curvatures * matrix.matvec(full)) + weight * problem.image(full)
        return np.asarray(image[moving])

    solution, _ = conjugate_gradients(product, -slopes, FORCING, lambda v: v / diagonal)
    return -slopes / diagonal if solution is None else solution
