"""Landmarks from blocks of rows: `SparseKernelPCA` and `GreedyNystroem`.

Problem. Choose k of M candidate rows z by the rules of ``greedy/deflation.py``, and know how all l
rows lie in the span, without a column of kernel values of l numbers anywhere.

A column of the deflated kernel matrix K^ is a combination of columns of K. So their inner products
over all rows follow from sums,

===========  ============  =============================================================
symbol       name in code  shape and meaning
===========  ============  =============================================================
K[z, z]                    (M, M) kernel values among the candidates
H            ``H``         (M, M) sum_j w_j K^[j, z] K^[j, z']; at first K'WK of all rows
c            ``centre``    (M,) sum_j w_j K[j, z]
i, R         ``picks``     (k,), (k, k) the choice, and R'R = K[i, i]
===========  ============  =============================================================

Steps.

1. A survey draws the candidates; one pass sums K'WK, c and K(x, x).
2. A choice p deflates K^[:, z] <- K^[:, z] - K^[:, p] r_z with r = K^[z, p] / K^[p, p], and so

       H <- H - r h' - h r' + r r' h_p,    h = H[:, p];

   the Rayleigh score of eq. 2 of Hussain and Shawe-Taylor (2008) is diag(H) / diag(K^).
3. Of the coordinates R^{-T} k_i(x) of all rows, the mean is R^{-T} c_i / W, and the second moments
   are R^{-T} (K'WK)[i, i] R^{-1} / W.

The result is that of a fit on all rows in one place whose `selection` lists the same rows.

Cost. l M^2 operations once, M^2 a step; M^2 numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from pursuit._typing import Array
from pursuit._validation import check_choice
from pursuit.decomposition._landmarks import LandmarkProblem, LandmarkTransformer, check_definite
from pursuit.decomposition.kernel_pca import SparseKernelPCA, Subspace
from pursuit.decomposition.nystroem import GreedyNystroem
from pursuit.distributed.matching_pursuit import capacity, summed
from pursuit.distributed.parts import Parts, parts_of, total
from pursuit.distributed.reading import (
    Reader,
    Seen,
    block_samples,
    reader_of,
    surveyed,
)
from pursuit.expansion.basis_functions import Atoms
from pursuit.greedy.deflation import SELECTIONS, Deflation, Rule, choose, selection_rule
from pursuit.greedy.normal_equations import Moments, WeightedValues, gather
from pursuit.greedy.pivot_rules import PIVOT_RULES
from pursuit.greedy.statistics import KernelStatistics
from pursuit.greedy.survey import Survey, salt_of
from pursuit.kernels import gamma_of, resolve_kernel
from pursuit.linalg.factor import solve_transposed
from pursuit.linalg.partial_cholesky import first_best

__all__ = ["fit_kernel_pca", "fit_nystroem"]


class Lengths(NamedTuple):
    """Sums over rows: K'WK and c about zero, W, and the sum and the largest of K(x, x)."""

    moments: Moments
    square: float
    largest: float

    def plus(self, other: Lengths) -> Lengths:
        """Those of the rows of both."""
        return Lengths(
            self.moments.plus(other.moments),
            self.square + other.square,
            max(self.largest, other.largest),
        )


class Choice(NamedTuple):
    """Candidates, what is known of all rows through them, and those that were chosen."""

    atoms: Atoms
    lengths: Lengths
    picks: Array
    factor: Array
    places: Array
    reason: str

    @property
    def problem(self) -> LandmarkProblem:
        """The candidates in the form of the rows that a fit in memory has; one weight, W."""
        weights = np.array([self.lengths.moments.weight])
        return LandmarkProblem(self.atoms.kernel, self.atoms.centres, weights, self.places)


