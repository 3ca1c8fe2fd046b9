"""The recorder of a step: it records the calls of the array library while the step runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

from xgrad.backend.device import Device, Interceptor, intercepting
from xgrad.backend.ownership import owner_of
from xgrad.backend.recording import recording
from xgrad.capture.numbers import Number, SymbolicInt, is_symbolic, plain
from xgrad.capture.program import Call, Storage, Value, leaves, map_leaves
from xgrad.capture.proxies import Proxy, RecordingDevice, ScalarProxy, recording_device
from xgrad.core.graph import clock
from xgrad.support.scopes import Scope
from xgrad.support.user_code import user_line

#: Functions whose results have a shape that depends on values.
_SHAPED_BY_VALUES = frozenset(
    "nonzero unique_all unique_counts unique_inverse unique_values".split()
)
#: Functions that raise an error for some values; `x[index]` is checked in advance.
_RAISE = {
    *"take take_along_axis cholesky eig eigh eigvals eigvalsh inv matrix_rank pinv solve svd"
    " svdvals".split()
}
_CHECKED = _SHAPED_BY_VALUES | _RAISE | {"getitem", "setitem", "repeat"}


class Recorder(Interceptor):
    """A recorder of the calls of a step that runs eagerly.

    Arrays are known by identity: the arrays of arguments and of the state, and the results of array
    code. Any other array is foreign, and refuses the capture when it enters array code.
    """

    def __init__(self, real: Device, line: str) -> None:
        self.real = real
        self.device_within = recording_device(real)
        self._array_type = real.array_type
        self._line = line  # the first line of the step
        self.calls: list[Call] = []
        # arrays made from Python values, by the number of their value
        self.constants: dict[int, Any] = {}
        #: Where the numbers n0, n1 and so on are read: an owner, its attribute or key, an index or
        #: None, and the type.
        self.reads: list[tuple[Any, Any, int | None, type]] = []
        # the short and the full names of these numbers
        self.number_names: dict[str, tuple[str, str]] = {}
        self.conditions: dict[str, bool] = {}  # the outcome of each test of a number
        self.refusal = ""  # why the step cannot be replayed, with the line
        #: Weak references to arrays of tensors of the state that have a graph, and their names.
        self.computed: dict[int, tuple[Any, str]] = {}
        # weak references to known arrays, and their values, by the id of the array
        self._values: dict[int, tuple[Any, Value]] = {}
        self._count = 0  # of values
        #: Arrays from before the step, their stand-ins, and their values, by the id of the array.
        self._own: dict[int, tuple[Any, Any, Value]] = {}
        # the storages of inputs and state, by the id of the owner of the memory
        self._storages: dict[int, Storage] = {}
        # the current numbers of optimizers, by the id of their dict, and the key
        self._numbers: dict[tuple[int, Any], Any] = {}
        self._generators: set[int] = set()  # the ids of known generators
        # states of generators, as ints and as numbers, by the id of the state
        self._states: dict[int, tuple[Any, tuple[Any, Any]]] = {}
        self._has_written = False  # whether the step has written to inputs or state
        self._op, self._start = "", next(clock.numbers)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Return a context in which this thread or task is recorded."""
        with Scope(recording, self), Scope(intercepting, self):
            yield

    def refuse(self, reason: str, line: str = "") -> None:
        """Record why the step cannot be replayed; it continues, and later calls run eagerly."""
        if not self.refusal:
            self.refusal = (
                f"{line or (user_line() if recording.get() is self else self._line)}: {reason}"
            )

    # Arrays

    def _new_value(self, array: Any, storage: Storage, name: str = "") -> Value:
        self._count += 1
        return Value(self._count - 1, storage, array, name)

    def _remember(self, array: Any, value: Value) -> None:
        self._values[id(array)] = ref(array), value

    def value_of(self, array: Any) -> Value | None:
        """Return the value of an array in the program; None for a foreign array."""
        reference, value = self._values.get(id(array), (None, None))
        return value if reference is not None and reference() is array else None

    def knows(self, array: Any) -> bool:
        """Return whether an array belongs to an argument or the state, or was made by the step."""
        return self.value_of(array) is not None

    def add_array(self, array: Any, kind: str, name: str) -> tuple[Any, Value]:
        """Return the stand-in for an array from before the step, and its value.

        `kind` is "input", or "state" for a part of the state. The stand-in is another array object
        in the same memory: whatever holds it after the step has obtained it during the step.
        """
        if id(array) not in self._own:
            storage = self._storages.setdefault(id(owner_of(array)), Storage(kind))
            self._own[id(array)] = array, array.view(), self._new_value(array, storage, name)
            self._remember(*self._own[id(array)][1:])
        _, own, value = self._own[id(array)]
        return own, value

    def constant(self, make: Callable[[], tuple[Any, Device]]) -> tuple[Any, Device]:
        """Return an array made from Python values, and its device."""
        with Scope(recording, None):
            array, device = make()
        return self._outside(self.constant_proxy(array)) if device is self.real else array, device

    def constant_proxy(self, array: Any) -> Any:
        """Return the proxy of a constant: of a copy, since the step may write to it."""
        value = self._new_value(array, Storage("constant"))
        self.constants[value.number] = array
        return self.call(self.real.xp.asarray, (Proxy(self, array, value),), {"copy": True}, ())

    @contextmanager
    def paused(self, follow: Iterable[Any]) -> Iterator[None]:
        """Return a context that records nothing, and in which tensors may get new equal arrays.

        After that, tensors outside of the step may have the arrays of the tensors in `follow`, so
        these get separate array objects.
        """
        values = [(x, value) for x in follow if (value := self.value_of(x._data)) is not None]
        for x, _ in values:
            x._data = x._data.view()
        with Scope(recording, None):
            yield
        for x, value in values:
            x._data = x._data.view()
            self._remember(x._data, value)

    def graph_behind(self, array: Any) -> str:
        """Return a text about the graph behind a tensor of the state, and what to do about it.

        It is empty for any other array.
        """
        reference, name = self.computed.get(id(array), (None, ""))
        if reference is None or reference() is not array:
            return ""
        return (
            f"{name}, a tensor of the state that was computed with a graph before the step: store"
            f" {name}.detach(), or compute it in the step"
        )

    def release(self) -> None:
        """Drop the stand-ins for arrays from before the step."""
        self._own.clear()

    def arrays_of(self, values: Sequence[Value]) -> list[Any]:
        """Return arrays with the values, as array objects that nothing else holds.

        All these arrays must still exist.
        """
        arrays = {
            value: array
            for reference, value in self._values.values()
            if (array := reference()) is not None
        }
        return [arrays[value].view() for value in values]

    def escaped(self) -> Value | None:
        """Return the value of an array that is still held, other than by tensors from before."""
        return next(
            (value for reference, value in self._values.values() if reference() is not None), None
        )

    def forget(self) -> None:
        """Drop calls, arrays and generators, since numbers of the program refer to the recorder."""
        self.calls, self.reads, self.constants, self.computed = [], [], {}, {}
        for known in (self._values, self._own, self._storages, self._numbers, self._states):
            known.clear()

    def line_of(self, value: Value | None) -> str:
        """Return the line that computed a value, or the first line of the step if none did."""
        return next((call.line for call in self.calls if value in call.results), self._line)

    # Array code: arguments are proxies, results are arrays

    def proxy(self, array: Any) -> Proxy:
        """Return the proxy of an array; a foreign array refuses the capture."""
        value = self.value_of(array)
        if value is None:
            self.refuse(
                f"{self._op} is given {reason}"
                if (reason := self.graph_behind(array))
                else f"{self._op} is given a tensor of shape {tuple(array.shape)} that is neither"
                " an argument, nor found from the step, nor made by it: pass it as an argument, or"
                " name it in state= and change it in place"
            )
            value = self._new_value(array, Storage("constant"))
            self.constants[value.number] = array
        return Proxy(self, array.view(), value, array)

    def inside(self, x: Any) -> Any:
        """Return the arguments of array code, with proxies in place of arrays."""
        return map_leaves(self._inside, x)

    def _inside(self, x: Any) -> Any:
        return (
            self.proxy(x)
            if type(x) is self._array_type
            else self.device_within
            if x is self.real
            else x
        )

    def outside(self, x: Any) -> Any:
        """Return the results of array code as tensors hold them: arrays in place of proxies."""
        return map_leaves(self._outside, x)

    def _outside(self, x: Any) -> Any:
        if type(x) is ScalarProxy:
            x = self.device_within.as_array(x)
        if type(x) is not Proxy:
            return x
        if x.held is None:
            x.held = x.array.view()
            self._remember(x.held, x.value)
        return x.held

    def run(self, device: Device, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Return the result of array code: a function of a device and arguments."""
        if device is not self.real:
            # arrays of a vmap are tensors; arrays of other devices are foreign
            return function(device, *args)
        self._op = f"a call of {function.__name__.strip('_')}"
        return self.outside(function(self.device_within, *self.inside(args)))

    def enter(self, device: Device, arrays: Any, options: Any) -> tuple[Any, Any, Any]:
        """Return the device, the arrays and the options to call a rule with."""
        if device is not self.real:
            return device, arrays, options
        return self.device_within, self.inside(arrays), self.inside(options)

    def leave(self, device: Device, *results: Any) -> Any:
        """Return the device and the results of a rule, as tensors and nodes hold them."""
        return self.real if device is self.device_within else device, *map(self.outside, results)

    # Ops

    def intercept(self, function: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Record the name of the op that is called, for messages."""
        self._op = "indexing" if function.name in ("getitem", "setitem") else function.name

    def before_backward(self, edges: Iterable[Any]) -> None:
        """Refuse a graph from before the step, since it has saved values from before."""
        if any(0 < edge.order < self._start for edge in edges):
            self.refuse("a graph from before the step is walked")

    # Calls of the array library

    def call(
        self, function: Callable[..., Any], args: Any, options: Any, writes: tuple[int, ...]
    ) -> Any:
        """Call a function of arrays, and record the call."""
        args, options = map_leaves(self._inside, args), map_leaves(self._inside, options)
        # Arrays only: all true NumPy scalars are one object, so their ids do not identify them.
        operands = {id(x.array): x for x in leaves((*args, *options.values())) if type(x) is Proxy}
        written = [
            x for x in (*map(args.__getitem__, writes), options.get("out")) if type(x) is Proxy
        ]
        name = getattr(function, "__name__", "")
        may_raise = name in _CHECKED and self._check_call(name, args)
        for x in written:
            x.value.storage.writes += 1
            self._has_written = self._has_written or x.value.storage.kind != "temporary"
        try:
            result = function(*map_leaves(_concrete, args), **map_leaves(_concrete, options))
        except Exception as error:  # the step may catch it, and other values may not raise it
            self.refuse(f"{name} raises {type(error).__name__}, which may depend on values")
            raise
        single = not isinstance(result, (tuple, list))
        arrays = [result] if single else result
        if not written and not any(map(_is_array, arrays)):
            return result  # the call is of shapes or dtypes
        known = single and (result is None or id(result) in operands)
        made = [] if known else [self._wrap(array, operands) for array in arrays]
        if made or written:  # if not, an argument is returned unchanged
            stored, stored_options = map_leaves(_symbolic, args), map_leaves(_symbolic, options)
            results, writes_to = [x.value for x in made], tuple([x.value for x in written])
            self.calls.append(
                Call(
                    function,
                    stored,
                    stored_options,
                    writes_to,
                    results,
                    single,
                    line=user_line(),
                    may_raise=may_raise,
                )
            )
        if single:
            return made[0] if made else operands.get(id(result))
        return result._make(made) if hasattr(result, "_make") else type(result)(made)

    def _wrap(self, array: Any, operands: dict[int, Proxy]) -> Proxy:
        """Return the proxy of a result, which may be an operand or share the memory of one."""
        if id(array) in operands:
            return operands[id(array)]
        storage = Storage("temporary")
        if not isinstance(array, self._array_type):
            return ScalarProxy(self, array, self._new_value(array, storage))
        owner = owner_of(array)
        if owner is not array:
            storage = next(
                (x.value.storage for x in operands.values() if owner is owner_of(x.array)), storage
            )
        return Proxy(self, array, self._new_value(array, storage))

    def _check_call(self, name: str, args: Sequence[Any]) -> bool:
        """Refuse shapes that depend on values; return whether a call raises an error for some."""
        if name == "getitem" or name == "setitem":
            return self._check_key(name, *args)
        if name in _SHAPED_BY_VALUES or (name == "repeat" and isinstance(args[1], Proxy)):
            self.refuse(f"the shape of what {name} returns depends on values")
        return name in _RAISE and not self.real.backend.asynchronous

    def _check_key(self, name: str, x: Any, key: Any, value: Any = None) -> bool:
        """Refuse masks; after a write to the state, add a range check of the indices.

        Return whether there are indices without a check.
        """
        parts = key if type(key) is tuple else (key,)
        if any(isinstance(part, Proxy) and "bool" in str(part.dtype) for part in parts):
            if name == "getitem":
                self.refuse("the shape of what x[mask] returns depends on values")
            elif getattr(value, "shape", ()):
                self.refuse("what x[mask] = array takes of the array depends on values")
        elif not self.real.backend.asynchronous:
            checked = 0
            for part, length in zip(parts, x.shape, strict=False):
                if part is Ellipsis or part is None or not self._has_written:
                    break
                checked += 1
                if isinstance(part, Proxy):
                    self.check(self.device_within.xp.all((part >= -length) & (part < length)))
            return any(isinstance(part, Proxy) for part in parts[checked:])
        return False

    def check(self, condition: Any) -> bool:
        """Return the truth of an array of one bool, and add it to the checks of the program."""
        if isinstance(condition, bool):
            return condition
        condition = condition if isinstance(condition, Proxy) else self.proxy(condition)
        truth = bool(condition.array)
        self.calls.append(Call(bool, (condition.value,), {}, check=truth, line=user_line()))
        return truth

    def to_host(self, array: Any) -> Any:
        """Return the values of an array of the device."""
        return self.real.backend.to_host(array)

    # Numbers

    def add_number(self, value: Any, owner: Any, key: Any, name: str) -> None:
        """Follow a number, or a tuple of numbers, from call to call.

        It belongs to an optimizer, or is the state of a generator.
        """
        number = self._read(value, owner, key, name)
        if key == "_state":
            self._generators.add(id(owner))
            self._states[id(value)] = value, number
        else:
            self._numbers[id(owner), key] = number

    def _read(self, value: Any, owner: Any, key: Any, name: str, index: int | None = None) -> Any:
        """Return the expression of a number, or a tuple of numbers, that is read from its owner."""
        if type(value) is tuple:
            return tuple([self._read(part, owner, key, name, i) for i, part in enumerate(value)])
        value = value.item() if hasattr(value, "item") else value
        part = (
            "" if index is None else (".seed", ".draws")[index] if key == "_state" else f"[{index}]"
        )
        number = Number(self, value, f"n{len(self.reads)}")
        self.number_names[number.text] = (
            part[1:] if key == "_state" else f"{key}{part}",
            f"{name}{part}",
        )
        self.reads.append((owner, key, index, type(value)))
        return number

    def update_numbers(self, owner: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """Return an optimizer's options or numbers as they are passed to its update rule."""
        numbers = {}
        for key, value in values.items():
            number = self._numbers.get((id(owner), key), value)
            if number is not value and not _same_number(plain(number), value):
                self.refuse(
                    f"the step changes {key!r} of an optimizer: set it before or after the step"
                )
                number = value
            numbers[key] = number
        return values if self.refusal else numbers

    def updated_numbers(self, owner: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """Record the numbers after an update rule, and return them as the optimizer stores them."""
        for key, value in values.items():
            if is_symbolic(value):
                self._numbers[id(owner), key] = value
            elif not hasattr(value, "shape"):
                self._numbers.pop((id(owner), key), None)
        return {key: plain(value) for key, value in values.items()}

    def number_of(self, owner: Any, key: Any, after: Any) -> Any:
        """Return the expression of a number at the end of the step, or its value."""
        if key != "_state":
            return self._numbers.get((id(owner), key), after)
        return self._states.get(id(after), (None, after))[1]

    def add_generator(self, generator: Any) -> None:
        """Treat a generator that the step makes from a seed as a constant."""
        self._generators.add(id(generator))

    def draw(
        self, generator: Any, before: tuple[int, int], after: tuple[int, int]
    ) -> tuple[Any, Any]:
        """Return the seed and the call number of a generator, as passed to random kernels.

        States are known by identity, because a recomputation resets a generator to an earlier
        state.
        """
        if id(generator) not in self._generators:
            self.refuse(
                "random numbers are drawn from a generator that is not found from the step, or has"
                " no seed: name it in state="
            )
        # a state that the step has set is constant
        _, (seed, call) = self._states.get(id(before), (None, before))
        self._states[id(before)] = before, (seed, call)
        self._states[id(after)] = after, (seed, call + 1)
        return SymbolicInt.of(seed), SymbolicInt.of(call)


def _same_number(one: Any, other: Any) -> bool:
    """Return whether two numbers, or tuples of numbers, have the same type and bits."""
    return type(one) is type(other) and repr(one) == repr(other)


def _concrete(x: Any) -> Any:
    """Return an argument as it is passed to the function."""
    if isinstance(x, Proxy):
        return x.array
    return x.value if type(x) is Number else x.real if type(x) is RecordingDevice else x


def _symbolic(x: Any) -> Any:
    """Return an argument as it appears in the program."""
    if isinstance(x, Proxy):
        return x.value
    return x.number if type(x) is SymbolicInt else x.real if type(x) is RecordingDevice else x


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape") and type(x) is not type
