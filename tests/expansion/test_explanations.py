"""The largest terms of a function, and the Shapley values of features."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy.spatial.distance import cdist

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    RelevanceVectorRegressor,
    SparseKernelClassifier,
    SparseKernelRegressor,
    load,
    save,
)

P = awkward(60)
X = (P.X - P.X.mean(axis=0)) / P.X.std(axis=0)


def outputs(model, rows):
    values = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
    return values


MODELS = [
    (KernelMatchingPursuitClassifier(9), P.labels),
    (KernelMatchingPursuitClassifier(9), P.labels == "ant"),
    (KernelMatchingPursuitRegressor(9), P.Y),
    (RelevanceVectorRegressor(), P.Y[:, 0]),
    (SparseKernelClassifier(6, max_iter=5, random_state=0), P.labels),
]


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda part: type(part).__name__)
def test_terms_rest_and_constant_are_the_outputs(model, y):
    model.fit(X, y, sample_weight=P.weights)
    for n in (1, 3, 50):
        told = model.explain(X[:20], n)
        total = told.contributions.sum(axis=-1) + told.rest + np.squeeze(told.intercept)
        assert_allclose(total, outputs(model, X[:20]), rtol=1e-9, atol=1e-9)
        assert told.contributions.shape[-1] == min(n, model.n_components_)


def test_they_are_the_largest_terms_of_the_callers_rows():
    model = KernelMatchingPursuitClassifier(9, gamma=0.2).fit(X, P.labels, P.weights)
    told = model.explain(X, 4)
    for i in range(0, 60, 7):
        for t in range(3):
            terms = model.dual_coef_[t] * np.exp(
                -0.2 * ((X[i] - X[model.support_]) ** 2).sum(axis=1)
            )
            order = np.argsort(-np.abs(terms))[:4]
            assert_array_equal(told.vectors[i, t], order)
            assert_array_equal(told.rows[i, t], model.support_[order])
            assert_allclose(told.contributions[i, t], terms[order], rtol=1e-9)


@pytest.mark.parametrize("metric", [None, "diagonal", 2])
def test_vectors_that_moved_have_the_nearest_row(metric, tmp_path):
    model = SparseKernelRegressor(5, metric=metric, max_iter=5, random_state=0)
    model.fit(X, P.Y[:, 0], P.weights)
    there = X if metric is None else X @ model.metric_
    distances = cdist(model.support_vectors_, there)
    distances[:, P.weights == 0] = np.inf
    assert_allclose(distances[np.arange(5), model.nearest_rows_], distances.min(axis=1), rtol=1e-9)
    told = model.explain(X[:3])
    assert_array_equal(told.rows, model.nearest_rows_[told.vectors])
    save(model, tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").explain(X[:3]).rows, told.rows)


def test_without_rows_there_are_none_to_tell():
    centres = KernelMatchingPursuitRegressor(3, dictionary=X[:5] + 0.5).fit(X, P.Y[:, 0])
    assert centres.explain(X).rows is None
    with pytest.raises(ValueError, match="^n must be"):
        centres.explain(X, 0)


# --- Shapley values ---------------------------------------------------------------------


def brute_force(product, x):
    """The definition, over all sets of features."""
    distances = np.abs(x - product.X_train)
    power = 1 if product.kernel_type == "laplacian" else 2

    def value(S):
        K = np.exp(-product.gamma * (distances[:, list(S)] ** power).sum(axis=1))
        return product.intercept + product.alpha @ K

    d = product.d
    values = np.zeros(d)
    for j in range(d):
        others = [i for i in range(d) if i != j]
        for size in range(d):
            weight = factorial(size) * factorial(d - size - 1) / factorial(d)
            for S in combinations(others, size):
                values[j] += weight * (value((*S, j)) - value(S))
    return values


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_shapley_values_are_those_of_the_definition(kernel, d):
    rows = np.random.default_rng(d).normal(size=(50, d))
    y = np.column_stack([np.sin(rows).sum(axis=1), rows[:, 0] ** 2])
    model = KernelMatchingPursuitRegressor(7, kernel=kernel).fit(rows, y)
    product = model.product_kernel(1)
    found = product.shapley_values(rows[:4])
    assert_allclose(found, [brute_force(product, x) for x in rows[:4]], rtol=1e-9, atol=1e-12)
    total = found.sum(axis=1) + product.baseline
    assert_allclose(total, model.predict(rows[:4])[:, 1], rtol=1e-9)


def test_shapley_values_of_many_features_add_up():
    rows = np.random.default_rng(0).normal(size=(60, 301))
    model = KernelMatchingPursuitRegressor(9).fit(rows, rows[:, 0])
    product = model.product_kernel()
    total = product.shapley_values(rows[:2]).sum(axis=1) + product.baseline
    assert_allclose(total, model.predict(rows[:2]), rtol=1e-8)


def test_a_diagonal_metric_has_its_own_coordinates():
    model = SparseKernelRegressor(5, metric="diagonal", max_iter=5, random_state=0)
    model.fit(X, P.Y[:, 0])
    product = model.product_kernel()
    total = product.shapley_values(X[:3] @ model.metric_).sum(axis=1) + product.baseline
    assert_allclose(total, model.predict(X[:3]), rtol=1e-9)


def test_shapley_values_are_those_of_shapiq():
    theirs = pytest.importorskip("shapiq.explainer.product_kernel")
    model = SparseKernelClassifier(6, max_iter=5, random_state=0).fit(X, P.labels)
    for output in range(3):
        product = model.product_kernel(output)
        # The explainer itself refuses such a model (shapiq 1.4.1); this is what it computes with.
        computer = theirs.ProductKernelComputer(theirs.ProductKernelModel(**product._asdict()))
        for x, ours in zip(X[:3], product.shapley_values(X[:3]), strict=True):
            kernels = computer.compute_kernel_vectors(product.X_train, x)
            values = [computer.compute_shapley_value(kernels, j) for j in range(4)]
            assert_allclose(values, ours, rtol=1e-8, atol=1e-12)


def test_what_is_no_product_is_told():
    poly = KernelMatchingPursuitRegressor(3, kernel="poly").fit(X, P.Y)
    with pytest.raises(ValueError, match="product_kernel needs the rbf or the laplacian kernel"):
        poly.product_kernel()
    mixed = SparseKernelRegressor(3, metric=2, max_iter=2, random_state=0).fit(X, P.Y)
    with pytest.raises(ValueError, match="a metric that mixes features"):
        mixed.product_kernel()
    with pytest.raises(ValueError, match="output must be an integer from 0 to 1, got 2"):
        mixed.product_kernel(2)
