"""What the matching pursuit estimators share: parameters, stages, truncation, prediction.

`MatchingPursuit` turns what the user says into values (a kernel, a dictionary, a `Method`, a
loss) and keeps the path that a pursuit found; `PathClassifier` and `PathRegressor` predict at
every step of it. How the path is found stands in ``estimators.py``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from pursuit import _validation
from pursuit._arrays import namespace_of, to_numpy
from pursuit._typing import Array, Watch
from pursuit._validation import Samples, called, class_codes, read_data, signed_targets
from pursuit._warnings import warn
from pursuit.base.arrays import native, through_host
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.estimators import (
    ExpansionClassifier,
    ExpansionEstimator,
    ExpansionRegressor,
    squeeze_binary,
)
from pursuit.base.intervals import IntervalRegressor
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.dictionary import (
    Dictionary,
    always_in,
    draw_candidates,
    n_candidate_rows,
    penalised,
    resolve_dictionary,
)
from pursuit.expansion.basis_functions import AtomSet
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.path import CoefficientPath, staged_values
from pursuit.greedy.any_loss import LossRule
from pursuit.greedy.make_pursuit import Method
from pursuit.greedy.multi_output import MultiOutputPursuit
from pursuit.greedy.path_losses import inverse_temperatures, left_out_quantiles
from pursuit.greedy.stopping import Fit, taken, warn_short
from pursuit.kernels import Kernel, is_precomputed
from pursuit.linalg import blocks
from pursuit.linalg.memory import require_memory
from pursuit.losses import LOSSES, Loss, Poisson, SquaredError, resolve_loss
from pursuit.optimize.variable_projection import Hinge

__all__ = ["MatchingPursuit", "PathClassifier", "PathRegressor"]

# Fitted attributes with one entry a step.
_LOSS_PATHS = (
    "train_loss_path_",
    "validation_loss_path_",
    "validation_score_path_",
    "leave_one_out_loss_path_",
    "bound_path_",
)


class PathModel(ExpansionEstimator):
    """A fitted prefix of a `CoefficientPath`: its stages and its shorter prefixes."""

    route: str
    random_state: Any
    stop_reason_: str
    train_loss_path_: Array
    inverse_temperature_path_: Array
    # What models of version 0.1.0 were fitted under.
    loss_: Loss = LOSSES["squared_error"]

    def _store(self, atoms: AtomSet, path: CoefficientPath, rows: Array | None) -> None:
        """Set the fitted attributes of an expansion of `path.n_steps` steps."""
        coefficients, intercept = path.coefficients(path.n_steps)
        n_vectors = coefficients.shape[1]
        atoms = atoms.take(np.arange(n_vectors))
        self.path_: CoefficientPath | None = path
        self._store_expansion(
            KernelExpansion(atoms, coefficients, intercept),
            None if rows is None else rows[:n_vectors],
        )
        self.n_iter_ = path.n_steps
        self.n_components_ = n_vectors - path.n_always

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Targets as a table, and weights, of held-out rows."""
        raise NotImplementedError

    def _read_validation(self, X_val: Any, y_val: Any, n_outputs: int) -> Samples | None:
        """Checked held-out rows, or None."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val must be given together")
        X = read_data(self, X_val, name="X_val", reset=False, accept_sparse="csr")
        Y, weights = self._code_targets(y_val, X.shape[0])
        if len(Y) != X.shape[0]:
            raise ValueError(f"X_val has {X.shape[0]} rows, but y_val has {len(Y)}")
        if Y.shape[1] != n_outputs:
            raise ValueError(f"y has {n_outputs} targets, but y_val has {Y.shape[1]}")
        return Samples(X, Y, weights)

    def _require_path(self) -> CoefficientPath:
        """The coefficients of every prefix, or an error where the file left them out."""
        check_is_fitted(self)
        if self.path_ is None:
            raise ValueError(
                "this model was saved with staged=False: only the complete model is there, "
                "staged predictions and truncate are not available"
            )
        return self.path_

    @native
    def staged_outputs(self, X: Any) -> Iterator[Array]:
        """Outputs of the expansion after 1, 2, ... steps.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        outputs : ndarray of shape (n_samples, n_outputs)
            What the loss sees: decision values, or the predictions before the link of the loss.
        """
        path = self._require_path()
        rows = self._validated(X)
        atoms = self.expansion_.atoms
        if not len(atoms):
            return
        require_memory(
            8.0 * rows.shape[0] * len(atoms),
            f"predicting {rows.shape[0]} rows at every step of {len(atoms)} vectors",
            "give the rows in parts",
        )
        on_device = namespace_of(rows) is not None
        n_atoms = len(atoms)
        values = (
            atoms.functions(rows) if on_device else blocks.evaluate(atoms.functions, rows, n_atoms)
        )
        for outputs in staged_values(path, values):
            yield outputs if on_device else outputs.copy()

    @through_host
    def truncate(self, n_components: int) -> Self:
        """Return a copy with the first vectors and *their* optimal coefficients.

        It equals the model that ``fit`` with this `n_components` gives on the same data.

        Parameters
        ----------
        n_components : int
            Budget of the copy, at least 1 and at most ``n_iter_``.

        Returns
        -------
        model : estimator
            A fitted estimator of the same class; the training data are not needed.

        Raises
        ------
        ValueError
            If `n_components` is out of range, or the model was saved without its path.
        """
        path = self._require_path()
        n = n_components
        if not (isinstance(n, (int, np.integer)) and 1 <= n <= path.n_steps):
            raise ValueError(
                f"n_components must be an integer from 1 to {path.n_steps}, got {n_components!r}"
            )
        model = copy.copy(self)
        per_class = np.ndim(self.n_components) == 1
        lengths = [length - path.n_always for length in path.lengths(int(n))]
        model.n_components = lengths if per_class else int(n)
        rows = getattr(self, "support_", None)
        model._store(self.expansion_.atoms, path.first(int(n)), rows)
        for name in _LOSS_PATHS:
            if hasattr(self, name):
                setattr(model, name, getattr(self, name)[: model.n_iter_])
        model.stop_reason_ = "n_components" if n < path.n_steps else self.stop_reason_
        return model


@constructor
class MatchingPursuit(CallbackSupport, PathModel, KernelParameters):
    """Parameters of matching pursuit, and what the user says by them.

    A subclass's ``fit`` runs the pursuit on `_read_for_loss`, `_dictionary` and `_method` and
    ends with `_store_fit`.
    """

    _takes_objects = True

    n_components: Any = positional(default=100)
    fitting: str = "prefit"
    loss: Any = "squared_error"
    refit_every: int = 1
    selection: str = "loss"
    dictionary: Any = None
    n_candidates: int | float | None = None
    fit_intercept: bool = True
    alpha: float | str = "auto"
    penalty: str = "identity"
    always: Any = None

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        _validation.check_choice("fitting", self.fitting, ("prefit", "backfit", "basic"))
        _validation.check_choice("route", self.route, ("auto", "gram", "direct"))
        _validation.check_choice("selection", self.selection, ("loss", "squared_error"))
        _validation.check_choice("fit_intercept", self.fit_intercept, (True, False))
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            _validation.check_real("alpha", self.alpha)
        _validation.check_choice("penalty", self.penalty, ("identity", "norm"))
        _validation.check_integer("refit_every", self.refit_every)
        if self.fitting == "basic" and self.refit_every != 1:
            raise ValueError("refit_every has no meaning for fitting='basic', which never re-fits")
        if self.fitting == "basic" and self.always is not None:
            raise ValueError("always needs fitting='prefit' or 'backfit': it takes re-fits")

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
        if isinstance(self.loss, str) and self.loss == "hinge" and is_classifier(self):
            return self._hinge()
        return resolve_loss(
            self.loss,
            classifier=is_classifier(self),
            n_outputs=samples.Y.shape[1],
            one_basis=len(budgets) == 1,
        )

    def _hinge(self) -> Loss:
        """The hinge loss, if the other parameters go with it."""
        needed = {
            "refit_every": self.refit_every == 1,
            "fit_intercept": bool(self.fit_intercept),
            "alpha": self.alpha == "auto" or float(self.alpha) > 0.0,
            "fitting": self.fitting != "basic",
            "always": self.always is None,
        }
        wrong = next((name for name, good in needed.items() if not good), None)
        if wrong is not None:
            raise ValueError(
                f"loss='hinge' is fitted by a support vector machine at every step, with an "
                f"intercept and alpha > 0 on all functions: {wrong}={getattr(self, wrong)!r} does "
                "not go with it"
            )
        return Hinge()

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

    def _candidates(self, samples: Samples, rows: Array, budget: int) -> Array:
        """Rows that candidate functions may be centred on: all of `rows`, or a random part."""
        return self._drawn(samples, rows, n_candidate_rows(self.n_candidates, len(rows), budget))

    def _drawn(self, samples: Samples, rows: Array, number: int) -> Array:
        """So many of the rows, drawn among the distinct ones; all where there are no more."""
        # Equal rows of kernel values, or of two classes with their own kernels, are two functions.
        by_row = is_precomputed(self.kernel) or isinstance(self.kernel, Mapping)
        X = None if by_row or number >= len(rows) else samples.X
        return draw_candidates(rows, number, self.random_state, X)

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
        for name in ("n_candidates", "search_candidates"):
            if getattr(self, name, None) is not None and found.rows is None:
                raise ValueError(f"{name} has no meaning with a dictionary of given centres")
        found = penalised(found, self.penalty, samples.X)
        if self.always is None:
            return found
        return always_in(found, self.always, samples.X, getattr(self, "feature_names_in_", None))

    def _store_fit(
        self,
        fit: Fit,
        dictionary: Dictionary,
        train: Samples,
        budgets: list[int],
        method: Method,
        loss: Loss,
    ) -> Self:
        """Set all fitted attributes, and say where the path ended early."""
        warn_short(fit, sum(budgets))
        n_free = dictionary.penalty.n_free
        if fit.path.n_always < n_free:
            warn(
                f"{n_free - fit.path.n_always} of the {n_free} functions of always are constant or "
                "combinations of the others, and are left out",
                ConvergenceWarning,
            )
        return self._store_path(fit, dictionary, train, method, loss)

    def _watch(
        self,
        watcher: Watcher | None,
        dictionary: Dictionary,
        train: Samples,
        method: Method,
        loss: Loss,
    ) -> Watch[MultiOutputPursuit] | None:
        """What looks at a pursuit after each step, or None where nobody wants to know."""
        if watcher is None:
            return None

        def look(pursuit: MultiOutputPursuit) -> str | None:
            def store(model: Self) -> None:
                model._store_path(taken(pursuit), dictionary, train, method, loss)

            return watcher(store)

        return look

    def _store_path(
        self,
        fit: Fit,
        dictionary: Dictionary,
        train: Samples,
        method: Method,
        loss: Loss,
        total: float | None = None,
    ) -> Self:
        """Set all fitted attributes from a path on the rows `train`.

        Or on more rows, of which these are some, and whose weight is `total`.
        """
        atoms = dictionary.atoms.take(fit.support)
        rows = None if dictionary.rows is None else dictionary.rows[fit.support]
        self._store(atoms, fit.path, rows)
        self.n_candidates_ = len(dictionary)
        self.loss_ = loss
        self.train_loss_path_ = fit.train_losses
        self.stop_reason_ = fit.reason
        setting = {"fit_intercept": self.fit_intercept, "basic": self.fitting == "basic"}
        ridge = dictionary.ridge(method.alpha, fit.support)
        self._calibrate(fit.path, atoms, train, loss=loss, alpha=ridge, total=total, **setting)
        return self

    def _own_weights(self, samples: Samples) -> Array:
        """Weights of the rows themselves, without those of their classes."""
        return samples.weights

    def _staged_models(
        self, fit: Fit, dictionary: Dictionary, train: Samples, method: Method, loss: Loss
    ) -> Iterator[Self]:
        """The models after 1, 2, ... steps of a path, or after none of an empty one.

        They take rows without the names of their features.
        """
        model = copy.copy(self)._store_path(fit, dictionary, train, method, loss)
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
        if not model.n_iter_:
            yield model
        for n in range(1, model.n_iter_ + 1):
            yield model.truncate(n)

    def _calibrate(
        self, path: CoefficientPath, atoms: AtomSet, train: Samples, **setting: Any
    ) -> None:
        """What the training rows tell of the errors of predictions, at every step."""
        raise NotImplementedError


@constructor
class PathClassifier(ExpansionClassifier, MatchingPursuit):
    """Classes, also at every step of the path."""

    multi_class: str = "shared"
    class_weight: Mapping[Any, float] | str | None = None

    def _calibrate(
        self, path: CoefficientPath, atoms: AtomSet, train: Samples, **setting: Any
    ) -> None:
        """The temperatures of the probabilities."""
        self.inverse_temperature_path_ = inverse_temperatures(path, atoms, train, **setting)

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets +1 and -1, with the weights of their classes."""
        with called("y_val"):
            y = column_or_1d(y)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"y_val has the label {y[unknown][0]}, which y does not have")
        codes = np.searchsorted(self.classes_, y)
        return signed_targets(codes, len(self.classes_)), self._class_weights[codes]

    def _own_weights(self, samples: Samples) -> Array:
        """Weights over those of the classes."""
        return np.asarray(samples.weights / self._class_weights[class_codes(samples.Y)])

    @property
    def temperature_(self) -> float:  # type: ignore[override]
        """Temperature of the softmax (sigmoid for two classes) behind `predict_proba`."""
        path = to_numpy(self.inverse_temperature_path_)
        if not self.n_iter_:
            return 1.0
        # Row k holds the number of steps from which the inverse temperature applies.
        current = int(np.searchsorted(path[:, 0], self.n_iter_, side="right")) - 1
        return float(1.0 / path[current, 1])

    @native
    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Decision values of the model after 1, 2, ... steps.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            As `decision_function` of ``truncate(n)``.
        """
        for outputs in self.staged_outputs(X):
            yield squeeze_binary(outputs)

    @native
    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Labels of the model after 1, 2, ... steps.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        y : ndarray of shape (n_samples,)
            As `predict` of ``truncate(n)``.
        """
        for outputs in self.staged_outputs(X):
            yield self._answers().prediction(outputs)


