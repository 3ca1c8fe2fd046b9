"""Captured steps on `cuda`: with what stands for CuPy, cuBLAS and CUDA graphs, and, where there is a GPU, on that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import host_cuda
import host_graph
import xgrad
from xgrad import nn, optim
from xgrad.capturing.captured import CaptureWarning
from xgrad.device import Device
from xgrad.discovery import backend_class, entry_points, open_backend
from xgrad_cupy import CupyBackend, cublas, replay
from xgrad_cupy.kernels import Kernels
from xgrad_cupy.products import Products

needs_compiler = pytest.mark.skipif(host_cuda.COMPILER is None, reason="there is no g++ to compile kernels with")


class GraphBackend(CupyBackend):
    """The backend for CuPy, with what stands for CuPy."""

    library = "host_graph"
    fused = False

    def __init__(self) -> None:
        self._cp = sys.modules["cupy"]
        self._devices = [host_graph.Device()]
        self.array_type = host_graph.Array
        self.xp = host_graph.namespace()
        self.xp.index_add = self.index_add
        self._fused = Kernels(self._cp, self.xp)
        self.kernels = self._fused.table() if self.fused else {}

    def index_of(self, x: Any) -> int:
        return 0

    def describe(self, index: int) -> str:
        return "the host"

    def to_host(self, x: Any) -> np.ndarray:
        return x.get()  # type: ignore[no-any-return]

    def from_host(self, x: np.ndarray, index: int) -> Any:
        return self.xp.asarray(x)

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        raw, key, values = (host_graph.unwrapped(part) for part in (x, key, values))
        host_graph._do(lambda: np.add.at(raw, key, values))
        return x

    def random_bits(self, seed: Any, call: Any, width: int, count: int, index: int) -> Any:
        if self.fused:
            return super().random_bits(seed, call, width, count, index)

        def bits(seed: Any, call: Any) -> np.ndarray:
            from xgrad import philox

            return philox.bits(int(seed), int(call), width, count)

        given = [x if isinstance(x, host_graph.Array) else int(x) for x in (seed, call)]
        return host_graph.launch(bits, *given)


class FusedGraphBackend(GraphBackend):
    fused = True


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[host_graph.Library]:
    """What stands for cuBLAS, with all else in its place."""
    library = host_graph.Library()
    monkeypatch.setitem(sys.modules, "cupy", host_graph.module(library))
    pinned = SimpleNamespace(empty_pinned=np.empty)
    monkeypatch.setitem(sys.modules, "cupyx", pinned)
    monkeypatch.setattr(cublas, "load", partial(cublas.load, library=lambda name: library))
    monkeypatch.setattr(replay, "_handles", {})
    monkeypatch.setattr(Device, "_known", dict(Device._known))
    host_graph.log.clear()
    yield library
    host_graph.flush()
    for cached in (backend_class, open_backend):
        cached.cache_clear()


@pytest.fixture(params=[GraphBackend, pytest.param(FusedGraphBackend, marks=needs_compiler)], ids=["generic", "fused"])
def graphs(
    request: pytest.FixtureRequest,
    library: host_graph.Library,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Device:
    """A device that captures graphs."""
    if host_cuda.folder is None:
        host_cuda.folder = tmp_path_factory.mktemp("kernels")
    monkeypatch.setitem(entry_points(), "graphs", SimpleNamespace(load=lambda: request.param))
    return Device("graphs")


class Trained:
    """A small network that learns, with all that changes from step to step: see `test_training`."""

    def __init__(self, device: Any, capture: bool, momentum: bool = False) -> None:
        xgrad.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 3)).to(device)
        params = self.model.parameters()
        self.optimizer: Any = optim.SGD(params, lr=0.1, momentum=0.9) if momentum else optim.Adam(params, lr=0.01)
        self.device, self.generator = device, np.random.default_rng(0)
        self.step = xgrad.capture(self._step) if capture else self._step
        self.losses: list[Any] = []

    def _step(self, x: xgrad.Tensor, y: xgrad.Tensor) -> xgrad.Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, steps: int, between: Callable[[], Any] = lambda: None) -> None:
        xgrad.manual_seed(1)  # of dropout
        for i in range(steps):
            size = 5 if i % 10 == 9 else 8  # a last batch that is smaller
            x = self.generator.standard_normal((size, 6)).astype(np.float32)
            y = self.generator.integers(0, 3, size)
            self.optimizer.param_groups[0]["lr"] = 0.01 / (1 + i / 10)
            self.losses.append(self.step(xgrad.asarray(x, device=self.device), xgrad.asarray(y, device=self.device)))
            between()

    def weights(self) -> list[np.ndarray]:
        return [p.detach().cpu().numpy() for p in self.model.parameters()]


@pytest.mark.parametrize("momentum", [False, True], ids=["Adam", "SGD"])
def test_training_on_what_stands_for_a_gpu(graphs: Device, momentum: bool) -> None:
    captured, eager = Trained(graphs, True, momentum), Trained(graphs, False, momentum)
    captured.run(40)
    replays = sum(entry[0] == "launch" for entry in host_graph.log)
    assert captured.step.refusal is None and replays >= 30  # type: ignore[attr-defined]
    eager.run(40)
    for mine, theirs in zip(captured.losses, eager.losses, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-5)
    for mine, theirs in zip(captured.weights(), eager.weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_eager_work_in_between_does_no_harm(graphs: Device) -> None:
    captured, eager = Trained(graphs, True), Trained(graphs, False)
    captured.run(60, lambda: [xgrad.full((n,), float("nan"), device=graphs) for n in (8, 48, 24, 128, 16, 3)])
    eager.run(60)
    assert captured.step.refusal is None  # type: ignore[attr-defined]
    for mine, theirs in zip(captured.weights(), eager.weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_300_steps_with_eager_work_in_between(device: str) -> None:
    """The memory that a graph writes to must be nobody else's: what works on it in between would be overwritten."""
    place = Device(device)
    if place.backend.replays is None:
        pytest.skip(f"{device} does not replay")
    kept: list[Any] = []

    def work() -> None:
        kept[:] = [xgrad.full((n,), 7.0, device=place) for n in (8, 48, 24, 128, 16, 3, 1 << 16) for _ in range(4)]
        kept.append(kept[-1] + kept[-2])

    captured, eager = Trained(place, True), Trained(place, False)
    captured.run(300, work)
    assert captured.step.refusal is None  # type: ignore[attr-defined]
    assert all((x == 7).all().item() for x in kept[:-1]) and (kept[-1] == 14).all().item()
    eager.run(300)
    for mine, theirs in zip(captured.losses, eager.losses, strict=True):
        np.testing.assert_allclose(mine.cpu().numpy(), theirs.cpu().numpy(), rtol=1e-3, atol=1e-5)
    for mine, theirs in zip(captured.weights(), eager.weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)
