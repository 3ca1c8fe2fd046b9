"""Check that a tag names the version of the source: ``python tests/release.py v0.2.0``.

The version stands in pyproject.toml and CITATION.cff, and the changelog has a section of it. The
script needs only the standard library.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each file states, by the name of the file."""
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    stated = re.search(r"^version: (\S+)$", citation, re.MULTILINE)
    newest = re.search(r"^## (\d\S*)", changelog, re.MULTILINE)
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"][
            "version"
        ],
        "CITATION.cff": stated[1] if stated else "none",
        "CHANGELOG.md": newest[1] if newest else "none",
    }


def main(tag: str) -> str | None:
    """Return what is wrong with the tag, or None."""
    wrong = [
        f"{file} has {version}" for file, version in versions().items() if f"v{version}" != tag
    ]
    return f"the tag {tag} must be 'v' and the version, but {', '.join(wrong)}" if wrong else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
