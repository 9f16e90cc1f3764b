"""Fitted models as ONNX, for onnxruntime and whatever else reads it.

Read `graph` first: the formulas of `pursuit.export.plain_model` as nodes of ONNX. `converters` ties
them to skl2onnx and is the one module that imports it, when one of the functions here is called;
they need the ``onnx`` extra.

Within this package `import onnx` is the package of that name, not this one.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

__all__ = ["register", "to_onnx"]


def to_onnx(
    model: Any,
    X: Any = None,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    zipmap: bool | Literal["columns"] = False,
    raw_scores: bool = False,
    target_opset: int | None = None,
) -> Any:
    """Convert a fitted model to ONNX.

    Linear maps in front of the model (StandardScaler, PCA, `KernelMetric`, ...) and linear models
    behind `GreedyNystroem` or `SparseKernelPCA` become part of its matrices; what stands in front
    of them (OneHotEncoder, ColumnTransformer, ...) is converted by skl2onnx.

    Parameters
    ----------
    model : estimator
        What `pursuit.export.plain` describes: an estimator with a kernel expansion, a Pipeline with
        one, a search that holds one; or such a description.
    X : data frame or array of shape (n_rows, n_columns), default=None
        Some rows, of which the names and types of the inputs are learnt. Needed where the first
        step is none of those linear maps; otherwise the input is one matrix ``X``.
    dtype : {"float32", "float64"}, default="float32"
        Of numbers that are no integers: of the inputs, the outputs and within.
    zipmap : bool or "columns", default=False
        Whether probabilities become a list of mappings from label to number, or an output each.
    raw_scores : bool, default=False
        Whether the second output of a classifier holds its decision values in place of
        probabilities, as it does where the model has none. Of two classes with one value f they are
        -f and f.
    target_opset : int, default=None
        Version of ONNX's operators, at least 13. None: the newest that skl2onnx knows.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Its ``SerializeToString()`` is the file. Outputs: of a classifier ``label`` and
        ``probabilities``; of a regressor or transformer ``variable``, a column for each number; of
        an outlier detector ``label`` (1 or -1) and ``scores``, its decision values.

    Raises
    ------
    ValueError
        If the model is no kernel expansion, or has a kernel that is Python's.
    ImportError
        If the extra is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> from pursuit.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), KernelMatchingPursuitClassifier(10)).fit(X, y)
    >>> converted = to_onnx(model)
    >>> [output.name for output in converted.graph.output]
    ['label', 'probabilities']
    """
    _require_extra()
    from pursuit.onnx import converters

    options = converters.Options(zipmap, raw_scores)
    return converters.converted(model, X, dtype, options, target_opset)


def register() -> None:
    """Teach skl2onnx the estimators of this package.

    After it, ``skl2onnx.to_onnx`` and ``skl2onnx.convert_sklearn`` convert them wherever they
    stand: in a Pipeline, a ColumnTransformer, a VotingClassifier. Classifiers have the options
    ``zipmap`` and ``raw_scores``, as those of scikit-learn have. Importing the package registers
    nothing.

    Raises
    ------
    ImportError
        If the extra is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skl2onnx import to_onnx
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> from pursuit.onnx import register
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMatchingPursuitClassifier(10).fit(X, y)
    >>> register()
    >>> options = {id(model): {"zipmap": False, "raw_scores": True}}
    >>> converted = to_onnx(model, X[:1].astype("float32"), options=options)
    """
    _require_extra()
    from pursuit.onnx import converters

    converters.register()


def _require_extra() -> None:
    """Raise an ImportError that says how to install what ONNX needs."""
    absent = [name for name in ("skl2onnx", "onnx") if find_spec(name) is None]
    if absent:
        raise ImportError(f"pursuit.onnx needs {', '.join(absent)}: pip install 'pursuit[onnx]'")
