"""Compressed machines predict as the originals do, with fewer vectors."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from pursuit import (
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    compress,
    load,
    save,
)
from pursuit.optimize.svm_on_vectors import solve_on_vectors
from pursuit.svm.from_sklearn import read_kernel_model

ALL = 10_000


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:300] / 16, y[:300], X[300:600] / 16, y[300:600]


@pytest.fixture(scope="module")
def svc(digits):
    return SVC(C=10).fit(*digits[:2])


@pytest.fixture
def curve(rng):
    X = rng.uniform(-3, 3, size=(120, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 20


def machines(curve, n_targets):
    X, y = curve
    if n_targets == 2:
        y = np.column_stack([y, 1e4 * np.cos(X[:, 1])])
        return [
            KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1).fit(X, y),
            GaussianProcessRegressor(
                ConstantKernel(2.0) * RBF(1.0), alpha=0.1, optimizer=None, normalize_y=True
            ).fit(X, y),
        ]
    return [
        SVR(C=5.0).fit(X, y),
        NuSVR(C=5.0, kernel="poly", coef0=1.0).fit(X, y),
        KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1).fit(X, y),
        GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, y),
    ]


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_with_all_vectors_a_classifier_is_the_original(shape, break_ties, digits):
    X, y, fresh, _ = digits
    kept = {"decision_function_shape": shape, "break_ties": break_ties}
    for original in (SVC(C=1.0, **kept), NuSVC(nu=0.2, **kept), SVC(kernel="poly", **kept)):
        original.fit(X, y)
        predicts = shape == "ovr" or not break_ties
        small = compress(original, ALL, fresh if predicts else None)
        assert isinstance(small, CompressedClassifier)
        assert (small.relative_error_, small.stop_reason_) == (0.0, "exact")
        assert_allclose(
            small.decision_function(fresh), original.decision_function(fresh), atol=1e-8
        )
        if predicts:
            assert_array_equal(small.predict(fresh), original.predict(fresh))
            assert small.prediction_change_ == 0.0


def test_break_ties_needs_one_value_a_class(digits):
    original = SVC(decision_function_shape="ovo", break_ties=True).fit(*digits[:2])
    small = compress(original, 20)
    for model in (original, small):
        with pytest.raises(ValueError, match="break_ties must be False"):
            model.predict(digits[2])


@pytest.mark.parametrize("labels", [[False, True], ["yes", "no"], [3, -1]])
def test_two_classes(labels, digits):
    X, y, fresh, _ = digits
    original = SVC().fit(X, np.array(labels)[(y > 2).astype(int)])
    small = compress(original, ALL)
    assert_array_equal(small.classes_, original.classes_)
    assert_array_equal(small.predict(fresh), original.predict(fresh))
    assert_allclose(small.decision_function(fresh), original.decision_function(fresh), atol=1e-8)
    assert small.decision_function(fresh).shape == (300,)


def test_a_value_of_zero_is_the_second_class():
    original = SVC(kernel="linear", C=100.0).fit([[-1.0], [1.0]], ["a", "b"])
    small = compress(original, 2)
    small.expansion_ = type(small.expansion_)(small.expansion_.atoms, small.dual_coef_, np.zeros(1))
    assert_array_equal(small.predict([[0.0]]), ["b"])
    assert_array_equal(original.predict([[0.0]]), ["b"])


@pytest.mark.parametrize("n_targets", [1, 2])
def test_with_all_vectors_a_regressor_is_the_original(n_targets, curve):
    for original in machines(curve, n_targets):
        small = compress(original, ALL, curve[0])
        assert isinstance(small, CompressedRegressor)
        expected = original.predict(curve[0])
        assert small.predict(curve[0]).shape == expected.shape
        assert_allclose(small.predict(curve[0]), expected, rtol=1e-7)
        assert_allclose(small.prediction_change_, 0.0, atol=1e-6)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_few_vectors_do_for_a_smooth_regression(n_targets, curve):
    X, y = curve
    for original in machines(curve, n_targets):
        expected = original.predict(X)
        small = compress(original, 30, X, expected)
        assert small.n_components_ <= 30
        change = np.sqrt(np.mean((small.predict(X) - expected) ** 2))
        assert_allclose(small.prediction_change_, change, atol=1e-12)
        residual = np.sqrt(np.mean((small.predict(X) - expected) ** 2, axis=0))
        assert (residual < 0.1 * expected.std(axis=0)).all()
        assert_allclose(small.scores_, (1.0, small.score(X, expected)))


def test_a_ridge_regression_keeps_the_shape_of_its_targets(curve):
    X, y = curve
    column = KernelRidge(kernel="rbf").fit(X, y[:, None])
    assert compress(column, 5, X).predict(X).shape == (120, 1)


def test_an_outlier_detector():
    X = load_digits(return_X_y=True)[0] / 16
    X, fresh = X[:600], X[600:1000]
    original = OneClassSVM(nu=0.3).fit(X)
    small = compress(original, ALL, fresh)
    assert isinstance(small, CompressedOutlierDetector)
    assert_allclose(small.decision_function(fresh), original.decision_function(fresh), atol=1e-8)
    assert_allclose(small.score_samples(fresh), original.score_samples(fresh))
    assert_allclose(small.offset_, original.offset_)
    assert_array_equal(small.predict(fresh), original.predict(fresh))
    fewer = compress(original, 20, fresh)
    changed = np.mean(fewer.predict(fresh) != original.predict(fresh))
    assert_allclose(fewer.prediction_change_, changed)
    assert 0.0 < fewer.prediction_change_ < 0.1
    for few in (small, fewer):
        few.expansion_ = type(few.expansion_)(few.expansion_.atoms, 0 * few.dual_coef_, np.zeros(1))
        assert_array_equal(few.predict(fresh[:1]), [-1])  # as in LIBSVM


def test_a_tenth_of_the_vectors_predicts_nearly_the_same(svc, digits):
    X, y, fresh, labels = digits
    small = compress(svc, len(svc.support_) // 8, fresh, labels, refit=None)
    assert small.stop_reason_ == "n_components"
    assert_allclose(small.prediction_change_, np.mean(small.predict(fresh) != svc.predict(fresh)))
    assert small.prediction_change_ < 0.05
    assert_allclose(small.scores_, (svc.score(fresh, labels), small.score(fresh, labels)))
    assert small.scores_[1] > small.scores_[0] - 0.03
    assert small.relative_errors_.shape == (10,)


@pytest.mark.parametrize("n_components", [10, 40])
def test_no_value_moves_by_more_than_the_error(n_components, svc, digits):
    small = compress(svc, n_components)
    machine = read_kernel_model(svc)
    a = machine.coefficients
    norms = np.sqrt(np.diag(a.T @ machine.kernel(machine.vectors, machine.vectors) @ a))
    exact = machine.kernel(digits[2], machine.vectors) @ a + machine.intercept
    moved = np.abs(small.expansion_(digits[2]) - exact).max(axis=0)
    assert (moved <= small.relative_errors_ * norms).all()
    overall = np.sqrt(np.sum((small.relative_errors_ * norms) ** 2) / np.sum(norms**2))
    assert_allclose(small.relative_error_, overall)


def test_least_squares_come_nearest_to_the_values(svc, digits):
    X, fresh = digits[0], digits[2]
    plain, refitted = (compress(svc, 12, X, refit=refit) for refit in (None, "least_squares"))
    machine = read_kernel_model(svc)
    exact = machine.kernel(X, machine.vectors) @ machine.coefficients + machine.intercept
    table = np.column_stack([plain.kernel_(X, plain.support_vectors_), np.ones(len(X))])
    best = np.linalg.lstsq(table, exact, rcond=None)[0]
    assert_allclose(refitted.support_vectors_, plain.support_vectors_)
    assert_allclose(refitted.expansion_(X), table @ best, atol=1e-6)
    assert_allclose(refitted.relative_error_, plain.relative_error_)
    assert np.abs(refitted.intercept_ - plain.intercept_).max() > 1e-3
    again = compress(svc, ALL, fresh, refit="least_squares")
    assert_array_equal(again.predict(fresh), svc.predict(fresh))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_margin_is_that_of_each_pair(n_classes):
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[y < n_classes], y[y < n_classes]
    weights = {0: 1.0, 1: 3.0, 2: 0.5}
    original = SVC(C=2.0, class_weight={c: weights[c] for c in range(n_classes)}).fit(X, y)
    small = compress(original, 4, X, y, refit="margin")
    pairs = [(1, 0)] if n_classes == 2 else [(0, 1), (0, 2), (1, 2)]
    for t, (positive, negative) in enumerate(pairs):
        rows = np.isin(y, [positive, negative])
        signs = np.where(y[rows] == positive, 1.0, -1.0)[:, None]
        bounds = 2.0 * np.array([weights[c] for c in y[rows]])
        best = solve_on_vectors(small.kernel_, small.support_vectors_, X[rows], signs, bounds)
        assert_allclose(small.dual_coef_[t], best.beta[:, 0], rtol=1e-9)
        assert_allclose(small.intercept_[t], best.intercept[0], rtol=1e-9)
    assert small.score(X, y) > 0.95


def test_the_last_step_of_a_pipeline(digits):
    X, y, fresh, labels = digits
    original = make_pipeline(StandardScaler(), SVC(C=10)).fit(X, y)
    small = compress(original, 40, X, y, refit="margin")
    assert [name for name, _ in small.steps] == [name for name, _ in original.steps]
    assert small[-1].n_components_ == 40
    assert small[-1].scores_[0] == original.score(X, y)
    assert small[-1].scores_[1] == small.score(X, y)
    assert small.score(fresh, labels) > original.score(fresh, labels) - 0.03
    assert_array_equal(compress(original, ALL).predict(fresh), original.predict(fresh))
    assert type(original[-1]) is SVC
    alone = make_pipeline(SVC()).fit(X, y)
    assert_array_equal(compress(alone, ALL, X).predict(fresh), alone.predict(fresh))


def test_sparse_rows(digits):
    X, y, fresh, _ = digits
    dense = SVC(gamma=0.3).fit(X, y)
    few = SVC(gamma=0.3).fit(sparse.csr_matrix(X), y)
    for n in (30, ALL):
        small = compress(few, n, sparse.csr_matrix(X), y, refit="margin")
        other = compress(dense, n, X, y, refit="margin")
        assert sparse.issparse(small.support_vectors_) == (n == ALL)
        assert_allclose(small.relative_error_, other.relative_error_, rtol=1e-2)
        assert np.mean(small.predict(sparse.csr_matrix(fresh)) == other.predict(fresh)) > 0.97


def test_single_precision(svc, digits):
    X, y, fresh, _ = digits
    original = SVC(C=10).fit(X.astype(np.float32), y)
    small = compress(original, ALL)
    assert_array_equal(small.predict(fresh.astype(np.float32)), original.predict(fresh))


def test_repeated_rows_are_one_vector(digits):
    X, y = digits[0][:40], digits[1][:40]
    original = SVC(C=0.1).fit(np.repeat(X, 5, axis=0), np.repeat(y, 5))
    assert len(original.support_) > 40
    small = compress(original, 40)
    assert small.n_components_ <= 40
    assert small.stop_reason_ == "exact"
    assert_array_equal(small.predict(digits[2]), original.predict(digits[2]))


@pytest.mark.parametrize("kind", ["classifier", "regressor", "outlier"])
def test_saved_and_loaded(kind, svc, curve, digits, tmp_path):
    original, X = {
        "classifier": (svc, digits[2]),
        "regressor": (KernelRidge(kernel="rbf").fit(*curve), curve[0]),
        "outlier": (OneClassSVM().fit(digits[0]), digits[2]),
    }[kind]
    small = compress(original, 15, X, max_iter=5)
    save(small, tmp_path / "small.pursuit")
    same = load(tmp_path / "small.pursuit")
    assert_array_equal(same.predict(X), small.predict(X))
    assert same.relative_error_ == small.relative_error_
    assert same.prediction_change_ == small.prediction_change_
    if kind != "regressor":
        assert_array_equal(same.decision_function(X), small.decision_function(X))


def test_training_and_compressing_in_one_go(digits, curve, tmp_path):
    X, y, fresh, labels = digits
    model = CompressedClassifier(SVC(C=10), 40, max_iter=10).fit(X, y)
    same = compress(SVC(C=10).fit(X, y), 40, X, max_iter=10)
    assert_array_equal(model.predict(fresh), same.predict(fresh))
    assert_array_equal(
        CompressedClassifier(n_components=ALL).fit(X, y).predict(fresh),
        SVC().fit(X, y).predict(fresh),
    )
    search = GridSearchCV(CompressedClassifier(refit=None), {"n_components": [2, 20]}, cv=2).fit(
        X, y
    )
    assert search.best_params_ == {"n_components": 20}
    heavy = np.where(y == 3, 5.0, 0.5)
    weighted = CompressedClassifier(SVC(), 40, refit=None).fit(X, y, sample_weight=heavy)
    expected = compress(SVC().fit(X, y, sample_weight=heavy), 40)
    assert_array_equal(weighted.predict(fresh), expected.predict(fresh))
    assert (weighted.predict(fresh) != compress(SVC().fit(X, y), 40).predict(fresh)).any()
    save(model, tmp_path / "model.pursuit")
    loaded = load(tmp_path / "model.pursuit")
    assert loaded.estimator.C == 10
    assert_array_equal(loaded.predict(fresh), model.predict(fresh))
    with pytest.raises(ValueError, match="GaussianProcessRegressor does not take it"):
        CompressedRegressor(GaussianProcessRegressor()).fit(*curve, sample_weight=curve[1])
    with pytest.raises(ValueError, match="estimator: SVR is a regressor"):
        CompressedClassifier(SVR()).fit(X, y)


def test_names_of_features_are_kept(digits):
    frame = pd.DataFrame(digits[0]).add_prefix("pixel")
    original = SVC().fit(frame, digits[1])
    small = compress(original, 10, frame)
    assert_array_equal(small.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        small.predict(frame.rename(columns={"pixel0": "other"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"n_components": 2.5}, "n_components must be an integer"),
        ({"tol": -1.0}, "tol must be a finite number"),
        ({"max_iter": -1}, "max_iter must be an integer of at least 0"),
        ({"refit": "ridge"}, "refit must be one of"),
        ({"refit": "least_squares"}, "refit='least_squares' needs X"),
        ({"refit": "margin"}, "refit='margin' needs X"),
        ({"refit": "margin", "X": np.zeros((2, 64))}, "refit='margin' needs y"),
        ({"refit": "margin", "X": np.zeros((2, 64)), "y": [0, 77]}, "label 77"),
        ({"refit": "margin", "X": np.zeros((2, 64)), "y": [0]}, "X has 2 rows, but y has 1"),
        ({"refit": "least_squares", "X": np.full((2, 64), np.nan)}, "NaN"),
        ({"refit": "move", "X": np.full((2, 64), np.nan)}, "NaN"),
        ({"X": np.zeros((2, 5))}, "5 features"),
    ],
)
def test_arguments_that_are_no_good(arguments, message, svc):
    with pytest.raises(ValueError, match=message):
        compress(svc, **{"n_components": 5, **arguments})


def test_machines_that_cannot_be_compressed(digits, curve):
    X, y = digits[:2]
    with pytest.raises(ValueError, match="sigmoid kernel is not positive semidefinite"):
        compress(SVC(kernel="sigmoid").fit(X, y), 5)
    with pytest.raises(ValueError, match="kernel with a derivative"):
        compress(KernelRidge(kernel="chi2", gamma=0.1).fit(X, y), 5)
    with pytest.raises(ValueError, match="StandardScaler"):
        compress(make_pipeline(StandardScaler()).fit(X), 5)
    with pytest.raises(NotFittedError):
        compress(SVC(), 5)
    with pytest.raises(ValueError, match="refit='margin' is for an SVC, .* got NuSVC"):
        compress(NuSVC(nu=0.1).fit(X, y), 5, X, y, refit="margin")
    with pytest.raises(ValueError, match="refit must be one of"):
        compress(SVR().fit(*curve), 5, *curve, refit="margin")


def test_a_constant_machine_needs_no_vector(curve):
    X, y = curve
    small = compress(SVR(epsilon=100.0).fit(X, y), 5, X, y)
    assert small.n_components_ == 0
    assert_allclose(small.predict(X), SVR(epsilon=100.0).fit(X, y).predict(X))
    refitted = compress(SVR(epsilon=100.0).fit(X, y), 5, X, y, refit="least_squares")
    assert_allclose(refitted.predict(X), small.predict(X))
