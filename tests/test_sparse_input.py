"""Sparse samples with duplicate, unsorted entries and 64-bit indices mean their sum, everywhere."""

import inspect
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import get_tags

import pursuit
from pursuit import kernels
from pursuit._validation import summed

ESTIMATORS = [
    value
    for value in (getattr(pursuit, name) for name in pursuit.__all__)
    if inspect.isclass(value)
    and issubclass(value, BaseEstimator)
    and value is not pursuit.KernelStatistics  # sums, no estimator: see greedy/test_statistics.py
]
SPARSE = [estimator for estimator in ESTIMATORS if get_tags(estimator()).input_tags.sparse]


def in_pieces(X):
    """The same matrix with each entry in two pieces, in reverse order, with 64-bit indices."""
    X = sparse.csr_array(X)
    lengths = np.diff(X.indptr)
    order = np.concatenate(
        [np.arange(start, stop)[::-1] for start, stop in zip(X.indptr, X.indptr[1:], strict=False)]
    )
    indices = np.repeat(X.indices[order], 2).astype(np.int64)
    data = np.column_stack([0.25 * X.data[order], 0.75 * X.data[order]]).ravel()
    indptr = np.concatenate([[0], np.cumsum(2 * lengths)]).astype(np.int64)
    pieces = sparse.csr_array((data, indices, indptr), shape=X.shape)
    assert pieces.indices.dtype == np.int64
    return pieces


@pytest.fixture
def samples():
    rng = np.random.default_rng(3)
    X = np.where(rng.random((60, 5)) < 0.6, rng.integers(1, 9, (60, 5)), 0).astype(float)
    return X, np.where(X[:, 0] + X[:, 1] > 6, "yes", "no"), X[:, 0] - X[:, 2]


def outputs(model, X):
    names = ("predict_proba", "predict", "transform", "score_samples")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


# What makes a fit short, where the estimator has it.
SHORT = {"n_components": 3, "random_state": 0, "max_iter": 3, "cv": 2, "Cs": [1.0]}


def small(estimator):
    """An estimator whose fit is short."""
    names = set(estimator().get_params())
    if estimator.__name__.endswith("NeighborsClassifier"):
        names.discard("n_components")
    return estimator(**{name: SHORT[name] for name in SHORT if name in names})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", SPARSE)
def test_pieces_of_an_entry_are_its_sum(estimator, samples):
    X, labels, numbers = samples
    y = labels if is_classifier(estimator()) else numbers
    pieces = in_pieces(X)
    before = [part.copy() for part in (pieces.data, pieces.indices, pieces.indptr)]
    whole = small(estimator).fit(sparse.csr_array(X), y)
    split = small(estimator).fit(pieces, y)
    for expected, values in zip(
        outputs(whole, sparse.csr_array(X)), outputs(split, pieces), strict=True
    ):
        if expected.dtype.kind == "f":
            assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
        else:
            assert_array_equal(values, expected)
    for part, kept in zip((pieces.data, pieces.indices, pieces.indptr), before, strict=True):
        assert_array_equal(part, kept)
        assert part.dtype == kept.dtype


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", SPARSE)
def test_dense_and_sparse_samples_meet(estimator, samples):
    X, labels, numbers = samples
    y = labels if is_classifier(estimator()) else numbers
    model = small(estimator)
    for fit_form, query_form in ((np.asarray, sparse.csr_array), (sparse.csr_array, np.asarray)):
        fitted = model.fit(fit_form(X), y)
        for expected, values in zip(
            outputs(fitted, fit_form(X)), outputs(fitted, query_form(X)), strict=True
        ):
            if expected.dtype.kind == "f":
                assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
            else:
                assert_array_equal(values, expected)


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.RBF(0.01),
        kernels.Laplacian(0.1),
        kernels.Linear(),
        kernels.Polynomial(0.1, 2, 1.0),
        kernels.Sigmoid(0.01, 0.0),
        kernels.Cosine(),
        kernels.CosinePolynomial(2, 1.0),
    ],
)
def test_kernels_called_on_pieces(kernel, samples):
    X = samples[0][:8]
    for one, other in ((in_pieces(X), in_pieces(X)), (in_pieces(X), X), (X, in_pieces(X))):
        assert_allclose(kernel(one, other), kernel(X, X), rtol=1e-12, atol=1e-14)
    assert_allclose(kernel.diagonal(in_pieces(X)), kernel.diagonal(X), rtol=1e-12)


def test_two_ones_in_one_place_are_a_two():
    D = sparse.csr_array(([1.0, 1.0], [0, 0], [0, 2, 2]), shape=(2, 1))
    assert_allclose(kernels.RBF(1.0)(D, D), [[1.0, np.exp(-4.0)], [np.exp(-4.0), 1.0]])
    assert D.nnz == 2


def test_given_centres_in_pieces(samples):
    X, _, y = samples
    models = [
        pursuit.KernelMatchingPursuitRegressor(3, dictionary=centres).fit(X, y)
        for centres in (sparse.csr_array(X[:9]), in_pieces(X[:9]))
    ]
    assert_allclose(models[1].predict(X), models[0].predict(X), rtol=1e-10)


def test_pieces_whose_sum_is_infinite_are_an_error():
    X = sparse.csr_array(([1e308, 1e308, 1.0], [0, 0, 0], [0, 2, 3]), shape=(2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match="infinity"):
            summed(X)


def test_what_is_in_order_is_not_copied(samples):
    X = sparse.csr_array(samples[0])
    assert summed(X) is X
    assert summed(samples[0]) is samples[0]
