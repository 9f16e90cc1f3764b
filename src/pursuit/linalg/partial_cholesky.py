"""The partial Cholesky factorisation that every greedy method of this library is.

Problem. Given functions d_1, ..., d_M through their inner products G[k,l] = <d_k, d_l>, choose
some of them one at a time, and know after each step what the span of those chosen leaves of the
others. G is never formed here: a step needs its diagonal and one column.

===========  ===============  ==============================================================
symbol       name in code     shape and meaning
===========  ===============  ==============================================================
G[k,k]       ``diagonal``     (M,)  squared norms
q_n                           orthonormal basis of the span of the vectors appended so far
V            ``V``            (n, M)  V[n,k] = <q_n, d_k>, the coordinates in that basis
nu[k]        ``residual``     (M,)  |d_k|^2 outside the span: G[k,k] - sum_n V[n,k]^2
R            ``factor``       (n, n)  upper triangular; R'R = G among the vectors appended
g            ``pivots``       candidates chosen, in order
===========  ===============  ==============================================================

One step appends a vector z, whose ``column`` is <z, d_k> for all k, whose ``head`` is <q_n, z>
and whose ``length`` s is the norm of its part outside the span:

1. v = (column - head' V) / s                    (modified Gram-Schmidt, written for G)
2. nu <- nu - v^2;  v becomes the next row of V, (head, s) the next column of R

Where z is itself the candidate g, head = V[:, g] and s = sqrt(nu[g]): `PartialCholesky.pivot`.
A vector that is no candidate goes in through `PartialCholesky.append`.

Step 1 reads all of V, n M numbers at the speed of memory. Who can guess some of the next pivots,
the *panel* P (a guess in vain costs time alone), lets `PartialCholesky.look_ahead` form what is
left of their columns now, after m steps, in one product at the speed of arithmetic:

    L = G[:, P] - V_m' V_m[:, P],    V_m the first m rows,

so that v of a pivot g of the panel at a later step n reads the rows since then alone:

3. v = (L[:, g] - V_{m+1..n}' V_{m+1..n}[:, g]) / s

Who uses it, with which vectors and which rank tolerance. A candidate counts as a combination of
the vectors appended, and is never chosen, where nu[k] <= tolerance G[k,k]:

=====================  ========  ===========================================================
`DICTIONARY_RANK`      1e-6      kernel matching pursuit and all that fit coefficients: a
                                 thousandth of its length outside the span. Its coefficients
                                 would be a thousand times too large for anything that stores
                                 the model in single precision, and on held-out rows such
                                 functions did harm in every trial.
`REDUCTION_RANK`       1e-8      reduced sets: the vectors are free to move, a row this near
                                 is no start for another one
`SUBSPACE_RANK`        1e-10     subspaces (kernel PCA, CCA, Nystroem): there are projections
                                 alone, no coefficients; what is left is rounding
=====================  ========  ===========================================================

Scores that equal the largest up to `TIE_TOLERANCE` count as ties, and the lowest index wins
(`first_best`). All of it is float64: in single precision what is left of the targets drifts, and
after some hundred steps it seems to be gone. Cost of a step: O(M n).
"""

from __future__ import annotations

import numpy as np

from pursuit._typing import Array

__all__ = [
    "DICTIONARY_RANK",
    "REDUCTION_RANK",
    "SUBSPACE_RANK",
    "PartialCholesky",
    "first_best",
]

DICTIONARY_RANK = 1e-6
REDUCTION_RANK = 1e-8
SUBSPACE_RANK = 1e-10
# Relative; sums in another order differ by less.
TIE_TOLERANCE = 1e-10
# Rows of V that there is room for at first; then twice as many each time.
FIRST_CAPACITY = 32


def first_best(scores: Array) -> int:
    """Lowest index among the scores that equal the largest one up to rounding.

    Examples
    --------
    >>> from pursuit.linalg.partial_cholesky import first_best
    >>> first_best(np.array([1.0, 3.0, 3.0 + 1e-12]))
    1
    """
    best = scores.max()
    return int((scores >= best - TIE_TOLERANCE * abs(best)).argmax())


