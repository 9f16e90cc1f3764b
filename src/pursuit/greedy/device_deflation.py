"""The greedy choice of ``deflation.py`` with the columns of the kernel matrix on a device.

The pivots, d and the rows of V (n m numbers) are those of `Deflation` on the host; a step brings
one column there. Beside them V lies on the device, where the columns that a rule compares are
evaluated, deflated and scored, and where exact scores keep K or evaluate it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scipy import sparse

from pursuit._arrays import alike, as_wide, beside, namespace_of, to_numpy
from pursuit._typing import Array
from pursuit.greedy.deflation import Deflation, KernelMatrix
from pursuit.kernels import Kernel, Precomputed, check_values
from pursuit.linalg import blocks
from pursuit.linalg.partial_cholesky import FIRST_CAPACITY

__all__ = ["deflation_of"]


def deflation_of(kernel: Kernel, X: Any, weights: Array) -> Deflation:
    """The factorisation of a kernel matrix, on the device that is in use for dense rows."""
    place = beside()
    if place is None or sparse.issparse(X):
        return Deflation(kernel, X, weights)
    return DeviceDeflation(kernel, X, weights, place)


class DeviceDeflation(Deflation):
    """`Deflation`, whose columns come from a device.

    Parameters
    ----------
    kernel, X, weights
        See `Deflation`; of NumPy.
    place : device array
        Where to compute.
    """

    def __init__(self, kernel: Kernel, X: Any, weights: Array, place: Any) -> None:
        super().__init__(kernel, X, weights)
        self.rows, self.shares = as_wide(alike(X, place)), as_wide(alike(weights, place))
        self._mirror = self._room(FIRST_CAPACITY)

    def _room(self, n_rows: int) -> Any:
        """Room for rows of V on the device."""
        w = self.shares
        shape = (n_rows, w.shape[0])
        return namespace_of(w).zeros(shape, dtype=w.dtype, device=w.device)

    def kernel_values(self, part: slice) -> Any:
        """K between some rows and all of them, on the device."""
        rows = self.rows[part, :]
        if isinstance(self.kernel, Precomputed):
            return rows
        return check_values(self.kernel, self.kernel(rows, self.rows))

    def kernel_matrix(self) -> KernelMatrix:
        """K, for products with all of it."""
        return _DeviceMatrix(self)

    def _on_device(self, indices: Array) -> Any:
        """K^[:, indices] on the device."""
        xp, chosen = namespace_of(self.rows), alike(indices, self.rows)
        centres = chosen
        if not isinstance(self.kernel, Precomputed):
            centres = xp.take(self.rows, chosen, axis=0)
        columns = check_values(self.kernel, self.kernel(self.rows, centres))
        V = self._mirror[: len(self), :]
        return columns - V.T @ xp.take(V, chosen, axis=1)

    def columns(self, indices: Array) -> Array:
        """K^[:, indices], (m, len(indices))."""
        return to_numpy(self._on_device(indices))

    def scored_columns(self, indices: Array) -> tuple[Any, Array]:
        """K^[:, indices], which stay on the device, and c of these points."""
        columns = self._on_device(indices)
        return columns, to_numpy(self.shares @ (columns * columns))

    def deflate(self, pivot: int, column: Array) -> None:
        """Choose a point, whose column of K^ is given (eq. 3)."""
        super().deflate(pivot, column)
        n = len(self)
        if n > self._mirror.shape[0]:
            self._mirror = namespace_of(self._mirror).concat([self._mirror, self._room(n)])
        self._mirror[n - 1, :] = as_wide(alike(self.V[n - 1], self.rows))


class _DeviceMatrix(KernelMatrix):
    """Products with K on the device."""

    def __init__(self, deflation: DeviceDeflation) -> None:
        m = len(deflation.diagonal)
        self.on_device = deflation
        whole = slice(0, m)
        self.parts = [whole] if blocks.fits(8.0 * m * m) else list(blocks.row_blocks(m, 8.0 * m))
        self.kept = deflation.kernel_values(whole) if self.parts == [whole] else None

    def _rows(self) -> Iterator[Any]:
        """K, block by block."""
        for part in self.parts:
            yield self.on_device.kernel_values(part) if self.kept is None else self.kept

    def squares(self, weights: Array) -> Array:
        """sum_j w_j K[i,j]^2 of each row."""
        shares = self.on_device.shares
        sums = [(K * K) @ shares for K in self._rows()]
        return to_numpy(namespace_of(shares).concat(sums))

    def times(self, vector: Array) -> Array:
        """K vector."""
        v = as_wide(alike(vector, self.on_device.rows))
        return to_numpy(namespace_of(v).concat([K @ v for K in self._rows()]))
