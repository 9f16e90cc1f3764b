"""Reduced sets and reduced support vector machines, trained with a budget of vectors.

M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005, section 6,
whose equation numbers these are; C. Burges, "Simplified support vector decision rules", ICML 1996
(RS); Y. Lee and O. Mangasarian, "RSVM: Reduced support vector machines", SDM 2001.

Problem. Find f(x) = sum_j beta_j K(z_j, x) + b on N_z vectors z_j by one of four ways:

=========  ===========================  ===================================  ====================
name       vectors                      coefficients                         here
=========  ===========================  ===================================  ====================
RS         nearest to the SVM's         nearest to the SVM's normal (eq. 4)  `ReducedSetClassifier`
           normal (eq. 4, 35)
MRS        as RS                        largest margin (section 6.1)         ... "margin"
RSVM       random training rows         least 1/2 |beta|^2 + hinge           `ReducedSupportVector-
                                                                             Classifier`
MRSVM      random training rows         largest margin (section 6.2)         ... "margin"
=========  ===========================  ===================================  ====================

===========  =================  =========================================================
symbol       name in code       shape and meaning
===========  =================  =========================================================
x, y, C c    ``samples``        (n, d), (n, T) of +-1, and ``bounds`` (n,)
alpha y      ``signed``         (n, T) coefficients of the SVMs
z            ``vectors``        (N_z, d)
beta, b      ``coefficients``,  (N_z, T), (T,)
             ``intercept``
===========  =================  =========================================================

Steps of RS and MRS: train an SVM for each output; minimise |sum_i alpha_i y_i phi(x_i) -
sum_j beta_j phi(z_j)|^2 over z and beta (``reduction.py``); keep beta and the SVM's b, or solve
eq. 16-18 on these z (``svm_on_vectors.py``). Steps of RSVM and MRSVM: draw the z, solve the linear
SVM on the kernel values psi_z, or on the whitened psi_z.

With several classes each has its own vectors (``multi_class="ovr"``), as in the paper, or all
share them (``"shared"``), which minimises the sum over the classes.

Cost: that of the SVMs, then of ``reduction.py``; n N_z^2 for each step of the interior point.

Where we differ. RSVM's loss is the hinge and its constant is not penalised, as for the others;
Lee and Mangasarian square the hinge and penalise b.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from pursuit._objects import in_double
from pursuit._typing import Array
from pursuit._validation import Samples, check_choice, check_integer, check_real, refuse_not_finite
from pursuit._warnings import warn
from pursuit.base.arrays import following
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.estimators import ExpansionClassifier
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.dictionary import draw_candidates
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.geometry.unique_rows import equal_rows
from pursuit.kernels import Kernel, Linear, Precomputed, check_values, is_gaussian, split
from pursuit.linalg import blocks
from pursuit.linalg.memory import require_memory
from pursuit.optimize.svm import solve_margin
from pursuit.optimize.svm_on_vectors import solve_on_vectors
from pursuit.svm.from_sklearn import libsvm_rows
from pursuit.svm.reduction import Reduction, check_reducible, reduce_expansion

__all__ = ["ReducedSetClassifier", "ReducedSupportVectorClassifier", "support_vectors"]


class _Part(NamedTuple):
    """Vectors, with the coefficients and constants of the outputs that use them."""

    vectors: Any
    coefficients: Array
    intercept: Array


def support_vectors(kernel: Kernel, samples: Samples, C: float) -> tuple[Array, Array]:
    """Train an SVM for each output.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite.
    samples : Samples
        Rows of positive weight, targets +1 and -1 (n, T), weights.
    C : float
        Cost of a row of weight 1.

    Returns
    -------
    signed : ndarray of shape (n, T)
        alpha y.
    intercept : ndarray of shape (T,)
        b.
    """
    kernel, X = split(kernel, libsvm_rows(samples.X))
    Y, weights = samples.Y, samples.weights
    signed, intercept = np.zeros(Y.shape), np.zeros(Y.shape[1])
    gram = None
    if is_gaussian(kernel):
        svm = SVC(C=C, kernel="rbf", gamma=kernel.gamma, random_state=0)
    elif isinstance(kernel, Linear):
        svm = SVC(C=C, kernel="linear", random_state=0)
    else:
        svm = SVC(C=C, kernel="precomputed", random_state=0)
        gram = check_values(kernel, _gram(kernel, X))
    for t, y in enumerate(Y.T):
        svm.fit(X if gram is None else gram, y, sample_weight=weights)
        dual = svm.dual_coef_
        signed[svm.support_, t] = dual.toarray()[0] if sparse.issparse(dual) else dual[0]
        intercept[t] = svm.intercept_[0]
    return signed, intercept


def _gram(kernel: Kernel, X: Any) -> Array:
    """K(X, X), block by block."""
    n, prepared = X.shape[0], kernel.prepare(X)
    require_memory(
        8.0 * n * n,
        f"the kernel matrix of {n} rows",
        "take fewer rows, or the rbf or linear kernel, whose values are not kept",
    )
    gram = np.empty((n, n))
    for rows in blocks.row_blocks(n, 16.0 * n):
        gram[rows] = blocks.evaluate(lambda part: kernel.evaluate(part, prepared), X[rows], n)
    return gram


@constructor
class Cost:
    """Price of the hinge loss."""

    C: float = 1.0


@constructor
class _BudgetedClassifier(CallbackSupport, ExpansionClassifier, KernelParameters, Cost):
    """Base of classifiers whose outputs share one set of vectors or have one each."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Read the data, find the parts, put them together."""
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        budgets = self._budgets(samples.Y.shape[1])
        used = np.flatnonzero(samples.weights > 0)
        part = samples.take(used)
        kernel = self._resolved_kernel(part)
        if isinstance(kernel, Precomputed):
            raise ValueError(f"kernel='precomputed': {type(self).__name__} needs the rows")
        with self._watching(X, y, sample_weight) as watcher:
            parts = self._parts(kernel, part, budgets, used, watcher)
            self._store_parts(kernel, parts, part)
        return self

    def _store_parts(self, kernel: Kernel, parts: list[_Part], part: Samples) -> None:
        """Set the attributes of the expansion on the vectors of all parts."""
        n_outputs = part.Y.shape[1] // len(parts)
        atoms = Atoms(kernel, _stacked([part.vectors for part in parts]))
        coefficients = block_diag(*(part.coefficients.T.reshape(n_outputs, -1) for part in parts))
        intercept = np.concatenate([part.intercept for part in parts])
        self._store_expansion(
            KernelExpansion(atoms, coefficients, intercept), getattr(self, "_rows", None)
        )
        self._fit_temperature(part)

    def _check_parameters(self) -> None:
        check_real("C", self.C, above=True)

    def _parts(
        self,
        kernel: Kernel,
        samples: Samples,
        budgets: list[int],
        rows: Array,
        watcher: Watcher | None,
    ) -> list[_Part]:
        """One part for each budget."""
        raise NotImplementedError

    def _warn_short(self, n_found: int, why: str) -> None:
        warn(
            f"n_components={self.n_components!r}, but {n_found} vectors do: {why}",
            ConvergenceWarning,
        )


