"""Captured steps on `cuda`: on a stand-in for CuPy, cuBLAS and CUDA graphs, and on a GPU where there is one.

Not yet run on a GPU.
"""

from __future__ import annotations

import gc
import itertools
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
from host_graph import launches
from xgrad import nn, optim
from xgrad.backend import philox
from xgrad.backend.device import Device
from xgrad.capture import CaptureWarning
from xgrad.capture.tracing_device import TracingDevice
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase
from xgrad.parity.run_op import options, tensors
from xgrad.support import trees
from xgrad_cupy import CupyBackend, cublas, cuda_graph
from xgrad_cupy.fused_kernels import Kernels
from xgrad_cupy.matmul import Products
from xgrad_cupy.pools import pools

needs_compiler = pytest.mark.skipif(host_cuda.COMPILER is None, reason="there is no g++ to compile kernels with")


class GraphBackend(CupyBackend):
    """The backend for CuPy, on the stand-in for CuPy."""

    library = "host_graph"
    fused = False
    __module__ = CupyBackend.__module__  # so that lines of this file are the user's

    def __init__(self) -> None:
        self._cp, self._empty_pinned = sys.modules["cupy"], np.empty
        self.devices = [host_graph.Device()]
        self.array_type = host_graph.Array
        self.xp = host_graph.namespace()
        self.xp.index_add = self.index_add
        self._fused = Kernels(self._cp, self.xp)
        self.kernels = self._fused.table() if self.fused else {}

    def describe(self, index: int) -> str:
        return "the host"

    def random_bits(self, seed: Any, call: Any, width: int, count: int, index: int) -> Any:
        if self.fused:
            return super().random_bits(seed, call, width, count, index)
        args = [x if isinstance(x, host_graph.Array) else int(x) for x in (seed, call)]
        return host_graph.launch(lambda seed, call: philox.bits(int(seed), int(call), width, count), *args)


class FusedGraphBackend(GraphBackend):
    fused = True
    __module__ = CupyBackend.__module__


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[host_graph.Library]:
    """The stand-in for cuBLAS; those for CuPy and CUDA are installed."""
    library = host_graph.Library()
    monkeypatch.setitem(sys.modules, "cupy", host_graph.module())
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(empty_pinned=np.empty))
    load = cublas.load
    monkeypatch.setattr(cublas, "load", lambda cp, find=lambda name: library: load(cp, find))
    monkeypatch.setattr(cuda_graph, "_handles", {})
    monkeypatch.setattr(TracingDevice, "_devices", {})
    host_graph.log.clear()
    yield library
    host_graph.flush()


@pytest.fixture(params=[GraphBackend, pytest.param(FusedGraphBackend, marks=needs_compiler)], ids=["generic", "fused"])
def graphs(request: pytest.FixtureRequest, library: host_graph.Library, install: Any) -> Device:
    """A device that captures graphs, without and with fused kernels."""
    install("graphs", lambda: request.param)
    return Device("graphs")


@pytest.fixture
def plain(library: host_graph.Library, install: Any) -> Device:
    """A device that captures graphs, without fused kernels."""
    install("graphs", lambda: GraphBackend)
    return Device("graphs")


def replaying(name: str) -> Device:
    """Return a device that replays captured steps."""
    device = Device(name)
    if device.backend.executor is None:
        pytest.skip(f"{name} does not replay")
    return device


def assert_close(results: list[Any], expected: list[Any], rtol: float = 1e-4, atol: float = 1e-5) -> None:
    for x, y in zip(results, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x.cpu().numpy(), y.cpu().numpy(), rtol=rtol, atol=atol)


