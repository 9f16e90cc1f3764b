"""Windows that end: tophat, Epanechnikov, biweight and triweight on balls of one radius.

Vincent, "Modeles a noyaux a structure locale" (2003), sections 5.2.2 and 5.2.3, which leave the
shape of a window open; the shapes are those of Epanechnikov (1969) and of the beta family.

Problem. For rows x_i of weights w_i in n dimensions, with a radius h and a power p,

    k(u) = (1 - |u|^2)^p for |u| < 1, else 0                                               (1)
    p(x) = sum_i w_i k((x - x_i) / h) / (c h^n sum_i w_i)                                  (2)
    c = integral k(u) du = pi^(n/2) Gamma(p + 1) / Gamma(n/2 + p + 1)                      (3)
    f(x) = sum_i w_i k((x - x_i) / h) y_i / sum_i w_i k((x - x_i) / h)                     (4)

=========  ===========================  ==============================================
symbol     name in code                 shape
=========  ===========================  ==============================================
x_i, w_i   ``gaussians``                (m, n), (m,); the mixture's centres and weights
h^2        ``CovarianceModel``          its ``noise_variance``; several in one pass
p          ``power``                    0 tophat, 1 Epanechnikov, 2 biweight, 3 triweight
=========  ===========================  ==============================================

A window has the covariance h^2 / (n + 2 p + 2) times the identity, by which rules for Gaussians
give a radius. A draw from it has |u|^2 from the beta distribution of n/2 and p + 1.

Steps. Rows and centres in compact groups; of the groups of centres that a group of rows can reach,
squared distances, (1), and the sums of (2) and (4). Beyond all windows the density is zero, and f
the value of the nearest centre, to which Gaussian windows tend there, too.

Accuracy. Distances from differences, or from products where these lose no more of |u|^2 than
1e-10. Cost: 2 n operations for each pair within reach; few in low dimension, all in high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from pursuit._typing import Array
from pursuit.density.gaussian_mixture import CovarianceModel, Gaussians, in_unit, window_distances
from pursuit.geometry.kd_tree import bounding_boxes, box_distances, kd_tree_leaves
from pursuit.geometry.nearest import NearestRows
from pursuit.linalg import blocks

__all__ = [
    "POWERS",
    "compact_draw",
    "compact_log_densities",
    "compact_means",
    "window_variance",
]

# p of each window that ends.
POWERS = {"tophat": 0, "epanechnikov": 1, "biweight": 2, "triweight": 3}
# Rows of one group.
GROUP_ROWS = 128


def window_variance(kernel: str, n_features: int) -> float:
    """Variance of a window along each feature, in units of the squared bandwidth.

    Parameters
    ----------
    kernel : str
        "gaussian", or a key of `POWERS`.
    n_features : int
        n.
    """
    return 1.0 if kernel == "gaussian" else 1.0 / (n_features + 2 * POWERS[kernel] + 2)


class _Sums(NamedTuple):
    """Sums over the centres of windows at rows, (n_models, n_rows), and those times values."""

    windows: Array
    moments: Array


def compact_log_densities(
    gaussians: Gaussians,
    X: Array,
    models: Sequence[CovarianceModel],
    kernel: str,
    *,
    left_out: bool = False,
) -> Array:
    """Log-densities of rows, (2), for several radii.

    Parameters
    ----------
    gaussians : Gaussians
        Centres and weights.
    X : ndarray of shape (n_rows, n_features)
        Rows.
    models : sequence of CovarianceModel
        h^2, as their noise variance.
    kernel : str
        A key of `POWERS`.
    left_out : bool, default=False
        `X` are the centres; each is left out of the density at its own place, and the weights of
        the others have the sum 1.

    Returns
    -------
    values : ndarray of shape (n_models, n_rows)
        -inf where there is no window.
    """
    n, p = X.shape[1], POWERS[kernel]
    sums = _sums(gaussians, X, models, p, left_out=left_out).windows
    peak = 0.5 * n * np.log(np.pi) + gammaln(p + 1.0) - gammaln(0.5 * n + p + 1.0)  # log c, (3)
    volumes = peak + 0.5 * n * np.log([noise for noise, _ in models])
    with np.errstate(divide="ignore"):
        values: Array = np.log(sums) - volumes[:, None]
        if left_out:
            values -= np.log1p(-gaussians.weights)
    return values


def compact_means(
    gaussians: Gaussians,
    values: Array,
    X: Array,
    models: Sequence[CovarianceModel],
    kernel: str,
    *,
    left_out: bool = False,
) -> Array:
    """Means of values of the centres by their windows, (4), for several radii.

    Parameters
    ----------
    gaussians, X, models, kernel, left_out
        See `compact_log_densities`.
    values : ndarray of shape (n_centres, n_values)
        y_i.

    Returns
    -------
    means : ndarray of shape (n_models, n_rows, n_values)
        The value of the nearest centre where there is no window.
    """
    sums = _sums(gaussians, X, models, POWERS[kernel], values, left_out=left_out)
    outside = ~(sums.windows > 0)
    means = sums.moments / np.where(outside, 1.0, sums.windows)[:, :, None]
    lost = np.flatnonzero(outside.any(axis=0))
    if len(lost):
        scaled, rows, _, _ = in_unit(gaussians, X[lost], models)
        own = lost if left_out else None
        nearest = NearestRows(scaled.centres).search(rows, 1, own)[:, 0]
        means[:, lost] = np.where(outside[:, lost, None], values[nearest], means[:, lost])
    return np.asarray(means)


def compact_draw(
    gaussians: Gaussians, model: CovarianceModel, kernel: str, picks: Array, rng: Any
) -> Array:
    """One row drawn from each of the windows picked.

    Parameters
    ----------
    gaussians : Gaussians
        Centres.
    model : CovarianceModel
        h^2.
    kernel : str
        A key of `POWERS`.
    picks : ndarray of int of shape (n_rows,)
        Indices of centres.
    rng : RandomState
        Where the numbers come from.
    """
    n = gaussians.centres.shape[1]
    directions = rng.standard_normal((len(picks), n))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = np.sqrt(model.noise_variance * rng.beta(0.5 * n, POWERS[kernel] + 1.0, len(picks)))
    return np.asarray(gaussians.centres[picks] + lengths[:, None] * directions)


def _sums(
    gaussians: Gaussians,
    X: Array,
    models: Sequence[CovarianceModel],
    power: int,
    values: Array | None = None,
    *,
    left_out: bool,
) -> _Sums:
    """Sums over the centres of w_i k((x - x_i) / h), and of these times y_i."""
    gaussians, X, models, _ = in_unit(gaussians, X, models)
    n_values = 0 if values is None else values.shape[1]
    sums = _Sums(np.zeros((len(models), len(X))), np.zeros((len(models), len(X), n_values)))
    if not len(X):
        return sums
    distances = window_distances(gaussians, X, min(noise for noise, _ in models))
    widest = max(noise for noise, _ in models)
    centres = np.asarray(gaussians.centres, dtype=np.float64)
    groups = kd_tree_leaves(centres, GROUP_ROWS)
    low, high = bounding_boxes(centres, groups)

    def fill(rows: Array) -> None:
        for g in np.flatnonzero(box_distances(X[rows], low, high) < widest):
            squared = distances(rows, groups[g])
            if left_out:
                squared[rows[:, None] == groups[g]] = np.inf
            weights = gaussians.weights[groups[g]]
            for s, (noise, _) in enumerate(models):
                windows = _windows(squared, noise, power)
                sums.windows[s, rows] += windows @ weights
                if values is not None:
                    sums.moments[s, rows] += (windows * weights) @ values[groups[g]]

    with blocks.blas_threads(0.0):
        blocks.in_parallel(fill, kd_tree_leaves(X, GROUP_ROWS))
    return sums


def _windows(squared: Array, noise: float, power: int) -> Array:
    """The windows (1) of squared distances."""
    inside = 1.0 - squared / noise
    return np.asarray(np.where(inside > 0.0, np.maximum(inside, 0.0) ** power, 0.0))
