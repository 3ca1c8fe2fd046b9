"""Captured steps on `cuda`, compared with eager steps, and products, compared with NumPy.

They run on CUDA emulated on the host (`make test-cuda-without-gpu`), or on a GPU. `tests/capture`
tests the rules of captured steps, which hold on `cpu` and on `cuda`.
"""

from __future__ import annotations

import copy
import gc
import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.backend.device import Device
from xgrad.capture import CaptureWarning
from xgrad_cupy import cublas, cuda_graph
from xgrad_cupy.matmul import Products
from xgrad_cupy.self_check import outcomes


@pytest.fixture
def generic(cuda: Device) -> Device:
    """The device without fused kernels.

    It is another object, since ops keep what they run on a device.
    """
    backend = copy.copy(cuda.backend)
    backend.kernels, backend.xp = {}, SimpleNamespace(**vars(cuda.xp))
    return Device.of("cuda", backend)


@pytest.fixture(params=["generic", "fused"])
def graphs(request: pytest.FixtureRequest, cuda: Device) -> Device:
    """The device without and with fused kernels."""
    return request.getfixturevalue("generic") if request.param == "generic" else cuda


def assert_close(
    results: list[Any], expected: list[Any], rtol: float = 1e-4, atol: float = 1e-5
) -> None:
    for x, y in zip(results, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x.cpu().numpy(), y.cpu().numpy(), rtol=rtol, atol=atol)


class Training:
    """Training of a small network: dropout, a decaying learning rate, and a smaller last batch."""

    def __init__(self, device: Any, capture: bool, momentum: bool = False) -> None:
        xgrad.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 3)
        ).to(device)
        params = self.model.parameters()
        self.optimizer: Any = (
            optim.SGD(params, lr=0.1, momentum=0.9) if momentum else optim.Adam(params, lr=0.01)
        )
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
def test_training_equals_eager(graphs: Device, momentum: bool) -> None:
    """Also with eager work between replays, which must not get memory of the graph."""
    captured, eager = Training(graphs, True, momentum), Training(graphs, False, momentum)
    losses = captured.run(
        40, lambda: [xgrad.full((n,), float("nan"), device=graphs) for n in (8, 48, 24, 128, 16, 3)]
    )
    assert captured.step.refusal is None
    assert_close(losses, eager.run(40), rtol=2e-5, atol=0)
    assert_close(captured.weights(), eager.weights(), atol=1e-6)


def test_kernels_are_loaded_before_capture(cuda: Device) -> None:
    """The emulation refuses to load one in a capture."""
    pytest.importorskip("cupy").clear_memo()  # of loaded kernels
    training = Training(cuda, True)
    training.run(2)
    assert training.step.refusal is None


def test_300_steps_with_eager_work_between_them_equal_eager(capturing_device: str) -> None:
    on = Device(capturing_device)
    kept: list[Any] = []

    def work() -> None:
        kept[:] = [
            xgrad.full((n,), 7.0, device=on)
            for n in (8, 48, 24, 128, 16, 3, 1 << 16)
            for _ in range(4)
        ]
        kept.append(kept[-1] + kept[-2])

    captured, eager = Training(on, True), Training(on, False)
    losses = captured.run(300, work)
    assert captured.step.refusal is None
    assert all((x == 7).all().item() for x in kept[:-1]) and (kept[-1] == 14).all().item()
    assert_close(losses, eager.run(300), rtol=1e-3)
    assert_close(captured.weights(), eager.weights(), rtol=1e-3, atol=1e-4)


def test_memory_stays_constant_in_training(cuda: Device) -> None:
    training, figures = Training(cuda, True), []
    for steps in (30, 300):
        training.run(steps)
        gc.collect()
        figures.append(cuda.memory())
    before, after = figures
    assert (
        before["reserved"]
        >= sum(program.executor.nbytes for program in training.step._programs.values())
        > 0
    )
    assert after["used"] <= before["used"] + (1 << 14)  # the results of the replays have 150 KiB
    assert after["reserved"] <= before["reserved"] + (1 << 20)


