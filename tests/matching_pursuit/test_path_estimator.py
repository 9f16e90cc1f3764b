"""Losses, dictionaries and stopping rules through the estimators."""

import warnings
from itertools import cycle

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from problems import as_targets, awkward, pairwise
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

import pursuit
from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit.bounds import matching_pursuit_bound
from pursuit.dictionary import OrientedGaussians
from pursuit.kernels import RBF, Linear
from pursuit.losses import LOSSES, CrossEntropy, Huber, LogLoss, Quantile, SquaredError

GAMMA = 0.3
P = awkward()
USED = np.flatnonzero(P.weights > 0)
COUNTS = np.round(np.abs(P.Y[:, 0] - 7.0) * 3.0)
TWO = np.where(P.labels == "mole", "no", "Yes")

CLASS_LOSSES = [name for name, loss in LOSSES.items() if loss.task != "regressor"]
NUMBER_LOSSES = [name for name, loss in LOSSES.items() if loss.task != "classifier"]
EVERY_LOSS = [("classifier", name) for name in CLASS_LOSSES] + [
    ("regressor", name) for name in NUMBER_LOSSES
]


def model_of(kind, loss, n=8, **options):
    """An estimator that is not fitted, and its targets."""
    options = {"gamma": GAMMA, "loss": loss, **options}
    if kind == "classifier":
        return KernelMatchingPursuitClassifier(n, **options), P.labels
    target = COUNTS if loss == "poisson" else P.Y
    return KernelMatchingPursuitRegressor(n, **options), target


def fitted(kind, loss, n=8, **options):
    model, target = model_of(kind, loss, n, **options)
    return model.fit(P.X, target, P.weights)


def raw(model, X):
    """Outputs, whatever `predict` makes of them."""
    return model.expansion_(np.asarray(X))


def assert_equal_models(a, b, X=P.X, rtol=1e-6):
    assert_array_equal(a.support_vectors_, b.support_vectors_)
    assert_allclose(raw(a, X), raw(b, X), rtol=rtol, atol=rtol * np.abs(raw(b, X)).max())


# The path.


@pytest.mark.parametrize(
    ("task", "every", "selection"), pairwise(EVERY_LOSS, [1, 3], ["loss", "squared_error"])
)
def test_truncate_is_fit_at_multiples_of_refit_every(task, every, selection):
    kind, loss = task
    options = {"refit_every": every, "selection": selection}
    model = fitted(kind, loss, 7, **options)
    assert model.n_iter_ == 7
    stages = list(model.staged_predict(P.X))
    for n, stage in enumerate(stages, start=1):
        small = model.truncate(n)
        assert_array_equal(small.train_loss_path_, model.train_loss_path_[:n])
        if model.loss == "poisson" or kind == "regressor":
            assert_allclose(stage, small.predict(P.X), rtol=1e-7, atol=1e-9)
        else:
            assert_array_equal(stage, small.predict(P.X))
        if n in (3, 6):
            again = fitted(kind, loss, n, **options)
            assert_equal_models(small, again)
            assert_allclose(small.train_loss_path_, again.train_loss_path_, rtol=1e-9)
    assert len(stages) == 7


@pytest.mark.parametrize("loss", ["log_loss", "squared_error_tanh", "smooth_hinge"])
@pytest.mark.parametrize("fitting", ["prefit", "backfit", "basic"])
def test_one_vs_rest_is_one_model_a_class(fitting, loss):
    model = fitted("classifier", loss, [3, 2, 4], multi_class="ovr", fitting=fitting)
    decisions = model.decision_function(P.X)
    for t, (label, n) in enumerate(zip(model.classes_, (3, 2, 4), strict=True)):
        alone = KernelMatchingPursuitClassifier(n, gamma=GAMMA, loss=loss, fitting=fitting)
        alone.fit(P.X, P.labels == label, P.weights)
        assert_allclose(alone.decision_function(P.X), decisions[:, t], rtol=1e-9, atol=1e-12)
    stages = list(model.staged_decision_function(P.X))
    for n in (1, 3, 5, 9):
        assert_allclose(stages[n - 1], model.truncate(n).decision_function(P.X), atol=1e-9)
    assert isinstance(model.loss_, type(LOSSES[loss]))


@pytest.mark.parametrize(("kind", "loss"), EVERY_LOSS)
def test_training_losses_are_those_of_the_predictions(kind, loss):
    model = fitted(kind, loss)
    Y = as_targets(P.labels) if kind == "classifier" else model_of(kind, loss)[1].reshape(60, -1)
    for n, value in enumerate(model.train_loss_path_, start=1):
        losses = model.loss_.value(Y, raw(model.truncate(n), P.X)).reshape(60, -1).mean(axis=1)
        assert_allclose(value, np.average(losses, weights=P.weights), rtol=1e-7)


def test_squared_error_refitted_seldom_is_figure_4():
    D = reference.rbf(P.X[USED], P.X[USED], GAMMA)
    models = reference.gradient_pursuit(
        reference.LOSSES["squared_error"], D, P.Y[USED], P.weights[USED], 8, 3
    )
    model = fitted("regressor", "squared_error", fitting="backfit", refit_every=3)
    assert_array_equal(model.support_, USED[models[-1].support])
    for stage, expected in zip(model.staged_predict(P.X[USED]), models, strict=True):
        assert_allclose(stage, expected.values(D), rtol=1e-5)


