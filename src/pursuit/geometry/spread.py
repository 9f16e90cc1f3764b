"""The variance of all entries of weighted rows that come in parts, for ``gamma="scale"``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from pursuit._typing import Array

__all__ = ["Spread"]

BLOCK_ROWS = 4_096


class Spread:
    """Sums of entries and of their squares, from a centre near the first rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.geometry.spread import Spread
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> found = Spread().add(X[:1], np.ones(1)).add(X[1:], np.ones(2)).variance
    >>> bool(abs(found - X.var()) < 1e-14)
    True
    """

    def __init__(self) -> None:
        self.n_entries = self.first = self.second = 0.0
        self.centre: float | None = None

    def add(self, X: Any, weights: Array) -> Self:
        """Add rows.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n_rows, n_features)
            The rows.
        weights : ndarray of shape (n_rows,)
            A weight of 2 counts as the row twice.
        """
        if self.centre is None:
            self.centre = 0.0 if sparse.issparse(X) else float(np.asarray(X[0], np.float64).mean())
        weight = float(weights.sum()) * X.shape[1]
        if sparse.issparse(X):
            self._add_sums(*_sparse_sums(X, weights), weight)
        else:
            for start in range(0, X.shape[0], BLOCK_ROWS):
                part = slice(start, start + BLOCK_ROWS)
                block = np.asarray(X[part], dtype=np.float64) - self.centre
                self.first += float(weights[part] @ block.sum(axis=1))
                self.second += float(weights[part] @ np.einsum("ij,ij->i", block, block))
        self.n_entries += weight
        return self

    def merge(self, other: Spread, times: float = 1.0) -> Self:
        """Add the rows of another, each so many times; the other stays as it is."""
        if other.centre is None:
            return self
        if self.centre is None:
            self.centre = other.centre
        weight, first = times * other.n_entries, times * other.first
        shift = other.centre - self.centre
        self.second += times * other.second + shift * (2.0 * first + shift * weight)
        self.first += first + shift * weight
        self.n_entries += weight
        return self

    def _add_sums(self, first: float, second: float, weight: float) -> None:
        """Add sums that are measured from zero."""
        centre = self.centre or 0.0
        self.second += second + centre * (centre * weight - 2.0 * first)
        self.first += first - centre * weight

    @property
    def variance(self) -> float:
        """Of all entries."""
        return self.second / self.n_entries - (self.first / self.n_entries) ** 2


def _sparse_sums(X: Any, weights: Array) -> tuple[float, float]:
    """Weighted sums of the entries and of their squares."""
    squares = X.multiply(X)
    ones = np.ones(X.shape[1])
    return float(weights @ (X @ ones)), float(weights @ (squares @ ones))