class Training:
    """Training of a small network: dropout, a decaying learning rate, and a smaller last batch."""

    def __init__(self, device: Any, capture: bool, momentum: bool = False) -> None:
        xgrad.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 3)).to(device)
        params = self.model.parameters()
        self.optimizer: Any = optim.SGD(params, lr=0.1, momentum=0.9) if momentum else optim.Adam(params, lr=0.01)
        self.device, self.generator = device, np.random.default_rng(0)
        self.step: Any = xgrad.capture(self._step) if capture else self._step

    def _step(self, x: xgrad.Tensor, y: xgrad.Tensor) -> xgrad.Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def batch(self, i: int) -> tuple[xgrad.Tensor, xgrad.Tensor]:
        size = 5 if i % 10 == 9 else 8
        x = self.generator.standard_normal((size, 6)).astype(np.float32)
        y = self.generator.integers(0, 3, size)
        return xgrad.asarray(x, device=self.device), xgrad.asarray(y, device=self.device)

    def run(self, steps: int, between: Callable[[], Any] = lambda: None) -> list[xgrad.Tensor]:
        """Return the losses of some steps."""
        xgrad.manual_seed(1)  # of dropout
        losses = []
        for i in range(steps):
            self.optimizer.param_groups[0]["lr"] = 0.01 / (1 + i / 10)
            losses.append(self.step(*self.batch(i)))
            between()
        return losses

    def weights(self) -> list[xgrad.Tensor]:
        return [p.detach() for p in self.model.parameters()]


# Training runs


@pytest.mark.parametrize("momentum", [False, True], ids=["Adam", "SGD"])
def test_training_on_stand_in_equals_eager(graphs: Device, momentum: bool) -> None:
    """Also with eager work between replays, which must not get memory of the graph."""
    captured, eager = Training(graphs, True, momentum), Training(graphs, False, momentum)
    losses = captured.run(40, lambda: [xgrad.full((n,), float("nan"), device=graphs) for n in (8, 48, 24, 128, 16, 3)])
    assert captured.step.refusal is None and launches() >= 30
    assert_close(losses, eager.run(40), rtol=2e-5, atol=0)
    assert_close(captured.weights(), eager.weights(), atol=1e-6)


def test_kernels_are_compiled_before_capture(graphs: Device) -> None:
    host_graph._compiled.clear()
    Training(graphs, True).run(3)
    begin = host_graph.log.index("begin")
    captured = host_graph.log[begin : host_graph.log.index("end")]
    assert "compiled" in host_graph.log[:begin] and "compiled" not in captured


def test_300_steps_with_eager_work_between_them_equal_eager(device: str) -> None:
    on = replaying(device)
    kept: list[Any] = []

    def work() -> None:
        kept[:] = [xgrad.full((n,), 7.0, device=on) for n in (8, 48, 24, 128, 16, 3, 1 << 16) for _ in range(4)]
        kept.append(kept[-1] + kept[-2])

    captured, eager = Training(on, True), Training(on, False)
    losses = captured.run(300, work)
    assert captured.step.refusal is None
    assert all((x == 7).all().item() for x in kept[:-1]) and (kept[-1] == 14).all().item()
    assert_close(losses, eager.run(300), rtol=1e-3)
    assert_close(captured.weights(), eager.weights(), rtol=1e-3, atol=1e-4)


def test_memory_stays_constant_in_training(device: str) -> None:
    on = replaying(device)
    if "used" not in on.memory():
        pytest.skip(f"{device} does not report its memory")
    training, figures = Training(on, True), []
    for steps in (30, 300):
        training.run(steps)
        gc.collect()
        figures.append(on.memory())
    before, after = figures
    assert before["reserved"] >= sum(program.executor.nbytes for program in training.step._programs.values()) > 0
    assert after["used"] <= before["used"] + (1 << 14)  # the results of the replays have 150 KiB
    assert after["reserved"] <= before["reserved"] + (1 << 20)


def test_memory_of_graphs_is_counted_and_freed(plain: Device) -> None:
    """That of dropped steps, of failed captures, and of warm-ups; with workspaces of cuBLAS."""

    def reserved() -> int:
        gc.collect()
        host_graph.flush()
        graphs = host_graph.reserved - host_graph.default.total_bytes()
        assert plain.memory()["reserved"] - host_graph.default.total_bytes() == graphs - dropped
        return graphs

    gc.collect()
    host_graph.flush()
    dropped = host_graph.reserved - plain.memory()["reserved"]  # memory of pools of other tests
    before = reserved()
    training = Training(plain, True)
    training.run(3)
    assert reserved() - before == sum(p.executor.nbytes for p in training.step._programs.values()) > 0
    del training
    assert reserved() == before
    refused = xgrad.capture(lambda x: xgrad.linalg.solve(x @ x + xgrad.eye(3, device=plain), x))
    with pytest.warns(CaptureWarning, match="NotImplementedError"):
        refused(xgrad.eye(3, device=plain))
    step, _ = captured(lambda x: x + 1, xgrad.ones(3, device=plain))
    del step
    assert reserved() == before and not pools()


