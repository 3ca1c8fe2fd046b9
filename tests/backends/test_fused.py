"""The fused CUDA kernels, compared with the generic rules that they replace, run by NumPy.

They run on CUDA emulated on the host, or on a GPU.
"""

from __future__ import annotations

import inspect
import itertools
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import xgrad
from reference_philox import stream
from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE, overridable
from xgrad.ops import class_losses, convolution, dropout, elementwise, pooling, softmaxes
from xgrad.ops.dropout import dropout_mask
from xgrad.parity.cases import find
from xgrad.parity.fused_parity import KERNEL_CASES, KernelCase, compare_fused
from xgrad.parity.html_report import as_html
from xgrad.parity.op_case import NAN, OpCase, Sample, a
from xgrad.parity.report import run
from xgrad.parity.run_op import options, tensors
from xgrad.parity.seed_parity import compare_seeds
from xgrad.parity.text_report import as_text
from xgrad.random import variates
from xgrad.support import trees
from xgrad_numpy import NumpyBackend

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
DTYPES = ["float32", "float64"]
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    3e-38,
    1e4,
    -1e4,
    1e30,
    np.inf,
    -np.inf,
    NAN,
]  # a GPU has no denormals


Named = dict[str, Callable[..., Any]]


def on_host(kernel: Any) -> Callable[..., Any]:
    """Return a kernel that takes and returns NumPy's arrays, and changes them in place."""

    def call(*args: Any, **options: Any) -> Any:
        cp = pytest.importorskip("cupy")
        given = [x for _, x in trees.leaves(args)]
        arrays = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in given]
        result = kernel(*trees.rebuild(args, arrays), **options)
        for x, array in zip(given, arrays, strict=True):
            if isinstance(x, np.ndarray):
                x[...] = array.get()
        return trees.rebuild(
            result, [x.get() if isinstance(x, cp.ndarray) else x for _, x in trees.leaves(result)]
        )

    return call


@pytest.fixture(scope="module")
def kernels(cuda: Device) -> Named:
    """The kernels by the names of the rules that they replace."""
    return {name: on_host(kernel) for name, kernel in cuda.backend.kernels.items()}


def numbers(shape: Any, dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def as_on_gpu(x: np.ndarray) -> np.ndarray:
    """Return an array with denormals as zeros, and with a single bit pattern for NaN.

    On a GPU, denormals and NaNs have other bits than on the host.
    """
    x = np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.zeros_like(x), x), x)
    return np.where(np.isnan(x), np.full_like(x, NAN), x)


def rule_of(name: str) -> Callable[..., Any]:
    """Return the generic rule that a kernel replaces."""
    if name in OVERRIDABLE:
        return OVERRIDABLE[name].generic
    private = [getattr(module, f"_{name}", None) for module in (class_losses, softmaxes)]
    op = next(filter(None, [*private, getattr(xgrad.ops, name, None)]))
    return op.function.forward  # type: ignore[no-any-return]


def generic(name: str, *args: Any, **options: Any) -> Any:
    """Return the result of a generic rule on the host."""
    return rule_of(name)(Device("cpu").xp, *args, **options)


# Selection of kernels


def test_every_kernel_replaces_an_op_or_an_overridable_function(cuda: Device) -> None:
    ops = {
        x.function.name
        for module in (
            class_losses,
            convolution,
            dropout,
            elementwise,
            elementwise.arithmetic,
            pooling,
            softmaxes,
        )
        for x in vars(module).values()
        if hasattr(x, "function")
    }
    assert set(cuda.backend.kernels) <= ops | set(OVERRIDABLE)
    assert set(OVERRIDABLE) <= set(cuda.backend.kernels) | set(NumpyBackend().kernels)


