"""Distances that are sums over the features, each row against each centre.

==============  ======================================================
`city_block`    sum_j |x_j - z_j|
`chi_squared`   sum_j (x_j - z_j)^2 / (x_j + z_j), 0 / 0 counts as 0
==============  ======================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances

from pursuit._arrays import as_wide, namespace_of, promoted
from pursuit._typing import Array

__all__ = ["chi_squared", "city_block"]


def city_block(X: Any, Z: Any) -> Array:
    """City-block distances of dense or CSR rows, in float64."""
    if namespace_of(X) is not None:
        return _sum_of_features(as_wide(X), as_wide(Z), lambda x, z: abs(x - z))
    if sparse.issparse(X) or sparse.issparse(Z):
        return np.asarray(manhattan_distances(_short_indices(X), _short_indices(Z)))
    return np.asarray(cdist(X, Z, "cityblock"))


def chi_squared(X: Any, Z: Any) -> Array:
    """sum_j (x_j - z_j)^2 / (x_j + z_j) of dense rows; 0 / 0 counts as 0."""
    xp = namespace_of(X)
    if xp is None:
        return np.asarray(-additive_chi2_kernel(X, Z))
    for rows, name in ((X, "X"), (Z, "Y")):
        if bool(xp.any(rows < 0.0)):
            raise ValueError(f"{name} contains negative values.")

    def term(x: Any, z: Any) -> Any:
        total = x + z
        return (x - z) ** 2 / xp.where(total == 0.0, 1.0, total)

    X, Z = promoted(xp, X, Z)
    return _sum_of_features(X, Z, term)


def _sum_of_features(X: Any, Z: Any, term: Callable[[Any, Any], Any]) -> Array:
    """Sum_j term(x_j, z_j) of device arrays, one feature after the other."""
    total: Array = term(X[:, :1], Z[:, :1].T)
    for j in range(1, X.shape[1]):
        total = total + term(X[:, j : j + 1], Z[:, j : j + 1].T)
    return total


def _short_indices(X: Any) -> Any:
    """CSR rows with 32-bit indices, which scikit-learn's city-block distance wants."""
    csr = sparse.csr_matrix(X)
    parts = (csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int32))
    return sparse.csr_matrix(parts, shape=csr.shape)
