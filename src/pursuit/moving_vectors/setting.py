"""Where a search takes place: the kernel, and coordinates in which vectors move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit.kernels import Kernel
from pursuit.linalg.rounding import rounded
from pursuit.moving_vectors.projected import mapped
from pursuit.optimize.kernel_blocks import Place

__all__ = ["Setting"]


class Setting(NamedTuple):
    """Where a search takes place.

    Attributes
    ----------
    kernel : Kernel
        With its numbers.
    centre : ndarray of shape (d,)
        Origin of the coordinates.
    scale : ndarray or None
        A map that stays as it is.
    A : ndarray or None
        A map that moves with the vectors.
    columns : ndarray of int or None
        Those that are not constant, where there is no map.
    """

    kernel: Kernel
    centre: Array
    scale: Array | None
    A: Array | None
    columns: Array | None = None

    def searched(self, Z: Array) -> Array:
        """Vectors in the coordinates of the search, from those of X."""
        scale = self.scale if self.A is None else self.A
        if scale is not None:
            return np.asarray(mapped(Z, scale) - self.offset(scale))
        shifted = np.asarray(Z, dtype=np.float64) - self.centre
        return shifted if self.columns is None else shifted[:, self.columns]

    def unsearched(self, Z: Array) -> Array:
        """Vectors in the coordinates of X, where there is no map."""
        if self.columns is None:
            return np.asarray(Z + self.centre)
        whole = np.tile(self.centre, (len(Z), 1))
        whole[:, self.columns] += Z
        return whole

    def offset(self, scale: Array) -> Array:
        """The centre through a map."""
        return mapped(self.centre[None], scale)

    def rounded(self, place: Place, precision: str) -> tuple[Setting, Place]:
        """The setting and the place whose stored numbers are rounded; a diagonal is in float32."""
        scale = self.scale if place.A is None else place.A
        if scale is None:
            every = self._replace(columns=None)
            stored = rounded(self.unsearched(place.Z), precision)
            return every, place._replace(Z=every.searched(stored))
        kept = rounded(scale, precision if scale.ndim == 2 else "float32")
        stored = rounded(place.Z + self.offset(scale), precision)
        Z = stored - self.offset(kept)
        if place.A is None:
            return self._replace(scale=kept), place._replace(Z=Z)
        return self._replace(A=kept), place._replace(Z=Z, A=kept)
