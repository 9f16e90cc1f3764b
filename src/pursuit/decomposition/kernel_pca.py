"""Sparse kernel PCA and greedy Nystroem features: the span of few points instead of all.

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

1. Choose i by the rule asked for (``deflation.py``); the factor left behind holds R and the
   coordinates z of all training rows. K~ = K[:, i] K[i, i]^{-1} K[:, i]' (eq. 5) is their Gram
   matrix.
2. With ``n_components="bound"`` k is where the bound of corollary 1 is lowest. Its second term
   grows with k, so that the search ends when that alone exceeds the lowest value so far.
3. Rotate to principal axes: the columns of (z - mu) U have decreasing variance.

`GreedyNystroem` stops after step 1 and takes K[i, i]^{-1/2} k_i(x) as features, which have the
same inner products (eq. 5). Its supervised choice is that of kernel matching pursuit (Vincent and
Bengio 2002, eq. 7) on the targets.

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
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pursuit._typing import Array
from pursuit._validation import (
    FLOATS,
    Samples,
    check_choice,
    check_integer,
    check_real,
    signed_targets,
)
from pursuit.bounds import compression_bound
from pursuit.decomposition._landmarks import LandmarkTransformer, Points
from pursuit.dictionary import draw_candidates, n_candidate_rows, training_rows
from pursuit.expansion.basis_functions import Atoms, AtomSet
from pursuit.greedy.deflation import (
    SELECTIONS,
    Deflation,
    Rule,
    axis_signs,
    choose,
    listed_rule,
    selection_rule,
)
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.kernels import Precomputed, is_precomputed
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_upper

__all__ = ["GreedyNystroem", "SparseKernelPCA", "Subspace", "sparse_kernel_pca"]

# Eigenvalues of the landmarks' kernel matrix below this share of the largest count as so much.
SMALLEST_VARIANCE = 1e-12
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
    """

    picks: Array
    factor: Array
    mean: Array
    second: Array
    residuals: Array
    norms: Array


def sparse_kernel_pca(
    deflation: Deflation,
    n_components: int | None,
    rule: Rule,
    delta: float = 0.05,
) -> Subspace:
    """Steps 1 and 2 on valid arrays.

    Parameters
    ----------
    deflation : Deflation
        Kernel, rows and weights, without any picks.
    n_components : int or None
        k; None: by the bound.
    rule : callable
        The rule of ``deflation.py``.
    delta : float
        One minus the confidence of the bound.

    Returns
    -------
    subspace : Subspace
        What was found; fewer points where the others are spanned.
    """
    if n_components is None:
        n = _by_bound(deflation, rule, delta)
    else:
        choose(deflation, rule, n_components)
        n = len(deflation.pivots)
    picks = np.array(deflation.pivots[:n], dtype=int)
    V, w = deflation.V[:n], deflation.weights / deflation.weights.sum()
    return Subspace(
        picks,
        np.triu(V[:, picks]),
        V @ w,
        (V * w) @ V.T,
        np.array(deflation.residual_sums),
        deflation.diagonal,
    )


def bound_terms(residual_sums: Array, n_samples: int, norms: Array, delta: float) -> Array:
    """Corollary 1 for 1, 2, ... points; R is the largest K(x, x)."""
    t = np.arange(1, min(len(residual_sums), n_samples - 1) + 1)
    means = residual_sums[: len(t)] / (n_samples - t)
    largest = float(norms.max(initial=0.0)) or 1.0
    return compression_bound(means, n_samples, delta=delta, largest_loss=largest)


def _by_bound(deflation: Deflation, rule: Rule, delta: float) -> int:
    """Step 2: the number of points with the lowest bound."""
    n_samples = round(float(deflation.weights.sum()))
    if n_samples < 2:
        choose(deflation, rule, 1)
        return len(deflation.pivots)
    best = np.inf
    while True:
        before = len(deflation.pivots)
        choose(deflation, rule, min(before + BOUND_STEPS, n_samples - 1))
        sums = np.array(deflation.residual_sums)
        terms = bound_terms(sums, n_samples, deflation.diagonal, delta)
        alone = bound_terms(np.zeros_like(sums), n_samples, deflation.diagonal, delta)
        best = float(terms.min(initial=np.inf))
        if len(deflation.pivots) == before or alone[-1] >= best:
            return int(terms.argmin()) + 1 if len(terms) else 0


