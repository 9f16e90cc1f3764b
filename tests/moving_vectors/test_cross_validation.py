"""The search over gamma, C and metrics: equal to plain fits from the same starts."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import pursuit
from pursuit import (
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelRegressor,
    SparseKernelRegressorCV,
    frontier,
)
from pursuit.kernels import scale_gamma
from pursuit.moving_vectors.cross_validation import outwards

IRIS, SPECIES = load_iris(return_X_y=True)
ROWS = np.random.default_rng(1).permutation(len(IRIS))[:60]
X, Y = IRIS[ROWS], np.array(["b", "a", "c"])[SPECIES[ROWS]]
GROUPS = np.arange(60) // 4
GRID = {"gammas": [0.1, 0.4, 1.6], "Cs": [1.0, 10.0, 100.0]}
RULES = ("min", "one_se")
OPTIONS = {"max_iter": 6, "search_iter": 2, "random_state": 0}


def search(**changes):
    return SparseKernelClassifierCV(4, **{**GRID, **OPTIONS, **changes})


@pytest.fixture(scope="module")
def fitted():
    return search().fit(X, Y)


def plain_scores(plain, splits, y, weights=None, **options):
    """Walk the grid of each fold by hand."""
    seeds = check_random_state(0).randint(2**31 - 1, size=len(splits))
    weights = np.ones(len(X)) if weights is None else weights
    return np.array(
        [
            walk(plain, split, y, weights, random_state=seed, **options)
            for split, seed in zip(splits, seeds.tolist(), strict=True)
        ]
    )


def walk(plain, split, y, weights, **options):
    """The middle gamma, then its neighbours, each along C."""
    train, test = (
        [X[rows], y[rows], weights[rows] if len(weights) > 2 else None] for rows in split
    )
    models = {}

    def fit(g, c, **start):
        values = {"gamma": GRID["gammas"][g], "C": GRID["Cs"][c], "max_iter": 6}
        models[g, c] = plain(4, **{**values, **options, **start}).fit(*train)

    fit(1, 1)
    for g in (0, 2):
        fit(g, 1, init=models[1, 1], max_iter=2)
    for g in range(3):
        for c in (0, 2):
            fit(g, c, init=models[g, 1], max_iter=2)
    return [models[g, c].score(*test) for g in range(3) for c in range(3)]


def table(model):
    n_splits = sum(name.startswith("split") for name in model.cv_results_)
    return np.array([model.cv_results_[f"split{i}_test_score"] for i in range(n_splits)])


def test_class_scores_equal_plain_fits_from_the_same_starts(fitted):
    splits = list(StratifiedKFold(3).split(X, Y))
    expected = plain_scores(SparseKernelClassifier, splits, Y)
    assert_allclose(table(fitted), expected, rtol=1e-12)
    assert fitted.best_score_ == expected.mean(axis=0).max()


@pytest.mark.parametrize("metric", [None, 2])
def test_number_scores_equal_plain_fits_from_the_same_starts(metric):
    y, weights = np.stack([X[:, 0] ** 2, np.sin(X[:, 1])], axis=1), np.arange(60) % 3
    used = np.flatnonzero(weights)
    splits = [(used[a], used[b]) for a, b in KFold(3).split(used)]
    model = SparseKernelRegressorCV(4, metric=metric, **GRID, **OPTIONS).fit(X, y, weights)
    expected = plain_scores(SparseKernelRegressor, splits, y, weights, metric=metric)
    assert_allclose(table(model), expected, rtol=1e-9)


def test_the_winner_is_a_plain_fit(fitted):
    best = fitted.best_params_
    plain = SparseKernelClassifier(4, **best, max_iter=6, random_state=0).fit(X, Y)
    assert_array_equal(fitted.decision_function(X), plain.decision_function(X))
    assert_array_equal(fitted.predict_proba(X), plain.predict_proba(X))
    assert fitted.kernel_.gamma == best["gamma"]
    assert (fitted.gamma, fitted.C, fitted.metric) == ("scale", 10.0, None)
    assert vars(plain).keys() - vars(fitted).keys() == set()
    assert fitted.n_iter_ == plain.n_iter_


def test_the_grid_of_the_defaults():
    model = SparseKernelRegressorCV(4, C=5.0, **OPTIONS).fit(X, X[:, 0])
    scale = scale_gamma(X, np.ones(60))
    results = model.cv_results_
    assert_allclose(np.unique(results["param_gamma"]), [scale / 4, scale, scale * 4])
    assert_allclose(np.unique(results["param_C"]), [0.5, 5.0, 50.0])
    assert set(results["param_metric"]) == {None}
    fixed = SparseKernelRegressorCV(4, gamma=0.3, **OPTIONS).fit(X, X[:, 0])
    assert_array_equal(fixed.cv_results_["param_gamma"], 0.3)
    linear = SparseKernelRegressorCV(2, kernel="linear", Cs=1.0, **OPTIONS).fit(X, X[:, 0])
    assert linear.best_params_ == {"C": 1.0, "gamma": "scale", "metric": None}


def test_one_standard_error_takes_a_smaller_price():
    y = np.sin(X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=60)
    least = SparseKernelRegressorCV(4, **GRID, **OPTIONS).fit(X, y)
    model = clone(least).set_params(rule="one_se").fit(X, y)
    scores = table(model)
    assert_array_equal(scores, table(least))
    best = scores.mean(axis=0).argmax()
    assert least.best_index_ == best
    error = scores[:, best].std(ddof=1) / np.sqrt(3)
    within = np.flatnonzero(scores.mean(axis=0) >= scores[:, best].mean() - error)
    candidates = [model.cv_results_["params"][i] for i in within]
    assert model.best_params_ == min(candidates, key=lambda p: (p["C"], p["gamma"]))
    assert model.best_params_["C"] < least.best_params_["C"]


def test_of_equal_scores_the_smallest_price_wins():
    equal = {(1.0, 1.6), (10.0, 0.1), (10.0, 0.4)}

    def score(model, rows, labels):
        return float((model.C, model.gamma) in equal)

    model = search(scoring=score).fit(X, Y)
    assert model.best_params_ == {"C": 1.0, "gamma": 1.6, "metric": None}
    assert (model.cv_results_["rank_test_score"] == 1).sum() == 3


def test_metrics_are_compared():
    options = {**OPTIONS, "max_iter": 3, "gammas": [0.2], "Cs": [10.0], "cv": 2}
    model = SparseKernelClassifierCV(4, metrics=(None, "diagonal", 2), **options).fit(X, Y)
    assert model.cv_results_["param_metric"].tolist() == [None, "diagonal", 2]
    assert model.best_params_["metric"] in (None, "diagonal", 2)
    alone = SparseKernelClassifierCV(4, metrics="diagonal", **options).fit(X, Y)
    assert_array_equal(table(alone)[:, 0], table(model)[:, 1])
    assert alone.metric_.shape == (4, 4)
    moved = SparseKernelClassifierCV(4, learn_gamma=True, cv=2, Cs=[1.0], **OPTIONS).fit(X, Y)
    assert_allclose(moved.cv_results_["param_gamma"], [scale_gamma(X, np.ones(60))])


def test_a_metric_goes_on_from_that_of_the_neighbour():
    rounds = []

    def score(model, rows, labels):
        rounds.append(len(model.metric_losses_))
        return 1.0

    options = {**OPTIONS, "max_iter": 2, "metric": "diagonal", "gammas": [0.2], "cv": 2}
    model = SparseKernelClassifierCV(3, Cs=[1.0, 10.0], scoring=score, **options).fit(X, Y)
    assert rounds == [4, 2] * 2
    assert len(model.metric_losses_) == 4


def test_the_search_starts_in_the_middle():
    order = outwards(3, 2)
    assert order[0] == ((1, 1), None)
    seen = set()
    for cell, neighbour in order:
        assert neighbour is None or neighbour in seen
        assert neighbour is None or sum(abs(np.subtract(cell, neighbour))) == 1
        seen.add(cell)
    assert len(seen) == len(order) == 6


def test_groups_are_never_split():
    seen = []

    def score(model, rows, labels):
        held = {int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows}
        seen.append({GROUPS[i] for i in held})
        assert held == {i for i in range(60) if GROUPS[i] in seen[-1]}
        return 1.0

    for cv in (3, GroupKFold(3)):
        search(cv=cv, scoring=score, gammas=[0.1], Cs=[1.0]).fit(X, Y, groups=GROUPS)
    assert set().union(*seen[:3]) == set().union(*seen[3:]) == set(GROUPS)
    with config_context(enable_metadata_routing=True):
        model = search(cv=GroupKFold(3), gammas=[0.1], Cs=[1.0])
        make_pipeline(StandardScaler(), model).fit(X, Y, groups=GROUPS)


def test_a_callable_sees_held_out_rows_alone():
    seen = []

    def score(model, rows, labels):
        seen.append(rows.copy())
        assert set(labels) <= set("abc")
        return float(np.mean(model.predict(rows) == labels))

    splits = [(np.arange(30), np.arange(30, 45)), (np.arange(15, 60), np.arange(15))]
    frame = pd.DataFrame(X, columns=list("pqrs"))
    model = search(cv=splits, scoring=score, gammas=[0.2], Cs=[1.0, 10.0]).fit(frame, Y)
    assert len(seen) == 4
    for i, rows in enumerate(seen):
        assert_array_equal(rows, X[splits[i // 2][1]])
    assert model.feature_names_in_.tolist() == list("pqrs")
    assert_array_equal(model.predict(frame), model.predict(frame))


def test_weights_count_rows():
    start, folds = X[:4] + 0.01, np.arange(60) % 3
    counts = np.arange(60) % 4
    rows = np.repeat(np.arange(60), counts)

    def splits(fold):
        return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(3)]

    weighted = search(init=start, cv=splits(folds)).fit(X, Y, counts)
    repeated = search(init=start, cv=splits(folds[rows])).fit(X[rows], Y[rows])
    assert_allclose(table(weighted), table(repeated), rtol=1e-9)
    assert weighted.best_params_ == repeated.best_params_
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)


def test_several_jobs_and_several_fits_give_the_same(fitted):
    with parallel_config(backend="threading"):
        again = clone(fitted).set_params(n_jobs=2).fit(X, Y)
    assert_array_equal(table(again), table(fitted))
    assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_a_warm_start_goes_on_from_the_last_vectors():
    model = search(warm_start=True, gammas=[0.4], Cs=[10.0], max_iter=2).fit(X, Y)
    first = model.energy_
    model.fit(X, Y)
    assert_allclose(model.energy_path_[0], first, rtol=1e-6)
    assert model.energy_ < first


def test_a_search_is_saved_and_loaded(tmp_path):
    model = search(metrics=(None, "diagonal"), gammas=[0.2], Cs=[1.0, 10.0], cv=2).fit(X, Y)
    pursuit.save(model, tmp_path / "model")
    loaded = pursuit.load(tmp_path / "model")
    assert type(loaded) is SparseKernelClassifierCV
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.best_params_ == model.best_params_
    assert loaded.cv_results_["params"] == model.cv_results_["params"]
    assert loaded.cv_results_["param_metric"].tolist() == [None, None, "diagonal", "diagonal"]
    assert vars(loaded).keys() == vars(model).keys()


def test_fewer_rows_in_a_fold_than_vectors_are_no_news():
    model = SparseKernelClassifierCV(40, gammas=[0.2], Cs=[1.0, 10.0], cv=3, **OPTIONS)
    assert model.fit(X[:50], Y[:50]).n_components_ == 40
    with pytest.warns(ConvergenceWarning, match="n_components=40, but 30 vectors"):
        model.fit(X[:30], Y[:30])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": []}, "Cs must hold at least one value"),
        ({"Cs": [1.0, 0.0]}, "Cs must be a finite number above 0"),
        ({"gammas": [-1.0]}, "gammas must be a finite number above 0"),
        ({"gammas": [1.0], "kernel": "linear"}, "gammas has no meaning for kernel='linear'"),
        ({"metrics": ["best"]}, "metrics must be one of"),
        ({"metrics": ()}, "metrics must hold at least one value"),
        ({"rule": "best"}, "rule must be one of"),
        ({"search_iter": -1}, "search_iter must be an integer of at least 0"),
        ({"scoring": ["accuracy"]}, "scoring must be a name, a callable or None"),
        ({"cv": 1}, "cv=1"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        search(**options).fit(X, Y)


@pytest.fixture(scope="module")
def sized():
    return search(gammas=[0.4], Cs=[10.0], sizes=[4, 2, 1]).fit(X, Y)


def paths_of_folds():
    """The winner of each fold, brought down on its training rows and scored on its test rows."""
    seeds = check_random_state(0).randint(2**31 - 1, size=3)
    options = {"gamma": 0.4, "C": 10.0, "max_iter": 6}
    for (train, test), seed in zip(StratifiedKFold(3).split(X, Y), seeds.tolist(), strict=True):
        plain = SparseKernelClassifier(4, random_state=seed, **options)
        held = {"X_val": X[test], "y_val": Y[test]}
        yield frontier(plain, X[train], Y[train], [4, 2, 1], max_iter=2, **held).scores


def test_the_folds_choose_the_number_of_vectors(sized):
    scores = np.array(list(paths_of_folds())).mean(axis=0)
    path = sized.frontier_
    assert_allclose(path.scores, scores, rtol=1e-12)
    assert_array_equal(path.n_components, [4, 2, 1])
    best = len(scores) - 1 - int(scores[::-1].argmax())
    assert sized.n_components_ == sized.best_params_["n_components"] == path.n_components[best]
    assert sized.best_score_ == scores.max() and sized.n_components == 4
    options = {"gamma": 0.4, "C": 10.0, "max_iter": 6, "random_state": 0}
    whole = frontier(SparseKernelClassifier(4, **options), X, Y, [4, 2, 1], max_iter=2)
    for ours, theirs in zip(path.models, whole.models, strict=True):
        assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    assert_array_equal(sized.predict_proba(X), path.models[best].predict_proba(X))


def test_one_standard_error_takes_fewer_vectors():
    y = X[:, 0] ** 2 + 0.5 * np.random.default_rng(0).normal(size=60)
    options = {"gammas": [0.4], "Cs": [10.0], "sizes": "auto", **OPTIONS}
    least, fewest = (SparseKernelRegressorCV(8, rule=r, **options).fit(X, y) for r in RULES)
    scores = least.frontier_.scores
    assert least.frontier_.n_components.tolist() == [8, 6, 4, 3, 2, 1]
    assert_array_equal(fewest.frontier_.scores, scores)
    assert least.best_score_ == scores.max()
    assert fewest.n_components_ < least.n_components_
    assert fewest.best_score_ == scores[fewest.frontier_.n_components == fewest.n_components_]


def test_a_fold_may_have_fewer_rows_than_vectors():
    model = search(gammas=[0.4], Cs=[1.0], cv=2, sizes=[10, 3]).set_params(n_components=10)
    model.fit(X[:12], Y[:12])
    assert_array_equal(model.frontier_.n_components, [10, 3])


def test_a_frontier_is_saved_where_smaller_models_are(sized, tmp_path):
    for staged in (False, True):
        pursuit.save(sized, tmp_path / "model", staged=staged)
        loaded = pursuit.load(tmp_path / "model")
        assert_array_equal(loaded.decision_function(X), sized.decision_function(X))
        assert (loaded.frontier_ is not None) == staged
    assert_array_equal(loaded.frontier_.scores, sized.frontier_.scores)
    assert_array_equal(
        loaded.frontier_.models[-1].predict(X), sized.frontier_.models[-1].predict(X)
    )


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("all", "sizes must be one of"),
        ([5, 2], "sizes: the model has 4 vectors, fewer than 5"),
        ([0], "sizes must be an integer of at least 1"),
        ([], "sizes"),
    ],
)
def test_sizes_out_of_range_are_named(sizes, message):
    with pytest.raises(ValueError, match=message):
        search(sizes=sizes).fit(X, Y)
