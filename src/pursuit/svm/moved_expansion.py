"""Few vectors in place of many, moved to where a machine's values change least.

Problem. A machine computes T functions f_t = Psi_t + b_t, Psi_t = sum_i a_it K(x_i, .). On rows u_i
with weights w_i find N vectors and functions g_t on them, all T on the same vectors, that minimise

    W(Z) = 1/2 sum_t |g_t|^2 / s_t^2 + C sum_i w_i sum_t (g_t(u_i) - f_t(u_i))^2 / s_t^2,

the energy of ``variable_projection.py`` with the machine's values as targets: coefficients and
constants are always the best ones for the vectors, so L-BFGS moves the vectors alone.

===========  =================  ===========================================================
symbol       name in code       shape and meaning
===========  =================  ===========================================================
x, a, b      ``model``          (m, d), (m, T), (T,) the machine's functions
u, f(u), w   ``known``          (n, d), (n, T), (n,) rows, the machine's values there, weights
s            ``units``          (T,) one, or the deviations of the values where each counts alike
Z            ``Z``              (N, d) the vectors
===========  =================  ===========================================================

Steps.

1. Rows: the given ones and the machine's own vectors, near which its functions bend; a vector that
   is a row counts twice. Where these are few, or all are vectors, more are drawn, each from a
   Gaussian around one of them, as wide as the nearest other is far:

       u = u_i + |u_i - u_near(i)| e / sqrt(d),   e ~ N(0, I),

   for the machine gives values wherever it is asked. They weigh a fifth.
2. C sum_i w_i var f = `TRUST` sum_t |Psi_t|^2: the values have no noise, so the error on the rows
   weighs a hundred thousand times what the norm does, each measured against what the machine has.
3. Starts: rows drawn in proportion to their weights, and where that is cheap two draws and the
   reduced set; the lowest W is kept. The way is that of ``optimize/moving.py``.

Cost: n m d for the values; 2 n N (2 d + N + 2 T) for each iteration.

Where we differ. The distance in the feature space (``reduction.py``) weighs all of the space alike;
in trials on two and on eighteen features its vectors had up to three times the test error of these,
also where rows were drawn and not given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.geometry.linear_maps import image, preimage
from pursuit.geometry.nearest import NearestRows
from pursuit.geometry.unique_rows import distinct_rows, equal_rows
from pursuit.kernels import Kernel
from pursuit.losses import SquaredError
from pursuit.optimize.kernel_blocks import Place, Table
from pursuit.optimize.moving import Plan, move, origin, precision
from pursuit.optimize.variable_projection import Descent, Free, Problem
from pursuit.svm.from_sklearn import KernelModel
from pursuit.svm.reduction import (
    Reduction,
    distinct,
    function_products,
    reduce_expansion,
    squared_errors,
)

__all__ = ["drawn_rows", "move_expansion"]

# What the squared error of the values weighs, when the squared norm weighs one.
TRUST = 1e5
# Fewer rows than this are made up to so many by drawn ones, of this weight; where none are given,
# there are drawn so many, or so many a vector.
MANY_ROWS, DRAWN_WEIGHT, DRAWN_A_VECTOR = 2000, 0.2, 2
# Sparse rows of no more numbers than this, zeros included, are made dense.
MOST_DENSE = 20_000_000
# Draws of a start beside the reduced set, where m N d is no more than this.
N_DRAWS, CHEAP = 2, 1e6
# Relative fall of W an iteration at which the descent ends.
FALL = 1e-4


def move_expansion(
    model: KernelModel,
    n_vectors: int,
    samples: Samples | None,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    equal: bool = False,
    free_constant: bool = True,
) -> tuple[Reduction, Array]:
    """Move vectors to where a machine's values on rows change least.

    Parameters
    ----------
    model : KernelModel
        The machine.
    n_vectors : int
        The budget N.
    samples : Samples or None
        Rows, the machine's values there, and weights; None: rows are drawn.
    tol : float, default 1e-3
        Relative error in the feature space at which fewer vectors do; where `reduce_expansion`
        reaches it with fewer, what it finds is returned.
    max_iter : int, default 100
        Iterations at most.
    equal : bool, default False
        Whether each function counts alike, whatever its range.
    free_constant : bool, default True
        Whether the constants are fitted; else they stay the machine's.

    Returns
    -------
    reduction : Reduction
        Vectors and coefficients.
    intercept : ndarray of shape (T,)
        Constants.

    Raises
    ------
    ValueError
        If the kernel is of no use, or rows are to be drawn between sparse vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.kernels import RBF
    >>> from pursuit.svm.from_sklearn import KernelModel
    >>> from pursuit.svm.moved_expansion import move_expansion
    >>> X = np.array([[0.0], [0.2], [5.0]])
    >>> model = KernelModel("regressor", RBF(1.0), X, np.ones((3, 1)), np.zeros(1))
    >>> small, constant = move_expansion(model, 2, None)
    >>> np.sort(small.vectors, axis=0).round(1).tolist(), bool(small.relative_error < 0.05)
    ([[0.1], [5.0]], True)
    """
    kernel, (vectors, A) = model.kernel, distinct(model.vectors, model.coefficients)
    vectors = _dense(vectors) if vectors.shape[0] > n_vectors else vectors
    cheap = float(vectors.shape[0]) * n_vectors * vectors.shape[1] <= CHEAP
    reduced = reduce_expansion(
        kernel, vectors, A, n_vectors, tol=tol, max_iter=max_iter if cheap else 0, equal=equal
    )
    if reduced.stop_reason != "n_components":
        return reduced, model.intercept
    rng = np.random.RandomState(0)
    samples = samples and samples._replace(X=_dense(samples.X))
    model = model._replace(vectors=vectors, coefficients=A)
    own = function_products(kernel, vectors, A)
    known = _known(model, own, samples, rng)
    units = _deviations(known) if equal else np.ones(A.shape[1])
    units = np.where(units > 0, units, 1.0)
    squared_norms = np.maximum((A * own).sum(axis=0), 0.0)
    known = _weighed(known, float((squared_norms / units**2).sum()), model.intercept, units)
    search = _Search(kernel, known, n_vectors, free_constant)
    draws = [search.draw(rng) for _ in range(N_DRAWS if cheap else 1)]
    starts = [*draws, image(reduced.vectors - search.centre, search.scale)] if cheap else draws
    found = min((search.run(Z, max_iter, rng) for Z in starts), key=_energy)
    Z, beta = search.told(found.best.place.Z), units * found.best.coefficients.B
    errors = squared_errors(kernel, Z, beta, vectors, A, squared_norms)
    small = reduced._replace(
        vectors=Z,
        coefficients=beta,
        n_iter=found.n_before + len(found.values) - 1,
        **_relative(errors, squared_norms),
    )
    return small, model.intercept + units * found.best.coefficients.b


def _relative(errors: Array, squared_norms: Array) -> dict[str, Any]:
    """Relative errors of all functions together and of each."""
    norms = np.where(squared_norms > 0, squared_norms, 1.0)
    total = float(np.sqrt(errors.sum() / (squared_norms.sum() or 1.0)))
    return {"relative_error": total, "relative_errors": np.sqrt(errors / norms)}


def _dense(X: Any) -> Any:
    """Sparse rows as dense ones, where they are not many numbers."""
    small = sparse.issparse(X) and X.shape[0] * X.shape[1] <= MOST_DENSE
    return X.toarray() if small else X


def _energy(descent: Descent) -> float:
    """The lowest W of a descent."""
    return float(descent.best.value)


def drawn_rows(X: Array, n: int, rng: Any) -> Array:
    """Rows around given ones, each about as far away as the nearest other one is.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        At least two rows.
    n : int
        Number of rows to draw.
    rng : RandomState
        Draws them.
    """
    nearest = NearestRows(X).search(X, 1, np.arange(len(X)))[:, 0]
    widths = np.linalg.norm(X - X[nearest], axis=1) / np.sqrt(X.shape[1])
    picks = rng.randint(len(X), size=n)
    return np.asarray(X[picks] + widths[picks, None] * rng.normal(size=(n, X.shape[1])))


def _known(model: KernelModel, own: Array, samples: Samples | None, rng: Any) -> Samples:
    """Given rows, the machine's vectors and drawn rows, with the values there (step 1)."""
    known = Samples(model.vectors, own + model.intercept, np.ones(len(own)))
    n_drawn = max(MANY_ROWS, DRAWN_A_VECTOR * len(own))
    if samples is not None:
        known = _united(samples, known)
        n_drawn = MANY_ROWS - len(known.weights)
    elif sparse.issparse(model.vectors):
        raise ValueError("refit='move' needs X where the machine has many sparse vectors")
    if n_drawn <= 0 or sparse.issparse(known.X):
        return known
    return _with_drawn(known, model, drawn_rows(known.X, n_drawn, rng))


