"""Kernels: values whose body reads like their formula.

===================  ==========================================  =====================
name                 K(x, z)                                     class
===================  ==========================================  =====================
``linear``           x'z                                         `Linear`
``polynomial``       (gamma x'z + coef0)^degree                  `Polynomial`
``rbf``              exp(-gamma |x - z|^2)                       `RBF`
``laplacian``        exp(-gamma |x - z|_1)                       `Laplacian`
``sigmoid``          tanh(gamma x'z + coef0)                     `Sigmoid`
``cosine``           x'z / (|x| |z|)                             `Cosine`
`cosine_polynomial`  (x'z / (|x| |z|) + coef0)^degree            `CosinePolynomial`
``chi2``             exp(-gamma sum (x - z)^2 / (x + z))         `ChiSquared`
a value alone        exp(-(x - z)' M (x - z))                    `Mahalanobis`
``precomputed``      column z of the given matrix                `Precomputed`
a callable           function(X, Z)                              `FunctionKernel`
===================  ==========================================  =====================

The cosine polynomial is equation 19 of Kovacs and Kocsor, "Convex networks" (2006); one width a
feature and a whole matrix are the diagonal and the full Gaussian of section 5.1 of Vincent,
"Modeles a noyaux a structure locale" (2003).

One width a feature. The gamma of the rbf, the laplacian and chi2 may hold a number for each
feature, which then stands inside the sum: exp(-sum_j gamma_j (x_j - z_j)^2). Such a kernel is one
of gamma 1 in other coordinates,

    K(x, z) = K_1(A'x, A'z),

A = diag(gamma)^(1/2) for the rbf, diag(gamma) for the laplacian and chi2, and M = A A' for
`Mahalanobis`. `Kernel.split` gives K_1 and A: whatever is fast for one gamma is fast there.

A kernel is used in two steps: ``prepare(Z)`` computes once what depends on the centres only
(norms, a common shift), ``evaluate(X, prepared)`` gives the matrix for a block of rows;
``kernel(X, Z)`` does both. Rows may be dense or CSR; a CSR matrix is never made dense.

Numerics. Squared distances are those of ``geometry/distances.py``: exactly zero for equal rows, so
that K(x, x) = 1 for the Gaussian, and right for clusters that are far from each other. Values of
the exponential kernels below 1e-30 become zero: denormal numbers would slow every later product
down.

Derivatives. ``kernel.weighted_gradient(Z, X, A)`` is sum_j A_ij dK(z_i, x_j)/dz_i, a row for each
z_i, which is all that moving a centre needs. With c the cosine and |.| the length:

===================  =====================================================================
kernel               dK(z, x)/dz
===================  =====================================================================
linear               x
polynomial           degree gamma (gamma z'x + coef0)^(degree - 1) x
rbf                  -2 gamma (z - x) K(z, x)
Mahalanobis          -2 M (z - x) K(z, x)
laplacian            -gamma sign(z - x) K(z, x), 0 for a coordinate where z and x are equal
sigmoid              gamma (1 - K(z, x)^2) x
cosine               (x / |x| - c z / |z|) / |z|, 0 where a vector is zero
cosine polynomial    degree (c + coef0)^(degree - 1) dc/dz
===================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from pursuit._arrays import as_wide, is_single, namespace_of, promoted
from pursuit._objects import as_objects, in_double
from pursuit._typing import Array
from pursuit._validation import check_real, finite_numbers, fits_single, summed
from pursuit.geometry.distances import Centres, inner, shifted_centres, squared_distances
from pursuit.geometry.feature_sums import chi_squared, city_block
from pursuit.geometry.linear_maps import full_rank, image, root_of
from pursuit.geometry.spread import Spread
from pursuit.geometry.unit_rows import unit_rows

__all__ = [
    "RBF",
    "ChiSquared",
    "Cosine",
    "CosinePolynomial",
    "FunctionKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mahalanobis",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "check_square",
    "check_values",
    "exp_decay",
    "feature_gammas",
    "is_gaussian",
    "is_precomputed",
    "kernel_name",
    "resolve_kernel",
    "scale_gamma",
    "several",
    "split",
]

SMALLEST_VALUE = 1e-30
# Rows at a time whose K(x, x) are read from a small matrix.
DIAGONAL_ROWS = 64
# Kernels whose gamma may hold a number for each feature.
PER_FEATURE = ("rbf", "laplacian", "chi2")


class Kernel:
    """Base of all kernels: ``kernel(X, Z)`` is the matrix K(x_i, z_k)."""

    # Whether rows may be anything, not vectors alone.
    takes_objects = False

    def __call__(self, X: Any, Z: Any) -> Array:
        """Return the matrix of shape (n_rows, n_centres)."""
        return self.evaluate(summed(X), self.prepare(summed(Z)))

    def prepare(self, Z: Any) -> Any:
        """What depends on the centres alone."""
        return Z

    def evaluate(self, X: Any, prepared: Any) -> Array:
        """Return the matrix for rows `X` and centres prepared by `prepare`."""
        raise NotImplementedError

    def diagonal(self, X: Any) -> Array:
        """K(x, x) of each row, (n_rows,) in float64."""
        values = np.empty(X.shape[0])
        for start in range(0, len(values), DIAGONAL_ROWS):
            part = in_double(X[start : start + DIAGONAL_ROWS])
            values[start : start + DIAGONAL_ROWS] = np.diagonal(self(part, part))
        return values

    def split(self) -> tuple[Kernel, Array | None]:
        """K_1 and A with K(x, z) = K_1(A'x, A'z); the kernel itself and None where there is none.

        Returns
        -------
        kernel : Kernel
            With one gamma at most.
        map : ndarray of shape (n_features,) or (n_features, rank), or None
            Of full column rank; its diagonal if it is one.
        """
        return self, None

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """Sum_j A[i, j] dK(z_i, x_j)/dz_i, (n_centres, n_features) in float64.

        Parameters
        ----------
        Z : ndarray of shape (n_centres, n_features)
            Dense, in float64.
        X : {ndarray, CSR matrix} of shape (n_rows, n_features)
            Rows.
        A : ndarray of shape (n_centres, n_rows)
            Weights.

        Raises
        ------
        NotImplementedError
            If the kernel has no derivative here.
        """
        raise NotImplementedError(f"{type(self).__name__} has no derivative")


@dataclass(frozen=True)
class Linear(Kernel):
    """K(x, z) = x'z."""

    def evaluate(self, X: Any, Z: Any) -> Array:
        """Inner products."""
        return inner(X, Z)

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """A X."""
        return _weighted_sums(A, X)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """K(x, z) = (gamma x'z + coef0)^degree."""

    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0

    def evaluate(self, X: Any, Z: Any) -> Array:
        """Powers of shifted inner products."""
        return _power(_affine(inner(X, Z), self.gamma, self.coef0), self.degree)

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """Rows weighted by the slope of the power."""
        slopes = _power_slope(_affine(inner(Z, X), self.gamma, self.coef0), self.degree)
        return self.gamma * _weighted_sums(A * slopes, X)


