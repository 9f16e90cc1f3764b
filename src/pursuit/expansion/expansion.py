"""The fitted function f(x) = b + sum_k a_k K(x, z_k) (eq. 14) and the path that led to it.

A pursuit leaves, for each basis (one for all outputs, or one an output), the chosen atoms in
order, an upper triangular factor R (n x n) and transformed targets z (n x T). Then for every
prefix length n

    alpha_n = R[:n,:n]^{-1} z[:n],    f_n(x) = mean_y + sum_{j<=n} q_j(x) z_j,
    q(x) = (d(x) - mean_d) R^{-1},

so one triangular solve gives the predictions of *all* prefixes as a running sum. Basic pursuit
fits the same form with a diagonal R. Under another loss than squared error no such form exists:
a `RefittedPath` keeps the coefficients of each re-fit instead, and the one coefficient of each
step in between. Leave-one-out values are closed form: with the leverage
h_i = w_i sum_j q_j(x_i)^2 (plus w_i / W for an intercept), the residual without row i is
e_i / (1 - h_i).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.basis_functions import AtomSet
from pursuit.kernels import Kernel
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_right, solve_upper

__all__ = [
    "BasisPath",
    "CoefficientPath",
    "KernelExpansion",
    "RefittedPath",
    "leave_one_out",
    "most_releasing",
    "staged_values",
]

# A row whose leverage is this near to 1 is explained by itself alone.
FULL_LEVERAGE = 1e-6


@dataclass(frozen=True)
class KernelExpansion:
    """f(x) = intercept + sum_k coefficients[:, k] K(x, z_k), called without any checks.

    Attributes
    ----------
    atoms : AtomSet
        The functions, such as a kernel and centres z_k.
    coefficients : ndarray of shape (n_outputs, n_vectors)
        One row an output.
    intercept : ndarray of shape (n_outputs,)
        Value where no kernel reaches.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import Atoms
    >>> from pursuit.expansion.expansion import KernelExpansion
    >>> from pursuit.kernels import Linear
    >>> f = KernelExpansion(Atoms(Linear(), np.eye(2)), np.array([[1.0, 2.0]]), np.zeros(1))
    >>> f(np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    atoms: AtomSet
    coefficients: Array
    intercept: Array

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of all functions, where there is one."""
        return self.atoms.kernel

    @property
    def vectors(self) -> Any:
        """The centres z_k, where all functions have one."""
        return self.atoms.centres

    def __post_init__(self) -> None:
        """Prepare the centres and the transposed coefficients once."""
        object.__setattr__(self, "_functions", self.atoms.functions)
        object.__setattr__(self, "_weights", np.ascontiguousarray(self.coefficients.T))

    def __getstate__(self) -> dict[str, Any]:
        """Only the defining values; what is prepared is prepared again."""
        return {name: vars(self)[name] for name in ("atoms", "coefficients", "intercept")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the values and prepare again."""
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def __call__(self, X: Any) -> Array:
        """Return the outputs, shape (n_rows, n_outputs).

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_rows, n_features)
            Rows of the floating type that the model was trained on. They are not checked:
            this is the fast route for callers who know their data.
        """
        functions: Callable[[Any], Array] = self._functions  # type: ignore[attr-defined]
        weights: Array = self._weights  # type: ignore[attr-defined]
        n_rows, n_vectors = X.shape[0], len(weights)
        if not n_vectors:
            return np.tile(self.intercept, (n_rows, 1))
        if n_rows * n_vectors < blocks.SMALLEST_PARALLEL_SIZE:
            outputs: Array = functions(X) @ weights + self.intercept
            return outputs
        outputs = np.empty((n_rows, len(self.intercept)))
        for rows in blocks.row_blocks(n_rows, 8.0 * n_vectors):
            outputs[rows] = blocks.evaluate(functions, X[rows], n_vectors) @ weights
        outputs += self.intercept
        return outputs


@dataclass(frozen=True)
class BasisPath:
    """One greedy basis: its atoms in order and what gives the coefficients of every prefix.

    Attributes
    ----------
    picks : ndarray of int of shape (n_steps,)
        Position among the model's vectors of the atom of each step.
    factor : ndarray of shape (n_steps, n_steps)
        R, upper triangular.
    targets : ndarray of shape (n_steps, n_outputs)
        z.
    outputs : ndarray of int
        The model's outputs that use this basis.
    """

    picks: Array
    factor: Array
    targets: Array
    outputs: Array

    def first(self, n: int) -> BasisPath:
        """Return the first `n` steps."""
        factor = self.factor[:n, :n].copy()
        return BasisPath(self.picks[:n], factor, self.targets[:n], self.outputs)

    def coefficients(self, n: int) -> Array:
        """Coefficients of the first `n` picks after `n` steps, (n, n_outputs)."""
        return solve_upper(self.factor[:n, :n], self.targets[:n])

    def level(self, n: int, start: Array) -> Array:
        """Output where each function has its mean value: always that of the start."""
        return start

    def prepare(self, centred: Array) -> Array:
        """q(x) from the functions less their means, (n_rows, n_steps)."""
        if not len(self.picks):
            return np.empty((len(centred), 0))
        return solve_right(centred[:, self.picks], self.factor)

    def advance(self, outputs: Array, prepared: Array, n: int) -> Array:
        """Outputs after step `n` + 1 from those after step `n`."""
        return outputs + np.outer(prepared[:, n], self.targets[n])


@dataclass(frozen=True)
class RefittedPath:
    """One greedy basis under any loss: the coefficients of each re-fit, and what came between.

    Attributes
    ----------
    picks : ndarray of int of shape (n_steps,)
        Position among the model's vectors of the atom of each step.
    lines : ndarray of shape (n_steps, n_outputs)
        What a step without a re-fit added to the coefficient of its atom (eq. 10); zero for a
        step with one.
    refits : ndarray of int of shape (n_refits,)
        Numbers of steps after which all coefficients were fitted anew (eq. 11), increasing.
    fitted : ndarray of shape (sum(refits), n_outputs)
        The coefficients of each re-fit, of all picks so far, one re-fit after the other.
    levels : ndarray of shape (n_refits, n_outputs)
        Outputs of each re-fit where every function has its mean value.
    outputs : ndarray of int
        The model's outputs that use this basis.
    """

    picks: Array
    lines: Array
    refits: Array
    fitted: Array
    levels: Array
    outputs: Array

    def first(self, n: int) -> RefittedPath:
        """Return the first `n` steps."""
        k = self._n_refits(n)
        return RefittedPath(
            self.picks[:n],
            self.lines[:n],
            self.refits[:k],
            self.fitted[: int(self.refits[:k].sum())],
            self.levels[:k],
            self.outputs,
        )

    def coefficients(self, n: int) -> Array:
        """What each of the first `n` picks contributes after `n` steps, (n, n_outputs)."""
        alpha = self.lines[:n].copy()
        k = self._n_refits(n)
        if k:
            size, stop = int(self.refits[k - 1]), int(self.refits[:k].sum())
            alpha[:size] = self.fitted[stop - size : stop]
        return alpha

    def level(self, n: int, start: Array) -> Array:
        """Output where each function has its mean value."""
        k = self._n_refits(n)
        level: Array = self.levels[k - 1] if k else start
        return level

    def prepare(self, centred: Array) -> Array:
        """Functions less their means, in the order of the picks."""
        return centred[:, self.picks]

    def advance(self, outputs: Array, prepared: Array, n: int) -> Array:
        """Outputs after step `n` + 1 from those after step `n`."""
        if n + 1 in self.refits:
            fitted: Array = prepared[:, : n + 1] @ self.coefficients(n + 1)
            return fitted + self.level(n + 1, outputs)
        return outputs + np.outer(prepared[:, n], self.lines[n])

    def _n_refits(self, n: int) -> int:
        """Number of re-fits within the first `n` steps."""
        return int(np.searchsorted(self.refits, n, side="right"))


@dataclass(frozen=True)
class CoefficientPath:
    """The coefficients of every prefix of a fitted model.

    Attributes
    ----------
    bases : tuple of BasisPath or RefittedPath
        One for all outputs, or one an output.
    order : ndarray of int of shape (n_steps,)
        The basis that each step of the model extends; -1 for the turn of a basis that had
        ended by then, so that a prefix is what a smaller budget would have given.
    atom_mean : ndarray of shape (n_vectors,)
        Weighted mean of each kernel function over the training rows (0 without intercept).
    target_mean : ndarray of shape (n_outputs,)
        The best constant: under squared error the weighted mean of each target (0 without
        intercept).
    """

    bases: tuple[BasisPath | RefittedPath, ...]
    order: Array
    atom_mean: Array
    target_mean: Array

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.order)

    def lengths(self, n: int) -> list[int]:
        """Steps of each basis among the first `n` of the model."""
        taken = self.order[:n]
        counts: list[int] = np.bincount(taken[taken >= 0], minlength=len(self.bases)).tolist()
        return counts

    def n_vectors(self, n: int) -> int:
        """Number of distinct kernel functions in the first `n` steps."""
        used = [basis.picks[:m] for basis, m in zip(self.bases, self.lengths(n), strict=True) if m]
        return int(max(picks.max() for picks in used)) + 1 if used else 0

    def coefficients(self, n: int) -> tuple[Array, Array]:
        """Coefficients (n_outputs, n_vectors) and intercept (n_outputs,) after `n` steps."""
        coefficients = np.zeros((len(self.target_mean), self.n_vectors(n)))
        level = self.target_mean.copy()
        for basis, m in zip(self.bases, self.lengths(n), strict=True):
            if m:
                rows, columns = basis.outputs[:, None], basis.picks[:m][None, :]
                # An atom that came back (basic pursuit) adds up.
                np.add.at(coefficients, (rows, columns), basis.coefficients(m).T)
                level[basis.outputs] = basis.level(m, self.target_mean[basis.outputs])
        return coefficients, level - coefficients @ self.atom_mean[: coefficients.shape[1]]

    def first(self, n: int) -> CoefficientPath:
        """Return the path of the first `n` steps alone."""
        bases = tuple(b.first(m) for b, m in zip(self.bases, self.lengths(n), strict=True))
        order = without_void_end(self.order[:n])
        return CoefficientPath(bases, order, self.atom_mean[: self.n_vectors(n)], self.target_mean)


