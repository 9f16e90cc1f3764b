"""Greedy bases that grow together, and the choice of the prefix to keep.

A model has one basis for all outputs, or one an output. The bases share the normal equations
and take turns, so that the first n steps of the model are what a budget of n would have given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._warnings import warn
from pursuit.expansion.basis_functions import AtomSet
from pursuit.expansion.path import BasisPath, CoefficientPath, RefittedPath, without_void_end
from pursuit.greedy.normal_equations import NormalEquations
from pursuit.greedy.path_losses import training_losses
from pursuit.greedy.stopping import below_threshold, best_prefix
from pursuit.linalg import blocks
from pursuit.linalg.partial_cholesky import BasicPursuit, PivotedFactor
from pursuit.losses import LOSSES, Loss

__all__ = ["Fit", "Search", "Stopping", "Turns", "choose_prefix", "deal", "warn_short"]

# The first look at held-out rows comes after this many steps; then the path is doubled.
FIRST_LOOK = 32

# From a path, its atoms and their places in the dictionary to one number a step.
Losses = Callable[[CoefficientPath, AtomSet, Array], Array]


class Stopping(NamedTuple):
    """When to end a path (sections 2.1 and 5 of Vincent and Bengio 2002).

    Attributes
    ----------
    losses : callable or None
        Losses after 1, 2, ... steps on rows that the fit has not seen, or a bound; the prefix
        with the lowest is kept. None: the training loss alone is followed.
    patience : int or None
        Look no further than this many steps after the best one.
    tol : float
        With `losses`, the least improvement that counts; without, the training loss at which
        the path ends (0: never).
    """

    losses: Losses | None = None
    patience: int | None = None
    tol: float = 0.0


class Fit(NamedTuple):
    """A path with its prefix chosen.

    Attributes
    ----------
    path : CoefficientPath
        The steps kept.
    support : ndarray of int of shape (n_vectors,)
        Their atoms in the dictionary, in order of choice.
    train_losses, watched_losses : ndarray of shape (n_seen,) or None
        Losses after 1, 2, ... steps, as far as was looked.
    reason : str
        ``"n_components"``, ``"tol"``, ``"early_stopping"``, ``"rank"``, ``"zero_residual"`` or
        ``"no_gain"``.
    """

    path: CoefficientPath
    support: Array
    train_losses: Array
    watched_losses: Array | None
    reason: str


class Pursuit(Protocol):
    """One greedy basis that can be grown."""

    picks: list[int]

    def extend(self, n_steps: int) -> str | None:
        """Take up to `n_steps` more steps; return why it ended early, or None."""

    def solution(self) -> tuple[Any, ...]:
        """Return what gives the coefficients of every prefix."""


class Turns:
    """Greedy bases that grow together: one for all outputs, or one an output.

    A subclass fills `pursuits`, one a basis, and says what a basis and its loss are.

    Parameters
    ----------
    equations : NormalEquations
        G, D'y and the means.
    loss : Loss
        What the fit makes small.
    budgets : list of int
        Largest number of steps of each basis; as many as bases.
    shareable : bool
        Whether the pursuits may grow at the same time.
    """

    # A basis of the path, from its picks, a pursuit's solution and its outputs.
    basis: Callable[..., BasisPath | RefittedPath]

    def __init__(
        self, equations: NormalEquations, loss: Loss, budgets: list[int], *, shareable: bool
    ) -> None:
        self.equations, self.loss = equations, loss
        n_outputs = len(equations.energy)
        together = [np.arange(n_outputs)]
        self.outputs = together if len(budgets) == 1 else list(np.arange(n_outputs)[:, None])
        self.order = deal(budgets)
        self.reasons: list[str | None] = [None] * len(budgets)
        self.pursuits: list[Pursuit] = []
        self.shareable = shareable

    def extend(self, n_steps: int) -> None:
        """Grow the model to `n_steps` steps in all, as far as its bases can."""
        lengths = np.bincount(self.order[:n_steps], minlength=len(self.pursuits))

        def grow(b: int) -> None:
            pursuit = self.pursuits[b]
            if self.reasons[b] is None:
                self.reasons[b] = pursuit.extend(int(lengths[b]) - len(pursuit.picks))

        blocks.in_parallel(grow, range(len(self.pursuits)), parallel=self.shareable)

    def reason(self) -> str:
        """Why the path ended: the first basis that ran out says it."""
        return next((reason for reason in self.reasons if reason), "n_components")

    def steps(self) -> Array:
        """The basis of each step taken so far, -1 for the turns of bases that had ended."""
        left = [len(pursuit.picks) for pursuit in self.pursuits]
        order = self.order.copy()
        for turn, b in enumerate(self.order):
            if left[b]:
                left[b] -= 1
            else:
                order[turn] = -1
        return without_void_end(order)

    def path(self) -> tuple[CoefficientPath, Array]:
        """Return the coefficients of every prefix, and the chosen atoms in order of choice."""
        chosen = [len(pursuit.picks) for pursuit in self.pursuits]
        solutions = blocks.in_parallel(lambda pursuit: pursuit.solution(), self.pursuits)
        for b, pursuit in enumerate(self.pursuits):
            if len(pursuit.picks) < chosen[b]:
                self.reasons[b] = "rank"
        order = self.steps()
        support, positions = _merge([p.picks for p in self.pursuits], order)
        bases = tuple(
            self.basis(np.array(at, dtype=int), *solution, outputs)
            for at, solution, outputs in zip(positions, solutions, self.outputs, strict=True)
        )
        atom_mean = self.equations.atom_mean[support]
        return CoefficientPath(bases, order, atom_mean, self.start), support

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


class Search(Turns):
    """Greedy bases under squared error.

    Parameters
    ----------
    equations : NormalEquations
        G, D'y and the means.
    fitting : {"prefit", "backfit", "basic"}
        See ``matching_pursuit.py``.
    budgets : list of int
        See `Turns`.
    barred : ndarray of bool of shape (n_atoms,), optional
        Atoms that may not be chosen.
    """

    basis = BasisPath

    def __init__(
        self,
        equations: NormalEquations,
        fitting: str,
        budgets: list[int],
        barred: Array | None = None,
    ) -> None:
        loss = LOSSES["squared_error"]
        super().__init__(equations, loss, budgets, shareable=equations.gram.shareable)
        for t in self.outputs:
            start = (equations.gram, equations.cross[t], equations.energy[t], barred)
            basic = fitting == "basic"
            self.pursuits.append(
                BasicPursuit(*start) if basic else PivotedFactor(*start, rule=fitting)
            )

    @property
    def start(self) -> Array:
        """Weighted mean of each target."""
        return self.equations.target_mean

    def training_losses(self, path: CoefficientPath) -> Array:
        """Mean squared error after 1, 2, ... steps."""
        return training_losses(path, self.equations)[1:]


def deal(budgets: list[int]) -> Array:
    """The basis that takes each step: the bases take turns until their budgets are spent.

    Examples
    --------
    >>> from pursuit.greedy.squared_error import deal
    >>> deal([3, 1]).tolist()
    [0, 1, 0, 0]
    """
    turns = np.concatenate([np.arange(n) for n in budgets])
    owners = np.repeat(np.arange(len(budgets)), budgets)
    return owners[np.lexsort((owners, turns))]


def _merge(picks: list[list[int]], order: Array) -> tuple[Array, list[list[int]]]:
    """Distinct atoms in order of first choice, and each basis's picks as positions in them."""
    place: dict[int, int] = {}
    positions: list[list[int]] = [[] for _ in picks]
    for b in order[order >= 0]:
        atom = picks[b][len(positions[b])]
        positions[b].append(place.setdefault(atom, len(place)))
    return np.array(list(place), dtype=int), positions


