"""Choice of gamma and size, and the errors that are reported."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from pursuit import KernelMatchingPursuitRegressor
from pursuit.base.cross_validation import GAMMA_FACTORS
from pursuit.io.tables import DataError, Matrix
from pursuit.kernels import scale_gamma
from pursuit.losses import AbsoluteError, Huber, Poisson, Quantile, SquaredError
from pursuit.table import model_selection as table_fit
from pursuit.table.model_selection import (
    Settings,
    fit,
    folds,
    held_out_error,
    mean_deviance,
    measure,
    search,
    yardstick,
)
from pursuit.table.preparation import learn_layout


def track(items, label):
    seen.append((label, len(items)))
    return items


@pytest.fixture(autouse=True)
def _forget():
    global seen
    seen = []


def waves(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def brute_force_loss(X, y, gamma, n, splitter):
    model = KernelMatchingPursuitRegressor(n, gamma=gamma)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = cross_val_score(model, X, y, cv=splitter, scoring="neg_mean_squared_error")
    return -scores.mean()


def test_gamma_is_the_best_of_the_grid_at_a_given_size():
    X, y = waves()
    settings = Settings("regression", n_components=8)
    model, notes = search(X, y, settings, track)
    splitter = folds(y, settings)
    grid = [scale_gamma(X) * factor for factor in GAMMA_FACTORS]
    losses = [brute_force_loss(X, y, gamma, 8, splitter) for gamma in grid]
    assert model.kernel_.gamma == grid[int(np.argmin(losses))]
    assert model.n_components_ == 8
    assert notes == []
    assert [label for label, _ in seen] == ["choosing gamma", "fitting 160 rows"]


def test_the_size_is_the_best_of_the_path():
    X, y = waves()
    model, notes = search(X, y, Settings("regression", gamma=0.5), track)
    path = model.cv_loss_path_[0].mean(axis=0)
    assert model.n_components_ == path.argmin() + 1
    assert len(path) == min(table_fit.MOST_VECTORS, len(y))
    assert model.gamma_ == 0.5
    assert notes == []
    clone(model)


def test_a_size_at_the_end_of_the_path_is_told(monkeypatch):
    monkeypatch.setattr(table_fit, "MOST_VECTORS", 3)
    _, notes = search(*waves(), Settings("regression", gamma=0.5), track)
    assert notes == ["the error still falls at 3 vectors: --n-components allows more"]


def test_large_files_choose_gamma_on_a_part_and_few_candidates(monkeypatch):
    for name, value in {"SEARCH_ROWS": 50, "SEARCH_CANDIDATES": 20, "MOST_CANDIDATES": 40}.items():
        monkeypatch.setattr(table_fit, name, value)
    X, y = waves()
    settings = Settings("regression")
    model, notes = search(X, y, settings, track)
    assert notes == ["gamma was chosen on 50 of the 160 rows"]
    assert model.n_candidates == 40
    assert model.n_components_ <= 40
    layout, _ = learn_layout(Matrix("a.npz", X, y), "y")
    fitted = fit(Matrix("a.npz", X, y), y, layout, settings, track).estimator
    assert held_out_error(X, y, fitted, layout, settings, track).n_rows == 50


def test_candidates_are_bounded():
    def chosen(n_rows, **given):
        return Settings("regression", **given).estimator(n_rows, 1.0, 5).n_candidates

    assert [chosen(n) for n in (2000, 2001, 100_000, 100_001)] == [None, 2000, 2000, 1000]
    assert [chosen(n, n_candidates=3000) for n in (3000, 200_000)] == [None, 3000]


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_kernels_without_gamma(kernel):
    model, _ = search(*waves(), Settings("regression", kernel=kernel), track)
    assert [label for label, _ in seen] == ["fitting 160 rows"]
    assert type(model.kernel_).__name__.lower() == kernel


def test_everything_given_needs_no_cross_validation():
    X, y = waves()
    given = Settings("regression", n_components=5, gamma=0.25, alpha=0.5, n_candidates=30, seed=3)
    model, _ = search(X, y, given, track)
    plain = KernelMatchingPursuitRegressor(
        5, gamma=0.25, alpha=0.5, n_candidates=30, random_state=3
    ).fit(X, y)
    assert_array_equal(model.predict(X), plain.predict(X))


FOLDS = {
    "regression": ("regression", np.arange(20.0), 5),
    "three numbers": ("regression", np.arange(3.0), 3),
    "two numbers": ("regression", np.arange(2.0), None),
    "classes": ("classification", np.array(list("ab" * 10)), 5),
    "a rare class": ("classification", np.array(list("a" * 10 + "bb" + "c")), 2),
    "rare classes": ("classification", np.array(list("a" * 10 + "bc")), None),
}


@pytest.mark.parametrize("case", FOLDS)
def test_folds_leave_two_classes_in_each_training_part(case):
    task, y, n_folds = FOLDS[case]
    splitter = folds(y, Settings(task))
    if n_folds is None:
        assert splitter is None
        return
    assert splitter.get_n_splits() == n_folds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        parts = [y[train] for train, _ in splitter.split(y, y)]
    assert all(len(np.unique(part)) > 1 for part in parts)


def test_too_few_rows_take_defaults_and_say_so():
    X = np.arange(3.0)[:, None]
    y = np.array(["a", "a", "b"])
    settings = Settings("classification")
    data = Matrix("a.npz", X, y)
    layout, _ = learn_layout(data, "y")
    model = fit(data, y, layout, settings, track)
    assert model.notes == [
        "too few rows to cross-validate: gamma and the number of vectors are defaults"
    ]
    assert model.estimator.predict(model.X).tolist() == ["a", "a", "b"]
    assert held_out_error(model.X, y, model.estimator, layout, settings, track) is None


def test_more_vectors_than_can_be_told_is_said_when_they_were_asked_for():
    X = np.repeat(np.arange(4.0), 10)[:, None]
    y = np.arange(40.0)
    with pytest.warns(ConvergenceWarning, match="n_components=9, but the path ended after"):
        search(X, y, Settings("regression", n_components=9, gamma=0.5), track)
    search(X, y, Settings("regression", gamma=0.5), track)


def test_one_class_is_refused():
    data = Matrix("a.npz", np.ones((4, 1)), np.array(["a"] * 4))
    layout, _ = learn_layout(data, "y")
    with pytest.raises(DataError, match=r"^a.npz: column 'y': one class only: 'a'$"):
        fit(data, data.y, layout, Settings("classification"), track)


def test_errors_stand_beside_those_of_the_baseline():
    y = np.array(["a", "b", "b", "c"])
    data = Matrix("a.npz", np.arange(4.0)[:, None], y)
    layout, _ = learn_layout(data, "y")
    model = fit(data, y, layout, Settings("classification", 3, 1.0), track)
    assert model.layout.baseline == "b"
    measured = measure(y, np.array(["a", "a", "b", "c"]), model.estimator, model.layout)
    assert (measured.error, measured.baseline, measured.n_rows) == (0.25, 0.5, 4)
    y = np.array([0.5, 1.0, 3.0, 3.5])
    data = Matrix("a.npz", np.arange(4.0)[:, None], y)
    layout, _ = learn_layout(data, "y")
    model = fit(data, y, layout, Settings("regression", 2, 1.0), track)
    assert model.layout.baseline == 2.0
    measured = measure(y, y + 1, model.estimator, model.layout)
    assert measured.error == 1.0
    assert measured.baseline == pytest.approx(y.std())


def test_the_loss_and_its_ridge_reach_the_estimators():
    plain = Settings("regression").estimator(100, 1.0, 5)
    assert (plain.loss, plain.alpha, plain.selection) == ("squared_error", "auto", "loss")
    assert plain.refit_every == 1
    given = Settings("regression", alpha=0.0, loss="huber")
    for model in (given.estimator(100, 1.0, 5), given.cross_validated(100, 1.0, 5)):
        assert (model.loss, model.alpha, model.selection) == ("huber", 0.0, "squared_error")
        assert model.refit_every == table_fit.REFIT_EVERY


YARDSTICKS = {
    "squared_error": (SquaredError(), 2.0, np.sqrt(0.25 * (1 + 1 + 4 + 0))),
    "huber": (Huber(), 1.5, 1.0),
    "absolute_error": (AbsoluteError(), 1.5, 1.0),
    # 0.9 * 1 for the one below its target, 0.1 * (1 + 2) for the two above
    "quantile": (Quantile(0.9), 4.1, 0.25 * (0.9 + 0.1 + 0.2)),
    "poisson": (Poisson(), 2.0, 0.5 * (np.log(0.5) + 1 + 2 * np.log(2) - 1 + 2)),
}


@pytest.mark.parametrize("name", YARDSTICKS)
def test_a_loss_brings_its_own_error_and_constant(name):
    loss, constant, expected = YARDSTICKS[name]
    y = np.array([1.0, 2.0, 0.0, 5.0])
    measure = yardstick("regression", SimpleNamespace(loss_=loss))
    assert measure.best(y) == pytest.approx(constant)
    predicted = np.array([2.0, 1.0, 2.0, 5.0])
    assert measure.error(y, predicted) == pytest.approx(expected)


def test_a_count_predicted_as_zero_has_a_finite_deviance():
    assert np.isfinite(mean_deviance(np.array([1.0, 0.0]), np.zeros(2)))


def test_counts_below_zero_are_refused_for_poisson_only():
    data = Matrix("a.npz", np.ones((3, 1)), np.array([0.0, -2.0, -1.0]))
    layout, _ = learn_layout(data, "y", task="regression")
    for loss in ("huber", Quantile(0.3)):
        table_fit.check_targets(data, data.y, layout, loss)
    for loss in ("poisson", Poisson()):
        with pytest.raises(DataError, match=r"^a.npz: row 2: column 'y': -2 is below zero"):
            table_fit.check_targets(data, data.y, layout, loss)


def test_the_held_out_error_is_that_of_refits():
    X, y = waves()
    data = Matrix("a.npz", X, y)
    layout, _ = learn_layout(data, "y", scale=False)
    settings = Settings("regression", n_components=10, gamma=0.5)
    model = fit(data, y, layout, settings, track)
    measured = held_out_error(model.X, y, model.estimator, model.layout, settings, track)
    loss = brute_force_loss(X, y, 0.5, 10, folds(y, settings))
    assert measured.error**2 == pytest.approx(loss)
    assert measured.baseline == pytest.approx(y.std())
