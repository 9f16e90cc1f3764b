"""Compress a fitted kernel machine: the same predictions from few vectors.

Problem. A machine of ``from_sklearn.py`` computes T functions f_t = Psi_t + b_t on its own
vectors, often thousands. The reduced set method (``reduction.py``) finds n vectors, shared by all
T functions, and coefficients for which the functions' parts Psi_t change least in the feature
space; predictions follow from the T values as in the original, votes of pairs of classes included.

With |Psi~ - Psi| the error in that space, no value moves by more than |Psi~ - Psi| sqrt(K(x, x)).

What is nearest in the feature space need not be nearest where the data are. Given rows, the
functions may be fitted to these:

- ``refit="move"``: over the vectors too, so that they come nearest to the original's values on the
  rows, or on rows drawn around the machine's vectors where none are given
  (``moved_expansion.py``);
- ``refit="least_squares"``: over beta and b, sum_i |f_t(x_i) - beta_t'k(x_i) - b_t|^2 with f the
  *original's* values, k(x) the kernel values with the vectors;
- ``refit="margin"``: over beta and b, 1/2 beta'K beta + C sum_i c_i hinge_i on (X, y), which is the
  machine's own problem on the vectors found (``svm_on_vectors.py``; Wu et al. 2005, section 6.1),
  for each pair of classes on its rows.

Where we differ. A regressor's functions count by their relative errors, so that the units of its
targets do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import get_tags
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from pursuit._typing import Array
from pursuit._validation import (
    Samples,
    check_choice,
    check_integer,
    check_real,
    check_weights,
    in_range,
    read_data,
    summed,
)
from pursuit._warnings import warn
from pursuit.base.arrays import following, through_host
from pursuit.base.estimators import ExpansionEstimator, ExpansionRegressor
from pursuit.base.parameters import constructor, positional
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.predictor import Answers, Novelty
from pursuit.kernels import RBF, Kernel
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_upper
from pursuit.optimize.svm_on_vectors import features, solve_on_vectors, whitened
from pursuit.svm.from_sklearn import (
    KernelModel,
    Pairs,
    libsvm_rows,
    read_kernel_model,
)
from pursuit.svm.moved_expansion import move_expansion
from pursuit.svm.reduction import Reduction, reduce_expansion

__all__ = ["CompressedClassifier", "CompressedOutlierDetector", "CompressedRegressor", "compress"]

# A change of predictions above this share of their standard deviation leaves them little worth.
WORTHLESS = 0.5
# Coordinates of all vectors up to which refit="auto" moves them: L-BFGS keeps forty times as many.
MOST_MOVED = 2_000_000
# Vectors of a model at which its predictions are compared.
N_CHECKED = 1000


def compress(
    estimator: Any,
    n_components: int,
    X: Any = None,
    y: Any = None,
    *,
    refit: str | None = "auto",
    tol: float = 1e-3,
    max_iter: int = 100,
) -> Any:
    """Make a fitted kernel machine small.

    Parameters
    ----------
    estimator : estimator
        A fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge or GaussianProcessRegressor of
        scikit-learn, or a Pipeline that ends in one. Its kernel must be linear, poly, rbf,
        laplacian or cosine by name; that of a Gaussian process RBF or ConstantKernel * RBF, with or
        without a WhiteKernel added.
    n_components : int
        The largest number of vectors.
    X : {array-like, CSR matrix} of shape (n_samples, n_features), optional
        Rows to measure the change of the predictions on, and to fit to.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Their labels or targets: to measure the scores on, and to refit the margin on.
    refit : {"auto", None, "move", "least_squares", "margin"}, default="auto"
        None: the vectors and coefficients that are nearest in the feature space. ``"move"``: those,
        with their constants, that come nearest to the *original's* decision values, or predictions,
        on X and at its own vectors; without X on rows drawn around its vectors. The constant of an
        outlier detector stays. ``"least_squares"``: the vectors of the feature space with the
        coefficients and constants that come nearest to these values on X. ``"margin"`` (SVC only):
        with the coefficients that solve the machine's own problem, with its C and class weights, on
        (X, y). ``"auto"``: None without X; with it ``"move"`` for the rbf kernel, if the vectors
        have no more than 2 million coordinates, and for others ``"least_squares"`` for a regressor,
        else None.
    tol : float, default 1e-3
        Relative error in the feature space at which fewer vectors do.
    max_iter : int, default 100
        Steps of the joint search for the vectors. It ends sooner where they would gain little; the
        more are allowed the less counts as little.

    Returns
    -------
    small : CompressedClassifier, CompressedRegressor, CompressedOutlierDetector or Pipeline
        Fitted. A Pipeline shares the steps before the last with the original.

    Raises
    ------
    ValueError
        If the machine, its kernel or a parameter is none of these.

    Notes
    -----
    A compressed classifier has no ``predict_proba``, even where the original was trained with
    ``probability=True``: what scikit-learn says of these probabilities is being withdrawn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> from pursuit import compress
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(C=10).fit(X[:900], y[:900])
    >>> small = compress(svc, 60, X[:900], y[:900])
    >>> len(svc.support_) > 400, small.n_components_
    (True, 60)
    >>> bool(small.score(X[900:], y[900:]) > svc.score(X[900:], y[900:]) - 0.02)
    True
    """
    if isinstance(estimator, Pipeline):
        *before, (name, last) = estimator.steps
        if before and X is not None:
            X = estimator[:-1].transform(X)
        settings: dict[str, Any] = {"refit": refit, "tol": tol, "max_iter": max_iter}
        return Pipeline([*before, (name, compress(last, n_components, X, y, **settings))])
    X = libsvm_rows(X)
    machine = read_kernel_model(estimator)
    small = _CLASSES[machine.task](
        n_components=n_components, refit=refit, tol=tol, max_iter=max_iter
    )
    small._check_parameters()
    small._adopt(estimator, machine, X, y)
    return small


def _rows(X: Any, rows: Array) -> Any:
    """Some samples of a data frame or a matrix."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


