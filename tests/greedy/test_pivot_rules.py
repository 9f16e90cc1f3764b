"""The table of pivot rules: each formula once more, and candidates that may not be chosen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pursuit.greedy.deflation import SELECTIONS
from pursuit.greedy.pivot_rules import DRAWN, PIVOT_RULES, explained, scores_of
from pursuit.linalg.partial_cholesky import SUBSPACE_RANK, PartialCholesky

RULES = "prefit backfit basic residual rpcholesky random rayleigh correlation".split()


def test_rules_are_listed():
    assert set(PIVOT_RULES) == set(RULES)
    assert set(SELECTIONS) <= set(RULES)
    assert set(DRAWN) <= set(SELECTIONS)


@pytest.mark.parametrize("rule", RULES)
def test_scores_are_the_formula_where_usable(rule, rng):
    G = rng.normal(size=(20, 6))
    G = G.T @ G
    excluded = np.arange(6) == 4
    factor = PartialCholesky(G.diagonal(), SUBSPACE_RANK, excluded=excluded)
    factor.pivot(2, G[:, 2])
    nu = G.diagonal() - G[2] ** 2 / G[2, 2]
    known = rng.uniform(1, 2, size=(3, 6) if rule in RULES[:3] else 6)
    squares = (known**2).reshape(-1, 6).sum(axis=0)
    expected = {
        "prefit": squares / np.where(nu > 0, nu, 1.0),
        "backfit": squares / G.diagonal(),
        "basic": squares / G.diagonal(),
        "residual": nu,
        "rpcholesky": known * nu,
        "random": known,
        "rayleigh": known / np.where(nu > 0, nu, 1.0),
        "correlation": -known,
    }[rule]
    scores = scores_of(rule, known, factor)
    usable = [0, 1, 3, 5]
    assert_allclose(scores[usable], expected[usable], rtol=1e-10)
    assert (scores[[2, 4]] == -np.inf).all()


def test_one_target_is_summed_as_several():
    cross = np.array([[1.0, 2.0, 3.0]])
    norms = np.array([1.0, 4.0, 2.0])
    assert_allclose(explained(cross, norms), explained(np.vstack([cross, 0.0 * cross]), norms))
