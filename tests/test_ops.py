"""Every op of the table on every device: second derivatives, and complex numbers.

They are compared with finite differences, PyTorch and `cpu`. `tests/parity/test_compare.py` has the
values and first derivatives of real numbers, with special values.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module

import numpy as np
import pytest

import xgrad
from xgrad.autograd import grad
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import (
    options,
    outputs,
    quiet,
    run_op,
    run_op_pytorch,
    tensors,
    to_numpy,
    weights,
)
from xgrad.testing import gradcheck, gradgradcheck

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0.*"),
    pytest.mark.filterwarnings("ignore:.*Degrees of freedom <= 0.*:RuntimeWarning"),
]
COMPLEX = [op for op in OP_CASES if op.complex]
DIFFERENTIABLE = [op for op in OP_CASES if op.differentiable]


def usable(device: str, op: OpCase) -> xgrad.Device:
    """Return the device, or skip the test with the reason why the op cannot run on it."""
    target = xgrad.Device(device)
    if "scipy" in op.needs:
        pytest.importorskip("scipy", reason="needs scipy")
    if reason := op.unsupported.get(target.type):
        pytest.skip(f"{op} on {device}: {reason}")
    return target


@contextmanager
def noted(sample: Sample) -> Iterator[None]:
    """Add the sample to the notes of an exception."""
    try:
        yield
    except Exception as error:
        error.add_note(f"on the sample {sample}")
        raise


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", [op for op in COMPLEX if op.torch is not None], ids=str)
def test_complex_values_and_gradients_agree_with_pytorch(
    op: OpCase, dtype: str, device: str
) -> None:
    target = usable(device, op)
    rtol, atol = (
        (op.torch_rtol[0] if op.torch_rtol else 1e-10, 1e-12)
        if dtype == "float64"
        else (1e-5, 2e-6)
    )
    for sample in op.complex_samples():
        with noted(sample):
            # checks shapes, dtypes and devices
            values, gradients = run_op(op, sample, target, dtype)
            expected, expected_gradients = run_op_pytorch(op, sample, dtype)
            for got, want in zip(values, expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
                assert (got.shape, got.dtype.kind) == (want.shape, want.dtype.kind)
            for got, want in zip(gradients, expected_gradients, strict=True):
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def check(
    derivatives: Callable[..., bool], op: OpCase, samples: list[Sample], device: str, **mode: bool
) -> None:
    target = usable(device, op)
    if op.no_derivative:
        pytest.skip(f"{op.no_derivative}: what is documented is compared with PyTorch")
    nondet_tol = 1e-12 if device == "cuda" else 0.0  # a GPU adds at repeated indices in any order
    for sample in samples:
        with noted(sample):
            fn = partial(op.fn, **options(sample, target))
            assert derivatives(
                fn,
                tensors(sample, target, np.dtype("float64"), True),
                nondet_tol=nondet_tol,
                **mode,
            )


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_second_derivatives_agree_with_differences_and_between_devices(
    op: OpCase, device: str
) -> None:
    samples = [*op.samples, *op.complex_samples()]
    target = usable(device, op)
    cpu = xgrad.Device("cpu")
    if target is cpu:
        return check(gradgradcheck, op, samples, device)
    for (
        sample
    ) in samples:  # the rules have passed on `cpu`, and a comparison costs a fifth of differences
        with noted(sample):
            for x, y in zip(
                *[second_derivatives(op, sample, each) for each in (target, cpu)], strict=True
            ):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


def second_derivatives(op: OpCase, sample: Sample, device: xgrad.Device) -> list[np.ndarray]:
    """Return the gradients of a weighted sum of an op's gradients.

    They are by the inputs, and by the incoming gradients.
    """

    def weighted(x: xgrad.Tensor) -> xgrad.Tensor:
        return xgrad.asarray(weights(x.shape, np.dtype(str(x.dtype)), sample.start), device=device)

    given = tensors(sample, device, np.dtype("float64"), True)
    xs = [x for x in given if isinstance(x, xgrad.Tensor) and x.requires_grad]
    outs = [out for out in outputs(op.fn(*given, **options(sample, device))) if out.requires_grad]
    gs = [weighted(out).requires_grad_() for out in outs]
    first = [g for g in grad(outs, xs, gs, create_graph=True, allow_unused=True) if g is not None]
    assert all(g.device is device for g in first)
    ends = [g for g in first if g.requires_grad]
    second = grad(ends, [*xs, *gs], [weighted(g) for g in ends], allow_unused=True) if ends else []
    return [np.zeros(()) if g is None else to_numpy(g) for g in second]


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.complex], ids=str)
def test_complex_gradients_agree_with_differences(op: OpCase, device: str) -> None:
    # Rules are the same on all devices: a random direction suffices on others.
    check(gradcheck, op, op.complex_samples(), device, fast_mode=device != "cpu")


EXTENSIONS = {
    module: names
    for module, names in vars(xgrad)["_FUNCTIONS"].items()
    if module.startswith("ops.")
}
CREATION = {
    "asarray",
    "from_dlpack",
    "zeros",
    "ones",
    "empty",
    "empty_like",
    "full",
    "arange",
    "linspace",
    "eye",
    "tril_indices",
    "triu_indices",
}
OF_DTYPES = {"can_cast", "finfo", "iinfo", "isdtype", "result_type"}


def test_every_declared_op_is_in_the_table() -> None:
    """Rules of ops without a row would not be checked."""
    declared = {name for name in xgrad.ops.__all__ if callable(getattr(xgrad.ops, name))}
    declared |= {
        f"{module}.{name}"
        for module in ("fft", "special")
        for name in getattr(xgrad, module).__all__
    }
    declared |= set(xgrad.linalg.__all__) | {
        name for names in EXTENSIONS.values() for name in names
    }
    declared |= set(xgrad.nn.functional.__all__)
    tested = {op.function_name for op in OP_CASES}
    elsewhere = {
        "to_device",
        "nextafter",
        "fft.fftfreq",
        "fft.rfftfreq",
        "special.expit",
        "special.digamma",
    }
    elsewhere |= CREATION | OF_DTYPES | {"broadcast_shapes", "dropout1d", "dropout2d", "dropout3d"}
    elsewhere |= {"alpha_dropout", "feature_alpha_dropout"}
    assert declared - tested - elsewhere == set()


def test_names_of_cases_differ() -> None:
    names = [op.name for op in OP_CASES]
    assert sorted(names) == sorted(set(names))


#: Ops that rules alone call: the tests of second derivatives run their rules.
OF_RULES = {
    "cofactors",
    "convolution_weight",
    "maximum_pool_choice",
    "maximum_pool_gradient",
    "normal_probability",
    "put_along_axis",
    "scatter_add",
    "sum_pool_gradient",
    "with_gradient_share",  # no derivative, as PyTorch's scale_grad_by_freq: nn/test_embedding.py
}


def test_every_differentiable_op_is_recorded_by_a_case() -> None:
    """A case of a function may miss the ops that it calls for other options."""
    pytest.importorskip("scipy", reason="needs scipy")
    modules = [
        import_module(f"xgrad.ops.{module.name}")
        for module in pkgutil.iter_modules(xgrad.ops.__path__)
    ]
    functions = [getattr(x, "function", None) for module in modules for x in vars(module).values()]
    declared = {f.name for f in functions if isinstance(f, xgrad.Function) and any(f.rules)}
    recorded, cpu = set(), xgrad.Device("cpu")
    for op in DIFFERENTIABLE:
        for sample in op.samples:
            with quiet():
                outs = outputs(
                    op.fn(*tensors(sample, cpu, np.dtype("float64"), True), **options(sample, cpu))
                )
            edges = [out.grad_fn for out in outs]
            while edges:
                edge = edges.pop()
                if edge is not None:
                    recorded.add(edge.name.partition("[")[0])
                    edges += edge.edges
    assert declared - recorded - OF_RULES == set()
