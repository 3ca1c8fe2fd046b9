"""The doubles of a device's namespace and backend: their functions write down what they are called with.

A device that is recorded has them in all threads; with arrays that do not record they do what the originals do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from xgrad.capturing import whereabouts
from xgrad.capturing.arrays import Recorded, arrays_in
from xgrad.capturing.numbers import Number
from xgrad.capturing.recorder import Recorder, active
from xgrad.device import Device
from xgrad.fused import PARTS

_CREATES = frozenset("arange empty eye full linspace ones zeros".split())


class Namespace:
    """The functions of a namespace, which write down what they are called with if that is recorded.

    Parameters
    ----------
    xp : namespace
        The functions.
    transparent : callable
        Whether a function is made of others that record by themselves, given it.
    """

    def __init__(self, xp: Any, transparent: Callable[[Any], bool]) -> None:
        self._xp, self._transparent = xp, transparent
        self.kernels = {  # where `fused.fusable` finds them
            name: changing(name, kernel) if PARTS[name].changes else recorded(name, kernel)
            for name, kernel in vars(xp).get("kernels", {}).items()
            if name in PARTS
        }

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._xp, name)
        if name in ("linalg", "fft", "special") and not callable(value):
            value = Namespace(value, self._transparent)
        elif callable(value) and not isinstance(value, type):
            value = recorded(name, value, self._transparent(value))
        setattr(self, name, value)
        return value


def recorded(name: str, function: Callable[..., Any], transparent: bool = False) -> Callable[..., Any]:
    """Return a function that writes down its calls."""
    if name == "index_add":

        def add(x: Any, key: Any, values: Any) -> Any:
            recorder = _recorder_of((x, key, values))
            return function(x, key, values) if recorder is None else recorder.write(function, x, (x, key, values))

        return add
    if transparent:
        return function
    if name in _CREATES:

        def create(*args: Any, **options: Any) -> Any:
            recorder = active.get()
            return function(*args, **options) if recorder is None else recorder.call(function, args, options)

        return create

    def call(*args: Any, **options: Any) -> Any:
        recorder = _recorder_of(args) or (_recorder_of(options.values()) if options else None)
        return function(*args, **options) if recorder is None else recorder.call(function, args, options)

    return call


def _recorder_of(args: Iterable[Any]) -> Recorder | None:
    """Return who records the arrays among arguments, if there are such."""
    for arg in args:
        if type(arg) is Recorded:
            return arg.recorder
    found = next(arrays_in(args), None)
    return None if found is None else found.recorder


def changing(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that changes arguments in place, and writes down its calls."""
    part = PARTS[name]
    parameters = part.generic.__code__.co_varnames[1 : part.generic.__code__.co_argcount]
    places = [parameters.index(changed) for changed in part.changes]

    def call(*args: Any) -> Any:
        recorder = _recorder_of(args)
        return kernel(*args) if recorder is None else recorder.change(kernel, args, places)

    return call


class Backend:
    """A backend whose functions write down what they are called with if that is recorded."""

    def __init__(self, backend: Any, transparent: Callable[[Any], bool]) -> None:
        self._backend = backend
        self.kernels = {name: recorded(name, f, transparent(f)) for name, f in backend.kernels.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def to_host(self, x: Any) -> Any:
        return self._backend.to_host(_value(x, "the value of a tensor is read"))

    def lend(self, x: Any, **options: Any) -> Any:
        return self._backend.lend(_value(x, "a tensor is handed to another library"), **options)

    def transfer(self, x: Any, index: int) -> Any:
        return self._backend.transfer(_value(x, "a tensor is moved to another device"), index)

    def from_host(self, x: Any, index: int) -> Any:
        return self._backend.from_host(_value(x, "an array is moved to another device"), index)

    def holds(self, condition: Any) -> bool:
        records = type(condition) is Recorded
        value: bool = self._backend.holds(condition.array if records else condition)
        return condition.recorder.check(condition, value) if records else value

    def random_bits(self, seed: Any, call: Any, *rest: Any) -> Any:
        if type(seed) is not Number:
            return self._backend.random_bits(seed, call, *rest)
        return seed.recorder.call(self._backend.random_bits, (seed, call, *rest))


def _value(x: Any, why: str) -> Any:
    if type(x) is Recorded:
        x.recorder.refuse(why)
        return x.array
    return x


# Who stands where

_DOUBLED = ("xp", "coerce", "backend", "key")
_doubles: dict[Device, dict[str, Any]] = {}
_originals: dict[Device, dict[str, Any]] = {}


def original(device: Device) -> dict[str, Any]:
    """Return the namespace and the like of a device as they are when nobody records."""
    return _originals.get(device) or {name: getattr(device, name) for name in _DOUBLED}


def double(device: Device) -> None:
    """Put functions that record in the place of those of a device."""
    if device in _originals:
        return
    _originals[device] = {name: getattr(device, name) for name in _DOUBLED}
    if device not in _doubles:
        backend, coerce = device.backend, device.coerce
        folder = os.path.dirname(os.path.abspath(str(sys.modules[type(backend).__module__].__file__))) + os.sep
        whereabouts.ours = (*whereabouts.ours, folder)
        transparent = backend.transparent
        _doubles[device] = {
            "xp": Namespace(device.xp, transparent),
            "coerce": partial(_coerced, coerce),
            "backend": Backend(backend, transparent),
            "key": object(),
        }
    for name, value in _doubles[device].items():
        setattr(device, name, value)
    for place in device.places.copy().values():
        place.key = None  # the short ways lead to the functions as they were


def _coerced(coerce: Callable[[Any], Any], x: Any) -> Any:
    if type(x) is not Recorded:
        return coerce(x)
    return x.recorder.call(coerce, (x,)) if x.value.scalar else x


def restore(device: Device) -> None:
    """Put back what stood there before."""
    for name, value in _originals.pop(device).items():
        setattr(device, name, value)
    for place in device.places.copy().values():
        place.key = place
