"""The estimators whose vectors move; the way is that of `pursuit.optimize.moving`.

With ``learn_gamma`` or ``metric`` the parameters of the kernel are learned with the weights, as in
the network of figure 6.1 of P. Vincent, "Modeles a noyaux a structure locale", thesis, Montreal,
2003.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state

from pursuit._typing import Array, Watch
from pursuit._validation import Samples, check_choice, check_integer, check_real, class_codes
from pursuit._warnings import warn
from pursuit.base.arrays import following
from pursuit.base.callbacks import CALLBACK_STATE, CallbackSupport, Watcher
from pursuit.base.docstrings import with_entries
from pursuit.base.estimators import ExpansionClassifier
from pursuit.base.intervals import IntervalRegressor
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.gradients import relevances
from pursuit.expansion.intervals import error_quantiles
from pursuit.expansion.leave_one_out import left_out_outputs
from pursuit.expansion.probabilities import fit_temperature
from pursuit.geometry.nearest import NearestRows
from pursuit.greedy.starts import (
    STARTS,
    chosen_rows,
    cluster_centres,
    random_rows,
)
from pursuit.kernels import Kernel, is_precomputed
from pursuit.linalg import blocks
from pursuit.linalg.rounding import PRECISIONS
from pursuit.losses import Loss, resolve_loss
from pursuit.moving_vectors.docstrings import ENTRIES
from pursuit.moving_vectors.early_stopping import Ends, HeldOutWatch
from pursuit.moving_vectors.few_bytes import (
    best_size,
    bytes_of,
    possible_sizes,
    with_rounded_coefficients,
)
from pursuit.moving_vectors.leave_one_out import outputs_without
from pursuit.moving_vectors.metric import learn_metric, principal_axes
from pursuit.moving_vectors.projected import map_of, mapped
from pursuit.moving_vectors.refit import RefitsCoefficients
from pursuit.moving_vectors.setting import Setting, in_features, setting_of
from pursuit.optimize.kernel_blocks import Place, Table
from pursuit.optimize.moving import (
    Plan,
    most_steps,
    move,
    origin,
    precision,
    shift_invariant,
)
from pursuit.optimize.variable_projection import (
    Descent,
    Free,
    Hinge,
    Problem,
    Step,
    energy,
)

__all__ = ["MovingVectors", "SparseKernelClassifier", "SparseKernelRegressor", "check_metric"]

METRICS = ("diagonal", "full")
# Rounds of a learned metric: from none, and from the one that a fit nearby has learned.
METRIC_ROUNDS, MORE_ROUNDS = 3, 1
# Rows on which the temperature is fitted.
TEMPERATURE_ROWS = 2000
# Rows over which slopes are averaged.
RELEVANCE_ROWS = 2000


@constructor
class MovingVectors(CallbackSupport, KernelParameters, RefitsCoefficients):
    """What the classifier and the regressor share: the parameters and the fit."""

    _entries: ClassVar[dict[str, str]] = ENTRIES
    # Whether the fit is one of many, of which nothing but the score is wanted.
    _trial = False

    n_components: Any = positional(50)
    C: float = 10.0
    loss: Any = "squared_error"
    metric: str | int | None = None
    learn_gamma: bool = False
    init: Any = "random"
    n_init: int = 1
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    scoring: Any = None
    max_iter: int = 60
    tol: float = 1e-4
    warm_start: bool = False
    max_bytes: int | None = None
    precision: str | None = None
    random_state: Any = None

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Move the vectors to where the energy is low.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or, for a regressor, (n_samples, n_targets)
            Labels of at least two classes, or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts as the row twice, 0 as the row removed.

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
        used = np.flatnonzero(samples.weights > 0)
        samples = samples.take(used)
        with self._watching(X, y, sample_weight, n_steps=self._most_steps(samples)) as watcher:
            if self.max_bytes is not None:
                self._fit_within(samples, (X, y, sample_weight), watcher)
            else:
                self._fit_rows(samples, used, watcher)
        return self

    def _fit_rows(self, samples: Samples, used: Array, watcher: Watcher | None) -> None:
        """Move the vectors on rows of positive weight, which were `used` of all."""
        loss = self._resolved_loss(samples)
        rng = check_random_state(self.random_state)
        kernel = self._resolved_kernel(samples)
        if not self._continues():
            self._check_budget(samples)
        fitted, held_out = self._hold_out(samples, rng)
        ends = Ends(samples, used, held_out, loss)
        report = None if watcher is None else partial(self._report, watcher, ends)
        setting = self._setting(kernel, fitted, loss, rng, report)
        problem = self._problem(fitted, loss, setting)
        whole = problem if held_out is None else None
        told = None if report is None else partial(report, setting, whole)
        descents = []
        for Z in self._starts(setting, fitted, rng):
            descents.append(self._descend(problem, setting, Z, held_out, (rng, told)))
            if watcher is not None and watcher.reason:
                break
        best = min(descents, key=self._rank)
        if watcher is not None and watcher.reason:
            best = best._replace(reason=watcher.reason)
        self._end(best, setting, whole, ends)

    def _end(self, descent: Descent, setting: Setting, problem: Problem | None, ends: Ends) -> None:
        """Set the fitted attributes, of vectors that are rounded where that is asked for."""
        samples, used, held_out, loss = ends
        step, problem = descent.best, problem or self._problem(samples, loss, setting)
        if held_out is not None:
            step = energy(problem, step.place)
        self.loss_ = loss
        if self.precision not in (None, "float64"):
            setting, place = setting.rounded(step.place, str(self.precision))
            problem = self._problem(samples, loss, setting)
            step = with_rounded_coefficients(problem, energy(problem, place), str(self.precision))
        self._store_step(step, setting)
        self._store_facts(step, descent, problem)
        self._calibrate(samples if held_out is None else held_out, fresh=held_out is not None)
        if not self._trial:
            self._measure_errors(samples, held_out)
            self.nearest_rows_ = used[self._nearest_rows(samples.X)]

    def _report(
        self,
        watcher: Watcher,
        ends: Ends,
        setting: Setting,
        problem: Problem | None,
        step: Step,
    ) -> str | None:
        """Tell of a step on the way to the end; `problem`: of all rows, if it is at hand."""

        def store(model: MovingVectors) -> None:
            own = copy.copy(self)
            so_far = Descent(step, np.array([step.value]), "max_iter")
            own._end(so_far, setting, problem, ends)
            model._adopt(own)

        return watcher(store)

    def _most_steps(self, samples: Samples) -> int | None:
        """The largest number of steps, if it is known beforehand."""
        if self.max_bytes is not None or isinstance(self.metric, str):
            return None
        n_starts = self.n_init if isinstance(self.init, str) and not self._continues() else 1
        n_vectors = min(int(self.n_components), samples.X.shape[0])
        return n_starts * most_steps(samples.X.shape[0], n_vectors, self.max_iter)

    def _adopt(self, model: MovingVectors) -> None:
        """Take what a fitted model has."""
        hidden = {*model.get_params(deep=False), *CALLBACK_STATE}
        self.__dict__.update((k, v) for k, v in vars(model).items() if k not in hidden)

    def _fit_within(
        self, samples: Samples, data: tuple[Any, Any, Any], watcher: Watcher | None
    ) -> None:
        """Choose what fits into the budget of bytes, and fit that."""
        rng = check_random_state(self.random_state)
        sizes = possible_sizes(self, samples)
        size, self.rounding_loss_ = best_size(self, samples, self._seen(samples), sizes, rng)
        model = clone(self).set_params(**size._asdict(), max_bytes=None)
        with model._inner_fit(watcher):
            model.fit(*data)
        self._adopt(model)

    def _rank(self, descent: Descent) -> float:
        """What the best of several starts has the least of."""
        return float(descent.best.value)

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_integer("max_bytes", self.max_bytes, optional=True)
        check_choice("precision", self.precision, (None, *PRECISIONS))
        if self.max_bytes is None or self.n_components != "auto":
            check_integer("n_components", self.n_components)
        check_real("C", self.C, above=True)
        for name in ("n_init", "n_iter_no_change"):
            check_integer(name, getattr(self, name))
        check_integer("max_iter", self.max_iter, 0)
        check_real("tol", self.tol)
        for name in ("learn_gamma", "early_stopping", "warm_start"):
            check_choice(name, getattr(self, name), (True, False))
        check_real("validation_fraction", self.validation_fraction, below=1.0, above=True)
        if isinstance(self.init, str):
            check_choice("init", self.init, STARTS)
        if self.max_bytes is None or self.metric != "auto":
            check_metric("metric", self.metric)
        if self.max_bytes is not None and self.metric in METRICS:
            raise ValueError(f"metric={self.metric!r} does not go with max_bytes")
        if self.max_bytes is not None and self.warm_start:
            raise ValueError("warm_start=True does not go with max_bytes, which compares new fits")
        if is_precomputed(self.kernel):
            raise ValueError("kernel='precomputed' holds no rows between which vectors could move")

    def _check_budget(self, samples: Samples) -> None:
        """Say so where there are fewer rows than vectors."""
        if self.n_components > samples.X.shape[0] and isinstance(self.init, str):
            warn(
                f"n_components={self.n_components}, but {samples.X.shape[0]} vectors, as many as "
                "there are rows, give every function that the kernel machine can take",
                ConvergenceWarning,
            )

    def _resolved_loss(self, samples: Samples) -> Loss:
        """The loss as a value, convex, with its numbers."""
        raise NotImplementedError

    def _convex(self, samples: Samples, classifier: bool) -> Loss:
        """The loss of that name for a classifier or a regressor."""
        if isinstance(self.loss, str) and self.loss == "hinge" and classifier:
            return Hinge()
        n_outputs = samples.Y.shape[1]
        loss = resolve_loss(self.loss, classifier=classifier, n_outputs=n_outputs, one_basis=True)
        if not loss.convex:
            raise ValueError(f"loss={self.loss!r} is not convex in the outputs")
        loss.check_targets(samples.Y)
        return loss.resolved(samples.Y, samples.weights)

    def _continues(self) -> bool:
        """Whether this fit starts from the last one."""
        return bool(self.warm_start) and hasattr(self, "expansion_")

    def _setting(
        self, kernel: Kernel, samples: Samples, loss: Loss, rng: Any, report: Any = None
    ) -> Setting:
        """The kernel and the coordinates."""
        centre = origin(kernel, samples)
        n = min(int(self.n_components), samples.X.shape[0])
        scale = getattr(self.expansion_.atoms, "scale", None) if self._continues() else None
        if scale is not None:
            moving = isinstance(self.metric, int)
            kept, moved = (None, scale) if moving else (scale, None)
            return Setting(self.kernel_ or kernel, centre, kept, moved)
        kernel = (self.kernel_ or kernel) if self._continues() else kernel
        start = setting_of(kernel, samples.X, centre, learn_gamma=self.learn_gamma)
        if self.metric is None or self._continues():
            return start
        if not shift_invariant(kernel):
            raise ValueError(f"metric={self.metric!r} needs the rbf or the laplacian kernel")
        plain = start._replace(A=None, columns=None, own=None)
        problem = self._problem(samples, loss, plain)
        if not isinstance(self.metric, str):
            rank = min(int(self.metric), problem.table.shape[1])
            map_given: Any = getattr(self.init, "metric_", None)
            if np.shape(map_given) == (samples.X.shape[1], rank):
                return plain._replace(scale=None, A=np.array(map_given))
            return plain._replace(A=principal_axes(problem.table, rank))
        found = self._learned_map(samples.X.shape[1])
        n_rounds = METRIC_ROUNDS if found is None else MORE_ROUNDS

        def behind(step: Step, scale: Array) -> str | None:
            said: str | None = report(Setting(step.place.kernel, centre, scale, None), None, step)
            return said

        learn = partial(learn_metric, report=None if report is None else behind)
        learned = learn(problem, plain.kernel, self.metric, n, n_rounds, rng, found)
        self.metric_losses_ = learned.losses
        return Setting(learned.kernel, centre, learned.scale, None)

    def _learned_map(self, n_features: int) -> Array | None:
        """The map that a model given as `init` has learned, if its metric is of the same form."""
        atoms = getattr(getattr(self.init, "expansion_", None), "atoms", None)
        scale: Array | None = getattr(atoms, "scale", None)
        shape = (n_features,) if self.metric == "diagonal" else (n_features,) * 2
        if scale is None or scale.shape != shape or self.init.metric != self.metric:
            return None
        return scale

    def _problem(self, samples: Samples, loss: Loss, setting: Setting) -> Problem:
        """The energy's rows, targets and weights."""
        X, Y, weights, _ = samples
        dtype = precision(setting.kernel, samples, self.n_components, setting.centre, setting.scale)
        dtype = np.float64 if isinstance(loss, Hinge) else dtype
        columns = setting.columns
        table = Table(X, setting.centre, dtype, setting.scale, columns)
        return Problem(table, Y, self.C * weights, loss, self._fits_intercept)

    _fits_intercept = True

    def _starts(self, setting: Setting, samples: Samples, rng: Any) -> list[Array]:
        """Vectors of each start, in the coordinates of the search."""
        if self._continues():
            return [self._last_vectors(setting)]
        n = min(int(self.n_components), samples.X.shape[0])
        if not isinstance(self.init, str):
            return [setting.searched(self._given(samples, setting.centre, rng))]
        if self.init == "matching_pursuit":
            rows = chosen_rows(setting.own or setting.kernel, samples, [n], rng)[0]
            return [setting.searched(rows)]
        draw = random_rows if self.init == "random" else cluster_centres
        return [setting.searched(draw(samples, n, rng)) for _ in range(self.n_init)]

    def _last_vectors(self, setting: Setting) -> Array:
        """Vectors of the last fit, in the coordinates of the search."""
        atoms = self.expansion_.atoms
        scale = getattr(atoms, "scale", None)
        if scale is None:
            return setting.searched(atoms.centres)
        return np.asarray(atoms.centres - setting.offset(scale))

    def _given(self, samples: Samples, centre: Array, rng: Any) -> Array:
        """The vectors that the user gives, as an array or in a fitted model."""
        n, d = int(self.n_components), samples.X.shape[1]
        if hasattr(self.init, "support_vectors_"):
            Z = in_features(self.init, centre)[:n]
            missing = min(n, samples.X.shape[0]) - len(Z)
            return np.vstack([Z, random_rows(samples, missing, rng)]) if missing > 0 else Z
        Z = check_array(self.init, dtype=np.float64, input_name="init")
        if Z.shape != (n, d):
            raise ValueError(
                f"init must be one of {list(STARTS)}, a fitted model with vectors or an array of "
                f"shape {(n, d)}, got shape {Z.shape}"
            )
        return np.asarray(Z)

    def _descend(
        self,
        problem: Problem,
        setting: Setting,
        Z: Array,
        held_out: Samples | None,
        means: tuple[Any, Watch[Step] | None],
    ) -> Descent:
        """One start to its end; `means`: what draws, and who is told of the steps."""
        rng, told = means
        one = self._learns_gamma(setting.own or setting.kernel) and setting.own is None
        free = Free(one, setting.A is not None, self.C)
        watch = None if held_out is None else HeldOutWatch(self, setting, held_out)
        plan = Plan(self.max_iter, self.tol, free, rng, watch, told)
        descent = move(problem, Place(setting.kernel, Z, setting.A), plan)
        return descent if watch is None else watch.kept(descent)

    def _learns_gamma(self, kernel: Kernel) -> bool:
        """Whether gamma moves."""
        if self.learn_gamma and not hasattr(kernel, "gamma"):
            raise ValueError(f"learn_gamma=True, but {kernel} has no gamma")
        return bool(self.learn_gamma)

    def _hold_out(self, samples: Samples, rng: Any) -> tuple[Samples, Samples | None]:
        """Rows to fit, and rows to look at for early stopping."""
        if not self.early_stopping:
            return samples, None
        held = self._held_rows(samples, rng)
        mask = np.zeros(samples.X.shape[0], dtype=bool)
        mask[held] = True
        if not held.size or mask.all():
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves no rows on one side"
            )
        return samples.take(np.flatnonzero(~mask)), samples.take(np.flatnonzero(mask))

    def _held_rows(self, samples: Samples, rng: Any) -> Array:
        """A random part of the rows."""
        n = samples.X.shape[0]
        return np.asarray(rng.permutation(n)[: _share(self.validation_fraction, n)])

    def _store_step(self, step: Step, setting: Setting) -> None:
        """Set the fitted attributes that predictions need."""
        atoms, found = setting.atoms(step.place), step.coefficients
        self._store_expansion(KernelExpansion(atoms, found.B.T.copy(), found.b.copy()))

    def _store_facts(self, step: Step, descent: Descent, problem: Problem) -> None:
        """Set the attributes that tell how it went and what matters."""
        self.energy_ = step.value
        self.energy_path_ = descent.values
        self.n_iter_ = len(descent.values) - 1
        self.stop_reason_ = descent.reason
        n_features = problem.table.X.shape[1]
        self.metric_ = None if self.metric is None else map_of(self.expansion_.atoms, n_features)
        self.precision_ = self.precision or "float64"
        self.nbytes_ = bytes_of(self.expansion_, self.precision_)
        few = blocks.evenly_spaced(problem.table.shape[0], RELEVANCE_ROWS)
        weights = problem.weights[few]
        rows = problem.table.X[few]
        self.feature_relevances_ = relevances(self.expansion_, rows, weights / weights.sum())

    def _nearest_rows(self, X: Any) -> Array:
        """The row nearest to each vector, in the coordinates of the vectors."""
        atoms = self.expansion_.atoms
        scale = getattr(atoms, "scale", None)
        index = NearestRows(X if scale is None else mapped(X, scale))
        found: Array = index.search(index.alike(atoms.centres), 1)[:, 0]
        return found

    def _calibrate(self, samples: Samples, *, fresh: bool) -> None:
        """What a classifier adds to its outputs, from training rows or fresh ones."""

    def _measure_errors(self, samples: Samples, held_out: Samples | None) -> None:
        """What a regressor keeps of its errors on the rows."""


