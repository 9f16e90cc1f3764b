"""The search of nearest rows: exact ranks, whatever the route, the type and the blocks."""

import numpy as np
import pytest
import sklearn
from scipy import sparse

from pursuit.geometry import nearest
from pursuit.geometry.nearest import NearestRows, chunks, gather
from pursuit.geometry.shared_products import all_products


def plain(rows, queries, k, leave_out=None):
    """All squared distances from the differences, sorted, ties by the lowest index."""
    rows, queries = np.asarray(rows, dtype=float), np.asarray(queries, dtype=float)
    found = []
    for i, query in enumerate(queries):
        distances = ((rows - query) ** 2).sum(axis=1)
        if leave_out is not None and leave_out[i] >= 0:
            distances[leave_out[i]] = np.inf
        found.append(np.argsort(distances, kind="stable")[:k])
    return np.array(found)


DATA = {
    "wide": lambda rng: rng.normal(size=(300, 40)),
    "low dimension, a tree": lambda rng: rng.normal(size=(1500, 3)),
    "integers with many ties": lambda rng: rng.integers(3, size=(400, 12)).astype(float),
    "a grid in the plane": lambda rng: rng.integers(12, size=(2000, 2)).astype(float),
    "far away": lambda rng: rng.normal(size=(300, 20)) + 1e6,
    "two far clusters": lambda rng: (
        1e5 * np.repeat([[1.0], [-1.0]], 150, axis=0) + rng.normal(size=(300, 20))
    ),
    "copies": lambda rng: np.repeat(rng.normal(size=(20, 15)), 15, axis=0),
    "an outlier": lambda rng: np.vstack([rng.normal(size=(200, 11)), np.full((1, 11), 1e8)]),
    "all equal": lambda rng: np.full((60, 4), 7.5),
    "one row": lambda rng: np.ones((1, 5)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DATA)
def test_ranks_are_those_of_the_differences(name, dtype, rng):
    rows = DATA[name](rng).astype(dtype)
    queries = np.vstack([rows[::37], rows[:20] + rng.normal(size=rows[:20].shape).astype(dtype)])
    index = NearestRows(rows)
    for k in (1, 7, 1000):
        found = index.search(queries, k)
        np.testing.assert_array_equal(found, plain(rows, queries, min(k, len(rows))))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DATA)
def test_sets_of_some_sizes_and_their_distances(name, dtype, rng):
    rows = DATA[name](rng).astype(dtype)
    queries = np.vstack([rows[::37], rows[:20] + rng.normal(size=rows[:20].shape).astype(dtype)])
    index = NearestRows(rows)
    near = index.nearest_sets(queries, [3, 9])
    expected = plain(rows, queries, min(9, len(rows)))
    for k in (3, 9):
        np.testing.assert_array_equal(np.sort(near.found[:, :k]), np.sort(expected[:, :k]))
    exact = index.squared_distances(queries, near.found)
    lengths = 2 * np.abs(rows - np.median(rows, axis=0)).max() ** 2 * rows.shape[1] + exact
    error = np.abs(near.squared_distances - exact)
    assert (error <= 40 * np.finfo(dtype).eps * lengths).all()
    assert (near.squared_distances[exact == 0.0] == 0.0).all()


def test_which_products_keep_their_digits(rng):
    """Two clusters: far from each other, products of either lose the digits of its distances."""
    rows = rng.normal(size=(200, 30))
    for distance, kept in ((0.0, True), (1e3, False)):
        moved = rows + distance * (np.arange(200) % 2)[:, None]
        index = NearestRows(moved)
        near = index.nearest_sets(moved[:20] + 0.1, [5])
        np.testing.assert_array_equal(index.keeps_digits(near), kept)


@pytest.mark.parametrize("name", ["wide", "low dimension, a tree", "copies", "a grid in the plane"])
def test_a_row_left_out_is_no_neighbour(name, rng):
    rows = DATA[name](rng)
    own = np.arange(0, len(rows), 17)
    leave_out = np.where(np.arange(len(own)) % 3 == 0, -1, own)
    found = NearestRows(rows).search(rows[own], 6, leave_out)
    np.testing.assert_array_equal(found, plain(rows, rows[own], 6, leave_out))
    everything = NearestRows(rows[:9]).search(rows[:9], 20, np.arange(9))
    np.testing.assert_array_equal(everything, plain(rows[:9], rows[:9], 8, np.arange(9)))


