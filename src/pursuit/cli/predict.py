"""The command ``pursuit predict``: a model file and a file of rows in, predictions out."""

from __future__ import annotations

import codecs
import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pursuit.cli.options import EXISTING, UsageFault, argument, option, require_folder
from pursuit.cli.reporting import say

__all__ = ["Predict"]


@dataclass
class Predict:
    """Predict for the rows of a file and write a CSV file with a row for each."""

    model: Path = argument("Model file that fit wrote.", **EXISTING)
    data: Path = argument("File to predict for; a target in it is ignored.", **EXISTING)
    output: Path = option("CSV file to write.", "--output", "-o")
    proba: bool = option("Also write the probability of each class.", "--proba", default=False)

    def run(self) -> None:
        """Read, predict, write."""
        from pursuit.io.tables import read
        from pursuit.table.model import TableModel

        require_folder(self.output)
        model = TableModel.load(self.model)
        if self.proba and model.layout_.task == "regression":
            raise UsageFault("--proba: a regression has no probabilities")
        data = read(self.data, model.layout_.missing)
        X = model.features(data)
        columns = {"prediction": model.estimator_.predict(X)}
        if self.proba:
            names = [f"probability_{label}" for label in model.estimator_.classes_]
            columns |= zip(names, model.estimator_.predict_proba(X).T, strict=True)
        say(model.notes(data))
        _write_csv(self.output, columns)


def _write_csv(path: Path, columns: dict[str, Any]) -> None:
    """Write columns; numbers in the shortest form that reads back as the same number."""
    from pursuit.model_file import replacing

    with replacing(path) as stream:
        writer = csv.writer(codecs.getwriter("utf-8")(stream), lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
