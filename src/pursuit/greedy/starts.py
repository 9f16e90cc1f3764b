"""Where vectors that move start: random rows, centres of clusters, rows of a matching pursuit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.dictionary import draw_candidates, n_candidate_rows, training_rows
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.kernels import Kernel

__all__ = ["STARTS", "chosen_rows", "cluster_centres", "dense_rows", "random_rows"]

# What ``init`` may be called.
STARTS = ("random", "kmeans", "matching_pursuit")


def dense_rows(X: Any) -> Array:
    """Rows as a dense float64 array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def random_rows(samples: Samples, n: int, rng: Any) -> Array:
    """Rows drawn without replacement, in proportion to their weights."""
    shares = samples.weights / samples.weights.sum()
    return dense_rows(samples.X[rng.choice(len(shares), size=n, replace=False, p=shares)])


def cluster_centres(samples: Samples, n: int, rng: Any) -> Array:
    """Means of clusters of the weighted rows."""
    if n == 0:
        return np.empty((0, samples.X.shape[1]))
    means = KMeans(n, n_init=1, random_state=rng)
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: centres that coincide are moved apart.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = means.fit(samples.X, sample_weight=samples.weights).cluster_centers_
    return np.asarray(centres, dtype=np.float64)


def chosen_rows(kernel: Kernel, samples: Samples, budgets: list[int], rng: Any) -> list[Array]:
    """Rows that pre-fitting matching pursuit chooses for each basis; others where it ends early."""
    n_rows = samples.X.shape[0]
    number = n_candidate_rows(None, n_rows, sum(budgets))
    candidates = draw_candidates(
        np.arange(n_rows), number, rng, samples.X if number < n_rows else None
    )
    search = make_pursuit(training_rows(kernel, samples.X, candidates), samples, budgets, Method())
    search.extend(sum(budgets))
    found = []
    for pursuit, budget in zip(search.pursuits, budgets, strict=True):
        picks = candidates[np.array(pursuit.pivots, dtype=int)]
        others = rng.permutation(np.setdiff1d(np.arange(n_rows), picks))
        found.append(dense_rows(samples.X[np.concatenate([picks, others])[:budget]]))
    return found