def _united(samples: Samples, own: Samples) -> Samples:
    """Rows and the machine's vectors, which weigh as a mean row; equal ones are one row."""
    share = samples.weights.sum() / len(equal_rows(samples.X)[0])
    weights = np.concatenate([samples.weights, share * own.weights])
    X, weights, places = distinct_rows(_stacked(samples.X, own.X), weights)
    Y = np.empty((len(weights), own.Y.shape[1]))
    Y[places] = np.vstack([samples.Y, own.Y])
    return Samples(X, Y, weights)


def _with_drawn(known: Samples, model: KernelModel, drawn: Array) -> Samples:
    """The rows and drawn ones, which weigh less."""
    share = np.full(len(drawn), DRAWN_WEIGHT * float(known.weights.mean()))
    Y = np.vstack([known.Y, model.functions(drawn)])
    return Samples(np.vstack([known.X, drawn]), Y, np.concatenate([known.weights, share]))


def _stacked(X: Any, Z: Any) -> Any:
    """Rows over rows, sparse where either are."""
    if sparse.issparse(X) or sparse.issparse(Z):
        return sparse.vstack([X, Z], format="csr")
    return np.vstack([X, Z])


def _deviations(known: Samples) -> Array:
    """Standard deviations of the values."""
    shares = known.weights / known.weights.sum()
    return np.asarray(np.sqrt(shares @ (known.Y - shares @ known.Y) ** 2))


