"""Captured steps in several threads: captures that others disturb, and the order of replays."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

import xgrad
from tests.helpers import run_threads
from xgrad_cupy import cuda_graph
from xgrad_cupy.stream_capture import Invalidated, record

CUDA = xgrad.Device("cuda")


class Other:
    """A thread that makes a call while a step is captured."""

    def __init__(self, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.captures, self.error = 0, None
        self._call, self._ended = call, threading.Event()
        self._thread = threading.Thread(target=self._run)
        execute = cuda_graph.Executor._execute

        def executed(executor: Any, *args: Any) -> Any:
            if executor._stream.is_capturing():
                self.captures += 1
                if self.captures == 1:
                    self._thread.start()
                    self._ended.wait(0.5)  # it waits for the capture, or has failed
            return execute(executor, *args)

        monkeypatch.setattr(cuda_graph.Executor, "_execute", executed)

    def _run(self) -> None:
        try:
            self._call()
        except Exception as error:
            self.error = error
        self._ended.set()

    def join(self) -> None:
        self._thread.join()


def check_step(work: Callable[..., Any]) -> None:
    """Compare a captured step with the eager one."""
    rng, step = np.random.default_rng(0), xgrad.capture(work)
    for _ in range(3):
        x = xgrad.asarray(rng.standard_normal((3, 3)), device=CUDA)
        np.testing.assert_allclose(step(x).numpy(), work(x).numpy())
    assert step.refusal is None


def test_synchronization_by_another_thread_waits_for_capture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Other(CUDA.synchronize, monkeypatch)
    check_step(lambda x: (x * 2).sum())
    other.join()
    assert other.error is None and other.captures == 1


@pytest.mark.parametrize(
    "work",
    [lambda x: (x * 2).sum(), lambda x: x @ x, lambda x: abs(xgrad.fft.fft(x))],
    ids=["kernels", "cuBLAS", "cuFFT"],
)
def test_capture_is_repeated_after_another_thread_invalidated_it(
    work: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CuPy's own function does not wait for captures, and fails."""
    other = Other(cp.cuda.Device().synchronize, monkeypatch)
    check_step(work)
    other.join()
    assert "cudaErrorStreamCaptureUnsupported" in str(other.error) and other.captures == 2


class TestRecord:
    def test_synchronization_by_the_function_is_its_own_error(self) -> None:
        with cp.cuda.Stream(non_blocking=True) as stream:
            with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="CaptureUnsupported"):
                record(stream, stream.synchronize)
            assert not stream.is_capturing()

    def test_refusal_by_cupy_is_the_function_s_own_error(self) -> None:
        x = cp.ones(3)
        with cp.cuda.Stream(non_blocking=True) as stream:
            with pytest.raises(RuntimeError, match="D2H transfers are disallowed"):
                record(stream, x.get)
            assert not stream.is_capturing()

    def test_synchronization_by_another_thread_invalidates(self) -> None:
        synchronize = cp.cuda.Device().synchronize

        def by_another() -> None:
            errors: list[Exception] = []

            def failing() -> None:
                try:
                    synchronize()
                except cp.cuda.runtime.CUDARuntimeError as error:
                    errors.append(error)

            run_threads(failing)
            assert len(errors) == 1

        with cp.cuda.Stream(non_blocking=True) as stream:
            with pytest.raises(Invalidated, match="by another thread that synchronized"):
                record(stream, by_another)
            assert not stream.is_capturing()


def test_replays_on_default_streams_of_threads_are_in_order() -> None:
    """The handles of these streams are equal."""
    w = xgrad.zeros(3, device=CUDA)

    def step(x: xgrad.Tensor) -> None:
        w.data = 2 * w + x

    capturing = xgrad.capture(step)
    inputs = [xgrad.full((3,), float(i), device=CUDA) for i in (1, 2)]
    for _ in range(2):
        capturing(inputs[0])
    assert w.tolist() == [3, 3, 3]
    seen = []

    def replay(i: int) -> None:
        with cp.cuda.Stream.ptds as stream:
            capturing(inputs[i])
            if i:
                stream.synchronize()
                seen.append(w.tolist())

    for i in (0, 1):
        run_threads(replay, [i])
    assert seen == [[16, 16, 16]] and capturing.refusal is None
