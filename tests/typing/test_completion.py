"""What editors offer behind ``xgrad.``: the public names, with their documentation."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import xgrad
from tests.typing.language_server import LanguageServer
from tests.typing.test_typing import MODULES, ROOT


def test_dir_lists_public_names() -> None:
    for module in map(import_module, MODULES):
        assert set(dir(module)) == set(module.__all__), module


def test_language_server_offers_public_names(tmp_path: Path) -> None:
    if find_spec("pyright") is None:
        pytest.skip("needs pyright: pip install 'xgrad[check]'")
    with LanguageServer(tmp_path, [ROOT, ROOT / "backends"]) as server:
        for module in MODULES:
            offered = server.completions(module)
            names = import_module(module).__all__
            assert {n for n in offered if not n.startswith("_")} == {
                n for n in names if not n.startswith("_")
            }, module
            if module == "xgrad":
                exp = server.request("completionItem/resolve", **offered["exp"])
        shown = exp["documentation"]["value"]
        assert "x: ArrayLike" in shown and "-> Tensor" in shown
        assert "Return e to the power of each element." in shown


@pytest.mark.parametrize("name", ["exp", "sum", "where", "nn.functional.linear", "special.erf"])
def test_help_shows_the_signature_and_the_rule_of_an_op(name: str) -> None:
    op = xgrad
    for part in name.split("."):
        op = getattr(op, part)
    assert next(iter(inspect.signature(op).parameters)) in ("x", "condition", "input")
    assert (inspect.getdoc(op) or "").startswith("Return")
    assert "xp: Any" in inspect.getsource(op)
