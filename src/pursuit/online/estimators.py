"""Regression and classification from one row after another.

The algorithm, with its mathematics and papers, is in ``tracker.py``; here are the estimators.

Constant. With an intercept the process is b + g(x): targets are measured from the mean of the first
rows, and the kernel has a constant v added, `BROAD` times its mean on the diagonal, for what that
mean leaves and for drift. Then f(x) = sum_j a_j (k(x, z_j) + v) + that mean, an expansion with the
constant v sum_j a_j.

Classes. Targets are +1 and -1, one column a class (one for two classes), and the outputs decide.
The temperature of the probabilities is fitted on the decision values of the last `RECENT` rows as
they were *before* the row was learned from.

Blocks. Kernel values of `BLOCK` rows with the points and with each other are computed at once, so
that a row costs operations of size m alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin

from pursuit._objects import in_double
from pursuit._typing import Array
from pursuit._validation import (
    Samples,
    check_choice,
    check_integer,
    check_real,
    class_codes,
)
from pursuit.base.docstrings import with_entries
from pursuit.base.estimators import ExpansionClassifier, ExpansionEstimator, ExpansionRegressor
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.probabilities import fit_temperature
from pursuit.kernels import Precomputed, check_values
from pursuit.online.tracker import fresh

__all__ = ["OnlineKernelClassifier", "OnlineKernelRegressor"]

# Rows whose kernel values are computed at once.
BLOCK = 256
# Variance of the constant, over the mean of the kernel's diagonal.
BROAD = 100.0
# Rows behind the temperature.
RECENT = 1_000

ENTRIES = {
    "n_components": """
n_components : int, default=100
    Maximum number of vectors.""",
    "alpha": """
alpha : float, default=0.1
    Variance of the noise over that of the function where the kernel is 1; the ridge of kernel ridge
    regression.""",
    "forgetting": """
forgetting : float, default=1.0
    What a row is worth after the next one, in (0, 1]: 0.999 forgets two thirds in a thousand rows.
    1.0: nothing is forgotten.""",
    "tol": """
tol : float, default=1e-6
    A row becomes a vector where more than this share of its kernel function's squared length lies
    outside of what the vectors span.""",
    "fit_intercept": """
fit_intercept : bool, default=True
    Whether there is a constant.""",
    "fitted": """
support_vectors_ : {ndarray, CSR matrix} of shape (n_vectors, n_features)
    The vectors now.
dual_coef_ : ndarray of shape (n_outputs, n_vectors)
    Their coefficients.
intercept_ : ndarray of shape (n_outputs,)
    Constants.
n_components_ : int
    Number of vectors now.
n_samples_seen_ : int
    Rows of positive weight so far.
kernel_ : Kernel
    The kernel, its numbers taken from the rows of the first call.
expansion_ : KernelExpansion
    The function now, callable without checks.
