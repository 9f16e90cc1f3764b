"""The damped Newton method against SciPy's optimisers, for every loss and on both routes."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from problems import pairwise
from scipy.optimize import check_grad, minimize
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.losses import (
    LOSSES,
    AbsoluteError,
    CrossEntropy,
    Huber,
    LogLoss,
    Quantile,
    SmoothHinge,
    SquaredErrorTanh,
    UserLoss,
)
from pursuit.optimize import newton
from pursuit.optimize.newton import Preconditioner, Problem, conjugate_gradients


class LogCosh:
    """A user's loss."""

    convex = True

    def value(self, Y, F):
        return np.logaddexp(F - Y, Y - F) - np.log(2.0)

    def gradient(self, Y, F):
        return np.tanh(F - Y)

    def curvature(self, Y, F):
        return 1.0 - np.tanh(F - Y) ** 2


EVERY_LOSS = {
    **LOSSES,
    "huber": Huber(0.4),
    "absolute_error": AbsoluteError(0.05),
    "quantile": Quantile(0.8, 0.05),
    "cross_entropy": CrossEntropy(),
    "user": UserLoss(LogCosh()),
}


@pytest.fixture(params=["factor", "products", "preconditioned"])
def minimise(request, monkeypatch):
    """The method, by each way to solve for a step."""
    if request.param == "factor":
        return newton.minimise
    monkeypatch.setattr(newton, "LARGEST_FACTOR", 0)
    if request.param == "products":
        return newton.minimise
    return lambda *args, **options: newton.minimise(
        *args, preconditioner=Preconditioner(), **options
    )


def targets_of(loss, f, rng):
    """Targets around the outputs f: signs with noise, counts or numbers."""
    noisy = f + rng.normal(scale=1.5, size=f.shape)
    if loss is LOSSES["poisson"]:
        return rng.poisson(np.exp(0.5 * f)).astype(float)
    if loss is EVERY_LOSS["cross_entropy"]:
        return np.where(noisy == noisy.max(axis=1, keepdims=True), 1.0, -1.0)
    return np.where(noisy > 0, 1.0, -1.0) if loss.task == "classifier" else noisy


def problem_of(name, n_outputs=1, alpha=0.0, intercept=True, n_columns=6, n_rows=70, seed=0):
    """A problem with weights, correlated functions, something held fixed and an offset."""
    rng = np.random.default_rng(seed)
    loss = EVERY_LOSS[name]
    n_outputs = 3 if loss.coupled else n_outputs
    mixed = rng.normal(size=(n_rows, n_columns)) @ rng.normal(size=(n_columns, n_columns))
    Q, R = np.linalg.qr(mixed + 0.5)
    R *= np.sign(R.diagonal())[:, None]
    Q = mixed @ np.linalg.inv(R)
    f = Q @ rng.normal(scale=5.0, size=(n_columns, n_outputs)) + 0.5
    Y = targets_of(loss, f, rng)
    weights = rng.uniform(0.2, 3.0, size=n_rows)
    offset = 0.2 * rng.normal(size=f.shape)
    held = rng.normal(size=(n_columns, n_outputs)) if alpha else 0.0
    columns = DesignMatrix(None, np.asfortranarray(Q))
    return Problem(loss, Y, weights, columns, R, alpha, offset, held, intercept)


def objective(problem, x):
    """J and its gradient, written out, for x flat: theta and beta."""
    loss, Y, w, Q = problem.loss, problem.targets, problem.weights, problem.columns.toarray()
    n = Q.shape[1]
    x = x.reshape(-1, Y.shape[1])
    beta = x[n] if problem.intercept else np.zeros(Y.shape[1])
    f = problem.offset + Q @ x[:n] + beta
    inverse = np.linalg.inv(problem.factor)
    a = inverse @ x[:n] + problem.held
    value = loss.value(Y, f)
    total = np.sum(w * value.reshape(len(Y), -1).sum(axis=1)) + problem.alpha * np.sum(a**2)
    g = w[:, None] * loss.gradient(Y, f)
    slope = Q.T @ g + 2.0 * problem.alpha * inverse.T @ a
    last = g.sum(axis=0) if problem.intercept else np.zeros(Y.shape[1])
    return total, np.vstack([slope, last]).ravel()


