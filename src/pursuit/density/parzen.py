"""Parzen windows and manifold Parzen windows.

P. Vincent and Y. Bengio, "Manifold Parzen windows", Advances in Neural Information Processing
Systems 15 (2003); chapter 13 of Vincent, "Modeles a noyaux a structure locale" (2003), whose
equations are cited; section 5.2.3 for ordinary Parzen windows, and 5.1 for their shape.

Problem. The density of rows x_1, ..., x_l in n dimensions that lie near a manifold of d dimensions:

    p(x) = 1 / l sum_i N(x; x_i, C_i)                                         (eq. 13.1)

Parzen windows have C_i = sigma^2 S, S the identity or one covariance for all
(``covariance.py``). Manifold Parzen windows take C_i from the neighbours of x_i:

    C_Ki = sum_j K(x_j; x_i) (x_j - x_i)(x_j - x_i)' / sum_j K(x_j; x_i),  j /= i     (eq. 13.3)

keep its d leading eigenpairs, set the other eigenvalues to zero and add sigma^2 to all. Section
13.5 proposes known directions, those of the tangent distance (``geometry/tangents.py``), for it:
with tangent vectors t_1, ..., t_M and transformations of size b_j, of mean 0 and variance tau^2,

    C_i = C_Ki + tau^2 sum_j t_j(x_i) t_j(x_i)',                                   (1)

of which, too, the d leading eigenpairs are kept. tau^2 has the unit of b^2, whatever the features
are measured in: of `ImageTangents` b is a move by about a pixel.

==============  ====================================  =====================================
symbol          name in code                          shape
==============  ====================================  =====================================
x_i             ``gaussians_.centres``                (m, n), different rows
1 / l           ``gaussians_.weights``                (m,), their weights
sigma           ``bandwidth_``, ``noise_variance``    sigma for Parzen, sigma^2 for manifold
k, d            ``n_neighbors``, ``n_components``     numbers
K(x_j; x_i)     ``neighborhood``                      1 for "hard": k nearest rows
t_j             ``tangents``                          a function, (m, n) to (m, M, n)
tau^2           ``tangent_variance``                  number
==============  ====================================  =====================================

Parzen windows of other shapes are in ``compact_windows.py``.

Steps. Fit: merge equal rows; find the neighbours; eigenpairs of the local covariances
(``geometry/local_covariance.py``). Score: ``gaussian_mixture.py``, which also says what a fit costs
and keeps. Parameters by leaving rows out: ``bandwidth.py``.

Where we differ. Neighbours are different rows, and equal rows share one Gaussian of their
weight. A kernel as neighbourhood weighs the k nearest rows, or all of them.
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pursuit._arrays import to_numpy
from pursuit._typing import Array
from pursuit._validation import (
    check_choice,
    check_integer,
    check_real,
    check_weights,
    read_data,
)
from pursuit._warnings import warn
from pursuit.base.arrays import FollowsX, following, through_host
from pursuit.base.cross_validation import check_rule, search_results, simplest
from pursuit.base.docstrings import with_entries
from pursuit.base.parameters import constructor, positional
from pursuit.density.bandwidth import (
    LeaveOneOutNeighbors,
    best_bandwidth,
    best_width,
    left_out_densities,
    neighbor_variance,
    rule_bandwidth,
    rule_factor,
)
from pursuit.density.compact_windows import (
    compact_draw,
    compact_log_densities,
    window_variance,
)
from pursuit.density.covariance import (
    WINDOW_ENTRIES,
    Shaped,
    Whitening,
    coordinates,
    whitening_of,
)
from pursuit.density.gaussian_mixture import (
    CovarianceModel,
    Gaussians,
    draw,
    log_densities,
    oriented,
    spheres,
    truncated,
)
from pursuit.geometry.local_covariance import nearest_indices, neighbors_and_products
from pursuit.geometry.tangents import (
    KnownDirections,
    Tangents,
    check_tangents,
    known_directions,
)
from pursuit.geometry.unique_rows import DistinctRows, distinct_rows
from pursuit.kernels import is_precomputed, resolve_kernel
from pursuit.linalg import blocks

__all__ = [
    "ManifoldParzenDensity",
    "ManifoldParzenDensityCV",
    "ParzenDensity",
]

# sigma^2 that a search looks at, relative to what separates neighbours.
NOISE_GRID = 4.0 ** np.arange(-8.0, 2.0)
# A search looks at no sigma^2 below this share of the squared distance of the k-th neighbours.
SMALLEST_SHARE = 1e-4
# A likelihood that has no maximum gains log(4) / 2 = 0.69 a direction from one value to the next.
STILL_RISES = 0.1


class _Mixture(FollowsX, DensityMixin, BaseEstimator):
    """A density that is a mixture of Gaussians on the training rows."""

    gaussians_: Gaussians
    whitening_: Whitening | None = None

    def _read(self, X: Any, sample_weight: Any) -> tuple[DistinctRows, Gaussians]:
        """Different rows of positive weight, and spheres on them in the type of the rows."""
        X = read_data(self, X)
        weights = check_weights(sample_weight, len(X))
        distinct = distinct_rows(X[weights > 0], weights[weights > 0])
        return distinct, spheres(distinct.X.astype(X.dtype, copy=False), distinct.weights)

    def _model(self) -> CovarianceModel:
        """The sigma^2 and d of the fitted model."""
        raise NotImplementedError

    @through_host
    def score_samples(self, X: Any) -> Array:
        """Log-density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Natural logarithms, in float64.
        """
        check_is_fitted(self)
        X = coordinates(self.whitening_, read_data(self, X, reset=False))
        values = self._log_densities(X)
        return values if self.whitening_ is None else values - self.whitening_.log_volume

    def _log_densities(self, X: Array) -> Array:
        """Log-densities of rows in the coordinates of the centres."""
        return np.asarray(log_densities(self.gaussians_, X, [self._model()])[0])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-density of rows.

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
            Minus the average negative log-likelihood (ANLL) of the thesis.
        """
        values = to_numpy(self.score_samples(X))
        sample_weight = None if sample_weight is None else to_numpy(sample_weight)
        return float(np.average(values, weights=check_weights(sample_weight, len(values))))

    @through_host
    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows from the density.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows, in float64.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples)
        rng = check_random_state(random_state)
        weights = self.gaussians_.weights
        picks = rng.choice(len(weights), size=n_samples, p=weights)
        rows = self._draw(picks, rng)
        return rows if self.whitening_ is None else self.whitening_.back(rows)

    def _draw(self, picks: Array, rng: Any) -> Array:
        """A row from each of the windows picked."""
        return draw(self.gaussians_, self._model(), picks, rng)

    @through_host
    def leave_one_out_score(self) -> float:
        """Mean log-density of the training rows, each by a fit without it.

        Equal rows are left out together. See ``bandwidth.py``.

        Returns
        -------
        score : float
            Weighted mean; -inf if all rows are equal.
        """
        check_is_fitted(self)
        values = self._left_out([self._model()])[0]
        score = float(values @ self.gaussians_.weights)
        return score if self.whitening_ is None else score - self.whitening_.log_volume

    def _left_out(self, models: list[CovarianceModel]) -> Array:
        """Log-densities of the centres, each by a fit without it."""
        return left_out_densities(self.gaussians_, models, self._around())

    def _around(self) -> LeaveOneOutNeighbors | None:
        """Where the axes come from."""
        return None


