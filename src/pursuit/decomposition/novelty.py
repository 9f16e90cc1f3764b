"""Novelty by the distance to a span: what kernel PCA on few rows does not explain of a row.

Z. Hussain and J. Shawe-Taylor, "Theory of matching pursuit", NIPS 2008, whose corollary 1 bounds
the expected distance; the use for novelty is that of H. Hoffmann, "Kernel PCA for novelty
detection", Pattern Recognition 40, 2007.

Problem. Given rows x_1, ..., x_m of one kind, say of another row x whether it is like them.

Steps.

1. Choose k rows as ``kernel_pca.py`` does.
2. The score of a row is minus its squared distance to their span in the space of the kernel,
   -(K(x, x) - |P_i(x)|^2): 0 inside the span, -K(x, x) far away from all rows.
3. The threshold is the score that a share `contamination` of the training rows lies below.

The k chosen rows have the score 0, wherever they are: k should be small against m.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from pursuit._typing import Array
from pursuit._validation import check_real
from pursuit.base.arrays import native, through_host
from pursuit.base.docstrings import with_inherited_sections
from pursuit.base.novelty import score_quantile
from pursuit.base.parameters import constructor, positional
from pursuit.decomposition._landmarks import LandmarkProblem
from pursuit.decomposition.kernel_pca import SparseKernelPCA, Subspace
from pursuit.expansion.predictor import Novelty
from pursuit.kernels import is_precomputed

__all__ = ["KernelPCANovelty"]


@with_inherited_sections
@constructor
class KernelPCANovelty(OutlierMixin, SparseKernelPCA):
    """Outlier detector by the distance to the span of few training rows.

    A `SparseKernelPCA` with a threshold on its `residual`; `transform` is that of the base. The
    rows chosen cannot be outliers.

    Parameters
    ----------
    n_components : int or "bound", default=20
        Number of rows chosen. ``"bound"``: where the sample compression bound is lowest.
    {parameters}
    contamination : float, default=0.1
        Share of the training rows that ``predict`` calls outliers, in (0, 0.5].

    Attributes
    ----------
    offset_ : float
        The score below which a row is an outlier.
    {attributes}

    See Also
    --------
    SparseOneClass : A function that is large where the rows are.

    References
    ----------
    H. Hoffmann, "Kernel PCA for novelty detection", Pattern Recognition 40, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import KernelPCANovelty
    >>> X = np.random.RandomState(0).normal(size=(200, 2))
    >>> KernelPCANovelty(5).fit(X).predict([[0.5, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    n_components: int | str = positional(default=20)
    contamination: float = 0.1

    def _check_parameters(self) -> None:
        """Add the share to the checks of the base."""
        super()._check_parameters()
        check_real("contamination", self.contamination, below=np.nextafter(0.5, 1.0), above=True)
        if is_precomputed(self.kernel):
            raise ValueError("kernel='precomputed' does not say K(x, x) of new rows")

    def _store(self, points: LandmarkProblem, subspace: Subspace) -> None:
        """Set the fitted attributes, with the threshold after each row chosen."""
        super()._store(points, subspace)
        used = np.flatnonzero(points.weights > 0)
        shares = points.weights[used] / points.weights[used].sum()
        residuals = self._staged(points.X[used])
        self._offsets = [score_quantile(-left, shares, self.contamination) for left in residuals]
        self._threshold(self.n_components_)

    def _threshold(self, n: int) -> None:
        """The threshold of the span of the first `n` rows."""
        self.offset_ = self._offsets[n - 1] if n else 0.0

    @through_host
    def truncate(self, n_components: int) -> Self:
        """Return a copy that uses the first points alone, with their own threshold.

        Parameters
        ----------
        n_components : int
            From 1 to ``n_components_``.

        Returns
        -------
        model : KernelPCANovelty
            What ``fit`` with this `n_components` gives.

        Raises
        ------
        ValueError
            If `n_components` is out of range.
        """
        model = super().truncate(n_components)
        model._threshold(model.n_components_)
        return model

    @native
    def score_samples(self, X: Any) -> Array:
        """Scores, the larger the less of an outlier.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Minus the squared distances to the span.
        """
        return -self.residual(X)

    @native
    def decision_function(self, X: Any) -> Array:
        """Scores less ``offset_``: negative for outliers.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Scores less the threshold.
        """
        scores = self.score_samples(X)  # first: it says where there is no fit yet
        return Novelty(self.offset_).decision(scores[:, None])

    @through_host
    def predict(self, X: Any) -> Array:
        """Call each row an outlier or not.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            -1 for outliers, 1 for the others.
        """
        scores = self.score_samples(X)
        return Novelty(self.offset_).prediction(scores[:, None])
