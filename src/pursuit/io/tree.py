"""Fitted estimators as trees of plain values, and back: what a model file holds.

A tree is made of what JSON has. ``null``, booleans, integers, finite floats, strings and lists
stand for themselves; everything else is an object with a ``type``, one `_Codec` for each:

=============  ==========================================================================
type           value
=============  ==========================================================================
``float``      infinities and NaN
``scalar``     a NumPy scalar, with its dtype
``array``      a NumPy array, by the name of the member that holds it; text arrays of
               object dtype are stored with a fixed width and become objects again, 32-bit
               floats that were 64-bit ones (``double``) become these again, and so do codes,
               by the zero and the step of each line along an ``axis``
``objects``    a NumPy array of other objects: its shape and items
``csr``        a sparse matrix: its shape and three arrays
``tuple``      items
``dict``       pairs of key and item
``function``   a Python function that is an item of a dict: the name that is its key, no more;
               whoever decodes the tree supplies the function again
``value``      a frozen dataclass of the package: class and fields
``estimator``  an estimator of the package, or a pipeline: class, parameters and fitted state
``skops``      another estimator of scikit-learn: its class, and the member that is its file
=============  ==========================================================================

Classes are written by name and looked up in `CLASSES`, never imported by a name from outside, so
that decoding a tree can only ever build what is listed there, and runs nothing else.
"""

from __future__ import annotations

import importlib
import inspect
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator

from pursuit.base.callbacks import CALLBACK_STATE
from pursuit.io.classes import CLASSES
from pursuit.linalg.rounding import Codes

__all__ = [
    "CLASSES",
    "Decoder",
    "Encoder",
    "ModelFileError",
    "array_shapes",
    "class_of",
    "decoded_values",
    "encoded_values",
    "function_names",
    "holds_arrays",
    "in_words",
    "is_ours",
]

# What scikit-learn keeps on an estimator beside its fit: requests for metadata, callbacks.
# The sums of a stream are a model of their own: they are stored by themselves. Temperatures that
# belong to a function are fitted anew. Tangents are a parameter already.
_BOOKKEEPING = {
    "_metadata_request",
    "statistics_",
    "_last_search",
    "_function_temperatures",
    "_tangents_of_fit",
    *CALLBACK_STATE,
}
# What staged evaluation and truncation alone need, and the smaller models beside the fitted one.
_STAGES = {"path_", "frontier_", "_error_quantile_path"}
_MAX_DEPTH = 40
_DTYPE = re.compile(r"\|b1|\|[iu]1|[<>](i[248]|u[248]|f[248]|U[0-9]{1,7})")

Node = Any  # a piece of the tree


class ModelFileError(ValueError):
    """A file is no model file, is damaged, or was written by another version of pursuit."""


def class_of(name: str) -> type[Any]:
    """Return one of the package's own classes; the name is only ever a key of `CLASSES`."""
    if name not in CLASSES:
        raise ModelFileError(f"names the class {name!r}, which this pursuit does not have")
    return getattr(importlib.import_module(CLASSES[name]), name)  # type: ignore[no-any-return]


def is_ours(value: Any) -> bool:
    """Tell whether a value is of a class in `CLASSES`, subclasses not included."""
    name = type(value).__name__
    return name in CLASSES and class_of(name) is type(value)


