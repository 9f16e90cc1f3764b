"""Constructor parameters as keyword-only dataclass fields, so that they are written once.

scikit-learn asks of a constructor that it names every parameter and only stores it. A dataclass
writes exactly that constructor from fields, and fields are inherited: an estimator lists its own
and takes those of the kernel, say, from `KernelParameters`.

>>> from pursuit.base.parameters import KernelParameters, constructor, positional
>>> @constructor
... class Model(KernelParameters):
...     n_components: int = positional(100)
...     C: float = 1.0
>>> Model(5, C=2.0)
Model(C=2.0, n_components=5)
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

from pursuit.base.collections import hand_on_collections

__all__ = ["KernelParameters", "constructor", "positional"]

T = TypeVar("T")


def positional(default: Any) -> Any:
    """A parameter that may be given without its name; the others are keyword-only."""
    return field(default=default, kw_only=False)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field, positional))
def constructor(cls: type[T]) -> type[T]:
    """Write ``__init__`` from the annotated fields of an estimator class and its bases.

    Equality and representation stay those of scikit-learn. A public class owns its public
    methods, so that an error about a call names it and not one of its bases; those that take rows
    hand collections of blocks on (``collections.py``).
    """
    cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
    if not cls.__name__.startswith("_"):
        _own_methods(cls)
        hand_on_collections(cls)
    return cls


def _own_methods(cls: type[Any]) -> None:
    """Copy the public methods of the bases in this package, under the name of the class."""
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        ours = inspect.isfunction(method) and method.__module__.startswith("pursuit.")
        if ours and not name.startswith("_") and name not in vars(cls):
            setattr(cls, name, _owned(method, cls, name))


def _owned(method: FunctionType, cls: type[Any], name: str) -> FunctionType:
    """A copy of a function, and of those that it wraps, as a method of the class."""
    wrapped = getattr(method, "__wrapped__", None)
    inner = None if wrapped is None else _owned(wrapped, cls, name)
    cells = method.__closure__ or ()
    closure = tuple(CellType(inner) if cell.cell_contents is wrapped else cell for cell in cells)
    own = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, closure)
    vars(own).update(vars(method))
    if inner is not None:
        vars(own)["__wrapped__"] = inner
    own.__doc__, own.__module__ = method.__doc__, cls.__module__
    own.__annotations__ = method.__annotations__
    own.__kwdefaults__ = method.__kwdefaults__
    own.__qualname__ = f"{cls.__qualname__}.{name}"
    return own


@constructor
class KernelParameters(BaseEstimator):
    """The kernel and its numbers, named as in `sklearn.svm.SVC`."""

    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
