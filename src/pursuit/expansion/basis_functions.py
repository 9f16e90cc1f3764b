"""Atoms: the functions d_1, ..., d_M that a dictionary holds and a fitted model evaluates.

===================  =====================================================  ===============
class                d_k(x)                                                 one name
===================  =====================================================  ===============
`Atoms`              K(x, z_k), one kernel for all                          RBF(gamma=0.1)
`OrientedAtoms`      exp(-1/2 (x - z_k)' C_k^{-1} (x - z_k))                OrientedGaussian
`FunctionAtoms`      a function that the user wrote                         its name
`MixedAtoms`         a function of any of these                             as there
===================  =====================================================  ===============

Oriented Gaussians (Vincent, "Modeles a noyaux a structure locale", 2003, sections 13.3 and
14.2). With orthonormal axes u_1, ..., u_d at each centre z,

    C = sigma^2 I + sum_j v_j u_j u_j',     lambda_j = sigma^2 + v_j,

so that, with the projections p_j = u_j'(x - z),

    (x - z)' C^{-1} (x - z) = (|x - z|^2 - sum_j p_j^2) / sigma^2 + sum_j p_j^2 / lambda_j.

The first term is the squared distance from the plane of the axes. With d = 0 this is the
Gaussian kernel of gamma = 1 / (2 sigma^2). Cost of M atoms on l rows: l M (d + 1) D in matrix
products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from pursuit._arrays import alike, namespace_of, promoted, to_numpy
from pursuit._objects import as_objects
from pursuit._typing import Array
from pursuit.geometry.distances import shifted_centres, squared_distances
from pursuit.kernels import FunctionKernel, Kernel, exp_decay, kernel_name

__all__ = [
    "AtomSet",
    "Atoms",
    "ColumnAtoms",
    "FunctionAtoms",
    "MixedAtoms",
    "OrientedAtoms",
    "slopes_in_rows",
    "unite",
]

Functions = Callable[[Any], Array]


class AtomSet(Protocol):
    """What an algorithm and a fitted model need of atoms."""

    def __len__(self) -> int:
        """Number of atoms."""

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of all atoms, where there is one."""

    @property
    def centres(self) -> Any:
        """One row an atom, or None where one has none; column indices if precomputed."""

    @property
    def names(self) -> list[str]:
        """A readable name for each atom."""

    @property
    def functions(self) -> Functions:
        """Rows to the array of shape (n_rows, n_atoms); what can be is prepared once."""

    def take(self, indices: Array) -> AtomSet:
        """Return the atoms at `indices`, in that order."""

    def subset(self, indices: Array) -> Functions:
        """Return the functions of the atoms at `indices`."""

    def weighted_gradient(self, X: Array, A: Array) -> Array:
        """sum_k A_ik grad d_k(x_i) at dense rows, (n_rows, n_features); A (n_rows, n_atoms)."""

    def moved(self, convert: Callable[[Any], Any]) -> AtomSet:
        """The atoms with their arrays put through `convert`, to a device or back."""


class _Subsets:
    """The one method that all sets of atoms share."""

    def subset(self: AtomSet, indices: Array) -> Functions:
        """Return the functions of the atoms at `indices`."""
        return self.take(indices).functions


@dataclass(frozen=True)
class Atoms(_Subsets):
    """Kernel functions K(., z_k).

    Attributes
    ----------
    kernel : Kernel
        The kernel of all functions.
    centres : {ndarray, CSR matrix} of shape (n_atoms, n_features)
        One centre an atom; column indices for a precomputed kernel.
    """

    kernel: Kernel
    centres: Any

    def __len__(self) -> int:
        """Number of atoms."""
        return int(self.centres.shape[0])

    @property
    def names(self) -> list[str]:
        """The kernel, for each atom."""
        return [kernel_name(self.kernel)] * len(self)

    @property
    def functions(self) -> Functions:
        """Rows to the array of shape (n_rows, n_atoms); centres are prepared once."""
        if not len(self):
            return lambda X: np.empty((X.shape[0], 0))
        kernel, prepared = self.kernel, self.kernel.prepare(self.centres)
        return lambda X: kernel.evaluate(X, prepared)

    def weighted_gradient(self, X: Array, A: Array) -> Array:
        """That of the kernel, which is symmetric where it has one."""
        return slopes_in_rows(self.kernel, X, self.centres, A)

    def take(self, indices: Array) -> Atoms:
        """Return the atoms at `indices`, in that order."""
        return Atoms(self.kernel, self.centres[indices])

    def moved(self, convert: Callable[[Any], Any]) -> Atoms:
        """The atoms with their centres put through `convert`; a CSR matrix stays as it is."""
        centres = self.centres
        return self if sparse.issparse(centres) else Atoms(self.kernel, convert(centres))