tracker_ : Tracker
    The posterior.""",
}


@constructor
class _Online(ExpansionEstimator, KernelParameters):
    """What both estimators share: parameters, and the way from rows to the tracker."""

    _takes_objects = True

    _entries: ClassVar[dict[str, str]] = ENTRIES

    n_components: Any = positional(100)
    alpha: float = 0.1
    forgetting: float = 1.0
    tol: float = 1e-6
    fit_intercept: bool = True

    def __sklearn_tags__(self) -> Any:
        """Arrays of other libraries are not for steps of one row each."""
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_integer("n_components", self.n_components)
        check_real("alpha", self.alpha, above=True)
        check_real("forgetting", self.forgetting, 0, above=True)
        if self.forgetting > 1:
            raise ValueError(f"forgetting must be at most 1, got {self.forgetting!r}")
        check_real("tol", self.tol)
        check_choice("fit_intercept", self.fit_intercept, (True, False))

    def _forget_rows(self) -> None:
        """Start anew."""
        if hasattr(self, "tracker_"):
            del self.tracker_

    def _learn(self, samples: Samples) -> Self:
        """Take checked rows, one after another."""
        samples = samples.take(np.flatnonzero(samples.weights > 0))
        if not hasattr(self, "tracker_"):
            self._begin(samples)
        X = in_double(samples.X)
        for start in range(0, X.shape[0], BLOCK):
            part = slice(start, start + BLOCK)
            self._take_block(X[part], samples.Y[part] - self._offset, samples.weights[part])
        self.n_samples_seen_ += X.shape[0]
        a = self.tracker_.coefficients
        constant = self._constant * a.sum(axis=0) + self._offset
        atoms = Atoms(self._kernel, self._points)
        self._store_expansion(KernelExpansion(atoms, np.ascontiguousarray(a.T), constant))
        return self

    def _begin(self, samples: Samples) -> None:
        """What the first rows fix: the kernel's numbers and the constant."""
        kernel = self._resolved_kernel(samples)
        if isinstance(kernel, Precomputed):
            raise ValueError("kernel: 'precomputed' has no meaning for rows that come and go")
        self._kernel, self._points = kernel, in_double(samples.X[:0])
        self._constant = 0.0
        if self.fit_intercept:
            own = kernel.diagonal(samples.X)
            check_values(kernel, own[:, None])
            self._constant = BROAD * max(float(own.mean()), 1e-300)
        self._offset = self._first_offset(samples)
        self.tracker_ = fresh(
            int(self.n_components),
            samples.Y.shape[1],
            noise=float(self.alpha),
            forgetting=float(self.forgetting),
            tol=float(self.tol),
            constant=self._constant,
        )
        self.n_samples_seen_ = 0

    def _first_offset(self, samples: Samples) -> Array:
        """What targets are measured from."""
        return np.zeros(samples.Y.shape[1])

    def _take_block(self, X: Any, Y: Array, weights: Array) -> None:
        """Take some rows, whose kernel values fit in memory many times."""
        pool = _stacked(self._points, X)
        m = pool.shape[0] - X.shape[0]
        values = self._kernel(X, pool) + self._constant
        own = self._kernel.diagonal(X) + self._constant
        check_values(self._kernel, values)
        check_values(self._kernel, own[:, None])
        points = np.arange(m)
        for t in range(X.shape[0]):
            row = (values[t, points], float(own[t]), Y[t], float(weights[t]))
            found = self.tracker_.absorb(*row)
            self._note(found.predicted, Y[t], float(weights[t]))
            if found.joined:
                points = np.append(points, m + t)
            if found.removed is not None:
                points = np.delete(points, found.removed)
        self._points = pool[points]

    def _note(self, predicted: Array, y: Array, weight: float) -> None:
        """Keep of a row what was predicted before it was learned from, if that is wanted."""


def _stacked(points: Any, X: Any) -> Any:
    """Points and rows in one table, CSR if either is."""
    if sparse.issparse(points) or sparse.issparse(X):
        return sparse.vstack([points, X], format="csr")
    return np.vstack([points, X])


