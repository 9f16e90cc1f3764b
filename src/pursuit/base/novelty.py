"""What outlier detectors share: the score that a share of the training rows lies below."""

from __future__ import annotations

import numpy as np

from pursuit._typing import Array

__all__ = ["score_quantile"]


def score_quantile(scores: Array, shares: Array, level: float) -> float:
    """The score that a share `level` of the weight lies below.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Of the training rows.
    shares : ndarray of shape (n_rows,)
        Their weights, with the sum 1.
    level : float
        The share.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.base.novelty import score_quantile
    >>> score_quantile(np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25]), 0.6)
    2.0
    """
    if np.ptp(shares) == 0.0:
        return float(np.quantile(scores, level))
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(shares[order])
    position = min(int(np.searchsorted(below, level)), len(order) - 1)
    return float(scores[order[position]])
