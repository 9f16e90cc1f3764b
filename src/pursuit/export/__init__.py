"""Fitted models outside Python: as C99, and as plain values from which others are written."""

from pursuit.export.c_header import Header, to_c
from pursuit.export.machine_code import CompiledModel, compiled
from pursuit.export.plain_model import PlainModel
from pursuit.export.read_model import plain

__all__ = ["CompiledModel", "Header", "PlainModel", "compiled", "plain", "to_c"]