class _WithArrays(Kernel):
    """A value that may hold arrays: equal to another one if all numbers are."""

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal."""
        return type(self) is type(other) and all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)  # type: ignore[arg-type]
        )

    def __hash__(self) -> int:
        """That of the class and the numbers."""
        values = (getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]
        given = (np.asarray(value, dtype=np.float64) for value in values if value is not None)
        return hash((type(self), *(value.tobytes() for value in given)))

    def __repr__(self) -> str:
        """The constructor's arguments; of many numbers the first and the last."""
        with np.printoptions(threshold=8):
            given = ((each.name, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
            arguments = [f"{name}={value!r}" for name, value in given if value is not None]
        return f"{type(self).__name__}({', '.join(arguments)})"


class _OfDistances(_WithArrays):
    """A kernel of a distance, whose gamma is a number, or one for each feature."""

    gamma: float | Array

    def __post_init__(self) -> None:
        """Own the numbers of the features."""
        if several(self.gamma):
            object.__setattr__(self, "gamma", feature_gammas(self.gamma))

    @property
    def _rate(self) -> float:
        """The gamma of K_1."""
        return float(self.split()[0].gamma)  # type: ignore[attr-defined]

    def _seen(self, X: Any) -> Any:
        """Rows as K_1 sees them."""
        return split(self, X)[1]

    def diagonal(self, X: Any) -> Array:
        """All ones."""
        return np.ones(X.shape[0])


class _Gaussian(_OfDistances):
    """What `RBF` and `Mahalanobis` share."""

    def prepare(self, Z: Any) -> Centres:
        """Shifted centres and their squared norms."""
        return shifted_centres(self._seen(Z))

    def evaluate(self, X: Any, centres: Centres) -> Array:
        """Gaussian of the distances."""
        return exp_decay(squared_distances(self._seen(X), centres), self._rate)

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """Differences z - x weighted by the kernel, from a common origin near the centres."""
        pulls = A * self(X, Z).T
        if sparse.issparse(X):
            differences = pulls.sum(axis=1)[:, None] * Z - _weighted_sums(pulls, X)
        else:
            origin = Z.mean(axis=0)
            differences = pulls.sum(axis=1)[:, None] * (Z - origin) - pulls @ (X - origin)
        return np.asarray(-2.0 * self._stretched(differences))

    def _stretched(self, differences: Array) -> Array:
        """M (z - x) of each row."""
        return np.asarray(self.gamma * differences)


@dataclass(frozen=True, eq=False, repr=False)
class RBF(_Gaussian):
    """K(x, z) = exp(-gamma |x - z|^2), or exp(-sum_j gamma_j (x_j - z_j)^2): the Gaussian kernel.

    Parameters
    ----------
    gamma : float or array-like of shape (n_features,), default=1.0
        One number, or one for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> RBF([1.0, 0.0625])(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 4.0]])).round(3)
    array([[0.368, 0.368]])
    """

    gamma: float | Array = 1.0

    def split(self) -> tuple[Kernel, Array | None]:
        """The Gaussian of gamma 1, of rows times the roots of gamma."""
        return (RBF(1.0), np.sqrt(self.gamma)) if np.ndim(self.gamma) else (self, None)


@dataclass(frozen=True, eq=False, repr=False)
class Mahalanobis(_Gaussian):
    """K(x, z) = exp(-(x - z)' M (x - z)), the Gaussian kernel with a matrix.

    Parameters
    ----------
    matrix : array-like of shape (n_features, n_features), default=None
        M: symmetric and positive semidefinite, not zero.
    factor : array-like of shape (n_features, rank), default=None
        A, where M = A A' is given in this form; then without `matrix`.

    Notes
    -----
    The inverse of twice a covariance as `matrix` gives the full Gaussian of section 5.1 of Vincent,
    "Modeles a noyaux a structure locale" (2003), without its constant. CSR rows are multiplied by
    the factor, which makes them dense, of its rank; those of a diagonal matrix stay CSR.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import Mahalanobis
    >>> kernel = Mahalanobis([[1.0, 0.5], [0.5, 1.0]])
    >>> kernel(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, -1.0]])).round(3)
    array([[0.05 , 0.368]])
    """

    matrix: Any = None
    factor: Any = None

    def __post_init__(self) -> None:
        """Own the numbers, and factorise the matrix."""
        if (self.matrix is None) == (self.factor is None):
            raise ValueError("Mahalanobis takes a matrix or a factor, one of the two")
        name = "matrix" if self.factor is None else "factor"
        given = finite_numbers(name, getattr(self, name), 2)
        root = root_of(given) if name == "matrix" else full_rank(given)
        if not root.any():
            raise ValueError(f"{name} must not be zero")
        object.__setattr__(self, name, given)
        object.__setattr__(self, "_root", root)

    def split(self) -> tuple[Kernel, Array | None]:
        """The Gaussian of gamma 1, and the factor."""
        return RBF(1.0), self._root  # type: ignore[attr-defined]

    def _stretched(self, differences: Array) -> Array:
        """M (z - x) of each row."""
        root = self._root  # type: ignore[attr-defined]
        return np.asarray(image(image(differences, root), root.T))


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(_OfDistances):
    """K(x, z) = exp(-gamma |x - z|_1), or exp(-sum_j gamma_j |x_j - z_j|)."""

    gamma: float | Array = 1.0

    def split(self) -> tuple[Kernel, Array | None]:
        """The Laplacian of gamma 1, of rows times gamma."""
        return (Laplacian(1.0), np.asarray(self.gamma)) if np.ndim(self.gamma) else (self, None)

    def evaluate(self, X: Any, Z: Any) -> Array:
        """Exponential of the city-block distances."""
        return exp_decay(city_block(self._seen(X), self._seen(Z)), self._rate)

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """Signs of z - x weighted by the kernel, one centre at a time."""
        pulls = A * self(X, Z).T
        sums = [_signs(z, X, pull) for z, pull in zip(Z, pulls, strict=True)]
        return np.asarray(-self.gamma * np.array(sums).reshape(Z.shape))


@dataclass(frozen=True, eq=False, repr=False)
class ChiSquared(_OfDistances):
    """K(x, z) = exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)), for histograms; x, z >= 0.

    With one gamma a feature, exp(-sum_j gamma_j (x_j - z_j)^2 / (x_j + z_j)).
    """

    gamma: float | Array = 1.0

    def split(self) -> tuple[Kernel, Array | None]:
        """That of gamma 1, of rows times gamma."""
        return (ChiSquared(1.0), np.asarray(self.gamma)) if np.ndim(self.gamma) else (self, None)

    def evaluate(self, X: Any, Z: Any) -> Array:
        """Exponential of the chi-squared distances; 0 / 0 counts as 0."""
        if sparse.issparse(X) or sparse.issparse(Z):
            raise ValueError("kernel='chi2' needs dense rows")
        return exp_decay(chi_squared(self._seen(X), self._seen(Z)), self._rate)


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """K(x, z) = tanh(gamma x'z + coef0); indefinite, which matching pursuit allows."""

    gamma: float = 1.0
    coef0: float = 1.0

    def evaluate(self, X: Any, Z: Any) -> Array:
        """Hyperbolic tangent of shifted inner products."""
        argument = _affine(inner(X, Z), self.gamma, self.coef0)
        if (xp := namespace_of(X)) is not None:
            values: Array = xp.tanh(argument)
            return values
        return np.asarray(np.tanh(argument, out=argument))

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """Rows weighted by the slope of the hyperbolic tangent."""
        return self.gamma * _weighted_sums(A * (1.0 - self(Z, X) ** 2), X)


@dataclass(frozen=True)
class Cosine(Kernel):
    """K(x, z) = x'z / (|x| |z|); zero where a vector is zero."""

    def prepare(self, Z: Any) -> Any:
        """Centres of unit length."""
        return unit_rows(Z)

    def evaluate(self, X: Any, unit_centres: Any) -> Array:
        """Cosines."""
        return inner(unit_rows(_at_least_as_wide(X, unit_centres)), unit_centres)

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """The part of x / |x| across z, over |z|."""
        return _across(Z, unit_rows(X), A, self(Z, X))


@dataclass(frozen=True)
class CosinePolynomial(Kernel):
    """K(x, z) = (x'z / (|x| |z|) + coef0)^degree (Kovacs and Kocsor 2006, eq. 19)."""

    degree: float = 3
    coef0: float = 1.0

    def prepare(self, Z: Any) -> Any:
        """Centres of unit length."""
        return unit_rows(Z)

    def evaluate(self, X: Any, unit_centres: Any) -> Array:
        """Powers of shifted cosines."""
        return _power(
            _affine(
                inner(unit_rows(_at_least_as_wide(X, unit_centres)), unit_centres), 1.0, self.coef0
            ),
            self.degree,
        )

    def weighted_gradient(self, Z: Array, X: Any, A: Array) -> Array:
        """That of the cosine, weighted by the slope of the power."""
        cosines = Cosine()(Z, X)
        slopes = _power_slope(cosines + self.coef0, self.degree)
        return _across(Z, unit_rows(X), A * slopes, cosines)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Rows are kernel values already; a centre is the index of a column."""

    def evaluate(self, X: Any, columns: Array) -> Array:
        """Return the chosen columns."""
        if (xp := namespace_of(X)) is not None:
            values: Array = xp.take(X, columns, axis=1)
            return values
        chosen = X[:, columns]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen)

    def diagonal(self, X: Any) -> Array:
        """The diagonal of a square matrix; kernel values between other rows do not hold it."""
        check_square(X)
        return np.array(X.diagonal(), dtype=np.float64)


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A user's ``function(X, Z, **params) -> matrix``; it need not be symmetric or definite.

    Rows may be objects of any kind; the function gets them in 1-d arrays.
    """

    takes_objects = True

    function: Callable[..., Any]
    params: Mapping[str, Any] | None = None

    def evaluate(self, X: Any, Z: Any) -> Array:
        """Call the function and check the shape of what it returns."""
        # A copy: the function may hand out an array that it keeps.
        given = self.function(as_objects(X), as_objects(Z), **(self.params or {}))
        on_device = namespace_of(X) is not None
        values: Any = as_wide(given) if on_device else np.array(given, dtype=np.float64)
        if values.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel: the function returned an array of shape {values.shape} for "
                f"{X.shape[0]} rows and {Z.shape[0]} centres; "
                f"expected ({X.shape[0]}, {Z.shape[0]})"
            )
        return check_values(self, values)


def split(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """K_1 and the rows A'x, for which it gives what the kernel gives for X."""
    plain, A = kernel.split()
    return (plain, X) if A is None else (plain, _image(X, A, kernel))


def is_gaussian(kernel: Any) -> TypeGuard[RBF]:
    """Whether a kernel is the Gaussian of one gamma."""
    return isinstance(kernel, RBF) and not np.ndim(kernel.gamma)


def kernel_name(kernel: Kernel) -> str:
    """What a kernel is called; for a user's function, its name."""
    if not isinstance(kernel, FunctionKernel):
        return repr(kernel)
    return str(getattr(kernel.function, "__name__", type(kernel.function).__name__))


def check_values(kernel: Kernel, values: Array) -> Array:
    """The values of a kernel; one error that names it, unless they are finite."""
    if (xp := namespace_of(values)) is not None:
        if not bool(xp.all(xp.isfinite(values))):
            raise ValueError(f"kernel: {kernel_name(kernel)} gives a value that is not finite")
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if np.isfinite(total) or np.isfinite(values).all():
        return values
    row, column = np.argwhere(~np.isfinite(values))[0]
    raise ValueError(
        f"kernel: {kernel_name(kernel)} gives a value that is not finite, "
        f"{values[row, column]} in row {row}, column {column} of {values.shape}; "
        "rescale the features or change the kernel"
    )


def check_square(X: Any, name: str = "X") -> None:
    """Raise unless kernel values between all training rows are given."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"kernel='precomputed' needs a square {name}, got shape {X.shape}")


def _at_least_as_wide(X: Any, Z: Any) -> Any:
    """Rows in a floating type that loses nothing beside that of the centres."""
    if (xp := namespace_of(X)) is not None:
        return promoted(xp, X, Z)[0]
    return X.astype(np.result_type(X.dtype, Z.dtype), copy=False)


def several(gamma: Any) -> bool:
    """Whether gamma is a list of numbers, or meant as one."""
    return hasattr(gamma, "__len__") and not isinstance(gamma, str)


def feature_gammas(gamma: Any, n_features: int | None = None) -> Array:
    """One gamma for each feature, in an array that stays as it is.

    Raises
    ------
    ValueError
        If they are not positive finite numbers, or not as many as there are features.
    """
    numbers = finite_numbers("gamma", gamma, 1)
    if not (numbers > 0.0).all():
        place = int(np.flatnonzero(~(numbers > 0.0))[0])
        raise ValueError(f"gamma must be positive, got {numbers[place]} for feature {place}")
    _check_width(len(numbers), n_features, "gamma")
    return numbers


def _check_width(width: int, n_features: int | None, what: str) -> None:
    """Raise unless there is something for each feature."""
    if n_features not in (None, width):
        raise ValueError(f"{what} is for {width} features, but the rows have {n_features}")


def _image(X: Any, A: Array, kernel: Kernel) -> Any:
    """Rows through the map of a kernel, in single precision where both are."""
    what = "kernel: Mahalanobis" if isinstance(kernel, Mahalanobis) else "gamma"
    _check_width(len(A), X.shape[1], what)
    size = np.abs(A[A != 0.0])
    short = is_single(X) and fits_single(size.max()) and fits_single(size.min())
    return image(X, A.astype(np.float32) if short else A)


def exp_decay(distances: Array, gamma: float) -> Array:
    """Return exp(-gamma distances), in place, values below 1e-30 flushed to zero."""
    if (xp := namespace_of(distances)) is not None:
        values = xp.exp(-min(gamma, float(xp.finfo(distances.dtype).max)) * distances)
        kept: Array = xp.where(values < SMALLEST_VALUE, 0.0, values)
        return kept
    largest = float(np.finfo(distances.dtype).max)
    with np.errstate(over="ignore"):
        distances *= -min(gamma, largest)
    values = np.exp(distances, out=distances)
    if values.size and values.min() < SMALLEST_VALUE:
        values[values < SMALLEST_VALUE] = 0.0
    return values


def _affine(values: Array, scale: float, shift: float) -> Array:
    """Scale * values + shift, in place."""
    values *= scale
    values += shift
    return values


def _power(values: Array, degree: float) -> Array:
    """values^degree; a whole degree stays exact for negative values."""
    whole = int(degree)
    if whole != degree or not 1 <= whole <= 8:
        powered: Array = values**degree
        return powered
    result = values if whole == 1 else values * values
    for _ in range(whole - 2):
        result *= values
    return result


def _power_slope(values: Array, degree: float) -> Array:
    """Derivative of values^degree; `values` may be overwritten."""
    return degree * _power(values, degree - 1) if degree else np.zeros_like(values)


def _weighted_sums(A: Array, X: Any) -> Array:
    """A X of dense or CSR rows, dense."""
    return np.asarray(safe_sparse_dot(A, X, dense_output=True))


def _signs(z: Array, X: Any, weights: Array) -> Array:
    """Sum_j weights_j sign(z - x_j)."""
    if not sparse.issparse(X):
        sums: Array = weights @ np.sign(z - X)
        return sums
    # Where x is 0 the sign is that of z; the other entries correct it.
    own = np.sign(z)
    entries = np.sign(z[X.indices] - X.data) - own[X.indices]
    corrections = sparse.csr_matrix((entries, X.indices, X.indptr), shape=X.shape)
    return np.asarray(weights.sum() * own + corrections.T @ weights)


def _across(Z: Array, unit_rows: Any, A: Array, cosines: Array) -> Array:
    """Sum_j A_ij (x_j / |x_j| - c_ij z_i / |z_i|) / |z_i|; 0 where z is zero."""
    lengths = np.sqrt(row_norms(Z, squared=True))[:, None]
    lengths[lengths == 0.0] = np.inf
    along = (A * cosines).sum(axis=1)[:, None]
    return np.asarray((_weighted_sums(A, unit_rows) - along * (Z / lengths)) / lengths)


def scale_gamma(X: Any, sample_weight: Array | None = None) -> float:
    """Return 1 / (n_features Var(X)), scikit-learn's ``gamma="scale"``, for weighted rows.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        The rows.
    sample_weight : ndarray of shape (n_samples,), optional
        A weight of 2 counts as the row twice.

    Returns
    -------
    gamma : float
        1.0 where all entries are equal, or differ by so little that gamma is beyond all numbers.
    """
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    return gamma_of(Spread().add(X, weights), X.shape[1])


def gamma_of(rows: Spread, n_features: int) -> float:
    """``gamma="scale"`` of rows whose spread is known."""
    spread = n_features * rows.variance
    return 1.0 / spread if spread > 1.0 / np.finfo(float).max else 1.0


def _resolve_gamma(gamma: Any, X: Any, sample_weight: Array | None, kernel: str) -> float | Array:
    """A number for ``"scale"``, ``"auto"`` or a positive number; one a feature where they count."""
    if several(gamma) and kernel in PER_FEATURE:
        return feature_gammas(gamma, X.shape[1])
    if isinstance(gamma, str) and gamma == "scale":
        return scale_gamma(X, sample_weight)
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / int(X.shape[1])
    if isinstance(gamma, str) or several(gamma):
        raise ValueError(
            f"gamma must be 'scale', 'auto' or a positive number for kernel={kernel!r} "
            f"({', '.join(PER_FEATURE)} also take one for each feature), got {gamma!r}"
        )
    check_real("gamma", gamma, above=True)
    return float(gamma)


def is_precomputed(kernel: Any) -> bool:
    """Whether a kernel argument says that rows are kernel values already."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def resolve_kernel(
    kernel: Any,
    X: Any,
    sample_weight: Array | None = None,
    *,
    gamma: Any = "scale",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Turn the kernel arguments of an estimator into a kernel value.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name from the table at the top of this module (``"poly"`` is ``"polynomial"``), a
        kernel of this module, which is returned as it is, or a callable
        ``(X, Z, **kernel_params) -> matrix``.
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Training rows, for ``gamma="scale"``.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the rows, for ``gamma="scale"``.
    gamma, degree, coef0 : float
        Parameters of the named kernels; `gamma` also as a name or, for the rbf, the laplacian and
        chi2, as an array of shape (n_features,).
    kernel_params : mapping, optional
        Keyword arguments of a callable.

    Returns
    -------
    kernel : Kernel
        A frozen value with all numbers resolved.

    Raises
    ------
    ValueError
        If the name is unknown or a parameter is out of range; the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import resolve_kernel
    >>> resolve_kernel("rbf", np.array([[0.0], [2.0]]))
    RBF(gamma=1.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return FunctionKernel(kernel, dict(kernel_params) if kernel_params else None)
    if kernel_params:
        raise ValueError("kernel_params is only for a callable kernel")

    check_real("degree", degree)
    check_real("coef0", coef0, -np.inf)

    def width() -> Any:
        return _resolve_gamma(gamma, X, sample_weight, kernel)

    named: dict[str, Callable[[], Kernel]] = {
        "linear": Linear,
        "polynomial": lambda: Polynomial(width(), degree, float(coef0)),
        "poly": lambda: Polynomial(width(), degree, float(coef0)),
        "rbf": lambda: RBF(width()),
        "laplacian": lambda: Laplacian(width()),
        "chi2": lambda: ChiSquared(width()),
        "sigmoid": lambda: Sigmoid(width(), float(coef0)),
        "cosine": Cosine,
        "cosine_polynomial": lambda: CosinePolynomial(degree, float(coef0)),
        "precomputed": Precomputed,
    }
    if not isinstance(kernel, str) or kernel not in named:
        raise ValueError(
            f"kernel must be one of {sorted(named)}, a pursuit kernel or a callable, got {kernel!r}"
        )
    return named[kernel]()
