"""Nearest feature lines: classes by the lines through pairs of their rows.

S. Z. Li and J. Lu, "Face recognition using the nearest feature line method", IEEE Transactions on
Neural Networks 10 (1999), reference 60 of P. Vincent, "Modeles a noyaux a structure locale" (2003),
which sets it beside HKNN (section 11.2.4): many lines through two rows each, rather than one
hyperplane through K of them.

Problem. A query x belongs to the class with the nearest of all lines through two of its rows a, b,
or of its K rows that are nearest to x:

    d^2 = min_{a, b} min_t |x - a - t (b - a)|^2                                               (1)
    t = (x - a)'(b - a) / |b - a|^2,    d^2 = |x - a|^2 - ((x - a)'(b - a))^2 / |b - a|^2      (2)

A line through equal rows is that point. The nearest row itself is on some line, or is all there is.

============  ====================  ======================================================
symbol        name in code          shape, of B pairs of a query and a class
============  ====================  ======================================================
a, b          ``W``                 (B, K, D), all less the nearest row
x             ``q``                 (B, D), less that row
|a|^2, x'a    ``norms``, ``along``  (B, K)
a'b           ``products``          (B, A, K - start), of A rows with those behind them
d^2           ``values``            as ``products``
============  ====================  ======================================================

Steps.

1. The K nearest rows of each class (``geometry/nearest.py``), in float64 less the nearest one, so
   that neither the origin nor a far query costs digits.
2. For A rows at a time, by their products with themselves and the rows behind them,
   |b - a|^2 = |a|^2 + |b|^2 - 2 a'b, (x - a)'(b - a) = x'b - a'b - x'a + |a|^2, and (2).
3. Where |b - a|^2 is a small share of |a|^2, both from the difference b - a itself.
4. The distance to the best line once more, as the length of x - a - t (b - a).
5. A query that is on lines of several classes goes to the nearest row (``settled`` in
   ``hyperplane.py``); in one dimension all queries are.

Cost, for each of m n_classes pairs: the search; K^2 D for the products and some 5 K^2 operations
for (2). No more than A K numbers are formed at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pursuit._arrays import to_numpy
from pursuit._typing import Array
from pursuit._validation import check_integer
from pursuit.base.parameters import constructor, positional
from pursuit.geometry.nearest import NearestRows
from pursuit.neighbors.classifiers import Grid, LocalNeighborsClassifier

__all__ = ["LocalLines", "NearestFeatureLineClassifier", "line_distances"]

# A |b - a|^2 of less than this share of |a|^2, and so of |b|^2, has lost too many digits.
CLOSE = 1e-6
# Of the numbers that are formed at a time, and of differences b - a.
CHUNK_BYTES = 1 << 19


class LocalLines:
    """Neighbours and queries of a few pairs.

    Parameters
    ----------
    tables : ndarray of shape (B, K + 1, D)
        Neighbours, nearest first, and behind them the query.
    """

    def __init__(self, tables: Array) -> None:
        wide = tables.astype(np.float64)
        wide -= wide[:, :1].copy()
        self.W, self.q = wide[:, :-1], wide[:, -1]

    def radius(self, k: int) -> Array:
        """Squared distances to the nearest row, by which queries on several lines are settled."""
        squares: Array = np.einsum("bd,bd->b", self.q, self.q)
        return squares


def line_distances(local: LocalLines, k: int) -> Array:
    """Squared distances of queries to the nearest line through two of their neighbours.

    Parameters
    ----------
    local : LocalLines
        B pairs of a query and neighbours.
    k : int
        How many of the neighbours to use.

    Returns
    -------
    distances : ndarray of shape (B,)
        In float64.
    """
    W, q = local.W[:, :k], local.q
    norms = np.einsum("bkd,bkd->bk", W, W)
    along = np.einsum("bkd,bd->bk", W, q)
    distances = np.einsum("bkd,bkd->bk", q[:, None] - W, q[:, None] - W)  # |x - a|^2
    least, pairs = local.radius(k), np.zeros((len(W), 2), dtype=np.intp)
    size = max(1, int(CHUNK_BYTES / (8 * W.shape[0] * k)))
    for start in range(0, k - 1, size):
        part = slice(start, min(start + size, k - 1))
        products = W[:, part] @ W[:, start:].swapaxes(1, 2)
        values = (along[:, None, start:] - products) + (norms - along)[:, part, None]
        lengths = products  # |b - a|^2, in its place
        lengths *= -2.0
        lengths += norms[:, None, start:]
        lengths += norms[:, part, None]
        _measure_close(W, q, start, values, lengths, CLOSE * norms[:, part, None])
        values *= values / lengths
        np.subtract(distances[:, part, None], values, out=values)  # eq. (2)
        flat = values.reshape(len(values), -1)
        best = flat.argmin(axis=1)
        lower = np.flatnonzero(flat[np.arange(len(flat)), best] < least)
        least[lower] = flat[lower, best[lower]]
        pairs[lower] = start + np.stack(np.divmod(best[lower], values.shape[2]), axis=1)
    return _exact(W, q, pairs)


def _measure_close(
    W: Array, q: Array, start: int, slopes: Array, lengths: Array, close: Array
) -> None:
    """Step 3: put the numbers of b - a itself where a and b are close; no slope where a is b."""
    pair, a, b = np.nonzero(lengths <= close)
    size = max(1, int(CHUNK_BYTES / (8 * W.shape[2])))
    for first in range(0, len(pair), size):
        i, j, m = (each[first : first + size] for each in (pair, a, b))
        from_a = W[i, start + m] - W[i, start + j]
        length = np.einsum("pd,pd->p", from_a, from_a)
        lengths[i, j, m] = np.where(length > 0.0, length, np.inf)
        slopes[i, j, m] = np.einsum("pd,pd->p", q[i] - W[i, start + j], from_a)


def _exact(W: Array, q: Array, pairs: Array) -> Array:
    """Step 4: |x - a - t (b - a)|^2 of one line for each query."""
    here = np.arange(len(W))
    a, b = W[here, pairs[:, 0]], W[here, pairs[:, 1]]
    from_a, offset = b - a, q - a
    length = np.einsum("bd,bd->b", from_a, from_a)
    slope = np.einsum("bd,bd->b", offset, from_a)
    t = np.divide(slope, length, out=np.zeros_like(slope), where=length > 0.0)
    rest = offset - t[:, None] * from_a
    return np.asarray(np.einsum("bd,bd->b", rest, rest))


@constructor
class NearestFeatureLineClassifier(LocalNeighborsClassifier):
    """Classes by the distance to the nearest line through two rows of each.

    Nearest feature line (NFL). Nothing is trained; the rows are kept.

    Parameters
    ----------
    n_neighbors : int, optional
        Only the lines through so many rows of each class count, those nearest to the query; all if
        None. 1 is the nearest neighbour rule, 2 one line for each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of int of shape (n_classes,)
        Number of reference rows of each class.
    reference_ : tuple of NearestRows
        The rows of each class in lexicographic order, None where there are none.
    temperature_ : float
        Temperature of the probabilities, fitted when it is first asked for.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    HyperplaneKNeighborsClassifier : One hyperplane through all neighbours of a class.
    ConvexKNeighborsClassifier : Their convex hull.

    Notes
    -----
    A class of n rows has n (n - 1) / 2 lines, and each query is compared with every one of them:
    with ``n_neighbors=None`` a query costs n_features times the sum of the squared class counts.

    Lines go on for ever. With few features or many rows some line of each class passes near to any
    query; `n_neighbors` keeps to the lines nearby. In one dimension all are at distance zero, and
    the nearest row decides.

    Rows may be dense in ``fit`` and CSR in ``predict``, and the other way round.

    The parameter may be changed by ``set_params`` after ``fit``.

    References
    ----------
    S. Z. Li and J. Lu, "Face recognition using the nearest feature line method", IEEE Transactions
    on Neural Networks 10, 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import NearestFeatureLineClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NearestFeatureLineClassifier(10).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.97)
    True
    """

    n_neighbors: int | None = positional(None)

    def _check_parameters(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, optional=True)

    def _grid(self) -> Grid:
        self._check_parameters()
        every = int(max(1, to_numpy(self.class_count_).max()))
        return Grid((every if self.n_neighbors is None else int(self.n_neighbors),), (0.0,))

    def _products(self, index: NearestRows, found: Array, dtype: Any) -> None:
        return None  # differences of the rows themselves are needed

    def _local(self, tables: Array) -> LocalLines:
        return LocalLines(tables)

    def _distances(self, local: Any, k: int, alphas: tuple[float, ...]) -> Array:
        return line_distances(local, k)[None]
