"""Names of types that every module uses."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt

__all__ = ["Array", "Watch"]

# An array of numbers; its shape and type stand in the docstring of the function.
Array = npt.NDArray[Any]

State = TypeVar("State")
# Looks at a search after each of its steps. A text ends the search and says why; None: go on.
Watch = Callable[[State], str | None]
