"""Sparse Bayesian learning: kernel functions that the marginal likelihood keeps.

Papers: M. Tipping, "Sparse Bayesian learning and the relevance vector machine", Journal of Machine
Learning Research 1 (2001); M. Tipping and A. Faul, "Fast marginal likelihood maximisation for
sparse Bayesian models", AISTATS (2003). Numbers marked T are equations of the first, F of the
second.

Problem. Numbers t_i = f(x_i) + noise of variance sigma^2, or classes t_i in {-1, +1} of
probability 1 / (1 + exp(-t_i f(x_i))), with f = Phi w, and a prior precision for each weight,
w_m ~ N(0, 1 / alpha_m) (T 5). The columns of Phi are K(., x_m) on the training rows and, with an
intercept, a constant, whose precision is fixed. Maximise over alpha (and sigma^2) the marginal
likelihood, in which w is integrated out. At the maximum most alpha_m are infinite, that is, most
columns are absent; what is left are the relevance vectors. A row of weight c counts c times:
p(t_i | f_i)^c_i.

==========  =====================  =========================================================
symbol      name in code           shape and meaning
==========  =====================  =========================================================
Phi         ``columns``            (M, n)  functions of the model on the rows, one a row here,
                                   each of unit length, sum_i c_i phi_i^2 = 1
alpha       ``alpha``              (M,)  precisions of the prior
u           ``mean``               (M,)  sqrt(alpha) times the posterior mean mu of w
g           ``slope``              (n,)  d log p(t | f) / df
B           ``curvature``          (n,)  -d2 log p(t | f) / df2: c / sigma^2, or c p (1 - p)
L           ``factor``             (M, M)  Cholesky factor of I + A^{-1/2} Phi'B Phi A^{-1/2}
T           ``spread``             (M,)  diagonal of (L L')^{-1}: alpha times the posterior
                                   variance of w
S, Q        ``S``, ``Q``           of a function outside of the model, see below
s, q        ``s``, ``q``           the same without the function itself (F 19, 23)
==========  =====================  =========================================================

Posterior (T 12-13; Laplace's approximation for classes, T 25-27): mu maximises
log p(t | Phi w) - w'A w / 2, A = diag(alpha), and Sigma = (Phi'B Phi + A)^{-1}. We solve for
u = A^{1/2} w by Newton's method with halved steps: I + A^{-1/2} Phi'B Phi A^{-1/2} is safely
positive definite whatever the alphas are. For numbers the first step is exact. At the mode
Phi'g = A mu, and

    log p(t | alpha) = log p(t | mu) - |u|^2 / 2 - sum_j log L_jj                  (T 15, F 7).

For numbers this equals log N(t | 0, C), C = sigma^2 I + Phi A^{-1} Phi'; for classes it is
Laplace's approximation. As a function of one alpha with the others fixed it is a constant plus
(F 17-18)

    l(alpha) = 1/2 [log alpha - log(alpha + s) + q^2 / (alpha + s)],    l(infinity) = 0,

whose maximum is at alpha = s^2 / theta where theta = q^2 - s is positive, else at infinity
(F 20-21). With C^{-1} = B - B Phi Sigma Phi'B, S = phi'C^{-1} phi and Q = phi'C^{-1} t^ (F 22), t^
the targets, for classes Phi mu + B^{-1} g,

    outside of the model   s = S = phi'B phi - |L^{-1} A^{-1/2} Phi'B phi|^2,
                           q = Q = phi'g                                            (F 24-25),
    in the model           s = alpha S / (alpha - S) = alpha (1 - T) / T,
                           q = alpha Q / (alpha - S) = sqrt(alpha) u / T            (F 23).

The last forms follow from S = alpha - alpha^2 Sigma_mm and Q = alpha mu_m; the difference
alpha - S, which cancels, is not formed. The gain of a change from alpha to alpha' is
l(alpha') - l(alpha): adding (F 27), re-estimating (F 32) and deleting (F 37) are its cases.

Steps, until none of them raises the log marginal likelihood by more than ``tol``:

1. the precisions *of the model* whose theta is positive are moved to s^2 / theta all at once, if
   that gains more than the best single change promises; else the function of the model with the
   largest gain is re-estimated, or deleted if its theta is not positive;
2. where none is left, sigma^2 = E / (sum_i c_i - sum_m gamma_m), E = sum_i c_i (t_i - f_i)^2,
   gamma = 1 - T (T 17-18); if that lowers the marginal likelihood, the step of the EM algorithm,
   (E + sigma^2 sum_m gamma_m) / sum_i c_i, which cannot;
3. where that does not change either, the function *outside* with the largest gain is added, the
   lowest index among ties.

For numbers a second climb may follow. The first one starts with sigma^2 = the variance of the
targets. Where functions are so alike that one alone explains next to nothing, it ends there. If it
has left more than a tenth of the variance, another machine starts with a hundredth, adds functions
before it estimates sigma^2 anew, twice as many as the first one has and ten more at most, and then
goes on as the first one did. The second is kept if its log marginal likelihood is higher by more
than ``tol``.

Step 3 ends, too, where a model has ten functions, and the last ten additions, with all steps
since, have raised the log marginal likelihood by less than ten: every function has a precision of
its own, so that many useless functions explain noise, and each of them is promised a little.

Posterior, S and Q are computed afresh at each step, so no error builds up. Each step is kept only
if the marginal likelihood itself has gone up: for classes l(alpha) holds B fixed, and may promise
what Laplace's approximation does not keep; then a step half as long in log alpha, or the next
function is tried. So the marginal likelihood never falls and the method ends.

Cost. Step 3: for classes n m (M + 2) operations for m candidates, for numbers (M^2 + n) m; where
Phi of all candidates does not fit in working memory, also their kernel values, computed in blocks;
steps 1 and 2: n M^2. Nothing of size
n x n is kept beyond the working memory.

Where we differ. F takes the largest gain over all functions at each step; here the model is at its
optimum before a function is added, so that the pass over all candidates, which is the costly part,
is made once an addition. The papers treat the constant as one more function; here it is always
there, with a prior so broad that it tells nothing (a standard deviation of 1000, for numbers in
units of that of the targets and about their mean): neither an offset of the targets nor one of the
kernel functions changes the fit. sigma^2 is never below 1e-6 of the variance of the targets: the
marginal likelihood alone would explain targets without noise by as many functions as there are
rows. A function within rounding of the span of the model is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from pursuit._typing import Array, Watch
from pursuit._validation import Samples
from pursuit.dictionary import training_rows
from pursuit.kernels import Kernel, kernel_name
from pursuit.linalg import blocks

__all__ = [
    "CONSTANT",
    "LEAST_NOISE",
    "Bernoulli",
    "Candidates",
    "Evidence",
    "Gaussian",
    "Likelihood",
    "SparseBayesianModel",
    "maximise_evidence",
    "posterior",
]

# sigma^2 is at least this share of the variance of the targets.
LEAST_NOISE = 1e-6
# The noise above which a second climb follows, and that with which it starts.
MUCH_NOISE, LITTLE_NOISE = 0.1, 0.01
# A function with less than this share of its squared length outside of the span is dependent.
DEPENDENT = 1e-10
# A gain within this share of the best one is a tie.
TIE = 1e-9
# Newton's method ends with the step that promises less than this, relative to the height.
SMALL_DECREMENT = 1e-10
MOST_NEWTON_STEPS, MOST_HALVINGS = 100, 30
# Functions tried, and step lengths of each, before a promise counts as empty.
MOST_TRIALS = 3
# So many additions in a row must raise the log marginal likelihood by one each on average. Every
# function brings a precision of its own, and the best of many useless ones still promises a little.
TRIED_ADDITIONS, LEAST_WORTH = 10, 1.0
# The constant among the functions of a model, and the precision of its weight.
CONSTANT = -1
BROAD = 1e-6
# Entries of a block that stays in the cache.
SWEEP_ENTRIES = 1 << 18


class Likelihood(Protocol):
    """log p(t | f) of weighted rows."""

    def value(self, f: Array) -> float:
        """Log-likelihood of the outputs f."""

    def derivatives(self, f: Array) -> tuple[Array, Array]:
        """Its first and its negative second derivative in each f_i."""


@dataclass(frozen=True)
class Gaussian:
    """Numbers with noise: sum_i c_i log N(t_i | f_i, sigma^2)."""

    targets: Array
    weights: Array
    noise: float

    def value(self, f: Array) -> float:
        """The logarithm of the normal density, weighted."""
        constant = self.weights.sum() * np.log(2.0 * np.pi * self.noise)
        return float(-0.5 * (constant + self.weights @ (self.targets - f) ** 2 / self.noise))

    def derivatives(self, f: Array) -> tuple[Array, Array]:
        """Residuals over sigma^2, and 1 / sigma^2, weighted."""
        precision = self.weights / self.noise
        return precision * (self.targets - f), precision


@dataclass(frozen=True)
class Bernoulli:
    """Classes -1 and +1: sum_i c_i log(1 / (1 + exp(-t_i f_i)))."""

    targets: Array
    weights: Array

    def value(self, f: Array) -> float:
        """The logarithm of the probability of the classes, weighted."""
        return float(-self.weights @ np.logaddexp(0.0, -self.targets * f))

    def derivatives(self, f: Array) -> tuple[Array, Array]:
        """Derivatives c (y - p), y in {0, 1}, and c p (1 - p)."""
        p = expit(f)
        # 1 - p and p of the row's own class, both without cancellation.
        return self.weights * self.targets * expit(-self.targets * f), self.weights * p * expit(-f)


class Evidence(NamedTuple):
    """The posterior of one model and its log marginal likelihood; symbols as above."""

    mean: Array
    values: Array
    slope: Array
    curvature: Array
    factor: Array
    spread: Array
    log_marginal_likelihood: float


def posterior(
    likelihood: Likelihood,
    columns: Array,
    alpha: Array,
    start: Array | None = None,
    gram: Array | None = None,
) -> Evidence:
    """Mode of the posterior, its curvature, and the marginal likelihood.

    Parameters
    ----------
    likelihood : Gaussian or Bernoulli
        log p(t | f).
    columns : ndarray of shape (n_functions, n_rows)
        Functions on the rows.
    alpha : ndarray of shape (n_functions,)
        Precisions of their weights.
    start : ndarray of shape (n_functions,), optional
        First u.
    gram : ndarray of shape (n_functions, n_functions), optional
        Phi'B Phi, where B does not depend on f and it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.sparse_bayes.evidence import Gaussian, posterior
    >>> one = posterior(Gaussian(np.array([3.0]), np.ones(1), 1.0), np.ones((1, 1)), np.ones(1))
    >>> one.values  # half way between the prior's mean and the target
    array([1.5])
    """
    deviations = 1.0 / np.sqrt(alpha)  # w = A^{-1/2} u
    known = None if gram is None else _cholesky(gram, deviations)
    u = np.zeros(len(alpha)) if start is None else start
    f = (u * deviations) @ columns
    height = likelihood.value(f) - 0.5 * float(u @ u)
    for _ in range(MOST_NEWTON_STEPS):
        slope, curvature = likelihood.derivatives(f)
        factor = (
            _cholesky((columns * curvature) @ columns.T, deviations) if known is None else known
        )
        inner = solve_triangular(factor, deviations * (columns @ slope) - u, lower=True)
        step = solve_triangular(factor, inner, lower=True, trans="T")
        if known is not None or inner @ inner <= SMALL_DECREMENT * max(1.0, abs(height)):
            u = u + step  # the error is the square of the last step, and none where B is known
            break
        u, raised = _climb(likelihood, columns, deviations, u, step)
        f = (u * deviations) @ columns
        if not raised > height:
            break
        height = raised
    f = (u * deviations) @ columns
    height = likelihood.value(f) - 0.5 * float(u @ u)
    slope, curvature = likelihood.derivatives(f)
    factor = _cholesky((columns * curvature) @ columns.T, deviations) if known is None else known
    inverse = solve_triangular(factor, np.eye(len(alpha)), lower=True)
    spread = np.einsum("ij,ij->j", inverse, inverse)
    log_marginal_likelihood = height - float(np.log(np.diagonal(factor)).sum())
    return Evidence(u, f, slope, curvature, factor, spread, log_marginal_likelihood)


def _cholesky(gram: Array, deviations: Array) -> Array:
    """L of I + A^{-1/2} Phi'B Phi A^{-1/2}, from Phi'B Phi and A^{-1/2}."""
    shrunk = gram * np.outer(deviations, deviations)
    shrunk[np.diag_indices_from(shrunk)] += 1.0
    factor: Array = np.linalg.cholesky(shrunk)
    return factor


def _climb(
    likelihood: Likelihood, columns: Array, deviations: Array, u: Array, step: Array
) -> tuple[Array, float]:
    """The point and its height after the first of the steps 1, 1/2, ... that does not lower it."""

    def height(u: Array) -> float:
        return likelihood.value((u * deviations) @ columns) - 0.5 * float(u @ u)

    start = height(u)
    for halving in range(MOST_HALVINGS):
        trial = u + step * 0.5**halving
        raised = height(trial)
        if raised >= start:
            return trial, raised
    return u, start


class Candidates:
    """All functions of a model: kernels on rows, and a constant.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    samples : Samples
        Training rows and their weights; rows of weight zero have no function.
    intercept : bool
        Whether a model has a constant; its index is `CONSTANT`.

    Attributes
    ----------
    places : ndarray of int of shape (n_rows,)
        The rows of positive weight among all rows.
    weights : ndarray of shape (n_rows,)
        Their weights.
    atoms : AtomSet
        The kernel functions.
    lengths : ndarray of shape (n_rows,)
        Weighted length of each kernel function over the rows.
    products : dict of int to ndarray of shape (n_rows,)
        For functions that have been in a model: their weighted products with all of these.
    """

    def __init__(self, kernel: Kernel, samples: Samples, intercept: bool) -> None:
        self.places = np.flatnonzero(samples.weights > 0)
        self.X, self.weights = samples.X[self.places], samples.weights[self.places]
        self.intercept = intercept
        self.atoms = training_rows(kernel, samples.X, self.places).atoms
        self.products: dict[int, Array] = {}
        self.constant_length = float(np.sqrt(self.weights.sum()))
        n_rows = len(self.places)
        self.lengths = np.ones(n_rows)
        kept = np.empty((n_rows, n_rows)) if blocks.fits(8.0 * n_rows**2) else None
        lengths = np.empty(n_rows)
        for part, values in self._evaluated():
            with np.errstate(over="ignore", invalid="ignore"):
                lengths[part] = np.sqrt(values**2 @ self.weights)
            if not np.isfinite(lengths[part]).all():
                raise ValueError(
                    f"kernel: {kernel_name(kernel)} gives values that are not finite, or whose "
                    "squares are not; rescale the features or change the kernel"
                )
            if kept is not None:
                kept[part] = values
        self.lengths = lengths
        self.kept = None if kept is None else np.divide(kept, self._divisors(lengths), out=kept)

    def __len__(self) -> int:
        """Number of kernel functions."""
        return len(self.lengths)

    @staticmethod
    def _divisors(lengths: Array) -> Array:
        """Lengths as a column; a function that is zero everywhere stays so."""
        return np.where(lengths > 0, lengths, 1.0)[:, None]

    def _evaluated(self) -> Iterator[tuple[slice, Array]]:
        """Blocks of unit functions, one a row, from kernel values."""
        n_rows = len(self.weights)
        for part in blocks.row_blocks(n_rows, 32.0 * n_rows):
            yield part, self._rows(np.arange(part.start, part.stop))

    def _rows(self, indices: Array) -> Array:
        """Unit kernel functions, (n_indices, n_rows)."""
        values = blocks.evaluate(self.atoms.subset(indices), self.X, len(indices)).T
        return np.ascontiguousarray(values, dtype=np.float64) / self._divisors(
            self.lengths[indices]
        )

    def parts(self) -> Iterator[tuple[slice, Array]]:
        """Blocks of unit functions, one a row: all kernel functions once."""
        if self.kept is None:
            yield from self._evaluated()
            return
        size = max(1, SWEEP_ENTRIES // max(len(self), 1))
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield part, self.kept[part]

    def visited(self, picks: list[int]) -> Iterator[tuple[slice, Array]]:
        """As `parts`; at the end the products of the functions `picks` are known."""
        new = [pick for pick in picks if pick not in self.products]
        weighted = np.array([self.row(pick) * self.weights for pick in new])
        found = np.empty((len(new), len(self)))
        for part, rows in self.parts():
            if new:
                found[:, part] = weighted @ rows.T
            yield part, rows
        self.products.update(zip(new, found, strict=True))

    def products_of(self, picks: list[int]) -> Array:
        """Weighted products of the functions `picks` with all kernel functions."""
        if any(pick not in self.products for pick in picks):
            for _ in self.visited(picks):
                pass
        found = [self.products[pick] for pick in picks]
        return np.array(found).reshape(len(picks), len(self))

    def copies(self, pick: int) -> Array:
        """The kernel functions that equal a function of `products`, or its negative."""
        return np.abs(self.products[pick]) >= 1.0 - DEPENDENT

    def products_with(self, t: Array) -> Array:
        """Weighted products of all kernel functions with numbers a row."""
        found = np.empty(len(self))
        for part, rows in self.parts():
            found[part] = rows @ (self.weights * t)
        return found

    def row(self, index: int) -> Array:
        """One unit function."""
        if index == CONSTANT:
            return np.full(len(self.weights), 1.0 / self.constant_length)
        row: Array = self._rows(np.array([index]))[0] if self.kept is None else self.kept[index]
        return row

    def length(self, index: int) -> float:
        """Length of one function."""
        return self.constant_length if index == CONSTANT else float(self.lengths[index])


def _gain(s: Array, q: Array) -> Array:
    """l(s^2 / theta) = (r - 1 - log r) / 2 with r = q^2 / s > 1, else 0."""
    excess = np.maximum(q**2 / s, 1.0) - 1.0
    gain: Array = 0.5 * (excess - np.log1p(excess))
    return gain


def _ranked(gains: Array, tol: float) -> Array:
    """Indices of gains above `tol`, largest first, the lowest index first among ties."""
    promising = np.flatnonzero(gains > tol)
    # Equal up to rounding: rounded to few digits before they are compared.
    levels = np.round(np.log(gains[promising]) / TIE)
    return promising[np.lexsort((promising, -levels))]


@dataclass
class SparseBayesianModel:
    """One model on its way up the marginal likelihood.

    Attributes
    ----------
    candidates : Candidates
        All functions.
    likelihood : Gaussian or Bernoulli
        log p(t | f).
    most : int
        Largest number of kernel functions.
    tol : float
        Least gain of a step.
    picks : list of int
        The model's functions, `CONSTANT` for the constant.
    alpha : ndarray of shape (n_functions,)
        Their precisions.
    path : list of float
        Log marginal likelihood at the start and after each step.
    before_additions : list of float
        Log marginal likelihood just before each addition.
    products : tuple of ndarray or None
        Functions, and their weighted products with each other.
    target_products : ndarray of shape (n_candidates,) or None
        Weighted products of all kernel functions with the targets, where these are numbers.
    full : bool
        Whether another function would have been added but for `most`.
    watch : callable or None
        Looks at the model after each step; a text ends the climb and says why.
    """

    candidates: Candidates
    likelihood: Any
    most: int
    tol: float
    picks: list[int] = field(default_factory=list)
    alpha: Array = field(default_factory=lambda: np.empty(0))
    path: list[float] = field(default_factory=list)
    before_additions: list[float] = field(default_factory=list)
    full: bool = False
    products: tuple[Array, Array] | None = None
    target_products: Array | None = None
    watch: Watch[SparseBayesianModel] | None = None
    columns: Array = field(init=False)
    evidence: Evidence = field(init=False)

    def __post_init__(self) -> None:
        """Start with the constant, or without any function."""
        self.columns = np.empty((0, len(self.candidates.weights)))
        if self.candidates.intercept:
            self.picks = [CONSTANT]
            self.columns = self.candidates.row(CONSTANT)[None, :]
            self.alpha = np.array([BROAD / self.candidates.length(CONSTANT) ** 2])
        self.evidence = posterior(self.likelihood, self.columns, self.alpha)
        self.path.append(self.evidence.log_marginal_likelihood)

    @property
    def n_vectors(self) -> int:
        """Number of kernel functions."""
        return len(self.picks) - (CONSTANT in self.picks)

    def run(self, max_iter: int, *, noise_last: bool = False) -> str:
        """Take steps until there are none, or `max_iter` in all; return the reason for stopping.

        With `noise_last` functions are added for the noise as it is, before that is estimated.
        """
        steps = [self._reestimate_precisions, self._reestimate_noise, self._extend]
        if noise_last:
            steps = [self._reestimate_precisions, self._extend, self._reestimate_noise]
        while len(self.path) <= max_iter:
            if not any(step() for step in steps):
                return "n_components" if self.full else "tol"
            if self.watch is not None and (reason := self.watch(self)):
                return reason
        return "max_iter"

    def _accept(
        self,
        likelihood: Likelihood,
        picks: list[int],
        columns: Array,
        alpha: Array,
        least: float = 0.0,
    ) -> bool:
        """Move to another model if its marginal likelihood is higher, by more than `least`."""
        old = dict(zip(self.picks, self.evidence.mean / np.sqrt(self.alpha), strict=True))
        start = np.array([old.get(pick, 0.0) for pick in picks]) * np.sqrt(alpha)
        gram = self._gram(columns) / likelihood.noise if isinstance(likelihood, Gaussian) else None
        evidence = posterior(likelihood, columns, alpha, start, gram)
        if not evidence.log_marginal_likelihood > self.path[-1] + max(self.tol, least):
            return False
        self.likelihood, self.picks, self.columns, self.alpha = likelihood, picks, columns, alpha
        self.evidence = evidence
        self.path.append(evidence.log_marginal_likelihood)
        return True

    def _gram(self, columns: Array) -> Array:
        """Weighted products of functions, kept while the functions stay the same."""
        if self.products is None or self.products[0] is not columns:
            self.products = columns, (columns * self.candidates.weights) @ columns.T
        return self.products[1]

    def inside(self) -> tuple[Array, Array]:
        """Best precision of each function of the model, with the others fixed, and its gain.

        An infinite precision: the function is better left out. That of the constant stays.
        """
        u, T = self.evidence.mean, self.evidence.spread
        determined = np.maximum(1.0 - T, np.finfo(float).tiny)  # gamma
        current = 0.5 * (np.log(T) + u**2 / T)
        theta = u**2 - T * determined  # times T^2 / alpha
        found = theta > 0
        best = np.full(len(theta), np.inf)
        best[found] = self.alpha[found] * determined[found] ** 2 / theta[found]
        gains = _gain(determined, u / np.sqrt(T)) - current
        constant = np.array(self.picks, dtype=int) == CONSTANT
        return np.where(constant, self.alpha, best), np.where(constant, 0.0, gains)

    def outside(self) -> tuple[Array, Array]:
        """Best precision of each kernel function outside of the model, and its gain.

        The gain is 0 for a function that would not raise the marginal likelihood, or is there
        already, or a copy of it.
        """
        if isinstance(self.likelihood, Gaussian):
            s, q = self._statistics_of_numbers(self.likelihood)
        else:
            s, q = np.empty(len(self.candidates)), np.empty(len(self.candidates))
            within = self._within()
            for part, rows in self.candidates.visited(self.picks):
                s[part], q[part] = self._statistics(rows, within)
        for pick in self.picks:
            copies = self.candidates.copies(pick)
            s[copies], q[copies] = 1.0, 0.0
        found = q**2 > s
        best = np.full(len(s), np.inf)
        best[found] = s[found] ** 2 / (q[found] ** 2 - s[found])  # F 20-21: s^2 / theta
        return best, _gain(s, q)

    def _reestimate_precisions(self) -> bool:
        """Re-estimate the model's precisions, or delete a function (F 32, F 37)."""
        best, gains = self.inside()
        ranked = _ranked(gains, self.tol)[:MOST_TRIALS]
        if not len(ranked):
            return False
        return self._together(best, gains[ranked[0]]) or any(
            self._re_estimate(j, best[j]) if np.isfinite(best[j]) else self._delete(j)
            for j in ranked
        )

    def _together(self, best: Array, least: float) -> bool:
        """Change all precisions that stay finite at once, if that gains more than `least`."""
        alpha = np.where(np.isfinite(best), best, self.alpha)
        return self._accept(self.likelihood, self.picks, self.columns, alpha, least)

    def _re_estimate(self, j: int, best: float) -> bool:
        """Change one precision, by less if need be."""
        for halving in range(MOST_TRIALS):
            alpha = self.alpha.copy()
            alpha[j] *= (best / alpha[j]) ** (0.5**halving)
            if self._accept(self.likelihood, self.picks, self.columns, alpha):
                return True
        return False

    def _delete(self, j: int) -> bool:
        """Take one function out."""
        left = np.delete(np.arange(len(self.picks)), j)
        picks = [self.picks[k] for k in left]
        return self._accept(self.likelihood, picks, self.columns[left], self.alpha[left])

    def _reestimate_noise(self) -> bool:
        """Estimate the variance of the noise anew (T 18)."""
        if not isinstance(self.likelihood, Gaussian):
            return False
        t, c, noise = self.likelihood.targets, self.likelihood.weights, self.likelihood.noise
        error = float(c @ (t - self.evidence.values) ** 2)
        determined, total = float((1.0 - self.evidence.spread).sum()), float(c.sum())
        estimates = [(error + noise * determined) / total]
        if total > determined:
            estimates.insert(0, error / (total - determined))
        for estimate in estimates:
            likelihood = Gaussian(t, c, max(estimate, LEAST_NOISE))
            if self._accept(likelihood, self.picks, self.columns, self.alpha):
                return True
        return False

    def _extend(self) -> bool:
        """Add the function that gains most (F 27), while additions are worth it."""
        if self._overfits():
            return False
        best, gains = self.outside()
        ranked = _ranked(gains, self.tol)
        self.full = self.n_vectors >= self.most and len(ranked) > 0
        for m in ranked[: 0 if self.full else MOST_TRIALS]:
            columns = np.vstack([self.columns, self.candidates.row(m)])
            alpha = np.append(self.alpha, best[m])
            before = self.path[-1]
            if self._accept(self.likelihood, [*self.picks, int(m)], columns, alpha):
                self.before_additions.append(before)
                return True
        return False

    def _overfits(self) -> bool:
        """Whether the last additions, with all steps since, have gained next to nothing."""
        if min(self.n_vectors, len(self.before_additions)) < TRIED_ADDITIONS:
            return False
        gained = self.path[-1] - self.before_additions[-TRIED_ADDITIONS]
        return gained < LEAST_WORTH * TRIED_ADDITIONS

    def _within(self) -> Array:
        """L^{-1} A^{-1/2} Phi'B, (n_functions, n_rows)."""
        scaled = self.columns * self.evidence.curvature / np.sqrt(self.alpha)[:, None]
        within: Array = solve_triangular(self.evidence.factor, scaled, lower=True)
        return within

    def _statistics(self, rows: Array, within: Array) -> tuple[Array, Array]:
        """S and Q of functions outside of the model (F 24-25)."""
        own = rows**2 @ self.evidence.curvature
        inside = within @ rows.T
        return _outside(own, inside, rows @ self.evidence.slope)

    def _statistics_of_numbers(self, likelihood: Gaussian) -> tuple[Array, Array]:
        """The same of all kernel functions, for numbers, whose B is c / sigma^2.

        Phi'B phi and phi'g then follow from products with the functions of the model and with the
        targets, which stay as they are: M^2 operations a function instead of M n.
        """
        if self.target_products is None:
            self.target_products = self.candidates.products_with(likelihood.targets)
        precision, deviations = 1.0 / likelihood.noise, 1.0 / np.sqrt(self.alpha)
        products = self.candidates.products_of(self.picks)
        inside = solve_triangular(
            self.evidence.factor, products * (deviations * precision)[:, None], lower=True
        )
        own = np.where(self.candidates.lengths > 0, precision, 0.0)
        values = (self.evidence.mean * deviations) @ products
        return _outside(own, inside, (self.target_products - values) * precision)


