"""The leave-one-out likelihood of densities, and the bandwidth that maximises it.

Vincent, "Modeles a noyaux a structure locale" (2003), section 5.2.3 and chapter 13, chooses by a
validation set; here rows are left out one at a time.

Problem. For different rows x_r of weights w_r, the mean over the rows, by weight, of

    log p_r(x_r),    p_r(x) = sum_{i /= r} w_i N(x; x_i, C_i^(r)) / sum_{i /= r} w_i,

where C_i^(r) is the covariance that the fit would give without row r: where x_r is among the k
neighbours of x_i, the next nearest row takes its place. Keeping C_i there would favour axes that
run through the very row that is left out; with d = k these hold it exactly, for any sigma.

==============  =======================  =====================================================
symbol          name in code             shape
==============  =======================  =====================================================
neighbours      ``neighbors``            (m, k + 1), nearest first; (m, k) where there are no more
M_i             ``differences``          (k + 1, n), rows x_j - x_i
G_i = M_i M_i'  ``gram``                 (k + 1, k + 1)
==============  =======================  =====================================================

Steps. The terms of all pairs but r = i and r among the neighbours of i are those of the whole
mixture. For each i and each r of its k neighbours, the other rows of G_i, scaled by the weights,
have eigenpairs (s_j^2, w_j), and with t_j = w_j'(G_i)_r the form of ``gaussian_mixture.py`` is
q = [G_i,rr - sum_j t_j^2 / lambda_j] / sigma^2. The eigenpairs serve every sigma and d.

Equal rows are left out together: a copy that stays would ask for a width of zero.

Cost. m k eigenvalue problems of size k, and one pass over the pairs of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from pursuit._typing import Array
from pursuit.density.gaussian_mixture import CovarianceModel, Gaussians, log_densities, log_volumes
from pursuit.geometry.distances import feature_variance
from pursuit.geometry.local_covariance import nearest_indices, scales
from pursuit.geometry.tangents import KnownDirections
from pursuit.geometry.unique_rows import DistinctRows
from pursuit.linalg import blocks

__all__ = [
    "LeaveOneOutNeighbors",
    "best_bandwidth",
    "best_width",
    "left_out_densities",
    "neighbor_variance",
    "rule_bandwidth",
    "rule_factor",
]

# Logarithms of the variances looked at first, relative to the start.
GRID = np.arange(-2.0, 6.0)
# Relative precision of a bandwidth.
PRECISION = 1e-4
MAX_EXTENSIONS = 100
# Bytes of the eigenvalue problems of one batch.
BATCH_BYTES = 1 << 24


class LeaveOneOutNeighbors(NamedTuple):
    """The neighbours that the axes of a mixture come from, and the next ones.

    Attributes
    ----------
    neighbors : ndarray of int of shape (n_centres, k + 1)
        Nearest first; (n_centres, k) where there are no more rows.
    weights : ndarray of shape (n_centres, k + 1)
        Their weights in eq. 13.3.
    k : int
        How many of them the axes come from.
    known : KnownDirections, optional
        Directions that the axes come from, too.
    """

    neighbors: Array
    weights: Array
    k: int
    known: KnownDirections | None = None


def left_out_densities(
    gaussians: Gaussians,
    models: Sequence[CovarianceModel],
    around: LeaveOneOutNeighbors | None = None,
) -> Array:
    """Log-densities of the centres, each by a fit without it.

    Parameters
    ----------
    gaussians : Gaussians
        The mixture; its centres are different rows.
    models : sequence of CovarianceModel
        sigma^2 and d.
    around : LeaveOneOutNeighbors, optional
        Where the axes come from; None: there are none.

    Returns
    -------
    values : ndarray of shape (n_models, n_centres)
        Log p_r(x_r); -inf for a single row.
    """
    m = len(gaussians.centres)
    own = np.arange(m)[:, None]
    if around is None or not around.k:
        values = log_densities(gaussians, gaussians.centres, models, own)
    else:
        near = around.neighbors[:, : around.k]
        values = log_densities(gaussians, gaussians.centres, models, np.hstack([own, near]))
        for s, terms in enumerate(_refitted_terms(gaussians, models, around)):
            values[s] = _with_terms(values[s], near.ravel(), terms.ravel())
    if m > 1:
        values -= np.log1p(-gaussians.weights)
    return values


def _with_terms(values: Array, rows: Array, terms: Array) -> Array:
    """Logarithm of exp(values) and the exp(terms) of some rows, which may repeat."""
    top = values.copy()
    np.maximum.at(top, rows, terms)
    total = np.exp(values - top)
    np.add.at(total, rows, np.exp(terms - top[rows]))
    summed: Array = np.log(total) + top
    return summed


def _refitted_terms(
    gaussians: Gaussians, models: Sequence[CovarianceModel], around: LeaveOneOutNeighbors
) -> Array:
    """Log w_i N(x_r; x_i, C_i^(r)) for each neighbour r of i, (n_models, n_centres, k)."""
    X, k, n_near = gaussians.centres, around.k, around.neighbors.shape[1]
    n_rows = n_near + (0 if around.known is None else around.known.n_tangents)
    d = min(max(model.n_components for model in models), n_rows - 1, X.shape[1])
    others = np.array([[j for j in range(n_rows) if j != r] for r in range(k)], dtype=int)
    terms = np.empty((len(models), len(X), k))
    size = max(1, BATCH_BYTES // (8 * n_rows * (X.shape[1] + 4 * k * n_rows)))

    def fill(start: int) -> None:
        rows = slice(start, start + size)
        own = X[rows].astype(np.float64)
        differences = X[around.neighbors[rows]] - own[:, None]
        scale = scales(around.weights[rows][:, others[:, : n_near - 1]])
        if around.known is not None:  # they stay, whatever is left out
            differences = np.concatenate([differences, around.known(rows)], axis=1)
            scale = np.pad(scale, ((0, 0), (0, 0), (0, n_rows - n_near)), constant_values=1.0)
        gram = differences @ differences.transpose(0, 2, 1)
        variances, projections = _refit(gram, scale, others, d)
        distances = np.diagonal(gram, axis1=1, axis2=2)[:, :k]
        weights = np.log(gaussians.weights[rows, None])
        for s, (noise, n_components) in enumerate(models):
            v, t = variances[..., :n_components], projections[..., :n_components]
            form = (distances - ((t / np.sqrt(noise + v)) ** 2).sum(axis=2)) / noise
            form = np.maximum(form, distances / (noise + v.max(axis=2, initial=0.0)))
            terms[s, rows] = weights - 0.5 * (form + log_volumes(v, noise, X.shape[1]))

    blocks.in_parallel(fill, range(0, len(X), size))
    return terms


def _refit(gram: Array, scale: Array, others: Array, d: int) -> tuple[Array, Array]:
    """s_j^2 and t_j of each centre without each of its neighbours, (n_block, k, d)."""
    k = len(others)
    if not d:
        none = np.zeros((len(gram), k, 0))
        return none, none
    small = gram[:, others[:, :, None], others[:, None, :]]
    small *= scale[..., :, None]
    small *= scale[..., None, :]
    values, vectors = np.linalg.eigh(small)
    across = gram[:, others, np.arange(k)[:, None]] * scale
    projections = (across[..., None, :] @ vectors)[..., 0, :]
    return np.maximum(values[..., ::-1][..., :d], 0.0), projections[..., ::-1][..., :d]


def best_bandwidth(gaussians: Gaussians, start: float) -> float:
    """The sigma of spheres that maximises the leave-one-out likelihood.

    Parameters
    ----------
    gaussians : Gaussians
        At least two different rows, without axes.
    start : float
        A first sigma^2, of the size of the squared distance of neighbours over n.

    Returns
    -------
    bandwidth : float
        See `best_width`.
    """

    def likelihoods(models: list[CovarianceModel]) -> Array:
        return np.asarray(left_out_densities(gaussians, models) @ gaussians.weights)

    return best_width(likelihoods, start)


def best_width(
    scores: Callable[[list[CovarianceModel]], Array], start: float, most: int = MAX_EXTENSIONS
) -> float:
    """The sigma of the highest score.

    Parameters
    ----------
    scores : callable
        Scores of some spheres.
    start : float
        A first sigma^2.
    most : int, optional
        Largest number of further values beyond the first grid.

    Returns
    -------
    width : float
        The best of a grid that is extended until the best is inside, made precise around it; its
        last value where the scores still rise.
    """

    def score(logarithms: Sequence[float]) -> Array:
        return scores(
            [CovarianceModel(start * float(np.exp(logarithm))) for logarithm in logarithms]
        )

    grid, values = GRID, score(list(GRID))
    for _ in range(most):
        best = int(values.argmax())
        if 0 < best < len(grid) - 1:
            break
        further = grid[0] - 1.0 if best == 0 else grid[-1] + 1.0
        grid = np.sort(np.append(grid, further))
        values = np.insert(values, 0 if best == 0 else len(values), score([further]))
    best = int(values.argmax())
    if not 0 < best < len(grid) - 1:
        return float(np.sqrt(start * np.exp(grid[best])))
    found = minimize_scalar(
        lambda logarithm: -score([logarithm])[0],
        bounds=(grid[best - 1], grid[best + 1]),
        method="bounded",
        options={"xatol": 2.0 * PRECISION},
    )
    return float(np.sqrt(start * np.exp(found.x)))


def neighbor_variance(distinct: DistinctRows, n_neighbors: int = 1) -> float:
    """Median over the rows of the squared distance to a near one, for each feature.

    Parameters
    ----------
    distinct : DistinctRows
        At least two rows.
    n_neighbors : int, default=1
        Which one: the nearest, the second, ...; the furthest where there are no more.
    """
    k = min(n_neighbors, len(distinct.X) - 1)
    near = nearest_indices(distinct, np.arange(len(distinct.X)), k)[:, -1]
    squared = ((distinct.X[near] - distinct.X) ** 2).sum(axis=1)
    return float(np.median(squared) / distinct.X.shape[1])


def rule_bandwidth(distinct: DistinctRows, rule: str) -> float:
    """The bandwidth of Scott's or Silverman's rule, for rows of total weight l in n dimensions.

    Parameters
    ----------
    distinct : DistinctRows
        At least two rows.
    rule : {"scott", "silverman"}
        l^(-1 / (n + 4)) or (l (n + 2) / 4)^(-1 / (n + 4)), times the root mean square of the
        features' standard deviations.
    """
    variance = feature_variance(distinct.X, distinct.weights)
    return float(rule_factor(distinct, rule) * np.sqrt(variance))


def rule_factor(distinct: DistinctRows, rule: str) -> float:
    """Scott's or Silverman's factor alone, for windows of the covariance of the rows.

    Parameters
    ----------
    distinct, rule
        See `rule_bandwidth`.
    """
    n_features = distinct.X.shape[1]
    size = distinct.weights.sum() * (1.0 if rule == "scott" else (n_features + 2) / 4.0)
    return float(size ** (-1.0 / (n_features + 4)))
