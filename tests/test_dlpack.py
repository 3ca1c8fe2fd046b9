"""DLPack: memory shared both ways with NumPy, PyTorch and JAX, and left alone; refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor


def aligned(n: int) -> np.ndarray:
    """Return float32 numbers at an address that JAX can use, which takes multiples of 64 alone."""
    raw = np.zeros(4 * n + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + 4 * n].view(np.float32)
    array[...] = np.arange(n)
    return array


def address(x: Any) -> int:
    return int(x._data.__array_interface__["data"][0])


#: Before, NumPy gives no memory away that is read-only, and takes all memory as read-only.
SIGNALS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Old:
    """An array whose library knows DLPack from before 1.0, which cannot say that memory is read-only."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        if options.pop("max_version", None):
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.x.__dlpack__(stream=options.get("stream"))

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


# From others


def test_numpy_memory_is_taken_as_it_is() -> None:
    theirs = np.arange(6.0).reshape(2, 3)[:, ::2]
    x = xgrad.from_dlpack(theirs)
    assert address(x) == theirs.__array_interface__["data"][0]
    assert (x.shape, x.dtype, str(x.device), x.tolist()) == ((2, 2), xgrad.float64, "cpu", [[0, 2], [3, 5]])


def test_torch_memory_is_taken_as_it_is(torch: Any) -> None:
    theirs = torch.arange(4.0)
    for x in (xgrad.from_dlpack(theirs), xgrad.from_dlpack(theirs, device="cpu", copy=False)):
        assert (address(x), str(x.device)) == (theirs.data_ptr(), "cpu")
    x = xgrad.from_dlpack(theirs, device="torch", copy=False)
    assert (x._data.data_ptr(), str(x.device)) == (theirs.data_ptr(), "torch")
    x = xgrad.from_dlpack(np.arange(3.0), device="torch", copy=False)
    assert (str(x.device), x.tolist()) == ("torch", [0, 1, 2])
    with pytest.raises(BufferError, match=r"requires? grad"):
        xgrad.from_dlpack(theirs.requires_grad_())


def test_jax_memory_is_taken_as_it_is(jax: Any) -> None:
    theirs = jax.numpy.arange(4.0)
    x = xgrad.from_dlpack(theirs)
    assert address(x) == theirs.unsafe_buffer_pointer()
    x[0] = 7  # which makes a new value: JAX's arrays never change
    assert (x.tolist(), theirs.tolist()) == ([7, 1, 2, 3], [0, 1, 2, 3])


@pytest.mark.parametrize("read_only", [False, True])
def test_nothing_writes_into_memory_of_others(read_only: bool) -> None:
    if read_only and not SIGNALS:
        pytest.skip("NumPy 2.0 gives no read-only memory away")
    theirs = np.arange(1.0, 4.0)
    before = theirs.copy()
    theirs.flags.writeable = not read_only
    x = xgrad.from_dlpack(theirs)
    x[0] = 5
    x = xgrad.from_dlpack(theirs)
    x += 1
    x *= x
    leaf = xgrad.from_dlpack(theirs).requires_grad_()
    (leaf * leaf).sum().backward(xgrad.from_dlpack(np.ones(())))
    with xgrad.no_grad():
        leaf -= 1
        leaf[1] = 9
    leaf.data *= 2
    module = xgrad.nn.Parameter([0.0])
    module.data = xgrad.from_dlpack(theirs)
    for make in (xgrad.optim.SGD, xgrad.optim.Adam):
        for parameter in (xgrad.from_dlpack(theirs).requires_grad_(), module):
            optimizer = make([parameter], lr=0.1)
            for _ in range(3):
                parameter.grad = xgrad.from_dlpack(theirs)
                optimizer.step()
                (parameter * parameter).sum().backward()
                optimizer.zero_grad()
            assert parameter.tolist() != before.tolist()
    assert theirs.tolist() == before.tolist()


def test_copies_on_demand(device: str) -> None:
    theirs = np.arange(3.0)
    x = xgrad.from_dlpack(theirs, device=device, copy=True)
    theirs[0] = 5
    assert (x.tolist(), str(x.device)) == ([0, 1, 2], device)
    y = xgrad.from_dlpack(x)
    assert y.device is x.device and y.tolist() == [0, 1, 2]


def test_what_cannot_be_taken() -> None:
    with pytest.raises(AttributeError, match="__dlpack"):
        xgrad.from_dlpack([1.0])
    with pytest.raises(BufferError, match=r"DLPack: this tensor needs a gradient, .* use \.detach\(\)"):
        xgrad.from_dlpack(xgrad.ones(2, requires_grad=True))

    class Elsewhere(Old):
        def __dlpack_device__(self) -> Any:
            return (8, 0)

    with pytest.raises(BufferError, match="expected memory of the host or of CUDA, got DLPack's device 8"):
        xgrad.from_dlpack(Elsewhere(np.ones(2)))


def test_no_copy_between_devices() -> None:
    pytest.importorskip("array_api_strict", reason="array-api-strict, the other device, is not installed")
    x = xgrad.ones(2, device="strict")
    assert str(xgrad.from_dlpack(x, device="strict:1").device) == "strict:1"  # whose memory is the same

    class Faraway(xgrad.Tensor):
        def __dlpack_device__(self) -> Any:
            return (2, 0)

    far = Faraway([1.0])
    with pytest.raises(BufferError, match="copy=False, but to get from cpu to strict needs a copy"):
        xgrad.from_dlpack(far, device="strict", copy=False)
    assert xgrad.from_dlpack(far, device="strict").tolist() == [1]


