"""Everything follows X: what estimators do with arrays of other libraries, on any device.

scikit-learn's rule, with ``sklearn.config_context(array_api_dispatch=True)``: fitted arrays and
results are where X was, in its library and on its device, and queries must be there, too.

==================  ==============================================================================
a method that       does this with device arrays
==================  ==============================================================================
`following`         fits: reads X on the host, where it is checked; what a fit spends its time on
                    may go back to the device (``_arrays.beside``); the fitted arrays follow X
`native`            works on device arrays from beginning to end
`through_host`      works on a copy of the model in NumPy; what it gives follows X
==================  ==============================================================================

With NumPy arrays, CSR matrices and tables of pandas all three are the method itself. The labels
``classes_`` stay in NumPy, as they may be text; so does what only the path of a fit needs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pursuit._arrays import alike, computing_beside, dispatched, namespace_of, same_place
from pursuit._arrays import to_numpy as _array_to_numpy

__all__ = ["FollowsX", "following", "native", "through_host", "to_device_of", "to_numpy"]

Method = TypeVar("Method", bound=Callable[..., Any])
Convert = Callable[[Any], Any]
Model = TypeVar("Model")

# A fitted model keeps an empty array where its arrays are, if that is on a device.
HOME = "_home"
# Fitted attributes that are no numbers, or need not be.
STAY = ("classes_",)


class FollowsX:
    """Mixin of estimators whose methods are `following`, `native` or `through_host`."""

    def __sklearn_tags__(self) -> Any:
        """Arrays of other libraries are accepted."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = True
        return tags

    def __sklearn_array_api_convert__(self, converter: Convert) -> Any:
        """What scikit-learn calls to move a fitted estimator."""
        return _moved(self, converter)


def following(fit: Method) -> Method:
    """A method that fits, or fits on; what it stores follows X."""

    @wraps(fit)
    def followed(self: Any, *args: Any, **kwargs: Any) -> Any:
        home = vars(self).get(HOME)
        if home is not None:
            _relocate(self, _array_to_numpy)
        if not sklearn.get_config()["array_api_dispatch"]:
            return fit(self, *args, **kwargs)
        X = args[0] if args else kwargs.get("X")
        where = X if dispatched(X) is not None else None
        if where is None and X is None:
            where = home
        with computing_beside(where):
            result = fit(self, *_on_host(args), **_on_host(kwargs))
        if where is not None:
            _relocate(self, lambda array: alike(array, where))
        return result

    return followed  # type: ignore[return-value]


