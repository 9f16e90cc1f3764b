"""What a fitted model does: predictions, probabilities, stages, copies, names of columns."""

import copy
import pickle
import tracemalloc
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit.kernels import Precomputed

P = awkward()
GAMMA = 0.3
NEW = P.X[:20] + 0.1


def classifier(n=10, labels=P.labels, **options):
    model = KernelMatchingPursuitClassifier(n, gamma=GAMMA, **options)
    return model.fit(P.X, labels, P.weights)


def regressor(n=10, Y=P.Y, **options):
    model = KernelMatchingPursuitRegressor(n, gamma=GAMMA, **options)
    return model.fit(P.X, Y, P.weights)


TWO = np.where(P.labels == "mole", "mole", "other")
FITTED = {
    "two classes": classifier(labels=TWO),
    "three classes": classifier(),
    "one-vs-rest": classifier(multi_class="ovr"),
    "basic": classifier(20, fitting="basic"),
    "without intercept": classifier(fit_intercept=False, alpha=0.1),
    "one target": regressor(Y=P.Y[:, 0]),
    "two targets": regressor(),
    "basic regressor": regressor(20, fitting="basic"),
}
CLASSIFIERS = [name for name, model in FITTED.items() if is_classifier(model)]
REGRESSORS = [name for name, model in FITTED.items() if is_regressor(model)]


def outputs_of(model, X):
    """The expansion, written out from the fitted attributes."""
    K = reference.rbf(X, model.support_vectors_, GAMMA)
    return K @ model.dual_coef_.T + model.intercept_


# Predictions.


@pytest.mark.parametrize("name", FITTED)
def test_predictions_follow_from_the_fitted_attributes(name):
    model = FITTED[name]
    expected = outputs_of(model, NEW)
    assert_allclose(model.expansion_(NEW), expected, rtol=1e-9, atol=1e-10)
    assert_array_equal(model.support_vectors_, P.X[model.support_])
    assert model.n_components_ == len(model.support_) == model.dual_coef_.shape[1]
    assert model.n_components_ <= model.n_iter_ == len(model.train_loss_path_)
    assert model.intercept_.shape == (model.dual_coef_.shape[0],) == (expected.shape[1],)
    squeezed = expected[:, 0] if expected.shape[1] == 1 else expected
    found = model.decision_function(NEW) if name in CLASSIFIERS else model.predict(NEW)
    assert found.shape == squeezed.shape
    assert_allclose(found, squeezed, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", FITTED)
def test_unchecked_route_is_the_checked_one(name):
    model = FITTED[name]
    found = model.decision_function(NEW) if name in CLASSIFIERS else model.predict(NEW)
    outputs = model.expansion_(NEW)
    assert_array_equal(outputs[:, 0] if found.ndim == 1 else outputs, found)
    assert_allclose(model.expansion_(NEW[:1]), outputs[:1], rtol=1e-12)
    assert model.expansion_.kernel is model.kernel_
    assert model.expansion_.vectors is model.support_vectors_
    assert model.expansion_.coefficients is model.dual_coef_


def test_unchecked_route_neither_checks_nor_prepares():
    """A prediction costs the kernel and one product; norms of the centres wait ready."""
    model = FITTED["three classes"]
    kernel = type(model.kernel_)
    row = NEW[:1]
    with (
        mock.patch.object(kernel, "prepare", side_effect=AssertionError("prepared again")),
        mock.patch.object(kernel, "evaluate", autospec=True, side_effect=kernel.evaluate) as used,
        mock.patch.object(sklearn.utils.validation, "check_array", side_effect=AssertionError),
    ):
        model.expansion_(row)
        assert used.call_count == 1
    with mock.patch.object(kernel, "prepare", side_effect=AssertionError("prepared again")):
        model.predict(row)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_are_those_of_the_largest_value(name):
    model = FITTED[name]
    values = model.decision_function(NEW)
    codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    assert_array_equal(model.predict(NEW), model.classes_[codes])
    assert_allclose(model.score(P.X, P.labels), accuracy_score(P.labels, model.predict(P.X)))


def test_score_of_a_regressor():
    model = FITTED["two targets"]
    assert_allclose(model.score(P.X, P.Y), r2_score(P.Y, model.predict(P.X)))
    assert model.score(P.X, P.Y) > 0.7


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -1, 7])[np.arange(60) % 3],
        np.array([2.0, 0.5, 1.0])[np.arange(60) % 3].round(),
        np.arange(60) % 2 == 0,
        np.array(["b", "a"], dtype=object)[np.arange(60) % 2],
    ],
)
def test_labels_of_any_type_come_back(labels):
    model = KernelMatchingPursuitClassifier(5, gamma=GAMMA).fit(P.X, labels)
    assert_array_equal(model.classes_, np.unique(labels))
    predicted = model.predict(P.X)
    assert predicted.dtype == model.classes_.dtype == labels.dtype
    assert set(predicted) <= set(labels)


