"""Reading files: every format, what the cells mean, and every fault with its place."""

import gzip
from datetime import datetime

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from pursuit.io.columns import Column, infer_column, typed
from pursuit.io.tables import DataError, Matrix, Table, read


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files into an empty current folder, so that messages hold bare names."""
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return name

    return write


def fault(path):
    with pytest.raises(DataError) as caught:
        read(path)
    return str(caught.value)


# --- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_csv_keeps_the_line_of_each_row(write, name):
    table = read(write(name, '\ufeffa, b\n1,"x, ""y"""\n\n2,"two\nlines"\n3, NA \n'))
    assert isinstance(table, Table)
    assert table.frame.to_dict(as_series=False) == {
        "a": ["1", "2", "3"],
        "b": ['x, "y"', "two\nlines", None],
    }
    assert table.lines.tolist() == [2, 4, 6]
    assert table.where(2) == f"{name}:6"
    assert len(table) == 3


def test_tsv_and_semicolons(write):
    assert read(write("a.tsv", "a,b\tc\n1,2\t3\n")).frame.columns == ["a,b", "c"]
    assert read(write("a.csv", "a;b\n1;2\n")).frame.rows() == [("1", "2")]


@pytest.mark.parametrize("cell", ["", "NA", "n/a", "NaN", "null", "?", "  ", "<NA>", "#N/A"])
def test_marks_of_a_missing_cell(write, cell):
    assert read(write("a.csv", f"a,b\n{cell},1\n")).frame["a"].to_list() == [None]


def test_more_rows_than_a_block(write, monkeypatch):
    monkeypatch.setattr("pursuit.io.tables._BLOCK_ROWS", 7)
    table = read(write("a.csv", "a,b\n" + "".join(f"{i},x{i}\n" for i in range(20))))
    assert table.frame["b"].to_list() == [f"x{i}" for i in range(20)]
    assert table.lines.tolist() == list(range(2, 22))


def test_a_column_without_a_name_goes_by_its_place(write):
    assert read(write("a.csv", ",b\n0,1\n")).frame.columns == ["column 1", "b"]


def test_rows_keeps_lines(write):
    table = read(write("a.csv", "a\n1\n2\n3\n")).rows(np.array([True, False, True]))
    assert table.where(1) == "a.csv:4"
    assert table.frame["a"].to_list() == ["1", "3"]


def test_parquet(write, tmp_path):
    frame = pl.DataFrame({"n": [1.5, float("nan")], "t": [" x ", "?"], "b": [True, None]})
    frame.write_parquet(tmp_path / "a.parquet")
    table = read("a.parquet")
    assert table.frame.rows() == [(1.5, "x", True), (None, None, None)]
    assert table.where(1) == "a.parquet: row 2"


def test_npz_flattens_images(write, tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(12, dtype=np.uint8).reshape(2, 2, 3), y=[0, 1])
    matrix = read("a.npz")
    assert isinstance(matrix, Matrix)
    assert_array_equal(matrix.X, np.arange(12.0).reshape(2, 6))
    assert_array_equal(matrix.y, [0, 1])
    assert matrix.where(1, 2) == "a.npz: X[1, 2]"
    np.savez(tmp_path / "b.npz", X=np.ones((1, 2)))
    assert read("b.npz").y is None


@pytest.mark.parametrize("name", ["a.svm", "a.txt", "a.libsvm.gz"])
def test_libsvm_stays_sparse(write, name):
    matrix = read(write(name, "# head\n1 1:0.5 4:2\n\n-1 3:1 # tail\n"))
    assert sp.issparse(matrix.X)
    assert_array_equal(matrix.X.toarray(), [[0, 0.5, 0, 0, 2], [0, 0, 0, 1, 0]])
    assert_array_equal(matrix.y, [1, -1])
    assert matrix.where(1, 3) == f"{name}:4: feature 3"


# --- faults of a file --------------------------------------------------------------------------

