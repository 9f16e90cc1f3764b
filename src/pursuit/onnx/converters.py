"""Plain models in the graphs of skl2onnx: the one module that imports it, and onnx.

skl2onnx converts an estimator in three steps: a parser says which outputs there are, a shape
calculator of which type they are, a converter adds the nodes. The parsers are its own; the other
two read the plain model of the estimator (`pursuit.export.plain`).

`converted` folds what it can into one such model (`Folded`), and leaves to skl2onnx what stands in
front of it.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, numpy_helper
from skl2onnx import convert_sklearn, update_registered_converter
from skl2onnx.algebra.type_helper import guess_initial_types
from skl2onnx.common import data_types as types
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    OutlierMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from pursuit.base.parameters import constructor
from pursuit.export.affine import flat, is_affine
from pursuit.export.plain_model import PlainModel
from pursuit.export.read_model import plain
from pursuit.io.tree import CLASSES, class_of
from pursuit.onnx import graph

__all__ = ["Options", "converted", "register"]

OLDEST_OPSET = 13
#: What skl2onnx may ask of a classifier.
CHOICES = {
    "zipmap": [True, False, "columns"],
    "raw_scores": [True, False],
    "output_class_labels": [True, False],
    "nocl": [False],
}
TENSORS: dict[np.dtype[Any], Any] = {
    np.dtype("float32"): types.FloatTensorType,
    np.dtype("float64"): types.DoubleTensorType,
}


class Options(NamedTuple):
    """Those of a classifier."""

    zipmap: bool | str = False
    raw_scores: bool = False


# --- models that are plain already --------------------------------------------------------------


@constructor
class Folded(BaseEstimator):
    """A plain model where skl2onnx wants an estimator."""

    record: Any = None

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Any:
        """Labels of a classifier."""
        return self.record.classes


@constructor
class FoldedClassifier(ClassifierMixin, Folded):
    """A classifier."""


@constructor
class FoldedRegressor(RegressorMixin, Folded):
    """A regressor."""


@constructor
class FoldedDetector(OutlierMixin, Folded):
    """An outlier detector."""


@constructor
class FoldedTransformer(TransformerMixin, Folded):
    """A transformer."""


FOLDED = {
    "classifier": FoldedClassifier,
    "regressor": FoldedRegressor,
    "outlier_detector": FoldedDetector,
    "transformer": FoldedTransformer,
}


def _record(model: Any) -> PlainModel:
    record: PlainModel = model.record if isinstance(model, Folded) else plain(model)
    return record


def split(model: Any) -> tuple[list[Any], PlainModel]:
    """What stands in front of a model and is left to skl2onnx, and the rest as a plain model."""
    if hasattr(model, "preparation_"):
        raise ValueError(
            "to_onnx: of a model of a table convert the estimator_, whose rows are its features(X)"
        )
    if isinstance(model, PlainModel):
        return [], model
    if isinstance(model, (GridSearchCV, RandomizedSearchCV)):
        return split(model.best_estimator_)
    if isinstance(model, TransformedTargetRegressor):
        return _split_target(model)
    steps = flat(model)
    at = next((i for i, step in enumerate(steps) if hasattr(step, "expansion_")), 0)
    first = at
    while first and is_affine(steps[first - 1]):
        first -= 1
    return steps[:first], plain(make_pipeline(*steps[first:]) if first else model)


def _split_target(model: TransformedTargetRegressor) -> tuple[list[Any], PlainModel]:
    """The same where the target was transformed; the regressor's own steps are in front."""
    head, _ = split(model.regressor_)
    if head:
        model = copy.copy(model)
        model.regressor_ = make_pipeline(*flat(model.regressor_)[len(head) :])
    return head, plain(model)


