"""The doors through which a step reaches arrays and numbers, and who stands in them while it is recorded.

Nothing of the library knows of this. An attribute of a class, such as the array that a tensor holds, is for a while a
property that hands out recording arrays to the thread that records; all others get what they always get. The device
that is recorded has doubles of its functions meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from xgrad import autograd, engine, inputs
from xgrad.capturing.arrays import Recorded, concrete, held, of_tensor
from xgrad.capturing.doubles import double, original, restore
from xgrad.capturing.recorder import Recorder, active
from xgrad.device import Device, Place
from xgrad.graph import HookHandle, Leaf
from xgrad.nn.module import Module
from xgrad.ops import conversion
from xgrad.optim import flat
from xgrad.optim.flat import Flat, Gradients
from xgrad.optim.optimizer import Optimizer
from xgrad.philox import words
from xgrad.random import Generator, _default
from xgrad.tensor import Tensor, wrap

_lock = RLock()
_open: list[Recorder] = []  # those at work, in any thread


@contextmanager
def recording_with(recorder: Recorder) -> Iterator[None]:
    """Let a recorder follow what this thread does."""
    with _lock:
        if not _open:
            _stand_in_the_doors()
        _open.append(recorder)
        double(recorder.device)
    token = active.set(recorder)
    try:
        yield
    finally:
        active.reset(token)
        with _lock:
            _settle(recorder)
            recorder.closed = True
            _open.remove(recorder)
            if all(other.device is not recorder.device for other in _open):
                restore(recorder.device)
            if not _open:
                _leave_the_doors()


def _settle(recorder: Recorder) -> None:
    """Leave no recorded array behind in a tensor."""
    for tensor in recorder.survivors():
        array = of_tensor(tensor)
        if type(array) is Recorded:
            recorder.last[id(tensor)] = array
            held.__set__(tensor, array.array)


# The library as it is

_gradient: Any = vars(Leaf)["grad"]
_call_module: Any = Module.__call__
_next, _from_host, _wish = Generator._next, Generator._from_host, Tensor.requires_grad_
_hook, _unhook = HookHandle.__init__, HookHandle.remove
_settle_flat, _keep_flat_private = Flat._settle, Flat.keep_private
_renew, _changed, _step, _lay = Gradients.renew, Flat.changed, Optimizer.step, Optimizer._lay
_read, _write, _ones, _walk = flat.read, flat.write, autograd._ones, engine.walk
_device_of: Any = vars(inputs)["device_of"]


@contextmanager
def _unrecorded() -> Iterator[None]:
    """Let this thread do something that is no part of the step."""
    token = active.set(None)
    try:
        yield
    finally:
        active.reset(token)


# Tensors, their gradients and hooks


_recording = active.get


def _get_array(tensor: Tensor) -> Any:
    array, recorder = of_tensor(tensor), _recording()
    if type(array) is Recorded:
        return array if array.recorder is recorder else array.array
    if recorder is None or array is None:
        return array
    known = recorder.known.get(id(array))
    return known if known is not None and known.owner is tensor else recorder.get(tensor, array)


def _set_array(tensor: Tensor, array: Any) -> None:
    recorder = active.get()
    if recorder is None:
        held.__set__(tensor, array)
    else:
        recorder.set(tensor, array)


def _get_gradient(leaf: Leaf) -> Any:
    gradient, recorder = _gradient.__get__(leaf), active.get()
    if recorder is not None:
        recorder.leaves.ask(leaf, gradient)
    return gradient


def _set_gradient(leaf: Leaf, gradient: Any) -> None:
    recorder = active.get()
    if recorder is not None:
        recorder.leaves.write(leaf)
    _gradient.__set__(leaf, gradient)


def _note_wish(tensor: Tensor, requires_grad: bool = True) -> Tensor:
    recorder = active.get()
    if recorder is not None:
        recorder.leaves.wish(tensor)
    return _wish(tensor, requires_grad)


def _note_hook(handle: HookHandle, edge: Any, hook: Any) -> None:
    recorder = active.get()
    if recorder is not None:
        edge.hooks = {} if edge.hooks is None else edge.hooks
        recorder.leaves.hook(edge.hooks, edge)
    _hook(handle, edge, hook)


def _note_unhook(handle: HookHandle) -> None:
    recorder = active.get()
    if recorder is not None:
        recorder.leaves.hook(handle._hooks)
    _unhook(handle)


# Modules


def _get_mode(module: Module) -> bool:
    mode: bool = vars(module)["training"]
    recorder = active.get()
    if recorder is not None and id(module) not in recorder.modes:
        recorder.modules.setdefault(id(module), (module, mode))
    return mode


def _set_mode(module: Module, mode: bool) -> None:
    recorder = active.get()
    if recorder is not None:
        recorder.modes[id(module)] = module, mode
    vars(module)["training"] = mode


def _note_call(module: Module, *args: Any, **options: Any) -> Any:
    recorder = active.get()
    if recorder is None:
        return _call_module(module, *args, **options)
    if id(module) not in recorder.called:
        recorder.called[id(module)] = module, dict(vars(module))
    return recorder.where.within(_call_module, module, *args, **options)


# Generators of random numbers


def _draw(generator: Generator) -> tuple[Any, Any]:
    recorder = active.get()
    if recorder is None:
        return _next(generator)
    with _unrecorded():
        seed, call = _next(generator)
    return (seed, call) if recorder.refusal else recorder.readings.draw(recorder, generator, seed, call)


def _watching(state: Any) -> property:
    """Return the state of generators, which notes that a step sets it."""

    def set_state(generator: Generator, value: Any) -> None:
        recorder = active.get()
        if recorder is not None:
            recorder.refuse("a generator of random numbers is made or set within the step: do so before")
        state.__set__(generator, value)

    return property(state.__get__, set_state)


def _make_on_host(
    generator: Generator, make: Callable[[Any], Any], count: int, shape: tuple[int, ...], device: Any
) -> Any:
    recorder = active.get()
    if recorder is None:
        return _from_host(generator, make, count, shape, device)
    place = recorder.device if device is None else Device(device)
    if place is not recorder.device:
        recorder.refuse(f"random numbers are drawn on {place}, where the arguments are on {recorder.device}")
    backend = original(place)["backend"]

    def drawn(seed: int, call: int) -> Any:
        return backend.from_host(make(words(seed, call, count)).reshape(shape), place.index)

    return wrap(recorder.call(drawn, generator._next()), place)


# Optimizers


def _note_change(of: Flat) -> None:
    recorder = active.get()
    if recorder is not None:
        recorder.flats[id(of)] = of
    _changed(of)


def _renew_gradients(gradients: Gradients) -> None:
    """Take another buffer, as is done before a replay if somebody looks at the gradients: no part of the step."""
    recorder = active.get()
    if recorder is None or not hasattr(gradients, "tensors"):  # which is being made
        return _renew(gradients)
    recorder.renewed(gradients)
    with _unrecorded():
        _renew(gradients)


def _keep_private(of: Flat) -> bool:
    """Move parameters, too, that the step itself looks at: their arrays are not held by what it holds."""
    recorder = active.get()
    if recorder is not None and recorder.sees(of):
        of._settle()
        return True
    return _keep_flat_private(of)


def _settle_params(of: Flat) -> None:
    recorder = active.get()
    if recorder is not None:
        recorder.unsettled = "an optimizer moved its parameters"
    with _unrecorded():  # an optimizer counts who sees its arrays, not what stands for them
        _settle_flat(of)


def _note_step(optimizer: Optimizer, closure: Any = None) -> Any:
    recorder = active.get()
    if recorder is None:
        return _step(optimizer, closure)
    recorder.optimizers[id(optimizer)] = optimizer
    before = _remembered(optimizer)
    loss = recorder.where.within(_step, optimizer, closure)
    if _remembered(optimizer) != before:
        recorder.unsettled = "an optimizer remembers other things than before"
    return loss


def _remembered(optimizer: Optimizer) -> list[tuple[int, set[str], set[str]]]:
    """Return the names of what is remembered of parameters."""
    flats = [flat for _, laid in optimizer.laid() for flat in laid.flats]
    return [(id(flat), {*flat.numbers}, {*flat.arrays}) for flat in flats]


def _note_laying(optimizer: Optimizer, group: dict[str, Any]) -> Any:
    recorder = active.get()
    if recorder is not None:
        recorder.unsettled = "an optimizer laid out its parameters"
        for state in optimizer._apart.values():
            for key, value in state.items():
                state[key] = concrete(value)
    with _unrecorded():
        return _lay(optimizer, group)


def _looking(look: Callable[[Optimizer], Any]) -> Callable[[Optimizer], Any]:
    """Return what shows the state of an optimizer, in which are numbers that would stay those of the recording."""

    def looking(optimizer: Optimizer) -> Any:
        recorder = active.get()
        if recorder is None:
            return look(optimizer)
        recorder.refuse("the state of an optimizer is looked at: do so outside")
        with _unrecorded():
            return look(optimizer)

    return looking


def _read_numbers(values: Any) -> Any:
    recorder = active.get()
    return _read(values) if recorder is None or recorder.refusal else recorder.readings.read(recorder, values)


def _write_number(numbers: dict[str, Any], key: str, value: Any) -> None:
    recorder = active.get()
    _write(numbers, key, value if recorder is None else recorder.readings.keep(numbers, key, value))


# What the engine keeps, and what comes in


def _note_walk(*args: Any, **options: Any) -> Any:
    recorder = active.get()
    return _walk(*args, **options) if recorder is None else recorder.where.within(_walk, *args, **options)


def _constant_ones(place: Place, shape: tuple[int, ...]) -> Any:
    recorder = active.get()
    if recorder is None or place.device is not recorder.device:
        return _ones(place, shape)
    with _unrecorded():
        array = _ones(place, shape)
    return recorder.constant(array)


def _note_foreign(x: Any) -> Any:
    recorder = active.get()
    if recorder is not None and type(x) is not Recorded and hasattr(x, "shape"):
        recorder.refuse(f"an array of {type(x).__module__.partition('.')[0]} comes in: give a tensor, as an argument")
    return _device_of(x)


# Who stands where

_DOORS: list[tuple[Any, str, Any]] = [
    (Tensor, "_data", property(_get_array, _set_array)),
    (Tensor, "requires_grad_", _note_wish),
    (HookHandle, "__init__", _note_hook),
    (HookHandle, "remove", _note_unhook),
    (Leaf, "grad", property(_get_gradient, _set_gradient)),
    (Module, "training", property(_get_mode, _set_mode)),
    (Module, "__call__", _note_call),
    (Generator, "_next", _draw),
    (Generator, "_state", _watching(vars(Generator)["_state"])),
    (type(_default), "_state", _watching(vars(type(_default))["_state"])),
    (Generator, "_from_host", _make_on_host),
    (Gradients, "renew", _renew_gradients),
    (Flat, "_settle", _settle_params),
    (Flat, "keep_private", _keep_private),
    (Flat, "changed", _note_change),
    (Optimizer, "step", _note_step),
    (Optimizer, "_lay", _note_laying),
    (Optimizer, "state", property(_looking(vars(Optimizer)["state"].fget))),
    (Optimizer, "state_dict", _looking(Optimizer.state_dict)),
    (autograd, "_ones", _constant_ones),
    (autograd, "walk", _note_walk),
    (flat, "read", _read_numbers),
    (flat, "write", _write_number),
    (conversion, "device_of", _note_foreign),
    (inputs, "device_of", _note_foreign),
]
_closed: list[tuple[Any, str, Any]] = []  # what stood there before


def _stand_in_the_doors() -> None:
    for owner, name, ours in _DOORS:
        _closed.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, ours)


def _leave_the_doors() -> None:
    while _closed:
        owner, name, before = _closed.pop()
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
