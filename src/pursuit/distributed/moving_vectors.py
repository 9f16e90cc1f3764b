"""Vectors that move, over blocks of rows: `SparseKernelClassifier` and `SparseKernelRegressor`.

The energy W(Z) of ``optimize/variable_projection.py`` under squared error, whose symbols and
equations these are. Its evaluation asks of the rows two sums, of constant size:

1. K'WK and K'W(Y, 1), of which B and b are the solution of a system of N unknowns;
2. with B and b the slopes of eq. 1 to 3, and sum_i w_i |y_i - f(x_i)|^2.

Each is a task a block and a tree; the systems, and L-BFGS, are the client's.

Steps of a fit.

1. One pass finds the classes and the variance of the rows, another draws `SAMPLE_ROWS` rows at
   most, by their hashes.
2. The vectors move on these rows as they do in memory, on parts of a fit's rows (``moving.py``).
3. They move on all rows, `max_iter` iterations at most.
4. The coefficients follow from sums over all rows (``moving_vectors/refit.py``), and the row
   nearest to each vector by a search of every block.

Cost of an evaluation: that in memory, and two rounds of the cluster. Rows are read anew for each;
``X.persist()`` beforehand keeps them in the memory of the workers.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from pursuit._typing import Array
from pursuit._validation import class_codes, read_data
from pursuit.distributed.matching_pursuit import weighed
from pursuit.distributed.parts import Parts, parts_of, total
from pursuit.distributed.reading import (
    Reader,
    block_samples,
    counts,
    reader_of,
    surveyed,
    with_classes,
)
from pursuit.geometry.nearest import NearestRows
from pursuit.greedy.statistics import RowSketch, every_row
from pursuit.greedy.survey import Survey
from pursuit.kernels import gamma_of
from pursuit.losses import LOSSES, Loss
from pursuit.moving_vectors.estimators import MovingVectors
from pursuit.moving_vectors.projected import mapped
from pursuit.moving_vectors.setting import Setting
from pursuit.optimize.coefficients import (
    Coefficients,
    Spread,
    Targets,
    least_squares,
    normal_sums,
)
from pursuit.optimize.kernel_blocks import BlockValues, Place, Table
from pursuit.optimize.moving import unit_of
from pursuit.optimize.variable_projection import (
    Free,
    Outer,
    Problem,
    Step,
    assembled,
    descend,
    frame_of,
    outer_slopes,
    pulled_by,
    squared_errors,
    unreliable,
)

__all__ = ["BlockProblem", "fit"]

LOSS = LOSSES["squared_error"]
# Rows on which vectors move first, at most, and numbers in these.
SAMPLE_ROWS, SAMPLE_ENTRIES = 50_000, 1 << 23
# Rows of each class among them, at least, where there are so many.
LEAST_OF_CLASS = 20


class Searched(NamedTuple):
    """What every task knows: how to read a block, and where the search takes place."""

    reader: Reader
    setting: Setting
    dtype: Any
    C: float

    def problem(self, X: Any, y: Any, weights: Any) -> Problem | None:
        """The energy's rows, targets and weights in one block."""
        samples = block_samples(self.reader, X, y, weights)
        if samples is None:
            return None
        _, centre, scale, _, columns, _ = self.setting
        table = Table(samples.X, centre, self.dtype, scale, columns)
        return Problem(table, samples.Y, self.C * samples.weights, LOSS)


class BlockProblem(NamedTuple):
    """The energy of rows in blocks, for `descend`."""

    blocks: list[tuple[Any, Any, Any]]
    rows: Searched
    spread: Spread

    @property
    def loss(self) -> Loss:
        """The squared error."""
        return LOSS

    def step(
        self,
        place: Place,
        last: Step | None = None,
        *,
        learn_gamma: bool = False,
        exact: bool = False,
    ) -> Step:
        """W at a place, with its slopes."""
        exact = exact or (last is not None and last.coefficients.exact)
        step = self._evaluated(place, learn_gamma, exact)
        return self._evaluated(place, learn_gamma, True) if unreliable(step) else step

    def _evaluated(self, place: Place, learn_gamma: bool, exact: bool) -> Step:
        """The two sums over the rows, and what follows from them."""
        frame, mean = frame_of(place, self.rows.dtype), self.spread.mean
        sums = total(_normal_sums, _added, self.blocks, self.rows, place, mean, exact)
        exact = exact or self.rows.dtype == np.float64
        found = least_squares(frame.gram, sums, self.spread, intercept=True, exact=exact)
        slopes = total(_slope_sums, _added, self.blocks, self.rows, place, found, learn_gamma)
        in_Z, in_gamma, in_A, squares = slopes
        outer = Outer(np.empty((0, len(mean))), in_Z, in_gamma, None if place.A is None else in_A)
        return assembled(place, frame, found, outer, learn_gamma=learn_gamma, squares=squares)


