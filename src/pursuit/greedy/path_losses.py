"""What each prefix of a path is worth: training, held-out, leave-one-out losses and a bound.

All losses are weighted means over the rows, averaged over the outputs unless the loss couples
them. They are taken from the rows in blocks; a block's kernel values give the losses of every
prefix at once (see ``expansion.py``).

Under squared error leave-one-out is exact. Under another loss one Newton step from the fit
without a row stands for it: with the Hessian H of the objective, phi_i the functions at row i
(and 1 for an intercept), h_i = phi_i'H^{-1}phi_i, slope g_i and curvature c_i of the loss and
the weight u_i of one copy of the row,

    f_i without row i  =  f_i + u_i g_i h_i / (1 - u_i c_i h_i),

which is the exact value where the loss is quadratic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from pursuit._typing import Array
from pursuit._validation import Samples, class_codes
from pursuit.bounds import matching_pursuit_bound_path
from pursuit.expansion.basis_functions import AtomSet
from pursuit.expansion.intervals import ALPHAS, INTERVAL_ROWS, error_quantiles
from pursuit.expansion.leave_one_out import (
    FULL_LEVERAGE,
    definite_factor,
    evaluated,
    leave_one_out,
    most_releasing,
    orthonormal,
    own_values,
    ridge_between,
)
from pursuit.expansion.path import BasisPath, CoefficientPath, staged_values
from pursuit.expansion.penalty import IDENTITY
from pursuit.expansion.probabilities import fit_inverse_temperature, negative_log_likelihood
from pursuit.greedy.normal_equations import NormalEquations
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_transposed, solve_upper
from pursuit.losses import LOSSES, Loss

__all__ = [
    "bound_path",
    "held_out_losses",
    "inverse_temperatures",
    "leave_one_out_losses",
    "left_out_quantiles",
    "training_losses",
]

# Rows on which the temperature of the probabilities is fitted, evenly spaced.
CALIBRATION_ROWS = 1_000
# Below this no row bends the loss, and no leverage can be told.
FLAT = 1e-100


def training_losses(
    path: CoefficientPath, equations: NormalEquations, penalties: Sequence[Array] | None = None
) -> Array:
    """Weighted mean squared error after 0, 1, 2, ... steps, averaged over the outputs.

    Each step lowers ``|y - f|^2 + alpha a'P a`` by |z|^2; the ridge term is taken off again.
    `penalties` are P among the picks of each basis; None: the identity.
    """
    n_steps, n_outputs = path.n_steps, len(equations.target_sq_norm)
    total = np.zeros(n_steps + 1)
    for b, basis in enumerate(cast("tuple[BasisPath, ...]", path.bases)):
        squares = np.vstack([np.zeros((1, len(basis.outputs))), basis.targets**2])
        left = equations.target_sq_norm[basis.outputs] - squares.cumsum(axis=0)
        if equations.alpha:
            P = IDENTITY.block(basis.picks) if penalties is None else penalties[b]
            left -= equations.alpha * _penalised(basis, P)
        taken = path.n_always + np.concatenate([[0], (path.order == b).cumsum()])
        total += left[taken].sum(axis=1)
    losses: Array = np.maximum(total, 0.0) / (equations.weight * n_outputs)
    return losses


def _penalised(basis: BasisPath, P: Array) -> Array:
    """The penalty a'P a after 0, 1, 2, ... steps of a basis, for each output; P among its picks."""
    n_steps, n_outputs = basis.targets.shape
    norms = np.zeros((n_steps + 1, n_outputs))
    inverse = np.linalg.solve(basis.factor, np.eye(n_steps)) if n_steps else basis.factor
    images = P @ inverse
    coefficients, weighed = np.zeros((n_steps, n_outputs)), np.zeros((n_steps, n_outputs))
    for n in range(n_steps):
        # alpha_{n+1} = alpha_n + z_{n+1} R^{-1} e_{n+1}, the paper's incremental update.
        coefficients += np.outer(inverse[:, n], basis.targets[n])
        weighed += np.outer(images[:, n], basis.targets[n])
        norms[n + 1] = (coefficients * weighed).sum(axis=0)
    return norms


def held_out_losses(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    loss: Loss = LOSSES["squared_error"],
) -> Array:
    """Weighted mean loss on other rows after 1, 2, ... steps, averaged over the outputs."""
    return _staged_means(
        path, atoms, samples, lambda Y, outputs: row_losses(loss, Y, outputs)
    ) / float(samples.weights.sum())


def row_losses(loss: Loss, Y: Array, outputs: Array) -> Array:
    """Loss of each row, averaged over the outputs unless they are coupled."""
    values = loss.value(Y, outputs)
    means: Array = values if loss.coupled else values.mean(axis=1)
    return means


