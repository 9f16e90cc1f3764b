"""Leave-one-out outputs of every prefix of a path, in closed form.

With the leverage h_i = u_i sum_j q_j(x_i)^2 (plus u_i / W for an intercept), where u_i is what
one copy of the row weighs, and the residual e_i = y_i - f(x_i), the residual without sample i is
e_i / (1 - h_i); see ``path.py`` for q.

R comes from normal equations, whose digits the squared condition number takes, and 1 - h_i and e_i
are small differences. So the functions q are made orthonormal once more: with S = Q'WQ (plus
alpha R^{-T} P R^{-1} for a ridge alpha a'P a), which is I but for rounding, and S = C'C, R becomes
C R and z becomes C^{-T} Q'WY.

Where there is no closed form a row is measured without the vectors on which it has the only say:
those for which u_i k(x_i, z)^2 is more than half of sum_l w_l k(x_l, z)^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.expansion.basis_functions import AtomSet
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.path import BasisPath, CoefficientPath, prepared_values
from pursuit.linalg import blocks
from pursuit.linalg.factor import cholesky, solve_transposed, solve_upper

__all__ = [
    "FULL_LEVERAGE",
    "HeldOut",
    "definite_factor",
    "evaluated",
    "leave_one_out",
    "left_out_outputs",
    "most_releasing",
    "orthonormal",
    "own_values",
    "ridge_between",
]

# A row whose leverage is this near to 1 is explained by itself alone.
FULL_LEVERAGE = 1e-6
# Added to the diagonal of a Hessian, relative to its largest entry: nothing but rounding.
ROUNDING = 1e-10
# A row that has more than this share of a vector's squared values has the only say on it.
ONLY_SAY = 0.5


def evaluated(atoms: AtomSet, X: Any) -> Iterator[tuple[slice, Array]]:
    """The functions on all rows, block by block."""
    for rows in blocks.row_blocks(X.shape[0], 16.0 * max(len(atoms), 1)):
        yield rows, blocks.evaluate(atoms.functions, X[rows], len(atoms))


def own_values(values: Array, one_copy: Array, mass: Array) -> Array:
    """The values of the vectors on which each row has the only say, zero elsewhere.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_vectors)
        Kernel functions of the vectors on training rows.
    one_copy : ndarray of shape (n_rows,)
        What each of those rows weighs once.
    mass : ndarray of shape (n_vectors,)
        Weighted sum of the squared values over all training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.leave_one_out import own_values
    >>> values = np.array([[1.0, 0.5], [0.1, 0.5]])
    >>> own_values(values, np.ones(2), (values**2).sum(axis=0))
    array([[1., 0.],
           [0., 0.]])
    """
    return np.where(one_copy[:, None] * values**2 > ONLY_SAY * mass, values, 0.0)


def _mass(atoms: AtomSet, samples: Samples) -> Array:
    """Weighted sum of each function's squared values."""
    parts = (samples.weights[rows] @ values**2 for rows, values in evaluated(atoms, samples.X))
    return np.asarray(sum(parts, np.zeros(len(atoms))))


def left_out_outputs(expansion: KernelExpansion, samples: Samples) -> Array:
    """Outputs at the training rows, less the vectors on which each has the only say."""
    mass, one_copy = _mass(expansion.atoms, samples), samples.one_copy
    outputs = np.tile(expansion.intercept, (len(one_copy), 1))
    for rows, values in evaluated(expansion.atoms, samples.X):
        others = values - own_values(values, one_copy[rows], mass)
        outputs[rows] += others @ expansion.coefficients.T
    return outputs


