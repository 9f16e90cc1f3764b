"""Kernel matching pursuit with squared error.

P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 169-191, 2002; the
equation and figure numbers are theirs.

Problem. Given l rows x_i with targets y_i and weights w_i, and a dictionary of M functions
d_k, find few functions g_1, ..., g_N among them and coefficients so that

    f_N(x) = b + sum_n alpha_n g_n(x)                                   (eq. 1 and 14)

has a small sum_i w_i |y_i - f_N(x_i)|^2 + alpha sum_n alpha_n^2.

===========  ====================  ========================================================
symbol       name in code          shape
===========  ====================  ========================================================
x, y, w      ``samples``           (l, d), (l, T), (l,)
D            ``functions``         rows -> (rows, M)
G, D'y       ``equations``         (M, M), (T, M); see ``gram.py``
gamma_n      ``support``           (N,) chosen atoms in order
alpha        ``coefficients(n)``   (T, N) for every prefix n; see ``expansion.py``
N            ``n_components``      the budget
===========  ====================  ========================================================

Steps.

1. The constant is orthogonalised: atoms and targets are measured from their means (eq. 14).
2. One pass over the rows gives G = D'WD and D'WY (or, on the direct route, its diagonal).
3. N times, choose the atom (``pivoting.py``):

   - ``fitting="basic"``: most collinear with the residual, its coefficient alone is updated
     (eq. 3-5, figure 1);
   - ``"backfit"``: the same atom, then all coefficients are optimal (eq. 6);
   - ``"prefit"``: the atom and all coefficients that together are optimal (eq. 7, figure 3).

4. The factor left behind gives the coefficients of every prefix. The prefix is chosen by the
   budget, a threshold on the training error, held-out rows or leave-one-out (sections 2.1, 5).

Cost: l M^2 + N^2 M on the Gram route, about 2 l M N on the direct one.

Where we differ. The paper's figure 3 rewrites the l x M dictionary matrix at each step; the
same numbers come here from G alone, which serves all classes, budgets and folds. Ridge,
weights, several outputs on one basis, closed-form leave-one-out and exact K-fold paths are
additions. With several outputs the score of an atom is summed over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier

from pursuit import parameters
from pursuit.backend import Array
from pursuit.dictionary import (
    Dictionary,
    draw_candidates,
    given_centres,
    n_candidate_rows,
    training_rows,
)
from pursuit.docstrings import with_shared_sections
from pursuit.estimator import ExpansionClassifier, ExpansionModel, ExpansionRegressor
from pursuit.folds import fold_losses, gamma_grid, hold_out, index_splits
from pursuit.gram import Samples, WeightedValues, choose_route, gather, normal_equations
from pursuit.kernels import Kernel, resolve_kernel
from pursuit.path_losses import held_out_losses, inverse_temperatures, leave_one_out_losses
from pursuit.search import Fit, Search, Stopping, choose_prefix, deal, warn_short

__all__ = [
    "KernelMatchingPursuitClassifier",
    "KernelMatchingPursuitClassifierCV",
    "KernelMatchingPursuitRegressor",
    "KernelMatchingPursuitRegressorCV",
    "kernel_matching_pursuit",
]


def kernel_matching_pursuit(
    dictionary: Dictionary,
    samples: Samples,
    budgets: list[int],
    *,
    fitting: str = "prefit",
    fit_intercept: bool = True,
    alpha: float = 0.0,
    route: str = "auto",
    stopping: Stopping | None = None,
) -> Fit:
    """Run the algorithm at the top of this file on valid arrays.

    Parameters
    ----------
    dictionary : Dictionary
        Candidate atoms.
    samples : Samples
        Rows (l, d), targets (l, T) and positive weights (l,).
    budgets : list of int
        Largest number of steps of each basis: one basis for all outputs, or one an output.
    fitting : {"prefit", "backfit", "basic"}
        Step 3.
    fit_intercept : bool
        Step 1.
    alpha : float
        Ridge on the atoms.
    route : {"auto", "gram", "direct"}
        Step 2.
    stopping : Stopping, optional
        Step 4. None: the budget alone.

    Returns
    -------
    fit : Fit
        The path, the chosen atoms and the losses along the way.
    """
    functions, n_atoms = dictionary.atoms.functions, len(dictionary)
    if route == "auto":
        route = choose_route(samples.X.shape, n_atoms, sum(budgets))
    values = WeightedValues(
        functions,
        samples,
        n_atoms,
        centred=fit_intercept,
        keep=route == "direct",
        subset=dictionary.atoms.subset,
    )
    equations = normal_equations(gather(values, complete=route == "gram"), values, alpha=alpha)
    search = Search(equations, fitting, budgets)
    return choose_prefix(search, dictionary.atoms, stopping or Stopping())


class _KernelMatchingPursuit(ExpansionModel):
    """What all four estimators share."""

    def __init__(
        self,
        n_components: Any = 100,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fitting: str = "prefit",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        route: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fitting = fitting
        self.dictionary = dictionary
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.route = route
        self.random_state = random_state

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        parameters.check_choice("fitting", self.fitting, ("prefit", "backfit", "basic"))
        parameters.check_choice("route", self.route, ("auto", "gram", "direct"))
        parameters.check_choice("fit_intercept", self.fit_intercept, (True, False))
        parameters.check_real("alpha", self.alpha)

    def _kernel(self, samples: Samples, gamma: Any) -> Kernel:
        """The kernel with its numbers resolved on the rows of positive weight."""
        rows = np.flatnonzero(samples.weights > 0)
        part = samples.take(rows) if len(rows) < samples.X.shape[0] else samples
        return resolve_kernel(
            self.kernel,
            part.X,
            part.weights,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )

    def _candidates(self, rows: Array, budget: int) -> Array:
        """Rows that candidate functions may be centred on: all of `rows`, or a random part."""
        number = n_candidate_rows(self.n_candidates, len(rows), budget)
        return draw_candidates(rows, number, self.random_state)

    def _dictionary(self, kernel: Kernel, X: Any, candidates: Array) -> Dictionary:
        """Functions centred on the candidate rows, or on the centres given."""
        if self.dictionary is None:
            return training_rows(kernel, X, candidates)
        if self.n_candidates is not None:
            raise ValueError("n_candidates has no meaning with a dictionary of given centres")
        return given_centres(kernel, self.dictionary, X.shape[1])

    def _fit(
        self,
        samples: Samples,
        rows: Array,
        dictionary: Dictionary,
        budgets: list[int],
        stopping: Callable[[Samples], Stopping],
    ) -> Self:
        """Fit on some `rows` of the caller's `samples`."""
        train = samples.take(rows) if len(rows) < samples.X.shape[0] else samples
        fit = kernel_matching_pursuit(
            dictionary,
            train,
            budgets,
            fitting=self.fitting,
            fit_intercept=self.fit_intercept,
            alpha=self.alpha,
            route=self.route,
            stopping=stopping(train),
        )
        warn_short(fit, sum(budgets), stacklevel=4)
        atoms = dictionary.atoms.take(fit.support)
        self._store(
            atoms, fit.path, None if dictionary.rows is None else dictionary.rows[fit.support]
        )
        self.train_loss_path_ = fit.train_losses
        self.stop_reason_ = fit.reason
        if is_classifier(self):
            self.inverse_temperature_path_ = inverse_temperatures(
                fit.path,
                atoms,
                train,
                fit_intercept=self.fit_intercept,
                basic=self.fitting == "basic",
            )
        self._store_watched(fit.watched_losses)
        return self

    def _store_watched(self, losses: Array | None) -> None:
        """Store the losses that early stopping followed."""


