"""The constrained Gauss-Seidel method: against L-BFGS-B, the plain method, and its limits."""

import numpy as np
import pytest
import reference
from problems import pairwise
from scipy.optimize import minimize

from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.kernels import RBF, CosinePolynomial
from pursuit.losses import LOSSES, SmoothHinge
from pursuit.optimize.coordinate_descent import Problem, joint_step, solve, sweep

CONVEX = {name: loss for name, loss in LOSSES.items() if loss.convex}
BOXES = {"free": (-np.inf, np.inf), "both bound_state": (-0.3, 0.2), "one side": (0.0, np.inf)}


def network(rng, loss="log_loss", *, box="free", penalty="identity", n=40, kernel=None):
    """A convex network with as many functions as rows; two of the rows are equal."""
    X = rng.normal(size=(n, 3))
    X[5] = X[2]
    signal = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n)
    y = np.where(signal > 0, 1.0, -1.0)
    if getattr(LOSSES.get(loss), "task", None) == "regressor":
        y = np.round(2.0 * np.abs(signal)) if loss == "poisson" else signal
    weights = rng.uniform(0.3, 2.0, size=n)
    K = (kernel or RBF(0.3))(X, X)
    value = LOSSES[loss] if isinstance(loss, str) else loss
    value = value.resolved(y[:, None], weights)
    A = None if penalty == "identity" else K
    lower, upper = (np.full(n, bound) for bound in BOXES[box])
    return Problem(value, y[:, None], weights, DesignMatrix(None, K), 0.05, A, lower, upper)


def other_solver(problem):
    """The objective that L-BFGS-B finds, started anew from where it ends while that helps."""

    def value_and_slope(beta):
        point = problem.at(beta)
        return point.objective, problem.gradient(point)

    start = np.clip(np.zeros(len(problem.lower)), problem.lower, problem.upper)
    best = np.inf
    for _ in range(40):
        found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B",
                         bounds=list(zip(problem.lower, problem.upper, strict=True)),
                         options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 2000, "maxfun": 4000,
                                  "maxcor": 40})  # fmt: skip
        if found.fun >= best - 1e-8 * abs(best):
            break
        best, start = found.fun, found.x
    return min(best, found.fun)


def derivatives(problem, beta, step=1e-6):
    """Central differences of the objective."""
    return np.array(
        [
            (problem.at(beta + e).objective - problem.at(beta - e).objective) / (2 * step)
            for e in step * np.eye(len(beta))
        ]
    )


@pytest.mark.parametrize(
    ("loss", "box", "penalty"), pairwise(list(CONVEX), list(BOXES), ["identity", "kernel"])
)
def test_the_optimum_is_that_of_a_general_solver(rng, loss, box, penalty):
    problem = network(rng, loss, box=box, penalty=penalty, n=26)
    found = solve(problem, tol=1e-8)
    expected = other_solver(problem)
    assert found.reason == "tol"
    assert ((found.beta >= problem.lower) & (found.beta <= problem.upper)).all()
    assert found.objectives[-1] <= expected + 1e-6 * abs(expected)
    np.testing.assert_allclose(found.objectives[-1], problem.at(found.beta).objective, rtol=1e-12)
    falls = np.diff(found.objectives)
    assert (falls <= 1e-12 * abs(found.objectives[1:])).all()
    np.testing.assert_allclose(found.objectives[-1], expected, rtol=1e-6)


