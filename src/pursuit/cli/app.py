"""The command ``pursuit``: from a file of data to a small model file, and to predictions.

Each command is a dataclass of its options with a method ``run``; `_as_typer` turns its fields into
the command line. What the commands need beyond the library's own dependencies (the ``cli`` extra)
is imported when one of them runs, so that `main` can say how to install it.

Exit codes: 0 done; 2 wrong usage; 3 a fault in a file; 130 interrupted. Errors are one line on
standard error; so are notes and, on a terminal, the progress bar. Files are written beside their
place and moved there when they are complete.
"""

from __future__ import annotations

import codecs
import csv
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_type_hints

from pursuit.cli.compress import Compress
from pursuit.cli.info import Info
from pursuit.cli.options import (
    EXISTING,
    UsageFault,
    argument,
    na_option,
    option,
    require_folder,
    rounding,
    show,
)

NEEDED = ("typer", "rich", "polars", "skrub", "skops")
# So many rows are timed, and compared before and after they are stored.
MEASURED_ROWS = 10_000
EXIT_USAGE, EXIT_DATA, EXIT_INTERRUPTED = 2, 3, 130
INSTALL = "the command line needs its extra packages: pip install 'pursuit[cli]'"


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
        from pursuit.io import tables
        from pursuit.table import model_selection as table_fit
        from pursuit.table.preparation import matching

        require_folder(self.output)
        model, missing = self._model(), tables.missing_words(self.na)
        data, y = self._learn(model, tables.read(self.data, missing))
        layout, loss = model.layout_, model.loss
        test = self.test and _labelled(tables.read(self.test, missing), layout)
        if test:
            matching(test[0], layout)  # so that its faults show before the long work
            table_fit.check_targets(*test, layout, loss)
            self._check_labels(test, y, layout)
        table_fit.check_targets(data, y, layout, loss)
        settings, n_told = replace(model.settings(), float32=self.float32), len(model.notes_)
        with _tracking() as track:
            X = model.fit_rows(data, y, track)
            notes = model.notes_[n_told:]
            written = model.with_estimator(settings.as_written(model.estimator_))
            error: Any
            if test:
                predicted = written.estimator_.predict(written.features(test[0]))
                notes += model.notes(test[0])
                known = _known(*test, model)
                error = table_fit.measure(known, predicted, model.estimator_, model.layout_)
            else:
                of_model = (model.estimator_, model.layout_)
                error = table_fit.held_out_error(X, y, *of_model, settings, track)
        single = {"dtype": "float32", "rows": X[:MEASURED_ROWS]} if self.float32 else {}
        model.save(self.output, staged=self.staged, **single)
        _say(notes)
        _report(written, "test rows" if test else "rows held out", error, X, self.output)

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

    def _model(self) -> Any:
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

    def _learn(self, model: Any, data: Any) -> tuple[Any, Any]:
        """Return the rows that have a target, and the targets."""
        from pursuit.io.tables import Table

        if self.target is None and isinstance(data, Table):
            raise UsageFault("a table needs --target COLUMN, the column to predict")
        rows, y = model.learn(data, self.target or "y")
        _say(model.notes_)
        self._check_task(model.layout_)
        return rows, y

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
        _say(model.notes(data))
        _write_csv(self.output, columns)


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
        data, y = _labelled(read(self.data, model.layout_.missing), model.layout_)
        check_targets(data, y, model.layout_, model.estimator_.loss_)
        X = model.features(data)
        _say(model.notes(data))
        known, predicted = _known(data, y, model), model.estimator_.predict(X)
        measured = measure(known, predicted, model.estimator_, model.layout_)
        _report(model, "rows of the file", measured, X, self.model)


@dataclass
class Demo:
    """Fit the digits that scikit-learn ships and show accuracy against budget."""

    output_dir: Path = option("Folder to write to.", "--output-dir", default=Path("pursuit-demo"))

    def run(self) -> None:
        """Fit, compare, draw, write."""
        from pursuit.cli import demo

        with _tracking() as track:
            rows, lines = demo.run(self.output_dir, track)
        show(demo.HEADER, [row.cells() for row in rows])
        for line in lines:
            print(line)


COMMANDS = {
    "fit": Fit,
    "predict": Predict,
    "score": Score,
    "info": Info,
    "compress": Compress,
    "demo": Demo,
}


# --- what the commands share -------------------------------------------------------------------


def _labelled(data: Any, layout: Any) -> tuple[Any, Any]:
    """Return the rows that have a target, and the targets."""
    from pursuit.table.preparation import labelled

    rows, y, notes = labelled(data, layout)
    _say(notes)
    return rows, y


