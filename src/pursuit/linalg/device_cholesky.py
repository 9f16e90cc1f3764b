"""The partial Cholesky factorisation of ``partial_cholesky.py`` on a device.

The problem, the symbols and the step are stated there. Here V and nu are device arrays, in float64
where the device has it; each step reads all of V, for which a device has the memory bandwidth. What
is chosen comes to the host: one number a step.
"""

from __future__ import annotations

from typing import Any

from pursuit._arrays import alike, as_wide, namespace_of
from pursuit._typing import Array
from pursuit.linalg.partial_cholesky import FIRST_CAPACITY, TIE_TOLERANCE

__all__ = ["DeviceCholesky", "first_best"]


def first_best(scores: Any) -> int:
    """Lowest index among the scores that equal the largest one up to rounding."""
    xp = namespace_of(scores)
    best = xp.max(scores)
    equal = scores >= best - TIE_TOLERANCE * xp.abs(best)
    return int(xp.argmax(xp.astype(equal, xp.int8)))


class DeviceCholesky:
    """The state of the factorisation.

    Parameters
    ----------
    diagonal : device array of shape (M,)
        Squared norms of the candidates. Those of norm zero are never usable.
    rank_tolerance : float
        Share of its squared norm outside the span below which a candidate is a combination.
    excluded : ndarray of bool of shape (M,), optional
        Candidates that may not be chosen.

    Attributes
    ----------
    residual : device array of shape (M,)
        nu, of all candidates; 0 at the pivots.
    usable : device array of bool of shape (M,)
        Candidates that may still be chosen.
    pivots : list of int
        Candidates chosen, in order.
    """

    def __init__(
        self, diagonal: Any, rank_tolerance: float, *, excluded: Array | None = None
    ) -> None:
        self.diagonal = as_wide(diagonal)
        self.residual = self.diagonal
        self.threshold = rank_tolerance * self.diagonal
        self.usable = self.residual > self.threshold
        if excluded is not None:
            self.usable = self.usable & ~alike(excluded, diagonal)
        self.pivots: list[int] = []
        self._rows = self._room(FIRST_CAPACITY)

    def _room(self, n_rows: int) -> Any:
        """Room for rows of V."""
        nu = self.diagonal
        xp, shape = namespace_of(nu), (n_rows, nu.shape[0])
        return xp.zeros(shape, dtype=nu.dtype, device=nu.device)

    @property
    def V(self) -> Any:
        """Coordinates of all candidates in the basis, (n, M)."""
        return self._rows[: len(self.pivots), :]

    def pivot(self, g: int, column: Any) -> Any:
        """Append the candidate `g`, whose column of G is given; the new row of V, (M,)."""
        xp, n = namespace_of(self.diagonal), len(self.pivots)
        length = self.residual[g] ** 0.5
        v = (column - self.V[:, g] @ self.V) / length
        v[g] = length
        if n == self._rows.shape[0]:
            self._rows = xp.concat([self._rows, self._room(n)])
        self._rows[n, :] = v
        self.residual = xp.clip(self.residual - v * v, 0.0, None)
        self.residual[g] = 0.0
        self.usable = self.usable & (self.residual > self.threshold)
        self.pivots.append(g)
        return v

    def exclude(self, candidates: Any) -> None:
        """Never choose these, given by a mask."""
        self.usable = self.usable & ~candidates
