"""The matrix of given functions on given rows: in memory, or computed anew block by block.

Phi[i, j] = f_j(x_i) for n rows and q functions. What a solver asks of it:

=====================  ======================  ==================================================
what                   name in code            result
=====================  ======================  ==================================================
Phi b                  ``times``               (n,)
Phi'v                  ``transposed_times``    (q,)
Phi_S' diag(w) Phi_S   ``gram``                for some functions S
sum_i w_i Phi[i,S]^2   ``squares``             for some functions S
sum_i w_i |Phi[i,:]|   ``absolute_sums``       (q,)
Phi[:, j], j in S      ``columns``             one contiguous column after another
=====================  ======================  ==================================================

`KeptMatrix` stores Phi column by column. `ComputedMatrix` holds a block of rows, or a panel of
columns, at a time; each of the operations above then evaluates the functions once on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit._validation import refuse_not_finite
from pursuit.expansion.basis_functions import AtomSet
from pursuit.linalg import blocks
from pursuit.linalg.factor import add_gram, gram_zeros, mirror

__all__ = ["BasisMatrix", "ComputedMatrix", "KeptMatrix", "basis_matrix"]


class BasisMatrix:
    """Base of the two; a subclass gives blocks of rows and columns.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and of functions.
    """

    shape: tuple[int, int]

    def row_blocks(self, chosen: Array | None = None) -> Iterator[tuple[slice, Array]]:
        """Pairs (rows, values) of some functions, all of them where none are named."""
        raise NotImplementedError

    def columns(self, chosen: Array) -> Iterator[tuple[int, Array]]:
        """Pairs (j, Phi[:, j]) of some functions, in their order; each column is contiguous."""
        raise NotImplementedError

    def times(self, b: Array) -> Array:
        """Phi b."""
        product = np.empty(self.shape[0])
        for rows, block in self.row_blocks():
            product[rows] = block @ b
        return product

    def transposed_times(self, v: Array) -> Array:
        """Phi'v."""
        total = np.zeros(self.shape[1])
        for rows, block in self.row_blocks():
            total += v[rows] @ block
        return total

    def gram(self, weights: Array, chosen: Array, *, whole: bool = True) -> Array:
        """Phi_S' diag(weights) Phi_S, or its upper triangle; rows of weight zero are left out."""
        gram = gram_zeros((len(chosen), len(chosen)))
        for rows, block in self.row_blocks(chosen):
            part = weights[rows]
            if not part.all():
                block, part = block[part != 0], part[part != 0]
            add_gram(gram, block * np.sqrt(part)[:, None])
        if whole:
            mirror(gram)
        return gram

    def squares(self, weights: Array, chosen: Array) -> Array:
        """Sums over the rows of weights times Phi[:, S]^2."""
        total = np.zeros(len(chosen))
        for rows, block in self.row_blocks(chosen):
            total += np.einsum("i,ij,ij->j", weights[rows], block, block)
        return total

    def absolute_sums(self, weights: Array) -> Array:
        """Sums over the rows of weights times |Phi|."""
        total = np.zeros(self.shape[1])
        for rows, block in self.row_blocks():
            total += weights[rows] @ np.abs(block)
        return total


class KeptMatrix(BasisMatrix):
    """Phi in memory.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_functions)
        Phi; a float64 array stored column by column is not copied.
    """

    def __init__(self, values: Array) -> None:
        self.values = np.asfortranarray(values, dtype=np.float64)
        self.shape = self.values.shape

    def row_blocks(self, chosen: Array | None = None) -> Iterator[tuple[slice, Array]]:
        """Views of the rows, copies where functions are named."""
        n_columns = self.shape[1] if chosen is None else len(chosen)
        every = chosen is None or np.array_equal(chosen, np.arange(self.shape[1]))
        for rows in blocks.row_blocks(self.shape[0], 24.0 * n_columns):
            yield rows, self.values[rows] if every else self.values[rows, :][:, chosen]

    def columns(self, chosen: Array) -> Iterator[tuple[int, Array]]:
        """Views of the columns."""
        for j in chosen.tolist():
            yield j, self.values[:, j]

    def times(self, b: Array) -> Array:
        """Phi b in one product."""
        product: Array = self.values @ b
        return product

    def transposed_times(self, v: Array) -> Array:
        """Phi'v in one product."""
        product: Array = v @ self.values
        return product


class ComputedMatrix(BasisMatrix):
    """Phi evaluated anew for each operation.

    Parameters
    ----------
    atoms : AtomSet
        The functions.
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        The rows.
    """

    def __init__(self, atoms: AtomSet, X: Any) -> None:
        self.atoms, self.X = atoms, X
        self.shape = (X.shape[0], len(atoms))

    def row_blocks(self, chosen: Array | None = None) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows within the memory budget."""
        atoms = self.atoms if chosen is None else self.atoms.take(chosen)
        functions = atoms.functions
        for rows in blocks.row_blocks(self.shape[0], 24.0 * len(atoms)):
            yield rows, _evaluated(functions, self.X[rows], len(atoms), rows.start)

    def columns(self, chosen: Array) -> Iterator[tuple[int, Array]]:
        """Panels of columns within the memory budget."""
        for part in blocks.row_blocks(len(chosen), 24.0 * self.shape[0]):
            panel = self._panel(chosen[part])
            for place, j in enumerate(chosen[part].tolist()):
                yield j, panel[:, place]

    def _panel(self, chosen: Array) -> Array:
        """All rows of some columns, stored column by column."""
        panel = np.empty((self.shape[0], len(chosen)), order="F")
        for rows, block in self.row_blocks(chosen):
            panel[rows] = block
        return panel


def basis_matrix(atoms: AtomSet, X: Any) -> BasisMatrix:
    """The functions on the rows, in memory where that is within the budget.

    Parameters
    ----------
    atoms : AtomSet
        The functions.
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        The rows.

    Raises
    ------
    ValueError
        If a value is not finite; the message names the row.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import Atoms
    >>> from pursuit.expansion.design_matrix import basis_matrix
    >>> from pursuit.kernels import Linear
    >>> Phi = basis_matrix(Atoms(Linear(), np.eye(2)), np.array([[3.0, 4.0]]))
    >>> Phi.times(np.array([1.0, 2.0]))
    array([11.])
    """
    computed = ComputedMatrix(atoms, X)
    if not blocks.fits(8.0 * computed.shape[0] * computed.shape[1]):
        return computed
    values = np.empty(computed.shape, order="F")
    for rows, block in computed.row_blocks():
        values[rows] = block
    return KeptMatrix(values)


def _evaluated(functions: blocks.Functions, X: Any, n_columns: int, start: int) -> Array:
    """Values in float64, all finite."""
    values = np.asarray(blocks.evaluate(functions, X, n_columns), dtype=np.float64)
    if not np.isfinite(values.sum()):
        refuse_not_finite(values, start)
    return values
