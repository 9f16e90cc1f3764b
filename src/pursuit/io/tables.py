"""Tables and matrices from files, with the file, line and column of every fault.

Six formats, told apart by the suffix: CSV, TSV and JSON lines (``.jsonl``; all also ``.gz``) and
Parquet give a `Table` of named columns; NPZ (arrays ``X`` and ``y``) and LIBSVM text (``.svm``,
``.libsvm``, ``.txt``, also ``.gz``; sparse stays sparse) give a `Matrix`. A delimited file is read
as text, with the line each row starts at; what its cells mean is settled afterwards
(`pursuit.io.columns`).
"""

from __future__ import annotations

import csv
import difflib
import gzip
import itertools
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from pursuit.io.json_lines import parse_json_lines

#: Words that mean "missing" as the empty cell does, compared without surrounding blanks and case.
MISSING = ("na", "n/a", "#n/a", "<na>", "nan", "null", "?")

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npz": "npz",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".txt": "libsvm",
}

#: Every integer of at most this size is a float of its own.
FLOAT_INTEGERS = 2**53

_BLOCK_ROWS = 20_000
_FIRST_ROWS = 20


class DataError(ValueError):
    """A fault in the data, told in one line that names the file and the place."""


@dataclass(frozen=True)
class Table:
    """Named columns as the file holds them; `lines` are the line numbers of a text file's rows."""

    path: str
    frame: pl.DataFrame
    lines: NDArray[np.int64] | None = None
    #: The words that mean "missing" in each column, and how many cells hold them.
    missing_words: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def where(self, row: int) -> str:
        """Return the place of a row in the file."""
        if self.lines is None:
            return f"{self.path}: row {row + 1}"
        return f"{self.path}:{self.lines[row]}"

    def column(self, name: str) -> pl.Series:
        """Return the raw cells of a column, missing ones as null."""
        cells: pl.Series | None = self.frame.get_column(name, default=None)
        if cells is None:  # the list of all names takes long where there are thousands
            raise DataError(f"{self.path}: no column {name!r}{_near(name, self.frame.columns)}")
        return cells

    def rows(self, keep: NDArray[np.bool_]) -> Table:
        """Return the table of the rows to keep."""
        lines = None if self.lines is None else self.lines[keep]
        return replace(self, frame=self.frame.filter(pl.Series(keep)), lines=lines)

    def __len__(self) -> int:
        return self.frame.height


@dataclass(frozen=True)
class Matrix:
    """Numbers without column names; a target of None means that the file has none."""

    path: str
    X: Any  # of shape (n_rows, n_features), an array or CSR
    y: NDArray[Any] | None
    in_memory: bool = False  # so that no line of a file holds a row

    def where(self, row: int, column: int) -> str:
        """Return the place of an entry in the file."""
        if sp.issparse(self.X) and not self.in_memory:
            return f"{self.path}:{_libsvm_line(self.path, row)}: feature {column}"
        return f"{self.path}: X[{row}, {column}]"

    def rows(self, keep: NDArray[np.bool_]) -> Matrix:
        """Return the matrix of the rows to keep."""
        return replace(self, X=self.X[keep], y=None if self.y is None else self.y[keep])

    def __len__(self) -> int:
        return int(self.X.shape[0])


def missing_words(given: Collection[str] | None) -> tuple[str, ...]:
    """Return the words that mean "missing": those given, of which the empty one adds nothing."""
    return MISSING if not given else tuple(word for word in given if word.strip())


def missing_labels(data: Table | Matrix, target: str) -> str:
    """Say how many labels are words that were read as missing."""
    counts = data.missing_words.get(target, {}) if isinstance(data, Table) else {}
    words = ", ".join(f"{word!r} {count} times" for word, count in counts.items())
    told = f"; {sum(counts.values())} labels were read as missing ({words}): --na '' keeps them"
    return told if counts else ""


def read(path: str | Path, missing: Collection[str] = MISSING) -> Table | Matrix:
    """Read a table or a matrix.

    Parameters
    ----------
    path : str or Path
        The file; its suffix tells the format.
    missing : collection of str, default=MISSING
        The words of a table that mean "missing", beside the empty cell.

    Returns
    -------
    Table or Matrix
        At least one row, nothing converted yet.

    Raises
    ------
    DataError
        If the file is damaged, ragged, empty, or in no format known here.
    """
    path, words = str(path), [word.strip().lower() for word in missing]
    readers: dict[str, Callable[[str], Table | Matrix]] = {
        "csv": partial(_read_delimited, words=words),
        "tsv": partial(_read_delimited, words=words),
        "parquet": partial(_read_parquet, words=words),
        "jsonl": partial(_read_json_lines, words=words),
        "npz": _read_npz,
        "libsvm": _read_libsvm,
    }
    return readers[file_format(path)](path)


