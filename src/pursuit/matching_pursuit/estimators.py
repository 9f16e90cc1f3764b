"""Kernel matching pursuit.

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

Under any other loss (section 3) the same dictionary is searched along the gradient of the loss
and the coefficients are fitted by Newton's method: see ``gradient_pursuit.py``.

Where we differ. The paper's figure 3 rewrites the l x M dictionary matrix at each step; the
same numbers come here from G alone, which serves all classes, budgets and folds. Ridge,
weights, several outputs on one basis, closed-form leave-one-out and exact K-fold paths are
additions. With several outputs the score of an atom is summed over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from pursuit import _validation
from pursuit._validation import Samples
from pursuit.base.docstrings import with_shared_sections
from pursuit.dictionary import Dictionary
from pursuit.greedy.any_loss import warn_unconverged
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.greedy.stopping import Fit, Stopping, choose_prefix
from pursuit.matching_pursuit.expansion_model import ExpansionClassifier, ExpansionRegressor
from pursuit.matching_pursuit.path_estimator import CrossValidatedEstimator, HeldOutEstimator

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
    method: Method | None = None,
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
    method : Method, optional
        Steps 1 to 3, and the loss. None: pre-fitting with an intercept, no ridge, squared error.
    stopping : Stopping, optional
        Step 4. None: the budget alone.

    Returns
    -------
    fit : Fit
        The path, the chosen atoms and the losses along the way.
    """
    method, stopping = method or Method(), stopping or Stopping()
    search = make_pursuit(dictionary, samples, budgets, method)
    fit = choose_prefix(search, dictionary.atoms, stopping)
    warn_unconverged(search)
    return fit


@with_shared_sections
class KernelMatchingPursuitRegressor(RegressorMixin, ExpansionRegressor, HeldOutEstimator):
    """Regression by kernel matching pursuit.

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

    _pursue = staticmethod(kernel_matching_pursuit)

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
        loss: Any = "squared_error",
        refit_every: int = 1,
        selection: str = "loss",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float | str = "auto",
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        error_tolerance: float | None = None,
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
        self.loss = loss
        self.refit_every = refit_every
        self.selection = selection
        self.dictionary = dictionary
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.error_tolerance = error_tolerance
        self.route = route
        self.random_state = random_state

    def _check_parameters(self) -> None:
        """Add the tolerance of the bound."""
        super()._check_parameters()
        if self.error_tolerance is not None:
            _validation.check_real("error_tolerance", self.error_tolerance, above=True)
            if self.early_stopping != "bound":
                raise ValueError("error_tolerance is only used with early_stopping='bound'")

    def _error_tolerance(self, train: Samples) -> float | None:
        """The tolerance given, or half the standard deviation of the targets."""
        if self.error_tolerance is not None:
            return float(self.error_tolerance)
        mean = np.average(train.Y, axis=0, weights=train.weights)
        variance = np.average((train.Y - mean) ** 2, axis=0, weights=train.weights).mean()
        return 0.5 * float(np.sqrt(variance)) or 1.0


@with_shared_sections
class KernelMatchingPursuitClassifier(ClassifierMixin, ExpansionClassifier, HeldOutEstimator):
    """Classification by kernel matching pursuit.

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

    _pursue = staticmethod(kernel_matching_pursuit)

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
        loss: Any = "squared_error",
        refit_every: int = 1,
        selection: str = "loss",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float | str = "auto",
        multi_class: str = "shared",
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
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
        self.loss = loss
        self.refit_every = refit_every
        self.selection = selection
        self.dictionary = dictionary
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.route = route
        self.random_state = random_state


@with_shared_sections
class KernelMatchingPursuitRegressorCV(RegressorMixin, ExpansionRegressor, CrossValidatedEstimator):
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

    _pursue = staticmethod(kernel_matching_pursuit)

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
        loss: Any = "squared_error",
        refit_every: int = 1,
        selection: str = "loss",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float | str = "auto",
        gammas: Any = None,
        cv: Any = 5,
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
        self.loss = loss
        self.refit_every = refit_every
        self.selection = selection
        self.dictionary = dictionary
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.gammas = gammas
        self.cv = cv
        self.route = route
        self.random_state = random_state


@with_shared_sections
class KernelMatchingPursuitClassifierCV(
    ClassifierMixin, ExpansionClassifier, CrossValidatedEstimator
):
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

    _pursue = staticmethod(kernel_matching_pursuit)

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
        loss: Any = "squared_error",
        refit_every: int = 1,
        selection: str = "loss",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float | str = "auto",
        multi_class: str = "shared",
        class_weight: Mapping[Any, float] | str | None = None,
        gammas: Any = None,
        cv: Any = 5,
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
        self.loss = loss
        self.refit_every = refit_every
        self.selection = selection
        self.dictionary = dictionary
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.gammas = gammas
        self.cv = cv
        self.route = route
        self.random_state = random_state
