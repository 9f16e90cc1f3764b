"""Predictive intervals from leave-one-out residuals: what is stored of them, and the interval.

R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the
jackknife+", Annals of Statistics 49(1), 486-507, 2021.

Problem. Given n rows, the outputs f_{-i}(x_i) of the fit without each of them and a level alpha,
find an interval about f(x) that holds the target of a new row with probability 1 - alpha.

===========  ===============  ==================================================================
symbol       name in code     shape and meaning
===========  ===============  ==================================================================
R_i          ``errors``       (n, T)  |y_i - f_{-i}(x_i)|, absolute leave-one-out residuals
m_i, p_i     ``masses``       copies of a row, and its share p_i of the weight
q(alpha)     ``quantiles``    (L, T)  at the levels `ALPHAS`
===========  ===============  ==================================================================

Steps.

1. The jackknife's quantile is the ceil((1 - alpha)(n + 1))-th smallest R_i; where there is none,
   it is infinite (their section 1.1). With weights, n = sum m_i copies and the shares p_i,

       q(alpha) = min { r : sum_i p_i [R_i <= r] >= (1 - alpha)(n + 1) / n },

   which for whole weights is the quantile of the rows written out.
2. Stored are q at `ALPHAS`, so that the model does not grow with n. A level in between takes
   the next stored level below, whose interval is the wider one.
3. The interval is f(x) -+ q(alpha).

What holds. The jackknife+ of the paper has a coverage of at least 1 - 2 alpha whatever the
distribution (theorem 1), and needs all n functions f_{-i}, that is n x N numbers. The jackknife
puts f(x) in the place of f_{-i}(x). It has no such guarantee; its coverage is near 1 - alpha where
leaving a row out hardly moves f (theorem 5), as with few vectors on many rows it does. And
f_{-i} is here exact but for one thing: the vectors, gamma and C stay as all rows chose them. A
row had its part in that choice, so R_i is a little too small, the more so the more vectors there
are for a row, and the coverage too low: with 50 vectors chosen among 200 rows intervals of 90 %
held 80 to 90 % of new targets (for vectors that move see ``moving_vectors/leave_one_out.py``).
Quantiles of rows that had no part in the fit
(``calibrate_interval``) are free of both: they are those of split conformal prediction, and for
exchangeable rows the coverage is at least 1 - alpha, whatever the model.

The coverage is on average over x; of several targets each has its own intervals.
"""

from __future__ import annotations

import numpy as np

from pursuit._typing import Array

__all__ = ["ALPHAS", "INTERVAL_ROWS", "error_quantiles", "stored_quantile"]

# Levels of the stored quantiles.
ALPHAS = np.concatenate(
    [[0.001, 0.002, 0.005], np.arange(1, 20) / 100, np.arange(20, 100, 5) / 100]
)
# Rows that are left out, evenly spaced, at most about so many.
INTERVAL_ROWS = 2000
# Shares of weights are sums: what may be missing from them by rounding.
ROUNDING = 1e-12


def error_quantiles(errors: Array, weights: Array, one_copy: Array | float = 1.0) -> Array:
    """q(alpha) at `ALPHAS`; see the top.

    Parameters
    ----------
    errors : ndarray of shape (n_rows, n_targets)
        R.
    weights : ndarray of shape (n_rows,)
        Weights, all positive.
    one_copy : ndarray of shape (n_rows,) or float
        What each row weighs once.

    Returns
    -------
    quantiles : ndarray of shape (n_levels, n_targets)
        Infinite where there are too few rows for a level.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.intervals import error_quantiles, stored_quantile
    >>> table = error_quantiles(np.arange(1.0, 20.0)[:, None], np.ones(19))
    >>> stored_quantile(table, 0.1), stored_quantile(table, 0.01)
    (array([18.]), array([inf]))
    """
    masses = np.maximum(weights / one_copy, 1.0)
    n = float(masses.sum())
    wanted = (1.0 - ALPHAS) * (n + 1.0) / n
    order = np.argsort(errors, axis=0, kind="stable")
    shares = np.cumsum(weights[order], axis=0) / float(weights.sum())
    sorted_errors = np.take_along_axis(errors, order, axis=0)
    beyond = np.vstack([sorted_errors, np.full((1, errors.shape[1]), np.inf)])
    columns = [
        beyond[np.searchsorted(shares[:, t], wanted - ROUNDING), t] for t in range(errors.shape[1])
    ]
    return np.column_stack(columns)


def stored_quantile(quantiles: Array, alpha: float) -> Array:
    """Q of each target at the last stored level that is not above `alpha`."""
    level = int(np.searchsorted(ALPHAS, alpha * (1.0 + ROUNDING), side="right")) - 1
    found: Array = quantiles[level] if level >= 0 else np.full(quantiles.shape[1], np.inf)
    return found
