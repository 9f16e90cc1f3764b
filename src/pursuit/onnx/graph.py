"""The formulas of a plain model as nodes of ONNX.

With the symbols of `pursuit.export.plain_model`, from a row x

    u = (x - s) M,      f = b + sum_k a_k K(u, z_k),

and for the Gaussian kernel, all rows at once,

    K = exp(min(2 U Z' - |u|^2 - |z|^2, 0)),      U, Z times sqrt(gamma),

one product of matrices and one exponential. The vectors are centred (`centred`): in single
precision the exponent has an error of some units in the last place of |u|^2 + |z|^2, which an
origin far away would spoil. For the same reason s is a number of the graph's precision, and for
kernels that are not of differences the rest of it is taken from u. Where even so |z|^2 is so large
that this shows (`LARGEST_SQUARE`), and for kernels without products (Laplacian, chi-squared), the
graph takes differences of each row and vector, an array of shape (n_rows, n_vectors, rank).

A sum whose terms are far larger than itself has lost its digits before it begins. Where the
vectors' own values tell so (`condition`), a graph of single precision computes f in double
precision and rounds f alone.

A graph is written by a function ``g(op, *inputs, **attributes) -> output`` with methods for
constants: `Writer`. Nothing here knows which library keeps the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from pursuit import kernels
from pursuit._typing import Array
from pursuit.export.plain_model import Part, PlainModel, before, centred, mapped
from pursuit.geometry.unit_rows import unit_rows

__all__ = ["Writer", "codes", "condition", "numbers", "outputs", "probabilities", "scores"]

#: Times the rounding unit this is the error of an exponent that products of matrices may leave.
LARGEST_SQUARE = 16.0
#: So many units of their last place the outputs of a graph in single precision may be wrong.
LARGEST_CONDITION = 100.0


class Writer(Protocol):
    """What adds nodes and constants to a graph; values go by their names."""

    dtype: Any

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""

    def number(self, values: Any) -> str:
        """Add a constant in the precision of the graph."""

    def integers(self, values: list[int]) -> str:
        """Add a constant of integers."""

    def cast(self, values: str, whole: bool = False) -> str:
        """Turn numbers or truth values into integers, or into the precision of the graph."""

    def doubled(self) -> Writer:
        """The same graph, to go on in double precision."""


# --- f(x) ---------------------------------------------------------------------------------------


def outputs(g: Writer, model: PlainModel, x: str) -> str:
    """f(x) of each row, (n_rows, n_outputs).

    Parameters
    ----------
    g : Writer
        The graph.
    model : PlainModel
        From `pursuit.export.plain`.
    x : str
        Rows, (n_rows, n_features).
    """
    if g.dtype == np.float32 and condition(model) > LARGEST_CONDITION:
        double = g.doubled()
        return g.cast(outputs(double, model, double.cast(x)))
    x = _completed(g, model, x)
    total = g.number(model.intercept[None, :])
    if not model.parts:  # a constant, as often as there are rows
        return g("Add", g("MatMul", x, g.number(np.zeros((model.n_columns, 1)))), total)
    for part in centred(model).parts:
        total = g("Add", g("MatMul", _kernel(g, part, x), g.number(part.coefficients)), total)
    return total


def _completed(g: Writer, model: PlainModel, x: str) -> str:
    """Rows without a missing number, and columns that tell where one was."""
    if model.fill is None:
        return x
    missing = g("IsNaN", x)
    filled = g("Where", missing, g.number(model.fill), x)
    if not model.indicated:
        return filled
    told = g("Gather", g.cast(missing), g.integers(list(model.indicated)), axis=1)
    return g("Concat", filled, told, axis=1)


def condition(model: PlainModel) -> float:
    """Error of f in single precision, in units of the last place of the largest f.

    max_x sum_k w_k |a_k K(x, z_k)| over max_x |f(x)|, for x the vectors; a kernel value has an
    error of w_k units: 1, the degree of a power, and of a Gaussian half of gamma |z_k|^2 more.
    """
    model = centred(model)
    rows = [part.shift + before(part.map, z) for part in model.parts for z in part.vectors]
    X = np.reshape(rows, (-1, model.n_columns))
    f = np.tile(model.intercept, (len(X), 1))
    sizes = np.zeros_like(f)
    for part in model.parts:
        K = part.kernel(mapped(part, X), part.vectors)
        f += K @ part.coefficients
        sizes += np.abs(K) @ (_units(part)[:, None] * np.abs(part.coefficients))
    return float(sizes.max(initial=0.0) / max(np.abs(f).max(initial=0.0), np.finfo(float).tiny))


def _units(part: Part) -> Array:
    """Error of the kernel values of each vector, in units of their last place."""
    if isinstance(part.kernel, kernels.RBF):
        return np.asarray(1.0 + 0.5 * _own(part).gamma * np.square(part.vectors).sum(axis=1))
    return np.full(len(part.vectors), max(1.0, getattr(part.kernel, "degree", 1.0)))


def _kernel(g: Writer, part: Part, x: str) -> str:
    """K(u(x), z_k) of each row, (n_rows, n_vectors)."""
    writer = next(_KERNELS[kind] for kind in type(part.kernel).__mro__ if kind in _KERNELS)
    return writer(g, part, x)


def _mapped(g: Writer, part: Part, x: str, scale: float = 1.0) -> tuple[str, Array]:
    """u(x) and the vectors, both times a number, with s rounded to the graph's precision."""
    shift = part.shift.astype(g.dtype).astype(np.float64)
    rest = part.shift - shift
    rest = rest * part.map if part.map.ndim == 1 else rest @ part.map
    u = g("Sub", x, g.number(shift)) if shift.any() else x
    if part.map.ndim == 2 or (part.map * scale != 1.0).any():
        u = g("Mul" if part.map.ndim == 1 else "MatMul", u, g.number(part.map * scale))
    return (g("Sub", u, g.number(rest * scale)) if rest.any() else u), part.vectors * scale


