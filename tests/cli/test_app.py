"""The command line: what it writes, and what every kind of bad input gets."""

import csv
import gzip
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest

import pursuit
from pursuit import TableModel
from pursuit.cli import app as cli
from pursuit.cli.fit import LossName
from pursuit.io.tables import read
from pursuit.kernels import RBF
from pursuit.losses import LOSSES


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("pursuit.reports.timing.TIMING_SECONDS", 0.001)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments):
        code = cli.main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def pursuit_process(*arguments, **options):
    command = [
        sys.executable,
        "-c",
        "import sys; from pursuit.cli.app import main; sys.exit(main())",
    ]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, **options)


def write(name, text):
    opened = gzip.open if name.endswith(".gz") else open
    with opened(name, "wt", encoding="utf-8") as file:
        file.write(text)
    return name


def people(n=120, seed=0):
    """A table of every kind of column, with missing cells; the label follows age and city."""
    rng = np.random.default_rng(seed)
    ages = rng.integers(18, 80, n)
    cities = rng.choice(["Bonn", "Köln", "Ulm, Donau"], n)
    rows = ["age,city,joined,income"]
    for i, (age, city) in enumerate(zip(ages, cities, strict=True)):
        cell = "" if i % 17 == 3 else age
        place = "" if i % 19 == 4 else f'"{city}"'
        income = "high" if (age > 45) != (city == "Bonn") else "low"
        rows.append(f"{cell},{place},20{i % 20 + 10}-03-{i % 28 + 1:02},{income}")
    return "\n".join(rows) + "\n"


def houses(n=100, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.uniform(30, 200, n)
    price = 3 * size + 50 * np.sin(size / 20) + rng.normal(0, 5, n)
    return "size,price\n" + "".join(f"{a},{b}\n" for a, b in zip(size, price, strict=True))


FINE = ("--n-components", "30", "--gamma", "0.2", "--alpha", "0.1")
QUICK = ("--n-components", "8", "--gamma", "0.2")


@pytest.fixture(scope="module")
def first_fit(tmp_path_factory):
    """A folder with the people and their model, fitted in this process, and what fit printed."""
    place = tmp_path_factory.mktemp("people")
    (place / "people.csv").write_text(people(), encoding="utf-8")
    options = ["--target", "income", "--output", str(place / "m.pursuit"), *FINE]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = cli.main(["fit", str(place / "people.csv"), *options])
    assert (code, err.getvalue()) == (0, "")
    return place, out.getvalue()


@pytest.fixture
def fitted(first_fit, folder):
    """Copies of them in the current folder."""
    place, printed = first_fit
    for name in os.listdir(place):
        shutil.copy(place / name, folder)
    return printed


def predictions(name):
    with open(name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- the way from a file to predictions -------------------------------------------------


def test_fit_reports_the_error_beside_the_baseline_and_the_cost(fitted):
    numbers = re.findall(r"error +([0-9.]+) % +([0-9.]+) %", fitted)
    ((error, baseline),) = numbers
    assert float(error) < 0.6 * float(baseline)
    assert "120 rows held out" in fitted
    assert re.search(r"always (high|low)", fitted)
    assert re.search(r"vectors +30\b", fitted)
    n_bytes = os.path.getsize("m.pursuit")
    assert f"{n_bytes:,}" in fitted
    assert n_bytes < 40_000
    assert re.search(r"microseconds a row +[0-9.]+", fitted)
    assert re.search(r"kernel +RBF\(gamma=0.2\)", fitted)


def test_gamma_and_size_are_chosen_when_not_given(run):
    write("houses.csv", houses())
    fit = ("fit", "houses.csv", "--target", "price", "--output", "m.pursuit")
    for options, kind in (
        ((), "SparseKernelRegressor"),
        (("--method", "moving", "--price", "100"), "SparseKernelRegressor"),
        (("--method", "selected"), "KernelMatchingPursuitRegressorCV"),
    ):
        code, out, err = run(*fit, *options)
        assert (code, err) == (0, "")
        error, baseline = re.search(r"root mean squared error +([0-9.]+) +([0-9.]+)", out).groups()
        assert float(error) < 0.2 * float(baseline)
        model = pursuit.load("m.pursuit").estimator_
        assert type(model).__name__ == kind
        assert 1 < model.n_components_ < 100
        assert not options or "--price" not in options or model.C == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alpha", "1"), "--alpha goes with --method selected only"),
        (("--staged",), "--staged goes with --method selected only"),
        (("--kernel", "sigmoid"), "--kernel sigmoid goes with --method selected only"),
        (("--method", "selected", "--price", "3"), "--price goes with --method moving only"),
    ],
)
def test_options_of_one_method(options, message, run):
    write("houses.csv", houses())
    given = options if "--method" in options else ("--method", "moving", *options)
    code, _, err = run("fit", "houses.csv", "--target", "price", "--output", "m", *given)
    assert (code, err) == (cli.EXIT_USAGE, f"{message}\n")
    assert not os.path.exists("m")


