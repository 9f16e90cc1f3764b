"""The minimum of a quadratic function in a box: against L-BFGS-B, and its conditions."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pursuit.optimize.box_qp import BoxMinimum, box_minimum, exchange, interior_point

INF = np.inf


def quadratic(rng, n=12, condition=1e3):
    """A positive definite matrix of this condition, and a slope."""
    axes, _ = np.linalg.qr(rng.normal(size=(n, n)))
    H = (axes * np.geomspace(1.0, condition, n)) @ axes.T
    return (H + H.T) / 2, 5.0 * rng.normal(size=n)


BOXES = {
    "none": (-INF, INF),
    "both": (-0.02, 0.03),
    "lower": (0.0, INF),
    "upper": (-INF, 0.01),
    "away": (0.5, 1.0),
}


@pytest.fixture(params=BOXES)
def problem(request, rng):
    H, g = quadratic(rng)
    lower, upper = BOXES[request.param]
    return H, g, np.full(len(g), lower), np.full(len(g), upper)


def test_the_minimum_is_that_of_another_solver(problem):
    H, g, lower, upper = problem
    found = box_minimum(*problem)
    start = np.clip(np.zeros(len(g)), lower, upper)
    other = minimize(lambda x: (g @ x + x @ H @ x / 2, g + H @ x), start, jac=True,
                     method="L-BFGS-B", bounds=list(zip(lower, upper, strict=True)),
                     options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000})  # fmt: skip
    assert found.exact
    np.testing.assert_allclose(found.x, other.x, atol=1e-5)
    assert g @ found.x + found.x @ H @ found.x / 2 <= other.fun + 1e-9


def test_each_coordinate_is_of_its_kind(problem):
    H, g, lower, upper = problem
    x, bound_state, _ = box_minimum(*problem)
    r = g + H @ x
    np.testing.assert_allclose(r[bound_state == 0], 0.0, atol=1e-9)
    np.testing.assert_array_equal(x[bound_state < 0], lower[bound_state < 0])
    np.testing.assert_array_equal(x[bound_state > 0], upper[bound_state > 0])
    assert (r[bound_state < 0] >= 0).all()
    assert (r[bound_state > 0] <= 0).all()
    assert ((x >= lower) & (x <= upper)).all()


def test_the_interior_point_finds_the_kinds(problem):
    found = interior_point(*problem)
    np.testing.assert_array_equal(found.bound_state, box_minimum(*problem).bound_state)
    np.testing.assert_allclose(found.x, box_minimum(*problem).x, atol=1e-6)


def test_where_exchanges_run_in_circles_the_interior_point_helps():
    rng = np.random.default_rng(6)
    K = np.exp(-0.05 * (rng.normal(size=(60, 1)) - rng.normal(size=(1, 60))) ** 2)
    H, g = K.T @ K + 1e-7 * np.eye(60), rng.normal(size=60)
    bounds = np.full(60, -0.1), np.full(60, 0.1)
    assert not exchange(H, g, *bounds, np.zeros(60, dtype=int)).exact
    found = box_minimum(H, g, *bounds)
    r = g + H @ found.x
    projected = np.clip(found.x - r, *bounds) - found.x
    np.testing.assert_allclose(projected, 0.0, atol=1e-8)


def test_the_interior_point_serves_alone_where_exchanges_never_end(problem, monkeypatch):
    expected = box_minimum(*problem).x
    nothing = BoxMinimum(np.full(12, np.nan), np.zeros(12, dtype=int), False)
    monkeypatch.setattr("pursuit.optimize.box_qp.exchange", lambda *arguments: nothing)
    np.testing.assert_allclose(box_minimum(*problem).x, expected, atol=1e-6)


def test_a_matrix_without_full_rank_has_a_minimum_in_a_box():
    H = np.ones((3, 3))
    x = box_minimum(H, np.array([-1.0, -1.0, -1.0]), np.zeros(3), np.ones(3)).x
    np.testing.assert_allclose(H @ x, 1.0, rtol=1e-6)


def test_nothing_to_minimise():
    assert len(box_minimum(np.empty((0, 0)), *np.empty((3, 0))).x) == 0