@pytest.mark.parametrize("penalty", ["identity", "kernel"])
@pytest.mark.parametrize("loss", ["log_loss", "exponential", "smooth_hinge"])
def test_gradient_and_objective_are_those_of_equation_8(rng, loss, penalty):
    problem = network(rng, loss, penalty=penalty)
    beta = 0.3 * rng.normal(size=40)
    K, y, w = problem.matrix.values, problem.targets[:, 0], problem.weights
    A = np.eye(40) if penalty == "identity" else K
    expected = w @ reference.MARGIN_LOSSES[loss](y * (K @ beta)) + 0.05 * beta @ A @ beta
    np.testing.assert_allclose(problem.at(beta).objective, expected)
    gradient = problem.gradient(problem.at(beta))
    np.testing.assert_allclose(gradient, derivatives(problem, beta), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("box", ["free", "both bound_state"])
@pytest.mark.parametrize("penalty", ["identity", "kernel"])
def test_a_constant_step_is_the_method_of_the_paper(rng, box, penalty):
    problem = network(rng, box=box, penalty=penalty)
    K, y, w = problem.matrix.values, problem.targets[:, 0], problem.weights
    A = np.eye(40) if penalty == "identity" else K
    expected = reference.gauss_seidel(
        K, y, w, 0.05, A, (problem.lower, problem.upper), gamma=0.02, n_sweeps=7
    )
    found = solve(problem, rate=0.02, max_iter=7, tol=1e-15)
    np.testing.assert_allclose(found.beta, expected, rtol=1e-9, atol=1e-12)
    assert found.n_iter == 7
    assert found.reason == "max_iter"


def test_a_constant_step_reaches_the_same_optimum(rng):
    problem = network(rng, box="both bound_state", kernel=RBF(3.0))
    slow = solve(problem, rate=0.2, max_iter=3000, tol=1e-7)
    assert slow.reason == "tol"
    np.testing.assert_allclose(slow.beta, solve(problem, tol=1e-9).beta, atol=1e-5)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_hinge", "smooth_hinge"])
def test_sweeps_alone_never_rise_and_reach_the_same_optimum(rng, loss, box):
    problem = network(rng, loss, box=box, kernel=RBF(3.0))
    alone = solve(problem, joint=False, max_iter=5000, tol=1e-7)
    assert alone.reason == "tol"
    assert (np.diff(alone.objectives) <= 1e-13 * alone.objectives[1:]).all()
    np.testing.assert_allclose(alone.beta, solve(problem, tol=1e-9).beta, atol=1e-4)


@pytest.mark.parametrize("loss", [SmoothHinge(1000.0), LOSSES["exponential"]], ids=repr)
def test_each_coordinate_step_lowers_the_objective(rng, loss):
    problem = network(rng, loss, kernel=CosinePolynomial())
    point = problem.at(np.zeros(40))
    for j in range(40):
        new = sweep(problem, point, np.array([j]))
        assert new.objective <= point.objective
        assert (np.flatnonzero(new.beta != point.beta) == j).all()
        np.testing.assert_allclose(new.objective, problem.at(new.beta).objective, rtol=1e-12)
        point = new


def test_the_newton_step_of_a_coordinate_is_exact_for_squared_error(rng):
    problem = network(rng, "squared_error", penalty="kernel")
    start = problem.at(0.1 * rng.normal(size=40))
    new = sweep(problem, start, np.array([3, 8]))
    at_8 = problem.gradient(problem.at(new.beta))[8]
    assert abs(at_8) < 1e-10 * problem.scale
    only_3 = sweep(problem, start, np.array([3]))
    assert abs(problem.gradient(only_3)[3]) < 1e-10 * problem.scale


def test_a_joint_step_is_newtons_step(rng):
    problem = network(rng, penalty="kernel", kernel=RBF(2.0))
    start = solve(problem, max_iter=3, tol=1e-15)
    point = problem.at(start.beta + 1e-4)
    moving = np.arange(40)
    new, whole = joint_step(problem, point, problem.gradient(point), moving)
    K, bend = problem.matrix.values, problem.weighted_curvature(point.outputs)
    hessian = K.T @ (bend[:, None] * K) + 0.1 * K
    step = np.linalg.lstsq(hessian, -problem.gradient(point), rcond=1e-13)[0]
    assert whole
    np.testing.assert_allclose(K @ (new.beta - point.beta), K @ step, rtol=1e-5, atol=1e-9)


def test_a_joint_step_that_is_too_long_ends_where_the_objective_is_flat(rng):
    problem = network(rng, SmoothHinge(1000.0))
    point, moving = problem.at(np.zeros(40)), np.arange(40)
    cut = 0
    for _ in range(6):
        gradient = problem.gradient(point)
        new, whole = joint_step(problem, point, gradient, moving)
        assert new.objective < point.objective
        change = new.beta - point.beta
        if not whole:
            cut += 1
            first = gradient @ change
            assert problem.gradient(new) @ change <= 0.1 * abs(first)
        point = new
    assert cut > 0


def test_conjugate_gradients_take_the_same_joint_step(rng, monkeypatch):
    problem = network(rng, penalty="kernel", kernel=RBF(5.0))
    point, moving = problem.at(0.3 * rng.normal(size=40)), np.arange(3, 40)
    arguments = problem, point, problem.gradient(point), moving
    expected, _ = joint_step(*arguments)
    monkeypatch.setattr("pursuit.optimize.coordinate_descent.LARGEST_FACTOR", 5)
    monkeypatch.setattr("pursuit.optimize.coordinate_descent.FORCING", 1e-9)
    found, _ = joint_step(*arguments)
    np.testing.assert_allclose(found.outputs, expected.outputs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("box", ["free", "one side"])
def test_conjugate_gradients_serve_where_factors_do_not(rng, box, monkeypatch):
    problem = network(rng, box=box)
    expected = solve(problem, tol=1e-9)
    monkeypatch.setattr("pursuit.optimize.coordinate_descent.LARGEST_FACTOR", 5)
    found = solve(problem, tol=1e-7)
    assert found.reason == "tol"
    np.testing.assert_allclose(found.objectives[-1], expected.objectives[-1], rtol=1e-7)


def test_a_computed_matrix_changes_nothing(rng):
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, :1] > 0, 1.0, -1.0)
    bounds = np.full(30, -0.1), np.full(30, 0.2)
    atoms = Atoms(RBF(0.5), X)
    rest = (0.1, None, *bounds)
    kept = solve(
        Problem(LOSSES["log_loss"], y, np.ones(30), DesignMatrix(None, RBF(0.5)(X, X)), *rest)
    )
    computed = solve(
        Problem(LOSSES["log_loss"], y, np.ones(30), DesignMatrix(atoms, X, keep=False), *rest)
    )
    np.testing.assert_allclose(computed.beta, kept.beta, rtol=1e-8)


