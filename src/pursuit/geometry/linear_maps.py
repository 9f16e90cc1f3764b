"""Linear maps u = A'x of rows: A of shape (d, r), or (d,) for a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pursuit._arrays import alike, namespace_of, promoted
from pursuit._typing import Array

__all__ = ["full_rank", "image", "preimage", "root_of"]

# A matrix is symmetric and positive semidefinite up to this share of its largest entry.
SYMMETRY = 1e-10


def image(X: Any, A: Array | None) -> Any:
    """A'x of each row; under a diagonal CSR rows stay CSR.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, d)
        Rows.
    A : ndarray of shape (d,) or (d, r), or None
        The map; None: the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.linear_maps import image
    >>> image(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))
    array([[3., 8.]])
    """
    if A is None:
        return X
    if (xp := namespace_of(X)) is not None:
        X, A = promoted(xp, X, alike(A, X))
        return X @ A if A.ndim == 2 else X * A
    if A.ndim == 2:
        return np.asarray(X @ A)
    if not sparse.issparse(X):
        return np.asarray(X * A)
    return type(X)((X.data * A[X.indices], X.indices, X.indptr), shape=X.shape)


def preimage(U: Array, A: Array | None) -> Array:
    """The shortest x with A'x = u for each row u, where A has full column rank."""
    if A is None:
        return U
    return U / A if A.ndim == 1 else U @ np.linalg.pinv(A)


def full_rank(A: Array) -> Array:
    """B of full column rank with B B' = A A', so that lengths under it are the same."""
    axes, lengths, _ = np.linalg.svd(A, full_matrices=False)
    kept = lengths > max(A.shape) * np.finfo(np.float64).eps * lengths.max(initial=0.0)
    return np.asarray(axes[:, kept] * lengths[kept])


def root_of(matrix: Array) -> Array:
    """A of full column rank with A A' = M; its diagonal where M is one.

    Raises
    ------
    ValueError
        If M is not symmetric or not positive semidefinite.
    """
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be square, got shape {matrix.shape}")
    largest, diagonal = np.abs(matrix).max(), matrix.diagonal()
    if np.abs(matrix - matrix.T).max() > SYMMETRY * largest:
        raise ValueError("matrix must be symmetric")
    if (diagonal > 0.0).all() and np.count_nonzero(matrix) == len(diagonal):
        return np.sqrt(diagonal)
    values, axes = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if values[0] < -SYMMETRY * largest:
        raise ValueError(f"matrix must be positive semidefinite, has eigenvalue {values[0]:.3g}")
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    return np.asarray(axes[:, kept] * np.sqrt(values[kept]))
