"""What a row of the op table is, and the inputs that most rows share."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.tolerance import Tolerance

INF, NAN = np.inf, np.nan
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1e4, -1e4, 1e-30, INF, -INF, NAN)
MASK = np.array([[True, False, True], [False, True, True]])


@dataclass(frozen=True)
class Sample:
    """One set of arguments. `layout` says how float arrays lie in memory: "plain", "transposed" or "reversed".

    `columns` says that the inputs are of one length and each element of the result depends on one element of each;
    `start` is the number of the first, where they were cut out of longer ones.
    """

    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    layout: str = "plain"
    columns: bool = False
    start: int = 0

    def __str__(self) -> str:
        parts = [str(x.shape).replace(" ", "") if isinstance(x, np.ndarray) else repr(x) for x in self.inputs]
        parts += [f"{k}={v}" for k, v in self.options.items()]
        return ",".join(parts).replace(" ", "") + ("" if self.layout == "plain" else "-" + self.layout)


@dataclass(frozen=True)
class Op:
    """One row.

    Attributes
    ----------
    name : str
        The op, and what of it, if there are several rows.
    fn, torch : callable
        The op; and as PyTorch spells it, by name where it is a function there, None where it has none.
    samples : list of Sample
        The inputs to try: NumPy arrays in float64, or complex128, which take the precision of a test; arrays of
        integers or bools, and scalars, are passed on as they are.
    tolerance : Tolerance
        How far devices may be apart, and why.
    wide : tuple of (float, float)
        For an op that works element by element, the range of each input.
    special : tuple of float
        Values that every input takes in turn, in every combination.
    special_gradient : bool
        Whether the gradient is compared there.
    no_derivative : str
        Why the derivative does not exist at these inputs, and what is documented is not compared with differences.
    not_on : dict of str
        For a device the reason why the op itself cannot run there.
    kernel : bool
        Whether it is a kernel of SciPy's, whose reference is mpmath's, so that it needs both.
    complex : bool
        Whether the op takes complex numbers: it is then tried on them, too (`complex_samples`).
    loose : tuple of (float, str)
        A relative tolerance for float64 against PyTorch, with its reason.
    """

    name: str
    fn: Callable[..., Any]
    torch: str | Callable[..., Any] | None
    samples: list[Sample]
    tolerance: Tolerance
    differentiable: bool = True
    wide: tuple[tuple[float, float], ...] = ()
    special: tuple[float, ...] = ()
    special_gradient: bool = True
    no_derivative: str = ""
    not_on: dict[str, str] = field(default_factory=dict)
    kernel: bool = False
    complex: bool = False
    loose: tuple[float, str] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def function_name(self) -> str:
        """The name of the op, of which there may be several rows."""
        return self.name.split(" ")[0]

    def oracle(self) -> Callable[..., Any]:
        """Return the op as PyTorch has it, which must be installed."""
        assert self.torch is not None
        return pytorch.spelled(self.torch) if isinstance(self.torch, str) else self.torch

    def missing(self) -> str:
        """Return the packages that it needs and that are not installed, separated by commas."""
        return ", ".join(name for name in ("scipy", "mpmath") if not find_spec(name)) if self.kernel else ""

    def complex_samples(self) -> list[Sample]:
        """Return the samples, of plain layout, with complex numbers in the place of floats, if the op takes them."""
        return [_complexified(sample) for sample in self.samples if sample.layout == "plain"] if self.complex else []

    def special_sample(self) -> Sample | None:
        """Return every combination of the special values."""
        if not self.special:
            return None
        count = sum(isinstance(x, np.ndarray) for x in self.samples[0].inputs)
        return Sample(tuple(np.array(list(itertools.product(self.special, repeat=count))).T), columns=True)

    def wide_sample(self, length: int | None = None) -> Sample | None:
        """Return many values over the op's range: enough for the vector kernels, and what they leave over."""
        if not self.wide:
            return None
        length = length or (15 if self.kernel else 257)  # the reference of SciPy's kernels takes a while
        columns = [values((length,), low, high, self.name, "wide", i) for i, (low, high) in enumerate(self.wide)]
        return Sample(tuple(columns), columns=True)


def values(shape: tuple[int, ...], low: float, high: float, *key: Any) -> np.ndarray:
    """Return numbers of a range, which are different for every key, and the same at all times."""
    random = np.random.default_rng(zlib.crc32(repr((shape, *key)).encode()))
    return random.uniform(low, high, shape)


