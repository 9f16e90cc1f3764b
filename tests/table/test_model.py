"""Models of tables: frames of pandas and polars, files, and what the command line makes."""

import pickle
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import cross_val_score

import pursuit
from pursuit import ModelFileError, TableModel, load, save
from pursuit.cli import app as cli
from pursuit.io.tables import DataError, read
from pursuit.losses import Quantile
from pursuit.table.frames import as_data

QUICK = {"gamma": 0.1, "C": 100.0}


def shop(n=90, seed=0):
    """A frame of every kind of column; who is old and not of Bonn buys."""
    rng = np.random.default_rng(seed)
    age, city = rng.integers(18, 80, n), rng.choice(["Bonn", "Ulm"], n)
    return pl.DataFrame(
        {
            "age": [None if i % 17 == 3 else int(a) for i, a in enumerate(age)],
            "city": city,
            "joined": [date(2020 + i % 3, 1 + i % 12, 5) for i in range(n)],
            "member": rng.random(n) < 0.5,
            "score": rng.normal(size=n),
            "buys": np.where((age > 45) & (city != "Bonn"), "yes", "no"),
        }
    )


def in_pandas(frame):
    """The same table as pandas holds it, with a category, a nullable integer and a time zone."""
    columns = {name: frame[name].to_list() for name in frame.columns}
    table = pd.DataFrame(columns)
    table["city"] = table["city"].astype("category")
    table["age"] = table["age"].astype("Int64")
    table["joined"] = pd.to_datetime(table["joined"]).dt.tz_localize("UTC")
    return table


@pytest.fixture(scope="module")
def model():
    return TableModel(8, **QUICK).fit(shop(), "buys")


# --- frames ------------------------------------------------------------------------------------


def test_frames_of_pandas_and_polars_and_files_agree(model, tmp_path):
    new = shop(30, seed=1)
    new.write_csv(tmp_path / "new.csv")
    probabilities = model.predict_proba(new)
    truth = new["buys"].to_numpy()
    assert np.mean(model.predict(new) == truth) > 0.85
    assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(new))
    for other in (in_pandas(new), read(tmp_path / "new.csv")):
        assert_allclose(model.predict_proba(other), probabilities, rtol=1e-9, atol=1e-12)
    again = TableModel(8, **QUICK).fit(in_pandas(shop()), "buys")
    assert_allclose(again.predict_proba(new), probabilities, rtol=1e-6, atol=1e-9)
    assert again.layout_.columns[1:] == model.layout_.columns[1:]