# Functions


def _layer(x: xgrad.Tensor, w: xgrad.Tensor) -> xgrad.Tensor:
    return xgrad.tanh(x @ w.T) @ w


PURE: dict[str, Callable[..., Any]] = {
    "products": lambda x, w: (x @ w.T, x.T @ x, w @ w.T, (x.reshape(2, 4, 6) @ w.T)),
    "stacks": lambda x, w: (x.reshape(2, 4, 6) @ x.reshape(2, 6, 4), xgrad.tensordot(x, w, axes=([1], [1]))),
    "reductions": lambda x, w: (x.sum(0), x.max(1), x.mean(), (x - x.mean(1, keepdims=True)).std(), x.argmax(1)),
    "indices": lambda x, w: (x[:, 1:3], x[xgrad.argsort(x[:, 0])], xgrad.take(w, xgrad.argmax(x, axis=1) % 3, axis=0)),
    "views": lambda x, w: (x.T, x.reshape(6, 8), xgrad.concat([x, w]), xgrad.where(x > 0, x, 0.0)),
    "a gradient": lambda x, w: (xgrad.grad(lambda w: (_layer(x, w) ** 2).sum())(w),),
    "complex": lambda x, w: ((x * 1j) @ (w.T + 2j),),
    "joins of many arrays": lambda x, w: (
        xgrad.concat([w] * 9),
        xgrad.stack([x] * 9, axis=1),
        xgrad.grad(lambda x: sum((row**3).sum() for row in xgrad.unstack(xgrad.concat([x, w]))))(x),
    ),
}


#: Those with matrix products, for which a graph has another handle of cuBLAS: see docs/capture.md.
TO_ROUNDING = {"products", "stacks", "a gradient", "complex"}


@pytest.mark.parametrize("name", PURE)
def test_replayed_function_equals_eager(name: str, device: str) -> None:
    _compare(name, replaying(device))


@pytest.mark.parametrize("name", PURE)
def test_replayed_function_on_stand_in_equals_eager(name: str, plain: Device) -> None:
    _compare(name, plain)
    assert launches() == 4


def _compare(name: str, device: Device) -> None:
    """Compare replays with eager calls, for new arguments each time; earlier results must not change."""
    rng, step, results, expected = np.random.default_rng(0), xgrad.capture(PURE[name]), [], []
    for _ in range(5):
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((8, 6), (3, 6))]
        args = [xgrad.asarray(x, device=device) for x in arrays]
        results += step(*args)
        expected += PURE[name](*args)
    assert step.refusal is None, step.refusal
    assert_close(results, expected, *[] if name in TO_ROUNDING else (0, 0))


#: Why ops are not captured: solvers wait for the GPU, SciPy's functions run on the host, shapes depend on values.
NOT_CAPTURED = "cannot be part of a CUDA graph: |depends on values$|the value of a tensor is read$"


