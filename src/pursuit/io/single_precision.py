"""The arrays of a model in fewer bytes, and what that changes.

`narrow` turns the vectors and coefficients in the tree of a model (`pursuit.io.tree`) into 32-bit
floats: the arrays of 64-bit floats with two or more dimensions, and the entries of sparse matrices.
For float16 and int8 matrices of finite numbers become codes of two bytes or one, with a zero and a
step for each column, or for each row of the coefficients (`pursuit.linalg.rounding`).

Parameters stay as they were given, and so do losses, what `truncate` solves with, class labels,
intercepts, means and widths, and the matrix of a kernel. The node of such an array says that it was
wider: decoding widens it again, so that a loaded model computes in double precision as always.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from pursuit.io.tree import Node
from pursuit.linalg.rounding import CODED, Codes, encode

__all__ = ["OUTPUTS", "Change", "largest_change", "narrow", "own_vectors", "read_rows"]

#: Names of arrays whose rows are outputs.
COEFFICIENTS = ("coefficients", "dual_coef_")
#: What is compared: the first of these that a model has.
OUTPUTS = ("decision_function", "score_samples", "transform", "predict_proba", "predict")


class Change(TypedDict):
    """How far the outputs of two models are apart."""

    output: str  # one of `OUTPUTS`
    largest_change: float  # of an output; of labels, the share that changed
    largest_output: float  # in absolute value; of labels, 1
    n_rows: int


def narrow(tree: Node, members: dict[str, bytes], dtype: str = "float32") -> None:
    """Turn vectors and coefficients into 32-bit floats or codes, in place.

    Raises
    ------
    ValueError
        If a number is beyond those of single precision.
    """
    arrays = list(_arrays(tree))
    wide = {node["member"] for where, node in arrays if _is_wide(where, node)}
    wide -= {node["member"] for where, node in arrays if _is_given(where)}
    coefficients = {node["member"] for where, node in arrays if where[-1] in COEFFICIENTS}
    changed: dict[str, dict[str, Any]] = {}
    for name in wide:
        codes = _codes(_read(members[name]), dtype, int(name in coefficients))
        if codes is None:
            members[name], changed[name] = _as_float32(members[name]), {"dtype": "<f4"}
            continue
        lines = np.stack([codes.zero.ravel(), codes.step.ravel()])
        members |= {name: _written(codes.codes), f"{name}.lines": _written(lines)}
        changed[name] = {"dtype": codes.codes.dtype.str, "axis": int(name in coefficients)}
    for _, node in arrays:
        node |= changed[node["member"]] | {"double": True} if node["member"] in wide else {}


def _codes(matrix: npt.NDArray[Any], dtype: str, axis: int) -> Codes | None:
    """Codes of a matrix of finite numbers, where they are asked for."""
    coded = dtype in CODED and matrix.ndim == 2 and matrix.size and np.isfinite(matrix).all()
    return encode(matrix, dtype, axis) if coded else None


def _arrays(node: Node, where: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the arrays of a tree, with the names on the way to them."""
    if isinstance(node, dict) and "member" in node:
        yield where, node
        return
    parts = node.items() if isinstance(node, dict) else ()
    for name, part in enumerate(node) if isinstance(node, list) else parts:
        yield from _arrays(part, (*where, str(name)))


def _is_given(where: tuple[str, ...]) -> bool:
    """Tell whether an array is a parameter; the steps of a Pipeline are none in this sense."""
    pairs = zip(where, where[1:], strict=False)
    return any(name == "params" and after != "steps" for name, after in pairs)


def _is_wide(where: tuple[str, ...], node: Node) -> bool:
    several = len(node["shape"]) > 1 or where[-1] == "data"
    exact = any(name.endswith(("path_", "kernel", "kernel_", "whitening_")) for name in where)
    return node["dtype"][1:] == "f8" and several and not exact


def _as_float32(content: bytes) -> bytes:
    wide = _read(content)
    with np.errstate(over="ignore"):
        narrow = wide.astype("<f4")
    if (np.isinf(narrow) & ~np.isinf(wide)).any():
        largest = np.abs(wide[np.isfinite(wide)]).max()
        raise ValueError(f"dtype='float32' has no number as large as {largest:g}, which is needed.")
    return _written(narrow)


def _written(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _read(content: bytes) -> npt.NDArray[Any]:
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def own_vectors(model: Any, tree: Node, members: dict[str, bytes]) -> Any:
    """Return rows that a model holds: its vectors, or the most rows of as many features.

    Raises
    ------
    ValueError
        If it holds none.
    """
    width = getattr(model, "n_features_in_", None)
    vectors = getattr(model, "support_vectors_", None)
    if vectors is not None and vectors.shape[1:] == (width,):
        return vectors
    rows = [node for _, node in _arrays(tree) if node["shape"][1:] == [width]]
    if not rows:
        raise ValueError("dtype='float32' needs rows=, for this model holds no rows of features.")
    return _read(members[max(rows, key=lambda node: node["shape"][0])["member"]])


def read_rows(rows: Any) -> Any:
    """Return rows as what has a shape; the model reads them."""
    return rows if hasattr(rows, "shape") else np.asarray(rows)


def largest_change(model: Any, other: Any, rows: Any) -> Change:
    """Return how far the outputs of two models of one kind are apart on some rows."""
    name = next(name for name in OUTPUTS if hasattr(model, name))
    if not rows.shape[0]:
        return Change(output=name, largest_change=0.0, largest_output=0.0, n_rows=0)
    with warnings.catch_warnings():
        # A model's own vectors have no names, whatever its rows had.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        a, b = (np.asarray(getattr(one, name)(rows)) for one in (model, other))
    if a.dtype.kind != "f":  # labels
        change, size = np.mean(a != b), 1.0
    else:
        same = (a == b) | (np.isnan(a) & np.isnan(b))  # infinities, too
        change = np.abs(np.subtract(a, b, where=~same, out=np.zeros(a.shape))).max()
        size = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    if not np.isfinite(change):
        raise ValueError(f"dtype='float32' would make a finite {name} infinite.")
    return Change(
        output=name,
        largest_change=float(change),
        largest_output=float(size),
        n_rows=int(rows.shape[0]),
    )
