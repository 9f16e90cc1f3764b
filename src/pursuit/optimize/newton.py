"""Damped Newton method for the coefficients of given functions under any loss (eq. 11).

Equation 11 of Vincent and Bengio (2002), with weights, a ridge and an intercept: over the
coefficients theta (n x T) of n columns and a constant beta (T), minimise

    J = sum_i w_i L(y_i, f_i) + alpha a'P a,    a = R^{-1} theta,    f = f0 + Q theta + beta.

===========  ===================  =======================================================
symbol       name in code         shape and meaning
===========  ===================  =======================================================
Q            ``columns``          (l, n)  functions on the training rows, nearly orthonormal
R            ``factor``           (n, n)  upper triangular, functions = Q R, so that
                                  a = R^{-1} theta are the coefficients of the functions
P            ``penalty``          (n, n)  what the ridge counts as large; mostly the identity
f0           ``offset``           (l, T)  what is kept fixed
u            ``constant``         1 / sqrt(sum_i w_i), or 0 without an intercept: the constant
                                  as one more column of unit norm
x            ``point``            (n + 1, T)  theta, and beta / u in the last row
c            ``curvature``        (l, T)  d2L/df2; (l, T, T) if the loss couples its outputs
===========  ===================  =======================================================

Gradient and Hessian, with g = dL/df and Z = [Q, u]:

    grad J = Z'(w g) + 2 alpha S'P S x,      Hess J = Z' diag(w c) Z + 2 alpha S'P S,
    S = [R^{-1}, 0].

Each iteration solves (Hess + mu I) d = -grad and takes the first of the steps d, d/2, d/4, d/8
that lowers J as much as its slope promises (Armijo). The damping mu is zero until none of them
does, or the Hessian is not positive definite (losses that are flat, not convex, or bend
sharply); then it grows tenfold until one does, and shrinks again with each step that needs none.
As Q is nearly orthonormal, mu |d|^2 is the distance that the function moves. The system is solved

- for losses without coupling, up to a size, by a Cholesky factor for each output;
- for one function of coupled outputs by the eigenvalues of its T x T Hessian
  sum_i w_i q_i^2 c_i;
- otherwise by conjugate gradients with products Z'(w c (Z v)), which never form the Hessian,
  preconditioned by the inverses of its diagonal blocks, one an output. Those of an earlier
  point, or of fewer columns, serve until they make the products too many.

Where a common shift of all outputs changes no loss (cross-entropy), changes that are equal for all
outputs bend nothing but the ridge; the blocks know nothing of that, and would lead the conjugate
gradients there. The preconditioner takes the mean over the outputs out before and after the blocks,
and serves it alone, by a number: a half to a sixth of the products.

It ends when half the Newton decrement, an estimate of J - min J, is below 1e-9 J, or J has
reached zero (separated classes have no finite optimum).

The paper uses conjugate gradients for eq. 11; where it does not say, the steps are the text
book's (Nocedal and Wright, "Numerical optimization", 2006, chapters 3 and 7).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_solve

from pursuit._typing import Array
from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.linalg.factor import cholesky, solve_transposed, solve_upper
from pursuit.losses import Loss

__all__ = ["Minimum", "Preconditioner", "Problem", "minimise"]

# Half the Newton decrement, relative to J, at which a minimum counts as reached.
SMALL_DECREMENT = 1e-12
# J below this share of its scale is zero: the targets are explained.
ZERO_LOSS = 1e-10
MOST_ITERATIONS = 200
MOST_PRODUCTS = 200
# Conjugate gradients end at this share of the first residual.
FORCING = 0.05
MOST_HALVINGS = 3
SUFFICIENT_DECREASE = 1e-4
# The damping, relative to the curvature: its first value and where it stops to matter.
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-5, 1e9
# Added to the diagonal of a Hessian, relative to its largest entry: nothing but rounding.
ROUNDING = 1e-14
# The same for a preconditioner, relative to the mean curvature.
SMALL_SHIFT = 1e-8
# Hessians are factorised up to this number of unknowns; products serve all outputs at once.
LARGEST_FACTOR = 1_500


class _Terms(NamedTuple):
    """What a `Problem` is made of."""

    loss: Loss
    targets: Array
    weights: Array
    columns: DesignMatrix
    factor: Array
    alpha: float = 0.0
    offset: Array | float = 0.0
    held: Array | float = 0.0
    intercept: bool = True
    penalty: Array | None = None


class Problem(_Terms):
    """The objective J; see the table of this module.

    Attributes
    ----------
    loss : Loss
        L.
    targets : ndarray of shape (l, T)
        y.
    weights : ndarray of shape (l,)
        w, positive.
    columns : DesignMatrix
        Q.
    factor : ndarray of shape (n, n)
        R; read only where `alpha` is not zero.
    alpha : float
        Ridge.
    offset : ndarray of shape (l, T) or float
        f0.
    held : ndarray of shape (n, T) or float
        Coefficients that the ridge counts in addition to R^{-1} theta.
    intercept : bool
        Whether beta is free.
    penalty : ndarray of shape (n, n) or None
        P; None: the identity.
    """

    @property
    def constant(self) -> float:
        """The entries of u."""
        return float(1.0 / np.sqrt(self.weights.sum())) if self.intercept else 0.0

    def matvec(self, x: Array) -> Array:
        """Z x, the change of the outputs; column by column, as losses go over them."""
        change = np.asfortranarray(self.columns.matvec(x[:-1]))
        change += self.constant * x[-1]
        return change

    def rmatvec(self, values: Array) -> Array:
        """Z' values."""
        return np.vstack([self.columns.rmatvec(values), self.constant * values.sum(axis=0)])

    def coefficients(self, x: Array) -> Array:
        """R^{-1} theta."""
        return solve_upper(self.factor, x[:-1])

    def ridge(self, x: Array) -> float:
        """The penalty."""
        if not self.alpha or not self.columns.shape[1]:
            return 0.0
        a = self.coefficients(x) + self.held
        return self.alpha * float((a * self._weighed(a)).sum())

    def ridge_slope(self, x: Array) -> Array:
        """Gradient of the penalty."""
        slope = np.zeros_like(x)
        if self.alpha and self.columns.shape[1]:
            inner = 2.0 * self.alpha * self._weighed(self.coefficients(x) + self.held)
            slope[:-1] = solve_transposed(self.factor, inner)
        return slope

    @cached_property
    def ridge_hessian(self) -> Array | float:
        """2 alpha S'P S, the same at every point."""
        n = self.columns.shape[1]
        if not self.alpha or not n:
            return 0.0
        inverse = solve_upper(self.factor, np.eye(n))
        hessian = np.zeros((n + 1, n + 1))
        hessian[:n, :n] = 2.0 * self.alpha * (inverse.T @ self._weighed(inverse))
        return hessian

    def _weighed(self, a: Array) -> Array:
        """P a."""
        return a if self.penalty is None else self.penalty @ a

    def objective(self, minimum: Minimum) -> float:
        """J at a minimum."""
        return minimum.data_loss + self.ridge(minimum.point)

    def data_loss(self, outputs: Array) -> float:
        """sum_i w_i L(y_i, f_i)."""
        values = self.loss.value(self.targets, outputs)
        per_row = values if values.ndim == 1 else values.sum(axis=1)
        return float(self.weights @ per_row)


