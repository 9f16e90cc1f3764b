"""Relevance vector machines: classes and numbers from kernel functions that evidence keeps.

Papers: M. Tipping, "Sparse Bayesian learning and the relevance vector machine", Journal of Machine
Learning Research 1 (2001), equations T; M. Tipping and A. Faul, "Fast marginal likelihood
maximisation for sparse Bayesian models", AISTATS (2003), equations F. The algorithm, with its
mathematics, is in ``evidence.py``; here are the estimators.

Problem. f(x) = b + sum_m w_m K(x, x_m) with w_m ~ N(0, 1 / alpha_m), and numbers with noise of
variance sigma^2 about f (T 4) or classes of probability 1 / (1 + exp(-t f)) (T 23). Maximise over
alpha and sigma^2 the probability of the targets with the weights integrated out (T 15, F 7).

===========  ========================  =====================================================
symbol       name in code              shape and meaning
===========  ========================  =====================================================
mu           ``dual_coef_``            (T, m)  mean of the weights, or their mode for classes
alpha        ``alpha_``                (T, m)  precisions of the prior
sigma^2      ``noise_variance_``       variance of the noise of each target
R            ``root``                  (1 + m, M)  Sigma = R R' is the covariance of the
                                       weights under the posterior, the constant first
===========  ========================  =====================================================

Prediction. Numbers: the mean f(x) at mu, and the variance

    sigma^2 + phi(x)'Sigma phi(x) = sigma^2 + |R'phi(x)|^2                         (T 21-22);

the covariance of targets at several rows is sigma^2 I + (R'phi)'(R'phi), and a draw of them is
f + (R'phi)'e + sigma n with standard normal e and n.

Classes: 1 / (1 + exp(-f)) at the mode of the weights, as in T; the spread of the weights is left
out. Of several classes each has a machine against all others, and the probabilities are divided by
their sum. Several targets have a machine each, too. The path of the marginal likelihood is that of
the sum over the machines, which climb one after another.

Units. A target enters as (t - its mean) / its standard deviation, without an intercept as t / its
root mean square, so that neither its unit nor, with an intercept, its offset matters.

Cost. See ``evidence.py``; prediction takes m kernel values a row, and m M more operations for the
standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from pursuit._arrays import alike, to_numpy
from pursuit._typing import Array, Watch
from pursuit._validation import Samples, check_integer, check_real
from pursuit._warnings import warn
from pursuit.base.arrays import following, through_host
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.estimators import ExpansionClassifier, ExpansionEstimator, ExpansionRegressor
from pursuit.base.parameters import constructor, positional
from pursuit.expansion.expansion import KernelExpansion
from pursuit.linalg import blocks
from pursuit.sparse_bayes.evidence import (
    CONSTANT,
    LEAST_NOISE,
    Bernoulli,
    Candidates,
    Gaussian,
    SparseBayesianModel,
    maximise_evidence,
)

__all__ = ["RelevanceVectorClassifier", "RelevanceVectorRegressor"]

# A variance below this share of the mean square is rounding; one below the other is none.
ROUNDING, NONE = 1e-20, 1e-200
# Reasons for stopping, the one that matters most first.
REASONS = ("interrupt", "callback", "max_iter", "n_components", "tol")
# Functions of a usual model, to tell how many threads pay.
USUAL_SIZE = 20


class Solution(NamedTuple):
    """A fitted model in terms of the functions as they are, not of unit length.

    Attributes
    ----------
    picks : list of int
        The kernel functions.
    coefficients, alpha : ndarray of shape (1 + n_vectors,)
        Weights and their precisions, those of the constant first; 0 and infinite without one.
    root : ndarray of shape (1 + n_vectors, n_functions)
        Sigma = root root'; rows of zeros where a function is absent.
    """

    picks: list[int]
    coefficients: Array
    alpha: Array
    root: Array


class TargetScaling(NamedTuple):
    """A machine's target is (t - centre) / scale."""

    centre: float = 0.0
    scale: float = 1.0


def target_scaling(t: Array, weights: Array, intercept: bool) -> TargetScaling:
    """Mean and standard deviation of a target; without an intercept 0 and the root mean square."""
    centre = float(np.average(t, weights=weights)) if intercept else 0.0
    variance = float(np.average((t - centre) ** 2, weights=weights))
    least = max(ROUNDING * float(np.average(t**2, weights=weights)), NONE)
    return TargetScaling(centre, float(np.sqrt(max(variance, least))))


