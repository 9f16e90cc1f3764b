"""Rows that are no vectors: words, graphs, series of different lengths, for a kernel of the user's.

Inside the package such rows are one column of objects, (n, 1), so that whatever takes some rows of
X takes some of these, too. The user, and the function that is the kernel, see them as (n,).
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from pursuit._typing import Array

__all__ = [
    "as_objects",
    "check_coordinates",
    "in_double",
    "is_objects",
    "object_column",
    "object_keys",
    "takes_objects",
]


def takes_objects(kernel: Any) -> bool:
    """Whether a kernel, or each of a mapping of kernels, is a function that takes any rows.

    Examples
    --------
    >>> from pursuit._objects import takes_objects
    >>> takes_objects("rbf"), takes_objects(lambda X, Z: X @ Z.T)
    (False, True)
    """
    if isinstance(kernel, Mapping):
        return bool(kernel) and all(takes_objects(each) for each in kernel.values())
    return bool(getattr(kernel, "takes_objects", callable(kernel)))


def is_objects(X: Any) -> bool:
    """Whether checked rows are objects."""
    return isinstance(X, np.ndarray) and X.dtype == object


def check_coordinates(X: Any, what: str, needs: str = "needs") -> None:
    """Raise where something computes with coordinates, but rows are objects."""
    if is_objects(X):
        raise ValueError(f"{what} {needs} rows of numbers, got objects")


def object_column(X: Any, *, certain: bool = False) -> Array | None:
    """Rows as a column of objects, (n, 1); None where they are numbers.

    Objects are what NumPy does not make a table of numbers of: text, lists of different lengths,
    arrays of two axes each, and whatever stands in a 1-d array of objects.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, 1)
        Rows as the user gave them.
    certain : bool, default=False
        Whether they are known to be objects, because the model was fitted on some.

    Examples
    --------
    >>> from pursuit._objects import object_column
    >>> object_column(["kernel", "matching"]).shape
    (2, 1)
    >>> object_column([[1.0, 2.0], [3.0, 4.0]]) is None
    True
    """
    if not isinstance(X, list | tuple | np.ndarray):
        if not hasattr(X, "to_numpy") or not hasattr(X, "shape"):
            return None
        X = X.to_numpy()
    if isinstance(X, np.ndarray):
        found = _of_array(X, certain)
    else:
        found = list(X) if certain or not _are_numbers(X) else None
    if found is None or not len(found):
        return None
    column = np.empty((len(found), 1), dtype=object)
    for i, item in enumerate(found):
        column[i, 0] = item
    return column


def _of_array(X: Array, certain: bool) -> Any:
    """The objects of an array; None where they are numbers."""
    if X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in "OUST":
        text = isinstance(X.flat[0], str | bytes) if X.size else False
        return X[:, 0] if text or certain else None
    objects = X.dtype.kind in "OUST" if X.ndim == 1 else X.ndim > 2
    return X if objects or (certain and X.ndim) else None


def _are_numbers(items: Any) -> bool:
    """Whether a list is a number or a row of numbers for each item."""
    if any(isinstance(item, str | bytes) for item in items):
        return False
    try:
        return np.asarray(items, dtype=np.float64).ndim <= 2
    except (TypeError, ValueError):
        return False


def as_objects(X: Any) -> Any:
    """Rows as the user sees them: (n,) where they are a column of objects."""
    return X[:, 0] if is_objects(X) and X.ndim == 2 else X


def object_keys(X: Array) -> Array:
    """Bytes of each object, equal where two objects are copies: those that pickle writes.

    Raises
    ------
    ValueError
        If an object has none.
    """
    keys = np.empty(len(X), dtype=object)
    for i, item in enumerate(as_objects(X)):
        try:
            keys[i] = pickle.dumps(item, protocol=4)
        except Exception as error:
            raise ValueError(
                f"row {i} of X is an object that cannot be pickled, by which copies of a row are "
                f"told: {error}"
            ) from error
    return keys


def in_double(X: Any) -> Any:
    """A copy of rows in float64; of objects themselves."""
    return X.copy() if is_objects(X) else X.astype(np.float64)
