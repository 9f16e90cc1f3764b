"""Kernel matching pursuit, and the sums that it lives on, from blocks of rows.

The two passes of ``matching_pursuit/blocks.py``, each a task a block and a tree:

1. the survey: candidates, the variance for ``gamma="scale"``, the classes;
2. the sums of ``greedy/statistics.py`` for these candidates.

The path follows from the sums, on the client: the model of a fit on all rows in one place with
these candidates, to rounding. Without a ``random_state`` such a fit draws the same ones.

Cost. l M^2 operations for l rows and M candidates; M^2 numbers a result, and on the client.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import validate_data

from pursuit.dictionary import Dictionary, few_candidates
from pursuit.distributed.parts import Parts, parts_of, total
from pursuit.distributed.reading import (
    Reader,
    block_samples,
    counts,
    reader_of,
    some_rows,
    surveyed,
    with_classes,
)
from pursuit.greedy.statistics import KernelStatistics
from pursuit.greedy.survey import Survey, salt_of
from pursuit.matching_pursuit.blocks import FitsBlocks

__all__ = ["capacity", "fit", "summed", "update", "weighed"]


def fit(model: FitsBlocks, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Fit kernel matching pursuit on collections.

    Parameters
    ----------
    model : KernelMatchingPursuitClassifier or KernelMatchingPursuitRegressor
        Under squared error with re-fits at each step.
    X, y, sample_weight : dask collections
        Rows, labels or numbers, and weights.
    """
    model._check_sums_suffice()
    if isinstance(model.kernel, Mapping):
        raise ValueError("kernel: a kernel for each class needs the rows in memory")
    parts = parts_of(X, y, sample_weight)
    reader, classifier = reader_of(model, parts), is_classifier(model)
    empty = Survey(capacity(model.n_candidates, model._budget()), salt_of(model.random_state))
    seen = surveyed(reader, parts, empty, labels=classifier)
    if classifier:
        model._class_weights = with_classes(reader, seen)
    statistics, places = reader._empty(seen.survey, getattr(reader, "classes_", None))
    found = weighed(statistics, reader, parts)
    model.__dict__.pop("statistics_", None)
    return model._fit_sums(found, Dictionary(found.dictionary.atoms, places))


def capacity(n_candidates: Any, budget: int) -> int:
    """How many candidates there are at most; every block makes sums of as many squared numbers.

    Raises
    ------
    ValueError
        If they are asked for as a share of the rows, which are not counted before they are drawn.
    """
    if n_candidates is not None:
        if isinstance(n_candidates, int | np.integer) and n_candidates >= 1:
            return int(n_candidates)
        raise ValueError(
            "n_candidates must be a positive integer or None for a dask collection, "
            f"got {n_candidates!r}"
        )
    return few_candidates(budget)


def weighed(empty: KernelStatistics, reader: Reader, parts: Parts) -> Any:
    """The statistics of all rows, as the reader weighs them, from some that have begun."""
    return some_rows(total(_block_sums, _both, parts.blocks, empty, reader))


def _block_sums(
    empty: KernelStatistics, reader: Reader, X: Any, y: Any, weights: Any
) -> KernelStatistics | None:
    """The statistics of one block, as the reader weighs its rows."""
    samples = block_samples(reader, X, y, weights)
    if samples is None:
        return None
    return copy.copy(empty)._add(samples, one_dimensional=np.ndim(y) == 1)


def _both(left: KernelStatistics, right: KernelStatistics) -> KernelStatistics:
    """The statistics of the rows of both; neither is changed, as a task may run again."""
    return copy.copy(left).merge(right)


def update(statistics: KernelStatistics, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Add the rows of collections to `KernelStatistics`.

    Parameters
    ----------
    statistics : KernelStatistics
        With rows or without.
    X, y, sample_weight : dask collections
        As `KernelStatistics.update` takes them.
    """
    parts = parts_of(X, y, sample_weight)
    begun = hasattr(statistics, "moments_")
    validate_data(statistics, parts.columns, skip_check_array=True, reset=not begun)
    return statistics.merge(summed(clone(statistics), parts))


def summed(empty: KernelStatistics, parts: Parts) -> Any:
    """The statistics of all rows, from some that hold none."""
    return some_rows(total(_updated, _both, parts.blocks, empty))


def _updated(empty: KernelStatistics, X: Any, y: Any, weights: Any) -> KernelStatistics | None:
    """The statistics of one block, as the user would make them."""
    return None if counts(X, y, weights) is None else clone(empty).update(X, y, weights)
