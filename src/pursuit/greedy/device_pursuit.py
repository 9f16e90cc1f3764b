"""Greedy bases under squared error on a device: the whole path, without moving l x M numbers.

The mathematics is that of ``normal_equations.py`` (the moments and how they are centred),
``pursuits.py`` (the step) and ``pivot_rules.py`` (the scores, the same functions). Always by the
Gram route: l M^2 operations, which is what a device is good at, and M^2 numbers, which it has to
hold.

============  ===================  ========================  =======================================
symbol        name in code         where                     shape
============  ===================  ========================  =======================================
X, Z                               moved to the device once  (l, d), (M, d)
d(x_i) - o    ``values``           device, block by block    (rows, M)
G             ``DeviceGram.gram``  device                    (M, M)
V, nu, b                           device                    (N, M), (M,), (T, M)
g             ``pivots``           host                      one number a step
R, z                               host                      (N, N), (N, T), from G[pivots, pivots]
============  ===================  ========================  =======================================

Sums, G and V are in float64 where the device has it. What is left of a path on the host (means,
R, z) gives the coefficients of every prefix as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit._arrays import alike, as_wide, namespace_of, to_numpy
from pursuit._typing import Array
from pursuit._validation import Samples, refuse_not_finite
from pursuit.dictionary import Dictionary
from pursuit.greedy.normal_equations import (
    Moments,
    NormalEquations,
    Origin,
    centred_diagonal,
    complete_moments,
    equations_about,
)
from pursuit.greedy.pivot_rules import PIVOT_RULES
from pursuit.greedy.pursuits import COPY_TOLERANCE, ZERO_SHARE, TakesSteps
from pursuit.greedy.squared_error import SquaredErrorPursuit
from pursuit.linalg import blocks
from pursuit.linalg.device_cholesky import DeviceCholesky, first_best
from pursuit.linalg.factor import cholesky, solve_transposed
from pursuit.linalg.partial_cholesky import DICTIONARY_RANK

__all__ = ["DevicePursuit", "device_equations"]

# Rows from which the origin is taken.
ORIGIN_ROWS = 512


@dataclass(frozen=True)
class DeviceGram:
    """G on a device, ridge included, and its diagonal, with zeros where an atom counts as zero."""

    gram: Any
    diagonal: Any
    alpha: float
    # Steps of several pursuits wait for one device.
    shareable = False


def device_equations(
    dictionary: Dictionary, samples: Samples, place: Any, *, alpha: float, centred: bool
) -> NormalEquations:
    """One pass over the rows; see `pursuit.greedy.normal_equations.gather`.

    Parameters
    ----------
    dictionary : Dictionary
        Candidate atoms.
    samples : Samples
        Rows (l, d), targets (l, T) and positive weights (l,), of NumPy.
    place : device array
        Where to compute.
    alpha : float
        Ridge on the coefficients.
    centred : bool
        Whether an intercept will be fitted.

    Raises
    ------
    ValueError
        If the kernel gives values that are not finite; the message names the first row.
    """
    functions = dictionary.atoms.moved(lambda array: alike(array, place)).functions
    origin = _origin(functions, samples, place, centred)
    gram, moments = _gather(_values(functions, samples, place, origin), samples, origin)
    if centred:
        shift = alike(moments.atom_sum / np.sqrt(moments.weight), gram)
        gram = gram - shift[:, None] * shift[None, :]
    if alpha:
        xp = namespace_of(gram)
        gram = gram + alpha * xp.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    diagonal = centred_diagonal(moments, alpha=alpha, centred=centred)
    return equations_about(
        moments, DeviceGram(gram, alike(diagonal, gram), alpha), alpha=alpha, centred=centred
    )


def _origin(functions: Any, samples: Samples, place: Any, centred: bool) -> Origin:
    """A point near the mean of the atoms (from up to 512 rows) and of the targets."""
    n_rows = samples.X.shape[0]
    few = np.unique(np.linspace(0, n_rows - 1, min(n_rows, ORIGIN_ROWS)).astype(int))
    values = to_numpy(as_wide(functions(alike(samples.X[few], place))))
    if not centred:
        return Origin(np.zeros(values.shape[1]), np.zeros(samples.Y.shape[1]))
    atoms = values.mean(axis=0, dtype=np.float64)
    if not np.isfinite(atoms).all():
        refuse_not_finite(values, None)
    return Origin(atoms, np.average(samples.Y, axis=0, weights=samples.weights))


def _values(
    functions: Any, samples: Samples, place: Any, origin: Origin
) -> Iterator[tuple[slice, Any]]:
    """Blocks of sqrt(w_i) (d(x_i) - o), (n_rows, M)."""
    X, start = alike(samples.X, place), alike(origin.atoms, place)
    roots = alike(np.sqrt(samples.weights), place)
    for rows in blocks.row_blocks(X.shape[0], 8.0 * start.shape[0]):
        yield rows, (as_wide(functions(X[rows, :])) - start) * roots[rows][:, None]


def _gather(
    values: Iterator[tuple[slice, Any]], samples: Samples, origin: Origin
) -> tuple[Any, Moments]:
    """G0 on the device, and the other moments on the host, of which G0's diagonal is one."""
    roots = np.sqrt(samples.weights)[:, None]
    # The constant function beside the targets: one product gives c and B0.
    sides = np.hstack([roots, roots * (samples.Y - origin.targets)])
    gram: Any = 0.0
    products: Any = 0.0
    for rows, block in values:
        xp = namespace_of(block)
        product = alike(sides[rows], block).T @ block
        if not bool(xp.all(xp.isfinite(product[0, :]))):
            refuse_not_finite(to_numpy(block), rows.start)
        products = products + product
        gram = gram + block.T @ block
    diagonal = to_numpy(xp.linalg.diagonal(gram)).astype(np.float64)
    sums = to_numpy(products).astype(np.float64)
    return gram, complete_moments(origin, None, diagonal, sums[0], sums[1:], samples)


