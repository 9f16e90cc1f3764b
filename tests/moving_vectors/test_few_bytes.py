"""Models within a budget of bytes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from pursuit import (
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelRegressor,
    frontier,
)
from pursuit.linalg.rounding import encode
from pursuit.moving_vectors import few_bytes
from pursuit.moving_vectors.few_bytes import Size, bytes_of, possible_sizes

X, Y = load_digits(return_X_y=True)
X = X / 16.0
TRAIN, TEST = slice(0, 900), slice(900, None)


def on_grid(matrix):
    """Whether int8 codes of the columns hold the numbers."""
    return np.abs(encode(matrix).decoded() - matrix).max() < 1e-5 * np.abs(matrix).max()


@pytest.mark.parametrize("metric", [None, 16, "diagonal", "full"])
def test_rounding_keeps_the_predictions(metric):
    exact = SparseKernelClassifier(30, metric=metric, max_iter=20, random_state=0)
    exact.fit(X[TRAIN], Y[TRAIN])
    small = SparseKernelClassifier(30, metric=metric, max_iter=20, precision="int8", random_state=0)
    small.fit(X[TRAIN], Y[TRAIN])
    assert on_grid(small.dual_coef_.T)
    assert on_grid(small.support_vectors_)
    assert metric in (None, "diagonal") or on_grid(small.metric_)
    assert abs(small.score(X[TEST], Y[TEST]) - exact.score(X[TEST], Y[TEST])) < 0.01
    assert small.precision_ == "int8"
    assert small.nbytes_ < exact.nbytes_ / 5


def test_coefficients_make_good_for_rounded_vectors(monkeypatch):
    t = np.sin(4 * X[:, 20]) + X[:, 30]
    options = {"C": 1e3, "max_iter": 15, "random_state": 0}

    def error(precision):
        model = SparseKernelRegressor(60, precision=precision, **options)
        return 1 - model.fit(X[TRAIN], t[TRAIN]).score(X[TRAIN], t[TRAIN])

    exact, in_turn = error(None), error("int8")
    monkeypatch.setattr(few_bytes, "round_in_turn", lambda B, H, p: encode(B).decoded())
    assert in_turn - exact < 0.3 * (error("int8") - exact)


def test_the_mean_output_is_kept_when_coefficients_are_rounded():
    t = 100.0 + np.sin(4 * X[:, 20])
    model = SparseKernelRegressor(30, C=1e3, max_iter=5, precision="int8", random_state=0)
    residuals = model.fit(X[TRAIN], t[TRAIN]).predict(X[TRAIN]) - t[TRAIN]
    assert abs(residuals.mean()) < 1e-5  # float32 of a hundred


def test_a_budget_of_bytes_is_kept_and_used():
    model = SparseKernelClassifier("auto", metric="auto", max_bytes=3000, random_state=0)
    model.fit(X[TRAIN], Y[TRAIN])
    assert 2500 < model.nbytes_ <= 3000
    assert model.nbytes_ == bytes_of(model.expansion_, model.precision_)
    assert model.score(X[TEST], Y[TEST]) > 0.93
    assert abs(model.rounding_loss_) < 0.03
    assert model.get_params()["max_bytes"] == 3000


@pytest.mark.parametrize("precision", ["float64", "float32", "float16", "int8"])
@pytest.mark.parametrize("metric", [None, 5])
def test_the_largest_number_of_vectors_that_fits(precision, metric):
    model = SparseKernelRegressor("auto", metric=metric, max_bytes=5000, precision=precision)
    samples = SparseKernelClassifier()._read(X, Y, None)
    (size,) = possible_sizes(model, samples)
    assert size.n_bytes(64, 10) <= 5000
    assert size._replace(n_components=size.n_components + 1).n_bytes(64, 10) > 5000


def test_the_largest_ranks_that_leave_room_for_as_many_vectors():
    model = SparseKernelRegressor("auto", metric="auto", max_bytes=1100, precision="int8")
    samples = SparseKernelClassifier()._read(X, Y, None)
    sizes = possible_sizes(model, samples)
    assert [size.metric for size in sizes] == [None, 8, 4, 2]
    assert all(size.n_bytes(64, 10) <= 1100 for size in sizes)


def test_the_bytes_are_those_of_the_numbers():
    model = SparseKernelClassifier(7, metric=5, max_iter=3, random_state=0).fit(X, Y)
    assert model.nbytes_ == 8 * (7 * 5 + 64 * 5 + 7 * 10 + 10)
    assert Size(7, 5, "int8").n_bytes(64, 10) == 7 * 5 + 64 * 5 + 70 + 8 * (5 + 5 + 10) + 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": "auto"}, "n_components must be"),
        ({"metric": "auto"}, "metric must be"),
        ({"max_bytes": 50, "n_components": "auto"}, "max_bytes=50 holds 0 vectors at most"),
        ({"max_bytes": 3000}, "max_bytes=3000 holds 32 vectors at most"),
        ({"max_bytes": 3000, "metric": "full"}, "metric='full' does not go with max_bytes"),
        ({"precision": "int4"}, "precision must be one of"),
        ({"max_bytes": 0}, "max_bytes must be"),
        ({"max_bytes": 3000, "n_components": 5, "warm_start": True}, "warm_start=True does not go"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelClassifier(**options).fit(X, Y)


def test_a_scoring_of_the_user_and_no_seed():
    options = {"metric": 8, "max_bytes": 2000, "precision": "int8", "max_iter": 3}
    model = SparseKernelClassifier("auto", scoring=lambda m, X, y: m.score(X, y), **options)
    model.fit(X[TRAIN], Y[TRAIN])
    assert model.nbytes_ <= 2000
    assert abs(model.rounding_loss_) < 0.05  # one start for the rounded and the exact model


def test_a_search_refuses_a_budget_of_bytes():
    with pytest.raises(ValueError, match="max_bytes compares sizes by itself"):
        SparseKernelClassifierCV("auto", max_bytes=3000).fit(X, Y)


def test_a_frontier_goes_on_from_what_a_budget_of_bytes_chose():
    model = SparseKernelClassifier("auto", metric=8, max_bytes=2000, max_iter=3, random_state=0)
    path = frontier(model, X[TRAIN], Y[TRAIN], [20, 10], max_iter=2)
    assert path.n_components.tolist() == [20, 10]
    for small in path.models:
        assert (small.max_bytes, small.metric, small.precision) == (None, 8, small.precision_)
        assert on_grid(small.support_vectors_) or small.precision_ != "int8"


def test_constant_columns_and_large_offsets_survive_rounding():
    rows = np.hstack([X[TRAIN], np.full((900, 1), 1000.3)]) + 100.0
    for precision in ("float16", "int8"):
        options = {"gamma": 0.05, "max_iter": 10, "random_state": 0}
        model = SparseKernelClassifier(20, precision=precision, **options)
        assert model.fit(rows, Y[TRAIN]).score(rows, Y[TRAIN]) > 0.97
        assert_allclose(model.intercept_, model.intercept_.astype(np.float32), rtol=0)
