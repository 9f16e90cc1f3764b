"""The ridge as the norm of the function: eq. 13's second term."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge

import pursuit
from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
    KernelStatistics,
)
from pursuit.kernels import RBF, Laplacian

X, Y, LABELS, WEIGHTS = awkward(40, seed=3)
USED = np.flatnonzero(WEIGHTS > 0)
GAMMA, ALPHA, STRONG = 0.3, 0.05, 0.4
K = reference.rbf(X, X, GAMMA)
SIGN = np.where(LABELS == "ant", 1.0, -1.0)


def regressor(**changes):
    options = {"n_components": 6, "gamma": GAMMA, "alpha": ALPHA, "penalty": "norm"}
    return KernelMatchingPursuitRegressor(**(options | changes))


@pytest.mark.parametrize("route", ["gram", "direct"])
def test_prefitting_is_the_reference(route):
    among = K[np.ix_(USED, USED)]
    support = reference.norm_prefit(among, among, Y[USED], WEIGHTS[USED], 6, ALPHA)
    model = regressor(route=route).fit(X, Y, sample_weight=WEIGHTS)
    assert_array_equal(model.support_, USED[support])
    columns = K[np.ix_(USED, model.support_)]
    a, b, _ = reference.norm_least_squares(
        columns, K[np.ix_(model.support_, model.support_)], Y[USED], WEIGHTS[USED], ALPHA
    )
    assert_allclose(model.dual_coef_, a.T, rtol=1e-7)
    assert_allclose(model.intercept_, b, rtol=1e-9)
    errors = (Y[USED] - columns @ a - b) ** 2
    mean = WEIGHTS[USED] @ errors.mean(axis=1) / WEIGHTS.sum()
    assert_allclose(model.train_loss_path_[-1], mean, rtol=1e-8)


def test_all_functions_are_kernel_ridge_regression():
    rows = np.unique(X, axis=0)
    y = np.sin(rows[:, 0])
    model = KernelMatchingPursuitRegressor(
        n_components=len(rows), gamma=2.0, alpha=0.1, penalty="norm", fit_intercept=False
    ).fit(rows, y)
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=2.0).fit(rows, y)
    assert_allclose(model.predict(rows + 0.1), ridge.predict(rows + 0.1), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("refit_every", [1, 3])
def test_log_loss_is_the_reference(refit_every):
    support, a = reference.norm_gradient_pursuit(
        lambda y, f: np.logaddexp(0.0, -y * f),
        lambda y, f: -y / (1.0 + np.exp(y * f)),
        K,
        K,
        SIGN,
        np.ones(40),
        4,
        STRONG,
    )
    model = KernelMatchingPursuitClassifier(
        4,
        gamma=GAMMA,
        alpha=STRONG,
        penalty="norm",
        loss="log_loss",
        fitting="backfit",
        refit_every=refit_every,
    ).fit(X, SIGN)
    if refit_every == 1:
        assert_array_equal(model.support_, support)
        assert_allclose(model.dual_coef_[0], a[:-1], rtol=1e-3)
        return
    # One coefficient at a time in between (eq. 10), with the penalty's products of functions.
    first, second = model.truncate(1), model.truncate(2)

    def objective(step):
        inside = np.array([first.dual_coef_[0, 0], step])
        f = first.decision_function(X) + step * (second_column - second_column.mean())
        among = K[np.ix_(second.support_, second.support_)]
        return np.logaddexp(0.0, -SIGN * f).sum() + STRONG * inside @ among @ inside

    second_column = K[:, second.support_[1]]
    step = second.dual_coef_[0, 1]
    assert objective(step) <= min(objective(1.001 * step), objective(0.999 * step))


def test_basic_pursuit_steps_along_the_slope_of_the_penalty():
    """Each coefficient alone minimises the objective, whatever basis it is added to."""

    def small(X, Z):
        return 0.1 * RBF(GAMMA)(X, Z)

    K = small(X, X)
    options = {"kernel": small, "alpha": STRONG, "penalty": "norm", "fitting": "basic"}
    for loss in ("squared_error", "log_loss"):
        model = KernelMatchingPursuitClassifier(6, loss=loss, **options).fit(X, SIGN)
        value = {
            "squared_error": lambda f: (SIGN - f) ** 2,
            "log_loss": lambda f: np.logaddexp(0.0, -SIGN * f),
        }[loss]

        def objective(stage, extra=0.0, value=value, model=model):
            place = int(model.path_.bases[0].picks[stage.n_iter_ - 1])
            column = K[:, stage.support_[place]]
            a = stage.dual_coef_[0].copy()
            a[place] += extra
            f = stage.decision_function(X) + extra * (column - column.mean())
            among = K[np.ix_(stage.support_, stage.support_)]
            return value(f).sum() + STRONG * a @ among @ a

        for n in range(1, 7):
            stage = model.truncate(n)
            assert objective(stage) <= min(objective(stage, 0.03), objective(stage, -0.03))


def test_leave_one_out_is_a_fit_without_the_row():
    model = regressor(early_stopping="loo").fit(X, Y)
    chosen, errors = model.support_, []
    for i in range(40):
        others = np.delete(np.arange(40), i)
        a, b, _ = reference.norm_least_squares(
            K[np.ix_(others, chosen)], K[np.ix_(chosen, chosen)], Y[others], np.ones(39), ALPHA
        )
        errors.append((Y[i] - K[i, chosen] @ a - b) ** 2)
    found = model.leave_one_out_loss_path_[len(chosen) - 1]
    assert_allclose(found, np.mean(errors), rtol=1e-7)


def test_folds_and_sums_and_kernel_values_give_the_same_model():
    direct = regressor().fit(X, Y)
    assert_array_equal(regressor(kernel="precomputed").fit(K, Y).support_, direct.support_)
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    among = K[np.ix_(first, first)]
    thin = regressor(kernel="precomputed", n_candidates=20, random_state=0)
    few = regressor(n_candidates=20, random_state=0).fit(X[first], Y[first])
    assert_allclose(thin.fit(among, Y[first]).predict(among), few.predict(X[first]), rtol=1e-9)
    assert_allclose(regressor().fit(sparse.csr_matrix(X), Y).predict(X), direct.predict(X))
    sums = KernelStatistics(np.unique(X, axis=0), kernel=RBF(GAMMA)).update(X, Y)
    found = regressor().fit_statistics(sums)
    assert_allclose(found.predict(X), direct.predict(X), rtol=1e-7)
    half = np.arange(0, 40, 2), np.arange(1, 40, 2)
    folds = [KernelStatistics(X[::3], kernel=RBF(GAMMA)).update(X[rows], Y[rows]) for rows in half]
    by_sums = KernelMatchingPursuitRegressorCV(6, alpha=ALPHA, penalty="norm").fit_statistics(folds)
    by_rows = KernelMatchingPursuitRegressorCV(
        6, gammas=[GAMMA], alpha=ALPHA, penalty="norm", dictionary=X[::3], cv=[half[::-1], half]
    ).fit(X, Y)
    assert_allclose(by_sums.cv_loss_path_, by_rows.cv_loss_path_, rtol=1e-7)
    search = KernelMatchingPursuitRegressorCV(
        6, gammas=[GAMMA], alpha=ALPHA, penalty="norm", cv=[half], fit_intercept=False
    ).fit(X, Y)
    one = regressor(fit_intercept=False).fit(X[half[0]], Y[half[0]])
    errors = [np.mean((p - Y[half[1]]) ** 2) for p in one.staged_predict(X[half[1]])]
    assert_allclose(search.cv_loss_path_[0, 0], errors, rtol=1e-6)


def test_a_saved_model_answers_the_same(tmp_path):
    model = regressor().fit(X, Y)
    pursuit.save(model, tmp_path / "model.pursuit")
    loaded = pursuit.load(tmp_path / "model.pursuit")
    assert loaded.penalty == "norm"
    assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"penalty": "other"}, "penalty must be"),
        ({"dictionary": [None, Laplacian(1.0)]}, "functions of one kernel"),
        ({"dictionary": {"one": lambda X: X[:, 0]}}, "functions of one kernel"),
        ({"kernel": "sigmoid", "gamma": 1e-3, "coef0": -5.0}, "symmetric positive semidefinite"),
        ({"kernel": lambda X, Z: X @ (Z * [1.0, 2.0, 3.0, 4.0]).T + Z[:, 0]}, "symmetric"),
    ],
)
def test_what_has_no_norm_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        regressor(**changes).fit(X, Y)
