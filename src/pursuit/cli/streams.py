"""Files to read and to write, of which ``-`` is standard input or output."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from pursuit.cli.options import STANDARD, UsageFault

__all__ = ["opened", "read", "write"]


def read(path: Path, missing: tuple[str, ...], form: str = "csv") -> Any:
    """Return the table or the matrix of a file, or the table on standard input.

    Parameters
    ----------
    path : Path
        The file, or ``-``.
    missing : tuple of str
        The words that mean "missing".
    form : str
        The format of standard input.

    Raises
    ------
    UsageFault
        If there is no such file.
    """
    from pursuit.io import tables

    if path != STANDARD:
        if not path.is_file():
            raise UsageFault(f"{path} does not exist")
        return tables.read(path, missing)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / f"input.{form}"
        with open(copy, "wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        try:
            table: Any = tables.read(copy, missing)
        except tables.DataError as fault:
            raise tables.DataError(str(fault).replace(str(copy), "standard input")) from None
        return replace(table, path="standard input")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes its place when it is complete, or standard output."""
    from pursuit.model_file import replacing

    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with replacing(path) as stream:
        yield stream


def write(path: Path, columns: dict[str, Any], form: str = "csv") -> None:
    """Write columns in the format of the file's suffix, or to standard output as it says."""
    from pursuit.io.written_tables import format_of, write_table

    with opened(path) as stream:
        write_table(stream, columns, form if path == STANDARD else format_of(path))
