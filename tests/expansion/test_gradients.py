"""Slopes of fitted functions, and the relevance of features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy import sparse

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    SparseKernelRegressor,
)
from pursuit.dictionary import OrientedGaussians
from pursuit.expansion.basis_functions import Atoms
from pursuit.expansion.expansion import KernelExpansion
from pursuit.expansion.gradients import average_outer_product, gradients, relevances
from pursuit.kernels import (
    RBF,
    Cosine,
    CosinePolynomial,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from pursuit.moving_vectors.projected import ProjectedAtoms

P = awkward(40)
X = (P.X - P.X.mean(axis=0)) / P.X.std(axis=0)
COEFFICIENTS = np.random.default_rng(0).normal(size=(2, 6))
KERNELS = [
    RBF(0.3),
    Laplacian(0.2),
    Linear(),
    Polynomial(0.5, 3, 1.0),
    Sigmoid(0.3, 0.1),
    Cosine(),
    CosinePolynomial(2, 1.0),
]


def differences(function, rows, step=1e-5):
    """Central differences of each output in each feature."""
    moves = step * np.eye(rows.shape[1])
    slopes = [(function(rows + move) - function(rows - move)) / (2 * step) for move in moves]
    return np.stack(slopes, axis=2)


def whole(expansion, rows):
    return np.concatenate([slopes for _, slopes in gradients(expansion, rows)])


def expansions():
    for kernel in KERNELS:
        yield KernelExpansion(Atoms(kernel, X[:6] + 0.1), COEFFICIENTS, np.ones(2))
    rng = np.random.default_rng(1)
    for scale in (rng.uniform(0.5, 2, 4), rng.normal(size=(4, 2))):
        Z = X[:6] * scale if scale.ndim == 1 else X[:6] @ scale
        yield KernelExpansion(ProjectedAtoms(RBF(0.3), scale, Z), COEFFICIENTS, np.ones(2))
    parts = [OrientedGaussians(n_components=2), RBF(0.5), Polynomial(0.1, 2, 1.0)]
    yield KernelMatchingPursuitRegressor(12, dictionary=parts).fit(X, P.Y).expansion_


@pytest.mark.parametrize("expansion", list(expansions()), ids=lambda e: type(e.atoms).__name__)
def test_slopes_are_those_of_differences(expansion):
    expected = differences(expansion, X)
    assert_allclose(whole(expansion, X), expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())
    assert_allclose(whole(expansion, sparse.csr_matrix(X)), whole(expansion, X))


def test_the_outer_product_and_the_shares_of_it():
    expansion, shares = next(expansions()), P.weights / P.weights.sum()
    slopes = differences(expansion, X)
    outer = np.einsum("i,itj,itl->jl", shares, slopes, slopes)
    assert_allclose(average_outer_product(expansion, X, shares), outer, rtol=1e-6)
    spread = np.array([np.cov(column, aweights=shares, ddof=0) for column in X.T])
    expected = outer.diagonal() * spread
    expected /= expected.sum()
    assert_allclose(relevances(expansion, X, shares), expected, rtol=1e-6)
    assert_allclose(relevances(expansion, sparse.csr_matrix(X), shares), expected, rtol=1e-6)


def test_units_and_constant_features_do_not_matter():
    rows = np.hstack([X, np.full((40, 1), 7.0)])
    model = KernelMatchingPursuitClassifier(3, kernel="linear").fit(rows, P.labels)
    factors = np.array([1e-3, 1.0, 100.0, 1.0, 1.0])
    other = KernelMatchingPursuitClassifier(3, kernel="linear").fit(rows, P.labels)
    vectors = Atoms(Linear(), other.support_vectors_ / factors)
    other.expansion_ = KernelExpansion(vectors, other.dual_coef_, other.intercept_)
    found = model.feature_relevances(rows)
    assert_allclose(other.feature_relevances(rows * factors), found, rtol=1e-9)
    assert (found.sum(), found[4]) == (pytest.approx(1.0), 0.0)


@pytest.mark.parametrize("metric", [None, "diagonal", "full", 2])
def test_moved_vectors_say_the_same(metric):
    model = SparseKernelRegressor(5, metric=metric, max_iter=5, random_state=0)
    model.fit(P.X, P.Y, P.weights)
    found = model.feature_relevances(P.X, P.weights)
    assert_allclose(model.feature_relevances_, found, rtol=1e-9)
    slopes = differences(model.expansion_, P.X)
    shares = P.weights / P.weights.sum()
    deviation = P.X - shares @ P.X
    expected = np.einsum("i,itj->j", shares, slopes**2) * (shares @ deviation**2)
    assert_allclose(found, expected / expected.sum(), rtol=1e-4)


def test_functions_without_derivative_are_told():
    model = KernelMatchingPursuitRegressor(3, kernel=_function)
    with pytest.raises(ValueError, match="kernel: _function has no derivative"):
        model.fit(P.X, P.Y).feature_relevances(P.X)
    parts = {"first": lambda rows: rows[:, 0]}
    model = KernelMatchingPursuitRegressor(1, dictionary=parts).fit(P.X, P.Y)
    with pytest.raises(ValueError, match="dictionary: the function 'first' has no derivative"):
        model.feature_relevances(P.X)


def _function(rows, centres):
    return (rows @ centres.T) ** 2


def test_a_constant_has_no_relevant_feature():
    constant = KernelExpansion(Atoms(RBF(1.0), np.empty((0, 4))), np.empty((1, 0)), np.ones(1))
    assert_array_equal(relevances(constant, X, np.full(40, 1 / 40)), np.zeros(4))
