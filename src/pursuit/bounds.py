r"""Bounds on the expected loss, as functions of counts.

Hussain and Shawe-Taylor, Theory of matching pursuit (2008), theorems 2 to 4, and the kernel PCA
bound of Shawe-Taylor, Williams, Cristianini and Kandola (2005), with which section 2.2 compares.
Each holds with probability at least 1 - delta over m independent rows of one distribution.

====================  ==================  =========================================================
symbol                name in code        meaning
====================  ==================  =========================================================
m                     n_samples           rows of the training set
k (theorems 3, 4)     n_vectors           chosen basis vectors, training rows all of them
t (theorems 3, 4)     n_errors            rows outside the basis whose loss is above the tolerance
t (theorem 2, KPCA)   1, 2, ...           number of basis vectors or of principal components
R                     largest_loss        supremum of the loss (theorem 2)
====================  ==================  =========================================================

One inequality counts in all of them: ``C(N, d) <= sum_{i<=d} C(N, i) <= (e N / d)^d`` for d <= N.

Where the printed text slips, and what is computed here:

* Theorem 2 has R inside its root. Hoeffding's inequality for losses in [0, R] puts R before the
  root; the printed form is too small for R > 1. They are the same for the Gaussian kernel, R = 1.
* Theorem 3 leaves the base of its logarithms open; ``2^(-eps (m-k-t) / 2)`` in its proof, equation
  6, makes them logarithms to the base 2.
* The proof bounds the number of dichotomies by ``(4 e (m-k-t) / (k+1))^(k+1)``, the inequality
  above with N = 4 (m-k-t) and d = k + 1, which fails for d > N: there the printed expression falls
  and becomes negative. Here d is kept at N, from where on the bound says nothing in any case (it
  is above 11).
* Theorem 3 is stated for functions in the span of the k kernels. Its k + 1 leaves room for an
  intercept: in the space of the k + 1 coefficients the conditions ``f(x) - y = +-alpha`` of the
  proof's 2 (m-k-t) points are 4 (m-k-t) hyperplanes, and every dichotomy is a union of cells.
* Theorem 4 is printed with the expression of theorem 3. But ``f_x(x) - f_y(y)`` has k coefficients
  for each of the two views, so that the argument of theorem 3 gives 2 k + 1 in place of k + 1:
  ``cca_bound(..., form="derived")``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr, xlogy

from pursuit._typing import Array
from pursuit._validation import check_choice, check_integer, check_real

__all__ = [
    "cca_bound",
    "compression_bound",
    "kernel_pca_bound",
    "matching_pursuit_bound",
    "matching_pursuit_bound_path",
]


def compression_bound(
    mean_residuals: Any, n_samples: int, *, delta: float = 0.05, largest_loss: float = 1.0
) -> Array:
    r"""Sample compression bound of a subspace that t training rows span (theorem 2, corollary 1).

    For t = 1, 2, ... the mean loss of the rows outside the first t chosen, plus what sampling may
    hide::

        mean_t + R sqrt( (t ln(e m / t) + ln(2 m / delta)) / (2 (m - t)) )

    Their minimum over t <= k bounds the expected loss of the subspace of k rows, as a larger
    subspace has no larger residual; the t where it is attained is the suggested number of vectors.

    Parameters
    ----------
    mean_residuals : array-like of shape (k,)
        Mean loss of the m - t rows outside the first t chosen, for t = 1, ..., k with k < m.
    n_samples : int
        Number m of rows, the chosen ones included.
    delta : float, default 0.05
        One minus the confidence, in (0, 1).
    largest_loss : float, default 1.0
        Supremum R of the loss: 1 for a kernel with K(x, x) = 1.

    Returns
    -------
    terms : ndarray of shape (k,)
        The term of each t.

    Examples
    --------
    >>> from pursuit.bounds import compression_bound
    >>> terms = compression_bound([0.5, 0.1, 0.05, 0.04], 1000)
    >>> terms.round(3)
    array([0.596, 0.212, 0.175, 0.176])
    >>> int(terms.argmin()) + 1
    3
    """
    residuals = np.asarray(mean_residuals, dtype=np.float64)
    _check_confidence(n_samples, delta)
    check_real("largest_loss", largest_loss, above=True)
    if residuals.ndim != 1 or len(residuals) >= n_samples:
        raise ValueError(
            f"mean_residuals must be 1-d and shorter than n_samples = {n_samples}, "
            f"got the shape {residuals.shape}"
        )
    t = np.arange(1, len(residuals) + 1)
    exponent = _log_count(n_samples, t) + np.log(2 * n_samples / delta)
    terms: Array = residuals + largest_loss * np.sqrt(exponent / (2 * (n_samples - t)))
    return terms


def kernel_pca_bound(
    eigenvalues: Any, diagonal: Any, *, delta: float = 0.05, squared_radius: float | None = None
) -> Array:
    r"""Bound of Shawe-Taylor et al. (2005) on the residual of kernel PCA.

    For t = 1, 2, ... components the mean squared distance of the m rows to the space of the first
    t, plus what sampling may hide::

        (1/m) sum_{i > t} lambda_i + (1 + sqrt(t)) / sqrt(m) sqrt( (2/m) sum_i K(x_i, x_i)^2 )
            + R^2 sqrt( (18/m) ln(2 m / delta) )

    Their minimum over t <= k bounds the expected residual of k components.

    Parameters
    ----------
    eigenvalues : array-like of shape (k,)
        The k largest eigenvalues of the kernel matrix (not centred, not divided by m), in
        decreasing order. The sum of the others is the trace less the sum of these.
    diagonal : array-like of shape (m,)
        K(x_i, x_i) of the training rows.
    delta : float, default 0.05
        One minus the confidence, in (0, 1).
    squared_radius : float, optional
        R^2, the largest K(x, x) that may occur; by default the largest of `diagonal`.

    Returns
    -------
    terms : ndarray of shape (k,)
        The term of each t.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.bounds import kernel_pca_bound
    >>> kernel_pca_bound([8000.0, 1500.0, 400.0], np.ones(10000)).round(3)
    array([0.381, 0.237, 0.201])
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    norms = np.asarray(diagonal, dtype=np.float64)
    m = norms.size
    _check_confidence(m, delta, "the length of diagonal")
    if values.ndim != 1 or len(values) > m:
        raise ValueError(
            f"eigenvalues must be 1-d and no longer than diagonal ({m}), got shape {values.shape}"
        )
    radius = norms.max() if squared_radius is None else squared_radius
    check_real("squared_radius", float(radius))
    t = np.arange(1, len(values) + 1)
    tail = np.maximum(norms.sum() - np.cumsum(values), 0.0) / m
    spread = (1 + np.sqrt(t)) / np.sqrt(m) * np.sqrt(2 / m * (norms**2).sum())
    terms: Array = tail + spread + radius * np.sqrt(18 / m * np.log(2 * m / delta))
    return terms


