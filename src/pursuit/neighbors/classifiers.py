"""K-local hyperplane and convex distance nearest neighbours: the classifiers.

P. Vincent and Y. Bengio, "K-local hyperplane and convex distance nearest neighbor algorithms",
Advances in Neural Information Processing Systems 14 (2002). A query belongs to the class whose
local shape is the nearest; the distances are those of ``hyperplane.py``.

Nothing is trained. Fit keeps the rows by class, ready for the search of neighbours; a query asks
each class for its K nearest rows, and for every K and penalty of a grid at once. The rows of a
class are kept in lexicographic order, by which the search settles equal distances: the order of the
training rows changes nothing. The temperature
of the probabilities comes from reference rows that are left out in turn, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pursuit._arrays import alike, computing_beside, namespace_of, to_numpy
from pursuit._typing import Array
from pursuit._validation import check_integer, check_real, read_data
from pursuit._warnings import warn
from pursuit.base.arrays import FollowsX, following, native, through_host
from pursuit.base.estimators import ProbabilisticClassifier
from pursuit.base.parameters import constructor, positional
from pursuit.expansion.predictor import Classes
from pursuit.expansion.probabilities import fit_temperature
from pursuit.geometry.distances import feature_variance
from pursuit.geometry.nearest import NearestRows, Neighbors, chunks, gather
from pursuit.geometry.shared_products import SharedProducts
from pursuit.geometry.tangents import Tangents, check_tangents, tangent_vectors
from pursuit.geometry.unique_rows import row_order
from pursuit.linalg import blocks
from pursuit.neighbors.hyperplane import (
    Local,
    LocalProducts,
    LocalRows,
    check_hyperplane,
    hull_distances,
    hyperplane_distances,
    settled,
)
from pursuit.neighbors.image_tangents import ImageTangents
from pursuit.neighbors.tangents import LocalTangents, refuse_sparse_rows

__all__ = [
    "ConvexKNeighborsClassifier",
    "Grid",
    "HyperplaneKNeighborsClassifier",
    "LocalNeighborsClassifier",
    "NeighborCurve",
]

# Neighbours of one batch, in bytes.
BATCH_BYTES = 1 << 21
# Rows that the temperature of the probabilities is fitted on, at most about.
CALIBRATION_ROWS = 1000


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


class LocalNeighborsClassifier(ClassifierMixin, ProbabilisticClassifier, FollowsX, BaseEstimator):
    """What these classifiers share: reference rows by class, decisions, probabilities, grids."""

    _product_type: Any = np.float32  # or that of the rows, if it is wider
    n_neighbors: Any
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

    def _distances(self, local: Local, k: int, alphas: tuple[float, ...]) -> Array:
        """Squared distances of shape (n_alphas, B)."""
        raise NotImplementedError

    def _products(self, index: NearestRows, found: Array, dtype: Any) -> SharedProducts | None:
        """Products of neighbours, where sharing them pays."""
        return index.shared_products(found, np.result_type(dtype, self._product_type))

    def _local(self, tables: Array) -> Any:
        """Neighbours and queries that have been gathered."""
        return LocalRows(tables)

    @following
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the reference rows, by class.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Reference rows: all training rows, or some that stand for them, see `reference_rows` and
            `condensed_rows`.
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

    @following
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
        kept = [index for index in self.reference_ if index is not None]
        copied = any(sparse.issparse(index.rows) != sparse.issparse(X) for index in kept)
        for part in blocks.row_blocks(
            X.shape[0], 32.0 * (max(grid.n_neighbors) + copied * X.shape[1])
        ):
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
            queries = index.alike(X)
            near = index.nearest_sets(queries, grid.n_neighbors, leave_out)
            self._measure(index, queries, near, grid, distances[..., code], centroids[..., code])
        return -settled(distances, centroids[:, None], float(np.finfo(X.dtype).eps) ** 0.75)

    def _measure(
        self, index: NearestRows, X: Any, near: Neighbors, grid: Grid, distances: Array,
        centroids: Array,
    ) -> None:  # fmt: skip
        """Fill in the squared distances to one class, and those to its local centroids."""
        dtype = np.result_type(X.dtype, index.rows.dtype)
        k, n_features = near.found.shape[1], X.shape[1]

        def measure(pairs: Array, local: Callable[[slice], Local], row_bytes: float) -> None:
            def fill(part: slice) -> None:
                here, batch = pairs[part], local(part)
                for s, size in enumerate(grid.n_neighbors):
                    distances[s][:, here] = self._distances(batch, min(size, k), grid.alphas)
                    centroids[s, here] = batch.radius(min(size, k))

            parts = list(chunks(len(pairs), row_bytes * (k + 1), BATCH_BYTES))
            with blocks.blas_threads(row_bytes * (k + 1) * k):
                blocks.in_parallel(fill, parts)

        distances[...] = np.nan
        kept = np.flatnonzero(index.keeps_digits(near))
        shared = self._products(index, near.found[kept], dtype)
        if shared is not None:
            lengths, grams = near.squared_distances[kept], shared.grams
            measure(kept, lambda p: LocalProducts(grams(p), lengths[p], n_features), 8.0 * (k + 1))
        left = np.flatnonzero(np.isnan(distances).any(axis=(0, 1)))
        rows, found, queries = index.rows, near.found[left], X[left]
        measure(
            left,
            lambda part: self._local(gather(rows, found[part], queries[part], dtype)),
            float(dtype.itemsize * n_features),
        )

    def _outputs(self, X: Any) -> Array:
        """Decision values with one column a class; from a device neighbours are sought there."""
        if namespace_of(X) is not None:
            with computing_beside(X):
                found: Array = alike(self._outputs(to_numpy(X)), X)
            return found
        return np.asarray(self._values(X, self._grid())[0, 0])

    @native
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

    @native
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
        return Classes(self.classes_).prediction(outputs)

    def _scaled_values(self, X: Any) -> tuple[Array, float]:
        """Minus the squared distances, one column a class, over the temperature."""
        return self._outputs(self._validated(X)), 1.0 / self.temperature_

    @property
    def temperature_(self) -> float:
        """Temperature of the highest likelihood on about 1000 reference rows left out in turn.

        It is fitted when it is first asked for, and anew after ``partial_fit`` or for other
        parameters.
        """
        check_is_fitted(self)
        grid = self._grid()
        key = tuple(self.get_params().values())
        known = self._known_temperatures()
        if key not in known:
            known[key] = self._fitted_temperature(grid)
        return known[key]

    def _known_temperatures(self) -> dict[tuple[Any, ...], float]:
        """Those fitted before, by the parameters."""
        return self._temperatures

    def _fitted_temperature(self, grid: Grid) -> float:
        """Fit the temperature on rows at equal distances through each class."""
        counts = to_numpy(self.class_count_)
        present = np.flatnonzero(counts)
        step = max(1, int(counts.sum()) // CALIBRATION_ROWS)
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
    """The reference rows of each label, those there are and new ones, in lexicographic order.

    None where there are none.
    """
    grown: list[NearestRows | None] = []
    for label in labels:
        old, new = known.get(label), X[np.flatnonzero(y == label)]
        if new.shape[0] and old is not None:
            new = _stacked(old.rows, new)
        grown.append(NearestRows(new[row_order(new)]) if new.shape[0] else old)
    return tuple(grown)


def _stacked(first: Any, second: Any) -> Any:
    """Rows below rows; sparse if one of them is."""
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    return np.concatenate([first, second])


@constructor
class HyperplaneKNeighborsClassifier(LocalNeighborsClassifier):
    """Classes by the distance to the hyperplane through the nearest rows of each.

    K-local hyperplane distance nearest neighbours (HKNN). Nothing is trained; the rows are kept.

    Parameters
    ----------
    n_neighbors : int, default=15
        K, the number of neighbours in each class; of a smaller class all rows. 1 is the nearest
        neighbour rule.
    alpha : "scale" or float, default="scale"
        lambda, the penalty on leaving the centroid of the neighbours, in squared units of the
        features; "scale" is `feature_variance_`. 0 is the hyperplane itself, a large number the
        nearest centroid of K neighbours. With more neighbours than features the hyperplane is the
        whole space, at distance 0 of every query: then 0 gives a warning.
    n_components : int, optional
        How many leading principal components of the neighbours span the hyperplane; all if None.
    tangents : callable, optional
        Directions that leave the class as it is: maps rows (m, n_features) to an array
        (m, n_tangents, n_features), as `ImageTangents` does. Those at the centroid of the
        neighbours span the hyperplane, too, all of them and under the same penalty. Rows must be
        dense in ``fit``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of int of shape (n_classes,)
        Number of reference rows of each class.
    reference_ : tuple of NearestRows
        The rows of each class in lexicographic order, None where there are none.
    feature_variance_ : float
        Variance within the classes, mean over the features.
    temperature_ : float
        Temperature of the probabilities, fitted when it is first asked for.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    ConvexKNeighborsClassifier : The convex hull of the neighbours, without a penalty to choose.
    HyperplaneKNeighborsRegressor : Numbers in place of classes.
    ImageTangents : Small translations, turns, ... of images as tangents.
    condensed_rows : Few rows on which the others are right.
    reference_rows : The rows behind the vectors of a trained machine.

    Notes
    -----
    Of rows at the same distance as the K-th neighbour the first in lexicographic order (by the
    first feature, then the second, ...) are taken: the order of the training rows changes nothing.

    Rows may be dense in ``fit`` and CSR in ``predict``, and the other way round.

    The parameters may be changed by ``set_params`` after ``fit``.

    With `tangents` and K = 1 this is the nearest neighbour rule with the one-sided tangent distance
    of Simard et al. to the nearest row of each class. The callable is called in every prediction,
    by several threads at once; a model file takes `ImageTangents`, but no function.

    References
    ----------
    P. Vincent and Y. Bengio, "K-local hyperplane and convex distance nearest neighbor algorithms",
    Advances in Neural Information Processing Systems 14, 2002.

    P. Simard, Y. LeCun and J. Denker, "Efficient pattern recognition using a new transformation
    distance", Advances in Neural Information Processing Systems 5, 1993.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import HyperplaneKNeighborsClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HyperplaneKNeighborsClassifier(10, alpha=30.0).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.97)
    True
    """

    n_neighbors: int = positional(15)
    alpha: float | str = "scale"
    n_components: int | None = None
    tangents: Tangents | None = None

    def __sklearn_tags__(self) -> Any:
        """Sparse reference rows are accepted without tangents."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.tangents is None
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_hyperplane(self.alpha, self.n_components)
        check_tangents(self.tangents)

    def _keep(self, X: Any, y: Any, classes: Any, *, first: bool) -> Self:
        if self.tangents is not None:
            refuse_sparse_rows(X)
        super()._keep(X, y, classes, first=first)
        self._function_temperatures: dict[tuple[Any, ...], float] = {}
        parts = [part for part in self.reference_ if part is not None]
        squares = [len(part) * feature_variance(part.rows) for part in parts]
        self.feature_variance_ = sum(squares) / int(self.class_count_.sum())
        self._warn_of_the_whole_space()
        return self

    def _n_tangents(self) -> int:
        """How many tangents a row has, from one of the reference rows."""
        if self.tangents is None:
            return 0
        rows = next(part.rows for part in self.reference_ if part is not None)
        return int(tangent_vectors(self.tangents, rows[:1]).shape[1])

    def _warn_of_the_whole_space(self) -> None:
        """Warn where only rounding tells the classes apart."""
        n_features, n_tangents = self.n_features_in_, self._n_tangents()
        k = min(self.n_neighbors, int(self.class_count_.max()))
        if self.alpha == 0 and min(k - 1, self.n_components or k) + n_tangents >= n_features:
            beside = f" and {n_tangents} tangents" if n_tangents else ""
            fewer = n_features - n_tangents
            warn(
                f"alpha=0 with {k} neighbors{beside} in {n_features} dimensions: their hyperplane "
                "is the whole space, at distance 0 of every row, and decision values are mere "
                "rounding; use alpha='scale', a positive alpha"
                + (f", or n_neighbors of at most {fewer}" if fewer > 0 else " or fewer tangents")
            )

    def _known_temperatures(self) -> dict[tuple[Any, ...], float]:
        """Model files leave out those that belong to a function."""
        if isinstance(self.tangents, ImageTangents | None):
            return super()._known_temperatures()
        if not hasattr(self, "_function_temperatures"):
            self._function_temperatures = {}
        return self._function_temperatures

    def _penalty(self) -> float:
        """The number that alpha stands for."""
        return self.feature_variance_ if isinstance(self.alpha, str) else float(self.alpha)

    def _grid(self) -> Grid:
        return super()._grid()._replace(alphas=(self._penalty(),))

    def _products(self, index: NearestRows, found: Array, dtype: Any) -> SharedProducts | None:
        if self.tangents is None:
            return super()._products(index, found, dtype)
        refuse_sparse_rows(index.rows)
        return None  # tangents are multiplied with the rows themselves

    def _local(self, tables: Array) -> Any:
        if self.tangents is None:
            return super()._local(tables)
        return LocalTangents(tables, self.tangents, self.n_components)

    def _distances(self, local: Local, k: int, alphas: tuple[float, ...]) -> Array:
        kept = self.n_components if self.tangents is None else None  # `local` keeps so many
        return hyperplane_distances(local, k, alphas, kept)

    @through_host
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
        penalties = np.atleast_1d(self._penalty() if alphas is None else alphas).tolist()
        if not penalties:
            raise ValueError("alphas must hold at least one number")
        for alpha in penalties:
            check_real("alphas", alpha)
        return self._curve(X, y, Grid(sizes, tuple(map(float, penalties))))


@constructor
class ConvexKNeighborsClassifier(LocalNeighborsClassifier):
    """Classes by the distance to the convex hull of the nearest rows of each.

    K-local convex distance nearest neighbours (CKNN). Nothing is trained; the rows are kept.

    Parameters
    ----------
    n_neighbors : int, default=20
        K, the number of neighbours in each class; of a smaller class all rows. 1 is the nearest
        neighbour rule.

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
    HyperplaneKNeighborsClassifier : The whole hyperplane, with a penalty; about twice as fast.

    Notes
    -----
    Of rows at the same distance as the K-th neighbour the first in lexicographic order (by the
    first feature, then the second, ...) are taken: the order of the training rows changes nothing.

    Rows may be dense in ``fit`` and CSR in ``predict``, and the other way round.

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

    _product_type = np.float64
    n_neighbors: int = positional(20)

    def _distances(self, local: Local, k: int, alphas: tuple[float, ...]) -> Array:
        return hull_distances(local, k)

    @through_host
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
