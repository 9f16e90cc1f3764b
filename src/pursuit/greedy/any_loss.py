"""Matching pursuit with any differentiable loss: gradient descent in function space.

Section 3 of P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 169-191,
2002; the equation and figure numbers are theirs.

Problem. As in ``squared_error.py``, but with a loss L in place of the squared error: find few
dictionary functions g_1, ..., g_N and coefficients so that

    sum_i w_i L(y_i, f_N(x_i)) + alpha a'P a,    f_N(x) = b + sum_n a_n g_n(x),

is small; P is the identity, or K among the functions, for the norm of eq. 13.

===========  ======================  =====================================================
symbol       name in code            shape
===========  ======================  =====================================================
f            ``outputs``             (l, T)  current outputs on the training rows
R~           ``residual``            (l, T)  pseudo-residual -w dL/df
D            ``values``              blocks of rows, (rows, M); see ``normal_equations.py``
gamma_n      ``pivots``               chosen atoms in order
p            ``refit_every``
===========  ======================  =====================================================

Steps (figure 4).

1. f is the best constant (figure 4 starts from zero and has the constant in the dictionary);
   for a loss that is not convex, whose best constant may be where its slope is lost, the mean
   of the targets, and step c frees it.
2. For n = 1, ..., N:

   a. R~ = -w dL(y, f)/df                                                       (eq. 8)
   b. gamma_n = argmax_k |<d_k, R~>| / ||d_k||                                  (eq. 9)
      less alpha times the slope 2 sum_m P_km a_m of the penalty
   c. If n is a multiple of p, or the last step: all coefficients and the constant minimise the
      objective (eq. 11), by the damped Newton method of ``newton.py``, from where they are.
   d. Otherwise the new coefficient alone does (eq. 10); where a loss couples the outputs, these
      are T coefficients, and few Newton steps towards them are taken.

   The hinge loss has a kink; its step c is a support vector machine on the functions, exact, which
   says the slopes of step a, too (``optimize/hinge.py``).

   Where the loss is not convex, step c is taken once more from the coefficients of least
   squared error, and the lower of the two minima is kept.

``fitting`` says what ||d_k|| is and whether step c exists:

- ``"basic"``: never a step c; an atom may come back;
- ``"backfit"``: figure 4 itself, with the norm of d_k less its mean, as the constant is free;
- ``"prefit"``: the norm of the part of d_k outside the span of the functions chosen,
  ||P_perp d_k||. The paper calls pre-fitting prohibitive here, as eq. 11 would have to be solved
  for each function. What can be solved for each is an upper bound: where L'' <= c, changing all
  coefficients and adding d_k lowers the loss by at least <d_k, R~>^2 / (2 c ||P_perp d_k||^2) if
  R~ is orthogonal to the span, as it is after step c. Under squared error the bound is the
  loss and the rule is eq. 7.

With ``selection="squared_error"`` steps a and b are those of squared error on the same targets
(``squared_error.py``), one pass over the rows in all; the coefficients are fitted as in c and d.

Cost of a step: one pass over the dictionary, 2 l M T flops at the speed at which memory (or the
kernel, where D does not fit in memory) can be read; a row of the Gram matrix for ||P_perp d_k||;
and for step c a few times l n^2, or l n T for each product of conjugate gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit._warnings import warn
from pursuit.expansion.design_matrix import DesignMatrix, PlainFunctions
from pursuit.expansion.path import CoefficientPath, RefittedPath
from pursuit.greedy.multi_output import MultiOutputPursuit
from pursuit.greedy.normal_equations import NormalEquations, WeightedValues
from pursuit.greedy.pursuits import BasicPursuit, PivotedFactor
from pursuit.linalg import blocks
from pursuit.linalg.factor import solve_right, solve_upper
from pursuit.losses import Loss
from pursuit.optimize.hinge import HingeMinimum, minimise_hinge
from pursuit.optimize.newton import (
    MOST_ITERATIONS,
    ZERO_LOSS,
    Minimum,
    Preconditioner,
    Problem,
    minimise,
)

__all__ = [
    "GradientPursuit",
    "GradientPursuits",
    "LossRule",
    "warn_unconverged",
]

# A gain below this share of the first step's is rounding.
NO_GAIN = 1e-20
# A line search ends where a Newton step gains less than this share of what the first one did.
LINE_ACCURACY = 1e-6
# Where outputs are coupled, so that it is a search over T coefficients, it takes a few steps where
# the next function follows from it, and one where the functions are known.
COUPLED_LINE_STEPS, COUPLED_STEPS_OF_KNOWN = 3, 1
# Bytes that a value of a basis known beforehand may take: evaluated, centred and made orthogonal.
ENTRY_BYTES = 32.0


class LossRule(NamedTuple):
    """How a loss is followed.

    Attributes
    ----------
    loss : Loss
        L.
    refit_every : int
        p.
    selection : {"loss", "squared_error"}
        What chooses the functions.
    """

    loss: Loss
    refit_every: int = 1
    selection: str = "loss"


class GradientPursuit:
    """The steps at the top of this file for one basis.

    Parameters
    ----------
    selector : PivotedFactor or BasicPursuit
        The pivot rule and ||d_k||, not yet grown.
    values : WeightedValues
        The dictionary on the training rows.
    equations : NormalEquations
        Means of the atoms, Gram matrix and ridge.
    rule : LossRule
        The loss and how it is followed.
    outputs : ndarray of int
        Columns of the targets that this basis serves.
    budget : int
        N.
    """

    def __init__(
        self,
        selector: PivotedFactor | BasicPursuit,
        values: WeightedValues,
        equations: NormalEquations,
        rule: LossRule,
        outputs: Array,
        budget: int,
    ) -> None:
        X, Y, weights, _ = values.samples
        self.samples = Samples(X, Y[:, outputs], weights)
        self.selector, self.values, self.rule, self.budget = selector, values, rule, budget
        self.basic = isinstance(selector, BasicPursuit)
        self.alpha, self.penalty = equations.alpha, equations.penalty
        # Rows of P of the functions chosen, where P is not the identity.
        self.penalty_rows: dict[int, Array] = {}
        self.deviation = equations.atom_mean - values.origin.atoms
        self.atom_mean = equations.atom_mean
        self.pivots: list[int] = []
        self.n_always = 0
        self.held = np.zeros((len(self.deviation) if self.basic else 0, len(outputs)))
        self.matrix = self._room(X.shape[0], budget)
        self.factor = np.zeros((budget, budget)) if not self.basic else np.zeros((0, 0))
        self._start()

    def _room(self, n_rows: int, budget: int) -> Array | None:
        """Room for Q where it is needed and fits in memory."""
        if self.basic or not blocks.fits(8.0 * n_rows * budget):
            return None
        return np.empty((n_rows, budget), order="F")

    @property
    def on_schedule(self) -> bool:
        """Whether the last re-fit came because of ``refit_every`` and not because of the end."""
        last = self.refits[-1] if self.refits else 0
        return last <= self.n_always or (last - self.n_always) % self.rule.refit_every == 0

    def enlarge(self, budget: int) -> None:
        """Make room for more functions."""
        n, self.budget = len(self.pivots), budget + self.n_always
        if self.basic:
            return
        budget = self.budget
        factor, matrix = self.factor[:n, :n], self.matrix
        self.factor = np.zeros((budget, budget))
        self.factor[:n, :n] = factor
        if matrix is not None:
            self.matrix = self._room(len(matrix), budget)
        if matrix is not None and self.matrix is not None:
            self.matrix[:, :n] = matrix[:, :n]

    def _start(self) -> None:
        """Step 1: the best constant, or the mean of the targets."""
        _, Y, weights, _ = self.samples
        constant = self._problem(DesignMatrix(None, np.empty((len(Y), 0))), np.empty((0, 0)))
        self.unit = constant.constant
        self.point = np.zeros((1, Y.shape[1]))
        if self.unit:
            self.point[0] = self.unit * (weights @ Y)
        self.outputs = np.asfortranarray(np.tile(self.unit * self.point, (len(Y), 1)))
        # The machine of a loss with a kink.
        self.kinks: HingeMinimum | None = None
        if self.rule.loss.convex:
            best = minimise(constant) if self.rule.loss.smooth else self._machine(constant)
            self.point, self.outputs = best.point, best.outputs
        self.start = self.unit * self.point[-1]
        self.current = constant.data_loss(self.outputs)
        self.losses = [self.current]
        self.first_gain = 0.0
        self.lines: list[Array] = []
        self.refits: list[int] = []
        self.fitted: list[Array] = []
        self.levels: list[Array] = []
        self.preconditioner = Preconditioner()
        self.n_unconverged = 0

    def begin(self, functions: Array) -> None:
        """Take these functions first, and fit their coefficients."""
        self.selector.begin(functions)
        pivots = np.array(self.selector.pivots, dtype=int)
        if len(pivots):
            self.n_always = len(pivots)
            self.enlarge(self.budget)
            columns = self._columns(pivots)
            self._append(columns)
            for pivot, column in zip(pivots, columns.T, strict=True):
                self._add(pivot, column)

    def _problem(self, columns: DesignMatrix, factor: Array, **changes: Any) -> Problem:
        """The objective over the coefficients of some columns."""
        _, Y, weights, _ = self.samples
        problem = Problem(
            self.rule.loss, Y, weights, columns, factor, self.alpha, intercept=self.values.centred
        )
        return problem._replace(**changes)

    def extend(self, n_steps: int) -> str | None:
        """Take up to `n_steps` more steps; return why it ended early, or None."""
        following = self.rule.selection == "loss"
        reason = self._follow(n_steps) if following else self._copy(n_steps)
        if reason:
            self.finish()
        return reason

    def finish(self) -> None:
        """Step c for the last function, where that was not one."""
        fresh = self.refits[-1:] == [len(self.pivots)]
        if self.pivots and not self.basic and not fresh:
            self._refit()
            self.losses[-1] = self.current

    def _follow(self, n_steps: int) -> str | None:
        """Step 2 with the functions that the loss asks for."""
        for _ in range(n_steps):
            if self._explained():
                return "zero_residual"
            self.selector.cross[:] = self._correlations()
            gain = self.selector.best_gain()
            self.first_gain = self.first_gain or gain
            # Without a usable candidate the gain is 0, and the selector says "rank".
            if self.selector.n_usable and gain <= NO_GAIN * self.first_gain:
                return "no_gain"
            reason = self.selector.step()
            if reason:
                return reason
            pivot = np.array(self.selector.pivots[-1:])
            column = self._columns(pivot)
            self._append(column)
            self._add(pivot[0], column[:, 0])
        return None

    def _copy(self, n_steps: int) -> str | None:
        """Step 2 with the functions that squared error chooses."""
        known = len(self.pivots)
        reason = self.selector.extend(n_steps)
        pivots = np.array(self.selector.pivots[known:], dtype=int)
        for part in blocks.row_blocks(len(pivots), ENTRY_BYTES * len(self.samples.Y)):
            columns = self._columns(pivots[part])
            self._append(columns)
            for pivot, column in zip(pivots[part], columns.T, strict=True):
                if self._explained():
                    return "zero_residual"
                self._add(pivot, column)
        return reason

    def _explained(self) -> bool:
        """Whether nothing of the loss is left."""
        # A user's loss may be negative.
        return abs(self.losses[-1]) <= ZERO_LOSS * abs(self.losses[0])

    def _correlations(self) -> Array:
        """<d_k, R~> for every atom and output (eq. 8 and 9), with the slope of the ridge."""
        _, Y, weights, _ = self.samples
        root = np.sqrt(weights)[:, None]
        # The values carry a factor sqrt(w).
        residual = -root * self._slopes()
        products = np.zeros_like(self.selector.cross)
        for rows, block in self.values:
            products += residual[rows].T @ block
        if self.values.centred:
            products -= np.outer((root * residual).sum(axis=0), self.deviation)
        if self.alpha:
            products -= 2.0 * self.alpha * self._pull()
        return products

    def _slopes(self) -> Array:
        """dL/df on the training rows."""
        if self.kinks is not None:
            return self.kinks.slopes
        return self.rule.loss.gradient(self.samples.Y, self.outputs)

    def _pull(self) -> Array:
        """P a between every atom and the function so far, (T, M); half the slope of a'P a."""
        if self.penalty.is_identity:
            return self.held.T if self.basic else np.zeros_like(self.selector.cross)
        atoms, n = list(self.penalty_rows), len(self.pivots)
        if not n:
            return np.zeros_like(self.selector.cross)
        held = self.held[atoms] if self.basic else self._coefficients()
        pull: Array = held.T @ np.array(list(self.penalty_rows.values()))
        return pull

    def _coefficients(self) -> Array:
        """Those of the pivots, where all are fitted, (n, T)."""
        n = len(self.pivots)
        return solve_upper(self.factor[:n, :n], self.point[:-1])

    def _columns(self, pivots: Array) -> Array:
        """Some atoms on the training rows, less their means."""
        root = np.sqrt(self.samples.weights)[:, None]
        columns = np.vstack(list(self.values.among(pivots))) / root
        return columns - self.deviation[pivots] if self.values.centred else columns

    def _append(self, columns: Array) -> None:
        """R and Q of further functions: Q_2 R_22 = Phi_2 - Q_1 R_12."""
        if self.basic:
            return
        known = len(self.pivots)
        size = known + columns.shape[1]
        for n in range(known, size):
            self.factor[: n + 1, n] = self.selector.factor_column(n + 1)
        if self.matrix is not None:
            R = self.factor[:size, known:size]
            apart = columns - self.matrix[:, :known] @ R[:known] if known else columns
            self.matrix[:, known:size] = solve_right(apart, R[known:])

    def _add(self, pivot: int, column: Array) -> None:
        """Steps c and d for a new function."""
        self.pivots.append(int(pivot))
        if self.alpha and not self.penalty.is_identity and pivot not in self.penalty_rows:
            n_atoms = len(self.deviation)
            self.penalty_rows[int(pivot)] = self.penalty.rows(np.array([pivot]), n_atoms)[0]
        n = len(self.pivots)
        r = self.selector.factor_column(n)
        if not self.basic:
            self.point = np.insert(self.point, n - 1, 0.0, axis=0)
        if n < self.n_always:
            # The first of the functions that are fitted together.
            self.lines.append(np.zeros(self.outputs.shape[1]))
        elif not self.basic and self._is_refit(n):
            self.lines.append(np.zeros(self.outputs.shape[1]))
            self._refit()
        else:
            with blocks.blas_threads(0):
                self._line(pivot, column, r)
        self.losses.append(self.current)

    def _is_refit(self, n: int) -> bool:
        """Whether all coefficients are fitted after the n-th function."""
        return (n - self.n_always) % self.rule.refit_every == 0 or n == self.budget

    def _line(self, pivot: int, column: Array, r: Array) -> None:
        """Step d, eq. 10."""
        norm = np.sqrt(self.selector.gram.diagonal[pivot])
        own = self.penalty_rows[int(pivot)][pivot] if self.penalty_rows else 1.0
        problem = self._problem(
            DesignMatrix(None, (column / norm)[:, None]),
            np.array([[norm]]),
            offset=self.outputs,
            held=self._pull()[:, pivot] / own if self.alpha and own else 0.0,
            penalty=np.array([[own]]),
            intercept=False,
        )
        following = self.rule.selection == "loss"
        few = COUPLED_LINE_STEPS if following else COUPLED_STEPS_OF_KNOWN
        most = few if self.rule.loss.coupled else None
        best = minimise(problem, None, self.outputs, self.losses[0], None, LINE_ACCURACY, most)
        step = best.point[0] / norm
        self.outputs, self.current = best.outputs, best.data_loss
        self.lines.append(step)
        if self.basic:
            self.held[pivot] += step
        else:
            self.point[:-1] += np.outer(r, step)

    def _refit(self) -> None:
        """Step c, eq. 11."""
        n = len(self.pivots)
        factor = self.factor[:n, :n]
        problem = self._problem(self._basis(n, factor), factor, penalty=self._penalty())
        with blocks.blas_threads(4.0 * self.point.size * len(self.outputs)):
            best = self._minimum(problem)
            if not self.rule.loss.convex:
                start = self._least_squares(problem)
                other = minimise(problem, start, None, self.losses[0], self.preconditioner)
                best = min(best, other, key=problem.objective)
        self.point, self.outputs, self.current = best.point, best.outputs, best.data_loss
        self.n_unconverged += not best.converged
        self.lines[-1] = np.zeros(self.outputs.shape[1])
        self.refits.append(n)
        self.fitted.append(problem.coefficients(best.point))
        self.levels.append(self.unit * best.point[-1])

    def _minimum(self, problem: Problem) -> Minimum:
        """The minimum from where the coefficients are."""
        if not self.rule.loss.smooth:
            return self._machine(problem)
        return minimise(problem, self.point, self.outputs, self.losses[0], self.preconditioner)

    def _machine(self, problem: Problem) -> Minimum:
        """The minimum under the hinge loss."""
        starts = None if self.kinks is None else self.kinks.machines
        self.kinks = minimise_hinge(problem, starts)
        return self.kinks.minimum

    def _penalty(self) -> Array | None:
        """P among the pivots; None: the identity."""
        if not self.penalty_rows:
            return None
        P = np.array([self.penalty_rows[pivot][self.pivots] for pivot in self.pivots])
        return np.asarray(0.5 * (P + P.T))

    def _least_squares(self, problem: Problem) -> Array:
        """The least squared error: theta = Q'W (y - mean), as R'R = Phi'W Phi + alpha P."""
        _, Y, weights, _ = self.samples
        start = np.empty_like(self.point)
        constant = weights @ Y / weights.sum() if self.unit else np.zeros(Y.shape[1])
        start[:-1] = problem.columns.rmatvec(weights[:, None] * (Y - constant))
        start[-1] = constant / self.unit if self.unit else 0.0
        return start

    def _basis(self, n: int, factor: Array) -> DesignMatrix:
        """Q of the first `n` pivots."""
        if self.matrix is not None:
            return DesignMatrix(None, self.matrix[:, :n])
        pivots = np.array(self.pivots)
        means = self.atom_mean[pivots] if self.values.centred else np.zeros(n)
        functions = PlainFunctions(self.values.subset(pivots), n)
        return DesignMatrix(functions, self.samples.X, shift=means, factor=factor, keep=False)

    def solution(self) -> tuple[Array, Array, Array, Array]:
        """Return lines, refits, fitted and levels of a `RefittedPath`."""
        n_outputs = self.outputs.shape[1]
        return (
            np.array(self.lines).reshape(-1, n_outputs),
            np.array(self.refits, dtype=int),
            np.vstack([np.empty((0, n_outputs)), *self.fitted]),
            np.array(self.levels).reshape(-1, n_outputs),
        )


