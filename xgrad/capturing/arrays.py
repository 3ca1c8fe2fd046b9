"""Arrays that record: what tensors hold while a step is recorded. The rules compute with them as with any others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from xgrad.capturing.numbers import Number
from xgrad.capturing.program import Value
from xgrad.tensor import Tensor

if TYPE_CHECKING:
    from xgrad.capturing.recorder import Recorder

held: Any = vars(Tensor)["_data"]  # the slot itself, which stays what it is while another stands in its place
of_tensor: Callable[[Any], Any] = held.__get__


class Recorded:
    """An array of a device together with its name in the program that is being written.

    Every operation is done on the array, and written down. What would take the values out, to branch on them or to hand
    them to another library, gives them, and ends the recording: the step then stays as it is.

    Parameters
    ----------
    recorder : Recorder
        Who records.
    value : Value
        What it is in the program.
    array : array or None
        The array; None of what a tensor holds that was there before.
    owner : Tensor, optional
        That tensor. The array is then not held here, so that an optimizer sees whether somebody else holds it.
    """

    __slots__ = ("_array", "dtype", "owner", "recorder", "shape", "value")

    def __init__(self, recorder: Recorder, value: Value, array: Any, owner: Tensor | None = None) -> None:
        self.recorder, self.value, self._array, self.owner = recorder, value, array, owner
        self.shape, self.dtype = value.shape, value.dtype

    @property
    def array(self) -> Any:
        """The array of the device."""
        array = self._array
        return of_tensor(self.owner) if array is None else array

    def pin(self) -> None:
        """Stay the array of now, wherever the owner goes."""
        self._array = self.array

    def __repr__(self) -> str:
        return f"Recorded({self.value})"

    # What is known without asking for values

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def device(self) -> Any:
        return self.array.device

    @property
    def flags(self) -> Any:
        return self.array.flags

    @property
    def strides(self) -> Any:
        return self.array.strides

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Recorded]:
        return (self[i] for i in range(len(self)))

    # Methods, as far as the backends' functions use them

    @property
    def T(self) -> Any:
        return self.recorder.view(_T, self)

    @property
    def mT(self) -> Any:
        return self.recorder.view(_MT, self)

    @property
    def real(self) -> Any:
        return self.recorder.call(_attribute("real"), (self,))

    @property
    def imag(self) -> Any:
        return self.recorder.call(_attribute("imag"), (self,))

    def __getitem__(self, key: Any) -> Any:
        return self.recorder.item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.recorder.assign(self, key, value)

    def __pow__(self, exponent: Any) -> Any:
        return self.recorder.power(self, exponent)

    def dot(self, other: Any, out: Any = None) -> Any:
        if out is None:
            return self.recorder.call(_DOT, (self, other))
        return self.recorder.write(_DOT, out, (self, other), {}, out=True)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        if method == "at":
            return self.recorder.write(function, inputs[0], inputs, options)
        if out is not None:
            (target,) = out if isinstance(out, tuple) else (out,)
            return self.recorder.write(function, target, inputs, options, out=True)
        return self.recorder.call(function, inputs, options)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *args: Any, out: Any = None, **options: Any) -> Any:
        """Record a call of a kernel of CuPy's, which asks for this where one of its operands is no array."""
        inputs, written = args[: kernel.nin], args[kernel.nin :]
        if out is not None:
            written = out if isinstance(out, tuple) else (out,)
        if not written:
            return self.recorder.call(kernel, inputs, options)
        if len(written) > 1 or not hasattr(kernel, "types"):  # which only those of one result have
            self.recorder.refuse(f"{kernel.name} changes arrays in a way that cannot be followed")
            return kernel(*concrete(inputs), *concrete(written), **options)
        return self.recorder.write(kernel, written[0], inputs, options, out=True)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return self.recorder.call(function, args, options)

    # What takes the values out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.recorder.refuse("an array is handed to code that does not record")
        return np.asarray(self.array, dtype=dtype)

    def __bool__(self) -> bool:
        return bool(self._read("bool()"))

    def __int__(self) -> int:
        return int(self._read("int()"))

    def __index__(self) -> int:
        return self._read("an index").__index__()  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self._read("float()"))

    def __complex__(self) -> complex:
        return complex(self._read("complex()"))

    def item(self) -> Any:
        return self._read("item()").item()

    def tolist(self) -> Any:
        return self._read("tolist()").tolist()

    def _read(self, how: str) -> Any:
        self.recorder.refuse(f"the value of an array is read by {how}")
        return self.array


_ATTRIBUTES: dict[str, Any] = {}


def _attribute(name: str) -> Any:
    """Return the function that reads an attribute which is an array: always the same, to be recognised."""
    if name not in _ATTRIBUTES:

        def read(x: Any) -> Any:
            return getattr(x, name)

        read.__name__ = read.__qualname__ = name
        _ATTRIBUTES[name] = read
    return _ATTRIBUTES[name]


_METHODS: dict[str, Any] = {}


def method(name: str) -> Any:
    """Return the function that calls a method: always the same, to be recognised."""
    if name not in _METHODS:

        def call(x: Any, *args: Any, **options: Any) -> Any:
            return getattr(x, name)(*args, **options)

        call.__name__ = call.__qualname__ = name
        _METHODS[name] = call
    return _METHODS[name]


_T, _MT, _DOT = _attribute("T"), _attribute("mT"), method("dot")


def _install() -> None:
    """Give `Recorded` operators, which are functions of the namespace, and methods."""
    binary = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
        "mod": "remainder", "pow": "pow", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
        "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "matmul": "matmul",
    }  # fmt: skip
    comparisons = {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    }  # fmt: skip
    for name, function in {**binary, **comparisons}.items():
        if name != "pow":
            setattr(Recorded, f"__{name}__", lambda x, y, function=function: x.recorder.operate(function, x, y))
    for name, function in binary.items():
        setattr(Recorded, f"__r{name}__", lambda x, y, function=function: x.recorder.operate(function, y, x))
        setattr(Recorded, f"__i{name}__", lambda x, y, function=function: x.recorder.operate_in_place(function, x, y))
    for name, function in {"neg": "negative", "pos": "positive", "invert": "bitwise_invert", "abs": "abs"}.items():
        setattr(Recorded, f"__{name}__", lambda x, function=function: x.recorder.operate(function, x))
    for name in _CALLED:
        setattr(
            Recorded, name, lambda x, *args, name=name, **options: x.recorder.call(method(name), (x, *args), options)
        )


_CALLED = """
all any argmax argmin argsort astype clip conj copy cumsum cumprod max mean min prod ravel repeat reshape round squeeze
std sum swapaxes take transpose var view
""".split()
_install()


def arrays_in(values: Any) -> Iterator[Recorded]:
    """Return the recorded arrays among arguments, those in lists and tuples of them, too."""
    for value in values:
        kind = type(value)
        if kind is Recorded:
            yield value
        elif kind is tuple or kind is list:
            yield from arrays_in(value)
        elif kind is slice:
            yield from arrays_in((value.start, value.stop, value.step))


def concrete(value: Any) -> Any:
    """Return arguments with arrays for recorded arrays, and values for numbers."""
    kind = type(value)
    if kind is Recorded:
        return value.array
    if kind is Number:
        return value.value
    if kind is tuple or kind is list:
        return kind(map(concrete, value))
    return value