@pytest.mark.parametrize(("kind", "loss"), EVERY_LOSS)
def test_default_ridge_is_that_of_the_loss(kind, loss):
    expected = 0.01 if kind == "classifier" or loss == "poisson" else 0.0
    expected = 0.0 if loss in ("squared_error", "squared_error_tanh") else expected
    one, other = fitted(kind, loss, 4), fitted(kind, loss, 4, alpha=expected)
    assert_equal_models(one, other, rtol=1e-14)
    strong = fitted(kind, loss, 4, alpha=10.0)
    assert (strong.dual_coef_**2).sum() < (one.dual_coef_**2).sum()


# Limits that equal another library.


def test_all_atoms_under_log_loss_are_logistic_regression():
    X, y = load_breast_cancer(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:, :4]
    model = KernelMatchingPursuitClassifier(
        4, kernel="linear", loss="log_loss", alpha=0.0, dictionary=np.eye(4)
    ).fit(X, y)
    expected = LogisticRegression(C=np.inf, tol=1e-9, max_iter=1000).fit(X, y)
    assert model.n_components_ == 4
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-4)
    ridge = KernelMatchingPursuitClassifier(
        4, kernel="linear", loss="log_loss", alpha=2.0, dictionary=np.eye(4)
    ).fit(X, y)
    # scikit-learn halves the penalty and multiplies the loss by C.
    expected = LogisticRegression(C=1.0 / 4.0, tol=1e-9, max_iter=1000).fit(X, y)
    assert_allclose(ridge.predict_proba(X), expected.predict_proba(X), atol=1e-4)


def test_all_atoms_under_cross_entropy_are_multinomial_regression():
    X, y = load_iris(return_X_y=True)
    model = KernelMatchingPursuitClassifier(
        4, kernel="linear", loss="log_loss", alpha=0.5, dictionary=np.eye(4)
    ).fit(X, y)
    assert model.loss_ == CrossEntropy()
    expected = LogisticRegression(C=1.0, tol=1e-9, max_iter=5000).fit(X, y)
    assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-4)


def test_all_atoms_under_poisson_are_poisson_regression():
    X = P.X - P.X.mean(axis=0)
    model = KernelMatchingPursuitRegressor(
        4, kernel="linear", loss="poisson", alpha=3.0, dictionary=np.eye(4)
    ).fit(X, COUNTS, P.weights)
    # The mean deviance, halved, and half the penalty.
    expected = PoissonRegressor(alpha=6.0 / P.weights.sum(), tol=1e-9, max_iter=1000)
    expected.fit(X, COUNTS, P.weights)
    assert_allclose(model.predict(X), expected.predict(X), rtol=1e-4)


def test_quantile_of_many_rows_leaves_a_share_below(rng):
    x = rng.uniform(-2, 2, size=(600, 1))
    y = np.sin(x[:, 0]) + rng.exponential(size=600)
    for q in (0.1, 0.5, 0.9):
        model = KernelMatchingPursuitRegressor(6, loss=Quantile(q)).fit(x, y)
        assert abs((y <= model.predict(x)).mean() - q) < 0.02


def test_huber_is_not_moved_by_outliers(rng):
    x = np.linspace(-2, 2, 200)[:, None]
    truth = np.sin(2 * x[:, 0])
    y = truth + 0.05 * rng.normal(size=200)
    y[::10] += 50.0
    errors = {
        loss: np.abs(KernelMatchingPursuitRegressor(8, loss=loss).fit(x, y).predict(x) - truth)
        for loss in ("squared_error", "huber", "absolute_error")
    }
    assert errors["huber"].max() < 0.5
    assert errors["absolute_error"].max() < 0.5
    assert errors["squared_error"].mean() > 2.0


# Probabilities and means.


@pytest.mark.parametrize(
    ("labels", "loss", "multi_class"),
    pairwise([TWO, P.labels], CLASS_LOSSES, ["shared", "ovr"]),
)
def test_probabilities(labels, loss, multi_class):
    model = KernelMatchingPursuitClassifier(9, gamma=GAMMA, loss=loss, multi_class=multi_class)
    model.fit(P.X, labels, P.weights)
    decisions, table = model.decision_function(P.X), model.predict_proba(P.X)
    assert_allclose(table.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(P.X))
    two = decisions.ndim == 1
    own = {("log_loss", True): 1.0, ("logit_boost", True): 0.5}.get((loss, two))
    if loss == "log_loss" and multi_class == "shared":
        own = 1.0
    if own is not None:
        assert model.temperature_ == own
        assert_array_equal(model.inverse_temperature_path_, [[1.0, 1.0 / own]])
    else:
        assert len(model.inverse_temperature_path_) == model.n_iter_
    scaled = decisions / model.temperature_
    expected = expit(scaled) if two else softmax(scaled, axis=1)
    assert_allclose(table[:, 1] if two else table, expected, rtol=1e-9, atol=1e-300)
    small = model.truncate(3)
    assert small.temperature_ == (own or 1.0 / model.inverse_temperature_path_[2, 1])


