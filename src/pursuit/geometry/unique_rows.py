"""Rows that are equal: which is the first of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pursuit._typing import Array

__all__ = ["equal_rows"]


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
    places: dict[bytes, int] = {}
    place = np.array([places.setdefault(key, len(places)) for key in _keys(X)], dtype=np.intp)
    return np.unique(place, return_index=True)[1], place


def _keys(X: Any) -> list[bytes]:
    """Bytes that are equal where rows are."""
    if not sparse.issparse(X):
        return [row.tobytes() for row in np.ascontiguousarray(X) + 0.0]
    rows = sparse.csr_matrix(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [rows.indices[i:j].tobytes() + rows.data[i:j].tobytes() for i, j in ends]
