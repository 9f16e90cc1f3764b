"""The array operations, each against its plain NumPy statement."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pursuit.linalg.factor import (
    add_gram,
    append_columns,
    cholesky,
    gram_zeros,
    mirror,
    solve_right,
    solve_transposed,
    solve_upper,
    squared_norms,
    subtract_outer,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_append_columns(dtype):
    array = np.arange(6, dtype=dtype).reshape(3, 2)
    wide = append_columns(array, (np.array([7, 8, 9]), 1.0))
    assert_array_equal(wide, [[0, 1, 7, 1], [2, 3, 8, 1], [4, 5, 9, 1]])
    assert wide.dtype == dtype
    assert wide.base is not array


def test_squared_norms(rng):
    X = rng.normal(size=(5, 3))
    assert_allclose(squared_norms(X), (X**2).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("size", [1, 3, 511, 512, 1030])
def test_gram_is_accumulated_and_mirrored(size, rng):
    blocks = [rng.normal(size=(n, size)) for n in (4, 1, 7)]
    gram = gram_zeros((size, size))
    assert gram.dtype == np.float64
    for block in blocks:
        before = block.copy()
        add_gram(gram, block)
        assert_array_equal(block, before)
    mirror(gram)
    assert_allclose(gram, sum(block.T @ block for block in blocks), atol=1e-12)
    assert_array_equal(gram, gram.T)


def test_gram_of_a_part_of_a_larger_block(rng):
    """Views with gaps between the rows are read right."""
    wide = rng.normal(size=(6, 20))
    gram = gram_zeros((5, 5))
    add_gram(gram, wide[::2, 3:18:3])
    mirror(gram)
    part = wide[::2, 3:18:3]
    assert_allclose(gram, part.T @ part, atol=1e-13)


def test_subtract_outer(rng):
    gram = np.asfortranarray(rng.normal(size=(7, 7)))
    vector = rng.normal(size=7)
    expected = gram - np.outer(vector, vector)
    subtract_outer(gram, vector)
    assert_allclose(gram, expected, atol=1e-14)


def test_triangular_factor_and_solves(rng):
    A = rng.normal(size=(9, 6))
    gram = A.T @ A
    factor = cholesky(np.tril(gram))  # only the lower triangle is read
    assert_array_equal(np.tril(factor, -1), np.zeros((6, 6)))
    assert_allclose(factor.T @ factor, gram, atol=1e-12)
    right, left = rng.normal(size=(6, 2)), rng.normal(size=(4, 6))
    assert_allclose(factor @ solve_upper(factor, right), right, atol=1e-12)
    assert_allclose(factor.T @ solve_transposed(factor, right), right, atol=1e-12)
    assert_allclose(solve_right(left, factor) @ factor, left, atol=1e-12)
    # The leading block alone, as for a shorter path: a view.
    assert_allclose(factor[:3, :3] @ solve_upper(factor[:3, :3], right[:3]), right[:3], atol=1e-12)


def test_factor_of_what_is_not_definite_is_that_of_the_leading_block(rng):
    A = rng.normal(size=(9, 5))
    gram = A.T @ A
    gram[3, 3] = 0.0
    factor = cholesky(gram)
    assert factor.shape == (3, 3)
    assert_allclose(factor.T @ factor, gram[:3, :3], atol=1e-13)
    assert cholesky(np.array([[-1.0]])).shape == (0, 0)
    assert cholesky(np.empty((0, 0))).shape == (0, 0)


def test_gram_must_be_stored_by_columns(rng):
    """In the other order the sums would go into a copy and be lost."""
    block = rng.normal(size=(4, 3))
    with pytest.raises(ValueError, match="column by column"):
        add_gram(np.zeros((3, 3)), block)
    vector = rng.normal(size=3)
    gram = np.ones((3, 3))
    subtract_outer(gram, vector)
    assert_allclose(gram, 1.0 - np.outer(vector, vector), atol=1e-15)
