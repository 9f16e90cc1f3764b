"""A fitted function frozen for one row, or a few, at a time.

What a checked prediction spends on a row is mostly Python: reading the input, and the steps of an
evaluation that is made for many rows. Here nothing is read but the shape, and for the Gaussian
kernel a row costs one product of a matrix and a vector. With a common shift s near the vectors z_k,

    -gamma |x - z_k|^2 = 2 gamma (x - s)'(z_k - s) - gamma |z_k - s|^2 - gamma |x - s|^2       (1)

=====================  ===================  ========================================
symbol                 name in code         shape
=====================  ===================  ========================================
x - s                  ``shifted``          (D,)
2 gamma (z_k - s)      ``directions``       (D, N)
gamma |z_k - s|^2      ``constants``        (N,)
gamma |x - s|^2        ``length``           a number
=====================  ===================  ========================================

This is the formula of `pursuit.geometry.distances`. A row so near a vector that (1) loses half of
its digits, or so far away that its squares are no numbers, takes the way that repairs them, and so
do all other kernels, sparse vectors and several rows: the expansion itself. Cost: 2 N D operations
a row, and a dozen calls of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pursuit._arrays import alike, namespace_of, to_numpy
from pursuit._typing import Array
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.probabilities import predicted_classes
from pursuit.geometry.distances import LOST, common_shift
from pursuit.kernels import RBF, SMALLEST_VALUE
from pursuit.linalg.factor import squared_norms

__all__ = ["Answers", "Classes", "Novelty", "Numbers", "Predictor", "squeeze_binary"]


def squeeze_binary(outputs: Array) -> Array:
    """One column as a vector."""
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


class Answers(Protocol):
    """What outputs of shape (n_rows, n_outputs) mean; a plain value."""

    def decision(self, outputs: Array) -> Array:
        """Decision values, as ``decision_function`` has them."""

    def prediction(self, outputs: Array) -> Array:
        """Labels or numbers, as ``predict`` has them."""


@dataclass(frozen=True, eq=False)
class Classes:
    """Labels: that of the largest output, or of two by the sign of one."""

    labels: Array

    def decision(self, outputs: Array) -> Array:
        """The outputs, a vector for two classes."""
        return squeeze_binary(outputs)

    def prediction(self, outputs: Array) -> Array:
        """Labels; ties go to the first class."""
        codes = predicted_classes(outputs)
        if (xp := namespace_of(outputs)) is None:
            found: Array = self.labels[codes]
            return found
        if self.labels.dtype.kind not in "biuf":  # the array API has no text
            return np.asarray(self.labels[to_numpy(codes)])
        labels: Array = xp.take(alike(self.labels, outputs), codes)
        return labels


@dataclass(frozen=True)
class Numbers:
    """Targets: a vector or a table of them, under a loss that may have a link.

    Attributes
    ----------
    one_dimensional : bool
        Whether there is one target, given as a vector.
    loss : Loss, optional
        Its ``mean`` turns outputs into targets; None for the outputs themselves.
    """

    one_dimensional: bool
    loss: Any = None

    def decision(self, outputs: Array) -> Array:
        """The outputs, before the link."""
        return outputs[:, 0] if self.one_dimensional else outputs

    def prediction(self, outputs: Array) -> Array:
        """The targets."""
        if self.loss is None:
            return self.decision(outputs)
        if namespace_of(outputs) is not None:
            return self.decision(alike(self.loss.mean(to_numpy(outputs)), outputs))
        return self.decision(self.loss.mean(outputs))


@dataclass(frozen=True)
class Novelty:
    """Scores less an offset: positive inside, 1, and negative outside, -1.

    Attributes
    ----------
    offset : float
        The threshold.
    inside : bool
        Whether the threshold itself is inside.
    """

    offset: float = 0.0
    inside: bool = True

    def decision(self, outputs: Array) -> Array:
        """The distances from the threshold."""
        distances: Array = outputs[:, 0] - self.offset
        return distances

    def prediction(self, outputs: Array) -> Array:
        """-1 for outliers, 1 for the others."""
        values = self.decision(outputs)
        inside = values >= 0.0 if self.inside else values > 0.0
        if (xp := namespace_of(values)) is not None:
            signs: Array = 2 * xp.astype(inside, xp.int64) - 1
            return signs
        return np.where(inside, 1, -1)


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictions of a fitted model without any check but that of the shape.

    It holds no data but the model's own arrays and changes none of them: threads may share it, and
    it can be pickled. ``model.predictor()`` makes it.

    Parameters
    ----------
    expansion : KernelExpansion
        The fitted function.
    answers : Answers
        What its outputs mean.
    n_features : int
        Length of a row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> predictor = KernelMatchingPursuitClassifier(10).fit(X, y).predictor()
    >>> int(predictor.predict(X[0])), predictor.decision(X[0]).shape, predictor.decision(X).shape
    (0, (3,), (150, 3))
    """

    expansion: KernelExpansion
    answers: Answers
    n_features: int

    def __post_init__(self) -> None:
        """Prepare the evaluation of one row."""
        object.__setattr__(self, "_of_one_row", _of_one_row(self.expansion))

    def __getstate__(self) -> dict[str, Any]:
        """Only the defining values; what is prepared is prepared again."""
        return {name: vars(self)[name] for name in ("expansion", "answers", "n_features")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the values and prepare again."""
        vars(self).update(state)
        self.__post_init__()

    def decision(self, x: Any) -> Any:
        """Decision values of a classifier or detector, outputs of a regressor before the link.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n_rows, n_features)
            A row, or rows, of finite numbers.

        Returns
        -------
        values : float or ndarray
            As ``decision_function`` (of a regressor ``predict``) has them, without the first axis
            for a row.

        Raises
        ------
        ValueError
            If the shape is another.
        """
        return self._answered(x, self.answers.decision)

    def predict(self, x: Any) -> Any:
        """Labels or numbers.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (n_rows, n_features)
            A row, or rows, of finite numbers.

        Returns
        -------
        y : scalar or ndarray
            As the model's ``predict`` has them, without the first axis for a row.

        Raises
        ------
        ValueError
            If the shape is another.
        """
        return self._answered(x, self.answers.prediction)

    def _answered(self, x: Any, answer: Callable[[Array], Array]) -> Any:
        """The answer to a row or to rows."""
        x = np.asarray(x)
        x = x if x.dtype.kind == "f" else x.astype(np.float64)
        if not 1 <= x.ndim <= 2 or x.shape[-1] != self.n_features:
            raise ValueError(
                f"x has shape {x.shape}, expected ({self.n_features},) or "
                f"(n_rows, {self.n_features})"
            )
        if x.ndim == 2 and len(x) != 1:
            return answer(self.expansion(x))
        of_one_row: Callable[[Array], Array] = self._of_one_row  # type: ignore[attr-defined]
        answers = answer(of_one_row(x.reshape(-1))[None])
        return answers if x.ndim == 2 else answers[0]


def _of_one_row(expansion: KernelExpansion) -> Callable[[Array], Array]:
    """The outputs of a row, (n_features,) to (n_outputs,); fast where the kernel is Gaussian."""
    atoms = expansion.atoms
    kernel, centres, scale = atoms.kernel, atoms.centres, getattr(atoms, "scale", None)
    plain = type(kernel) is RBF and np.ndim(kernel.gamma) == 0
    if plain and isinstance(centres, np.ndarray) and len(centres):
        return _gaussian(expansion, float(vars(kernel)["gamma"]), centres, scale)
    return lambda x: np.asarray(expansion(x[None])[0])


def _gaussian(
    expansion: KernelExpansion, gamma: float, centres: Array, scale: Array | None
) -> Callable[[Array], Array]:
    """The outputs of a row by eq. (1), after a linear map if there is one."""
    centres = centres.astype(np.float64)
    shift = common_shift(centres)
    directions = np.ascontiguousarray(2.0 * gamma * (centres - shift).T)
    constants = gamma * squared_norms(centres - shift)
    weights = np.ascontiguousarray(expansion.coefficients.T, dtype=np.float64)
    intercept = np.asarray(expansion.intercept, dtype=np.float64)
    nearest = -LOST * float(np.sqrt(np.finfo(np.float64).eps))

    @np.errstate(over="ignore", invalid="ignore", under="ignore")
    def outputs(x: Array) -> Array:
        u = x if scale is None else x * scale if scale.ndim == 1 else x @ scale
        shifted = u - shift
        length = gamma * float(shifted @ shifted)
        values = shifted @ directions
        values -= constants
        values -= length  # eq. (1)
        if not values.max() < nearest * length:
            return np.asarray(expansion(x[None])[0])
        np.exp(values, out=values)
        values *= values >= SMALLEST_VALUE
        found: Array = values @ weights
        found += intercept
        return found

    return outputs