def matching_pursuit_bound(
    n_samples: int, n_vectors: Any, n_errors: Any, *, delta: float = 0.05
) -> Any:
    r"""Bound on the probability of an error of kernel matching pursuit (theorem 3).

    An error is ``|f(x) - y| > alpha``, with a tolerance alpha > 0 that is fixed before the data
    are seen. With n = m - k - t rows neither in the basis nor errors, and logarithms to the base
    2::

        2/n [ (k+1) log(4 e n / (k+1)) + k log(e m / k) + t log(e (m-k) / t) + log(2 m^2 / delta) ]

    A term with k = 0 or t = 0 is 0. For targets +1 and -1 and alpha = 1 every row on the wrong
    side is an error. Kernel, its parameters and alpha must not depend on the data.

    Parameters
    ----------
    n_samples : int
        Number m of rows.
    n_vectors : int or array-like of int
        Number k of basis vectors, 0 <= k < m.
    n_errors : int or array-like of int
        Number t of errors among the m - k rows outside the basis; m - k - t must be positive.
    delta : float, default 0.05
        One minus the confidence, in (0, 1).

    Returns
    -------
    bound : float or ndarray
        In the shape of `n_vectors` and `n_errors` together. Above 1 it says nothing; it may serve
        to compare numbers of vectors all the same.

    Examples
    --------
    >>> from pursuit.bounds import matching_pursuit_bound
    >>> matching_pursuit_bound(100_000, [10, 20, 40], [3000, 1000, 900]).round(3)
    array([0.41 , 0.176, 0.173])
    """
    return _bound(n_samples, n_vectors, n_errors, 1, delta)


