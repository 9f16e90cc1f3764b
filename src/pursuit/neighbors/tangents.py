"""Hyperplanes of nearest rows with known directions beside them: HKNN and the tangent distance.

Section 11.2.4 of P. Vincent, "Modeles a noyaux a structure locale" (2003), proposes to combine
HKNN, whose directions come from the neighbours, with the tangent distance of P. Simard, Y. LeCun
and J. Denker, "Efficient pattern recognition using a new transformation distance", Advances in
Neural Information Processing Systems 5 (1993), whose directions come from what is known of the
problem: the transformations that leave the class of a row as it is.

Problem. At a row p the tangent vectors t_1(p), ..., t_M(p) are known: p + b t_j(p) is for small b
as good a member of the class as p. With N_1, ..., N_K the rows of a class nearest to the query x,
Nbar their mean and V_k = N_k - Nbar, the distance is that of eq. 11.5 with further columns,

    d^2 = min_{a, b} |x - Nbar - V a - T b|^2 + lambda (|a|^2 + |b|^2),   T = [t_j(Nbar)]_j.    (1)

The tangent vectors are those *at the centroid*, the point that the hyperplane goes through and the
penalty draws to. Where t_j is linear in p, as translations and turns of an image are, they are the
means of those at the neighbours. They are M columns whatever K is, and they lose the noise of a
single row.

Limits. M = 0: HKNN. K = 1: the one-sided tangent distance to the nearest row, for lambda = 0 with
tangents as free as Simard's. Large lambda: the nearest centroid.

===========  =================  ===================================================
symbol       name in code       shape, of B pairs of a query and a class
===========  =================  ===================================================
t_j          ``tangents``       a function, (m, D) to (m, M, D)
T            ``directions``     (B, M, D), one a row
[T V]'[T V]  ``centred``        (B, M + K + 1, M + K + 1), with r = x - Nbar as last
===========  =================  ===================================================

Steps.

1. The K nearest rows of each class, as without tangents, and their Gram matrix.
2. T at the centroids, and its products with itself, V and r. Before and behind V'V they give the
   Gram matrix of all columns and r; steps 3 and 4 of ``hyperplane.py`` do the rest, the singular
   values included, where tangents and neighbours span the same.
3. To keep few principal components of the neighbours alone (footnote 8), V is turned to these
   first, and T is kept whole: [T V] becomes [T V w_1 ... V w_c 0] with eigenvectors w of V'V. The
   last column stands for the direction that V, whose columns add up to zero, does not have.

Cost beside HKNN, for each pair: one call of t, M D (K + M) for the products, and M more rows in
the Cholesky factor. The products of neighbours are not shared between queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pursuit._typing import Array
from pursuit.geometry.tangents import Tangents, tangent_vectors
from pursuit.neighbors.hyperplane import LocalRows

__all__ = ["LocalTangents", "refuse_sparse_rows"]


def refuse_sparse_rows(rows: Any) -> None:
    """Raise where tangents are asked for at CSR reference rows."""
    if sparse.issparse(rows):
        raise ValueError("tangents need dense reference rows; X is sparse: use X.toarray()")


class LocalTangents(LocalRows):
    """Neighbours and queries of a few pairs, with tangent vectors at the centroids.

    Parameters
    ----------
    tables : ndarray of shape (B, K + 1, D)
        Neighbours, nearest first, and behind them the query; N_1 is subtracted in place.
    tangents : callable
        t.
    n_components : int, optional
        How many leading principal components of V to keep.
    """

    def __init__(self, tables: Array, tangents: Tangents, n_components: int | None = None) -> None:
        self._first = tables[:, 0].copy()
        self._tangents, self._n_components = tangents, n_components
        self._directions: dict[int, Array] = {}
        self._systems: dict[Any, Array] = {}
        super().__init__(tables)

    def directions(self, k: int) -> Array:
        """T at the mean of the nearest k rows."""
        if k not in self._directions:
            centroids = self._first + self.tables[:, :k].mean(axis=1)
            self._directions[k] = tangent_vectors(self._tangents, centroids)
        return self._directions[k]

    def centred(self, k: int, dtype: Any) -> Array:
        """[T V]'[T V], [T V]'r and r'r: steps 2 and 3."""
        if (k, dtype) not in self._systems:
            typed = self.directions(k).astype(dtype, copy=False)
            products = (typed @ self._neighbors_and_query(k, dtype)).astype(np.float64)
            products -= products[:, :, :-1].mean(axis=2, keepdims=True)  # T'V and T'r
            own = (typed @ typed.swapaxes(1, 2)).astype(np.float64)  # T'T
            plain = super().centred(k, dtype)
            above = np.concatenate([own, products], axis=2)
            below = np.concatenate([products.swapaxes(1, 2), plain], axis=2)
            system = np.concatenate([above, below], axis=1)
            kept = self._n_components
            self._systems[k, dtype] = system if kept is None else _turned(system, k, kept)
        return self._systems[k, dtype]

    def columns(self, k: int, pairs: Array) -> tuple[Array, Array]:
        """The columns of [T V], one a row, and r."""
        V, r = super().columns(k, pairs)
        if self._n_components is not None:
            _, s, axes = np.linalg.svd(V, full_matrices=False)
            V = (s[:, :, None] * axes)[:, : self._n_components]
        return np.concatenate([self.directions(k)[pairs], V], axis=1), r

    def _neighbors_and_query(self, k: int, dtype: Any) -> Array:
        """The nearest k rows and the query less N_1, one a column."""
        places = np.array([*range(k), self.tables.shape[1] - 1])
        return self.tables[:, places].astype(dtype, copy=False).swapaxes(1, 2)


def _turned(system: Array, k: int, n_components: int) -> Array:
    """Step 3: the Gram matrix of [T V w_1 ... V w_c 0] and r."""
    n_tangents = system.shape[1] - k - 1
    within = slice(n_tangents, n_tangents + k)
    w = np.linalg.eigh(system[:, within, within])[1][:, :, k - min(n_components, k - 1) :]
    end = n_tangents + w.shape[2]
    turn = np.zeros((len(system), system.shape[1], end + 2))
    turn[:, range(n_tangents), range(n_tangents)] = 1.0
    turn[:, within, n_tangents:end] = w
    turn[:, -1, -1] = 1.0
    turned: Array = turn.swapaxes(1, 2) @ system @ turn
    return turned
