"""The coefficients of every prefix and their leave-one-out, on bases written out by hand."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal

from pursuit.expansion.leave_one_out import leave_one_out
from pursuit.expansion.path import BasisPath, CoefficientPath, RefittedPath, staged_values


def orthogonal_problem(rng, n_rows=25, n_atoms=6, n_outputs=2, alpha=0.0, intercept=True):
    """D, targets, weights, and the path of the atoms in their order."""
    D = rng.normal(size=(n_rows, n_atoms)) + rng.normal(size=(n_rows, 1)) + 4.0
    Y = rng.normal(size=(n_rows, n_outputs)) + 10.0
    weights = rng.uniform(0.2, 3.0, size=n_rows)
    mean_d = np.average(D, axis=0, weights=weights) if intercept else np.zeros(n_atoms)
    mean_y = np.average(Y, axis=0, weights=weights) if intercept else np.zeros(n_outputs)
    root = np.sqrt(weights)[:, None]
    E, F = root * (D - mean_d), root * (Y - mean_y)
    R = np.linalg.cholesky(E.T @ E + alpha * np.eye(n_atoms)).T
    basis = BasisPath(np.arange(n_atoms), R, np.linalg.solve(R.T, E.T @ F), np.arange(n_outputs))
    order = np.zeros(n_atoms, dtype=int)
    return D, Y, weights, CoefficientPath((basis,), order, mean_d, mean_y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_coefficients_of_every_prefix_are_least_squares(alpha, intercept, rng):
    D, Y, weights, path = orthogonal_problem(rng, alpha=alpha, intercept=intercept)
    assert path.n_steps == 6
    for n in range(1, 7):
        coefficients, b = path.coefficients(n)
        expected = reference.fit(D, Y, weights, range(n), alpha, intercept)
        assert_allclose(coefficients, expected.coefficients, rtol=1e-9, atol=1e-11)
        assert_allclose(b, expected.intercept, rtol=1e-9)
        assert path.n_vectors(n) == n
        short = path.first(n)
        assert short.n_steps == n
        assert_allclose(short.coefficients(n)[0], coefficients, rtol=1e-14)
    coefficients, b = path.coefficients(0)
    assert coefficients.shape == (2, 0)
    assert_array_equal(b, path.target_mean)


def test_staged_values_are_the_predictions_of_every_prefix(rng):
    D, _, _, path = orthogonal_problem(rng)
    stages = [outputs.copy() for outputs in staged_values(path, D[:7])]
    assert len(stages) == 6
    for n, outputs in enumerate(stages, start=1):
        coefficients, b = path.coefficients(n)
        assert_allclose(outputs, D[:7, :n] @ coefficients.T + b, rtol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_leave_one_out_equals_refits(alpha, intercept, rng):
    """Weights above 1 lose one unit, weights below 1 all."""
    D, Y, weights, path = orthogonal_problem(rng, alpha=alpha, intercept=intercept)
    total, once = weights.sum() if intercept else 0.0, np.minimum(weights, 1.0)
    stages = [s.values().copy() for s in leave_one_out(path, D, Y, once, total)]
    assert len(stages) == 6
    for n, outputs in enumerate(stages, start=1):
        expected = reference.leave_one_out(D, Y, weights, range(n), alpha, intercept)
        assert_allclose(outputs, expected, rtol=1e-8)
    # Some rows, some steps.
    few = np.array([3, 20])
    chosen = leave_one_out(path, D[few], Y[few], once[few], total, np.array([2, 5]))
    for held_out, n in zip(chosen, (2, 5), strict=True):
        assert_allclose(held_out.values(), stages[n - 1][few], rtol=1e-12)


def test_a_row_that_is_explained_by_itself_alone_gets_the_mean(rng):
    """An atom that only one row has: without that row nothing is known of it."""
    D = np.zeros((8, 1))
    D[2] = 1.0
    Y = rng.normal(size=(8, 1))
    basis = BasisPath(np.array([0]), np.array([[1.0]]), Y[[2]], np.array([0]))
    path = CoefficientPath((basis,), np.array([0]), np.zeros(1), np.array([7.0]))
    (held_out,) = leave_one_out(path, D, Y - 7.0 + 7.0, np.ones(8), 0.0)
    assert held_out.values()[2] == 7.0
    assert np.isfinite(held_out.values()).all()


@pytest.fixture
def two_bases(rng):
    """One basis an output; atoms 0 and 2 are shared; the steps alternate, the second ends."""
    R = [np.triu(rng.uniform(0.5, 2.0, size=(3, 3))), np.triu(rng.uniform(0.5, 2.0, size=(2, 2)))]
    z = [rng.normal(size=(3, 1)), rng.normal(size=(2, 1))]
    picks = [np.array([0, 2, 3]), np.array([1, 2])]
    bases = tuple(
        BasisPath(*parts, np.array([t])) for t, parts in enumerate(zip(picks, R, z, strict=True))
    )
    order = np.array([0, 1, 0, 1, 0])
    return CoefficientPath(bases, order, rng.normal(size=4), np.array([1.0, -2.0]))


def test_one_basis_an_output(two_bases):
    path = two_bases
    assert [path.lengths(n) for n in range(6)] == [[0, 0], [1, 0], [1, 1], [2, 1], [2, 2], [3, 2]]
    assert [path.n_vectors(n) for n in range(6)] == [0, 1, 2, 3, 3, 4]
    values = np.arange(8.0).reshape(2, 4)
    stages = [outputs.copy() for outputs in staged_values(path, values)]
    for n in range(1, 6):
        coefficients, b = path.coefficients(n)
        assert coefficients.shape == (2, path.n_vectors(n))
        for t, m in enumerate(path.lengths(n)):
            basis = path.bases[t]
            alpha = np.linalg.solve(basis.factor[:m, :m], basis.targets[:m, 0])
            expected = np.zeros(path.n_vectors(n))
            expected[basis.picks[:m]] = alpha
            assert_allclose(coefficients[t], expected, rtol=1e-12)
            mean = path.atom_mean[: len(expected)]
            assert_allclose(b[t], path.target_mean[t] - expected @ mean, rtol=1e-12)
        outputs = values[:, : path.n_vectors(n)] @ coefficients.T + b
        assert_allclose(stages[n - 1], outputs, rtol=1e-11)
        short = path.first(n)
        assert_allclose(short.coefficients(n)[0], coefficients, rtol=1e-13)
        assert short.lengths(n) == path.lengths(n)


def test_an_atom_that_comes_back_adds_up():
    """Basic pursuit: R is diagonal and holds the lengths of the atoms, z the scaled steps."""
    lengths = np.array([2.0, 5.0, 2.0])
    basis = BasisPath(
        np.array([0, 1, 0]), np.diag(lengths), np.array([[4.0], [5.0], [-1.0]]), np.array([0])
    )
    path = CoefficientPath((basis,), np.zeros(3, dtype=int), np.zeros(2), np.zeros(1))
    assert_allclose(path.coefficients(1)[0], [[2.0]])
    assert_allclose(path.coefficients(2)[0], [[2.0, 1.0]])
    assert_allclose(path.coefficients(3)[0], [[1.5, 1.0]])
    *_, last = staged_values(path, np.array([[1.0, 1.0]]))
    assert_allclose(last, [[2.5]])


# Paths under other losses than squared error.


@pytest.fixture
def refitted():
    """Seven steps, re-fits after 2, 5 and 7; the numbers of each re-fit in its own hundreds."""
    refits = np.array([2, 5, 7])
    fitted = np.concatenate([100.0 * k + np.arange(k) for k in refits])
    lines = np.arange(1.0, 8.0)
    lines[refits - 1] = 0.0
    levels = np.array([20.0, 50.0, 70.0])
    both = (lines, fitted, levels)
    lines, fitted, levels = (np.column_stack([part, -2.0 * part]) for part in both)
    return RefittedPath(np.arange(7), lines, refits, fitted, levels, np.array([0, 1]))


# After each number of steps, for the first output.
COEFFICIENTS = [
    [],
    [1],
    [200, 201],
    [200, 201, 3],
    [200, 201, 3, 4],
    [500, 501, 502, 503, 504],
    [500, 501, 502, 503, 504, 6],
    [700, 701, 702, 703, 704, 705, 706],
]
LEVELS = [9, 9, 20, 20, 20, 50, 50, 70]


def test_coefficients_are_those_of_the_last_refit_and_what_came_after(refitted):
    start = np.array([9.0, -18.0])
    for n, (coefficients, level) in enumerate(zip(COEFFICIENTS, LEVELS, strict=True)):
        expected = np.column_stack([coefficients, np.multiply(coefficients, -2.0)])
        for path in (refitted, refitted.first(n), refitted.first(n).first(n)):
            assert_array_equal(path.coefficients(n), expected)
            assert_array_equal(path.level(n, start), [level, -2.0 * level])
        assert len(refitted.first(n).picks) == len(refitted.first(n).lines) == n
        assert len(refitted.first(n).fitted) == refitted.first(n).refits.sum()
        assert len(refitted.first(n).levels) == len(refitted.first(n).refits)


def test_stages_of_refitted_paths_are_the_predictions_of_every_prefix(refitted, rng):
    """Two bases: an output of its own that never re-fits takes an atom twice."""
    basic = RefittedPath(
        np.array([7, 2, 7]),
        np.array([[1.0], [10.0], [100.0]]),
        np.empty(0, dtype=int),
        np.empty((0, 1)),
        np.empty((0, 1)),
        np.array([2]),
    )
    order = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, -1, 1])
    mean, start = rng.normal(size=8), np.array([9.0, -18.0, 0.5])
    path = CoefficientPath((refitted, basic), order, mean, start)
    values = rng.normal(size=(4, 8))
    stages = [outputs.copy() for outputs in staged_values(path, values)]
    assert len(stages) == 11
    for n, outputs in enumerate(stages, start=1):
        coefficients, b = path.coefficients(n)
        assert_allclose(outputs, values[:, : path.n_vectors(n)] @ coefficients.T + b, rtol=1e-9)
        m = min(n, 7)
        expected = np.zeros((3, path.n_vectors(n)))
        expected[0, :m] = COEFFICIENTS[m]
        expected[1, :m] = np.multiply(COEFFICIENTS[m], -2.0)
        for pick, step in zip((7, 2, 7), (1.0, 10.0, 100.0), strict=False):
            if path.lengths(n)[1] > {1.0: 0, 10.0: 1, 100.0: 2}[step]:
                expected[2, pick] += step
        assert_array_equal(coefficients, expected)
        level = np.array([LEVELS[m], -2.0 * LEVELS[m], 0.5])
        assert_allclose(b, level - expected @ mean[: expected.shape[1]], rtol=1e-12)
        short = path.first(n)
        assert_array_equal(short.coefficients(n)[0], coefficients)
        assert_array_equal(short.coefficients(n)[1], b)
    assert_array_equal(path.coefficients(0)[1], start)
