"""A plain record as the constant arrays of a program: float32, or whole numbers in few bytes.

A kernel needs of a row u = (x - s) M and a vector z either their differences or their product.

===========================  =======================================================
form                         kernels
===========================  =======================================================
differences u - z            `RBF`, `Laplacian`
both u - z and u + z         `ChiSquared`
products u'z                 `Polynomial`, `Sigmoid`
products of unit vectors     `Cosine`, `CosinePolynomial`
one product an output        `Linear`: sum_k a_k u'z_k = u'(sum_k a_k z_k)
===========================  =======================================================

Whole numbers. A column of the vectors is zero_j + step_j c_kj with codes c of one byte or two
(`pursuit.linalg.rounding`). Of differences the zero is an origin like any other, so that
u - z = u - step c after the shift; of products u'z = u'zero + sum_j (u_j step_j) c_kj. The
coefficients are codes with a zero and a step an output. Of one byte they make good for what the
rounding did: with K and K~ the kernel values at the vectors, and halfway between them, before and
after the vectors were rounded, and H = K~'K~,

    A <- A + (H + lambda mean(diag H) I)^-1 K~'(K A - K~ A),

and are then rounded one after another, so that tr(D'H D) of their change D is small
(`round_in_turn`); unless, in the end, this is further from the outputs there than A itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pursuit import kernels
from pursuit._typing import Array
from pursuit.export.plain_model import (
    Part,
    PlainModel,
    before,
    centred,
    completed,
    mapped,
    with_origin,
)
from pursuit.geometry.unit_rows import unit_rows
from pursuit.linalg.rounding import encode, round_in_turn

__all__ = [
    "DTYPES",
    "StoredModel",
    "StoredPart",
    "example_rows",
    "largest_outputs",
    "stored",
]

DTYPES = ("float32", "int16", "int8")
#: Bytes of a code.
BYTES = {"float32": 4, "int16": 2, "int8": 1}
DIFFERENCES = (kernels.RBF, kernels.Laplacian)
COSINES = (kernels.Cosine, kernels.CosinePolynomial)
PRODUCTS = (kernels.Polynomial, kernels.Sigmoid, *COSINES)
# lambda.
RIDGE = 0.01
# A zero that no shift of the row reaches counts from this share of a step.
UNREACHED = 1e-3


class StoredPart(NamedTuple):
    """The arrays of one kernel's functions.

    Attributes
    ----------
    kernel : Kernel
        With its numbers.
    n_vectors, rank : int
        Number of functions, and of coordinates; of `Linear` one function an output.
    tables : dict of str to ndarray
        ``shift``, ``map`` (left out if it is the identity), ``vectors``, ``coefficients`` (left out
        for `Linear`), and of whole numbers their zeros and steps.
    bytes_a_vector : int
        What one function takes; 0 where their number does not matter.
    """

    kernel: Any
    n_vectors: int
    rank: int
    tables: dict[str, Array]
    bytes_a_vector: int


class StoredModel(NamedTuple):
    """A model as arrays, and the same in float64.

    Attributes
    ----------
    model : PlainModel
        With the numbers as they are stored.
    parts : tuple of StoredPart
        One for each of its parts.
    dtype : {"float32", "int16", "int8"}
        Of vectors and coefficients.
    """

    model: PlainModel
    parts: tuple[StoredPart, ...]
    dtype: str

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        tables = [table for part in self.parts for table in part.tables.values()]
        fill = 0 if self.model.fill is None else 4 * len(self.model.fill)
        return sum(table.nbytes for table in tables) + 4 * len(self.model.intercept) + fill

    def fitting(self, max_bytes: int) -> int:
        """Number of vectors of such a model that takes no more bytes."""
        each = max((part.bytes_a_vector for part in self.parts), default=0)
        own = sum(part.n_vectors * part.bytes_a_vector for part in self.parts)
        return max(0, (max_bytes - self.n_bytes + own) // each) if each else 0


def stored(model: PlainModel, dtype: str) -> StoredModel:
    """The arrays of a model.

    Parameters
    ----------
    model : PlainModel
        From `pursuit.export.plain`.
    dtype : {"float32", "int16", "int8"}
        How vectors and coefficients are stored.

    Raises
    ------
    ValueError
        If a number is beyond single precision.
    """
    model = centred(model)
    pairs = [_stored(_prepared(part), dtype) for part in model.parts]
    kept = replace(
        model,
        parts=tuple(decoded for _, decoded in pairs),
        intercept=_single(model.intercept).astype(np.float64),
    )
    return StoredModel(kept, tuple(arrays for arrays, _ in pairs), dtype)


def _single(values: Array) -> Array:
    """Numbers in single precision; one error if one has no such."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError("export: a number of the model is beyond single precision; scale the data")
    return found


def _prepared(part: Part) -> Part:
    """Vectors of unit length for cosines, one vector an output for linear functions."""
    if isinstance(part.kernel, COSINES):
        return replace(part, vectors=unit_rows(part.vectors))
    if isinstance(part.kernel, kernels.Linear):
        sums = part.coefficients.T @ part.vectors
        return replace(part, vectors=sums, coefficients=np.eye(len(sums)))
    return part