class Minimum(NamedTuple):
    """Where the method ended.

    Attributes
    ----------
    point : ndarray of shape (n + 1, T)
        theta, and beta / u.
    outputs : ndarray of shape (l, T)
        f.
    data_loss : float
        sum_i w_i L(y_i, f_i), without the ridge.
    n_iter : int
        Newton steps taken.
    converged : bool
        False where the limit on iterations ended it.
    """

    point: Array
    outputs: Array
    data_loss: float
    n_iter: int
    converged: bool


def minimise(
    problem: Problem,
    start: Array | None = None,
    outputs: Array | None = None,
    scale: float = 0.0,
    preconditioner: Preconditioner | None = None,
    accuracy: float = 0.0,
    max_iter: int | None = None,
    tol: float | None = None,
) -> Minimum:
    """Minimise J by the method at the top of this module.

    Parameters
    ----------
    problem : Problem
        J.
    start : ndarray of shape (n + 1, T), optional
        First point; zeros if not given.
    outputs : ndarray of shape (l, T), optional
        Outputs at `start`, if they are known.
    scale : float
        Loss against which `ZERO_LOSS` is measured, such as that of a constant.
    preconditioner : Preconditioner, optional
        Inverses of an earlier problem with the same or fewer columns; they are renewed as
        needed. None: conjugate gradients, where they are used, go without.
    accuracy : float, default 0.0
        End also where the decrement is below this share of the first one.
    max_iter : int, optional
        Maximum number of Newton steps; None: 200.
    tol : float, optional
        Half the Newton decrement, relative to J, at which a minimum counts as reached; None: 1e-12.

    Returns
    -------
    minimum : Minimum
        The last point; J never rises on the way.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.design_matrix import DesignMatrix
    >>> from pursuit.losses import LOSSES
    >>> from pursuit.optimize.newton import Problem, minimise
    >>> y = np.array([[1.0], [1.0], [-1.0], [1.0]])
    >>> constant = DesignMatrix(None, np.empty((4, 0)))
    >>> minimum = minimise(Problem(LOSSES["log_loss"], y, np.ones(4), constant, np.empty((0, 0))))
    >>> bool(np.isclose(minimum.outputs[0, 0], np.log(3)))
    True
    """
    n_outputs = problem.targets.shape[1]
    x = np.zeros((problem.columns.shape[1] + 1, n_outputs)) if start is None else start.copy()
    if outputs is None:
        outputs = problem.offset + problem.matvec(x)
    loss = problem.data_loss(outputs)
    penalty, damping, first = problem.ridge(x), 0.0, 0.0
    most = MOST_ITERATIONS if max_iter is None else max_iter
    tol = SMALL_DECREMENT if tol is None else tol
    for iteration in range(most):
        slope = _slope(problem, x, outputs)
        if not slope.any() or abs(loss + penalty) <= ZERO_LOSS * abs(scale):
            return Minimum(x, outputs, loss, iteration, True)
        model = _model(problem, outputs, slope, preconditioner)
        least = max(2.0 * tol * abs(loss + penalty), accuracy * first)
        state = (problem, x, outputs, loss + penalty)
        taken, damping = _damped_step(model, slope, damping, *state, least)
        if taken is None:
            return Minimum(x, outputs, loss, iteration, True)
        x, outputs, loss, penalty, decrement = taken
        first = first or decrement
    return Minimum(x, outputs, loss, most, False)


