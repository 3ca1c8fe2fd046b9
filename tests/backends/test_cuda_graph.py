"""Captured steps on `cuda`: with what stands for CuPy, cuBLAS and CUDA graphs, and, where there is a GPU, on that."""

from __future__ import annotations

import gc
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import host_cuda
import host_graph
import xgrad
from xgrad import nn, optim, philox, trees
from xgrad.capturing.captured import CaptureWarning
from xgrad.device import Device
from xgrad.discovery import backend_class, entry_points, open_backend
from xgrad.parity.evaluate import options, tensors
from xgrad.parity.row import Op
from xgrad.parity.table import OPS
from xgrad_cupy import CupyBackend, cublas, replay
from xgrad_cupy.kernels import Kernels
from xgrad_cupy.products import Products

needs_compiler = pytest.mark.skipif(host_cuda.COMPILER is None, reason="there is no g++ to compile kernels with")


class GraphBackend(CupyBackend):
    """The backend for CuPy, with what stands for CuPy."""

    library = "host_graph"
    fused = False
    __module__ = CupyBackend.__module__  # so that lines of this file are the user's

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
            return philox.bits(int(seed), int(call), width, count)

        given = [x if isinstance(x, host_graph.Array) else int(x) for x in (seed, call)]
        return host_graph.launch(bits, *given)


