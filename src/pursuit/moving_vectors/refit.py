"""The best coefficients of vectors that have moved, from sums over rows.

Vectors that moved on a part of the rows have coefficients for that part. Under squared error the
best ones on all rows follow from sums over these (``greedy/statistics.py``): with the centred
G = K'WK and B0 = K'WY of the vectors' own kernel functions,

    (K_z + 2 C G) B = 2 C B0,      b = mean of y - (mean of k) B,                                (1)

as in ``optimize/coefficients.py``. So vectors move on as many rows as memory holds, and their
coefficients are fitted on all.

A row that is left out (one copy, of weight u) changes its output by the closed form: with phi the
centred kernel values and h = 2 C u phi'(K_z + 2 C G)^{-1} phi + u / W, the error without the row is
that with it, over 1 - h.

Cost: N^3 beside the pass over the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.base.estimators import ExpansionEstimator
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.gradients import relevances
from pursuit.expansion.leave_one_out import FULL_LEVERAGE, definite_factor
from pursuit.geometry.linear_maps import preimage
from pursuit.greedy.normal_equations import Moments
from pursuit.greedy.statistics import KernelStatistics, equal_tables, equations_of, require_rows
from pursuit.kernels import RBF, Kernel, Laplacian, Mahalanobis
from pursuit.linalg.factor import solve_transposed, solve_upper
from pursuit.losses import SquaredError
from pursuit.optimize.svm_on_vectors import jittered

__all__ = ["Refit", "RefitsCoefficients", "in_features", "refit"]


class Refit(NamedTuple):
    """Equation 1, and what else the sums tell.

    Attributes
    ----------
    expansion : KernelExpansion
        The function with its new coefficients.
    energy : float
        1/2 sum_t |f_t|^2 + C sum_i w_i |y_i - f(x_i)|^2.
    left_out : ndarray of shape (n_rows, n_outputs)
        Outputs at some of the rows without each of them.
    """

    expansion: KernelExpansion
    energy: float
    left_out: Array


def in_features(expansion: KernelExpansion) -> tuple[Kernel, Array]:
    """A kernel of rows, and vectors among them, whose functions are those of the expansion.

    Raises
    ------
    ValueError
        If the vectors lie behind a map for which there is no such kernel.
    """
    atoms = expansion.atoms
    scale, kernel = getattr(atoms, "scale", None), atoms.kernel
    assert kernel is not None
    centres = np.asarray(atoms.centres)
    if scale is None:
        return kernel, centres
    vectors = preimage(centres, scale)
    if isinstance(kernel, RBF) and np.ndim(kernel.gamma) == 0:
        factor = np.sqrt(float(kernel.gamma)) * scale
        return Mahalanobis(factor=np.diag(factor) if scale.ndim == 1 else factor), vectors
    if isinstance(kernel, Laplacian) and np.ndim(kernel.gamma) == 0 and scale.ndim == 1:
        return Laplacian(float(kernel.gamma) * np.abs(scale)), vectors
    raise ValueError(f"sums over rows need a kernel of rows, and {kernel} is one of mapped rows")


def refit(expansion: KernelExpansion, moments: Moments, price: float, rows: Samples) -> Refit:
    """New coefficients of the vectors of an expansion.

    Parameters
    ----------
    expansion : KernelExpansion
        The vectors and their kernel.
    moments : Moments
        Sums over rows of the same kernel functions.
    price : float
        C.
    rows : Samples
        Some of the rows, for outputs without each of them.
    """
    atoms: Any = expansion.atoms
    found = equations_of(moments)
    gram = jittered(np.asarray(atoms.kernel(atoms.centres, atoms.centres)))
    factor = definite_factor(
        gram + 2.0 * price * np.asarray(found.gram.block(np.arange(len(gram))))
    )
    B = _solved(factor, 2.0 * price * found.cross.T)
    b = found.target_mean - found.atom_mean @ B
    new = KernelExpansion(atoms, B.T.copy(), b)
    energy = price * float(found.target_sq_norm.sum() - (found.cross.T * B).sum())
    phi = atoms.functions(rows.X) - found.atom_mean
    half = solve_transposed(factor, phi.T)
    leverage = rows.one_copy * (2.0 * price * (half**2).sum(axis=0) + 1.0 / found.weight)
    kept = np.minimum(leverage, 1.0 - FULL_LEVERAGE)[:, None]
    left_out = rows.Y - (rows.Y - new(rows.X)) / (1.0 - kept)
    return Refit(new, energy, left_out)


def _solved(factor: Array, right: Array) -> Array:
    """The solution of R'R x = right."""
    return solve_upper(factor, solve_transposed(factor, right))


class RefitsCoefficients(ExpansionEstimator):
    """`empty_statistics` and `refit` of vectors that have moved."""

    C: float
    loss_: Any
    precision_: str

    def empty_statistics(self) -> KernelStatistics:
        """Sums over no rows yet, of this model's kernel functions: for `refit`.

        Returns
        -------
        statistics : KernelStatistics
            Of the model's vectors, its kernel (with what `metric` has learned in it) and its
            classes. Give it rows by ``update``, in parts that ``merge``.

        Raises
        ------
        ValueError
            If the learned metric has no kernel of rows: a full one of the laplacian kernel.
        """
        check_is_fitted(self)
        kernel, vectors = in_features(self.expansion_)
        return KernelStatistics(vectors, classes=getattr(self, "classes_", None), kernel=kernel)

    def refit(self, statistics: KernelStatistics) -> Self:
        """Fit the coefficients anew, under squared error, from sums over rows; the vectors stay.

        So vectors move on as many rows as memory holds, and their coefficients are the best ones
        on all.

        Parameters
        ----------
        statistics : KernelStatistics
            Sums over rows, from `empty_statistics`; they stay as they are.

        Returns
        -------
        self : estimator
            With new coefficients, energy, feature relevances and temperature or error quantiles.

        Raises
        ------
        ValueError
            If the loss is not the squared error, the numbers are rounded, or the sums are of other
            vectors, kernels or classes.
        """
        check_is_fitted(self)
        self._check_refit(statistics)
        rows = statistics.sketch_.samples
        found = refit(self.expansion_, statistics.moments_, self.C, rows)
        self._store_expansion(found.expansion)
        self.energy_ = found.energy
        weights = rows.weights / rows.weights.sum()
        self.feature_relevances_ = relevances(self.expansion_, rows.X, weights)
        self._judge(rows, found.left_out)
        return self

    def _check_refit(self, statistics: KernelStatistics) -> None:
        """Raise unless the sums are of this model, and tell enough."""
        if not isinstance(self.loss_, SquaredError):
            raise ValueError("refit: sums over rows suffice for loss='squared_error' only")
        if self.precision_ != "float64":
            raise ValueError(f"refit: the numbers are rounded to {self.precision_}")
        require_rows(statistics, classes=is_classifier(self))
        own = self.empty_statistics()
        if statistics.kernel_ != own.kernel:
            raise ValueError(f"statistics: kernel {statistics.kernel_}, the model has {own.kernel}")
        if not equal_tables(statistics.dictionary.atoms.centres, own.vectors):
            raise ValueError("statistics: of other vectors than the model's")
        if np.asarray(statistics.classes_).tolist() != np.asarray(own.classes).tolist():
            raise ValueError("statistics: of other classes than the model's")
        if len(statistics.moments_.target_sum) != len(self.intercept_):
            raise ValueError("statistics: of another number of targets than the model's")

    def _judge(self, rows: Samples, outputs: Array) -> None:
        """Set what tells of the errors, from outputs at rows without each of them."""
        raise NotImplementedError
