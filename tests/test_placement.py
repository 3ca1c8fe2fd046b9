"""The placement of a tensor is the device and dtype of its array, after every op and update.

Each access to a placement is checked against the array.
"""

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

_placement, _data = vars(Tensor)["_placement"], vars(Tensor)["_data"]


def check(placement: Placement, raw: Any) -> Placement:
    if raw is not None:  # of a tensor without memory yet
        assert placement is placement.device.placements[raw.dtype], (str(placement), raw.dtype)
        assert raw.device == placement.device.native, (str(placement), raw.device)
    return placement


@pytest.fixture(autouse=True)
def _each_access_checks_the_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    def assign(x: Tensor, placement: Placement) -> None:
        _placement.__set__(x, check(placement, _data.__get__(x)))

    monkeypatch.setattr(
        Tensor,
        "_placement",
        property(lambda x: check(_placement.__get__(x), _data.__get__(x)), assign),
    )


def check_all(*tensors: Any) -> None:
    for x in tensors:
        assert (
            x._placement.device is x.device
            and x.device.backend.numpy_dtype(x._placement.dtype) == x.dtype
        )
        if x._leaf is not None:
            assert x._leaf.placement is x._placement
        if x.is_leaf and x.grad is not None:
            check_all(x.grad)


def test_wrong_placement_fails_the_check() -> None:
    x = xgrad.ones(2)
    _data.__set__(x, np.ones(2))
    with pytest.raises(AssertionError, match="float32 on cpu"):
        x + x


def test_placement_of_a_device_and_dtype_is_one_object(device: str) -> None:
    x, y, z = (
        xgrad.ones(2, dtype=dtype, device=device) for dtype in ("float32", "float32", "float64")
    )
    assert (
        x._placement
        is y._placement
        is (x + y)._placement
        is (x * 2)._placement
        is xgrad.exp(x)._placement
    )
    assert x._placement is not z._placement is (x + z)._placement is (z + x)._placement
    assert (x._placement.device, str(x._placement)) == (
        xgrad.Device(device),
        f"{x._data.dtype} on {device}",
    )


def test_placement_of_ops_and_gradients() -> None:
    with quiet():
        for op in OP_CASES:
            for dtype in ("float32", "float64") * 2:  # the second time by the fast path
                run_op(op, op.samples[0], xgrad.Device("cpu"), dtype)


def test_placement_of_replaced_values(device: str) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True, device=device)
    (x * x).sum().backward()
    x.data = np.ones(2)
    check_all(x)
    assert x.dtype == x.grad.dtype == xgrad.float64
    x.data = xgrad.ones(2, device="cpu")
    check_all(x)
    view = x.data
    view += 1
    view[0] = 3
    check_all(x, view)
    x.data = xgrad.ones(2, dtype=xgrad.float64, device=device)
    view *= 2
    check_all(x, view)
    with xgrad.no_grad():
        x -= 1
        x[0] = 5
    y = xgrad.zeros(3, dtype=xgrad.int64, device=device)
    y[0] = 1
    y += 1
    z = x * 2
    z[0] = 1
    check_all(
        x,
        y,
        z,
        x.detach(),
        *(c(x) for c in (copy.copy, copy.deepcopy)),
        pickle.loads(pickle.dumps(x)),
    )
    check_all(
        x.to("cpu"),
        x.to(xgrad.float32),
        x.to("cpu", dtype=xgrad.float32),
        x.cpu(),
        xgrad.asarray(x),
    )
    check_all(
        *xgrad.unique_inverse(y.cpu()),
        *xgrad.linalg.slogdet(xgrad.eye(2, device=device, requires_grad=True)),
    )


class ChangingState(optim.Optimizer):
    """An optimizer with an array in its state that changes its dtype."""

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
    ChangingState,
], ids=["sgd", "adam", "changing state"])  # fmt: skip
def test_placement_of_moved_modules_and_optimizers(make: Any, device: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).to(device)
    optimizer = make(list(model.parameters()))
    for dtype in (xgrad.float32, xgrad.float64, xgrad.float32):
        model.to(dtype=dtype)
        for _ in range(2):
            optimizer.zero_grad()
            (model(xgrad.ones((2, 3), dtype=dtype, device=device)) ** 2).mean().backward()
            optimizer.step()
            check_all(*model.parameters())
            for flat in optimizer.flats():
                check_all(
                    flat.buffer,
                    flat.gradients.buffer,
                    *flat.segments,
                    *flat.gradients.views,
                    *flat.arrays.values(),
                )
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    model.load_state_dict(model.to("cpu").state_dict())
    check_all(*model.parameters(), *pickle.loads(pickle.dumps(model)).parameters())


def test_placement_after_replays() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = optim.Adam(list(model.parameters()), lr=0.1)
    state = xgrad.zeros(2, dtype=xgrad.int64)

    @xgrad.capture
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        state.data = state + 0.5
        return loss

    for _ in range(6):
        state.data = xgrad.zeros(2, dtype=xgrad.int64)
        check_all(step(xgrad.ones((2, 3))), state, *model.parameters())
        assert (state.dtype, state.tolist()) == (xgrad.float32, [0.5, 0.5])
    assert step.recordings == 1 and step.refusal is None


def test_fast_path_caches_of_traces_and_eager_calls_are_separate() -> None:
    used, eager = [], xgrad.Device("cpu").xp

    def squared(xp: Any, x: Any, /) -> Any:
        used.append(xp)
        return xp.square(x)

    op = make_callable(Function.of("squared", squared, (lambda g: g,)), "", __name__)
    cache = inspect.getclosurevars(op).nonlocals["cache"]
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
    traced = [placement for placement in cache if placement.device is not known.device]
    assert all(placement.device.real is known.device for placement in traced)
    assert [placement for placement in cache if placement not in traced] == [
        known._placement,
        new._placement,
    ]


def test_placement_in_transforms_and_functional_calls() -> None:
    x = xgrad.ones(3, dtype=xgrad.float64)
    check_all(*xgrad.value_and_grad(lambda x: (x**3).sum())(x), xgrad.jacobian(lambda x: x**2)(x))
    (first,) = xgrad.autograd.grad((x.requires_grad_() ** 3).sum(), x, create_graph=True)
    check_all(first, *xgrad.autograd.grad(first.sum(), x))
    layer = nn.Linear(3, 2)
    weight = xgrad.ones((2, 3), dtype=xgrad.float64, requires_grad=True)
    check_all(
        out := nn.utils.functional_call(layer, {"weight": weight}, xgrad.ones_like(weight)[0])
    )
    out.sum().backward()
    check_all(weight, layer.bias)
