"""Rows of the Gram matrix G = D'D, held in memory or computed in panels when asked for.

A pursuit reads one row a step. Where rows are computed, a pass over the dictionary that gives one
row could give many at the speed of a matrix product; which others will be wanted only the pursuit
can say, and it does so with `GramRows.prefetch`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.penalty import IDENTITY, Penalty
from pursuit.linalg import blocks

__all__ = ["KEPT_PANEL", "PANEL", "GramRows", "LazyGram", "SmallGram", "Values", "own_ridge"]

# Rows that are computed in one pass: few where values are read from memory, many where each pass
# evaluates them anew.
KEPT_PANEL, PANEL = 16, 64


class GramRows(Protocol):
    """Access to G without saying how it is stored."""

    @property
    def diagonal(self) -> Array:
        """Diagonal of G."""

    @property
    def alpha(self) -> float | Array:
        """What the ridge has added to each entry of the diagonal, and to nothing else."""

    @property
    def shareable(self) -> bool:
        """Whether all of it is at hand, for several pursuits at once."""

    @property
    def panel(self) -> int:
        """As many rows as one pass gives."""

    def has(self, index: int) -> bool:
        """Whether row `index` is at hand."""

    def prefetch(self, atoms: Array) -> None:
        """Bring rows to hand: the first, and as many of the next as one pass gives."""

    def row(self, index: int) -> Array:
        """Row `index` of G."""

    def among(self, atoms: Array) -> GramRows:
        """G of some atoms alone, for a draft."""


def own_ridge(alpha: float, penalty: Penalty, n_atoms: int) -> float | Array:
    """What a ridge adds to the diagonal alone: nothing where it tells copies from each other."""
    if not penalty.diagonal_only:
        return 0.0
    return alpha if penalty.is_identity else alpha * penalty.diagonal(n_atoms)


class SmallGram:
    """A G held in memory.

    Parameters
    ----------
    gram : ndarray of shape (M, M)
        G, ridge included.
    diagonal : ndarray of shape (M,), optional
        Its diagonal, with zeros where an atom counts as zero.
    alpha : float or ndarray of shape (M,), default=0.0
        The ridge, where that is on the diagonal alone.
    """

    # Several pursuits may read it at once.
    shareable = True
    panel = KEPT_PANEL

    def __init__(
        self, gram: Array, diagonal: Array | None = None, alpha: float | Array = 0.0
    ) -> None:
        self.gram = gram
        self.diagonal = gram.diagonal() if diagonal is None else diagonal
        self.alpha = alpha

    def has(self, index: int) -> bool:
        """Whether row `index` is at hand: always."""
        return True

    def prefetch(self, atoms: Array) -> None:
        """Nothing to do."""

    def row(self, index: int) -> Array:
        """Row `index`."""
        # G is symmetric, and stored column by column where it is large.
        row: Array = self.gram[:, index]
        return row

    def block(self, atoms: Array) -> Array:
        """Rows and columns `atoms`."""
        block: Array = self.gram[np.ix_(atoms, atoms)]
        return block

    def among(self, atoms: Array) -> PartOfGram:
        """Rows and columns `atoms`, read when they are asked for."""
        return PartOfGram(self, atoms)


@dataclass(frozen=True)
class PartOfGram:
    """Some rows and columns of a G in memory, never gathered as a whole.

    Attributes
    ----------
    whole : SmallGram
        G.
    atoms : ndarray of int
        Which.
    """

    whole: SmallGram
    atoms: Array
    # Copies of an atom count as atoms in a draft.
    alpha: float = 0.0
    shareable: bool = True
    panel: int = KEPT_PANEL

    @property
    def diagonal(self) -> Array:
        """The diagonal of this part."""
        diagonal: Array = self.whole.diagonal[self.atoms]
        return diagonal

    def has(self, index: int) -> bool:
        """Whether row `index` is at hand: always."""
        return True

    def prefetch(self, atoms: Array) -> None:
        """Nothing to do."""

    def row(self, index: int) -> Array:
        """Row `index` among the atoms."""
        row: Array = self.whole.row(self.atoms[index])[self.atoms]
        return row

    def among(self, atoms: Array) -> PartOfGram:
        """A part of this part."""
        return PartOfGram(self.whole, self.atoms[atoms])


class Values(Protocol):
    """The dictionary on the training rows, weighted, block by block."""

    @property
    def kept(self) -> bool:
        """Whether a further pass reads values from memory."""

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Pairs (rows, values of all atoms)."""

    def among(self, atoms: Array) -> Iterator[Array]:
        """Values of some atoms."""