def solution(machine: SparseBayesianModel, units: TargetScaling) -> Solution:
    """The machine's weights in the units of the targets."""
    lengths = np.array([machine.candidates.length(pick) for pick in machine.picks])
    size = units.scale / (np.sqrt(machine.alpha) * lengths)
    inverse = solve_triangular(machine.evidence.factor, np.eye(len(size)), lower=True)
    picks = [pick for pick in machine.picks if pick != CONSTANT]
    place = [1 + picks.index(pick) if pick != CONSTANT else 0 for pick in machine.picks]
    coefficients, alpha = np.zeros(1 + len(picks)), np.full(1 + len(picks), np.inf)
    root = np.zeros((1 + len(picks), len(size)))
    coefficients[place] = size * machine.evidence.mean
    coefficients[0] += units.centre
    alpha[place] = (lengths / units.scale) ** 2 * machine.alpha
    root[place] = size[:, None] * inverse.T
    return Solution(picks, coefficients, alpha, root)


class _RelevanceVectorModel(CallbackSupport, ExpansionEstimator):
    """What the classifier and the regressor share: one machine an output, and its attributes."""

    _takes_objects = True

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: Mapping[str, Any] | None
    fit_intercept: bool
    max_iter: int
    tol: float

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_integer("n_components", self.n_components, optional=True)
        check_integer("max_iter", self.max_iter)
        check_real("tol", self.tol, above=True)

    def _caps(self, n_outputs: int, n_rows: int) -> list[int]:
        """Most kernel functions of each output: equal parts of the budget of the whole model."""
        if self.n_components is None:
            return [n_rows] * n_outputs
        each, left = divmod(int(self.n_components), n_outputs)
        return [each + (b < left) for b in range(n_outputs)]

    def _candidates(self, samples: Samples) -> Candidates:
        """All functions."""
        kernel = self._resolved_kernel(samples)
        return Candidates(kernel, samples, self.fit_intercept)

    def _run(
        self,
        candidates: Candidates,
        likelihoods: list[Any],
        units: list[TargetScaling],
        watcher: Watcher | None,
    ) -> list[SparseBayesianModel]:
        """Fit one machine an output and set the attributes of the model."""
        n_rows = len(candidates)
        caps = self._caps(len(likelihoods), n_rows)
        machines = [
            SparseBayesianModel(candidates, likelihood, cap, self.tol)
            for likelihood, cap in zip(likelihoods, caps, strict=True)
        ]
        reasons = ["max_iter"] * len(machines)
        with blocks.blas_threads(float(USUAL_SIZE * n_rows**2)):
            for t, machine in enumerate(machines):
                if watcher is not None:
                    machine.watch = self._look(watcher, machines, t, (candidates, units))
                machines[t], reasons[t] = maximise_evidence(machine, self.max_iter)
        self._store_machines(machines, reasons, candidates, units)
        self._warn()
        return machines

    def _look(
        self,
        watcher: Watcher,
        machines: list[SparseBayesianModel],
        t: int,
        setting: tuple[Candidates, list[TargetScaling]],
    ) -> Watch[SparseBayesianModel]:
        """What tells of the steps of machine `t`; a second one counts where it is better."""

        def look(machine: SparseBayesianModel) -> str | None:
            higher = machine.path[-1] > machines[t].path[-1]
            now = [*machines[:t], machine if higher else machines[t], *machines[t + 1 :]]
            reasons = ["max_iter"] * len(now)
            return watcher(lambda model: model._store_machines(now, reasons, *setting))

        return look

    def _store_machines(
        self,
        machines: list[SparseBayesianModel],
        reasons: list[str],
        candidates: Candidates,
        units: list[TargetScaling],
    ) -> None:
        """Set the fitted attributes."""
        self._store_solutions(candidates, list(map(solution, machines, units)))
        self.log_marginal_likelihood_path_ = _joined([machine.path for machine in machines])
        self.n_iter_ = len(self.log_marginal_likelihood_path_) - 1
        self.stop_reason_ = next(r for r in REASONS if r in reasons)

    def _store_solutions(self, candidates: Candidates, solutions: list[Solution]) -> None:
        """Set the attributes of the expansion in the functions of all outputs."""
        picks = list(dict.fromkeys(pick for found in solutions for pick in found.picks))
        table = np.zeros((len(solutions), 1 + len(picks)))
        alpha = np.full(table.shape, np.inf)
        self._roots = []
        for t, found in enumerate(solutions):
            place = [0, *(1 + picks.index(pick) for pick in found.picks)]
            table[t, place], alpha[t, place] = found.coefficients, found.alpha
            self._roots.append(np.zeros((table.shape[1], found.root.shape[1])))
            self._roots[t][place] = found.root
        chosen = np.array(picks, dtype=int)
        atoms = candidates.atoms.take(chosen)
        expansion = KernelExpansion(atoms, table[:, 1:].copy(), table[:, 0].copy())
        self.alpha_ = alpha[:, 1:].copy()
        self._store_expansion(expansion, candidates.places[chosen])

    def _warn(self) -> None:
        """Say what the fit could not do."""
        if self.stop_reason_ == "max_iter":
            message = (
                f"the marginal likelihood was still rising after max_iter={self.max_iter} steps"
            )
        elif not self.n_components_:
            message = "no kernel function raises the marginal likelihood: the model is a constant"
        else:
            return
        warn(message, ConvergenceWarning)


