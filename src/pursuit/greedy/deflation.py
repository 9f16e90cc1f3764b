"""Greedy choice of points whose feature vectors span most of a kernel matrix.

Hussain and Shawe-Taylor, "Theory of matching pursuit" (2008), section 2; equation numbers are
theirs. A point i is chosen and the kernel matrix deflated,

    K^ <- K^ - t t' / K^[i,i],    t = K^[:, i],                                        (eq. 3)

which leaves the inner products of what the chosen feature vectors do not span. K^ (m x m) is
never formed: with v = t / sqrt(K^[i,i]) for each chosen point as the rows of V,

    K^ = K - V'V,    d = diag(K^) <- d - v^2,    K^[:, i] = K[:, i] - V' V[:, i],

a partial Cholesky factorisation of K.

===========  ===================  =======================================================
symbol       name in code         shape and meaning
===========  ===================  =======================================================
V            ``V``                (n, m)  also the coordinates of the rows in an
                                  orthonormal basis of the span
d            ``residual``         (m,)  squared distance of each row to the span
w            ``weights``          (m,)  weights of the rows
c            ``scores``           (m,)  sum_j w_j K^[j,i]^2
===========  ===================  =======================================================

Rules:

==============  ====================  =====================================================
``rayleigh``    argmax c_i / d_i      eq. 2, algorithm 1: the drop of sum_j w_j d_j
``residual``    argmax d_i            pivoted Cholesky
``rpcholesky``  drawn, p ~ w_i d_i    randomly pivoted Cholesky (Chen et al. 2022)
``random``      drawn, p ~ w_i        the usual Nystroem method
==============  ====================  =====================================================

The scores of all points are kept exactly from step to step (``scores``), at one product with K a
step, with t weighted by w:

    c_i <- c_i - 2 (K^ W t)_i t_i / d + (t'W t) t_i^2 / d^2,    d = K^[i,i].

With `n_candidates` points drawn at each step only their columns are looked at, and no product
with K is needed: of 59, with probability 0.95 the best is among the best 5 % of all (Smola and
Schoelkopf 2000).

Cost. n steps take O(m n^2) and n columns of K (59 n of them with candidates); exact scores take n
products with K. A point whose residual is below 1e-10 of K(x, x) counts as spanned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit.greedy.pursuits import with_room
from pursuit.kernels import Kernel, Precomputed, resolve_kernel
from pursuit.linalg import blocks
from pursuit.linalg.partial_cholesky import first_best

__all__ = [
    "ENOUGH",
    "SELECTIONS",
    "Deflation",
    "axis_signs",
    "choose",
    "kernel_and_rows",
    "listed_rule",
    "selection_rule",
]

SELECTIONS = ("rayleigh", "residual", "rpcholesky", "random")
SPANNED = 1e-10
# Of so many random points the best is among the best 5 % with probability 0.95.
ENOUGH = 59
# Rows at a time of the columns that are looked at.
PIECE_BYTES = 1 << 21


class Deflation:
    """The state of the factorisation; see the top of this module.

    Parameters
    ----------
    kernel : Kernel
        K, positive semidefinite.
    X : {ndarray, CSR matrix} of shape (m, n_features)
        The rows, all of positive weight.
    weights : ndarray of shape (m,)
        w.
    """

    def __init__(self, kernel: Kernel, X: Any, weights: Array) -> None:
        self.kernel, self.X, self.weights = kernel, X, weights
        self.norms = _squared_norms(kernel, X)
        self.residual = self.norms.copy()
        self.V = np.empty((0, X.shape[0]))
        self.picks: list[int] = []
        self.residual_sums: list[float] = []

    @property
    def usable(self) -> Array:
        """Indices of the points that are not spanned yet."""
        return np.flatnonzero(self.residual > SPANNED * self.norms)

    def kernel_columns(self, indices: Array) -> Array:
        """K[:, indices], (m, len(indices)) in float64."""
        columns = blocks.evaluate(self._functions(indices), self.X, len(indices))
        return np.asarray(columns, dtype=np.float64)

    def _functions(self, indices: Array) -> blocks.Functions:
        """Rows to their kernel values with some points."""
        centres = indices if isinstance(self.kernel, Precomputed) else self.X[indices]
        prepared = self.kernel.prepare(_float64(centres))
        return lambda X: self.kernel.evaluate(X, prepared)

    def columns(self, indices: Array) -> Array:
        """K^[:, indices], (m, len(indices))."""
        V = self.V[: len(self.picks)]
        columns: Array = self.kernel_columns(indices) - V.T @ V[:, indices]
        return columns

    def scored_columns(self, indices: Array) -> tuple[Array, Array]:
        """K^[:, indices] and c of these points, in pieces that stay in the processor's cache."""
        functions = self._functions(indices)
        V = self.V[: len(self.picks)]
        at = V[:, indices]
        columns = np.empty((len(self.norms), len(indices)))

        def part(rows: slice) -> Array:
            values = functions(self.X[rows]) - V[:, rows].T @ at
            columns[rows] = values
            scores: Array = self.weights[rows] @ (values * values)
            return scores

        m, size = len(columns), max(8, PIECE_BYTES // (8 * len(indices)))
        pieces = [slice(start, min(start + size, m)) for start in range(0, m, size)]
        return columns, np.sum(blocks.in_parallel(part, pieces), axis=0)

    def deflate(self, pick: int, column: Array) -> None:
        """Choose a point, whose column of K^ is given (eq. 3)."""
        n = len(self.picks)
        self.V = with_room(self.V, n)
        v = column / np.sqrt(self.residual[pick])
        self.V[n] = v
        self.residual = np.maximum(self.residual - v * v, 0.0)
        self.residual[pick] = 0.0
        self.picks.append(int(pick))
        self.residual_sums.append(float(self.weights @ self.residual))


# From the usable points to a pick and its column of K^, or None.
Rule = Callable[[Array], tuple[int, Array] | None]


def choose(deflation: Deflation, rule: Rule, n_components: int) -> None:
    """Choose points until there are so many, or the rule has no other."""
    while len(deflation.picks) < n_components:
        usable = deflation.usable
        choice = rule(usable) if len(usable) else None
        if choice is None:
            return
        deflation.deflate(*choice)


def selection_rule(
    deflation: Deflation,
    selection: str,
    rng: np.random.RandomState,
    n_candidates: int | None = None,
) -> Rule:
    """One of the rules in the table at the top of this module.

    Parameters
    ----------
    deflation : Deflation
        Without any picks.
    selection : {"rayleigh", "residual", "rpcholesky", "random"}
        The rule.
    rng : RandomState
        For what is drawn.
    n_candidates : int, optional
        Number of points that each step of ``"rayleigh"`` looks at. None: all.
    """
    if selection == "rayleigh":
        if n_candidates is None:
            return ExactScores(deflation)
        return lambda usable: _best_of(deflation, _some(usable, n_candidates, rng))

    def single(pick: int) -> tuple[int, Array]:
        return pick, deflation.columns(np.array([pick]))[:, 0]

    if selection == "residual":
        return lambda usable: single(int(usable[first_best(deflation.residual[usable])]))
    power = 1.0 if selection == "rpcholesky" else 0.0
    return lambda usable: single(_drawn(deflation, usable, power, rng))


def listed_rule(deflation: Deflation, points: Array) -> Rule:
    """The points given, in their order; those spanned by earlier ones are left out."""
    remaining = list(points[::-1])

    def rule(usable: Array) -> tuple[int, Array] | None:
        open_points = set(usable.tolist())
        while remaining:
            pick = int(remaining.pop())
            if pick in open_points:
                return pick, deflation.columns(np.array([pick]))[:, 0]
        return None

    return rule


def axis_signs(axes: Array) -> Array:
    """Signs that make the largest entry of each column positive, whatever the eigensolver."""
    if not axes.size:
        return np.ones(axes.shape[1])
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)


