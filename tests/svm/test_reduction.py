"""The reduced set method: against dense algebra, a grid, and expansions that are no good."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from scipy import sparse
from sklearn.svm import SVC, SVR

from pursuit.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    CosinePolynomial,
    FunctionKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from pursuit.optimize.svm_on_vectors import energy
from pursuit.svm import reduction
from pursuit.svm.reduction import distinct, function_products, reduce_expansion

KERNELS = {
    "rbf": RBF(0.15),
    "polynomial": Polynomial(0.2, 3, 1.0),
    "homogeneous": Polynomial(0.2, 3, 0.0),
    "laplacian": Laplacian(0.1),
    "cosine_polynomial": CosinePolynomial(3, 1.0),
}


@pytest.fixture
def expansion(rng):
    return rng.normal(size=(60, 4)) + [0, 5, 0, -2], rng.normal(size=(60, 2))


def squared_errors(kernel, X, A, Z, B):
    """|sum_i a_i phi(x_i) - sum_j b_j phi(z_j)|^2 of each column, written out (eq. 4)."""
    both, signed = np.vstack([X, Z]), np.vstack([A, -B])
    return np.diag(signed.T @ kernel(both, both) @ signed)


def best_coefficients(kernel, X, A, Z):
    return np.linalg.lstsq(kernel(Z, Z), kernel(Z, X) @ A, rcond=None)[0]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_errors_and_coefficients_are_those_of_the_definition(kernel, expansion):
    X, A = expansion
    small = reduce_expansion(kernel, X, A, 6)
    assert small.vectors.shape == (6, 4)
    assert small.stop_reason == "n_components"
    errors = squared_errors(kernel, X, A, small.vectors, small.coefficients)
    norms = np.diag(A.T @ kernel(X, X) @ A)
    assert_allclose(small.relative_errors, np.sqrt(errors / norms), rtol=1e-4)
    assert_allclose(small.relative_error, np.sqrt(errors.sum() / norms.sum()), rtol=1e-4)
    assert_allclose(small.squared_norm, norms.sum())
    best = best_coefficients(kernel, X, A, small.vectors)
    assert_allclose(
        errors,
        squared_errors(kernel, X, A, small.vectors, best),
        rtol=1e-4,
        atol=1e-7 * norms.max(),
    )


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_moving_all_vectors_lowers_the_error_of_the_start(kernel, expansion):
    start = reduce_expansion(kernel, *expansion, 6, max_iter=0)
    small = reduce_expansion(kernel, *expansion, 6)
    assert start.n_iter == 0 < small.n_iter
    assert small.relative_error < start.relative_error


def test_the_joint_search_ends_at_a_maximum_of_the_energy(expansion, monkeypatch):
    monkeypatch.setattr(reduction, "LITTLE_LEFT", 1e-10)
    X, A = expansion
    kernel = KERNELS["rbf"]
    start = reduce_expansion(kernel, X, A, 3, max_iter=0)
    small = reduce_expansion(kernel, X, A, 3, max_iter=1000)
    J, slope, beta = energy(kernel, small.vectors, X, A)
    assert_allclose(slope, 0.0, atol=1e-4 * np.abs(energy(kernel, start.vectors, X, A)[1]).max())
    assert_allclose(beta, small.coefficients, rtol=1e-6)


def test_more_steps_allowed_are_more_patience(rng):
    X, A = rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    short, long = (reduce_expansion(RBF(0.3), X, A, 8, max_iter=n) for n in (100, 3000))
    assert short.n_iter < 100, "it ends for want of progress"
    assert long.n_iter > short.n_iter
    # By how much depends on which of many minima rounding leads to.
    assert long.relative_error < short.relative_error


@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(0.3, 2, 1.0), Laplacian(0.7)])
@pytest.mark.parametrize("max_iter", [0, 100])
def test_one_vector_on_a_line_is_the_best_on_a_grid(kernel, max_iter, rng):
    X, A = rng.uniform(-3, 3, size=(25, 1)), rng.normal(size=(25, 2))
    grid = np.linspace(-8, 8, 16001)[:, None]
    gains = np.square(kernel(grid, X) @ A).sum(axis=1) / kernel.diagonal(grid)
    total = np.trace(A.T @ kernel(X, X) @ A)
    best = np.sqrt(1 - gains.max() / total)
    small = reduce_expansion(kernel, X, A, 1, max_iter=max_iter)
    assert_allclose(small.relative_error, best, rtol=2e-3 if max_iter else 2e-2)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_without_moves_the_rows_that_gain_most_are_taken_in_turn(kernel, expansion, monkeypatch):
    monkeypatch.setattr(reduction._Start, "_search", lambda self, z, beta: None)
    X, A = expansion
    chosen = []
    for _ in range(5):
        errors = [
            squared_errors(kernel, X, A, Z, best_coefficients(kernel, X, A, Z)).sum()
            for Z in (X[[*chosen, i]] for i in range(len(X)))
        ]
        chosen.append(int(np.argmin(errors)))
    small = reduce_expansion(kernel, X, A, 5, max_iter=0)
    assert_allclose(small.vectors, X[chosen])


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_the_fixed_point_is_a_maximum_of_the_residual(expansion, storage, monkeypatch):
    monkeypatch.setattr(reduction, "MOST_MOVES", 2000)
    monkeypatch.setattr(reduction, "SMALL_GAIN", 1e-14)
    X, A = expansion
    Z, beta = X[:3] + 0.1, A[:3] * 2

    def height(z):
        k = np.exp(-0.15 * np.square(X - z).sum(axis=1))
        own = np.exp(-0.15 * np.square(Z - z).sum(axis=1))
        return np.square(k @ A - own @ beta).sum()

    found = reduction._GaussianRows(storage(X), 0.15).fixed_point(X[7], A, Z, beta)
    assert height(found) > height(X[7])
    steps = 1e-4 * np.eye(4)
    slope = [(height(found + step) - height(found - step)) / 2e-4 for step in steps]
    assert_allclose(slope, 0.0, atol=1e-3 * height(found))


def test_a_search_that_collapses_is_tried_again_from_the_next_row(expansion, monkeypatch):
    starts, kernel = [], KERNELS["rbf"]

    def search(self, z, beta):
        starts.append(z)
        return z + 0.01 if len(starts) == 2 else None

    monkeypatch.setattr(reduction._Start, "_search", search)
    X, A = expansion
    small = reduce_expansion(kernel, X, A, 1, max_iter=0)
    gains = np.square(kernel(X, X) @ A).sum(axis=1)
    assert_allclose(starts, X[np.argsort(-gains)[:2]])
    assert_allclose(small.vectors[0], starts[0])  # which gains more than the second one moved


def test_signed_weights_may_throw_the_fixed_point_away():
    rows = reduction._GaussianRows(np.array([[0.0], [1.0]]), 1.0)
    A, none = np.array([[1.0], [-0.99]]), np.zeros((0, 1))
    assert rows.fixed_point(np.array([0.51]), A, none, none) is None


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_repeated_vectors_are_one(expansion, storage, rng):
    X, A = expansion
    X[::3, 1] = 0.0
    copies = rng.integers(0, 8, size=60)
    repeated = X[copies]
    repeated[5, 1] = -0.0 if repeated[5, 1] == 0 else repeated[5, 1]
    small = reduce_expansion(RBF(0.3), storage(repeated), A, 8)
    assert small.vectors.shape == (8, 4)
    assert (small.relative_error, small.stop_reason) == (0.0, "exact")
    assert_array_equal(small.relative_errors, [0.0, 0.0])
    assert sparse.issparse(small.vectors) == sparse.issparse(storage(X))
    values = RBF(0.3)(X, small.vectors) @ small.coefficients
    assert_allclose(values, RBF(0.3)(X, repeated) @ A, atol=1e-12)


def test_distinct_keeps_the_order_and_drops_what_cancels():
    X = np.array([[3.0, -0.0], [1.0, 0.0], [3.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    A = np.array([[1.0, 0.0], [5.0, 2.0], [1.0, 1.0], [0.0, 0.0], [-5.0, -2.0]])
    for storage in (np.asarray, sparse.csr_matrix):
        rows, sums = distinct(storage(X), A)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        assert_array_equal(rows, [[3.0, 0.0]])
        assert_array_equal(sums, [[2.0, 1.0]])


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_more_vectors_leave_less(kernel, expansion):
    errors = [reduce_expansion(kernel, *expansion, n, tol=0).relative_error for n in (1, 4, 12, 59)]
    assert_array_less(np.diff(errors), 0.0)
    assert errors[-1] < 0.1
    assert reduce_expansion(kernel, *expansion, 60).relative_error == 0.0


def nearly_spanned_by_two(kind):
    """The support vectors and coefficients of a machine that two vectors nearly span."""
    rng = np.random.default_rng(0)
    if kind == "pairs":
        X = np.repeat([[0.0], [10.0]], 10, axis=0) + 0.01 * rng.normal(size=(20, 2))
        return X, np.repeat([[1.0], [-1.0]], 10, axis=0) * rng.uniform(0.5, 1.0, size=(20, 1))
    X = 0.05 * rng.normal(size=(80, 2)) + np.repeat([[0.0], [3.0]], 40, axis=0)
    machine = SVC(gamma=0.01).fit(X, np.repeat([0, 1], 40))
    if kind == "regression":
        X = rng.uniform(-3, 3, size=(80, 1))
        machine = SVR(gamma=0.01, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    return X[machine.support_], machine.dual_coef_.T


@pytest.mark.parametrize("kind", ["pairs", "clusters", "regression"])
def test_the_error_never_rises_with_the_budget(kind):
    X, A = nearly_spanned_by_two(kind)
    sets = [reduce_expansion(RBF(0.01), X, A, n, tol=0.0) for n in range(1, 11)]
    errors = [small.relative_error for small in sets]
    assert (np.diff(errors) <= 0.0).all()
    for n, small in enumerate(sets, start=1):
        assert small.stop_reason == ("n_components" if len(small.vectors) == n else "span")
        left = squared_errors(RBF(0.01), X, A, small.vectors, small.coefficients).sum()
        norm = squared_errors(RBF(0.01), X, A, X, 0 * A).sum()
        assert_allclose(np.sqrt(max(left, 0.0) / norm), small.relative_error, rtol=0.1, atol=1e-6)
    for tol in (1e-2, 1e-3):
        smallest = 1 + int(np.argmax(np.array(errors) <= tol))
        small = reduce_expansion(RBF(0.01), X, A, 10, tol=tol)
        assert (len(small.vectors), small.stop_reason) == (smallest, "tol")
        assert small.relative_error <= tol


def test_fewer_vectors_do_where_they_reach_the_tolerance(expansion):
    small = reduce_expansion(RBF(0.02), *expansion, 50, tol=0.05)
    assert small.stop_reason == "tol"
    assert 3 < len(small.vectors) < 40
    assert small.relative_error <= 0.05
    one_less = reduce_expansion(RBF(0.02), *expansion, len(small.vectors) - 1, max_iter=0)
    assert one_less.relative_error > 0.05


@pytest.mark.parametrize("kernel", [Linear(), Cosine()])
def test_no_more_vectors_than_span_the_functions(kernel, rng):
    small = reduce_expansion(
        kernel, rng.normal(size=(30, 3)), rng.normal(size=(30, 5)), 10, tol=0.0
    )
    assert len(small.vectors) == 3
    assert small.stop_reason == "span"
    assert small.relative_error < 1e-6


def test_equal_functions_count_by_their_relative_errors(expansion):
    X, A = expansion
    small = reduce_expansion(RBF(0.15), X, A, 6, equal=True)
    units = np.array([1e6, 1e-3])
    scaled = reduce_expansion(RBF(0.15), X, A * units, 6, equal=True)
    assert_allclose(scaled.vectors, small.vectors, rtol=1e-3, atol=1e-3)
    assert_allclose(scaled.coefficients / units, small.coefficients, rtol=1e-2, atol=1e-2)
    assert_allclose(small.relative_error, np.sqrt(np.mean(small.relative_errors**2)))
    unequal = reduce_expansion(RBF(0.15), X, A * units, 6)
    assert unequal.relative_errors[0] < scaled.relative_errors[0]


def test_the_storage_changes_rounding_only(expansion):
    X, A = expansion
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = reduce_expansion(RBF(0.15), X, A, 5, max_iter=3)
    few = reduce_expansion(RBF(0.15), sparse.csr_matrix(X), A, 5, max_iter=3)
    assert_allclose(few.vectors, dense.vectors, atol=1e-4)
    single = reduce_expansion(RBF(0.15), X.astype(np.float32), A, 5, max_iter=3)
    assert single.vectors.dtype == np.float64
    assert_allclose(single.relative_error, dense.relative_error, rtol=1e-4)
    with sklearn.config_context(working_memory=0.01):
        blocked = reduce_expansion(RBF(0.15), X, A, 5, max_iter=3)
        assert_allclose(function_products(RBF(0.15), X, A), RBF(0.15)(X, X) @ A)
    assert_allclose(blocked.vectors, dense.vectors, rtol=1e-6)


def test_functions_that_vanish_need_no_vector(expansion):
    X, A = expansion
    none = reduce_expansion(RBF(0.3), X, 0 * A, 5)
    assert (none.vectors.shape, none.coefficients.shape) == ((0, 4), (0, 2))
    assert none.relative_error == 0.0
    zero_rows = reduce_expansion(Linear(), 0 * X, A, 5)
    assert (zero_rows.vectors.shape, zero_rows.relative_error) == ((0, 4), 0.0)
    one = reduce_expansion(RBF(0.3), X, A * [1.0, 0.0], 5)
    assert_array_equal(one.coefficients[:, 1], 0.0)
    assert_array_equal(one.relative_errors[1], 0.0)
    assert_allclose(one.relative_errors[0], one.relative_error)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_awkward_rows_give_finite_answers(kernel, rng):
    X = np.vstack([np.zeros((2, 3)), 1e-9 * rng.normal(size=(9, 3)), 1e4 * rng.normal(size=(9, 3))])
    small = reduce_expansion(kernel, X, rng.normal(size=(20, 1)), 6)
    assert np.isfinite(small.vectors).all() and np.isfinite(small.coefficients).all()
    assert 0.0 <= small.relative_error <= 1.0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Sigmoid(), "sigmoid kernel is not positive semidefinite"),
        (ChiSquared(), "kernel with a derivative"),
        (Precomputed(), "kernel with a derivative"),
        (FunctionKernel(np.dot), "kernel with a derivative"),
        (Polynomial(1.0, 2, -3.0), "not positive semidefinite"),
    ],
)
def test_a_kernel_that_cannot_serve_is_refused(kernel, message, expansion):
    with pytest.raises(ValueError, match=f"kernel: .*{message}"):
        reduce_expansion(kernel, *expansion, 5)
