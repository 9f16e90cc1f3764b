"""The command ``pursuit truncate``: a smaller model out of a path, without the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pursuit.cli.options import EXISTING, UsageFault, argument, option, require_folder, show

__all__ = ["Truncate"]


@dataclass
class Truncate:
    """Write the model of the first vectors, with the coefficients that are best for them.

    The model is one of selected vectors that fit wrote with --staged, or that save stored with
    staged=True.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit truncate path.pursuit --n-components 5 --output five.pursuit",
    )

    model: Path = argument("A model file with its path.", **EXISTING)
    output: Path = option("Model file to write.", "--output", "-o")
    n_components: int = option("Number of vectors.", "--n-components", "-n", min=1)
    staged: bool = option("Keep every smaller model in it, too.", "--staged", default=False)

    def run(self) -> None:
        """Read, cut, write, report."""
        from pursuit import load, save

        require_folder(self.output)
        model = load(self.model)
        estimator = getattr(model, "estimator_", model)
        if not hasattr(estimator, "truncate"):
            name = type(estimator).__name__
            raise UsageFault(f"{self.model}: {name} has no path; fit --method selected --staged")
        small = model.truncate(self.n_components)
        save(small, self.output, staged=self.staged)
        sizes = (getattr(m, "estimator_", m).n_components_ for m in (model, small))
        files = (f"{path.stat().st_size:,}" for path in (self.model, self.output))
        show(["", "before", "after"], [("vectors", *sizes), ("bytes on disk", *files)])