def check_metric(name: str, metric: Any) -> None:
    """Raise unless `metric` is None, a form that is learned or a rank."""
    if isinstance(metric, str):
        check_choice(name, metric, METRICS)
    else:
        check_integer(name, metric, optional=True)


def _share(fraction: float, n_rows: int) -> int:
    """Number of rows to hold out: at least one, and never all."""
    return min(max(1, round(fraction * n_rows)), n_rows - 1)


@with_entries
@constructor
class SparseKernelClassifier(ClassifierMixin, ExpansionClassifier, MovingVectors):
    """Classifier of a given number of kernel functions whose vectors are free to move.

    One set of vectors serves all classes. They move to where the energy

        1/2 sum_t |f_t|^2 + C sum_i w_i loss(y_i, f(x_i))

    is low, in which the coefficients are always the best ones for the vectors (variable
    projection).

    Parameters
    ----------
    {n_components}
    {kernel}
    {gamma}
    {degree}
    {coef0}
    {kernel_params}
    {C}
    loss : str or Loss, default="squared_error"
        ``"squared_error"``, ``"squared_hinge"``, ``"log_loss"`` (the softmax cross-entropy for
        more than two classes), ``"hinge"`` (that of a support vector machine, much dearer),
        ``"smooth_hinge"``, ``"exponential"``, ``"logit_boost"``, or a convex loss of
        `pursuit.losses`.
    {metric}
    {learn_gamma}
    {init}
    {n_init}
    {early_stopping}
    {validation_fraction}
    {n_iter_no_change}
    {scoring}
    {max_iter}
    {tol}
    {warm_start}
    {max_bytes}
    {precision}
    {random_state}
    {class_weight}

    Attributes
    ----------
    {classes_}
    {support_vectors_}
    dual_coef_ : ndarray of shape (n_outputs, n_components_)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (n_outputs,)
        Constants.
    {kernel_}
    {expansion_}
    {n_components_}
    {energy_}
    {energy_path_}
    {n_iter_}
    {stop_reason_}
    {metric_}
    {metric_losses_}
    {feature_relevances_}
    {nearest_rows_}
    temperature_ : float
        Temperature of the softmax (sigmoid for two classes) behind ``predict_proba``: that of the
        likelihood for the log-loss, else fitted to the rows (the held-out ones, if any).
    {loss_}
    {nbytes_}
    {precision_}
    {rounding_loss_}
    {n_features_in_}
    {feature_names_in_}

    See Also
    --------
    SparseKernelRegressor : For numbers.
    SparseLargeMarginClassifier : The hinge loss, with vectors for each class.
    KernelMatchingPursuitClassifier : Chooses vectors among the rows.

    References
    ----------
    M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005.
    G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", SIAM J. Numer. Anal. 1973.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseKernelClassifier(6, random_state=0).fit(X, y)
    >>> model.support_vectors_.shape, bool(model.score(X, y) > 0.95)
    ((6, 4), True)
    """

    class_weight: Mapping[Any, float] | str | None = None

    def _resolved_loss(self, samples: Samples) -> Loss:
        """A loss of margins, or the squared error."""
        return self._convex(samples, classifier=True)

    def _calibrate(self, samples: Samples, *, fresh: bool) -> None:
        """The temperature: the likelihood's own, or fitted to these rows."""
        own = getattr(getattr(self, "loss_", None), "inverse_temperature", None)
        if own:
            self.temperature_ = 1.0 / own
            return
        few = samples.take(blocks.evenly_spaced(samples.X.shape[0], TEMPERATURE_ROWS))
        self._judge(
            few, self.expansion_(few.X) if fresh else left_out_outputs(self.expansion_, few)
        )

    def _judge(self, rows: Samples, outputs: Array) -> None:
        """The temperature."""
        self.temperature_ = fit_temperature(outputs, class_codes(rows.Y), rows.weights)

    def _held_rows(self, samples: Samples, rng: Any) -> Array:
        """A random part of the rows of each class."""
        codes = class_codes(samples.Y)
        held = []
        for code in np.unique(codes):
            rows = rng.permutation(np.flatnonzero(codes == code))
            held.append(rows[: _share(self.validation_fraction, len(rows))])
        return np.concatenate(held)


