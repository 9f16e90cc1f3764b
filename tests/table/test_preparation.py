"""Layouts, preparations and the model file of a table."""

import dataclasses
import io
import os
import zipfile

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import FunctionTransformer

from pursuit import KernelMatchingPursuitRegressor, ModelFileError, TableModel, model_file, save
from pursuit.io.columns import Column
from pursuit.io.skops_archive import to_skops
from pursuit.io.tables import DataError, Matrix, Table
from pursuit.table.preparation import (
    MOST_CATEGORIES,
    Layout,
    labelled,
    learn_layout,
    make_preparation,
    matching,
)


def table_of(lines=True, **columns):
    frame = pl.DataFrame(columns)
    return Table("a.csv", frame, np.arange(2, len(frame) + 2) if lines else None)


MIXED = table_of(
    size=["1", "3", None, "5"],
    colour=["red", "blue", "red", None],
    day=["2020-01-01", "2020-01-02", "2020-01-04", None],
    y=["0.5", "1.5", "2.5", "0.25"],
)


def prepared(data, layout):
    return make_preparation(layout).fit_transform(matching(data, layout))


# --- layouts -----------------------------------------------------------------------------------


def test_a_layout_learns_the_columns():
    layout, notes = learn_layout(MIXED, "y")
    assert layout.columns == (
        Column("size", "number"),
        Column("colour", "text", categories=("", "blue", "red")),
        Column("day", "date", "%Y-%m-%d"),
    )
    assert (layout.source, layout.task, layout.target) == ("table", "regression", "y")
    assert notes == []
    assert Layout.from_json(layout.to_json()) == layout


TARGETS = {
    "text": (["a", "b", "a"], None, "classification", "text"),
    "two numbers": (["0", "7", "0"], None, "classification", "integer"),
    "whole floats": ([1.0, 2.0, 1.0], None, "classification", "integer"),
    "flags": ([True, False, True], None, "classification", "text"),
    "many whole numbers": ([str(i) for i in range(30)], None, "regression", "number"),
    "fractions": (["0.5", "1", "2"], None, "regression", "number"),
    "whole, as asked": (["0", "1", "0"], "regression", "regression", "number"),
    "fractions, as asked": (["0.5", "1", "0.5"], "classification", "classification", "text"),
}


@pytest.mark.parametrize("case", TARGETS)
def test_tasks_and_labels(case):
    y, task, expected, labels = TARGETS[case]
    layout, _ = learn_layout(table_of(x=list(range(len(y))), y=y), "y", task=task)
    assert (layout.task, layout.labels) == (expected, labels)
    values = labelled(table_of(y=y), layout)[1]
    assert values.dtype.kind == {"text": "U", "integer": "i", "number": "f"}[labels]
    spelled = [str(value).lower() if isinstance(value, bool) else value for value in y]
    same = values.tolist() if labels == "text" else values.astype(float).tolist()
    assert same == (spelled if labels == "text" else [float(value) for value in spelled])