class SparseKernelPCA(LandmarkTransformer):
    """Kernel principal components in the span of few training rows.

    Parameters
    ----------
    n_components : int or "bound", default 100
        Number of rows chosen, and of columns that ``transform`` gives. ``"bound"``: where the
        sample compression bound (corollary 1) is lowest.
    kernel : str, Kernel or callable, default "rbf"
        As in `KernelMatchingPursuitClassifier`; positive semidefinite.
    gamma : {"scale", "auto"} or float, default "scale"
        Coefficient of the rbf, laplacian and polynomial kernels.
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
        the chosen rows as centres. Not for a precomputed kernel.
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

    def __init__(
        self,
        n_components: int | str = 100,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        selection: Any = "rayleigh",
        n_candidates: int | None = None,
        center: bool = False,
        fit_inverse_transform: bool = False,
        alpha: float = 1e-3,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.selection = selection
        self.n_candidates = n_candidates
        self.center = center
        self.fit_inverse_transform = fit_inverse_transform
        self.alpha = alpha
        self.delta = delta
        self.random_state = random_state

    def _kernel_numbers(self) -> dict[str, Any]:
        return {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}

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
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        points = self._points(X, sample_weight)
        deflation = Deflation(points.kernel, points.X, points.weights)
        rule = self._rule(deflation, points.rows)
        n_components = None if self.n_components == "bound" else int(self.n_components)
        subspace = sparse_kernel_pca(deflation, n_components, rule, self.delta)
        if n_components is not None:
            self._warn_short(len(subspace.picks))
        self._store(points, subspace)
        if self.fit_inverse_transform:
            self._fit_inverse(points.X, points.weights)
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

    def _store(self, points: Points, subspace: Subspace) -> None:
        """Set the fitted attributes."""
        atoms = self._store_centres(points, subspace.picks)
        for name in ("bound_path_", "inverse_coef_", "inverse_centres_"):
            if hasattr(self, name):
                delattr(self, name)
        total = float(points.weights.sum())
        self.residual_path_ = subspace.residuals / total
        if hasattr(self, "support_"):
            self.bound_path_ = bound_terms(
                subspace.residuals, round(total), subspace.norms, self.delta
            )
        self._rotate(atoms, subspace.factor, subspace.mean, subspace.second)

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
        rows = self._validated(X)
        left = self.kernel_.diagonal(rows)
        # In the basis of eq. 4 the coordinates of a smaller span are the first ones.
        Z = self._uncentred(rows) @ self._rotation.T
        for coordinate in Z.T:
            left = np.maximum(left - coordinate**2, 0.0)
            yield left

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
        model.fit_inverse_transform = False
        atoms = self.expansion_.atoms.take(np.arange(n))
        for name in ("support_", "support_vectors_", "residual_path_", "bound_path_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name)[:n])
        if hasattr(model, "inverse_coef_"):
            del model.inverse_coef_, model.inverse_centres_
        model._rotate(atoms, self._factor[:n, :n], self._mean[:n], self._second[:n, :n])
        return model

    def _fit_inverse(self, X: Any, weights: Array) -> None:
        """Kernel ridge regression of the rows on their coordinates.

        Over A: sum_i w_i |x_i - A'k(z_i)|^2 + alpha tr(A'K A), k(z) and K the kernel values of a
        coordinate vector, and among each other, of the chosen points' coordinates.
        """
        used = np.flatnonzero(weights > 0)
        centres = self.expansion_(self.support_vectors_)
        atoms = Atoms(self.kernel_, centres)
        k = len(centres)
        normal = np.zeros((k, k))
        right = np.zeros((k, X.shape[1]))
        for rows in blocks.row_blocks(len(used), 16.0 * max(k, X.shape[1])):
            part = X[used[rows]]
            values = blocks.evaluate(atoms.functions, self.expansion_(part), k)
            weighted = values * weights[used[rows], None]
            normal += weighted.T @ values
            right += np.asarray(safe_sparse_dot(weighted.T, part, dense_output=True))
        normal += self.alpha * self.kernel_(centres, centres)
        # Coordinates that resemble each other leave directions open: the shortest solution.
        self.inverse_coef_ = np.linalg.lstsq(normal, right, rcond=None)[0]
        self.inverse_centres_ = centres

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
            Without ``fit_inverse_transform=True``, or for a wrong number of columns.
        """
        check_is_fitted(self)
        if not hasattr(self, "inverse_coef_"):
            raise ValueError("inverse_transform needs fit_inverse_transform=True")
        coordinates = check_array(Z, dtype=np.float64, ensure_min_features=0, input_name="Z")
        if coordinates.shape[1] != self.n_components_:
            raise ValueError(f"Z has {coordinates.shape[1]} columns, expected {self.n_components_}")
        values: Array = self.kernel_(coordinates, self.inverse_centres_) @ self.inverse_coef_
        return values