class LazyGram:
    """Rows of G computed in panels when asked for (direct route).

    Parameters
    ----------
    values : WeightedValues
        The dictionary on the training rows.
    atom_sum : ndarray of shape (n_atoms,) or None
        c / sqrt(W), subtracted with an intercept.
    diagonal : ndarray of shape (n_atoms,)
        Diagonal of G, ridge included.
    alpha : float
        Ridge.
    penalty : Penalty, optional
        P of the ridge.
    """

    shareable = False

    def __init__(
        self,
        values: Values,
        atom_sum: Array | None,
        diagonal: Array,
        alpha: float,
        penalty: Penalty = IDENTITY,
    ) -> None:
        self._values = values
        self._ridge, self._penalty = alpha, penalty
        self._atom_sum = atom_sum
        self._rows: dict[int, Array] = {}
        self.diagonal = diagonal
        self.alpha = own_ridge(alpha, penalty, len(diagonal))
        self.panel = KEPT_PANEL if values.kept else PANEL

    def has(self, index: int) -> bool:
        """Whether row `index` is at hand."""
        return index in self._rows

    def prefetch(self, atoms: Array) -> None:
        """Compute the first rows of `atoms` that are not at hand, a panel of them, in one pass."""
        self._forget()
        panel = np.array([atom for atom in atoms.tolist() if atom not in self._rows][: self.panel])
        self._rows.update(zip(panel.tolist(), self._compute(panel), strict=True))

    def row(self, index: int) -> Array:
        """Row `index` of G."""
        if index not in self._rows:
            self.prefetch(np.array([index]))
        return self._rows[index]

    def block(self, atoms: Array) -> Array:
        """Rows and columns `atoms` of G, from a pass over these atoms alone."""
        return self._block(atoms, np.float64)

    def among(self, atoms: Array) -> SmallGram:
        """Rows and columns `atoms`, computed now in single precision."""
        return SmallGram(self._block(atoms, np.float32))

    def _block(self, atoms: Array, dtype: Any) -> Array:
        """Rows and columns `atoms` of G, from products in a type."""
        block = np.zeros((len(atoms), len(atoms)))
        for values in self._values.among(atoms):
            part = values.astype(dtype, copy=False)
            block += part.T @ part
        if self._atom_sum is not None:
            block -= np.outer(self._atom_sum[atoms], self._atom_sum[atoms])
        if self._ridge:
            block += self._ridge * self._penalty.block(atoms)
        return block

    def _compute(self, panel: Array) -> Array:
        """Rows of G for the atoms of the panel, one blocked pass over the data."""
        rows = np.zeros((len(panel), len(self.diagonal)))
        parts = blocks.even_slices(rows.shape[1], rows.shape[1])
        for _, block in self._values:
            left = block.T[panel]

            def add(part: slice, block: Array = block, left: Array = left) -> None:
                rows[:, part] += left @ block[:, part]

            large = 2.0 * left.size * rows.shape[1] >= blocks.SMALLEST_THREADED
            blocks.in_parallel(add, parts, parallel=large)
        if self._atom_sum is not None:
            rows -= np.outer(self._atom_sum[panel], self._atom_sum)
        if self._ridge:
            rows += self._ridge * self._penalty.rows(panel, len(self.diagonal))
        return rows

    def _forget(self) -> None:
        """Drop the oldest panel's rows while the kept ones outgrow the memory budget."""
        row_bytes = 8 * len(self.diagonal)
        while self._rows and not blocks.fits(2 * row_bytes * (len(self._rows) + self.panel)):
            for atom in list(self._rows)[: self.panel]:
                del self._rows[atom]
