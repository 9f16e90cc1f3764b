"""Log-densities of mixtures of equal spheres on a device: Parzen windows.

As in ``gaussian_mixture.py``, without axes: with the squared distances of ``distances.py``

    log p(x) = log sum_i exp(c_i - |x - x_i|^2 / (2 sigma^2)),
    c_i = log pi_i - n/2 log(2 pi sigma^2),

block by block of rows, relative to the largest term of each row. The distances of a block serve
every sigma. Cost: l m (n + 10) operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pursuit._arrays import alike, as_wide, namespace_of, to_numpy
from pursuit._typing import Array
from pursuit.geometry.distances import shifted_centres, squared_distances
from pursuit.linalg import blocks

__all__ = ["device_log_sums"]


def device_log_sums(
    centres: Array,
    constants: Sequence[Array],
    noise_variances: Sequence[float],
    X: Array,
    left_out: Array | None,
    place: Any,
) -> Array:
    """Log sum_i exp(c_i - |x - x_i|^2 / (2 sigma^2)) of each row, for some sigma.

    Parameters
    ----------
    centres : ndarray of shape (n_centres, n_features)
        x_i.
    constants : sequence of ndarray of shape (n_centres,)
        c, for each sigma.
    noise_variances : sequence of float
        sigma^2.
    X : ndarray of shape (n_rows, n_features)
        Rows.
    left_out : ndarray of int of shape (n_centres, k) or None
        Rows to which a centre does not contribute.
    place : device array
        Where to compute.

    Returns
    -------
    values : ndarray of shape (n_models, n_rows)
        Of NumPy; -inf where there is no term.
    """
    values = np.empty((len(constants), len(X)))
    rows = as_wide(alike(X, place))
    prepared = shifted_centres(as_wide(alike(centres, place)))
    shifts = [as_wide(alike(each, place)) for each in constants]
    out = None if left_out is None else alike(left_out, place)
    xp = namespace_of(place)
    for part in blocks.row_blocks(len(X), 32.0 * len(centres)):
        distances = squared_distances(rows[part, :], prepared)
        if out is not None:
            numbers = xp.arange(part.start, part.stop, device=out.device)
            distances = xp.where(_pairs(numbers, out), xp.inf, distances)
        for found, shift, noise in zip(values, shifts, noise_variances, strict=True):
            found[part] = to_numpy(_log_sum(shift - distances / (2.0 * noise)))
    return values


def _pairs(rows: Any, left_out: Any) -> Any:
    """Whether a row is left out of a centre, (n_rows, n_centres)."""
    found = rows[:, None] == left_out[:, 0][None, :]
    for j in range(1, left_out.shape[1]):
        found = found | (rows[:, None] == left_out[:, j][None, :])
    return found


def _log_sum(terms: Any) -> Any:
    """Log of the sum of exponentials of each row."""
    xp = namespace_of(terms)
    largest = xp.max(terms, axis=1)
    top = xp.where(xp.isfinite(largest), largest, 0.0)
    total = xp.sum(xp.exp(terms - top[:, None]), axis=1)
    some = total > 0.0
    return xp.where(some, xp.log(xp.where(some, total, 1.0)) + top, -xp.inf)
