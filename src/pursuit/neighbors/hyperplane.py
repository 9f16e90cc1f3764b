"""Distances to the hyperplanes and convex hulls of nearest rows (HKNN and CKNN).

Paper: P. Vincent and Y. Bengio, "K-local hyperplane and convex distance nearest neighbor
algorithms", Advances in Neural Information Processing Systems 14 (2002); equations as in chapter 11
of P. Vincent, "Modeles a noyaux a structure locale" (2003).

Problem. A query x belongs to the class whose *local* shape is the nearest. N_1, ..., N_K are the K
rows of a class that are nearest to x, Nbar is their mean and V has the columns V_k = N_k - Nbar.

HKNN, the distance to their hyperplane, with a penalty lambda on leaving the centroid:

    d^2 = min_a |x - Nbar - V a|^2 + lambda |a|^2                          (11.3, 11.5)
    (V'V + lambda I) a = V'(x - Nbar)                                       (11.4)

CKNN, the distance to their convex hull: a point sum_k w_k N_k with w >= 0, sum w = 1 (11.3.2).

Regression: of targets t_k that belong to N_k, with mean tbar, the same combination,

    f(x) = tbar + sum_k a_k (t_k - tbar) = tbar + w'(x - Nbar),  w = (V V' + lambda I)^-1 V T,

the line of local ridge regression ("local learning", 11.2.4), T of rows t_k - tbar.

============  ====================  ======================================================
symbol        name in code          shape, of B pairs of a query and a class
============  ====================  ======================================================
x, N_k        ``tables``            (B, K + 1, D), the query last, all less N_1
lambda        ``alpha``
V'V, V'r, r'r ``centred``           (B, K + 1, K + 1) for r = x - Nbar, one Gram matrix
d^2           ``distances``         (n_alphas, B)
t_k           ``targets``           (B, K, n_targets)
============  ====================  ======================================================

Steps.

1. The K nearest rows of each class (``geometry/nearest.py``).
2. The Gram matrix of the neighbours and the query, less N_1; with their mean taken out of rows and
   columns it holds V'V, V'r and r'r, for every smaller K, too. Of many queries the same comes from
   the products of all neighbours in the class (``geometry/shared_products.py``) and from the
   distances that the search has found, where these lose no more than a digit or two.
3. HKNN: (11.4) put into (11.5) gives d^2 = r'r - y'y with L L' = V'V + lambda I, L y = V'r; y' is
   the last row of the Cholesky factor of the Gram matrix itself. Without a penalty one V_k, which
   the others determine, is left out. Footnote 8 of the chapter, to keep only the leading principal
   components of V, takes the eigenvalues s_j^2 and eigenvectors w_j of V'V:
   d^2 = r'r - sum_j (w_j'V'r)^2 / (s_j^2 + lambda).
4. Where the smallest pivot or divisor is too small a share of the trace of V'V for these numbers to
   be certain, the same in float64, then by the singular values of V, its rank decided relatively:
   the solution of least norm.
   CKNN: ``geometry/convex_hull.py``, from the Gram matrix as seen from x.
5. A squared distance that is a rounding error of r'r is zero. Where a query lies in the hulls of
   several classes, so that these are all at distance zero (a plane spanned in two dimensions, say),
   the nearest of the centroids decides: they count as that rounding error of r'r.
6. Regression: L y = V'r and L Z = T from the same factor, f = tbar + Z'y; without a penalty, for
   few components, or where a pivot is uncertain as in step 4, by the singular values of V.

Cost, for each of m n_classes pairs: the search, D n_c; the Gram matrix, D K^2, or where it is
shared K^2 and D n_c^2 / m, for HKNN in the type of the rows; K^3 / 3 for every penalty. Small
matrices are taken by batches that stay in the cache, one thread a core, one BLAS thread each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit._validation import check_integer, check_real
from pursuit.geometry.convex_hull import nearest_in_hull

__all__ = [
    "Local",
    "LocalProducts",
    "LocalRows",
    "check_hyperplane",
    "gram_matrices",
    "hull_distances",
    "hyperplane_distances",
    "hyperplane_values",
    "settled",
]

# A pivot above this share of the trace of V'V, times the precision to the power 1/5, is certain:
# 2e-5 in float64, where the squared distance is then off by some 1e-11 of r'r, and 1e-3 in float32.
CERTAIN = 0.03
# An eigendecomposition takes as long as this many Cholesky factorisations.
EIGEN_COST = 12


def check_hyperplane(alpha: Any, n_components: Any) -> None:
    """Raise one error that names the parameter out of range.

    Parameters
    ----------
    alpha : "scale" or float
        The penalty lambda.
    n_components : int or None
        How many principal components of V to keep.
    """
    if isinstance(alpha, str):
        if alpha != "scale":
            raise ValueError(f"alpha must be 'scale' or a number of at least 0, got {alpha!r}")
    else:
        check_real("alpha", alpha)
    check_integer("n_components", n_components, optional=True)


class LocalRows:
    """Neighbours and queries of a few pairs, with their Gram matrices made once.

    Parameters
    ----------
    tables : ndarray of shape (B, K + 1, D)
        Neighbours, nearest first, and behind them the query; N_1 is subtracted in place.
    """

    def __init__(self, tables: Array) -> None:
        tables -= tables[:, :1].copy()
        self.tables = tables
        self.n_features = tables.shape[2]
        self.types = tuple(dict.fromkeys((tables.dtype.type, np.float64)))
        self._grams: dict[Any, Array] = {}
        self._centred: dict[Any, Array] = {}

    def centred(self, k: int, dtype: Any) -> Array:
        """V'V, V'r and r'r: the mean of the neighbours taken out of rows and columns."""
        if (k, dtype) not in self._centred:
            gram = self.gram(k, dtype)
            mean = gram[:, :, :-1].mean(axis=2)
            total = mean[:, :-1].mean(axis=1)
            centred = gram - mean[:, :, None]
            centred += (total[:, None] - mean)[:, None, :]
            self._centred[k, dtype] = centred
        return self._centred[k, dtype]

    def radius(self, k: int) -> Array:
        """r'r, from products that have been made before."""
        centred: Array = self.centred(k, next(iter(self._grams)))
        return centred[:, -1, -1]

    def rows(self, k: int, pairs: Array) -> Array:
        """The nearest k neighbours of some pairs, and their query, in float64."""
        places = np.array([*range(k), self.tables.shape[1] - 1])
        rows: Array = self.tables[pairs[:, None], places].astype(np.float64)
        return rows

    def columns(self, k: int, pairs: Array) -> tuple[Array, Array]:
        """The columns of V, one a row, and r of some pairs, in float64."""
        rows = self.rows(k, pairs)
        centroid = rows[:, :-1].mean(axis=1, keepdims=True)
        return rows[:, :-1] - centroid, (rows[:, -1:] - centroid)[:, 0]

    def gram(self, k: int, dtype: Any) -> Array:
        """Their Gram matrix in float64, from products in `dtype`."""
        if dtype not in self._grams:
            self._grams[dtype] = gram_matrices(self.tables, dtype)
        whole = self._grams[dtype]
        places = np.array([*range(k), whole.shape[1] - 1])
        return whole if k + 1 == len(whole[0]) else whole[:, places[:, None], places]