class Encoder:
    """Turns values into nodes, and their arrays into members.

    Parameters
    ----------
    name : str
        The model's class, for messages.
    staged : bool
        Whether to keep ``path_``, which only staged evaluation and truncation need, and
        ``frontier_``.

    Attributes
    ----------
    members : dict of str to bytes
        Name and content of each array so far, in NumPy's format.
    functions : dict of str to callable
        The functions so far, of which the tree holds the names.
    """

    def __init__(self, name: str, staged: bool) -> None:
        self.name = name
        self.staged = staged
        self.members: dict[str, bytes] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        self._stored: dict[int, tuple[Any, Node]] = {}  # the array keeps its id taken
        self._depth = 0

    def encode(self, value: Any, where: str) -> Node:
        """Return the node of a value; `where` is its place in the model, for messages."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None
        if self._depth == _MAX_DEPTH:
            raise ValueError(f"cannot save {self.name}: {where} is nested too deeply.")
        self._depth += 1
        node = self._container(value, where)
        self._depth -= 1
        return node

    def _container(self, value: Any, where: str) -> Node:
        if type(value) is list:
            return self.encode_all(value, where)
        codec = next((c for c in _CODECS if c.holds(value)), None)
        if codec is None:
            raise self.refusal(value, where)
        return {"type": codec.tag, **codec.encode(self, value, where)}

    def encode_all(self, values: Any, where: str) -> list[Node]:
        """Return the nodes of the items of a list or tuple."""
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def encode_item(self, key: Any, value: Any, where: str) -> Node:
        """Return the node of an item of a dict: a function is known by its key."""
        known = not callable(value) or any(codec.holds(value) for codec in _CODECS)
        if known or type(key) is not str:
            return self.encode(value, f"{where}[{key!r}]")
        if self.functions.setdefault(key, value) is not value:
            raise ValueError(f"cannot save {self.name}: two functions have the name {key!r}.")
        return {"type": "function", "name": key}

    def array(self, array: npt.NDArray[Any], where: str) -> Node:
        """Store an array once, however many attributes hold it."""
        if id(array) not in self._stored:
            self._stored[id(array)] = (array, self._store(array, where))
        return self._stored[id(array)][1]

    def _store(self, array: npt.NDArray[Any], where: str) -> Node:
        textual = array.dtype == object
        plain = self._text(array, where) if textual else np.asarray(array)
        dtype = plain.dtype.str
        if not _DTYPE.fullmatch(dtype):
            raise self.refusal(array, where)
        file = io.BytesIO()
        np.lib.format.write_array(file, plain, version=(1, 0), allow_pickle=False)
        name = f"arrays/{len(self.members)}.npy"
        self.members[name] = file.getvalue()
        return {"member": name, "dtype": dtype, "shape": list(plain.shape), "object": textual}

    def _text(self, array: npt.NDArray[Any], where: str) -> npt.NDArray[np.str_]:
        if not all(isinstance(item, str) and not item.endswith("\0") for item in array.flat):
            raise self.refusal(array, where)
        return array.astype(np.str_)

    def refusal(self, value: Any, where: str) -> ValueError:
        """Return the error that says why a value cannot be stored, and what to do."""
        kind = f"an object of class {type(value).__name__}"
        if isinstance(value, np.ndarray | np.generic):
            kind = f"an array of dtype {value.dtype}"
        hint = "Only numbers, strings, arrays, CSR matrices and pursuit's own values can be saved."
        if inspect.isroutine(value) or type(value).__name__ == "FunctionKernel":
            kind = "a Python function"
        if callable(value) and where.endswith("tangents"):
            hint = (
                "A model file holds no code: use ImageTangents, or set_params(tangents=None) "
                "before saving, and give the function again after loading."
            )
        elif callable(value):
            hint = (
                "A model file holds no code: use a kernel by name or a value of pursuit.kernels, "
                "or kernel='precomputed' and keep the function beside the file. Only functions in "
                "a dict are saved, by their names, and load takes them again."
            )
        elif where.startswith("parameter "):
            hint += " Give it such a value with set_params before saving."
        return ValueError(f"cannot save {self.name}: {where} is {kind}. {hint}")


class Decoder:
    """Turns nodes into values.

    Parameters
    ----------
    member : callable
        Gives the checked bytes of a member by its name.
    version : str
        The version of pursuit that wrote the tree, for messages.
    functions : dict of str to callable, optional
        The functions that the tree names.

    Attributes
    ----------
    matrices : dict
        The CSR matrices so far; nodes that share their members share the matrix.
    """

    def __init__(
        self,
        member: Callable[[str], bytes],
        version: str,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.version = version
        self.functions = functions or {}
        self.matrices: dict[tuple[Any, ...], Any] = {}
        self.member = member
        self._arrays: dict[tuple[str, bool], npt.NDArray[Any]] = {}
        self._depth = 0

    def decode(self, node: Node) -> Any:
        """Return the value of a node."""
        if node is None or type(node) in (bool, int, float, str):
            return node
        if self._depth == _MAX_DEPTH:
            raise ModelFileError("is damaged: its values are nested too deeply")
        self._depth += 1
        if type(node) is list:
            value: Any = [self.decode(item) for item in node]
        else:
            value = _DECODERS[node["type"]](self, node)
        self._depth -= 1
        return value

    def decode_items(self, nodes: dict[str, Node]) -> dict[str, Any]:
        """Return the values of nodes by name."""
        return {name: self.decode(node) for name, node in nodes.items()}

    def array(self, node: Node) -> npt.NDArray[Any]:
        """Return an array; nodes that share a member share the array."""
        key = (node["member"], node["object"])
        if key not in self._arrays:
            content = self.member(key[0])
            _check_npy(content, node)
            array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
            kept = object if node["object"] else np.float64 if "double" in node else array.dtype
            array = array.astype(kept, copy=False)
            self._arrays[key] = self._decoded(array, node) if "axis" in node else array
        return self._arrays[key]

    def _decoded(self, codes: npt.NDArray[Any], node: Node) -> npt.NDArray[Any]:
        """Numbers from codes, by the zero and the step of each line."""
        name = f"{node['member']}.lines"
        content, axis = self.member(name), int(node["axis"] == 1)
        shape = [2, node["shape"][1 - axis]]
        _check_npy(content, {"member": name, "dtype": "<f4", "shape": shape})
        lines = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        zero, step = (np.expand_dims(part, axis) for part in lines)
        return Codes(codes, zero, step).decoded()


def _check_npy(content: bytes, node: Node) -> None:
    """Compare an array's header and length with what the tree says, before memory is taken."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    stated = (version, list(shape), dtype.str) == ((1, 0), node["shape"], node["dtype"])
    if not stated or not _DTYPE.fullmatch(dtype.str) or min(shape, default=0) < 0:
        raise ModelFileError(f"is damaged: {node['member']} is not the array it should be")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ModelFileError(f"is damaged: {node['member']} does not have its stated length")
    if dtype.kind == "U" and len(content) > file.tell():
        points = np.frombuffer(content, dtype.str[0] + "u4", offset=file.tell())
        if points.max() > 0x10FFFF:
            raise ModelFileError(f"is damaged: {node['member']} holds no text")


