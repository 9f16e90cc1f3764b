"""Checks of parameters and targets that the estimators share; each error names its parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    validate_data,
)

from pursuit._arrays import as_wide, dispatched, float_types, namespace_of
from pursuit._objects import object_column, takes_objects
from pursuit._typing import Array

__all__ = [
    "FLOATS",
    "Samples",
    "announced_classes",
    "called",
    "check_choice",
    "check_integer",
    "check_real",
    "check_several_classes",
    "check_weights",
    "checked_classes",
    "class_codes",
    "class_numbers",
    "class_weights",
    "finite_numbers",
    "fits_single",
    "in_range",
    "is_collection",
    "read_data",
    "refuse_not_finite",
    "signed_targets",
    "summed",
]

# Rows keep these types; others are converted to float64.
FLOATS = [np.float64, np.float32]
# How a fitted estimator reads its queries.
QUERY = {"reset": False, "accept_sparse": "csr"}
# Between these absolute values squares, and sums of many of them, stay within double precision.
LARGEST, SMALLEST = 1e152, 1e-152
# Single precision holds the squares of values between these alone.
LARGEST_SINGLE, SMALLEST_SINGLE = 1e15, 1e-15


class Samples(NamedTuple):
    """Training rows with their targets (l, T) and positive weights (l,).

    A weight is a number of copies times the weight of each, which is 1 where `scales` is None.
    """

    X: Any
    Y: Array
    weights: Array
    scales: Array | None = None

    def take(self, rows: Array) -> Samples:
        """Return some of the rows."""
        scales = None if self.scales is None else self.scales[rows]
        return Samples(self.X[rows], self.Y[rows], self.weights[rows], scales)

    @property
    def one_copy(self) -> Array:
        """What each row weighs once; a row of less than one copy is left out whole."""
        return np.minimum(self.weights, 1.0 if self.scales is None else self.scales)


def read_data(estimator: Any, *data: Any, name: str = "X", **options: Any) -> Any:
    """Checked samples, or samples and targets: where every estimator reads its input.

    Parameters
    ----------
    estimator : estimator
        Who reads.
    *data : array-like
        X, or X and y.
    name : str, default="X"
        What the user calls X; errors say it.
    **options
        Those of `sklearn.utils.validation.validate_data`.

    Returns
    -------
    X or (X, y)
        As `validate_data` gives them. A CSR matrix has each entry once (see `summed`). Rows that
        are no vectors come as a column of objects where the kernel is a function (``_objects.py``).

    Raises
    ------
    ValueError
        If scikit-learn refuses the data, or a fit's squares overflow or vanish (see `in_range`), or
        rows are objects and the estimator needs their coordinates.
    """
    if len(data) == 1 and options == QUERY and _is_plain(estimator, data[0]):
        return in_range(data[0], name, fits=False)
    for given, called_so in zip(data, (name, "y"), strict=False):
        _refuse_collection(given, called_so)
    if takes_objects(_kernel_of_rows(estimator)):
        known = hasattr(estimator, "_fitted_on_objects") and not options.get("reset", True)
        column = object_column(data[0], certain=known)
        if column is not None:
            return _read_objects(estimator, column, *data[1:], name=name, **options)
        if options.get("reset", True):
            vars(estimator).pop("_fitted_on_objects", None)
    on_device = dispatched(data[0]) is not None
    options = {"dtype": float_types(data[0]) if on_device else FLOATS} | options
    fits = options.get("reset", True)
    with called(name), np.errstate(invalid="ignore"):  # inf - inf, where inf is looked for
        checked = validate_data(estimator, *data, **options)
    if on_device:
        return _in_device_range(checked)
    if isinstance(checked, tuple):
        return in_range(summed(checked[0], name), name, fits=fits), *checked[1:]
    return in_range(summed(checked, name), name, fits=fits)


def _kernel_of_rows(estimator: Any) -> Any:
    """The kernel argument; the first of a pair."""
    kernel = getattr(estimator, "kernel", None)
    return kernel[0] if isinstance(kernel, tuple | list) and kernel else kernel


def _read_objects(estimator: Any, column: Array, *y: Any, name: str, **options: Any) -> Any:
    """A column of objects, or that and targets."""
    if not getattr(estimator, "_takes_objects", False):
        raise ValueError(
            f"{name} holds objects that are no rows of numbers, and {type(estimator).__name__} "
            "computes with coordinates. Where vectors are rows of the data (kernel matching "
            "pursuit, SparseKernelPCA and others) a kernel that is a function takes them"
        )
    if options.get("reset", True):
        estimator._fitted_on_objects, estimator.n_features_in_ = True, 1
    elif not hasattr(estimator, "_fitted_on_objects"):
        raise ValueError(f"{name} holds objects, but the rows of fit were numbers")
    if not y:
        return column
    kept = {key: options[key] for key in ("multi_output", "y_numeric") if key in options}
    targets = validate_data(estimator, y=y[0], reset=options.get("reset", True), **kept)
    check_consistent_length(column, targets)
    return column, targets


def is_collection(X: Any) -> bool:
    """Whether X is dask's, told by its protocol and the names of its classes: dask is not loaded.

    Examples
    --------
    >>> from pursuit._validation import is_collection
    >>> is_collection([[1.0]])
    False
    """
    return hasattr(X, "__dask_graph__") and any(
        cls.__module__.partition(".")[0] == "dask" for cls in type(X).__mro__
    )


def _refuse_collection(X: Any, name: str) -> None:
    """Rather than gather a collection in this process unasked."""
    if is_collection(X):
        raise ValueError(
            f"{name} is a dask collection, which is not taken here; {name}.compute() has its rows. "
            "`pursuit.distributed` says what takes collections"
        )


def _is_plain(estimator: Any, X: Any) -> bool:
    """Whether `validate_data` would find nothing wrong with a query, and return it as it is."""
    return (
        type(X) is np.ndarray
        and X.dtype in FLOATS
        and X.ndim == 2
        and X.size > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
        and _largest(X) < np.inf  # neither infinite nor NaN
    )


def _largest(values: Array) -> float:
    """Largest absolute value; NaN if any is NaN."""
    return max(float(values.max()), -float(values.min()))


@contextmanager
def called(name: str) -> Iterator[None]:
    """Let errors about X or y say what the user calls it."""
    try:
        yield
    except ValueError as error:
        if name in ("X", "y"):
            raise
        text = re.sub(rf"\b{name[0]}\b", name, str(error))
        raise ValueError(text if name in text else f"{name}: {text}") from error


def in_range(X: Any, name: str, *, fits: bool) -> Any:
    """Samples whose squares can be formed, in double precision where single is too short for them.

    Queries (`fits` is False) may lie as far away as they like: all kernels vanish there.

    Raises
    ------
    ValueError
        If the squares of training samples overflow, or all vanish, in double precision too.
    """
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind != "f" or not values.size:
        return X
    if not fits and values.dtype == np.float64:
        return X
    largest = _largest(values)
    if fits:
        _check_squares(largest, name)
    if values.dtype == np.float32 and not fits_single(largest):
        return X.astype(np.float64)
    return X


def _in_device_range(X: Any) -> Any:
    """Queries on a device, in double precision where single is too short for their squares."""
    largest = float(namespace_of(X).max(namespace_of(X).abs(X)))
    return X if fits_single(largest) else as_wide(X)


def fits_single(largest: float) -> bool:
    """Whether single precision holds the squares of numbers of which this is the largest."""
    return largest == 0.0 or SMALLEST_SINGLE < largest < LARGEST_SINGLE


def _check_squares(largest: float, name: str) -> None:
    """Refuse samples whose squares overflow or vanish."""
    if LARGEST < largest < np.inf:
        raise ValueError(
            f"{name} has values as large as {largest:.3g}, whose squares overflow; rescale them"
        )
    if 0.0 < largest < SMALLEST:
        raise ValueError(
            f"{name} has no value above {largest:.3g}, so that all squares vanish; rescale them"
        )


def summed(X: Any, name: str = "X") -> Any:
    """A CSR matrix with sorted, distinct entries and short indices; dense samples as they are.

    The caller's matrix is never changed: where something is to be done, it is done on a copy.

    Raises
    ------
    ValueError
        If duplicate entries are finite but their sum is not.
    """
    if not sparse.issparse(X):
        return X
    if X.format != "csr":
        X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        assert_all_finite(X.data, input_name=name)
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= np.iinfo(np.int32).max:
        # LIBSVM and k-means of scikit-learn take no others.
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = type(X)(parts, shape=X.shape)
    return X


def check_integer(name: str, value: Any, minimum: int = 1, *, optional: bool = False) -> None:
    """Raise unless `value` is an integer of at least `minimum` (or None where optional)."""
    if optional and value is None:
        return
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")


def check_real(
    name: str, value: Any, minimum: float = 0.0, below: float = np.inf, *, above: bool = False
) -> None:
    """Raise unless `value` is a finite number in [minimum, below), open below if `above`."""
    number = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    inside = number and (value > minimum if above else value >= minimum) and value < below
    if not inside:
        least = f" {'above' if above else 'of at least'} {minimum:g}" if minimum > -np.inf else ""
        most = "" if below == np.inf else f" and below {below:g}"
        raise ValueError(f"{name} must be a finite number{least}{most}, got {value!r}")


def finite_numbers(name: str, given: Any, n_axes: int) -> Array:
    """A copy in float64, read-only, of that many axes and not empty; one error unless finite."""
    try:
        numbers = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {given!r}") from None
    if numbers.ndim != n_axes or not numbers.size or not np.isfinite(numbers).all():
        shape = "(n_features,)" if n_axes == 1 else "(n_features, .)"
        raise ValueError(f"{name} must be an array {shape} of finite numbers, got {given!r}")
    numbers.flags.writeable = False
    return numbers


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise unless `value` is one of `choices`, of the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def check_several_classes(classes: Array) -> None:
    """Raise unless there are at least two classes."""
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only ({classes[0]}); a classifier needs rows of positive weight "
            "from at least 2 classes"
        )


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Weights of the rows as float64, ones where none are given.

    Raises
    ------
    ValueError
        If there is not one finite, non-negative weight a row, or all are zero.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({n_rows},)")
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"sample_weight is negative at row {row}")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row")
    checked: Array = weights
    return checked


def class_weights(
    class_weight: Mapping[Any, float] | str | None, classes: Array, codes: Array, weights: Array
) -> Array:
    """Weight of each class.

    Parameters
    ----------
    class_weight : mapping, "balanced" or None
        As in scikit-learn; ``"balanced"`` counts rows by their sample weights.
    classes : ndarray of shape (n_classes,)
        Sorted labels.
    codes : ndarray of int of shape (n_rows,)
        Index of each row's class.
    weights : ndarray of shape (n_rows,)
        Sample weights.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        mass = np.bincount(codes, weights=weights, minlength=len(classes))
        return np.asarray(mass.sum() / (len(classes) * np.where(mass > 0, mass, 1.0)))
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight must be a mapping, 'balanced' or None, got {class_weight!r}"
        )
    for weight in class_weight.values():
        check_real("class_weight", weight)
    return np.asarray(compute_class_weight(dict(class_weight), classes=classes, y=classes[codes]))


