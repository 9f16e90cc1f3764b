"""Outputs of moved vectors at rows that are left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward

from pursuit import SparseKernelRegressor
from pursuit._validation import Samples
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.kernels import RBF
from pursuit.losses import Huber, SquaredError
from pursuit.moving_vectors import leave_one_out
from pursuit.moving_vectors.leave_one_out import outputs_without
from pursuit.moving_vectors.projected import ProjectedAtoms

C, GAMMA = 3.0, 0.4


def problem(n=40, n_outputs=2, seed=0):
    P = awkward(n, seed)
    X = (P.X - P.X.mean(axis=0)) / P.X.std(axis=0)
    weights = np.where(P.weights > 0, P.weights, 1.5)
    Z = X[:5] + 0.3
    return X, P.Y[:, :n_outputs] - P.Y[:, :n_outputs].mean(axis=0), weights, Z


def ridge(X, Y, weights, Z):
    """Best coefficients and constant under squared error, plainly."""
    K = np.hstack([RBF(GAMMA)(X, Z), np.ones((len(X), 1))])
    penalty = np.zeros((len(Z) + 1,) * 2)
    penalty[:-1, :-1] = RBF(GAMMA)(Z, Z)
    weighted = 2 * C * weights[:, None] * K
    solution = np.linalg.solve(penalty + K.T @ weighted, weighted.T @ Y)
    return KernelExpansion(Atoms(RBF(GAMMA), Z), solution[:-1].T, solution[-1])


def test_with_vectors_that_stay_it_is_the_fit_without_the_row():
    X, Y, weights, Z = problem()
    expected = np.empty(Y.shape)
    for i in range(len(X)):
        fewer = weights.copy()
        fewer[i] -= min(weights[i], 1.0)
        expected[i] = ridge(X, Y, fewer, Z)(X[i : i + 1])[0]
    samples = Samples(X, Y, weights)
    expansion = ridge(X, Y, weights, Z)
    found = outputs_without(expansion, samples, SquaredError(), C, moved=False)[1]
    assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def plain(expansion, X, Y, weights, loss):
    """Equations 1 and 2 with the Gaussian's own derivatives, entry by entry."""
    Z, B, g = expansion.vectors, expansion.coefficients, GAMMA
    (N, d), T = Z.shape, len(B)
    n_vectors, p = N * T, N * T + N * d + T
    J, P = np.zeros((len(X), T, p)), np.zeros((p, p))
    K, G = RBF(g)(X, Z), RBF(g)(Z, Z)
    for t in range(T):
        J[:, t, t * N : (t + 1) * N], J[:, t, p - T + t] = K, 1.0
        P[t * N : (t + 1) * N, t * N : (t + 1) * N] = G
        for k in range(N):
            for a in range(d):
                at = n_vectors + k * d + a
                J[:, t, at] = B[t, k] * 2 * g * K[:, k] * (X[:, a] - Z[k, a])
                for m in range(N):
                    one = B[t, k] * 2 * g * G[m, k] * (Z[m, a] - Z[k, a])
                    P[t * N + m, at] = P[at, t * N + m] = one
                    for b in range(d):
                        D = Z[k] - Z[m]
                        both = G[k, m] * (2 * g * (a == b) - 4 * g * g * D[a] * D[b])
                        P[at, n_vectors + m * d + b] += B[t, k] * B[t, m] * both
    F = expansion(X)
    curvature, slope = loss.curvature(Y, F), loss.gradient(Y, F)
    H = P + sum(C * w * j.T @ np.diag(c) @ j for w, j, c in zip(weights, J, curvature, strict=True))
    left = np.empty(Y.shape)
    for i, (j, u) in enumerate(zip(J, np.minimum(weights, 1.0), strict=True)):
        L = C * u * j @ np.linalg.solve(H, j.T)
        left[i] = F[i] + np.linalg.solve(np.eye(T) - L @ np.diag(curvature[i]), L @ slope[i])
    return left


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("loss", [SquaredError(), Huber(0.5)], ids=lambda loss: type(loss).__name__)
def test_it_is_the_step_in_the_tangent_space(n_outputs, loss):
    X, Y, weights, Z = problem(60, n_outputs)
    expansion, samples = ridge(X, Y, weights, Z), Samples(X, Y, weights)
    found = outputs_without(expansion, samples, loss, C)[1]
    assert_allclose(found, plain(expansion, X, Y, weights, loss), rtol=1e-4, atol=1e-5)


