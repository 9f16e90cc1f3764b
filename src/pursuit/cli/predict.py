"""The command ``pursuit predict``: a model file and a file of rows in, predictions out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pursuit.cli.options import (
    EXISTING,
    READ,
    STANDARD,
    InputFormat,
    UsageFault,
    argument,
    format_option,
    option,
    require_folder,
)
from pursuit.cli.reporting import say

__all__ = ["Predict"]


@dataclass
class Predict:
    """Predict for the rows of a file and write a row for each."""

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit predict churn.pursuit churn.csv --output predictions.csv",
        "pursuit predict churn.pursuit - --proba --output-format jsonl < churn.csv",
        "pursuit predict churn.pursuit churn.csv --threshold 0.3 -o alarms.parquet",
        "pursuit predict fee.pursuit churn.csv --interval 0.1 -o fees.tsv",
    )

    model: Path = argument("Model file that fit wrote.", **EXISTING)
    data: Path = argument(
        "File to predict for, - for standard input; a target in it is ignored.", **READ
    )
    output: Path = option(
        "File to write (.csv, .tsv, .jsonl, .parquet), - for standard output.",
        "--output",
        "-o",
        default=STANDARD,
    )
    proba: bool = option("Also write the probability of each class.", "--proba", default=False)
    threshold: float | None = option(
        "With two classes: the probability of the second from which on it is predicted.",
        default=None,
        min=0.0,
        max=1.0,
    )
    interval: float | None = option(
        "Of numbers also write the ends of intervals that this share of targets lies outside of.",
        default=None,
        min=0.001,
        max=0.999,
    )
    input_format: InputFormat = format_option("input")
    output_format: InputFormat = format_option("output")

    def run(self) -> None:
        """Read, predict, write."""
        from pursuit.cli.streams import read, write
        from pursuit.table.model import TableModel

        require_folder(self.output)
        model = TableModel.load(self.model)
        self._check(model.layout_.task, model.estimator_)
        data = read(self.data, model.layout_.missing, self.input_format)
        columns = self._columns(model.estimator_, model.features(data))
        say(model.notes(data))
        write(self.output, columns, self.output_format)

    def _check(self, task: str, estimator: Any) -> None:
        """Refuse what the model does not have."""
        if self.proba and task == "regression":
            raise UsageFault("--proba: a regression has no probabilities")
        if self.interval is not None and not hasattr(estimator, "predict_interval"):
            raise UsageFault("--interval goes with a regression")

    def _columns(self, estimator: Any, X: Any) -> dict[str, Any]:
        """Return what is written."""
        from pursuit.cli.measures import labels_at

        columns = {"prediction": labels_at(estimator, X, self.threshold)}
        if self.proba:
            names = [f"probability_{label}" for label in estimator.classes_]
            columns |= zip(names, estimator.predict_proba(X).T, strict=True)
        if self.interval is not None:
            ends = estimator.predict_interval(X, self.interval)
            columns |= zip(("lower", "upper"), ends, strict=True)
        return columns