def test_columns_that_teach_nothing_are_left_out_with_a_note():
    n = 100
    data = table_of(
        void=[None] * n,
        name=[f"person {i}" for i in range(n)],
        x=[str(i % 7) for i in range(n)],
        y=["a", "b"] * (n // 2),
    )
    layout, notes = learn_layout(data, "y")
    assert [column.name for column in layout.columns] == ["x"]
    assert notes == [
        "a.csv: column 'void' is empty: left out",
        "a.csv: column 'name' is text that hardly repeats: left out",
    ]
    assert layout.left_out == ("void", "name")
    layout, _ = learn_layout(data, "y", text=("x",), drop=("void", "name"))
    assert layout.columns[0].categories == tuple("0123456")


def test_only_the_most_frequent_categories_become_features():
    cells = [f"c{i:02}" for i in range(60) for _ in range(2 + (i >= 20))]
    layout, _ = learn_layout(table_of(c=cells, y=[str(i) for i in range(len(cells))]), "y")
    assert layout.columns[0].categories == tuple(f"c{i:02}" for i in range(20, 60))
    assert len(layout.columns[0].categories) == MOST_CATEGORIES


LAYOUT_FAULTS = {
    "no feature": (
        table_of(y=["1", "2"]),
        {},
        "a.csv: no column to learn from beside 'y'",
    ),
    "no target": (table_of(x=[1], y=[None]), {}, "a.csv: column 'y': no row has a target"),
    "absent target": (table_of(Y=["1"], x=[1]), {}, "a.csv: no column 'y'; did you mean 'Y'?"),
    "absent drop": (
        table_of(xs=[1], y=[1]),
        {"drop": ("x",)},
        "a.csv: no column 'x'; it has 'xs', 'y'",
    ),
    "text for regression": (
        table_of(x=[1, 2], y=["a", "b"]),
        {"task": "regression"},
        "a.csv: column 'y': regression needs numbers, and its cells are texts",
    ),
    "names of a matrix": (
        Matrix("a.npz", np.ones((2, 1)), np.array([0, 1])),
        {"text": ("x",)},
        "a.npz: the columns of a matrix have no names such as 'x'",
    ),
    "matrix without target": (
        Matrix("a.npz", np.ones((2, 1)), None),
        {},
        "a.npz: no array 'y' to learn from",
    ),
}


@pytest.mark.parametrize("case", LAYOUT_FAULTS)
def test_faults_of_a_training_file(case):
    data, options, message = LAYOUT_FAULTS[case]
    with pytest.raises(DataError) as caught:
        learn_layout(data, "y", **options)
    assert str(caught.value) == message


def test_rows_without_a_target_are_left_out_with_a_note():
    data = table_of(x=[1, 2, 3, 4], y=["a", None, "b", None])
    layout, _ = learn_layout(data, "y")
    rows, y, notes = labelled(data, layout)
    assert y.tolist() == ["a", "b"]
    assert rows.frame["x"].to_list() == [1, 3]
    assert rows.where(1) == "a.csv:4"
    assert notes == ["a.csv:3: no target; 2 such rows are left out, this is the first"]
    matrix = Matrix("a.npz", np.arange(3.0)[:, None], np.array([0.5, np.nan, 0.25]))
    rows, y, _ = labelled(matrix, learn_layout(matrix, "y")[0])
    assert_array_equal(rows.X, [[0], [2]])
    assert_array_equal(y, [0.5, 0.25])


# --- features ----------------------------------------------------------------------------------


def test_features_of_a_table():
    layout, _ = learn_layout(MIXED, "y")
    X = prepared(MIXED, layout)
    deviation = np.std([1, 3, 5])
    # Standardised, the missing one at the median, and a feature that marks it.
    assert_allclose(X[:, 0], [-2 / deviation, 0, 0, 2 / deviation], atol=1e-12)
    assert_array_equal(X[:, 1], [0, 0, 1, 0])
    # One feature each for "", blue and red.
    assert_array_equal(X[:, 2:5], [[0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    # year, month, day, hour, seconds, weekday, and marks of the missing date.
    days = (np.array([1, 2, 4]) - 7 / 3) / np.std([1, 2, 4])
    assert_allclose(X[:3, 7], days, atol=1e-6)
    assert X.shape[1] > 11
    assert np.isfinite(X).all()


def test_features_without_scaling_and_of_new_rows():
    layout, _ = learn_layout(MIXED, "y", scale=False, drop=("day",))
    preparation = make_preparation(layout).fit(matching(MIXED, layout))
    new = table_of(colour=["green", "blue"], size=["7", None], extra=[1, 2])
    assert_array_equal(
        preparation.transform(matching(new, layout)), [[7, 0, 0, 0, 0], [3, 1, 0, 1, 0]]
    )


def test_large_offsets_keep_their_digits():
    data = table_of(x=[str(1e6 + i / 100) for i in range(5)], y=[0.5, 1, 2, 3, 4])
    X = prepared(data, learn_layout(data, "y")[0])
    assert_allclose(np.diff(X[:, 0]), np.full(4, 1 / np.sqrt(2)), rtol=1e-6)


def test_features_of_matrices():
    dense = Matrix("a.npz", np.array([[1.0, np.nan], [3, 5], [5, 7]]), np.array([0.5, 1, 2]))
    layout, _ = learn_layout(dense, "y")
    X = prepared(dense, layout)
    assert X.shape == (3, 3)
    assert_allclose(X[:, 0], np.array([-1, 0, 1]) * np.sqrt(1.5))
    unscaled, _ = learn_layout(dense, "y", scale=False)
    assert_array_equal(prepared(dense, unscaled), [[1, 6, 1], [3, 5, 0], [5, 7, 0]])
    sparse = Matrix("a.svm", sp.csr_matrix([[0, 2.0, 0], [0, -4, 8]]), np.array([1.0, -1]))
    layout, _ = learn_layout(sparse, "y")
    assert (layout.n_features, layout.first_index) == (2, 1)
    X = prepared(sparse, layout)
    assert sp.issparse(X)
    assert_array_equal(X.toarray(), [[0.5, 0], [-1, 1]])
    unscaled = dataclasses.replace(layout, scale=False)
    assert_array_equal(prepared(sparse, unscaled).toarray(), [[2, 0], [-4, 8]])


def test_a_sparse_file_with_fewer_features_is_filled_up():
    layout = Layout("sparse", "regression", "y", "number", n_features=4, first_index=1)
    X = matching(Matrix("a.svm", sp.csr_matrix([[0, 1.0]]), np.zeros(1)), layout)
    assert_array_equal(X.toarray(), [[1, 0, 0, 0]])


def test_faults_of_a_file_to_predict_for(tmp_path):
    table, _ = learn_layout(MIXED, "y")
    dense = Layout("dense", "regression", "y", "number", n_features=2)
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n# note\n2 1:1 3:1\n")
    sparse = Layout("sparse", "regression", "y", "number", n_features=2, first_index=1)
    cases = [
        (
            table_of(size=["1"], day=[None]),
            table,
            "a.csv: no column 'colour'; it has 'size', 'day'",
        ),
        (
            table_of(size=["1", "x"], colour=["a", "b"], day=[None, None]),
            table,
            "a.csv:3: column 'size': not a number: 'x'",
        ),
        (Matrix("a.npz", np.ones((1, 3)), None), dense, "a.npz: 3 features, but the model has 2"),
        (
            Matrix("a.npz", np.array([[1, 2], [3, -np.inf]]), None),
            dense,
            "a.npz: X[1, 1]: not a finite number: -inf",
        ),
        (
            Matrix(str(path), sp.csr_matrix([[1.0, 1.0]]), None),
            sparse,
            f"{path}:1: feature 0: not in the model, which counts features from 1",
        ),
        (
            Matrix(str(path), sp.csr_matrix([[0, 1.0], [0, np.nan]]), None),
            sparse,
            f"{path}:3: feature 1: not a finite number",
        ),
        (MIXED, dense, "a.csv: a table, but the model was fitted to a matrix"),
        (
            Matrix("a.npz", np.ones((1, 3)), None),
            table,
            "a.npz: a matrix, but the model was fitted to a table with names",
        ),
        (
            Matrix("a.npz", np.ones((1, 2)), None),
            sparse,
            "a.npz: the model was fitted to a sparse matrix",
        ),
    ]
    for data, layout, message in cases:
        with pytest.raises(DataError) as caught:
            matching(data, layout)
        assert str(caught.value) == message


# --- the model file ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    layout, _ = learn_layout(MIXED, "y")
    rows, y, _ = labelled(MIXED, layout)
    preparation = make_preparation(layout)
    X = preparation.fit_transform(matching(rows, layout))
    estimator = KernelMatchingPursuitRegressor(n_components=2, gamma=0.1).fit(X, y)
    return TableModel().filled(estimator, preparation, layout)


def test_a_saved_model_predicts_the_same_bits(model, tmp_path):
    path = tmp_path / "a.pursuit"
    model.save(path)
    again = TableModel.load(path)
    assert again.layout_ == model.layout_
    X = again.features(MIXED)
    assert_array_equal(X, model.features(MIXED))
    assert_array_equal(again.estimator_.predict(X), model.estimator_.predict(X))
    assert path.stat().st_size < 40_000
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.pursuit"]


def test_notes_on_a_file_to_predict_for(model):
    new = table_of(
        size=["1", "2", "3"],
        colour=["green", "red", "blue"],
        day=[None, None, None],
        extra=[1, 2, 3],
    )
    assert model.notes(new) == [
        "a.csv: column 'extra' is not in the model: ignored",
        "a.csv: column 'colour': cells with text that the fit has not seen: 1",
    ]
    assert model.notes(MIXED) == []
    assert model.notes(Matrix("a.npz", np.ones((1, 1)), None)) == []


def test_a_model_file_without_a_table_is_refused(model, tmp_path):
    path = tmp_path / "a.pursuit"
    save(model.estimator_, path)
    with pytest.raises(
        ModelFileError, match="holds an estimator alone, not the columns of a table"
    ):
        TableModel.load(path)


def save_with(model, path, preparation):
    attachments = {"layout.json": model.layout_.to_json(), "preparation.skops": preparation}
    model_file.save(model.estimator_, path, attachments=attachments)


def test_a_preparation_that_names_other_code_is_refused_and_runs_nothing(model, tmp_path):
    path = tmp_path / "a.pursuit"
    mark = tmp_path / "mark"
    mark.mkdir()
    save_with(model, path, to_skops(FunctionTransformer(os.rmdir, kw_args={})))
    with pytest.raises(ModelFileError, match="the preparation names posix.rmdir, not trusted"):
        TableModel.load(path)
    assert mark.is_dir()


def test_a_damaged_preparation_is_refused(model, tmp_path):
    path = tmp_path / "a.pursuit"
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
        archive.writestr("schema.json", "{}")
    for content in (b"", b"PK", to_skops(model.preparation_)[:-500], stream.getvalue()):
        save_with(model, path, content)
        with pytest.raises(ModelFileError, match="damaged preparation"):
            TableModel.load(path)


def test_a_damaged_layout_is_refused(model, tmp_path):
    path = tmp_path / "a.pursuit"
    for layout in (b"", b"[]", b'{"columns": [], "left_out": [], "other": 1}'):
        attachments = {"layout.json": layout, "preparation.skops": to_skops(model.preparation_)}
        model_file.save(model.estimator_, path, attachments=attachments)
        with pytest.raises(ModelFileError, match="damaged layout"):
            TableModel.load(path)


def test_the_trusted_types_are_few():
    layout, _ = learn_layout(MIXED, "y")
    preparation = make_preparation(layout).fit(matching(MIXED, layout))
    untrusted = skops.io.get_untrusted_types(data=to_skops(preparation))
    assert untrusted == ["numpy.dtype", "skrub._datetime_encoder.DatetimeEncoder"]
