"""`memory_held`, compared with known sizes, and errors of used-up memory, which report it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import function, leaf
from xgrad import Tensor, nn, optim
from xgrad.core.graph import Leaf, Node
from xgrad.optim.flat import FlatParameters


def test_bytes_are_attributed_once_to_what_holds_them() -> None:
    gc.collect()
    before = xgrad.memory_held()
    net, x = nn.Linear(30, 20), xgrad.ones((50, 30))
    optimizer = optim.Adam(net.parameters())
    for _ in range(2):  # the first step packs parameters
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
    view = x[:, :3]
    h = net(view.tile((1, 10)))
    y = xgrad.exp(h)
    del h
    after = xgrad.memory_held()
    grown = {kind: after[kind] - before.get(kind, 0) for kind in after}
    parameters = 4 * (30 * 20 + 20)
    wanted = {"parameters": parameters, "gradients": parameters, "optimizer state": 2 * parameters}
    wanted |= {
        "saved by linear": 4 * 50 * 30,
        "saved by exp": 4 * 50 * 20,
        "other tensors": 4 * 50 * 30,
    }
    assert {kind: size for kind, size in grown.items() if size} == wanted
    del y, view


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_buffers_of_others_count(kind) -> None:
    before = xgrad.memory_held().get("other tensors", 0)
    tensor = xgrad.from_dlpack(np.frombuffer(kind(bytearray(4000)), np.float32))
    assert xgrad.memory_held()["other tensors"] - before == 4000 == 4 * tensor.size


def test_incomplete_objects_do_not_count() -> None:
    """Errors of memory are raised within constructors, whose objects the traceback holds."""
    incomplete = [object.__new__(kind) for kind in (Tensor, Leaf, Node, FlatParameters)]
    assert sum(xgrad.memory_held().values()) >= 0 and incomplete


def test_error_of_memory_says_what_was_asked_for_and_what_is_held(device: str) -> None:
    if device.startswith("torch"):
        pytest.skip("PyTorch raises RuntimeError")
    x = leaf(range(100), dtype=xgrad.float32, device=device)
    wide = xgrad.broadcast_to(x[:, None], (100, 10**13))
    with pytest.raises(MemoryError) as caught:
        wide * 2
    text = "\n".join([str(caught.value), *caught.value.__notes__])
    for part in (
        "(100, 10000000000000)",
        "in multiply, applied to x1 of",
        f"held on {device}: ",
        " parameters",
    ):
        assert part in text
    with pytest.raises(MemoryError) as caught:
        xgrad.ones((10**8, 10**8), device=device)
    assert any("held on" in note for note in caught.value.__notes__)


def test_error_of_memory_in_the_backward_pass_says_what_is_held() -> None:
    def backward(xp: Any, g: Any) -> Any:
        raise MemoryError("Unable to allocate 1 TiB")

    x = xgrad.ones(1000, requires_grad=True)
    y = function("large", lambda xp, x: x + 1, backward)(xgrad.exp(x))
    with pytest.raises(MemoryError) as caught:
        y.sum().backward()
    assert (
        sum("held on cpu" in note and "saved by exp" in note for note in caught.value.__notes__)
        == 1
    )
