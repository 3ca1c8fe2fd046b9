"""Every op of the table, recorded once and replayed: the bits of values and gradients are those of an eager run."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import xgrad
from capturing.twins import alike, snapshot
from xgrad import trees
from xgrad.capturing import CaptureWarning
from xgrad.parity.evaluate import options, quiet, rounded, tensors
from xgrad.parity.table import OPS

WAY = "planned later"  # each op is replayed four times: twice without a plan, twice with one

CPU = xgrad.Device("cpu")
REFUSED = {
    "repeat by an array": "the shape of what repeat returns depends on values",
    "getitem with a mask": "the shape of what x[mask] returns depends on values",
    "nonzero": "the shape of what nonzero returns depends on values",
    "unique_values": "the shape of what unique_values returns depends on values",
    "unique_values of repeated ones": "the shape of what unique_values returns depends on values",
    "unique_all": "the shape of what unique_all returns depends on values",
    "unique_counts": "the shape of what unique_counts returns depends on values",
    "unique_inverse": "the shape of what unique_all returns depends on values",
    "special.multigammaln": "the value of a tensor is read",  # whether it is in the domain
}


def step_of(op, sample, wanted):
    """Return a function of the inputs, and what their gradients are taken with, that returns values and gradients."""
    given = options(sample, CPU)

    def step(inputs, scale):
        # What wants a gradient is made within the step, as a leaf.
        xs = [x.detach().requires_grad_() if wants else x for x, wants in zip(inputs, wanted, strict=True)]
        outs = [out for _, out in trees.leaves(op.fn(*xs, **given)) if isinstance(out, xgrad.Tensor)]
        ends, leaves = [out for out in outs if out.requires_grad], [x for x, w in zip(xs, wanted, strict=True) if w]
        found = ()
        if ends:
            arriving = [scale.astype(out.dtype) * xgrad.ones_like(out.detach()) for out in ends]
            found = xgrad.autograd.grad(ends, leaves, arriving, allow_unused=True)
        return [out.detach() for out in outs], list(found)

    return step


def inputs_of(op, sample, dtype, factor):
    """Return what a sample gives, its floating numbers multiplied, in the layout that it says."""
    arrays = [
        np.asarray(x * factor) if isinstance(x, np.ndarray) and x.dtype.kind in "fc" else x for x in sample.inputs
    ]
    return tensors(rounded(replace(sample, inputs=tuple(arrays)), dtype), CPU, dtype, False)


CASES = [
    pytest.param(op, kind, dtype, id=f"{op.name}{' of complex numbers' * (kind == 'complex')}-{dtype}")
    for op in OPS
    for kind in ("real", "complex")
    for dtype in ("float32", "float64")
    if kind == "real" or op.complex_samples()
]


@pytest.mark.parametrize(("op", "kind", "dtype"), CASES)
def test_replayed_is_eager_to_the_bit(op, kind, dtype):
    dtype = np.dtype(dtype)
    for sample in op.samples if kind == "real" else op.complex_samples():
        with quiet():
            given = [inputs_of(op, sample, dtype, factor) for factor in (1, 1, 0.875, 1.125, 0.75)]
            wanted = [op.differentiable and isinstance(x, xgrad.Tensor) and x.dtype.kind in "fc" for x in given[0]]
            scales = [xgrad.asarray(s, dtype=dtype) for s in (1.0, 1.0, -0.5, 0.75, 1.25)]
            step = step_of(op, sample, wanted)
            captured = xgrad.capture(step)
            for xs, scale in zip(given, scales, strict=True):
                expected, error = attempted(step, xs, scale)
                with warnings.catch_warnings():
                    if op.name in REFUSED:
                        warnings.simplefilter("ignore", CaptureWarning)
                    got, theirs = attempted(captured, xs, scale)
                assert (type(error), str(error)) == (type(theirs), str(theirs)), sample
                alike([snapshot(expected)], [snapshot(got)])
        if op.name in REFUSED:
            continue
        else:
            assert captured.refusal is None and captured.recordings == 1, sample


def attempted(step, *args):
    """Return what a step returns, and the error that it raises."""
    try:
        return step(*args), None
    except Exception as error:
        return None, error


def test_nothing_else_of_the_table_is_refused():
    """One of these that could be replayed is to be taken off the list."""
    refused = {}
    for op in OPS:
        if op.name in REFUSED:
            for sample in op.samples:
                xs = inputs_of(op, sample, np.dtype("float32"), 1)
                captured = xgrad.capture(step_of(op, sample, [False] * len(xs)))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CaptureWarning)
                    captured(xs, xgrad.asarray(1.0))
                if captured.refusal:
                    refused[op.name] = captured.refusal.partition(": ")[2]
    assert refused == REFUSED
