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

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv, train_test_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from pursuit import blocks, parameters
from pursuit.backend import Array
from pursuit.dictionary import Atoms, Dictionary, given_centres, n_candidate_rows, training_rows
from pursuit.estimator import ExpansionClassifier, ExpansionModel, ExpansionRegressor
from pursuit.expansion import BasisPath, CoefficientPath
from pursuit.gram import NormalEquations, Samples, choose_route, gather, normal_equations
from pursuit.kernels import Kernel, resolve_kernel, scale_gamma
from pursuit.path_losses import (
    held_out_losses,
    inverse_temperatures,
    leave_one_out_losses,
    training_losses,
)
from pursuit.pivoting import BasicPursuit, PivotedFactor
from pursuit.stopping import below_threshold, best_prefix

__all__ = [
    "KernelMatchingPursuitClassifier",
    "KernelMatchingPursuitClassifierCV",
    "KernelMatchingPursuitRegressor",
    "KernelMatchingPursuitRegressorCV",
]

# The first look at held-out rows comes after this many steps; then the path is doubled.
FIRST_LOOK = 32
# Trial gammas of the CV classes, as multiples of gamma="scale".
GAMMA_FACTORS = tuple(4.0**power for power in range(-4, 3))
_KERNELS_WITH_GAMMA = ("rbf", "laplacian", "polynomial", "poly", "sigmoid")

_FLOATS = [np.float64, np.float32]

Losses = Callable[[CoefficientPath, Atoms], Array]


# ---------------------------------------------------------------------------- the algorithm


class Search:
    """Greedy bases that grow together: one for all outputs, or one an output.

    Parameters
    ----------
    equations : NormalEquations
        G, D'y and the means.
    fitting : {"prefit", "backfit", "basic"}
        See the steps at the top of this file.
    budgets : list of int
        Largest number of steps of each basis; as many as bases.
    barred : ndarray of bool of shape (n_atoms,), optional
        Atoms that may not be chosen.
    """

    def __init__(
        self,
        equations: NormalEquations,
        fitting: str,
        budgets: list[int],
        barred: Array | None = None,
    ) -> None:
        self.equations = equations
        n_outputs = len(equations.energy)
        together = [np.arange(n_outputs)]
        self.outputs = together if len(budgets) == 1 else list(np.arange(n_outputs)[:, None])
        self.order = deal(budgets)
        self.reasons: list[str | None] = [None] * len(budgets)
        self.pursuits: list[BasicPursuit | PivotedFactor] = []
        for t in self.outputs:
            start = (equations.gram, equations.cross[t], equations.energy[t], barred)
            basic = fitting == "basic"
            self.pursuits.append(
                BasicPursuit(*start) if basic else PivotedFactor(*start, rule=fitting)
            )

    def extend(self, n_steps: int) -> None:
        """Grow the model to `n_steps` steps in all, as far as its bases can."""
        lengths = np.bincount(self.order[:n_steps], minlength=len(self.pursuits))

        def grow(b: int) -> None:
            pursuit = self.pursuits[b]
            if self.reasons[b] is None:
                self.reasons[b] = pursuit.extend(int(lengths[b]) - len(pursuit.picks))

        blocks.for_each(grow, range(len(self.pursuits)), parallel=self.equations.gram.shareable)

    def steps(self) -> Array:
        """The basis of each step taken so far."""
        taken = [0] * len(self.pursuits)
        kept = []
        for b in self.order:
            if taken[b] < len(self.pursuits[b].picks):
                taken[b] += 1
                kept.append(b)
        return np.array(kept, dtype=int)

    def path(self) -> tuple[CoefficientPath, Array]:
        """Return the coefficients of every prefix, and the chosen atoms in order of choice."""
        order = self.steps()
        support, positions = _merge([p.picks for p in self.pursuits], order)
        equations = self.equations
        bases = tuple(
            BasisPath(np.array(at, dtype=int), *pursuit.solution(), outputs)
            for at, pursuit, outputs in zip(positions, self.pursuits, self.outputs, strict=True)
        )
        path = CoefficientPath(bases, order, equations.atom_mean[support], equations.target_mean)
        return path, support