def _known(data: Any, y: Any, model: Any) -> Any:
    """Return targets to compare with predictions; say which the model does not know."""
    from pursuit.table.preparation import known_labels

    y, notes = known_labels(data, y, model.layout_, getattr(model.estimator_, "classes_", None))
    _say(notes)
    return y


@contextmanager
def _tracking() -> Iterator[Callable[[Any, str], Any]]:
    """Yield a function that shows progress on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        yield lambda items, label: progress.track(items, description=label)


def _say(notes: list[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _report(model: Any, where: str, measured: Any, X: Any, path: Path) -> None:
    """Print the error beside the baseline's, and what the model costs."""
    from pursuit.model_file import describe
    from pursuit.table.model_selection import microseconds_a_row, yardstick

    layout, estimator = model.layout_, model.estimator_
    measure, share = yardstick(layout.task, estimator), layout.task == "classification"
    rows: list[tuple[Any, ...]] = []
    if measured:
        both = (measured.error, measured.baseline)
        shown = [f"{100 * value:.2f} %" if share else f"{value:.4g}" for value in both]
        rows += [(measure.name, *shown), ("measured on", f"{measured.n_rows:,} {where}", "")]
    batch = X[:MEASURED_ROWS]
    rows += [
        ("vectors", estimator.n_components_, ""),
        ("bytes on disk", f"{path.stat().st_size:,}", ""),
        *((*row, "") for row in rounding(describe(path)["rounded"])),
        ("microseconds a row", f"{microseconds_a_row(estimator.predict, batch):.3g}", ""),
        ("kernel", _short(estimator.kernel_), ""),
        ("loss", _short(estimator.loss_), ""),
    ]
    show(["", "model", f"always {layout.baseline}" if share else measure.constant], rows)


def _short(value: Any) -> str:
    """Return a kernel or a loss as text, its numbers with four digits."""
    numbers = ", ".join(f"{name}={number:.4g}" for name, number in vars(value).items())
    return f"{type(value).__name__}({numbers})"


def _write_csv(path: Path, columns: dict[str, Any]) -> None:
    """Write columns; numbers in the shortest form that reads back as the same number."""
    from pursuit.model_file import replacing

    with replacing(path) as stream:
        writer = csv.writer(codecs.getwriter("utf-8")(stream), lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


# --- the command line --------------------------------------------------------------------------


def _as_typer(options: type) -> Callable[..., None]:
    """Return a function whose signature tells typer of the fields, and that runs the command."""
    import typer

    hints, parameters = get_type_hints(options), []
    for item in fields(options):
        settings = dict(item.metadata)
        declare = getattr(typer, settings.pop("kind"))
        default = [] if item.default_factory is list else item.default
        default = ... if default is MISSING else default
        default = declare(default, *settings.pop("names"), **settings)
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters.append(
            inspect.Parameter(item.name, keyword, default=default, annotation=hints[item.name])
        )

    def command(**values: Any) -> None:
        code = _guarded(options(**values))
        if code:
            raise typer.Exit(code)

    command.__doc__ = options.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = hints
    return command


def _guarded(command: Any) -> int:
    """Run a command; its faults become one line on standard error and an exit code."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            # They are for the authors of the libraries, not for who runs the command.
            for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            command.run()
        _say(list(dict.fromkeys(" ".join(str(w.message).split()) for w in caught)))
    except UsageFault as fault:
        return _fail(str(fault), EXIT_USAGE)
    except KeyboardInterrupt:
        return _fail("interrupted: nothing was written", EXIT_INTERRUPTED)
    except BrokenPipeError:
        raise  # the reader of our output has gone; typer ends quietly
    except (ValueError, OSError) as fault:
        return _fail(str(fault), EXIT_DATA)
    return 0


def _fail(message: str, code: int) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return code


def _app() -> Any:
    import typer

    app = typer.Typer(
        help="Sparse kernel machines: a kernel model with a strict budget of vectors.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name, options in COMMANDS.items():
        app.command(name)(_as_typer(options))

    @app.callback(invoke_without_command=True)
    def _root(
        show_version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    ) -> None:
        if show_version:
            print(f"pursuit {version('pursuit')}")
            raise typer.Exit()

    return app


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        What stands behind ``pursuit``; None takes it from the process.

    Returns
    -------
    code : int
        The exit code.
    """
    if any(find_spec(name) is None for name in NEEDED):
        return _fail(INSTALL, EXIT_USAGE)
    try:
        _app()(args=arguments, prog_name="pursuit")
    except SystemExit as done:
        return int(done.code or 0)
    except KeyboardInterrupt:  # before a command began
        return _fail("interrupted: nothing was written", EXIT_INTERRUPTED)
    return 0
