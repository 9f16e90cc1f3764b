"""The SVM on given vectors: LIBSVM's optimum, and the energy's slope."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from scipy import sparse
from sklearn.svm import SVC

from pursuit.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    CosinePolynomial,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from pursuit.optimize.svm import solve_margin
from pursuit.optimize.svm_on_vectors import energy, features, solve_on_vectors, whitened

KERNELS = {
    "rbf": RBF(0.4),
    "polynomial": Polynomial(0.3, 3, 1.5),
    "laplacian": Laplacian(0.3),
    "cosine_polynomial": CosinePolynomial(3, 1.2),
}


def primal(phi, y, bounds, weights, bias):
    """Eq. 11 on the whitened features."""
    return weights @ weights / 2 + bounds @ np.maximum(0, 1 - y * (phi @ weights + bias))


def dual(phi, y, alpha):
    """Eq. 32."""
    w = phi.T @ (alpha * y)
    return alpha.sum() - w @ w / 2


def check_optimal(solution, phi, y, bounds, gap=1e-6):
    """Bounds and balance of alpha, and the objective between its two sides."""
    assert_array_less(-1e-300, solution.alpha)
    assert_array_less(solution.alpha, bounds + 1e-300 + 1e-12 * bounds)
    assert abs(solution.alpha @ y) <= 3e-6 * max(bounds.sum(), 1e-300)
    above = primal(phi, y, bounds, solution.weights, solution.bias)
    assert_allclose(solution.objective, above, rtol=1e-10)
    assert solution.gap <= gap
    assert_allclose(dual(phi, y, solution.alpha), above, rtol=2 * gap + 1e-5)


def problem(seed, n=80, d=3, n_vectors=12):
    """Rows of two overlapping classes, weights, and vectors that are no rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=n) > 0.1, 1.0, -1.0)
    return X, y, rng.uniform(0.2, 3.0, size=n), rng.normal(size=(n_vectors, d))


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_is_that_of_libsvm(seed):
    X, y, weights, Z = problem(seed, 60 + 40 * seed)
    C = [0.05, 1.0, 10.0, 3.0, 50.0][seed]
    kernel = RBF(0.7)
    phi = features(kernel(X, Z), whitened(kernel, Z))
    solution = solve_margin(phi, y, C * weights)
    check_optimal(solution, phi, y, C * weights)
    svc = SVC(kernel="linear", C=C, tol=1e-6).fit(phi, y, sample_weight=weights)
    theirs = np.zeros(len(y))
    theirs[svc.support_] = np.abs(svc.dual_coef_[0])
    assert_allclose(solution.objective, dual(phi, y, theirs), rtol=1e-5)
    assert_allclose(
        solution.objective, primal(phi, y, C * weights, svc.coef_[0], svc.intercept_[0]), rtol=1e-5
    )


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("shape", [(7, 20), (200, 5), (30, 1)])
def test_the_gap_is_small_whatever_the_bounds(shape, C, rng):
    phi = rng.normal(size=shape)
    y = np.where(phi[:, 0] + rng.normal(size=len(phi)) > 0.3, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    bounds = C * rng.uniform(0.3, 2.0, size=len(phi))
    solution = solve_margin(phi, y, bounds)
    check_optimal(solution, phi, y, bounds)
    assert solution.n_iter <= 45


@pytest.mark.parametrize("C", [1e-2, 10.0, 1e4])
def test_awkward_features(C, rng):
    """Duplicates, zero and repeated columns, one row of a class, scales 1e-4 to 1e4."""
    phi = rng.normal(size=(50, 6)) * 10.0 ** np.array([-4, 4, 0, 0, 0, 0])
    phi[:, 3] = 0.0
    phi[:, 4] = phi[:, 5]
    phi[10:30] = phi[10]
    y = np.full(50, -1.0)
    y[3] = 1.0
    check_optimal(solve_margin(phi, y, np.full(50, C)), phi, y, np.full(50, C))
    y[10:30:2] = 1.0
    check_optimal(solve_margin(phi, y, np.full(50, C)), phi, y, np.full(50, C))


def test_no_features_at_all():
    y = np.array([1.0, 1.0, -1.0])
    for phi in (np.zeros((3, 2)), np.empty((3, 0))):
        solution = solve_margin(phi, y, np.full(3, 2.0))
        assert_allclose(solution.objective, 4.0, rtol=1e-6)
        assert_allclose(solution.bias, 1.0, atol=1e-3)


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_one_class_alone(label, rng):
    phi, y = rng.normal(size=(5, 2)), np.full(5, label)
    y[0], bounds = -label, np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    solution = solve_margin(phi, y, bounds)
    assert_array_equal(solution.alpha, np.zeros(5))
    assert_array_equal(solution.weights, np.zeros(2))
    assert (solution.bias, solution.objective, solution.gap) == (label, 0.0, 0.0)


def test_a_bound_counts_rows(rng):
    """Bound 2 C is the row twice, 0 the row removed."""
    phi, y = rng.normal(size=(40, 4)), np.where(rng.uniform(size=40) < 0.5, 1.0, -1.0)
    counts = rng.integers(0, 3, size=40)
    whole = solve_margin(phi, y, 1.5 * counts, tol=1e-10)
    repeated = solve_margin(
        np.repeat(phi, counts, axis=0), np.repeat(y, counts), np.full(counts.sum(), 1.5), tol=1e-10
    )
    assert_allclose(whole.objective, repeated.objective, rtol=1e-9)
    assert_allclose(whole.weights, repeated.weights, rtol=1e-4, atol=1e-6)
    assert_array_equal(whole.alpha[counts == 0], 0.0)


def test_rows_outside_the_margin_count_as_exact_zeros():
    """And those inside it are at their bounds."""
    X, y, weights, Z = problem(2, 300)
    phi = features(RBF(0.7)(X, Z), whitened(RBF(0.7), Z))
    solution = solve_margin(phi, y, 2.0 * weights, tol=1e-9)
    margins = y * (phi @ solution.weights + solution.bias)
    assert_array_equal(solution.alpha[margins > 1.01], 0.0)
    inside = margins < 0.99
    assert_allclose(solution.alpha[inside], 2.0 * weights[inside], rtol=1e-5)
    assert inside.sum() > 50 and (margins > 1.01).sum() > 50


def test_two_rows_by_hand():
    """The margin is the distance: w = 2 / 4 along the line, b in the middle."""
    phi, y = np.array([[-1.0], [3.0]]), np.array([-1.0, 1.0])
    solution = solve_margin(phi, y, np.full(2, 100.0), tol=1e-10)
    assert_allclose(solution.weights, [0.5], rtol=1e-6)
    assert_allclose(solution.bias, -0.5, rtol=1e-5)
    assert_allclose(solution.alpha, [0.125, 0.125], rtol=1e-6)
    small = solve_margin(phi, y, np.full(2, 0.05), tol=1e-10)
    assert_allclose(small.alpha, [0.05, 0.05], rtol=1e-6)
    assert_allclose(small.weights, [0.2], rtol=1e-6)


def test_a_start_changes_nothing(rng):
    """Also one that leaves out rows that matter, or a whole class."""
    X, y, weights, Z = problem(1, 800)
    kernel, bounds = RBF(0.7), 5.0 * weights
    phi = features(kernel(X, Z), whitened(kernel, Z))
    cold = solve_margin(phi, y, bounds, tol=1e-9)
    moved = features(kernel(X, Z + 0.1), whitened(kernel, Z + 0.1))
    near = solve_margin(moved, y, bounds, tol=1e-9)
    wrong = near._replace(weights=-1e3 * near.weights, alpha=np.zeros(len(y)))
    unlike = near._replace(weights=0.0 * near.weights, bias=9.0, alpha=np.zeros(len(y)))
    tight = near._replace(weights=1e3 * cold.weights, bias=1e3 * cold.bias, alpha=np.zeros(800))
    for start in (near, wrong, unlike, tight):
        warm = solve_margin(phi, y, bounds, tol=1e-9, start=start)
        assert_allclose(warm.objective, cold.objective, rtol=1e-8)
        assert_allclose(warm.weights, cold.weights, rtol=1e-4, atol=1e-5)
        check_optimal(warm, phi, y, bounds)


# Whitened features.


@pytest.mark.parametrize("name", KERNELS)
def test_whitened_features_have_the_kernel_of_equation_28(name):
    kernel = KERNELS[name]
    X, _, _, Z = problem(3)
    phi = features(kernel(X, Z), whitened(kernel, Z))
    expected = kernel(X, Z) @ np.linalg.solve(kernel(Z, Z), kernel(Z, X))
    assert_allclose(phi @ phi.T, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    "kernel", [RBF(0.5), Linear(), Cosine(), Polynomial(1.0, 2, 0.0), Laplacian(1.0)]
)
def test_vectors_that_coincide_or_vanish(kernel, rng):
    Z = np.vstack([rng.normal(size=(4, 2)), np.zeros((2, 2))])
    Z[2] = Z[1]
    X, y, weights, _ = problem(2, d=2)
    solution = solve_on_vectors(kernel, Z, X, y[:, None], weights)
    assert np.isfinite(solution.beta).all() and solution.gap <= 1e-6
    distinct = solve_on_vectors(kernel, Z[[0, 1, 3]], X, y[:, None], weights)
    if isinstance(kernel, RBF | Laplacian):
        distinct = solve_on_vectors(kernel, Z[[0, 1, 3, 4]], X, y[:, None], weights)
    if kernel != Polynomial(1.0, 2, 0.0):
        assert_allclose(solution.objective, distinct.objective, rtol=1e-5)


def test_an_indefinite_kernel_is_named():
    with pytest.raises(ValueError, match=r"kernel: Sigmoid\(.*is not positive semidefinite"):
        whitened(Sigmoid(1.0, -2.0), np.array([[0.1, 0.0], [1.0, 1.0], [3.0, -1.0]]))


def test_the_solution_on_vectors_is_that_of_the_full_machine():
    """With all rows as vectors eq. 16-18 are the SVM itself."""
    X, y, weights, _ = problem(4, 50)
    Y = np.stack([y, -y], axis=1)
    solution = solve_on_vectors(RBF(0.7), X, X, Y, 2.0 * weights, tol=1e-9)
    values = RBF(0.7)(X, X) @ solution.beta + solution.intercept
    svc = SVC(C=2.0, gamma=0.7, tol=1e-8).fit(X, y, sample_weight=weights)
    assert_allclose(values[:, 0], svc.decision_function(X), atol=2e-4)
    assert_allclose(values[:, 1], -values[:, 0], atol=2e-4)
    one, other = (output.objective for output in solution.outputs)
    assert_allclose([one, solution.objective], [other, one + other], rtol=1e-8)


def test_beta_is_equation_33():
    X, y, weights, Z = problem(0, n_vectors=6)
    kernel = RBF(0.3)
    solution = solve_on_vectors(kernel, Z, X, y[:, None], weights, tol=1e-12)
    a = solution.signed(y[:, None])
    assert_allclose(a[:, 0], solution.outputs[0].alpha * y)
    expected = np.linalg.solve(kernel(Z, Z), kernel(Z, X) @ a)
    assert_allclose(solution.beta, expected, rtol=1e-3)


def test_rows_in_blocks_of_any_form(rng):
    X, y, weights, Z = problem(5)
    X = np.where(rng.uniform(size=X.shape) < 0.5, X, 0.0)
    whole = solve_on_vectors(RBF(0.7), Z, X, y[:, None], weights)
    A = whole.signed(y[:, None])
    J, gradient, beta = energy(RBF(0.7), Z, X, A)
    for form in (np.asarray, sparse.csr_matrix):
        with sklearn.config_context(working_memory=1e-3):
            other = solve_on_vectors(RBF(0.7), Z, form(X), y[:, None], weights)
            again = energy(RBF(0.7), Z, form(X), A)
        assert_allclose(other.beta, whole.beta, rtol=1e-4, atol=1e-6)
        assert_allclose(again[0], J, rtol=1e-8)
        assert_allclose(again[1], gradient, rtol=1e-6, atol=1e-8)
        assert_allclose(again[2], beta, rtol=1e-6, atol=1e-8)


# The energy and its slope.


def finite_differences(function, Z, step=1e-5):
    slopes = np.empty(Z.shape)
    for entry in np.ndindex(Z.shape):
        shift = np.zeros(Z.shape)
        shift[entry] = step
        slopes[entry] = (function(Z + shift) - function(Z - shift)) / (2 * step)
    return slopes


def plain_energy(kernel, Z, X, A):
    """1/2 u' K_z^{-1} u, with the diagonal of K_z a little larger."""
    K = kernel(Z, Z)
    u = kernel(Z, X) @ A
    K[np.diag_indices(len(K))] *= 1 + 1e-8
    return 0.5 * np.sum(u * np.linalg.solve(K, u))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_energy_and_its_slope(name, n_outputs, rng):
    kernel = KERNELS[name]
    X, _, weights, Z = problem(6, 30, n_vectors=5)
    A = weights[:, None] * rng.normal(size=(30, n_outputs))
    A[::4] = 0.0
    J, gradient, beta = energy(kernel, Z, X, A)
    assert_allclose(J, plain_energy(kernel, Z, X, A), rtol=1e-8)
    expected = finite_differences(lambda Z: plain_energy(kernel, Z, X, A), Z)
    assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    K = kernel(Z, Z)
    assert_allclose(beta, np.linalg.solve(K, kernel(Z, X) @ A), rtol=1e-5, atol=1e-6)


def test_energy_is_the_squared_length_where_the_vectors_span_all(rng):
    """And it is stationary there: no vector can add anything."""
    X, A = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    J, gradient, beta = energy(RBF(0.5), X, X, A)
    assert_allclose(J, 0.5 * (A.T @ RBF(0.5)(X, X) @ A).item(), rtol=1e-6)
    assert_allclose(beta, A, rtol=1e-5, atol=1e-6)
    assert_allclose(gradient, np.zeros((6, 2)), atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_slope_of_the_optimum_is_that_of_lemma_1(name):
    """W(Z) solved anew at each shifted Z; alpha moves, and need not be followed."""
    kernel = KERNELS[name]
    X, y, weights, Z = problem(7, 40, n_vectors=4)
    Y, bounds = np.stack([y, np.where(X[:, 2] > 0, 1.0, -1.0)], axis=1), 0.7 * weights

    def optimum(Z):
        return solve_on_vectors(kernel, Z, X, Y, bounds, tol=1e-13)

    solution = optimum(Z)
    J, gradient, beta = energy(kernel, Z, X, solution.signed(Y))
    total = sum(output.alpha.sum() for output in solution.outputs)
    assert_allclose(total - J, solution.objective, rtol=1e-5)
    expected = finite_differences(lambda Z: optimum(Z).objective, Z, 1e-4)
    assert_allclose(-gradient, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
    assert_allclose(beta, solution.beta, rtol=1e-3, atol=1e-5)


def test_kernels_without_a_slope_are_named(rng):
    X = rng.uniform(size=(5, 2))
    with pytest.raises(ValueError, match=r"kernel: ChiSquared\(.*has no derivative"):
        energy(ChiSquared(1.0), X[:2], X, np.ones((5, 1)))
