"""Which prefix of a path to keep."""

import numpy as np
import pytest

from pursuit.greedy.stopping import Decision, below_threshold, best_prefix


@pytest.mark.parametrize(
    ("losses", "patience", "tol", "expected"),
    [
        ([], None, 0.0, Decision(0, 0, False)),
        ([5.0], None, 0.0, Decision(1, 1, False)),
        ([5.0], 1, 0.0, Decision(1, 1, False)),
        # The shortest of equal ones.
        ([3.0, 1.0, 2.0, 1.0], None, 0.0, Decision(2, 4, False)),
        ([1.0, 1.0, 1.0], None, 0.0, Decision(1, 3, False)),
        # Patience: so many steps after the best and no more.
        ([3.0, 1.0, 2.0, 0.5], 1, 0.0, Decision(2, 3, True)),
        ([3.0, 1.0, 2.0, 0.5], 2, 0.0, Decision(4, 4, False)),
        ([3.0, 1.0, 2.0, 2.0, 0.5], 2, 0.0, Decision(2, 4, True)),
        ([1.0, 2.0, 3.0], 2, 0.0, Decision(1, 3, True)),
        # Small improvements do not count, and are measured from the best that did.
        ([3.0, 2.9, 2.8, 2.7], None, 0.15, Decision(3, 4, False)),
        ([3.0, 2.95, 2.9, 2.0], 2, 0.15, Decision(1, 3, True)),
        ([3.0, 2.0], None, 1.0, Decision(1, 2, False)),
        # What is not a number is never better.
        ([np.nan, 2.0], None, 0.0, Decision(1, 2, False)),
        ([2.0, np.nan, 1.0], None, 0.0, Decision(3, 3, False)),
        ([np.inf, 2.0], None, 0.0, Decision(2, 2, False)),
    ],
)
def test_best_prefix(losses, patience, tol, expected):
    assert best_prefix(np.array(losses), patience, tol) == expected


@pytest.mark.parametrize(
    ("losses", "threshold", "expected"),
    [
        ([3.0, 1.0, 0.5], 1.0, 2),
        ([3.0, 1.0, 0.5], 3.0, 1),
        ([3.0, 1.0, 2.0], 1.5, 2),
        ([3.0, 1.0, 0.5], 0.4, None),
        ([], 1.0, None),
    ],
)
def test_below_threshold(losses, threshold, expected):
    assert below_threshold(np.array(losses), threshold) == expected
