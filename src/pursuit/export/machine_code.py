"""The C code of a model, built and loaded: predictions in microseconds, in single precision.

A call of one row passes 4 d bytes to the function and gets a number back, so that about a third of
a microsecond is Python's. Nothing is shared between calls, and the lock of the interpreter is free
while a function runs.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit.export.c_functions import n_decisions
from pursuit.export.c_header import c_header
from pursuit.export.plain_model import PlainModel
from pursuit.export.read_model import plain

__all__ = ["CompiledModel", "compiled"]

# Sums in the vectors of the processor; the answers stay within the rounding that to_c states.
FLAGS = (
    "-std=c99 -O3 -march=native -fassociative-math -fno-signed-zeros -fno-trapping-math "
    "-fno-math-errno -fPIC -shared"
).split()
SOURCE = '#include "model.h"\n'
# One answer of a row, and those of many rows.
ONE = "{kind} one_{method}(const float *x) {{ {body} }}\n"
MANY = (
    "void many_{method}(const float *X, long n, {kind} *y) {{\n"
    "    long i;\n    for (i = 0; i < n; i++) {{ {body} }}\n}}\n"
)


def compiled(model: Any, dtype: str = "float32", *, compiler: str | None = None) -> CompiledModel:
    """Build the C code of a fitted model and load it.

    Parameters
    ----------
    model : estimator
        What `to_c` takes.
    dtype : {"float32", "int16", "int8"}, default="float32"
        How vectors and coefficients are stored.
    compiler : str, default=None
        The C compiler, gcc or clang. None: the variable CC of the environment, else ``cc``.

    Returns
    -------
    model : CompiledModel
        With the methods of the model, and ``predict_one`` for a single row.

    Raises
    ------
    ValueError
        If the model cannot be exported.
    RuntimeError
        If there is no compiler, or it fails.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> from pursuit.export import compiled
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMatchingPursuitClassifier(10).fit(X, y)
    >>> fast = compiled(model)                                       # doctest: +SKIP
    >>> bool((fast.predict(X) == model.predict(X)).all())            # doctest: +SKIP
    True
    """
    return CompiledModel(model if isinstance(model, PlainModel) else plain(model), dtype, compiler)


class CompiledModel:
    """A model as machine code, made by `compiled`.

    Rows are read as single precision and not checked beyond their shape: where the model itself
    raises an error, for NaN say, this one gives some answer.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    classes_ : ndarray of shape (n_classes,)
        Labels of a classifier, in order; -1 and 1 of an outlier detector.
    """

    def __init__(self, record: PlainModel, dtype: str, compiler: str | None) -> None:
        """Build and load."""
        self._arguments = record, dtype, compiler
        self._record = record
        self._library = _build(record, dtype, compiler)
        self.n_features_in_ = len(record.features)
        if record.task == "classifier":
            self.classes_ = record.classes
        elif record.task == "outlier_detector":
            self.classes_ = np.array([-1, 1])
        self._one = self._single()

    def __reduce__(self) -> Any:
        """Pickled as the numbers, and built again."""
        return CompiledModel, self._arguments

    def _single(self) -> Callable[[bytes], Any]:
        """The function of one row of bytes."""
        one = self._library.one_predict
        one.argtypes = [ctypes.c_char_p]
        if hasattr(self, "classes_"):
            labels = list(self.classes_)
            return lambda row: labels[one(row)]
        if self._record.task == "transformer" or len(self._record.intercept) > 1:
            return lambda row: self._check("single number to predict", False)
        one.restype = ctypes.c_float
        return one

    def predict_one(self, x: Any) -> Any:
        """The prediction of one row.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            A row; fastest as a contiguous array of float32.

        Returns
        -------
        y : scalar
            A label, or a number.
        """
        x = np.asarray(x, dtype=np.float32)
        if x.shape != (self.n_features_in_,):
            raise ValueError(f"x must have shape ({self.n_features_in_},), got {x.shape}")
        return self._one(x.tobytes())

    def predict(self, X: Any) -> Array:
        """Labels or numbers of rows, as the model's ``predict``."""
        self._check("predict", self._record.task != "transformer")
        if hasattr(self, "classes_"):
            return np.asarray(self.classes_[self._many("predict", X, 0, np.int32)])
        y = self._many("values", X, len(self._record.intercept))
        return y[:, 0] if self._record.one_dimensional else y

    def transform(self, X: Any) -> Array:
        """Features of rows, as the model's ``transform``."""
        self._check("transform", self._record.task == "transformer")
        return self._many("values", X, len(self._record.intercept))

    def decision_function(self, X: Any) -> Array:
        """Decision values of rows, as the model's ``decision_function``."""
        self._check("decision_function", hasattr(self, "classes_"))
        values = self._many("decision", X, n_decisions(self._record))
        return values[:, 0] if values.shape[1] == 1 else values

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, as the model's ``predict_proba``."""
        self._check("predict_proba", self._record.probabilities is not None)
        return self._many("probabilities", X, len(self.classes_))

    def score_samples(self, X: Any) -> Array:
        """Scores of an outlier detector, as its ``score_samples``."""
        self._check("score_samples", self._record.task == "outlier_detector")
        return np.asarray(self.decision_function(X) + np.float32(self._record.offset))

    def _check(self, method: str, there: bool) -> None:
        """Raise unless the model has a method."""
        if not there:
            raise AttributeError(f"this {self._record.task} has no {method}")

    def _many(self, method: str, X: Any, width: int, dtype: Any = np.float32) -> Array:
        """Call a function of many rows; a vector for width 0."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have shape (n_rows, {self.n_features_in_}), got {X.shape}")
        found = np.empty((len(X), width) if width else len(X), dtype)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (X, found))
        rows, values = pointers
        self._library[f"many_{method}"](rows, ctypes.c_long(len(X)), values)
        return found


def _build(record: PlainModel, dtype: str, compiler: str | None) -> ctypes.CDLL:
    """Compile in a folder that is gone afterwards; what is loaded stays."""
    compiler = compiler or os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise RuntimeError(
            f"export.compiled needs a C compiler, and there is no {compiler!r}; install gcc or "
            "clang, or name one by compiler="
        )
    header, _ = c_header(record, "model.h", dtype)
    with tempfile.TemporaryDirectory(prefix="pursuit-") as name:
        folder = Path(name)
        (folder / "model.h").write_text(header, "ascii")
        (folder / "model.c").write_text(SOURCE + _functions(record), "ascii")
        command = [compiler, *FLAGS, "model.c", "-o", "model.so", "-lm"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"export.compiled: {compiler} failed: {run.stderr.strip()[:500]}")
        return ctypes.CDLL(str(folder / "model.so"))


def _functions(record: PlainModel) -> str:
    """The functions that a library can export, around those of the header."""
    T = len(record.intercept)
    if record.task not in ("classifier", "outlier_detector"):
        method = "predict" if record.task == "regressor" else "transform"
        one = f"float y[{T}]; model_{method}(x, y); return y[0];"
        many = f"model_{method}(X + i * {len(record.features)}, y + i * {T});"
        return ONE.format(kind="float", method="predict", body=one) + MANY.format(
            kind="float", method="values", body=many
        )
    return _of_classes(record)


def _of_classes(record: PlainModel) -> str:
    """Numbers of classes, decision values and probabilities."""
    row = f"X + i * {len(record.features)}"
    code = "model_predict({})" if record.task == "classifier" else "(model_predict({}) + 1) / 2"
    text = ONE.format(kind="int", method="predict", body=f"return {code.format('x')};")
    text += MANY.format(kind="int", method="predict", body=f"y[i] = {code.format(row)};")
    widths = {"decision": n_decisions(record)}
    if record.probabilities is not None:
        widths["probabilities"] = len(record.classes)
    for method, width in widths.items():
        body = f"model_{method}({row}, y + i * {width});"
        text += MANY.format(kind="float", method=method, body=body)
    return text
