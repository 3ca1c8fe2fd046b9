"""Check of the site's layout in headless Chromium: ``python docs/sphinx/layout.py build/site``.

Each page is opened at three widths, light and dark. It fails where an element is wider than its
column or cut off, where a text has too little contrast with what it stands on, and where a picture
is not loaded. Code, tables and formulas scroll in their own box on phones only, outputs of
notebooks everywhere.

It needs playwright (``pip install playwright``), and Chromium or Chrome on the path or in the
environment variable ``CHROMIUM``; where one is missing, it says so and checks nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

WIDTHS = (1400, 900, 420)
#: The width of a phone, where code, tables and formulas may scroll.
PHONE = 420
THEMES = ("light", "dark")
#: The smallest text of a drawing, in pixels as shown.
SMALLEST = 8.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SCRIPT = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")


def browser_path() -> str | None:
    """Return the path of Chromium or Chrome, None if there is none."""
    found = (shutil.which(name) for name in (os.environ.get("CHROMIUM", ""), *BROWSERS) if name)
    return next(filter(None, found), None)


def pages(site: Path) -> list[Path]:
    """Return the pages of the site, and one of the plain pages of sources."""
    sources = sorted((site / "source").rglob("*.html"))
    found = [
        path
        for path in sorted(site.rglob("*.html"))
        if path.relative_to(site).parts[0] not in ("_static", "source")
        and path != site / "index.html"
    ]
    return found + sources[:1]


class Checker:
    """Checks of pages and drawings in one tab of a browser."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        #: The drawings of the pages, and the smallest width at which each is shown on a computer.
        self.drawings: dict[str, float] = {}
        #: The color of pages, by theme.
        self.colors: dict[str, list[float]] = {}

    def page(self, path: Path) -> Iterator[str]:
        """Yield what is wrong with a page."""
        self.tab.goto(path.as_uri())
        self.tab.evaluate("rest()")
        for width in WIDTHS:
            self.tab.set_viewport_size({"width": width, "height": 900})
            for fault in self.tab.evaluate("layoutFaults", width == PHONE):
                yield f"{width} px: {fault}"
            for address, shown in self.tab.evaluate("drawings()") if width != PHONE else ():
                self.drawings[address] = min(shown, self.drawings.get(address, shown))
        for theme in THEMES:
            self.colors[theme] = self.tab.evaluate("setTheme", theme)
            for fault in self.tab.evaluate("contrastFaults", self.colors[theme]):
                yield f"{theme}: {fault}"

    def drawing(self, address: str, width: float) -> Iterator[str]:
        """Yield what is wrong with a drawing that pages show at a width."""
        self.tab.goto(address)
        size = self.tab.evaluate("smallestText", width)
        if size is not None and size < SMALLEST:
            yield f"its smallest text is {size:.1f} pixels high"
        for theme in THEMES:
            for fault in self.tab.evaluate("contrastFaults", self.colors[theme]):
                yield f"{theme}: {fault}"


def site_faults(site: Path, browser: str, names: list[str]) -> Iterator[str]:
    """Yield what is wrong with the pages of a site and their drawings, with their paths."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = chromium.new_page()
        tab.add_init_script(SCRIPT)
        checker = Checker(tab)
        for path in [site / name for name in names] or pages(site):
            for fault in checker.page(path):
                yield f"{path.relative_to(site)}: {fault}"
        for address, width in checker.drawings.items():
            for fault in checker.drawing(address, width):
                yield f"{address.removeprefix(site.as_uri() + '/')}: {fault}"
        chromium.close()


def main(site: Path, *names: str) -> int:
    """Print the faults of a site, and return the status of the process."""
    browser = browser_path()
    if sync_playwright is None or browser is None:
        missing = "Chromium" if sync_playwright else "playwright (pip install playwright)"
        print(f"not checked: the layout of {site}, which needs {missing}")
        return 0
    count = 0
    for fault in site_faults(site.resolve(), browser, list(names)):
        count += 1
        print(fault, flush=True)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
