"""The k nearest rows: by matrix products with exact ranks, or by trees in low dimension.

For queries q and rows x, both less a common shift where they are far from the origin,

    |q - x|^2 = |q|^2 + |x|^2 - 2 q'x,

so that a block of queries costs one matrix product. Rounding moves this number by at most

    err = e (|q| + |x|)^2 <= e (8 |q|^2 + 2.1 |q - x|^2),

with e = (D + 4) u for D products a row and the rounding unit u; the second form needs no x. Ranks
are exact all the same:

1. k and a few more candidates by the product; a rank is in doubt where two neighbours in it are
   closer than 2 err. The squared distances of these rows are replaced by those of the differences
   themselves, in float64, and equal ones go by the lowest index.
   Where only the *sets* of the nearest rows matter, of some sizes, those rows alone are in doubt
   that may be in a set or not. So are rows that may be equal to the query.
2. Where the last candidate is not beyond the k-th by more than 2 err, other rows may belong among
   the first k. All rows up to that mark are then ranked by their differences.

===========  ==============  ================================================
symbol       name in code    shape
===========  ==============  ================================================
x            ``rows``        (n, D)
q            ``queries``     (m, D)
D            ``n_terms``     number of features, of entries where sparse
             ``found``       (m, k) int, nearest first
===========  ==============  ================================================

In at most `TREE_FEATURES` dimensions scikit-learn's k-d tree gives the candidates, and the same two
steps settle their ranks. Cost: 2 m n D operations and a partition of m n numbers, or m times some
k log n for the tree. Blocks and threads change nothing in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.neighbors import KDTree
from sklearn.utils.extmath import row_norms

from pursuit._arrays import alike, as_wide, beside, extra, namespace_of, promoted, to_numpy
from pursuit._typing import Array
from pursuit.geometry.distances import common_shift, from_products, inner, pair_distances
from pursuit.geometry.shared_products import SharedProducts, shared_products
from pursuit.linalg import blocks

__all__ = ["NearestRows", "Neighbors", "chunks", "gather"]

# Temporaries of one product of the search: some thousand rows and more make it run at full rate.
CHUNK_BYTES = 1 << 26
SPARE = 8
TREE_FEATURES, TREE_ROWS = 10, 1000
# The rows are shifted, in a copy, where the shift's squared norm is this many times the mean
# squared distance to it: nearer to the origin a shift saves no digits.
SHIFT_PAYS = 0.5
# Of `keeps_digits`: about a digit and a half.
MOST_LOST = 32.0


def chunks(n_rows: int, bytes_per_row: float, chunk_bytes: int = CHUNK_BYTES) -> Iterator[slice]:
    """Slices of rows, even for all threads, that stay within the budget for them together.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    bytes_per_row : float
        Size of the temporaries that one row needs.
    chunk_bytes : int
        Size that the temporaries of a slice may have.

    Yields
    ------
    rows : slice
        Consecutive rows; at least one row.
    """
    size = max(1, int(chunk_bytes / bytes_per_row))
    for block in blocks.row_blocks(n_rows, bytes_per_row * blocks.n_threads()):
        for part in blocks.even_slices(block.stop - block.start, size):
            yield slice(block.start + part.start, block.start + part.stop)


def gather(rows: Any, found: Array, queries: Any, dtype: Any) -> Array:
    """Rows by their indices with their query behind them, as a dense array.

    Parameters
    ----------
    rows : {ndarray, CSR matrix} of shape (n, D)
        Rows.
    found : ndarray of int of shape (m, k)
        Indices among the rows.
    queries : {ndarray, CSR matrix} of shape (m, D)
        One more row each.
    dtype : dtype
        Of the result.

    Returns
    -------
    tables : ndarray of shape (m, k + 1, D)
        Of sparse rows the columns that are zero in all of them are left out.
    """
    m, k = found.shape
    if sparse.issparse(rows):
        stacked = sparse.vstack([rows[found.ravel()], queries], format="csr")
        columns = np.unique(stacked.indices)
        dense = stacked[:, columns].toarray().astype(dtype, copy=False)
        return np.concatenate([dense[: m * k].reshape(m, k, -1), dense[m * k :, None]], axis=1)
    places = np.pad(found, ((0, 0), (0, 1)))  # the query takes the last place
    tables: Array = rows.take(places, axis=0).astype(dtype, copy=False)
    tables[:, k] = queries
    return tables


class Neighbors(NamedTuple):
    """Nearest rows and how far they are.

    Attributes
    ----------
    found : ndarray of int of shape (n_queries, k)
        Indices, nearest first.
    squared_distances : ndarray of shape (n_queries, k)
        In float64, exact to rounding of the products of queries and rows; zero for equal rows.
    """

    found: Array
    squared_distances: Array


class Candidates(NamedTuple):
    """Rows that may be the nearest ones.

    Attributes
    ----------
    found : ndarray of int of shape (n_queries, n_candidates)
        Indices, nearest first as far as rounding lets see.
    values : ndarray of shape (n_queries, n_candidates)
        Their squared distances, infinite for a row that is left out.
    errors : ndarray of shape (n_queries, n_candidates)
        How far off these may be by rounding.
    others : ndarray of shape (n_queries,)
        No other row is nearer than this.
    """

    found: Array
    values: Array
    errors: Array
    others: Array


@dataclass(frozen=True, eq=False)
class NearestRows:
    """Rows, made ready for the search of nearest ones.

    Parameters
    ----------
    rows : {ndarray, CSR matrix} of shape (n_rows, n_features)
        At least one finite row, float32 or float64. They are kept, not copied.
    products : SharedProducts, optional
        Those of all rows, for searches in which each query is the row that is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.nearest import NearestRows
    >>> index = NearestRows(np.array([[0.0, 1.0], [3.0, 0.0], [0.0, -1.0]]))
    >>> index.search(np.array([[0.0, 0.0]]), 2)
    array([[0, 2]])
    """

    rows: Any
    products: InitVar[SharedProducts | None] = None
    _products: SharedProducts | None = field(init=False, repr=False)
    _shift: Array | None = field(init=False, repr=False)
    _shifted: Any = field(init=False, repr=False)
    _norms: Array = field(init=False, repr=False)
    _n_terms: int = field(init=False, repr=False)
    _tree: KDTree | None = field(init=False, repr=False)

    def __post_init__(self, products: SharedProducts | None) -> None:
        """Shift, squared norms, and the tree in low dimension."""
        rows, shift, tree = self.rows, None, None
        if sparse.issparse(rows):
            n_terms = int(np.diff(rows.indptr).max(initial=1))
        else:
            n_terms = rows.shape[1]
            shift = _useful_shift(rows) if products is None else products.shift
            if n_terms <= TREE_FEATURES and len(rows) >= TREE_ROWS:
                tree = KDTree(np.asarray(rows, dtype=np.float64))
        shifted = rows if shift is None else rows - shift
        norms = row_norms(shifted, squared=True)
        values = {
            "_products": products,
            "_shift": shift,
            "_shifted": shifted,
            "_norms": norms,
            "_tree": tree,
        }
        for name, value in {**values, "_n_terms": n_terms}.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    def alike(self, queries: Any) -> Any:
        """Queries in the form of the rows, dense or CSR."""
        if sparse.issparse(queries) == sparse.issparse(self.rows):
            return queries
        return queries.toarray() if sparse.issparse(queries) else type(self.rows)(queries)

    def search(self, queries: Any, n_neighbors: int, leave_out: Array | None = None) -> Array:
        """Indices of the nearest rows.

        Parameters
        ----------
        queries : {ndarray, CSR matrix} of shape (n_queries, n_features)
            Of the kind of the rows, see `alike`.
        n_neighbors : int
            How many; all of them where there are no more.
        leave_out : ndarray of int of shape (n_queries,), optional
            For each query a row that is no neighbour of it, or -1.

        Returns
        -------
        found : ndarray of int of shape (n_queries, k)
            Nearest first, ties by the lowest index. With `leave_out` at most one fewer than rows.
        """
        return self._nearest(queries, n_neighbors, None, leave_out).found

    def nearest_sets(
        self, queries: Any, sizes: Sequence[int], leave_out: Array | None = None
    ) -> Neighbors:
        """The sets of the nearest rows of some sizes; inside them the order is that of rounding.

        Parameters
        ----------
        queries, leave_out
            See `search`.
        sizes : sequence of int
            The first `size` of the rows found are the nearest ones, for each of these sizes.
        """
        return self._nearest(queries, max(sizes), sizes, leave_out)

    def _nearest(
        self, queries: Any, n_neighbors: int, sizes: Sequence[int] | None, leave_out: Array | None
    ) -> Neighbors:
        """`search`, or `nearest_sets` of some sizes, block by block."""
        k = min(n_neighbors, len(self) - (leave_out is not None))
        n_queries = queries.shape[0]
        found = Neighbors(np.empty((n_queries, k), dtype=np.intp), np.empty((n_queries, k)))
        if leave_out is None:
            leave_out = np.full(n_queries, -1)

        def fill(part: slice) -> None:
            near = self._search(queries[part], k, sizes, leave_out[part])
            found.found[part], found.squared_distances[part] = near

        if self._on_device:
            for part in blocks.row_blocks(n_queries, 16.0 * len(self)):
                fill(part)
            return found
        width = 3 * (k + SPARE) if self._tree is not None else len(self)
        item = np.result_type(queries.dtype, self.rows.dtype).itemsize
        blocks.in_parallel(fill, list(chunks(n_queries, 2.0 * item * width)))
        return found

    @property
    def _on_device(self) -> bool:
        """Whether candidates are sought on a device: of dense rows, without the tree."""
        plain = self._tree is None and not sparse.issparse(self.rows)
        return plain and beside() is not None

    def squared_distances(self, queries: Any, found: Array) -> Array:
        """|q - x|^2 from the differences themselves, exactly zero for identical rows.

        Parameters
        ----------
        queries : {ndarray, CSR matrix} of shape (n_queries, n_features)
            Queries.
        found : ndarray of int of shape (n_queries, k)
            Rows for each.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            In float64.
        """
        queried = np.repeat(np.arange(len(found)), found.shape[1])
        return pair_distances(queries, self.rows, queried, found.ravel()).reshape(found.shape)

    def keeps_digits(self, near: Neighbors) -> Array:
        """Of which queries the products of neighbours, as they are kept here, lose few digits.

        Parameters
        ----------
        near : Neighbors
            Of dense rows or CSR.

        Returns
        -------
        kept : ndarray of bool of shape (n_queries,)
            Whether (|q| + |x|)^2 is at most `MOST_LOST` times the mean of |q - x|^2, so that
            rounding of the products is not much more than that of the differences.
        """
        if not near.found.size:
            return np.zeros(len(near.found), dtype=bool)
        longest = np.sqrt(self._norms[near.found].max(axis=1).astype(np.float64))
        distances = near.squared_distances
        lengths = 2.0 * longest + np.sqrt(distances.min(axis=1))  # |q| <= |x| + |q - x|
        kept: Array = lengths**2 <= MOST_LOST * distances.mean(axis=1)
        return kept

    def shared_products(self, found: Array, dtype: Any) -> SharedProducts | None:
        """Products of the rows found, less a common shift, where sharing them pays.

        Parameters
        ----------
        found : ndarray of int of shape (n_queries, k)
            Rows.
        dtype : dtype
            Of the products.
        """
        if sparse.issparse(self.rows):
            return None
        return shared_products(self.rows, found, dtype, self._shift)

    def _search(
        self, queries: Any, k: int, sizes: Sequence[int] | None, leave_out: Array
    ) -> Neighbors:
        """`_nearest` for one block of queries, on one core."""
        n_candidates = min(len(self), k + SPARE)
        candidates = self._by_products if self._tree is None else self._by_tree
        near = candidates(queries, n_candidates, leave_out)
        doubtful = _doubtful(near, sizes)
        inside = (near.values + near.errors)[:, :k].max(axis=1, initial=0.0) < near.others
        self._measure(queries, near, doubtful)
        order = np.lexsort((near.found, near.values), axis=1)[:, :k]
        found = np.take_along_axis(near.found, order, axis=1)
        distances = np.take_along_axis(near.values, order, axis=1)
        if n_candidates < len(self):
            for i in np.flatnonzero(~inside):
                found[i], distances[i] = self._one_by_one(
                    queries[i : i + 1], k, leave_out[i : i + 1]
                )
        return Neighbors(found, np.maximum(distances, 0.0, out=distances))

    def _measure(self, queries: Any, near: Candidates, doubtful: Array) -> None:
        """Put the squared distances of the differences where the ranks are in doubt."""
        places, columns = np.nonzero(doubtful)
        pairs = near.found[places, columns][:, None]
        near.values[places, columns] = self.squared_distances(queries[places], pairs)[:, 0]

    def _by_products(self, queries: Any, n_candidates: int, leave_out: Array) -> Candidates:
        """Candidates by one matrix product."""
        if self._on_device:
            found, values, norms = self._device_products(queries, n_candidates, leave_out)
        else:
            table, norms = self._table(queries, leave_out)
            if n_candidates < table.shape[1]:
                found = np.argpartition(table, n_candidates - 1, axis=1)[:, :n_candidates]
            else:
                found = np.arange(n_candidates)[None].repeat(len(table), axis=0)
            values = np.take_along_axis(table, found, axis=1)
        rounding = self._rounding(values.dtype)
        values = values.astype(np.float64) + norms[:, None]
        lengths = np.sqrt(norms)[:, None] + np.sqrt(self._norms[found].astype(np.float64))
        others = (1.0 - 2.1 * rounding) * values.max(axis=1) - rounding * 8.0 * norms
        return _candidates(found, values, rounding * lengths**2, others)

    def _by_tree(self, queries: Any, n_candidates: int, leave_out: Array) -> Candidates:
        """Candidates from the tree."""
        assert self._tree is not None
        most = min(n_candidates + 1, len(self))  # one of them may be left out
        distances, found = self._tree.query(np.asarray(queries, dtype=np.float64), k=most)
        values = np.where(found == leave_out[:, None], np.inf, distances**2)
        order = np.argsort(values, axis=1)[:, :n_candidates]
        values = np.take_along_axis(values, order, axis=1)
        errors = 2.1 * self._rounding(np.float64) * np.where(np.isfinite(values), values, 0.0)
        found = np.take_along_axis(found, order, axis=1)
        return _candidates(found, values, errors, (values - errors)[:, -1])

    def _one_by_one(self, query: Any, k: int, leave_out: Array) -> tuple[Array, Array]:
        """The nearest of all rows that may be as near as the k-th, and their squared distances."""
        table, norms = self._table(query, leave_out)
        values = table[0].astype(np.float64) + norms[0]
        rounding = self._rounding(table.dtype)
        last = np.partition(values, k - 1)[k - 1]
        mark = last + 4.0 * rounding * (8.0 * norms[0] + 2.1 * abs(last))
        found = np.flatnonzero(values <= mark)
        distances = self.squared_distances(query, found[None])[0]
        order = np.argsort(distances, kind="stable")[:k]
        return found[order], distances[order]

    def _table(self, queries: Any, leave_out: Array) -> tuple[Array, Array]:
        """|x - q|^2 - |q|^2 by the product, infinite for the rows left out; and |q|^2."""
        if self._products is None:
            shifted = (
                queries if self._shift is None else queries - self._shift.astype(queries.dtype)
            )
            table, norms = inner(shifted, self._shifted), row_norms(shifted, squared=True)
        else:
            table, norms = self._products.products[leave_out], self._norms[leave_out]
        from_products(table, self._norms)
        out = np.flatnonzero(leave_out >= 0)
        table[out, leave_out[out]] = np.inf
        return table, norms.astype(np.float64)

    def _device_products(
        self, queries: Any, n_candidates: int, leave_out: Array
    ) -> tuple[Array, Array, Array]:
        """Candidates with their entries of `_table`, and |q|^2, from a device."""
        place = beside()
        shifted = queries if self._shift is None else queries - self._shift.astype(queries.dtype)
        rows, q = (alike(each, place) for each in (self._shifted, shifted))
        xp = namespace_of(place)
        q, rows, norms = promoted(xp, q, rows, alike(self._norms, place))
        table = norms - 2.0 * (q @ rows.T)
        columns = xp.arange(table.shape[1], device=table.device)
        table = xp.where(columns == alike(leave_out, place)[:, None], xp.inf, table)
        found = extra().argpartition(table, n_candidates - 1, axis=1)[:, :n_candidates]
        values = to_numpy(xp.take_along_axis(table, found, axis=1))
        lengths = to_numpy(xp.sum(as_wide(q) ** 2, axis=1)).astype(np.float64)
        return to_numpy(found), values, lengths

    def _rounding(self, dtype: Any) -> float:
        """e: a sum of D products is off by D u at most, and by 10 sqrt(D) u as good as never."""
        n_terms = min(float(self._n_terms), 10.0 * float(np.sqrt(self._n_terms)))
        precision = max(np.finfo(dtype).eps, np.finfo(self.rows.dtype).eps)
        return (n_terms + 4.0) * float(precision) / 2.0


def _candidates(found: Array, values: Array, errors: Array, others: Array) -> Candidates:
    """Candidates in the order of their values."""
    order = np.argsort(values, axis=1)
    parts = [np.take_along_axis(part, order, axis=1) for part in (found, values, errors)]
    return Candidates(parts[0], parts[1], parts[2], others)


def _doubtful(near: Candidates, sizes: Sequence[int] | None) -> Array:
    """Of which candidates the products do not settle the rank, or the set where sizes are given."""
    low, high = near.values - near.errors, near.values + near.errors
    doubtful = low <= 0.0  # may be equal to the query
    if sizes is None:
        close = low[:, 1:] <= high[:, :-1]
        doubtful[:, 1:] |= close
        doubtful[:, :-1] |= close
    else:
        for size in [size for size in sizes if size < low.shape[1]]:
            least = low[:, size:].min(axis=1, keepdims=True)
            most = high[:, :size].max(axis=1, keepdims=True)
            doubtful[:, :size] |= high[:, :size] >= least
            doubtful[:, size:] |= low[:, size:] <= most
    doubtful &= np.isfinite(near.values)
    return doubtful


def _useful_shift(rows: Array) -> Array | None:
    """The common shift, if that is far from zero; None if not."""
    shift = common_shift(rows)
    squared = float(shift @ shift)
    around = float(np.mean(row_norms(rows - shift, squared=True), dtype=np.float64))
    return shift if squared > SHIFT_PAYS * around else None