def without_void_end(order: Array) -> Array:
    """Cut the turns at the end that no basis took.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.expansion import without_void_end
    >>> without_void_end(np.array([0, -1, 1, -1])).tolist()
    [0, -1, 1]
    """
    taken = np.flatnonzero(order >= 0)
    return order[: taken[-1] + 1] if len(taken) else order[:0]


def prepared_values(path: CoefficientPath, values: Array) -> list[Array]:
    """What each basis makes of the kernel values once: see `BasisPath.prepare`.

    Parameters
    ----------
    path : CoefficientPath
        The path.
    values : ndarray of shape (n_rows, n_vectors)
        Kernel functions of the model's vectors on some rows.
    """
    centred = np.asarray(values, dtype=np.float64) - path.atom_mean
    return blocks.in_parallel(lambda basis: basis.prepare(centred), path.bases)


def staged_values(path: CoefficientPath, values: Array) -> Iterator[Array]:
    """Outputs of the model after 1, 2, ... steps, each of shape (n_rows, n_outputs).

    The same array is yielded each time, updated in place.
    """
    prepared = prepared_values(path, values)
    outputs = np.tile(path.target_mean, (len(values), 1))
    taken = [0] * len(path.bases)
    for b in path.order:
        if b >= 0:
            basis = path.bases[b]
            current = outputs[:, basis.outputs]
            outputs[:, basis.outputs] = basis.advance(current, prepared[b], taken[b])
            taken[b] += 1
        yield outputs


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


