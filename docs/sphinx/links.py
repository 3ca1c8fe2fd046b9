"""Check the links of the built site: ``python docs/sphinx/links.py FOLDER``.

Every link, picture, style and script that is not on another site must be a file of the site, and
every anchor an element of its page.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and its links to other places."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors, self.links = {""}, set[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and links of an element."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "use":
                self.links.add(value)


def dead_links(site: Path) -> list[str]:
    """Return a line for each link of a page that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                dead.append(f"{path.relative_to(site.resolve())}: no file {link}")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                dead.append(f"{path.relative_to(site.resolve())}: no anchor {link}")
    return dead


if __name__ == "__main__":
    site = Path(sys.argv[1])
    assert any(site.rglob("*.html")), f"{site} has no pages"
    if found := dead_links(site):
        sys.exit("\n".join(["dead links:", *found]))