def _weighed(known: Samples, squared_norm: float, b: Array, units: Array) -> Samples:
    """The values less the constants in their units, and the weights times C (step 2)."""
    varied = float(known.weights.sum() * np.square(_deviations(known) / units).sum())
    C = TRUST * squared_norm / varied if varied > 0 else 1.0
    return known._replace(Y=(known.Y - b) / units, weights=C * known.weights)


class _Search:
    """The energy on given rows, and its descent."""

    def __init__(self, kernel: Kernel, known: Samples, n_vectors: int, free_constant: bool) -> None:
        self.n_vectors, self.centre = n_vectors, origin(kernel, known)
        self.kernel, self.scale = kernel.split()
        dtype = precision(self.kernel, known, n_vectors, self.centre, self.scale)
        table = Table(known.X, self.centre, dtype, self.scale)
        self.problem = Problem(table, known.Y, known.weights, SquaredError(), free_constant)

    def draw(self, rng: Any) -> Array:
        """Rows in proportion to their weights, no row twice."""
        weights = self.problem.weights
        rows = rng.choice(len(weights), self.n_vectors, replace=False, p=weights / weights.sum())
        return np.asarray(self.problem.table.block(rows).astype(np.float64))

    def told(self, Z: Array) -> Array:
        """Vectors in the coordinates of the machine's."""
        return np.asarray(preimage(Z, self.scale) + self.centre)

    def run(self, Z: Array, max_iter: int, rng: Any) -> Descent:
        """The descent from a start."""
        return move(self.problem, Place(self.kernel, Z), Plan(max_iter, FALL, Free(), rng))