def kernel_and_rows(
    X: Any, rows: Array, weights: Array, arguments: Mapping[str, Any], name: str = "X"
) -> tuple[Kernel, Any]:
    """The kernel with its numbers resolved on some rows, and these rows.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_samples, n_features)
        All rows.
    rows : ndarray of int of shape (m,)
        Those that count.
    weights : ndarray of shape (m,)
        Their weights.
    arguments : mapping
        Those of `pursuit.kernels.resolve_kernel`.
    name : str, default "X"
        What the caller calls `X`.

    Raises
    ------
    ValueError
        If the kernel is precomputed and `X` is not square, or an argument is out of range.
    """
    used = X if len(rows) == X.shape[0] else X[rows]
    kernel = resolve_kernel(X=used, sample_weight=weights, **arguments)
    if isinstance(kernel, Precomputed):
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square {name}, got shape {X.shape}")
        used = used[:, rows]
    return kernel, used


def _squared_norms(kernel: Kernel, X: Any) -> Array:
    """K(x, x) of each row; raise where no positive semidefinite kernel has such a value."""
    norms = kernel.diagonal(X)
    wrong = np.flatnonzero(~np.isfinite(norms))
    if len(wrong):
        raise ValueError(f"kernel: K(x, x) is not finite at row {wrong[0]}")
    wrong = np.flatnonzero(norms < -SPANNED * np.abs(norms).max(initial=0.0))
    if len(wrong):
        raise ValueError(
            f"kernel must be positive semidefinite, but K(x, x) is {norms[wrong[0]]:g} "
            f"at row {wrong[0]}"
        )
    return np.maximum(norms, 0.0)


