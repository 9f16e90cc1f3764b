"""Gram matrices out of one matrix of products: as defined, and only where they pay."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

from pursuit.geometry.shared_products import shared_products


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_gram_matrix_is_that_of_its_rows(dtype, rng):
    rows = rng.normal(size=(40, 300)) + 2.0
    found = np.array([rng.choice(np.arange(5, 25), 6, replace=False) for _ in range(60)])
    shift = rows.mean(axis=0)
    shared = shared_products(rows, found, dtype, shift)
    assert shared.products.shape == (20, 20) and shared.products.dtype == dtype
    tables = rows[found[10:13]] - shift
    precision = 50 * np.finfo(dtype).eps
    expected = tables @ tables.transpose(0, 2, 1)
    assert_allclose(shared.grams(slice(10, 13)), expected, rtol=precision, atol=300 * precision)
    plain = shared_products(rows, found, dtype)
    assert_allclose(plain.grams([7])[0, 0, 3], rows[found[7, 0]] @ rows[found[7, 3]], rtol=1e-5)


def test_it_is_not_shared_where_that_costs_more(rng):
    rows = rng.normal(size=(400, 300))
    often = np.tile(np.arange(400).reshape(40, 10), (50, 1))
    assert shared_products(rows, often, np.float64) is not None
    assert shared_products(rows, often[:40], np.float64) is None  # too few points
    assert shared_products(rows[:, :150], often, np.float64) is None  # too few features
    with sklearn.config_context(working_memory=1):
        assert shared_products(rows, often, np.float64) is None  # too little memory
