"""Folds: rows held out, and paths equal to fits on each training part."""

import threading

import numpy as np
import pandas as pd
import pytest
import reference
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit._validation import Samples
from pursuit.base.cross_validation import index_splits
from pursuit.dictionary import Dictionary, draw_candidates, given_centres, training_rows
from pursuit.greedy.make_pursuit import Method
from pursuit.kernels import RBF
from pursuit.matching_pursuit.cross_validation import FoldPaths, hold_out

P = awkward()
USED = np.flatnonzero(P.weights > 0)
NUMBERS = Samples(P.X, P.Y, P.weights)
CLASSES = Samples(P.X, as_targets(P.labels), P.weights)


# Held-out rows.


@pytest.mark.parametrize("classifier", [True, False])
def test_hold_out(classifier):
    samples = CLASSES if classifier else NUMBERS
    options = {"classifier": classifier, "random_state": 3}
    train, test = hold_out(samples, USED, 0.25, **options)
    assert_array_equal(np.sort(np.concatenate([train, test])), USED)
    assert_array_equal(train, np.sort(train))
    assert_array_equal(test, np.sort(test))
    assert len(test) == 14
    for again, part in zip(hold_out(samples, USED, 0.25, **options), (train, test), strict=True):
        assert_array_equal(again, part)
    if classifier:
        for c in ("ant", "mole", "zebra"):
            expected = 14 * np.mean(P.labels[USED] == c)
            assert abs(np.sum(P.labels[test] == c) - expected) <= 1


# Paths.


def paths(dictionary, splits, complete=True, alpha=0.0, fit_intercept=True, fitting="prefit"):
    route = "gram" if complete else "direct"
    return FoldPaths(dictionary, NUMBERS, splits, Method(fitting, fit_intercept, alpha, route))


SPLITS = {
    # Overlapping and incomplete parts: neither must be the complement of the other.
    "overlapping": [(USED[:40], USED[40:]), (USED[10:30], USED[25:50]), (USED, USED)],
    "folds": [(np.setdiff1d(USED, USED[k::3]), USED[k::3]) for k in range(3)],
    # Some rows are never left out, and one split leaves out none.
    "some": [(USED[12:], USED[:12]), (USED, USED[:9]), (np.delete(USED, slice(15, 30)), USED[5:])],
}


@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("fitting", ["prefit", "backfit", "basic"])
def test_losses_equal_those_of_a_fit_on_the_training_part(fitting, fit_intercept, complete, splits):
    dictionary = training_rows(RBF(0.3), P.X, USED)
    options = {"fit_intercept": fit_intercept, "fitting": fitting}
    folds = paths(dictionary, SPLITS[splits], complete=complete, alpha=0.02, **options)
    assert (folds.left_out is None) == (splits == "overlapping")
    D = reference.rbf(P.X, P.X, 0.3)

    def pursuit(D, Y, weights, barred):
        return reference.PURSUITS[fitting](D, Y, weights, 5, 0.02, fit_intercept, barred)

    expected = reference.cross_validation(pursuit, D, P.Y, P.weights, SPLITS[splits], 5)
    for k, losses in enumerate(expected):
        assert_allclose(folds.follow(k, [5])[1], losses, rtol=1e-8)
        assert_allclose(folds.follow(k, [5])[1], losses, rtol=1e-8)  # and again


def test_folds_are_not_kept_where_their_sums_do_not_fit_in_memory():
    dictionary = training_rows(RBF(0.3), P.X, USED)
    with config_context(working_memory=8 * 2 * len(USED) ** 2 / 2**20):  # of two of the three
        folds = paths(dictionary, SPLITS["folds"])
    assert folds.left_out is None
    kept = paths(dictionary, SPLITS["folds"])
    assert_allclose(folds.follow(1, [5])[1], kept.follow(1, [5])[1], rtol=1e-10)


def test_a_path_that_ends_early_repeats_its_last_loss():
    centres = np.array([[5.0, -3.0, 2.0, 40.0], [6.0, -2.0, 2.5, 40.0]])
    folds = paths(given_centres(RBF(0.3), centres, 4), [(USED[:40], USED[40:])])
    losses = folds.follow(0, [6])[1]
    assert losses.shape == (6,)
    assert losses[0] != losses[1]
    assert_array_equal(losses[1:], losses[1])


