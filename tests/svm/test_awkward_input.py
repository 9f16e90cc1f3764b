"""Copies, weights, storage and random states: right values or one clear error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, OneClassSVM

from pursuit import (
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    ReducedSetClassifier,
    ReducedSupportVectorClassifier,
    compress,
)

COMPRESSED = [
    CompressedClassifier(n_components=5),
    CompressedRegressor(n_components=5),
    CompressedOutlierDetector(n_components=5),
]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("model", [*COMPRESSED, ReducedSetClassifier(6)])
def test_numpys_random_state_is_left_alone(model, data):
    before = np.random.get_state()[1:3]  # noqa: NPY002
    model.fit(*data)
    after = np.random.get_state()[1:3]  # noqa: NPY002
    assert_array_equal(after[0], before[0])
    assert after[1] == before[1]


def tangled(X):
    """The same rows as CSR with 64-bit, unsorted indices and split entries."""
    n, d = X.shape
    indices = np.tile(np.r_[np.arange(d)[::-1], 0], n).astype(np.int64)
    values = np.column_stack([X[:, ::-1], np.ones(n)])
    values[:, -2] -= 1.0
    indptr = np.arange(0, n * (d + 1) + 1, d + 1, dtype=np.int64)
    S = sparse.csr_array((n, d))
    S.data, S.indices, S.indptr = values.ravel(), indices, indptr
    return S


@pytest.mark.parametrize("model", COMPRESSED)
def test_the_callers_sparse_matrix_is_not_changed(model, data):
    X, y = data
    S = tangled(X)
    kept = S.data.copy(), S.indices.copy(), S.indptr.copy()
    clone(model).fit(S, y)
    # Iterations that move vectors to the machine's values make more of its last digits than this.
    model = clone(model).set_params(refit=None)
    dense = model.fit(X, y).predict(X)
    assert_allclose(model.fit(S, y).predict(X), dense, atol=1e-6)
    for now, then in zip((S.data, S.indices, S.indptr), kept, strict=True):
        assert_array_equal(now, then)
        assert now.dtype == then.dtype


@pytest.mark.parametrize("model", COMPRESSED)
@pytest.mark.parametrize(("bad", "message"), [(np.nan, "sample_weight"), (-1.0, "row 3")])
def test_weights_that_are_none(model, bad, message, data):
    weights = np.ones(40)
    weights[3] = bad
    with pytest.raises(ValueError, match=message):
        model.fit(*data, sample_weight=weights)


def test_weight_zero_is_the_row_removed_even_where_it_takes_the_class(data):
    X, y = data
    y = np.where(X[:, 1] > 0.5, 2, y)
    weights = np.where(y == 2, 0.0, 1.0)
    model = CompressedClassifier(SVC(), 6).fit(X, y, weights)
    alone = CompressedClassifier(SVC(), 6).fit(X[y < 2], y[y < 2])
    assert_array_equal(model.classes_, [0, 1])
    assert_allclose(model.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize("regularizer", ["coefficients", "margin"])
def test_rsvm_draws_distinct_rows(regularizer, rng):
    X = np.repeat(rng.normal(size=(8, 2)), 25, axis=0)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    model = ReducedSupportVectorClassifier(8, regularizer=regularizer, random_state=0).fit(X, y)
    assert len(np.unique(model.support_vectors_, axis=0)) == 8
    assert_array_equal(model.support_vectors_, X[model.support_])
    with pytest.warns(ConvergenceWarning, match="8 vectors do: there are no more distinct rows"):
        model = ReducedSupportVectorClassifier(9, random_state=0).fit(X, y)
    assert model.n_components_ == 8


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("regularizer", ["coefficients", "margin"])
def test_kernels_that_return_no_numbers(regularizer, bad, data):
    def kernel(X, Z):
        return np.full((len(X), len(Z)), bad)

    model = ReducedSupportVectorClassifier(5, kernel=kernel, regularizer=regularizer)
    with pytest.raises(ValueError, match="kernel"):
        model.fit(*data)


def machines():
    process = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(1e-2), optimizer=None)
    return [process, KernelRidge(kernel="rbf", gamma=0.5, alpha=1e-2)]


@pytest.mark.parametrize("machine", machines())
def test_a_regressor_is_refitted_where_rows_are_given_and_warned_of_where_none_are(machine, rng):
    X = np.sort(rng.uniform(0, 10, size=(200, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.05 * rng.normal(size=200)
    machine.fit(X, y)
    small = compress(machine, 8, X, y)
    assert small.score(X, y) > 0.95
    with pytest.warns(ConvergenceWarning, match=r"predictions change by .* give X"):
        blind = compress(machine, 2)
    assert blind.score(X, y) < 0.7


def test_scale_gamma_of_a_fitted_machine_is_found_from_its_values(data):
    X, y = data
    for machine in (SVC(), SVR(), OneClassSVM(nu=0.3)):
        machine.fit(X, y)
        small = compress(machine, 40)
        assert_allclose(small.kernel_.gamma, 1.0 / (X.shape[1] * X.var()), rtol=1e-9)
