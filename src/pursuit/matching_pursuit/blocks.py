"""Matching pursuit on rows that come in blocks: files larger than memory.

Two passes where the blocks can be read again, as those of a list, of a function that opens a file
anew, or of `pursuit.ParquetBlocks`: the first draws the candidates and finds the kernel's numbers
and the classes (``greedy/survey.py``), the second takes the sums (``greedy/statistics.py``), from
which the path follows. The model is that of `fit` on all rows with the same candidates; without a
``random_state`` these are the same ones.

Of an iterator, which can be read once, the first blocks that hold as many rows as there may be
candidates take the place of the first pass.

Small blocks are put together, so that sums are taken over as many rows as there are candidates or
more: their cost is then that of the products.

Memory: the block at hand, M rows and three times M^2 numbers for M candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Protocol, Self

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from pursuit._typing import Array
from pursuit._validation import Samples, check_integer, check_several_classes, read_data
from pursuit.dictionary import (
    CANDIDATES_A_VECTOR,
    LARGEST_COMPLETE,
    Dictionary,
    n_candidate_rows,
)
from pursuit.greedy.statistics import KernelStatistics
from pursuit.greedy.survey import Survey, salt_of, stacked
from pursuit.kernels import gamma_of, is_precomputed, resolve_kernel
from pursuit.matching_pursuit.streams import (
    FitsStatistics,
    StatisticsClassifier,
    StatisticsRegressor,
)

__all__ = ["BlocksClassifier", "BlocksRegressor", "Checkpoint"]

Blocks = Iterable[Any] | Callable[[], Iterable[Any]]


class Checkpoint(Protocol):
    """Where sums are kept while a pass goes on."""

    def load(self) -> KernelStatistics | None:
        """The sums to go on from, if there are any."""

    def seen(self, statistics: KernelStatistics) -> None:
        """Told after each block; keeps the sums now and then."""

    def finish(self, statistics: KernelStatistics) -> None:
        """Told of the sums over all rows."""


class FitsBlocks(FitsStatistics):
    """`fit_blocks` of both kinds."""

    def _fit_blocks(self, blocks: Blocks, classes: Any, checkpoint: Checkpoint | None) -> Self:
        """The two passes, and the fit."""
        self._check_sums_suffice()
        if isinstance(self.kernel, Mapping) or is_precomputed(self.kernel):
            raise ValueError("kernel: fit_blocks needs one kernel of rows")
        source = _Source(blocks)
        survey = Survey(self._capacity(), salt_of(self.random_state))
        labels = self._survey(source.first_pass(survey.capacity), survey, classes)
        if not survey.n_used:
            raise ValueError("blocks holds no row of positive weight")
        statistics, places = self._empty(survey, labels)
        statistics = self._summed(statistics, source.second_pass(), checkpoint)
        self.statistics_, self._candidate_rows = statistics, places
        return self._fit_sums(statistics, Dictionary(statistics.dictionary.atoms, places))

    def _capacity(self) -> int:
        """Candidates to keep in the first pass, at most."""
        if isinstance(self.n_candidates, float):
            raise ValueError("n_candidates must be a number for fit_blocks, not a fraction")
        if self.n_candidates is not None:
            check_integer("n_candidates", self.n_candidates)
            return int(self.n_candidates)
        return max(LARGEST_COMPLETE, CANDIDATES_A_VECTOR * self._budget())

    def _budget(self) -> int:
        """Vectors of the whole model."""
        if np.ndim(self.n_components) == 0:
            check_integer("n_components", self.n_components)
        return int(np.sum(self.n_components))

    def _survey(self, blocks: Iterator[Any], survey: Survey, classes: Any) -> Array | None:
        """The first pass; the labels of a classifier."""
        raise NotImplementedError

    def _empty(self, survey: Survey, labels: Array | None) -> tuple[KernelStatistics, Array]:
        """Sums over no rows yet, of the candidates that the first pass found, and their places."""
        number = n_candidate_rows(self.n_candidates, survey.n_used, self._budget())
        vectors, places = survey.first(number)
        numbers = {name: getattr(self, name) for name in ("degree", "coef0", "kernel_params")}
        scale = isinstance(self.gamma, str) and self.gamma == "scale"
        gamma = gamma_of(survey.spread, vectors.shape[1]) if scale else self.gamma
        kernel: Any = resolve_kernel(self.kernel, vectors, gamma=gamma, **numbers)
        statistics = KernelStatistics(vectors, classes=labels, kernel=kernel)
        statistics._begin_as(self)
        return statistics, places

    def _summed(
        self, statistics: KernelStatistics, blocks: Iterator[Any], checkpoint: Checkpoint | None
    ) -> KernelStatistics:
        """The second pass, from the checkpoint on."""
        kept = checkpoint.load() if checkpoint else None
        if kept is not None:
            statistics._check_alike(kept)
            statistics = kept
        read = map(self._read_block, blocks)
        done = getattr(statistics, "n_rows_", 0)
        for samples in _together(_after(read, done), statistics.dictionary.atoms.centres.shape[0]):
            done += samples.X.shape[0]
            if samples.weights.any():
                statistics._add(samples, one_dimensional=self._is_one_dimensional())
            statistics.n_rows_ = done
            if checkpoint:
                checkpoint.seen(statistics)
        if checkpoint:
            checkpoint.finish(statistics)
        return statistics

    def _read_block(self, block: Any) -> Samples:
        """Checked rows of a block; features as in the blocks before."""
        raise NotImplementedError

    def _is_one_dimensional(self) -> bool:
        """Whether y has no axis of targets."""
        return True


class _Source:
    """Blocks that are read twice, or whose first ones are kept."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks: Any = blocks
        self.iterator = blocks if isinstance(blocks, Iterator) else None
        self.head: list[Any] = []

    def first_pass(self, n_rows: int) -> Iterator[Any]:
        """All blocks; of an iterator the first ones, until they hold so many rows."""
        if self.iterator is None:
            yield from self._anew()
            return
        for block in self.iterator:
            self.head.append(block)
            yield block
            n_rows -= len(_parts(block)[1])
            if n_rows <= 0:
                return

    def second_pass(self) -> Iterator[Any]:
        """All blocks."""
        if self.iterator is None:
            return self._anew()
        return chain(self.head, self.iterator)

    def _anew(self) -> Iterator[Any]:
        return iter(self.blocks() if callable(self.blocks) else self.blocks)