def _staged_means(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    measure: Callable[[Array, Array], Array],
) -> Array:
    """sum_i w_i measure(y_i, f_n(x_i)) after n = 1, 2, ... steps."""
    totals = np.zeros(path.n_steps)
    for rows, values in evaluated(atoms, samples.X):
        for n, outputs in enumerate(staged_values(path, values)):
            totals[n] += float(samples.weights[rows] @ measure(samples.Y[rows], outputs))
    return totals


def bound_path(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    centres: Array,
    tolerance: float | None,
    loss: Loss = LOSSES["squared_error"],
) -> Array:
    """Theorem 3 of Hussain and Shawe-Taylor (2008) after 1, 2, ... steps; see ``bounds.py``.

    Parameters
    ----------
    path : CoefficientPath
        The path.
    atoms : AtomSet
        Its functions, in order of choice.
    samples : Samples
        The training rows; a row of weight 2 counts as two rows.
    centres : ndarray of int of shape (n_atoms,)
        Training row behind each function, in order of choice.
    tolerance : float or None
        A row is an error where a prediction differs from its target by more than this; None:
        where the class is wrong.
    loss : Loss
        Its `mean` gives predictions from outputs.

    Returns
    -------
    bounds : ndarray of shape (n_steps,)
        Infinite where the bound is not defined.
    """
    # A function's row is no longer among those that can be errors, but its second copy is.
    last_use = np.full(samples.X.shape[0], np.inf)
    n_vectors = np.array([path.n_vectors(n) for n in range(1, path.n_steps + 1)])
    for k, row in enumerate(centres):
        if row >= 0:
            last_use[row] = min(last_use[row], np.searchsorted(n_vectors, k + 1))
    errors = np.zeros(path.n_steps)
    for rows, values in evaluated(atoms, samples.X):
        weights, used = samples.weights[rows], last_use[rows]
        others = weights - samples.one_copy[rows]
        for n, outputs in enumerate(staged_values(path, values)):
            outside = np.where(used <= n, others, weights)
            errors[n] += float(outside @ _wrong(samples.Y[rows], outputs, tolerance, loss))
    # Weights that sum to less than one sample leave no bound.
    n_samples = max(1, round(float(samples.weights.sum())))
    n_basis = np.minimum(n_vectors, n_samples)
    # Whole errors, but for rounding of their weights.
    return matching_pursuit_bound_path(n_samples, n_basis, np.ceil((1.0 - 1e-12) * errors))


def _wrong(Y: Array, outputs: Array, tolerance: float | None, loss: Loss) -> Array:
    """Whether each row is an error."""
    if tolerance is not None:
        return np.asarray((np.abs(loss.mean(outputs) - Y) > tolerance).any(axis=1))
    return np.asarray(class_codes(outputs) != class_codes(Y))


def leave_one_out_losses(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    fit_intercept: bool,
    alpha: float | Array,
) -> Array:
    """Closed-form leave-one-out mean squared error after 1, 2, ... steps."""
    X, Y, weights, _ = samples
    losses, weight, one_copy = np.zeros(path.n_steps), float(weights.sum()), samples.one_copy
    everything = ((values, Y[rows], weights[rows]) for rows, values in evaluated(atoms, X))
    path = orthonormal(path, everything, alpha)
    for rows, values in evaluated(atoms, X):
        block = (Y[rows], one_copy[rows], weight if fit_intercept else 0.0)
        for n, held_out in enumerate(leave_one_out(path, values, *block)):
            errors = ((Y[rows] - held_out.values()) ** 2).mean(axis=1)
            losses[n] += float(weights[rows] @ errors) / weight
    return losses


def inverse_temperatures(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    *,
    fit_intercept: bool,
    basic: bool,
    loss: Loss = LOSSES["squared_error"],
    alpha: float | Array = 0.0,
    total: float | None = None,
) -> Array:
    """Inverse temperatures along the path, as rows (first step they apply to, value).

    Each minimises the negative log-likelihood of leave-one-out decision values (without a closed
    form: of training values less the vectors on which a row has the only say), on up to 1000 evenly
    spaced rows. They are refreshed at each of the first 32 steps and then whenever the path has
    grown by 10 %, which depends on the number of steps alone. A loss with probabilities of its own
    keeps its one, but where these are worse than the frequencies of the classes. `alpha` is the
    ridge, or alpha P among the functions; `total` is the weight of all training rows, where
    `samples` are some of them.
    """
    if not path.n_steps:
        return np.empty((0, 2))
    steps, rows = calibration_steps(path.n_steps), _calibration_rows(samples)
    objective, part = Objective(loss, alpha, fit_intercept), samples.take(rows)
    own = loss.inverse_temperature if loss.coupled or samples.Y.shape[1] == 1 else None
    closed = loss.smooth and not (basic or loss.coupled or own is not None)
    stages = _left_out_stages(path, atoms, samples, rows, steps, objective, closed, total)
    scales = list(_scales(stages, class_codes(part.Y), part.weights, own))
    if own is not None and min(scales) == own:
        return np.array([[1.0, own]])
    return np.column_stack([steps, scales])