@pytest.mark.parametrize("complete", [True, False])
def test_a_path_of_no_steps_has_the_loss_of_the_mean(complete):
    rows = np.array([50, 53])
    dictionary = Dictionary(training_rows(RBF(0.3), P.X, rows).atoms, rows)
    train, test = USED[:30], USED[30:]  # both atoms are held out
    losses = paths(dictionary, [(train, test)], complete=complete).follow(0, [3])[1]
    mean = np.average(P.Y[train], axis=0, weights=P.weights[train])
    errors = ((P.Y[test] - mean) ** 2).mean(axis=1)
    assert_allclose(losses, np.full(3, np.average(errors, weights=P.weights[test])), rtol=1e-12)


@pytest.mark.parametrize("fold", [np.arange(60) % 3, np.r_[np.full(6, -1), np.arange(54) % 4]])
def test_predefined_split_counts_all_rows(fold, rng):
    X, y, weights = rng.normal(size=(60, 2)), rng.normal(size=60), np.ones(60)
    weights[:7] = 0.0
    model = KernelMatchingPursuitRegressorCV(4, gammas=[0.5], cv=PredefinedSplit(fold))
    model.fit(X, y, weights)
    pairs = list(PredefinedSplit(fold).split())
    same = KernelMatchingPursuitRegressorCV(4, gammas=[0.5], cv=pairs).fit(X, y, weights)
    assert_allclose(model.cv_loss_path_, same.cv_loss_path_, rtol=1e-12)
    with pytest.raises(ValueError, match="cv: test_fold has 60 entries, but X has 59 rows"):
        model.fit(X[1:], y[1:])


def test_more_folds_than_samples_is_an_error_about_cv(rng):
    with pytest.raises(ValueError, match="cv=5: .*5"):
        KernelMatchingPursuitRegressorCV(2).fit(rng.normal(size=(3, 2)), np.arange(3.0))


def test_few_samples_are_held_out_by_class(rng):
    X = rng.normal(size=(6, 2))
    model = KernelMatchingPursuitClassifier(2, early_stopping=True, random_state=0)
    model.fit(X, list("ababab"))
    assert len(model.validation_loss_path_) == len(model.train_loss_path_)
    with pytest.raises(ValueError, match="1 of the rarest class.*change early_stopping"):
        model.fit(X, list("aaaaab"))
    with pytest.raises(ValueError, match="there are 1 in all.*validation_fraction"):
        KernelMatchingPursuitRegressor(2, early_stopping=True).fit(X[:1], [1.0])


