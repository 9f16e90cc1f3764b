"""The command ``pursuit score``: how wrong a model is on a file that holds the target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pursuit.cli.options import EXISTING, argument
from pursuit.cli.reporting import known, labelled, report, say

__all__ = ["Score"]


@dataclass
class Score:
    """Measure the error of a model on a file that holds the target."""

    model: Path = argument("Model file that fit wrote.", **EXISTING)
    data: Path = argument("File with the target.", **EXISTING)

    def run(self) -> None:
        """Read, predict, compare."""
        from pursuit.cli.model_selection import check_targets, measure
        from pursuit.cli.preparation import TableModel
        from pursuit.io.tables import read

        model = TableModel.load(self.model)
        data, y = labelled(read(self.data, model.layout.missing), model.layout)
        check_targets(data, y, model.layout, model.estimator.loss_)
        X = model.features(data)
        say(model.notes(data))
        measured = measure(known(data, y, model), model.estimator.predict(X), model)
        report(model, "rows of the file", measured, X, self.model)
