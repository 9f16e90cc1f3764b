"""Vectors that move under one gamma a feature, or a matrix: where, and what is told of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pursuit
from pursuit import KernelMetric, SparseKernelRegressor, SparseLargeMarginClassifier, frontier
from pursuit.kernels import RBF, Laplacian, Mahalanobis
from pursuit.losses import SquaredError
from pursuit.moving_vectors.setting import Setting, composed, setting_of
from pursuit.optimize.kernel_blocks import Place, Table
from pursuit.optimize.variable_projection import Problem, energy

RNG = np.random.default_rng(0)
UNITS = np.array([1.0, 10.0, 1e3])
X = RNG.normal(size=(120, 3)) * UNITS + [0.0, 50.0, -1e4]
y = np.sin(2 * X[:, 0]) + 0.1 * (X[:, 1] - 50.0)
GAMMA = np.array([1.0, 0.3, 0.05]) / UNITS**2
MATRIX = np.diag(GAMMA)
MATRIX[0, 1] = MATRIX[1, 0] = 0.02
FEW = {"n_components": 8, "max_iter": 15, "random_state": 0}


def told(model, rows):
    """The outputs by the attributes that a user sees."""
    values = model.kernel_(rows, model.support_vectors_)
    return values @ model.dual_coef_[0] + model.intercept_[0]


def told_in_a_metric(model, rows):
    values = model.kernel_(rows @ model.metric_, model.support_vectors_)
    return values @ model.dual_coef_[0] + model.intercept_[0]


@pytest.mark.parametrize("learn_gamma", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_vectors_are_told_in_the_coordinates_of_x(kernel, learn_gamma):
    gamma = GAMMA if kernel == "rbf" else np.sqrt(GAMMA)
    model = SparseKernelRegressor(kernel=kernel, gamma=gamma, learn_gamma=learn_gamma, **FEW)
    model.fit(X, y)
    assert_allclose(told(model, X), model.predict(X), rtol=1e-12)
    assert np.array_equal(model.kernel_.gamma, gamma) != learn_gamma
    vectors, B = model.support_vectors_, model.dual_coef_[0]
    energy = (
        0.5 * B @ model.kernel_(vectors, vectors) @ B + 10.0 * ((told(model, X) - y) ** 2).sum()
    )
    assert_allclose(energy, model.energy_, rtol=1e-5)
    spread = model.support_vectors_.std(axis=0) / X.std(axis=0)
    assert (spread > 0.2).all() and (spread < 50.0).all()


def test_each_gamma_moves_to_where_the_energy_is_lower():
    gamma, few = 0.5 / UNITS**2, FEW | {"max_iter": 40}
    fixed = SparseKernelRegressor(gamma=gamma, **few).fit(X, y)
    model = SparseKernelRegressor(gamma=gamma, learn_gamma=True, **few).fit(X, y)
    one = SparseKernelRegressor(gamma=0.5, learn_gamma=True, **few).fit(X / UNITS, y)
    assert model.energy_ < 0.5 * min(fixed.energy_, one.energy_)
    factors = model.kernel_.gamma / gamma
    assert factors[2] < 0.05 * factors[0]  # the last feature is noise
    units = np.array([1e-3, 1.0, 50.0])
    few["max_iter"] = 10
    model = SparseKernelRegressor(gamma=gamma, learn_gamma=True, **few).fit(X, y)
    other = clone_with(model, gamma=gamma / units**2).fit(X * units, y)
    assert_allclose(other.predict(X * units), model.predict(X), rtol=1e-4, atol=1e-4)


def clone_with(model, **changes):
    return type(model)(**model.get_params() | changes)


@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_slopes_in_each_gamma_by_finite_differences(kernel):
    """dW/dgamma_j by the map of the search, gamma = (s A)^2 or s A, from A = 1."""
    rows, power = (X - X.mean(axis=0)) / UNITS, 2 if kernel is RBF else 1
    start = np.array([0.5, 1.0, 0.2])
    centres = rows[:5] + 0.1

    def step_at(gamma):
        scale = gamma ** (1 / power)
        problem = Problem(
            Table(rows, np.zeros(3), np.float64, scale), y[:, None], np.ones(120), SquaredError()
        )
        return energy(problem, Place(kernel(1.0), centres * scale, np.ones(3)))

    found = step_at(start).A  # with u = s A x held, the vectors stay where they are in u
    for j in range(3):
        step = np.zeros(3)
        step[j] = 1e-6
        scale = start ** (1 / power)
        problem = Problem(
            Table(rows, np.zeros(3), np.float64), y[:, None], np.ones(120), SquaredError()
        )
        up, down = (
            energy(problem, Place(kernel(1.0), centres * scale, scale * (1 + sign * step))).value
            for sign in (1, -1)
        )
        assert_allclose(found[j], (up - down) / 2e-6, rtol=1e-4)


@pytest.mark.parametrize("matrix", [MATRIX, MATRIX[:, :1] @ MATRIX[:1]])
def test_a_matrix(matrix, tmp_path):
    model = SparseKernelRegressor(kernel=Mahalanobis(matrix), **FEW).fit(X, y)
    assert model.kernel_ is model.kernel
    assert_allclose(told(model, X), model.predict(X), rtol=1e-9)
    root = model.kernel.split()[1]
    mapped = SparseKernelRegressor(gamma=1.0, **FEW).fit(X @ root, y)
    assert_allclose(model.energy_, mapped.energy_, rtol=1e-6)
    pursuit.save(model, tmp_path / "m.pursuit")
    assert_array_equal(pursuit.load(tmp_path / "m.pursuit").predict(X), model.predict(X))


def test_a_metric_starts_from_that_of_the_kernel():
    kernel, few = Mahalanobis(MATRIX), FEW | {"max_iter": 5, "n_components": 5}
    model = SparseKernelRegressor(kernel=kernel, metric="full", **few).fit(X[:40], y[:40])
    rows = X[:40] @ kernel.split()[1]
    same = SparseKernelRegressor(gamma=1.0, metric="full", **few).fit(rows, y[:40])
    # Later rounds are those of L-BFGS, which makes much of a last digit.
    assert_allclose(model.metric_losses_[:2], same.metric_losses_[:2], rtol=1e-2)
    assert_allclose(told_in_a_metric(model, X), model.predict(X), rtol=1e-9)


def test_a_transformer_starts_from_the_gammas():
    metric = KernelMetric(gamma=GAMMA, metric=2, n_components=5, random_state=0)
    metric.fit(X[:40], y[:40])
    scaled = X * np.sqrt(GAMMA)
    plain = clone_with(metric, gamma=1.0).fit(scaled[:40], y[:40])
    assert_allclose(metric.transform(X), plain.transform(scaled), atol=0.01 * np.ptp(scaled))


def test_a_warm_start_and_a_frontier_go_on():
    model = SparseKernelRegressor(gamma=GAMMA, learn_gamma=True, warm_start=True, **FEW).fit(X, y)
    before = model.predict(X), model.kernel_.gamma
    model.set_params(max_iter=0).fit(X, y)
    assert_allclose(model.predict(X), before[0], rtol=1e-6)
    assert_allclose(model.kernel_.gamma, before[1], rtol=1e-12)
    path = frontier(clone_with(model, max_iter=5, warm_start=False), X, y, [8, 4], max_iter=5)
    small = path.models[-1]
    assert_allclose(told(small, X), small.predict(X), rtol=1e-12)
    assert path.nbytes.tolist() == [4 * (8 * 4 + 1 + 3), 4 * (4 * 4 + 1 + 3)]


def test_bytes_count_the_numbers_of_the_kernel():
    plain = SparseKernelRegressor(gamma=1.0, precision="int8", **FEW).fit(X, y)
    model = SparseKernelRegressor(gamma=GAMMA, precision="int8", **FEW).fit(X, y)
    assert model.nbytes_ == plain.nbytes_ + 8 * 3
    assert_allclose(told(model, X), model.predict(X), rtol=1e-12)
    moved = {"gamma": GAMMA, "learn_gamma": True, **FEW}
    short, whole = (
        SparseKernelRegressor(precision=p, **moved).fit(X, y) for p in ("float32", None)
    )
    assert_allclose(short.predict(X), whole.predict(X), atol=1e-4)
    within = SparseKernelRegressor("auto", gamma=GAMMA, max_bytes=150, max_iter=2, random_state=0)
    assert within.fit(X, y).nbytes_ <= 150


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_large_margins_under_equal_gammas():
    labels = np.where(y > 0, "b", "a")
    few = {"n_components": 4, "max_iter": 5, "random_state": 0}
    one = SparseLargeMarginClassifier(gamma=0.4, **few).fit(X / UNITS, labels)
    several = SparseLargeMarginClassifier(gamma=[0.4] * 3, **few).fit(X / UNITS, labels)
    outputs = (model.decision_function(X / UNITS) for model in (one, several))
    assert_allclose(*outputs, rtol=1e-3, atol=1e-3)


def test_what_does_not_go_together():
    for options, message in (
        ({"learn_gamma": True}, "learn_gamma=True, but (?s:.*) has no gamma"),
        ({"metric": "diagonal"}, "metric='diagonal' does not go with a kernel that has a matrix"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseKernelRegressor(kernel=Mahalanobis(MATRIX), **FEW, **options).fit(X, y)


def test_maps_one_after_the_other():
    scale, A, B = np.array([2.0, 3.0]), np.array([[1.0], [4.0]]), np.array([5.0, -6.0])
    assert_array_equal(composed(scale, B), [10.0, -18.0])
    assert_array_equal(composed(scale, A), np.diag(scale) @ A)
    assert_array_equal(composed(np.diag(scale), B), np.diag(scale) @ np.diag(B))
    assert_array_equal(composed(A.T, B[:1]), A.T * 5.0)
    assert composed(None, A) is A and composed(scale, None) is scale
    assert (composed(scale, np.array([0.0, 1.0])) > 0).all()  # a factor never gets to zero
    assert isinstance(setting_of(RBF(GAMMA), X, np.zeros(3)), Setting)
