"""The command ``pursuit plot``: what each further vector buys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pursuit.cli.options import EXISTING, READ, UsageFault, argument, option, require_folder
from pursuit.cli.reporting import labelled

__all__ = ["Plot"]

SUFFIXES = (".png", ".svg", ".pdf")


@dataclass
class Plot:
    """Draw the losses of a model against its number of vectors.

    Of selected vectors the path is in the file, with --data also on rows that it has not seen. Of
    vectors that move smaller models are made and measured on the rows of --data.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit plot path.pursuit --output path.png",
        "pursuit plot path.pursuit --data churn.csv --output path.svg",
        "pursuit plot churn.pursuit --data churn.csv --output sizes.png",
    )

    model: Path = argument("A model file.", **EXISTING)
    output: Path = option("Picture to write: .png, .svg or .pdf.", "--output", "-o")
    data: Path | None = option("File with the target.", default=None, **READ)

    def run(self) -> None:
        """Read, draw, write."""
        from pursuit import load
        from pursuit.model_file import replacing

        require_folder(self.output)
        form = self.output.suffix.lower()
        if form not in SUFFIXES:
            raise UsageFault(f"--output: {self.output} must end in {', '.join(SUFFIXES)}")
        model = load(self.model)
        try:
            figure = self._display(model).figure_
        except ImportError as missing:
            raise UsageFault("plot needs matplotlib: pip install 'pursuit[plot]'") from missing
        with replacing(self.output) as stream:
            figure.savefig(stream, format=form[1:], dpi=150)

    def _display(self, model: Any) -> Any:
        """Return the picture that goes with the model."""
        from pursuit.displays import FrontierDisplay, PursuitPathDisplay

        estimator = getattr(model, "estimator_", model)
        if hasattr(estimator, "train_loss_path_"):
            return PursuitPathDisplay.from_estimator(estimator, *self._rows(model))
        if not hasattr(estimator, "energy_path_"):
            raise UsageFault(f"{self.model}: {type(estimator).__name__} has no path to draw")
        if self.data is None:
            raise UsageFault("--data: the smaller models of vectors that move need rows")
        return FrontierDisplay.from_estimator(estimator, *self._rows(model))

    def _rows(self, model: Any) -> tuple[Any, ...]:
        """Return the features and the targets of the file, or none."""
        from pursuit.cli.streams import read

        if self.data is None:
            return ()
        if not hasattr(model, "layout_"):
            raise UsageFault("--data: the model file holds no columns of a table")
        data, y = labelled(read(self.data, model.layout_.missing), model.layout_)
        return model.features(data), y
