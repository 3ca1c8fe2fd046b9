"""The place of a tensor, which stands for the device and dtype of its array, is right whatever happens to the array."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor, nn, optim
from xgrad.backend.device import Placement
from xgrad.core.function import Function
from xgrad.ops.declare import make_callable
from xgrad.parity.cases import OP_CASES
from xgrad.parity.run_op import quiet, run_op

_place, _data = vars(Tensor)["_placement"], vars(Tensor)["_data"]


def check(placement: Placement, raw: Any) -> Placement:
    if raw is not None:  # of a tensor that is to hold memory later
        assert placement is placement.device.placements[raw.dtype], (str(placement), raw.dtype)
        assert raw.device == placement.device.native, (str(placement), raw.device)
    return placement


@pytest.fixture(autouse=True)
def _whoever_asks_for_a_place_checks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(x: Tensor, placement: Placement) -> None:
        _place.__set__(x, check(placement, _data.__get__(x)))

    monkeypatch.setattr(Tensor, "_placement", property(lambda x: check(_place.__get__(x), _data.__get__(x)), assign))


def agrees(*tensors: Any) -> None:
    for x in tensors:
        assert x._placement.device is x.device and x.device.backend.numpy_dtype(x._placement.dtype) == x.dtype
        if x._leaf is not None:
            assert x._leaf.placement is x._placement
        if x.is_leaf and x.grad is not None:
            agrees(x.grad)


def test_a_wrong_place_would_be_noticed() -> None:
    x = xgrad.ones(2)
    _data.__set__(x, np.ones(2))
    with pytest.raises(AssertionError, match="float32 on cpu"):
        x + x


def test_there_is_one_place_of_each_device_and_dtype(device: str) -> None:
    x, y, z = (xgrad.ones(2, dtype=dtype, device=device) for dtype in ("float32", "float32", "float64"))
    assert x._placement is y._placement is (x + y)._placement is (x * 2)._placement is xgrad.exp(x)._placement
    assert x._placement is not z._placement is (x + z)._placement is (z + x)._placement
    assert (x._placement.device, str(x._placement)) == (xgrad.Device(device), f"{x._data.dtype} on {device}")


def test_ops_and_their_gradients() -> None:
    with quiet():
        for op in OP_CASES:
            for dtype in ("float32", "float64") * 2:  # the second time by the short way
                run_op(op, op.samples[0], xgrad.Device("cpu"), dtype)


def test_values_that_are_replaced(device: str) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True, device=device)
    (x * x).sum().backward()
    x.data = np.ones(2)
    agrees(x)
    assert x.dtype == x.grad.dtype == xgrad.float64
    x.data = xgrad.ones(2, device="cpu")
    agrees(x)
    view = x.data
    view += 1
    view[0] = 3
    agrees(x, view)
    x.data = xgrad.ones(2, dtype=xgrad.float64, device=device)
    view *= 2
    agrees(x, view)
    with xgrad.no_grad():
        x -= 1
        x[0] = 5
    y = xgrad.zeros(3, dtype=xgrad.int64, device=device)
    y[0] = 1
    y += 1
    z = x * 2
    z[0] = 1
    agrees(x, y, z, x.detach(), *(c(x) for c in (copy.copy, copy.deepcopy)), pickle.loads(pickle.dumps(x)))
    agrees(x.to("cpu"), x.to(xgrad.float32), x.to("cpu", dtype=xgrad.float32), x.cpu(), xgrad.asarray(x))
    agrees(*xgrad.unique_inverse(y.cpu()), *xgrad.linalg.slogdet(xgrad.eye(2, device=device, requires_grad=True)))


class Remembers(optim.Optimizer):
    """It remembers an array, at times of another dtype than the parameters'."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})
        self.wide = False

    def update(self, xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
        state["sum"] = xp.astype(g, xp.float64 if self.wide else xp.float32)
        self.wide = True
        return p - 0.1 * g


@pytest.mark.parametrize("make", [
    lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    lambda params: optim.Adam(params, lr=0.1),
    Remembers,
], ids=["sgd", "adam", "remembers"])  # fmt: skip
def test_modules_and_optimizers_that_move(make: Any, device: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).to(device)
    optimizer = make(list(model.parameters()))
    for dtype in (xgrad.float32, xgrad.float64, xgrad.float32):
        model.to(dtype=dtype)
        for _ in range(2):
            optimizer.zero_grad()
            (model(xgrad.ones((2, 3), dtype=dtype, device=device)) ** 2).mean().backward()
            optimizer.step()
            agrees(*model.parameters())
            laid = [flat for laid in optimizer._laid.values() for flat in laid.flats]
            for flat in laid:
                agrees(flat.buffer, flat.gradients.buffer, *flat.segments, *flat.gradients.views, *flat.arrays.values())
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    model.load_state_dict(model.to("cpu").state_dict())
    agrees(*model.parameters(), *pickle.loads(pickle.dumps(model)).parameters())


def test_steps_that_are_replayed() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = optim.Adam(list(model.parameters()), lr=0.1)
    kept = xgrad.zeros(2, dtype=xgrad.int64)

    @xgrad.capture
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        kept.data = kept + 0.5
        return loss

    for _ in range(6):
        kept.data = xgrad.zeros(2, dtype=xgrad.int64)
        agrees(step(xgrad.ones((2, 3))), kept, *model.parameters())
        assert (kept.dtype, kept.tolist()) == (xgrad.float32, [0.5, 0.5])
    assert step.recordings == 1 and step.refusal is None


def test_a_trace_and_eager_calls_keep_their_namespaces_apart() -> None:
    used, eager = [], xgrad.Device("cpu").xp

    def squared(xp: Any, x: Any, /) -> Any:
        used.append(xp)
        return xp.square(x)

    op = make_callable(Function.of("squared", squared, (lambda g: g,)), "", __name__)
    ways = inspect.getclosurevars(op).nonlocals["ways"]
    captured = xgrad.capture(lambda x: op(op(x)))
    known, new = xgrad.ones(2), xgrad.ones(2, dtype=xgrad.float64)
    op(known)
    for x in (known, new):
        used.clear()
        for n in range(3):
            assert captured(xgrad.full_like(x, n)).tolist() == [n**4] * 2
        assert len(used) == 2 and eager not in used
    used.clear()
    op(known), op(new), op(new)
    assert used == [eager] * 3
    traced = [placement for placement in ways if placement.device is not known.device]
    assert all(placement.device.real is known.device for placement in traced)
    assert [placement for placement in ways if placement not in traced] == [known._placement, new._placement]


def test_transforms_and_calls_with_other_parameters() -> None:
    x = xgrad.ones(3, dtype=xgrad.float64)
    agrees(*xgrad.value_and_grad(lambda x: (x**3).sum())(x), xgrad.jacobian(lambda x: x**2)(x))
    (first,) = xgrad.autograd.grad((x.requires_grad_() ** 3).sum(), x, create_graph=True)
    agrees(first, *xgrad.autograd.grad(first.sum(), x))
    layer = nn.Linear(3, 2)
    weight = xgrad.ones((2, 3), dtype=xgrad.float64, requires_grad=True)
    agrees(out := nn.utils.functional_call(layer, {"weight": weight}, xgrad.ones_like(weight)[0]))
    out.sum().backward()
    agrees(weight, layer.bias)
