"""The way from a file's columns to features.

A `Layout` says what a file must hold: the columns and what their cells mean, or the number of
features, and the target. A preparation, made of scikit-learn's transformers and skrub's encoder
of dates, turns that into numbers of comparable size. A model file keeps both beside the estimator:
the layout as JSON, the preparation by skops, which stores no pickle. Loading accepts the types of
scikit-learn that skops trusts and those in `TRUSTED`, and refuses a file that names any other.

How the columns become features: numbers are standardised, then a missing one takes the median and
sets a feature of its own. A text column becomes a 0/1 feature for each of its `MOST_CATEGORIES`
most frequent cells (a missing cell counts as one; any other cell sets none of them), so two rows
that differ in a category are as far apart as in a typical number. A date becomes year, month, day,
hour, weekday and seconds since 1970, standardised. The features of a sparse matrix are divided by
their largest absolute value, which keeps it sparse.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler
from skrub import DatetimeEncoder

from pursuit import model_file
from pursuit.io.column_formats import is_number_format
from pursuit.io.columns import BOOLEANS, Column, ambiguity, infer_column, reading, typed
from pursuit.io.skops_archive import UntrustedType, from_skops
from pursuit.io.tables import (
    FLOAT_INTEGERS,
    MISSING,
    DataError,
    Matrix,
    Table,
    missing_labels,
    shown,
)

MOST_CATEGORIES = 40
#: More classes are perhaps none: where that share of the labels are digits, perhaps with a unit
#: behind them, and where labels are that many and more than this share of the rows.
MANY_CLASSES, MOSTLY = 20, 0.9
MANY_LABELS, MANY_OF_THE_ROWS = 50, 0.2

#: The types that a preparation may hold beside those of scikit-learn that skops trusts by itself.
#: Reviewed: constructing them from stored attributes runs no code and opens nothing.
TRUSTED = ("numpy.dtype", "skrub._datetime_encoder.DatetimeEncoder")

Task: TypeAlias = Literal["classification", "regression"]
Features: TypeAlias = NDArray[np.float64] | sp.csr_matrix


@dataclass(frozen=True)
class Layout:
    """What the model expects of a file."""

    source: Literal["table", "dense", "sparse"]
    task: Task
    target: str
    labels: Literal["text", "integer", "number"]
    columns: tuple[Column, ...] = ()  # of a table
    left_out: tuple[str, ...] = ()  # columns of the table that are no features
    n_features: int = 0  # of a matrix
    first_index: int = 0  # of LIBSVM text: the number its first feature goes by
    scale: bool = True
    baseline: str | float = 0.0  # the majority class (as text), or the mean of the targets
    target_format: str | None = None  # of a target of numbers, as `Column.format`
    missing: tuple[str, ...] = MISSING  # the words of a table that mean "missing"

    def to_json(self) -> bytes:
        """Return the layout as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Layout:
        """Return the layout that `to_json` wrote."""
        fields = json.loads(text)
        columns = tuple(
            Column(**{**column, "categories": tuple(column["categories"])})
            for column in fields.pop("columns")
        )
        left_out, missing = fields.pop("left_out"), fields.pop("missing", MISSING)
        return cls(columns=columns, left_out=tuple(left_out), missing=tuple(missing), **fields)


def notes_on(data: Table | Matrix, layout: Layout) -> list[str]:
    """Return what a user should know about a file to predict for."""
    if isinstance(data, Matrix):
        return _unknown_features(data, layout)
    known = {column.name for column in layout.columns} | {layout.target, *layout.left_out}
    extra = [name for name in data.frame.columns if name not in known]
    notes = [f"{data.path}: column {name!r} is not in the model: ignored" for name in extra]
    return notes + [note for column in layout.columns for note in _new_cells(data, column)]


def _new_cells(data: Table, column: Column) -> list[str]:
    """Return a note on the cells of a column with text that the fit has not seen.

    A full list of categories leaves rare ones out, so that a new one cannot be told.
    """
    if column.kind != "text" or len(column.categories) >= MOST_CATEGORIES:
        return []
    new = int((~_input(typed(data, column), column).is_in(list(column.categories))).sum())
    place = f"{data.path}: column {column.name!r}"
    return [f"{place}: cells with text that the fit has not seen: {new}"] if new else []


