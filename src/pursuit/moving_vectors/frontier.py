"""Paths of moved vectors: from many to few, and what each size is worth.

Problem. Of a model with N vectors that moved, models of fewer are wanted, each nearly as good as if
it had been fitted alone. Moved vectors have no order in which they could be cut off; but where one
is left out the others can take over, and then move on from where they are.

===========  =================  =============================================================
symbol       name in code       shape and meaning
===========  =================  =============================================================
B            ``B``              (N, T) coefficients
K, K_z       ``K``, ``gram``    (n, N), (N, N) kernel values of the rows, and of the vectors
w            ``weights``        (n,) C times the weights of the rows
H            ``inverse``        (N, N) K_z + 2 K'WK less its mean part; its inverse is kept
===========  =================  =============================================================

Steps, from N vectors to the next size:

1. The energy is a square of B around its best, with the curvature H under squared error. Without
   vector j, and with the others' coefficients the best again, it is higher by

       1/2 sum_t B_jt^2 / (H^-1)_jj                                                         (1)

   (B. Hassibi and D. Stork, "Second order derivatives for network pruning: optimal brain surgeon",
   NIPS 1992). The vector for which that is least goes, and

       B <- B - h_j B_j' / h_jj,    H^-1 <- H^-1 - h_j h_j' / h_jj,    h_j = H^-1 e_j.          (2)

2. After so many removals that a factor of `LARGEST_STEP` fewer are left, all move again, from where
   they are, for few iterations.

Cost: n N^2 for H at each step, N^2 a removal, and the few iterations.

Where we differ. Every loss takes the H of the squared error: what a removal changes in the outputs,
which is all that the choice needs, as the vectors and their coefficients are found again.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring

from pursuit._typing import Array
from pursuit._validation import Samples, check_integer
from pursuit.expansion.expansion import KernelExpansion
from pursuit.losses import SquaredError
from pursuit.moving_vectors.estimators import (
    MovingVectors,
    SparseKernelClassifier,
    SparseKernelRegressor,
)
from pursuit.moving_vectors.few_bytes import kernel_arrays
from pursuit.moving_vectors.projected import mapped
from pursuit.optimize.coefficients import Targets, normal_equations
from pursuit.optimize.kernel_blocks import BlockValues, Place, Table
from pursuit.optimize.moving import origin

__all__ = [
    "Frontier",
    "expansion_bytes",
    "falling_sizes",
    "frontier",
    "measured",
    "removal_order",
    "shrunk_models",
]

# The next size is the last one over no more than this; vectors move again in between.
LARGEST_STEP = 2.0**0.5
# The default sizes: so many, each the last one over `LARGEST_STEP`.
N_SIZES = 9
# The diagonal of H is multiplied by one plus this.
JITTER = 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """Models of falling size, and what they are worth.

    `frontier` makes it. All parameters are stored as attributes.

    Parameters
    ----------
    models : list of estimator
        Fitted, the largest first.
    n_components : ndarray of int of shape (n_models,)
        Numbers of vectors.
    nbytes : ndarray of int of shape (n_models,)
        Bytes of the numbers of each model in single precision (see `expansion_bytes`).
    scores : ndarray of shape (n_models,)
        The higher the better: on the validation rows, else on the training rows.
    energies : ndarray of shape (n_models,)
        The energies that the vectors came to.
    scoring : str or callable, default=None
        What the scores are, as in scikit-learn; None: the models' ``score``.

    See Also
    --------
    frontier : Makes it.
    pursuit.displays.FrontierDisplay : Draws it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import SparseKernelClassifier, frontier
    >>> X, y = load_iris(return_X_y=True)
    >>> path = frontier(SparseKernelClassifier(8, random_state=0), X, y, [8, 4])
    >>> path
    Frontier of 2 models with [8, 4] vectors
    >>> path.best(max_components=5).n_components_
    4
    """

    models: list[Any]
    n_components: Array
    nbytes: Array
    scores: Array
    energies: Array
    scoring: Any = None

    def __len__(self) -> int:
        """Number of models."""
        return len(self.models)

    def __repr__(self) -> str:
        """Name the sizes."""
        return f"Frontier of {len(self)} models with {self.n_components.tolist()} vectors"

    def pareto(self) -> Array:
        """Indices of the models with a better score than any that is smaller.

        Returns
        -------
        indices : ndarray of int
            The largest first.
        """
        smaller = np.maximum.accumulate(np.concatenate([[-np.inf], self.scores[:0:-1]]))[::-1]
        return np.flatnonzero(self.scores > smaller)

    def best(self, *, max_bytes: float | None = None, max_components: int | None = None) -> Any:
        """The model of the best score within a budget; of equals the smallest.

        Parameters
        ----------
        max_bytes : float, optional
            Most bytes in single precision.
        max_components : int, optional
            Most vectors.

        Returns
        -------
        model : estimator
            Fitted.

        Raises
        ------
        ValueError
            If no model is that small.
        """
        fits = self._within(self.nbytes, max_bytes) & self._within(
            self.n_components, max_components
        )
        if not fits.any():
            raise ValueError(
                f"no model is that small: the smallest has {self.n_components[-1]} vectors and "
                f"{self.nbytes[-1]} bytes"
            )
        scores = np.where(fits, self.scores, -np.inf)
        return self.models[int(np.flatnonzero(scores == scores.max())[-1])]

    @staticmethod
    def _within(sizes: Array, most: float | None) -> Array:
        """Which sizes are within a budget."""
        return sizes <= (np.inf if most is None else most)


def frontier(
    model: Any,
    X: Any,
    y: Any,
    sizes: Any = None,
    *,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    scoring: Any = None,
    max_iter: int = 20,
) -> Frontier:
    """Models of falling size: vectors are dropped and the others move on.

    Parameters
    ----------
    model : SparseKernelClassifier or SparseKernelRegressor
        The largest model, not one with ``CV`` in its name. It is fitted first, a copy of it, if it
        is not fitted yet.
    X : {array-like, CSR matrix} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Their labels or targets.
    sizes : array-like of int, default=None
        Numbers of vectors, none above the model's. None: that of the model, and eight more, each
        the last one over the root of two.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    X_val, y_val : array-like, default=None
        Rows for the scores; the training rows if None.
    scoring : str or callable, default=None
        What scores them, as in scikit-learn. None: the model's ``score``.
    max_iter : int, default=20
        Iterations at most after each step; where a step halves the vectors, or more than that,
        some are taken on the way as well.

    Returns
    -------
    frontier : Frontier
        Models, sizes, bytes and scores.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from pursuit import SparseKernelClassifier, frontier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SparseKernelClassifier(16, random_state=0)
    >>> path = frontier(model, scale(X[::2]), y[::2], X_val=scale(X[1::2]), y_val=y[1::2])
    >>> path.n_components.tolist()
    [16, 11, 8, 6, 4, 3, 2, 1]
    >>> path.best(max_bytes=500).n_components_ <= 8
    True
    """
    _check(model, max_iter, X_val, y_val)
    score = check_scoring(model, scoring=scoring)
    if not hasattr(model, "expansion_"):
        model = clone(model).fit(X, y, sample_weight)
    models = shrunk_models(_of_given_size(model), (X, y, sample_weight), sizes, max_iter)
    held = (X, y) if X_val is None else (X_val, y_val)
    return measured(models, [float(score(model, *held)) for model in models], scoring)


def shrunk_models(model: Any, data: tuple[Any, Any, Any], sizes: Any, max_iter: int) -> list[Any]:
    """A fitted model brought down to each size, the largest first; `data` are X, y and weights."""
    models = []
    for size in falling_sizes(sizes, model.n_components_):
        model = _thinned(model, size, data, max_iter)
        models.append(model)
    return models


def _check(model: Any, max_iter: int, X_val: Any, y_val: Any) -> None:
    """Raise where a parameter is invalid."""
    if type(model) not in (SparseKernelClassifier, SparseKernelRegressor):
        name = type(model).__name__
        raise ValueError(
            f"model must be a SparseKernelClassifier or SparseKernelRegressor, got {name}"
        )
    check_integer("max_iter", max_iter, 0)
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val must be given together")


def _of_given_size(model: MovingVectors) -> Any:
    """The model with what a budget of bytes has chosen as its parameters."""
    if model.max_bytes is None:
        return model
    rank = None if model.metric_ is None else model.metric_.shape[1]
    chosen = {"metric": rank, "precision": model.precision_, "max_bytes": None}
    return copy.deepcopy(model).set_params(n_components=model.n_components_, **chosen)


def measured(models: list[Any], scores: list[float], scoring: Any) -> Frontier:
    """The frontier of some models of falling size with their scores."""
    sizes = np.array([model.n_components_ for model in models])
    nbytes = np.array([expansion_bytes(model) for model in models])
    energies = np.array([model.energy_ for model in models])
    return Frontier(models, sizes, nbytes, np.array(scores), energies, scoring)


def falling_sizes(sizes: Any, largest: int) -> list[int]:
    """The sizes asked for, falling and distinct."""
    sizes = _default_sizes(largest) if sizes is None else np.ravel(np.asarray(sizes))
    for size in sizes:
        check_integer("sizes", size)
        if size > largest:
            raise ValueError(f"sizes: the model has {largest} vectors, fewer than {size}")
    if not len(sizes):
        raise ValueError("sizes is empty")
    return [int(size) for size in np.unique(sizes)[::-1]]


def _default_sizes(largest: int) -> Array:
    """The largest size, and each next one the last over the largest step."""
    return np.maximum(1, np.round(largest / LARGEST_STEP ** np.arange(N_SIZES))).astype(int)


def _thinned(model: Any, size: int, data: tuple[Any, Any, Any], max_iter: int) -> Any:
    """The model of that size, by steps that are not too large."""
    while model.n_components_ > size:
        nearest = int(np.ceil(model.n_components_ / LARGEST_STEP - 1e-9))
        nearest = min(max(size, nearest), model.n_components_ - 1)
        model = _shrunk(model, nearest, data, max_iter)
    return model


def _shrunk(model: MovingVectors, size: int, data: tuple[Any, Any, Any], max_iter: int) -> Any:
    """A copy with `size` vectors, which have moved again."""
    small = copy.deepcopy(model)
    samples = small._read(*data)
    samples = samples._replace(weights=small.C * samples.weights)
    n_dropped = small.n_components_ - size
    small._store_expansion(
        _without(small.expansion_, removal_order(model.expansion_, samples, n_dropped))
    )
    settings = {name: getattr(small, name) for name in ("warm_start", "max_iter")}
    small.set_params(n_components=size, warm_start=True, max_iter=max_iter)
    return small.fit(*data).set_params(**settings)


def _without(expansion: Any, dropped: Array) -> KernelExpansion:
    """The expansion without some of its vectors."""
    kept = np.setdiff1d(np.arange(len(expansion.atoms)), dropped)
    coefficients = expansion.coefficients[:, kept]
    return KernelExpansion(expansion.atoms.take(kept), coefficients, expansion.intercept)


def removal_order(expansion: KernelExpansion, samples: Samples, n_dropped: int) -> Array:
    """Indices of the vectors to drop, each the one whose removal then costs least.

    Parameters
    ----------
    expansion : KernelExpansion
        A function on vectors, whose coefficients are the best ones.
    samples : Samples
        Rows, and C times their weights; the targets are not used.
    n_dropped : int
        How many.

    Returns
    -------
    dropped : ndarray of int of shape (n_dropped,)
        In their order.
    """
    inverse, B = np.linalg.inv(_curvature(expansion, samples)), expansion.coefficients.T.copy()
    left = np.ones(len(B), dtype=bool)
    dropped = np.empty(n_dropped, dtype=int)
    for i in range(n_dropped):
        j = dropped[i] = int(np.argmin(_costs(B, inverse.diagonal(), left)))
        left[j] = False
        h = inverse[:, j] / inverse[j, j]
        B -= np.outer(h, B[j])  # eq. 2
        inverse -= np.outer(h, inverse[j])
    return dropped


def _costs(B: Array, diagonal: Array, left: Array) -> Array:
    """What the removal of each vector costs, infinite for those that are gone."""
    costs = np.full(len(B), np.inf)
    where = left & (diagonal > 0)
    np.divide(0.5 * (B**2).sum(axis=1), diagonal, out=costs, where=where)  # eq. 1
    return costs


def _curvature(expansion: Any, samples: Samples) -> Array:
    """H, for a constant that is free."""
    kernel, Z, scale = expansion.kernel, expansion.vectors, getattr(expansion.atoms, "scale", None)
    centre = origin(kernel, samples)
    Z = Z - (centre if scale is None else mapped(centre[None], scale))
    values = BlockValues(Table(samples.X, centre, np.float64, scale), Place(kernel, Z))
    targets = Targets(np.empty((len(samples.weights), 0)), samples.weights, SquaredError())
    H = normal_equations(values, kernel(Z, Z), targets).matrix
    return np.asarray(H + JITTER * np.diag(H.diagonal()))


def expansion_bytes(model: Any) -> int:
    """Bytes of a model's numbers in single precision.

    Parameters
    ----------
    model : estimator
        Fitted, with ``support_vectors_``, ``dual_coef_`` and ``intercept_``; the entries of sparse
        vectors other than zero count. A metric counts with its numbers, and so does a kernel with
        a number for each feature or a matrix.

    Returns
    -------
    nbytes : int
        4 for each number.
    """
    atoms = getattr(getattr(model, "expansion_", None), "atoms", None)
    parts = [model.support_vectors_, model.dual_coef_, model.intercept_]
    parts += kernel_arrays(getattr(atoms, "kernel", None))
    parts += [scale for scale in (getattr(atoms, "scale", None),) if scale is not None]
    return 4 * sum(int(part.nnz if hasattr(part, "nnz") else np.size(part)) for part in parts)
