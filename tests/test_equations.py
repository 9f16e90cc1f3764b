"""The page of equations: each function it names exists, and its module names the number."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "equations.md"
# Numbers that each paper has; each must be in its table once.
COMPLETE = {
    "Kernel matching pursuit": [f"eq. {n}" for n in range(1, 16)],
    "Sparse large margin classifiers": [*(f"eq. {n}" for n in range(1, 37)), "lemma 1"],
    "Theory of matching pursuit": [
        *(f"eq. {n}" for n in range(1, 7)),
        *(f"theorem {n}" for n in range(1, 5)),
        *("algorithm 1", "corollary 1", "definition 1"),
    ],
    "Convex networks": [*(f"eq. {n}" for n in range(1, 21)), "definition 1", "definition 2"],
    "Locally structured kernel methods": [
        *(f"eq. 11.{n}" for n in range(1, 6)),
        *(f"eq. 13.{n}" for n in range(1, 4)),
        "eq. 14.1",
    ],
}


def rows():
    """Triples (paper, numbers, where)."""
    paper = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            paper = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] not in ("number", "---"):
            yield paper, cells[0].split(", "), cells[2]


IMPLEMENTED = [row for row in rows() if re.match(r"`[\w.]+:[\w.]+`$", row[2])]


def names(text, number):
    """Whether the text cites a number, alone or in a list or range."""
    kind, figure = number.split()
    text = re.sub(r"\s+", " ", text)
    if kind != "eq.":
        return re.search(rf"\b{kind}s? {re.escape(figure)}(?!\d)", text, re.IGNORECASE)
    cited = [
        found[1] for found in re.finditer(r"\b(?:eq\.|equations?) ([\d.,+ (and)to-]+)", text, re.I)
    ]
    dotted = re.findall(r"\((\d+\.\d+)\)", text)
    return figure in dotted or any(figure in numbers_of(one) for one in cited)


def numbers_of(cited):
    """The numbers of "3", "3 and 6", "14-15", "3 to 5" or "11.2-11.4"."""
    found = set(re.findall(r"\d+(?:\.\d+)?", cited))
    for start, end in re.findall(r"(\d+(?:\.\d+)?) ?(?:-|to) ?(\d+(?:\.\d+)?)", cited):
        chapter, dot, first = start.rpartition(".")
        span = range(int(first), int(end.rpartition(".")[2]) + 1)
        found |= {f"{chapter}{dot}{n}" for n in span}
    return found


def test_every_row_has_a_function_or_a_reason():
    for paper, numbers, where in rows():
        assert re.match(r"`[\w.]+:[\w.]+`$", where) or where.startswith("not implemented"), (
            paper,
            numbers,
        )


@pytest.mark.parametrize("paper", COMPLETE)
def test_every_number_of_the_paper_is_there_once(paper):
    found = [number for one, numbers, _ in rows() if one == paper for number in numbers]
    assert sorted(found) == sorted(set(found))
    assert set(COMPLETE[paper]) <= set(found)


@pytest.mark.parametrize(("paper", "numbers", "where"), IMPLEMENTED, ids=lambda value: str(value))
def test_the_function_exists_and_its_module_names_the_number(paper, numbers, where):
    module_name, _, path = where.strip("`").partition(":")
    module = importlib.import_module(module_name)
    found = module
    for name in path.split("."):
        found = getattr(found, name)
    text = inspect.getsource(found) + (module.__doc__ or "")
    for number in numbers:
        assert names(text, number), f"{where} does not name {number}"
