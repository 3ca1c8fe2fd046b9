"""The default dtype of floats: the dtypes of results, in blocks, threads and captured steps."""

from __future__ import annotations

import pytest

import xgrad
from helpers import run_threads

#: Calls without a dtype, with integers `i`.
CALLS = [
    "xp.asarray(1.0)",
    "xp.asarray([[1.0], [2.0]])",
    "xp.Tensor([1.0])",
    "xp.zeros(2)",
    "xp.ones(2)",
    "xp.empty(2)",
    "xp.eye(2)",
    "xp.full(2, 1.0)",
    "xp.arange(0.0, 2.0)",
    "xp.linspace(0, 1, 3)",
    "xp.fft.fftfreq(4)",
    "xp.random.uniform(2)",
    "xp.random.normal(2)",
    "xp.nn.Linear(2, 2).weight",
    "xp.nn.Parameter(1.0)",
    "xp.sin(i)",
    "i / 2",
    "i + 0.5",
    "xp.special.entr(i)",
    "xp.linalg.inv(i)",
]


@pytest.mark.parametrize("call", CALLS)
def test_floats_without_a_dtype_have_the_default_dtype(call: str, device: str) -> None:
    with xgrad.default_device(device):
        names = {"xp": xgrad, "i": xgrad.asarray([[1]])}
        with xgrad.set_default_dtype(xgrad.float64):
            assert eval(call, names).dtype == xgrad.float64
        assert eval(call, names).dtype == xgrad.float32


def test_complex_dtype_follows_the_default_dtype(device: str) -> None:
    for dtype, expected in ((xgrad.float64, xgrad.complex128), (xgrad.float32, xgrad.complex64)):
        with xgrad.set_default_dtype(dtype):
            assert xgrad.asarray([1j], device=device).dtype == expected
            assert (xgrad.ones(2, dtype="int64", device=device) * 1j).dtype == expected
            assert xgrad.result_type(xgrad.int8, 1j) == expected


def test_tensors_keep_their_dtype_under_another_default(device: str) -> None:
    x = xgrad.ones(2, device=device)
    with xgrad.set_default_dtype("float64"):
        assert (
            (x + 1.5).dtype
            == (x + xgrad.ones(2, dtype="int64", device=device)).dtype
            == xgrad.float32
        )
        assert xgrad.zeros_like(x).dtype == xgrad.float32
        assert (x * 1j).dtype == xgrad.result_type(x, 1j) == xgrad.complex64
        assert (
            xgrad.asarray(x).dtype
            == xgrad.asarray(x.numpy() if device == "cpu" else x).dtype
            == xgrad.float32
        )


def test_namespace_info_and_repr_follow_the_default_dtype() -> None:
    with xgrad.set_default_dtype(xgrad.float64):
        assert xgrad.get_default_dtype() == xgrad.float64
        dtypes = xgrad.__array_namespace_info__().default_dtypes()
        assert (dtypes["real floating"], dtypes["complex floating"]) == (
            xgrad.float64,
            xgrad.complex128,
        )
        assert repr(xgrad.zeros(1)) == "Tensor([0.])"
        assert repr(xgrad.zeros(1, dtype="float32")) == "Tensor([0.], dtype=float32)"


def test_setting_without_a_block_lasts_in_its_thread_alone() -> None:
    seen = []

    def work() -> None:
        xgrad.set_default_dtype(xgrad.float64)
        seen.append(xgrad.zeros(1).dtype)

    run_threads(work)
    assert seen == [xgrad.float64]
    assert xgrad.zeros(1).dtype == xgrad.float32


def test_blocks_nest_and_end_after_an_error() -> None:
    with xgrad.set_default_dtype(xgrad.float64):
        with xgrad.set_default_dtype(xgrad.float32):
            assert xgrad.get_default_dtype() == xgrad.float32
        assert xgrad.get_default_dtype() == xgrad.float64
    with pytest.raises(TypeError), xgrad.set_default_dtype(xgrad.float64):
        xgrad.zeros("two")
    assert xgrad.get_default_dtype() == xgrad.float32


@pytest.mark.parametrize("dtype", ["int64", "complex64", "bool"])
def test_default_dtype_that_is_not_real_floating_is_refused(dtype: str) -> None:
    with pytest.raises(
        TypeError, match=f"set_default_dtype: expected xgrad.float32 or xgrad.float64, got {dtype}"
    ):
        xgrad.set_default_dtype(dtype)


def test_captured_step_follows_the_default_dtype() -> None:
    step = xgrad.capture(lambda x: x + xgrad.ones(2))
    x = xgrad.ones(2)
    for _ in range(3):
        assert step(x).dtype == xgrad.float32
        with xgrad.set_default_dtype(xgrad.float64):
            assert step(x).dtype == xgrad.float64
