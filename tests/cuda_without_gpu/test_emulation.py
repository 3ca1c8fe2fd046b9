"""The emulation of CUDA itself: CuPy's values compared with NumPy, and refusals as by CUDA."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

if "CUDA_WITHOUT_GPU" not in os.environ:
    pytest.skip("needs the emulation of CUDA: make test-cuda-without-gpu", allow_module_level=True)

import cupy as cp

from benchmarks.cuda_major import cuda_major
from tests.cuda_without_gpu import counters
from xgrad import cli

RNG = np.random.default_rng(0)
X = RNG.standard_normal((70, 900)).astype(np.float32)
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "elementwise": lambda xp, x: xp.exp(-x) + xp.sin(x.T[:70, :70]).sum(),
    "float16": lambda xp, x: x.astype("f2") * x.astype("f2"),
    "complex": lambda xp, x: xp.exp(x[:3] + 1j * x[3:6]),
    "division of integers": lambda xp, x: (x * 9).astype("i4") // 4,
    "sum": lambda xp, x: x.sum(),
    "sum of rows": lambda xp, x: x.sum(axis=1),
    "sum of columns": lambda xp, x: x.sum(axis=0),
    "variance": lambda xp, x: x.var(axis=0),
    "argmax": lambda xp, x: x.argmax(),
    "argmax of columns": lambda xp, x: x.argmax(axis=0),
    "maximum": lambda xp, x: x.max(axis=1),
    "cumulative sum": lambda xp, x: xp.cumsum(x),
    "cumulative sum of rows": lambda xp, x: xp.cumsum(x, axis=1),
    "sort": lambda xp, x: xp.sort(x, axis=0),
    "argsort": lambda xp, x: xp.argsort(x, kind="stable"),
    "unique": lambda xp, x: xp.unique(xp.round(x)),
    "mask": lambda xp, x: x[x > 1],
    "indices": lambda xp, x: x[xp.asarray([3, -1, 3])],
    "bincount": lambda xp, x: xp.bincount(abs(x[0] * 4).astype("i4")),
    "histogram": lambda xp, x: xp.histogram(x, 10)[0],
    "product": lambda xp, x: x @ x.T,
    "stack of products": lambda xp, x: x.reshape(7, 10, 900) @ x.reshape(7, 900, 10),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_are_those_of_numpy(function: Callable[[Any, Any], Any]) -> None:
    expected, result = function(np, X), function(cp, cp.asarray(X)).get()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-4)


def test_solver_overwrites_memory_that_holds_nan() -> None:
    nan = [cp.full(128, np.nan) for _ in range(64)]
    del nan  # into the pool, from which the solver takes memory
    x = cp.asarray(X[:3, :2])
    q, r = cp.linalg.qr(x, mode="complete")
    np.testing.assert_allclose((q @ r).get(), x.get(), rtol=1e-5)


BARRIERS = r"""
extern "C" __global__ void reversed(const float *x, float *out) {
    __shared__ float block[96];
    block[threadIdx.x] = x[96 * blockIdx.x + threadIdx.x];
    __syncthreads();
    out[96 * blockIdx.x + threadIdx.x] = block[95 - threadIdx.x];
}
extern "C" __global__ void warp_sums(const float *x, float *out) {
    extern __shared__ float sums[];
    float value = x[threadIdx.x];
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 3) out[threadIdx.x] = sums[threadIdx.x];
}
extern "C" __global__ void diverging(float *out) {
    if (threadIdx.x < 3) __syncthreads();
    else __syncwarp();
}
"""


def test_threads_of_a_block_wait_for_each_other() -> None:
    x = cp.arange(192, dtype=cp.float32)
    out = cp.empty_like(x)
    cp.RawKernel(BARRIERS, "reversed")((2,), (96,), (x, out))
    assert out.get().tolist() == [*range(95, -1, -1), *range(191, 95, -1)]
    cp.RawKernel(BARRIERS, "warp_sums")((1,), (96,), (x, out), shared_mem=12)
    assert out[:3].get().tolist() == x[:96].get().reshape(3, 32).sum(1).tolist()


def test_work_waits_for_a_synchronization() -> None:
    """Work on a stream has not begun before something waits for it."""
    x, stream = cp.zeros(3), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        x += 1
    assert x.get().tolist() == [0, 0, 0]  # of the default stream
    stream.synchronize()
    assert x.get().tolist() == [1, 1, 1]


def test_graph_repeats_its_launches() -> None:
    x, stream = cp.zeros(3), cp.cuda.Stream(non_blocking=True)
    x.copy().__iadd__(1).__iadd__(x)  # compiled before
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        x += 1
        x += x
        graph = stream.end_capture()
    assert x.get().tolist() == [0, 0, 0]
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert x.get().tolist() == [14, 14, 14]


def test_synchronization_is_refused_in_a_capture() -> None:
    stream = cp.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported"):
        stream.synchronize()
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()


def test_kernel_is_not_loaded_in_a_capture() -> None:
    with cp.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        with pytest.raises(
            cp.cuda.driver.CUDADriverError, match="cudaErrorStreamCaptureUnsupported"
        ):
            cp.RawKernel(BARRIERS.replace("reversed", "loaded"), "loaded").compile()
        with pytest.raises(
            cp.cuda.runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"
        ):
            stream.end_capture()


def test_copy_to_memory_of_the_host_as_if_of_the_device_is_refused() -> None:
    x, host = cp.zeros(3), np.zeros(3)
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        cp.cuda.runtime.memcpyAsync(
            host.ctypes.data, x.data.ptr, 24, cp.cuda.runtime.memcpyDeviceToDevice, 0
        )


@pytest.mark.parametrize(("grid", "block"), [((1,), (1025,)), ((1, 65536), (32,))])
def test_launch_beyond_limits_is_refused(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    with pytest.raises(cp.cuda.driver.CUDADriverError, match="cudaErrorInvalidValue"):
        cp.RawKernel(BARRIERS, "diverging")(grid, block, (cp.zeros(1),))


# Faults that the emulation finds

GRAPH = """
import cupy as cp
x, stream = cp.ones({size}), cp.cuda.Stream(non_blocking=True)
def work():
    global y
    {work}
