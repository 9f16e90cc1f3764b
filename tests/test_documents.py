"""What README, docs/ and examples/ show runs, and what they name is there."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
import typer

import pursuit
from pursuit.cli import app as cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page, language):
    text = page.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def broken_links(page):
    """Give the links of a page to files that are not there."""
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8"))
    return [target for target in targets if "://" not in target and not reached(page, target)]


def reached(page, target):
    return (page.parent / target).exists()


def shown_commands(text):
    """Give the arguments behind `pursuit` in each line of some shell code."""
    lines = re.findall(r"^(?:.*&& )?(?:\S*/)?pursuit ([^&]+?)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def unknown_words(arguments, commands):
    """Give the command or the options that the command line does not have."""
    name, *rest = arguments
    if name not in commands:
        return [name]
    known = {"--help", "-"}
    for parameter in commands[name].params:
        known.update(parameter.opts, parameter.secondary_opts)
    return [word for word in rest if word.startswith("-") and word not in known]


@pytest.fixture(scope="module")
def commands():
    return typer.main.get_command(cli._app()).commands


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Run in an empty folder and draw without a screen."""
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context():
        matplotlib.use("agg")
        monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
        yield tmp_path
    plt.close("all")


def titles(figure):
    """Give the texts that stand above a figure and above its axes."""
    texts = [ax.get_title(loc) for ax in figure.axes for loc in ("left", "center", "right")]
    return [text for text in [figure.get_suptitle(), *texts] if text]


@pytest.mark.docs
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name
)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, scratch):
    code = "\n".join(blocks(page, "python"))
    exec(compile(code, page.name, "exec"), {"__name__": "__main__"})


@pytest.mark.docs
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_says_something_and_draws(example, scratch, capsys, monkeypatch):
    shown = []

    def show():
        shown.extend(titles(plt.figure(number)) for number in plt.get_fignums())
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
    assert shown and all(shown)  # a title is what those hear who do not see the picture


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page):
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](page.md) [b](https://example.org) ![c](absent.png)", "utf-8")
    assert broken_links(page) == ["absent.png"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_exist(page, commands):
    text = page.read_text("utf-8")
    shown = shown_commands("\n".join(blocks(page, "bash")))
    shown += [
        words for span in re.findall(r"`(pursuit .+?)`", text) for words in shown_commands(span)
    ]
    assert [unknown_words(arguments, commands) for arguments in shown] == [[]] * len(shown)


def test_unknown_commands_and_options_are_found(commands):
    text = "pip install x && .venv/bin/pursuit demo\npursuit fit a.csv --aim b\npursuit fly a.csv"
    shown = shown_commands(text)
    assert [unknown_words(arguments, commands) for arguments in shown] == [[], ["--aim"], ["fly"]]


def test_the_modules_that_the_readme_names_are_attributes_of_the_package():
    named = set(re.findall(r"`(pursuit\.[a-z_]+)`", PAGES[0].read_text("utf-8")))
    assert {"pursuit.bounds", "pursuit.dictionary", "pursuit.kernels", "pursuit.losses"} <= named
    # In a new process, where no test has imported them.
    code = f"import pursuit; print(*({', '.join(sorted(named))}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.count("<module 'pursuit.") == len(named)
    assert {name.removeprefix("pursuit.") for name in named} <= set(pursuit.__all__)


def test_there_is_something_to_check():
    assert len(EXAMPLES) >= 14
    assert [len(blocks(ROOT / "README.md", language)) for language in ("python", "bash")] == [1, 4]