class GreedyNystroem(LandmarkTransformer):
    """Features whose inner products approximate a kernel, with landmarks chosen well.

    Takes the place of scikit-learn's ``Nystroem``, whose arguments it has, in front of a linear
    model: that draws its landmarks at random, here they are chosen greedily, with or without
    the targets.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "rbf"
        A name of `pursuit.kernels` or a value from there, or a callable
        ``(X, Z, **kernel_params) -> matrix``; positive semidefinite.
    gamma : {"scale", "auto"} or float, optional
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. None, as in
        scikit-learn: 1 / n_features, for chi2 1. ``"scale"`` is 1 / (n_features * Var(X)).
    coef0 : float, optional
        Constant of the polynomial, sigmoid and cosine polynomial kernels. None: 1.
    degree : float, optional
        Degree of the polynomial and cosine polynomial kernels. None: 3.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel.
    n_components : int, default 100
        Number of landmarks, and of features.
    random_state : int, RandomState or None, default None
        For rows that are drawn.
    n_jobs : int, optional
        Number of threads. None or -1: as many as the process may use.
    selection : str or array-like, default "rayleigh"
        How landmarks are chosen: ``"rayleigh"``, ``"residual"``, ``"rpcholesky"``, ``"random"``,
        ``"kmeans"`` or the indices of rows as in `SparseKernelPCA`; ``"supervised"``: the rows
        that kernel matching pursuit (pre-fitting, squared error) chooses to explain the targets.
    n_candidates : int or float, optional
        With ``"rayleigh"``: rows drawn at each step, of which the best is taken (None: all rows if
        the kernel matrix fits in scikit-learn's ``working_memory``, else 59). With
        ``"supervised"``: number or fraction of rows that may be landmarks, drawn at random (None:
        all rows up to 10 000, above that 2500, or ``5 * n_components`` if that is more).
    target_type : {"auto", "continuous", "class"}, default "auto"
        With ``"supervised"``: whether `y` holds numbers or classes. ``"auto"``: what
        ``sklearn.utils.multiclass.type_of_target`` says, to which whole numbers are classes.

    Attributes
    ----------
    components_ : {ndarray, CSR matrix} of shape (n_landmarks, n_features)
        The landmarks in order of choice; absent for a precomputed kernel. Also as
        ``support_vectors_``.
    component_indices_ : ndarray of int of shape (n_landmarks,)
        Their rows; absent for ``selection="kmeans"``. Also as ``support_``.
    normalization_ : ndarray of shape (n_landmarks, n_landmarks)
        K^{-1/2} of the landmarks.
    kernel_ : Kernel
        The kernel with its numbers resolved.
    expansion_ : KernelExpansion
        The features as functions; ``expansion_(X)`` gives them without any check of X.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    SparseKernelPCA : The same span, by its principal axes and with its distances.

    References
    ----------
    C. Williams and M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 2001.
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002 (supervised).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from pursuit import GreedyNystroem
    >>> X, y = load_digits(return_X_y=True)
    >>> landmarks = GreedyNystroem(gamma="scale", n_components=50, selection="supervised")
    >>> model = make_pipeline(landmarks, RidgeClassifier()).fit(X[:900], y[:900])
    >>> bool(model.score(X[900:], y[900:]) > 0.92)
    True
    """

    _further_selections = ("kmeans", "supervised")

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: Mapping[str, Any] | None = None,
        n_components: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        selection: Any = "rayleigh",
        n_candidates: int | float | None = None,
        target_type: str = "auto",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.selection = selection
        self.n_candidates = n_candidates
        self.target_type = target_type

    def __sklearn_tags__(self) -> Any:
        """Supervised selection needs targets."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._supervised
        return tags

    @property
    def _supervised(self) -> bool:
        return self._named_selection == "supervised"

    def _kernel_numbers(self) -> dict[str, Any]:
        gamma = self.gamma
        if gamma is None:
            gamma = 1.0 if isinstance(self.kernel, str) and self.kernel == "chi2" else "auto"
        return {
            "gamma": gamma,
            "degree": 3 if self.degree is None else self.degree,
            "coef0": 1 if self.coef0 is None else self.coef0,
        }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose landmarks.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Targets or labels, needed and used for ``selection="supervised"`` alone.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : GreedyNystroem
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        X, Y = self._read(X, y)
        with blocks.at_most_threads(self.n_jobs):
            points = self._points(X, sample_weight)
            if Y is None:
                picks = self._unsupervised_picks(points)
            else:
                picks = self._supervised_picks(points, Y[points.rows])
            self._warn_short(len(picks))
            self._normalise(points, picks)
        return self

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        self._check_selection()
        check_integer("n_components", self.n_components)
        if not self._supervised:
            self._check_candidates()
        check_choice("target_type", self.target_type, ("auto", "continuous", "class"))
        if self.n_jobs is not None and self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0")
        check_integer("n_jobs", self.n_jobs, -(2**31), optional=True)

    def _read(self, X: Any, y: Any) -> tuple[Any, Array | None]:
        """Checked rows, and with supervised selection targets as a table."""
        if not self._supervised:
            return validate_data(self, X, accept_sparse="csr", dtype=FLOATS), None
        if y is None:
            raise ValueError(
                "selection='supervised' requires y to be passed, but the target y is None"
            )
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, multi_output=True)
        kind = self.target_type
        if kind == "auto":
            kind = "class" if type_of_target(y) in ("binary", "multiclass") else "continuous"
        if kind == "class":
            classes, codes = np.unique(column_or_1d(y), return_inverse=True)
            return X, signed_targets(codes, max(len(classes), 2))
        Y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        return X, Y.reshape(len(Y), -1)

    def _unsupervised_picks(self, points: Points) -> Array:
        """The points that the rule of ``deflation.py`` chooses."""
        deflation = Deflation(points.kernel, points.X, points.weights)
        choose(deflation, self._rule(deflation, points.rows), self.n_components)
        return np.array(deflation.pivots, dtype=int)

    def _supervised_picks(self, points: Points, Y: Array) -> Array:
        """The rows that pre-fitting kernel matching pursuit chooses."""
        kernel, X, weights, rows = points
        number = n_candidate_rows(self.n_candidates, len(rows), self.n_components)
        candidates = draw_candidates(np.arange(len(rows)), number, self.random_state)
        dictionary = training_rows(kernel, X, candidates)
        search = make_pursuit(dictionary, Samples(X, Y, weights), [self.n_components], Method())
        search.extend(self.n_components)
        picks = candidates[np.array(search.pursuits[0].pivots, dtype=int)]
        return picks if len(picks) == self.n_components else self._completed(points, picks)

    def _completed(self, points: Points, picks: Array) -> Array:
        """The picks, and where they explain the targets, the rows furthest from their span."""
        deflation = Deflation(points.kernel, points.X, points.weights)
        choose(deflation, listed_rule(deflation, picks), len(picks))
        rng = check_random_state(self.random_state)
        choose(deflation, selection_rule(deflation, "residual", rng), self.n_components)
        return np.array(deflation.pivots, dtype=int)

    def _normalise(self, points: Points, picks: Array) -> None:
        """The symmetric root of K^{-1} among the landmarks."""
        kernel, X, _, _ = points
        Z = X[picks].astype(np.float64)
        U, s, Vt = np.linalg.svd(kernel(Z, picks if isinstance(kernel, Precomputed) else Z))
        smallest = SMALLEST_VARIANCE * s.max(initial=0.0)
        self.normalization_ = (U / np.sqrt(np.maximum(s, smallest))) @ Vt
        self._project(self._store_centres(points, picks), self.normalization_, np.zeros(len(picks)))

    @property
    def components_(self) -> Any:
        """The landmarks."""
        return self.support_vectors_

    @property
    def component_indices_(self) -> Array:
        """The rows of the landmarks."""
        return self.support_

    def transform(self, X: Any) -> Array:
        """Features: kernel values with the landmarks, times ``normalization_``.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows; kernel values between them and the training rows if precomputed.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_landmarks)
            In float64; ``Z @ Z.T`` is K~ of eq. 5.
        """
        X = self._validated(X)
        with blocks.at_most_threads(self.n_jobs):
            return self.expansion_(X)
