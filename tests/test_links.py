"""Links of pages, and the pages that sources name, lead to files and headings that exist.

`make docs` checks the links of the built site in the same way, by docs/sphinx/links.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("xgrad", "backends", "tests", "benchmarks", "examples", "docs", ".github", ".ci")
GENERATED = "docs/reference/"  # pages that the build of the site writes
LINK = re.compile(r"\]\(([^)\s]+)\)")
PICTURE = re.compile(r"^```\{image\} (\S+)", re.MULTILINE)
ATTRIBUTE = re.compile(r'<[^>]*\b(?:src|srcset|href)="([^"]+)"')
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


def files(*suffixes: str) -> Iterator[Path]:
    """Yield the files of the repository with one of these endings."""
    for path in ROOT.iterdir():
        if path.is_file() and path.name.endswith(suffixes):
            yield path
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            hidden = any(part.startswith((".", "__")) for part in path.parts[len(ROOT.parts) + 1 :])
            if path.is_file() and path.name.endswith(suffixes) and not hidden:
                yield path


PAGES = [path for path in files(".md") if not str(path.relative_to(ROOT)).startswith(GENERATED)]


@cache
def text_of(page: Path) -> str:
    """Return a page without its blocks of code; directives, such as ```{glossary}, are text."""
    lines, fence, is_code = [], "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        mark = re.match(r" *(`{3,})(\{?)", line)
        if mark and (not fence or line.strip() == fence):
            fence, is_code = ("", False) if fence else (mark[1], not mark[2])
        elif not is_code:
            lines.append(line)
    return "\n".join(lines)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = text_of(page)
    found = set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", LINK.sub("]", heading).lower())
        found.add(words.strip().replace(" ", "-"))
    return found


def dead_links(page: Path) -> list[str]:
    """Return the links of a page to files and headings that do not exist."""
    text = page.read_text(encoding="utf-8")
    links = LINK.findall(text_of(page)) + ATTRIBUTE.findall(text_of(page)) + PICTURE.findall(text)
    dead = []
    for link in links:
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if re.match(r"[a-z]+:", link) or str(target).startswith(f"{ROOT / GENERATED}"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    for entries in TOCTREE.findall(text):
        for entry in re.findall(r"^[^:\s]\S*$", entries, re.MULTILINE):
            target = page.parent / entry
            exists = any([*target.parent.glob(f"{target.name}.*"), target.exists()])
            if "*" not in entry and not exists and not entry.startswith("reference/"):
                dead.append(entry)
    return dead


def test_links_of_pages_lead_to_files_and_headings() -> None:
    dead = {str(page.relative_to(ROOT)): dead_links(page) for page in PAGES}
    assert len(dead) > 60 and not {page: links for page, links in dead.items() if links}


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `heading` here\n[a](#one-heading-here) [b](#another) [c](gone.md) [d](page.md#x)\n"
        '```python\nx[0](gone.py)\n```\n```{note}\n[e](gone.py)\n```\n<img src="no.svg">\n'
        "```{toctree}\n:hidden:\npage\nmissing\n```\n"
    )
    assert dead_links(page) == ["#another", "gone.md", "page.md#x", "gone.py", "no.svg", "missing"]


def test_pages_that_sources_name_exist() -> None:
    """Docstrings, comments and errors name pages as ``docs/gpu.md``, from the root."""
    named = re.compile(r"(?<![\w/])docs/[\w./-]+\.md(?:#[\w-]+)?")
    names: dict[str, str] = {}
    for path in files(".py", ".pyi", ".md", ".toml", ".yml", ".c", ".h", ".html", "file"):
        if path.name not in ("CHANGELOG.md", Path(__file__).name):
            for name in named.findall(path.read_text(encoding="utf-8")):
                names[name] = str(path.relative_to(ROOT))
    assert len(names) > 10
    for name, source in names.items():
        page, _, anchor = name.partition("#")
        assert (ROOT / page).exists(), f"{source} names {name}"
        assert not anchor or anchor in anchors(ROOT / page), f"{source} names {name}"


def test_every_page_of_docs_is_in_a_toctree() -> None:
    listed: set[Path] = set()
    for page in PAGES:
        for entries in TOCTREE.findall(page.read_text(encoding="utf-8")):
            for entry in re.findall(r"^[^:\s]\S*$", entries, re.MULTILINE):
                listed |= {path.resolve() for path in page.parent.glob(f"{entry}.md")}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert {page.name for page in pages - listed} == {"index.md"}


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("other.html#there", ""),
        ("other.html#gone", "index.html: no anchor other.html#gone"),
        ("gone.html", "index.html: no file gone.html"),
        ("https://data-apis.org/gone", ""),
    ],
)
def test_build_of_the_site_checks_its_links(tmp_path: Path, link: str, reason: str) -> None:
    (tmp_path / "index.html").write_text(f'<a href="{link}">x</a>')
    (tmp_path / "other.html").write_text('<h1 id="there">y</h1>')
    script = ROOT / "docs" / "sphinx" / "links.py"
    run = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert (run.returncode, reason in run.stderr) == (bool(reason), True), run.stderr
