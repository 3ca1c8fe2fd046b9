"""Write ``xgrad.egg-info`` to a checkout that is not installed.

Python finds the backends by it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(root: Path = ROOT) -> None:
    """Write name, version and entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    folder = root / "xgrad.egg-info"
    folder.mkdir(exist_ok=True)
    version = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (folder / "PKG-INFO").write_text(version, "utf-8")
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [
        line
        for group, names in groups.items()
        for line in (f"[{group}]", *map(" = ".join, names.items()), "")
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
