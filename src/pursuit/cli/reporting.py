"""How the commands answer: notes on standard error, the table of a model's error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pursuit.cli.options import rounding, show

__all__ = ["MEASURED_ROWS", "costs", "known", "labelled", "report", "say"]

# So many rows are timed, and compared before and after they are stored.
MEASURED_ROWS = 10_000


def labelled(data: Any, layout: Any) -> tuple[Any, Any]:
    """Return the rows that have a target, and the targets."""
    from pursuit.table import preparation

    rows, y, notes = preparation.labelled(data, layout)
    say(notes)
    return rows, y


def known(data: Any, y: Any, model: Any) -> Any:
    """Return targets to compare with predictions; say which the model does not know."""
    from pursuit.table.preparation import known_labels

    y, notes = known_labels(data, y, model.layout_, getattr(model.estimator_, "classes_", None))
    say(notes)
    return y


def say(notes: list[str]) -> None:
    """Print notes on standard error."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def costs(estimator: Any, X: Any, path: Path) -> dict[str, Any]:
    """Return what a model costs, and what it is."""
    from pursuit.reports.parts import brief
    from pursuit.reports.timing import microseconds_a_row

    return {
        "vectors": estimator.n_components_,
        "bytes": path.stat().st_size,
        "microseconds_a_row": microseconds_a_row(estimator.predict, X[:MEASURED_ROWS]),
        "kernel": brief(estimator.kernel_),
        "loss": brief(estimator.loss_),
    }


def report(
    model: Any,
    where: str,
    measured: Any,
    X: Any,
    path: Path,
    more: Sequence[tuple[str, str, str]] = (),
) -> None:
    """Print the error beside the baseline's, further measures, and what the model costs."""
    from pursuit.model_file import describe
    from pursuit.table.model_selection import yardstick

    layout, estimator = model.layout_, model.estimator_
    measure, share = yardstick(layout.task, estimator), layout.task == "classification"
    rows: list[tuple[Any, ...]] = []
    if measured:
        both = (measured.error, measured.baseline)
        shown = [f"{100 * value:.2f} %" if share else f"{value:.4g}" for value in both]
        rows += [(measure.name, *shown), ("measured on", f"{measured.n_rows:,} {where}", "")]
    cost = costs(estimator, X, path)
    rows += [
        *more,
        ("vectors", cost["vectors"], ""),
        ("bytes on disk", f"{cost['bytes']:,}", ""),
        *((*row, "") for row in rounding(describe(path)["rounded"])),
        ("microseconds a row", f"{cost['microseconds_a_row']:.3g}", ""),
        ("kernel", cost["kernel"], ""),
        ("loss", cost["loss"], ""),
    ]
    show(["", "model", f"always {layout.baseline}" if share else measure.constant], rows)
