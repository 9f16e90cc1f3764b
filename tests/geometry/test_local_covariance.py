"""Local covariances: eq. 13.3 by its definition, and what copies, weights and few rows do."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

from pursuit.geometry import local_covariance, shared_products
from pursuit.geometry.local_covariance import (
    leading_axes,
    leading_mixtures,
    local_covariances,
    nearest_indices,
    nearest_rows,
)
from pursuit.geometry.unique_rows import distinct_rows
from pursuit.linalg import blocks


def cloud(rng, n_rows=40, n_features=5):
    return rng.normal(size=(n_rows, n_features)) * np.linspace(3.0, 0.5, n_features) + 7.0


def plain(X, i, k, weights=None):
    """C_i of eq. 13.3 as printed, for different rows."""
    weights = np.ones(len(X)) if weights is None else weights
    order = np.argsort(((X - X[i]) ** 2).sum(axis=1))
    near = [j for j in order if j != i][:k]
    return sum(weights[j] * np.outer(X[j] - X[i], X[j] - X[i]) for j in near) / weights[near].sum()


def whole(found):
    """sum_j v_j u_j u_j' of each centre."""
    return np.einsum("kj,kjd,kje->kde", found.variances, found.axes, found.axes)


def assert_orthonormal(axes):
    products = axes @ axes.transpose(0, 2, 1)
    assert_allclose(products, np.broadcast_to(np.eye(axes.shape[1]), products.shape), atol=1e-12)


# The definition


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("k", "n_features"), [(1, 5), (3, 5), (8, 5), (6, 30)])
def test_leading_eigenpairs_of_the_definition(k, n_features, weighted, rng):
    X = cloud(rng, n_features=n_features)
    weights = rng.uniform(0.2, 4.0, size=len(X)) if weighted else None
    rows = np.array([4, 0, 39, 4])
    found, _ = local_covariances(X, rows, k, 3, weights)
    d = min(k, 3)
    assert found.axes.shape == (4, d, n_features)
    assert_orthonormal(found.axes)
    for axes, variances, i in zip(found.axes, found.variances, rows, strict=True):
        values, vectors = np.linalg.eigh(plain(X, i, k, weights))
        assert_allclose(variances, values[::-1][:d], rtol=1e-10)
        products = np.abs(np.sum(axes * vectors.T[::-1][:d], axis=1))
        assert_allclose(products, 1.0, rtol=1e-10)


