"""Blocks of rows on many machines, and sums over them by a tree.

Problem. Rows lie in blocks that one process never holds together. Sum what a function makes of each
block, where "sum" is any merging of two results of which the order of the blocks is kept.

Steps.

1. What all blocks need (vectors, a kernel, a model) is one node of the graph: it leaves the client
   once, and workers hand it on to each other. A worker that dies takes nothing with it that the
   scheduler could not make again, which scattered data would.
2. A task for each block: x, y and weights in, a result of constant size out.
3. Results are merged in groups of `GROUP` neighbours, groups of these likewise, until one is left,
   which alone comes to the client. The tree depends on the number of blocks and on nothing else,
   so that the result is the same to the last bit whoever computes it.

Cost. One task a block and 8 / 7 merges a group; a worker holds at most `GROUP` results and a block
for each of its threads. A task uses one thread: there are as many at a time as the cluster has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from dask import array as da
from dask.delayed import delayed

from pursuit._validation import is_collection
from pursuit.linalg import blocks

__all__ = ["GROUP", "Parts", "is_array", "parts_of", "total", "tree"]

# Results merged by one task.
GROUP = 8


class Parts(NamedTuple):
    """Rows in blocks, each with its targets and weights (or None), all of them delayed.

    `columns` is a table of no rows with their features.
    """

    blocks: list[tuple[Any, Any, Any]]
    columns: Any


def parts_of(X: Any, y: Any = None, sample_weight: Any = None) -> Parts:
    """The blocks of a collection, and those of what goes with it.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features), or dask DataFrame
        Rows; the blocks of an array may be CSR matrices.
    y, sample_weight : dask array, Series or DataFrame, optional
        One entry or row for each row of X.

    Raises
    ------
    ValueError
        If X has not two axes, or y or the weights are no collections or have other rows.
    """
    if X.ndim != 2:
        raise ValueError(f"X must have two axes, got shape {X.shape}")
    others = [_alike(y, X, "y"), _alike(sample_weight, X, "sample_weight")]
    rows = _delayed(X)
    given = [[None] * len(rows) if other is None else _delayed(other) for other in others]
    return Parts(list(zip(rows, *given, strict=True)), empty_like(X))


def empty_like(X: Any) -> Any:
    """A table of no rows with the features of X, and their names where it has any."""
    return np.empty((0, X.shape[1])) if is_array(X) else X._meta


def total(
    task: Callable[..., Any],
    merge: Callable[[Any, Any], Any],
    parts: Sequence[tuple[Any, ...]],
    *shared: Any,
) -> Any:
    """What `merge` makes of ``task(*shared, *block)`` over all blocks.

    Parameters
    ----------
    task : callable
        Returns a result of constant size, or None for a block that has nothing to say.
    merge : callable
        Of two results, of neighbouring blocks in their order.
    parts : sequence of tuple
        Blocks.
    *shared
        What all tasks are given.

    Returns
    -------
    total : object or None
        None if no block has anything to say.
    """
    result = tree(task, merge, parts, *shared)
    with warnings.catch_warnings():
        # The vectors: some megabytes that have to leave the client once.
        warnings.filterwarnings("ignore", "Sending large graph")
        return result.compute()


def tree(
    task: Callable[..., Any],
    merge: Callable[[Any, Any], Any],
    parts: Sequence[tuple[Any, ...]],
    *shared: Any,
) -> Any:
    """The graph of `total`, not computed."""
    common = delayed(shared, traverse=False)
    leaf, node = delayed(_result, pure=False), delayed(_merged, pure=False)
    level = [leaf(task, common, *part) for part in parts]
    while True:
        level = [node(merge, level[i : i + GROUP]) for i in range(0, len(level), GROUP)]
        if len(level) == 1:
            return level[0]


def _result(task: Callable[..., Any], shared: tuple[Any, ...], *block: Any) -> Any:
    """The task for one block, on one thread."""
    with blocks.at_most_threads(1):
        return task(*shared, *block)


def _merged(merge: Callable[[Any, Any], Any], results: list[Any]) -> Any:
    """Neighbouring results in one."""
    merged = None
    for result in results:
        if merged is None:
            merged = result
        elif result is not None:
            merged = merge(merged, result)
    return merged


def _alike(given: Any, X: Any, name: str) -> Any:
    """The targets or weights in the blocks of X."""
    if given is None:
        return None
    if not is_collection(given):
        raise ValueError(f"{name} must be a dask collection, as X is")
    if _n_blocks(given) == _n_blocks(X) and not _known(given, X):
        return given  # each block looks whether they are as long
    if not _known(given, X):
        raise ValueError(f"{name} has {_n_blocks(given)} blocks, but X has {_n_blocks(X)}")
    if given.shape[0] != X.shape[0]:
        raise ValueError(f"{name} has {given.shape[0]} rows, but X has {X.shape[0]}")
    return given.rechunk({0: X.chunks[0]})


def _known(*collections: Any) -> bool:
    """Whether all are arrays whose lengths are known."""
    return all(is_array(c) and c.shape[0] == c.shape[0] for c in collections)


def is_array(collection: Any) -> bool:
    """Whether this is an array rather than a frame."""
    return isinstance(collection, da.Array)


def _n_blocks(collection: Any) -> int:
    """How many blocks of rows there are."""
    if is_array(collection):
        return int(collection.numblocks[0])
    return int(collection.npartitions)


def _delayed(collection: Any) -> list[Any]:
    """Blocks of rows."""
    if is_array(collection):
        if collection.ndim == 2 and collection.numblocks[1] > 1:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    return list(collection.to_delayed())
