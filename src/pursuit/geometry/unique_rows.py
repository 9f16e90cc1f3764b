"""Rows that are equal: which is the first of each kind, and what they weigh together.

Rows are compared by their bytes, in float64 and with -0 as 0; CSR rows by their entries other than
zero, so that a matrix is never made dense.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pursuit._typing import Array

__all__ = ["DistinctRows", "distinct_rows", "equal_rows", "parted"]


class DistinctRows(NamedTuple):
    """Rows without repetition.

    Attributes
    ----------
    X : {ndarray, CSR matrix} of shape (n_distinct, n_features)
        In an order that does not depend on that of the given rows.
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


def _by_bytes(X: Any) -> tuple[Array, Array]:
    """First of each set of equal rows in the order of their bytes, and the set of each row."""
    if not X.shape[0]:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    _, first, place = np.unique(_keys(X), return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def _keys(X: Any) -> Array:
    """Bytes that are equal where rows are."""
    if not sparse.issparse(X):
        rows = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # -0.0 is 0.0
        return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    rows = sparse.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    keys = np.empty(rows.shape[0], dtype=object)
    for i, (start, stop) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        keys[i] = rows.indices[start:stop].tobytes() + rows.data[start:stop].tobytes()
    return keys


def parted(Z: Array, distance: float, rng: Any) -> Array:
    """The vectors, those that equal an earlier one moved apart."""
    repeated = np.ones(len(Z), dtype=bool)
    repeated[np.unique(Z, axis=0, return_index=True)[1]] = False
    Z = Z.copy()
    Z[repeated] += distance * rng.normal(size=(int(repeated.sum()), Z.shape[1]))
    return Z
