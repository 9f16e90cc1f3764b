"""Folds: which rows, which gammas, and paths equal to fits on each training part."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)

from pursuit._validation import Samples
from pursuit.dictionary import Dictionary, given_centres, training_rows
from pursuit.greedy.make_pursuit import Method
from pursuit.kernels import RBF, scale_gamma
from pursuit.matching_pursuit.cross_validation import (
    GAMMA_FACTORS,
    FoldPaths,
    gamma_grid,
    hold_out,
    index_splits,
)

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


@pytest.mark.parametrize("classifier", [True, False])
def test_hold_out(classifier):
    samples = CLASSES if classifier else NUMBERS
    options = {"classifier": classifier, "random_state": 3}
    train, test = hold_out(samples, USED, 0.25, **options)
    assert_array_equal(np.sort(np.concatenate([train, test])), USED)
    assert_array_equal(train, np.sort(train))
    assert_array_equal(test, np.sort(test))
    assert len(test) == 14
    assert_same_splits([hold_out(samples, USED, 0.25, **options)], [(train, test)])
    if classifier:
        for c in ("ant", "mole", "zebra"):
            expected = 14 * np.mean(P.labels[USED] == c)
            assert abs(np.sum(P.labels[test] == c) - expected) <= 1


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


# Paths.


def paths(dictionary, complete=True, alpha=0.0, fit_intercept=True, fitting="prefit"):
    route = "gram" if complete else "direct"
    return FoldPaths(dictionary, NUMBERS, Method(fitting, fit_intercept, alpha, route))


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("fitting", ["prefit", "backfit", "basic"])
def test_losses_equal_those_of_a_fit_on_the_training_part(fitting, fit_intercept, complete):
    dictionary = training_rows(RBF(0.3), P.X, USED)
    options = {"fit_intercept": fit_intercept, "fitting": fitting}
    folds = paths(dictionary, complete=complete, alpha=0.02, **options)
    D = reference.rbf(P.X, P.X, 0.3)

    def pursuit(D, Y, weights, barred):
        return reference.PURSUITS[fitting](D, Y, weights, 5, 0.02, fit_intercept, barred)

    # Overlapping and incomplete parts: neither must be the complement of the other.
    splits = [(USED[:40], USED[40:]), (USED[10:30], USED[25:50]), (USED, USED)]
    expected = reference.cross_validation(pursuit, D, P.Y, P.weights, splits, 5)
    for split, losses in zip(splits, expected, strict=True):
        assert_allclose(folds.losses(split, [5]), losses, rtol=1e-8)
        assert_allclose(folds.losses(split, [5]), losses, rtol=1e-8)  # and again


def test_a_path_that_ends_early_repeats_its_last_loss():
    centres = np.array([[5.0, -3.0, 2.0, 40.0], [6.0, -2.0, 2.5, 40.0]])
    folds = paths(given_centres(RBF(0.3), centres, 4))
    losses = folds.losses((USED[:40], USED[40:]), [6])
    assert losses.shape == (6,)
    assert losses[0] != losses[1]
    assert_array_equal(losses[1:], losses[1])


@pytest.mark.parametrize("complete", [True, False])
def test_a_path_of_no_steps_has_the_loss_of_the_mean(complete):
    rows = np.array([50, 53])
    dictionary = Dictionary(training_rows(RBF(0.3), P.X, rows).atoms, rows)
    train, test = USED[:30], USED[30:]  # both atoms are held out
    losses = paths(dictionary, complete=complete).losses((train, test), [3])
    mean = np.average(P.Y[train], axis=0, weights=P.weights[train])
    errors = ((P.Y[test] - mean) ** 2).mean(axis=1)
    assert_allclose(losses, np.full(3, np.average(errors, weights=P.weights[test])), rtol=1e-12)
