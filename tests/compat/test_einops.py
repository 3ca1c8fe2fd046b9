"""einops on tensors of the compatible namespace: values, gradients and classes."""

from __future__ import annotations

import copy
import pickle
import sys
from importlib import import_module
from typing import Any

import pytest

from tests.compat.compared import array, check_call, copy_state
from xgrad.compat import einops_layers
from xgrad.compat import torch as compat

einops = pytest.importorskip("einops")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("rearrange", ("b (h w) c -> c b w h", {"h": 2})),
        ("rearrange", ("b l c -> b c l", {})),
        ("repeat", ("b l c -> b l (c n)", {"n": 3})),
        ("reduce", ("b (l 2) c -> b c", "max", {})),
        ("reduce", ("b l c -> l", "mean", {})),
    ],
)
def test_functions_return_tensors_of_the_namespace(
    torch: Any, function: str, arguments: Any
) -> None:
    *patterns, options = arguments

    def call(library: Any, x: Any) -> Any:
        return getattr(einops, function)(x, *patterns, **options)

    check_call(torch, call, (array((2, 4, 3)),))


def test_stacking_packing_and_sums_of_products(torch: Any) -> None:
    def call(library: Any, x: Any, y: Any) -> Any:
        stacked = einops.rearrange([x, y], "n a b -> a n b")
        packed, shapes = einops.pack([x, y], "* b")
        return (
            stacked,
            packed,
            einops.unpack(packed, shapes, "* b")[1],
            einops.einsum(x, y, "a b, c b -> a c"),
        )

    check_call(torch, call, (array((3, 4)), array((3, 4), 1)))


def test_layers(torch: Any) -> None:
    theirs = import_module("einops.layers.torch")

    def model(library: Any, layers: Any) -> Any:
        return library.nn.Sequential(
            layers.Rearrange("b (h h1) c -> b h (h1 c)", h1=2),
            library.nn.Linear(6, 4),
            layers.Reduce("b h c -> b c", "mean"),
        ).double()

    nets = {torch: model(torch, theirs), compat: model(compat, einops_layers)}
    copy_state(nets[torch], nets[compat])
    assert list(nets[compat].state_dict()) == list(nets[torch].state_dict())
    assert "Rearrange('b (h h1) c -> b h (h1 c)', h1=2)" in repr(nets[compat])
    check_call(torch, lambda library, x: nets[library](x), (array((2, 4, 3)),))
    check_call(torch, lambda library, x: copy.deepcopy(nets[library])(x), (array((2, 4, 3)),))


def test_layers_are_pickled_by_name() -> None:
    layer = pickle.loads(pickle.dumps(einops_layers.Reduce("a b -> a", "sum")))
    assert layer(compat.ones(2, 3)).tolist() == [3, 3]


def test_missing_names_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="EinMix is not available, only Rearrange, Reduce"):
        einops_layers.EinMix  # noqa: B018
    einops_layers._layer.cache_clear()
    monkeypatch.setitem(sys.modules, "einops.layers", None)
    with pytest.raises(ModuleNotFoundError, match="pip install einops"):
        einops_layers.Rearrange  # noqa: B018