def test_predict_in_a_fresh_process_equals_the_fitting_process(fitted, run):
    write("new.csv", people(50, seed=1))
    code, out, err = run("predict", "m.pursuit", "new.csv", "--output", "here.csv", "--proba")
    assert (code, out, err) == (0, "", "")
    process = pursuit_process("predict", "m.pursuit", "new.csv", "--output", "there.csv", "--proba")
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
    with open("here.csv", "rb") as here, open("there.csv", "rb") as there:
        assert here.read() == there.read()
    rows = predictions("here.csv")
    assert list(rows[0]) == ["prediction", "probability_high", "probability_low"]
    truth = [row["income"] for row in csv.DictReader(people(50, seed=1).splitlines())]
    assert np.mean([row["prediction"] == y for row, y in zip(rows, truth, strict=True)]) > 0.75
    model = TableModel.load("m.pursuit")
    expected = model.estimator_.predict_proba(model.features(read("new.csv")))
    for row, (high, low) in zip(rows, expected, strict=True):
        assert (float(row["probability_high"]), float(row["probability_low"])) == (high, low)
        assert row["prediction"] == ("high" if high > low else "low")


def test_score_equals_the_test_file_of_fit(run):
    write("train.csv", houses())
    write("test.csv", houses(60, seed=1))
    common = ("fit", "train.csv", "--target", "price", "--output", "m.pursuit", *QUICK)
    _, out, _ = run(*common, "--test", "test.csv")
    measured = r"root mean squared error +([0-9.]+ +[0-9.]+)"
    assert "60 test rows" in out
    on_test = re.search(measured, out).group(1)
    code, out, err = run("score", "m.pursuit", "test.csv")
    assert (code, err) == (0, "")
    assert "60 rows of the file" in out
    assert re.search(measured, out).group(1).split() == on_test.split()


def test_the_same_seed_gives_the_same_file(run):
    write("houses.csv", houses())
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        options = ("--n-candidates", 30, "--seed", seed, *QUICK)
        run("fit", "houses.csv", "--target", "price", "--output", name, *options)
    supports = [pursuit.load(name).estimator_.support_.tolist() for name in "abc"]
    assert supports[0] == supports[1] != supports[2]


def test_staged_keeps_the_smaller_models(run):
    write("houses.csv", houses())
    common = ("fit", "houses.csv", "--target", "price", *QUICK)
    run(*common, "--output", "small", "--method", "selected")
    run(*common, "--output", "staged", "--staged")
    assert pursuit.load("staged").truncate(3).n_components_ == 3
    with pytest.raises(ValueError, match="staged=False"):
        pursuit.load("small").truncate(3)
    assert os.path.getsize("small") < os.path.getsize("staged")


