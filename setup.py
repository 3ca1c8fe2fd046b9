"""Addresses in the metadata, which only the repository that builds a distribution knows.

pyproject.toml has all else. A workflow on GitHub, and on hosts that follow it, names its repository
in GITHUB_SERVER_URL, GITHUB_REPOSITORY and GITHUB_REF_NAME. Its distributions have links to it, and
a README whose relative links are absolute, since a package index shows no other files. A build
elsewhere has the README as it is, and no links: a fork must not send its users to another project.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
#: A link or a picture of Markdown, or an attribute of HTML, that is relative: what precedes it, and
#: its target.
RELATIVE = re.compile(r"""(!?\[[^][]*\]\(|\b(?:src|srcset|href)=")(?![a-z]+:|#)([^)"\s]+)""")
PICTURES = (".png", ".svg")


def repository() -> str | None:
    """Return the address of the repository that builds, or None if it is not known."""
    name = os.environ.get("GITHUB_REPOSITORY")
    return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}" if name else None


def with_absolute_links(text: str, address: str, revision: str) -> str:
    """Return a text of Markdown whose relative links lead to a revision of a repository."""

    def absolute(match: re.Match[str]) -> str:
        kind = "raw" if match[2].endswith(PICTURES) else "blob"
        return f"{match[1]}{address}/{kind}/{revision}/{match[2]}"

    return RELATIVE.sub(absolute, text)


def metadata() -> dict[str, object]:
    """Return the fields that pyproject.toml calls dynamic."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    address = repository()
    if address is not None:
        text = with_absolute_links(text, address, os.environ.get("GITHUB_REF_NAME", "main"))
    blob = f"{address}/blob/main"
    urls = {
        "Source": address,
        "Documentation": f"{blob}/docs/index.md",
        "Changelog": f"{blob}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    return {
        "long_description": text,
        "long_description_content_type": "text/markdown",
        "project_urls": urls if address else {},
    }


if __name__ == "__main__":
    setup(**metadata())
