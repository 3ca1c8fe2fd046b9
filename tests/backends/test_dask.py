"""The Dask backend, compared with NumPy, the `cpu` device and the normal equations.

The subjects are chunks of data, graphs of a training run, an enforced memory limit, a cluster, and
shapes that depend on values.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error
from xgrad import nn, optim
from xgrad.nn.functional import conv1d, conv2d, cross_entropy

EXAMPLE = Path(__file__).parents[2] / "examples" / "dask_fits.py"
LIMIT = 320  # MiB, for data of a process
#: Gradient descent on chunks that are computed, not stored, by processes with limited memory for
#: data.
FIT = """
import resource, sys
import dask, dask.array as da, numpy as np
from dask.distributed import Client
import xgrad
from test_dask import LIMIT, chunk

def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT << 20, LIMIT << 20))

if __name__ == "__main__":
    if "cluster" in sys.argv:
        client = Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
        client.run(limit_memory)
    else:
        limit_memory()
    count = int(sys.argv[2])
    shape = chunk(0, count).shape
    data = [da.from_delayed(dask.delayed(chunk)(i, count), shape, "f4") for i in range(count)]
    x = xgrad.asarray(da.concatenate(data))
    weights = xgrad.zeros(64, device="dask", requires_grad=True)
    optimizer = xgrad.optim.SGD([weights], lr=0.2, momentum=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        ((x @ weights - 1) ** 2).mean().backward()
        optimizer.step()
    print(*weights.detach().numpy())
    if "cluster" in sys.argv:
        client.close()
    else:
        try:
            np.concatenate([chunk(i, count) for i in range(count)])
        except MemoryError:
            print("MemoryError")
"""


def chunk(i: int, count: int) -> Any:
    """Return one of `count` chunks of data, with 64 features of float32.

    Together, the chunks have four times the size of the memory limit.
    """
    return noise((LIMIT << 22) // 256 // count) * np.float32(1 + i / count)


@cache
def noise(rows: int) -> Any:
    """Return random numbers, the same in every process."""
    return np.random.default_rng(0).standard_normal((rows, 64), dtype="f4")


def expected_weights(count: int) -> Any:
    """Return the weights after two steps, by the normal equations."""
    gram, total = np.zeros((64, 64)), np.zeros(64)
    for i in range(count):
        x = chunk(i, count)
        gram += x.T @ x
        total += x.sum(axis=0)
    weights, velocity, rows = np.zeros(64), np.zeros(64), (LIMIT << 22) // 256
    for _ in range(2):
        velocity = velocity / 2 + 2 * (gram @ weights - total) / rows
        weights = weights - 0.2 * velocity
    return weights


@pytest.fixture
def library() -> xgrad.Device:
    try:
        return xgrad.Device("dask")
    except xgrad.DeviceError as error:
        pytest.skip(str(error))


def chunked(x: Any) -> Any:
    """Return an array of Dask with four chunks along the first axis."""
    import dask.array as da

    return da.from_array(x, chunks=(len(x) // 4, *x.shape[1:]))


@pytest.mark.parametrize(
    "call",
    [
        "nonzero(x)",
        "unique_values(x)",
        "unique_counts(x)",
        "x[x > 1]",
        "repeat(x, xp.asarray([1, 2], device='dask'))",
    ],
)
def test_shape_that_depends_on_values_is_refused(call: str, library: xgrad.Device) -> None:
    check_error(
        call if call.startswith("x[") else f"xp.{call}",
        "NotImplementedError: …: expected a shape that is known without values, got one that"
        " depends on them: move",
        x=xgrad.asarray([1.0, 2.0], device=library),
    )


@pytest.mark.parametrize("ord", [1, 2, 3])
def test_norm_over_a_list_of_axes_is_that_of_vectors(ord: float, library: xgrad.Device) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4))
    t = xgrad.asarray(x, device=library)
    norm = xgrad.linalg.vector_norm(t, axis=[0, 1], ord=ord)  # type: ignore[arg-type]
    for got in (norm, t.norm(ord, [0, 1])):
        assert got.item() == pytest.approx((abs(x) ** ord).sum() ** (1 / ord), rel=1e-6)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (0, None), (3, 5), (5, 3), (4, None)])
def test_eye_of_any_shape_is_that_of_numpy(
    shape: tuple[int, int | None], library: xgrad.Device
) -> None:
    for k in (-7, -1, 0, 1, 7):
        got = xgrad.eye(*shape, k=k, dtype=xgrad.int32, device=library)
        np.testing.assert_array_equal(got.numpy(), np.eye(*shape, k=k, dtype=np.int32))
        assert got.dtype == xgrad.int32


EMPTY = {
    "conv1d of no images": ("conv1d(x, xp.ones((4, 3, 3), device=d), padding=1)", (0, 3, 5)),
    "conv2d of no images": ("conv2d(x, xp.ones((4, 3, 3, 3), device=d), stride=2)", (0, 3, 5, 5)),
    "conv1d of no length": ("conv1d(x, xp.ones((4, 3, 1), device=d), padding=1)", (2, 3, 0)),
    "roll": ("xp.roll(x, 1)", (0, 3)),
    "reshape": ("xp.reshape(x, (3, 0, 2))", (0, 4)),
    "sum": ("xp.sum(x, axis=0)", (0, 3)),
    "max along the other axis": ("xp.max(x, axis=1)", (0, 3)),
    "matmul": ("x @ xp.ones((3, 0), device=d)", (2, 3)),
    "softmax": ("F.softmax(x, axis=1)", (0, 3)),
    "cumulative_sum": ("xp.cumulative_sum(x, axis=0)", (0, 3)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_function_of_no_elements_is_that_of_cpu(name: str, library: xgrad.Device) -> None:
    call, shape = EMPTY[name]
    results = []
    for device in ("cpu", "dask"):
        x = xgrad.ones(shape, device=device, requires_grad=True)
        y = eval(
            call,
            {
                "xp": xgrad,
                "F": nn.functional,
                "conv1d": conv1d,
                "conv2d": conv2d,
                "x": x,
                "d": device,
            },
        )
        y.sum().backward()
        assert x.grad is not None
        results.append((y.detach().numpy(), x.grad.numpy()))
    for got, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)


def test_functions_of_rows_keep_their_chunks(library: xgrad.Device) -> None:
    generator = np.random.default_rng(0)
    x, classes = generator.normal(size=(8, 3)), generator.integers(0, 3, 8)
    calls = {
        "cross-entropy": lambda x, classes: cross_entropy(x, classes, reduction="none"),
        "special function": lambda x, classes: xgrad.special.gammainc(abs(x), xgrad.ones_like(x)),
        "take_along_axis": lambda x, classes: xgrad.take_along_axis(
            x, xgrad.argsort(x, axis=1), axis=1
        ),
    }
    for name, call in calls.items():
        got = call(
            xgrad.asarray(chunked(x), device=library),
            xgrad.asarray(chunked(classes), device=library),
        )
        assert got._data.native.numblocks[0] == 4, name
        np.testing.assert_allclose(
            got.numpy(), call(xgrad.asarray(x), xgrad.asarray(classes)).numpy(), err_msg=name
        )


def test_graph_of_a_training_run_does_not_grow(library: xgrad.Device) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).to(library)
    optimizer = optim.Adam(net.parameters(), lr=0.01)
    x = xgrad.asarray(
        chunked(np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)), device=library
    )
    mean = xgrad.zeros(2, device=library)
    sizes = []
    for _ in range(4):
        optimizer.zero_grad()
        out = net(x)
        (out**2).sum().backward()
        mean -= (mean - out.detach().mean(axis=0)) / 2
        optimizer.step()
        state = [
            *net.parameters(),
            *net.buffers(),
            *map(xgrad.asarray, optimizer.state[net[0].weight].values()),
            mean,
        ]
        sizes.append([len(t._data.native.dask) for t in state if t.device is library])
    assert sizes[-1] == sizes[0] and max(sizes[0]) < 10


def test_fits_of_the_example_read_each_chunk_once_a_step_and_give_the_results_of_cpu(
    library: xgrad.Device,
) -> None:
    import dask.array as da

    pytest.importorskip("distributed.client", reason="needs dask.distributed: make test-peers")
    example, generator = runpy.run_path(str(EXAMPLE)), np.random.default_rng(0)
    centers = generator.normal(size=(8, 62))
    clusters = generator.integers(0, 8, 400)
    x = (centers[clusters] + generator.normal(size=(400, 62))).astype(np.float32)
    reads = []

    def read(chunk: Any) -> Any:
        reads.append(len(chunk))
        return chunk

    lazy = da.map_blocks(read, chunked(x), dtype=x.dtype, meta=x[:0])
    for name, data in {
        "least_squares": [x.sum(axis=1)],
        "k_means": [],
        "classifier": [clusters],
    }.items():
        results = {}
        for device in ("cpu", "dask"):
            inputs = [x, *data] if device == "cpu" else [lazy, *map(chunked, data)]
            losses = xgrad.zeros(3, device=device)
            reads.clear()
            fitted = example[name](*map(xgrad.asarray, inputs), losses).detach()
            results[device] = fitted.numpy(), losses.numpy()
        # and the first centers
        assert reads[-4 * len(losses) :] == [100] * 4 * 3 and len(reads) <= 4 * 3 + 1, name
        for got, expected in zip(results["dask"], results["cpu"], strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=1e-5, err_msg=name)


@pytest.mark.skipif(
    sys.platform != "linux", reason="RLIMIT_DATA counts all memory for data on Linux alone"
)
@pytest.mark.parametrize(("mode", "count"), [("threads", 160), ("cluster", 80)])
def test_data_of_four_times_an_enforced_memory_limit_are_fitted(
    mode: str, count: int, library: xgrad.Device, tmp_path: Path
) -> None:
    pytest.importorskip("distributed.client", reason="needs dask.distributed: make test-peers")
    (tmp_path / "fit.py").write_text(FIT, encoding="utf-8")
    folders = [
        EXAMPLE.parents[1],
        EXAMPLE.parents[1] / "backends",
        Path(__file__).parent,
        Path(__file__).parents[1],
    ]
    environment = {
        "OPENBLAS_NUM_THREADS": "1",
        "DASK_NUM_WORKERS": "2",
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
    }
    command = [sys.executable, "-W", "error", "fit.py", mode, str(count)]
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, run.stderr
    weights, *refused = run.stdout.splitlines()
    np.testing.assert_allclose(
        list(map(float, weights.split())), expected_weights(count), rtol=1e-3, atol=1e-6
    )
    assert refused == (["MemoryError"] if mode == "threads" else [])  # of one array of NumPy
