"""Files that take their place in one piece, and archives that unfold to no more than they may."""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["MAX_RATIO", "check_claims", "replacing", "unfold"]

#: An archive may unfold to at most this many times its size, plus a slack.
MAX_RATIO = 200


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


def check_claims(archive: zipfile.ZipFile, size: int, slack: int) -> None:
    """Raise a ValueError if the members of an archive would unfold to more than is plausible.

    Parameters
    ----------
    archive : ZipFile
        The archive, open for reading.
    size : int
        Its length in bytes.
    slack : int
        So many bytes are allowed beside `MAX_RATIO` times the size.
    """
    claimed = sum(info.file_size for info in archive.infolist())
    if claimed > MAX_RATIO * size + slack:
        most = max(archive.infolist(), key=lambda info: info.file_size)
        raise ValueError(
            f"{most.filename} claims {most.file_size} bytes, all members {claimed}, of {size}"
        )


def unfold(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read one member, never more than it claims."""
    info = archive.getinfo(name)
    with archive.open(info) as file:
        return file.read(info.file_size)  # unlike read(), which would unfold without limit
