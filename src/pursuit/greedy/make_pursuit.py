"""From a dictionary, samples and a method to a pursuit: the entry of this package.

`make_pursuit` passes over the rows once and hands the normal equations to one pursuit a basis;
``extend(n)`` grows them, and each step is `pursuit.greedy.pursuits.Pursuit.step`: the pivot rule,
then the factorisation.
"""

from __future__ import annotations

from typing import NamedTuple

from pursuit._arrays import beside
from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.dictionary import Dictionary
from pursuit.greedy.any_loss import GradientPursuits, LossRule
from pursuit.greedy.device_pursuit import DevicePursuit, device_equations
from pursuit.greedy.multi_output import MultiOutputPursuit
from pursuit.greedy.normal_equations import (
    NormalEquations,
    WeightedValues,
    choose_route,
    gather,
    normal_equations,
)
from pursuit.greedy.squared_error import SquaredErrorPursuit

__all__ = ["Method", "make_pursuit", "pursuit_on"]


class Method(NamedTuple):
    """How a path is fitted.

    Attributes
    ----------
    fitting : {"prefit", "backfit", "basic"}
        The pivot rule (``pivot_rules.py``).
    fit_intercept : bool
        Whether a constant is free.
    alpha : float
        Ridge on the coefficients.
    route : {"auto", "gram", "direct"}
        Where rows of the Gram matrix come from.
    rule : LossRule or None
        The loss; None: squared error in closed form.
    """

    fitting: str = "prefit"
    fit_intercept: bool = True
    alpha: float = 0.0
    route: str = "auto"
    rule: LossRule | None = None

    @property
    def many_passes(self) -> bool:
        """Whether the dictionary is read once a step, so that its values are worth keeping."""
        following = self.rule is not None and self.rule.selection == "loss"
        return self.route == "direct" or following


def make_pursuit(
    dictionary: Dictionary, samples: Samples, budgets: list[int], method: Method
) -> MultiOutputPursuit:
    """The pursuit that a method asks for, after one pass over the rows, not yet grown.

    Parameters
    ----------
    dictionary : Dictionary
        Candidate atoms.
    samples : Samples
        Rows (l, d), targets (l, T) and positive weights (l,).
    budgets : list of int
        See `MultiOutputPursuit`.
    method : Method
        How to fit.
    """
    n_atoms, place = len(dictionary), beside()
    if place is not None and _fits_a_device(dictionary, method):
        centred = method.fit_intercept
        equations = device_equations(
            dictionary, samples, place, alpha=method.alpha, centred=centred
        )
        return DevicePursuit(equations, method.fitting, budgets)
    if method.route == "auto":
        route = choose_route(samples.X.shape, n_atoms, sum(budgets))
        method = method._replace(route=route)
    values = WeightedValues(
        dictionary.atoms.functions,
        samples,
        n_atoms,
        centred=method.fit_intercept,
        keep=method.many_passes,
        subset=dictionary.atoms.subset,
    )
    moments = gather(values, complete=method.route == "gram")
    equations = normal_equations(moments, values, alpha=method.alpha, penalty=dictionary.penalty)
    return pursuit_on(values, equations, budgets, method)


def _fits_a_device(dictionary: Dictionary, method: Method) -> bool:
    """Whether ``device_pursuit.py`` has a way: squared error, by G, one ridge for all atoms."""
    return method.rule is None and method.route != "direct" and dictionary.penalty.is_identity


def pursuit_on(
    values: WeightedValues,
    equations: NormalEquations,
    budgets: list[int],
    method: Method,
    excluded: Array | None = None,
) -> MultiOutputPursuit:
    """The pursuit on rows whose normal equations are known, not yet grown.

    Parameters
    ----------
    values : WeightedValues
        The dictionary on the training rows.
    equations : NormalEquations
        Of the same rows.
    budgets : list of int
        See `MultiOutputPursuit`.
    method : Method
        Its pivot rule and its loss.
    excluded : ndarray of bool of shape (n_atoms,), optional
        Atoms that may not be chosen.
    """
    if method.rule is None:
        return SquaredErrorPursuit(equations, method.fitting, budgets, excluded)
    return GradientPursuits(values, equations, method.fitting, budgets, method.rule, excluded)