@pytest.mark.parametrize("op", [op for op in OP_CASES if not op.name.startswith("special.")], ids=str)
def test_op_and_its_gradient_on_stand_in_equal_eager(op: OpCase, plain: Device) -> None:
    sample = op.samples[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = options(sample, plain)
        calls = [tensors(sample, plain, np.dtype("float32"), False) for _ in range(3)]
        floating = [isinstance(x, xgrad.Tensor) and x.dtype.kind in "fc" for x in calls[0]]
        wanted = [op.differentiable and not op.no_derivative and each for each in floating]

        def step(inputs: list[Any]) -> Any:
            xs = [x.detach().requires_grad_() if wants else x for x, wants in zip(inputs, wanted, strict=True)]
            outs = [out for _, out in trees.leaves(op.fn(*xs, **more)) if type(out) is xgrad.Tensor]
            ends, leaves = [out for out in outs if out.requires_grad], [x for x, w in zip(xs, wanted, strict=True) if w]
            arriving = [xgrad.ones_like(out.detach()) for out in ends]
            gradients = xgrad.autograd.grad(ends, leaves, arriving, allow_unused=True) if ends else ()
            return [out.detach() for out in outs], list(gradients)

        capturing = xgrad.capture(step)
        for xs in calls:
            results, expected = ([x for _, x in trees.leaves(function(xs))] for function in (capturing, step))
            missing = [x is None for x in results]
            assert missing == [x is None for x in expected]
            assert_close(*([x for x in values if x is not None] for values in (results, expected)))
    assert launches() == 2 if capturing.refusal is None else re.search(NOT_CAPTURED, capturing.refusal)


# Single properties


def captured(function: Callable[..., Any], *args: Any) -> Any:
    """Return a captured function after a trace and a replay, and its last result."""
    step = xgrad.capture(function)
    for _ in range(2):
        result = step(*args)
    assert step.refusal is None, step.refusal
    return step, result


def test_result_is_not_overwritten_by_next_replay(plain: Device) -> None:
    step = xgrad.capture(lambda x: (x + 1, (2 * x).T, x.sum()))
    results = [step(xgrad.full((2, 3), float(i), device=plain)) for i in range(5)]
    for i, (more, double, total) in enumerate(results):
        assert more.tolist() == [[i + 1.0] * 3] * 2 and double.tolist() == [[2.0 * i] * 2] * 3
        assert total.item() == 6 * i and double._data.strides == (4, 12)
    assert launches() == 4


def test_results_that_share_memory_share_it_in_replay(plain: Device) -> None:
    def step(x: xgrad.Tensor) -> tuple[xgrad.Tensor, xgrad.Tensor]:
        y = x * 2
        return y, y[1:, 1]

    _, (whole, part) = captured(step, xgrad.ones((3, 2), device=plain))
    assert whole._data.data.mem is part._data.data.mem
    assert whole.tolist() == [[2.0, 2.0]] * 3 and part.tolist() == [2.0, 2.0] and part._data.strides == (8,)


def test_view_of_argument_is_view_of_new_argument(plain: Device) -> None:
    step, _ = captured(lambda x: x[1:].reshape(2), xgrad.ones(3, device=plain))
    x = xgrad.asarray([1.0, 2.0, 3.0], device=plain)
    view = step(x)
    assert view.tolist() == [2.0, 3.0] and view._data.data.mem is x._data.data.mem


def test_view_of_replaced_state_follows_it(plain: Device) -> None:
    w = xgrad.zeros(3, device=plain)

    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        view = w[1:]
        w.data = w + x
        return view

    capturing = xgrad.capture(step)
    results = [capturing(xgrad.ones(3, device=plain)) for _ in range(5)]
    assert capturing.refusal is None and capturing.recordings == 1
    assert [x.tolist() for x in results] == [[5, 5]] * 5 and w.tolist() == [5.0] * 3


def test_argument_with_new_data_has_it(plain: Device) -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        y = x * 1
        x.data = x + 1
        return y

    capturing, x = xgrad.capture(step), xgrad.zeros(2, device=plain)
    for i in range(4):
        assert capturing(x).tolist() == [i, i]
    assert x.tolist() == [4, 4]


LAYOUTS: dict[str, Callable[[xgrad.Tensor], xgrad.Tensor]] = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "reversed": lambda x: x[::-1],
    "gaps": lambda x: x[:, ::2],
    "broadcast": lambda x: xgrad.broadcast_to(x[:1], (4, 4)),
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_argument_of_any_layout_is_copied(plain: Device, layout: Callable[[xgrad.Tensor], xgrad.Tensor]) -> None:
    step = xgrad.capture(lambda x: 2 * x)
    for i in range(3):
        x = layout(xgrad.asarray(np.arange(16.0).reshape(4, 4).astype(np.float32) + i, device=plain))
        np.testing.assert_array_equal(step(x).numpy(), 2 * x.numpy())
    assert launches() == 2


def test_indexing_by_array_after_update_is_captured(device: str) -> None:
    on = replaying(device)
    p = xgrad.zeros(4, device=on, requires_grad=True)
    optimizer = optim.SGD([p], lr=1.0)

    @xgrad.capture
    def step(x: xgrad.Tensor, order: xgrad.Tensor) -> tuple[xgrad.Tensor, xgrad.Tensor]:
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return x[order], p.detach()[order]

    order = np.asarray([2, 0, 3, 0])
    for i in range(4):
        x = np.arange(4.0, dtype=np.float32) + i
        rows, updated = step(xgrad.asarray(x, device=on), xgrad.asarray(order, device=on))
        np.testing.assert_array_equal(rows.cpu().numpy(), x[order])
        np.testing.assert_array_equal(updated.cpu().numpy(), p.detach().cpu().numpy()[order])
    assert step.refusal is None and step.recordings == 1


def test_moments_updated_in_place_and_then_replaced_equal_eager(graphs: Device) -> None:
    """A fused kernel writes to moments, and a GradScaler replaces them by a choice; also arrays taken before it."""
    runs = []
    for capture in (lambda step: step, xgrad.capture):
        p = xgrad.ones(4, device=graphs, requires_grad=True)
        optimizer, scaler = optim.Adam([p], lr=0.1), xgrad.amp.GradScaler(graphs, init_scale=4.0, growth_interval=2)

        @capture
        def step(x: xgrad.Tensor, p: Any = p, optimizer: Any = optimizer, scaler: Any = scaler) -> None:
            optimizer.zero_grad()
            scaler.scale((p * x).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

        values = []
        for i in range(6):
            taken = optimizer.state[p]["exp_avg"] if i else p.detach()._data
            step(xgrad.asarray([1.0, 2.0, 3.0, float("inf") if i == 3 else 4.0], device=graphs))
            values += [taken.get().tolist(), p.tolist()]
        runs.append(repr(values))
    assert step.refusal is None and launches() >= 4
    assert runs[0] == runs[1]


def test_buffer_of_numbers_is_reused_after_its_copy(plain: Device) -> None:
    """Nothing waits for the device between steps: a pinned buffer must not change until it is copied."""
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
    assert len(addresses) == cuda_graph._BUFFERS and waits >= 30 - 3 - 2 * cuda_graph._BUFFERS


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_do_not_promote(dtype: str, plain: Device) -> None:
    p = xgrad.ones(3, dtype=dtype, device=plain, requires_grad=True)
    optimizer = optim.Adam([p], lr=0.1)

    @xgrad.capture
    def step(x: xgrad.Tensor) -> None:
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()

    for _ in range(4):
        step(xgrad.ones(3, dtype=dtype, device=plain))
    (program,) = step._programs.values()
    operands = program.executor._interpreter.operands  # type: ignore[attr-defined]
    assert {x.dtype for x in operands} == {np.dtype(dtype)} and str(p.dtype) == dtype


def test_seed_of_generator_made_in_step_is_constant(graphs: Device) -> None:
    _, result = captured(
        lambda x: x + xgrad.random.Generator(1 << 63).rand(3, device=graphs), xgrad.zeros(3, device=graphs)
    )
    assert result.tolist() == xgrad.random.Generator(1 << 63).rand(3).tolist()


def test_plans_of_transforms_live_as_long_as_graph(plain: Device) -> None:
    """CuPy caches sixteen plans; memory that the graph uses is freed with a plan."""
    host_graph.plans.clear()
    step, _ = captured(lambda x: xgrad.fft.fft(x * 1), xgrad.ones(4, device=plain))
    for n in range(5, 30):
        xgrad.fft.fft(xgrad.ones(n, device=plain))
    assert step(xgrad.ones(4, device=plain)).tolist() == [4, 0, 0, 0]
    assert step.refusal is None


JOINS: dict[str, Callable[..., Any]] = {
    "rows": lambda parts: xgrad.concat(parts),
    "columns": lambda parts: xgrad.concat(parts, axis=-1),
    "of different lengths": lambda parts: xgrad.concat([part[i % 3 :] for i, part in enumerate(parts)]),
    "flat": lambda parts: xgrad.concat(parts, axis=None),
    "of two dtypes": lambda parts: xgrad.concat([*parts, xgrad.ones((2, 4), dtype="float64", device="graphs")]),
    "stack": lambda parts: xgrad.stack(parts),
    "stack along the last axis": lambda parts: xgrad.stack(parts, axis=-1),
    "the gradient of unstack": lambda parts: xgrad.grad(lambda x: sum((y**2).sum() for y in xgrad.unstack(x, axis=1)))(
        xgrad.concat(parts[:3], axis=1)
    ),
}


@pytest.mark.parametrize("count", [9, 30])
@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_join_of_many_arrays_is_captured(join: Callable[..., Any], count: int, plain: Device) -> None:
    """CuPy joins more than eight arrays by a list of their addresses, which no graph can copy from the host."""

    def step(x: xgrad.Tensor) -> Any:
        return join([x * i for i in range(count)])

    rng, capturing = np.random.default_rng(0), xgrad.capture(step)
    for _ in range(3):
        x = xgrad.asarray(rng.standard_normal((3, 4)), device=plain)
        result, expected = capturing(x), step(x)
        assert result.dtype == expected.dtype and result.numpy().tobytes() == expected.numpy().tobytes()
    assert capturing.refusal is None, capturing.refusal
    assert launches() == 2


def test_stand_in_refuses_join_of_nine_arrays_in_capture() -> None:
    parts = [host_graph.Array((2,), "f4") for _ in range(9)]
    with host_graph.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        for join in (XP.concat, XP.stack):
            assert join(parts[:8]).shape
            with pytest.raises(RuntimeError, match="transfers from and to the host are disallowed"):
                join(parts)


# Refusals and failures

REFUSED = "cannot be part of a CUDA graph:"


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda x: xgrad.linalg.solve(x + xgrad.eye(3, device="graphs"), x), f"solve {REFUSED} NotImplementedError: "),
        (lambda x: xgrad.special.i0(x) * 2, f"i0 {REFUSED} RuntimeError: the current stream is capturing"),
        (lambda x: x + xgrad.random.randn(3, device="graphs"), "random numbers are made on the host"),
    ],
    ids=["solve", "through the host", "random numbers of the host"],
)
def test_refused_step_runs_eagerly_with_right_result(plain: Device, work: Callable[..., Any], reason: str) -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        return work(x)  # type: ignore[no-any-return]

    x = xgrad.asarray(np.diag([1.0, 2.0, 4.0]).astype(np.float32), device=plain)
    capturing = xgrad.capture(step)
    xgrad.manual_seed(3)
    line = work.__code__.co_firstlineno
    with pytest.warns(CaptureWarning, match=rf"test_cuda_graph.py:{line}: .*{reason}.*runs eagerly"):
        results = [capturing(x)]
    results.append(capturing(x))
    xgrad.manual_seed(3)
    for result in results:
        np.testing.assert_array_equal(result.numpy(), work(x).numpy())
    marks = [entry for entry in host_graph.log if entry in ("begin", "end")]
    assert marks in ([], ["begin", "end"]) and not host_graph.capturing()


