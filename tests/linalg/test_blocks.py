"""Row blocks: every row once, within the budget, and nothing depends on their size."""

import threading

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import ThreadpoolController, threadpool_info

from pursuit.linalg import blocks


@pytest.mark.parametrize("n_rows", [0, 1, 7, 100])
@pytest.mark.parametrize("bytes_per_row", [0.0, 1.0, 1e4, 1e9, 1e15])
def test_blocks_cover_the_rows_once(n_rows, bytes_per_row):
    with sklearn.config_context(working_memory=1):
        slices = list(blocks.row_blocks(n_rows, bytes_per_row))
    covered = [row for rows in slices for row in range(rows.start, rows.stop)]
    assert covered == list(range(n_rows))
    assert all(rows.stop > rows.start for rows in slices)


def test_blocks_stay_within_the_share():
    with sklearn.config_context(working_memory=2):
        for rows in blocks.row_blocks(10_000, 1024.0):
            assert (rows.stop - rows.start) * 1024 <= blocks.BLOCK_SHARE * 2 * 2**20
        assert len(list(blocks.row_blocks(10_000, 1024.0))) == 20
        # One row at least, however wide it is.
        assert len(list(blocks.row_blocks(3, 1e12))) == 3


def test_fits_is_the_working_memory():
    with sklearn.config_context(working_memory=3):
        assert blocks.fits(3 * 2**20)
        assert not blocks.fits(3 * 2**20 + 1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n_rows", [1, 3, 8, 9, 100])
def test_evaluate_in_chunks_equals_at_once(n_rows, threads, form, rng, monkeypatch):
    monkeypatch.setattr(blocks, "SMALLEST_PARALLEL_SIZE", 20)
    monkeypatch.setattr(blocks, "CHUNK_BYTES", 1)
    monkeypatch.setattr(blocks, "n_threads", lambda: threads)
    X, Z = form(rng.integers(-3, 4, size=(n_rows, 4)) / 1.0), rng.integers(-3, 4, size=(4, 5)) / 1.0
    seen = []

    def functions(rows):
        seen.append(rows.shape[0])
        return rows @ Z

    assert_array_equal(blocks.evaluate(functions, X, 5), X @ Z)
    assert sum(seen) == n_rows
    assert max(seen) <= (8 if n_rows * 5 >= 20 else n_rows)


def test_evaluate_keeps_the_type_and_passes_errors_on(monkeypatch):
    monkeypatch.setattr(blocks, "SMALLEST_PARALLEL_SIZE", 1)
    monkeypatch.setattr(blocks, "CHUNK_BYTES", 1)
    monkeypatch.setattr(blocks, "n_threads", lambda: 2)
    X = np.arange(100.0)[:, None]
    assert blocks.evaluate(lambda rows: rows.astype("f4"), X, 1).dtype == np.float32

    def fails(rows):
        if rows[0, 0] > 50:
            raise ValueError("row 51 is bad")
        return rows

    with pytest.raises(ValueError, match="row 51 is bad"):
        blocks.evaluate(fails, X, 1)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("parallel", [True, False])
def test_in_parallel_gives_one_result_an_item_in_order(parallel, threads, monkeypatch):
    monkeypatch.setattr(blocks, "n_threads", lambda: threads)
    for items in ([], [3], range(50)):
        results = blocks.in_parallel(lambda item: -item, items, parallel=parallel)
        assert results == [-item for item in items]
    workers = set(blocks.in_parallel(lambda _: threading.get_ident(), [0, 1], parallel=parallel))
    assert (workers == {threading.get_ident()}) == (threads == 1 or not parallel)


def test_each_worker_has_one_blas_thread_and_the_number_is_restored(monkeypatch):
    monkeypatch.setattr(blocks, "n_threads", lambda: 2)

    def blas_threads(_=None):
        return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]

    before = blas_threads()
    inside = blocks.in_parallel(blas_threads, [0, 1])
    assert all(n == 1 for counts in inside for n in counts)
    assert blas_threads() == before


def test_number_of_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    available = blocks.n_threads()
    assert available >= 1
    for text, expected in (("1", 1), ("100000", available), ("0", available), ("x", available)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert blocks.n_threads() == expected


def test_a_limit_of_threads_holds_for_us_and_for_the_blas(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    available = blocks.n_threads()

    def blas():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = blas()
    with blocks.at_most_threads(1):
        assert blocks.n_threads() == 1
        assert blas() == {1}
        with blocks.at_most_threads(None):
            assert blocks.n_threads() == 1
    for n_jobs, expected in [(None, available), (-1, available), (-2, max(1, available - 1)),
                             (-1000, 1), (10**6, available)]:  # fmt: skip
        with blocks.at_most_threads(n_jobs):
            assert blocks.n_threads() == expected
    assert blas() == before


def test_threads_that_overlap_leave_the_limit_as_it_was():
    """The second enters before the first leaves, and leaves after it."""
    blas = ThreadpoolController().select(user_api="blas")
    before = [pool["num_threads"] for pool in blas.info()]
    first, second = blocks.at_most_threads(1), blocks.blas_threads(1.0)
    with blas.limit(limits=2):
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert {pool["num_threads"] for pool in blas.info()} == {1}
        second.__exit__(None, None, None)
        assert {pool["num_threads"] for pool in blas.info()} == {2}
    assert [pool["num_threads"] for pool in blas.info()] == before


@pytest.mark.parametrize("n_rows", [3, 4000])
def test_values_less_an_origin_into_given_memory(n_rows, rng):
    """Deviations in float64, in any memory order, of single rows and of many chunks."""
    X, origin = rng.normal(size=(n_rows, 2)).astype(np.float32), rng.normal(size=150)
    W = rng.normal(size=(2, 150)).astype(np.float32)
    expected = (X @ W).astype(np.float64) - origin
    deviations = blocks.evaluate(lambda rows: rows @ W, X, 150, origin)
    assert deviations.dtype == np.float64
    assert_allclose(deviations, expected, rtol=1e-5, atol=1e-6)
    room = np.full((150, n_rows), np.nan).T
    assert blocks.evaluate(lambda rows: rows @ W, X, 150, origin, room) is room
    assert_allclose(room, deviations, rtol=1e-5, atol=1e-6)