def test_predictions_of_counts_are_means():
    model = fitted("regressor", "poisson")
    assert_allclose(model.predict(P.X), np.exp(raw(model, P.X)[:, 0]))
    assert model.predict(P.X).shape == (60,)
    for n, stage in enumerate(model.staged_predict(P.X), start=1):
        assert_allclose(stage, np.exp(raw(model.truncate(n), P.X)[:, 0]))
    both = fitted("regressor", "poisson").fit(P.X, np.column_stack([COUNTS, COUNTS + 1]))
    assert both.predict(P.X).shape == (60, 2)
    # With a free constant the means add up to the counts.
    assert_allclose(P.weights @ model.predict(P.X), P.weights @ COUNTS, rtol=1e-4)


class Quartic:
    """A user's loss."""

    convex = True

    def value(self, Y, F):
        return (F - Y) ** 4

    def gradient(self, Y, F):
        return 4 * (F - Y) ** 3

    def curvature(self, Y, F):
        return 12 * (F - Y) ** 2


class Doubled:
    """Squared error twice, in the units of the square root of the targets."""

    convex = True
    inverse_temperature = 3.0

    def value(self, Y, F):
        return 2.0 * (F - Y) ** 2

    def gradient(self, Y, F):
        return 4.0 * (F - Y)

    def curvature(self, Y, F):
        return np.full(F.shape, 4.0)

    def mean(self, F):
        return F + 1000.0


def test_user_losses():
    model = KernelMatchingPursuitRegressor(8, gamma=GAMMA, loss=Quartic())
    model.fit(P.X, P.Y, P.weights)
    assert_array_less(np.diff(model.train_loss_path_), 0.0)
    residual = model.predict(P.X) - P.Y
    # At the minimum the derivative in the constant vanishes.
    cubes = P.weights[:, None] * residual**3
    assert_allclose(cubes.sum(axis=0), 0.0, atol=1e-3 * np.abs(cubes).sum())
    doubled = KernelMatchingPursuitRegressor(8, gamma=GAMMA, loss=Doubled())
    plain = KernelMatchingPursuitRegressor(8, gamma=GAMMA)
    doubled.fit(P.X, P.Y, P.weights)
    plain.fit(P.X, P.Y, P.weights)
    assert_allclose(doubled.predict(P.X), plain.predict(P.X) + 1000.0, rtol=1e-7)
    classifier = KernelMatchingPursuitClassifier(8, gamma=GAMMA, loss=Doubled()).fit(P.X, TWO)
    assert classifier.temperature_ == 1.0 / 3.0


def test_user_loss_of_the_wrong_shape_is_named():
    class Wrong(Doubled):
        def curvature(self, Y, F):
            return 4.0

    with pytest.raises(ValueError, match="loss: curvature of Wrong returned an array of shape"):
        KernelMatchingPursuitRegressor(3, loss=Wrong()).fit(P.X, P.Y)


def test_a_loss_as_an_object_is_its_name():
    for kind, loss in (("classifier", "log_loss"), ("regressor", "huber")):
        assert_equal_models(fitted(kind, loss), fitted(kind, LOSSES[loss]), rtol=1e-14)
    assert fitted("regressor", Huber(2.0)).loss_ == Huber(2.0)
    # Two targets, and a scale for each.
    assert len(fitted("regressor", "huber").loss_.delta) == 2
    assert fitted("regressor", "huber").loss == "huber"


# Weights.


@pytest.mark.parametrize(
    ("task", "fitting"),
    list(zip(EVERY_LOSS, cycle(["backfit", "prefit", "basic"]), strict=False)),
)
def test_weight_two_is_the_row_twice(task, fitting):
    kind, loss = task
    model, target = model_of(kind, loss, 6, fitting=fitting)
    twice = np.r_[np.arange(60), np.arange(0, 60, 3)]
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    one = clone(model).fit(P.X, target, weights)
    other = clone(model).fit(P.X[twice], target[twice])
    assert_equal_models(one, other, rtol=1e-4)
    assert_allclose(one.train_loss_path_, other.train_loss_path_, rtol=1e-6)
    if kind == "classifier":
        assert_allclose(one.temperature_, other.temperature_, rtol=1e-3)


@pytest.mark.parametrize(("kind", "loss"), EVERY_LOSS)
def test_weight_zero_is_the_row_removed(kind, loss):
    model, target = model_of(kind, loss, 6)
    changed = target.copy()
    changed[P.weights == 0] = "ant" if kind == "classifier" else 1e3
    one = clone(model).fit(P.X, changed, P.weights)
    other = clone(model).fit(P.X[USED], target[USED], P.weights[USED])
    assert_equal_models(one, other, rtol=1e-12)
    assert_array_equal(one.support_, USED[other.support_])


def test_held_out_rows_are_as_good_as_removed():
    train, test = train_test_split(USED, test_size=0.3, stratify=P.labels[USED], random_state=3)
    train, test = np.sort(train), np.sort(test)
    model = KernelMatchingPursuitClassifier(
        20, gamma=GAMMA, loss="log_loss", early_stopping=True, validation_fraction=0.3,
        random_state=3,
    ).fit(P.X, P.labels, P.weights)  # fmt: skip
    whole = KernelMatchingPursuitClassifier(20, gamma=GAMMA, loss="log_loss")
    whole.fit(P.X[train], P.labels[train], P.weights[train])
    Y = as_targets(P.labels[test])
    losses = [
        np.average(CrossEntropy().value(Y, f), weights=P.weights[test])
        for f in whole.staged_decision_function(P.X[test])
    ]
    assert_allclose(model.validation_loss_path_, losses, rtol=1e-7)
    assert model.n_iter_ == np.argmin(losses) + 1 < 20
    assert_equal_models(model, whole.truncate(model.n_iter_), rtol=1e-9)
    assert model.stop_reason_ == "early_stopping"


