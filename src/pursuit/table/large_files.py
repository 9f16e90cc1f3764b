"""Fitting a `TableModel` to a Parquet file that need not fit in memory.

Sums over rows (`pursuit.greedy.statistics`) tell all that squared error asks of them. So:

1. A sample of `SAMPLE_ROWS` rows, evenly spaced, teaches what the columns are, the preparation, and
   what cross-validation chooses: gamma, and C or the number of vectors. Vectors that move do so on
   the sample.
2. All other rows but those of step 3 are read in blocks, prepared, and added to sums: selected
   vectors are chosen from these (`fit_blocks`, two passes), vectors that moved get the best
   coefficients on all rows (`refit`, one pass).
3. Rows held out, evenly spaced between those of the sample, tell the error; then they are added to
   the sums, and the last fit has all rows.

What a killed run leaves: the model of step 1 and the sums, written in one piece every
`CHECKPOINT_SECONDS`. `--resume` goes on from both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pursuit.checkpoints import StatisticsCheckpoint
from pursuit.io.tables import DataError, Table, from_frame, missing_words
from pursuit.table.model import TableModel
from pursuit.table.model_selection import (
    CANDIDATES_OF_MANY,
    Measured,
    Settings,
    Track,
    check_targets,
    measure,
)
from pursuit.table.preparation import labelled, matching

__all__ = ["Large", "fit_large", "n_bytes", "scratch_files"]

SAMPLE_ROWS, HELD_ROWS = 20_000, 10_000
BLOCK_ROWS = 65_536
CHECKPOINT_SECONDS = 60.0


class Large(NamedTuple):
    """What `fit_large` gives.

    Attributes
    ----------
    model : TableModel
        Fitted to all rows.
    error : Measured
        On the rows held out, of the fit without them.
    X : ndarray of shape (n_rows, n_features)
        Features of the rows held out.
    """

    model: TableModel
    error: Measured
    X: Any


def n_bytes(path: Path) -> float:
    """What the columns of a Parquet file take as numbers in memory; 0 for other files."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return 0.0
    try:
        frame = pl.scan_parquet(path)
        return 8.0 * len(frame.collect_schema()) * float(frame.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError):
        return 0.0  # the fault is told with its place when the file is read


def scratch_files(output: Path) -> tuple[Path, Path]:
    """Where a run keeps the model of its sample, and its sums, beside the model file."""
    return output.with_name(f"{output.name}.sample"), output.with_name(f"{output.name}.sums")


def fit_large(
    model: TableModel, rows: Rows, output: Path, learn: Callable[[Any], Any], track: Track
) -> Large:
    """Fit, from what an earlier run left where it left anything.

    Parameters
    ----------
    model : TableModel
        Not fitted.
    rows : Rows
        The file.
    output : Path
        The model file to be, beside which a killed run leaves its state.
    learn : callable
        From the sample as a table to its rows with a target and these: ``model.learn``.
    track : callable
        Shows progress.
    """
    sample, sums = scratch_files(output)
    if sample.exists():
        model = _same_options(model, TableModel.load(sample), sample)
    else:
        data, y = learn(rows.sample())
        model.fit_rows(data, y, track)
        model.save(sample)
    checkpoint = StatisticsCheckpoint(sums, every=CHECKPOINT_SECONDS)
    settings = model.settings()
    fit = _moved if settings.method == "moving" else _selected
    X, y = rows.held(model)
    estimator, error = fit(model, settings, rows, checkpoint, (X, y), track)
    for name in (
        "support_",
        "nearest_rows_",
    ):  # places in the sample or the blocks, not in the file
        if hasattr(estimator, name):
            delattr(estimator, name)
    model.estimator_ = estimator
    return Large(model, error, X)


def _same_options(model: TableModel, kept: TableModel, path: Path) -> TableModel:
    """The model that an earlier run left, if its options were these."""
    own, other = ({**each.get_params(), "class_weight": None} for each in (model, kept))
    if own != other:
        raise DataError(
            f"{path}: left by a run with other options; without --resume it is replaced"
        )
    return kept


