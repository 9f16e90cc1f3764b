"""What transformers with few centres share, through the greedy Nystroem method.

Sparse kernel PCA, the other one, has tests of its own in test_kernel_pca.py.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info

from pursuit import (
    GreedyNystroem,
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    KernelStatistics,
    SparseKernelPCA,
    load,
    save,
)
from pursuit.kernels import RBF

RULES = ["rayleigh", "residual", "rpcholesky", "random"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


# scikit-learn's Nystroem


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gamma": 0.2},
        {"kernel": "poly", "degree": 2, "coef0": 0.5},
        {"kernel": "polynomial"},
        {"kernel": "laplacian"},
        {"kernel": "chi2"},
        {"kernel": "cosine"},
        {"kernel": "linear"},
    ],
    ids=str,
)
def test_with_its_rows_it_is_nystroem(digits, options):
    X, _ = digits
    theirs = Nystroem(n_components=20, random_state=3, **options).fit(X[:300])
    rows = theirs.component_indices_
    ours = GreedyNystroem(n_components=20, selection=rows, **options).fit(X[:300])
    assert_allclose(ours.transform(X[300:]), theirs.transform(X[300:]), atol=1e-8)
    assert_array_equal(ours.component_indices_, rows)
    assert_allclose(ours.components_, theirs.components_)
    assert_allclose(ours.normalization_, theirs.normalization_, atol=1e-6)


def test_all_of_its_arguments_are_taken_with_the_same_defaults():
    theirs, ours = Nystroem().get_params(), GreedyNystroem().get_params()
    assert {name: ours[name] for name in theirs} == theirs
    assert GreedyNystroem("linear").kernel == "linear"


def test_precomputed_kernel(digits):
    X, _ = digits
    K = RBF(0.05)(X, X)
    by_rows = GreedyNystroem(gamma=0.05, n_components=15).fit(X[:200])
    by_kernel = GreedyNystroem("precomputed", n_components=15).fit(K[:200, :200])
    assert_array_equal(by_kernel.component_indices_, by_rows.component_indices_)
    assert_allclose(by_kernel.transform(K[200:, :200]), by_rows.transform(X[200:]), atol=1e-10)
    assert not hasattr(by_kernel, "components_")
    with pytest.raises(ValueError, match="square"):
        GreedyNystroem("precomputed", n_components=15).fit(K[:200, :100])
    with pytest.raises(ValueError, match="selection='kmeans' needs the rows"):
        GreedyNystroem("precomputed", n_components=5, selection="kmeans").fit(K)


# The features


@pytest.mark.parametrize("selection", [*RULES, "kmeans", "supervised"])
def test_inner_products_are_those_of_the_span(digits, selection):
    X, y = digits
    model = GreedyNystroem(gamma=0.02, n_components=25, selection=selection, random_state=0)
    features = model.fit_transform(X, y)
    kernel, Z = model.kernel_, model.components_
    expected = kernel(X, Z) @ np.linalg.solve(kernel(Z, Z), kernel(Z, X))
    assert_allclose(features @ features.T, expected, atol=1e-8)
    assert features.shape == (400, 25)
    assert_allclose(model.normalization_, model.normalization_.T, atol=1e-8)


@pytest.mark.parametrize("selection", RULES)
def test_the_rows_are_those_of_sparse_kernel_pca(digits, selection):
    X, _ = digits
    options = {"gamma": 0.02, "n_components": 12, "selection": selection, "random_state": 5}
    pca = SparseKernelPCA(**options).fit(X)
    assert_array_equal(GreedyNystroem(**options).fit(X).component_indices_, pca.support_)


def test_supervised_rows_are_those_of_matching_pursuit(digits, diabetes):
    X, y = digits
    labels = np.array(list("zyxwvutsrq"))[y]
    ours = GreedyNystroem(gamma=0.02, n_components=15, selection="supervised").fit(X, labels)
    theirs = KernelMatchingPursuitClassifier(15, gamma=0.02).fit(X, labels)
    assert_array_equal(ours.component_indices_, theirs.support_)
    X, y = diabetes
    targets = np.column_stack([y, X[:, 3]])
    ours = GreedyNystroem(gamma=5.0, n_components=15, selection="supervised", n_candidates=0.5,
                          random_state=1).fit(X, targets)  # fmt: skip
    theirs = KernelMatchingPursuitRegressor(15, gamma=5.0, n_candidates=0.5, random_state=1)
    assert_array_equal(ours.component_indices_, theirs.fit(X, targets).support_)


def test_target_type(diabetes):
    X, y = diabetes
    y = y.round().astype(int) // 100

    def rows(target_type):
        model = GreedyNystroem(n_components=10, selection="supervised", target_type=target_type)
        return model.fit(X, y).component_indices_.tolist()

    assert rows("auto") == rows("class")
    assert (
        rows("continuous")
        == KernelMatchingPursuitRegressor(10, gamma="auto").fit(X, y).support_.tolist()
    )  # noqa: E501
    assert rows("continuous") != rows("class")


def test_targets_explained_by_fewer_rows_leave_the_others_to_the_residual(digits):
    X, _ = digits
    kernel = RBF(0.02)
    y = kernel(X, X[[7, 90]]) @ [1.0, -2.0]
    model = GreedyNystroem(kernel, n_components=12, selection="supervised").fit(X, y)
    assert model.transform(X).shape == (400, 12)
    assert set(model.component_indices_[:4]) >= {7, 90}
    first = [row for row in model.component_indices_ if row in (7, 90)]
    assert len(first) == 2
    # A constant target explains nothing: all rows are chosen by their distance to the span.
    constant = GreedyNystroem(kernel, n_components=12, selection="supervised").fit(X, np.ones(400))
    furthest = GreedyNystroem(kernel, n_components=12, selection="residual").fit(X)
    assert_array_equal(constant.component_indices_, furthest.component_indices_)


def test_good_landmarks_beat_random_ones():
    X, y = load_digits(return_X_y=True)
    scores, left = {}, {}
    for selection in ("random", "supervised", "rayleigh"):
        landmarks = GreedyNystroem(
            gamma="scale", n_components=30, selection=selection, random_state=0
        )
        model = make_pipeline(landmarks, RidgeClassifier(1e-3)).fit(X[:900], y[:900])
        scores[selection] = model.score(X[900:], y[900:])
        features = landmarks.transform(X[900:])
        left[selection] = 1.0 - (features**2).sum(axis=1).mean()
    assert scores["supervised"] > scores["random"] + 0.02
    assert left["rayleigh"] < 0.95 * left["random"]


# Rows


@pytest.mark.parametrize("selection", ["rayleigh", "residual", "supervised"])
def test_weights(digits, selection):
    X, y = digits
    weights = np.ones(400)
    weights[::3], weights[1::3] = 2.0, 0.0
    model = GreedyNystroem(gamma=0.02, n_components=10, selection=selection)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = np.repeat(np.arange(400), weights.astype(int))
    plain = clone(model).fit(X[repeated], y[repeated])
    assert_allclose(weighted.components_, plain.components_)
    assert (weights[weighted.component_indices_] > 0).all()
    assert_allclose(X[weighted.component_indices_], weighted.components_)


@pytest.mark.parametrize("selection", [*RULES, "kmeans", "supervised", [5, 3, 8]], ids=str)
def test_sparse_rows_give_the_same(digits, selection):
    X, y = digits
    model = GreedyNystroem(gamma=0.02, n_components=3, selection=selection, random_state=2)
    dense = clone(model).fit(X, y).transform(X)
    assert_allclose(
        model.fit(sparse.csr_matrix(X), y).transform(sparse.csr_matrix(X)), dense, atol=1e-8
    )  # noqa: E501
    assert_allclose(model.transform(X), dense, atol=1e-8)


@pytest.mark.parametrize("selection", ["rayleigh", "residual", "supervised"])
def test_block_size_changes_nothing(digits, selection):
    X, y = digits
    model = GreedyNystroem(gamma=0.02, n_components=10, selection=selection)
    if selection == "rayleigh":
        model.set_params(n_candidates=400)
    whole = model.fit(X, y).transform(X)
    with config_context(working_memory=0.05):
        assert_allclose(clone(model).fit(X, y).transform(X), whole, atol=1e-9)


def test_float32_rows_keep_float64_features(digits):
    X, _ = digits
    model = GreedyNystroem(gamma=0.02, n_components=10).fit(X.astype(np.float32))
    features = model.transform(X.astype(np.float32))
    assert features.dtype == model.components_.dtype == np.float64
    assert_allclose(
        features, GreedyNystroem(gamma=0.02, n_components=10).fit(X).transform(X), atol=1e-5
    )  # noqa: E501


def test_names_and_data_frames(diabetes):
    frame = load_diabetes(as_frame=True).data
    model = GreedyNystroem(n_components=3, selection="residual").set_output(transform="pandas")
    features = model.fit_transform(frame)
    assert isinstance(features, pd.DataFrame)
    assert list(features) == ["greedynystroem0", "greedynystroem1", "greedynystroem2"]


def test_threads(digits, monkeypatch):
    X, _ = digits
    seen = []
    evaluate = RBF.evaluate

    def watched(self, X, centres):
        pools = threadpool_info()
        seen.append({pool["num_threads"] for pool in pools if pool["user_api"] == "blas"})
        return evaluate(self, X, centres)

    monkeypatch.setattr(RBF, "evaluate", watched)
    one = GreedyNystroem(n_components=5, n_jobs=1).fit(X)
    features = one.transform(X)
    assert seen
    assert set().union(*seen) == {1}
    assert_allclose(features, GreedyNystroem(n_components=5).fit_transform(X), atol=1e-10)


# Edges and errors


def test_fewer_independent_rows_than_asked_for():
    X = np.repeat(np.eye(3), 4, axis=0)
    for selection in (*RULES, "kmeans", "supervised", np.arange(12)):
        with pytest.warns(ConvergenceWarning, match="n_components=7, but 3 centres were chosen"):
            model = GreedyNystroem(n_components=7, selection=selection, random_state=0).fit(
                X, np.arange(12.0) % 5
            )
        assert_allclose(model.transform(X) @ model.transform(X).T, model.kernel_(X, X), atol=1e-8)


def test_listed_rows_that_are_spanned_are_left_out(digits):
    X, _ = digits
    twice = np.vstack([X, X])
    with pytest.warns(ConvergenceWarning):
        model = GreedyNystroem(n_components=4, selection=[5, 405, 2, 402]).fit(twice)
    assert model.component_indices_.tolist() == [5, 2]


def test_more_listed_rows_than_components(digits):
    X, _ = digits
    model = GreedyNystroem(n_components=2, selection=[5, 9, 2]).fit(X)
    assert model.component_indices_.tolist() == [5, 9]


def test_no_warning_where_all_is_well(digits):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for selection in (*RULES, "kmeans", "supervised"):
            GreedyNystroem(n_components=5, selection=selection).fit(*digits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selection": "best"}, "selection must be one of .*'supervised'.*got 'best'"),
        ({"selection": [0.5]}, "selection must be one of .* or list as integers"),
        ({"selection": [0, 400]}, "from 0 to 399"),
        ({"selection": [[0, 1]]}, "selection must be one of"),
        ({"selection": "residual", "n_candidates": 5}, "n_candidates has no meaning for selection"),
        ({"selection": [1, 2], "n_candidates": 5}, "n_candidates has no meaning for selection"),
        ({"n_candidates": 0}, "n_candidates must be an integer of at least 1"),
        ({"selection": "supervised", "n_candidates": 1.5}, "n_candidates must be None"),
        ({"selection": "supervised", "target_type": "binary"}, "target_type must be one of"),
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"n_jobs": 0.5}, "n_jobs must be an integer"),
        ({"kernel": "additive_chi2"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be"),
    ],
    ids=str,
)
def test_errors_name_the_parameter(digits, options, message):
    with pytest.raises(ValueError, match=message):
        GreedyNystroem(**options).fit(*digits)


def test_supervised_selection_without_targets(digits):
    with pytest.raises(ValueError, match="requires y"):
        GreedyNystroem(selection="supervised").fit(digits[0])


def test_rows_of_weight_zero_cannot_be_listed(digits):
    weights = np.ones(400)
    weights[3] = 0
    with pytest.raises(ValueError, match="rows of positive weight"):
        GreedyNystroem(selection=[2, 3]).fit(digits[0], sample_weight=weights)


# In use


def test_the_number_and_the_rule_can_be_searched(digits):
    model = make_pipeline(GreedyNystroem(gamma="scale"), RidgeClassifier(1e-3))
    grid = {
        "greedynystroem__selection": ["random", "supervised"],
        "greedynystroem__n_components": [5, 20],
    }  # noqa: E501
    search = GridSearchCV(model, grid, cv=2).fit(*digits)
    assert search.best_params_["greedynystroem__n_components"] == 20


@pytest.mark.parametrize("selection", ["rayleigh", "kmeans"])
def test_saved_models_give_the_same_features(digits, tmp_path, selection):
    X, _ = digits
    model = GreedyNystroem(n_components=10, selection=selection, random_state=0).fit(X)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert_array_equal(again.transform(X), model.transform(X))
    assert (tmp_path / "m").stat().st_size < 40_000


def test_listed_rows_keep_their_numbers_beside_rows_of_weight_zero(digits):
    X, _ = digits
    weights = np.where(np.arange(400) % 2 == 0, 0.0, 1.0)
    model = GreedyNystroem(n_components=3, selection=[7, 1, 301]).fit(X, sample_weight=weights)
    assert model.component_indices_.tolist() == [7, 1, 301]
    assert_array_equal(model.components_, X[[7, 1, 301]])


def test_cluster_centres_are_means_of_the_weighted_rows(digits):
    X, _ = digits
    weights = np.arange(400.0)
    model = GreedyNystroem(n_components=1, selection="kmeans").fit(X, sample_weight=weights)
    assert_allclose(model.components_[0], np.average(X, axis=0, weights=weights), atol=1e-12)


@pytest.mark.parametrize("selection", ["rayleigh", "supervised"])
def test_an_indefinite_kernel_is_an_error(selection):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    model = GreedyNystroem("sigmoid", gamma=4.0, coef0=0.0, n_components=6, selection=selection)
    with pytest.raises(ValueError, match=r"kernel: Sigmoid.*not positive semidefinite.* -\d"):
        model.fit(X, y)


def test_landmarks_from_sums_are_those_from_the_rows(rng):
    X = rng.standard_normal((120, 3))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    options = {"gamma": 0.3, "n_components": 8, "selection": "supervised"}
    rows = GreedyNystroem(**options).fit(X, y)
    total = KernelStatistics(X, gamma=0.3).update(X[:50], y[:50]).update(X[50:], y[50:])
    sums = GreedyNystroem(**options).fit_statistics(total)
    assert_array_equal(sums.components_, rows.components_)
    assert_allclose(sums.transform(X), rows.transform(X), atol=1e-9)
    assert not hasattr(sums, "support_")
    for changed, message in (
        ({"selection": "rayleigh"}, "selection='supervised' alone"),
        ({"n_candidates": 5}, "n_candidates has no meaning"),
    ):
        with pytest.raises(ValueError, match=message):
            GreedyNystroem(**options | changed).fit_statistics(total)
