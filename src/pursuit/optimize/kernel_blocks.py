"""Kernel values of rows with vectors, and the slopes of their sums, in blocks on all cores.

Problem. For rows u_i (n, p), which may be x_i through a map A, and vectors z_k (N, p): the values
K (n, N), and the slopes of sum(weights * K) in Z, in log(gamma), in the rows, for weights (n, N).

===========  ============  ============================================================
symbol       name in code  shape and meaning
===========  ============  ============================================================
h            ``H``         (n, p + 2) rows in homogeneous coordinates, (u, 1, |u|^2)
M            ``M``         (n, N) weights times K, entry by entry
===========  ============  ============================================================

Steps, for a Gaussian.

    -gamma |u - z|^2 = h . (2 gamma z, -gamma |z|^2, -gamma)                             (1)
    M'(U, 1) = (M'U, M'1)                                                                (2)
    dsum/dZ         = 2 gamma (M'U - diag(M'1) Z)                                        (3)
    dsum/dlog gamma = -sum(gamma M |u|^2) + 2 gamma sum(M'U * Z) - sum(M'1 gamma |z|^2)  (4)
    dsum/dU         = 2 gamma (M Z - diag(M 1) U)                                        (5)

so that a block of values is one product and one exponential, and all slopes in the vectors are one
product more. Other kernels give what `Kernel.weighted_gradient` gives.

Cost: 4 n N (p + 2) operations in products, in the type of the table. Memory: the rows in
homogeneous coordinates and the kernel values where they fit, else a block a thread. Rows are spread
over threads of our own, each with one BLAS thread.

Numerics. Gaussians below exp(-32) in float32 (1e-30 in float64) are zero: that constant is
subtracted, so that no denormal number arises and sums stay smooth to rounding. Sums over the rows
of a block are in the type of the table, those over blocks in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pursuit._typing import Array
from pursuit.kernels import Kernel, is_gaussian
from pursuit.linalg import blocks

__all__ = [
    "BlockValues",
    "Place",
    "Room",
    "Table",
    "homogeneous",
    "kernel_values",
    "slopes",
    "slopes_in_rows",
    "through",
    "with_gamma",
]

# Exponents at and below which a Gaussian is zero.
LOWEST = {np.dtype(np.float32): -32.0, np.dtype(np.float64): -69.0}
# Numbers in a block of kernel values and rows: it should stay in the cache.
BLOCK_ENTRIES, SMALLEST_BLOCK = 1 << 19, 256
# Evaluations of less work than this stay on one thread.
PARALLEL_WORK = 3e7
# Rows and kernel values are kept if they take no more than this share of the working memory.
KEPT_SHARE = 2.0
# Relative step of the difference quotient in gamma, for kernels other than the Gaussian.
GAMMA_STEP = 1e-5


class Place(NamedTuple):
    """Where the search is: the kernel with its gamma, vectors Z, and the map A or None."""

    kernel: Kernel
    Z: Array
    A: Array | None = None


class Room:
    """Arrays by name, made once and used again while they are large enough."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def __call__(self, name: str, shape: tuple[int, int], dtype: Any) -> Array:
        """An array of this shape, whose entries are anything."""
        size, held = shape[0] * shape[1], self._held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._held[name] = np.empty(size, dtype)
        return held[:size].reshape(shape)


def through(U: Array, A: Array | None) -> Array:
    """Rows through a map, its diagonal, or none; in the type of the rows."""
    if A is None:
        return U
    A = A.astype(U.dtype)
    return U * A if A.ndim == 1 else U @ A


def homogeneous(U: Array, out: Array | None = None) -> Array:
    """(u, 1, |u|^2) for each row."""
    H = np.empty((len(U), U.shape[1] + 2), U.dtype) if out is None else out
    H[:, :-2], H[:, -2] = U, 1.0
    np.einsum("ij,ij->i", U, U, out=H[:, -1])
    return H


