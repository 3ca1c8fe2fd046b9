"""Cases of Fourier transforms: even and odd lengths, cropping and padding, all norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.parity.op_case import OpCase, Sample, Shape, a, op_case, sample, z
from xgrad.parity.tolerance import EXACT, TRANSFORMS

ONE: list[tuple[Shape, dict[str, Any]]] = [
    ((5,), {}),
    ((6,), {"norm": "ortho"}),
    ((2, 3), {"axis": 0, "norm": "forward"}),
    ((3, 2, 2), {"axis": 1}),
    ((5,), {"n": 3}),
    ((3,), {"n": 6, "norm": "forward"}),
    ((2, 3), {"n": 4, "axis": -2, "norm": "ortho"}),
    ((4, 2), {"n": 3, "axis": 0}),
    ((2,), {"n": 1}),
]
MANY: list[tuple[Shape, dict[str, Any]]] = [
    ((3, 4), {}),
    ((2, 3, 2), {"axes": (0, 2), "norm": "ortho"}),
    ((2, 3), {"s": (3, 2), "axes": (0, 1)}),
    ((2, 3, 3), {"s": (4, 3), "axes": (2, 0), "norm": "forward"}),
    ((2, 3), {"s": (-1, 5), "axes": (-1, 0)}),
    ((4,), {}),
    ((2, 3, 4), {"s": (5, -1)}),
]
REAL_INPUTS = ("rfft", "rfftn", "ihfft")


def _inputs(name: str) -> Callable[..., np.ndarray]:
    return a if name in REAL_INPUTS else z


def transform(name: str) -> OpCase:
    """Return the case of a transform."""
    inputs = _inputs(name)
    samples = [
        Sample((inputs(*shape),), options)
        for shape, options in (MANY if name.endswith("n") else ONE)
    ]
    samples += [
        sample(inputs(3, 4, key="t"), layout="transposed"),
        sample(inputs(5, key="r"), layout="reversed"),
    ]
    if name in ("fft", "ifftn"):
        samples.append(sample(a(2, 3, key="real")))
    return op_case(f"fft.{name}", TRANSFORMS, *samples)


def empty_transform(name: str) -> OpCase:
    """Return the case of a transform without elements, which PyTorch does not support."""
    inputs = _inputs(name)
    samples = [sample(inputs(2, 0, 3)), sample(inputs(2, 0), n=4)]
    if name.endswith("n"):
        samples = [sample(inputs(2, 0, 3), axes=(2,)), sample(inputs(2, 0), s=(3, 4))]
    return op_case(f"fft.{name} of nothing", TRANSFORMS, *samples, torch=None)


TRANSFORM_NAMES = (
    "fft",
    "ifft",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfftn",
    "irfftn",
    "hfft",
    "ihfft",
)
CASES: list[OpCase] = [
    *map(transform, TRANSFORM_NAMES),
    *map(empty_transform, TRANSFORM_NAMES),
    *[
        op_case(
            f"fft.{name}",
            EXACT,
            sample((5,)),
            sample(z(2, 3)),
            sample((2, 3, 3), axes=(0, 2)),
            sample((4, 3), axes=1),
            sample((0, 3)),
            sample((2, 3), layout="transposed"),
        )
        for name in ("fftshift", "ifftshift")
    ],
]
