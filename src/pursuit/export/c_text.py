"""Words and numbers as C99 text that no compiler and no old preprocessor reads otherwise."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pursuit._typing import Array

__all__ = ["array", "comment", "identifier", "number", "string"]

C_TYPES = {"float32": "float", "int16": "int16_t", "int8": "int8_t", "int32": "int"}
WIDTH = 100
# C99 promises string literals of so many characters.
LONGEST_STRING = 1000


def identifier(path: Any) -> str:
    """A name for the functions of a model, from that of its file.

    Examples
    --------
    >>> from pursuit.export.c_text import identifier
    >>> identifier("models/3 digits-v2.h")
    'model_3_digits_v2'
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", Path(path).name.removesuffix(".h")).strip("_").lower()
    return name if name[:1].isalpha() else f"model_{name}".rstrip("_")


def string(text: str) -> str:
    r"""A string literal in UTF-8; what is not plain ASCII, quotes and ``?`` as octal escapes.

    Examples
    --------
    >>> from pursuit.export.c_text import string
    >>> print(string('a "b" é??/'))
    "a \042b\042 \303\251\077\077/"

    Raises
    ------
    ValueError
        If it holds the zero byte, at which C ends a text, or is too long for a literal.
    """
    content = text.encode("utf-8", "surrogateescape")
    if b"\0" in content or len(content) > LONGEST_STRING:
        raise ValueError(f"export: the name {text[:20]!r}... has a zero byte or is too long for C")
    return '"' + "".join(map(_character, content)) + '"'


def _character(byte: int) -> str:
    """A byte within a literal."""
    plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
    return chr(byte) if plain else f"\\{byte:03o}"


def comment(lines: Iterable[str]) -> str:
    """A comment of lines that nothing within them ends.

    Examples
    --------
    >>> from pursuit.export.c_text import comment
    >>> print(comment(["a */ b", "c"]))
    /*
     * a * / b
     * c
     */
    """
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(_harmless(line), WIDTH - 3, subsequent_indent="    ") or [""]
    ]
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in wrapped), " */"])


def _harmless(line: str) -> str:
    """Plain ASCII without the ends of comments, trigraphs and line continuations."""
    line = line.encode("ascii", "backslashreplace").decode()
    line = re.sub(r"[^ -~]", " ", line).replace("\\", "|")
    return re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", line)


def number(value: Any) -> str:
    """A float in the fewest digits that give it back.

    Examples
    --------
    >>> from pursuit.export.c_text import number
    >>> number(0.1), number(16), number(-1e-20)
    ('0.1f', '16.0f', '-1e-20f')
    """
    return f"{np.float32(value)!s}f"


def array(name: str, values: Array, flash: str = "PURSUIT_FLASH") -> str:
    """The definition of a constant array, row after row.

    Parameters
    ----------
    name : str
        What it is called.
    values : ndarray of float32, int16, int8 or int32
        Numbers, at least one.
    flash : str
        A macro behind the size.
    """
    texts = map(number if values.dtype.kind == "f" else str, values.ravel().tolist())
    body = textwrap.fill(", ".join(texts), WIDTH, initial_indent="    ", subsequent_indent="    ")
    kind = C_TYPES[values.dtype.name]
    return f"static const {kind} {name}[{values.size}]{flash and ' ' + flash} = {{\n{body}}};\n"
