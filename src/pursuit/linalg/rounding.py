"""Matrices in few bytes: float32, float16, or whole numbers with two numbers a line.

Problem. Store a matrix (rows, columns) so that each number takes one or two bytes, and the
coefficients of a model so that its outputs change little.

===========  ============  ==============================================================
symbol       name in code  meaning
===========  ============  ==============================================================
m, s         ``zero``,     one pair a line, in float32; a line is a column, a feature or an
             ``step``      output, unless another axis is asked for
c            ``codes``     whole numbers from -127 to 127 (two bytes: 32767), or float16
B            ``B``         (N, T) coefficients
H            ``H``         (N, N) what a change costs: tr(D'H D) for a change D of B
===========  ============  ==============================================================

Steps.

1. One byte: a line's range in 254 equal steps s, a = m + s c. A line that lies on such a grid of
   fewer steps already keeps it, so that what was rounded once stays as it is. int16: 65534 steps.
   float16: s = 1, and m the multiple of a power of two above the range that is nearest to its
   middle.
2. Coefficients one after another: those that are not yet rounded take up the error e of the one
   that is, so that tr(D'H D) stays least,

       B_j <- B_j - e_k U_kj / U_kk  for j > k,      H^-1 = U'U, U upper triangular

   (B. Hassibi and D. Stork, "Second order derivatives for network pruning: optimal brain surgeon",
   NIPS 1993; E. Frantar and others, "GPTQ", ICLR 2023, for the factor).

Cost: N^3 / 3 + N^2 T operations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, lapack

from pursuit._typing import Array

__all__ = ["PRECISIONS", "Codes", "encode", "n_bytes", "round_in_turn", "rounded"]

# Bytes of a number.
PRECISIONS = {"float64": 8, "float32": 4, "float16": 2, "int8": 1}
# Bytes of a line beside its codes.
CODED = {"float16": 4, "int16": 8, "int8": 8}
LARGEST_CODES = {"int8": 127, "int16": 32767}
STEPS = 254
# A line lies on a grid if its numbers do, within this share of a step.
ON_GRID = 1e-2
PROBED = 64
# H gains this share of its mean diagonal before it is inverted.
DAMPING = 1e-8


class Codes(NamedTuple):
    """A matrix of codes in one byte or two, with float32 zeros and steps of its lines."""

    codes: Array
    zero: Array
    step: Array

    def decoded(self) -> Array:
        """The matrix, in float64."""
        return np.asarray(self.zero.astype(np.float64) + self.step.astype(np.float64) * self.codes)


def _grid(matrix: Array, precision: str, axis: int) -> tuple[Array, Array]:
    """Zeros and steps of the lines, in float32 (step 1)."""
    low, high = (extreme(matrix, axis=axis, keepdims=True) for extreme in (np.min, np.max))
    if precision == "float16":
        unit = 2.0 ** np.ceil(np.log2(np.where(high > low, high - low, 1.0)))
        zero = np.where(high > low, unit * np.rint((high + low) / (2.0 * unit)), low)
        return zero.astype(np.float32), np.ones(zero.shape, np.float32)
    largest = LARGEST_CODES[precision]
    steps = _n_steps(matrix, low, high, axis) if precision == "int8" else 2 * largest
    step = ((high - low) / steps).astype(np.float32)
    return (low + largest * step).astype(np.float32), np.where(step > 0, step, np.float32(1.0))


def _n_steps(matrix: Array, low: Array, high: Array, axis: int) -> Array:
    """The most steps, at most 254, of a grid that each line lies on; 254 where there is none."""
    share = np.moveaxis((matrix - low) / np.where(high > low, high - low, 1.0), axis, 0)
    found = np.full(share.shape[1], STEPS)
    open_lines = np.arange(len(found))
    for steps in range(STEPS, 0, -1):
        # Few numbers tell that most lines do not lie on the grid.
        maybe = open_lines[_on_grid(share[:PROBED, open_lines], steps)]
        on = maybe[_on_grid(share[:, maybe], steps)]
        found[on] = steps
        open_lines = np.setdiff1d(open_lines, on)
    return np.expand_dims(found, axis)


def _on_grid(share: Array, steps: int) -> Array:
    """Which columns of numbers from 0 to 1 are whole numbers of steps."""
    places = steps * share
    return np.asarray((np.abs(places - np.rint(places)) <= ON_GRID).all(axis=0))


def encode(matrix: Array, precision: str = "int8", axis: int = 0) -> Codes:
    """Codes of a matrix that is not empty (step 1), whose lines run along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.linalg.rounding import encode
    >>> encode(np.array([[0.0, 1.0], [0.5, 3.0], [1.0, 2.0]])).codes
    array([[-127, -127],
           [   0,  127],
           [ 127,    0]], dtype=int8)
    """
    zero, step = _grid(matrix, precision, axis)
    return Codes(_nearest((matrix - zero.astype(float)) / step, precision), zero, step)


def _nearest(scaled: Array, precision: str) -> Array:
    """The nearest codes."""
    if precision == "float16":
        return scaled.astype(np.float16)
    largest = LARGEST_CODES[precision]
    return np.clip(np.rint(scaled), -largest, largest).astype(precision)


def rounded(matrix: Array, precision: str, axis: int = 0) -> Array:
    """A matrix as it is after it was stored.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        Numbers.
    precision : {"float64", "float32", "float16", "int8"}
        How they are stored.
    axis : {0, 1}, default=0
        Along which a line runs.
    """
    if precision in CODED:
        return encode(matrix, precision, axis).decoded() if matrix.size else matrix
    return np.asarray(matrix.astype(precision).astype(np.float64))


def n_bytes(shape: tuple[int, int], precision: str, axis: int = 0) -> int:
    """Bytes of a matrix of this shape, with zeros and steps of its lines."""
    lines = CODED.get(precision, 0) * shape[1 - axis]
    return PRECISIONS[precision] * shape[0] * shape[1] + lines


def round_in_turn(B: Array, H: Array, precision: str) -> Array:
    """Rounded coefficients whose change costs little (step 2).

    Parameters
    ----------
    B : ndarray of shape (N, T)
        Coefficients; a line is a column.
    H : ndarray of shape (N, N)
        Positive semidefinite.
    precision : {"float32", "float16", "int8"}
        How they are stored.
    """
    if not B.size or precision not in CODED:
        return rounded(B, precision)
    zero, step = (part[0].astype(np.float64) for part in _grid(B, precision, 0))
    damped = H + DAMPING * np.trace(H) / len(H) * np.eye(len(H))
    inverse = lapack.dpotri(cholesky(damped), lower=0)[0]
    U = cholesky(np.triu(inverse) + np.triu(inverse, 1).T)
    B, kept = B.copy(), np.empty_like(B)
    for k in range(len(B)):
        kept[k] = zero + step * _nearest((B[k] - zero) / step, precision)
        B[k + 1 :] -= np.outer(U[k, k + 1 :] / U[k, k], B[k] - kept[k])
    return kept