@constructor
class PathRegressor(IntervalRegressor, ExpansionRegressor, MatchingPursuit):
    """Numbers, also at every step of the path."""

    def _calibrate(
        self, path: CoefficientPath, atoms: AtomSet, train: Samples, **setting: Any
    ) -> None:
        """The quantiles of the errors."""
        self._error_quantile_path = left_out_quantiles(path, atoms, train, **setting)
        self._store_error_quantiles(self.n_iter_)

    def _store_error_quantiles(self, n_steps: int) -> None:
        """Those of the model after so many steps."""
        steps, tables = getattr(self, "_error_quantile_path", ((), ()))
        stage = int(np.searchsorted(steps, n_steps, side="right")) - 1
        self.error_quantiles_ = tables[stage] if stage >= 0 else None

    @through_host
    def truncate(self, n_components: int) -> Self:
        """Return a copy with the first vectors, their optimal coefficients and its own intervals.

        Parameters
        ----------
        n_components : int
            Budget of the copy, at least 1 and at most ``n_iter_``.

        Returns
        -------
        model : estimator
            A fitted estimator of the same class; the training data are not needed.
        """
        model = super().truncate(n_components)
        if model.n_iter_ < self.n_iter_:
            model._store_error_quantiles(model.n_iter_)
        return model

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets as a table."""
        with called("y_val"):
            Y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y_val")
        return Y.reshape(len(Y), -1), np.ones(len(Y))

    def __sklearn_tags__(self) -> Any:
        """Counts must not be negative."""
        tags = super().__sklearn_tags__()
        counts = isinstance(self.loss, Poisson) or self.loss == "poisson"
        tags.target_tags.positive_only = counts
        return tags

    @native
    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions of the model after 1, 2, ... steps.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            As `predict` of ``truncate(n)``.
        """
        for outputs in self.staged_outputs(X):
            yield self._answers().prediction(outputs)
