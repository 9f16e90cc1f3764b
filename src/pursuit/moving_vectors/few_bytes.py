"""Moved vectors within a budget of bytes: how many, in how many coordinates, how finely rounded.

Problem. A model's numbers are its vectors (N, p), the map to their coordinates (d, p) if it has
one, its coefficients (T, N) and constants (T,). For a budget of bytes choose N, p and the bytes of
a number, and round so that the outputs change little.

Steps.

1. For each rank p and precision that is allowed, N is the largest number of vectors that fits.
   Each such model is fitted for a few iterations to some rows; others, held out, choose.
2. Vectors and map are rounded; the best coefficients of the rounded vectors are found anew.
3. Coefficients are rounded one after another, and those that are left take up the error
   (``rounding.py``), with the Gram matrix of the squared error for H whatever the loss is.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.base.cross_validation import Rows, resolve_scorer
from pursuit.expansion.expansion import KernelExpansion
from pursuit.linalg.rounding import PRECISIONS, n_bytes, round_in_turn, rounded
from pursuit.losses import SquaredError
from pursuit.optimize.coefficients import Targets, normal_equations
from pursuit.optimize.kernel_blocks import BlockValues
from pursuit.optimize.variable_projection import Problem, Step

__all__ = [
    "Size",
    "best_size",
    "bytes_of",
    "kernel_arrays",
    "possible_sizes",
    "with_rounded_coefficients",
]

# Ranks and precisions that are tried, and the most vectors of a model. Of the ranks that leave room
# for as many vectors the largest ones are tried.
RANKS, CHOICES, MOST_VECTORS = (64, 48, 32, 24, 16, 8, 4, 2), ("int8", "float16"), 1000
MOST_RANKS = 4
# Rows that models are fitted to, and held out, while sizes are compared; iterations of each.
FITTED_ROWS, HELD_OUT_ROWS, HELD_OUT_SHARE, SEARCH_ITERATIONS = 10_000, 3000, 0.2, 15


class Size(NamedTuple):
    """Number of vectors, rank of the map or None, and how numbers are stored."""

    n_components: int
    metric: int | None
    precision: str

    def n_bytes(self, n_features: int, n_outputs: int) -> int:
        """Bytes of all numbers of such a model."""
        n, rank = self.n_components, self.metric
        width = n_features if rank is None else rank
        shapes = [(n, width), (n, n_outputs), *([] if rank is None else [(n_features, rank)])]
        constants = n_bytes((n_outputs, 1), "float32")
        return constants + sum(n_bytes(shape, self.precision) for shape in shapes)


def bytes_of(expansion: KernelExpansion, precision: str) -> int:
    """Bytes of the numbers of a model; a map that is a diagonal is in float32 at least."""
    atoms = expansion.atoms
    total = n_bytes(expansion.coefficients.T.shape, precision)
    total += n_bytes(np.shape(atoms.centres), precision)
    constants = "float64" if precision == "float64" else "float32"
    total += n_bytes((len(expansion.intercept), 1), constants)
    total += kernel_bytes(atoms.kernel)
    scale = getattr(atoms, "scale", None)
    if scale is None:
        return total
    whole = scale.ndim == 2
    return total + n_bytes(
        scale.shape if whole else (len(scale), 1), precision if whole else constants
    )


def kernel_bytes(kernel: Any) -> int:
    """Bytes of the arrays of a kernel, which are not rounded."""
    return sum(value.nbytes for value in kernel_arrays(kernel))


def kernel_arrays(kernel: Any) -> list[Array]:
    """The numbers of the features, or the matrix, that a kernel was given."""
    held = getattr(kernel, "__dict__", {}).items()
    return [v for name, v in held if isinstance(v, np.ndarray) and not name.startswith("_")]


def possible_sizes(model: Any, samples: Samples) -> list[Size]:
    """The largest model of each rank and precision that may be chosen (step 1).

    Raises
    ------
    ValueError
        If none fits; the message says how many vectors would.
    """
    (n_rows, d), n_outputs = samples.X.shape, samples.Y.shape[1]
    own = kernel_bytes(model._resolved_kernel(samples))
    precisions = CHOICES if model.precision is None else (model.precision,)
    sizes, most = [], 0
    for rank in _ranks(model, d, n_outputs):
        room = model.max_bytes - (own if rank is None else 0)  # a map takes the place of its own
        for precision in precisions:
            held = _vectors_within(room, Size(1, rank, precision), d, n_outputs)
            most = max(most, held)
            auto = model.n_components == "auto"
            n = min(held, MOST_VECTORS, n_rows) if auto else int(model.n_components)
            if 0 < n <= held:
                sizes.append(Size(n, rank, precision))
    if not sizes:
        raise ValueError(f"max_bytes={model.max_bytes} holds {most} vectors at most")
    return sizes


def _ranks(model: Any, d: int, n_outputs: int) -> list[int | None]:
    """The ranks that are tried."""
    if model.metric != "auto":
        return [model.metric]
    smallest = model.precision or CHOICES[0]
    room = (
        rank
        for rank in RANKS
        if rank < d
        and _vectors_within(model.max_bytes, Size(1, rank, smallest), d, n_outputs) >= rank
    )
    return [None, *islice(room, MOST_RANKS)]


def _vectors_within(max_bytes: int, size: Size, d: int, n_outputs: int) -> int:
    """The largest number of vectors that fits, or 0: by bisection."""
    most = max_bytes // PRECISIONS[size.precision]  # a vector has at least one number
    return bisect_right(
        range(1, most + 1),
        max_bytes,
        key=lambda n: size._replace(n_components=n).n_bytes(d, n_outputs),
    )


def best_size(
    model: Any, samples: Samples, y: Any, sizes: list[Size], rng: Any
) -> tuple[Size, float]:
    """The size that held-out rows like best, and what rounding takes from its score on them."""
    order, seed = rng.permutation(samples.X.shape[0]), int(rng.randint(2**31 - 1))
    n_held = max(1, min(HELD_OUT_ROWS, int(HELD_OUT_SHARE * len(order))))
    rows, scorer = Rows(samples.X, y, samples.weights), resolve_scorer(model, model.scoring)
    held, fitted = rows.take(order[:n_held]), rows.take(order[n_held : n_held + FITTED_ROWS])

    def judged(size: Size) -> float:
        options: dict[str, Any] = size._asdict() | {"max_bytes": None, "random_state": seed}
        options["max_iter"] = min(model.max_iter, SEARCH_ITERATIONS)
        if hasattr(model, "class_weight"):
            options["class_weight"] = None  # the weights hold it already
        trial = clone(model).set_params(**options).set_callbacks()
        trial._trial = True
        return scorer(trial.fit(*fitted), held)

    scores = [judged(size) for size in sizes]
    best = int(np.argmax(scores))
    exact = judged(sizes[best]._replace(precision="float64"))
    return sizes[best], exact - scores[best]


def with_rounded_coefficients(problem: Problem, step: Step, precision: str) -> Step:
    """Step 3 for vectors that are rounded already."""
    place, found = step.place, step.coefficients
    values = BlockValues(problem.table, place)
    targets = Targets(problem.Y, problem.weights, SquaredError(), problem.intercept, exact=True)
    normal = normal_equations(values, place.kernel(place.Z, place.Z), targets)
    B = round_in_turn(found.B, normal.matrix, precision)
    b = found.b
    if problem.intercept:  # the mean outputs stay
        b = b + normal.level @ (found.B - B) / float(problem.weights.sum())
    return step._replace(coefficients=found._replace(B=B, b=rounded(b[:, None], "float32")[:, 0]))