def _joined(paths: list[list[float]]) -> Array:
    """Sum over the outputs, whose machines climb one after another."""
    starts = sum(path[0] for path in paths)
    rises = [np.diff(path) for path in paths]
    return starts + np.concatenate([[0.0], np.cumsum(np.concatenate(rises))])


@constructor
class RelevanceVectorClassifier(ClassifierMixin, _RelevanceVectorModel, ExpansionClassifier):
    """Classes from few kernel functions, chosen by the marginal likelihood.

    Logistic regression on kernel functions with a precision for each weight. There is no ``C`` to
    tune; how many functions are kept follows from the data and the kernel. Several classes: one
    machine a class against the others. Probabilities are 1 / (1 + exp(-f)) of the decision values,
    with the weights at their mode, of several classes divided by their sum.

    Parameters
    ----------
    n_components : int, optional
        Most relevance vectors of the whole model; several classes share it equally. None: as many
        as the marginal likelihood wants.
    kernel : str, Kernel or callable, default "rbf"
        A name of `pursuit.kernels` or a value from there, a callable
        ``(X, Z, **kernel_params) -> matrix``, or ``"precomputed"``. It need not be positive
        definite, nor symmetric.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default "scale"
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels, as in ``SVC``.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default 3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, default 1
        Constant of the polynomial, sigmoid and cosine polynomial kernels.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel.
    fit_intercept : bool, default True
        Whether a constant is among the functions.
    max_iter : int, default 5000
        Most steps for each output: additions, re-estimates, deletions.
    tol : float, default 1e-3
        The fit ends where no step raises the log marginal likelihood by more than this.
    class_weight : mapping, "balanced" or None, default None
        Weights of the classes, as in ``SVC``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    support_ : ndarray of int of shape (n_vectors,)
        Rows of the relevance vectors.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_vectors, n_features)
        The relevance vectors; absent for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Means of the weights; 0 where an output does not use a vector.
    intercept_ : ndarray of shape (n_outputs,)
        Mean of the weight of the constant.
    alpha_ : ndarray of shape (n_outputs, n_vectors)
        Precisions of the prior on the weights; infinite where an output does not use a vector.
    n_components_ : int
        Number of relevance vectors.
    log_marginal_likelihood_path_ : ndarray of shape (n_iter_ + 1,)
        Log marginal likelihood at the start and after each step, summed over the outputs.
    n_iter_ : int
        Number of steps, of all outputs together.
    stop_reason_ : {"tol", "n_components", "max_iter", "callback", "interrupt"}
        ``"n_components"``: another function would have been added but for the budget.
    kernel_ : Kernel
        The kernel with its numbers resolved.
    expansion_ : KernelExpansion
        The fitted function, callable without checks.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    RelevanceVectorRegressor : The same for numbers.

    References
    ----------
    M. Tipping, "Sparse Bayesian learning and the relevance vector machine", Journal of Machine
    Learning Research 1, 2001.
    M. Tipping and A. Faul, "Fast marginal likelihood maximisation for sparse Bayesian models",
    AISTATS 2003.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from pursuit import RelevanceVectorClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = RelevanceVectorClassifier().fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.93), model.n_components_ < 15
    (True, True)
    """

    n_components: int | None = positional(default=None)
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    fit_intercept: bool = True
    max_iter: int = 5000
    tol: float = 0.001
    class_weight: Mapping[Any, float] | str | None = None

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose functions and their weights.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : RelevanceVectorClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        candidates = self._candidates(samples)
        targets = samples.Y[candidates.places].T
        likelihoods = [Bernoulli(t, candidates.weights) for t in targets]
        with self._watching(X, y, sample_weight) as watcher:
            self._run(candidates, likelihoods, [TargetScaling()] * len(targets), watcher)
        return self

    def _scaled_values(self, X: Any) -> tuple[Array, float]:
        """Values whose softmax is 1 / (1 + exp(-f)) divided by its sum; the weights' mode."""
        outputs = self._outputs(X)
        return alike(_softmax_values(to_numpy(outputs)), outputs), 1.0