def in_beta(problem, minimum):
    """The point with beta in place of beta / u."""
    x = minimum.point.copy()
    x[-1] *= problem.constant
    return x


def lowest(problem, *starts):
    """The lowest J that SciPy finds from some points."""
    function = partial(objective, problem)
    options = {
        "BFGS": {"gtol": 1e-11},
        "L-BFGS-B": {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 5000, "maxfun": 20000},
    }
    found = [
        minimize(function, x.ravel(), method=method, jac=True, options=given).fun
        for x in starts
        for method, given in options.items()
    ]
    return min(found)


def test_gradient_of_the_test_itself(rng):
    problem = problem_of("poisson", 2, alpha=0.3)
    x = rng.normal(size=14)
    error = check_grad(
        lambda x: objective(problem, x)[0], lambda x: objective(problem, x)[1], x, epsilon=1e-7
    )
    assert error < 1e-4


@pytest.mark.parametrize(
    ("name", "n_outputs", "alpha", "intercept"),
    pairwise(list(EVERY_LOSS), [1, 2], [0.0, 0.3], [True, False]),
)
def test_minimum_is_that_of_scipy(name, n_outputs, alpha, intercept, minimise):
    problem = problem_of(name, n_outputs, alpha, intercept)
    minimum = minimise(problem)
    ours = in_beta(problem, minimum)
    reached, slope = objective(problem, ours)
    assert minimum.converged
    if name == "doom2" and not alpha:
        # Its optimum is at infinity, where all is flat: a long line search may find more.
        assert np.abs(slope).max() < 1e-6 * np.abs(objective(problem, 0.0 * ours)[1]).max()
    else:
        starts = [ours, np.zeros_like(ours)] if problem.loss.convex else [ours]
        assert reached <= lowest(problem, *starts) * (1.0 + 1e-8)
    # What comes with the point belongs to it.
    outputs = problem.offset + problem.columns.toarray() @ ours[:-1] + ours[-1]
    assert_allclose(minimum.outputs, outputs, rtol=1e-9, atol=1e-9)
    data = problem.weights @ problem.loss.value(problem.targets, outputs).reshape(70, -1)
    assert_allclose(minimum.data_loss, data.sum(), rtol=1e-9)
    if not intercept:
        assert not ours[-1].any()


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_objective_never_rises(name, minimise):
    problem = problem_of(name, 2, alpha=0.05)
    values = [objective(problem, np.zeros(7 * problem.targets.shape[1]))[0]]
    for n_iterations in range(1, 200):
        minimum = minimise(problem, max_iter=n_iterations)
        values.append(objective(problem, in_beta(problem, minimum))[0])
        if minimum.converged:
            break
        assert minimum.n_iter == n_iterations
    assert minimum.converged
    assert_array_less(np.diff(values[: minimum.n_iter + 1]), 0.0)


def test_one_step_solves_squared_error(minimise, monkeypatch):
    """Exactly by the factor, and in the metric of the whole Hessian with or without a ridge."""
    monkeypatch.setattr(newton, "FORCING", 1e-12)
    for alpha in (0.0, 2.0):
        problem = problem_of("squared_error", 2, alpha)
        minimum = minimise(problem)
        assert minimum.n_iter <= 2
        slope = objective(problem, in_beta(problem, minimum))[1]
        assert_allclose(slope, 0.0, atol=1e-5)


def test_intercept_alone(minimise):
    loss, Y = LOSSES["log_loss"], np.array([[1.0], [1.0], [-1.0], [1.0]])
    none = DesignMatrix(None, np.empty((4, 0)))
    minimum = minimise(
        Problem(loss, Y, np.array([1.0, 1.0, 2.0, 3.0]), none, np.empty((0, 0)), 9.0)
    )
    assert_allclose(minimum.outputs, np.log(5.0 / 2.0), rtol=1e-5)


