"""Fits on blocks equal fits on all rows in one place, whatever the blocks."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy import sparse
from sklearn.base import clone

from pursuit import (
    GreedyNystroem,
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
    KernelStatistics,
    RelevanceVectorRegressor,
    SparseKernelPCA,
)

dask = pytest.importorskip("dask", reason="needs the dask extra")
pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

import pursuit.distributed  # noqa: E402, F401  estimators take collections

P = awkward(90)
BLOCKS = [90, 40, 13]
EVEN = np.arange(90) % 2 == 0


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="sync"):
        yield


def arrays(size, *tables):
    return tuple(da.from_array(table, chunks=(size, *table.shape[1:])) for table in tables)


def assert_same_model(found, expected):
    assert_array_equal(found.support_, expected.support_)
    assert_allclose(found.support_vectors_, expected.support_vectors_, rtol=1e-12)
    assert_allclose(found.dual_coef_, expected.dual_coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(found.intercept_, expected.intercept_, rtol=1e-6)
    assert found.kernel_.gamma == pytest.approx(expected.kernel_.gamma, rel=1e-10)
    assert type(found.dual_coef_) is type(found.support_) is np.ndarray


@pytest.mark.parametrize("size", BLOCKS)
@pytest.mark.parametrize("class_weight", [None, "balanced", {"ant": 3.0}])
def test_classes(size, class_weight):
    model = KernelMatchingPursuitClassifier(6, class_weight=class_weight)
    found = clone(model).fit(*arrays(size, P.X, P.labels, P.weights))
    expected = model.fit(P.X, P.labels, P.weights)
    assert_same_model(found, expected)
    assert_array_equal(found.classes_, expected.classes_)
    assert_allclose(found.predict_proba(P.X), expected.predict_proba(P.X), atol=1e-6)
    assert_array_equal(pickle.loads(pickle.dumps(found)).predict(P.X), expected.predict(P.X))


@pytest.mark.parametrize("size", BLOCKS)
@pytest.mark.parametrize("Y", [P.Y, P.Y[:, 0]], ids=["two", "one"])
def test_numbers(size, Y):
    model = KernelMatchingPursuitRegressor(6, fitting="backfit", alpha=0.1)
    found = clone(model).fit(*arrays(size, P.X, Y, P.weights))
    expected = model.fit(P.X, Y, P.weights)
    assert_same_model(found, expected)
    assert_allclose(found.predict(P.X), expected.predict(P.X), rtol=1e-7)
    assert_allclose(found.error_quantiles_, expected.error_quantiles_, rtol=1e-6)


def test_rows_are_drawn_by_their_numbers_and_the_seed():
    def vectors(seed, order, size):
        model = KernelMatchingPursuitRegressor(6, n_candidates=20, random_state=seed)
        return model.fit(*arrays(size, P.X[order], P.Y[order])).support_vectors_

    rows = np.arange(90)
    first = vectors(0, rows, 90)
    same = KernelMatchingPursuitRegressor(6, n_candidates=20).fit(P.X, P.Y)
    assert_array_equal(vectors(None, rows, 20), same.support_vectors_)
    assert_array_equal(vectors(0, rows, 11), first)
    assert_array_equal(vectors(0, rows[::-1], 32), first)
    assert (vectors(1, rows, 90) != first).any()


def test_of_equal_rows_one_is_drawn():
    X = np.repeat(np.arange(12.0)[:, None], 5, axis=0)
    model = KernelMatchingPursuitRegressor(8, gamma=5.0).fit(*arrays(7, X, X[:, 0] % 5))
    assert_array_equal(model.support_ % 5, np.zeros(8))


def test_frames_with_names_and_empty_blocks():
    frame = pd.DataFrame(P.X, columns=list("abcd"))
    y = pd.Series(P.Y[:, 0])
    lazy = dd.from_pandas(frame.assign(y=y, row=range(90)), npartitions=4)
    lazy = lazy[lazy["row"] >= 30]  # the first block loses all its rows
    found = KernelMatchingPursuitRegressor(6).fit(lazy[list("abcd")], lazy["y"])
    expected = KernelMatchingPursuitRegressor(6).fit(frame[30:], y[30:])
    assert_same_model(found, expected)
    assert_array_equal(found.feature_names_in_, list("abcd"))
    values = found.predict(lazy[list("abcd")])
    assert values.numblocks == (4,)
    assert_allclose(values.compute(), expected.predict(frame[30:]), rtol=1e-8)


def test_blocks_that_are_sparse():
    X = np.where(P.X > 1, P.X, 0.0)
    lazy = arrays(40, X)[0].map_blocks(sparse.csr_matrix)
    found = KernelMatchingPursuitRegressor(6).fit(lazy, *arrays(40, P.Y))
    expected = KernelMatchingPursuitRegressor(6).fit(sparse.csr_matrix(X), P.Y)
    assert_array_equal(found.support_, expected.support_)
    assert_allclose(found.predict(lazy).compute(), expected.predict(X), rtol=1e-7)


@pytest.mark.parametrize("classes", [None, np.unique(P.labels)])
def test_statistics(classes):
    y = P.Y if classes is None else P.labels
    model = KernelStatistics(P.X[:9], classes, gamma=0.3)
    found = clone(model).update(P.X[:5], y[:5]).update(*arrays(20, P.X[5:], y[5:]))
    expected = model.update(P.X, y)
    assert found.n_samples_ == expected.n_samples_
    left, right = found.equations(alpha=0.1), expected.equations(alpha=0.1)
    assert_allclose(left.gram.gram, right.gram.gram, rtol=1e-10, atol=1e-10)
    assert_allclose(left.cross, right.cross, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", BLOCKS)
@pytest.mark.parametrize("center", [False, True])
def test_kernel_pca(size, center):
    model = SparseKernelPCA(7, gamma=0.2, center=center)
    found = clone(model).fit(*arrays(size, P.X), sample_weight=arrays(size, P.weights)[0])
    expected = model.fit(P.X, sample_weight=P.weights)
    assert_array_equal(found.support_, expected.support_)
    for name in ("residual_path_", "bound_path_", "explained_variance_"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-10)
    assert_allclose(found.transform(P.X), expected.transform(P.X), atol=1e-7)


@pytest.mark.parametrize("selection", ["residual", "rpcholesky", "random"])
def test_other_rules_choose_among_the_rows_drawn(selection):
    found = SparseKernelPCA(5, gamma=0.2, selection=selection, random_state=0)
    found.fit(*arrays(40, P.X))
    expected = SparseKernelPCA(5, gamma=0.2, selection=found.support_).fit(P.X)
    assert_allclose(found.residual_path_, expected.residual_path_, rtol=1e-8)
    assert_allclose(found.transform(P.X), expected.transform(P.X), atol=1e-8)


def test_nystroem():
    model = GreedyNystroem(n_components=7, gamma="scale")
    found, expected = clone(model).fit(*arrays(40, P.X)), model.fit(P.X)
    assert_array_equal(found.component_indices_, expected.component_indices_)
    assert_allclose(found.transform(P.X), expected.transform(P.X), atol=1e-8)


@pytest.mark.parametrize("y, kind", [(P.labels, "class"), (P.Y, "continuous")])
def test_nystroem_with_targets(y, kind):
    model = GreedyNystroem(n_components=7, gamma=0.2, selection="supervised", target_type=kind)
    found, expected = clone(model).fit(*arrays(40, P.X, y)), model.fit(P.X, y)
    assert_array_equal(found.components_, expected.components_)
    assert_allclose(found.transform(P.X), expected.transform(P.X), atol=1e-8)


def test_partial_fit_goes_from_block_to_block():
    """As dask-ml's Incremental does."""
    X, y = arrays(30, P.X, P.labels)
    model = KernelMatchingPursuitClassifier(5, n_candidates=20, gamma=0.2)

    def learned(model, block, labels):
        return copy.deepcopy(model).partial_fit(block, labels, classes=np.unique(P.labels))

    step, found = dask.delayed(learned), clone(model)
    for block, labels in zip(X.to_delayed().ravel(), y.to_delayed(), strict=True):
        found = step(found, block, labels)
    for start in range(0, 90, 30):
        model = learned(model, P.X[start : start + 30], P.labels[start : start + 30])
    assert_same_model(found.compute(), model)


