"""Fits on blocks equal fits on all rows, in little memory."""

import itertools
import os
import tracemalloc

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import awkward
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from pursuit import (
    KernelMatchingPursuitClassifier,
    KernelMatchingPursuitRegressor,
    ParquetBlocks,
    StatisticsCheckpoint,
    dictionary,
)
from pursuit.matching_pursuit import blocks as blocks_module

P = awkward()
USED = P.X[P.weights > 0]
# A pass over blocks keeps the first of equal rows; a fit on few rows takes all.
REPEATED = len(USED) - len(np.unique(USED, axis=0))
CUTS = [0, 11, 12, 40, 60]


def in_blocks(*tables):
    return [tuple(t[a:b] for t in tables) for a, b in itertools.pairwise(CUTS)]


def assert_same(found, expected, n_repeated=0):
    assert_array_equal(found.support_, expected.support_)
    assert found.n_candidates_ == expected.n_candidates_ - n_repeated
    assert_allclose(found.kernel_.gamma, expected.kernel_.gamma, rtol=1e-12)
    vectors = expected.support_vectors_
    assert_allclose(found.expansion_(vectors), expected.expansion_(vectors), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_numbers_with_weights(convert):
    X, model = convert(P.X), KernelMatchingPursuitRegressor(8)
    found = clone(model).fit_blocks(in_blocks(X, P.Y, P.weights))
    assert_same(found, model.fit(X, P.Y, P.weights), REPEATED)
    assert found.predict(X).shape == P.Y.shape


def test_classes_with_weights_of_rows_and_classes():
    weight = {label: 1.0 + k for k, label in enumerate(np.unique(P.labels))}
    model = KernelMatchingPursuitClassifier(8, class_weight=weight)
    labels = P.labels.astype(object)
    labels[np.flatnonzero(P.weights == 0)[:1]] = "of no row that counts"
    found = clone(model).fit_blocks(in_blocks(P.X, labels, P.weights))
    assert_same(found, model.fit(P.X, labels, P.weights), REPEATED)
    assert_array_equal(found.classes_, model.classes_)


@pytest.mark.parametrize("seed", [None, 3])
def test_a_part_of_the_rows_as_candidates(monkeypatch, seed, rng):
    monkeypatch.setattr(dictionary, "LARGEST_COMPLETE", 30)
    monkeypatch.setattr(blocks_module, "LARGEST_COMPLETE", 30)
    monkeypatch.setattr(dictionary, "DEFAULT_CANDIDATES", 20)
    model = KernelMatchingPursuitRegressor(4, random_state=seed)
    found = clone(model).fit_blocks(in_blocks(P.X, P.Y))
    assert found.n_candidates_ == 20
    again = clone(model).fit_blocks(in_blocks(P.X, P.Y)[::-1])
    assert_array_equal(
        np.sort(found.statistics_.vectors, axis=0), np.sort(again.statistics_.vectors, axis=0)
    )
    if seed is None:
        assert_same(found, model.fit(P.X, P.Y))
        assert_same(clone(model).fit(P.X, P.Y), model)
        assert_same(clone(model).fit(sparse.csr_matrix(P.X), P.Y), model)


def test_the_draw_is_uniform_over_distinct_rows(rng):
    X = np.repeat(rng.standard_normal((2000, 2)), 2, axis=0)
    drawn = dictionary.draw_candidates(np.arange(4000), 500, None, X)
    assert len(np.unique(X[drawn], axis=0)) == 500
    assert (drawn % 2 == 0).all()
    assert abs((drawn < 2000).mean() - 0.5) < 0.1
    for column in X[drawn].T:
        assert abs((column < 0).mean() - 0.5) < 0.1
    seeded = dictionary.draw_candidates(np.arange(4000), 500, 1, X)
    assert not np.array_equal(seeded, drawn)
    without = dictionary.draw_candidates(np.arange(50), 5, None)
    assert_array_equal(without, dictionary.draw_candidates(np.arange(50), 5, None))


def test_the_html_representation_says_how_many_were_searched(monkeypatch):
    monkeypatch.setattr(dictionary, "LARGEST_COMPLETE", 30)
    monkeypatch.setattr(dictionary, "DEFAULT_CANDIDATES", 20)
    model = KernelMatchingPursuitRegressor(2).fit(P.X, P.Y)
    assert model.n_candidates_ == 20
    if not hasattr(model, "_get_fitted_attr_html"):
        pytest.skip("scikit-learn 1.9 is the first to show fitted attributes")
    assert "n_candidates_" in model._repr_html_()


def test_an_iterator_is_read_once():
    model = KernelMatchingPursuitRegressor(6, n_candidates=12)
    found = clone(model).fit_blocks(iter(in_blocks(P.X, P.Y)))
    assert found.support_.max() < 12  # the first two blocks hold 12 rows
    expected = clone(model).set_params(
        dictionary=found.statistics_.vectors, n_candidates=None, gamma=found.kernel_.gamma
    )
    expected.fit(P.X, P.Y)
    assert_allclose(found.predict(P.X), expected.predict(P.X), rtol=1e-8, atol=1e-8)
    called = clone(model).fit_blocks(lambda: iter(in_blocks(P.X, P.Y)))
    assert_same(called, clone(model).fit_blocks(in_blocks(P.X, P.Y)))


def test_partial_fit_goes_on():
    blocks = in_blocks(P.X, P.labels)
    whole = KernelMatchingPursuitClassifier(5, n_candidates=8, gamma=0.3)
    part = clone(whole).fit_blocks(iter(blocks[:2]), classes=np.unique(P.labels))
    for X, y in blocks[2:]:
        part.partial_fit(X, y)
    whole.fit_blocks(iter(blocks), classes=np.unique(P.labels))
    assert_same(part, whole)


def test_a_killed_pass_goes_on_from_its_checkpoint(tmp_path):
    model = KernelMatchingPursuitRegressor(6, n_candidates=10)
    reads = []

    def blocks(last):
        for i, block in enumerate(in_blocks(P.X, P.Y, P.weights)):
            reads.append(i)
            if i == last and reads.count(i) == 2:
                raise KeyboardInterrupt
            yield block

    kept = StatisticsCheckpoint(tmp_path / "sums.pursuit", every=0.0)
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit_blocks(lambda: blocks(3), checkpoint=kept)
    assert kept.load().n_rows_ == 40
    added = []
    statistics = blocks_module.KernelStatistics
    original = statistics._add

    def count(self, samples, **options):
        added.append(samples.X.shape[0])
        return original(self, samples, **options)

    statistics._add = count
    try:
        found = clone(model).fit_blocks(lambda: blocks(None), checkpoint=kept)
    finally:
        statistics._add = original
    assert added == [20]
    assert_same(found, clone(model).fit_blocks(in_blocks(P.X, P.Y, P.weights)))
    assert kept.load().n_rows_ == 60
    other = clone(model).set_params(gamma=0.5)
    with pytest.raises(ValueError, match="kernel"):
        other.fit_blocks(in_blocks(P.X, P.Y), checkpoint=kept)
    moved = [(P.X[:50], P.Y[:50]), (P.X[50:], P.Y[50:])]
    part = StatisticsCheckpoint(tmp_path / "part.pursuit")
    part.finish(clone(model).fit_blocks(in_blocks(P.X, P.Y)).statistics_)
    sums = part.load()
    sums.n_rows_ = 40
    part.finish(sums)
    with pytest.raises(ValueError, match="do not begin where its rows end"):
        clone(model).fit_blocks(moved, checkpoint=part)


def test_parquet_in_blocks(tmp_path, rng):
    X, y = rng.standard_normal((90, 3)), rng.integers(0, 2, 90)
    frame = pl.DataFrame({"a": X[:, 0], "y": y, "b": X[:, 1], "w": np.arange(90) % 3, "c": X[:, 2]})
    path = tmp_path / "rows.parquet"
    frame.with_columns(name=pl.lit("text")).write_parquet(path, row_group_size=25)
    blocks = ParquetBlocks(path, "y", features=["c", "a", "b"], weight="w", n_rows=40)
    assert [len(block[1]) for block in blocks] == [40, 40, 10]
    assert blocks.height == 90
    model = KernelMatchingPursuitClassifier(5)
    found = clone(model).fit_blocks(blocks)
    assert_same(found, model.fit(X[:, [2, 0, 1]], y, np.arange(90) % 3))
    for options, message in (
        ({"target": "z"}, "no column 'z'"),
        ({"target": "y"}, "'name' holds no numbers"),
        ({"target": "y", "features": []}, "no column of features"),
    ):
        with pytest.raises(ValueError, match=message):
            ParquetBlocks(path, **options)
    with pytest.raises(ValueError, match="no such file"):
        ParquetBlocks(tmp_path / "none.parquet", "y")


@pytest.mark.parametrize("way", ["memmap", "blocks"])
def test_rows_on_a_disk_are_never_copied_whole(tmp_path, rng, way):
    shape = (60_000, 32)
    table = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=shape)
    for start in range(0, shape[0], 10_000):
        table[start : start + 10_000] = rng.standard_normal((10_000, shape[1]))
    y = np.asarray(table[:, 0] ** 2)
    table = np.memmap(tmp_path / "rows", dtype=np.float64, mode="r", shape=shape)
    model = KernelMatchingPursuitRegressor(3, n_candidates=20, gamma="scale")
    with config_context(working_memory=4):
        tracemalloc.start()
        if way == "memmap":
            model.fit(table, y)
        else:
            model.fit_blocks(
                lambda: ((table[i : i + 4000], y[i : i + 4000]) for i in range(0, shape[0], 4000))
            )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert os.path.getsize(tmp_path / "rows") == table.nbytes
    assert peak < 0.5 * table.nbytes
    assert_array_equal(table[model.support_], model.support_vectors_)


@pytest.mark.parametrize(
    ("model", "blocks", "message"),
    [
        (KernelMatchingPursuitRegressor(3), [], "no row of positive weight"),
        (KernelMatchingPursuitRegressor(3), [(P.X,)], "a block must be a tuple"),
        (KernelMatchingPursuitRegressor(3, n_candidates=0.5), [(P.X, P.Y)], "not a fraction"),
        (KernelMatchingPursuitRegressor(3, loss="huber"), [(P.X, P.Y)], "loss='squared_error'"),
        (KernelMatchingPursuitRegressor(3, kernel="precomputed"), [(P.X, P.Y)], "one kernel of"),
        (KernelMatchingPursuitRegressor("x"), [(P.X, P.Y)], "n_components"),
        (KernelMatchingPursuitRegressor(3), [(P.X, P.Y), (P.X[:, :2], P.Y)], "features"),
        (KernelMatchingPursuitClassifier(3), [(P.X, np.zeros(60))], "one class only"),
    ],
)
def test_bad_calls_name_what_is_wrong(model, blocks, message):
    with pytest.raises(ValueError, match=message):
        model.fit_blocks(blocks)
