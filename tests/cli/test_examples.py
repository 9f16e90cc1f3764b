"""Every example that a --help shows runs, and the command line around the commands."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys

import matplotlib
import numpy as np
import polars as pl
import pytest
import skops.io
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from typer.testing import CliRunner

from pursuit.cli import app as cli
from pursuit.cli import demo, score
from pursuit.cli.samples import Example, churn_table
from pursuit.reports import measures
from pursuit.table.model_selection import Settings

# Of the example's table.
ROWS = 160
EXAMPLES = [text for options in cli.COMMANDS.values() for text in options.EXAMPLES]


def few_iterations(settings, whole=Settings._moved.fget):
    return whole(settings) | {"max_iter": 5}


def some_digits(**options):
    return tuple(part[:200] for part in load_digits(**options))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One folder for all examples, and small settings."""
    folder = tmp_path_factory.mktemp("examples")
    X = np.random.default_rng(0).normal(size=(80, 2))
    skops.io.dump(SVC(gamma=0.5).fit(X, X[:, 0] * X[:, 1] > 0), folder / "svc.skops")
    matplotlib.use("agg")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        patch.setattr("pursuit.reports.timing.TIMING_SECONDS", 0.001)
        patch.setattr("pursuit.table.model_selection.MOVED_FOLDS", 2)
        patch.setattr("pursuit.table.model_selection.FOLDS", 2)
        patch.setattr("pursuit.table.model_selection.GAMMA_FACTORS", (1.0,))
        patch.setattr("pursuit.moving_vectors.cross_validation.GAMMA_MULTIPLES", (1.0,))
        patch.setattr("pursuit.moving_vectors.cross_validation.C_MULTIPLES", (1.0,))
        patch.setattr(demo, "load_digits", some_digits)
        patch.setattr(Settings, "_moved", property(few_iterations))
        patch.setattr("pursuit.table.model_selection.MOVED_VECTORS", 8)
        for name, value in {"BUDGETS": (5,), "GAMMAS": (0.02,), "PENALTIES": (10.0,)}.items():
            patch.setattr(demo, name, value)
        patch.setattr(Example.__dataclass_fields__["rows"], "default", ROWS)
        yield folder


def run(line, stdin=b""):
    """Run a line of a shell, with < and > but no more."""
    words = shlex.split(line)[1:]
    redirected = {"<": None, ">": None}
    for sign in redirected:
        if sign in words:
            at = words.index(sign)
            redirected[sign], words = words[at + 1], words[:at] + words[at + 2 :]
    if redirected["<"]:
        with open(redirected["<"], "rb") as file:
            stdin = file.read()
    result = CliRunner().invoke(cli._app(), words, input=stdin)
    if redirected[">"]:
        with open(redirected[">"], "wb") as file:
            file.write(result.stdout_bytes)
    return result


def made_by(line):
    """The file that an example makes, if it says so."""
    found = re.search(r"(?:--output|-o|>) (\S+)", line)
    return found and found[1]


def prepare(line, place):
    """Run the examples that make what this one reads, unless they have run."""
    for other in EXAMPLES:
        name = made_by(other)
        if other != line and name in line.split() and not (place / name).exists():
            prepare(other, place)
            assert run(other).exit_code == 0


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_runs(line, place):
    prepare(line, place)
    result = run(line)
    assert (result.exit_code, result.exception) == (0, None), result.output
    assert result.stdout or (place / made_by(line)).stat().st_size > 0


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_shows_the_examples_and_breaks_between_words(name, place):
    shown = run(f"pursuit {name} --help").output
    for line in cli.COMMANDS[name].EXAMPLES:
        assert line in shown
    words = set(re.findall(r"[a-z_0-9]+", shown))
    for item in cli.COMMANDS[name].__dataclass_fields__.values():
        assert set(cli._choices(cli.get_type_hints(cli.COMMANDS[name])[item.name])) <= words
    assert max(map(len, shown.splitlines())) <= 80


# --- what they give ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def churn(place):
    assert run("pursuit example > churn.csv").exit_code == 0
    line = "pursuit fit churn.csv -t churned -o c.pursuit -n 8 --gamma 0.05 --price 10"
    assert run(line).exit_code == 0
    line = "pursuit fit churn.csv -t monthly_fee -o f.pursuit -n 8 --gamma 0.05 --price 10"
    assert run(line).exit_code == 0
    return place


def test_the_example_is_the_same_each_time_and_names_its_licence(churn):
    result = run("pursuit example")
    assert result.stdout.encode() == (churn / "churn.csv").read_bytes()
    assert "CC0" in result.stderr
    table = churn_table(ROWS, 0)
    assert 0.2 < np.mean(table["churned"] == "yes") < 0.5
    assert 0 < sum(city is None for city in table["city"]) < 40


