"""The files beside the code agree with it: versions, papers, headings and what an sdist carries."""

import re
import tomllib
from pathlib import Path

import pytest

import pursuit

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
HEADINGS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_has_the_version_and_every_paper_of_the_equations():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    (version,) = re.findall(r"^version: (\S+)$", citation, re.MULTILINE)
    assert version == PROJECT["project"]["version"] == pursuit.__version__
    years = sorted(re.findall(r"^    year: (\d{4})$", citation, re.MULTILINE))
    pages = (ROOT / "docs" / "equations.md").read_text("utf-8")
    cited = re.findall(r"^[A-Z]\. [A-Z].*?\b((?:19|20)\d\d)\.", pages, re.MULTILINE)
    assert len(years) == 5
    assert years == sorted(cited)


def test_the_change_log_has_the_headings_of_keep_a_changelog_once_a_version():
    versions = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## [")[1:]
    assert versions[0].startswith("Unreleased]")
    for text in versions:
        headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
        assert len(headings) == len(set(headings)), text[:20]
        assert set(headings) <= HEADINGS, text[:20]


@pytest.mark.parametrize("path", PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
def test_what_an_sdist_carries_is_there(path):
    assert (ROOT / path.lstrip("/")).exists()
