"""The greedy pivoted factorisation behind every method here, and its pivot rules.

Given the Gram matrix G = D'D (M x M) of a dictionary and its products with the targets,
choose atoms one at a time: a partial Cholesky factorisation of G whose pivot a rule picks.

====================  =============  ==========================================================
symbol                name in code   shape and meaning
====================  =============  ==========================================================
nu[k]                 ``nu``         (M,)  |P_perp d_k|^2; starts at G[k,k]
b[k,t]                ``cross``      (T, M)  <P_perp d_k, y_t>; starts at (D'Y)'
V                     ``V``          (N, M)  V[n] = <q_n, d_k>, q_n the orthonormal basis
z                     ``targets``    (N, T)  z[n,t] = <q_n, y_t>
R                     ``factor``     (N, N)  upper triangular, R = V[:, picks]
====================  =============  ==========================================================

One step with pivot g (the orthogonalisation of figure 3 of Vincent and Bengio 2002, written
for G instead of the l x M dictionary matrix):

1. s = sqrt(nu[g]);  v = (G[g,:] - V[:n,g]' V[:n]) / s
2. z = b[g] / s;  b <- b - z v;  nu <- nu - v^2;  append v to V and z to the targets

The coefficients of the n-atom model solve ``R[:n,:n] alpha = z[:n]`` (eq. 6 and 7), and each
step lowers the squared error by |z|^2.

Pivot rules, all "argmax over the usable atoms":

====================  =======================  ================================================
``prefit``            sum_t b^2 / nu           eq. 7, figure 3; orthogonal least squares
``backfit``           sum_t b^2 / G[k,k]       eq. 3 and 6; orthogonal matching pursuit
``basic``             sum_t b^2 / G[k,k]       eq. 3-5, figure 1; no orthogonalisation
``residual``          nu                       pivoted Cholesky, pivoted Gram-Schmidt
``random``            log nu + Gumbel noise    draws in proportion to nu (RPCholesky)
====================  =======================  ================================================

An atom with ``nu[k] <= rank_tolerance * G[k,k]`` is numerically a combination of those chosen
and is never used. Scores within 1e-10 (relative) of the best count as ties; the lowest index
wins. Cost of a step: O(M n) for an orthogonal rule, O(M) for the basic one, and one row of G.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from pursuit.backend import Array, backend_of

__all__ = ["PIVOT_RULES", "BasicPursuit", "GramRows", "PivotedFactor"]

TIE_TOLERANCE = 1e-10
# A squared residual below this share of the targets' squared norm is rounding.
ZERO_ENERGY = 1e-14


class GramRows(Protocol):
    """Access to G = D'D without saying how it is stored."""

    @property
    def diagonal(self) -> Array:
        """Diagonal of G."""

    @property
    def rank_tolerance(self) -> float:
        """Share of G[k,k] below which a squared residual norm is rounding."""

    def row(self, index: int, scores: Array) -> Array:
        """Row `index` of G; `scores` tells which rows are likely to be wanted next."""


Rule = Callable[[Array, Array, Array, np.random.RandomState | None], Array]


def _explained(cross: Array, norms: Array) -> Array:
    """Drop in squared error, sum_t b^2 / norm."""
    explained: Array = (cross * cross).sum(axis=0) / norms
    return explained