def _slope(problem: Problem, x: Array, outputs: Array) -> Array:
    """Gradient of J."""
    g = problem.weights[:, None] * problem.loss.gradient(problem.targets, outputs)
    return problem.rmatvec(g) + problem.ridge_slope(x)


Step = tuple[Array, Array, float, float, float]  # point, outputs, loss, penalty, decrement


def _damped_step(
    model: _Model,
    slope: Array,
    damping: float,
    problem: Problem,
    x: Array,
    outputs: Array,
    objective: float,
    least: float,
) -> tuple[Step | None, float]:
    """A step that lowers J, and the damping for the next; None at a minimum."""
    failed = False
    while damping <= MOST_DAMPING:
        step = model.solve(damping)
        decrement = 0.0 if step is None else -float((slope * step).sum())
        if step is not None and not decrement > least:
            # Poor factors make a step small, and so does a strong damping, without which there
            # may be no step.
            if model.renew():
                continue
            if damping <= LEAST_DAMPING or failed:
                return None, damping
            damping *= LEAST_DAMPING
            continue
        if step is not None:
            taken, length = _search(problem, x, outputs, step, objective, decrement)
            if taken is not None:
                return taken, _relaxed(damping) if length >= 0.5 else damping
        failed = True
        damping = max(10.0 * damping, FIRST_DAMPING)
    return None, damping


def _relaxed(damping: float) -> float:
    """A tenth, and nothing where that no longer matters."""
    return damping / 10.0 if damping > 10.0 * LEAST_DAMPING else 0.0


def _search(
    problem: Problem, x: Array, outputs: Array, step: Array, objective: float, decrement: float
) -> tuple[Step | None, float]:
    """The first of the steps 1, 1/2, 1/4, 1/8 that lowers J enough (Armijo)."""
    change = problem.matvec(step)
    length = 1.0
    for _ in range(MOST_HALVINGS + 1):
        point, moved = x + length * step, outputs + length * change
        loss, penalty = problem.data_loss(moved), problem.ridge(point)
        if loss + penalty < objective - SUFFICIENT_DECREASE * length * decrement:
            return (point, moved, loss, penalty, decrement), length
        length /= 2.0
    return None, 0.0


class _Model(Protocol):
    """The Hessian at a point."""

    def solve(self, damping: float) -> Array | None:
        """-(Hess + damping I)^{-1} grad; None where that matrix is not positive definite.

        The damping is relative to the curvature, see `_size`.
        """

    def renew(self) -> bool:
        """Take what was left from an earlier point at this one; False if there is nothing."""


def _size(problem: Problem, curvature: float, slope: Array) -> float:
    """A curvature to measure the damping by.

    Where the Hessian itself all but vanishes, that at which a step is as long as the targets.
    """
    Y, weights = problem.targets, problem.weights
    length = float(weights @ (Y * Y).sum(axis=1)) or float(weights.sum())
    return max(curvature, float(np.linalg.norm(slope)) / float(np.sqrt(length)))


