"""Who writes down what one step does: its calls on arrays, its checks of values, and what tensors hold afterwards."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any
from weakref import ref

import numpy as np

from xgrad.capturing.arrays import Recorded, arrays_in, concrete, held, of_tensor
from xgrad.capturing.leaves import Leaves, in_slot
from xgrad.capturing.memory import root_of
from xgrad.capturing.numbers import Number
from xgrad.capturing.operators import IN_PLACE, ON_SCALARS, getitem, same, setitem
from xgrad.capturing.program import Call, Program, Source, Storage, Value
from xgrad.capturing.readings import Readings
from xgrad.capturing.whereabouts import Whereabouts, line_of
from xgrad.device import Device
from xgrad.graph import Leaf
from xgrad.optim.flat import Gradients
from xgrad.tensor import Tensor

#: Whose shape depends on values, of some in certain cases only.
_SHAPED_BY_VALUES = frozenset(
    "nonzero argwhere flatnonzero unique unique_all unique_counts unique_inverse unique_values compress extract repeat "
    "where".split()
)
#: Of what no array is part, dtypes among it.
_PLAIN: frozenset[type] = frozenset(
    {int, float, bool, str, type, type(None), type(...), *(type(np.dtype(code)) for code in np.typecodes["All"])}
)
_bare: Any = object.__new__
_NUMBERS: frozenset[type] = frozenset({Number, int, float, bool, complex})
#: What tells something about arrays that is no value of theirs.
_QUESTIONS = frozenset("shape ndim size result_type can_cast isdtype iscomplexobj isrealobj".split())
_NOTED = _SHAPED_BY_VALUES | _QUESTIONS


class Recorder:
    """The recording of one step, in one thread.

    Parameters
    ----------
    arguments : list of Tensor
        Those of the step, whose arrays are found anew at each replay.
    device : Device
        The only one that is recorded.
    xp : namespace
        Its functions, which do not record.
    """

    def __init__(self, arguments: list[Tensor], device: Device, xp: Any) -> None:
        self.device, self.xp, self._array_type = device, xp, device.array_type
        self._ndarray = np.ndarray if device.array_type is np.ndarray else None  # whose memory is known at a glance
        self.closed = False  # whether the recording is over: what is still about then only computes
        self.refusal: str | None = None  # why the step cannot be replayed
        self.unsettled: str | None = None  # why this program cannot be used again, though another could be
        self.calls: list[Call] = []
        self.inputs: list[Value] = []
        self.arguments = arguments
        self._arguments = {id(tensor): i for i, tensor in enumerate(arguments)}
        self.last: dict[int, Recorded] = {}  # what tensors that were given an array hold at the end, by id
        self.known: dict[int, Recorded] = {}  # by the id of the array of a tensor that was there before
        self._storages: dict[int, Storage] = {}  # of those, by the id of what owns the memory
        self._before: dict[int, Tensor] = {}  # tensors that were there before, by id
        self.edges: dict[int, Any] = {}  # of them, when they were first used
        self._next = itertools.count(1).__next__  # the number of the next value
        self._given_first: list[ref[Tensor]] = []  # tensors that were given an array here
        self.rebound: dict[int, Tensor] = {}  # those of before that were
        self.readings = Readings()  # of numbers
        self.leaves = Leaves()  # what was done to them and their gradients
        self.called: dict[int, tuple[Any, dict[str, Any]]] = {}  # modules, and the attributes that they had
        self.modules: dict[int, tuple[Any, bool]] = {}  # whose mode was asked for, and what it was
        self.modes: dict[int, tuple[Any, bool]] = {}  # what it was set to
        self.optimizers: dict[int, Any] = {}
        self.flats: dict[int, Any] = {}
        self.where = Whereabouts()

    # Refusals

    def refuse(self, why: str, line: str | None = None) -> None:
        """Note why the step cannot be replayed; the first reason counts."""
        if self.refusal is None:
            self.refusal = f"{line or line_of(self.where.now(2))}: {why}"

    # Tensors

    def get(self, tensor: Tensor, array: Any) -> Any:
        """Return what stands for the array of a tensor that was there before the recording."""
        known = self.known.get(id(array))
        if known is not None:
            owner = known.owner
            if owner is tensor or (owner is not None and of_tensor(owner) is array):
                return known
        if tensor._place.device is not self.device:
            self.refuse(f"a tensor on {tensor.device} is used, where the arguments are on {self.device}")
            return array
        edge = tensor._edge
        if edge is not None and type(edge) is not Leaf:
            self.refuse(
                "a tensor is used that was computed before with a graph behind it: use .detach(), or compute it inside"
            )
        source, kind, tensor = self._source(tensor)
        root = id(root_of(array))
        storage = self._storages.get(root)
        if storage is None:
            storage = self._storages[root] = Storage(kind, root)
        elif kind == "input":
            storage.kind = "input"
        value = Value(self._next(), storage, array, source)
        self.inputs.append(value)
        self._before[id(tensor)] = tensor
        self.edges.setdefault(id(tensor), tensor._edge)
        recorded = self.known[id(array)] = Recorded(self, value, None, tensor)
        return recorded

    def _source(self, tensor: Tensor) -> tuple[Source, str, Tensor]:
        """Return where to find the array of a tensor, what kind of memory it is, and the tensor to look at for it."""
        number = self._arguments.get(id(tensor))
        if number is not None:
            return Source("argument", number), "input", tensor
        leaf = self.leaves.leaf_of(tensor)
        if leaf is not None:
            if not in_slot(leaf, tensor):
                return Source("gradient", leaf), "input", tensor
            tensor = leaf.slot.gradients.views[leaf.slot.place]  # which stays when others get a gradient to look at
        return Source("tensor", tensor), "memory", tensor

    def set(self, tensor: Tensor, array: Any) -> None:
        """Note that a tensor is given another array."""
        old = _held(tensor)
        mine = type(old) is Recorded and old.recorder is self
        if id(tensor) in self.rebound or (old is not None and not mine):
            known = None if mine else self.known.get(id(old))
            if known is not None and known.owner is tensor:  # what it stands for stays what it was
                known._array, known.owner = old, None
            self.rebound[id(tensor)] = tensor
            if type(array) is not Recorded:
                self.unsettled = "a tensor was moved to other memory"
        else:
            self._given_first.append(ref(tensor))
            if type(array) is not Recorded and array is not None:
                array = self.constant(array)
        held.__set__(tensor, array)

    def is_gradient(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a gradient that was there before."""
        return self.leaves.leaf_of(tensor) is not None and id(tensor) in self._before

    def renewed(self, gradients: Gradients) -> None:
        """Note that gradients get other memory: that must not have been used before."""
        tensors = {id(t) for t in (gradients.buffer, *gradients.views, *gradients.tensors)}
        for call in self.calls:
            for value in (*call.reads, *call.targets()):
                if value.source is not None and value.source.kind == "tensor" and id(value.source.holder) in tensors:
                    self.unsettled = "a gradient that was looked at is added to"
        self.known = {key: known for key, known in self.known.items() if id(known.owner) not in tensors}

    def constant(self, array: Any) -> Recorded:
        """Return what stands for an array that is the same at each replay."""
        call = Call(same, (array,), {})
        recorded: Recorded = self._result(call, array, ())
        self._write_down(call)
        return recorded

    def tensors_made(self) -> list[Tensor]:
        """Return the tensors that were given an array for the first time, as far as they exist."""
        return [tensor for made in self._given_first if (tensor := made()) is not None]

    def sees(self, flat: Any) -> bool:
        """Return whether a tensor that the step made, and still has, is in the memory of parameters: it stays there."""
        memory = root_of(of_tensor(flat.buffer))
        arrays = [of_tensor(tensor) for tensor in self.tensors_made()]
        seen = [array for array in arrays if type(array) is Recorded and root_of(array.array) is memory]
        for array in seen:
            array.pin()
        return bool(seen)

    def survivors(self) -> list[Tensor]:
        """Return the tensors that were given an array, for the first time or another, as far as they exist."""
        found = {id(tensor): tensor for tensor in [*self.tensors_made(), *self.rebound.values()]}
        return list(found.values())

    # Calls

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any] = {}) -> Any:
        """Call a function, and write it down."""
        if "out" in options:
            options = dict(options)
            out = options.pop("out")
            if out is not None:
                return self.write(function, out, args, options, out=True)
        given, stored, reads, plain = [], [], [], True  # with arrays, and as a program has it, if it is that simple
        for arg in args:
            kind = type(arg)
            if kind is Recorded:
                given.append(arg.array if arg._array is None else arg._array)
                stored.append(arg.value)
                reads.append(arg.value)
            elif kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, arg))):
                given.append(arg)
                stored.append(arg)
            else:
                given.append(concrete(arg))
                plain = False
        if not options:
            result = function(*given)
        elif _PLAIN.issuperset(map(type, options.values())):
            result = function(*given, **options)
        else:
            result = function(*given, **{name: concrete(value) for name, value in options.items()})
            plain = False
        name = "" if type(function) is np.ufunc else getattr(function, "__name__", "")  # which is made each time
        if name in _NOTED or self.closed:
            if name in _QUESTIONS or self.closed:
                return result
            if _is_shaped_by_values(name, args, options):
                self.refuse(f"the shape of what {name} returns depends on values")
        if plain:
            if type(result) is self._ndarray and result.base is None:
                root = id(result)
                for value in reads:
                    if value.storage.root == root:
                        break
                else:
                    return self._made(function, stored, options, reads, result)
            call = Call(function, tuple(stored), dict(options) if options else {}, tuple(reads))
        else:
            call = Call(function, self._stored(args), {name: self._stored(value) for name, value in options.items()})
            args = (*args, *options.values())
        kind = type(result)
        if kind is not np.ndarray and (kind is tuple or kind is list or hasattr(result, "_fields")):
            call.single = False
            if any(type(part) is tuple or type(part) is list for part in result):
                self.refuse(f"{name} returns arrays in containers within containers")
            parts = [self._result(call, part, args) for part in result]
            self._write_down(call)
            return kind(*parts) if hasattr(result, "_fields") else kind(parts)
        wrapped = self._result(call, result, args)
        if call.results:
            self._write_down(call)
        return wrapped

    def view(self, function: Callable[..., Any], x: Recorded) -> Any:
        """Call a function that returns a view of an array, and write it down."""
        array = x.array
        if type(array) is not np.ndarray:
            return self.call(function, (x,))
        result = function(array)
        if self.closed:
            return result
        return self._made(function, [x.value], {}, [x.value], result, x.value)

    def _made(
        self,
        function: Callable[..., Any],
        args: list[Any],
        options: Mapping[str, Any],
        reads: list[Value],
        array: np.ndarray,
        whole: Value | None = None,
    ) -> Recorded:
        """Write down the most frequent call: one that makes an array of NumPy's, or a view of a value.

        What stands here are the constructors unrolled, for most of the time goes here.
        """
        if whole is None:
            storage = _bare(Storage)
            storage.kind, storage.root, storage.writes = "temporary", id(array), 0
        else:
            storage = whole.storage
        value = _bare(Value)
        value.number, value.storage, value.source, value.whole, value.scalar = self._next(), storage, None, whole, False
        value.shape, value.dtype, value.strides = array.shape, array.dtype, array.strides
        call = _bare(Call)
        call.function, call.args, call.options = function, tuple(args), dict(options) if options else {}
        call.reads = call.args if len(reads) == len(args) else tuple(reads)
        call.numbers, call.results, call.single = (), [value], True
        call.target, call.changes, call.out, call.check = None, (), False, None
        self._write_down(call, 5)
        recorded: Recorded = _bare(Recorded)
        recorded.recorder, recorded.value, recorded._array, recorded.owner = self, value, array, None
        recorded.shape, recorded.dtype = value.shape, value.dtype
        return recorded

    def _write_down(self, call: Call, depth: int = 4) -> None:
        """Add a call to the others, and note where in the user's code it comes from: not in `depth` frames of ours."""
        call.where = self.where.now(depth)
        self.calls.append(call)

    def _result(self, call: Call, result: Any, args: Sequence[Any]) -> Any:
        """Return what stands for a result, which may be new, a view of what was given, or that itself."""
        storage, whole, root = None, None, 0
        if isinstance(result, self._array_type):
            root = id(root_of(result))
            for value in call.reads:
                if value.storage.root == root:
                    whole = value if storage is None else None  # it may be a view of any
                    storage = value.storage
            if storage is not None:
                for arg in arrays_in(args):
                    if arg.array is result:
                        return arg
        elif not isinstance(result, np.generic):  # of which some, such as True, are but once there
            if type(result) in (bool, int, float, complex):
                self.refuse(f"the value of an array is read by {call.name}")
            return result
        if storage is None:
            storage = Storage("constant" if call.function is same else "temporary", root)
        value = Value(self._next(), storage, result, None, whole)
        call.results.append(value)
        return Recorded(self, value, result)

    def write(
        self,
        function: Callable[..., Any],
        target: Any,
        args: Any,
        options: Mapping[str, Any] = {},
        *,
        out: bool = False,
    ) -> Any:
        """Call a function that changes an array in place, and write it down."""
        given, stored, reads, plain = [], [], [], not options
        for arg in args:
            kind = type(arg)
            if kind is Recorded:
                given.append(arg.array if arg._array is None else arg._array)
                stored.append(arg.value)
                reads.append(arg.value)
            else:
                given.append(concrete(arg))
                stored.append(arg)
                plain = plain and kind in _PLAIN
        named = {name: concrete(value) for name, value in options.items()} if options else {}
        if out:
            named["out"] = concrete(target)
        function(*given, **named)
        if self.closed:
            return concrete(target)
        if type(target) is not Recorded or target.value.storage.kind == "constant":
            self.refuse(f"{getattr(function, '__name__', function)} changes an array that no tensor holds")
        if type(target) is not Recorded:
            return target
        target.value.storage.writes += 1
        if plain:
            call = Call(function, tuple(stored), {}, tuple(reads), target=target.value, out=out)
        else:
            of_options = {name: self._stored(value) for name, value in options.items()}
            call = Call(function, self._stored(tuple(args)), of_options, target=target.value, out=out)
        self._write_down(call)
        return target

    def change(self, function: Callable[..., Any], args: tuple[Any, ...], places: Sequence[int]) -> Any:
        """Call a function that changes the arguments at some places, those that are no arrays excepted."""
        result = function(*concrete(args))
        if self.closed:
            return result
        targets = [args[i] for i in places if hasattr(args[i], "shape")]
        if any(type(x) is not Recorded or x.value.storage.kind == "constant" for x in targets):
            self.refuse(f"{getattr(function, '__name__', function)} changes an array that no tensor holds")
            return result
        for x in targets:
            x.value.storage.writes += 1
        values = [x.value for x in targets]
        self._write_down(Call(function, self._stored(args), {}, target=values[0], changes=tuple(values[1:])))
        for arg in arrays_in(args):
            if result is arg.array:
                return arg
        if result is not None:
            self.unsettled = f"{getattr(function, '__name__', function)} makes an array that it changes later"
        return result

    def _stored(self, arg: Any) -> Any:
        """Return an argument as a program has it: values, numbers and constants."""
        kind = type(arg)
        if kind is Recorded:
            return arg.value
        if kind in _PLAIN:
            return arg
        if kind is tuple or kind is list:
            return kind([self._stored(part) for part in arg])
        if isinstance(arg, self._array_type) and id(root_of(arg)) in self._storages:
            self.refuse("the memory of a tensor is used by another way than the tensor")
        return arg

    # Operators

    def operate(self, name: str, *args: Any) -> Any:
        """Apply an operator."""
        arrays = False
        for arg in args:
            if type(arg) is Recorded:
                arrays = arrays or not arg.value.scalar
            elif isinstance(arg, self._array_type):
                arrays = True
            elif type(arg) not in _NUMBERS and not _is_scalar(arg):
                return NotImplemented
        return self.call(getattr(self.xp, name) if arrays else ON_SCALARS[name], args)

    def operate_in_place(self, name: str, x: Recorded, y: Any) -> Any:
        """Apply an operator such as ``+=``."""
        if x.value.scalar:
            return self.operate(name, x, y)
        if not (isinstance(y, self._array_type) or _operand(y)):
            return NotImplemented
        return self.write(IN_PLACE[name], x, (x, y))

    def power(self, x: Recorded, exponent: Any) -> Any:
        """Raise to a power, as the operator of the library does."""
        if not (isinstance(exponent, self._array_type) or _operand(exponent)):
            return NotImplemented
        return self.call(operator.pow, (x, exponent))

    def item(self, x: Recorded, key: Any) -> Any:
        """Return the elements at a key."""
        parts = key if type(key) is tuple else (key,)
        if any(map(_is_mask, parts)):
            self.refuse("the shape of what x[mask] returns depends on values")
        result = self.call(getitem, (x, key))
        if self.flats:  # an index out of range would be found when parameters have changed already
            for part, length in zip(parts, x.shape, strict=False):
                if part is Ellipsis or part is None:
                    break
                if type(part) is Recorded:
                    self._check_range(part, length)
        return result

    def assign(self, x: Recorded, key: Any, value: Any) -> None:
        """Write to the elements at a key."""
        shape: Any = getattr(value, "shape", ())
        if shape and any(map(_is_mask, key if type(key) is tuple else (key,))):
            self.refuse("what x[mask] = array takes of the array depends on values")
        self.write(setitem, x, (x, key, value))

    # Checks of values by ops themselves, such as that classes exist

    def check(self, condition: Recorded, value: bool) -> bool:
        """Note what a check of values found; at each replay it must be the same."""
        self._write_down(Call(same, (condition.value,), {}, check=value))
        return value

    def _check_range(self, index: Recorded, length: int) -> None:
        """Note that indices are within an axis, for a replay to look before it changes anything."""
        above, below = self.operate("greater_equal", index, -length), self.operate("less", index, length)
        within = self.operate("bitwise_and", above, below)
        self.check(self.call(self.xp.all, (within,)), True)

    # What comes of it

    def forget(self) -> None:
        """Let go of arrays: what was recorded is in a frame, but its numbers know the recorder as long as they live.

        Optimizers, which count who sees theirs, have counted us.
        """
        flats = list(self.flats.values())
        before = [flat.watchers() for flat in flats]
        self.calls, self.inputs, self.arguments = [], [], []
        self.last, self.known, self._before, self._given_first = {}, {}, {}, []
        for flat, earlier in zip(flats, before, strict=True):
            flat.allow(earlier)

    def program(self, outputs: list[Value]) -> Program:
        """Return what was written down."""
        return Program(self.inputs, self.calls, outputs)


def _held(tensor: Tensor) -> Any:
    """Return the array that a tensor holds, None if it has not been given one."""
    try:
        return of_tensor(tensor)
    except AttributeError:
        return None


def _is_mask(part: Any) -> bool:
    """Return whether part of a key is a recorded array of bools."""
    return type(part) is Recorded and (getattr(part.dtype, "kind", "") == "b" or "bool" in str(part.dtype))


def _operand(arg: Any) -> bool:
    return type(arg) is Recorded or type(arg) in _NUMBERS or _is_scalar(arg)


def _is_scalar(arg: Any) -> bool:
    """Return whether something is a scalar of a library."""
    return hasattr(arg, "dtype") and hasattr(arg, "item") and getattr(arg, "shape", None) == ()


def _is_shaped_by_values(name: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    if name == "repeat":
        return type(args[1] if len(args) > 1 else options.get("repeats")) is Recorded
    return name != "where" or len(args) == 1


active: ContextVar[Recorder | None] = ContextVar("xgrad_capture_recorder", default=None)
