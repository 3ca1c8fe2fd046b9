"""The reference: the op in higher precision, and its derivative by finite differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from xgrad.backend import Backend
from xgrad.backend.device import Device
from xgrad.backend.registry import open_backend
from xgrad.parity.mpmath_reference import DOUBLE, LONG, LinearAlgebra, SpecialFunctions
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.run_op import Run, like, run_op, weights

FLOAT64 = np.dtype("float64")


class _Namespace:
    """The namespace of the NumPy backend, with linear algebra and special functions by mpmath."""

    def __init__(self, xp: Any) -> None:
        self._xp, self.linalg, self.special = xp, LinearAlgebra(xp.linalg), SpecialFunctions()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._xp, name)
        setattr(self, name, value)
        return value


class ExtendedBackend(Backend):
    """NumPy with ``long double`` in place of float64, which has 11 more bits of mantissa on x86."""

    library = "numpy"
    array_type = np.ndarray

    def __init__(self) -> None:
        self._numpy = open_backend("cpu")
        self.xp = _Namespace(self._numpy.xp)

    def native_device(self, index: int) -> Any:
        return self._numpy.native_device(index)

    def to_host(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def from_host(self, x: np.ndarray, index: int) -> np.ndarray:
        return x.astype(self.dtype(x.dtype), copy=False)

    def array_converter(self, index: int) -> Callable[[Any], np.ndarray]:
        return np.asarray

    def dtype(self, dtype: Any) -> Any:
        return LONG.get(np.dtype(dtype), np.dtype(dtype))

    def numpy_dtype(self, dtype: Any) -> Any:
        return DOUBLE.get(dtype, np.dtype(dtype))

    def index_add(self, x: Any, key: Any, values: Any) -> Any:
        return self._numpy.index_add(x, key, values)


class Reference(NamedTuple):
    """The device of the reference, its description and its machine epsilon."""

    device: Device
    description: str
    eps: float


@cache
def reference() -> Reference:
    """Return the reference of the highest precision on this machine."""
    eps = float(np.finfo(np.longdouble).eps)
    if eps < np.finfo(FLOAT64).eps:
        bits = np.finfo(np.longdouble).nmant + 1
        text = (
            f"the same op in NumPy's long double, {bits} bits of mantissa, special functions and"
            " decompositions in mpmath, from the same rounded inputs"
        )
        return Reference(Device.of("extended", ExtendedBackend()), text, eps)
    text = (
        "the same op on cpu in float64 (long double has no more precision here), from the same"
        " rounded inputs"
    )
    return Reference(Device("cpu"), text, float(np.finfo(FLOAT64).eps))


class Differences(NamedTuple):
    """Derivatives by central differences, and the sensitivity to rounded inputs.

    There is one derivative for each floating input.

    Attributes
    ----------
    gradients : list of array
        The gradients; of complex inputs ``dL/dRe z + i dL/dIm z``.
    noise : list of array
        Their error by rounding; infinite where the function has a kink or a jump within two steps.
    value_changes, gradient_changes : list of array
        The sums of the derivatives' magnitudes times the inputs' magnitudes. They bound the change
        of each result and gradient for a relative change of the inputs and of the output gradient.
    """

    gradients: list[np.ndarray]
    noise: list[np.ndarray]
    value_changes: list[np.ndarray]
    gradient_changes: list[np.ndarray]


def differences(op: OpCase, sample: Sample, run: Run) -> Differences:
    """Return the derivatives of a sample by the five-point formula, given its results.

    The error of the formula is of fourth order in the step. It balances the rounding error if the
    step is the fifth root of the precision.
    """
    device, _, eps = reference()
    step = 2.0 ** round(np.log2(eps) / 5)
    floats = [j for j, value in enumerate(run.values) if value.dtype.kind in "fc"]
    seeds = {
        j: weights(run.values[j].shape, like(run.values[j].dtype, FLOAT64), sample.start)
        for j in floats
    }
    value_changes = [np.zeros(value.shape) for value in run.values]
    gradients: list[Any] = [np.zeros(g.shape, like(g.dtype, FLOAT64)) for g in run.gradients]
    noise, gradient_changes = ([np.zeros(g.shape) for g in run.gradients] for _ in range(2))
    total: Any = (lambda v: v) if sample.elementwise else np.sum

    def shifted(i: int, index: Any, by: complex, gradient: bool) -> Run:
        inputs = list(sample.inputs)
        inputs[i] = inputs[i].copy()
        inputs[i][index] += by
        return run_op(op, replace(sample, inputs=tuple(inputs)), device, FLOAT64, gradient=gradient)

    for k, i in enumerate(
        i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"
    ):
        x = sample.inputs[i]
        indices: list[Any] = [...] if sample.elementwise else list(np.ndindex(x.shape))
        for index, unit in itertools.product(indices, (1, 1j) if x.dtype.kind == "c" else (1,)):
            up, down = (shifted(i, index, sign * step * unit, True) for sign in (1, -1))
            up2, down2 = (shifted(i, index, 2 * sign * step * unit, False) for sign in (1, -1))
            magnitude = np.abs(x[index])
            for j, w in seeds.items():
                near = (up.values[j] - down.values[j]) / (2 * step)
                far = (up2.values[j] - down2.values[j]) / (4 * step)
                rounding = 4 * eps * (np.abs(up2.values[j]) + np.abs(down2.values[j])) / step
                kink = _kinked([r.values[j] for r in (run, up, down, up2, down2)], step, rounding)
                slope = np.where(kink, 0, (4 * near - far) / 3)
                value_changes[j] += np.abs(slope) * magnitude
                if run.gradients:
                    gradients[k][index] += total(np.real(np.conj(w) * slope)) * unit
                    noise[k][index] += total(np.where(kink, np.inf, np.abs(w) * rounding))
                    gradient_changes[k][index] += total(np.abs(w * slope))
            for change, a, b in zip(gradient_changes, up.gradients, down.gradients, strict=True):
                change += np.abs(a - b) / (2 * step) * magnitude
    return Differences(gradients, noise, value_changes, gradient_changes)


def _kinked(values: list[np.ndarray], step: float, rounding: Any) -> Any:
    """Return where a function is not smooth.

    `values` are the values at a point, one step up and down, and two steps up and down. The
    function is not smooth where slopes over one step and over two differ, or where second
    differences do not grow with the square of the step.
    """
    value, up, down, up2, down2 = values
    near, far = (up - down) / (2 * step), (up2 - down2) / (4 * step)
    bend, bend2 = up + down - 2 * value, up2 + down2 - 2 * value
    tolerance = 1e-2 * np.abs(near) + rounding
    return (np.abs(near - far) > tolerance + 1e-4) | (
        np.abs(bend2 - 4 * bend) / step > tolerance + 1e-3
    )