def _parts(block: Any) -> tuple[Any, Any, Any]:
    """X, y and weights of a block.

    Raises
    ------
    ValueError
        If it is no such tuple.
    """
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise ValueError("a block must be a tuple (X, y) or (X, y, sample_weight)")
    X, y, *weights = block
    return X, y, weights[0] if weights else None


def _usable(weights: Any, n_rows: int) -> tuple[Any, bool]:
    """Weights that are not all zero, and whether those given are not."""
    nothing = weights is not None and not np.any(weights)
    return (np.ones(n_rows) if nothing else weights), not nothing


def _after(blocks: Iterator[Samples], n_rows: int) -> Iterator[Samples]:
    """The blocks behind so many rows.

    Raises
    ------
    ValueError
        If these do not end where a block does.
    """
    for block in blocks:
        if n_rows <= 0:
            yield block
            continue
        n_rows -= block.X.shape[0]
        if n_rows < 0:
            raise ValueError("checkpoint: the blocks do not begin where its rows end")


def _together(blocks: Iterator[Samples], n_rows: int) -> Iterator[Samples]:
    """Blocks put together until they hold so many rows."""
    waiting: list[Samples] = []
    for block in blocks:
        waiting.append(block)
        if sum(part.X.shape[0] for part in waiting) >= n_rows:
            yield _one(waiting)
            waiting = []
    if waiting:
        yield _one(waiting)


def _one(parts: list[Samples]) -> Samples:
    """The rows of all parts."""
    own = [part.scales for part in parts if part.scales is not None]
    scales = np.concatenate(own) if own else None
    weights = np.concatenate([part.weights for part in parts])
    X, Y = stacked([part.X for part in parts]), np.vstack([part.Y for part in parts])
    return Samples(X, Y, weights, scales)