FORMATS = ["d.csv.gz", "d.tsv", "d.parquet", "d.npz", "d.svm", "d.libsvm.gz"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_fits_scores_and_predicts(run, name):
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(0, 1, (60, 3)), 3)
    y = (X[:, 0] > X[:, 1]).astype(int)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    if name.endswith("parquet"):
        frame.write_parquet(name)
    elif name.endswith("npz"):
        np.savez(name, X=X, y=y)
    elif "svm" in name:
        write(name, "".join(f"{t} 1:{a} 2:{b} 3:{c}\n" for (a, b, c), t in zip(X, y, strict=True)))
    else:
        write(name, frame.write_csv(separator="\t" if "tsv" in name else ","))
    target = () if name.endswith("npz") or "svm" in name else ("--target", "y")
    options = ("--output", "m", "--n-components", 10, "--gamma", 1, "--price", 1000)
    code, out, err = run("fit", name, *target, *options)
    assert (code, err) == (0, ""), err
    error, baseline = re.search(r"error +([0-9.]+) % +([0-9.]+) %", out).groups()
    assert float(error) < 0.4 * float(baseline)
    assert run("score", "m", name)[0] == 0
    assert run("predict", "m", name, "--output", "p.csv")[0] == 0
    answers = [int(float(row["prediction"])) for row in predictions("p.csv")]
    assert np.mean(answers == y) > 0.9


def test_info_tells_of_the_columns_and_the_path(fitted, run):
    code, out, err = run("info", "m.pursuit")
    assert (code, err) == (0, "")
    for line in (
        r"class +KernelMatchingPursuitClassifier",
        rf"written by +pursuit {re.escape(pursuit.__version__)}",
        r"vectors +30 of at most 30",
        r"target +income \(classification\)",
        r"column age +number",
        r"column city +text",
        r"column joined +date",
    ):
        assert re.search(line, out), line
    losses = re.findall(r"^ +([0-9]+) +(0\.[0-9]+) *$", out, re.MULTILINE)
    assert [int(n) for n, _ in losses] == [1, 2, 5, 10, 20, 30]
    assert sorted(losses, key=lambda row: -float(row[1])) == losses


def test_info_of_a_model_that_python_saved(run):
    X = np.arange(20.0)[:, None]
    model = pursuit.KernelMatchingPursuitRegressorCV(10, gammas=[0.1, 1.0]).fit(X, np.sin(X[:, 0]))
    pursuit.save(model, "m")
    code, out, _ = run("info", "m")
    assert code == 0
    assert "cross-validated" in out and "target" not in out
    code, _, err = run("score", "m", write("a.csv", "x,y\n1,2\n"))
    assert code == 3
    assert err == "m holds an estimator alone, not the columns of a table; use pursuit.load\n"


def visits(n=90, seed=0):
    """A table of small counts whose mean follows the hour."""
    rng = np.random.default_rng(seed)
    hours = rng.uniform(0, 6, n)
    counts = rng.poisson(np.exp(1 + np.sin(hours)))
    return "hour,visits\n" + "".join(f"{a},{b}\n" for a, b in zip(hours, counts, strict=True))


def test_the_command_line_knows_every_loss():
    assert get_args(LossName) == tuple(LOSSES)


MEASURED = {
    "huber": ("mean absolute error", "the median", r"Huber\(delta=[0-9.]+\)"),
    "absolute_error": ("mean absolute error", "the median", r"AbsoluteError\("),
    "quantile": ("mean pinball loss", "the 0.5 quantile", r"Quantile\(quantile=0.5,"),
    "poisson": ("mean Poisson deviance", "the mean", r"Poisson\(\)"),
}


