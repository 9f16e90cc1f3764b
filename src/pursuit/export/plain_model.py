"""A fitted model in plain values: all that another language needs to give the same answers.

Every model with a kernel expansion computes, from a row x of d features with T outputs,

    f(x) = b + sum_p sum_k a_pk K_p(u_p(x), z_pk),      u_p(x) = (x - s_p) M_p

and differs from others in what it makes of f: the sign, the largest, votes of pairs of classes, a
softmax, a mean, a threshold.

===========  ==================  ===============================================================
symbol       name in code        shape and meaning
===========  ==================  ===============================================================
x            ``X``               (n_rows, d) rows; a missing number takes the value of ``fill``
K_p          ``kernel``          one of `pursuit.kernels`, with its numbers
s_p, M_p     ``shift``, ``map``  (d,), and (d,) a diagonal or (d, r): scaling, widths, metrics
z_pk         ``vectors``         (n_p, r) in the coordinates u
a_pk         ``coefficients``    (n_p, T)
b            ``intercept``       (T,)
f            ``outputs``         (n_rows, T)
===========  ==================  ===============================================================

There is one part p for each kernel of the model, mostly one in all. Kernels of differences have a
free origin: `centred` moves it to the mean of the vectors, so that numbers in single precision keep
their digits.

The functions below are the reference that every export is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from pursuit._typing import Array
from pursuit.expansion.probabilities import predicted_classes, probabilities
from pursuit.kernels import RBF, Kernel, Laplacian
from pursuit.svm.from_sklearn import pair_votes, vote_values

__all__ = [
    "Part",
    "PlainModel",
    "before",
    "centred",
    "class_codes",
    "class_probabilities",
    "completed",
    "decision_values",
    "mapped",
    "outputs",
    "predictions",
    "with_origin",
]

# Kernels of x - z alone.
SHIFT_INVARIANT = (RBF, Laplacian)


@dataclass(frozen=True)
class Part:
    """Kernel functions of one kernel, sum_k a_k K((x - s) M, z_k).

    Attributes
    ----------
    kernel : Kernel
        `Linear`, `Polynomial`, `RBF`, `Laplacian`, `ChiSquared`, `Sigmoid`, `Cosine` or
        `CosinePolynomial`.
    shift : ndarray of shape (n_columns,)
        s; as many as there are features, unless missing numbers are told.
    map : ndarray of shape (n_columns,) or (n_columns, rank)
        M, or its diagonal.
    vectors : ndarray of shape (n_vectors, rank)
        z_k; the rank is the number of features for a diagonal map.
    coefficients : ndarray of shape (n_vectors, n_outputs)
        a_k.
    """

    kernel: Kernel
    shift: Array
    map: Array
    vectors: Array
    coefficients: Array


@dataclass(frozen=True)
class PlainModel:
    """A model in plain values.

    Attributes
    ----------
    task : {"classifier", "regressor", "outlier_detector", "transformer"}
        What it is for.
    parts : tuple of Part
        The kernel functions; empty for a constant.
    intercept : ndarray of shape (n_outputs,)
        b.
    features : tuple of str
        Names of the inputs, in order.
    rule : {"values", "sign", "largest", "votes", "vote_values"}
        What becomes of the outputs. ``"values"``: they are the answer (numbers, features).
        ``"sign"``: one output, positive for the second class or an inlier. ``"largest"``: one
        output a class. ``"votes"``: one output a pair of classes (0, 1), (0, 2), ..., positive for
        the first of the pair, otherwise a vote for the second; most votes win.
        ``"vote_values"``: the same with votes whose ties the values break. Ties go to the first.
    zero_is_positive : bool
        Whether ``"sign"`` counts an output of zero as positive.
    classes : ndarray of shape (n_classes,) or None
        Labels of a classifier, in order.
    one_value_a_class : bool
        Whether the decision values of ``"votes"`` are those of ``"vote_values"``, not the pairs'.
    probabilities : {None, "softmax", "sigmoids"}
        ``"softmax"`` of the outputs over the temperature (1 / (1 + exp(-f / t)) for one output), or
        1 / (1 + exp(-f)) of each output over their sum. None: the model has none.
    temperature : float
        Of the softmax.
    link : {"identity", "exp"}
        What turns the outputs of a regressor into its predictions.
    one_dimensional : bool
        Whether predictions of a regressor are a vector, not a table.
    offset : float
        Score of an outlier detector less its decision value.
    fill : ndarray of shape (n_features,) or None
        What takes the place of a missing number (NaN); None: none may be missing.
    indicated : tuple of int
        Features of which the parts have a further column each, behind all features: 1 where the
        number is missing, else 0. With them shifts and maps of the parts are longer.
    """

    task: str
    parts: tuple[Part, ...]
    intercept: Array
    features: tuple[str, ...]
    rule: str = "values"
    zero_is_positive: bool = False
    classes: Any = None
    one_value_a_class: bool = False
    probabilities: str | None = None
    temperature: float = 1.0
    link: str = "identity"
    one_dimensional: bool = False
    offset: float = 0.0
    fill: Array | None = None
    indicated: tuple[int, ...] = ()

    @property
    def n_columns(self) -> int:
        """Number of columns that the parts see."""
        return len(self.features) + len(self.indicated)

    @property
    def n_vectors(self) -> int:
        """Number of kernel functions."""
        return sum(len(part.vectors) for part in self.parts)


def mapped(part: Part, X: Array) -> Array:
    """u(x) = (x - s) M of each row, (n_rows, rank)."""
    shifted = X - part.shift
    return np.asarray(shifted * part.map if part.map.ndim == 1 else shifted @ part.map)


def completed(model: PlainModel, X: Array) -> Array:
    """Rows without a missing number, and columns that tell where one was, (n_rows, n_columns)."""
    if model.fill is None:
        return X
    missing = np.isnan(X)
    return np.hstack([np.where(missing, model.fill, X), missing[:, list(model.indicated)]])


def outputs(model: PlainModel, X: Array) -> Array:
    """f(x) of each row, (n_rows, n_outputs).

    Parameters
    ----------
    model : PlainModel
        From `pursuit.export.plain`.
    X : ndarray of shape (n_rows, n_features)
        Rows.
    """
    X = completed(model, X)
    values = np.tile(model.intercept, (len(X), 1))
    for part in model.parts:
        values += part.kernel(mapped(part, X), part.vectors) @ part.coefficients
    return values


def decision_values(model: PlainModel, values: Array) -> Array:
    """What the model calls its decision values, a column each, from its outputs."""
    if model.rule == "vote_values" or model.one_value_a_class:
        return vote_values(values, len(model.classes))
    return values


def class_codes(model: PlainModel, values: Array) -> Array:
    """Number of the class of each row from the outputs; of an outlier detector 0 is outside."""
    if model.rule == "votes":
        return np.asarray(pair_votes(values, len(model.classes)).argmax(axis=1))
    if model.rule == "sign" and model.zero_is_positive:
        return (values[:, 0] >= 0.0).astype(int)
    return predicted_classes(decision_values(model, values))


def class_probabilities(model: PlainModel, values: Array) -> Array:
    """Probabilities of the classes, (n_rows, n_classes), from the outputs."""
    if model.probabilities == "sigmoids" and values.shape[1] > 1:
        sigmoids = expit(values)
        return np.asarray(sigmoids / sigmoids.sum(axis=1, keepdims=True))
    return probabilities(values, 1.0 / model.temperature)


def predictions(model: PlainModel, values: Array) -> Array:
    """Labels, numbers, 1 and -1 of an outlier detector, or features, from the outputs."""
    if model.task == "classifier":
        return np.asarray(model.classes[class_codes(model, values)])
    if model.task == "outlier_detector":
        return np.where(class_codes(model, values) > 0, 1, -1)
    numbers = np.exp(values) if model.link == "exp" else values
    return numbers[:, 0] if model.one_dimensional else numbers


def centred(model: PlainModel) -> PlainModel:
    """The same model with the origin of differences at the mean of the vectors.

    With t M = mean(z) as far as M reaches, K((x - s) M, z) = K((x - s - t) M, z - t M). The new
    origin s + t is a number of single precision, so that nothing is lost where it becomes one.
    """
    return replace(model, parts=tuple(_centred(part) for part in model.parts))


def _centred(part: Part) -> Part:
    if not isinstance(part.kernel, SHIFT_INVARIANT):
        return part
    return with_origin(part, part.vectors.mean(axis=0))


def with_origin(part: Part, u: Array) -> Part:
    """The same functions of differences with the origin near u, a row of shape (rank,)."""
    shift = (part.shift + before(part.map, u)).astype(np.float32).astype(np.float64)
    t = shift - part.shift
    moved = t * part.map if part.map.ndim == 1 else t @ part.map
    return replace(part, shift=shift, vectors=part.vectors - moved)


def before(map: Array, u: Array) -> Array:
    """The shortest t with t M = u, as far as M reaches."""
    if map.ndim == 1:
        return np.divide(u, map, out=np.zeros_like(u), where=map != 0.0)
    return np.asarray(np.linalg.lstsq(map.T, u, rcond=None)[0])