# To others


def test_numpy_sees_the_memory_read_only() -> None:
    x = Tensor([1.0, 2.0])
    theirs = np.from_dlpack(x)
    assert theirs.__array_interface__["data"][0] == address(x)
    with pytest.raises(ValueError, match="read-only"):
        theirs[0] = 5


def test_torch_and_jax_see_the_memory(torch: Any, jax: Any) -> None:
    x = xgrad.from_dlpack(aligned(4))
    assert torch.from_dlpack(x).data_ptr() == address(x)
    assert jax.numpy.from_dlpack(x).unsafe_buffer_pointer() == address(x)
    y = Tensor([1.0, 2.0], device="torch")
    assert torch.from_dlpack(y).data_ptr() == y._data.data_ptr()
    assert np.from_dlpack(y).__array_interface__["data"][0] == y._data.data_ptr()


def test_negative_strides_are_copied_for_those_who_would_break(torch: Any) -> None:
    backwards = np.arange(3.0)[::-1]
    for x in (xgrad.from_dlpack(backwards), xgrad.flip(xgrad.asarray([0.0, 1.0, 2.0]))):
        assert torch.from_dlpack(x).tolist() == np.from_dlpack(x).tolist() == [2, 1, 0]
    assert address(xgrad.from_dlpack(backwards)) == backwards.__array_interface__["data"][0]
    assert xgrad.from_dlpack(backwards, device="torch").tolist() == [2, 1, 0]
    with pytest.raises(BufferError, match="PyTorch has no arrays with negative strides: copy them"):
        xgrad.from_dlpack(backwards, device="torch", copy=False)


def test_read_only_memory_is_copied_for_those_who_would_not_know() -> None:
    theirs = aligned(3)
    theirs.flags.writeable = not SIGNALS
    x = xgrad.from_dlpack(theirs)
    assert not np.from_dlpack(x).flags.writeable and address(xgrad.from_dlpack(x)) == address(x)
    old = None if SIGNALS else np.from_dlpack(Old(x))
    assert old is None or not np.shares_memory(old, theirs)
    x.__dlpack__()  # of which DLPack from before 1.0 makes a writable array
    with pytest.raises(BufferError, match="readonly"):
        x.__dlpack__(copy=False)


def test_a_tensor_with_a_gradient_is_not_given_away(device: str) -> None:
    x = xgrad.ones(2, device=device, requires_grad=True)
    for y in (x, 2 * x):
        with pytest.raises(BufferError, match=r"DLPack: this tensor needs a gradient, .* use \.detach\(\)"):
            y.__dlpack__()
    x.detach().__dlpack__()
    assert len(x.__dlpack_device__()) == 2


def test_the_arguments_of_dlpack(device: str) -> None:
    x = xgrad.ones(2, device=device)
    host = (1, 0)
    options: dict[str, Any]
    for options in (
        {},
        {"max_version": (0, 8)},
        {"max_version": (1, 0)},
        {"max_version": (2, 0)},
        {"copy": True},
        {"copy": None},
        {"dl_device": host},
        {"dl_device": host, "copy": True, "max_version": (1, 1)},
    ):
        assert "dltensor" in repr(x.__dlpack__(**options))
    with pytest.raises(BufferError, match=r"expected where the tensor is, or the host, got dl_device=\(4, 0\)"):
        x.__dlpack__(dl_device=(4, 0))


class Copies:
    """An array as a consumer asks for it that wants a copy."""

    def __init__(self, x: Any, **options: Any) -> None:
        self.x, self.options = x, options

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**{**options, **self.options})

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


def test_a_copy_is_the_taker_s_own(device: str) -> None:
    x = xgrad.ones(2, device=device)
    if tuple(map(int, x.__dlpack_device__())) != (1, 0):
        pytest.skip("not in the memory of the host")
    theirs = np.from_dlpack(Copies(x, copy=True))
    assert not np.shares_memory(theirs, np.from_dlpack(x))
    if np.from_dlpack(np.ones(2)).flags.writeable:  # before 2.3, NumPy takes all memory as read-only
        theirs[0] = 5
    assert x.tolist() == [1, 1]


def test_an_optimizer_leaves_parameters_that_numpy_sees(device: str) -> None:
    check_an_optimizer_leaves_parameters(np.from_dlpack, device)


def test_an_optimizer_leaves_parameters_that_torch_sees(device: str, torch: Any) -> None:
    check_an_optimizer_leaves_parameters(torch.from_dlpack, device)


def check_an_optimizer_leaves_parameters(from_dlpack: Callable[[Any], Any], device: str) -> None:
    """Parameters lie in a buffer, which is updated in place as long as nobody else can see it."""
    parameters = [xgrad.nn.Parameter([1.0, 2.0], device=device), xgrad.nn.Parameter([[3.0]], device=device)]
    if tuple(map(int, parameters[0].__dlpack_device__())) != (1, 0):
        pytest.skip("not in the memory of the host")
    optimizer = xgrad.optim.SGD(parameters, lr=0.1)
    for _ in range(3):
        given = [from_dlpack(p.detach()) for p in parameters]
        values = [array.tolist() for array in given]
        for p in parameters:
            (p * p).sum().backward()
        gradients = [from_dlpack(p.grad) for p in parameters]
        slopes = [array.tolist() for array in gradients]
        optimizer.step()
        optimizer.zero_grad()
        for p in parameters:
            (3 * p).sum().backward()
        assert [array.tolist() for array in given] == values != [p.tolist() for p in parameters]
        assert [array.tolist() for array in gradients] == slopes
        optimizer.zero_grad()
