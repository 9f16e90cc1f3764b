"""How far a command is: a bar on a terminal, else a line on standard error every ten seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Steps", "seconds_of", "tracking"]

# Seconds between two lines.
EVERY = 10.0
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(eq=False)
class Steps:
    """A callback that passes on how many steps a fit has taken, and how many there are at most."""

    show: Callable[[int, int | None], None]

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to do."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Pass on that a step is over."""
        if context.parent is not None:
            self.show(context.task_id + 1, context.parent.max_subtasks)


class Lines:
    """What a command is doing, in lines.

    Parameters
    ----------
    every : float
        Seconds between two of them.
    """

    def __init__(self, every: float = EVERY) -> None:
        self.every, self.task, self.since = every, "", time.monotonic()
        self.done, self.total = 0, 1
        self.steps = ""
        self._over = threading.Event()

    def __call__(self, items: Sequence[Any], label: str) -> Iterable[Any]:
        """Walk through items; a line says which it is."""
        self.task, self.total, self.since = label, len(items), time.monotonic()
        for self.done, item in enumerate(items):
            self.steps = ""
            yield item
        self.task = ""

    def step(self, n: int, most: int | None) -> None:
        """Take note of a step of a fit."""
        self.steps = f"step {n}" if most is None else f"step {n} of {most}"

    def line(self) -> str:
        """What is going on, and for how long."""
        part = f"{self.done + 1} of {self.total}" if self.total > 1 else ""
        spent = f"{time.monotonic() - self.since:.0f} s"
        return ", ".join(each for each in (self.task, part, self.steps, spent) if each)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within: the lines are printed."""
        thread = threading.Thread(target=self._print, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _print(self) -> None:
        while not self._over.wait(self.every):
            if self.task:
                print(f"progress: {self.line()}", file=sys.stderr, flush=True)


@dataclass
class Bar:
    """What a command is doing, as a bar of rich.

    Parameters
    ----------
    progress : rich.progress.Progress
        Where it is drawn.
    """

    progress: Any

    def __call__(self, items: Sequence[Any], label: str) -> Iterable[Any]:
        """Walk through items behind a bar."""
        tracked: Iterable[Any] = self.progress.track(items, description=label)
        return tracked

    def step(self, n: int, most: int | None) -> None:
        """Move the bar of a single fit with its steps."""
        (task,) = self.progress.tasks[-1:]
        if most:
            self.progress.update(task.id, completed=n / most, total=1)


@contextmanager
def tracking() -> Iterator[Any]:
    """Yield what shows progress: called with items and a label, and its ``step`` with numbers."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        lines = Lines()
        with lines.shown():
            yield lines
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        yield Bar(progress)


def seconds_of(text: str) -> float:
    """The seconds of a time such as 90, 90s, 10m or 1.5h.

    Raises
    ------
    ValueError
        If it is none, or not above 0.

    Examples
    --------
    >>> from pursuit.cli.progress import seconds_of
    >>> seconds_of("10m"), seconds_of("1.5h"), seconds_of("90")
    (600.0, 5400.0, 90.0)
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"a time is a number above 0 with s, m or h behind it, got {text!r}")
    return seconds