@constructor
class _Compressed(ExpansionEstimator):
    """Base of the compressed machines."""

    estimator: Any = positional(None)
    n_components: int = positional(50)
    refit: str | None = "auto"
    tol: float = 1e-3
    max_iter: int = 100

    _equal: ClassVar[bool] = False
    _free_constant: ClassVar[bool] = True
    _refits: ClassVar[tuple[str | None, ...]] = ("auto", None, "least_squares", "move")
    _refit_without_moves: ClassVar[str | None] = None

    def _default(self) -> Any:
        """The machine where none is given."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components)
        check_real("tol", self.tol)
        check_integer("max_iter", self.max_iter, 0)
        check_choice("refit", self.refit, self._refits)

    def _fit_and_compress(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        X = summed(X if hasattr(X, "shape") else np.asarray(X))
        original = self._default() if self.estimator is None else clone(self.estimator)
        if getattr(original, "random_state", 0) is None:
            original.random_state = 0  # LIBSVM would draw its seed from NumPy's global state
        X, arguments = libsvm_rows(X), {}
        if sample_weight is not None:
            if not has_fit_parameter(original, "sample_weight"):
                name = type(original).__name__
                raise ValueError(f"sample_weight: {name} does not take it")
            weights = check_weights(sample_weight, X.shape[0])
            if not weights.all():
                used = np.flatnonzero(weights)
                X, weights = _rows(X, used), weights[used]
                y = None if y is None else np.asarray(y)[used]
            arguments["sample_weight"] = sample_weight = weights
        in_range(X, "X", fits=True)
        with np.errstate(over="ignore", invalid="ignore"):  # of the variance, under gamma="scale"
            original.fit(X, y, **arguments)
        machine = read_kernel_model(original)
        if not isinstance(self, _CLASSES[machine.task]):
            raise ValueError(f"estimator: {type(original).__name__} is a {machine.task}")
        self._adopt(original, machine, X, y, sample_weight)
        return self

    def _adopt(
        self, original: Any, machine: KernelModel, X: Any, y: Any, sample_weight: Any = None
    ) -> None:
        """Take the place of a fitted machine."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))
        refit = self._chosen_refit(machine.kernel, X is not None)
        if refit in ("least_squares", "margin") and X is None:
            raise ValueError(f"refit={self.refit!r} needs X")
        self._take_form(original, machine)
        samples = None if X is None else self._with_values(machine, X, sample_weight)
        found, intercept = self._reduced(machine, samples, refit)
        self.relative_error_ = found.relative_error
        self.relative_errors_ = found.relative_errors
        self.stop_reason_, self.n_iter_ = found.stop_reason, found.n_iter
        atoms = Atoms(machine.kernel, found.vectors)
        self._store_expansion(KernelExpansion(atoms, found.coefficients.T.copy(), intercept))
        if samples is not None:
            if refit in ("least_squares", "margin") and len(atoms):
                coefficients, intercept = self._refitted(original, machine, samples, y)
                self._store_expansion(KernelExpansion(atoms, coefficients.T.copy(), intercept))
            self._compare(original, samples, y)
        if refit is None or X is None:
            self._warn_of_change(machine)

    def _with_values(self, machine: KernelModel, X: Any, sample_weight: Any) -> Samples:
        """Checked rows, the machine's values there, and weights."""
        rows = read_data(self, X, reset=False, accept_sparse="csr")
        return Samples(rows, machine.functions(rows), check_weights(sample_weight, rows.shape[0]))

    def _reduced(
        self, machine: KernelModel, samples: Samples | None, refit: str | None
    ) -> tuple[Reduction, Array]:
        """Few vectors with their coefficients and constants."""
        settings: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        settings["equal"] = self._equal
        if refit == "move":
            return move_expansion(
                machine, self.n_components, samples, free_constant=self._free_constant, **settings
            )
        found = reduce_expansion(
            machine.kernel, machine.vectors, machine.coefficients, self.n_components, **settings
        )
        return found, machine.intercept

    def _chosen_refit(self, kernel: Kernel, has_rows: bool) -> str | None:
        """What ``refit="auto"`` means."""
        if self.refit != "auto":
            return self.refit
        if not has_rows:
            return None
        moves = isinstance(kernel, RBF) and self.n_components * self.n_features_in_ <= MOST_MOVED
        return "move" if moves else self._refit_without_moves

    def _warn_of_change(self, machine: KernelModel) -> None:
        """Say so where the coefficients nearest in the feature space predict something else."""

    def _take_form(self, original: Any, machine: KernelModel) -> None:
        """Keep what turns values into predictions."""

    def _refitted(
        self, original: Any, machine: KernelModel, samples: Samples, y: Any
    ) -> tuple[Array, Array]:
        """Coefficients (n, T) and constants nearest to the original's values on rows."""
        atoms, (X, values, weights, _) = self.expansion_.atoms, samples
        Z = atoms.centres
        factor = whitened(machine.kernel, np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z))
        phi = np.ones((X.shape[0], len(atoms) + 1))
        for rows in blocks.row_blocks(X.shape[0], 16.0 * len(atoms)):
            part = blocks.evaluate(atoms.functions, X[rows], len(atoms))
            phi[rows, :-1] = features(part, factor)
        root = np.sqrt(weights)[:, None]
        solution = np.linalg.lstsq(root * phi, root * values, rcond=None)[0]
        return solve_upper(factor, solution[:-1]), solution[-1]

    def _compare(self, original: Any, samples: Samples, y: Any) -> None:
        """Measure what changed on given rows."""
        predicted = self._answers().prediction
        before, after = predicted(samples.Y), predicted(self.expansion_(samples.X))
        self.prediction_change_ = self._change(before, after)
        if y is not None and hasattr(original, "score"):
            self.scores_ = self._score(y, before), self._score(y, after)

    def _score(self, y: Any, predicted: Array) -> float:
        """What ``score`` gives for these predictions."""
        return float(accuracy_score(y, predicted))

    def _change(self, before: Array, after: Array) -> float:
        """Share of the predictions that differ."""
        return float(np.mean(before != after))


