"""Fitted models outside Python: as C99, and as plain values from which others are written."""

from pursuit.export.compiled import CompiledModel, compiled
from pursuit.export.plain_model import PlainModel
from pursuit.export.read_model import plain
from pursuit.export.to_c import Header, to_c

__all__ = ["CompiledModel", "Header", "PlainModel", "compiled", "plain", "to_c"]
