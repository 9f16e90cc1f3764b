"""The command line.

Read ``app.py`` (the commands, and how fields become options), then a command: ``fit.py``,
``predict.py``, ``score.py``, ``info.py``, ``export.py``, ``truncate.py``, ``plot.py``,
``report.py``, ``compress.py``, ``samples.py``. They share ``options.py``, ``streams.py`` (files and
standard input), ``reporting.py`` and ``measures.py``.

`main` is what the command ``pursuit`` calls. The commands are imported when one is asked for: the
version alone needs none of them, nor the packages that they need.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


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
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        from pursuit import __version__

        print(f"pursuit {__version__}")
        return 0
    try:
        from pursuit.cli.app import main as run
    except KeyboardInterrupt:  # while the packages were loaded
        print("interrupted: nothing was written", file=sys.stderr)
        return 130
    return run(arguments)
