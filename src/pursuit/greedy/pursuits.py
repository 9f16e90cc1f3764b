"""The greedy pivoted factorisation behind every method here, and its pivot rules.

Given the Gram matrix G = D'D (M x M) of a dictionary and its products with the targets,
choose atoms one at a time: a partial Cholesky factorisation of G whose pivot a rule picks.

====================  =============  ==========================================================
symbol                name in code   shape and meaning
====================  =============  ==========================================================
nu[k]                 ``nu``         (M,)  |P_perp d_k|^2; starts at G[k,k]
b[k,t]                ``cross``      (T, M)  <P_perp d_k, y_t>; starts at (D'Y)'
V                     ``V``          (N, M)  V[n] = <q_n, d_k>, q_n the orthonormal basis
z                     ``z``          (N, T)  z[n,t] = <q_n, y_t>
R                     ``factor``     (N, N)  upper triangular, R = V[:, picks]
====================  =============  ==========================================================

One step with pivot g (the orthogonalisation of figure 3 of Vincent and Bengio 2002, written
for G instead of the l x M dictionary matrix):

1. s = sqrt(nu[g]);  v = (G[g,:] - V[:n,g]' V[:n]) / s
2. z = b[g] / s;  b <- b - z v;  nu <- nu - v^2;  append v to V and z to the targets

The coefficients of the n-atom model solve ``R[:n,:n] alpha = z[:n]`` (eq. 6 and 7), and each
step lowers the squared error by |z|^2.

R and z of the chosen atoms are taken from G once more at the end, by a Cholesky factorisation
of G[picks, picks]; V and b serve the selection. All of it is float64: with V in single
precision b drifts, and after some hundred steps the residual seems to be gone.

Pivot rules, all "argmax over the usable atoms" (those that are not usable have nu = G = inf):

====================  =======================  ================================================
``prefit``            sum_t b^2 / nu           eq. 7, figure 3; orthogonal least squares
``backfit``           sum_t b^2 / G[k,k]       eq. 3 and 6; orthogonal matching pursuit
``basic``             sum_t b^2 / G[k,k]       eq. 3-5, figure 1; no orthogonalisation
``residual``          nu                       pivoted Cholesky, pivoted Gram-Schmidt
``random``            log nu + Gumbel noise    draws in proportion to nu (RPCholesky)
`LeastCorrelated`     - sum_l cos(d_k, d_l)^2  l over the chosen atoms; no orthogonalisation; the
                                               first is the longest
====================  =======================  ================================================

An atom with ``nu[k] <= 1e-6 G[k,k]``, a thousandth of its length outside the span of those
chosen, counts as a combination of them and is never used: its coefficients would be a thousand
times too large for anything that stores the model in single precision, and on held-out rows
such atoms did harm in every trial. Under a ridge nu stays larger than that; there an exact
copy of a chosen atom is barred, so that a row of weight 2 and the same row twice give one
model. Scores within 1e-10 (relative) of the best count as ties; the lowest index wins. Cost of
a step: O(M n) for an orthogonal rule, O(M) for the basic one, and one row of G.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from pursuit._typing import Array
from pursuit.linalg.factor import cholesky, solve_transposed
from pursuit.linalg.partial_cholesky import DICTIONARY_RANK, first_best

__all__ = [
    "PIVOT_RULES",
    "BasicPursuit",
    "GramRows",
    "LeastCorrelated",
    "PivotedFactor",
    "explained",
    "with_room",
]

COPY_TOLERANCE = 1e-12
# A draft takes so many steps among so many of the best atoms.
DRAFT_STEPS, DRAFT_ATOMS = 64, 512
# A squared residual below this share of the targets' squared norm is rounding.
ZERO_ENERGY = 1e-14


class GramRows(Protocol):
    """Access to G = D'D without saying how it is stored."""

    @property
    def diagonal(self) -> Array:
        """Diagonal of G."""

    @property
    def alpha(self) -> float:
        """Ridge, already added to the diagonal."""

    def has(self, index: int) -> bool:
        """Whether row `index` is at hand."""

    def block(self, atoms: Array) -> Array:
        """Rows and columns `atoms` of G."""

    def row(self, index: int, scores: Array) -> Array:
        """Row `index` of G; `scores` tells which rows are likely to be wanted next."""


class SmallGram:
    """A G held in memory."""

    def __init__(self, gram: Array) -> None:
        self.gram = gram
        self.diagonal = gram.diagonal()
        self.alpha = 0.0

    def has(self, index: int) -> bool:
        """Whether row `index` is at hand: always."""
        return True

    def block(self, atoms: Array) -> Array:
        """Rows and columns `atoms`."""
        block: Array = self.gram[np.ix_(atoms, atoms)]
        return block

    def row(self, index: int, scores: Array) -> Array:
        """Row `index`."""
        # G is symmetric, and stored column by column where it is large.
        row: Array = self.gram[:, index]
        return row


Rule = Callable[[Array, Array, Array, np.random.RandomState | None], Array]


def explained(cross: Array, norms: Array) -> Array:
    """Drop in squared error, sum_t b^2 / norm."""
    squares = cross[0] * cross[0] if len(cross) == 1 else (cross * cross).sum(axis=0)
    drops: Array = squares / norms
    return drops


def _prefit(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    return explained(cross, nu)


def _backfit(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    return explained(cross, diagonal)


def _residual(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    return np.where(np.isinf(nu), -np.inf, nu)


def _random(cross: Array, nu: Array, diagonal: Array, rng: np.random.RandomState | None) -> Array:
    if rng is None:
        raise ValueError("the random pivot rule needs a random state")
    return np.where(np.isinf(nu), -np.inf, np.log(nu) + rng.gumbel(size=nu.shape))


PIVOT_RULES: dict[str, Rule] = {
    "prefit": _prefit,
    "backfit": _backfit,
    "residual": _residual,
    "random": _random,
}


def with_room(V: Array, n: int) -> Array:
    """`V`, or where its n rows are full an array of twice as many that begins with them."""
    if n < len(V):
        return V
    larger = np.empty((max(32, 2 * n), V.shape[1]))
    larger[:n] = V
    return larger


class _Greedy:
    """What the two pursuits share: picks and the energy left.

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
        self.gained = 0.0
        # An atom that is zero on all rows (after centring) can explain nothing.
        usable = gram.diagonal > 0
        if barred is not None:
            usable &= ~barred
        self.diagonal = np.where(usable, gram.diagonal, np.inf)
        self.n_usable = int(usable.sum())

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

    def factor_column(self, n: int) -> Array:
        """Column of R of the n-th pick, (n,), as the steps so far say it."""
        raise NotImplementedError

    def solution(self) -> tuple[Array, Array]:
        """Return R (n x n, upper triangular) and z (n x T); see the top of this module."""
        raise NotImplementedError

    def _exhausted(self) -> bool:
        """Whether the residual is zero to rounding."""
        return self.total - self.gained <= ZERO_ENERGY * self.total

    def _explains(self, score: float) -> bool:
        """Whether the best atom lowers the error at all."""
        return score > ZERO_ENERGY**2 * self.total

    def _bar(self, atoms: Array | int) -> None:
        """Make atoms unusable."""
        self.diagonal[atoms] = np.inf
        self.n_usable -= np.size(atoms)

    def _bar_copies(self, pivot: int, row: Array) -> None:
        """Bar exact copies of the atom just chosen, which a ridge would tell apart."""
        alpha = self.gram.alpha
        if not alpha:
            return
        norms = self.gram.diagonal - alpha
        cosine_bound = (1.0 - COPY_TOLERANCE) * norms[pivot] * norms
        copies = (row * row >= cosine_bound) & np.isfinite(self.diagonal)
        copies[pivot] = False
        if copies.any():
            self._bar(np.flatnonzero(copies))


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
        self.nu = self.diagonal.copy()
        self.threshold = DICTIONARY_RANK * gram.diagonal
        self.V = np.empty((0, len(self.nu)))
        self.initial_cross = cross
        self.gram_entries: list[Array] = []

    def step(self) -> str | None:
        """Choose one atom and orthogonalise the dictionary against it (figure 3)."""
        if self.supervised and self._exhausted():
            return "zero_residual"
        if not self.n_usable:
            return "rank"
        scores = self.rule(self.cross, self.nu, self.diagonal, self.rng)
        g = first_best(scores)
        if self.supervised and not self._explains(float(scores[g])):
            return "no_gain"
        n = len(self.picks)
        row = self.gram.row(g, scores if self.gram.has(g) else self._likely(scores))
        s = np.sqrt(self.nu[g])
        v = (row - self.V[:n, g] @ self.V[:n]) / s
        v[g] = s
        z = self.cross[:, g] / s
        self.cross -= z[:, None] * v
        self.nu -= v * v
        self._append(g, v, row)
        self.gained += float(z @ z)
        self._bar(g)
        self._bar_copies(g, row)
        self._bar_dependent()
        return None

    def _likely(self, scores: Array) -> Array:
        """Scores with the atoms of a draft of the next steps first.

        The draft is the pursuit itself on the few best atoms, with their residual Gram matrix
        G - V'V. The best scores alone would not do: they belong to atoms that resemble each
        other, of which one will be chosen.
        """
        if self.rng is not None:
            return scores
        few = min(DRAFT_ATOMS, self.n_usable)
        best = np.argpartition(scores, len(scores) - few)[-few:]
        active = np.sort(best[np.isfinite(self.nu[best])])
        V = self.V[: len(self.picks), active]
        draft = PivotedFactor(
            SmallGram(self.gram.block(active) - V.T @ V), self.cross[:, active], np.zeros(1)
        )
        draft.rule, draft.supervised = self.rule, False
        draft.nu, draft.diagonal = self.nu[active], self.diagonal[active]
        draft.threshold = self.threshold[active]
        draft.extend(DRAFT_STEPS)
        likely = np.array(scores)
        likely[active[draft.picks]] = scores.max() + np.arange(len(draft.picks), 0, -1)
        return likely

    def factor_column(self, n: int) -> Array:
        """Column of R of the n-th pick."""
        return self.V[:n, self.picks[n - 1]]

    def _append(self, g: int, v: Array, row: Array) -> None:
        """Store v as a row of V."""
        n = len(self.picks)
        self.V = with_room(self.V, n)
        self.V[n] = v
        self.picks.append(g)
        self.gram_entries.append(row[self.picks])

    def _bar(self, atoms: Array | int) -> None:
        """Make atoms unusable."""
        super()._bar(atoms)
        self.nu[atoms] = np.inf

    def _bar_dependent(self) -> None:
        """Bar the atoms that are numerically combinations of those chosen."""
        dependent = self.nu <= self.threshold
        if dependent.any():
            self._bar(np.flatnonzero(dependent))

    def solution(self) -> tuple[Array, Array]:
        """Return R with R'R = G[picks, picks] and z = R^{-T} b[picks].

        The picks from where G[picks, picks] is not positive definite to rounding are dropped.
        """
        n = len(self.picks)
        block = np.zeros((n, n))
        for i, entries in enumerate(self.gram_entries):
            block[i, : i + 1] = entries
        factor = cholesky(block)
        del self.picks[len(factor) :]
        return factor, solve_transposed(factor, self.initial_cross[:, self.picks].T)


class BasicPursuit(_Greedy):
    """Basic matching pursuit (figure 1): no orthogonalisation, an atom may come back.

    z holds the increments alpha_g += <d_g, R> / G[g,g] (eq. 4) in the order of the steps,
    scaled by sqrt(G[g,g]), so that its square is the gain (eq. 5) and R is diagonal.
    """

    def __init__(
        self,
        gram: GramRows,
        cross: Array,
        energy: Array,
        barred: Array | None = None,
        *,
        supervised: bool = True,
    ) -> None:
        super().__init__(gram, cross, energy, barred)
        self.supervised = supervised
        self.targets: list[Array] = []

    def step(self) -> str | None:
        """Choose the atom most collinear with the residual and update its coefficient."""
        if self.supervised and self._exhausted():
            return "zero_residual"
        if not self.n_usable:
            return "rank"
        scores = explained(self.cross, self.diagonal)
        g = first_best(scores)
        if self.supervised and not self._explains(float(scores[g])):
            return "no_gain"
        increment = self.cross[:, g] / self.diagonal[g]
        row = self.gram.row(g, scores)
        self.cross -= increment[:, None] * row
        self.picks.append(g)
        self.targets.append(increment * np.sqrt(self.diagonal[g]))
        self.gained += float(scores[g])
        self._bar_copies(g, row)
        return None

    def factor_column(self, n: int) -> Array:
        """Column of the diagonal R of the n-th pick."""
        column = np.zeros(n)
        column[-1] = np.sqrt(self.gram.diagonal[self.picks[n - 1]])
        return column

    def solution(self) -> tuple[Array, Array]:
        """Return diag(sqrt(G[g,g])) and the scaled increments."""
        factor = np.diag(np.sqrt(self.gram.diagonal[self.picks]))
        return factor, np.array(self.targets).reshape(-1, len(self.cross))


class LeastCorrelated(_Greedy):
    """The atom that resembles those chosen least: CORR of Kovacs and Kocsor (2006).

    With cos(d_k, d_l)^2 = G[k,l]^2 / (G[k,k] G[l,l]), the squared correlation where the atoms
    have mean zero, the next atom is that with the smallest sum over the chosen ones. All sums
    are empty at the start; the first atom is the longest one.

    Parameters
    ----------
    gram : GramRows
        The Gram matrix.
    """

    def __init__(self, gram: GramRows) -> None:
        n_atoms = len(gram.diagonal)
        super().__init__(gram, np.zeros((1, n_atoms)), np.zeros(1))
        self.sums = np.zeros(n_atoms)

    def step(self) -> str | None:
        """Choose one atom and add its squared correlations to the sums."""
        if not self.n_usable:
            return "rank"
        scores = -self.sums if self.picks else self.diagonal
        scores = np.where(np.isinf(self.diagonal), -np.inf, scores)
        g = first_best(scores)
        row = self.gram.row(g, scores)
        with np.errstate(invalid="ignore"):
            self.sums += row * row / (self.gram.diagonal[g] * self.diagonal)
        self.picks.append(g)
        self._bar(g)
        return None