class DevicePursuit(SquaredErrorPursuit):
    """Greedy bases under squared error whose G is on a device.

    Parameters
    ----------
    equations : NormalEquations
        From `device_equations`.
    fitting : {"prefit", "backfit", "basic"}
        The pivot rule (``pivot_rules.py``).
    budgets : list of int
        See `MultiOutputPursuit`.
    """

    def _basis(self, fitting: str, outputs: Array, excluded: Array | None) -> Any:
        """One greedy basis."""
        kind = _Basic if fitting == "basic" else _Orthogonal
        equations = self.equations
        sq_norm = float(equations.target_sq_norm[outputs].sum())
        return kind(equations.gram, equations.cross[outputs], sq_norm, fitting, excluded)


class _Basis(TakesSteps):
    """One greedy basis, with the state of a step on the device; see ``pursuits.py``."""

    def __init__(
        self, gram: Any, cross: Array, total: float, rule: str, excluded: Array | None
    ) -> None:
        self.gram, self.initial_cross, self.total, self.rule = gram, cross, total, rule
        self.cross = as_wide(alike(cross, gram.gram))
        self.factor = DeviceCholesky(gram.diagonal, DICTIONARY_RANK, excluded=excluded)
        self.pivots: list[int] = []
        self.gained = 0.0

    def step(self) -> str | None:
        """Choose one atom; return why none was chosen, or None."""
        if self.total - self.gained <= ZERO_SHARE * self.total:
            return "zero_residual"
        xp, factor = namespace_of(self.cross), self.factor
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scores = PIVOT_RULES[self.rule](self.cross, factor.residual, factor.diagonal)
        scores = xp.where(factor.usable, scores, -xp.inf)
        g = first_best(scores)
        score = float(scores[g])
        if score == -np.inf:
            return "rank"
        if not score > ZERO_SHARE**2 * self.total:
            return "no_gain"
        self._choose(g, self.gram.gram[g, :], score)
        if self.gram.alpha:
            self._exclude_copies(g)
        return None

    def _choose(self, g: int, row: Any, score: float) -> None:
        """Take atom g, whose row of G and score are given."""
        raise NotImplementedError

    def _exclude_copies(self, g: int) -> None:
        """Exclude exact copies of the atom just chosen, which a ridge would tell apart."""
        row, sq_norms = self.gram.gram[g, :], self.gram.diagonal - self.gram.alpha
        copies = row * row >= (1.0 - COPY_TOLERANCE) * sq_norms[g] * sq_norms
        copies[g] = False
        self.factor.exclude(copies)


class _Orthogonal(_Basis):
    """The orthogonal rules: ``prefit`` and ``backfit``."""

    def _choose(self, g: int, row: Any, score: float) -> None:
        """Orthogonalise the dictionary against atom g (figure 3)."""
        z = self.cross[:, g] / self.factor.residual[g] ** 0.5
        v = self.factor.pivot(g, row)
        self.cross = self.cross - z[:, None] * v[None, :]
        self.gained += float(namespace_of(z).sum(z * z))
        self.pivots.append(g)

    def solution(self) -> tuple[Array, Array]:
        """R with R'R = G[pivots, pivots] and z = R^{-T} b[pivots], in NumPy.

        The pivots from where G[pivots, pivots] is not positive definite to rounding are dropped.
        """
        xp, chosen = namespace_of(self.cross), alike(np.array(self.pivots, dtype=int), self.cross)
        block = xp.take(xp.take(self.gram.gram, chosen, axis=0), chosen, axis=1)
        factor = cholesky(to_numpy(block).astype(np.float64))
        del self.pivots[len(factor) :]
        return factor, solve_transposed(factor, self.initial_cross[:, self.pivots].T)


class _Basic(_Basis):
    """Basic matching pursuit (figure 1): no orthogonalisation, an atom may come back."""

    def __init__(self, *start: Any) -> None:
        super().__init__(*start)
        self.targets: list[Array] = []

    def _choose(self, g: int, row: Any, score: float) -> None:
        """Update the coefficient of atom g."""
        norm = float(self.gram.diagonal[g])
        increment = self.cross[:, g] / norm  # eq. 4
        self.cross = self.cross - increment[:, None] * row[None, :]
        self.pivots.append(g)
        self.targets.append(to_numpy(increment) * np.sqrt(norm))
        self.gained += score

    def solution(self) -> tuple[Array, Array]:
        """diag(sqrt(G[g,g])) and the increments times these."""
        factor = np.diag(np.sqrt(to_numpy(self.gram.diagonal)[self.pivots]))
        return factor, np.array(self.targets).reshape(-1, len(self.initial_cross))
