"""Mergeable statistics: all that a fit under squared error asks of its rows, in constant size.

Problem. Rows come in parts: a stream, a cluster, a file larger than memory. Fit on all of them as
if they had been in one place.

The moments of ``normal_equations.py`` (the table there: G0 = K'WK, B0 = K'WY, their sums, e0 and W)
are sums over rows. So those of two parts add up to those of both, in any order and any tree, to
rounding, and their size, M (M + T) numbers for M vectors and T targets, does not depend on the
number of rows. From them alone follow the greedy path, its coefficients for every prefix and its
training losses.

Sums are measured from an origin near the means. That of the kernel functions is their mean over the
vectors themselves, which every part knows; that of numbers is the mean of the first rows, and where
two parts have different ones, one is moved (`Moments.about`); that of classes is zero.

Probabilities and intervals ask for some rows beside the moments (``path_losses.py``). A uniform
sample of `SKETCH_ROWS` rows is kept: those whose hash is smallest. A hash depends on the row (and
its label) alone, so this sample, too, is the same whatever the parts and their order.

===========  ====================  ==============================================================
symbol       name in code          meaning
===========  ====================  ==============================================================
z_k          ``vectors``           (M, d)  centres of the candidate functions
G0, B0, ...  ``moments_``          the sums
             ``sketch_``           rows kept for probabilities and intervals
===========  ====================  ==============================================================

Cost. l M^2 operations for l rows, and their kernel values; M^2 numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from pursuit._typing import Array
from pursuit._validation import (
    Samples,
    check_weights,
    checked_classes,
    class_codes,
    class_numbers,
    read_data,
    signed_targets,
    summed,
)
from pursuit.base.docstrings import with_entries
from pursuit.base.parameters import KernelParameters, constructor, positional
from pursuit.dictionary import Dictionary
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.penalty import IDENTITY, Penalty
from pursuit.geometry.row_hashes import hashes
from pursuit.greedy.normal_equations import (
    Moments,
    NormalEquations,
    Origin,
    WeightedValues,
    centred_equations,
    gather,
)
from pursuit.greedy.survey import stacked
from pursuit.kernels import Precomputed, resolve_kernel
from pursuit.linalg import blocks

__all__ = ["KernelStatistics", "RowSketch", "equations_of", "every_row", "require_rows"]

# As many rows as a temperature is fitted on.
SKETCH_ROWS = 1_000


@dataclass(frozen=True)
class RowSketch:
    """The rows of smallest hash, at most `SKETCH_ROWS`, in the order of their hashes.

    Attributes
    ----------
    keys : ndarray of uint64 of shape (n_rows,)
        Their hashes.
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
        The rows.
    Y : ndarray of shape (n_rows, n_targets)
        Targets: numbers, or +1 and -1.
    weights, one_copy : ndarray of shape (n_rows,)
        Weight, and what one copy weighs.
    """

    keys: Array
    X: Any
    Y: Array
    weights: Array
    one_copy: Array

    @property
    def samples(self) -> Samples:
        """The rows as training rows."""
        return Samples(self.X, self.Y, self.weights, self.one_copy)

    def plus(self, other: RowSketch) -> RowSketch:
        """The sketch of the rows of both."""
        return self.joined(other).smallest()

    def joined(self, other: RowSketch) -> RowSketch:
        """All rows of both."""
        return RowSketch(
            np.concatenate([self.keys, other.keys]),
            stacked([self.X, other.X]),
            np.vstack([self.Y, other.Y]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.one_copy, other.one_copy]),
        )

    @property
    def order(self) -> Array:
        """The order of the hashes; of equal ones that of the targets and weights."""
        order: Array = np.lexsort((self.weights, *self.Y.T, self.keys))
        return order

    def smallest(self) -> RowSketch:
        """The rows of smallest hash."""
        return self.take(self.order[:SKETCH_ROWS])

    def take(self, rows: Array) -> RowSketch:
        """Some of the rows."""
        return RowSketch(
            self.keys[rows], self.X[rows], self.Y[rows], self.weights[rows], self.one_copy[rows]
        )


def every_row(samples: Samples, codes: Array) -> RowSketch:
    """Rows with their hashes, all of them."""
    X, keys = samples.X.astype(np.float64), hashes(samples.X, codes)
    return RowSketch(keys, X, samples.Y, samples.weights, samples.one_copy)


def sketch(samples: Samples, codes: Array) -> RowSketch:
    """The sketch of some rows."""
    return every_row(samples, codes).smallest()


@with_entries
@constructor
class KernelStatistics(KernelParameters):
    """Sums over rows from which everything under squared error is fitted; they add up.

    Of constant size: `update` adds rows, `merge` adds the statistics of other rows. In any order
    and any tree the result is that of all rows at once, to rounding. `pursuit.save` and
    `pursuit.load` keep one on disk, pickle carries it between processes.

    Parameters
    ----------
    vectors : {array-like, CSR matrix} of shape (n_vectors, n_features)
        Centres of the kernel functions that a fit may choose from: some rows, say.
    classes : array-like of shape (n_classes,), default=None
        All labels, at least two, where y holds labels. None: y holds numbers.
    kernel : str, Kernel or callable, default="rbf"
        As in `sklearn.svm.SVC`; ``"precomputed"`` has no meaning here.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernel; ``"scale"`` is taken from the vectors.
    {degree}
    {coef0}
    {kernel_params}

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its numbers resolved.
    classes_ : ndarray of shape (n_classes,) or None
        Sorted labels.
    n_samples_ : int
        Rows of positive weight seen so far.
    n_rows_ : int
        All rows seen so far, those of weight zero, too: where a pass over a file goes on.
    moments_ : Moments
        The sums.
    sketch_ : RowSketch
        Rows kept for probabilities and intervals, at most 1000.
    {n_features_in_}
    {feature_names_in_}

    References
    ----------
    The moments: P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning 48, 2002,
    figure 3 written for inner products.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import KernelMatchingPursuitRegressor, KernelStatistics
    >>> X = np.linspace(0, 6, 300)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> parts = [KernelStatistics(X[::10], gamma=1.0).update(X[i::3], y[i::3]) for i in range(3)]
    >>> everything = parts[0].merge(parts[1]).merge(parts[2])
    >>> model = KernelMatchingPursuitRegressor(8).fit_statistics(everything)
    >>> everything.n_samples_, bool(model.score(X, y) > 0.999)
    (300, True)
    """

    vectors: Any = field(kw_only=False)
    classes: Any = positional(None)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start anew with these rows, else as `update`.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their numbers, or labels from `classes`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self : KernelStatistics
            Of these rows alone.
        """
        if hasattr(self, "moments_"):
            del self.moments_
        return self.update(X, y, sample_weight)

    def update(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows.

        Parameters
        ----------
        X : {array-like, CSR matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their numbers, or labels from `classes`.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts as the row twice, 0 as the row removed.

        Returns
        -------
        self : KernelStatistics
            With these rows.

        Raises
        ------
        ValueError
            If the rows do not go with the vectors, the classes or the earlier rows.
        """
        first = not hasattr(self, "moments_")
        numbers: dict[str, Any] = {"multi_output": True, "y_numeric": True}
        numbers = numbers if self.classes is None else {}
        X, y = read_data(self, X, y, reset=first, accept_sparse="csr", **numbers)
        if first:
            self._begin()
        weights = check_weights(sample_weight, X.shape[0])
        if self.classes_ is None:
            Y = np.asarray(y, dtype=np.float64).reshape(X.shape[0], -1)
        else:
            Y = signed_targets(class_numbers(y, self.classes_), len(self.classes_))
        return self._add(Samples(X, Y, weights), one_dimensional=np.ndim(y) == 1)

    def merge(self, other: KernelStatistics) -> Self:
        """Add the rows of other statistics of the same vectors, kernel and classes.

        Parameters
        ----------
        other : KernelStatistics
            Of other rows; it stays as it is.

        Returns
        -------
        self : KernelStatistics
            Of the rows of both.

        Raises
        ------
        ValueError
            If the two do not speak of the same functions and targets.
        """
        if not isinstance(other, KernelStatistics):
            raise ValueError(f"merge takes KernelStatistics, got {type(other).__name__}")
        if not hasattr(other, "moments_"):
            return self
        if not hasattr(self, "moments_"):
            self._begin_as(other)
        self._check_alike(other)
        seen = (other.n_samples_, other.n_rows_)
        self._plus(other.moments_, other.sketch_, seen, other._one_dimensional)
        return self

    def equations(
        self, *, fit_intercept: bool = True, alpha: float = 0.0, penalty: Penalty = IDENTITY
    ) -> NormalEquations:
        """The normal equations of all rows seen.

        Parameters
        ----------
        fit_intercept : bool, default=True
            Whether a constant is free.
        alpha : float, default=0.0
            Ridge on the coefficients.
        penalty : Penalty, optional
            What the ridge counts as large; the identity if not given.

        Returns
        -------
        equations : NormalEquations
            To be solved for any of the kernel functions.
        """
        check_is_fitted(self, "moments_")
        return equations_of(
            self.moments_, fit_intercept=fit_intercept, alpha=alpha, penalty=penalty
        )

    @property
    def dictionary(self) -> Dictionary:
        """The kernel functions."""
        check_is_fitted(self, "kernel_")
        return Dictionary(Atoms(self.kernel_, self._centres), None)

    def _begin_as(self, other: Any) -> None:
        """Begin for rows with the features of a fitted estimator."""
        self.n_features_in_: int = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_: Array = other.feature_names_in_
        self._begin()

    def _begin(self) -> None:
        """Resolve the kernel and the classes, and fix where functions are measured from."""
        centres = check_array(
            self.vectors, accept_sparse="csr", dtype=np.float64, input_name="vectors"
        )
        self._centres = summed(centres, "vectors") if sparse.issparse(centres) else centres
        n_vectors, n_features = self._centres.shape
        if n_features != self.n_features_in_:
            raise ValueError(f"vectors has {n_features} features, but X has {self.n_features_in_}")
        names = ("kernel", "gamma", "degree", "coef0", "kernel_params")
        numbers = {name: getattr(self, name) for name in names}
        self.kernel_ = resolve_kernel(X=self._centres, **numbers)
        if isinstance(self.kernel_, Precomputed):
            raise ValueError("kernel: statistics need a kernel of rows, not 'precomputed'")
        self.classes_ = None if self.classes is None else checked_classes(self.classes)
        few = self._centres[blocks.evenly_spaced(n_vectors, 512)]
        values = blocks.evaluate(self.dictionary.atoms.functions, few, n_vectors)
        self._origin = np.asarray(values.mean(axis=0, dtype=np.float64))

    def _add(self, samples: Samples, *, one_dimensional: bool) -> Self:
        """Add checked rows."""
        n_rows = samples.X.shape[0]
        samples = samples.take(np.flatnonzero(samples.weights > 0))
        atoms, Y = self.dictionary.atoms, samples.Y
        about = np.zeros(Y.shape[1])
        if self.classes_ is None:
            about = np.average(Y, axis=0, weights=samples.weights)
        values = WeightedValues(
            atoms.functions,
            samples,
            len(atoms),
            centred=True,
            origin=Origin(self._origin, about),
        )
        codes = np.zeros(len(Y), dtype=int) if self.classes_ is None else class_codes(Y)
        kept = sketch(samples, codes)
        seen = (len(Y), n_rows)
        return self._plus(gather(values, complete=True), kept, seen, one_dimensional)

    def _plus(
        self, moments: Moments, kept: RowSketch, seen: tuple[int, int], one_dimensional: bool
    ) -> Self:
        """Add sums, kept rows, and how many rows of positive weight and in all they are of."""
        if not hasattr(self, "moments_"):
            self.moments_, self.sketch_ = moments, kept
            self.n_samples_, self.n_rows_ = seen
            self._one_dimensional = one_dimensional
            return self
        n_targets, before = len(moments.target_sum), len(self.moments_.target_sum)
        if n_targets != before:
            raise ValueError(f"y has {n_targets} targets, but the rows before had {before}")
        self.moments_ = self.moments_.plus(moments)
        self.n_samples_ += seen[0]
        self.n_rows_ += seen[1]
        self.sketch_ = self.sketch_.plus(kept)
        return self

    def _check_alike(self, other: KernelStatistics) -> None:
        """Raise unless two statistics speak of the same functions and classes."""
        if self.kernel_ != other.kernel_:
            raise ValueError(f"kernel: {self.kernel_} and {other.kernel_} cannot be merged")
        if not equal_tables(self._centres, other._centres):
            raise ValueError("vectors: statistics of different vectors cannot be merged")
        if np.asarray(self.classes_).tolist() != np.asarray(other.classes_).tolist():
            raise ValueError("classes: statistics of different classes cannot be merged")


def equations_of(
    moments: Moments,
    *,
    fit_intercept: bool = True,
    alpha: float = 0.0,
    penalty: Penalty = IDENTITY,
) -> NormalEquations:
    """The normal equations of sums over rows, which stay as they are."""
    if not fit_intercept:
        zero = Origin(np.zeros_like(moments.atom_sum), np.zeros_like(moments.target_sum))
        moments = moments.about(zero)
    return centred_equations(moments.copy(), alpha=alpha, centred=fit_intercept, penalty=penalty)


def require_rows(statistics: Any, *, classes: bool | None = None) -> None:
    """Raise unless these are sums over some rows, of labels or of numbers if that matters.

    Raises
    ------
    ValueError
        If they hold no rows, or targets of the other kind.
    """
    if not isinstance(statistics, KernelStatistics):
        raise ValueError(f"statistics must be KernelStatistics, got {type(statistics).__name__}")
    if not getattr(statistics, "n_samples_", 0):
        raise ValueError("statistics holds no rows: call its update first")
    if classes is not None and classes != (statistics.classes_ is not None):
        kind = "labels: give it classes" if classes else "numbers, without classes"
        raise ValueError(f"statistics must be of {kind}")


def equal_tables(left: Any, right: Any) -> bool:
    """Whether two tables, dense or CSR, hold the same numbers."""
    if left.shape != right.shape or sparse.issparse(left) != sparse.issparse(right):
        return False
    return not (left != right).nnz if sparse.issparse(left) else bool((left == right).all())
