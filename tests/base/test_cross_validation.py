"""Choosing by cross-validation: which rows, which gammas, which candidate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)

from pursuit._validation import Samples
from pursuit.base.cross_validation import (
    GAMMA_FACTORS,
    Rows,
    best_candidate,
    gamma_grid,
    index_splits,
    resolve_scorer,
    search_results,
)
from pursuit.kernels import RBF, scale_gamma

P = awkward()
USED = np.flatnonzero(P.weights > 0)
NUMBERS = Samples(P.X, P.Y, P.weights)
CLASSES = Samples(P.X, as_targets(P.labels), P.weights)


def assert_same_splits(found, expected):
    assert len(found) == len(expected)
    for (train, test), (expected_train, expected_test) in zip(found, expected, strict=True):
        assert_array_equal(train, expected_train)
        assert_array_equal(test, expected_test)


# Which rows.


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0), LeaveOneOut()])
def test_a_number_or_a_splitter_divides_the_rows_of_positive_weight(cv):
    splitter = KFold(cv) if isinstance(cv, int) else cv
    expected = [(USED[a], USED[b]) for a, b in splitter.split(USED)]
    assert_same_splits(index_splits(cv, NUMBERS, classifier=False), expected)


@pytest.mark.parametrize(
    "cv", [4, RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1)]
)
def test_a_classifier_keeps_the_shares_of_all_three_classes(cv):
    splitter = StratifiedKFold(cv) if isinstance(cv, int) else cv
    expected = [(USED[a], USED[b]) for a, b in splitter.split(USED, P.labels[USED])]
    found = index_splits(cv, CLASSES, classifier=True)
    assert_same_splits(found, expected)
    for _, test in found:
        shares = [np.mean(P.labels[test] == c) for c in ("ant", "mole", "zebra")]
        whole = [np.mean(P.labels[USED] == c) for c in ("ant", "mole", "zebra")]
        assert_allclose(shares, whole, atol=0.1)


def test_two_classes_are_told_apart_by_sign():
    Y = as_targets(np.where(P.labels == "ant", "yes", "no"))
    found = index_splits(3, CLASSES._replace(Y=Y), classifier=True)
    expected = StratifiedKFold(3).split(USED, Y[USED, 0])
    assert_same_splits(found, [(USED[a], USED[b]) for a, b in expected])


@pytest.mark.parametrize("mask", [True, False])
def test_pairs_speak_of_all_rows(mask):
    parts = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    given = [tuple(np.isin(np.arange(60), p) if mask else p for p in pair) for pair in parts]
    expected = [(np.intersect1d(a, USED), np.intersect1d(b, USED)) for a, b in parts]
    assert_same_splits(index_splits(given, NUMBERS, classifier=False), expected)
    assert_same_splits(index_splits(iter(given), NUMBERS, classifier=False), expected)


def test_bad_splits():
    unused = np.flatnonzero(P.weights == 0)
    for cv in ([], [(np.arange(60), [])], [(unused, USED)], [(USED, unused)]):
        with pytest.raises(ValueError, match="cv: every split needs training and test rows"):
            index_splits(cv, NUMBERS, classifier=False)
    for cv in ("five", 1, 1.5, GroupKFold(3)):
        with pytest.raises(ValueError, match="cv|n_splits|k-fold|groups"):
            index_splits(cv, NUMBERS, classifier=False)


# Which gammas.


def test_grid():
    scale = scale_gamma(P.X[USED], P.weights[USED])
    grid = gamma_grid(None, "rbf", "scale", NUMBERS)
    assert_allclose(grid, [scale * factor for factor in GAMMA_FACTORS], rtol=1e-12)
    assert gamma_grid(None, "rbf", 0.3, NUMBERS) == [0.3]
    assert gamma_grid(None, "rbf", "auto", NUMBERS) == ["auto"]
    for kernel in ("linear", "cosine", "precomputed", RBF(2.0), np.dot):
        assert gamma_grid(None, kernel, "scale", NUMBERS) == ["scale"]
    for gammas in ([0.5, 2], (0.5, 2.0), np.array([0.5, 2.0])):
        assert gamma_grid(gammas, "laplacian", "scale", NUMBERS) == [0.5, 2.0]
    assert gamma_grid(0.7, "sigmoid", "scale", NUMBERS) == [0.7]


@pytest.mark.parametrize(
    "gammas", [[], [0.0], [1.0, -1.0], [np.nan], [np.inf], "wide", ["a"], [None]]
)
def test_bad_grid(gammas):
    with pytest.raises(ValueError, match="gammas must"):
        gamma_grid(gammas, "rbf", "scale", NUMBERS)


def test_grid_without_meaning():
    with pytest.raises(ValueError, match="gammas has no meaning for kernel='linear'"):
        gamma_grid([1.0], "linear", "scale", NUMBERS)


# Groups.

GROUPS = np.arange(60) // 4


@pytest.mark.parametrize("classifier", [True, False])
@pytest.mark.parametrize(
    ("cv", "n_splits"), [(3, 3), (None, 5), (GroupKFold(4), 4), (LeaveOneGroupOut(), 15)]
)
def test_groups_are_never_split(cv, n_splits, classifier):
    samples = CLASSES if classifier else NUMBERS
    splits = index_splits(cv, samples, classifier=classifier, groups=GROUPS.astype(str))
    assert len(splits) == n_splits
    for train, test in splits:
        assert not set(GROUPS[train]) & set(GROUPS[test])
        assert_array_equal(np.sort(np.concatenate([train, test])), USED)


def test_bad_groups():
    with pytest.raises(ValueError, match="groups has 59 entries, but X has 60 rows"):
        index_splits(3, NUMBERS, classifier=False, groups=GROUPS[1:])
    pairs = [(np.arange(40), np.arange(40, 60))]
    for cv in (pairs, PredefinedSplit(np.arange(60) % 3)):
        with pytest.raises(ValueError, match="groups has no meaning where cv lists the splits"):
            index_splits(cv, NUMBERS, classifier=False, groups=GROUPS)
    with pytest.raises(ValueError, match="cv=99: "):
        index_splits(99, NUMBERS, classifier=False, groups=GROUPS)


# Which candidate.

# Means 0.5, 0.71, 0.75, 0.8, 0.7; the standard error of the best is 0.0577.
SCORES = np.array(
    [[0.5, 0.61, 0.65, 0.7, 0.7], [0.5, 0.71, 0.75, 0.8, 0.7], [0.5, 0.81, 0.85, 0.9, 0.7]]
)
SIZE = [1, 2, 3, 4, 5]


def test_min_is_the_best_mean_and_one_se_the_simplest_within_one_standard_error():
    assert_allclose(SCORES[:, 3].std(ddof=1) / np.sqrt(3), 0.0577, atol=1e-4)
    assert best_candidate(SCORES, [SIZE], "min") == 3
    assert best_candidate(SCORES, [SIZE], "one_se") == 2
    assert best_candidate(SCORES, [[5, 4, 3, 2, 1]], "one_se") == 3
    twice = np.repeat(SCORES, 2, axis=1)
    assert best_candidate(twice, [np.repeat(SIZE, 2)], "one_se") == 4  # the first of equals


def test_more_keys_settle_what_the_first_leaves_open():
    flat = np.zeros((2, 4))
    assert best_candidate(flat, [[2, 1, 1, 1], [0, 3, 2, 2]], "min") == 2
    rising = np.array([[0.0, 0.1, 0.2, 0.3], [1.0, 1.1, 1.2, 1.3]])
    # Of equally simple ones within the standard error the best.
    assert best_candidate(rising, [[1, 1, 1, 2]], "one_se") == 2


def test_one_split_has_no_standard_error():
    assert best_candidate(SCORES[:1], [SIZE], "one_se") == 3


def test_scores_that_are_no_numbers_are_the_worst():
    scores = np.array([[np.nan, 0.1, 0.2], [1.0, np.nan, 0.2]])
    assert best_candidate(scores, [[1, 2, 3]], "one_se") == 2
    assert search_results([{"a": 1}] * 3, scores)["rank_test_score"].tolist() == [2, 2, 1]
    with pytest.raises(ValueError, match="no candidate has a score that is a number"):
        best_candidate(scores[:, :2], [[1, 2]], "min")


def test_the_table_is_that_of_a_grid_search():
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 1.0, 10.0], "tol": [1e-4]}, cv=3)
    search.fit(P.X, P.Y[:, 0])
    expected = search.cv_results_
    scores = np.array([expected[f"split{i}_test_score"] for i in range(3)])
    found = search_results(expected["params"], scores)
    assert found.keys() == {name for name in expected if "time" not in name}
    for name, values in found.items():
        if name == "params":
            assert values == expected[name]
        else:
            assert_allclose(values, np.asarray(expected[name], dtype=float), rtol=1e-12)


def test_a_column_of_no_numbers_holds_objects():
    params = [{"metric": metric} for metric in (None, "full", 3)]
    column = search_results(params, np.zeros((2, 3)))["param_metric"]
    assert column.dtype == object
    assert column.tolist() == [None, "full", 3]


# How good.


def test_scores_are_weighted_where_the_metric_takes_weights():
    X, y, weights = P.X[:20], np.arange(20) % 2, np.arange(20.0)
    model = DummyClassifier().fit(X, y)
    rows, plain = Rows(X, y, weights), Rows(X, y, None)
    share = weights[y == 0].sum() / weights.sum()
    for scoring in (None, "accuracy", make_scorer(accuracy_score)):
        score = resolve_scorer(model, scoring)
        assert_allclose(score(model, rows), share)
        assert_allclose(score(model, plain), 0.5)

    def without(estimator, X, y):
        return estimator.score(X, y)

    assert_allclose(resolve_scorer(model, without)(model, rows), 0.5)
    for scoring in (["accuracy"], {"a": "accuracy"}):
        with pytest.raises(ValueError, match="scoring must be a name, a callable or None"):
            resolve_scorer(model, scoring)
    with pytest.raises(ValueError, match="scoring must give a number"):
        resolve_scorer(model, lambda estimator, X, y: {"a": 1.0})(model, rows)
    with pytest.raises(ValueError, match="scoring"):
        resolve_scorer(model, "beauty")
