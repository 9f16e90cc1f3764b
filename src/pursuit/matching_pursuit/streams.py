"""Matching pursuit from sums over rows: streams, clusters, files larger than memory.

What a fit under squared error asks of its rows are the sums of ``greedy/statistics.py``. So a model
fitted from them equals one fitted on the rows themselves with the same candidates:

1. `fit_statistics`: the path from given sums;
2. `partial_fit`: the first rows fix the kernel's numbers and the candidates; each call adds its
   rows to the sums and fits from these.

A classifier's temperature, and a regressor's intervals, come from the rows that the sums keep
beside them.

Cost of a call of `partial_fit`: l M^2 operations for its l rows and M candidates, and the path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if

from pursuit._typing import Array
from pursuit._validation import (
    Samples,
)
from pursuit._warnings import warn
from pursuit.base.arrays import following
from pursuit.dictionary import (
    Dictionary,
    few_candidates,
    n_candidate_rows,
    penalised,
)
from pursuit.greedy.normal_equations import Moments
from pursuit.greedy.squared_error import SquaredErrorPursuit
from pursuit.greedy.statistics import KernelStatistics, equations_of, require_rows
from pursuit.greedy.stopping import Stopping, choose_prefix, warn_short
from pursuit.kernels import is_precomputed
from pursuit.losses import LOSSES
from pursuit.matching_pursuit.path_model import MatchingPursuit, PathClassifier, PathRegressor

__all__ = ["FitsSums", "StatisticsClassifier", "StatisticsRegressor"]


def more_than_sums(model: Any) -> str:
    """What a model's parameters ask for that sums over rows cannot tell, if anything."""
    squared = model.loss in ("squared_error", LOSSES["squared_error"])
    if not squared or model.refit_every != 1:
        return "sums over rows suffice for loss='squared_error' with refit_every=1 only"
    for name, needed in (("early_stopping", False), ("dictionary", None), ("always", None)):
        if getattr(model, name, needed) is not needed:
            return f"{name} must be {needed} where sums over rows are fitted"
    return "route='direct' has no meaning for sums over rows" if model.route == "direct" else ""


def sums_suffice(model: Any) -> bool:
    """Whether a model has `partial_fit`; an AttributeError that says why not."""
    if reason := more_than_sums(model):
        raise AttributeError(f"partial_fit: {reason}")
    return True


where_sums_suffice: Callable[[Any], Any] = available_if(sums_suffice)


class FitsSums(MatchingPursuit):
    """From sums to a fitted model."""

    def _check_sums(self, *given: KernelStatistics) -> None:
        """Raise if a parameter asks for more than sums can tell, or sums are of other targets."""
        self._check_sums_suffice()
        if self.n_candidates is not None:
            raise ValueError("n_candidates has no meaning with statistics, which have vectors")
        if getattr(self, "class_weight", None) is not None:
            raise ValueError("class_weight: give sample_weight to the statistics instead")
        for statistics in given:
            require_rows(statistics, classes=is_classifier(self))

    def _check_sums_suffice(self) -> None:
        """Raise if a parameter asks for more than sums can tell."""
        self._check_parameters()
        if reason := more_than_sums(self):
            raise ValueError(reason)

    def _take_names(self, statistics: KernelStatistics) -> None:
        """What the rows of the statistics were."""
        for name in ("n_features_in_", "feature_names_in_", "classes_", "_one_dimensional"):
            if getattr(statistics, name, None) is not None:
                setattr(self, name, getattr(statistics, name))

    def _sums_pursuit(
        self, moments: Moments, dictionary: Dictionary, budgets: list[int]
    ) -> SquaredErrorPursuit:
        """The pursuit on sums, not yet grown."""
        ridge = self._ridge(LOSSES["squared_error"])
        penalty, centred = dictionary.penalty, self.fit_intercept
        equations = equations_of(moments, fit_intercept=centred, alpha=ridge, penalty=penalty)
        return SquaredErrorPursuit(equations, self.fitting, budgets)

    def _fit_sums(
        self,
        statistics: KernelStatistics,
        dictionary: Dictionary,
        budgets: list[int] | None = None,
    ) -> Self:
        """The path, and all fitted attributes."""
        loss, moments = LOSSES["squared_error"], statistics.moments_
        self._take_names(statistics)
        budgets = budgets or self._budgets(len(moments.target_sum))
        dictionary = penalised(dictionary, self.penalty)
        pursuit = self._sums_pursuit(moments, dictionary, budgets)
        fit = choose_prefix(pursuit, dictionary.atoms, Stopping(tol=getattr(self, "tol", 0.0)))
        warn_short(fit, sum(budgets))
        kept, method = statistics.sketch_.samples, self._method(loss)
        return self._store_path(fit, dictionary, kept, method, loss, total=moments.weight)