def file_format(path: str) -> str:
    """Return the format that the suffix of a path stands for."""
    packed = _is_packed(path)
    known = SUFFIXES.get(Path(path[:-3] if packed else path).suffix.lower())
    if known is None or (packed and known in ("parquet", "npz")):
        suffixes = ", ".join(SUFFIXES)
        raise DataError(f"{path}: unknown suffix; known are {suffixes} (text also with .gz)")
    return known


def _is_packed(path: str) -> bool:
    return path.lower().endswith(".gz")


# --- CSV and TSV -------------------------------------------------------------------------------


def _read_delimited(path: str, words: list[str]) -> Table:
    try:
        with _open_text(path) as file:
            return _cleaned(_parse_delimited(path, file), words)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{_undecodable_line(path)}: not UTF-8 text") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from error


def _parse_delimited(path: str, file: TextIO) -> Table:
    first = file.readline()
    if not first.strip():
        raise DataError(f"{path}: empty file" if not first else f"{path}:1: the header is blank")
    delimiter = _delimiter(path, file)
    file.seek(0)
    reader = csv.reader(file, delimiter=delimiter)
    header = _header(path, next(reader))
    blocks: list[list[pl.Series]] = [[] for _ in header]
    lines: list[int] = []
    rows = _numbered_rows(path, reader, len(header))
    while block := list(itertools.islice(rows, _BLOCK_ROWS)):
        numbers, cells = zip(*block, strict=True)
        lines.extend(numbers)
        for name, parts, column in zip(header, blocks, zip(*cells, strict=True), strict=True):
            parts.append(pl.Series(name, column, dtype=pl.String))
    if not lines:
        raise DataError(f"{path}: no rows below the header")
    return Table(path, pl.DataFrame([pl.concat(parts) for parts in blocks]), np.array(lines))