class HeldOut(NamedTuple):
    """Outputs of a prefix on training rows and their leverages, both (n_rows, n_outputs).

    `without` gives, for some rows and an output, the output and the leverage of the model less
    the vector that explains each row.
    """

    outputs: Array
    leverage: Array
    targets: Array
    target_mean: Array
    without: Callable[[Array, int], tuple[Array, Array]]

    def values(self) -> Array:
        """Leave-one-out outputs, y_i - e_i / (1 - h_i)."""
        alone = self.leverage > 1.0 - FULL_LEVERAGE
        held_out = self._left_out(self.targets, self.outputs, np.where(alone, 0.0, self.leverage))
        for t in np.flatnonzero(alone.any(axis=0)):
            rows = np.flatnonzero(alone[:, t])
            outputs, leverage = self.without(rows, int(t))
            # Where no vector explains the row, nothing but the constant is left.
            still = leverage > 1.0 - FULL_LEVERAGE
            left = self._left_out(self.targets[rows, t], outputs, np.where(still, 0.0, leverage))
            held_out[rows, t] = np.where(still, self.target_mean[t], left)
        return held_out

    @staticmethod
    def _left_out(targets: Array, outputs: Array, leverage: Array) -> Array:
        """Y - e / (1 - h)."""
        left: Array = targets - (targets - outputs) / (1.0 - leverage)
        return left


def definite_factor(matrix: Array) -> Array:
    """Its Cholesky factor, all digits kept; a little is added where it is singular to rounding."""
    smallest = ROUNDING * float(matrix.diagonal().max())
    factor = cholesky(matrix)
    definite = len(factor) == len(matrix) and factor.diagonal().min() ** 2 >= smallest
    return factor if definite else cholesky(matrix + smallest * np.eye(len(matrix)))


def most_releasing(directions: Array, inverse_diagonal: Array) -> tuple[Array, Array]:
    """The coefficient whose removal takes the most leverage from each row.

    Parameters
    ----------
    directions : ndarray of shape (n_rows, n)
        G^{-1} phi_i of each row.
    inverse_diagonal : ndarray of shape (n,)
        Diagonal of G^{-1}.

    Returns
    -------
    chosen : ndarray of int of shape (n_rows,)
        j.
    ratio : ndarray of shape (n_rows,)
        (G^{-1} phi_i)_j / (G^{-1})_jj: without j the output falls by alpha_j times this, and
        phi_i'G^{-1}phi_i by (G^{-1} phi_i)_j times this.
    """
    chosen: Array = (directions**2 / inverse_diagonal).argmax(axis=1)
    ratio: Array = directions[np.arange(len(chosen)), chosen] / inverse_diagonal[chosen]
    return chosen, ratio


def _without_vector(basis: BasisPath, q: Array, t: int) -> tuple[Array, Array]:
    """What output t and q'q of each row lose with the vector that explains the row."""
    n = len(basis.picks)
    if not n:
        return np.zeros(len(q)), np.zeros(len(q))
    inverse = solve_upper(basis.factor, np.eye(n))
    directions = q @ inverse.T
    chosen, ratio = most_releasing(directions, (inverse**2).sum(axis=1))
    alpha = inverse @ basis.targets[:, np.flatnonzero(basis.outputs == t)[0]]
    return alpha[chosen] * ratio, directions[np.arange(len(q)), chosen] * ratio


