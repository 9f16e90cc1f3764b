"""K-local hyperplane and convex distance nearest neighbours.

Paper: P. Vincent and Y. Bengio, "K-local hyperplane and convex distance nearest neighbor
algorithms", Advances in Neural Information Processing Systems 14 (2002); equations as in chapter 11
of P. Vincent, "Modeles a noyaux a structure locale" (2003).

Problem. A query x belongs to the class whose *local* shape is the nearest. N_1, ..., N_K are the K
rows of a class that are nearest to x, Nbar is their mean and V has the columns V_k = N_k - Nbar.

HKNN, the distance to their hyperplane, with a penalty lambda on leaving the centroid:

    d^2 = min_a |x - Nbar - V a|^2 + lambda |a|^2                          (11.3, 11.5)
    (V'V + lambda I) a = V'(x - Nbar)                                       (11.4)

CKNN, the distance to their convex hull: a point sum_k w_k N_k with w >= 0, sum w = 1 (11.3.2).

============  ====================  ======================================================
symbol        name in code          shape, of B pairs of a query and a class
============  ====================  ======================================================
x, N_k        ``tables``            (B, K + 1, D), the query last, all less N_1
lambda        ``alpha``
V'V, V'r, r'r ``centred``           (B, K + 1, K + 1) for r = x - Nbar, one Gram matrix
d^2           ``distances``         (n_alphas, B)
============  ====================  ======================================================

Steps.

1. The K nearest rows of each class (``nearest.py``).
2. The Gram matrix of the neighbours and the query, less N_1; with their mean taken out of rows and
   columns it holds V'V, V'r and r'r, for every smaller K, too.
3. HKNN: (11.4) put into (11.5) gives d^2 = r'r - y'y with L L' = V'V + lambda I, L y = V'r; y' is
   the last row of the Cholesky factor of the Gram matrix itself. Without a penalty one V_k, which
   the others determine, is left out. Footnote 8 of the chapter, to keep only the leading principal
   components of V, takes the eigenvalues s_j^2 and eigenvectors w_j of V'V:
   d^2 = r'r - sum_j (w_j'V'r)^2 / (s_j^2 + lambda).
4. Where the smallest pivot or divisor is too small a share of the trace of V'V for these numbers to
   be certain, the same in float64, then by the singular values of V, its rank decided relatively:
   the solution of least norm.
   CKNN: ``simplex.py``, from the Gram matrix as seen from x.
5. A squared distance that is a rounding error of r'r is zero. Where a query lies in the hulls of
   several classes, so that these are all at distance zero (a plane spanned in two dimensions, say),
   the nearest of the centroids decides: they count as that rounding error of r'r.

Cost, for each of m n_classes pairs: the search, D n_c; the Gram matrix, D K^2, for HKNN in the type
of the rows; K^3 / 3 for every penalty. Small matrices are taken by batches that stay in the cache,
by one thread a core with one BLAS thread each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit._validation import check_integer, check_real, read_data
from pursuit.expansion.probabilities import fit_temperature, probabilities
from pursuit.geometry.convex_hull import nearest_in_hull
from pursuit.geometry.nearest import NearestRows, chunks, gather
from pursuit.linalg import blocks

__all__ = [
    "ConvexKNeighborsClassifier",
    "HyperplaneKNeighborsClassifier",
    "NeighborCurve",
    "reference_rows",
]

# Neighbours of one batch, in bytes.
BATCH_BYTES = 1 << 21
# A pivot above this share of the trace of V'V, times the precision to the power 1/5, is certain:
# 2e-5 in float64, where the squared distance is then off by some 1e-11 of r'r, and 1e-3 in float32.
CERTAIN = 0.03
# An eigendecomposition takes as long as this many Cholesky factorisations.
EIGEN_COST = 12
# Rows that the temperature of the probabilities is fitted on, at most about.
CALIBRATION_ROWS = 1000

# ------------------------------------------------------------------------------------------
# The distances
# ------------------------------------------------------------------------------------------


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

    def gram(self, k: int, dtype: Any) -> Array:
        """Their Gram matrix in float64, from products in `dtype`."""
        if dtype not in self._grams:
            self._grams[dtype] = gram_matrices(self.tables, dtype)
        whole = self._grams[dtype]
        places = np.array([*range(k), whole.shape[1] - 1])
        return whole if k + 1 == len(whole[0]) else whole[:, places[:, None], places]


def gram_matrices(tables: Array, dtype: Any) -> Array:
    """Gram matrix of each table in float64, from products in `dtype`."""
    typed = tables.astype(dtype, copy=False)
    return np.asarray((typed @ typed.swapaxes(1, 2)).astype(np.float64))


def hyperplane_distances(
    local: LocalRows, k: int, alphas: Sequence[float], n_components: int | None = None
) -> Array:
    """Squared distances of queries to the hyperplanes of their neighbours, with the penalty.

    Parameters
    ----------
    local : LocalRows
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
        In float64.
    """
    n_pairs, _, n_features = local.tables.shape
    distances = np.full((len(alphas), n_pairs), np.nan)
    spectral = n_components is not None or len(alphas) > EIGEN_COST
    by_gram = _by_eigenvalues if spectral else _by_cholesky
    for dtype in dict.fromkeys((local.tables.dtype.type, np.float64)):
        centred = local.centred(k, dtype)
        certain = CERTAIN * _precision(dtype) ** 0.2 * np.einsum("bkk->b", centred[:, :-1, :-1])
        for alpha, row in zip(alphas, distances, strict=True):
            unknown = np.isnan(row)
            if unknown.any() and (alpha > 0 or k <= n_features):
                row[unknown] = by_gram(centred, alpha, certain, n_components)[unknown]
        if not np.isnan(distances).any():
            return distances
    pairs = np.flatnonzero(np.isnan(distances).any(axis=0))
    exact = _by_singular_values(local.rows(k, pairs), alphas, n_components)
    distances[:, pairs] = np.where(np.isnan(distances[:, pairs]), exact, distances[:, pairs])
    return distances


def _precision(dtype: Any) -> float:
    """Distance of 1 to the next number of this type."""
    return float(np.finfo(dtype).eps)


def _by_cholesky(centred: Array, alpha: float, certain: Array, n_components: int | None) -> Array:
    """d^2 = r'r - y'y of step 3; nan where a pivot is below `certain`."""
    k = centred.shape[1] - 1
    squared = centred[:, -1, -1]
    places = np.arange(k + 1) if alpha > 0 else np.array([*range(k - 1), k])
    systems = centred[:, places[:, None], places]
    inner = np.arange(len(places) - 1)
    systems[:, inner, inner] += alpha
    systems[:, -1, -1] += squared + certain + 1.0  # so that the last pivot exists, too
    factors = _cholesky(systems)
    pivots = factors[:, inner, inner] ** 2
    distances = squared - np.einsum("bk,bk->b", factors[:, -1, :-1], factors[:, -1, :-1])
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
    shares = products**2 / np.where(sure[:, None], divisors, 1.0)
    distances = centred[:, -1, -1] - shares.sum(axis=1)
    return np.where(sure, np.maximum(distances, 0.0), np.nan)


def _by_singular_values(rows: Array, alphas: Sequence[float], n_components: int | None) -> Array:
    """d^2 = |r - U U'r|^2 + sum_j lambda / (s_j^2 + lambda) (u_j'r)^2, of the kept components."""
    centroid = rows[:, :-1].mean(axis=1, keepdims=True)
    V, r = rows[:, :-1] - centroid, (rows[:, -1:] - centroid)[:, 0]
    _, s, axes = np.linalg.svd(V, full_matrices=False)
    least = max(V.shape[1:]) * _precision(np.float64)
    kept = s > least * s[:, :1]
    kept &= np.arange(s.shape[1]) < (n_components or s.shape[1])
    coordinates = np.einsum("bjd,bd->bj", axes, r) * kept
    rest = r - np.einsum("bj,bjd->bd", coordinates, axes)
    outside = np.einsum("bd,bd->b", rest, rest)
    squares = np.where(kept, s, 1.0) ** 2
    shares = [np.sum(alpha / (squares + alpha) * coordinates**2, axis=1) for alpha in alphas]
    return np.array([outside + share for share in shares])


def hull_distances(local: LocalRows, k: int) -> Array:
    """Squared distances of queries to the convex hulls of their neighbours.

    Parameters
    ----------
    local : LocalRows
        B pairs of a query and neighbours.
    k : int
        How many of the neighbours to use.

    Returns
    -------
    distances : ndarray of shape (1, B)
        In float64.
    """
    gram = local.gram(k, np.float64)  # (P) is no convex program where products are rounded more
    to_query = gram[:, :-1, -1]
    seen = gram[:, :-1, :-1] - to_query[:, :, None] - to_query[:, None, :] + gram[:, -1:, -1:]
    distances: Array = nearest_in_hull(seen).squared_distances[None]
    return distances


# ------------------------------------------------------------------------------------------
# The estimators
# ------------------------------------------------------------------------------------------


class NeighborCurve(NamedTuple):
    """Errors over a grid of parameters.

    Attributes
    ----------
    n_neighbors : ndarray of int of shape (n_sizes,)
        Values of K.
    alphas : ndarray of shape (n_alphas,) or None
        Penalties; None where there is no such parameter.
    errors : ndarray of shape (n_sizes, n_alphas), or (n_sizes,) without penalties
        Share of the rows that get a wrong label.
    """

    n_neighbors: Array
    alphas: Array | None
    errors: Array

    @property
    def best_params(self) -> dict[str, Any]:
        """Parameters of the lowest error, for ``set_params``; the first of equals."""
        best = np.unravel_index(self.errors.argmin(), self.errors.shape)
        params: dict[str, Any] = {"n_neighbors": int(self.n_neighbors[best[0]])}
        if self.alphas is not None:
            params["alpha"] = float(self.alphas[best[1]])
        return params


class Grid(NamedTuple):
    """What distances are asked for: every K with every penalty."""

    n_neighbors: tuple[int, ...]
    alphas: tuple[float, ...]


class _LocalNeighborsClassifier(ClassifierMixin, BaseEstimator):
    """What both classifiers share: reference rows by class, decisions, probabilities, grids."""

    n_neighbors: int
    classes_: Array
    class_count_: Array
    reference_: tuple[NearestRows | None, ...]

    def __sklearn_tags__(self) -> Any:
        """Sparse input is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_integer("n_neighbors", self.n_neighbors)

    def _grid(self) -> Grid:
        """The estimator's own parameters."""
        self._check_parameters()
        return Grid((int(self.n_neighbors),), (0.0,))

    def _distances(self, local: LocalRows, k: int, alphas: tuple[float, ...]) -> Array:
        """Squared distances of shape (n_alphas, B)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the reference rows, by class.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Reference rows: all training rows, or some that stand for them, see `reference_rows`.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : estimator
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        return self._keep(X, y, None, first=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Add reference rows; the model is that of all rows so far.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Reference rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            In the first call: all labels that will come. A class without rows has the decision
            value minus infinity and the probability 0. Without it new labels may come at any time.

        Returns
        -------
        self : estimator
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid, or a label is not among the classes announced.
        """
        return self._keep(X, y, classes, first=not hasattr(self, "classes_"))

    def _keep(self, X: Any, y: Any, classes: Any, *, first: bool) -> Self:
        """Add rows to those there are, or to none."""
        self._check_parameters()
        X, y = read_data(self, X, y, accept_sparse="csr", reset=first)
        check_classification_targets(y)
        if first:
            self._announced = classes is not None
            known = np.unique(y if classes is None else np.asarray(classes))
            parts: tuple[NearestRows | None, ...] = ()
        else:
            known, parts = self.classes_, self.reference_
            if classes is not None and not np.array_equal(known, np.unique(classes)):
                raise ValueError("classes must be the same in every call of partial_fit")
        strange = np.setdiff1d(y, known)
        if len(strange) and self._announced:
            raise ValueError(f"y has the label {strange[0]}, which is not among classes")
        labels = np.union1d(known, strange)
        if len(labels) < 2:
            raise ValueError(
                f"y has one class only ({labels[0]}); a classifier needs at least 2 classes, "
                "in partial_fit announced by classes"
            )
        self.reference_ = _grown(dict(zip(known, parts, strict=False)), labels, X, y)
        self.classes_ = labels
        self.class_count_ = np.array([0 if part is None else len(part) for part in self.reference_])
        self._temperatures: dict[tuple[Any, ...], float] = {}
        return self

    def _validated(self, X: Any) -> Any:
        """Rows for prediction, checked against those of ``fit``."""
        check_is_fitted(self)
        return read_data(self, X, reset=False, accept_sparse="csr")

    def _values(self, X: Any, grid: Grid, own: tuple[int, Array] | None = None) -> Array:
        """Minus squared distances, (n_sizes, n_alphas, n_rows, n_classes).

        With `own` the rows are reference rows, of this class and at these places in it, and no
        neighbours of themselves.
        """
        shape = (len(grid.n_neighbors), len(grid.alphas), X.shape[0], len(self.classes_))
        values = np.empty(shape)
        for part in blocks.row_blocks(X.shape[0], 16.0 * max(grid.n_neighbors)):
            here = None if own is None else (own[0], own[1][part])
            values[:, :, part] = self._block_values(X[part], grid, here)
        return values

    def _block_values(self, X: Any, grid: Grid, own: tuple[int, Array] | None) -> Array:
        """`_values` of so many rows that the indices of all their neighbours fit in memory."""
        shape = (len(grid.n_neighbors), len(grid.alphas), X.shape[0], len(self.classes_))
        distances = np.full(shape, np.inf)
        centroids = np.full((shape[0], *shape[2:]), np.inf)
        for code, index in enumerate(self.reference_):
            leave_out = own[1] if own is not None and own[0] == code else None
            if index is None or (leave_out is not None and len(index) == 1):
                continue
            found = index.search(X, max(grid.n_neighbors), leave_out)
            self._measure(index, X, found, grid, distances[..., code], centroids[..., code])
        return -_settled(distances, centroids[:, None], _precision(X.dtype) ** 0.75)

    def _measure(
        self, index: NearestRows, X: Any, found: Array, grid: Grid, distances: Array,
        centroids: Array,
    ) -> None:  # fmt: skip
        """Fill in the squared distances to one class, and those to its local centroids."""
        dtype = np.result_type(X.dtype, index.rows.dtype)

        def fill(part: slice) -> None:
            local = LocalRows(gather(index.rows, found[part], X[part], dtype))
            for s, size in enumerate(grid.n_neighbors):
                k = min(size, found.shape[1])
                distances[s, :, part] = self._distances(local, k, grid.alphas)
                centroids[s, part] = local.radius(k)

        pair_size = float((found.shape[1] + 1) * X.shape[1])
        parts = list(chunks(X.shape[0], dtype.itemsize * pair_size, BATCH_BYTES))
        with blocks.blas_threads(pair_size * found.shape[1]):
            blocks.in_parallel(fill, parts)

    def _outputs(self, X: Any) -> Array:
        """Decision values with one column a class."""
        return np.asarray(self._values(X, self._grid())[0, 0])

    def decision_function(self, X: Any) -> Array:
        """Minus squared distances to the classes.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, that of ``classes_[1]`` less that of ``classes_[0]``.
        """
        outputs = self._outputs(self._validated(X))
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict(self, X: Any) -> Array:
        """Labels of the nearest classes; ties go to the first class.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        outputs = self._outputs(self._validated(X))
        return np.asarray(self.classes_[outputs.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities: softmax of minus the squared distances over ``temperature_``.

        The largest probability is always that of the class that ``predict`` gives.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        outputs = self._outputs(self._validated(X))
        return probabilities(outputs, 1.0 / self.temperature_)

    @property
    def temperature_(self) -> float:
        """Temperature of the highest likelihood on about 1000 reference rows left out in turn.

        It is fitted when it is first asked for, and anew after ``partial_fit`` or for other
        parameters.
        """
        check_is_fitted(self)
        grid = self._grid()
        key = tuple(self.get_params().values())
        if key not in self._temperatures:
            self._temperatures[key] = self._fitted_temperature(grid)
        return self._temperatures[key]

    def _fitted_temperature(self, grid: Grid) -> float:
        """Fit the temperature on rows at equal distances through each class."""
        present = np.flatnonzero(self.class_count_)
        step = max(1, int(self.class_count_.sum()) // CALIBRATION_ROWS)
        values, codes = [np.empty((0, len(present)))], [np.empty(0, dtype=int)]
        for code, index in enumerate(self.reference_):
            if index is not None and len(index) > 1:
                rows = np.arange(0, len(index), step)
                found = self._values(index.rows[rows], grid, (code, rows))[0, 0]
                values.append(found[:, present])
                codes.append(np.full(len(rows), np.searchsorted(present, code)))
        table = np.concatenate(values)
        unit = float(np.mean(table.max(axis=1) - table.mean(axis=1))) if len(table) else 0.0
        if not unit > 0:
            return 1.0
        return unit * fit_temperature(table / unit, np.concatenate(codes), np.ones(len(table)))

    def _curve(self, X: Any, y: Any, grid: Grid) -> NeighborCurve:
        """Errors over a grid, on given rows or on the reference rows, each left out in turn."""
        check_is_fitted(self)
        self._check_parameters()
        errors, n_rows = np.zeros((len(grid.n_neighbors), len(grid.alphas))), 0
        for rows, labels, own in self._held_out(X, y, 16.0 * errors.size * len(self.classes_)):
            predicted = self.classes_[self._values(rows, grid, own).argmax(axis=3)]
            errors += (predicted != labels).sum(axis=2)
            n_rows += len(labels)
        sizes, alphas = np.array(grid.n_neighbors), np.array(grid.alphas)
        return NeighborCurve(sizes, alphas, errors / n_rows)

    def _held_out(
        self, X: Any, y: Any, row_bytes: float
    ) -> Iterator[tuple[Any, Array, tuple[int, Array] | None]]:
        """Blocks of rows, their labels, and their places if they are reference rows."""
        if (X is None) != (y is None):
            raise ValueError("X and y must be given both or neither")
        if X is not None:
            rows, labels = self._validated(X), np.asarray(y)
            if labels.shape != (rows.shape[0],):
                raise ValueError(f"y has shape {labels.shape}, but X has {rows.shape[0]} rows")
            for part in blocks.row_blocks(rows.shape[0], row_bytes):
                yield rows[part], labels[part], None
            return
        for code, index in enumerate(self.reference_):
            for part in blocks.row_blocks(0 if index is None else len(index), row_bytes):
                places = np.arange(part.start, part.stop)
                labels = np.repeat(self.classes_[code : code + 1], len(places))
                assert index is not None
                yield index.rows[part], labels, (code, places)


def _grown(
    known: dict[Any, NearestRows | None], labels: Array, X: Any, y: Array
) -> tuple[NearestRows | None, ...]:
    """The reference rows of each label, new ones behind those there are; None where none are."""
    grown: list[NearestRows | None] = []
    for label in labels:
        old, new = known.get(label), X[np.flatnonzero(y == label)]
        if new.shape[0] and old is not None:
            new = _stacked(old.rows, new)
        grown.append(NearestRows(new) if new.shape[0] else old)
    return tuple(grown)


def _stacked(first: Any, second: Any) -> Any:
    """Rows below rows; sparse if one of them is."""
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    return np.concatenate([first, second])


def _settled(distances: Array, centroids: Array, rounding: float) -> Array:
    """Step 5: squared distances that are rounding become zero, or tell classes apart."""
    least = rounding * centroids
    zero = (distances <= least) & np.isfinite(distances)
    several = zero.sum(axis=-1, keepdims=True) > 1
    return np.where(zero, np.where(several, least, 0.0), distances)


class HyperplaneKNeighborsClassifier(_LocalNeighborsClassifier):
    """Classes by the distance to the hyperplane through the nearest rows of each.

    K-local hyperplane distance nearest neighbours (HKNN). Nothing is trained; the rows are kept.

    Parameters
    ----------
    n_neighbors : int, default 15
        K, the number of neighbours in each class; of a smaller class all rows. 1 is the nearest
        neighbour rule.
    alpha : float, default 0.0
        lambda, the penalty on leaving the centroid of the neighbours, in squared units of the
        features. 0 is the hyperplane itself, a large number the nearest centroid of K neighbours.
        With more neighbours than features it should be positive, as the hyperplane is then the
        whole space.
    n_components : int, optional
        How many leading principal components of the neighbours span the hyperplane; all if None.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of int of shape (n_classes,)
        Number of reference rows of each class.
    reference_ : tuple of NearestRows
        The rows of each class, None where there are none.
    temperature_ : float
        Temperature of the probabilities, fitted when it is first asked for.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    ConvexKNeighborsClassifier : The convex hull of the neighbours, without a penalty to choose.
    reference_rows : The rows behind the vectors of a trained machine.

    Notes
    -----
    The parameters may be changed by ``set_params`` after ``fit``.

    References
    ----------
    P. Vincent and Y. Bengio, "K-local hyperplane and convex distance nearest neighbor algorithms",
    Advances in Neural Information Processing Systems 14, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import HyperplaneKNeighborsClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HyperplaneKNeighborsClassifier(10, alpha=30.0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.97)
    True
    """

    def __init__(
        self, n_neighbors: int = 15, *, alpha: float = 0.0, n_components: int | None = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.n_components = n_components

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("alpha", self.alpha)
        check_integer("n_components", self.n_components, optional=True)

    def _grid(self) -> Grid:
        return super()._grid()._replace(alphas=(float(self.alpha),))

    def _distances(self, local: LocalRows, k: int, alphas: tuple[float, ...]) -> Array:
        return hyperplane_distances(local, k, alphas, self.n_components)

    def validation_curve(
        self, X: Any = None, y: Any = None, *, n_neighbors: Any = None, alphas: Any = None
    ) -> NeighborCurve:
        """Errors for every K and penalty, from one search of neighbours.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features), optional
            Validation rows. Without them the reference rows, each left out in turn.
        y : array-like of shape (n_samples,), optional
            Their labels.
        n_neighbors : sequence of int, optional
            Values of K; the estimator's own if None.
        alphas : sequence of float, optional
            Values of lambda; the estimator's own if None.

        Returns
        -------
        curve : NeighborCurve
            ``errors`` of shape (n_sizes, n_alphas), and ``best_params``.

        Raises
        ------
        ValueError
            If a value of the grid or the rows are invalid; the message names it.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from pursuit import HyperplaneKNeighborsClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = HyperplaneKNeighborsClassifier().fit(X, y)
        >>> curve = model.validation_curve(n_neighbors=[2, 5, 10], alphas=[0.1, 1.0])
        >>> curve.errors.shape
        (3, 2)
        >>> model = model.set_params(**curve.best_params)
        """
        sizes = _sizes(self.n_neighbors if n_neighbors is None else n_neighbors)
        penalties = np.atleast_1d(self.alpha if alphas is None else alphas).tolist()
        if not penalties:
            raise ValueError("alphas must hold at least one number")
        for alpha in penalties:
            check_real("alphas", alpha)
        return self._curve(X, y, Grid(sizes, tuple(map(float, penalties))))


class ConvexKNeighborsClassifier(_LocalNeighborsClassifier):
    """Classes by the distance to the convex hull of the nearest rows of each.

    K-local convex distance nearest neighbours (CKNN). Nothing is trained; the rows are kept.

    Parameters
    ----------
    n_neighbors : int, default 20
        K, the number of neighbours in each class; of a smaller class all rows. 1 is the nearest
        neighbour rule.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of int of shape (n_classes,)
        Number of reference rows of each class.
    reference_ : tuple of NearestRows
        The rows of each class, None where there are none.
    temperature_ : float
        Temperature of the probabilities, fitted when it is first asked for.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    HyperplaneKNeighborsClassifier : The whole hyperplane, with a penalty; some ten times as fast.

    Notes
    -----
    The parameter may be changed by ``set_params`` after ``fit``.

    References
    ----------
    P. Vincent and Y. Bengio, "K-local hyperplane and convex distance nearest neighbor algorithms",
    Advances in Neural Information Processing Systems 14, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import ConvexKNeighborsClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ConvexKNeighborsClassifier().fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.97)
    True
    """

    def __init__(self, n_neighbors: int = 20) -> None:
        self.n_neighbors = n_neighbors

    def _distances(self, local: LocalRows, k: int, alphas: tuple[float, ...]) -> Array:
        return hull_distances(local, k)

    def validation_curve(
        self, X: Any = None, y: Any = None, *, n_neighbors: Any = None
    ) -> NeighborCurve:
        """Errors for every K, from one search of neighbours.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features), optional
            Validation rows. Without them the reference rows, each left out in turn.
        y : array-like of shape (n_samples,), optional
            Their labels.
        n_neighbors : sequence of int, optional
            Values of K; the estimator's own if None.

        Returns
        -------
        curve : NeighborCurve
            ``errors`` of shape (n_sizes,), and ``best_params``.

        Raises
        ------
        ValueError
            If a value of the grid or the rows are invalid; the message names it.
        """
        sizes = _sizes(self.n_neighbors if n_neighbors is None else n_neighbors)
        curve = self._curve(X, y, Grid(sizes, (0.0,)))
        return curve._replace(alphas=None, errors=curve.errors[:, 0])


def _sizes(n_neighbors: Any) -> tuple[int, ...]:
    """The values of K of a grid, checked."""
    sizes = np.atleast_1d(np.asarray(n_neighbors, dtype=object)).tolist()
    if not sizes:
        raise ValueError("n_neighbors must hold at least one integer")
    for size in sizes:
        check_integer("n_neighbors", size)
    return tuple(map(int, sizes))


# ------------------------------------------------------------------------------------------
# Smaller reference sets
# ------------------------------------------------------------------------------------------


def reference_rows(*machines: Any) -> Array:
    """Rows of the training data that are vectors of one of these machines (table 11.2).

    Parameters
    ----------
    *machines : estimators
        Fitted on the same rows, each with ``support_`` (an ``SVC``, kernel matching pursuit and
        the other machines here whose vectors are training rows), with ``estimators_`` that have
        it (``OneVsRestClassifier``), or a pipeline that ends in such a one.

    Returns
    -------
    rows : ndarray of int
        Row numbers, increasing.

    Raises
    ------
    ValueError
        If no machine is given or one does not know its rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> from pursuit import HyperplaneKNeighborsClassifier, reference_rows
    >>> X, y = load_digits(return_X_y=True)
    >>> rows = reference_rows(SVC(C=10).fit(X[:1000], y[:1000]))
    >>> model = HyperplaneKNeighborsClassifier(10, alpha=30.0).fit(X[rows], y[rows])
    >>> len(rows) < 600, bool(model.score(X[1000:], y[1000:]) > 0.96)
    (True, True)
    """
    if not machines:
        raise ValueError("machines must hold at least one fitted machine")
    return np.unique(np.concatenate([_support(machine) for machine in machines]))


def _support(machine: Any) -> Array:
    """Rows behind the vectors of one machine."""
    if isinstance(machine, Pipeline):
        machine = machine[-1]
    check_is_fitted(machine)
    if hasattr(machine, "support_"):
        return np.asarray(machine.support_)
    if hasattr(machine, "estimators_"):
        return reference_rows(*machine.estimators_)
    raise ValueError(
        f"{type(machine).__name__} has no support_: its vectors are no rows of the training data"
    )