@pytest.mark.parametrize("patience", [1, 4])
@pytest.mark.parametrize(("kind", "loss"), [("classifier", "smooth_hinge"), ("regressor", "huber")])
def test_patience_on_held_out_rows_given(kind, loss, patience):
    options = {"early_stopping": True, "n_iter_no_change": patience}
    model, target = model_of(kind, loss, 50, **options)
    val = np.arange(0, 60, 4)
    model.fit(P.X, target, X_val=P.X[val] + 0.3, y_val=target[val])
    losses = model.validation_loss_path_
    best = int(np.argmin(losses)) + 1
    assert model.n_iter_ == best
    assert len(losses) == min(best + patience, 50)
    Y = as_targets(target[val]) if kind == "classifier" else target[val]
    outputs = raw(model, P.X[val] + 0.3)
    assert_allclose(losses[best - 1], model.loss_.value(Y, outputs).mean(), rtol=1e-7)


def test_tolerance_on_the_training_loss():
    whole = fitted("classifier", "log_loss", 20)
    short = fitted("classifier", "log_loss", 20, tol=whole.train_loss_path_[6] * (1 + 1e-9))
    assert (short.n_iter_, short.stop_reason_) == (7, "tol")
    assert_equal_models(short, whole.truncate(7), rtol=1e-12)


# The bound.


def bound_of(model, wrong, weights, X):
    """Theorem 3 with rows counted one by one: a row of weight 2 is two rows."""
    bounds = []
    for n in range(1, model.n_iter_ + 1):
        small = model.truncate(n)
        left = weights.astype(int).copy()
        for row in small.support_:
            left[row] -= 1
        errors = int(left[wrong(small)].sum())
        k, m = small.n_components_, int(weights.sum())
        bounds.append(matching_pursuit_bound(m, k, errors) if k + errors < m else np.inf)
    return np.array(bounds)


@pytest.mark.parametrize(
    ("options", "labels", "weighted"),
    pairwise(
        [
            {},
            {"loss": "log_loss"},
            {"fitting": "basic"},
            {"multi_class": "ovr", "loss": "smooth_hinge"},
        ],
        [TWO, P.labels],
        [False, True],
    ),
)
def test_bound_counts_the_rows(options, labels, weighted):
    weights = np.where(np.arange(60) % 4 == 0, 2.0, 1.0) if weighted else np.ones(60)
    weights[[5, 8]] = 0.0 if weighted else 1.0
    options = {"gamma": 3.0, "early_stopping": "bound", **options}
    model = KernelMatchingPursuitClassifier(15, **options).fit(P.X, labels, weights)
    whole = clone(model).set_params(early_stopping=False).fit(P.X, labels, weights)
    expected = bound_of(whole, lambda m: m.predict(P.X) != labels, weights, P.X)
    assert_allclose(model.bound_path_, expected, rtol=1e-9)
    assert model.n_iter_ == np.argmin(expected) + 1
    assert not hasattr(whole, "bound_path_")


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
@pytest.mark.parametrize("tolerance", [None, 1.0])
def test_bound_of_a_regressor_counts_predictions_far_off(loss, tolerance):
    weights = np.where(np.arange(60) % 4 == 0, 2.0, 1.0)
    model, target = model_of(
        "regressor", loss, 20, early_stopping="bound", error_tolerance=tolerance, gamma=3.0
    )
    model.fit(P.X, target, weights)
    whole = clone(model).set_params(early_stopping=False, error_tolerance=None)
    whole.fit(P.X, target, weights)
    Y = target.reshape(60, -1)
    if tolerance is None:
        mean = np.average(Y, axis=0, weights=weights)
        tolerance = 0.5 * np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weights).mean())

    def wrong(small):
        return (np.abs(small.predict(P.X).reshape(60, -1) - Y) > tolerance).any(axis=1)

    expected = bound_of(whole, wrong, weights, P.X)
    assert_allclose(model.bound_path_, expected, rtol=1e-9)
    assert_allclose(model.error_tolerance_, tolerance, rtol=1e-12)
    model.set_params(early_stopping=False, error_tolerance=None).fit(P.X, target)
    assert not hasattr(model, "error_tolerance_")


def test_bound_of_rows_twice_is_that_of_weight_two():
    twice = np.r_[np.arange(60), np.arange(0, 60, 3)]
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    model = KernelMatchingPursuitClassifier(15, gamma=3.0, early_stopping="bound")
    one = clone(model).fit(P.X, P.labels, weights)
    other = clone(model).fit(P.X[twice], P.labels[twice])
    assert_allclose(one.bound_path_, other.bound_path_, rtol=1e-12)


@pytest.mark.parametrize(
    "options", [{"dictionary": P.X[:5]}, {"dictionary": [None, RBF(2.0)]},
                {"dictionary": {"f": lambda X: X[:, 0]}}],
)  # fmt: skip
def test_bound_needs_a_row_a_function(options):
    model = KernelMatchingPursuitClassifier(5, early_stopping="bound", **options)
    with pytest.raises(ValueError, match="early_stopping='bound' needs one candidate function"):
        model.fit(P.X, P.labels)


