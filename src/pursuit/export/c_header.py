"""A fitted model as one C99 header: constant arrays and a loop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit._validation import check_choice, check_integer
from pursuit._warnings import warn
from pursuit.export import c_templates as c
from pursuit.export.c_functions import class_names, n_decisions, program, stack_bytes, tables
from pursuit.export.c_templates import filled
from pursuit.export.c_text import array, comment, identifier, number
from pursuit.export.plain_model import PlainModel, class_codes, decision_values, outputs
from pursuit.export.read_model import plain
from pursuit.export.stored_model import DTYPES, StoredModel, example_rows, largest_outputs, stored
from pursuit.io.files import replacing

__all__ = ["Header", "c_header", "to_c"]

SELFTEST_ROWS = 16
# Outputs of single precision are within this share of the sum of absolute terms.
ROUNDING = 1e-5
# A change of the outputs by whole numbers above this share of the largest is worth a warning.
WORRYING = 0.2
# The largest array that avr-gcc takes.
LARGEST_AVR_ARRAY = 32767


class Header(NamedTuple):
    """What was written.

    Attributes
    ----------
    path : str
        The file.
    name : str
        What all functions begin with.
    n_bytes : int
        Bytes of the constant arrays, which is what ``max_bytes`` bounds.
    stack_bytes : int
        Bytes of memory that a call needs, about.
    n_vectors : int
        Number of kernel functions.
    largest_change : float
        Of an output by the rounding of the numbers, on the rows of the self-test.
    largest_output : float
        The largest output there.
    """

    path: str
    name: str
    n_bytes: int
    stack_bytes: int
    n_vectors: int
    largest_change: float
    largest_output: float


def to_c(
    model: Any,
    path: str | os.PathLike[str],
    dtype: str = "float32",
    max_bytes: int | None = None,
    *,
    name: str | None = None,
) -> Header:
    """Write a fitted model as one C99 header without any dependency but ``expf``.

    The header holds constant arrays, and functions that allocate nothing and use no ``double``.
    Their names begin with that of the model: ``digits_predict``, ``digits_decision``,
    ``digits_probabilities``, ``digits_class_name`` of a classifier, ``_predict`` of a regressor,
    ``_predict``, ``_decision`` and ``_score`` of an outlier detector, ``_transform`` of features,
    and ``_outputs`` of all. Compiled by itself with ``-DPURSUIT_SELFTEST`` it is a program that
    compares 16 rows with what Python gives and prints OK. It is C++, too, and on AVR the arrays
    stay in flash.

    Parameters
    ----------
    model : estimator
        What `pursuit.export.plain` takes: an estimator with a kernel expansion, or a Pipeline with
        scalers in front of one; or its record.
    path : str or path-like
        The file, which takes its place in one piece.
    dtype : {"float32", "int16", "int8"}, default="float32"
        How vectors and coefficients are stored: whole numbers have a zero and a step for each
        feature and each output.
    max_bytes : int, default=None
        The most bytes that the constant arrays may take.
    name : str, default=None
        What the names of all functions begin with. None: the name of the file.

    Returns
    -------
    header : Header
        What was written: bytes, memory, and how far the rounded outputs are.

    Raises
    ------
    ValueError
        If the model cannot be exported, or takes more than `max_bytes`; the message says how many
        vectors would fit. Nothing is written then.

    Warns
    -----
    UserWarning
        If whole numbers change an output by more than a fifth of the largest.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> from pursuit.export import to_c
    >>> model = KernelMatchingPursuitClassifier(8, alpha=0.1).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     header = to_c(model, os.path.join(folder, "iris.h"), dtype="int8")
    >>> header.name, header.n_bytes
    ('iris', 124)
    """
    check_integer("max_bytes", max_bytes, optional=True)
    text, header = c_header(model, os.fspath(path), dtype, name)
    if max_bytes is not None and header.n_bytes > max_bytes:
        raise ValueError(_too_large(model, dtype, header, max_bytes))
    with replacing(path) as stream:
        stream.write(text.encode("ascii"))
    return header


def _too_large(model: Any, dtype: str, header: Header, max_bytes: int) -> str:
    """Say how many vectors would fit."""
    n = stored(_record(model), dtype).fitting(max_bytes)
    smaller = "" if dtype == "int8" else ", or dtype='int8'"
    return (
        f"max_bytes={max_bytes}: the {header.n_vectors} vectors in {dtype} take {header.n_bytes} "
        f"bytes; {n} vectors would fit (truncate or fit with n_components={n}){smaller}"
        if n
        else f"max_bytes={max_bytes}: the model takes {header.n_bytes} bytes in {dtype}; 0 vectors "
        f"would fit beside its own numbers{smaller}"
    )


def _record(model: Any) -> PlainModel:
    return model if isinstance(model, PlainModel) else plain(model)


def c_header(
    model: Any, path: str, dtype: str = "float32", name: str | None = None
) -> tuple[str, Header]:
    """The text of a header, and what there is to know of it; see `to_c`."""
    check_choice("dtype", dtype, DTYPES)
    if name is not None and identifier(name) != name:
        raise ValueError(f"name must be an identifier in lower case such as 'digits', got {name!r}")
    name = identifier(path) if name is None else name
    record = _record(model)
    kept = stored(record, dtype)
    rows = example_rows(record, SELFTEST_ROWS)
    before, after = (outputs(one, rows) for one in (record, kept.model))
    header = Header(
        path,
        name,
        kept.n_bytes,
        stack_bytes(kept),
        record.n_vectors,
        float(np.abs(after - before).max()),
        float(np.abs(before).max()),
    )
    if dtype != "float32" and header.largest_change > WORRYING * header.largest_output:
        warn(
            f"dtype={dtype!r} changes an output by {header.largest_change:.2g}, where the largest "
            f"is {header.largest_output:.2g}: take more bytes a number, or fit on scaled features "
            "with coefficients that cancel less (a larger alpha, a smaller C)"
        )
    return _text(header, record, kept, rows, after), header


def _text(header: Header, record: PlainModel, kept: StoredModel, rows: Array, values: Array) -> str:
    """The parts of the file in their order."""
    largest = max((t.nbytes for part in kept.parts for t in part.tables.values()), default=0)
    words = {
        "NAME": header.name,
        "UPPER": header.name.upper(),
        "D": len(record.features),
        "T": len(record.intercept),
        "VECTORS": record.n_vectors,
        "BYTES": header.n_bytes,
        "CLASSIFIER": record.task == "classifier",
        "C": 0 if record.classes is None else len(record.classes),
        "DECISIONS": n_decisions(record),
        "LARGE": largest > LARGEST_AVR_ARRAY,
    }
    return filled(
        c.HEADER,
        COMMENT=comment(_about(header, record, kept)),
        COMMON=c.COMMON,
        TABLES=tables(header.name, kept),
        FUNCTIONS=program(header.name, kept),
        SELFTEST=_selftest(header.name, kept, rows, values),
        MAIN=filled(c.MAIN, NAME=header.name),
        **words,
    )


def _about(header: Header, record: PlainModel, kept: StoredModel) -> Iterator[str]:
    """The first comment."""
    what = record.task.replace("_", " ")
    kinds = "; ".join(repr(part.kernel) for part in record.parts) or "a constant"
    yield f"{header.name}: {what} of {header.n_vectors} vectors, by pursuit {version('pursuit')}"
    yield f"Kernel: {kinds}"
    yield ""
    yield f"Flash: {header.n_bytes} bytes of constants ({kept.dtype}), and the code."
    yield f"RAM: about {header.stack_bytes} bytes of stack in a call, none else."
    yield (
        f"Rounding changes an output by at most {header.largest_change:.2g} on the rows of the "
        f"self-test, where the largest is {header.largest_output:.2g}."
    )
    yield f"Self-test: cc -std=c99 -DPURSUIT_SELFTEST -x c {header.name}.h -o selftest -lm"
    yield ""
    yield f"x: {len(record.features)} features, numbers as in the training data, in this order:"
    yield "    " + ", ".join(record.features)
    if record.fill is not None:
        yield "    A missing one is NAN."
    if record.classes is not None:
        yield "Classes, by number: " + ", ".join(
            f"{number} {name}" for number, name in enumerate(class_names(record))
        )


def _selftest(name: str, kept: StoredModel, rows: Array, values: Array) -> str:
    """Rows, outputs of the numbers as stored, and classes that rounding cannot change."""
    model = kept.model
    tolerance = ROUNDING * float(largest_outputs(kept, rows).max())
    arrays = [
        array(f"{name}_selftest_rows", rows.astype(np.float32), ""),
        array(f"{name}_selftest_outputs", values.astype(np.float32), ""),
    ]
    coded = model.task in ("classifier", "outlier_detector")
    if coded:
        arrays.append(array(f"{name}_selftest_classes", _certain(model, values, tolerance), ""))
    return filled(
        c.SELFTEST,
        NAME=name,
        ARRAYS="".join(arrays),
        ROWS=len(rows),
        D=rows.shape[1],
        T=values.shape[1],
        TOLERANCE=number(tolerance),
        CODED=coded,
    )


def _certain(model: PlainModel, values: Array, tolerance: float) -> Array:
    """Answers as the C function gives them; -2 where rounding might change them."""
    codes = class_codes(model, values)
    if model.task == "outlier_detector":
        codes = np.where(codes > 0, 1, -1)
    return np.where(margins(model, values) > 4.0 * tolerance, codes, -2).astype(np.int32)


def margins(model: PlainModel, values: Array) -> Array:
    """How far the outputs of each row may move before its class changes, (n_rows,)."""
    if model.rule == "largest":
        top = np.sort(values, axis=1)[:, -2:]
        return np.asarray(top[:, 1] - top[:, 0])
    least = np.abs(values).min(axis=1)
    if model.rule == "vote_values":
        top = np.sort(decision_values(model, values), axis=1)[:, -2:]
        least = np.minimum(least, top[:, 1] - top[:, 0])
    return np.asarray(least)