TEXT_FAULTS = {
    "too few cells": ("a.csv", "a,b\n1,2\n\n3\n", "a.csv:4: 1 cell, but the header has 2"),
    "too many cells": ("a.csv", "a\n1,2,3\n", "a.csv:2: 3 cells, but the header has 1"),
    "too few after a quote": (
        "a.tsv",
        'a\tb\n"x\ny"\t1\n2\n',
        "a.tsv:4: 1 cell, but the header has 2",
    ),
    "empty": ("a.csv", "", "a.csv: empty file"),
    "blank": ("a.csv", "\n1,2\n", "a.csv:1: the header is blank"),
    "header only": ("a.csv.gz", "a,b\n", "a.csv.gz: no rows below the header"),
    "a name twice": ("a.csv", "a,b,a\n1,2,3\n", "a.csv:1: column 'a' appears twice"),
    "not text": ("a.csv", b"a,b\n1,2\n\xff\xfe,3\n", "a.csv:3: not UTF-8 text"),
    "a huge cell": (
        "a.csv",
        "a\n1\n" + "x" * 200_000,
        "a.csv:3: field larger than field limit (131072)",
    ),
    "unknown suffix": (
        "a.xlsx",
        "a",
        "a.xlsx: unknown suffix; known are .csv, .tsv, .parquet, .jsonl, .ndjson, .npz, .svm, "
        ".libsvm, .txt (text also with .gz)",
    ),
    "libsvm label": ("a.svm", "1 1:2\n\nx 1:2\n", "a.svm:3: label: not a number: 'x'"),
    "libsvm value": ("a.svm", "1 1:2 2:a\n", "a.svm:1: not of the form index:number: '2:a'"),
    "libsvm colon": ("a.svm", "1 1:2\n0 7\n", "a.svm:2: not of the form index:number: '7'"),
    "libsvm order": (
        "a.svm",
        "1 3:1 2:1\n",
        "a.svm:1: feature 2: the indices of a row must increase",
    ),
    "libsvm empty": ("a.svm", "# nothing\n", "a.svm: empty file"),
}


@pytest.mark.parametrize("case", TEXT_FAULTS)
def test_faults_of_text_files(write, case):
    name, content, message = TEXT_FAULTS[case]
    assert fault(write(name, content)) == message


@pytest.mark.parametrize("name", ["a.csv.gz", "a.svm.gz"])
def test_a_gzip_file_cut_in_half(write, tmp_path, name):
    rows = "".join(f"{i} 1:{i}\n" for i in range(2000))
    whole = gzip.compress(rows.encode())
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    assert fault(name).startswith(f"{name}: damaged gzip file (")
    (tmp_path / name).write_bytes(b"no gzip")
    assert fault(name).startswith(f"{name}: damaged gzip file (")


NPZ_FAULTS = {
    "no X": ({"y": [1]}, "a.npz: no array 'X'"),
    "one dimension": (
        {"X": [1.0]},
        "a.npz: X must be numbers in two or more dimensions, not float64 (1,)",
    ),
    "text": ({"X": [["a"]]}, "a.npz: X must be numbers in two or more dimensions, not <U1 (1, 1)"),
    "no rows": ({"X": np.ones((0, 2))}, "a.npz: X is empty, its shape is (0, 2)"),
    "lengths": ({"X": np.ones((2, 2)), "y": [1]}, "a.npz: y has the shape (1,), X has 2 rows"),
    "objects": (
        {"X": np.array([[None]])},
        "a.npz: not a readable NPZ file (Object arrays cannot be loaded when allow_pickle=False)",
    ),
}


@pytest.mark.parametrize("case", NPZ_FAULTS)
def test_faults_of_npz_files(write, tmp_path, case):
    arrays, message = NPZ_FAULTS[case]
    np.savez(tmp_path / "a.npz", **arrays)
    assert fault("a.npz") == message


def test_an_npz_file_that_is_none(write):
    for content in ("", "some text", b"PK\x03\x04 and then nothing"):
        assert fault(write("a.npz", content)).startswith("a.npz: not a readable NPZ file (")


def test_a_parquet_file_that_is_none(write):
    assert fault(write("a.parquet", "PK")).startswith("a.parquet: not a readable Parquet file (")


def test_parquet_cells_of_an_unknown_type(write, tmp_path):
    pl.DataFrame({"a": [[1, 2]]}).write_parquet(tmp_path / "a.parquet")
    assert (
        fault("a.parquet") == "a.parquet: column 'a': cells of type List(Int64) are not supported"
    )


# --- what the cells mean -----------------------------------------------------------------------


def table_of(cells, path="a.csv"):
    frame = pl.DataFrame({"c": cells})
    return Table(path, frame, np.arange(2, len(frame) + 2))


