"""Where a search takes place: the kernel, and coordinates in which vectors move.

A kernel with a number for each feature, or with a matrix, is K(x, z) = K_1(A'x, A'z): the search
takes place in the coordinates u = A'(x - centre) under K_1, and the vectors are told as those of
the kernel itself, z with A'(z - centre) = u. Where each gamma is to move with the vectors, the
coordinates are stretched further, by a diagonal that moves from ones on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit.expansion.basis_functions import Atoms, AtomSet
from pursuit.geometry.linear_maps import preimage
from pursuit.greedy.starts import dense_rows
from pursuit.kernels import RBF, Kernel, Laplacian
from pursuit.linalg.rounding import rounded
from pursuit.moving_vectors.projected import ProjectedAtoms, mapped
from pursuit.optimize.kernel_blocks import Place
from pursuit.optimize.moving import varying

__all__ = ["Setting", "composed", "in_features", "setting_of"]

# A factor of a feature that moves stays this far from zero.
SMALLEST_FACTOR = 1e-100


class Setting(NamedTuple):
    """Where a search takes place.

    Attributes
    ----------
    kernel : Kernel
        With its numbers, in the coordinates of the search.
    centre : ndarray of shape (d,)
        Origin of the coordinates.
    scale : ndarray or None
        A map that stays as it is.
    A : ndarray or None
        A map that moves with the vectors, behind `scale`.
    columns : ndarray of int or None
        Those that are not constant, where there is no map.
    own : Kernel or None
        The kernel that `kernel` and `scale` stand for, where they stand for one.
    """

    kernel: Kernel
    centre: Array
    scale: Array | None
    A: Array | None
    columns: Array | None = None
    own: Kernel | None = None

    def searched(self, Z: Array) -> Array:
        """Vectors in the coordinates of the search, from those of X."""
        scale = composed(self.scale, self.A)
        if scale is not None:
            return np.asarray(mapped(Z, scale) - self.offset(scale))
        shifted = np.asarray(Z, dtype=np.float64) - self.centre
        return shifted if self.columns is None else shifted[:, self.columns]

    def unsearched(self, place: Place) -> Array:
        """Vectors in the coordinates of X, where there is no map or it is the kernel's own."""
        scale = composed(self.scale, place.A)
        if scale is not None:
            return np.asarray(preimage(place.Z, scale) + self.centre)
        if self.columns is None:
            return np.asarray(place.Z + self.centre)
        whole = np.tile(self.centre, (len(place.Z), 1))
        whole[:, self.columns] += place.Z
        return whole

    def offset(self, scale: Array) -> Array:
        """The centre through a map."""
        return mapped(self.centre[None], scale)

    def atoms(self, place: Place) -> AtomSet:
        """The kernel functions of a place."""
        scale = composed(self.scale, place.A)
        if scale is None:
            return Atoms(place.kernel, self.unsearched(place))
        if self.own is not None:
            return Atoms(self._moved_kernel(place), self.unsearched(place))
        return ProjectedAtoms(place.kernel, scale, place.Z + self.offset(scale))

    def _moved_kernel(self, place: Place) -> Kernel:
        """The kernel with the gammas that its features have come to."""
        scale = composed(self.scale, place.A)
        if place.A is None or scale is None:
            return self.own or place.kernel
        return RBF(scale**2) if isinstance(self.own, RBF) else Laplacian(np.abs(scale))

    def rounded(self, place: Place, precision: str) -> tuple[Setting, Place]:
        """The setting and the place whose stored numbers are rounded; a diagonal is in float32."""
        scale = composed(self.scale, place.A)
        fixed, kernel = self._replace(scale=scale, A=None, columns=None), place.kernel
        if scale is None or self.own is not None:
            own = None if scale is None else self._moved_kernel(place)
            fixed = fixed._replace(own=own)
            stored = rounded(self.unsearched(place), precision)
            return fixed, Place(kernel, fixed.searched(stored))
        kept = rounded(scale, precision if scale.ndim == 2 else "float32")
        stored = rounded(place.Z + self.offset(scale), precision)
        return fixed._replace(scale=kept), Place(kernel, stored - self.offset(kept))


def composed(scale: Array | None, A: Array | None) -> Array | None:
    """The map `scale`, followed by A: either may be a diagonal or none."""
    if A is None or scale is None:
        return scale if A is None else A
    if A.ndim == 1:
        A = np.copysign(np.maximum(np.abs(A), SMALLEST_FACTOR), A)
    if scale.ndim == 2:
        return np.asarray(scale @ A if A.ndim == 2 else scale * A)
    return np.asarray((scale * A.T).T)


def setting_of(kernel: Kernel, X: Any, centre: Array, *, learn_gamma: bool = False) -> Setting:
    """Where vectors move under a kernel, without a learned metric.

    Parameters
    ----------
    kernel : Kernel
        With its numbers.
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    centre : ndarray of shape (d,)
        Origin of the coordinates.
    learn_gamma : bool, default=False
        Whether each gamma moves, where there is one for each feature.
    """
    plain, scale = kernel.split()
    if scale is None:
        return Setting(kernel, centre, None, None, varying(kernel, X))
    moves = learn_gamma and hasattr(kernel, "gamma")
    return Setting(plain, centre, scale, np.ones(len(scale)) if moves else None, None, kernel)


def in_features(model: Any, centre: Array) -> Array:
    """Vectors of a fitted model in the coordinates of X; with a metric the nearest to a centre."""
    Z, metric = dense_rows(model.support_vectors_), getattr(model, "metric_", None)
    d = Z.shape[1] if metric is None else len(metric)
    if d != len(centre):
        raise ValueError(f"init: its vectors have {d} features, X has {len(centre)}")
    return Z if metric is None else centre + (Z - centre @ metric) @ np.linalg.pinv(metric)
