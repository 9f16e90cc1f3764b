"""The hinge loss of given functions: libsvm and a linear program's conditions agree."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

import pursuit.export
from pursuit import KernelMatchingPursuitClassifier
from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.export.plain_model import outputs as plain_outputs
from pursuit.kernels import RBF
from pursuit.optimize.hinge import minimise_hinge
from pursuit.optimize.newton import Problem
from pursuit.optimize.variable_projection import Hinge

RNG = np.random.default_rng(4)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=60) > 0, 1.0, -1.0)
WEIGHTS = RNG.uniform(0.5, 2.0, 60)
K = RBF(0.8)(X, X)
ALPHA = 0.2


def problem(chosen, norm, targets=Y):
    """Functions with means taken off, and a factor that is no identity."""
    columns = K[:, chosen] - K[:, chosen].mean(axis=0)
    factor = np.linalg.cholesky(columns.T @ columns).T
    table = DesignMatrix(None, np.linalg.solve(factor.T, columns.T).T)
    P = K[np.ix_(chosen, chosen)] if norm else None
    return Problem(
        Hinge(), targets.reshape(60, -1), WEIGHTS, table, factor, ALPHA, penalty=P
    ), columns


@pytest.mark.parametrize("norm", [False, True])
def test_it_is_a_machine_on_the_functions(norm):
    chosen = np.arange(0, 24, 3)
    given, columns = problem(chosen, norm)
    found = minimise_hinge(given)
    P = K[np.ix_(chosen, chosen)] if norm else np.eye(8)
    inner = columns @ np.linalg.solve(P, columns.T)
    machine = SVC(C=1 / (2 * ALPHA), kernel="precomputed", tol=1e-8)
    machine.fit(inner, Y, sample_weight=WEIGHTS)
    # A gap of 1e-6 leaves the outputs uncertain by about its root.
    assert_allclose(found.minimum.outputs[:, 0], machine.decision_function(inner), atol=2e-3)
    a = given.coefficients(found.minimum.point)
    assert_allclose(columns @ a + found.machines[0].bias, found.minimum.outputs, atol=1e-9)
    loss = WEIGHTS @ np.maximum(0.0, 1.0 - Y * found.minimum.outputs[:, 0])
    assert_allclose(found.minimum.data_loss, loss)
    # No slope is left along a function, nor for the constant.
    slopes = WEIGHTS * found.slopes[:, 0]
    assert_allclose(columns.T @ slopes, -2 * ALPHA * (P @ a)[:, 0], atol=1e-4)
    assert_allclose(slopes.sum(), 0.0, atol=1e-5)
    inside, outside = Y * found.minimum.outputs[:, 0] < 0.999, Y * found.minimum.outputs[:, 0] > 1.1
    assert_allclose(found.slopes[inside, 0], -Y[inside], atol=1e-4)
    assert_allclose(found.slopes[outside, 0], 0.0, atol=1e-4)


def test_a_start_changes_nothing():
    few, _ = problem(np.arange(5), True)
    more, _ = problem(np.arange(7), True)
    cold = minimise_hinge(more)
    warm = minimise_hinge(more, minimise_hinge(few).machines)
    assert_allclose(warm.minimum.outputs, cold.minimum.outputs, atol=2e-3)


@pytest.mark.parametrize("penalty", ["identity", "norm"])
@pytest.mark.parametrize("selection", ["loss", "squared_error"])
def test_each_step_of_a_pursuit_is_a_machine(penalty, selection, tmp_path):
    labels = Y + (X[:, 0] > 1)
    model = KernelMatchingPursuitClassifier(
        5, gamma=0.8, alpha=ALPHA, loss="hinge", penalty=penalty, selection=selection
    ).fit(X, labels, WEIGHTS)
    for n, outputs in enumerate(model.staged_decision_function(X), start=1):
        columns = K[:, model.support_[:n]]
        P = K[np.ix_(model.support_[:n], model.support_[:n])] if penalty == "norm" else np.eye(n)
        inner = columns @ np.linalg.solve(P, columns.T)
        total = 0.0
        for c, label in enumerate(model.classes_):
            sign = np.where(labels == label, 1.0, -1.0)
            machine = SVC(C=1 / (2 * ALPHA), kernel="precomputed", tol=1e-8)
            machine.fit(inner, sign, sample_weight=WEIGHTS)
            assert_allclose(outputs[:, c], machine.decision_function(inner), atol=2e-3)
            total += WEIGHTS @ np.maximum(0.0, 1.0 - sign * outputs[:, c])
        mean = total / WEIGHTS.sum() / len(model.classes_)
        assert_allclose(model.train_loss_path_[n - 1], mean, rtol=1e-8)
    pursuit.save(model, tmp_path / "model.pursuit")
    loaded = pursuit.load(tmp_path / "model.pursuit")
    assert loaded.loss_ == Hinge()
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert_allclose(plain_outputs(pursuit.export.plain(model), X), outputs, rtol=1e-9, atol=1e-9)
    probabilities = model.predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert 0.05 < model.temperature_ < 20


def test_the_next_function_has_the_steepest_slope():
    """Chosen by the slopes that the dual variables say, less that of the penalty (eq. 8, 9)."""
    model = KernelMatchingPursuitClassifier(
        12, gamma=0.8, alpha=0.01, loss="hinge", penalty="norm", fitting="backfit"
    ).fit(X, Y)
    D = K - K.mean(axis=0)
    lengths = np.sqrt((D**2).sum(axis=0) + 0.01 * K.diagonal())
    for n in range(12):
        support = model.support_[:n]
        given, _ = problem(support, True)
        found = minimise_hinge(given._replace(weights=np.ones(60), alpha=0.01))
        a = given.coefficients(found.minimum.point)[:, 0]
        scores = np.abs(D.T @ found.slopes[:, 0] + 0.02 * K[:, support] @ a) / lengths
        scores[support] = 0.0
        assert scores[model.support_[n]] >= scores.max() * (1 - 1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"refit_every": 2},
        {"alpha": 0.0},
        {"fit_intercept": False},
        {"fitting": "basic"},
        {"always": [0]},
    ],
)
def test_what_does_not_go_with_it_is_refused(wrong):
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=f"loss='hinge' .* {name}="):
        KernelMatchingPursuitClassifier(3, loss="hinge", **wrong).fit(X, Y)
