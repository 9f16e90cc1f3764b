"""Kernel matching pursuit: equals the plain statement of the paper, on both routes."""

import warnings
from functools import cache

import numpy as np
import pytest
import reference
import sklearn
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from problems import as_targets, awkward, pairwise
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge, orthogonal_mp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    train_test_split,
)

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit.dictionary import draw_candidates
from pursuit.greedy.multi_output import round_robin
from pursuit.kernels import RBF, scale_gamma

GAMMA = 0.3
FITTINGS = ("prefit", "backfit", "basic")
ROUTES = ("gram", "direct")
P = awkward()
USED = np.flatnonzero(P.weights > 0)
SINGLE = KernelMatchingPursuitRegressor, KernelMatchingPursuitClassifier
# Parameters of the search alone.
SEARCH = ("gammas", "cv", "scoring", "rule", "search_candidates", "n_jobs")
CROSS_VALIDATED = KernelMatchingPursuitRegressorCV, KernelMatchingPursuitClassifierCV


def assert_close(actual, expected, rtol=1e-8):
    """Relative to the largest entry: one coefficient near zero is as exact as its neighbours."""
    expected = np.asarray(expected)
    assert_allclose(actual, expected, rtol=rtol, atol=rtol * np.abs(expected).max(initial=0.0))


def assert_same_model(model, expected, rows=None, rtol=1e-8):
    """Support, coefficients and intercept of a fitted estimator and of a `reference.Model`."""
    rows = np.arange(len(P.X)) if rows is None else rows
    assert_array_equal(model.support_, rows[expected.support])
    assert_close(model.dual_coef_, expected.coefficients, rtol)
    assert_close(model.intercept_, expected.intercept, rtol)


def assert_equal_fits(a, b, X, rtol=1e-9):
    """Everything that two fits of the same model share."""
    assert_array_equal(a.support_, b.support_)
    assert_array_equal(a.support_vectors_, b.support_vectors_)
    assert_close(a.dual_coef_, b.dual_coef_, rtol)
    assert_close(a.intercept_, b.intercept_, rtol)
    assert_close(a.train_loss_path_, b.train_loss_path_, rtol)
    assert (a.n_iter_, a.n_components_) == (b.n_iter_, b.n_components_)
    if hasattr(a, "predict_proba"):
        assert_close(a.decision_function(X), b.decision_function(X), rtol)
        assert_close(a.predict_proba(X), b.predict_proba(X), rtol)
        assert_allclose(a.temperature_, b.temperature_, rtol=1e-7)
        assert_array_equal(a.predict(X), b.predict(X))
    else:
        assert_close(a.predict(X), b.predict(X), rtol)


def in_blocks(n_rows, n_columns):
    """Working memory with which blocks of `n_columns` float64 numbers have `n_rows` rows."""
    return sklearn.config_context(working_memory=n_rows * 8.0 * n_columns / 0.25 / 2**20)


# Equal to the reference.


@cache
def regression_path(fitting, alpha, intercept):
    D = reference.rbf(P.X[USED], P.X[USED], GAMMA)
    return reference.PURSUITS[fitting](D, P.Y[USED], P.weights[USED], 12, alpha, intercept)


@pytest.mark.parametrize(
    ("fitting", "alpha", "intercept", "route"),
    pairwise(FITTINGS, [0.0, 1e-2], [True, False], ROUTES),
)
def test_regression_on_two_targets_equals_reference(fitting, alpha, intercept, route):
    path = regression_path(fitting, alpha, intercept)
    model = KernelMatchingPursuitRegressor(
        12, gamma=GAMMA, fitting=fitting, alpha=alpha, fit_intercept=intercept, route=route
    ).fit(P.X, P.Y, P.weights)
    D = reference.rbf(P.X[USED], P.X[USED], GAMMA)
    for n, expected in enumerate(path, start=1):
        assert_same_model(model.truncate(n), expected, USED)
    losses = [reference.loss(stage, D, P.Y[USED], P.weights[USED]) for stage in path]
    assert_allclose(model.train_loss_path_, losses, rtol=1e-8)
    assert_close(model.predict(P.X[USED]), path[-1].values(D))


@cache
def class_path(fitting, multi_class, budgets, alpha):
    D = reference.rbf(P.X[USED], P.X[USED], GAMMA)
    Y = as_targets(P.labels[USED])
    weights = P.weights[USED] * np.where(P.labels[USED] == "ant", 2.5, 1.0)
    if multi_class == "shared":
        return reference.PURSUITS[fitting](D, Y, weights, sum(budgets), alpha)
    return reference.one_vs_rest(fitting, D, Y, budgets, weights, alpha)


@pytest.mark.parametrize(
    ("fitting", "multi_class", "alpha", "route"),
    pairwise(FITTINGS, ["shared", "ovr"], [0.0, 1e-2], ROUTES),
)
def test_three_classes_equal_reference(fitting, multi_class, alpha, route):
    # 11 steps dealt to three classes in turn: 4, 4 and 3.
    path = class_path(fitting, multi_class, (4, 4, 3), alpha)
    model = KernelMatchingPursuitClassifier(
        11,
        gamma=GAMMA,
        fitting=fitting,
        alpha=alpha,
        multi_class=multi_class,
        class_weight={"ant": 2.5},
        route=route,
    ).fit(P.X, P.labels, P.weights)
    assert_array_equal(model.classes_, ["ant", "mole", "zebra"])
    for n, expected in enumerate(path, start=1):
        assert_same_model(model.truncate(n), expected, USED)
    D = reference.rbf(P.X, P.X[USED], GAMMA)
    assert_close(model.decision_function(P.X), path[-1].values(D))
    assert_array_equal(model.predict(P.X), model.classes_[path[-1].values(D).argmax(axis=1)])


@pytest.mark.parametrize("route", ROUTES)
def test_one_budget_for_each_class(route):
    path = class_path("prefit", "ovr", (1, 5, 2), 0.0)
    model = KernelMatchingPursuitClassifier(
        [1, 5, 2], gamma=GAMMA, multi_class="ovr", class_weight={"ant": 2.5}, route=route
    ).fit(P.X, P.labels, P.weights)
    assert_same_model(model, path[-1], USED)
    assert model.n_iter_ == 8
    assert (model.dual_coef_ != 0).sum(axis=1).tolist() == [1, 5, 2]


@pytest.mark.parametrize("multi_class", ["shared", "ovr"])
def test_two_classes_equal_reference(multi_class):
    labels = np.where(P.labels == "mole", "no", "Yes")  # capital letters sort first
    D = reference.rbf(P.X[USED], P.X[USED], GAMMA)
    expected = reference.prefit(D, as_targets(labels[USED]), P.weights[USED], 9)[-1]
    model = KernelMatchingPursuitClassifier(9, gamma=GAMMA, multi_class=multi_class)
    model.fit(P.X, labels, P.weights)
    assert_array_equal(model.classes_, ["Yes", "no"])
    assert_same_model(model, expected, USED)
    values = expected.values(reference.rbf(P.X, P.X[USED], GAMMA))[:, 0]
    assert_close(model.decision_function(P.X), values)
    assert_array_equal(model.predict(P.X), np.where(values > 0, "no", "Yes"))


def test_balanced_class_weight_counts_sample_weights():
    mass = np.array([P.weights[P.labels == c].sum() for c in ("ant", "mole", "zebra")])
    explicit = dict(zip(("ant", "mole", "zebra"), mass.sum() / (3 * mass), strict=True))
    balanced = KernelMatchingPursuitClassifier(8, gamma=GAMMA, class_weight="balanced")
    given = KernelMatchingPursuitClassifier(8, gamma=GAMMA, class_weight=explicit)
    assert_equal_fits(
        balanced.fit(P.X, P.labels, P.weights), given.fit(P.X, P.labels, P.weights), P.X
    )


@pytest.mark.parametrize("route", ROUTES)
def test_given_centres_equal_reference(route, rng):
    centres = P.X[::3] + rng.normal(size=(20, 4))
    D = reference.rbf(P.X, centres, GAMMA)
    expected = reference.prefit(D, P.Y, np.ones(60), 10)[-1]
    model = KernelMatchingPursuitRegressor(10, gamma=GAMMA, dictionary=centres, route=route)
    model.fit(P.X, P.Y)
    assert not hasattr(model, "support_")
    assert_array_equal(model.support_vectors_, centres[expected.support])
    assert_close(model.dual_coef_, expected.coefficients)
    assert_close(model.intercept_, expected.intercept)


@pytest.mark.parametrize("route", ROUTES)
def test_asymmetric_kernel_equals_reference(route):
    """An atom is a column of K(rows, centres): x is the row and z the centre."""

    def lopsided(X, Z, slope):
        return np.exp(-((X[:, None, 0] + slope * Z[None, :, 1]) ** 2)) * X[:, [3]] / (Z[:, 2] + 9)

    expected = reference.prefit(lopsided(P.X, P.X, 0.7), P.Y, np.ones(60), 5)[-1]
    model = KernelMatchingPursuitRegressor(
        5, kernel=lopsided, kernel_params={"slope": 0.7}, route=route
    ).fit(P.X, P.Y)
    assert_same_model(model, expected)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kernel", ["linear", "polynomial", "laplacian", "sigmoid", "cosine"])