def test_all_rows_among_themselves(rng):
    """From the products of all rows, copies and all."""
    rows = np.repeat(rng.normal(size=(60, 230)), 2, axis=0) + 3.0
    rows[::3] += rng.normal(size=(40, 230))
    products = all_products(rows, rows.mean(axis=0))
    found = NearestRows(rows, products).search(rows, 7, np.arange(120))
    np.testing.assert_array_equal(found, plain(rows, rows, 7, np.arange(120)))


def test_rows_of_which_the_products_say_nothing(rng):
    """In float32 the products of these rows are off by more than their distances."""
    rows = np.float32(1000.0) * np.float32([[1.0], [-1.0]]).repeat(200, axis=0)
    rows = rows + rng.normal(size=(400, 30)).astype(np.float32) * np.float32(0.05)
    queries = rows[::7] + np.float32(0.01)
    product = NearestRows(rows)._table(queries, np.full(len(queries), -1))[0]
    exact = plain(rows, queries, 5)
    assert (np.argsort(product, axis=1, kind="stable")[:, :5] != exact).any()
    np.testing.assert_array_equal(NearestRows(rows).search(queries, 5), exact)


def test_rows_far_from_zero_are_centred(rng, monkeypatch):
    """Or their products would say so little that every query is compared row by row."""
    rows = rng.normal(size=(300, 20)) + 1e7
    monkeypatch.setattr(NearestRows, "_one_by_one", None)
    np.testing.assert_array_equal(NearestRows(rows).search(rows, 7), plain(rows, rows, 7))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows(dtype, rng):
    rows = rng.normal(size=(200, 50)).astype(dtype)
    rows[rng.random(rows.shape) < 0.9] = 0.0
    wide = sparse.csr_array(rows)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for matrix in (sparse.csr_matrix(rows), wide):
        index = NearestRows(matrix)
        found = index.search(matrix[:40], 6)
        np.testing.assert_array_equal(found, plain(rows, rows[:40], 6))
        tables = gather(matrix, found[:3], matrix[:3], np.float64)
        whole = gather(rows, found[:3], rows[:3], np.float64)
        grams = tables @ tables.swapaxes(1, 2)
        np.testing.assert_allclose(grams, whole @ whole.swapaxes(1, 2), rtol=1e-12, atol=1e-12)


def test_squared_distances_are_zero_for_copies_only(rng):
    rows = rng.normal(size=(50, 8)) + 1e6
    index = NearestRows(rows)
    found = index.search(rows, 3)
    distances = index.squared_distances(rows, found)
    assert (distances[:, 0] == 0.0).all()
    expected = ((rows[found] - rows[:, None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-12)


def test_types_of_rows_and_queries_may_differ(rng):
    for centre in (0.0, 1e4):
        rows = (rng.normal(size=(100, 30)) + centre).astype(np.float32)
        queries = rng.normal(size=(20, 30)) * 1e-3 + rows[:20]
        found = NearestRows(rows).search(queries, 9)
        np.testing.assert_array_equal(found, plain(rows, queries, 9))
        narrow = NearestRows(rows.astype(np.float64)).search(rows[:20] * np.float32(1.01), 9)
        np.testing.assert_array_equal(narrow, plain(rows, rows[:20] * np.float32(1.01), 9))


@pytest.mark.parametrize("name", ["wide", "integers with many ties", "low dimension, a tree"])
def test_blocks_change_nothing(name, rng, monkeypatch):
    rows = DATA[name](rng).astype(np.float32)
    expected = NearestRows(rows).search(rows, 10)
    monkeypatch.setattr(nearest, "CHUNK_BYTES", 1 << 14)
    with sklearn.config_context(working_memory=1):
        np.testing.assert_array_equal(NearestRows(rows).search(rows, 10), expected)


def test_chunks_cover_the_rows():
    parts = list(chunks(103, 8.0, 80))
    starts = [part.start for part in parts]
    assert starts == [0, *(part.stop for part in parts[:-1])] and parts[-1].stop == 103
    assert max(part.stop - part.start for part in parts) <= 10 and list(chunks(0, 8.0)) == []
    with sklearn.config_context(working_memory=1):
        assert max(part.stop - part.start for part in chunks(10**6, 1000.0)) <= 262
