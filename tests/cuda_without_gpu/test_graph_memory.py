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
from tests.cuda_without_gpu import counters
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
        memory = counters.capacity()
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


class TestBlocksOfCapturedKernels:
    """A capture does not free memory to get more: the kernels that it has captured use it."""

    @staticmethod
    def _step(x: xgrad.Tensor) -> xgrad.Tensor:
        """Use temporaries of 1, 2 and 3 MiB: no block serves for two of them."""
        parts = [x[: i << 18] for i in (1, 2, 3)]
        return sum(((part + 1).sum() for part in parts), xgrad.zeros((), device=CUDA))

    def _run(self, room: int, by_limit: bool, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Return the step after three calls, with room for so many bytes of graphs."""
        x, default = xgrad.ones(3 << 18, device=CUDA), cp.get_default_memory_pool()
        step = xgrad.capture(self._step)
        self._step(x)  # compiles
        default.free_all_blocks()
        memory, limit = counters.capacity(), allocated() + room
        whole = memory.value
        try:
            if by_limit:  # as the variable does from the start of a process
                monkeypatch.setenv("CUPY_GPU_MEMORY_LIMIT", str(limit))
                default.set_limit(size=limit)
            else:
                memory.value = limit
            counters.reset()
            values = [step(x)]
            assert counters.free_calls_in_captures() == 0
            values += [step(x), step(x)]
            assert [value.item() for value in values] == [12 << 18] * 3
            assert allocated() <= limit
        finally:
            memory.value = whole
            default.set_limit(size=0)
        return step

    @pytest.fixture
    def needed(self) -> int:
        """The memory of the graph, if there is enough."""
        x, step = xgrad.ones(3 << 18, device=CUDA), xgrad.capture(self._step)
        step(x)
        (program,) = step._programs.values()
        return int(program.executor.nbytes)

    @pytest.mark.parametrize("by_limit", [False, True], ids=["device", "limit"])
    def test_step_runs_eagerly_where_the_graph_has_too_little_memory(
        self, needed: int, by_limit: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reason = r"OutOfMemoryError: Out of memory allocating [\d,]+ bytes \(allocated so far: "
        with pytest.warns(CaptureWarning, match=f"does not capture the step: {reason}"):
            step = self._run(needed - (1 << 20), by_limit, monkeypatch)
        assert ("limit set to" in step.refusal) is by_limit and not pools()

    @pytest.mark.parametrize("by_limit", [False, True], ids=["device", "limit"])
    def test_graph_has_the_memory_that_default_pool_and_limit_leave(
        self, needed: int, by_limit: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        step = self._run(needed + (1 << 20), by_limit, monkeypatch)
        assert step.refusal is None