class LocalProducts:
    """The same of pairs whose rows are not at hand, from products and distances.

    With |N_k - x|^2 = |V_k|^2 - 2 V_k'r + r'r and sum_k V_k = 0,

        r'r = mean_k (|N_k - x|^2 - |V_k|^2),    V_k'r = (|V_k|^2 + r'r - |N_k - x|^2) / 2.

    Parameters
    ----------
    grams : ndarray of shape (B, K, K)
        Products of the neighbours, nearest first, less any shift.
    squared_distances : ndarray of shape (B, K)
        |N_k - x|^2.
    n_features : int
        D.
    """

    def __init__(self, grams: Array, squared_distances: Array, n_features: int) -> None:
        self.n_features, self.types = n_features, (grams.dtype.type,)
        self._grams, self._distances = grams, squared_distances
        self._centred: dict[int, Array] = {}

    def centred(self, k: int, dtype: Any) -> Array:
        """V'V, V'r and r'r from products in `dtype`."""
        if k not in self._centred:
            centred = np.empty((len(self._grams), k + 1, k + 1))
            inner = centred[:, :k, :k]  # V'V
            inner[...] = self._grams[:, :k, :k]
            mean = inner.mean(axis=2)
            inner -= mean[:, :, None]
            inner -= (mean - mean.mean(axis=1)[:, None])[:, None, :]
            rest = self._distances[:, :k] - np.einsum("bkk->bk", inner)
            squared = np.maximum(rest.mean(axis=1), 0.0)  # r'r
            centred[:, k, :k] = centred[:, :k, k] = 0.5 * (squared[:, None] - rest)  # V'r
            centred[:, k, k] = squared
            self._centred[k] = centred
        return self._centred[k]

    def radius(self, k: int) -> Array:
        """Squared distances r'r to the centroids."""
        radius: Array = self.centred(k, None)[:, -1, -1]
        return radius


Local = LocalRows | LocalProducts