class _HeldOut(_KernelMatchingPursuit):
    """`fit` of the plain estimators, with early stopping on rows that the fit has not seen."""

    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int | None
    tol: float

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.
        X_val, y_val : array-like, optional
            Held-out rows for ``early_stopping=True`` in place of a random part of the rows.

        Returns
        -------
        self : estimator
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names the parameter or row.
        """
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        budgets = self._budgets(samples.Y.shape[1])
        if self.early_stopping is not True and not (X_val is None and y_val is None):
            raise ValueError("X_val and y_val are only used with early_stopping=True")
        validation = self._read_validation(X_val, y_val, samples.Y.shape[1])
        rows = np.flatnonzero(samples.weights > 0)
        if self.early_stopping is True and validation is None:
            rows, test = hold_out(
                samples,
                rows,
                self.validation_fraction,
                classifier=is_classifier(self),
                random_state=self.random_state,
            )
            validation = samples.take(test)

        def stopping(train: Samples) -> Stopping:
            return self._stopping(train, validation)

        candidates = self._candidates(rows, sum(budgets))
        dictionary = self._dictionary(self._kernel(samples, self.gamma), samples.X, candidates)
        return self._fit(samples, rows, dictionary, budgets, stopping)

    def _check_parameters(self) -> None:
        """Add those of early stopping to the common checks."""
        super()._check_parameters()
        parameters.check_choice("early_stopping", self.early_stopping, (False, True, "loo"))
        parameters.check_real("tol", self.tol)
        parameters.check_real("validation_fraction", self.validation_fraction, 0, 1, above=True)
        parameters.check_integer("n_iter_no_change", self.n_iter_no_change, optional=True)
        if self.early_stopping == "loo" and self.fitting == "basic":
            raise ValueError(
                "early_stopping='loo' needs fitting='prefit' or 'backfit': basic matching "
                "pursuit has no closed-form leave-one-out"
            )

    def _stopping(self, train: Samples, validation: Samples | None) -> Stopping:
        """The rule for ending the path."""
        if self.early_stopping == "loo":
            own = partial(leave_one_out_losses, samples=train, fit_intercept=self.fit_intercept)
            return Stopping(own, self.n_iter_no_change, self.tol)
        if validation is None:
            return Stopping(tol=self.tol)
        held_out = partial(held_out_losses, samples=validation)
        return Stopping(held_out, self.n_iter_no_change, self.tol)

    def _store_watched(self, losses: Array | None) -> None:
        """Store the losses under the name of what they were measured on."""
        for name in ("validation_loss_path_", "leave_one_out_loss_path_"):
            if hasattr(self, name):
                delattr(self, name)
        if losses is not None:
            loo = self.early_stopping == "loo"
            setattr(self, "leave_one_out_loss_path_" if loo else "validation_loss_path_", losses)


class _CrossValidated(_KernelMatchingPursuit):
    """`fit` of the CV estimators: exact K-fold paths over gamma, then a fit on all rows."""

    gammas: Any
    cv: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose gamma and the number of components, then fit on all rows.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like
            Targets or labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : estimator
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names the parameter or row.
        """
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        budgets = self._budgets(samples.Y.shape[1])
        splits = index_splits(self.cv, samples, classifier=is_classifier(self))
        self.gammas_ = gamma_grid(self.gammas, self.kernel, self.gamma, samples)
        rows = np.flatnonzero(samples.weights > 0)
        candidates = self._candidates(rows, sum(budgets))

        def dictionary(gamma: Any) -> Dictionary:
            return self._dictionary(self._kernel(samples, gamma), samples.X, candidates)

        losses = partial(
            fold_losses,
            samples=samples,
            splits=splits,
            budgets=budgets,
            fitting=self.fitting,
            fit_intercept=self.fit_intercept,
            alpha=self.alpha,
            route=self.route,
        )
        self.cv_loss_path_ = np.array([losses(dictionary(gamma)) for gamma in self.gammas_])
        mean = self.cv_loss_path_.mean(axis=1)
        # Among equal losses the smallest model, then the first gamma.
        n_before, best = np.argwhere((mean == mean.min()).T)[0]
        self.gamma_ = self.gammas_[best]
        chosen = np.bincount(deal(budgets)[: n_before + 1], minlength=len(budgets)).tolist()
        return self._fit(samples, rows, dictionary(self.gamma_), chosen, lambda train: Stopping())