def test_the_command_line_makes_the_same_model(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pursuit.reports.timing.TIMING_SECONDS", 0.001)
    shop().write_csv("shop.csv")
    options = ("--n-components", "8", "--gamma", "0.1", "--price", "100")
    assert cli.main(["fit", "shop.csv", "-t", "buys", "-o", "m.pursuit", *options]) == 0
    new, shipped = shop(30, seed=1), load("m.pursuit")
    assert isinstance(shipped, TableModel)
    assert_allclose(shipped.predict_proba(new), model.predict_proba(new), rtol=1e-9, atol=1e-12)
    ours = TableModel(8, **QUICK).fit(read("shop.csv"), "buys")
    save(ours, "ours.pursuit")
    theirs, mine = (load(name, table=False) for name in ("m.pursuit", "ours.pursuit"))
    assert_array_equal(theirs.dual_coef_, mine.dual_coef_)


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d %H:%M"])
def test_dates_learnt_as_such_are_read_from_text(model, written):
    new = shop(40, seed=1).with_columns(pl.col("joined") + pl.duration(days=13))
    text = new.with_columns(pl.col("joined").cast(pl.Datetime).dt.strftime(written))
    assert_array_equal(model.predict_proba(text), model.predict_proba(new))


def test_columns_in_any_order_unknown_ones_and_missing_ones(model):
    new = shop(12, seed=2)
    shuffled = new.select(reversed(new.columns))
    assert_array_equal(model.predict_proba(shuffled), model.predict_proba(new))
    with pytest.warns(UserWarning, match=r"^data frame: column 'extra' is not in the model: ign"):
        known = model.predict_proba(new.with_columns(extra=pl.lit(1)))
    assert_array_equal(known, model.predict_proba(new.drop("buys")))
    with pytest.raises(DataError, match=r"^data frame: no column 'age'; did you mean 'Age'\?$"):
        model.predict(new.rename({"age": "Age"}))
    with pytest.raises(DataError, match=r"^data frame: row 3: column 'age': not a number: 'old'$"):
        model.predict(new.with_columns(age=pl.Series(["1", "2", "old", *["4"] * 9])))
    assert model.feature_names_in_.tolist() == ["age", "city", "joined", "member", "score"]
    assert model.n_features_in_ == 5


PANDAS = {
    "floats": (pd.Series([1.5, np.nan]), [1.5, None]),
    "integers": (pd.Series([2**60 + 1, 2]), [2**60 + 1, 2]),
    "small integers": (pd.Series([1, 2], dtype="uint8"), [1, 2]),
    "nullable integers": (pd.Series([1, None], dtype="Int64"), [1, None]),
    "nullable floats": (pd.Series([0.5, None], dtype="Float64"), [0.5, None]),
    "truth values": (pd.Series([True, False]), [True, False]),
    "nullable truth values": (pd.Series([True, None], dtype="boolean"), [True, None]),
    "text": (pd.Series(["a", None]), ["a", None]),
    "objects": (pd.Series(["NA", " b "], dtype=object), [None, "b"]),
    "categories": (pd.Series(["u", None], dtype="category"), ["u", None]),
    "categories of numbers": (pd.Series([3, 4], dtype="category"), [3, 4]),
    "days": (pd.Series([date(2020, 1, 2), None]), [date(2020, 1, 2), None]),
    "nothing": (pd.Series([None, None], dtype=object), [None, None]),
}


@pytest.mark.parametrize("case", PANDAS)
def test_columns_of_pandas(case):
    column, expected = PANDAS[case]
    assert as_data(pd.DataFrame({"a": column})).frame["a"].to_list() == expected


def test_times_of_pandas_lose_their_zone():
    times = pd.Series(pd.to_datetime(["2020-01-02 03:04:05", None]))
    for column in (times, times.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")):
        found = as_data(pd.DataFrame({"a": column})).frame["a"]
        assert found.dt.strftime("%F %T").to_list() == ["2020-01-02 03:04:05", None]


FRAME_FAULTS = {
    "two types": (pd.DataFrame({"a": ["x", 1]}, dtype=object), "'a': cells of more than one type"),
    "a type unknown": (pd.DataFrame({"a": [{1}]}), "'a': cells of type set are not supported"),
    "names twice": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column 'a' appears twice"),
    "no rows": (pl.DataFrame({"a": []}), "data frame: no rows"),
    "lists": (pl.DataFrame({"a": [[1]]}), "cells of type List.Int64. are not supported"),
    "one dimension": ([1.0, 2.0], r"must be a data frame or have two dimensions.*\(2,\)"),
    "lazy": (pl.LazyFrame({"a": [1]}), "collect"),
}


@pytest.mark.parametrize("case", FRAME_FAULTS)
def test_frames_that_are_refused(case):
    frame, message = FRAME_FAULTS[case]
    with pytest.raises(DataError, match=message):
        as_data(frame)


# --- the target --------------------------------------------------------------------------------


def test_targets_may_be_given_beside_the_frame(model):
    table = shop()
    for target in (table["buys"], table["buys"].to_numpy(), in_pandas(table)["buys"]):
        given = TableModel(8, **QUICK).fit(table.drop("buys"), target)
        assert_array_equal(given.predict_proba(table.drop("buys")), model.predict_proba(table))
    labels = np.where(table["buys"].to_numpy() == "yes", "NA", "null")  # words as good as others
    given = TableModel(3, **QUICK).fit(table.drop("buys"), labels)
    assert given.classes_.tolist() == ["NA", "null"]
    with pytest.raises(ValueError, match="target has 3 entries, but there are 90 rows"):
        TableModel().fit(table, [1, 2, 3])
    with pytest.raises(ValueError, match="there is a column 'buys' already"):
        TableModel().fit(table, table["buys"])


def test_rows_without_a_target_are_left_out_with_a_warning():
    table = shop().with_columns(buys=pl.Series(["NA", *shop()["buys"][1:]]))
    with pytest.warns(UserWarning, match="no target; 1 such rows.*missing '' keeps them"):
        partly = TableModel(4, **QUICK).fit(table, "buys")
    assert partly.classes_.tolist() == ["no", "yes"]
    assert any("missing ''" in note for note in partly.notes_)
    whole = TableModel(4, missing=[""], **QUICK).fit(table, "buys")
    assert whole.classes_.tolist() == ["NA", "no", "yes"]


def test_scores_are_accuracy_and_r2(model):
    new = shop(40, seed=3)
    share = np.mean(model.predict(new) == new["buys"].to_numpy())
    assert model.score(new) == model.score(new.drop("buys"), new["buys"]) == share
    numbers = TableModel(6, **QUICK).fit(new, "score")
    y = new["score"].to_numpy()
    left = np.square(y - numbers.predict(new)).sum() / np.square(y - y.mean()).sum()
    assert numbers.score(new) == pytest.approx(1 - left)
    assert not hasattr(numbers, "predict_proba") and is_regressor(numbers)
    scores = cross_val_score(TableModel(5, **QUICK), new.drop("buys"), new["buys"], cv=2)
    assert scores.shape == (2,) and np.isfinite(scores).all()
    assert is_classifier(model)


# --- parameters --------------------------------------------------------------------------------


def test_methods_follow_from_the_parameters():
    table = shop(40)
    assert TableModel(3, gamma=0.1, alpha=1e-3).fit(table, "buys").estimator_.alpha == 1e-3
    busy = TableModel(3, gamma=0.1, loss=Quantile(0.9), method="selected").fit(table, "score")
    assert busy.layout_.task == "regression"
    assert np.mean(table["score"].to_numpy() <= busy.predict(table)) > 0.7
    assert busy.truncate(1).n_components_ == 1 < busy.n_components_


PARAMETER_FAULTS = {
    "alpha goes with method='selected' only": {"alpha": 1.0, "method": "moving"},
    "kernel goes with method='selected' only": {"kernel": "sigmoid", "method": "moving"},
    "C goes with method='moving' only": {"C": 1.0, "method": "selected"},
    "method must be 'auto', 'moving' or": {"method": "both"},
    "task must be 'auto', 'classification' or": {"task": "ranking"},
    "loss='huber': the target 'buys' is for classification": {
        "loss": "huber",
        "task": "classification",
    },
    "no column 'ages'; did you mean 'age'": {"drop": ["ages"]},
}


@pytest.mark.parametrize("message", PARAMETER_FAULTS)
def test_parameters_that_do_not_go(message):
    with pytest.raises(ValueError, match=message):
        TableModel(**PARAMETER_FAULTS[message]).fit(shop(), "buys")


def test_hints_name_parameters_and_not_options():
    faulty = shop().with_columns(age=pl.Series(["x", *map(str, range(89))]))
    with pytest.raises(DataError, match=r"'x' \(text 'age' takes the column as text\)"):
        TableModel().fit(faulty, "buys")


# --- arrays ------------------------------------------------------------------------------------


def test_arrays_and_sparse_matrices(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.7)
    y = X[:, 1] + X[:, 2] ** 2
    dense = TableModel(10, gamma=0.2, C=100.0, task="regression").fit(X, y)
    assert dense.n_features_in_ == 4
    assert dense.score(X, y) > 0.8
    with pytest.raises(DataError, match="array: 3 features, but the model has 4"):
        dense.predict(X[:, :3])
    with pytest.raises(DataError, match=r"array: X\[1, 2\]: not a finite number: inf"):
        dense.predict(np.where(np.arange(8).reshape(2, 4) == 6, np.inf, X[:2]))
    rows = (
        f"{a} " + " ".join(f"{j + 1}:{row[j]}" for j in np.flatnonzero(row))
        for row, a in zip(X, y, strict=True)
    )
    (tmp_path / "a.svm").write_text("\n".join(rows))
    plain = TableModel(10, gamma=0.2, C=100.0, task="regression")
    in_memory = clone(plain).fit(sp.csr_matrix(X), y)
    of_file = plain.fit(read(tmp_path / "a.svm"), "y")
    assert_allclose(of_file.predict(sp.csr_matrix(X)), in_memory.predict(sp.csr_matrix(X)))
    assert_allclose(of_file.predict(read(tmp_path / "a.svm")), in_memory.predict(sp.csr_matrix(X)))
    with pytest.raises(DataError, match="array: 5 features, but the model has 4"):
        of_file.predict(sp.csr_matrix((2, 5)))


# --- files -------------------------------------------------------------------------------------


def test_a_saved_model_keeps_its_parameters_and_bits(model, tmp_path):
    save(model, tmp_path / "a.pursuit")
    model.save(tmp_path / "b.pursuit")
    assert (tmp_path / "a.pursuit").read_bytes() == (tmp_path / "b.pursuit").read_bytes()
    again, new = load(tmp_path / "a.pursuit"), shop(20, seed=4)
    assert again.get_params() == model.get_params()
    assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), model.predict(new))
    assert not hasattr(clone(again), "estimator_")
    save(model, tmp_path / "c.pursuit", dtype="float32", attachments={"note.txt": b"x"})
    rounded = load(tmp_path / "c.pursuit").predict_proba(new)
    assert_allclose(rounded, again.predict_proba(new), atol=1e-4)
    assert pursuit.model_file.load_attachments(tmp_path / "c.pursuit")["note.txt"] == b"x"


def test_without_the_extra_a_line_says_how_to_install_it(model, tmp_path, monkeypatch):
    """That `import pursuit` imports none of it, tests/onnx sees in a new process."""
    path = tmp_path / "m.pursuit"
    model.save(path)
    monkeypatch.setattr("pursuit.table.model.find_spec", lambda name: None)
    needs = r"needs polars, skrub, skops: pip install 'pursuit\[table\]'"
    with pytest.raises(ImportError, match=f"m.pursuit holds a model of a table, which {needs}"):
        load(path)
    for call in (lambda: TableModel().fit([[1.0]], [1]), lambda: model.predict(shop())):
        with pytest.raises(ImportError, match=f"TableModel {needs}"):
            call()
    assert type(load(path, table=False)).__name__ == "SparseKernelClassifier"


def test_an_estimator_alone_is_no_model_of_a_table(model, tmp_path):
    save(model.estimator_, tmp_path / "e.pursuit")
    with pytest.raises(ModelFileError, match="holds an estimator alone"):
        TableModel.load(tmp_path / "e.pursuit")
