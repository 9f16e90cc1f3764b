"""Arrays of other libraries, on whatever device: what is beside NumPy, in one place.

A *device array* is here an array of a library that follows the array API and is not NumPy: torch,
CuPy, dpnp, array-api-strict. scikit-learn's rule for its estimators holds for those here: with
``sklearn.config_context(array_api_dispatch=True)`` everything follows X (`dispatched`). Below the
estimators a function that can work on device arrays asks for their namespace (`namespace_of`) and
says in array API what it says in NumPy beside it; NumPy arrays and CSR matrices never get there.

This module alone imports array-api-compat and array-api-extra (extra ``gpu``), when the first
device array comes. It lies below everything else, as kernels and distances need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
import sklearn

from pursuit._typing import Array

__all__ = [
    "alike",
    "as_wide",
    "beside",
    "computing_beside",
    "dispatched",
    "extra",
    "float_types",
    "is_single",
    "namespace_of",
    "promoted",
    "same_place",
    "to_numpy",
]

_beside: ContextVar[Any] = ContextVar("_beside", default=None)


@cache
def _compat() -> Any:
    """array-api-compat; one error that names the extra."""
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError("arrays of other libraries need pursuit[gpu]") from error
    return array_api_compat


def extra() -> Any:
    """array-api-extra."""
    import array_api_extra

    return array_api_extra


def namespace_of(X: Any) -> Any:
    """The namespace of a device array; None for NumPy's and whatever else.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit._arrays import namespace_of
    >>> namespace_of(np.ones(3)) is None
    True
    """
    if isinstance(X, np.ndarray | np.generic) or not hasattr(X, "__dlpack__"):
        return None
    compat = _compat()
    return compat.array_namespace(X) if compat.is_array_api_obj(X) else None


def dispatched(X: Any) -> Any:
    """`namespace_of` where scikit-learn's ``array_api_dispatch`` is set; else None."""
    if isinstance(X, np.ndarray) or not sklearn.get_config()["array_api_dispatch"]:
        return None
    return namespace_of(X)


def same_place(X: Any, other: Any) -> bool:
    """Whether two device arrays have one namespace and one device."""
    device = _compat().device
    return namespace_of(X) is namespace_of(other) and bool(device(X) == device(other))


def to_numpy(array: Any) -> Array:
    """The numbers of any array in one of NumPy; itself if it is one."""
    xp = namespace_of(array)
    if xp is None:
        return np.asarray(array)
    compat = _compat()
    if compat.is_array_api_strict_namespace(xp):
        return np.asarray(xp.asarray(array, device=xp.Device("CPU_DEVICE")))
    if compat.is_torch_namespace(xp):
        array = array.detach()
    return np.asarray(compat.to_device(array, "cpu"))


def float_types(X: Any) -> list[Any]:
    """float64, where the device of `X` has it, and float32."""
    xp = namespace_of(X)
    known = xp.__array_namespace_info__().dtypes(kind="real floating", device=_compat().device(X))
    return [known[name] for name in ("float64", "float32") if name in known]


def alike(array: Any, X: Any, dtype: Any = None) -> Any:
    """An array in the namespace and on the device of `X`.

    Parameters
    ----------
    array : array
        Of NumPy, or a device array.
    X : array
        Of NumPy, or a device array.
    dtype : dtype, optional
        Of that namespace. None: the array's own; float32 for a float64 that the device lacks.
    """
    xp = namespace_of(X)
    if xp is None:
        return np.asarray(to_numpy(array), dtype=dtype)
    if namespace_of(array) is not None and same_place(array, X):
        return array if dtype is None else xp.astype(array, dtype, copy=False)
    numbers = to_numpy(array)
    if numbers.dtype == np.float64 and len(float_types(X)) == 1:
        numbers = numbers.astype(np.float32)
    numbers = np.require(numbers, requirements=["C", "W"])
    return xp.asarray(numbers, dtype=dtype, device=_compat().device(X))


def as_wide(X: Any) -> Any:
    """A device array in float64, or in float32 on a device that has no other."""
    return namespace_of(X).astype(X, float_types(X)[0], copy=False)


def promoted(xp: Any, *arrays: Any) -> list[Any]:
    """Device arrays in their common type."""
    kind = xp.result_type(*arrays)
    return [xp.astype(array, kind, copy=False) for array in arrays]


def is_single(X: Any) -> bool:
    """Whether an array is in single precision."""
    xp = namespace_of(X)
    return bool(X.dtype == (np.float32 if xp is None else xp.float32))


@contextmanager
def computing_beside(X: Any) -> Iterator[None]:
    """Context in which what is worth it is computed on the device of `X`, from NumPy arrays."""
    token = _beside.set(X)
    try:
        yield
    finally:
        _beside.reset(token)


def beside() -> Any:
    """The device array of `computing_beside`, or None."""
    return _beside.get()
