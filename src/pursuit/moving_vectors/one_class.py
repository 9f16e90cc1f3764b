"""Outliers by a kernel function of few vectors that is at least 1 on the data."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from pursuit._typing import Array
from pursuit._validation import Samples, check_integer, check_real, check_weights, read_data
from pursuit.base.arrays import following, native
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.docstrings import with_entries
from pursuit.base.estimators import ExpansionEstimator
from pursuit.base.novelty import score_quantile
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.predictor import Answers, Novelty
from pursuit.kernels import is_precomputed
from pursuit.losses import SquaredHinge
from pursuit.moving_vectors.setting import Setting, setting_of
from pursuit.optimize.kernel_blocks import Place, Table
from pursuit.optimize.moving import Plan, most_steps, move, origin, precision
from pursuit.optimize.variable_projection import Descent, Free, Problem, Step

__all__ = ["SparseOneClass"]


@with_entries
@constructor
class SparseOneClass(OutlierMixin, CallbackSupport, KernelParameters, ExpansionEstimator):
    """Outlier detector of a given number of kernel functions whose vectors are free to move.

    The function f without a constant minimises

        1/2 |f|^2 + C sum_i w_i max(0, 1 - f(x_i))^2,

    which is a one-class support vector machine in the units of its threshold, with the square of
    its loss. The score of a row is f.

    Parameters
    ----------
    n_components : int, default=20
        The budget: the number of vectors.
    kernel : str or Kernel, default="rbf"
        As in `SparseKernelClassifier`.
    {gamma}
    {degree}
    {coef0}
    kernel_params : mapping, default=None
        Refused: a callable has no derivative. Here so that all estimators take the same arguments.
    C : float, default=1.0
        Price of the loss of a row of weight 1: the larger, the closer f is to 1 at all rows, and
        the more it falls off outside them.
    contamination : float, default=0.1
        Share of the training rows that ``predict`` calls outliers, in (0, 0.5].
    max_iter : int, default=50
        Iterations of L-BFGS on all rows at most; 0 leaves the vectors at random rows.
    tol : float, default=1e-4
        The iteration ends where the energy falls by no more than this share an iteration, on
        average over 5 of them.
    random_state : int, RandomState or None, default=None
        For the start.

    Attributes
    ----------
    support_vectors_ : ndarray of shape (n_components_, n_features)
        The vectors.
    dual_coef_ : ndarray of shape (1, n_components_)
        Coefficients.
    offset_ : float
        The score below which a row is an outlier.
    kernel_ : Kernel
        The kernel with its numbers.
    expansion_ : KernelExpansion
        f.
    n_components_ : int
        Number of vectors.
    energy_path_ : ndarray of shape (n_iter_ + 1,)
        The energy at the start and after each iteration.
    n_iter_ : int
        Iterations.
    stop_reason_ : {"tol", "max_iter", "callback", "interrupt"}
        Why they ended.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005,
    section 8.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import SparseOneClass
    >>> X = np.random.RandomState(0).normal(size=(200, 2))
    >>> SparseOneClass(5, random_state=0).fit(X).predict([[0.5, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    n_components: Any = positional(20)
    C: float = 1.0
    contamination: float = 0.1
    max_iter: int = 50
    tol: float = 1e-4
    random_state: Any = None

    @following
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Move the vectors to where the data are.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : Ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : SparseOneClass
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names it.
        """
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        samples = samples.take(np.flatnonzero(samples.weights > 0))
        n_rows = samples.X.shape[0]
        n_steps = most_steps(n_rows, min(int(self.n_components), n_rows), self.max_iter)
        with self._watching(X, y, sample_weight, n_steps=n_steps) as watcher:
            self._fit_rows(samples, watcher)
        return self

    def _fit_rows(self, samples: Samples, watcher: Watcher | None) -> None:
        """Move the vectors on rows of positive weight."""
        rng = check_random_state(self.random_state)
        kernel = self._resolved_kernel(samples)
        n = min(int(self.n_components), samples.X.shape[0])
        centre = origin(kernel, samples)
        setting = setting_of(kernel, samples.X, centre)._replace(columns=None)
        dtype = precision(setting.kernel, samples, n, centre, setting.scale)
        table = Table(samples.X, centre, dtype, setting.scale)
        problem = Problem(table, samples.Y, self.C * samples.weights, SquaredHinge(), False)
        shares = samples.weights / samples.weights.sum()
        rows = rng.choice(len(shares), size=n, replace=False, p=shares)
        place = Place(setting.kernel, table.block(rows).astype(np.float64))

        def report(step: Step) -> str | None:
            so_far = Descent(step, np.array([step.value]), "max_iter")
            return (
                None
                if watcher is None
                else watcher(lambda model: model._store(so_far, setting, samples))
            )

        told = None if watcher is None else report
        descent = move(problem, place, Plan(self.max_iter, self.tol, Free(), rng, report=told))
        self._store(descent, setting, samples)

    def _store(self, descent: Descent, setting: Setting, samples: Samples) -> None:
        """Set the fitted attributes."""
        B = descent.best.coefficients.B
        atoms = setting.atoms(descent.best.place)
        self._store_expansion(KernelExpansion(atoms, B.T.copy(), np.zeros(1)))
        self.energy_path_, self.stop_reason_ = descent.values, descent.reason
        self.n_iter_ = len(descent.values) - 1
        shares = samples.weights / samples.weights.sum()
        self.offset_ = score_quantile(self.expansion_(samples.X)[:, 0], shares, self.contamination)

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_integer("n_components", self.n_components)
        check_real("C", self.C, above=True)
        check_real("contamination", self.contamination, below=np.nextafter(0.5, 1.0), above=True)
        check_integer("max_iter", self.max_iter, 0)
        check_real("tol", self.tol)
        if is_precomputed(self.kernel):
            raise ValueError("kernel='precomputed' holds no rows between which vectors could move")

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Checked rows, the target 1, weights."""
        X = read_data(self, X, accept_sparse="csr")
        return Samples(X, np.ones((X.shape[0], 1)), check_weights(sample_weight, X.shape[0]))

    @native
    def score_samples(self, X: Any) -> Array:
        """Scores, the larger the less of an outlier.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            f.
        """
        return self._outputs(X)[:, 0]

    @native
    def decision_function(self, X: Any) -> Array:
        """Scores less ``offset_``: negative for outliers.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Scores less the threshold.
        """
        return self._decided(X)

    @native
    def predict(self, X: Any) -> Array:
        """Call each row an outlier or not.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            -1 for outliers, 1 for the others.
        """
        return self._predicted(X)

    def _answers(self) -> Answers:
        """Inside or outside."""
        return Novelty(self.offset_)
