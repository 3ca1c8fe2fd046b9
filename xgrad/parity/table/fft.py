"""Rows of Fourier transforms: lengths even and odd, cut and filled up, all norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad import fft
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample, a, row, z
from xgrad.parity.tolerance import EXACT, TRANSFORMS

ONE: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((5,), {}), ((6,), {"norm": "ortho"}), ((2, 3), {"axis": 0, "norm": "forward"}), ((3, 2, 2), {"axis": 1}),
    ((5,), {"n": 3}), ((3,), {"n": 6, "norm": "forward"}), ((2, 3), {"n": 4, "axis": -2, "norm": "ortho"}),
    ((4, 2), {"n": 3, "axis": 0}), ((2,), {"n": 1}),
]  # fmt: skip
MANY: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((3, 4), {}), ((2, 3, 2), {"axes": (0, 2), "norm": "ortho"}), ((2, 3), {"s": (3, 2), "axes": (0, 1)}),
    ((2, 3, 3), {"s": (4, 3), "axes": (2, 0), "norm": "forward"}), ((2, 3), {"s": (-1, 5), "axes": (-1, 0)}),
    ((4,), {}), ((2, 3, 4), {"s": (5, -1)}),
]  # fmt: skip


def transform(name: str, cases: list[tuple[tuple[int, ...], dict[str, Any]]], inputs: Callable[..., np.ndarray]) -> Op:
    """Return the row of a transform, which PyTorch calls the same; the last samples are the other layouts."""
    samples = [Sample((inputs(*shape),), options) for shape, options in cases]
    samples += [Sample((inputs(3, 4, key="t"),), layout="transposed"), Sample((inputs(5, key="r"),), layout="reversed")]
    if inputs is z and name in ("fft", "ifftn"):
        samples.append(Sample((a(2, 3, key="real"),)))
    return row(f"fft.{name}", TRANSFORMS, getattr(fft, name), _theirs(name), *samples)


def _theirs(name: str) -> Callable[..., Any]:
    def call(x: Any, n: Any = None, s: Any = None, axis: int = -1, axes: Any = None, norm: str = "backward") -> Any:
        several = name.endswith("n")
        return getattr(torch.fft, name)(x, s if several else n, axes if several else axis, norm)

    return call


ROWS: list[Op] = [
    transform("fft", ONE, z),
    transform("ifft", ONE, z),
    transform("fftn", MANY, z),
    transform("ifftn", MANY, z),
    transform("rfft", ONE, a),
    transform("irfft", ONE, z),
    transform("rfftn", MANY, a),
    transform("irfftn", MANY, z),
    transform("hfft", ONE, z),
    transform("ihfft", ONE, a),
    # PyTorch has none of nothing
    *[row(f"fft.{name} of nothing", TRANSFORMS, getattr(fft, name), None, Sample((inputs(2, 0, 3),), axis), Sample((inputs(2, 0),), options))
      for names, options, axis in ((("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), {"n": 4}, {}), (("fftn", "ifftn", "rfftn", "irfftn"), {"s": (3, 4)}, {"axes": (2,)}))
      for name in names for inputs in (a if name in ("rfft", "rfftn", "ihfft") else z,)],
    *[row(f"fft.{name}", EXACT, getattr(fft, name), lambda x, axes=None, name=name: getattr(torch.fft, name)(x, axes),
          Sample((a(5),)), Sample((z(2, 3),)), Sample((a(2, 3, 3),), {"axes": (0, 2)}), Sample((a(4, 3),), {"axes": 1}), Sample((a(0, 3),)), Sample((a(2, 3),), layout="transposed"))
      for name in ("fftshift", "ifftshift")],
]  # fmt: skip