def test_all_axes_together_are_the_covariance(rng):
    X = cloud(rng)
    found, _ = local_covariances(X, np.arange(40), 9, 5)
    assert_allclose(whole(found), [plain(X, i, 9) for i in range(40)], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("n_features", [2, 30])
def test_neighbours_are_the_nearest_other_rows(n_features, rng):
    X = cloud(rng, 80, n_features)
    distinct = distinct_rows(X)
    queries = distinct.places[[7, 70]]
    near = nearest_rows(distinct, queries, 4)
    for i, neighbors, distances in zip(
        (7, 70), near.neighbors, near.squared_distances, strict=True
    ):
        expected = np.sort(((X - X[i]) ** 2).sum(axis=1))[1:5]
        assert_allclose(distances, expected, rtol=1e-12)
        assert_allclose(((distinct.X[neighbors] - X[i]) ** 2).sum(axis=1), expected, rtol=1e-12)


@pytest.mark.parametrize("n_features", [3, 30])
def test_far_from_the_origin_and_beside_an_outlier(n_features, rng):
    X = cloud(rng, 60, n_features)
    X[11] = 1e10
    rows = np.array([0, 30])
    expected = [plain(X, i, 5) for i in rows]
    found, _ = local_covariances(X + 1e8, rows, 5, 5)
    assert_allclose(whole(found), expected, rtol=1e-5, atol=1e-6)


# Copies and weights


def test_merging_equal_rows():
    X = np.array([[2.0, 0.0], [1.0, 5.0], [2.0, -0.0], [1.0, 4.0], [1.0, 5.0]])
    found = distinct_rows(X, np.array([0.5, 1.0, 2.0, 3.0, 4.0]))
    assert len(found.X) == 3
    assert_array_equal(found.X[found.places], X)
    assert_array_equal(found.weights[found.places], [2.5, 5.0, 2.5, 3.0, 5.0])
    assert_array_equal(distinct_rows(X).weights[found.places], [2, 2, 2, 1, 2])


def test_weight_two_is_the_row_twice(rng):
    X = cloud(rng)
    weights = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    twice = np.concatenate([np.arange(40), np.flatnonzero(weights == 2)])
    rng.shuffle(twice)
    rows = np.arange(40)
    weighted, _ = local_covariances(X, rows, 6, 2, weights)
    places = np.array([np.flatnonzero(twice == i)[0] for i in rows])
    repeated, _ = local_covariances(X[twice], places, 6, 2)
    assert_allclose(repeated.variances, weighted.variances, rtol=1e-12)
    assert_allclose(whole(repeated), whole(weighted), rtol=1e-10, atol=1e-12)
    plainly, _ = local_covariances(X, rows, 6, 2)
    assert np.abs(plainly.variances / weighted.variances - 1).max() > 0.1


def test_copies_of_a_row_do_not_fill_its_neighbourhood(rng):
    X = cloud(rng)
    copies = np.vstack([X, np.repeat(X[3:4], 20, axis=0)])
    found, near = local_covariances(copies, np.array([3, 50]), 5, 2)
    alone, _ = local_covariances(X, np.array([3, 3]), 5, 2)
    assert_allclose(found.variances, alone.variances, rtol=1e-12)
    assert near.squared_distances.min() > 0


def test_the_order_of_the_rows_is_of_no_account_even_for_ties():
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    order = np.random.default_rng(1).permutation(49)
    one, _ = local_covariances(grid, np.arange(49), 3, 2)
    other, _ = local_covariances(grid[order], np.argsort(order), 3, 2)
    assert_allclose(whole(other), whole(one), rtol=1e-12, atol=1e-15)


def test_the_size_of_the_weights_is_of_no_account(rng):
    X, weights = cloud(rng), rng.uniform(0.5, 2.0, size=40)
    one, _ = local_covariances(X, np.arange(40), 6, 2, weights)
    other, _ = local_covariances(X, np.arange(40), 6, 2, 1e-200 * weights)
    assert_allclose(other.variances, one.variances, rtol=1e-12)


def test_soft_neighbourhoods(rng):
    """Weights of a kernel for all rows: the weighted second moment about the centre."""
    X, centre = cloud(rng), np.full((1, 5), 6.5)
    soft = np.exp(-0.2 * ((X - centre) ** 2).sum(axis=1))[None, :]
    found = leading_axes(X, centre, np.arange(40)[None, :], soft, 5)
    moment = np.einsum("i,id,ie->de", soft[0] / soft.sum(), X - centre, X - centre)
    assert_allclose(whole(found)[0], moment, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("k", "n_features", "d"), [(6, 20, 3), (6, 20, 9), (8, 5, 5)])
def test_axes_as_combinations_of_the_neighbours(k, n_features, d, rng, monkeypatch):
    X = cloud(rng, n_features=n_features)
    distinct = distinct_rows(X, rng.uniform(0.2, 4.0, size=40))
    near = nearest_indices(distinct, np.arange(40), k)
    weights = distinct.weights[near]
    weights[7] = 0.0
    found = leading_mixtures(distinct.X, near, weights, d)
    expected = leading_axes(distinct.X, distinct.X, near, weights, d)
    assert found.mixing.shape == (40, min(d, k, n_features), k)
    assert_allclose(found.variances, expected.variances, rtol=1e-9, atol=1e-12)
    axes = np.einsum("ijk,ikn->ijn", found.mixing, distinct.X[near] - distinct.X[:, None])
    # s_j u_j s_j u_j' of each axis, whose sign is free.
    squares = np.einsum("ija,ijb->ijab", axes, axes)
    lengths = np.sqrt(expected.variances)[:, :, None] * expected.axes
    assert_allclose(squares, np.einsum("ija,ijb->ijab", lengths, lengths), atol=1e-9)
    assert_allclose(found.offsets, np.einsum("ijn,in->ij", axes, distinct.X), atol=1e-9)
    monkeypatch.setattr(local_covariance, "BATCH_BYTES", 8 * k * n_features * 7)
    monkeypatch.setattr(blocks, "n_threads", lambda: 3)
    again = leading_mixtures(distinct.X, near, weights, d)
    assert_array_equal(again.mixing, found.mixing)
    assert_array_equal(again.offsets, found.offsets)


@pytest.mark.parametrize("shared", ["all rows", "those found"])
def test_axes_from_shared_products(shared, rng, monkeypatch):
    """The same axes from one matrix of products, of all rows or of the neighbours alone."""
    X = cloud(rng, n_features=220)
    X -= X.mean(axis=0)
    weights = rng.uniform(0.2, 4.0, size=40)
    near = nearest_indices(distinct_rows(X, weights), np.arange(40), 6)
    expected = leading_mixtures(X, near, weights[near], 4)
    monkeypatch.setattr(shared_products, "GAIN", np.inf)
    assert shared_products.shared_products(X, near, np.float64) is not None
    products = shared_products.all_products(X, np.zeros(220)) if shared == "all rows" else None
    found = leading_mixtures(X, near, weights[near], 4, products)
    assert_allclose(found.variances, expected.variances, rtol=1e-9)
    signs = np.sign(np.einsum("ijk,ijk->ij", found.mixing, expected.mixing))
    assert_allclose(found.mixing * signs[:, :, None], expected.mixing, atol=1e-9)
    assert_allclose(found.offsets * signs, expected.offsets, atol=1e-8)


def test_neighbours_of_weight_zero_do_not_count(rng):
    X = cloud(rng)
    neighbors = np.array([[1, 2, 3, 4], [1, 2, 3, 4]])
    weights = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    found = leading_axes(X, X[[0, 0]], neighbors, weights, 3)
    two = leading_axes(X, X[:1], neighbors[:1, :2], np.ones((1, 2)), 2)
    assert_allclose(whole(found)[0], whole(two)[0], rtol=1e-10, atol=1e-14)
    assert_array_equal(found.variances[1], 0.0)
    assert np.isfinite(found.axes).all()


# Few rows, few directions


def test_more_neighbours_than_rows(rng):
    X = cloud(rng, 4)
    with pytest.warns(UserWarning, match="n_neighbors=10 is more than the 3 other"):
        found, near = local_covariances(X[[0, 1, 2, 3, 3]], np.arange(5), 10, 5)
    assert near.neighbors.shape == (5, 3)
    assert found.axes.shape == (5, 3, 5)
    expected = plain(X, 0, 3, np.array([1.0, 1.0, 1.0, 2.0]))
    assert_allclose(whole(found)[0], expected, rtol=1e-10, atol=1e-13)


def test_just_enough_rows_is_no_warning(rng, recwarn):
    local_covariances(cloud(rng, 4), np.arange(4), 3, 1)
    assert not recwarn.list


def test_one_row_has_no_neighbours():
    with pytest.warns(UserWarning, match="more than the 0 other different rows"):
        found, near = local_covariances(np.ones((3, 2)), np.arange(3), 5, 2)
    assert found.axes.shape == (3, 0, 2)
    assert found.variances.shape == (3, 0)
    assert near.weights.shape == near.squared_distances.shape == (3, 0)


def test_data_in_a_plane_have_no_variance_outside(rng):
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 6)) + 3.0
    found, _ = local_covariances(X, np.arange(30), 8, 4)
    assert_orthonormal(found.axes)
    assert_allclose(found.variances[:, 2:], 0.0, atol=1e-25)
    assert (found.variances[:, 1] > 1e-6).all()