def gram_matrices(tables: Array, dtype: Any) -> Array:
    """Gram matrix of each table in float64, from products in `dtype`."""
    typed = tables.astype(dtype, copy=False)
    return np.asarray((typed @ typed.swapaxes(1, 2)).astype(np.float64))


def hyperplane_distances(
    local: Local,
    k: int,
    alphas: Sequence[float],
    n_components: int | None = None,
) -> Array:
    """Squared distances of queries to the hyperplanes of their neighbours, with the penalty.

    Parameters
    ----------
    local : LocalRows or LocalProducts
        B pairs of a query and neighbours.
    k : int
        How many of the neighbours to use.
    alphas : sequence of float
        Penalties lambda.
    n_components : int, optional
        How many principal components of V to keep.

    Returns
    -------
    distances : ndarray of shape (n_alphas, B)
        In float64; nan where products alone leave doubts.
    """
    distances = _by_products(local, k, alphas, n_components)
    if isinstance(local, LocalRows) and np.isnan(distances).any():
        pairs = np.flatnonzero(np.isnan(distances).any(axis=0))
        exact = _by_singular_values(*local.columns(k, pairs), alphas, n_components)
        distances[:, pairs] = np.where(np.isnan(distances[:, pairs]), exact, distances[:, pairs])
    return distances


def _by_products(local: Local, k: int, alphas: Sequence[float], n_components: int | None) -> Array:
    """Step 3, in the types of the products one after another; nan where none is certain."""
    spectral = n_components is not None or len(alphas) > EIGEN_COST
    by_gram = _by_eigenvalues if spectral else _by_cholesky
    distances = np.array([])
    for dtype in local.types:
        centred = local.centred(k, dtype)
        if not distances.size:
            distances = np.full((len(alphas), len(centred)), np.nan)
        certain = CERTAIN * _precision(dtype) ** 0.2 * np.einsum("bkk->b", centred[:, :-1, :-1])
        for alpha, row in zip(alphas, distances, strict=True):
            unknown = np.isnan(row)
            if unknown.any() and (alpha > 0 or centred.shape[1] <= local.n_features + 1):
                row[unknown] = by_gram(centred, alpha, certain, n_components)[unknown]
        if not np.isnan(distances).any():
            break
    return distances


def _precision(dtype: Any) -> float:
    """Distance of 1 to the next number of this type."""
    return float(np.finfo(dtype).eps)


def _by_cholesky(centred: Array, alpha: float, certain: Array, n_components: int | None) -> Array:
    """d^2 = r'r - y'y of step 3; nan where a pivot is below `certain`."""
    k = centred.shape[1] - 1
    squared = centred[:, -1, -1]  # r'r
    if alpha > 0:
        systems = centred.copy()
    else:
        places = np.array([*range(k - 1), k])
        systems = centred[:, places[:, None], places]
    inner = np.arange(systems.shape[1] - 1)
    systems[:, inner, inner] += alpha
    systems[:, -1, -1] += squared + certain + 1.0  # so that the last pivot exists, too
    factors = _cholesky(systems)  # L L' = V'V + lambda I, and below it y' with L y = V'r
    pivots, y = factors[:, inner, inner] ** 2, factors[:, -1, :-1]
    # The a of eq. 11.4 is L'^-1 y. Put into eq. 11.5: d^2 = r'r - a'V'r = r'r - y'y.
    distances = squared - np.einsum("bk,bk->b", y, y)
    sure = (pivots > certain[:, None]).all(axis=1)
    return np.where(sure, np.maximum(distances, 0.0), np.nan)


