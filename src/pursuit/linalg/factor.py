"""The few array operations that the algorithms need beyond arithmetic, slicing and ``@``.

Algorithms write ``xp = backend_of(array)`` and then call ``xp.exp(array)``. Everything that
NumPy arrays and PyTorch tensors spell alike (``+ - * / @ **``, slicing, in-place operators,
``.T``, ``.sum(axis)``, ``.shape``) is written directly; only what differs between the two is
named here, so another array type needs one more class with these methods and no change
elsewhere.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack, solve_triangular

__all__ = ["Array", "Backend", "NumpyBackend", "backend_of"]

Array = npt.NDArray[Any]

_SYMMETRIC_TILE = 512


class Backend(Protocol):
    """What an array library must offer."""

    name: str

    def handles(self, array: object) -> bool:
        """Whether `array` is of this library's type."""

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """`values` as an array of this library."""

    def to_numpy(self, array: Array) -> Array:
        """`array` as a NumPy array, without a copy where possible."""

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Float64 zeros, in the order that `add_gram` wants for a square matrix."""

    def exp(self, array: Array) -> Array:
        """Exponential, in place."""

    def tanh(self, array: Array) -> Array:
        """Hyperbolic tangent, in place."""

    def argmax(self, array: Array) -> int:
        """Index of the first largest entry."""

    def append_columns(self, array: Array, columns: tuple[Any, ...]) -> Array:
        """`array` with further columns, given as vectors or scalars."""

    def squared_norms(self, array: Array) -> Array:
        """Squared Euclidean norm of each row."""

    def median(self, array: Array) -> Array:
        """Median of each column."""

    def add_gram(self, gram: Array, block: Array) -> None:
        """``gram += block.T @ block`` for a float64 block (upper triangle only)."""

    def mirror(self, gram: Array) -> None:
        """Copy the upper triangle of `gram` onto the lower one."""

    def subtract_outer(self, gram: Array, vector: Array) -> None:
        """``gram -= outer(vector, vector)``, in place."""

    def cholesky(self, gram: Array) -> Array:
        """Upper triangular R with R'R = `gram`, of which the lower triangle is read.

        Where `gram` is not positive definite to rounding, R is that of its largest leading
        block that is.
        """

    def solve_transposed(self, factor: Array, right: Array) -> Array:
        """X with ``factor.T @ X = right`` for an upper triangular factor."""

    def solve_upper(self, factor: Array, right: Array) -> Array:
        """X with ``factor @ X = right`` for an upper triangular factor."""

    def solve_right(self, left: Array, factor: Array) -> Array:
        """X with ``X @ factor = left`` for an upper triangular factor."""


class NumpyBackend:
    """`Backend` on NumPy arrays, with SciPy's BLAS and LAPACK."""

    name = "numpy"

    def handles(self, array: object) -> bool:
        """Whether `array` is a NumPy array."""
        return isinstance(array, np.ndarray)

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """`values` as a NumPy array."""
        return np.asarray(values, dtype=dtype)

    def to_numpy(self, array: Array) -> Array:
        """`array` itself."""
        return array

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Float64 zeros in column order."""
        return np.zeros(shape, dtype=np.float64, order="F")

    def exp(self, array: Array) -> Array:
        """Exponential, in place."""
        return np.exp(array, out=array)

    def tanh(self, array: Array) -> Array:
        """Hyperbolic tangent, in place."""
        return np.tanh(array, out=array)

    def argmax(self, array: Array) -> int:
        """Index of the first largest entry."""
        return int(array.argmax())

    def append_columns(self, array: Array, columns: tuple[Any, ...]) -> Array:
        """`array` with further columns, given as vectors or scalars."""
        n_rows, n_columns = array.shape
        wide = np.empty((n_rows, n_columns + len(columns)), dtype=array.dtype)
        wide[:, :n_columns] = array
        for offset, column in enumerate(columns):
            wide[:, n_columns + offset] = column
        return wide

    def squared_norms(self, array: Array) -> Array:
        """Squared Euclidean norm of each row."""
        norms: Array = np.einsum("ij,ij->i", array, array)
        return norms

    def median(self, array: Array) -> Array:
        """Median of each column."""
        return np.asarray(np.median(array, axis=0))

    def add_gram(self, gram: Array, block: Array) -> None:
        """``gram += block.T @ block`` (upper triangle only), half the arithmetic of a product."""
        if not gram.flags.f_contiguous:
            raise ValueError("gram must be stored column by column, as `zeros` gives it")
        if not block.size:
            return
        # Whichever way the block is stored, BLAS reads it without a copy.
        if block.flags.f_contiguous:
            blas.dsyrk(1.0, block, beta=1.0, c=gram, trans=1, overwrite_c=1)
        else:
            blas.dsyrk(1.0, block.T, beta=1.0, c=gram, overwrite_c=1)

    def mirror(self, gram: Array) -> None:
        """Copy the upper triangle of `gram` onto the lower one, tile by tile."""
        size = gram.shape[0]
        for start in range(0, size, _SYMMETRIC_TILE):
            rows = slice(start, min(start + _SYMMETRIC_TILE, size))
            tile = gram[rows, rows]
            tile[:] = np.triu(tile) + np.triu(tile, 1).T
            gram[rows.stop :, rows] = gram[rows, rows.stop :].T

    def subtract_outer(self, gram: Array, vector: Array) -> None:
        """``gram -= outer(vector, vector)``, in place."""
        columns = gram if gram.flags.f_contiguous else gram.T
        blas.dger(-1.0, vector, vector, a=columns, overwrite_a=1)

    def cholesky(self, gram: Array) -> Array:
        """Upper triangular R with R'R = `gram`, or the largest leading block of it."""
        if not len(gram):
            return gram
        lower, failed = lapack.dpotrf(gram, lower=1, clean=1)
        size = failed - 1 if failed > 0 else len(gram)
        factor: Array = np.tril(lower[:size, :size]).T
        return factor

    def solve_transposed(self, factor: Array, right: Array) -> Array:
        """X with ``factor.T @ X = right`` for an upper triangular factor."""
        solution: Array = solve_triangular(factor, right, trans="T", check_finite=False)
        return solution

    def solve_upper(self, factor: Array, right: Array) -> Array:
        """X with ``factor @ X = right`` for an upper triangular factor."""
        solution: Array = solve_triangular(factor, right, check_finite=False)
        return solution

    def solve_right(self, left: Array, factor: Array) -> Array:
        """X with ``X @ factor = left`` for an upper triangular factor."""
        solution: Array = solve_triangular(factor, left.T, trans="T", check_finite=False).T
        return solution


_BACKENDS: tuple[Backend, ...] = (NumpyBackend(),)


def backend_of(array: object) -> Backend:
    """Return the backend that handles `array`.

    Raises
    ------
    TypeError
        If no backend knows the array's type.
    """
    for backend in _BACKENDS:
        if backend.handles(array):
            return backend
    raise TypeError(f"no array backend handles {type(array).__name__}")
