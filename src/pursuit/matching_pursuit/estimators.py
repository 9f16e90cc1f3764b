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
G, D'y       ``equations``         (M, M), (T, M); see ``greedy/normal_equations.py``
gamma_n      ``support``           (N,) chosen atoms in order
alpha        ``coefficients(n)``   (T, N) for every prefix n; see ``expansion/path.py``
N            ``n_components``      the budget
===========  ====================  ========================================================

Steps.

1. The constant is orthogonalised: atoms and targets are measured from their means (eq. 14).
2. One pass over the rows gives G = D'WD and D'WY (or, on the direct route, its diagonal).
3. N times, choose the atom (``linalg/partial_cholesky.py``):

   - ``fitting="basic"``: most collinear with the residual, its coefficient alone is updated
     (eq. 3-5, figure 1);
   - ``"backfit"``: the same atom, then all coefficients are optimal (eq. 6);
   - ``"prefit"``: the atom and all coefficients that together are optimal (eq. 7, figure 3).

4. The factor left behind gives the coefficients of every prefix. The prefix is chosen by the
   budget, a threshold on the training error, held-out rows or leave-one-out (sections 2.1, 5).

Cost: l M^2 + N^2 M on the Gram route, about 2 l M N on the direct one.

Under any other loss (section 3) the same dictionary is searched along the gradient of the loss
and the coefficients are fitted by Newton's method: see ``greedy/any_loss.py``.

Where we differ. The paper's figure 3 rewrites the l x M dictionary matrix at each step; the
same numbers come here from G alone, which serves all classes, budgets and folds. Ridge,
weights, several outputs on one basis, closed-form leave-one-out and exact K-fold paths are
additions. With several outputs the score of an atom is summed over them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.parallel import Parallel, delayed

from pursuit import _validation
from pursuit._typing import Array, Watch
from pursuit._validation import Samples
from pursuit.base.arrays import following
from pursuit.base.callbacks import Watcher
from pursuit.base.cross_validation import (
    Rows,
    Split,
    gamma_grid,
    resolve_scorer,
)
from pursuit.base.docstrings import with_shared_sections
from pursuit.base.parameters import constructor
from pursuit.dictionary import CANDIDATES_A_VECTOR, Dictionary, n_candidate_rows
from pursuit.expansion.basis_functions import AtomSet
from pursuit.expansion.path import CoefficientPath
from pursuit.greedy.any_loss import warn_unconverged
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.greedy.multi_output import MultiOutputPursuit, round_robin
from pursuit.greedy.path_losses import bound_path, held_out_losses, leave_one_out_losses
from pursuit.greedy.stopping import Fit, Losses, Stopping, choose_prefix
from pursuit.losses import Loss
from pursuit.matching_pursuit.blocks import BlocksClassifier, BlocksRegressor
from pursuit.matching_pursuit.cross_validation import fold_losses, hold_out
from pursuit.matching_pursuit.fold_statistics import StatisticsCV
from pursuit.matching_pursuit.path_model import MatchingPursuit, PathClassifier, PathRegressor
from pursuit.matching_pursuit.warm_start import Search, fingerprint

__all__ = [
    "KernelMatchingPursuitClassifier",
    "KernelMatchingPursuitClassifierCV",
    "KernelMatchingPursuitRegressor",
    "KernelMatchingPursuitRegressorCV",
    "kernel_matching_pursuit",
]

# Candidates that a search by cross-validation makes do with.
SEARCH_CANDIDATES = 1_000


