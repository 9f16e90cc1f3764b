"""Pursuits: a dictionary, targets and a pivot rule, one function after the other.

Problem. Given the Gram matrix G = D'D (M x M) of a dictionary and its products with the targets,
choose atoms one at a time so that few of them explain the targets.

====================  ======================  =================================================
symbol                name in code            shape and meaning
====================  ======================  =================================================
nu[k]                 ``factor.residual``     (M,)  |P_perp d_k|^2; starts at G[k,k]
b[t,k]                ``cross``               (T, M)  <P_perp d_k, y_t>; starts at (D'Y)'
V                     ``factor.V``            (N, M)  V[n] = <q_n, d_k>, q_n the basis
z                                             (N, T)  z[n,t] = <q_n, y_t>
R                                             (N, N)  upper triangular, R = V[:, pivots]
====================  ======================  =================================================

One step of `PivotedFactor` (the orthogonalisation of figure 3 of Vincent and Bengio 2002, written
for G instead of the l x M dictionary matrix):

1. g = the atom that the rule prefers (``pivot_rules.py``)
2. v = the new row of V (``linalg/partial_cholesky.py``), which also lowers nu
3. z = b[g] / sqrt(nu[g]);  b <- b - z v

The coefficients of the n-atom model solve ``R[:n,:n] alpha = z[:n]`` (eq. 6 and 7), and each
step lowers the squared error by |z|^2. R and z of the chosen atoms are taken from G once more at
the end, by a Cholesky factorisation of G[pivots, pivots]; V and b serve the selection.

Under a ridge nu stays larger than the rank test asks; there an exact copy of a chosen atom is
excluded, so that a row of weight 2 and the same row twice give one model. Cost of a step: O(M n)
for an orthogonal rule, O(M) for the basic one, and one row of G.

Panels. Most of that time goes into reading V, or into rows of G where these are computed. A draft
(``drafts.py``) guesses the next pivots, and what they need is formed in one product (``look_ahead``
of ``linalg/partial_cholesky.py``, ``prefetch`` of ``gram_rows.py``). Every step is still taken by
the scores of all atoms: a wrong guess costs time alone.
"""

from __future__ import annotations

import numpy as np

from pursuit._typing import Array
from pursuit.greedy.drafts import DRAFT_ATOMS, draft
from pursuit.greedy.gram_rows import GramRows
from pursuit.greedy.pivot_rules import scores_of
from pursuit.linalg import blocks
from pursuit.linalg.factor import cholesky, solve_transposed
from pursuit.linalg.partial_cholesky import DICTIONARY_RANK, PartialCholesky, first_best

__all__ = ["BasicPursuit", "LeastCorrelated", "PivotedFactor", "Pursuit", "TakesSteps"]

# 1 - cos^2 below which two atoms are copies of each other.
COPY_TOLERANCE = 1e-12
# Numbers of V up to which it stays near the processor, so that a step may read all of it.
LARGEST_NEAR = 1 << 20
# A draft takes the steps among its few atoms, beside those on all. With fewer than so many times
# its atoms, it costs more than it saves.
LEAST_SHARE = 8
# A squared residual below this share of the targets' squared norm is rounding.
ZERO_SHARE = 1e-14


class TakesSteps:
    """What takes one step after another."""

    def extend(self, n_steps: int) -> str | None:
        """Take up to `n_steps` more steps; return why it ended early, or None."""
        for _ in range(n_steps):
            if reason := self.step():
                return reason
        return None

    def step(self) -> str | None:
        """Choose one atom; return why none was chosen, or None."""
        raise NotImplementedError


