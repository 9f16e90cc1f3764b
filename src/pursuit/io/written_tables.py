"""Columns written as CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import polars as pl
from numpy.typing import NDArray

__all__ = ["WRITTEN", "format_of", "write_table"]

#: The formats by the suffix of a file.
WRITTEN = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


def format_of(path: Path) -> str:
    """Return the format that a suffix stands for, CSV where it stands for none."""
    return WRITTEN.get(path.suffix.lower(), "csv")


def write_table(stream: IO[bytes], columns: Mapping[str, NDArray[Any]], form: str) -> None:
    """Write columns; numbers in the shortest form that reads back as the same number.

    Parameters
    ----------
    stream : binary file
        Where to write.
    columns : mapping of str to ndarray of shape (n_rows,)
        Names and cells; None is a missing one.
    form : {"csv", "tsv", "jsonl", "parquet"}
        How.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from pursuit.io.written_tables import write_table
    >>> file = io.BytesIO()
    >>> write_table(file, {"a": np.array([0.1, 2.0]), "b": np.array(["x", "y"])}, "jsonl")
    >>> file.getvalue().decode().splitlines()
    ['{"a": 0.1, "b": "x"}', '{"a": 2.0, "b": "y"}']
    """
    cells = {name: values.tolist() for name, values in columns.items()}
    if form == "parquet":
        pl.DataFrame(cells).write_parquet(stream)
        return
    rows = zip(*cells.values(), strict=True)
    text = codecs.getwriter("utf-8")(stream)
    if form == "jsonl":
        for row in rows:
            text.write(json.dumps(dict(zip(cells, row, strict=True)), ensure_ascii=False) + "\n")
        return
    writer = csv.writer(text, lineterminator="\n", delimiter="\t" if form == "tsv" else ",")
    writer.writerow(cells)
    writer.writerows(rows)
