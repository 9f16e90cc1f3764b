"""What each prefix of a path is worth: training, held-out and leave-one-out losses.

All losses are weighted mean squared errors averaged over the outputs. The held-out and the
leave-one-out ones go through the rows in blocks; a block's kernel values give the losses of
every prefix at once (see ``expansion.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pursuit import blocks
from pursuit.backend import Array
from pursuit.calibration import fit_inverse_temperature
from pursuit.dictionary import Atoms
from pursuit.expansion import BasisPath, CoefficientPath, leave_one_out, staged_values
from pursuit.gram import NormalEquations, Samples
from pursuit.parameters import class_codes

__all__ = ["held_out_losses", "inverse_temperatures", "leave_one_out_losses", "training_losses"]

# Rows on which the temperature of the probabilities is fitted, evenly spaced.
CALIBRATION_ROWS = 1_000


def training_losses(path: CoefficientPath, equations: NormalEquations) -> Array:
    """Weighted mean squared error after 0, 1, 2, ... steps, averaged over the outputs.

    Each step lowers ``|y - f|^2 + alpha |a|^2`` by |z|^2; the ridge term is taken off again.
    """
    n_steps, n_outputs = path.n_steps, len(equations.energy)
    total = np.zeros(n_steps + 1)
    for b, basis in enumerate(path.bases):
        squares = np.vstack([np.zeros((1, len(basis.outputs))), basis.targets**2])
        energy = equations.energy[basis.outputs] - squares.cumsum(axis=0)
        if equations.alpha:
            energy -= equations.alpha * _squared_coefficients(basis)
        taken = np.concatenate([[0], (path.order == b).cumsum()])
        total += energy[taken].sum(axis=1)
    losses: Array = np.maximum(total, 0.0) / (equations.weight * n_outputs)
    return losses


def _squared_coefficients(basis: BasisPath) -> Array:
    """Squared norm of the coefficients after 0, 1, 2, ... steps of a basis, for each output."""
    n_steps, n_outputs = basis.targets.shape
    norms = np.zeros((n_steps + 1, n_outputs))
    inverse = np.linalg.solve(basis.factor, np.eye(n_steps)) if n_steps else basis.factor
    coefficients = np.zeros((int(basis.picks.max(initial=-1)) + 1, n_outputs))
    for n in range(n_steps):
        # alpha_{n+1} = alpha_n + z_{n+1} R^{-1} e_{n+1}, the paper's incremental update.
        np.add.at(coefficients, basis.picks, np.outer(inverse[:, n], basis.targets[n]))
        norms[n + 1] = (coefficients**2).sum(axis=0)
    return norms


def held_out_losses(path: CoefficientPath, atoms: Atoms, samples: Samples) -> Array:
    """Weighted mean squared error on other rows after 1, 2, ... steps, averaged over outputs."""
    losses = np.zeros(path.n_steps)
    functions, weight = atoms.functions, samples.weights.sum()
    for rows in blocks.row_blocks(samples.X.shape[0], 16.0 * max(len(atoms), 1)):
        values = blocks.evaluate(functions, samples.X[rows], len(atoms))
        for n, outputs in enumerate(staged_values(path, values)):
            errors = ((samples.Y[rows] - outputs) ** 2).mean(axis=1)
            losses[n] += float(samples.weights[rows] @ errors) / weight
    return losses


def leave_one_out_losses(
    path: CoefficientPath, atoms: Atoms, samples: Samples, fit_intercept: bool
) -> Array:
    """Closed-form leave-one-out mean squared error after 1, 2, ... steps."""
    losses = np.zeros(path.n_steps)
    functions, weight = atoms.functions, float(samples.weights.sum())
    for rows in blocks.row_blocks(samples.X.shape[0], 16.0 * max(len(atoms), 1)):
        values = blocks.evaluate(functions, samples.X[rows], len(atoms))
        block = (samples.Y[rows], samples.weights[rows], weight if fit_intercept else 0.0)
        for n, held_out in enumerate(leave_one_out(path, values, *block)):
            errors = ((samples.Y[rows] - held_out.values()) ** 2).mean(axis=1)
            losses[n] += float(samples.weights[rows] @ errors) / weight
    return losses


def inverse_temperatures(
    path: CoefficientPath, atoms: Atoms, samples: Samples, *, fit_intercept: bool, basic: bool
) -> Array:
    """Inverse temperatures along the path, as rows (first step they apply to, value).

    Each minimises the negative log-likelihood of leave-one-out decision values (of training
    values for basic pursuit, which has no closed form), on up to 1000 evenly spaced rows. They
    are refreshed at each of the first 32 steps and then whenever the path has grown by 10 %,
    which depends on the number of steps alone.
    """
    if not path.n_steps:
        return np.empty((0, 2))
    few = np.unique(np.linspace(0, samples.X.shape[0] - 1, CALIBRATION_ROWS).astype(int))
    part = samples.take(few) if len(few) < samples.X.shape[0] else samples
    codes = class_codes(part.Y)
    weight = float(samples.weights.sum()) if fit_intercept else 0.0
    values = blocks.evaluate(atoms.functions, part.X, len(atoms))
    steps = calibration_steps(path.n_steps)
    stages: Iterator[Array]
    if basic:
        wanted = set(steps.tolist())
        every = enumerate(staged_values(path, values), start=1)
        stages = (outputs for n, outputs in every if n in wanted)
    else:
        held_out = leave_one_out(path, values, part.Y, part.weights, weight, steps)
        stages = (stage.values() for stage in held_out)
    scale, scales = 1.0, []
    for decisions in stages:
        scale = fit_inverse_temperature(decisions, codes, part.weights, scale)
        scales.append(scale)
    return np.column_stack([steps, scales])


def calibration_steps(n_steps: int) -> Array:
    """Steps at which the temperature is fitted: each of the first 32, then every 10 %.

    Examples
    --------
    >>> calibration_steps(40).tolist()[-4:]
    [31, 32, 35, 38]
    """
    steps = list(range(1, min(n_steps, 32) + 1))
    while steps[-1] + steps[-1] // 10 <= n_steps and n_steps > 32:
        steps.append(steps[-1] + steps[-1] // 10)
    return np.array(steps)