def leave_one_out(
    path: CoefficientPath,
    values: Array,
    targets: Array,
    weights: Array,
    total_weight: float,
    steps: Array | None = None,
) -> Iterator[HeldOut]:
    """Leave-one-out predictions after 1, 2, ... steps, or after those in `steps` alone.

    With the atoms as chosen on all rows, y_i - e_i / (1 - h_i) is the output at row i of the
    model fitted without it. A row of weight 2 counts as two equal rows of which one is left
    out; a row of weight below 1 is left out whole. A row whose leverage h_i is 1 to rounding
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
    weights : ndarray of shape (n_rows,)
        Weights of those rows.
    total_weight : float
        Sum of the weights over all training rows, 0 for a model without intercept.
    steps : ndarray of int, optional
        Increasing numbers of steps.

    Yields
    ------
    held_out : HeldOut
        Its ``values()`` are computed when asked for; the arrays change with the next step.
    """
    unit = np.minimum(weights, 1.0)
    q = prepared_values(path, values)
    base = unit / total_weight if total_weight else np.zeros_like(unit)
    leverage = np.tile(base[:, None], (1, len(path.target_mean)))
    outputs = np.tile(path.target_mean, (len(values), 1))
    taken = [0] * len(path.bases)
    for step in range(1, path.n_steps + 1) if steps is None else steps:
        lengths = path.lengths(int(step))
        for b, basis in enumerate(cast("tuple[BasisPath, ...]", path.bases)):
            new = slice(taken[b], lengths[b])
            outputs[:, basis.outputs] += q[b][:, new] @ basis.targets[new]
            leverage[:, basis.outputs] += (unit * (q[b][:, new] ** 2).sum(axis=1))[:, None]
        taken = lengths

        def without(rows: Array, t: int, lengths: list[int] = lengths) -> tuple[Array, Array]:
            b = next(b for b, basis in enumerate(path.bases) if t in basis.outputs)
            basis = cast("BasisPath", path.bases[b]).first(lengths[b])
            falls, released = _without_vector(basis, q[b][rows, : lengths[b]], t)
            return outputs[rows, t] - falls, leverage[rows, t] - unit[rows] * released

        yield HeldOut(outputs, leverage, targets, path.target_mean, without)