def test_other_kernels_equal_reference(kernel, route):
    tables = {
        "linear": reference.linear(P.X, P.X),
        "polynomial": reference.polynomial(P.X, P.X, 0.01, 2, 1.5),
        "laplacian": reference.laplacian(P.X, P.X, 0.2),
        "sigmoid": reference.sigmoid(P.X, P.X, 1e-3, -2.0),
        "cosine": reference.cosine(P.X, P.X),
    }
    numbers = {"polynomial": (0.01, 2, 1.5), "laplacian": (0.2, 3, 1), "sigmoid": (1e-3, 3, -2.0)}
    gamma, degree, coef0 = numbers.get(kernel, ("scale", 3, 1))
    model = KernelMatchingPursuitRegressor(
        3, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, alpha=1e-3, route=route
    ).fit(P.X, P.Y)
    # Inner products of rows around 40 lose some digits when their mean is taken off.
    assert_same_model(model, reference.prefit(tables[kernel], P.Y, np.ones(60), 3, 1e-3)[-1])


def test_precomputed_kernel_equals_rbf():
    K = reference.rbf(P.X, P.X, GAMMA)
    given = KernelMatchingPursuitClassifier(9, kernel="precomputed", early_stopping="loo")
    named = KernelMatchingPursuitClassifier(9, gamma=GAMMA, early_stopping="loo")
    given.fit(K, P.labels, P.weights)
    named.fit(P.X, P.labels, P.weights)
    assert_array_equal(given.support_, named.support_)
    assert_close(given.dual_coef_, named.dual_coef_)
    assert_close(given.leave_one_out_loss_path_, named.leave_one_out_loss_path_)
    new = P.X[:5] + 0.1
    K_new = reference.rbf(new, P.X, GAMMA)
    assert_close(given.decision_function(K_new), named.decision_function(new))
    assert not hasattr(given, "support_vectors_")


# Blocks, routes and random choices.


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fitting", FITTINGS)
def test_block_size_changes_nothing(fitting, route):
    closed_form = fitting != "basic" and "loo"
    model = KernelMatchingPursuitClassifier(
        9, gamma=GAMMA, fitting=fitting, route=route, early_stopping=closed_form, alpha=1e-3
    )
    whole = clone(model).fit(P.X, P.labels, P.weights)
    decisions = whole.decision_function(P.X)
    with in_blocks(7, len(USED)):
        blocked = clone(model).fit(P.X, P.labels, P.weights)
        assert_close(blocked.decision_function(P.X), decisions, 1e-9)
    assert_equal_fits(blocked, whole, P.X)
    if closed_form:
        assert_close(blocked.leave_one_out_loss_path_, whole.leave_one_out_loss_path_)


@pytest.mark.parametrize("fitting", FITTINGS)
def test_routes_agree_on_many_steps(fitting):
    X, y = load_digits(return_X_y=True)
    models = [
        KernelMatchingPursuitClassifier(150, fitting=fitting, route=route).fit(X[:400], y[:400])
        for route in ROUTES
    ]
    assert_equal_fits(*models, X[400:500], rtol=1e-8)


def test_automatic_route_is_one_of_the_two():
    automatic = KernelMatchingPursuitRegressor(8).fit(P.X, P.Y)
    forced = KernelMatchingPursuitRegressor(8, route="gram").fit(P.X, P.Y)
    assert_equal_fits(automatic, forced, P.X)


def test_random_candidates_are_training_rows_and_repeatable():
    def fitted(seed, n_candidates=20):
        return KernelMatchingPursuitRegressor(
            10, gamma=GAMMA, n_candidates=n_candidates, random_state=seed
        ).fit(P.X, P.Y, P.weights)

    first = fitted(0)
    assert_equal_fits(first, fitted(0), P.X, rtol=1e-15)
    assert not np.array_equal(first.support_, fitted(1).support_)
    assert_array_equal(first.support_vectors_, P.X[first.support_])
    assert (P.weights[first.support_] > 0).all()
    # A subset of the candidates cannot do better at the first step.
    assert_array_less(fitted(None, 60).train_loss_path_[0], first.train_loss_path_[0] + 1e-12)
    # Half of 54 rows of positive weight: no more than 27 different vectors.
    with pytest.warns(ConvergenceWarning, match="n_components=40, but the path ended"):
        half = KernelMatchingPursuitRegressor(40, n_candidates=0.5, gamma=5, random_state=0)
        assert half.fit(P.X, P.Y, P.weights).n_components_ <= 27


# The path: every prefix is a model.


@pytest.mark.parametrize(
    ("fitting", "multi_class", "route"), pairwise(FITTINGS, ["shared", "ovr"], ROUTES)
)
def test_truncate_equals_fit_of_classifier(fitting, multi_class, route):
    model = KernelMatchingPursuitClassifier(
        14, gamma=GAMMA, fitting=fitting, multi_class=multi_class, alpha=1e-3, route=route
    )
    whole = clone(model).fit(P.X, P.labels, P.weights)
    for n in range(1, 15):
        small = clone(model).set_params(n_components=n).fit(P.X, P.labels, P.weights)
        assert_equal_fits(whole.truncate(n), small, P.X)
        assert whole.truncate(n).get_params() == small.get_params()
        assert whole.truncate(n).stop_reason_ == small.stop_reason_ == "n_components"


@pytest.mark.parametrize("fitting", FITTINGS)
def test_truncate_equals_fit_of_regressor(fitting):
    model = KernelMatchingPursuitRegressor(10, gamma=GAMMA, fitting=fitting)
    whole = clone(model).fit(P.X, P.Y[:, 0])
    for n in range(1, 11):
        small = clone(model).set_params(n_components=n).fit(P.X, P.Y[:, 0])
        assert_equal_fits(whole.truncate(n).truncate(n), small, P.X)


def test_truncate_of_many_steps_keeps_the_temperature_of_the_fit():
    X, y = load_digits(return_X_y=True)
    whole = KernelMatchingPursuitClassifier(100).fit(X[:300], y[:300])
    for n in (31, 32, 33, 37, 64, 99):
        small = KernelMatchingPursuitClassifier(n).fit(X[:300], y[:300])
        assert_equal_fits(whole.truncate(n), small, X[300:400], rtol=1e-8)


# Cross-validated paths.

CV_CASES = {
    "regressor": {},
    "ridge": {"alpha": 0.05},
    "backfit": {"fitting": "backfit"},
    "basic": {"fitting": "basic", "alpha": 0.01},
    "no intercept": {"fit_intercept": False},
}


def brute_force(Y, gammas, splits, n_steps, fitting="prefit", alpha=0.0, fit_intercept=True):
    def pursuit(D, targets, weights, barred):
        return reference.PURSUITS[fitting](
            D, targets, weights, n_steps, alpha, fit_intercept, barred
        )

    return np.array(
        [
            reference.cross_validation(
                pursuit, reference.rbf(P.X, P.X, gamma), Y, P.weights, splits, n_steps
            )
            for gamma in gammas
        ]
    )


def splits_of(cv, labels=None):
    """Folds of the rows of positive weight, as indices of all rows."""
    target = np.zeros(len(USED)) if labels is None else labels[USED]
    return [(USED[train], USED[test]) for train, test in cv.split(USED, target)]


def assert_best_was_chosen(model, X, y, weights):
    mean = model.cv_loss_path_.mean(axis=1)
    g, n = np.unravel_index(mean.argmin(), mean.shape)
    assert model.gamma_ == model.gammas_[g]
    assert model.n_iter_ == n + 1
    plain = {c: s for c, s in zip(CROSS_VALIDATED, SINGLE, strict=True)}[type(model)]
    shared = {k: v for k, v in model.get_params().items() if k not in SEARCH}
    again = plain(**{**shared, "gamma": model.gamma_, "n_components": model.n_iter_})
    assert_equal_fits(model, again.fit(X, y, weights), X)


GRID = {"gammas": [0.1, 0.5], "cv": ShuffleSplit(2, test_size=0.3, random_state=1)}


@cache
def regression_losses(case):
    return brute_force(P.Y, GRID["gammas"], splits_of(GRID["cv"]), 6, **CV_CASES[case])


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", CV_CASES)
def test_cross_validated_regression_equals_brute_force(case, route):
    expected = regression_losses(case)
    model = KernelMatchingPursuitRegressorCV(6, route=route, **GRID, **CV_CASES[case])
    model.fit(P.X, P.Y, P.weights)
    assert_allclose(model.cv_loss_path_, expected, rtol=1e-8)
    assert_best_was_chosen(model, P.X, P.Y, P.weights)


@pytest.mark.parametrize("route", ROUTES)
def test_cross_validated_classes_equal_brute_force(route):
    expected = brute_force(
        as_targets(P.labels), [0.2], splits_of(StratifiedKFold(4), P.labels), 7, alpha=0.01
    )
    model = KernelMatchingPursuitClassifierCV(7, gamma=0.2, cv=4, alpha=0.01, route=route)
    model.fit(P.X, P.labels, P.weights)
    assert_allclose(model.cv_loss_path_, expected, rtol=1e-8)
    assert_best_was_chosen(model, P.X, P.labels, P.weights)


def test_cross_validated_one_vs_rest_equals_brute_force():
    Y, splits = as_targets(P.labels), splits_of(StratifiedKFold(3), P.labels)

    def pursuit(D, targets, weights, barred):
        return reference.one_vs_rest("prefit", D, targets, (3, 2, 2), weights, barred=barred)

    D = reference.rbf(P.X, P.X, GAMMA)
    expected = reference.cross_validation(pursuit, D, Y, P.weights, splits, 7)
    model = KernelMatchingPursuitClassifierCV(7, gammas=[GAMMA], cv=3, multi_class="ovr")
    model.fit(P.X, P.labels, P.weights)
    assert_allclose(model.cv_loss_path_, expected[None], rtol=1e-8)
    assert_best_was_chosen(model, P.X, P.labels, P.weights)