def deal(budgets: list[int]) -> Array:
    """The basis that takes each step: the bases take turns until their budgets are spent.

    Examples
    --------
    >>> deal([3, 1]).tolist()
    [0, 1, 0, 0]
    """
    turns = np.concatenate([np.arange(n) for n in budgets])
    owners = np.repeat(np.arange(len(budgets)), budgets)
    return owners[np.lexsort((owners, turns))]


def _merge(picks: list[list[int]], order: Array) -> tuple[Array, list[list[int]]]:
    """Distinct atoms in order of first choice, and each basis's picks as positions in them."""
    place: dict[int, int] = {}
    positions: list[list[int]] = [[] for _ in picks]
    for b in order:
        atom = picks[b][len(positions[b])]
        positions[b].append(place.setdefault(atom, len(place)))
    return np.array(list(place), dtype=int), positions


# --------------------------------------------------------------------- fitting, step by step


class Fit(NamedTuple):
    """What `_run` leaves for an estimator to store."""

    path: CoefficientPath
    support: Array
    train_losses: Array
    watched_losses: Array | None
    reason: str


def _run(search: Search, budget: int, watched: Losses | None, atoms: Atoms, rule: Any) -> Fit:
    """Grow the path, choose the prefix and say why it ended there.

    Parameters
    ----------
    search : Search
        Not yet grown.
    budget : int
        Largest number of steps.
    watched : callable or None
        Losses on rows that the fit has not seen (early stopping).
    atoms : Atoms
        The dictionary's atoms.
    rule : object
        Holds ``tol`` and ``n_iter_no_change``.
    """
    patience = None if watched is None else rule.n_iter_no_change
    looked = budget if patience is None else min(budget, FIRST_LOOK)
    while True:
        search.extend(looked)
        path, support = search.path()
        losses = watched(path, atoms.take(support)) if watched else None
        decision = None if losses is None else best_prefix(losses, patience, rule.tol)
        ended = looked >= budget or path.n_steps < looked
        if ended or (decision is not None and decision.final):
            break
        looked = min(budget, 2 * looked)
    train = training_losses(path, search.equations)[1:]
    own = next((reason for reason in search.reasons if reason), "n_components")
    if decision is None or losses is None:
        n = below_threshold(train, rule.tol) if rule.tol > 0 else None
        kept, seen, watched_losses = n or path.n_steps, n or path.n_steps, None
        reason = "tol" if n else own
    else:
        kept, seen, watched_losses = decision.n_steps, decision.n_seen, losses[: decision.n_seen]
        reason = "early_stopping" if decision.final or kept < path.n_steps else own
    kept_path = path.first(kept)
    return Fit(
        kept_path, support[: kept_path.n_vectors(kept)], train[:seen], watched_losses, reason
    )


_REASONS = {
    "rank": "the other candidates are numerically combinations of those chosen, or constant",
    "zero_residual": "the training targets are explained to rounding",
    "no_gain": "no other candidate lowers the training error",
}


