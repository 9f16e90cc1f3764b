"""Coordinates in which a kernel should measure distances, as a transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array, Watch
from pursuit._validation import (
    Samples,
    check_choice,
    check_integer,
    check_real,
    check_weights,
    read_data,
    signed_targets,
)
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.docstrings import with_entries
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.kernels import Kernel, resolve_kernel
from pursuit.linalg import blocks
from pursuit.losses import SquaredError
from pursuit.moving_vectors.metric import learn_metric, principal_axes
from pursuit.moving_vectors.projected import mapped
from pursuit.moving_vectors.setting import composed
from pursuit.optimize.kernel_blocks import Place, Table
from pursuit.optimize.moving import Plan, move, origin, precision, shift_invariant
from pursuit.optimize.variable_projection import Free, Problem, Step

__all__ = ["KernelMetric"]

# Iterations of a map of given rank.
RANK_ITERATIONS = 60


@with_entries
@constructor
class KernelMetric(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupport, KernelParameters
):
    """Linear map to coordinates in which distances matter for the target.

    A kernel function of few vectors is fitted, and where it changes fast the coordinates are
    stretched: the average outer product of its gradients, raised to a power, in a few rounds. Any
    estimator with a kernel of distances may follow.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        ``"rbf"``, ``"laplacian"`` or one of these values of `pursuit.kernels`.
    {gamma}
    {degree}
    {coef0}
    kernel_params : mapping, default=None
        Refused: a callable has no derivative. Here so that all estimators take the same arguments.
    metric : {"diagonal", "full"} or int, default="full"
        Form of the map: a factor a feature; any; or one of this rank, which moves with the vectors
        from the principal axes on.
    n_components : int, default=100
        Vectors of the function.
    C : float, default=10.0
        Price of the squared error of a row of weight 1.
    n_rounds : int, default=3
        Rounds at most; held-out rows choose the best.
    random_state : int, RandomState or None, default=None
        For the vectors and the rows held out.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, rank)
        The map.
    kernel_ : Kernel
        The kernel with the gamma that went with the map.
    losses_ : ndarray of shape (n_rounds + 1,)
        Mean held-out squared error of each round, that of no map first; absent for a given rank.
    feature_relevances_ : ndarray of shape (n_features,)
        Share of each feature in the stretched variance of the rows.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models", Science 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import KernelMetric
    >>> X = np.random.RandomState(0).normal(size=(300, 4))
    >>> y = np.sin(3 * X[:, 1])
    >>> metric = KernelMetric("rbf", metric="diagonal", n_components=20, random_state=0).fit(X, y)
    >>> int(metric.feature_relevances_.argmax()), metric.transform(X).shape
    (1, (300, 4))
    """

    kernel: Any = positional("rbf")
    metric: str | int = "full"
    n_components: int = 100
    C: float = 10.0
    n_rounds: int = 3
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        """Sparse input is accepted; targets are needed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Labels or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : KernelMetric
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        samples = self._samples(X, y, sample_weight)
        with self._watching(X, y, sample_weight) as watcher:
            self._learn(samples, watcher)
        return self

    def _learn(self, samples: Samples, watcher: Watcher | None) -> None:
        """Learn the map from rows of positive weight."""
        names = ("gamma", "degree", "coef0", "kernel_params")
        kernel = resolve_kernel(
            self.kernel, samples.X, samples.weights, **{name: getattr(self, name) for name in names}
        )
        if not shift_invariant(kernel):
            raise ValueError(f"kernel: KernelMetric needs the rbf or the laplacian, not {kernel}")
        centre, (kernel, scale) = origin(kernel, samples), kernel.split()
        dtype = precision(kernel, samples, self.n_components, centre, scale)
        table = Table(samples.X, centre, dtype, scale)
        problem = Problem(table, samples.Y, self.C * samples.weights, SquaredError())
        rng = check_random_state(self.random_state)

        def report(step: Step, scale: Array | None = None) -> str | None:
            map_so_far = composed(table.scale, step.place.A) if scale is None else scale
            so_far = (step.place.kernel, np.asarray(map_so_far), table)
            return None if watcher is None else watcher(lambda model: model._store(*so_far))

        told = None if watcher is None else report
        if isinstance(self.metric, str):
            settings = (self.metric, self.n_components, self.n_rounds, rng)
            learned = learn_metric(problem, kernel, *settings, report=told)
            self.losses_ = learned.losses
            self._store(learned.kernel, learned.scale, table)
        else:
            place = self._moved_map(problem, Place(kernel, np.empty((0, 0))), rng, told)
            self._store(place.kernel, np.asarray(composed(table.scale, place.A)), table)

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        if isinstance(self.metric, str):
            check_choice("metric", self.metric, ("diagonal", "full"))
        else:
            check_integer("metric", self.metric)
        check_integer("n_components", self.n_components)
        check_integer("n_rounds", self.n_rounds, 0)
        check_real("C", self.C, above=True)

    def _samples(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Rows of positive weight, with labels as signs and numbers in their deviations."""
        X, y = read_data(self, X, y, accept_sparse="csr", multi_output=True)
        weights = check_weights(sample_weight, X.shape[0])
        if type_of_target(y) in ("binary", "multiclass") and y.ndim == 1:
            classes, codes = np.unique(y, return_inverse=True)
            Y = signed_targets(codes, max(len(classes), 2))
        else:
            Y = np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1)
            spread = Y.std(axis=0)
            Y = Y / np.where(spread > 0, spread, 1.0)
        return Samples(X, Y, weights).take(np.flatnonzero(weights > 0))

    def _moved_map(
        self, problem: Problem, place: Place, rng: Any, told: Watch[Step] | None
    ) -> Place:
        """A map of given rank, moved with the vectors."""
        n, d = problem.table.shape
        A = principal_axes(problem.table, min(int(self.metric), d))
        rows = problem.table.block(rng.permutation(n)[: self.n_components]).astype(np.float64)
        plan = Plan(RANK_ITERATIONS, 1e-4, Free(False, True, self.C), rng, report=told)
        return move(problem, place._replace(Z=rows @ A, A=A), plan).best.place

    def _store(self, kernel: Kernel, scale: Array, table: Table) -> None:
        """Set the fitted attributes."""
        self.kernel_, self._scale = kernel, scale
        self.metric_ = np.diag(scale) if scale.ndim == 1 else scale
        few = table.X[blocks.evenly_spaced(table.shape[0], 2000)]
        rows = Table(few, table.origin, table.dtype).block(slice(None))
        variance = rows.astype(np.float64).var(axis=0)
        stretched = variance * (self.metric_**2).sum(axis=1)
        total = float(stretched.sum())
        self.feature_relevances_ = stretched / total if total > 0 else stretched
        self._n_features_out = self.metric_.shape[1]

    def transform(self, X: Any) -> Array:
        """Rows in the learned coordinates.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        U : ndarray of shape (n_samples, rank)
            ``X @ metric_``.
        """
        check_is_fitted(self)
        rows = read_data(self, X, reset=False, accept_sparse="csr")
        return mapped(rows, self._scale.astype(rows.dtype))