def test_errors_about_held_out_samples_name_x_val(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    model = KernelMatchingPursuitClassifier(2, early_stopping=True)
    with pytest.raises(ValueError, match="Input X_val contains NaN"):
        model.fit(X, y, X_val=np.full((3, 2), np.nan), y_val=y[:3])
    with pytest.raises(ValueError, match="X_val has 1 features"):
        model.fit(X, y, X_val=X[:, :1], y_val=y)


# Scores, rules and groups.

GROUPS = np.arange(60) // 4


def plain_scores(model, splits, y, scoring):
    """Fit each fold of each gamma anew; `model` is the search."""
    single = {
        KernelMatchingPursuitClassifierCV: KernelMatchingPursuitClassifier,
        KernelMatchingPursuitRegressorCV: KernelMatchingPursuitRegressor,
    }[type(model)]
    scorer = get_scorer(scoring)
    scores = []
    for gamma in model.gammas_:
        for n in range(1, model.n_components + 1):
            fits = [single(n, gamma=gamma).fit(P.X[a], y[a], P.weights[a]) for a, _ in splits]
            scores.append(
                [
                    scorer(fit, P.X[b], y[b], sample_weight=P.weights[b])
                    for fit, (_, b) in zip(fits, splits, strict=True)
                ]
            )
    return np.array(scores)


@pytest.mark.parametrize(
    ("estimator", "y", "scoring"),
    [
        (KernelMatchingPursuitClassifierCV, P.labels, "balanced_accuracy"),
        (KernelMatchingPursuitClassifierCV, P.labels, "neg_log_loss"),
        (KernelMatchingPursuitRegressorCV, P.Y, "r2"),
        (KernelMatchingPursuitRegressorCV, P.Y[:, 0], "neg_mean_absolute_error"),
    ],
)
def test_scores_equal_those_of_plain_fits(estimator, y, scoring):
    model = estimator(4, gammas=[0.1, 0.5], cv=3, scoring=scoring).fit(P.X, y, P.weights)
    splits = index_splits(3, CLASSES if y.dtype.kind == "U" else NUMBERS, classifier=y is P.labels)
    expected = plain_scores(model, splits, y, scoring)
    results = model.cv_results_
    found = np.stack([results[f"split{i}_test_score"] for i in range(3)], axis=1)
    assert_allclose(found, expected, rtol=1e-6)
    best = expected.mean(axis=1).max()
    assert_allclose(model.best_score_, best, rtol=1e-6)
    assert model.best_params_ == {"gamma": model.gamma_, "n_components": model.n_iter_}
    assert results["params"][model.best_index_] == model.best_params_
    assert model.cv_loss_path_.shape == (2, 3, 4)


def test_without_a_score_the_loss_decides():
    model = KernelMatchingPursuitRegressorCV(5, gammas=[0.1, 0.5], cv=3).fit(P.X, P.Y, P.weights)
    mean = model.cv_loss_path_.mean(axis=1)
    assert_array_equal(model.cv_results_["mean_test_score"], -mean.ravel())
    assert model.best_score_ == -mean.min()
    assert_array_equal(model.cv_results_["param_gamma"], np.repeat([0.1, 0.5], 5))
    assert_array_equal(model.cv_results_["param_n_components"], np.tile(np.arange(1, 6), 2))


@pytest.mark.parametrize(
    ("search", "single", "y"),
    [
        (KernelMatchingPursuitClassifierCV, KernelMatchingPursuitClassifier, P.labels),
        (KernelMatchingPursuitRegressorCV, KernelMatchingPursuitRegressor, P.Y),
    ],
)
def test_the_search_makes_do_with_few_candidates(search, single, y):
    options = {"gammas": [0.1, 0.5], "cv": 3, "random_state": 3}
    few = search(5, search_candidates=15, **options).fit(P.X, y, P.weights)
    drawn = search(5, n_candidates=15, **options).fit(P.X, y, P.weights)
    assert_array_equal(few.cv_loss_path_, drawn.cv_loss_path_)
    final = single(few.n_iter_, gamma=few.gamma_).fit(P.X, y, P.weights)
    assert_array_equal(few.support_, final.support_)
    assert not np.isin(few.support_, draw_candidates(USED, 15, 3, P.X)).all()


def test_search_candidates_are_checked():
    for options, message in (
        ({"search_candidates": 0}, "search_candidates must be None, a positive"),
        ({"search_candidates": 5, "dictionary": P.X[:3]}, "search_candidates has no meaning"),
    ):
        with pytest.raises(ValueError, match=message):
            KernelMatchingPursuitRegressorCV(2, gammas=[0.5], cv=3, **options).fit(P.X, P.Y)


def test_the_search_has_a_thousand_candidates_by_default(rng):
    X = rng.standard_normal((1050, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    fits = [
        KernelMatchingPursuitRegressorCV(
            n, gammas=[0.5], cv=3, random_state=0, search_candidates=asked
        )
        .fit(X, y)
        .cv_loss_path_
        for n, asked in ((4, None), (4, 1000), (4, 1.0), (210, None), (210, 1.0))
    ]
    assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()
    assert_array_equal(fits[3], fits[4])


@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}])
def test_one_standard_error_takes_fewer_components(options):
    least = KernelMatchingPursuitClassifierCV(12, gammas=[0.1, 0.5], cv=3, **options)
    least.fit(P.X, P.labels, P.weights)
    model = clone(least).set_params(rule="one_se").fit(P.X, P.labels, P.weights)
    assert_array_equal(model.cv_loss_path_, least.cv_loss_path_)
    losses = least.cv_loss_path_[least.gammas_.index(least.gamma_), :, least.n_iter_ - 1]
    error = losses.std(ddof=1) / np.sqrt(3)
    within = model.cv_loss_path_.mean(axis=1) <= losses.mean() + error
    assert model.n_iter_ == within.any(axis=0).argmax() + 1 < least.n_iter_
    again = KernelMatchingPursuitClassifier(model.n_iter_, gamma=model.gamma_, **options)
    again.fit(P.X, P.labels, P.weights)
    assert_allclose(model.decision_function(P.X), again.decision_function(P.X), rtol=1e-8)
    with pytest.raises(ValueError, match="rule must be one of"):
        clone(least).set_params(rule="max").fit(P.X, P.labels)


