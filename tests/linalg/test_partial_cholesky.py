"""The factorisation itself: rows and vectors that are no rows, rank, ties, room."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pursuit.linalg.partial_cholesky import (
    DICTIONARY_RANK,
    REDUCTION_RANK,
    SUBSPACE_RANK,
    PartialCholesky,
    first_best,
)


@pytest.fixture
def functions(rng):
    """Correlated functions with a common direction, the last a combination."""
    D = rng.normal(size=(40, 12)) + 2.0 * rng.normal(size=(40, 1))
    D[:, 11] = D[:, 3] - 0.5 * D[:, 7]
    return D


def state_of(D, rank_tolerance=SUBSPACE_RANK, **options):
    return PartialCholesky((D * D).sum(axis=0), rank_tolerance, **options)


def test_pivots_are_gram_schmidt(functions):
    D, state = functions, state_of(functions)
    chosen = [3, 0, 9, 7, 5]
    for n, g in enumerate(chosen, start=1):
        v = state.pivot(g, D.T @ D[:, g])
        Q, R = np.linalg.qr(D[:, chosen[:n]])
        signs = np.sign(np.diag(R))
        assert_allclose(state.V, (Q * signs).T @ D, atol=1e-11)
        assert_allclose(state.factor, signs[:, None] * R, atol=1e-11)
        assert_allclose(state.factor_column(n), state.factor[:, n - 1])
        outside = D - Q @ (Q.T @ D)
        assert_allclose(state.residual, (outside**2).sum(axis=0), atol=1e-10)
        assert_array_equal(v, state.V[-1])
        assert_array_equal(state.residual[chosen[:n]], np.zeros(n))
    assert state.pivots == chosen
    assert len(state) == 5


def test_deflated_columns_are_what_the_span_leaves(functions):
    D, state = functions, state_of(functions)
    G = D.T @ D
    for g in (2, 8):
        state.pivot(g, G[:, g])
    left = G - G[:, [2, 8]] @ np.linalg.solve(G[np.ix_([2, 8], [2, 8])], G[[2, 8]])
    assert_allclose(state.deflated(G[:, [1, 4]], np.array([1, 4])), left[:, [1, 4]], atol=1e-10)
    other = state_of(D)
    for g in (2, 8):
        other.pivot(g, other.deflated(G[:, g], g), deflated=True)
    assert_allclose(other.V, state.V, atol=1e-12)


def test_vectors_that_are_no_candidates(functions, rng):
    D, Z = functions, rng.normal(size=(40, 4))
    state = state_of(D)
    for n in range(4):
        z = Z[:, n]
        head = np.linalg.solve(state.factor.T, Z[:, :n].T @ z) if n else np.zeros(0)
        state.append(D.T @ z, head, np.sqrt(z @ z - head @ head))
    Q, R = np.linalg.qr(Z)
    signs = np.sign(np.diag(R))
    assert_allclose(state.V, (Q * signs).T @ D, atol=1e-12)
    assert_allclose(state.factor, signs[:, None] * R, atol=1e-12)
    outside = D - Q @ (Q.T @ D)
    assert_allclose(state.residual, (outside**2).sum(axis=0), atol=1e-12)
    assert state.pivots == []
    # A candidate after them is orthogonalised against them.
    v = state.pivot(5, D.T @ D[:, 5])
    assert_allclose(v, outside[:, 5] @ D / np.linalg.norm(outside[:, 5]), atol=1e-11)


@pytest.mark.parametrize("tolerance", [DICTIONARY_RANK, REDUCTION_RANK, SUBSPACE_RANK])
def test_a_candidate_near_the_span_is_a_combination(tolerance):
    """The second keeps a little more, or less, of its squared norm than the tolerance."""
    for share, usable in ((3.0, True), (0.3, False)):
        D = np.array([[1.0, 1.0], [0.0, np.sqrt(share * tolerance)]]) * 1e3
        state = state_of(D, tolerance)
        state.pivot(0, D.T @ D[:, 0])
        assert state.usable.tolist() == [False, usable]


def test_excluded_and_zero_candidates_are_not_usable(functions):
    D = functions.copy()
    D[:, 4] = 0.0
    excluded = np.arange(12) == 6
    state = state_of(D, excluded=excluded)
    assert np.flatnonzero(~state.usable).tolist() == [4, 6]
    state.exclude(np.array([1, 2]))
    state.exclude(np.arange(12) == 0)
    assert np.flatnonzero(~state.usable).tolist() == [0, 1, 2, 4, 6]
    state.pivot(3, D.T @ D[:, 3])
    state.pivot(7, D.T @ D[:, 7])
    assert not state.usable[11]  # a combination of the two
    assert excluded.sum() == 1  # the caller's array is as it was


def test_going_on_from_a_residual(functions):
    D = functions
    G, whole = D.T @ D, state_of(functions)
    for g in (2, 8, 5):
        whole.pivot(g, G[:, g])
    left = G - whole.V[:2].T @ whole.V[:2]
    rest = PartialCholesky(G.diagonal(), SUBSPACE_RANK, residual=left.diagonal())
    assert_allclose(rest.pivot(5, left[:, 5]), whole.V[2], atol=1e-10)


def test_the_diagonal_stays_and_room_doubles(rng):
    D = rng.normal(size=(120, 100))
    G = D.T @ D
    diagonal = G.diagonal().copy()
    state = PartialCholesky(diagonal, SUBSPACE_RANK)
    for g in range(80):
        state.pivot(g, G[:, g])
    assert_array_equal(diagonal, G.diagonal())
    assert_allclose(state.factor.T @ state.factor, G[:80, :80], atol=1e-10)


def test_ties_within_rounding():
    assert first_best(np.array([1.0, 3.0, 3.0 + 1e-12, 2.0])) == 1
    assert first_best(np.array([1.0, 3.0, 3.0 + 1e-8, 2.0])) == 2
    assert first_best(np.array([-np.inf, -5.0, -5.0 + 1e-13])) == 1
    assert first_best(np.zeros(4)) == 0


def test_looking_ahead(functions):
    """Pivots of a panel, in any order and with others between."""
    D = functions
    G, plain, ahead = D.T @ D, state_of(functions), state_of(functions)
    for state in (plain, ahead):
        state.pivot(2, G[:, 2])
        state.pivot(8, G[:, 8])
    panel = np.array([5, 9, 1])
    ahead.look_ahead(panel, G[panel])
    assert ahead.foresees(9) and not ahead.foresees(0)
    for g in (9, 0, 5, 1):
        # A column of the panel is known.
        column = np.full(len(G), np.nan) if g in panel else G[:, g]
        assert_allclose(ahead.pivot(g, column), plain.pivot(g, G[:, g]), atol=1e-10)
    assert_allclose(ahead.V, plain.V, atol=1e-10)
    assert_allclose(ahead.factor, plain.factor, atol=1e-10)