def fit_kernel_pca(model: SparseKernelPCA, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Fit `SparseKernelPCA` on collections.

    Parameters
    ----------
    model : SparseKernelPCA
        With a number of components, and rows chosen by a rule. `n_candidates` is the number of
        rows that are compared at every step (None: 2500, or five times `n_components`).
    X, sample_weight : dask collections
        Rows and weights.
    y : object
        Not used.
    """
    model._check_parameters()
    if model.n_components == "bound":
        raise ValueError("n_components='bound' needs the rows in memory")
    if model.fit_inverse_transform:
        raise ValueError("fit_inverse_transform=True needs the rows in memory")
    found = _chosen(model, parts_of(X, None, sample_weight))
    model._warn_short(len(found.picks), found.reason)
    model._store(found.problem, subspace(found))
    return model


def fit_nystroem(model: GreedyNystroem, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Fit `GreedyNystroem` on collections.

    Parameters
    ----------
    model : GreedyNystroem
        With landmarks chosen by a rule, or with the targets (``selection="supervised"``).
        `n_candidates` as for `SparseKernelPCA`.
    X, y, sample_weight : dask collections
        Rows, targets for the supervised choice, and weights.
    """
    model._check_parameters()
    if model._supervised:
        return _fit_supervised(model, X, y, sample_weight)
    found = _chosen(model, parts_of(X, None, sample_weight))
    model._warn_short(len(found.picks), found.reason)
    model._normalise(found.problem, found.picks, found.reason)
    return model


def subspace(found: Choice) -> Subspace:
    """Step 3."""
    moments, picks, R = found.lengths.moments, found.picks, found.factor
    assert moments.gram is not None
    half = solve_transposed(R, moments.gram[np.ix_(picks, picks)])
    second = solve_transposed(R, half.T)
    explained = np.cumsum(second.diagonal())
    return Subspace(
        picks,
        R,
        solve_transposed(R, moments.atom_sum[picks]) / moments.weight,
        second / moments.weight,
        np.maximum(found.lengths.square - explained, 0.0),
        np.array([found.lengths.largest]),
        found.reason,
    )


def _chosen(model: LandmarkTransformer, parts: Parts) -> Choice:
    """Steps 1 and 2; sets what the model knows of the features."""
    check_choice("selection", model._named_selection, SELECTIONS)
    reader, _, atoms, places = _candidates(model, parts, labels=False)
    lengths: Lengths = total(_block_lengths, Lengths.plus, parts.blocks, reader, atoms)
    deflation = Deflation(atoms.kernel, atoms.centres, np.ones(len(atoms)))
    reason = choose(deflation, _rule(model, deflation, lengths), int(model.n_components))
    check_definite(deflation)
    picks = np.array(deflation.pivots, dtype=int)
    _take_names(model, reader)
    return Choice(atoms, lengths, picks, np.triu(deflation.V[:, picks]), places, reason)


def _candidates(
    model: LandmarkTransformer, parts: Parts, *, labels: bool
) -> tuple[Reader, Seen, Atoms, Array]:
    """The candidates with the kernel, in the order of the rows, and their places."""
    reader, budget = reader_of(model, parts), int(model.n_components)
    empty = Survey(capacity(model.n_candidates, budget), salt_of(model.random_state))
    seen = surveyed(reader, parts, empty, labels=labels)
    vectors, places = seen.survey.first(empty.capacity)
    numbers = model._kernel_numbers()
    if isinstance(numbers["gamma"], str) and numbers["gamma"] == "scale":
        numbers["gamma"] = gamma_of(seen.survey.spread, vectors.shape[1])
    named = {"kernel": model.kernel, "kernel_params": model.kernel_params}
    kernel = resolve_kernel(X=vectors, **named, **numbers)
    return reader, seen, Atoms(kernel, vectors), places


def _block_lengths(reader: Reader, atoms: Atoms, X: Any, y: Any, weights: Any) -> Lengths | None:
    """The sums of one block."""
    samples = block_samples(reader, X, y, weights)
    if samples is None:
        return None
    values = WeightedValues(atoms.functions, samples, len(atoms), centred=False)
    norms = atoms.kernel.diagonal(samples.X)
    if not np.isfinite(norms).all():
        raise ValueError("kernel: K(x, x) is not finite at some row")
    moments = gather(values, complete=True)
    return Lengths(moments, float(samples.weights @ norms), float(norms.max()))


def _rule(model: LandmarkTransformer, deflation: Deflation, lengths: Lengths) -> Rule:
    """How the centres are chosen among the candidates."""
    name = str(model._named_selection)
    if name == "rayleigh":
        return RayleighOfSums(deflation, np.asarray(lengths.moments.gram))
    return selection_rule(deflation, name, check_random_state(model.random_state))


class RayleighOfSums:
    """The Rayleigh rule over all rows, of which sums are known (step 2)."""

    def __init__(self, deflation: Deflation, gram: Array) -> None:
        self.deflation, self.H = deflation, gram.copy()

    def __call__(self, usable: Array) -> tuple[int, Array]:
        """Choose, and bring H to the matrix deflated by the choice."""
        deflation, H = self.deflation, self.H
        scores = PIVOT_RULES["rayleigh"](
            H.diagonal()[usable], deflation.residual[usable], deflation.diagonal[usable]
        )
        pivot = int(usable[first_best(scores)])
        column = deflation.columns(np.array([pivot]))[:, 0]
        r, h = column / deflation.residual[pivot], H[:, pivot].copy()
        half = np.outer(r, h - 0.5 * h[pivot] * r)
        H -= half + half.T
        return pivot, column


def _fit_supervised(model: GreedyNystroem, X: Any, y: Any, sample_weight: Any) -> Any:
    """Landmarks by sums over rows and targets."""
    if y is None:
        raise ValueError("selection='supervised' requires y to be passed, but the target y is None")
    if model.target_type == "auto":
        raise ValueError("target_type must be 'class' or 'continuous' for a dask collection")
    parts, labels = parts_of(X, y, sample_weight), model.target_type == "class"
    _, seen, atoms, _ = _candidates(model, parts, labels=labels)
    classes = seen.labels if labels else None
    empty = KernelStatistics(atoms.centres, classes=classes, kernel=atoms.kernel)
    # The sums hold the candidates, and their classes.
    bare = clone(model).set_params(n_candidates=None).fit_statistics(summed(empty, parts))
    given = model.get_params(deep=False)
    for name in vars(bare).keys() - given.keys():
        setattr(model, name, getattr(bare, name))
    return model


def _take_names(model: Any, reader: Reader) -> None:
    """What the features are called."""
    model.n_features_in_ = reader.n_features_in_
    model.__dict__.pop("feature_names_in_", None)
    if hasattr(reader, "feature_names_in_"):
        model.feature_names_in_ = reader.feature_names_in_