@pytest.mark.parametrize("route", ROUTES)
def test_cross_validation_with_given_centres_equals_brute_force(route, rng):
    centres = P.X[:25] + rng.normal(size=(25, 4))
    D = reference.rbf(P.X, centres, GAMMA)
    splits = splits_of(KFold(3))
    expected = [
        [
            reference.loss(stage, D[test], P.Y[test], P.weights[test])
            for stage in reference.prefit(D[train], P.Y[train], P.weights[train], 5)
        ]
        for train, test in splits
    ]
    model = KernelMatchingPursuitRegressorCV(
        5, gammas=[GAMMA], dictionary=centres, cv=3, route=route
    ).fit(P.X, P.Y, P.weights)
    assert_allclose(model.cv_loss_path_[0], expected, rtol=1e-8)


@pytest.mark.parametrize("route", ROUTES)
def test_cross_validation_with_random_candidates_equals_brute_force(route):
    drawn = draw_candidates(USED, 30, 5, P.X)
    assert len(drawn) == 30
    D = reference.rbf(P.X, P.X, GAMMA)
    splits = splits_of(KFold(3))
    missing = np.setdiff1d(np.arange(60), drawn)
    expected = []
    for train, test in splits:
        barred = np.union1d(missing, np.setdiff1d(np.arange(60), train))
        path = reference.prefit(D[train], P.Y[train], P.weights[train], 5, barred=barred)
        expected.append([reference.loss(m, D[test], P.Y[test], P.weights[test]) for m in path])
    model = KernelMatchingPursuitRegressorCV(
        5, gammas=[GAMMA], n_candidates=30, random_state=5, cv=3, route=route
    ).fit(P.X, P.Y, P.weights)
    assert_allclose(model.cv_loss_path_[0], expected, rtol=1e-8)


def test_cross_validation_of_a_precomputed_kernel_equals_rbf():
    named = KernelMatchingPursuitRegressorCV(6, gammas=[GAMMA], cv=4)
    given = KernelMatchingPursuitRegressorCV(6, kernel="precomputed", cv=4)
    named.fit(P.X, P.Y, P.weights)
    given.fit(reference.rbf(P.X, P.X, GAMMA), P.Y, P.weights)
    assert_allclose(given.cv_loss_path_, named.cv_loss_path_, rtol=1e-8)
    assert_array_equal(given.support_, named.support_)


def test_cross_validation_takes_pairs_of_indices_of_all_rows():
    """As scikit-learn's own: the pairs speak of the caller's rows; weight 0 removes a row."""
    groups = np.arange(60) % 3
    pairs = list(LeaveOneGroupOut().split(P.X, groups=groups))
    used = [(np.intersect1d(a, USED), np.intersect1d(b, USED)) for a, b in pairs]
    model = KernelMatchingPursuitRegressorCV(5, gammas=[GAMMA], cv=pairs)
    model.fit(P.X, P.Y, P.weights)
    assert_allclose(model.cv_loss_path_, brute_force(P.Y, [GAMMA], used, 5), rtol=1e-8)


def test_cross_validation_draws_candidates_once():
    """Equal gammas have equal paths, also where the generator is handed in."""
    for seed in (0, np.random.RandomState(0)):
        model = KernelMatchingPursuitRegressorCV(
            5, gammas=[GAMMA, GAMMA], n_candidates=20, random_state=seed, cv=3
        ).fit(P.X, P.Y)
        assert_array_equal(*model.cv_loss_path_)


def test_cross_validation_in_blocks_changes_nothing():
    model = KernelMatchingPursuitRegressorCV(6, gammas=[0.1, 0.5], cv=3, route="gram")
    whole = clone(model).fit(P.X, P.Y, P.weights).cv_loss_path_
    with in_blocks(7, len(USED)):
        blocked = clone(model).fit(P.X, P.Y, P.weights).cv_loss_path_
    assert_allclose(blocked, whole, rtol=1e-9)


def test_default_gammas_surround_the_scale_of_the_rows_used():
    model = KernelMatchingPursuitRegressorCV(4, cv=3).fit(P.X, P.Y, P.weights)
    scale = scale_gamma(P.X[USED], P.weights[USED])
    assert_allclose(model.gammas_, scale * 4.0 ** np.arange(-4, 3), rtol=1e-12)
    assert model.cv_loss_path_.shape == (7, 3, 4)
    alone = KernelMatchingPursuitRegressorCV(4, cv=3, gamma=0.7).fit(P.X, P.Y)
    assert alone.gammas_ == [0.7]
    linear = KernelMatchingPursuitRegressorCV(4, cv=3, kernel="cosine").fit(P.X, P.Y)
    assert linear.cv_loss_path_.shape == (1, 3, 4)


def test_cross_validation_prefers_the_smaller_of_equal_models():
    """A fold's path that ends early repeats its last loss; no warning: the rest is not wanted."""
    X = np.repeat(np.arange(4.0), 6)[:, None]
    y = np.repeat([0.0, 3.0, 1.0, 2.0], 6)
    cv = KFold(3, shuffle=True, random_state=0)
    model = KernelMatchingPursuitRegressorCV(12, gammas=[0.5, 0.5], cv=cv).fit(X, y)
    assert model.cv_loss_path_.shape == (2, 3, 12)
    assert_array_equal(np.diff(model.cv_loss_path_[:, :, 3:]), 0.0)
    assert model.n_iter_ <= 4
    assert_allclose(model.predict(X), y, atol=1e-6)


@pytest.mark.parametrize("estimator", CROSS_VALIDATED)
@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}])
def test_cross_validation_keeps_a_number_inside_the_path(estimator, options):
    classifier = estimator is KernelMatchingPursuitClassifierCV
    model = estimator(12, gammas=[2.0, 0.6], cv=3, **(options if classifier else {}))
    target = P.labels if classifier else P.Y
    model.fit(P.X, target, P.weights)
    assert model.n_iter_ < 12
    assert model.stop_reason_ == "n_components"
    assert_best_was_chosen(model, P.X, target, P.weights)


# Invariants.


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("fitting", FITTINGS)
def test_objective_never_rises(fitting, alpha):
    X, y = load_digits(return_X_y=True)
    model = KernelMatchingPursuitClassifier(60, fitting=fitting, alpha=alpha).fit(X[:150], y[:150])
    losses = model.train_loss_path_
    penalties = [alpha * np.sum(model.truncate(n).dual_coef_ ** 2) for n in range(1, 61)]
    objective = losses * 150 * 10 + penalties
    assert (np.diff(objective) <= 1e-10 * objective[0]).all()
    if not alpha:
        assert (np.diff(losses) <= 1e-12).all()
        assert losses[-1] < 0.5 * losses[0]


def test_prefit_is_no_worse_than_backfit_for_two_steps():
    for seed in range(5):
        problem = awkward(40, seed)
        pre, back, basic = (
            KernelMatchingPursuitRegressor(2, gamma=GAMMA, fitting=fitting)
            .fit(problem.X, problem.Y)
            .train_loss_path_
            for fitting in FITTINGS
        )
        assert_allclose(pre[0], back[0], rtol=1e-12)
        assert_allclose(basic[0], back[0], rtol=1e-12)
        assert pre[1] <= back[1] * (1 + 1e-12)
        assert back[1] <= basic[1] * (1 + 1e-12)


@pytest.mark.parametrize("fitting", FITTINGS)
@pytest.mark.parametrize("estimator", SINGLE)
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_weight_two_is_the_row_twice(estimator, fitting, alpha):
    weights = np.arange(60) % 3
    target = P.labels if estimator is KernelMatchingPursuitClassifier else P.Y
    model = estimator(12, gamma=GAMMA, fitting=fitting, alpha=alpha)
    weighted = clone(model).fit(P.X, target, weights)
    repeated = clone(model).fit(np.repeat(P.X, weights, axis=0), np.repeat(target, weights, axis=0))
    assert_array_equal(weighted.support_vectors_, repeated.support_vectors_)
    assert_close(weighted.dual_coef_, repeated.dual_coef_)
    assert_close(weighted.intercept_, repeated.intercept_)
    assert_close(weighted.train_loss_path_, repeated.train_loss_path_)
    if estimator is KernelMatchingPursuitClassifier:
        assert_close(weighted.predict_proba(P.X), repeated.predict_proba(P.X), 1e-6)


@pytest.mark.parametrize("estimator", [*SINGLE, *CROSS_VALIDATED])
def test_weight_zero_is_the_row_removed(estimator):
    classifier = "Classifier" in estimator.__name__
    target = P.labels if classifier else P.Y
    X, y = np.vstack([P.X, [[1e3, -1e5, 0, 7]]]), np.concatenate([target, target[:1]])
    if classifier:
        y[-1] = "aaa"  # a class of its own, which must not exist
    else:
        y[-1] = 1e9
    extra = {"cv": 3} if estimator in CROSS_VALIDATED else {}
    model = estimator(8, **extra)
    weighted = clone(model).fit(X, y, np.append(P.weights, 0.0))
    removed = clone(model).fit(P.X[USED], target[USED], P.weights[USED])
    assert_array_equal(weighted.support_, USED[removed.support_])
    assert_close(weighted.dual_coef_, removed.dual_coef_)
    assert_close(weighted.predict(P.X), removed.predict(P.X)) if not classifier else (
        assert_array_equal(weighted.predict(P.X), removed.predict(P.X))
    )
    if extra:
        assert_allclose(weighted.cv_loss_path_, removed.cv_loss_path_, rtol=1e-9)