def _outside(own: Array, inside: Array, q: Array) -> tuple[Array, Array]:
    """S and Q from phi'B phi, L^{-1} A^{-1/2} Phi'B phi and phi'g (F 24-25)."""
    S = own - np.einsum("ij,ij->j", inside, inside)
    free = S > DEPENDENT * own
    return np.where(free, S, 1.0), np.where(free, q, 0.0)


def maximise_evidence(
    machine: SparseBayesianModel, max_iter: int
) -> tuple[SparseBayesianModel, str]:
    """Run a machine, and for numbers perhaps a second one; return the better one and its reason.

    Parameters
    ----------
    machine : SparseBayesianModel
        At its start.
    max_iter : int
        Most steps of each.
    """
    reason = machine.run(max_iter)
    first = machine.likelihood
    stopped = reason not in ("tol", "n_components", "max_iter")
    if stopped or not isinstance(first, Gaussian) or first.noise <= MUCH_NOISE:
        return machine, reason
    few = min(machine.most, 2 * machine.n_vectors + 10)
    low = Gaussian(first.targets, first.weights, LITTLE_NOISE)
    other = SparseBayesianModel(machine.candidates, low, few, machine.tol, watch=machine.watch)
    other.run(max_iter, noise_last=True)
    other.most = machine.most
    second = other.run(max_iter)
    higher = other.path[-1] > machine.path[-1] + machine.tol
    return (other, second) if higher else (machine, reason)
