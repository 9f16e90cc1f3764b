"""The command ``pursuit fit``: from a file of data to a small model file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pursuit.cli.fit_large import fit_large_file, is_large
from pursuit.cli.options import (
    EXISTING,
    READ,
    InputFormat,
    UsageFault,
    argument,
    format_option,
    na_option,
    option,
    require_folder,
)
from pursuit.cli.progress import Steps, seconds_of, tracking
from pursuit.cli.reporting import MEASURED_ROWS, known, labelled, report, say

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

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit fit churn.csv --target churned --output churn.pursuit",
        "pursuit fit churn.csv -t monthly_fee -o fee.pursuit -n 20 --gamma 0.05",
        "pursuit fit churn.csv -t churned -o path.pursuit -n 20 --staged",
        "pursuit fit churn.csv -t churned -o rare.pursuit --class-weight yes=3",
    )

    data: Path = argument(
        "CSV, TSV, JSON lines, Parquet, NPZ (X, y) or LIBSVM text; - for standard input.", **READ
    )
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
    class_weight: list[str] = option(
        "Weight of a class, LABEL=WEIGHT; may be given again. Or balanced: every class has the "
        "same total weight.",
        default=[],
    )
    staged: bool = option(
        "Keep every smaller model in the file, for truncate in Python.", "--staged", default=False
    )
    float32: bool = option(
        "Store vectors and coefficients in single precision; what that changes is shown.",
        "--float32",
        default=False,
    )
    stream: bool | None = option(
        "Read a Parquet file in blocks, so that it need not fit in memory; by default where its "
        "numbers take more than 256 MiB. Columns, gamma, C and the number of vectors are learned "
        "from a sample, coefficients from all rows.",
        "--stream/--no-stream",
        default=None,
    )
    resume: bool = option(
        "With --stream: go on from what a run with the same options left when it was killed.",
        "--resume",
        default=False,
    )
    time: str | None = option(
        "Longest time for a fit, as 90s, 10m or 2h: the model is what it has come to by then. It "
        "holds for the fit on all rows, and for each by which the error is measured.",
        default=None,
    )
    seed: int = option("Seed of all random choices.", default=0)
    input_format: InputFormat = format_option("input")

    def run(self) -> None:
        """Read, choose, fit, write, report."""
        from pursuit.cli.streams import read
        from pursuit.io import tables
        from pursuit.table import model_selection as table_fit
        from pursuit.table.preparation import matching

        require_folder(self.output)
        limits = self._limits()
        if is_large(self):
            if limits:
                raise UsageFault("--time does not go with --stream, whose one pass has no steps")
            return fit_large_file(self)
        model, missing = self.unfitted(), tables.missing_words(self.na)
        data, y = self.learn(model, read(self.data, missing, self.input_format))
        layout, loss = model.layout_, model.loss
        test = self.test and labelled(tables.read(self.test, missing), layout)
        if test:
            matching(test[0], layout)  # so that its faults show before the long work
            table_fit.check_targets(*test, layout, loss)
            self._check_labels(test, y, layout)
        table_fit.check_targets(data, y, layout, loss)
        settings = replace(model.settings(), float32=self.float32, callbacks=limits)
        n_told = len(model.notes_)
        with tracking() as track:
            model.set_callbacks(*limits, Steps(track.step))
            X = model.fit_rows(data, y, track)
            notes = model.notes_[n_told:] + self._ended(model.estimator_)
            written = model.with_estimator(settings.as_written(model.estimator_))
            error: Any
            if test:
                predicted = written.estimator_.predict(written.features(test[0]))
                notes += model.notes(test[0])
                truth = known(*test, model)
                error = table_fit.measure(truth, predicted, model.estimator_, model.layout_)
            else:
                of_model = (model.estimator_, model.layout_)
                error = table_fit.held_out_error(X, y, *of_model, settings, track)
        single = {"dtype": "float32", "rows": X[:MEASURED_ROWS]} if self.float32 else {}
        model.save(self.output, staged=self.staged, **single)
        say(notes)
        report(written, "test rows" if test else "rows held out", error, X, self.output)

    def _limits(self) -> tuple[Any, ...]:
        """Return what ends a fit."""
        if self.time is None:
            return ()
        from pursuit.callbacks import TimeBudget

        try:
            return (TimeBudget(seconds_of(self.time)),)
        except ValueError as fault:
            raise UsageFault(f"--time: {fault}") from None

    def _ended(self, estimator: Any) -> list[str]:
        """Return a note on a fit whose time was up."""
        if estimator.stop_reason_ != "callback":
            return []
        return [f"the fit was ended by --time {self.time}, at {estimator.n_components_} vectors"]

    def _method(self) -> Any:
        """Return the method given, or the one that goes with the other options."""
        from pursuit.table.model_selection import selected_only

        given = {"alpha": self.alpha, "n_candidates": self.n_candidates, "staged": self.staged}
        name = selected_only(self.kernel, self.loss, **given)
        named = {"loss": f"--loss {self.loss}", "kernel": f"--kernel {self.kernel}"}
        selected = name and named.get(name, f"--{name.replace('_', '-')}")
        if selected and self.method == "moving":
            raise UsageFault(f"{selected} goes with --method selected only")
        if self.price is not None and (selected or self.method == "selected"):
            raise UsageFault("--price goes with --method moving only")
        return self.method or ("selected" if selected else "moving")

    def _check_labels(self, test: Any, y: Any, layout: Any) -> None:
        """Refuse a test file all of whose labels the training rows lack."""
        from pursuit.table.preparation import known_labels

        rows, labels = test
        known_labels(rows, labels, layout, sorted(set(y.tolist())))

    def unfitted(self) -> Any:
        """Return the model of the options, not fitted."""
        from pursuit.table.model import TableModel

        return TableModel(
            n_components=self.n_components,
            method=self._method(),
            task=self.task,
            kernel=self.kernel,
            gamma=self.gamma,
            C=self.price,
            loss=self._loss(),
            alpha=self.alpha,
            n_candidates=self.n_candidates,
            text=self.text,
            drop=self.drop,
            missing=self.na,
            scale=self.scale,
            random_state=self.seed,
        )

    def learn(self, model: Any, data: Any) -> tuple[Any, Any]:
        """Return the rows that have a target, and the targets."""
        from pursuit.io.tables import Table

        if self.target is None and isinstance(data, Table):
            raise UsageFault("a table needs --target COLUMN, the column to predict")
        rows, y = model.learn(data, self.target or "y")
        say(model.notes_)
        self._check_task(model.layout_)
        model.class_weight = self._class_weight(y, model.layout_.task)
        return rows, y

    def _class_weight(self, y: Any, task: str) -> Any:
        """Return the weights of the classes: None, "balanced" or numbers by label."""
        if not self.class_weight:
            return None
        if task == "regression":
            raise UsageFault("--class-weight goes with classes, and the target holds numbers")
        if self.class_weight == ["balanced"]:
            return "balanced"
        labels = {str(label): label for label in set(y.tolist())}
        return dict(_weight(text, labels) for text in self.class_weight)

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

    def _check_task(self, layout: Any) -> None:
        """Refuse a loss for classes where the target holds numbers, and the reverse."""
        from pursuit.table.model_selection import losses_of

        names = losses_of(layout.task)
        what, other = {
            "classification": ("classes", "regression"),
            "regression": ("numbers", "classification"),
        }[layout.task]
        if self.loss not in names:
            raise UsageFault(
                f"--loss {self.loss}: the target {layout.target!r} is taken as {what} (--task "
                f"{other} would change that), for which there are {', '.join(names)}"
            )


def _weight(text: str, labels: dict[str, Any]) -> tuple[Any, float]:
    """Return a label and its weight from LABEL=WEIGHT."""
    name, equals, number = text.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        weight = -1.0
    if not equals or not 0 < weight < float("inf"):
        raise UsageFault(f"--class-weight takes LABEL=WEIGHT or balanced, got {text!r}")
    if name not in labels:
        some = ", ".join(sorted(labels)[:8])
        raise UsageFault(f"--class-weight {text}: no row has the label {name!r}; there are {some}")
    return labels[name], weight
