"""Nadaraya-Watson kernel regression.

Vincent, "Modeles a noyaux a structure locale" (2003), section 5.2.2.

Problem: numbers y for rows x, as the mean of the training targets
weighted by a window of the distance,

    f(x) = sum_i w_i K(x, x_i) y_i / sum_i w_i K(x, x_i),  K(x, z) = exp(-|x - z|^2 / (2 sigma^2)),

or, with a covariance S, with (x - z)' S^-1 (x - z) for |x - z|^2 (``covariance.py``); or with a
window that ends for K (``compact_windows.py``).

Leaving a row out needs no fit: its own term is left out of both sums. The bandwidth minimises

    sum_r w_r (y_r - f_r(x_r))^2,   f_r(x) = sum_{i /= r} w_i K(x, x_i) y_i / sum_{i /= r} w_i K,

each target divided by its standard deviation. Equal rows are one row with the mean of their
targets, and are left out together. The weights of a row are formed relative to the largest, as in
``gaussian_mixture.py``: far from all data f is the target of the nearest rows, and no number is
lost.

===========  =====================================  ==================================
symbol       name in code                           shape
===========  =====================================  ==================================
x_i, w_i     ``gaussians_``                         (m, n), (m,) different rows
y_i          ``targets_``                           (m, T)
===========  =====================================  ==================================

Cost. A pass over the pairs of rows for prediction, and one for each bandwidth that is tried.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit._validation import check_choice, check_real, check_weights, read_data
from pursuit.base.docstrings import with_entries
from pursuit.base.parameters import constructor, positional
from pursuit.density.bandwidth import best_width, neighbor_variance
from pursuit.density.compact_windows import compact_means, window_variance
from pursuit.density.covariance import WINDOW_ENTRIES, Shaped, coordinates, whitening_of
from pursuit.density.gaussian_mixture import CovarianceModel, softmax_means, spheres
from pursuit.geometry.unique_rows import distinct_rows

__all__ = ["NadarayaWatsonRegressor"]

# Steps, of a factor e each, that the search for the bandwidth goes beyond its first values.
MAX_STEPS = 12


@with_entries
@constructor
class NadarayaWatsonRegressor(Shaped, RegressorMixin, BaseEstimator):
    """Kernel regression: the mean of the targets, weighted by a window of the distance.

    Parameters
    ----------
    bandwidth : float or "loo", default="loo"
        sigma; of windows that end the radius. ``"loo"``: where the squared error of the training
        rows, each predicted from the others, is lowest.
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
    targets_ : ndarray of shape (n_rows, n_targets)
        Their targets, means over equal rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    Notes
    -----
    Beyond all windows, and far from all rows under a Gaussian, the prediction is the target of the
    nearest row.

    References
    ----------
    E. Nadaraya, "On nonparametric estimates of density functions and regression curves", Theory
    of Applied Probability 10, 1965.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import NadarayaWatsonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = NadarayaWatsonRegressor().fit(X, y)
    >>> round(model.bandwidth_, 2), model.predict([[0.0], [1.5]]).round(1)
    (0.09, array([0., 1.]))
    """

    _entries: ClassVar[dict[str, str]] = WINDOW_ENTRIES

    bandwidth: float | str = positional("loo")
    covariance: Any = "spherical"
    kernel: str = "gaussian"

    def __sklearn_tags__(self) -> Any:
        """Several targets are accepted."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Store the rows, and find the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : NadarayaWatsonRegressor
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, ("loo",))
        else:
            check_real("bandwidth", self.bandwidth, above=True)
        self._check_kernel()
        X, y = read_data(self, X, y, multi_output=True, y_numeric=True)
        weights = check_weights(sample_weight, len(X))
        self._one_dimensional = y.ndim == 1
        Y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)[weights > 0]
        X, weights = X[weights > 0], weights[weights > 0]
        distinct = distinct_rows(X, weights)
        self.whitening_ = whitening_of(self.covariance, distinct.X, distinct.weights)
        sums = np.zeros((len(distinct.X), Y.shape[1]))
        np.add.at(sums, distinct.places, weights[:, None] * Y)
        self.targets_ = sums / distinct.weights[:, None]
        kept = distinct.X.astype(X.dtype, copy=False)
        distinct = distinct._replace(X=coordinates(self.whitening_, distinct.X))
        if self.whitening_ is not None:
            kept = distinct.X
        self.gaussians_ = spheres(kept, distinct.weights)
        if not isinstance(self.bandwidth, str):
            self.bandwidth_ = float(self.bandwidth)
        elif len(distinct.X) == 1:
            self.bandwidth_ = 1.0  # there is one value to predict
        else:
            start = neighbor_variance(distinct) / window_variance(self.kernel, X.shape[1])
            self.bandwidth_ = best_width(self._scores, start, MAX_STEPS)
        return self

    def _means(self, X: Array, models: list[CovarianceModel], *, left_out: bool = False) -> Array:
        """Means of the targets at some rows, or at the centres without their own."""
        if self.kernel == "gaussian":
            own = np.arange(len(self.targets_))[:, None] if left_out else None
            return softmax_means(self.gaussians_, self.targets_, X, models, own)
        mixture, kernel = self.gaussians_, self.kernel
        return compact_means(mixture, self.targets_, X, models, kernel, left_out=left_out)

    def _scores(self, models: list[CovarianceModel]) -> Array:
        """Minus the error of rows left out."""
        weights = self.gaussians_.weights
        found = self._means(self.gaussians_.centres, models, left_out=True)
        errors = np.einsum("r,srt->st", weights, (found - self.targets_) ** 2)
        variance = weights @ (self.targets_ - weights @ self.targets_) ** 2
        scores: Array = -(errors / np.where(variance > 0, variance, 1.0)).sum(axis=1)
        return scores

    def predict(self, X: Any) -> Array:
        """Predicted targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the form of the training targets.
        """
        check_is_fitted(self)
        X = coordinates(self.whitening_, read_data(self, X, reset=False))
        models = [CovarianceModel(self.bandwidth_**2)]
        means = np.asarray(self._means(X, models)[0])
        return means[:, 0] if self._one_dimensional else means
