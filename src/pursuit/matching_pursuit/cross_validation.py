"""Exact K-fold paths: the loss of every prefix on every fold from one Gram matrix.

The moments of a training part are those of all rows less those of the rows left out
(``gram.py``), and the atoms centred on rows left out are barred. So each path equals that of a
fit on the training part with the same candidates and the same kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit, check_cv, train_test_split

from pursuit._typing import Array
from pursuit._validation import Samples, check_real, class_codes
from pursuit.dictionary import Dictionary
from pursuit.greedy.make_pursuit import Method, pursuit_on
from pursuit.greedy.multi_output import MultiOutputPursuit
from pursuit.greedy.normal_equations import (
    NormalEquations,
    Origin,
    WeightedValues,
    choose_route,
    gather,
    normal_equations,
)
from pursuit.greedy.path_losses import held_out_losses, row_losses
from pursuit.kernels import scale_gamma

__all__ = ["FoldPaths", "fold_losses", "gamma_grid", "hold_out", "index_splits"]

# Trial gammas, as multiples of gamma="scale".
GAMMA_FACTORS = tuple(4.0**power for power in range(-4, 3))
_KERNELS_WITH_GAMMA = ("rbf", "laplacian", "polynomial", "poly", "sigmoid")

Split = tuple[Array, Array]


def gamma_grid(gammas: Any, kernel: Any, gamma: Any, samples: Samples) -> list[Any]:
    """Return the gammas to try.

    Parameters
    ----------
    gammas : sequence of float, float or None
        What the user asks for. None: seven multiples of ``gamma="scale"``, from 1/256 to 16,
        or `gamma` alone where that is a number or the kernel has none.
    kernel : str, Kernel or callable
        The kernel argument of the estimator.
    gamma : float or str
        The gamma argument of the estimator.
    samples : Samples
        The training rows.

    Raises
    ------
    ValueError
        If `gammas` is empty, not positive or has no meaning for the kernel.
    """
    varies = isinstance(kernel, str) and kernel in _KERNELS_WITH_GAMMA
    if gammas is None:
        if not varies or gamma != "scale":
            return [gamma]
        rows = np.flatnonzero(samples.weights > 0)
        scale = scale_gamma(samples.X[rows], samples.weights[rows])
        return [scale * factor for factor in GAMMA_FACTORS]
    if not varies:
        raise ValueError(f"gammas has no meaning for kernel={kernel!r}")
    grid = [gammas] if np.ndim(gammas) == 0 else list(gammas)
    if not grid:
        raise ValueError("gammas must hold at least one number")
    for value in grid:
        check_real("gammas", value, above=True)
    return [float(value) for value in grid]


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


def index_splits(
    cv: Any, samples: Samples, *, classifier: bool, classes: Array | None = None
) -> list[Split]:
    """Training and test rows of each fold; rows of weight 0 are in neither.

    Parameters
    ----------
    cv : int, splitter or iterable of index pairs
        A number or a splitter divides the rows of positive weight (by class for a
        classifier); index pairs and a `PredefinedSplit` refer to all of the caller's rows.
    samples : Samples
        All of the caller's rows.
    classifier : bool
        Whether the targets are classes.
    classes : ndarray, optional
        Their labels, for a splitter and its errors; None: their numbers.

    Raises
    ------
    ValueError
        If a part of a split is empty, or `cv` does not go with the number of samples.
    """
    rows = np.flatnonzero(samples.weights > 0)
    if isinstance(cv, PredefinedSplit):
        _check_predefined(cv, samples.X.shape[0])
        cv = list(cv.split())
    splits: list[Split]
    if isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split"):
        given = [(_as_indices(train), _as_indices(test)) for train, test in cv]
        splits = [(np.intersect1d(tr, rows), np.intersect1d(te, rows)) for tr, te in given]
    else:
        target = class_codes(samples.Y[rows]) if classifier else samples.Y[rows, 0]
        target = target if classes is None else classes[target]
        try:
            folds = list(check_cv(cv, target, classifier=classifier).split(rows, target))
        except ValueError as error:
            raise ValueError(f"cv={cv!r}: {error}") from error
        splits = [(rows[tr], rows[te]) for tr, te in folds]
    if not splits or not all(len(train) and len(test) for train, test in splits):
        raise ValueError("cv: every split needs training and test rows of positive weight")
    return splits


def _check_predefined(cv: PredefinedSplit, n_rows: int) -> None:
    """Raise unless there is a fold for each of the caller's rows."""
    if len(cv.test_fold) != n_rows:
        raise ValueError(f"cv: test_fold has {len(cv.test_fold)} entries, but X has {n_rows} rows")


def _as_indices(part: Any) -> Array:
    """Indices of a part given as indices or as a mask."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool else part


def fold_losses(
    dictionary: Dictionary,
    samples: Samples,
    splits: list[Split],
    budgets: list[int],
    method: Method,
) -> Array:
    """Losses on the test rows of each split after 1, 2, ... steps, (n_splits, n_steps).

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
    """
    if method.route == "auto":
        n_steps = len(splits) * sum(budgets)
        method = method._replace(route=choose_route(samples.X.shape, len(dictionary), n_steps))
    paths = FoldPaths(dictionary, samples, method)
    return np.array([paths.losses(split, budgets) for split in splits])


class FoldPaths:
    """Paths on the training parts of all splits, for one dictionary.

    Parameters
    ----------
    dictionary : Dictionary
        Candidates of the fit on all rows.
    samples : Samples
        All of the caller's rows.
    method : Method
        How the paths are fitted; its route is ``"gram"`` (downdated) or ``"direct"`` (a pass for
        each fold).
    """

    def __init__(self, dictionary: Dictionary, samples: Samples, method: Method) -> None:
        self.dictionary = dictionary
        self.functions = dictionary.atoms.functions
        self.samples = samples
        self.method = method
        self.complete = method.route == "gram"
        self.origin: Origin | None = None
        self.rows = np.flatnonzero(samples.weights > 0)
        everything = self._values(self.rows)
        self.origin = everything.origin
        self.total = gather(everything, complete=self.complete)

    def losses(self, split: Split, budgets: list[int]) -> Array:
        """Mean loss on the test rows after 1, 2, ... steps, one an allowed step.

        Where a path ends early its last loss is repeated.
        """
        train, test = split
        outside = np.setdiff1d(self.rows, train)
        search = self._search(train, outside, budgets)
        search.extend(sum(budgets))
        path, support = search.path()
        loss = search.loss
        on_test = self.samples.take(test)
        losses = held_out_losses(path, self.dictionary.atoms.take(support), on_test, loss)
        if len(losses):
            last = float(losses[-1])
        else:
            constant = np.tile(path.target_mean, (len(test), 1))
            last = float(np.average(row_losses(loss, on_test.Y, constant), weights=on_test.weights))
        return np.concatenate([losses, np.full(sum(budgets) - len(losses), last)])

    def _search(self, train: Array, outside: Array, budgets: list[int]) -> MultiOutputPursuit:
        """The path on the training part; atoms of the rows left out are barred."""
        rows = self.dictionary.rows
        barred = None if rows is None else np.isin(rows, outside)
        values = self._values(train, keep=self.method.many_passes)
        equations = self._equations(values, outside)
        return pursuit_on(values, equations, budgets, self.method, barred)

    def _equations(self, values: WeightedValues, outside: Array) -> NormalEquations:
        """Normal equations of the training part."""
        if len(outside):
            left_out = gather(self._values(outside), complete=self.complete)
            moments = self.total.without(left_out)
        else:
            moments = self.total.copy()
        return normal_equations(moments, values, alpha=self.method.alpha)

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
