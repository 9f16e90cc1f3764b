"""Slopes of a fitted function, and which features they say it depends on.

With f_t(x) = b_t + sum_k a_tk d_k(x) and shares w_i of the rows,

    grad f_t(x_i) = sum_k a_tk grad d_k(x_i)                                                  (1)
    M             = sum_i w_i sum_t grad f_t(x_i) grad f_t(x_i)'                              (2)
    relevance_j   = M_jj var(x_j) / sum_l M_ll var(x_l).                                      (3)

M is the average gradient outer product (A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin,
Science 2024). Equation 3 measures slopes by the standard deviation of each feature, so that units
do not matter.

Cost: 2 n N d for each output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from pursuit._typing import Array
from pursuit.expansion.expansion import KernelExpansion
from pursuit.linalg import blocks

__all__ = ["average_outer_product", "gradients", "relevances"]


def gradients(expansion: KernelExpansion, X: Any) -> Iterator[tuple[slice, Array]]:
    """Slopes of each output (eq. 1), block by block: (n_rows, n_outputs, n_features).

    Raises
    ------
    ValueError
        If a function has no derivative here.
    """
    (T, N), d = expansion.coefficients.shape, X.shape[1]
    for rows in blocks.row_blocks(X.shape[0], 8.0 * ((T + 2) * d + 3 * N)):
        block = X[rows].toarray() if sparse.issparse(X) else X[rows]
        U = np.asarray(block, dtype=np.float64)
        slopes = np.zeros((len(U), T, d))
        for t, own in enumerate(expansion.coefficients):
            if N:
                A = np.broadcast_to(own, (len(U), N))
                slopes[:, t] = expansion.atoms.weighted_gradient(U, A)
        yield rows, slopes


def average_outer_product(expansion: KernelExpansion, X: Any, shares: Array) -> Array:
    """M (eq. 2), (n_features, n_features)."""
    outer = np.zeros((X.shape[1],) * 2)
    for rows, slopes in gradients(expansion, X):
        flat = (np.sqrt(shares[rows])[:, None, None] * slopes).reshape(-1, X.shape[1])
        outer += flat.T @ flat
    return outer


def relevances(expansion: KernelExpansion, X: Any, shares: Array) -> Array:
    """Shares of the features (eq. 3), which sum to 1, or all zero where the function is constant.

    Parameters
    ----------
    expansion : KernelExpansion
        The function.
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Rows.
    shares : ndarray of shape (n_rows,)
        Weights of the rows that sum to 1.
    """
    diagonal = np.zeros(X.shape[1])
    for rows, slopes in gradients(expansion, X):
        diagonal += shares[rows] @ (slopes**2).sum(axis=1)
    found: Array = diagonal * _variances(X, shares)
    total = float(found.sum())
    return found / total if total > 0 else found


def _variances(X: Any, shares: Array) -> Array:
    """Variance of each column; a sparse one by its moments."""
    if sparse.issparse(X):
        mean, square = X.T @ shares, X.multiply(X).T @ shares
        return np.asarray(np.maximum(square - mean**2, 0.0))
    centred = np.asarray(X, dtype=np.float64) - X[0]
    return np.asarray(shares @ (centred - shares @ centred) ** 2)
