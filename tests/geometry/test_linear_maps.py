"""Linear maps of rows, back, and roots of matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from pursuit.geometry.linear_maps import full_rank, image, preimage, root_of


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_a_diagonal_and_a_matrix(form, rng):
    X, A = rng.integers(-1, 2, size=(6, 3)).astype(float), rng.normal(size=(3, 2))
    scaled = image(form(X), A[:, 0])
    assert sparse.issparse(scaled) == (form is not np.asarray)
    assert_array_equal(scaled.toarray() if sparse.issparse(scaled) else scaled, X * A[:, 0])
    assert_allclose(image(form(X), A), X @ A, rtol=1e-14)
    assert image(X, None) is X


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_there_and_back(shape, rng):
    A, U = rng.normal(size=shape), rng.normal(size=(5, shape[-1]))
    assert_allclose(image(preimage(U, A), A), U, rtol=1e-10)
    assert preimage(U, None) is U


def test_columns_that_others_determine_are_left_out(rng):
    A = rng.normal(size=(4, 2)) @ rng.normal(size=(2, 3))
    B = full_rank(A)
    assert B.shape == (4, 2)
    assert_allclose(B @ B.T, A @ A.T, rtol=1e-12, atol=1e-12)


def test_roots(rng):
    A = rng.normal(size=(4, 2))
    root = root_of(A @ A.T)
    assert root.shape == (4, 2)
    assert_allclose(root @ root.T, A @ A.T, rtol=1e-10, atol=1e-12)
    assert_array_equal(root_of(np.diag([4.0, 9.0])), [2.0, 3.0])
    assert root_of(np.diag([4.0, 0.0])).shape == (2, 1)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "matrix must be square"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "matrix must be symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "matrix must be positive semidefinite"),
        (np.diag([1.0, -1.0]), "matrix must be positive semidefinite"),
    ],
)
def test_what_has_no_root(matrix, message):
    with pytest.raises(ValueError, match=message):
        root_of(matrix)
