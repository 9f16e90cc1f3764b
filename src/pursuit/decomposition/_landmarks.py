"""How a transformer with few centres reads its parameters and chooses its centres.

Sparse kernel PCA and the greedy Nystroem method share all of this: rows of positive weight, a
kernel, a rule by which rows are chosen (``deflation.py``), and features that are linear in the
kernel values between a row and the chosen ones. What the algorithms see are the values below and
valid arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pursuit._objects import as_objects, check_coordinates, in_double
from pursuit._typing import Array
from pursuit._validation import check_choice, check_integer, check_weights, read_data
from pursuit._warnings import warn
from pursuit.base.arrays import FollowsX
from pursuit.base.callbacks import CallbackSupport
from pursuit.expansion.basis_functions import Atoms, AtomSet
from pursuit.expansion.expansion import KernelExpansion
from pursuit.greedy.deflation import (
    N_CANDIDATES_95,
    SELECTIONS,
    Deflation,
    Rule,
    kernel_and_rows,
    listed_rule,
    selection_rule,
)
from pursuit.kernels import Kernel, Precomputed, is_precomputed
from pursuit.linalg import blocks

__all__ = ["LandmarkProblem", "LandmarkTransformer", "check_definite"]

# A squared distance below minus this share of the largest K(x, x) is more than rounding, that of
# kernel values in single precision included.
INDEFINITE = 1e-3


def check_definite(deflation: Deflation, argument: str = "kernel") -> None:
    """Raise where a row's feature vector is shorter than its projection on the chosen ones.

    Parameters
    ----------
    deflation : Deflation
        At its end.
    argument : str, default="kernel"
        What the caller calls the kernel.

    Raises
    ------
    ValueError
        If a squared distance is clearly below zero: the kernel is not positive semidefinite.
    """
    V = deflation.V
    distances = deflation.diagonal - np.einsum("ij,ij->j", V, V)
    least = float(distances.min(initial=0.0))
    if least < -INDEFINITE * deflation.diagonal.max(initial=0.0):
        raise ValueError(
            f"{argument}: {deflation.kernel} is not positive semidefinite on these rows, one of "
            f"which has the squared distance {least:.3g} to the span of the chosen ones"
        )


class LandmarkProblem(NamedTuple):
    """Rows that count, and what may be a centre.

    Attributes
    ----------
    kernel : Kernel
        With its numbers resolved.
    X : {ndarray, CSR matrix} of shape (n_points, n_features)
        Rows of positive weight, and below them cluster centres, of weight zero.
    weights : ndarray of shape (n_points,)
        Their weights.
    rows : ndarray of int of shape (n_rows,)
        Places of the rows in the caller's X.
    """

    kernel: Kernel
    X: Any
    weights: Array
    rows: Array


class LandmarkTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupport, FollowsX, BaseEstimator
):
    """Features that are linear in the kernel values of few chosen centres.

    A subclass fits by way of `_points`, `_rule` and `_store_centres`, and gives `_project` the
    coefficients of the features.
    """

    _takes_objects = True

    n_components: Any
    kernel: Any
    kernel_params: Mapping[str, Any] | None
    selection: Any
    n_candidates: Any
    random_state: Any

    # What `selection` may be beside the rules of ``deflation.py`` and a list of rows.
    _further_selections: tuple[str, ...] = ("kmeans",)

    def __sklearn_tags__(self) -> Any:
        """Sparse input is accepted; a precomputed kernel makes the input pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.pairwise = True, is_precomputed(self.kernel)
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _kernel_numbers(self) -> dict[str, Any]:
        """The arguments gamma, degree and coef0 of `resolve_kernel`."""
        raise NotImplementedError

    @property
    def _named_selection(self) -> str | None:
        """The name of the selection; None where rows are listed."""
        return self.selection if isinstance(self.selection, str) else None

    def _check_selection(self) -> None:
        """Raise one error that names the parameter of the selection that is out of range."""
        name = self._named_selection
        if name is not None:
            check_choice("selection", name, (*SELECTIONS, *self._further_selections))
        if name == "kmeans" and is_precomputed(self.kernel):
            raise ValueError("selection='kmeans' needs the rows, not a precomputed kernel")

    def _check_candidates(self) -> None:
        """Raise unless `n_candidates` is None, or a number for the Rayleigh rule."""
        check_integer("n_candidates", self.n_candidates, optional=True)
        if self.n_candidates is not None and self._named_selection != "rayleigh":
            raise ValueError(
                f"n_candidates has no meaning for selection={self.selection!r}, "
                "which does not compare candidates"
            )

    def _points(self, X: Any, sample_weight: Any) -> LandmarkProblem:
        """Checked rows with their kernel, and cluster centres where these are asked for."""
        weights = check_weights(sample_weight, X.shape[0])
        rows = np.flatnonzero(weights > 0)
        weights = weights[rows]
        named = {"kernel": self.kernel, "kernel_params": self.kernel_params}
        kernel, used = kernel_and_rows(X, rows, weights, named | self._kernel_numbers())
        if self._named_selection == "kmeans":
            check_coordinates(X, "selection='kmeans'")
            centres = self._cluster_centres(used, weights)
            used = _stacked(used, centres)
            weights = np.concatenate([weights, np.zeros(len(centres))])
        return LandmarkProblem(kernel, used, weights, rows)

    def _cluster_centres(self, X: Any, weights: Array) -> Array:
        """Means of clusters of the weighted rows."""
        means = KMeans(
            min(int(self.n_components), X.shape[0]), n_init=1, random_state=self.random_state
        )
        with warnings.catch_warnings():
            # Fewer distinct rows than clusters: that fewer centres are chosen is said later.
            warnings.simplefilter("ignore", ConvergenceWarning)
            centres: Array = means.fit(X, sample_weight=weights).cluster_centers_
        return centres

    def _rule(self, deflation: Deflation, rows: Array) -> Rule:
        """How the centres are chosen; `rows` are the places of the points in the caller's X."""
        name = self._named_selection
        if name is None:
            return listed_rule(deflation, self._listed(rows))
        if name == "kmeans":
            return listed_rule(deflation, np.flatnonzero(deflation.weights == 0))
        n_candidates = self.n_candidates
        m = len(deflation.diagonal)
        if name == "rayleigh" and n_candidates is None and not blocks.fits(8.0 * m * m):
            n_candidates = N_CANDIDATES_95
        rng = check_random_state(self.random_state)
        return selection_rule(deflation, name, rng, n_candidates)

    def _listed(self, rows: Array) -> Array:
        """Places among `rows` of the rows that `selection` lists."""
        listed = np.asarray(self.selection)
        if listed.ndim != 1 or listed.dtype.kind not in "iu" or not np.isin(listed, rows).all():
            names = [*SELECTIONS, *self._further_selections]
            raise ValueError(
                f"selection must be one of {names}, or list as integers rows of positive weight, "
                f"from 0 to {int(rows[-1])}"
            )
        return np.asarray(np.searchsorted(rows, listed))

    def _warn_short(self, n_found: int, reason: str) -> None:
        """Say that there are fewer centres than were asked for, where that is why it ended."""
        if reason in ("n_components", "rank") and n_found < self.n_components:
            warn(
                f"n_components={self.n_components}, but {n_found} centres were chosen: the other "
                "points lie in their span to rounding, or there are none",
                ConvergenceWarning,
            )

    def _store_centres(self, points: LandmarkProblem, picks: Array) -> Atoms:
        """Set the attributes that hold the chosen centres; return their functions."""
        kernel, X, _, rows = points
        precomputed = isinstance(kernel, Precomputed)
        vectors = rows[picks] if precomputed else in_double(X[picks])
        self.kernel_ = kernel
        for name in ("support_", "support_vectors_"):
            if hasattr(self, name):
                delattr(self, name)
        if not precomputed:
            self.support_vectors_ = as_objects(vectors)
        if self._named_selection != "kmeans":
            self.support_ = rows[picks]
        return Atoms(kernel, vectors)

    def _project(self, atoms: AtomSet, coefficients: Array, intercept: Array) -> None:
        """Store the features, (n_features_out, n_centres) coefficients and their constants."""
        self.expansion_ = KernelExpansion(atoms, coefficients, intercept)
        self._n_features_out = len(coefficients)

    def _validated(self, X: Any) -> Any:
        """Rows in the form of those that the model was fitted on."""
        check_is_fitted(self)
        return read_data(self, X, reset=False, accept_sparse="csr")


def _stacked(X: Any, centres: Array) -> Any:
    """The rows, and below them the centres."""
    if sparse.issparse(X):
        return sparse.csr_matrix(sparse.vstack([X, sparse.csr_matrix(centres)]))
    return np.vstack([X, centres])