# Functions


def _layer(x: xgrad.Tensor, w: xgrad.Tensor) -> xgrad.Tensor:
    return xgrad.tanh(x @ w.T) @ w


PURE: dict[str, Callable[..., Any]] = {
    "products": lambda x, w: (x @ w.T, x.T @ x, w @ w.T, (x.reshape(2, 4, 6) @ w.T)),
    "stacks": lambda x, w: (
        x.reshape(2, 4, 6) @ x.reshape(2, 6, 4),
        xgrad.tensordot(x, w, axes=([1], [1])),
    ),
    "reductions": lambda x, w: (
        x.sum(0),
        x.max(1),
        x.mean(),
        (x - x.mean(1, keepdims=True)).std(),
        x.argmax(1),
    ),
    "indices": lambda x, w: (
        x[:, 1:3],
        x[xgrad.argsort(x[:, 0])],
        xgrad.take(w, xgrad.argmax(x, axis=1) % 3, axis=0),
    ),
    "views": lambda x, w: (x.T, x.reshape(6, 8), xgrad.concat([x, w]), xgrad.where(x > 0, x, 0.0)),
    "a gradient": lambda x, w: (xgrad.grad(lambda w: (_layer(x, w) ** 2).sum())(w),),
    "complex": lambda x, w: ((x * 1j) @ (w.T + 2j),),
    "joins of many arrays": lambda x, w: (
        xgrad.concat([w] * 9),
        xgrad.stack([x] * 9, axis=1),
        xgrad.grad(lambda x: sum((row**3).sum() for row in xgrad.unstack(xgrad.concat([x, w]))))(x),
    ),
}


#: Functions with matrix products: a graph has another handle of cuBLAS (see docs/capture.md).
TO_ROUNDING = {"products", "stacks", "a gradient", "complex"}


@pytest.mark.parametrize("name", PURE)
def test_replayed_function_equals_eager(name: str, cuda: Device) -> None:
    """For new arguments each time; earlier results must not change."""
    rng, step, results, expected = np.random.default_rng(0), xgrad.capture(PURE[name]), [], []
    for _ in range(5):
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((8, 6), (3, 6))]
        args = [xgrad.asarray(x, device=cuda) for x in arrays]
        results += step(*args)
        expected += PURE[name](*args)
    assert step.refusal is None, step.refusal
    assert_close(results, expected, *[] if name in TO_ROUNDING else (0, 0))


# Single properties


def captured(function: Callable[..., Any], *args: Any) -> Any:
    """Return a captured function after a trace and a replay, and its last result."""
    step = xgrad.capture(function)
    for _ in range(2):
        result = step(*args)
    assert step.refusal is None, step.refusal
    return step, result


def test_result_is_not_overwritten_by_next_replay(cuda: Device) -> None:
    step = xgrad.capture(lambda x: (x + 1, (2 * x).T, x.sum()))
    results = [step(xgrad.full((2, 3), float(i), device=cuda)) for i in range(5)]
    for i, (more, double, total) in enumerate(results):
        assert more.tolist() == [[i + 1.0] * 3] * 2 and double.tolist() == [[2.0 * i] * 2] * 3
        assert total.item() == 6 * i and double._data.strides == (4, 12)


def test_results_that_share_memory_share_it_in_replay(cuda: Device) -> None:
    def step(x: xgrad.Tensor) -> tuple[xgrad.Tensor, xgrad.Tensor]:
        y = x * 2
        return y, y[1:, 1]

    _, (whole, part) = captured(step, xgrad.ones((3, 2), device=cuda))
    assert whole._data.data.mem is part._data.data.mem
    assert (
        whole.tolist() == [[2.0, 2.0]] * 3
        and part.tolist() == [2.0, 2.0]
        and part._data.strides == (8,)
    )