@with_entries
@constructor
class OnlineKernelRegressor(RegressorMixin, _Online, ExpansionRegressor):
    """Regression from one row after another, with a budget of vectors and forgetting.

    Each row updates the posterior of a Gaussian process at `n_components` points at most: rows that
    the points do not represent join them, and the point whose loss changes least goes. Memory and
    time a row are constant. As long as all rows are points and nothing is forgotten, the model is
    kernel ridge regression.

    Parameters
    ----------
    {n_components}
    kernel : str, Kernel or callable, default="rbf"
        As in `sklearn.svm.SVC`; it must be positive definite.
    {gamma}
    {degree}
    {coef0}
    {kernel_params}
    {alpha}
    {forgetting}
    {tol}
    {fit_intercept}

    Attributes
    ----------
    {fitted}
    noise_variance_ : float or ndarray of shape (n_targets,)
        Variance of the noise; a number for a 1-d target.
    {n_features_in_}
    {feature_names_in_}

    See Also
    --------
    OnlineKernelClassifier : The same for classes.
    KernelMatchingPursuitRegressor : Its ``partial_fit`` forgets nothing, and keeps its candidates.

    References
    ----------
    S. Van Vaerenbergh, M. Lazaro-Gredilla and I. Santamaria, "Kernel recursive least-squares
    tracker for time-varying regression", IEEE Transactions on Neural Networks and Learning Systems
    23, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import OnlineKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 1))
    >>> model = OnlineKernelRegressor(20, gamma=1.0, forgetting=0.995)
    >>> model = model.partial_fit(X[:1000], np.sin(X[:1000, 0]))
    >>> model = model.partial_fit(X[1000:], np.cos(X[1000:, 0]))  # the function has changed
    >>> model.n_components_ <= 20, bool(model.score(X, np.cos(X[:, 0])) > 0.99)
    (True, True)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start anew, and take these rows in their order.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : OnlineKernelRegressor
            Fitted.
        """
        self._forget_rows()
        return self.partial_fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take more rows in their order.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows; those of the first call fix ``gamma="scale"`` and where targets are measured from.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : OnlineKernelRegressor
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        first = not hasattr(self, "tracker_")
        samples = self._read(X, y, sample_weight, first=first)
        before = samples.Y.shape[1] if first else self.tracker_.mean.shape[1]
        if samples.Y.shape[1] != before:
            raise ValueError(f"y has {samples.Y.shape[1]} targets, but had {before} before")
        return self._learn(samples)

    def _first_offset(self, samples: Samples) -> Array:
        """The mean of the first rows."""
        if not self.fit_intercept:
            return super()._first_offset(samples)
        return np.asarray(np.average(samples.Y, axis=0, weights=samples.weights))

    @property
    def noise_variance_(self) -> Any:
        """Variance of the noise of each target."""
        variance = self.tracker_.scale * self.tracker_.noise
        return float(variance[0]) if self._one_dimensional else variance

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of a target at each row, too: that of the
            noise and of the function together.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the form of the training targets.
        std : ndarray of the same shape
            With ``return_std=True``.
        """
        rows = self._validated(X)
        answers = self._answers()
        mean = answers.prediction(self.expansion_(rows))
        if not return_std:
            return mean
        rows, tracker = rows.astype(np.float64), self.tracker_
        values = self._kernel(rows, self._points) + self._constant
        spread = tracker.variances(values, self._kernel.diagonal(rows) + self._constant)
        variances = np.outer(spread + tracker.noise, tracker.scale)
        return mean, answers.decision(np.sqrt(variances))


@with_entries
@constructor
class OnlineKernelClassifier(ClassifierMixin, _Online, ExpansionClassifier):
    """Classification from one row after another, with a budget of vectors and forgetting.

    `OnlineKernelRegressor` on targets +1 and -1: the largest output decides.

    Parameters
    ----------
    {n_components}
    kernel : str, Kernel or callable, default="rbf"
        As in `sklearn.svm.SVC`; it must be positive definite.
    {gamma}
    {degree}
    {coef0}
    {kernel_params}
    {alpha}
    {forgetting}
    {tol}
    {fit_intercept}
    class_weight : mapping or None, default=None
        Weights of the classes, multiplied with the sample weights.

    Attributes
    ----------
    {classes_}
    {fitted}
    temperature_ : float
        Temperature of the softmax (sigmoid for two classes) of the probabilities: that of the
        highest likelihood on the last 1000 rows, as they were decided before they were learned
        from.
    {n_features_in_}
    {feature_names_in_}

    See Also
    --------
    OnlineKernelRegressor : The same for numbers, with its references.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from pursuit import OnlineKernelClassifier
    >>> X, y = make_moons(600, noise=0.2, random_state=0)
    >>> model = OnlineKernelClassifier(15, gamma=2.0)
    >>> for start in range(0, 600, 100):
    ...     rows = slice(start, start + 100)
    ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1])
    >>> model.n_components_, bool(model.score(X, y) > 0.95)
    (15, True)
    """

    class_weight: Mapping[Any, float] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start anew, and take these rows in their order.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : OnlineKernelClassifier
            Fitted.
        """
        self._forget_rows()
        self._check_parameters()
        return self._start(self._read(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take more rows in their order.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows; those of the first call fix ``gamma="scale"``.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels; needed at the first call.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : OnlineKernelClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        first = not hasattr(self, "tracker_")
        samples = self._read_announced(X, y, classes, sample_weight, first=first)
        return self._start(samples) if first else self._learn(samples)

    def _check_parameters(self) -> None:
        """Class weights that need all rows are refused."""
        super()._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows; give a mapping")

    def _start(self, samples: Samples) -> Self:
        """Take the first rows."""
        self._recent: Array = np.empty((0, samples.Y.shape[1] + 2))
        self._noted: list[Array] = []
        return self._learn(samples)

    def _learn(self, samples: Samples) -> Self:
        """Take checked rows, and fit the temperature on the last ones."""
        super()._learn(samples)
        self._recent = np.vstack([self._recent, *self._noted])[-RECENT:]
        self._noted = []
        values, codes, weights = self._recent[:, :-2], self._recent[:, -2], self._recent[:, -1]
        self.temperature_ = fit_temperature(values, codes.astype(int), weights)
        return self

    def _note(self, predicted: Array, y: Array, weight: float) -> None:
        """Note the decision value of a row, its class and its weight."""
        code = float(class_codes(y[None])[0])
        self._noted.append(np.concatenate([predicted, [code, weight]])[None])
        del self._noted[:-RECENT]