def encoded_values(name: str, values: dict[str, Any]) -> bytes:
    """Return plain values by name as JSON; a value that needs an array is refused.

    Parameters
    ----------
    name : str
        Of the model that they are parameters of, for messages.
    values : dict
        The values.
    """
    encoder = Encoder(name, staged=False)
    nodes = {key: encoder.encode(value, f"parameter {key}") for key, value in values.items()}
    if encoder.members:
        raise ValueError(f"cannot save {name}: a parameter is an array; give a list.")
    return json.dumps(nodes, allow_nan=False).encode()


def decoded_values(text: bytes) -> dict[str, Any]:
    """Return the values that `encoded_values` wrote."""
    members: dict[str, bytes] = {}
    return Decoder(members.__getitem__, "").decode_items(json.loads(text))


class _Codec(NamedTuple):
    """One type of node: which values it holds, how they become a node, and back."""

    tag: str
    holds: Callable[[Any], bool]
    encode: Callable[[Encoder, Any, str], dict[str, Node]]
    decode: Callable[[Decoder, Node], Any]


def _encode_scalar(encoder: Encoder, value: Any, where: str) -> dict[str, Node]:
    if not _DTYPE.fullmatch(value.dtype.str):
        raise encoder.refusal(value, where)
    return {"dtype": value.dtype.str, "value": encoder.encode(value.item(), where)}


def _decode_scalar(decoder: Decoder, node: Node) -> Any:
    if not _DTYPE.fullmatch(node["dtype"]):
        raise ModelFileError(f"is damaged: no scalar has the type {node['dtype']!r}")
    return np.array(decoder.decode(node["value"]), dtype=node["dtype"])[()]


def _is_objects(value: Any) -> bool:
    """Whether a value is an array of objects that are not all text."""
    objects = isinstance(value, np.ndarray) and value.dtype == object
    return objects and not all(isinstance(item, str) for item in value.flat)


def _encode_objects(encoder: Encoder, value: Any, where: str) -> dict[str, Node]:
    return {"shape": list(value.shape), "items": encoder.encode_all(value.ravel().tolist(), where)}


def _decode_objects(decoder: Decoder, node: Node) -> Any:
    if math.prod(node["shape"]) != len(node["items"]):
        raise ModelFileError("is damaged: an array of objects has not its stated length")
    array = np.empty(len(node["items"]), dtype=object)
    array[:] = [decoder.decode(item) for item in node["items"]]
    return array.reshape(node["shape"])


def _encode_dict(encoder: Encoder, value: Any, where: str) -> dict[str, Node]:
    pairs = [(encoder.encode(k, where), encoder.encode_item(k, v, where)) for k, v in value.items()]
    return {"items": [list(pair) for pair in pairs]}


