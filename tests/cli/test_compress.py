"""`pursuit compress`: what it writes, what it tells, and what it refuses."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import skops.io
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

import pursuit
from pursuit.cli import app as cli


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments):
        code = cli.main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def digits_machine(name):
    """An SVC of the digits, saved by skops, and a table of further digits."""
    X, y = load_digits(return_X_y=True)
    last = SVC(C=10).fit(X[:600], y[:600])
    skops.io.dump(last, f"{name}.skops")
    frame = pl.DataFrame(X[600:900], schema=[f"pixel{i}" for i in range(64)])
    frame.with_columns(pl.Series("digit", y[600:900])).write_csv("more.csv")
    return last, X[600:900], y[600:900]


def test_compress_writes_a_small_machine_and_says_what_changed(run):
    svc, X, y = digits_machine("svc")
    code, shown, errors = run(
        "compress",
        "svc.skops",
        "-o",
        "small.pursuit",
        "-n",
        40,
        "--data",
        "more.csv",
        "-t",
        "digit",
    )
    assert (code, errors) == (0, "")
    small = pursuit.load("small.pursuit")
    assert small.n_components_ == 40
    rows = [line.split() for line in shown.splitlines()]
    assert ["vectors", str(len(svc.support_)), "40"] in rows
    assert ["accuracy", f"{svc.score(X, y):.4f}", f"{small.score(X, y):.4f}"] in rows
    change = np.mean(svc.predict(X) != small.predict(X))
    assert f"predictions that change {100 * change:.2f} %" in " ".join(shown.split())
    assert f"{small.relative_error_:.3g}" in shown
    assert f"{Path('small.pursuit').stat().st_size:,}" in shown
    code, told, _ = run("info", "small.pursuit")
    assert code == 0
    assert "CompressedClassifier" in told and "40 of at most 40" in told and "RBF" in told
    assert f"{small.relative_error_:.3g}" in told


def test_compress_moves_the_vectors_with_and_without_rows(run):
    digits_machine("svc")
    shared = ("compress", "svc.skops", "-n", 10, "-o")
    rows = ("--data", "more.csv", "-t", "digit")
    assert run(*shared, "plain.pursuit")[0] == 0
    assert run(*shared, "drawn.pursuit", "--refit", "move")[0] == 0
    assert run(*shared, "moved.pursuit", "--refit", "move", *rows)[0] == 0
    vectors = [
        pursuit.load(f"{name}.pursuit").support_vectors_ for name in ("plain", "drawn", "moved")
    ]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(vectors[i] - vectors[j]).max() > 0.1


@pytest.mark.parametrize("refit", ["least_squares", "margin"])
def test_compress_refits_on_the_rows(run, refit):
    digits_machine("svc")
    shared = ("compress", "svc.skops", "-n", 20, "--data", "more.csv", "-t", "digit", "-o")
    assert run(*shared, "plain.pursuit")[0] == 0
    assert run(*shared, "refit.pursuit", "--refit", refit)[0] == 0
    plain, refitted = pursuit.load("plain.pursuit"), pursuit.load("refit.pursuit")
    np.testing.assert_array_equal(plain.support_vectors_, refitted.support_vectors_)
    assert np.abs(plain.dual_coef_ - refitted.dual_coef_).max() > 1e-3


def test_compress_a_regression_stops_at_the_tolerance(run):
    X = np.linspace(0, 6, 80)[:, None]
    skops.io.dump(SVR(C=10).fit(X, np.sin(X[:, 0])), "svr.skops")
    pl.DataFrame({"x": X[:, 0]}).write_csv("rows.csv")
    shared = ("compress", "svr.skops", "-o", "svr.pursuit", "-n", 40, "--data", "rows.csv")
    code, shown, _ = run(*shared, "--tol", 0.05)
    assert code == 0
    assert "root mean square change" in shown and "accuracy" not in shown and "R2" not in shown
    assert pursuit.load("svr.pursuit").n_components_ < 12


def test_compress_a_pipeline_needs_a_file_of_skops(run, folder):
    X, y = load_digits(return_X_y=True)
    skops.io.dump(make_pipeline(StandardScaler(), SVC()).fit(X[:400], y[:400]), "pipe.skops")
    code, _, errors = run("compress", "pipe.skops", "-o", "small.pursuit", "-n", 30)
    assert (code, errors.count("\n")) == (2, 1)
    assert "small.skops" in errors and not (folder / "small.pursuit").exists()
    code, shown, _ = run("compress", "pipe.skops", "-o", "small.SKOPS", "-n", 30)
    assert code == 0 and "vectors" in shown
    trusted = skops.io.get_untrusted_types(file="small.SKOPS")
    assert all(name.startswith("pursuit.") for name in trusted)
    small = skops.io.load("small.SKOPS", trusted=trusted)
    assert small[-1].n_components_ == 30
    assert small.score(X[400:], y[400:]) > 0.8


def test_compress_refuses_what_it_does_not_know(run, folder):
    digits_machine("svc")
    skops.io.dump(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), "other.skops")
    skops.io.dump(make_pipeline(FunctionTransformer(print), SVC()), "foreign.skops")
    Path("broken.skops").write_text("no archive")
    Path("narrow.csv").write_text("a,b\n1,2\n")
    base = ("-o", "small.pursuit", "-n", 5)
    cases = [
        (3, "not trusted", "foreign.skops", *base),
        (3, "skops.io.dump", "broken.skops", *base),
        (3, "got LogisticRegression", "other.skops", *base),
        (3, "2 columns, but the model has 64 features", "svc.skops", *base, "--data", "narrow.csv"),
        (2, "--target goes with --data only", "svc.skops", *base, "-t", "digit"),
        (2, "--refit goes with --data only", "svc.skops", *base, "--refit", "margin"),
        (2, "--refit margin needs targets", "svc.skops", *base, "--refit", "margin", "--data")
        + ("more.csv",),
        (2, "--output", "svc.skops", "-o", "nowhere/small.pursuit", "-n", 5),
    ]
    for expected, message, *arguments in cases:
        if message == "--refit margin needs targets":
            pl.read_csv("more.csv").drop("digit").write_csv("more.csv")
        code, shown, errors = run("compress", *arguments)
        assert (code, shown, errors.count("\n")) == (expected, "", 1), arguments
        assert message in errors
    assert not (folder / "small.pursuit").exists()


def test_a_class_called_na_can_be_kept(run):
    X = np.linspace(0, 6, 40)[:, None]
    y = np.where(X[:, 0] > 3, "NA", "EU")
    skops.io.dump(SVC().fit(X, y), "regions.skops")
    pl.DataFrame({"x": X[:, 0], "y": y}).write_csv("regions.csv")
    base = ("compress", "regions.skops", "-o", "m", "-n", 5, "--data", "regions.csv", "-t", "y")
    told = "no target; 20 labels were read as missing ('NA' 20 times): --na '' keeps them"
    assert run(*base)[::2] == (3, f"regions.csv:22: column 'y': {told}\n")
    code, shown, errors = run(*base, "--na", "")
    assert (code, errors) == (0, "") and "accuracy" in shown
