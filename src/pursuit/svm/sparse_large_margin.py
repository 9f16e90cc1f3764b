"""Sparse large margin classifiers: support vector machines whose few vectors are free to move.

M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005; the
equation numbers are theirs.

Problem. Given n rows x_i with labels y_i = +-1 and weights c_i, find N_z vectors z_j, which need
not be rows, and f(x) = sum_j beta_j K(z_j, x) + b that minimise

    1/2 beta' K_z beta + C sum_i c_i max(0, 1 - y_i f(x_i)),                          (eq. 5-8)

the objective of a support vector machine whose normal vector lies in the span of N_z images.

===========  ===================  =======================================================
symbol       name in code         shape and meaning
===========  ===================  =======================================================
Z            ``Z``                (N_z, d) expansion vectors
C c          ``weights``          (n,) what the loss of each row costs
W(Z)         ``value``            the least value for these vectors                (eq. 10)
beta, b      ``coefficients``     (N_z, T), (T,) coefficients that attain it       (eq. 33)
===========  ===================  =======================================================

Steps.

1. Start: random rows (section 7.5), cluster centres, the rows that kernel matching pursuit
   chooses, or given vectors.
2. At Z solve the machine on these vectors (eq. 11-33), which gives W(Z) and alpha.
3. dW/dZ with alpha held fixed (lemma 1, eq. 34).
4. Z follows L-BFGS on W; back to 2 until W has all but stopped falling. W(Z) is not convex: the
   best of several starts is kept.

W under the hinge loss is a case of the energy of every vector that moves, and steps 2 to 4 are its
descent: ``optimize/variable_projection.py``.

Several classes: one machine against the rest for each class, each with vectors of its own, as in
the paper; or one set of vectors for all machines, which minimises the sum of their W.

Cost of a step: n N_z (d + T N_z) for a few tens of interior point iterations.

Where we differ. Z is measured in standard deviations of the data and W in its first value, so that
L-BFGS's first step does not depend on units. Vectors that start at one place, where W has no slope
that could part them, are moved apart a little. Shared vectors are an addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.linalg import block_diag
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state

from pursuit._typing import Array, Watch
from pursuit._validation import Samples, check_choice, check_integer, check_real
from pursuit._warnings import warn
from pursuit.base.arrays import following
from pursuit.base.callbacks import CallbackSupport, Watcher
from pursuit.base.estimators import ExpansionClassifier
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.geometry.unique_rows import parted
from pursuit.greedy.starts import STARTS, chosen_rows, cluster_centres, random_rows
from pursuit.kernels import Kernel, is_precomputed
from pursuit.linalg import blocks
from pursuit.optimize.kernel_blocks import Place, Table
from pursuit.optimize.moving import APART, origin, spread
from pursuit.optimize.variable_projection import Descent, Hinge, Problem, Step, descend
from pursuit.svm.reduced_set import Cost

__all__ = ["SparseLargeMarginClassifier", "sparse_large_margin"]


def sparse_large_margin(
    kernel: Kernel,
    Z: Array,
    samples: Samples,
    C: float,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    watch: Watch[Step] | None = None,
) -> Descent:
    """Steps 2 to 4 from one start, on valid arrays.

    Parameters
    ----------
    kernel : Kernel
        Positive semidefinite, with a derivative.
    Z : ndarray of shape (N_z, d)
        The start, in float64.
    samples : Samples
        Rows, labels +1 and -1 of shape (n, T), and positive weights.
    C : float
        Price of the hinge loss.
    max_iter : int, default 200
        Iterations at most.
    tol : float, default 1e-4
        The iteration ends where W falls by no more than this share an iteration, over 5 of them.
    watch : callable, optional
        Looks at each step; a text ends the iteration and says why.

    Returns
    -------
    descent : Descent
        The best vectors seen, in the coordinates of X.
    """
    centre = origin(kernel, samples)
    table = Table(samples.X, centre, np.float64)
    problem = Problem(table, samples.Y, C * samples.weights, Hinge())  # eq. 5
    unit, place = spread(table, samples.weights), Place(kernel, Z - centre)

    def told(step: Step) -> Step:
        return step._replace(place=Place(kernel, step.place.Z + centre))

    look = None if watch is None else lambda step: watch(told(step))
    descent = descend(problem, place, unit, max_iter=max_iter, tol=tol, watch=look)
    return descent._replace(best=told(descent.best))


@constructor
class SparseLargeMarginClassifier(
    ClassifierMixin, CallbackSupport, ExpansionClassifier, KernelParameters, Cost
):
    """Support vector machine with a given number of vectors that are free to move.

    Parameters
    ----------
    n_components : int or (one-vs-rest) sequence of int, default 20
        The budget: the number of kernel functions of the whole model. With
        ``multi_class="ovr"`` it is dealt to the classes, of which each should have one at least;
        a sequence gives each class its own number.
    C : float, default 1.0
        Price of the hinge loss of a row of weight 1, as in `sklearn.svm.SVC`.
    kernel : str or Kernel, default "rbf"
        ``"linear"``, ``"polynomial"`` (or ``"poly"``), ``"rbf"``, ``"laplacian"``, ``"cosine"``,
        ``"cosine_polynomial"`` or a value of `pursuit.kernels`: positive semidefinite, with a
        derivative.
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default "scale"
        Coefficient of the rbf, laplacian and polynomial kernels. ``"scale"`` is
        1 / (n_features * Var(X)) over the weighted rows, ``"auto"`` is 1 / n_features.
        An array holds one for each feature: rbf, laplacian, chi2.
    degree : float, default 3
        Degree of the polynomial and cosine polynomial kernels.
    coef0 : float, default 1
        Constant of the polynomial and cosine polynomial kernels.
    kernel_params : mapping, optional
        Refused: a callable has no derivative. Here so that all estimators take the same arguments.
    init : {"random", "kmeans", "matching_pursuit"} or array-like, default "random"
        Where the vectors start: at rows drawn in proportion to their weights; at centres of
        clusters; at the rows that kernel matching pursuit chooses; or at the rows of an array of
        shape (n_components, n_features), those of the first class first.
    n_init : int, default 1
        Number of starts with ``"random"`` and ``"kmeans"``; the one of the lowest objective is
        kept, for each class by itself.
    max_iter : int, default 200
        Iterations of L-BFGS at most; 0 leaves the vectors where they start.
    tol : float, default 1e-4
        The iteration ends where the objective falls by no more than this share an iteration,
        on average over 5 of them.
    multi_class : {"ovr", "shared"}, default "ovr"
        With more than two classes: vectors of its own for each class against the rest, or one
        set of vectors for all.
    class_weight : mapping, "balanced" or None, default None
        Weights of the classes, by which those of their rows are multiplied.
    random_state : int, RandomState or None, default None
        For the start.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    support_vectors_ : ndarray of shape (n_vectors, n_features)
        The vectors, which are no rows of X; with ``"ovr"`` class after class.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (n_outputs,)
        Constants.
    n_components_ : int
        Number of vectors, below `n_components` where there are fewer rows.
    objective_ : float
        W at the vectors, summed over the machines.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        W at the start and after each iteration; a machine that has ended counts with its last.
    duality_gap_ : float
        Relative duality gap of the machines on these vectors, the largest.
    n_iter_ : int
        Iterations of L-BFGS, the most of any class.
    stop_reason_ : {"tol", "max_iter", "callback", "interrupt"}
        Why the iteration ended; ``"tol"`` where it did so for all classes.
    temperature_ : float
        Temperature of the softmax (sigmoid for two classes) behind ``predict_proba``, fitted to
        the training rows, each without the vectors on which it has the only say.
    kernel_ : Kernel
        The kernel with its numbers resolved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    References
    ----------
    M. Wu, B. Schoelkopf and G. Bakir, "Building sparse large margin classifiers", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pursuit import SparseLargeMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseLargeMarginClassifier(6, C=10.0, random_state=0).fit(X, y)
    >>> model.support_vectors_.shape, bool(model.score(X, y) > 0.95)
    ((6, 4), True)
    """

    n_components: Any = positional(20)
    init: Any = "random"
    n_init: int = 1
    max_iter: int = 200
    tol: float = 1e-4
    multi_class: str = "ovr"
    class_weight: Mapping[Any, float] | str | None = None
    random_state: Any = None

    @following
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Move the vectors to where the margin is large.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : SparseLargeMarginClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; the message names the parameter or row.
        """
        self._check_parameters()
        samples = self._read(X, y, sample_weight)
        samples = samples.take(np.flatnonzero(samples.weights > 0))
        budgets = self._feasible(self._budgets(samples.Y.shape[1]), samples.X.shape[0])
        kernel = self._resolved_kernel(samples)
        starts = self._starts(kernel, samples, budgets)
        n_steps = self.max_iter * sum(map(len, starts))
        with self._watching(X, y, sample_weight, n_steps=n_steps) as watcher:
            descents = self._descend(kernel, samples, starts, watcher)
            self._store_descents(kernel, samples, descents)
            self._warn_unfinished()
        return self

    def _check_parameters(self) -> None:
        """Raise one error that names the first parameter out of range."""
        check_real("C", self.C, above=True)
        if isinstance(self.init, str):
            check_choice("init", self.init, STARTS)
        check_integer("n_init", self.n_init)
        check_integer("max_iter", self.max_iter, 0)
        check_real("tol", self.tol)
        if is_precomputed(self.kernel):
            raise ValueError("kernel='precomputed' holds no rows between which vectors could move")

    def _feasible(self, budgets: list[int], n_rows: int) -> list[int]:
        """Budgets no larger than the number of rows."""
        if min(budgets) == 0:
            warn(
                f"n_components={self.n_components} leaves {budgets.count(0)} of the "
                f"{len(budgets)} classes without a vector; multi_class='shared' would not",
                ConvergenceWarning,
            )
        if max(budgets) > n_rows and isinstance(self.init, str):
            warn(
                f"n_components={self.n_components}, but {n_rows} vectors, as many as there are "
                "rows, give the full support vector machine",
                ConvergenceWarning,
            )
            return [min(budget, n_rows) for budget in budgets]
        return budgets

    def _starts(self, kernel: Kernel, samples: Samples, budgets: list[int]) -> list[list[Array]]:
        """Step 1: for each basis the vectors of each start."""
        rng = check_random_state(self.random_state)
        if not isinstance(self.init, str):
            found = [[Z] for Z in self._given(samples.X, budgets)]
        elif self.init == "matching_pursuit":
            found = [[Z] for Z in chosen_rows(kernel, samples, budgets, rng)]
        else:
            draw = random_rows if self.init == "random" else cluster_centres
            found = [[draw(samples, n, rng) for _ in range(self.n_init)] for n in budgets]
        table = Table(samples.X, origin(kernel, samples), np.float64)
        distance = APART * spread(table, samples.weights)
        return [[parted(Z, distance, rng) for Z in starts] for starts in found]

    def _given(self, X: Any, budgets: list[int]) -> list[Array]:
        """The vectors that the user gives, dealt to the bases."""
        Z = check_array(self.init, dtype=np.float64, input_name="init")
        if Z.shape != (sum(budgets), X.shape[1]):
            raise ValueError(
                f"init must be one of {list(STARTS)} or an array of shape "
                f"{(sum(budgets), X.shape[1])}, got shape {Z.shape}"
            )
        return np.split(Z, np.cumsum(budgets)[:-1])

    def _descend(
        self,
        kernel: Kernel,
        samples: Samples,
        starts: list[list[Array]],
        watcher: Watcher | None,
    ) -> list[Descent]:
        """Steps 2 to 4 from every start; the best for each basis."""
        outputs = _outputs_of_bases(samples.Y, len(starts))
        tasks = [(basis, Z) for basis, several in enumerate(starts) for Z in several]
        # What each start has come to, of each basis.
        found: list[dict[int, Descent]] = [{} for _ in starts]

        def moved(number: int) -> None:
            basis, Z = tasks[number]
            own = samples._replace(Y=samples.Y[:, outputs[basis]])

            def look(step: Step) -> str | None:
                found[basis][number] = Descent(step, np.array([step.value]), "max_iter")
                so_far = _lowest(found) if all(found) else None

                def store(model: SparseLargeMarginClassifier) -> None:
                    model._store_descents(kernel, samples, so_far or [])

                return None if watcher is None else watcher(store if so_far else None)

            stopped = watcher is not None and watcher.reason is not None
            found[basis][number] = sparse_large_margin(
                kernel,
                Z,
                own,
                self.C,
                max_iter=0 if stopped else self.max_iter,
                tol=self.tol,
                watch=None if watcher is None else look,
            )

        blocks.in_parallel(moved, range(len(tasks)))
        best = _lowest(found)
        if watcher is not None and watcher.reason:
            best = [descent._replace(reason=watcher.reason) for descent in best]
        return best

    def _store_descents(self, kernel: Kernel, samples: Samples, descents: list[Descent]) -> None:
        """Set the fitted attributes."""
        steps = [descent.best for descent in descents]
        Z = np.vstack([step.place.Z for step in steps])
        beta = block_diag(*(step.coefficients.B.T for step in steps))  # eq. 33
        intercept = np.concatenate([step.coefficients.b for step in steps])
        self._store_expansion(KernelExpansion(Atoms(kernel, Z), beta, intercept))
        self._fit_temperature(samples)
        paths = [descent.values for descent in descents]
        self.n_iter_ = max(len(path) for path in paths) - 1
        self.objective_path_ = np.sum(
            [np.pad(path, (0, self.n_iter_ + 1 - len(path)), "edge") for path in paths], axis=0
        )
        self.objective_ = sum(step.value for step in steps)
        self.duality_gap_ = max(_gap(step) for step in steps)
        others = (descent.reason for descent in descents if descent.reason != "tol")
        self.stop_reason_ = next(others, "tol")

    def _warn_unfinished(self) -> None:
        """Say that the objective was still falling."""
        if self.stop_reason_ == "max_iter" and self.max_iter > 0:
            warn(
                f"max_iter={self.max_iter} iterations ended before the objective stopped falling "
                f"by tol={self.tol:g} an iteration",
                ConvergenceWarning,
            )


def _gap(step: Step) -> float:
    """Relative duality gap of the machines of one basis."""
    machines = step.machines or ()
    total = sum(machine.gap * machine.objective for machine in machines)
    return total / step.value if step.value > 0 else 0.0


def _outputs_of_bases(Y: Array, n_bases: int) -> list[Array]:
    """Columns of the labels that each set of vectors serves."""
    columns = np.arange(Y.shape[1])
    return [columns] if n_bases == 1 else list(columns[:, None])


def _lowest(found: list[dict[int, Descent]]) -> list[Descent]:
    """The descent of each basis that has come lowest."""
    return [min(several.values(), key=lambda descent: descent.best.value) for several in found]