def _stored(part: Part, dtype: str) -> tuple[StoredPart, Part]:
    """The arrays of a part, and the part that they are."""
    linear = isinstance(part.kernel, kernels.Linear)
    tables, part = (_floats if dtype == "float32" else _codes)(part, dtype)
    tables = {"shift": _single(part.shift), "map": _single(part.map), **tables}
    if part.map.ndim == 1 and (part.map == 1.0).all():
        del tables["map"]
    if not part.shift.any():
        del tables["shift"]
    (n, rank), n_outputs = part.vectors.shape, part.coefficients.shape[1]
    each = 0 if linear else BYTES[dtype] * (rank + n_outputs) + 4 * ("lengths" in tables)
    decoded = replace(part, shift=_double(part.shift), map=_double(part.map))
    return StoredPart(part.kernel, n, rank, tables, each), decoded


def _double(values: Array) -> Array:
    """Numbers as they are after they were single."""
    return np.asarray(_single(values).astype(np.float64))


def _floats(part: Part, dtype: str) -> tuple[dict[str, Array], Part]:
    """Vectors and coefficients in single precision."""
    tables = {"vectors": _single(part.vectors), "coefficients": _single(part.coefficients)}
    if isinstance(part.kernel, kernels.Linear):
        del tables["coefficients"]
    kept = replace(part, vectors=_double(part.vectors), coefficients=_double(part.coefficients))
    return tables, kept


def _codes(part: Part, dtype: str) -> tuple[dict[str, Array], Part]:
    """Vectors and coefficients as whole numbers."""
    _single(part.vectors)
    found = encode(part.vectors, dtype)
    zero, step = found.zero[0], found.step[0]
    if isinstance(part.kernel, DIFFERENCES):
        part, zero = _at_zero(part, zero, step)
    tables = {"vectors": found.codes, "steps": step}
    if zero.any():
        tables["zeros"] = zero
    kept = replace(part, vectors=zero.astype(np.float64) + step.astype(np.float64) * found.codes)
    if isinstance(part.kernel, COSINES):
        lengths = np.sqrt(np.square(kept.vectors).sum(axis=1))
        tables["lengths"] = _single(1.0 / np.where(lengths > 0.0, lengths, 1.0))
    if isinstance(part.kernel, kernels.Linear):
        return tables, kept
    return _coded_coefficients(part, kept, dtype, tables)


def _at_zero(part: Part, zero: Array, step: Array) -> tuple[Part, Array]:
    """The origin of differences where the codes are zero, and what of this no shift reaches."""
    moved = with_origin(part, zero.astype(np.float64))
    left = (moved.vectors - part.vectors).mean(axis=0) + zero
    return moved, np.where(np.abs(left) > UNREACHED * step, left, 0.0).astype(np.float32)


def _coded_coefficients(
    part: Part, kept: Part, dtype: str, tables: dict[str, Array]
) -> tuple[dict[str, Array], Part]:
    """Codes of the coefficients of rounded vectors, a zero and a step an output."""
    _single(part.coefficients)
    A = _made_good(part, kept) if dtype == "int8" else part.coefficients
    codes = encode(A, dtype)
    tables |= {
        "coefficients": codes.codes,
        "coefficient_zeros": codes.zero[0],
        "coefficient_steps": codes.step[0],
    }
    return tables, replace(kept, coefficients=codes.decoded())


def _made_good(part: Part, kept: Part) -> Array:
    """Coefficients of rounded vectors whose outputs nearby, once rounded, are nearest to f."""
    U, A = _between(part.vectors), part.coefficients
    f, near = part.kernel(U, part.vectors) @ A, kept.kernel(U, kept.vectors)
    H = near.T @ near
    if not H.any():
        return A
    ridge = RIDGE * np.trace(H) / len(H) * np.eye(len(H))
    better = A + np.linalg.solve(H + ridge, near.T @ (f - near @ A))
    candidates = [A, round_in_turn(A, H, "int8"), round_in_turn(better, H, "int8")]
    errors = [np.square(f - near @ encode(one).decoded()).sum() for one in candidates]
    return candidates[int(np.argmin(errors))]


def _between(rows: Array) -> Array:
    """Rows, and the points halfway between neighbours."""
    return np.vstack([rows, 0.5 * (rows[1:] + rows[:-1])])


def example_rows(model: PlainModel, n_rows: int) -> Array:
    """Rows in single precision near a model's vectors, the same ones for equal models."""
    if not model.parts:
        return np.zeros((n_rows, len(model.features)))
    part = max(model.parts, key=lambda one: len(one.vectors))
    few = _between(part.vectors[np.linspace(0, len(part.vectors) - 1, n_rows).astype(int)])
    kept = few[np.linspace(0, len(few) - 1, n_rows).astype(int)]
    rows = part.shift + np.array([before(part.map, u) for u in kept])
    return np.asarray(rows[:, : len(model.features)].astype(np.float32).astype(np.float64))


def largest_outputs(stored: StoredModel, X: Array) -> Array:
    """Sums of absolute values |b| + sum_k |a_k K|, what rounding is relative to, (n_rows, T).

    Of a coefficient of codes, zero + step c, both terms count.
    """
    X = completed(stored.model, X)
    sizes = np.tile(np.abs(stored.model.intercept), (len(X), 1))
    for part, arrays in zip(stored.model.parts, stored.parts, strict=True):
        zero = arrays.tables.get("coefficient_zeros", 0.0)
        largest = np.abs(zero) + np.abs(part.coefficients - zero)
        sizes += np.abs(part.kernel(mapped(part, X), part.vectors)) @ largest
    return np.asarray(sizes)
