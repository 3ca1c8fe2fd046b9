"""Memory of captured steps on the emulation of CUDA: counted, freed, and used up."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

import xgrad
from tests.cuda_without_gpu.counters import capacity
from xgrad.capture import CaptureWarning
from xgrad_cupy.pools import pools

CUDA = xgrad.Device("cuda")


def allocated() -> int:
    """Return the bytes of the device in use, all of them reserved by pools."""
    gc.collect()
    cp.cuda.Device().synchronize()
    memory = CUDA.memory()
    assert memory["total"] - memory["free"] == memory["reserved"]
    return memory["reserved"]


def test_memory_of_graphs_is_counted_and_freed() -> None:
    """Also after dropped steps, failed captures and warm-ups, and with workspaces of cuBLAS."""
    x, default = xgrad.ones((3, 3), device=CUDA), cp.get_default_memory_pool()
    before = allocated() - default.total_bytes()
    step = xgrad.capture(lambda x: x @ x)
    for _ in range(2):
        step(x)
    (program,) = step._programs.values()
    assert allocated() - default.total_bytes() - before == program.executor.nbytes > 32 << 20
    del step, program
    assert allocated() - default.total_bytes() == before
    refused = xgrad.capture(lambda x: xgrad.linalg.solve(x @ x + xgrad.eye(3, device=CUDA), x))
    with pytest.warns(CaptureWarning, match="NotImplementedError"):
        refused(x)
    assert allocated() - default.total_bytes() == before


class TestOutOfMemory:
    """A capture without enough memory frees CuPy's default pool, and is tried once more."""

    @pytest.fixture(autouse=True)
    def small_device(self) -> Iterator[None]:
        """A device with all memory in use, of which the default pool has 64 MiB in free blocks."""
        default = cp.get_default_memory_pool()
        default.free_all_blocks()
        blocks = [cp.empty(1 << 20, "u1") for _ in range(64)]
        del blocks
        memory = capacity()
        whole, memory.value = memory.value, allocated()
        yield
        memory.value = whole

    @staticmethod
    def _step(x: xgrad.Tensor) -> xgrad.Tensor:
        return (x * 2 + 1).sum()

    def test_second_try_uses_memory_of_default_pool(self) -> None:
        x, step = xgrad.ones(1 << 16, device=CUDA), xgrad.capture(self._step)
        assert [step(x).item() for _ in range(3)] == [3 << 16] * 3
        assert step.refusal is None and pools()

    def test_step_runs_eagerly_after_two_tries(self) -> None:
        rest: Any = [cp.empty(1 << 20, "u1") for _ in range(62)]
        x, step = xgrad.ones(1 << 16, device=CUDA), xgrad.capture(self._step)
        with pytest.warns(
            CaptureWarning, match="CUDA does not capture the step: OutOfMemoryError: Out of memory"
        ):
            assert step(x).item() == 3 << 16
        assert step(x).item() == 3 << 16 and rest and not pools()
