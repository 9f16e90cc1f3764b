"""Whatever the table, an estimator gives finite answers or one clear error of its own.

Hypothesis draws small tables of every awkward kind: duplicated and constant samples, scales from
1e-150 to 1e150, far clusters, single precision, integers, booleans, other memory layouts, memory
that may not be written, sparse matrices with duplicate entries and 64-bit indices, one sample, one
feature, fewer samples than features, zero weights, rare classes, NaN and infinity.
"""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor

import pursuit
from pursuit import (
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    ConvexKNeighborsClassifier,
    ConvexNetworkClassifier,
    DensityClassifier,
    GreedyNystroem,
    HyperplaneKNeighborsClassifier,
    HyperplaneKNeighborsRegressor,
    KernelCentroidClassifier,
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitClassifierCV,
    KernelMatchingPursuitRegressor,
    KernelMatchingPursuitRegressorCV,
    KernelMetric,
    KernelPCANovelty,
    LocalGaussianDensity,
    ManifoldParzenDensity,
    ManifoldParzenDensityCV,
    NadarayaWatsonRegressor,
    NearestFeatureLineClassifier,
    OnlineKernelClassifier,
    OnlineKernelRegressor,
    ParzenDensity,
    ReducedSetClassifier,
    ReducedSupportVectorClassifier,
    RelevanceVectorClassifier,
    RelevanceVectorRegressor,
    SparseKernelCCA,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelPCA,
    SparseKernelRegressor,
    SparseKernelRegressorCV,
    SparseLargeMarginClassifier,
    SparseOneClass,
)

EXAMPLES = int(os.environ.get("PURSUIT_EXAMPLES", "30"))

ESTIMATORS = [
    CompressedClassifier(n_components=3, max_iter=10),
    CompressedOutlierDetector(n_components=3, max_iter=10),
    CompressedRegressor(n_components=3, max_iter=10),
    ConvexKNeighborsClassifier(3),
    ConvexNetworkClassifier(max_iter=50, tol=1e-3),
    DensityClassifier(),
    GreedyNystroem(n_components=3),
    HyperplaneKNeighborsClassifier(3),
    HyperplaneKNeighborsRegressor(3),
    KernelCentroidClassifier(),
    KernelMatchingPursuitClassifier(3),
    KernelMatchingPursuitClassifierCV(3, cv=2, gammas=[0.5]),
    KernelMatchingPursuitRegressor(3),
    KernelMatchingPursuitRegressorCV(3, cv=2, gammas=[0.5]),
    KernelMetric(random_state=0),
    LocalGaussianDensity(3),
    ManifoldParzenDensity(2),
    ManifoldParzenDensityCV((2,)),
    NadarayaWatsonRegressor(),
    NearestFeatureLineClassifier(),
    OnlineKernelClassifier(3),
    OnlineKernelRegressor(3),
    ParzenDensity(),
    ReducedSetClassifier(3),
    ReducedSupportVectorClassifier(3, random_state=0),
    RelevanceVectorClassifier(3),
    RelevanceVectorRegressor(3),
    SparseKernelCCA(1, n_basis=3),
    SparseKernelClassifier(3, max_iter=5, random_state=0),
    SparseKernelClassifierCV(3, max_iter=2, gammas=[0.5, 1.0], Cs=[1.0], cv=2, random_state=0),
    KernelPCANovelty(3),
    SparseKernelPCA(3),
    SparseKernelRegressor(3, max_iter=5, random_state=0),
    SparseKernelRegressorCV(3, max_iter=2, gammas=[0.5, 1.0], Cs=[1.0], cv=2, random_state=0),
    SparseLargeMarginClassifier(2, tol=0.1, max_iter=10, random_state=0),
    SparseOneClass(3, max_iter=5, random_state=0),
]

KINDS = ("normal", "duplicates", "constant", "constant feature", "far clusters", "integers", "bool")
LAYOUTS = ("plain", "float32", "fortran", "read only", "csr", "csr with duplicates", "csr int64")


def base_table(kind, n, d, rng):
    """Give a table of one kind."""
    X = rng.normal(size=(n, d))
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "constant":
        X = np.full((n, d), X.flat[0])
    elif kind == "constant feature":
        X[:, 0] = 3.0
    elif kind == "far clusters":
        X += 1e7 * rng.integers(-1, 2, n)[:, None]
    elif kind in ("integers", "bool"):
        X = rng.integers(0, 2, (n, d)).astype(bool if kind == "bool" else int)
    return X


