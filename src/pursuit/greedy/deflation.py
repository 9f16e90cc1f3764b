"""Greedy choice of points whose feature vectors span most of a kernel matrix.

Hussain and Shawe-Taylor, "Theory of matching pursuit" (2008), section 2; equation numbers are
theirs. A point i is chosen and the kernel matrix deflated,

    K^ <- K^ - t t' / K^[i,i],    t = K^[:, i],                                        (eq. 3)

which leaves the inner products of what the chosen feature vectors do not span. K^ (m x m) is
never formed: with v = t / sqrt(K^[i,i]) for each chosen point as the rows of V,

    K^ = K - V'V,    d = diag(K^) <- d - v^2,    K^[:, i] = K[:, i] - V' V[:, i],

the partial Cholesky factorisation of K (``linalg/partial_cholesky.py``).

===========  ===================  =======================================================
symbol       name in code         shape and meaning
===========  ===================  =======================================================
V            ``V``                (n, m)  also the coordinates of the rows in an
                                  orthonormal basis of the span
d            ``residual``         (m,)  squared distance of each row to the span
w            ``weights``          (m,)  weights of the rows
c            ``scores``           (m,)  sum_j w_j K^[j,i]^2
===========  ===================  =======================================================

The rules are ``rayleigh`` (eq. 2, algorithm 1), ``residual``, ``rpcholesky`` and ``random`` of
``pivot_rules.py``.

The scores of all points are kept exactly from step to step (``scores``), at one product with K a
step, with t weighted by w:

    c_i <- c_i - 2 (K^ W t)_i t_i / d + (t'W t) t_i^2 / d^2,    d = K^[i,i].

With `n_candidates` points drawn at each step only their columns are looked at, and no product
with K is needed: of 59, with probability 0.95 the best is among the best 5 % of all (Smola and
Schoelkopf 2000).

Cost. n steps take O(m n^2) and n columns of K (59 n of them with candidates); exact scores take n
products with K. A point whose residual is below `SUBSPACE_RANK` of K(x, x) counts as spanned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pursuit._arrays import to_numpy
from pursuit._typing import Array, Watch
from pursuit.greedy.pivot_rules import DRAWN, PIVOT_RULES
from pursuit.kernels import Kernel, Precomputed, check_square, check_values, resolve_kernel
from pursuit.linalg import blocks
from pursuit.linalg.partial_cholesky import SUBSPACE_RANK, PartialCholesky, first_best

__all__ = [
    "N_CANDIDATES_95",
    "SELECTIONS",
    "Deflation",
    "KernelMatrix",
    "axis_signs",
    "choose",
    "kernel_and_rows",
    "listed_rule",
    "selection_rule",
]

SELECTIONS = ("rayleigh", "residual", "rpcholesky", "random")
# Of so many random points the best is among the best 5 % with probability 0.95.
N_CANDIDATES_95 = 59
# Rows at a time of the columns that are looked at.
PIECE_BYTES = 1 << 21


class Deflation(PartialCholesky):
    """The factorisation of a kernel matrix; see the top of this module.

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
        super().__init__(_squared_norms(kernel, X), SUBSPACE_RANK)
        self.kernel, self.X, self.weights = kernel, X, weights
        self.residual_sums: list[float] = []

    def kernel_columns(self, indices: Array) -> Array:
        """K[:, indices], (m, len(indices)) in float64."""
        columns = blocks.evaluate(self._functions(indices), self.X, len(indices))
        return np.asarray(columns, dtype=np.float64)

    def _functions(self, indices: Array) -> blocks.Functions:
        """Rows to their kernel values with some points."""
        centres = indices if isinstance(self.kernel, Precomputed) else self.X[indices]
        prepared = self.kernel.prepare(_float64(centres))
        return lambda X: check_values(self.kernel, self.kernel.evaluate(X, prepared))

    def columns(self, indices: Array) -> Array:
        """K^[:, indices], (m, len(indices))."""
        return self.deflated(self.kernel_columns(indices), indices)

    def scored_columns(self, indices: Array) -> tuple[Array, Array]:
        """K^[:, indices] and c of these points, in pieces that stay in the processor's cache."""
        functions = self._functions(indices)
        V = self.V
        at = V[:, indices]
        columns = np.empty((len(self.diagonal), len(indices)))

        def part(rows: slice) -> Array:
            values = functions(self.X[rows]) - V[:, rows].T @ at
            columns[rows] = values
            scores: Array = self.weights[rows] @ (values * values)
            return scores

        m, size = len(columns), max(8, PIECE_BYTES // (8 * len(indices)))
        pieces = [slice(start, min(start + size, m)) for start in range(0, m, size)]
        return columns, np.sum(blocks.in_parallel(part, pieces), axis=0)

    def kernel_matrix(self) -> KernelMatrix:
        """K, for products with all of it."""
        return KernelMatrix(self)

    def deflate(self, pivot: int, column: Array) -> None:
        """Choose a point, whose column of K^ is given (eq. 3)."""
        self.pivot(pivot, column, deflated=True)
        self.residual_sums.append(float(self.weights @ self.residual))


# From the usable points to a pivot and its column of K^, or None.
Rule = Callable[[Array], tuple[int, Array] | None]


def choose(
    deflation: Deflation, rule: Rule, n_components: int, watch: Watch[Deflation] | None = None
) -> str:
    """Choose points until there are so many, the rule has no other, or a watch ends it.

    Returns
    -------
    reason : str
        ``"n_components"``, ``"rank"``, or what the watch said.
    """
    while len(deflation.pivots) < n_components:
        usable = np.flatnonzero(deflation.usable)
        choice = rule(usable) if len(usable) else None
        if choice is None:
            return "rank"
        deflation.deflate(*choice)
        if watch is not None and (reason := watch(deflation)):
            return reason
    return "n_components"


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
        Without any pivots.
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

    def single(pivot: int) -> tuple[int, Array]:
        return pivot, deflation.columns(np.array([pivot]))[:, 0]

    if selection in DRAWN:
        return lambda usable: single(_drawn(deflation, usable, selection, rng))
    return lambda usable: single(int(usable[first_best(deflation.residual[usable])]))


def listed_rule(deflation: Deflation, points: Array) -> Rule:
    """The points given, in their order; those spanned by earlier ones are left out."""
    remaining = list(points[::-1])

    def rule(usable: Array) -> tuple[int, Array] | None:
        open_points = set(usable.tolist())
        while remaining:
            pivot = int(remaining.pop())
            if pivot in open_points:
                return pivot, deflation.columns(np.array([pivot]))[:, 0]
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
        check_square(X, name)
        used = used[:, rows]
    return kernel, used


def _squared_norms(kernel: Kernel, X: Any) -> Array:
    """K(x, x) of each row; raise where no positive semidefinite kernel has such a value."""
    norms = kernel.diagonal(X)
    wrong = np.flatnonzero(~np.isfinite(norms))
    if len(wrong):
        raise ValueError(f"kernel: K(x, x) is not finite at row {wrong[0]}")
    wrong = np.flatnonzero(norms < -SUBSPACE_RANK * np.abs(norms).max(initial=0.0))
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
    best = first_best(_rated("rayleigh", scores, deflation, candidates))
    return int(candidates[best]), to_numpy(columns[:, best])


def _rated(rule: str, known: Array, deflation: Deflation, points: Array) -> Array:
    """Scores of some points, by a rule and what it knows of them."""
    return PIVOT_RULES[rule](known, deflation.residual[points], deflation.diagonal[points])


def _drawn(deflation: Deflation, usable: Array, rule: str, rng: np.random.RandomState) -> int:
    """A point drawn with the odds of a rule."""
    odds = _rated(rule, deflation.weights[usable], deflation, usable)
    return int(rng.choice(usable, p=odds / odds.sum()))


class ExactScores:
    """The Rayleigh rule with the scores of all points, updated from step to step."""

    def __init__(self, deflation: Deflation) -> None:
        self.deflation, self.matrix = deflation, deflation.kernel_matrix()
        self.scores = self.matrix.squares(deflation.weights)

    def __call__(self, usable: Array) -> tuple[int, Array]:
        """Choose, and bring the scores to the matrix deflated by the choice."""
        deflation = self.deflation
        rated = _rated("rayleigh", self.scores[usable], deflation, usable)
        pivot = int(usable[first_best(rated)])
        column = deflation.columns(np.array([pivot]))[:, 0]
        d = deflation.residual[pivot]
        weighted = deflation.weights * column
        V = deflation.V
        image = self.matrix.times(weighted) - V.T @ (V @ weighted)
        ratio = column / d
        self.scores += ratio * (ratio * float(weighted @ column) - 2.0 * image)
        return pivot, column


class KernelMatrix:
    """Products with K, kept where it fits in memory, else evaluated for each in blocks of rows."""

    def __init__(self, deflation: Deflation) -> None:
        self.deflation = deflation
        m = len(deflation.diagonal)
        self.kept = deflation.kernel_columns(np.arange(m)) if blocks.fits(8.0 * m * m) else None

    def squares(self, weights: Array) -> Array:
        """sum_j w_j K[i,j]^2 of each row."""
        sums = np.zeros(len(weights))
        for rows, values in self._blocks():
            sums[rows] = (values * values) @ weights
        return sums

    def times(self, vector: Array) -> Array:
        """K vector."""
        product = np.empty_like(vector)
        for rows, values in self._blocks():
            product[rows] = values @ vector
        return product

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows of K."""
        m = len(self.deflation.diagonal)
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