class Table:
    """Rows less a common origin, in one floating type, kept where they fit.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows.
    origin : ndarray of shape (d,)
        What is subtracted.
    dtype : dtype
        float32 or float64.
    scale : ndarray of shape (d,) or (d, p), optional
        A fixed linear map that the rows are put through.
    columns : ndarray of int, optional
        Those that matter, where the others are constant; not with a map.
    """

    def __init__(
        self,
        X: Any,
        origin: Array,
        dtype: Any,
        scale: Array | None = None,
        columns: Array | None = None,
    ) -> None:
        self.X, self.origin, self.dtype = X, origin, np.dtype(dtype)
        self.scale, self.columns = scale, columns
        self.rooms: list[Room] = []
        width = X.shape[1] if columns is None else len(columns)
        width = width if scale is None or scale.ndim == 1 else scale.shape[1]
        self.shape = (X.shape[0], width)
        self.kept: Array | None = None
        if blocks.fits(KEPT_SHARE * self.dtype.itemsize * self.shape[0] * (width + 2)):
            kept = np.empty((self.shape[0], width + 2), dtype=self.dtype)
            for rows in blocks.row_blocks(self.shape[0], 256.0 * (X.shape[1] + width)):
                homogeneous(self._converted(rows), kept[rows])
            self.kept = kept

    def take(self, rows: Array) -> Table:
        """Return some of the rows."""
        return Table(self.X[rows], self.origin, self.dtype, self.scale, self.columns)

    def mapped(self, axes: Array) -> Table:
        """The rows by their coordinates on some axes."""
        if self.columns is not None:
            whole = np.zeros((self.X.shape[1], axes.shape[1]))
            whole[self.columns] = axes
        elif self.scale is None:
            whole = axes
        else:
            whole = self.scale[:, None] * axes if self.scale.ndim == 1 else self.scale @ axes
        return Table(self.X, self.origin, self.dtype, whole)

    def block(self, rows: slice | Array) -> Array:
        """Rows as a dense array."""
        return self._converted(rows) if self.kept is None else self.kept[rows][:, :-2]

    def homogeneous(self, rows: slice | Array) -> Array:
        """Rows with 1 and their squared length."""
        return homogeneous(self._converted(rows)) if self.kept is None else self.kept[rows]

    def room(self, share: int) -> Room:
        """Arrays that one thread uses again and again: new ones would cost more than sums."""
        while len(self.rooms) <= share:
            self.rooms.append(Room())
        return self.rooms[share]

    def _converted(self, rows: slice | Array) -> Array:
        part = self.X[rows]
        part = part.toarray() if sparse.issparse(part) else part
        shifted = np.subtract(part, self.origin, dtype=np.float64)
        if self.columns is not None:
            shifted = shifted[:, self.columns]
        return np.asarray(through(shifted, self.scale), dtype=self.dtype)