def test_starting_at_the_minimum_stays_there(minimise):
    problem = problem_of("log_loss", 2, 0.1)
    first = minimise(problem)
    again = minimise(problem, first.point, first.outputs)
    assert again.n_iter == 0
    assert_array_equal(again.point, first.point)
    assert again.point is not first.point


def test_start_is_used_and_not_changed(minimise, rng):
    problem = problem_of("log_loss", 2, 0.1)
    start = rng.normal(size=(7, 2))
    kept = start.copy()
    cold, warm = minimise(problem), minimise(problem, start)
    assert_array_equal(start, kept)
    assert_allclose(
        objective(problem, in_beta(problem, warm))[0],
        objective(problem, in_beta(problem, cold))[0],
        rtol=2e-9,
    )


def test_accuracy_is_a_share_of_the_first_decrement(minimise):
    """exp(f) falls by a factor e with each step, and its decrement is exp(f) itself."""
    none = DesignMatrix(None, np.empty((4, 0)))
    problem = Problem(LOSSES["poisson"], np.zeros((4, 1)), np.ones(4), none, np.empty((0, 0)))
    for share, n_iter in ((0.5, 1), (0.3, 2), (0.1, 3), (0.01, 5)):
        minimum = minimise(problem, accuracy=share)
        assert minimum.n_iter == n_iter
        assert minimum.converged
        assert_allclose(minimum.outputs, -n_iter)


def test_objective_of_a_minimum_is_with_the_ridge():
    problem = problem_of("log_loss", 2, 0.3)
    minimum = newton.minimise(problem)
    expected = objective(problem, in_beta(problem, minimum))[0]
    assert_allclose(problem.objective(minimum), expected, rtol=1e-12)


# Hessians.


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["log_loss", "doom2", "cross_entropy"])
def test_products_are_those_with_the_hessian(name, intercept, rng):
    """Differences of the gradient; the model's Hessian counts the constant in units of u."""
    problem = problem_of(name, 2, 0.4, intercept)
    n_outputs = problem.targets.shape[1]
    x, v = rng.normal(size=(2, 7, n_outputs))
    units = np.ones((7, 1))
    units[-1] = problem.constant
    if not intercept:
        x[-1] = v[-1] = 0.0
    outputs = problem.offset + problem.matvec(x)
    model = newton._Products(problem, outputs, x, Preconditioner())
    step = 1e-6
    up, down = (objective(problem, (units * (x + s * v)).ravel())[1] for s in (step, -step))
    expected = ((up - down) / (2 * step)).reshape(7, n_outputs) * units
    assert_allclose(model.times(v), expected, rtol=1e-5, atol=1e-6)
    if not problem.loss.coupled:
        blocks = newton._Factorised(problem, outputs, x).hessians
        dense = np.column_stack([block @ v[:, t] for t, block in enumerate(blocks)])
        assert_allclose(dense, expected, rtol=1e-5, atol=1e-6)


def test_columns_are_a_matrix(rng):
    Q = np.asfortranarray(rng.normal(size=(20, 5)))
    columns = DesignMatrix(None, Q)
    assert columns.shape == (20, 5)
    theta, values = rng.normal(size=(5, 3)), rng.normal(size=(20, 3))
    assert_allclose(columns.matvec(theta), Q @ theta)
    assert_allclose(columns.rmatvec(values), Q.T @ values)
    weights = rng.normal(size=20)
    positive = np.abs(weights)
    sparse = np.where(positive > 0.5, positive, 0.0)
    for w in (weights, positive, sparse, np.zeros(20)):
        assert_allclose(columns.gram(w), Q.T @ np.diag(w) @ Q, atol=1e-13)


def test_damping_is_relative(minimise):
    """The same path whatever the unit of the loss."""
    problem = problem_of("doom2", 1)

    class Scaled(type(problem.loss)):
        def value(self, Y, F):
            return 1e6 * super().value(Y, F)

        def gradient(self, Y, F):
            return 1e6 * super().gradient(Y, F)

        def curvature(self, Y, F):
            return 1e6 * super().curvature(Y, F)

    plain, scaled = minimise(problem), minimise(problem._replace(loss=Scaled()))
    assert plain.n_iter == scaled.n_iter
    assert_allclose(scaled.point, plain.point, rtol=1e-5, atol=1e-8)


