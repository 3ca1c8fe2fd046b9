"""Optimizers update in place only memory that nothing else refers to: `Backend.buffer_refcount` on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xgrad
from xgrad import Tensor

VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "the values": lambda p: p.detach(),
    "data": lambda p: p.data.detach(),
    "part": lambda p: p.detach()[1:2, ...],
    "row": lambda p: p.detach()[1, ...],
    "element": lambda p: p.detach()[1, 2],
    "all": lambda p: p.detach()[...],
    "new axis": lambda p: p.detach()[None, ...],
    "expanded": lambda p: xgrad.expand_dims(p.detach(), axis=0),
    "squeezed": lambda p: xgrad.squeeze(p.detach()[None, ...], axis=0),
    "transposed": lambda p: p.detach().mT,
    "permuted": lambda p: xgrad.permute_dims(p.detach(), (1, 0)),
    "reshaped": lambda p: p.detach().mT.reshape(-1),
    "broadcast": lambda p: xgrad.broadcast_to(p.detach(), (2, 3, 4)),
    "unstacked": lambda p: xgrad.unstack(p.detach())[0],
    "of a view": lambda p: p.detach()[:2, ...].mT.mT[1, ...],
    "NumPy": lambda p: p.detach().numpy(),
    "NumPy of a view": lambda p: p.detach()[0, ...].numpy(),
}


@pytest.mark.parametrize("look", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("kind", [xgrad.optim.SGD, xgrad.optim.Adam])
def test_optimizer_does_not_change_views_of_parameter(
    kind: type[xgrad.optim.Optimizer], look: Callable[[Tensor], Any], device: str
) -> None:
    p, q = (xgrad.ones((3, 4), device=device, requires_grad=True) for _ in range(2))
    optimizer: Any = kind([p, q], lr=0.1)  # type: ignore[call-arg]
    for steps in range(3):  # the first packs the parameters
        before = p.tolist()
        view = look(p)
        values = view.tolist()
        p.grad, q.grad = xgrad.ones_like(p), xgrad.ones_like(q)
        optimizer.step()
        assert view.tolist() == values
        assert p.tolist() != before, steps


def test_optimizer_updates_parameter_without_views_in_place(device: str) -> None:
    p = xgrad.ones((3, 4), device=device, requires_grad=True)
    optimizer = xgrad.optim.SGD([p], lr=0.1)
    if xgrad.Device(device).backend.buffer_refcount(p._data) is None:
        pytest.skip(f"{device} has no reference counts")
    arrays = []
    for _ in range(3):
        p.grad = xgrad.ones_like(p)
        optimizer.step()
        arrays.append(id(p._data))
    assert arrays[0] == arrays[1] == arrays[2]
    p.detach().numpy()  # a view, dropped at once
    p.grad = xgrad.ones_like(p)
    optimizer.step()
    assert id(p._data) == arrays[0]
