"""Data frames and arrays as the tables and matrices that files give.

A column of pandas becomes one of polars by its values, without pyarrow: numbers and truth values
stay what they are, times lose their zone (UTC), categories and objects become what their cells are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from pursuit.io.tables import MISSING, DataError, Matrix, Table, from_frame

__all__ = ["as_data", "counted_from", "with_target"]

NAME = "data frame"


def as_data(X: Any, missing: Collection[str] = MISSING) -> Table | Matrix:
    """Return a frame as a table and an array as a matrix; what a file gave stays.

    Parameters
    ----------
    X : data frame of pandas or polars, array-like or sparse matrix of shape (n_rows, n_columns)
        The rows.
    missing : collection of str, default=MISSING
        The words of a frame that mean "missing", beside the empty cell.

    Raises
    ------
    DataError
        If there are no rows, or cells of a type that is not known here.

    Examples
    --------
    >>> import polars as pl
    >>> from pursuit.table.frames import as_data
    >>> as_data(pl.DataFrame({"a": ["1", "NA"]})).frame["a"].to_list()
    ['1', None]
    """
    if isinstance(X, Table | Matrix):
        return X
    if isinstance(X, pl.DataFrame):
        return from_frame(X, missing)
    if hasattr(X, "iloc"):
        return from_frame(_from_pandas(X), missing)
    return _matrix(X)


def _matrix(X: Any) -> Matrix:
    """Return numbers without names."""
    if isinstance(X, pl.LazyFrame):
        raise DataError("a LazyFrame holds no rows yet: collect() it")
    X = sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not X.shape[0]:
        raise DataError(
            f"array: X must be a data frame or have two dimensions and rows, its shape is {X.shape}"
        )
    return Matrix("array", X, None, in_memory=True)


def counted_from(first: int, n_features: int, data: Table | Matrix) -> Table | Matrix:
    """Return rows whose sparse features are numbered as in the file that a model was fitted to.

    The columns of a sparse matrix in memory are the features; LIBSVM text counts them from `first`.
    """
    if not (isinstance(data, Matrix) and data.in_memory and sp.issparse(data.X)):
        return data
    n_rows, width = data.X.shape
    if width != n_features:
        raise DataError(f"{data.path}: {width} features, but the model has {n_features}")
    shifted = sp.csr_matrix((data.X.data, data.X.indices + first, data.X.indptr))
    shifted.resize(n_rows, first + width)
    return replace(data, X=shifted)


def with_target(data: Table | Matrix, target: Any) -> tuple[Table | Matrix, str]:
    """Return rows that hold their targets, and the name of these.

    Parameters
    ----------
    data : Table or Matrix
        The rows.
    target : str or array-like of shape (n_rows,)
        The name of a column, or the targets themselves.

    Raises
    ------
    ValueError
        If the number of targets is another, or there is a column of their name already.
    """
    if isinstance(target, str):
        return data, target
    cells = _series(str(getattr(target, "name", None) or "target"), target)
    if len(cells) != len(data):
        raise ValueError(f"target has {len(cells)} entries, but there are {len(data)} rows.")
    if isinstance(data, Matrix):
        return replace(data, y=cells.to_numpy()), cells.name
    if cells.name in data.frame.columns:
        raise ValueError(f"target: there is a column {cells.name!r} already; give its name.")
    # A class that is called NA stays one: the words for missing are those of columns.
    both = data.frame.with_columns(from_frame(pl.DataFrame([cells]), ()).frame[cells.name])
    return replace(data, frame=both), cells.name


def _from_pandas(frame: Any) -> pl.DataFrame:
    names = [str(name) for name in frame.columns]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"{NAME}: column {twice!r} appears twice")
    return pl.DataFrame([_series(name, frame.iloc[:, i]) for i, name in enumerate(names)])


def _series(name: str, column: Any) -> pl.Series:
    """Return a column of any kind as one of polars."""
    if isinstance(column, pl.Series):
        return column.alias(name)
    if not hasattr(column, "iloc"):
        column = np.asarray(column)
        if column.ndim != 1:
            raise ValueError(f"target must have one dimension, its shape is {column.shape}.")
        return _of_objects(name, column.tolist())
    kind = getattr(column.dtype, "kind", "O")
    if kind == "f":
        return pl.Series(name, column.to_numpy(np.float64, na_value=np.nan)).fill_nan(None)
    if kind == "M":
        zone = getattr(column.dtype, "tz", None)
        column = column if zone is None else column.dt.tz_convert(None)
        return pl.Series(name, column.to_numpy("datetime64[us]"))
    absent = column.isna().to_numpy()
    if kind in "iu" and not absent.any():
        return pl.Series(name, column.to_numpy(f"{kind}8"))
    cells = column.astype(object).tolist()
    return _of_objects(name, [None if gone else c for c, gone in zip(cells, absent, strict=True)])


def _of_objects(name: str, cells: list[Any]) -> pl.Series:
    """Return cells of one type."""
    try:
        values = pl.Series(name, cells, strict=True)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{NAME}: column {name!r}: cells of more than one type") from error
    if values.dtype == pl.Object:
        kind = type(next(cell for cell in cells if cell is not None)).__name__
        raise DataError(f"{NAME}: column {name!r}: cells of type {kind} are not supported")
    return values
