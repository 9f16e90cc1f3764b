"""Kernel values of rows with vectors, and sums of them under the squared error, on a device.

The two sums over rows that an evaluation of the energy W(Z) asks for
(``variable_projection.py``), for the Gaussian, by the equations of ``kernel_blocks.py``:

1. K'WK and K'W(Y, 1), for the best coefficients;
2. with these, G = 2 w (K B + b - Y), and the slopes of sum(G * F) in Z, log(gamma) and A.

The rows are moved to the device once for each table; K is evaluated block by block, for each of the
two sums, in float64 where the device has it. What comes to the host are the sums, and G (n, T).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pursuit._arrays import alike, as_wide, namespace_of, to_numpy
from pursuit._typing import Array
from pursuit.linalg import blocks
from pursuit.optimize.kernel_blocks import LOWEST, Place, Table

__all__ = ["DeviceValues"]

# The rows of each table, while it is in use.
_rows: WeakKeyDictionary[Table, Any] = WeakKeyDictionary()


class DeviceValues:
    """K of a table and vectors of a Gaussian.

    Parameters
    ----------
    table : Table
        Rows.
    place : Place
        A Gaussian, vectors, and a map or None.
    device : device array
        Where to compute.
    """

    def __init__(self, table: Table, place: Place, device: Any) -> None:
        if table not in _rows:
            _rows[table] = as_wide(alike(np.array(table.block(slice(None))), device))
        self.X, self.table, self.place = _rows[table], table, place
        self.xp, self.gamma = namespace_of(device), float(vars(place.kernel)["gamma"])
        self.Z = self._moved(place.Z)
        self.A = None if place.A is None else self._moved(place.A)

    def _moved(self, array: Array) -> Any:
        """An array on the device."""
        return as_wide(alike(array, self.X))

    def _blocks(self) -> Iterator[tuple[slice, Any, Any, Any]]:
        """Rows x, their coordinates u, and K."""
        xp, gamma, lowest = self.xp, self.gamma, LOWEST[np.dtype(np.float64)]
        lengths = gamma * xp.sum(self.Z * self.Z, axis=1)
        for rows in blocks.row_blocks(self.X.shape[0], 32.0 * (self.Z.shape[0] + 1)):
            X = self.X[rows, :]
            U = X if self.A is None else X * self.A if self.A.ndim == 1 else X @ self.A
            own = gamma * xp.sum(U * U, axis=1)
            powers = 2.0 * gamma * (U @ self.Z.T) - lengths - own[:, None]  # eq. 1
            yield rows, X, U, xp.exp(xp.clip(powers, lowest, 0.0)) - float(np.exp(lowest))

    def normal_sums(self, Y: Array, weights: Array) -> tuple[Array, Array]:
        """K'WK and K'W(Y, 1), (N, N) and (N, T + 1)."""
        right = self._moved(np.hstack([Y, np.ones((len(Y), 1))]))
        w = self._moved(weights)[:, None]
        square: Any = 0.0
        cross: Any = 0.0
        for rows, _, _, K in self._blocks():
            weighted = K * w[rows, :]
            square = square + K.T @ weighted
            cross = cross + weighted.T @ right[rows, :]
        return _wide(square), _wide(cross)

    def slopes(
        self, fitted: Any, Y: Array, weights: Array, *, wanted: tuple[bool, bool]
    ) -> tuple[Array, Array, float, Array | None]:
        """G, and the slopes of sum(G * F) in Z, log(gamma) and A; `wanted`: in gamma, in A.

        `fitted` holds B and b.
        """
        xp, gamma, Z, A = self.xp, self.gamma, self.Z, self.A
        B, b, targets, w = (self._moved(each) for each in (fitted.B, fitted.b, Y, weights))
        G: list[Any] = []
        MU: Any = 0.0
        columns: Any = 0.0
        in_A: Any = 0.0
        total = 0.0
        for rows, X, U, K in self._blocks():
            G.append(2.0 * w[rows][:, None] * (K @ B + b - targets[rows, :]))
            M = (G[-1] @ B.T) * K
            MU, columns = MU + M.T @ U, columns + xp.sum(M, axis=0)  # eq. 2
            of_rows = xp.sum(M, axis=1)
            total += float(xp.sum(of_rows * xp.sum(U * U, axis=1))) if wanted[0] else 0.0
            if A is not None and wanted[1]:
                in_U = 2.0 * gamma * (M @ Z - of_rows[:, None] * U)  # eq. 5
                in_A = in_A + (xp.sum(X * in_U, axis=0) if A.ndim == 1 else X.T @ in_U)
        in_Z = 2.0 * gamma * (MU - columns[:, None] * Z)  # eq. 3
        lengths = xp.sum(Z * Z, axis=1)
        in_gamma = gamma * (2.0 * float(xp.sum(MU * Z)) - total - float(xp.sum(columns * lengths)))
        log_gamma = in_gamma if wanted[0] else 0.0  # eq. 4
        return _wide(xp.concat(G)), _wide(in_Z), log_gamma, _wide(in_A) if wanted[1] else None


def _wide(array: Any) -> Array:
    """A device array on the host, in float64."""
    return to_numpy(array).astype(np.float64, copy=False)
