"""What the commands of the command line share: their options as fields, and how they answer.

A command is a dataclass; `argument` and `option` make its fields, which ``app.py`` turns into the
command line.
"""

from __future__ import annotations

from dataclasses import MISSING, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

__all__ = [
    "EXISTING",
    "READ",
    "STANDARD",
    "InputFormat",
    "UsageFault",
    "argument",
    "format_option",
    "json_option",
    "na_option",
    "option",
    "require_folder",
    "rounding",
    "show",
]


class UsageFault(Exception):
    """Options that do not go together, or a place that cannot be written to."""


def argument(text: str, **settings: Any) -> Any:
    """Return the field of a positional argument."""
    return field(metadata={"kind": "Argument", "names": (), "help": text, **settings})


def option(text: str, *names: str, default: Any = MISSING, **settings: Any) -> Any:
    """Return the field of an option."""
    metadata = {"kind": "Option", "names": names, "help": text, **settings}
    if isinstance(default, list):
        return field(default_factory=list, metadata=metadata)
    return field(default=default, metadata=metadata)


def json_option() -> Any:
    """Return the field of an answer for programs."""
    return option("Answer in JSON, for programs.", "--json", default=False)


def na_option() -> Any:
    """Return the field of the words that mean missing."""
    return option(_NA, "--na", default=None)


_NA = (
    "Word of a table that means missing, in place of NA, N/A, NaN, null and ?; with '' only the "
    "empty cell does."
)
EXISTING = {"exists": True, "dir_okay": False}
#: A file to read, or - for standard input; `pursuit.cli.streams.read` looks whether it is there.
READ: dict[str, Any] = {"dir_okay": False}
STANDARD = Path("-")

InputFormat: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet"]


def format_option(stream: str) -> Any:
    """Return the field of the format of standard input or output."""
    return option(f"How standard {stream} is written.", f"--{stream}-format", default="csv")


def require_folder(output: Path) -> None:
    """Refuse, before any work, a place that cannot be written to."""
    if output == STANDARD:
        return
    if output.is_dir():
        raise UsageFault(f"--output: {output} is a folder")
    if not output.parent.is_dir():
        raise UsageFault(f"--output: the folder {output.parent} does not exist")


def rounding(change: Any) -> list[tuple[str, str]]:
    """Return a row of a table on what rounding changed, if a model is stored so."""
    if change is None or "n_rows" not in change:
        return []
    told = f"{change['largest_change']:.2g} of {change['largest_output']:.2g}"
    return [(f"{change['dtype']}: largest change over {change['n_rows']:,} rows", told)]


def show(header: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Print a table on standard output."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left", no_wrap=not i, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    Console(highlight=False, markup=False).print(table)
