"""Labels come back as they were read, and the same content in another file means the same."""

import csv
import gzip
import zipfile

import numpy as np
import polars as pl
import pytest

from pursuit.cli import app as cli
from pursuit.io.columns import Column, infer_column
from pursuit.io.tables import read
from pursuit.model_file import load_attachments, save
from pursuit.table.model import TableModel
from pursuit.table.preparation import learn_layout

QUICK = ("-n", "4", "--gamma", "0.5", "--price", "10", "-o", "m")


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


def write(name, text):
    opened = gzip.open if name.lower().endswith(".gz") else open
    with opened(name, "wt", encoding="utf-8") as file:
        file.write(text)
    return name


def table(labels, n=24):
    return "x,y\n" + "".join(f"{i % 5},{labels[i % 5 > 2]}\n" for i in range(n))


def predicted(name="p.csv"):
    with open(name, newline="", encoding="utf-8") as file:
        return [row["prediction"] for row in csv.DictReader(file)]


HUGE = (2**53 + 1, 2**53 + 3)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.npz", "a.svm"])
def test_labels_above_the_integers_of_a_float_come_back(run, name):
    x = np.arange(24) % 5
    y = np.where(x > 2, HUGE[1], HUGE[0])
    if name.endswith("csv"):
        write(name, table(HUGE))
    elif name.endswith("parquet"):
        pl.DataFrame({"x": x, "y": y}).write_parquet(name)
    elif name.endswith("npz"):
        np.savez(name, X=x[:, None].astype(float), y=y)
    else:
        write(name, "".join(f"{b} 1:{a}\n" for a, b in zip(x, y, strict=True)))
    target = ("-t", "y") if name in ("a.csv", "a.parquet") else ()
    code, _, err = run("fit", name, *target, *QUICK)
    assert (code, err) == (0, "")
    assert run("predict", "m", name, "-o", "p.csv")[0] == 0
    assert predicted() == [str(label) for label in y]
    assert " 0.00 %" in run("score", "m", name)[1]


@pytest.mark.parametrize("labels", [("007", "010"), ("12345678901234567890", "2"), ("+1", "-1")])
def test_labels_that_integers_would_not_give_back_are_text(run, labels):
    write("a.csv", table(labels))
    assert run("fit", "a.csv", "-t", "y", "--task", "classification", *QUICK)[0] == 0
    assert run("predict", "m", "a.csv", "-o", "p.csv")[0] == 0
    assert set(predicted()) == set(labels)


def test_labels_that_the_model_does_not_know_are_told(run):
    write("a.csv", table(("no", "yes")))
    write("some.csv", table(("no", "yes")) + "1,maybe\n")
    write("all.csv", table(("No", "Yes")))
    fit = ("fit", "a.csv", "-t", "y", *QUICK)
    told = "column 'y': {} is not among the classes of the model ('no', 'yes')"
    some = f"note: some.csv: {told.format(repr('maybe'))}; 1 such rows count as errors\n"
    every = f"all.csv: {told.format(repr('No'))}, and so are all labels\n"
    assert run(*fit, "--test", "all.csv") == (3, "", every)
    assert run(*fit, "--test", "some.csv")[::2] == (0, some)
    assert run("score", "m", "all.csv") == (3, "", every)
    code, out, err = run("score", "m", "some.csv")
    assert (code, err) == (0, some)
    assert "4.00 %" in out


SPELLINGS = [("False", "True"), ("false", "true"), ("FALSE", "TRUE")]


def test_truth_values_are_numbers_however_they_are_written(run):
    truths = np.arange(24) % 5 > 2
    pl.DataFrame({"x": truths, "y": np.where(truths, 2.5, 0.25)}).write_parquet("a.parquet")
    for i, words in enumerate(SPELLINGS):
        rows = "".join(f"{words[int(truth)]},{2.5 if truth else 0.25}\n" for truth in truths)
        write(f"{i}.csv", "x,y\n" + rows)
    names = ["a.parquet", "0.csv", "1.csv", "2.csv"]
    assert {infer_column(read(name), "x") for name in names} == {Column("x", "number", "boolean")}
    for fitted in names:
        assert run("fit", fitted, "-t", "y", *QUICK)[0] == 0
        model = TableModel.load("m")
        answers = [model.estimator_.predict(model.features(read(name))) for name in names]
        for answer in answers[1:]:
            np.testing.assert_array_equal(answer, answers[0])


