"""The command ``pursuit fit``: from a file of data to a small model file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pursuit.cli.options import EXISTING, UsageFault, argument, na_option, option, require_folder
from pursuit.cli.reporting import MEASURED_ROWS, known, labelled, report, say, tracking

__all__ = ["Fit", "LossName"]

# The names of `pursuit.losses.LOSSES`, as the command line shows them.
LossName: TypeAlias = Literal[
    "squared_error",
    "squared_error_tanh",
    "exponential",
    "logit_boost",
    "doom2",
    "smooth_hinge",
    "squared_hinge",
    "log_loss",
    "huber",
    "absolute_error",
    "quantile",
    "poisson",
]


@dataclass
class Fit:
    """Fit a model to a file and write it.

    The kernel's gamma and C of vectors that move, or the number of vectors that are selected, are
    chosen by cross-validation unless given.
    """

    data: Path = argument("CSV, TSV, Parquet, NPZ (X, y) or LIBSVM text.", **EXISTING)
    output: Path = option("Model file to write.", "--output", "-o")
    target: str | None = option("Column to predict (of a table).", "--target", "-t", default=None)
    n_components: int | None = option(
        "Number of vectors.", "--n-components", "-n", default=None, min=1
    )
    method: Literal["moving", "selected"] | None = option(
        "moving: so many vectors that move; selected: vectors among the rows, as many as "
        "cross-validation likes best. By default moving, unless --alpha, --n-candidates, --staged, "
        "the loss or the kernel asks for selected ones.",
        default=None,
    )
    gamma: float | None = option("Width of the kernel: its gamma.", default=None, min=1e-300)
    price: float | None = option(
        "With --method moving: C, the price of the loss of a row.", default=None, min=1e-300
    )
    task: Literal["auto", "classification", "regression"] = option(
        "auto: classification if the target is text or a few distinct whole numbers.",
        default="auto",
    )
    test: Path | None = option("File to measure the error on.", default=None, **EXISTING)
    kernel: Literal["rbf", "laplacian", "linear", "poly", "sigmoid", "cosine"] = option(
        "Kernel function.", default="rbf"
    )
    loss: LossName = option(
        "What the fit minimises. For classes and numbers: squared_error; for numbers: huber, "
        "absolute_error, quantile, poisson; for classes: the others.",
        default="squared_error",
    )
    quantile: float | None = option(
        "With --loss quantile: the level, by default 0.5, the median.", default=None
    )
    alpha: float | None = option(
        "Ridge on the coefficients; by default 0, or 0.01 where the loss needs one.",
        default=None,
        min=0.0,
    )
    n_candidates: int | None = option(
        "Random training rows that may become vectors; by default at most 2000.",
        default=None,
        min=1,
    )
    text: list[str] = option("Column to take as text although it looks like numbers.", default=[])
    drop: list[str] = option("Column to leave out.", default=[])
    na: list[str] | None = na_option()
    scale: bool = option(
        "Bring features to a common size; leave them as they are.",
        "--scale/--no-scale",
        default=True,
    )
    staged: bool = option(
        "Keep every smaller model in the file, for truncate in Python.", "--staged", default=False
    )
    float32: bool = option(
        "Store vectors and coefficients in single precision; what that changes is shown.",
        "--float32",
        default=False,
    )
    seed: int = option("Seed of all random choices.", default=0)

    def run(self) -> None:
        """Read, choose, fit, write, report."""
        from pursuit.cli import model_selection as table_fit
        from pursuit.cli.preparation import matching
        from pursuit.io import tables

        require_folder(self.output)
        loss, missing = self._loss(), tables.missing_words(self.na)
        data, y, layout = self._learn(tables.read(self.data, missing), missing)
        test = self.test and labelled(tables.read(self.test, missing), layout)
        if test:
            matching(test[0], layout)  # so that its faults show before the long work
            table_fit.check_targets(*test, layout, loss)
            self._check_labels(test, y, layout)
        table_fit.check_targets(data, y, layout, loss)
        given = (self.n_components, self.gamma, self.kernel, self.alpha, self.n_candidates)
        settings = table_fit.Settings(
            layout.task, *given, self.seed, loss, self.float32, self._method(), self.price
        )
        with tracking() as track:
            model, X, notes = table_fit.fit(data, y, layout, settings, track)
            written = replace(model, estimator=settings.as_written(model.estimator))
            error: Any
            if test:
                predicted = written.estimator.predict(written.features(test[0]))
                notes += model.notes(test[0])
                error = table_fit.measure(known(*test, model), predicted, model)
            else:
                error = table_fit.held_out_error(X, y, model, settings, track)
        single = {"dtype": "float32", "rows": X[:MEASURED_ROWS]} if self.float32 else {}
        model.save(self.output, staged=self.staged, **single)
        say(notes)
        report(written, "test rows" if test else "rows held out", error, X, self.output)

    def _method(self) -> Any:
        """Return the method given, or the one that goes with the other options."""
        from pursuit.cli.model_selection import SELECTED_KERNELS, SELECTED_LOSSES

        asked = {
            "--alpha": self.alpha is not None,
            "--n-candidates": self.n_candidates is not None,
            "--staged": self.staged,
            f"--loss {self.loss}": self.loss in SELECTED_LOSSES,
            f"--kernel {self.kernel}": self.kernel in SELECTED_KERNELS,
        }
        selected = next((name for name, given in asked.items() if given), None)
        if selected and self.method == "moving":
            raise UsageFault(f"{selected} goes with --method selected only")
        if self.price is not None and (selected or self.method == "selected"):
            raise UsageFault("--price goes with --method moving only")
        return self.method or ("selected" if selected else "moving")

    def _check_labels(self, test: Any, y: Any, layout: Any) -> None:
        """Refuse a test file all of whose labels the training rows lack."""
        from pursuit.cli.preparation import known_labels

        rows, labels = test
        known_labels(rows, labels, layout, sorted(set(y.tolist())))

    def _learn(self, data: Any, missing: tuple[str, ...]) -> tuple[Any, Any, Any]:
        """Return the rows that have a target, the targets and the layout."""
        from pursuit.cli.preparation import learn_layout
        from pursuit.io.tables import Table

        if self.target is None and isinstance(data, Table):
            raise UsageFault("a table needs --target COLUMN, the column to predict")
        layout, notes = learn_layout(
            data,
            self.target or "y",
            task=self._task(),
            text=tuple(self.text),
            drop=tuple(self.drop),
            missing=missing,
            scale=self.scale,
        )
        say(notes)
        self._check_task(layout)
        return *labelled(data, layout), layout

    def _loss(self) -> Any:
        """Return the loss: its name, or a quantile with its level."""
        from pursuit.losses import Quantile

        if self.quantile is None:
            return self.loss
        if self.loss != "quantile":
            raise UsageFault("--quantile goes with --loss quantile only")
        if not 0 < self.quantile < 1:
            raise UsageFault(f"--quantile must lie between 0 and 1, got {self.quantile:g}")
        return Quantile(self.quantile)

    def _task(self) -> Any:
        """Return the task given, or regression where the loss is for numbers; None: look."""
        from pursuit.losses import LOSSES

        if self.task == "auto":
            return "regression" if LOSSES[self.loss].task == "regressor" else None
        return self.task

    def _check_task(self, layout: Any) -> None:
        """Refuse a loss for classes where the target holds numbers, and the reverse."""
        from pursuit.losses import LOSSES

        ours, what, other = {
            "classification": ("classifier", "classes", "regression"),
            "regression": ("regressor", "numbers", "classification"),
        }[layout.task]
        names = [name for name, loss in LOSSES.items() if loss.task in (None, ours)]
        if self.loss not in names:
            raise UsageFault(
                f"--loss {self.loss}: the target {layout.target!r} is taken as {what} (--task "
                f"{other} would change that), for which there are {', '.join(names)}"
            )