FORMATS = {
    "csv": pl.read_csv,
    "tsv": lambda file: pl.read_csv(file, separator="\t"),
    "jsonl": pl.read_ndjson,
    "parquet": pl.read_parquet,
}


@pytest.mark.parametrize("form", FORMATS)
def test_standard_input_and_output_in_every_format(form, churn):
    rows = run(f"pursuit example --rows 30 --seed 5 --output-format {form}").stdout_bytes
    assert FORMATS[form](io.BytesIO(rows)).shape == (30, 6)
    options = f"--proba --input-format {form} --output-format {form}"
    piped = run(f"pursuit predict c.pursuit - {options}", rows)
    assert piped.exit_code == 0, piped.output
    (churn / f"new.{form}").write_bytes(rows)
    assert run(f"pursuit predict c.pursuit new.{form} --proba -o p.{form}").exit_code == 0
    assert (churn / f"p.{form}").read_bytes() == piped.stdout_bytes
    found, plain = (
        FORMATS[form](io.BytesIO(piped.stdout_bytes)),
        run(
            "pursuit predict c.pursuit - --proba",
            run("pursuit example --rows 30 --seed 5").stdout_bytes,
        ),
    )
    expected = pl.read_csv(io.BytesIO(plain.stdout_bytes))
    assert found["prediction"].to_list() == expected["prediction"].to_list()
    np.testing.assert_allclose(found["probability_yes"], expected["probability_yes"], rtol=1e-12)


def test_faults_of_standard_input_name_it(churn):
    result = run("pursuit predict c.pursuit -", b"since,city,plan\n2020-01-01,Ulm\n")
    assert result.exit_code == 3
    assert result.stderr == "standard input:2: 2 cells, but the header has 3\n"
    result = run("pursuit predict c.pursuit - --input-format jsonl", b'{"a": 1}\n\n{"a": [2]}\n')
    assert result.stderr == "standard input:3: column 'a': a list or an object is no cell\n"


def test_score_in_json_is_the_table(churn):
    metrics = ("accuracy", "balanced_accuracy", "f1", "roc_auc", "log_loss")
    asked = " ".join(f"--metric {name}" for name in metrics)
    told = json.loads(run(f"pursuit score c.pursuit churn.csv --json {asked}").stdout)
    rows = run("pursuit predict c.pursuit churn.csv --proba").stdout_bytes
    predicted, truth = pl.read_csv(io.BytesIO(rows)), churn_table(ROWS, 0)["churned"]
    labels, shares = predicted["prediction"].to_numpy(), predicted["probability_yes"].to_numpy()
    yes = truth == "yes"
    counts = [[np.sum((truth == a) & (labels == b)) for b in ("no", "yes")] for a in ("no", "yes")]
    assert told["confusion"] == {"labels": ["no", "yes"], "counts": counts}
    (right_no, wrong_no), (wrong_yes, right_yes) = counts
    pairs = shares[yes][:, None] - shares[~yes]
    expected = {
        "accuracy": np.mean(labels == truth),
        "balanced_accuracy": (right_no / sum(counts[0]) + right_yes / sum(counts[1])) / 2,
        "f1": 2 * right_yes / (2 * right_yes + wrong_no + wrong_yes),
        "roc_auc": np.mean((pairs > 0) + 0.5 * (pairs == 0)),
        "log_loss": -np.mean(np.log(np.where(yes, shares, 1 - shares))),
    }
    assert told["metrics"] == pytest.approx(expected, rel=1e-9)
    assert told["error"]["model"] == pytest.approx(1 - expected["accuracy"])
    assert (told["rows"], told["vectors"]) == (ROWS, 8)
    shown = run(f"pursuit score c.pursuit churn.csv {asked}").stdout
    assert f"{expected['roc_auc']:.4g}" in shown
    assert re.search(rf"no +{right_no} +{wrong_no}", shown)


def test_the_help_names_every_measure():
    assert score.METRICS.split(", ") == list(measures.MEASURES)


def test_measures_of_numbers(churn):
    told = json.loads(
        run(
            "pursuit score f.pursuit churn.csv --json --metric r2 --metric mae --metric rmse"
        ).stdout
    )
    rows = run("pursuit predict f.pursuit churn.csv").stdout_bytes
    errors = pl.read_csv(io.BytesIO(rows))["prediction"].to_numpy()
    truth = churn_table(ROWS, 0)["monthly_fee"]
    errors = truth - errors
    expected = {
        "r2": 1 - np.mean(errors**2) / np.var(truth),
        "mae": np.mean(np.abs(errors)),
        "rmse": np.sqrt(np.mean(errors**2)),
    }
    assert told["metrics"] == pytest.approx(expected, rel=1e-9)
    assert "confusion" not in told