@pytest.mark.parametrize("loss", MEASURED)
def test_a_loss_for_numbers_takes_counts_as_numbers_and_measures_by_itself(run, loss):
    write("a.csv", visits())
    options = ("--target", "visits", "--output", "m", "--loss", loss, "--price", "10")
    code, out, err = run("fit", "a.csv", *options, "--n-components", "4", "--gamma", "0.5")
    assert (code, err) == (0, "")
    name, constant, shown = MEASURED[loss]
    error, baseline = re.search(rf"{name} +([0-9.]+) +([0-9.]+)", out).groups()
    assert float(error) < 0.8 * float(baseline)
    assert constant in out
    assert re.search(rf"loss +{shown}", out)
    assert name in run("score", "m", "a.csv")[1]
    assert re.search(rf"loss +{shown}", run("info", "m")[1])


def test_a_loss_for_classes_and_its_ridge(run):
    write("a.csv", people(60))
    options = ("--target", "income", "--output", "m", "--loss", "log_loss", *QUICK)
    options += ("--method", "selected")
    code, out, _ = run("fit", "a.csv", *options)
    assert (code, bool(re.search(r"error +[0-9.]+ %", out))) == (0, True)
    assert re.search(r"loss +LogLoss\(\)", out)
    automatic = pursuit.load("m").estimator_
    run("fit", "a.csv", *options, "--alpha", "10")
    given = pursuit.load("m", table=False)
    assert (automatic.alpha, given.alpha) == ("auto", 10.0)
    assert np.abs(given.dual_coef_).max() < 0.5 * np.abs(automatic.dual_coef_).max()


def test_the_level_of_a_quantile(run):
    write("a.csv", visits())
    options = ("--target", "visits", "--output", "m", "--loss", "quantile", "--price", "10")
    code, out, err = run("fit", "a.csv", *options, "-n", "5", "--gamma", "2", "--quantile", "0.9")
    assert (code, err) == (0, "")
    assert "the 0.9 quantile" in out
    y = read("a.csv").frame["visits"].cast(pl.Float64).to_numpy()
    run("predict", "m", "a.csv", "--output", "p.csv")
    predicted = np.array([float(row["prediction"]) for row in predictions("p.csv")])
    assert 0.85 < np.mean(y <= predicted + 0.1) < 1.0


NEGATIVE = visits().replace("\n", "\n1.5,\n", 1) + "2.5,-3\n"


def test_counts_below_zero_are_told_with_their_place(run):
    write("a.csv", visits())
    write("bad.csv", NEGATIVE)
    options = ("--target", "visits", "--output", "m", "--loss", "poisson", *QUICK)
    message = "bad.csv:93: column 'visits': -3 is below zero, where the Poisson loss is not defined"
    note = "note: bad.csv:2: no target; 1 such rows are left out, this is the first"
    expected = (3, "", f"{note}\n{message}\n")
    assert run("fit", "bad.csv", *options) == expected
    assert run("fit", "a.csv", *options, "--test", "bad.csv") == expected
    assert not os.path.exists("m")
    assert run("fit", "a.csv", *options)[0] == 0
    assert run("score", "m", "bad.csv") == expected
    np.savez("bad.npz", X=np.arange(4.0)[:, None], y=np.array([1.0, 2.0, -1.0, 0.0]))
    message = (
        "bad.npz: row 3: column 'y': -1 is below zero, where the Poisson loss is not defined\n"
    )
    assert run("fit", "bad.npz", *options[2:]) == (3, "", message)


def trend(X):
    return X[:, 0]


def test_info_of_a_mixed_dictionary_with_functions(run, monkeypatch):
    X = np.linspace(0, 6, 40)[:, None]
    parts = [RBF(0.5), RBF(8.0), {"trend": trend, "square": lambda X: X[:, 0] ** 2}]
    model = pursuit.KernelMatchingPursuitRegressor(12, dictionary=parts, loss="huber")
    model.fit(X, X[:, 0] + np.sin(8 * X[:, 0]))
    names = model.component_names_
    assert {"trend", "RBF(gamma=8.0)"} <= set(names)
    pursuit.save(model, "m")
    out = run("info", "m")[1]
    for name in set(names):
        assert f"{names.count(name)} of {name} " in out
    assert re.search(r"loss +Huber\(delta=", out)
    monkeypatch.setattr("pursuit.cli.info.MOST_KINDS", 1)
    first = max(names.count(name) for name in names)
    assert f"{12 - first} of {len(set(names)) - 1} other kinds" in run("info", "m")[1]


