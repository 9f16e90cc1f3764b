"""Cross-validation of vectors that move: gamma, C and the metric on a small grid, with warm starts.

A fold is searched from the middle of its grid outwards. The first point moves vectors from their
start to the end; every other one goes on from the vectors of its neighbour, first along gamma and
then along C, and needs few iterations:

    C
    |  o   o   o        x   the start, `max_iter` iterations
    |  ^   ^   ^        o   `search_iter` iterations from where the arrow comes from
    |  o < x > o
    |  v   v   v
    |  o   o   o
    +------------ gamma

The winner is fitted to all rows as if its parameters had been given.

With `sizes` the winner's vectors are dropped one by one on the training rows of each fold, as in
``frontier.py``; the mean scores of each size on the test rows choose the number of vectors, and the
frontier of the winner on all rows keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from pursuit._typing import Array
from pursuit._validation import Samples, check_choice, check_integer, check_real
from pursuit.base.arrays import following
from pursuit.base.callbacks import Watcher
from pursuit.base.cross_validation import (
    CrossValidated,
    Rows,
    Scorer,
    Split,
    best_candidate,
    gamma_grid,
    listed,
    resolve_scorer,
    width_order,
)
from pursuit.base.docstrings import with_entries, with_inherited_sections
from pursuit.base.parameters import constructor
from pursuit.moving_vectors.estimators import (
    MovingVectors,
    SparseKernelClassifier,
    SparseKernelRegressor,
    check_metric,
)
from pursuit.moving_vectors.frontier import falling_sizes, measured, shrunk_models

__all__ = ["SparseKernelClassifierCV", "SparseKernelRegressorCV"]

# Trial gammas, as multiples of gamma="scale", and trial prices, as multiples of C.
GAMMA_MULTIPLES = (0.25, 1.0, 4.0)
C_MULTIPLES = (0.1, 1.0, 10.0)

Cell = tuple[int, int]


class Grid(NamedTuple):
    """What is tried with one metric; gammas and prices in increasing order."""

    metric: Any
    gammas: list[Any]
    Cs: list[float]

    def params(self, cell: Cell) -> dict[str, Any]:
        """The parameters of a point."""
        return {"C": self.Cs[cell[1]], "gamma": self.gammas[cell[0]], "metric": self.metric}

    def cells(self) -> list[Cell]:
        """All points, one gamma after the other."""
        return [(g, c) for g in range(len(self.gammas)) for c in range(len(self.Cs))]


class Search(NamedTuple):
    """How every fold is searched.

    Attributes
    ----------
    model : estimator
        What is fitted, with the parameters that are not searched.
    grids : list of Grid
        One a metric.
    rows : Rows
        All rows.
    scorer : Scorer
        What judges.
    n_iter : int
        Iterations from a neighbour's vectors at most.
    """

    model: MovingVectors
    grids: list[Grid]
    rows: Rows
    scorer: Scorer
    n_iter: int

    def fold(self, split: Split, seed: int) -> list[float]:
        """Scores of all points on the test rows of a split."""
        train, test = self.rows.take(split[0]), self.rows.take(split[1])
        scores = []
        for grid in self.grids:
            found = {}
            for cell, model in self._models(grid, train, seed):
                found[cell] = self.scorer(model, test)
            scores += [found[cell] for cell in grid.cells()]
        return scores

    def _models(self, grid: Grid, train: Rows, seed: int) -> Any:
        """The fitted model of each point, from the middle outwards."""
        fitted: dict[Cell, Any] = {}
        for cell, neighbour in outwards(len(grid.gammas), len(grid.Cs)):
            start = None if neighbour is None else fitted[neighbour]
            fitted[cell] = self._fit(grid.params(cell), start, train, seed)
            yield cell, fitted[cell]

    def _fit(self, params: dict[str, Any], start: Any, train: Rows, seed: int) -> MovingVectors:
        """The model of one point."""
        model = type(self.model)(**self.model.get_params(deep=False) | params)
        model.random_state, model._trial = seed, True
        if start is not None:
            model.init, model.max_iter = start, min(self.n_iter, self.model.max_iter)
        elif isinstance(model.init, str):
            # That a fold has fewer rows than vectors is no news.
            model.n_components = min(model.n_components, len(train.y))
        return model.fit(train.X, train.y, train.sample_weight)

    def sizes(self, split: Split, seed: int, params: dict[str, Any], sizes: Array) -> list[float]:
        """Scores of the winner of each size on the test rows of a split."""
        train, test = self.rows.take(split[0]), self.rows.take(split[1])
        largest = self._fit(params, None, train, seed)
        wanted = np.minimum(sizes, largest.n_components_)
        models = shrunk_models(largest, tuple(train), wanted, self.n_iter)
        scores = {model.n_components_: self.scorer(model, test) for model in models}
        return [scores[int(size)] for size in wanted]


def outwards(n_gammas: int, n_Cs: int) -> list[tuple[Cell, Cell | None]]:
    """The points of a grid from its middle outwards, each with the neighbour it starts from.

    Examples
    --------
    >>> from pursuit.moving_vectors.cross_validation import outwards
    >>> outwards(1, 3)
    [((0, 1), None), ((0, 0), (0, 1)), ((0, 2), (0, 1))]
    """
    g0, c0 = n_gammas // 2, n_Cs // 2
    order: list[tuple[Cell, Cell | None]] = []
    for g in sorted(range(n_gammas), key=lambda g: abs(g - g0)):
        for c in sorted(range(n_Cs), key=lambda c: abs(c - c0)):
            if c != c0:
                order.append(((g, c), (g, c - _sign(c - c0))))
            else:
                order.append(((g, c), (g - _sign(g - g0), c) if g != g0 else None))
    return order


def _sign(number: int) -> int:
    """1 or -1."""
    return 1 if number > 0 else -1


@constructor
class _VectorSearch(CrossValidated, MovingVectors):
    """`fit` by cross-validation."""

    gammas: Any = None
    Cs: Any = None
    metrics: Any = None
    cv: Any = 3
    rule: str = "min"
    search_iter: int = 15
    sizes: Any = None
    n_jobs: int | None = None

    _model: ClassVar[Callable[..., MovingVectors]]

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose gamma, C and the metric, then move the vectors on all rows.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or, for a regressor, (n_samples, n_targets)
            Labels of at least two classes, or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts as the row twice, 0 as the row removed; also of the scores that
            take weights.
        groups : array-like of shape (n_samples,), default=None
            The group of each row. A number of folds keeps groups whole; a splitter is handed them.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names the parameter or row.
        """
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        with self._watching(X, y, sample_weight) as watcher:
            self._fit_chosen(samples, sample_weight, groups, watcher)
        return self

    def _fit_chosen(
        self, samples: Samples, sample_weight: Any, groups: Any, watcher: Watcher | None
    ) -> None:
        """The search, and the fit on all rows, whose steps are watched."""
        splits = self._splits(samples, groups)
        rows, grids = self._rows(samples, sample_weight), self._grids(samples)
        scorer = resolve_scorer(self, self.scoring)
        search = Search(self._plain(), grids, rows, scorer, self.search_iter)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=len(splits))
        folds = list(zip(splits, seeds.tolist(), strict=True))
        scores = Parallel(n_jobs=self.n_jobs)(delayed(search.fold)(*fold) for fold in folds)
        self._choose(grids, np.array(scores))
        winner = self._plain().set_params(**self.best_params_)
        with winner._inner_fit(watcher):
            winner.fit(*rows)
        self._adopt(winner if self.sizes is None else self._of_best_size(search, winner, folds))

    def _of_best_size(
        self, search: Search, winner: MovingVectors, folds: list[tuple[Split, int]]
    ) -> Any:
        """The winner on all rows with as many vectors as the folds like best."""
        given = None if isinstance(self.sizes, str) else self.sizes
        sizes = np.array(falling_sizes(given, winner.n_components_))
        scores = np.array(
            Parallel(n_jobs=self.n_jobs)(
                delayed(search.sizes)(*fold, self.best_params_, sizes) for fold in folds
            )
        )
        models = shrunk_models(winner, tuple(search.rows), sizes, self.search_iter)
        self.frontier_ = measured(models, scores.mean(axis=0).tolist(), self.scoring)
        best = best_candidate(scores, [sizes], self.rule)
        self.best_params_ = {**self.best_params_, "n_components": int(sizes[best])}
        self.best_score_ = float(self.frontier_.scores[best])
        return models[best]

    def _check_parameters(self) -> None:
        """Add those of the search to the common checks."""
        if self.max_bytes is not None:
            raise ValueError(
                "max_bytes compares sizes by itself: it goes with the class without CV"
            )
        super()._check_parameters()
        self._check_rule()
        check_integer("search_iter", self.search_iter, 0)
        if self.sizes is not None:
            self._check_sizes()
        for C in [] if self.Cs is None else listed("Cs", self.Cs):
            check_real("Cs", C, above=True)
        for metric in [] if self.metrics is None else listed("metrics", self.metrics):
            check_metric("metrics", metric)

    def _check_sizes(self) -> None:
        """Raise unless the sizes are ``"auto"`` or numbers that the budget holds."""
        if isinstance(self.sizes, str):
            check_choice("sizes", self.sizes, ("auto",))
        else:
            falling_sizes(listed("sizes", self.sizes), int(self.n_components))

    def _grids(self, samples: Samples) -> list[Grid]:
        """What is tried, one grid a metric."""
        metrics = [self.metric] if self.metrics is None else listed("metrics", self.metrics)
        Cs = [factor * self.C for factor in C_MULTIPLES] if self.Cs is None else self.Cs
        prices = sorted(float(C) for C in listed("Cs", Cs))
        return [Grid(metric, self._gammas(samples, metric), prices) for metric in metrics]

    def _gammas(self, samples: Samples, metric: Any) -> list[Any]:
        """Gammas to try with a metric: one where the fit moves gamma itself."""
        moves = self.learn_gamma or isinstance(metric, str)
        multiples = (1.0,) if moves else GAMMA_MULTIPLES
        gammas = gamma_grid(self.gammas, self.kernel, self.gamma, samples, multiples)
        return sorted(gammas, key=width_order)

    def _plain(self) -> MovingVectors:
        """The estimator without a search; with `warm_start` it goes on from the last vectors."""
        names = self._model().get_params(deep=False)
        params = {name: getattr(self, name) for name in names}
        if self._continues():
            params["init"] = self
        return self._model(**params | {"warm_start": False})

    def _choose(self, grids: list[Grid], scores: Array) -> None:
        """Set what tells how the search went, from scores of shape (n_splits, n_candidates)."""
        params = [grid.params(cell) for grid in grids for cell in grid.cells()]
        prices = [p["C"] for p in params]
        widths = [width_order(p["gamma"]) for p in params]
        self._store_search(params, scores, [prices, widths])


