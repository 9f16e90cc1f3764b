"""Predictive intervals of regressors; the mathematics is in ``expansion/intervals.py``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import check_array, check_is_fitted

from pursuit._typing import Array
from pursuit._validation import check_real, check_weights
from pursuit.base.arrays import following, through_host
from pursuit.base.estimators import ExpansionRegressor
from pursuit.expansion.intervals import ALPHAS, error_quantiles, stored_quantile

__all__ = ["IntervalRegressor"]


class IntervalRegressor(ExpansionRegressor):
    """A regressor that knows the quantiles of its errors.

    Attributes
    ----------
    error_quantiles_ : ndarray of shape (n_levels, n_targets) or None
        At the levels `pursuit.expansion.intervals.ALPHAS`; None where nothing is known of them.
    """

    error_quantiles_: Array | None

    @through_host
    def predict_interval(self, X: Any, alpha: float = 0.1) -> tuple[Array, Array]:
        """Intervals that hold the target of a row with probability 1 - alpha.

        From the residuals of the training rows, each by the model without it (the jackknife of
        Barber, Candes, Ramdas and Tibshirani 2021), or from those that `calibrate_interval` saw.
        The first have no guarantee: the vectors are those that all rows chose, and with many
        vectors on few rows the intervals are too short.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        alpha : float, default=0.1
            Share of the targets that may lie outside, from 0.001 to below 1; on average over the
            rows. Of the levels stored the next one below is taken: 0.001, 0.002, 0.005, 0.01, 0.02,
            ..., 0.2, 0.25, ..., 0.95.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the form of the training targets; infinite where there were too few rows for the
            level (fewer than 1 / alpha - 1).

        Raises
        ------
        ValueError
            If `alpha` is out of range, or the model knows nothing of its errors: it was written
            by an older version, or its path ended before the first step.
        """
        check_real("alpha", alpha, ALPHAS[0], 1.0)
        check_is_fitted(self)
        quantiles = getattr(self, "error_quantiles_", None)
        if quantiles is None:
            raise ValueError(
                "this model knows nothing of its errors; calibrate_interval(X, y) tells it by rows "
                "that the fit has not seen"
            )
        middle, radius = self.predict(X), stored_quantile(quantiles, alpha)
        radius = radius[0] if self._one_dimensional else radius
        return middle - radius, middle + radius

    @following
    def calibrate_interval(
        self, X: Any, y: Any, sample_weight: Any = None, *, cv: Any = None
    ) -> Self:
        """Take the quantiles of the errors from rows that the fit has not seen.

        `predict_interval` then holds the target of a further row with probability 1 - alpha at
        least, if rows are exchangeable: split conformal prediction. With `cv` the rows are those
        of the fit: each fold is predicted by a model that is fitted anew to the others, so that
        every choice of the fit is repeated.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows: new ones, or with `cv` those of the fit.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts as the row twice, 0 as the row removed.
        cv : int, splitter or iterable, default=None
            As in `sklearn.model_selection.cross_val_predict`: so many fits more.

        Returns
        -------
        self : object
            The model.

        Raises
        ------
        ValueError
            If the rows do not fit to the model.
        """
        if cv is None:
            predicted = self.predict(X)
        else:
            params = None if sample_weight is None else {"sample_weight": sample_weight}
            predicted = cross_val_predict(clone(self), X, y, cv=cv, params=params)
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if targets.shape != predicted.shape:
            raise ValueError(f"y has shape {targets.shape}, predictions have {predicted.shape}")
        weights = check_weights(sample_weight, len(targets))
        errors, seen = np.abs(targets - predicted).reshape(len(targets), -1), weights > 0
        copies = np.minimum(weights[seen], 1.0)
        self.error_quantiles_ = error_quantiles(errors[seen], weights[seen], copies)
        self.__dict__.pop("_error_quantile_path", None)
        return self