class Stub:
    """A model with factors of an earlier point, which make its steps short until renewed."""

    def __init__(self, step):
        self.step, self.share, self.dampings = step, 1e-12, []

    def solve(self, damping):
        self.dampings.append(damping)
        return self.share * self.step

    def renew(self):
        renewed, self.share = self.share < 1.0, 1.0
        return renewed


def test_factors_of_an_earlier_point_are_renewed_before_the_end():
    problem = problem_of("squared_error")
    minimum = newton.minimise(problem)
    x = np.zeros((7, 1))
    outputs = problem.offset + problem.matvec(x)
    before = problem.data_loss(outputs)
    slope = newton._slope(problem, x, outputs)
    least = 2.0 * newton.SMALL_DECREMENT * before
    model = Stub(minimum.point)
    taken, damping = newton._damped_step(model, slope, 0.0, problem, x, outputs, before, least)
    assert_allclose(taken[0], minimum.point)
    assert_allclose(taken[2], minimum.data_loss)
    assert model.dampings == [0.0, 0.0]
    assert damping == 0.0
    # With nothing to renew a small step is the end.
    model.share, model.renew = 1e-12, lambda: False
    taken, _ = newton._damped_step(model, slope, 0.0, problem, x, outputs, before, least)
    assert taken is None


def test_a_small_step_of_a_strong_damping_is_not_the_end():
    problem = problem_of("squared_error")
    x = np.zeros((7, 1))
    outputs = problem.offset + problem.matvec(x)
    before = 1e3 * problem.data_loss(outputs)  # as if most of it could not be explained
    slope = newton._slope(problem, x, outputs)
    model = newton._Factorised(problem, outputs, slope)
    assert -(slope * model.solve(1e9)).sum() < 2e-9 * before
    taken, damping = newton._damped_step(model, slope, 1e9, problem, x, outputs, before, 0.0)
    assert taken is not None
    assert damping < 1e9


# Preconditioner and conjugate gradients.


def test_conjugate_gradients_solve_a_system(rng):
    A = rng.normal(size=(8, 8))
    A = A @ A.T + np.eye(8)
    b = rng.normal(size=(8, 1))
    inverse = np.linalg.inv(A + 0.1 * np.diag(rng.uniform(size=8)))
    for precondition in (np.copy, lambda v: inverse @ v):
        x, n_products = conjugate_gradients(lambda v: A @ v, b, 1e-12, precondition)
        assert_allclose(x, np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)
        assert n_products <= 10  # 8 and what rounding adds
    loose, few = conjugate_gradients(lambda v: A @ v, b, 0.5, np.copy)
    assert few < n_products or few <= 4
    assert np.linalg.norm(A @ loose - b) <= 0.5 * np.linalg.norm(b)


def test_conjugate_gradients_need_no_more_products_with_the_inverse(rng):
    A = np.diag(10.0 ** np.arange(6))
    b = np.ones((6, 1))
    x, n_products = conjugate_gradients(lambda v: A @ v, b, 1e-8, lambda v: np.linalg.inv(A) @ v)
    assert n_products == 1
    assert_allclose(x, np.linalg.solve(A, b))


def test_conjugate_gradients_stop_where_the_matrix_bends_down():
    A = np.diag([1.0, -1.0])
    x, n_products = conjugate_gradients(lambda v: A @ v, np.array([[0.0], [1.0]]), 1e-9, np.copy)
    assert x is None
    assert n_products == 1
    x, n_products = conjugate_gradients(lambda v: A @ v, np.array([[3.0], [1.0]]), 1e-9, np.copy)
    assert n_products == 2
    assert_allclose(x, 10.0 / 8.0 * np.array([[3.0], [1.0]]))


def preconditioner_of(problem, x):
    factors = Preconditioner()
    model = newton._Products(problem, problem.offset + problem.matvec(x), x, factors)
    return factors, model


@pytest.mark.parametrize("intercept", [True, False])
def test_preconditioner_inverts_the_blocks_of_one_output(intercept, rng):
    problem = problem_of("log_loss", 2, 0.4, intercept)
    x = rng.normal(size=(7, 2))
    if not intercept:
        x[-1] = 0.0
    factors, model = preconditioner_of(problem, x)
    assert_allclose(factors.solve(model.times(x)), x, rtol=1e-6, atol=1e-7)


def test_preconditioner_of_fewer_columns_scales_the_new_ones(rng):
    problem = problem_of("log_loss", 1, 0.4)
    x = rng.normal(size=(7, 1))
    factors, model = preconditioner_of(problem, x)
    v = rng.normal(size=(9, 1))
    solution = factors.solve(v)
    old = factors.solve(v[[0, 1, 2, 3, 4, 5, 8]])
    assert_allclose(solution[[0, 1, 2, 3, 4, 5, 8]], old, rtol=1e-12)
    blocks = newton._Factorised(problem, problem.offset + problem.matvec(x), x).hessians
    assert_allclose(solution[6:8], v[6:8] / blocks[0].diagonal().mean(), rtol=1e-9)


def test_preconditioner_is_renewed_when_products_become_many(monkeypatch):
    factors = Preconditioner()
    problem = problem_of("cross_entropy")
    x = np.zeros((7, 3))
    newton._Products(problem, problem.matvec(x), x, factors)
    taken = factors.inverses
    assert not factors.stale
    for n_products, renewed in ((4, False), (13, False), (14, True), (30, False), (3, False)):
        factors.count(n_products)
        newton._Products(problem, problem.matvec(x), x, factors)
        assert (factors.inverses is not taken) == renewed
        taken = factors.inverses


def test_factors_serve_without_damping_alone():
    problem = problem_of("cross_entropy")
    x = np.zeros((7, 3))
    outputs = problem.offset + problem.matvec(x)
    factors = Preconditioner()
    model = newton._Products(problem, outputs, newton._slope(problem, x, outputs), factors)
    model.solve(1.0)
    assert factors.fresh_count is None
    model.solve(0.0)
    assert 1 <= factors.fresh_count <= 21


def test_one_function_of_coupled_outputs_is_solved_by_its_own_hessian(rng):
    problem = problem_of("cross_entropy", alpha=0.3, intercept=False, n_columns=1)
    x = np.vstack([rng.normal(size=(1, 3)), np.zeros((1, 3))])
    outputs = problem.offset + problem.matvec(x)
    slope = newton._slope(problem, x, outputs)
    model = newton._model(problem, outputs, slope, None)
    products = newton._Products(problem, outputs, slope, None)
    hessian = np.array([products.times(np.vstack([row, 0 * row]))[0] for row in np.eye(3)])
    for damping in (0.0, 10.0):
        shift = damping * newton._size(problem, np.linalg.norm(hessian, 2), slope)
        expected = -np.linalg.solve(hessian + shift * np.eye(3), slope[0])
        assert_allclose(model.solve(damping)[0], expected, rtol=1e-9)
    assert not model.renew()
    # Without a ridge a common shift has neither slope nor curvature, and the step has none.
    free = problem._replace(alpha=0.0)
    step = newton._model(free, outputs, newton._slope(free, x, outputs), None).solve(0.0)
    assert_allclose(step.sum(), 0.0, atol=1e-12 * np.abs(step).max())
    # A Hessian that bends down gives no step before it is damped.
    model.bends[0] = -model.bends[-1]
    assert model.solve(0.0) is None
    assert model.solve(10.0) is not None


def test_preconditioner_keeps_common_shifts_apart(rng):
    problem = problem_of("cross_entropy", alpha=0.1)
    x = rng.normal(size=(7, 3))
    factors, _ = preconditioner_of(problem, x)
    v = rng.normal(size=(7, 3))
    mean = v.mean(axis=1, keepdims=True)
    blockwise = factors._blockwise(v - mean)
    expected = blockwise - blockwise.mean(axis=1, keepdims=True) + mean / factors.scale.mean()
    assert_allclose(factors.solve(v), expected, rtol=1e-12)


