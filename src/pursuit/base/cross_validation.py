"""Choosing by cross-validation: folds, grids, scores, and the rule that names the winner.

The methods differ in how they fit a fold; what the estimators with ``CV`` in their name share is
here. The one-standard-error rule is that of L. Breiman, J. Friedman, R. Olshen and C. Stone,
"Classification and regression trees", 1984, section 3.4.3: of all candidates whose mean score is
within one standard error of the best, the simplest.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedGroupKFold, check_cv
from sklearn.utils import column_or_1d

from pursuit._typing import Array
from pursuit._validation import Samples, check_choice, check_real, check_weights, class_codes
from pursuit.kernels import feature_gammas, scale_gamma, several

__all__ = [
    "CrossValidated",
    "Rows",
    "Scorer",
    "Split",
    "best_candidate",
    "check_rule",
    "chosen_place",
    "gamma_grid",
    "index_splits",
    "listed",
    "resolve_scorer",
    "search_results",
    "simplest",
    "width_order",
]

# Trial gammas, as multiples of gamma="scale".
GAMMA_FACTORS = tuple(4.0**power for power in range(-4, 3))
_KERNELS_WITH_GAMMA = ("rbf", "laplacian", "polynomial", "poly", "sigmoid")
RULES = ("min", "one_se")

Split = tuple[Array, Array]


def listed(name: str, values: Any) -> list[Any]:
    """The values of a grid as a list; one value may stand alone.

    Raises
    ------
    ValueError
        If there is none.
    """
    grid = [values] if values is None or np.ndim(values) == 0 else list(values)
    if not grid:
        raise ValueError(f"{name} must hold at least one value")
    return grid


def gamma_grid(
    gammas: Any,
    kernel: Any,
    gamma: Any,
    samples: Samples,
    factors: Sequence[float] = GAMMA_FACTORS,
) -> list[Any]:
    """Return the gammas to try.

    Parameters
    ----------
    gammas : sequence of float or array, float or None
        What the user asks for; an array holds a number for each feature. None: multiples of
        ``gamma="scale"``, or `gamma` alone where that is given or the kernel has none.
    kernel : str, Kernel or callable
        The kernel argument of the estimator.
    gamma : float, array or str
        The gamma argument of the estimator.
    samples : Samples
        The training rows.
    factors : sequence of float
        The multiples.

    Raises
    ------
    ValueError
        If `gammas` is empty, not positive or has no meaning for the kernel.
    """
    varies = isinstance(kernel, str) and kernel in _KERNELS_WITH_GAMMA
    if gammas is None:
        if not varies or not isinstance(gamma, str) or gamma != "scale":
            return [gamma]
        scale = _scale(samples)
        return [scale * factor for factor in factors]
    if not varies:
        raise ValueError(f"gammas has no meaning for kernel={kernel!r}")
    grid = listed("gammas", gammas)
    return [_checked_gamma(value, samples.X.shape[1]) for value in grid]


def _checked_gamma(value: Any, n_features: int) -> Any:
    """One number of a grid, or numbers for the features."""
    if several(value):
        return feature_gammas(value, n_features)
    check_real("gammas", value, above=True)
    return float(value)


def chosen_place(gammas: Any, gamma: Any) -> int:
    """Where among the gammas tried the chosen one is."""
    return next(i for i, tried in enumerate(gammas) if np.array_equal(tried, gamma))


def width_order(gamma: Any) -> float:
    """What gammas are ordered by: the mean over the features; a name comes first."""
    return 0.0 if isinstance(gamma, str) else float(np.mean(gamma))


def _scale(samples: Samples) -> float:
    """``gamma="scale"`` of the rows of positive weight."""
    rows = np.flatnonzero(samples.weights > 0)
    return scale_gamma(samples.X[rows], samples.weights[rows])


# Which rows.


def index_splits(
    cv: Any,
    samples: Samples,
    *,
    classifier: bool,
    groups: Any = None,
    classes: Array | None = None,
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
    groups : array-like of shape (n_samples,), optional
        The group of each row: a number of folds keeps groups whole, a splitter is handed them.
    classes : ndarray, optional
        Labels of the classes, for a splitter and its errors; None: their numbers.

    Raises
    ------
    ValueError
        If a part of a split is empty, or `cv` does not go with the number of samples.
    """
    groups = _checked_groups(groups, cv, samples.X.shape[0])
    rows = np.flatnonzero(samples.weights > 0)
    if isinstance(cv, PredefinedSplit):
        _check_predefined(cv, samples.X.shape[0])
        cv = list(cv.split())
    if _lists_pairs(cv):
        splits = _listed_splits(cv, rows)
    else:
        kept = None if groups is None else groups[rows]
        target = _strata(samples.Y[rows], classifier)
        target = target if classes is None else classes[target]
        splits = _divided(cv, rows, target, kept, classifier)
    if not splits or not all(len(train) and len(test) for train, test in splits):
        raise ValueError("cv: every split needs training and test rows of positive weight")
    return splits


