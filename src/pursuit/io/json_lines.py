"""JSON lines as a table: one object a line, its values text, numbers, truth values or null."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import polars as pl

__all__ = ["parse_json_lines"]

#: Whole numbers that a 64-bit integer holds.
_INTEGERS = range(-(2**63), 2**63)


def parse_json_lines(lines: Iterable[str]) -> tuple[pl.DataFrame, list[int]]:
    """Return the rows as a frame, and the number of the line of each.

    A key that a line lacks is missing there. A column of numbers and text is one of text, as in a
    CSV file.

    Parameters
    ----------
    lines : iterable of str
        The lines; blank ones are skipped.

    Raises
    ------
    ValueError
        If a line is no object of plain values; the message begins with its number and a colon.

    Examples
    --------
    >>> from pursuit.io.json_lines import parse_json_lines
    >>> frame, numbers = parse_json_lines(['{"a": 1, "b": "x"}', "", '{"a": 2.5}'])
    >>> frame.to_dict(as_series=False), numbers
    ({'a': [1.0, 2.5], 'b': ['x', None]}, [1, 3])
    """
    rows, numbers = [], []
    for number, line in enumerate(lines, 1):
        if line.strip():
            rows.append(_object(line, number))
            numbers.append(number)
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names]), numbers


def _object(line: str, number: int) -> dict[str, Any]:
    """Return the object of a line."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{number}: not JSON ({str(error).partition(':')[0]})") from error
    if not isinstance(row, dict):
        raise ValueError(f"{number}: not an object of names and values")
    for name, value in row.items():
        if isinstance(value, dict | list):
            raise ValueError(f"{number}: column {name!r}: a list or an object is no cell")
    return row


def _column(name: str, values: list[Any]) -> pl.Series:
    """Return a column of the type of its values, or of text where these differ."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pl.Series(name, values, dtype=pl.Boolean if kinds else pl.Null)
    whole = kinds == {int} and all(value is None or value in _INTEGERS for value in values)
    if whole or (kinds <= {int, float} and float in kinds):
        return pl.Series(name, values, dtype=pl.Int64 if whole else pl.Float64, strict=False)
    return pl.Series(name, list(map(_as_text, values)), dtype=pl.String)


def _as_text(value: Any) -> str | None:
    """Return a value as a CSV file would hold it."""
    return value if value is None or type(value) is str else json.dumps(value)
