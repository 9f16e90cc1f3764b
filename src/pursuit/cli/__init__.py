"""The command line.

Read ``app.py`` (the commands, and how fields become options), then a command: ``fit.py``,
``predict.py``, ``score.py``, ``info.py``, ``export.py``, ``truncate.py``, ``plot.py``,
``compress.py``, ``samples.py``. They share ``options.py``, ``streams.py`` (files and standard
input), ``reporting.py`` and ``measures.py``.
"""

from pursuit.cli.app import main

__all__ = ["main"]
