"""Local covariances: eq. 13.3 by the definition, and what copies, weights and few rows do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pursuit.local_covariance import local_covariances


def plain(X, i, k):
    """C_i of eq. 13.3, as printed."""
    order = np.argsort(((X - X[i]) ** 2).sum(axis=1), kind="stable")
    neighbours = [j for j in order if j != i][:k]
    return sum(np.outer(X[j] - X[i], X[j] - X[i]) for j in neighbours) / k


@pytest.mark.parametrize("k", [1, 3, 8])
def test_leading_eigenpairs_of_the_definition(k, rng):
    X = rng.normal(size=(30, 5)) * [3.0, 1.0, 0.5, 2.0, 1.0] + 7.0
    rows = np.array([4, 0, 29, 4])
    found, _ = local_covariances(X, rows, k, 3)
    for axes, variances, i in zip(found.axes, found.variances, rows, strict=True):
        values, vectors = np.linalg.eigh(plain(X, i, k))
        d = min(k, 3)
        assert_allclose(variances, values[::-1][:d], rtol=1e-10)
        for axis, vector in zip(axes, vectors.T[::-1], strict=False):
            assert_allclose(abs(axis @ vector), 1.0, rtol=1e-10)