@with_entries
@constructor
class ParzenDensity(Shaped, _Mixture):
    """Parzen windows: a window of one shape on every row, with exact log-densities.

    Parameters
    ----------
    bandwidth : float or {"loo", "scott", "silverman"}, default=1.0
        sigma; of windows that end the radius. ``"loo"`` maximises the leave-one-out likelihood. The
        rules of Scott, l^(-1 / (n + 4)), and Silverman, (l (n + 2) / 4)^(-1 / (n + 4)), are for
        rows of total weight l; for spheres they multiply the root mean square of the features'
        standard deviations. Windows that end get a radius with which their covariance is the same.
    {covariance}
    {kernel}

    Attributes
    ----------
    bandwidth_ : float
        sigma, or the radius.
    {covariance_}
    {whitening_}
    gaussians_ : Gaussians
        The different rows and their weights; under a covariance in the coordinates of
        ``whitening_``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    ManifoldParzenDensity : Gaussians that follow the data.

    Notes
    -----
    Windows that end give the density zero, log-density -inf, beyond them; "loo" therefore takes a
    radius that reaches from every row to another one, and one outlier decides it.

    Memory: the rows once. Rows in float32 stay so, for spheres; arithmetic is in float64. A
    covariance of the rows is that of all of them, where one is left out, too.

    References
    ----------
    E. Parzen, "On the estimation of a probability density function and mode", Annals of
    Mathematical Statistics 33, 1962.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import ParzenDensity
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> density = ParzenDensity("loo").fit(X)
    >>> round(density.bandwidth_, 2), density.score_samples([[0.0, 0.0]]).round(1)
    (0.45, array([-2.]))
    >>> full = ParzenDensity("scott", covariance="full").fit(X @ [[1.0, 0.0], [0.9, 0.1]])
    >>> full.covariance_.round(3)
    array([[0.219, 0.011],
           [0.011, 0.001]])
    >>> ParzenDensity(kernel="epanechnikov").fit([[0.0]]).score_samples([[0.5], [2.0]]).round(2)
    array([-0.58,  -inf])
    """

    _entries: ClassVar[dict[str, str]] = WINDOW_ENTRIES

    bandwidth: float | str = positional(1.0)
    covariance: Any = "spherical"
    kernel: str = "gaussian"

    @following
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Store the rows, and find the bandwidth.

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
        self : ParzenDensity
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, ("loo", "scott", "silverman"))
        else:
            check_real("bandwidth", self.bandwidth, above=True)
        self._check_kernel()
        distinct, gaussians = self._read(X, sample_weight)
        self.whitening_ = whitening_of(self.covariance, distinct.X, distinct.weights)
        if self.whitening_ is not None:
            distinct = distinct._replace(X=self.whitening_(distinct.X))
            gaussians = spheres(distinct.X, distinct.weights)
        self.gaussians_ = gaussians
        self.bandwidth_ = self._resolved(distinct)
        return self

    def _resolved(self, distinct: DistinctRows) -> float:
        """The number that the parameter stands for."""
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        if len(distinct.X) == 1:
            warn(
                f"bandwidth={self.bandwidth!r} needs different rows, and all are equal: "
                "bandwidth_ is 1",
                ConvergenceWarning,
            )
            return 1.0
        if self.bandwidth == "loo":
            return self._likeliest(distinct)
        rule = rule_bandwidth if self.whitening_ is None else rule_factor
        variance = window_variance(self.kernel, distinct.X.shape[1])
        return rule(distinct, self.bandwidth) / float(np.sqrt(variance))

    def _likeliest(self, distinct: DistinctRows) -> float:
        """The bandwidth of the highest leave-one-out likelihood."""
        if self.kernel == "gaussian":
            return best_bandwidth(self.gaussians_, neighbor_variance(distinct))
        near = nearest_indices(distinct, np.arange(len(distinct.X)), 1)[:, 0]
        least = ((distinct.X[near] - distinct.X) ** 2).sum(axis=1).max()  # reaches from every row
        weights = self.gaussians_.weights
        return best_width(lambda models: self._left_out(models) @ weights, float(least))

    def _log_densities(self, X: Array) -> Array:
        if self.kernel == "gaussian":
            return super()._log_densities(X)
        found = compact_log_densities(self.gaussians_, X, [self._model()], self.kernel)
        return np.asarray(found[0])

    def _left_out(self, models: list[CovarianceModel]) -> Array:
        if self.kernel == "gaussian":
            return super()._left_out(models)
        centres = self.gaussians_.centres
        return compact_log_densities(self.gaussians_, centres, models, self.kernel, left_out=True)

    def _draw(self, picks: Array, rng: Any) -> Array:
        if self.kernel == "gaussian":
            return super()._draw(picks, rng)
        return compact_draw(self.gaussians_, self._model(), self.kernel, picks, rng)

    def _model(self) -> CovarianceModel:
        return CovarianceModel(self.bandwidth_**2)