def test_common_shifts_kept_apart_save_products(monkeypatch):
    X, y = load_digits(return_X_y=True)
    K = rbf_kernel(X[:600] / 16, X[:25] / 16, gamma=0.1)
    Q, R = np.linalg.qr(K - K.mean(axis=0))
    Y = np.where(y[:600, None] == np.arange(10), 1.0, -1.0)
    columns = DesignMatrix(None, np.asfortranarray(Q))
    problem = Problem(CrossEntropy(), Y, np.ones(600), columns, R, alpha=1e-3)
    solved, n_products = newton.conjugate_gradients, []

    def counted(*arguments):
        solution, n = solved(*arguments)
        n_products[-1] += n
        return solution, n

    monkeypatch.setattr(newton, "conjugate_gradients", counted)
    values = []
    for apart in (False, True):
        monkeypatch.setattr(CrossEntropy, "shift_invariant", apart)
        n_products.append(0)
        values.append(problem.objective(newton.minimise(problem, preconditioner=Preconditioner())))
    assert_allclose(*values, rtol=1e-8)
    assert 3 * n_products[1] < 2 * n_products[0]


def test_factors_that_serve_well_are_not_renewed():
    problem = problem_of("cross_entropy")
    x = np.zeros((7, 3))
    factors = Preconditioner()
    newton._Products(problem, problem.matvec(x), x, factors).solve(0.0)
    later = newton._Products(problem, problem.matvec(x), x, factors)
    taken = factors.inverses
    assert not later.renew()
    factors.stale = True
    assert later.renew()
    assert factors.inverses is not taken
    more = problem_of("cross_entropy", n_columns=8)
    x = np.zeros((9, 3))
    assert newton._Products(more, more.matvec(x), x, factors).renew()


@pytest.mark.parametrize("name", ["cross_entropy", "log_loss", "huber", "doom2"])
def test_a_stale_preconditioner_changes_the_way_but_not_the_minimum(name, monkeypatch):
    monkeypatch.setattr(newton, "LARGEST_FACTOR", 0)
    factors = Preconditioner()
    small, large = (problem_of(name, 2, 0.1, n_columns=n, seed=n) for n in (3, 12))
    newton.minimise(small, preconditioner=factors)
    assert factors.inverses.shape[1] == 4
    stale = newton.minimise(large, preconditioner=factors)
    fresh = newton.minimise(large, preconditioner=Preconditioner())
    values = [objective(large, in_beta(large, m))[0] for m in (stale, fresh)]
    if large.loss.convex:
        assert_allclose(*values, rtol=2e-9)
    assert values[0] <= lowest(large, in_beta(large, stale)) * (1.0 + 1e-8)


# Edges.


def test_separated_classes_end_where_nothing_is_left_of_the_loss(minimise):
    """No finite optimum: the loss falls below 1e-10 of the scale and that is enough."""
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    Q = x / np.linalg.norm(x)
    for name in ("log_loss", "exponential", "logit_boost", "squared_hinge", "smooth_hinge"):
        problem = Problem(
            EVERY_LOSS[name],
            np.sign(x),
            np.ones(20),
            DesignMatrix(None, Q),
            np.eye(1),
            intercept=False,
        )
        start = problem.data_loss(np.zeros((20, 1)))
        minimum = minimise(problem, scale=start)
        assert np.isfinite(minimum.point).all()
        assert minimum.converged
        assert minimum.data_loss <= 1e-10 * start


def test_a_loss_of_zero_is_a_minimum(minimise):
    problem = problem_of("squared_error")
    exact = problem._replace(targets=problem.offset + 0.0)
    minimum = minimise(exact)
    assert minimum.n_iter == 0
    assert not minimum.point.any()


def test_a_loss_of_zero_with_a_ridge_is_no_minimum(minimise):
    """All margins are above 1, with coefficients larger than they need to be."""
    x = np.sign(np.linspace(-1.0, 1.0, 20))[:, None]
    problem = Problem(
        LOSSES["squared_hinge"],
        x,
        np.ones(20),
        DesignMatrix(None, x),
        np.eye(1),
        1.0,
        intercept=False,
    )
    minimum = minimise(problem, np.array([[9.0], [0.0]]), scale=20.0)
    assert_allclose(minimum.point, [[20.0 / 21.0], [0.0]], rtol=1e-5)