KINDS = {
    "numbers": (["1", "-2.5e3", None, ".5"], Column("c", "number")),
    "text": (["red", "blue", "1"], Column("c", "text")),
    "empty": ([None, None], Column("c", "empty")),
    "dates": (["2020-01-31", None, "2021-12-01"], Column("c", "date", "%Y-%m-%d")),
    "times": (
        ["2020-01-31T10:11:12.5", "2020-01-31T10:11:13.25"],
        Column("c", "date", "%Y-%m-%dT%H:%M:%S%.f"),
    ),
    "day first": (["31.01.2020", "01.02.2020"], Column("c", "date", "%d.%m.%Y")),
    "ranges of ages": (["10-19", "20-29"], Column("c", "text")),
    "months": (["2020-01", "2020-02"], Column("c", "text")),
    "typed numbers": ([1, 2], Column("c", "number")),
    "flags": ([True, False], Column("c", "number", "boolean")),
    "written flags": (["True", None, "FALSE"], Column("c", "number", "boolean")),
}


@pytest.mark.parametrize("case", KINDS)
def test_kinds_of_columns(case):
    cells, column = KINDS[case]
    if isinstance(cells[0], str) or cells[0] is None:
        cells = pl.Series("c", cells, dtype=pl.String)
    assert infer_column(table_of(cells), "c") == column


def test_one_word_among_numbers_is_a_fault_and_many_are_text():
    cells = ["1"] * 9 + ["abc"]
    with pytest.raises(DataError) as caught:
        infer_column(table_of(cells), "c")
    assert str(caught.value) == (
        "a.csv:11: column 'c': not a number: 'abc' (--text 'c' takes the column as text)"
    )
    assert infer_column(table_of(cells), "c", as_text=True).kind == "text"
    assert infer_column(table_of(["1"] * 8 + ["abc"]), "c").kind == "text"


def test_typed_values():
    numbers = typed(table_of(["1", None, "1e2"]), Column("c", "number"))
    assert numbers.to_list() == [1.0, None, 100.0]
    dates = typed(table_of(["2020-01-02", None]), Column("c", "date", "%Y-%m-%d"))
    assert [d and d.isoformat() for d in dates] == ["2020-01-02T00:00:00", None]
    zoned = typed(
        table_of(["2020-01-02T03:00:00+02:00"]), Column("c", "date", "%Y-%m-%dT%H:%M:%S%z")
    )
    assert zoned[0].isoformat() == "2020-01-02T01:00:00"
    assert typed(table_of([1, 2]), Column("c", "text")).to_list() == ["1", "2"]


FAULTS = {
    "word": (["1", "abc"], Column("c", "number"), "a.csv:3: column 'c': not a number: 'abc'"),
    "infinity": (
        ["1", None, "-inf"],
        Column("c", "number"),
        "a.csv:4: column 'c': not a finite number: '-inf'",
    ),
    "overflow": (
        ["1e999"],
        Column("c", "number"),
        "a.csv:2: column 'c': not a finite number: '1e999'",
    ),
    "date": (
        ["2020-01-02", "2020-13-02"],
        Column("c", "date", "%Y-%m-%d"),
        "a.csv:3: column 'c': not a date: '2020-13-02'",
    ),
    "number for a date": ([7], Column("c", "date"), "a.csv:2: column 'c': not a date: '7'"),
    "date for a number": (
        [datetime(2020, 1, 2)],
        Column("c", "number"),
        "a.csv:2: column 'c': not a number: '2020-01-02 00:00:00'",
    ),
    "long cell": (
        ["x" * 50],
        Column("c", "number"),
        f"a.csv:2: column 'c': not a number: '{'x' * 37}...'",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_cells(case):
    cells, column, message = FAULTS[case]
    with pytest.raises(DataError) as caught:
        typed(table_of(cells), column)
    assert str(caught.value) == message


def test_a_missing_column_names_near_ones():
    table = Table("a.csv", pl.DataFrame({"Target": [1], "age": [2]}))
    with pytest.raises(DataError, match=r"^a.csv: no column 'target'; did you mean 'Target'\?$"):
        table.column("target")
    with pytest.raises(DataError, match=r"^a.csv: no column 'xyz'; it has 'Target', 'age'$"):
        table.column("xyz")
