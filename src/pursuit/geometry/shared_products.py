"""Gram matrices of the neighbours of many points, out of one matrix of products.

Problem. Of n rows x_a, k are the neighbours of each of m points, together u different ones. Wanted
are the m matrices of products of neighbours,

    G_i = [ (x_a - s)'(x_b - s) ]  for a, b among the neighbours of point i,

for any common shift s. One by one they cost m k^2 D operations in matrices too small for the full
rate, and the rows have to be gathered. All products of the u rows at once cost u^2 D, at the full
rate, and each G_i is then a gathering of k^2 numbers.

==========  ==============  ======================================================
symbol      name in code    shape
==========  ==============  ======================================================
S           ``products``    (u, u), of all rows that are a neighbour
            ``places``      (m, k), the place of each neighbour in S
==========  ==============  ======================================================

Sharing pays where u^2 D is some times less than m k^2 (D - g), where g features cost as much as one
gathered number, and where S fits into half of the working memory. What it costs in digits: products
of rows that are far from s and near each other lose those that they have in common. Whoever asks
says how many may be lost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit.linalg import blocks

__all__ = ["SharedProducts", "all_products", "shared_products"]

# A product in one large matrix costs a third of one in a small matrix.
GAIN = 3.0
# A number gathered out of S costs as much as the products of so many features.
GATHERED_FEATURES = 200


class SharedProducts(NamedTuple):
    """Products of all neighbours of all points.

    Attributes
    ----------
    products : ndarray of shape (u, u)
        S.
    places : ndarray of int of shape (m, k)
        Rows of S.
    shift : ndarray of shape (D,) or None
        s; zero if None.
    """

    products: Array
    places: Array
    shift: Array | None = None

    def grams(self, points: Any) -> Array:
        """G_i of some of the points, (n_points, k, k)."""
        places = self.places[points]
        pairs = places[:, :, None] * len(self.products) + places[:, None, :]
        grams: Array = self.products.ravel().take(pairs, mode="clip")
        return grams


def shared_products(
    rows: Array, found: Array, dtype: Any, shift: Array | None = None
) -> SharedProducts | None:
    """The products of all neighbours, where sharing them pays.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Rows.
    found : ndarray of int of shape (m, k)
        Neighbours of each point.
    dtype : dtype
        Of the products.
    shift : ndarray of shape (D,), optional
        s; zero if None.

    Returns
    -------
    shared : SharedProducts or None
        None where one by one costs less.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.shared_products import shared_products
    >>> rows = np.random.default_rng(0).normal(size=(30, 500))
    >>> found = np.array([[0, 3, 7], [7, 3, 1]] * 100)
    >>> shared = shared_products(rows, found, np.float64)
    >>> shared.products.shape, shared.grams([1]).shape
    ((4, 4), (1, 3, 3))
    >>> bool(np.allclose(shared.grams([1])[0, 0], rows[7] @ rows[[7, 3, 1]].T))
    True
    """
    used = np.zeros(len(rows), dtype=bool)
    used[found] = True
    u, n_features = int(used.sum()), rows.shape[1]
    one_by_one = float(found.size) * found.shape[1] * (n_features - GATHERED_FEATURES)
    if float(u) ** 2 * n_features > GAIN * one_by_one or not _fits(u, dtype):
        return None
    return SharedProducts(_products(rows[used], dtype, shift), (np.cumsum(used) - 1)[found], shift)


def all_products(rows: Array, shift: Array) -> SharedProducts | None:
    """The products of all rows, each of them a point with itself alone; None where it does not pay.

    Half of them serve a search of all rows among themselves.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        Rows.
    shift : ndarray of shape (D,)
        s.
    """
    if rows.shape[1] <= GATHERED_FEATURES or not _fits(len(rows), rows.dtype):
        return None
    return SharedProducts(_products(rows, rows.dtype, shift), np.arange(len(rows))[:, None], shift)


def _fits(n_rows: int, dtype: Any) -> bool:
    """Whether the products of so many rows take at most half of the working memory."""
    return blocks.fits(2.0 * np.dtype(dtype).itemsize * float(n_rows) ** 2)


def _products(rows: Array, dtype: Any, shift: Array | None) -> Array:
    """Each row less the shift with each: a symmetric product, at half the cost of another."""
    chosen = rows.astype(dtype)
    if shift is not None:
        chosen -= shift.astype(dtype)
    with blocks.blas_threads(float(len(rows)) * rows.size):
        products: Array = chosen @ chosen.T
    return products