def _listed_splits(cv: Any, rows: Array) -> list[Split]:
    """The pairs given, less the rows of weight 0."""
    given = [(_as_indices(train), _as_indices(test)) for train, test in cv]
    return [(np.intersect1d(train, rows), np.intersect1d(test, rows)) for train, test in given]


def _strata(Y: Array, classifier: bool) -> Array:
    """What a splitter takes for y."""
    return class_codes(Y) if classifier else np.asarray(Y[:, 0])


def _divided(
    cv: Any, rows: Array, target: Array, groups: Array | None, classifier: bool
) -> list[Split]:
    """The rows divided by a number of folds or a splitter."""
    try:
        splitter = check_cv(cv, target, classifier=classifier)
        if groups is not None and not hasattr(cv, "split"):
            splitter = _by_group(splitter.get_n_splits(), classifier)
        folds = list(splitter.split(rows, target, groups))
    except ValueError as error:
        raise ValueError(f"cv={cv!r}: {error}") from error
    return [(rows[train], rows[test]) for train, test in folds]


def _by_group(n_splits: int, classifier: bool) -> Any:
    """A splitter that keeps groups whole, and the shares of the classes where it can."""
    return StratifiedGroupKFold(n_splits) if classifier else GroupKFold(n_splits)


def _lists_pairs(cv: Any) -> bool:
    """Whether `cv` lists its splits."""
    return isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split")


def _checked_groups(groups: Any, cv: Any, n_rows: int) -> Array | None:
    """One group a row, or None."""
    if groups is None:
        return None
    if _lists_pairs(cv) or isinstance(cv, PredefinedSplit):
        raise ValueError("groups has no meaning where cv lists the splits")
    groups = column_or_1d(groups)
    if len(groups) != n_rows:
        raise ValueError(f"groups has {len(groups)} entries, but X has {n_rows} rows")
    return np.asarray(groups)


def _check_predefined(cv: PredefinedSplit, n_rows: int) -> None:
    """Raise unless there is a fold for each of the caller's rows."""
    if len(cv.test_fold) != n_rows:
        raise ValueError(f"cv: test_fold has {len(cv.test_fold)} entries, but X has {n_rows} rows")


def _as_indices(part: Any) -> Array:
    """Indices of a part given as indices or as a mask."""
    part = np.asarray(part)
    return np.flatnonzero(part) if part.dtype == bool else part


# How good.


class Rows(NamedTuple):
    """Samples as a scorer wants them: the user's labels or numbers, the user's weights if any."""

    X: Any
    y: Any
    sample_weight: Array | None

    def take(self, rows: Array) -> Rows:
        """Return some of the rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return Rows(self.X[rows], self.y[rows], weights)


class Scorer(NamedTuple):
    """A score of scikit-learn, larger is better, with the weights where it takes them."""

    function: Any
    weighted: bool

    def __call__(self, model: Any, rows: Rows) -> float:
        """Score a fitted model on some rows."""
        weighted = self.weighted and rows.sample_weight is not None
        options = {"sample_weight": rows.sample_weight} if weighted else {}
        score = self.function(model, rows.X, rows.y, **options)
        if not isinstance(score, Real):
            raise ValueError(f"scoring must give a number, got {score!r}")
        return float(score)


def resolve_scorer(estimator: Any, scoring: Any) -> Scorer:
    """The scorer that `scoring` names; None: the estimator's ``score``."""
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be a name, a callable or None, got {scoring!r}")
    function = check_scoring(estimator, scoring=scoring)
    # A metric of scikit-learn takes its own arguments behind those of the scorer.
    measure = getattr(function, "_score_func", function)
    weighted = scoring is None or "sample_weight" in inspect.signature(measure).parameters
    return Scorer(function, weighted)


# Which candidate.


def check_rule(rule: Any) -> None:
    """Raise unless the rule is one."""
    check_choice("rule", rule, RULES)


