"""Choosing q of k functions before a convex network is fitted.

Section 3 of K. Kovacs and A. Kocsor, "Classification using a sparse combination of basis functions"
(convex networks, 2006). The product of two functions is the sum over the rows (eq. 18),

    <f, g> = sum_i w_i f(x_i) g(x_i),

so that each rule needs the Gram matrix G of the functions alone, and is a pivot rule of
``pivot_rules.py``; ties go to the lowest index. Functions that are zero on all rows, for
``correlation`` those that are constant, are never chosen.

==================  ========================================================================
``gram_schmidt``    MGRAMM: the function with the longest part outside the span of those chosen:
                    the rule ``residual``. Functions within a thousandth of their length of that
                    span have a part of length zero, to rounding: they follow in order.
``correlation``     CORR: the smallest sum of squared correlation coefficients with those chosen,
                    which is eq. 18 for functions of mean zero and unit length. All sums are empty
                    at the start; the first function is that of the largest variance.
``cosine``          CORR as its pseudo-code is printed: the same rule with the means left in, so
                    that the squares are those of the cosines of the functions,
                    <f, g>^2 / (<f, f> <g, g>); the first function is the longest.
``objective``       The paper's future work: greedily by the objective itself, with lambda and the
                    loss of the network, the penalty A = I and no box. Each step takes the function
                    of unit length along which the objective falls most steeply, then fits all
                    coefficients anew: ``any_loss.py``, back-fitting. (Pre-fitting, whose
                    lengths are those outside the span, ended higher on every set tried: under the
                    penalty what is in the span is not free.) Of several classes one basis serves
                    all; the squares of their slopes add up.
``random``          RANDOM: several draws of q, of which the caller keeps that of the lowest
                    objective.
==================  ========================================================================

The paper's own product is the integral of f g, and eq. 18 stands in for it where that has no closed
form. Gaussians exp(-gamma |x - z|^2) have one,

    int k(x, z) k(x, z') dx = (pi / 2 gamma)^(n/2) exp(-gamma / 2 |z - z'|^2),

whose constant, the same for all functions of one width, chooses nothing: G is the kernel of half
the gamma (of M / 2 for exp(-(x - z)'M(x - z))) between the centres, whatever the rows. With it
MGRAMM takes the function farthest from the span of the others, and CORR sums the squares of G, k
itself. Functions have no means over the whole space, so that there is no ``correlation``.

Where we read between the lines: the paper's pseudo-code for CORR leaves the means in, while its
text speaks of correlation coefficients of normalised functions. Both are here. Without the means
(``correlation``) the rule does what its figure 2 shows; with them (``cosine``) it is worse than
chance there, as kernel functions that are positive throughout resemble each other by their means
alone.

Cost, for n rows: ``gram_schmidt`` takes n k^2 operations for G, or q rows of it where that is
cheaper, and k q^2; ``correlation`` and ``cosine`` the same without k q^2; by the integral G costs q
rows of the kernel between k centres. ``objective`` takes q passes over the n x k matrix and at most
`MAX_REFITS` fits of all coefficients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.dictionary import Dictionary
from pursuit.expansion.basis_functions import Atoms
from pursuit.greedy.any_loss import LossRule
from pursuit.greedy.gram_rows import GramRows, SmallGram
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.greedy.normal_equations import WeightedValues, choose_route, gather, normal_equations
from pursuit.greedy.pursuits import LeastCorrelated, PivotedFactor
from pursuit.kernels import RBF, Kernel, Mahalanobis
from pursuit.losses import Loss

__all__ = [
    "GREEDY_RULES",
    "INTEGRAL_RULES",
    "by_correlation",
    "by_gram_schmidt",
    "by_objective",
    "chosen_functions",
    "n_chosen",
    "random_draws",
]

# Fits of all coefficients on the way to q functions.
MAX_REFITS = 100

GREEDY_RULES = ("gram_schmidt", "correlation", "cosine", "objective")
# Those that the integral of two functions is enough for.
INTEGRAL_RULES = ("gram_schmidt", "cosine")


def n_chosen(n_components: Any, n_functions: int) -> int:
    """The number q that is asked for.

    Parameters
    ----------
    n_components : int or float
        A number of functions, or a fraction in (0, 1] of them.
    n_functions : int
        k.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> from pursuit.convex_network.basis_selection import n_chosen
    >>> n_chosen(7, 90), n_chosen(0.1, 90), n_chosen(100, 90)
    (7, 9, 90)
    """
    if isinstance(n_components, int | np.integer) and not isinstance(n_components, bool):
        if n_components >= 1:
            return min(int(n_components), n_functions)
    elif isinstance(n_components, float | np.floating) and 0.0 < n_components <= 1.0:
        return max(1, round(float(n_components) * n_functions))
    raise ValueError(
        f"n_components must be a positive integer or a fraction in (0, 1], got {n_components!r}"
    )


def random_draws(rng: np.random.RandomState, n_functions: int, q: int, n_draws: int) -> list[Array]:
    """RANDOM: sets of q functions, each drawn without replacement, in order."""
    return [np.sort(rng.choice(n_functions, size=q, replace=False)) for _ in range(n_draws)]


def by_gram_schmidt(gram: GramRows, q: int) -> Array:
    """MGRAMM.

    Parameters
    ----------
    gram : GramRows
        G.
    q : int
        How many functions.

    Returns
    -------
    chosen : ndarray of int of shape (q,)
        In order of choice; fewer where the others are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.convex_network.basis_selection import by_gram_schmidt
    >>> from pursuit.greedy.gram_rows import SmallGram
    >>> F = np.array([[1.0, 3.0, 0.0], [0.0, 0.5, 2.0]])
    >>> by_gram_schmidt(SmallGram(F.T @ F), 2)
    array([1, 2])
    """
    n = len(gram.diagonal)
    factor = PivotedFactor(gram, np.zeros((1, n)), np.zeros(1), rule="residual", supervised=False)
    factor.extend(min(q, factor.n_usable))
    spanned = np.setdiff1d(np.flatnonzero(gram.diagonal > 0), factor.pivots)
    return np.concatenate([factor.pivots, spanned])[:q].astype(int)


def by_correlation(gram: GramRows, q: int) -> Array:
    """CORR.

    Parameters
    ----------
    gram : GramRows
        G of the functions less their means; of the functions themselves for CORR as printed.
    q : int
        How many functions.

    Returns
    -------
    chosen : ndarray of int of shape (q,)
        In order of choice; fewer where the others are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.convex_network.basis_selection import by_correlation
    >>> from pursuit.greedy.gram_rows import SmallGram
    >>> F = np.array([[1.0, 3.0, 0.0], [0.0, 0.5, 2.0]])
    >>> by_correlation(SmallGram(F.T @ F), 2)
    array([1, 2])
    """
    rule = LeastCorrelated(gram)
    rule.extend(q)
    return np.array(rule.pivots, dtype=int)


def by_objective(
    dictionary: Dictionary, samples: Samples, q: int, loss: Loss, alpha: float
) -> Array:
    """The functions that the objective asks for, one after the other.

    Parameters
    ----------
    dictionary : Dictionary
        All functions.
    samples : Samples
        Rows, targets, weights.
    q : int
        How many functions.
    loss : Loss
        L, of separate outputs.
    alpha : float
        lambda.

    Returns
    -------
    chosen : ndarray of int of shape (q,)
        In order of choice; fewer where no other lowers the objective.
    """
    rule = LossRule(loss, refit_every=max(1, -(-q // MAX_REFITS)))
    method = Method("backfit", fit_intercept=False, alpha=alpha, route="auto", rule=rule)
    search = make_pursuit(dictionary, samples, [q], method)
    search.extend(q)
    return np.array(search.pursuits[0].pivots, dtype=int)


def chosen_functions(
    selection: str,
    dictionary: Dictionary,
    samples: Samples,
    q: int,
    loss: Loss,
    alpha: float,
    *,
    integral: bool = False,
) -> Array:
    """The functions that one of `GREEDY_RULES` chooses.

    Parameters
    ----------
    selection : {"gram_schmidt", "correlation", "cosine", "objective"}
        The rule.
    dictionary, samples, q, loss, alpha
        See `by_objective`.
    integral : bool, default=False
        Products by the integral, for one of `INTEGRAL_RULES`.

    Raises
    ------
    ValueError
        If the integral is asked for and the functions are not Gaussians of one width.
    """
    if selection == "objective":
        return by_objective(dictionary, samples, q, loss, alpha)
    if integral:
        gram = IntegralGram(dictionary)
        return by_gram_schmidt(gram, q) if selection == "gram_schmidt" else by_correlation(gram, q)
    if selection == "gram_schmidt":
        return by_gram_schmidt(_gram(dictionary, samples, q, centred=False), q)
    centred = selection == "correlation"
    return by_correlation(_gram(dictionary, samples, q, centred=centred), q)


class IntegralGram:
    """G by the integral of products of Gaussians, a row at a time, in units of its diagonal.

    Parameters
    ----------
    dictionary : Dictionary
        Gaussians of one width.
    """

    alpha = 0.0
    shareable = False
    panel = 1

    def __init__(self, dictionary: Dictionary) -> None:
        atoms = dictionary.atoms
        kernel = atoms.kernel if isinstance(atoms, Atoms) else None
        if not isinstance(kernel, RBF | Mahalanobis):
            raise ValueError(
                "inner_product='integral' has a closed form for Gaussian functions of one width "
                "alone: kernel='rbf' or a value of pursuit.kernels.Mahalanobis"
            )
        self.centres = atoms.centres
        self.kernel = _of_half_the_gamma(kernel)
        self.prepared = self.kernel.prepare(self.centres)
        self.diagonal = np.ones(len(atoms))

    def has(self, index: int) -> bool:
        """Rows are computed when asked for, at no more than their reading costs elsewhere."""
        return True

    def prefetch(self, atoms: Array) -> None:
        """Nothing: see `has`."""

    def row(self, index: int) -> Array:
        """Row `index` of G."""
        values = self.kernel.evaluate(self.centres[index : index + 1], self.prepared)
        return np.asarray(values[0], dtype=np.float64)

    def among(self, atoms: Array) -> GramRows:
        """G of some functions alone."""
        few = self.centres[atoms]
        return SmallGram(np.asarray(self.kernel(few, few), dtype=np.float64))


def _of_half_the_gamma(kernel: RBF | Mahalanobis) -> Kernel:
    """The kernel between centres that the integral is, up to its constant."""
    if isinstance(kernel, RBF):
        return RBF(0.5 * np.asarray(kernel.gamma) if np.ndim(kernel.gamma) else 0.5 * kernel.gamma)
    if kernel.factor is None:
        return Mahalanobis(0.5 * kernel.matrix)
    return Mahalanobis(factor=np.sqrt(0.5) * kernel.factor)


def _gram(dictionary: Dictionary, samples: Samples, q: int, *, centred: bool) -> GramRows:
    """G, or the promise of its rows where q of them cost less; centred: less the means."""
    n_functions = len(dictionary)
    complete = choose_route(samples.X.shape, n_functions, q) == "gram"
    values = WeightedValues(
        dictionary.atoms.functions,
        samples,
        n_functions,
        centred=centred,
        keep=not complete,
        subset=dictionary.atoms.subset,
    )
    return normal_equations(gather(values, complete=complete), values, alpha=0.0).gram