def _stacked(parts: list[Any]) -> Any:
    """Sets of vectors below each other, sparse where all are."""
    if len(parts) == 1:
        return parts[0]
    if all(sparse.issparse(part) for part in parts):
        return sparse.csr_matrix(sparse.vstack(parts))
    return np.vstack([part.toarray() if sparse.issparse(part) else part for part in parts])


def _columns(n_parts: int, n_outputs: int) -> list[slice]:
    """Outputs of each part: all, or one each."""
    each = n_outputs // n_parts
    return [slice(k * each, (k + 1) * each) for k in range(n_parts)]


def _with_margin(kernel: Kernel, vectors: Any, samples: Samples, Y: Array, C: float) -> _Part:
    """Coefficients of the largest margin on given vectors (eq. 16-18)."""
    Z = np.asarray(vectors.toarray() if sparse.issparse(vectors) else vectors, dtype=np.float64)
    if not len(Z):
        return _constant(samples, Y, C)
    found = solve_on_vectors(kernel, Z, samples.X, Y, C * samples.weights)
    return _Part(vectors, found.beta, found.intercept)


def _constant(samples: Samples, Y: Array, C: float) -> _Part:
    """The best constants, of outputs without any vector."""
    heavier = np.sign(samples.weights @ Y)
    return _Part(np.zeros((0, samples.X.shape[1])), np.zeros((0, Y.shape[1])), heavier)


def _nothing(signed: Array, samples: Samples) -> Reduction:
    """Machines of which no vector has been found yet."""
    T = signed.shape[1]
    Z, beta = np.zeros((0, samples.X.shape[1])), np.zeros((0, T))
    return Reduction(Z, beta, 1.0, np.ones(T), "n_components", 0, float((signed**2).sum()))


