"""Exact K-fold paths: the loss of every prefix on every fold from one Gram matrix.

The moments of a training part are those of all rows less those of the rows left out
(``greedy/normal_equations.py``), and the atoms centred on rows left out are barred. So each path
equals that of a fit on the training part with the same candidates and the same kernel.

Where no row is left out twice, as in K folds, one pass over the rows gives the moments of each
part, and those of all rows are their sum. Else there is a pass over all rows, and one over the rows
that each split leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from pursuit._typing import Array
from pursuit._validation import Samples, class_codes
from pursuit.base.cross_validation import Split
from pursuit.dictionary import Dictionary
from pursuit.greedy.make_pursuit import Method, pursuit_on
from pursuit.greedy.multi_output import MultiOutputPursuit
from pursuit.greedy.normal_equations import (
    Moments,
    NormalEquations,
    Origin,
    WeightedValues,
    choose_route,
    gather,
    normal_equations,
)
from pursuit.greedy.path_losses import held_out_losses, row_losses
from pursuit.greedy.stopping import Fit, taken
from pursuit.linalg import blocks
from pursuit.losses import Loss

__all__ = ["FoldPaths", "fold_losses", "hold_out"]


def hold_out(
    samples: Samples, rows: Array, fraction: float, *, classifier: bool, random_state: Any
) -> Split:
    """Set a random fraction of `rows` aside, by class for a classifier.

    A classifier holds out at least one sample for each class.

    Returns
    -------
    train, test : ndarray of int
        Rows in increasing order.

    Raises
    ------
    ValueError
        If there are too few samples, of a class or in all, to train on and to hold out.
    """
    codes = class_codes(samples.Y[rows]) if classifier else np.zeros(len(rows), dtype=int)
    counts = np.unique(codes, return_counts=True)[1]
    n_test = max(int(np.ceil(fraction * len(rows))), len(counts))
    if counts.min() < 2 or len(rows) - n_test < len(counts):
        raise ValueError(
            f"early_stopping=True with validation_fraction={fraction} needs two samples of each "
            f"class or more, and there are {len(rows)} samples, {counts.min()} of the rarest "
            "class: give X_val and y_val, or change early_stopping or validation_fraction"
            if classifier
            else f"early_stopping=True with validation_fraction={fraction} needs samples to train "
            f"on and samples to hold out, and there are {len(rows)} in all: give X_val and "
            "y_val, or change early_stopping or validation_fraction"
        )
    train, test = train_test_split(
        rows,
        test_size=n_test,
        stratify=codes if classifier else None,
        random_state=random_state,
    )
    return np.sort(train), np.sort(test)


def fold_losses(
    dictionary: Dictionary,
    samples: Samples,
    splits: list[Split],
    budgets: list[int],
    method: Method,
    score: Callable[[Fit, Split], Array] | None = None,
) -> tuple[Array, Array]:
    """Losses and scores on the test rows of each split after 1, 2, ... steps, (n_splits, n_steps).

    Parameters
    ----------
    dictionary : Dictionary
        Candidates of the fit on all rows.
    samples : Samples
        All of the caller's rows.
    splits : list of pairs of ndarray
        Training and test rows.
    budgets : list of int
        As of the fit on all rows.
    method : Method
        As of the fit on all rows.
    score : callable, optional
        Scores after 1, 2, ... steps, or after none for an empty path, from the path on a training
        part. None: the losses with their sign turned.
    """
    if method.route == "auto":
        n_steps = len(splits) * sum(budgets)
        method = method._replace(route=choose_route(samples.X.shape, len(dictionary), n_steps))
    paths = FoldPaths(dictionary, samples, splits, method)
    losses, scores = [], []
    for k, split in enumerate(splits):
        fit, loss = paths.follow(k, budgets)
        losses.append(loss)
        scores.append(-loss if score is None else extended(score(fit, split), budgets))
    return np.array(losses), np.array(scores)


def extended(values: Array, budgets: list[int]) -> Array:
    """One value an allowed step: where a path ends early its last value is repeated."""
    return np.concatenate([values, np.full(sum(budgets) - len(values), values[-1])])


class FoldPaths:
    """Paths on the training parts of all splits, for one dictionary.

    Parameters
    ----------
    dictionary : Dictionary
        Candidates of the fit on all rows.
    samples : Samples
        All of the caller's rows.
    splits : list of pairs of ndarray
        Training and test rows.
    method : Method
        How the paths are fitted; its route is ``"gram"`` (downdated) or ``"direct"`` (a pass for
        each fold).
    """

    def __init__(
        self, dictionary: Dictionary, samples: Samples, splits: list[Split], method: Method
    ) -> None:
        self.dictionary = dictionary
        self.functions = dictionary.atoms.functions
        self.samples = samples
        self.splits = splits
        self.method = method
        self.complete = method.route == "gram"
        self.origin: Origin | None = None
        self.rows = np.flatnonzero(samples.weights > 0)
        self.outside = [np.setdiff1d(self.rows, train) for train, _ in splits]
        self.origin = self._values(self.rows).origin
        self.left_out: list[Moments] | None = None
        left_out = np.concatenate(self.outside)
        if len(np.unique(left_out)) == len(left_out) and self._parts_fit():
            self.left_out = [self._gathered(rows) for rows in self.outside]
            never = self._gathered(np.setdiff1d(self.rows, left_out))
            self.total = reduce(Moments.plus, self.left_out, never)
        else:
            self.total = self._gathered(self.rows)

    def _parts_fit(self) -> bool:
        """Whether the moments of the rows that each split leaves out fit in memory together."""
        n_atoms = len(self.dictionary)
        return blocks.fits(8.0 * len(self.splits) * n_atoms * (n_atoms if self.complete else 1))

    def _gathered(self, rows: Array) -> Moments:
        """Moments of some rows."""
        return gather(self._values(rows), complete=self.complete)

    def follow(self, k: int, budgets: list[int]) -> tuple[Fit, Array]:
        """The path on the training part of split k, and its mean loss on the test rows a step."""
        search = self._search(k, budgets)
        search.extend(sum(budgets))
        fit = taken(search)
        return fit, extended(self._losses(fit, search.loss, self.splits[k][1]), budgets)

    def _losses(self, fit: Fit, loss: Loss, test: Array) -> Array:
        """Mean loss on the test rows after 1, 2, ... steps, or after none for an empty path."""
        on_test = self.samples.take(test)
        if fit.path.n_steps:
            atoms = self.dictionary.atoms.take(fit.support)
            return held_out_losses(fit.path, atoms, on_test, loss)
        constant = np.tile(fit.path.target_mean, (len(test), 1))
        losses = row_losses(loss, on_test.Y, constant)
        return np.atleast_1d(np.average(losses, weights=on_test.weights))

    def _search(self, k: int, budgets: list[int]) -> MultiOutputPursuit:
        """The path on the training part; atoms of the rows left out are barred."""
        rows = self.dictionary.rows
        barred = None if rows is None else np.isin(rows, self.outside[k])
        values = self._values(self.splits[k][0], keep=self.method.many_passes)
        return pursuit_on(values, self._equations(values, k), budgets, self.method, barred)

    def _equations(self, values: WeightedValues, k: int) -> NormalEquations:
        """Normal equations of the training part."""
        kept = self.left_out
        left_out = self._gathered(self.outside[k]) if kept is None else kept[k]
        moments = self.total.without(left_out)
        penalty = self.dictionary.penalty
        return normal_equations(moments, values, alpha=self.method.alpha, penalty=penalty)

    def _values(self, rows: Array, *, keep: bool = False) -> WeightedValues:
        """The dictionary on some rows, measured from one origin."""
        return WeightedValues(
            self.functions,
            self.samples.take(rows),
            len(self.dictionary),
            centred=self.method.fit_intercept,
            keep=keep,
            origin=self.origin,
            subset=self.dictionary.atoms.subset,
        )
