"""Import lines of PyTorch programs, rewritten to `xgrad.compat.torch`."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

COMPAT = "xgrad.compat.torch"
_IMPORT = re.compile(r"^(\s*)import torch((?:\.\w+)*)( as \w+)?\s*$")
_FROM = re.compile(r"^(\s*)from torch((?:\.\w+)*) import ")
_EINOPS = re.compile(r"^(\s*)from einops\.layers\.torch import ")


def rewritten(source: str) -> tuple[str, int]:
    """Return a source with its imports of PyTorch rewritten, and the number of changed lines."""
    lines, changed = source.splitlines(keepends=True), 0
    for i, line in enumerate(lines):
        new = _rewritten_line(line)
        changed += new != line
        lines[i] = new
    return "".join(lines), changed


def _rewritten_line(line: str) -> str:
    if match := _IMPORT.match(line):
        indent, submodule, name = match.groups()
        # `import torch.optim` binds `torch`, which has its submodules as attributes
        target = f"{COMPAT}{submodule}{name}" if name else f"{COMPAT} as torch"
        return f"{indent}import {target}\n"
    line = _EINOPS.sub(r"\1from xgrad.compat.einops_layers import ", line)
    return _FROM.sub(rf"\1from {COMPAT}\2 import ", line)


class Rewriter(importlib.machinery.SourceFileLoader):
    """Loads a module of a program with rewritten imports, and counts the changed lines."""

    changed_lines = 0

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:
        source, changed = rewritten(importlib.util.decode_source(data))
        Rewriter.changed_lines += changed
        code: CodeType = compile(source, path, "exec", dont_inherit=True, optimize=_optimize)
        return code

    def get_code(self, fullname: str) -> CodeType:
        # without the cache of compiled files, which the originals share
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class ProgramFinder:
    """Finds the modules of a program's folder, and loads them with `Rewriter`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        """Return the spec of a module in the folder, None for other modules."""
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            return None
        if not Path(spec.origin).is_relative_to(self.folder):
            return None
        spec.loader = Rewriter(name, spec.origin)
        return spec


def find_modules_of(folder: Path) -> None:
    """Load modules from a program's folder from now on, with rewritten imports."""
    sys.meta_path.insert(0, ProgramFinder(folder))  # type: ignore[arg-type]
