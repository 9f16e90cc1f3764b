"""Losses: values whose methods read like their formula.

Section 3 of P. Vincent and Y. Bengio, Kernel Matching Pursuit, Machine Learning 48 (2002): any
differentiable loss L(y, f) may take the place of the squared error. A loss gives what the
algorithm needs of it: ``value`` L, ``gradient`` dL/df (the pseudo-residual of equation 8 is its
negative) and ``curvature`` d2L/df2 for the re-fit by Newton's method (equations 10 and 11).

For classes, targets y of +1 and -1, as functions of the margin m = y f (section 3.2, figure 5):

======================  ==========================================  ====================
name                    L(m)                                        class
======================  ==========================================  ====================
``squared_error``       (1 - m)^2                                   `SquaredError`
``squared_error_tanh``  (tanh(m) - target)^2, target = 0.65         `SquaredErrorTanh`
``exponential``         exp(-m), that of AdaBoost                   `Exponential`
``logit_boost``         log2(1 + exp(-2m))                          `LogitBoost`
``doom2``               1 - tanh(m)                                 `Doom2`
``smooth_hinge``        log(1 + exp(beta (1 - m))) / beta           `SmoothHinge`
``squared_hinge``       max(0, 1 - m)^2                             `SquaredHinge`
``log_loss``            log(1 + exp(-m))                            `LogLoss`
the same, many classes  log sum_c exp(f_c) - f_y                    `CrossEntropy`
======================  ==========================================  ====================

The margin loss of support vector machines, max(0, 1 - m), has a kink: ``"hinge"`` of the estimators
that have a solver for it (``optimize/hinge.py``).

For numbers, with r = f - y (beyond the paper, but for the first):

======================  ==========================================  ====================
name                    L                                           class
======================  ==========================================  ====================
``squared_error``       r^2                                         `SquaredError`
``huber``               r^2 / 2, or delta (|r| - delta / 2)         `Huber`
``absolute_error``      |r|, smoothed                               `AbsoluteError`
``quantile``            q max(0, -r) + (1 - q) max(0, r), smoothed  `Quantile`
``poisson``             exp(f) - y f + y log(y) - y                 `Poisson`
======================  ==========================================  ====================

The smooth form of the ramp max(0, z) in all of them is w log(1 + exp(z / w)): the ramp to within
w log(2), with the slope sigmoid(z / w). Smooth hinge, log-loss and LogitBoost are this function
of 1 - m or -m; the smoothed pinball is its weighted sum over both signs of r, which is the
pinball convolved with the logistic density of width w.

Numerics. Every loss is at least zero. Differences of nearly equal numbers are avoided (1 - tanh
is 2 sigmoid(-2m)), so that tails keep their relative precision. Nothing overflows where the
result does not; where it does it is infinite, without a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, xlogy

from pursuit._typing import Array
from pursuit._validation import check_real
from pursuit.linalg.robust_scale import robust_scale, weighted_median

__all__ = [
    "LOSSES",
    "AbsoluteError",
    "CrossEntropy",
    "Doom2",
    "Exponential",
    "Huber",
    "LogLoss",
    "LogitBoost",
    "Loss",
    "MarginLoss",
    "Poisson",
    "Quantile",
    "ResidualLoss",
    "SmoothHinge",
    "SquaredError",
    "SquaredErrorTanh",
    "SquaredHinge",
    "UserLoss",
    "resolve_loss",
    "robust_scale",
    "weighted_median",
]

LOG2 = float(np.log(2.0))
METHODS = ("value", "gradient", "curvature")
# Attributes that a user's loss may have.
OF_THE_USER = ("coupled", "convex", "shift_invariant", "inverse_temperature", "default_alpha")
# Huber's delta in standard deviations: 95 % efficient for normal errors.
HUBER_DELTA = 1.345
# Width of the smoothing of the absolute error and the pinball, in robust standard deviations.
SMOOTHING = 0.01
# Ridge for losses without a finite minimum.
RIDGE = 0.01


def _quiet() -> np.errstate:
    """Let what overflows become infinite, and what underflows zero, without a warning."""
    return np.errstate(over="ignore", under="ignore")


def _ramp(z: Array, width: float | Array = 1.0) -> Array:
    """max(0, z) with a smooth corner: w log(1 + exp(z / w)), without overflow."""
    return np.maximum(z, 0.0) + width * np.log1p(np.exp(-np.abs(z) / width))


def _ramp_second_derivative(z: Array, width: float | Array = 1.0) -> Array:
    """Second derivative of the smooth ramp: sigmoid(z / w) sigmoid(-z / w) / w."""
    return _sigmoid(z / width) * _sigmoid(-z / width) / width


def _sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z))."""
    return np.asarray(expit(z))


