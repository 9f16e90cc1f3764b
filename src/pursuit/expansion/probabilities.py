"""Probabilities from decision values: a softmax with one temperature.

With decision values f (one column a class; one column in all for two classes) and an inverse
temperature s > 0,

    p(c | x) = exp(s f_c) / sum_d exp(s f_d),      two classes: p(1 | x) = 1 / (1 + exp(-s f)),

and s minimises the weighted negative log-likelihood on leave-one-out decision values. As s is
positive the most probable class is always the one with the largest decision value, and
`probabilities` keeps it so under rounding. `log_probabilities` is formed from the decision values
themselves: log p(c | x) = s f_c - log sum_d exp(s f_d) is a number where p(c | x) is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax

from pursuit._arrays import namespace_of
from pursuit._typing import Array

__all__ = [
    "fit_inverse_temperature",
    "fit_temperature",
    "log_probabilities",
    "negative_log_likelihood",
    "probabilities",
    "predicted_classes",
]

# Inverse temperatures beyond these bounds change no probability that matters.
SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 1e3
# A relative step of Newton's method below this one is the last: its error is the square.
SMALL_STEP = 1e-6


def negative_log_likelihood(scale: float, values: Array, codes: Array, weights: Array) -> float:
    """Weighted mean of -log p(class of row i), by log-sum-exp.

    Parameters
    ----------
    scale : float
        Inverse temperature.
    values : ndarray of shape (n_rows, 1) or (n_rows, n_classes)
        Decision values.
    codes : ndarray of int of shape (n_rows,)
        Index of each row's class.
    weights : ndarray of shape (n_rows,)
        Weights.
    """
    if values.shape[1] == 1:
        margin = scale * values[:, 0] * (2 * codes - 1)
        losses = np.logaddexp(0.0, -margin)
    else:
        scaled = scale * values
        losses = logsumexp(scaled, axis=1) - scaled[np.arange(len(codes)), codes]
    return float(np.average(losses, weights=weights))


def _derivatives(scale: float, columns: Array, own: Array, weights: Array) -> tuple[float, float]:
    """First and second derivative of the negative log-likelihood in s.

    They are the weighted sums over rows of E_p[f] - f_y and of Var_p[f]. `columns` holds f with
    one row a class, measured from the largest f of each column; `own` holds f_y.
    """
    p = np.exp(scale * columns)
    p /= p.sum(axis=0)
    p *= columns
    mean = p.sum(axis=0)
    p *= columns
    variance = p.sum(axis=0) - mean**2
    return float(weights @ (mean - own)), float(weights @ variance)


def fit_inverse_temperature(
    values: Array, codes: Array, weights: Array, start: float = 1.0
) -> float:
    """Minimise the negative log-likelihood over s in [1e-3, 1e3] by Newton's method.

    The function is convex in s. A step that would leave the interval known to hold the
    minimum, and every step after the first 20, is replaced by its (geometric) middle. Values that
    tell no classes apart give the smallest s.

    Parameters
    ----------
    values, codes, weights
        See `negative_log_likelihood`.
    start : float, default=1.0
        First s; a neighbour's solution saves steps.
    """
    # Two classes with one decision value f are a softmax over (0, f).
    columns = np.vstack([np.zeros(len(values)), values.T]) if values.shape[1] == 1 else values.T
    columns = columns - columns.max(axis=0)
    own = columns[codes, np.arange(len(codes))]
    low, high = SMALLEST_SCALE, LARGEST_SCALE
    if not columns.any():
        return low
    scale = min(max(start, low), high)
    for iteration in range(100):
        slope, curvature = _derivatives(scale, columns, own, weights)
        newton = scale - slope / curvature if curvature > 0 else np.nan
        if abs(newton - scale) <= SMALL_STEP * scale:
            # Newton's error is the square of its last step.
            return float(newton)
        if high - low <= SMALL_STEP**2 * scale:
            break
        low, high = (low, scale) if slope > 0 else (scale, high)
        inside = iteration < 20 and low < newton < high
        scale = newton if inside else float(np.sqrt(low * high))
    return scale


def fit_temperature(values: Array, codes: Array, weights: Array) -> float:
    """The temperature of the highest likelihood when no class is quite certain.

    As in Platt's method each class but a row's own has the probability 1 / (W + K), for K classes
    and rows of total weight W: on rows that are separated without an error the likelihood alone
    would ask for certainty.

    Parameters
    ----------
    values, codes, weights
        See `negative_log_likelihood`.

    Returns
    -------
    temperature : float
        1 / s.
    """
    n_classes = max(values.shape[1], 2)
    doubt = weights / (weights.sum() + n_classes)
    return 1.0 / fit_inverse_temperature(
        np.tile(values, (n_classes, 1)),
        np.concatenate([(codes + shift) % n_classes for shift in range(n_classes)]),
        np.concatenate([weights - (n_classes - 1) * doubt, *[doubt] * (n_classes - 1)]),
    )


def predicted_classes(values: Array) -> Array:
    """Codes of the classes with the largest decision values; ties go to the first class."""
    if (xp := namespace_of(values)) is not None:
        one = values.shape[1] == 1
        found: Array = values[:, 0] > 0 if one else xp.argmax(values, axis=1)
        return xp.astype(found, xp.int64)  # type: ignore[no-any-return]
    codes: Array = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
    return codes.astype(int)


def probabilities(values: Array, scale: float) -> Array:
    """Class probabilities of shape (n_rows, n_classes); rows sum to 1.

    Where rounding makes another class as probable as the one with the largest decision value,
    that class is moved up by one unit in the last place.
    """
    if (xp := namespace_of(values)) is not None:
        return _device_agreeing(xp, xp.exp(_device_logarithms(xp, values, scale)), values)
    if values.shape[1] == 1:
        positive = expit(scale * values[:, 0])
        table = np.column_stack([1.0 - positive, positive])
    else:
        table = softmax(scale * values, axis=1)
    return _agreeing(table, predicted_classes(values))


def log_probabilities(values: Array, scale: float) -> Array:
    """Logarithms of class probabilities, (n_rows, n_classes), finite wherever the values are.

    The largest is that of the class with the largest decision value, as for `probabilities`.
    """
    if (xp := namespace_of(values)) is not None:
        return _device_agreeing(xp, _device_logarithms(xp, values, scale), values)
    largest = np.finfo(np.float64).max
    top = values.max(axis=1, keepdims=True) if values.shape[1] > 1 else 0.0
    with np.errstate(over="ignore"):
        scaled = np.clip(scale * (values - top), -largest, largest)
    scaled[np.isneginf(values)] = -np.inf  # a class without samples
    if values.shape[1] == 1:
        table = np.column_stack([log_expit(-scaled[:, 0]), log_expit(scaled[:, 0])])
    else:
        table = log_softmax(scaled, axis=1)
    return _agreeing(table, predicted_classes(values))


def _agreeing(table: Array, codes: Array) -> Array:
    """The table with the largest number of each row in the column of its class."""
    for row in np.flatnonzero(table.argmax(axis=1) != codes):
        table[row, codes[row]] = np.nextafter(table[row].max(), 2.0)
    return table


def _device_logarithms(xp: Any, values: Any, scale: float) -> Any:
    """S f_c - log sum_d exp(s f_d) of device arrays; two classes are a softmax over (0, f)."""
    one = values.shape[1] == 1
    columns = xp.concat([xp.zeros_like(values), values], axis=1) if one else values
    largest = float(xp.finfo(values.dtype).max)
    differences = scale * (columns - xp.max(columns, axis=1, keepdims=True))
    differences = xp.where(columns == -xp.inf, -xp.inf, xp.clip(differences, -largest, largest))
    return differences - xp.log(xp.sum(xp.exp(differences), axis=1, keepdims=True))


def _device_agreeing(xp: Any, table: Any, values: Any) -> Array:
    """`_agreeing` of device arrays."""
    codes = predicted_classes(values)
    wrong = xp.argmax(table, axis=1) != codes
    classes = xp.arange(table.shape[1], device=table.device)
    place = wrong[:, None] & (classes[None, :] == codes[:, None])
    upper = xp.nextafter(xp.max(table, axis=1, keepdims=True), xp.full_like(table[:, :1], 2.0))
    agreeing: Array = xp.where(place, upper, table)
    return agreeing
