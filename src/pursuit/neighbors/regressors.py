"""Regression on the hyperplane of the nearest rows.

Vincent, "Modeles a noyaux a structure locale" (2003), section 11.2.4, which names local learning
(Bottou and Vapnik 1992) as what HKNN belongs to. The K rows nearest to a query span a hyperplane;
the query's nearest point in it is a combination of them, by the penalised system of eq. 11.4, and
the prediction is the same combination of their targets: a ridge regression of its own for each
query, on its neighbours alone. Formulas and steps are in ``hyperplane.py``.

Nothing is trained. The rows are kept in lexicographic order, rows that are equal in that of their
targets, so that the order of the training rows changes nothing. K = 1, or a very large penalty, is
the mean of the K nearest targets.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pursuit._arrays import alike, computing_beside, namespace_of, to_numpy
from pursuit._typing import Array
from pursuit._validation import check_integer, read_data
from pursuit.base.arrays import FollowsX, following, native
from pursuit.base.parameters import constructor, positional
from pursuit.geometry.distances import feature_variance
from pursuit.geometry.nearest import NearestRows, chunks, gather
from pursuit.geometry.unique_rows import row_order
from pursuit.linalg import blocks
from pursuit.neighbors.hyperplane import LocalRows, check_hyperplane, hyperplane_values

__all__ = ["HyperplaneKNeighborsRegressor"]

# Neighbours of one batch, in bytes.
BATCH_BYTES = 1 << 21


@constructor
class HyperplaneKNeighborsRegressor(FollowsX, RegressorMixin, BaseEstimator):
    """Numbers by the hyperplane through the nearest rows: local ridge regression.

    Nothing is trained; the rows are kept.

    Parameters
    ----------
    n_neighbors : int, default=15
        K, the number of neighbours; of fewer rows all. 1 is the target of the nearest row.
    alpha : "scale" or float, default="scale"
        lambda, the penalty on leaving the centroid of the neighbours, in squared units of the
        features; "scale" is `feature_variance_`. 0 is least squares on the neighbours, of least
        norm where these do not determine it; a large number gives the mean of their targets.
    n_components : int, optional
        How many leading principal components of the neighbours span the hyperplane; all if None.

    Attributes
    ----------
    reference_ : NearestRows
        The rows in lexicographic order.
    targets_ : ndarray of shape (n_samples, n_targets)
        Their targets.
    feature_variance_ : float
        Variance of the features, mean over these.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    HyperplaneKNeighborsClassifier : Classes, by the distance to the hyperplane of each.
    NadarayaWatsonRegressor : Means of all targets, weighted by the distance.

    Notes
    -----
    Bring features to one scale first: nearest rows and the penalty are in their units.

    Rows may be dense in ``fit`` and CSR in ``predict``, and the other way round. The parameters may
    be changed by ``set_params`` after ``fit``.

    References
    ----------
    P. Vincent, "Modeles a noyaux a structure locale", 2003, section 11.2.4.

    L. Bottou and V. Vapnik, "Local learning algorithms", Neural Computation 4, 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import HyperplaneKNeighborsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = HyperplaneKNeighborsRegressor(alpha=0.1).fit(X, y)
    >>> model.predict([[0.0], [1.5]]).round(1)
    array([0., 1.])
    """

    n_neighbors: int = positional(15)
    alpha: float | str = "scale"
    n_components: int | None = None

    def __sklearn_tags__(self) -> Any:
        """Sparse rows and several targets are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_integer("n_neighbors", self.n_neighbors)
        check_hyperplane(self.alpha, self.n_components)

    @following
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows and their targets.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        self : HyperplaneKNeighborsRegressor
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        X, y = read_data(self, X, y, accept_sparse="csr", multi_output=True, y_numeric=True)
        self._one_dimensional = y.ndim == 1
        Y = np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1)
        by_target = row_order(Y)
        order = by_target[row_order(X[by_target])]  # stable: equal rows stay in the order of Y
        self.reference_, self.targets_ = NearestRows(X[order]), Y[order]
        self.feature_variance_ = feature_variance(self.reference_.rows)
        return self

    @native
    def predict(self, X: Any) -> Array:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the form of the training targets.
        """
        check_is_fitted(self)
        self._check_parameters()
        values = self._values(read_data(self, X, reset=False, accept_sparse="csr"))
        return values[:, 0] if self._one_dimensional else values

    def _values(self, X: Any) -> Array:
        """Predictions, (n_rows, n_targets); from a device neighbours are sought there."""
        if namespace_of(X) is not None:
            with computing_beside(X):
                found: Array = alike(self._values(to_numpy(X)), X)
            return found
        index, targets = self.reference_, to_numpy(self.targets_)
        alpha = self.feature_variance_ if isinstance(self.alpha, str) else float(self.alpha)
        k = min(int(self.n_neighbors), len(index))
        dtype = np.result_type(X.dtype, index.rows.dtype)
        values = np.empty((X.shape[0], targets.shape[1]))
        copied = sparse.issparse(index.rows) != sparse.issparse(X)
        for block in blocks.row_blocks(X.shape[0], 32.0 * (k + copied * X.shape[1])):
            queries, into = index.alike(X[block]), values[block]
            found = index.nearest_sets(queries, [k]).found

            def fill(part: slice, queries: Any = queries, into: Array = into,
                     found: Array = found) -> None:  # fmt: skip
                local = LocalRows(gather(index.rows, found[part], queries[part], dtype))
                into[part] = hyperplane_values(
                    local, targets[found[part]], alpha, self.n_components
                )

            row_bytes = float(dtype.itemsize * X.shape[1] + 8 * targets.shape[1])
            parts = list(chunks(len(found), row_bytes * (k + 1), BATCH_BYTES))
            with blocks.blas_threads(row_bytes * (k + 1) * k):
                blocks.in_parallel(fill, parts)
        return values