def _warn_short(fit: Fit, budget: int, stacklevel: int) -> None:
    """Say why fewer functions than asked for were used."""
    if fit.reason in _REASONS and fit.path.n_steps < budget:
        warnings.warn(
            f"n_components={budget}, but the path ended after {fit.path.n_steps} steps: "
            f"{_REASONS[fit.reason]}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


# ----------------------------------------------------------------------------- the estimators


class _KernelMatchingPursuit(ExpansionModel):
    """What classifier and regressor share."""

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
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.route = route
        self.random_state = random_state

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        parameters.check_choice("fitting", self.fitting, ("prefit", "backfit", "basic"))
        parameters.check_choice("early_stopping", self.early_stopping, (False, True, "loo"))
        parameters.check_choice("route", self.route, ("auto", "gram", "direct"))
        parameters.check_choice("fit_intercept", self.fit_intercept, (True, False))
        parameters.check_real("alpha", self.alpha)
        parameters.check_real("tol", self.tol)
        parameters.check_real("validation_fraction", self.validation_fraction, 0, 1, above=True)
        parameters.check_integer("n_iter_no_change", self.n_iter_no_change, optional=True)
        if self.early_stopping == "loo" and self.fitting == "basic":
            raise ValueError(
                "early_stopping='loo' needs fitting='prefit' or 'backfit': basic matching "
                "pursuit is not a linear smoother with a closed-form leave-one-out"
            )

    def _budgets(self, n_outputs: int) -> list[int]:
        """Steps of each basis."""
        parameters.check_integer("n_components", self.n_components)
        return [int(self.n_components)]

    def _fit(
        self, samples: Samples, validation: Samples | None, gamma: Any, budgets: list[int]
    ) -> Self:
        """Fit on checked rows; `samples` holds all of the caller's rows."""
        rows = np.flatnonzero(samples.weights > 0)
        kernel = self._kernel(samples, rows, gamma)
        rows, validation = self._hold_out(samples, rows, validation)
        train = samples.take(rows) if len(rows) < samples.X.shape[0] else samples
        dictionary = self._dictionary(kernel, samples.X, rows, sum(budgets))
        route = self._route(train, dictionary, sum(budgets))
        equations = self._equations(dictionary, train, route)
        search = Search(equations, self.fitting, budgets)
        watched = self._watched(train, validation)
        fit = _run(search, sum(budgets), watched, dictionary.atoms, self)
        _warn_short(fit, sum(budgets), stacklevel=4)
        self._set_fit(fit, dictionary)
        self._calibrate(fit.path, dictionary.atoms.take(fit.support), train)
        return self

    def _kernel(self, samples: Samples, rows: Array, gamma: Any) -> Kernel:
        """The kernel with its numbers resolved on the rows of positive weight."""
        X = samples.X[rows] if len(rows) < samples.X.shape[0] else samples.X
        return resolve_kernel(
            self.kernel,
            X,
            samples.weights[rows],
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )

    def _hold_out(
        self, samples: Samples, rows: Array, validation: Samples | None
    ) -> tuple[Array, Samples | None]:
        """Set a fraction of the rows aside where early stopping asks for it."""
        if self.early_stopping is not True or validation is not None:
            return rows, validation
        train, test = train_test_split(
            rows,
            test_size=self.validation_fraction,
            stratify=parameters.class_codes(samples.Y[rows]) if is_classifier(self) else None,
            random_state=self.random_state,
        )
        return np.sort(train), samples.take(np.sort(test))

    def _dictionary(self, kernel: Kernel, X: Any, rows: Array, budget: int) -> Dictionary:
        """Training rows, some of them, or the centres given."""
        if self.dictionary is not None:
            if self.n_candidates is not None:
                raise ValueError("n_candidates has no meaning with a dictionary of given centres")
            return given_centres(kernel, self.dictionary, X.shape[1], X.dtype)
        number = n_candidate_rows(self.n_candidates, len(rows), budget)
        return training_rows(kernel, X, rows, number, self.random_state)

    def _route(self, train: Samples, dictionary: Dictionary, budget: int) -> str:
        """The route asked for, or the cheaper one."""
        if self.route != "auto":
            return self.route
        n_rows, n_features = train.X.shape
        return choose_route(n_rows, len(dictionary), n_features, budget)

    def _equations(self, dictionary: Dictionary, train: Samples, route: str) -> NormalEquations:
        """Normal equations on the training rows."""
        functions = dictionary.atoms.functions
        centred = self.fit_intercept
        moments = gather(
            functions, train, len(dictionary), centred=centred, complete=route == "gram"
        )
        return normal_equations(
            moments, centred=centred, alpha=self.alpha, functions=functions, samples=train
        )

    def _watched(self, train: Samples, validation: Samples | None) -> Losses | None:
        """The losses that early stopping follows."""
        if self.early_stopping == "loo":
            centred = self.fit_intercept
            return lambda path, atoms: leave_one_out_losses(path, atoms, train, centred)
        if validation is not None:
            held_out = validation
            return lambda path, atoms: held_out_losses(path, atoms, held_out)
        return None

    def _set_fit(self, fit: Fit, dictionary: Dictionary) -> None:
        """Store the fitted attributes."""
        for name in ("support_", "validation_loss_path_", "leave_one_out_loss_path_"):
            if hasattr(self, name):
                delattr(self, name)
        rows = None if dictionary.rows is None else dictionary.rows[fit.support]
        self._store(dictionary.atoms.take(fit.support), fit.path, rows)
        self.train_loss_path_ = fit.train_losses
        self.stop_reason_ = fit.reason
        if fit.watched_losses is not None:
            loo = self.early_stopping == "loo"
            name = "leave_one_out_loss_path_" if loo else "validation_loss_path_"
            setattr(self, name, fit.watched_losses)

    def _calibrate(self, path: CoefficientPath, atoms: Atoms, train: Samples) -> None:
        """Fit what turns outputs into probabilities (classifiers)."""

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows, coded targets and weights."""
        raise NotImplementedError

    def _read_validation(self, X_val: Any, y_val: Any) -> Samples | None:
        """Checked held-out rows, or None."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val must be given together")
        if self.early_stopping is not True:
            raise ValueError("X_val and y_val are only used with early_stopping=True")
        X = validate_data(self, X_val, reset=False, accept_sparse="csr", dtype=_FLOATS)
        Y, weights = self._code_targets(y_val, X.shape[0])
        return Samples(X, Y, weights)

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Targets (n_rows, n_outputs) and weights of held-out rows."""
        raise NotImplementedError


class _HeldOut(_KernelMatchingPursuit):
    """`fit` of the plain estimators, with early stopping on held-out rows."""

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
        validation = self._read_validation(X_val, y_val)
        return self._fit(samples, validation, self.gamma, self._budgets(samples.Y.shape[1]))


class _NumberTargets(_KernelMatchingPursuit):
    """Targets of the regressors: numbers, one column or several."""

    _one_dimensional: bool

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows, targets as a table, weights."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=_FLOATS, multi_output=True, y_numeric=True
        )
        weights = parameters.check_weights(sample_weight, X.shape[0])
        self._one_dimensional = y.ndim == 1
        return Samples(X, np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1), weights)

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets as a table."""
        Y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y_val")
        return Y.reshape(n_rows, -1), np.ones(n_rows)


