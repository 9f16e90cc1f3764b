"""Slopes of sums of kernel values whose weights are anything, not those of an optimum.

At the best coefficients a part of the slope in the vectors cancels between the rows and the
vectors themselves, so that the energy alone would not show it.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pursuit.kernels import RBF, Laplacian
from pursuit.optimize.kernel_blocks import Place, homogeneous, kernel_values, slopes, with_gamma

RNG = np.random.default_rng(0)
U, Z, WEIGHTS = RNG.normal(size=(9, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=(9, 4))


def weighted(kernel, U, Z):
    return float((WEIGHTS * kernel(U, Z)).sum())


def quotients(function, array, h=1e-6):
    found = np.empty(array.shape)
    for index in np.ndindex(array.shape):
        step = np.zeros(array.shape)
        step[index] = h
        found[index] = (function(array + step) - function(array - step)) / (2 * h)
    return found


@pytest.mark.parametrize("kernel", [RBF(0.7), Laplacian(0.7)], ids=str)
def test_slopes_of_any_weighted_sum(kernel):
    H = homogeneous(U)
    K = kernel_values(kernel, H, Z)
    found = slopes(Place(kernel, Z), WEIGHTS.copy(), K, H, wanted=(True, True))
    assert_allclose(found.Z, quotients(lambda Z: weighted(kernel, U, Z), Z), atol=1e-7)
    assert_allclose(found.U, quotients(lambda U: weighted(kernel, U, Z), U), atol=1e-7)
    wider, narrower = (weighted(with_gamma(kernel, np.exp(h)), U, Z) for h in (1e-6, -1e-6))
    assert_allclose(found.log_gamma, (wider - narrower) / 2e-6, atol=1e-7)