def _model(
    problem: Problem,
    outputs: Array,
    slope: Array,
    preconditioner: Preconditioner | None,
) -> _Model:
    """Hessians in memory, or their products alone."""
    if not problem.loss.coupled and slope.size <= LARGEST_FACTOR:
        return _Factorised(problem, outputs, slope)
    if problem.loss.coupled and not problem.intercept and problem.columns.shape[1] == 1:
        return _OneFunction(problem, outputs, slope)
    return _Products(problem, outputs, slope, preconditioner)


class _Factorised:
    """One Hessian and one Cholesky factor for each output."""

    def __init__(self, problem: Problem, outputs: Array, slope: Array) -> None:
        curvature = problem.loss.curvature(problem.targets, outputs)
        self.problem, self.slope = problem, slope
        self.hessians = _diagonal_blocks(problem, curvature * problem.weights[:, None])

    def solve(self, damping: float) -> Array | None:
        """Solve for each output."""
        step = np.empty_like(self.slope)
        for t, hessian in enumerate(self.hessians):
            diagonal = float(np.abs(hessian.diagonal()).max())
            shift = damping * _size(self.problem, diagonal, self.slope[:, t])
            damped = hessian.copy()
            damped[np.diag_indices_from(damped)] += shift + ROUNDING * diagonal
            factor = cholesky(damped)
            if len(factor) < len(hessian):
                return None
            step[:, t] = -cho_solve((factor, False), self.slope[:, t], check_finite=False)
        return step

    def renew(self) -> bool:
        """Nothing is left from an earlier point."""
        return False


class _OneFunction:
    """The Hessian of the coefficients of one function, without an intercept."""

    def __init__(self, problem: Problem, outputs: Array, slope: Array) -> None:
        q = problem.columns.columns(np.array([0]))[:, 0]
        weights = problem.weights * q * q
        hessian = problem.loss.curvature_sum(problem.targets, outputs, weights)
        if isinstance(problem.ridge_hessian, np.ndarray):
            hessian[np.diag_indices_from(hessian)] += problem.ridge_hessian[0, 0]
        self.bends, self.ways = np.linalg.eigh(hessian)
        self.curvature = float(np.abs(self.bends).max())
        self.problem, self.slope = problem, slope

    def solve(self, damping: float) -> Array | None:
        """Solve along each direction that bends; one that does not has no slope either."""
        bends = self.bends + damping * _size(self.problem, self.curvature, self.slope)
        rounding = len(bends) * ROUNDING * self.curvature
        if bends.min() < -rounding:
            return None
        along = self.slope[0] @ self.ways
        step = np.zeros_like(self.slope)
        step[0] = -self.ways @ np.divide(along, bends, where=bends > rounding, out=0.0 * along)
        return step

    def renew(self) -> bool:
        """Nothing is left from an earlier point."""
        return False


class Preconditioner:
    """Inverses of the diagonal blocks of a Hessian; one object serves many re-fits.

    Columns that were added since they were taken are scaled by the mean curvature alone.
    """

    def __init__(self) -> None:
        self.inverses = np.empty((0, 0, 0))
        self.scale = np.ones(0)
        self.shift_invariant = False
        self.fresh_count: int | None = None
        self.stale = True

    def update(self, problem: Problem, curvature_product: Callable[[Array], Array]) -> None:
        """Take the inverses at the current point, if those at hand have become poor."""
        if not self.stale:
            return
        n_rows, n_outputs = problem.targets.shape
        self.shift_invariant = problem.loss.shift_invariant
        curvature = np.empty((n_rows, n_outputs))
        for t in range(n_outputs):
            unit = np.zeros((n_rows, n_outputs))
            unit[:, t] = 1.0
            curvature[:, t] = curvature_product(unit)[:, t]
        curvature = np.maximum(curvature, 0.0) * problem.weights[:, None]
        blocks = _diagonal_blocks(problem, curvature)
        means = np.array([block.diagonal().mean() for block in blocks])
        self.scale = np.where(means > 0, means, 1.0)
        # The constant first: it stays where it is when columns are added.
        order = np.roll(np.arange(len(blocks[0])), 1)
        self.inverses = np.empty((n_outputs, len(order), len(order)))
        for t, (block, scale) in enumerate(zip(blocks, self.scale, strict=True)):
            block[np.diag_indices_from(block)] += SMALL_SHIFT * scale
            self.inverses[t] = np.linalg.inv(block[np.ix_(order, order)])
        self.stale, self.fresh_count = False, None

    def solve(self, v: Array) -> Array:
        """Apply the inverse of the blocks, to what differs between outputs where that is all."""
        if not self.shift_invariant:
            return self._blockwise(v)
        mean = v.mean(axis=1, keepdims=True)
        solution = self._blockwise(v - mean)
        solution += mean / self.scale.mean() - solution.mean(axis=1, keepdims=True)
        return solution

    def _blockwise(self, v: Array) -> Array:
        """The inverse of the blocks."""
        solution = v / self.scale
        order = np.append(len(v) - 1, np.arange(self.inverses.shape[1] - 1))
        solution[order] = np.matmul(self.inverses, v[order].T[:, :, None])[:, :, 0].T
        return solution

    def serves(self, problem: Problem) -> bool:
        """Whether it is of all columns, and still needs few products."""
        return not self.stale and self.inverses.shape[1] == problem.columns.shape[1] + 1

    def count(self, n_products: int) -> None:
        """Note how many products a solution took."""
        if self.fresh_count is None:
            self.fresh_count = n_products
        # New inverses take as long as some n / 16 products.
        worth = len(self.inverses[0]) // 16 if len(self.inverses) else 0
        self.stale = n_products > 2 * self.fresh_count + 5 + worth


