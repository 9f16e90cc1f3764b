"""Results with a row for each row of X: the fitted estimator, block by block.

The estimator is one node of the graph. The result has the blocks of X; its type, and the number of
its columns, are those that the estimator gives for a row of zeros.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit.distributed.parts import is_array, parts_of, total
from pursuit.distributed.reading import counts, some_rows
from pursuit.linalg import blocks

__all__ = ["block_by_block", "score"]


def block_by_block(method: str, model: Any, X: Any, **options: Any) -> Any:
    """The result of a method for each row of a collection.

    Parameters
    ----------
    method : str
        Its name.
    model : estimator
        Fitted.
    X : dask array or DataFrame
        Rows.
    **options
        What else the method takes.

    Returns
    -------
    result : dask array
        In the blocks of X, not yet computed. Of a DataFrame the lengths of the blocks are unknown.

    Raises
    ------
    ValueError
        If the result is no array.
    """
    check_is_fitted(model)
    frame = not is_array(X)
    example = X._meta_nonempty if frame else np.zeros((1, X.shape[1]))
    like = getattr(model, method)(example, **options)
    if not isinstance(like, np.ndarray):
        raise ValueError(f"{method} gives {type(like).__name__}, not an array, with these options")
    shared = {"shared": delayed((model, method, options), traverse=False), "like": like[:0]}
    if frame:
        return X.map_partitions(_rows_of_block, meta=like[:0], **shared)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if like.ndim == 1:
        return X.map_blocks(_rows_of_block, drop_axis=1, dtype=like.dtype, meta=like[:0], **shared)
    chunks = (X.chunks[0], (like.shape[1],))
    return X.map_blocks(_rows_of_block, chunks=chunks, dtype=like.dtype, meta=like[:0], **shared)


def _rows_of_block(X: Any, shared: tuple[Any, str, dict[str, Any]], like: Array) -> Array:
    """The result for one block, on one thread."""
    if not X.shape[0]:
        return like
    model, method, options = shared
    with blocks.at_most_threads(1):
        return np.asarray(getattr(model, method)(X, **options))


def score(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """What ``model.score`` says, from sums over blocks.

    Parameters
    ----------
    model : estimator
        Fitted: a classifier (accuracy), a regressor (R^2) or a density (mean log-density).
    X, y, sample_weight : dask collections
        Rows, targets and weights.

    Returns
    -------
    score : float
        As scikit-learn defines it.
    """
    check_is_fitted(model)
    parts = parts_of(X, y, sample_weight).blocks
    if is_regressor(model):
        found = total(_squares, _both_squares, parts, model)
        return _r_squared(some_rows(found))
    gains = _hits if is_classifier(model) else _logs
    gained, weight = some_rows(total(_gained, _added, parts, model, gains))
    return float(gained / weight)


def _hits(model: Any, X: Any, y: Any) -> Array:
    """Which rows have the right label."""
    return np.asarray(model.predict(X) == np.asarray(y), dtype=float)


def _logs(model: Any, X: Any, y: Any) -> Array:
    """Log-densities."""
    return np.asarray(model.score_samples(X))


def _gained(model: Any, gains: Any, X: Any, y: Any, weights: Any) -> tuple[float, float] | None:
    """Weighted sum of the gains of the rows of one block, and the sum of the weights."""
    w = counts(X, y, weights)
    return None if w is None else (float(w @ gains(model, X, y)), float(w.sum()))


def _added(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    """Sums over both."""
    return left[0] + right[0], left[1] + right[1]


class _Squares(NamedTuple):
    """Of some rows: weight, mean of the targets, squares about it, and squared errors."""

    weight: float
    mean: Array
    around: Array
    errors: Array


def _squares(model: Any, X: Any, y: Any, weights: Any) -> _Squares | None:
    """Those of one block."""
    w = counts(X, y, weights)
    if w is None:
        return None
    Y = np.asarray(y, dtype=float).reshape(len(w), -1)
    F = np.asarray(model.predict(X)).reshape(Y.shape)
    mean = w @ Y / w.sum()
    return _Squares(float(w.sum()), mean, w @ (Y - mean) ** 2, w @ (Y - F) ** 2)


def _both_squares(left: _Squares, right: _Squares) -> _Squares:
    """Those of the rows of both."""
    weight, delta = left.weight + right.weight, right.mean - left.mean
    share = right.weight / weight
    around = left.around + right.around + share * left.weight * delta**2
    return _Squares(weight, left.mean + share * delta, around, left.errors + right.errors)


def _r_squared(found: _Squares) -> float:
    """The mean over the targets; of a constant target 1 or 0, as scikit-learn has it."""
    flat = found.around == 0.0
    shares = found.errors / np.where(flat, 1.0, found.around)
    return float(np.where(flat, found.errors == 0.0, 1.0 - shares).mean())