REFUSED = [
    (KernelMatchingPursuitClassifier(loss="log_loss"), "squared_error"),
    (KernelMatchingPursuitClassifier(early_stopping=True), "early_stopping"),
    (KernelMatchingPursuitClassifier(n_candidates=0.5), "n_candidates"),
    (KernelMatchingPursuitClassifier(kernel="precomputed"), "precomputed"),
    (KernelMatchingPursuitClassifier(kernel={0: "rbf", 1: "rbf"}), "each class"),
    (KernelMatchingPursuitClassifier(class_weight={True: 0.0}), "class_weight"),
    (KernelMatchingPursuitRegressorCV(), "in memory"),
    (RelevanceVectorRegressor(), "RelevanceVectorRegressor needs its rows in memory"),
    (SparseKernelPCA("bound"), "n_components"),
    (SparseKernelPCA(selection=[0, 1]), "selection"),
    (SparseKernelPCA(fit_inverse_transform=True), "fit_inverse_transform"),
    (GreedyNystroem(selection="kmeans"), "selection"),
    (GreedyNystroem(selection="supervised"), "target_type"),
]


@pytest.mark.parametrize("model, match", REFUSED, ids=str)
def test_what_blocks_cannot_tell_is_refused(model, match):
    with pytest.raises(ValueError, match=match):
        model.fit(*arrays(40, P.X, EVEN))


def test_bad_rows_are_named():
    (X, y), model = arrays(40, P.X, P.Y[:, 0]), KernelMatchingPursuitRegressor(3)
    with pytest.raises(ValueError, match="y must be a dask collection"):
        model.fit(X, P.Y)
    with pytest.raises(ValueError, match="y has 80 rows, but X has 90"):
        model.fit(X, y[:80])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, da.where(y > 7, np.nan, y))
    with pytest.raises(ValueError, match="no row of positive weight"):
        model.fit(X, y, da.zeros(90, chunks=40))
    with pytest.raises(ValueError, match="y has 3 blocks, but X has 2"):
        model.fit(dd.from_pandas(pd.DataFrame(P.X), npartitions=2), y)
    with pytest.raises(ValueError, match="y is a dask collection"):
        model.fit(P.X, y)
    with pytest.raises(ValueError, match="one class"):
        KernelMatchingPursuitClassifier().fit(X, da.ones(90, chunks=40))