def test_truth_values_are_labels_however_they_are_written(run):
    x = np.arange(24) % 5
    pl.DataFrame({"x": x, "y": x > 2}).write_parquet("a.parquet")
    for i, words in enumerate(SPELLINGS):
        write(f"{i}.csv", table(words))
    names = ["a.parquet", "0.csv", "1.csv", "2.csv"]
    for fitted in names:
        assert run("fit", fitted, "-t", "y", *QUICK)[0] == 0
        for name in names:
            code, out, err = run("score", "m", name)
            assert (code, err) == (0, "")
            assert " 0.00 %" in out


def test_a_quoted_header_does_not_decide_the_separator():
    write("a.csv", '"size, in m, of all";"y"\n1;2\n3;4\n')
    assert read("a.csv").frame.columns == ["size, in m, of all", "y"]


def test_a_blank_line_in_a_file_of_one_column_is_a_row():
    table = read(write("a.csv", "x\n1\n\n3\n\n"))
    assert table.frame["x"].to_list() == ["1", None, "3"]
    assert table.lines.tolist() == [2, 3, 4]
    assert read(write("b.csv", "x,y\n1,2\n\n3,4\n")).lines.tolist() == [2, 4]


@pytest.mark.parametrize("name", ["A.CSV", "A.CSV.GZ", "A.Tsv.Gz"])
def test_suffixes_in_capitals(name):
    separator = "\t" if "Tsv" in name else ","
    assert read(write(name, f"x{separator}y\n1{separator}2\n")).frame.columns == ["x", "y"]
    assert len(read(write("A.SVM.GZ", "1 1:2\n0 1:3\n"))) == 2


def test_features_of_libsvm_text_that_the_model_lacks_are_ignored(run):
    write("a.svm", "".join(f"{i % 5 > 2:d} 1:{i % 5} 2:1\n" for i in range(24)))
    write("b.svm", "".join(f"{i % 5 > 2:d} 1:{i % 5} 2:1 9:3 11:1\n" for i in range(24)))
    assert run("fit", "a.svm", *QUICK)[0] == 0
    note = (
        "note: b.svm: feature 9 is not in the model: ignored; 2 such features, this is the first\n"
    )
    assert run("predict", "m", "b.svm", "-o", "p.csv") == (0, "", note)
    first = predicted()
    assert run("predict", "m", "a.svm", "-o", "p.csv") == (0, "", "")
    assert predicted() == first


def test_equal_fits_give_equal_bytes(run):
    rows = [
        f"{i % 7},{'red' if i % 3 else 'blue'},2020-01-{i % 28 + 1:02},{i % 2}" for i in range(40)
    ]
    write("a.csv", "size,colour,day,y\n" + "\n".join(rows) + "\n")
    fit = ("fit", "a.csv", "-t", "y", "-n", "4", "--gamma", "0.5", "-o")
    keep = []
    for name in ("one", "two"):
        keep.append([object() for _ in range(1000)])  # so that addresses differ
        assert run(*fit, name)[0] == 0
    with open("one", "rb") as one, open("two", "rb") as two:
        assert one.read() == two.read()


def test_many_classes_that_hardly_repeat_are_told(run):
    like_numbers = [f"1,{100 + i % 25}" for i in range(50)]
    for labels, told in (
        (like_numbers, "25 classes with labels such as '1,100' ('1,100' may be 1.1 or 1100)"),
        ([f"{i % 25 + 10} kg" for i in range(200)], "25 classes with labels such as '10 kg'"),
        (
            [f"{'$€'[i % 2]}{i % 24 + 10}" for i in range(200)],
            "24 classes with labels such as '$10'",
        ),
        ([f"name {i:03}" for i in range(60)], "60 classes with labels such as 'name 000'"),
    ):
        write("a.csv", "x;y\n" + "".join(f"{i};{label}\n" for i, label in enumerate(labels)))
        layout, notes = learn_layout(read("a.csv"), "y")
        assert layout.task == "classification"
        assert notes == [
            f"a.csv: column 'y': {told}: --task classification says that they are classes, --task "
            "regression that they are numbers"
        ]
        assert learn_layout(read("a.csv"), "y", task="classification")[1] == []
    code, _, err = run("fit", "a.csv", "-t", "y", "--task", "regression", *QUICK)
    assert (code, err) == (
        3,
        "a.csv: column 'y': regression needs numbers, and its cells are texts\n",
    )
    write("a.csv", "x;y\n1;1,234\n2;1,235\n")
    assert run("fit", "a.csv", "-t", "y", "--task", "regression", *QUICK)[::2] == (
        3,
        "a.csv: column 'y': regression needs numbers, and its cells are texts ('1,234' may be "
        "1.234 or 1234)\n",
    )


