"""A density that is fitted at the query: one local Gaussian for each row asked about.

Vincent, "Modeles a noyaux a structure locale" (2003), section 14.3: the probabilistic counterpart
of the nearest hyperplane (HKNN).

Problem. With a weighting kernel K_x0 about the query x0, the product of the density p with it,
h = p K_x0 / Z, is the density of the training rows weighted by K_x0, and near x0 simple enough for
a Gaussian. As p(x0) = h(x0) Z / K_x0(x0), the estimate is

    p(x0) = N(x0; E, V) Z / K_x0(x0),    Z = sum_i w_i K_x0(x_i) / sum_i w_i          (eq. 14.1)
    E = sum_i v_i x_i,   V = sum_i v_i (x_i - E)(x_i - E)',   v_i = w_i K_x0(x_i) / sum w K_x0(x_i),

V with its d leading eigenpairs and sigma^2 in every direction, as for manifold Parzen windows.

==============  ==================================  ======================================
symbol          name in code                        shape
==============  ==================================  ======================================
K_x0            ``weights``                         exp(-|x - x0|^2 / (2 width^2)), K_x0(x0) = 1
width           ``bandwidth``, ``n_neighbors``      a number, or that times the distance to the
                                                    k-th nearest different row
d, sigma^2      ``n_components``,                   numbers
                ``noise_variance``
E - x0          ``mean``                            (n,)
==============  ==================================  ======================================

Steps, for a query: the weights relative to the largest; the rows x_i - x0 whose weight is above
`SMALLEST`; E and the differences from it; eigenpairs of V from the smaller of the two products.

It is not normalised: nothing makes the values integrate to 1. `LocalGaussianDensity.log_integral`
estimates the integral by importance sampling, integral p = E_g[p(y) / g(y)], from a density g that
is half manifold Parzen windows on the same rows and half a Gaussian with a covariance twice that
of the rows.

Cost. No training, and no memory beside the rows. A query takes m n operations for m rows,
m n min(m, n) for the products and min(m, n)^3 for the eigenpairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit._validation import check_integer, check_real, check_weights, read_data
from pursuit.base.parameters import constructor, positional
from pursuit.density.gaussian_mixture import (
    CovarianceModel,
    Gaussians,
    draw,
    log_densities,
    log_volumes,
    oriented,
    spheres,
)
from pursuit.geometry.local_covariance import leading_axes, nearest_indices
from pursuit.geometry.unique_rows import DistinctRows, distinct_rows
from pursuit.linalg import blocks

__all__ = ["LocalGaussianDensity", "LogIntegral"]

# Rows with less of the largest weight do not count.
SMALLEST = 1e-18
# Differences of one batch of queries, in bytes.
BATCH_BYTES = 1 << 20
# Neighbours of the proposal where the estimate itself has no number of them.
PROPOSAL_NEIGHBORS = 10


class LogIntegral(NamedTuple):
    """A Monte Carlo estimate of the logarithm of an integral.

    Attributes
    ----------
    value : float
        The logarithm.
    standard_error : float
        Of the logarithm, to first order.
    effective_size : float
        (sum r)^2 / sum r^2 of the ratios r = p / g: how many draws count. Where this is a
        handful, neither number means much.
    """

    value: float
    standard_error: float
    effective_size: float


@constructor
class LocalGaussianDensity(DensityMixin, BaseEstimator):
    """A Gaussian fitted around each query; not normalised.

    Parameters
    ----------
    n_neighbors : int or None, default=10
        k: the kernel's width is `bandwidth` times the distance from the query to the k-th nearest
        of the different rows. None: it is `bandwidth` itself.
    bandwidth : float, default=1.0
        See `n_neighbors`.
    n_components : int, default=1
        d: number of leading directions of the local covariance to keep.
    noise_variance : float, default=0.01
        sigma^2, added in every direction.

    Attributes
    ----------
    X_ : ndarray of shape (n_rows, n_features)
        The different training rows.
    weights_ : ndarray of shape (n_rows,)
        Their weights, of sum 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    ManifoldParzenDensity : Normalised, with the Gaussians fitted at the training rows.

    Notes
    -----
    The values do not integrate to 1; see `log_integral`. Memory: the rows once.

    References
    ----------
    P. Vincent, "Modeles a noyaux a structure locale", 2003, section 14.3.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import LocalGaussianDensity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) * [1.0, 0.1]
    >>> density = LocalGaussianDensity(50, n_components=2, noise_variance=1e-4).fit(X)
    >>> density.score_samples([[0.0, 0.0], [1.0, 0.0]]).round(1)
    array([0.4, 0.1])
    >>> round(density.log_integral(2000, random_state=0).value, 2)
    0.02
    """

    n_neighbors: int | None = positional(10)
    bandwidth: float = 1.0
    n_components: int = 1
    noise_variance: float = 0.01

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Store the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored; for pipelines and searches.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : LocalGaussianDensity
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        check_integer("n_neighbors", self.n_neighbors, optional=True)
        check_integer("n_components", self.n_components, 0)
        check_real("bandwidth", self.bandwidth, above=True)
        check_real("noise_variance", self.noise_variance, above=True)
        X = read_data(self, X)
        weights = check_weights(sample_weight, len(X))
        distinct = distinct_rows(X[weights > 0], weights[weights > 0])
        self.X_ = distinct.X.astype(X.dtype, copy=False)
        self.weights_ = distinct.weights / distinct.weights.sum()
        return self

    def score_samples(self, X: Any) -> Array:
        """Logarithm of the estimate at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Natural logarithms, in float64; not of a density that integrates to 1.
        """
        check_is_fitted(self)
        X = read_data(self, X, reset=False)
        return self._values(X, np.full(len(X), -1))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean logarithm of the estimate at rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored; for pipelines and searches.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        score : float
            Compare it with other densities only beside `log_integral`.
        """
        values = self.score_samples(X)
        return float(np.average(values, weights=check_weights(sample_weight, len(values))))

    def leave_one_out_score(self) -> float:
        """Mean logarithm at the training rows, each estimated from the others.

        Returns
        -------
        score : float
            Weighted mean; -inf if all rows are equal.
        """
        check_is_fitted(self)
        if len(self.X_) == 1:
            return -np.inf
        return float(self._values(self.X_, np.arange(len(self.X_))) @ self.weights_)

    def _values(self, X: Array, own: Array) -> Array:
        """Logarithms; `own` is the training row that a query leaves out, or -1."""
        values = np.empty(len(X))
        rows = self.X_.astype(np.float64)
        size = max(1, BATCH_BYTES // (8 * rows.size))

        def fill(start: int) -> None:
            part = slice(start, start + size)
            values[part] = self._log_densities(rows - X[part, None], own[part])

        with blocks.blas_threads(0.0):
            blocks.in_parallel(fill, range(0, len(X), size))
        return values

    def _log_densities(self, differences: Array, own: Array) -> Array:
        """Log p(x0) of some queries from the rows x_i - x0, (n_queries, m, n)."""
        distances = np.einsum("qin,qin->qi", differences, differences)
        out = np.flatnonzero(own >= 0)
        distances[out, own[out]] = np.inf
        with np.errstate(over="ignore"):
            logs = np.log(self.weights_) - 0.5 * distances / self._squared_widths(distances)
        top = logs.max(axis=1, keepdims=True)
        known = top[:, 0] > -np.inf
        differences[~known], logs[~known], top[~known] = 0.0, 0.0, 0.0  # anything finite
        kept = (logs > top + np.log(SMALLEST)).any(axis=0)
        shares = np.exp(logs[:, kept] - top)
        masses = shares.sum(axis=1)
        shares /= masses[:, None]
        values = log_normals(differences[:, kept], shares, self.n_components, self.noise_variance)
        values += np.log(masses) + top[:, 0]
        values[out] -= np.log1p(-self.weights_[own[out]])
        return np.where(known, values, -np.inf)

    def _squared_widths(self, distances: Array) -> Array:
        """The square of the kernel's width for each query, (n_queries, 1)."""
        if self.n_neighbors is None:
            return np.full((len(distances), 1), float(self.bandwidth) ** 2)
        k = min(self.n_neighbors, distances.shape[1])
        nearest = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
        # On its own row with k = 1 a query sees that row alone.
        widths: Array = np.maximum(self.bandwidth**2 * nearest, float(np.finfo(float).tiny))
        return widths

    def log_integral(
        self, n_samples: int = 1000, *, proposal: Any = None, random_state: Any = None
    ) -> LogIntegral:
        """Monte Carlo estimate of the logarithm of the integral of the estimate.

        Parameters
        ----------
        n_samples : int, default=1000
            Number of draws.
        proposal : estimator or None, default=None
            A fitted density with ``sample`` and ``score_samples`` to draw from. None: half
            manifold Parzen windows on the training rows, with the same d and twice sigma^2, half a
            Gaussian with twice the covariance of these rows.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        integral : LogIntegral
            The logarithm, its standard error and the number of draws that count.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples)
        rng = check_random_state(random_state)
        if proposal is None:
            X, logs = self._draws(n_samples, rng)
        else:
            X = proposal.sample(n_samples, random_state=rng)
            logs = proposal.score_samples(X)
        ratios = self._values(X, np.full(n_samples, -1)) - logs
        first, second = logsumexp(ratios), logsumexp(2.0 * ratios)
        effective = float(np.exp(2.0 * first - second))
        error = np.sqrt(max(1.0 / effective - 1.0 / n_samples, 0.0))
        return LogIntegral(float(first - np.log(n_samples)), float(error), effective)

    def _draws(self, n_samples: int, rng: Any) -> tuple[Array, Array]:
        """Draws from the proposal, and its log-density there."""
        parts = self._proposal()
        sizes = (n_samples - n_samples // 2, n_samples // 2)
        drawn = []
        for (gaussians, model), size in zip(parts, sizes, strict=True):
            picks = rng.choice(len(gaussians.weights), size=size, p=gaussians.weights)
            drawn.append(draw(gaussians, model, picks, rng))
        X = np.vstack(drawn)
        logs = [log_densities(gaussians, X, [model])[0] for gaussians, model in parts]
        with np.errstate(divide="ignore"):
            shares = np.log(np.array(sizes) / n_samples)
        return X, np.logaddexp(shares[0] + logs[0], shares[1] + logs[1])

    def _proposal(self) -> list[tuple[Gaussians, CovarianceModel]]:
        """Manifold Parzen windows, and one wide Gaussian."""
        X, weights = self.X_.astype(np.float64), self.weights_
        m, n_features = X.shape
        local, noise = spheres(X, weights), 2.0 * self.noise_variance
        k = min(self.n_neighbors or PROPOSAL_NEIGHBORS, m - 1)
        near = nearest_indices(DistinctRows(X, weights, np.arange(m)), np.arange(m), k)
        local = oriented(local, near, weights[near], self.n_components, noise)
        mean = weights @ X
        found = leading_axes(X, mean[None], np.arange(m)[None], weights[None], n_features)
        wide = spheres(mean[None], np.ones(1))
        offsets = np.einsum("ijn,in->ij", found.axes, mean[None] - wide.shift)
        wide = Gaussians(
            wide.centres, wide.weights, wide.shift, 2.0 * found.variances, found.axes, offsets
        )
        return [
            (local, CovarianceModel(noise, self.n_components)),
            (wide, CovarianceModel(noise, n_features)),
        ]


def log_normals(differences: Array, shares: Array, n_components: int, noise: float) -> Array:
    """Log N(0; E, V) for the weighted means E and the flat covariances V of some rows.

    Parameters
    ----------
    differences : ndarray of shape (n_queries, m, n_features)
        Rows x_i - x0.
    shares : ndarray of shape (n_queries, m)
        Their weights, of sum 1.
    n_components : int
        d.
    noise : float
        sigma^2.

    Returns
    -------
    values : ndarray of shape (n_queries,)
        Logarithms.
    """
    m, n_features = differences.shape[1:]
    mean = shares[:, None, :] @ differences
    scaled = np.sqrt(shares)[:, :, None] * (differences - mean)
    d = min(n_components, m - 1, n_features)
    if m <= n_features:
        values, vectors = np.linalg.eigh(scaled @ scaled.transpose(0, 2, 1))
        variances = np.maximum(values[:, ::-1][:, :d], 0.0)
        # The axis s_j u_j is vector' scaled.
        along = (mean @ scaled.transpose(0, 2, 1) @ vectors)[:, 0, ::-1][:, :d]
        distances = np.einsum("qan,qan->q", mean, mean)
        forms = distances - ((along / np.sqrt(noise + variances)) ** 2).sum(axis=1)
        forms /= noise
        forms = np.maximum(forms, distances / (noise + variances.max(axis=1, initial=0.0)))
    else:
        values, vectors = np.linalg.eigh(scaled.transpose(0, 2, 1) @ scaled)
        variances = np.maximum(values[:, ::-1][:, :d], 0.0)
        spread = np.full((len(mean), n_features), noise)
        spread[:, :d] += variances
        along = (mean @ vectors)[:, 0, ::-1]
        forms = (along**2 / spread).sum(axis=1)
    normals: Array = -0.5 * (log_volumes(variances, noise, n_features) + forms)
    return normals
