"""Tables and matrices from files, with the file, line and column of every fault.

Five formats, told apart by the suffix: CSV and TSV (also ``.gz``) and Parquet give a `Table` of
named columns; NPZ (arrays ``X`` and ``y``) and LIBSVM text (``.svm``, ``.libsvm``, ``.txt``, also
``.gz``; sparse stays sparse) give a `Matrix`. A delimited file is read as text, with the line each
row starts at; what its cells mean is settled afterwards, once for each column (`infer_column`), and
then held to (`typed`): at prediction time a word in a column of numbers is a `DataError` naming the
place, not a missing value.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import itertools
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

#: Cells that mean "missing", compared without surrounding blanks and case.
MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "?")

#: A column in which at most this share of the cells is no number is a column of numbers with
#: faults in it, not a column of text.
FAULT_SHARE = 0.1

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".npz": "npz",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".txt": "libsvm",
}

#: Every integer of at most this size is a float of its own.
FLOAT_INTEGERS = 2**53

#: What a column of truth values is written as, compared without case.
BOOLEANS = {"false": 0.0, "true": 1.0}

_BLOCK_ROWS = 20_000

Kind: TypeAlias = Literal["number", "text", "date", "empty"]


class DataError(ValueError):
    """A fault in the data, told in one line that names the file and the place."""


@dataclass(frozen=True)
class Column:
    """What the cells of one column mean."""

    name: str
    kind: Kind
    format: str | None = None  # of a date written as text; "boolean" of numbers: true, false
    categories: tuple[str, ...] = ()  # of text: the cells that become features


@dataclass(frozen=True)
class Table:
    """Named columns as the file holds them; `lines` are the line numbers of a text file's rows."""

    path: str
    frame: pl.DataFrame
    lines: NDArray[np.int64] | None = None

    def where(self, row: int) -> str:
        """Return the place of a row in the file."""
        if self.lines is None:
            return f"{self.path}: row {row + 1}"
        return f"{self.path}:{self.lines[row]}"

    def column(self, name: str) -> pl.Series:
        """Return the raw cells of a column, missing ones as null."""
        if name not in self.frame.columns:
            raise DataError(f"{self.path}: no column {name!r}{_near(name, self.frame.columns)}")
        return self.frame[name]

    def rows(self, keep: NDArray[np.bool_]) -> Table:
        """Return the table of the rows to keep."""
        lines = None if self.lines is None else self.lines[keep]
        return Table(self.path, self.frame.filter(pl.Series(keep)), lines)

    def __len__(self) -> int:
        return self.frame.height


@dataclass(frozen=True)
class Matrix:
    """Numbers without column names; a target of None means that the file has none."""

    path: str
    X: Any  # of shape (n_rows, n_features), an array or CSR
    y: NDArray[Any] | None

    def where(self, row: int, column: int) -> str:
        """Return the place of an entry in the file."""
        if sp.issparse(self.X):
            return f"{self.path}:{_libsvm_line(self.path, row)}: feature {column}"
        return f"{self.path}: X[{row}, {column}]"

    def rows(self, keep: NDArray[np.bool_]) -> Matrix:
        """Return the matrix of the rows to keep."""
        return Matrix(self.path, self.X[keep], None if self.y is None else self.y[keep])

    def __len__(self) -> int:
        return int(self.X.shape[0])


def read(path: str | Path) -> Table | Matrix:
    """Read a table or a matrix.

    Parameters
    ----------
    path : str or Path
        The file; its suffix tells the format.

    Returns
    -------
    Table or Matrix
        At least one row, nothing converted yet.

    Raises
    ------
    DataError
        If the file is damaged, ragged, empty, or in no format known here.
    """
    path = str(path)
    readers: dict[str, Callable[[str], Table | Matrix]] = {
        "csv": _read_delimited,
        "tsv": _read_delimited,
        "parquet": _read_parquet,
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


def _read_delimited(path: str) -> Table:
    try:
        with _open_text(path) as file:
            return _parse_delimited(path, file)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:{_undecodable_line(path)}: not UTF-8 text") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from error


def _parse_delimited(path: str, file: TextIO) -> Table:
    first = file.readline()
    if not first.strip():
        raise DataError(f"{path}: empty file" if not first else f"{path}:1: the header is blank")
    file.seek(0)
    reader = csv.reader(file, delimiter=_delimiter(path, first))
    header = _header(path, next(reader))
    blocks: list[list[pl.Series]] = [[] for _ in header]
    lines: list[int] = []
    rows = _numbered_rows(path, reader, len(header))
    while block := list(itertools.islice(rows, _BLOCK_ROWS)):
        numbers, cells = zip(*block, strict=True)
        lines.extend(numbers)
        for name, parts, column in zip(header, blocks, zip(*cells, strict=True), strict=True):
            parts.append(_cleaned(pl.Series(name, column, dtype=pl.String)))
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


def _delimiter(path: str, header: str) -> str:
    if file_format(path) == "tsv":
        return "\t"
    return max(",;\t", key=re.sub(r'"[^"]*("|$)', "", header).count)


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


def _cleaned(cells: pl.Series) -> pl.Series:
    """Strip text cells and turn the marks of a missing cell into null."""
    cells = cells.str.strip_chars()
    return cells.set(cells.str.to_lowercase().is_in(list(MISSING)), None)


# --- Parquet, NPZ, LIBSVM ----------------------------------------------------------------------


def _read_parquet(path: str) -> Table:
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({_first_line(error)})") from error
    if not frame.height:
        raise DataError(f"{path}: no rows")
    return Table(path, pl.DataFrame([_parquet_column(path, column) for column in frame]))


def _parquet_column(path: str, column: pl.Series) -> pl.Series:
    dtype = column.dtype
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return _cleaned(column.cast(pl.String))
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
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, TypeError, AttributeError) as error:
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


