"""What the cells of a table's columns mean.

It is settled once for each column (`infer_column`), and then held to (`typed`): at prediction time
a word in a column of numbers is a `DataError` naming the place, not a missing value. `reading` says
what a user may not expect of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pursuit.io.column_formats import (
    date_formats,
    is_number_format,
    may_swap_days,
    number_formats,
    read_dates,
    read_numbers,
    without_zone,
)
from pursuit.io.tables import DataError, Table, shown

__all__ = ["BOOLEANS", "Column", "ambiguity", "infer_column", "number_column", "reading", "typed"]

#: A column in which at most this share of the cells is no number is a column of numbers with
#: faults in it, not a column of text.
FAULT_SHARE = 0.1

#: So many cells are looked at before all of a column.
FIRST_CELLS = 8

#: What a column of truth values is written as, compared without case.
BOOLEANS = {"false": 0.0, "true": 1.0}

Kind: TypeAlias = Literal["number", "text", "date", "empty"]


@dataclass(frozen=True)
class Column:
    """What the cells of one column mean."""

    name: str
    kind: Kind
    #: Of dates and of numbers that are written in a way of their own, see `column_formats`;
    #: "boolean" of numbers that are written true and false.
    format: str | None = None
    categories: tuple[str, ...] = ()  # of text: the cells that become features


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
    column = number_column(table, name)
    if not len(faults := _faults(cells, _numbers(cells, column))):
        return column
    if len(faults) <= FAULT_SHARE * (len(cells) - cells.null_count()):
        hint = f"--text {name!r} takes the column as text"
        raise DataError(f"{_not_a(table, cells, int(faults[0]), 'number')} ({hint})")
    date_format = _date_format(cells)
    return Column(name, "text" if date_format is None else "date", date_format)


def number_column(table: Table, name: str) -> Column:
    """Return a column of numbers as most of its cells are written, if that is beyond doubt."""
    cells = table.column(name)
    if cells.dtype != pl.String or not len(_faults(cells, cells.cast(pl.Float64, strict=False))):
        return Column(name, "number")
    for share in (0.0, FAULT_SHARE):
        formats = number_formats(cells, share)
        if formats:
            return Column(name, "number", formats[0] if len(formats) == 1 else None)
    return Column(name, "number")


def reading(table: Table, column: Column) -> list[str]:
    """Return a note if a column is written in a way of its own, or could be read in two ways."""
    cells = table.column(column.name)
    if cells.dtype != pl.String:
        return []
    if column.kind == "text":
        doubt = ambiguity(cells)
        told = f"taken as text: {doubt}" if doubt else ""
    else:
        told = _told(cells, column)
        told = told and f"{told}; --text {column.name!r} takes it as text"
    return [f"{table.path}: column {column.name!r}: {told}"] if told else []


def _told(cells: pl.Series, column: Column) -> str:
    written = column.format or ""
    if is_number_format(written):
        return f"read as numbers written like {written!r}"
    if column.kind == "date" and may_swap_days(cells, written):
        return f"read as dates written {written}, but its days and months could change places"
    plain = written.startswith("%Y-%m-%d") and "%#z" not in written  # as ISO 8601 has it
    return "" if plain or column.kind != "date" else f"read as dates written {written}"


def ambiguity(cells: pl.Series) -> str:
    """Return in words what the first cell may be that formats read in two ways."""
    if cells.dtype != pl.String:
        return ""
    if len(formats := number_formats(cells)) > 1:
        return _first_difference(cells, *(read_numbers(cells, text) for text in formats[:2]))
    if len(formats := date_formats(cells)) > 1:
        return _first_difference(cells, *(read_dates(cells, text) for text in formats[:2]))
    return ""


def _first_difference(cells: pl.Series, *values: pl.Series) -> str:
    row = int((values[0] != values[1]).arg_max() or 0)
    first, second = (_plain(value[row]) for value in values)
    return f"{shown(cells[row])} may be {first} or {second}"


def _plain(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else f"{value}"


def _are_booleans(cells: pl.Series) -> bool:
    first = cells.head(FIRST_CELLS).to_list()
    if any(cell is not None and cell.lower() not in BOOLEANS for cell in first):
        return False  # most columns: at a tenth of the time
    return bool(cells.drop_nulls().str.to_lowercase().is_in(list(BOOLEANS)).all())


def _date_format(cells: pl.Series) -> str | None:
    """Return the format that fits all cells, if they are dates with a year, beyond doubt."""
    formats = [found] if (found := _skrub_format(cells)) else date_formats(cells)
    return formats[0] if len(formats) == 1 else None


def _skrub_format(cells: pl.Series) -> str | None:
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
    elif column.format is not None and cells.dtype == pl.String:
        return read_numbers(cells, column.format)
    if cells.dtype.is_temporal():
        return pl.Series(cells.name, [None] * len(cells), dtype=pl.Float64)
    return cells.cast(pl.Float64, strict=False)


def _dates(cells: pl.Series, date_format: str | None) -> pl.Series:
    if cells.dtype == pl.String:
        date_format = date_format or _date_format(cells)  # none was learnt from real dates
        return read_dates(cells, date_format or "%Y-%m-%d")
    if not cells.dtype.is_temporal():
        return pl.Series(cells.name, [None] * len(cells), dtype=pl.Datetime)
    return without_zone(cells).cast(pl.Datetime("us"))


def _faults(cells: pl.Series, values: pl.Series) -> NDArray[np.int64]:
    """Return the rows whose cell is there but has no value."""
    return np.flatnonzero((cells.is_not_null() & values.is_null()).to_numpy())


def _not_a(table: Table, cells: pl.Series, row: int, kind: str) -> DataError:
    return DataError(
        f"{table.where(row)}: column {cells.name!r}: not a {kind}: {shown(cells[row])}"
    )
