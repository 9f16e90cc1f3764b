"""The nearest centroid in the feature space of a kernel.

Vincent, "Modeles a noyaux a structure locale" (2003), section 5.3.4.

Problem: the class whose centroid is nearest,

    d_c(x)^2 = K(x, x) - 2 sum_{i in c} a_ci K(x, x_i) + sum_{i, j in c} a_ci a_cj K(x_i, x_j)

with a_ci = w_i / sum_{j in c} w_j. Without K(x, x), which all classes share, -d_c^2 is a kernel
expansion in all rows, whose coefficients are given and not learned.

===========  ==================  ==========================================
symbol       name in code        shape
===========  ==================  ==========================================
w_i          ``weights``         (l,)
2 a_c        ``dual_coef_``      (C, l); for two classes a difference
-sum a a K   ``intercept_``      (C,)
===========  ==================  ==========================================

Cost. A pass over the pairs of rows for the fit, and l kernel values for a prediction.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from pursuit._validation import class_codes
from pursuit.base.arrays import following
from pursuit.base.estimators import ExpansionClassifier
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.kernels import Precomputed, check_square, check_values

__all__ = ["KernelCentroidClassifier"]


@constructor
class KernelCentroidClassifier(ClassifierMixin, KernelParameters, ExpansionClassifier):
    """The class whose centroid in the feature space of a kernel is nearest.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name of `pursuit.kernels` or a value from there, a callable
        ``(X, Z, **kernel_params) -> matrix``, or ``"precomputed"``.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels, as in ``SVC``.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default=3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, default=1
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

    References
    ----------
    P. Vincent, "Modeles a noyaux a structure locale", 2003, section 5.3.4.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pursuit import KernelCentroidClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelCentroidClassifier(gamma=5.0).fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.9)
    True
    """

    _takes_objects = True

    class_weight = None

    kernel: Any = positional("rbf")

    @following
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
        if isinstance(kernel, Precomputed):
            check_square(samples.X)
        rows = np.flatnonzero(samples.weights)
        samples = samples.take(rows)
        atoms = Atoms(kernel, rows if isinstance(kernel, Precomputed) else samples.X)
        codes = class_codes(samples.Y)
        members = codes == np.arange(len(self.classes_))[:, None]
        shares = members * samples.weights
        shares /= shares.sum(axis=1, keepdims=True)
        means = KernelExpansion(atoms, shares, np.zeros(len(shares)))(samples.X)
        check_values(kernel, means)
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
