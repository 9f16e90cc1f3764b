"""How an estimator reads its parameters, stops its path and is fitted.

What the user says becomes values here (a kernel, a dictionary, a `Method`, a `Stopping`); the
algorithm that a subclass names in `_pursue` sees only these and valid arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from pursuit import _validation
from pursuit._typing import Array
from pursuit._validation import Samples, class_codes
from pursuit.dictionary import Dictionary, draw_candidates, n_candidate_rows, resolve_dictionary
from pursuit.greedy.any_loss import LossRule
from pursuit.greedy.make_pursuit import Method
from pursuit.greedy.multi_output import round_robin
from pursuit.greedy.path_losses import (
    bound_path,
    held_out_losses,
    inverse_temperatures,
    leave_one_out_losses,
)
from pursuit.greedy.stopping import Fit, Stopping, warn_short
from pursuit.kernels import Kernel
from pursuit.losses import Loss, SquaredError, resolve_loss
from pursuit.matching_pursuit.cross_validation import (
    fold_losses,
    gamma_grid,
    hold_out,
    index_splits,
)
from pursuit.matching_pursuit.expansion_model import ExpansionModel

__all__ = ["CrossValidatedEstimator", "HeldOutEstimator", "PathEstimator"]


class PathEstimator(ExpansionModel):
    """Parameters, dictionary and fit of an estimator whose path a greedy pursuit gives.

    A subclass sets `_pursue`, which runs the pursuit on valid arrays.
    """

    _pursue: Callable[[Dictionary, Samples, list[int], Method, Stopping], Fit]

    n_components: Any
    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: Mapping[str, Any] | None
    fitting: str
    loss: Any
    refit_every: int
    selection: str
    dictionary: Any
    n_candidates: int | float | None
    fit_intercept: bool
    alpha: float | str
    route: str
    random_state: Any

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        _validation.check_choice("fitting", self.fitting, ("prefit", "backfit", "basic"))
        _validation.check_choice("route", self.route, ("auto", "gram", "direct"))
        _validation.check_choice("selection", self.selection, ("loss", "squared_error"))
        _validation.check_choice("fit_intercept", self.fit_intercept, (True, False))
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            _validation.check_real("alpha", self.alpha)
        _validation.check_integer("refit_every", self.refit_every)
        if self.fitting == "basic" and self.refit_every != 1:
            raise ValueError("refit_every has no meaning for fitting='basic', which never re-fits")

    def _read_for_loss(self, X: Any, y: Any, sample_weight: Any) -> tuple[Samples, list[int]]:
        """Checked rows and budgets; targets for which the loss is defined."""
        samples = self._read(X, y, sample_weight)
        budgets = self._budgets(samples.Y.shape[1])
        used = samples.weights > 0
        # Rows of weight zero may hold anything; the others keep their numbers.
        targets = np.where(used[:, None], samples.Y, samples.Y[used][:1])
        self._named_loss(samples, budgets).check_targets(targets)
        return samples, budgets

    def _named_loss(self, samples: Samples, budgets: list[int]) -> Loss:
        """The loss that the user names."""
        return resolve_loss(
            self.loss,
            classifier=is_classifier(self),
            n_outputs=samples.Y.shape[1],
            one_basis=len(budgets) == 1,
        )

    def _loss(self, samples: Samples, budgets: list[int]) -> Loss:
        """The loss, with its numbers resolved on the training targets."""
        return self._named_loss(samples, budgets).resolved(samples.Y, samples.weights)

    def _method(self, loss: Loss) -> Method:
        """How to fit: in closed form for squared error with re-fits at each step."""
        closed_form = isinstance(loss, SquaredError) and self.refit_every == 1
        rule = None if closed_form else LossRule(loss, self.refit_every, self.selection)
        ridge = self._ridge(loss)
        return Method(self.fitting, self.fit_intercept, ridge, self.route, rule)

    def _ridge(self, loss: Loss) -> float:
        """The ridge given, or the default of the loss."""
        return float(loss.default_alpha if self.alpha == "auto" else self.alpha)

    def _kernel(self, samples: Samples, gamma: Any) -> Kernel | dict[int, Kernel]:
        """The kernel, or one a class, with its numbers resolved on the rows of positive weight."""
        rows = np.flatnonzero(samples.weights > 0)
        part = samples.take(rows) if len(rows) < samples.X.shape[0] else samples

        def resolved(kernel: Any) -> Kernel:
            return self._resolved_kernel(part, kernel=kernel, gamma=gamma)

        if not isinstance(self.kernel, Mapping):
            return resolved(self.kernel)
        if not is_classifier(self):
            raise ValueError("kernel: a kernel for each class is only for classifiers")
        labels = self.classes_.tolist()
        if set(self.kernel) != set(labels):
            raise ValueError(
                f"kernel must have one entry for each of the classes {labels}, "
                f"got {list(self.kernel)}"
            )
        return {code: resolved(self.kernel[label]) for code, label in enumerate(labels)}

    def _candidates(self, rows: Array, budget: int) -> Array:
        """Rows that candidate functions may be centred on: all of `rows`, or a random part."""
        number = n_candidate_rows(self.n_candidates, len(rows), budget)
        return draw_candidates(rows, number, self.random_state)

    def _dictionary(
        self, samples: Samples, gamma: Any, candidates: Array, training: Array
    ) -> Dictionary:
        """Functions centred on the candidate rows, or what the user lists."""
        found = resolve_dictionary(
            self.dictionary,
            self._kernel(samples, gamma),
            samples.X,
            candidates,
            codes=class_codes(samples.Y) if isinstance(self.kernel, Mapping) else None,
            training=training,
            weights=samples.weights,
        )
        if self.n_candidates is not None and found.rows is None:
            raise ValueError("n_candidates has no meaning with a dictionary of given centres")
        return found

    def _fit(
        self,
        samples: Samples,
        rows: Array,
        dictionary: Dictionary,
        budgets: list[int],
        stopping: Callable[[Samples, Loss], Stopping],
    ) -> Self:
        """Fit on some `rows` of the caller's `samples`."""
        train = samples.take(rows) if len(rows) < samples.X.shape[0] else samples
        loss = self._loss(train, budgets)
        method = self._method(loss)
        fit = self._pursue(dictionary, train, budgets, method, stopping(train, loss))
        warn_short(fit, sum(budgets))
        atoms = dictionary.atoms.take(fit.support)
        self._store(
            atoms, fit.path, None if dictionary.rows is None else dictionary.rows[fit.support]
        )
        self.loss_ = loss
        self.train_loss_path_ = fit.train_losses
        self.stop_reason_ = fit.reason
        if is_classifier(self):
            self.inverse_temperature_path_ = inverse_temperatures(
                fit.path,
                atoms,
                train,
                fit_intercept=self.fit_intercept,
                basic=self.fitting == "basic",
                loss=loss,
                alpha=method.alpha,
            )
        self._store_watched(fit.watched_losses)
        return self

    def _store_watched(self, losses: Array | None) -> None:
        """Store the losses that early stopping followed."""