def test_a_weight_is_a_repeated_row():
    folds = np.arange(60) % 3
    counts = P.weights.astype(int)
    rows = np.repeat(np.arange(60), counts)
    options = {"gammas": [0.1, 0.5], "scoring": "accuracy", "rule": "one_se"}
    weighted = KernelMatchingPursuitClassifierCV(5, cv=PredefinedSplit(folds), **options)
    repeated = KernelMatchingPursuitClassifierCV(5, cv=PredefinedSplit(folds[rows]), **options)
    weighted.fit(P.X, P.labels, counts)
    repeated.fit(P.X[rows], P.labels[rows])
    assert weighted.best_params_ == repeated.best_params_
    for i in range(3):
        name = f"split{i}_test_score"
        assert_allclose(weighted.cv_results_[name], repeated.cv_results_[name], rtol=1e-12)


def test_a_callable_sees_held_out_rows_alone(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    seen = []

    def score(model, rows, labels):
        seen.append({X[:, 0].tolist().index(value) for value in rows[:, 0]})
        assert labels.dtype == y.dtype
        return float(np.mean(model.predict(rows) == labels))

    table = pd.DataFrame(X, columns=["a", "b"])
    model = KernelMatchingPursuitClassifierCV(3, gammas=[0.5], cv=KFold(3), scoring=score)
    model.fit(table, y)
    assert seen == [set(range(10 * i, 10 * i + 10)) for i in range(3) for _ in range(3)]
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_groups_reach_the_folds():
    model = KernelMatchingPursuitClassifierCV(3, gammas=[0.5], cv=3)
    model.fit(P.X, P.labels, groups=GROUPS)
    pairs = index_splits(3, CLASSES._replace(weights=np.ones(60)), classifier=True, groups=GROUPS)
    same = clone(model).set_params(cv=pairs).fit(P.X, P.labels)
    assert_array_equal(model.cv_loss_path_, same.cv_loss_path_)


def test_groups_are_routed():
    with config_context(enable_metadata_routing=True):
        model = KernelMatchingPursuitClassifierCV(3, gammas=[0.5], cv=GroupKFold(3))
        pipeline = make_pipeline(StandardScaler(), model).fit(P.X, P.labels, groups=GROUPS)
        with pytest.raises(ValueError, match="groups"):
            make_pipeline(StandardScaler(), model).fit(P.X, P.labels)
        refused = make_pipeline(StandardScaler(), clone(model).set_fit_request(groups=False))
        with pytest.raises(TypeError, match="groups"):
            refused.fit(P.X, P.labels, groups=GROUPS)
    assert pipeline[-1].cv_loss_path_.shape == (1, 3, 3)


def test_precomputed_kernels_and_empty_paths_have_scores():
    K = np.exp(-0.3 * ((P.X[:, None] - P.X) ** 2).sum(axis=2))
    options = {"scoring": "r2", "cv": 3}
    ours = KernelMatchingPursuitRegressorCV(4, kernel="precomputed", **options).fit(K, P.Y)
    same = KernelMatchingPursuitRegressorCV(4, gamma=0.3, **options).fit(P.X, P.Y)
    assert_allclose(
        ours.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"], rtol=1e-6
    )
    flat = KernelMatchingPursuitRegressorCV(3, gammas=[0.5], **options)
    with pytest.warns(ConvergenceWarning, match="ended after 0 steps"):
        flat.fit(P.X, np.ones(60))
    assert flat.best_params_["n_components"] == 1
    assert_array_equal(flat.cv_results_["mean_test_score"], 1.0)


def test_values_of_gamma_at_the_same_time_give_the_same(rng):
    X, y, threads = rng.normal(size=(60, 2)), rng.integers(3, size=60), set()

    def accuracy(model, X, y):
        threads.add(threading.current_thread() is threading.main_thread())
        return model.score(X, y)

    alone = KernelMatchingPursuitClassifierCV(4, gammas=[0.1, 1.0], cv=3, scoring=accuracy)
    alone.fit(X, y)
    assert threads == {True}
    with parallel_config(backend="threading"):
        together = clone(alone).set_params(n_jobs=2).fit(X, y)
    assert threads == {True, False}
    assert_array_equal(together.cv_loss_path_, alone.cv_loss_path_)
    assert_array_equal(
        together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    assert_array_equal(together.decision_function(X), alone.decision_function(X))