def test_columns_are_read_again_as_the_fit_read_them(run):
    rows = [
        (f"{i % 7},{i % 9}", f"{i % 30} %", f"01/{i % 28 + 1:02}/2024 03:0{i % 9} PM")
        for i in range(60)
    ]
    own = "".join(f"{a};{b};{c};{i}.000,50 €\n" for i, (a, b, c) in enumerate(rows, 1))
    write("own.csv", "a;b;c;y\n" + own)
    plain = pl.DataFrame(
        {
            "a": [float(a.replace(",", ".")) for a, _, _ in rows],
            "b": [int(b[:-2]) for _, b, _ in rows],
            "c": [c for _, _, c in rows],
            "y": [1000 * i + 0.5 for i in range(1, 61)],
        }
    )
    plain.write_parquet("plain.parquet")
    code, _, err = run("fit", "own.csv", "-t", "y", *QUICK)
    assert code == 0
    assert [line.partition("; --text")[0] for line in err.splitlines()] == [
        "note: own.csv: column 'y': read as numbers written like '1.234,5 €'",
        "note: own.csv: column 'a': read as numbers written like '1234,5'",
        "note: own.csv: column 'b': read as numbers written like '1234.5 %'",
        "note: own.csv: column 'c': read as dates written %m/%d/%Y %I:%M %p",
    ]
    assert "number (1234.5 %)" in run("info", "m")[1]
    model = TableModel.load("m")
    assert model.layout_.task == "regression"
    of_own, of_plain = (model.features(read(name)) for name in ("own.csv", "plain.parquet"))
    np.testing.assert_array_equal(of_own, of_plain)
    write("few.csv", "a;b;c\n1,5;7 %;02/01/2024 03:00 PM\n")  # ambiguous by itself
    assert run("predict", "m", "few.csv", "-o", "p.csv") == (0, "", "")
    assert run("score", "m", "own.csv")[::2] == (0, "")
    write("bad.csv", "a;b;c\n1.5;7 %;02/01/2024 03:00 PM\n")
    assert run("predict", "m", "bad.csv", "-o", "p.csv")[2] == (
        "bad.csv:2: column 'a': not a number: '1.5'\n"
    )


def test_a_target_of_few_prices_is_a_number_unless_asked(run):
    write("a.csv", "x,y\n" + "".join(f"{i % 5},${10 + i % 2}\n" for i in range(24)))
    assert learn_layout(read("a.csv"), "y")[0].task == "regression"
    assert run("fit", "a.csv", "-t", "y", "--task", "classification", *QUICK)[::2] == (0, "")
    assert run("predict", "m", "a.csv", "-o", "p.csv")[0] == 0
    assert set(predicted()) == {"$10", "$11"}


def test_truth_values_are_numbers_of_a_regression(run):
    write("a.csv", table(("false", "true")))
    assert run("fit", "a.csv", "-t", "y", "--task", "regression", *QUICK)[::2] == (0, "")
    assert TableModel.load("m").layout_.target_format == "boolean"


def test_a_class_called_na_is_told_and_can_be_kept(run):
    write("a.csv", table(("NA", "EU")))
    fit = ("fit", "a.csv", "-t", "y", *QUICK)
    told = (
        "a.csv:2: no target; 15 such rows are left out, this is the first; 15 labels were read as "
        "missing ('NA' 15 times): --na '' keeps them\n"
    )
    assert run(*fit)[2].startswith("note: " + told)
    assert run(*fit, "--na", "")[::2] == (0, "")
    assert TableModel.load("m").layout_.missing == ()
    assert run("predict", "m", "a.csv", "-o", "p.csv") == (0, "", "")
    assert set(predicted()) == {"NA", "EU"}
    code, out, err = run("score", "m", "a.csv")
    assert (code, err) == (0, "") and " 0.00 %" in out
    assert run(*fit, "--na", "", "--test", "a.csv")[::2] == (0, "")
    assert run(*fit, "--na", "EU")[2].startswith("note: a.csv:5: no target; 9 such rows")


