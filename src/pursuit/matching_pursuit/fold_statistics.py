"""Cross-validation from sums over rows: one `KernelStatistics` a fold.

The sums of a training part are those of all rows less those of the fold left out; the path on them
is that of a fit on its rows, and ``greedy/fold_losses.py`` measures every step of it on the fold.
So gamma and the number of vectors are chosen exactly as by a pass over the rows, without one.

Cost. For each gamma and fold the path on M candidates, and nothing that depends on the number of
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Self

import numpy as np

from pursuit._typing import Array
from pursuit.base.cross_validation import CrossValidated
from pursuit.dictionary import penalised
from pursuit.greedy.fold_losses import moment_losses
from pursuit.greedy.normal_equations import Moments
from pursuit.greedy.statistics import KernelStatistics
from pursuit.matching_pursuit.cross_validation import extended
from pursuit.matching_pursuit.streams import FitsSums

__all__ = ["StatisticsCV"]


class StatisticsCV(CrossValidated, FitsSums):
    """`fit_statistics` of a search."""

    def fit_statistics(self, folds: Sequence[Any]) -> Self:
        """Choose gamma and the number of components from sums of each fold, then fit on their sum.

        Parameters
        ----------
        folds : sequence of KernelStatistics, or sequence of such sequences
            Sums of the rows of each fold, at least two folds, all of the same vectors. With several
            kernels a sequence of folds for each. They stay as they are.

        Returns
        -------
        self : estimator
            Fitted: that of `fit` with these folds and the vectors as its dictionary.

        Raises
        ------
        ValueError
            If a parameter asks for more than sums can tell, or the folds do not go together.
        """
        tables = _checked(folds)
        self._check_sums(*(fold for table in tables for fold in table))
        for name in ("scoring", "search_candidates"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} must be None: sums over rows tell the error of all of them"
                )
        self.gammas_ = [getattr(table[0].kernel_, "gamma", self.gamma) for table in tables]
        self._take_names(tables[0][0])
        budgets = self._budgets(len(tables[0][0].moments_.target_sum))
        totals = [_total(table) for table in tables]
        self.cv_loss_path_ = np.array(
            [
                [self._fold_losses(total, fold.moments_, budgets) for fold in table]
                for table, total in zip(tables, totals, strict=True)
            ]
        )
        self._choose(-self.cv_loss_path_)
        best = totals[int(self.best_index_) // sum(budgets)]
        return self._fit_sums(best, best.dictionary, self._first_budgets(budgets))

    def _fold_losses(self, total: KernelStatistics, fold: Moments, budgets: list[int]) -> Array:
        """Losses on a fold after 1, 2, ... steps of the path on the other rows."""
        others = total.moments_.without(fold.about(total.moments_.origin))
        search = self._sums_pursuit(others, penalised(total.dictionary, self.penalty), budgets)
        search.extend(sum(budgets))
        losses = moment_losses(*search.path(), fold)
        return extended(losses[1:] if len(losses) > 1 else losses, budgets)

    def _choose(self, scores: Array) -> None:
        """Set gamma and what tells how the search went."""
        raise NotImplementedError

    def _first_budgets(self, budgets: list[int]) -> list[int]:
        """Steps of each basis among as many of the model as were chosen."""
        raise NotImplementedError


def _checked(folds: Sequence[Any]) -> list[Sequence[KernelStatistics]]:
    """The folds of each kernel."""
    listed = list(folds)
    flat = all(isinstance(fold, KernelStatistics) for fold in listed)
    tables: list[Sequence[KernelStatistics]]
    tables = [listed] if flat else [list(table) for table in listed]
    if not tables or any(len(table) < 2 for table in tables):
        raise ValueError("folds must hold the statistics of at least two folds")
    if len({len(table) for table in tables}) > 1:
        raise ValueError("folds must be as many for each kernel")
    return tables


def _total(table: Sequence[KernelStatistics]) -> KernelStatistics:
    """The sums of all folds."""
    first = table[0]
    empty = KernelStatistics(first.vectors, classes=first.classes_, kernel=first.kernel_)
    return reduce(lambda total, fold: total.merge(fold), table, empty)
