"""One way to warn: the warning points at the caller's line, however deep the code is."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

__all__ = ["warn"]

# Frames of these packages are ours or stand between us and the caller.
_INSIDE = ("pursuit", "sklearn", "joblib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the first frame outside the library and scikit-learn.

    Parameters
    ----------
    message : str
        What was done, and what the user may change.
    category : type, default=UserWarning
        A subclass of Warning.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and _is_inside(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame runs code of the library or of what calls it for the user."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INSIDE
