"""Transformers of scikit-learn that are u = (x - s) M: what stands in front of a model.

Two of them in a row are one: ((x - s) M - s') M' = (x - s - t) M M' with t M = s'. An imputer may
append columns that tell which numbers are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from pursuit._typing import Array
from pursuit.export.plain_model import before
from pursuit.moving_vectors.kernel_metric import KernelMetric

__all__ = ["Affine", "flat", "identity", "is_affine", "read_affine", "read_columns", "then"]


class Affine(NamedTuple):
    """x -> (x - shift) M, and what takes the place of missing numbers.

    Attributes
    ----------
    shift : ndarray of shape (n_features,)
        s.
    map : ndarray of shape (n_features,) or (n_features, rank)
        M, or its diagonal.
    fill : ndarray of shape (n_features,) or None
        Values for NaN.
    missing : ndarray of int of shape (n_features,) or None
        Of a column that is 1 where a number is missing: which one; -1 of the others.
    """

    shift: Array
    map: Array
    fill: Array | None = None
    missing: Array | None = None


def identity(n_features: int) -> Affine:
    """The map that leaves x as it is."""
    return Affine(np.zeros(n_features), np.ones(n_features))


def then(first: Affine, second: Affine) -> Affine:
    """One after the other.

    Raises
    ------
    ValueError
        If no shift of x does what the second one's does.
    """
    first = _widened(first, second)
    t = before(first.map, second.shift)
    reached = t * first.map if first.map.ndim == 1 else t @ first.map
    if not np.allclose(reached, second.shift, rtol=1e-10, atol=1e-10 * np.abs(t).max(initial=1.0)):
        raise ValueError("export: a transformer shifts features that the one before it removes")
    both = _product(first.map, second.map)
    return Affine(first.shift + t, both, _fill(first, second), first.missing)


def _widened(first: Affine, second: Affine) -> Affine:
    """The first map with the columns that the second one adds."""
    if second.missing is None:
        return first
    if first.map.ndim == 2 or first.missing is not None:
        raise ValueError("export: one SimpleImputer, in front of what mixes the features, will do")
    added = len(second.missing) - len(first.shift)
    shift = np.concatenate([first.shift, np.zeros(added)])
    return Affine(shift, np.concatenate([first.map, np.ones(added)]), first.fill, second.missing)


def _product(one: Array, other: Array) -> Array:
    """Two maps, each full or a diagonal."""
    if one.ndim == 1:
        return one * other if other.ndim == 1 else one[:, None] * other
    return np.asarray(one * other if other.ndim == 1 else one @ other)


def _fill(first: Affine, second: Affine) -> Array | None:
    """Values for NaN in front of both; scalers leave NaN as it is."""
    if second.fill is None or first.fill is not None:
        return first.fill
    if first.map.ndim == 2:
        raise ValueError("export: a SimpleImputer must stand in front of what mixes the features")
    return first.shift + before(first.map, second.fill)


def _standard(step: Any, d: int) -> Affine:
    shift = step.mean_ if step.with_mean else np.zeros(d)  # learnt even where it is not taken
    return Affine(shift, np.ones(d) if step.scale_ is None else 1.0 / step.scale_)


def _min_max(step: Any, d: int) -> Affine:
    if step.clip:
        raise ValueError("export: MinMaxScaler(clip=True) is no linear map; use clip=False")
    return Affine(-step.min_ / step.scale_, step.scale_)


def _robust(step: Any, d: int) -> Affine:
    shift = np.zeros(d) if step.center_ is None else step.center_
    return Affine(shift, np.ones(d) if step.scale_ is None else 1.0 / step.scale_)


def _principal(step: Any, d: int) -> Affine:
    map = step.components_.T
    if step.whiten:
        map = map / np.sqrt(step.explained_variance_)
    return Affine(step.mean_, map)


def _imputer(step: Any, d: int) -> Affine:
    fill = np.asarray(step.statistics_, dtype=np.float64)
    if np.isnan(fill).any() or not _is_nan(step.missing_values):
        raise ValueError(
            "export: a SimpleImputer must have missing_values=nan and a value for each column"
        )
    told = step.indicator_.features_ if step.add_indicator else np.zeros(0, dtype=int)
    if not len(told):
        return identity(d)._replace(fill=fill)
    fill = np.concatenate([fill, np.zeros(len(told))])
    return identity(len(fill))._replace(fill=fill, missing=np.append(np.full(d, -1), told))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and bool(np.isnan(value))


def _function(step: Any, d: int) -> Affine:
    if step.func is not None:
        raise ValueError("export: a FunctionTransformer holds code of Python; apply it beforehand")
    return identity(d)


_READERS: dict[type, Callable[[Any, int], Affine]] = {
    StandardScaler: _standard,
    MinMaxScaler: _min_max,
    MaxAbsScaler: lambda step, d: Affine(np.zeros(d), 1.0 / step.scale_),
    RobustScaler: _robust,
    PCA: _principal,
    TruncatedSVD: lambda step, d: Affine(np.zeros(d), step.components_.T),
    KernelMetric: lambda step, d: Affine(np.zeros(d), step._scale.astype(np.float64)),
    SimpleImputer: _imputer,
    FunctionTransformer: _function,
}

# Those whose outputs are sums over several features.
MIXING = (PCA, TruncatedSVD, KernelMetric)


def read_affine(step: Any, n_features: int) -> Affine:
    """What a fitted transformer does to rows.

    Parameters
    ----------
    step : transformer
        Fitted; ``"passthrough"`` or None for nothing.
    n_features : int
        Number of its inputs.

    Raises
    ------
    ValueError
        If it is not of the form (x - s) M.
    """
    if step is None or isinstance(step, str):
        return identity(n_features)
    reader = next((_READERS[kind] for kind in type(step).__mro__ if kind in _READERS), None)
    if reader is None:
        known = ", ".join(sorted(kind.__name__ for kind in _READERS))
        raise ValueError(
            f"export: {type(step).__name__} in front of the model cannot be exported; apply it to "
            f"the rows beforehand, or use one of {known}"
        )
    return reader(step, n_features)


def is_affine(step: Any) -> bool:
    """Whether `read_affine` knows the kind of a transformer."""
    nothing = step is None or isinstance(step, str)
    return nothing or any(kind in _READERS for kind in type(step).__mro__)


def flat(step: Any) -> list[Any]:
    """The steps of pipelines within pipelines."""
    if not isinstance(step, Pipeline):
        return [step]
    return [inner for _, part in step.steps for inner in flat(part)]


def read_columns(step: ColumnTransformer) -> tuple[Affine, tuple[str, ...]]:
    """What a fitted `ColumnTransformer` does to its own outputs before they were scaled.

    The inputs are those of the last steps that are scalers: numbers of a column as they are, and
    what an encoder of categories or dates gives.

    Returns
    -------
    affine : Affine
        From these inputs to the outputs.
    names : tuple of str
        Of the inputs, by ``get_feature_names_out``.
    """
    pieces = []
    for name, part, _ in step.transformers_:
        place = step.output_indices_[name]
        if place.stop > place.start:
            pieces.append(_moved(_scaled(part, place.stop - place.start), place.start))
    fill = np.concatenate(
        [np.full(len(p.shift), np.nan) if p.fill is None else p.fill for p in pieces]
    )
    shift, diagonal = (np.concatenate([piece[k] for piece in pieces]) for k in (0, 1))
    missing = np.concatenate([piece.missing for piece in pieces])
    names = tuple(str(name) for name in step.get_feature_names_out())
    whole = Affine(shift, diagonal, None if np.isnan(fill).all() else fill)
    return whole._replace(missing=missing if (missing >= 0).any() else None), names


def _moved(piece: Affine, start: int) -> Affine:
    """The same with columns that are told from another first one."""
    if piece.missing is None:
        return piece._replace(missing=np.full(len(piece.shift), -1))
    return piece._replace(missing=np.where(piece.missing < 0, -1, piece.missing + start))


def _scaled(part: Any, width: int) -> Affine:
    """The scalers at the end of the steps of one group of columns."""
    steps = flat(part)
    first = len(steps)
    while first and is_affine(steps[first - 1]) and not isinstance(steps[first - 1], MIXING):
        first -= 1
    added = sum(_n_added(one) for one in steps[first:])
    found = identity(width - added)
    for one in steps[first:]:
        found = then(found, read_affine(one, len(found.shift)))
    return found


def _n_added(step: Any) -> int:
    """Number of columns that a step adds."""
    indicator = getattr(step, "indicator_", None)
    return 0 if indicator is None else len(indicator.features_)