def _softmax_values(outputs: Array) -> Array:
    """Values whose softmax is the normalised 1 / (1 + exp(-f)): their logarithms.

    Two classes, of which one has the probability 1 / (1 + exp(-f)), need no change. From 30 on,
    where the logarithm is 0 to rounding, it is made to keep the order of f.
    """
    if outputs.shape[1] == 1:
        return outputs
    return np.asarray(log_expit(outputs) + 1e-14 * np.maximum(outputs - 30.0, 0.0))


@constructor
class RelevanceVectorRegressor(RegressorMixin, _RelevanceVectorModel, ExpansionRegressor):
    """Numbers, with an error band, from few kernel functions, chosen by the marginal likelihood.

    Linear regression on kernel functions with a precision for each weight. The variance of the
    noise is estimated, too, so that only the kernel is left to choose. Several targets: one
    machine a target.

    Parameters
    ----------
    n_components : int, optional
        Most relevance vectors of the whole model; several targets share it equally. None: as many
        as the marginal likelihood wants.
    kernel : str, Kernel or callable, default "rbf"
        A name of `pursuit.kernels` or a value from there, a callable
        ``(X, Z, **kernel_params) -> matrix``, or ``"precomputed"``. It need not be positive
        definite, nor symmetric.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default "scale"
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels, as in ``SVC``.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default 3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, default 1
        Constant of the polynomial, sigmoid and cosine polynomial kernels.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel.
    fit_intercept : bool, default True
        Whether a constant is among the functions.
    max_iter : int, default 5000
        Most steps for each output: additions, re-estimates, deletions.
    tol : float, default 1e-3
        The fit ends where no step raises the log marginal likelihood by more than this.

    Attributes
    ----------
    support_ : ndarray of int of shape (n_vectors,)
        Rows of the relevance vectors.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_vectors, n_features)
        The relevance vectors; absent for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Means of the weights; 0 where an output does not use a vector.
    intercept_ : ndarray of shape (n_outputs,)
        Mean of the weight of the constant.
    alpha_ : ndarray of shape (n_outputs, n_vectors)
        Precisions of the prior on the weights; infinite where an output does not use a vector.
    noise_variance_ : float or ndarray of shape (n_targets,)
        Variance of the noise; a number for a 1-d target.
    n_components_ : int
        Number of relevance vectors.
    log_marginal_likelihood_path_ : ndarray of shape (n_iter_ + 1,)
        Log marginal likelihood at the start and after each step, summed over the outputs.
    n_iter_ : int
        Number of steps, of all outputs together.
    stop_reason_ : {"tol", "n_components", "max_iter", "callback", "interrupt"}
        ``"n_components"``: another function would have been added but for the budget.
    kernel_ : Kernel
        The kernel with its numbers resolved.
    expansion_ : KernelExpansion
        The fitted function, callable without checks.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    RelevanceVectorClassifier : The same for classes.

    References
    ----------
    M. Tipping, "Sparse Bayesian learning and the relevance vector machine", Journal of Machine
    Learning Research 1, 2001.
    M. Tipping and A. Faul, "Fast marginal likelihood maximisation for sparse Bayesian models",
    AISTATS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import RelevanceVectorRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = RelevanceVectorRegressor().fit(X, y)
    >>> mean, std = model.predict([[1.0], [9.0]], return_std=True)
    >>> model.n_components_ < 10, round(model.noise_variance_, 2), std.round(1).tolist()
    (True, 0.01, [0.1, 0.1])
    """

    n_components: int | None = positional(default=None)
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    fit_intercept: bool = True
    max_iter: int = 5000
    tol: float = 0.001

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose functions, their weights and the variance of the noise.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : RelevanceVectorRegressor
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        candidates = self._candidates(samples)
        targets, weights = samples.Y[candidates.places].T, candidates.weights
        units = [target_scaling(t, weights, self.fit_intercept) for t in targets]
        likelihoods = [
            Gaussian((t - unit.centre) / unit.scale, weights, noise=1.0)
            for t, unit in zip(targets, units, strict=True)
        ]
        with self._watching(X, y, sample_weight) as watcher:
            machines = self._run(candidates, likelihoods, units, watcher)
        noise = [machine.likelihood.noise for machine in machines]
        if self.n_components_ and min(noise) <= LEAST_NOISE:
            warn(
                "the targets are explained without noise: noise_variance_ is kept at "
                f"{LEAST_NOISE:g} of their variance",
                ConvergenceWarning,
            )
        return self

    def _store_machines(
        self,
        machines: list[SparseBayesianModel],
        reasons: list[str],
        candidates: Candidates,
        units: list[TargetScaling],
    ) -> None:
        """Set the fitted attributes, in the units of the targets."""
        super()._store_machines(machines, reasons, candidates, units)
        scales = np.array([unit.scale for unit in units])
        self.log_marginal_likelihood_path_ -= candidates.weights.sum() * np.log(scales).sum()
        variance = np.array([machine.likelihood.noise for machine in machines]) * scales**2
        self.noise_variance_ = float(variance[0]) if self._one_dimensional else variance

    @through_host
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        return_std : bool, default False
            Whether to return the standard deviation of a target at each row, too: that of the
            noise and of the weights together.
        return_cov : bool, default False
            Whether to return the covariance of the targets at all rows instead, which takes the
            square of their number.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the form of the training targets.
        std : ndarray of the same shape
            With ``return_std=True``.
        cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets)
            With ``return_cov=True``; the square of `std` is its diagonal.

        Raises
        ------
        ValueError
            If both are asked for.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov do not go together")
        rows = self._validated(X)
        answers = self._answers()
        mean = answers.prediction(self.expansion_(rows))
        if return_cov:
            return mean, self._covariances(rows)
        return (mean, answers.decision(self._deviations(rows))) if return_std else mean

    @through_host
    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Targets drawn from the posterior: weights and noise.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples_X, n_features)
            Rows.
        n_samples : int, default 1
            How many draws.
        random_state : int, RandomState or None, default 0
            What draws.

        Returns
        -------
        y : ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
            Each draw is one function at all rows, and noise at each.
        """
        check_integer("n_samples", n_samples)
        rows, rng = self._validated(X), check_random_state(random_state)
        means, noise = self.expansion_(rows), np.reshape(self.noise_variance_, -1)
        draws = np.empty((*means.shape, n_samples))
        for t, spread in enumerate(self._spreads(rows)):
            weights = rng.standard_normal((spread.shape[1], n_samples))
            errors = np.sqrt(noise[t]) * rng.standard_normal((len(spread), n_samples))
            draws[:, t] = means[:, [t]] + spread @ weights + errors
        return draws[:, 0] if self._one_dimensional else draws

    def _spreads(self, X: Any) -> list[Array]:
        """Phi'R of each target, (n_rows, M): its square sum is the variance by the weights."""
        atoms = self.expansion_.atoms
        values = blocks.evaluate(atoms.functions, X, max(len(atoms), 1))
        return [values @ root[1:] + root[0] for root in self._roots]

    def _deviations(self, X: Any) -> Array:
        """Standard deviation of the noise and of the weights, (n_rows, n_targets) (T 22)."""
        noise = np.reshape(self.noise_variance_, -1)
        variances = np.empty((X.shape[0], len(noise)))
        for rows in blocks.row_blocks(X.shape[0], 24.0 * (1 + len(self.expansion_.atoms))):
            spreads = self._spreads(X[rows])
            variances[rows] = np.column_stack([(spread**2).sum(axis=1) for spread in spreads])
        return np.asarray(np.sqrt(noise + variances))

    def _covariances(self, X: Any) -> Array:
        """sigma^2 I + phi'Sigma phi of all rows, in the form of the targets."""
        noise = np.reshape(self.noise_variance_, -1)
        eye = np.eye(X.shape[0])
        found = [s * eye + V @ V.T for s, V in zip(noise, self._spreads(X), strict=True)]
        return found[0] if self._one_dimensional else np.stack(found, axis=2)