# --- what the cells mean -----------------------------------------------------------------------


def infer_column(table: Table, name: str, *, as_text: bool = False) -> Column:
    """Decide what the cells of a column are.

    Parameters
    ----------
    table : Table
        The table to learn from.
    name : str
        The column.
    as_text : bool, default=False
        Take the cells as text whatever they look like.

    Returns
    -------
    Column
        A column of numbers, of dates (a format that skrub finds to fit every cell), or of text.

    Raises
    ------
    DataError
        If at most one cell in ten is no number and the others are: the first such cell.
    """
    cells = table.column(name)
    if cells.null_count() == len(cells):
        return Column(name, "empty")
    if as_text:
        return Column(name, "text")
    if cells.dtype.is_temporal():
        return Column(name, "date")
    if cells.dtype == pl.Boolean or (cells.dtype == pl.String and _are_booleans(cells)):
        return Column(name, "number", "boolean")
    if cells.dtype != pl.String:
        return Column(name, "number")
    faults = _faults(cells, cells.cast(pl.Float64, strict=False))
    if len(faults) <= FAULT_SHARE * (len(cells) - cells.null_count()):
        if len(faults):
            hint = f"--text {name!r} takes the column as text"
            raise DataError(f"{_not_a(table, cells, int(faults[0]), 'number')} ({hint})")
        return Column(name, "number")
    date_format = _date_format(cells)
    return Column(name, "text" if date_format is None else "date", date_format)


def _are_booleans(cells: pl.Series) -> bool:
    return bool(cells.drop_nulls().str.to_lowercase().is_in(list(BOOLEANS)).all())


def _date_format(cells: pl.Series) -> str | None:
    """Return the format that fits all cells, if they are dates with a year."""
    from skrub import ToDatetime

    parser = ToDatetime()
    try:
        parser.fit_transform(cells)
    except ValueError:  # skrub rejects the column
        return None
    found: str = parser.format_.replace(".%f", "%.f")
    return found if "%Y" in found and "%d" in found else None


def typed(table: Table, column: Column) -> pl.Series:
    """Convert the cells of a column to what they mean.

    Returns
    -------
    polars.Series
        Float64 without infinities, String, or Datetime without a time zone (UTC); missing cells
        are null.

    Raises
    ------
    DataError
        At the first cell that is something else.
    """
    cells = table.column(column.name)
    if column.kind in ("text", "empty"):
        return cells.cast(pl.String)
    values = _dates(cells, column.format) if column.kind == "date" else _numbers(cells, column)
    faults = _faults(cells, values)
    if len(faults):
        raise _not_a(table, cells, int(faults[0]), column.kind)
    if column.kind == "number":
        infinite = np.flatnonzero(values.is_infinite().fill_null(False).to_numpy())
        if len(infinite):
            raise _not_a(table, cells, int(infinite[0]), "finite number")
    return values


def _numbers(cells: pl.Series, column: Column) -> pl.Series:
    if column.format == "boolean" and cells.dtype == pl.String:
        truths = {word: str(value) for word, value in BOOLEANS.items()}
        cells = cells.str.to_lowercase().replace(truths)
    if cells.dtype.is_temporal():
        return pl.Series(cells.name, [None] * len(cells), dtype=pl.Float64)
    return cells.cast(pl.Float64, strict=False)


def _dates(cells: pl.Series, date_format: str | None) -> pl.Series:
    if cells.dtype == pl.String and date_format is not None:
        cells = cells.str.to_datetime(date_format, strict=False)
    if cells.dtype == pl.Datetime and cells.dtype.time_zone is not None:  # type: ignore[attr-defined]
        cells = cells.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if not cells.dtype.is_temporal():
        return pl.Series(cells.name, [None] * len(cells), dtype=pl.Datetime)
    return cells.cast(pl.Datetime("us"))


def _faults(cells: pl.Series, values: pl.Series) -> NDArray[np.int64]:
    """Return the rows whose cell is there but has no value."""
    return np.flatnonzero((cells.is_not_null() & values.is_null()).to_numpy())


def _not_a(table: Table, cells: pl.Series, row: int, kind: str) -> DataError:
    return DataError(
        f"{table.where(row)}: column {cells.name!r}: not a {kind}: {shown(cells[row])}"
    )


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
