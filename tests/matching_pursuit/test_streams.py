"""Fits from sums equal fits on the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    KernelStatistics,
    load,
    save,
)
from pursuit.expansion.intervals import error_quantiles
from pursuit.greedy import statistics
from pursuit.kernels import RBF, scale_gamma

P = awkward()
VECTORS = P.X[:20]
OPTIONS = [
    {},
    {"fitting": "backfit"},
    {"fitting": "basic"},
    {"fit_intercept": False, "alpha": 0.3},
    {"alpha": 0.1, "tol": 0.2},
]


def assert_same_path(found, expected):
    assert_array_equal(found.component_names_, expected.component_names_)
    assert_array_equal(found.support_vectors_, expected.support_vectors_)
    assert_allclose(found.dual_coef_, expected.dual_coef_, rtol=1e-8, atol=1e-9)
    assert_allclose(found.intercept_, expected.intercept_, rtol=1e-8, atol=1e-9)
    assert_allclose(found.train_loss_path_, expected.train_loss_path_, rtol=1e-7, atol=1e-10)
    for left, right in zip(found.staged_predict(P.X), expected.staged_predict(P.X), strict=True):
        if left.dtype.kind == "f":
            assert_allclose(left, right, rtol=1e-7, atol=1e-8)
        else:
            assert_array_equal(left, right)


@pytest.mark.parametrize("options", OPTIONS)
def test_numbers_from_sums_equal_numbers_from_rows(options):
    sums = KernelStatistics(VECTORS, gamma=0.3).update(P.X, P.Y, P.weights)
    found = KernelMatchingPursuitRegressor(6, **options).fit_statistics(sums)
    expected = KernelMatchingPursuitRegressor(6, dictionary=VECTORS, gamma=0.3, **options)
    assert_same_path(found, expected.fit(P.X, P.Y, P.weights))
    assert not hasattr(found, "support_")


@pytest.mark.parametrize("options", [*OPTIONS, {"multi_class": "ovr"}])
def test_classes_from_sums_equal_classes_from_rows(options):
    sums = KernelStatistics(VECTORS, np.unique(P.labels), gamma=0.3)
    sums.update(P.X[30:], P.labels[30:], P.weights[30:])
    sums.update(P.X[:30], P.labels[:30], P.weights[:30])
    found = KernelMatchingPursuitClassifier(6, **options).fit_statistics(sums)
    expected = KernelMatchingPursuitClassifier(6, dictionary=VECTORS, gamma=0.3, **options)
    expected.fit(P.X, P.labels, P.weights)
    assert_same_path(found, expected)
    assert_array_equal(found.predict(P.X), expected.predict(P.X))
    # All rows are kept: the temperatures are fitted on the same ones.
    assert_allclose(found.predict_proba(P.X), expected.predict_proba(P.X), atol=1e-5)


def test_errors_at_kept_rows_are_those_of_fits_without_them(monkeypatch):
    monkeypatch.setattr(statistics, "SKETCH_ROWS", 20)
    y = P.Y[:, 0]
    sums = KernelStatistics(VECTORS, gamma=0.3).update(P.X, y)
    model = KernelMatchingPursuitRegressor(5).fit_statistics(sums)
    design = np.hstack([np.ones((60, 1)), RBF(0.3)(P.X, model.support_vectors_)])
    errors = []
    for x, target in zip(sums.sketch_.X, sums.sketch_.Y[:, 0], strict=True):
        i = np.flatnonzero((x == P.X).all(axis=1) & (y == target))[0]
        others = np.delete(np.arange(60), i)
        errors.append(abs(y[i] - design[i] @ np.linalg.lstsq(design[others], y[others])[0]))
    assert len(errors) == 20
    expected = error_quantiles(np.array(errors)[:, None], np.ones(20), np.ones(20))
    assert_allclose(model.error_quantiles_, expected, rtol=1e-6)


@pytest.mark.parametrize("order", [range(7), [0, 5, 3, 6, 1, 4, 2]])
def test_seven_blocks_in_any_order_equal_one_fit(order):
    X, y = load_digits(return_X_y=True)
    blocks = np.array_split(np.arange(len(y)), 7)
    stream = KernelMatchingPursuitClassifier(15, gamma=5e-4, n_candidates=100, random_state=0)
    for k in order:
        stream.partial_fit(X[blocks[k]], y[blocks[k]], classes=np.arange(10))
    candidates = stream.statistics_.vectors
    assert len(candidates) == 100
    assert_array_equal(X[stream.support_], stream.support_vectors_)
    batch = KernelMatchingPursuitClassifier(15, gamma=5e-4, dictionary=candidates).fit(X, y)
    assert_array_equal(stream.support_vectors_, batch.support_vectors_)
    assert_allclose(stream.decision_function(X), batch.decision_function(X), rtol=1e-8, atol=1e-8)
    # On 1000 rows each, other ones.
    assert_allclose(stream.temperature_, batch.temperature_, rtol=0.1)


def test_numbers_in_blocks_with_weights_and_sparse_rows():
    rows = sparse.csr_matrix(P.X)
    stream = KernelMatchingPursuitRegressor(6, gamma=0.3)
    for part in (slice(0, 25), slice(25, 40), slice(40, 60)):
        stream.partial_fit(rows[part], P.Y[part], sample_weight=P.weights[part])
    batch = KernelMatchingPursuitRegressor(6, gamma=0.3, dictionary=stream.statistics_.vectors)
    batch.fit(rows, P.Y, P.weights)
    assert_allclose(stream.predict(rows), batch.predict(rows), rtol=1e-8, atol=1e-8)
    assert stream.predict(rows).shape == P.Y.shape


def test_the_first_rows_fix_gamma_and_at_most_2500_candidates(rng):
    X = rng.standard_normal((2600, 2))
    stream = KernelMatchingPursuitRegressor(3, random_state=0).partial_fit(X, X[:, 0])
    assert stream.statistics_.vectors.shape == (2500, 2)
    gamma = stream.kernel_.gamma
    stream.partial_fit(100 * X[:50], X[:50, 0])
    assert stream.kernel_.gamma == gamma == scale_gamma(X)


def test_class_weights_multiply():
    weight = {label: 1.0 + k for k, label in enumerate(np.unique(P.labels))}
    stream = KernelMatchingPursuitClassifier(5, gamma=0.3, class_weight=weight)
    for part in (slice(0, 30), slice(30, 60)):
        stream.partial_fit(P.X[part], P.labels[part], classes=np.unique(P.labels))
    batch = KernelMatchingPursuitClassifier(
        5, gamma=0.3, class_weight=weight, dictionary=stream.statistics_.vectors
    ).fit(P.X, P.labels)
    assert_allclose(stream.decision_function(P.X), batch.decision_function(P.X), atol=1e-8)


def test_a_file_holds_the_model_and_not_the_sums(tmp_path):
    stream = KernelMatchingPursuitRegressor(3, gamma=0.3).partial_fit(P.X, P.Y)
    save(stream, tmp_path / "model.pursuit")
    loaded = load(tmp_path / "model.pursuit")
    assert_array_equal(loaded.predict(P.X), stream.predict(P.X))
    with pytest.warns(UserWarning, match="partial_fit starts anew"):
        loaded.partial_fit(P.X[:30], P.Y[:30])
    fresh = clone(loaded).partial_fit(P.X[:30], P.Y[:30])
    assert_array_equal(loaded.predict(P.X), fresh.predict(P.X))


def test_fit_forgets_the_sums_and_keeps_the_classes():
    labels = np.unique(P.labels)
    stream = KernelMatchingPursuitClassifier(3, gamma=0.3).partial_fit(P.X, P.labels, labels)
    stream.fit(P.X, P.labels)
    with pytest.warns(UserWarning, match="partial_fit starts anew"):
        stream.partial_fit(P.X[:20], P.labels[:20])
    assert stream.statistics_.n_samples_ == 20


SUMS = KernelStatistics(VECTORS, gamma=0.3).update(P.X, P.Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "huber"}, "loss='squared_error'"),
        ({"refit_every": 2}, "refit_every=1"),
        ({"early_stopping": True}, "early_stopping must be False"),
        ({"dictionary": VECTORS}, "dictionary must be None"),
        ({"route": "direct"}, "route='direct'"),
        ({"n_candidates": 5}, "n_candidates has no meaning"),
    ],
)
def test_sums_do_not_tell_everything(options, message):
    with pytest.raises(ValueError, match=message):
        KernelMatchingPursuitRegressor(3, **options).fit_statistics(SUMS)
    partly = hasattr(KernelMatchingPursuitRegressor(3, **options), "partial_fit")
    assert partly == ("n_candidates" in options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.partial_fit(P.X, P.labels), "classes must be passed"),
        (lambda m: m.partial_fit(P.X, P.labels, classes=["x", "y"]), "the label"),
        (lambda m: m.fit_statistics(SUMS), "statistics must be of labels"),
        (lambda m: m.fit_statistics(KernelStatistics(VECTORS)), "holds no rows"),
        (
            lambda m: m.set_params(class_weight="balanced").partial_fit(
                P.X, P.labels, classes=np.unique(P.labels)
            ),
            "class_weight='balanced'",
        ),
        (
            lambda m: m.partial_fit(P.X, P.labels, np.unique(P.labels)).partial_fit(
                P.X, P.labels, ["a", "b"]
            ),
            "differ from those of the first call",
        ),
        (
            lambda m: m.set_params(kernel="precomputed").partial_fit(P.X, P.labels, [0, 1]),
            "the label|kernel",
        ),
    ],
)
def test_bad_calls_name_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call(KernelMatchingPursuitClassifier(3, gamma=0.3))
