"""Kernel recursive least squares with a budget, for functions that change (KRLS-T).

Papers: S. Van Vaerenbergh, M. Lazaro-Gredilla and I. Santamaria, "Kernel recursive least-squares
tracker for time-varying regression", IEEE Transactions on Neural Networks and Learning Systems 23
(2012); Y. Engel, S. Mannor and R. Meir, "The kernel recursive least-squares
algorithm", IEEE Transactions on Signal Processing 52 (2004), for the test of linear dependence.

Problem. Rows come one at a time, and the function behind them may change. Keep, in constant memory
and time a row, the posterior of a Gaussian process f ~ GP(0, k) with y = f(x) + noise, at m <= M
points that represent all rows so far.

===========  ====================  =============================================================
symbol       name in code          shape and meaning
===========  ====================  =============================================================
D                                  m points, the dictionary; the caller keeps them
K            ``gram``              (m, m)  kernel among them, a constant included where there is
                                   an intercept
R            ``factor``            (m, m)  upper triangular, R'R = K; Q = K^{-1} is not formed
mu           ``mean``              (m, T)  posterior mean of f at the points
Sigma        ``covariance``        (m, m)  posterior covariance there, over the scale of a target
sigma_n^2    ``noise``             noise variance over that scale; of a row of weight w: over w
lambda       ``forgetting``        (0, 1]; 1: nothing is forgotten
k, k_tt                            (m,), number: kernel of the new row with the points, with itself
===========  ====================  =============================================================

For each row x with target y:

1. forgetting, back to the prior:  Sigma <- lambda Sigma + (1 - lambda) K,
   mu <- sqrt(lambda) mu
2. prediction:  q = Q k,  y^ = q'mu,  gamma^2 = k_tt - k'q,  h = Sigma q,
   s^2 = gamma^2 + q'h,  s_y^2 = s^2 + sigma_n^2
3. the row becomes a point, with e = y - y^:
   mu <- (mu, y^) + e / s_y^2 (h, s^2),
   Sigma <- ((Sigma, h), (h', s^2)) - (h, s^2)(h, s^2)' / s_y^2,
   R <- ((R, R^{-T} k), (0, gamma))
4. unless its part outside the span, gamma^2, is at most ``tol`` k_tt (less the constant): then the
   new point is left out of mu and Sigma again, and R stays (approximate linear dependence)
5. where there are more than M points, the one goes whose loss changes f least where it stood:
   (Q mu)_i^2 / Q_ii^2 is the smallest; its column leaves R, which rotations make triangular again

The scale of a target is the mean of e^2 / s_y^2 over the rows, each worth lambda times the next.
As long as all rows are points, and with lambda = 1, mu is that of Gaussian process regression, that
is, of kernel ridge regression, exactly.

Cost: O(M^2) a row, and M^3 / 3 where a point goes. The papers update Q itself, which costs M^2
there, but loses all digits where rows resemble each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr_delete

from pursuit._typing import Array
from pursuit.linalg.factor import solve_transposed, solve_upper

__all__ = ["Absorbed", "Tracker", "fresh"]

TINY = float(np.finfo(float).tiny)


def bordered(square: Array, column: Array, corner: float) -> Array:
    """A symmetric matrix with one more row and column."""
    m = len(square)
    larger = np.empty((m + 1, m + 1))
    larger[:m, :m], larger[m, :m], larger[:m, m], larger[m, m] = square, column, column, corner
    return larger


class Absorbed(NamedTuple):
    """What came of a row.

    Attributes
    ----------
    joined : bool
        Whether it has become a point, the last one.
    removed : int or None
        The point that has gone since, counted with the new one.
    predicted : ndarray of shape (n_targets,)
        Its targets as they were predicted before it was learned from.
    """

    joined: bool
    removed: int | None
    predicted: Array


@dataclass
class Tracker:
    """The posterior at the points of the dictionary; see the top of this module.

    Attributes
    ----------
    n_components : int
        M.
    noise : float
        sigma_n^2.
    forgetting : float
        lambda.
    tol : float
        Share of k_tt outside the span from which on a row becomes a point.
    constant : float
        The constant in the kernel.
    mean : ndarray of shape (n_points, n_targets)
        mu.
    gram, factor, covariance : ndarray of shape (n_points, n_points)
        K, R, Sigma.
    errors : ndarray of shape (n_targets,)
        Sum of e^2 / s_y^2, less what was forgotten.
    n_rows : float
        Sum of the weights, less what was forgotten.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.online.tracker import fresh
    >>> tracker = fresh(5, 1, noise=1.0, forgetting=1.0, tol=1e-6, constant=0.0)
    >>> tracker.absorb(np.empty(0), 1.0, np.array([3.0]), 1.0)
    Absorbed(joined=True, removed=None, predicted=array([0.]))
    >>> tracker.mean  # half way between the prior's mean and the target
    array([[1.5]])
    """

    n_components: int
    noise: float
    forgetting: float
    tol: float
    constant: float
    mean: Array
    gram: Array
    factor: Array
    covariance: Array
    errors: Array
    n_rows: float = 0.0

    @property
    def coefficients(self) -> Array:
        """Q mu: f(x) = k(x)'Q mu, (m, T)."""
        return self.solved(self.mean)

    def solved(self, values: Array) -> Array:
        """Q times values at the points, (m, ...)."""
        return solve_upper(self.factor, solve_transposed(self.factor, values))

    @property
    def scale(self) -> Array:
        """The scale of each target, a variance."""
        scale: Array = self.errors / max(self.n_rows, TINY)
        return scale

    def variances(self, values: Array, own: Array) -> Array:
        """Posterior variance of f over the scale, from K(X, D) (n, m) and k(x, x) (n,)."""
        if not len(self.mean):
            return own
        q = self.solved(values.T).T
        found: Array = own - np.einsum("ij,ij->i", q, values - q @ self.covariance)
        return np.maximum(found, 0.0)

    def absorb(self, k: Array, k_tt: float, y: Array, weight: float) -> Absorbed:
        """Take one row (steps 1 to 5).

        Parameters
        ----------
        k : ndarray of shape (n_points,)
            Kernel of the row with the points.
        k_tt : float
            Kernel of the row with itself.
        y : ndarray of shape (n_targets,)
            Its targets.
        weight : float
            Its weight, positive.

        Returns
        -------
        absorbed : Absorbed
            What came of it.
        """
        if self.forgetting < 1.0:
            self._forget()
        half = solve_transposed(self.factor, k) if len(k) else k  # R^{-T} k
        q = solve_upper(self.factor, half) if len(k) else k
        outside = max(k_tt - float(half @ half), 0.0)  # gamma^2
        h = self.covariance @ q
        s2 = outside + float(q @ h)
        s_y2 = s2 + self.noise / weight
        predicted = q @ self.mean
        e = y - predicted
        self.errors = self.errors + e * e / s_y2
        self.n_rows += weight
        joined = outside > self.tol * (k_tt - self.constant)
        if joined:
            self.gram = bordered(self.gram, k, k_tt)
            self.factor = np.triu(bordered(self.factor, half, float(np.sqrt(outside))))
            self.covariance = bordered(self.covariance, h, s2)
            self.mean = np.vstack([self.mean, predicted])
            h = np.append(h, s2)
        self.mean = self.mean + np.outer(h, e / s_y2)
        self.covariance = self.covariance - np.outer(h, h / s_y2)
        if len(self.mean) <= self.n_components:
            return Absorbed(joined, None, predicted)
        least = self._least()
        self._remove(least)
        return Absorbed(joined, least, predicted)

    def _forget(self) -> None:
        """Step 1."""
        kept = self.forgetting
        self.covariance = kept * self.covariance + (1.0 - kept) * self.gram
        self.mean = np.sqrt(kept) * self.mean
        self.errors, self.n_rows = kept * self.errors, kept * self.n_rows

    def _least(self) -> int:
        """The point whose loss changes f least where it stands."""
        diagonal = (solve_upper(self.factor, np.eye(len(self.mean))) ** 2).sum(axis=1)  # Q_ii
        changes = self.coefficients / diagonal[:, None]
        return int((changes**2 / np.maximum(self.scale, TINY)).sum(axis=1).argmin())

    def _remove(self, i: int) -> None:
        """Step 5 for point i; the others keep their order."""
        others = np.delete(np.arange(len(self.mean)), i)
        square = np.ix_(others, others)
        _, R = qr_delete(np.eye(len(self.mean)), self.factor, i, which="col")
        self.factor = R[:-1] * np.where(R[:-1].diagonal() < 0.0, -1.0, 1.0)[:, None]
        self.gram, self.covariance = self.gram[square], self.covariance[square]
        self.mean = self.mean[others]


def fresh(n_components: int, n_targets: int, **numbers: Any) -> Tracker:
    """A tracker that has seen no row; `numbers` are noise, forgetting, tol and constant."""
    mean, empty, errors = np.empty((0, n_targets)), np.empty((0, 0)), np.zeros(n_targets)
    return Tracker(
        n_components,
        mean=mean,
        gram=empty,
        factor=empty,
        covariance=empty,
        errors=errors,
        **numbers,
    )