class HeldOutEstimator(PathEstimator):
    """`fit` with early stopping: on held-out rows, by leave-one-out or by a bound."""

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
        samples, budgets = self._read_for_loss(X, y, sample_weight)
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
        candidates = self._candidates(rows, sum(budgets))
        dictionary = self._dictionary(samples, self.gamma, candidates, rows)

        def stopping(train: Samples, loss: Loss) -> Stopping:
            return self._stopping(train, loss, validation, places(dictionary.rows, rows))

        return self._fit(samples, rows, dictionary, budgets, stopping)

    def _check_parameters(self) -> None:
        """Add those of early stopping to the common checks."""
        super()._check_parameters()
        choices = (False, True, "loo", "bound")
        _validation.check_choice("early_stopping", self.early_stopping, choices)
        _validation.check_real("tol", self.tol)
        _validation.check_real("validation_fraction", self.validation_fraction, 0, 1, above=True)
        _validation.check_integer("n_iter_no_change", self.n_iter_no_change, optional=True)
        if self.early_stopping == "loo" and self.fitting == "basic":
            raise ValueError(
                "early_stopping='loo' needs fitting='prefit' or 'backfit': basic matching "
                "pursuit has no closed-form leave-one-out"
            )

    def _error_tolerance(self, train: Samples) -> float | None:
        """The error from which on a row is an error of theorem 3; None: a wrong class."""
        return None

    def _stopping(
        self, train: Samples, loss: Loss, validation: Samples | None, centres: Array | None
    ) -> Stopping:
        """The rule for ending the path."""
        patience, tol = self.n_iter_no_change, self.tol
        if self.early_stopping == "loo":
            if self._method(loss).rule is not None:
                raise ValueError(
                    "early_stopping='loo' is closed-form for loss='squared_error' with "
                    "refit_every=1 only"
                )
            intercept = self.fit_intercept
            return Stopping(
                lambda path, atoms, support: leave_one_out_losses(path, atoms, train, intercept),
                patience,
                tol,
            )
        if self.early_stopping == "bound":
            own = one_function_a_row(centres)
            tolerance = self._error_tolerance(train)
            if tolerance is not None:
                self.error_tolerance_ = tolerance
            return Stopping(
                lambda path, atoms, support: bound_path(
                    path, atoms, train, own[support], tolerance, loss
                ),
                patience,
                tol,
            )
        if validation is None:
            return Stopping(tol=tol)
        loss.check_targets(validation.Y, "y_val")
        return Stopping(
            lambda path, atoms, support: held_out_losses(path, atoms, validation, loss),
            patience,
            tol,
        )

    def _store_watched(self, losses: Array | None) -> None:
        """Store the losses under the name of what they were measured on."""
        names = {True: "validation_loss_path_", "loo": "leave_one_out_loss_path_"}
        names["bound"] = "bound_path_"
        stale = [*names.values(), *(["error_tolerance_"] * (self.early_stopping != "bound"))]
        for name in stale:
            if hasattr(self, name):
                delattr(self, name)
        if losses is not None:
            setattr(self, names[self.early_stopping], losses)


class CrossValidatedEstimator(PathEstimator):
    """`fit` by cross-validation: K-fold paths over gamma, then a fit on all rows."""

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
        samples, budgets = self._read_for_loss(X, y, sample_weight)
        splits = index_splits(self.cv, samples, classifier=is_classifier(self))
        self.gammas_ = gamma_grid(self.gammas, self.kernel, self.gamma, samples)
        rows = np.flatnonzero(samples.weights > 0)
        candidates = self._candidates(rows, sum(budgets))

        method = self._method(self._loss(samples.take(rows), budgets))

        def dictionary(gamma: Any) -> Dictionary:
            return self._dictionary(samples, gamma, candidates, rows)

        def losses(dictionary: Dictionary) -> Array:
            return fold_losses(dictionary, samples, splits, budgets, method)

        self.cv_loss_path_ = np.array([losses(dictionary(gamma)) for gamma in self.gammas_])
        mean = self.cv_loss_path_.mean(axis=1)
        # Among equal losses the smallest model, then the first gamma.
        n_before, best = np.argwhere((mean == mean.min()).T)[0]
        self.gamma_ = self.gammas_[best]
        chosen = np.bincount(round_robin(budgets)[: n_before + 1], minlength=len(budgets)).tolist()
        final = dictionary(self.gamma_)
        return self._fit(samples, rows, final, chosen, lambda train, loss: Stopping())


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
