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
import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, get_type_hints

from pursuit.cli.compress import Compress
from pursuit.cli.fit import Fit
from pursuit.cli.info import Info
from pursuit.cli.options import UsageFault
from pursuit.cli.predict import Predict
from pursuit.cli.reporting import say
from pursuit.cli.samples import Demo
from pursuit.cli.score import Score

NEEDED = ("typer", "rich", "polars", "skrub", "skops")
EXIT_USAGE, EXIT_DATA, EXIT_INTERRUPTED = 2, 3, 130
INSTALL = "the command line needs its extra packages: pip install 'pursuit[cli]'"

COMMANDS = {
    "fit": Fit,
    "predict": Predict,
    "score": Score,
    "info": Info,
    "compress": Compress,
    "demo": Demo,
}


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
