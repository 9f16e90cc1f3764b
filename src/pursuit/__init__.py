"""Sparse kernel machines: kernel methods with a strict budget of kernel functions."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pursuit.matching_pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit.model_file import ModelFileError, load, save

if TYPE_CHECKING:
    from pursuit.displays import PursuitPathDisplay, SupportDisplay

__version__ = version("pursuit")

__all__ = [
    "KernelMatchingPursuitClassifier",
    "KernelMatchingPursuitClassifierCV",
    "KernelMatchingPursuitRegressor",
    "KernelMatchingPursuitRegressorCV",
    "ModelFileError",
    "PursuitPathDisplay",
    "SupportDisplay",
    "load",
    "save",
]

_DISPLAYS = {"PursuitPathDisplay", "SupportDisplay"}


def __getattr__(name: str) -> Any:
    """Import the displays when they are first asked for."""
    if name in _DISPLAYS:
        return getattr(import_module("pursuit.displays"), name)
    raise AttributeError(f"module 'pursuit' has no attribute {name!r}")
