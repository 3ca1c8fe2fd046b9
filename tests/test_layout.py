"""The check of the site's layout, `docs/sphinx/layout.py`, finds what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

import layout

BROWSER = layout.browser_path()

#: Contents of a page, each with what is wrong with it.
FLAWED = [
    ("<pre>" + "x" * 200 + "</pre>", "1400 px: scrolls sideways"),
    ("<table><tr><td>" + "x" * 200 + "</table>", "900 px: wider than its column"),
    ("<p style='overflow: hidden'>" + "x" * 200 + "</p>", "420 px: cut off"),
    ("<img src=missing.svg>", "does not load"),
    ("<p style='width: 2000px'>wide</p>", "the page scrolls sideways"),
    ("<p style='color: #999'>grey</p>", "light: contrast"),
    ("<p style='color: #444'>grey</p>", "dark: contrast"),
    ("<img src=pale.svg>", "pale.svg: light: contrast"),
    ("<img src=small.svg>", "small.svg: its smallest text is 4.0 pixels high"),
]
FINE = "<pre>" + "x" * 50 + "</pre><p>text</p><img src=fine.svg>"
PAGE = """<!doctype html>
<style>
  body { margin: 0; background: #fff; color: #000; }
  body[data-theme=dark] { background: #131416; color: #fff; }
  main { width: 30em; max-width: 100%; }
  pre { overflow-x: auto; }
</style>
<body><main>"""
DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40" viewBox="0 0 200 40">
<rect width="100" height="40" fill="#fff"/>
<text y="20" style="font-size: {}px; fill: {}">text</text>
</svg>"""


@pytest.mark.skipif(
    layout.sync_playwright is None or BROWSER is None,
    reason="needs Chromium, and playwright: pip install playwright",
)
def test_flaws_of_pages_and_their_drawings_are_found(tmp_path: Path) -> None:
    (tmp_path / "pale.svg").write_text(DRAWING.format(20, "#ccc"))
    (tmp_path / "small.svg").write_text(DRAWING.format(4, "#333"))
    (tmp_path / "fine.svg").write_text(DRAWING.format(20, "#333"))
    (tmp_path / "fine.html").write_text(PAGE + FINE)
    for i, (content, _) in enumerate(FLAWED):
        (tmp_path / f"{i}.html").write_text(PAGE + content)
    faults = list(layout.site_faults(tmp_path, BROWSER, []))
    for i, (_, expected) in enumerate(FLAWED):
        assert any(expected in f for f in faults if f.startswith((f"{i}.", expected))), expected
    assert not [fault for fault in faults if fault.startswith("fine.")]


def test_site_without_a_browser_is_reported_as_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CHROMIUM", "")
    assert layout.main(tmp_path) == 0
    assert capsys.readouterr().out.startswith("not checked: the layout of")
