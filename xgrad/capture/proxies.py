"""Proxies of arrays, and a device that records calls: what array code gets in a recorded step."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE, ComposedKernel
from xgrad.backend.recording import recording
from xgrad.backend.wrapping import BINARY, ArrayType, LazyNamespace, define_operators
from xgrad.support.user_code import LIBRARIES

_NO_OPTIONS: dict[str, Any] = {}


def record_call(
    function: Callable[..., Any],
    args: Any,
    options: Any = _NO_OPTIONS,
    writes: tuple[int, ...] = (),
) -> Any:
    """Call a function, and record the call, which writes to the arguments at indices `writes`."""
    return recording.get().call(function, args, options, writes)


def _recorded(function: Callable[..., Any], writes: tuple[int, ...] = ()) -> Callable[..., Any]:
    return lambda *args, **options: record_call(function, args, options, writes)


class Proxy(ArrayType):
    """An array with its value in the program.

    A proxy lives only while array code runs; no tensor holds it. It has the operators and
    attributes of the standard. Operations that need the values, such as a conversion to a number,
    get them, and refuse the capture.

    Attributes
    ----------
    array : array
        A separate array object in the memory of the represented array. No array made by array code
        refers to a tensor's array, so a tensor's array lives only as long as something else holds
        it.
    held : array or None
        The array as a tensor holds it, if one does.
    """

    __slots__ = ("array", "dtype", "held", "recorder", "shape", "value")

    def __init__(self, recorder: Any, array: Any, value: Any, held: Any = None) -> None:
        self.recorder, self.array, self.value, self.held = recorder, array, value, held
        self.shape, self.dtype = array.shape, array.dtype

    def read(self) -> Any:
        """Return the array, and refuse the capture."""
        self.recorder.refuse("the value of a tensor is read")
        return self.array

    @property
    def strides(self) -> Any:
        return self.value.strides

    @property
    def device(self) -> Any:
        return self.array.device

    @property
    def mT(self) -> Any:
        return record_call(self.recorder.real.xp.matrix_transpose, (self,))

    T = mT

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"

    def __getitem__(self, key: Any) -> Any:
        return record_call(operator.getitem, (self, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        record_call(operator.setitem, (self, key, value), writes=(0,))

    def __array__(self, *to: Any, **_: Any) -> Any:
        return np.asarray(self.recorder.to_host(self.read()), *to)

    def __bool__(self) -> bool:
        return bool(self.read())

    def __int__(self) -> int:
        return int(self.read())

    def __float__(self) -> float:
        return float(self.read())

    def __complex__(self) -> complex:
        return complex(self.read())

    def __index__(self) -> int:
        return operator.index(self.read())

    def item(self) -> Any:
        return self.read().item()

    def tolist(self) -> Any:
        return self.read().tolist()

    def __dlpack__(self, **options: Any) -> Any:
        return self.read().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class ScalarProxy(Proxy):
    """A NumPy scalar, which is no array of the device.

    `Device.as_array` makes an array of it, as in eager code.
    """

    __slots__ = ()


def _record_in_place(function: Callable[..., Any], x: Proxy, y: Any) -> Any:
    if type(x) is ScalarProxy:  # NumPy scalars have no in-place operators
        return record_call(_OUT_OF_PLACE[function], (x, y))
    return record_call(function, (x, y), writes=(0,))


_OUT_OF_PLACE = {
    getattr(operator, f"__i{name}__"): getattr(operator, f"__{name}__") for name in BINARY
}
define_operators(
    Proxy, lambda function, *operands: record_call(function, operands), _record_in_place
)


class RecordingNamespace(LazyNamespace):
    """A namespace whose functions record their calls."""

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that records its calls."""
        return _recorded(function, (0,) if name == "index_add" else ())


class RecordingBackend:
    """A backend whose functions record their calls.

    Functions that move values off the device refuse the capture.
    """

    def __init__(self, real: Any) -> None:
        self.real, self.kernels = real, dict[str, Any]()
        # `overridable` looks for kernels in the namespace
        self.xp = RecordingNamespace(real.xp, kernels=self.kernels)
        for name in real.kernels.keys() - real.rule_kernels:
            kernel = real.kernels[name]
            if isinstance(kernel, ComposedKernel):
                self.kernels[name] = ComposedKernel(self.xp, kernel.function)
                continue
            part = OVERRIDABLE.get(name)
            parameters = part.generic.__code__.co_varnames[1:] if part else ()
            self.kernels[name] = _recorded(
                kernel, tuple(map(parameters.index, part.changes)) if part else ()
            )
        self.index_add = _recorded(real.index_add, (0,))
        self.random_bits, self.from_words = _recorded(real.random_bits), _recorded(real.from_words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def check_true(self, condition: Any) -> bool:
        """Return whether a check of an argument holds, and add it to the checks of the program."""
        return bool(recording.get().check(condition))

    def to_host(self, x: Any) -> Any:
        """Return the values of an array on the host, and refuse the capture."""
        return self.real.to_host(x.read() if isinstance(x, Proxy) else x)

    def shares_memory(self, x: Any, y: Any) -> bool:
        """Return whether two arrays have the same storage."""
        return x.value.storage is y.value.storage


class RecordingDevice(Device):
    """The device that is passed to array code while a step is recorded.

    Tensors stay on the `real` device.
    """

    real: Device

    def as_array(self, x: Any) -> Any:
        """Return the result of a rule as an array.

        A NumPy scalar becomes an array without axes, and a number a constant.
        """
        if isinstance(x, Proxy):
            return record_call(self.real.as_array, (x,))
        recorder, array = recording.get(), self.real.as_array(x)
        # an array that the rule has from elsewhere
        if isinstance(x, (np.ndarray, self.real.array_type)):
            return recorder.proxy(array)
        return recorder.constant_proxy(array)


@cache
def recording_device(real: Device) -> RecordingDevice:
    """Return the recording device of a device."""
    self = object.__new__(RecordingDevice)
    vars(self).update(
        vars(real), real=real, root=self, backend=RecordingBackend(real.backend), array_type=Proxy
    )
    self.xp = self.backend.xp
    del self.as_array
    LIBRARIES.add(type(real.backend).__module__.partition(".")[0])
    return self
