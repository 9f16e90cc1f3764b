"""Sparse kernel canonical correlation analysis: what two views of the same rows have in common.

Z. Hussain and J. Shawe-Taylor, "Theory of matching pursuit", NIPS 2008, section 4; the numbers of
algorithms and theorems are theirs.

Problem. Each of m rows is seen twice, as x and as y. Choose k of the pairs, so that few kernel
functions of each view describe what the views share, and find the functions f_x and f_y in their
spans whose values on x and y are most correlated.

===========  =====================  =====================================================
symbol       name in code           shape and meaning
===========  =====================  =====================================================
Kx^, Ky^     ``views``              deflated kernel matrices (``deflation.py``)
t, s         ``columns``            (m,)  columns i of Kx^ and Ky^
w            ``weights``            (m,)  weights of the pairs
c            ``products``           (m,)  sum_j w_j Kx^[j,i] Ky^[j,i]
a, b         ``norms``              (m,)  sum_j w_j Kx^[j,i]^2, sum_j w_j Ky^[j,i]^2
z            ``deflation.V``        (k, m)  coordinates in an orthonormal basis of the span
C            ``cross``              cross-covariance of the whitened coordinates
rho          ``correlations``       singular values of C
===========  =====================  =====================================================

Steps.

1. k times choose the pair with the largest quotient (section 4) and deflate both kernel matrices
   at it as in algorithm 1:

       i = argmax c_i / sqrt(a_i b_i).

   A pair that lies in the span of the earlier ones in one view is not chosen while there is one
   that does in neither. After that, single points of one view follow by the rule of algorithm 1
   for that view, a_i / Kx^[i,i], and only that view is deflated.
2. Centre the coordinates z of each view on their weighted mean, and whiten them by the inverse
   root of their covariance plus alpha I. Directions without variance are left out.
3. With the singular vectors of C the scores are f_x(x) = z(x)'p and f_y(y) = z(y)'q; they have
   unit regularised variance, p'(C_xx + alpha I)p = 1, and covariance rho.

The scores of all pairs are kept from step to step. With d = Kx^[i,i], e = Ky^[i,i],

    c_j <- c_j - (Kx^ W s)_j s_j / e - (Ky^ W t)_j t_j / d + (t'W s) t_j s_j / (d e),
    a_j <- a_j - 2 (Kx^ W t)_j t_j / d + (t'W t) t_j^2 / d^2,

and b in the same way: each kernel matrix is read once a step, for two products. The quotient does
not change with the scale of a column, so that rounding counts where columns have become small:
such columns are computed anew.

Cost. O(m^2 k) with all scores, and two matrices of m x m in memory. With `n_candidates` drawn
pairs a step (59 are enough, see ``deflation.py``) O(m k (k + 59)) and 120 k columns of K.

Where we differ. The paper leaves ties, spanned points and the regularisation open.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.linalg import solve_triangular, svd
from scipy.linalg.blas import dsymv
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from pursuit._objects import as_objects, in_double, object_column, takes_objects
from pursuit._typing import Array, Watch
from pursuit._validation import check_integer, check_real, check_weights, read_data
from pursuit._warnings import warn
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.parameters import constructor, positional
from pursuit.bounds import cca_bound
from pursuit.decomposition._landmarks import check_definite
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.greedy.deflation import N_CANDIDATES_95, Deflation, axis_signs, kernel_and_rows
from pursuit.kernels import Kernel, Precomputed, is_precomputed
from pursuit.linalg import blocks
from pursuit.linalg.partial_cholesky import first_best

__all__ = ["CanonicalAxes", "SparseKernelCCA", "ViewAxes", "choose_pairs", "sparse_kernel_cca"]

# One value for both views, or a pair.
KERNEL_ARGUMENTS = ("kernel", "gamma", "degree", "coef0", "kernel_params")
# Standard deviations below this share of the root mean square of the coordinates are rounding.
NO_DEVIATION = 1e-9
# A column is computed anew when its squared norm has fallen by this factor.
STALE = 1e-8
# So many columns at a time stay in the processor's cache.
PIECE = 32
# Scores whose variance is below this share of their mean square are constant.
CONSTANT_SCORES = 1e-24

Views = tuple[Deflation, Deflation]
# Indices of pairs, their c, and their a and b.
PairScores = tuple[Array, Array, tuple[Array, Array]]


class ViewAxes(NamedTuple):
    """One view's canonical functions, f(x) = K(x, points) @ coefficients + intercept.

    Attributes
    ----------
    picks : ndarray of int of shape (k,)
        The points at which this view was deflated.
    coefficients : ndarray of shape (k, n_components)
        Of the kernel functions at these points.
    intercept : ndarray of shape (n_components,)
        Minus the weighted mean of the rest.
    scores : ndarray of shape (m, n_components)
        Of the training rows.
    """

    picks: Array
    coefficients: Array
    intercept: Array
    scores: Array


class CanonicalAxes(NamedTuple):
    """What `sparse_kernel_cca` finds.

    Attributes
    ----------
    points : ndarray of int of shape (k,)
        The chosen pairs in order.
    correlations : ndarray of shape (n_components,)
        rho, decreasing.
    x, y : ViewAxes
        The functions of the views.
    reason : str
        Why there are no more pairs.
    """

    points: Array
    correlations: Array
    x: ViewAxes
    y: ViewAxes
    reason: str


class Scores(Protocol):
    """Squared norms and inner products of columns, of all points or of a few."""

    def of(self, points: Array) -> PairScores:
        """Those of `points` that are looked at, with c, a and b."""

    def columns(self, points: Array) -> list[Array]:
        """Those of Kx^ and Ky^."""

    def update(self, columns: list[Array], ratios: list[Array]) -> None:
        """Bring what is kept to the matrices deflated by these columns."""


def sparse_kernel_cca(
    views: Views,
    scores: Scores,
    n_basis: int,
    n_components: int,
    alpha: float,
    watch: Watch[Array] | None = None,
) -> CanonicalAxes:
    """Steps 1 to 3 on valid arrays.

    Parameters
    ----------
    views : pair of Deflation
        Kernel and rows of each view, and the same weights, without any picks.
    scores : DrawnScores or AllScores
        How points are compared.
    n_basis : int
        k.
    n_components : int
        Largest number of canonical pairs.
    alpha : float
        Ridge of the covariances.
    watch : callable, optional
        Looks at the points after each one; a text ends the choice and says why.

    Returns
    -------
    axes : CanonicalAxes
        What was found; fewer points and pairs where there are no more.
    """
    points, reason = choose_pairs(views, scores, n_basis, watch)
    return canonical_axes(views, points, n_components, alpha, reason)


def canonical_axes(
    views: Views, points: Array, n_components: int, alpha: float, reason: str
) -> CanonicalAxes:
    """Steps 2 and 3 for the points at which the views are deflated."""
    for view, name in zip(views, ("the kernel of X", "the kernel of Y"), strict=True):
        check_definite(view, name)
    weights = views[0].weights / views[0].weights.sum()
    parts = [_whitened(view, weights, alpha) for view in views]
    (W_x, P_x), (W_y, P_y) = parts
    cross = W_x.T @ W_y
    if not cross.size:
        left, rho, right = np.empty((len(cross), 0)), np.empty(0), np.empty((0, cross.shape[1]))
    else:
        left, rho, right = svd(cross, full_matrices=False)
    p, q = P_x @ left[:, :n_components], P_y @ right[:n_components].T
    signs = axis_signs(p)
    x, y = (
        _view_axes(view, weights, axes * signs) for view, axes in zip(views, (p, q), strict=True)
    )
    return CanonicalAxes(points, np.minimum(rho[:n_components], 1.0), x, y, reason)


def choose_pairs(
    views: Views, scores: Scores, n_basis: int, watch: Watch[Array] | None = None
) -> tuple[Array, str]:
    """Step 1: deflate the views at so many points, or until all are spanned.

    Parameters
    ----------
    views : pair of Deflation
        The views; they are changed.
    scores : DrawnScores or AllScores
        How points are compared.
    n_basis : int
        Number of steps.
    watch : callable, optional
        Looks at the points after each one.

    Returns
    -------
    points : ndarray of int
        The chosen points in order; a point that each view chose for itself stands there once.
    reason : str
        ``"n_basis"``, ``"rank"``, or what the watch said.
    """
    points: dict[int, None] = {}
    reason: str | None = None
    for _ in range(n_basis):
        choice = _choice(views, scores)
        if choice is None:
            reason = "rank"
            break
        pick, chosen = choice
        nothing = np.zeros(len(views[0].weights))
        columns = [
            column[:, 0] if view in chosen else nothing
            for view, column in zip(views, scores.columns(np.array([pick])), strict=True)
        ]
        ratios = [
            column / view.residual[pick] if view in chosen else nothing
            for view, column in zip(views, columns, strict=True)
        ]
        scores.update(columns, ratios)
        for view, column in zip(views, columns, strict=True):
            if view in chosen:
                view.deflate(pick, column)
        points[pick] = None
        if watch is not None and (reason := watch(np.array(list(points)))):
            break
    return np.array(list(points), dtype=int), reason or "n_basis"


def _choice(views: Views, scores: Scores) -> tuple[int, tuple[Deflation, ...]] | None:
    """The next point, and the views to deflate at it; None where all points are spanned."""
    usable_x, usable_y = (np.flatnonzero(view.usable) for view in views)
    both = np.intersect1d(usable_x, usable_y, assume_unique=True)
    if len(both):
        points, products, (a, b) = scores.of(both)
        return int(points[first_best(products / np.sqrt(a * b))]), views
    either = np.union1d(usable_x, usable_y)
    if not len(either):
        return None
    points, _, norms = scores.of(either)
    quotients = np.full((2, len(points)), -np.inf)
    for v, (view, usable) in enumerate(zip(views, (usable_x, usable_y), strict=True)):
        mine = np.isin(points, usable)
        total = float(view.weights @ view.diagonal)
        quotients[v, mine] = norms[v][mine] / (view.residual[points[mine]] * total)
    v, place = divmod(first_best(quotients.ravel()), len(points))
    return int(points[place]), (views[v],)


def _column_scores(weights: Array, X_columns: Array, Y_columns: Array) -> Array:
    """c, a and b of the points whose columns are given, (3, n_points)."""
    pairs = ((X_columns, Y_columns), (X_columns, X_columns), (Y_columns, Y_columns))
    return np.array([weights @ (one * other) for one, other in pairs])


class DrawnScores:
    """The scores of few points, drawn anew at each step.

    Parameters
    ----------
    views : pair of Deflation
        The views.
    n_candidates : int
        Number of points.
    rng : RandomState
        Draws them.
    """

    def __init__(self, views: Views, n_candidates: int, rng: np.random.RandomState) -> None:
        self.views, self.n_candidates, self.rng = views, n_candidates, rng

    def of(self, points: Array) -> PairScores:
        """Draw points, and compute their columns."""
        if self.n_candidates < len(points):
            points = np.sort(self.rng.choice(points, self.n_candidates, replace=False))
        weights = self.views[0].weights
        parts = [
            _column_scores(weights, *self.columns(points[part]))
            for part in blocks.row_blocks(len(points), 32.0 * len(weights))
        ]
        products, a, b = np.hstack(parts)
        return points, products, (a, b)

    def columns(self, points: Array) -> list[Array]:
        """Computed for each call."""
        return [view.columns(points) for view in self.views]

    def update(self, columns: list[Array], ratios: list[Array]) -> None:
        """Nothing is kept."""


class AllScores:
    """The scores of all points, updated from step to step; both kernel matrices are kept.

    Parameters
    ----------
    views : pair of Deflation
        The views, without any picks.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        self.weights = views[0].weights
        everything = np.arange(len(self.weights))
        # dsymv reads one triangle of a matrix in Fortran's order.
        self.matrices = [np.ascontiguousarray(view.kernel_columns(everything)).T for view in views]
        self.table = np.empty((3, len(everything)))
        self._compute(everything)
        self.fresh = self.table[1:].copy()

    def of(self, points: Array) -> PairScores:
        """All of the points."""
        stale = points[(self.table[1:, points] < STALE * self.fresh[:, points]).any(axis=0)]
        if len(stale):
            self._compute(stale)
            self.fresh[:, stale] = self.table[1:, stale]
        products, a, b = self.table[:, points]
        return points, products, (a, b)

    def columns(self, points: Array) -> list[Array]:
        """From the matrices that are kept."""
        bases = [view.V[: len(view.pivots)] for view in self.views]
        pairs = zip(bases, self.matrices, strict=True)
        return [K[:, points] - V.T @ V[:, points] for V, K in pairs]

    def update(self, columns: list[Array], ratios: list[Array]) -> None:
        """The formulas at the top of this module."""
        t, s = (self.weights * column for column in columns)
        (X_t, X_s), (Y_t, Y_s) = (self._images(v, (t, s)) for v in range(2))
        r_x, r_y = ratios
        products, a, b = self.table
        products -= r_y * X_s + r_x * Y_t - r_x * r_y * (t @ columns[1])
        a -= r_x * (2.0 * X_t - r_x * (t @ columns[0]))
        b -= r_y * (2.0 * Y_s - r_y * (s @ columns[1]))

    def _images(self, v: int, vectors: tuple[Array, Array]) -> list[Array]:
        """K^ u of one view for each vector u."""
        V = self.views[v].V[: len(self.views[v].pivots)]
        return [dsymv(1.0, self.matrices[v], u) - (V @ u) @ V if u.any() else u for u in vectors]

    def _compute(self, points: Array) -> None:
        """The scores of some points from their columns."""
        for start in range(0, len(points), PIECE):
            few = points[start : start + PIECE]
            self.table[:, few] = _column_scores(self.weights, *self.columns(few))