def _selected(
    model: TableModel,
    settings: Settings,
    rows: Rows,
    checkpoint: StatisticsCheckpoint,
    held: tuple[Any, Any],
    track: Track,
) -> tuple[Any, Measured]:
    """Vectors among all rows, as many and with such a kernel as the sample wanted."""
    chosen = model.estimator_
    few = settings.n_candidates or max(CANDIDATES_OF_MANY, 5 * chosen.n_components_)
    settings = replace(settings, n_candidates=few)
    estimator = settings.estimator(rows.height, "scale", chosen.n_components_)
    estimator.set_params(kernel=chosen.kernel_)
    estimator.fit_blocks(lambda: rows.blocks(model, track), checkpoint=checkpoint)
    error = measure(held[1], estimator.predict(held[0]), estimator, model.layout_)
    return estimator.partial_fit(*held), error


def _moved(
    model: TableModel,
    settings: Settings,
    rows: Rows,
    checkpoint: StatisticsCheckpoint,
    held: tuple[Any, Any],
    track: Track,
) -> tuple[Any, Measured]:
    """The sample's vectors with the best coefficients on all rows."""
    estimator = model.estimator_
    kept = checkpoint.load()
    sums = estimator.empty_statistics() if kept is None else kept
    done = getattr(sums, "n_rows_", 0)
    for X, y in rows.blocks(model, track):
        done -= len(y)
        if done < 0:
            sums.update(X, y, _weights(estimator, y))
            checkpoint.seen(sums)
    checkpoint.finish(sums)
    estimator.refit(sums)
    error = measure(held[1], estimator.predict(held[0]), estimator, model.layout_)
    return estimator.refit(sums.update(*held, _weights(estimator, held[1]))), error


def _weights(estimator: Any, y: NDArray[Any]) -> NDArray[np.float64] | None:
    """What each row counts for by its class."""
    weight = getattr(estimator, "class_weight", None)
    if weight is None:
        return None
    return np.array([weight.get(label, 1.0) for label in y.tolist()])


class Rows:
    """The rows of a Parquet file: a sample, rows held out, and all others in blocks.

    Parameters
    ----------
    path : Path
        The file.
    missing : collection of str, optional
        The words of a table that mean "missing".
    """

    def __init__(self, path: Path, missing: Any = None) -> None:
        self.path, self.words = str(path), missing_words(missing)
        self.height = int(pl.scan_parquet(path).select(pl.len()).collect().item())
        # Row i is of the sample where i % step == 0, held out where that is step // 2.
        self.step = max(4, self.height // SAMPLE_ROWS)
        self.held_step = self.step * max(1, self.height // self.step // HELD_ROWS)

    def sample(self) -> Table:
        """The rows that columns and parameters are learned from."""
        return self._table(self._some(0, self.step), 1)

    def held(self, model: TableModel) -> tuple[Any, NDArray[Any]]:
        """Features and targets of the rows that the error is measured on."""
        return self._prepared(self._table(self._some(self.step // 2, self.held_step), 1), model)

    def blocks(self, model: TableModel, track: Track) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Features and targets of the other rows; those of the sample, too."""
        starts = range(0, self.height, BLOCK_ROWS)
        for start in track(starts, f"reading {self.height} rows"):
            frame = pl.scan_parquet(self.path).slice(start, BLOCK_ROWS).collect()
            places = start + np.arange(frame.height)
            kept = places % self.held_step != self.step // 2
            if not kept.any():
                continue
            yield self._prepared(self._table(frame.filter(pl.Series(kept)), start + 1), model)

    def _some(self, first: int, step: int) -> pl.DataFrame:
        """Every so-many-th row, from blocks of which no more are kept."""
        parts = []
        for start in range(0, self.height, BLOCK_ROWS):
            frame = pl.scan_parquet(self.path).slice(start, BLOCK_ROWS).collect()
            offset = (first - start) % step
            if offset < frame.height:
                parts.append(frame.gather_every(step, offset))
        return pl.concat(parts)

    def _table(self, frame: pl.DataFrame, line: int) -> Table:
        """Rows as a table, which tells the first of its rows in the file."""
        return from_frame(frame, self.words, f"{self.path}: rows from {line} on")

    def _prepared(self, table: Table, model: TableModel) -> tuple[Any, NDArray[Any]]:
        """Features and targets of the rows that have one."""
        data, y, _ = labelled(table, model.layout_)
        check_targets(data, y, model.layout_, model.loss)
        return model.preparation_.transform(matching(data, model.layout_)), y