class FitsStatistics(FitsSums):
    """`fit_statistics`, and what `partial_fit` of both kinds shares."""

    statistics_: KernelStatistics

    @following
    def fit_statistics(self, statistics: KernelStatistics) -> Self:
        """Fit from sums over rows: the model of a fit on the rows, with the vectors as candidates.

        Parameters
        ----------
        statistics : KernelStatistics
            Sums of the rows. Kernel, candidates and classes are theirs, and it stays as it is.

        Returns
        -------
        self : estimator
            Fitted.

        Raises
        ------
        ValueError
            If a parameter asks for more than sums can tell (another loss than squared error with
            re-fits at each step, early stopping, a dictionary, class weights), or the statistics
            are of the other kind of targets.
        """
        self._check_sums(statistics)
        if hasattr(self, "statistics_"):
            del self.statistics_
        return self._fit_sums(statistics, statistics.dictionary)

    def _start(self, samples: Samples, classes: Array | None) -> KernelStatistics:
        """Empty sums: the first rows fix the kernel and the candidates."""
        if isinstance(self.kernel, Mapping) or is_precomputed(self.kernel):
            raise ValueError("kernel: partial_fit needs one kernel of rows")
        budget = sum(self._budgets(samples.Y.shape[1]))
        rows = np.flatnonzero(samples.weights > 0)
        few = self.n_candidates
        if few is None:
            few = few_candidates(budget)
        number = n_candidate_rows(few, len(rows), budget)
        self._candidate_rows = self._drawn(samples, rows, number)
        kernel: Any = self._kernel(samples, self.gamma)
        return KernelStatistics(samples.X[self._candidate_rows], classes=classes, kernel=kernel)

    def _continue(self, samples: Samples, *, classes: Array | None, one_dimensional: bool) -> Self:
        """Add checked rows to the sums, and fit from these."""
        if not hasattr(self, "statistics_"):
            self.statistics_ = self._start(samples, classes)
            self.statistics_._begin_as(self)
        self.statistics_._add(samples, one_dimensional=one_dimensional)
        atoms = self.statistics_.dictionary.atoms
        return self._fit_sums(self.statistics_, Dictionary(atoms, self._candidate_rows))

    def _goes_on(self) -> bool:
        """Whether this call of `partial_fit` is not the first."""
        self._check_parameters()
        goes_on = hasattr(self, "statistics_")
        if not goes_on and hasattr(self, "expansion_"):
            warn(
                "partial_fit starts anew: this model was fitted otherwise, or loaded, and has no "
                "sums of its rows to add to",
                UserWarning,
            )
        return goes_on


class StatisticsClassifier(FitsStatistics, PathClassifier):
    """`partial_fit` of classes."""

    @where_sums_suffice
    @following
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those of earlier calls, and fit on all of them.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows. Those of the first call fix the kernel's numbers and the candidates: at most
            2500 of them, or five times `n_components`, unless `n_candidates` says otherwise.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels; needed at the first call.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : estimator
            Fitted on all rows so far. Their order and division do not matter, the candidates being
            the same.

        Raises
        ------
        ValueError
            If the first call has no `classes`, a label is not among them, or a parameter is
            invalid.
        AttributeError
            If a parameter asks for more than sums over rows can tell.
        """
        first = not self._goes_on()
        samples = self._read_announced(X, y, classes, sample_weight, first=first)
        return self._continue(samples, classes=self.classes_, one_dimensional=True)


class StatisticsRegressor(FitsStatistics, PathRegressor):
    """`partial_fit` of numbers."""

    @where_sums_suffice
    @following
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those of earlier calls, and fit on all of them.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows. Those of the first call fix the kernel's numbers and the candidates: at most
            2500 of them, or five times `n_components`, unless `n_candidates` says otherwise.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : estimator
            Fitted on all rows so far. Their order and division do not matter, the candidates being
            the same.

        Raises
        ------
        ValueError
            If a parameter is invalid, or the number of targets differs from before.
        AttributeError
            If a parameter asks for more than sums over rows can tell.
        """
        first = not self._goes_on()
        samples = self._read(X, y, sample_weight, first=first)
        return self._continue(samples, classes=None, one_dimensional=self._one_dimensional)