class Pursuit(TakesSteps):
    """What the pursuits share: the candidates, the targets and what is left of them.

    Parameters
    ----------
    gram : GramRows
        The Gram matrix, ridge included.
    cross : ndarray of shape (n_targets, n_atoms)
        Products of the atoms with the targets.
    target_sq_norm : ndarray of shape (n_targets,)
        Squared norms of the targets.
    excluded : ndarray of bool of shape (n_atoms,), optional
        Atoms that may not be chosen.
    supervised : bool, default=True
        Stop when the targets are explained to rounding.
    """

    rule: str

    def __init__(
        self,
        gram: GramRows,
        cross: Array,
        target_sq_norm: Array,
        excluded: Array | None = None,
        *,
        supervised: bool = True,
    ) -> None:
        self.gram = gram
        self.cross = np.array(cross, dtype=np.float64, order="C")
        self.total = float(target_sq_norm.sum())
        self.gained = 0.0
        self.supervised = supervised
        # An atom that is zero on all rows (after centring) can explain nothing: it is not usable.
        self.factor = PartialCholesky(gram.diagonal, DICTIONARY_RANK, excluded=excluded)
        self.pivots: list[int] = []

    @property
    def n_usable(self) -> int:
        """Number of atoms that may still be chosen."""
        return int(np.count_nonzero(self.factor.usable))

    def step(self) -> str | None:
        """Choose one atom; return why none was chosen, or None."""
        if self.supervised and self.total - self.gained <= ZERO_SHARE * self.total:
            return "zero_residual"
        if not self.factor.usable.any():
            return "rank"
        scores = self._scores()
        g = first_best(scores)
        if self.supervised and not scores[g] > ZERO_SHARE**2 * self.total:
            return "no_gain"
        self._prepare(g, scores)
        row = self.gram.row(g)
        self._choose(g, row, float(scores[g]))
        self._exclude_copies(g, row)
        return None

    def begin(self, functions: Array) -> None:
        """Take these functions first, whatever they gain; those that depend on others stay out."""
        for g in functions:
            if self.factor.usable[g]:
                row = self.gram.row(int(g))
                self._choose(int(g), row, 0.0)
                self._exclude_copies(int(g), row)

    def best_gain(self) -> float:
        """The largest drop in squared error that one atom alone gives; 0 if there is none."""
        return float(scores_of("backfit", self.cross, self.factor).max(initial=0.0))

    def factor_column(self, n: int) -> Array:
        """Column of R of the n-th pivot, (n,), as the steps so far say it."""
        raise NotImplementedError

    def solution(self) -> tuple[Array, Array]:
        """Return R (n x n, upper triangular) and z (n x T); see the top of this module."""
        raise NotImplementedError

    def _scores(self) -> Array:
        """Scores of all atoms by the pivot rule."""
        return scores_of(self.rule, self.cross, self.factor)

    def _choose(self, g: int, row: Array, score: float) -> None:
        """Take atom g, whose row of G and score are given."""
        raise NotImplementedError

    def _prepare(self, g: int, scores: Array) -> None:
        """Bring the row of G of atom g to hand, and those that are likely to be wanted next."""
        if not self.gram.has(g):
            self.gram.prefetch(self._likely(g, scores))

    def _likely(self, g: int, scores: Array) -> Array:
        """Atoms whose rows are likely to be wanted: g, and the others from the best on."""
        few = min(DRAFT_ATOMS, self.n_usable)
        best = np.argpartition(scores, len(scores) - few)[-few:]
        order = best[np.argsort(-scores[best], kind="stable")]
        return np.append(g, order[order != g])

    def _exclude_copies(self, pivot: int, row: Array) -> None:
        """Exclude exact copies of the atom just chosen, which a ridge would tell apart."""
        alpha = self.gram.alpha
        if not np.any(alpha):
            return
        sq_norms = self.gram.diagonal - alpha
        copies = row * row >= (1.0 - COPY_TOLERANCE) * sq_norms[pivot] * sq_norms
        copies[pivot] = False
        self.factor.exclude(copies)


