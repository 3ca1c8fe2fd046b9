"""The fused kernels of CUDA, compiled for the host, and held against the generic rules that they replace."""

from __future__ import annotations

import importlib
import inspect
import itertools
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import host_cuda
import xgrad
from reference_philox import stream
from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE, overridable
from xgrad.backend.registry import backend_class, entry_points, open_backend
from xgrad.ops import dropout, elementwise, nn
from xgrad.ops.dropout import dropout_mask
from xgrad.optim.adam import adam_step
from xgrad.optim.sgd import sgd_step
from xgrad.parity.cases import find
from xgrad.parity.compare import compare
from xgrad.parity.fused_parity import KERNEL_CASES, KernelCase, compare_fused
from xgrad.parity.html_report import as_html
from xgrad.parity.op_case import NAN, OpCase, Sample, a
from xgrad.parity.report import run
from xgrad.parity.run_op import options, tensors
from xgrad.parity.seed_parity import compare_seeds
from xgrad.parity.text_report import as_text
from xgrad.random import variates
from xgrad.testing import gradgradcheck
from xgrad_cupy import CupyBackend, source
from xgrad_cupy.kernels import Kernels
from xgrad_numpy import NumpyBackend

needs_compiler = pytest.mark.skipif(host_cuda.COMPILER is None, reason="there is no g++ to compile kernels with")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc to compile kernels with")
DTYPES = ["float32", "float64"]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 3e-39, -1e-42, 1e4, -1e4, 1e30, np.inf, -np.inf, NAN]