@with_shared_sections
class KernelMatchingPursuitRegressor(RegressorMixin, ExpansionRegressor, _HeldOut):
    """Regression by kernel matching pursuit with squared error.

    {shared}

    References
    ----------
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import KernelMatchingPursuitRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KernelMatchingPursuitRegressor(n_components=8).fit(X, np.sin(X[:, 0]))
    >>> model.n_components_, bool(model.score(X, np.sin(X[:, 0])) > 0.999)
    (8, True)
    """

    def __init__(
        self,
        n_components: Any = 100,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fitting: str = "prefit",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        route: str = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            fitting=fitting,
            dictionary=dictionary,
            n_candidates=n_candidates,
            fit_intercept=fit_intercept,
            alpha=alpha,
            route=route,
            random_state=random_state,
        )
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol


@with_shared_sections
class KernelMatchingPursuitClassifier(ClassifierMixin, ExpansionClassifier, _HeldOut):
    """Classification by kernel matching pursuit with squared error.

    {shared}

    References
    ----------
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMatchingPursuitClassifier(n_components=10).fit(X, y)
    >>> model.n_components_, bool(model.score(X, y) > 0.95)
    (10, True)
    >>> small = model.truncate(5)
    >>> small.support_.tolist() == model.support_[:5].tolist()
    True
    """

    def __init__(
        self,
        n_components: Any = 100,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fitting: str = "prefit",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        multi_class: str = "shared",
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        route: str = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            fitting=fitting,
            dictionary=dictionary,
            n_candidates=n_candidates,
            fit_intercept=fit_intercept,
            alpha=alpha,
            route=route,
            random_state=random_state,
        )
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol


@with_shared_sections
class KernelMatchingPursuitRegressorCV(RegressorMixin, ExpansionRegressor, _CrossValidated):
    """Regression by kernel matching pursuit, gamma and budget chosen by cross-validation.

    {shared}

    References
    ----------
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import KernelMatchingPursuitRegressorCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KernelMatchingPursuitRegressorCV(n_components=20).fit(X, np.sin(X[:, 0]))
    >>> model.cv_loss_path_.shape
    (7, 5, 20)
    """

    def __init__(
        self,
        n_components: Any = 100,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fitting: str = "prefit",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        gammas: Any = None,
        cv: Any = 5,
        route: str = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            fitting=fitting,
            dictionary=dictionary,
            n_candidates=n_candidates,
            fit_intercept=fit_intercept,
            alpha=alpha,
            route=route,
            random_state=random_state,
        )
        self.gammas = gammas
        self.cv = cv


@with_shared_sections
class KernelMatchingPursuitClassifierCV(ClassifierMixin, ExpansionClassifier, _CrossValidated):
    """Classification by kernel matching pursuit, gamma and budget chosen by cross-validation.

    {shared}

    References
    ----------
    P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMatchingPursuitClassifierCV(n_components=30).fit(X, y)
    >>> model.gamma_ in model.gammas_, model.n_components_ <= 30
    (True, True)
    """

    def __init__(
        self,
        n_components: Any = 100,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fitting: str = "prefit",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        multi_class: str = "shared",
        class_weight: Mapping[Any, float] | str | None = None,
        gammas: Any = None,
        cv: Any = 5,
        route: str = "auto",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            fitting=fitting,
            dictionary=dictionary,
            n_candidates=n_candidates,
            fit_intercept=fit_intercept,
            alpha=alpha,
            route=route,
            random_state=random_state,
        )
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.gammas = gammas
        self.cv = cv