def _bound(n_samples: int, n_vectors: Any, n_errors: Any, views: int, delta: float) -> Any:
    """Theorem 3 for functions of so many coefficients a basis vector."""
    _check_confidence(n_samples, delta)
    k, t = np.broadcast_arrays(  # counts in float64: their products do not overflow
        _counts("n_vectors", n_vectors), _counts("n_errors", n_errors)
    )
    if (k >= n_samples).any():
        raise ValueError(f"n_vectors must be below n_samples = {n_samples}, got {k.max():g}")
    n = n_samples - k - t
    if (n <= 0).any():
        raise ValueError(
            "n_errors must leave at least one row: n_samples - n_vectors - n_errors is "
            f"{n.min():g}, with n_samples = {n_samples}"
        )
    bits = (
        _log_count(4 * n, np.minimum(views * k + 1, 4 * n))
        + _log_count(n_samples, k)
        + _log_count(n_samples - k, t)
        + np.log(2 * float(n_samples) ** 2 / delta)
    ) / np.log(2)
    bound = 2 / n * bits
    return bound if bound.ndim else float(bound)


def cca_bound(
    n_samples: int, n_vectors: Any, n_errors: Any, *, delta: float = 0.05, form: str = "printed"
) -> Any:
    r"""Bound on the probability that the two views of sparse kernel CCA disagree (theorem 4).

    The expression of `matching_pursuit_bound`; an error is ``|f_x(x) - f_y(y)| > alpha``, with the
    projections f_x and f_y of the two views.

    Parameters
    ----------
    n_samples : int
        Number m of pairs.
    n_vectors : int or array-like of int
        Number k of chosen pairs, 0 <= k < m.
    n_errors : int or array-like of int
        Number t of errors among the m - k pairs outside the basis; m - k - t must be positive.
    delta : float, default 0.05
        One minus the confidence, in (0, 1).
    form : {"printed", "derived"}, default "printed"
        The expression as the paper has it, or with 2 k + 1 in place of k + 1 for the 2 k
        coefficients of ``f_x - f_y``, which the argument of theorem 3 asks for.

    Returns
    -------
    bound : float or ndarray
        In the shape of `n_vectors` and `n_errors` together.

    Examples
    --------
    >>> from pursuit.bounds import cca_bound
    >>> round(cca_bound(100_000, 20, 1000), 3)
    0.176
    >>> round(cca_bound(100_000, 20, 1000, form="derived"), 3)
    0.182
    """
    check_choice("form", form, ("printed", "derived"))
    return _bound(n_samples, n_vectors, n_errors, 1 if form == "printed" else 2, delta)


def matching_pursuit_bound_path(
    n_samples: int, n_vectors: Any, n_errors: Any, *, delta: float = 0.05
) -> Array:
    """`matching_pursuit_bound` after each step of a path, infinite where it is not defined.

    Section 3 of the paper stops where this no longer falls, which is what `stopping.best_prefix`
    finds.

    Parameters
    ----------
    n_samples : int
        Number m of rows.
    n_vectors, n_errors : array-like of int of shape (n_steps,)
        Counts k and t after each step. The bound is infinite where no row is left that is neither
        in the basis nor an error.
    delta : float, default 0.05
        One minus the confidence, in (0, 1).

    Returns
    -------
    bounds : ndarray of shape (n_steps,)
        The bound after each step.

    Examples
    --------
    >>> from pursuit.bounds import matching_pursuit_bound_path
    >>> from pursuit.greedy.stopping import best_prefix
    >>> path = matching_pursuit_bound_path(1000, [1, 2, 3, 4], [999, 50, 10, 10])
    >>> path.round(3)
    array([  inf, 0.779, 0.367, 0.404])
    >>> best_prefix(path, patience=1).n_steps
    3
    """
    k, t = np.broadcast_arrays(_counts("n_vectors", n_vectors), _counts("n_errors", n_errors))
    defined = k + t < n_samples
    bounds = np.full(k.shape, np.inf)
    bounds[defined] = matching_pursuit_bound(n_samples, k[defined], t[defined], delta=delta)
    return bounds


def _log_count(n: Any, d: Any) -> Array:
    """``d ln(e n / d)``, which bounds the logarithm of ``C(n, 0) + ... + C(n, d)``; 0 for d = 0."""
    return np.asarray(xlogy(d, n) + d + entr(d))


def _counts(name: str, values: Any) -> Array:
    """Counts as float64; raise unless they are whole and not negative."""
    counts = np.asarray(values, dtype=np.float64)
    wrong = ~((counts >= 0) & (counts == np.floor(counts)) & np.isfinite(counts))
    if wrong.any():
        raise ValueError(
            f"{name} must hold whole numbers of at least 0, got {counts[wrong].flat[0]:g}"
        )
    return counts


def _check_confidence(n_samples: Any, delta: Any, name: str = "n_samples") -> None:
    check_integer(name, n_samples)
    check_real("delta", delta, below=1.0, above=True)
