"""Losses of a path on rows of which only the sums are known.

With the moments (``normal_equations.py``) of rows that the path was not fitted on, measured from
the path's own means, and its functions q = R^{-T} (d - mean) with coefficients z (``path.py``),

    sum_i w_i |y_i - f_n(x_i)|^2 = e0 - 2 sum_{j<=n} z_j b_j + sum_{i,j<=n} z_i z_j S_ij,
    S = R^{-T} G0 R^{-1},      b = R^{-T} B0,

for each output: what every prefix n loses on these rows, without the rows. With the sums of each
fold, and those of all rows less them, cross-validation under squared error is exact.

Cost: N^3 for N steps.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.path import BasisPath, CoefficientPath
from pursuit.greedy.normal_equations import Moments, Origin
from pursuit.linalg.factor import solve_transposed

__all__ = ["moment_losses"]


def moment_losses(path: CoefficientPath, support: Array, moments: Moments) -> Array:
    """Weighted mean squared error after 0, 1, 2, ... steps, averaged over the outputs.

    Parameters
    ----------
    path : CoefficientPath
        Of bases under squared error.
    support : ndarray of int of shape (n_vectors,)
        The atom of each of its vectors.
    moments : Moments
        Sums over the rows that the errors are measured on, of all atoms.
    """
    part = moments.take(support).about(Origin(path.atom_mean, path.target_mean))
    total = np.zeros(path.n_steps + 1)
    for b, basis in enumerate(cast("tuple[BasisPath, ...]", path.bases)):
        taken = path.n_always + np.concatenate([[0], (path.order == b).cumsum()])
        total += _of_basis(basis, part)[taken].sum(axis=1)
    return np.maximum(total, 0.0) / (part.weight * len(path.target_mean))


def _of_basis(basis: BasisPath, part: Moments) -> Array:
    """Squared errors after 0, 1, 2, ... steps of a basis, (n_steps + 1, n_outputs)."""
    R, z, picks = basis.factor, basis.targets, basis.picks
    errors = np.tile(part.target_sq_norm[basis.outputs], (len(z) + 1, 1))
    if not len(z):
        return errors
    G0, B0 = np.asarray(part.gram)[np.ix_(picks, picks)], part.cross[basis.outputs][:, picks]
    S = solve_transposed(R, solve_transposed(R, G0).T)
    b = solve_transposed(R, B0.T)
    among_earlier = 2.0 * np.tril(S) @ z - S.diagonal()[:, None] * z
    errors[1:] += (z * (among_earlier - 2.0 * b)).cumsum(axis=0)
    return errors