def test_a_threshold_moves_the_second_class(churn):
    shares = {}
    for threshold in (0.0, 0.2, 0.5, 0.9):
        line = f"pursuit predict c.pursuit churn.csv --proba --threshold {threshold}"
        rows = pl.read_csv(io.BytesIO(run(line).stdout_bytes))
        above = rows["probability_yes"].to_numpy() >= threshold
        assert (rows["prediction"].to_numpy() == np.where(above, "yes", "no")).all()
        shares[threshold] = above.mean()
    assert shares[0.0] == 1.0 > shares[0.2] > shares[0.9]


def test_intervals_of_numbers(churn):
    rows = run("pursuit predict f.pursuit churn.csv --interval 0.2").stdout_bytes
    table, truth = pl.read_csv(io.BytesIO(rows)), churn_table(ROWS, 0)["monthly_fee"]
    inside = (table["lower"].to_numpy() <= truth) & (truth <= table["upper"].to_numpy())
    assert 0.7 < inside.mean() < 0.95


def test_weights_of_classes_move_the_labels(churn):
    found = {}
    for weight in ("no=1", "yes=20", "balanced"):
        fit = "pursuit fit churn.csv -t churned -o w.pursuit -n 8 --gamma 0.05 --price 10"
        assert run(f"{fit} --class-weight {weight}").exit_code == 0
        told = json.loads(run("pursuit score w.pursuit churn.csv --json").stdout)
        found[weight] = sum(row[1] for row in told["confusion"]["counts"])
    assert found["no=1"] < found["balanced"] < found["yes=20"]


def test_info_in_json(churn):
    told = json.loads(run("pursuit info c.pursuit --json").stdout)
    assert told["class"] == "SparseKernelClassifier"
    assert (told["target"], told["task"], told["vectors"]) == ("churned", "classification", 8)
    assert told["columns"]["since"] == "date"
    assert told["bytes"] == (churn / "c.pursuit").stat().st_size


def test_truncate_gives_the_prefix(churn):
    fit = "pursuit fit churn.csv -t churned -o long.pursuit -n 12 --gamma 0.05 --staged"
    assert run(fit).exit_code == 0
    assert run("pursuit truncate long.pursuit -n 3 -o short.pursuit").exit_code == 0
    from pursuit import load

    long, short = (load(name, table=False) for name in ("long.pursuit", "short.pursuit"))
    np.testing.assert_array_equal(short.dual_coef_, long.truncate(3).dual_coef_)
    assert (churn / "short.pursuit").stat().st_size < (churn / "long.pursuit").stat().st_size
    result = run("pursuit truncate short.pursuit -n 2 -o s.pursuit")
    assert (result.exit_code, "staged=False" in result.stderr) == (3, True)
    result = run("pursuit truncate c.pursuit -n 2 -o s.pursuit")
    assert result.exit_code == 2
    assert "SparseKernelClassifier has no path; fit --method selected --staged" in result.stderr
    assert not (churn / "s.pursuit").exists()


@pytest.fixture(scope="module")
def numbers(churn):
    """A model of two columns of numbers, and their rows."""
    table = churn_table(60, 3)
    rows = np.column_stack([table["monthly_fee"], table["calls_for_help"]]).astype(float)
    pl.DataFrame(rows, schema=["fee", "calls"]).with_columns(
        y=pl.Series(np.sin(rows[:, 0]) + rows[:, 1])
    ).write_csv("numbers.csv")
    fit = "pursuit fit numbers.csv -t y -o numbers.pursuit -n 5 --gamma 0.2 --price 10"
    assert run(fit).exit_code == 0
    return rows


def test_onnx_of_numbers_takes_the_columns(numbers, churn):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    result = run("pursuit export numbers.pursuit --to onnx --dtype float64")
    assert (result.exit_code, result.stderr) == (
        0,
        "note: inputs, in this order: numbers__fee, numbers__calls\n",
    )
    session = runtime.InferenceSession(churn / "numbers.onnx")
    (found,) = session.run(None, {"X": numbers})
    rows = run("pursuit predict numbers.pursuit numbers.csv").stdout_bytes
    expected = pl.read_csv(io.BytesIO(rows))["prediction"].to_numpy()
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_c_of_numbers_takes_the_columns(numbers, churn):
    assert run("pursuit export numbers.pursuit --to c").exit_code == 0
    rows = ", ".join(f"{{{a}f, {b}f}}" for a, b in numbers[:5])
    (churn / "main.c").write_text(
        '#include <stdio.h>\n#include "numbers.h"\nint main(void) {\n'
        f"float rows[5][2] = {{{rows}}};\n"
        "for (int i = 0; i < 5; i++) { float y; numbers_predict(rows[i], &y);\n"
        'printf("%.9g\\n", (double)y); }\n'
        "return 0; }\n"
    )
    subprocess.run(["cc", "-std=c99", "main.c", "-o", "main", "-lm"], check=True)
    found = subprocess.run(["./main"], check=True, capture_output=True, text=True).stdout
    rows = run("pursuit predict numbers.pursuit numbers.csv").stdout_bytes
    expected = pl.read_csv(io.BytesIO(rows))["prediction"].to_numpy()[:5]
    np.testing.assert_allclose(np.array(found.split(), float), expected, rtol=1e-5, atol=1e-5)


