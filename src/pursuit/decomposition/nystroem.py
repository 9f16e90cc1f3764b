"""Greedy Nystroem features: inner products that approximate a kernel, from well-chosen landmarks.

C. Williams and M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 2001. The
landmarks i are chosen by a rule of ``greedy/deflation.py``, or with the targets by kernel matching
pursuit (Vincent and Bengio 2002, eq. 7).

===========  ===================  =======================================================
symbol       name in code         shape and meaning
===========  ===================  =======================================================
i            ``picks``            (k,) landmarks in order of choice
K[i, i]                           (k, k) kernel matrix of the landmarks
z(x)         ``transform``        (k,) K[i, i]^{-1/2} k_i(x)
===========  ===================  =======================================================

Steps.

1. Choose i.
2. The features are z(x) = K[i, i]^{-1/2} k_i(x); their inner products are
   K~ = K[:, i] K[i, i]^{-1} K[:, i]'.

Cost. That of the choice, and O(k^3) for the root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array

from pursuit._objects import in_double
from pursuit._typing import Array
from pursuit._validation import (
    Samples,
    check_choice,
    check_integer,
    read_data,
    signed_targets,
)
from pursuit.base.arrays import following, native
from pursuit.base.callbacks import Watcher
from pursuit.base.parameters import constructor, positional
from pursuit.decomposition._landmarks import (
    LandmarkProblem,
    LandmarkTransformer,
    check_definite,
)
from pursuit.dictionary import draw_candidates, n_candidate_rows, training_rows
from pursuit.greedy.deflation import Deflation, choose, listed_rule, selection_rule
from pursuit.greedy.device_deflation import deflation_of
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.greedy.multi_output import MultiOutputPursuit
from pursuit.greedy.squared_error import SquaredErrorPursuit
from pursuit.greedy.statistics import KernelStatistics, require_rows
from pursuit.kernels import Precomputed
from pursuit.linalg import blocks

__all__ = ["GreedyNystroem"]

# Eigenvalues of the landmarks' kernel matrix below this share of the largest count as so much.
SMALLEST_VARIANCE = 1e-12


@constructor
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
    gamma : {"scale", "auto"}, float or array of shape (n_features,), optional
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. None, as in
        scikit-learn: 1 / n_features, for chi2 1. ``"scale"`` is 1 / (n_features * Var(X)).
        An array holds one for each feature: rbf, laplacian, chi2.
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
    stop_reason_ : {"n_components", "rank", "callback", "interrupt"}
        Why no more landmarks were chosen; ``"rank"``: the others lie in the span.
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

    kernel: Any = positional(default="rbf")
    gamma: Any = None
    coef0: float | None = None
    degree: float | None = None
    kernel_params: Mapping[str, Any] | None = None
    n_components: int = 100
    random_state: Any = None
    n_jobs: int | None = None
    selection: Any = "rayleigh"
    n_candidates: int | float | None = None
    target_type: str = "auto"

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

    @following
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
        rows, Y = self._read(X, y)
        with (
            self._watching(X, y, sample_weight, n_steps=self.n_components) as watcher,
            blocks.at_most_threads(self.n_jobs),
        ):
            points = self._points(rows, sample_weight)
            if Y is None:
                picks, reason = self._unsupervised_picks(points, watcher)
            else:
                picks, reason = self._supervised_picks(points, Y[points.rows], watcher)
            self._warn_short(len(picks), reason)
            self._normalise(points, picks, reason)
        return self

    def fit_statistics(self, statistics: KernelStatistics) -> Self:
        """Choose landmarks by sums over rows and targets, among the vectors of the sums.

        Parameters
        ----------
        statistics : KernelStatistics
            Sums of the rows. The kernel and the vectors are theirs, and it stays as it is.

        Returns
        -------
        self : GreedyNystroem
            Fitted; the landmarks have no ``component_indices_``.

        Raises
        ------
        ValueError
            If `selection` is not ``"supervised"``, or the statistics hold no rows.
        """
        self._check_parameters()
        if not self._supervised:
            raise ValueError("sums over rows tell landmarks for selection='supervised' alone")
        if self.n_candidates is not None:
            raise ValueError("n_candidates has no meaning with statistics, which have vectors")
        require_rows(statistics)
        self.n_features_in_ = statistics.n_features_in_
        if hasattr(statistics, "feature_names_in_"):
            self.feature_names_in_ = statistics.feature_names_in_
        with blocks.at_most_threads(self.n_jobs):
            search = SquaredErrorPursuit(statistics.equations(), "prefit", [self.n_components])
            Z = statistics.dictionary.atoms.centres
            places = np.arange(Z.shape[0])
            points = LandmarkProblem(statistics.kernel_, Z, np.ones(len(places)), places)
            search.extend(self.n_components)
            picks, reason = self._completed(points, _picks(search))
            self._warn_short(len(picks), reason)
            self._normalise(points, picks, reason)
        del self.support_  # places among the vectors, not rows of the caller's
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
            return read_data(self, X, accept_sparse="csr"), None
        if y is None:
            raise ValueError(
                "selection='supervised' requires y to be passed, but the target y is None"
            )
        X, y = read_data(self, X, y, accept_sparse="csr", multi_output=True)
        kind = self.target_type
        if kind == "auto":
            kind = "class" if type_of_target(y) in ("binary", "multiclass") else "continuous"
        if kind == "class":
            classes, codes = np.unique(column_or_1d(y), return_inverse=True)
            return X, signed_targets(codes, max(len(classes), 2))
        Y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        return X, Y.reshape(len(Y), -1)

    def _unsupervised_picks(
        self, points: LandmarkProblem, watcher: Watcher | None
    ) -> tuple[Array, str]:
        """The points that the rule of ``deflation.py`` chooses, and why there are no more."""
        deflation = deflation_of(points.kernel, points.X, points.weights)

        def look(deflation: Deflation) -> str | None:
            return self._told(watcher, points, np.array(deflation.pivots, dtype=int))

        rule, watch = self._rule(deflation, points.rows), None if watcher is None else look
        reason = choose(deflation, rule, self.n_components, watch)
        check_definite(deflation)
        return np.array(deflation.pivots, dtype=int), reason

    def _told(self, watcher: Watcher | None, points: LandmarkProblem, picks: Array) -> str | None:
        """What those say who are told of the landmarks so far."""
        if watcher is None:
            return None
        return watcher(lambda model: model._normalise(points, picks, "n_components"))

    def _supervised_picks(
        self, points: LandmarkProblem, Y: Array, watcher: Watcher | None
    ) -> tuple[Array, str]:
        """The rows that pre-fitting kernel matching pursuit chooses, and why there are no more."""
        kernel, X, weights, rows = points
        number = n_candidate_rows(self.n_candidates, len(rows), self.n_components)
        few = number < len(rows) and not isinstance(kernel, Precomputed)
        candidates = draw_candidates(
            np.arange(len(rows)), number, self.random_state, X if few else None
        )
        dictionary = training_rows(kernel, X, candidates)
        search = make_pursuit(dictionary, Samples(X, Y, weights), [self.n_components], Method())

        def look(search: MultiOutputPursuit) -> str | None:
            return self._told(watcher, points, candidates[_picks(search)])

        search.extend(self.n_components, None if watcher is None else look)
        picks = candidates[_picks(search)]
        return (picks, search.stopped) if search.stopped else self._completed(points, picks)

    def _completed(self, points: LandmarkProblem, picks: Array) -> tuple[Array, str]:
        """The independent picks, and where these are too few the rows furthest from their span."""
        deflation = deflation_of(points.kernel, points.X, points.weights)
        choose(deflation, listed_rule(deflation, picks), len(picks))
        rng = check_random_state(self.random_state)
        rule = selection_rule(deflation, "residual", rng)
        reason = choose(deflation, rule, self.n_components)
        check_definite(deflation)
        return np.array(deflation.pivots, dtype=int), reason

    def _normalise(self, points: LandmarkProblem, picks: Array, reason: str) -> None:
        """The symmetric root of K^{-1} among the landmarks."""
        kernel, X, _, _ = points
        self.stop_reason_ = reason
        Z = in_double(X[picks])
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

    @native
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


def _picks(search: MultiOutputPursuit) -> Array:
    """The atoms that a pursuit with one basis has chosen."""
    return np.array(search.pursuits[0].pivots, dtype=int)