@dataclass(frozen=True)
class OrientedAtoms(_Subsets):
    """Gaussians that follow the data, exp(-1/2 (x - z)' C^{-1} (x - z)).

    Attributes
    ----------
    centres : ndarray of shape (n_atoms, n_features)
        z.
    axes : ndarray of shape (n_atoms, n_axes, n_features)
        u_1, ..., u_d of each atom: orthonormal, or zero where there are fewer directions.
    variances : ndarray of shape (n_atoms, n_axes)
        v_1, ..., v_d of each atom.
    noise_variance : float
        sigma^2.
    """

    centres: Array
    axes: Array
    variances: Array
    noise_variance: float

    @property
    def kernel(self) -> None:
        """None: each atom has its own shape."""

    def __len__(self) -> int:
        """Number of atoms."""
        return int(self.centres.shape[0])

    @property
    def names(self) -> list[str]:
        """One name for all."""
        return ["OrientedGaussian"] * len(self)

    @property
    def functions(self) -> Functions:
        """Rows to the array of shape (n_rows, n_atoms); centres and axes are prepared once."""
        if not len(self):
            return lambda X: np.empty((X.shape[0], 0))
        if namespace_of(self.centres) is not None:
            return self._device_functions
        centres = shifted_centres(self.centres)
        shift, noise = centres.shift, self.noise_variance
        offsets = np.einsum("kjd,kd->jk", self.axes, self.centres - shift)
        directions = np.ascontiguousarray(self.axes.transpose(1, 2, 0))
        spreads = noise + self.variances.T

        def evaluate(X: Any) -> Array:
            shifted = _dense(X) - shift
            outside = squared_distances(X, centres)  # of the plane of the axes
            along = np.zeros_like(outside)
            for axis, offset, spread in zip(directions, offsets, spreads, strict=True):
                projections = shifted @ axis
                projections -= offset
                projections *= projections
                outside -= projections
                projections /= spread
                along += projections
            np.maximum(outside, 0.0, out=outside)
            with np.errstate(over="ignore"):
                outside /= noise
            outside += along
            return exp_decay(outside, 0.5)

        return evaluate

    def _device_functions(self, X: Any) -> Any:
        """The same on device arrays."""
        xp = namespace_of(X)
        centres = shifted_centres(self.centres)
        outside = squared_distances(X, centres)
        outside, axes, Z, X = promoted(xp, outside, self.axes, self.centres, X)
        shift = xp.astype(centres.shift, X.dtype)
        along = xp.zeros_like(outside)
        for j in range(axes.shape[1]):
            axis = axes[:, j, :]
            offset = xp.sum(axis * (Z - shift), axis=1)
            squares = ((X - shift) @ axis.T - offset) ** 2
            outside = outside - squares
            along = along + squares / (self.noise_variance + self.variances[:, j])
        return exp_decay(xp.clip(outside, 0.0, None) / self.noise_variance + along, 0.5)

    def moved(self, convert: Callable[[Any], Any]) -> OrientedAtoms:
        """The atoms with their arrays put through `convert`."""
        arrays = [convert(array) for array in (self.centres, self.axes, self.variances)]
        return OrientedAtoms(arrays[0], arrays[1], arrays[2], self.noise_variance)

    def weighted_gradient(self, X: Array, A: Array) -> Array:
        """sum_k A_ik d_k(x_i) C_k^{-1} (z_k - x_i)."""
        pulls, noise = A * self.functions(X), self.noise_variance
        offsets = np.einsum("kjd,kd->kj", self.axes, self.centres)
        along = np.einsum("kjd,id->ikj", self.axes, X) - offsets
        along *= 1.0 / (noise + self.variances) - 1.0 / noise
        outside = pulls.sum(axis=1)[:, None] * X - pulls @ self.centres
        inside = np.einsum("ik,ikj,kjd->id", pulls, along, self.axes, optimize=True)
        return np.asarray(-outside / noise - inside)

    def take(self, indices: Array) -> OrientedAtoms:
        """Return the atoms at `indices`, in that order."""
        return OrientedAtoms(
            self.centres[indices], self.axes[indices], self.variances[indices], self.noise_variance
        )


def slopes_in_rows(kernel: Kernel, X: Array, Z: Any, A: Array) -> Array:
    """sum_k A_ik dK(x_i, z_k)/dx_i; one error for a kernel without derivative."""
    try:
        return kernel.weighted_gradient(X, Z, A)
    except NotImplementedError:
        raise ValueError(f"kernel: {kernel_name(kernel)} has no derivative") from None


