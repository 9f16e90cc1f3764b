"""Results row by row: dask arrays in the blocks of X, equal to those of the rows in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from pursuit import (
    DensityClassifier,
    HyperplaneKNeighborsClassifier,
    HyperplaneKNeighborsRegressor,
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    ManifoldParzenDensity,
    ParzenDensity,
    RelevanceVectorRegressor,
    SparseKernelPCA,
)

dask = pytest.importorskip("dask", reason="needs the dask extra")
pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

import pursuit.distributed  # noqa: E402, F401  estimators take collections

P = awkward(60)
X = da.from_array(P.X, chunks=((25, 25, 10), (3, 1)))

CASES = [
    (KernelMatchingPursuitClassifier(5), ("predict", "predict_proba", "predict_log_proba")),
    (KernelMatchingPursuitClassifier(5), ("decision_function",)),
    (KernelMatchingPursuitRegressor(5), ("predict",)),
    (RelevanceVectorRegressor(5), ("predict",)),
    (HyperplaneKNeighborsClassifier(4), ("predict", "decision_function", "predict_proba")),
    (HyperplaneKNeighborsRegressor(4), ("predict",)),
    (ParzenDensity(0.5), ("score_samples",)),
    (ParzenDensity(1.5, kernel="triweight"), ("score_samples",)),
    (ManifoldParzenDensity(5), ("score_samples",)),
    (DensityClassifier(ParzenDensity(0.5)), ("predict", "predict_joint_log_proba")),
    (SparseKernelPCA(4), ("transform", "residual")),
]


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.mark.parametrize("model, methods", CASES, ids=str)
def test_blocks_of_rows(model, methods):
    y = P.labels if "Classifier" in type(model).__name__ else P.Y[:, 0]
    model.fit(P.X, y)
    for method in methods:
        expected = getattr(model, method)(P.X)
        found = getattr(model, method)(X)
        assert isinstance(found, da.Array)
        assert found.chunks[0] == X.chunks[0]
        assert found.shape == expected.shape and found.dtype == expected.dtype
        values = found.compute()
        if values.dtype.kind == "f":
            assert_allclose(values, expected, rtol=1e-10, atol=1e-12)
        else:
            assert_array_equal(values, expected)


def test_the_last_step_of_a_pipeline():
    model = make_pipeline(PCA(2), KernelMatchingPursuitClassifier(5)).fit(P.X, P.labels)
    found = X.rechunk((20, 4)).map_blocks(model.predict, drop_axis=1, dtype=P.labels.dtype)
    assert_array_equal(found.compute(), model.predict(P.X))


@pytest.mark.parametrize("weights", [None, P.weights])
def test_scores(weights):
    lazy = None if weights is None else da.from_array(weights, chunks=20)
    for model, y in (
        (KernelMatchingPursuitClassifier(5), P.labels),
        (KernelMatchingPursuitRegressor(5), P.Y),
        (KernelMatchingPursuitRegressor(5), P.Y[:, 1]),
    ):
        model.fit(P.X, y)
        found = model.score(X, da.from_array(y, chunks=20), sample_weight=lazy)
        assert found == pytest.approx(model.score(P.X, y, sample_weight=weights), rel=1e-12)
    density = ParzenDensity(0.5).fit(P.X)
    expected = density.score(P.X, sample_weight=weights)
    assert density.score(X, sample_weight=lazy) == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore:R\\^2")
def test_the_score_of_a_constant_target_is_that_of_scikit_learn():
    model = KernelMatchingPursuitRegressor(5).fit(P.X, P.Y[:, 0])
    y = np.full(60, 3.0)
    assert model.score(X, da.from_array(y, chunks=20)) == model.score(P.X, y)


def test_results_that_are_no_array_are_refused():
    model = RelevanceVectorRegressor(5).fit(P.X, P.Y[:, 0])
    with pytest.raises(ValueError, match="predict gives tuple"):
        model.predict(X, return_std=True)


def test_names_of_features_are_checked():
    frame = pd.DataFrame(P.X, columns=list("abcd"))
    model = KernelMatchingPursuitRegressor(5).fit(frame, P.Y)
    lazy = dd.from_pandas(frame.rename(columns={"a": "z"}), npartitions=2)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(lazy)


def test_without_the_import_the_error_says_what_to_import(monkeypatch):
    monkeypatch.setattr("pursuit.base.collections.WAYS", {})
    with pytest.raises(ValueError, match="import pursuit.distributed"):
        ParzenDensity().fit(X)