def test_leave_one_out_needs_squared_error():
    for options in ({"loss": "log_loss"}, {"refit_every": 2}):
        model = KernelMatchingPursuitClassifier(5, early_stopping="loo", **options)
        with pytest.raises(ValueError, match="early_stopping='loo' is closed-form"):
            model.fit(P.X, P.labels)


def test_a_new_rule_forgets_the_losses_of_the_old_one():
    model = KernelMatchingPursuitClassifier(5, gamma=3.0, early_stopping="bound")
    model.fit(P.X, TWO)
    model.set_params(early_stopping="loo").fit(P.X, TWO)
    assert not hasattr(model, "bound_path_")
    assert hasattr(model, "leave_one_out_loss_path_")


# Cross-validation.


@pytest.mark.parametrize(
    ("loss", "selection", "route"),
    pairwise(["log_loss", "squared_error_tanh"], ["loss", "squared_error"], ["gram", "direct"]),
)
def test_cross_validated_classes_equal_refits_on_the_folds(loss, selection, route):
    options = {"loss": loss, "selection": selection, "alpha": 0.1, "route": route}
    cv = StratifiedKFold(2)
    model = KernelMatchingPursuitClassifierCV(5, gammas=[0.05, 0.5], cv=cv, **options)
    model.fit(P.X, P.labels, P.weights)
    for g, gamma in enumerate((0.05, 0.5)):
        for f, (train, test) in enumerate(cv.split(USED, P.labels[USED])):
            train, test = USED[train], USED[test]
            plain = KernelMatchingPursuitClassifier(5, gamma=gamma, **options)
            plain.fit(P.X[train], P.labels[train], P.weights[train])
            Y = as_targets(P.labels[test])
            losses = [
                np.average(
                    plain.loss_.value(Y, stage).reshape(len(test), -1).mean(axis=1),
                    weights=P.weights[test],
                )
                for stage in plain.staged_decision_function(P.X[test])
            ]
            assert_allclose(model.cv_loss_path_[g, f], losses, rtol=1e-5)
    mean = model.cv_loss_path_.mean(axis=1)
    assert mean.min() == mean[model.gammas_.index(model.gamma_), model.n_iter_ - 1]
    again = KernelMatchingPursuitClassifier(model.n_iter_, gamma=model.gamma_, **options)
    assert_equal_models(model, again.fit(P.X, P.labels, P.weights), rtol=1e-9)


def test_cross_validated_counts_equal_refits_on_the_folds():
    cv = KFold(3)
    model = KernelMatchingPursuitRegressorCV(
        6, gammas=[0.05, 0.5], cv=cv, loss="poisson", refit_every=2
    ).fit(P.X, COUNTS)
    for g, gamma in enumerate((0.05, 0.5)):
        for f, (train, test) in enumerate(cv.split(P.X)):
            plain = KernelMatchingPursuitRegressor(6, gamma=gamma, loss="poisson", refit_every=2)
            plain.fit(P.X[train], COUNTS[train])
            losses = [
                LOSSES["poisson"].value(COUNTS[test, None], np.log(stage)[:, None]).mean()
                for stage in plain.staged_predict(P.X[test])
            ]
            assert_allclose(model.cv_loss_path_[g, f], losses, rtol=1e-5)


# Dictionaries.


NAMED = {"first": lambda X: X[:, 0], "square": lambda X: X[:, 1] ** 2}


