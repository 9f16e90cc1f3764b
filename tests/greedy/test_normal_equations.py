"""Normal equations: the sums, the centring, and rows of G on either route."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from problems import equations_of
from scipy import sparse

from pursuit._validation import Samples
from pursuit.greedy import normal_equations as module
from pursuit.greedy.normal_equations import WeightedValues, choose_route, gather, normal_equations
from pursuit.kernels import RBF

N_ROWS, N_ATOMS = 50, 30
PANEL = module.PANEL


@pytest.fixture
def samples(rng):
    """Rows with weights and two targets far from zero."""
    X = rng.normal(size=(N_ROWS, 3))
    return Samples(X, X[:, :2] * 3.0 + [100.0, -7.0], rng.uniform(0.1, 4.0, size=N_ROWS))


def dictionary(X):
    """Thirty atoms far from mean zero; the fifth is constant."""
    centres = np.linspace(-2, 2, 3 * N_ATOMS).reshape(N_ATOMS, 3)
    values = RBF(0.4)(X, centres) + np.linspace(0, 5, N_ATOMS)
    values[:, 5] = 1.0 / 3.0
    return values


def expected_equations(samples, centred, alpha):
    """G, B, energy and the means, written out."""
    D, Y, w = dictionary(samples.X), samples.Y, samples.weights
    mean_d = np.average(D, axis=0, weights=w) if centred else np.zeros(N_ATOMS)
    mean_y = np.average(Y, axis=0, weights=w) if centred else np.zeros(2)
    D, Y = D - mean_d, Y - mean_y
    G = D.T @ (w[:, None] * D) + alpha * np.eye(N_ATOMS)
    return G, Y.T @ (w[:, None] * D), (w[:, None] * Y**2).sum(axis=0), mean_d, mean_y


def equations(samples, complete, centred=True, alpha=0.0):
    return equations_of(
        dictionary, samples, N_ATOMS, centred=centred, alpha=alpha, complete=complete
    )


def rows_of(gram):
    return np.array([gram.row(k).copy() for k in range(len(gram.diagonal))])


def assert_equations(found, expected):
    G, B, energy, mean_d, mean_y = expected
    varies = np.arange(N_ATOMS) != 5
    assert_allclose(rows_of(found.gram)[varies][:, varies], G[varies][:, varies], atol=1e-11)
    assert_allclose(found.gram.diagonal[varies], G.diagonal()[varies], rtol=1e-11)
    assert_allclose(found.cross, B, atol=1e-10)
    assert_allclose(found.target_sq_norm, energy, rtol=1e-12)
    assert_allclose(found.atom_mean, mean_d, rtol=1e-13)
    assert_allclose(found.target_mean, mean_y, rtol=1e-13)


@pytest.mark.parametrize("block_rows", [1, 7, N_ROWS])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("complete", [True, False])
def test_equations_are_the_sums_written_out(complete, centred, alpha, block_rows, samples):
    memory = block_rows * 8.0 * N_ATOMS / 0.25 / 2**20
    with sklearn.config_context(working_memory=memory):
        found = equations(samples, complete, centred, alpha)
        assert_equations(found, expected_equations(samples, centred, alpha))
    assert (found.weight, found.alpha) == (pytest.approx(samples.weights.sum()), alpha)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_a_constant_atom_is_told_by_a_zero(complete, alpha, samples):
    """With an intercept it adds nothing, ridge or not; without one it counts."""
    centred = equations(samples, complete, True, alpha).gram.diagonal
    assert np.flatnonzero(centred == 0).tolist() == [5]
    plain = equations(samples, complete, False, alpha).gram.diagonal
    assert_allclose(plain[5], samples.weights.sum() / 9.0 + alpha)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("centred", [True, False])
def test_moments_without_some_rows_are_those_of_the_others(centred, complete, samples, rng):
    left_out = rng.permutation(N_ROWS)[:17]
    inside = np.setdiff1d(np.arange(N_ROWS), left_out)
    total = WeightedValues(dictionary, samples, N_ATOMS, centred=centred)

    def part(rows):
        return WeightedValues(
            dictionary, samples.take(rows), N_ATOMS, centred=centred, origin=total.origin
        )

    moments = gather(total, complete=complete).without(gather(part(left_out), complete=complete))
    found = normal_equations(moments, part(inside), alpha=0.2)
    assert_equations(found, expected_equations(samples.take(inside), centred, 0.2))


@pytest.mark.parametrize("centred", [True, False])
def test_a_copy_of_moments_keeps_them_from_being_overwritten(centred, samples):
    values = WeightedValues(dictionary, samples, N_ATOMS, centred=centred)
    moments = gather(values, complete=True)
    for _ in range(2):
        found = normal_equations(moments.copy(), values, alpha=0.3)
        assert_equations(found, expected_equations(samples, centred, 0.3))


def test_far_means_cost_no_digits(samples):
    """The sums are taken about a point near the means."""

    def far(X):
        return dictionary(X) + 1e6

    shifted = samples._replace(Y=samples.Y + 1e6)
    near = equations(samples, True)
    found = equations_of(far, shifted, N_ATOMS)
    assert_allclose(found.cross, near.cross, atol=1e-6)
    assert_allclose(rows_of(found.gram), rows_of(near.gram), atol=1e-6)
    assert_allclose(found.target_sq_norm, near.target_sq_norm, rtol=1e-7)


def test_csr_rows_and_single_precision(samples):
    def functions(X):
        return dictionary(X.toarray() if sparse.issparse(X) else X.astype(np.float64))

    for X, tolerance in ((sparse.csr_matrix(samples.X), 1e-11), (samples.X.astype("f4"), 1e-5)):
        given = samples._replace(X=X)
        found = equations_of(functions, given, N_ATOMS)
        G = expected_equations(samples, True, 0.0)[0]
        assert_allclose(rows_of(found.gram), G, atol=tolerance * np.abs(G).max())
        assert found.cross.dtype == found.gram.diagonal.dtype == np.float64


@pytest.mark.parametrize("centred", [True, False])
def test_values_that_are_not_finite_name_the_row(centred, samples):
    def broken(X):
        values = dictionary(X)
        values[np.isclose(X[:, 0], samples.X[23, 0]), 7] = np.inf
        return values

    # 7 rows a block: the row number is that of the caller, not of the block.
    with (
        sklearn.config_context(working_memory=7 * 8.0 * N_ATOMS / 0.25 / 2**20),
        pytest.raises(ValueError, match="kernel: the value.*candidate 7 is not finite; rescale"),
        np.errstate(invalid="ignore"),
    ):
        equations_of(broken, samples, N_ATOMS, centred=centred)
    if not centred:
        with pytest.raises(ValueError, match="at training row 23, candidate 7"):
            equations_of(broken, samples, N_ATOMS, centred=False, complete=False)


def test_samples_take_rows(samples):
    few = samples.take(np.array([4, 2]))
    assert_array_equal(few.X, samples.X[[4, 2]])
    assert_array_equal(few.Y, samples.Y[[4, 2]])
    assert_array_equal(few.weights, samples.weights[[4, 2]])


@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_threads_with_sums_of_their_own(alpha, samples, monkeypatch):
    """Where sums are small, each thread has its own; a row that is no number is still named."""
    shares = []
    monkeypatch.setattr(module.blocks, "n_threads", lambda: 3)
    monkeypatch.setattr(
        WeightedValues,
        "panels",
        lambda self: [slice(k, min(k + 7, N_ROWS)) for k in range(0, N_ROWS, 7)],
    )
    sums = module._atom_sums
    monkeypatch.setattr(
        module,
        "_atom_sums",
        lambda values, panels, **how: shares.append(panels) or sums(values, panels, **how),
    )
    found = equations(samples, True, alpha=alpha)
    assert sorted(len(panels) for panels in shares) == [2, 3, 3]
    assert_equations(found, expected_equations(samples, True, alpha))

    def broken(X):
        values = dictionary(X)
        values[X[:, 0] == samples.X[40, 0], 3] = np.nan
        return values

    with pytest.raises(ValueError, match="40"):
        equations_of(broken, samples, N_ATOMS, centred=False, alpha=alpha, complete=True)


# Rows on request.


def lazy_problem(rng, n_atoms):
    values = rng.normal(size=(20, n_atoms))
    passes = []

    class Blocks:
        kept = False

        def __iter__(self):
            passes.append(1)
            return iter([(slice(0, 8), values[:8]), (slice(8, 20), values[8:])])

    diagonal = (values**2).sum(axis=0) + 0.5
    gram = module.LazyGram(Blocks(), None, diagonal, 0.5)
    return gram, values.T @ values + 0.5 * np.eye(n_atoms), passes


def test_a_panel_brings_the_rows_named_first(rng):
    gram, G, passes = lazy_problem(rng, 3 * PANEL)
    likely = rng.permutation(3 * PANEL)
    gram.prefetch(likely)
    for k in likely[:PANEL].tolist():
        assert gram.has(k)
        assert_allclose(gram.row(k), G[k], atol=1e-12)
    assert len(passes) == 1 == gram.has(likely[0]) - gram.has(likely[PANEL])
    # Rows at hand do not take places in the next panel.
    gram.prefetch(likely)
    for k in likely[PANEL : 2 * PANEL].tolist():
        assert_allclose(gram.row(k), G[k], atol=1e-12)
    assert len(passes) == 2


def test_a_row_that_was_not_foreseen(rng):
    gram, G, passes = lazy_problem(rng, 40)
    gram.prefetch(np.arange(5))
    assert len(passes) == 1
    assert_allclose(gram.row(39), G[39], atol=1e-12)
    assert len(passes) == 2
    assert gram.has(39) and not gram.has(38)


def test_a_small_budget_forgets_the_oldest_rows(rng):
    n_atoms = 6 * PANEL
    gram, G, passes = lazy_problem(rng, n_atoms)
    budget = 2.0 * 8 * n_atoms * (2.5 * PANEL) / 2**20
    with sklearn.config_context(working_memory=budget):
        for k in range(n_atoms):
            if not gram.has(k):
                gram.prefetch(np.arange(k, n_atoms))
            assert_allclose(gram.row(k), G[k], atol=1e-12)
            assert len(gram._rows) <= 3 * PANEL
        assert len(passes) == n_atoms / PANEL
        gram.row(n_atoms - 1)
        assert len(passes) == n_atoms / PANEL  # the newest is still there
        assert_allclose(gram.row(0), G[0], atol=1e-12)
        assert len(passes) == n_atoms / PANEL + 1  # the oldest was forgotten


def test_tiny_budget_still_gives_right_rows(rng):
    gram, G, _ = lazy_problem(rng, 100)
    with sklearn.config_context(working_memory=1e-6):
        for k in (3, 99, 3, 0):
            gram.prefetch(np.roll(np.arange(100), -k))
            assert_allclose(gram.row(k), G[k], atol=1e-12)
            assert len(gram._rows) <= PANEL


@pytest.mark.parametrize("centred", [True, False])
def test_values_are_kept_where_they_fit(centred, samples):
    calls = []

    def counted(X):
        calls.append(len(X))
        return dictionary(X)

    def evaluated(memory, keep):
        with sklearn.config_context(working_memory=memory):
            values = WeightedValues(counted, samples, N_ATOMS, centred=centred, keep=keep)
            calls.clear()
            parts = [[(rows, block.copy()) for rows, block in values] for _ in range(3)]
        for blocks in parts:
            covered = np.concatenate([np.arange(N_ROWS)[rows] for rows, _ in blocks])
            assert_array_equal(covered, np.arange(N_ROWS))
            stacked = np.vstack([block for _, block in blocks])
            assert_allclose(stacked, np.vstack([block for _, block in parts[0]]), rtol=1e-12)
        return sum(calls)

    small = N_ROWS * N_ATOMS * 8 / 2 / 2**20
    assert evaluated(1024, keep=True) == N_ROWS
    assert evaluated(1024, keep=False) == 3 * N_ROWS
    assert evaluated(small, keep=True) == 3 * N_ROWS


@pytest.mark.parametrize("block_rows", [7, N_ROWS])
@pytest.mark.parametrize("centred", [True, False])
def test_block_of_some_atoms(centred, block_rows, samples):
    atoms = np.array([7, 2, 19])
    G = expected_equations(samples, centred, 0.4)[0]
    with sklearn.config_context(working_memory=block_rows * 8.0 * N_ATOMS / 0.25 / 2**20):
        gram = equations(samples, False, centred, 0.4).gram
        part = gram.among(atoms)
        expected = G[np.ix_(atoms, atoms)]
        assert_allclose([part.row(k) for k in range(3)], expected, rtol=1e-5, atol=1e-5)
        assert_allclose(gram.block(atoms), expected, atol=1e-11)
        assert not gram.has(7)
        gram.row(7)
        assert gram.has(7)
        assert not gram.has(2)


# The choice of a route.


def test_route_follows_memory_and_arithmetic():
    shape = (10_000, 20)
    assert choose_route(shape, n_atoms=200, n_steps=100) == "gram"
    assert choose_route(shape, n_atoms=9_000, n_steps=5) == "direct"
    # Measured on 32561 rows: 7 s against 15 s.
    assert choose_route((32_561, 108), n_atoms=2500, n_steps=100) == "gram"
    assert choose_route((20_000, 20), n_atoms=11_000, n_steps=50) == "direct"
    assert choose_route(shape, n_atoms=20_000, n_steps=20_000) == "direct"  # 3.2 GB
    with sklearn.config_context(working_memory=0.1):
        assert choose_route(shape, n_atoms=200, n_steps=100) == "direct"


@pytest.mark.parametrize("keep", [True, False])
def test_lazy_block_is_a_part_of_the_complete_matrix(rng, keep):
    """G[atoms, atoms] from a pass over these atoms alone, intercept and ridge included."""
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    samples = module.Samples(X, Y, rng.uniform(0.5, 2.0, size=40))
    centres = rng.normal(size=(12, 3))

    def functions(rows):
        return rows @ centres.T + 5.0

    complete, lazy = (
        module.normal_equations(module.gather(values, complete=whole), values, alpha=0.3).gram
        for whole in (True, False)
        for values in [module.WeightedValues(functions, samples, 12, centred=True, keep=keep)]
    )
    atoms = np.array([7, 2, 9])
    parts = [gram.among(atoms) for gram in (lazy, complete)]
    rows = [[part.row(k) for k in range(3)] for part in parts]
    assert_allclose(lazy.block(atoms), complete.block(atoms), rtol=1e-10)
    assert_allclose(rows[0], rows[1], rtol=1e-5)  # for drafts, in single precision
    assert_allclose(parts[0].diagonal, parts[1].diagonal, rtol=1e-5)
    assert_allclose(np.diagonal(rows[0]), parts[0].diagonal, rtol=1e-10)
    assert not lazy.has(3) and complete.has(3)
    lazy.row(3)
    assert lazy.has(3)
