"""Where vectors start: at centres of clusters, or at the rows that matching pursuit chooses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from pursuit._typing import Array
from pursuit._validation import Samples
from pursuit.dictionary import draw_candidates, n_candidate_rows, training_rows
from pursuit.greedy.make_pursuit import Method, make_pursuit
from pursuit.kernels import Kernel

__all__ = ["chosen_rows", "cluster_centres"]


def cluster_centres(samples: Samples, n: int, rng: Any) -> Array:
    """Means of clusters of the weighted rows."""
    means = KMeans(n, n_init=1, random_state=rng)
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: centres that coincide are moved apart.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = means.fit(samples.X, sample_weight=samples.weights).cluster_centers_
    return np.asarray(centres, dtype=np.float64)


def chosen_rows(kernel: Kernel, samples: Samples, n: int, rng: Any) -> Array:
    """Indices of the rows that pre-fitting matching pursuit chooses; others where it ends early."""
    n_rows = samples.X.shape[0]
    candidates = draw_candidates(np.arange(n_rows), n_candidate_rows(None, n_rows, n), rng)
    search = make_pursuit(training_rows(kernel, samples.X, candidates), samples, [n], Method())
    search.extend(n)
    picks = candidates[np.array(search.pursuits[0].pivots, dtype=int)]
    others = rng.permutation(np.setdiff1d(np.arange(n_rows), picks))
    return np.concatenate([picks, others])[:n]
