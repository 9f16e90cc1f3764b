"""Sparse kernel principal component analysis: the span of few rows instead of all.

Z. Hussain and J. Shawe-Taylor, "Theory of matching pursuit", NIPS 2008, section 2; the numbers of
equations, algorithms and theorems are theirs. The selection equals the sparse greedy matrix
approximation of Smola and Schoelkopf (2000) (theorem 1).

Problem. Choose k of m rows x_i, so that the feature vectors phi(x) of all rows lie near the span
of the chosen ones, and describe a row by its coordinates there.

===========  ===================  =======================================================
symbol       name in code         shape and meaning
===========  ===================  =======================================================
i            ``picks``            (k,) chosen rows in order (algorithm 1)
R            ``factor``           (k, k) upper triangular, R'R = K[i, i]
z(x)         ``coordinates``      (k,) R^{-T} k_i(x), coordinates in an orthonormal basis
P_i(x)                            projection of phi(x), |P_i(x)|^2 = |z(x)|^2  (eq. 4)
mu, S        ``mean``, ``second``  weighted means of z and of z z' over the rows
C                                 S - mu mu', the covariance of z
U            ``rotation``         (k, k) eigenvectors of C, by decreasing eigenvalue
===========  ===================  =======================================================

Steps.

1. Choose i by the rule asked for (``greedy/deflation.py``); the factor left behind holds R and the
   coordinates z of all training rows. K~ = K[:, i] K[i, i]^{-1} K[:, i]' (eq. 5) is their Gram
   matrix.
2. With ``n_components="bound"`` k is where the bound of corollary 1 is lowest. Its second term
   grows with k, so that the search ends when that alone exceeds the lowest value so far.
3. Rotate to principal axes: the columns of (z - mu) U have decreasing variance.

A prefix of the choice is the choice of a smaller k, and its coordinates are the first ones: mu
and S of a smaller model are parts of those of a larger.

Where we differ. The paper stops at step 1; centring (mu = 0 without) and rotation make
``transform`` that of kernel PCA, which it equals, up to signs, where all rows are chosen.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from pursuit._objects import check_coordinates
from pursuit._typing import Array, Watch
from pursuit._validation import (
    check_choice,
    check_integer,
    check_real,
    read_data,
)
from pursuit.base.arrays import following, native, through_host
from pursuit.base.parameters import constructor, positional
from pursuit.bounds import compression_bound
from pursuit.decomposition._landmarks import (
    LandmarkProblem,
    LandmarkTransformer,
    check_definite,
)
from pursuit.expansion.basis_functions import Atoms, AtomSet
from pursuit.greedy.deflation import (
    SELECTIONS,
    Deflation,
    Rule,
    axis_signs,
    choose,
)
from pursuit.greedy.device_deflation import deflation_of
from pursuit.kernels import is_precomputed
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_upper

__all__ = ["SparseKernelPCA", "Subspace", "sparse_kernel_pca"]

# Points that are looked at between two looks at the bound.
BOUND_STEPS = 16


class Subspace(NamedTuple):
    """The span of chosen points, and where the training rows lie in it.

    Attributes
    ----------
    picks : ndarray of int of shape (k,)
        i.
    factor : ndarray of shape (k, k)
        R.
    mean : ndarray of shape (k,)
        mu, whether or not it will be subtracted.
    second : ndarray of shape (k, k)
        Weighted mean of z z'.
    residuals : ndarray of shape (at least k,)
        Sum of w_i (K(x_i, x_i) - |z_i|^2) after 1, 2, ... points, as far as was looked.
    norms : ndarray of shape (m,)
        K(x_i, x_i).
    reason : str
        Why there are no more points.
    """

    picks: Array
    factor: Array
    mean: Array
    second: Array
    residuals: Array
    norms: Array
    reason: str


def sparse_kernel_pca(
    deflation: Deflation,
    n_components: int | None,
    rule: Rule,
    delta: float = 0.05,
    watch: Watch[Deflation] | None = None,
) -> Subspace:
    """Steps 1 and 2 on valid arrays.

    Parameters
    ----------
    deflation : Deflation
        Kernel, rows and weights, without any picks.
    n_components : int or None
        k; None: by the bound.
    rule : callable
        The rule of ``greedy/deflation.py``.
    delta : float
        One minus the confidence of the bound.
    watch : callable, optional
        Looks at the deflation after each point; a text ends the choice and says why.

    Returns
    -------
    subspace : Subspace
        What was found; fewer points where the others are spanned.
    """
    if n_components is None:
        n, reason = _by_bound(deflation, rule, delta, watch)
    else:
        reason = choose(deflation, rule, n_components, watch)
        n = len(deflation.pivots)
    return subspace(deflation, n, reason)


def subspace(deflation: Deflation, n: int, reason: str) -> Subspace:
    """The span of the first `n` points."""
    picks = np.array(deflation.pivots[:n], dtype=int)
    V, w = deflation.V[:n], deflation.weights / deflation.weights.sum()
    return Subspace(
        picks,
        np.triu(V[:, picks]),
        V @ w,
        (V * w) @ V.T,
        np.array(deflation.residual_sums),
        deflation.diagonal,
        reason,
    )


def bound_terms(residual_sums: Array, n_samples: int, norms: Array, delta: float) -> Array:
    """Corollary 1 for 1, 2, ... points; R is the largest K(x, x)."""
    n_samples = max(n_samples, 1)  # weights that sum to less than one sample leave no bound
    t = np.arange(1, min(len(residual_sums), n_samples - 1) + 1)
    means, largest = residual_sums[: len(t)] / (n_samples - t), float(norms.max(initial=0.0)) or 1.0
    return compression_bound(means, n_samples, delta=delta, largest_loss=largest)


def _by_bound(
    deflation: Deflation, rule: Rule, delta: float, watch: Watch[Deflation] | None
) -> tuple[int, str]:
    """Step 2: the number of points with the lowest bound, and why there are no more."""
    n_samples = round(float(deflation.weights.sum()))
    if n_samples < 2:
        choose(deflation, rule, 1)
        return len(deflation.pivots), "bound"
    best = np.inf
    while True:
        before = len(deflation.pivots)
        n_wanted = min(before + BOUND_STEPS, n_samples - 1)
        reason = choose(deflation, rule, n_wanted, watch)
        stopped = reason not in ("n_components", "rank")
        sums = np.array(deflation.residual_sums)
        terms = bound_terms(sums, n_samples, deflation.diagonal, delta)
        alone = bound_terms(np.zeros_like(sums), n_samples, deflation.diagonal, delta)
        best = float(terms.min(initial=np.inf))
        if stopped or len(deflation.pivots) == before or alone[-1] >= best:
            return int(terms.argmin()) + 1 if len(terms) else 0, reason if stopped else "bound"


@constructor
class SparseKernelPCA(LandmarkTransformer):
    """Kernel principal components in the span of few training rows.

    Parameters
    ----------
    n_components : int or "bound", default 100
        Number of rows chosen, and of columns that ``transform`` gives. ``"bound"``: where the
        sample compression bound (corollary 1) is lowest.
    kernel : str, Kernel or callable, default "rbf"
        As in `KernelMatchingPursuitClassifier`; positive semidefinite.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default "scale"
        Coefficient of the rbf, laplacian and polynomial kernels.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default 3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, default 1
        Constant of the polynomial and cosine polynomial kernels.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel.
    selection : str or array-like, default "rayleigh"
        How rows are chosen: ``"rayleigh"`` (algorithm 1: the largest drop of the residual),
        ``"residual"`` (the row furthest from the span), ``"rpcholesky"`` (drawn in proportion to
        its squared distance), ``"random"``, ``"kmeans"`` (centres of clusters, which are no rows),
        or the indices of the rows themselves, in order.
    n_candidates : int, optional
        With ``"rayleigh"``: rows drawn at each step, of which the best is taken. None: all rows
        if the kernel matrix fits in scikit-learn's ``working_memory``, else 59, of which the
        best is among the best 5 % of all with probability 0.95.
    center : bool, default False
        Whether the coordinates are centred on their mean, as in kernel PCA.
    fit_inverse_transform : bool, default False
        Whether to learn `inverse_transform` by kernel ridge regression on the coordinates, with
        the chosen rows as centres, about the mean of the rows. Not for a precomputed kernel.
    alpha : float, default 1e-3
        Ridge of the inverse.
    delta : float, default 0.05
        One minus the confidence of the bound.
    random_state : int, RandomState or None, default None
        For rows that are drawn.

    Attributes
    ----------
    support_ : ndarray of int of shape (k,)
        Chosen rows in order; absent for ``selection="kmeans"``.
    support_vectors_ : {ndarray, CSR matrix} of shape (k, n_features)
        The chosen rows; absent for a precomputed kernel.
    n_components_ : int
        k, below `n_components` where the other rows lie in the span.
    explained_variance_ : ndarray of shape (k,)
        Weighted mean square of each column of the transformed training rows (their variance if
        centred), decreasing.
    residual_path_ : ndarray of shape (k,)
        Weighted mean squared distance of the training rows to the span of 1, 2, ... chosen rows;
        with ``n_components="bound"`` as far as was looked, beyond k.
    bound_path_ : ndarray
        Sample compression bound of the expected distance, for as many; shorter by one where all
        rows are chosen. Absent for ``selection="kmeans"``.
    kernel_ : Kernel
        The kernel with its numbers resolved.
    stop_reason_ : {"n_components", "bound", "rank", "callback", "interrupt"}
        Why no more rows were chosen; ``"rank"``: the others lie in the span.
    expansion_ : KernelExpansion
        The features as functions; ``expansion_(X)`` gives them without any check of X.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    References
    ----------
    Z. Hussain and J. Shawe-Taylor, "Theory of matching pursuit", NIPS 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pursuit import SparseKernelPCA
    >>> X, y = load_digits(return_X_y=True)
    >>> pca = SparseKernelPCA(n_components=50).fit(X)
    >>> pca.transform(X).shape, bool(pca.residual(X).mean() < 0.3)
    ((1797, 50), True)
    >>> pca.truncate(10).support_.tolist() == pca.support_[:10].tolist()
    True
    """

    n_components: int | str = positional(default=100)
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    selection: Any = "rayleigh"
    n_candidates: int | None = None
    center: bool = False
    fit_inverse_transform: bool = False
    alpha: float = 0.001
    delta: float = 0.05
    random_state: Any = None

    def _kernel_numbers(self) -> dict[str, Any]:
        return {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}

    @following
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose rows and principal axes.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : SparseKernelPCA
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        X = read_data(self, X, accept_sparse="csr")
        if self.fit_inverse_transform:
            check_coordinates(X, "fit_inverse_transform")
        points = self._points(X, sample_weight)
        deflation = deflation_of(points.kernel, points.X, points.weights)
        rule = self._rule(deflation, points.rows)
        n_components = None if self.n_components == "bound" else int(self.n_components)
        with self._watching(X, y, sample_weight, n_steps=n_components) as watcher:

            def look(deflation: Deflation) -> str | None:
                def store(model: SparseKernelPCA) -> None:
                    n = len(deflation.pivots)
                    model._store(points, subspace(deflation, n, "n_components"))

                return None if watcher is None else watcher(store)

            watch = None if watcher is None else look
            found = sparse_kernel_pca(deflation, n_components, rule, self.delta, watch)
            check_definite(deflation)
            if n_components is not None:
                self._warn_short(len(found.picks), found.reason)
            self._store(points, found)
        return self

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        self._check_selection()
        self._check_candidates()
        if self.n_components != "bound":
            check_integer("n_components", self.n_components)
        elif self._named_selection not in SELECTIONS:
            raise ValueError("n_components='bound' needs rows chosen by a rule of selection")
        for name in ("center", "fit_inverse_transform"):
            check_choice(name, getattr(self, name), (True, False))
        check_real("alpha", self.alpha)
        check_real("delta", self.delta, below=1.0, above=True)
        if self.fit_inverse_transform and is_precomputed(self.kernel):
            raise ValueError("fit_inverse_transform needs the rows, not a precomputed kernel")

    def _store(self, points: LandmarkProblem, subspace: Subspace) -> None:
        """Set the fitted attributes."""
        atoms = self._store_centres(points, subspace.picks)
        for name in ("bound_path_", "inverse_coef_", "inverse_centres_", "inverse_intercept_"):
            if hasattr(self, name):
                delattr(self, name)
        total = float(points.weights.sum())
        self.residual_path_ = subspace.residuals / total
        if hasattr(self, "support_"):
            self.bound_path_ = bound_terms(
                subspace.residuals, round(total), subspace.norms, self.delta
            )
        self.stop_reason_ = subspace.reason
        self._rotate(atoms, subspace.factor, subspace.mean, subspace.second)
        if self.fit_inverse_transform:
            self._fit_inverse(points.X, points.weights)

    def _rotate(self, atoms: AtomSet, factor: Array, mean: Array, second: Array) -> None:
        """Step 3."""
        self._factor, self._mean, self._second = factor, mean, second
        mu = mean if self.center else np.zeros_like(mean)
        values, vectors = eigh(second - np.outer(mu, mu)) if len(mu) else (mu, second)
        rotation = vectors[:, ::-1] * axis_signs(vectors[:, ::-1])
        self.explained_variance_ = np.maximum(values[::-1], 0.0)
        self.n_components_, self._rotation = len(mu), rotation
        projection = solve_upper(factor, rotation) if len(mu) else rotation
        self._project(atoms, projection.T, -(mu @ rotation))

    @native
    def transform(self, X: Any) -> Array:
        """Coordinates on the principal axes of the span.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows; kernel values between them and the training rows if precomputed.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components_)
            In float64.
        """
        rows = self._validated(X)
        return self.expansion_(rows)

    def _uncentred(self, rows: Any) -> Array:
        """z(x)'U of checked rows, without mu."""
        coordinates: Array = self.expansion_(rows) - self.expansion_.intercept
        return coordinates

    @through_host
    def residual(self, X: Any) -> Array:
        """Squared distance of each row's feature vector to the span (corollary 1).

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows. With a precomputed kernel only the training rows, whose K(x, x) are known.

        Returns
        -------
        residual : ndarray of shape (n_samples,)
            K(x, x) - |P_i(x)|^2, at least 0.
        """
        rows = self._validated(X)
        Z = self._uncentred(rows)
        lengths = np.einsum("ij,ij->i", Z, Z)
        return np.asarray(np.maximum(self.kernel_.diagonal(rows) - lengths, 0.0))

    @through_host
    def staged_residual(self, X: Any) -> Iterator[Array]:
        """Squared distances to the span of 1, 2, ... chosen rows.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows. With a precomputed kernel only the training rows, whose K(x, x) are known.

        Yields
        ------
        residual : ndarray of shape (n_samples,)
            As `residual` of ``truncate(n)``.
        """
        yield from self._staged(self._validated(X))

    def _staged(self, rows: Any) -> Iterator[Array]:
        """`staged_residual` of checked rows."""
        left = self.kernel_.diagonal(rows)
        # In the basis of eq. 4 the coordinates of a smaller span are the first ones.
        Z = self._uncentred(rows) @ self._rotation.T
        for coordinate in Z.T:
            left = np.maximum(left - coordinate**2, 0.0)
            yield left

    @through_host
    def truncate(self, n_components: int) -> Self:
        """Return a copy that uses the first points alone, with their own principal axes.

        Parameters
        ----------
        n_components : int
            From 1 to ``n_components_``.

        Returns
        -------
        model : SparseKernelPCA
            What ``fit`` with this `n_components` gives, without an inverse.

        Raises
        ------
        ValueError
            If `n_components` is out of range.
        """
        check_is_fitted(self)
        n = n_components
        if not (isinstance(n, (int, np.integer)) and 1 <= n <= self.n_components_):
            raise ValueError(
                f"n_components must be an integer from 1 to {self.n_components_}, "
                f"got {n_components!r}"
            )
        model = copy.copy(self)
        model.n_components = int(n)
        model.stop_reason_ = "n_components" if n < self.n_components_ else self.stop_reason_
        model.fit_inverse_transform = False
        atoms = self.expansion_.atoms.take(np.arange(n))
        for name in ("support_", "support_vectors_", "residual_path_", "bound_path_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name)[:n])
        if hasattr(model, "inverse_coef_"):
            for name in ("inverse_coef_", "inverse_centres_", "inverse_intercept_"):
                model.__dict__.pop(name, None)
        model._rotate(atoms, self._factor[:n, :n], self._mean[:n], self._second[:n, :n])
        return model

    def _fit_inverse(self, X: Any, weights: Array) -> None:
        """Kernel ridge regression of the rows on their coordinates.

        Over A: sum_i w_i |x_i - x_mean - A'k(z_i)|^2 + alpha tr(A'K A), k(z) and K the kernel
        values of a coordinate vector, and among each other, of the chosen points' coordinates.
        """
        used = np.flatnonzero(weights > 0)
        centres = self.expansion_(self.support_vectors_)
        atoms = Atoms(self.kernel_, centres)
        k = len(centres)
        shares = weights[used] / weights[used].sum()
        mean = np.asarray(safe_sparse_dot(shares[None, :], X[used], dense_output=True))
        normal = np.zeros((k, k))
        right = np.zeros((k, X.shape[1]))
        for rows in blocks.row_blocks(len(used), 16.0 * max(k, X.shape[1])):
            part = X[used[rows]]
            values = blocks.evaluate(atoms.functions, self.expansion_(part), k)
            weighted = values * weights[used[rows], None]
            normal += weighted.T @ values
            right += np.asarray(safe_sparse_dot(weighted.T, part, dense_output=True))
            right -= weighted.sum(axis=0)[:, None] * mean
        normal += self.alpha * self.kernel_(centres, centres)
        # Coordinates that resemble each other leave directions open: the shortest solution.
        self.inverse_coef_ = np.linalg.lstsq(normal, right, rcond=None)[0]
        self.inverse_centres_ = centres
        self.inverse_intercept_ = mean[0]

    @available_if(lambda model: model.fit_inverse_transform)  # type: ignore[untyped-decorator]
    @through_host
    def inverse_transform(self, Z: Any) -> Array:
        """Rows whose coordinates are near to those given.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components_)
            Coordinates.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.

        Raises
        ------
        ValueError
            For a wrong number of columns, or if ``fit_inverse_transform=True`` came after the fit.

        AttributeError
            Without ``fit_inverse_transform=True``.
        """
        check_is_fitted(self)
        if not hasattr(self, "inverse_coef_"):
            raise ValueError("inverse_transform needs fit_inverse_transform=True")
        coordinates = check_array(Z, dtype=np.float64, ensure_min_features=0, input_name="Z")
        if coordinates.shape[1] != self.n_components_:
            raise ValueError(f"Z has {coordinates.shape[1]} columns, expected {self.n_components_}")
        values: Array = self.kernel_(coordinates, self.inverse_centres_) @ self.inverse_coef_
        # Models saved before there was a constant have none.
        return values + getattr(self, "inverse_intercept_", 0.0)
