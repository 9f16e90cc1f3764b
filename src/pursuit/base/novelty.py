"""What outlier detectors share: the score that a share of the training rows lies below."""

from __future__ import annotations

import numpy as np

from pursuit._typing import Array

__all__ = ["score_quantile"]

# Scores nearer to each other than this share of the largest one are those of equal rows.
ROUNDING = 1e-12


def score_quantile(scores: Array, shares: Array, level: float) -> float:
    """A score that as much of the weight lies below as `level` allows.

    It is halfway between two rows: none is at the threshold itself, where rounding would tell on
    which side, and equal rows are on one side of it.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Of the training rows.
    shares : ndarray of shape (n_rows,)
        Their weights, with the sum 1.
    level : float
        The share, below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.base.novelty import score_quantile
    >>> score_quantile(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]), 0.6)
    1.5
    """
    order = np.argsort(scores, kind="stable")
    position = int(np.searchsorted(np.cumsum(shares[order]), level + ROUNDING, side="right"))
    inside = scores[order[min(position, len(order) - 1)]]
    apart = ROUNDING * np.abs(scores).max()
    below = scores[scores < inside - apart]
    return float(0.5 * (inside + below.max()) if len(below) else inside - apart)
