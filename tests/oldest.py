"""Print the lowest versions that pyproject.toml allows, one ``name==version`` a line.

``python tests/oldest.py special cli`` includes two extras; the dependencies of xgrad itself are
always included. pip installs the result: ``pip install --editable . $(python tests/oldest.py
special cli test)``. It needs only the standard library.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(\[(?P<extras>[^]]*)\])?\s*(?P<bounds>[^;]*)")
BOUND = re.compile(r">=\s*(\d+(\.\d+)*)")


def lowest(project: Mapping[str, Any], extras: Sequence[str] = ()) -> dict[str, str]:
    """Return the lowest version of each package that a project requires with some extras.

    The project is a table of pyproject.toml. If a package is required more than once, its highest
    bound counts.

    Examples
    --------
    >>> project = {"name": "us", "dependencies": ["numpy>=2.0"]}
    >>> extras = {"test": ["us[fast]", "scipy>=1.17"], "fast": ["scipy>=1.9"]}
    >>> project["optional-dependencies"] = extras
    >>> lowest(project)
    {'numpy': '2.0'}
    >>> lowest(project, ["test"])
    {'numpy': '2.0', 'scipy': '1.17'}
    """
    versions: dict[str, str] = {}
    for name, version in _bounds(project, extras):
        versions[name] = max(
            versions.get(name, version), version, key=lambda text: [*map(int, text.split("."))]
        )
    return versions


def _bounds(project: Mapping[str, Any], extras: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the lower bound of each requirement.

    An extra may require other extras; their requirements are included.
    """
    for text in chain(
        project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)
    ):
        match = REQUIREMENT.fullmatch(text)
        if match and match["name"] == project["name"]:
            yield from _bounds(project, re.findall(r"[\w-]+", match["extras"]))
        elif match and (bound := BOUND.search(match["bounds"])):
            yield match["name"], bound[1]
        else:
            raise ValueError(
                f"expected a requirement with a lower bound and no marker, got {text!r}"
            )


if __name__ == "__main__":
    table = tomllib.loads(
        (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    print(
        *(f"{name}=={version}" for name, version in lowest(table, sys.argv[1:]).items()), sep="\n"
    )