STOPPED = {True: "held-out loss", "loo": "leave-one-out loss", "bound": "bound"}


@pytest.mark.parametrize("rule", STOPPED)
def test_info_shows_what_early_stopping_followed(run, rule):
    X = np.linspace(0, 6, 60)[:, None]
    model = pursuit.KernelMatchingPursuitRegressor(9, early_stopping=rule, random_state=0)
    pursuit.save(model.fit(X, np.sin(X[:, 0]) + 0.3 * np.cos(97 * X[:, 0])), "m")
    out = run("info", "m")[1]
    followed = {
        "held-out loss": "validation_loss_path_",
        "leave-one-out loss": "leave_one_out_loss_path_",
        "bound": "bound_path_",
    }[STOPPED[rule]]
    assert f"training loss   {STOPPED[rule]}" in out
    assert re.search(rf"^ +1 +[0-9.]+ +{getattr(model, followed)[0]:.4g} *$", out, re.MULTILINE)


def test_columns_dropped_taken_as_text_and_left_alone(run):
    rows = "".join(f"{i % 5},{i},{i % 2}\n" for i in range(40))
    write("a.csv", "code,id,y\n" + rows)
    options = ("--drop", "id", "--text", "code", "--no-scale", *QUICK)
    assert run("fit", "a.csv", "--target", "y", "--output", "m", *options)[0] == 0
    layout = TableModel.load("m").layout_
    assert [(column.name, column.kind) for column in layout.columns] == [("code", "text")]
    assert layout.left_out == ("id",)
    assert not layout.scale


def test_notes_go_to_standard_error(run):
    write("a.csv", "x,void,y\n" + "".join(f"{i},,{i / 2 if i != 4 else ''}\n" for i in range(30)))
    options = ("--n-components", "2", "--gamma", "0.2")
    code, _, err = run("fit", "a.csv", "--target", "y", "--output", "m", *options)
    assert code == 0
    assert err.splitlines() == [
        "note: a.csv: column 'void' is empty: left out",
        "note: a.csv:6: no target; 1 such rows are left out, this is the first",
    ]
    write("b.csv", "x,other\n1,2\n")
    code, _, err = run("predict", "m", "b.csv", "--output", "p.csv")
    assert (code, err) == (0, "note: b.csv: column 'other' is not in the model: ignored\n")


def test_warnings_become_notes(run):
    write("a.csv", "x,y\n" + "".join(f"{i % 4},{i}\n" for i in range(40)))
    options = ("--method", "selected", *QUICK)
    code, _, err = run("fit", "a.csv", "--target", "y", "--output", "m", *options)
    assert code == 0
    assert re.fullmatch(r"note: n_components=8, but the path ended after \d steps: .*\n", err)