@pytest.mark.parametrize("class_weight", ["balanced", {"ant": 0.3, "zebra": 4.0}])
@pytest.mark.parametrize(
    "options",
    [
        {"early_stopping": "loo"},
        {"early_stopping": "bound"},
        {"fitting": "basic"},
        {"loss": "squared_hinge"},
        {"loss": "log_loss", "multi_class": "ovr"},
    ],
)
def test_weight_two_is_the_row_twice_under_class_weights(options, class_weight):
    weights = np.arange(60) % 3
    rows = np.repeat(np.arange(60), weights)
    model = KernelMatchingPursuitClassifier(12, gamma=GAMMA, class_weight=class_weight, **options)
    weighted = clone(model).fit(P.X, P.labels, weights)
    repeated = clone(model).fit(P.X[rows], P.labels[rows])
    assert_close(weighted.predict_proba(P.X), repeated.predict_proba(P.X))
    assert_allclose(weighted.temperature_, repeated.temperature_, rtol=1e-8)
    for name in ("leave_one_out_loss_path_", "bound_path_"):
        if hasattr(weighted, name):
            assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-8)


@pytest.mark.parametrize("class_weight", ["balanced", {"mole": 2, "zebra": 3}])
def test_a_class_of_weight_zero_does_not_exist(class_weight):
    weights = np.where(P.labels == "ant", 0.0, P.weights)
    left = weights > 0
    model = KernelMatchingPursuitClassifier(6, class_weight=class_weight)
    model.fit(P.X, P.labels, weights)
    assert_array_equal(model.classes_, ["mole", "zebra"])
    removed = clone(model).fit(P.X[left], P.labels[left], weights[left])
    assert_close(model.decision_function(P.X), removed.decision_function(P.X))


