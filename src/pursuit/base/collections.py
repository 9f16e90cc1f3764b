"""Collections of rows in blocks, as dask has them: how an estimator finds what to do with one.

`pursuit.distributed` knows what to do. It lies above the methods and gives its functions to
`WAYS` when it is imported; nothing here or below knows dask. Public methods of estimators are put
through `hands_on` where their class is made (`base/parameters.py`), as scikit-learn does with
``transform`` for ``set_output``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from pursuit._validation import is_collection

__all__ = ["BLOCK_BY_BLOCK", "WAYS", "hand_on_collections"]

# Methods whose result has a row for each row of X.
BLOCK_BY_BLOCK = (
    "decision_function",
    "predict",
    "predict_joint_log_proba",
    "predict_log_proba",
    "predict_proba",
    "residual",
    "score_samples",
    "transform",
)
# What `pursuit.distributed` does in place of a method: a function of the estimator and what the
# method takes.
WAYS: dict[str, Callable[..., Any]] = {}
METHODS = ("fit", "score", "update", *BLOCK_BY_BLOCK)


def hand_on_collections(cls: type[Any]) -> None:
    """Let the methods of a class hand collections on, where it has them."""
    for name in METHODS:
        method = inspect.getattr_static(cls, name, None)
        if inspect.isfunction(method) and not hasattr(method, "_hands_on"):
            setattr(cls, name, _hands_on(method))


def _hands_on(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method for rows in memory, and for a collection what stands in for it."""

    @wraps(method)
    def called(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if type(X) is not np.ndarray and is_collection(X):
            return _way(method.__name__)(self, X, *args, **kwargs)
        return method(self, X, *args, **kwargs)

    called._hands_on = True  # type: ignore[attr-defined]
    return called


def _way(name: str) -> Callable[..., Any]:
    """What is done with a collection in place of a method."""
    if name not in WAYS:
        raise ValueError(
            "X is a dask collection: estimators take it, block by block, after "
            "`import pursuit.distributed`"
        )
    return WAYS[name]
