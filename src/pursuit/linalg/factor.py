"""Gram matrices and triangular factors: the calls of BLAS and LAPACK that the methods need."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from pursuit._typing import Array

__all__ = [
    "add_gram",
    "append_columns",
    "cholesky",
    "gram_zeros",
    "mirror",
    "solve_right",
    "solve_transposed",
    "solve_upper",
    "squared_norms",
    "subtract_outer",
]

_SYMMETRIC_TILE = 512


def gram_zeros(shape: tuple[int, ...]) -> Array:
    """Float64 zeros in column order."""
    return np.zeros(shape, dtype=np.float64, order="F")


def append_columns(array: Array, columns: tuple[Any, ...]) -> Array:
    """`array` with further columns, given as vectors or scalars."""
    n_rows, n_columns = array.shape
    wide = np.empty((n_rows, n_columns + len(columns)), dtype=array.dtype)
    wide[:, :n_columns] = array
    for offset, column in enumerate(columns):
        wide[:, n_columns + offset] = column
    return wide


def squared_norms(array: Array) -> Array:
    """Squared Euclidean norm of each row."""
    norms: Array = np.einsum("ij,ij->i", array, array)
    return norms


def add_gram(gram: Array, block: Array, room: Array | None = None) -> None:
    """``gram += block.T @ block`` (upper triangle only), half the arithmetic of a product.

    Parameters
    ----------
    gram : ndarray of shape (M, M)
        Stored column by column.
    block : ndarray of shape (n_rows, M)
        Rows.
    room : ndarray of shape (M, M), optional
        For the product, which NumPy then makes: it lets other threads of Python work meanwhile,
        SciPy does not.
    """
    if not gram.flags.f_contiguous:
        raise ValueError("gram must be stored column by column, as `gram_zeros` gives it")
    if not block.size:
        return
    if room is not None:
        gram.T[:] += np.matmul(block.T, block, out=room)
        return
    # Whichever way the block is stored, BLAS reads it without a copy.
    if block.flags.f_contiguous:
        blas.dsyrk(1.0, block, beta=1.0, c=gram, trans=1, overwrite_c=1)
    else:
        blas.dsyrk(1.0, block.T, beta=1.0, c=gram, overwrite_c=1)


def mirror(gram: Array) -> None:
    """Copy the upper triangle of `gram` onto the lower one, tile by tile."""
    size = gram.shape[0]
    for start in range(0, size, _SYMMETRIC_TILE):
        rows = slice(start, min(start + _SYMMETRIC_TILE, size))
        tile = gram[rows, rows]
        tile[:] = np.triu(tile) + np.triu(tile, 1).T
        gram[rows.stop :, rows] = gram[rows, rows.stop :].T


def subtract_outer(gram: Array, vector: Array) -> None:
    """``gram -= outer(vector, vector)``, in place."""
    columns = gram if gram.flags.f_contiguous else gram.T
    blas.dger(-1.0, vector, vector, a=columns, overwrite_a=1)


def cholesky(gram: Array) -> Array:
    """Upper triangular R with R'R = `gram`, or the largest leading block of it."""
    if not len(gram):
        return gram
    lower, failed = lapack.dpotrf(gram, lower=1, clean=1)
    size = failed - 1 if failed > 0 else len(gram)
    factor: Array = np.tril(lower[:size, :size]).T
    return factor


def solve_transposed(factor: Array, right: Array) -> Array:
    """X with ``factor.T @ X = right`` for an upper triangular factor."""
    solution: Array = solve_triangular(factor, right, trans="T", check_finite=False)
    return solution


def solve_upper(factor: Array, right: Array) -> Array:
    """X with ``factor @ X = right`` for an upper triangular factor."""
    solution: Array = solve_triangular(factor, right, check_finite=False)
    return solution


def solve_right(left: Array, factor: Array) -> Array:
    """X with ``X @ factor = left`` for an upper triangular factor."""
    solution: Array = solve_triangular(factor, left.T, trans="T", check_finite=False).T
    return solution
