"""The table of published figures: written from its file alone, and what else cites it agrees."""

from pathlib import Path

import pytest

from benchmarks import papers, published
from benchmarks.command import names_of
from benchmarks.report import Report

NAMES = names_of(papers)
README = Path(__file__).parent.parent / "README.md"
# What README says in figures of the table: the program, the words, and the rows they come from.
README_FIGURES = [
    (
        "mnist_path",
        "| {:.2f} % with 800, {:.2f} % with 1500, from one fit",
        [
            "test error, 800 vectors, width by held-out rows, %",
            "test error, 1500 vectors, width by held-out rows, %",
        ],
    ),
    (
        "shared_vectors",
        "| sparse large margin: {:.2f} % with 280 vectors for all ten classes |",
        ["MNIST, 280 shared vectors: error, %"],
    ),
    (
        "hknn_table1",
        "3 nearest neighbours: {:.2f} % error | nearest hyperplanes: {:.2f} %",
        ["MNIST: error of KNN, %", "MNIST: error of HKNN, %"],
    ),
    (
        "usps_table1",
        "USPS raw, ten one-vs-rest machines, {:.0f} vectors in all | {:.0f} errors | {:.0f}; with "
        "half the vectors {:.0f} |",
        [
            "raw digits, sum: number of vectors",
            "raw digits, sum: SVM",
            "raw digits, sum of the ten test errors: KMP, same N",
            "raw digits, sum of the ten test errors: KMP, half N",
        ],
    ),
    (
        "usps_table1",
        "USPS smoothed as in the paper, {:.0f} vectors in all | {:.0f} errors | {:.0f}; with half "
        "the vectors {:.0f} |",
        [
            "smoothed digits, sum: number of vectors",
            "smoothed digits, sum: SVM",
            "smoothed digits, sum of the ten test errors: KMP, same N",
            "smoothed digits, sum of the ten test errors: KMP, half N",
        ],
    ),
    (
        "uci_table3",
        "SVM: {:.1f} % error, {:.0f} vectors | {:.1f} % with {:.0f} |",
        [
            "Pima: test error of SVM, %",
            "Pima: vectors of SVM",
            "Pima: test error of KMP-mse, %",
            "Pima: vectors of KMP-mse",
        ],
    ),
    (
        "mushrooms_table2",
        "SVM: {:.2f} % error, {:.0f} vectors | {:.2f} % with {:.0f} |",
        [
            "1024 training rows: error of the SVM, %",
            "1024 training rows: vectors of the SVM",
            "1024 training rows: error of KMP, %",
            "1024 training rows: vectors of KMP",
        ],
    ),
    (
        "slmc_figure1",
        "smoothed, 3 against 8 | SVM: {:.2f} % error, {:.0f} vectors | "
        "sparse large margin: {:.2f} % with 12 vectors that moved",
        [
            "smoothed digits: error of the SVM, %",
            "smoothed digits: vectors of the SVM",
            "smoothed digits: error of SLMC with 12 vectors, %",
        ],
    ),
    (
        "slmc_figure1",
        "raw, 3 against 8 | SVM: {:.2f} % error, {:.0f} vectors | "
        "sparse large margin: {:.2f} % with 12 vectors that moved",
        [
            "raw digits: error of the SVM, %",
            "raw digits: vectors of the SVM",
            "raw digits: error of SLMC with 12 vectors, %",
        ],
    ),
]


@pytest.fixture
def report():
    report = Report("Table 9 of a paper: errors.\nProtocol.", command="run it")
    report.published("error, %", 4.5, 4.321987, peers="SVM 5")
    report.check("error at most, %", 4.321987, at_most=5)
    report.check("rows", 3, at_least=4, paper=7)
    return report


def test_the_page_says_what_the_file_says():
    rows = published.read()
    assert rows, "benchmarks/results/table.csv has no rows"
    assert published.PAGE.read_text("utf-8") == published.page(rows, sorted(NAMES))


def test_every_row_is_of_a_program_that_is_there_and_verdicts_follow_from_the_bounds():
    for row in published.read():
        assert row["benchmark"] in NAMES
        assert tuple(row) == published.COLUMNS
        if row["bound"]:
            side, limit = row["bound"].rsplit(" ", 1)
            ours, limit = float(row["ours"]), float(limit)
            room = limit - ours if side == "at most" else ours - limit
            if abs(room) > 1e-3 * abs(limit):  # figures are written with four digits
                assert row["verdict"] == ("PASS" if room > 0 else "MISS"), row
        assert bool(row["bound"]) == (row["verdict"] in ("PASS", "MISS"))


def test_a_run_leaves_rows_and_takes_the_place_of_its_own_alone(tmp_path, report):
    path = tmp_path / "table.csv"
    published.record(path, "table9", report.table_rows("table9"))
    published.record(path, "another", report.table_rows("another"))
    report.rows[0]["ours"] = "4"
    published.record(path, "table9", report.table_rows("table9"))
    rows = published.read(path)
    assert [row["benchmark"] for row in rows] == ["another"] * 3 + ["table9"] * 3
    first, second, third = rows[3:]
    assert (first["ours"], first["paper"], first["peers"]) == ("4", "4.5", "SVM 5")
    assert (second["ours"], second["bound"], second["verdict"]) == ("4.322", "at most 5", "PASS")
    assert (third["paper"], third["bound"], third["verdict"]) == ("7", "at least 4", "MISS")
    assert not report.passed


def test_the_page_puts_misses_first_and_names_what_has_no_rows(report):
    text = published.page(report.table_rows("table9"), ["table9", "waiting"])
    assert "Of 2 bounds 1 held and 1 did not." in text
    assert text.index("## Misses") < text.index("## Table 9 of a paper: errors")
    assert "- `python -m benchmarks.papers waiting`" in text
    assert "| rows | 7 | 3 |  | at least 4 | MISS |" in text


@pytest.mark.parametrize(
    ("name", "words", "whats"), README_FIGURES, ids=lambda value: str(value)[:40]
)
def test_what_readme_says_is_in_the_table(name, words, whats):
    rows = {row["what"]: row["ours"] for row in published.read() if row["benchmark"] == name}
    text = words.format(*(float(rows[what]) for what in whats))
    assert text in README.read_text("utf-8")