def test_device_opened_before_optimizers_are_imported_has_their_kernels(cuda: Device) -> None:
    code = (
        "import xgrad; print({'adam_step', 'sgd_step'} <="
        f" set(xgrad.Device('{cuda}').backend.kernels))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_overridable_with_used_name_or_unknown_argument_is_refused() -> None:
    def relu_gradient(xp: Any, g: Any, out: Any) -> Any:
        return g

    with pytest.raises(ValueError, match="'relu_gradient' twice"):
        overridable(relu_gradient)
    with pytest.raises(
        ValueError, match=r"other has no arguments \['x'\]: expected some of \['g', 'out'\]"
    ):
        overridable(relu_gradient, "other", changes=("x",))


@pytest.mark.parametrize(
    "case",
    [case for case in KERNEL_CASES.values() if case.kernel in OVERRIDABLE],
    ids=lambda case: case.kernel,
)
def test_generic_rule_changes_the_declared_arguments(case: KernelCase) -> None:
    part = OVERRIDABLE[case.kernel]
    args = case.arguments("float32")
    before = case.arguments("float32")
    (case.generic or part.generic)(Device("cpu").xp, *args, **case.options)
    names = list(inspect.signature(part.generic).parameters)[1:]
    arrays = [
        (name, x, y)
        for name, x, y in zip(names, args, before, strict=True)
        if isinstance(x, np.ndarray)
    ]
    changed = {name for name, x, y in arrays if not np.array_equal(x, y)}
    assert changed == set(part.changes) & {name for name, _, _ in arrays}


def test_kernel_is_used_unless_the_pass_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def relu_gradient(g: Any, out: Any) -> Any:
        called.append((g, out))
        return g * 2

    kernels: Any = Device("cpu").backend.kernels
    monkeypatch.setitem(kernels, "relu_gradient", relu_gradient)
    x = xgrad.asarray([-1.0, 2.0], requires_grad=True)
    (g,) = xgrad.autograd.grad(xgrad.relu(x).sum(), x)
    assert g.tolist() == [2.0, 2.0] and len(called) == 1
    (g,) = xgrad.autograd.grad(xgrad.relu(x).sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 1.0] and len(called) == 1


# Ops; `xgrad.parity.compare` has their short inputs


def larger(op: OpCase) -> list[Sample]:
    """Return samples with more rows than a block has, rows longer than a warp, rows for a block."""
    shapes = [(11, 10), (3, 33), (2, 1025), (3, 2, 5)]
    if op.name != "cross_entropy":
        axes: list[Any] = [0, (0, -1), None] if "softmax" in op.name else []
        return [Sample((a(*shape),)) for shape in shapes] + [
            Sample((a(2, 3, 2),), {"axis": axis}) for axis in axes
        ]
    targets = [
        np.arange(x[:, 0, ...].size).reshape(x[:, 0, ...].shape) % x.shape[1]
        for x in map(np.empty, shapes)
    ]
    pairs = list(zip(shapes, targets, strict=True))
    return [
        Sample((a(*shape), target), {"reduction": how})
        for shape, target in pairs
        for how in ("mean", "none")
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "cross_entropy", "dropout of a seed"])
def test_op_on_larger_inputs_agrees_with_the_generic_rule(
    name: str, dtype: str, cuda: Device
) -> None:
    op = find(name)
    for sample in larger(op):
        results = []
        for device in (Device("cpu"), cuda):
            x, *rest = tensors(sample, device, np.dtype(dtype), True)
            out = op.fn(x, *rest, **options(sample, device))
            out.backward(xgrad.asarray(numbers(out.shape, dtype, 1), device=device))
            results.append((out.detach().cpu().numpy(), x.grad.cpu().numpy()))
        rtol = 200 * np.finfo(dtype).eps
        for expected, result in zip(*results, strict=True):
            np.testing.assert_allclose(
                result, expected, rtol=rtol, atol=rtol * np.abs(expected).max(), strict=True
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sigmoid", "softplus", "softmax", "log_softmax"])
def test_infinities_and_nans_are_those_of_the_generic_rule(
    name: str, dtype: str, kernels: Named
) -> None:
    rows = np.array(list(itertools.product(SPECIAL, repeat=2)), dtype)
    axis = {"axis": -1} if "softmax" in name else {}
    out, gradient = generic(name, rows, **axis), f"{name}_gradient"
    expected = generic(gradient, rows, out, *axis.values())
    rtol, atol = 8 * np.finfo(dtype).eps, np.finfo(dtype).tiny  # denormals may be zeros
    np.testing.assert_allclose(kernels[name](rows, **axis), out, rtol=rtol, atol=atol, strict=True)
    result = kernels[gradient](rows, out, *axis.values())
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol, strict=True)


def test_log_softmax_of_several_infinities_is_that_of_the_generic_rule(kernels: Named) -> None:
    x = np.array(list(itertools.product([np.inf, -np.inf, NAN, 0, 1], repeat=3)), "float32")
    expected = generic("log_softmax", x, axis=-1)
    np.testing.assert_allclose(kernels["log_softmax"](x, axis=-1), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["floor_divide", "floor_quotient", "remainder"])