def _diagonal_blocks(problem: Problem, curvature: Array) -> list[Array]:
    """Z' diag(c_t) Z + 2 alpha S'P S for the weighted curvature c_t of each output."""
    mixed = problem.columns.rmatvec(curvature)
    ridge = problem.ridge_hessian
    n, u = problem.columns.shape[1], problem.constant
    hessians = []
    for t in range(curvature.shape[1]):
        hessian = np.empty((n + 1, n + 1))
        hessian[:n, :n] = problem.columns.gram(curvature[:, t])
        hessian[:n, n] = hessian[n, :n] = u * mixed[:, t]
        # Without an intercept the last row only has to leave its zero where it is.
        hessian[n, n] = u * u * curvature[:, t].sum() if u else 1.0
        hessians.append(hessian + ridge)
    return hessians


class _Products:
    """Products with the Hessian, for conjugate gradients."""

    def __init__(
        self,
        problem: Problem,
        outputs: Array,
        slope: Array,
        preconditioner: Preconditioner | None,
    ) -> None:
        self.problem, self.slope = problem, slope
        self.product = problem.loss.curvature_product(problem.targets, outputs)
        self.preconditioner = preconditioner
        self.fresh = preconditioner is None or preconditioner.stale
        if preconditioner:
            preconditioner.update(problem, self.product)
            self.curvature = float(preconditioner.scale.max())
        else:
            self.curvature = abs(float((slope * self.times(slope)).sum() / (slope * slope).sum()))

    def renew(self) -> bool:
        """Take the preconditioner at this point, unless that at hand serves well."""
        factors = self.preconditioner
        if self.fresh or factors is None or factors.serves(self.problem):
            return False
        self.fresh = factors.stale = True
        factors.update(self.problem, self.product)
        return True

    def times(self, v: Array) -> Array:
        """Hess v."""
        problem = self.problem
        weighted = problem.weights[:, None] * self.product(problem.matvec(v))
        image = problem.rmatvec(weighted)
        if isinstance(problem.ridge_hessian, np.ndarray):
            image += problem.ridge_hessian @ v
        return image

    def solve(self, damping: float) -> Array | None:
        """Solve for all outputs at once."""
        shift = damping * _size(self.problem, self.curvature, self.slope)
        # The damping bounds the condition by itself, and the factors do not hold it.
        factors = self.preconditioner if damping == 0.0 else None
        solution, n_products = conjugate_gradients(
            lambda v: self.times(v) + shift * v,
            -self.slope,
            FORCING,
            factors.solve if factors else np.copy,
        )
        if factors:
            factors.count(n_products)
        return solution


def conjugate_gradients(
    product: Callable[[Array], Array],
    right: Array,
    tolerance: float,
    precondition: Callable[[Array], Array],
) -> tuple[Array | None, int]:
    """Solve A x = right for a symmetric A, to a residual of `tolerance` times that of x = 0.

    Residuals are measured in the norm of the preconditioner. Where A turns out not to be
    positive definite, the x so far is returned, or None at once. Returns x and the number of
    products with A.
    """
    x = np.zeros_like(right)
    residual = right.copy()
    direction = precondition(residual)
    rz = float((residual * direction).sum())
    target = tolerance * tolerance * rz
    for n_products in range(1, min(MOST_PRODUCTS, 2 * right.size) + 1):
        image = product(direction)
        curvature = float((direction * image).sum())
        if curvature <= 0.0:
            return (x if x.any() else None), n_products
        length = rz / curvature
        x += length * direction
        residual -= length * image
        better = precondition(residual)
        previous, rz = rz, float((residual * better).sum())
        if rz <= target:
            break
        direction = better + (rz / previous) * direction
    return x, n_products