@constructor
class ReducedSetClassifier(ClassifierMixin, _BudgetedClassifier):
    """A support vector machine brought down to a budget of vectors, which need not be rows.

    Parameters
    ----------
    n_components : int or (one-vs-rest) sequence of int, default 20
        The largest number of vectors of the whole model. With ``multi_class="ovr"`` it is dealt
        to the classes, or each has the number that a sequence gives it.
    C : float, default 1.0
        Cost of a row inside the margin.
    kernel : str or Kernel, default "rbf"
        ``"rbf"``, ``"polynomial"`` (or ``"poly"``), ``"linear"``, ``"laplacian"``, ``"cosine"``,
        ``"cosine_polynomial"`` or such a value of `pursuit.kernels`.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default "scale"
        Coefficient of the rbf, laplacian and polynomial kernels.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default 3
        Degree of the polynomial kernels.
    coef0 : float, default 1
        Constant of the polynomial kernels.
    kernel_params : mapping, optional
        Refused: a callable has no derivative. Here so that all estimators take the same arguments.
    coefficients : {"projection", "margin"}, default "projection"
        ``"projection"``: those nearest to the machine's (RS). ``"margin"``: those that solve the
        machine's problem on the vectors found (MRS).
    multi_class : {"ovr", "shared"}, default "ovr"
        Vectors of each class against the rest, or one set for all.
    class_weight : mapping, "balanced" or None, default None
        As in scikit-learn.
    tol : float, default 1e-3
        Relative error in the feature space at which fewer vectors do.
    max_iter : int, default 100
        Steps of the joint search for the vectors. It ends sooner where they would gain little; the
        more are allowed the less counts as little.

    Attributes
    ----------
    classes_ : ndarray
        Class labels.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_components_, n_features)
        The vectors.
    dual_coef_ : ndarray of shape (n_outputs, n_components_)
        Their coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        Constants.
    n_components_ : int
        Number of vectors.
    n_support_vectors_ : int
        Number of distinct rows that are support vectors of the full machine.
    relative_error_ : float
        Error in the feature space, relative to the norm of all classes' machines.
    relative_errors_ : ndarray of shape (n_outputs,)
        That of each output's machine.
    stop_reasons_ : list of str
        Why no more vectors were taken, one a set: ``"exact"``: no more than the budget are
        distinct; ``"tol"``; ``"span"``: fewer span all; ``"n_components"``; ``"callback"``;
        ``"interrupt"``.
    temperature_ : float
        Temperature behind ``predict_proba``.
    kernel_ : Kernel
        The kernel with its numbers.
    n_iter_ : int
        Steps of the joint search, the largest of the sets.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    pursuit.compress : For a machine of scikit-learn that is fitted already.

    References
    ----------
    C. Burges, "Simplified support vector decision rules", ICML 1996.
    M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import ReducedSetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReducedSetClassifier(9, C=10.0, coefficients="margin").fit(X, y)
    >>> model.n_components_, bool(model.score(X, y) > 0.95)
    (9, True)
    """

    n_components: Any = positional(20)
    coefficients: str = "projection"
    multi_class: str = "ovr"
    class_weight: Mapping[Any, float] | str | None = None
    tol: float = 1e-3
    max_iter: int = 100

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine and reduce it.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : ReducedSetClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        return self._fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("coefficients", self.coefficients, ("projection", "margin"))
        check_real("tol", self.tol)
        check_integer("max_iter", self.max_iter, 0)

    def _parts(
        self,
        kernel: Kernel,
        samples: Samples,
        budgets: list[int],
        rows: Array,
        watcher: Watcher | None,
    ) -> list[_Part]:
        check_reducible(kernel)
        signed, intercept = support_vectors(kernel, samples, self.C)
        self.n_support_vectors_ = int(signed.any(axis=1).sum())
        columns = _columns(len(budgets), len(intercept))
        found: list[Reduction] = []

        def parts(reductions: list[Reduction]) -> list[_Part]:
            return [
                self._part(kernel, reduced, samples, outputs, intercept)
                for reduced, outputs in zip(reductions, columns, strict=True)
            ]

        def look(find: Callable[[], Reduction]) -> str | None:
            def store(model: ReducedSetClassifier) -> None:
                later = [_nothing(signed[:, outputs], samples) for outputs in columns]
                reductions = [*found, find(), *later[len(found) + 1 :]]
                model._store_parts(kernel, parts(reductions), samples)
                model._report(reductions)

            return None if watcher is None else watcher(store)

        for budget, outputs in zip(budgets, columns, strict=True):
            reduced = reduce_expansion(
                kernel,
                samples.X,
                signed[:, outputs],
                budget,
                tol=self.tol,
                max_iter=self.max_iter,
                watch=None if watcher is None else look,
            )
            found.append(reduced)
        self._report(found)
        return parts(found)

    def _part(
        self, kernel: Kernel, reduced: Reduction, samples: Samples, outputs: slice, b: Array
    ) -> _Part:
        """The reduced machines of some outputs, with their coefficients."""
        if self.coefficients == "margin":
            return _with_margin(kernel, reduced.vectors, samples, samples.Y[:, outputs], self.C)
        return _Part(reduced.vectors, reduced.coefficients, b[outputs])

    def _report(self, found: list[Reduction]) -> None:
        """Set the attributes that tell how near the reduced machines are."""
        norms = np.array([one.squared_norm for one in found])
        errors = np.array([one.relative_error for one in found])
        total = float(norms.sum())
        self.relative_error_ = float(np.sqrt(errors**2 @ norms / total)) if total > 0 else 0.0
        self.relative_errors_ = np.concatenate([one.relative_errors for one in found])
        self.stop_reasons_ = [one.stop_reason for one in found]
        self.n_iter_ = max(1, *(one.n_iter for one in found))


