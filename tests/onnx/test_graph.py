"""Models as ONNX answer as Python does: every kernel, every kind of answer, bad numbers too."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from exported import CASES, fitted
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pursuit
from pursuit import kernels
from pursuit.export import plain
from pursuit.export.plain_model import outputs, predictions
from pursuit.onnx import graph, to_onnx

# The inputs of this one are columns before they are encoded: see test_converters.
MATRICES = [name for name in CASES if name != "columns"]
DOUBLE = ["kmp poly", "kmp chi2", "kmp cosine_polynomial", "moving metric", "compress ties", "pca"]


def run(converted, **inputs):
    session = onnxruntime.InferenceSession(
        converted.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def answers(model, X):
    """What the model says in Python: labels or numbers, and a table of numbers."""
    if hasattr(model, "transform") and not hasattr(model, "predict"):
        return [model.transform(X)]
    predicted = model.predict(X)
    if hasattr(model, "predict_proba"):
        return [predicted, model.predict_proba(X)]
    if not hasattr(model, "decision_function"):
        return [predicted.reshape(len(X), -1)]
    values = model.decision_function(X)
    if hasattr(model, "classes_") and values.ndim == 1:
        values = np.column_stack([-values, values])
    return [predicted, values.reshape(len(X), -1)]


def assert_equal_answers(found, expected, tolerance):
    assert len(found) == len(expected)
    *labels, table = found
    *expected_labels, expected_table = expected
    for one, other in zip(labels, expected_labels, strict=True):
        assert_array_equal(one, other)
    scale = np.abs(expected_table).max()
    assert table.shape == expected_table.shape
    assert_allclose(table, expected_table, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("name", MATRICES)
def test_single_precision_agrees_to_1e_5(name):
    model, X = fitted(name)
    X = X.astype(np.float32)
    found = run(to_onnx(model), X=X)
    assert found[-1].dtype == np.float32
    assert_equal_answers(found, answers(model, X.astype(np.float64)), 1e-5)


@pytest.mark.parametrize("name", DOUBLE)
def test_double_precision_agrees_to_1e_10(name):
    model, X = fitted(name)
    found = run(to_onnx(model, dtype="float64"), X=X)
    assert found[-1].dtype == np.float64
    assert_equal_answers(found, answers(model, X), 1e-10)


def waves(offset=0.0, n=120):
    X = offset + np.random.default_rng(0).normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0] - 2 * offset) + X[:, 1] - offset


FAR = {
    "rbf": pursuit.KernelMatchingPursuitRegressor(20, gamma=1.0),
    "laplacian": pursuit.KernelMatchingPursuitRegressor(20, kernel="laplacian", gamma=0.3),
    "scaled": make_pipeline(
        StandardScaler(), pursuit.KernelMatchingPursuitRegressor(6, kernel="poly", degree=2)
    ),
}


@pytest.mark.parametrize("name", FAR)
def test_rows_far_from_the_origin_keep_their_digits(name):
    """Fitted to rows that single precision holds, 0.002 apart: what differs is arithmetic alone."""
    X, y = waves(30000.1)
    X = X.astype(np.float32)
    model = FAR[name].fit(X.astype(np.float64), y)
    converted = to_onnx(model)
    assert_equal_answers(run(converted, X=X), answers(model, X.astype(np.float64)), 1e-5)
    assert not _of_type(converted, 11)  # no double precision to help


def test_narrow_kernels_far_from_each_other_keep_their_digits():
    """|u|^2 is a thousand times the distances that matter."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 4))
    X = np.repeat(centres, 20, axis=0) + 0.02 * rng.normal(size=(240, 4))
    model = pursuit.KernelMatchingPursuitRegressor(12, gamma=500.0).fit(X, np.sin(50 * X[:, 0]))
    X = X.astype(np.float32)
    assert_equal_answers(run(to_onnx(model), X=X), answers(model, X.astype(np.float64)), 1e-5)


