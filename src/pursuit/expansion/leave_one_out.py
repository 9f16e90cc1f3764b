"""Leave-one-out outputs of every prefix of a path, in closed form.

With the leverage h_i = w_i sum_j q_j(x_i)^2 (plus w_i / W for an intercept) and the residual
e_i = y_i - f(x_i), the residual without sample i is e_i / (1 - h_i); see ``path.py`` for q.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.path import BasisPath, CoefficientPath, prepared_values

__all__ = ["FULL_LEVERAGE", "HeldOut", "leave_one_out"]

# A row whose leverage is this near to 1 is explained by itself alone.
FULL_LEVERAGE = 1e-6


class HeldOut(NamedTuple):
    """Outputs of a prefix on training rows and their leverages, both (n_rows, n_outputs)."""

    outputs: Array
    leverage: Array
    targets: Array
    target_mean: Array

    def values(self) -> Array:
        """Leave-one-out outputs, y_i - e_i / (1 - h_i)."""
        slack = 1.0 - self.leverage
        alone = slack < FULL_LEVERAGE
        errors = (self.targets - self.outputs) / np.where(alone, 1.0, slack)
        return np.where(alone, self.target_mean, self.targets - errors)


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
    out; a row of weight below 1 is left out whole. Where the leverage h_i is 1 to rounding
    the row is explained by itself alone: the mean of the targets stands in.

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
        yield HeldOut(outputs, leverage, targets, path.target_mean)
