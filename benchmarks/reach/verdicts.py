"""Tests of the call paths of one subject with the arrays of one library."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path as File

from benchmarks.reach.path import Path, verdict
from benchmarks.worker import peer

SUBJECTS = tuple(sorted(file.stem for file in (File(__file__).parent / "paths").glob("s*.py")))


def paths_of(subject: str) -> list[Path]:
    """Return the call paths of a subject.

    SciPy must not have been imported in this process before, unless with SCIPY_ARRAY_API=1.
    """
    if "scipy" in sys.modules and os.environ.get("SCIPY_ARRAY_API") != "1":
        raise RuntimeError(
            "expected a process without SciPy, which was imported without SCIPY_ARRAY_API=1"
        )
    os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported, as it is by the paths
    paths: list[Path] = import_module(f"benchmarks.reach.paths.{subject}").PATHS
    return paths


class Verdicts:
    """Tests in the process of a peer."""

    def __init__(self, target: str, subject: str) -> None:
        self.paths, self.pullback = paths_of(subject), peer(target)

    def verdicts(self, names: Iterable[str] = ()) -> dict[str, str]:
        """Return the verdict on each path."""
        return {
            path.name: verdict(path, self.pullback)
            for path in self.paths
            if not names or path.name in names
        }

    def stops(self) -> dict[str, str]:
        """Return the paths without a gradient of xgrad, with the reasons."""
        return {path.name: path.stops for path in self.paths if path.stops}

    def needs(self) -> dict[str, str]:
        """Return the functions and array methods that each path uses."""
        from benchmarks.reach.needs import recorded  # only in the process of xgrad

        needs = {}
        for path in self.paths:
            with warnings.catch_warnings(), recorded() as used, suppress(Exception):
                warnings.simplefilter("ignore")
                self.pullback(path.call, path.inputs(), path.varied, [])
            needs[path.name] = ", ".join(sorted(used))
        return needs