def test_division_with_remainder_has_the_bits_of_the_host(
    name: str, dtype: str, kernels: Named
) -> None:
    x1, x2 = np.array(list(itertools.product(SPECIAL, repeat=2)), dtype).T.copy()
    large = numbers(9999, dtype) * 1000, numbers(9999, dtype, seed=1)
    kernel = kernels[name]
    on_host = Device("cpu").backend.kernels.get(name, lambda x2, x1: x1 // x2)
    for args in [(x1, x2), large, (x1, 2.5), (-7.5, x2), (x1, np.inf)]:
        result, expected = as_on_gpu(kernel(*args)), as_on_gpu(on_host(*args))
        np.testing.assert_array_equal(result, expected, strict=True)
        assert (np.signbit(result) == np.signbit(expected))[expected == expected].all()


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("dtype", DTYPES)
def test_losses_of_infinities_and_nans_are_those_of_the_generic_rule(
    dtype: str, smoothing: float, kernels: Named
) -> None:
    rows = np.array(list(itertools.product(SPECIAL, repeat=2)), dtype)
    target, rtol = np.arange(len(rows), dtype=np.uint8) % 2, 8 * np.finfo(dtype).eps
    loss, scale = generic(
        "cross_entropy", rows, target, reduction="none", label_smoothing=smoothing
    )
    result, residual = kernels["cross_entropy"](
        rows, target, reduction="none", label_smoothing=smoothing
    )
    args = np.ones(len(rows), dtype), rows, target, "none", smoothing, scale
    gradients = kernels["cross_entropy_gradient"](*args), generic("cross_entropy_gradient", *args)
    for x, y in [(result, loss), *zip(residual, scale, strict=True), gradients]:
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol, strict=True)


def test_gradient_of_relu_has_the_bits_of_the_generic_rule(kernels: Named) -> None:
    g, out = (
        np.array(x, "float32") for x in zip(*itertools.product(SPECIAL, repeat=2), strict=True)
    )
    assert kernels["relu_gradient"](g, out).tobytes() == generic("relu_gradient", g, out).tobytes()


@pytest.mark.parametrize(
    "kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_classes_of_any_integer_dtype_are_read(kind: str, kernels: Named) -> None:
    x, target = numbers((3, 4), "float32"), np.array([0, 3, 1], kind)
    loss, scale = kernels["cross_entropy"](x, target, reduction="sum", label_smoothing=0)
    expected = xgrad.nn.functional.cross_entropy(
        xgrad.asarray(x), xgrad.asarray(target), reduction="sum"
    )
    np.testing.assert_allclose(loss, expected.numpy(), rtol=1e-6)
    assert kernels["cross_entropy_gradient"](
        np.ones((), "float32"), x, target, "sum", 0, scale
    ).shape == (3, 4)


def test_class_out_of_bounds_wraps_around(kernels: Named) -> None:
    x = numbers((2, 4), "float32")
    got, _ = kernels["cross_entropy"](x, np.array([-1, 6]), reduction="none", label_smoothing=0)
    expected, _ = kernels["cross_entropy"](x, np.array([3, 2]), reduction="none", label_smoothing=0)
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0)])
def test_cross_entropy_of_no_rows_is_empty(shape: tuple[int, ...], kernels: Named) -> None:
    x, target = np.ones(shape, "float32"), np.zeros(shape[:1] + shape[2:], "int64")
    losses, scale = kernels["cross_entropy"](x, target, reduction="none", label_smoothing=0)
    assert losses.shape == target.shape and scale.shape == (2, shape[0], 1, *shape[2:])
    assert kernels["cross_entropy_gradient"](losses, x, target, "none", 0, scale).shape == shape