class GradientPursuits(MultiOutputPursuit):
    """Greedy bases under any loss.

    Parameters
    ----------
    values : WeightedValues
        The dictionary on the training rows.
    equations : NormalEquations
        Of the same rows.
    fitting : {"prefit", "backfit", "basic"}
        See the top of this file.
    budgets : list of int
        See `MultiOutputPursuit`.
    rule : LossRule
        The loss and how it is followed.
    excluded : ndarray of bool of shape (n_atoms,), optional
        Atoms that may not be chosen.
    """

    basis = RefittedPath

    def __init__(
        self,
        values: WeightedValues,
        equations: NormalEquations,
        fitting: str,
        budgets: list[int],
        rule: LossRule,
        excluded: Array | None = None,
    ) -> None:
        # The passes of each pursuit use all cores already.
        super().__init__(equations, rule.loss, budgets, shareable=False)
        self.bases: list[GradientPursuit] = []
        follow = rule.selection == "loss"
        for t, budget in zip(self.outputs, budgets, strict=True):
            cross, target_sq_norm = equations.cross[t], equations.target_sq_norm[t]
            start = (
                equations.gram,
                np.zeros_like(cross) if follow else cross,
                target_sq_norm,
                excluded,
            )
            selector = (
                BasicPursuit(*start, supervised=not follow)
                if fitting == "basic"
                else PivotedFactor(*start, rule=fitting, supervised=not follow)
            )
            self.bases.append(GradientPursuit(selector, values, equations, rule, t, budget))
            self.bases[-1].begin(self.always)
        self.pursuits.extend(self.bases)

    def can_grow(self, budgets: list[int]) -> bool:
        """Not where the last re-fit came because the path ended."""
        return super().can_grow(budgets) and all(basis.on_schedule for basis in self.bases)

    def set_budgets(self, budgets: list[int]) -> None:
        """Make room for more steps."""
        super().set_budgets(budgets)
        for basis, budget in zip(self.bases, budgets, strict=True):
            basis.enlarge(budget)

    def _finish(self) -> None:
        """A path that was stopped ends with a re-fit, as one of its own accord does."""
        for basis in self.bases:
            basis.finish()

    @property
    def start(self) -> Array:
        """The best constant."""
        return np.concatenate([basis.start for basis in self.bases])

    @property
    def n_unconverged(self) -> int:
        """Number of re-fits that the limit on iterations ended."""
        return sum(basis.n_unconverged for basis in self.bases)

    def training_losses(self, path: CoefficientPath) -> Array:
        """Mean loss after 1, 2, ... steps; averaged over the outputs unless they are coupled."""
        total = np.zeros(path.n_steps)
        for b, basis in enumerate(self.bases):
            taken = path.n_always + (path.order == b).cumsum()
            total += np.array(basis.losses)[taken]
        n_outputs = 1 if self.loss.coupled else len(self.start)
        return total / (self.equations.weight * n_outputs)


def warn_unconverged(pursuit: MultiOutputPursuit) -> None:
    """Say that re-fits ended before their minimum."""
    if pursuit.n_unconverged:
        warn(
            f"{pursuit.n_unconverged} re-fits under {pursuit.loss} ended before their minimum, at "
            f"the limit of {MOST_ITERATIONS} Newton steps or in rounding; a larger alpha makes the "
            "optimum easier to reach",
            ConvergenceWarning,
        )
