"""Convex networks: classes from a combination of given functions under any convex loss.

Paper: K. Kovacs and A. Kocsor, "Classification using a sparse combination of basis functions"
(2006); the equation numbers are theirs.

Problem (eq. 8), for each class against the others:

    min over alpha  sum_i w_i L(y_i f(x_i)) + lambda alpha'A alpha,    f = sum_j alpha_j f_j,
    alpha_j in [a_j, b_j],

with L convex, A symmetric and positive definite, and the functions f_j(z) = y_j K(z, x_j) (eq. 20)
or others. The losses of boosting and of logistic regression are members of this family, and so is
the support vector machine without a bias (eq. 14 and 15, `ConvexNetworkClassifier.as_svm`):

    L(m) = max(0, 1 - m) made smooth,   A = Y K Y,   lambda = 1 / (2C),   alpha_j in [0, C].

============  ==================  ========================================================
symbol        name in code        shape and meaning
============  ==================  ========================================================
f_j           ``atoms``           k functions, without the sign y_j
y_j           ``signs``           (k, T)  for each output
lambda        ``alpha``
A             ``penalty``         (k, k)  of the signed functions
[a, b]        ``bounds``          of the signed functions
beta_j        ``dual_coef_``      (T, k)  y_j alpha_j, coefficients of K(., x_j)
============  ==================  ========================================================

Steps.

1. The functions: of rows that are equal there is one. So a row of weight 2 and the row twice give
   one model; y_j is the class of the larger weight.
2. q of the k functions, if fewer are asked for (section 3; ``basis_selection.py``).
3. In beta = y alpha the functions are the same for all classes. The box of beta_j is [a_j, b_j], or
   [-b_j, -a_j] where y_j = -1, and A becomes Y A Y: the identity stays what it is, and Y K Y
   becomes K. The constrained Gauss-Seidel method (``coordinate_descent.py``) finds the minimum.
4. Functions whose coefficients are all zero are left out of the model (section 3).

The SVM's box is [0, C w_j] for a row of weight w_j, and for rows that are equal the sum of theirs,
with signs: from -C times the weight of the rows of the other class to C times that of the class.

Where we differ: the text prints the smooth hinge with a wrong sign and -alpha >= Ce in eq. 12,
where -alpha >= -Ce is meant. Steps by curvature and joint steps beside the constant step of
definition 2.

Cost. n q kernel values, and see ``coordinate_descent.py``. Where the n x q matrix does not fit in
the working memory it is computed anew, block by block, for each sweep and each joint step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from pursuit._typing import Array
from pursuit._validation import Samples, check_choice, check_integer, check_real
from pursuit._warnings import warn
from pursuit.base.arrays import following
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.estimators import ExpansionClassifier
from pursuit.base.parameters import KernelParameters, constructor
from pursuit.convex_network.basis_selection import (
    GREEDY_RULES,
    INTEGRAL_RULES,
    chosen_functions,
    n_chosen,
    random_draws,
)
from pursuit.dictionary import Dictionary, resolve_dictionary
from pursuit.expansion.basis_functions import Atoms, AtomSet
from pursuit.expansion.design_matrix import DesignMatrix
from pursuit.expansion.expansion import KernelExpansion
from pursuit.geometry.unique_rows import equal_rows
from pursuit.kernels import Precomputed, check_square, is_precomputed
from pursuit.linalg import blocks
from pursuit.linalg.factor import cholesky
from pursuit.losses import Loss, SmoothHinge, resolve_loss
from pursuit.optimize.coordinate_descent import Point, Problem, Solution, solve

__all__ = ["ConvexNetworkClassifier"]

# An eigenvalue of A above minus this share of its largest entry is zero.
INDEFINITE = 1e-8
# Reasons for stopping, the one that matters most first.
REASONS = ("interrupt", "callback", "diverged", "max_iter", "rounding", "tol")


class Network(NamedTuple):
    """All functions, and what they are fitted to.

    Attributes
    ----------
    samples : Samples
        Rows of positive weight, targets, weights.
    rows : ndarray of int of shape (n_rows,)
        Their places in the caller's X.
    dictionary : Dictionary
        The k functions.
    masses : ndarray of shape (2, k, T)
        For each function and output the weight of its rows of the class, and of those of the
        others; zero for a function that belongs to no row.
    """

    samples: Samples
    rows: Array
    dictionary: Dictionary
    masses: Array

    @property
    def signs(self) -> Array:
        """y_j for each output, (k, T)."""
        return np.where(self.masses[0] >= self.masses[1], 1.0, -1.0)


class Basis(NamedTuple):
    """Some of the functions, ready for the solver.

    Attributes
    ----------
    chosen : ndarray of int of shape (q,)
        Their places among all.
    atoms : AtomSet
        The functions.
    matrix : DesignMatrix
        Their values on the rows.
    penalty : ndarray of shape (q, q) or None
        A of the signed functions where it was given, K for ``"kernel"``, None for the identity.
    """

    chosen: Array
    atoms: AtomSet
    matrix: DesignMatrix
    penalty: Array | None


@dataclass(frozen=True)
class NetworkFit:
    """The chosen functions and the solution of each output."""

    basis: Basis
    solutions: list[Solution]

    @property
    def objective(self) -> float:
        """F, summed over the outputs."""
        return float(sum(solution.objectives.min() for solution in self.solutions))

    @property
    def coefficients(self) -> Array:
        """Coefficients beta, (T, q)."""
        return np.array([solution.beta for solution in self.solutions])


@constructor
class ConvexNetworkClassifier(
    ClassifierMixin, CallbackSupport, ExpansionClassifier, KernelParameters
):
    """Combination of kernel functions, or others, that minimises a convex loss and a penalty.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="cosine_polynomial"
        A name of `pursuit.kernels` or a value from there, a callable
        ``(X, Z, **kernel_params) -> matrix``, or ``"precomputed"``.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
        Coefficient of the rbf, laplacian, polynomial, sigmoid and chi2 kernels, as in ``SVC``.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default=3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, default=1
        Constant of the polynomial, sigmoid and cosine polynomial kernels.
    kernel_params : mapping, optional
        Keyword arguments of a callable kernel.
    dictionary : optional
        The functions; None: the kernel on the training rows. A table of centres, a kernel,
        `OrientedGaussians`, a mapping of names to functions of your own, or a list of these.
    loss : str, Loss or object, default="log_loss"
        A convex loss for classes: ``"log_loss"``, ``"exponential"``, ``"logit_boost"``,
        ``"smooth_hinge"``, ``"squared_hinge"``, ``"squared_error"``, a value of `pursuit.losses` or
        an object with the methods ``value``, ``gradient`` and ``curvature`` and ``convex = True``.
    alpha : float, default=1.0
        lambda, the weight of the penalty beside the sum of the losses; positive.
    penalty : {"identity", "kernel"} or array, default="identity"
        A: ``"kernel"`` is the kernel between the centres; a matrix of shape (n_functions,
        n_functions) belongs to the functions y_j f_j, symmetric and positive definite.
    bounds : None, "dual", pair, or array of shape (n_functions, 2), default=None
        Lower and upper bound of all coefficients alpha_j of the functions y_j f_j, or of each;
        None in a pair leaves that side free. ``"dual"``: between 0 and the weight of the row over
        2 `alpha`, as the dual of a support vector machine has it.
    selection : {None, "random", "gram_schmidt", "correlation", "cosine", "objective"}, default=None
        How the functions are chosen. None: all are used, or with `n_components` those that
        ``"gram_schmidt"`` chooses. ``"correlation"`` is CORR of the paper's text, for functions
        less their means; ``"cosine"`` is CORR as its pseudo-code is printed, with the means.
    inner_product : {"samples", "integral"}, default="samples"
        What ``"gram_schmidt"`` and ``"cosine"`` compare functions by: the sum of their products
        over the training rows (eq. 18), or the integral, which Gaussian functions of one width have
        in closed form: ``kernel="rbf"`` or `pursuit.kernels.Mahalanobis`.
    n_components : int or float, optional
        The number of functions, or a fraction in (0, 1] of them; None: all.
    n_draws : int, default=5
        Draws of ``selection="random"``, of which that of the lowest objective is kept.
    step : "newton" or float, default="newton"
        ``"newton"``: steps by curvature, and joint steps; a number is the constant step of
        definition 2, with which the objective may rise.
    max_iter : int, default=1000
        Maximum number of sweeps and joint steps for each output.
    tol : float, default=1e-8
        The fit ends where the projected gradient is below this share of what its terms add up to
        at f = 0.
    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes, by which those of their rows are multiplied.
    random_state : int, RandomState or None, default=None
        For ``selection="random"``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    support_ : ndarray of int of shape (n_vectors,)
        Rows behind the functions of the model, in order of choice; absent if one has none.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_vectors, n_features)
        Their centres; absent for a precomputed kernel and for functions without one.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        y_j alpha_j, the coefficients of the kernel functions; one row for two classes.
    intercept_ : ndarray of shape (n_outputs,)
        Zeros: there is no constant but among the functions.
    n_components_ : int
        Number of functions whose coefficients are not all zero.
    loss_ : Loss
        The loss.
    objective_ : float
        The objective of eq. 8, summed over the outputs.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start, and after each sweep and each joint step; an output that has
        ended counts with its last.
    kkt_residual_ : float
        The relative projected gradient, the largest of any output.
    n_iter_ : int
        Sweeps and joint steps, the most of any output.
    stop_reason_ : {"tol", "rounding", "max_iter", "diverged", "callback", "interrupt"}
        Why the fit ended; ``"tol"`` where it did so for all outputs. ``"rounding"``: the objective
        cannot be lowered in floating point numbers.
    temperature_ : float
        Temperature of the softmax (sigmoid for two classes) behind ``predict_proba``: the loss's
        own for two classes under log-loss and LogitBoost, else fitted to the training rows.
    kernel_ : Kernel or None
        The kernel with its numbers resolved; None where there are several or none.
    expansion_ : KernelExpansion
        The fitted function, callable without checks.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    Notes
    -----
    Two classes are told apart by the sign of f(x) - gamma (eq. 2 and 16) with gamma = 0. For
    another gamma see the second example: the second class is where f(x) >= gamma.

    Several classes have a network each against the rest. `sklearn.multiclass.OutputCodeClassifier`
    takes this class for output codes.

    References
    ----------
    K. Kovacs and A. Kocsor, "Classification using a sparse combination of basis functions", 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import ConvexNetworkClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConvexNetworkClassifier(selection="correlation", n_components=0.1).fit(X, y)
    >>> model.n_components_, bool(model.score(X, y) > 0.95)
    (15, True)

    >>> from sklearn.model_selection import FixedThresholdClassifier
    >>> X, y = X[y > 0], y[y > 0]
    >>> shifted = FixedThresholdClassifier(
    ...     ConvexNetworkClassifier(), threshold=0.5, response_method="decision_function"
    ... ).fit(X, y)
    >>> f = shifted.estimator_.decision_function(X)
    >>> bool((shifted.predict(X) == shifted.classes_[(f >= 0.5).astype(int)]).all())
    True
    """

    _takes_objects = True

    kernel: Any = "cosine_polynomial"
    dictionary: Any = None
    loss: Any = "log_loss"
    alpha: float = 1.0
    penalty: Any = "identity"
    bounds: Any = None
    selection: str | None = None
    inner_product: str = "samples"
    n_components: Any = None
    n_draws: int = 5
    step: float | str = "newton"
    max_iter: int = 1000
    tol: float = 1e-8
    class_weight: Mapping[Any, float] | str | None = None
    random_state: Any = None

    @classmethod
    def as_svm(cls, C: float = 1.0, *, beta: float = 1000.0, **parameters: Any) -> Self:
        """The support vector machine without a bias, as a convex network (eq. 14 and 15).

        Parameters
        ----------
        C : float, default 1.0
            Price of the hinge loss of a row of weight 1, as in ``SVC``.
        beta : float, default 1000.0
            Sharpness of the smooth hinge, whose loss is above the hinge by log(2) / beta at most.
            The larger, the nearer to the machine, and the more steps it takes.
        **parameters
            Further parameters of this class, such as the kernel.

        Returns
        -------
        network : ConvexNetworkClassifier
            Not yet fitted.

        Raises
        ------
        ValueError
            If `C` or `beta` is not positive.

        Examples
        --------
        >>> from pursuit import ConvexNetworkClassifier
        >>> svm = ConvexNetworkClassifier.as_svm(10.0, kernel="rbf")
        >>> svm.alpha, svm.penalty, svm.bounds, svm.loss
        (0.05, 'kernel', 'dual', SmoothHinge(beta=1000.0))
        """
        check_real("C", C, above=True)
        loss, alpha = SmoothHinge(float(beta)), 1.0 / (2.0 * C)
        return cls(loss=loss, alpha=alpha, penalty="kernel", bounds="dual", **parameters)

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose functions, if fewer are asked for, and minimise the objective.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows; kernel values of shape (n_samples, n_samples) if precomputed.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows' losses. A weight of 2 counts as the row twice, 0 as the row
            removed.

        Returns
        -------
        self : ConvexNetworkClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names the parameter or row.
        """
        network = self._network(X, y, sample_weight)
        with self._watching(X, y, sample_weight) as watcher:
            self._store(network, self._chosen_fit(network, watcher))
            self._warn_unfinished()
        return self

    def path(self, X: Any, y: Any, alphas: Any, sample_weight: Any = None) -> list[Self]:
        """Fitted networks for several `alpha`, each started at the last one's coefficients.

        The functions are chosen once, with the `alpha` of this estimator; the values are then gone
        through from the largest to the smallest.

        Parameters
        ----------
        X, y : array-like
            See `fit`.
        alphas : array-like of shape (n_alphas,)
            Positive numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            See `fit`.

        Returns
        -------
        models : list of ConvexNetworkClassifier
            One a value, in the order of `alphas`; this estimator is fitted, too.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names the parameter or row.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from pursuit import ConvexNetworkClassifier
        >>> models = ConvexNetworkClassifier().path(*load_iris(return_X_y=True), [1.0, 100.0])
        >>> [model.alpha for model in models]
        [1.0, 100.0]
        """
        values = [float(alpha) for alpha in np.ravel(alphas)]
        for alpha in values:
            check_real("alphas", alpha, above=True)
        network = self._network(X, y, sample_weight)
        fit = self._chosen_fit(network)
        self._store(network, fit)
        self._warn_unfinished()
        models: dict[int, Self] = {}
        for place in sorted(range(len(values)), key=lambda place: -values[place]):
            model = clone(self).set_params(alpha=values[place])
            for name in ("classes_", "loss_", "n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    setattr(model, name, getattr(self, name))
            fit = model._solved(network, fit.basis, [s.beta for s in fit.solutions])
            model._store(network, fit)
            model._warn_unfinished()
            models[place] = model
        return [models[place] for place in range(len(values))]

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_real("alpha", self.alpha, above=True)
        if isinstance(self.penalty, str):
            check_choice("penalty", self.penalty, ("identity", "kernel"))
        if isinstance(self.bounds, str):
            check_choice("bounds", self.bounds, ("dual",))
        check_choice("selection", self.selection, (None, "random", *GREEDY_RULES))
        check_choice("inner_product", self.inner_product, ("samples", "integral"))
        if self.inner_product == "integral" and self.selection not in INTEGRAL_RULES:
            raise ValueError(
                f"inner_product='integral' belongs to selection {list(INTEGRAL_RULES)}, "
                f"got selection={self.selection!r}"
            )
        if self.selection is not None and self.n_components is None:
            raise ValueError(f"selection={self.selection!r} needs n_components: how many functions")
        check_integer("n_draws", self.n_draws)
        if isinstance(self.step, str):
            check_choice("step", self.step, ("newton",))
        else:
            check_real("step", self.step, above=True)
        check_integer("max_iter", self.max_iter)
        check_real("tol", self.tol, above=True)

    def _resolved_loss(self, n_outputs: int) -> Loss:
        """The loss, convex and of separate outputs."""
        loss = resolve_loss(self.loss, classifier=True, n_outputs=n_outputs, one_basis=False)
        if not loss.convex:
            raise ValueError(f"loss={self.loss!r} is not convex, which a convex network needs")
        return loss

    def _network(self, X: Any, y: Any, sample_weight: Any) -> Network:
        """Step 1."""
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        self.loss_ = self._resolved_loss(samples.Y.shape[1])
        rows = np.flatnonzero(samples.weights > 0)
        kernel = self._resolved_kernel(samples.take(rows))
        if is_precomputed(self.kernel):
            check_square(samples.X)
        square = isinstance(kernel, Precomputed)
        used = samples if len(rows) == samples.X.shape[0] else samples.take(rows)
        first, copies = equal_rows(used.X[:, rows].T if square else used.X)
        dictionary = resolve_dictionary(
            self.dictionary,
            kernel,
            samples.X,
            rows[first],
            training=rows,
            weights=samples.weights,
        )
        masses = np.zeros((2, len(first), used.Y.shape[1]))
        np.add.at(masses[0], copies, used.weights[:, None] * (used.Y > 0))
        np.add.at(masses[1], copies, used.weights[:, None] * (used.Y < 0))
        return Network(used, rows, dictionary, masses_of_functions(masses, rows[first], dictionary))

    def _chosen_fit(self, network: Network, watcher: Watcher | None = None) -> NetworkFit:
        """Steps 2 and 3."""
        n_functions = len(network.dictionary)
        if self.n_components is None:
            basis = self._basis(network, np.arange(n_functions))
            return self._solved(network, basis, watcher=watcher)
        q = n_chosen(self.n_components, n_functions)
        if not isinstance(self.n_components, float | np.floating) and q < self.n_components:
            warn(
                f"n_components={self.n_components}, but there are {n_functions} functions",
                ConvergenceWarning,
            )
        if self.selection == "random":
            rng = check_random_state(self.random_state)
            fits: list[NetworkFit] = []
            for chosen in random_draws(rng, n_functions, q, self.n_draws):
                basis = self._basis(network, chosen)
                fits.append(self._solved(network, basis, watcher=watcher))
                if watcher is not None and watcher.reason:
                    break
            return min(fits, key=lambda fit: fit.objective)
        chosen = chosen_functions(
            self.selection or "gram_schmidt",
            network.dictionary,
            network.samples,
            q,
            self.loss_,
            float(self.alpha),
            integral=self.inner_product == "integral",
        )
        return self._solved(network, self._basis(network, chosen), watcher=watcher)

    def _basis(self, network: Network, chosen: Array) -> Basis:
        """Values and penalty of some functions."""
        atoms = network.dictionary.atoms
        if not np.array_equal(chosen, np.arange(len(atoms))):
            atoms = atoms.take(chosen)
        penalty = self._penalty(network, atoms, chosen)
        return Basis(chosen, atoms, DesignMatrix(atoms, network.samples.X), penalty)

    def _penalty(self, network: Network, atoms: AtomSet, chosen: Array) -> Array | None:
        """A for some functions."""
        if isinstance(self.penalty, str):
            return None if self.penalty == "identity" else kernel_penalty(network, atoms, chosen)
        A = given_penalty(self.penalty, len(network.dictionary))
        return np.asarray(A[np.ix_(chosen, chosen)])

    def _solved(
        self,
        network: Network,
        basis: Basis,
        starts: Sequence[Array | None] | None = None,
        watcher: Watcher | None = None,
    ) -> NetworkFit:
        """Step 3: the solution of each output."""
        look = None if watcher is None else _Look(watcher, network, basis)
        samples, signs = network.samples, network.signs[basis.chosen]
        lower, upper = self._boxes(network)
        rate = None if isinstance(self.step, str) else float(self.step)

        def solution(t: int) -> Solution:
            penalty = basis.penalty
            if penalty is not None and not isinstance(self.penalty, str):
                penalty = penalty * np.outer(signs[:, t], signs[:, t])
            problem = Problem(
                self.loss_,
                samples.Y[:, t : t + 1],
                samples.weights,
                basis.matrix,
                float(self.alpha),
                penalty,
                lower[basis.chosen, t],
                upper[basis.chosen, t],
            )
            start, tol = None if starts is None else starts[t], float(self.tol)
            watch = None if look is None else partial(look, t)
            return solve(problem, start, rate=rate, max_iter=self.max_iter, tol=tol, watch=watch)

        return NetworkFit(basis, blocks.in_parallel(solution, range(samples.Y.shape[1])))

    def _boxes(self, network: Network) -> tuple[Array, Array]:
        """Bounds of beta for all functions and outputs, both (k, T)."""
        signs = network.signs
        if isinstance(self.bounds, str):
            if network.dictionary.rows is None or (network.dictionary.rows < 0).any():
                raise ValueError("bounds='dual' needs functions that belong to training rows")
            price = 1.0 / (2.0 * self.alpha)
            return -price * network.masses[1], price * network.masses[0]
        bounds = given_bounds(self.bounds, len(signs))
        lower, upper = bounds[:, :1], bounds[:, 1:]
        return np.where(signs > 0, lower, -upper), np.where(signs > 0, upper, -lower)

    def _store(self, network: Network, fit: NetworkFit) -> None:
        """Step 4 and the fitted attributes."""
        coefficients = fit.coefficients
        used = np.flatnonzero((coefficients != 0.0).any(axis=0))
        atoms, rows = fit.basis.atoms, network.dictionary.rows
        if len(used) < len(atoms):
            atoms = atoms.take(used)
        places = None if rows is None else rows[fit.basis.chosen[used]]
        if places is not None and (places < 0).any():
            places = None
        expansion = KernelExpansion(
            atoms, np.ascontiguousarray(coefficients[:, used]), np.zeros(len(coefficients))
        )
        self._store_expansion(expansion, places)
        temperature = self.loss_.inverse_temperature
        if temperature is not None and len(coefficients) == 1:
            self.temperature_ = 1.0 / temperature
        else:
            self._fit_temperature(network.samples)
        self._store_progress(fit)

    def _store_progress(self, fit: NetworkFit) -> None:
        """What the solver reports."""
        paths = [solution.objectives for solution in fit.solutions]
        self.n_iter_ = max(solution.n_iter for solution in fit.solutions)
        self.objective_path_ = np.sum(
            [np.pad(path, (0, self.n_iter_ + 1 - len(path)), "edge") for path in paths], axis=0
        )
        self.objective_ = fit.objective
        self.kkt_residual_ = max(solution.residual for solution in fit.solutions)
        reasons = [solution.reason for solution in fit.solutions]
        self.stop_reason_ = next(reason for reason in REASONS if reason in reasons)

    def _warn_unfinished(self) -> None:
        """Say that the solver ended early, where nobody asked it to."""
        why = {
            "max_iter": f"max_iter={self.max_iter} sweeps and joint steps ended before it; ",
            "diverged": f"step={self.step} is too long; ",
            "rounding": "the objective cannot be lowered in floating point numbers; ",
        }
        if self.stop_reason_ in why:
            warn(
                f"{why[self.stop_reason_]}the relative projected gradient is "
                f"{self.kkt_residual_:.1e}, tol={self.tol:g}",
                ConvergenceWarning,
            )


class _Look:
    """Tells of the steps of all outputs; there is a model once each of them has taken one."""

    def __init__(self, watcher: Watcher, network: Network, basis: Basis) -> None:
        self.watcher, self.network, self.basis = watcher, network, basis
        self.found: dict[int, Solution] = {}

    def __call__(self, t: int, point: Point) -> str | None:
        """Tell of a step of output `t`."""
        path = np.array([point.objective] * 2)
        self.found[t] = Solution(point.beta.copy(), point.outputs, path, np.inf, 1, "max_iter")
        found = dict(self.found)
        if len(found) < self.network.samples.Y.shape[1]:
            return self.watcher(None)
        fit = NetworkFit(self.basis, [found[t] for t in sorted(found)])
        return self.watcher(lambda model: model._store(self.network, fit))


def masses_of_functions(masses: Array, rows: Array, dictionary: Dictionary) -> Array:
    """Weights of the classes behind each function, from those behind each distinct row."""
    if dictionary.rows is None:
        return np.zeros((2, len(dictionary), masses.shape[2]))
    own = dictionary.rows >= 0
    found = np.zeros((2, len(dictionary), masses.shape[2]))
    found[:, own] = masses[:, np.searchsorted(rows, dictionary.rows[own])]
    return found


def kernel_penalty(network: Network, atoms: AtomSet, chosen: Array) -> Array:
    """The kernel between the centres of some functions.

    Raises
    ------
    ValueError
        If the functions are not those of one kernel, the matrix does not fit in memory, or it is
        not positive semidefinite.
    """
    if not isinstance(atoms, Atoms):
        raise ValueError("penalty='kernel' needs the functions of one kernel")
    if not blocks.fits(8.0 * len(atoms) ** 2):
        raise ValueError(
            f"penalty='kernel' needs a matrix of {len(atoms)} x {len(atoms)} numbers, above "
            "scikit-learn's working_memory; choose fewer functions"
        )
    centres: Any = atoms.centres
    if isinstance(atoms.kernel, Precomputed) and network.dictionary.rows is not None:
        places = np.searchsorted(network.rows, network.dictionary.rows[chosen])
        centres = network.samples.X[places]
    values = np.asarray(blocks.evaluate(atoms.functions, centres, len(atoms)), dtype=np.float64)
    K = (values + values.T) / 2.0
    _check_definite(K, INDEFINITE, "penalty='kernel' needs a positive semidefinite kernel")
    return K


def given_penalty(penalty: Any, n_functions: int) -> Array:
    """A matrix A of the user, checked.

    Raises
    ------
    ValueError
        If it is not finite, symmetric and positive definite, or of another size.
    """
    A = np.asarray(penalty, dtype=np.float64)
    if A.shape != (n_functions, n_functions):
        raise ValueError(
            f"penalty has shape {A.shape}, but there are {n_functions} functions (equal rows have "
            "one)"
        )
    if not np.isfinite(A).all() or not np.allclose(A, A.T, rtol=1e-10, atol=0.0):
        raise ValueError("penalty must be a finite symmetric matrix")
    _check_definite(A, 0.0, "penalty must be positive definite")
    return A


def _check_definite(A: Array, shift: float, message: str) -> None:
    """Raise unless A, shifted by a share of its largest entry, has a Cholesky factor."""
    shifted = A + shift * float(np.abs(A).max(initial=0.0)) * np.eye(len(A))
    if len(cholesky(shifted)) < len(A):
        raise ValueError(message)


def given_bounds(bounds: Any, n_functions: int) -> Array:
    """Bounds of the user as an array of shape (n_functions, 2).

    Raises
    ------
    ValueError
        If they are of another shape, not numbers, or a lower one is above its upper one.
    """
    if bounds is None:
        bounds = (None, None)
    table = np.array(bounds, dtype=object)
    if table.shape not in ((2,), (n_functions, 2)):
        raise ValueError(
            "bounds must be None, 'dual', a pair or an array of shape "
            f"{(n_functions, 2)}, got shape {table.shape}"
        )
    table = np.broadcast_to(table, (n_functions, 2))
    missing = np.array([[bound is None for bound in pair] for pair in table])
    filled = np.where(missing, [-np.inf, np.inf], np.where(missing, 0.0, table)).astype(np.float64)
    wrong = np.flatnonzero(~(filled[:, 0] <= filled[:, 1]))
    if len(wrong) or (filled[:, 0] == np.inf).any() or (filled[:, 1] == -np.inf).any():
        place = int(wrong[0]) if len(wrong) else 0
        raise ValueError(f"bounds of function {place} are {filled[place].tolist()}: no interval")
    return filled