def _some(usable: Array, n_candidates: int, rng: np.random.RandomState) -> Array:
    """Points drawn without replacement, in row order."""
    if n_candidates >= len(usable):
        return usable
    return np.sort(rng.choice(usable, size=n_candidates, replace=False))


def _best_of(deflation: Deflation, candidates: Array) -> tuple[int, Array]:
    """The candidate with the largest Rayleigh quotient, from the columns of all (eq. 2)."""
    columns, scores = deflation.scored_columns(candidates)
    best = first_best(scores / deflation.residual[candidates])
    return int(candidates[best]), columns[:, best]


def _drawn(deflation: Deflation, usable: Array, power: float, rng: np.random.RandomState) -> int:
    """A point drawn with probability in proportion to w d^power."""
    odds = deflation.weights[usable] * deflation.residual[usable] ** power
    return int(rng.choice(usable, p=odds / odds.sum()))


class ExactScores:
    """The Rayleigh rule with the scores of all points, updated from step to step.

    K is kept where it fits in memory, and evaluated in blocks of rows for each product where not.
    """

    def __init__(self, deflation: Deflation) -> None:
        self.deflation = deflation
        m = len(deflation.norms)
        self.kept = deflation.kernel_columns(np.arange(m)) if blocks.fits(8.0 * m * m) else None
        self.scores = np.zeros(m)
        for rows, values in self._blocks():
            self.scores[rows] = (values * values) @ deflation.weights

    def __call__(self, usable: Array) -> tuple[int, Array]:
        """Choose, and bring the scores to the matrix deflated by the choice."""
        deflation = self.deflation
        pick = int(usable[first_best(self.scores[usable] / deflation.residual[usable])])
        column = deflation.columns(np.array([pick]))[:, 0]
        d = deflation.residual[pick]
        weighted = deflation.weights * column
        V = deflation.V[: len(deflation.picks)]
        image = self._times(weighted) - V.T @ (V @ weighted)
        ratio = column / d
        self.scores += ratio * (ratio * float(weighted @ column) - 2.0 * image)
        return pick, column

    def _times(self, vector: Array) -> Array:
        """K vector."""
        product = np.empty_like(vector)
        for rows, values in self._blocks():
            product[rows] = values @ vector
        return product

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows of K."""
        m = len(self.deflation.norms)
        if self.kept is not None:
            yield slice(0, m), self.kept
            return
        kernel, X = self.deflation.kernel, self.deflation.X
        centres = np.arange(m) if isinstance(kernel, Precomputed) else X
        prepared = kernel.prepare(_float64(centres))
        for rows in blocks.row_blocks(m, 8.0 * m):
            part = X[rows]
            values = blocks.evaluate(lambda Z: kernel.evaluate(Z, prepared), part, m)
            yield rows, np.asarray(values, dtype=np.float64)


def _float64(centres: Any) -> Any:
    """Centres that make every kernel value float64."""
    return centres if centres.dtype.kind != "f" else centres.astype(np.float64)
