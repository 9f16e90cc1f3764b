"""Row blocks within a memory budget: the only place that makes big temporaries.

The budget is scikit-learn's ``working_memory`` (1024 MiB unless the user sets another). A
*block* is as many rows as the caller's columns allow within a share of it; inside a block the
kernel is evaluated in small *chunks* that stay in the processor's cache, by one thread a
core. Block and chunk sizes change results by rounding only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import sklearn
from threadpoolctl import ThreadpoolController

from pursuit._typing import Array

__all__ = [
    "at_most_threads",
    "blas_threads",
    "evaluate",
    "even_slices",
    "evenly_spaced",
    "fits",
    "in_parallel",
    "n_threads",
    "panels",
    "row_blocks",
    "waiting_threads",
]

BLOCK_SHARE = 0.25
CHUNK_BYTES = 1 << 22
# A block of this size is made in memory that the one before left, not in new pages; with fewer rows
# than this, sums over a block are bound by the memory that holds them.
PANEL_BYTES, PANEL_ROWS = 24e6, 1024
SMALLEST_PARALLEL_SIZE = 1 << 18
SMALLEST_THREADED = 1e8

_most_threads: ContextVar[int | None] = ContextVar("_most_threads", default=None)
_waiting: ContextVar[ThreadPoolExecutor | None] = ContextVar("_waiting", default=None)

Functions = Callable[[Any], Array]
Result = TypeVar("Result")


def _budget_bytes() -> float:
    """The working memory in bytes."""
    return float(sklearn.get_config()["working_memory"]) * 2**20


def fits(n_bytes: float) -> bool:
    """Whether an array of `n_bytes` may be kept in memory."""
    return n_bytes <= _budget_bytes()


def row_blocks(n_rows: int, bytes_per_row: float) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)``, each within a quarter of the working memory.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    bytes_per_row : float
        Size of the temporaries that one row needs.

    Yields
    ------
    rows : slice
        Consecutive rows; at least one row a block.
    """
    size = max(1, int(BLOCK_SHARE * _budget_bytes() / max(bytes_per_row, 1.0)))
    yield from _slices(n_rows, size)


def _slices(n_rows: int, size: int) -> list[slice]:
    """Slices of `size` rows each, the last one of what is left."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def even_slices(n_rows: int, most: int) -> list[slice]:
    """Slices of at most so many rows each, about equally many slices and rows for each thread.

    Examples
    --------
    >>> from pursuit.linalg import blocks
    >>> with blocks.at_most_threads(1):
    ...     blocks.even_slices(10, 6)
    [slice(0, 5, None), slice(5, 10, None)]
    """
    threads = n_threads()
    size = max(1, -(-n_rows // (threads * max(1, -(-n_rows // (threads * most))))))
    return _slices(n_rows, size)


def panels(n_rows: int, bytes_per_row: float) -> Iterator[slice]:
    """Blocks for one pass whose sums are all that is kept: small, but not too small.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    bytes_per_row : float
        Size of what a row is turned into.

    Yields
    ------
    rows : slice
        Consecutive rows; never more than `row_blocks` would take.

    Examples
    --------
    >>> from pursuit.linalg import blocks
    >>> [rows.stop - rows.start for rows in blocks.panels(4000, 16_000.0)]
    [1500, 1500, 1000]
    """
    bytes_per_row = max(bytes_per_row, 1.0)
    size = max(PANEL_ROWS, int(PANEL_BYTES / bytes_per_row))
    size = max(1, min(size, int(BLOCK_SHARE * _budget_bytes() / bytes_per_row)))
    yield from _slices(n_rows, size)


def evenly_spaced(n_rows: int, n: int) -> Array:
    """Indices of about `n` of the rows, or of all where there are fewer.

    Examples
    --------
    >>> from pursuit.linalg.blocks import evenly_spaced
    >>> evenly_spaced(10, 3)
    array([0, 3, 6, 9])
    """
    return np.arange(0, n_rows, max(1, n_rows // n))


def n_threads() -> int:
    """Number of processors this process may use, at most OMP_NUM_THREADS where that is set."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    limit = os.environ.get("OMP_NUM_THREADS", "")
    threads = min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available
    return min(threads, _most_threads.get() or threads)