def left_out_quantiles(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    *,
    fit_intercept: bool,
    basic: bool,
    loss: Loss = LOSSES["squared_error"],
    alpha: float | Array = 0.0,
    total: float | None = None,
) -> tuple[Array, Array]:
    """Quantiles of absolute leave-one-out errors along the path; see ``expansion/intervals.py``.

    `total` is the weight of all training rows, where `samples` are some of them.

    Returns
    -------
    steps : ndarray of int of shape (n_stages,)
        First step that each table applies to, as in `inverse_temperatures`.
    tables : ndarray of shape (n_stages, n_levels, n_outputs)
        Quantiles of the errors on up to about 2000 evenly spaced rows.
    """
    if not path.n_steps:
        return np.empty(0, dtype=int), np.empty((0, len(ALPHAS), samples.Y.shape[1]))
    rows = blocks.evenly_spaced(samples.X.shape[0], INTERVAL_ROWS)
    steps, part = calibration_steps(path.n_steps), samples.take(rows)
    objective = Objective(loss, alpha, fit_intercept)
    stages = _left_out_stages(path, atoms, samples, rows, steps, objective, not basic, total)
    tables = [
        error_quantiles(np.abs(part.Y - loss.mean(outputs)), part.weights, part.one_copy)
        for outputs in stages
    ]
    return steps, np.array(tables)


def _calibration_rows(samples: Samples) -> Array:
    """Rows at equal distances."""
    last = samples.X.shape[0] - 1
    return np.unique(np.linspace(0, last, CALIBRATION_ROWS).astype(int))


def _scales(
    stages: Iterator[Array], codes: Array, weights: Array, own: float | None
) -> Iterator[float]:
    """The best inverse temperature of each stage, or the loss's own where it is good enough."""
    scale = 1.0
    constant = _entropy(codes, weights)
    for decisions in stages:
        if own is not None and negative_log_likelihood(own, decisions, codes, weights) <= constant:
            yield own
            continue
        scale = fit_inverse_temperature(decisions, codes, weights, scale)
        yield scale if own is None else min(own, scale)


def _entropy(codes: Array, weights: Array) -> float:
    """Negative log-likelihood of the frequencies of the classes."""
    counts = np.bincount(codes, weights=weights)
    shares = counts[counts > 0] / counts.sum()
    return -float(shares @ np.log(shares))


def _left_out_stages(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    rows: Array,
    steps: Array,
    objective: Objective,
    closed: bool,
    total: float | None = None,
) -> Iterator[Array]:
    """Outputs at `rows` without each of them, after `steps`: by a formula if there is one."""
    if not closed:
        return _without_own_vectors(path, atoms, samples.take(rows), steps)
    if all(isinstance(basis, BasisPath) for basis in path.bases):
        return _left_out(path, atoms, samples, rows, steps, objective, total)
    return _approximately_left_out(path, atoms, samples, rows, steps, objective)


def _without_own_vectors(
    path: CoefficientPath, atoms: AtomSet, part: Samples, steps: Array
) -> Iterator[Array]:
    """Outputs less the vectors on which each of some rows has the only say among them."""
    values = blocks.evaluate(atoms.functions, part.X, len(atoms))
    own = own_values(values, part.one_copy, part.weights @ values**2)
    wanted = set(steps.tolist())
    for n, outputs in enumerate(staged_values(path, values), start=1):
        if n in wanted:
            coefficients, _ = path.coefficients(n)
            yield outputs - own[:, : coefficients.shape[1]] @ coefficients.T


def _left_out(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    few: Array,
    steps: Array,
    objective: Objective,
    total: float | None,
) -> Iterator[Array]:
    """Outputs at the rows `few` without each of them, in closed form."""
    part = samples.take(few)
    values = blocks.evaluate(atoms.functions, part.X, len(atoms))
    if total is None and len(few) == samples.X.shape[0]:
        path = orthonormal(path, [(values, part.Y, part.weights)], objective.alpha)
    weight = float(samples.weights.sum()) if total is None else total
    weight = weight if objective.intercept else 0.0
    for stage in leave_one_out(path, values, part.Y, part.one_copy, weight, steps):
        yield stage.values()


class Objective(NamedTuple):
    """What the coefficients of a path minimise; alpha P where P is not the identity."""

    loss: Loss
    alpha: float | Array
    intercept: bool