def _complexified(sample: Sample) -> Sample:
    def convert(x: Any, i: int) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            return np.asarray(x + 1j * values(x.shape, -1, 1, "imaginary", i))  # of 0 dimensions, not a scalar
        return x + 0.5j if type(x) is float else x

    return replace(sample, inputs=tuple([convert(x, i) for i, x in enumerate(sample.inputs)]))


def a(*shape: int, low: float = -2, high: float = 2, key: Any = 0) -> np.ndarray:
    """Return an array of some shape."""
    return values(shape, low, high, "a", key)


def z(*shape: int, key: Any = 0) -> np.ndarray:
    """Return an array of complex numbers."""
    return np.asarray(a(*shape, key=(key, "real")) + 1j * a(*shape, key=(key, "imaginary")))


def ints(*numbers: Any) -> np.ndarray:
    """Return an array of integers."""
    return np.array(numbers, dtype=np.int64)


SHAPES: list[tuple[tuple[int, ...], str]] = [
    ((), "plain"), ((3,), "plain"), ((2, 3), "plain"), ((0,), "plain"), ((2, 0, 3), "plain"),
    ((2, 3), "transposed"), ((4,), "reversed"),
]  # fmt: skip
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...], str]] = [
    ((), (), "plain"), ((2, 3), (2, 3), "plain"), ((2, 3), (3,), "plain"), ((2, 1), (1, 3), "plain"),
    ((), (2, 2), "plain"), ((0, 3), (3,), "plain"), ((2, 3), (2, 3), "transposed"), ((3,), (2, 3), "reversed"),
]  # fmt: skip
AXES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3), {}), ((2, 3), {"axis": 0}), ((2, 3), {"axis": -1, "keepdims": True}), ((2, 3, 2), {"axis": (0, 2)}),
    ((2, 3, 2), {"axis": (-1, 0), "keepdims": True}), ((4,), {"axis": 0}), ((), {}), ((1, 3), {"axis": 0}),
]  # fmt: skip


def unary(
    name: str,
    tolerance: Tolerance,
    torch: str | Callable[..., Any] | None = None,
    low: float = -2,
    high: float = 2,
    special: tuple[float, ...] = SPECIAL,
    **row: Any,
) -> Op:
    """Return the row of a function of one input that works element by element."""
    samples = [Sample((values(shape, low, high, name),), layout=layout) for shape, layout in SHAPES]
    wide = ((low, high),)
    return Op(name, getattr(xgrad, name), torch or name, samples, tolerance, wide=wide, special=special, **row)


def binary(
    name: str,
    tolerance: Tolerance,
    torch: str | None = None,
    low: float = -2,
    high: float = 2,
    low2: float | None = None,
    scalars: tuple[float, ...] = (2.0, -1.5),
    special: tuple[float, ...] = SPECIAL,
    **row: Any,
) -> Op:
    """Return the row of a function of two inputs that broadcast."""
    first, second = (low, high), (low if low2 is None else low2, high)
    samples = []
    for shape, other, layout in PAIRS:
        pair = values(shape, *first, name, 1), values(other, *second, name, 2)
        samples.append(Sample(pair, layout=layout))
    for scalar in scalars:
        samples.append(Sample((values((3,), *first, name, 3), scalar)))
        samples.append(Sample((scalar, values((3,), *second, name, 4))))
    fn, spelled = getattr(xgrad, name), pytorch.binary(torch or name)
    return Op(name, fn, spelled, samples, tolerance, wide=(first, second), special=special, **row)


def reduction(
    name: str,
    tolerance: Tolerance,
    torch: Callable[..., Any],
    low: float = -2,
    high: float = 2,
    empty: bool = True,
    **row: Any,
) -> Op:
    """Return the row of a function that reduces axes; `empty` says that it has a value for no elements."""
    samples = [Sample((values(shape, low, high, name),), options) for shape, options in AXES]
    samples.append(Sample((values((2, 3), low, high, name, "t"),), {"axis": 1}, "transposed"))
    samples.append(Sample((values((4,), low, high, name, "r"),), {}, "reversed"))
    if empty:
        samples += [Sample((np.zeros((0, 3)),), {"axis": 0}), Sample((np.zeros((0,)),))]
    samples.append(Sample((np.zeros((3, 0)),), {"axis": 0}))
    return Op(name, getattr(xgrad, name), torch, samples, tolerance, **row)


def row(
    name: str,
    tolerance: Tolerance,
    fn: Callable[..., Any],
    torch: str | Callable[..., Any] | None,
    *samples: Sample,
    **rest: Any,
) -> Op:
    """Return a row that is like no other."""
    return Op(name, fn, torch, list(samples), tolerance, **rest)