def test_the_residual_is_what_the_text_says(rng):
    problem = network(rng, box="both bound_state")
    found = solve(problem, max_iter=2, tol=1e-15)
    g = derivatives(problem, found.beta)
    P = np.where(
        found.beta <= -0.3, np.minimum(g, 0), np.where(found.beta >= 0.2, np.maximum(g, 0), g)
    )
    K = problem.matrix.values
    scale = (problem.weights * 0.5) @ np.abs(K)
    np.testing.assert_allclose(found.residual, np.abs(P).max() / scale.max(), rtol=1e-3)
    assert (found.beta == -0.3).any()
    assert (found.beta == 0.2).any()


def test_a_start_outside_is_brought_into_the_box_and_a_good_one_saves_steps(rng):
    problem = network(rng, box="both bound_state")
    cold = solve(problem)
    warm = solve(problem, start=cold.beta + 1e-9)
    assert warm.n_iter < cold.n_iter
    outside = solve(problem, start=np.full(40, 7.0))
    np.testing.assert_allclose(outside.objectives[0], problem.at(np.full(40, 0.2)).objective)
    np.testing.assert_allclose(outside.objectives[-1], cold.objectives[-1], rtol=1e-7)


@pytest.mark.parametrize(("loss", "rate"), [("exponential", 5.0), ("squared_error", 0.3)])
def test_a_step_too_long_ends_at_the_best_point(rng, loss, rate):
    problem = network(rng, loss, kernel=CosinePolynomial())
    found = solve(problem, rate=rate, max_iter=3000)
    assert found.reason == "diverged"
    assert np.isfinite(found.beta).all()
    np.testing.assert_allclose(problem.at(found.beta).objective, min(found.objectives))
    if loss == "squared_error":
        assert np.isfinite(found.objectives[:-1]).all()
        assert found.objectives[-2] > 1e3 * min(found.objectives)
