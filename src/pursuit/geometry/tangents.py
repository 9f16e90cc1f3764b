"""Tangent vectors: directions at a row that are known, and not found from its neighbours.

P. Simard, Y. LeCun and J. Denker, "Efficient pattern recognition using a new transformation
distance", Advances in Neural Information Processing Systems 5 (1993). Where a transformation of
parameter b, of value 0 if nothing is done, leaves a row x what it is, x + b t(x) is for small b as
good a row as x: t(x), the derivative by b, is a tangent vector. They are in the units of the
features for each unit of b.

===========  ============  =============================================
symbol       name in code  shape
===========  ============  =============================================
t_1 ... t_M  ``tangents``  a function of the user, (m, D) to (m, M, D)
tau^2        ``variance``  a number: the variance of b
===========  ============  =============================================

If b_1, ..., b_M have the mean 0 and the variance tau^2 and are not correlated, x + sum_j b_j t_j
has around x the covariance tau^2 sum_j t_j t_j': `KnownDirections` are its factors tau t_j.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array

__all__ = ["KnownDirections", "Tangents", "check_tangents", "known_directions", "tangent_vectors"]

Tangents = Callable[[Array], Array]


def check_tangents(tangents: Any) -> None:
    """Raise unless `tangents` is None or a callable by which fitted numbers may be remembered."""
    if tangents is None or (callable(tangents) and isinstance(tangents, Hashable)):
        return
    if callable(tangents):
        raise ValueError("tangents must be hashable: a function, or a frozen dataclass, say")
    raise ValueError(
        "tangents must be None or a callable that maps rows (m, n_features) to an array "
        f"(m, n_tangents, n_features), got {type(tangents).__name__}"
    )


def tangent_vectors(tangents: Tangents, rows: Array) -> Array:
    """Checked tangent vectors at rows.

    Parameters
    ----------
    tangents : callable
        The user's.
    rows : ndarray of shape (m, D)
        Dense rows.

    Returns
    -------
    directions : ndarray of shape (m, M, D)
        In the type of the rows.

    Raises
    ------
    ValueError
        If the callable gives another shape, or numbers that are not finite.
    """
    directions = np.asarray(tangents(rows)).astype(rows.dtype, copy=False)
    m, n_features = rows.shape
    if directions.ndim != 3 or directions.shape[::2] != (m, n_features):
        raise ValueError(
            f"tangents must give an array ({m}, n_tangents, {n_features}) for rows of shape "
            f"({m}, {n_features}), got shape {directions.shape}"
        )
    if not np.isfinite(directions).all():
        raise ValueError("tangents gave vectors that are not finite")
    return directions


class KnownDirections(NamedTuple):
    """The vectors tau t_j of some rows, whose products with themselves add to a covariance.

    Attributes
    ----------
    tangents : callable
        t.
    rows : ndarray of shape (m, D)
        Where.
    variance : float
        tau^2.
    n_tangents : int
        M.
    """

    tangents: Tangents
    rows: Array
    variance: float
    n_tangents: int

    def __call__(self, part: slice) -> Array:
        """Those of some of the rows, (n_part, M, D), in float64."""
        vectors = tangent_vectors(self.tangents, self.rows[part]).astype(np.float64)
        vectors *= np.sqrt(self.variance)
        return vectors


def known_directions(tangents: Tangents, rows: Array, variance: float) -> KnownDirections:
    """The vectors tau t_j of some rows.

    Parameters
    ----------
    tangents : callable
        t.
    rows : ndarray of shape (m, D)
        At least one.
    variance : float
        tau^2.
    """
    n_tangents = tangent_vectors(tangents, rows[:1]).shape[1]
    return KnownDirections(tangents, rows, variance, int(n_tangents))
