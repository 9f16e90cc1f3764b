"""What an estimator adds to its predictions when a path led to it: stages and truncation."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from pursuit._typing import Array
from pursuit._validation import FLOATS, Samples, signed_targets
from pursuit.base.estimators import (
    ClassPredictor,
    NumberPredictor,
    Predictor,
    squeeze_binary,
)
from pursuit.expansion.basis_functions import AtomSet
from pursuit.expansion.expansion import CoefficientPath, KernelExpansion, staged_values
from pursuit.linalg import blocks
from pursuit.losses import LOSSES, Loss, Poisson

__all__ = ["ExpansionClassifier", "ExpansionModel", "ExpansionRegressor"]

# Fitted attributes with one entry a step.
_LOSS_PATHS = (
    "train_loss_path_",
    "validation_loss_path_",
    "leave_one_out_loss_path_",
    "bound_path_",
)


class ExpansionModel(Predictor):
    """Base of estimators whose fitted model is a prefix of a `CoefficientPath`.

    A subclass's ``fit`` calls `_store` with the atoms, their path and the training rows behind
    them; everything else follows from these.
    """

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

    stop_reason_: str
    # What models of version 0.1.0 were fitted under.
    loss_: Loss = LOSSES["squared_error"]


class ExpansionClassifier(ClassPredictor, ExpansionModel):
    """Classes, also at every step of the path."""

    inverse_temperature_path_: Array

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets +1 and -1, with the weights of their classes."""
        y = column_or_1d(y)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"y_val has the label {y[unknown][0]}, which y does not have")
        codes = np.searchsorted(self.classes_, y)
        return signed_targets(codes, len(self.classes_)), self._class_weights[codes]

    @property
    def temperature_(self) -> float:  # type: ignore[override]
        """Temperature of the softmax (sigmoid for two classes) behind `predict_proba`."""
        path = self.inverse_temperature_path_
        if not self.n_iter_:
            return 1.0
        # Row k holds the number of steps from which the inverse temperature applies.
        current = int(np.searchsorted(path[:, 0], self.n_iter_, side="right")) - 1
        return float(1.0 / path[current, 1])

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


class ExpansionRegressor(NumberPredictor, ExpansionModel):
    """Numbers, also at every step of the path."""

    loss: Any

    def _code_targets(self, y: Any, n_rows: int) -> tuple[Array, Array]:
        """Held-out targets as a table."""
        Y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y_val")
        return Y.reshape(len(Y), -1), np.ones(len(Y))

    def __sklearn_tags__(self) -> Any:
        """Counts must not be negative."""
        tags = super().__sklearn_tags__()
        counts = isinstance(self.loss, Poisson) or self.loss == "poisson"
        tags.target_tags.positive_only = counts
        return tags

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
        """Means under the loss, in the form of the training targets."""
        return super()._shaped(self.loss_.mean(outputs))
