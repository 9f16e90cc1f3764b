"""The exact hinge loss for the coefficients of given functions: a support vector machine on them.

Equations 11 and 13 of P. Vincent and Y. Bengio, "Kernel matching pursuit", 2002: over coefficients
a and a constant b, minimise

    sum_i w_i max(0, 1 - y_i f_i) + alpha a'P a,      f = Phi a + b.

Over 2 alpha, and with P = R'R, it is the machine of ``svm_on_vectors.py`` with the bounds
w_i / (2 alpha) and the features Phi R^{-1}; where P holds the kernel values of the functions it is
that of sparse large margin classifiers (equation 5 of Wu, Schoelkopf and Bakir, 2005) with
C = 1 / (2 alpha).

The loss has a kink at y f = 1, where rows end up. Which slope between -1 and 0 belongs to such a
row the dual variables say: with them

    w_i dL/df_i = -2 alpha beta_i y_i,        0 <= beta_i <= w_i / (2 alpha),

the objective has no slope along any of the functions, as at the minimum of a smooth loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pursuit._typing import Array
from pursuit.linalg.factor import cholesky
from pursuit.optimize.newton import Minimum, Problem
from pursuit.optimize.svm import MarginSolution
from pursuit.optimize.svm_on_vectors import jittered, solve_on_values

__all__ = ["HingeMinimum", "minimise_hinge"]

# A relative duality gap above this is no minimum.
LARGEST_GAP = 1e-4


class HingeMinimum(NamedTuple):
    """Where the objective is least.

    Attributes
    ----------
    minimum : Minimum
        As of `pursuit.optimize.newton.minimise`.
    slopes : ndarray of shape (l, T)
        dL/df.
    machines : tuple of MarginSolution
        One an output, to start the next ones from.
    """

    minimum: Minimum
    slopes: Array
    machines: tuple[MarginSolution, ...]


def minimise_hinge(
    problem: Problem, starts: Sequence[MarginSolution] | None = None
) -> HingeMinimum:
    """Minimise the objective at the top of this module.

    Parameters
    ----------
    problem : Problem
        Targets +1 and -1, weights, functions and ridge, which is positive; the constant is free.
    starts : sequence of MarginSolution, optional
        Those of the first of these functions.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.expansion.design_matrix import DesignMatrix
    >>> from pursuit.optimize.hinge import minimise_hinge
    >>> from pursuit.optimize.newton import Problem
    >>> from pursuit.optimize.variable_projection import Hinge
    >>> y, column = np.array([[-1.0], [1.0]]), DesignMatrix(None, np.array([[-2.0], [2.0]]))
    >>> found = minimise_hinge(Problem(Hinge(), y, np.ones(2), column, np.eye(1), 0.01))
    >>> found.minimum.outputs.round(3).tolist(), found.slopes.round(4).tolist()
    ([[-1.0], [1.0]], [[0.0025], [-0.0025]])
    """
    Y, weights, n = problem.targets, problem.weights, problem.columns.shape[1]
    values = problem.columns.matvec(problem.factor) if n else np.empty((len(Y), 0))
    R = np.eye(n) if problem.penalty is None else cholesky(jittered(problem.penalty))
    if len(R) < n:
        raise ValueError("kernel: it is not positive semidefinite on the chosen vectors")
    if starts is not None:
        starts = [_longer(start, n) for start in starts]
    found = solve_on_values(values, R, Y, weights / (2.0 * problem.alpha), starts=starts)
    point = np.vstack([problem.factor @ found.beta, found.intercept / problem.constant])
    outputs = values @ found.beta + found.intercept
    slopes = -2.0 * problem.alpha * found.signed(Y) / weights[:, None]
    n_iter = sum(machine.n_iter for machine in found.outputs)
    converged = found.gap <= LARGEST_GAP
    minimum = Minimum(point, outputs, problem.data_loss(outputs), n_iter, converged)
    return HingeMinimum(minimum, slopes, found.outputs)


def _longer(start: MarginSolution, n: int) -> MarginSolution:
    """The machine with weight zero on further functions: R keeps its first columns."""
    return start._replace(weights=np.pad(start.weights, (0, n - len(start.weights))))
