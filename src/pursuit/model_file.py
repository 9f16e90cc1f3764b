"""Fitted models as one safe file: JSON and arrays, no pickle, and loading runs nothing.

A model file is a ZIP archive with fixed time stamps, so equal models give equal bytes:

==================  ====================================================================
member              content
==================  ====================================================================
``model.json``      format name, schema number, pursuit's version, length and SHA-256 of
                    every other member, the model as a tree of values, and of one with
                    rounded numbers what that changed
``arrays/N.npy``    the arrays of that tree, in NumPy's own format, without pickle
``skops/N.skops``   estimators of scikit-learn in a Pipeline, in files of skops
`attachments/...`   bytes that a caller stores beside the model
==================  ====================================================================

The tree is that of `pursuit.io.tree`; its classes are looked up in a fixed list, never imported
by a name from the file, and of the user's functions it holds the names alone. Every member is
checked against its length and its digest before it is used, so that a damaged, cut or foreign
file gives one `ModelFileError`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pursuit.base.arrays import to_numpy
from pursuit.io.files import MAX_RATIO, check_claims, replacing, unfold
from pursuit.io.single_precision import largest_change, narrow, own_vectors, read_rows
from pursuit.io.tree import (
    Decoder,
    Encoder,
    ModelFileError,
    array_shapes,
    class_of,
    function_names,
    holds_arrays,
    in_words,
    is_ours,
)
from pursuit.linalg.rounding import PRECISIONS

__all__ = [
    "ModelFileError",
    "describe",
    "in_float32",
    "load",
    "load_attachments",
    "replacing",
    "save",
]

FORMAT = "pursuit-model"
SCHEMA = 1

_MAX_JSON_BYTES = 2**26
_SLACK = 2**20
#: What a file of a `TableModel` has beside the estimator, since its first version.
_OF_TABLE = {"layout.json", "preparation.skops"}
_PREFIX = "attachments/"
_ATTACHMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")

# ------------------------------------------------------------------------------------------
# The public functions
# ------------------------------------------------------------------------------------------


def save(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    staged: bool = False,
    attachments: dict[str, bytes] | None = None,
    dtype: Literal["float64", "float32", "float16", "int8"] | None = None,
    rows: Any = None,
) -> None:
    """Write a fitted estimator of this package to one file, without pickle.

    A Pipeline of this package's estimators and scikit-learn's own goes, too: the latter are stored
    by skops (the ``table`` extra), which holds no pickle either.

    The file holds the parameters, the chosen vectors, their coefficients and the loss paths: its
    size does not depend on the number of training rows. It is written beside its final place and
    moved there when it is complete, so an interrupted save leaves an older file as it was.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, or a Pipeline with one.
    path : str or path-like
        Where to write. An existing file is replaced.
    staged : bool, default=False
        Whether to keep the coefficients of every step, which `staged_predict`,
        `staged_decision_function` and `truncate` of the loaded model need, and the models of a
        ``frontier_``. With them the file grows with the square of the number of vectors, or by
        those models.
    attachments : dict of str to bytes, default=None
        Further data to store in the file; `load_attachments` gives it back.
    dtype : {None, "float64", "float32", "float16", "int8"}, default=None
        ``"float32"`` stores vectors and coefficients in single precision, which about halves the
        file; ``"float16"`` and ``"int8"`` in two bytes and in one, with two numbers for each column
        of the vectors and for each output. The largest change of an output by it is stored too, see
        `describe`. The loaded model computes in double precision with the rounded numbers. None: as
        the model is rounded (its ``precision_``, if it has one), else ``"float64"``.
    rows : array-like or CSR matrix of shape (n_rows, n_features), default=None
        Where numbers are rounded: the rows to measure that change on; None: the model's own
        vectors.

    Raises
    ------
    ValueError
        If a parameter or attribute cannot be stored. A kernel that is a Python function is the
        common case: a model file holds no code.

    Notes
    -----
    Of the functions in a `dictionary` of named functions the file holds the names; `load` takes
    the functions again.

    A parameter that holds a random generator is stored as None, a data frame as its array. A
    `dictionary` given as an array is a parameter, and is stored whole.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMatchingPursuitClassifier(n_components=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.pursuit")
    ...     save(model, path)
    ...     same = load(path)
    >>> bool((same.decision_function(X) == model.decision_function(X)).all())
    True
    """
    model = to_numpy(model)
    if hasattr(model, "as_stored"):  # a `TableModel`
        model, own = model.as_stored()
        attachments = {**own, **(attachments or {})}
    kept = _check_dtype(model, dtype, rows)
    encoder, tree = _encoded(model, staged)
    members = encoder.members
    written: dict[str, Any] = {}
    if kept != "float64" and dtype is None:  # the model is rounded so already: nothing changes
        narrow(tree, members, kept)
        written["rounded"] = {"dtype": kept}
    elif kept != "float64":
        rows = own_vectors(model, tree, members) if rows is None else read_rows(rows)
        small = _narrowed(encoder, tree, kept)
        written["rounded"] = {"dtype": kept, **largest_change(model, small, rows)}
    members |= _named(attachments or {})
    header = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": importlib.metadata.version("pursuit"),
        **written,
        "members": {k: {"bytes": len(v), "sha256": _digest(v)} for k, v in members.items()},
        "model": tree,
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > _MAX_JSON_BYTES:
        name = type(model).__name__
        raise ValueError(f"{name} holds too many Python values for a model file; use arrays.")
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for label, content in {"model.json": text, **members}.items():
            _write_member(archive, label, content)


def in_float32(model: BaseEstimator) -> Any:
    """Return the model that `load` would give if `save` stored this one in single precision.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package.

    Returns
    -------
    model : estimator
        A copy whose vectors and coefficients are rounded to 32-bit floats.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> from pursuit.model_file import in_float32
    >>> model = KernelMatchingPursuitClassifier(n_components=5).fit(*load_iris(return_X_y=True))
    >>> rounded = in_float32(model).dual_coef_
    >>> rounded.dtype, bool(0 < abs(rounded - model.dual_coef_).max() < 1e-6)
    (dtype('float64'), True)
    """
    return _narrowed(*_encoded(model, staged=False))


def _check_dtype(model: Any, dtype: Any, rows: Any) -> str:
    """Tell how numbers are written."""
    dtype = getattr(model, "precision_", "float64") if dtype is None else dtype
    if dtype not in PRECISIONS:
        raise ValueError(f"dtype must be one of {list(PRECISIONS)}, got {dtype!r}.")
    if rows is not None and dtype == "float64":
        raise ValueError("rows goes with a dtype that rounds numbers.")
    return str(dtype)


def _encoded(model: BaseEstimator, staged: bool) -> tuple[Encoder, Any]:
    """Return a model as a tree, and the encoder that holds its members."""
    name = type(model).__name__
    if not isinstance(model, BaseEstimator) or not is_ours(model):
        hint = "; a Pipeline goes, too, and skops.io.dump takes any other estimator"
        raise ValueError(f"save takes an estimator of pursuit, got {name}{hint}.")
    check_is_fitted(model)
    encoder = Encoder(name, staged)
    return encoder, encoder.encode(model, "")


def _narrowed(encoder: Encoder, tree: Any, dtype: str = "float32") -> Any:
    """Narrow the arrays of a tree in place, and return the model that it is now."""
    narrow(tree, encoder.members, dtype)
    version = importlib.metadata.version("pursuit")
    return Decoder(encoder.members.__getitem__, version, encoder.functions).decode(tree)


def _named(attachments: dict[str, bytes]) -> dict[str, bytes]:
    """Return attachments as members."""
    wrong = next((label for label in attachments if not _ATTACHMENT.fullmatch(label)), None)
    if wrong is not None:
        raise ValueError(
            f"attachments has the name {wrong!r}; letters, digits, '.', '_' and '-' are allowed"
        )
    return {f"{_PREFIX}{label}": bytes(content) for label, content in attachments.items()}


def load(
    path: str | os.PathLike[str],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    table: bool = True,
) -> Any:
    """Read a model that `save` wrote. Nothing in the file is run.

    Parameters
    ----------
    path : str or path-like
        The file.
    functions : mapping of str to callable, default=None
        The functions that the model was fitted with, by name, where its `dictionary` had some.
        `describe` tells the names.
    table : bool, default=True
        Whether the model of a table (`TableModel`, and what ``pursuit fit`` writes) comes whole, to
        predict for raw rows, which needs the ``table`` extra. False gives the estimator alone,
        which takes prepared features.

    Returns
    -------
    model : estimator
        The fitted estimator; its predictions equal those of the saved one.

    Raises
    ------
    ModelFileError
        If the file is damaged, cut off, from another program or from another schema version, or
        if it names functions that are not among `functions`.
    OSError
        If the file cannot be opened.

    Examples
    --------
    See also `save`.

    >>> import tempfile, os
    >>> import numpy as np
    >>> from pursuit import KernelMatchingPursuitRegressor, load, save
    >>> def trend(X):
    ...     return X[:, 0]
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> parts = [None, {"trend": trend}]
    >>> model = KernelMatchingPursuitRegressor(2, dictionary=parts).fit(X, np.exp(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "line.pursuit")
    ...     save(model, path)
    ...     same = load(path, functions={"trend": trend})
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    given = dict(functions or {})
    for name, function in given.items():
        if not callable(function):
            raise ValueError(f"functions: {name!r} must be a function, got {function!r}")
    with _reading(path) as reader:
        tree = reader.header["model"]
        missing = [name for name in function_names(tree) if name not in given]
        if missing:
            wanted = ", ".join(f"{name!r}: ..." for name in missing)
            raise ModelFileError(
                f"names functions, which a model file does not hold; give them again: "
                f"load(path, functions={{{wanted}}})"
            )
        model = Decoder(reader.member, reader.header["version"], given).decode(tree)
        if not isinstance(model, BaseEstimator):
            raise ModelFileError("holds no estimator")
        attachments = reader.attachments() if table else {}
    if attachments.keys() >= _OF_TABLE:
        return class_of("TableModel").from_stored(path, model, attachments)
    return model


def load_attachments(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Read what `save` stored beside the model, without building the model.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    attachments : dict of str to bytes
        Empty if there are none. The bytes are those that were saved: their digests are checked.

    Raises
    ------
    ModelFileError
        As in `load`.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier, save
    >>> from pursuit.model_file import load_attachments
    >>> model = KernelMatchingPursuitClassifier(n_components=5).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.pursuit")
    ...     save(model, path, attachments={"note.txt": b"first try"})
    ...     load_attachments(path)
    {'note.txt': b'first try'}
    """
    with _reading(path) as reader:
        return reader.attachments()


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Say what a model file holds, without building the model or reading its arrays.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    description : dict
        ``class``, ``version`` (of pursuit, when it was written), ``schema``, ``bytes``, ``params``
        (names to plain values; kernels and arrays in words), ``fitted`` (the same for fitted
        attributes without arrays), ``shapes`` (names of arrays to their shapes), ``functions``
        (the names of those that `load` wants), ``attachments`` (names to bytes), and ``rounded``:
        None, or of a model whose numbers were rounded how far its outputs are from those of the
        model that was saved, as a dict of ``dtype``, ``output`` (the method), ``largest_change``,
        ``largest_output`` (in absolute value) and ``n_rows``, the number of rows this was measured
        on; of ``dtype`` alone where the model was rounded before.

    Raises
    ------
    ModelFileError
        As in `load`.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import KernelMatchingPursuitClassifier, save
    >>> from pursuit.model_file import describe
    >>> model = KernelMatchingPursuitClassifier(n_components=5).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.pursuit")
    ...     save(model, path)
    ...     about = describe(path)
    >>> about["class"], about["shapes"]["support_vectors_"]
    ('KernelMatchingPursuitClassifier', (5, 4))
    """
    with _reading(path) as reader:
        header, model = reader.header, reader.header["model"]
        members = header["members"].items()
        state = {k: v for k, v in model["state"].items() if v is not None}
        return {
            "class": str(model["class"]),
            "version": str(header["version"]),
            "schema": SCHEMA,
            "bytes": Path(path).stat().st_size,
            "params": {name: in_words(node) for name, node in model["params"].items()},
            "fitted": {k: in_words(v) for k, v in state.items() if not holds_arrays(v)},
            "shapes": array_shapes(state),
            "functions": function_names(model),
            "rounded": header.get("rounded"),
            "attachments": {
                k.removeprefix(_PREFIX): entry["bytes"]
                for k, entry in members
                if k.startswith(_PREFIX)
            },
        }


# ------------------------------------------------------------------------------------------
# The archive
# ------------------------------------------------------------------------------------------


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_member(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Store one member; deflated where that saves a tenth and unfolds within the limit."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, 0o644 << 16
    packed = len(zlib.compress(content, 6)) - 6
    deflate = len(content) / MAX_RATIO < packed < 0.9 * len(content)
    info.compress_type = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    archive.writestr(info, content, compresslevel=6)


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[_Reader]:
    """Open a model file; whatever is wrong with its content becomes a `ModelFileError`."""
    with open(path, "rb") as stream:
        try:
            yield _Reader(stream)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)} {error}.") from error.__cause__
        except Exception as error:  # zipfile, zlib, json, numpy each have errors of their own
            reason = str(error) or type(error).__name__
            raise ModelFileError(f"{os.fspath(path)} is damaged: {reason}.") from error


def _open_archive(stream: IO[bytes]) -> zipfile.ZipFile:
    start = stream.read(4)
    try:
        archive = zipfile.ZipFile(stream)
    except Exception as error:
        begun = {b"": "is empty", b"PK\x03\x04": "is cut off or damaged"}
        raise ModelFileError(begun.get(start, "is not a pursuit model file")) from error
    if "model.json" not in archive.namelist():
        raise ModelFileError("is a ZIP file of another program, not a pursuit model file")
    return archive


def _checked_header(header: Any) -> dict[str, Any]:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("is a ZIP file of another program, not a pursuit model file")
    if header["schema"] != SCHEMA:
        raise ModelFileError(
            f"was written by pursuit {header['version']} with schema {header['schema']}; the "
            f"installed pursuit {importlib.metadata.version('pursuit')} reads schema {SCHEMA}. "
            "Install the version that wrote it"
        )
    return header


class _Reader:
    """An open model file: its header, and members that agree with their length and digest."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._archive = _open_archive(stream)
        self._bytes_on_disk = os.fstat(stream.fileno()).st_size
        check_claims(self._archive, self._bytes_on_disk, _SLACK)
        text = self._unfold("model.json", _MAX_JSON_BYTES)
        self.header = _checked_header(json.loads(text))
        self._members: dict[str, dict[str, Any]] = self.header["members"]
        names = self._archive.namelist()
        if sorted(names) != sorted(["model.json", *self._members]):
            raise ModelFileError("is damaged: members are missing or were added")

    def _unfold(self, name: str, limit: int) -> bytes:
        """Read one member, never more than its stated length and the limits."""
        info = self._archive.getinfo(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"is damaged: {name} is packed in an unknown way")
        packed = min(info.compress_size, self._bytes_on_disk)
        if info.file_size > min(limit, MAX_RATIO * packed + _SLACK):
            raise ModelFileError(f"is damaged: {name} claims {info.file_size} bytes")
        return unfold(self._archive, name)

    def member(self, name: str) -> bytes:
        entry = self._members[name]
        content = self._unfold(name, entry["bytes"])
        if (len(content), _digest(content)) != (entry["bytes"], entry["sha256"]):
            raise ModelFileError(f"is damaged: the length or the digest of {name} differs")
        return content

    def attachments(self) -> dict[str, bytes]:
        names = [name for name in self._members if name.startswith(_PREFIX)]
        return {name.removeprefix(_PREFIX): self.member(name) for name in names}