@with_entries
@constructor
class SparseKernelRegressor(RegressorMixin, IntervalRegressor, MovingVectors):
    """Regressor of a given number of kernel functions whose vectors are free to move.

    The energy is that of `SparseKernelClassifier`; one set of vectors serves all targets.

    Parameters
    ----------
    {n_components}
    {kernel}
    {gamma}
    {degree}
    {coef0}
    {kernel_params}
    {C}
    loss : str or Loss, default="squared_error"
        ``"squared_error"``, ``"huber"``, ``"absolute_error"``, ``"quantile"``, ``"poisson"`` (whose
        output is the logarithm of the mean that ``predict`` gives), or a convex loss of
        `pursuit.losses`.
    {metric}
    {learn_gamma}
    {init}
    {n_init}
    {early_stopping}
    {validation_fraction}
    {n_iter_no_change}
    {scoring}
    {max_iter}
    {tol}
    {warm_start}
    {max_bytes}
    {precision}
    {random_state}

    Attributes
    ----------
    {support_vectors_}
    dual_coef_ : ndarray of shape (n_targets, n_components_)
        Coefficients.
    intercept_ : ndarray of shape (n_targets,)
        Constants.
    {kernel_}
    {expansion_}
    {n_components_}
    {energy_}
    {energy_path_}
    {n_iter_}
    {stop_reason_}
    {metric_}
    {metric_losses_}
    {feature_relevances_}
    {nearest_rows_}
    {error_quantiles_}
    {loss_}
    {nbytes_}
    {precision_}
    {rounding_loss_}
    {n_features_in_}
    {feature_names_in_}

    See Also
    --------
    SparseKernelClassifier : For labels.
    KernelMatchingPursuitRegressor : Chooses vectors among the rows.

    References
    ----------
    G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", SIAM J. Numer. Anal. 1973.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import SparseKernelRegressor
    >>> X = np.linspace(0, 6, 80)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = SparseKernelRegressor(4, C=1000.0, random_state=0).fit(X, y)
    >>> model.n_components_, bool(model.score(X, y) > 0.99)
    (4, True)
    """

    def _resolved_loss(self, samples: Samples) -> Loss:
        """A loss of residuals."""
        return self._convex(samples, classifier=False)

    def _measure_errors(self, samples: Samples, held_out: Samples | None) -> None:
        """Quantiles of the errors at rows that are left out, held-out ones if there are any."""
        few, outputs = outputs_without(
            self.expansion_, samples, self.loss_, self.C, held_out, moved=held_out is None
        )
        self._judge(few, outputs)

    def _judge(self, rows: Samples, outputs: Array) -> None:
        """The quantiles of the errors."""
        errors = np.abs(rows.Y - self.loss_.mean(outputs))
        self.error_quantiles_ = error_quantiles(errors, rows.weights, rows.one_copy)
