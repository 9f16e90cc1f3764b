"""How the numbers and dates of a text column are written, found from the whole column.

A number is written as one of `NOTATIONS`, perhaps with a sign of its unit: a currency or a percent
sign, the same in every cell. Such a format is remembered as an example of itself, ``1.234,5 €``,
and `read_numbers` reads nothing but what is written so: a decimal point in a column of decimal
commas has no value. The number is the one that is written: ``12 %`` is 12.

A date is written as strftime tells it. `date_formats` has those of `DAYS` and `CLOCKS`, what skrub
finds by itself comes first (`pursuit.io.columns`).

A format fits if every cell that is there has a value. Formats that give the same values are one;
more than one left means that the column is ambiguous, as ``1,234`` is, or ``01/02/24``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import product
from typing import NamedTuple

import polars as pl

__all__ = [
    "date_formats",
    "is_number_format",
    "may_swap_days",
    "number_formats",
    "read_dates",
    "read_numbers",
    "without_zone",
]


class Notation(NamedTuple):
    """A way to write digits: what stands between thousands, and what before the decimals."""

    group: str  # a class of characters of a regular expression, or nothing
    point: str

    @property
    def pattern(self) -> str:
        """The regular expression of a number without its sign."""
        grouped = rf"|[1-9][0-9]{{0,2}}(?:[{self.group}][0-9]{{3}})+" if self.group else ""
        whole, point = rf"(?:[0-9]+{grouped})", re.escape(self.point)
        return rf"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"

    def plain(self, digits: pl.Series) -> pl.Series:
        """Return the digits as Python writes them."""
        if self.group:
            digits = digits.str.replace_all(f"[{self.group}]", "")
        return digits.str.replace(self.point, ".", literal=True)


#: Blanks of one kind or another: no-break, thin, narrow no-break.
_BLANKS = " \u00a0\u2009\u202f"

#: How 1234.5 is written, and the notation.
NOTATIONS = {
    "1234.5": Notation("", "."),
    "1234,5": Notation("", ","),
    "1,234.5": Notation(",", "."),
    "1.234,5": Notation(".", ","),
    "1 234.5": Notation(_BLANKS, "."),
    "1 234,5": Notation(_BLANKS, ","),
    "1'234.5": Notation("'\u2019", "."),
    "1'234,5": Notation("'\u2019", ","),
}

#: Signs of percentages and currencies; the codes are those of ISO 4217 that are traded most.
UNIT = (
    r"%|[A-Z]{0,3}\p{Sc}|kr\.?|zł|Kč|Ft|Fr\.|AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EUR|GBP|"
    r"HKD|HUF|IDR|ILS|INR|JPY|KRW|MXN|MYR|NOK|NZD|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|"
    r"VND|ZAR"
)
#: Currencies of places that write a decimal point: their comma stands between thousands.
_WITH_POINT = (
    r"^(?:US|AU?|CA?|NZ|HK|S|MX|NT)?\$$|[£¥₹₩]|AUD|CAD|GBP|HKD|INR|JPY|KRW|MXN|NZD|SGD|USD"
)
_SIGN = "[+\u2212-]?"
_NUMBER = rf"[0-9.,'\u2019{_BLANKS}]*[0-9][.,]?(?:[eE][+-]?[0-9]+)?"
_AFFIXED = rf"^{_SIGN}({UNIT})?\s*{_SIGN}\s*{_NUMBER}\s*({UNIT})?$"
_NAMES = "|".join(map(re.escape, NOTATIONS))
_EXAMPLE = re.compile(rf"({UNIT})?\s*({_NAMES})\s*({UNIT})?".replace(r"\p{Sc}", r"[^\w\s]"))


def number_formats(cells: pl.Series, faults: float = 0.0) -> list[str]:
    """Return the formats of numbers that fit a column of text and differ in what it means.

    Parameters
    ----------
    cells : polars.Series
        The text.
    faults : float, default=0.0
        The share of the cells that a format need not fit.

    Examples
    --------
    >>> import polars as pl
    >>> from pursuit.io.column_formats import number_formats
    >>> number_formats(pl.Series(["$1,200", "-$3.50", None]))
    ['$ 1,234.5']
    >>> number_formats(pl.Series(["1,234"])), number_formats(pl.Series(["red"]))
    (['1234,5', '1,234.5'], [])
    """
    cells = cells if faults else cells.unique()
    units = _units(cells)
    if units is None:
        return []
    found = _fitting(cells, (_example(name, units) for name in NOTATIONS), read_numbers, faults)
    comma, thousands = (_example(name, units) for name in ("1234,5", "1,234.5"))
    if thousands in found and any(map(re.compile(_WITH_POINT).search, units)):
        found = [text for text in found if text != comma]
    return found


def _units(cells: pl.Series) -> tuple[str, str] | None:
    """Return what most cells have before and behind the number, or None if none is a number."""
    there = cells.filter(cells.str.contains(_AFFIXED).fill_null(False))
    units = [there.str.extract(_AFFIXED, i).fill_null("").alias(str(i)) for i in (1, 2)]
    counts = pl.DataFrame(units).group_by(["1", "2"], maintain_order=True).len().sort("len")
    return counts.row(-1)[:2] if len(there) else None


def _example(name: str, units: tuple[str, str]) -> str:
    return " ".join(filter(None, (units[0], name, units[1])))


def is_number_format(text: str | None) -> bool:
    """Tell whether a format is that of numbers with signs of their own."""
    return text is not None and _EXAMPLE.fullmatch(text) is not None


def read_numbers(cells: pl.Series, example: str) -> pl.Series:
    """Return the numbers that are written as the example writes 1234.5; other cells are null.

    Examples
    --------
    >>> import polars as pl
    >>> from pursuit.io.column_formats import read_numbers
    >>> read_numbers(pl.Series(["1.200 €", "-0,5 €", "0.5 €"]), "1.234,5 €").to_list()
    [1200.0, -0.5, None]
    """
    before, notation, after = _parts(example)
    whole = rf"^({_SIGN}){before}\s*({_SIGN})\s*({notation.pattern})\s*{after}$"
    sign, second, digits = cells.str.extract_groups(whole).struct.unnest()
    sign = (sign + second).str.replace("\u2212", "-", literal=True)
    return (sign + notation.plain(digits)).cast(pl.Float64, strict=False).alias(cells.name)


def _parts(example: str) -> tuple[str, Notation, str]:
    """Return the notation of an example and the regular expressions of what is around it."""
    found = _EXAMPLE.fullmatch(example)
    if found is None:
        raise ValueError(f"not an example of 1234.5: {example!r}")
    before, after = (re.escape(unit or "") for unit in found.group(1, 3))
    return before, NOTATIONS[found[2]], after


# --- dates --------------------------------------------------------------------------------------

DAYS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    *("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y"),
    *("%m-%d-%Y", "%d-%m-%Y", "%m-%d-%y", "%d-%m-%y", "%y-%m-%d"),
    *("%d.%m.%Y", "%d.%m.%y"),
)
CLOCKS = (
    "%H:%M%#z",
    "%H:%M:%S%.f%#z",
    *("%H:%M:%S,%3f", "%H:%M:%S,%3f%#z"),
    *("%H:%M", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p"),
)
_TIMES = ("", *map("".join, product(("T", " ", ", "), CLOCKS)))
#: A day, perhaps the time of the day.
_DATED = (
    r"^(?:[0-9]{1,2}|[0-9]{4})([-/.])[0-9]{1,2}[-/.](?:[0-9]{2}|[0-9]{4})"
    r"(?:[T ,]+[0-9]{1,2}:[0-9]{2}.*)?$"
)
_FIRST = 20


def date_formats(cells: pl.Series) -> list[str]:
    """Return the formats of dates that fit a column of text and differ in what it means.

    Examples
    --------
    >>> import polars as pl
    >>> from pursuit.io.column_formats import date_formats
    >>> date_formats(pl.Series(["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5Z"]))
    ['%Y-%m-%dT%H:%M:%S%.f%#z']
    >>> date_formats(pl.Series(["01/02/24", None]))
    ['%m/%d/%y', '%d/%m/%y']
    """
    there = cells.drop_nulls().unique()
    if there.is_empty() or not there.str.contains(_DATED).all():
        return []
    return _fitting(there, map("".join, product(DAYS, _TIMES)), read_dates)


def read_dates(cells: pl.Series, date_format: str) -> pl.Series:
    """Return the times, in UTC without a zone; a cell in another format is null.

    So is one before the year 1000: its year has lost digits.
    """
    try:
        times = cells.str.to_datetime(date_format, strict=False, time_unit="us")
    except pl.exceptions.PolarsError:  # no format of polars
        return pl.Series(cells.name, [None] * len(cells), dtype=pl.Datetime("us"))
    return without_zone(times.set(times.dt.year() < 1000, None))


def without_zone(times: pl.Series) -> pl.Series:
    """Return times in UTC, without saying so."""
    if times.dtype == pl.Datetime and times.dtype.time_zone is not None:  # type: ignore[attr-defined]
        return times.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return times


def may_swap_days(cells: pl.Series, date_format: str) -> bool:
    """Tell whether days and months could change places without a fault, and would differ.

    Where points are between them the day comes first everywhere.
    """
    if not re.search("%[dm][-/]%[dm][-/]%[Yy]", date_format):
        return False
    other = re.sub("%[dm]", lambda found: {"%d": "%m", "%m": "%d"}[found[0]], date_format)
    return len(_fitting(cells, (date_format, other), read_dates)) > 1


def _fitting(
    cells: pl.Series,
    formats: Iterable[str],
    reader: Callable[[pl.Series, str], pl.Series],
    faults: float = 0.0,
) -> list[str]:
    """Return the formats under which the cells have values, one for each set of values."""
    found: dict[str, pl.Series] = {}
    first = cells.drop_nulls().head(_FIRST)
    for text in formats:
        if not faults and reader(first, text).has_nulls():
            continue
        values = reader(cells, text)
        n_faults, there = values.null_count() - cells.null_count(), cells.count()
        if n_faults <= faults * there and not any(map(values.equals, found.values())):
            found[text] = values
    return list(found)
