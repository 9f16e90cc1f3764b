"""Rows that are equal: which is the first of each kind, and what they weigh together.

Rows are compared by keys: bytes in float64, with -0 as 0, whose order is the lexicographic order of
the rows' numbers. Keys of CSR rows have their entries other than zero alone, so that a matrix is
never made dense, and are in the same order.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pursuit._objects import is_objects, object_keys
from pursuit._typing import Array

__all__ = ["DistinctRows", "distinct_rows", "equal_rows", "parted", "row_order"]

# An entry of a CSR row as bytes: what is greater at the first difference of two rows is greater.
ENTRY = np.dtype([("sign", "u1"), ("column", ">u8"), ("value", "u8")])
ABOVE, END, BELOW = 2, bytes([1]), 0


class DistinctRows(NamedTuple):
    """Rows without repetition.

    Attributes
    ----------
    X : {ndarray, CSR matrix} of shape (n_distinct, n_features)
        In lexicographic order, whatever the order of the given rows.
    weights : ndarray of shape (n_distinct,)
        Sums over equal rows.
    places : ndarray of int of shape (n_rows,)
        Index of each given row among the distinct ones.
    """

    X: Any
    weights: Array
    places: Array


def equal_rows(X: Any) -> tuple[Array, Array]:
    """The first of each set of equal rows, in order, and for each row its place among these.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Rows; -0 equals 0.

    Returns
    -------
    first : ndarray of int of shape (n_distinct,)
        Indices, increasing.
    place : ndarray of int of shape (n_rows,)
        Of each row, among `first`.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.unique_rows import equal_rows
    >>> first, place = equal_rows(np.array([[2.0], [1.0], [2.0]]))
    >>> first.tolist(), place.tolist()
    ([0, 1], [0, 1, 0])
    """
    first, place = _by_bytes(X)
    order = np.argsort(first)
    return first[order], np.argsort(order)[place]


def distinct_rows(X: Any, weights: Array | None = None) -> DistinctRows:
    """Merge equal rows.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Finite rows.
    weights : ndarray of shape (n_rows,), optional
        Their weights; ones if not given.

    Returns
    -------
    distinct : DistinctRows
        In float64.
    """
    first, places = _by_bytes(X)
    return DistinctRows(X[first].astype(np.float64) + 0.0, np.bincount(places, weights), places)


def row_order(X: Any) -> Array:
    """Indices that put rows in lexicographic order: one order for all permutations of the rows.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Finite rows; a dense and a CSR matrix of the same numbers are in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.unique_rows import row_order
    >>> row_order(np.array([[2.0, 0.0], [-1.0, 3.0], [2.0, -5.0]])).tolist()
    [1, 2, 0]
    """
    return np.argsort(_keys(X), kind="stable")


def _by_bytes(X: Any) -> tuple[Array, Array]:
    """First of each set of equal rows in lexicographic order, and the set of each row."""
    if not X.shape[0]:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    _, first, place = np.unique(_keys(X), return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def _keys(X: Any) -> Array:
    """Bytes that are equal where rows are, in the lexicographic order of the rows."""
    if is_objects(X):
        return object_keys(X)
    if not sparse.issparse(X):
        rows = _ordered(np.ascontiguousarray(X, dtype=np.float64))
        return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    rows = sparse.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    above = rows.data > 0
    entries = np.empty(rows.nnz, dtype=ENTRY)
    entries["sign"] = np.where(above, ABOVE, BELOW)
    entries["column"] = np.where(above, rows.shape[1] - rows.indices, rows.indices)
    entries["value"] = _ordered(rows.data.astype(np.float64))
    keys = np.empty(rows.shape[0], dtype=object)
    for i, (start, stop) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        keys[i] = entries[start:stop].tobytes() + END
    return keys


def _ordered(values: Array) -> Array:
    """Integers of 8 bytes, the first the highest, in the order of the numbers; -0.0 is 0.0."""
    bits = (values + 0.0).view(np.uint64)
    # Negative numbers have all their bits turned over, the others the sign's alone.
    bits ^= (bits.view(np.int64) >> 63).view(np.uint64) | np.uint64(1 << 63)
    return bits.byteswap(inplace=True) if sys.byteorder == "little" else bits


def parted(Z: Array, distance: float, rng: Any) -> Array:
    """The vectors, those that equal an earlier one moved apart."""
    repeated = np.ones(len(Z), dtype=bool)
    repeated[np.unique(Z, axis=0, return_index=True)[1]] = False
    Z = Z.copy()
    Z[repeated] += distance * rng.normal(size=(int(repeated.sum()), Z.shape[1]))
    return Z
