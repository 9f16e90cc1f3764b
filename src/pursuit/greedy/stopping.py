"""When to stop: which prefix of a path to keep.

Sections 2.1 and 5 of Vincent and Bengio (2002): a fixed number of functions, a training error
below a threshold, or the number with the lowest error on rows that the fit has not seen, with
patience. Pure functions of a sequence of losses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pursuit._typing import Array

__all__ = ["Decision", "best_prefix", "below_threshold"]


class Decision(NamedTuple):
    """How many steps to keep, how many were looked at, and whether to look no further."""

    n_steps: int
    n_seen: int
    final: bool


def best_prefix(losses: Array, patience: int | None = None, tol: float = 0.0) -> Decision:
    """Find the shortest prefix with the lowest loss.

    Parameters
    ----------
    losses : ndarray of shape (n_steps,)
        Loss after 1, 2, ... steps.
    patience : int, optional
        Look no further than this many steps after the best one.
    tol : float, default 0.0
        A step counts as better only where it lowers the best loss by more than this.

    Returns
    -------
    decision : Decision
        `n_steps` is the prefix to keep (0 for an empty sequence); `final` tells that patience
        ran out.

    Examples
    --------
    >>> from pursuit.greedy.stopping import best_prefix
    >>> best_prefix([3.0, 1.0, 2.0, 0.5], patience=1)
    Decision(n_steps=2, n_seen=3, final=True)
    """
    best, kept = np.inf, 0
    for n, loss in enumerate(losses, start=1):
        if loss < best - tol or kept == 0:
            best, kept = loss, n
        elif patience is not None and n - kept >= patience:
            return Decision(kept, n, True)
    return Decision(kept, len(losses), False)


def below_threshold(losses: Array, threshold: float) -> int | None:
    """Return the first number of steps whose loss is at most `threshold`, or None.

    Examples
    --------
    >>> from pursuit.greedy.stopping import below_threshold
    >>> below_threshold([3.0, 1.0, 0.5], 1.0)
    2
    """
    reached = np.flatnonzero(np.asarray(losses) <= threshold)
    return int(reached[0]) + 1 if len(reached) else None
