"""Squared distances between rows and prepared centres, exact wherever the fast form is not.

With a common shift s near the centres,

    |x - z|^2 = |x - s|^2 + |z - s|^2 - 2 (x - s)'(z - s)                              (1)

is one matrix product, [x - s, |x - s|^2, 1] @ matrix, whose rounding error is some units of
eps (|x - s|^2 + |z - s|^2). Where the distance is small beside |x - s|^2 (equal rows, and clusters
that are far from each other), that error is most of it: all pairs with

    |x - z|^2 <= 2 sqrt(eps) |x - s|^2,                                                (2)

which have lost half of their digits, are formed anew from the differences themselves, in float64.
Test (2) is relative, so no scale of the data matters; for ordinary data it finds equal rows alone.
The norm of z is not in it: where (2) holds, |z - s| is about |x - s|.

=============  =====================  ==========================================
symbol         name in code           shape
=============  =====================  ==========================================
x              ``X``                  (n, D), dense or CSR
z              ``centres.rows``       (m, D), dense or CSR
s              ``centres.shift``      (D,), None beside CSR rows, which keep their zeros
|z - s|^2      ``squared_norms``      (m,)
=============  =====================  ==========================================

Steps: `shifted_centres` once, then `squared_distances` for each block of rows. Cost: 2 n m (D + 2)
operations, and 3 D for each pair formed anew.

Device arrays (``_arrays.py``) go the same way by other calls, at the end of this file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from pursuit._arrays import alike, as_wide, is_single, namespace_of, promoted, to_numpy
from pursuit._typing import Array
from pursuit.linalg.factor import append_columns, squared_norms

__all__ = [
    "Centres",
    "common_shift",
    "feature_variance",
    "from_products",
    "inner",
    "pair_distances",
    "shifted_centres",
    "squared_distances",
]

# The shift is the median of about this many centres: more would not move it much.
SHIFT_ROWS = 256
# Of test (2): times sqrt(eps).
LOST = 2.0
# Bytes of the differences that are formed at a time: they stay in the cache.
DIFFERENCE_BYTES = 1 << 22
# The same on a device, where fewer and larger steps pay.
DEVICE_DIFFERENCE_BYTES = 1 << 27
# Above this share of all pairs whole rows of distances cost less than single pairs.
WHOLE_ROWS_SHARE = 0.125
# Single precision can square numbers between these, and add some squares up.
SINGLE_RANGE = (1e-15, 1e15)


class Centres(NamedTuple):
    """Centres ready for squared distances.

    Attributes
    ----------
    rows : {ndarray, CSR matrix} of shape (n_centres, n_features)
        The centres as they were given.
    shift : ndarray of shape (n_features,) or None
        Subtracted from dense rows.
    matrix : ndarray of shape (n_features + 2, n_centres) or None
        [x - s, |x - s|^2, 1] @ matrix is the squared distance.
    squared_norms : ndarray of shape (n_centres,)
        Of the shifted centres.
    """

    rows: Any
    shift: Array | None
    matrix: Any
    squared_norms: Array


def common_shift(rows: Array) -> Array:
    """Median of each feature over some of the rows: near most of them, beside any outlier.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        At least one row.
    """
    few = rows[:: max(1, len(rows) // SHIFT_ROWS)]
    return np.asarray(np.median(few, axis=0))


def feature_variance(X: Any, weights: Array | None = None) -> float:
    """Mean over the features of their variances.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        At least one row.
    weights : ndarray of shape (n_rows,), optional
        Weights of the rows.
    """
    shares = np.ones(X.shape[0]) if weights is None else weights
    variances = _sparse_variances if sparse.issparse(X) else _variances
    return float(variances(X.astype(np.float64), shares / shares.sum()).mean())


def _variances(X: Array, shares: Array) -> Array:
    """Variance of each feature, from differences."""
    shifted = X - X[0]
    shifted -= shares @ shifted
    return np.asarray(shares @ shifted**2)


def _sparse_variances(X: Any, shares: Array) -> Array:
    """Variance of each feature, from the entries other than zero."""
    means = X.T @ shares
    return np.asarray(np.maximum(X.multiply(X).T @ shares - means**2, 0.0))


def inner(X: Any, Z: Any) -> Array:
    """Inner products x'z, dense, of dense or CSR rows."""
    if (xp := namespace_of(X)) is not None:
        X, Z = promoted(xp, X, Z)
    elif sparse.issparse(X) or sparse.issparse(Z):
        # Two CSR matrices must have one type.
        return np.asarray(safe_sparse_dot(X.astype(Z.dtype), Z.T, dense_output=True))
    product: Array = X @ Z.T
    return product