def _whitened(view: Deflation, weights: Array, alpha: float) -> tuple[Array, Array]:
    """Step 2: the whitened rows times the root of their weights, and the matrix P that whitens."""
    V = view.V[: len(view.pivots)]
    size = np.sqrt(np.sum((V * V) @ weights))
    A = ((V - (V @ weights)[:, None]) * np.sqrt(weights)).T
    if not len(V):
        return A, np.empty((0, 0))
    _, deviations, axes = svd(np.linalg.qr(A, mode="r"), full_matrices=False)
    kept = deviations > NO_DEVIATION * size
    P = axes[kept].T / np.sqrt(deviations[kept] ** 2 + alpha)
    return A @ P, P


def _view_axes(view: Deflation, weights: Array, axes: Array) -> ViewAxes:
    """Step 3 in terms of kernel functions; with R = V[:, picks], z(x) = R^{-T} k(x)."""
    picks = np.array(view.pivots, dtype=int)
    V = view.V[: len(picks)]
    intercept = -(V @ weights) @ axes
    coefficients = solve_triangular(np.triu(V[:, picks]), axes) if axes.size else axes
    return ViewAxes(picks, coefficients, intercept, V.T @ axes + intercept)


@constructor
class SparseKernelCCA(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    MultiOutputMixin,
    CallbackSupport,
    BaseEstimator,
):
    """Kernel canonical correlations in the span of few training pairs.

    Each of the arguments `kernel`, `gamma`, `degree`, `coef0` and `kernel_params` is one value
    for both views, or a pair of values (x, y).

    Parameters
    ----------
    n_components : int, default 10
        Number of canonical pairs.
    n_basis : int, default 100
        Number k of training pairs chosen, the only ones that ``transform`` needs.
    kernel : str, Kernel or callable, or a pair, default "rbf"
        As in `KernelMatchingPursuitClassifier`; positive semidefinite. With a linear kernel,
        columns far from zero should be centred first.
    gamma : {"scale", "auto"}, float or array, or a pair, default "scale"
        Coefficient of the rbf, laplacian and polynomial kernels; ``"scale"`` is that of each
        view's own rows.
        An array holds one for each feature: rbf, laplacian, chi2. A list or tuple is a pair.
    degree : float, or a pair, default 3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, or a pair, default 1
        Constant of the polynomial and cosine polynomial kernels.
    kernel_params : mapping, or a pair, optional
        Keyword arguments of a callable kernel.
    alpha : float, default 1e-3
        Ridge of the covariances of the coordinates, in units of the kernels. With 0 the
        correlations are those of the training rows without any shrinkage, close to 1 where
        `n_basis` is large.
    n_candidates : int, optional
        Pairs drawn at each step, of which the best is taken. None: all pairs if both kernel
        matrices fit in scikit-learn's ``working_memory``, else 59, of which the best is among the
        best 5 % of all with probability 0.95.
    error_tolerance : float, default 1.0
        Difference of the first pair of scores beyond which the views disagree, for `bound_`. The
        scores have about unit variance.
    delta : float, default 0.05
        One minus the confidence of the bound.
    random_state : int, RandomState or None, default None
        For pairs that are drawn.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_components_,)
        Regularised correlations of the training scores, decreasing.
    n_components_ : int
        Number of canonical pairs, below `n_components` where the views have fewer dimensions.
    n_basis_ : int
        Number of chosen pairs, below `n_basis` where the others lie in the span.
    stop_reason_ : {"n_basis", "rank", "callback", "interrupt"}
        Why no more pairs were chosen; ``"rank"``: the others lie in the span.
    support_ : ndarray of int of shape (n_basis_,)
        Chosen pairs in order.
    x_support_, y_support_ : ndarray of int
        The same for each view: a pair that is spanned in one view is chosen in the other alone.
    x_support_vectors_, y_support_vectors_ : {ndarray, CSR matrix}
        The chosen rows; absent for a precomputed kernel.
    x_dual_coef_, y_dual_coef_ : ndarray of shape (n_support, n_components_)
        Coefficients of the kernel functions at these rows.
    x_intercept_, y_intercept_ : ndarray of shape (n_components_,)
        What is added to centre the scores.
    x_kernel_, y_kernel_ : Kernel
        The kernels with their numbers resolved.
    bound_ : float
        Bound of theorem 4 on the probability that the first pair of scores differs by more than
        `error_tolerance`; above 1 it says nothing. Infinite where it is not defined.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    References
    ----------
    Z. Hussain and J. Shawe-Taylor, "Theory of matching pursuit", NIPS 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import SparseKernelCCA
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 500)
    >>> X = np.column_stack([np.sin(angle), np.cos(angle)]) + 0.1 * rng.normal(size=(500, 2))
    >>> Y = np.column_stack([np.sin(2 * angle), rng.normal(size=500)])
    >>> cca = SparseKernelCCA(n_components=2, n_basis=30).fit(X, Y)
    >>> x_scores, y_scores = cca.transform(X, Y)
    >>> x_scores.shape, bool(cca.correlations_[0] > 0.9)
    ((500, 2), True)
    """

    _takes_objects = True

    n_components: int = positional(default=10)
    n_basis: int = 100
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: Any = 3
    coef0: Any = 1
    kernel_params: Any = None
    alpha: float = 0.001
    n_candidates: int | None = None
    error_tolerance: float = 1.0
    delta: float = 0.05
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        """Sparse input is accepted, y is needed; a precomputed kernel of X makes it pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        kernel = self.kernel
        first = kernel[0] if isinstance(kernel, tuple | list) and kernel else kernel
        tags.input_tags.pairwise = is_precomputed(first)
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose pairs and find the canonical functions of the two views.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            First view; kernel values of shape (n_samples, n_samples) if precomputed.
        y : {array-like, CSR matrix} of shape (n_samples,) or (n_samples, n_targets)
            Second view, in the same way.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the pair twice, 0 as the pair removed.

        Returns
        -------
        self : SparseKernelCCA
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        if y is None:
            raise ValueError("SparseKernelCCA requires y to be passed, but the target y is None")
        X = read_data(self, X, accept_sparse="csr")
        y = self._second_view(y)
        check_consistent_length(X, y)
        weights = check_weights(sample_weight, X.shape[0])
        rows = np.flatnonzero(weights > 0)
        weights = weights[rows]
        views = (
            self._deflation("X", X, rows, weights),
            self._deflation("y", y, rows, weights),
        )
        self.n_targets_in_ = int(y.shape[1])
        with (
            self._watching(X, y, sample_weight, n_steps=int(self.n_basis)) as watcher,
            blocks.blas_threads(4.0 * len(rows) ** 2),
        ):
            self._fit_views(views, rows, watcher)
        return self

    def _fit_views(self, views: Views, rows: Array, watcher: Watcher | None) -> None:
        """Choose the pairs and find the axes."""
        numbers = int(self.n_components), float(self.alpha)

        def look(points: Array) -> str | None:
            def store(model: SparseKernelCCA) -> None:
                model._store(canonical_axes(views, points, *numbers, "n_basis"), views, rows)

            return None if watcher is None else watcher(store)

        watch = None if watcher is None else look
        scores = self._scores(views)
        axes = sparse_kernel_cca(views, scores, int(self.n_basis), *numbers, watch)
        self._store(axes, views, rows)
        self._warn_short()

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_integer("n_components", self.n_components)
        check_integer("n_basis", self.n_basis)
        check_integer("n_candidates", self.n_candidates, optional=True)
        check_real("alpha", self.alpha)
        check_real("error_tolerance", self.error_tolerance, above=True)
        check_real("delta", self.delta, below=1.0, above=True)
        for name in KERNEL_ARGUMENTS:
            value = getattr(self, name)
            if isinstance(value, tuple | list) and len(value) != 2:
                raise ValueError(f"{name} must be one value or a pair (x, y), got {value!r}")

    def _deflation(self, name: str, view: Any, rows: Array, weights: Array) -> Deflation:
        """The kernel matrix of one view, for the rows of positive weight."""
        place = 0 if name == "X" else 1
        given = {argument: getattr(self, argument) for argument in KERNEL_ARGUMENTS}
        arguments = {
            argument: value[place] if isinstance(value, tuple | list) else value
            for argument, value in given.items()
        }
        return Deflation(*kernel_and_rows(view, rows, weights, arguments, name), weights)

    def _scores(self, views: Views) -> Scores:
        """All scores, or those of drawn candidates."""
        m = len(views[0].weights)
        if self.n_candidates is None and blocks.fits(16.0 * m * m):
            return AllScores(views)
        rng = check_random_state(self.random_state)
        return DrawnScores(views, int(self.n_candidates or N_CANDIDATES_95), rng)

    def _store(self, axes: CanonicalAxes, views: Views, rows: Array) -> None:
        """Set the fitted attributes."""
        self.correlations_ = axes.correlations
        self.n_components_ = self._n_features_out = len(axes.correlations)
        self.support_ = rows[axes.points]
        self.n_basis_, self.stop_reason_ = len(axes.points), axes.reason
        for side, view, found in zip("xy", views, (axes.x, axes.y), strict=True):
            setattr(self, f"{side}_kernel_", view.kernel)
            setattr(self, f"{side}_support_", rows[found.picks])
            setattr(self, f"{side}_dual_coef_", found.coefficients)
            setattr(self, f"{side}_intercept_", found.intercept)
            vectors = f"{side}_support_vectors_"
            if not isinstance(view.kernel, Precomputed):
                setattr(self, vectors, as_objects(in_double(view.X[found.picks])))
            elif hasattr(self, vectors):
                delattr(self, vectors)
        self.bound_ = self._bound(axes, views[0].weights)

    def _bound(self, axes: CanonicalAxes, weights: Array) -> float:
        """Theorem 4 for the first canonical pair; a weight of 2 counts as two pairs."""
        m, k = round(float(weights.sum())), self.n_basis_
        if not self.n_components_:
            return np.inf
        wrong = np.abs(axes.x.scores[:, 0] - axes.y.scores[:, 0]) > self.error_tolerance
        t = max(0, round(float(weights @ wrong)) - int(wrong[axes.points].sum()))
        return float(cca_bound(m, k, t, delta=self.delta)) if k + t < m else np.inf

    def _warn_short(self) -> None:
        """Say that there are fewer points or pairs than were asked for."""
        found = {"n_basis": self.n_basis_, "n_components": self.n_components_}
        reasons = {
            "n_basis": "points were chosen: the others lie in their span to rounding",
            "n_components": "canonical pairs exist: the spans of the views have no more dimensions",
        }
        for name, number in found.items():
            if self.stop_reason_ in ("n_basis", "rank") and number < getattr(self, name):
                warn(
                    f"{name}={getattr(self, name)}, but {number} {reasons[name]}",
                    ConvergenceWarning,
                )

    def transform(self, X: Any, y: Any = None) -> Any:
        """Canonical scores of new rows.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            First view; kernel values between it and the training rows if precomputed.
        y : {array-like, CSR matrix} of shape (n_samples,) or (n_samples, n_targets), optional
            Second view, in the same way.

        Returns
        -------
        x_scores : ndarray of shape (n_samples, n_components_)
            In float64. If `y` is given, a pair with the scores of the second view.
        """
        check_is_fitted(self)
        X = read_data(self, X, reset=False, accept_sparse="csr")
        x_scores = self._view_scores("x", X)
        if y is None:
            return x_scores
        y = self._second_view(y)
        if y.shape[1] != self.n_targets_in_:
            raise ValueError(f"y has {y.shape[1]} columns, but {self.n_targets_in_} in fit")
        check_consistent_length(X, y)
        return x_scores, self._view_scores("y", y)

    def _second_view(self, y: Any) -> Any:
        """A valid table of the second view, or a column of objects."""
        pair = isinstance(self.kernel, tuple | list)
        if takes_objects(self.kernel[1] if pair else self.kernel):
            column = object_column(y)
            if column is not None:
                return column
        y = check_array(y, accept_sparse="csr", ensure_2d=False, input_name="y")
        return y[:, None] if y.ndim == 1 else y

    def _view_scores(self, side: str, rows: Any) -> Array:
        """The scores of one view."""
        kernel: Kernel = getattr(self, f"{side}_kernel_")
        precomputed = isinstance(kernel, Precomputed)
        centres = getattr(self, f"{side}_support_" if precomputed else f"{side}_support_vectors_")
        coefficients = getattr(self, f"{side}_dual_coef_")
        intercept = getattr(self, f"{side}_intercept_")
        return KernelExpansion(Atoms(kernel, centres), coefficients.T, intercept)(rows)

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit, and return the scores of both views.

        Parameters
        ----------
        X, y : {array-like, CSR matrix}
            The two views, as in `fit`.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        x_scores, y_scores : ndarray of shape (n_samples, n_components_)
            As ``fit(X, y).transform(X, y)``.
        """
        return self.fit(X, y, sample_weight).transform(X, y)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean over the canonical pairs of the correlation of their scores on these rows.

        Parameters
        ----------
        X, y : {array-like, CSR matrix}
            The two views of the rows, as in `transform`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        score : float
            At most 1. A pair one of whose scores is constant counts as 0.
        """
        x_scores, y_scores = self._pair(X, y)
        weights = check_weights(sample_weight, len(x_scores))
        return (
            float(np.mean(_correlations(x_scores, y_scores, weights)))
            if self.n_components_
            else 0.0
        )

    def _pair(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Scores of both views as arrays, whatever `set_output` asks of `transform`."""
        x_scores, y_scores = self.transform(X, y)
        return np.asarray(x_scores), np.asarray(y_scores)


def _correlations(one: Array, other: Array, weights: Array) -> Array:
    """Weighted correlation of each pair of columns, 0 where one is constant to rounding."""
    w = weights / weights.sum()
    deviations = [column - w @ column for column in (one, other)]
    covariances = w @ (deviations[0] * deviations[1])
    variances = [w @ deviation**2 for deviation in deviations]
    varies = np.all(
        [
            v > CONSTANT_SCORES * (w @ column**2)
            for v, column in zip(variances, (one, other), strict=True)
        ],
        axis=0,
    )
    safe = np.where(varies, variances[0] * variances[1], 1.0)
    return np.where(varies, covariances / np.sqrt(safe), 0.0)