def converted(model: Any, X: Any, dtype: str, options: Options, target_opset: int | None) -> Any:
    """Return the model as ONNX: see `pursuit.onnx.to_onnx`."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}.")
    if target_opset is not None and target_opset < OLDEST_OPSET:
        raise ValueError(f"target_opset must be at least {OLDEST_OPSET}, got {target_opset}.")
    head, record = split(model)
    _check_imputers(make_pipeline(*head))
    inputs = _inputs(head, record, X, np.dtype(dtype))
    register()
    last = FOLDED[record.task](record=record)
    whole = Pipeline([("before", make_pipeline(*head)), ("model", last)]) if head else last
    given = {id(last): options._asdict()} if record.task == "classifier" else None
    opset = None if target_opset is None else {"": target_opset, "ai.onnx.ml": 3}
    return convert_sklearn(
        whole, "pursuit", initial_types=inputs, options=given, target_opset=opset
    )


def _check_imputers(step: Any) -> None:
    """Refuse what skl2onnx would leave out in silence: columns that say what was missing."""
    parts = [part for _, part, _ in getattr(step, "transformers_", ())]
    for part in [*parts, *(flat(step) if isinstance(step, Pipeline) else ())]:
        _check_imputers(part)
    indicator: Any = getattr(step, "indicator_", None)
    if indicator is not None and len(indicator.features_):
        raise ValueError(
            f"to_onnx: {type(step).__name__}(add_indicator=True) is not in skl2onnx; convert "
            "pursuit.export.plain(model), whose inputs are the columns before they are scaled"
        )


def _inputs(head: list[Any], record: PlainModel, X: Any, dtype: np.dtype[Any]) -> Any:
    """Names and types of the inputs."""
    if X is None and not head:
        return [("X", TENSORS[dtype]([None, len(record.features)]))]
    if X is None:
        raise ValueError(
            f"X is needed: the inputs of a {type(head[0]).__name__} have names and types, which "
            "are learnt from some rows."
        )
    floats: Any = tuple(TENSORS.values())
    return [
        (name, TENSORS[dtype](kind.shape) if isinstance(kind, floats) else kind)
        for name, kind in guess_initial_types(X[:1], None)
    ]


# --- converters ---------------------------------------------------------------------------------


def register() -> None:
    """Register every estimator of the package, and the folded ones.

    Those that have no form in ONNX are refused by `plain`, in one line.
    """
    ours = [class_of(name) for name, module in CLASSES.items() if module.startswith("pursuit.")]
    kinds = [kind for kind in ours if issubclass(kind, BaseEstimator) and hasattr(kind, "fit")]
    for kind in [*kinds, *FOLDED.values()]:
        settings: dict[str, Any] = {}
        if issubclass(kind, ClassifierMixin):
            settings = {"options": CHOICES}
        update_registered_converter(kind, f"Pursuit{kind.__name__}", _shapes, _convert, **settings)


def _dtype(operator: Any) -> np.dtype[Any]:
    """Precision of the graph: that of the input, single for whole numbers."""
    double = any(isinstance(each.type, types.DoubleTensorType) for each in operator.inputs)
    return np.dtype("float64" if double else "float32")


def _shapes(operator: Any) -> None:
    """Set the types of the outputs."""
    record, number = _record(operator.raw_operator), TENSORS[_dtype(operator)]
    n_rows = operator.inputs[0].get_first_dimension()
    last, n_outputs = operator.outputs[-1], len(record.intercept)
    if record.task == "classifier":
        operator.outputs[0].type = _labels_type(record.classes)([n_rows])
        last.type = number([n_rows, None if _raw(operator, record) else len(record.classes)])
    elif record.task == "outlier_detector":
        operator.outputs[0].type = types.Int64TensorType([n_rows])
        last.type = number([n_rows, 1])
    else:
        last.type = number([n_rows, n_outputs])


def _labels_type(classes: Any) -> Any:
    """Type of a tensor of labels."""
    kinds = {"b": types.BooleanTensorType, "f": types.DoubleTensorType}
    whole = {kind: types.Int64TensorType for kind in "iu"}
    return (kinds | whole).get(classes.dtype.kind, types.StringTensorType)


def _raw(operator: Any, record: PlainModel) -> bool:
    """Whether the second output of a classifier holds decision values."""
    model, default = operator.raw_operator, {"raw_scores": False}
    asked = operator.scope_inst.get_options(model, default, fail=False)
    return record.probabilities is None or bool((asked or default)["raw_scores"])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a model."""
    record = _record(operator.raw_operator)
    g = NodeWriter(scope, container, _dtype(operator))
    f = graph.outputs(g, record, g.rows(operator.inputs))
    if record.task == "classifier":
        table = _scores if _raw(operator, record) else graph.probabilities
        found = [g.chosen(record.classes, graph.codes(g, record, f)), table(g, record, f)]
    elif record.task == "outlier_detector":
        found = [g.chosen(np.array([-1, 1]), graph.codes(g, record, f)), f]
    else:
        found = [graph.numbers(g, record, f)]
    for name, variable in zip(found, operator.outputs, strict=True):
        container.add_node("Identity", name, variable.full_name)


def _scores(g: NodeWriter, record: PlainModel, f: str) -> str:
    """Decision values; of one value its negative stands beside it, as skl2onnx has it."""
    values = graph.scores(g, record, f)
    if len(record.intercept) == 1:
        return g("Concat", g("Neg", values), values, axis=1)
    return values


class NodeWriter:
    """Adds nodes to a container of skl2onnx: a `pursuit.onnx.graph.Writer`."""

    def __init__(self, scope: Any, container: Any, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._nodes = (scope, container)

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        scope, container = self._nodes
        output = str(scope.get_unique_variable_name(op.lower()))
        container.add_node(
            op, list(inputs), output, name=scope.get_unique_operator_name(op), **attributes
        )
        return output

    def number(self, values: Any) -> str:
        """Add a constant in the precision of the graph."""
        return self._constant(np.asarray(values, dtype=self.dtype))

    def integers(self, values: list[int]) -> str:
        """Add a constant of integers."""
        return self._constant(np.array(values, dtype=np.int64))

    def cast(self, values: str, whole: bool = False) -> str:
        """Turn numbers or truth values into integers, or into the precision of the graph."""
        single = self.dtype == np.float32
        number = TensorProto.FLOAT if single else TensorProto.DOUBLE
        return self("Cast", values, to=TensorProto.INT64 if whole else number)

    def doubled(self) -> NodeWriter:
        """The same graph, to go on in double precision."""
        return NodeWriter(*self._nodes, np.dtype("float64"))

    def chosen(self, labels: Any, codes: str) -> str:
        """Take labels by their numbers."""
        return self("Gather", self._constant(labels), codes, axis=0)

    def rows(self, inputs: list[Any]) -> str:
        """One matrix of the inputs."""
        wanted = TENSORS[self.dtype]
        columns = [
            each.full_name if isinstance(each.type, wanted) else self.cast(each.full_name)
            for each in inputs
        ]
        return columns[0] if len(columns) == 1 else self("Concat", *columns, axis=1)

    def _constant(self, values: Any) -> str:
        scope, container = self._nodes
        name = str(scope.get_unique_variable_name("constant"))
        if values.dtype.kind in "OU":
            text = [str(value).encode() for value in values]
            container.add_initializer(name, TensorProto.STRING, [len(text)], text)
        else:
            whole = values.dtype.kind in "iu"
            values = np.ascontiguousarray(values, dtype=np.int64 if whole else None)
            container.add_initializer(name, None, None, numpy_helper.from_array(values))
        return name
