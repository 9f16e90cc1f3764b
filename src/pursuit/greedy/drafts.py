"""Drafts: a guess of the next steps of a pursuit, from few of its atoms.

A step costs a row of G and a product with V (``pursuits.py``). For many steps at once both run at
the speed of arithmetic in place of that of memory, if it is known which these will be. The best
scores do not say it: they belong to atoms that resemble each other, of which one will be chosen. A
draft takes the steps themselves (the same symbols and formulas), among the best atoms alone and in
single precision. What it says is a guess: the pursuit looks at all atoms before each step.
"""

from __future__ import annotations

import numpy as np

from pursuit._typing import Array
from pursuit.greedy.gram_rows import GramRows
from pursuit.greedy.pivot_rules import PIVOT_RULES
from pursuit.linalg.partial_cholesky import PartialCholesky

__all__ = ["DRAFT_ATOMS", "draft"]

# A draft guesses among so many of the best atoms.
DRAFT_ATOMS = 512


def draft(gram: GramRows, state: PartialCholesky, cross: Array, rule: str, atoms: Array) -> Array:
    """Pivots that a pursuit would take next if there were no other atoms.

    Parameters
    ----------
    gram : GramRows
        G; as many steps are taken as it gives rows in one pass.
    state : PartialCholesky
        The steps so far.
    cross : ndarray of shape (n_targets, n_atoms)
        b.
    rule : str
        A key of `PIVOT_RULES`.
    atoms : ndarray of int
        Those among which it chooses, sorted.

    Returns
    -------
    pivots : ndarray of int
        In order; fewer where there are no others.
    """
    part, n = gram.among(atoms), len(state)
    V = np.empty((n + gram.panel, len(atoms)), dtype=np.float32)
    V[:n] = state.V[:, atoms]
    single = (cross[:, atoms], state.residual[atoms], state.diagonal[atoms], state.threshold[atoms])
    b, nu, sq_norms, least = (array.astype(np.float32) for array in single)
    usable = state.usable[atoms].copy()
    pivots: list[int] = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for m in range(n, n + min(gram.panel, int(usable.sum()))):
            np.maximum(nu, least, out=nu)  # what rounding has made smaller
            scores = np.where(usable, PIVOT_RULES[rule](b, nu, sq_norms), -np.inf)
            g = int(scores.argmax())
            length = np.sqrt(nu[g])
            v = (part.row(g).astype(np.float32) - V[:m, g] @ V[:m]) / length
            b -= (b[:, g] / length)[:, None] * v
            nu -= v * v
            V[m] = v
            usable[g] = False
            pivots.append(g)
    return np.asarray(atoms[pivots])
