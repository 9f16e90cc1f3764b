"""Rows over their lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from pursuit._arrays import namespace_of
from pursuit._typing import Array

__all__ = ["unit_rows"]


def unit_rows(X: Any) -> Any:
    """Rows over their lengths, whatever these are; zero where a row is."""
    if (xp := namespace_of(X)) is not None:
        X = _over(xp, X, xp.max(xp.abs(X), axis=1))
        return _over(xp, X, xp.sqrt(xp.sum(X * X, axis=1)))
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    largest = abs(X).max(axis=1)
    exponents = np.frexp(largest.toarray().ravel() if sparse.issparse(X) else largest)[1]
    X = _times(X, exponents, lambda values, each: np.ldexp(values, -each))
    lengths = np.sqrt(row_norms(X, squared=True))
    return _times(X, np.where(lengths > 0.0, lengths, 1.0), np.divide)


def _times(X: Any, numbers: Array, operation: Callable[[Array, Array], Array]) -> Any:
    """An operation of each entry with the number of its row."""
    if not sparse.issparse(X):
        return operation(X, numbers[:, None])
    data = operation(X.data, np.repeat(numbers, np.diff(X.indptr)))
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def _over(xp: Any, X: Any, numbers: Any) -> Any:
    """Rows of a device array over positive numbers; as they are for a zero."""
    return X / xp.where(numbers > 0.0, numbers, 1.0)[:, None]