def ridge_between(alpha: float | Array, picks: Array) -> Array:
    """The ridge matrix alpha P among the functions at `picks`, no two of them the same.

    Parameters
    ----------
    alpha : float or ndarray of shape (n_vectors, n_vectors)
        The ridge; alpha P where P is not the identity.
    picks : ndarray of int
        Functions.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.leave_one_out import ridge_between
    >>> ridge_between(0.5, np.array([3, 1]))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    if isinstance(alpha, np.ndarray):
        return np.asarray(alpha[np.ix_(picks, picks)])
    return alpha * np.eye(len(picks))


def orthonormal(
    path: CoefficientPath, parts: Iterable[tuple[Array, Array, Array]], alpha: float | Array
) -> CoefficientPath:
    """The path with R and z from functions that are orthonormal to rounding; see the top.

    Parameters
    ----------
    path : CoefficientPath
        A path of `BasisPath`, not of basic pursuit.
    parts : iterable of (values, targets, weights)
        All training rows, as in `leave_one_out`.
    alpha : float or ndarray of shape (n_vectors, n_vectors)
        The ridge; alpha P among the path's functions where P is not the identity.
    """
    bases = cast("tuple[BasisPath, ...]", path.bases)
    grams = [np.zeros((len(basis.picks),) * 2) for basis in bases]
    products = [np.zeros(basis.targets.shape) for basis in bases]
    for values, targets, weights in parts:
        deviations = weights[:, None] * (targets - path.target_mean)
        for b, q in enumerate(prepared_values(path, values)):
            grams[b] += q.T @ (weights[:, None] * q)
            products[b] += q.T @ deviations[:, bases[b].outputs]
    again = (_once_more(*parts, alpha) for parts in zip(bases, grams, products, strict=True))
    return replace(path, bases=tuple(again))


def _once_more(basis: BasisPath, gram: Array, products: Array, alpha: float | Array) -> BasisPath:
    """C R and C^{-T} Q'WY, where S is positive definite."""
    if np.any(alpha):
        inverse = solve_upper(basis.factor, np.eye(len(gram)))
        gram = gram + inverse.T @ (ridge_between(alpha, basis.picks) @ inverse)
    correction = cholesky(gram)
    if len(correction) < len(gram) or not len(gram):
        return basis
    targets = solve_transposed(correction, products)
    return replace(basis, factor=correction @ basis.factor, targets=targets)


def leave_one_out(
    path: CoefficientPath,
    values: Array,
    targets: Array,
    one_copy: Array,
    total_weight: float,
    steps: Array | None = None,
) -> Iterator[HeldOut]:
    """Leave-one-out predictions after 1, 2, ... steps, or after those in `steps` alone.

    With the atoms as chosen on all rows, y_i - e_i / (1 - h_i) is the output at row i of the
    model fitted without it. A row of two copies counts as two equal rows of which one is left
    out; a row of less than one copy is left out whole. A row whose leverage h_i is 1 to rounding
    is explained by a vector that no other row has a say on, its own where the kernel is narrow:
    it is left out of the model without that vector.

    Parameters
    ----------
    path : CoefficientPath
        The path.
    values : ndarray of shape (n_rows, n_vectors)
        Kernel functions of the model's vectors on training rows.
    targets : ndarray of shape (n_rows, n_outputs)
        Targets of those rows.
    one_copy : ndarray of shape (n_rows,)
        What each of those rows weighs once, which is the weight left out.
    total_weight : float
        Sum of the weights over all training rows, 0 for a model without intercept.
    steps : ndarray of int, optional
        Increasing numbers of steps.

    Yields
    ------
    held_out : HeldOut
        Its ``values()`` are computed when asked for; the arrays change with the next step.
    """
    q = prepared_values(path, values)
    base = one_copy / total_weight if total_weight else np.zeros_like(one_copy)
    leverage = np.tile(base[:, None], (1, len(path.target_mean)))
    outputs = np.tile(path.target_mean, (len(values), 1))
    taken = [0] * len(path.bases)
    for step in range(1, path.n_steps + 1) if steps is None else steps:
        lengths = path.lengths(int(step))
        for b, basis in enumerate(cast("tuple[BasisPath, ...]", path.bases)):
            new = slice(taken[b], lengths[b])
            outputs[:, basis.outputs] += q[b][:, new] @ basis.targets[new]
            leverage[:, basis.outputs] += (one_copy * (q[b][:, new] ** 2).sum(axis=1))[:, None]
        taken = lengths

        def without(rows: Array, t: int, lengths: list[int] = lengths) -> tuple[Array, Array]:
            b = next(b for b, basis in enumerate(path.bases) if t in basis.outputs)
            basis = cast("BasisPath", path.bases[b]).first(lengths[b])
            falls, released = _without_vector(basis, q[b][rows, : lengths[b]], t)
            return outputs[rows, t] - falls, leverage[rows, t] - one_copy[rows] * released

        yield HeldOut(outputs, leverage, targets, path.target_mean, without)
