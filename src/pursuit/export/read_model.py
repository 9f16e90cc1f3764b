"""Any fitted model with a kernel expansion as a plain record: see `pursuit.export.plain_model`.

A scaler or another linear map in front of the model is put into its maps, a linear model behind
features of kernels into their coefficients, and the scaling of a target, too:

    g(f) = W (f - s) M + c  of  f = b + sum_k a_k K(., z_k)   has the coefficients  a_k M W.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import OutlierMixin, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.validation import check_is_fitted

from pursuit import kernels
from pursuit._typing import Array
from pursuit.base.estimators import ExpansionClassifier, ExpansionRegressor
from pursuit.decomposition._landmarks import LandmarkTransformer
from pursuit.expansion.basis_functions import Atoms, MixedAtoms
from pursuit.export.affine import Affine, flat, identity, read_affine, read_columns, then
from pursuit.export.plain_model import Part, PlainModel
from pursuit.geometry.linear_maps import image
from pursuit.losses import Poisson
from pursuit.moving_vectors.one_class import SparseOneClass
from pursuit.moving_vectors.projected import ProjectedAtoms
from pursuit.sparse_bayes.relevance_vector import RelevanceVectorClassifier
from pursuit.svm.compression import CompressedClassifier, CompressedOutlierDetector

__all__ = ["plain"]

KERNELS = (
    kernels.Linear,
    kernels.Polynomial,
    kernels.RBF,
    kernels.Laplacian,
    kernels.ChiSquared,
    kernels.Sigmoid,
    kernels.Cosine,
    kernels.CosinePolynomial,
    kernels.Mahalanobis,
)
LINEAR_CLASSIFIERS = (LogisticRegression, RidgeClassifier, RidgeClassifierCV, SGDClassifier)
LINEAR_REGRESSORS = (LinearRegression, Ridge, RidgeCV, Lasso, LassoCV, ElasticNet, ElasticNetCV)
LINEAR = (
    *LINEAR_CLASSIFIERS,
    *LINEAR_REGRESSORS,
    SGDRegressor,
    HuberRegressor,
    LinearSVC,
    LinearSVR,
)
# What to use in place of a model that is no expansion.
INSTEAD = (
    "only models with a kernel expansion can be exported: KernelMatchingPursuit*, SparseKernel*, "
    "SparseLargeMarginClassifier, ReducedSet*, RelevanceVector*, SparseOneClass, SparseKernelPCA, "
    "GreedyNystroem, or any kernel machine of scikit-learn after pursuit.compress"
)


def plain(model: Any) -> PlainModel:
    """Describe a fitted model by plain values.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package with a kernel expansion; a Pipeline with linear maps in
        front of it (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, TruncatedSVD,
        `KernelMetric`, SimpleImputer) and, behind `GreedyNystroem` or `SparseKernelPCA`, a linear
        model of scikit-learn; a TransformedTargetRegressor around one of these whose transformer is
        a scaler; a search that holds one as ``best_estimator_``. A ColumnTransformer may be the
        first step: the inputs are then the columns that it gives, those of numbers before they are
        scaled.

    Returns
    -------
    description : PlainModel
        In float64.

    Raises
    ------
    ValueError
        If the model is no expansion or a step in front of it is no linear map; the message names
        what to use.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from pursuit import KernelMatchingPursuitClassifier
    >>> from pursuit.export.plain_model import outputs, predictions
    >>> from pursuit.export.read_model import plain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), KernelMatchingPursuitClassifier(10)).fit(X, y)
    >>> description = plain(model)
    >>> description.rule, description.n_vectors
    ('largest', 10)
    >>> bool((predictions(description, outputs(description, X)) == model.predict(X)).all())
    True
    """
    if isinstance(model, (GridSearchCV, RandomizedSearchCV)):
        return plain(model.best_estimator_)
    check_is_fitted(model)
    if isinstance(model, TransformedTargetRegressor):
        return _with_target(plain(model.regressor_), model)
    steps = flat(model)
    at = next((i for i, step in enumerate(steps) if hasattr(step, "expansion_")), None)
    if at is None:
        raise ValueError(f"export: {type(steps[-1]).__name__} is no kernel expansion; {INSTEAD}")
    way, names = _way(steps[:at], model, steps[at])
    return _followed(_expanded(steps[at], way, names), steps[at + 1 :])


def _way(steps: list[Any], model: Any, own: Any) -> tuple[Affine, tuple[str, ...]]:
    """The linear map in front of an expansion, and the names of its inputs."""
    if steps and isinstance(steps[0], ColumnTransformer):
        way, names = read_columns(steps[0])
        steps = steps[1:]
    else:
        width = int(getattr(model, "n_features_in_", own.n_features_in_))
        way, names = identity(width), _names(model, width)
    for step in steps:
        way = then(way, read_affine(step, _width(way)))
    return way, names


def _width(way: Affine) -> int:
    """Number of outputs of a map."""
    return int(way.map.shape[-1])


def _names(model: Any, width: int) -> tuple[str, ...]:
    """Names of the features, or x0, x1, ... as scikit-learn calls them."""
    given = getattr(model, "feature_names_in_", None)
    return tuple(f"x{j}" for j in range(width)) if given is None else tuple(map(str, given))


# --- the expansion ------------------------------------------------------------------------------


def _expanded(model: Any, way: Affine, names: tuple[str, ...]) -> PlainModel:
    """The record of an estimator behind a linear map."""
    expansion = model.expansion_
    weights = np.asarray(expansion.coefficients, dtype=np.float64).T
    parts = tuple(part for part in _parts(expansion.atoms, weights, way) if len(part.vectors))
    intercept = np.asarray(expansion.intercept, dtype=np.float64)
    record = PlainModel("transformer", parts, intercept, names, fill=way.fill)
    if way.missing is not None:
        record = _told(record, way.missing)
    return replace(record, **_form(model, record))


def _told(record: PlainModel, missing: Array) -> PlainModel:
    """The columns that tell of missing numbers behind all features."""
    kept, told = np.flatnonzero(missing < 0), np.flatnonzero(missing >= 0)
    order = np.concatenate([kept, told])
    names = record.features
    return replace(
        record,
        parts=tuple(_reordered(part, order) for part in record.parts),
        features=tuple(names[j] for j in kept) if len(names) > len(kept) else names,
        fill=None if record.fill is None else record.fill[kept],
        indicated=tuple(np.searchsorted(kept, missing[told]).tolist()),
    )


def _reordered(part: Part, order: Array) -> Part:
    """The same functions of columns in another order."""
    moved = replace(part, shift=part.shift[order], map=part.map[order])
    return moved if part.map.ndim == 2 else replace(moved, vectors=part.vectors[:, order])


def _parts(atoms: Any, coefficients: Array, way: Affine) -> list[Part]:
    """Kernel functions of each kernel."""
    if isinstance(atoms, MixedAtoms):
        places = atoms._places()
        return [part for one, at in places for part in _parts(one, coefficients[at], way)]
    if not isinstance(atoms, (Atoms, ProjectedAtoms)) or not isinstance(atoms.kernel, KERNELS):
        what = atoms.kernel if isinstance(atoms, Atoms) else type(atoms).__name__
        known = ", ".join(kind.__name__ for kind in KERNELS)
        raise ValueError(f"export: functions of the kind {what} cannot be exported, but {known}")
    if isinstance(atoms, ProjectedAtoms):
        scale = np.asarray(atoms.scale, dtype=np.float64)
        way = then(way, Affine(np.zeros(len(scale)), scale))
    kernel, inner = atoms.kernel.split()
    centres = _dense(atoms.centres)
    if inner is not None:  # one width a feature, or a matrix
        way, centres = then(way, Affine(np.zeros(len(inner)), inner)), image(centres, inner)
    return [Part(kernel, way.shift, way.map, centres, coefficients)]


def _dense(table: Any) -> Array:
    return np.asarray(table.toarray() if sparse.issparse(table) else table, dtype=np.float64)


def _form(model: Any, record: PlainModel) -> dict[str, Any]:
    """What the model makes of its outputs."""
    if isinstance(model, CompressedClassifier):
        return _voting(model)
    if isinstance(model, ExpansionClassifier):
        sigmoids = isinstance(model, RelevanceVectorClassifier)
        form = _classes(
            model.classes_, len(record.intercept), "sigmoids" if sigmoids else "softmax"
        )
        return form | {"temperature": 1.0 if sigmoids else float(model.temperature_)}
    if isinstance(model, ExpansionRegressor):
        return _regression(model)
    if isinstance(model, (SparseOneClass, CompressedOutlierDetector)):
        return _detection(model, record)
    if not isinstance(model, LandmarkTransformer) or isinstance(model, OutlierMixin):
        raise ValueError(f"export: {type(model).__name__} is not known; {INSTEAD}")
    return {}


def _classes(classes: Array, n_outputs: int, kind: str | None) -> dict[str, Any]:
    """A classifier with one output, or one a class."""
    rule = "sign" if n_outputs == 1 else "largest"
    return {"task": "classifier", "rule": rule, "classes": classes, "probabilities": kind}


def _voting(model: Any) -> dict[str, Any]:
    """A compressed classifier: votes of pairs."""
    form = _classes(model.classes_, 1, None)
    if len(model.classes_) == 2:
        return form | {"zero_is_positive": True}
    rule = "vote_values" if model._break_ties else "votes"
    if model._break_ties and not model._one_a_class:
        raise ValueError("export: break_ties must be False when decision_function_shape is 'ovo'")
    return form | {"rule": rule, "one_value_a_class": model._one_a_class}


def _regression(model: Any) -> dict[str, Any]:
    """A regressor and its link."""
    loss = getattr(model, "loss_", None)
    probe = np.array([[-1.0, 0.5]])
    if not isinstance(loss, Poisson) and loss is not None and (loss.mean(probe) != probe).any():
        raise ValueError(f"export: the mean under {type(loss).__name__} is code of Python")
    link = "exp" if isinstance(loss, Poisson) else "identity"
    return {"task": "regressor", "link": link, "one_dimensional": bool(model._one_dimensional)}


def _detection(model: Any, record: PlainModel) -> dict[str, Any]:
    """An outlier detector: its decision values are the outputs."""
    form = {"task": "outlier_detector", "rule": "sign"}
    offset = float(np.ravel(model.offset_)[0])
    if isinstance(model, CompressedOutlierDetector):
        return form | {"offset": offset}
    moved = record.intercept - offset
    return form | {"offset": offset, "intercept": moved, "zero_is_positive": True}


# --- what follows -------------------------------------------------------------------------------


def _followed(record: PlainModel, steps: list[Any]) -> PlainModel:
    """Put linear maps, and at the end a linear model, behind features into their coefficients."""
    for step in steps:
        if record.task != "transformer":
            raise ValueError(f"export: nothing may follow a {record.task} in a Pipeline")
        if isinstance(step, LINEAR):
            record = _with_linear_model(record, step)
        else:
            shift, map, *_ = read_affine(step, len(record.intercept))
            W = np.diag(map) if map.ndim == 1 else map
            record = _through(replace(record, intercept=record.intercept - shift), W, 0.0)
    return record


def _through(record: PlainModel, W: Array, constant: Any) -> PlainModel:
    """The model of f W + c."""
    parts = tuple(replace(part, coefficients=part.coefficients @ W) for part in record.parts)
    return replace(record, parts=parts, intercept=record.intercept @ W + constant)


def _with_linear_model(record: PlainModel, model: Any) -> PlainModel:
    """A linear model on features of kernels."""
    W = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
    record = _through(record, W, np.broadcast_to(model.intercept_, W.shape[1]))
    if is_regressor(model):
        return replace(record, task="regressor", one_dimensional=np.ndim(model.coef_) == 1)
    if not is_classifier(model) or np.ndim(model.classes_) != 1:
        raise ValueError(f"export: {type(model).__name__} of several labels a row")
    return replace(record, **_classes(model.classes_, W.shape[1], _probabilities(model)))


def _probabilities(model: Any) -> str | None:
    """How a linear model of scikit-learn forms probabilities."""
    if isinstance(model, SGDClassifier):
        return "sigmoids" if model.loss == "log_loss" else None
    if not isinstance(model, LogisticRegression):
        return None
    return "sigmoids" if model.solver == "liblinear" else "softmax"


def _with_target(record: PlainModel, model: Any) -> PlainModel:
    """Undo the scaling of a target: y = f / m + s."""
    shift, map, *_ = read_affine(model.transformer_, len(record.intercept))
    if record.link != "identity" or map.ndim != 1:
        raise ValueError("export: the target may be scaled feature by feature under squared error")
    record = _through(record, np.diag(1.0 / map), shift)
    return replace(record, one_dimensional=model._training_dim == 1)