class BlocksClassifier(FitsBlocks, StatisticsClassifier):
    """`fit_blocks` of classes."""

    def fit_blocks(
        self, blocks: Blocks, *, classes: Any = None, checkpoint: Checkpoint | None = None
    ) -> Self:
        """Fit on rows that come in blocks: the model of `fit` on all of them, in little memory.

        Parameters
        ----------
        blocks : iterable, or callable that returns one
            Blocks (X, y) or (X, y, sample_weight) as of `fit`. What can be read again (a list, a
            callable, `pursuit.ParquetBlocks`) is read twice: the candidates are drawn from all
            rows, those of smallest hash. An iterator is read once: its first rows, at least 10 000
            or `n_candidates`, fix the candidates, gamma and the classes.
        classes : array-like of shape (n_classes,), default=None
            All labels. None: those of the first pass.
        checkpoint : StatisticsCheckpoint, default=None
            Where the sums are kept while the pass goes on, and taken up again.

        Returns
        -------
        self : estimator
            Fitted; `partial_fit` adds rows to it.

        Raises
        ------
        ValueError
            If a parameter asks for more than sums can tell, a block or the data are invalid, or the
            checkpoint is of other candidates.
        """
        for name in ("classes_", "statistics_"):
            if hasattr(self, name):
                delattr(self, name)
        return self._fit_blocks(blocks, classes, checkpoint)

    def _survey(self, blocks: Iterator[Any], survey: Survey, classes: Any) -> Array | None:
        """The first pass, and the labels of its rows of positive weight."""
        found: set[Any] = set()
        for block in blocks:
            X, y, weights = _parts(block)
            first = not survey.n_rows
            X, y = read_data(self, X, y, reset=first, accept_sparse="csr")
            check_classification_targets(y)
            used = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
            if classes is None:
                found.update(np.unique(y[used > 0]).tolist())
            survey.add(X, used * self._scales(y))
        labels = np.unique(np.array(list(found)) if classes is None else classes)
        if survey.n_used:
            check_several_classes(labels)
        self.classes_ = labels
        return np.asarray(labels)

    def _scales(self, y: Array) -> Any:
        """Weights of the rows' classes."""
        if not isinstance(self.class_weight, Mapping):
            return 1.0
        labels, codes = np.unique(y, return_inverse=True)
        return np.array([self.class_weight.get(label, 1.0) for label in labels.tolist()])[codes]

    def _read_block(self, block: Any) -> Samples:
        """Checked rows, targets +1 and -1, weights with those of the classes."""
        X, y, weights = _parts(block)
        y = column_or_1d(y)
        if weights is not None:  # a row of weight zero may have any label
            y = np.where(np.asarray(weights) > 0, y, self.classes_[0])
        weights, used = _usable(weights, len(y))
        samples = self._read_announced(X, y, None, weights, first=False)
        return samples if used else samples._replace(weights=np.zeros(len(samples.weights)))


class BlocksRegressor(FitsBlocks, StatisticsRegressor):
    """`fit_blocks` of numbers."""

    def fit_blocks(self, blocks: Blocks, *, checkpoint: Checkpoint | None = None) -> Self:
        """Fit on rows that come in blocks: the model of `fit` on all of them, in little memory.

        Parameters
        ----------
        blocks : iterable, or callable that returns one
            Blocks (X, y) or (X, y, sample_weight) as of `fit`. What can be read again (a list, a
            callable, `pursuit.ParquetBlocks`) is read twice: the candidates are drawn from all
            rows, those of smallest hash. An iterator is read once: its first rows, at least 10 000
            or `n_candidates`, fix the candidates and gamma.
        checkpoint : StatisticsCheckpoint, default=None
            Where the sums are kept while the pass goes on, and taken up again.

        Returns
        -------
        self : estimator
            Fitted; `partial_fit` adds rows to it.

        Raises
        ------
        ValueError
            If a parameter asks for more than sums can tell, a block or the data are invalid, or the
            checkpoint is of other candidates.
        """
        if hasattr(self, "statistics_"):
            del self.statistics_
        return self._fit_blocks(blocks, None, checkpoint)

    def _survey(self, blocks: Iterator[Any], survey: Survey, classes: Any) -> Array | None:
        """The first pass."""
        for block in blocks:
            samples = self._read_rows(block, first=not survey.n_rows)
            survey.add(samples.X, samples.weights)
        return None

    def _read_block(self, block: Any) -> Samples:
        """Checked rows, numbers, weights."""
        return self._read_rows(block, first=False)

    def _read_rows(self, block: Any, *, first: bool) -> Samples:
        X, y, weights = _parts(block)
        weights, used = _usable(weights, len(y))
        samples = self._read(X, y, weights, first=first)
        return samples if used else samples._replace(weights=np.zeros(len(samples.weights)))

    def _is_one_dimensional(self) -> bool:
        """Whether y has no axis of targets."""
        return bool(self._one_dimensional)