@with_entries
@with_inherited_sections
@constructor
class SparseKernelClassifierCV(_VectorSearch, SparseKernelClassifier):
    """`SparseKernelClassifier` with gamma, C and the metric chosen by cross-validation.

    Each fold moves its vectors once; the other points of the grid go on from their neighbour's. The
    winner is the `SparseKernelClassifier` of these parameters, fitted to all rows. With
    `warm_start` a second search starts from the vectors of the first.

    Parameters
    ----------
    {parameters}
    {gammas}
    {Cs}
    {metrics}
    cv : int, splitter or iterable, default=3
        Number of folds (by class), a scikit-learn splitter, or pairs of index arrays.
    {rule}
    {search_iter}
    {sizes}
    {n_jobs}

    Attributes
    ----------
    {attributes}
    {cv_results_}
    {best_index_}
    {frontier_}

    See Also
    --------
    SparseKernelClassifier : With given parameters.
    pursuit.displays.FrontierDisplay : Draws ``frontier_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import SparseKernelClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseKernelClassifierCV(6, random_state=0).fit(X, y)
    >>> sorted(model.best_params_), bool(model.best_score_ > 0.95)
    (['C', 'gamma', 'metric'], True)
    """

    _model: ClassVar[Any] = SparseKernelClassifier


