"""The command ``pursuit report``: a page on a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pursuit.cli.options import EXISTING, READ, UsageFault, argument, option, require_folder

__all__ = ["Report"]


@dataclass
class Report:
    """Write a page on a model: measures, pictures, costs and limits.

    One HTML file that needs nothing else, or a model card in Markdown with its pictures beside it.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit report churn.pursuit churn.csv --output report.html",
        "pursuit report churn.pursuit churn.csv --train churn.csv -o report.md",
    )

    model: Path = argument("Model file that fit wrote.", **EXISTING)
    data: Path = argument("File with the target, which the model has not seen.", **READ)
    output: Path = option("File to write: .html or .md.", "--output", "-o")
    train: Path | None = option("File that the model was fitted to.", default=None, **READ)
    title: str | None = option("Title of the page.", default=None)
    image_shape: str | None = option(
        "Height and width of the features as an image, such as 8x8.", default=None, metavar="HxW"
    )
    boosting: bool = option(
        "Compare with gradient boosting, fitted to the rows of --train.",
        "--boosting",
        default=False,
    )

    def run(self) -> None:
        """Read, measure, draw, write."""
        from pursuit.reports import report
        from pursuit.table.model import TableModel

        require_folder(self.output)
        if self.output.suffix not in (".html", ".md"):
            raise UsageFault(f"--output: {self.output} must end in .html or .md")
        if self.boosting and self.train is None:
            raise UsageFault("--boosting needs --train")
        model = TableModel.load(self.model)
        try:
            made = report(
                model,
                self._rows(model, self.data),
                X_train=None if self.train is None else self._rows(model, self.train),
                title=self.title or f"{self.model.stem}: {model.layout_.target}",
                image_shape=self._shape(),
                boosting=self.boosting,
            )
            made.save(self.output)
        except ImportError as missing:
            raise UsageFault("report needs matplotlib: pip install 'pursuit[report]'") from missing

    def _rows(self, model: Any, path: Path) -> Any:
        """Return the rows of a file, as the model reads them."""
        from pursuit.cli.streams import read

        return read(path, model.layout_.missing)

    def _shape(self) -> tuple[int, int] | None:
        """Return the shape of an image."""
        if self.image_shape is None:
            return None
        parts = self.image_shape.lower().split("x")
        if len(parts) != 2 or not all(part.isdigit() for part in parts):
            raise UsageFault(f"--image-shape: {self.image_shape} is not like 8x8")
        return int(parts[0]), int(parts[1])
