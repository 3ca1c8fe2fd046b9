"""DLPack: memory shared both ways with NumPy, PyTorch and JAX, never written to; refusals.

Addresses and values show what is shared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, leaf
from xgrad import Tensor


def aligned(n: int) -> np.ndarray:
    """Return float32 numbers at a multiple of 64, the addresses that JAX takes."""
    raw = np.zeros(4 * n + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + 4 * n].view(np.float32)
    array[...] = np.arange(n)
    return array


def address(x: Any) -> int:
    return int(x._data.__array_interface__["data"][0])


#: Whether NumPy exports read-only memory, and imports memory as writable.
SIGNALS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Exporter:
    """An array exported with another device, or other arguments of ``__dlpack__``."""

    def __init__(self, x: Any, device: Any = None, **options: Any) -> None:
        self.x, self.device, self.options = x, device, options

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**{**options, **self.options})

    def __dlpack_device__(self) -> Any:
        return self.device or self.x.__dlpack_device__()


# Import


def test_from_dlpack_of_numpy_shares_its_memory() -> None:
    source = np.arange(6.0).reshape(2, 3)[:, ::2]
    x = xgrad.from_dlpack(source)
    assert address(x) == source.__array_interface__["data"][0]
    assert (x.shape, x.dtype, str(x.device), x.tolist()) == (
        (2, 2),
        xgrad.float64,
        "cpu",
        [[0, 2], [3, 5]],
    )


def test_from_dlpack_of_torch_shares_its_memory(torch: Any) -> None:
    source = torch.arange(4.0)
    for x in (xgrad.from_dlpack(source), xgrad.from_dlpack(source, device="cpu", copy=False)):
        assert (address(x), str(x.device)) == (source.data_ptr(), "cpu")
    x = xgrad.from_dlpack(source, device="torch", copy=False)
    assert (x._data.data_ptr(), str(x.device)) == (source.data_ptr(), "torch")
    x = xgrad.from_dlpack(np.arange(3.0), device="torch", copy=False)
    assert (str(x.device), x.tolist()) == ("torch", [0, 1, 2])
    with pytest.raises(BufferError, match=r"requires? grad"):
        xgrad.from_dlpack(source.requires_grad_())


def test_from_dlpack_of_jax_shares_its_memory(jax: Any) -> None:
    source = jax.numpy.arange(4.0)
    x = xgrad.from_dlpack(source)
    assert address(x) == source.unsafe_buffer_pointer()
    x[0] = 7  # which makes a new value: JAX's arrays never change
    assert (x.tolist(), source.tolist()) == ([7, 1, 2, 3], [0, 1, 2, 3])


@pytest.mark.parametrize("read_only", [False, True])
def test_imported_memory_is_never_written_to(read_only: bool) -> None:
    if read_only and not SIGNALS:
        pytest.skip("NumPy 2.0 gives no read-only memory away")
    source = np.arange(1.0, 4.0)
    source.flags.writeable = not read_only
    x = xgrad.from_dlpack(source)
    y = xgrad.from_dlpack(source)
    p = xgrad.from_dlpack(source).requires_grad_()
    x[0] = 5
    y += 1
    y *= y
    (p * p).sum().backward(xgrad.from_dlpack(np.ones(())))
    with xgrad.no_grad():
        p -= 1
        p[1] = 9
    p.data *= 2
    module = xgrad.nn.Parameter([0.0])
    module.data = xgrad.from_dlpack(source)
    for make in (xgrad.optim.SGD, xgrad.optim.Adam):
        for parameter in (xgrad.from_dlpack(source).requires_grad_(), module):
            optimizer = make([parameter], lr=0.1)
            for _ in range(3):
                parameter.grad = xgrad.from_dlpack(source)
                optimizer.step()
                (parameter * parameter).sum().backward()
                optimizer.zero_grad()
            assert parameter.tolist() != [1, 2, 3]
    assert source.tolist() == [1, 2, 3]


def test_copy_has_memory_of_its_own(device: str) -> None:
    source = np.arange(3.0)
    x = xgrad.from_dlpack(source, device=device, copy=True)
    source[0] = 5
    assert (x.tolist(), str(x.device)) == ([0, 1, 2], device)
    y = xgrad.from_dlpack(x)
    assert y.device is x.device and y.tolist() == [0, 1, 2]


NEEDS_GRADIENT = "BufferError: DLPack: this tensor needs a gradient, … use .detach()"
REFUSED = [
    ("xp.from_dlpack([1.0])", "AttributeError: … __dlpack"),
    ("xp.from_dlpack(leaf())", NEEDS_GRADIENT),
    ("leaf().__dlpack__()", NEEDS_GRADIENT),
    ("(2 * leaf()).__dlpack__()", NEEDS_GRADIENT),
    (
        "xp.from_dlpack(far)",
        "BufferError: … expected memory of the host or of CUDA, got DLPack's device 8",
    ),
    (
        "xp.ones(2).__dlpack__(dl_device=(4, 0))",
        "BufferError: … where the tensor is, or the host, got dl_device=",
    ),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_memory_that_cannot_be_exchanged_is_refused(call: str, error: str) -> None:
    check_error(call, error, leaf=leaf, far=Exporter(np.ones(2), device=(8, 0)))


def test_import_to_another_device_needs_a_copy() -> None:
    pytest.importorskip(
        "array_api_strict", reason="array-api-strict, the other device, is not installed"
    )
    x = xgrad.ones(2, device="strict")
    assert str(xgrad.from_dlpack(x, device="strict:1").device) == "strict:1"  # of the same memory

    class Faraway(xgrad.Tensor):
        def __dlpack_device__(self) -> Any:
            return (2, 0)

    far = Faraway([1.0])
    with pytest.raises(BufferError, match="copy=False, but to get from cpu to strict needs a copy"):
        xgrad.from_dlpack(far, device="strict", copy=False)
    assert xgrad.from_dlpack(far, device="strict").tolist() == [1]


# Export


def test_numpy_imports_shared_read_only_memory() -> None:
    x = Tensor([1.0, 2.0])
    imported = np.from_dlpack(x)
    assert imported.__array_interface__["data"][0] == address(x)
    with pytest.raises(ValueError, match="read-only"):
        imported[0] = 5


def test_torch_and_jax_import_shared_memory(torch: Any, jax: Any) -> None:
    x = xgrad.from_dlpack(aligned(4))
    assert torch.from_dlpack(x).data_ptr() == address(x)
    assert jax.numpy.from_dlpack(x).unsafe_buffer_pointer() == address(x)
    y = Tensor([1.0, 2.0], device="torch")
    assert torch.from_dlpack(y).data_ptr() == y._data.data_ptr()
    assert np.from_dlpack(y).__array_interface__["data"][0] == y._data.data_ptr()


def test_negative_strides_are_copied_for_pytorch(torch: Any) -> None:
    backwards = np.arange(3.0)[::-1]
    for x in (xgrad.from_dlpack(backwards), xgrad.flip(xgrad.asarray([0.0, 1.0, 2.0]))):
        assert torch.from_dlpack(x).tolist() == np.from_dlpack(x).tolist() == [2, 1, 0]
    assert address(xgrad.from_dlpack(backwards)) == backwards.__array_interface__["data"][0]
    assert xgrad.from_dlpack(backwards, device="torch").tolist() == [2, 1, 0]
    with pytest.raises(BufferError, match="PyTorch has no arrays with negative strides: copy them"):
        xgrad.from_dlpack(backwards, device="torch", copy=False)


def test_read_only_memory_is_copied_for_dlpack_before_1_0() -> None:
    source = aligned(3)
    source.flags.writeable = not SIGNALS
    x = xgrad.from_dlpack(source)
    assert not np.from_dlpack(x).flags.writeable and address(xgrad.from_dlpack(x)) == address(x)
    assert SIGNALS or not np.shares_memory(np.from_dlpack(Exporter(x, max_version=None)), source)
    x.__dlpack__()  # DLPack from before 1.0 makes a writable array of it
    with pytest.raises(BufferError, match="readonly"):
        x.__dlpack__(copy=False)


HOST = (1, 0)
OPTIONS: list[dict[str, Any]] = [
    *[{"max_version": version} for version in (None, (0, 8), (1, 0), (2, 0))],
    *[
        {"copy": True},
        {"copy": None},
        {"dl_device": HOST},
        {"dl_device": HOST, "copy": True, "max_version": (1, 1)},
    ],
]


@pytest.mark.parametrize("options", OPTIONS)
def test_export_takes_the_arguments_of_the_standard(options: Any, device: str) -> None:
    x = xgrad.ones(2, device=device, requires_grad=True)
    assert "dltensor" in repr(x.detach().__dlpack__(**options)) and len(x.__dlpack_device__()) == 2


def on_host(x: Tensor) -> bool:
    return tuple(map(int, x.__dlpack_device__())) == HOST


def test_exported_copy_shares_no_memory(device: str) -> None:
    x = xgrad.ones(2, device=device)
    if not on_host(x):
        pytest.skip("not in the memory of the host")
    imported = np.from_dlpack(Exporter(x, copy=True))
    assert not np.shares_memory(imported, np.from_dlpack(x))
    if np.from_dlpack(
        np.ones(2)
    ).flags.writeable:  # before 2.3, NumPy takes all memory as read-only
        imported[0] = 5
    assert x.tolist() == [1, 1]


def test_parameters_imported_by_numpy_follow_updates_and_gradients_keep_their_values(
    device: str,
) -> None:
    check_exported_parameters_follow(np.from_dlpack, device)


def test_parameters_imported_by_torch_follow_updates_and_gradients_keep_their_values(
    device: str, torch: Any
) -> None:
    check_exported_parameters_follow(torch.from_dlpack, device)


def check_exported_parameters_follow(from_dlpack: Callable[[Any], Any], device: str) -> None:
    """Updates write to the buffer of the parameters; exported gradients keep their own buffer."""
    parameters = [
        xgrad.nn.Parameter([1.0, 2.0], device=device),
        xgrad.nn.Parameter([[3.0]], device=device),
    ]
    if not on_host(parameters[0]):
        pytest.skip("not in the memory of the host")
    optimizer = xgrad.optim.SGD(parameters, lr=0.1)
    for _ in range(3):
        for p in parameters:
            (p * p).sum().backward()
        shared = [from_dlpack(p.detach()) for p in parameters]
        gradients = [from_dlpack(p.grad) for p in parameters]
        before, values = ([array.tolist() for array in arrays] for arrays in (shared, gradients))
        optimizer.step()
        optimizer.zero_grad()
        for p in parameters:
            (3 * p).sum().backward()
        optimizer.zero_grad()
        assert [array.tolist() for array in gradients] == values
        assert [array.tolist() for array in shared] == [p.tolist() for p in parameters] != before