def _squared_sech(m: Array) -> Array:
    """1 - tanh(m)^2 = 4 sigmoid(2m) sigmoid(-2m)."""
    return 4.0 * _ramp_second_derivative(2.0 * m)


def _probabilities(F: Array) -> Array:
    """exp(f_c) / sum exp(f), of numbers that are at most 1."""
    with _quiet():
        P = np.exp(F - F.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
    return np.asarray(P)


def _check_scale(name: str, value: Any) -> None:
    """Raise unless a parameter is "scale" or a positive number."""
    if isinstance(value, str) and value != "scale":
        raise ValueError(f"{name} must be 'scale' or a positive number, got {value!r}")
    if not isinstance(value, str):
        for number in value if isinstance(value, tuple) else (value,):
            check_real(name, number, above=True)


def _number(name: str, value: float | str | tuple[float, ...]) -> Any:
    """The number of a parameter that was resolved, or one for each target, (n_targets,)."""
    if isinstance(value, str):
        raise ValueError(f"{name}={value!r} becomes a number by resolved(Y, weights)")
    return np.array(value) if isinstance(value, tuple) else float(value)


class Loss:
    """Base of all losses: values of targets Y and outputs F, both of shape (n_rows, n_outputs).

    Subclasses define `value`, `gradient` and `curvature`.

    Attributes
    ----------
    coupled : bool
        Whether the outputs of a row belong together: then `value` has shape (n_rows,) and
        `curvature` (n_rows, n_outputs, n_outputs). Else all three have the shape of F.
    convex : bool
        Whether the loss is convex in the outputs.
    smooth : bool
        Whether it has a curvature to follow by Newton's method.
    shift_invariant : bool
        Whether the same number added to all outputs of a row changes nothing.
    inverse_temperature : float or None
        s where p(1 | x) = 1 / (1 + exp(-s f)), or the softmax of s f, is the model's own.
    task : {"classifier", "regressor", None}
        Whose loss it is; None: either's.
    default_alpha : float
        Ridge where the user sets none. Positive for losses without a finite minimum on classes
        that can be separated; 0.01 was near the best held-out likelihood on four data sets.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import LogLoss
    >>> Y, F = np.array([[1.0], [-1.0]]), np.array([[0.0], [2.0]])
    >>> LogLoss().value(Y, F).round(3).tolist()
    [[0.693], [2.127]]
    >>> LogLoss().gradient(Y, F).round(3).tolist()
    [[-0.5], [0.881]]
    """

    coupled: ClassVar[bool] = False
    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    shift_invariant: ClassVar[bool] = False
    inverse_temperature: ClassVar[float | None] = None
    default_alpha: ClassVar[float] = 0.0
    task: ClassVar[str | None] = None

    def value(self, Y: Array, F: Array) -> Array:
        """Loss of each output, or of each row where they are coupled."""
        raise NotImplementedError

    def gradient(self, Y: Array, F: Array) -> Array:
        """First derivatives dL/df, of the shape of F."""
        raise NotImplementedError

    def curvature(self, Y: Array, F: Array) -> Array:
        """Second derivatives; negative ones where the loss is not convex."""
        raise NotImplementedError

    def curvature_product(self, Y: Array, F: Array) -> Callable[[Array], Array]:
        """Return the function V -> curvature times V, row by row, for V of the shape of F."""
        curvature = self.curvature(Y, F)
        if self.coupled:
            return lambda V: np.einsum("ist,it->is", curvature, V)
        return lambda V: curvature * V

    def curvature_sum(self, Y: Array, F: Array, weights: Array) -> Array:
        """Return sum_i weights_i d2L/df2 of coupled outputs, (n_outputs, n_outputs)."""
        return np.asarray(np.einsum("i,ist->st", weights, self.curvature(Y, F)))

    def resolved(self, Y: Array, weights: Array) -> Loss:
        """Return the loss with numbers in place of ``"scale"``."""
        return self

    def check_targets(self, Y: Array, name: str = "y") -> None:
        """Raise a ValueError that names the row if the loss is not defined there."""

    def mean(self, F: Array) -> Array:
        """Predictions from outputs."""
        return F


class MarginLoss(Loss):
    """Base of the losses L(m) of the margin m = y f, for targets y of +1 and -1.

    dL/df = y L'(m) and d2L/df2 = L''(m), as y^2 = 1. Subclasses define L as `_value`, L' as
    `_first_derivative` and L'' as `_second_derivative`.
    """

    default_alpha = RIDGE
    task = "classifier"

    def value(self, Y: Array, F: Array) -> Array:
        """L(m)."""
        with _quiet():
            return self._value(Y * F)

    def gradient(self, Y: Array, F: Array) -> Array:
        """Y L'(m)."""
        with _quiet():
            return Y * self._first_derivative(Y * F)

    def curvature(self, Y: Array, F: Array) -> Array:
        """L''(m)."""
        with _quiet():
            return self._second_derivative(Y * F)

    def _value(self, m: Array) -> Array:
        raise NotImplementedError

    def _first_derivative(self, m: Array) -> Array:
        raise NotImplementedError

    def _second_derivative(self, m: Array) -> Array:
        raise NotImplementedError


class ResidualLoss(Loss):
    """Base of the losses L(r) of the residual r = f - y; subclasses define L, L' and L''."""

    task: ClassVar[str | None] = "regressor"

    def value(self, Y: Array, F: Array) -> Array:
        """L(r)."""
        with _quiet():
            return self._value(F - Y)

    def gradient(self, Y: Array, F: Array) -> Array:
        """L'(r)."""
        with _quiet():
            return self._first_derivative(F - Y)

    def curvature(self, Y: Array, F: Array) -> Array:
        """L''(r)."""
        with _quiet():
            return self._second_derivative(F - Y)

    def _value(self, r: Array) -> Array:
        raise NotImplementedError

    def _first_derivative(self, r: Array) -> Array:
        raise NotImplementedError

    def _second_derivative(self, r: Array) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class SquaredError(ResidualLoss):
    """(f - y)^2; for classes that is (1 - m)^2.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import SquaredError
    >>> SquaredError().value(np.array([[1.0]]), np.array([[3.0]]))
    array([[4.]])
    """

    convex = True
    task = None

    def _value(self, r: Array) -> Array:
        return r * r

    def _first_derivative(self, r: Array) -> Array:
        return 2.0 * r

    def _second_derivative(self, r: Array) -> Array:
        return np.full(r.shape, 2.0)


@dataclass(frozen=True)
class SquaredErrorTanh(MarginLoss):
    """(tanh(m) - target)^2, which rises again, slightly, for large margins (note 4 of the paper).

    Parameters
    ----------
    target : float, default 0.65
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import SquaredErrorTanh
    >>> SquaredErrorTanh().value(np.array([[-1.0]]), np.array([[0.0]]))
    array([[0.4225]])
    """

    default_alpha = 0.0
    target: float = 0.65

    def __post_init__(self) -> None:
        check_real("target", self.target, below=1.0, above=True)

    def _value(self, m: Array) -> Array:
        return (np.tanh(m) - self.target) ** 2

    def _first_derivative(self, m: Array) -> Array:
        return 2.0 * (np.tanh(m) - self.target) * _squared_sech(m)

    def _second_derivative(self, m: Array) -> Array:
        tanh, slope = np.tanh(m), _squared_sech(m)
        return 2.0 * slope * (slope - 2.0 * tanh * (tanh - self.target))


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """exp(-m), the loss of AdaBoost; infinite where that overflows.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import Exponential
    >>> Exponential().value(np.array([[1.0], [-1.0]]), np.array([[0.0], [1000.0]]))
    array([[ 1.],
           [inf]])
    """

    convex = True

    def _value(self, m: Array) -> Array:
        return np.asarray(np.exp(-m))

    def _first_derivative(self, m: Array) -> Array:
        return -np.exp(-m)

    def _second_derivative(self, m: Array) -> Array:
        return np.asarray(np.exp(-m))


@dataclass(frozen=True)
class LogitBoost(MarginLoss):
    """log2(1 + exp(-2m)), the negative log-likelihood in bits where f is half the log-odds.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import LogitBoost
    >>> LogitBoost().value(np.array([[1.0]]), np.array([[0.0]]))
    array([[1.]])
    """

    convex = True
    inverse_temperature = 2.0

    def _value(self, m: Array) -> Array:
        return _ramp(-2.0 * m) / LOG2

    def _first_derivative(self, m: Array) -> Array:
        return -2.0 / LOG2 * _sigmoid(-2.0 * m)

    def _second_derivative(self, m: Array) -> Array:
        return 4.0 / LOG2 * _ramp_second_derivative(2.0 * m)


@dataclass(frozen=True)
class Doom2(MarginLoss):
    """1 - tanh(m), the bounded loss of Doom II.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import Doom2
    >>> Doom2().value(np.array([[1.0], [1.0]]), np.array([[0.0], [-50.0]]))
    array([[1.],
           [2.]])
    """

    def _value(self, m: Array) -> Array:
        return 2.0 * _sigmoid(-2.0 * m)

    def _first_derivative(self, m: Array) -> Array:
        return -_squared_sech(m)

    def _second_derivative(self, m: Array) -> Array:
        return 2.0 * np.tanh(m) * _squared_sech(m)


@dataclass(frozen=True)
class SmoothHinge(MarginLoss):
    """log(1 + exp(beta (1 - m))) / beta, a smooth form of the soft margin max(0, 1 - m) (eq. 13).

    Parameters
    ----------
    beta : float, default 10.0
        The larger, the nearer: the loss is above the soft margin by log(2) / beta at most,
        its curvature beta / 4 at most. At 10 that is 0.07, and 2.5 (the squared error has 2).

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import SmoothHinge
    >>> SmoothHinge().value(np.array([[1.0], [1.0]]), np.array([[1.0], [-2.0]])).round(3).tolist()
    [[0.069], [3.0]]
    """

    beta: float = 10.0

    convex = True

    def __post_init__(self) -> None:
        check_real("beta", self.beta, above=True)

    def _value(self, m: Array) -> Array:
        return _ramp(1.0 - m, 1.0 / self.beta)

    def _first_derivative(self, m: Array) -> Array:
        return -_sigmoid(self.beta * (1.0 - m))

    def _second_derivative(self, m: Array) -> Array:
        return _ramp_second_derivative(1.0 - m, 1.0 / self.beta)


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """max(0, 1 - m)^2; its curvature jumps from 2 to 0 at m = 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import SquaredHinge
    >>> SquaredHinge().value(np.array([[1.0], [1.0]]), np.array([[-1.0], [3.0]]))
    array([[4.],
           [0.]])
    """

    convex = True

    def _value(self, m: Array) -> Array:
        return np.maximum(0.0, 1.0 - m) ** 2

    def _first_derivative(self, m: Array) -> Array:
        return -2.0 * np.maximum(0.0, 1.0 - m)

    def _second_derivative(self, m: Array) -> Array:
        return np.where(m < 1.0, 2.0, 0.0)


@dataclass(frozen=True)
class LogLoss(MarginLoss):
    """log(1 + exp(-m)), the negative log-likelihood where f is the log-odds.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import LogLoss
    >>> LogLoss().value(np.array([[-1.0]]), np.array([[1000.0]]))
    array([[1000.]])
    """

    convex = True
    inverse_temperature = 1.0

    def _value(self, m: Array) -> Array:
        return _ramp(-m)

    def _first_derivative(self, m: Array) -> Array:
        return -_sigmoid(-m)

    def _second_derivative(self, m: Array) -> Array:
        return _ramp_second_derivative(m)


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """log sum_c exp(f_c) - f_y: the negative log-likelihood of a softmax over the outputs.

    Targets are +1 in the column of the row's class and -1 in the others. With the
    probabilities p = softmax(f) the gradient is p - e_y and the curvature diag(p) - p p'.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import CrossEntropy
    >>> Y, F = np.array([[1.0, -1.0, -1.0]]), np.log([[2.0, 1.0, 1.0]])
    >>> CrossEntropy().value(Y, F).round(3).tolist()
    [0.693]
    >>> CrossEntropy().gradient(Y, F).round(3).tolist()
    [[-0.5, 0.25, 0.25]]
    """

    coupled = True
    convex = True
    shift_invariant = True
    inverse_temperature = 1.0
    default_alpha = RIDGE
    task = "classifier"

    def value(self, Y: Array, F: Array) -> Array:
        """(max f - f_y) + log(1 + sum exp(f_c - max f)), the sum without one largest output."""
        top = F.max(axis=1)
        with _quiet():
            below = np.exp(F - top[:, None])
        largest = below == 1.0
        below[largest] = 0.0
        others = below.sum(axis=1) + (largest.sum(axis=1) - 1)
        return np.asarray(top - np.where(Y > 0, F, 0.0).sum(axis=1) + np.log1p(others))

    def gradient(self, Y: Array, F: Array) -> Array:
        """The vector p - e_y, with 1 - p_y as the sum of the other probabilities."""
        own = Y > 0
        others = np.where(own, 0.0, _probabilities(F))
        return np.where(own, -others.sum(axis=1, keepdims=True), others)

    def curvature(self, Y: Array, F: Array) -> Array:
        """The matrix diag(p) - p p', with 1 - p_c as the sum of the other probabilities."""
        P, classes = _probabilities(F), np.arange(F.shape[1])
        curvature: Array = -P[:, :, None] * P[:, None, :]
        curvature[:, classes, classes] = 0.0
        curvature[:, classes, classes] = -curvature.sum(axis=2)
        return curvature

    def curvature_product(self, Y: Array, F: Array) -> Callable[[Array], Array]:
        """V -> p (v - p'v), without a table for each row; v counts from that of the largest p."""
        P, likeliest = _probabilities(F), F.argmax(axis=1)[:, None]

        def product(V: Array) -> Array:
            V = V - np.take_along_axis(V, likeliest, axis=1)
            return np.asarray(P * (V - (P * V).sum(axis=1)[:, None]))

        return product

    def curvature_sum(self, Y: Array, F: Array, weights: Array) -> Array:
        """diag(P'w) - P' diag(w) P, each entry of the diagonal as the sum of the others."""
        P = _probabilities(F)
        total: Array = -(P.T @ (weights[:, None] * P))
        np.fill_diagonal(total, 0.0)
        np.fill_diagonal(total, -total.sum(axis=1))
        return total


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """r^2 / 2 where |r| <= delta, delta (|r| - delta / 2) beyond: outliers pull with one force.

    Parameters
    ----------
    delta : float or "scale", default "scale"
        ``"scale"`` is 1.345 times the `robust_scale` of each target; a tuple has one a target.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import Huber
    >>> Huber(1.0).value(np.zeros((2, 1)), np.array([[1.0], [3.0]]))
    array([[0.5],
           [2.5]])
    """

    delta: float | str | tuple[float, ...] = "scale"

    convex = True

    def __post_init__(self) -> None:
        _check_scale("delta", self.delta)

    def resolved(self, Y: Array, weights: Array) -> Loss:
        """Return the loss with a number for delta."""
        if isinstance(self.delta, str):
            return replace(self, delta=_each_target(HUBER_DELTA, Y, weights))
        return self

    def _value(self, r: Array) -> Array:
        delta = _number("delta", self.delta)
        inside = np.minimum(np.abs(r), delta)
        return np.asarray(inside * (np.abs(r) - 0.5 * inside))

    def _first_derivative(self, r: Array) -> Array:
        delta = _number("delta", self.delta)
        return np.clip(r, -delta, delta)

    def _second_derivative(self, r: Array) -> Array:
        return np.where(np.abs(r) <= _number("delta", self.delta), 1.0, 0.0)


class _Pinball(ResidualLoss):
    """under max(0, -r) + over max(0, r), with smooth ramps of width `smoothing`."""

    smoothing: float | str | tuple[float, ...]
    convex = True

    def resolved(self, Y: Array, weights: Array) -> Loss:
        """Return the loss with a number for the smoothing."""
        if isinstance(self.smoothing, str):
            width = _each_target(SMOOTHING, Y, weights)
            return replace(self, smoothing=width)  # type: ignore[type-var]
        return self

    def _sides(self) -> tuple[float, float, Any]:
        """Slopes where the output is too low and too high, and the width."""
        raise NotImplementedError

    def _value(self, r: Array) -> Array:
        under, over, width = self._sides()
        return under * _ramp(-r, width) + over * _ramp(r, width)

    def _first_derivative(self, r: Array) -> Array:
        under, over, width = self._sides()
        return over * _sigmoid(r / width) - under * _sigmoid(-r / width)

    def _second_derivative(self, r: Array) -> Array:
        under, over, width = self._sides()
        return (under + over) * _ramp_second_derivative(r, width)


@dataclass(frozen=True)
class AbsoluteError(_Pinball):
    """|r| with a smooth corner: w log(1 + exp(r / w)) + w log(1 + exp(-r / w)).

    Parameters
    ----------
    smoothing : float or "scale", default "scale"
        The width w; the loss is above |r| by 2 w log(2) at most. ``"scale"`` is 0.01 times the
        `robust_scale` of each target; a tuple has one a target.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import AbsoluteError
    >>> AbsoluteError(0.01).value(np.zeros((2, 1)), np.array([[0.0], [-3.0]])).round(4).tolist()
    [[0.0139], [3.0]]
    """

    smoothing: float | str | tuple[float, ...] = "scale"

    def __post_init__(self) -> None:
        _check_scale("smoothing", self.smoothing)

    def _sides(self) -> tuple[float, float, Any]:
        return 1.0, 1.0, _number("smoothing", self.smoothing)


@dataclass(frozen=True)
class Quantile(_Pinball):
    """q max(0, -r) + (1 - q) max(0, r), the pinball, with a smooth corner.

    Its mean over rows is least where a fraction q of the targets lies below the output, each
    target counted as 1 / (1 + exp(-r / w)).

    Parameters
    ----------
    quantile : float, default 0.5
        The level q, between 0 and 1.
    smoothing : float or "scale", default "scale"
        The width w; the loss is above the pinball by w log(2) at most. ``"scale"`` is 0.01
        times the `robust_scale` of each target; a tuple has one a target.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import Quantile
    >>> Quantile(0.9, smoothing=1e-3).value(np.zeros((2, 1)), np.array([[-1.0], [1.0]]))
    array([[0.9],
           [0.1]])
    """

    quantile: float = 0.5
    smoothing: float | str | tuple[float, ...] = "scale"

    def __post_init__(self) -> None:
        check_real("quantile", self.quantile, below=1.0, above=True)
        _check_scale("smoothing", self.smoothing)

    def _sides(self) -> tuple[float, float, Any]:
        return self.quantile, 1.0 - self.quantile, _number("smoothing", self.smoothing)


@dataclass(frozen=True)
class Poisson(Loss):
    """exp(f) - y f + y log(y) - y: half the deviance of counts y whose mean is exp(f).

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import Poisson
    >>> Poisson().value(np.array([[1.0], [0.0]]), np.zeros((2, 1)))
    array([[0.],
           [1.]])
    >>> Poisson().mean(np.zeros((1, 1)))
    array([[1.]])
    """

    convex = True
    default_alpha = RIDGE
    task = "regressor"

    def value(self, Y: Array, F: Array) -> Array:
        """Half the deviance; y (exp(d) - 1 - d) near its minimum, with d = f - log(y)."""
        with _quiet(), np.errstate(divide="ignore"):
            excess = F - np.log(Y)
            d = np.clip(excess, -1.0, 1.0)
            near = Y * np.maximum(np.expm1(d) - d, 0.0)
            far = np.exp(F) - Y * F + xlogy(Y, Y) - Y
        return np.asarray(np.where(np.abs(excess) < 1.0, near, far))

    def gradient(self, Y: Array, F: Array) -> Array:
        """exp(f) - y."""
        return np.asarray(self.mean(F) - Y)

    def curvature(self, Y: Array, F: Array) -> Array:
        """exp(f)."""
        return self.mean(F)

    def check_targets(self, Y: Array, name: str = "y") -> None:
        """Refuse negative targets."""
        rows = np.flatnonzero((Y < 0).reshape(len(Y), -1).any(axis=1))
        if len(rows):
            raise ValueError(
                f"{name} is negative at row {rows[0]}, where loss='poisson' is not defined"
            )

    def mean(self, F: Array) -> Array:
        """exp(f)."""
        with _quiet():
            return np.asarray(np.exp(F))


@dataclass(frozen=True)
class UserLoss(Loss):
    """Any object with the methods ``value``, ``gradient`` and ``curvature`` as a `Loss`.

    Its attributes ``coupled``, ``convex``, ``shift_invariant``, ``inverse_temperature`` and
    ``default_alpha`` and its method ``mean`` are used where it has them; without them the loss
    counts as one of separate outputs that need not be convex. A loss that needs more derives from
    `Loss`.

    Parameters
    ----------
    loss : object
        What computes; the shapes of what it returns are checked.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.losses import UserLoss
    >>> class Quartic:
    ...     convex = True
    ...     def value(self, Y, F):
    ...         return (F - Y) ** 4
    ...     def gradient(self, Y, F):
    ...         return 4 * (F - Y) ** 3
    ...     def curvature(self, Y, F):
    ...         return 12 * (F - Y) ** 2
    >>> UserLoss(Quartic()).value(np.zeros((1, 1)), np.full((1, 1), 2.0))
    array([[16.]])
    """

    loss: Any

    def __post_init__(self) -> None:
        for name in OF_THE_USER:
            object.__setattr__(self, name, getattr(self.loss, name, getattr(Loss, name)))

    def value(self, Y: Array, F: Array) -> Array:
        """What the object's ``value`` returns."""
        return self._checked("value", Y, F, F.shape[: 1 if self.coupled else 2])

    def gradient(self, Y: Array, F: Array) -> Array:
        """What the object's ``gradient`` returns."""
        return self._checked("gradient", Y, F, F.shape)

    def curvature(self, Y: Array, F: Array) -> Array:
        """What the object's ``curvature`` returns."""
        return self._checked("curvature", Y, F, F.shape + (F.shape[1:] if self.coupled else ()))

    def mean(self, F: Array) -> Array:
        """What the object's ``mean`` returns, if it has one."""
        return np.array(self.loss.mean(F), dtype=float) if hasattr(self.loss, "mean") else F

    def _checked(self, method: str, Y: Array, F: Array, shape: tuple[int, ...]) -> Array:
        """Call a method of the object and check the shape of a copy of what it returns."""
        values = np.array(getattr(self.loss, method)(Y, F), dtype=np.float64)
        if values.shape != shape:
            raise ValueError(
                f"loss: {method} of {type(self.loss).__name__} returned an array of shape "
                f"{values.shape} for outputs of shape {F.shape}; expected {shape}"
            )
        return values


LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        "squared_error": SquaredError(),
        "squared_error_tanh": SquaredErrorTanh(),
        "exponential": Exponential(),
        "logit_boost": LogitBoost(),
        "doom2": Doom2(),
        "smooth_hinge": SmoothHinge(),
        "squared_hinge": SquaredHinge(),
        "log_loss": LogLoss(),
        "huber": Huber(),
        "absolute_error": AbsoluteError(),
        "quantile": Quantile(),
        "poisson": Poisson(),
    }
)