def _prefit(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    return _explained(cross, nu)


def _backfit(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    return _explained(cross, diagonal)


def _residual(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    return nu


def _random(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    if rng is None:
        raise ValueError("the random pivot rule needs a random state")
    return np.asarray(np.log(nu) + rng.gumbel(size=nu.shape))


PIVOT_RULES: dict[str, Rule] = {
    "prefit": _prefit,
    "backfit": _backfit,
    "residual": _residual,
    "random": _random,
}


def first_best(scores: Array) -> int:
    """Lowest index among the scores that equal the largest one up to rounding."""
    best = scores.max()
    return backend_of(scores).argmax(scores >= best - TIE_TOLERANCE * abs(best))


class _Greedy:
    """What the two pursuits share: picks, targets and the energy left.

    Parameters
    ----------
    gram : GramRows
        The Gram matrix, ridge included.
    cross : ndarray of shape (n_targets, n_atoms)
        Products of the atoms with the targets.
    energy : ndarray of shape (n_targets,)
        Squared norms of the targets.
    barred : ndarray of bool of shape (n_atoms,), optional
        Atoms that may not be chosen.
    """

    def __init__(
        self, gram: GramRows, cross: Array, energy: Array, barred: Array | None = None
    ) -> None:
        self.gram = gram
        self.cross = np.array(cross, dtype=np.float64, order="C")
        self.total = float(energy.sum())
        self.picks: list[int] = []
        self.targets: list[Array] = []
        self.gained = 0.0
        # An atom that is zero on all rows (after centring) can explain nothing.
        self.usable = gram.diagonal > 0
        if barred is not None:
            self.usable &= ~barred

    def exhausted(self) -> bool:
        """Whether the residual is zero to rounding."""
        return self.total - self.gained <= ZERO_ENERGY * self.total

    def _explains(self, pivot: int, scores: Array) -> bool:
        """Whether the best atom lowers the error at all."""
        return bool(scores[pivot] > ZERO_ENERGY**2 * self.total)

    def _record(self, pivot: int, target: Array) -> None:
        self.picks.append(pivot)
        self.targets.append(target)
        self.gained += float(target @ target)

    def extend(self, n_steps: int) -> str | None:
        """Take up to `n_steps` more steps; return why it ended early, or None."""
        for _ in range(n_steps):
            reason = self.step()
            if reason:
                return reason
        return None

    def step(self) -> str | None:
        """Choose one atom; return why none was chosen, or None."""
        raise NotImplementedError


class PivotedFactor(_Greedy):
    """Partial Cholesky factorisation with pivots by an orthogonal rule.

    Parameters
    ----------
    gram, cross, energy, barred
        See `_Greedy`.
    rule : str
        A key of `PIVOT_RULES`.
    rng : RandomState, optional
        For the random rule.
    supervised : bool, default True
        Stop when the targets are explained to rounding.
    """

    def __init__(
        self,
        gram: GramRows,
        cross: Array,
        energy: Array,
        barred: Array | None = None,
        *,
        rule: str = "prefit",
        rng: np.random.RandomState | None = None,
        supervised: bool = True,
    ) -> None:
        super().__init__(gram, cross, energy, barred)
        self.rule = PIVOT_RULES[rule]
        self.rng = rng
        self.supervised = supervised
        self.nu = np.array(gram.diagonal, dtype=np.float64)
        self.V = np.empty((0, len(self.nu)))

    def step(self) -> str | None:
        """Choose one atom and orthogonalise the dictionary against it (figure 3)."""
        if self.supervised and self.exhausted():
            return "zero_residual"
        self.usable &= self.nu > self.gram.rank_tolerance * self.gram.diagonal
        if not self.usable.any():
            return "rank"
        nu = np.where(self.usable, self.nu, 1.0)
        scores = self.rule(self.cross, nu, np.where(self.usable, self.gram.diagonal, 1.0), self.rng)
        scores = np.where(self.usable, scores, -np.inf)
        g = first_best(scores)
        if self.supervised and not self._explains(g, scores):
            return "no_gain"
        n = len(self.picks)
        row = self.gram.row(g, scores)
        s = np.sqrt(self.nu[g])
        v = (row - self.V[:n, g] @ self.V[:n]) / s
        v[g] = s
        z = self.cross[:, g] / s
        self.cross -= z[:, None] * v
        self.nu -= v * v
        self._append(n, v)
        self.usable[g] = False
        self._record(g, z)
        return None

    def _append(self, n: int, v: Array) -> None:
        """Store row n of V, doubling the capacity where it is full."""
        if n == len(self.V):
            larger = np.empty((max(32, 2 * n), self.V.shape[1]))
            larger[:n] = self.V
            self.V = larger
        self.V[n] = v

    def factor(self) -> Array:
        """R (n x n), upper triangular, with R'R = G[picks, picks]."""
        n = len(self.picks)
        return np.triu(self.V[:n, self.picks])


class BasicPursuit(_Greedy):
    """Basic matching pursuit (figure 1): no orthogonalisation, an atom may come back.

    `targets` holds the increments alpha_g += <d_g, R> / G[g,g] (eq. 4) in the order of the
    steps, scaled by sqrt(G[g,g]) as in `PivotedFactor`, so that its square is the gain (eq. 5).
    """

    def step(self) -> str | None:
        """Choose the atom most collinear with the residual and update its coefficient."""
        if self.exhausted():
            return "zero_residual"
        if not self.usable.any():
            return "rank"
        diagonal = np.where(self.usable, self.gram.diagonal, 1.0)
        scores = np.where(self.usable, _explained(self.cross, diagonal), -np.inf)
        g = first_best(scores)
        if not self._explains(g, scores):
            return "no_gain"
        increment = self.cross[:, g] / diagonal[g]
        self.cross -= increment[:, None] * self.gram.row(g, scores)
        self._record(g, increment * np.sqrt(diagonal[g]))
        return None

    def factor(self) -> Array:
        """Diagonal of sqrt(G[g,g]), so that solving for the targets gives the increments."""
        return np.diag(np.sqrt(self.gram.diagonal[self.picks]))