def best_candidate(scores: Array, complexity: Sequence[Any], rule: str) -> int:
    """The candidate that a rule chooses.

    Parameters
    ----------
    scores : ndarray of shape (n_splits, n_candidates)
        Larger is better; NaN is worse than any number.
    complexity : sequence of array-like of shape (n_candidates,)
        What makes a candidate complex, the most important first.
    rule : {"min", "one_se"}
        ``"min"``: the best mean score; ``"one_se"``: the simplest candidate whose mean is within
        one standard error of the best. Of equally good ones the simplest, of equally simple ones
        the best, and then the first.

    Raises
    ------
    ValueError
        If no candidate has a score.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.base.cross_validation import best_candidate
    >>> scores = np.array([[0.90, 0.93, 0.94], [0.80, 0.89, 0.90]])
    >>> best_candidate(scores, [[1, 2, 3]], "min"), best_candidate(scores, [[1, 2, 3]], "one_se")
    (2, 1)
    """
    mean = _without_nan(scores.mean(axis=0))
    slack = _standard_error(scores[:, int(mean.argmax())]) if rule == "one_se" else 0.0
    return simplest(mean, slack, complexity)


def simplest(mean: Array, slack: float, complexity: Sequence[Any]) -> int:
    """The simplest candidate whose mean score is at most `slack` below the best.

    Parameters
    ----------
    mean : ndarray of shape (n_candidates,)
        Larger is better.
    slack : float
        How much worse is good enough.
    complexity : sequence of array-like of shape (n_candidates,)
        As of `best_candidate`.

    Raises
    ------
    ValueError
        If no candidate has a score.
    """
    if mean.max() == -np.inf:
        raise ValueError("scoring: no candidate has a score that is a number")
    simplest_first = np.lexsort((-mean, *(np.asarray(key) for key in reversed(complexity))))
    return int(next(i for i in simplest_first if mean[i] >= mean.max() - slack))


def _without_nan(mean: Array) -> Array:
    """NaN as the worst score."""
    return np.where(np.isnan(mean), -np.inf, mean)


def _standard_error(scores: Array) -> float:
    """Standard error of the mean over the splits; 0 where there is one split."""
    n = len(scores)
    return float(scores.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def search_results(params: list[dict[str, Any]], scores: Array) -> dict[str, Any]:
    """The table ``cv_results_``, with the columns of scikit-learn's searches.

    Parameters
    ----------
    params : list of dict
        The parameters of each candidate.
    scores : ndarray of shape (n_splits, n_candidates)
        Larger is better.
    """
    mean = scores.mean(axis=0)
    with np.errstate(invalid="ignore"):  # infinite losses
        deviation = scores.std(axis=0)
    ranks = rankdata(-_without_nan(mean), method="min").astype(np.int32)
    return {
        "params": params,
        **{f"param_{name}": _column([each[name] for each in params]) for name in params[0]},
        **{f"split{i}_test_score": row.copy() for i, row in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": deviation,
        "rank_test_score": ranks,
    }


def _column(values: list[Any]) -> Array:
    """Numbers as an array of numbers, other values as objects."""
    if all(isinstance(value, int | float) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


class CrossValidated:
    """What the estimators share that choose their parameters by cross-validation."""

    cv: Any
    scoring: Any
    rule: str
    _seen: Any

    # Groups are only ever for the folds, here as in scikit-learn's splitters.
    __metadata_request__fit = {"groups": True}

    def _splits(self, samples: Samples, groups: Any) -> list[Split]:
        """Training and test rows of each fold."""
        labels = getattr(self, "classes_", None)
        return index_splits(
            self.cv, samples, classifier=is_classifier(self), groups=groups, classes=labels
        )

    def _rows(self, samples: Samples, sample_weight: Any) -> Rows:
        """The samples as a scorer wants them."""
        weights = None if sample_weight is None else check_weights(sample_weight, len(samples.Y))
        return Rows(samples.X, self._seen(samples), weights)

    def _check_rule(self) -> None:
        """Raise unless the rule is one."""
        check_rule(self.rule)

    def _store_search(
        self, params: list[dict[str, Any]], scores: Array, complexity: Sequence[Any]
    ) -> None:
        """Set what tells how the search went; `scores` of shape (n_splits, n_candidates)."""
        self.cv_results_ = search_results(params, scores)
        self.best_index_ = best_candidate(scores, complexity, self.rule)
        self.best_params_ = params[self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
