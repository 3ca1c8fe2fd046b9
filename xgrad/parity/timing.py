"""Times of an op with its gradient, for information only: no tolerance applies to them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

import xgrad
from xgrad.backend.device import Device
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import options, outputs, tensors, weights

LARGE = 1 << 16


@dataclass(frozen=True)
class Timing:
    """The time of a call and its backward pass, in microseconds.

    `large` is the time on 65 536 elements, for elementwise ops.
    """

    device: str
    dtype: str
    small: float
    large: float | None = None


def timed(op: OpCase, device: Device, dtype: str) -> Timing:
    """Return the median times of calls on the largest sample of the case, and on a large one."""
    small = max((s for s in op.samples if s.layout == "plain"), key=_elements)
    large = op.range_sample(LARGE)
    slow = None if large is None else _microseconds(op, large, device, dtype, 3)
    return Timing(str(device), dtype, _microseconds(op, small, device, dtype, 7), slow)


def _elements(sample: Sample) -> int:
    return max((x.size for x in sample.inputs if isinstance(x, np.ndarray)), default=0)


def _microseconds(op: OpCase, sample: Sample, device: Device, dtype: str, calls: int) -> float:
    inputs, keywords = tensors(sample, device, dtype, op.differentiable), options(sample, device)
    seeds = None
    times = []
    try:
        for _ in range(1 + calls):  # the first call is not counted: it may compile
            device.synchronize()
            start = time.perf_counter()
            outs = outputs(op.fn(*inputs, **keywords))
            if any(out.requires_grad for out in outs):
                if seeds is None:
                    seeds = [
                        xgrad.asarray(
                            weights(out.shape, np.dtype(dtype)), dtype=out.dtype, device=device
                        )
                        for out in outs
                    ]
                xgrad.autograd.backward(outs, seeds)
            device.synchronize()
            times.append(time.perf_counter() - start)
    except Exception:  # reported by the comparison
        return float("nan")
    return 1e6 * median(times[1:])
