"""Cases of the op table: an op, its tolerance, PyTorch's function, and samples of inputs."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.tolerance import Tolerance

Shape = tuple[int, ...]
Range = tuple[float, float]
Torch = str | Callable[..., Any] | None

INF, NAN = np.inf, np.nan
SPECIAL_VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, 1e4, -1e4, 1e-30, INF, -INF, NAN)
MASK = np.array([[True, False, True], [False, True, True]])
SCIPY_KERNEL = ("scipy", "mpmath")  # for an op that SciPy computes; mpmath is its reference
LAPACK = ("mpmath",)  # for an op that LAPACK computes; mpmath is its reference


@dataclass(frozen=True)
class Sample:
    """One set of arguments of an op.

    The inputs are arrays in float64 or complex128, which are rounded to the dtype of a test, and
    other arguments.
    """

    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    layout: str = "plain"  # memory layout of float arrays: "plain", "transposed" or "reversed"
    # whether each element of the result depends on one element of each input
    elementwise: bool = False
    special: bool = False  # whether these are special values, which have no finite differences
    start: int = 0  # the index of the first element, if this is a part of longer inputs

    def __str__(self) -> str:
        parts = [
            str(x.shape).replace(" ", "") if isinstance(x, np.ndarray) else repr(x)
            for x in self.inputs
        ]
        parts += [
            f"{k}={v.tolist() if isinstance(v, np.ndarray) else v}" for k, v in self.options.items()
        ]
        return ",".join(parts).replace(" ", "") + (
            "" if self.layout == "plain" else "-" + self.layout
        )


@dataclass(frozen=True)
class OpCase:
    """A case of the op table."""

    name: str  # the op, followed by a description if it has several cases
    fn: Callable[..., Any]
    torch: Torch  # PyTorch's function, by name as in `pytorch.function`; None without a counterpart
    samples: list[Sample]
    tolerance: Tolerance
    differentiable: bool = True
    ranges: tuple[Range, ...] = ()  # the range of each input of an elementwise op
    special_values: tuple[float, ...] = ()  # tested in every combination of the inputs
    special_gradient: bool = True  # whether gradients at special values are compared
    no_derivative: str = ""  # why finite differences do not exist at these inputs
    # why a device cannot run the op, by its type
    unsupported: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # optional packages: `SCIPY_KERNEL`, `LAPACK` or none
    complex: bool = False  # whether the op is also tested on complex numbers
    # relative tolerance for float64 compared with PyTorch, and its reason
    torch_rtol: tuple[float, str] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def function_name(self) -> str:
        """The name of the op, without the description of the case."""
        return self.name.split(" ")[0]

    def torch_function(self) -> Callable[..., Any]:
        """Return PyTorch's function; PyTorch must be installed."""
        assert self.torch is not None
        return pytorch.function(self.torch) if isinstance(self.torch, str) else self.torch

    def missing(self) -> str:
        """Return the needed packages that are not installed, separated by commas."""
        return ", ".join(name for name in self.needs if not find_spec(name))

    def complex_samples(self) -> list[Sample]:
        """Return the samples of plain layout with complex numbers in place of floats.

        The list is empty if the op does not take complex numbers.
        """
        return (
            [_complexified(sample) for sample in self.samples if sample.layout == "plain"]
            if self.complex
            else []
        )

    def special_sample(self) -> Sample | None:
        """Return a sample with every combination of the special values, if there are any."""
        if not self.special_values:
            return None
        count = sum(isinstance(x, np.ndarray) for x in self.samples[0].inputs)
        columns = np.array(list(itertools.product(self.special_values, repeat=count))).T
        return Sample(tuple(columns), elementwise=True, special=True)

    def range_sample(self, length: int | None = None) -> Sample | None:
        """Return many values over the ranges: enough for vector kernels and their remainders."""
        if not self.ranges:
            return None
        length = length or (15 if "scipy" in self.needs else 257)  # mpmath is slow
        columns = [
            uniform((length,), low, high, self.name, "wide", i)
            for i, (low, high) in enumerate(self.ranges)
        ]
        return Sample(tuple(columns), elementwise=True)


def uniform(shape: tuple[int, ...], low: float, high: float, *key: Any) -> np.ndarray:
    """Return uniform random numbers, reproducible for each key."""
    random = np.random.default_rng(zlib.crc32(repr((shape, *key)).encode()))
    return random.uniform(low, high, shape)


def _complexified(sample: Sample) -> Sample:
    def convert(x: Any, i: int) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            # asarray, because the sum of 0-d arrays is a scalar
            return np.asarray(x + 1j * uniform(x.shape, -1, 1, "imaginary", i))
        return x + 0.5j if type(x) is float else x

    return replace(sample, inputs=tuple([convert(x, i) for i, x in enumerate(sample.inputs)]))


def a(*shape: int, low: float = -2, high: float = 2, key: Any = 0) -> np.ndarray:
    """Return a random array of a shape, reproducible for each key."""
    return uniform(shape, low, high, "a", key)


def z(*shape: int, key: Any = 0) -> np.ndarray:
    """Return a random array of complex numbers, reproducible for each key."""
    return np.asarray(a(*shape, key=(key, "real")) + 1j * a(*shape, key=(key, "imaginary")))


