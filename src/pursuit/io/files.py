"""Files that take their place in one piece."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file for writing that takes its place only when the block ends well.

    Parameters
    ----------
    path : str or path-like
        The file to create or to replace. If the block raises, it stays as it was.

    Yields
    ------
    stream : binary file
        A new file in the same folder.

    Examples
    --------
    >>> import tempfile, os
    >>> from pursuit.io.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(os.path.join(folder, "table.csv")) as stream:
    ...         _ = stream.write(b"a,b")
    ...     os.listdir(folder)
    ['table.csv']
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder of {path} does not exist")
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
