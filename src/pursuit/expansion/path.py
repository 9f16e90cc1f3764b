"""The path that led to a fitted function: the coefficients of every prefix.

A pursuit leaves, for each basis (one for all outputs, or one an output), the chosen atoms in
order, an upper triangular factor R (n x n) and transformed targets z (n x T). Then for every
prefix length n

    alpha_n = R[:n,:n]^{-1} z[:n],    f_n(x) = mean_y + sum_{j<=n} q_j(x) z_j,
    q(x) = (d(x) - mean_d) R^{-1},

so one triangular solve gives the predictions of *all* prefixes as a running sum. Basic pursuit
fits the same form with a diagonal R. Under another loss than squared error no such form exists:
a `RefittedPath` keeps the coefficients of each re-fit instead, and the one coefficient of each
step in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pursuit._arrays import alike, as_wide, namespace_of
from pursuit._typing import Array
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_right, solve_upper

__all__ = [
    "BasisPath",
    "CoefficientPath",
    "RefittedPath",
    "prepared_values",
    "staged_values",
    "without_void_end",
]


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
    n_always : int
        Functions that every basis begins with, before the first step.
    """

    bases: tuple[BasisPath | RefittedPath, ...]
    order: Array
    atom_mean: Array
    target_mean: Array
    n_always: int = 0

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.order)

    def lengths(self, n: int) -> list[int]:
        """Functions of each basis after the first `n` steps of the model."""
        taken = self.order[:n]
        counts = np.bincount(taken[taken >= 0], minlength=len(self.bases)) + self.n_always
        return [int(count) for count in counts]

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
        atom_mean = self.atom_mean[: self.n_vectors(n)]
        return CoefficientPath(bases, order, atom_mean, self.target_mean, self.n_always)


def without_void_end(order: Array) -> Array:
    """Cut the turns at the end that no basis took.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.path import without_void_end
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

    The same array is yielded each time, updated in place. On a device each prefix is evaluated by
    its own coefficients: one product, where a running sum would be many small steps.
    """
    if namespace_of(values) is not None:
        values = as_wide(values)
        for n in range(1, path.n_steps + 1):
            coefficients, intercept = (alike(part, values) for part in path.coefficients(n))
            yield values[:, : coefficients.shape[1]] @ coefficients.T + intercept
        return
    prepared = prepared_values(path, values)
    outputs = np.tile(path.target_mean, (len(values), 1))
    taken = [0] * len(path.bases)

    def advance(b: int) -> None:
        basis = path.bases[b]
        current = outputs[:, basis.outputs]
        outputs[:, basis.outputs] = basis.advance(current, prepared[b], taken[b])
        taken[b] += 1

    for b in np.repeat(np.arange(len(path.bases)), path.n_always):
        advance(int(b))
    for b in path.order:
        if b >= 0:
            advance(int(b))
        yield outputs