def _decode_dict(decoder: Decoder, node: Node) -> Any:
    return {decoder.decode(key): decoder.decode(item) for key, item in node["items"]}


def _encode_csr(encoder: Encoder, value: Any, where: str) -> dict[str, Node]:
    matrix = value.tocsr()
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    arrays = {name: encoder.array(part, where) for name, part in parts.items()}
    array = isinstance(value, sparse.sparray)
    return {"array": array, "shape": [int(n) for n in matrix.shape], **arrays}


def _decode_csr(decoder: Decoder, node: Node) -> Any:
    names = ("data", "indices", "indptr")
    key = (*(node[name]["member"] for name in names), *node["shape"], node["array"])
    if key not in decoder.matrices:
        make = sparse.csr_array if node["array"] else sparse.csr_matrix
        parts = tuple(decoder.array(node[name]) for name in names)
        matrix = make(parts, shape=tuple(node["shape"]))
        matrix.check_format(full_check=True)  # an index out of bounds would read foreign memory
        decoder.matrices[key] = matrix
    return decoder.matrices[key]


def _is_value(cls: type[Any]) -> bool:
    """Whether a class is a plain value; the constructors of estimators are dataclasses, too."""
    return is_dataclass(cls) and not issubclass(cls, BaseEstimator)


def _encode_value(encoder: Encoder, value: Any, where: str) -> dict[str, Node]:
    names = [field.name for field in fields(value) if field.init]
    nodes = {name: encoder.encode(getattr(value, name), f"{where}.{name}") for name in names}
    return {"class": type(value).__name__, "fields": nodes}


def _decode_value(decoder: Decoder, node: Node) -> Any:
    cls = class_of(node["class"])
    if not _is_value(cls):
        raise ModelFileError(f"is damaged: {node['class']} is not a plain value")
    return cls(**decoder.decode_items(node["fields"]))


def _encode_estimator(encoder: Encoder, value: Any, where: str) -> dict[str, Node]:
    dot = f"{where}." if where else ""
    params = value.get_params(deep=False)
    hidden = _BOOKKEEPING | params.keys()
    state = {name: item for name, item in vars(value).items() if name not in hidden}
    if not encoder.staged:
        state |= dict.fromkeys(_STAGES & state.keys())
    return {
        "class": type(value).__name__,
        "params": {k: encoder.encode(v, f"{dot or 'parameter '}{k}") for k, v in params.items()},
        "state": {k: encoder.encode(v, f"{dot or 'attribute '}{k}") for k, v in state.items()},
    }


def _decode_estimator(decoder: Decoder, node: Node) -> Any:
    cls = class_of(node["class"])
    if not issubclass(cls, BaseEstimator):
        raise ModelFileError(f"is damaged: {node['class']} is not an estimator")
    unknown = node["params"].keys() - inspect.signature(cls).parameters.keys()
    if unknown:
        version = decoder.version
        raise ModelFileError(
            f"was written by pursuit {version}, whose {node['class']} has a parameter "
            f"{min(unknown)!r} that the installed pursuit does not know"
        )
    model = cls(**decoder.decode_items(node["params"]))
    vars(model).update(decoder.decode_items(node["state"]))
    return model


def _is_sklearn(value: Any) -> bool:
    """Whether a value is an estimator of scikit-learn itself."""
    return isinstance(value, BaseEstimator) and type(value).__module__.startswith("sklearn.")


def _encode_skops(encoder: Encoder, value: Any, where: str) -> dict[str, Node]:
    """Store an estimator of scikit-learn if it can be read again."""
    kind = type(value).__name__
    if find_spec("skops") is None:
        raise ImportError(f"saving a {kind} needs skops: pip install 'pursuit[table]'")
    from pursuit.io.skops_archive import UntrustedType, from_skops, to_skops

    content = to_skops(value)
    try:
        from_skops(content)
    except UntrustedType as error:
        raise ValueError(
            f"cannot save {encoder.name}: {where}, a {kind}, holds {error}, which is not trusted. "
            "Use skops.io.dump, whose reader says what it trusts, or pickle."
        ) from None
    name = f"skops/{len(encoder.members)}.skops"
    encoder.members[name] = content
    return {"class": kind, "file": name}