@contextmanager
def at_most_threads(n_jobs: int | None) -> Iterator[None]:
    """Context in which so many threads work, here and in the BLAS.

    Parameters
    ----------
    n_jobs : int or None
        A number; -1 or None: all that the process may use; -2: all but one, and so on.

    Examples
    --------
    >>> from pursuit.linalg import blocks
    >>> with blocks.at_most_threads(1):
    ...     blocks.n_threads()
    1
    """
    if n_jobs is None or n_jobs == -1:
        yield
        return
    number = n_jobs if n_jobs > 0 else max(1, n_threads() + 1 + n_jobs)
    token = _most_threads.set(number)
    try:
        with ONE_THREAD if number == 1 else _blas().limit(limits=number, user_api="blas"):
            yield
    finally:
        _most_threads.reset(token)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries loaded in this process."""
    return ThreadpoolController()


def evaluate(
    functions: Functions,
    X: Any,
    n_columns: int,
    origin: Array | None = None,
    out: Array | None = None,
) -> Array:
    """Values of `functions` on the rows of `X`, chunk by chunk on all cores.

    Parameters
    ----------
    functions : callable
        Maps rows to an array of shape (n_rows, n_columns).
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        The rows of one block.
    n_columns : int
        Number of functions.
    origin : ndarray of shape (n_columns,), optional
        Subtracted from each row of values, which then are float64.
    out : ndarray of float64 of shape (n_rows, n_columns), optional
        Where values less their origin go.

    Returns
    -------
    values : ndarray of shape (n_rows, n_columns)
        Without `origin` in the floating type that the functions return.
    """
    n_rows = X.shape[0]
    if origin is None and n_rows * n_columns < SMALLEST_PARALLEL_SIZE:
        return functions(X)
    size = max(8, min(int(CHUNK_BYTES / (8 * n_columns)), -(-n_rows // n_threads())))
    chunks = _slices(n_rows, size)
    if origin is None:
        first = functions(X[chunks[0]])
        values = np.empty((n_rows, n_columns), dtype=first.dtype)
        values[chunks.pop(0)] = first
    else:
        values = np.empty((n_rows, n_columns)) if out is None else out

    def fill(rows: slice) -> None:
        part = functions(X[rows])
        if origin is None:
            values[rows] = part
        else:
            np.subtract(part, origin, out=values[rows])

    in_parallel(fill, chunks)
    return values


class _OneThread(AbstractContextManager[None]):
    """Context in which the BLAS has one thread, which any number of threads may be in at once.

    The first to enter sets the limit, the last to leave lifts it. Limits that each sets and
    restores by itself would stay where two of them overlap.
    """

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._limit = _blas().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limit.restore_original_limits()


ONE_THREAD = _OneThread()


def blas_threads(n_operations: float) -> AbstractContextManager[Any]:
    """Context in which products of so many operations run on as many BLAS threads as pay.

    Threads that wait for each other cost more than a small product; one is enough below
    `SMALLEST_THREADED` operations.

    Examples
    --------
    >>> from pursuit.linalg import blocks
    >>> with blocks.blas_threads(1e3):
    ...     pass
    """
    if n_operations >= SMALLEST_THREADED:
        return nullcontext()
    return ONE_THREAD


def in_parallel(
    task: Callable[[Any], Result], items: Sequence[Any], *, parallel: bool = True
) -> list[Result]:
    """Results of `task` for every item, on all cores with one BLAS thread each.

    Parameters
    ----------
    task : callable
        Must not touch what another item's task writes.
    items : sequence
        The items.
    parallel : bool, default True
        False runs them one after another, with the BLAS as it is.
    """
    workers = min(n_threads(), len(items)) if parallel else 1
    if workers < 2:
        return [task(item) for item in items]
    pool = _waiting.get()
    with ONE_THREAD:
        if pool is None:
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(task, items))
        if len(items) > workers:
            return list(pool.map(task, items))
        others = [pool.submit(task, item) for item in items[1:]]
        return [task(items[0]), *(other.result() for other in others)]


@contextmanager
def waiting_threads() -> Iterator[None]:
    """Context in which `in_parallel` uses the same threads again: starting some takes 0.3 ms.

    Examples
    --------
    >>> from pursuit.linalg import blocks
    >>> with blocks.waiting_threads():
    ...     blocks.in_parallel(abs, [-1, -2])
    [1, 2]
    """
    with ThreadPoolExecutor(n_threads()) as pool:
        token = _waiting.set(pool)
        try:
            yield
        finally:
            _waiting.reset(token)