def test_no_components(rng):
    found, near = local_covariances(cloud(rng), np.arange(3), 4, 0)
    assert found.axes.shape == (3, 0, 5)
    assert near.neighbors.shape == (3, 4)


# Types, batches, threads


def test_float32_rows_are_computed_in_float64(rng):
    X = cloud(rng).astype(np.float32)
    found, _ = local_covariances(X, np.arange(40), 6, 2)
    expected, _ = local_covariances(X.astype(np.float64), np.arange(40), 6, 2)
    assert found.axes.dtype == found.variances.dtype == np.float64
    assert_array_equal(found.variances, expected.variances)


def test_batches_and_threads_change_nothing(rng, monkeypatch):
    X = cloud(rng)
    expected, near = local_covariances(X, np.arange(40), 6, 2)
    monkeypatch.setattr(local_covariance, "BATCH_BYTES", 8 * 6 * 5 * 7)
    monkeypatch.setattr(blocks, "n_threads", lambda: 3)
    sizes = []
    plain_svd = np.linalg.svd

    def watched(differences, **options):
        sizes.append(len(differences))
        return plain_svd(differences, **options)

    monkeypatch.setattr(np.linalg, "svd", watched)
    with sklearn.config_context(working_memory=0.01):
        found, again = local_covariances(X, np.arange(40), 6, 2)
    assert_array_equal(found.variances, expected.variances)
    assert_array_equal(found.axes, expected.axes)
    assert_array_equal(again.squared_distances, near.squared_distances)
    assert sorted(sizes) == [5, 7, 7, 7, 7, 7]


def test_distances_are_formed_within_the_memory(rng, monkeypatch):
    sizes = []
    plain_blocks = blocks.row_blocks

    def watched(n_rows, bytes_per_row):
        slices = list(plain_blocks(n_rows, bytes_per_row))
        sizes.extend(rows.stop - rows.start for rows in slices)
        return iter(slices)

    monkeypatch.setattr(blocks, "row_blocks", watched)
    with sklearn.config_context(working_memory=0.01):
        local_covariances(cloud(rng), np.arange(40), 6, 2)
    # A quarter of 10 486 bytes, for twice 6 neighbours and the row itself, 5 numbers each.
    assert 0 < max(sizes) <= 4
