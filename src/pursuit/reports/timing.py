"""What a prediction takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["TIMING_SECONDS", "microseconds_a_row"]

# Predictions are timed for so long.
TIMING_SECONDS = 0.3


def microseconds_a_row(
    predict: Callable[[Any], Any], X: Any, seconds: float | None = None
) -> float:
    """Return the shortest of several timed predictions, divided by the rows, after a first one."""
    predict(X)
    best, end = np.inf, time.perf_counter() + (seconds or TIMING_SECONDS)
    while time.perf_counter() < end or best == np.inf:
        start = time.perf_counter()
        predict(X)
        best = min(best, time.perf_counter() - start)
    return float(best * 1e6 / X.shape[0])
