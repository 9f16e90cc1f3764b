"""A report as a model card in Markdown, by skops, with its pictures as files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pursuit.reports.parts import Code, Picture, Section, Table

__all__ = ["write_card"]


def write_card(path: Path, title: str, told: str, sections: list[Section]) -> None:
    """Write the card and, into a folder beside it, the pictures.

    Parameters
    ----------
    path : Path
        The Markdown file; the folder has its name without the suffix.
    title, told : str
        What the card is called, and the line below.
    sections : list of Section
        What stands there.

    Raises
    ------
    ImportError
        Without skops.
    """
    try:
        from skops.card import Card
    except ImportError as error:
        raise ImportError("a model card needs skops: pip install 'pursuit[report]'") from error
    card = Card(None, model_diagram=False, template=None)
    card.add(**{title: told})
    for section in sections:
        _add(card, f"{title}/{section.title}", section, path)
    card.save(path)


def _add(card: Any, place: str, section: Section, path: Path) -> None:
    """A section; a table and a picture have a place of their own below it."""
    lines = []
    for part in section.parts:
        if isinstance(part, Picture):
            lines.append(f"![{_plain(part.alt)}]({_draw(part, path)})")
        elif isinstance(part, Table):
            lines.append(_table(part))
        elif isinstance(part, Code):
            lines.append(f"```python\n{part.text}\n```")
        else:
            lines.append(_plain(part.text))
    card.add(**{place: "\n\n".join(lines)})


def _draw(picture: Picture, path: Path) -> str:
    """Write a picture; where it is, from the card."""
    folder = path.parent / path.stem
    folder.mkdir(exist_ok=True)
    (folder / f"{picture.name}.png").write_bytes(picture.drawn("png"))
    return f"{path.stem}/{picture.name}.png"


def _table(table: Table) -> str:
    """A table of Markdown."""
    head, *body = (f"| {' | '.join(map(_plain, row))} |" for row in (table.header, *table.rows))
    return "\n".join([head, "|" + " --- |" * len(table.header), *body])


def _plain(text: str) -> str:
    """Text that means nothing in Markdown."""
    text = text.replace("\\", "\\\\").replace("\n", " ")
    for sign in "|<>[]*_`":
        text = text.replace(sign, f"\\{sign}")
    return text
