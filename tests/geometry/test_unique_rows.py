"""Which rows are equal, dense and sparse."""

import numpy as np
from scipy import sparse

from pursuit.geometry.unique_rows import distinct_rows, equal_rows, row_order

ROWS = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [3.0, 0.0], [0.0, 2.0]])


def check(rows):
    first, place = equal_rows(rows)
    np.testing.assert_array_equal(first, [0, 1, 3])
    np.testing.assert_array_equal(place, [0, 1, 0, 2, 1])


def test_equal_rows_are_found_whatever_the_sign_of_zero():
    check(ROWS)
    check(np.asfortranarray(ROWS))


def test_sparse_rows_are_equal_by_their_values_and_not_by_how_they_are_stored():
    check(sparse.csr_matrix(ROWS))
    # 1 as 0.25 + 0.75 in one row, and a stored zero in another.
    data = np.array([0.25, 0.75, 2.0, 1.0, 0.0, 3.0, 2.0])
    indices, indptr = np.array([0, 0, 1, 0, 1, 0, 1]), np.array([0, 2, 3, 5, 6, 7])
    check(sparse.csr_matrix((data, indices, indptr), shape=(5, 2)))


def test_no_rows():
    first, place = equal_rows(np.zeros((0, 3)))
    assert len(first) == len(place) == 0


def test_rows_in_lexicographic_order_dense_and_sparse(rng):
    X = rng.integers(-3, 4, (300, 4)) * 10.0 ** rng.integers(-200, 200, (300, 4))
    X[rng.random(X.shape) < 0.5] = 0.0
    X[::7] *= -0.0
    X[5] = X[9]
    expected = sorted(range(300), key=lambda i: tuple(X[i]))
    np.testing.assert_array_equal(row_order(X), expected)
    np.testing.assert_array_equal(row_order(sparse.csr_array(X)), expected)
    different = np.array(sorted({tuple(row) for row in (X + 0.0).tolist()}))
    np.testing.assert_array_equal(distinct_rows(X).X, different)
    np.testing.assert_array_equal(distinct_rows(sparse.csr_array(X)).X.toarray(), different)
