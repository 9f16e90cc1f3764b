"""Few vectors in place of many: the reduced set method.

C. Burges, "Simplified support vector decision rules", ICML 1996; M. Wu, B. Schoelkopf and G. Bakir,
"Building sparse large margin classifiers", ICML 2005, whose equation numbers these are; the
fixed point is that of B. Schoelkopf et al., "Input space versus feature space in kernel-based
methods", IEEE Transactions on Neural Networks 10, 1999.

Problem. Given T functions Psi_t = sum_i a_it phi(x_i) with the same m vectors x_i, find n vectors
z_j and coefficients beta that minimise

    sum_t |Psi_t - sum_j beta_jt phi(z_j)|^2                                         (eq. 4)

in the feature space of the kernel K.

===========  ======================  =============================================
symbol       name in code            shape and meaning
===========  ======================  =============================================
x, a         ``X``, ``A``            (m, d), (m, T) the expansions
z, beta      ``Z``, ``coefficients``  (n, d), (n, T) the reduced ones
R            ``factor``              (n, n) upper triangular, R'R = K(Z, Z)
q_j          ``basis``               (m, n) K(X, Z) R^{-1}
c_jt         ``projections``         (n, T) <Psi_t, q_j> = sum_i a_it q_j(x_i)
r_t(x)       ``values``              (m, T) Psi_t less its projection, at the rows
s(x)         ``distances``           (m,) K(x, x) - sum_j q_j(x)^2
===========  ======================  =============================================

For given z the best beta is K(Z, Z)^{-1} K(Z, X) A, and what is left is sum_t |Psi_t|^2 - 2 J with
the energy J(Z; a) of ``svm_on_vectors.py`` (eq. 35). Steps:

1. Vectors x_i that are equal become one. Where no more than n are left they are the answer.
2. n times, or until the relative error is below the tolerance: take the row whose addition lowers
   the error most, by 1/2 sum_t r_t(x_i)^2 / s(x_i), and move it towards a maximum of
   sum_t r_t(z)^2 / K(z, z). For the Gaussian that is the fixed point

       z <- sum_i p_i x_i / sum_i p_i,    p_i = a'_i r(z) K(x_i, z),

   over the residual's own expansion (the x_i with a, the z_j with -beta), where the sum of the p_i
   is |r(z)|^2; for other kernels a few steps of L-BFGS. Signed p_i may throw z to where |r| is
   smaller: the search has collapsed, and the next best row is tried. A move is kept only if the
   error falls by more than without it.
3. L-BFGS on all z together, with the gradient of J. Where few vectors nearly span the functions
   already, every number of vectors has its joint search on the way, and the best set is kept.

Cost: m^2 d once; m (d + n) for each vector of step 2; m n d for each of step 3. The basis, m n
numbers, is kept.

Where we differ. Several functions share their vectors (one column of A each). The start compares
rows by what they gain beside the vectors so far, not by the residual alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.utils.extmath import row_norms

from pursuit._typing import Array, Watch
from pursuit._validation import fits_single
from pursuit.geometry.linear_maps import image, preimage
from pursuit.geometry.unique_rows import equal_rows
from pursuit.kernels import CosinePolynomial, Kernel, Polynomial, Sigmoid, is_gaussian
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_transposed, solve_upper
from pursuit.linalg.partial_cholesky import REDUCTION_RANK
from pursuit.optimize.svm_on_vectors import energy, whitened

__all__ = [
    "Reduction",
    "check_reducible",
    "distinct",
    "function_products",
    "reduce_expansion",
    "squared_errors",
]

# Steps of the search for one vector, and rows it may start from.
MOST_MOVES, MOST_STARTS = 4, 2
# A move that gains less than this share ends the search for one vector.
SMALL_GAIN = 1e-3
# So small a share of a squared norm is rounding.
NOTHING = 1e-15
# The joint search ends when all steps it may take, each as good as the last one, would lower the
# squared error by less than this share.
LITTLE_LEFT = 0.01
# So few vectors have a joint search on the way where the start leaves less than this share.
FEW, NEARLY = 8, 0.25


class Reduction(NamedTuple):
    """Functions on few vectors.

    Attributes
    ----------
    vectors : {ndarray, CSR matrix} of shape (n, d)
        z; a CSR matrix only where they are the given ones.
    coefficients : ndarray of shape (n, T)
        beta.
    relative_error : float
        sqrt(sum_t |Psi_t - reduced|^2 / sum_t |Psi_t|^2).
    relative_errors : ndarray of shape (T,)
        |Psi_t - reduced| / |Psi_t|.
    stop_reason : str
        ``"exact"``: no more than n distinct vectors; ``"tol"``: fewer than n reach the tolerance;
        ``"span"``: fewer than n leave no more; ``"n_components"``; or what a watch said.
    n_iter : int
        Steps of the joint search.
    squared_norm : float
        sum_t |Psi_t|^2.
    """

    vectors: Any
    coefficients: Array
    relative_error: float
    relative_errors: Array
    stop_reason: str
    n_iter: int
    squared_norm: float


def check_reducible(kernel: Kernel) -> None:
    """Raise unless the kernel has a feature space and a derivative.

    Raises
    ------
    ValueError
        For the sigmoid kernel, and for kernels that are functions or matrices.
    """
    if isinstance(kernel, Sigmoid):
        raise ValueError(
            "kernel: the sigmoid kernel is not positive semidefinite; there is no feature space "
            "in which an error could be measured"
        )
    if isinstance(kernel, Polynomial | CosinePolynomial) and kernel.coef0 < 0:
        raise ValueError(f"kernel: {kernel} is not positive semidefinite, its coef0 is negative")
    if type(kernel).weighted_gradient is Kernel.weighted_gradient:
        raise ValueError(
            f"kernel: vectors can only be moved under a kernel with a derivative (rbf, polynomial, "
            f"linear, laplacian, cosine, cosine_polynomial), got {kernel!r}"
        )


def distinct(X: Any, A: Array) -> tuple[Any, Array]:
    """Rows that differ, in their order, with the summed coefficients; those without any left out.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (m, d)
        Vectors.
    A : ndarray of shape (m, T)
        Coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.svm.reduction import distinct
    >>> X, A = distinct(np.array([[1.0], [2.0], [1.0]]), np.array([[1.0], [5.0], [2.0]]))
    >>> X.tolist(), A.tolist()
    ([[1.0], [2.0]], [[3.0], [5.0]])
    """
    used = np.flatnonzero(A.any(axis=1))
    X, A = X[used], A[used]
    first, place = equal_rows(X)
    sums = np.zeros((len(first), A.shape[1]))
    np.add.at(sums, place, A)
    kept = np.flatnonzero(sums.any(axis=1))
    return X[first[kept]], sums[kept]


def function_products(kernel: Kernel, X: Any, A: Array) -> Array:
    """Values K(X, X) A of the functions at their own vectors, (m, T), block by block."""
    prepared = kernel.prepare(X)
    values = np.empty(A.shape)
    for rows in blocks.row_blocks(len(A), 16.0 * len(A)):
        part = blocks.evaluate(lambda block: kernel.evaluate(block, prepared), X[rows], len(A))
        values[rows] = part @ A
    return values


def reduce_expansion(
    kernel: Kernel,
    X: Any,
    A: Array,
    n_vectors: int,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    equal: bool = False,
    watch: Watch[Callable[[], Reduction]] | None = None,
) -> Reduction:
    """Approximate functions sum_i A[i, t] K(x_i, .) by ones on `n_vectors` vectors.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite, with a derivative.
    X : {ndarray, CSR matrix} of shape (m, d)
        Vectors.
    A : ndarray of shape (m, T)
        Coefficients, one column a function.
    n_vectors : int
        The budget n.
    tol : float, default 1e-3
        Relative error in the feature space at which fewer vectors do.
    max_iter : int, default 100
        Steps of the joint search at most; 0 leaves the vectors where the start put them. The
        search ends where that many steps like the last one would gain less than 1 %.
    equal : bool, default False
        Whether each function counts by its relative error, whatever its norm.
    watch : callable, optional
        Called after each vector and each step of the joint search with a function that gives what
        has been found so far; a text ends the search and says why.

    Returns
    -------
    reduction : Reduction
        Vectors, coefficients and what they lack.

    Raises
    ------
    ValueError
        If the kernel is of no use here.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> from pursuit.svm.reduction import reduce_expansion
    >>> X = np.array([[0.0], [0.2], [5.0]])
    >>> small = reduce_expansion(RBF(1.0), X, np.ones((3, 1)), 2)
    >>> small.vectors.round(2).tolist(), round(small.relative_error, 3)
    ([[0.1], [5.0]], 0.013)
    """
    check_reducible(kernel)
    X, A = distinct(_as_float64(X), A)
    values = function_products(kernel, X, A) if len(A) else A
    squared_norms = np.maximum((A * values).sum(axis=0), 0.0)
    squared_norm = float(squared_norms.sum())
    if A.shape[0] <= n_vectors or not squared_norm:
        kept = slice(None if squared_norm else 0)
        return Reduction(X[kept], A[kept], 0.0, 0.0 * squared_norms, "exact", 0, squared_norm)
    units = np.sqrt(np.where(squared_norms > 0, squared_norms, 1.0)) if equal else 1.0
    A, squared_norms = A / units, squared_norms / units**2
    plain, scale = kernel.split()
    known = np.where(squared_norms > 0, squared_norms, 1.0)

    def reduction(found: _Set, stop_reason: str = "n_components") -> Reduction:
        return Reduction(
            preimage(found.vectors, scale),
            units * found.coefficients,
            found.error,
            np.sqrt(found.errors / known),
            stop_reason,
            found.n_iter,
            squared_norm,
        )

    look = None if watch is None else lambda find: watch(lambda: reduction(find()))
    start = _Start(plain, image(X, scale), A, values / units, n_vectors, look)
    return reduction(*_smallest(start, n_vectors, tol, max_iter))


class _Set(NamedTuple):
    """Vectors with the best coefficients, what they leave, relative and squared, and the steps."""

    vectors: Array
    coefficients: Array
    error: float
    errors: Array
    n_iter: int


def _smallest(start: _Start, n_vectors: int, tol: float, max_iter: int) -> tuple[_Set, str]:
    """Steps 2 and 3: the first set that reaches the tolerance, or the best; and why it ended."""
    best: _Set | None = None
    for n in range(min(1, n_vectors), n_vectors + 1):
        reason = start.grow(n, tol)
        final = reason != "n_components" or n == n_vectors
        if not final and not (max_iter and n <= FEW and start.left < NEARLY**2 * start.total):
            continue
        found = start.moved(max_iter)
        best = found if best is None or found.error < best.error else best
        if final or start.stopped or best.error <= tol:
            break
    assert best is not None
    if start.stopped:
        reason = start.stopped
    elif len(best.vectors) < n_vectors:
        reason = "tol" if NOTHING < best.error**2 <= tol**2 else "span"
    return best, reason


def _as_float64(X: Any) -> Any:
    return (
        sparse.csr_matrix(X, dtype=np.float64) if sparse.issparse(X) else np.array(X, dtype=float)
    )


def _projection(
    kernel: Kernel, Z: Array, X: Any, A: Array, squared_norms: Array
) -> tuple[Array, Array]:
    """The best coefficients on Z, and the squared error of each function."""
    if not len(Z):
        return np.zeros((0, A.shape[1])), squared_norms
    factor, u = whitened(kernel, Z), _inner_products(kernel, Z, X, A)
    beta = solve_upper(factor, solve_transposed(factor, u))
    return beta, _squared_errors(kernel, Z, beta, u, squared_norms)


def _inner_products(kernel: Kernel, Z: Array, X: Any, A: Array) -> Array:
    """<phi(z_j), Psi_t>, (n, T)."""
    prepared, u = kernel.prepare(Z), np.zeros((len(Z), A.shape[1]))
    for rows in blocks.row_blocks(len(A), 16.0 * (len(Z) + X.shape[1])):
        u += kernel.evaluate(X[rows], prepared).T @ A[rows]
    return u


def _squared_errors(kernel: Kernel, Z: Array, beta: Array, u: Array, squared_norms: Array) -> Array:
    """|Psi_t - sum_j beta_jt phi(z_j)|^2 from the inner products."""
    inside = (beta * (kernel(Z, Z) @ beta - 2.0 * u)).sum(axis=0)
    return np.asarray(np.maximum(squared_norms + inside, 0.0))


def squared_errors(
    kernel: Kernel, Z: Array, beta: Array, X: Any, A: Array, squared_norms: Array
) -> Array:
    """Squared errors of functions on other vectors in the feature space, (T,).

    Parameters
    ----------
    kernel : Kernel
        K.
    Z, beta : ndarray of shape (n, d), (n, T)
        The functions on few vectors.
    X, A : {ndarray, CSR matrix} of shape (m, d), ndarray of shape (m, T)
        Those on many.
    squared_norms : ndarray of shape (T,)
        Squared norms of those.
    """
    u = _inner_products(kernel, Z, X, A)
    return _squared_errors(kernel, Z, beta, u, squared_norms)


def _move_together(
    kernel: Kernel,
    Z: Array,
    X: Any,
    A: Array,
    squared_norms: Array,
    max_iter: int,
    watch: Callable[[Array, int], str | None],
) -> tuple[Array, int]:
    """Maximise J over all vectors at once; the vectors, and the number of steps.

    The objective is the squared error in units of that at the start, the variables are measured
    in the width of the kernel or the spread of the vectors. `watch` looks at the vectors and the
    number of steps so far.
    """
    if not (max_iter and len(Z)):
        return Z, 0
    unit, total = _length(kernel, Z), float(squared_norms.sum())
    left = max(total - 2.0 * energy(kernel, Z, X, A)[0], np.finfo(float).eps * total)

    def objective(flat: Array) -> tuple[float, Array]:
        try:
            J, gradient, _ = energy(kernel, unit * flat.reshape(Z.shape), X, A)
        except ValueError:  # a step so long that kernel values are out of range
            J, gradient = 0.0, np.zeros(Z.shape)
        return (total - 2.0 * J) / left, (-2.0 * unit / left) * gradient.ravel()

    steps = count(1)

    def look(intermediate_result: Any) -> None:
        if watch(unit * intermediate_result.x.reshape(Z.shape), next(steps)):
            raise StopIteration

    with np.errstate(over="ignore", invalid="ignore"):
        found = minimize(
            objective,
            Z.ravel() / unit,
            jac=True,
            method="L-BFGS-B",
            callback=look,
            options={"maxiter": max_iter, "ftol": LITTLE_LEFT / max_iter, "gtol": 1e-8},
        )
    better = np.isfinite(found.x).all() and found.fun <= 1.0
    return (unit * found.x.reshape(Z.shape) if better else Z), int(found.nit)


def _length(kernel: Kernel, Z: Array) -> float:
    """The distance over which the kernel changes."""
    if is_gaussian(kernel):
        return float(1.0 / np.sqrt(2.0 * kernel.gamma))
    spread = float(np.sqrt(np.square(Z).sum(axis=1).mean() / Z.shape[1]))
    return spread if spread > 0 else 1.0


class _Start:
    """Vectors one at a time, and what they leave of the functions."""

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        A: Array,
        values: Array,
        n_vectors: int,
        watch: Watch[Callable[[], _Set]] | None = None,
    ) -> None:
        self.kernel, self.X, self.A, self.values = kernel, X, A, values
        self.watch, self.stopped = watch, ""
        self.squared_norms = np.maximum((A * values).sum(axis=0), 0.0)
        self.total = float(self.squared_norms.sum())
        self.diagonal = kernel.diagonal(X)
        self.distances = self.diagonal.copy()
        self._Z = np.zeros((n_vectors, X.shape[1]))
        self._basis = np.zeros((len(A), n_vectors), order="F")
        self._factor = np.zeros((n_vectors, n_vectors))
        self._projections = np.zeros((n_vectors, A.shape[1]))
        self._n = 0
        self._gaussian = _GaussianRows(X, float(kernel.gamma)) if is_gaussian(kernel) else None

    @property
    def vectors(self) -> Array:
        """The z so far."""
        return self._Z[: self._n]

    @property
    def coefficients(self) -> Array:
        """The best coefficients on them."""
        n = self._n
        return solve_upper(self._factor[:n, :n], self._projections[:n])

    @property
    def left(self) -> float:
        """Squared error of the vectors so far."""
        return self.total - float((self._projections[: self._n] ** 2).sum())

    def moved(self, max_iter: int) -> _Set:
        """The set that the joint search finds from here."""
        problem = (self.X, self.A, self.squared_norms)
        n_left = 0 if self.stopped else max_iter
        Z, n_iter = _move_together(
            self.kernel,
            self.vectors.copy(),
            *problem,
            n_left,
            lambda Z, n: self._look(lambda: self._on(Z, n)),
        )
        return self._on(Z, n_iter)

    def _on(self, Z: Array, n_iter: int) -> _Set:
        """The best coefficients on given vectors."""
        beta, errors = _projection(self.kernel, Z, self.X, self.A, self.squared_norms)
        return _Set(Z, beta, float(np.sqrt(errors.sum() / self.total)), errors, n_iter)

    def _look(self, find: Callable[[], _Set]) -> str:
        """Why the search shall end, if there is a reason."""
        if self.watch is not None and not self.stopped:
            self.stopped = self.watch(find) or ""
        return self.stopped

    def grow(self, n_vectors: int, tol: float) -> str:
        """Add vectors; return why it ended."""
        total = self.total
        while self._n < n_vectors:
            left = self.left
            if left <= max(tol**2, NOTHING) * total:
                return "tol" if left > NOTHING * total else "span"
            gains = np.square(self.values).sum(axis=1)
            usable = self.distances > REDUCTION_RANK * self.diagonal
            gains = np.divide(gains, self.distances, out=np.zeros_like(gains), where=usable)
            if not gains.max() > NOTHING * total:
                return "span"
            self._add(self._best(gains))
            if reason := self._look(lambda: self._on(self.vectors.copy(), 0)):
                return reason
        return "n_components"

    def _best(self, gains: Array) -> _Addition:
        """The best row, or what the first search that does not collapse makes of a good row."""
        order = np.argsort(-gains, kind="stable")[:MOST_STARTS]
        beta = self.coefficients if self._n else np.zeros((0, self.A.shape[1]))
        best = self._addition(_dense_row(self.X, order[0]))
        for row in order[gains[order] > 0]:
            moved = self._search(_dense_row(self.X, row), beta)
            if moved is not None:
                return max(best, self._addition(moved), key=lambda addition: addition.gain)
        return best

    def _addition(self, z: Array) -> _Addition:
        """What adding `z` would mean."""
        kernel, n = self.kernel, self._n
        prepared = kernel.prepare(z[None])
        own = float(kernel.diagonal(z[None])[0])
        if not n:
            above, basis, distance = np.zeros(0), self._column(z, prepared), own
        else:
            values = kernel.evaluate(self.vectors, prepared)[:, 0]
            factor = self._factor[:n, :n]
            above = solve_transposed(factor, values)
            distance = own - float(above @ above)
            basis = self._column(z, prepared) - self._basis[:, :n] @ above
        if not distance > REDUCTION_RANK * own:
            return _Addition(z, above, 0.0, basis, np.zeros(self.A.shape[1]), 0.0)
        basis = basis / np.sqrt(distance)
        projections = basis @ self.A
        gain = float(projections @ projections)
        return _Addition(z, above, float(np.sqrt(distance)), basis, projections, gain)

    def _column(self, z: Array, prepared: Any) -> Array:
        """K(x_i, z) of every row."""
        if self._gaussian is not None:
            return self._gaussian.column(z)
        column: Array = self.kernel.evaluate(self.X, prepared)[:, 0]
        return column

    def _add(self, addition: _Addition) -> None:
        n = self._n
        self._Z[n] = addition.z
        self._factor[:n, n], self._factor[n, n] = addition.above, addition.length
        self._basis[:, n] = addition.basis
        self._projections[n] = addition.projections
        self.values -= np.outer(addition.basis, addition.projections)
        self.distances -= addition.basis**2
        self._n += 1

    def _search(self, z: Array, beta: Array) -> Array | None:
        """A maximum of sum_t r_t(z)^2 / K(z, z) near z; None where the search collapses."""
        if self._gaussian is not None:
            return self._gaussian.fixed_point(z, self.A, self.vectors, beta)
        own, unit = self.vectors, _length(self.kernel, z[None])
        rows = sparse.vstack([self.X, own], "csr") if sparse.issparse(self.X) else None
        rows = np.vstack([self.X, own]) if rows is None else rows
        weights = np.vstack([self.A, -beta])
        scale = float(self.squared_norms.sum())

        def objective(scaled: Array) -> tuple[float, Array]:
            try:
                J, gradient, _ = energy(self.kernel, unit * scaled[None], rows, weights)
            except ValueError:
                J, gradient = 0.0, np.zeros((1, len(z)))
            return -J / scale, -unit / scale * gradient[0]

        with np.errstate(over="ignore", invalid="ignore"):
            options = {"maxiter": MOST_MOVES}
            found = minimize(objective, z / unit, jac=True, method="L-BFGS-B", options=options)
        return unit * found.x if found.nit and np.isfinite(found.x).all() else None


class _Addition(NamedTuple):
    """A further vector: its column of R, its basis function at the rows, and <Psi_t, q>."""

    z: Array
    above: Array
    length: float
    basis: Array
    projections: Array
    gain: float


class _GaussianRows:
    """Rows from an origin near them, for many columns and fixed points of one Gaussian kernel.

    A start needs no care for rounding: the fixed points are sought in single precision.
    """

    def __init__(self, X: Any, gamma: float) -> None:
        self.gamma = gamma
        self.origin = np.zeros(X.shape[1]) if sparse.issparse(X) else np.median(X, axis=0)
        self.rows = X if sparse.issparse(X) else X - self.origin
        self.squared = row_norms(self.rows, squared=True)
        values = self.rows.data if sparse.issparse(self.rows) else self.rows
        fits = fits_single(float(np.abs(values).max(initial=0.0)))
        self._single = self.rows.astype(np.float32) if fits else self.rows

    def column(self, z: Array) -> Array:
        """K(x_i, z) of every row."""
        return self._near(self.rows, self.squared, z - self.origin)

    def _near(self, rows: Any, squared: Array, z: Array) -> Array:
        """Kernel values of shifted rows."""
        distances = squared - 2.0 * (rows @ z.astype(rows.dtype)) + float(z @ z)
        values: Array = np.exp(-self.gamma * np.maximum(distances, 0.0))
        return values

    def fixed_point(self, z: Array, A: Array, Z: Array, beta: Array) -> Array | None:
        """Repeat z <- sum_i p_i x_i / sum_i p_i from z; None where the first step lowers |r|."""
        z, own = z - self.origin, Z - self.origin
        own_squared = row_norms(own, squared=True)
        best, highest = None, 0.0
        for step in range(MOST_MOVES + 1):
            values = self._near(self._single, self.squared, z)
            own_values = self._near(own, own_squared, z)
            residual = values @ A - own_values @ beta
            height = float(residual @ residual)
            if not height > (1.0 + SMALL_GAIN) * highest:
                break
            best, highest = (z if step else None), height
            pulls, own_pulls = values * (A @ residual), own_values * (beta @ residual)
            pulled = self._single.T @ (pulls / height).astype(np.float32)
            z = np.asarray(pulled, dtype=np.float64).ravel() - own.T @ (own_pulls / height)
        return None if best is None else best + self.origin


def _dense_row(X: Any, row: int) -> Array:
    """One row as a vector."""
    found = X[row]
    return found.toarray().ravel() if sparse.issparse(X) else np.array(found)
