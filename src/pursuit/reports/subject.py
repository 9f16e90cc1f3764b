"""The model and the rows of a report, as all its sections want them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from pursuit.reports.measures import Answers

__all__ = ["Rows", "Subject", "dense", "subject_of"]


class Rows(NamedTuple):
    """Features as the estimator wants them, and targets."""

    X: Any
    y: NDArray[Any]


@dataclass(frozen=True)
class Subject:
    """What a report is on.

    Attributes
    ----------
    model : estimator
        As the user has it.
    estimator : estimator
        What predicts from the features: the model itself, or what stands behind its preparation.
    task : {"classification", "regression"}
        What it predicts.
    feature_names : list of str
        One a feature.
    measured : Rows
        Rows for the measures.
    train : Rows or None
        Training rows, where they are given.
    """

    model: Any
    estimator: Any
    task: str
    feature_names: list[str]
    measured: Rows
    train: Rows | None

    @cached_property
    def answers(self) -> Answers:
        """The estimator's answers on the measured rows."""
        return Answers.of(self.estimator, *self.measured)


def subject_of(model: Any, X: Any, y: Any, X_train: Any = None, y_train: Any = None) -> Subject:
    """Return the subject of a report.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor of this package, a `TableModel`, or a Pipeline that ends
        in one.
    X, y : array-like or data frame
        Rows for the measures; of a `TableModel` y may be the name of a column, or None.
    X_train, y_train : array-like or data frame, default=None
        Training rows.

    Raises
    ------
    ValueError
        If the model predicts no classes and no single number, or rows and targets do not match.
    """
    check_is_fitted(model)
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"model is a {type(model).__name__}; a report needs one that predicts.")
    given = X_train is not None
    if given and not hasattr(model, "known_rows") and y_train is None:
        raise ValueError("X_train and y_train must be given together.")
    return Subject(
        model,
        _nameless(_last(model)),
        "classification" if is_classifier(model) else "regression",
        _names(model),
        _rows(model, X, y),
        _rows(model, X_train, y_train) if given else None,
    )


def _last(model: Any) -> Any:
    """The estimator behind preparations."""
    if isinstance(model, Pipeline):
        return _last(model[-1])
    return getattr(model, "estimator_", model) if hasattr(model, "known_rows") else model


def _nameless(estimator: Any) -> Any:
    """The estimator for arrays: a copy that knows no names of features."""
    if "feature_names_in_" in vars(estimator):
        estimator = copy.copy(estimator)
        del estimator.feature_names_in_
    return estimator


def _rows(model: Any, X: Any, y: Any) -> Rows:
    """Features and targets."""
    if hasattr(model, "known_rows"):  # a model of a table
        return Rows(*model.known_rows(X, y))
    if isinstance(model, Pipeline):
        return _rows(model[-1], model[:-1].transform(X), y)
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, its shape is {y.shape}.")
    check_consistent_length(X, y)
    kinds = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    return Rows(check_array(X, **kinds), y)


def _names(model: Any) -> list[str]:
    """Names of the features that the estimator sees."""
    if hasattr(model, "known_rows"):
        return [str(name) for name in model.preparation_.get_feature_names_out()]
    if isinstance(model, Pipeline) and len(model) > 1:
        return _of(model[:-1].get_feature_names_out(), _last(model))
    return _of(getattr(model, "feature_names_in_", None), model)


def _of(names: Any, estimator: Any) -> list[str]:
    """Names as they are, or numbered."""
    if names is None:
        return [f"x{k}" for k in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def dense(X: Any) -> NDArray[np.float64]:
    """Rows as a dense array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
