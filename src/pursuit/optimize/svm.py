"""The linear support vector machine on given features, by an interior point method.

M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005; the
equation numbers are theirs.

Problem. Given features phi_i with labels y_i = +-1 and bounds u_i = C c_i (c the sample weights),
find w and b that minimise

    1/2 |w|^2 + sum_i u_i max(0, 1 - y_i (w'phi_i + b))                         (eq. 11-14, 16-18)

with the hinge loss as it is and b not penalised. ``svm_on_vectors.py`` has the features
of given expansion vectors.

===========  =================  =========================================================
symbol       name in code       shape and meaning
===========  =================  =========================================================
phi          ``features``       (n, N_z) the features, e.g. the whitened map         (eq. 29)
w            ``weights``        (N_z,) normal vector
alpha        ``alpha``          (n,) dual variables, 0 <= alpha_i <= u_i         (eq. 27)
..           ``primal_slack``   (2, n) alpha and u - alpha, the slacks of these bounds
H            ``H``              (N_z + 1, n) y_i (phi_i, 1)
s, t         ``dual_slack``       (2, n) multipliers of the bounds on alpha, u - alpha
===========  =================  =========================================================

The dual (eq. 20-28). With (eq. 21) w = sum_i alpha_i y_i phi_i, (eq. 22) sum_i alpha_i y_i = 0
and (eq. 23) 0 <= alpha_i <= u_i, it is

    max_alpha sum_i alpha_i - 1/2 |w|^2                                             (eq. 25-28, 32)

Solution: Mehrotra's predictor-corrector method. With v = (w, b), margins m = H'v and
E = diag(1, ..., 1, 0) the conditions of optimality are

    m - 1 = s - t,    E v = H alpha,    alpha s = 0,    (u - alpha) t = 0,

so that t is the hinge loss. Newton's step for alpha s = (u - alpha) t = mu eliminates s, t and
alpha, which leaves N_z + 1 unknowns (Woodbury's identity with the bias as a border):

    (E + H Lambda H') dv = ...,      Lambda = 1 / (s / alpha + t / (u - alpha)).

Cost of a step: n N_z^2; 10 to 35 steps. Every v is feasible, and so is every alpha, which starts
with sum_i alpha_i y_i = 0: the duality gap is exact, and it ends the iteration.

Where we differ. Rows that a nearby solution says lie far outside the margin are left out at first
and checked afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from pursuit._typing import Array
from pursuit.linalg import blocks

__all__ = ["MarginSolution", "solve_margin"]

# Maximum number of Newton steps.
MAX_NEWTON_STEPS = 100
# Share of the way to the boundary that a step goes.
STEP_TO_BOUNDARY = 0.995
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

    primal_slack: Array
    dual_slack: Array
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
        margins, dual = point.v @ H, H @ point.primal_slack[0]
        gap, objective = _duality_gap(u, point, margins, dual)
        if gap < smallest:
            best, smallest, at_best = point, gap, objective
        if smallest <= tol or n_steps == MAX_NEWTON_STEPS:
            break
        following = _newton_step(H, point, margins, dual)
        if following is None:
            break
        point = following
        n_steps += 1
    weights = np.sqrt(unit) * best.v[:-1]
    bias = float(best.v[-1])
    return MarginSolution(
        unit * best.primal_slack[0], weights, bias, unit * at_best, smallest, n_steps
    )


def _first_point(u: Array, y: Array, size: int) -> _Point:
    """Alpha inside its bounds with sum alpha y = 0; w = 0 and b = 0, so that s - t = -1."""
    positive, negative = float(u[y > 0].sum()), float(u[y < 0].sum())
    shares = np.where(y > 0, 1.0 / positive, 1.0 / negative) * min(positive, negative)
    alpha, dual_slack = 0.5 * u * shares, np.repeat([[1.0], [2.0]], len(u), axis=1)
    return _Point(np.stack([alpha, u - alpha]), dual_slack, np.zeros(size))


def _duality_gap(u: Array, point: _Point, margins: Array, dual: Array) -> tuple[float, float]:
    """Relative duality gap, and the primal objective.

    `dual` is H alpha: the w that alpha gives, and sum_i alpha_i y_i, which is not zero where
    rounding has moved it; then the dual bound holds for constants up to 1 + |b|, at that price.
    """
    w, balance = point.v[:-1], abs(float(dual[-1]))
    primal = 0.5 * float(w @ w) + float(u @ np.maximum(1.0 - margins, 0.0))
    bound = float(point.primal_slack[0].sum()) - 0.5 * float(dual[:-1] @ dual[:-1])
    gap = abs(primal - bound) + balance * (1.0 + abs(float(point.v[-1])))
    return (gap / primal if np.isfinite(gap) and primal > 0 else np.inf), primal


def _newton_step(H: Array, point: _Point, margins: Array, dual: Array) -> _Point | None:
    """One predictor and corrector step; None where rounding leaves no way.

    `margins` are H'v and `dual` is H alpha.
    """
    primal_slack, dual_slack, v = point
    free = np.ones(len(v))
    free[-1] = 0.0
    dual_residual = margins - 1.0 - dual_slack[0] + dual_slack[1]
    primal_residual = free * v - dual
    inverse = 1.0 / (dual_slack / primal_slack).sum(axis=0)
    factor = _bordered_factor(H, inverse, free)
    if factor is None:
        return None

    def direction(change: Array) -> _Point:
        """Newton's direction for products alpha s and (u - alpha) t that change so much."""
        ratio = change / primal_slack
        right = ratio[0] - ratio[1] - dual_residual
        dv = lapack.dpotrs(factor, H @ (inverse * right) - primal_residual)[0]
        d_alpha = inverse * (right - dv @ H)
        d_primal = np.stack([d_alpha, -d_alpha])
        return _Point(d_primal, ratio - dual_slack / primal_slack * d_primal, dv)

    products = primal_slack * dual_slack
    predictor = direction(-products)
    ahead = point.moved(predictor, _longest(predictor, point))
    now = float(products.sum())
    mu = (float(np.vdot(ahead.primal_slack, ahead.dual_slack)) / now) ** 3 * now / products.size
    corrector = direction(mu - products - predictor.primal_slack * predictor.dual_slack)
    moved = point.moved(corrector, STEP_TO_BOUNDARY * _longest(corrector, point))
    return moved if moved.primal_slack.min() > 0.0 and np.isfinite(moved.v).all() else None


def _longest(step: _Point, point: _Point) -> float:
    """The longest step, at most 1, that leaves alpha, u - alpha, s and t non-negative."""
    most = min(
        (step.primal_slack / point.primal_slack).min(), (step.dual_slack / point.dual_slack).min()
    )
    return 1.0 / max(1.0, -float(most))


def _bordered_factor(H: Array, inverse: Array, free: Array) -> Array | None:
    """Cholesky factor of E + H Lambda H', None where it is not definite to rounding."""
    normal = blas.dsyrk(1.0, (H * np.sqrt(inverse)).T, trans=1)
    diagonal = normal.diagonal()
    # Features that are combinations of others drown E in rounding late in the iteration.
    np.fill_diagonal(normal, diagonal + free + 1e-15 * diagonal)
    factor, failed = lapack.dpotrf(normal, clean=0, overwrite_a=1)
    return None if failed else factor
