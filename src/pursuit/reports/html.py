"""A report as one HTML file that needs nothing else: style, tables and pictures are in it.

Everything that comes from a model or a table is escaped. Pictures are SVG in ``img`` elements,
whose text cannot reach out of them. The page has no script.
"""

from __future__ import annotations

import base64
from html import escape
from importlib.resources import files

from pursuit.reports.parts import Code, Part, Picture, Section, Table, Text

__all__ = ["page"]


def page(title: str, told: str, sections: list[Section]) -> str:
    """Return the page.

    Parameters
    ----------
    title : str
        What the page is called.
    told : str
        The line below it.
    sections : list of Section
        What stands there.
    """
    style = files("pursuit.reports").joinpath("page.css").read_text("utf-8")
    links = [f'<li><a href="#s{k}">{escape(s.title)}</a></li>' for k, s in enumerate(sections)]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            f"<header><h1>{escape(title)}</h1><p>{escape(told)}</p></header>",
            f'<nav aria-label="Sections"><ol>{"".join(links)}</ol></nav>',
            "<main>",
            *(_section(k, section) for k, section in enumerate(sections)),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _section(k: int, section: Section) -> str:
    parts = "\n".join(map(_part, section.parts))
    return f'<section id="s{k}">\n<h2>{escape(section.title)}</h2>\n{parts}\n</section>'


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return f"<p>{escape(part.text)}</p>"
    if isinstance(part, Code):
        return f"<pre><code>{escape(part.text)}</code></pre>"
    if isinstance(part, Table):
        return _table(part)
    return _picture(part)


def _table(table: Table) -> str:
    """A table whose first column names the rows; wide ones are scrolled within the page."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    body = "\n".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    head = f"<thead><tr>{head}</tr></thead>\n" if any(table.header) else ""
    return f'<div class="wide"><table>\n{head}<tbody>\n{body}\n</tbody>\n</table></div>'


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.drawn("svg")).decode("ascii")
    alt = escape(picture.alt, quote=True)
    width = round(96 * picture.figure.get_size_inches()[0])
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{alt}" width="{width}">'
        f"<figcaption>{escape(picture.alt)}.</figcaption></figure>"
    )
