"""The command ``pursuit export``: a model file out of Python, as C or as ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pursuit.cli.options import EXISTING, UsageFault, argument, option, require_folder, show
from pursuit.cli.reporting import say

__all__ = ["Export"]

SUFFIXES = {"c": ".h", "onnx": ".onnx"}
DTYPES = {"c": ("float32", "int16", "int8"), "onnx": ("float32", "float64")}
# So many names of inputs are told.
MOST_NAMES = 20


@dataclass
class Export:
    """Write a model as one C99 header, or as ONNX.

    The inputs are the numbers of a table as they are, scaled inside, a 0 or 1 for each text that a
    column may hold, and the parts of dates; a note names them in their order.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "pursuit export churn.pursuit --to c",
        "pursuit export churn.pursuit --to c --dtype int8 -o small.h --max-bytes 4000",
        "pursuit export fee.pursuit --to onnx --output fee.onnx",
    )

    model: Path = argument("A model file.", **EXISTING)
    to: Literal["c", "onnx"] = option("What to write.", default="c")
    output: Path | None = option(
        "File to write; by default the model's name with .h or .onnx.",
        "--output",
        "-o",
        default=None,
    )
    dtype: Literal["float32", "float64", "int16", "int8"] = option(
        "How numbers are stored: float32, int16 and int8 go with c, float32 and float64 with onnx.",
        default="float32",
    )
    max_bytes: int | None = option(
        "With c: the most bytes that the constant arrays may take.", default=None, min=1
    )

    def run(self) -> None:
        """Read, convert, write, report."""
        from pursuit import load

        output = self.output or self.model.with_suffix(SUFFIXES[self.to])
        self._check(output)
        model, inputs = exported(load(self.model))
        more = f" and {len(inputs) - MOST_NAMES} more" if len(inputs) > MOST_NAMES else ""
        say([f"inputs, in this order: {', '.join(inputs[:MOST_NAMES])}{more}"] if inputs else [])
        rows = (self._c if self.to == "c" else self._onnx)(model, output)
        show(["", str(output)], [*rows, ("bytes on disk", f"{output.stat().st_size:,}")])

    def _check(self, output: Path) -> None:
        """Refuse options that do not go together before any work."""
        require_folder(output)
        if self.dtype not in DTYPES[self.to]:
            names = ", ".join(DTYPES[self.to])
            raise UsageFault(f"--dtype {self.dtype}: for --to {self.to} there are {names}")
        if self.max_bytes is not None and self.to != "c":
            raise UsageFault("--max-bytes goes with --to c only")

    def _c(self, model: Any, output: Path) -> list[tuple[str, Any]]:
        """Write C, and say what it takes."""
        from pursuit.export import to_c

        header = to_c(model, output, dtype=self.dtype, max_bytes=self.max_bytes)
        return [("names begin with", header.name), ("bytes of constants", f"{header.n_bytes:,}")]

    def _onnx(self, model: Any, output: Path) -> list[tuple[str, Any]]:
        """Write ONNX, and say what goes in and comes out."""
        from pursuit.model_file import replacing
        from pursuit.onnx import to_onnx

        try:
            converted = to_onnx(model, dtype="float64" if self.dtype == "float64" else "float32")
        except ImportError as missing:
            raise UsageFault(str(missing)) from missing
        with replacing(output) as stream:
            stream.write(converted.SerializeToString())
        ends = ("inputs", converted.graph.input), ("outputs", converted.graph.output)
        return [(title, ", ".join(part.name for part in parts)) for title, parts in ends]


def exported(model: Any) -> tuple[Any, list[str]]:
    """Return what is exported of a model, and the names of its inputs if it is one of a table.

    Parameters
    ----------
    model : estimator
        What `pursuit.load` gave.

    Returns
    -------
    model : estimator or PlainModel
        The estimator, or the record of a table's, which scales numbers itself.
    inputs : list of str
        Names of numbers as they are in the table, and of features of text and dates.
    """
    from sklearn.pipeline import make_pipeline

    from pursuit.export import plain

    if not hasattr(model, "preparation_"):
        return model, []
    record = plain(make_pipeline(model.preparation_, model.estimator_))
    return record, list(map(str, record.features or ()))
