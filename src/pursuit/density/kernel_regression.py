"""The classical relatives: kernel regression, and the nearest centroid in feature space.

Vincent, "Modeles a noyaux a structure locale" (2003), chapter 5.

Nadaraya-Watson (section 5.2.2). Problem: numbers y for rows x, as the mean of the training targets
weighted by a Gaussian of the distance,

    f(x) = sum_i w_i K(x, x_i) y_i / sum_i w_i K(x, x_i),  K(x, z) = exp(-|x - z|^2 / (2 sigma^2)).

Leaving a row out needs no fit: its own term is left out of both sums. The bandwidth minimises

    sum_r w_r (y_r - f_r(x_r))^2,   f_r(x) = sum_{i /= r} w_i K(x, x_i) y_i / sum_{i /= r} w_i K,

each target divided by its standard deviation. Equal rows are one row with the mean of their
targets, and are left out together. The weights of a row are formed relative to the largest, as in
``log_density.py``: far from all data f is the target of the nearest rows, and no number is lost.

Kernel centroids (section 5.3.4). Problem: the class whose centroid in the feature space of K is
nearest,

    d_c(x)^2 = K(x, x) - 2 sum_{i in c} a_ci K(x, x_i) + sum_{i, j in c} a_ci a_cj K(x_i, x_j)

with a_ci = w_i / sum_{j in c} w_j. Without K(x, x), which all classes share, -d_c^2 is a kernel
expansion in all rows, whose coefficients are given and not learned.

===========  =====================================  ==================================
symbol       name in code                           shape
===========  =====================================  ==================================
x_i, w_i     ``gaussians_``                         (m, n), (m,) different rows
y_i          ``targets_``                           (m, T)
2 a_c        ``dual_coef_``                         (C, l); for two classes a difference
-sum a a K   ``intercept_``                         (C,)
===========  =====================================  ==================================

Cost. A pass over the pairs of rows for prediction, and one for each bandwidth that is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pursuit._typing import Array
from pursuit._validation import FLOATS, check_choice, check_real, check_weights, class_codes
from pursuit.base.estimators import ExpansionClassifier
from pursuit.density.bandwidth import best_width, neighbor_variance
from pursuit.density.gaussian_mixture import Shape, softmax_means, spheres
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.geometry.local_covariance import distinct_rows
from pursuit.kernels import Precomputed

__all__ = ["KernelCentroidClassifier", "NadarayaWatsonRegressor"]

# Steps, of a factor e each, that the search for the bandwidth goes beyond its first values.
MAX_STEPS = 12


class NadarayaWatsonRegressor(RegressorMixin, BaseEstimator):
    """Kernel regression: the mean of the targets, weighted by a Gaussian of the distance.

    Parameters
    ----------
    bandwidth : float or "loo", default "loo"
        sigma. ``"loo"``: where the squared error of the training rows, each predicted from the
        others, is lowest.

    Attributes
    ----------
    bandwidth_ : float
        sigma.
    gaussians_ : Gaussians
        The different rows and their weights.
    targets_ : ndarray of shape (n_rows, n_targets)
        Their targets, means over equal rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

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

    def __init__(self, bandwidth: float | str = "loo") -> None:
        self.bandwidth = bandwidth

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
        X, y = validate_data(self, X, y, dtype=FLOATS, multi_output=True, y_numeric=True)
        weights = check_weights(sample_weight, len(X))
        self._one_dimensional = y.ndim == 1
        Y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)[weights > 0]
        X, weights = X[weights > 0], weights[weights > 0]
        distinct = distinct_rows(X, weights)
        sums = np.zeros((len(distinct.X), Y.shape[1]))
        np.add.at(sums, distinct.places, weights[:, None] * Y)
        self.targets_ = sums / distinct.weights[:, None]
        self.gaussians_ = spheres(distinct.X.astype(X.dtype, copy=False), distinct.weights)
        if not isinstance(self.bandwidth, str):
            self.bandwidth_ = float(self.bandwidth)
        elif len(distinct.X) == 1:
            self.bandwidth_ = 1.0  # there is one value to predict
        else:
            self.bandwidth_ = best_width(self._scores, neighbor_variance(distinct), MAX_STEPS)
        return self

    def _scores(self, shapes: list[Shape]) -> Array:
        """Minus the error of rows left out."""
        gaussians, weights = self.gaussians_, self.gaussians_.weights
        own = np.arange(len(weights))[:, None]
        found = softmax_means(gaussians, self.targets_, gaussians.centres, shapes, own)
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
        X = validate_data(self, X, reset=False, dtype=FLOATS)
        shapes = [Shape(self.bandwidth_**2)]
        means: Array = softmax_means(self.gaussians_, self.targets_, X, shapes)[0]
        return means[:, 0] if self._one_dimensional else means


class KernelCentroidClassifier(ClassifierMixin, ExpansionClassifier):
    """The class whose centroid in the feature space of a kernel is nearest.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "rbf"
        A name of `pursuit.kernels` or a value from there, a callable
        ``(X, Z, **kernel_params) -> matrix``, or ``"precomputed"``.
    gamma : {"scale", "auto"} or float, default "scale"
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels, as in ``SVC``.
    degree : float, default 3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, default 1
        Constant of the polynomial, sigmoid and cosine polynomial kernels.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    dual_coef_ : ndarray of shape (n_outputs, n_rows)
        Twice the share of each row in the centroid of its class; for two classes the difference.
    intercept_ : ndarray of shape (n_outputs,)
        Minus the squared norms of the centroids, or their difference.
    support_ : ndarray of int of shape (n_rows,)
        The training rows of positive weight.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_rows, n_features)
        These rows; absent for a precomputed kernel.
    temperature_ : float
        Of the probabilities, by likelihood on the training rows.
    kernel_ : Kernel
        The kernel with its numbers resolved.
    expansion_ : KernelExpansion
        The fitted function, callable without checks.
    n_components_ : int
        Number of kernel functions, all rows of positive weight.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    DensityClassifier : With Parzen windows and equal priors the same but for the intercept.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pursuit import KernelCentroidClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelCentroidClassifier(gamma=5.0).fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.9)
    True
    """

    class_weight = None

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the centroids.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : KernelCentroidClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        samples = self._read(X, y, sample_weight)
        kernel = self._resolved_kernel(samples)
        rows = np.flatnonzero(samples.weights)
        samples = samples.take(rows)
        atoms = Atoms(kernel, rows if isinstance(kernel, Precomputed) else samples.X)
        codes = class_codes(samples.Y)
        members = codes == np.arange(len(self.classes_))[:, None]
        shares = members * samples.weights
        shares /= shares.sum(axis=1, keepdims=True)
        means = KernelExpansion(atoms, shares, np.zeros(len(shares)))(samples.X)
        norms = np.einsum("ci,ic->c", shares, means)
        self._store_expansion(_difference(KernelExpansion(atoms, 2.0 * shares, -norms)), rows)
        self._fit_temperature(samples)
        return self


def _difference(expansion: KernelExpansion) -> KernelExpansion:
    """For two classes one function, positive for the second."""
    coefficients, intercept = expansion.coefficients, expansion.intercept
    if len(intercept) != 2:
        return expansion
    return KernelExpansion(
        expansion.atoms, coefficients[1:] - coefficients[:1], intercept[1:] - intercept[:1]
    )
