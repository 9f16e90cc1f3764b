"""The demonstration, with small grids."""

import os
import re

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

import pursuit
from pursuit.cli import app as cli
from pursuit.cli import demo


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Run with three budgets and one gamma in an empty folder, without a screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    matplotlib.use("agg")
    for name, value in {
        "BUDGETS": (5, 20, 60),
        "GAMMAS": (0.02,),
        "PENALTIES": (10.0,),
    }.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr("pursuit.reports.timing.TIMING_SECONDS", 0.002)


def test_all_rows_of_matching_pursuit_are_cuts_of_the_written_model(tmp_path):
    rows, lines = demo.run(tmp_path / "out", lambda items, label: items)
    ours = [row for row in rows if row.name == "matching pursuit"]
    assert [row.n_vectors for row in ours] == [5, 20, 60]
    assert [row.n_vectors for row in rows] == sorted(row.n_vectors for row in rows)
    accuracies = [row.accuracy for row in ours]
    assert accuracies == sorted(accuracies)
    assert accuracies[-1] > 0.93
    model = pursuit.load(tmp_path / "out" / "digits.pursuit")
    assert model.n_components_ == 60
    X = np.random.default_rng(0).uniform(0, 1, (5, 64))
    assert (tmp_path / "out" / "digits.pursuit").stat().st_size == ours[-1].n_bytes
    assert f"{ours[-1].n_bytes:,} bytes" in lines[0]
    assert len(model.predict(X)) == 5
    pictures = ["path.png", "relevances.png", "vectors.png"]
    assert sorted(os.listdir(tmp_path / "out")) == ["digits.pursuit", *pictures]
    for picture in pictures:
        assert imread(tmp_path / "out" / picture).std() > 0.05
    moved = [row for row in rows if row.name == "moved vectors"]
    assert [row.n_vectors for row in moved] == [5, 20, 60]
    assert all(a.accuracy > b.accuracy for a, b in zip(moved, ours, strict=True))
    (svm,) = (row for row in rows if row.name == "SVC")
    assert f"which keeps {svm.n_vectors}" in lines[-1]


def test_the_command_prints_the_table_and_the_places(capsys, monkeypatch):
    monkeypatch.setattr(demo, "BUDGETS", (5, 20))
    assert cli.main(["demo", "--output-dir", "here"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = re.findall(
        r"^ +(moved vectors|matching pursuit|Nystroem, logistic|SVC) +([0-9]+) +([0-9.]+) %",
        out,
        re.M,
    )
    assert [(name, int(n)) for name, n, _ in rows[:-1]] == [
        (name, n)
        for n in (5, 20)
        for name in ("moved vectors", "matching pursuit", "Nystroem, logistic")
    ]
    assert rows[-1][0] == "SVC"
    assert os.path.join("here", "digits.pursuit") in out
    assert os.path.join("here", "path.png") in out


def test_without_matplotlib_there_is_no_picture(tmp_path, monkeypatch):
    def missing(*_, **__):
        raise ImportError("matplotlib")

    monkeypatch.setattr(demo, "BUDGETS", (5,))
    for name in ("PursuitPathDisplay", "VectorImageDisplay", "FeatureRelevanceDisplay"):
        display = getattr(demo, name)
        monkeypatch.setattr(display, "from_estimator", missing)
    _, lines = demo.run(tmp_path / "out", lambda items, label: items)
    assert "no picture: it needs pip install 'pursuit[plot]'" in lines
    assert os.listdir(tmp_path / "out") == ["digits.pursuit"]


def row(n_vectors, accuracy, n_bytes=100, rows_a_second=1000.0):
    return demo.Measured("", n_vectors, accuracy, n_bytes, 1.0, rows_a_second)


def test_the_conclusion_is_about_the_smallest_budget_near_the_svm():
    svm = row(500, 0.98, 1000, 10.0)
    said = demo._conclusion([row(10, 0.9), row(50, 0.976), row(100, 0.99)], svm, "Said.")
    assert "With 50 vectors it is within half a point of the SVM, which keeps 500" in said
    assert "in 10.0 times fewer bytes and with 100 times as many rows a second" in said
    said = demo._conclusion([row(10, 0.8), row(50, 0.9)], svm, "Said.")
    assert "With 50 vectors it stays below the SVM" in said