def ints(*numbers: Any) -> np.ndarray:
    """Return an array of integers."""
    return np.array(numbers, dtype=np.int64)


def sample(*inputs: Any, layout: str = "plain", **options: Any) -> Sample:
    """Return a sample; a tuple among the inputs is the shape of an array.

    Equal shapes give different arrays.
    """
    counts: Counter[Shape] = Counter()
    arrays = []
    for x in inputs:
        if isinstance(x, tuple):
            counts[x] += 1
            x = a(*x, key=counts[x] - 1)
        arrays.append(x)
    return Sample(tuple(arrays), options, layout)


SHAPES: list[tuple[Shape, str]] = [
    ((), "plain"), ((3,), "plain"), ((2, 3), "plain"), ((0,), "plain"), ((2, 0, 3), "plain"),
    ((2, 3), "transposed"), ((4,), "reversed"),
]  # fmt: skip
PAIRS: list[tuple[Shape, Shape, str]] = [
    ((), (), "plain"),
    ((2, 3), (2, 3), "plain"),
    ((2, 3), (3,), "plain"),
    ((2, 1), (1, 3), "plain"),
    ((), (2, 2), "plain"),
    ((0, 3), (3,), "plain"),
    ((2, 3), (2, 3), "transposed"),
    ((3,), (2, 3), "reversed"),
]
AXES: list[tuple[Shape, dict[str, Any]]] = [
    ((2, 3), {}),
    ((2, 3), {"axis": 0}),
    ((2, 3), {"axis": -1, "keepdims": True}),
    ((2, 3, 2), {"axis": (0, 2)}),
    ((2, 3, 2), {"axis": (-1, 0), "keepdims": True}),
    ((4,), {"axis": 0}),
    ((), {}),
    ((1, 3), {"axis": 0}),
]


def function(name: str) -> Any:
    """Return a function of xgrad, its linear algebra or its ops by name: ``special.erf``."""
    for namespace in (xgrad, xgrad.linalg):
        with suppress(AttributeError):
            return attrgetter(name)(namespace)
    return attrgetter(name)(xgrad.ops)


def op_case(
    name: str,
    tolerance: Tolerance,
    *samples: Sample,
    fn: Any = None,
    torch: Torch = "",
    **fields: Any,
) -> OpCase:
    """Return a case of the op table.

    By default, the first word of the name selects xgrad's and PyTorch's functions.
    """
    op = name.split(" ")[0]
    return OpCase(
        name, fn or function(op), op if torch == "" else torch, list(samples), tolerance, **fields
    )


def unary(
    name: str,
    tolerance: Tolerance,
    torch: Torch = "",
    low: float = -2,
    high: float = 2,
    **fields: Any,
) -> OpCase:
    """Return the case of an elementwise function of one input."""
    key = name.split(" ")[0].rpartition(".")[2]
    samples = [Sample((uniform(shape, low, high, key),), layout=layout) for shape, layout in SHAPES]
    fields = {"ranges": ((low, high),), "special_values": SPECIAL_VALUES, **fields}
    return op_case(name, tolerance, *samples, torch=torch, **fields)


def binary(
    name: str,
    tolerance: Tolerance,
    torch: Torch = "",
    first: Range = (-2, 2),
    second: Range | None = None,
    scalars: tuple[tuple[float, float], ...] = ((2.0, 2.0), (-1.5, -1.5)),
    **fields: Any,
) -> OpCase:
    """Return the case of an elementwise function of two inputs.

    Each pair of `scalars` gives two samples: one number replaces the first input, the other the
    second.
    """
    key, second = name.split(" ")[0].rpartition(".")[2], second or first
    samples = []
    for shape, other, layout in PAIRS:
        samples.append(
            Sample((uniform(shape, *first, key, 1), uniform(other, *second, key, 2)), layout=layout)
        )
    for left, right in scalars:
        samples.append(Sample((uniform((3,), *first, key, 3), right)))
        samples.append(Sample((left, uniform((3,), *second, key, 4))))
    fields = {"ranges": (first, second), "special_values": SPECIAL_VALUES, **fields}
    torch = pytorch.with_scalars(torch or name) if isinstance(torch, str) else torch
    return op_case(name, tolerance, *samples, torch=torch, **fields)


def reduction(
    name: str, tolerance: Tolerance, torch: Torch = "", empty: bool = True, **fields: Any
) -> OpCase:
    """Return the case of a reduction; `empty` tells whether it has a value without elements."""
    samples = [Sample((uniform(shape, -2, 2, name),), options) for shape, options in AXES]
    samples.append(Sample((uniform((2, 3), -2, 2, name, "t"),), {"axis": 1}, "transposed"))
    samples.append(Sample((uniform((4,), -2, 2, name, "r"),), {}, "reversed"))
    if empty:
        samples += [Sample((np.zeros((0, 3)),), {"axis": 0}), Sample((np.zeros((0,)),))]
    samples.append(Sample((np.zeros((3, 0)),), {"axis": 0}))
    return op_case(name, tolerance, *samples, torch=torch, **fields)
