"""From features to a model: kernel width and budget by cross-validation, and how good it is.

Vectors that move: `search` chooses gamma and C by `SparseKernelClassifierCV` and its regression
twin, of more than `SEARCH_ROWS` rows on that many random ones, and fits a number of vectors that is
given, or `MOVED_VECTORS`.

Selected vectors: it chooses the kernel's gamma and the number of vectors by the exact
cross-validated path of `KernelMatchingPursuitClassifierCV` and its twin, one gamma at a time, so
that a caller can show progress. The work stays bounded on large files. A Gram matrix costs the
square of the number of candidates for each row, so the candidates are at most `MOST_CANDIDATES`
random rows; of more than `MANY_ROWS`, `CANDIDATES_OF_MANY`. Gamma is chosen with at most
`SEARCH_CANDIDATES` candidates, and on more than `SEARCH_ROWS` rows on that many random ones; the
number of vectors is then chosen on all rows. Under a loss other than squared error the vectors are
chosen by squared error, and all coefficients are fitted under the loss after every `REFIT_EVERY` of
them: passes over the candidates and re-fits are what such a path costs.

A model is measured by what its loss asks for, beside the best constant in that respect:

=======================  ===============================  ===================
loss                     error                            constant
=======================  ===============================  ===================
any, for classes         share of wrong labels            most frequent label
squared error            root of the mean squared error   mean
Huber, absolute error    mean absolute error              median
quantile                 mean pinball loss                quantile
Poisson                  mean deviance                    mean
=======================  ===============================  ===================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_poisson_deviance
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.class_weight import compute_sample_weight

from pursuit.base.cross_validation import GAMMA_FACTORS
from pursuit.io.tables import DataError, Matrix, Table, shown
from pursuit.kernels import scale_gamma
from pursuit.losses import LOSSES, AbsoluteError, Huber, Loss, Poisson, Quantile
from pursuit.matching_pursuit.estimators import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
)
from pursuit.model_file import in_float32
from pursuit.moving_vectors.cross_validation import (
    SparseKernelClassifierCV,
    SparseKernelRegressorCV,
)
from pursuit.moving_vectors.estimators import SparseKernelClassifier, SparseKernelRegressor
from pursuit.table.preparation import Features, Layout, Task, make_preparation, matching

SEARCH_ROWS = 10_000
SEARCH_CANDIDATES = 1_000
MOST_CANDIDATES = 2_000
MANY_ROWS, CANDIDATES_OF_MANY = 100_000, 1_000
MOST_VECTORS = 200
MOVED_VECTORS = 50
FOLDS, MOVED_FOLDS = 5, 3
REFIT_EVERY = 10

#: What only selected vectors have: losses that are not convex, and a kernel that is indefinite.
SELECTED_LOSSES, SELECTED_KERNELS = ("doom2", "squared_error_tanh"), ("sigmoid",)
KERNELS_WITH_GAMMA = ("rbf", "laplacian", "poly", "sigmoid")

#: Walks through items and shows under a label how far it is, like ``rich.progress.track``.
Track: TypeAlias = Callable[[Sequence[Any], str], Iterable[Any]]

_PLAIN = {
    "classification": KernelMatchingPursuitClassifier,
    "regression": KernelMatchingPursuitRegressor,
}
_CROSS_VALIDATED = {
    "classification": KernelMatchingPursuitClassifierCV,
    "regression": KernelMatchingPursuitRegressorCV,
}
_MOVED = {"classification": SparseKernelClassifier, "regression": SparseKernelRegressor}
_MOVED_CV = {"classification": SparseKernelClassifierCV, "regression": SparseKernelRegressorCV}


class Yardstick(NamedTuple):
    """What an error is called and how it is computed, and the same for the best constant."""

    name: str
    error: Callable[[NDArray[Any], NDArray[Any]], float]
    constant: str
    best: Callable[[NDArray[Any]], Any]


class Fitted(NamedTuple):
    """What `fit` gives."""

    estimator: Any
    preparation: Any
    layout: Layout
    X: Features  # of shape (n_rows, n_features)
    notes: list[str]  # what was done that a user may not expect


@dataclass(frozen=True)
class Measured:
    """Error of the model and of the baseline."""

    error: float
    baseline: float
    n_rows: int


@dataclass(frozen=True)
class Settings:
    """How to fit; None stands for a choice: of gamma and N by cross-validation."""

    task: Task
    n_components: int | None = None
    gamma: float | None = None
    kernel: str = "rbf"
    alpha: float | None = None
    n_candidates: int | None = None
    seed: int = 0
    loss: Loss | str = "squared_error"
    float32: bool = False
    method: Literal["moving", "selected"] = "selected"
    C: float | None = None
    class_weight: Any = None
    callbacks: tuple[Any, ...] = ()

    def fitted(self, model: Any, X: Features, y: NDArray[Any]) -> Any:
        """Return an estimator, fitted while the callbacks look on."""
        try:
            return model.set_callbacks(*self.callbacks).fit(X, y)
        finally:
            model.set_callbacks()

    def as_written(self, model: Any) -> Any:
        """Return a fitted estimator as a file will hold it."""
        return in_float32(model) if self.float32 else model

    def estimator(self, n_rows: int, gamma: float | str, n_components: int) -> Any:
        """Return the plain estimator, not fitted."""
        if self.method == "moving":
            price: dict[str, Any] = {} if self.C is None else {"C": self.C}
            return _MOVED[self.task](n_components, gamma=gamma, **price, **self._moved)
        return _PLAIN[self.task](n_components, gamma=gamma, **self._shared(n_rows))

    def cross_validated(self, n_rows: int, gamma: float | str, splitter: Any) -> Any:
        """Return the estimator that chooses the number of vectors up to a largest, not fitted."""
        budget = min(self.n_components or MOST_VECTORS, n_rows)
        shared = self._shared(n_rows) | {"search_candidates": 1.0}
        return _CROSS_VALIDATED[self.task](budget, gamma=gamma, cv=splitter, **shared)

    @property
    def _moved(self) -> dict[str, Any]:
        own = {"kernel": self.kernel, "loss": self.loss, "random_state": self.seed}
        return own | self._weights

    @property
    def _weights(self) -> dict[str, Any]:
        """The weights of the classes, where there are classes."""
        return {"class_weight": self.class_weight} if self.task == "classification" else {}

    def moved_search(self, n_components: int, splitter: Any) -> Any:
        """Return the estimator that chooses what is not given of gamma and C, not fitted."""
        gammas, Cs = ([given] if given else None for given in (self.gamma, self.C))
        options = self._moved | {"gammas": gammas, "Cs": Cs, "cv": splitter}
        return _MOVED_CV[self.task](n_components, scoring=self._score, **options)

    def _score(self, model: Any, X: Features, y: NDArray[Any]) -> float:
        """What cross-validation holds against held-out rows: the error that is shown, negative.

        Weights of classes count for the rows there, too.
        """
        if self.class_weight is None:
            return -yardstick(self.task, model).error(y, model.predict(X))
        weights = compute_sample_weight(model.class_weight, y)
        return -float(np.average(y != model.predict(X), weights=weights))

    def _shared(self, n_rows: int) -> dict[str, Any]:
        bound = MOST_CANDIDATES if n_rows <= MANY_ROWS else CANDIDATES_OF_MANY
        most = self.n_candidates or bound
        shared = {
            "kernel": self.kernel,
            "loss": self.loss,
            "alpha": "auto" if self.alpha is None else self.alpha,
            "n_candidates": most if most < n_rows else None,
            "random_state": self.seed,
            **self._weights,
        }
        if self.loss != "squared_error":
            shared |= {"selection": "squared_error", "refit_every": REFIT_EVERY}
        return shared


def selected_only(kernel: str, loss: Loss | str, **given: Any) -> str | None:
    """Return the first parameter that asks for selected vectors, or None.

    Parameters
    ----------
    kernel, loss : str
        Their names; a loss may be a value.
    **given : object
        Parameters that vectors which move do not have; None and False are not given.
    """
    of_selected = (LOSSES[name] for name in SELECTED_LOSSES)
    asked = {name: value is not None and value is not False for name, value in given.items()}
    asked["loss"] = loss in SELECTED_LOSSES or any(loss == value for value in of_selected)
    asked["kernel"] = kernel in SELECTED_KERNELS
    return next((name for name, told in asked.items() if told), None)


def loss_task(loss: Any) -> Task | None:
    """Return the task of a loss, or None where it serves both."""
    task = getattr(LOSSES.get(loss) if isinstance(loss, str) else loss, "task", None)
    names: dict[str | None, Task] = {"classifier": "classification", "regressor": "regression"}
    return names.get(task)


def losses_of(task: Task) -> list[str]:
    """Return the names of the losses that serve a task."""
    return [name for name in LOSSES if loss_task(name) in (None, task)]


def check_targets(data: Table | Matrix, y: NDArray[Any], layout: Layout, loss: Any) -> None:
    """Raise a `DataError` that names the first count below zero, for which Poisson has no loss."""
    counts = isinstance(loss, Poisson) or loss == "poisson"
    if counts and (y < 0).any():
        row = int(np.argmax(y < 0))
        place = data.where(row) if isinstance(data, Table) else f"{data.path}: row {row + 1}"
        raise DataError(
            f"{place}: column {layout.target!r}: {y[row]:g} is below zero, where the Poisson loss "
            "is not defined"
        )


def fit(
    data: Table | Matrix, y: NDArray[Any], layout: Layout, settings: Settings, track: Track
) -> Fitted:
    """Prepare the features, choose gamma and the number of vectors, and fit.

    Parameters
    ----------
    data : Table or Matrix
        Rows that have a target.
    y : ndarray of shape (n_rows,)
        Their labels or numbers.
    layout : Layout
        What the columns are.
    settings : Settings
        What is given.
    track : callable
        Shows progress.
    """
    if layout.task == "classification" and (y == y[0]).all():
        raise DataError(f"{data.path}: column {layout.target!r}: one class only: {shown(y[0])}")
    preparation = make_preparation(layout)
    for _ in track([0], "preparing the features"):
        X = preparation.fit_transform(matching(data, layout))
    estimator, notes = search(X, y, settings, track)
    guess = yardstick(layout.task, estimator).best(y)
    layout = replace(layout, baseline=guess.item() if isinstance(guess, np.generic) else guess)
    return Fitted(estimator, preparation, layout, X, notes)


def search(X: Features, y: NDArray[Any], settings: Settings, track: Track) -> tuple[Any, list[str]]:
    """Choose gamma and the number of vectors where they are not given, and fit.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Labels or numbers.
    settings : Settings
        What is given.
    track : callable
        Shows progress.

    Returns
    -------
    model : estimator
        Fitted to all rows.
    notes : list of str
        What was done that a user may not expect.
    """
    if settings.method == "moving":
        return _moved(X, y, settings, track)
    n_rows, notes = len(y), []
    splitter = folds(y, settings)
    gamma: float | str = settings.gamma or "scale"
    if splitter is None:
        notes.append("too few rows to cross-validate: gamma and the number of vectors are defaults")
    elif settings.gamma is None and settings.kernel in KERNELS_WITH_GAMMA:
        gamma = _best_gamma(X, y, settings, track)
        if n_rows > SEARCH_ROWS:
            notes.append(f"gamma was chosen on {SEARCH_ROWS} of the {n_rows} rows")
    if splitter is None or settings.n_components is not None:
        budget = min(settings.n_components or MOST_VECTORS, n_rows)
        model = settings.estimator(n_rows, gamma, budget)
    else:
        model = settings.cross_validated(n_rows, gamma, splitter)
    for _ in track([0], f"fitting {n_rows} rows"):
        with warnings.catch_warnings():
            if settings.n_components is None:  # nobody asked for as many as were tried
                warnings.simplefilter("ignore", ConvergenceWarning)
            settings.fitted(model, X, y)
    if settings.n_components is None and model.n_components_ == MOST_VECTORS:
        notes.append(f"the error still falls at {MOST_VECTORS} vectors: --n-components allows more")
    if "cv" in model.get_params():
        model.set_params(cv=splitter.get_n_splits())  # a model file holds no splitter
    return model, notes


def _moved(X: Features, y: NDArray[Any], settings: Settings, track: Track) -> tuple[Any, list[str]]:
    """Choose gamma and C of vectors that move, and fit."""
    n_rows, notes = len(y), []
    budget = min(settings.n_components or MOVED_VECTORS, n_rows)
    gamma: float | str = settings.gamma or "scale"
    search = settings.gamma is None or settings.C is None
    if search and folds(y, settings) is None:
        notes.append("too few rows to cross-validate: gamma and C are defaults")
    elif search:
        if n_rows > SEARCH_ROWS:
            notes.append(f"gamma and C were chosen on {SEARCH_ROWS} of the {n_rows} rows")
        for _ in track([0], "choosing gamma and C"):
            best = _best_of_moved(X, y, settings, budget)
        gamma, settings = best["gamma"], replace(settings, C=best["C"])
    model = settings.estimator(n_rows, gamma, budget)
    for _ in track([0], f"fitting {n_rows} rows"):
        settings.fitted(model, X, y)
    return model, notes


def _best_of_moved(X: Features, y: NDArray[Any], settings: Settings, budget: int) -> dict[str, Any]:
    """Return the best gamma and C by cross-validation on at most `SEARCH_ROWS` rows."""
    if len(y) > SEARCH_ROWS:
        rows = some_rows(len(y), settings.seed)
        X, y = X[rows], y[rows]
    search = settings.moved_search(min(budget, len(y)), folds(y, settings, MOVED_FOLDS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best: dict[str, Any] = search.fit(X, y).best_params_
    return best


def _best_gamma(X: Features, y: NDArray[Any], settings: Settings, track: Track) -> float:
    """Return the gamma with the lowest cross-validated loss, at the given size or at any."""
    if len(y) > SEARCH_ROWS:
        rows = some_rows(len(y), settings.seed)
        X, y = X[rows], y[rows]
    settings = replace(settings, n_candidates=settings.n_candidates or SEARCH_CANDIDATES)
    splitter = folds(y, settings)
    scale, losses = scale_gamma(X), {}
    for gamma in track([scale * factor for factor in GAMMA_FACTORS], "choosing gamma"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = settings.cross_validated(len(y), gamma, splitter).fit(X, y)
        path = model.cv_loss_path_[0].mean(axis=0)
        losses[gamma] = path[-1] if settings.n_components else path.min()
    best: float = min(losses, key=losses.__getitem__)
    return best


def folds(y: NDArray[Any], settings: Settings, most: int = FOLDS) -> Any:
    """Return the splitter for cross-validation, or None if there are too few rows.

    Every training part holds two classes: the two largest have a row in it.
    """
    if settings.task == "regression":
        n_folds = min(most, len(y))
        return KFold(n_folds, shuffle=True, random_state=settings.seed) if n_folds > 2 else None
    n_folds = min(most, int(np.sort(np.unique(y, return_counts=True)[1])[-2]))
    if n_folds < 2:
        return None
    return StratifiedKFold(n_folds, shuffle=True, random_state=settings.seed)


def some_rows(n_rows: int, seed: int) -> NDArray[np.int64]:
    """Return `SEARCH_ROWS` random rows in order."""
    return np.sort(np.random.default_rng(seed).choice(n_rows, SEARCH_ROWS, replace=False))


def held_out_error(
    X: Features, y: NDArray[Any], fitted: Any, layout: Layout, settings: Settings, track: Track
) -> Measured | None:
    """Return the error of refits, at the fitted gamma and size, on rows they have not seen.

    On up to twice `SEARCH_ROWS` rows these are the folds of a cross-validation; on more it is one
    refit and `SEARCH_ROWS` random rows; too few rows give None.
    """
    splits = _splits(y, settings)
    if not splits:
        return None
    gamma = getattr(fitted.kernel_, "gamma", "scale")
    settings = replace(settings, C=getattr(fitted, "C", None))
    predicted = []
    for train, test in track(splits, "measuring the error"):
        n_components = max(1, min(fitted.n_components_, len(train)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            refit = settings.estimator(len(train), gamma, n_components)
            settings.fitted(refit, X[train], y[train])
        predicted.append(settings.as_written(refit).predict(X[test]))
    tests = np.concatenate([test for _, test in splits])
    return measure(y[tests], np.concatenate(predicted), fitted, layout)


def _splits(y: NDArray[Any], settings: Settings) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    if len(y) > 2 * SEARCH_ROWS:
        test = some_rows(len(y), settings.seed + 1)
        return [(np.setdiff1d(np.arange(len(y)), test), test)]
    splitter = folds(y, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
        return [] if splitter is None else list(splitter.split(y, y))


def measure(y: NDArray[Any], predicted: NDArray[Any], estimator: Any, layout: Layout) -> Measured:
    """Return the error of predictions, and that of the best constant of the training rows."""
    error = yardstick(layout.task, estimator).error
    constant = np.full(len(y), layout.baseline)
    return Measured(error(y, predicted), error(y, constant), len(y))


def yardstick(task: Task, estimator: Any) -> Yardstick:
    """Return how a fitted estimator is measured: see the table at the top of this file."""
    if task == "classification":
        return Yardstick("error", wrong_share, "always the most frequent", most_frequent)
    loss = estimator.loss_
    if isinstance(loss, Quantile):
        return _pinball(loss.quantile)
    return _YARDSTICKS.get(type(loss), _ROOT_MEAN_SQUARE)


def wrong_share(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the share of wrong labels."""
    return float(np.mean(y != predicted))


def most_frequent(y: NDArray[Any]) -> Any:
    """Return the most frequent label."""
    labels, counts = np.unique(y, return_counts=True)
    return labels[counts.argmax()]


def root_mean_square(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def mean_deviance(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the mean deviance of counts; a mean too small for a number counts as the least."""
    return float(mean_poisson_deviance(y, np.maximum(predicted, np.finfo(float).tiny)))


def _pinball(level: float) -> Yardstick:
    """Return the measure of a quantile."""
    return Yardstick(
        "mean pinball loss",
        lambda y, predicted: float(mean_pinball_loss(y, predicted, alpha=level)),
        f"the {level:g} quantile",
        lambda y: np.quantile(y, level),
    )


_ROOT_MEAN_SQUARE = Yardstick("root mean squared error", root_mean_square, "the mean", np.mean)
_ABSOLUTE = Yardstick("mean absolute error", mean_absolute_error, "the median", np.median)
_YARDSTICKS = {
    Huber: _ABSOLUTE,
    AbsoluteError: _ABSOLUTE,
    Poisson: Yardstick("mean Poisson deviance", mean_deviance, "the mean", np.mean),
}