def _numbered_rows(path: str, reader: Any, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank with the line it starts at.

    In a file of one column a blank line is a row with a missing cell, unless no row follows it.
    """
    blank: list[int] = []
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}:{line}: {error}") from error
        if len(row) == width:
            yield from ((number, [""]) for number in blank)
            blank.clear()
            yield line, row
        elif not row and width == 1:
            blank.append(line)
        elif row:
            raise DataError(f"{path}:{line}: {_cells(len(row))}, but the header has {width}")


def _cells(count: int) -> str:
    return f"{count} cell{'s' if count != 1 else ''}"


def _header(path: str, names: list[str]) -> list[str]:
    names = [name.strip() or f"column {i}" for i, name in enumerate(names, 1)]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"{path}:1: column {twice!r} appears twice")
    return names


def _delimiter(path: str, file: TextIO) -> str:
    """Return the separator of the header under which most of the first rows are as wide as it."""
    if file_format(path) == "tsv":
        return "\t"
    return max(",;\t", key=partial(_evenness, file))


def _evenness(file: TextIO, delimiter: str) -> tuple[float, int]:
    """Return the share of first rows with more than one cell and as many as the header, and it."""
    file.seek(0)
    rows = itertools.islice(csv.reader(file, delimiter=delimiter), _FIRST_ROWS)
    widths = [1]
    with suppress(csv.Error):  # told with its place when the rows are read
        widths = [len(row) for row in rows if row]
    return (0.0, 1) if widths[0] == 1 else (widths.count(widths[0]) / len(widths), widths[0])


@contextmanager
def _open_text(path: str) -> Iterator[TextIO]:
    opened = gzip.open if _is_packed(path) else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield file


def _undecodable_line(path: str) -> int:
    opened = gzip.open if _is_packed(path) else open
    with opened(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return number


def _cleaned(table: Table, words: list[str]) -> Table:
    """Strip text cells and turn empty ones and words that mean "missing" into null."""
    texts = [cells.str.strip_chars() for cells in table.frame if cells.dtype == pl.String]
    texts = [cells.set(cells == "", None) for cells in texts]
    missing = [cells.str.to_lowercase().is_in(words) for cells in texts]
    frame = table.frame.with_columns(
        cells.set(where, None) for cells, where in zip(texts, missing, strict=True)
    )
    counts = {
        cells.name: dict(cells.filter(where).value_counts(sort=True).iter_rows())
        for cells, where in zip(texts, missing, strict=True)
    }
    return replace(table, frame=frame, missing_words=counts)


# --- JSON lines, Parquet, NPZ, LIBSVM ----------------------------------------------------------


def _read_json_lines(path: str, words: list[str]) -> Table:
    try:
        with _open_text(path) as file:
            frame, lines = parse_json_lines(file)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{_undecodable_line(path)}: not UTF-8 text") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from error
    except ValueError as error:
        raise DataError(f"{path}:{error}") from error
    return replace(from_frame(frame, words, path), lines=np.array(lines))


def _read_parquet(path: str, words: list[str]) -> Table:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({_first_line(error)})") from error
    return from_frame(frame, words, path)


def from_frame(
    frame: pl.DataFrame, missing: Collection[str] = MISSING, path: str = "data frame"
) -> Table:
    """Return a frame as a table.

    Parameters
    ----------
    frame : polars.DataFrame
        At least one row of text, numbers, truth values or times.
    missing : collection of str, default=MISSING
        The words that mean "missing", beside the empty cell.
    path : str, default="data frame"
        What messages call it.

    Raises
    ------
    DataError
        If it has no row, or cells of another type.
    """
    if not frame.height:
        raise DataError(f"{path}: no rows")
    frame = pl.DataFrame([_supported(path, column) for column in frame])
    return _cleaned(Table(path, frame), [word.strip().lower() for word in missing])


def _supported(path: str, column: pl.Series) -> pl.Series:
    dtype = column.dtype
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if dtype in (pl.Boolean, pl.Null) or dtype.is_temporal():
        return column
    if dtype.is_float():
        return column.fill_nan(None)
    if not dtype.is_numeric():
        raise DataError(f"{path}: column {column.name!r}: cells of type {dtype} are not supported")
    return column


def _read_npz(path: str) -> Matrix:
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in ("X", "y") if name in arrays}
    except Exception as error:  # zipfile, zlib, NumPy and its parser each have errors of their own
        raise DataError(f"{path}: not a readable NPZ file ({_first_line(error)})") from error
    if "X" not in held:
        raise DataError(f"{path}: no array 'X'")
    X, y = held["X"], held.get("y")
    if X.ndim < 2 or X.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: X must be numbers in two or more dimensions, not {X.dtype} {X.shape}"
        )
    if not X.size:
        raise DataError(f"{path}: X is empty, its shape is {X.shape}")
    if y is not None and y.shape != X.shape[:1]:
        raise DataError(f"{path}: y has the shape {y.shape}, X has {len(X)} rows")
    return Matrix(path, X.reshape(len(X), -1).astype(np.float64), y)


def _read_libsvm(path: str) -> Matrix:
    """Read LIBSVM text; column j of the matrix is the feature that the file calls j."""
    try:
        with (gzip.open if _is_packed(path) else open)(path, "rb") as file:
            X, y = load_svmlight_file(file, zero_based=True)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from error
    except (ValueError, OverflowError) as error:
        raise DataError(_libsvm_fault(path) or f"{path}: {_first_line(error)}") from error
    if not len(y):
        raise DataError(f"{path}: empty file")
    return Matrix(path, X, _exact_labels(path, y))


def _exact_labels(path: str, y: NDArray[Any]) -> NDArray[Any]:
    """The labels as integers where they are integers that a float may not hold."""
    if (np.abs(y) < FLOAT_INTEGERS).all():
        return y
    try:
        return np.array([int(fields[0]) for _, fields in _libsvm_rows(path)], dtype=np.int64)
    except (ValueError, OverflowError):
        return y


def _libsvm_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    opened = gzip.open if _is_packed(path) else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.partition("#")[0].split()
            if fields:
                yield number, fields


def _libsvm_line(path: str, row: int) -> int:
    return next(itertools.islice(_libsvm_rows(path), row, None))[0]


def _libsvm_fault(path: str) -> str | None:
    """Return a line about the first faulty field of the file."""
    for number, (label, *pairs) in _libsvm_rows(path):
        if not _is_number(label):
            return f"{path}:{number}: label: not a number: {shown(label)}"
        last = -1
        for pair in pairs:
            index, colon, value = pair.partition(":")
            if index == "qid":
                continue
            if not colon or not index.isdecimal() or not _is_number(value):
                return f"{path}:{number}: not of the form index:number: {shown(pair)}"
            if int(index) <= last:
                return f"{path}:{number}: feature {index}: the indices of a row must increase"
            last = int(index)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def shown(cell: object) -> str:
    """Return a cell in quotes, cut to forty characters."""
    text = str(cell)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _near(name: str, names: list[str]) -> str:
    """Return a hint at the names that were perhaps meant."""
    folded = {other.casefold(): other for other in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.7)
    if near:
        return "; did you mean " + " or ".join(repr(folded[other]) for other in near) + "?"
    some = ", ".join(repr(other) for other in names[:8])
    return f"; it has {some}" + (" ..." if len(names) > 8 else "")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