class CompressedClassifier(ClassifierMixin, _Compressed):
    """A support vector classifier on few vectors.

    ``fit`` trains the machine and compresses it; `compress` takes one that is fitted already.

    Parameters
    ----------
    estimator : estimator, optional
        The machine, of a class that `compress` takes. None: ``SVC()``.
    n_components : int, default 50
        The largest number of vectors.
    refit : {"auto", None, "move", "least_squares", "margin"}, default="auto"
        How vectors and coefficients are fitted to the rows, as in `compress`.
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
        The vectors, shared by all functions.
    dual_coef_ : ndarray of shape (n_functions, n_components_)
        Their coefficients in each function.
    intercept_ : ndarray of shape (n_functions,)
        The functions' constants.
    n_components_ : int
        Number of vectors.
    kernel_ : Kernel
        The kernel with its numbers.
    relative_error_ : float
        Error of all functions together in the feature space, relative to their norm; before
        coefficients are refitted to given vectors.
    relative_errors_ : ndarray of shape (n_functions,)
        That of each function.
    prediction_change_ : float
        On the rows given: the share of the predictions that differ from the original's.
    scores_ : tuple of float
        On rows with targets: the ``score`` of the original, and of this model.
    stop_reason_ : str
        ``"exact"``: the machine has no more than `n_components` distinct vectors; ``"tol"``: fewer
        reach `tol`; ``"span"``: fewer span all functions; ``"n_components"``.
    n_iter_ : int
        Steps of the joint search.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if the machine had them.

    See Also
    --------
    compress : For a machine that is fitted, or a Pipeline.

    References
    ----------
    C. Burges, "Simplified support vector decision rules", ICML 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from pursuit import CompressedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CompressedClassifier(SVC(C=10), n_components=8).fit(X, y)
    >>> model.n_components_, bool(model.score(X, y) > 0.95)
    (8, True)
    """

    classes_: Array

    _refits = ("auto", None, "least_squares", "move", "margin")

    def _default(self) -> Any:
        return SVC()

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine and compress it.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, for the machine.

        Returns
        -------
        self : CompressedClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        return self._fit_and_compress(X, y, sample_weight)

    def _take_form(self, original: Any, machine: KernelModel) -> None:
        self.classes_ = original.classes_
        self._one_a_class = original.decision_function_shape == "ovr"
        self._break_ties = bool(original.break_ties)

    @through_host
    def decision_function(self, X: Any) -> Array:
        """Decision values, in the shape of the original's.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            For two classes one value, positive for ``classes_[1]``; for more, votes with ties
            broken by the values, or with ``decision_function_shape="ovo"`` one value a pair of
            classes, positive for the first of the pair.
        """
        return self._decided(X)

    @through_host
    def predict(self, X: Any) -> Array:
        """Class labels: by the votes of the pairs, as the original.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        return self._predicted(X)

    def _answers(self) -> Answers:
        """Votes of the pairs."""
        return Pairs(self.classes_, self._one_a_class, self._break_ties)

    def _refitted(
        self, original: Any, machine: KernelModel, samples: Samples, y: Any
    ) -> tuple[Array, Array]:
        if self.refit != "margin":
            return super()._refitted(original, machine, samples, y)
        if not isinstance(original, SVC):
            name = type(original).__name__
            raise ValueError(f"refit='margin' is for an SVC, whose C it needs, got {name}")
        if y is None:
            raise ValueError("refit='margin' needs y")
        X, _, weights, _ = samples
        codes = self._codes(y, X.shape[0])
        bounds = original.C * weights * np.asarray(original.class_weight_)[codes]
        Z = self.expansion_.atoms.centres
        Z = Z.toarray() if hasattr(Z, "toarray") else Z
        solutions = [
            solve_on_vectors(machine.kernel, Z, X[rows], signs[:, None], bounds[rows])
            for rows, signs in _pairs(np.where(weights > 0, codes, -1), len(self.classes_))
        ]
        coefficients = np.hstack([solution.beta for solution in solutions])
        return coefficients, np.concatenate([solution.intercept for solution in solutions])

    def _codes(self, y: Any, n_rows: int) -> Array:
        """Index of each row's class."""
        y = column_or_1d(y)
        if len(y) != n_rows:
            raise ValueError(f"X has {n_rows} rows, but y has {len(y)}")
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"y has the label {y[unknown][0]}, which the estimator does not know")
        return np.asarray(np.searchsorted(self.classes_, y))