class _Oriented(_Mixture):
    """What manifold Parzen windows and the search for their parameters share."""

    neighborhood: Any
    tangents: Tangents | None
    tangent_variance: float
    n_neighbors_: int | None
    n_components_: int
    noise_variance_: float
    tangent_variance_: float | None = None  # None: without tangents
    _tangents_of_fit: Tangents | None = None

    def _model(self) -> CovarianceModel:
        return CovarianceModel(self.noise_variance_, self.n_components_)

    def _around(self) -> LeaveOneOutNeighbors | None:
        if not self._model().n_components:
            return None
        if self.n_neighbors_ is None:
            raise ValueError("n_neighbors=None: leaving rows out needs a number of neighbors")
        centres, weights = self.gaussians_.centres, self.gaussians_.weights
        rows = DistinctRows(centres.astype(np.float64), weights, np.arange(len(centres)))
        return self._neighbors_around(rows, self.n_neighbors_, self._known_again())

    def _check_neighborhood(self) -> None:
        if is_precomputed(self.neighborhood):
            raise ValueError("neighborhood must be 'hard' or a kernel of rows, got 'precomputed'")
        check_tangents(self.tangents)
        check_real("tangent_variance", self.tangent_variance, above=True)

    def _known(self, centres: Array) -> KnownDirections | None:
        """Tangents of this fit at its centres, of variance tau^2."""
        self._tangents_of_fit, self.tangent_variance_ = self.tangents, None
        if self.tangents is None:
            return None
        self.tangent_variance_ = float(self.tangent_variance)
        return known_directions(self.tangents, centres, self.tangent_variance_)

    def _known_again(self) -> KnownDirections | None:
        """The same after the fit; a model file has the function as a parameter, or not at all."""
        if self.tangent_variance_ is None:
            return None
        own = self._tangents_of_fit
        tangents = self.tangents if own is None else own
        if tangents is None:
            raise ValueError(
                "tangents=None: leaving rows out needs the function of the fit, which the model "
                "file does not hold; give it by set_params(tangents=...)"
            )
        return known_directions(tangents, self.gaussians_.centres, self.tangent_variance_)

    def _neighbors_around(
        self, distinct: DistinctRows, n_neighbors: int, known: KnownDirections | None
    ) -> LeaveOneOutNeighbors:
        """So many neighbours, and the next one."""
        m = len(distinct.X)
        neighbors = nearest_indices(distinct, np.arange(m), min(n_neighbors + 1, m - 1))
        weights = self._weights(distinct, neighbors)
        return LeaveOneOutNeighbors(neighbors, weights, min(n_neighbors, m - 1), known)

    def _weights(self, distinct: DistinctRows, neighbors: Array) -> Array:
        """Weights of eq. 13.3: those of the rows, times the kernel."""
        weights = distinct.weights[neighbors]
        hard = isinstance(self.neighborhood, str) and self.neighborhood == "hard"
        if hard or not neighbors.size:
            return weights
        X = distinct.X
        kernel = resolve_kernel(self.neighborhood, X, distinct.weights)
        for rows in blocks.row_blocks(len(X), 16.0 * len(X)):
            values = np.take_along_axis(kernel(X[rows], X), neighbors[rows], axis=1)
            if not (values >= 0).all() or not np.isfinite(values).all():
                raise ValueError("neighborhood: the kernel has a value that is no weight")
            weights[rows] *= values
        return weights


