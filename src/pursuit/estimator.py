"""What every estimator with a kernel expansion shares: prediction, stages and truncation."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from pursuit import blocks
from pursuit.atoms import AtomSet
from pursuit.backend import Array
from pursuit.calibration import probabilities
from pursuit.expansion import CoefficientPath, KernelExpansion, staged_values
from pursuit.gram import Samples
from pursuit.kernels import Precomputed, is_precomputed
from pursuit.losses import LOSSES, Loss, Poisson
from pursuit.parameters import (
    FLOATS,
    check_choice,
    check_integer,
    check_weights,
    class_weights,
    signed_targets,
)

__all__ = ["ExpansionClassifier", "ExpansionModel", "ExpansionRegressor"]

# Fitted attributes with one entry a step.
_LOSS_PATHS = (
    "train_loss_path_",
    "validation_loss_path_",
    "leave_one_out_loss_path_",
    "bound_path_",
)


class ExpansionModel(BaseEstimator):
    """Base of estimators whose fitted model is a `KernelExpansion`.

    A subclass's ``fit`` calls `_store` with the atoms, their path and the training rows behind
    them; everything else follows from these.
    """

    def __sklearn_tags__(self) -> Any:
        """Sparse input is accepted; a precomputed kernel makes the input pairwise."""
        tags = super().__sklearn_tags__()
        kernel = getattr(self, "kernel", None)
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(kernel)
        return tags

    def _store(self, atoms: AtomSet, path: CoefficientPath, rows: Array | None) -> None:
        """Set the fitted attributes of an expansion of `path.n_steps` steps."""
        coefficients, intercept = path.coefficients(path.n_steps)
        n_vectors = coefficients.shape[1]
        atoms = atoms.take(np.arange(n_vectors))
        self.path_: CoefficientPath | None = path
        self.expansion_ = KernelExpansion(atoms, coefficients, intercept)
        self.kernel_ = atoms.kernel
        self.dual_coef_ = coefficients
        self.intercept_ = intercept
        self.n_components_ = n_vectors
        self.n_iter_ = path.n_steps
        for name in ("support_", "support_vectors_"):
            if hasattr(self, name):
                delattr(self, name)
        if rows is not None:
            self.support_ = rows[:n_vectors]
        if not isinstance(atoms.kernel, Precomputed) and atoms.centres is not None:
            self.support_vectors_ = atoms.centres

    @property
    def component_names_(self) -> list[str]:
        """What each function is: its kernel with its numbers, or the user's name for it."""
        return self.expansion_.atoms.names

    def _validated(self, X: Any) -> Any:
        """Rows for prediction, checked against those of ``fit``."""
        if not hasattr(self, "expansion_"):
            check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)

    def _outputs(self, X: Any) -> Array:
        """Outputs of the expansion on checked rows, (n_rows, n_outputs)."""
        rows = self._validated(X)
        return self.expansion_(rows)

    def _budgets(self, n_outputs: int) -> list[int]:
        """Budget of each basis: one basis for all outputs."""
        check_integer("n_components", self.n_components)
        return [int(self.n_components)]

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked training rows, targets as a table, weights."""
        raise NotImplementedError

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Targets as a table, and weights, of held-out rows."""
        raise NotImplementedError

    def _read_validation(self, X_val: Any, y_val: Any, n_outputs: int) -> Samples | None:
        """Checked held-out rows, or None."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val must be given together")
        X = validate_data(self, X_val, reset=False, accept_sparse="csr", dtype=FLOATS)
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
        values = blocks.evaluate(atoms.functions, rows, len(atoms)) if len(atoms) else None
        if values is None:
            return
        for outputs in staged_values(path, values):
            yield outputs.copy()

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
        model.n_components = path.lengths(int(n)) if per_class else int(n)
        rows = getattr(self, "support_", None)
        model._store(self.expansion_.atoms, path.first(int(n)), rows)
        for name in _LOSS_PATHS:
            if hasattr(self, name):
                setattr(model, name, getattr(self, name)[: model.n_iter_])
        model.stop_reason_ = "n_components" if n < path.n_steps else self.stop_reason_
        model._after_truncate()
        return model

    def _after_truncate(self) -> None:
        """Bring further fitted attributes in line with the shorter path."""

    n_components: Any
    stop_reason_: str
    # What models of version 0.1.0 were fitted under.
    loss_: Loss = LOSSES["squared_error"]


class ExpansionClassifier(ExpansionModel):
    """Prediction of classes from decision values: one column for two classes, else one each."""

    classes_: Array
    inverse_temperature_path_: Array
    multi_class: str
    class_weight: Mapping[Any, float] | str | None

    def _budgets(self, n_outputs: int) -> list[int]:
        """One budget for a shared basis, or one a class."""
        check_choice("multi_class", self.multi_class, ("shared", "ovr"))
        per_class = np.ndim(self.n_components) == 1
        if self.multi_class == "shared" or (n_outputs == 1 and not per_class):
            return super()._budgets(n_outputs)
        if not per_class:
            (total,) = super()._budgets(n_outputs)
            each, left = divmod(total, n_outputs)
            return [each + (b < left) for b in range(n_outputs)]
        if len(self.n_components) != n_outputs:
            raise ValueError(
                f"n_components has {len(self.n_components)} entries, but there are {n_outputs} "
                "one-vs-rest bases"
            )
        for budget in self.n_components:
            check_integer("n_components", budget)
        return [int(budget) for budget in self.n_components]

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows, targets +1 and -1, weights with those of the classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS)
        check_classification_targets(y)
        weights = check_weights(sample_weight, X.shape[0])
        self.classes_, codes = np.unique(y, return_inverse=True)
        present = np.bincount(codes, weights=weights > 0) > 0
        if not present.all():
            self.classes_ = self.classes_[present]
            codes = np.maximum(np.cumsum(present)[codes] - 1, 0)
        self._class_weights = class_weights(self.class_weight, self.classes_, codes, weights)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only ({self.classes_[0]}); a classifier needs rows of positive "
                "weight from at least 2 classes"
            )
        if not self._class_weights.all():
            unweighted = self.classes_[self._class_weights == 0][0]
            raise ValueError(f"class_weight is zero for the class {unweighted}")
        Y = signed_targets(codes, len(self.classes_))
        return Samples(X, Y, weights * self._class_weights[codes])

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets +1 and -1, with the weights of their classes."""
        y = column_or_1d(y)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"y_val has the label {y[unknown][0]}, which y does not have")
        codes = np.searchsorted(self.classes_, y)
        return signed_targets(codes, len(self.classes_)), self._class_weights[codes]

    @property
    def temperature_(self) -> float:
        """Temperature of the softmax (sigmoid for two classes) behind `predict_proba`."""
        path = self.inverse_temperature_path_
        if not self.n_iter_:
            return 1.0
        # Row k holds the number of steps from which the inverse temperature applies.
        current = int(np.searchsorted(path[:, 0], self.n_iter_, side="right")) - 1
        return float(1.0 / path[current, 1])

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for ``classes_[1]``.
        """
        return _squeeze_binary(self._outputs(X))

    def predict(self, X: Any) -> Array:
        """Class labels.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        return self._labels(self._outputs(X))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities: softmax of the decision values over ``temperature_``.

        The largest probability is always that of the class that ``predict`` gives.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return probabilities(self._outputs(X), 1.0 / self.temperature_)

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
            yield _squeeze_binary(outputs)

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
            yield self._labels(outputs)

    def _labels(self, outputs: Array) -> Array:
        """Labels of raw outputs; ties go to the first class."""
        binary = outputs.shape[1] == 1
        codes = (outputs[:, 0] > 0).astype(int) if binary else outputs.argmax(axis=1)
        labels: Array = self.classes_[codes]
        return labels


class ExpansionRegressor(ExpansionModel):
    """Prediction of numbers: one column a target, or a vector for a 1-d target."""

    loss: Any
    _one_dimensional: bool

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows, targets as a table, weights."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, multi_output=True, y_numeric=True
        )
        weights = check_weights(sample_weight, X.shape[0])
        self._one_dimensional = y.ndim == 1
        return Samples(X, np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1), weights)

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets as a table."""
        Y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y_val")
        return Y.reshape(len(Y), -1), np.ones(len(Y))

    def __sklearn_tags__(self) -> Any:
        """Several targets are accepted; counts must not be negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        counts = isinstance(self.loss, Poisson) or self.loss == "poisson"
        tags.target_tags.positive_only = counts
        return tags

    def predict(self, X: Any) -> Array:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the form of the training targets.
        """
        return self._shaped(self._outputs(X))

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
            yield self._shaped(outputs)

    def _shaped(self, outputs: Array) -> Array:
        """Predictions from outputs, in the form of the training targets."""
        predicted = self.loss_.mean(outputs)
        return predicted[:, 0] if self._one_dimensional else predicted


def _squeeze_binary(outputs: Array) -> Array:
    """One column as a vector."""
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs
