"""The normal equations of a dictionary: G = D'WD, D'WY and the intercept, in one pass.

All inner products carry the sample weights, <u, v> = sum_i w_i u_i v_i. With an intercept the
constant function is orthogonalised first: every atom and target is replaced by its deviation
from its weighted mean, and the intercept follows from the means at the end.

===========  ====================  ======================================================
symbol       name in code          shape and meaning
===========  ====================  ======================================================
l, M, T                            rows, atoms, targets
w            ``weights``           (l,)  sample weights, all positive
o, p         ``origin.atoms``,     (M,), (T,)  fixed points near the means; they only
             ``origin.targets``    keep the sums small, results do not depend on them
G0           ``gram``              (M, M)  sum_i w_i (d(x_i) - o)(d(x_i) - o)'
c            ``atom_sum``          (M,)  sum_i w_i (d(x_i) - o)
B0           ``cross``             (T, M)  sum_i w_i (y_i - p)(d(x_i) - o)'
s            ``target_sum``        (T,)  sum_i w_i (y_i - p)
e0           ``target_sq_norm``    (T,)  sum_i w_i (y_i - p)^2
W            ``weight``            sum_i w_i
===========  ====================  ======================================================

These *moments* add up over rows and can be subtracted: the moments of a training part are
those of all rows less those of the rows left out, which makes K-fold paths exact and cheap.
From moments to the centred normal equations:

    G = G0 - c c'/W + alpha P,   B = B0 - s c'/W,   target_sq_norm = e0 - s^2/W,
    mean of d = o + c/W,         mean of y = p + s/W.

Two routes give the rows of G. The **Gram route** accumulates G0 in the pass: l M^2 flops once,
M^2 numbers, then a row is free. The **direct route** keeps only the diagonal and computes rows
when they are asked for, a *panel* at a time: the row wanted and those most likely to be wanted
next (as a draft of the next steps says, see ``pursuits.py``), so that a pass over the dictionary
runs at the speed of a matrix product. It keeps the l x M matrix where that fits in memory and
evaluates it anew where not. Both give the same atoms to rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit._validation import Samples, refuse_not_finite
from pursuit.expansion.penalty import IDENTITY, Penalty
from pursuit.greedy.drafts import DRAFT_ATOMS
from pursuit.greedy.gram_rows import KEPT_PANEL, PANEL, LazyGram, SmallGram, own_ridge
from pursuit.linalg import blocks
from pursuit.linalg.factor import add_gram, gram_zeros, mirror, subtract_outer
from pursuit.linalg.memory import require_memory

__all__ = [
    "Moments",
    "NormalEquations",
    "Origin",
    "WeightedValues",
    "centred_diagonal",
    "centred_equations",
    "choose_route",
    "complete_moments",
    "equations_about",
    "gather",
    "normal_equations",
]

# Share of the working memory that sums of each thread may take.
SHARE_OF_SUMS = 0.25
# Steps for which the rows of one panel last, about.
STEPS_A_PANEL = 10


@dataclass(frozen=True)
class Origin:
    """Fixed points from which atoms and targets are measured."""

    atoms: Array
    targets: Array


@dataclass(frozen=True)
class Moments:
    """Sums over rows that determine the normal equations; see the table of this module."""

    origin: Origin
    gram: Array | None
    diagonal: Array
    atom_sum: Array
    cross: Array
    target_sum: Array
    target_sq_norm: Array
    weight: float

    def copy(self) -> Moments:
        """Return moments whose Gram matrix may be overwritten."""
        return replace(self, gram=None if self.gram is None else self.gram.copy())

    def take(self, atoms: Array) -> Moments:
        """Moments of some of the atoms."""
        return replace(
            self,
            origin=Origin(self.origin.atoms[atoms], self.origin.targets),
            gram=None if self.gram is None else self.gram[np.ix_(atoms, atoms)],
            diagonal=self.diagonal[atoms],
            atom_sum=self.atom_sum[atoms],
            cross=self.cross[:, atoms],
        )

    def without(self, other: Moments) -> Moments:
        """Moments of the rows that are not in `other`, which are among these (same origin)."""
        gram = None
        if self.gram is not None and other.gram is not None:
            gram = self.gram - other.gram
        return Moments(
            self.origin,
            gram,
            self.diagonal - other.diagonal,
            self.atom_sum - other.atom_sum,
            self.cross - other.cross,
            self.target_sum - other.target_sum,
            self.target_sq_norm - other.target_sq_norm,
            self.weight - other.weight,
        )

    def plus(self, other: Moments) -> Moments:
        """Moments of the rows of both, measured from this one's origin."""
        other = other.about(self.origin)
        gram = None
        if self.gram is not None and other.gram is not None:
            gram = self.gram + other.gram
        return Moments(
            self.origin,
            gram,
            self.diagonal + other.diagonal,
            self.atom_sum + other.atom_sum,
            self.cross + other.cross,
            self.target_sum + other.target_sum,
            self.target_sq_norm + other.target_sq_norm,
            self.weight + other.weight,
        )

    def about(self, origin: Origin) -> Moments:
        """The same moments measured from another origin o', p'.

        With delta = o - o' and eps = p - p' each d - o' is (d - o) + delta, so that

            G0' = G0 + c delta' + delta c' + W delta delta',    c' = c + W delta,
            B0' = B0 + s delta' + eps c' + W eps delta',        s' = s + W eps,
            e0' = e0 + 2 eps s + W eps^2.
        """
        delta = self.origin.atoms - origin.atoms
        eps = self.origin.targets - origin.targets
        if not delta.any() and not eps.any():
            return self
        c, s, weight, gram = self.atom_sum, self.target_sum, self.weight, self.gram
        if gram is not None and delta.any():
            half = np.outer(c + 0.5 * weight * delta, delta)
            gram = gram + half + half.T
        return Moments(
            origin,
            gram,
            self.diagonal + delta * (2.0 * c + weight * delta),
            c + weight * delta,
            self.cross + np.outer(s + weight * eps, delta) + np.outer(eps, c),
            s + weight * eps,
            self.target_sq_norm + eps * (2.0 * s + weight * eps),
            weight,
        )


@dataclass
class NormalEquations:
    """Centred, weighted, ridged normal equations, ready for a pursuit.

    Attributes
    ----------
    gram : SmallGram or LazyGram
        Rows of G, ridge included.
    cross : ndarray of shape (n_targets, n_atoms)
        B, products of the atoms with the targets.
    target_sq_norm : ndarray of shape (n_targets,)
        Squared norms of the targets.
    atom_mean, target_mean : ndarray of shape (n_atoms,), (n_targets,)
        Weighted means; zero without an intercept.
    weight : float
        Sum of the weights.
    alpha : float
        Ridge on the atoms.
    penalty : Penalty
        P of the ridge; see ``expansion/penalty.py``.
    """

    gram: SmallGram | LazyGram
    cross: Array
    target_sq_norm: Array
    atom_mean: Array
    target_mean: Array
    weight: float
    alpha: float
    penalty: Penalty = IDENTITY


def choose_route(shape: tuple[int, int], n_atoms: int, n_steps: int) -> str:
    """``"gram"`` or ``"direct"``, by memory first and then by arithmetic.

    The Gram route costs l M^2 flops (a symmetric update). The direct route costs 2 l M flops a row
    of a panel, at half the rate as there are few rows, and 2 l flops an entry of its draft's Gram
    matrix. A panel serves some ten steps. Where the l x M matrix does not fit in memory, panels are
    larger, and each evaluates it anew.
    """
    n_rows, n_features = shape
    if not blocks.fits(8.0 * n_atoms * n_atoms):
        return "direct"
    n_panels = max(1.0, n_steps / STEPS_A_PANEL)
    kept = blocks.fits(8.0 * n_rows * n_atoms)
    panel = 4.0 * (KEPT_PANEL if kept else PANEL) * n_atoms
    draft = 2.0 * min(DRAFT_ATOMS, n_atoms) ** 2
    kernels = 0.0 if kept else (2.0 * n_features + 30.0) * n_atoms
    return "gram" if n_atoms**2 <= n_panels * (panel + draft + kernels) else "direct"


class WeightedValues:
    """The dictionary on the training rows: blocks of sqrt(w_i) (d(x_i) - o), in float64.

    Iterating gives pairs (rows, values): a slice, and an array of shape (n_rows, n_atoms), which
    the next block overwrites.

    Parameters
    ----------
    functions : callable
        The dictionary: rows to an array of shape (n_rows, n_atoms).
    samples : Samples
        Rows, targets and weights.
    n_atoms : int
        M.
    centred : bool
        Whether an intercept will be fitted (then an origin near the means is used).
    keep : bool, default False
        Whether to keep the whole matrix, if it fits in memory, for further passes.
    origin : Origin, optional
        Taken from values whose moments these will be subtracted from.
    subset : callable, optional
        Maps indices of atoms to a callable like `functions` for these atoms alone.
    """

    def __init__(
        self,
        functions: Callable[[Any], Array],
        samples: Samples,
        n_atoms: int,
        *,
        centred: bool,
        keep: bool = False,
        origin: Origin | None = None,
        subset: Callable[[Array], Callable[[Any], Array]] | None = None,
    ) -> None:
        self.functions = functions
        self.subset = subset or (lambda atoms: lambda X: functions(X)[:, atoms])
        self.samples = samples
        self.n_atoms = n_atoms
        self.centred = centred
        self.origin = origin or _origin(functions, samples, n_atoms, centred)
        n_rows = samples.X.shape[0]
        self._keep = keep and blocks.fits(8.0 * n_rows * n_atoms)
        self._kept: Array | None = None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Evaluate block by block, or hand out the matrix that was kept."""
        n_rows = self.samples.X.shape[0]
        if self._keep:
            everything = slice(0, n_rows)
            if self._kept is None:
                # Atom after atom: passes read all rows of some atoms.
                by_atom = np.empty((self.n_atoms, n_rows)).T
                self._kept = self._block(everything, by_atom)
            yield everything, self._kept
            return
        yield from self.over(self.panels())

    def panels(self) -> list[slice]:
        """The blocks of rows of a pass."""
        return list(blocks.panels(self.samples.X.shape[0], 8.0 * self.n_atoms))

    def over(self, panels: list[slice]) -> Iterator[tuple[slice, Array]]:
        """Evaluate these blocks."""
        room: Array | None = None
        for rows in panels:
            size = rows.stop - rows.start
            # New memory costs about as much as what is written into it.
            room = np.empty((size, self.n_atoms)) if room is None else room
            yield rows, self._block(rows, room[:size])

    def among(self, atoms: Array) -> Iterator[Array]:
        """Blocks of the values of some atoms alone, (n_rows, len(atoms))."""
        if self._kept is not None:
            yield self._kept.T[atoms].T
            return
        functions = self.subset(atoms)
        for rows in blocks.row_blocks(self.samples.X.shape[0], 8.0 * len(atoms)):
            yield self._weighted(rows, functions, self.origin.atoms[atoms])

    @property
    def kept(self) -> bool:
        """Whether a further pass reads values from memory."""
        return self._keep

    def _block(self, rows: slice, out: Array | None = None) -> Array:
        """Values of one block of rows."""
        return self._weighted(rows, self.functions, self.origin.atoms, out)

    def _weighted(
        self,
        rows: slice,
        functions: Callable[[Any], Array],
        origin: Array,
        out: Array | None = None,
    ) -> Array:
        """Values of some functions on a block of rows, measured from `origin`, weighted."""
        values = blocks.evaluate(functions, self.samples.X[rows], len(origin), origin, out)
        weights = self.samples.weights[rows]
        if (weights != 1.0).any():
            values *= np.sqrt(weights)[:, None]
        return values


def gather(values: WeightedValues, *, complete: bool) -> Moments:
    """One pass over the rows.

    Parameters
    ----------
    values : WeightedValues
        The dictionary on the training rows.
    complete : bool
        Whether to accumulate G0 itself (Gram route) or its diagonal alone.

    Raises
    ------
    ValueError
        If the kernel gives values that are not finite; the message names the first row.
    """
    shares = _shares(values) if complete else [None]
    first, *others = blocks.in_parallel(
        lambda panels: _atom_sums(values, panels, complete=complete), shares
    )
    for other in others:
        for total, part in zip(first, other, strict=True):
            total += part
    gram, diagonal, atom_sum, cross = first
    if complete:
        mirror(gram)
        diagonal = gram.diagonal().copy()
    return complete_moments(
        values.origin, gram if complete else None, diagonal, atom_sum, cross, values.samples
    )


def _shares(values: WeightedValues) -> list[list[slice] | None]:
    """Panels of rows for each thread to sum up by itself, where there is room for sums of its own.

    Threads then never wait for each other; else, and for values that are kept, all work on one sum.
    """
    n_threads, panels = blocks.n_threads(), values.panels()
    small = blocks.fits(2 * 8.0 * values.n_atoms**2 * n_threads / SHARE_OF_SUMS)
    if values.kept or not small or n_threads < 2 or len(panels) < 2 * n_threads:
        return [None]
    bounds = np.linspace(0, len(panels), n_threads + 1).astype(int)
    return [panels[a:b] for a, b in itertools.pairwise(bounds)]


def _atom_sums(
    values: WeightedValues, panels: list[slice] | None, *, complete: bool
) -> tuple[Array, Array, Array, Array]:
    """G0 (its upper triangle; empty if not `complete`), its diagonal else, c and B0 over panels."""
    _, Y, weights, _ = values.samples
    n_atoms = values.n_atoms
    weighted = weights[:, None] * (Y - values.origin.targets)
    gram = _empty_gram(n_atoms if complete else 0)
    room = np.empty_like(gram, order="C") if panels is not None else None
    diagonal, atom_sum = np.zeros(n_atoms), np.zeros(n_atoms)
    cross = np.zeros((Y.shape[1], n_atoms))
    with nullcontext() if panels is None else blocks.at_most_threads(1):
        for rows, block in values if panels is None else values.over(panels):
            root = np.sqrt(weights[rows])
            with np.errstate(invalid="ignore"):
                sums = np.column_stack([root, weighted[rows] / root[:, None]]).T @ block
            if not np.isfinite(sums[0]).all():
                refuse_not_finite(block, rows.start)
            atom_sum += sums[0]
            cross += sums[1:]
            if complete:
                add_gram(gram, block, room)
            else:
                diagonal += np.einsum("ij,ij->j", block, block)
    return gram, diagonal, atom_sum, cross


def complete_moments(
    origin: Origin,
    gram: Array | None,
    diagonal: Array,
    atom_sum: Array,
    cross: Array,
    samples: Samples,
) -> Moments:
    """Moments from those of the atoms: the sums over the targets beside them.

    Raises
    ------
    ValueError
        If squares are not finite.
    """
    deviations, weights = samples.Y - origin.targets, samples.weights
    weighted = weights[:, None] * deviations
    with np.errstate(over="ignore"):
        target_sq_norm = (weighted * deviations).sum(axis=0)
    if not np.isfinite(target_sq_norm).all():
        raise ValueError("y: the targets are too large to be squared; rescale them")
    if not np.isfinite(diagonal).all():
        raise ValueError("kernel: the values are too large to be squared; rescale the features")
    sums = (weighted.sum(axis=0), target_sq_norm, float(weights.sum()))
    return Moments(origin, gram, diagonal, atom_sum, cross, *sums)


def _empty_gram(n_atoms: int) -> Array:
    """Zeros for G0, where the machine can hold them."""
    require_memory(
        8.0 * n_atoms**2,
        f"the Gram matrix of {n_atoms} functions",
        "take fewer candidates (n_candidates, or vectors of the statistics), or route='direct'",
    )
    return gram_zeros((n_atoms, n_atoms))


def _origin(
    functions: Callable[[Any], Array], samples: Samples, n_atoms: int, centred: bool
) -> Origin:
    """A point near the mean of the atoms (from up to 512 rows) and of the targets."""
    if not centred:
        return Origin(np.zeros(n_atoms), np.zeros(samples.Y.shape[1]))
    n_rows = samples.X.shape[0]
    few = np.unique(np.linspace(0, n_rows - 1, min(n_rows, 512)).astype(int))
    values = blocks.evaluate(functions, samples.X[few], n_atoms)
    atoms = values.mean(axis=0, dtype=np.float64)
    if not np.isfinite(atoms).all():
        refuse_not_finite(values, None)
    return Origin(atoms, np.average(samples.Y, axis=0, weights=samples.weights))


def normal_equations(
    moments: Moments, values: WeightedValues, *, alpha: float, penalty: Penalty = IDENTITY
) -> NormalEquations:
    """Centre the moments and add the ridge.

    Parameters
    ----------
    moments : Moments
        Their `gram` is overwritten.
    values : WeightedValues
        The dictionary on the same rows, for the direct route.
    alpha : float
        Ridge on the atoms, never on the intercept.
    penalty : Penalty, optional
        P of the ridge; the identity if not given.
    """
    return centred_equations(
        moments, alpha=alpha, centred=values.centred, values=values, penalty=penalty
    )


def centred_equations(
    moments: Moments,
    *,
    alpha: float,
    centred: bool,
    values: WeightedValues | None = None,
    penalty: Penalty = IDENTITY,
) -> NormalEquations:
    """The normal equations that moments alone give, where they hold the whole G0.

    Parameters
    ----------
    moments, values, alpha, penalty
        As in `normal_equations`.
    centred : bool
        Whether an intercept will be fitted. If not, the moments' origin must be zero.
    """
    c, root = moments.atom_sum, np.sqrt(moments.weight)
    diagonal = centred_diagonal(moments, alpha=alpha, centred=centred, penalty=penalty)
    gram: SmallGram | LazyGram
    if moments.gram is not None or values is None:
        G = np.asarray(moments.gram)
        if centred:
            subtract_outer(G, c / root)
        if alpha:
            penalty.add_to(G, alpha)
        gram = SmallGram(G, diagonal, own_ridge(alpha, penalty, len(diagonal)))
    else:
        gram = LazyGram(values, c / root if centred else None, diagonal, alpha, penalty)
    return equations_about(moments, gram, alpha=alpha, centred=centred, penalty=penalty)


def centred_diagonal(
    moments: Moments, *, alpha: float, centred: bool, penalty: Penalty = IDENTITY
) -> Array:
    """Diagonal of G, ridge included; zero for an atom that counts as constant.

    Rounding is relative to the norms before centring: it is one whose deviations drown in that.
    """
    noise = np.finfo(np.float64).eps * (moments.diagonal + moments.weight * moments.origin.atoms**2)
    diagonal = moments.diagonal
    if centred:
        diagonal = diagonal - (moments.atom_sum / np.sqrt(moments.weight)) ** 2
    ridge = alpha * penalty.diagonal(len(diagonal)) if alpha else 0.0
    return np.where(diagonal > 100.0 * noise, diagonal + ridge, 0.0)


def equations_about(
    moments: Moments, gram: Any, *, alpha: float, centred: bool, penalty: Penalty = IDENTITY
) -> NormalEquations:
    """The normal equations with given rows of G, and the other moments centred."""
    weight, c, s = moments.weight, moments.atom_sum, moments.target_sum
    origin, root = moments.origin, np.sqrt(moments.weight)
    cross, target_sq_norm = moments.cross, moments.target_sq_norm
    if centred:
        cross = cross - np.outer(s / root, c / root)
        target_sq_norm = target_sq_norm - (s / root) ** 2
    return NormalEquations(
        gram,
        cross,
        np.maximum(target_sq_norm, 0.0),
        origin.atoms + c / weight if centred else origin.atoms,
        origin.targets + s / weight if centred else origin.targets,
        weight,
        alpha,
        penalty,
    )