with stream:
    work()
    stream.synchronize()
    stream.begin_capture()
    work()
    graph = stream.end_capture()
{between}
graph.launch(stream)
print("queued", flush=True)
stream.synchronize()
print("done")
"""


def planted(size: int, work: str, between: str) -> tuple[int, str, str]:
    """Return the status, the output and the errors of a process with a fault in a graph."""
    program = GRAPH.format(size=size, work=work, between=between)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


FREE = "del x; stream.synchronize(); cp.get_default_memory_pool().free_all_blocks()"


@pytest.mark.parametrize(
    ("size", "work", "name"),
    [
        (3, "cp.add(x, 1, out=x)", "cupy_add__float64_"),
        (1 << 20, "cp.add(x, 1, out=x)", "cupy_add__float64_"),
        (3, "x.data.memset_async(0, 24)", "memset"),
        (64, "x[:32] = x[32:]", "copy on device"),
    ],
    ids=["kernel", "kernel on a large block", "memset", "copy"],
)
def test_access_to_freed_memory_by_a_graph_is_found(size: int, work: str, name: str) -> None:
    status, output, errors = planted(size, work, FREE)
    assert status == -signal.SIGSEGV and output == "queued\n"
    assert f"cuda_without_gpu: {name}" in errors
    assert "accesses memory that was freed: byte" in errors
    assert planted(size, work, "")[:2] == (0, "queued\ndone\n")


def test_freed_addresses_are_not_used_again() -> None:
    runtime, addresses = cp.cuda.runtime, set()
    for _ in range(100):
        addresses.add(address := runtime.malloc(512))
        runtime.free(address)
    assert len(addresses) == 100


def test_call_with_a_destroyed_plan_fails() -> None:
    work = "y = cp.fft.fft(x)"
    status, output, errors = planted(8, work, "cp.fft.config.get_plan_cache().clear()")
    assert status == 1 and output == "queued\n"
    assert "cuda_without_gpu: cufftExecZ2Z uses a plan that was destroyed" in errors
    assert "cudaErrorLaunchFailure" in errors
    assert planted(8, work, "")[:2] == (0, "queued\ndone\n")


def test_plan_that_is_destroyed_finishes_queued_transforms() -> None:
    y = cp.fft.fft(cp.ones(4))
    cp.fft.config.get_plan_cache().clear()
    np.testing.assert_allclose(y.get(), [4, 0, 0, 0], atol=1e-12)


def test_launches_are_counted_by_name_outside_and_inside_of_captures_and_by_graphs() -> None:
    x, y, stream = cp.zeros((3, 3), "f4"), cp.ones(9, "f4"), cp.cuda.Stream(non_blocking=True)

    def work() -> None:
        cp.add(x, 1, out=x)
        cp.add(x, 1, out=x)
        cp.fft.fft(x)
        x.data.memset_async(0, 36)
        x.data.copy_from_device_async(y.data, 36)

    with stream:
        work()  # compiles
        stream.synchronize()
        counters.reset()
        assert not counters.launches() and not counters.grids()
        work()
        cp.matmul(x, x)
        launched = counters.launches()
        stream.begin_capture()
        work()
        graph = stream.end_capture()
        captured = counters.captured()
        assert {**counters.launches(), "cudaMalloc": 0} == {**launched, "cudaMalloc": 0}
        for _ in range(3):
            graph.launch(stream)
        stream.synchronize()
    add = next(name for name in launched if name.startswith("cupy_add"))
    expected = {add: 2, "cufftExecC2C": 1, "memset": 1, "copy on device": 1}
    assert expected.items() <= launched.items() and launched["cublasGemmEx"] == 1
    assert expected.items() <= captured.items() and "cublasGemmEx" not in captured
    calls = counters.calls()
    assert {name: calls[name] for name in expected} == {
        name: (n, n, 3 * n) for name, n in expected.items()
    }
    assert counters.launches()["cudaGraphLaunch"] == 3
    adds = [grid for grid in counters.grids() if grid.kernel == add]
    assert [grid.captured for grid in adds] == [False] * 2 + [True] * 2
    assert {(grid.grid, grid.block) for grid in adds} == {((1, 1, 1), (9, 1, 1))}


def test_memory_calls_are_counted_by_the_thread_that_captures() -> None:
    stream, runtime = cp.cuda.Stream(non_blocking=True), cp.cuda.runtime

    def allocate_and_free() -> None:
        runtime.free(runtime.malloc(512))

    counters.reset()
    stream.begin_capture()
    thread = threading.Thread(target=allocate_and_free)
    thread.start()
    thread.join()
    assert counters.launches() == {"cudaMalloc": 1, "cudaFree": 1}
    assert counters.free_calls_in_captures() == 0
    allocate_and_free()
    assert counters.captured() == {"cudaMalloc": 1, "cudaFree": 1}
    assert counters.free_calls_in_captures() == 1
    stream.end_capture()


def test_default_streams_of_threads_do_not_wait_for_each_other() -> None:
    """They wait for the default stream of the process, and it waits for them."""
    x, own = cp.zeros(3), cp.cuda.Stream.ptds
    x += 1
    cp.cuda.Device().synchronize()
    seen: list[Any] = []

    def add() -> None:
        with own:
            cp.add(x, 1, out=x)
            seen.append(x.data.ptr)

    def read() -> None:
        with own:
            seen.append(x.get().tolist())

    for work in (add, read):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen[1] == [1, 1, 1]  # the other thread's addition has not begun
    assert x.get().tolist() == [2, 2, 2]  # on the default stream


def test_cuda_of_the_driver_is_that_of_cupy() -> None:
    assert cuda_major() == cp.cuda.runtime.driverGetVersion() // 1000


def test_info_tells_versions_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cuda"].keys() == {"cupy", "cuda_runtime", "cuda_driver", "tf32"}
    (gpu,) = (device for device in report["devices"] if device["name"].startswith("cuda"))
    assert gpu["memory"].keys() == {"used", "reserved", "free", "total"}