class BlockValues:
    """Kernel values of a table and vectors, kept after the first pass where they fit."""

    def __init__(self, table: Table, place: Place) -> None:
        self.table, self.place = table, place
        (self.n_rows, d), self.n_vectors = table.shape, len(place.Z)
        self.Z = place.Z.astype(table.dtype)
        entries = self.n_rows * max(self.n_vectors, 1)
        self.kept = None
        if blocks.fits(KEPT_SHARE * table.dtype.itemsize * entries):
            self.kept = table.room(0)("kept", (self.n_rows, self.n_vectors), table.dtype)
        self.filled = False
        self.parallel = entries * (d + self.n_vectors) > PARALLEL_WORK
        self.spans = self._spans(max(SMALLEST_BLOCK, BLOCK_ENTRIES // (self.n_vectors + d + 1)))
        self.shares = self._shares()

    def _spans(self, size: int) -> list[slice]:
        """Blocks of at most so many rows, as many for each thread."""
        n_shares = blocks.n_threads() if self.parallel else 1
        n_blocks = n_shares * ceil(self.n_rows / (size * n_shares))
        bounds = np.linspace(0, self.n_rows, n_blocks + 1).astype(int)
        return [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True) if a < b]

    def _shares(self) -> list[tuple[list[slice], Room]]:
        """Each thread's blocks and arrays: once, as a small problem passes over them often."""
        n_shares = min(blocks.n_threads() if self.parallel else 1, len(self.spans))
        bounds = np.linspace(0, len(self.spans), n_shares + 1).astype(int)
        return [
            (self.spans[a:b], self.table.room(i))
            for i, (a, b) in enumerate(zip(bounds[:-1], bounds[1:], strict=True))
        ]

    def rows(self, span: slice) -> tuple[Array, Array]:
        """Rows x, and their coordinates u as h."""
        H = self.table.homogeneous(span)
        if self.place.A is None:
            return H[:, :-2], H
        return H[:, :-2], homogeneous(through(H[:, :-2], self.place.A))

    def block(self, span: slice, room: Room) -> Array:
        """Kernel values of some rows."""
        if self.kept is not None and self.filled:
            return self.kept[span]
        H = self.rows(span)[1]
        shape = (len(H), self.n_vectors)
        out = room("values", shape, H.dtype) if self.kept is None else self.kept[span]
        return kernel_values(self.place.kernel, H, self.Z, out)

    def sum(self, task: Callable[[slice, Array, Room], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Sums over all blocks, in float64, of what `task` returns."""

        def work(spans: list[slice], room: Room) -> list[Array]:
            totals: list[Array] = []
            for span in spans:
                parts = task(span, self.block(span, room), room)
                if not totals:
                    totals = [np.array(part, dtype=np.float64) for part in parts]
                    continue
                for total, part in zip(totals, parts, strict=True):
                    np.add(total, part, out=total)
            return totals

        return tuple(sum(parts[1:], start=parts[0]) for parts in zip(*self._run(work), strict=True))

    def each(self, task: Callable[[slice, Array, Room], None]) -> None:
        """Call `task` for each block."""

        def work(spans: list[slice], room: Room) -> None:
            for span in spans:
                task(span, self.block(span, room), room)

        self._run(work)

    def _run(self, work: Callable[[list[slice], Room], Any]) -> list[Any]:
        """`work` for each thread's share of the blocks."""
        several = len(self.shares) > 1
        results = blocks.in_parallel(lambda share: work(*share), self.shares, parallel=several)
        self.filled = True
        return results


def kernel_values(kernel: Kernel, H: Array, Z: Array, out: Array | None = None) -> Array:
    """K(u, z) in the type of H; a Gaussian by one product and one exponential (eq. 1)."""
    values = np.empty((len(H), len(Z)), H.dtype) if out is None else out
    if not is_gaussian(kernel):
        values[:] = kernel(H[:, :-2].astype(np.float64), Z.astype(np.float64))
        return values
    gamma, lowest = H.dtype.type(kernel.gamma), H.dtype.type(LOWEST[H.dtype])
    right = np.empty((H.shape[1], len(Z)), H.dtype)
    right[:-2] = 2 * gamma * Z.T
    right[-2] = -gamma * np.einsum("ij,ij->i", Z, Z)
    right[-1] = -gamma
    np.matmul(H, right, out=values)
    np.clip(values, lowest, 0.0, out=values)
    np.exp(values, out=values)
    values -= np.exp(lowest)
    return values


class _Slopes(NamedTuple):
    """Slopes of sum(weights * K(U, Z)): in Z, in log(gamma), and in U where wanted."""

    Z: Array
    log_gamma: float
    U: Array | None


def slopes(
    place: Place, weights: Array, K: Array, H: Array, *, wanted: tuple[bool, bool]
) -> _Slopes:
    """Slopes of sum(weights * K(U, Z)), which may write on `weights`; `wanted`: in gamma, in U."""
    kernel, Z = place.kernel, place.Z
    if not is_gaussian(kernel):
        return _slopes_of_any_kernel(place, weights, H[:, :-2], wanted)
    M = np.multiply(weights, K, out=weights if weights.flags.writeable else None)
    cross = (M.T @ H[:, :-1]).astype(np.float64)  # eq. 2
    MU, columns = cross[:, :-1], cross[:, -1]
    in_Z = 2.0 * kernel.gamma * (MU - columns[:, None] * Z)  # eq. 3
    in_gamma, in_U = 0.0, None
    if wanted[0]:
        rows = M.sum(axis=1, dtype=np.float64) @ (kernel.gamma * H[:, -1].astype(np.float64))
        vectors = columns @ (kernel.gamma * np.einsum("ij,ij->i", Z, Z))
        in_gamma = float(2.0 * (kernel.gamma * MU * Z).sum() - rows - vectors)  # eq. 4
    if wanted[1]:
        in_U = _slopes_in_rows(place, M, H)
    return _Slopes(in_Z, in_gamma, in_U)


def slopes_in_rows(place: Place, weights: Array, K: Array, H: Array) -> Array:
    """Slopes of sum(weights * K(U, Z)) in U alone."""
    if is_gaussian(place.kernel):
        return _slopes_in_rows(place, weights * K, H)
    U, weights = H[:, :-2].astype(np.float64), weights.astype(np.float64)
    return np.asarray(place.kernel.weighted_gradient(U, place.Z, weights))


def _slopes_in_rows(place: Place, M: Array, H: Array) -> Array:
    """Those of a Gaussian (eq. 5)."""
    slope = M @ place.Z.astype(H.dtype)
    slope -= M.sum(axis=1)[:, None] * H[:, :-2]
    slope *= H.dtype.type(2.0 * place.kernel.gamma)  # type: ignore[attr-defined]
    return np.asarray(slope)


def _slopes_of_any_kernel(
    place: Place, weights: Array, U: Array, wanted: tuple[bool, bool]
) -> _Slopes:
    """The same by the kernel's own derivative; in gamma by a central difference."""
    kernel, Z = place.kernel, place.Z
    U, weights = U.astype(np.float64), weights.astype(np.float64)
    try:
        in_Z = kernel.weighted_gradient(Z, U, weights.T)
        in_U = kernel.weighted_gradient(U, Z, weights) if wanted[1] else None
    except NotImplementedError:
        raise ValueError(f"kernel: {kernel} has no derivative in its vectors") from None
    in_gamma = 0.0
    if wanted[0]:
        above, below = (with_gamma(kernel, np.exp(step)) for step in (GAMMA_STEP, -GAMMA_STEP))
        in_gamma = float((weights * (above(U, Z) - below(U, Z))).sum()) / (2.0 * GAMMA_STEP)
    return _Slopes(in_Z, in_gamma, in_U)


def with_gamma(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with its gamma times a factor."""
    return replace(kernel, gamma=kernel.gamma * float(factor))  # type: ignore[type-var,attr-defined]
