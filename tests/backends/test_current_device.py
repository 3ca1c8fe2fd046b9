"""All work on arrays is done while their device is the current one, as CuPy requires.

With several GPUs, CuPy launches kernels on the current device, and refuses arrays of another
device, or warns. The arrays of the backend of this file, on NumPy, do the same.
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


class DeviceArray(np.ndarray):
    """An array on a device, which can only be used while this device is current."""

    index: int

    def __array_finalize__(self, other: Any) -> None:
        self.index = getattr(other, "index", current[-1])

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any
    ) -> Any:
        check(inputs, out)
        if out is not None:
            more["out"] = tuple([bare(x) for x in out])
        result = getattr(ufunc, method)(*[bare(x) for x in inputs], **more)
        return out[0] if out is not None else on_device(result) if result is not None else None

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = super().__array_function__(function, types, args, kwargs)
        if function not in (np.reshape, np.swapaxes) or not np.may_share_memory(
            bare(result), bare(args[0])
        ):
            check(args, kwargs.values())  # a view needs no kernel
        return on_device(result) if isinstance(result, np.generic) else result

    def __getitem__(self, key: Any) -> Any:
        if any(
            isinstance(part, np.ndarray) for part in (key if isinstance(key, tuple) else (key,))
        ):
            check([self], key)
        return on_device(super().__getitem__(key), self.index)

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
            elif isinstance(x, DeviceArray) and x.index != current[-1]:
                raise RuntimeError(
                    f"an array on {x.index} was used while {current[-1]} is the current device"
                )


def bare(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, DeviceArray) else x


def on_device(value: Any, index: int | None = None) -> Any:
    if isinstance(value, tuple):
        return tuple([on_device(part, index) for part in value])
    array = np.asarray(value).view(DeviceArray)
    array.index = current[-1] if index is None else index
    return array


@contextmanager
def making_current(index: int) -> Iterator[None]:
    current.append(index)
    try:
        yield
    finally:
        current.pop()


class TwoDevices(Backend):
    """Two devices, one of which is current."""

    library = __name__.partition(".")[0]
    array_type = DeviceArray
    devices = (0, 1)

    def __init__(self) -> None:
        self.xp = SimpleNamespace(**vars(array_api_compat.numpy), index_add=self.index_add)
        for (
            name
        ) in "zeros ones empty arange full linspace eye zeros_like ones_like asarray".split():
            setattr(self.xp, name, self._with_device(getattr(array_api_compat.numpy, name)))

    def _with_device(self, create: Callable[..., Any]) -> Callable[..., Any]:
        def created(*args: Any, device: Any = None, **options: Any) -> Any:
            # "cpu" for NumPy's scalars
            with making_current(device if isinstance(device, int) else current[-1]):
                check(args)
                return on_device(create(*args, **options))

        return created

    def device_context(self, index: int) -> Callable[[], AbstractContextManager[Any]]:
        return lambda: making_current(index)

    def to_host(self, x: DeviceArray) -> np.ndarray:
        return np.array(bare(x))

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return on_device(np.array(x), index)

    def index_add(self, x: DeviceArray, key: Any, values: DeviceArray) -> DeviceArray:
        check([x, values], key)
        np.add.at(bare(x), key, bare(values))
        return x


DeviceArray.device = property(lambda self: self.index)  # type: ignore[attr-defined]  # as in CuPy


@pytest.fixture
def _plug_in(install: Any) -> None:
    install("two", lambda: TwoDevices)


def test_stand_in_refuses_arrays_of_another_device() -> None:
    x = xgrad.ones(3, device="two:1")
    with pytest.raises(RuntimeError, match="an array on 1 was used while 0 is the current device"):
        x._data + x._data
    with making_current(1):
        assert (x._data + x._data).index == 1
    with pytest.raises(RuntimeError, match="an array on 1 was used"):
        x._data[...] = 0


@pytest.mark.parametrize("op", OP_CASES, ids=str)
def test_op_and_its_derivatives_run_on_current_device(op: OpCase) -> None:
    device = Device("two:1")
    for sample in op.samples:
        run_op(op, sample, device, "float64")
        if op.differentiable and not op.no_derivative:
            xs = tensors(sample, device, np.dtype("float64"), True)
            assert gradgradcheck(partial(op.fn, **options(sample, device)), xs)


def test_random_numbers_are_on_their_device() -> None:
    for draw in (xgrad.random.rand, xgrad.random.randn, xgrad.random.uniform):
        assert draw(5, device="two:1")._data.index == 1
    x = xgrad.ones(5, device="two:1", requires_grad=True)
    xgrad.nn.functional.dropout(x).sum().backward()


def test_loss_checks_its_target_on_its_device() -> None:
    logits, target = xgrad.ones((2, 3), device="two:1"), xgrad.asarray([0, 2], device="two:1")
    xgrad.nn.functional.cross_entropy(logits, target)


def test_gradients_accumulate_on_two_devices() -> None:
    x = xgrad.ones(3, device="two:1", requires_grad=True)
    x.backward(xgrad.ones(3, device="two:1"))
    x.backward(xgrad.ones(3, device="two:1"))
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]
    y = xgrad.ones(3, device="two", requires_grad=True)
    (x * 2 + (y * x.to("two")).to("two:1")).sum().backward()
    assert x.grad.tolist() == [5, 5, 5] and y.grad is not None and y.grad.tolist() == [1, 1, 1]


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda params: xgrad.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Adam": lambda params: xgrad.optim.Adam(params, amsgrad=True),
    "AdamW": lambda params: xgrad.optim.AdamW(params),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_optimizer_updates_parameters_on_two_devices(make: Callable[..., Any]) -> None:
    params = [xgrad.ones((2, 3), device=name, requires_grad=True) for name in ("two", "two:1")]
    optimizer = make(params)
    for _ in range(3):
        optimizer.zero_grad()
        first, second = params
        loss = (first * second.to("two")).sum() + (second * second).sum().to("two")
        loss.backward()
        loss = (first * second.to("two")).to("two:1").sum() + (second * second).sum()
        loss.backward()
        xgrad.nn.utils.clip_grad_norm_(params[1:], 1.0)
        optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    for p in params:
        p.grad = xgrad.ones_like(p)
    optimizer.step()
    params[0].data = params[0].data.to("two:1")
    params[0].grad = xgrad.ones_like(params[0])
    optimizer.step()
    assert {p._data.index for p in params} == {1}