DEGENERATE = {
    "three rows": ("x,y\n1,0.5\n2,1\n4,1.5\n", ("--n-components", "100")),
    "twins": ("x,y\n" + "1,0.5\n2,1.25\n" * 20, ()),
    "a constant": ("x,c,y\n" + "".join(f"{i},7,{i / 3}\n" for i in range(30)), ()),
    "no target but zero": (
        "x,y\n" + "".join(f"{i},0\n" for i in range(30)),
        ("--task", "regression"),
    ),
    "far away": ("x,y\n" + "".join(f"{1e6 + i},{i / 3}\n" for i in range(30)), ()),
    "tiny gamma": ("x,y\n" + "".join(f"{i},{i / 3}\n" for i in range(30)), ("--gamma", "1e-300")),
    "huge gamma": ("x,y\n" + "".join(f"{i},{i / 3}\n" for i in range(30)), ("--gamma", "1e300")),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_tables_give_finite_answers(run, case):
    text, options = DEGENERATE[case]
    write("a.csv", text)
    code, _, err = run("fit", "a.csv", "--target", "y", "--output", "m", *options)
    assert code == 0, err
    assert all(line.startswith("note: ") for line in err.splitlines())
    assert run("predict", "m", "a.csv", "--output", "p.csv")[0] == 0
    assert all(np.isfinite(float(row["prediction"])) for row in predictions("p.csv"))


def test_version_and_help(run):
    assert run("--version") == (0, f"pursuit {pursuit.__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    assert all(name in out for name in ("fit", "predict", "score", "info", "demo"))
    for name in cli.COMMANDS:
        assert run(name, "--help")[0] == 0


# --- bad input --------------------------------------------------------------------------

GOOD = "x,colour,y\n" + "".join(f"{i},{'red' if i % 2 else 'blue'},{i % 3}\n" for i in range(30))

BAD_TABLES = {
    "empty file": ("", "a.csv: empty file"),
    "header only": ("x,y\n", "a.csv: no rows below the header"),
    "ragged": (GOOD + "1,red\n", "a.csv:32: 2 cells, but the header has 3"),
    "near name": (GOOD.replace(",y\n", ",Y\n"), "a.csv: no column 'y'; did you mean 'Y'?"),
    "no near name": (
        GOOD.replace(",y\n", ",zzz\n"),
        "a.csv: no column 'y'; it has 'x', 'colour', 'zzz'",
    ),
    "word among numbers": (
        GOOD.replace("\n15,", "\nabc,"),
        "a.csv:17: column 'x': not a number: 'abc' (--text 'x' takes the column as text)",
    ),
    "infinity": (
        GOOD.replace("\n15,", "\ninf,"),
        "a.csv:17: column 'x': not a finite number: 'inf'",
    ),
    "one class": ("x,y\n1,a\n2,a\n", "a.csv: column 'y': one class only: 'a'"),
    "no target at all": ("x,y\n1,\n2,\n", "a.csv: column 'y': no row has a target"),
    "nothing to learn from": ("y\n1\n2\n", "a.csv: no column to learn from beside 'y'"),
    "not text": (b"x,y\n\xff,1\n", "a.csv:2: not UTF-8 text"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_training_table_is_one_line_and_leaves_nothing(run, folder, case):
    content, message = BAD_TABLES[case]
    content = content if isinstance(content, bytes) else content.encode()
    (folder / "a.csv").write_bytes(content)
    assert run("fit", "a.csv", "--target", "y", "--output", "m.pursuit", *QUICK) == (
        3,
        "",
        message + "\n",
    )
    assert os.listdir() == ["a.csv"]


BAD_NEW = {
    "word": (
        "age,city,joined\n30,Bonn,2020-01-01\nabc,Ulm,2020-01-01\n",
        "n.csv:3: column 'age': not a number: 'abc'",
    ),
    "date": (
        "age,city,joined\n30,Bonn,01/02/2020\n",
        "n.csv:2: column 'joined': not a date: '01/02/2020'",
    ),
    "column": (
        "age,town,joined\n30,Bonn,2020-01-01\n",
        "n.csv: no column 'city'; it has 'age', 'town', 'joined'",
    ),
    "empty": ("", "n.csv: empty file"),
}


@pytest.mark.parametrize("command", ["predict", "score"])
@pytest.mark.parametrize("case", BAD_NEW)
def test_a_bad_table_to_predict_for(fitted, run, case, command):
    text, message = BAD_NEW[case]
    if command == "score" and text:
        header, *rows = text.splitlines()
        text = "\n".join([header + ",income", *(row + ",low" for row in rows)])
    write("n.csv", text)
    before = sorted(os.listdir())
    output = ("--output", "p.csv") if command == "predict" else ()
    code, out, err = run(command, "m.pursuit", "n.csv", *output)
    assert (code, out) == (3, "")
    assert (
        err
        == message.replace(
            "'joined'", "'joined', 'income'", case == "column" and command == "score"
        )
        + "\n"
    )
    assert sorted(os.listdir()) == before


def test_score_needs_the_target(fitted, run):
    write("n.csv", "age,city,joined\n30,Bonn,2020-01-01\n")
    expected = "n.csv: no column 'income'; it has 'age', 'city', 'joined'\n"
    assert run("score", "m.pursuit", "n.csv") == (3, "", expected)


def test_a_bad_test_file_is_found_before_the_fit(run, monkeypatch):
    write("a.csv", GOOD)
    write("t.csv", GOOD.replace("\n7,", "\nseven,"))
    monkeypatch.setattr("pursuit.table.model_selection.search", None)  # a call would fail
    code, _, err = run("fit", "a.csv", "--target", "y", "--test", "t.csv", "--output", "m")
    assert (code, err) == (3, "t.csv:9: column 'x': not a number: 'seven'\n")


BAD_MODELS = {
    "cut": lambda whole: whole[: len(whole) // 2],
    "foreign": lambda whole: b"hello",
    "empty": lambda whole: b"",
    "flipped": lambda whole: whole[:3000] + bytes(255 - b for b in whole[3000:3040]) + whole[3040:],
    "other schema": lambda whole: rewritten(whole, b'"schema":1', b'"schema":9'),
}


def rewritten(whole, old, new):
    """Change the header of a model file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(stream, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name).replace(old, new))
    assert new in stream.getvalue()
    return stream.getvalue()


@pytest.mark.parametrize("command", ["predict", "score", "info"])
@pytest.mark.parametrize("case", BAD_MODELS)
def test_a_bad_model_file(fitted, run, folder, case, command):
    whole = (folder / "m.pursuit").read_bytes()
    (folder / "bad.pursuit").write_bytes(BAD_MODELS[case](whole))
    arguments = {
        "predict": ("people.csv", "--output", "p.csv"),
        "score": ("people.csv",),
        "info": (),
    }
    code, out, err = run(command, "bad.pursuit", *arguments[command])
    assert (code, out) == (3, "")
    assert re.fullmatch(r"bad\.pursuit .+\n", err)
    assert not os.path.exists("p.csv")


USAGE = {
    "no command": (),
    "no such command": ("fitt",),
    "no such option": ("fit", "a.csv", "--target", "y", "--output", "m", "--gama", "1"),
    "no output": ("fit", "a.csv", "--target", "y"),
    "no data file": ("fit", "absent.csv", "--target", "y", "--output", "m"),
    "no model file": ("predict", "absent", "a.csv", "--output", "p"),
    "budget of zero": ("fit", "a.csv", "--target", "y", "--output", "m", "--n-components", "0"),
    "negative gamma": ("fit", "a.csv", "--target", "y", "--output", "m", "--gamma", "-1"),
    "unknown task": ("fit", "a.csv", "--target", "y", "--output", "m", "--task", "ranking"),
    "unknown kernel": ("fit", "a.csv", "--target", "y", "--output", "m", "--kernel", "rbff"),
    "unknown loss": ("fit", "a.csv", "--target", "y", "--output", "m", "--loss", "hubr"),
    "no number": ("fit", "a.csv", "--target", "y", "--output", "m", "--alpha", "x"),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_usage(run, case):
    write("a.csv", GOOD)
    code, _, _ = run(*USAGE[case])
    assert code == 2
    assert os.listdir() == ["a.csv"]


AS_CLASSES = ("--task", "classification")
LEVEL = ("--loss", "quantile", "--quantile")
OWN_USAGE = {
    "no target": (
        ("fit", "a.csv", "--output", "m"),
        "a table needs --target COLUMN, the column to predict",
    ),
    "no folder": (
        ("fit", "a.csv", "--target", "y", "--output", "no/m"),
        "--output: the folder no does not exist",
    ),
    "a folder": (("fit", "a.csv", "--target", "y", "--output", "."), "--output: . is a folder"),
    "a loss for numbers": (
        ("fit", "a.csv", "--target", "y", "--output", "m", "--loss", "huber", *AS_CLASSES),
        "--loss huber: the target 'y' is taken as classes (--task regression would change that), "
        "for which there are squared_error, squared_error_tanh, exponential, logit_boost, doom2, "
        "smooth_hinge, squared_hinge, log_loss",
    ),
    "a loss for classes": (
        ("fit", "a.csv", "--target", "x", "--output", "m", "--loss", "log_loss"),
        "--loss log_loss: the target 'x' is taken as numbers (--task classification would change "
        "that), for which there are squared_error, huber, absolute_error, quantile, poisson",
    ),
    "a level without a quantile": (
        ("fit", "a.csv", "--target", "y", "--output", "m", "--quantile", "0.5"),
        "--quantile goes with --loss quantile only",
    ),
    "a level too high": (
        ("fit", "a.csv", "--target", "y", "--output", "m", *LEVEL, "1"),
        "--quantile must lie between 0 and 1, got 1",
    ),
    "a level too low": (
        ("fit", "a.csv", "--target", "y", "--output", "m", *LEVEL, "0"),
        "--quantile must lie between 0 and 1, got 0",
    ),
}


@pytest.mark.parametrize("case", OWN_USAGE)
def test_options_that_do_not_go_together(run, case):
    arguments, message = OWN_USAGE[case]
    write("a.csv", GOOD)
    assert run(*arguments) == (2, "", message + "\n")


def test_probabilities_of_a_regression(run):
    write("a.csv", houses())
    run("fit", "a.csv", "--target", "price", "--output", "m", *QUICK)
    code, _, err = run("predict", "m", "a.csv", "--output", "p.csv", "--proba")
    assert (code, err) == (2, "--proba: a regression has no probabilities\n")


def test_a_place_that_cannot_be_written_keeps_the_old_file(fitted, run, monkeypatch):
    write("p.csv", "old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pursuit.model_file.os.replace", fail)
    before = sorted(os.listdir())
    code, _, err = run("predict", "m.pursuit", "people.csv", "--output", "p.csv")
    assert (code, err) == (3, "[Errno 28] No space left on device\n")
    assert sorted(os.listdir()) == before
    assert Path("p.csv").read_text() == "old"


# --- interruption, and the extra packages -----------------------------------------------


def test_an_interrupted_fit_leaves_nothing(run, monkeypatch):
    write("a.csv", GOOD)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    for place in ("pursuit.table.model_selection.search", "pursuit.model_file.os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupt)
            code, _, err = run("fit", "a.csv", "--target", "y", "--output", "m", *QUICK)
        assert (code, err) == (130, "interrupted: nothing was written\n")
        assert os.listdir() == ["a.csv"]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_signal_to_the_process(folder):
    write("a.csv", houses(20_000))
    command = "import sys; from pursuit.cli import main; print('on', flush=True); sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "fit", "a.csv", "--target", "price", "--output", "m"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "on\n"
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted: nothing was written"
    assert os.listdir() == ["a.csv"]


def test_without_the_extra_packages_one_line_says_how_to_install_them(run, monkeypatch):
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == "typer" else name)
    expected = "the command line needs its extra packages: pip install 'pursuit[cli]'\n"
    assert run("--version") == (2, "", expected)


def test_the_module_imports_nothing_of_them():
    # scikit-learn imports rich by itself where it is installed.
    code = (
        "import sys, pursuit.cli\n"
        f"sys.exit(any(name in sys.modules for name in {set(cli.NEEDED) - {'rich'}}))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
