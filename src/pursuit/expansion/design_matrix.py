"""The matrix of given functions on given rows: in memory, or computed anew block by block.

For n rows and q functions, with optional weights, shift and factor,

    Phi = diag(root) (F - 1 shift') R^{-1},    F[i, j] = f_j(x_i).

=========================  =======================  =============================================
what                       name in code             result
=========================  =======================  =============================================
Phi b                      ``matvec``               (n,), or (n, T) for b of shape (q, T)
Phi'v                      ``rmatvec``              (q,), or (q, T) for v of shape (n, T)
Phi_S' diag(w) Phi_S       ``gram``                 for some functions S
sum_i w_i Phi[i, S]^2      ``diagonal``             the diagonal of that
sum_i w_i |Phi[i, :]|      ``absolute_sums``        (q,)
Phi[:, S]                  ``columns``              (n, n_S)
Phi[:, j], j in S          ``each_column``          one contiguous column after another
blocks of rows             ``row_blocks``           pairs (rows, Phi[rows, S])
blocks of columns          ``column_blocks``        pairs (columns, Phi[:, columns])
all of Phi                 ``toarray``              (n, q)
=========================  =======================  =============================================

The products are named as those of `scipy.sparse.linalg.LinearOperator`. Where n q numbers fit in
scikit-learn's ``working_memory`` they are evaluated once and kept in `DesignMatrix.values`; else
each of the operations above evaluates the functions once on all rows, a block of rows or a panel
of columns at a time. Results differ by rounding only. Everything is float64, whatever the
functions return.

A triangular R stays out of the kept values: the products apply it to the shorter side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy.linalg.blas import dsymv

from pursuit._typing import Array
from pursuit._validation import refuse_not_finite
from pursuit.linalg import blocks
from pursuit.linalg.factor import (
    add_gram,
    gram_zeros,
    mirror,
    solve_right,
    solve_transposed,
    solve_upper,
)

__all__ = ["DesignMatrix", "FunctionSet", "PlainFunctions"]

# Bytes that an entry of a block may take: its value, a weighted copy, and what evaluating it takes.
ENTRY_BYTES = 24.0


class FunctionSet(Protocol):
    """What is read of an `AtomSet`."""

    def __len__(self) -> int:
        """Number of functions."""

    @property
    def functions(self) -> Callable[[Any], Array]:
        """Rows to the array of shape (n, q)."""

    def subset(self, indices: Array) -> Callable[[Any], Array]:
        """The same for some of the functions."""


@dataclass(frozen=True)
class PlainFunctions:
    """A callable from rows to an array of shape (n, n_functions)."""

    functions: Callable[[Any], Array]
    n_functions: int

    def __len__(self) -> int:
        """Number of functions."""
        return self.n_functions

    def subset(self, indices: Array) -> Callable[[Any], Array]:
        """Columns of all values."""
        return lambda X: self.functions(X)[:, indices]


class DesignMatrix:
    """Phi; see the top of this module.

    Parameters
    ----------
    atoms : FunctionSet or None
        The functions, such as an `AtomSet`. None: `X` holds their values F, and is kept.
    X : {ndarray, CSR matrix} of shape (n, n_features)
        The rows; column indices for a precomputed kernel are the atoms' business.
    roots : ndarray of shape (n,), optional
        Factors of the rows, such as the roots of their weights.
    shift : ndarray of shape (q,), optional
        What is subtracted from each function, such as its mean.
    factor : ndarray of shape (q,) or (q, q), optional
        R: divisors of the columns, or an upper triangular matrix.
    keep : bool, default True
        Whether the values may be kept.
    order : {"F", "C"}, default "F"
        How they are stored: column by column, or row by row.
    symmetric : bool, default False
        Whether F is a symmetric matrix without roots, shift and factor: products with a vector then
        read half of what is kept.

    Attributes
    ----------
    shape : tuple of int
        (n, q).
    values : ndarray of shape (n, q) or None
        Phi R, or Phi where R is diagonal; None where it is computed.

    Raises
    ------
    ValueError
        If a value is not finite; the message names the row. Where nothing is kept, the first
        operation that meets the value raises it.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import Atoms
    >>> from pursuit.expansion.design_matrix import DesignMatrix
    >>> from pursuit.kernels import Linear
    >>> Phi = DesignMatrix(Atoms(Linear(), np.eye(2)), np.array([[3.0, 4.0]]))
    >>> Phi.matvec(np.array([1.0, 2.0])), Phi.rmatvec(np.array([10.0]))
    (array([11.]), array([30., 40.]))
    """

    def __init__(
        self,
        atoms: FunctionSet | None,
        X: Any,
        *,
        roots: Array | None = None,
        shift: Array | None = None,
        factor: Array | None = None,
        keep: bool = True,
        order: Literal["F", "C"] = "F",
        symmetric: bool = False,
    ) -> None:
        self.atoms, self.X = atoms, X
        self.roots, self.shift = roots, shift
        self.divisors = factor if factor is not None and factor.ndim == 1 else None
        self.factor = factor if factor is not None and factor.ndim == 2 else None
        self.order: Literal["F", "C"] = order
        self.symmetric = symmetric
        self._functions = None if atoms is None else atoms.functions
        self.shape: tuple[int, int] = (X.shape[0], X.shape[1] if atoms is None else len(atoms))
        self.values: Array | None = None
        if atoms is None or (keep and blocks.fits(8.0 * self.shape[0] * self.shape[1])):
            self.values = self._assembled(None)

    @property
    def kept(self) -> bool:
        """Whether the values are in memory."""
        return self.values is not None

    def matvec(self, b: Array) -> Array:
        """Phi b."""
        if self.factor is not None:
            b = solve_upper(self.factor, b)
        if self.values is not None:
            if self.symmetric and b.ndim == 1:
                return np.asarray(dsymv(1.0, self._columnwise, b))
            return np.asarray(self.values @ b)
        product = np.empty((self.shape[0], *b.shape[1:]))
        for rows, block in self._blocks(None):
            product[rows] = block @ b
        return product

    def rmatvec(self, v: Array) -> Array:
        """Phi'v."""
        if self.values is not None:
            if self.symmetric:
                return self.matvec(v)
            product = self.values.T @ v
        else:
            product = np.zeros((self.shape[1], *v.shape[1:]))
            for rows, block in self._blocks(None):
                product += block.T @ v[rows]
        return product if self.factor is None else solve_transposed(self.factor, product)

    def gram(
        self, weights: Array | None = None, chosen: Array | None = None, *, whole: bool = True
    ) -> Array:
        """Phi_S' diag(weights) Phi_S of some functions, all of them where none are named.

        Parameters
        ----------
        weights : ndarray of shape (n,), optional
            Of either sign; rows of weight zero, of which the hinge losses have many, are left out.
        chosen : ndarray of int, optional
            S.
        whole : bool, default True
            False: the upper triangle will do.
        """
        if self.factor is not None:
            half = solve_transposed(self.factor, self._gram(weights, None, whole=True))
            gram = solve_transposed(self.factor, half.T)
            return gram if chosen is None else gram[np.ix_(chosen, chosen)]
        return self._gram(weights, chosen, whole=whole)

    def _gram(self, weights: Array | None, chosen: Array | None, *, whole: bool) -> Array:
        """The same without R; a symmetric update where no weight is negative."""
        n_columns = self.shape[1] if chosen is None else len(chosen)
        gram = gram_zeros((n_columns, n_columns))
        roots = None if weights is None or (weights < 0).any() else np.sqrt(weights)
        for rows, block in self._blocks(chosen):
            if weights is not None and roots is None:
                gram += block.T @ (weights[rows, None] * block)
                continue
            if roots is not None:
                used = np.flatnonzero(roots[rows])
                part = block if len(used) == len(block) else block[used]
                block = part * roots[rows][used, None]
            add_gram(gram, block)
        if whole:
            mirror(gram)
        return gram

    def diagonal(self, weights: Array | None = None, chosen: Array | None = None) -> Array:
        """Sums over the rows of weights times Phi[:, S]^2."""
        ones = np.ones(self.shape[0]) if weights is None else weights
        total = np.zeros(self.shape[1] if chosen is None else len(chosen))
        for rows, block in self.row_blocks(chosen):
            total += np.einsum("i,ij,ij->j", ones[rows], block, block)
        return total

    def absolute_sums(self, weights: Array) -> Array:
        """Sums over the rows of weights times |Phi|."""
        total = np.zeros(self.shape[1])
        for rows, block in self.row_blocks():
            total += weights[rows] @ np.abs(block)
        return total

    def columns(self, chosen: Array) -> Array:
        """Phi[:, S], (n, n_chosen)."""
        if self.factor is not None:
            return np.vstack([block for _, block in self.row_blocks(chosen)])
        return self._assembled(chosen) if self.values is None else self.values[:, chosen]

    def each_column(self, chosen: Array) -> Iterator[tuple[int, Array]]:
        """Pairs (j, Phi[:, j]) of some functions, in their order; each column is contiguous."""
        if self.values is not None and self.factor is None and self.order == "F":
            for j in chosen.tolist():
                yield j, self.values[:, j]
            return
        for part in blocks.row_blocks(len(chosen), ENTRY_BYTES * self.shape[0]):
            panel = np.asfortranarray(self.columns(chosen[part]))
            for place, j in enumerate(chosen[part].tolist()):
                yield j, panel[:, place]

    def row_blocks(self, chosen: Array | None = None) -> Iterator[tuple[slice, Array]]:
        """Pairs (rows, values) of some functions, all of them where none are named.

        Views of kept values where all functions are wanted and R is not triangular.
        """
        if self.factor is None:
            yield from self._blocks(chosen)
            return
        for rows, block in self._blocks(None):
            solved = solve_right(block, self.factor)
            yield rows, solved if chosen is None else solved[:, chosen]

    def column_blocks(self, n_columns: int | None = None) -> Iterator[tuple[slice, Array]]:
        """Pairs (columns, Phi[:, columns]) of all functions in order.

        Parameters
        ----------
        n_columns : int, optional
            How many of kept values are given at a time (views); None, or where they are computed:
            as many as fit in a block.
        """
        if n_columns is not None and self.kept:
            starts = range(0, self.shape[1], n_columns)
            parts = [slice(start, min(start + n_columns, self.shape[1])) for start in starts]
        else:
            parts = list(blocks.row_blocks(self.shape[1], ENTRY_BYTES * self.shape[0]))
        for part in parts:
            if self.values is not None and self.factor is None:
                yield part, self.values[:, part]
            else:
                yield part, self.columns(np.arange(part.start, part.stop))

    def toarray(self) -> Array:
        """All of Phi, kept or not."""
        if self.factor is not None:
            return np.vstack([block for _, block in self.row_blocks()])
        return self._assembled(None) if self.values is None else self.values

    @property
    def _columnwise(self) -> Array:
        """Symmetric values in the order that BLAS reads without a copy."""
        values = np.asarray(self.values)
        return values if values.flags.f_contiguous else values.T

    def _assembled(self, chosen: Array | None) -> Array:
        """Values of some functions on all rows, in one array."""
        shape = (self.shape[0], self.shape[1] if chosen is None else len(chosen))
        result = np.empty(shape, order=self.order) if 0 in shape else None
        for rows, block in self._computed(chosen):
            if len(block) == shape[0]:
                return np.asarray(block, order=self.order)
            result = np.empty(shape, order=self.order) if result is None else result
            result[rows] = block
        return np.asarray(result)

    def _blocks(self, chosen: Array | None) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows without a triangular R, within the memory budget."""
        if chosen is not None and np.array_equal(chosen, np.arange(self.shape[1])):
            chosen = None
        if self.values is None:
            yield from self._computed(chosen)
            return
        n_columns = self.shape[1] if chosen is None else len(chosen)
        for rows in blocks.row_blocks(self.shape[0], ENTRY_BYTES * n_columns):
            yield rows, self.values[rows] if chosen is None else self.values[rows, :][:, chosen]

    def _computed(self, chosen: Array | None) -> Iterator[tuple[slice, Array]]:
        """The same, evaluated."""
        n_columns = self.shape[1] if chosen is None else len(chosen)
        if self.atoms is None or self._functions is None:
            yield slice(0, self.shape[0]), self._scaled(self.X, slice(0, self.shape[0]), None)
            return
        functions = self._functions if chosen is None else self.atoms.subset(chosen)
        for rows in blocks.row_blocks(self.shape[0], ENTRY_BYTES * n_columns):
            values = blocks.evaluate(functions, self.X[rows], n_columns)
            block = np.asarray(values, dtype=np.float64)
            if not np.isfinite(block.sum()):
                refuse_not_finite(block, rows.start)
            yield rows, self._scaled(block, rows, chosen)

    def _scaled(self, block: Array, rows: slice, chosen: Array | None) -> Array:
        """Values less the shift, divided, and weighted; a block of the caller's is not written."""
        every: Any = slice(None) if chosen is None else chosen
        changes = (self.shift, self.divisors, self.roots)
        if all(change is None for change in changes):
            return np.asarray(block, dtype=np.float64)
        if self.atoms is None or not block.flags.writeable:
            block = np.array(block, dtype=np.float64)
        if self.shift is not None:
            block -= self.shift[every]
        if self.divisors is not None:
            block /= self.divisors[every]
        if self.roots is not None:
            block *= self.roots[rows, None]
        return block