def test_cross_entropy_of_no_classes_is_refused(kernels: Named) -> None:
    with pytest.raises(IndexError, match="expected classes, got none"):
        kernels["cross_entropy"](
            np.ones((2, 0), "float32"), np.zeros(2, int), reduction="sum", label_smoothing=0
        )


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(0, 2), (2, 0)])
def test_softmax_of_no_elements_is_empty(name: str, shape: tuple[int, int], kernels: Named) -> None:
    x = np.ones(shape, "float32")
    assert kernels[name](x, axis=-1).shape == kernels[f"{name}_gradient"](x, x, -1).shape == shape


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_few_huge_rows_use_the_generic_rules(name: str, kernels: Named, cuda: Device) -> None:
    x, gradient = numbers((2, 70_000), "float32"), f"{name}_gradient"
    rule, gradient_rule = [on_host(partial(rule_of(each), cuda.xp)) for each in (name, gradient)]
    out = rule(x, axis=-1)
    assert kernels[name](x, axis=-1).tobytes() == out.tobytes()
    assert kernels[gradient](x, out, -1).tobytes() == gradient_rule(x, out, -1).tobytes()
    loss, (top, total) = kernels["cross_entropy"](
        x, np.array([3, 5]), reduction="none", label_smoothing=0.0
    )
    assert loss.shape == (2,) and top.shape == total.shape == (2, 1)


def test_float16_uses_the_generic_rules(cuda: Device) -> None:
    results = []
    for device in (Device("cpu"), cuda):
        xgrad.manual_seed(0)
        x = xgrad.asarray(numbers((3, 4), "float16"), device=device).requires_grad_()
        y = xgrad.nn.functional.log_softmax(
            xgrad.nn.functional.dropout(xgrad.sigmoid(xgrad.relu(x)))
        )
        xgrad.nn.functional.cross_entropy(y, xgrad.asarray([0, 1, 3], device=device)).backward()
        xgrad.optim.SGD([x], lr=0.5, momentum=0.5).step()
        results.append(x.detach().cpu().numpy())
    assert results[0].dtype == np.float16
    np.testing.assert_allclose(*results, rtol=2e-3, strict=True)


# Random numbers


@pytest.mark.parametrize("as_array", [False, True], ids=["numbers", "arrays"])
@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize(("seed", "call"), [(0, 0), (3, 7), (2**64 - 1, 2**64 - 1)])
def test_random_bits_are_those_of_the_reference(
    seed: int, call: int, width: int, as_array: bool, cuda: Device
) -> None:
    counters = [cuda.xp.asarray(np.uint64(x)) if as_array else x for x in (seed, call)]
    for count in (0, 1, 4, 5, 37):
        words = np.array(stream(seed, call, count), "<u8")
        drawn = cuda.backend.random_bits(*counters, width, count, 0).get()
        np.testing.assert_array_equal(drawn, words.view(f"<i{width // 8}")[:count], strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_seeds_give_the_bits_of_the_host(dtype: str, cuda: Device) -> None:
    assert [seed.what for seed in compare_seeds(cuda, dtype) if not seed.equal] == []


@pytest.mark.parametrize(("width", "dtype"), [(32, "float32"), (64, "float64")])
def test_uniform_numbers_have_the_bits_of_the_host(width: int, dtype: str, cuda: Device) -> None:
    drawn = Device("cpu").backend.random_bits(3, 7, width, 37, 0)
    bits = np.concatenate([drawn, np.array([-1, 0, 255, 2**31 - 1], drawn.dtype)])
    expected = variates.uniform(Device("cpu").xp, bits, np.dtype(dtype))
    got = variates.uniform(cuda.xp, cuda.xp.asarray(bits), np.dtype(dtype)).get()
    assert got.dtype == expected.dtype and got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("p", [1e-9, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_has_the_bits_of_the_generic_rule(
    p: float, dtype: str, cuda: Device, kernels: Named
) -> None:
    for shape in [(), (1,), (16,), (17,), (5, 7), (0, 3), (2049,)]:
        x = np.full(shape, 1.7, dtype)
        mask = dropout_mask(Device("cpu").xp, x, 3, 7, Device("cpu"), p)
        for counter in (7, cuda.xp.asarray(np.uint64(7))):
            result = kernels["dropout"](x, seed=3, call=counter, device=cuda, p=p)
            assert [part.tobytes() for part in result] == [(x * mask).tobytes(), mask.tobytes()]


# Optimizers: `xgrad.parity.fused_parity.KERNEL_CASES` has their options


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name",
    [name for name, case in KERNEL_CASES.items() if case.kernel in ("sgd_step", "adam_step")],
)
def test_update_by_infinities_and_nans_has_the_bits_of_the_generic_rule(
    name: str, dtype: str, kernels: Named
) -> None:
    case, special = KERNEL_CASES[name], np.array(SPECIAL, dtype)
    for make in (float, partial(np.array, dtype="float64"), np.float32):
        results = []
        for update, factor in (
            (kernels[case.kernel], make),
            (partial(generic, case.kernel), lambda x, make=make: float(make(x))),
        ):
            p, g, *rest = case.arguments(dtype)
            g[...] = np.resize(special, len(g))
            before = g.copy()
            rest = [factor(x) if type(x) is float and case.factors else x for x in rest]
            buffer = update(p, g, *rest)
            assert g.tobytes() == before.tobytes()
            results.append([as_on_gpu(x).tobytes() for x in (p, *rest, buffer) if np.ndim(x)])
        assert results[0] == results[1], make


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
    ],
)
def test_training_gives_the_weights_of_the_host(
    kind: str, more: dict[str, Any], cuda: Device
) -> None:
    """Through the buffers of optimizers."""
    weights = []
    for device in (Device("cpu"), cuda):
        xgrad.manual_seed(0)
        model = xgrad.nn.MLP([5, 4, 3], device=device)
        optimizer = getattr(xgrad.optim, kind)(model.parameters(), weight_decay=0.01, **more)
        for step in range(4):
            for p in model.parameters():
                p.grad = xgrad.asarray(numbers(p.shape, "float32", step), device=device)
            optimizer.step()
        weights.append([p.detach().cpu().numpy().tobytes() for p in model.parameters()])
    assert weights[0] == weights[1]