def from_products(products: Array, *squared_norms: Array) -> Array:
    """Eq. (1) from inner products, in place, not repaired.

    Parameters
    ----------
    products : ndarray of shape (n_rows, n_columns)
        x'z, which is overwritten.
    *squared_norms : ndarray
        Of rows and columns, so that they broadcast. Those of the rows alone may be left out
        where nothing but the order of the columns matters.
    """
    products *= -2.0
    for norms in squared_norms:
        products += norms
    return products


def shifted_centres(Z: Any) -> Centres:
    """Prepare centres for `squared_distances`.

    Parameters
    ----------
    Z : {ndarray, CSR matrix} of shape (n_centres, n_features)
        Centres.
    """
    if namespace_of(Z) is not None:
        return _device_centres(Z)
    Z = _squarable(Z)
    if sparse.issparse(Z):
        return Centres(Z, None, None, row_norms(Z, squared=True))
    shift = common_shift(Z)
    shifted = Z - shift
    norms = squared_norms(shifted)
    return Centres(Z, shift, append_columns(-2.0 * shifted, (1.0, norms)).T, norms)


@np.errstate(over="ignore", invalid="ignore")  # rows beyond the squares of numbers, repaired
def squared_distances(X: Any, centres: Centres) -> Array:
    """|x_i - z_k|^2 of shape (n_rows, n_centres), exactly zero for equal rows and for no others.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        Rows.
    centres : Centres
        From `shifted_centres`.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.distances import shifted_centres, squared_distances
    >>> X = np.array([[-1e8], [1e8], [1e8 + 1.0]])
    >>> squared_distances(X[1:], shifted_centres(X))[:, 1:]
    array([[0., 1.],
           [1., 0.]])
    """
    Z, shift = centres.rows, centres.shift
    if namespace_of(X) is not None:
        return _device_distances(X, centres)
    kind = np.result_type(X.dtype, Z.dtype, np.float32)
    if shift is None or sparse.issparse(X):
        X = X.astype(kind, copy=False)  # nothing is lost beside the type of the centres
        norms = row_norms(X, squared=True)
        own = centres.squared_norms if shift is None else squared_norms(Z)
        distances = from_products(inner(X, Z), norms[:, None], own)  # eq. (1)
    elif len(Z) == 1:  # the shift is the centre itself: differences are the fast form
        return np.asarray(cdist(X, Z, "sqeuclidean")).astype(kind, copy=False)
    else:
        shifted = X - shift
        norms = squared_norms(shifted)
        distances = append_columns(shifted, (norms, 1.0)) @ centres.matrix  # eq. (1)
    _repair(distances, X, Z, norms)
    return distances