def _approximately_left_out(
    path: CoefficientPath,
    atoms: AtomSet,
    samples: Samples,
    few: Array,
    steps: Array,
    objective: Objective,
) -> Iterator[Array]:
    """Outputs at the rows `few` without each of them, by one Newton step; see the top."""
    functions = atoms.functions
    for n in steps:
        coefficients, intercept = path.coefficients(int(n))
        hessians = _hessians(path, functions, samples, int(n), objective)
        values = _with_constant(path, functions(samples.X[few]), objective.intercept)
        Y, weights = samples.Y[few], samples.one_copy[few][:, None]
        k = coefficients.shape[1]
        outputs = values[:, :k] @ coefficients.T + intercept + path.atom_mean[:k] @ coefficients.T
        curvature = np.maximum(objective.loss.curvature(Y, outputs), 0.0)
        slope = objective.loss.gradient(Y, outputs)
        leverage, released, falls = _leverages(
            path, values, hessians, coefficients, int(n), objective
        )
        # A row that one vector explains is left out of the model without that vector.
        alone = 1.0 - weights * curvature * leverage < FULL_LEVERAGE
        outputs = np.where(alone, outputs - falls, outputs)
        slope = np.where(alone, slope - curvature * falls, slope)
        leverage = np.where(alone, leverage - released, leverage)
        slack = 1.0 - weights * curvature * leverage
        still = slack < FULL_LEVERAGE
        left = outputs + weights * slope * leverage / np.where(still, 1.0, slack)
        yield np.where(still, path.target_mean, left)


def _with_constant(path: CoefficientPath, values: Array, intercept: bool) -> Array:
    """Functions less their means, and the constant 1, or 0 without an intercept."""
    constant = np.full((len(values), 1), float(intercept))
    return np.hstack([np.asarray(values, dtype=np.float64) - path.atom_mean, constant])


def _chosen(path: CoefficientPath, n: int, intercept: bool) -> Iterator[tuple[Array, Array]]:
    """The outputs of each basis, and its columns of `_with_constant` after `n` steps."""
    constant = [len(path.atom_mean)] * intercept
    for basis, m in zip(path.bases, path.lengths(n), strict=True):
        yield basis.outputs, np.append(np.unique(basis.picks[:m]), constant).astype(int)


def _hessians(
    path: CoefficientPath,
    functions: Callable[[Any], Array],
    samples: Samples,
    n: int,
    objective: Objective,
) -> list[Array]:
    """Hessian of the objective of each output after `n` steps, over all rows."""
    loss, alpha, intercept = objective
    coefficients, constant = path.coefficients(n)
    k = coefficients.shape[1]
    shift = constant + path.atom_mean[:k] @ coefficients.T
    columns = {int(t): chosen for outputs, chosen in _chosen(path, n, intercept) for t in outputs}
    ridges = np.zeros((len(path.atom_mean) + 1,) * 2)
    ridges[:-1, :-1] = 2.0 * ridge_between(alpha, np.arange(len(path.atom_mean)))
    hessians = [ridges[np.ix_(columns[t], columns[t])] for t in range(len(columns))]
    for rows in blocks.row_blocks(samples.X.shape[0], 32.0 * len(path.atom_mean)):
        evaluated = blocks.evaluate(functions, samples.X[rows], len(path.atom_mean))
        values = _with_constant(path, evaluated, intercept)
        Y, weights = samples.Y[rows], samples.weights[rows]
        curvature = loss.curvature(Y, values[:, :k] @ coefficients.T + shift)
        bend = np.maximum(curvature, 0.0) * weights[:, None]
        for t, hessian in enumerate(hessians):
            part = values[:, columns[t]]
            hessian += part.T @ (bend[:, [t]] * part)
    return hessians


def _leverages(
    path: CoefficientPath,
    values: Array,
    hessians: list[Array],
    coefficients: Array,
    n: int,
    objective: Objective,
) -> tuple[Array, Array, Array]:
    """phi_i'H^{-1}phi_i, and what it and the outputs lose with the vector that explains a row.

    All of shape (n_rows, n_outputs).
    """
    leverage, released, falls = (np.zeros((len(values), len(hessians))) for _ in range(3))
    for outputs, chosen in _chosen(path, n, objective.intercept):
        for t in outputs:
            if float(hessians[t].diagonal().max(initial=0.0)) < FLAT:
                continue
            factor = definite_factor(hessians[t])
            half = solve_transposed(factor, values[:, chosen[: len(factor)]].T)
            leverage[:, t] = (half * half).sum(axis=0)
            m = min(len(factor), int((chosen < len(path.atom_mean)).sum()))
            if not m:
                continue
            inverse = solve_upper(factor, np.eye(len(factor)))[:m]
            directions = half.T @ inverse.T
            j, ratio = most_releasing(directions, (inverse**2).sum(axis=1))
            released[:, t] = directions[np.arange(len(j)), j] * ratio
            falls[:, t] = coefficients[t, chosen[j]] * ratio
    return leverage, released, falls


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