def test_with_no_words_for_missing_the_empty_cell_is_missing(run):
    write("a.csv", "x,y\nNA,1\n ,2\n")
    assert read("a.csv", ()).frame["x"].to_list() == ["NA", None]
    assert read("a.csv").frame["x"].to_list() == [None, None]
    assert read("a.csv", (" na ",)).missing_words == {"x": {"NA": 1}, "y": {}}
    pl.DataFrame({"x": ["NA", "", "b"]}).write_parquet("a.parquet")
    assert read("a.parquet", ()).frame["x"].to_list() == ["NA", None, "b"]


@pytest.mark.parametrize(
    "text, columns",
    [
        ("name, first;y\nSmith;3\nJones;4\n", ["name, first", "y"]),
        ('"size,\nin m, of all";y\n1,5;2\n', ["size,\nin m, of all", "y"]),
        ("a;b,c;d\n1,5;2,5;3\n2;3;4\n", ["a", "b,c", "d"]),
        ("a,b;c\n1,2\n3,4\n", ["a", "b;c"]),
    ],
)
def test_the_rows_decide_the_separator_with_the_header(text, columns):
    assert read(write("a.csv", text)).frame.columns == columns


def error_of(out):
    return float(next(line for line in out.splitlines() if " error " in line).split()[1])


def test_the_table_measures_what_was_written_in_single_precision(run):
    # 32-bit floats do not tell 1e9 + 2 from 1e9 + 3, by which the classes differ.
    write("a.csv", "x,y\n" + "".join(f"{10**9 + i % 5},{'ab'[i % 5 > 2]}\n" for i in range(60)))
    fit = ("fit", "a.csv", "-t", "y", "--no-scale", *QUICK)
    assert error_of(run(*fit)[1]) == 0
    code, out, _ = run(*fit, "--float32")
    assert (code, error_of(out) > 0) == (0, True)
    code, tested, _ = run(*fit, "--float32", "--test", "a.csv")
    assert error_of(tested) == error_of(run("score", "m", "a.csv")[1]) > 0
    for shown in (out, tested, run("info", "m")[1]):
        assert "float32: largest change over 60 rows" in shown
    assert run(*fit)[0] == 0
    assert "float32" not in run("info", "m")[1]


@pytest.mark.parametrize(
    "layout", [b"[" * 100_000, b"{}", b"no json"], ids=["deep", "empty", "text"]
)
def test_a_damaged_layout_is_one_line(run, layout):
    write("a.csv", table(("no", "yes")))
    assert run("fit", "a.csv", "-t", "y", *QUICK)[0] == 0
    attachments = load_attachments("m") | {"layout.json": layout}
    save(TableModel.load("m").estimator_, "bad", attachments=attachments)
    for arguments in (("info", "bad"), ("score", "bad", "a.csv")):
        code, _, err = run(*arguments)
        assert code == 3
        assert err.startswith("bad: damaged layout (")


def test_a_preparation_that_unfolds_to_too_much_is_refused(run):
    write("a.csv", table(("no", "yes")))
    assert run("fit", "a.csv", "-t", "y", *QUICK)[0] == 0
    with zipfile.ZipFile("bomb", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 2**27)
    with open("bomb", "rb") as bomb:
        attachments = load_attachments("m") | {"preparation.skops": bomb.read()}
    save(TableModel.load("m").estimator_, "bad", attachments=attachments)
    code, _, err = run("score", "bad", "a.csv")
    assert code == 3
    assert err.startswith("bad: damaged preparation (schema.json claims 134217728 bytes")


def test_a_label_between_integers_is_none_of_them(run):
    write("a.csv", table((0, 1)))
    write("b.csv", "x,y\n1,0.0\n2,0.5\n4,1\n")
    write("c.csv", "x,y\n1,0.5\n4,1.5\n")
    assert run("fit", "a.csv", "-t", "y", *QUICK)[0] == 0
    code, out, err = run("score", "m", "b.csv")
    told = "column 'y': '0.5' is not among the classes of the model ('0', '1')"
    assert (code, err) == (0, f"note: b.csv: {told}; 1 such rows count as errors\n")
    assert "33.33 %" in out
    assert run("score", "m", "c.csv") == (3, "", f"c.csv: {told}, and so are all labels\n")
