"""The plain record of every kind of model gives what the model gives."""

from dataclasses import replace

import numpy as np
import pytest
from c_program import holes, inputs
from exported import CASES, blobs, fitted, numbers
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import pursuit as p
from pursuit.export.plain_model import (
    centred,
    class_probabilities,
    decision_values,
    outputs,
    predictions,
)
from pursuit.export.read_model import plain


@pytest.mark.parametrize("name", CASES)
def test_record_equals_estimator(name):
    model, X = fitted(name)
    X = holes(X) if name == "steps" else X
    record = plain(model)
    for one in (record, centred(record)):
        values = outputs(one, inputs(name, model, X))
        if record.task == "transformer":
            assert_allclose(predictions(one, values), model.transform(X), rtol=1e-8, atol=1e-9)
        else:
            expected = model.predict(X)
            if expected.dtype.kind == "f":
                assert_allclose(predictions(one, values), expected, rtol=1e-9, atol=1e-9)
            else:
                assert_array_equal(predictions(one, values), expected)
        if hasattr(model, "decision_function"):
            expected = model.decision_function(X).reshape(len(X), -1)
            assert_allclose(decision_values(one, values), expected, rtol=1e-8, atol=1e-9)
        assert hasattr(model, "predict_proba") == (record.probabilities is not None)
        if record.probabilities:
            assert_allclose(class_probabilities(one, values), model.predict_proba(X), atol=1e-9)
        if hasattr(model, "score_samples"):
            assert_allclose(values[:, 0] + one.offset, model.score_samples(X), atol=1e-9)


def test_centred_vectors_have_the_mean_zero():
    model, X = fitted("moving")
    (part,) = centred(plain(model)).parts
    assert_allclose(part.vectors.mean(axis=0), np.zeros(X.shape[1]), atol=1e-5)
    assert_array_equal(part.shift, part.shift.astype(np.float32))
    assert np.abs(plain(model).parts[0].vectors.mean(axis=0)).min() > 5.0


def test_names_of_features():
    X, y = blobs()
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"name {j}" for j in range(5)])
    model = make_pipeline(StandardScaler(), p.KernelMatchingPursuitClassifier(4)).fit(frame, y)
    assert plain(model).features == tuple(frame.columns)
    assert plain(model[-1]).features == ("x0", "x1", "x2", "x3", "x4")
    columns, _ = fitted("columns")
    names = columns[0].get_feature_names_out()
    told = [name for name in names if "missingindicator" in name]
    assert plain(columns).features == tuple(name for name in names if name not in told)
    assert plain(columns).indicated == (0, 2) and len(told) == 2


def test_missing_numbers_take_the_imputers_value():
    X, y = blobs()
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    steps = StandardScaler(), SimpleImputer(strategy="median"), p.KernelMatchingPursuitRegressor(9)
    model = make_pipeline(*steps).fit(holes, y)
    assert_allclose(predictions(plain(model), outputs(plain(model), holes)), model.predict(holes))


def test_columns_that_are_mixed_first_are_inputs():
    X, y = blobs()
    first = make_pipeline(StandardScaler(), PCA(2), MinMaxScaler())
    columns = make_column_transformer((first, [0, 1, 2]), (SimpleImputer(), [3]), ("drop", [4]))
    model = make_pipeline(columns, p.KernelMatchingPursuitClassifier(5)).fit(X, y)
    fitted_first = columns.named_transformers_["pipeline"]
    given = np.hstack([fitted_first[:2].transform(X[:, :3]), X[:, [3]]])
    record = plain(model)
    assert record.features == ("pipeline__pca0", "pipeline__pca1", "simpleimputer__x3")
    assert_allclose(outputs(record, given), model.decision_function(X), atol=1e-10)


def test_a_search_is_its_best_estimator():
    X, y = numbers()
    search = GridSearchCV(p.KernelMatchingPursuitRegressor(5), {"gamma": [0.1, 1.0]}).fit(X, y)
    assert_allclose(outputs(plain(search), X)[:, 0], search.predict(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (p.HyperplaneKNeighborsClassifier(), "HyperplaneKNeighborsClassifier is no kernel exp"),
        (p.DensityClassifier(), "pursuit.compress"),
        (SVC(), "SVC is no kernel expansion"),
        (p.KernelMatchingPursuitClassifier(2, kernel=lambda X, Z: X @ Z.T), "Laplacian"),
        (make_pipeline(SelectKBest(k=2), p.KernelCentroidClassifier()), "SelectKBest in front"),
        (
            make_pipeline(FunctionTransformer(np.log), p.KernelCentroidClassifier()),
            "FunctionTransformer holds code",
        ),
        (make_pipeline(MinMaxScaler(clip=True), p.KernelCentroidClassifier()), "clip=True"),
        (
            TransformedTargetRegressor(
                p.KernelMatchingPursuitRegressor(2, loss="poisson"), transformer=MinMaxScaler()
            ),
            "the target may be scaled",
        ),
    ],
)
def test_what_is_no_expansion_is_refused_in_one_line(model, message):
    model.fit(*blobs())
    with pytest.raises(ValueError, match=message) as error:
        plain(model)
    assert "\n" not in str(error.value)


def test_ties_and_zeros_go_where_the_model_sends_them():
    two, X = fitted("compress two")
    record = plain(two)
    zero = np.zeros((1, 1))
    assert predictions(record, zero)[0] == two._predicted(zero)[0] == two.classes_[1]
    assert predictions(replace(record, zero_is_positive=False), zero)[0] == two.classes_[0]
    inlier, _ = fitted("novelty")
    outlier, _ = fitted("one class")
    assert [predictions(plain(one), zero)[0] for one in (inlier, outlier)] == [1, -1]