def _decode_skops(decoder: Decoder, node: Node) -> Any:
    if find_spec("skops") is None:
        raise ModelFileError(f"holds a {node['class']}; skops is needed to read it")
    from pursuit.io.skops_archive import UntrustedType, from_skops

    try:
        return from_skops(decoder.member(node["file"]))
    except UntrustedType as error:
        raise ModelFileError(f"names the type {error}, which is not trusted") from None


_CODECS = (
    _Codec(
        "float",
        lambda value: type(value) is float,
        lambda encoder, value, where: {"value": repr(value)},
        lambda decoder, node: float(node["value"]),
    ),
    _Codec("scalar", lambda value: isinstance(value, np.generic), _encode_scalar, _decode_scalar),
    _Codec("objects", _is_objects, _encode_objects, _decode_objects),
    _Codec("csr", sparse.issparse, _encode_csr, _decode_csr),
    _Codec(
        "tuple",
        lambda value: type(value) is tuple,
        lambda encoder, value, where: {"items": encoder.encode_all(value, where)},
        lambda decoder, node: tuple(decoder.decode(item) for item in node["items"]),
    ),
    _Codec("dict", lambda value: type(value) is dict, _encode_dict, _decode_dict),
    _Codec(
        "function",
        lambda value: False,  # an item of a dict alone: see `Encoder.encode_item`
        lambda encoder, value, where: {},
        lambda decoder, node: decoder.functions[node["name"]],
    ),
    _Codec(
        "value",
        lambda value: _is_value(type(value)) and is_ours(value),
        _encode_value,
        _decode_value,
    ),
    _Codec(
        "estimator",
        lambda value: isinstance(value, BaseEstimator) and is_ours(value),
        _encode_estimator,
        _decode_estimator,
    ),
    _Codec("skops", _is_sklearn, _encode_skops, _decode_skops),
    _Codec(
        "array",  # data frames too, and whatever else is an array at heart
        lambda value: hasattr(value, "__array__"),
        lambda encoder, value, where: encoder.array(
            value if isinstance(value, np.ndarray) else np.asarray(value), where
        ),
        lambda decoder, node: decoder.array(node),
    ),
)
_DECODERS = {codec.tag: codec.decode for codec in _CODECS}


def array_shapes(nodes: dict[str, Node], prefix: str = "") -> dict[str, tuple[int, ...]]:
    """Collect the shapes of the arrays among attributes, and inside the package's values."""
    found: dict[str, tuple[int, ...]] = {}
    for name, node in nodes.items():
        tag = node.get("type") if isinstance(node, dict) else None
        if tag in ("array", "objects", "csr"):
            found[prefix + name] = tuple(node["shape"])
        elif tag == "value":
            found |= array_shapes(node["fields"], f"{prefix}{name}.")
    return found


def holds_arrays(node: Node) -> bool:
    """Tell whether there is an array anywhere inside a node."""
    if isinstance(node, list):
        return any(map(holds_arrays, node))
    return isinstance(node, dict) and ("member" in node or any(map(holds_arrays, node.values())))


def function_names(node: Node) -> list[str]:
    """Collect the names of the functions inside a node, sorted."""
    if isinstance(node, dict):
        own = [node["name"]] if node.get("type") == "function" else []
        parts = list(node.values())
    else:
        own, parts = [], node if isinstance(node, list) else []
    return sorted({*own, *(name for part in parts for name in function_names(part))})


def in_words(node: Node) -> Any:
    """Render a node as a plain value; arrays and the package's own values as text."""
    if isinstance(node, list):
        return [in_words(item) for item in node]
    if not isinstance(node, dict):
        return node
    tag = node["type"]
    if tag == "float":
        return float(node["value"])
    if tag == "scalar":
        return in_words(node["value"])
    if tag == "function":
        return f"function {node['name']}"
    if tag == "tuple":
        return tuple(in_words(item) for item in node["items"])
    if tag == "dict":
        return {in_words(key): in_words(item) for key, item in node["items"]}
    if tag == "skops":
        return str(node["class"])
    if tag in ("value", "estimator"):
        parts = node["fields"] if tag == "value" else node["params"]
        return f"{node['class']}({', '.join(f'{k}={_text(v)}' for k, v in parts.items())})"
    return f"{'CSR matrix' if tag == 'csr' else 'array'} of shape {tuple(node['shape'])}"


def _text(node: Node) -> str:
    words = in_words(node)
    return words if isinstance(node, dict) and isinstance(words, str) else repr(words)
