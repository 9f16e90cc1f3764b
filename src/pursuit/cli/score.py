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
        from pursuit.io.tables import read
        from pursuit.table.model import TableModel
        from pursuit.table.model_selection import check_targets, measure

        model = TableModel.load(self.model)
        data, y = labelled(read(self.data, model.layout_.missing), model.layout_)
        check_targets(data, y, model.layout_, model.estimator_.loss_)
        X = model.features(data)
        say(model.notes(data))
        truth, predicted = known(data, y, model), model.estimator_.predict(X)
        measured = measure(truth, predicted, model.estimator_, model.layout_)
        report(model, "rows of the file", measured, X, self.model)