def test_a_step_that_is_too_long_is_halved():
    problem = problem_of("squared_error")
    x = np.zeros((7, 1))
    outputs = problem.offset + problem.matvec(x)
    best = newton.minimise(problem).point
    before = problem.data_loss(outputs)
    for factor, length in ((1.0, 1.0), (3.0, 0.5), (7.0, 0.25), (15.0, 0.125), (31.0, 0.0)):
        taken, found = newton._search(problem, x, outputs, factor * best, before, 0.0)
        assert found == length
        if length:
            assert_allclose(taken[0], factor * length * best)
            assert_allclose(taken[1], outputs + problem.matvec(taken[0]))
            assert taken[2] < before
        else:
            assert taken is None


def test_an_infinite_loss_is_stepped_back_from(minimise):
    """exp(f) of a full Newton step overflows."""
    problem = problem_of("poisson")
    counts = np.full_like(problem.targets, 0.0)
    counts[0] = 1e6
    hard = problem._replace(targets=counts, offset=-30.0, alpha=1e-3)
    minimum = minimise(hard)
    reached = objective(hard, in_beta(hard, minimum))[0]
    assert np.isfinite(reached)
    assert minimum.converged
    assert reached <= lowest(hard, in_beta(hard, minimum)) * (1.0 + 1e-8)


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-6, 1e-3, 0.3, 1.0])
def test_a_point_where_the_loss_bends_down_is_left_or_kept_in_finite_time(size, minimise):
    """Near a maximum the slope is next to nothing and the Hessian not positive definite."""

    class Hill:
        def value(self, Y, F):
            return 1.0 + np.cos(F)

        def gradient(self, Y, F):
            return -np.sin(F)

        def curvature(self, Y, F):
            return -np.cos(F)

    n = 5
    problem = Problem(
        UserLoss(Hill()),
        np.zeros((n, 1)),
        np.ones(n),
        DesignMatrix(None, np.empty((n, 0))),
        np.empty((0, 0)),
    )
    start = np.full((1, 1), size / problem.constant)
    minimum = minimise(problem, start)
    assert minimum.data_loss <= 2.0 * n
    if size > 1e-4:
        assert_allclose(np.cos(minimum.outputs), -1.0, atol=1e-6)


def test_limit_on_iterations_is_said(minimise):
    minimum = minimise(problem_of("exponential", 2), max_iter=2)
    assert (minimum.n_iter, minimum.converged) == (2, False)


def test_smooth_hinge_with_a_sharp_corner(minimise):
    problem = problem_of("smooth_hinge")._replace(loss=SmoothHinge(200.0))
    minimum = minimise(problem)
    ours = in_beta(problem, minimum)
    assert objective(problem, ours)[0] <= lowest(problem, ours) * (1.0 + 1e-8)


def test_losses_that_are_flat_far_out(minimise):
    """Started where tanh has no slope left, the method moves or says that it is done."""
    problem = problem_of("squared_error_tanh")._replace(loss=SquaredErrorTanh())
    start = np.zeros((7, 1))
    start[-1] = 15.0 / problem.constant
    before = objective(problem, np.vstack([start[:-1], [[15.0]]]).ravel())[0]
    minimum = minimise(problem, start)
    assert np.isfinite(minimum.outputs).all()
    assert objective(problem, in_beta(problem, minimum))[0] <= before


def test_log_loss_of_one_output_is_cross_entropy_of_two(minimise):
    """softmax of (0, f): with a ridge on both, f is split in halves."""
    problem = problem_of("log_loss", 1, 0.3)._replace(held=0.0, loss=LogLoss(), offset=0.0)
    both = problem._replace(
        loss=CrossEntropy(), targets=np.hstack([-problem.targets, problem.targets])
    )
    halved = problem._replace(alpha=0.15)
    one, two = minimise(halved), minimise(both)
    assert_allclose(two.outputs[:, 1] - two.outputs[:, 0], one.outputs[:, 0], rtol=1e-3, atol=1e-3)
    assert_allclose(two.data_loss, one.data_loss, rtol=1e-5)
