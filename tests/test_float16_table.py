"""Every op of the table in float16, compared with float64 and with PyTorch's float16.

Values and gradients are compared.

`tests/test_float16.py` has promotion, files and models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import Run, options, quiet, rounded, run_op, run_op_pytorch, tensors
from xgrad.parity.tolerance import EXACT

pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore:.*egrees of freedom is <= 0.*"
)

HALF = np.dtype("float16")
EPS, TINY, LARGEST = float(np.finfo(HALF).eps), float(np.finfo(HALF).smallest_subnormal), 65504.0

#: Ops that LAPACK computes, which has no float16.
LAPACK = frozenset(
    """cholesky cholesky_solve det eig eigh eigvals eigvalsh expm inv lstsq matrix_rank pinv qr
    slogdet solve solve_triangular sqrtm svd svdvals""".split()
)
#: Samples of other ops that call the ops of LAPACK.
OF_LAPACK = {"matrix_power": (-1, -3)}
#: Ops with results of float32 or complex64: there is no complex number of float16.
SINGLE = frozenset(
    op.name for op in OP_CASES if op.name.startswith("fft.") and "shift" not in op.name
)
#: Cases of complex numbers alone.
COMPLEX = frozenset(
    [
        "imag",
        "fft.fft of nothing",
        "fft.ifft of nothing",
        "fft.fftn of nothing",
        "fft.ifftn of nothing",
    ]
    + ["fft.irfft of nothing", "fft.irfftn of nothing", "fft.hfft of nothing"]
    + [f"fft.{name}" for name in "ifft fftn ifftn irfft irfftn hfft fftshift ifftshift".split()]
)
#: Ops with products, sums or gates in the middle of them that overflow for large inputs, in
#: PyTorch, too.
OVERFLOWING = frozenset(
    """cross cumulative_prod einsum gru rnn lstm matrix_power conv_transpose1d
    conv_transpose2d""".split()
)
#: Cases of which PyTorch's float16 is off, by the scale of the inputs, and why.
PYTORCH_IS_OFF = {
    "vector_norm": ((500,), "cubes of numbers above 40 overflow in its gradient"),
    "cosine_embedding_loss": ((1,), "sums and quotients are rounded"),
    "lstm": ((1,), "the parity case of PyTorch is a composition, and each op rounds"),
    "special.rel_entr": ((1,), "the parity case is a composition, and each op rounds"),
    "special.pseudo_huber": ((1,), "the parity case is a composition, and each op rounds"),
    "special.exprel": ((1,), "the parity case is a composition, and each op rounds"),
    "logcumsumexp": ((500,), "its gradient cancels"),
    "corrcoef": ((1, 500), "each op rounds, and squares overflow"),
    "addcdiv": ((500,), "its gradient is rounded before the sum"),
    "gradient on a grid": ((500,), "products of distances overflow"),
    "lp_pool1d": ((500,), "squares overflow"),
    "lp_pool2d": ((500,), "squares overflow"),
    "local_response_norm": ((500,), "squares overflow"),
    "grid_sample by mode bicubic": ((1,), "weights are rounded"),
}
#: Ops whose products and intermediate results stay in float16 on a device that is fast in it, as in
#: PyTorch: they are off by a multiple of the rounding of their largest element, and overflow.
ROUNDED_BETWEEN = frozenset({"rnn", "lstm", "gru", "scaled_dot_product_attention"})
#: Ops of probabilities, and of places in an image.
BOUNDED = frozenset({"binary_cross_entropy", "grid_sample"})


def samples(op: OpCase, scale: float) -> Iterator[Sample]:
    """Yield the samples of real numbers that an op takes in float16, with inputs times `scale`."""
    for sample in [*op.samples, *([op.range_sample()] if op.ranges and scale == 1 else [])]:
        assert sample is not None
        arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
        if any(x.dtype.kind == "c" for x in arrays) or uses_lapack(op, sample):
            continue
        inputs = [np.asarray(x * scale) if is_real(x) else x for x in sample.inputs]
        yield replace(sample, inputs=tuple(inputs))


def is_real(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def uses_lapack(op: OpCase, sample: Sample) -> bool:
    """Return whether a sample of an op needs a function of LAPACK."""
    orders = OF_LAPACK.get(op.function_name, ())
    return op.function_name in LAPACK or any(
        x in orders for x in (*sample.inputs[1:], *sample.options.values())
    )


def bounds(op: OpCase, sample: Sample, result: Any) -> tuple[Run, Run]:
    """Return results and gradients in float64 of the rounded inputs, and bounds of errors.

    A bound is 3 ULPs of float16 and, unless the op only moves numbers, as much as results change if
    each input changes by an ULP: where large terms cancel, no algorithm that rounds can do better.
    Where float16 overflows there is no bound.
    """
    cpu, sample = xgrad.Device("cpu"), rounded(sample, HALF)

    def run(given: Sample) -> Run:
        return run_op(
            op, given, cpu, "float64", HALF if given is sample else "float64", result="float64"
        )

    exact = run(sample)
    largest = max(
        [1, *[np.abs(x[np.isfinite(x)]).max(initial=1) for x in sample.inputs if is_real(x)]]
    )
    limits = [
        [np.asarray(3 * EPS * np.abs(x) + 2 * TINY * largest) for x in part] for part in exact
    ]
    for seed in range(0 if op.tolerance is EXACT else 4):
        near = replace(sample, inputs=tuple([_perturbed(x, seed) for x in sample.inputs]))
        for part, near_part, limit in zip(exact, run(near), limits, strict=True):
            for x, y, bound in zip(part, near_part, limit, strict=True):
                bound += 2 * np.abs(np.where((x == y) | np.isnan(x - y), 0, x - y))
    limits = [
        [
            np.where(np.abs(x) <= LARGEST, bound, np.inf)
            for x, bound in zip(part, limit, strict=True)
        ]
        for part, limit in zip(exact, limits, strict=True)
    ]
    return exact, Run(*limits)


def _perturbed(x: Any, seed: int) -> Any:
    """Return an array with each element changed by an ULP of float16, up or down."""
    if not is_real(x):
        return x
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], x.shape)
    return np.asarray(x * (1 + EPS * signs))


def check_close(got: Run, want: Run, limits: Run, factor: float = 1) -> None:
    for kind, parts in zip(
        ("values", "gradients"), zip(got, want, limits, strict=True), strict=True
    ):
        for i, (x, y, limit) in enumerate(zip(*parts, strict=True)):
            assert x.shape == y.shape, f"{kind}[{i}]"
            if x.dtype.kind not in "fc":
                np.testing.assert_array_equal(x, y, err_msg=f"{kind}[{i}]")
                continue
            x, y = x.astype(complex), y.astype(complex)
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | np.isinf(limit)
            wrong = ~same & ~(np.abs(np.where(same, 0, x) - np.where(same, 0, y)) <= factor * limit)
            text = (
                f"{kind}[{i}]: expected {y[wrong][:3]} within {limit[wrong][:3]}, got"
                f" {x[wrong][:3]}"
            )
            assert not wrong.any(), text


ROWS = [
    pytest.param(op, scale, id=f"{op}-{scale}")
    for op in OP_CASES
    for scale in ((1,) if op.ranges or op.function_name in OVERFLOWING | BOUNDED else (1, 500))
    if op.function_name not in LAPACK and op.name not in COMPLEX
]


def usable(op: OpCase, device: str) -> xgrad.Device:
    if device == "strict":
        pytest.skip("array-api-strict has no float16")
    if "scipy" in op.needs:
        pytest.importorskip("scipy", reason="needs scipy")
    target = xgrad.Device(device)
    if reason := op.unsupported.get(target.type):
        pytest.skip(f"{op} on {device}: {reason}")
    return target


@pytest.mark.parametrize(("op", "scale"), ROWS)
def test_values_and_gradients_of_float16_agree_with_float64(
    op: OpCase, scale: float, device: str
) -> None:
    target, result = usable(op, device), "float32" if op.name in SINGLE else HALF
    if scale > 1 and target.backend.fast_float16 and op.function_name in ROUNDED_BETWEEN:
        pytest.skip(f"{op}: scores above 65504 overflow in float16")
    if op.name in SINGLE and target.backend.library == "torch":
        pytest.skip("PyTorch has no transform of float16 on the CPU: see the test of the error")
    compared = 0
    with quiet():
        for sample in samples(op, scale):
            exact, limits = bounds(op, sample, result)
            if target.backend.fast_float16 and op.function_name in ROUNDED_BETWEEN:
                limits = Run(
                    *[
                        [y + 8 * EPS * np.abs(x).max(initial=0) for x, y in zip(*part, strict=True)]
                        for part in zip(exact, limits, strict=True)
                    ]
                )
            try:
                check_close(run_op(op, sample, target, HALF, result=result), exact, limits)
            except Exception as error:
                error.add_note(f"on the sample {sample}")
                raise
            compared += 1
    assert compared


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(("op", "scale"), [row for row in ROWS if row.values[0].torch is not None])
def test_values_and_gradients_of_float16_agree_with_pytorch(op: OpCase, scale: float) -> None:
    result = "float32" if op.name in SINGLE else HALF
    scales, _ = PYTORCH_IS_OFF.get(op.name, ((), ""))
    worst = None
    with quiet():
        for sample in samples(op, scale):
            exact, limits = bounds(op, sample, result)
            try:
                want = run_op_pytorch(op, sample, HALF)
            except (NotImplementedError, RuntimeError):  # PyTorch has no float16 of this on the CPU
                continue
            overflown = [
                [
                    np.where(np.isfinite(y), bound, np.inf)
                    for y, bound in zip(part, limit, strict=True)
                ]
                for part, limit in zip(want, limits, strict=True)
            ]
            got = run_op(op, sample, xgrad.Device("cpu"), HALF, result=result)
            try:
                check_close(got, want, Run(*overflown), factor=2)
            except AssertionError as error:
                error.add_note(f"on the sample {sample}")
                if scale not in scales:
                    raise
                with pytest.raises(AssertionError):
                    check_close(want, exact, Run(*overflown))
                worst = error
    assert scale not in scales or worst, "PyTorch agrees: remove the case from PYTORCH_IS_OFF"


@pytest.mark.parametrize(
    "op", [op for op in OP_CASES if op.function_name in {*LAPACK, *OF_LAPACK}], ids=str
)
def test_ops_of_lapack_refuse_float16(op: OpCase) -> None:
    cpu, refused = xgrad.Device("cpu"), 0
    for sample in op.samples:
        arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
        if uses_lapack(op, sample) and all(x.dtype.kind == "f" and x.size for x in arrays):
            with pytest.raises(
                TypeError, match=r"array type float16 is unsupported in linalg \(got .*float16"
            ):
                op.fn(*tensors(sample, cpu, HALF, False), **options(sample, cpu))
            refused += 1
    assert refused


@pytest.mark.parametrize("op", [op for op in OP_CASES if op.name in SINGLE - COMPLEX], ids=str)
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.usefixtures("torch")
def test_transforms_of_float16_without_a_kernel_are_refused(op: OpCase) -> None:
    target = xgrad.Device("torch")
    for sample in samples(op, 1):
        with pytest.raises((RuntimeError, KeyError), match=r"Half|complex32"):
            op.fn(*tensors(sample, target, HALF, False), **options(sample, target))
