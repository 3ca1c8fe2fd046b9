"""The self-check of CUDA graphs finds executors with planted faults, whose steps run eagerly."""

from __future__ import annotations

import copy
import gc
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad.backend.device import Device
from xgrad.capture import CaptureWarning
from xgrad.capture.program import Unusable
from xgrad_cupy import cuda_graph
from xgrad_cupy.self_check import outcomes


class Executor(cuda_graph.Executor):
    """An executor whose graphs never get new numbers."""

    _first: Any = None

    def run(self, *args: Any) -> Any:
        count = len(self._program.inputs)
        self._first = self._first or args[count:]
        return super().run(*args[:count], *self._first)


class StaleInputs(cuda_graph.Executor):
    """An executor whose graphs never get new inputs."""

    _first: Any = None

    def run(self, *args: Any) -> Any:
        count = len(self._program.inputs)
        self._first = self._first or args[:count]
        return super().run(*self._first, *args[count:])


class NoLaunch(cuda_graph.Executor):
    """An executor that launches its graph once only."""

    def run(self, *args: Any) -> Any:
        if not self._runs:
            return super().run(*args)
        outputs, copies = self._outputs(args)
        for copy_out in copies:
            copy_out()
        return outputs


class SharedOutputs(cuda_graph.Executor):
    """An executor whose results are overwritten by the next replay."""

    _first: Any = None

    def run(self, *args: Any) -> Any:
        outputs = super().run(*args)
        self._first = self._first or outputs
        for x, y in zip(self._first, outputs, strict=True):
            x[...] = y
        return self._first


class SharedMemory(cuda_graph.Executor):
    """An executor whose graphs write to memory that other arrays get afterwards."""

    def _execute(self, inputs: dict[int, Any], state: list[Any]) -> list[Any]:
        with self._cp.cuda.using_allocator(self._malloc):
            return super()._execute(inputs, state)

    def _malloc(self, size: int) -> Any:
        with self._cp.cuda.Stream.null:  # CuPy keeps free memory for each stream
            return self._cp.get_default_memory_pool().malloc(size)


class NoUpdate(cuda_graph.Executor):
    """An executor whose graphs update a copy of the state."""

    def _execute(self, inputs: dict[int, Any], state: list[Any]) -> list[Any]:
        return super()._execute(inputs, [x.copy() for x in state])


FAULTS = {
    Executor: "the weights after both replays",
    StaleInputs: "the sum of replay 2",
    NoLaunch: "the sum of replay 2",
    SharedOutputs: "the sum of replay 1",
    SharedMemory: "an array made before replay 1",
    NoUpdate: "the sum of replay 2",
}


@pytest.mark.parametrize(("executor", "found"), FAULTS.items(), ids=[x.__name__ for x in FAULTS])
def test_fault_is_found(executor: Any, found: str, cuda: Device) -> None:
    text = (
        f"CUDA graphs are wrong on cuda:0: in a self-check, expected {found} to be NumPy's within "
    )
    for _ in range(2):
        with pytest.raises(Unusable, match=re.escape(text)):
            outcomes.require(executor, cuda.native)


@pytest.mark.parametrize("tf32", [False, True])
def test_graphs_without_a_fault_pass(tf32: bool, cuda: Device) -> None:
    class Unchecked(cuda_graph.Executor):
        """An executor whose graphs have not been checked in this process."""

    xgrad.set_tf32(tf32, cuda)
    try:
        outcomes.require(Unchecked, cuda.native)
    finally:
        xgrad.set_tf32(False, cuda)


def train(step: Any, optimizer: Any, rates: list[float]) -> None:
    (group,) = optimizer.param_groups
    for i, rate in enumerate(rates):
        group["lr"] = rate
        step(xgrad.asarray([1.0, 2.0, i], device=group["params"][0].device))


def test_step_on_wrong_graphs_runs_eagerly_with_the_reason(cuda: Device) -> None:
    backend = copy.copy(cuda.backend)
    backend.executor = __name__  # type: ignore[misc]  # the executor of this file
    device = Device.of("cuda", backend)
    w = xgrad.ones(3, device=device, requires_grad=True)
    optimizer = xgrad.optim.SGD([w], lr=0.5)

    @xgrad.capture
    def step(x: xgrad.Tensor) -> None:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    expected, rates = np.ones(3), [0.5, 0.25, 0.125, 0.0625]
    with pytest.warns(CaptureWarning, match="CUDA graphs are wrong on cuda:0: .* the weights"):
        train(step, optimizer, rates)
    for i, rate in enumerate(rates):
        expected -= rate * np.asarray([1.0, 2.0, i])
    np.testing.assert_allclose(w.detach().cpu().numpy(), expected, rtol=1e-5)
    assert step.refusal is not None and "see that driver, CUDA and CuPy fit" in step.refusal


def test_check_is_made_once_for_all_threads_and_leaves_no_memory_in_use(cuda: Device) -> None:
    made = []

    class Counted(cuda_graph.Executor):
        def __init__(self, program: Any, native: bool | None = None) -> None:
            super().__init__(program, native)
            made.append(program)

    gc.collect()  # of other tests
    used = cuda.memory()["used"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: outcomes.require(Counted, cuda.native), range(8)))
    assert len(made) == 1
    assert cuda.memory()["used"] == used


def test_check_that_could_not_be_made_is_made_again(cuda: Device) -> None:
    failures = [MemoryError("no memory")]

    class OnceWithoutMemory(cuda_graph.Executor):
        def run(self, *args: Any) -> Any:
            return failures.pop() if failures else super().run(*args)

    text = "the self-check of CUDA graphs ended by MemoryError: no memory"
    with pytest.raises(Unusable, match=text):
        outcomes.require(OnceWithoutMemory, cuda.native)
    outcomes.require(OnceWithoutMemory, cuda.native)
