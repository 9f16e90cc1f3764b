"""Which estimators can be fitted on collections, and by what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pursuit.base.cross_validation import CrossValidated
from pursuit.decomposition.kernel_pca import SparseKernelPCA
from pursuit.decomposition.nystroem import GreedyNystroem
from pursuit.distributed import landmarks, matching_pursuit, moving_vectors
from pursuit.matching_pursuit.streams import FitsStatistics
from pursuit.moving_vectors.estimators import MovingVectors

__all__ = ["fit"]

FITS: dict[type[Any], Callable[..., Any]] = {
    FitsStatistics: matching_pursuit.fit,
    MovingVectors: moving_vectors.fit,
    SparseKernelPCA: landmarks.fit_kernel_pca,
    GreedyNystroem: landmarks.fit_nystroem,
}


def fit(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Fit an estimator on collections.

    Parameters
    ----------
    model : estimator
        One of those below.
    X, y, sample_weight : dask collections
        Rows, targets where the estimator has any, and weights.

    Returns
    -------
    model : estimator
        Fitted; its attributes are in memory.

    Raises
    ------
    ValueError
        If it is none of those, or asks for more than blocks can tell; the message names what.
    """
    for kind, way in FITS.items():
        if isinstance(model, kind) and not isinstance(model, CrossValidated):
            return way(model, X, y, sample_weight)
    raise ValueError(
        f"{type(model).__name__} needs its rows in memory to be fitted: X.compute(), or some rows "
        "that stand for all; it predicts on dask collections"
    )