class _ClassTargets(_KernelMatchingPursuit):
    """Targets of the classifiers: +1 and -1, one column for two classes, else one a class."""

    multi_class: str
    class_weight: Mapping[Any, float] | str | None

    def _check_parameters(self) -> None:
        """Add the choice of bases to the common checks."""
        super()._check_parameters()
        parameters.check_choice("multi_class", self.multi_class, ("shared", "ovr"))

    def _budgets(self, n_outputs: int) -> list[int]:
        """One budget for a shared basis, or one a class."""
        per_class = np.ndim(self.n_components) == 1
        if self.multi_class == "shared" or (n_outputs == 1 and not per_class):
            return super()._budgets(n_outputs)
        if per_class:
            if len(self.n_components) != n_outputs:
                raise ValueError(
                    f"n_components has {len(self.n_components)} entries, one for each of "
                    f"{n_outputs} one-vs-rest bases is needed"
                )
            for budget in self.n_components:
                parameters.check_integer("n_components", budget)
            return [int(budget) for budget in self.n_components]
        parameters.check_integer("n_components", self.n_components)
        each, left = divmod(int(self.n_components), n_outputs)
        return [each + (b < left) for b in range(n_outputs)]

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows, targets +1 and -1, weights with those of the classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=_FLOATS)
        check_classification_targets(y)
        weights = parameters.check_weights(sample_weight, X.shape[0])
        self.classes_, codes = np.unique(y, return_inverse=True)
        present = np.bincount(codes, weights=weights > 0)
        if (present > 0).sum() < 2:
            raise ValueError(
                f"y has one class only ({self.classes_[present.argmax()]!r}); a classifier needs "
                "rows of positive weight from at least 2 classes"
            )
        if (present == 0).any():
            self.classes_ = self.classes_[present > 0]
            codes = np.maximum(np.cumsum(present > 0)[codes] - 1, 0)
        self._class_weights = parameters.class_weights(
            self.class_weight, self.classes_, codes, weights
        )
        Y = parameters.signed_targets(codes, len(self.classes_))
        return Samples(X, Y, weights * self._class_weights[codes])

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets +1 and -1, with the weights of their classes."""
        y = column_or_1d(y)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"y_val has the label {y[unknown][0]!r}, which y does not have")
        codes = np.searchsorted(self.classes_, y)
        if len(codes) != n_rows:
            raise ValueError(f"X_val has {n_rows} rows, but y_val has {len(codes)}")
        return parameters.signed_targets(codes, len(self.classes_)), self._class_weights[codes]

    def _calibrate(self, path: CoefficientPath, atoms: Atoms, train: Samples) -> None:
        """Fit the temperature of the probabilities along the path."""
        self.inverse_temperature_path_ = inverse_temperatures(
            path,
            atoms,
            train,
            fit_intercept=self.fit_intercept,
            basic=self.fitting == "basic",
        )


class KernelMatchingPursuitRegressor(RegressorMixin, ExpansionRegressor, _NumberTargets, _HeldOut):
    """Regression by kernel matching pursuit with squared error.

    PARAMETERS_HERE

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import KernelMatchingPursuitRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KernelMatchingPursuitRegressor(n_components=8).fit(X, np.sin(X[:, 0]))
    >>> model.n_components_, bool(model.score(X, np.sin(X[:, 0])) > 0.999)
    (8, True)
    """


class KernelMatchingPursuitClassifier(
    ClassifierMixin, ExpansionClassifier, _ClassTargets, _HeldOut
):
    """Classification by kernel matching pursuit with squared error.

    PARAMETERS_HERE

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
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
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
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            route=route,
            random_state=random_state,
        )
        self.multi_class = multi_class
        self.class_weight = class_weight