class PartialCholesky:
    """The state of the factorisation; see the top of this module.

    Parameters
    ----------
    diagonal : ndarray of shape (M,)
        Squared norms of the candidates. Those of norm zero are never usable.
    rank_tolerance : float
        Share of its squared norm outside the span below which a candidate is a combination.
    excluded : ndarray of bool of shape (M,), optional
        Candidates that may not be chosen.
    residual : ndarray of shape (M,), optional
        nu at the start, where a factorisation goes on from another one. None: `diagonal`.

    Attributes
    ----------
    residual : ndarray of shape (M,)
        nu, of all candidates; 0 at the pivots.
    usable : ndarray of bool of shape (M,)
        Candidates that may still be chosen.
    pivots : list of int
        Candidates chosen, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.linalg.partial_cholesky import SUBSPACE_RANK, PartialCholesky
    >>> G = np.array([[4.0, 2.0], [2.0, 2.0]])
    >>> state = PartialCholesky(G.diagonal(), SUBSPACE_RANK)
    >>> state.pivot(0, G[:, 0])
    array([2., 1.])
    >>> state.residual
    array([0., 1.])
    """

    def __init__(
        self,
        diagonal: Array,
        rank_tolerance: float,
        *,
        excluded: Array | None = None,
        residual: Array | None = None,
    ) -> None:
        self.diagonal = diagonal
        self.residual = np.array(diagonal if residual is None else residual, dtype=np.float64)
        self.threshold = rank_tolerance * diagonal
        self.usable = self.residual > self.threshold
        if excluded is not None:
            self.usable &= ~excluded
        self.pivots: list[int] = []
        self._columns: list[Array] = []
        self._rows = np.empty((0, len(diagonal)))
        self._panel: dict[int, Array] = {}
        self._panel_start = 0

    def __len__(self) -> int:
        """Number of vectors appended."""
        return len(self._columns)

    @property
    def V(self) -> Array:
        """Coordinates of all candidates in the basis, (n, M); a view."""
        return self._rows[: len(self)]

    @property
    def factor(self) -> Array:
        """R, (n, n)."""
        R = np.zeros((len(self), len(self)))
        for n, column in enumerate(self._columns):
            R[: n + 1, n] = column
        return R

    def factor_column(self, n: int) -> Array:
        """Column of R of the vector appended as the n-th, (n,)."""
        return self._columns[n - 1]

    def deflated(self, columns: Array, candidates: Array | int) -> Array:
        """What the span leaves of columns of G, (M, ...); eq. 3 of Hussain and Shawe-Taylor."""
        left: Array = columns - self.V.T @ self.V[:, candidates]
        return left

    def look_ahead(self, candidates: Array, columns: Array) -> None:
        """Form what the span leaves of the columns of a panel: L at the top of this module.

        Parameters
        ----------
        candidates : ndarray of int of shape (p,)
            Likely pivots.
        columns : ndarray of shape (p, M)
            Their columns of G, as rows.
        """
        left = np.take(self.V, candidates, axis=1).T @ self.V
        np.subtract(columns, left, out=left)
        self._panel = dict(zip(candidates.tolist(), left, strict=True))
        self._panel_start = len(self)

    def foresees(self, g: int) -> bool:
        """Whether `g` is in the panel."""
        return g in self._panel

    def reserve(self, n_more: int) -> None:
        """Make room for so many more vectors: growing as they come would copy V again and again."""
        if len(self) + n_more > len(self._rows):
            larger = np.empty((len(self) + n_more, len(self.diagonal)))
            larger[: len(self)] = self.V
            self._rows = larger

    def append(self, column: Array, head: Array, length: float) -> Array:
        """Append any vector.

        Parameters
        ----------
        column : ndarray of shape (M,)
            Its products with the candidates.
        head : ndarray of shape (n,)
            Its products with the basis.
        length : float
            Norm of its part outside the span.

        Returns
        -------
        v : ndarray of shape (M,)
            The new row of V.
        """
        return self._append((column - head @ self.V) / length, head, length)

    def pivot(self, g: int, column: Array, *, deflated: bool = False) -> Array:
        """Append the candidate `g`.

        Parameters
        ----------
        g : int
            The pivot.
        column : ndarray of shape (M,)
            Its column of G, or with ``deflated=True`` what the span leaves of it.

        Returns
        -------
        v : ndarray of shape (M,)
            The new row of V.
        """
        length = float(np.sqrt(self.residual[g]))
        head = self.V[:, g].copy()
        v = (column if deflated else self._left(g, column, head)) / length
        v[g] = length
        self._append(v, head, length)
        self.residual[g] = 0.0
        self.usable[g] = False
        self.pivots.append(int(g))
        return v

    def _left(self, g: int, column: Array, head: Array) -> Array:
        """What the span leaves of the column of `g`: step 3 for one of the panel, else step 1."""
        start = 0
        if g in self._panel:
            start, column = self._panel_start, self._panel[g]
        left: Array = column - head[start:] @ self.V[start:]
        return left

    def exclude(self, candidates: Array) -> None:
        """Never choose these (indices, or a mask)."""
        self.usable[candidates] = False

    def _append(self, v: Array, head: Array, length: float) -> Array:
        """Store a row of V and a column of R, and bring the residual and the rank test up."""
        n = len(self)
        if n == len(self._rows):
            self.reserve(max(FIRST_CAPACITY, n))
        self._rows[n] = v
        self._columns.append(np.concatenate((head, (length,))))
        self.residual -= v * v
        np.maximum(self.residual, 0.0, out=self.residual)
        self.usable &= self.residual > self.threshold
        return v
