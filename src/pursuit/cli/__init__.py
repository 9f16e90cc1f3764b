"""The command line."""

from pursuit.cli.app import main

__all__ = ["main"]
