"""How numbers and dates are written: what fits a whole column, what does not, and what is said."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest

from pursuit.io.column_formats import (
    NOTATIONS,
    date_formats,
    is_number_format,
    may_swap_days,
    number_formats,
    read_dates,
    read_numbers,
)
from pursuit.io.columns import Column, infer_column, reading, typed
from pursuit.io.tables import DataError, Table


def table_of(*cells):
    frame = pl.DataFrame({"c": pl.Series(cells, dtype=pl.String)})
    return Table("a.csv", frame, np.arange(2, len(frame) + 2))


NUMBERS = {
    "decimal comma": (["3,14", "-2", None, ",5"], "1234,5", [3.14, -2.0, None, 0.5]),
    "exponent": (["1,5e3", "2"], "1234,5", [1500.0, 2.0]),
    "comma, then point": (["1,234.5", "12"], "1,234.5", [1234.5, 12.0]),
    "two commas": (["1,234,567", "89"], "1,234.5", [1234567.0, 89.0]),
    "point, then comma": (["1.234,5", "0,25"], "1.234,5", [1234.5, 0.25]),
    "two points": (["1.234.567"], "1.234,5", [1234567.0]),
    "blanks": (["1 234", "5"], "1 234.5", [1234.0, 5.0]),
    "narrow blanks": (["1\u202f234,5", "2\u00a0000"], "1 234,5", [1234.5, 2000.0]),
    "apostrophes": (["1'234.5", "1\u2019000"], "1'234.5", [1234.5, 1000.0]),
    "a minus of its own": (["\u22121,5", "+2,5"], "1234,5", [-1.5, 2.5]),
    "percent": (["12 %", "3.5%", "-1 %"], "1234.5 %", [12.0, 3.5, -1.0]),
    "dollars": (["$1,200", "-$3", "$-4"], "$ 1,234.5", [1200.0, -3.0, -4.0]),
    "euros before": (["€ 12", "€ 1,5"], "€ 1234,5", [12.0, 1.5]),
    "euros behind": (["1.234,50 €", "12 €"], "1.234,5 €", [1234.5, 12.0]),
    "a code": (["12 EUR", "13EUR"], "1234.5 EUR", [12.0, 13.0]),
    "reais": (["R$ 1.234,50"], "R$ 1.234,5", [1234.5]),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_in_their_own_format(case):
    cells, example, values = NUMBERS[case]
    table = table_of(*cells)
    column = infer_column(table, "c")
    assert column == Column("c", "number", example)
    assert typed(table, column).to_list() == values
    assert reading(table, column) == [
        f"a.csv: column 'c': read as numbers written like {example!r}; --text 'c' takes it as text"
    ]


TEXT = {
    "two currencies": ["$5", "€5"],
    "a unit in some cells": ["5", "5 %"],
    "two notations": ["1,5", "1.5"],
    "ranges": ["10-19", "20-29"],
    "letters": ["A12", "B13"],
    "a code that is no currency": ["12 ABC"],
    "groups of two": ["1,23,456"],
    "addresses": ["192.168.1.1"],
    "versions": ["1.2.3", "1.10.0"],
}


@pytest.mark.parametrize("case", TEXT)
def test_what_stays_text(case):
    table = table_of(*TEXT[case])
    assert infer_column(table, "c") == Column("c", "text")
    assert reading(table, Column("c", "text")) == []


DOUBTS = {
    "thousands or decimals": (["7", "1,234"], "'1,234' may be 1.234 or 1234"),
    "euros": (["€ 1.234"], "'€ 1.234' may be 1.234 or 1234"),
    "days or months": (
        ["01/02/24"],
        "'01/02/24' may be 2024-01-02 00:00:00 or 2024-02-01 00:00:00",
    ),
    "with a clock": (
        ["01/02/2024 03:04 PM"],
        "'01/02/2024 03:04 PM' may be 2024-01-02 15:04:00 or 2024-02-01 15:04:00",
    ),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_an_ambiguous_column_stays_text_and_is_told(case):
    cells, doubt = DOUBTS[case]
    table = table_of(*cells)
    column = infer_column(table, "c")
    assert column == Column("c", "text")
    assert reading(table, column) == [f"a.csv: column 'c': taken as text: {doubt}"]


def test_one_cell_more_settles_it():
    assert infer_column(table_of("1,234", "0,5"), "c").format == "1234,5"
    assert infer_column(table_of("1,234", "0.5"), "c").format == "1,234.5"
    assert infer_column(table_of("01/02/24", "31/01/24"), "c").format == "%d/%m/%y"


def test_one_word_among_numbers_of_their_own_is_a_fault():
    table = table_of(*["1,5"] * 9, "abc")
    with pytest.raises(DataError, match=r"^a.csv:11: column 'c': not a number: 'abc' \(--text"):
        infer_column(table, "c")
    assert infer_column(table_of(*["1,5"] * 8, "abc"), "c") == Column("c", "text")


@pytest.mark.parametrize(
    "example, cell",
    [("1234,5", "1.5"), ("1.234,5 €", "5"), ("$ 1,234.5", "$1,23"), ("1234.5 %", "%")],
)
def test_what_is_written_otherwise_is_a_fault(example, cell):
    with pytest.raises(DataError, match="not a number"):
        typed(table_of(cell), Column("c", "number", example))


def test_numbers_of_another_file_need_no_reading():
    table = Table("a.parquet", pl.DataFrame({"c": [1.5, None]}))
    assert typed(table, Column("c", "number", "1.234,5 €")).to_list() == [1.5, None]


def test_every_notation_reads_its_own_example():
    for before, after in (("", ""), ("$ ", ""), ("", " %"), ("", " zł")):
        for example in NOTATIONS:
            written = f"{before}{example}{after}"
            assert is_number_format(written)
            assert read_numbers(pl.Series([written]), written).to_list() == [1234.5]
    assert not any(map(is_number_format, (None, "boolean", "%Y-%m-%d", "1x234.5")))
    with pytest.raises(ValueError, match="not an example"):
        read_numbers(pl.Series(["1"]), "boolean")


DATES = {
    "Zulu": (["2024-01-02T03:04:05Z"], "%Y-%m-%dT%H:%M:%S%.f%#z", datetime(2024, 1, 2, 3, 4, 5)),
    "milliseconds": (
        ["2024-01-02T03:04:05.250Z", "2024-01-02T03:04:05Z"],
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        datetime(2024, 1, 2, 3, 4, 5, 250000),
    ),
    "some milliseconds": (
        ["2024-01-02 03:04:05.25", "2024-01-02 03:04:05"],
        "%Y-%m-%d %H:%M:%S%.f",
        datetime(2024, 1, 2, 3, 4, 5, 250000),
    ),
    "a comma before them": (
        ["2024-01-02 03:04:05,250"],
        "%Y-%m-%d %H:%M:%S,%3f",
        datetime(2024, 1, 2, 3, 4, 5, 250000),
    ),
    "two zones": (
        ["2024-01-02T03:04+02:00", "2024-01-02T03:04Z"],
        "%Y-%m-%dT%H:%M%#z",
        datetime(2024, 1, 2, 1, 4),
    ),
    "a clock of twelve hours": (
        ["01/02/2024 03:04 PM", "12/31/2024 12:04 am"],
        "%m/%d/%Y %I:%M %p",
        datetime(2024, 1, 2, 15, 4),
    ),
    "with seconds": (
        ["31/01/2024, 3:04:05PM"],
        "%d/%m/%Y, %I:%M:%S %p",
        datetime(2024, 1, 31, 15, 4, 5),
    ),
    "two digits": (["12/31/99"], "%m/%d/%y", datetime(1999, 12, 31)),
    "two digits and points": (["01.02.24"], "%d.%m.%y", datetime(2024, 2, 1)),
    "two digits first": (["24-12-31", "99-01-31"], "%y-%m-%d", datetime(2024, 12, 31)),
}


@pytest.mark.parametrize("case", DATES)
def test_dates_that_skrub_does_not_find(case):
    cells, date_format, first = DATES[case]
    table = table_of(*cells)
    column = infer_column(table, "c")
    assert column == Column("c", "date", date_format)
    assert typed(table, column)[0] == first
    told = f"a.csv: column 'c': read as dates written {date_format}; --text 'c' takes it as text"
    iso = date_format.startswith("%Y") and "%#z" not in date_format
    assert reading(table, column) == ([] if iso else [told])


def test_days_and_months_that_could_change_places_are_told():
    table = table_of("01/02/2024", "03/04/2024")
    column = infer_column(table, "c")
    assert column == Column("c", "date", "%m/%d/%Y")  # as skrub reads it
    (told,) = reading(table, column)
    assert told.startswith(
        "a.csv: column 'c': read as dates written %m/%d/%Y, but its days and months could change"
    )
    assert not may_swap_days(table_of("01/01/2024").frame["c"], "%m/%d/%Y")
    assert not may_swap_days(pl.Series(["01.02.2024"]), "%d.%m.%Y")


def test_a_year_that_lost_digits_is_none():
    assert read_dates(pl.Series(["01/02/24"]), "%m/%d/%Y").to_list() == [None]
    assert date_formats(pl.Series(["01/31/24"])) == ["%m/%d/%y"]
    assert read_dates(pl.Series(["a"]), "%Q").to_list() == [None]


def test_formats_of_nothing():
    empty = pl.Series("c", [None], dtype=pl.String)
    assert number_formats(empty) == date_formats(empty) == []


def test_first_rows_that_do_not_tell_formats_apart():
    cells = [f"{i:02}/{i:02}/24" for i in range(1, 13)] * 3 + ["01/31/24"]
    assert infer_column(table_of(*cells), "c").format == "%m/%d/%y"
    assert infer_column(table_of(*["12"] * 30, "1,5"), "c").format == "1234,5"