def _dense(X: Any) -> Array:
    """Return the rows themselves, if they are dense."""
    if sparse.issparse(X):
        raise ValueError("dictionary: oriented Gaussians need dense rows, got a sparse matrix")
    rows: Array = X
    return rows


@dataclass(frozen=True)
class FunctionAtoms(_Subsets):
    """Functions that the user wrote, each from rows (n, n_features) to n values.

    Attributes
    ----------
    callables : dict of str to callable
        Names and functions. A function is called on blocks of rows, possibly from several
        threads, and must treat each row by itself.
    labels : tuple of str, optional
        The name of each atom. None: the names in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import FunctionAtoms
    >>> atoms = FunctionAtoms({"first": lambda X: X[:, 0], "sum": lambda X: X.sum(axis=1)})
    >>> atoms.functions(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 3.],
           [3., 7.]])
    """

    callables: Mapping[str, Callable[[Any], Any]]
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Own the mapping, with the functions that the labels name alone."""
        labels = tuple(self.callables) if self.labels is None else tuple(self.labels)
        own = {name: self.callables[name] for name in dict.fromkeys(labels)}
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "callables", own)

    @property
    def kernel(self) -> None:
        """None: there is no kernel."""

    @property
    def centres(self) -> None:
        """None: there are no centres."""

    def __len__(self) -> int:
        """Number of atoms."""
        return len(self.names)

    @property
    def names(self) -> list[str]:
        """The user's names."""
        return list(self.labels or ())

    @property
    def functions(self) -> Functions:
        """Rows to the array of shape (n_rows, n_atoms)."""
        names, callables = self.names, self.callables

        def evaluate(X: Any) -> Array:
            values = np.empty((X.shape[0], len(names)))
            rows = as_objects(to_numpy(X) if namespace_of(X) is not None else X)
            for k, name in enumerate(names):
                values[:, k] = _column(name, callables[name](rows), X.shape[0])
            found: Array = alike(values, X)
            return found

        return evaluate

    def weighted_gradient(self, X: Array, A: Array) -> Array:
        """None is known."""
        raise ValueError(f"dictionary: the function {self.names[0]!r} has no derivative")

    def take(self, indices: Array) -> FunctionAtoms:
        """Return the atoms at `indices`, in that order."""
        names = self.names
        return FunctionAtoms(self.callables, tuple(names[k] for k in indices))

    def moved(self, convert: Callable[[Any], Any]) -> FunctionAtoms:
        """The functions themselves: they hold no arrays that this class knows of."""
        return self


@dataclass(frozen=True)
class ColumnAtoms(_Subsets):
    """Columns of the rows themselves.

    Attributes
    ----------
    columns : tuple of int
        One an atom.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import ColumnAtoms
    >>> ColumnAtoms((1,)).functions(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[2.],
           [4.]])
    """

    columns: tuple[int, ...]

    @property
    def kernel(self) -> None:
        """None: there is no kernel."""

    @property
    def centres(self) -> None:
        """None: there are no centres."""

    def __len__(self) -> int:
        """Number of atoms."""
        return len(self.columns)

    @property
    def names(self) -> list[str]:
        """Their numbers."""
        return [f"column {column}" for column in self.columns]

    @property
    def functions(self) -> Functions:
        """Rows to the array of shape (n_rows, n_atoms), in float64."""
        columns = list(self.columns)

        def evaluate(X: Any) -> Array:
            if (xp := namespace_of(X)) is not None:
                taken: Array = xp.take(X, alike(np.array(columns), X), axis=1)
                return taken
            chosen = X[:, columns]
            return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen, np.float64)

        return evaluate

    def weighted_gradient(self, X: Array, A: Array) -> Array:
        """A of each column, in its place."""
        slopes = np.zeros(X.shape)
        for k, column in enumerate(self.columns):
            slopes[:, column] += A[:, k]
        return slopes

    def take(self, indices: Array) -> ColumnAtoms:
        """Return the atoms at `indices`, in that order."""
        return ColumnAtoms(tuple(self.columns[k] for k in indices))

    def moved(self, convert: Callable[[Any], Any]) -> ColumnAtoms:
        """The columns themselves: there are no arrays."""
        return self


def _column(name: str, values: Any, n_rows: int) -> Array:
    """Check what the user's function `name` returned for `n_rows` rows."""
    column = np.asarray(values, dtype=np.float64)
    if column.shape not in ((n_rows,), (n_rows, 1)):
        raise ValueError(
            f"dictionary: the function {name!r} returned an array of shape {column.shape} for "
            f"{n_rows} rows; expected ({n_rows},)"
        )
    if not np.isfinite(column).all():
        raise ValueError(f"dictionary: the function {name!r} returned NaN or infinity")
    return column.reshape(n_rows)


