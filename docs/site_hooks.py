"""What Sphinx is told to do differently; `conf.py` connects these functions.

- Docstrings are written to be read in an editor, so `|x|` and `support_` stand there without
  escapes. `plain_text` adds what reStructuredText wants.
- Pages link to `benchmarks/results/` and `examples/` as files, for readers on a code host. On the
  site the reports are pages, copied in by `copy_results`, and the examples are the gallery's;
  `links_within_the_site` leads there.
- Public names in the pages' running text are code there; `link_names` leads them to the reference.
- `skip_inherited` leaves scikit-learn's own methods out of the reference.
- `reset_pictures` gives the pictures of the gallery one look.
"""

import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import pursuit

HERE = Path(__file__).parent
TABLE_RULE = re.compile(r"\s*=+( +=+)+\s*$")


def plain_text(app, what, name, thing, options, lines):
    """Change the lines of a docstring in place; doctests and literal blocks stay as they are."""
    block, table = None, False  # the indentation that opened a literal block; within a table
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        if TABLE_RULE.match(line):
            table = bool(i + 1 < len(lines) and lines[i + 1].strip())
        elif block is None and not line.lstrip().startswith((">>> ", "... ", ".. ")):
            lines[i] = _outside_code(line, table)
        if block is None and line.rstrip().endswith("::"):
            block = indent


def _outside_code(line, table):
    """Bars as a character without a meaning (as wide, for tables); underscores escaped."""
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    for k in range(0, len(parts), 2):
        parts[k] = parts[k].replace("|", "\N{DIVIDES}")
        if not table:
            parts[k] = re.sub(r"(?<=\w)(?<!\\)_(?!\w)", r"\_", parts[k])
    return "".join(parts)


def skip_inherited(app, what, name, member, skip, options):
    """Leave out the methods inherited from scikit-learn: their texts link into its own pages."""
    module = getattr(member, "__module__", None) or "pursuit"
    request = name.startswith("set_") and name.endswith("_request")
    return True if request or not module.startswith("pursuit") else None


def copy_results(app):
    """Put the reports of the benchmarks beside the pages."""
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    for path in (HERE.parent / "benchmarks" / "results").glob("*.*"):
        if path.suffix in (".md", ".png"):
            shutil.copy2(path, folder)


def links_within_the_site(app, name, source):
    """Lead links to reports and examples to their pages."""
    text = re.sub(r"\]\(\.\./benchmarks/results/", "](/results/", source[0])
    source[0] = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](/gallery/\1.rst)", text)


def link_names(app, doctree):
    """Lead code that is a public name, alone or called, to its page of the reference."""
    page = app.env.current_document.docname
    if page.startswith(("api/", "gallery/")):
        return
    for code in list(doctree.findall(nodes.literal)):
        name = re.split(r"[(.]", code.astext())[0]
        linked = isinstance(code.parent, nodes.reference | nodes.title | addnodes.pending_xref)
        if name in pursuit.__all__ and not linked:
            target = {"refdomain": "py", "reftype": "obj", "reftarget": f"pursuit.{name}"}
            link = addnodes.pending_xref("", **target, refdoc=page, refexplicit=True)
            code.replace_self(link)
            link += code


def reset_pictures(gallery_conf, example):
    """Start from matplotlib's defaults and the one style file."""
    import matplotlib.pyplot as plt

    plt.close("all")
    plt.style.use(["default", HERE / "gallery.mplstyle"])
