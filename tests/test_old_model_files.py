"""Model files that pursuit wrote at commit 13c152a load, and answer the same.

Outputs agree to a few units in the last place of their size: another BLAS, or sums in another order
than at that commit, round otherwise.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from data.models_13c152a.write_models import outputs, trend
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import pursuit
from pursuit.io.tables import read
from pursuit.table.model import TableModel

FOLDER = Path(__file__).parent / "data" / "models_13c152a"
CLASSES = json.loads((FOLDER / "classes.json").read_text())
FUNCTIONS = {"trend": trend}


@pytest.fixture(scope="module")
def stored():
    with np.load(FOLDER / "outputs.npz") as arrays:
        return dict(arrays)


def assert_same_output(actual, expected):
    """Equal in dtype and shape, and but for rounding: sums may be in another order today."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind not in "f":
        assert_array_equal(actual, expected)
    else:
        precision = 1e4 * np.finfo(expected.dtype).eps
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        assert_allclose(actual, expected, rtol=precision, atol=precision * size)


@pytest.mark.parametrize("name", CLASSES)
def test_an_old_model_answers_the_same(name, stored):
    model = pursuit.load(FOLDER / f"{name}.pursuit", functions=FUNCTIONS)
    assert type(model).__name__ == CLASSES[name]
    X = stored["queries"]
    if name == "classifier_sparse":
        X = sparse.csr_matrix(X)
    elif name == "classifier_float32":
        X = X.astype(np.float32)
    answers = outputs(model, X)
    expected = {
        key.partition("/")[2]: value for key, value in stored.items() if key.startswith(f"{name}/")
    }
    assert answers.keys() >= expected.keys()
    for method, value in expected.items():
        assert_same_output(answers[method], value)


def test_an_old_table_model_answers_the_same(stored):
    model = TableModel.load(FOLDER / "table.pursuit")
    features = model.features(read(FOLDER / "table.csv"))
    assert_same_output(features, stored["table/features"])
    assert_same_output(model.estimator_.predict(features), stored["table/predict"])


def test_every_estimator_of_then_has_a_file_and_is_public_still():
    then = set(CLASSES.values())
    assert len(then) == 25
    assert then <= set(pursuit.__all__)