def test_several_kernels_are_their_columns():
    kernels = [RBF(0.05), RBF(2.0), Linear()]
    D = np.hstack(
        [reference.rbf(P.X, P.X, 0.05), reference.rbf(P.X, P.X, 2.0), reference.linear(P.X, P.X)]
    )
    expected = reference.prefit(D, P.Y, np.ones(60), 9)[-1]
    for route in ("gram", "direct"):
        model = KernelMatchingPursuitRegressor(9, dictionary=kernels, route=route).fit(P.X, P.Y)
        chosen = np.array(expected.support)
        assert_array_equal(model.support_, chosen % 60)
        assert model.component_names_ == [repr(kernels[k // 60]) for k in chosen]
        assert_allclose(model.predict(P.X), expected.values(D), rtol=1e-6)
        assert_array_equal(model.support_vectors_, P.X[chosen % 60])
        for n, stage in enumerate(model.staged_predict(P.X), start=1):
            assert_allclose(stage, model.truncate(n).predict(P.X), rtol=1e-9)
    assert len(set(model.component_names_)) > 1


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_named_functions(loss):
    D = np.column_stack([f(P.X) for f in NAMED.values()])
    model = KernelMatchingPursuitRegressor(2, dictionary=NAMED, loss=loss).fit(P.X, P.Y[:, 0])
    assert sorted(model.component_names_) == ["first", "square"]
    assert not hasattr(model, "support_")
    assert not hasattr(model, "support_vectors_")
    assert model.kernel_ is None
    if loss == "squared_error":
        expected = reference.fit(D, P.Y[:, :1], np.ones(60), [0, 1])
        assert_allclose(model.predict(P.X), expected.values(D)[:, 0], rtol=1e-9)
    assert model.truncate(1).component_names_ == model.component_names_[:1]


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_mixed_dictionary(loss, tmp_path):
    parts = [None, NAMED, OrientedGaussians(5), P.X[:4] + 0.1]
    model = KernelMatchingPursuitClassifier(25, gamma=2.0, dictionary=parts, loss=loss)
    model.fit(P.X, P.labels, P.weights)
    names = model.component_names_
    assert {"OrientedGaussian", "RBF(gamma=2.0)"} <= set(names)
    for name, row in zip(names, model.support_, strict=True):
        assert (row == -1) if name in NAMED else (row >= -1)
        assert row == -1 or P.weights[row] > 0
    path = tmp_path / "model.pursuit"
    pursuit.save(model, path, staged=True)
    loaded = pursuit.load(path, functions=NAMED)
    for a, b in ((loaded, model), (loaded.truncate(4), model.truncate(4))):
        assert_array_equal(a.decision_function(P.X), b.decision_function(P.X))
        assert a.component_names_ == b.component_names_
        assert_array_equal(a.support_, b.support_)


def test_kernel_of_each_class():
    kernels = {"ant": "rbf", "mole": Linear(), "zebra": RBF(3.0)}
    model = KernelMatchingPursuitClassifier(12, kernel=kernels, gamma=0.2, alpha=1e-3)
    model.fit(P.X, P.labels, P.weights)
    columns = {
        "ant": reference.rbf(P.X, P.X, 0.2),
        "mole": reference.linear(P.X, P.X),
        "zebra": reference.rbf(P.X, P.X, 3.0),
    }
    D = np.column_stack([columns[label][:, k] for k, label in enumerate(P.labels)])[:, USED]
    expected = reference.prefit(D[USED], as_targets(P.labels[USED]), P.weights[USED], 12, 1e-3)[-1]
    assert_array_equal(model.support_, USED[expected.support])
    assert_allclose(model.decision_function(P.X), expected.values(D), rtol=1e-5, atol=1e-6)
    spoken = {"ant": "RBF(gamma=0.2)", "mole": "Linear()", "zebra": "RBF(gamma=3.0)"}
    assert model.component_names_ == [spoken[P.labels[row]] for row in model.support_]


def test_kernel_of_each_class_with_held_out_rows():
    kernels = {"ant": RBF(0.1), "mole": RBF(0.3), "zebra": RBF(3.0)}
    model = KernelMatchingPursuitClassifier(
        10, kernel=kernels, early_stopping=True, random_state=0, loss="log_loss"
    ).fit(P.X, P.labels, P.weights)
    names = {label: repr(kernel) for label, kernel in kernels.items()}
    assert model.component_names_ == [names[P.labels[row]] for row in model.support_]
    assert_array_equal(model.support_vectors_, P.X[model.support_])
    assert len(model.validation_loss_path_) == 10


def test_candidates_are_drawn_for_each_part_alike():
    model = KernelMatchingPursuitRegressor(
        15, dictionary=[RBF(0.1), RBF(3.0)], n_candidates=10, random_state=0
    ).fit(P.X, P.Y)
    assert len(set(model.support_)) <= 10
    assert len(set(model.component_names_)) == 2


# Single precision and sparse rows.


@pytest.mark.parametrize(("kind", "loss"), EVERY_LOSS)
def test_single_precision_is_close(kind, loss):
    model, target = model_of(kind, loss, 6)
    double = clone(model).fit(P.X.astype(np.float32).astype(float), target)
    single = clone(model).fit(P.X.astype(np.float32), target)
    assert_array_equal(single.support_, double.support_)
    assert single.dual_coef_.dtype == np.float64
    assert_allclose(
        raw(single, P.X.astype(np.float32)),
        raw(double, P.X.astype(np.float32)),
        rtol=1e-3,
        atol=1e-3 * np.abs(double.dual_coef_).max(),
    )


@pytest.mark.parametrize(("kind", "loss"), [("classifier", "log_loss"), ("regressor", "poisson")])
@pytest.mark.parametrize("fitting", ["prefit", "basic"])
def test_csr_rows_equal_dense_rows(kind, loss, fitting):
    X = np.where(np.abs(P.X) > 2.0, P.X, 0.0)
    model, target = model_of(kind, loss, 6, fitting=fitting)
    dense = clone(model).fit(X, target, P.weights)
    for container in (sparse.csr_matrix, sparse.csr_array):
        csr = clone(model).fit(container(X), target, P.weights)
        assert_array_equal(csr.support_, dense.support_)
        assert_allclose(csr.expansion_(container(X)), raw(dense, X), rtol=1e-6)
        assert_array_equal(csr.predict(container(X)).shape, dense.predict(X).shape)


# Degenerate input.


def quiet_fit(model, X, y, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, *args)


@pytest.mark.parametrize("loss", NUMBER_LOSSES)
@pytest.mark.parametrize("fitting", ["prefit", "backfit", "basic"])
def test_constant_targets(loss, fitting):
    model = KernelMatchingPursuitRegressor(5, loss=loss, fitting=fitting)
    quiet_fit(model, P.X, np.full(60, 3.0))
    assert_allclose(model.predict(P.X), 3.0, rtol=1e-4)


@pytest.mark.parametrize("alpha", ["auto", 0.0])
@pytest.mark.parametrize("loss", CLASS_LOSSES)
@pytest.mark.parametrize("fitting", ["prefit", "basic"])
def test_separated_classes_have_a_finite_answer(loss, fitting, alpha):
    X = np.r_[np.linspace(-2, -1, 30), np.linspace(1, 2, 30)][:, None]
    y = X[:, 0] > 0
    model = KernelMatchingPursuitClassifier(5, loss=loss, fitting=fitting, alpha=alpha)
    quiet_fit(model, X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize(
    ("kind", "loss", "ridge"),
    [
        *(
            ("classifier", loss, 0.0 if loss.startswith("squared_error") else 0.01)
            for loss in CLASS_LOSSES
        ),
        *(("regressor", loss, 0.01 if loss == "poisson" else 0.0) for loss in NUMBER_LOSSES),
    ],
)
def test_the_ridge_where_none_is_named_is_that_of_the_page_on_losses(kind, loss, ridge):
    outputs = raw(fitted(kind, loss, 4), P.X)
    assert_array_equal(outputs, raw(fitted(kind, loss, 4, alpha=ridge), P.X))
    assert not np.array_equal(outputs, raw(fitted(kind, loss, 4, alpha=0.02), P.X))


@pytest.mark.parametrize("fitting", ["prefit", "backfit", "basic"])
def test_counts_that_are_all_zero(fitting):
    model = KernelMatchingPursuitRegressor(5, loss="poisson", fitting=fitting)
    quiet_fit(model, P.X, np.zeros(60))
    assert np.isfinite(raw(model, P.X)).all()
    assert_array_less(model.predict(P.X), 1e-3)
    assert_array_less(-1e-300, model.predict(P.X))


@pytest.mark.parametrize("loss", NUMBER_LOSSES)
def test_targets_far_off(loss):
    shift = 1e6
    near, target = model_of("regressor", loss, 6)
    target = np.round(target.reshape(60, -1)[:, 0] * 64) / 64
    if loss == "poisson":
        model = quiet_fit(near, P.X, target + shift)
        assert_allclose(model.predict(P.X), target + shift, rtol=1e-4)
        return
    far = clone(near)
    quiet_fit(near, P.X, target)
    quiet_fit(far, P.X, target + shift)
    assert_array_equal(far.support_, near.support_)
    assert_allclose(far.predict(P.X) - shift, near.predict(P.X), atol=1e-3)


@pytest.mark.parametrize("loss", NUMBER_LOSSES)
def test_one_row(loss):
    model = KernelMatchingPursuitRegressor(5, loss=loss)
    quiet_fit(model, np.array([[1.0, 2.0]]), np.array([4.0]))
    assert_allclose(model.predict(np.array([[1.0, 2.0], [9.0, 9.0]])), 4.0, rtol=1e-4)


@pytest.mark.parametrize(("kind", "loss"), EVERY_LOSS)
def test_all_rows_equal(kind, loss):
    model, target = model_of(kind, loss, 5)
    quiet_fit(model, np.ones((60, 3)), target)
    assert np.isfinite(raw(model, np.ones((4, 3)))).all()
    assert model.n_components_ == 0


@pytest.mark.parametrize(("kind", "loss"), EVERY_LOSS)
def test_more_components_than_there_are_rows(kind, loss):
    model, target = model_of(kind, loss, 50, gamma=5.0)
    quiet_fit(model, P.X[:22], target[:22])
    assert model.n_components_ <= 21  # row 20 is row 7 again
    assert np.isfinite(raw(model, P.X)).all()


def test_a_short_path_is_warned_of():
    with pytest.warns(ConvergenceWarning, match="n_components=200, but the path ended after"):
        fitted("classifier", "log_loss", 200)


# Bad input.


@pytest.mark.parametrize("cross_validated", [False, True])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinges"}, "loss must be one of"),
        ({"loss": None}, "loss must be one of"),
        ({"loss": LogLoss}, "loss must be one of"),
        ({"refit_every": 0}, "refit_every must be an integer of at least 1, got 0"),
        ({"refit_every": 2.0}, "refit_every"),
        ({"refit_every": None}, "refit_every"),
        ({"refit_every": 2, "fitting": "basic"}, "refit_every has no meaning for fitting='basic'"),
        ({"selection": "random"}, "selection must be one of"),
        ({"selection": None}, "selection must be one of"),
        ({"alpha": "none"}, "alpha"),
        ({"alpha": None}, "alpha"),
        ({"dictionary": "rbf"}, "dictionary"),
        ({"dictionary": []}, "dictionary"),
        ({"dictionary": {}}, "dictionary"),
        ({"dictionary": {"f": 3.0}}, "dictionary: 'f' must be a function"),
        ({"dictionary": {"f": lambda X: X}}, "dictionary: the function 'f' returned an array"),
        ({"dictionary": OrientedGaussians(0)}, "n_neighbors"),
        ({"dictionary": OrientedGaussians(5, noise_variance=0.0)}, "noise_variance"),
        ({"dictionary": NAMED, "n_candidates": 5}, "n_candidates has no meaning"),
    ],
)
def test_bad_parameter(options, message, cross_validated):
    pairs = (
        [(KernelMatchingPursuitClassifierCV, P.labels), (KernelMatchingPursuitRegressorCV, P.Y)]
        if cross_validated
        else [(KernelMatchingPursuitClassifier, P.labels), (KernelMatchingPursuitRegressor, P.Y)]
    )
    for estimator, target in pairs:
        with pytest.raises(ValueError, match=message):
            estimator(5, **options).fit(P.X, target)


def test_losses_of_the_other_kind():
    with pytest.raises(ValueError, match="loss='poisson' is for a regressor"):
        fitted("classifier", "poisson")
    with pytest.raises(ValueError, match="loss='log_loss' is for a classifier"):
        fitted("regressor", "log_loss")
    with pytest.raises(ValueError, match="multi_class='shared'"):
        KernelMatchingPursuitClassifier(6, loss=CrossEntropy(), multi_class="ovr").fit(
            P.X, P.labels
        )


def test_negative_counts_name_the_row_of_the_caller():
    counts = COUNTS.copy()
    row = int(USED[20])
    counts[row] = -1.0
    counts[P.weights == 0] = -2.0  # of no weight, of no interest
    model = KernelMatchingPursuitRegressor(5, loss="poisson", early_stopping=True, random_state=0)
    for estimator in (model, KernelMatchingPursuitRegressorCV(5, loss="poisson", gammas=[0.1])):
        with pytest.raises(ValueError, match=f"y is negative at row {row}, where loss='poisson'"):
            estimator.fit(P.X, counts, P.weights)
    with pytest.raises(ValueError, match="y_val is negative at row 1"):
        model.fit(P.X, COUNTS, X_val=P.X[:2], y_val=[1.0, -1.0])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ({"ant": "rbf"}, r"kernel must have one entry for each of the classes \['ant', 'mole'"),
        ({"ant": "rbf", "mole": "rbf", "zebra": "rbf", "cow": "rbf"}, "kernel must have one entry"),
        ({"ant": "rbf", "mole": "none", "zebra": "rbf"}, "kernel must be one of"),
        ({"ant": "rbf", "mole": "precomputed", "zebra": "rbf"}, "kernel: a kernel for each class"),
    ],
)
def test_bad_kernel_of_a_class(kernel, message):
    with pytest.raises(ValueError, match=message):
        KernelMatchingPursuitClassifier(5, kernel=kernel).fit(P.X, P.labels)