def checked_classes(classes: Any) -> Array:
    """Sorted labels, at least two.

    Raises
    ------
    ValueError
        If there are fewer.
    """
    labels: Array = np.unique(column_or_1d(classes))
    if len(labels) < 2:
        raise ValueError(f"classes must hold at least two labels, got {labels.tolist()}")
    return labels


def class_numbers(y: Any, classes: Array) -> Array:
    """The place of each label among sorted ones.

    Raises
    ------
    ValueError
        If a label is not among them.
    """
    y = column_or_1d(y)
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(f"y has the label {y[unknown][0]!r}, which is not among the classes")
    numbers: Array = np.searchsorted(classes, y)
    return numbers


def announced_classes(classes: Any, known: Array | None) -> Array:
    """All labels of a stream: those of its first call.

    Parameters
    ----------
    classes : array-like or None
        As this call gives them.
    known : ndarray or None
        Those of the first call; None: this is the first.

    Raises
    ------
    ValueError
        If the first call gives none, or a later one others.
    """
    if classes is None and known is None:
        raise ValueError("classes must be passed on the first call to partial_fit.")
    if classes is None:
        return np.asarray(known)
    labels = checked_classes(classes)
    if known is not None and labels.tolist() != known.tolist():
        raise ValueError(f"classes={classes!r} differ from those of the first call, {known}")
    return labels


def signed_targets(codes: Array, n_classes: int) -> Array:
    """Targets +1 and -1: one column for two classes, else one column a class."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def class_codes(targets: Array) -> Array:
    """Index of each row's class, from the targets that `signed_targets` gives."""
    if targets.shape[1] == 1:
        return (targets[:, 0] > 0).astype(int)
    codes: Array = targets.argmax(axis=1)
    return codes


def refuse_not_finite(values: Array, start: int | None) -> None:
    """Raise the error that names the row, or says that only the sums are not finite."""
    not_finite = np.argwhere(~np.isfinite(values))
    if not len(not_finite):
        raise ValueError("kernel: the values are too large to be added; rescale the features")
    row, column = not_finite[0]
    where = "" if start is None else f" at training row {start + row}"
    raise ValueError(
        f"kernel: the value{where}, candidate {column} is not finite; "
        "rescale the features or change gamma, degree or coef0"
    )
