"""What a report consists of: sections of text, tables, pictures and code, in no format yet."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Code", "Part", "Picture", "Section", "Table", "Text", "brief"]


@dataclass(frozen=True)
class Text:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines of Python."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of cells, as they shall stand there; the first column names the row."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A figure, and what it shows in words.

    Attributes
    ----------
    name : str
        Of letters, digits and hyphens: a file's name.
    figure : matplotlib Figure
        The figure.
    alt : str
        What there is to see, for those who cannot see it.
    """

    name: str
    figure: Any
    alt: str

    def drawn(self, form: str) -> bytes:
        """The picture in a format of matplotlib; the same bytes each time.

        Parameters
        ----------
        form : {"svg", "png"}
            The format.
        """
        import matplotlib

        stream = io.BytesIO()
        options = {"metadata": {"Date": None}} if form == "svg" else {"dpi": 144}
        with matplotlib.rc_context({"svg.hashsalt": self.name}):
            self.figure.savefig(stream, format=form, **options)
        return stream.getvalue()


Part = Text | Code | Table | Picture


@dataclass(frozen=True)
class Section:
    """A title and what stands below it."""

    title: str
    parts: tuple[Part, ...]


def brief(value: Any) -> str:
    """A kernel or a loss as text: numbers with four digits, of arrays their shape."""
    parts = [f"{name}={_number(part)}" for name, part in vars(value).items()]
    return f"{type(value).__name__}({', '.join(parts)})"


def _number(value: Any) -> str:
    """A parameter as text."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)