def _pairs(codes: Array, n_classes: int) -> Iterator[tuple[Array, Array]]:
    """Rows and signs of each pair's problem.

    The sign is positive for the second of two classes, and for the first of a pair among more.
    """
    for p, q in combinations(range(n_classes), 2):
        rows = np.flatnonzero((codes == p) | (codes == q))
        positive = q if n_classes == 2 else p
        yield rows, np.where(codes[rows] == positive, 1.0, -1.0)


class CompressedRegressor(RegressorMixin, _Compressed, ExpansionRegressor):
    """A kernel regressor on few vectors.

    ``fit`` trains the machine and compresses it; `compress` takes one that is fitted already.

    Parameters
    ----------
    estimator : estimator, optional
        The machine, of a class that `compress` takes. None: ``SVR()``.
    n_components : int, default 50
        The largest number of vectors.
    refit : {"auto", None, "move", "least_squares"}, default="auto"
        How vectors and coefficients are fitted to the rows, as in `compress`.
    tol : float, default 1e-3
        Relative error in the feature space at which fewer vectors do.
    max_iter : int, default 100
        Steps of the joint search for the vectors. It ends sooner where they would gain little; the
        more are allowed the less counts as little.

    Attributes
    ----------
    support_vectors_ : {ndarray, CSR matrix} of shape (n_components_, n_features)
        The vectors, shared by all functions.
    dual_coef_ : ndarray of shape (n_functions, n_components_)
        Their coefficients in each function.
    intercept_ : ndarray of shape (n_functions,)
        The functions' constants.
    n_components_ : int
        Number of vectors.
    kernel_ : Kernel
        The kernel with its numbers.
    relative_error_ : float
        Error of all functions together in the feature space, relative to their norm; before
        coefficients are refitted to given vectors.
    relative_errors_ : ndarray of shape (n_functions,)
        That of each function.
    prediction_change_ : float
        On the rows given: the root mean square change of the predictions.
    scores_ : tuple of float
        On rows with targets: the ``score`` of the original, and of this model.
    stop_reason_ : str
        ``"exact"``: the machine has no more than `n_components` distinct vectors; ``"tol"``: fewer
        reach `tol`; ``"span"``: fewer span all functions; ``"n_components"``.
    n_iter_ : int
        Steps of the joint search.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if the machine had them.

    See Also
    --------
    compress : For a machine that is fitted, or a Pipeline.

    References
    ----------
    C. Burges, "Simplified support vector decision rules", ICML 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from pursuit import CompressedRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> ridge = KernelRidge(kernel="rbf", gamma=1.0, alpha=0.01)
    >>> model = CompressedRegressor(ridge, n_components=10).fit(X, np.sin(X[:, 0]))
    >>> model.n_components_ <= 10, bool(model.score(X, np.sin(X[:, 0])) > 0.999)
    (True, True)
    """

    _equal = True
    _refit_without_moves = "least_squares"

    def __sklearn_tags__(self) -> Any:
        """Several targets where the machine takes them."""
        tags = super().__sklearn_tags__()
        machine = get_tags(self._default() if self.estimator is None else self.estimator)
        tags.target_tags.multi_output = machine.target_tags.multi_output
        tags.input_tags.sparse = machine.input_tags.sparse
        return tags

    def _default(self) -> Any:
        return SVR()

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine and compress it.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, for a machine that takes them.

        Returns
        -------
        self : CompressedRegressor
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        return self._fit_and_compress(X, y, sample_weight)

    def _take_form(self, original: Any, machine: KernelModel) -> None:
        self._one_dimensional = machine.one_dimensional

    def _score(self, y: Any, predicted: Array) -> float:
        return float(r2_score(y, predicted))

    def _warn_of_change(self, machine: KernelModel) -> None:
        rows = machine.vectors[:: max(1, machine.vectors.shape[0] // N_CHECKED)]
        before = machine.functions(rows)
        spread = before.std(axis=0)
        change = np.sqrt(np.square(before - self.expansion_(rows)).mean(axis=0))
        if (change > WORTHLESS * spread).any():
            t = int(np.argmax(change - WORTHLESS * spread))
            warn(
                f"n_components={self.n_components}: at the model's own vectors the predictions "
                f"change by {change[t]:.3g} where they vary by {spread[t]:.3g} (relative error in "
                f"the feature space {self.relative_error_:.3g}): give X, or allow more vectors",
                ConvergenceWarning,
            )

    def _change(self, before: Array, after: Array) -> float:
        """Root mean square difference."""
        return float(np.sqrt(np.mean(np.square(before - after))))


class CompressedOutlierDetector(OutlierMixin, _Compressed):
    """A one-class support vector machine on few vectors, an outlier detector.

    ``fit`` trains the machine and compresses it; `compress` takes one that is fitted already.

    Parameters
    ----------
    estimator : estimator, optional
        The machine, of a class that `compress` takes. None: ``OneClassSVM()``.
    n_components : int, default 50
        The largest number of vectors.
    refit : {"auto", None, "move", "least_squares"}, default="auto"
        How vectors and coefficients are fitted to the rows, as in `compress`.
    tol : float, default 1e-3
        Relative error in the feature space at which fewer vectors do.
    max_iter : int, default 100
        Steps of the joint search for the vectors. It ends sooner where they would gain little; the
        more are allowed the less counts as little.

    Attributes
    ----------
    offset_ : ndarray of shape (1,)
        ``score_samples`` less ``decision_function``.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_components_, n_features)
        The vectors, shared by all functions.
    dual_coef_ : ndarray of shape (n_functions, n_components_)
        Their coefficients in each function.
    intercept_ : ndarray of shape (n_functions,)
        The functions' constants.
    n_components_ : int
        Number of vectors.
    kernel_ : Kernel
        The kernel with its numbers.
    relative_error_ : float
        Error of all functions together in the feature space, relative to their norm; before
        coefficients are refitted to given vectors.
    relative_errors_ : ndarray of shape (n_functions,)
        That of each function.
    prediction_change_ : float
        On the rows given: the share of the predictions that differ from the original's.
    stop_reason_ : str
        ``"exact"``: the machine has no more than `n_components` distinct vectors; ``"tol"``: fewer
        reach `tol`; ``"span"``: fewer span all functions; ``"n_components"``.
    n_iter_ : int
        Steps of the joint search.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if the machine had them.

    See Also
    --------
    compress : For a machine that is fitted, or a Pipeline.

    References
    ----------
    C. Burges, "Simplified support vector decision rules", ICML 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import OneClassSVM
    >>> from pursuit import CompressedOutlierDetector
    >>> X = np.random.RandomState(0).normal(size=(200, 2))
    >>> machine = OneClassSVM(nu=0.1)
    >>> model = CompressedOutlierDetector(machine, n_components=10, refit="least_squares").fit(X)
    >>> model.n_components_, model.predict([[0.5, 0.0], [9.0, 9.0]])
    (10, array([ 1, -1]))
    """

    _free_constant = False  # far away from all rows the value is the constant: an outlier

    def _default(self) -> Any:
        return OneClassSVM()

    @following
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the machine and compress it.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : Ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, for the machine.

        Returns
        -------
        self : CompressedOutlierDetector
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        return self._fit_and_compress(X, None, sample_weight)

    @property
    def offset_(self) -> Array:
        """Score at and below which a row is an outlier."""
        return -self.intercept_

    @through_host
    def decision_function(self, X: Any) -> Array:
        """Signed distance from the boundary, positive inside.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            As the original's.
        """
        return self._outputs(X)[:, 0]

    @through_host
    def score_samples(self, X: Any) -> Array:
        """Scores: the sum of the kernel functions.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            ``decision_function`` and ``offset_``.
        """
        return self.decision_function(X) + self.offset_

    @through_host
    def predict(self, X: Any) -> Array:
        """Tell inliers from outliers.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of int of shape (n_samples,)
            1 inside, -1 outside.
        """
        return self._predicted(X)

    def _answers(self) -> Answers:
        """Inside or outside; the threshold itself is outside."""
        return Novelty(inside=False)


_CLASSES: dict[str, Any] = {
    "classifier": CompressedClassifier,
    "regressor": CompressedRegressor,
    "outlier_detector": CompressedOutlierDetector,
}