def test_coordinates_of_a_metric_are_those_of_the_rows():
    X, Y, weights, Z = problem()
    scale = np.array([0.5, 2.0, 1.0, 1.5])
    plainly = ridge(X * scale, Y, weights, Z * scale)
    mapped = KernelExpansion(
        ProjectedAtoms(RBF(GAMMA), scale, Z * scale), plainly.coefficients, plainly.intercept
    )
    samples, there = Samples(X, Y, weights), Samples(X * scale, Y, weights)
    found = outputs_without(mapped, samples, SquaredError(), C)[1]
    expected = outputs_without(plainly, there, SquaredError(), C)[1]
    assert_allclose(found, expected, rtol=1e-9)


def test_leaving_rows_out_predicts_new_fits():
    """A fit that goes on without the row, where it has come to rest before, lands there."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    options = {"n_components": 4, "gamma": 0.7, "C": 2.0, "tol": 1e-14, "max_iter": 2000}
    model = SparseKernelRegressor(**options, random_state=0).fit(X, y)
    rows = np.arange(0, 60, 8)
    refits = []
    for i in rows:
        again = SparseKernelRegressor(**options, init=model, random_state=0)
        refits.append(again.fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0])
    samples = Samples(X, y[:, None], np.ones(60))
    found = {
        moved: outputs_without(model.expansion_, samples, model.loss_, 2.0, moved=moved)[1][rows, 0]
        for moved in (False, True)
    }
    far = {moved: np.sqrt(np.mean((found[moved] - refits) ** 2)) for moved in found}
    # With the vectors' part it is right to second order, without it to none.
    assert far[True] < 0.1 * far[False]


def test_few_axes_where_there_is_no_room(monkeypatch):
    X, Y, weights, Z = problem()
    expansion, samples = ridge(X, Y, weights, Z), Samples(X, Y, weights)
    monkeypatch.setattr(leave_one_out, "MOST_FUNCTIONS", 5 * 4)
    tangent = leave_one_out._tangent(expansion, X, moved=True)
    assert len(tangent.steps) == 5 * (4 - 2)
    middle = outputs_without(expansion, samples, SquaredError(), C)[1]
    assert np.isfinite(middle).all()


def test_rows_that_are_held_out_are_left_out_of_all():
    X, Y, weights, Z = problem()
    expansion, samples = ridge(X, Y, weights, Z), Samples(X, Y, weights)
    rows = np.arange(3, 40, 5)
    whole = outputs_without(expansion, samples, SquaredError(), C)[1]
    part, found = outputs_without(expansion, samples, SquaredError(), C, samples.take(rows))
    assert_array_equal(part.X, X[rows])
    assert_allclose(found, whole[rows], rtol=1e-12)


def test_some_rows_stand_for_all_of_many():
    X, Y, weights, Z = problem()
    many = Samples(np.tile(X, (60, 1)), np.tile(Y, (60, 1)), np.tile(weights, 60) / 60)
    expansion = ridge(X, Y, weights, Z)
    part, found = outputs_without(expansion, many, SquaredError(), C)
    assert 1000 <= len(part.X) < 2400
    # A row is 1/60 of what it was, and nearly nothing changes without it.
    whole = outputs_without(expansion, Samples(X, Y, weights), SquaredError(), C)[1]
    fitted = expansion(part.X)
    order = [int(np.flatnonzero((X == x).all(axis=1))[0]) for x in part.X]
    small, large = np.abs(found - fitted), np.abs(whole - expansion(X))[order]
    assert np.median(small) < 0.05 * np.median(large)
