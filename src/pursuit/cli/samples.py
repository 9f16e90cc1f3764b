"""The commands that need no file of yours: ``pursuit demo``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pursuit.cli.options import option, show
from pursuit.cli.reporting import tracking

__all__ = ["Demo"]


@dataclass
class Demo:
    """Fit the digits that scikit-learn ships and show accuracy against budget."""

    output_dir: Path = option("Folder to write to.", "--output-dir", default=Path("pursuit-demo"))

    def run(self) -> None:
        """Fit, compare, draw, write."""
        from pursuit.cli import demo

        with tracking() as track:
            rows, lines = demo.run(self.output_dir, track)
        show(demo.HEADER, [row.cells() for row in rows])
        for line in lines:
            print(line)
