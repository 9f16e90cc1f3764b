"""A larger budget goes on from the last fit and equals a fit from the beginning."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits

import pursuit
from pursuit import KernelMatchingPursuitClassifier, KernelMatchingPursuitRegressor
from pursuit.matching_pursuit import estimators

X, y = load_digits(return_X_y=True)
X, y = X[:200], y[:200] % 3

WAYS = [
    {},
    {"multi_class": "ovr"},
    {"fitting": "basic"},
    {"route": "direct", "n_candidates": 100},
    {"loss": "log_loss", "n_candidates": 60},
    {"loss": "squared_hinge", "refit_every": 4, "n_candidates": 30},
    {"early_stopping": True, "n_iter_no_change": 5},
]


@pytest.fixture
def makes(monkeypatch):
    """Counts the pursuits that begin."""
    made = []
    make = estimators.make_pursuit
    monkeypatch.setattr(
        estimators, "make_pursuit", lambda *given: made.append(given) or make(*given)
    )
    return made


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_going_on_is_a_fit_of_all(way, makes):
    model = KernelMatchingPursuitClassifier(12, random_state=0, warm_start=True, **way).fit(X, y)
    model.set_params(n_components=24).fit(X, y)
    assert len(makes) == 1
    whole = KernelMatchingPursuitClassifier(24, random_state=0, **way).fit(X, y)
    assert_array_equal(model.support_, whole.support_)
    assert_allclose(model.dual_coef_, whole.dual_coef_, rtol=1e-10)
    assert_allclose(model.train_loss_path_, whole.train_loss_path_, rtol=1e-10)
    assert model.stop_reason_ == whole.stop_reason_


def test_a_fit_that_was_stopped_goes_on(makes):
    stop = pursuit.TimeBudget(1e-9)
    model = KernelMatchingPursuitRegressor(20, warm_start=True).set_callbacks(stop).fit(X, y)
    assert model.n_components_ == 1
    model.set_callbacks().fit(X, y)
    assert len(makes) == 1
    assert_array_equal(model.dual_coef_, KernelMatchingPursuitRegressor(20).fit(X, y).dual_coef_)


def other_rows(model):
    return X[::-1], y[::-1]


def changed_in_place(model):
    model.rows[0] += 1.0
    return model.rows, y


@pytest.mark.parametrize(
    "change",
    [
        {"gamma": 0.01},
        {"n_components": 5},
        {"alpha": 0.1},
        other_rows,
        changed_in_place,
        {"loss": "squared_hinge", "refit_every": 4},
    ],
    ids=lambda change: getattr(change, "__name__", str(change)),
)
def test_whatever_else_changes_the_fit_is_a_new_one(change, makes):
    rows, labels = X.copy(), y
    model = KernelMatchingPursuitClassifier(10, warm_start=True).fit(rows, labels)
    if callable(change):
        model.rows = rows
        rows, labels = change(model)
        change = {}
    model.set_params(**{"n_components": 12} | change).fit(rows, labels)
    assert len(makes) == 2
    whole = clone(model).set_params(warm_start=False).fit(rows, labels)
    assert_array_equal(model.dual_coef_, whole.dual_coef_)


def test_a_re_fit_at_the_end_of_the_path_is_no_beginning(makes):
    rare = {"loss": "squared_hinge", "refit_every": 4}
    model = KernelMatchingPursuitClassifier(10, warm_start=True, **rare).fit(X, y)
    model.set_params(n_components=13).fit(X, y)
    assert len(makes) == 2
    whole = KernelMatchingPursuitClassifier(13, **rare).fit(X, y)
    assert_array_equal(model.dual_coef_, whole.dual_coef_)


def test_weights_are_part_of_the_data(makes):
    weights = np.linspace(1.0, 2.0, len(y))
    model = KernelMatchingPursuitRegressor(10, warm_start=True).fit(X, y, weights)
    model.set_params(n_components=12).fit(X, y, weights)
    assert len(makes) == 1
    model.set_params(n_components=14).fit(X, y)
    assert len(makes) == 2


def test_copies_and_files_carry_the_model_alone(tmp_path):
    model = KernelMatchingPursuitRegressor(10, warm_start=True).fit(X, y)
    assert len(pickle.dumps(model)) < 200_000
    pursuit.save(model, tmp_path / "model.pursuit")
    loaded = pursuit.load(tmp_path / "model.pursuit")
    assert_array_equal(loaded.predict(X), model.predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loaded.set_params(n_components=12).fit(X, y).n_components_ == 12
