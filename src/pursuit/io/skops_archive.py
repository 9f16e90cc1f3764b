"""Objects of scikit-learn as bytes of skops, and back: no pickle, and only trusted types.

A file of skops names the types of what it holds, and its reader says which of them may be built.
Here these are the types that skops trusts by itself and those that a caller adds; a file that names
any other is refused before anything in it is built. Equal objects give equal bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import skops.io

from pursuit.io.files import check_claims, unfold

__all__ = ["TRUSTED", "UntrustedType", "checked_archive", "from_skops", "to_skops"]

#: A file of skops may unfold to so many bytes, however short it is: of features that are all equal
#: the means and widths are.
SLACK = 2**26

_PROCESS = "sklearn.gaussian_process.kernels"
#: Types that an object of scikit-learn may hold beside those that skops trusts by itself.
#: Reviewed: constructing them from stored attributes runs no code and opens nothing.
TRUSTED = (
    "numpy.dtype",
    *(f"{_PROCESS}.{name}" for name in ("ConstantKernel", "Product", "RBF", "Sum", "WhiteKernel")),
)


class UntrustedType(ValueError):
    """A file of skops names a type that is not trusted; its name is the message."""


def to_skops(estimator: Any) -> bytes:
    """Return a fitted estimator of scikit-learn as a compressed file of skops."""
    content = skops.io.dumps(estimator, compression=zipfile.ZIP_DEFLATED, compresslevel=6)
    return _without_addresses(content)


def from_skops(content: bytes, trusted: Collection[str] = TRUSTED) -> Any:
    """Return what a file of skops holds.

    Parameters
    ----------
    content : bytes
        The file.
    trusted : collection of str, default=TRUSTED
        Names of types beside those that skops trusts by itself.

    Raises
    ------
    UntrustedType
        If the file names another type.
    Exception
        Of many kinds, if it is damaged or of another program.
    """
    content = checked_archive(content)
    foreign = sorted(set(skops.io.get_untrusted_types(data=content)) - set(trusted))
    if foreign:
        raise UntrustedType(foreign[0])
    return skops.io.loads(content, trusted=list(trusted))


def checked_archive(content: bytes) -> bytes:
    """Return a file of skops unfolded, or raise a ValueError if that is longer than is plausible.

    What skops then reads claims its true length.
    """
    unfolded = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as packed, zipfile.ZipFile(unfolded, "w") as archive:
        check_claims(packed, len(content), SLACK)
        for name in packed.namelist():
            archive.writestr(name, unfold(packed, name))
    return unfolded.getvalue()


def _without_addresses(content: bytes) -> bytes:
    """Number the objects of a file of skops in their order, in place of their addresses."""
    names: dict[str, str] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = _renumbered(json.loads(members.pop("schema.json")), {}, names)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {names.get(name, name): part for name, part in members.items()}
        for name, part in sorted({"schema.json": json.dumps(schema).encode(), **files}.items()):
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(info, part, zipfile.ZIP_DEFLATED, 6)
    return packed.getvalue()


def _renumbered(node: Any, ids: dict[int, int], names: dict[str, str]) -> Any:
    """The tree of a schema with small numbers for addresses; `names` collects the new names."""
    if isinstance(node, list):
        return [_renumbered(item, ids, names) for item in node]
    if not isinstance(node, dict):
        return node
    node = dict(node)
    if isinstance(node.get("__id__"), int):
        node["__id__"] = ids.setdefault(node["__id__"], len(ids))
    if isinstance(node.get("file"), str):
        file = node["file"]
        node["file"] = names.setdefault(file, f"{len(names)}{Path(file).suffix}")
    return {key: _renumbered(item, ids, names) for key, item in node.items()}