# `xgrad parity`


@pytest.mark.parametrize("dtype", DTYPES)
def test_parity_compares_every_kernel_with_its_rule(dtype: str, device: str) -> None:
    backend, results = Device(device).backend, compare_fused(Device(device), dtype)
    kernels = backend.kernels.keys() - backend.rule_kernels
    assert [x.what for x in results] == [
        what for what, case in KERNEL_CASES.items() if case.kernel in kernels
    ]
    assert [x for x in results if not x.passed] == []
    assert bool(results) == (Device(device).type in ("cuda", "cpu"))


def test_parity_reports_a_kernel_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels: Any = Device("cpu").backend.kernels
    right = kernels["lstm_gradient"]
    monkeypatch.setitem(kernels, "lstm_gradient", lambda *args: [x * 1.1 for x in right(*args)])
    monkeypatch.setitem(kernels, "lstm_steps", lambda *args: 1 / 0)
    report = run([], [Device("cpu")], ["float32"], ["fused"])
    assert report.verdict == "fail"
    text, page = as_text(report, verbose=True), as_html(report)
    assert "fused kernels on cpu: 7 of 9 match the generic rules" in text
    assert "FAILED: the fused kernel of the gradient of an LSTM on cpu in float32: " in text
    assert (
        "FAILED: the fused kernel of the steps of an LSTM on cpu in float32: ZeroDivisionError:"
        " division by zero" in text
    )
    assert text.splitlines()[-1].startswith(
        "FAILED: 2 fused kernels out of tolerance: fused on cpu in float32"
    )
    assert (
        "7 of 9 fused kernels agree with the generic rules" in page and "ZeroDivisionError" in page
    )


# CUDA graphs


def test_kernels_can_be_captured(cuda: Device) -> None:
    """They read no value, and copy nothing from the host."""
    cp, kernels = pytest.importorskip("cupy"), cuda.backend.kernels
    x, g, p, m, v = (cp.asarray(numbers((6, 4), "float32")) for _ in range(5))
    target = cp.asarray([0, 1, 2, 3, 0, 1])
    number = cp.asarray(0.5)
    counter = cp.asarray(np.uint64(7))
    weight = number.astype("float32")

    def work() -> None:
        cuda.backend.random_bits(counter, counter, 32, 9, 0)
        kernels["dropout"](x, seed=counter, call=counter, device=None, p=0.5)
        _, scale = kernels["cross_entropy"](x, target, reduction="mean", label_smoothing=0.1)
        kernels["cross_entropy_gradient"](weight, x, target, "mean", 0.1, scale)
        kernels["log_softmax_gradient"](g, kernels["log_softmax"](x, axis=0), 0)
        kernels["sgd_step"](p, g, m, number, number, number, number, True, False)
        kernels["adam_step"](p, g, m, v, None, *[number] * 6, False)

    work()  # compiles
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        work()
        stream.end_capture()