def test_view_of_argument_is_view_of_new_argument(cuda: Device) -> None:
    step, _ = captured(lambda x: x[1:].reshape(2), xgrad.ones(3, device=cuda))
    x = xgrad.asarray([1.0, 2.0, 3.0], device=cuda)
    view = step(x)
    assert view.tolist() == [2.0, 3.0] and view._data.data.mem is x._data.data.mem


def test_view_of_replaced_state_follows_it(cuda: Device) -> None:
    w = xgrad.zeros(3, device=cuda)

    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        view = w[1:]
        w.data = w + x
        return view

    capturing = xgrad.capture(step)
    results = [capturing(xgrad.ones(3, device=cuda)) for _ in range(5)]
    assert capturing.refusal is None and capturing.recordings == 1
    assert [x.tolist() for x in results] == [[5, 5]] * 5 and w.tolist() == [5.0] * 3


def test_argument_with_new_data_has_it(cuda: Device) -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        y = x * 1
        x.data = x + 1
        return y

    capturing, x = xgrad.capture(step), xgrad.zeros(2, device=cuda)
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
def test_argument_of_any_layout_is_copied(
    cuda: Device, layout: Callable[[xgrad.Tensor], xgrad.Tensor]
) -> None:
    step = xgrad.capture(lambda x: 2 * x)
    for i in range(3):
        x = layout(xgrad.asarray(np.arange(16.0).reshape(4, 4).astype(np.float32) + i, device=cuda))
        np.testing.assert_array_equal(step(x).numpy(), 2 * x.numpy())


def test_indexing_by_array_after_update_is_captured(capturing_device: str) -> None:
    on = Device(capturing_device)
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
    """Also arrays of moments taken before a step.

    A fused kernel writes to the moments; then the GradScaler replaces them by the old or new ones.
    """
    runs = []
    for capture in (lambda step: step, xgrad.capture):
        p = xgrad.ones(4, device=graphs, requires_grad=True)
        optimizer = optim.Adam([p], lr=0.1)
        scaler = xgrad.amp.GradScaler(graphs, init_scale=4.0, growth_interval=2)

        @capture
        def step(
            x: xgrad.Tensor, p: Any = p, optimizer: Any = optimizer, scaler: Any = scaler
        ) -> None:
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
    assert step.refusal is None
    assert runs[0] == runs[1]


