"""Log-densities of mixtures of Gaussians that follow the data, exact in any dimension.

Vincent, "Modeles a noyaux a structure locale" (2003), section 5.2.3 and chapter 13.

Problem. The logarithm at some rows x of

    p(x) = sum_i pi_i N(x; x_i, C_i)                                          (eq. 13.1)
    C_i = sigma^2 I + sum_{j <= d} s_ij^2 u_ij u_ij',

where s_ij^2 and u_ij are eigenpairs of a local covariance (``local_covariance.py``).

==============  ===========================  ==============================================
symbol          name in code                 shape
==============  ===========================  ==============================================
x_i             ``centres``                  (m, D)
pi_i            ``weights``                  (m,), of sum 1
s_ij^2          ``variances``                (m, r), decreasing
u_ij            ``factors``                  (m, r, D)  form "axes"
a_ij            ``factors``                  (m, r, k)  form "neighbours"
sigma^2, d      ``CovarianceModel``          numbers; several in one pass over the rows
==============  ===========================  ==============================================

Steps. With lambda_ij = sigma^2 + s_ij^2 and n = D,

    log N(x; x_i, C_i) = -1/2 [ n log(2 pi) + sum_j log lambda_ij + (n - d) log sigma^2 + q_i ]
    q_i = |x - x_i|^2 / sigma^2 + sum_j (1 / lambda_ij - 1 / sigma^2) (u_ij'(x - x_i))^2   (13.2)

and the logarithm of the sum is gathered block by block relative to its largest term so far.

The projections have two forms. *Axes*: one matrix product of the stacked u_ij with the rows.
*Neighbours*, where k is less than D: s_ij u_ij = sum_k a_ijk (x_k - x_i) lies in the span of the
neighbours, so that a projection needs k numbers, the inner products x_k'x, which all centres share:

    q_i = [ |x - x_i|^2 - sum_j (s_ij u_ij'(x - x_i))^2 / lambda_ij ] / sigma^2,

d k instead of d n operations for each pair, and no division by a small s_ij.

Accuracy. Inner products of rows measured from a median lose eps |x|^2 / sigma^2 of q. Where that
is above `MOST_LOST`, distances are formed from differences and the axes are used. With all
n axes (d = n <= k) nothing cancels: q_i = sum_j (u_ij'(x - x_i))^2 / lambda_ij.

Of few features and many rows, centres and rows are cut into compact groups, and for a group of rows
the centres are summed from the nearest group on, until all others together could add no more than
e^-36 of any sum: with small sigma^2 most pairs are never looked at, and no digit changes.

Where we differ. The printed algorithm has d log(2 pi) for n log(2 pi), adds sigma^2 twice and
divides s^2 by l in place of k; the above is eq. 13.2 and 13.3.

Cost. m (n + min(d n, d k)) operations a row; memory of the mixture: at most d + 1 times that of the
centres and a few numbers for each axis, in the floating type of the rows. Arithmetic is in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms

from pursuit._arrays import beside
from pursuit._typing import Array
from pursuit.density.device_spheres import device_log_sums
from pursuit.geometry.distances import common_shift, from_products
from pursuit.geometry.kd_tree import bounding_boxes, box_distances, kd_tree_leaves
from pursuit.geometry.local_covariance import leading_axes, leading_mixtures
from pursuit.geometry.shared_products import SharedProducts
from pursuit.geometry.tangents import KnownDirections
from pursuit.linalg import blocks

__all__ = [
    "Gaussians",
    "LogSum",
    "CovarianceModel",
    "draw",
    "in_unit",
    "log_densities",
    "log_volumes",
    "oriented",
    "softmax_means",
    "spheres",
    "truncated",
    "window_distances",
]

# Largest rounding error of q that inner products may cause.
MOST_LOST = 1e-10
# Rows of one chunk, and the numbers of one block of centres, which stay in the cache.
CHUNK_ROWS = 256
BLOCK_BYTES = 1 << 21
# Bytes of the inner products of one chunk with all centres.
INNER_BYTES = 1 << 26
# With at most so many features and at least so many rows and centres, both are grouped if groups
# are far from each other as a rule, and those left out that add less than this power of e.
FEW_FEATURES, LEAST_GROUPED, GROUP_ROWS, SOME_GROUPS, NEGLIGIBLE = 8, 1000, 128, 16, 36.0
# Powers of two from which lengths are measured in a unit of their own.
FAR_FROM_ONE = 50
# Powers of e below this one count as it does.
LOWEST_POWER = -700.0


Rows = slice | Array


class CovarianceModel(NamedTuple):
    """Which of the covariances: sigma^2 and the number of axes."""

    noise_variance: float
    n_components: int = 0


@dataclass(frozen=True)
class Gaussians:
    """Centres, weights and local axes of a mixture; sigma^2 and d are said at evaluation.

    Attributes
    ----------
    centres : ndarray of shape (n_centres, n_features)
        In float32 or float64.
    weights : ndarray of shape (n_centres,)
        Of sum 1.
    shift : ndarray of shape (n_features,)
        Inner products are those of rows less this.
    variances : ndarray of shape (n_centres, n_axes)
        Variances along the axes, the largest first, without sigma^2.
    factors : ndarray of shape (n_centres, n_axes, n_features) or (n_centres, n_axes, k)
        Unit vectors, or combinations of the differences to the neighbours.
    offsets : ndarray of shape (n_centres, n_axes)
        Inner product of each axis with its shifted centre.
    neighbors : ndarray of int of shape (n_centres, k) or None
        None: `factors` are unit vectors.
    """

    centres: Array
    weights: Array
    shift: Array
    variances: Array
    factors: Array
    offsets: Array
    neighbors: Array | None = None

    @property
    def n_axes(self) -> int:
        """Number of axes of each centre."""
        return int(self.variances.shape[1])

    @property
    def complete(self) -> bool:
        """Whether the axes are a basis of the whole space."""
        return self.neighbors is None and 0 < self.n_axes == self.centres.shape[1]


class LogSum:
    """log sum_i exp(term_i) of many columns, block by block; with values, also softmax sums.

    Parameters
    ----------
    n_columns : int
        Number of sums.
    n_values : int, default 0
        Number of values whose sums sum_i exp(term_i) y_i are gathered, too.
    """

    def __init__(self, n_columns: int, n_values: int = 0) -> None:
        self.largest = np.full(n_columns, -np.inf)
        self.total = np.zeros(n_columns)
        self.moments = np.zeros((n_values, n_columns))

    def add(self, terms: Array, values: Array | None = None) -> None:
        """Add a block of terms of shape (n_terms, n_columns), which is overwritten."""
        top = np.maximum(self.largest, terms.max(axis=0, initial=-np.inf))
        some = top > -np.inf
        origin = np.where(some, top, 0.0)
        fade = np.exp(self.largest - origin)
        terms -= origin
        # Far below, the exponential function is slow, and its values are nothing beside 1.
        np.maximum(terms, LOWEST_POWER, out=terms)
        np.exp(terms, out=terms)
        self.total *= fade
        self.total += terms.sum(axis=0) * some
        if values is not None:
            self.moments *= fade
            self.moments += (values.T @ terms) * some
        self.largest = top

    @property
    def value(self) -> Array:
        """The logarithms; -inf where there is no term."""
        with np.errstate(divide="ignore"):
            logarithm: Array = np.log(self.total)
        return logarithm + np.where(self.largest > -np.inf, self.largest, 0.0)


# ------------------------------------------------------------------------------------------
# Mixtures
# ------------------------------------------------------------------------------------------


def spheres(centres: Array, weights: Array) -> Gaussians:
    """Gaussians without axes: Parzen windows.

    Parameters
    ----------
    centres : ndarray of shape (n_centres, n_features)
        Rows.
    weights : ndarray of shape (n_centres,)
        Positive weights of any sum.
    """
    m, n_features = centres.shape
    none = np.zeros((m, 0))
    shift = common_shift(centres).astype(np.float64)
    return Gaussians(
        centres, weights / weights.sum(), shift, none, np.zeros((m, 0, n_features)), none
    )


def oriented(
    spherical: Gaussians,
    neighbors: Array,
    weights: Array,
    n_components: int,
    noise_variance: float,
    products: SharedProducts | None = None,
    known: KnownDirections | None = None,
) -> Gaussians:
    """Gaussians along the local axes of the centres (eq. 13.3).

    Parameters
    ----------
    spherical : Gaussians
        The centres and their weights.
    neighbors : ndarray of int of shape (n_centres, k)
        Neighbours of each centre among the centres.
    weights : ndarray of shape (n_centres, k)
        Their weights.
    n_components : int
        d, the largest number of axes that is asked for.
    noise_variance : float
        The smallest sigma^2 that is asked for.
    products : SharedProducts, optional
        Those of all centres less the shift of the mixture, if they have been made.
    known : KnownDirections, optional
        Of the centres, beside those of the neighbours; their axes are kept in the form "axes".
    """
    centres, n_features = spherical.centres, spherical.centres.shape[1]
    k = neighbors.shape[1]
    d = min(n_components, k + (0 if known is None else known.n_tangents), n_features)
    if d == 0:
        return spherical
    shifted = _shifted(spherical, centres)
    largest = float(row_norms(shifted, squared=True).max())
    if known is None and k < n_features and _loss(largest, noise_variance) <= MOST_LOST:
        mixtures = leading_mixtures(shifted, neighbors, weights, d, products)
        return _with_axes(
            spherical, mixtures.variances, mixtures.mixing, mixtures.offsets, neighbors
        )
    found = leading_axes(shifted, shifted, neighbors, weights, d, known)
    offsets = np.einsum("ijn,in->ij", found.axes, shifted)
    return _with_axes(spherical, found.variances, found.axes, offsets, None)


def _with_axes(
    spherical: Gaussians, variances: Array, factors: Array, offsets: Array, neighbors: Array | None
) -> Gaussians:
    """The same centres with axes, in the floating type of the centres."""
    factors = factors.astype(spherical.centres.dtype, copy=False)
    return replace(
        spherical, variances=variances, factors=factors, offsets=offsets, neighbors=neighbors
    )


def truncated(gaussians: Gaussians, n_components: int) -> Gaussians:
    """The same mixture with no more axes than d needs.

    Parameters
    ----------
    gaussians : Gaussians
        With any number of axes.
    n_components : int
        d.
    """
    if n_components == 0:
        return spheres(gaussians.centres, gaussians.weights)
    if gaussians.n_axes <= n_components:
        return gaussians
    return replace(
        gaussians,
        variances=gaussians.variances[:, :n_components].copy(),
        factors=gaussians.factors[:, :n_components].copy(),
        offsets=gaussians.offsets[:, :n_components].copy(),
    )


def _shifted(gaussians: Gaussians, X: Array) -> Array:
    """Rows less the shift, in float64."""
    shifted: Array = np.asarray(X, dtype=np.float64) - gaussians.shift
    return shifted


def _loss(squared_norm: float, noise_variance: float) -> float:
    """What inner products of rows of this size lose of q."""
    return float(np.finfo(np.float64).eps) * squared_norm / noise_variance


def window_distances(
    gaussians: Gaussians, X: Array, least_noise: float
) -> Callable[[Rows, Rows], Array]:
    """What gives |x - x_i|^2 for some rows and some centres, in float64.

    Parameters
    ----------
    gaussians : Gaussians
        Centres x_i.
    X : ndarray of shape (n_rows, n_features)
        Rows x.
    least_noise : float
        The smallest sigma^2 these will be divided by: where products would lose more than
        `MOST_LOST` of it, distances come from differences.
    """
    rows, centres = _shifted(gaussians, X), _shifted(gaussians, gaussians.centres)
    norms, own = row_norms(rows, squared=True), row_norms(centres, squared=True)

    @np.errstate(over="ignore", invalid="ignore")  # rows beyond the squares of numbers
    def distances(some: Rows, part: Rows) -> Array:
        largest = max(float(norms[some].max()), float(own[part].max()))
        if not _loss(largest, least_noise) <= MOST_LOST:
            return np.asarray(cdist(rows[some], centres[part], "sqeuclidean"))
        squared = from_products(rows[some] @ centres[part].T, norms[some, None], own[part])
        return np.asarray(np.maximum(squared, 0.0, out=squared))

    return distances


def draw(gaussians: Gaussians, model: CovarianceModel, picks: Array, rng: Any) -> Array:
    """One row drawn from each of the Gaussians picked.

    Parameters
    ----------
    gaussians : Gaussians
        The mixture.
    model : CovarianceModel
        sigma^2 and d.
    picks : ndarray of int of shape (n_rows,)
        Indices of Gaussians.
    rng : RandomState
        Where the numbers come from.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
        x_i + sigma e + sum_j z_j s_ij u_ij with standard normal e and z.
    """
    n_features = gaussians.centres.shape[1]
    X: Array = np.sqrt(model.noise_variance) * rng.standard_normal((len(picks), n_features))
    d = min(model.n_components, gaussians.n_axes)
    normal = rng.standard_normal((len(picks), d))
    near = gaussians.neighbors
    width = n_features * (d if near is None else near.shape[1] + d) + 1
    for rows in blocks.row_blocks(len(picks), 16.0 * width):
        chosen = picks[rows]
        own = gaussians.centres[chosen].astype(np.float64)
        factors = gaussians.factors[chosen, :d].astype(np.float64)
        if near is None:
            lengths = np.sqrt(gaussians.variances[chosen, :d])
            X[rows] += np.einsum("ij,ijn->in", normal[rows] * lengths, factors)
        else:
            mixing = np.einsum("ij,ijk->ik", normal[rows], factors)
            differences = gaussians.centres[near[chosen]] - own[:, None]
            X[rows] += np.einsum("ik,ikn->in", mixing, differences)
        X[rows] += own
    return X


# ------------------------------------------------------------------------------------------
# Log-densities
# ------------------------------------------------------------------------------------------


def log_densities(
    gaussians: Gaussians, X: Array, models: Sequence[CovarianceModel], left_out: Array | None = None
) -> Array:
    """Log-densities of rows under mixtures that differ in sigma^2 and d.

    Parameters
    ----------
    gaussians : Gaussians
        The mixture.
    X : ndarray of shape (n_rows, n_features)
        Rows.
    models : sequence of CovarianceModel
        sigma^2 and d of each mixture.
    left_out : ndarray of int of shape (n_centres, c), optional
        Rows of `X` to which a centre does not contribute; the weights are not adjusted.

    Returns
    -------
    values : ndarray of shape (n_models, n_rows)
        In float64.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.density.gaussian_mixture import CovarianceModel, log_densities, spheres
    >>> two = spheres(np.array([[0.0], [2.0]]), np.ones(2))
    >>> log_densities(two, np.array([[1.0]]), [CovarianceModel(1.0)]).round(4)
    array([[-1.4189]])
    """
    gaussians, X, models, unit = in_unit(gaussians, X, models)
    values = np.empty((len(models), len(X)))
    place = beside()
    if place is not None and not (gaussians.n_axes and any(d for _, d in models)):
        constants = [_constants(gaussians, model) for model in models]
        variances = [noise for noise, _ in models]
        values = device_log_sums(gaussians.centres, constants, variances, X, left_out, place)
        values -= X.shape[1] * np.log(2.0) * unit
        return values

    def store(rows: Rows, sums: list[LogSum]) -> None:
        values[:, rows] = [total.value for total in sums]

    _gather(gaussians, X, models, left_out, store)
    values -= X.shape[1] * np.log(2.0) * unit
    return values


def softmax_means(
    gaussians: Gaussians,
    values: Array,
    X: Array,
    models: Sequence[CovarianceModel],
    left_out: Array | None = None,
) -> Array:
    """Means of values of the centres, weighted by their shares of the density of a row.

    Parameters
    ----------
    gaussians : Gaussians
        The mixture.
    values : ndarray of shape (n_centres, n_values)
        Values.
    X, models, left_out
        See `log_densities`.

    Returns
    -------
    means : ndarray of shape (n_models, n_rows, n_values)
        The mean by weight alone at a row where no density is a number.
    """
    gaussians, X, models, _ = in_unit(gaussians, X, models)
    means = np.empty((len(models), len(X), values.shape[1]))
    plain = gaussians.weights @ values

    def store(rows: Rows, sums: list[LogSum]) -> None:
        for mean, found in zip(means, sums, strict=True):
            known = found.total > 0
            some = found.moments / np.where(known, found.total, 1.0)
            mean[rows] = np.where(known[:, None], some.T, plain)

    _gather(gaussians, X, models, left_out, store, values)
    return means


@np.errstate(over="ignore")  # rows beyond the squares of numbers
def in_unit(
    gaussians: Gaussians, X: Array, models: Sequence[CovarianceModel]
) -> tuple[Gaussians, Array, Sequence[CovarianceModel], int]:
    """Everything in units of a power of two, 2^e, in which fourth powers of lengths are numbers.

    e is 0 but for lengths that are very small or large; no digit changes.

    Parameters
    ----------
    gaussians, X, models
        See `log_densities`.
    """
    largest = max(noise for noise, _ in models) + float(gaussians.variances.max(initial=0.0))
    e = int(np.frexp(largest)[1]) // 2
    if abs(e) < FAR_FROM_ONE:
        return gaussians, X, models, 0
    powers = -e if gaussians.neighbors is None else -2 * e  # of u_ij, or of s_ij u_ij
    return (
        replace(
            gaussians,
            centres=np.ldexp(gaussians.centres.astype(np.float64), -e),
            shift=np.ldexp(gaussians.shift, -e),
            variances=np.ldexp(gaussians.variances, -2 * e),
            offsets=np.ldexp(gaussians.offsets, powers),
        ),
        np.ldexp(X.astype(np.float64), -e),
        [CovarianceModel(float(np.ldexp(noise, -2 * e)), d) for noise, d in models],
        e,
    )


def _gather(
    gaussians: Gaussians,
    X: Array,
    models: Sequence[CovarianceModel],
    left_out: Array | None,
    store: Callable[[Rows, list[LogSum]], None],
    values: Array | None = None,
) -> None:
    """Sums over the centres, given to `store` for a chunk of rows at a time."""
    if not len(X):
        return
    centres = _Centres(gaussians, models, len(X))
    chunks = (
        _chunks(len(X), len(centres.rows))
        if centres.groups is None
        else kd_tree_leaves(X, GROUP_ROWS)
    )
    n_values = 0 if values is None else values.shape[1]

    @np.errstate(over="ignore", invalid="ignore")  # rows beyond the squares of numbers
    def fill(rows: Rows) -> None:
        shifted = _shifted(gaussians, X[rows])
        sums = [LogSum(len(shifted), n_values) for _ in models]
        for part, terms in centres.terms(shifted, sums):
            if left_out is not None:
                _leave_out(terms, left_out[part], np.arange(len(X))[rows])
            for total, block in zip(sums, terms, strict=True):
                total.add(block, None if values is None else values[part])
        store(rows, sums)

    with blocks.blas_threads(0.0):
        blocks.in_parallel(fill, chunks)


def _chunks(n_rows: int, n_centres: int) -> list[slice]:
    """Slices of rows, equally many for each thread."""
    most = max(16, min(CHUNK_ROWS, INNER_BYTES // (8 * n_centres)))
    return blocks.even_slices(n_rows, most)


def _leave_out(terms: list[Array], left_out: Array, rows: Array) -> None:
    """Take the terms of some pairs of centre and row away; `rows` is increasing."""
    place = np.minimum(np.searchsorted(rows, left_out), len(rows) - 1)
    centre, column = np.nonzero(rows[place] == left_out)
    for block in terms:
        block[centre, place[centre, column]] = -np.inf


class _Centres:
    """What all chunks of rows share: shifted centres, their norms, constants of the terms."""

    def __init__(
        self, gaussians: Gaussians, models: Sequence[CovarianceModel], n_rows: int
    ) -> None:
        self.gaussians = gaussians
        self.models = models
        self.d = min(max(model.n_components for model in models), gaussians.n_axes)
        self.rows = _shifted(gaussians, gaussians.centres)
        self.norms = row_norms(self.rows, squared=True)
        self.constants = [_constants(gaussians, model) for model in models]
        self.least_noise = min(model.noise_variance for model in models)
        # No Gaussian is higher at its centre, or wider.
        log_weights, variances = np.log(gaussians.weights), gaussians.variances
        self.peaks = [float((constants - log_weights).max()) for constants in self.constants]
        self.widths = [noise + float(variances[:, :d].max(initial=0.0)) for noise, d in models]
        self.groups = self._grouped(n_rows)

    def _grouped(self, n_rows: int) -> list[Array] | None:
        """Compact groups of centres, if there are many, and most are far from each other."""
        n_centres, n_features = self.rows.shape
        if n_features > FEW_FEATURES or min(n_rows, n_centres) < LEAST_GROUPED:
            return None
        groups = kd_tree_leaves(self.rows, GROUP_ROWS)
        self.low, self.high = bounding_boxes(self.rows, groups)
        reach = 2.0 * NEGLIGIBLE * max(self.widths)
        some = groups[:: max(1, len(groups) // SOME_GROUPS)]
        near = [box_distances(self.rows[group], self.low, self.high) < reach for group in some]
        return groups if np.mean(near) < 0.5 else None

    def terms(self, X: Array, sums: list[LogSum]) -> Iterator[tuple[Rows, list[Array]]]:
        """Blocks of centres, with log pi_i N(x; x_i, C_i) of shape (n_block, n_rows) a model.

        `sums` are those so far: groups of centres that cannot change them are left out.
        """
        groups = self._slices(len(X)) if self.groups is None else self._near_groups(X, sums)
        X = np.ascontiguousarray(X.T)
        norms = np.einsum("nr,nr->r", X, X)
        exact = _loss(float(norms.max()), self.least_noise) > MOST_LOST
        inner = self._inner(X) if self.gaussians.neighbors is not None and self.d else None
        for part in groups:
            distances = self._distances(part, X, norms, exact, inner)
            squares = self._squares(part, X, inner)
            yield part, [self._block(part, i, distances, squares) for i in range(len(self.models))]

    def _slices(self, n_rows: int) -> Iterator[Rows]:
        """Blocks whose numbers stay in the cache."""
        near = self.gaussians.neighbors
        width = 2 + self.d + (0 if near is None or not self.d else near.shape[1] + 2)
        size = max(1, BLOCK_BYTES // (8 * n_rows * width))
        for start in range(0, len(self.rows), size):
            yield slice(start, start + size)

    def _near_groups(self, X: Array, sums: list[LogSum]) -> Iterator[Rows]:
        """Groups from the nearest on, until the others add less than rounding to every sum."""
        groups = self.groups or []
        distances = box_distances(X, self.low, self.high)
        for g in np.argsort(distances, kind="stable"):
            if all(
                peak - 0.5 * distances[g] / width < total.largest.min() - NEGLIGIBLE
                for peak, width, total in zip(self.peaks, self.widths, sums, strict=True)
            ):
                return
            yield groups[g]

    def _inner(self, X: Array) -> Array:
        """Inner products of all centres with the rows, and a row of ones."""
        inner = np.ones((len(self.rows) + 1, X.shape[1]))
        np.matmul(self.rows, X, out=inner[:-1])
        return inner

    def _distances(
        self, part: Rows, X: Array, norms: Array, exact: bool, inner: Array | None
    ) -> Array:
        """|x - x_i|^2, from differences where products would lose too much."""
        if exact:
            return np.asarray(cdist(self.rows[part], X.T, "sqeuclidean"))
        products = self.rows[part] @ X if inner is None else inner[:-1][part].copy()
        distances = from_products(products, self.norms[part, None], norms)
        return np.asarray(np.maximum(distances, 0.0, out=distances))

    def _squares(self, part: Rows, X: Array, inner: Array | None) -> Array | None:
        """Squared projections (n_block, d, n_rows): on u_ij, or on s_ij u_ij."""
        g, d = self.gaussians, self.d
        if not d:
            return None
        factors, offsets = g.factors[part, : max(d, g.complete * g.n_axes)], g.offsets[part]
        if g.neighbors is None:
            n_centres, n_axes, n_features = factors.shape
            stacked = factors.reshape(-1, n_features).astype(np.float64, copy=False)
            along = (stacked @ X).reshape(n_centres, n_axes, -1)
            along -= offsets[:, :n_axes, None]
        else:
            mixing = np.empty((*factors.shape[:2], factors.shape[2] + 2))
            mixing[..., :-2] = factors
            mixing[..., -2] = -mixing[..., :-2].sum(axis=2)
            mixing[..., -1] = -offsets[:, :d]
            own = np.arange(len(self.rows))[part, None]
            ones = np.full_like(own, len(self.rows))
            places = np.hstack([g.neighbors[part], own, ones])
            along = mixing @ inner[places] if inner is not None else mixing
        along *= along
        return along

    def _block(self, part: Rows, i: int, distances: Array, squares: Array | None) -> Array:
        """The terms of one model."""
        noise, d = self.models[i].noise_variance, min(self.models[i].n_components, self.d)
        if squares is None or d == 0:
            terms = distances * (-0.5 / noise)
        else:
            terms = -0.5 * self._forms(part, noise, d, distances, squares)
        terms += self.constants[i][part, None]
        return terms

    def _forms(self, part: Rows, noise: float, d: int, distances: Array, squares: Array) -> Array:
        """q_i of each row."""
        g = self.gaussians
        spread = noise + g.variances[part]
        if g.complete:
            spread[:, d:] = noise
            # sum_j (u_j'(x - x_i))^2 / lambda_j
            return np.asarray((1.0 / spread[:, None, :] @ squares)[:, 0])
        gains = 1.0 / (noise * spread[:, None, :d])
        if g.neighbors is None:
            gains *= g.variances[part, None, :d]
        forms = distances / noise  # eq. 13.2: q_i
        forms -= (gains @ squares[:, :d])[:, 0]
        distances = distances / spread[:, :1]  # what is left at least
        return np.asarray(np.fmax(forms, distances, out=forms))  # inf - inf is inf here


def _constants(gaussians: Gaussians, model: CovarianceModel) -> Array:
    """Log pi_i - 1/2 [n log(2 pi) + sum_j log lambda_ij + (n - d) log sigma^2]."""
    variances = gaussians.variances[:, : model.n_components]
    volumes = log_volumes(variances, model.noise_variance, gaussians.centres.shape[1])
    constants: Array = np.log(gaussians.weights) - 0.5 * volumes  # eq. 13.1
    return constants


def log_volumes(variances: Array, noise_variance: float, n_features: int) -> Array:
    """Logarithm of |2 pi C|, n log(2 pi) + sum_j log lambda_j + (n - d) log sigma^2.

    Parameters
    ----------
    variances : ndarray of shape (..., d)
        Variances along the axes, without sigma^2.
    noise_variance : float
        sigma^2.
    n_features : int
        n.
    """
    d = variances.shape[-1]
    along = np.log(noise_variance + variances).sum(axis=-1)
    outside = (n_features - d) * np.log(noise_variance)
    return np.asarray(n_features * np.log(2.0 * np.pi) + along + outside)  # eq. 13.2
