"""A weighted median, and a scale of targets that outliers do not move."""

from __future__ import annotations

import numpy as np

from pursuit._typing import Array

__all__ = ["robust_scale", "weighted_median"]

# The median absolute deviation of a normal variable is its standard deviation over this.
NORMAL_MAD = 1.4826
# Targets whose deviation is below this share of them are equal: it is rounding.
EQUAL = 1e-14


def robust_scale(Y: Array, weights: Array) -> float:
    """Return a standard deviation of the targets that outliers do not move.

    1.4826 times the weighted median of the absolute deviations, of all outputs together, each
    from the weighted median of its output. Where that is zero (more than half of the targets
    are equal) it is the weighted standard deviation; where that is zero, too, to rounding, it is
    the largest absolute target, and 1 where all targets are zero.

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_outputs)
        Targets.
    weights : ndarray of shape (n_rows,)
        A weight of 2 counts as the row twice.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import robust_scale
    >>> robust_scale(np.array([[1.0], [2.0], [3.0], [4.0], [1e9]]), np.ones(5))
    1.4826
    """
    centres = [weighted_median(column, weights) for column in Y.T]
    deviations = Y - np.array(centres)
    mad = weighted_median(np.abs(deviations).ravel(), np.repeat(weights, Y.shape[1]))
    if mad > 0.0:
        return NORMAL_MAD * mad
    deviations -= np.average(deviations, axis=0, weights=weights)
    variance = np.average((deviations**2).mean(axis=1), weights=weights)
    largest = float(np.abs(Y).max(initial=0.0))
    return float(np.sqrt(variance)) if variance > (EQUAL * largest) ** 2 else largest or 1.0


def weighted_median(values: Array, weights: Array) -> float:
    """Return the lower weighted median: the least value that half of the weight does not exceed.

    Parameters
    ----------
    values, weights : ndarray of shape (n,)
        Values and their weights, not all of which are zero. A weight of 2 counts as the value
        twice.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import weighted_median
    >>> weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]))
    1.0
    """
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    # Half of the weight to rounding, so that equal weights of any size give the same value.
    half = np.searchsorted(cumulative, (0.5 - 1e-12) * cumulative[-1])
    return float(values[order[half]])
