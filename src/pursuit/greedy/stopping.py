"""When to stop: how far a path is grown and which prefix of it is kept.

Sections 2.1 and 5 of Vincent and Bengio (2002): a fixed number of functions, a training error
below a threshold, or the number with the lowest error on rows that the fit has not seen, with
patience.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array, Watch
from pursuit._warnings import warn
from pursuit.expansion.basis_functions import AtomSet
from pursuit.expansion.path import CoefficientPath
from pursuit.greedy.multi_output import MultiOutputPursuit

__all__ = [
    "Decision",
    "Fit",
    "Losses",
    "Stopping",
    "best_prefix",
    "below_threshold",
    "choose_prefix",
    "taken",
    "warn_short",
]

# Held-out rows are first examined after this many steps; then the path is doubled.
FIRST_EXAMINED = 32

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
        Examine at most this many steps after the best one.
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
        Losses after 1, 2, ... steps, up to the last step examined.
    reason : str
        ``"n_components"``, ``"tol"``, ``"early_stopping"``, ``"rank"``, ``"zero_residual"``,
        ``"no_gain"``, or what a watch said.
    """

    path: CoefficientPath
    support: Array
    train_losses: Array
    watched_losses: Array | None
    reason: str


class Decision(NamedTuple):
    """How many steps to keep, how many were examined, and whether to examine no more."""

    n_steps: int
    n_seen: int
    final: bool


def best_prefix(losses: Array, patience: int | None = None, tol: float = 0.0) -> Decision:
    """Find the shortest prefix with the lowest loss.

    Parameters
    ----------
    losses : ndarray of shape (n_steps,)
        Loss after 1, 2, ... steps.
    patience : int, optional
        Examine at most this many steps after the best one.
    tol : float, default 0.0
        A step counts as better only where it lowers the best loss by more than this.

    Returns
    -------
    decision : Decision
        `n_steps` is the prefix to keep (0 for an empty sequence); `final` tells that patience
        ran out.

    Examples
    --------
    >>> from pursuit.greedy.stopping import best_prefix
    >>> best_prefix([3.0, 1.0, 2.0, 0.5], patience=1)
    Decision(n_steps=2, n_seen=3, final=True)
    """
    best, kept = np.inf, 0
    for n, loss in enumerate(losses, start=1):
        if loss < best - tol or kept == 0:
            best, kept = loss, n
        elif patience is not None and n - kept >= patience:
            return Decision(kept, n, True)
    return Decision(kept, len(losses), False)


def below_threshold(losses: Array, threshold: float) -> int | None:
    """Return the first number of steps whose loss is at most `threshold`, or None.

    Examples
    --------
    >>> from pursuit.greedy.stopping import below_threshold
    >>> below_threshold([3.0, 1.0, 0.5], 1.0)
    2
    """
    reached = np.flatnonzero(np.asarray(losses) <= threshold)
    return int(reached[0]) + 1 if len(reached) else None


def taken(pursuit: MultiOutputPursuit) -> Fit:
    """All steps that a pursuit has taken so far."""
    path, support = pursuit.path()
    return Fit(path, support, pursuit.training_losses(path), None, pursuit.reason())


def choose_prefix(
    pursuit: MultiOutputPursuit,
    atoms: AtomSet,
    stopping: Stopping,
    watch: Watch[MultiOutputPursuit] | None = None,
) -> Fit:
    """Grow the path to its budget, or as long as patience lasts, and keep the best prefix.

    Parameters
    ----------
    pursuit : MultiOutputPursuit
        Not yet grown.
    atoms : AtomSet
        The dictionary's atoms.
    stopping : Stopping
        The rule.
    watch : callable, optional
        Looks at the pursuit after each step.
    """
    budget = len(pursuit.order)
    n_examined = budget if stopping.patience is None else min(budget, FIRST_EXAMINED)
    while True:
        pursuit.extend(n_examined, watch)
        path, support = pursuit.path()
        train = pursuit.training_losses(path)
        if stopping.losses is None:
            return _below_threshold(pursuit, path, support, train, stopping.tol)
        losses = stopping.losses(path, atoms.take(support), support)
        decision = best_prefix(losses, stopping.patience, stopping.tol)
        ended = pursuit.stopped or n_examined == budget or path.n_steps < n_examined
        if decision.final or ended:
            break
        n_examined = min(budget, 2 * n_examined)
    early = not pursuit.stopped and (decision.final or decision.n_steps < path.n_steps)
    return _kept(
        path.first(decision.n_steps),
        support,
        train[: decision.n_seen],
        losses[: decision.n_seen],
        "early_stopping" if early else pursuit.reason(),
    )


def _below_threshold(
    pursuit: MultiOutputPursuit, path: CoefficientPath, support: Array, train: Array, tol: float
) -> Fit:
    """All steps, or those up to the first training loss of at most `tol`."""
    n = below_threshold(train, tol) if tol > 0 else None
    if n is None:
        return _kept(path, support, train, None, pursuit.reason())
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
    n_taken = int((fit.path.order >= 0).sum())
    if fit.reason in _REASONS and n_taken < budget:
        warn(
            f"n_components={budget}, but the path ended after {n_taken} steps: "
            f"{_REASONS[fit.reason]}",
            ConvergenceWarning,
        )
