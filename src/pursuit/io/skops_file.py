"""Fitted machines of scikit-learn in files of skops, and rows for them from files of data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from pursuit.io.columns import Column, number_column, typed
from pursuit.io.files import replacing
from pursuit.io.skops_archive import UntrustedType, from_skops, to_skops
from pursuit.io.tables import DataError, Matrix, Table, missing_labels
from pursuit.io.tree import ModelFileError

__all__ = [
    "Rows",
    "read_machine_file",
    "rows_for",
    "write_machine_file",
]


def read_machine_file(path: str | Path) -> Any:
    """Read a fitted estimator of scikit-learn that skops saved.

    Raises
    ------
    ModelFileError
        If the file is none of skops, is damaged, or names a type that is not trusted.
    """
    try:
        estimator = from_skops(Path(path).read_bytes())
    except UntrustedType as error:
        raise ModelFileError(
            f"{path} names the type {error}, which is not trusted: only estimators of "
            "scikit-learn are read"
        ) from None
    except Exception as error:  # zipfile, json, skops and the classes each have errors of their own
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ModelFileError(
            f"{path}: not a file that skops.io.dump wrote, or damaged ({reason})"
        ) from error
    if not isinstance(estimator, BaseEstimator):
        raise ModelFileError(
            f"{path} holds no estimator but an object of class {type(estimator).__name__}"
        )
    return estimator


def write_machine_file(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator as a compressed file of skops, in one piece."""
    content = to_skops(estimator)
    with replacing(path) as stream:
        stream.write(content)


class Rows(NamedTuple):
    """Rows of a file as an estimator wants them, and their targets, or None."""

    X: Any
    y: NDArray[Any] | None


def rows_for(estimator: Any, data: Table | Matrix, target: str | None) -> Rows:
    """Features and targets of a file for a fitted estimator.

    A table gives the columns by which the estimator knows its features, or where it knows no names
    all columns but the target, in their order; all are numbers, a missing cell is NaN.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    data : Table or Matrix
        What `tables.read` gives.
    target : str or None
        The column of a table with the targets; a matrix has them, or has not.

    Raises
    ------
    DataError
        If columns are missing or hold no numbers, or their number is another.
    """
    n_features = int(estimator.n_features_in_)
    if isinstance(data, Matrix):
        return Rows(_matrix(data, n_features), data.y)
    y = None if target is None else _targets(estimator, data, target)
    known = getattr(estimator, "feature_names_in_", None)
    names = [name for name in data.frame.columns if name != target] if known is None else known
    if len(names) != n_features:
        beside = "" if target is None else f" beside {target!r}"
        raise DataError(
            f"{data.path}: {len(names)} columns{beside}, but the model has {n_features} features"
        )
    cells = [typed(data, number_column(data, str(name))).fill_null(np.nan) for name in names]
    frame = pl.DataFrame(cells)
    return Rows(frame.to_numpy() if known is None else frame, y)


def _targets(estimator: Any, table: Table, target: str) -> NDArray[Any]:
    """The column of targets: text where the estimator's classes are text, else numbers."""
    classes = np.asarray(getattr(estimator, "classes_", [0.0]))
    text = classes.dtype.kind in "OUSb"
    cells = typed(table, Column(target, "text") if text else number_column(table, target))
    absent = np.flatnonzero(cells.is_null().to_numpy())
    if len(absent):
        place = f"{table.where(int(absent[0]))}: column {target!r}"
        raise DataError(f"{place}: no target{missing_labels(table, target)}")
    if classes.dtype.kind == "b":
        return np.array([cell.lower() in ("true", "1") for cell in cells.to_list()])
    return np.array(cells.to_list(), dtype=object) if text else np.asarray(cells.to_numpy())


def _matrix(data: Matrix, n_features: int) -> Any:
    """The matrix with the estimator's number of features.

    LIBSVM text counts from 1 unless a feature 0 is there, and leaves out zeros, also the last.
    """
    X = data.X
    if not sparse.issparse(X):
        if X.shape[1] != n_features:
            raise DataError(
                f"{data.path}: {X.shape[1]} features, but the model has {n_features} features"
            )
        return X
    first = int(not (X.indices == 0).any())
    if X.shape[1] - first > n_features:
        raise DataError(
            f"{data.path}: {X.shape[1] - first} features, but the model has {n_features} features"
        )
    shifted = (X.data, X.indices - first, X.indptr)
    return sparse.csr_matrix(shifted, shape=(X.shape[0], n_features))
