"""Dask: chunks of data, graphs of a training run, and shapes that depend on values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error
from xgrad import nn, optim
from xgrad.nn.functional import cross_entropy


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
    ["nonzero(x)", "unique_values(x)", "unique_counts(x)", "x[x > 1]", "repeat(x, xp.asarray([1, 2], device='dask'))"],
)
def test_shape_that_depends_on_values_is_refused(call: str, library: xgrad.Device) -> None:
    check_error(
        call if call.startswith("x[") else f"xp.{call}",
        "NotImplementedError: …: expected a shape that is known without values, got one that depends on them: move",
        x=xgrad.asarray([1.0, 2.0], device=library),
    )


def test_functions_of_rows_keep_their_chunks(library: xgrad.Device) -> None:
    generator = np.random.default_rng(0)
    x, classes = generator.normal(size=(8, 3)), generator.integers(0, 3, 8)
    calls = {
        "cross-entropy": lambda x, classes: cross_entropy(x, classes, reduction="none"),
        "special function": lambda x, classes: xgrad.special.gammainc(abs(x), xgrad.ones_like(x)),
        "take_along_axis": lambda x, classes: xgrad.take_along_axis(x, xgrad.argsort(x, axis=1), axis=1),
    }
    for name, call in calls.items():
        got = call(xgrad.asarray(chunked(x), device=library), xgrad.asarray(chunked(classes), device=library))
        assert got._data.native.numblocks[0] == 4, name
        np.testing.assert_allclose(got.numpy(), call(xgrad.asarray(x), xgrad.asarray(classes)).numpy(), err_msg=name)


def test_graph_of_a_training_run_does_not_grow(library: xgrad.Device) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).to(library)
    optimizer = optim.Adam(net.parameters(), lr=0.01)
    x = xgrad.asarray(chunked(np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)), device=library)
    sizes = []
    for _ in range(4):
        optimizer.zero_grad()
        (net(x) ** 2).sum().backward()
        optimizer.step()
        state = [*net.parameters(), *net.buffers(), *map(xgrad.asarray, optimizer.state[net[0].weight].values())]
        sizes.append([len(t._data.native.dask) for t in state if t.device is library])
    assert sizes[-1] == sizes[0] and max(sizes[0]) < 10
