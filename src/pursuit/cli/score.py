"""The command ``pursuit score``: how wrong a model is on a file that holds the target."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pursuit.cli.options import (
    EXISTING,
    READ,
    InputFormat,
    argument,
    format_option,
    json_option,
    option,
    show,
)
from pursuit.cli.reporting import costs, known, labelled, report, say

__all__ = ["Score"]

# The names in `pursuit.reports.measures`, which is imported when there is something to measure.
METRICS = "accuracy, balanced_accuracy, f1, roc_auc, log_loss, r2, mae, rmse"
# Of more classes the table of what was taken for what is not shown.
MOST_CLASSES = 12


@dataclass
class Score:
    """Measure the error of a model on a file that holds the target."""

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit score churn.pursuit churn.csv",
        "pursuit score churn.pursuit churn.csv --metric f1 --metric roc_auc",
        "pursuit score churn.pursuit churn.csv --threshold 0.3 --json",
        "pursuit score fee.pursuit - --metric r2 --metric mae < churn.csv",
    )

    model: Path = argument("Model file that fit wrote.", **EXISTING)
    data: Path = argument("File with the target, - for standard input.", **READ)
    metric: list[str] = option(
        f"Also measure this; may be given again. One of {METRICS}.",
        metavar="NAME",
        default=[],
    )
    threshold: float | None = option(
        "With two classes: the probability of the second from which on it is predicted.",
        default=None,
        min=0.0,
        max=1.0,
    )
    json: bool = json_option()
    input_format: InputFormat = format_option("input")

    def run(self) -> None:
        """Read, predict, compare."""
        from pursuit.cli.measures import labels_at, measured
        from pursuit.cli.streams import read
        from pursuit.reports.measures import MEASURES, Answers, confusion
        from pursuit.table.model import TableModel
        from pursuit.table.model_selection import check_targets, measure

        model = TableModel.load(self.model)
        layout, estimator = model.layout_, model.estimator_
        data, y = labelled(read(self.data, layout.missing, self.input_format), layout)
        check_targets(data, y, layout, estimator.loss_)
        X = model.features(data)
        say(model.notes(data))
        predicted = labels_at(estimator, X, self.threshold)
        answers = Answers.of(estimator, X, known(data, y, model), predicted)
        error = measure(*answers[:2], estimator, layout)
        more = measured(self.metric, layout.task, answers)
        matrix = confusion(answers) if layout.task == "classification" else None
        if self.json:
            print(json.dumps(self._facts(model, error, more, matrix, X)))
            return
        rows = [(MEASURES[name].title, f"{value:.4g}", "") for name, value in more.items()]
        report(model, "rows of the file", error, X, self.model, rows)
        if matrix and len(matrix[0]) <= MOST_CLASSES:
            labels, counts = matrix
            table = [(label, *row) for label, row in zip(labels, counts, strict=True)]
            show(["is, taken for", *map(str, labels)], table)

    def _facts(self, model: Any, error: Any, more: Any, matrix: Any, X: Any) -> dict[str, Any]:
        """Return what the tables say, for programs."""
        from pursuit.table.model_selection import yardstick

        name = yardstick(model.layout_.task, model.estimator_).name
        told = {
            "model": str(self.model),
            "rows": error.n_rows,
            "error": {"name": name, "model": error.error, "baseline": error.baseline},
            "metrics": more,
            **costs(model.estimator_, X, self.model),
        }
        if matrix:
            told["confusion"] = {"labels": matrix[0], "counts": matrix[1]}
        return told