def _cholesky(systems: Array) -> Array:
    """Lower Cholesky factors; nan for a matrix that is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(systems))
    except np.linalg.LinAlgError:
        if len(systems) == 1:
            return np.full(systems.shape, np.nan)
        return np.concatenate([_cholesky(systems[i : i + 1]) for i in range(len(systems))])


def _by_eigenvalues(
    centred: Array, alpha: float, certain: Array, n_components: int | None
) -> Array:
    """d^2 by the leading eigenpairs; nan where a divisor is below `certain`."""
    k = centred.shape[1] - 1
    kept = slice(k - min(n_components or k, k - 1), k)  # of increasing ones; V has rank k - 1
    values, vectors = np.linalg.eigh(centred[:, :-1, :-1])
    products = np.einsum("bki,bk->bi", vectors, centred[:, :-1, -1])[:, kept]
    divisors = values[:, kept] + alpha
    sure: Array = np.asarray((divisors > certain[:, None]).all(axis=1))
    # eq. 11.4: a = sum_j w_j (w_j'V'r) / (s_j^2 + lambda); eq. 11.5: d^2 = r'r - a'V'r.
    shares = products * (products / np.where(sure[:, None], divisors, 1.0))
    distances = centred[:, -1, -1] - shares.sum(axis=1)
    return np.where(sure, np.maximum(distances, 0.0), np.nan)


def _by_singular_values(
    V: Array, r: Array, alphas: Sequence[float], n_components: int | None
) -> Array:
    """d^2 = |r - U U'r|^2 + sum_j lambda / (s_j^2 + lambda) (u_j'r)^2, of the kept components."""
    _, s, axes, kept = _components(V, n_components)
    coordinates = np.einsum("bjd,bd->bj", axes, r) * kept
    rest = r - np.einsum("bj,bjd->bd", coordinates, axes)
    outside = np.einsum("bd,bd->b", rest, rest)
    squares = np.where(kept, s, 1.0) ** 2
    shares = [np.sum(alpha / (squares + alpha) * coordinates**2, axis=1) for alpha in alphas]
    return np.array([outside + share for share in shares])


def _components(V: Array, n_components: int | None) -> tuple[Array, Array, Array, Array]:
    """w_j, s_j and u_j with V = sum_j u_j s_j w_j'; and which of these to keep."""
    w, s, axes = np.linalg.svd(V, full_matrices=False)
    least = max(V.shape[1:]) * _precision(np.float64)
    kept = s > least * s[:, :1]
    kept &= np.arange(s.shape[1]) < (n_components or s.shape[1])
    return w, s, axes, kept


def hyperplane_values(
    local: LocalRows, targets: Array, alpha: float, n_components: int | None = None
) -> Array:
    """The combination of targets that is nearest to each query in the hyperplane of its rows.

    Parameters
    ----------
    local : LocalRows
        B queries and their neighbours.
    targets : ndarray of shape (B, K, n_targets)
        Of the neighbours.
    alpha : float
        The penalty lambda.
    n_components : int, optional
        How many principal components of V to keep.

    Returns
    -------
    values : ndarray of shape (B, n_targets)
        f(x), in float64.
    """
    mean = targets.mean(axis=1)
    T, k = targets - mean[:, None], targets.shape[1]
    slopes = np.full(mean.shape, np.nan)
    if alpha > 0 and n_components is None:
        centred = local.centred(k, np.float64)
        systems = centred[:, :-1, :-1] + alpha * np.eye(k)
        factors = _cholesky(systems)
        certain = CERTAIN * _precision(np.float64) ** 0.2 * np.einsum("bkk->b", systems)
        pivots = np.einsum("bkk->bk", factors) ** 2
        sure = np.flatnonzero((pivots > certain[:, None]).all(axis=1))
        yZ = np.linalg.solve(factors[sure], np.dstack([centred[sure, :-1, -1:], T[sure]]))
        slopes[sure] = np.einsum("bk,bkt->bt", yZ[:, :, 0], yZ[:, :, 1:])
    left = np.flatnonzero(np.isnan(slopes).any(axis=1))
    if len(left):
        V, r = local.columns(k, left)
        w, s, axes, kept = _components(V, n_components)
        shares = np.where(kept, s, 0.0) / np.where(kept, s**2 + alpha, 1.0)
        coordinates = shares * np.einsum("bjd,bd->bj", axes, r)  # a = sum_j w_j coordinates_j
        slopes[left] = np.einsum("bj,bkj,bkt->bt", coordinates, w, T[left])
    return np.asarray(mean + slopes)


def hull_distances(local: Local, k: int) -> Array:
    """Squared distances of queries to the convex hulls of their neighbours.

    Parameters
    ----------
    local : LocalRows or LocalProducts
        B pairs of a query and neighbours.
    k : int
        How many of the neighbours to use.

    Returns
    -------
    distances : ndarray of shape (1, B)
        In float64.
    """
    # (P) is no convex program where products of neighbours are rounded more than in float64.
    centred = local.centred(k, np.float64)
    seen = centred[:, :-1, :-1] - centred[:, :-1, -1:]
    seen += (centred[:, -1:, -1] - centred[:, :-1, -1])[:, None, :]  # (N_k - x)'(N_l - x)
    return np.asarray(nearest_in_hull(seen).squared_distances[None])


def settled(distances: Array, centroids: Array, rounding: float) -> Array:
    """Step 5: squared distances that are rounding become zero, or tell classes apart.

    Parameters
    ----------
    distances : ndarray of shape (..., n_classes)
        Squared distances.
    centroids : ndarray of shape (..., n_classes)
        r'r, squared distances to the means of the neighbours.
    rounding : float
        Share of r'r below which a distance is rounding.
    """
    least = rounding * centroids
    zero = (distances <= least) & np.isfinite(distances)
    several = zero.sum(axis=-1, keepdims=True) > 1
    return np.where(zero, np.where(several, least, 0.0), distances)
