"""The command ``pursuit``: from a file of data to a small model file, and to predictions.

Each command is a dataclass of its options with a method ``run``, in a module of its own;
`_as_typer` turns its fields into the command line. What the commands need beyond the library's own
dependencies (the ``cli`` extra) is imported when one of them runs, so that `main` can say how to
install it.

Exit codes: 0 done; 2 wrong usage; 3 a fault in a file; 130 interrupted. Errors are one line on
standard error; so are notes and, on a terminal, the progress bar. Files are written beside their
place and moved there when they are complete.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pursuit.cli.compress import Compress
from pursuit.cli.export import Export
from pursuit.cli.fit import Fit
from pursuit.cli.info import Info
from pursuit.cli.options import UsageFault
from pursuit.cli.plot import Plot
from pursuit.cli.predict import Predict
from pursuit.cli.report import Report
from pursuit.cli.reporting import say
from pursuit.cli.samples import Demo, Example
from pursuit.cli.score import Score
from pursuit.cli.truncate import Truncate

NEEDED = ("typer", "rich", "polars", "skrub", "skops")
EXIT_USAGE, EXIT_DATA, EXIT_INTERRUPTED = 2, 3, 130
INSTALL = "the command line needs its extra packages: pip install 'pursuit[cli]'"

COMMANDS = {
    "fit": Fit,
    "predict": Predict,
    "score": Score,
    "info": Info,
    "export": Export,
    "truncate": Truncate,
    "plot": Plot,
    "report": Report,
    "compress": Compress,
    "example": Example,
    "demo": Demo,
}


def _as_typer(options: type) -> Callable[..., None]:
    """Return a function whose signature tells typer of the fields, and that runs the command."""
    import typer

    hints = get_type_hints(options)
    parameters = [_parameter(item, hints[item.name]) for item in fields(options)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    config = typer.Option(
        None,
        "--config",
        help="TOML file whose table of this command's name gives options.",
        is_eager=True,
        expose_value=False,
        callback=_configure,
        exists=True,
        dir_okay=False,
    )
    parameters.append(inspect.Parameter("config", keyword, default=config, annotation=Path | None))

    def command(**values: Any) -> None:
        values.pop("config", None)
        code = _guarded(options(**values))
        if code:
            raise typer.Exit(code)

    command.__doc__ = _paragraphs(options.__doc__ or "")
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = hints | {"config": Path | None}
    return command


def _parameter(item: Any, hint: Any) -> inspect.Parameter:
    """Return a field as a parameter that typer understands.

    Choices stand in the help text, where lines break between them and not within.
    """
    import typer

    settings = dict(item.metadata)
    declare = getattr(typer, settings.pop("kind"))
    choices = _choices(hint)
    if choices:
        settings["metavar"] = "NAME"
        settings["help"] += f" One of {', '.join(choices)}."
    default = [] if item.default_factory is list else item.default
    default = ... if default is MISSING else default
    default = declare(default, *settings.pop("names"), **settings)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(item.name, keyword, default=default, annotation=hint)


def _choices(hint: Any) -> tuple[str, ...]:
    """Return the words that a type allows, if it is one of words."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((found for part in get_args(hint) if (found := _choices(part))), ())


def _paragraphs(text: str) -> str:
    """Return a docstring whose lines break where the terminal does."""
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


def _examples(options: Any) -> str:
    """Return the examples of a command, a line each."""
    return "\n\n".join(["Examples:", *options.EXAMPLES])


def _configure(context: Any, path: Path | None) -> None:
    """Take options from the table of the command's name in a TOML file."""
    import typer

    if path is None:
        return
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise typer.BadParameter(f"{path}: {fault}") from None
    table = tables.get(context.info_name, {})
    unknown = [name for name in tables if name not in COMMANDS]
    names = {parameter.name for parameter in context.command.params} - {"config"}
    given = {name.replace("-", "_"): value for name, value in table.items()}
    unknown += [f"{context.info_name}.{name}" for name in given if name not in names]
    if unknown:
        raise typer.BadParameter(f"{path}: {unknown[0]} is no option")
    context.default_map = {**(context.default_map or {}), **given}


def _guarded(command: Any) -> int:
    """Run a command; its faults become one line on standard error and an exit code."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            # They are for the authors of the libraries, not for who runs the command.
            for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", category)
            command.run()
        say(list(dict.fromkeys(" ".join(str(w.message).split()) for w in caught)))
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
        pretty_exceptions_enable=False,
    )
    for name, options in COMMANDS.items():
        app.command(name, epilog=_examples(options))(_as_typer(options))

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