@with_entries
@with_inherited_sections
@constructor
class SparseKernelRegressorCV(_VectorSearch, SparseKernelRegressor):
    """`SparseKernelRegressor` with gamma, C and the metric chosen by cross-validation.

    Each fold moves its vectors once; the other points of the grid go on from their neighbour's. The
    winner is the `SparseKernelRegressor` of these parameters, fitted to all rows. With
    `warm_start` a second search starts from the vectors of the first.

    Parameters
    ----------
    {parameters}
    {gammas}
    {Cs}
    {metrics}
    cv : int, splitter or iterable, default=3
        Number of folds, a scikit-learn splitter, or pairs of index arrays.
    {rule}
    {search_iter}
    {sizes}
    {n_jobs}

    Attributes
    ----------
    {attributes}
    {cv_results_}
    {best_index_}
    {frontier_}

    See Also
    --------
    SparseKernelRegressor : With given parameters.
    pursuit.displays.FrontierDisplay : Draws ``frontier_``.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import SparseKernelRegressorCV
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = SparseKernelRegressorCV(4, C=1000.0, cv=5, random_state=0).fit(X, y)
    >>> model.n_components_, bool(model.score(X, y) > 0.99)
    (4, True)
    """

    _model: ClassVar[Any] = SparseKernelRegressor