def _own(part: Part) -> Any:
    """The kernel of a part, for its numbers."""
    return part.kernel


def _row_sums(g: Writer, table: str, axis: int = 1, keep: int = 1) -> str:
    return g("ReduceSum", table, g.integers([axis]), keepdims=keep)


def _gaussian(g: Writer, part: Part, x: str) -> str:
    """exp(min(2 U Z' - |u|^2 - |z|^2, 0)), or by differences where that would lose digits."""
    u, Z = _mapped(g, part, x, float(np.sqrt(_own(part).gamma)))
    squares = np.square(Z).sum(axis=1)
    if g.dtype == np.float32 and squares.max() > LARGEST_SQUARE:
        return _decay(g, _by_differences(g, u, Z, lambda d: g("Mul", d, d)))
    products = g("Add", g("MatMul", u, g.number(2.0 * Z.T)), g.number(-squares[None, :]))
    exponents = g("Sub", products, _row_sums(g, g("Mul", u, u)))
    return g("Exp", g("Min", exponents, g.number(0.0)))


def _laplacian(g: Writer, part: Part, x: str) -> str:
    """exp(-|u - z|_1), u and z times gamma."""
    u, Z = _mapped(g, part, x, _own(part).gamma)
    return _decay(g, _by_differences(g, u, Z, lambda d: g("Abs", d)))


def _decay(g: Writer, distances: str) -> str:
    return g("Exp", g("Neg", distances))


def _by_differences(g: Writer, u: str, Z: Array, term: Callable[[str], str]) -> str:
    """Sum over the features of a term of u - z, (n_rows, n_vectors)."""
    rows = g("Unsqueeze", u, g.integers([1]))
    return _row_sums(g, term(g("Sub", rows, g.number(Z[None]))), axis=2, keep=0)


def _chi_squared(g: Writer, part: Part, x: str) -> str:
    """exp(-gamma sum_j (u_j - z_j)^2 / (u_j + z_j)); 0 / 0 counts as 0."""
    u, Z = _mapped(g, part, x)
    rows, vectors = g("Unsqueeze", u, g.integers([1])), g.number(Z[None])
    sums, differences = g("Add", rows, vectors), g("Sub", rows, vectors)
    zero = g("Equal", sums, g.number(0.0))
    ratios = g("Div", g("Mul", differences, differences), g("Where", zero, g.number(1.0), sums))
    distances = _row_sums(g, ratios, axis=2, keep=0)
    return _decay(g, g("Mul", distances, g.number(_own(part).gamma)))


def _inner(g: Writer, part: Part, x: str, scale: float = 1.0) -> str:
    u, Z = _mapped(g, part, x)
    return g("MatMul", u, g.number(scale * Z.T))


def _shifted(g: Writer, values: str, constant: float) -> str:
    return g("Add", values, g.number(constant))