@pytest.mark.parametrize("fitting", FITTINGS)
def test_scale_of_the_weights_does_not_matter(fitting):
    model = KernelMatchingPursuitClassifier(9, gamma=GAMMA, fitting=fitting)
    one = clone(model).fit(P.X, P.labels, P.weights)
    for factor in (1e-9, 1e6):
        other = clone(model).fit(P.X, P.labels, factor * P.weights)
        assert_array_equal(one.support_, other.support_)
        assert_close(one.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("multi_class", ["shared", "ovr"])
def test_order_of_the_rows_does_not_matter(multi_class, rng):
    order = rng.permutation(60)
    model = KernelMatchingPursuitClassifier(10, gamma=GAMMA, multi_class=multi_class)
    one = clone(model).fit(P.X, P.labels, P.weights)
    other = clone(model).fit(P.X[order], P.labels[order], P.weights[order])
    # Copies of a row tie, and the lowest index wins: the vectors agree, not the indices.
    assert_array_equal(one.support_vectors_, other.support_vectors_)
    assert_close(one.dual_coef_, other.dual_coef_)
    assert_close(one.predict_proba(P.X), other.predict_proba(P.X), 1e-7)


def test_residual_has_weighted_mean_zero():
    """The constant is orthogonalised: what is left has nothing in its direction."""
    for fitting in FITTINGS:
        model = KernelMatchingPursuitRegressor(6, fitting=fitting).fit(P.X, P.Y, P.weights)
        for prediction in model.staged_predict(P.X):
            assert_allclose(P.weights @ (P.Y - prediction), 0.0, atol=1e-8)


def test_intercept_moves_with_the_targets():
    plain = KernelMatchingPursuitRegressor(8, alpha=0.1).fit(P.X, P.Y, P.weights)
    shifted = KernelMatchingPursuitRegressor(8, alpha=0.1).fit(P.X, P.Y + 1e6, P.weights)
    assert_array_equal(plain.support_, shifted.support_)
    assert_close(shifted.dual_coef_, plain.dual_coef_, 1e-7)
    assert_allclose(shifted.intercept_ - 1e6, plain.intercept_, rtol=1e-6)


def test_offset_of_the_features_does_not_matter_for_distances():
    X = np.round(P.X * 1024) / 1024  # 1e6 can be added to these without rounding
    for kernel in ("rbf", "laplacian"):
        model = KernelMatchingPursuitRegressor(12, kernel=kernel, gamma=GAMMA)
        near, far = (clone(model).fit(X + offset, P.Y) for offset in (0.0, 1e6))
        assert_array_equal(near.support_, far.support_)
        assert_close(far.dual_coef_, near.dual_coef_, 1e-7)
        assert_close(far.predict(X[:9] + (1e6 + 0.25)), near.predict(X[:9] + 0.25), 1e-7)


def test_basic_pursuit_takes_an_atom_again():
    model = KernelMatchingPursuitRegressor(40, fitting="basic", gamma=0.05).fit(P.X, P.Y)
    assert model.n_iter_ == 40
    assert model.n_components_ < 40
    assert len(set(model.support_)) == model.n_components_ == model.dual_coef_.shape[1]


# Limits.


def test_all_atoms_interpolate():
    """With every kernel function and no intercept the coefficients solve K a = y."""
    X = np.random.default_rng(1).normal(size=(30, 3))
    y = np.sin(3 * X[:, 0])
    model = KernelMatchingPursuitRegressor(30, gamma=2.0, fit_intercept=False).fit(X, y)
    assert sorted(model.support_) == list(range(30))
    solution = np.linalg.solve(rbf_kernel(X, gamma=2.0), y)
    assert_allclose(model.dual_coef_[0], solution[model.support_], rtol=1e-6)
    assert_allclose(model.predict(X), y, atol=1e-9)
    assert model.train_loss_path_[-1] <= 1e-12


@pytest.mark.parametrize("fitting", ["prefit", "backfit"])
def test_linear_kernel_with_one_atom_a_feature_is_linear_regression(fitting):
    model = KernelMatchingPursuitRegressor(4, kernel="linear", fitting=fitting)
    expected = LinearRegression().fit(P.X, P.Y, P.weights)
    model.fit(P.X, P.Y, P.weights)
    assert_allclose(model.predict(P.X), expected.predict(P.X), rtol=1e-7)
    assert_allclose(model.dual_coef_ @ model.support_vectors_, expected.coef_, rtol=1e-5)


@pytest.mark.parametrize("fitting", ["prefit", "backfit"])
def test_all_atoms_with_ridge_is_ridge_regression_on_kernel_values(fitting):
    distinct = np.unique(P.X, axis=0, return_index=True)[1]
    X, Y, weights = P.X[distinct], P.Y[distinct], P.weights[distinct] + 0.1
    K = rbf_kernel(X, gamma=GAMMA)
    expected = Ridge(0.3, solver="cholesky").fit(K, Y, weights)
    model = KernelMatchingPursuitRegressor(len(X), gamma=GAMMA, alpha=0.3, fitting=fitting)
    model.fit(X, Y, weights)
    assert model.n_components_ == len(X)
    assert_close(model.dual_coef_, expected.coef_[:, model.support_], 1e-7)
    assert_close(model.intercept_, expected.intercept_, 1e-9)


def test_backfit_is_orthogonal_matching_pursuit():
    """scikit-learn's, on columns that are centred and of unit length."""
    D = rbf_kernel(P.X, gamma=GAMMA)
    D = np.delete(D - D.mean(axis=0), [20, 30, 58], axis=1)  # without copies
    lengths = np.linalg.norm(D, axis=0)
    y = P.Y[:, 0]
    path = orthogonal_mp(D / lengths, y - y.mean(), n_nonzero_coefs=12, return_path=True)
    model = KernelMatchingPursuitRegressor(12, gamma=GAMMA, fitting="backfit").fit(P.X, y)
    place = np.delete(np.arange(60), [20, 30, 58])
    for n in range(1, 13):
        chosen = np.flatnonzero(path[:, n - 1])
        small = model.truncate(n)
        assert sorted(small.support_) == place[chosen].tolist()
        coefficients = dict(zip(place[chosen], (path[:, n - 1] / lengths)[chosen], strict=True))
        assert_close(small.dual_coef_[0], [coefficients[k] for k in small.support_])


# Early stopping.


def mean_squared_errors(model, X, Y, weights=None):
    return [
        np.average(((Y - stage.reshape(Y.shape)) ** 2).mean(axis=1), weights=weights)
        for stage in (
            model.staged_decision_function(X)
            if hasattr(model, "classes_")
            else model.staged_predict(X)
        )
    ]


def test_held_out_fraction_is_the_split_of_scikit_learn():
    model = KernelMatchingPursuitClassifier(
        25, gamma=2.0, early_stopping=True, validation_fraction=0.25, random_state=3
    )
    automatic = clone(model).fit(P.X, P.labels, P.weights)
    train, test = train_test_split(USED, test_size=0.25, stratify=P.labels[USED], random_state=3)
    train, test = np.sort(train), np.sort(test)
    whole = KernelMatchingPursuitClassifier(25, gamma=2.0)
    whole.fit(P.X[train], P.labels[train], P.weights[train])
    losses = mean_squared_errors(whole, P.X[test], as_targets(P.labels)[test], P.weights[test])
    assert_allclose(automatic.validation_loss_path_, losses, rtol=1e-8)
    best = int(np.argmin(losses)) + 1
    assert best < 25  # otherwise nothing was stopped
    assert automatic.n_iter_ == best
    assert automatic.stop_reason_ == "early_stopping"
    assert_array_equal(automatic.support_, train[whole.support_[:best]])
    assert_close(automatic.dual_coef_, whole.truncate(best).dual_coef_)
    assert_close(automatic.predict_proba(P.X), whole.truncate(best).predict_proba(P.X))


def test_held_out_rows_given():
    train, test = np.arange(40), np.arange(40, 60)
    model = KernelMatchingPursuitRegressor(20, gamma=2.0, early_stopping=True)
    model.fit(P.X[train], P.Y[train], X_val=P.X[test], y_val=P.Y[test])
    whole = KernelMatchingPursuitRegressor(20, gamma=2.0).fit(P.X[train], P.Y[train])
    losses = mean_squared_errors(whole, P.X[test], P.Y[test])
    assert_allclose(model.validation_loss_path_, losses, rtol=1e-8)
    assert model.n_iter_ == int(np.argmin(losses)) + 1 < 20
    assert_equal_fits_but_losses(model, whole.truncate(model.n_iter_), P.X)


def assert_equal_fits_but_losses(a, b, X):
    assert_array_equal(a.support_, b.support_)
    assert_close(a.dual_coef_, b.dual_coef_)
    assert_close(a.predict(X), b.predict(X))


def test_held_out_labels_carry_class_weights():
    train, test = np.arange(40), np.arange(40, 60)
    model = KernelMatchingPursuitClassifier(
        15, gamma=2.0, early_stopping=True, class_weight={"ant": 5.0}
    )
    model.fit(P.X[train], P.labels[train], X_val=P.X[test], y_val=P.labels[test])
    whole = KernelMatchingPursuitClassifier(15, gamma=2.0, class_weight={"ant": 5.0})
    whole.fit(P.X[train], P.labels[train])
    weights = np.where(P.labels[test] == "ant", 5.0, 1.0)
    losses = mean_squared_errors(whole, P.X[test], as_targets(P.labels)[test], weights)
    assert_allclose(model.validation_loss_path_, losses, rtol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("fitting", ["prefit", "backfit"])
def test_leave_one_out_equals_refits(fitting, alpha, intercept):
    model = KernelMatchingPursuitRegressor(
        12, gamma=1.0, fitting=fitting, alpha=alpha, fit_intercept=intercept, early_stopping="loo"
    ).fit(P.X, P.Y, P.weights)
    path = KernelMatchingPursuitRegressor(
        12, gamma=1.0, fitting=fitting, alpha=alpha, fit_intercept=intercept
    ).fit(P.X, P.Y, P.weights)
    D = reference.rbf(P.X[USED], P.X, 1.0)
    Y, weights = P.Y[USED], P.weights[USED]
    losses = [
        np.average(
            np.mean(
                (Y - reference.leave_one_out(D, Y, weights, support, alpha, intercept)) ** 2, axis=1
            ),
            weights=weights,
        )
        for support in (path.support_[:n] for n in range(1, 13))
    ]
    assert_allclose(model.leave_one_out_loss_path_, losses, rtol=1e-7)
    assert model.n_iter_ == int(np.argmin(losses)) + 1


def test_leave_one_out_of_one_vs_rest_equals_refits():
    model = KernelMatchingPursuitClassifier(
        6, gamma=1.0, multi_class="ovr", early_stopping="loo"
    ).fit(P.X, P.labels)
    path = class_bases = KernelMatchingPursuitClassifier(6, gamma=1.0, multi_class="ovr")
    path = class_bases.fit(P.X, P.labels)
    Y, D = as_targets(P.labels), reference.rbf(P.X, P.X, 1.0)
    held_out = np.column_stack(
        [
            reference.leave_one_out(
                D, Y[:, [t]], np.ones(60), path.support_[path.dual_coef_[t] != 0]
            )
            for t in range(3)
        ]
    )
    assert_allclose(model.leave_one_out_loss_path_[-1], np.mean((Y - held_out) ** 2), rtol=1e-8)


def test_patience_ends_the_path():
    whole = KernelMatchingPursuitRegressor(40, gamma=2.0, early_stopping="loo").fit(P.X, P.Y)
    losses = whole.leave_one_out_loss_path_
    for patience in (1, 2, 5):
        model = KernelMatchingPursuitRegressor(
            40, gamma=2.0, early_stopping="loo", n_iter_no_change=patience
        ).fit(P.X, P.Y)
        best, n = 1, 1
        while n < 40 and n - best < patience:
            n += 1
            best = n if losses[n - 1] < losses[best - 1] else best
        assert model.n_iter_ == best
        assert model.stop_reason_ == "early_stopping"
        assert_allclose(model.leave_one_out_loss_path_, losses[:n], rtol=1e-9)
        assert len(model.train_loss_path_) == n


def test_patience_and_tol_hold_for_held_out_rows_too():
    options = {"gamma": 0.6, "early_stopping": True, "random_state": 0, "validation_fraction": 0.3}
    losses = KernelMatchingPursuitRegressor(25, **options).fit(P.X, P.Y).validation_loss_path_
    patient = KernelMatchingPursuitRegressor(25, n_iter_no_change=2, **options).fit(P.X, P.Y)
    assert_allclose(patient.validation_loss_path_, losses[: patient.n_iter_ + 2], rtol=1e-9)
    assert patient.n_iter_ + 2 < 25
    content = KernelMatchingPursuitRegressor(25, tol=0.1, **options).fit(P.X, P.Y)
    assert content.n_iter_ < int(np.argmin(losses)) + 1


def test_patience_beyond_the_first_look_changes_nothing():
    """Paths longer than one look (32 steps) are extended, not begun again."""
    X, y = load_digits(return_X_y=True)
    model = KernelMatchingPursuitClassifier(120, early_stopping="loo")
    patient = clone(model).set_params(n_iter_no_change=50).fit(X[:200], y[:200])
    whole = clone(model).fit(X[:200], y[:200])
    assert whole.n_iter_ > 32
    assert_equal_fits_but_losses_of_classes(patient, whole, X[200:300])


def assert_equal_fits_but_losses_of_classes(a, b, X):
    assert_array_equal(a.support_, b.support_)
    assert_close(a.decision_function(X), b.decision_function(X))


def test_tol_is_the_improvement_that_counts():
    model = KernelMatchingPursuitRegressor(20, gamma=0.6, early_stopping="loo")
    losses = clone(model).fit(P.X, P.Y).leave_one_out_loss_path_
    tol = 0.02
    best = 1
    for n in range(2, len(losses) + 1):
        best = n if losses[n - 1] < losses[best - 1] - tol else best
    stopped = clone(model).set_params(tol=tol).fit(P.X, P.Y)
    assert stopped.n_iter_ == best < int(np.argmin(losses)) + 1


@pytest.mark.parametrize("fitting", FITTINGS)
def test_tol_is_the_training_error_that_is_enough(fitting):
    model = KernelMatchingPursuitRegressor(20, gamma=GAMMA, fitting=fitting)
    losses = clone(model).fit(P.X, P.Y).train_loss_path_
    stopped = clone(model).set_params(tol=losses[7] * (1 + 1e-9)).fit(P.X, P.Y)
    assert stopped.n_iter_ == 8
    assert stopped.stop_reason_ == "tol"
    assert_allclose(stopped.train_loss_path_, losses[:8], rtol=1e-12)
    assert clone(model).set_params(tol=1e-30).fit(P.X, P.Y).stop_reason_ == "n_components"


def test_held_out_rows_of_a_precomputed_kernel():
    K = reference.rbf(P.X, P.X, 2.0)
    options = {"early_stopping": True, "random_state": 1, "validation_fraction": 0.3}
    given = KernelMatchingPursuitRegressor(15, kernel="precomputed", **options).fit(K, P.Y)
    named = KernelMatchingPursuitRegressor(15, gamma=2.0, **options).fit(P.X, P.Y)
    assert_array_equal(given.support_, named.support_)
    assert_allclose(given.validation_loss_path_, named.validation_loss_path_, rtol=1e-8)


# CSR rows.

SPARSE_KERNELS = (
    "linear",
    "polynomial",
    "rbf",
    "sigmoid",
    "cosine",
    "cosine_polynomial",
    "laplacian",
)


def sparse_rows(rng, container=sparse.csr_matrix):
    X = np.where(rng.uniform(size=(50, 30)) < 0.2, rng.normal(size=(50, 30)), 0.0)
    X[7] = 0.0
    X[30] = X[3]
    return X, container(X), np.sin(X[:, 0] - X[:, 1]) + X[:, 2] * X[:, 3]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
def test_csr_rows_equal_dense_rows(kernel, route, rng):
    X, S, y = sparse_rows(rng)
    model = KernelMatchingPursuitRegressor(10, kernel=kernel, route=route, early_stopping="loo")
    dense, compressed = clone(model).fit(X, y), clone(model).fit(S, y)
    assert_array_equal(dense.support_, compressed.support_)
    assert sparse.issparse(compressed.support_vectors_)
    assert_array_equal(compressed.support_vectors_.toarray(), dense.support_vectors_)
    assert_close(compressed.dual_coef_, dense.dual_coef_)
    assert_close(compressed.leave_one_out_loss_path_, dense.leave_one_out_loss_path_)
    # Trained on one form, asked in the other.
    for fitted in (dense, compressed):
        for rows in (X, S):
            assert_close(fitted.predict(rows), dense.predict(X))


@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
def test_csr_rows_with_long_indices(kernel, rng):
    X, S, y = sparse_rows(rng)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    model = KernelMatchingPursuitRegressor(8, kernel=kernel)
    assert_close(clone(model).fit(S, y).predict(S), clone(model).fit(X, y).predict(X))


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("kernel", SPARSE_KERNELS)
def test_csr_rows_are_never_made_dense(kernel, container, rng, monkeypatch):
    X, S, y = sparse_rows(rng, container)
    labels = np.where(y > 0, "b", "a")

    def guarded(dense):
        def method(self, *args, **kwargs):
            assert self.shape[1] != X.shape[1], "rows with features were made dense"
            return dense(self, *args, **kwargs)

        return method

    for name in ("toarray", "todense", "__array__"):
        if hasattr(container, name):
            monkeypatch.setattr(container, name, guarded(getattr(container, name)))
    for route in ROUTES:
        model = KernelMatchingPursuitClassifier(6, kernel=kernel, route=route)
        model.fit(S, labels).predict_proba(S)
    KernelMatchingPursuitClassifierCV(4, kernel=kernel, cv=3).fit(S, labels).predict(S)
    with pytest.raises(AssertionError, match="were made dense"):
        S.toarray()


def test_csr_rows_of_a_precomputed_kernel(rng):
    K = np.where(rbf_kernel(P.X, gamma=1.0) > 0.3, rbf_kernel(P.X, gamma=1.0), 0.0)
    model = KernelMatchingPursuitRegressor(8, kernel="precomputed")
    dense, compressed = clone(model).fit(K, P.Y), clone(model).fit(sparse.csr_matrix(K), P.Y)
    assert_array_equal(dense.support_, compressed.support_)
    assert_close(compressed.predict(sparse.csr_matrix(K)), dense.predict(K))


# Single precision, repeatability.


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fitting", FITTINGS)
def test_single_precision_is_close(fitting, route):
    X, y = load_digits(return_X_y=True)
    model = KernelMatchingPursuitClassifier(40, fitting=fitting, route=route, alpha=1e-3)
    double = clone(model).fit(X[:300], y[:300])
    single = clone(model).fit(X[:300].astype(np.float32), y[:300])
    assert_array_equal(single.support_[:10], double.support_[:10])
    assert_array_equal(single.support_vectors_, X[single.support_])
    values = double.decision_function(X[300:400])
    assert_allclose(single.decision_function(X[300:400].astype(np.float32)), values, atol=1e-5)
    assert np.isfinite(single.train_loss_path_).all()
    assert_allclose(single.train_loss_path_, double.train_loss_path_, rtol=1e-6)


@pytest.mark.parametrize("estimator", [*SINGLE, *CROSS_VALIDATED])
def test_same_seed_same_answer(estimator):
    options = {"n_candidates": 25, "random_state": 0}
    options |= {"cv": 3} if estimator in CROSS_VALIDATED else {"early_stopping": True}
    target = P.labels if "Classifier" in estimator.__name__ else P.Y
    first, second = (estimator(9, **options).fit(P.X, target, P.weights) for _ in range(2))
    assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert_array_equal(first.support_, second.support_)


def test_fitting_again_forgets_the_first_fit(rng):
    model = KernelMatchingPursuitRegressor(8, early_stopping="loo").fit(P.X, P.Y)
    model.set_params(early_stopping=False, dictionary=P.X[:20] + 0.1).fit(P.X, P.Y)
    assert not hasattr(model, "support_")
    assert not hasattr(model, "leave_one_out_loss_path_")
    model.set_params(dictionary=None, early_stopping=True).fit(P.X, P.Y)
    assert hasattr(model, "support_") and hasattr(model, "validation_loss_path_")
    model.set_params(kernel="precomputed", early_stopping=False).fit(rbf_kernel(P.X), P.Y)
    assert not hasattr(model, "support_vectors_")
    assert not hasattr(model, "validation_loss_path_")


def test_fit_does_not_change_its_input():
    X, Y, weights, centres = P.X.copy(), P.Y.copy(), P.weights.copy(), P.X[::2].copy()
    for kernel in ("rbf", "laplacian", "precomputed"):
        rows = rbf_kernel(X, gamma=GAMMA) if kernel == "precomputed" else X
        before = rows.copy()
        model = KernelMatchingPursuitRegressor(
            5, kernel=kernel, gamma=GAMMA, dictionary=None if kernel == "precomputed" else centres
        )
        model.fit(rows, Y, weights)
        model.predict(rows)
        assert_array_equal(rows, before)
    assert_array_equal(Y, P.Y)
    assert_array_equal(weights, P.weights)
    assert_array_equal(centres, P.X[::2])
    # Nor does the model change when the caller's array does.
    model = KernelMatchingPursuitRegressor(5).fit(X, Y)
    before = model.predict(P.X)
    X[:] = 0.0
    assert_array_equal(model.predict(P.X), before)


def test_values_that_a_kernel_function_keeps_are_not_changed():
    kept = rbf_kernel(P.X, gamma=GAMMA)
    kept.flags.writeable = False

    def at(X, Z):
        return kept if len(Z) == len(kept) else rbf_kernel(X, Z, gamma=GAMMA)

    for kernel in (at, lambda X, Z: at(X, Z).tolist()):
        model = KernelMatchingPursuitRegressor(5, kernel=kernel).fit(P.X, P.Y)
        named = KernelMatchingPursuitRegressor(5, gamma=GAMMA).fit(P.X, P.Y)
        assert_array_equal(model.support_, named.support_)
        assert_close(model.dual_coef_, named.dual_coef_)


def test_steps_are_dealt_in_turn():
    assert round_robin([4, 4, 3]).tolist() == [0, 1, 2] * 3 + [0, 1]
    assert round_robin([1, 3, 0]).tolist() == [0, 1, 1, 1]
    assert round_robin([2]).tolist() == [0, 0]


# Bad input: one error that names the parameter or the row.

BAD_PARAMETERS = [
    ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
    ({"n_components": -3}, "n_components"),
    ({"n_components": 2.5}, "n_components"),
    ({"n_components": True}, "n_components"),
    ({"n_components": "ten"}, "n_components"),
    ({"n_components": None}, "n_components"),
    ({"kernel": "gaussian"}, "kernel must be one of"),
    ({"kernel": 3}, "kernel must be one of"),
    ({"kernel_params": {"a": 1}}, "kernel_params is only for a callable kernel"),
    ({"gamma": 0.0}, "gamma"),
    ({"gamma": -1.0}, "gamma"),
    ({"gamma": np.nan}, "gamma"),
    ({"gamma": np.inf}, "gamma"),
    ({"gamma": "wide"}, "gamma"),
    ({"gamma": None}, "gamma"),
    ({"kernel": "polynomial", "degree": "two"}, "degree"),
    ({"kernel": "polynomial", "degree": -1}, "degree"),
    ({"kernel": "polynomial", "degree": np.nan}, "degree"),
    ({"kernel": "polynomial", "coef0": np.nan}, "coef0"),
    ({"kernel": "sigmoid", "coef0": "one"}, "coef0"),
    ({"fitting": "forward"}, "fitting must be one of"),
    ({"fitting": None}, "fitting must be one of"),
    ({"route": "fast"}, "route must be one of"),
    ({"fit_intercept": "yes"}, "fit_intercept must be one of"),
    ({"alpha": -1e-9}, "alpha must be a finite number"),
    ({"alpha": np.nan}, "alpha"),
    ({"alpha": np.inf}, "alpha"),
    ({"alpha": "small"}, "alpha"),
    ({"n_candidates": 0}, "n_candidates"),
    ({"n_candidates": 0.0}, "n_candidates"),
    ({"n_candidates": 1.5}, "n_candidates"),
    ({"n_candidates": "all"}, "n_candidates"),
    ({"n_candidates": 5, "dictionary": np.ones((3, 4))}, "n_candidates"),
    ({"dictionary": np.ones((3, 5))}, "dictionary has 5 features, but X has 4"),
    ({"dictionary": np.full((3, 4), np.nan)}, "dictionary contains NaN"),
    ({"dictionary": np.ones(4)}, "[Ee]xpected 2D array"),
    ({"dictionary": np.ones((0, 4))}, "0 sample"),
]

BAD_STOPPING = [
    ({"early_stopping": "best"}, "early_stopping must be one of"),
    ({"early_stopping": None}, "early_stopping must be one of"),
    ({"early_stopping": 1}, "early_stopping must be one of"),
    ({"early_stopping": "loo", "fitting": "basic"}, "early_stopping='loo' needs fitting="),
    ({"early_stopping": True, "validation_fraction": 0.0}, "validation_fraction"),
    ({"early_stopping": True, "validation_fraction": 1.0}, "validation_fraction"),
    ({"early_stopping": True, "validation_fraction": "x"}, "validation_fraction"),
    ({"early_stopping": True, "n_iter_no_change": 0}, "n_iter_no_change"),
    ({"early_stopping": True, "n_iter_no_change": 2.0}, "n_iter_no_change"),
    ({"tol": -1.0}, "tol"),
    ({"tol": np.nan}, "tol"),
    ({"tol": None}, "tol"),
]


@pytest.mark.parametrize("estimator", [*SINGLE, *CROSS_VALIDATED])
@pytest.mark.parametrize(("options", "message"), BAD_PARAMETERS)
def test_bad_parameter(estimator, options, message):
    target = P.labels if "Classifier" in estimator.__name__ else P.Y
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(P.X, target)


@pytest.mark.parametrize("estimator", SINGLE)
@pytest.mark.parametrize(("options", "message"), BAD_STOPPING)
def test_bad_stopping(estimator, options, message):
    target = P.labels if "Classifier" in estimator.__name__ else P.Y
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(P.X, target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"multi_class": "ovo"}, "multi_class must be one of"),
        ({"class_weight": "even"}, "class_weight must be one of"),
        ({"class_weight": [1, 2, 3]}, "class_weight must be a mapping"),
        ({"class_weight": {"ant": -1.0}}, "class_weight"),
        ({"class_weight": {"ant": np.nan}}, "class_weight"),
        ({"class_weight": {"cow": 2.0}}, "class_weight|cow"),
        ({"class_weight": dict.fromkeys(["ant", "mole", "zebra"], 0.0)}, "class_weight|weight"),
        ({"class_weight": {"ant": 0.0, "mole": 0.0}}, "class_weight|one class|weight"),
        ({"n_components": [3, 3, 3]}, "n_components must be an integer"),
        ({"n_components": [3, 3], "multi_class": "ovr"}, "n_components has 2 entries"),
        ({"n_components": [3, 0, 3], "multi_class": "ovr"}, "n_components must be an integer"),
    ],
)
def test_bad_parameter_of_classifier(options, message):
    for estimator in (KernelMatchingPursuitClassifier, KernelMatchingPursuitClassifierCV):
        with pytest.raises(ValueError, match=message):
            estimator(**options).fit(P.X, P.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gammas": [0.1, 0.0]}, "gammas"),
        ({"gammas": [0.1, np.nan]}, "gammas"),
        ({"gammas": [-1.0]}, "gammas"),
        ({"gammas": []}, "gammas"),
        ({"gammas": "wide"}, "gammas"),
        ({"gammas": [0.1], "kernel": "linear"}, "gammas has no meaning for kernel='linear'"),
        ({"gammas": [0.1], "kernel": RBF(1.0)}, "gammas has no meaning"),
        ({"cv": 1}, "k-fold cross-validation requires at least one|n_splits"),
        ({"cv": 61}, "n_splits=61"),
        ({"cv": "five"}, "cv"),
        ({"cv": [([], [0, 1])]}, "cv: every split needs training and test rows"),
    ],
)
def test_bad_parameter_of_cross_validation(options, message):
    with pytest.raises(ValueError, match=message):
        KernelMatchingPursuitRegressorCV(5, **options).fit(P.X, P.Y)