def test_sums_of_large_terms_are_formed_in_double_precision():
    X, y = waves()
    smooth = pursuit.KernelMatchingPursuitRegressor(16, gamma=0.02).fit(X, y)
    wide = pursuit.KernelMatchingPursuitRegressor(10, gamma=1.0).fit(X, y)
    conditions = [graph.condition(plain(model)) for model in (smooth, wide)]
    assert conditions[0] > 1e3 > graph.LARGEST_CONDITION > conditions[1]
    doubles = [len(_of_type(to_onnx(model), 11)) for model in (smooth, wide)]
    assert doubles[0] > 0 == doubles[1]
    X = X.astype(np.float32)
    assert_equal_answers(run(to_onnx(smooth), X=X), answers(smooth, X.astype(np.float64)), 1e-6)


def _of_type(converted, kind):
    return [each for each in converted.graph.initializer if each.data_type == kind]


def test_the_condition_is_that_of_the_sum():
    X, y = waves()
    model = pursuit.KernelMatchingPursuitRegressor(5, gamma=0.5).fit(X, y)
    Z, a = model.support_vectors_, model.dual_coef_[0]
    K, units = kernels.RBF(0.5)(Z, Z), 1 + 0.25 * np.square(Z - Z.mean(axis=0)).sum(axis=1)
    expected = (K @ (units * np.abs(a))).max() / np.abs(K @ a + model.intercept_).max()
    assert graph.condition(plain(model)) == pytest.approx(expected, rel=1e-5)
    assert graph.condition(plain(make_pipeline(StandardScaler(), model).fit(X, y))) > 1


def test_a_gaussian_is_one_product_and_one_exponential():
    X, y = waves()
    model = make_pipeline(StandardScaler(), pursuit.KernelMatchingPursuitRegressor(6, gamma=0.2))
    converted = to_onnx(model.fit(X, y))
    operators = [node.op_type for node in converted.graph.node]
    assert (operators.count("MatMul"), operators.count("Exp")) == (2, 1)  # the other: K a
    assert operators.count("Unsqueeze") == 0


@pytest.mark.parametrize("name", ["steps", "told"])
def test_missing_numbers_take_the_values_of_the_imputer(name):
    model, X = fitted(name)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X).astype(np.float32)
    found = run(to_onnx(model), X=X)
    assert_equal_answers(found, answers(model, X.astype(np.float64)), 1e-5)


def test_no_rows_and_one_row():
    model, X = fitted("kmp ovr")
    converted = to_onnx(model)
    labels, table = run(converted, X=X[:0].astype(np.float32))
    assert labels.shape == (0,) and table.shape == (0, 4)
    assert run(converted, X=X[:1].astype(np.float32))[1].shape == (1, 4)


def test_zeros_of_cosines_and_chi_squared_distances():
    X = np.abs(waves()[0])
    X[::5], y = 0.0, X.sum(axis=1)
    for kernel, n_vectors in (("cosine", 3), ("chi2", 8)):
        model = pursuit.KernelMatchingPursuitRegressor(n_vectors, kernel=kernel, gamma=0.5)
        model.fit(X, y)
        rows = np.vstack([X, np.zeros((1, 3))]).astype(np.float32)
        found = run(to_onnx(model), X=rows)
        assert_equal_answers(found, answers(model, rows.astype(np.float64)), 1e-5)


@pytest.mark.parametrize("name", ["compress pairs", "compress ties", "compress two", "novelty"])
def test_a_tie_goes_to_the_first_class_and_zero_to_the_rule(name):
    """All outputs are zero."""
    record = plain(fitted(name)[0])
    record = replace(record, parts=(), intercept=np.zeros_like(record.intercept))
    X = np.zeros((2, len(record.features)))
    expected = predictions(record, outputs(record, X))
    assert_array_equal(run(to_onnx(record), X=X.astype(np.float32))[0], expected)