# --------------------------------------------------------------------- fitting, step by step


def choose_prefix(search: Turns, atoms: AtomSet, stopping: Stopping) -> Fit:
    """Grow the path to its budget, or as long as patience lasts, and keep the best prefix.

    Parameters
    ----------
    search : Turns
        Not yet grown.
    atoms : AtomSet
        The dictionary's atoms.
    stopping : Stopping
        The rule.
    """
    budget = len(search.order)
    looked = budget if stopping.patience is None else min(budget, FIRST_LOOK)
    while True:
        search.extend(looked)
        path, support = search.path()
        train = search.training_losses(path)
        if stopping.losses is None:
            return _below_threshold(search, path, support, train, stopping.tol)
        losses = stopping.losses(path, atoms.take(support), support)
        decision = best_prefix(losses, stopping.patience, stopping.tol)
        if decision.final or looked == budget or path.n_steps < looked:
            break
        looked = min(budget, 2 * looked)
    early = decision.final or decision.n_steps < path.n_steps
    return _kept(
        path.first(decision.n_steps),
        support,
        train[: decision.n_seen],
        losses[: decision.n_seen],
        "early_stopping" if early else search.reason(),
    )


def _below_threshold(
    search: Turns, path: CoefficientPath, support: Array, train: Array, tol: float
) -> Fit:
    """All steps, or those up to the first training loss of at most `tol`."""
    n = below_threshold(train, tol) if tol > 0 else None
    if n is None:
        return _kept(path, support, train, None, search.reason())
    return _kept(path.first(n), support, train[:n], None, "tol")


def _kept(
    path: CoefficientPath, support: Array, train: Array, watched: Array | None, reason: str
) -> Fit:
    """The fit with its support cut to the vectors of the path."""
    return Fit(path, support[: path.n_vectors(path.n_steps)], train, watched, reason)


_REASONS = {
    "rank": "the other candidates are numerically combinations of those chosen, or constant",
    "zero_residual": "the training targets are explained to rounding",
    "no_gain": "no other candidate lowers the training error",
}


def warn_short(fit: Fit, budget: int) -> None:
    """Say why fewer functions than asked for were used."""
    n_taken = sum(fit.path.lengths(fit.path.n_steps))
    if fit.reason in _REASONS and n_taken < budget:
        warn(
            f"n_components={budget}, but the path ended after {n_taken} steps: "
            f"{_REASONS[fit.reason]}",
            ConvergenceWarning,
        )
