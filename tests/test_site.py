"""The site: every public name and every page has its place, and Sphinx builds it without a warning.

What needs Sphinx (the docs extra) skips where it is not installed.
"""

import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pursuit

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MADE = ("generated", "gallery", "results", "__pycache__")
NEEDED = ("sphinx", "pydata_sphinx_theme", "sphinx_gallery", "numpydoc", "myst_parser")
NEEDED += ("sphinx_copybutton", "sphinx_design")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]
needs_sphinx = pytest.mark.skipif(
    bool(ABSENT), reason=f"needs the docs extra: {', '.join(ABSENT)} not installed"
)


def listed_names():
    """The names in the autosummary lists of the reference, and its modules."""
    text = "\n".join(path.read_text("utf-8") for path in (DOCS / "api").glob("*.rst"))
    lists = re.findall(r"^\.\. autosummary::\n((?: .*\n|\n)*)", text, re.MULTILINE)
    names = {line.strip() for part in lists for line in part.splitlines()}
    return names, set(re.findall(r"^\.\. automodule:: pursuit\.(\w+)$", text, re.MULTILINE))


def listed_pages():
    """The entries of all toctrees in Markdown."""
    text = "\n".join((DOCS / f"{name}.md").read_text("utf-8") for name in ("index", "guide"))
    trees = re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)
    return {line.strip() for tree in trees for line in tree.splitlines()}


def test_every_public_name_is_in_the_reference():
    names, modules = listed_names()
    public = set(pursuit.__all__)
    described = {name for name in public if inspect.ismodule(getattr(pursuit, name))}
    missing = sorted(public - described - names)
    assert missing == [], f"in no autosummary of docs/api/*.rst: {', '.join(missing)}"
    for module in sorted(described - modules):  # whose names are all listed one by one
        missing = sorted(set(getattr(pursuit, module).__all__) - names)
        assert missing == [], f"pursuit.{module}: no page of docs/api/ has {', '.join(missing)}"


def test_every_page_is_in_the_guide():
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    missing = sorted(pages - listed_pages())
    assert missing == [], f"in no toctree of docs/guide.md: {', '.join(missing)}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built without running the examples, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns(*MADE))
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "benchmarks").mkdir()
    shutil.copytree(ROOT / "benchmarks" / "results", folder / "benchmarks" / "results")
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "plot_gallery=0"]
    done = subprocess.run(
        [*command, "docs", "site"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.mark.docs
@needs_sphinx
def test_the_site_builds_without_a_warning(site):
    for page in ("index", "guide", "gallery/budget", "about/changes", "results/usps", "api/losses"):
        assert (site / f"{page}.html").is_file()
    page = (site / "api" / "generated" / "pursuit.SparseKernelClassifier.html").read_text("utf-8")
    assert "gallery/moved_digits.html" in page  # the examples that use it
    assert "set_fit_request" not in page
    start = (site / "getting_started.html").read_text("utf-8")
    assert 'href="api/generated/pursuit.KernelMatchingPursuitRegressor.html' in start
    assert 'href="results/compress.html' in (site / "compress.html").read_text("utf-8")


@pytest.mark.docs
@needs_sphinx
@pytest.mark.parametrize(
    "word",
    ["dual_coef_", "gamma", "class_weight", "probabl", "nystroem", "bandwidth"],  # stems
)
def test_words_of_scikit_learn_lead_to_the_page_that_explains_them(site, word):
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    found = [index[kind].get(word, []) for kind in ("terms", "titleterms")]
    pages = {k for one in found for k in ([one] if isinstance(one, int) else one)}
    assert index["docnames"].index("coming_from") in pages


@needs_sphinx
def test_docstrings_are_made_plain_text(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    from site_hooks import plain_text

    lines = [
        "The norm |x| of ``|y|`` and `z_`, in support_ or n_support_.",
        "====  ====",
        "|x|   n_",
        "====  ====",
        "",
        ">>> a_ | b",
        "As it is::",
        "",
        "    c_ | d",
        "",
        "After it e_ and f\\_",
    ]
    plain_text(None, "class", "name", None, None, lines)
    assert lines == [
        "The norm \u2223x\u2223 of ``|y|`` and `z_`, in support\\_ or n_support\\_.",
        "====  ====",
        "\u2223x\u2223   n_",
        "====  ====",
        "",
        ">>> a_ | b",
        "As it is::",
        "",
        "    c_ | d",
        "",
        "After it e\\_ and f\\_",
    ]