@constructor
class ManifoldParzenDensity(_Oriented):
    """Manifold Parzen windows: on every row a Gaussian that is flat across the data.

    Parameters
    ----------
    n_neighbors : int or None, default=10
        k: number of different rows that a covariance comes from. None: all other rows.
    n_components : int, default=1
        d: number of leading directions to keep; 0 gives Parzen windows of variance
        `noise_variance`. There are no more than neighbours and tangents.
    noise_variance : float, default=0.01
        sigma^2, added in every direction.
    neighborhood : "hard", str, Kernel or callable, default="hard"
        "hard": the k nearest rows count alike. Else they count by this kernel of ``kernels.py``
        (by name, as a value, or a callable), and the nearer they are the more.
    tangents : callable, optional
        Directions that are known beside those of the neighbours: maps rows (m, n_features) to an
        array (m, n_tangents, n_features), as `ImageTangents` does. A covariance has
        `tangent_variance` times the products of the tangents at its row as a further term.
    tangent_variance : float, default=0.1
        tau^2, the variance of the coefficients of the tangents: of `ImageTangents` moves by a third
        of a pixel, as a standard deviation.

    Attributes
    ----------
    gaussians_ : Gaussians
        The different rows, their weights and their axes.
    n_neighbors_, n_components_, noise_variance_
        The parameters of this fit.
    tangent_variance_ : float or None
        That of this fit; None without tangents.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    ManifoldParzenDensityCV : Finds k, d and sigma^2.
    DensityClassifier : Classes by a density each.
    ImageTangents : Small translations, turns, ... of images as tangents.

    Notes
    -----
    Memory of the model: at most (d + 1) times the rows, in their floating type (float32 stays so;
    arithmetic is in float64); with k < n_features and no tangents only 1 + d k / n_features times.

    The function is called in ``fit`` and in ``leave_one_out_score``, by several threads at once; a
    model file takes `ImageTangents`, but no function.

    References
    ----------
    P. Vincent and Y. Bengio, "Manifold Parzen windows", NIPS 15, 2003.

    P. Simard, Y. LeCun and J. Denker, "Efficient pattern recognition using a new transformation
    distance", Advances in Neural Information Processing Systems 5, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import ManifoldParzenDensity, ParzenDensity
    >>> rng = np.random.default_rng(0)
    >>> def spiral(n):
    ...     t = rng.uniform(3, 15, size=n)
    ...     curve = 0.04 * t * np.stack([np.sin(t), np.cos(t)])
    ...     return curve.T + 0.01 * rng.normal(size=(n, 2))
    >>> X, X_test = spiral(300), spiral(1000)
    >>> manifold = ManifoldParzenDensity(noise_variance=0.01**2).fit(X)
    >>> round(manifold.score(X_test), 2), round(ParzenDensity("loo").fit(X).score(X_test), 2)
    (1.55, 1.37)
    """

    n_neighbors: int | None = positional(10)
    n_components: int = 1
    noise_variance: float = 0.01
    neighborhood: Any = "hard"
    tangents: Tangents | None = None
    tangent_variance: float = 0.1

    @following
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the local axes of the rows.

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
        self : ManifoldParzenDensity
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        check_integer("n_neighbors", self.n_neighbors, optional=True)
        check_integer("n_components", self.n_components, 0)
        check_real("noise_variance", self.noise_variance, above=True)
        self._check_neighborhood()
        distinct, spherical = self._read(X, sample_weight)
        self.n_neighbors_ = None if self.n_neighbors is None else int(self.n_neighbors)
        self.n_components_ = int(self.n_components)
        self.noise_variance_ = float(self.noise_variance)
        known = self._known(spherical.centres)
        if self.n_components:
            m = len(distinct.X)
            k = m - 1 if self.n_neighbors is None else self.n_neighbors
            neighbors, products = neighbors_and_products(distinct, k, spherical.shift)
            weights = self._weights(distinct, neighbors)
            model = self._model()[::-1]
            spherical = oriented(spherical, neighbors, weights, *model, products, known)
        self.gaussians_ = spherical
        return self


