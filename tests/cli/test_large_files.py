"""Parquet files that are fitted in blocks."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pursuit import TableModel
from pursuit.checkpoints import StatisticsCheckpoint
from pursuit.cli import fit_large
from pursuit.cli.app import main
from pursuit.table import large_files

N_ROWS = 500


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Numbers, text, missing cells and missing targets."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, N_ROWS))
    place = rng.choice(["hill", "lake", "town"], N_ROWS)
    price = np.sin(2 * a) + (place == "lake") + 0.05 * rng.standard_normal(N_ROWS)
    frame = pl.DataFrame({"a": a, "place": place, "b": b, "price": price})
    frame = frame.with_columns(
        b=pl.when(pl.int_range(N_ROWS) % 17 == 0).then(None).otherwise("b"),
        price=pl.when(pl.int_range(N_ROWS) % 50 == 9).then(None).otherwise("price"),
        dear=pl.when(pl.col("price") > 0.5).then(pl.lit("yes")).otherwise(pl.lit("no")),
    )
    path = tmp_path_factory.mktemp("large") / "rows.parquet"
    frame.write_parquet(path, row_group_size=100)
    return path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(large_files, "BLOCK_ROWS", 120)
    monkeypatch.setattr("pursuit.reports.timing.TIMING_SECONDS", 0.001)


def fit(table, output, *options, target="price"):
    drop = "dear" if target == "price" else "price"
    given = ["fit", str(table), "-t", target, "-o", str(output), "--drop", drop, "-n", "6"]
    return main([*given, "--gamma", "0.2", "--stream", *options])


def features_and_target(model, table, target="price"):
    frame = pl.read_parquet(table).filter(pl.col(target).is_not_null())
    return model.features(frame), frame[target].to_numpy()


def test_selected_vectors_have_the_best_coefficients_on_all_rows(table, tmp_path):
    assert fit(table, tmp_path / "m.pursuit", "--method", "selected") == 0
    model = TableModel.load(tmp_path / "m.pursuit")
    X, y = features_and_target(model, table)
    assert model.estimator_.n_components_ == 6
    vectors = model.estimator_.support_vectors_
    assert (X[:, None] == vectors).all(axis=2).any(axis=0).all()
    design = np.hstack([model.estimator_.kernel_(X, vectors), np.ones((len(X), 1))])
    expected = np.linalg.lstsq(design, y)[0]
    assert_allclose(model.estimator_.predict(X), design @ expected, atol=1e-6)


@pytest.mark.parametrize("target", ["price", "dear"])
def test_moved_vectors_have_the_best_coefficients_on_all_rows(table, tmp_path, target, capsys):
    weight = ["--class-weight", "yes=3"] if target == "dear" else []
    assert fit(table, tmp_path / "m.pursuit", "--price", "5", *weight, target=target) == 0
    out = capsys.readouterr()
    assert "rows held out" in out.out and f"{N_ROWS} rows were read in blocks" in out.err
    model = TableModel.load(tmp_path / "m.pursuit")
    X, y = features_and_target(model, table, target)
    estimator = model.estimator_
    found = estimator.dual_coef_.copy()
    weights = np.where(y == "yes", 3.0, 1.0) if weight else None
    estimator.refit(estimator.empty_statistics().update(X, y, weights))
    assert_allclose(found, estimator.dual_coef_, rtol=1e-6, atol=1e-8)
    assert not hasattr(estimator, "nearest_rows_")
    assert [path.name for path in tmp_path.iterdir()] == ["m.pursuit"]


@pytest.mark.parametrize("method", ["selected", "moving"])
def test_an_interrupted_run_goes_on(table, tmp_path, monkeypatch, capsys, method):
    options = ["--method", method, *(["--price", "5"] if method == "moving" else [])]
    assert fit(table, tmp_path / "whole.pursuit", *options) == 0
    monkeypatch.setattr(large_files, "CHECKPOINT_SECONDS", 0.0)
    seen = StatisticsCheckpoint.seen

    def stop(self, statistics):
        seen(self, statistics)
        if statistics.n_rows_ > 150:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StatisticsCheckpoint, "seen", stop)
        assert fit(table, tmp_path / "part.pursuit", *options) == 130
    left = {path.name for path in tmp_path.iterdir()} - {"whole.pursuit"}
    assert left == {"part.pursuit.sample", "part.pursuit.sums"}
    assert fit(table, tmp_path / "part.pursuit", *options, "--scale", "--resume", "-n", "5") == 3
    assert "other options" in capsys.readouterr().err
    assert fit(table, tmp_path / "part.pursuit", *options, "--resume") == 0
    whole, part = (TableModel.load(tmp_path / f"{n}.pursuit") for n in ("whole", "part"))
    assert_array_equal(part.estimator_.support_vectors_, whole.estimator_.support_vectors_)
    assert_allclose(part.estimator_.dual_coef_, whole.estimator_.dual_coef_, rtol=1e-8)
    if method == "moving":
        assert fit(table, tmp_path / "new.pursuit", *options, "--resume") == 0
        assert "nothing to resume from" in capsys.readouterr().err


def test_the_error_is_that_of_rows_the_fit_has_not_seen(table):
    rows = large_files.Rows(table)
    places = np.arange(N_ROWS)
    held = places % rows.held_step == rows.step // 2
    model = TableModel(6, method="selected", gamma=0.2, drop=["dear"])
    model.fit_rows(*model.learn(rows.sample(), "price"))
    X = np.vstack([X for X, _ in rows.blocks(model, lambda items, label: items)])
    there = pl.read_parquet(table)["price"].is_not_null().to_numpy()
    frame = pl.read_parquet(table)
    assert_allclose(X, model.features(frame.filter(pl.Series(~held & there))))
    assert_allclose(rows.held(model)[0], model.features(frame.filter(pl.Series(held & there))))


def test_only_large_parquet_files_are_read_in_blocks_by_themselves(table, monkeypatch, tmp_path):
    assert large_files.n_bytes(table) == 8 * N_ROWS * 5
    assert large_files.n_bytes(tmp_path / "none.parquet") == 0
    assert large_files.n_bytes(tmp_path / "table.csv") == 0
    (tmp_path / "bad.parquet").write_bytes(b"no")
    assert large_files.n_bytes(tmp_path / "bad.parquet") == 0
    command = type("Command", (), {"stream": None, "resume": False, "data": table})
    assert not fit_large.is_large(command)
    monkeypatch.setattr(fit_large, "LARGE_BYTES", 8 * N_ROWS * 5 - 1)
    assert fit_large.is_large(command)
    command.stream = False
    assert not fit_large.is_large(command)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--loss", "huber"], "--loss huber needs all rows"),
        (["--class-weight", "balanced"], "balanced needs all rows"),
    ],
)
def test_what_sums_do_not_tell_is_refused(table, tmp_path, capsys, options, message):
    assert fit(table, tmp_path / "m.pursuit", *options) == 2
    assert message in capsys.readouterr().err


def test_other_formats_are_not_read_in_blocks(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    output = str(tmp_path / "m.pursuit")
    assert main(["fit", str(tmp_path / "t.csv"), "-t", "b", "-o", output, "--stream"]) == 2
    assert "Parquet file only" in capsys.readouterr().err
    assert main(["fit", str(tmp_path / "t.csv"), "-t", "b", "-o", output, "--resume"]) == 2
    assert "--resume goes with" in capsys.readouterr().err