class FusedBackend(NumpyBackend):
    """NumPy's arrays with the kernels of CUDA."""

    library = "host_cuda"

    def __init__(self) -> None:
        super().__init__()
        self.fused = Kernels(host_cuda.HostCupy, self.xp)
        self.kernels = dict(self.fused.table())

    def random_bits(self, seed: int, call: int, width: int, count: int, index: int) -> Any:
        return self.fused.bits(seed, call, width, count)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device that has the kernels."""
    monkeypatch.setitem(entry_points(), "fused", SimpleNamespace(load=lambda: FusedBackend))
    monkeypatch.setattr(Device, "_known", dict(Device._known))
    yield Device("fused")
    for cached in (backend_class, open_backend):
        cached.cache_clear()


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return FusedBackend().fused


def numbers(shape: Any, dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# That kernels are found


def test_every_kernel_replaces_an_op_or_a_part(kernels: Kernels) -> None:
    functions = {
        found.function.name for module in (nn, dropout, elementwise) for found in vars(module).values()
        if hasattr(found, "function")
    }  # fmt: skip
    assert set(kernels.table()) <= functions | set(OVERRIDABLE)
    assert set(OVERRIDABLE) <= set(kernels.table())


def test_a_part_has_a_name_of_its_own() -> None:
    def relu_gradient(xp: Any, g: Any, out: Any) -> Any:
        return g

    with pytest.raises(ValueError, match="'relu_gradient' twice"):
        overridable(relu_gradient)
    with pytest.raises(ValueError, match=r"other has no arguments \['x'\]: expected some of \['g', 'out'\]"):
        overridable(relu_gradient, "other", changes=("x",))


@pytest.mark.parametrize(
    "case", [case for case in KERNEL_CASES.values() if case.kernel in OVERRIDABLE], ids=lambda case: case.kernel
)
def test_a_part_changes_what_it_says(case: KernelCase) -> None:
    part, given, kept = OVERRIDABLE[case.kernel], case.arguments("float32"), case.arguments("float32")
    part.generic(Device("cpu").xp, *given)
    names = list(inspect.signature(part.generic).parameters)[1:]
    same = [not isinstance(x, np.ndarray) or np.array_equal(x, before) for x, before in zip(given, kept, strict=True)]
    changed = {name for name, alike in zip(names, same, strict=True) if not alike}
    there = {name for name, x in zip(names, given, strict=True) if isinstance(x, np.ndarray)}
    assert changed == set(part.changes) & there


def test_kernels_are_used_unless_the_pass_is_recorded(fused: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def relu_gradient(g: Any, out: Any) -> Any:
        called.append((g, out))
        return g * 2

    monkeypatch.setitem(fused.backend.kernels, "relu_gradient", relu_gradient)  # type: ignore[arg-type]
    x = xgrad.asarray([-1.0, 2.0], device=fused, requires_grad=True)
    (g,) = xgrad.autograd.grad(xgrad.relu(x).sum(), x)
    assert g.tolist() == [2.0, 2.0] and len(called) == 1
    (g,) = xgrad.autograd.grad(xgrad.relu(x).sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 1.0] and len(called) == 1


# Ops, by the rows of the table

ROWS = ["relu", "sigmoid", "softplus", "tanh", "softmax", "log_softmax", "cross_entropy", "dropout of a seed"]


def more(op: OpCase) -> list[Sample]:
    """Return larger samples: more rows than a block has, rows longer than a warp, and those that take a block."""
    shapes = [(11, 10), (3, 33), (2, 1025), (3, 2, 5)]
    if op.name != "cross_entropy":
        axes: list[Any] = [0, (0, -1), None] if "softmax" in op.name else []
        return [Sample((a(*shape),)) for shape in shapes] + [Sample((a(2, 3, 2),), {"axis": axis}) for axis in axes]
    targets = [np.arange(x[:, 0, ...].size).reshape(x[:, 0, ...].shape) % x.shape[1] for x in map(np.empty, shapes)]
    pairs = list(zip(shapes, targets, strict=True))
    return [Sample((a(*shape), target), {"reduction": how}) for shape, target in pairs for how in ("mean", "none")]


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROWS)
def test_ops_agree_with_the_reference(name: str, dtype: str, fused: Device) -> None:
    op = find(name)
    result = compare(op, [fused], [dtype], time=False)
    assert [cell for cell in result.cells if cell.device == "fused"] and not result.failures


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in ROWS if name not in ("relu", "softplus", "sigmoid", "tanh")])
def test_ops_agree_with_the_generic_rules(name: str, dtype: str, fused: Device) -> None:
    op = find(name)
    for sample in more(op):
        found = []
        for device in (Device("cpu"), fused):
            (x, *rest) = tensors(sample, device, np.dtype(dtype), True)
            out = op.fn(x, *rest, **options(sample, device))
            weights = xgrad.asarray(numbers(out.shape, dtype, 1), device=device)
            out.backward(weights)
            found.append((out.detach().numpy(), x.grad.numpy()))
        for ours, theirs in zip(*found, strict=True):
            rtol = 200 * np.finfo(dtype).eps
            np.testing.assert_allclose(theirs, ours, rtol=rtol, atol=rtol * np.abs(ours).max(), strict=True)


@needs_compiler
@pytest.mark.parametrize("op", [find(name) for name in ROWS], ids=str)
def test_second_derivatives_are_the_generic_rules(op: OpCase, fused: Device) -> None:
    for sample in op.samples[:2]:
        xs = tensors(sample, fused, np.dtype("float64"), True)
        assert gradgradcheck(partial(op.fn, **options(sample, fused)), xs)


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sigmoid", "softplus", "softmax", "log_softmax"])
def test_special_values(name: str, dtype: str, kernels: Kernels) -> None:
    """Wherever they are in a row: infinities and NaNs come out where the generic rules have them."""
    xp = Device("cpu").xp
    rows = np.array(list(itertools.product(SPECIAL, repeat=2)), dtype)
    given = {"axis": -1} if "softmax" in name else {}
    forward = getattr(xgrad.ops, name).function.forward
    out = forward(xp, rows, **given)
    rtol = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(kernels.table()[name](rows, **given), out, rtol=rtol, strict=True)
    gradient = f"{name}_gradient"
    expected = OVERRIDABLE[gradient].generic(xp, rows, out, *given.values())
    got = kernels.table()[gradient](rows, out, *given.values())
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=0, strict=True)


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_division_with_a_remainder_has_the_bits_of_the_host(name: str, dtype: str, kernels: Kernels) -> None:
    x1, x2 = np.array(list(itertools.product(SPECIAL, repeat=2)), dtype).T.copy()
    given = [(x1, x2), (numbers(9999, dtype) * 1000, numbers(9999, dtype, seed=1)), (x1, 2.5), (-7.5, x2), (x1, np.inf)]
    kernel, on_host = kernels.table()[name], Device("cpu").backend.kernels[name]
    for xs in given:
        got, expected = kernel(*xs), on_host(*xs)
        np.testing.assert_array_equal(got, expected, strict=True)
        assert (np.signbit(got) == np.signbit(expected))[expected == expected].all()


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_of_losses(dtype: str, kernels: Kernels) -> None:
    xp = Device("cpu").xp
    rows = np.array(list(itertools.product(SPECIAL, repeat=2)), dtype)
    target, rtol = np.arange(len(rows), dtype=np.uint8) % 2, 8 * np.finfo(dtype).eps
    for smoothing in (0.0, 0.25):
        forward = nn._cross_entropy.function.forward  # type: ignore[attr-defined]
        loss, scale = forward(xp, rows, target, reduction="none", label_smoothing=smoothing)
        got, kept = kernels.cross_entropy(rows, target, reduction="none", label_smoothing=smoothing)
        np.testing.assert_allclose(got, loss, rtol=rtol, strict=True)
        for ours, theirs in zip(kept, scale, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=rtol, strict=True)
        g = np.ones(len(rows), dtype)
        expected = OVERRIDABLE["cross_entropy_gradient"].generic(xp, g, rows, target, "none", smoothing, scale)
        got = kernels.cross_entropy_gradient(g, rows, target, "none", smoothing, scale)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol, strict=True)


@needs_compiler
def test_the_gradient_of_relu_has_the_same_bits(kernels: Kernels) -> None:
    g, out = (np.array(x, "float32") for x in zip(*itertools.product(SPECIAL, repeat=2), strict=True))
    expected = OVERRIDABLE["relu_gradient"].generic(Device("cpu").xp, g, out)
    assert kernels.table()["relu_gradient"](g, out).tobytes() == expected.tobytes()


@needs_compiler
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_classes_may_be_of_any_integers(kind: str, kernels: Kernels) -> None:
    x, target = numbers((3, 4), "float32"), np.array([0, 3, 1], kind)
    got, scale = kernels.cross_entropy(x, target, reduction="sum", label_smoothing=0)
    expected = xgrad.nn.functional.cross_entropy(xgrad.asarray(x), xgrad.asarray(target), reduction="sum")
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-6)
    assert kernels.cross_entropy_gradient(np.ones((), "float32"), x, target, "sum", 0, scale).shape == (3, 4)


@needs_compiler
def test_a_class_out_of_bounds_is_read_nowhere_else(kernels: Kernels) -> None:
    x = numbers((2, 4), "float32")
    got, _ = kernels.cross_entropy(x, np.array([-1, 6]), reduction="none", label_smoothing=0)
    expected, _ = kernels.cross_entropy(x, np.array([3, 2]), reduction="none", label_smoothing=0)
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0)])
def test_losses_of_nothing(shape: tuple[int, ...], kernels: Kernels) -> None:
    x = np.ones(shape, "float32")
    target = np.zeros(shape[:1] + shape[2:], "int64")
    losses, scale = kernels.cross_entropy(x, target, reduction="none", label_smoothing=0)
    assert losses.shape == target.shape and scale.shape == (2, shape[0], 1, *shape[2:])
    assert kernels.cross_entropy_gradient(losses, x, target, "none", 0, scale).shape == shape


def test_rows_of_nothing_are_refused(kernels: Kernels) -> None:
    with pytest.raises(IndexError, match="expected classes, got none"):
        kernels.cross_entropy(np.ones((2, 0), "float32"), np.zeros(2, int), reduction="sum", label_smoothing=0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(0, 2), (2, 0)])
def test_softmax_of_nothing_is_empty(name: str, shape: tuple[int, int], kernels: Kernels) -> None:
    x, table = np.ones(shape, "float32"), kernels.table()
    assert table[name](x, axis=-1).shape == table[f"{name}_gradient"](x, x, -1).shape == shape


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
def test_log_softmax_of_infinities_is_that_of_the_generic_rule(kernels: Kernels) -> None:
    x = np.array(list(itertools.product([np.inf, -np.inf, NAN, 0, 1], repeat=3)), "float32")
    expected = xgrad.nn.functional.log_softmax(xgrad.asarray(x)).numpy()
    np.testing.assert_allclose(kernels.log_softmax(x, axis=-1), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_few_huge_rows_are_left_to_the_generic_rules(name: str, kernels: Kernels) -> None:
    x = numbers((2, 70_000), "float32")
    forward = getattr(xgrad.ops, name).function.forward
    out = forward(Device("cpu").xp, x, axis=-1)
    assert kernels.table()[name](x, axis=-1).tobytes() == out.tobytes()
    expected = OVERRIDABLE[f"{name}_gradient"].generic(Device("cpu").xp, x, out, -1)
    assert kernels.table()[f"{name}_gradient"](x, out, -1).tobytes() == expected.tobytes()
    loss, (top, total) = kernels.table()["cross_entropy"](x, np.array([3, 5]), reduction="none", label_smoothing=0.0)
    assert loss.shape == (2,) and top.shape == total.shape == (2, 1)


@needs_compiler
def test_other_floats_are_left_to_the_generic_rules(fused: Device) -> None:
    found = []
    for device in (Device("cpu"), fused):
        xgrad.manual_seed(0)
        x = xgrad.asarray(numbers((3, 4), "float16"), device=device).requires_grad_()
        y = xgrad.nn.functional.log_softmax(xgrad.nn.functional.dropout(xgrad.sigmoid(xgrad.relu(x))))
        xgrad.nn.functional.cross_entropy(y, xgrad.asarray([0, 1, 3], device=device)).backward()
        xgrad.optim.SGD([x], lr=0.5, momentum=0.5).step()
        found.append(x.detach().numpy())
    assert found[0].dtype == np.float16 and found[0].tolist() == found[1].tolist()


# Random numbers


@needs_compiler
@pytest.mark.parametrize("make", [int, partial(np.array, dtype="uint64")], ids=["numbers", "arrays"])
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize(("seed", "call"), [(0, 0), (3, 7), (2**64 - 1, 2**64 - 1)])
def test_random_bits_are_those_of_the_reference(seed: int, call: int, width: int, make: Any, kernels: Kernels) -> None:
    backend: Any = object.__new__(CupyBackend)
    backend._fused, backend._devices = kernels, [nullcontext()]
    for count in (0, 1, 4, 5, 37):
        words = np.array(stream(seed, call, count), "<u8")
        drawn = backend.random_bits(make(seed), make(call), width, count, 0)
        np.testing.assert_array_equal(drawn, words.view(f"<i{width // 8}")[:count], strict=True)


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_seeds_give_the_same_bits(dtype: str, fused: Device) -> None:
    assert [seed.what for seed in compare_seeds(fused, dtype) if not seed.equal] == []


@needs_compiler
@pytest.mark.parametrize(("width", "dtype"), [(32, "float32"), (64, "float64")])
def test_uniform_numbers_have_the_same_bits(width: int, dtype: str, fused: Device) -> None:
    bits = np.concatenate(
        [fused.backend.random_bits(3, 7, width, 37, 0), np.array([-1, 0, 255, 2**31 - 1], f"i{width // 8}")]
    )
    expected = variates.uniform(Device("cpu").xp, bits, np.dtype(dtype))
    got = variates.uniform(fused.xp, bits, np.dtype(dtype))
    assert got.dtype == expected.dtype and got.tobytes() == expected.tobytes()


@needs_compiler
@pytest.mark.parametrize("p", [1e-9, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_has_the_same_bits(p: float, dtype: str, fused: Device) -> None:
    for shape in [(), (1,), (16,), (17,), (5, 7), (0, 3), (2049,)]:
        x = np.full(shape, 1.7, dtype)
        mask = dropout_mask(Device("cpu").xp, x, 3, 7, Device("cpu"), p)
        kernel = fused.backend.kernels["dropout"]
        for counter in (7, np.array(7, "uint64")):
            got = kernel(x, seed=3, call=counter, device=fused, p=p)
            assert [part.tobytes() for part in got] == [(x * mask).tobytes(), mask.tobytes()]


# Optimizers

FLAGS = [False, True]
SIZE = 37


def gradients(dtype: str) -> list[np.ndarray]:
    return [*(numbers(SIZE, dtype, seed) for seed in range(1, 4)), np.resize(np.array(SPECIAL, dtype), SIZE)]


def as_array(factor: float) -> np.ndarray:
    return np.array(factor, np.float64)


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("make", [float, as_array, np.float32], ids=["numbers", "arrays", "NumPy's"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("momentum", "new", "nesterov"), [(0.0, 1.0, False), (0.9, 1.0, False), (0.9, 0.7, False), (0.9, 1.0, True)]
)
def test_sgd_has_the_same_bits(
    momentum: float, new: float, nesterov: bool, dtype: str, make: Any, kernels: Kernels
) -> None:
    for decay, maximize in itertools.product([0.0, 0.01], FLAGS):
        ours, theirs = numbers(SIZE, dtype), numbers(SIZE, dtype)
        mine = other = None
        for g in gradients(dtype):
            factors = [make(value) for value in (0.1, decay, momentum, new)]
            plain = [float(value) for value in factors]
            kept = g.copy()
            mine = kernels.sgd_step(
                ours, g, mine, *factors[:2], momentum if not momentum else factors[2], factors[3], nesterov, maximize
            )
            other = sgd_step(Device("cpu").xp, theirs, g.copy(), other, *plain, nesterov, maximize)
            assert g.tobytes() == kept.tobytes()
            assert ours.tobytes() == theirs.tobytes()
            assert (mine is None and other is None) or mine.tobytes() == other.tobytes()


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("make", [float, as_array], ids=["numbers", "arrays"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("amsgrad", FLAGS)
@pytest.mark.parametrize(("shrink", "decay"), [(1.0, 0.0), (0.99, 0.0), (1.0, 0.01)])
def test_adam_has_the_same_bits(
    shrink: float, decay: float, amsgrad: bool, dtype: str, make: Any, kernels: Kernels
) -> None:
    for maximize in FLAGS:
        ours, theirs = ([numbers(SIZE, dtype), *(np.zeros(SIZE, dtype) for _ in range(2 + amsgrad))] for _ in range(2))
        for step, g in enumerate(gradients(dtype)):
            factors = 0.9, 0.999, shrink, decay, 1e-8 * (step + 1), 0.1 / (step + 1)
            largest = [None] * (not amsgrad)
            kernels.adam_step(ours[0], g, *ours[1:], *largest, *map(make, factors), maximize)
            adam_step(Device("cpu").xp, theirs[0], g.copy(), *theirs[1:], *largest, *factors, maximize)
            assert [x.tobytes() for x in ours] == [x.tobytes() for x in theirs]


@needs_compiler
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_optimizers_give_the_same_weights(kind: str, fused: Device) -> None:
    """Through the buffers that they lay parameters in."""
    given: dict[str, Any] = {
        "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        "Adam": {"amsgrad": True},
        "AdamW": {},
    }[kind]
    trained = []
    for device in (Device("cpu"), fused):
        xgrad.manual_seed(0)
        model = xgrad.nn.MLP([5, 4, 3], device=device)
        optimizer = getattr(xgrad.optim, kind)(model.parameters(), weight_decay=0.01, **given)
        for step in range(4):
            for p in model.parameters():
                p.grad = xgrad.asarray(numbers(p.shape, "float32", step), device=device)
            optimizer.step()
        trained.append([p.detach().numpy().tobytes() for p in model.parameters()])
    assert trained[0] == trained[1]


# What `xgrad parity` says of them


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_parity_holds_every_kernel_against_its_rule(dtype: str, fused: Device) -> None:
    found = compare_fused(fused, dtype)
    assert [f.what for f in found] == list(KERNEL_CASES)
    assert [f for f in found if not f.passed] == []
    assert all(f.error == 0 for f in found if not f.limit) and any(f.error for f in found)
    assert compare_fused(Device("cpu"), dtype) == []


@needs_compiler
def test_parity_tells_of_a_kernel_that_is_off(fused: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    right = fused.backend.kernels["adam_step"]

    def off(p: Any, *args: Any) -> None:
        right(p, *args)
        p *= np.float32(1 + 2e-7)

    monkeypatch.setitem(fused.backend.kernels, "adam_step", off)  # type: ignore[arg-type]
    monkeypatch.setitem(fused.backend.kernels, "sgd_step", lambda *args: 1 / 0)  # type: ignore[arg-type]
    report = run([], [fused], ["float32"], ["fused"])
    assert report.verdict == "fail"
    text, page = as_text(report, verbose=True), as_html(report)
    assert "fused kernels on fused: 6 of 13 match the generic rules" in text
    assert "FAILED: the fused kernel of AdamW on fused in float32: 2" in text
    assert "FAILED: the fused kernel of SGD on fused in float32: ZeroDivisionError: division by zero" in text
    assert text.splitlines()[-1].startswith("FAILED: 7 fused kernels out of tolerance: fused on fused in float32")
    assert "6 of 13 fused kernels agree with the generic rules" in page and "ZeroDivisionError" in page


# That a CUDA graph can be made of them


class Unread(np.ndarray):
    """An array that nothing may be read of, as while a graph is captured."""

    def __float__(self) -> float:
        raise AssertionError("a value was read")

    __bool__ = __int__ = __index__ = item = tolist = __float__  # type: ignore[assignment]


@needs_compiler
def test_no_value_is_read(kernels: Kernels) -> None:
    x, g, p, m, v = (numbers((6, 4), "float32").view(Unread) for _ in range(5))
    target = np.array([0, 1, 2, 3, 0, 1]).view(Unread)
    number = np.array(0.5).view(Unread)
    counter = np.array(7, "uint64").view(Unread)
    kernels.bits(counter, counter, 32, 9)
    kernels.dropout(x, seed=counter, call=counter, device=None, p=0.5)
    _, scale = kernels.cross_entropy(x, target, reduction="mean", label_smoothing=0.1)
    kernels.cross_entropy_gradient(number.astype("float32"), x, target, "mean", 0.1, scale)
    kernels.log_softmax_gradient(g, kernels.log_softmax(x, axis=0), 0)
    kernels.sgd_step(p, g, m, number, number, number, number, True, False)
    kernels.adam_step(p, g, m, v, None, *[number] * 6, False)


# On the GPU


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_kernels_of_a_device_agree_with_the_generic_rules(dtype: str, device: str) -> None:
    found = compare_fused(Device(device), dtype)
    assert [f for f in found if not f.passed] == []
    assert bool(found) == (Device(device).type == "cuda")


def test_a_cuda_graph_reads_factors_and_calls_anew(device: str) -> None:
    place = Device(device)
    if place.type != "cuda":
        pytest.skip("CUDA graphs are of the device cuda")
    cp: Any = importlib.import_module("cupy")
    kernels, stream, pool = place.backend.kernels, cp.cuda.Stream(non_blocking=True), cp.cuda.MemoryPool()
    start, gradient, logits = (numbers((40, 10), "float32", seed) for seed in range(3))
    cp.cuda.Device().synchronize()
    with place.active(), cp.cuda.using_allocator(pool.malloc), stream:
        p, g, x, target = map(cp.asarray, (start, gradient, logits, np.arange(40) % 10))
        m, v, call, rate = cp.zeros_like(p), cp.zeros_like(p), cp.asarray(7, np.uint64), cp.asarray(0.1)

        def step() -> Any:
            loss, scale = kernels["cross_entropy"](x, target, reduction="mean", label_smoothing=0.0)
            slopes = kernels["cross_entropy_gradient"](loss, x, target, "mean", 0.0, scale)
            kernels["adam_step"](p, g, m, v, None, 0.9, 0.999, 1.0, 0.0, 1e-8, rate, False)
            return slopes, kernels["dropout"](g, seed=3, call=call, device=place, p=0.5)

        def values() -> list[bytes]:
            return [part.get(stream=stream).tobytes() for part in (slopes, *dropped, p, m, v)]

        step()  # compiles, and fills the pool
        stream.synchronize()
        stream.begin_capture()
        try:
            slopes, dropped = step()
        finally:
            graph = stream.end_capture()
        found = []
        for captured in (True, False):
            for array, value in ((p, start), (m, 0), (v, 0), (call, 8), (rate, 0.3)):
                array[...] = cp.asarray(value, array.dtype)
            if captured:
                graph.launch(stream)
            else:
                slopes, dropped = step()
            found.append(values())
    assert found[0] == found[1]


# For the GPU

LOOP, ON_GPU = (
    "for (long long i = 0; i < n; ++i)",
    "for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)",
)
FLAGS_OF_NVCC = ["-cubin", "-Werror=all-warnings", "-diag-suppress=177,550", "--fmad=false"]  # unused variables


def as_cuda(kernels: Kernels) -> list[str]:
    """Return the source of every kernel in every type, in a namespace of its own."""
    texts = {text for name, text in vars(source).items() if name.isupper()}
    elementwise = list(host_cuda.ElementwiseKernel.made.values())
    whole = {source.PHILOX, source.DROPOUT, source.ROWS, source._ADAM, source._REST}
    assert {kernel.operation for kernel in elementwise} == texts - whole
    made = [kernel.code({"T": dtype, "I": "int64"}, "") for kernel in elementwise for dtype in DTYPES]
    for dtype, classes in itertools.product(DTYPES, ("int64", "uint8")):
        types = f"typedef {host_cuda.C_TYPES[dtype]} T;\ntypedef {host_cuda.C_TYPES[classes]} I;\n"
        made += [types + source.ROWS, types + source.DROPOUT]
    plain = [text.replace(LOOP, ON_GPU).replace('"C" void', '"C" __global__ void') for text in made]
    return [f"namespace n{k} {{\n{text}\n}}\n".replace('extern "C" ', "") for k, text in enumerate(plain)]


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_kernels_compile_for_the_gpu(architecture: str, tmp_path: Path, kernels: Kernels) -> None:
    path = tmp_path / "kernels.cu"
    path.write_text("".join(as_cuda(kernels)))
    command = ["nvcc", f"-arch={architecture}", *FLAGS_OF_NVCC, "-o", path.with_suffix(".cubin"), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