def laid_out(X, layout):
    """Give the same table in another type or layout of memory."""
    if layout == "float32":
        with np.errstate(over="ignore"):
            return X.astype(np.float32)
    if layout == "fortran":
        return np.asfortranarray(X)
    if layout == "read only":
        X = np.ascontiguousarray(X)
        X.flags.writeable = False
        return X
    if not layout.startswith("csr"):
        return X
    matrix = sparse.csr_array(X.astype(np.float64))
    if layout == "csr with duplicates":
        data, indices = np.repeat(matrix.data / 2, 2), np.repeat(matrix.indices, 2)
        matrix = sparse.csr_array((data, indices, 2 * matrix.indptr), shape=matrix.shape)
    if layout == "csr int64":
        matrix.indices = matrix.indices.astype(np.int64)
        matrix.indptr = matrix.indptr.astype(np.int64)
    return matrix


@st.composite
def problems(draw):
    """Draw a table, labels, targets and weights."""
    n = draw(st.sampled_from([1, 2, 5, 9, 16]))
    d = draw(st.sampled_from([1, 2, 12]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind, layout = draw(st.sampled_from(KINDS)), draw(st.sampled_from(LAYOUTS))
    X = base_table(kind, n, d, rng)
    if X.dtype.kind == "f":
        scale = draw(st.sampled_from([0, 0, 0, -150, -100, -20, -5, 5, 20, 100, 150]))
        X = X * 10.0**scale
        spoilt = draw(st.sampled_from([None] * 9 + [np.nan, np.inf]))
        if spoilt is not None:
            X.flat[-1] = spoilt
    labels = np.array(["b", "a", "c"])[rng.integers(0, draw(st.sampled_from([1, 2, 3])), n)]
    if draw(st.booleans()) and n > 1:
        labels[:] = "a"
        labels[-1] = "rare"
    weights = None
    if draw(st.booleans()):
        weights = rng.integers(0, 3, n).astype(float)
    return laid_out(X, layout), labels, rng.normal(size=n), weights


def finite(values):
    """Whether all numbers of an answer are finite."""
    if isinstance(values, tuple):
        return all(finite(part) for part in values)
    values = np.asarray(values)
    return values.dtype.kind not in "fc" or bool(np.isfinite(values).all())


def answers(model, X, Y):
    """Give every answer of a fitted model on some rows, by the method's name."""
    given = {}
    for method in ("predict", "decision_function", "predict_proba", "transform", "score_samples"):
        if hasattr(model, method):
            view = (X, Y) if isinstance(model, SparseKernelCCA) else (X,)
            given[method] = getattr(model, method)(*view)
    return given


def fitted(model, X, labels, numbers, weights):
    """Fit on what the estimator takes for targets."""
    if is_classifier(model):
        targets = (labels,)
    elif is_regressor(model) or isinstance(model, KernelMetric):
        targets = (numbers,)
    elif isinstance(model, SparseKernelCCA):
        targets = (numbers[:, None],)
    else:
        targets = ()
    weighted = weights is not None and "sample_weight" in model.fit.__code__.co_varnames
    return model.fit(X, *targets, **({"sample_weight": weights} if weighted else {}))


def untouched(X):
    """Give a copy of all numbers of a table."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return [np.array(part) for part in parts]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_finite_answers_or_one_clear_error(estimator):
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=EXAMPLES <= 200,
        suppress_health_check=list(HealthCheck),
    )
    @given(problems())
    def check(problem):
        X, labels, numbers, weights = problem
        before = untouched(X)
        model = clone(estimator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                fitted(model, X, labels, numbers, weights)
                given = answers(model, X, numbers[:, None])
            except ValueError as error:
                assert type(error) is ValueError, error
                assert str(error)
                return
            except TypeError as error:
                # scikit-learn's own way to say it, which its checks ask for.
                assert "dense data is required" in str(error)
                assert sparse.issparse(X)
                return
            finally:
                for now, then in zip(untouched(X), before, strict=True):
                    np.testing.assert_array_equal(now, then)
        for method, values in given.items():
            assert finite(values), method
        if "predict_proba" in given:
            np.testing.assert_allclose(given["predict_proba"].sum(axis=1), 1.0, atol=1e-9)

    check()


def test_every_estimator_is_tried():
    named = {
        name
        for name in pursuit.__all__
        if isinstance(getattr(pursuit, name), type) and hasattr(getattr(pursuit, name), "fit")
    }
    # The rows of one are tables, see tests/table; the other holds sums: greedy/test_statistics.py.
    named -= {"TableModel", "KernelStatistics"}
    assert named == {type(estimator).__name__ for estimator in ESTIMATORS}