def stored_layout(path: str | os.PathLike[str], attachments: dict[str, bytes]) -> Layout:
    """Return the layout in a model file, or raise a `ModelFileError`."""
    try:
        return Layout.from_json(attachments["layout.json"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise model_file.ModelFileError(f"{path}: damaged layout ({error})") from error


def stored_preparation(path: str | os.PathLike[str], attachments: dict[str, bytes]) -> Any:
    """Return the preparation in a model file, or raise a `ModelFileError`."""
    try:
        return from_skops(attachments["preparation.skops"], TRUSTED)
    except UntrustedType as error:
        told = f"{path}: the preparation names {error}, not trusted"
        raise model_file.ModelFileError(told) from None
    except Exception as error:  # zipfile, json, skops and the classes each have errors of their own
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise model_file.ModelFileError(f"{path}: damaged preparation ({reason})") from error


# --- from a file to the input of the preparation -----------------------------------------------


def matching(data: Table | Matrix, layout: Layout) -> pl.DataFrame | Features:
    """Return the columns of a file that a layout asks for, converted and checked.

    Raises
    ------
    DataError
        If a column is missing, or a cell or the number of features is not what it should be.
    """
    if isinstance(data, Table):
        if layout.source != "table":
            raise DataError(f"{data.path}: a table, but the model was fitted to a matrix")
        return pl.DataFrame([_input(typed(data, column), column) for column in layout.columns])
    if layout.source == "table":
        raise DataError(f"{data.path}: a matrix, but the model was fitted to a table with names")
    X = data.X
    if sp.issparse(X) != (layout.source == "sparse"):
        raise DataError(f"{data.path}: the model was fitted to a {layout.source} matrix")
    return _sparse(data, layout) if sp.issparse(X) else _dense(data, layout)


def _input(cells: pl.Series, column: Column) -> pl.Series:
    return cells.fill_null("") if column.kind == "text" else cells


def _dense(data: Matrix, layout: Layout) -> NDArray[np.float64]:
    if data.X.shape[1] != layout.n_features:
        raise DataError(
            f"{data.path}: {data.X.shape[1]} features, but the model has {layout.n_features}"
        )
    X: NDArray[np.float64] = data.X
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        raise DataError(f"{data.where(row, column)}: not a finite number: {X[row, column]}")
    return X


def _sparse(data: Matrix, layout: Layout) -> sp.csr_matrix:
    """Return the matrix with exactly the model's features: absent ones are zero."""
    X, first = data.X, layout.first_index
    for fault, what in (
        (~np.isfinite(X.data), "not a finite number"),
        (X.indices < first, "not in the model, which counts features from 1"),
    ):
        if fault.any():
            entry = int(np.argmax(fault))
            row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
            raise DataError(f"{data.where(row, X.indices[entry])}: {what}")
    known = X[:, first : first + layout.n_features]
    known.resize(X.shape[0], layout.n_features)
    return sp.csr_matrix(known)


def _unknown_features(data: Matrix, layout: Layout) -> list[str]:
    """Return a note on the features of a sparse matrix that the model does not have."""
    if not sp.issparse(data.X):
        return []
    features = np.unique(data.X.indices)
    unknown = features[features >= layout.first_index + layout.n_features]
    if not len(unknown):
        return []
    return [
        f"{data.path}: feature {unknown[0]} is not in the model: ignored; {len(unknown)} such "
        "features, this is the first"
    ]


# --- what a file teaches -----------------------------------------------------------------------


def learn_layout(
    data: Table | Matrix,
    target: str,
    *,
    task: Task | None = None,
    text: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    missing: tuple[str, ...] = MISSING,
    scale: bool = True,
) -> tuple[Layout, list[str]]:
    """Decide what the columns of a file are.

    Parameters
    ----------
    data : Table or Matrix
        The training file.
    target : str
        The column to predict; of a matrix, what to call its target.
    task : {"classification", "regression"} or None, default=None
        None: classification if the target is text or a few distinct whole numbers.
    text, drop : tuple of str
        Columns to take as text whatever they look like, and columns to leave out.
    missing : tuple of str, default=MISSING
        The words that were read as missing.
    scale : bool, default=True
        Whether to standardise numbers.

    Returns
    -------
    layout : Layout
        What the model will expect of a file.
    notes : list of str
        What a user should know: how columns were read, which are left out.
    """
    for name in (*text, *drop):
        if isinstance(data, Matrix):
            raise DataError(f"{data.path}: the columns of a matrix have no names such as {name!r}")
        data.column(name)
    labels, column = _learn_labels(data, target, task, as_text=target in text)
    kind: Task = "regression" if labels == "number" else "classification"
    written = column.format if labels == "number" else None
    layout = Layout("table", task or kind, target, labels, scale=scale)
    layout = replace(layout, target_format=written, missing=missing)
    told = [] if task == "classification" or target in text else _doubts(data, layout, column)
    if isinstance(data, Matrix):
        return _learn_features(data, layout), told
    layout, notes = _learn_columns(data, layout, text, drop)
    return layout, told + notes


def _learn_features(data: Matrix, layout: Layout) -> Layout:
    X, sparse = data.X, sp.issparse(data.X)
    first = int(sparse and not data.in_memory and not (X.indices == 0).any())
    source: Literal["sparse", "dense"] = "sparse" if sparse else "dense"
    return replace(layout, source=source, n_features=X.shape[1] - first, first_index=first)


def _learn_columns(
    table: Table, layout: Layout, text: tuple[str, ...], drop: tuple[str, ...]
) -> tuple[Layout, list[str]]:
    columns: list[Column] = []
    notes: list[str] = []
    left_out = list(drop)
    for name in table.frame.columns:
        if name in drop or name == layout.target:
            continue
        column = infer_column(table, name, as_text=name in text)
        if column.kind == "text":
            column = replace(column, categories=_categories(table, name))
        if column.kind == "empty" or (column.kind == "text" and not column.categories):
            what = "empty" if column.kind == "empty" else "text that hardly repeats"
            doubt = "" if name in text else _in_brackets(ambiguity(table.column(name)))
            notes.append(f"{table.path}: column {name!r} is {what}: left out{doubt}")
            left_out.append(name)
        else:
            notes += [] if name in text else reading(table, column)
            columns.append(column)
    if not columns:
        raise DataError(f"{table.path}: no column to learn from beside {layout.target!r}")
    return replace(layout, columns=tuple(columns), left_out=tuple(left_out)), notes


def _categories(table: Table, name: str) -> tuple[str, ...]:
    """Return the most frequent cells in alphabetical order, or none if the cells hardly repeat."""
    counts = table.frame[name].cast(pl.String).fill_null("").value_counts()
    if len(counts) > max(MOST_CATEGORIES, table.frame.height // 2):
        return ()
    order = counts.sort(["count", name], descending=[True, False])[name]
    return tuple(sorted(order.head(MOST_CATEGORIES).to_list()))


def make_preparation(layout: Layout) -> Any:
    """Return the transformer, not yet fitted, from the columns of a layout to features."""
    if layout.source == "sparse":
        return MaxAbsScaler() if layout.scale else FunctionTransformer(accept_sparse=True)
    if layout.source == "dense":
        return make_pipeline(*_numbers(layout.scale))
    numbers, texts, dates = (
        [column for column in layout.columns if column.kind == kind]
        for kind in ("number", "text", "date")
    )
    # A transformer that a table has no column for is left out.
    steps: list[tuple[str, Any, Any]] = [
        ("numbers", make_pipeline(*_numbers(layout.scale)), [column.name for column in numbers]),
        ("texts", _one_hot(texts), [column.name for column in texts]),
    ]
    for i, column in enumerate(dates):
        parts = DatetimeEncoder(add_weekday=True)
        steps.append((f"date{i}", make_pipeline(parts, *_numbers(scale=True)), column.name))
    return ColumnTransformer([step for step in steps if step[2]])


def _numbers(scale: bool) -> list[Any]:
    impute = SimpleImputer(strategy="median", add_indicator=True)
    return [StandardScaler(), impute] if scale else [impute]


def _one_hot(columns: list[Column]) -> OneHotEncoder:
    categories = [np.array(column.categories, dtype=object) for column in columns]
    return OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)


# --- the target --------------------------------------------------------------------------------


def _target_table(data: Table | Matrix, target: str) -> Table:
    """Return the target as a table of one column, so that one code reads it from every format."""
    if isinstance(data, Table):
        cells, lines = data.column(target), data.lines
    elif data.y is None:
        raise DataError(f"{data.path}: no array 'y' to learn from")
    else:
        cells, lines = pl.Series(target, data.y), None
        cells = cells.fill_nan(None) if cells.dtype.is_float() else cells
    if cells.dtype == pl.Boolean or cells.dtype.is_temporal():
        cells = cells.cast(pl.String)
    return Table(data.path, pl.DataFrame([cells]), lines)


def _learn_labels(
    data: Table | Matrix, target: str, task: Task | None, as_text: bool
) -> tuple[Literal["text", "integer", "number"], Column]:
    table = _target_table(data, target)
    column = infer_column(table, target, as_text=as_text)
    place = f"{table.path}: column {target!r}"
    if column.kind == "empty":
        raise DataError(f"{place}: no row has a target{missing_labels(data, target)}")
    if column.kind != "number":
        if task == "regression":
            told = f"{column.kind}s{_in_brackets(ambiguity(table.column(target)))}"
            raise DataError(f"{place}: regression needs numbers, and its cells are {told}")
        return "text", column
    if column.format == "boolean" and task != "regression":
        return "text", column
    values = typed(table, column).drop_nulls()
    whole = bool((values == values.floor()).all())
    plain = whole and not is_number_format(column.format)
    if task == "regression" or (task is None and not (plain and _are_few(values))):
        return "number", column
    exact = whole and column.format is None and _are_integers(table.frame[target].drop_nulls())
    return "integer" if exact else "text", column


def _are_few(values: pl.Series) -> bool:
    """Tell whether numbers repeat as those of classes do."""
    return values.n_unique() <= max(2, min(20, len(values) // 2))


def _doubts(data: Table | Matrix, layout: Layout, column: Column) -> list[str]:
    """Return a note on how the target was read, or on classes that are perhaps numbers."""
    table = _target_table(data, layout.target)
    cells = table.column(layout.target).cast(pl.String).drop_nulls()
    labels = cells.unique().sort()
    if layout.labels != "text" or not _are_many(labels, len(cells)):
        return reading(table, column) if column.format != "boolean" else []
    return [
        f"{data.path}: column {layout.target!r}: {len(labels)} classes with labels such as "
        f"{shown(labels[0])}{_in_brackets(ambiguity(cells))}: --task classification says that they "
        "are classes, --task regression that they are numbers"
    ]


def _are_many(labels: pl.Series, n_rows: int) -> bool:
    """Tell whether there are so many labels that they are perhaps no classes."""
    n_like_numbers = int(labels.str.contains(r"^\P{L}*[0-9]\P{L}*\pL{0,4}\.?$").sum())
    most = (
        MANY_CLASSES
        if n_like_numbers >= MOSTLY * len(labels)
        else max(MANY_LABELS, MANY_OF_THE_ROWS * n_rows)
    )
    return len(labels) > most


def _in_brackets(doubt: str) -> str:
    return f" ({doubt})" if doubt else ""


def _are_integers(cells: pl.Series) -> bool:
    """Tell whether integers give the cells back as they were read: not ``007``, not 20 digits."""
    if cells.dtype.is_integer():
        return bool(cells.cast(pl.Int64, strict=False).is_not_null().all())
    if cells.dtype != pl.String:
        return True
    unlike = cells.str.contains(r"^[+-]?0[0-9]|^\+|^-0+$")
    large = cells.cast(pl.Float64).abs() >= FLOAT_INTEGERS
    inexact = large & cells.cast(pl.Int64, strict=False).is_null()
    return not bool((unlike | inexact).any())


def known_labels(
    data: Table | Matrix, y: NDArray[Any], layout: Layout, classes: Any
) -> tuple[NDArray[Any], list[str]]:
    """Return labels to compare with predictions, and a note if a model knows some of them not.

    Raises
    ------
    DataError
        If the model knows none of them.
    """
    if layout.task == "regression":
        return y, []
    spelling = {str(label).lower(): str(label) for label in classes}
    if y.dtype.kind == "U" and spelling.keys() <= BOOLEANS.keys():
        y = np.array([spelling.get(label.lower(), label) for label in y], dtype=str)
    unknown = ~np.isin(y, classes)
    if not unknown.any():
        return y, []
    place = f"{data.path}: column {layout.target!r}"
    first = f"{shown(y[unknown][0])} is not among the classes of the model"
    some = ", ".join(shown(label) for label in classes[:5])
    told = f"{place}: {first} ({some}{', ...' if len(classes) > 5 else ''})"
    if unknown.all():
        raise DataError(f"{told}, and so are all labels")
    return y, [f"{told}; {int(unknown.sum())} such rows count as errors"]


def labelled(data: Table | Matrix, layout: Layout) -> tuple[Any, NDArray[Any], list[str]]:
    """Return the rows that have a target, the targets, and a note if others were left out.

    Raises
    ------
    DataError
        If no row has one, or a target is not what the layout says.
    """
    table = _target_table(data, layout.target)
    kind: Literal["text", "number"] = "text" if layout.labels == "text" else "number"
    cells = typed(table, Column(layout.target, kind, layout.target_format))
    there = cells.is_not_null().to_numpy()
    words = missing_labels(data, layout.target)
    if not there.any():
        raise DataError(f"{data.path}: column {layout.target!r}: no row has a target{words}")
    if layout.labels == "integer":
        cells = _exact(table.frame[layout.target], cells)
    if there.all():
        return data, _values(cells, layout), []
    return data.rows(there), _values(cells.drop_nulls(), layout), [_left_out(table, there) + words]


def _left_out(table: Table, there: NDArray[np.bool_]) -> str:
    absent = np.flatnonzero(~there)
    first = table.where(int(absent[0]))
    return f"{first}: no target; {len(absent)} such rows are left out, this is the first"


def _exact(raw: pl.Series, values: pl.Series) -> pl.Series:
    """Integers as they were read, also where a float does not hold them."""
    if (values != values.floor()).any():
        return values  # a label such as 1.5 is none of the model's
    exact = raw if raw.dtype.is_integer() or raw.dtype == pl.String else values
    return exact.cast(pl.Int64, strict=False).fill_null(values.cast(pl.Int64, strict=False))


def _values(cells: pl.Series, layout: Layout) -> NDArray[Any]:
    if layout.labels == "text":
        return np.array(cells.to_list(), dtype=str)
    values: NDArray[Any] = cells.to_numpy()
    return values.astype(np.float64) if layout.labels == "number" else values
