"""Views of a parameter follow its updates in place, and other results do not, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor
from xgrad.core.views import base_of
from xgrad.parity.cases import OP_CASES
from xgrad.support.trees import leaves

VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "the values": lambda p: p.detach(),
    "data": lambda p: p.data.detach(),
    "part": lambda p: p.detach()[1:2, ...],
    "row": lambda p: p.detach()[1, ...],
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
}


@pytest.mark.parametrize("look", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("kind", [xgrad.optim.SGD, xgrad.optim.Adam])
def test_view_of_parameter_follows_updates(
    kind: type[xgrad.optim.Optimizer], look: Callable[[Tensor], Tensor], device: str
) -> None:
    p, q = (xgrad.ones((3, 4), device=device, requires_grad=True) for _ in range(2))
    held = p.detach()  # from before the parameters are packed
    optimizer: Any = kind([p, q], lr=0.1)  # type: ignore[call-arg]
    view = look(p)
    for _ in range(3):
        before = view.tolist()
        p.grad, q.grad = xgrad.ones_like(p), xgrad.ones_like(q)
        optimizer.step()
        assert view.tolist() == look(p).tolist() != before
        assert held.tolist() == p.tolist()


def test_parameters_stay_where_an_optimizer_packs_them(device: str) -> None:
    p = xgrad.ones((3, 4), device=device, requires_grad=True)
    optimizer = xgrad.optim.SGD([p], lr=0.1)
    array, held = p._data, p.detach()
    for _ in range(3):
        p.grad = xgrad.ones_like(p)
        optimizer.step()
        with xgrad.no_grad():
            p *= 2.0
        held[0, :] = 1.0
        assert p._data is held._data is array


@pytest.mark.parametrize(
    "turn", [lambda x: x.T, lambda x: xgrad.flip(x), lambda x: x[:, :1] + xgrad.zeros_like(x)]
)
def test_parameter_takes_a_value_in_its_own_memory(
    turn: Callable[[Tensor], Tensor], device: str
) -> None:
    values = xgrad.reshape(xgrad.arange(64.0 * 64, device=device), (64, 64))
    p = xgrad.asarray(values, copy=True).requires_grad_()
    optimizer = xgrad.optim.SGD([p], lr=0.1)
    held = p.detach()
    p.data = turn(p.data)
    assert p.tolist() == held.tolist() == turn(values).tolist()
    assert optimizer.flats()[0].segments[0]._data is p._data


@pytest.mark.parametrize(
    "op", [op for op in OP_CASES if op.name not in ("broadcast_arrays", "broadcast_to")], ids=str
)
def test_results_that_are_no_views_have_memory_of_their_own(op: Any, device: str) -> None:
    def converted(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(map(converted, x))
        return xgrad.asarray(x, device=device) if isinstance(x, np.ndarray) else x

    if device in op.unsupported:
        pytest.skip(op.unsupported[device])
    for sample in op.samples[:3]:
        inputs = converted(sample.inputs)
        with np.errstate(all="ignore"):
            results = op.fn(
                *inputs, **{key: converted(value) for key, value in sample.options.items()}
            )
        given = [x for _, x in leaves(inputs) if isinstance(x, Tensor)]
        for _, y in leaves(results):
            if isinstance(y, Tensor) and base_of(y) is None and all(y is not x for x in given):
                assert not any(
                    x.size and y.device.backend.shares_memory(x._data, y._data) for x in given
                ), sample