@dataclass(frozen=True)
class MixedAtoms(_Subsets):
    """The union of several sets of atoms, in any order.

    Attributes
    ----------
    parts : tuple of AtomSet
        The sets.
    members : ndarray of int of shape (n_atoms,)
        The part that each atom belongs to; the atoms of a part keep their order.
    """

    parts: tuple[AtomSet, ...]
    members: Array

    def __len__(self) -> int:
        """Number of atoms."""
        return len(self.members)

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of all parts, if they share one."""
        kernel = self.parts[0].kernel
        return kernel if all(_same(part.kernel, kernel) for part in self.parts) else None

    @property
    def centres(self) -> Any:
        """The centres of all atoms in their order, if every atom has one of the same length."""
        tables = [part.centres for part in self.parts]
        widths = {_width(table) for table in tables}
        if None in widths or len(widths) > 1:
            return None
        back = np.argsort(self._stacked())
        if any(map(sparse.issparse, tables)):
            return sparse.vstack(list(map(sparse.csr_matrix, tables)), format="csr")[back]
        return np.vstack(tables)[back]

    @property
    def names(self) -> list[str]:
        """The names that the parts give."""
        stacked = [name for part in self.parts for name in part.names]
        return [stacked[k] for k in np.argsort(self._stacked())]

    @property
    def functions(self) -> Functions:
        """Rows to the array of shape (n_rows, n_atoms); each part is evaluated once."""
        n_atoms = len(self)
        placed = [(part.functions, _run(at)) for part, at in self._places()]

        def evaluate(X: Any) -> Array:
            if (xp := namespace_of(X)) is not None:
                stacked = promoted(xp, *(functions(X) for functions, _ in placed))
                back = alike(np.argsort(self._stacked()), X)
                ordered: Array = xp.take(xp.concat(stacked, axis=1), back, axis=1)
                return ordered
            values = np.empty((X.shape[0], n_atoms))
            for functions, columns in placed:
                values[:, columns] = functions(X)
            return values

        return evaluate

    def weighted_gradient(self, X: Array, A: Array) -> Array:
        """The sum of those of the parts."""
        parts = (part.weighted_gradient(X, A[:, at]) for part, at in self._places())
        return np.asarray(sum(parts, np.zeros(X.shape)))

    def take(self, indices: Array) -> AtomSet:
        """Return the atoms at `indices`, in that order; only parts that have one are kept."""
        position = np.empty(len(self), dtype=int)
        for _, at in self._places():
            position[at] = np.arange(len(at))
        chosen = self.members[indices]
        used = np.unique(chosen) if len(chosen) else np.array([0])
        parts = tuple(self.parts[p].take(position[indices[chosen == p]]) for p in used)
        return parts[0] if len(parts) == 1 else MixedAtoms(parts, np.searchsorted(used, chosen))

    def moved(self, convert: Callable[[Any], Any]) -> MixedAtoms:
        """The atoms with the arrays of each part put through `convert`."""
        return MixedAtoms(tuple(part.moved(convert) for part in self.parts), self.members)

    def _places(self) -> list[tuple[AtomSet, Array]]:
        """Each part and the positions of its atoms."""
        return [(part, np.flatnonzero(self.members == p)) for p, part in enumerate(self.parts)]

    def _stacked(self) -> Array:
        """Position of each atom of the stacked parts."""
        return np.concatenate([at for _, at in self._places()])


def _same(one: Kernel | None, other: Kernel | None) -> bool:
    """Whether two kernels are equal; those of the user's functions only if they are one."""
    return one is other or (not isinstance(one, FunctionKernel) and one == other)


def _width(centres: Any) -> int | None:
    """Length of each centre; None where there are none, or they are column indices."""
    return None if centres is None or centres.ndim != 2 else int(centres.shape[1])


def _run(indices: Array) -> Any:
    """Return consecutive indices as a slice, which is faster to write to."""
    if len(indices) and indices[-1] - indices[0] == len(indices) - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def unite(parts: list[AtomSet]) -> AtomSet:
    """Return the union of sets of atoms, one after another.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.basis_functions import Atoms, unite
    >>> from pursuit.kernels import RBF, Linear
    >>> unite([Atoms(RBF(0.5), np.eye(2)), Atoms(Linear(), np.eye(2))]).names
    ['RBF(gamma=0.5)', 'RBF(gamma=0.5)', 'Linear()', 'Linear()']
    """
    if len(parts) == 1:
        return parts[0]
    return MixedAtoms(tuple(parts), np.repeat(np.arange(len(parts)), [len(p) for p in parts]))
