"""A Parquet file as blocks of rows, for `fit_blocks`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pursuit._validation import check_integer

__all__ = ["ParquetBlocks"]


class ParquetBlocks:
    """The rows of a Parquet file, block by block: numbers as features, a column as target.

    Can be iterated again and again. In memory is a block and what the file keeps together (a row
    group). It needs polars: ``pip install 'pursuit[table]'``.

    Parameters
    ----------
    path : str or path-like
        The file.
    target : str
        Column to predict.
    features : sequence of str, default=None
        Columns of numbers, in this order. None: all but the target and the weights.
    weight : str, default=None
        Column of sample weights.
    n_rows : int, default=65536
        Rows of a block.

    Attributes
    ----------
    features : list of str
        The columns of X.
    height : int
        Rows of the file.

    Raises
    ------
    ValueError
        If there is no such file or column, or a feature holds something else than numbers.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> import polars as pl
    >>> from pursuit import ParquetBlocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.parquet")
    ...     pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0, 1, 0], "y": [4, 5, 6]}).write_parquet(path)
    ...     [(X.tolist(), y.tolist()) for X, y in ParquetBlocks(path, "y", n_rows=2)]
    [([[1.0, 0.0], [2.0, 1.0]], [4, 5]), ([[3.0, 0.0]], [6])]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        n_rows: int = 65_536,
    ) -> None:
        check_integer("n_rows", n_rows)
        self.path, self.target, self.weight, self.n_rows = str(path), target, weight, n_rows
        frame = _scanned(self.path)
        schema = frame.collect_schema()
        given = [target, weight, *(features or ())]
        unknown = [name for name in given if name is not None and name not in schema]
        if unknown:
            raise ValueError(f"{self.path}: no column {unknown[0]!r}")
        named = [name for name in schema if name not in (target, weight)]
        self.features = list(named if features is None else features)
        truth = _polars().Boolean
        types = {name: schema[name] for name in self.features}
        other = [name for name, type in types.items() if not (type.is_numeric() or type == truth)]
        if other or not self.features:
            what = f"column {other[0]!r} holds no numbers" if other else "no column of features"
            raise ValueError(f"{self.path}: {what}; name the columns of numbers as features")
        self.height = int(frame.select(_polars().len()).collect().item())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Blocks (X, y), or (X, y, weight)."""
        columns = [*self.features, self.target, *([self.weight] if self.weight else [])]
        for start in range(0, self.height, self.n_rows):
            part = _scanned(self.path).select(columns).slice(start, self.n_rows).collect()
            X = self._numbers(part)
            y = part[self.target].to_numpy()
            yield (X, y, part[self.weight].to_numpy()) if self.weight else (X, y)

    def _numbers(self, part: Any) -> NDArray[Any]:
        """The features of a block, row by row; a missing one is NaN."""
        X = np.empty((part.height, len(self.features)))
        for j, name in enumerate(self.features):
            X[:, j] = part[name].cast(float).to_numpy()
        return X


def _polars() -> Any:
    """The library that reads the file."""
    if find_spec("polars") is None:
        raise ImportError("ParquetBlocks needs polars: pip install 'pursuit[table]'")
    import polars

    return polars


def _scanned(path: str) -> Any:
    """The file, nothing read yet."""
    if not os.path.exists(path):
        raise ValueError(f"{path}: no such file")
    return _polars().scan_parquet(path)
