"""Drafts: the steps of a pursuit among few atoms."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pursuit.greedy.drafts import draft
from pursuit.greedy.gram_rows import SmallGram
from pursuit.greedy.pursuits import PivotedFactor


@pytest.mark.parametrize("rule", ["prefit", "backfit", "residual"])
def test_the_steps_of_a_pursuit_among_these_atoms(rule, rng):
    D = rng.normal(size=(60, 40)) + rng.normal(size=(60, 1))
    Y = rng.normal(size=(60, 2)) + D[:, [3, 30]]
    start = SmallGram(D.T @ D), Y.T @ D, (Y**2).sum(axis=0)
    whole = PivotedFactor(*start, rule=rule)
    whole.extend(5)
    atoms = np.sort(np.append(rng.permutation(40)[:20], whole.pivots[2]))
    atoms = np.unique(atoms)
    ahead = draft(whole.gram, whole.factor, whole.cross, rule, atoms)
    others = np.setdiff1d(np.arange(40), atoms)
    among = PivotedFactor(*start, rule=rule)
    among.extend(5)
    among.factor.exclude(others)
    among.extend(len(ahead))
    assert len(ahead) == min(whole.gram.panel, np.setdiff1d(atoms, whole.pivots[:5]).size)
    assert_array_equal(ahead, among.pivots[5:])
    assert len(whole.pivots) == len(whole.factor) == 5  # the pursuit itself stays where it is


def test_no_atoms_left(rng):
    D = rng.normal(size=(30, 6))
    greedy = PivotedFactor(SmallGram(D.T @ D), np.ones((1, 6)), np.ones(1), supervised=False)
    greedy.extend(6)
    ahead = draft(greedy.gram, greedy.factor, greedy.cross, "prefit", np.arange(6))
    assert ahead.shape == (0,)