def test_buffer_of_numbers_is_reused_after_its_copy(cuda: Device) -> None:
    """A pinned buffer must not change until it is copied.

    Nothing waits for the device between steps.
    """
    p = xgrad.zeros(1, device=cuda, requires_grad=True)
    optimizer = optim.SGD([p], lr=1.0)

    @xgrad.capture
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()
        return p.detach() * 1.0

    x, results = xgrad.ones(1, device=cuda), []
    for i in range(30):
        optimizer.param_groups[0]["lr"] = float(i + 1)
        results.append(step(x))
    assert step.refusal is None, step.refusal
    assert [r.item() for r in results] == [-(i + 1) * (i + 2) / 2 for i in range(30)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_do_not_promote(dtype: str, generic: Device) -> None:
    p = xgrad.ones(3, dtype=dtype, device=generic, requires_grad=True)
    optimizer = optim.Adam([p], lr=0.1)

    @xgrad.capture
    def step(x: xgrad.Tensor) -> None:
        optimizer.zero_grad()
        (p * x).sum().backward()
        optimizer.step()

    for _ in range(4):
        step(xgrad.ones(3, dtype=dtype, device=generic))
    (program,) = step._programs.values()
    operands = program.executor._interpreter.operands  # type: ignore[attr-defined]
    assert {x.dtype for x in operands} == {np.dtype(dtype)} and str(p.dtype) == dtype


def test_seed_of_generator_made_in_step_is_constant(graphs: Device) -> None:
    _, result = captured(
        lambda x: x + xgrad.random.Generator(1 << 63).rand(3, device=graphs),
        xgrad.zeros(3, device=graphs),
    )
    assert result.tolist() == xgrad.random.Generator(1 << 63).rand(3).tolist()


class Autoencoder:
    """Training of a variational autoencoder on `device`: its step draws normal numbers."""

    def __init__(self, device: Device, capture: bool) -> None:
        xgrad.manual_seed(0)
        self.encoder, self.decoder = (nn.MLP(n).to(device) for n in ([6, 8, 4], [2, 8, 6]))
        parameters = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimizer = optim.Adam(parameters, lr=0.01)
        self.device = device
        self.step: Any = xgrad.capture(self._step) if capture else self._step

    def _step(self, x: xgrad.Tensor) -> tuple[xgrad.Tensor, xgrad.Tensor]:
        self.optimizer.zero_grad()
        code = self.encoder(x)
        mean, log_variance = code[:, :2], code[:, 2:]
        noise = xgrad.random.randn(mean.shape, device=self.device)
        decoded = self.decoder(mean + xgrad.exp(log_variance / 2) * noise)
        divergence = (mean**2 + xgrad.exp(log_variance) - 1 - log_variance) / 2
        loss = ((decoded - x) ** 2).sum() + divergence.sum()
        loss.backward()
        self.optimizer.step()
        return loss.detach(), noise

    def run(self, seed: int) -> list[tuple[Any, ...]]:
        """Return losses, noise, and states of the generator, with eager draws in between."""
        rng, results = np.random.default_rng(0), []
        xgrad.manual_seed(seed)
        for i in range(12):
            x = rng.standard_normal((5, 6)).astype(np.float32)
            loss, noise = self.step(xgrad.asarray(x, device=self.device))
            state = xgrad.random.get_state()
            results.append((float(loss), noise.numpy().tobytes(), state))
            if i % 4 == 3:
                xgrad.random.rand(3)
        return results


def test_step_of_autoencoder_draws_the_normal_numbers_of_eager_mode(graphs: Device) -> None:
    captured, eager = Autoencoder(graphs, True), Autoencoder(graphs, False)
    for seed in (5, 6, 5):
        results, expected = captured.run(seed), eager.run(seed)
        assert captured.step.refusal is None, captured.step.refusal
        assert [x[1:] for x in results] == [x[1:] for x in expected]
        np.testing.assert_allclose([x[0] for x in results], [x[0] for x in expected], rtol=1e-5)
    assert captured.run(7)[0][1] == xgrad.random.Generator(7).randn((5, 2)).numpy().tobytes()


def _doubled(x: xgrad.Tensor) -> xgrad.Tensor:
    x[...] = 2 * x
    return x


HOST_DRAWS: dict[str, Callable[[Any], Any]] = {
    "float64, odd number": lambda g: g.normal((3, 3), 1.0, 2.0, dtype="float64", device="cuda"),
    "large": lambda g: g.randn((300, 70), device="cuda"),
    "empty": lambda g: g.randn((0, 3), device="cuda"),
    "integers": lambda g: g.randint(-(2**40), 2**63, (4,), device="cuda"),
    "permutation": lambda g: g.randperm(9, device="cuda"),
    "exponential": lambda g: g.multinomial(xgrad.arange(1.0, 9.0, device="cuda"), 4),
    "written to": lambda g: _doubled(g.randn(5, device="cuda")),
    "a view": lambda g: g.randn((4, 6), device="cuda").T[::2],
    "as an index": lambda g: xgrad.arange(9, device="cuda")[g.randperm(9, device="cuda")],
    "two draws": lambda g: g.randn(4, device="cuda") - g.randn(4, device="cuda"),
}


@pytest.mark.parametrize("name", HOST_DRAWS)
def test_draws_of_the_host_are_those_of_eager_mode_in_each_replay(cuda: Device, name: str) -> None:
    """The largest seed is no int64."""
    generator, twin, kept = xgrad.random.Generator(2**64 - 1), xgrad.random.Generator(2**64 - 1), []

    def step(generator: xgrad.random.Generator, x: xgrad.Tensor) -> Any:
        return x + 1, HOST_DRAWS[name](generator)

    capturing, x = xgrad.capture(step), xgrad.ones(2, device=cuda)
    for _ in range(12):
        kept.append((capturing(generator, x)[1], step(twin, x)[1]))
        assert generator.get_state() == twin.get_state()
    assert capturing.refusal is None, capturing.refusal
    for got, expected in kept:  # results of a replay outlive the next ones
        assert got.dtype == expected.dtype and got.shape == expected.shape
        assert got.numpy().tobytes() == expected.numpy().tobytes()


def test_plans_of_transforms_live_as_long_as_graph(cuda: Device) -> None:
    """CuPy keeps sixteen plans; the graph uses memory that a plan would free."""
    lengths, rng = range(20, 40), np.random.default_rng(0)

    def step(x: xgrad.Tensor) -> list[xgrad.Tensor]:
        return [xgrad.abs(xgrad.fft.rfft(x[:n])) for n in lengths]

    capturing = xgrad.capture(step)
    for _ in range(4):
        values = rng.random(64, np.float32)
        results = capturing(xgrad.asarray(values, device=cuda))
        for n in range(40, 60):  # destroys the plans in CuPy's cache
            xgrad.fft.rfft(xgrad.ones(n, device=cuda))
        for n, result in zip(lengths, results, strict=True):
            expected = np.abs(np.fft.rfft(values[:n]))
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert capturing.refusal is None and len(executor_of(capturing)._plans) == 20


@pytest.mark.parametrize("size", [2, 0, -1], ids=["of 2 plans", "disabled", "without a limit"])
def test_capture_leaves_cache_of_plans_as_it_was(cuda: Device, size: int) -> None:
    cp = pytest.importorskip("cupy")
    cache = cp.fft.config.get_plan_cache()
    cache.clear()
    whole = cache.get_size()
    x = xgrad.ones(16, device=cuda)
    try:
        cache.set_size(size)
        for n in (5, 6, 7, 8):
            xgrad.fft.fft(x[:n])
        before = [(key, node.plan) for key, node in cache]
        step, _ = captured(lambda x: [xgrad.fft.fft(x[:n]) for n in (7, 8)], x)
        assert [(key, node.plan) for key, node in cache] == before
        assert cache.get_size() == size and cache.get_memsize() == -1
        plans = executor_of(step)._plans
        assert len(plans) == 2 and not {*plans} & {plan for _, plan in before}
    finally:
        cache.set_size(whole)


JOINS: dict[str, Callable[..., Any]] = {
    "rows": lambda parts: xgrad.concat(parts),
    "columns": lambda parts: xgrad.concat(parts, axis=-1),
    "of different lengths": lambda parts: xgrad.concat(
        [part[i % 3 :] for i, part in enumerate(parts)]
    ),
    "flat": lambda parts: xgrad.concat(parts, axis=None),
    "of two dtypes": lambda parts: xgrad.concat(
        [*parts, xgrad.ones((2, 4), dtype="float64", device="cuda")]
    ),
    "stack": lambda parts: xgrad.stack(parts),
    "stack along the last axis": lambda parts: xgrad.stack(parts, axis=-1),
    "the gradient of unstack": lambda parts: xgrad.grad(
        lambda x: sum((y**2).sum() for y in xgrad.unstack(x, axis=1))
    )(xgrad.concat(parts[:3], axis=1)),
}


@pytest.mark.parametrize("count", [9, 30])
@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_join_of_many_arrays_is_captured(
    join: Callable[..., Any], count: int, cuda: Device
) -> None:
    """CuPy joins more than eight arrays by a list of their addresses.

    No graph can copy this list from the host.
    """

    def step(x: xgrad.Tensor) -> Any:
        return join([x * i for i in range(count)])

    rng, capturing = np.random.default_rng(0), xgrad.capture(step)
    for _ in range(3):
        x = xgrad.asarray(rng.standard_normal((3, 4)), device=cuda)
        result, expected = capturing(x), step(x)
        assert (
            result.dtype == expected.dtype
            and result.numpy().tobytes() == expected.numpy().tobytes()
        )
    assert capturing.refusal is None, capturing.refusal


# Refusals and failures

REFUSED = "cannot be part of a CUDA graph:"


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (
            lambda x: xgrad.linalg.solve(x + xgrad.eye(3, device="cuda"), x),
            f"solve {REFUSED} NotImplementedError: ",
        ),
        (
            lambda x: xgrad.special.i0e(x) * 2,
            f"i0e {REFUSED} RuntimeError: the current stream is capturing",
        ),
    ],
    ids=["solve", "through the host"],
)
def test_refused_step_runs_eagerly_with_right_result(
    cuda: Device, work: Callable[..., Any], reason: str
) -> None:
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        return work(x)  # type: ignore[no-any-return]

    x = xgrad.asarray(np.diag([1.0, 2.0, 4.0]).astype(np.float32), device=cuda)
    capturing = xgrad.capture(step)
    xgrad.manual_seed(3)
    line = work.__code__.co_firstlineno
    with pytest.warns(
        CaptureWarning, match=rf"test_cuda_graph.py:{line}: .*{reason}.*runs eagerly"
    ):
        results = [capturing(x)]
    results.append(capturing(x))
    xgrad.manual_seed(3)
    for result in results:
        np.testing.assert_array_equal(result.numpy(), work(x).numpy())


