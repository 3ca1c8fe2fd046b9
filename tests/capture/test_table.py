"""Every op of the table, traced and replayed, or refused if it is listed.

Values, gradients and second gradients have the bits of eager runs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import assert_same, snapshot
from xgrad.backend.devices import current_device
from xgrad.capture import CaptureWarning
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import options, quiet, rounded, tensors
from xgrad.support import trees

REFUSED = {
    "repeat by an array": "the shape of what repeat returns depends on values",
    "getitem with a mask": "the shape of what x[mask] returns depends on values",
    "nonzero": "the shape of what nonzero returns depends on values",
    "unique_values": "the shape of what unique_all returns depends on values",
    "unique_values of repeated ones": "the shape of what unique_all returns depends on values",
    "unique_all": "the shape of what unique_all returns depends on values",
    "unique_counts": "the shape of what unique_counts returns depends on values",
    "unique_inverse": "the shape of what unique_all returns depends on values",
    "allclose": "the value of a tensor is read",
    "bincount": "the value of a tensor is read",
    "bincount of weights": "the value of a tensor is read",
    "expm": "the value of a tensor is read",  # how often to square
    "sqrtm": "the value of a tensor is read",  # whether the iteration has converged
}
# These wait for the GPU.
SOLVERS = "cholesky det eig eigh eigvalsh inv matrix_rank pinv qr slogdet solve svd svdvals"
# These run on the host.
SCIPY = "betaincc hyp1f1 hyp2f1 i0e i1e iv ive jv k0e k1e kv kve spence stdtr stdtrit yv"
NOT_IN_A_GRAPH = (
    f"({'|'.join([*SOLVERS.split(), *SCIPY.split()])}) cannot be part of a CUDA graph: "
)


def step_of(
    op: OpCase, sample: Sample, wanted: list[bool], order: int
) -> Callable[[list[Any], Any], Any]:
    """Return a function that returns values and gradients.

    It takes inputs, and a factor of the first gradient.
    """
    # not `op`, whose samples would be searched for state
    fn, fixed = (op.fn, options(sample, current_device()))

    def step(inputs: list[Any], scale: Any) -> Any:
        xs = [
            x.detach().requires_grad_() if wants else x
            for x, wants in zip(inputs, wanted, strict=True)
        ]
        outs = [out for _, out in trees.leaves(fn(*xs, **fixed)) if isinstance(out, xgrad.Tensor)]
        leaves, orders = [x for x, wants in zip(xs, wanted, strict=True) if wants], []
        ends, cotangents = [out for out in outs if out.requires_grad], []
        for _ in range(order):
            if ends:
                cotangents = [
                    scale.astype(out.dtype) * xgrad.ones_like(out.detach()) for out in ends
                ]
                orders.append(
                    xgrad.autograd.grad(
                        ends, leaves, cotangents, create_graph=order > 1, allow_unused=True
                    )
                )
                ends = [g for g in orders[-1] if g is not None and g.requires_grad]
        gradients = [[g if g is None else g.detach() for g in each] for each in orders]
        return [out.detach() for out in outs], gradients

    return step


def inputs_of(op: OpCase, sample: Sample, dtype: Any, factor: float) -> list[Any]:
    """Return a sample's inputs in their memory layout, floating numbers multiplied by a factor."""
    arrays = [
        np.asarray(x * factor) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x
        for x in sample.inputs
    ]
    return tensors(
        rounded(replace(sample, inputs=tuple(arrays)), dtype), current_device(), dtype, False
    )


CASES = [
    pytest.param(
        op, kind, dtype, id=f"{op.name}{' of complex numbers' * (kind == 'complex')}-{dtype}"
    )
    for op in OP_CASES
    for kind in ("real", "complex")
    for dtype in ("float32", "float64")
    if kind == "real" or op.complex_samples()
]


@pytest.mark.parametrize(("op", "kind", "dtype"), CASES)
def test_op_replayed_has_the_bits_of_eager_unless_listed_as_refused(
    op: OpCase, kind: str, dtype: str, capturing_device: str
) -> None:
    refusals, on_cpu = set(), capturing_device == "cpu"
    for sample in op.samples if kind == "real" else op.complex_samples():
        with quiet():
            inputs = [inputs_of(op, sample, np.dtype(dtype), factor) for factor in (1, 0.875)]
            wanted = [
                op.differentiable and isinstance(x, xgrad.Tensor) and x.dtype.kind in "fc"
                for x in inputs[0]
            ]
            scales = [xgrad.asarray(s, dtype=np.dtype(dtype)) for s in (1.0, -0.5)]
            step = step_of(op, sample, wanted, 2 if any(wanted) else 0)
            captured = xgrad.capture(step)
            for xs, scale in zip(inputs, scales, strict=True):
                expected, error = attempt(step, xs, scale)
                with warnings.catch_warnings():
                    if op.name in REFUSED or not on_cpu:
                        warnings.simplefilter("ignore", CaptureWarning)
                    got, other = attempt(captured, xs, scale)
                assert (type(error), str(error)) == (type(other), str(other)), sample
                assert_same([snapshot(expected)], [snapshot(got)])
        reason = (captured.refusal or "").partition(": ")[2]
        refusals.add("" if not on_cpu and re.match(NOT_IN_A_GRAPH, reason) else reason)
        assert captured.refusal or captured.recordings == 1, sample
    assert refusals - {""} == ({REFUSED[op.name]} if op.name in REFUSED else set())


def attempt(step: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    """Return what a step returns, and the error that it raises."""
    try:
        return step(*args), None
    except Exception as error:
        return None, error
