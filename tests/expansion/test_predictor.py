"""Frozen predictors: the values of the checked methods, for one row and for several."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.datasets import load_iris
from sklearn.svm import SVC, SVR, OneClassSVM

import pursuit
from pursuit import kernels
from pursuit.expansion.predictor import Novelty, Predictor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_iris(return_X_y=True)
CODES = np.array(["b", "c", "a"])[Y]
NUMBERS = X[:, 3] + 0.1 * Y
ROWS = X[::30] + 0.01
MOVED = {"max_iter": 3, "random_state": 0}


MODELS = {
    "kmp": lambda: pursuit.KernelMatchingPursuitClassifier(10).fit(X, CODES),
    "kmp, two classes": lambda: pursuit.KernelMatchingPursuitClassifier(10).fit(X, Y == 1),
    "kmp, ovr": lambda: pursuit.KernelMatchingPursuitClassifier(12, multi_class="ovr").fit(
        X, CODES
    ),
    "kmp, laplacian": lambda: pursuit.KernelMatchingPursuitClassifier(9, kernel="laplacian").fit(
        X, Y
    ),
    "kmp, poly": lambda: pursuit.KernelMatchingPursuitRegressor(9, kernel="poly").fit(X, NUMBERS),
    "kmp, one vector": lambda: pursuit.KernelMatchingPursuitRegressor(1).fit(X, NUMBERS),
    "kmp, poisson": lambda: pursuit.KernelMatchingPursuitRegressor(5, loss="poisson").fit(X, Y),
    "kmp, two targets": lambda: pursuit.KernelMatchingPursuitRegressor(9).fit(X, X[:, :2]),
    "kmp, widths": lambda: pursuit.KernelMatchingPursuitRegressor(
        9, dictionary=[kernels.RBF(0.1), kernels.RBF(2.0)]
    ).fit(X, NUMBERS),
    "kmp, oriented": lambda: pursuit.KernelMatchingPursuitRegressor(
        9, dictionary=pursuit.OrientedGaussians(n_neighbors=10, noise_variance=0.1)
    ).fit(X, NUMBERS),
    "kmp, precomputed": lambda: pursuit.KernelMatchingPursuitRegressor(9, kernel="precomputed").fit(
        kernels.RBF(0.3)(X, X), NUMBERS
    ),
    "kmp, CSR": lambda: pursuit.KernelMatchingPursuitRegressor(9).fit(
        sparse.csr_matrix(X), NUMBERS
    ),
    "kmp, a gamma a feature": lambda: pursuit.KernelMatchingPursuitRegressor(
        9, gamma=[0.1, 0.5, 0.2, 1.0]
    ).fit(X, NUMBERS),
    "mahalanobis": lambda: pursuit.KernelMatchingPursuitRegressor(
        9, kernel=kernels.Mahalanobis(np.diag([0.1, 0.5, 0.2, 1.0]))
    ).fit(X, NUMBERS),
    "online": lambda: pursuit.OnlineKernelRegressor(9).fit(X, NUMBERS),
    "online, classes": lambda: pursuit.OnlineKernelClassifier(9).fit(X, CODES),
    "moved": lambda: pursuit.SparseKernelClassifier(5, **MOVED).fit(X, CODES),
    "moved, diagonal": lambda: pursuit.SparseKernelClassifier(5, metric="diagonal", **MOVED).fit(
        X, Y
    ),
    "moved, full": lambda: pursuit.SparseKernelRegressor(5, metric="full", **MOVED).fit(X, NUMBERS),
    "moved, rank 2": lambda: pursuit.SparseKernelRegressor(5, metric=2, **MOVED).fit(X, X[:, :2]),
    "moved, poisson": lambda: pursuit.SparseKernelRegressor(5, loss="poisson", **MOVED).fit(X, Y),
    "one class": lambda: pursuit.SparseOneClass(5, random_state=0).fit(X),
    "large margin": lambda: pursuit.SparseLargeMarginClassifier(6, **MOVED).fit(X, CODES),
    "rsvm": lambda: pursuit.ReducedSupportVectorClassifier(6, random_state=0).fit(X, CODES),
    "rvm": lambda: pursuit.RelevanceVectorRegressor(gamma=0.3).fit(X, NUMBERS),
    "rvc": lambda: pursuit.RelevanceVectorClassifier(gamma=0.3).fit(X, Y == 1),
    "centroid": lambda: pursuit.KernelCentroidClassifier().fit(X, CODES),
    "convex": lambda: pursuit.ConvexNetworkClassifier(
        n_components=9, selection="random", random_state=0
    ).fit(X, CODES),
    "compressed": lambda: pursuit.compress(SVC(gamma=0.3).fit(X, CODES), 6),
    "compressed, pairs": lambda: pursuit.compress(
        SVC(gamma=0.3, decision_function_shape="ovo").fit(X, CODES), 6
    ),
    "compressed, svr": lambda: pursuit.compress(SVR(gamma=0.3).fit(X, NUMBERS), 6),
    "compressed, one class": lambda: pursuit.compress(OneClassSVM(gamma=0.3).fit(X), 6),
}


@cache
def fitted(name):
    """A model of this kind."""
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_a_predictor_gives_what_the_model_gives(name):
    model = fitted(name)
    rows = kernels.RBF(0.3)(ROWS, X) if name == "kmp, precomputed" else ROWS
    given = rows[:3]  # also on both sides of the threshold of an outlier detector
    if "one class" in name:
        given = np.vstack([given[:2], [[20.0, 0.0, 9.0, -9.0]]])
    predictor = model.predictor()
    labels = model.predict(given)
    # A regressor's outputs stand before the link of its loss.
    values = np.log(labels) if "poisson" in name else labels
    if hasattr(model, "decision_function"):
        values = model.decision_function(given)
    for i, row in enumerate(given):
        assert_allclose(predictor.decision(row), values[i], rtol=1e-12, atol=1e-300)
        assert np.shape(predictor.decision(row)) == values.shape[1:]
        assert_allclose(predictor.decision(row[None]), values[i : i + 1], rtol=1e-12, atol=1e-300)
        if is_regressor(model):
            assert_allclose(predictor.predict(row), labels[i], rtol=1e-12)
        else:
            assert predictor.predict(row) == labels[i]
    assert_allclose(predictor.decision(given), values, rtol=1e-12, atol=1e-300)
    again = pickle.loads(pickle.dumps(predictor))
    assert_array_equal(again.decision(given[0]), predictor.decision(given[0]))


def test_every_model_with_an_expansion_has_a_predictor():
    kinds = {type(fitted(name)) for name in MODELS}
    for name in pursuit.__all__:
        kind = getattr(pursuit, name)
        if hasattr(kind, "predictor") and not name.endswith("CV"):
            assert kind in kinds or name in ("ReducedSetClassifier",), name
    assert "predictor" in dir(pursuit.KernelMatchingPursuitClassifierCV)


def test_a_row_that_is_a_vector_and_a_row_far_away():
    model = pursuit.KernelMatchingPursuitClassifier(10, gamma=1e4).fit(X, Y)
    predictor = model.predictor()
    vector = model.support_vectors_[3]
    far = np.array([1e200, 0.0, 0.0, 0.0])
    for row in (vector, vector + 1e-9, far, X[0] + 1e6):
        values = predictor.decision(row)
        assert_allclose(values, model.decision_function(row[None])[0], rtol=1e-12)
    assert_array_equal(predictor.decision(far), model.intercept_)


def test_a_row_where_all_kernels_have_vanished():
    model = pursuit.KernelMatchingPursuitRegressor(5, gamma=1.0, fit_intercept=False)
    predictor = model.fit(X, NUMBERS).predictor()
    for distance, vanished in ((5.0, False), (15.0, True)):  # exp(-15^2) is a number still
        row = X.max(axis=0) + np.array([distance, 0.0, 0.0, 0.0])
        assert_allclose(predictor.decision(row), model.predict(row[None])[0], rtol=1e-12)
        assert (predictor.decision(row) == 0.0) == vanished


def test_clusters_far_from_each_other_lose_no_digits():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(20, 3)), 1e7 + rng.normal(size=(20, 3))])
    model = pursuit.KernelMatchingPursuitRegressor(12, gamma=0.5).fit(rows, rows[:, 0] % 3)
    predictor = model.predictor()
    for row in rows + 0.125:
        assert_allclose(predictor.decision(row), model.predict(row[None])[0], rtol=1e-12)


def test_single_precision_whole_numbers_and_lists():
    model = fitted("kmp")
    predictor = model.predictor()
    row = [5, 3, 1, 0]
    expected = model.decision_function([row])[0]
    assert_allclose(predictor.decision(row), expected, rtol=1e-12)
    single = pursuit.KernelMatchingPursuitClassifier(10).fit(X.astype(np.float32), CODES)
    assert_allclose(
        single.predictor().decision(np.float32(ROWS[1])),
        single.decision_function(ROWS[1:2].astype(np.float32))[0],
        rtol=1e-4,
        atol=1e-5,
    )


def test_threads_share_it_and_a_later_fit_does_not_change_it():
    model = pursuit.KernelMatchingPursuitRegressor(10).fit(X, NUMBERS)
    predictor, expected = model.predictor(), model.predict(X)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(predictor.predict, X))
    assert_allclose(found, expected, rtol=1e-12)
    model.fit(X, -NUMBERS)
    assert_allclose(predictor.predict(X[0]), expected[0], rtol=1e-12)


def test_no_rows_wrong_shapes_and_no_model():
    predictor = fitted("kmp").predictor()
    assert isinstance(predictor, Predictor)
    assert predictor.decision(np.empty((0, 4))).shape == (0, 3)
    for wrong in (X[0, :3], X[:2, :3], X[None], 1.0):
        with pytest.raises(ValueError, match=r"x has shape .*, expected \(4,\) or \(n_rows, 4\)"):
            predictor.predict(wrong)
    with pytest.raises(ValueError, match="not fitted"):
        pursuit.KernelMatchingPursuitClassifier().predictor()


def test_the_threshold_itself_is_inside_or_not():
    outputs = np.array([[1.0], [2.0], [3.0]])
    assert_array_equal(Novelty(2.0).prediction(outputs), [-1, 1, 1])
    assert_array_equal(Novelty(2.0, inside=False).prediction(outputs), [-1, -1, 1])


def test_a_loaded_model_has_one_too(tmp_path):
    pursuit.save(fitted("moved, diagonal"), tmp_path / "model")
    loaded = pursuit.load(tmp_path / "model")
    assert_allclose(
        loaded.predictor().decision(X[7]), fitted("moved, diagonal").decision_function(X[7:8])[0]
    )
