"""Greedy bases under squared error: the fits have a closed form."""

from __future__ import annotations

from typing import Any

from pursuit._typing import Array
from pursuit.expansion.path import BasisPath, CoefficientPath
from pursuit.greedy.multi_output import MultiOutputPursuit
from pursuit.greedy.normal_equations import NormalEquations
from pursuit.greedy.path_losses import training_losses
from pursuit.greedy.pursuits import BasicPursuit, PivotedFactor
from pursuit.losses import LOSSES

__all__ = ["SquaredErrorPursuit"]


class SquaredErrorPursuit(MultiOutputPursuit):
    """Greedy bases under squared error.

    Parameters
    ----------
    equations : NormalEquations
        G, D'y and the means.
    fitting : {"prefit", "backfit", "basic"}
        The pivot rule (``pivot_rules.py``).
    budgets : list of int
        See `MultiOutputPursuit`.
    excluded : ndarray of bool of shape (n_atoms,), optional
        Atoms that may not be chosen.
    """

    basis = BasisPath

    def __init__(
        self,
        equations: NormalEquations,
        fitting: str,
        budgets: list[int],
        excluded: Array | None = None,
    ) -> None:
        loss = LOSSES["squared_error"]
        super().__init__(equations, loss, budgets, shareable=equations.gram.shareable)
        for t in self.outputs:
            pursuit = self._basis(fitting, t, excluded)
            if len(self.always):
                pursuit.begin(self.always)
            self.pursuits.append(pursuit)

    def _basis(self, fitting: str, outputs: Array, excluded: Array | None) -> Any:
        """One greedy basis."""
        equations = self.equations
        targets = (equations.cross[outputs], equations.target_sq_norm[outputs])
        if fitting == "basic":
            return BasicPursuit(equations.gram, *targets, excluded)
        return PivotedFactor(equations.gram, *targets, excluded, rule=fitting)

    @property
    def start(self) -> Array:
        """Weighted mean of each target."""
        return self.equations.target_mean

    def training_losses(self, path: CoefficientPath) -> Array:
        """Mean squared error after 1, 2, ... steps."""
        penalties = None
        if self.equations.alpha:
            block = self.equations.penalty.block
            picks = zip(self.pursuits, path.bases, strict=True)
            penalties = [block(pursuit.pivots[: len(b.picks)]) for pursuit, b in picks]
        return training_losses(path, self.equations, penalties)[1:]
