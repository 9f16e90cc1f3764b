"""Expansions of scikit-learn's machines: what they compute, to rounding."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM

from pursuit.svm.from_sklearn import pair_votes, read_kernel_model, vote_values

SVM_KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2},
    {"kernel": "poly", "gamma": "auto", "coef0": 1.5},
    {"kernel": "sigmoid", "gamma": 0.02, "coef0": 0.1},
]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(90, 3)) + [1.0, 0.0, -2.0]
    labels = np.array(["b", "d", "a", "c"])[(X[:, 0] > 1).astype(int) + 2 * (X[:, 1] > 0)]
    labels[::9] = "a"
    return X, labels, np.sin(X[:, 0]) + X[:, 1] + 50.0


def values(estimator, X):
    machine = read_kernel_model(estimator)
    return machine.kernel(X, machine.vectors) @ machine.coefficients + machine.intercept


@pytest.mark.parametrize("settings", SVM_KERNELS)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_support_vector_machines(settings, storage, rows):
    X, labels, y = rows
    X = storage(X)
    pairs = SVC(C=3.0, decision_function_shape="ovo", **settings).fit(X, labels)
    assert_allclose(values(pairs, X), pairs.decision_function(X), atol=1e-8)
    two = SVC(C=3.0, **settings).fit(X, labels == "a")
    assert_allclose(values(two, X)[:, 0], two.decision_function(X), atol=1e-8)
    for numbers in (SVR(**settings), NuSVR(**settings)):
        numbers.fit(X, y)
        assert_allclose(values(numbers, X)[:, 0], numbers.predict(X), atol=1e-7)
        assert read_kernel_model(numbers).task == "regressor"
    one = OneClassSVM(nu=0.3, **settings).fit(X)
    assert_allclose(values(one, X)[:, 0], one.decision_function(X), atol=1e-7)
    assert read_kernel_model(one).task == "outlier_detector"


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_votes_are_those_of_libsvm(shape):
    X, y = load_wine(return_X_y=True)
    for machine in (SVC(C=1.0), NuSVC(nu=0.3), SVC(kernel="poly"), SVC(class_weight="balanced")):
        machine.set_params(decision_function_shape=shape).fit(X, y)
        pairs = values(machine, X)
        assert_array_equal(pair_votes(pairs, 3).argmax(axis=1), machine.predict(X))
        theirs = machine.decision_function(X)
        assert_allclose(pairs if shape == "ovo" else vote_values(pairs, 3), theirs, atol=1e-8)


def test_a_pair_at_zero_votes_for_its_second_class():
    assert_array_equal(pair_votes(np.zeros((1, 3)), 3), [[0, 1, 2]])
    assert_array_equal(vote_values(np.zeros((1, 3)), 3), [[2.0, 1.0, 0.0]])


def test_ties_between_classes_go_to_the_larger_sum():
    circle = np.array([[2.0, -1.0, 0.5]])  # 0 beats 1, 2 beats 0, 1 beats 2
    assert_array_equal(pair_votes(circle, 3), [[1, 1, 1]])
    sums = np.array([[1.0, -1.5, 0.5]])
    assert_allclose(vote_values(circle, 3), 1 + sums / (3 * (1 + np.abs(sums))))


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.7},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 0.5},
        {"kernel": "polynomial", "gamma": 0.1},
        {"kernel": "laplacian"},
        {"kernel": "cosine"},
        {"kernel": "sigmoid", "gamma": 0.02},
        {"kernel": "chi2", "gamma": 0.4},
    ],
)
@pytest.mark.parametrize("n_targets", [None, 1, 2])
def test_kernel_ridge_regression(settings, n_targets, rows):
    X, _, y = rows
    X = np.abs(X) if settings["kernel"] == "chi2" else X
    targets = y if n_targets is None else np.column_stack([y, -(y**2)])[:, :n_targets]
    ridge = KernelRidge(alpha=0.5, **settings).fit(X, targets)
    machine = read_kernel_model(ridge)
    assert machine.one_dimensional == (n_targets is None)
    found = values(ridge, X)
    assert_allclose(found[:, 0] if n_targets is None else found, ridge.predict(X), rtol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(2.0),
        ConstantKernel(3.0) * RBF(2.0),
        RBF([2.0]) * ConstantKernel(3.0),
        ConstantKernel(3.0) * RBF(2.0) + WhiteKernel(0.2),
        WhiteKernel(0.2) + RBF(2.0),
        ConstantKernel(2.0) * (ConstantKernel(0.5) * RBF(2.0)),
        RBF([1.0, 2.0, 3.0]) * ConstantKernel(3.0),
        ConstantKernel(3.0) * RBF([1.0, 2.0, 3.0]) + WhiteKernel(0.2),
    ],
)
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("n_targets", [None, 2])
def test_the_mean_of_a_gaussian_process(kernel, normalize_y, n_targets, rows):
    X, _, y = rows
    targets = y if n_targets is None else np.column_stack([y, -(y**2)])
    process = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, normalize_y=normalize_y)
    process.fit(X[:50], targets[:50])
    found = values(process, X)
    expected = process.predict(X)
    assert_allclose(found[:, 0] if n_targets is None else found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(),
        RBF(1.0) * RBF(2.0),
        RBF(1.0) + RBF(2.0),
        ConstantKernel(2.0),
        WhiteKernel() + ConstantKernel(1.0),
    ],
)
def test_other_covariances_are_refused(kernel, rows):
    process = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(rows[0], rows[2])
    with pytest.raises(ValueError, match="RBF or ConstantKernel"):
        read_kernel_model(process)


def test_what_is_no_machine_is_refused(rows):
    X, labels, y = rows
    for estimator in (LogisticRegression(), LinearSVC(), "svc"):
        with pytest.raises(ValueError, match="estimator must be one of SVC, .*got"):
            read_kernel_model(estimator)
    for estimator in (SVC(), SVR(), KernelRidge(), GaussianProcessRegressor(), OneClassSVM()):
        with pytest.raises(NotFittedError):
            read_kernel_model(estimator)
    for machine in (SVC(kernel="precomputed"), SVC(kernel=lambda X, Z: X @ Z.T)):
        machine.fit(X @ X.T, labels)
        with pytest.raises(ValueError, match="kernel=.*cannot be compressed"):
            read_kernel_model(machine)
    with pytest.raises(ValueError, match="kernel='precomputed' cannot be compressed"):
        read_kernel_model(KernelRidge(kernel="precomputed").fit(X @ X.T, y))