def test_error_of_launch_runs_step_eagerly(plain: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(graph: Any, stream: Any) -> None:
        raise RuntimeError("cudaErrorUnknown")

    captured, eager = Training(plain, True), Training(plain, False)
    monkeypatch.setattr(host_graph.Graph, "launch", fail)
    with pytest.warns(CaptureWarning, match="a replay failed: RuntimeError: cudaErrorUnknown"):
        losses = captured.run(5)
    assert_close(losses, eager.run(5))


@pytest.mark.parametrize("launched", [False, True])
def test_interrupt_leaves_state_before_or_after_step(
    launched: bool, plain: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of before if the graph was not launched, else that after the whole step."""
    copy = host_graph.Pointer.copy_from_device_async

    def interrupted(pointer: Any, *args: Any) -> None:
        if ("launch", 0) in host_graph.log or not launched:
            raise KeyboardInterrupt
        copy(pointer, *args)

    captured, eager = Training(plain, True), Training(plain, False)
    for training in (captured, eager):
        training.run(4)
    for _ in range(3):
        host_graph.log.clear()
        with monkeypatch.context() as patch:
            patch.setattr(host_graph.Pointer, "copy_from_device_async", interrupted)
            with pytest.raises(KeyboardInterrupt):
                captured.run(1)
        if launched:
            eager.run(1)
        else:
            eager.batch(0)
        assert_close(captured.run(2), eager.run(2), rtol=1e-5)
    assert captured.step.refusal is None


class TestOutOfMemory:
    """A capture without enough memory frees CuPy's default pool, and is tried once more."""

    @staticmethod
    def _step(x: xgrad.Tensor) -> xgrad.Tensor:
        return (x * 2 + 1).sum()

    def _memory_of_capture(self, x: xgrad.Tensor, monkeypatch: pytest.MonkeyPatch) -> int:
        """Return the largest memory of a capture of the step in bytes, that of the warm-up included."""
        step, _ = captured(self._step, x)
        executor = next(iter(step._programs.values())).executor
        executor.release()
        before, sizes, reserve = host_graph.reserved, [0], host_graph._reserve

        def count(nbytes: int) -> None:
            reserve(nbytes)
            sizes.append(host_graph.reserved - before)

        with monkeypatch.context() as patch:
            patch.setattr(host_graph, "_reserve", count)
            executor.link([])
        return max(sizes)

    @staticmethod
    def _leave(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Limit the device to its present memory and some bytes more."""
        gc.collect()
        host_graph.flush()
        host_graph.default.free_all_blocks()
        host_graph.log.clear()
        monkeypatch.setattr(host_graph, "capacity", host_graph.reserved + free)

    def test_second_try_uses_memory_of_default_pool(self, plain: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        x = xgrad.ones(1 << 16, device=plain)
        self._leave(self._memory_of_capture(x, monkeypatch) + (1 << 12), monkeypatch)
        step = xgrad.capture(self._step)
        assert [step(x).item() for _ in range(3)] == [3 << 16] * 3  # the trace leaves blocks in the default pool
        assert step.refusal is None and host_graph.log.count("freed") == 1

    def test_step_runs_eagerly_after_two_tries(self, plain: Device, monkeypatch: pytest.MonkeyPatch) -> None:
        x = xgrad.ones(1 << 16, device=plain)
        self._leave(2 << 20, monkeypatch)
        step = xgrad.capture(self._step)
        with pytest.warns(CaptureWarning, match="CUDA does not capture the step: OutOfMemoryError: Out of memory"):
            assert step(x).item() == 3 << 16
        assert step(x).item() == 3 << 16 and host_graph.log.count("freed") == 1 and not pools()


# Graphs


def test_replays_on_two_streams_are_in_order(plain: Device) -> None:
    step, _ = captured(lambda x: x + 1, xgrad.ones(3, device=plain))
    host_graph.log.clear()
    x, other = xgrad.ones(3, device=plain), host_graph.Stream(non_blocking=True)
    with other:
        step(x)
        step(x)
    step(x)
    entries = [entry for entry in host_graph.log if entry[0] in ("wait", "launch")]
    launch, others = ("launch", other.ptr), ("wait", other.ptr, 0)
    assert entries == [others, launch, launch, ("wait", 0, other.ptr), ("launch", 0)]


def test_graph_is_captured_again_when_state_moves(plain: Device) -> None:
    w = xgrad.ones(2, device=plain)
    step, _ = captured(lambda x: x * w, xgrad.ones(2, device=plain))

    def move(i: int) -> None:
        w.data = xgrad.full((2,), float(i), device=plain)
        assert step(xgrad.ones(2, device=plain)).tolist() == [i, i]

    for i in range(cuda_graph._FREE + 1):
        move(i)
        assert host_graph.log.count("begin") == host_graph.log.count("end") == i + 2
    with pytest.warns(CaptureWarning, match="move to other memory again and again"):
        move(3)
    assert step.refusal is not None


def test_graph_is_captured_again_when_tf32_changes(plain: Device, library: host_graph.Library) -> None:
    step, _ = captured(lambda x: x @ x, xgrad.ones((3, 3), device=plain))
    before = {call["computed"] for call in library.calls}
    xgrad.set_tf32(True, plain)
    del library.calls[:]
    step(xgrad.ones((3, 3), device=plain))
    assert before == {68} and {call["computed"] for call in library.calls} == {77}


def test_printed_program_has_memory_and_calls(plain: Device) -> None:
    step, _ = captured(lambda x: x * 3, xgrad.ones(2, device=plain))
    (program,) = step._programs.values()
    text = step.program()
    assert f"{program.executor.nbytes:,} bytes" in text
    assert "multiply(arg0, 3)" in text and "test_cuda_graph.py:" in text


# Products

XP = host_graph.namespace()


def matrices(shape: tuple[int, ...], dtype: str, layout: str, rng: np.random.Generator) -> host_graph.Array:
    x = rng.standard_normal((*shape, 2)).astype("f8")
    values = (x[..., 0] + 1j * x[..., 1] if np.dtype(dtype).kind == "c" else x[..., 0]).astype(dtype)
    if layout == "T" and len(shape) > 1:
        return XP.asarray(values.swapaxes(-1, -2).copy()).swapaxes(-1, -2)
    n = shape[-1]
    wide, key = {"part": (n + 3, slice(n)), "gaps": (2 * n, slice(None, None, 2))}.get(layout, (n, slice(None)))
    padded = np.full((*shape[:-1], wide), np.nan, dtype)
    padded[..., key] = values
    return XP.asarray(padded)[..., key]


@pytest.fixture
def products(library: host_graph.Library) -> Iterator[Products]:
    cp = sys.modules["cupy"]
    handle = cublas.Cublas(cublas.load(cp, lambda name: library))
    with host_graph.Stream(non_blocking=True) as stream:
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
def test_product_by_cublas_is_that_of_numpy(products: Products, shapes: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for layouts in itertools.product(("C", "T", "part", "gaps"), repeat=2):
        a, b = (matrices(shape, dtype, layout, rng) for shape, layout in zip(shapes, layouts, strict=True))
        expected = a.raw @ b.raw
        result = products.matmul(a, b)
        assert result.shape == expected.shape and result.dtype == expected.dtype
        np.testing.assert_allclose(result.raw, expected, rtol=1e-5, atol=1e-5)
        for layout in ("C", "T", "part") if expected.ndim else ("C",):
            out = matrices(expected.shape, dtype, layout, rng) if expected.ndim else host_graph.Array((), dtype)
            assert products.matmul(a, b, out=out) is out
            np.testing.assert_allclose(out.raw, expected, rtol=1e-5, atol=1e-5)


def test_transposed_views_are_flags_without_copies(products: Products, library: host_graph.Library) -> None:
    rng, pool = np.random.default_rng(0), host_graph.MemoryPool()
    for first, second in itertools.product("CT", repeat=2):
        a, b = matrices((3, 4), "f4", first, rng), matrices((4, 5), "f4", second, rng)
        out = host_graph.Array((3, 5), "f4")
        with host_graph.using_allocator(pool.malloc):
            products.matmul(a, b, out)
        assert library.calls[-1]["flags"] == (second == "T", first == "T") and pool.total == 0


def test_product_into_its_operand(products: Products) -> None:
    a = matrices((3, 3), "f8", "C", np.random.default_rng(0))
    expected = a.raw @ a.raw
    products.matmul(a, a, out=a)
    np.testing.assert_allclose(a.raw, expected)


def test_tensordot_and_vecdot_are_those_of_numpy(products: Products) -> None:
    rng = np.random.default_rng(0)
    a, b = matrices((2, 3, 4), "f8", "C", rng), matrices((4, 3, 5), "f8", "C", rng)
    for axes in (([1, 2], [1, 0]), ([2], [0]), ([-1], [-3]), 1, 0):
        result = products.tensordot(a, b, axes=axes)
        np.testing.assert_allclose(result.raw, np.tensordot(a.raw, b.raw, axes=axes))  # type: ignore[arg-type]
    np.testing.assert_allclose(products.vecdot(a, a).raw, (a.raw * a.raw).sum(-1))


def test_product_of_integers_uses_cupy(products: Products, library: host_graph.Library) -> None:
    x = XP.asarray(np.arange(4).reshape(2, 2))
    assert products.capturable(XP.matmul)(x, x).raw.tolist() == [[2, 3], [6, 11]] and not library.calls


@pytest.mark.parametrize(("dtype", "computed"), [("f2", 68), ("f4", 77), ("c8", 77), ("f8", 70), ("c16", 70)])
def test_tf32_applies_to_dtypes_as_in_cupy(
    products: Products, library: host_graph.Library, dtype: str, computed: int
) -> None:
    x = matrices((2, 2), dtype, "C", np.random.default_rng(0))
    products._cublas.tf32 = True
    products.matmul(x, x)
    assert library.calls[-1]["computed"] == computed


def test_status_of_cublas_is_raised(library: host_graph.Library) -> None:
    handle = cublas.Cublas(cublas.load(sys.modules["cupy"], lambda name: library))
    x = matrices((2, 2), "f4", "C", np.random.default_rng(0))
    with pytest.raises(cublas.CublasError, match="cublasGemmEx returned status 1"):  # no stream, no workspace
        handle.gemm(x, x, x)


def test_cublas_is_loaded_by_its_names(library: host_graph.Library) -> None:
    names = []

    def missing(name: str) -> Any:
        names.append(name)
        raise OSError(name)

    with pytest.raises(cublas.CublasError, match=r"cuBLAS is not found: expected one of libcublas\.so\.13, "):
        cublas.load(sys.modules["cupy"], missing)
    assert names == ["libcublas.so.13", "cublas64_13.dll", "libcublas.so"]