def resolve_loss(loss: Any, *, classifier: bool, n_outputs: int, one_basis: bool) -> Loss:
    """Turn the loss argument of an estimator into a loss value.

    Parameters
    ----------
    loss : str, Loss or object
        A name from the tables at the top of this module, a loss of this module, or an object
        with the methods ``value``, ``gradient`` and ``curvature``.
    classifier : bool
        Whether a classifier asks, or a regressor.
    n_outputs : int
        Number of outputs: one for two classes.
    one_basis : bool
        Whether all outputs share their functions, as a coupled loss needs.

    Returns
    -------
    loss : Loss
        For several classes on one basis the log-loss becomes the cross-entropy, which for one
        output is the log-loss. ``"scale"`` is left to `Loss.resolved`.

    Raises
    ------
    ValueError
        If the loss is unknown, or not one for this kind of estimator; the message lists those
        that are.

    Examples
    --------
    >>> from pursuit.losses import resolve_loss
    >>> resolve_loss("log_loss", classifier=True, n_outputs=3, one_basis=True)
    CrossEntropy()
    >>> resolve_loss("log_loss", classifier=True, n_outputs=1, one_basis=True)
    LogLoss()
    """
    task = "classifier" if classifier else "regressor"
    value = _as_loss(loss, task)
    if value.task not in (None, task):
        raise ValueError(
            f"loss={loss!r} is for a {value.task}; a {task} takes one of {_choices(task)}"
        )
    if isinstance(value, LogLoss | CrossEntropy):
        softmax_of_many = n_outputs > 1 and (one_basis or value.coupled)
        value = CrossEntropy() if softmax_of_many else LogLoss()
    if value.coupled and not one_basis:
        raise ValueError(
            f"loss={loss!r} takes the outputs of a row together, for which they must share one "
            "basis: multi_class='shared'"
        )
    return value


def _as_loss(loss: Any, task: str) -> Loss:
    """A `Loss` for a name, a loss or an object with the methods of one."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    if not isinstance(loss, type) and all(callable(getattr(loss, name, None)) for name in METHODS):
        return UserLoss(loss)
    raise ValueError(
        f"loss must be one of {_choices(task)}, a value of pursuit.losses or an object with the "
        f"methods value, gradient and curvature, got {loss!r}"
    )


def _choices(task: str) -> list[str]:
    return sorted(name for name, loss in LOSSES.items() if loss.task in (None, task))


def _each_target(factor: float, Y: Array, weights: Array) -> float | tuple[float, ...]:
    """A number of times the robust scale of each target, in that target's own unit."""
    scales = [factor * robust_scale(column[:, None], weights) for column in Y.T]
    return scales[0] if len(scales) == 1 else tuple(scales)