def test_kernels_of_classes_are_for_classifiers():
    with pytest.raises(ValueError, match="kernel: a kernel for each class is only for classif"):
        KernelMatchingPursuitRegressor(5, kernel={0: "rbf"}).fit(P.X, P.Y)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, "half"])
def test_bad_error_tolerance(value):
    with pytest.raises(ValueError, match="error_tolerance"):
        KernelMatchingPursuitRegressor(5, early_stopping="bound", error_tolerance=value).fit(
            P.X, P.Y
        )


def test_squared_error_stays_in_closed_form():
    """No search along the gradient, whatever is chosen by squared error."""
    one = fitted("regressor", "squared_error", 6)
    for other in (
        fitted("regressor", SquaredError(), 6),
        fitted("regressor", "squared_error", 6, selection="squared_error"),
    ):
        assert_array_equal(one.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("class_weight", [None, {"ant": 4.0, "mole": 1.0, "zebra": 0.5}])
def test_a_score_of_the_users_choice_stops(class_weight):
    X, _, labels, weights = awkward(90, seed=5)
    options = {"gamma": 0.3, "class_weight": class_weight}
    seen = []

    def accuracy(model, X, y, sample_weight=None):
        seen.append((y, sample_weight))
        return balanced_accuracy_score(y, model.predict(X), sample_weight=sample_weight)

    model = KernelMatchingPursuitClassifier(
        12, early_stopping=True, scoring=accuracy, random_state=0, **options
    ).fit(X, labels, weights)
    y_held, w_held = seen[0]
    held = np.array([next(i for i in range(90) if same(i)) for same in finders(w_held, weights)])
    assert_array_equal(labels[held], y_held)
    train = np.setdiff1d(np.arange(90), held)
    whole = KernelMatchingPursuitClassifier(12, **options)
    whole.fit(X[train], labels[train], weights[train])
    scores = [
        balanced_accuracy_score(y_held, predictions, sample_weight=w_held)
        for predictions in whole.staged_predict(X[held])
    ]
    assert_allclose(model.validation_score_path_, scores)
    assert model.n_iter_ == np.argmax(scores) + 1
    assert not hasattr(model, "validation_loss_path_")


def finders(some, weights):
    """For each of some weights, whether a row has it."""
    return [lambda i, w=w: np.isclose(weights[i], w, rtol=1e-12) for w in some]


def test_a_score_stops_on_rows_given_with_names(frame_of):
    X, _, labels, _ = awkward(60)
    frame = frame_of(X)
    model = KernelMatchingPursuitClassifier(8, early_stopping=True, scoring="accuracy", gamma=1.0)
    model.fit(frame[:40], labels[:40], X_val=frame[40:], y_val=labels[40:])
    whole = KernelMatchingPursuitClassifier(8, gamma=1.0).fit(frame[:40], labels[:40])
    scores = [np.mean(p == labels[40:]) for p in whole.staged_predict(frame[40:])]
    assert_allclose(model.validation_score_path_, scores)
    assert model.n_iter_ == np.argmax(scores) + 1
    with pytest.raises(ValueError, match="scoring is only used with early_stopping=True"):
        KernelMatchingPursuitClassifier(scoring="accuracy").fit(X, labels)


@pytest.fixture
def frame_of():
    pandas = pytest.importorskip("pandas")
    return lambda X: pandas.DataFrame(X, columns=list("abcd"))
