"""Bayes classifier: classes by their densities.

Vincent, "Modeles a noyaux a structure locale" (2003), section 13.4.3. With a density p(x | c) for
each class and the classes' priors p(c),

    p(c | x) = p(x | c) p(c) / sum_c' p(x | c') p(c').

==============  =================  ==============================
symbol          name in code       shape
==============  =================  ==============================
p(. | c)        ``densities_``     one fitted density a class
p(c)            ``priors_``        (n_classes,)
==============  =================  ==============================

Everything is formed from the logarithms, so that no class is too improbable for a number.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted

from pursuit._typing import Array
from pursuit._validation import check_several_classes, check_weights, read_data
from pursuit.base.estimators import ProbabilisticClassifier, squeeze_binary
from pursuit.base.parameters import constructor, positional
from pursuit.density.parzen import ParzenDensity
from pursuit.expansion.probabilities import predicted_classes

__all__ = ["DensityClassifier"]


@constructor
class DensityClassifier(ClassifierMixin, ProbabilisticClassifier, BaseEstimator):
    """Bayes classifier: a density for each class, and the classes' priors (section 13.4.3).

    Parameters
    ----------
    density : estimator or None, default=None
        A density with ``fit`` and ``score_samples``, fitted to each class alone: one of this
        package or another, such as scikit-learn's mixtures. None: ``ParzenDensity("loo")``.
    priors : array-like of shape (n_classes,) or None, default=None
        p(c) in the order of the sorted labels. None: the classes' shares of the training weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    densities_ : list of estimator
        The fitted density of each class.
    priors_ : ndarray of shape (n_classes,)
        p(c).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    ManifoldParzenDensity : The density that thesis and paper use here.

    References
    ----------
    P. Vincent and Y. Bengio, "Manifold Parzen windows", NIPS 15, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import DensityClassifier, ManifoldParzenDensity
    >>> X, y = load_digits(return_X_y=True)
    >>> density = ManifoldParzenDensity(n_components=5, noise_variance=4.0)
    >>> model = DensityClassifier(density).fit(X[:900], y[:900])
    >>> round(model.score(X[900:], y[900:]), 2)
    0.98
    """

    density: Any = positional(None)
    priors: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a density to each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : DensityClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        X, y = read_data(self, X, y)
        check_classification_targets(y)
        weights = check_weights(sample_weight, len(X))
        kept = weights > 0
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        check_several_classes(self.classes_)
        self.priors_ = self._class_shares(np.bincount(codes, weights[kept]))
        prototype = ParzenDensity(bandwidth="loo") if self.density is None else self.density
        self.densities_ = []
        for c in range(len(self.classes_)):
            own = np.flatnonzero(kept)[codes == c]
            further = {} if sample_weight is None else {"sample_weight": weights[own]}
            self.densities_.append(clone(prototype).fit(X[own], **further))
        return self

    def _class_shares(self, mass: Array) -> Array:
        """The priors given, or shares of the weight of each class."""
        if self.priors is None:
            shares: Array = mass / mass.sum()
            return shares
        priors = check_array(self.priors, ensure_2d=False, dtype=np.float64, input_name="priors")
        if priors.shape != mass.shape or (priors < 0).any() or not priors.any():
            raise ValueError(
                f"priors must be {len(mass)} non-negative numbers, one a class, got {self.priors!r}"
            )
        given: Array = priors / priors.sum()
        return given

    def _joint(self, X: Any) -> Array:
        """Log p(x | c) p(c), (n_rows, n_classes)."""
        check_is_fitted(self)
        X = read_data(self, X, reset=False)
        with np.errstate(divide="ignore"):
            priors = np.log(self.priors_)
        joint = np.column_stack([density.score_samples(X) for density in self.densities_])
        joint += priors
        # A row so far away that no density is a number tells the classes by their priors.
        far = ~np.isfinite(joint.max(axis=1))
        joint[far] = priors
        return joint

    def _decisions(self, X: Any) -> Array:
        """One column for two classes, else one a class."""
        joint = self._joint(X)
        return joint[:, 1:] - joint[:, :1] if joint.shape[1] == 2 else joint

    def decision_function(self, X: Any) -> Array:
        """Logarithms of p(x | c) p(c).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes their difference, positive for ``classes_[1]``.
        """
        return squeeze_binary(self._decisions(X))

    def predict(self, X: Any) -> Array:
        """Most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        codes = predicted_classes(self._decisions(X))
        labels: Array = self.classes_[codes]
        return labels

    def _scaled_values(self, X: Any) -> tuple[Array, float]:
        """Log p(x | c) p(c) as they are."""
        return self._decisions(X), 1.0

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Log p(x | c) p(c), which no class is too improbable for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Less their log-sum-exp over the classes they are log p(c | x), whose mean at the true
            classes is minus the ANCLL of the thesis.
        """
        return self._joint(X)
