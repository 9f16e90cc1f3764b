"""What the tasks read, and the first pass.

A *reader* is an unfitted copy of the estimator that knows the features and, after the first pass,
the classes and their weights. It goes to all tasks and reads a block as the estimator itself reads
its rows, with the same errors.

The first pass is that of ``greedy/survey.py``, whose surveys of neighbouring blocks merge: it draws
candidates by a hash of the rows, which depends on their numbers and the seed, and neither on the
blocks nor on their order.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from pursuit._typing import Array
from pursuit._validation import (
    Samples,
    check_several_classes,
    check_weights,
    class_weights,
    read_data,
)
from pursuit.distributed.parts import Parts, total
from pursuit.geometry.spread import Spread
from pursuit.greedy.survey import Survey
from pursuit.kernels import is_precomputed

__all__ = [
    "Reader",
    "Seen",
    "block_samples",
    "counts",
    "reader_of",
    "some_rows",
    "surveyed",
    "with_classes",
]

# An estimator that reads.
Reader = Any


class Seen(NamedTuple):
    """What the first pass finds.

    Attributes
    ----------
    survey : Survey
        Candidates, counts, and the spread of the rows.
    labels : ndarray of shape (n_classes,)
        Labels of rows of positive weight; none where rows have none.
    masses : ndarray of shape (n_classes,)
        Sums of their weights.
    spreads : list of Spread
        Of the rows of each.
    """

    survey: Survey
    labels: Array
    masses: Array
    spreads: list[Spread]

    def plus(self, other: Seen) -> Seen:
        """That of these rows and of those that follow."""
        labels = np.union1d(self.labels, other.labels)
        masses, spreads = np.zeros(len(labels)), [Spread() for _ in labels]
        for part in (self, other):
            places = np.searchsorted(labels, part.labels)
            masses[places] += part.masses
            for place, spread in zip(places, part.spreads, strict=True):
                spreads[place].merge(spread)
        # A task may run again: what it was given stays as it is.
        return Seen(copy.deepcopy(self.survey).merge(other.survey), labels, masses, spreads)


def reader_of(model: Any, parts: Parts) -> Reader:
    """An unfitted copy of the estimator that knows the features of the rows."""
    if is_precomputed(getattr(model, "kernel", None)):
        raise ValueError("kernel='precomputed' needs the kernel values in memory")
    reader = clone(model)
    validate_data(reader, parts.columns, skip_check_array=True)
    return reader


def surveyed(reader: Reader, parts: Parts, empty: Survey, *, labels: bool) -> Seen:
    """The first pass.

    Raises
    ------
    ValueError
        If there is no row of positive weight, or labels are asked for and there is one class.
    """
    seen: Seen = some_rows(total(_block_survey, Seen.plus, parts.blocks, reader, empty, labels))
    if labels:
        check_several_classes(seen.labels)
    return seen


def _block_survey(
    reader: Reader, empty: Survey, labels: bool, X: Any, y: Any, weights: Any
) -> Seen | None:
    """The survey of one block; None of a block without rows."""
    if not X.shape[0]:
        return None
    found, survey = counts(X, y, weights), copy.deepcopy(empty)
    if found is None:  # the rows after these have their places
        return Seen(survey.add(X, np.zeros(X.shape[0])), np.empty(0), np.empty(0), [])
    if not labels:
        survey.add(_rows(reader, X), found)
        return Seen(survey, np.empty(0), np.empty(0), [])
    X, y = read_data(reader, X, y, reset=False, accept_sparse="csr")
    check_classification_targets(y)
    classes, codes = np.unique(y[found > 0], return_inverse=True)
    rows = np.flatnonzero(found > 0)
    members = [rows[codes == c] for c in range(len(classes))]
    masses = np.array([found[of_class].sum() for of_class in members])
    spreads = [Spread().add(X[of_class], found[of_class]) for of_class in members]
    return Seen(survey.add(X, found), classes, masses, spreads)


def with_classes(reader: Reader, seen: Seen) -> Array:
    """Tell a reader the classes, and what each weighs; return that. The spread is weighed, too."""
    codes = np.arange(len(seen.labels))
    weights = class_weights(reader.class_weight, seen.labels, codes, seen.masses)
    if not weights.all():
        raise ValueError(f"class_weight is zero for the class {seen.labels[weights == 0][0]}")
    reader.classes_ = seen.labels
    if reader.class_weight is not None:
        reader.class_weight = dict(zip(seen.labels.tolist(), weights.tolist(), strict=True))
        seen.survey.spread = Spread()
        for spread, weight in zip(seen.spreads, weights, strict=True):
            seen.survey.spread.merge(spread, float(weight))
    return weights


def some_rows(found: Any) -> Any:
    """What a pass has found, or an error where there was nothing."""
    if found is None or (isinstance(found, Seen) and not found.survey.n_used):
        raise ValueError("X has no row of positive weight")
    return found


def block_samples(reader: Reader, X: Any, y: Any, weights: Any) -> Samples | None:
    """Rows of positive weight of one block; None without any.

    Parameters
    ----------
    reader : estimator
        With classes, if it is a classifier.
    X, y, weights : object
        A block of `Parts`; without targets they count as zeros.
    """
    found = counts(X, y, weights)
    if found is None:
        return None
    if y is None:
        X = _rows(reader, X)
        samples = Samples(X, np.zeros((X.shape[0], 1)), found)
    elif is_classifier(reader):
        # A row of weight zero may have any label.
        y = np.where(found > 0, np.asarray(y), reader.classes_[0])
        samples = reader._read_announced(X, y, None, weights, first=False)
    else:
        samples = reader._read(X, y, weights, first=False)
    used = np.flatnonzero(samples.weights > 0)
    return samples if len(used) == X.shape[0] else samples.take(used)


def _rows(reader: Reader, X: Any) -> Any:
    """Checked rows."""
    return read_data(reader, X, reset=False, accept_sparse="csr")


def counts(X: Any, y: Any, weights: Any) -> Array | None:
    """The weights of a block, if any of its rows counts."""
    n_rows = X.shape[0]
    for name, given in (("y", y), ("sample_weight", weights)):
        if given is not None and len(given) != n_rows:
            raise ValueError(f"{name} has a block of {len(given)} rows where X has {n_rows}")
    if not n_rows or (weights is not None and not np.any(weights)):
        return None
    return check_weights(weights, n_rows)
