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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

__all__ = ["KernelParameters", "constructor", "positional"]

T = TypeVar("T")


def positional(default: Any) -> Any:
    """A parameter that may be given without its name; the others are keyword-only."""
    return field(default=default, kw_only=False)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field, positional))
def constructor(cls: type[T]) -> type[T]:
    """Write ``__init__`` from the annotated fields of an estimator class and its bases.

    Equality and representation stay those of scikit-learn.
    """
    return dataclass(eq=False, repr=False, kw_only=True)(cls)


@constructor
class KernelParameters(BaseEstimator):
    """The kernel and its numbers, named as in `sklearn.svm.SVC`."""

    kernel: Any = "rbf"
    gamma: float | str = "scale"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