def _normal_sums(
    rows: Searched, place: Place, mean: Array, exact: bool, X: Any, y: Any, weights: Any
) -> tuple[Array, Array] | None:
    """Sum 1 of one block."""
    problem = rows.problem(X, y, weights)
    if problem is None:
        return None
    targets = Targets(problem.Y - mean, problem.weights, LOSS, True, exact)
    return normal_sums(BlockValues(problem.table, place), targets)


def _slope_sums(
    rows: Searched,
    place: Place,
    found: Coefficients,
    learn_gamma: bool,
    X: Any,
    y: Any,
    weights: Any,
) -> tuple[Any, ...] | None:
    """Sum 2 of one block."""
    problem = rows.problem(X, y, weights)
    if problem is None:
        return None
    values, wanted = BlockValues(problem.table, place), (learn_gamma, place.A is not None)
    outer = outer_slopes(values, found, pulled_by(problem, found), wanted)
    in_A = 0.0 if outer.A is None else outer.A
    return outer.Z, outer.log_gamma, in_A, squared_errors(outer.G, problem.weights)


def _added(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sums over the rows of both."""
    return tuple(a + b for a, b in zip(left, right, strict=True))


class Kept(NamedTuple):
    """How many rows a sample holds: in all, and of each class at least."""

    rows: int
    of_class: int


class Sampled(NamedTuple):
    """Some rows with their targets, and of all targets W, mean and squares about it."""

    rows: RowSketch
    spread: Spread
    kept: Kept
    one_dimensional: bool

    def plus(self, other: Sampled) -> Sampled:
        """That of the rows of both."""
        (W, mean, square), (W2, mean2, square2) = self.spread, other.spread
        share, delta = W2 / (W + W2), mean2 - mean
        square += square2 + float(delta @ delta) * share * W
        spread = Spread(W + W2, mean + share * delta, square)
        rows = thinned(self.rows.joined(other.rows), self.kept)
        return Sampled(rows, spread, self.kept, self.one_dimensional)


def thinned(rows: RowSketch, kept: Kept) -> RowSketch:
    """The rows of smallest hash, of all and of each class."""
    order = rows.order
    chosen = np.arange(len(order)) < kept.rows
    if kept.of_class:
        codes = class_codes(rows.Y)[order]
        for code in np.unique(codes):
            chosen[np.flatnonzero(codes == code)[: kept.of_class]] = True
    return rows.take(order[chosen])


def _block_sample(reader: Reader, kept: Kept, X: Any, y: Any, weights: Any) -> Sampled | None:
    """The sample of one block."""
    samples = block_samples(reader, X, y, weights)
    if samples is None:
        return None
    _, Y, w, _ = samples
    codes = class_codes(Y) if kept.of_class else np.zeros(len(Y), dtype=int)
    weight, mean = float(w.sum()), np.average(Y, axis=0, weights=w)
    spread = Spread(weight, mean, float((w[:, None] * (Y - mean) ** 2).sum()))
    rows = thinned(every_row(samples, codes), kept)
    return Sampled(rows, spread, kept, np.ndim(y) == 1)


def fit(model: MovingVectors, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Fit vectors that move on collections.

    Parameters
    ----------
    model : SparseKernelClassifier or SparseKernelRegressor
        Under squared error.
    X, y, sample_weight : dask collections
        Rows, labels or numbers, and weights.
    """
    _check(model)
    parts = parts_of(X, y, sample_weight)
    reader, classifier = reader_of(model, parts), is_classifier(model)
    seen = surveyed(reader, parts, Survey(1), labels=classifier)
    if classifier:
        with_classes(reader, seen)
    if isinstance(model.gamma, str) and model.gamma == "scale":
        reader.gamma = gamma_of(seen.survey.spread, reader.n_features_in_)
    n_rows = max(1, min(SAMPLE_ROWS, SAMPLE_ENTRIES // reader.n_features_in_))
    kept = Kept(n_rows, LEAST_OF_CLASS if classifier else 0)
    found = total(_block_sample, Sampled.plus, parts.blocks, reader, kept)
    start = _started(model, reader, found)
    _take_fitted(model, start, reader)
    _move_on(model, start, reader, parts, found)
    empty = model.empty_statistics()
    empty._begin_as(reader)
    model.refit(weighed(empty, reader, parts))
    nearest = total(_block_nearest, _nearer, parts.blocks, reader, model.expansion_)
    model.nearest_rows_ = nearest[1]
    return model


def _check(model: MovingVectors) -> None:
    """Raise one error that names the first parameter that asks for more than blocks can tell."""
    model._check_parameters()
    if model.loss not in ("squared_error", LOSS):
        raise ValueError(f"loss must be 'squared_error' for a dask collection, got {model.loss!r}")
    for name, needed in (("early_stopping", False), ("max_bytes", None)):
        if getattr(model, name) is not needed:
            raise ValueError(f"{name} must be {needed} for a dask collection")
    if model.precision not in (None, "float64"):
        raise ValueError("precision must be None for a dask collection")


def _started(model: MovingVectors, reader: Reader, found: Sampled) -> Any:
    """Step 2: the model of the sample, or the last fit where that is the start."""
    if model._continues():
        return copy.copy(model)
    start, rows = clone(reader), found.rows
    targets = rows.Y[:, 0] if found.one_dimensional else rows.Y
    if is_classifier(reader):
        targets, start.class_weight = reader.classes_[class_codes(rows.Y)], None
    start._trial = True
    return start.fit(rows.X, targets, rows.weights)


def _take_fitted(model: MovingVectors, start: Any, reader: Reader) -> None:
    """Take what the start has found, and what the features are called."""
    given = model.get_params(deep=False)
    for name, value in (vars(start) | vars(reader)).items():
        if name not in given and name != "_trial":
            setattr(model, name, value)


def _move_on(
    model: MovingVectors, start: Any, reader: Reader, parts: Parts, found: Sampled
) -> None:
    """Step 3."""
    start.warm_start, sample = True, found.rows.samples
    rng = check_random_state(model.random_state)
    setting = start._setting(start.kernel_, sample, LOSS, rng)
    # A column that is constant in the sample may vary elsewhere.
    setting = setting._replace(columns=None)
    place = Place(setting.kernel, start._last_vectors(setting), setting.A)
    problem = start._problem(sample, LOSS, setting)
    weight, mean, square = found.spread
    spread = Spread(model.C * weight, mean, model.C * square)
    rows = Searched(reader, setting, problem.table.dtype, model.C)
    one = model._learns_gamma(setting.own or setting.kernel) and setting.own is None
    descent = descend(
        BlockProblem(parts.blocks, rows, spread),
        place,
        unit_of(problem, place),
        max_iter=model.max_iter,
        tol=model.tol,
        free=Free(one, setting.A is not None, model.C),
    )
    model.loss_ = LOSS
    model._store_step(descent.best, setting)
    model._store_facts(descent.best, descent, problem)


def _block_nearest(
    reader: Reader, expansion: Any, X: Any, y: Any, weights: Any
) -> tuple[Array, Array, int]:
    """The row of one block nearest to each vector: squared distance, place, number of rows."""
    centres, scale = expansion.atoms.centres, getattr(expansion.atoms, "scale", None)
    nothing = np.full(len(centres), np.inf), np.zeros(len(centres), dtype=np.intp), X.shape[0]
    found = counts(X, y, weights)
    if found is None:
        return nothing
    used = np.flatnonzero(found > 0)
    rows = read_data(reader, X, reset=False, accept_sparse="csr")[used]
    index = NearestRows(rows if scale is None else mapped(rows, scale))
    queries = index.alike(centres)
    nearest = index.search(queries, 1)
    return index.squared_distances(queries, nearest)[:, 0], used[nearest[:, 0]], X.shape[0]


def _nearer(
    left: tuple[Array, Array, int], right: tuple[Array, Array, int]
) -> tuple[Array, Array, int]:
    """The nearer of the rows of both; of equally near ones the first."""
    closer = right[0] < left[0]
    distances = np.where(closer, right[0], left[0])
    return distances, np.where(closer, right[1] + left[2], left[1]), left[2] + right[2]
