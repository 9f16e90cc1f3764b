"""The greedy choice of points: against algorithm 1 on the whole matrix, LAPACK, and chance."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg.lapack import dpstrf
from scipy.stats import chisquare
from sklearn import config_context

from pursuit.greedy.deflation import (
    N_CANDIDATES_95,
    SELECTIONS,
    Deflation,
    choose,
    listed_rule,
    selection_rule,
)
from pursuit.kernels import RBF, FunctionKernel, Kernel, Linear, Polynomial, Precomputed


def seeded(seed=0):
    return np.random.RandomState(seed)


def start(kernel, X, weights=None):
    return Deflation(kernel, X, np.ones(X.shape[0]) if weights is None else weights)


def run(kernel, X, selection, n, weights=None, seed=0, n_candidates=None):
    """Return the deflation after at most n choices."""
    deflation = start(kernel, X, weights)
    choose(deflation, selection_rule(deflation, selection, seeded(seed), n_candidates), n)
    return deflation


def with_duplicates(rng):
    X = rng.normal(size=(300, 70))
    X[200:] = X[:100]
    return X


CASES = {
    "rbf": lambda rng: (RBF(0.15), rng.normal(size=(300, 4))),
    "linear": lambda rng: (Linear(), with_duplicates(rng)),
    "polynomial": lambda rng: (Polynomial(0.2, 3, 1.0), rng.normal(size=(300, 5)) + 2.0),
}
WEIGHTS = {
    "ones": lambda rng: np.ones(300),
    "weights": lambda rng: rng.uniform(0.1, 5.0, size=300),
}


@pytest.fixture(params=CASES)
def problem(request, rng):
    return CASES[request.param](rng)


@pytest.fixture(params=WEIGHTS)
def weights(request, rng):
    return WEIGHTS[request.param](rng)


# Algorithm 1


@pytest.mark.parametrize("megabytes", [1024, 0.5])
def test_the_naive_deflation(problem, weights, megabytes):
    """300 x 300, 50 steps; with half a megabyte K is read in blocks of 54 rows."""
    kernel, X = problem
    K = kernel(X, X)
    with config_context(working_memory=megabytes):
        deflation = start(kernel, X, weights)
        rule = selection_rule(deflation, "rayleigh", seeded())
        choose(deflation, rule, 50)
    assert (rule.matrix.kept is None) == (megabytes < 1)
    naive = reference.deflation(K, weights, 50)
    assert_array_equal(deflation.pivots, naive.picks)
    assert len(deflation.pivots) == 50
    assert_allclose(deflation.residual_sums, naive.traces, rtol=1e-8)
    scores = np.sum(weights[:, None] * naive.matrix**2, axis=0)
    assert_allclose(rule.scores, scores, atol=1e-12 * np.sum(K**2) * weights.max())


def test_all_points_as_candidates_are_algorithm_1(problem, weights):
    kernel, X = problem
    naive = reference.deflation(kernel(X, X), weights, 20)
    deflation = run(kernel, X, "rayleigh", 20, weights, n_candidates=300)
    assert_array_equal(deflation.pivots, naive.picks)
    assert_allclose(deflation.residual_sums, naive.traces, rtol=1e-8)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_factor_is_the_projection(problem, weights, selection):
    """Equation 5, and the squared distances to the span."""
    kernel, X = problem
    K = kernel(X, X)
    deflation = run(kernel, X, selection, 40, weights)
    i, V = deflation.pivots, deflation.V[:40]
    projection = K[:, i] @ np.linalg.solve(K[np.ix_(i, i)], K[i])
    assert_allclose(V.T @ V, projection, atol=1e-8 * K.max())
    residual = np.diag(K) - np.diag(projection)
    assert_allclose(deflation.residual, residual, atol=1e-8 * K.max())
    assert_allclose(deflation.residual_sums[-1], weights @ residual, rtol=1e-7)
    assert_allclose(np.tril(V[:, i], -1), 0.0, atol=1e-8 * np.sqrt(K.max()))
    assert_allclose(deflation.columns(np.array([3, 5])), (K - projection)[:, [3, 5]],
                    atol=1e-8 * K.max())  # fmt: skip
    assert len(set(i)) == 40
    assert_array_equal(deflation.residual[i], np.zeros(40))


def test_more_steps_go_on_where_fewer_ended(problem, weights):
    kernel, X = problem
    deflation = start(kernel, X, weights)
    rule = selection_rule(deflation, "rayleigh", seeded())
    for n in (1, 7, 33, 33, 40):
        choose(deflation, rule, n)
        assert len(deflation.pivots) == len(deflation.residual_sums) == n
    assert_array_equal(deflation.pivots, run(kernel, X, "rayleigh", 40, weights).pivots)


@pytest.mark.parametrize("selection", ["rayleigh", "residual"])
def test_a_weight_of_two_is_the_row_twice(problem, rng, selection):
    kernel, X = problem
    weights = rng.integers(1, 4, size=300)
    repeated = np.repeat(np.arange(300), weights)
    single = run(kernel, X, selection, 20, weights.astype(float))
    several = run(kernel, X[repeated], selection, 20)
    assert_allclose(X[single.pivots], X[repeated[several.pivots]])
    assert_allclose(single.residual_sums, several.residual_sums, rtol=1e-8)


@pytest.mark.parametrize("n_bytes", [1, 8 * 50 * 37, 1 << 30])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_candidates_are_scored_piece_by_piece(problem, weights, form, n_bytes, monkeypatch):
    """Pieces of 8 and of 37 rows, and all rows at once."""
    kernel, X = problem
    deflation = start(kernel, form(X), weights)
    choose(deflation, selection_rule(deflation, "residual", seeded()), 5)
    points = np.arange(3, 153, 3)
    monkeypatch.setattr("pursuit.greedy.deflation.PIECE_BYTES", n_bytes)
    columns, scores = deflation.scored_columns(points)
    expected = deflation.columns(points)
    scale = np.abs(expected).max()
    assert_allclose(columns, expected, atol=1e-12 * scale)
    assert_allclose(scores, weights @ expected**2, rtol=1e-9, atol=1e-12 * scale**2)


# The other rules


def test_residual_is_pivoted_cholesky(problem):
    kernel, X = problem
    _, pivots, _, _ = dpstrf(kernel(X, X), lower=1)
    assert_array_equal(run(kernel, X, "residual", 40).pivots, pivots[:40] - 1)


@pytest.mark.parametrize(("selection", "power"), [("rpcholesky", 1), ("random", 0)])
@pytest.mark.parametrize("first", [[], [4, 9]])
def test_points_are_drawn_in_proportion(selection, power, first, rng):
    """3000 draws of the next point, from one state."""
    X, weights = rng.normal(size=(12, 12)), rng.uniform(0.2, 2.0, size=12)
    X *= np.linspace(0.5, 2.0, 12)[:, None]
    deflation = start(Linear(), X, weights)
    choose(deflation, listed_rule(deflation, np.array(first, dtype=int)), 12)
    rule = selection_rule(deflation, selection, seeded())
    usable = np.flatnonzero(deflation.usable)
    counts = np.bincount([rule(usable)[0] for _ in range(3000)], minlength=12)
    odds = weights * deflation.residual**power
    odds[first] = 0.0
    assert_array_equal(counts[first], np.zeros(len(first)))
    drawn = odds > 0
    expected = 3000 * odds[drawn] / odds.sum()
    assert chisquare(counts[drawn], expected).pvalue > 0.01
    pick, column = rule(np.flatnonzero(deflation.usable))
    assert_array_equal(column, deflation.columns(np.array([pick]))[:, 0])


@pytest.mark.parametrize("selection", ["rpcholesky", "random"])
def test_draws_are_those_of_the_seed(selection, rng):
    X = rng.normal(size=(300, 4))
    picks = [run(RBF(0.3), X, selection, 20, seed=seed).pivots for seed in (0, 0, 1)]
    assert picks[0] == picks[1] != picks[2]


def test_listed_points_in_their_order(rng):
    X = with_duplicates(rng)
    deflation = start(Linear(), X)
    choose(deflation, listed_rule(deflation, np.array([250, 3, 150, 3, 103, 203, 9])), 300)
    # Row 3 comes again, and row 203 is a copy of it.
    assert deflation.pivots == [250, 3, 150, 103, 9]
    choose(deflation, listed_rule(deflation, np.array([9, 7, 8])), 6)
    assert deflation.pivots == [250, 3, 150, 103, 9, 7]


def test_the_best_of_59_is_among_the_best_twentieth(rng):
    X = rng.normal(size=(300, 6))
    kernel, among, best = RBF(0.2), [], []
    for seed in range(5):
        deflation = start(kernel, X)
        rule = selection_rule(deflation, "rayleigh", seeded(seed), N_CANDIDATES_95)
        matrix = kernel(X, X)
        for _ in range(60):
            quotients = reference.rayleigh_quotients(matrix, np.ones(300))
            pick, column = rule(np.flatnonzero(deflation.usable))
            assert_allclose(column, matrix[:, pick], atol=1e-9)
            rank = np.sum(quotients > quotients[pick] * (1 + 1e-9))
            among.append(rank < 15)
            best.append(rank == 0)
            deflation.deflate(pick, column)
            matrix = matrix - np.outer(column, column) / matrix[pick, pick]
            matrix[pick] = matrix[:, pick] = 0.0
    assert np.mean(among) >= 0.9
    assert 0.1 < np.mean(best) < 0.35  # 59 of 300 hold the best of all in one of five draws.


def test_candidates_are_distinct_points_in_row_order(rng, monkeypatch):
    X, looked_at = rng.normal(size=(40, 3)), []
    scored_columns = Deflation.scored_columns

    def record(deflation, indices):
        looked_at.append(indices)
        return scored_columns(deflation, indices)

    monkeypatch.setattr(Deflation, "scored_columns", record)
    deflation = run(RBF(0.5), X, "rayleigh", 15, n_candidates=30)
    for step, candidates in enumerate(looked_at):
        assert len(candidates) == min(30, 40 - step)
        assert (np.diff(candidates) > 0).all()
        assert not set(candidates) & set(deflation.pivots[:step])
    assert len({tuple(candidates) for candidates in looked_at}) == 15


def test_blocks_of_the_kernel_stay_within_the_memory(rng):
    sizes = []

    def product(X, Z):
        sizes.append(8 * len(X) * len(Z))
        return X @ Z.T

    with config_context(working_memory=0.5):
        run(FunctionKernel(product), rng.normal(size=(300, 20)), "rayleigh", 5)
    assert 2**16 < max(sizes) <= 2**17


def test_the_weights_count_among_candidates(rng):
    """All weight near one of two clusters: its points are chosen."""
    X = np.vstack([rng.normal(size=(50, 2)), 20.0 + rng.normal(size=(50, 2))])
    weights = np.repeat([1e-3, 1.0], 50)
    for n_candidates in (None, 40):
        deflation = run(RBF(0.5), X, "rayleigh", 5, weights, n_candidates=n_candidates)
        assert min(deflation.pivots) >= 50


# Ties


@pytest.mark.parametrize(("selection", "n_candidates"), [("rayleigh", None), ("rayleigh", 40),
                                                         ("residual", None)])  # fmt: skip
def test_ties_go_to_the_lowest_row(selection, n_candidates, rng):
    X = rng.normal(size=(40, 3))
    identity = run(RBF(1e9), X, selection, 6, n_candidates=n_candidates)
    assert identity.pivots == [0, 1, 2, 3, 4, 5]


def test_a_tie_up_to_rounding_goes_to_the_lowest_row(rng):
    """The corners of a polygon in any turn: algorithm 1 sees no difference between them."""
    for turn in rng.uniform(0, 6, size=20):
        angles = turn + np.linspace(0, 2 * np.pi, 41)[:-1]
        X = np.column_stack([np.cos(angles), np.sin(angles)])
        for n_candidates in (None, 40):
            assert run(RBF(2.0), X, "rayleigh", 1, n_candidates=n_candidates).pivots == [0]


# Kinds of rows and kernels


@pytest.mark.parametrize("selection", SELECTIONS)
def test_precomputed_kernel(problem, weights, selection):
    kernel, X = problem
    K = kernel(X, X)
    by_rows = run(kernel, X, selection, 20, weights)
    for given in (K, sparse.csr_matrix(K)):
        for megabytes in (1024, 0.5):
            with config_context(working_memory=megabytes):
                by_kernel = run(Precomputed(), given, selection, 20, weights)
            assert_array_equal(by_kernel.pivots, by_rows.pivots)
            assert_allclose(by_kernel.V[:20], by_rows.V[:20], atol=1e-8 * np.sqrt(K.max()))


def test_a_precomputed_kernel_in_single_precision(rng):
    K = Polynomial(0.2, 3, 1.0)(*[rng.normal(size=(300, 5))] * 2).astype(np.float32)
    double = start(Precomputed(), K.astype(np.float64))
    expected = selection_rule(double, "rayleigh", seeded()).scores
    for megabytes in (1024, 0.5):
        with config_context(working_memory=megabytes):
            single = start(Precomputed(), K)
            rule = selection_rule(single, "rayleigh", seeded())
        assert_allclose(rule.scores, expected, rtol=1e-12)
        assert single.diagonal.dtype == single.columns(np.arange(2)).dtype == np.float64


@pytest.mark.parametrize("selection", SELECTIONS)
def test_sparse_rows(problem, selection):
    kernel, X = problem
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = run(kernel, X, selection, 20)
    for megabytes in (1024, 0.5):
        with config_context(working_memory=megabytes):
            given = run(kernel, sparse.csr_matrix(X), selection, 20)
        assert_array_equal(given.pivots, dense.pivots)
        assert_allclose(given.V[:20], dense.V[:20], atol=1e-8 * np.abs(dense.V[:20]).max())


@pytest.mark.parametrize("selection", SELECTIONS)
def test_single_precision_rows_have_kernel_values_in_double(problem, selection):
    kernel, X = problem
    X = X.astype(np.float32)
    double = run(kernel, X.astype(np.float64), selection, 20)
    for given in (X, sparse.csr_matrix(X)):
        for megabytes in (1024, 0.5):
            with config_context(working_memory=megabytes):
                single = run(kernel, given, selection, 20)
            assert_array_equal(single.pivots, double.pivots)
            assert single.V.dtype == np.float64
            assert_allclose(single.V[:20], double.V[:20], atol=1e-7 * np.abs(double.V[:20]).max())


# Spanned points


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("n_candidates", [None, 20])
def test_it_ends_where_all_points_are_spanned(selection, n_candidates, rng):
    if n_candidates and selection != "rayleigh":
        n_candidates = None
    X = rng.normal(size=(60, 7)) * np.array([1e3, 1e2, 10, 1, 1, 1e-1, 1e-1])
    X[5], X[11] = X[7], 0.0
    deflation = run(Linear(), X, selection, 50, n_candidates=n_candidates)
    assert len(deflation.pivots) == 7
    assert 11 not in deflation.pivots
    assert (deflation.residual >= 0).all()
    assert (deflation.residual <= 1e-10 * deflation.diagonal).all()
    assert (np.diff(deflation.residual_sums) <= 0).all()


def test_a_row_is_spanned_below_1e_10_of_its_square(rng):
    """The second row leaves 1e-9 or 1e-11 of its squared length."""
    for share, n in ((1e-9, 2), (1e-11, 1)):
        X = np.array([[1.0, 0.0], [1.0, np.sqrt(share)]])
        assert len(run(Linear(), 1e4 * X, "residual", 2).pivots) == n


@pytest.mark.parametrize("selection", SELECTIONS)
def test_nothing_to_choose(selection):
    deflation = run(Linear(), np.zeros((5, 2)), selection, 3)
    assert deflation.pivots == [] and deflation.residual_sums == []


def test_errors_of_the_kernel():
    X = np.array([[1.0], [2.0], [np.inf], [3.0]])
    with pytest.raises(ValueError, match=r"kernel: K\(x, x\) is not finite at row 2"):
        start(Linear(), X)
    with pytest.raises(ValueError, match=r"kernel: <lambda> gives .* inf in row 0, column 2"):
        start(FunctionKernel(lambda X, Z: X @ Z.T), np.abs(X))
    with pytest.raises(ValueError, match="semidefinite, but .* is -4 at row 1"):
        start(FunctionKernel(lambda X, Z: 5.0 - X @ Z.T), np.array([[1.0], [3.0]]))
    with pytest.raises(ValueError, match="square X, got shape"):
        start(Precomputed(), np.ones((4, 3)))


def test_a_diagonal_below_zero_by_rounding_is_zero():
    K = np.diag([1.0, -1e-16, 2.0])
    deflation = run(Precomputed(), K, "residual", 3)
    assert deflation.pivots == [2, 0]
    assert_array_equal(deflation.diagonal, [1.0, 0.0, 2.0])


def test_a_kernel_of_the_user_that_is_not_finite(rng):
    class Hollow(Kernel):
        def evaluate(self, X, Z):
            K = X @ Z.T
            K[K < 0] = np.nan
            return K

    for selection in ("rayleigh", "residual"):
        with pytest.raises(ValueError, match=r"kernel: .*Hollow.* not finite, nan in row"):
            run(Hollow(), rng.normal(size=(30, 3)), selection, 5)


def test_a_kernel_of_the_user(rng):
    class Squared(Kernel):
        def evaluate(self, X, Z):
            return (X @ Z.T) ** 2

    X = rng.normal(size=(150, 3))
    deflation = run(Squared(), X, "rayleigh", 10)
    assert len(deflation.pivots) == 6  # Products of two of three features.
    assert_allclose(deflation.V[:6].T @ deflation.V[:6], (X @ X.T) ** 2, atol=1e-8)