def test_error_of_launch_runs_step_eagerly(cuda: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(executor: Any, *args: Any) -> Any:
        raise RuntimeError("cudaErrorUnknown")

    outcomes.require(cuda_graph.Executor, cuda.native)  # the self-check comes before the fault
    captured, eager = Training(cuda, True), Training(cuda, False)
    monkeypatch.setattr(cuda_graph.Executor, "_copy_in", fail)
    with pytest.warns(CaptureWarning, match="a replay failed: RuntimeError: cudaErrorUnknown"):
        losses = captured.run(5)
    assert_close(losses, eager.run(5))


def test_interrupt_before_the_launch_leaves_the_state_of_before(
    cuda: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(copies: Any) -> Any:
        raise KeyboardInterrupt

    captured, eager = Training(cuda, True), Training(cuda, False)
    for training in (captured, eager):
        training.run(4)
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(cuda_graph._Copies, "new", interrupt)
            with pytest.raises(KeyboardInterrupt):
                captured.run(1)
        eager.batch(0)
        assert_close(captured.run(2), eager.run(2), rtol=1e-5)
    assert captured.step.refusal is None


def test_error_after_the_launch_is_raised(cuda: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    new = cuda_graph._Copies.new

    def fail() -> None:
        raise RuntimeError("cudaErrorUnknown")

    def failing(copies: Any) -> Any:
        arrays, functions = new(copies)
        return arrays, [fail, *functions]

    captured = Training(cuda, True)
    captured.run(4)
    with monkeypatch.context() as patch:
        patch.setattr(cuda_graph._Copies, "new", failing)
        with pytest.raises(RuntimeError, match="cudaErrorUnknown"):
            captured.run(1)


# Graphs


def executor_of(step: Any) -> Any:
    """Return the executor of a captured step with one program."""
    (program,) = step._programs.values()
    return program.executor


def test_replays_on_two_streams_are_in_order(cuda: Device) -> None:
    cp = pytest.importorskip("cupy")
    w = xgrad.zeros(3, device=cuda)

    def step(x: xgrad.Tensor) -> None:
        w.data = 2 * w + x

    x = xgrad.ones(3, device=cuda)
    capturing, _ = captured(step, x)
    cp.cuda.Device().synchronize()
    streams = [
        cp.cuda.Stream(non_blocking=True),
        cp.cuda.get_current_stream(),
        cp.cuda.Stream(non_blocking=True),
    ]
    for i in range(8):  # the last on the current stream
        with streams[i % 3]:
            capturing(x)
    assert w.tolist() == [2.0**10 - 1] * 3


def test_graph_is_captured_again_when_state_moves(cuda: Device) -> None:
    w = xgrad.ones(2, device=cuda)
    step, _ = captured(lambda x: x * w, xgrad.ones(2, device=cuda))

    def move(i: int) -> None:
        w.data = xgrad.full((2,), float(i), device=cuda)
        assert step(xgrad.ones(2, device=cuda)).tolist() == [i, i]

    for i in range(cuda_graph._FREE_CAPTURES + 1):
        move(i)
        assert executor_of(step)._links == i + 2
    with pytest.warns(CaptureWarning, match="move to other memory again and again"):
        move(3)
    assert step.refusal is not None


def test_graph_is_captured_again_when_tf32_changes(cuda: Device, calls: list[Any]) -> None:
    try:
        step, _ = captured(lambda x: x @ x, xgrad.ones((3, 3), device=cuda))
        before = {computed for _, computed in calls}
        xgrad.set_tf32(True, cuda)
        del calls[:]
        step(xgrad.ones((3, 3), device=cuda))
    finally:
        xgrad.set_tf32(False, cuda)
    assert before == {68} and {computed for _, computed in calls} == {77}


def test_printed_program_has_memory_and_calls(cuda: Device) -> None:
    step, _ = captured(lambda x: x * 3, xgrad.ones(2, device=cuda))
    text = step.program()
    assert f"{executor_of(step).nbytes:,} bytes" in text
    assert "multiply(arg0, 3)" in text and "test_cuda_graph.py:" in text


# Products


@pytest.fixture
def calls(cuda: Device, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Recorded products by cuBLAS: transpositions of the factors, and the compute type."""
    calls: list[Any] = []
    call = cublas.Cublas._call

    def recorded(self: Any, name: str, *args: Any) -> None:
        if "Gemm" in name:
            calls.append((args[1:3], args[-2]))
        call(self, name, *args)

    monkeypatch.setattr(cublas.Cublas, "_call", recorded)
    return calls


@pytest.fixture
def products(cuda: Device) -> Iterator[Products]:
    cp = pytest.importorskip("cupy")
    handle = cublas.Cublas(cublas.load(cp))
    workspace = cp.empty(1 << 10, np.uint8)
    with cp.cuda.Stream(non_blocking=True) as stream:
        handle.use(stream.ptr, workspace.data.ptr, workspace.nbytes)
        yield Products(cp, handle)
        stream.synchronize()


def matrices(shape: tuple[int, ...], dtype: str, layout: str, rng: np.random.Generator) -> Any:
    """Return a stack of matrices in some layout."""
    cp = pytest.importorskip("cupy")
    x = rng.standard_normal((*shape, 2)).astype("f8")
    values = (x[..., 0] + 1j * x[..., 1] if np.dtype(dtype).kind == "c" else x[..., 0]).astype(
        dtype
    )
    if layout == "T" and len(shape) > 1:
        return cp.asarray(values.swapaxes(-1, -2).copy()).swapaxes(-1, -2)
    n = shape[-1]
    wide, key = {"part": (n + 3, slice(n)), "gaps": (2 * n, slice(None, None, 2))}.get(
        layout, (n, slice(None))
    )
    padded = np.full((*shape[:-1], wide), np.nan, dtype)
    padded[..., key] = values
    return cp.asarray(padded)[..., key]


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 4), (4, 5)),
    ((1, 4), (4, 5)),
    ((3, 1), (1, 5)),
    ((3, 4), (4, 1)),
    ((1, 1), (1, 1)),
    ((1, 4), (4, 1)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((3, 0), (0, 5)),
    ((0, 4), (4, 5)),
    ((2, 2, 3, 4), (2, 2, 4, 5)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_product_by_cublas_is_that_of_numpy(products: Products, shapes: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for layouts in itertools.product(("C", "T", "part", "gaps"), repeat=2):
        a, b = (
            matrices(shape, dtype, layout, rng)
            for shape, layout in zip(shapes, layouts, strict=True)
        )
        expected = a.get() @ b.get()
        result = products.matmul(a, b)
        assert result.shape == expected.shape and result.dtype == expected.dtype
        np.testing.assert_allclose(result.get(), expected, rtol=1e-5, atol=1e-5)
        for layout in ("C", "T", "part") if expected.ndim else ("C",):
            out = matrices(expected.shape, dtype, layout, rng) if expected.ndim else result.copy()
            assert products.matmul(a, b, out=out) is out
            np.testing.assert_allclose(out.get(), expected, rtol=1e-5, atol=1e-5)


def test_transposed_views_are_flags_without_copies(products: Products, calls: list[Any]) -> None:
    cp, rng = pytest.importorskip("cupy"), np.random.default_rng(0)
    pool = cp.cuda.MemoryPool()
    for first, second in itertools.product("CT", repeat=2):
        a, b = matrices((3, 4), "f4", first, rng), matrices((4, 5), "f4", second, rng)
        out = cp.empty((3, 5), "f4")
        with cp.cuda.using_allocator(pool.malloc):
            products.matmul(a, b, out)
        assert calls[-1][0] == (second == "T", first == "T") and pool.total_bytes() == 0


def test_product_into_its_operand(products: Products) -> None:
    a = matrices((3, 3), "f8", "C", np.random.default_rng(0))
    expected = a.get() @ a.get()
    products.matmul(a, a, out=a)
    np.testing.assert_allclose(a.get(), expected)


def test_tensordot_is_that_of_numpy(products: Products) -> None:
    rng = np.random.default_rng(0)
    a, b = matrices((2, 3, 4), "f8", "C", rng), matrices((4, 3, 5), "f8", "C", rng)
    for axes in (([1, 2], [1, 0]), ([2], [0]), ([-1], [-3]), 1, 0):
        result = products.tensordot(a, b, axes=axes)
        expected = np.tensordot(a.get(), b.get(), axes=axes)  # type: ignore[arg-type]
        np.testing.assert_allclose(result.get(), expected)


def test_product_of_integers_uses_cupy(products: Products, calls: list[Any], cuda: Device) -> None:
    x = cuda.xp.asarray(np.arange(4).reshape(2, 2))
    assert products.capturable(cuda.xp.matmul)(x, x).tolist() == [[2, 3], [6, 11]] and not calls


@pytest.mark.parametrize(
    ("dtype", "computed"), [("f2", 68), ("f4", 77), ("c8", 77), ("f8", 70), ("c16", 70)]
)
def test_tf32_applies_to_dtypes_as_in_cupy(
    products: Products, calls: list[Any], dtype: str, computed: int
) -> None:
    x = matrices((2, 2), dtype, "C", np.random.default_rng(0))
    products.cublas.tf32 = True
    products.matmul(x, x)
    assert calls[-1][1] == computed


def test_status_of_cublas_is_raised(products: Products, monkeypatch: pytest.MonkeyPatch) -> None:
    # no cudaDataType_t
    monkeypatch.setitem(cublas._KINDS, np.dtype("float32"), (-1, 68, np.float32))
    x = matrices((2, 2), "f4", "C", np.random.default_rng(0))
    with pytest.raises(cublas.CublasError, match=r"cublasGemmEx returned status \d+"):
        products.matmul(x, x)


def test_cublas_is_loaded_by_its_names(cuda: Device) -> None:
    names = []

    def missing(name: str) -> Any:
        names.append(name)
        raise OSError(name)

    with pytest.raises(
        cublas.CublasError, match=r"cuBLAS is not found: expected one of libcublas\.so\.13, "
    ):
        cublas.load(pytest.importorskip("cupy"), missing)
    assert names == ["libcublas.so.13", "cublas64_13.dll", "libcublas.so"]
