"""The command ``pursuit compress``: a machine of scikit-learn in, a small model file out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pursuit.cli.options import (
    EXISTING,
    UsageFault,
    argument,
    na_option,
    option,
    require_folder,
    show,
)

__all__ = ["Compress"]


@dataclass
class Compress:
    """Make a fitted kernel machine of scikit-learn small and write it.

    The machine is an SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge or GaussianProcessRegressor,
    or a Pipeline that ends in one, saved with skops.io.dump.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit compress svc.skops --n-components 10 --output svc.pursuit",
        "pursuit compress svc.skops -n 10 -o small.skops --refit move",
    )

    model: Path = argument("Model that skops.io.dump wrote.", **EXISTING)
    output: Path = option(
        "Model file to write; a Pipeline, or any model for scikit-learn alone, to a file .skops.",
        "--output",
        "-o",
    )
    n_components: int = option("Number of vectors at most.", "--n-components", "-n", min=1)
    data: Path | None = option(
        "File to measure the change of the predictions on.", default=None, **EXISTING
    )
    target: str | None = option(
        "Column of the file with the targets (of a table).", "--target", "-t", default=None
    )
    refit: Literal["none", "move", "least_squares", "margin"] = option(
        "Fit to the rows of --data: vectors and coefficients to the model's own values (without "
        "--data on rows drawn around its vectors), the coefficients alone to these, or (an SVC, "
        "with targets) to the largest margin.",
        default="none",
    )
    na: list[str] | None = na_option()
    tol: float = option("Relative error at which fewer vectors do.", default=1e-3, min=0.0)

    def run(self) -> None:
        """Read, compress, write, report."""
        from pursuit import compress, save
        from pursuit.io import tables
        from pursuit.io.skops_file import Rows, read_machine_file, rows_for, write_machine_file

        self._check()
        original = read_machine_file(self.model)
        as_skops = self.output.suffix.lower() == ".skops"
        if hasattr(original, "steps") and not as_skops:
            raise UsageFault(
                f"--output: a Pipeline is written by skops; name the file {self.output.stem}.skops"
            )
        data = self.data and tables.read(self.data, tables.missing_words(self.na))
        rows = rows_for(original, data, self.target) if data else Rows(None, None)
        if self.refit == "margin" and rows.y is None:
            raise UsageFault("--refit margin needs targets: --target COLUMN of a table")
        refit = None if self.refit == "none" else self.refit
        small = compress(original, self.n_components, *rows, refit=refit, tol=self.tol)
        (write_machine_file if as_skops else save)(small, self.output)
        self._report(
            *(model[-1] if hasattr(model, "steps") else model for model in (original, small))
        )

    def _check(self) -> None:
        """Refuse options that do not go together before any work."""
        require_folder(self.output)
        needs_rows = self.refit in ("least_squares", "margin")
        if self.data is None and (self.target is not None or needs_rows):
            name = "--target" if self.target is not None else "--refit"
            raise UsageFault(f"{name} goes with --data only")

    def _report(self, original: Any, small: Any) -> None:
        """Print vectors, bytes, error and what changed on the rows."""
        from pursuit.svm.from_sklearn import read_kernel_model

        rows: list[tuple[Any, ...]] = [
            ("vectors", read_kernel_model(original).vectors.shape[0], small.n_components_),
            *((name, *values) for name, values in _scores(original, small)),
            ("bytes on disk", *(f"{path.stat().st_size:,}" for path in (self.model, self.output))),
            ("relative error in the feature space", "", f"{small.relative_error_:.3g}"),
        ]
        if hasattr(small, "prediction_change_"):
            share = not hasattr(small, "_one_dimensional")
            change = small.prediction_change_
            rows.append(
                ("predictions that change", "", f"{100 * change:.2f} %")
                if share
                else ("root mean square change", "", f"{change:.4g}")
            )
        show(["", "original", "compressed"], rows)


def _scores(original: Any, small: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the scores on rows with targets, if there are any."""
    if hasattr(small, "scores_"):
        name = "accuracy" if hasattr(small, "classes_") else "R2"
        yield name, [f"{score:.4f}" for score in small.scores_]
