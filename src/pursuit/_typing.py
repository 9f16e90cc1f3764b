"""Names of types that every module uses."""

from typing import Any

import numpy.typing as npt

__all__ = ["Array"]

# An array of numbers; its shape and type stand in the docstring of the function.
Array = npt.NDArray[Any]
