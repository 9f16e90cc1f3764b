"""Single precision: what is narrowed, and that the change which is stated is the change."""

import json
from pathlib import Path

import numpy as np
import pytest
from data.models_13c152a.write_models import trend
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris

import pursuit
from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    SparseKernelClassifier,
    load,
    save,
)
from pursuit.io.single_precision import OUTPUTS
from pursuit.model_file import describe, in_float32

FOLDER = Path(__file__).parent.parent / "data" / "models_13c152a"
CLASSES = json.loads((FOLDER / "classes.json").read_text())
X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def queries():
    with np.load(FOLDER / "outputs.npz") as arrays:
        return arrays["queries"]


def change(model, other, rows):
    name = next(name for name in OUTPUTS if hasattr(model, name))
    a, b = (np.asarray(getattr(one, name)(rows)) for one in (model, other))
    return name, np.abs(a - b)[a != b].max(initial=0.0)


@pytest.mark.parametrize("name", CLASSES)
def test_the_stated_change_is_the_change(name, queries, tmp_path):
    functions = {"trend": trend}
    model = load(FOLDER / f"{name}.pursuit", functions=functions)
    rows = sparse.csr_matrix(queries) if name == "classifier_sparse" else queries
    save(model, tmp_path / "double", staged=True)
    save(model, tmp_path / "single", staged=True, dtype="float32", rows=rows)
    told = describe(tmp_path / "single")["rounded"]
    small = load(tmp_path / "single", functions=functions)
    assert (told["output"], told["largest_change"]) == change(model, small, rows)
    assert told["largest_change"] <= 1e-3 * told["largest_output"]
    assert told["n_rows"] == len(queries)
    assert describe(tmp_path / "double")["rounded"] is None
    assert (tmp_path / "single").stat().st_size < (tmp_path / "double").stat().st_size + 300
    save(model, tmp_path / "own", dtype="float32")  # measured on what the model holds
    assert describe(tmp_path / "own")["rounded"]["n_rows"] > 0


def test_what_is_narrowed_and_what_is_not(tmp_path):
    model = KernelMatchingPursuitRegressor(20, dictionary=X + 1e-9).fit(X, y)
    save(model, tmp_path / "m", dtype="float32", staged=True)
    small = load(tmp_path / "m")
    for name in ("support_vectors_", "dual_coef_"):
        rounded = getattr(model, name).astype(np.float32).astype(np.float64)
        assert_array_equal(getattr(small, name), rounded, strict=True)
    for name in ("intercept_", "train_loss_path_"):
        assert_array_equal(getattr(small, name), getattr(model, name), strict=True)
    assert_array_equal(small.dictionary, model.dictionary)
    assert small.truncate(5).n_components_ == 5
    by_hand = in_float32(model)
    assert_array_equal(by_hand.predict(X), small.predict(X), strict=True)
    save(small, tmp_path / "again", dtype="float32")
    assert describe(tmp_path / "again")["rounded"]["largest_change"] == 0


def test_a_file_of_many_numbers_becomes_half_as_long(tmp_path):
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(200, 50)), rng.integers(0, 2, 200)
    model = KernelMatchingPursuitClassifier(100).fit(Z, labels)
    save(model, tmp_path / "double")
    save(model, tmp_path / "single", dtype="float32")
    sizes = [(tmp_path / name).stat().st_size for name in ("single", "double")]
    assert sizes[0] < 0.6 * sizes[1]


@pytest.mark.parametrize("metric", [None, 8])
def test_a_rounded_model_is_written_in_a_byte_a_number_and_read_as_it_was(tmp_path, metric):
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(400, 30)), rng.integers(0, 3, 400)
    options = {"metric": metric, "max_iter": 3, "random_state": 0}
    model = SparseKernelClassifier(90, precision="int8", **options).fit(Z, labels)
    save(model, tmp_path / "m")
    exact = SparseKernelClassifier(90, **options).fit(Z, labels)
    save(exact, tmp_path / "exact")
    assert describe(tmp_path / "m")["rounded"]["dtype"] == "int8"
    sizes = [(tmp_path / name).stat().st_size for name in ("m", "exact")]
    assert sizes[0] - model.nbytes_ < sizes[1] - exact.nbytes_ + 1500
    same = load(tmp_path / "m")
    for name in ("dual_coef_", "support_vectors_"):
        assert_allclose(getattr(same, name), getattr(model, name), rtol=1e-5, atol=1e-6)
    assert_allclose(same.decision_function(Z), model.decision_function(Z), atol=1e-4)
    save(same, tmp_path / "again")
    assert_array_equal(load(tmp_path / "again").predict(Z), model.predict(Z))


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_codes_of_any_model(tmp_path, dtype):
    model = KernelMatchingPursuitClassifier(10).fit(X, y)
    save(model, tmp_path / "m", dtype=dtype, rows=X)
    told = describe(tmp_path / "m")["rounded"]
    change = np.abs(load(tmp_path / "m").decision_function(X) - model.decision_function(X)).max()
    assert_allclose(told["largest_change"], change, rtol=1e-9)
    assert 0 < change


def test_faults(tmp_path):
    model = KernelMatchingPursuitClassifier(5).fit(X, y)
    with pytest.raises(ValueError, match="dtype must be one of .*, got 'int4'"):
        save(model, tmp_path / "m", dtype="int4")
    with pytest.raises(ValueError, match="rows goes with a dtype that rounds"):
        save(model, tmp_path / "m", rows=X)
    large = KernelMatchingPursuitRegressor(3).fit(X * 1e100, y)
    with pytest.raises(ValueError, match="has no number as large as"):
        save(large, tmp_path / "m", dtype="float32")
    gram = pursuit.KernelMatchingPursuitClassifier(3, kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="needs rows="):
        save(gram, tmp_path / "m", dtype="float32")
    save(gram, tmp_path / "m", dtype="float32", rows=(X @ X.T)[:4].tolist())
    assert describe(tmp_path / "m")["rounded"]["n_rows"] == 4