def native(method: Method) -> Method:
    """A method of rows that works on device arrays."""

    @wraps(method)
    def checked(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if type(X) is not np.ndarray or HOME in vars(self):
            _check_home(self, X, method.__name__)
        return method(self, X, *args, **kwargs)

    return checked  # type: ignore[return-value]


def through_host(method: Method) -> Method:
    """A method that works in NumPy; what it gives follows X, or the model."""

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        X = args[0] if args else kwargs.get("X")
        if HOME not in vars(self) and (type(X) is np.ndarray or dispatched(X) is None):
            return method(self, *args, **kwargs)
        if X is not None and not np.isscalar(X):
            _check_home(self, X, method.__name__)
        home = vars(self)[HOME]
        with computing_beside(home):
            result = method(to_numpy(self), *_on_host(args), **_on_host(kwargs))
        return _like(result, home)

    return called  # type: ignore[return-value]


def to_numpy(model: Model) -> Model:
    """A copy of a fitted model with its arrays in NumPy.

    Parameters
    ----------
    model : estimator
        Fitted on arrays of any library: one of this package, or a Pipeline that holds some.

    Returns
    -------
    model : estimator
        It predicts, can be saved, exported and plotted as one that was fitted on NumPy arrays.

    See Also
    --------
    to_device_of : The other way.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import pursuit
    >>> X, y = load_iris(return_X_y=True)
    >>> model = pursuit.KernelMatchingPursuitClassifier(10).fit(X, y)
    >>> bool((pursuit.to_numpy(model).predict(X) == model.predict(X)).all())
    True
    """
    moved: Model = _moved(model, _array_to_numpy)
    return moved


def to_device_of(model: Model, X: Any) -> Model:
    """A copy of a fitted model with its arrays in the library and on the device of X.

    Parameters
    ----------
    model : estimator
        Fitted on arrays of any library: one of this package, or a Pipeline that holds some.
    X : array
        An array of a library that follows the array API, such as torch or CuPy.

    Returns
    -------
    model : estimator
        It predicts on arrays like X, with ``sklearn.config_context(array_api_dispatch=True)``.

    See Also
    --------
    to_numpy : The other way.

    Examples
    --------
    >>> import array_api_strict
    >>> import pursuit
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = pursuit.KernelMatchingPursuitClassifier(10).fit(X, y)
    >>> moved = pursuit.to_device_of(model, array_api_strict.asarray(X))
    >>> moved.dual_coef_.__array_namespace__().__name__
    'array_api_strict'
    """
    moved: Model = _moved(model, lambda array: alike(array, X))
    return moved


def _moved(value: Any, convert: Convert) -> Any:
    """A copy of an estimator, or of a list or dict of some, with arrays converted."""
    if isinstance(value, BaseEstimator):
        model = copy.copy(value)
        _relocate(model, convert)
        return model
    if type(value) in (list, tuple):
        return type(value)(_moved(each, convert) for each in value)
    if type(value) is dict:
        return {name: _moved(each, convert) for name, each in value.items()}
    return value


def _relocate(model: Any, convert: Convert) -> None:
    """Convert the arrays of a fitted estimator in place."""
    if isinstance(model, FollowsX):
        given = {*model.get_params(deep=False), *STAY}  # type: ignore[attr-defined]
    else:
        given = set(STAY)
    fitted = {name: value for name, value in vars(model).items() if name not in given}
    vars(model).update({name: _converted(value, convert) for name, value in fitted.items()})
    if isinstance(model, FollowsX):
        home = convert(np.empty(0))
        vars(model).pop(HOME, None)
        if namespace_of(home) is not None:
            vars(model)[HOME] = home


def _converted(value: Any, convert: Convert) -> Any:
    """A fitted attribute with its arrays converted."""
    if isinstance(value, np.ndarray):
        return convert(value) if value.dtype.kind in "biuf" else value
    if namespace_of(value) is not None:
        return convert(value)
    return value.moved(convert) if hasattr(value, "moved") else _moved(value, convert)


def _on_host(given: Any) -> Any:
    """Arguments with device arrays in NumPy."""
    if isinstance(given, dict):
        return {name: _host(value) for name, value in given.items()}
    return tuple(_host(value) for value in given)


def _host(value: Any) -> Any:
    """An argument in NumPy, if it is a device array."""
    return value if namespace_of(value) is None else _array_to_numpy(value)


def _like(result: Any, home: Any) -> Any:
    """A result with its arrays where the model is."""
    if isinstance(result, np.ndarray):
        return alike(result, home) if result.dtype.kind in "biuf" else result
    if isinstance(result, FollowsX):
        _relocate(result, lambda array: alike(array, home))
        return result
    if isinstance(result, Iterator):
        return (_like(each, home) for each in result)
    if isinstance(result, tuple):
        parts = [_like(each, home) for each in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result


def _check_home(model: Any, X: Any, method: str) -> None:
    """Raise unless X is where the arrays of the fitted model are."""
    home, here = vars(model).get(HOME), dispatched(X)
    if home is None and here is None:
        return
    check_is_fitted(model)
    if home is not None and here is not None and same_place(home, X):
        return
    raise ValueError(
        f"Inputs passed to {type(model).__name__}.{method}() must use the same namespace and the "
        f"same device as those passed to fit(): {_place(home)}, not {_place(X)}. "
        "pursuit.to_numpy(model) and pursuit.to_device_of(model, X) move a fitted model; arrays of "
        "other libraries than NumPy need sklearn.config_context(array_api_dispatch=True)."
    )


def _place(array: Any) -> str:
    """Library and device of an array."""
    xp = namespace_of(array)
    return "NumPy" if xp is None else f"{type(array).__module__.split('.')[0]} on {array.device}"
