"""The shape of the data around a point: local covariances and their leading axes.

Vincent, "Modeles a noyaux a structure locale" (2003), section 13.3. Around a row x_i with
neighbours x_j of weights w_j,

    C_i = sum_j w_j (x_j - x_i)(x_j - x_i)' / sum_j w_j                        (eq. 13.3)

Differences are taken from x_i and not from the mean of the neighbours, and x_i itself is no
neighbour. The singular values s_j and right singular vectors u_j of the matrix with rows
sqrt(w_j / sum w) (x_j - x_i) give C_i = sum_j s_j^2 u_j u_j'; the d leading pairs are kept.

Section 13.5 proposes to take "advantage of prior knowledge (e.g. the Tangent distance directions)":
where tangent vectors t_1, ..., t_M at x_i are known (``tangents.py``), the covariance is

    C_i = sum_j w_j (x_j - x_i)(x_j - x_i)' / sum_j w_j  +  tau^2 sum_j t_j t_j',              (1)

and the rows tau t_j stand below the scaled differences in the matrix of k + M rows.

==================  ==========================  ==========================================
symbol              name in code                shape
==================  ==========================  ==========================================
x_i                 ``centres``                 (m, D)
neighbours of x_i   ``neighbors``               (m, k) rows of X
w_j                 ``weights``                 (m, k)
tau t_j             ``known``                   (m, M, D)
u_1, ..., u_d       ``axes``                    (m, d, D), orthonormal
s_1^2, ..., s_d^2   ``variances``               (m, d), decreasing
a_1, ..., a_d       ``mixing``                  (m, d, k), s_j u_j = sum_k a_jk (x_k - x_i)
==================  ==========================  ==========================================

With weights of one these are the k nearest rows of the thesis. Any other weights of neighbours
go as well, those of a kernel for soft neighbourhoods: see `leading_axes`.

Where we differ. Equal rows are merged and their weights added, so that a weight of 2 is the row
twice, and neighbours are always *different* rows: copies of one row do not make a neighbourhood
flat. Cost: the search, and a thin singular value decomposition of a k x D matrix a centre, or
(`leading_mixtures`) an eigenvalue problem of size k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._warnings import warn
from pursuit.geometry.nearest import NearestRows
from pursuit.geometry.shared_products import SharedProducts, all_products, shared_products
from pursuit.geometry.tangents import KnownDirections
from pursuit.geometry.unique_rows import DistinctRows, distinct_rows
from pursuit.linalg import blocks

__all__ = [
    "LocalCovariances",
    "LocalMixtures",
    "Neighborhoods",
    "leading_axes",
    "leading_mixtures",
    "local_covariances",
    "nearest_indices",
    "nearest_rows",
    "neighbors_and_products",
    "scales",
]

# Matrices of one batch of singular value decompositions, in bytes: they stay in the cache.
BATCH_BYTES = 1 << 22


class Neighborhoods(NamedTuple):
    """Neighbours of some rows, nearest first to rounding.

    Attributes
    ----------
    neighbors : ndarray of int of shape (n_centres, k)
        Indices among the distinct rows.
    weights : ndarray of shape (n_centres, k)
        Weight of each neighbour.
    squared_distances : ndarray of shape (n_centres, k)
        Squared distance to each neighbour.
    """

    neighbors: Array
    weights: Array
    squared_distances: Array


class LocalCovariances(NamedTuple):
    """The d leading eigenpairs of the covariance around each centre.

    Attributes
    ----------
    axes : ndarray of shape (n_centres, d, n_features)
        Orthonormal eigenvectors.
    variances : ndarray of shape (n_centres, d)
        Eigenvalues, the largest first.
    """

    axes: Array
    variances: Array


class LocalMixtures(NamedTuple):
    """The d leading eigenpairs as combinations of the differences to the neighbours.

    Attributes
    ----------
    mixing : ndarray of shape (n_centres, d, k)
        a_ij with s_ij u_ij = sum_k a_ijk (x_k - x_i).
    variances : ndarray of shape (n_centres, d)
        s_ij^2, the largest first.
    offsets : ndarray of shape (n_centres, d)
        s_ij u_ij'x_i.
    """

    mixing: Array
    variances: Array
    offsets: Array


def nearest_rows(distinct: DistinctRows, queries: Array, n_neighbors: int) -> Neighborhoods:
    """Nearest other rows of some rows.

    Parameters
    ----------
    distinct : DistinctRows
        All rows.
    queries : ndarray of int of shape (n_queries,)
        Those whose neighbours are asked for, by their indices among the distinct rows.
    n_neighbors : int
        How many; fewer, with a warning, where there are no more other rows.
    """
    index, neighbors = _searched(distinct, queries, n_neighbors)
    distances = index.squared_distances(distinct.X[queries], neighbors)
    return Neighborhoods(neighbors, distinct.weights[neighbors], distances)


def nearest_indices(distinct: DistinctRows, queries: Array, n_neighbors: int) -> Array:
    """Indices of the neighbours that `nearest_rows` gives, (n_queries, k)."""
    return _searched(distinct, queries, n_neighbors)[1]


def neighbors_and_products(
    distinct: DistinctRows, n_neighbors: int, shift: Array
) -> tuple[Array, SharedProducts | None]:
    """The neighbours of every row, and the products of all rows where these have been made for it.

    Parameters
    ----------
    distinct : DistinctRows
        All rows.
    n_neighbors : int
        See `nearest_rows`.
    shift : ndarray of shape (n_features,)
        Something near the rows, which the products are less.
    """
    products = all_products(distinct.X, shift)
    return _searched(distinct, np.arange(len(distinct.X)), n_neighbors, products)[1], products


def _searched(
    distinct: DistinctRows,
    queries: Array,
    n_neighbors: int,
    products: SharedProducts | None = None,
) -> tuple[NearestRows, Array]:
    """The rows ready for a search, and what it finds."""
    k = min(n_neighbors, len(distinct.X) - 1)
    if k < n_neighbors:
        warn(
            f"n_neighbors={n_neighbors} is more than the {k} other different rows, "
            "all of which are neighbors",
            ConvergenceWarning,
        )
    index = NearestRows(distinct.X, products)
    return index, index.search(distinct.X[queries], k, leave_out=queries)


def leading_axes(
    X: Array,
    centres: Array,
    neighbors: Array,
    weights: Array,
    n_components: int,
    known: KnownDirections | None = None,
) -> LocalCovariances:
    """Leading eigenpairs of eq. 13.3, or of (1) with known directions, at each centre.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows.
    centres : ndarray of shape (n_centres, n_features)
        Points that differences are taken from.
    neighbors : ndarray of int of shape (n_centres, k)
        Rows around each centre.
    weights : ndarray of shape (n_centres, k)
        Weight of each neighbour, any scale; zero takes it out.
    n_components : int
        d; fewer where there are fewer neighbours and known directions, or fewer features.
    known : KnownDirections, optional
        tau t_j at each centre.
    """
    n_centres, k = neighbors.shape
    k += 0 if known is None else known.n_tangents
    d = min(n_components, k, X.shape[1])
    axes, variances = np.zeros((n_centres, d, X.shape[1])), np.zeros((n_centres, d))
    if not d:
        return LocalCovariances(axes, variances)
    scale = scales(weights)
    size = max(1, BATCH_BYTES // (8 * k * X.shape[1]))

    def fill(start: int) -> None:
        rows = slice(start, start + size)
        differences = X[neighbors[rows]] - centres[rows, None]
        differences *= scale[rows, :, None]
        if known is not None:  # eq. (1)
            differences = np.concatenate([differences, known(rows)], axis=1)
        _, values, vectors = np.linalg.svd(differences, full_matrices=False)
        variances[rows] = values[:, :d] ** 2
        axes[rows] = vectors[:, :d]

    blocks.in_parallel(fill, range(0, n_centres, size))
    return LocalCovariances(axes, variances)


def leading_mixtures(
    X: Array,
    neighbors: Array,
    weights: Array,
    n_components: int,
    products: SharedProducts | None = None,
) -> LocalMixtures:
    """Leading eigenpairs of eq. 13.3 at each row, from the k x k products of differences.

    With the rows sqrt(w_k / sum w) (x_k - x_i) in M and MM' = W S^2 W', the axes are
    S U' = W'M. Nothing is divided by a small singular value. Cheaper than `leading_axes`, in
    time and memory, where there are fewer neighbours than features. The smallest variances are
    known to rounding of the largest, or of the largest squared norm of a row where products of rows
    are shared.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Rows, each of them a centre.
    neighbors : ndarray of int of shape (n_rows, k)
        Rows around each.
    weights : ndarray of shape (n_rows, k)
        Weight of each neighbour, any scale; zero takes it out.
    n_components : int
        d; fewer where there are fewer neighbours or features.
    products : SharedProducts, optional
        Those of all rows, less the shift that X is without, if they have been made.
    """
    n_centres, k = neighbors.shape
    d = min(n_components, k, X.shape[1])
    mixing = np.zeros((n_centres, d, k), dtype=X.dtype)
    variances, offsets = np.zeros((n_centres, d)), np.zeros((n_centres, d))
    scale = scales(weights)
    width, products_of = _difference_products(X, neighbors, products)
    size = max(1, BATCH_BYTES // (8 * k * width))

    def fill(start: int) -> None:
        rows = slice(start, start + size)
        grams, along_centre = products_of(rows)  # (x_k - x_i)'(x_l - x_i) and (x_k - x_i)'x_i
        grams *= scale[rows, :, None]
        grams *= scale[rows, None, :]
        values, vectors = np.linalg.eigh(grams)
        leading = vectors[:, :, ::-1][:, :, :d].transpose(0, 2, 1)
        variances[rows] = np.maximum(values[:, ::-1][:, :d], 0.0)
        mixing[rows] = leading * scale[rows, None]
        offsets[rows] = (leading @ (scale[rows] * along_centre)[:, :, None])[:, :, 0]

    blocks.in_parallel(fill, range(0, n_centres, size) if d else ())
    return LocalMixtures(mixing, variances, offsets)


def _difference_products(
    X: Array, neighbors: Array, products: SharedProducts | None
) -> tuple[int, Callable[[slice], tuple[Array, Array]]]:
    """Products of the differences to the neighbours, with each other and with the centre.

    Also how many numbers of a neighbour they are made of: its features, or where products are
    shared those with the other neighbours.
    """
    found = np.column_stack([neighbors, np.arange(len(X))])
    known = None if products is None else products._replace(places=found)
    shared = known or shared_products(X, found, X.dtype)

    def one_by_one(rows: slice) -> tuple[Array, Array]:
        differences = X[neighbors[rows]] - X[rows, None]
        along_centre = (differences @ X[rows, :, None])[:, :, 0]
        return differences @ differences.transpose(0, 2, 1), along_centre

    if shared is None:
        return X.shape[1], one_by_one
    whole = shared.grams

    def together(rows: slice) -> tuple[Array, Array]:
        grams = whole(rows)
        along_centre = grams[:, :-1, -1] - grams[:, -1:, -1]
        differences = grams[:, :-1, :-1] - grams[:, :-1, -1:]
        differences -= along_centre[:, None, :]
        return differences, along_centre

    return neighbors.shape[1], together


def scales(weights: Array) -> Array:
    """sqrt(w_k / sum w) along the last axis, zeros where all weights are zero."""
    total = weights.sum(axis=-1, keepdims=True)
    roots: Array = np.sqrt(weights / np.where(total > 0, total, 1.0))
    return roots


def local_covariances(
    X: Array, rows: Array, n_neighbors: int, n_components: int, weights: Array | None = None
) -> tuple[LocalCovariances, Neighborhoods]:
    """Covariances of the nearest neighbours of some rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        All rows.
    rows : ndarray of int of shape (n_centres,)
        Those that a covariance is asked for.
    n_neighbors : int
        k different rows make a neighbourhood.
    n_components : int
        d, the number of eigenpairs to keep.
    weights : ndarray of shape (n_rows,), optional
        Positive weights of all rows.

    Returns
    -------
    covariances : LocalCovariances
        Eigenpairs, one set for each of `rows`.
    neighborhoods : Neighborhoods
        What they come from.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.local_covariance import local_covariances
    >>> line = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> found, _ = local_covariances(line, np.array([1]), n_neighbors=2, n_components=1)
    >>> np.abs(found.axes).round(3), found.variances.round(3)
    (array([[[0.707, 0.707]]]), array([[2.]]))
    """
    distinct = distinct_rows(X, weights)
    queries = distinct.places[rows]
    near = nearest_rows(distinct, queries, n_neighbors)
    centres = distinct.X[queries]
    found = leading_axes(distinct.X, centres, near.neighbors, near.weights, n_components)
    return found, near