class _CrossValidated(_KernelMatchingPursuit):
    """Exact K-fold paths over gamma and the number of components, then a fit on all rows.

    The moments of a training part are those of all rows less those of the rows left out
    (``gram.py``); atoms centred on rows left out are barred. So the paths equal those of fits
    on each training part with the same candidates and the same gamma.
    """

    gammas: Any
    cv: Any
    # Cross-validation chooses the prefix; these are no parameters of the CV classes.
    early_stopping = False
    validation_fraction = 0.1
    n_iter_no_change = None
    tol = 0.0

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
        self.gammas_ = self._gamma_grid(samples)
        splits = self._splits(samples)
        paths = [self._fold_losses(samples, gamma, splits, budgets) for gamma in self.gammas_]
        self.cv_loss_path_ = np.array(paths)
        mean = self.cv_loss_path_.mean(axis=1)
        # Among equal losses the smallest model, then the first gamma.
        n_best, best = np.argwhere((mean == mean.min()).T)[0]
        self.gamma_ = self.gammas_[best]
        dealt = deal(budgets)[: int(n_best) + 1]
        chosen = np.bincount(dealt, minlength=len(budgets)).tolist()
        return self._fit(samples, None, self.gamma_, chosen)

    def _gamma_grid(self, samples: Samples) -> list[Any]:
        """The gammas to try; the parameter `gamma` alone where there is nothing to vary."""
        varies = isinstance(self.kernel, str) and self.kernel in _KERNELS_WITH_GAMMA
        if self.gammas is None:
            if not varies or self.gamma != "scale":
                return [self.gamma]
            rows = np.flatnonzero(samples.weights > 0)
            scale = scale_gamma(samples.X[rows], samples.weights[rows])
            return [scale * factor for factor in GAMMA_FACTORS]
        if not varies:
            raise ValueError(f"gammas has no meaning for kernel={self.kernel!r}")
        gammas = [float(gamma) for gamma in np.atleast_1d(self.gammas)]
        for gamma in gammas:
            parameters.check_real("gammas", gamma, above=True)
        return list(gammas)

    def _splits(self, samples: Samples) -> list[tuple[Array, Array]]:
        """Training and test rows of each fold, rows of weight 0 left out."""
        positive = samples.weights > 0
        rows = np.flatnonzero(positive)
        classifier = is_classifier(self)
        target = parameters.class_codes(samples.Y[rows]) if classifier else samples.Y[rows, 0]
        folds = check_cv(self.cv, target, classifier=classifier)
        splits = [(rows[train], rows[test]) for train, test in folds.split(rows, target)]
        if not all(len(train) and len(test) for train, test in splits):
            raise ValueError("cv: every split needs training and test rows")
        return splits

    def _fold_losses(
        self,
        samples: Samples,
        gamma: Any,
        splits: list[tuple[Array, Array]],
        budgets: list[int],
    ) -> Array:
        """Losses on the test rows of each fold after 1, 2, ... steps, (n_folds, n_steps)."""
        rows = np.flatnonzero(samples.weights > 0)
        kernel = self._kernel(samples, rows, gamma)
        dictionary = self._dictionary(kernel, samples.X, rows, sum(budgets))
        train = samples.take(rows)
        route = self._route(train, dictionary, len(splits) * sum(budgets))
        functions, complete = dictionary.atoms.functions, route == "gram"
        centred, n_atoms = self.fit_intercept, len(dictionary)
        total = gather(functions, train, n_atoms, centred=centred, complete=complete)
        losses = []
        for inside, test in splits:
            outside = np.setdiff1d(rows, inside)
            part = gather(
                functions,
                samples.take(outside),
                n_atoms,
                centred=centred,
                complete=complete,
                origin=total.origin,
            )
            equations = normal_equations(
                total.without(part),
                centred=centred,
                alpha=self.alpha,
                functions=functions,
                samples=samples.take(inside),
            )
            barred = None if dictionary.rows is None else np.isin(dictionary.rows, outside)
            search = Search(equations, self.fitting, budgets, barred)
            search.extend(sum(budgets))
            path, support = search.path()
            on_test = held_out_losses(path, dictionary.atoms.take(support), samples.take(test))
            deviations = (samples.Y[test] - equations.target_mean) ** 2
            constant = np.average(deviations.mean(axis=1), weights=samples.weights[test])
            losses.append(_padded(float(constant), on_test, sum(budgets)))
        return np.array(losses)


def _padded(constant: float, losses: Array, n_steps: int) -> Array:
    """Losses of a path that ended early, its last one repeated (`constant` if it is empty)."""
    last = losses[-1] if len(losses) else constant
    return np.concatenate([losses, np.full(n_steps - len(losses), last)])


class KernelMatchingPursuitRegressorCV(
    RegressorMixin, ExpansionRegressor, _NumberTargets, _CrossValidated
):
    """Regression by kernel matching pursuit, gamma and budget chosen by cross-validation.

    PARAMETERS_HERE

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
        gammas: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fitting: str = "prefit",
        dictionary: Any = None,
        n_candidates: int | float | None = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        route: str = "auto",
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fitting = fitting
        self.dictionary = dictionary
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.route = route
        self.cv = cv
        self.random_state = random_state


class KernelMatchingPursuitClassifierCV(
    ClassifierMixin, ExpansionClassifier, _ClassTargets, _CrossValidated
):
    """Classification by kernel matching pursuit, gamma and budget chosen by cross-validation.

    PARAMETERS_HERE

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
        gammas: Any = None,
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
        route: str = "auto",
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fitting = fitting
        self.dictionary = dictionary
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.route = route
        self.cv = cv
        self.random_state = random_state
