"""Fitted kernel machines of scikit-learn as expansions on their vectors.

Each gives T functions f_t(x) = sum_i a_it K(x_i, x) + b_t:

=============================  =======================================================
machine                        functions
=============================  =======================================================
SVC, NuSVC, two classes        the decision value, positive for the second class
SVC, NuSVC, k classes          one for each pair of classes p < q, positive for p
SVR, NuSVR                     the prediction
OneClassSVM                    the decision value, positive inside
KernelRidge                    the predictions, b = 0
GaussianProcessRegressor       the means: a = amplitude alpha s, b the targets' mean, with
                               s the targets' deviation under ``normalize_y``
=============================  =======================================================

LIBSVM predicts k classes by votes: pair (p, q) votes for p where its value is positive, for q
elsewhere, and the first of the classes with most votes wins. `pair_votes` and `vote_values` say
the same from the values of the pairs.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import least_squares
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as process_kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.predictor import squeeze_binary
from pursuit.kernels import Kernel, resolve_kernel, scale_gamma

__all__ = [
    "KernelModel",
    "Pairs",
    "libsvm_rows",
    "pair_votes",
    "read_kernel_model",
    "vote_values",
]

Task: TypeAlias = Literal["classifier", "regressor", "outlier_detector"]

SUPPORTED = (
    "SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge and GaussianProcessRegressor, alone or as "
    "the last step of a Pipeline"
)

# Rows whose predictions tell a number that has no public name.
N_PROBES = 50
# Logarithms of gamma around the support vectors' own scale: a factor of 1000 either way.
SCALE_GRID = np.linspace(-7.0, 7.0, 57)


class KernelModel(NamedTuple):
    """A machine's functions.

    Attributes
    ----------
    task : str
        ``"classifier"``, ``"regressor"`` or ``"outlier_detector"``.
    kernel : Kernel
        K, with its numbers.
    vectors : {ndarray, CSR matrix} of shape (m, d)
        x.
    coefficients : ndarray of shape (m, T)
        a.
    intercept : ndarray of shape (T,)
        b.
    one_dimensional : bool
        Whether a regressor's predictions are a vector.
    """

    task: Task
    kernel: Kernel
    vectors: Any
    coefficients: Array
    intercept: Array
    one_dimensional: bool = True

    @property
    def functions(self) -> KernelExpansion:
        """f, ready to be evaluated."""
        atoms = Atoms(self.kernel, self.vectors)
        return KernelExpansion(atoms, self.coefficients.T.copy(), self.intercept)


def libsvm_rows(X: Any) -> Any:
    """Samples as LIBSVM needs them: CSR sorted, without duplicate entries, with 32-bit indices.

    A sparse matrix is copied: scikit-learn sorts the indices of the one that it is given in place.
    """
    if not sparse.issparse(X):
        return X
    own = X.tocsr(copy=True)
    own.sum_duplicates()
    if own.indices.dtype != np.int32 and max(own.nnz, *own.shape) <= np.iinfo(np.int32).max:
        own.indices, own.indptr = own.indices.astype(np.int32), own.indptr.astype(np.int32)
    return own


def read_kernel_model(estimator: Any) -> KernelModel:
    """Read the functions of a fitted machine.

    Parameters
    ----------
    estimator : estimator
        Fitted, of a class in the table at the top of this module.

    Returns
    -------
    machine : KernelModel
        Its functions.

    Raises
    ------
    ValueError
        If the class or its kernel is none of these.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> from pursuit.svm.from_sklearn import read_kernel_model
    >>> svr = SVR(gamma=0.5).fit(np.arange(4.0)[:, None], np.arange(4.0))
    >>> read_kernel_model(svr).kernel
    RBF(gamma=0.5)
    """
    for classes, read in _READERS:
        if isinstance(estimator, classes):
            check_is_fitted(estimator)
            return read(estimator)
    raise ValueError(f"estimator must be one of {SUPPORTED}, got {type(estimator).__name__}")


def _read_classifier(estimator: Any) -> KernelModel:
    signed = _dense(estimator.dual_coef_)
    if len(estimator.classes_) > 2:
        signed = _pair_coefficients(signed, estimator.n_support_)
    kernel = _model_kernel(estimator, signed.T)
    vectors = estimator.support_vectors_
    return KernelModel("classifier", kernel, vectors, signed.T, np.array(estimator.intercept_))


def _pair_coefficients(dual: Array, n_support: Array) -> Array:
    """One row a pair, from LIBSVM's table.

    There a vector of class p has its coefficient against class q in row q, or q - 1 if q > p.
    """
    owner = np.repeat(np.arange(len(n_support)), n_support)
    pairs = list(combinations(range(len(n_support)), 2))
    coefficients = np.zeros((len(pairs), dual.shape[1]))
    for row, (p, q) in zip(coefficients, pairs, strict=True):
        row[owner == p] = dual[q - 1, owner == p]
        row[owner == q] = dual[p, owner == q]
    return coefficients


def _read_numbers(estimator: Any) -> KernelModel:
    task: Task = "outlier_detector" if isinstance(estimator, OneClassSVM) else "regressor"
    a = _dense(estimator.dual_coef_).T
    kernel = _model_kernel(estimator, a)
    return KernelModel(task, kernel, estimator.support_vectors_, a, np.array(estimator.intercept_))


def _read_ridge(estimator: Any) -> KernelModel:
    X = estimator.X_fit_
    auto = "auto" if estimator.gamma is None else estimator.gamma
    numbers = {"gamma": auto, "degree": estimator.degree, "coef0": estimator.coef0}
    kernel = _named_kernel(estimator, X, numbers)
    a = np.asarray(estimator.dual_coef_)
    one_dimensional = a.ndim == 1
    a = a.reshape(X.shape[0], -1)
    return KernelModel("regressor", kernel, X, a, np.zeros(a.shape[1]), one_dimensional)


def _read_process(estimator: Any) -> KernelModel:
    if not hasattr(estimator, "alpha_"):
        check_is_fitted(estimator, "alpha_")
    amplitude, width = _amplitude_and_width(estimator.kernel_)
    if amplitude is None or width is None:
        raise ValueError(
            "estimator: a GaussianProcessRegressor needs the kernel RBF or ConstantKernel * RBF, "
            f"with or without a WhiteKernel added, got {estimator.kernel_}"
        )
    X, a = estimator.X_train_, np.asarray(estimator.alpha_)
    one_dimensional = a.ndim == 1
    a = a.reshape(X.shape[0], -1)
    kernel = resolve_kernel("rbf", X, gamma=1.0 / (2.0 * width**2))
    scale, mean = _normalisation(estimator, kernel, amplitude * a)
    return KernelModel("regressor", kernel, X, amplitude * a * scale, mean, one_dimensional)


def _without_names(estimator: Any) -> Any:
    """A shallow copy that takes arrays without a warning."""
    model = copy(estimator)
    vars(model).pop("feature_names_in_", None)
    return model


def _normalisation(estimator: Any, kernel: Kernel, a: Array) -> tuple[Array, Array]:
    """Scale and mean of each target that ``normalize_y`` took away, from the predictions."""
    n_targets = a.shape[1]
    if not estimator.normalize_y:
        return np.ones(n_targets), np.zeros(n_targets)
    X = estimator.X_train_
    rows = X[:: -(-len(X) // N_PROBES)]
    raw = kernel(rows, X) @ a
    means = np.asarray(_without_names(estimator).predict(rows)).reshape(len(rows), n_targets)
    lines = [
        np.linalg.lstsq(np.stack([f, np.ones(len(f))], axis=1), m, rcond=None)[0]
        for f, m in zip(raw.T, means.T, strict=True)
    ]
    return np.array([line[0] for line in lines]), np.array([line[1] for line in lines])


def _amplitude_and_width(kernel: Any) -> tuple[float | None, Any]:
    """The constant factor and the length scale (or those of the features); None where absent."""
    # A Matern kernel is a subclass of this one.
    if type(kernel) is process_kernels.RBF:
        widths = np.array(kernel.length_scale, dtype=np.float64)
        return 1.0, float(widths.ravel()[0]) if widths.size == 1 else widths
    if isinstance(kernel, process_kernels.ConstantKernel):
        return float(kernel.constant_value), None
    if isinstance(kernel, process_kernels.Sum):
        # Noise is no part of the covariance with a new row.
        parts = [kernel.k1, kernel.k2]
        rest = [part for part in parts if not isinstance(part, process_kernels.WhiteKernel)]
        return _amplitude_and_width(rest[0]) if len(rest) == 1 else (None, None)
    if isinstance(kernel, process_kernels.Product):
        (first, one), (second, two) = map(_amplitude_and_width, (kernel.k1, kernel.k2))
        if first is not None and second is not None and (one is None or two is None):
            return first * second, two if one is None else one
    return None, None


def _model_kernel(estimator: Any, coefficients: Array) -> Kernel:
    """The kernel of a LIBSVM model with its numbers."""
    X = estimator.support_vectors_
    numbers = {"gamma": estimator.gamma, "degree": estimator.degree, "coef0": estimator.coef0}
    if estimator.gamma == "scale" and estimator.kernel in ("rbf", "poly", "sigmoid"):
        numbers["gamma"] = _scale_gamma(estimator, numbers, coefficients)
    return _named_kernel(estimator, X, numbers)


def _scale_gamma(estimator: Any, numbers: dict[str, Any], coefficients: Array) -> float:
    """What gamma="scale" came to: its training rows are gone, its decision values tell.

    Gamma is the one unknown of f_t(x) = sum_i a_it K(x_i, x) + b_t: Gauss-Newton on its logarithm
    at a few probes, from the best of a grid around the support vectors' own scale.
    """
    X = estimator.support_vectors_
    if not X.shape[0]:
        return 1.0
    probes = _dense(X[:: -(-X.shape[0] // N_PROBES)])
    probes = np.vstack([probes, 0.5 * (probes + probes.mean(axis=0)), 0.5 * probes])
    model = _without_names(estimator)
    if hasattr(model, "decision_function_shape"):
        model.decision_function_shape = "ovo"
    evaluate = getattr(model, "decision_function", None) or model.predict
    wanted = np.asarray(evaluate(probes)).reshape(len(probes), -1) - estimator.intercept_
    unit = float(np.abs(wanted).max()) or 1.0

    def difference(log_gamma: Array) -> Array:
        kernel = _named_kernel(estimator, X, numbers | {"gamma": float(np.exp(log_gamma[0]))})
        left: Array = ((kernel(probes, X) @ coefficients - wanted) / unit).ravel()
        return left

    grid = np.log(scale_gamma(X)) + SCALE_GRID
    costs = np.array([float(np.square(difference(np.array([g]))).sum()) for g in grid])
    fits = [
        least_squares(difference, [g], xtol=1e-15, ftol=1e-15, gtol=1e-15)
        for g in grid[np.argsort(costs, kind="stable")[:3]]
    ]
    return float(np.exp(min(fits, key=lambda fit: fit.cost).x[0]))


def _named_kernel(estimator: Any, X: Any, numbers: dict[str, Any]) -> Kernel:
    """The kernel of that name; functions and matrices are refused."""
    name = estimator.kernel
    if not isinstance(name, str) or name == "precomputed":
        raise ValueError(
            f"estimator: kernel={name!r} cannot be compressed, its vectors cannot be moved; a "
            "kernel by name is needed"
        )
    if name in ("linear", "cosine"):
        numbers = {}
    return resolve_kernel(name, X, **numbers)


def _dense(table: Any) -> Array:
    return np.asarray(table.toarray() if sparse.issparse(table) else table)


_READERS = (
    ((SVC, NuSVC), _read_classifier),
    ((SVR, NuSVR, OneClassSVM), _read_numbers),
    ((KernelRidge,), _read_ridge),
    ((GaussianProcessRegressor,), _read_process),
)


def pair_votes(values: Array, n_classes: int) -> Array:
    """Number of pairs that vote for each class, (n_rows, n_classes).

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_classes (n_classes - 1) / 2)
        Decision values of the pairs (0, 1), (0, 2), ..., positive for the first of each.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.svm.from_sklearn import pair_votes
    >>> pair_votes(np.array([[1.0, -1.0, 0.0]]), 3)
    array([[1, 0, 2]])
    """
    votes = np.zeros((len(values), n_classes), dtype=int)
    for column, (p, q) in zip(values.T, combinations(range(n_classes), 2), strict=True):
        votes[:, p] += column > 0
        votes[:, q] += column <= 0
    return votes


def vote_values(values: Array, n_classes: int) -> Array:
    """One decision value a class, as scikit-learn's ``decision_function_shape="ovr"``.

    A class's votes, with ties broken by c / (3 (|c| + 1)), c the sum of the values of its pairs.

    Parameters
    ----------
    values, n_classes
        See `pair_votes`.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.svm.from_sklearn import vote_values
    >>> vote_values(np.array([[1.0, -1.0, 0.0]]), 3)
    array([[1.        , 0.83333333, 1.16666667]])
    """
    # A pair whose value is zero votes for its first class here, and for its second in LIBSVM.
    votes = np.zeros((len(values), n_classes))
    sums = np.zeros((len(values), n_classes))
    for column, (p, q) in zip(values.T, combinations(range(n_classes), 2), strict=True):
        sums[:, p] += column
        sums[:, q] -= column
        votes[:, p] += column >= 0
        votes[:, q] += column < 0
    found: Array = votes + sums / (3.0 * (np.abs(sums) + 1.0))
    return found


@dataclass(frozen=True, eq=False)
class Pairs:
    """Labels by the votes of the pairs of classes, as LIBSVM has them.

    Attributes
    ----------
    labels : ndarray of shape (n_classes,)
        The classes.
    one_a_class : bool
        Whether there is a decision value a class (`vote_values`), or one a pair.
    break_ties : bool
        Whether the values decide between classes with as many votes.
    """

    labels: Array
    one_a_class: bool
    break_ties: bool

    def decision(self, outputs: Array) -> Array:
        """A value a class or a pair; a vector for two classes."""
        if len(self.labels) > 2 and self.one_a_class:
            return vote_values(outputs, len(self.labels))
        return squeeze_binary(outputs)

    def prediction(self, outputs: Array) -> Array:
        """Labels; of two classes the second has the value zero."""
        n_classes = len(self.labels)
        if n_classes == 2:
            codes = (outputs[:, 0] >= 0).astype(int)
        elif not self.break_ties:
            codes = pair_votes(outputs, n_classes).argmax(axis=1)
        elif self.one_a_class:
            codes = vote_values(outputs, n_classes).argmax(axis=1)
        else:
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        found: Array = self.labels[codes]
        return found