def _polynomial(g: Writer, part: Part, x: str) -> str:
    """(gamma u'z + coef0)^degree."""
    inner = _shifted(g, _inner(g, part, x, _own(part).gamma), _own(part).coef0)
    return g("Pow", inner, g.number(_own(part).degree))


def _sigmoid(g: Writer, part: Part, x: str) -> str:
    """tanh(gamma u'z + coef0)."""
    return g("Tanh", _shifted(g, _inner(g, part, x, _own(part).gamma), _own(part).coef0))


def _cosine(g: Writer, part: Part, x: str) -> str:
    """The cosine u'z / (|u| |z|), zero where u is."""
    u, Z = _mapped(g, part, x)
    lengths = g("Sqrt", _row_sums(g, g("Mul", u, u)))
    lengths = g("Where", g("Greater", lengths, g.number(0.0)), lengths, g.number(1.0))
    return g("MatMul", g("Div", u, lengths), g.number(unit_rows(Z).T))


def _cosine_polynomial(g: Writer, part: Part, x: str) -> str:
    """(u'z / (|u| |z|) + coef0)^degree."""
    shifted = _shifted(g, _cosine(g, part, x), _own(part).coef0)
    return g("Pow", shifted, g.number(_own(part).degree))


_KERNELS: dict[type, Callable[[Writer, Part, str], str]] = {
    kernels.RBF: _gaussian,
    kernels.Laplacian: _laplacian,
    kernels.ChiSquared: _chi_squared,
    kernels.Linear: _inner,
    kernels.Polynomial: _polynomial,
    kernels.Sigmoid: _sigmoid,
    kernels.Cosine: _cosine,
    kernels.CosinePolynomial: _cosine_polynomial,
}


# --- what becomes of f --------------------------------------------------------------------------


def _pairs(n_classes: int) -> tuple[Array, Array]:
    """Of each pair of classes the first and the second, as 0/1 rows."""
    first, second = zip(*combinations(range(n_classes), 2), strict=True)
    return np.eye(n_classes)[list(first)], np.eye(n_classes)[list(second)]


def _votes(g: Writer, firsts: str, n_classes: int) -> str:
    """How many pairs vote for each class, from which pairs vote for their first."""
    one, other = _pairs(n_classes)
    counts = g("MatMul", g.cast(firsts), g.number(one - other))
    return g("Add", counts, g.number(other.sum(axis=0)[None, :]))


def scores(g: Writer, model: PlainModel, f: str) -> str:
    """Decision values, a column each: of one output, or of votes with the values to break ties."""
    if model.rule != "vote_values" and not model.one_value_a_class:
        return f
    n_classes = len(model.classes)
    one, other = _pairs(n_classes)
    votes = _votes(g, g("GreaterOrEqual", f, g.number(0.0)), n_classes)
    sums = g("MatMul", f, g.number(one - other))
    shrunk = g("Mul", _shifted(g, g("Abs", sums), 1.0), g.number(3.0))
    return g("Add", votes, g("Div", sums, shrunk))


def codes(g: Writer, model: PlainModel, f: str) -> str:
    """Number of the class of each row, (n_rows,); of an outlier detector 0 is outside."""
    if model.rule == "sign":
        op = "GreaterOrEqual" if model.zero_is_positive else "Greater"
        return g("Reshape", g.cast(g(op, f, g.number(0.0)), whole=True), g.integers([-1]))
    if model.rule == "votes":
        best = _votes(g, g("Greater", f, g.number(0.0)), len(model.classes))
    else:
        best = scores(g, model, f)
    return g("ArgMax", best, axis=1, keepdims=0)


def probabilities(g: Writer, model: PlainModel, f: str) -> str:
    """Probabilities of the classes, (n_rows, n_classes)."""
    one = model.intercept.shape[0] == 1
    if model.probabilities == "sigmoids" and not one:
        each = g("Sigmoid", f)
        return g("Div", each, _row_sums(g, each))
    scaled = g("Mul", f, g.number(1.0 / model.temperature)) if model.temperature != 1.0 else f
    if not one:
        return g("Softmax", scaled, axis=1)
    positive = g("Sigmoid", scaled)
    return g("Concat", g("Sub", g.number(1.0), positive), positive, axis=1)


def numbers(g: Writer, model: PlainModel, f: str) -> str:
    """Predictions of a regressor, or features, (n_rows, n_outputs)."""
    return g("Exp", f) if model.link == "exp" else f