def pair_distances(X: Any, Z: Any, rows: Array, columns: Array) -> Array:
    """|x_i - z_k|^2 of single pairs from their differences, in float64.

    Parameters
    ----------
    X, Z : {ndarray, CSR matrix} of shape (n_rows, n_features) and (n_centres, n_features)
        Rows and centres.
    rows, columns : ndarray of int of shape (n_pairs,)
        i and k of each pair.

    Returns
    -------
    distances : ndarray of shape (n_pairs,)
        Squared distances.
    """
    distances = np.empty(len(rows))
    size = max(1, DIFFERENCE_BYTES // (8 * X.shape[1]))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        differences = X[rows[part]].astype(np.float64) - Z[columns[part]]
        distances[part] = row_norms(differences, squared=True)
    return distances


def _repair(distances: Array, X: Any, Z: Any, norms: Array) -> None:
    """Form the distances of test (2) anew, and those of rows whose squares are no numbers."""
    if not distances.size:
        return
    limits = LOST * float(np.sqrt(np.finfo(distances.dtype).eps)) * norms
    limits[~np.isfinite(norms)] = np.inf
    # One pass over the matrix says which rows are worth a second look.
    doubtful = np.flatnonzero(~(distances.min(axis=1) > limits))
    if not doubtful.size:
        return
    some = distances[doubtful]
    lost = np.flatnonzero(~(some > limits[doubtful, None]))  # eq. (2)
    rows, columns = np.divmod(lost, some.shape[1])
    dense = not (sparse.issparse(X) or sparse.issparse(Z))
    if dense and rows.size > WHOLE_ROWS_SHARE * some.size:
        exact = np.asarray(cdist(X[doubtful], Z, "sqeuclidean"))[rows, columns]
    else:
        exact = pair_distances(X, Z, doubtful[rows], columns)
    distances[doubtful[rows], columns] = exact


def _squarable(Z: Any) -> Any:
    """Rows in a floating type that can hold their squares: float64 for great or tiny numbers."""
    if Z.dtype != np.float32:
        return Z.astype(np.float64, copy=False)
    entries = np.abs(Z.data if sparse.issparse(Z) else Z)
    largest = float(entries.max(initial=0.0))
    fits = largest == 0.0 or SINGLE_RANGE[0] < largest < SINGLE_RANGE[1]
    return Z if fits else Z.astype(np.float64)


def _device_centres(Z: Any) -> Centres:
    """`shifted_centres` of device arrays."""
    xp = namespace_of(Z)
    if is_single(Z):
        largest = float(xp.max(xp.abs(Z)))
        fits = largest == 0.0 or SINGLE_RANGE[0] < largest < SINGLE_RANGE[1]
        Z = Z if fits else as_wide(Z)
    few = to_numpy(Z[:: max(1, Z.shape[0] // SHIFT_ROWS), :])
    shift = alike(np.median(few, axis=0), Z)
    shifted = Z - shift
    return Centres(Z, shift, shifted.T, xp.sum(shifted * shifted, axis=1))


def _device_distances(X: Any, centres: Centres) -> Array:
    """`squared_distances` of device arrays."""
    xp = namespace_of(X)
    X, matrix, own = promoted(xp, X, centres.matrix, centres.squared_norms)
    shifted = X - xp.astype(centres.shift, X.dtype, copy=False)
    norms = xp.sum(shifted * shifted, axis=1)
    distances = norms[:, None] + own[None, :] - 2.0 * (shifted @ matrix)  # eq. (1)
    limits = LOST * float(xp.finfo(X.dtype).eps) ** 0.5 * norms
    limits = xp.where(xp.isfinite(norms), limits, xp.inf)
    lost = ~(distances > limits[:, None])  # eq. (2)
    rows, columns = xp.nonzero(lost)
    if rows.shape[0]:
        exact = _device_pairs(X, centres.rows, rows, columns)
        distances[lost] = xp.astype(exact, X.dtype, copy=False)
    found: Array = distances
    return found


def _device_pairs(X: Any, Z: Any, rows: Any, columns: Any) -> Any:
    """`pair_distances` of device arrays."""
    xp = namespace_of(X)
    size = max(1, DEVICE_DIFFERENCE_BYTES // (8 * X.shape[1]))
    parts, n_pairs = [], int(rows.shape[0])
    for start in range(0, n_pairs, size):
        part = slice(start, min(start + size, n_pairs))
        x, z = xp.take(X, rows[part], axis=0), xp.take(Z, columns[part], axis=0)
        differences = as_wide(x) - as_wide(z)
        parts.append(xp.sum(differences * differences, axis=1))
    return xp.concat(parts)
