"""Check that links of the built site lead somewhere and that pictures have alternative texts.

    python docs/check_links.py site

Reads the pages alone: nothing is fetched, addresses of other sites are left out, and so are the
theme's own files. Prints what is wrong, a line each, and ends with 1 if anything is.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """A page's anchors, its links and the pictures without an alternative text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.mute: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchor, the link and the picture of a tag."""
        found = dict(attrs)
        names = (found.get("id"), found.get("name") if tag == "a" else None)
        self.anchors |= {name for name in names if name}
        self.links += [link for key in ("href", "src") if (link := found.get(key)) is not None]
        source = found.get("src") or ""
        # The gallery's small pictures stand beside their titles: an empty text is right there.
        if tag == "img" and not (found.get("alt") or "").strip() and "_thumb." not in source:
            self.mute.append(source)


def wrong_links(site: Path) -> list[str]:
    """What is wrong in the site, a line each."""
    site = site.resolve()
    paths = set(site.rglob("*.html")) - set((site / "_static").rglob("*.html"))
    pages = {path: Page(path) for path in sorted(paths)}
    wrong = [] if pages else [f"{site}: no page"]
    for path, page in pages.items():
        name = path.relative_to(site)
        wrong += [f"{name}: a picture without an alternative text: {src}" for src in page.mute]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{name}: leads nowhere: {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{name}: no such place in the page: {link}")
    return sorted(set(wrong))


if __name__ == "__main__":
    problems = wrong_links(Path(sys.argv[1]))
    print("\n".join(problems) or "every link leads somewhere, every picture has a text")
    sys.exit(bool(problems))
