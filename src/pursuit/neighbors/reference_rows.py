"""Smaller reference sets: the rows behind the vectors of a trained classifier (table 11.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array

__all__ = ["reference_rows"]


def reference_rows(*machines: Any) -> Array:
    """Rows of the training data that are vectors of one of these machines (table 11.2).

    Parameters
    ----------
    *machines : estimators
        Fitted on the same rows, each with ``support_`` (an ``SVC``, kernel matching pursuit and
        the other machines here whose vectors are training rows), with ``estimators_`` that have
        it (``OneVsRestClassifier``), or a pipeline that ends in such a one.

    Returns
    -------
    rows : ndarray of int
        Row numbers, increasing.

    Raises
    ------
    ValueError
        If no machine is given or one does not know its rows.

    See Also
    --------
    condensed_rows : Fewer rows, found by the classifier itself.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> from pursuit import HyperplaneKNeighborsClassifier, reference_rows
    >>> X, y = load_digits(return_X_y=True)
    >>> rows = reference_rows(SVC(C=10).fit(X[:1000], y[:1000]))
    >>> model = HyperplaneKNeighborsClassifier(10, alpha=30.0).fit(X[rows], y[rows])
    >>> len(rows) < 600, bool(model.score(X[1000:], y[1000:]) > 0.96)
    (True, True)
    """
    if not machines:
        raise ValueError("machines must hold at least one fitted machine")
    return np.unique(np.concatenate([_support(machine) for machine in machines]))


def _support(machine: Any) -> Array:
    """Rows behind the vectors of one machine."""
    if isinstance(machine, Pipeline):
        machine = machine[-1]
    check_is_fitted(machine)
    if hasattr(machine, "support_"):
        return np.asarray(machine.support_)
    if hasattr(machine, "estimators_"):
        return reference_rows(*machine.estimators_)
    raise ValueError(
        f"{type(machine).__name__} has no support_: its vectors are no rows of the training data"
    )
