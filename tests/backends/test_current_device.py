"""That whatever is done with arrays is done while their device is the current one, as CuPy wants it of several GPUs.

CuPy launches a kernel on the current device, and refuses, or warns of, arrays that are on another. The arrays here are
NumPy's, and refuse just so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest

import xgrad
from xgrad.backend import Backend
from xgrad.backend.device import Device
from xgrad.backend.registry import backend_class, entry_points, open_backend
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase
from xgrad.parity.run_op import options, run_op, tensors
from xgrad.testing import gradgradcheck

pytestmark = [
    pytest.mark.usefixtures("_plug_in"),
    pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Degrees of freedom <= 0.*:RuntimeWarning"),
]

current = [0]


class Placed(np.ndarray):
    """An array on a device, which can only be used while that is the current one."""

    place: int

    def __array_finalize__(self, other: Any) -> None:
        self.place = getattr(other, "place", current[-1])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any) -> Any:
        check(inputs, out)
        if out is not None:
            more["out"] = tuple([bare(x) for x in out])
        made = getattr(ufunc, method)(*[bare(x) for x in inputs], **more)
        return out[0] if out is not None else placed(made) if made is not None else None

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        made = super().__array_function__(function, types, args, kwargs)
        if function not in (np.reshape, np.swapaxes) or not np.may_share_memory(bare(made), bare(args[0])):
            check(args, kwargs.values())  # but a view can be made anywhere
        return placed(made) if isinstance(made, np.generic) else made

    def __getitem__(self, key: Any) -> Any:
        if any(isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))):
            check([self], key)
        return placed(super().__getitem__(key), self.place)

    def __setitem__(self, key: Any, value: Any) -> None:
        check([self, value], key)
        super().__setitem__(key, value)

    def astype(self, *args: Any, **options: Any) -> Any:
        check([self])
        return super().astype(*args, **options)


def check(*groups: Any) -> None:
    """Refuse arrays that are not on the current device."""
    for group in groups:
        for x in group if isinstance(group, (tuple, list, type({}.values()))) else [group]:
            if isinstance(x, (tuple, list)):
                check(x)
            elif isinstance(x, Placed) and x.place != current[-1]:
                raise RuntimeError(f"an array on {x.place} was used while {current[-1]} is the current device")


def bare(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Placed) else x


def placed(value: Any, place: int | None = None) -> Any:
    if isinstance(value, tuple):
        return tuple([placed(part, place) for part in value])
    made = np.asarray(value).view(Placed)
    made.place = current[-1] if place is None else place
    return made


@contextmanager
def on(place: int) -> Iterator[None]:
    current.append(place)
    try:
        yield
    finally:
        current.pop()


class PlacedBackend(Backend):
    """Two devices, of which one is the current one."""

    library = __name__.partition(".")[0]
    array_type = Placed

    def __init__(self) -> None:
        self.xp = SimpleNamespace(**vars(array_api_compat.numpy), index_add=self.index_add)
        for name in "zeros ones empty arange full linspace eye zeros_like ones_like asarray".split():
            setattr(self.xp, name, self._made(getattr(array_api_compat.numpy, name)))

    def _made(self, create: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, device: Any = None, **options: Any) -> Any:
            with on(device if isinstance(device, int) else current[-1]):  # NumPy's scalars say "cpu"
                check(args)
                return placed(create(*args, **options))

        return made

    def count(self) -> int:
        return 2

    def native_device(self, index: int) -> int:
        return index

    def index_of(self, x: Placed) -> int:
        return x.place

    def device_context(self, index: int) -> Callable[[], AbstractContextManager[Any]]:
        return lambda: on(index)

    def to_host(self, x: Placed) -> np.ndarray:
        return np.array(bare(x))

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return placed(np.array(x), index)

    def index_add(self, x: Placed, key: Any, values: Placed) -> Placed:
        check([x, values], key)
        np.add.at(bare(x), key, bare(values))
        return x


Placed.device = property(lambda self: self.place)  # type: ignore[attr-defined]  # as CuPy's arrays have it


@pytest.fixture
def _plug_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(entry_points(), "placed", SimpleNamespace(load=lambda: PlacedBackend))
    monkeypatch.setattr(Device, "_known", dict(Device._known))
    yield
    for cached in (backend_class, open_backend):
        cached.cache_clear()


def test_the_stand_in_refuses() -> None:
    x = xgrad.ones(3, device="placed:1")
    with pytest.raises(RuntimeError, match="an array on 1 was used while 0 is the current device"):
        x._data + x._data
    with on(1):
        assert (x._data + x._data).place == 1
    with pytest.raises(RuntimeError, match="an array on 1 was used"):
        x._data[...] = 0


@pytest.mark.parametrize("op", OP_CASES, ids=str)
def test_ops_and_their_derivatives(op: OpCase) -> None:
    device = Device("placed:1")
    for sample in op.samples:
        run_op(op, sample, device, "float64")
        if op.differentiable and not op.no_derivative:
            xs = tensors(sample, device, np.dtype("float64"), True)
            assert gradgradcheck(partial(op.fn, **options(sample, device)), xs)


def test_random_numbers() -> None:
    for draw in (xgrad.random.rand, xgrad.random.randn, xgrad.random.uniform):
        assert draw(5, device="placed:1")._data.place == 1
    x = xgrad.ones(5, device="placed:1", requires_grad=True)
    xgrad.nn.functional.dropout(x).sum().backward()


def test_a_loss_looks_at_its_target() -> None:
    logits, target = xgrad.ones((2, 3), device="placed:1"), xgrad.asarray([0, 2], device="placed:1")
    xgrad.nn.functional.cross_entropy(logits, target)


def test_a_gradient_of_a_leaf_alone_and_of_two_devices() -> None:
    x = xgrad.ones(3, device="placed:1", requires_grad=True)
    x.backward(xgrad.ones(3, device="placed:1"))
    x.backward(xgrad.ones(3, device="placed:1"))
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]
    y = xgrad.ones(3, device="placed", requires_grad=True)
    (x * 2 + (y * x.to("placed")).to("placed:1")).sum().backward()
    assert x.grad.tolist() == [5, 5, 5] and y.grad is not None and y.grad.tolist() == [1, 1, 1]


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda params: xgrad.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Adam": lambda params: xgrad.optim.Adam(params, amsgrad=True),
    "AdamW": lambda params: xgrad.optim.AdamW(params),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_optimizers_on_two_devices(make: Callable[..., Any]) -> None:
    params = [xgrad.ones((2, 3), device=name, requires_grad=True) for name in ("placed", "placed:1")]
    optimizer = make(params)
    for _ in range(3):
        optimizer.zero_grad()
        first, second = params
        loss = (first * second.to("placed")).sum() + (second * second).sum().to("placed")
        loss.backward()
        loss = (first * second.to("placed")).to("placed:1").sum() + (second * second).sum()
        loss.backward()
        xgrad.nn.utils.clip_grad_norm_(params[1:], 1.0)
        optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    for p in params:
        p.grad = xgrad.ones_like(p)
    optimizer.step()
    params[0].data = params[0].data.to("placed:1")
    params[0].grad = xgrad.ones_like(params[0])
    optimizer.step()
    assert {p._data.place for p in params} == {1}