def test_inputs_of_a_mixed_table_are_numbers_and_parts_of_text_and_dates(churn):
    result = run("pursuit export c.pursuit -o c.h")
    assert result.exit_code == 0
    assert result.stderr.startswith("note: inputs, in this order: numbers__monthly_fee, ")
    result = run("pursuit export c.pursuit -o d.h --max-bytes 10")
    assert (result.exit_code, (churn / "d.h").exists()) == (3, False)


def test_a_file_of_options(churn):
    (churn / "options.toml").write_text(
        '[predict]\nproba = true\noutput-format = "tsv"\nthreshold = 0.2\n[fit]\ntarget = "x"\n'
    )
    expected = run(
        "pursuit predict c.pursuit churn.csv --proba --output-format tsv --threshold 0.2"
    )
    found = run("pursuit predict --config options.toml c.pursuit churn.csv")
    assert (found.exit_code, found.stdout) == (0, expected.stdout)
    over = run("pursuit predict c.pursuit churn.csv --config options.toml --threshold 0.9").stdout
    assert over.count("yes\t") < expected.stdout.count("yes\t")
    result = run("pursuit fit churn.csv --config options.toml -o x.pursuit")
    assert (result.exit_code, "no column 'x'" in result.stderr) == (3, True)
    for text, fault in (
        ("[predict]\naim = 1\n", "predict.aim is no option"),
        ("proba = true\n", "proba is no option"),
        ("[predict\n", "bad.toml"),
    ):
        (churn / "bad.toml").write_text(text)
        result = run("pursuit predict c.pursuit churn.csv --config bad.toml")
        assert result.exit_code == 2
        assert fault in " ".join(result.stderr.split())


FAULTS = {
    "predict c.pursuit absent.csv": "absent.csv does not exist",
    "predict f.pursuit churn.csv --proba": "--proba: a regression has no probabilities",
    "predict f.pursuit churn.csv --threshold 0.5": (
        "--threshold needs two classes, and the model has 0"
    ),
    "predict c.pursuit churn.csv --interval 0.1": "--interval goes with a regression",
    "score c.pursuit churn.csv --metric r2": (
        "--metric r2: for a classification there are accuracy, balanced_accuracy, f1, roc_auc, "
        "log_loss"
    ),
    "score f.pursuit churn.csv --metric best": (
        "--metric best: for a regression there are r2, mae, rmse"
    ),
    "export c.pursuit --dtype float64": (
        "--dtype float64: for --to c there are float32, int16, int8"
    ),
    "export c.pursuit --to onnx --max-bytes 9": "--max-bytes goes with --to c only",
    "plot c.pursuit -o p.png": "--data: the smaller models of vectors that move need rows",
    "plot c.pursuit -o p.txt": "--output: p.txt must end in .png, .svg, .pdf",
    "fit churn.csv -t churned -o x --class-weight maybe=2": (
        "--class-weight maybe=2: no row has the label 'maybe'; there are no, yes"
    ),
    "fit churn.csv -t churned -o x --class-weight yes": (
        "--class-weight takes LABEL=WEIGHT or balanced, got 'yes'"
    ),
    "fit churn.csv -t monthly_fee -o x --class-weight yes=2": (
        "--class-weight goes with classes, and the target holds numbers"
    ),
}


@pytest.mark.parametrize("line", FAULTS)
def test_a_fault_is_one_line(line, churn):
    result = run(f"pursuit {line}")
    assert (result.exit_code, result.stderr) == (2, f"{FAULTS[line]}\n")
    assert not (churn / "x").exists()


def test_completion_can_be_installed(place):
    assert "--install-completion" in run("pursuit --help").output


def test_standard_output_is_flushed_and_stays_open(churn, capfd):
    code = cli.main(["predict", "c.pursuit", "churn.csv"])
    print("more")
    sys.stdout.flush()
    out = capfd.readouterr().out.splitlines()
    assert (code, out[0], out[-1], len(out)) == (0, "prediction", "more", ROWS + 2)
