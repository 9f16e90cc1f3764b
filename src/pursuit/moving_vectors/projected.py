"""Kernel functions in learned coordinates: K(A'x, z_k)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pursuit._typing import Array
from pursuit.expansion.basis_functions import slopes_in_rows
from pursuit.geometry.linear_maps import image
from pursuit.kernels import Kernel

__all__ = ["ProjectedAtoms", "map_of", "mapped"]


def mapped(X: Any, scale: Array) -> Array:
    """Rows through a linear map, dense."""
    U = image(X, scale)
    dense: Array = U.toarray() if sparse.issparse(U) else U
    return dense


def map_of(atoms: Any, n_features: int) -> Array:
    """The map that rows go through before they meet these functions, as a matrix."""
    scale: Array | None = getattr(atoms, "scale", None)
    if scale is None:
        return np.eye(n_features)
    return np.diag(scale) if scale.ndim == 1 else scale


@dataclass(frozen=True)
class ProjectedAtoms:
    """Kernel functions of mapped rows.

    Attributes
    ----------
    kernel : Kernel
        The kernel of all functions, of mapped rows.
    scale : ndarray of shape (n_features,) or (n_features, rank)
        The map, or its diagonal.
    centres : ndarray of shape (n_atoms, rank)
        Centres in the coordinates after the map.
    """

    kernel: Kernel
    scale: Array
    centres: Any

    def __len__(self) -> int:
        """Number of atoms."""
        return int(self.centres.shape[0])

    @property
    def names(self) -> list[str]:
        """The kernel, for each atom."""
        return [f"{self.kernel} of mapped rows"] * len(self)

    @property
    def functions(self) -> Callable[[Any], Array]:
        """Rows to the array of shape (n_rows, n_atoms); centres are prepared once."""
        if not len(self):
            return lambda X: np.empty((X.shape[0], 0))
        kernel, prepared = self.kernel, self.kernel.prepare(self.centres)
        return lambda X: kernel.evaluate(mapped(X, self.scale), prepared)

    def weighted_gradient(self, X: Array, A: Array) -> Array:
        """Slopes in the coordinates after the map, brought back through it."""
        slopes = slopes_in_rows(self.kernel, mapped(X, self.scale), self.centres, A)
        return mapped(slopes, self.scale if self.scale.ndim == 1 else self.scale.T)

    def take(self, indices: Array) -> ProjectedAtoms:
        """Return the atoms at `indices`, in that order."""
        return ProjectedAtoms(self.kernel, self.scale, self.centres[indices])

    def moved(self, convert: Callable[[Any], Any]) -> ProjectedAtoms:
        """The atoms with their arrays put through `convert`."""
        return ProjectedAtoms(self.kernel, convert(self.scale), convert(self.centres))

    def subset(self, indices: Array) -> Callable[[Any], Array]:
        """Return the functions of the atoms at `indices`."""
        return self.take(indices).functions
