"""The minimum of a quadratic function in a box.

Problem. Minimise g'x + x'Hx / 2 over lower <= x <= upper, H symmetric and positive definite. The
minimum is where each coordinate is of one of three kinds, with the slope r = g + Hx:

- free, r_j = 0;
- at its lower bound, r_j >= 0;
- at its upper bound, r_j <= 0.

===========  ===============  ===========================================================
symbol       name in code     shape and meaning
===========  ===============  ===========================================================
H            ``hessian``      (n, n)
g            ``slope``        (n,)
x            ``x``            (n,)
             ``bound_state``        (n,)  -1 at the lower bound, 0 free, 1 at the upper bound
s, t         ``.._slack``     (n,)  x - lower and upper - x
u, v         ``.._multipliers``  (n,)  multipliers of the two bounds
===========  ===============  ===========================================================

1. Exchanges (J. Judice and F. Pires, "A block principal pivoting algorithm for large-scale strictly
   monotone linear complementarity problems", Computers and Operations Research 21, 1994). From a
   guess of the kinds: solve H_FF x_F = -(g + Hx)_F with the others at their bounds; each free
   coordinate outside the box goes to the bound it has crossed, each coordinate at a bound with a
   slope of the wrong sign becomes free. Where no coordinate changes its kind, x is the minimum. It
   mostly takes a few rounds, but may run in circles: it ends where the number of changes has not
   fallen for `PATIENCE` rounds.

2. Then the interior point method finds the kinds (Mehrotra's predictor and corrector, Nocedal and
   Wright, "Numerical optimization", 2006, chapter 16): steps towards r = u - v, s u = t v = mu for
   mu falling to zero, each from the Cholesky factor of H + diag(u / s + v / t). Exchanges from
   there give the digits that are left.

Cost. A Cholesky factorisation a round, of the free coordinates in 1, of all in 2; some 15 in 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pursuit._typing import Array

__all__ = ["BoxMinimum", "box_minimum", "exchange", "has_bounds", "interior_point"]

PATIENCE, MOST_ROUNDS = 3, 100
MOST_STEPS = 60
# A slope below this share of the largest is of neither sign.
SMALL_SLOPE = 1e-10
# Where the interior point method ends, relative to the first slopes and their products with x.
ACCURACY, GAP = 1e-9, 1e-12
# Share of the way to the boundary that a step may take.
MOST_OF_THE_WAY = 0.995
# Added to the diagonal of a matrix, relative to its largest entry, where it has no factor, and by
# how much more each time.
ROUNDING, SHIFT_GROWTH, MOST_SHIFTS = 1e-14, 100.0, 7


class BoxMinimum(NamedTuple):
    """A point of the box.

    Attributes
    ----------
    x : ndarray of shape (n,)
        The point; at a bound it equals it exactly.
    bound_state : ndarray of int of shape (n,)
        -1 at the lower bound, 0 free, 1 at the upper bound.
    exact : bool
        Whether each coordinate is of its kind to rounding.
    """

    x: Array
    bound_state: Array
    exact: bool


def box_minimum(hessian: Array, slope: Array, lower: Array, upper: Array) -> BoxMinimum:
    """The minimum, by exchanges from the free minimum, and by the interior point where they fail.

    Parameters
    ----------
    hessian : ndarray of shape (n, n)
        H; without bounds its upper triangle is enough.
    slope : ndarray of shape (n,)
        g.
    lower, upper : ndarray of shape (n,)
        The box, lower < upper; entries may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.optimize.box_qp import box_minimum
    >>> H, g = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-4.0, 1.0])
    >>> box_minimum(H, g, np.zeros(2), np.full(2, np.inf)).x
    array([2., 0.])
    """
    bound_state = np.zeros(len(slope), dtype=int)
    if not has_bounds(lower, upper):
        return BoxMinimum(_solved(hessian, -slope), bound_state, True)
    found = exchange(hessian, slope, lower, upper, bound_state)
    if found.exact:
        return found
    inside = interior_point(hessian, slope, lower, upper)
    found = exchange(hessian, slope, lower, upper, inside.bound_state)
    return found if found.exact else inside


def has_bounds(lower: Array, upper: Array) -> bool:
    """Whether any bound is finite."""
    return bool(np.isfinite(lower).any() or np.isfinite(upper).any())


def exchange(
    hessian: Array, slope: Array, lower: Array, upper: Array, bound_state: Array
) -> BoxMinimum:
    """Step 1.

    Parameters
    ----------
    hessian, slope, lower, upper
        See `box_minimum`.
    bound_state : ndarray of int of shape (n,)
        The guess.
    """
    fewest, left = len(slope) + 1, PATIENCE
    small = SMALL_SLOPE * float(np.abs(slope).max(initial=0.0))
    x = np.zeros_like(slope)
    for _ in range(MOST_ROUNDS):
        free = bound_state == 0
        x = np.where(bound_state < 0, lower, np.where(bound_state > 0, upper, 0.0))
        x[free] = _solved(hessian[np.ix_(free, free)], -(slope + hessian @ x)[free])
        r = slope + hessian @ x
        new = np.where(free & (x < lower), -1, np.where(free & (x > upper), 1, bound_state))
        new[((bound_state < 0) & (r < -small)) | ((bound_state > 0) & (r > small))] = 0
        n_changes = int((new != bound_state).sum())
        if n_changes == 0:
            return BoxMinimum(x, bound_state, True)
        fewest, left = (n_changes, PATIENCE) if n_changes < fewest else (fewest, left - 1)
        if left == 0:
            break
        bound_state = new
    return BoxMinimum(np.clip(x, lower, upper), bound_state, False)


def interior_point(hessian: Array, slope: Array, lower: Array, upper: Array) -> BoxMinimum:
    """Step 2.

    Parameters
    ----------
    hessian, slope, lower, upper
        See `box_minimum`.
    """
    state = _Interior(hessian, slope, lower, upper)
    for _ in range(MOST_STEPS):
        if state.ended:
            break
        state.step()
    curvature = hessian.diagonal()
    bound_state = np.where(state.lower_slack * curvature < state.lower_multipliers, -1, 0)
    bound_state[state.upper_slack * curvature < state.upper_multipliers] = 1
    x = np.where(bound_state < 0, lower, np.where(bound_state > 0, upper, state.x))
    return BoxMinimum(np.clip(x, lower, upper), bound_state, False)


class _Interior:
    """A point inside the box, and the multipliers of its bounds."""

    def __init__(self, hessian: Array, slope: Array, lower: Array, upper: Array) -> None:
        self.hessian, self.slope = hessian, slope
        self.lower, self.upper = lower, upper
        has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
        self.n_bounds = max(1, int(has_lower.sum() + has_upper.sum()))
        # In the middle, or one step of steepest descent away from the only bound.
        self.size = float(np.abs(slope).max(initial=0.0)) or 1.0
        unit = self.size / (float(hessian.diagonal().max(initial=0.0)) or 1.0)
        self.x = np.where(has_lower, lower + unit, np.where(has_upper, upper - unit, 0.0))
        both = has_lower & has_upper
        self.x[both] = (lower[both] + upper[both]) / 2.0
        self.lower_multipliers = np.where(has_lower, self.size, 0.0)
        self.upper_multipliers = np.where(has_upper, self.size, 0.0)
        self.width = 0.0
        widths = np.where(has_lower, self.lower_slack, 0.0) + np.where(
            has_upper, self.upper_slack, 0.0
        )
        self.width = float(widths.max(initial=0.0))

    @property
    def lower_slack(self) -> Array:
        """The distance to the lower bound, at least what rounding leaves."""
        return np.asarray(np.maximum(self.x - self.lower, ROUNDING * self.width))

    @property
    def upper_slack(self) -> Array:
        """The distance to the upper bound, at least what rounding leaves."""
        return np.asarray(np.maximum(self.upper - self.x, ROUNDING * self.width))

    def _mean(self, x: Array, lower_multipliers: Array, upper_multipliers: Array) -> float:
        """Mean product of slacks and multipliers, mu."""
        low, high = lower_multipliers > 0, upper_multipliers > 0
        total = (
            lower_multipliers[low] @ (x - self.lower)[low]
            + upper_multipliers[high] @ (self.upper - x)[high]
        )
        return float(total) / self.n_bounds

    @property
    def mu(self) -> float:
        """Mu where we are."""
        return self._mean(self.x, self.lower_multipliers, self.upper_multipliers)

    @property
    def ended(self) -> bool:
        """Whether the conditions hold to the accuracy asked for."""
        r = self.slope + self.hessian @ self.x - self.lower_multipliers + self.upper_multipliers
        close = float(np.abs(r).max(initial=0.0)) <= ACCURACY * self.size
        return close and self.mu <= GAP * self.size * self.width

    def step(self) -> None:
        """Predict, correct, move."""
        mu = self.mu
        factor = self._damped_factor()
        nothing = np.zeros_like(self.x)
        dx, dup, ddown = self._towards(factor, 0.0, nothing, nothing)
        primal, dual = self._longest_steps(dx, dup, ddown)
        ahead = self._mean(
            self.x + primal * dx,
            self.lower_multipliers + dual * dup,
            self.upper_multipliers + dual * ddown,
        )
        centring = (max(ahead, 0.0) / mu) ** 3 if mu > 0.0 else 0.0
        dx, dup, ddown = self._towards(factor, centring * mu, dx * dup, -dx * ddown)
        primal, dual = self._longest_steps(dx, dup, ddown)
        self.x = self.x + min(MOST_OF_THE_WAY * primal, 1.0) * dx
        dual = min(MOST_OF_THE_WAY * dual, 1.0)
        self.lower_multipliers = self.lower_multipliers + dual * dup
        self.upper_multipliers = self.upper_multipliers + dual * ddown

    def _damped_factor(self) -> Array:
        """Cholesky factor of the Hessian with the pull of the bounds on its diagonal."""
        lower = self.lower_multipliers / self.lower_slack
        upper = self.upper_multipliers / self.upper_slack
        return _factor(self.hessian + np.diag(lower + upper))

    def _towards(
        self, factor: Array, target: float, low: Array, high: Array
    ) -> tuple[Array, Array, Array]:
        """Changes of x and of the multipliers that bring every product to the target."""
        lower, upper = self.lower_multipliers, self.upper_multipliers
        r = self.slope + self.hessian @ self.x
        right = (target - low) / self.lower_slack - (target - high) / self.upper_slack - r
        dx = np.asarray(cho_solve((factor, False), right, check_finite=False))
        dup = (target - low - lower * dx) / self.lower_slack - lower
        ddown = (target - high + upper * dx) / self.upper_slack - upper
        return dx, np.where(lower > 0, dup, 0.0), np.where(upper > 0, ddown, 0.0)

    def _longest_steps(self, dx: Array, dup: Array, ddown: Array) -> tuple[float, float]:
        """How far x and the multipliers may go."""
        return (
            min(_longest_step(self.lower_slack, dx), _longest_step(self.upper_slack, -dx)),
            min(
                _longest_step(self.lower_multipliers, dup),
                _longest_step(self.upper_multipliers, ddown),
            ),
        )


def _longest_step(values: Array, changes: Array) -> float:
    """How many times the changes can be added before a value is zero."""
    falling = changes < 0
    return min(
        1.0 / MOST_OF_THE_WAY, float((-values[falling] / changes[falling]).min(initial=np.inf))
    )


def _factor(matrix: Array) -> Array:
    """Upper Cholesky factor of the matrix, shifted as far as its rounding asks for.

    Upper triangles alone are read and given.
    """
    shift = ROUNDING * float(np.abs(matrix.diagonal()).max(initial=0.0))
    for _ in range(MOST_SHIFTS):
        try:
            return np.asarray(cho_factor(matrix, check_finite=False)[0])
        except LinAlgError:
            matrix = matrix.copy()
            matrix[np.diag_indices_from(matrix)] += shift
            shift *= SHIFT_GROWTH
    return np.diag(np.sqrt(np.abs(matrix.diagonal()) + shift))


def _solved(matrix: Array, right: Array) -> Array:
    """The solution of a system."""
    if not len(right):
        return right
    return np.asarray(cho_solve((_factor(matrix), False), right, check_finite=False))
