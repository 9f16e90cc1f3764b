"""Fitted models outside Python: a plain description that other languages are written from."""

from pursuit.export.plain_model import PlainModel
from pursuit.export.read_model import plain

__all__ = ["PlainModel", "plain"]