def with_entry(value, row=17, column=2):
    X = P.X.copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize("estimator", [*SINGLE, *CROSS_VALIDATED])
def test_bad_rows(estimator):
    target = P.labels if "Classifier" in estimator.__name__ else P.Y[:, 0]
    model = estimator(5)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        with pytest.raises(ValueError, match=word):
            model.fit(with_entry(value), target)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        model.fit(P.X, target[:-1])
    with pytest.raises(ValueError, match="minimum of 1 is required|0 sample"):
        model.fit(P.X[:0], target[:0])
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(P.X[:, :0], target)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.fit(P.X[:, 0], target)
    fitted = model.fit(P.X, target)
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.predict(P.X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(with_entry(np.nan))


@pytest.mark.parametrize("estimator", [*SINGLE, *CROSS_VALIDATED])
def test_bad_weights(estimator):
    target = P.labels if "Classifier" in estimator.__name__ else P.Y
    model = estimator(5)
    negative = np.where(np.arange(60) == 23, -1.0, 1.0)
    for weights, message in (
        (negative, "sample_weight is negative at row 23"),
        (np.zeros(60), "sample_weight is zero for every row"),
        (np.ones(59), r"sample_weight has shape \(59,\), expected \(60,\)"),
        (np.ones((60, 1)), r"sample_weight has shape \(60, 1\)"),
        (np.full(60, np.nan), "sample_weight contains NaN"),
        (np.full(60, np.inf), "sample_weight contains infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(P.X, target, weights)


@pytest.mark.parametrize(
    "estimator", [KernelMatchingPursuitClassifier, KernelMatchingPursuitClassifierCV]
)
def test_bad_labels(estimator):
    model = estimator(5)
    with pytest.raises(ValueError, match="one class only .ant.; .*at least 2 classes"):
        model.fit(P.X, np.full(60, "ant"))
    only = np.where(P.labels == "ant", 1.0, 0.0)
    with pytest.raises(ValueError, match="one class only .ant."):
        model.fit(P.X, P.labels, only)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(P.X, P.Y[:, 0])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(P.X, np.where(np.arange(60) == 3, np.nan, np.arange(60) % 2))
    with pytest.raises(ValueError, match="y should be a 1d array"):
        model.fit(P.X, np.stack([np.arange(60) % 2] * 2, axis=1))


@pytest.mark.parametrize(
    "estimator", [KernelMatchingPursuitRegressor, KernelMatchingPursuitRegressorCV]
)
def test_bad_targets(estimator):
    Y = P.Y.copy()
    Y[5, 1] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN"):
        estimator(5).fit(P.X, Y)
    with pytest.raises(ValueError, match="infinity"):
        estimator(5).fit(P.X, np.where(np.arange(60) == 3, np.inf, 0.0))
    with pytest.raises(ValueError, match="could not convert|dtype"):
        estimator(5).fit(P.X, P.labels)


@pytest.mark.parametrize(
    ("X_val", "y_val", "message"),
    [
        (P.X[0], P.Y[:4], "X_val: Expected 2D array"),
        (P.X[:0], P.Y[:0], "X_val: Found array with 0 sample"),
        ([["u"] * 4], P.Y[:1], "X_val: could not convert string to float"),
        (P.X[:1] + 1j, P.Y[:1], "X_val: Complex data not supported"),
        (P.X[:2], [["u"] * 3] * 2, "y_val: could not convert string to float"),
        (P.X[:2], np.empty((0, 3)), "y_val: Found array with 0 sample"),
    ],
)
def test_errors_about_held_out_rows_name_them(X_val, y_val, message):
    model = KernelMatchingPursuitRegressor(3, early_stopping=True)
    with pytest.raises(ValueError, match=f"^{message}"):
        model.fit(P.X, P.Y, X_val=X_val, y_val=y_val)


def test_errors_about_held_out_labels_name_them():
    model = KernelMatchingPursuitClassifier(3, early_stopping=True)
    with pytest.raises(ValueError, match="^y_val should be a 1d array"):
        model.fit(P.X, P.labels, X_val=P.X, y_val=P.Y)


def test_a_splitter_tells_of_a_rare_class_by_its_label():
    labels = np.where(np.arange(60) == 7, "wolf", np.where(P.labels == "ant", "ant", "other"))
    model = KernelMatchingPursuitClassifierCV(3, cv=StratifiedShuffleSplit(2, random_state=0))
    with pytest.raises(ValueError, match=r"^cv=StratifiedShuffleSplit(?s:.*)'wolf'"):
        model.fit(P.X, labels)


def test_bad_held_out_rows():
    model = KernelMatchingPursuitClassifier(5, early_stopping=True)
    held_out = {"X_val": P.X[:9], "y_val": P.labels[:9]}
    with pytest.raises(ValueError, match="only used with early_stopping=True"):
        KernelMatchingPursuitClassifier(5).fit(P.X, P.labels, **held_out)
    with pytest.raises(ValueError, match="only used with early_stopping=True"):
        KernelMatchingPursuitClassifier(5, early_stopping="loo").fit(P.X, P.labels, **held_out)
    for given in ({"X_val": P.X[:9]}, {"y_val": P.labels[:9]}):
        with pytest.raises(ValueError, match="X_val and y_val must be given together"):
            model.fit(P.X, P.labels, **given)
    with pytest.raises(ValueError, match="X_val has 9 rows, but y_val has 8"):
        model.fit(P.X, P.labels, X_val=P.X[:9], y_val=P.labels[:8])
    with pytest.raises(ValueError, match="y_val has the label cow"):
        model.fit(P.X, P.labels, X_val=P.X[:2], y_val=["ant", "cow"])
    with pytest.raises(ValueError, match="X_val has 3 features"):
        model.fit(P.X, P.labels, X_val=P.X[:9, :3], y_val=P.labels[:9])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(P.X, P.labels, X_val=with_entry(np.nan), y_val=P.labels)
    regressor = KernelMatchingPursuitRegressor(5, early_stopping=True)
    for y_val in (P.Y[:8], P.Y[:9, 0], np.full((9, 2), np.nan)):
        with pytest.raises(ValueError, match="y_val"):
            regressor.fit(P.X, P.Y, X_val=P.X[:9], y_val=y_val)


def test_bad_precomputed_kernel():
    model = KernelMatchingPursuitRegressor(5, kernel="precomputed")
    with pytest.raises(ValueError, match="[Pp]recomputed|square"):
        model.fit(P.X, P.Y)
    with pytest.raises(ValueError, match="dictionary: centres cannot be given"):
        model.set_params(dictionary=np.ones((2, 60))).fit(np.eye(60), P.Y)


def test_bad_values_of_a_kernel():
    def hollow(X, Z):
        K = rbf_kernel(X, Z)
        K[X[:, 0] == P.X[13, 0]] = np.nan
        return K

    with pytest.raises(
        ValueError, match="kernel: hollow gives a value that is not finite, nan in row 13"
    ):
        KernelMatchingPursuitRegressor(5, kernel=hollow, fit_intercept=False).fit(P.X, P.Y)
    with pytest.raises(ValueError, match="kernel: .*not finite"):
        KernelMatchingPursuitRegressor(5, kernel=hollow).fit(P.X, P.Y)
    with pytest.raises(ValueError, match=r"expected \(\d+, 60\)"):
        KernelMatchingPursuitRegressor(5, kernel=lambda X, Z: X @ X.T[:, :9]).fit(P.X, P.Y)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="not finite; rescale"):
        KernelMatchingPursuitRegressor(5, kernel="polynomial", gamma=1.0, degree=200).fit(P.X, P.Y)


@pytest.mark.parametrize("route", ROUTES)
def test_numbers_too_large_to_square(route):
    with np.errstate(all="ignore"):
        with pytest.raises(ValueError, match="kernel"):
            KernelMatchingPursuitRegressor(5, kernel="linear", route=route).fit(1e100 * P.X, P.Y)
        with pytest.raises(ValueError, match=r"\by\b"):
            KernelMatchingPursuitRegressor(5, gamma=GAMMA, route=route).fit(P.X, 1e200 * P.Y)
        for fit_intercept in (True, False):
            model = KernelMatchingPursuitRegressor(
                5, kernel=lambda X, Z: 1e308 * rbf_kernel(X, Z), fit_intercept=fit_intercept
            )
            with pytest.raises(ValueError, match="kernel"):
                model.set_params(route=route).fit(P.X, P.Y)


# Degenerate input: a finite answer, and a warning that says what happened.


def assert_finite(model, X):
    assert np.isfinite(model.predict(X)).all() if not hasattr(model, "classes_") else True
    if hasattr(model, "predict_proba"):
        table = model.predict_proba(X)
        assert np.isfinite(table).all()
        assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
        assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(X))
    for name in ("dual_coef_", "intercept_", "train_loss_path_"):
        assert np.isfinite(getattr(model, name)).all()


DEGENERATE = {
    "three rows": (np.eye(3), [0, 1, 1], {}),
    "two rows": (np.array([[0.0], [1.0]]), [0, 1], {}),
    "copies": (np.repeat(np.eye(4), 10, axis=0), np.repeat([0, 1, 0, 1], 10), {}),
    "constant features": (np.ones((20, 3)), np.arange(20) % 2, {}),
    "K is the identity": (P.X, np.arange(60) % 2, {"gamma": 1e300}),
    "K is all ones": (P.X, np.arange(60) % 2, {"gamma": 1e-300}),
    "rank of a linear kernel": (P.X, np.arange(60) % 2, {"kernel": "linear"}),
    "zero rows": (np.zeros((20, 3)), np.arange(20) % 2, {"kernel": "cosine"}),
    "huge features": (1e150 * P.X, np.arange(60) % 2, {}),
    "tiny features": (1e-150 * P.X, np.arange(60) % 2, {}),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fitting", ["prefit", "backfit"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_rows(case, fitting, route):
    X, y, options = DEGENERATE[case]
    for estimator in SINGLE:
        model = estimator(100, fitting=fitting, route=route, **options)
        with pytest.warns(ConvergenceWarning, match=r"n_components=100, but the path ended after"):
            model.fit(X, y)
        assert_finite(model, X)
        assert model.stop_reason_ in ("rank", "zero_residual", "no_gain")
        assert model.n_components_ < 100


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_rows_of_basic_pursuit(case):
    X, y, options = DEGENERATE[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for estimator in SINGLE:
            assert_finite(estimator(100, fitting="basic", **options).fit(X, y), X)


@pytest.mark.parametrize(
    "case", [case for case in DEGENERATE if case not in ("two rows", "three rows")]
)
def test_degenerate_rows_of_cross_validation(case):
    X, y, options = DEGENERATE[case]
    gamma = {"gammas": [options["gamma"]]} if "gamma" in options else {}
    for estimator in CROSS_VALIDATED:
        model = estimator(30, cv=3, **{**options, **gamma})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        assert_finite(model, X)
        assert np.isfinite(model.cv_loss_path_).all()


@pytest.mark.parametrize("kernel", ["rbf", "linear", "cosine", "laplacian", "polynomial"])
@pytest.mark.parametrize(
    "estimator", [KernelMatchingPursuitRegressor, KernelMatchingPursuitRegressorCV]
)
def test_targets_all_equal(estimator, kernel):
    for value in (0.0, 3.5):
        with pytest.warns(ConvergenceWarning, match="after 0 steps: the training targets are expl"):
            model = estimator(5, kernel=kernel).fit(P.X, np.full(60, value))
        assert_array_equal(model.predict(P.X), np.full(60, value))
        assert (model.n_components_, model.n_iter_, model.stop_reason_) == (0, 0, "zero_residual")
        assert model.support_.shape == (0,)
        assert list(model.staged_predict(P.X)) == []


def test_one_row():
    with pytest.warns(ConvergenceWarning, match="after 0 steps"):
        model = KernelMatchingPursuitRegressor().fit([[2.0, 3.0]], [7.0])
    assert_array_equal(model.predict([[2.0, 3.0], [0.0, 0.0]]), [7.0, 7.0])
    free = KernelMatchingPursuitRegressor(1, fit_intercept=False).fit([[2.0, 3.0]], [7.0])
    assert_allclose(free.predict([[2.0, 3.0]]), [7.0], rtol=1e-15)


def test_gamma_of_1e300_keeps_the_identity():
    with pytest.warns(ConvergenceWarning, match="explained to rounding|combinations"):
        model = KernelMatchingPursuitRegressor(100, gamma=1e300).fit(P.X, P.Y)
    assert_array_equal(model.predict(P.X + 1.0), np.tile(model.intercept_, (60, 1)))


def test_stop_reasons():
    def reason(y, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return KernelMatchingPursuitRegressor(**options).fit(P.X, y).stop_reason_

    y = P.Y[:, 0]
    assert reason(y, n_components=5) == "n_components"
    assert reason(y, kernel="linear") == "rank"
    assert reason(P.X @ [1.0, 2.0, 3.0, 4.0], kernel="linear") == "zero_residual"
    assert reason(y, gamma=GAMMA, tol=0.3) == "tol"
    assert reason(y, gamma=2.0, n_components=40, early_stopping="loo") == "early_stopping"


def test_no_gain_is_a_reason():
    """Targets orthogonal to every atom: nothing is chosen."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    y = np.array([0.0, 0.0, 1.0, -1.0])
    with pytest.warns(ConvergenceWarning, match="no other candidate lowers the training error"):
        model = KernelMatchingPursuitRegressor(5, kernel="linear").fit(X, y)
    assert model.stop_reason_ == "no_gain"
    assert_array_equal(model.predict(X), np.zeros(4))


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (KernelMatchingPursuitRegressor(50, kernel="linear"), P.Y),
        (KernelMatchingPursuitClassifier(50, kernel="linear"), P.labels),
        (KernelMatchingPursuitRegressorCV(5), np.zeros(60)),
    ],
)
def test_warning_points_at_the_caller(model, target):
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(P.X, target)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_basis_that_ends_early_leaves_its_turns_to_nobody():
    """One-vs-rest: the first class is explained by one atom, the others use their own shares."""
    X = np.repeat(np.array([[0.0], [9.0], [9.3], [9.6]]), 5, axis=0)
    y = np.repeat([0, 1, 2, 1], 5)
    with pytest.warns(ConvergenceWarning, match="n_components=9, but the path ended after"):
        model = KernelMatchingPursuitClassifier(9, gamma=20.0, multi_class="ovr").fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert model.n_components_ <= 4
    assert_finite(model, X)
    for n in range(1, model.n_iter_ + 1):
        cut = model.truncate(n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            small = clone(model).set_params(n_components=n).fit(X, y)
        assert cut.n_iter_ == small.n_iter_ <= n
        assert_allclose(cut.decision_function(X), small.decision_function(X), atol=1e-9)


def test_no_warning_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelMatchingPursuitClassifier(10, gamma=GAMMA).fit(P.X, P.labels)
        KernelMatchingPursuitRegressor(40, gamma=2.0, early_stopping=True).fit(P.X, P.Y)
        KernelMatchingPursuitRegressorCV(10, cv=3).fit(P.X, P.Y)


@pytest.mark.parametrize("n", range(1, 13))
def test_truncated_one_vs_rest_equals_fit_where_a_basis_ends_early(n):
    """The first class is an indicator among the atoms: its basis ends after one step."""
    rng = np.random.default_rng(5)
    y = np.repeat(["b", "a", "c"], 20)
    X = np.column_stack([y == "a", rng.normal(size=(60, 6))]).astype(float)
    model = KernelMatchingPursuitClassifier(
        12, kernel="linear", multi_class="ovr", dictionary=np.eye(7)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = clone(model).fit(X, y)
        small = clone(model).set_params(n_components=n).fit(X, y)
    assert whole.path_.lengths(whole.n_iter_)[0] == 1
    if n > whole.n_iter_:
        return
    cut = whole.truncate(n)
    assert cut.n_iter_ == small.n_iter_
    assert_allclose(cut.dual_coef_, small.dual_coef_, rtol=1e-10, atol=1e-12)
    assert_allclose(cut.train_loss_path_, small.train_loss_path_, rtol=1e-10, atol=1e-14)
    assert_allclose(cut.predict_proba(X), small.predict_proba(X), rtol=1e-8)
    stages = list(whole.staged_decision_function(X))
    assert_allclose(stages[n - 1], small.decision_function(X), rtol=1e-9, atol=1e-12)
