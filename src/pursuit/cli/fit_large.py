"""The command ``pursuit fit`` on a Parquet file that need not fit in memory."""

from __future__ import annotations

from typing import Any

from pursuit.cli.options import UsageFault
from pursuit.cli.progress import tracking
from pursuit.cli.reporting import MEASURED_ROWS, known, labelled, report, say

__all__ = ["LARGE_BYTES", "fit_large_file", "is_large"]

# A table whose numbers take more than this is read in blocks.
LARGE_BYTES = 2**28


def is_large(command: Any) -> bool:
    """Tell whether the file is read in blocks: as asked for, or by its size."""
    from pursuit.table.large_files import n_bytes

    large = command.stream
    if large is None:
        large = n_bytes(command.data) > LARGE_BYTES
    if command.resume and not (large and command.data.suffix.lower() == ".parquet"):
        raise UsageFault("--resume goes with a Parquet file that is read in blocks (--stream)")
    if command.stream and command.data.suffix.lower() != ".parquet":
        raise UsageFault("--stream goes with a Parquet file only")
    return bool(large)


def fit_large_file(command: Any) -> None:
    """Fit in blocks, write, report; what is left of the run is removed at its end."""
    from pursuit.io import tables
    from pursuit.table.large_files import Rows, fit_large, scratch_files
    from pursuit.table.model_selection import measure

    _check(command)
    model, scratch = command.unfitted(), scratch_files(command.output)
    if not command.resume:
        for path in scratch:
            path.unlink(missing_ok=True)
    elif not any(path.exists() for path in scratch):
        say([f"nothing to resume from beside {command.output}: from the start"])
    rows = Rows(command.data, command.na)
    with tracking() as track:
        found = fit_large(
            model, rows, command.output, lambda data: command.learn(model, data), track
        )
    fitted, error, where = found.model, found.error, "rows held out"
    if command.test:
        data, y = labelled(tables.read(command.test, rows.words), fitted.layout_)
        truth, where = known(data, y, fitted), "test rows"
        predicted = fitted.estimator_.predict(fitted.features(data))
        error = measure(truth, predicted, fitted.estimator_, fitted.layout_)
    single: dict[str, Any] = {}
    if command.float32:
        single = {"dtype": "float32", "rows": found.X[:MEASURED_ROWS]}
    fitted.save(command.output, staged=command.staged, **single)
    for path in scratch:
        path.unlink(missing_ok=True)
    say([f"{rows.height} rows were read in blocks; columns and parameters are from a sample"])
    report(fitted, where, error, found.X, command.output)


def _check(command: Any) -> None:
    """Refuse what sums over rows do not tell."""
    if command.target is None:
        raise UsageFault("a table needs --target COLUMN, the column to predict")
    if command.loss != "squared_error":
        raise UsageFault(f"--loss {command.loss} needs all rows in memory: --no-stream")
    if command.class_weight == ["balanced"]:
        raise UsageFault("--class-weight balanced needs all rows in memory: give numbers")