def kernel_matching_pursuit(
    dictionary: Dictionary,
    samples: Samples,
    budgets: list[int],
    method: Method | None = None,
    stopping: Stopping | None = None,
    watch: Watch[MultiOutputPursuit] | None = None,
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
    watch : callable, optional
        Looks at the path after each step; a text ends it and says why.

    Returns
    -------
    fit : Fit
        The path, the chosen atoms and the losses along the way.
    """
    method, stopping = method or Method(), stopping or Stopping()
    search = make_pursuit(dictionary, samples, budgets, method)
    return _followed(search, dictionary, stopping, watch)


def _followed(
    search: MultiOutputPursuit,
    dictionary: Dictionary,
    stopping: Stopping,
    watch: Watch[MultiOutputPursuit] | None,
) -> Fit:
    """Steps 3 and 4."""
    fit = choose_prefix(search, dictionary.atoms, stopping, watch)
    warn_unconverged(search)
    return fit


@constructor
class _EarlyStopping(MatchingPursuit):
    """`fit` with early stopping: on held-out samples, by leave-one-out or by a bound."""

    early_stopping: bool | str = False
    validation_fraction: float = 0.1
    scoring: Any = None
    n_iter_no_change: int | None = None
    tol: float = 0.0
    warm_start: bool = False

    @following
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
        if hasattr(self, "statistics_"):
            del self.statistics_
        samples, budgets = self._read_for_loss(X, y, sample_weight)
        with self._watching(X, y, sample_weight, n_steps=sum(budgets)) as watcher:
            held_out = self._held_out(samples, X_val, y_val)
            search = self._search(samples, budgets, held_out)
            rows, validation, dictionary = search.rows, search.validation, search.dictionary
            train = _some(samples, rows)
            loss = self._loss(train, budgets)
            method = self._method(loss)
            stopping = self._stopping(dictionary, train, rows, loss, validation)
            watch = self._watch(watcher, dictionary, train, method, loss)
            fit = _followed(search.pursuit, dictionary, stopping, watch)
            self._store_watched(fit.watched_losses)
            self._store_fit(fit, dictionary, train, budgets, method, loss)
        self.__dict__.pop("_last_search", None)
        if self.warm_start:
            self._last_search = search
        return self

    def _search(
        self, samples: Samples, budgets: list[int], held_out: tuple[Array, Samples | None]
    ) -> Search:
        """The pursuit of the last fit where that may grow, or one at its start."""
        parameters = self.get_params(deep=False)
        data = fingerprint(samples) if self.warm_start else ""
        last: Search | None = getattr(self, "_last_search", None) if self.warm_start else None
        if last is not None and last.continues(data, parameters, budgets):
            last.pursuit.set_budgets(budgets)
            return last._replace(parameters=parameters)
        rows, validation = held_out
        train = _some(samples, rows)
        candidates = self._candidates(samples, rows, sum(budgets))
        dictionary = self._dictionary(samples, self.gamma, candidates, rows)
        method = self._method(self._loss(train, budgets))
        pursuit = make_pursuit(dictionary, train, budgets, method)
        return Search(pursuit, dictionary, rows, validation, data, parameters)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles are models; what a further fit could go on from stays here."""
        state = dict(super().__getstate__())
        state.pop("_last_search", None)
        return state

    def _held_out(self, samples: Samples, X_val: Any, y_val: Any) -> tuple[Array, Samples | None]:
        """The rows to train on, and those that early stopping watches, if any."""
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
        return rows, validation

    def _check_parameters(self) -> None:
        """Add those of early stopping to the common checks."""
        super()._check_parameters()
        choices = (False, True, "loo", "bound")
        _validation.check_choice("early_stopping", self.early_stopping, choices)
        _validation.check_real("tol", self.tol)
        _validation.check_choice("warm_start", self.warm_start, (True, False))
        _validation.check_real("validation_fraction", self.validation_fraction, 0, 1, above=True)
        _validation.check_integer("n_iter_no_change", self.n_iter_no_change, optional=True)
        if self.scoring is not None and self.early_stopping is not True:
            raise ValueError("scoring is only used with early_stopping=True")
        if self.early_stopping == "loo" and self.fitting == "basic":
            raise ValueError(
                "early_stopping='loo' needs fitting='prefit' or 'backfit': basic matching "
                "pursuit has no closed-form leave-one-out"
            )

    def _error_tolerance(self, train: Samples) -> float | None:
        """The error from which on a row is an error of theorem 3; None: a wrong class."""
        return None

    def _stopping(
        self,
        dictionary: Dictionary,
        train: Samples,
        rows: Array,
        loss: Loss,
        validation: Samples | None,
    ) -> Stopping:
        """The rule for ending the path; `rows` are the places of the training rows."""
        if self.early_stopping == "loo":
            watched = self._leave_one_out(dictionary, train, loss)
        elif self.early_stopping == "bound":
            watched = self._bound(train, loss, places(dictionary.rows, rows))
        elif validation is None:
            return Stopping(tol=self.tol)
        else:
            watched = self._on_held_out(dictionary, train, loss, validation)
        return Stopping(watched, self.n_iter_no_change, self.tol)

    def _leave_one_out(self, dictionary: Dictionary, train: Samples, loss: Loss) -> Losses:
        """Losses of every row without it."""
        method = self._method(loss)
        if method.rule is not None:
            raise ValueError(
                "early_stopping='loo' is closed-form for loss='squared_error' with "
                "refit_every=1 only"
            )
        return lambda path, atoms, support: leave_one_out_losses(
            path, atoms, train, method.fit_intercept, dictionary.ridge(method.alpha, support)
        )

    def _bound(self, train: Samples, loss: Loss, centres: Array | None) -> Losses:
        """The bound of theorem 3."""
        own = one_function_a_row(centres)
        tolerance = self._error_tolerance(train)
        if tolerance is not None:
            self.error_tolerance_ = tolerance
        return lambda path, atoms, support: bound_path(
            path, atoms, train, own[support], tolerance, loss
        )

    def _on_held_out(
        self, dictionary: Dictionary, train: Samples, loss: Loss, validation: Samples
    ) -> Losses:
        """Losses on rows held out, or scores with their sign turned."""
        loss.check_targets(validation.Y, "y_val")
        if self.scoring is None:
            return lambda path, atoms, support: held_out_losses(path, atoms, validation, loss)
        scorer, method = resolve_scorer(self, self.scoring), self._method(loss)
        rows = Rows(validation.X, self._seen(validation), self._own_weights(validation))

        def losses(path: CoefficientPath, atoms: AtomSet, support: Array) -> Array:
            fit = Fit(path, support, np.zeros(path.n_steps), None, "")
            stages = self._staged_models(fit, dictionary, train, method, loss)
            return -np.array([scorer(stage, rows) for stage in stages])

        return losses

    def _store_watched(self, losses: Array | None) -> None:
        """Store the losses under the name of what they were measured on."""
        names = {True: "validation_loss_path_", "loo": "leave_one_out_loss_path_"}
        names["bound"], scores = "bound_path_", "validation_score_path_"
        stale = [
            *names.values(),
            scores,
            *(["error_tolerance_"] * (self.early_stopping != "bound")),
        ]
        for name in stale:
            if hasattr(self, name):
                delattr(self, name)
        if losses is not None and self.scoring is not None:
            self.validation_score_path_ = -losses
        elif losses is not None:
            setattr(self, names[self.early_stopping], losses)


@constructor
class _CrossValidation(StatisticsCV):
    """`fit` by cross-validation: K-fold paths over gamma, then a fit on all samples."""

    gammas: Any = None
    cv: Any = 5
    scoring: Any = None
    rule: str = "min"
    search_candidates: int | float | None = None
    n_jobs: int | None = None

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose gamma and the number of components with few candidates, then fit with all.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like
            Targets or labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.
        groups : array-like of shape (n_samples,), optional
            The group of each row. A number of folds keeps groups whole; a splitter is handed them.

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
        samples, budgets = self._read_for_loss(X, y, sample_weight)
        with self._watching(X, y, sample_weight, n_steps=sum(budgets)) as watcher:
            return self._fit_chosen(samples, budgets, sample_weight, groups, watcher)

    def _fit_chosen(
        self,
        samples: Samples,
        budgets: list[int],
        sample_weight: Any,
        groups: Any,
        watcher: Watcher | None,
    ) -> Self:
        """The search, and the fit on all samples, whose steps are watched."""
        splits = self._splits(samples, groups)
        self.gammas_ = gamma_grid(self.gammas, self.kernel, self.gamma, samples)
        rows = np.flatnonzero(samples.weights > 0)
        candidates = self._candidates(samples, rows, sum(budgets))
        loss = self._loss(samples.take(rows), budgets)
        method = self._method(loss)
        measure = self._step_scorer(samples, sample_weight, method, loss)

        def dictionary(gamma: Any, candidates: Array) -> Dictionary:
            return self._dictionary(samples, gamma, candidates, rows)

        def losses(dictionary: Dictionary) -> tuple[Array, Array]:
            score = None if measure is None else partial(measure, dictionary)
            return fold_losses(dictionary, samples, splits, budgets, method, score)

        few = self._search_candidates(samples, candidates, sum(budgets))
        tried = (delayed(losses)(dictionary(gamma, few)) for gamma in self.gammas_)
        found = Parallel(n_jobs=self.n_jobs)(tried)
        self.cv_loss_path_ = np.array([loss for loss, _ in found])
        self._choose(np.array([scores for _, scores in found]))
        chosen = self._first_budgets(budgets)
        final, train = dictionary(self.gamma_, candidates), _some(samples, rows)
        watch = self._watch(watcher, final, train, method, loss)
        fit = kernel_matching_pursuit(final, train, chosen, method, watch=watch)
        return self._store_fit(fit, final, train, chosen, method, loss)

    def _check_parameters(self) -> None:
        """Add the rule to the common checks."""
        super()._check_parameters()
        self._check_rule()

    def _search_candidates(self, samples: Samples, candidates: Array, budget: int) -> Array:
        """The candidates that gamma and the number of components are chosen with."""
        asked = self.search_candidates
        if asked is None:
            asked = max(SEARCH_CANDIDATES, CANDIDATES_A_VECTOR * budget)
        number = n_candidate_rows(asked, len(candidates), budget, name="search_candidates")
        return self._drawn(samples, candidates, number)

    def _choose(self, scores: Array) -> None:
        """Set gamma and what tells how the search went, from (n_gammas, n_splits, n_steps)."""
        n_gammas, n_splits, n_steps = scores.shape
        steps = np.tile(np.arange(1, n_steps + 1), n_gammas)
        params = [{"gamma": g, "n_components": n + 1} for g in self.gammas_ for n in range(n_steps)]
        self._store_search(params, scores.transpose(1, 0, 2).reshape(n_splits, -1), [steps])
        self.gamma_ = self.best_params_["gamma"]

    def _first_budgets(self, budgets: list[int]) -> list[int]:
        """Steps of each basis among as many of the model as were chosen."""
        order = round_robin(budgets)[: self.best_params_["n_components"]]
        return np.bincount(order, minlength=len(budgets)).tolist()  # type: ignore[no-any-return]

    def _step_scorer(
        self, samples: Samples, sample_weight: Any, method: Method, loss: Loss
    ) -> Callable[[Dictionary, Fit, Split], Array] | None:
        """What scores the steps of a fold; None: the loss does."""
        if self.scoring is None:
            return None
        scorer, seen = resolve_scorer(self, self.scoring), self._rows(samples, sample_weight)

        def scores(dictionary: Dictionary, fit: Fit, split: Split) -> Array:
            train, test = samples.take(split[0]), seen.take(split[1])
            stages = self._staged_models(fit, dictionary, train, method, loss)
            return np.array([scorer(stage, test) for stage in stages])

        return scores


def _some(samples: Samples, rows: Array) -> Samples:
    """The samples of some rows; themselves where these are all."""
    return samples.take(rows) if len(rows) < samples.X.shape[0] else samples


def places(rows: Array | None, training: Array) -> Array | None:
    """Position among the training rows of each of `rows` (-1 stays)."""
    if rows is None:
        return None
    return np.where(rows >= 0, np.searchsorted(training, rows), -1)


def one_function_a_row(centres: Array | None) -> Array:
    """The training row behind each function, if each has one of its own, as theorem 3 wants."""
    if centres is None or (centres < 0).any() or len(np.unique(centres)) < len(centres):
        raise ValueError(
            "early_stopping='bound' needs one candidate function for each training row: the "
            "bound counts the rows that the functions are centred on"
        )
    return centres


@with_shared_sections
@constructor
class KernelMatchingPursuitRegressor(
    RegressorMixin, BlocksRegressor, _EarlyStopping, PathRegressor
):
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

    error_tolerance: float | None = None
    route: str = "auto"
    random_state: Any = None

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
@constructor
class KernelMatchingPursuitClassifier(
    ClassifierMixin, BlocksClassifier, _EarlyStopping, PathClassifier
):
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

    route: str = "auto"
    random_state: Any = None


@with_shared_sections
@constructor
class KernelMatchingPursuitRegressorCV(RegressorMixin, _CrossValidation, PathRegressor):
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

    route: str = "auto"
    random_state: Any = None


@with_shared_sections
@constructor
class KernelMatchingPursuitClassifierCV(ClassifierMixin, _CrossValidation, PathClassifier):
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

    route: str = "auto"
    random_state: Any = None
