"""How long an op takes with its gradient: beside the errors, and never judged."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

import xgrad
from xgrad.backend.device import Device
from xgrad.parity.evaluate import options, outputs, tensors, weights
from xgrad.parity.row import Op, Sample

LARGE = 1 << 16


@dataclass(frozen=True)
class Timing:
    """Microseconds of a call and its way back; `large` on 65 536 elements, for ops that work element by element."""

    device: str
    dtype: str
    small: float
    large: float | None = None


def timed(op: Op, device: Device, dtype: str) -> Timing:
    """Return the medians of a few calls on the largest of the small samples, and on a large one."""
    small = max((s for s in op.samples if s.layout == "plain"), key=_elements)
    large = op.wide_sample(LARGE)
    return Timing(
        str(device),
        dtype,
        _microseconds(op, small, device, dtype, 7),
        None if large is None else _microseconds(op, large, device, dtype, 3),
    )


def _elements(sample: Sample) -> int:
    return max((x.size for x in sample.inputs if isinstance(x, np.ndarray)), default=0)


def _microseconds(op: Op, sample: Sample, device: Device, dtype: str, calls: int) -> float:
    inputs, given = tensors(sample, device, dtype, op.differentiable), options(sample, device)
    seeds = None
    taken = []
    try:
        for _ in range(1 + calls):  # the first is not counted: it may compile
            device.synchronize()
            start = time.perf_counter()
            outs = outputs(op.fn(*inputs, **given))
            if any(out.requires_grad for out in outs):
                if seeds is None:
                    seeds = [
                        xgrad.asarray(weights(out.shape, np.dtype(dtype)), dtype=out.dtype, device=device)
                        for out in outs
                    ]
                xgrad.autograd.backward(outs, seeds)
            device.synchronize()
            taken.append(time.perf_counter() - start)
    except Exception:  # which the comparison reports
        return float("nan")
    return 1e6 * median(taken[1:])