class PivotedFactor(Pursuit):
    """Partial Cholesky factorisation with pivots by an orthogonal rule.

    Parameters
    ----------
    gram, cross, target_sq_norm, excluded, supervised
        See `Pursuit`.
    rule : {"prefit", "backfit", "residual"}, default="prefit"
        A key of `pursuit.greedy.pivot_rules.PIVOT_RULES`.
    """

    def __init__(
        self,
        gram: GramRows,
        cross: Array,
        target_sq_norm: Array,
        excluded: Array | None = None,
        *,
        rule: str = "prefit",
        supervised: bool = True,
    ) -> None:
        super().__init__(gram, cross, target_sq_norm, excluded, supervised=supervised)
        self.rule = rule
        self.pivots = self.factor.pivots
        self.initial_cross = cross
        self.gram_entries: list[Array] = []

    def extend(self, n_steps: int) -> str | None:
        """Take up to `n_steps` more steps; return why it ended early, or None."""
        self.factor.reserve(min(n_steps, self.n_usable))
        # Many small products: threads would spend their time waiting for each other.
        with blocks.blas_threads(0):
            return super().extend(n_steps)

    def _choose(self, g: int, row: Array, score: float) -> None:
        """Orthogonalise the dictionary against atom g (figure 3)."""
        z = self.cross[:, g] / np.sqrt(self.factor.residual[g])
        v = self.factor.pivot(g, row)
        self.cross -= z[:, None] * v
        self.gained += float(z @ z)
        self.gram_entries.append(row[self.pivots])

    def _prepare(self, g: int, scores: Array) -> None:
        """Look ahead where V is read from memory, and where rows of G have to be computed."""
        if self.gram.has(g) and not (self._reads_memory() and not self.factor.foresees(g)):
            return
        likely = self._likely(g, scores)
        self.gram.prefetch(likely)
        panel = np.array([k for k in likely[: self.gram.panel] if self.gram.has(k)])
        self.factor.look_ahead(panel, np.array([self.gram.row(k) for k in panel]))

    def _reads_memory(self) -> bool:
        """Whether steps read V from memory, by more than a draft would."""
        many = len(self.gram.diagonal) >= LEAST_SHARE * DRAFT_ATOMS
        return many and self.gram.shareable and self.factor.V.size >= LARGEST_NEAR

    def _likely(self, g: int, scores: Array) -> Array:
        """g, the atoms of a draft of the next steps, and the others from the best on."""
        best = super()._likely(g, scores)
        ahead = draft(self.gram, self.factor, self.cross, self.rule, np.sort(best))
        first = np.append(g, ahead[ahead != g])
        return np.concatenate([first, best[~np.isin(best, first)]])

    def factor_column(self, n: int) -> Array:
        """Column of R of the n-th pivot."""
        return self.factor.factor_column(n)

    def solution(self) -> tuple[Array, Array]:
        """Return R with R'R = G[pivots, pivots] and z = R^{-T} b[pivots].

        The pivots from where G[pivots, pivots] is not positive definite to rounding are dropped.
        """
        n = len(self.pivots)
        block = np.zeros((n, n))
        for i, entries in enumerate(self.gram_entries):
            block[i, : i + 1] = entries
        factor = cholesky(block)
        del self.pivots[len(factor) :]
        return factor, solve_transposed(factor, self.initial_cross[:, self.pivots].T)


class BasicPursuit(Pursuit):
    """Basic matching pursuit (figure 1): no orthogonalisation, an atom may come back.

    z holds the increments alpha_g += <d_g, R> / G[g,g] (eq. 4) in the order of the steps,
    scaled by sqrt(G[g,g]), so that its square is the gain (eq. 5) and R is diagonal.
    """

    rule = "basic"

    def __init__(
        self,
        gram: GramRows,
        cross: Array,
        target_sq_norm: Array,
        excluded: Array | None = None,
        *,
        supervised: bool = True,
    ) -> None:
        super().__init__(gram, cross, target_sq_norm, excluded, supervised=supervised)
        self.targets: list[Array] = []

    def _choose(self, g: int, row: Array, score: float) -> None:
        """Update the coefficient of atom g."""
        norm = self.gram.diagonal[g]
        increment = self.cross[:, g] / norm  # eq. 4
        self.cross -= increment[:, None] * row
        self.pivots.append(g)
        self.targets.append(increment * np.sqrt(norm))
        self.gained += score

    def factor_column(self, n: int) -> Array:
        """Column of the diagonal R of the n-th pivot."""
        column = np.zeros(n)
        column[-1] = np.sqrt(self.gram.diagonal[self.pivots[n - 1]])
        return column

    def solution(self) -> tuple[Array, Array]:
        """Return diag(sqrt(G[g,g])) and the scaled increments."""
        factor = np.diag(np.sqrt(self.gram.diagonal[self.pivots]))
        return factor, np.array(self.targets).reshape(-1, len(self.cross))


class LeastCorrelated(Pursuit):
    """The atom that resembles those chosen least: CORR of Kovacs and Kocsor (2006).

    With cos(d_k, d_l)^2 = G[k,l]^2 / (G[k,k] G[l,l]), the squared correlation where the atoms
    have mean zero, the next atom is that with the smallest sum over the chosen ones. All sums
    are empty at the start; the first atom is the longest one.

    Parameters
    ----------
    gram : GramRows
        The Gram matrix.
    """

    rule = "correlation"

    def __init__(self, gram: GramRows) -> None:
        n_atoms = len(gram.diagonal)
        super().__init__(gram, np.zeros((1, n_atoms)), np.zeros(1), supervised=False)
        self.sums = np.zeros(n_atoms)

    def _scores(self) -> Array:
        """Minus the sums; at first the squared lengths."""
        return scores_of(self.rule if self.pivots else "residual", self.sums, self.factor)

    def _choose(self, g: int, row: Array, score: float) -> None:
        """Add the squared correlations with atom g to the sums."""
        sq_norms = np.where(self.factor.usable, self.gram.diagonal, np.inf)
        self.sums += row * row / (self.gram.diagonal[g] * sq_norms)
        self.pivots.append(g)
        self.factor.exclude(np.array([g]))
