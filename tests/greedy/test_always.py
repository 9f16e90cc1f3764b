"""Functions that are always in and not penalised: semi-parametric models (section 4.1)."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from problems import as_targets, awkward
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import pursuit
from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
    KernelStatistics,
)
from pursuit.expansion.basis_functions import ColumnAtoms

X, Y, LABELS, WEIGHTS = awkward(40, seed=3)
USED = np.flatnonzero(WEIGHTS > 0)
GAMMA, ALPHA = 0.3, 0.05
K = reference.rbf(X, X, GAMMA)
SIGN = np.where(LABELS == "ant", 1.0, -1.0)


def wave(X):
    return np.sin(np.asarray(X[:, 0]))


ALWAYS = [1, {"wave": wave}]
FREE = np.column_stack([X[:, 1], wave(X)])


def regressor(**changes):
    options = {"n_components": 5, "gamma": GAMMA, "alpha": ALPHA, "always": ALWAYS}
    return KernelMatchingPursuitRegressor(**(options | changes))


def without(functions, values, weights):
    """What weighted least squares on some functions and a constant leaves of values."""
    H = np.column_stack([functions, np.ones(len(functions))]) * np.sqrt(weights)[:, None]
    fitted = np.linalg.lstsq(H, np.sqrt(weights)[:, None] * values, rcond=None)[0]
    return values - np.column_stack([functions, np.ones(len(functions))]) @ fitted


@pytest.mark.parametrize("fitting", ["prefit", "backfit"])
@pytest.mark.parametrize("route", ["gram", "direct"])
def test_it_is_the_reference_on_what_the_functions_leave(route, fitting):
    weights, free = WEIGHTS[USED], FREE[USED]
    D, left = without(free, K[np.ix_(USED, USED)], weights), without(free, Y[USED], weights)
    # The length of a candidate by itself is that before the functions.
    if fitting == "prefit":
        expected = reference.prefit(D, left, weights, 5, ALPHA, intercept=False)[-1]
    model = regressor(route=route, fitting=fitting).fit(X, Y, sample_weight=WEIGHTS)
    assert (model.n_components_, model.n_iter_) == (5, 5)
    assert model.component_names_[:2] == ["column 1", "wave"]
    assert_array_equal(model.support_[:2], [-1, -1])
    chosen = model.support_[2:]
    if fitting == "prefit":
        assert_array_equal(chosen, USED[expected.support])
        assert_allclose(model.dual_coef_[:, 2:], expected.coefficients, rtol=1e-6)
    for n, stage in enumerate(model.staged_predict(X), start=1):
        columns = K[np.ix_(USED, chosen[:n])]
        a = penalised(columns, Y[USED], weights)
        assert_allclose(stage[USED], np.column_stack([free, np.ones(len(USED)), columns]) @ a)
        assert_allclose(model.truncate(n).predict(X), stage, rtol=1e-9)
        assert model.truncate(n).n_components_ == n
        again = regressor(n_components=n, route=route, fitting=fitting)
        assert_allclose(again.fit(X, Y, sample_weight=WEIGHTS).predict(X), stage, rtol=1e-7)
        error = weights @ ((stage[USED] - Y[USED]) ** 2).mean(axis=1) / weights.sum()
        assert_allclose(model.train_loss_path_[n - 1], error, rtol=1e-7)


def penalised(columns, Y, weights, free=None, P=None):
    """Coefficients of the free functions, the constant and the columns, by normal equations."""
    free = FREE[USED] if free is None else free
    Z = np.column_stack([free, np.ones(len(Y)), columns])
    ridge = np.zeros((Z.shape[1],) * 2)
    ridge[3:, 3:] = ALPHA * (np.eye(columns.shape[1]) if P is None else P)
    G = Z.T @ (weights[:, None] * Z) + ridge
    return np.linalg.solve(G, Z.T @ (weights[:, None] * Y))


def test_the_norm_does_not_penalise_them():
    model = regressor(penalty="norm").fit(X, Y)
    chosen = model.support_[2:]
    P = K[np.ix_(chosen, chosen)]
    a = penalised(K[:, chosen], Y, np.ones(40), FREE, P)
    assert_allclose(model.dual_coef_.T, np.delete(a, 2, axis=0), rtol=1e-5)
    D, left = without(FREE, K, np.ones(40)), without(FREE, Y, np.ones(40))
    assert_array_equal(chosen, reference.norm_prefit_on(D, K, left, np.ones(40), 5, ALPHA))


@pytest.mark.parametrize("penalty", ["identity", "norm"])
@pytest.mark.parametrize("refit_every", [1, 3])
@pytest.mark.parametrize("selection", ["loss", "squared_error"])
def test_any_loss_fits_them_free(penalty, refit_every, selection):
    model = KernelMatchingPursuitClassifier(
        6,
        loss="log_loss",
        gamma=GAMMA,
        alpha=ALPHA,
        always=ALWAYS,
        penalty=penalty,
        refit_every=refit_every,
        selection=selection,
    ).fit(X, SIGN)
    stages = list(model.staged_decision_function(X))
    for n in (3, 6):
        chosen = model.support_[2 : 2 + n]
        Z = np.column_stack([FREE - FREE.mean(axis=0), np.ones(40), K[:, chosen]])
        P = K[np.ix_(chosen, chosen)] if penalty == "norm" else np.eye(n)

        def objective(a, Z=Z, P=P):
            return np.logaddexp(0.0, -SIGN * (Z @ a)).sum() + ALPHA * a[3:] @ P @ a[3:]

        best = minimize(objective, np.zeros(n + 3), tol=1e-10)
        assert_allclose(stages[n - 1], Z @ best.x, atol=2e-3)
        assert_allclose(
            model.train_loss_path_[n - 1],
            np.logaddexp(0.0, -SIGN * stages[n - 1]).mean(),
            rtol=1e-9,
        )
    assert model.n_components_ == 6


def test_leave_one_out_and_folds_are_fits_without_the_rows():
    model = regressor(early_stopping="loo").fit(X, Y)
    chosen, errors = model.support_[2:], []
    for i in range(40):
        others = np.delete(np.arange(40), i)
        a = penalised(K[np.ix_(others, chosen)], Y[others], np.ones(39), FREE[others])
        errors.append((Y[i] - np.concatenate([FREE[i], [1.0], K[i, chosen]]) @ a) ** 2)
    found = model.leave_one_out_loss_path_[len(chosen) - 1]
    assert_allclose(found, np.mean(errors), rtol=1e-7)
    half = np.arange(0, 40, 2), np.arange(1, 40, 2)
    search = KernelMatchingPursuitRegressorCV(
        5, gammas=[GAMMA], alpha=ALPHA, always=ALWAYS, cv=[half]
    ).fit(X, Y)
    one = regressor().fit(X[half[0]], Y[half[0]])
    errors = [np.mean((p - Y[half[1]]) ** 2) for p in one.staged_predict(X[half[1]])]
    assert search.cv_loss_path_.shape == (1, 1, 5)
    # The kernel's numbers are given; candidates are those of the training part.
    assert_allclose(search.cv_loss_path_[0, 0], errors, rtol=1e-5)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_each_class_with_its_own_functions_begins_with_them(loss):
    options = {"gamma": GAMMA, "alpha": ALPHA, "always": ALWAYS, "loss": loss}
    model = KernelMatchingPursuitClassifier([3, 2, 4], multi_class="ovr", **options).fit(X, LABELS)
    assert model.path_.lengths(model.n_iter_) == [5, 4, 6]
    for c, budget in enumerate([3, 2, 4]):
        sign = as_targets(LABELS)[:, c]
        one = KernelMatchingPursuitClassifier(budget, **options).fit(X, sign)
        assert_allclose(model.decision_function(X)[:, c], one.decision_function(X), atol=1e-6)
    small = model.truncate(4)
    assert small.n_components == [2, 1, 1]
    again = KernelMatchingPursuitClassifier(small.n_components, multi_class="ovr", **options)
    assert_allclose(
        again.fit(X, LABELS).decision_function(X), small.decision_function(X), atol=1e-6
    )


def test_columns_by_name_sparse_rows_and_files(tmp_path):
    model = regressor().fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="1 of the 2 functions of always"):
        columns = regressor(always=[1, -3]).fit(sparse.csr_matrix(X), Y)
    assert columns.component_names_[0] == "column 1"
    assert_allclose(columns.predict(X), regressor(always=[1]).fit(X, Y).predict(X), rtol=1e-9)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = regressor(always=["b"]).fit(frame, Y)
    assert_allclose(named.predict(frame), regressor(always=[1]).fit(X, Y).predict(X), rtol=1e-9)
    pursuit.save(model, tmp_path / "model.pursuit", staged=True)
    loaded = pursuit.load(tmp_path / "model.pursuit", functions={"wave": wave})
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_array_equal(loaded.truncate(2).predict(X), model.truncate(2).predict(X))
    pursuit.save(columns, tmp_path / "model.pursuit")
    assert_array_equal(pursuit.load(tmp_path / "model.pursuit").predict(X), columns.predict(X))


def test_columns_have_a_derivative():
    atoms, A = ColumnAtoms((1, 0, 1)), np.arange(6.0).reshape(2, 3)
    assert_array_equal(atoms.weighted_gradient(np.zeros((2, 4)), A), [[1, 2, 0, 0], [4, 8, 0, 0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"always": [4]}, "no column 4 among 4"),
        ({"always": ["b"]}, "without names"),
        ({"always": {}}, "always: a mapping of functions must not be empty"),
        ({"fitting": "basic"}, "always needs fitting"),
        ({"kernel": "precomputed"}, "always needs rows"),
        ({"early_stopping": "bound"}, "one candidate function for each"),
    ],
)
def test_what_has_no_meaning_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        regressor(**changes).fit(K if changes.get("kernel") else X, Y)


def test_sums_of_rows_and_code_in_c_refuse_them():
    with pytest.raises(ValueError, match="always must be None"):
        regressor().fit_statistics(KernelStatistics(X).update(X, Y))
    with pytest.raises(ValueError, match=r"column 1|function"):
        pursuit.export.plain(regressor(always=[1]).fit(X, Y))
