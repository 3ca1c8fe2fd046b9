"""What things are that are no tensors, and what is in them: equal if a step cannot tell them apart."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from operator import attrgetter, is_
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from xgrad.nn.module import Module
from xgrad.optim.optimizer import Optimizer
from xgrad.random import Generator
from xgrad.tensor import Tensor

ALL = "*"  # stands for the names of all attributes that something has
ABSENT: Any = object()  # what stands for a variable that is not there


class Same:
    """What is equal only to itself, whatever it is."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Equal:
    """What is equal to others of its type if it says so, which may be code of the user's, and may fail."""

    __slots__ = ("hash", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.hash = value, hash(value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not Equal or type(other.value) is not type(self.value):
            return False
        try:
            return other.value is self.value or bool(other.value == self.value)
        except Exception:
            return False

    def __hash__(self) -> int:
        return self.hash


def described(value: Any) -> Any:
    """Return what is equal for things that are no tensors if a step cannot tell them apart: 0.0 is not -0.0, nor 0."""
    kind = type(value)
    if kind in _EXACT:
        return kind, value
    if issubclass(kind, (float, complex, np.generic)):
        return kind, repr(value)
    if kind is set:
        return set, frozenset(value)
    own: Any = kind.__hash__
    try:
        return Same(value) if own is object.__hash__ else Equal(value)
    except Exception:  # of a list, of what holds one, or of what the user has forbidden to hash
        return Same(value)


_MOST = 256  # things in a variable, and in what is in it: what has more than what is left is not looked into
_EXACT = frozenset({bool, int, str, bytes, type(None)})
PLAIN = (bool, int, float, complex, str, bytes, type(None))
_OPAQUE = (Tensor, Generator, BuiltinFunctionType, np.generic)
_TAKEN_AS_IT_IS = (*PLAIN, *_OPAQUE)
_LOOKED_THROUGH = (Module, Optimizer, FunctionType, ModuleType, type)  # in which there is nothing but what code names
CONTAINERS: tuple[Any, ...] = (list, tuple, deque, dict, set, frozenset)


class Others:
    """Stands for those attributes of something that are not its own, or were not when this was made."""

    __slots__ = ("absent", "owner")
    owner: Any
    absent: tuple[str, ...]

    def __init__(self, owner: Any, names: Sequence[str]) -> None:
        own, has_none = attributes(owner), issubclass(type(owner), type)
        self.owner, self.absent = owner, () if has_none else tuple([name for name in names if name not in own])

    def __eq__(self, other: object) -> bool:
        return type(other) is Others and (other.owner is self.owner and other.absent == self.absent)

    def __hash__(self) -> int:
        return id(self.owner)


class Names:
    """The names of attributes that code has, by what it calls the things that it looks them up in.

    `self.optimizer.step` says nothing of an attribute `step` of what is not called `optimizer`. Under the empty name
    stand those that are looked up in what the code has no name for, or one of its own.
    """

    def __init__(self, others: Names | None = None) -> None:
        known: Mapping[str, set[str]] = {} if others is None else others._names
        self._names: dict[str, set[str]] = {"": set(), **{base: names.copy() for base, names in known.items()}}
        self._sorted: dict[str, tuple[str, ...]] = {}
        self.handed_on: bool = others is not None and others.handed_on  # by what looks up in others what it lacks

    def __len__(self) -> int:
        return sum(map(len, self._names.values())) + self.handed_on

    def add(self, names: Mapping[str, set[str]]) -> None:
        """Take in the names that some code has."""
        for base, more in names.items():
            mine = self._names.setdefault(base, set())
            if not more <= mine:
                mine |= more
                self._sorted.clear()

    def hand_on(self) -> None:
        """Take what code looks up in one thing as looked up in any."""
        self.handed_on = True
        self._sorted.clear()

    def of(self, base: str) -> tuple[str, ...]:
        """Return the attributes that code may look up in what is called so."""
        if base not in self._sorted:
            bases = self._names if self.handed_on else ("", base)
            self._sorted[base] = tuple(sorted(set[str]().union(*(self._names.get(b, ()) for b in bases))))
        return self._sorted[base]


Read = Callable[[], Sequence[Any]]


class Contents:
    """What is in something, as far as a step may see it: see `parts`.

    Parameters
    ----------
    value : object
        It.
    names : Names
        Those in the step's code.
    base : str
        What it is called.

    Attributes
    ----------
    description : object
        What is equal if a step cannot tell apart what is in there; None if that is nothing.
    marks : list of tuple
        What reads it, and what that has found: while those are the same things, the description is the same.
    anything : bool
        Whether there is more than functions, or may come.
    """

    def __init__(self, value: Any, names: Names, base: str = "") -> None:
        self._names, self._room, self.anything = names, _MOST, False
        self._seen: dict[Any, tuple[int, Any]] = {}
        self.marks: list[tuple[Read, Sequence[Any]]] = []
        self.description = self._inside(value, base)

    def _inside(self, value: Any, base: str) -> Any:
        key = id(value), base
        if key in self._seen:
            return "seen", self._seen[key][0]
        kind, found = type(value), parts(value, self._names, base)
        if found is None:
            return None
        size = sum(part is not ABSENT for _, keys, values in found if keys is not None for part in values)
        if size > self._room:
            return None
        self._room -= size
        self._seen[key] = len(self._seen), value  # which is kept, and so its id
        held = type(value.owner) if kind is Others else kind
        self.anything = self.anything or not issubclass(held, _LOOKED_THROUGH)
        inside: list[Any] = [kind]
        for read, keys, values in found:
            self.marks.append((read, values))
            for name, part in zip(keys, values, strict=True) if keys is not None else ():
                if part is not ABSENT:
                    self.anything = self.anything or type(part) is not FunctionType
                    within = self._inside(part, "" if issubclass(kind, CONTAINERS) else name)
                    whole = within is not None and type(part) in (list, tuple, dict)
                    inside.append((described(name), within) if whole else (described(name), described(part), within))
        return tuple(inside)


def contents(value: Any, names: Names, base: str = "") -> Any:
    """Return what is equal of something if a step cannot tell apart what is in it; None if nothing is."""
    return Contents(value, names, base).description


def unchanged(marks: Sequence[tuple[Read, Sequence[Any]]]) -> bool:
    """Return whether the same things are where they were found."""
    for read, values in marks:
        now = read()
        if len(now) != len(values) or not all(map(is_, now, values)):
            return False
    return True


def parts(value: Any, names: Names, base: str) -> list[tuple[Read, Any, Sequence[Any]]] | None:
    """Return what is in something: who reads it, what the parts are called, and these; None of what is taken as it is.

    That is all that is in a container, and of other things the attributes that code names: their own, and those that
    their classes of the user's have; of modules of Python that are not the user's only numbers and text. No code of the
    user's is run.
    """
    kind, reads = type(value), list[tuple[Read, Any]]()
    if kind is Others:
        reads = [(partial(_named, attributes(value.owner), value.absent), value.absent)]
        return [(read, keys, read()) for read, keys in [*reads, *_of_classes(value.owner, names.of(base))]]
    if issubclass(kind, np.ndarray):
        bits = None if value.size > _MOST or value.dtype.hasobject else _Bits(value)
        return None if bits is None else [(bits, ("values",), bits())]
    if issubclass(kind, _TAKEN_AS_IT_IS) or is_ours(value) or (kind is FunctionType and not value.__dict__):
        return None
    if issubclass(kind, CONTAINERS):
        if len(value) > _MOST:
            return None
        if issubclass(kind, dict):
            reads = [(partial(tuple, dict.values(value)), tuple(dict.keys(value)))]
            reads.append((partial(tuple, dict.keys(value)), None))
        else:
            container = next(c for c in CONTAINERS if issubclass(kind, c))
            reads = [(partial(_items, container, value), range(len(value)))]
    elif _is_collection(value):
        reads = [(partial(_entries, value), range(len(_entries(value))))]
    if kind in _HELD:
        reads = [(partial(attrgetter(*_HELD[kind]), value), _HELD[kind])]
    elif kind not in CONTAINERS:
        wanted, own = names.of(base), {} if issubclass(kind, type) else attributes(value)
        if ALL in wanted and not issubclass(kind, Module):
            reads.append((partial(_named, {ALL: own}, (ALL,)), (ALL,)))
        if issubclass(kind, Module):
            wanted = tuple([name for name in wanted if name != "training"])  # which is asked where it is read
        if kind is ModuleType and is_library(value.__name__):
            wanted = tuple([name for name in wanted if isinstance(own.get(name), PLAIN)])
        reads += [(partial(_named, own, wanted), wanted)] if own or kind is not type else []
        reads += _of_classes(value, wanted)
    return [(read, keys, read()) for read, keys in reads]


def _is_collection(value: Any) -> bool:
    """Return whether something is a collection of a library, and read by code of that alone."""
    if not issubclass(type(value), (Mapping, Sequence)):
        return False
    return not any(name in vars(kind) for kind in classes(value) for name in ("__getitem__", "__iter__", "__len__"))


def _entries(value: Any) -> tuple[Any, ...]:
    """Return what is in a collection of a library, as far as it can be read; nothing if that is much."""
    try:
        if len(value) > _MOST:
            return ()
        if not issubclass(type(value), Mapping):
            return tuple([_entry(value, i) for i in range(len(value))])
        keys = (*value,)
        return keys + tuple([_entry(value, key) for key in keys])
    except Exception:  # of any kind: it may ask what is the user's, as ChainMap asks its mappings
        return ()


def _entry(collection: Any, key: Any) -> Any:
    try:
        return collection[key]
    except Exception:  # of any kind, as above: this one entry is then left alone, and the others are watched
        return ABSENT


class _Bits:
    """Read the bits of an array of NumPy's, which are the same object as long as they are the same."""

    def __init__(self, array: Any) -> None:
        self._array, self._last = array, np.ndarray.tobytes(array)

    def __call__(self) -> tuple[bytes]:
        now = np.ndarray.tobytes(self._array)
        if now != self._last:
            self._last = now
        return (self._last,)


_HELD: dict[type, tuple[str, ...]] = {MethodType: ("__func__", "__self__"), partial: ("func", "args", "keywords")}


def _of_classes(value: Any, wanted: Sequence[str]) -> list[tuple[Read, Sequence[str]]]:
    """Return who reads those attributes that something has by its classes, or that a class has, in slots or not."""
    reads: list[tuple[Read, Sequence[str]]] = []
    for owner in classes(value):
        found = tuple([name for name in wanted if name in vars(owner)])
        slots = [name for name in found if type(vars(owner)[name]) is MemberDescriptorType]
        if slots and not issubclass(type(value), type):
            reads.append((partial(_slots, [vars(owner)[name] for name in slots], value), slots))
        if len(found) > len(slots):
            reads.append((partial(_named, vars(owner), found), found))
    return reads


def classes(value: Any) -> list[type]:
    """Return the classes of the user's that something is of, or that a class is made of, the nearest first."""
    owner = value if issubclass(type(value), type) else type(value)
    return [c for c in owner.__mro__ if not is_library(c.__module__)]


def attributes(value: Any) -> dict[str, Any]:
    """Return what something has by itself, without asking code of the user's."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:
        return {}
    return own if isinstance(own, dict) else {}


def _items(container: Any, value: Any) -> tuple[Any, ...]:
    return (*container.__iter__(value),)


def _named(values: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return (*map(values.get, names, repeat(ABSENT)),)


def _slots(slots: Sequence[MemberDescriptorType], value: Any) -> tuple[Any, ...]:
    return tuple([_slot(slot, value) for slot in slots])


def _slot(slot: MemberDescriptorType, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:  # not assigned to yet
        return ABSENT


def is_ours(value: Any) -> bool:
    """Return whether something is of a library that a recording follows by itself."""
    if issubclass(type(value), (Module, Optimizer)):  # of which a step may read any attribute
        return False
    name = value.__name__ if type(value) is ModuleType else type(value).__module__
    return str(name).partition(".")[0] in ("xgrad", "numpy")


@cache
def is_library(module: Any) -> bool:
    """Return whether a module of Python, by its name, is none of the user's, and so taken to stay as it is."""
    root = str(module).partition(".")[0]
    path = str(getattr(sys.modules.get(root), "__file__", ""))
    return root in ("xgrad", "numpy") or root in sys.stdlib_module_names or is_installed(path)


def is_installed(path: str) -> bool:
    """Return whether a file is of a package that was installed."""
    return "site-packages" in path or "dist-packages" in path