@constructor
class ManifoldParzenDensityCV(_Oriented):
    """Manifold Parzen windows with k, d and sigma^2 by likelihood, from one search of neighbours.

    Every k is fitted once; each d and sigma^2 takes from its axes. The mean log-density is that of
    given validation rows, or of the training rows, each left out in turn, which needs a further
    eigenvalue problem for each pair of neighbours: see ``bandwidth.py``.

    Parameters
    ----------
    n_neighbors : int or sequence of int, default=(5, 10, 20)
        Values of k.
    n_components : int or sequence of int, default=(0, 1, 2, 3)
        Values of d.
    noise_variance : float, sequence of float or None, default=None
        Values of sigma^2. None: the median squared distance of the nearest rows, over n, times
        4^-8, 4^-7, ..., 4, all moved up so far that none is below 1e-4 of that of the k-th nearest
        rows, for the smallest k. Where the likelihood still rises at the smallest, as for rows that
        lie on a surface to rounding, there is a warning.
    neighborhood : "hard", str, Kernel or callable, default="hard"
        See `ManifoldParzenDensity`.
    rule : {"min", "one_se"}, default="min"
        ``"min"``: the largest mean log-density; ``"one_se"``: of those within one standard error
        of it over the rows, the smallest d, then the largest sigma^2, then the smallest k.
    tangents : callable, optional
        See `ManifoldParzenDensity`; the same for every choice.
    tangent_variance : float, default=0.1
        See `ManifoldParzenDensity`; the same for every choice.

    Attributes
    ----------
    scores_ : ndarray of shape (n_values_of_k, n_values_of_d, n_values_of_sigma2)
        Mean log-densities.
    noise_variances_ : ndarray
        The values of sigma^2.
    best_score_ : float
        The score that was chosen: the largest, or by the rule of one standard error.
    n_neighbors_, n_components_, noise_variance_ : int, int, float
        Where it is; of equal largest scores the first.
    best_params_ : dict
        The same by the names of the parameters.
    cv_results_ : dict of str to array
        The scores of each choice, in the columns of scikit-learn's searches; one split: the rows
        left out one at a time, or `X_val`.
    best_index_ : int
        The row of ``cv_results_`` that was chosen.
    gaussians_ : Gaussians
        The fit with these.
    tangent_variance_ : float or None
        That of this fit; None without tangents.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    ManifoldParzenDensity : With given parameters; also for scikit-learn's ``GridSearchCV``.

    References
    ----------
    P. Vincent and Y. Bengio, "Manifold Parzen windows", NIPS 15, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import ManifoldParzenDensityCV
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(3, 15, size=300)
    >>> X = (0.04 * t * np.stack([np.sin(t), np.cos(t)])).T + 0.01 * rng.normal(size=(300, 2))
    >>> search = ManifoldParzenDensityCV().fit(X)
    >>> search.n_neighbors_, search.n_components_, round(search.noise_variance_**0.5, 3)
    (10, 1, 0.008)
    """

    n_neighbors: Any = positional((5, 10, 20))
    n_components: Any = (0, 1, 2, 3)
    noise_variance: Any = None
    neighborhood: Any = "hard"
    rule: str = "min"
    tangents: Tangents | None = None
    tangent_variance: float = 0.1

    @following
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, X_val: Any = None) -> Self:
        """Score every choice, and fit the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored; for pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.
        X_val : array-like of shape (n_rows, n_features), optional
            Validation rows. None: the training rows, left out one at a time.

        Returns
        -------
        self : ManifoldParzenDensityCV
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        ks, ds = self._grids()
        distinct, spherical = self._read(X, sample_weight)
        if len(distinct.X) == 1:
            raise ValueError("X has 1 sample or equal rows alone: a search needs different rows")
        if X_val is not None:
            X_val = read_data(self, X_val, name="X_val", reset=False)
        self.noise_variances_ = self._noise_values(distinct, min(ks))
        models = [CovarianceModel(float(v), int(d)) for d in ds for v in self.noise_variances_]
        known = self._known(spherical.centres)
        around = self._neighbors_around(distinct, max(ks), known)
        fits = [self._fit(spherical, around, k, max(ds)) for k in ks]
        grid = (len(ks), len(ds), len(self.noise_variances_))
        found = [self._scores(*fit, models, X_val, distinct.weights) for fit in fits]
        self.scores_ = np.reshape([scores for scores, _ in found], grid)
        best = self._best(ks, ds, np.reshape([errors for _, errors in found], grid))
        self.best_score_ = float(self.scores_[best])
        self.n_neighbors_, self.n_components_ = int(ks[best[0]]), int(ds[best[1]])
        self.noise_variance_ = float(self.noise_variances_[best[2]])
        if self.noise_variance is None and best[2] == 0:
            self._warn_of_the_smallest(self.scores_[best[:2]])
        names = ("n_neighbors", "n_components", "noise_variance")
        params = [
            dict(zip(names, each, strict=True))
            for each in product(ks, ds, self.noise_variances_.tolist())
        ]
        self.cv_results_ = search_results(params, self.scores_.reshape(1, -1))
        self.best_index_ = int(np.ravel_multi_index(best, grid))
        self.best_params_ = params[self.best_index_]
        self.gaussians_ = truncated(fits[best[0]][0], self.n_components_)
        return self

    def _best(self, ks: list[int], ds: list[int], errors: Array) -> Any:
        """Where in the grid the chosen score is."""
        grid, flat = self.scores_.shape, self.scores_.ravel()
        best = int(flat.argmax())
        if self.rule == "one_se" and np.isfinite(errors.flat[best]):
            k, d, noise = np.meshgrid(ks, ds, self.noise_variances_, indexing="ij")
            best = simplest(flat, errors.flat[best], [d.ravel(), -noise.ravel(), k.ravel()])
        return np.unravel_index(best, grid)

    def _grids(self) -> tuple[list[int], list[int]]:
        """Values of k and d; one error that names the first parameter out of range."""
        grids = {}
        for name, least in (("n_neighbors", 1), ("n_components", 0), ("noise_variance", None)):
            values = getattr(self, name)
            if values is None and least is None:
                continue
            values = [values] if np.ndim(values) == 0 else list(values)
            if not values:
                raise ValueError(f"{name} must hold a value, got {getattr(self, name)!r}")
            for value in values:
                if least is None:
                    check_real(name, value, above=True)
                else:
                    check_integer(name, value, least)
            grids[name] = values
        self._check_neighborhood()
        check_rule(self.rule)
        return grids["n_neighbors"], grids["n_components"]

    def _noise_values(self, distinct: DistinctRows, k: int) -> Array:
        """Values of sigma^2 to try."""
        if self.noise_variance is not None:
            return np.atleast_1d(np.asarray(self.noise_variance, dtype=np.float64))
        tiny = float(np.finfo(np.float64).tiny) / NOISE_GRID[0]
        values = max(neighbor_variance(distinct), tiny) * NOISE_GRID
        least = max(SMALLEST_SHARE * neighbor_variance(distinct, k), tiny)
        steps = np.ceil((np.log(least) - np.log(values[0])) / np.log(4.0))
        return np.asarray(values * 4.0 ** max(steps, 0.0))

    def _warn_of_the_smallest(self, scores: Array) -> None:
        """Say that the likelihood asks for less noise than is tried."""
        if not scores[0] > scores[1] + STILL_RISES:
            return
        warn(
            f"the likelihood still rises at the smallest noise variance tried, "
            f"{self.noise_variance_:.3g}: the rows lie on surfaces of few dimensions or in tight "
            "groups (or X_val repeats rows of X); give noise_variance, or leave out features that "
            "others determine"
        )

    def _fit(
        self, spherical: Gaussians, around: LeaveOneOutNeighbors, k: int, d: int
    ) -> tuple[Gaussians, LeaveOneOutNeighbors]:
        """As many axes from k neighbours, and where they come from."""
        near, weights = around.neighbors, around.weights
        least = float(self.noise_variances_.min())
        known = around.known
        gaussians = oriented(spherical, near[:, :k], weights[:, :k], d, least, known=known)
        return gaussians, LeaveOneOutNeighbors(
            near[:, : k + 1], weights[:, : k + 1], min(k, around.k), known
        )

    def _scores(
        self,
        gaussians: Gaussians,
        around: LeaveOneOutNeighbors,
        models: list[CovarianceModel],
        X_val: Any,
        weights: Array,
    ) -> tuple[Array, Array]:
        """Mean log-density of each model, and its standard error over the rows."""
        if X_val is not None:
            values = log_densities(gaussians, X_val, models)
            return values.mean(axis=1), _standard_errors(values, np.ones(len(X_val)))
        values = left_out_densities(gaussians, models, around)
        return values @ gaussians.weights, _standard_errors(values, weights)


def _standard_errors(values: Array, weights: Array) -> Array:
    """Standard errors of weighted means; a weight counts rows. Of one row they are infinite."""
    total = weights.sum()
    with np.errstate(invalid="ignore"):  # densities of zero
        squares = (values - (values @ weights / total)[:, None]) ** 2 @ weights
    return np.sqrt(squares / total / (total - 1)) if total > 1 else np.full(len(values), np.inf)
