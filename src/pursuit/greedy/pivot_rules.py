"""Pivot rules: which candidate a greedy method takes next.

Every greedy method here is the factorisation of ``linalg/partial_cholesky.py`` and one of these
rules. With nu what the span of those chosen leaves of each squared norm G[k,k], a rule makes a
score of each candidate; the largest wins, ties go to the lowest index:

===============  ====================  ==========================================================
rule             score                 method
===============  ====================  ==========================================================
``prefit``       sum_t b[t]^2 / nu     eq. 7, figure 3 of Vincent and Bengio (2002); orthogonal
                                       least squares. b[t,k] = <P_perp d_k, y_t>
``backfit``      sum_t b[t]^2 / G      their eq. 3 and 6; orthogonal matching pursuit
``basic``        sum_t b[t]^2 / G      their eq. 3-5, figure 1; no orthogonalisation
``rayleigh``     c / nu                eq. 2 of Hussain and Shawe-Taylor (2008): the drop of
                                       sum_j w_j nu_j. c[k] = sum_j w_j K^[j,k]^2
``residual``     nu                    pivoted Cholesky, pivoted Gram-Schmidt
``correlation``  - sum_l cos^2         CORR of Kovacs and Kocsor (2006), l over those chosen: the
                                       one that resembles them least; no orthogonalisation.
                                       With or without the means, as G has it
``rpcholesky``   odds w nu             randomly pivoted Cholesky (Chen et al. 2022)
``random``       odds w                the usual Nystroem method
===============  ====================  ==========================================================

The last two are drawn with these odds in place of a largest score.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pursuit._arrays import namespace_of
from pursuit._typing import Array
from pursuit.linalg.partial_cholesky import PartialCholesky

__all__ = ["DRAWN", "PIVOT_RULES", "Rule", "explained", "scores_of"]

# From what the rule knows of the candidates (b, c, sums or w), nu and G[k,k] to their scores.
Rule = Callable[[Array, Array, Array], Array]


def explained(cross: Array, sq_norms: Array) -> Array:
    """Drop in squared error, sum_t b^2 / norm^2.

    Parameters
    ----------
    cross : ndarray of shape (n_targets, n_candidates)
        b.
    sq_norms : ndarray of shape (n_candidates,)
        Squared norms.
    """
    if (xp := namespace_of(cross)) is not None:
        on_device: Array = xp.sum(cross * cross, axis=0) / sq_norms
        return on_device
    squares = cross[0] * cross[0] if len(cross) == 1 else (cross * cross).sum(axis=0)
    drops: Array = squares / sq_norms
    return drops


PIVOT_RULES: dict[str, Rule] = {
    "prefit": lambda cross, nu, sq_norms: explained(cross, nu),  # eq. 7
    "backfit": lambda cross, nu, sq_norms: explained(cross, sq_norms),  # eq. 3
    "basic": lambda cross, nu, sq_norms: explained(cross, sq_norms),  # eq. 3
    "rayleigh": lambda c, nu, sq_norms: c / nu,  # eq. 2
    "residual": lambda _, nu, sq_norms: nu,
    "correlation": lambda sums, nu, sq_norms: -sums,
    "rpcholesky": lambda weights, nu, sq_norms: weights * nu,
    "random": lambda weights, nu, sq_norms: weights,
}
DRAWN = ("rpcholesky", "random")


def scores_of(rule: str, known: Array, factor: PartialCholesky) -> Array:
    """Scores of all candidates, -inf where one may not be chosen.

    Parameters
    ----------
    rule : str
        A key of `PIVOT_RULES`.
    known : ndarray of shape (..., n_candidates)
        What the rule asks for: b, c, sums or weights.
    factor : PartialCholesky
        nu, G[k,k] and which candidates are usable.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scores = PIVOT_RULES[rule](known, factor.residual, factor.diagonal)
    masked: Array = np.where(factor.usable, scores, -np.inf)
    return masked