# Probabilities.


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities(name):
    model = FITTED[name]
    table = model.predict_proba(NEW)
    expected = reference.probabilities(outputs_of(model, NEW), model.temperature_)
    assert_allclose(table, expected, rtol=1e-8)
    assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
    assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(NEW))


@pytest.mark.parametrize("labels", [P.labels, TWO], ids=["three", "two"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_temperature_is_the_best_on_leave_one_out_values(fit_intercept, labels):
    model = classifier(labels=labels, fit_intercept=fit_intercept, alpha=0.05)
    used = P.weights > 0
    codes = np.searchsorted(model.classes_, labels)[used]
    D = reference.rbf(P.X[used], model.support_vectors_, GAMMA)
    Y, weights = as_targets(labels)[used], P.weights[used]
    held_out = reference.leave_one_out(D, Y, weights, range(10), 0.05, fit_intercept)
    expected = reference.temperature(held_out, codes, weights)
    assert_allclose(model.temperature_, expected, rtol=1e-5)


def test_temperature_of_basic_pursuit_is_the_best_on_training_values():
    """It has no closed form for the values of rows left out."""
    model = classifier(25, fitting="basic")
    used = P.weights > 0
    codes = np.searchsorted(model.classes_, P.labels)[used]
    expected = reference.temperature(outputs_of(model, P.X[used]), codes, P.weights[used])
    assert_allclose(model.temperature_, expected, rtol=1e-5)


def test_probabilities_are_honest():
    """On held-out rows they beat those of temperature 1, and every class has its share."""
    X, y = load_digits(return_X_y=True)
    model = KernelMatchingPursuitClassifier(100).fit(X[:500], y[:500])
    fresh, truth = X[500:1200], y[500:1200]
    table = model.predict_proba(fresh)
    raw = reference.probabilities(model.decision_function(fresh), 1.0)
    assert log_loss(truth, table) < 0.8 * log_loss(truth, raw)
    assert_allclose(table.max(axis=1).mean(), model.score(fresh, truth), atol=0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_most_probable_class_is_the_predicted_one(name, dtype, rng):
    """Also far from every vector, between two classes, and in single precision."""
    model = FITTED[name]
    X = rng.normal(size=(2000, 4)) * 10.0 ** rng.integers(-3, 4, size=(2000, 1)) + P.X[0]
    table = model.predict_proba(X.astype(dtype))
    assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(X.astype(dtype)))
    assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("labels", [P.labels, TWO], ids=["three", "two"])
def test_extreme_decision_values_and_ties(labels):
    """Coefficients scaled up and down by hand; predict and predict_proba stay in step."""
    model = classifier(labels=labels)
    for factor in (0.0, 1e-320, 1e-17, 1e12, 1e280):
        extreme = copy.deepcopy(model)
        object.__setattr__(extreme.expansion_, "_weights", factor * model.dual_coef_.T)
        object.__setattr__(extreme.expansion_, "intercept", factor * model.intercept_)
        table = extreme.predict_proba(P.X)
        assert np.isfinite(table).all()
        assert_array_equal(extreme.classes_[table.argmax(axis=1)], extreme.predict(P.X))
        assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)


# Stages.


@pytest.mark.parametrize("name", FITTED)
def test_stages_are_the_truncated_models(name):
    model = FITTED[name]
    shorter = [model.truncate(n) for n in range(1, model.n_iter_ + 1)]
    stages = list(model.staged_predict(NEW))
    assert len(stages) == model.n_iter_
    for small, stage in zip(shorter, stages, strict=True):
        assert_allclose(small.predict(NEW), stage, rtol=1e-8) if name in REGRESSORS else (
            assert_array_equal(small.predict(NEW), stage)
        )
    if name in CLASSIFIERS:
        for small, stage in zip(shorter, model.staged_decision_function(NEW), strict=True):
            assert_allclose(small.decision_function(NEW), stage, rtol=1e-8, atol=1e-10)
    assert_array_equal(stages[-1], model.predict(NEW)) if name in CLASSIFIERS else None


def test_stages_are_arrays_of_their_own():
    first, second, *_ = FITTED["two targets"].staged_predict(NEW)
    assert not np.shares_memory(first, second)
    assert not np.array_equal(first, second)


def test_stages_in_blocks_change_nothing():
    model = FITTED["three classes"]
    whole = list(model.staged_decision_function(NEW))
    with sklearn.config_context(working_memory=1e-4):
        blocked = list(model.staged_decision_function(NEW))
    assert_allclose(blocked, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FITTED)
def test_truncate_leaves_the_model_as_it_is(name):
    model = FITTED[name]
    before = copy.deepcopy(model)
    small = model.truncate(3)
    assert small.n_iter_ == 3
    assert small.get_params()["n_components"] == 3
    assert len(small.train_loss_path_) == 3
    assert_array_equal(small.support_, model.support_[: small.n_components_])
    assert_array_equal(model.predict(NEW), before.predict(NEW))
    assert model.n_iter_ == before.n_iter_
    assert len(model.train_loss_path_) == model.n_iter_
    assert model.get_params() == before.get_params()
    # The short model does not keep the long one's vectors alive.
    assert small.expansion_.vectors.base is None or len(small.expansion_.vectors.base) == 3


@pytest.mark.parametrize("n", [0, -1, 11, 2.0, "3", None])
def test_truncate_refuses(n):
    with pytest.raises(ValueError, match=r"n_components must be an integer from 1 to 10, got"):
        FITTED["three classes"].truncate(n)


def test_truncate_of_an_early_stopped_model():
    model = KernelMatchingPursuitRegressor(25, gamma=0.6, early_stopping="loo").fit(P.X, P.Y)
    assert 3 < model.n_iter_ < 25
    small = model.truncate(3)
    assert small.n_iter_ == 3
    assert_array_equal(small.leave_one_out_loss_path_, model.leave_one_out_loss_path_[:3])
    with pytest.raises(ValueError, match=f"from 1 to {model.n_iter_}"):
        model.truncate(model.n_iter_ + 1)


def test_truncate_says_why_the_shorter_path_ends():
    with pytest.warns(ConvergenceWarning, match="the other candidates"):
        model = KernelMatchingPursuitRegressor(9, kernel="linear").fit(P.X, P.Y)
    assert model.stop_reason_ == model.truncate(model.n_iter_).stop_reason_ == "rank"
    assert model.truncate(2).stop_reason_ == "n_components"


def test_truncate_of_a_cross_validated_model():
    model = KernelMatchingPursuitClassifierCV(8, gammas=[0.3], cv=3).fit(P.X, P.labels)
    plain = KernelMatchingPursuitClassifier(2, gamma=0.3).fit(P.X, P.labels)
    small = model.truncate(2)
    assert_allclose(small.predict_proba(NEW), plain.predict_proba(NEW), rtol=1e-8)
    assert small.gamma_ == 0.3


def test_truncate_of_one_budget_a_class():
    model = classifier([4, 2, 3], multi_class="ovr")
    small = model.truncate(5)
    assert list(small.get_params()["n_components"]) == [2, 2, 1]
    again = classifier([2, 2, 1], multi_class="ovr")
    assert_allclose(small.decision_function(NEW), again.decision_function(NEW), rtol=1e-8)


# Copies.


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("name", FITTED)
def test_copies_predict_the_same(name, duplicate):
    model = FITTED[name]
    other = duplicate(model)
    assert_array_equal(other.predict(NEW), model.predict(NEW))
    assert_array_equal(other.expansion_(NEW), model.expansion_(NEW))
    assert_array_equal(other.truncate(4).support_, model.truncate(4).support_)
    if name in CLASSIFIERS:
        assert_array_equal(other.predict_proba(NEW), model.predict_proba(NEW))
    assert other.get_params() == model.get_params()


def test_pickle_does_not_hold_the_training_data():
    X = np.random.default_rng(0).normal(size=(2000, 50))
    model = KernelMatchingPursuitRegressor(5).fit(X, X[:, 0])
    assert len(pickle.dumps(model)) < 30_000 < X.nbytes


def test_model_does_not_keep_the_dictionary_alive():
    X = np.random.default_rng(0).normal(size=(3000, 60))
    y = X[:, 0]
    KernelMatchingPursuitRegressor(3, n_candidates=50, random_state=0).fit(X[:100], y[:100])
    tracemalloc.start()
    model = KernelMatchingPursuitRegressor(5).fit(X, y)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert model.n_components_ == 5
    assert held < 300_000  # the rows alone are 1.4 MB, G is 72 MB


@pytest.mark.parametrize(
    "estimator",
    [
        KernelMatchingPursuitClassifier,
        KernelMatchingPursuitRegressor,
        KernelMatchingPursuitClassifierCV,
        KernelMatchingPursuitRegressorCV,
    ],
)
def test_clone_and_parameters(estimator):
    model = estimator(7, gamma=0.5, fitting="backfit", alpha=0.25)
    assert clone(model).get_params() == model.get_params()
    changed = clone(model).set_params(alpha=0.5)
    assert (changed.alpha, model.alpha) == (0.5, 0.25)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(early="x")
    with pytest.raises(NotFittedError):
        model.predict(NEW)
    for method in ("staged_predict", "truncate"):
        with pytest.raises(NotFittedError):
            result = getattr(model, method)(NEW if method == "staged_predict" else 1)
            next(result)


# Tables with names.


def as_table(X, library):
    names = ["width", "height", "depth", "mass"]
    return pd.DataFrame(X, columns=names) if library == "pandas" else pl.DataFrame(X, schema=names)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("multi_output", [True, False])
def test_tables_keep_their_names(library, multi_output):
    table = as_table(P.X, library)
    target = as_table(np.hstack([P.Y, P.Y]), library)
    target = target[["width", "height"]] if multi_output else target["width"]
    Y = P.Y if multi_output else P.Y[:, 0]
    model = KernelMatchingPursuitRegressor(6, gamma=GAMMA).fit(table, target)
    assert_array_equal(model.feature_names_in_, ["width", "height", "depth", "mass"])
    plain = KernelMatchingPursuitRegressor(6, gamma=GAMMA).fit(P.X, Y)
    assert_allclose(model.predict(table), plain.predict(P.X), rtol=1e-9)
    assert model.n_features_in_ == plain.n_features_in_ == 4
    assert not hasattr(plain, "feature_names_in_")
    swapped = table[["height", "width", "depth", "mass"]]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(swapped)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(P.X)
    assert_array_equal(model.truncate(2).feature_names_in_, model.feature_names_in_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_labels_in_a_table_column(library):
    series = {"pandas": pd.Series, "polars": pl.Series}[library]
    table, labels = as_table(P.X, library), series(P.labels.tolist())
    model = KernelMatchingPursuitClassifier(6, gamma=GAMMA, early_stopping=True)
    model.fit(table, labels, X_val=table, y_val=labels)
    assert_array_equal(model.classes_, ["ant", "mole", "zebra"])
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(table, labels, X_val=table[["height", "width", "depth", "mass"]], y_val=labels)


def test_whole_numbers_and_lists():
    X = np.arange(40).reshape(20, 2) % 7
    y = (X[:, 0] * X[:, 1]).tolist()
    whole = KernelMatchingPursuitRegressor(4).fit(X.tolist(), y)
    floating = KernelMatchingPursuitRegressor(4).fit(X.astype(float), np.array(y, dtype=float))
    assert_array_equal(whole.predict(X), floating.predict(X.astype(float)))


# With the rest of scikit-learn.


def test_tags():
    for model in (KernelMatchingPursuitRegressor(), KernelMatchingPursuitRegressorCV()):
        tags = get_tags(model)
        assert tags.target_tags.multi_output
        assert tags.input_tags.sparse
        assert not tags.input_tags.pairwise
    assert not get_tags(KernelMatchingPursuitClassifier()).target_tags.multi_output
    for kernel in ("precomputed", Precomputed()):
        for estimator in (KernelMatchingPursuitClassifier, KernelMatchingPursuitRegressorCV):
            assert get_tags(estimator(kernel=kernel)).input_tags.pairwise


def test_pipeline_and_grid_search():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), KernelMatchingPursuitClassifier(5))
    search = GridSearchCV(pipeline, {"kernelmatchingpursuitclassifier__n_components": [2, 6]}, cv=3)
    search.fit(X, y)
    assert search.best_score_ > 0.9
    named = make_pipeline(StandardScaler(), KernelMatchingPursuitClassifier(5))
    named.set_output(transform="pandas").fit(X, y)  # only transformers mind
    assert named[-1].n_components_ == 5
    assert list(named[-1].feature_names_in_) == ["x0", "x1", "x2", "x3"]


def test_cross_validation_of_a_precomputed_kernel_splits_rows_and_columns():
    X, y = load_iris(return_X_y=True)
    K = reference.rbf(X, X, 0.2)
    given = KernelMatchingPursuitClassifier(5, kernel="precomputed")
    named = KernelMatchingPursuitClassifier(5, gamma=0.2)
    assert_allclose(cross_val_score(given, K, y, cv=3), cross_val_score(named, X, y, cv=3))


def test_sample_weights_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        model = KernelMatchingPursuitRegressor(4).set_fit_request(sample_weight=True)
        assert model.get_metadata_routing().fit.requests["sample_weight"] is True


def test_rows_with_long_csr_indices_predict():
    S = sparse.csr_matrix(NEW)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    model = FITTED["two targets"]
    assert_allclose(model.predict(S), model.predict(NEW), rtol=1e-7)


def test_no_output_on_the_screen(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        KernelMatchingPursuitClassifierCV(200, cv=2).fit(P.X, P.labels).predict_proba(NEW)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