@constructor
class ReducedSupportVectorClassifier(ClassifierMixin, _BudgetedClassifier):
    """A support vector machine on a random subset of the rows.

    Parameters
    ----------
    n_components : int or (one-vs-rest) sequence of int, default 20
        The number of rows that are drawn for the whole model. With ``multi_class="ovr"`` it is
        dealt to the classes, or each has the number that a sequence gives it.
    C : float, default 1.0
        Cost of a row inside the margin.
    kernel : str, Kernel or callable, default "rbf"
        As in `KernelMatchingPursuitClassifier`, without ``"precomputed"``; positive semidefinite
        for ``regularizer="margin"``.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default "scale"
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default 3
        Degree of the polynomial kernels.
    coef0 : float, default 1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel.
    regularizer : {"coefficients", "margin"}, default "coefficients"
        What stands beside the hinge loss: 1/2 |beta|^2 (RSVM), or 1/2 beta'K beta, whose inverse
        root is the margin (MRSVM).
    multi_class : {"ovr", "shared"}, default "ovr"
        Rows drawn for each class against the rest, or one draw for all.
    class_weight : mapping, "balanced" or None, default None
        As in scikit-learn.
    random_state : int, RandomState or None, default None
        For the draw.

    Attributes
    ----------
    classes_ : ndarray
        Class labels.
    support_ : ndarray of int of shape (n_components_,)
        The rows drawn.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_components_, n_features)
        The same as vectors.
    dual_coef_ : ndarray of shape (n_outputs, n_components_)
        Their coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        Constants.
    n_components_ : int
        Number of vectors.
    temperature_ : float
        Temperature behind ``predict_proba``.
    kernel_ : Kernel
        The kernel with its numbers.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    References
    ----------
    Y. Lee and O. Mangasarian, "RSVM: Reduced support vector machines", SDM 2001.
    M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import ReducedSupportVectorClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ReducedSupportVectorClassifier(
    ...     30, C=10.0, regularizer="margin", random_state=0
    ... ).fit(X, y)
    >>> model.n_components_, bool(model.score(X, y) > 0.95)
    (30, True)
    """

    _takes_objects = True

    n_components: Any = positional(20)
    regularizer: str = "coefficients"
    multi_class: str = "ovr"
    class_weight: Mapping[Any, float] | str | None = None
    random_state: Any = None

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw rows and train on them.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice in the loss, 0 as the row removed; rows are drawn
            without regard to their weights.

        Returns
        -------
        self : ReducedSupportVectorClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        return self._fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("regularizer", self.regularizer, ("coefficients", "margin"))

    def _parts(
        self,
        kernel: Kernel,
        samples: Samples,
        budgets: list[int],
        rows: Array,
        watcher: Watcher | None,
    ) -> list[_Part]:
        rng = check_random_state(self.random_state)
        distinct = equal_rows(samples.X)[0]
        if max(budgets) > len(distinct):
            self._warn_short(len(distinct), "there are no more distinct rows of positive weight")
        parts, drawn = [], []
        for budget, outputs in zip(
            budgets, _columns(len(budgets), samples.Y.shape[1]), strict=True
        ):
            chosen = draw_candidates(distinct, budget, rng)
            drawn.append(rows[chosen])
            Z = in_double(samples.X[chosen])
            solve = _with_margin if self.regularizer == "margin" else _with_coefficients
            parts.append(solve(kernel, Z, samples, samples.Y[:, outputs], self.C))
        self._rows = np.concatenate(drawn)
        return parts


def _with_coefficients(kernel: Kernel, vectors: Any, samples: Samples, Y: Array, C: float) -> _Part:
    """Coefficients of least 1/2 |beta|^2 + hinge: a linear SVM on the kernel values."""
    if not vectors.shape[0]:
        return _constant(samples, Y, C)
    atoms = Atoms(kernel, vectors)
    values = np.empty((samples.X.shape[0], len(atoms)))
    for rows in blocks.row_blocks(len(values), 16.0 * len(atoms)):
        values[rows] = blocks.evaluate(atoms.functions, samples.X[rows], len(atoms))
    if not np.isfinite(values).all():
        refuse_not_finite(values, 0)
    found = [solve_margin(values, y, C * samples.weights) for y in Y.T]
    coefficients = np.stack([one.weights for one in found], axis=1)
    return _Part(vectors, coefficients, np.array([one.bias for one in found]))
