"""Greedy bases that grow together: one for all outputs, or one an output.

Several bases share the dictionary and the normal equations, and take steps round-robin, so that
the first n steps of the model are what a budget of n would have given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np

from pursuit._typing import Array, Watch
from pursuit.expansion.path import BasisPath, CoefficientPath, RefittedPath, without_void_end
from pursuit.greedy.normal_equations import NormalEquations
from pursuit.linalg import blocks
from pursuit.losses import Loss

__all__ = ["MultiOutputPursuit", "round_robin"]


class Basis(Protocol):
    """One greedy basis that can be grown."""

    pivots: list[int]

    def extend(self, n_steps: int) -> str | None:
        """Take up to `n_steps` more steps; return why it ended early, or None."""

    def solution(self) -> tuple[Any, ...]:
        """Return what gives the coefficients of every prefix."""


class MultiOutputPursuit:
    """Greedy bases that grow together, round-robin: one for all outputs, or one an output.

    A subclass fills `pursuits`, one a basis, and says what a basis and its loss are.

    Parameters
    ----------
    equations : NormalEquations
        G, D'y and the means.
    loss : Loss
        What the fit makes small.
    budgets : list of int
        Maximum number of steps of each basis; as many as bases.
    shareable : bool
        Whether the pursuits may grow at the same time.
    """

    # A basis of the path, from its pivots, a pursuit's solution and its outputs.
    basis: Callable[..., BasisPath | RefittedPath]

    def __init__(
        self, equations: NormalEquations, loss: Loss, budgets: list[int], *, shareable: bool
    ) -> None:
        self.equations, self.loss = equations, loss
        n_outputs = len(equations.target_sq_norm)
        together = [np.arange(n_outputs)]
        self.outputs = together if len(budgets) == 1 else list(np.arange(n_outputs)[:, None])
        self.order = round_robin(budgets)
        # Functions that every basis begins with, beyond its budget.
        self.always = np.arange(equations.penalty.n_free)
        self.reasons: list[str | None] = [None] * len(budgets)
        self.stopped: str | None = None
        self.asked = 0
        self.pursuits: list[Basis] = []
        self.shareable = shareable

    def extend(self, n_steps: int, watch: Watch[Self] | None = None) -> None:
        """Grow the model to `n_steps` steps in all, as far as its bases can.

        With a `watch` the bases take their turns one by one, and it looks at the model after each.
        """
        if watch is None:
            self._grow(n_steps)
            return
        for n in range(self.asked + 1, n_steps + 1):
            before = self.n_taken
            self._grow(n)
            if self.n_taken > before:
                self.stopped = watch(self)
            if self.stopped or all(self.reasons):
                break
        if self.stopped:
            self._finish()

    def can_grow(self, budgets: list[int]) -> bool:
        """Whether a path of such budgets begins with the steps taken so far."""
        if len(budgets) != len(self.pursuits):
            return False
        taken = zip(self.pursuits, budgets, strict=True)
        return all(len(p.pivots) <= n + self.n_always for p, n in taken)

    def set_budgets(self, budgets: list[int]) -> None:
        """Let a path grow beyond the budgets that it had, and where it was stopped."""
        self.order, self.stopped, self.asked = round_robin(budgets), None, 0

    @property
    def n_always(self) -> int:
        """Number of functions that every basis began with."""
        return int(np.isin(self.pursuits[0].pivots, self.always).sum()) if len(self.always) else 0

    @property
    def n_taken(self) -> int:
        """Number of steps taken by all bases together."""
        return sum(len(pursuit.pivots) for pursuit in self.pursuits)

    def _finish(self) -> None:
        """What is still to do where a path was stopped: nothing under squared error."""

    def _grow(self, n_steps: int) -> None:
        """Let each basis take its steps among the first `n_steps` of the model."""
        self.asked = n_steps
        lengths = np.bincount(self.order[:n_steps], minlength=len(self.pursuits)) + self.n_always

        def grow(b: int) -> None:
            pursuit = self.pursuits[b]
            if self.reasons[b] is None:
                self.reasons[b] = pursuit.extend(int(lengths[b]) - len(pursuit.pivots))

        blocks.in_parallel(grow, range(len(self.pursuits)), parallel=self.shareable)

    def reason(self) -> str:
        """Why the path ended: it was stopped, or the first basis that ran out says it."""
        ran_out = (reason for reason in self.reasons if reason)
        return self.stopped or next(ran_out, "n_components")

    def steps(self) -> Array:
        """The basis of each step taken so far, -1 where a basis whose turn it was had ended."""
        left = [len(pursuit.pivots) - self.n_always for pursuit in self.pursuits]
        order = self.order.copy()
        for step, b in enumerate(self.order):
            if left[b]:
                left[b] -= 1
            else:
                order[step] = -1
        return without_void_end(order)

    def path(self) -> tuple[CoefficientPath, Array]:
        """Return the coefficients of every prefix, and the chosen atoms in order of choice."""
        chosen = [len(pursuit.pivots) for pursuit in self.pursuits]
        solutions = blocks.in_parallel(lambda pursuit: pursuit.solution(), self.pursuits)
        for b, pursuit in enumerate(self.pursuits):
            if len(pursuit.pivots) < chosen[b]:
                self.reasons[b] = "rank"
        order = self.steps()
        pivots, n_always = [p.pivots for p in self.pursuits], self.n_always
        support, positions = _merge(
            pivots, np.concatenate([np.repeat(range(len(pivots)), n_always), order])
        )
        bases = tuple(
            self.basis(np.array(at, dtype=int), *solution, outputs)
            for at, solution, outputs in zip(positions, solutions, self.outputs, strict=True)
        )
        atom_mean = self.equations.atom_mean[support]
        return CoefficientPath(bases, order, atom_mean, self.start, n_always), support

    @property
    def start(self) -> Array:
        """The best constant, (n_outputs,)."""
        raise NotImplementedError

    @property
    def n_unconverged(self) -> int:
        """Number of re-fits that ended before their minimum; none where there is a closed form."""
        return 0

    def training_losses(self, path: CoefficientPath) -> Array:
        """Mean loss on the training rows after 1, 2, ... steps."""
        raise NotImplementedError


def round_robin(budgets: list[int]) -> Array:
    """The basis that takes each step: round-robin until their budgets are spent.

    Examples
    --------
    >>> from pursuit.greedy.multi_output import round_robin
    >>> round_robin([3, 1]).tolist()
    [0, 1, 0, 0]
    """
    rounds = np.concatenate([np.arange(n) for n in budgets])
    owners = np.repeat(np.arange(len(budgets)), budgets)
    return owners[np.lexsort((owners, rounds))]


def _merge(pivots: list[list[int]], order: Array) -> tuple[Array, list[list[int]]]:
    """Distinct atoms in order of first choice, and each basis's pivots as positions in them."""
    place: dict[int, int] = {}
    positions: list[list[int]] = [[] for _ in pivots]
    for b in order[order >= 0]:
        atom = pivots[b][len(positions[b])]
        positions[b].append(place.setdefault(atom, len(place)))
    return np.array(list(place), dtype=int), positions