class FusedGraphBackend(GraphBackend):
    fused = True
    __module__ = CupyBackend.__module__


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[host_graph.Library]:
    """What stands for cuBLAS, with all else in its place."""
    library = host_graph.Library()
    monkeypatch.setitem(sys.modules, "cupy", host_graph.module(library))
    pinned = SimpleNamespace(empty_pinned=np.empty)
    monkeypatch.setitem(sys.modules, "cupyx", pinned)
    load = cublas.load
    monkeypatch.setattr(cublas, "load", lambda cp, found=lambda name: library: load(cp, found))
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
) -> Device:
    """A device that captures graphs."""
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
        self.step: Any = xgrad.capture(self._step) if capture else self._step
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
    assert captured.step.refusal is None and replays >= 30
    eager.run(40)
    for mine, theirs in zip(captured.losses, eager.losses, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-5)
    for mine, theirs in zip(captured.weights(), eager.weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_kernels_are_compiled_before_a_capture(graphs: Device) -> None:
    host_graph._compiled.clear()
    Trained(graphs, True).run(3)
    begin = host_graph.log.index("begin")
    captured = host_graph.log[begin : host_graph.log.index("end")]
    assert "compiled" in host_graph.log[:begin] and "compiled" not in captured


def test_eager_work_in_between_does_no_harm(graphs: Device) -> None:
    captured, eager = Trained(graphs, True), Trained(graphs, False)
    captured.run(60, lambda: [xgrad.full((n,), float("nan"), device=graphs) for n in (8, 48, 24, 128, 16, 3)])
    eager.run(60)
    assert captured.step.refusal is None
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
    assert captured.step.refusal is None
    assert all((x == 7).all().item() for x in kept[:-1]) and (kept[-1] == 14).all().item()
    eager.run(300)
    for mine, theirs in zip(captured.losses, eager.losses, strict=True):
        np.testing.assert_allclose(mine.cpu().numpy(), theirs.cpu().numpy(), rtol=1e-3, atol=1e-5)
    for mine, theirs in zip(captured.weights(), eager.weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


def test_memory_is_given_back(plain: Device) -> None:
    """Of steps that are dropped, of those that cannot be captured, and of what it took to capture them."""

    def reserved() -> int:
        gc.collect()
        host_graph.flush()
        return host_graph.reserved - host_graph.default.total_bytes()

    before = reserved()
    trained = Trained(plain, True)
    trained.run(3)
    assert reserved() - before == sum(f.run.nbytes for f in trained.step._ways) > 0
    del trained
    assert reserved() == before
    refused = xgrad.capture(lambda x: xgrad.linalg.solve(x @ x + xgrad.eye(3, device=plain), x))
    with pytest.warns(CaptureWarning, match="NotImplementedError"):
        refused(xgrad.eye(3, device=plain))
    step, _ = captured(lambda x: x + 1, xgrad.ones(3, device=plain))
    del step
    assert reserved() == before and not replay._pools and not replay._retired


def test_plans_of_transforms_stay_as_long_as_the_graph(plain: Device) -> None:
    """CuPy keeps the last sixteen plans; with one goes memory that the kernels in the graph use."""
    host_graph.plans.clear()
    step, _ = captured(lambda x: xgrad.fft.fft(x * 1), xgrad.ones(4, device=plain))
    for n in range(5, 30):
        xgrad.fft.fft(xgrad.ones(n, device=plain))
    assert step(xgrad.ones(4, device=plain)).tolist() == [4, 0, 0, 0]
    assert step.refusal is None


def _layer(x: xgrad.Tensor, w: xgrad.Tensor) -> xgrad.Tensor:
    return xgrad.tanh(x @ w.T) @ w


PURE: dict[str, Callable[..., Any]] = {
    "products": lambda x, w: (x @ w.T, x.T @ x, w @ w.T, (x.reshape(2, 4, 6) @ w.T)),
    "stacks": lambda x, w: (x.reshape(2, 4, 6) @ x.reshape(2, 6, 4), xgrad.tensordot(x, w, axes=([1], [1]))),
    "reductions": lambda x, w: (x.sum(0), x.max(1), x.mean(), (x - x.mean(1, keepdims=True)).std(), x.argmax(1)),
    "indices": lambda x, w: (x[:, 1:3], x[xgrad.argsort(x[:, 0])], xgrad.take(w, xgrad.argmax(x, axis=1) % 3, axis=0)),
    "views": lambda x, w: (x.T, x.reshape(6, 8), xgrad.concat([x, w]), xgrad.where(x > 0, x, 0.0)),
    "a gradient": lambda x, w: xgrad.grad(lambda w: (_layer(x, w) ** 2).sum())(w),
    "complex": lambda x, w: (x * 1j) @ (w.T + 2j),
}


@pytest.mark.parametrize("name", PURE)
def test_pure_functions(name: str, device: str) -> None:
    """Captured equals eager, for arguments that are new each time; results of before stay what they were."""
    place = Device(device)
    if place.backend.replays is None:
        pytest.skip(f"{device} does not replay")
    _compare(PURE[name], place)


@pytest.mark.parametrize("name", PURE)
def test_pure_functions_on_what_stands_for_a_gpu(name: str, plain: Device) -> None:
    _compare(PURE[name], plain)
    assert sum(entry[0] == "launch" for entry in host_graph.log) == 4


def _compare(function: Callable[..., Any], device: Device) -> None:
    rng, step = np.random.default_rng(0), xgrad.capture(function)
    pairs = []
    for _ in range(5):
        given = [
            xgrad.asarray(rng.standard_normal(shape).astype(np.float32), device=device) for shape in ((8, 6), (3, 6))
        ]
        pairs.append((step(*given), function(*given)))
    assert step.refusal is None, step.refusal
    for mine, theirs in pairs:
        for x, y in zip(*(out if isinstance(out, tuple) else (out,) for out in (mine, theirs)), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x.cpu().numpy(), y.cpu().numpy(), rtol=1e-4, atol=1e-5)


def test_memory_stays_flat(device: str) -> None:
    place = Device(device)
    if place.backend.replays is None or "used" not in place.memory():
        pytest.skip(f"{device} does not replay, or tell how much memory is used")
    trained = Trained(place, True)
    found = []
    for steps in (30, 300):
        trained.run(steps)
        trained.losses.clear()
        gc.collect()
        found.append(place.memory())
    before, after = found
    assert after["used"] <= before["used"] + (1 << 14)  # a replay's results alone would be 150 KiB
    assert after["reserved"] <= before["reserved"] + (1 << 20)


#: What no graph can have, through CuPy: solvers wait for the GPU, SciPy's functions are on the host, and shapes that
#: depend on values are nowhere replayed.
NOT_CAPTURED = "cannot be part of a CUDA graph: |depends on values$|the value of a tensor is read$"


@pytest.mark.parametrize("op", [op for op in OPS if not op.name.startswith("special.")], ids=str)
def test_ops_and_their_gradients_on_what_stands_for_a_gpu(op: Op, plain: Device) -> None:
    sample = op.samples[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = options(sample, plain)
        given = [tensors(sample, plain, np.dtype("float32"), False) for _ in range(3)]
        floating = [isinstance(x, xgrad.Tensor) and x.dtype.kind in "fc" for x in given[0]]
        wanted = [op.differentiable and not op.no_derivative and each for each in floating]

        def step(inputs: list[Any]) -> Any:
            xs = [x.detach().requires_grad_() if wants else x for x, wants in zip(inputs, wanted, strict=True)]
            outs = [out for _, out in trees.leaves(op.fn(*xs, **more)) if type(out) is xgrad.Tensor]
            ends, leaves = [out for out in outs if out.requires_grad], [x for x, w in zip(xs, wanted, strict=True) if w]
            arriving = [xgrad.ones_like(out.detach()) for out in ends]
            found = xgrad.autograd.grad(ends, leaves, arriving, allow_unused=True) if ends else ()
            return [out.detach() for out in outs], list(found)

        capturing = xgrad.capture(step)
        for xs in given:
            for (_, mine), (_, theirs) in zip(trees.leaves(capturing(xs)), trees.leaves(step(xs)), strict=True):
                if mine is not None:
                    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)
    launches = sum(entry[0] == "launch" for entry in host_graph.log)
    assert launches == 2 if capturing.refusal is None else re.search(NOT_CAPTURED, capturing.refusal)


# Step by step


def captured(step: Callable[..., Any], *args: Any, times: int = 1) -> Any:
    """Capture a step, and return it after it has been recorded and replayed."""
    step = xgrad.capture(step)
    for _ in range(1 + times):
        result = step(*args)
    assert step.refusal is None, step.refusal
    return step, result


@pytest.fixture
def plain(library: host_graph.Library, monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setitem(entry_points(), "graphs", SimpleNamespace(load=lambda: GraphBackend))
    return Device("graphs")


def test_a_result_is_not_overwritten_by_the_next_replay(plain: Device) -> None:
    step = xgrad.capture(lambda x: (x + 1, (2 * x).T, x.sum()))
    xs = [xgrad.full((2, 3), float(i), device=plain) for i in range(5)]
    results = [step(x) for x in xs]
    for i, (more, double, total) in enumerate(results):
        assert more.tolist() == [[i + 1.0] * 3] * 2 and double.tolist() == [[2.0 * i] * 2] * 3
        assert total.item() == 6 * i and double._data.strides == (4, 12)
    assert sum(entry[0] == "launch" for entry in host_graph.log) == 4


def test_results_that_share_memory_do_so_in_a_replay(plain: Device) -> None:
    def step(x: xgrad.Tensor) -> tuple[xgrad.Tensor, xgrad.Tensor]:
        y = x * 2
        return y, y[1:, 1]

    _, (whole, part) = captured(step, xgrad.ones((3, 2), device=plain))
    assert whole._data.data.mem is part._data.data.mem
    assert whole.tolist() == [[2.0, 2.0]] * 3 and part.tolist() == [2.0, 2.0] and part._data.strides == (8,)


def test_a_view_of_an_argument_is_one_of_that_which_is_given(plain: Device) -> None:
    step, _ = captured(lambda x: x[1:].reshape(2), xgrad.ones(3, device=plain))
    x = xgrad.asarray([1.0, 2.0, 3.0], device=plain)
    view = step(x)
    assert view.tolist() == [2.0, 3.0] and view._data.data.mem is x._data.data.mem


@pytest.mark.parametrize("layout", ["C", "F", "backwards", "apart", "broadcast", "none"])
def test_arguments_of_all_layouts(plain: Device, layout: str) -> None:
    def lay(x: xgrad.Tensor) -> xgrad.Tensor:
        x = xgrad.asarray(x, device=plain)
        match layout:
            case "F":
                return x.T
            case "backwards":
                return x[::-1]
            case "apart":
                return x[:, ::2]
            case "broadcast":
                return xgrad.broadcast_to(x[:1], (4, 4))
            case "none":
                return x[:0]
        return x

    step = xgrad.capture(lambda x: 2 * x)
    for i in range(3):
        x = lay(np.arange(16.0).reshape(4, 4).astype(np.float32) + i)
        np.testing.assert_array_equal(step(x).numpy(), 2 * x.numpy())
    assert sum(entry[0] == "launch" for entry in host_graph.log) == 2


def test_numbers_go_through_a_ring_that_is_waited_for(plain: Device) -> None:
    """Nobody waits for the device in between: what is in a pinned buffer must stay until it has been copied."""
    p = xgrad.zeros(1, device=plain, requires_grad=True)
    optimizer = optim.SGD([p], lr=1.0)

    @xgrad.capture
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach() * 1.0

    x, results = xgrad.ones(1, device=plain), []
    for i in range(30):
        optimizer.param_groups[0]["lr"] = float(i + 1)
        results.append(step(x))
    addresses = {entry[1] for entry in host_graph.log if entry[0] == "numbers"}
    waits = host_graph.log.count("waited for a copy")
    assert step.refusal is None, step.refusal
    assert [r.item() for r in results] == [-(i + 1) * (i + 2) / 2 for i in range(30)]
    assert len(addresses) == replay._SLOTS and waits >= 30 - 3 - 2 * replay._SLOTS


def test_weak_numbers_do_not_promote(plain: Device) -> None:
    for dtype in ("float32", "float64"):
        p = xgrad.ones(3, dtype=dtype, device=plain, requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1)

        def step(x: Any, p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            (p * x).sum().backward()
            optimizer.step()

        step = xgrad.capture(step)
        for _ in range(4):
            step(xgrad.ones(3, dtype=dtype, device=plain))
        (frame,) = step._ways
        assert {cell.dtype for cell in frame.run.cells} == {np.dtype(dtype)} and str(p.dtype) == dtype


REFUSED = "cannot be part of a CUDA graph:"


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (lambda x: xgrad.linalg.solve(x + xgrad.eye(3, device="graphs"), x), f"solve {REFUSED} NotImplementedError: "),
        (lambda x: xgrad.special.i0(x) * 2, f"i0 {REFUSED} RuntimeError: the current stream is capturing"),
        (lambda x: x + xgrad.random.randn(3, device="graphs"), "random numbers are made on the host"),
    ],
    ids=["solve", "through the host", "random numbers of the host"],
)
def test_what_cannot_be_captured_is_refused_and_right(plain: Device, work: Callable[..., Any], why: str) -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        return work(x)  # type: ignore[no-any-return]

    x = xgrad.asarray(np.diag([1.0, 2.0, 4.0]).astype(np.float32), device=plain)
    capturing = xgrad.capture(step)
    xgrad.manual_seed(3)
    line = work.__code__.co_firstlineno
    with pytest.warns(CaptureWarning, match=rf"test_cuda_graph.py:{line}: .*{why}.*runs eagerly"):
        results = [capturing(x)]
    results.append(capturing(x))
    xgrad.manual_seed(3)
    for result in results:
        np.testing.assert_array_equal(result.numpy(), work(x).numpy())
    marks = [entry for entry in host_graph.log if entry in ("begin", "end")]
    assert marks in ([], ["begin", "end"]) and host_graph.get_current_stream().nodes is None


def test_a_step_of_two_streams_is_in_order(plain: Device) -> None:
    step, _ = captured(lambda x: x + 1, xgrad.ones(3, device=plain))
    host_graph.log.clear()
    x, other = xgrad.ones(3, device=plain), host_graph.Stream(non_blocking=True)
    with other:
        step(x)
        step(x)
    step(x)
    found = [entry for entry in host_graph.log if entry[0] in ("wait", "launch")]
    assert found == [("wait", other.ptr, 0), ("launch", other.ptr), ("launch", other.ptr), ("wait", 0, other.ptr),
                     ("launch", 0)]  # fmt: skip


def test_a_graph_follows_parameters_that_move(plain: Device) -> None:
    w = xgrad.ones(2, device=plain)
    step, _ = captured(lambda x: x * w, xgrad.ones(2, device=plain))
    for i in range(4):
        w.data = xgrad.full((2,), float(i), device=plain)
        assert step(xgrad.ones(2, device=plain)).tolist() == [i, i]
    assert host_graph.log.count("begin") == host_graph.log.count("end") == 5


def test_a_graph_that_does_not_pay_is_given_up(plain: Device) -> None:
    w = xgrad.ones(2, device=plain)
    step, _ = captured(lambda x: x * w, xgrad.ones(2, device=plain))

    def move(i: int) -> None:
        w.data = xgrad.full((2,), float(i), device=plain)
        assert step(xgrad.ones(2, device=plain)).tolist() == [i, i]

    for i in range(replay._LINKS + 1):
        move(i)
    with pytest.warns(CaptureWarning, match="move to other memory time and again"):
        move(3)
    assert step.refusal is not None


def test_tf32_is_in_the_graph(plain: Device, library: host_graph.Library) -> None:
    step, _ = captured(lambda x: x @ x, xgrad.ones((3, 3), device=plain))
    before = {call["computed"] for call in library.calls}
    xgrad.set_tf32(True, plain)
    del library.calls[:]
    step(xgrad.ones((3, 3), device=plain))
    assert before == {68} and {call["computed"] for call in library.calls} == {77}


def test_an_argument_that_is_changed_in_place_is(plain: Device) -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        y = x * 1
        x.data = x + 1
        return y

    capturing, x = xgrad.capture(step), xgrad.zeros(2, device=plain)
    for i in range(4):
        assert capturing(x).tolist() == [i, i]
    assert x.tolist() == [4, 4]


def test_the_program_can_be_read(plain: Device) -> None:
    step, _ = captured(lambda x: x * 3, xgrad.ones(2, device=plain))
    (frame,) = step._ways
    program = step.program()
    assert f"memory     {frame.run.nbytes:,} bytes\n" in program and "multiply(arg0, 3)  new  8  test_cuda_g" in program


# Products

XP = host_graph.namespace()


def matrices(shape: tuple[int, ...], dtype: str, lies: str, rng: np.random.Generator) -> host_graph.Array:
    x = rng.standard_normal((*shape, 2)).astype("f8")
    values = (x[..., 0] + 1j * x[..., 1] if dtype.startswith("c") else x[..., 0]).astype(dtype)
    if lies == "T":
        return XP.asarray(values.swapaxes(-1, -2).copy()).swapaxes(-1, -2)
    if lies == "part":
        wide = np.full((*shape[:-1], shape[-1] + 3), np.nan, dtype)
        wide[..., : shape[-1]] = values
        return XP.asarray(wide)[..., : shape[-1]]
    if lies == "apart":
        wide = np.full((*shape[:-1], 2 * shape[-1]), np.nan, dtype)
        wide[..., ::2] = values
        return XP.asarray(wide)[..., ::2]
    return XP.asarray(values)


@pytest.fixture
def multiplying(library: host_graph.Library) -> Iterator[Products]:
    cp = sys.modules["cupy"]
    handle = cublas.Cublas(cublas.load(cp, lambda name: library))
    stream = host_graph.Stream(non_blocking=True)
    with stream:
        workspace = host_graph.alloc(1 << 10)
        handle.use(stream.ptr, workspace.ptr, 1 << 10)
        yield Products(cp, handle)


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 4), (4, 5)), ((1, 4), (4, 5)), ((3, 1), (1, 5)), ((3, 4), (4, 1)), ((1, 1), (1, 1)), ((1, 4), (4, 1)),
    ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((3, 0), (0, 5)),
    ((0, 4), (4, 5)), ((2, 2, 3, 4), (2, 2, 4, 5)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_by_cublas(multiplying: Products, shapes: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for first in ("C", "T", "part", "apart"):
        for second in ("C", "T", "part", "apart"):
            a, b = (
                matrices(shape, dtype, "C" if len(shape) == 1 and lies == "T" else lies, rng)
                for shape, lies in zip(shapes, (first, second), strict=True)
            )
            expected = a.raw @ b.raw
            got = multiplying.matmul(a, b)
            assert got.shape == expected.shape and got.dtype == expected.dtype
            np.testing.assert_allclose(got.raw, expected, rtol=1e-5, atol=1e-5)
            for lies in ("C", "T", "part") if len(expected.shape) > 1 else ("C",):
                out = matrices(expected.shape, dtype, lies, rng)
                assert multiplying.matmul(a, b, out=out) is out
                np.testing.assert_allclose(out.raw, expected, rtol=1e-5, atol=1e-5)


def test_views_are_flags_not_copies(multiplying: Products, library: host_graph.Library) -> None:
    rng = np.random.default_rng(0)
    pool = host_graph.MemoryPool()
    for lies, flags in ((("C", "C"), (0, 0)), (("T", "C"), (0, 1)), (("C", "T"), (1, 0)), (("T", "T"), (1, 1))):
        a, b = matrices((3, 4), "f4", lies[0], rng), matrices((4, 5), "f4", lies[1], rng)
        out = host_graph.Array((3, 5), "f4")
        with host_graph.using_allocator(pool.malloc):
            multiplying.matmul(a, b, out)
        assert library.calls[-1]["flags"] == flags and pool.total == 0


def test_a_product_into_its_own_operand(multiplying: Products) -> None:
    a = matrices((3, 3), "f8", "C", np.random.default_rng(0))
    expected = a.raw @ a.raw
    multiplying.matmul(a, a, out=a)
    np.testing.assert_allclose(a.raw, expected)


def test_sums_of_products_over_axes(multiplying: Products) -> None:
    rng = np.random.default_rng(0)
    a, b = matrices((2, 3, 4), "f8", "C", rng), matrices((4, 3, 5), "f8", "C", rng)
    for axes in (([1, 2], [1, 0]), ([2], [0]), ([-1], [-3]), 1, 0):
        got = multiplying.tensordot(a, b, axes=axes)
        np.testing.assert_allclose(got.raw, np.tensordot(a.raw, b.raw, axes=axes))  # type: ignore[arg-type]
    got = multiplying.vecdot(a, a)
    np.testing.assert_allclose(got.raw, (a.raw * a.raw).sum(-1))


def test_integers_are_left_to_cupy(multiplying: Products) -> None:
    x = host_graph.namespace().asarray(np.arange(4).reshape(2, 2))
    multiply = multiplying.stands_for(host_graph.namespace().matmul)
    assert multiply(x, x).raw.tolist() == [[2, 3], [6, 11]]


@pytest.mark.parametrize(("dtype", "computed"), [("f2", 68), ("f4", 77), ("c8", 77), ("f8", 70), ("c16", 70)])
def test_tf32_is_for_what_it_is_for_in_cupy(
    multiplying: Products, library: host_graph.Library, dtype: str, computed: int
) -> None:
    x = matrices((2, 2), dtype, "C", np.random.default_rng(0))
    multiplying._cublas.tf32 = True
    multiplying.matmul(x, x)
    assert library.calls[-1]["computed"] == computed


def test_a_status_of_cublas_is_an_error(library: host_graph.Library) -> None:
    handle = cublas.Cublas(cublas.load(sys.modules["cupy"], lambda name: library))
    x = matrices((2, 2), "f4", "C", np.random.default_rng(0))
    with pytest.raises(cublas.CublasError, match="cublasGemmEx returned status 1"):  # no stream, no workspace
        handle.gemm(x, x, x)


def test_cublas_is_looked_for_under_its_names(library: host_graph.Library) -> None:
    names = []

    def missing(name: str) -> Any:
        names.append(name)
        raise OSError(name)

    with pytest.raises(cublas.CublasError, match=r"cuBLAS is not found: expected one of libcublas\.so\.13, "):
        cublas.load(sys.modules["cupy"], missing)
    assert names == ["libcublas.so.13", "cublas64_13.dll", "libcublas.so"]
