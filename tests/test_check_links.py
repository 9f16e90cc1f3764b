"""The check of the built site's links finds what leads nowhere, and nothing else."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "check_links.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs the repository's docs")

GOOD = """<a id="here" href="#here">x</a> <a href="sub/page.html#there">x</a> <a href="sub/">x</a>
<a href="https://example.org/nowhere">x</a> <a href="mailto:nobody">x</a>
<img src="a%20b.png" alt="a picture"> <img src="sphx_thumb.png" alt="">"""


@pytest.fixture
def site(tmp_path):
    for name in ("_static", "empty", "sub"):
        (tmp_path / name).mkdir()
    (tmp_path / "_static" / "theme.html").write_text('<a href="gone.html">', encoding="utf-8")
    (tmp_path / "sub" / "page.html").write_text('<p id="there">', encoding="utf-8")
    (tmp_path / "sub" / "index.html").write_text("<p>", encoding="utf-8")
    for name in ("a b.png", "sphx_thumb.png"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "index.html").write_text(GOOD, encoding="utf-8")
    return tmp_path


@pytest.fixture
def checked(monkeypatch, capsys):
    """The exit status of the check and the lines it prints."""

    def run(site):
        monkeypatch.setattr(sys, "argv", ["check_links.py", str(site)])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        return end.value.code, capsys.readouterr().out.splitlines()

    return run


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("", None),
        ('<a href="#gone">', "index.html: no such place in the page: #gone"),
        ('<a href="sub/page.html#gone">', "no such place in the page: sub/page.html#gone"),
        ('<a href="sub/#gone">', "no such place in the page: sub/#gone"),
        ('<a href="empty/">', "leads nowhere: empty/"),
        ('<meta name="width"><a href="#width">', "no such place in the page: #width"),
        ('<a href="gone.html">', "index.html: leads nowhere: gone.html"),
        ('<img src="gone.png" alt="x">', "leads nowhere: gone.png"),
        ('<img src="a%20b.png">', "a picture without an alternative text: a%20b.png"),
        ('<img src="a%20b.png" alt=" ">', "a picture without an alternative text: a%20b.png"),
    ],
)
def test_what_is_wrong_is_named(site, checked, added, message):
    with (site / "index.html").open("a", encoding="utf-8") as page:
        page.write(added)
    code, lines = checked(site)
    assert code == (message is not None)
    assert len(lines) == 1
    assert lines[0].endswith(message or "every picture has a text")


def test_a_folder_without_pages_is_wrong(tmp_path, checked):
    code, lines = checked(tmp_path)
    assert code == 1
    assert lines == [f"{tmp_path.resolve()}: no page"]
