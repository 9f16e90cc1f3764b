"""The support vector machine on given expansion vectors, and the energy of moving them.

M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005; the
equation numbers are theirs.

Problem. Given n rows x_i with labels y_i = +-1 and bounds u_i = C c_i (c the sample weights), and
N_z vectors z_j, find f(x) = sum_j beta_j K(z_j, x) + b that minimises

    1/2 beta' K_z beta + sum_i u_i max(0, 1 - y_i f(x_i))                       (eq. 11-14, 16-18)

with the hinge loss as it is and b not penalised.

===========  =================  =========================================================
symbol       name in code       shape and meaning
===========  =================  =========================================================
psi_z(x)     ``values``         (n, N_z) K(x_i, z_j), the empirical kernel map   (eq. 19)
K_z          ``gram``           (N_z, N_z) kernel values among the vectors
R            ``factor``         upper triangular, R'R = K_z, so that T = R^{-T}  (eq. 30)
phi_z(x)     ``features``       (n, N_z) psi_z R^{-1}, the whitened map          (eq. 29)
w            ``weights``        (N_z,) R beta; |w|^2 = beta' K_z beta
alpha        ``alpha``          (n,) dual variables, 0 <= alpha_i <= u_i         (eq. 27)
H            ``H``              (N_z + 1, n) y_i (phi_z(x_i), 1)
s, t         ``slack``          (2, n) multipliers of the bounds on alpha, u - alpha
===========  =================  =========================================================

The dual (eq. 20-28). With (eq. 21) w = sum_i alpha_i y_i phi_z(x_i), (eq. 22) sum_i alpha_i y_i = 0
and (eq. 23) 0 <= alpha_i <= u_i, the problem is that of a linear SVM on phi_z:

    max_alpha sum_i alpha_i - 1/2 |w|^2                                             (eq. 25-28, 32)

and beta = R^{-1} w = K_z^{-1} P (alpha y), P = K(Z, X)                               (eq. 24, 33).

Solution: Mehrotra's predictor-corrector method. With v = (w, b), margins m = H'v and
E = diag(1, ..., 1, 0) the conditions of optimality are

    m - 1 = s - t,    E v = H alpha,    alpha s = 0,    (u - alpha) t = 0,

so that t is the hinge loss. Newton's step for alpha s = (u - alpha) t = mu eliminates s, t and
alpha, which leaves N_z + 1 unknowns (Woodbury's identity with the bias as a border):

    (E + H Lambda H') dv = ...,      Lambda = 1 / (s / alpha + t / (u - alpha)).

Cost of a step: n N_z^2; 10 to 35 steps. Every v is feasible, and so is every alpha, which starts
with sum_i alpha_i y_i = 0: the duality gap is exact, and it ends the iteration.

The energy. For coefficients a (n,), fixed,

    J(Z; a) = 1/2 u' K_z^{-1} u,    u = P a,    beta = K_z^{-1} u,
    dJ/dz_i = beta_i sum_j a_j dK(z_i, x_j)/dz_i - beta_i sum_m beta_m dK(z_i, z_m)/dz_i.

W(Z) (eq. 10, 32) is sum_i alpha_i - J(Z; alpha y); by lemma 1 (eq. 34) alpha may be held fixed in
its slope, so that dW/dz = -dJ/dz. The reduced set method (eq. 4, 35) maximises the same J.

Where we differ. K_z has its diagonal multiplied by 1 + 1e-8, here and in every derivative, so that
vectors that coincide leave it definite. Rows that a nearby solution says lie far outside the margin
are left out at first and checked afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from pursuit._typing import Array
from pursuit.kernels import Kernel
from pursuit.linalg import blocks
from pursuit.linalg.factor import cholesky, solve_right, solve_transposed, solve_upper

__all__ = [
    "MarginSolution",
    "VectorSolution",
    "energy",
    "features",
    "solve_margin",
    "solve_on_vectors",
    "whitened",
]

# The diagonal of K_z is multiplied by one plus this.
JITTER = 1e-8
# Newton steps at most.
MOST_STEPS = 100
# Share of the way to the boundary that a step goes.
INSIDE = 0.995
# Kernel values of so many numbers are computed at a time, on all cores above so much work.
CHUNK_ENTRIES, SMALLEST_CHUNK, PARALLEL_WORK = 1 << 17, 64, 1e8
# Machines of so much work a step are solved one a core.
PARALLEL_MACHINES = 1e6
# A nearby solution leaves out rows whose margin exceeds this.
FAR_MARGIN = 1.2
# A problem of fewer numbers than this is solved on all rows: leaving some out gains nothing.
SMALL_PROBLEM = 1 << 13
# A dual variable below this share of its upper bound and of the largest one counts as zero.
NEGLIGIBLE = 1e-6


class MarginSolution(NamedTuple):
    """A linear SVM on given features.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        Dual variables, 0 <= alpha_i <= u_i.
    weights : ndarray of shape (N_z,)
        w.
    bias : float
        b.
    objective : float
        Of the primal problem at w and b.
    gap : float
        (primal - dual) / primal, a bound on the relative error of the objective.
    n_iter : int
        Newton steps.
    """

    alpha: Array
    weights: Array
    bias: float
    objective: float
    gap: float
    n_iter: int


class VectorSolution(NamedTuple):
    """SVMs on the same expansion vectors, one an output.

    Attributes
    ----------
    outputs : tuple of MarginSolution
        One for each of the T columns of the labels.
    beta : ndarray of shape (N_z, T)
        Coefficients of the kernel functions.
    intercept : ndarray of shape (T,)
        b.
    """

    outputs: tuple[MarginSolution, ...]
    beta: Array
    intercept: Array

    @property
    def objective(self) -> float:
        """W(Z), the sum of the primal objectives."""
        return sum(output.objective for output in self.outputs)

    @property
    def gap(self) -> float:
        """Duality gap of the sum, relative."""
        total = sum(output.gap * output.objective for output in self.outputs)
        return total / self.objective if self.objective > 0 else 0.0

    def signed(self, Y: Array) -> Array:
        """Coefficients a = alpha y of each output, (n, T)."""
        return np.stack([output.alpha for output in self.outputs], axis=1) * Y


def solve_margin(
    features: Array,
    y: Array,
    bounds: Array,
    *,
    tol: float = 1e-6,
    start: MarginSolution | None = None,
) -> MarginSolution:
    """Minimise 1/2 |w|^2 + sum_i u_i max(0, 1 - y_i (w'phi_i + b)) over w and b.

    Parameters
    ----------
    features : ndarray of shape (n, N_z)
        phi, in float64.
    y : ndarray of shape (n,)
        Labels +1 and -1.
    bounds : ndarray of shape (n,)
        u, not negative. A row with 0 does not count.
    tol : float, default 1e-6
        Relative duality gap to reach.
    start : MarginSolution, optional
        That of a nearby problem with the same rows. It tells which rows are likely to matter and
        changes the result by no more than `tol`.

    Returns
    -------
    solution : MarginSolution
        With a larger gap than `tol` where rounding ended the iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.optimize.svm import solve_margin
    >>> features, y = np.array([[-1.0], [0.5], [3.0]]), np.array([-1.0, 1.0, 1.0])
    >>> solution = solve_margin(features, y, np.full(3, 10.0))
    >>> solution.weights.round(3), round(solution.bias, 3)
    (array([1.333]), 0.333)
    """
    used = np.flatnonzero(bounds > 0)
    signs = y[used]
    if not (signs > 0).any() or not (signs < 0).any():
        bias = float(np.sign(signs.sum()))
        weights = np.zeros(features.shape[1])
        return MarginSolution(np.zeros(len(y)), weights, bias, 0.0, 0.0, 0)
    small = len(used) * features.shape[1] < SMALL_PROBLEM
    rows = used if start is None or small else _near_rows(features, y, used, start)
    n_steps = 0
    with blocks.blas_threads(2.0 * len(used) * features.shape[1] ** 2):
        while True:
            part = _interior_point(features[rows], y[rows], bounds[rows], tol)
            n_steps += part.n_iter
            margins = y[used] * (features[used] @ part.weights + part.bias)
            hinge = bounds[used] * np.maximum(1.0 - margins, 0.0)
            objective = 0.5 * float(part.weights @ part.weights) + float(hinge.sum())
            dual = part.objective * (1.0 - part.gap)
            gap = max(objective - dual, 0.0) / objective
            missed = np.setdiff1d(used[margins < 1.0], rows)
            if gap <= max(tol, part.gap) or not len(missed):
                break
            rows = np.union1d(rows, used[margins < FAR_MARGIN])
    alpha = np.zeros(len(y))
    # What the method leaves of a bound that holds is rounding; zeros cost nothing later.
    smallest = NEGLIGIBLE * np.minimum(bounds[rows], part.alpha.max())
    alpha[rows] = np.where(part.alpha > smallest, part.alpha, 0.0)
    return MarginSolution(alpha, part.weights, part.bias, objective, gap, n_steps)


def _near_rows(features: Array, y: Array, used: Array, start: MarginSolution) -> Array:
    """Rows in or near the margin of an earlier solution; all, where these are of one class."""
    margins = y[used] * (features[used] @ start.weights + start.bias)
    rows = used[(margins < FAR_MARGIN) | (start.alpha[used] > 0)]
    return rows if (y[rows] > 0).any() and (y[rows] < 0).any() else used


class _Point(NamedTuple):
    """An iterate: (alpha, u - alpha) and their multipliers (s, t), each (2, n), and v = (w, b)."""

    room: Array
    slack: Array
    v: Array

    def moved(self, direction: _Point, length: float) -> _Point:
        return _Point(*(x + length * d for x, d in zip(self, direction, strict=True)))


def _interior_point(features: Array, y: Array, bounds: Array, tol: float) -> MarginSolution:
    """Mehrotra's method for rows of positive bounds and of both classes.

    alpha is measured in units of the mean bound, and the features in its root.
    """
    unit = float(bounds.mean())
    u = bounds / unit
    H = np.empty((features.shape[1] + 1, len(y)))
    H[:-1] = np.sqrt(unit) * features.T
    H[-1] = 1.0
    H *= y
    point, n_steps = _first_point(u, y, len(H)), 0
    best, smallest = point, np.inf
    while True:
        margins, dual = point.v @ H, H @ point.room[0]
        gap, objective = _duality_gap(u, point, margins, dual)
        if gap < smallest:
            best, smallest, at_best = point, gap, objective
        if smallest <= tol or n_steps == MOST_STEPS:
            break
        following = _newton_step(H, point, margins, dual)
        if following is None:
            break
        point = following
        n_steps += 1
    weights = np.sqrt(unit) * best.v[:-1]
    bias = float(best.v[-1])
    return MarginSolution(unit * best.room[0], weights, bias, unit * at_best, smallest, n_steps)


def _first_point(u: Array, y: Array, size: int) -> _Point:
    """Alpha inside its bounds with sum alpha y = 0; w = 0 and b = 0, so that s - t = -1."""
    positive, negative = float(u[y > 0].sum()), float(u[y < 0].sum())
    shares = np.where(y > 0, 1.0 / positive, 1.0 / negative) * min(positive, negative)
    alpha = 0.5 * u * shares
    slack = np.repeat([[1.0], [2.0]], len(u), axis=1)
    return _Point(np.stack([alpha, u - alpha]), slack, np.zeros(size))


def _duality_gap(u: Array, point: _Point, margins: Array, dual: Array) -> tuple[float, float]:
    """Relative duality gap, and the primal objective.

    `dual` is H alpha: the w that alpha gives, and sum_i alpha_i y_i, which is not zero where
    rounding has moved it; then the dual bound holds for constants up to 1 + |b|, at that price.
    """
    w, balance = point.v[:-1], abs(float(dual[-1]))
    primal = 0.5 * float(w @ w) + float(u @ np.maximum(1.0 - margins, 0.0))
    bound = float(point.room[0].sum()) - 0.5 * float(dual[:-1] @ dual[:-1])
    gap = abs(primal - bound) + balance * (1.0 + abs(float(point.v[-1])))
    return (gap / primal if np.isfinite(gap) and primal > 0 else np.inf), primal


def _newton_step(H: Array, point: _Point, margins: Array, dual: Array) -> _Point | None:
    """One predictor and corrector step; None where rounding leaves no way.

    `margins` are H'v and `dual` is H alpha.
    """
    room, slack, v = point
    free = np.ones(len(v))
    free[-1] = 0.0
    dual_residual = margins - 1.0 - slack[0] + slack[1]
    primal_residual = free * v - dual
    inverse = 1.0 / (slack / room).sum(axis=0)
    factor = _bordered_factor(H, inverse, free)
    if factor is None:
        return None

    def direction(change: Array) -> _Point:
        """Newton's direction for products alpha s and (u - alpha) t that change so much."""
        ratio = change / room
        right = ratio[0] - ratio[1] - dual_residual
        dv = lapack.dpotrs(factor, H @ (inverse * right) - primal_residual)[0]
        d_alpha = inverse * (right - dv @ H)
        d_room = np.stack([d_alpha, -d_alpha])
        return _Point(d_room, ratio - slack / room * d_room, dv)

    products = room * slack
    predictor = direction(-products)
    ahead = point.moved(predictor, _longest(predictor, point))
    now = float(products.sum())
    mu = (float(np.vdot(ahead.room, ahead.slack)) / now) ** 3 * now / products.size
    corrector = direction(mu - products - predictor.room * predictor.slack)
    moved = point.moved(corrector, INSIDE * _longest(corrector, point))
    return moved if moved.room.min() > 0.0 and np.isfinite(moved.v).all() else None


def _longest(step: _Point, point: _Point) -> float:
    """The longest step, at most 1, that leaves alpha, u - alpha, s and t non-negative."""
    most = min((step.room / point.room).min(), (step.slack / point.slack).min())
    return 1.0 / max(1.0, -float(most))


def _bordered_factor(H: Array, inverse: Array, free: Array) -> Array | None:
    """Cholesky factor of E + H Lambda H', None where it is not definite to rounding."""
    normal = blas.dsyrk(1.0, (H * np.sqrt(inverse)).T, trans=1)
    diagonal = normal.diagonal()
    # Features that are combinations of others drown E in rounding late in the iteration.
    np.fill_diagonal(normal, diagonal + free + 1e-15 * diagonal)
    factor, failed = lapack.dpotrf(normal, clean=0, overwrite_a=1)
    return None if failed else factor


def whitened(kernel: Kernel, Z: Array) -> Array:
    """R, upper triangular, with R'R = K_z, whose diagonal is multiplied by 1 + 1e-8.

    Raises
    ------
    ValueError
        If the kernel matrix of the vectors is not positive semidefinite.
    """
    gram = _jittered(kernel(Z, Z) if len(Z) else np.empty((0, 0)))
    with blocks.blas_threads(1.0 * len(Z) ** 3):
        factor = cholesky(gram)
    if len(factor) < len(gram) or not np.isfinite(factor).all():
        raise ValueError(f"kernel: {kernel} is not positive semidefinite on the expansion vectors")
    return factor


def _jittered(gram: Array) -> Array:
    """The matrix with its diagonal multiplied by 1 + 1e-8; a zero becomes the unit of that."""
    diagonal = gram.diagonal().copy()
    floor = JITTER * (float(np.abs(diagonal).max(initial=0.0)) or 1.0)
    gram[np.diag_indices(len(gram))] += np.where(diagonal > 0, JITTER * diagonal, floor)
    return gram


def features(values: Array, factor: Array) -> Array:
    """phi_z of rows from their kernel values with the vectors (eq. 29).

    Parameters
    ----------
    values : ndarray of shape (n, N_z)
        K(x_i, z_j).
    factor : ndarray of shape (N_z, N_z)
        R from `whitened`.
    """
    return solve_right(values, factor) if len(factor) else values


def solve_on_vectors(
    kernel: Kernel,
    Z: Array,
    X: Any,
    Y: Array,
    bounds: Array,
    *,
    tol: float = 1e-6,
    starts: Sequence[MarginSolution] | None = None,
) -> VectorSolution:
    """SVMs on given expansion vectors (eq. 16-18), one for each column of labels.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite.
    Z : ndarray of shape (N_z, d)
        Expansion vectors in float64.
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    Y : ndarray of shape (n, T)
        Labels +1 and -1.
    bounds : ndarray of shape (n,)
        C c_i.
    tol : float, default 1e-6
        Relative duality gap of each.
    starts : sequence of MarginSolution, optional
        Those for other vectors nearby.

    Returns
    -------
    solution : VectorSolution
        Coefficients, and W(Z) as ``solution.objective``.

    Raises
    ------
    ValueError
        If the kernel is not positive semidefinite on the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> from pursuit.optimize.svm import solve_on_vectors
    >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]])
    >>> solution = solve_on_vectors(RBF(1.0), X, X, Y, np.full(3, 100.0))
    >>> values = RBF(1.0)(X, X) @ solution.beta + solution.intercept
    >>> bool((values * Y > 0.999).all())
    True
    """
    factor = whitened(kernel, Z)
    values = _values(kernel, Z, X)
    with blocks.blas_threads(1.0 * len(values) * len(Z) ** 2):
        phi = features(values, factor)

    def solve(t: int) -> MarginSolution:
        return solve_margin(phi, Y[:, t], bounds, tol=tol, start=starts[t] if starts else None)

    large = phi.size * len(Z) > PARALLEL_MACHINES
    outputs = tuple(blocks.in_parallel(solve, range(Y.shape[1]), parallel=large))
    weights = np.stack([output.weights for output in outputs], axis=1)
    beta = solve_upper(factor, weights) if len(Z) else weights
    return VectorSolution(outputs, beta, np.array([output.bias for output in outputs]))


def _values(kernel: Kernel, Z: Array, X: Any) -> Array:
    """K(x_i, z_j), few enough rows at a time that their copies stay in the processor's cache."""
    n_rows, n_features = X.shape
    values = np.empty((n_rows, len(Z)))
    if not len(Z):
        return values
    prepared = kernel.prepare(Z)
    size = max(SMALLEST_CHUNK, CHUNK_ENTRIES // (n_features + len(Z)))
    chunks = [slice(start, start + size) for start in range(0, n_rows, size)]

    def fill(rows: slice) -> None:
        values[rows] = kernel.evaluate(X[rows], prepared)

    blocks.in_parallel(fill, chunks, parallel=n_features * values.size > PARALLEL_WORK)
    return values


def energy(kernel: Kernel, Z: Array, X: Any, A: Array) -> tuple[float, Array, Array]:
    """J(Z; a), summed over the columns a of `A`, with its gradient in Z.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite, with a derivative.
    Z : ndarray of shape (N_z, d)
        Vectors in float64.
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    A : ndarray of shape (n, T)
        Coefficients; rows of zeros cost nothing.

    Returns
    -------
    J : float
        Half the squared norm of the projection of sum_j a_j phi(x_j) onto the vectors' span.
    gradient : ndarray of shape (N_z, d)
        dJ/dZ.
    beta : ndarray of shape (N_z, T)
        Coefficients of the projection.

    Raises
    ------
    ValueError
        If the kernel has no derivative or is not positive semidefinite on the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> from pursuit.optimize.svm import energy
    >>> X = np.array([[0.0], [1.0]])
    >>> J, gradient, beta = energy(RBF(1.0), np.array([[0.5]]), X, np.ones((2, 1)))
    >>> round(J, 4), gradient, beta.round(4)
    (1.2131, array([[0.]]), array([[1.5576]]))
    """
    if not len(Z):
        return 0.0, np.zeros(Z.shape), np.zeros((0, A.shape[1]))
    rows = np.flatnonzero(A.any(axis=1))
    kept = A[rows]
    factor = whitened(kernel, Z)
    prepared = kernel.prepare(Z)
    parts = list(blocks.row_blocks(len(rows), 8.0 * (4 * len(Z) + 2 * X.shape[1])))
    u = np.zeros((len(Z), A.shape[1]))
    for part in parts:
        u += kernel.evaluate(X[rows[part]], prepared).T @ kept[part]
    half = solve_transposed(factor, u)
    beta = solve_upper(factor, half)
    try:
        gradient = -kernel.weighted_gradient(Z, Z, _jittered(beta @ beta.T))
        for part in parts:
            gradient += kernel.weighted_gradient(Z, X[rows[part]], beta @ kept[part].T)
    except NotImplementedError:
        raise ValueError(f"kernel: {kernel} has no derivative in its vectors") from None
    return 0.5 * float((half * half).sum()), gradient, beta
