"""Support vector machines on given expansion vectors, and the energy of given functions on these.

M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005; the
equation numbers are theirs.

Problem. Given n samples x_i with labels y_i = +-1 and bounds u_i = C c_i (c the sample weights),
and N_z vectors z_j, find f(x) = sum_j beta_j K(z_j, x) + b that minimises

    1/2 beta' K_z beta + sum_i u_i max(0, 1 - y_i f(x_i))                       (eq. 11-14, 16-18)

===========  =================  =========================================================
symbol       name in code       shape and meaning
===========  =================  =========================================================
psi_z(x)     ``values``         (n, N_z) K(x_i, z_j), the empirical kernel map   (eq. 19)
K_z          ``gram``           (N_z, N_z) kernel values among the vectors
R            ``factor``         upper triangular, R'R = K_z, so that T = R^{-T}  (eq. 30)
phi_z(x)     ``features``       (n, N_z) psi_z R^{-1}, the whitened map          (eq. 29)
w            ``weights``        (N_z,) R beta; |w|^2 = beta' K_z beta
===========  =================  =========================================================

That is a linear support vector machine on phi_z (``pursuit.optimize.svm``), and
beta = R^{-1} w = K_z^{-1} P (alpha y), P = K(Z, X)                                   (eq. 24, 33).

The energy. For coefficients a (n,), fixed,

    J(Z; a) = 1/2 u' K_z^{-1} u,    u = P a,    beta = K_z^{-1} u,
    dJ/dz_i = beta_i sum_j a_j dK(z_i, x_j)/dz_i - beta_i sum_m beta_m dK(z_i, z_m)/dz_i.

The reduced set method (eq. 4, 35) maximises it. W(Z) (eq. 10, 32) is sum_i alpha_i - J(Z; alpha y);
``variable_projection.py`` follows it.

Where we differ. K_z has its diagonal multiplied by 1 + 1e-8, here and in every derivative, so that
vectors that coincide leave it definite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit._validation import refuse_not_finite
from pursuit.kernels import Kernel
from pursuit.linalg import blocks
from pursuit.linalg.factor import cholesky, solve_right, solve_transposed, solve_upper
from pursuit.optimize.svm import MarginSolution, solve_margin

__all__ = [
    "VectorSolution",
    "definite_factor",
    "energy",
    "features",
    "jittered",
    "solve_on_values",
    "solve_on_vectors",
    "whitened",
]

# The diagonal of K_z is multiplied by one plus this: coinciding vectors leave it definite.
JITTER = 1e-8
# Entries of a block of kernel values that stays in the processor's cache.
CHUNK_ENTRIES, SMALLEST_CHUNK = 1 << 17, 64
# Operations above which blocks, and outputs, are worth a thread each.
PARALLEL_WORK, PARALLEL_OUTPUTS = 1e8, 1e6


class VectorSolution(NamedTuple):
    """SVMs on the same expansion vectors, one an output.

    Attributes
    ----------
    outputs : tuple of MarginSolution
        One for each of the T columns of the labels.
    beta : ndarray of shape (N_z, T)
        Coefficients of the kernel functions.
    intercept : ndarray of shape (T,)
        b.
    """

    outputs: tuple[MarginSolution, ...]
    beta: Array
    intercept: Array

    @property
    def objective(self) -> float:
        """W(Z), the sum of the primal objectives."""
        return sum(output.objective for output in self.outputs)

    @property
    def gap(self) -> float:
        """Duality gap of the sum, relative."""
        total = sum(output.gap * output.objective for output in self.outputs)
        return total / self.objective if self.objective > 0 else 0.0

    def signed(self, Y: Array) -> Array:
        """Coefficients a = alpha y of each output, (n, T)."""
        return np.stack([output.alpha for output in self.outputs], axis=1) * Y


def whitened(kernel: Kernel, Z: Array) -> Array:
    """R, upper triangular, with R'R = K_z, whose diagonal is multiplied by 1 + 1e-8.

    Raises
    ------
    ValueError
        If the kernel matrix of the vectors is not positive semidefinite.
    """
    return definite_factor(kernel, jittered(kernel(Z, Z) if len(Z) else np.empty((0, 0))))


def definite_factor(kernel: Kernel, gram: Array) -> Array:
    """R of K_z with its diagonal as it is to be; the error is that of `whitened`."""
    with blocks.blas_threads(1.0 * len(gram) ** 3):
        factor = cholesky(gram)
    if len(factor) < len(gram) or not np.isfinite(factor).all():
        raise ValueError(f"kernel: {kernel} is not positive semidefinite on the expansion vectors")
    return factor


def jittered(gram: Array, jitter: float = JITTER) -> Array:
    """The matrix with its diagonal times 1 + jitter; a zero becomes the unit of that."""
    diagonal = gram.diagonal()
    floor = jitter * (float(np.abs(diagonal).max(initial=0.0)) or 1.0)
    return np.asarray(gram + np.diag(np.where(diagonal > 0, jitter * diagonal, floor)))


def features(values: Array, factor: Array) -> Array:
    """phi_z of rows from their kernel values with the vectors (eq. 29).

    Parameters
    ----------
    values : ndarray of shape (n, N_z)
        K(x_i, z_j).
    factor : ndarray of shape (N_z, N_z)
        R from `whitened`.
    """
    return solve_right(values, factor) if len(factor) else values


def solve_on_vectors(
    kernel: Kernel,
    Z: Array,
    X: Any,
    Y: Array,
    bounds: Array,
    *,
    tol: float = 1e-6,
    starts: Sequence[MarginSolution] | None = None,
) -> VectorSolution:
    """SVMs on given expansion vectors (eq. 16-18), one for each column of labels.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite.
    Z : ndarray of shape (N_z, d)
        Expansion vectors in float64.
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    Y : ndarray of shape (n, T)
        Labels +1 and -1.
    bounds : ndarray of shape (n,)
        C c_i.
    tol : float, default 1e-6
        Relative duality gap of each.
    starts : sequence of MarginSolution, optional
        Those for other vectors nearby.

    Returns
    -------
    solution : VectorSolution
        Coefficients, and W(Z) as ``solution.objective``.

    Raises
    ------
    ValueError
        If the kernel is not positive semidefinite on the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> from pursuit.optimize.svm_on_vectors import solve_on_vectors
    >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [-1.0], [1.0]])
    >>> solution = solve_on_vectors(RBF(1.0), X, X, Y, np.full(3, 100.0))
    >>> values = RBF(1.0)(X, X) @ solution.beta + solution.intercept
    >>> bool((values * Y > 0.999).all())
    True
    """
    factor = whitened(kernel, Z)  # eq. 30
    return solve_on_values(_values(kernel, Z, X), factor, Y, bounds, tol=tol, starts=starts)


def solve_on_values(
    values: Array,
    factor: Array,
    Y: Array,
    bounds: Array,
    *,
    tol: float = 1e-6,
    starts: Sequence[MarginSolution] | None = None,
) -> VectorSolution:
    """SVMs from kernel values with the vectors (n, N_z) and R; see `solve_on_vectors`."""
    if not np.isfinite(values).all():
        refuse_not_finite(values, 0)
    with blocks.blas_threads(1.0 * values.size * len(factor)):
        phi = features(values, factor)  # eq. 29

    def solve(t: int) -> MarginSolution:
        return solve_margin(phi, Y[:, t], bounds, tol=tol, start=starts[t] if starts else None)

    large = phi.size * len(factor) > PARALLEL_OUTPUTS
    outputs = tuple(blocks.in_parallel(solve, range(Y.shape[1]), parallel=large))
    weights = np.stack([output.weights for output in outputs], axis=1)
    beta = solve_upper(factor, weights) if len(factor) else weights  # eq. 24, 33
    return VectorSolution(outputs, beta, np.array([output.bias for output in outputs]))


def _values(kernel: Kernel, Z: Array, X: Any) -> Array:
    """K(x_i, z_j), few enough rows at a time that their copies stay in the processor's cache."""
    n_rows, n_features = X.shape
    values = np.empty((n_rows, len(Z)))
    if not len(Z):
        return values
    prepared = kernel.prepare(Z)
    size = max(SMALLEST_CHUNK, CHUNK_ENTRIES // (n_features + len(Z)))
    chunks = [slice(start, start + size) for start in range(0, n_rows, size)]

    def fill(rows: slice) -> None:
        values[rows] = kernel.evaluate(X[rows], prepared)

    blocks.in_parallel(fill, chunks, parallel=n_features * values.size > PARALLEL_WORK)
    return values


def energy(kernel: Kernel, Z: Array, X: Any, A: Array) -> tuple[float, Array, Array]:
    """J(Z; a), summed over the columns a of `A`, with its gradient in Z.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite, with a derivative.
    Z : ndarray of shape (N_z, d)
        Vectors in float64.
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    A : ndarray of shape (n, T)
        Coefficients; rows of zeros cost nothing.

    Returns
    -------
    J : float
        Half the squared norm of the projection of sum_j a_j phi(x_j) onto the vectors' span.
    gradient : ndarray of shape (N_z, d)
        dJ/dZ.
    beta : ndarray of shape (N_z, T)
        Coefficients of the projection.

    Raises
    ------
    ValueError
        If the kernel has no derivative or is not positive semidefinite on the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> from pursuit.optimize.svm_on_vectors import energy
    >>> X = np.array([[0.0], [1.0]])
    >>> J, gradient, beta = energy(RBF(1.0), np.array([[0.5]]), X, np.ones((2, 1)))
    >>> round(J, 4), gradient, beta.round(4)
    (1.2131, array([[0.]]), array([[1.5576]]))
    """
    if not len(Z):
        return 0.0, np.zeros(Z.shape), np.zeros((0, A.shape[1]))
    rows = np.flatnonzero(A.any(axis=1))
    kept = A[rows]
    factor = whitened(kernel, Z)
    prepared = kernel.prepare(Z)
    parts = list(blocks.row_blocks(len(rows), 8.0 * (4 * len(Z) + 2 * X.shape[1])))
    u = np.zeros((len(Z), A.shape[1]))
    for part in parts:
        u += kernel.evaluate(X[rows[part]], prepared).T @ kept[part]
    half = solve_transposed(factor, u)  # |half|^2 = u' K_z^{-1} u
    beta = solve_upper(factor, half)
    try:
        gradient = -kernel.weighted_gradient(Z, Z, jittered(beta @ beta.T))
        for part in parts:
            gradient += kernel.weighted_gradient(Z, X[rows[part]], beta @ kept[part].T)
    except NotImplementedError:
        raise ValueError(f"kernel: {kernel} has no derivative in its vectors") from None
    return 0.5 * float((half * half).sum()), gradient, beta
