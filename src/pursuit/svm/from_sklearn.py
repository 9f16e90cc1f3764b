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

from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as process_kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit.kernels import Kernel, resolve_kernel

__all__ = ["FittedMachine", "pair_votes", "read_machine", "vote_values"]

Task: TypeAlias = Literal["classifier", "regressor", "outlier_detector"]

SUPPORTED = (
    "SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge and GaussianProcessRegressor, alone or as "
    "the last step of a Pipeline"
)


class FittedMachine(NamedTuple):
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


def read_machine(estimator: Any) -> FittedMachine:
    """Read the functions of a fitted machine.

    Parameters
    ----------
    estimator : estimator
        Fitted, of a class in the table at the top of this module.

    Returns
    -------
    machine : FittedMachine
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
    >>> from pursuit.svm.from_sklearn import read_machine
    >>> svr = SVR(gamma=0.5).fit(np.arange(4.0)[:, None], np.arange(4.0))
    >>> read_machine(svr).kernel
    RBF(gamma=0.5)
    """
    for classes, read in _READERS:
        if isinstance(estimator, classes):
            check_is_fitted(estimator)
            return read(estimator)
    raise ValueError(f"estimator must be one of {SUPPORTED}, got {type(estimator).__name__}")


def _read_classifier(estimator: Any) -> FittedMachine:
    signed = _dense(estimator.dual_coef_)
    if len(estimator.classes_) > 2:
        signed = _pair_coefficients(signed, estimator.n_support_)
    kernel = _machine_kernel(estimator)
    vectors = estimator.support_vectors_
    return FittedMachine("classifier", kernel, vectors, signed.T, np.array(estimator.intercept_))


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


def _read_numbers(estimator: Any) -> FittedMachine:
    task: Task = "outlier_detector" if isinstance(estimator, OneClassSVM) else "regressor"
    return FittedMachine(
        task,
        _machine_kernel(estimator),
        estimator.support_vectors_,
        _dense(estimator.dual_coef_).T,
        np.array(estimator.intercept_),
    )


def _read_ridge(estimator: Any) -> FittedMachine:
    X = estimator.X_fit_
    auto = "auto" if estimator.gamma is None else estimator.gamma
    numbers = {"gamma": auto, "degree": estimator.degree, "coef0": estimator.coef0}
    kernel = _named_kernel(estimator, X, numbers)
    a = np.asarray(estimator.dual_coef_)
    one_dimensional = a.ndim == 1
    a = a.reshape(X.shape[0], -1)
    return FittedMachine("regressor", kernel, X, a, np.zeros(a.shape[1]), one_dimensional)


def _read_process(estimator: Any) -> FittedMachine:
    if not hasattr(estimator, "alpha_"):
        check_is_fitted(estimator, "alpha_")
    amplitude, width = _amplitude_and_width(estimator.kernel_)
    if amplitude is None or width is None:
        raise ValueError(
            "estimator: a GaussianProcessRegressor needs the kernel RBF or ConstantKernel * RBF "
            "with one length scale, with or without a WhiteKernel added, got "
            f"{estimator.kernel_}"
        )
    X, a = estimator.X_train_, np.asarray(estimator.alpha_)
    one_dimensional = a.ndim == 1
    a = a.reshape(X.shape[0], -1)
    # There is no public name for what normalize_y took away.
    scale, mean = (np.broadcast_to(v, a.shape[1]) for v in _normalisation(estimator))
    kernel = resolve_kernel("rbf", X, gamma=1.0 / (2.0 * width**2))
    return FittedMachine(
        "regressor", kernel, X, amplitude * a * scale, np.array(mean), one_dimensional
    )


def _normalisation(estimator: Any) -> tuple[Any, Any]:
    return getattr(estimator, "_y_train_std", 1.0), getattr(estimator, "_y_train_mean", 0.0)


def _amplitude_and_width(kernel: Any) -> tuple[float | None, float | None]:
    """The constant factor and the length scale between different rows; None where absent."""
    # A Matern kernel is a subclass of this one.
    if type(kernel) is process_kernels.RBF and np.size(kernel.length_scale) == 1:
        return 1.0, float(np.ravel(kernel.length_scale)[0])
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
            return first * second, one or two
    return None, None


def _machine_kernel(estimator: Any) -> Kernel:
    """The kernel of a LIBSVM machine; what gamma="scale" came to has no public name."""
    numbers = {
        "gamma": estimator._gamma,
        "degree": estimator.degree,
        "coef0": estimator.coef0,
    }
    return _named_kernel(estimator, estimator.support_vectors_, numbers)


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
