"""The page of promises names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = sorted(
    set(re.findall(r"`(tests/[^`]+\.py)::(\w+)`", (ROOT / "docs/promises.md").read_text()))
)


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_promise_has_its_test(file: str, name: str) -> None:
    functions = [
        node.name
        for node in ast.parse((ROOT / file).read_text()).body
        if isinstance(node, ast.FunctionDef)
    ]
    assert name in functions
