"""A number for each row that depends on its entries alone: for samples that no order changes.

The rows of smallest hash are a uniform sample of the distinct rows, the same whatever parts the
rows come in and in whatever order; equal rows have equal hashes, and others differ but for one pair
in 2^64. Each entry other than zero is mixed with its column, the sum over a row is mixed again, so
that dense and CSR rows of the same numbers agree.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from pursuit._objects import is_objects, object_keys
from pursuit._typing import Array

__all__ = ["blockwise_hashes", "hashes", "mixed"]

# Odd constants of the mixing function of S. Vigna's splitmix64.
STRIDE, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# Rows whose temporaries are made at a time.
BLOCK_ROWS = 8_192


def mixed(bits: Array) -> Array:
    """A bijection of 64-bit numbers that leaves no pattern (splitmix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(FIRST)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(SECOND)
    result: Array = bits ^ (bits >> np.uint64(31))
    return result


def hashes(X: Any, codes: Array | None = None) -> Array:
    """A 64-bit number for each row that depends on its non-zero entries and its class alone.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Rows.
    codes : ndarray of int of shape (n_rows,), optional
        Their classes.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pursuit.geometry.row_hashes import hashes
    >>> X, codes = np.array([[0.0, 1.5], [2.0, 0.0]]), np.array([0, 1])
    >>> bool((hashes(X, codes) == hashes(sparse.csr_matrix(X), codes)).all())
    True
    """
    with np.errstate(over="ignore"):
        sums = _sums(X)
        numbers = np.zeros(1, dtype=np.uint64) if codes is None else codes.astype(np.uint64)
        return mixed(sums + (numbers + np.uint64(1)) * np.uint64(STRIDE))


def blockwise_hashes(X: Any, rows: Array) -> Array:
    """Hashes of some rows of a table that may lie on a disk: few of them at a time in memory.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        All rows.
    rows : ndarray of int
        Which; where these are all, X is read in slices.
    """
    everything = len(rows) == X.shape[0]
    keys = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        keys[part] = hashes(X[part] if everything else X[rows[part]])
    return keys


def _sums(X: Any) -> Array:
    """A number for each row, whatever it is."""
    if not is_objects(X):
        return _sparse_sums(X) if sparse.issparse(X) else _dense_sums(X)
    keys = (blake2b(key, digest_size=8).digest() for key in object_keys(X))
    return np.array([int.from_bytes(key, "little") for key in keys], dtype=np.uint64)


def _mixed_entries(values: Array, columns: Array) -> Array:
    """What each entry adds to its row."""
    return mixed(values.view(np.uint64) + (columns + np.uint64(1)) * np.uint64(STRIDE))


def _dense_sums(X: Any) -> Array:
    """Sums over the entries of dense rows."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    each = _mixed_entries(values, np.arange(values.shape[1], dtype=np.uint64))
    each[values == 0.0] = 0
    sums: Array = each.sum(axis=1, dtype=np.uint64)
    return sums


def _sparse_sums(X: Any) -> Array:
    """Sums over the entries of CSR rows."""
    entries = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    entries.eliminate_zeros()
    each = _mixed_entries(entries.data, entries.indices.astype(np.uint64))
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(each, dtype=np.uint64)])
    ends = ends[entries.indptr]
    sums: Array = ends[1:] - ends[:-1]
    return sums
