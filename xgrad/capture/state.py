"""The state of a step: the tensors, modules, optimizers and generators that are found from the function."""

from __future__ import annotations

import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from xgrad import random
from xgrad.capture.foreign_random import is_foreign_generator
from xgrad.nn.module import Module, edits
from xgrad.optim.optimizer import Optimizer
from xgrad.random import Generator
from xgrad.tensor import Tensor

_LIBRARY = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_HOLDERS = (Tensor, Module, Optimizer, Generator)
_SEQUENCES = (list, tuple, deque, set, frozenset)


class State:
    """State found from a function, with names, and the places where it was found.

    Attributes
    ----------
    tensors, modules, optimizers, generators : dict of int to (str, object)
        What was found, by id.
    foreign_generators : list
        Generators of Python and NumPy.
    cells, items, attributes, sequences : list of tuple
        Where it was found: closure cells, mappings with a key, objects with the name of an attribute, and containers;
        each with its contents.
    """

    def __init__(self, function: Any, arguments: Iterable[Any], more: Any) -> None:
        self.tensors: dict[int, tuple[str, Tensor]] = {}
        self.modules: dict[int, tuple[str, Module]] = {}
        self.optimizers: dict[int, tuple[str, Optimizer]] = {}
        self.generators: dict[int, tuple[str, Generator]] = {}
        self.foreign_generators: list[Any] = []
        self.cells: list[tuple[Any, Any]] = []
        self.items: list[tuple[Mapping[Any, Any], Any, Any]] = []
        self.attributes: list[tuple[Any, str, Any]] = []
        self.sequences: list[tuple[Any, tuple[Any, ...]]] = []
        self.empty: list[Any] = []  # lists, dicts and sets without state
        self._holding: dict[int, bool] = {}  # whether something leads to state, by id
        self._levels: dict[int, int] = {}  # 1 in the attributes of an object, which are not looked into further
        self._kept: list[Any] = []  # what was visited, so that its id stays its own
        self._attributes_of_modules: list[tuple[Module, list[tuple[str, Any]]]] = []
        self.edits = -1
        self._visit(random._default, "xgrad.random")
        self._callable(function, "", followed=True)
        for i, argument in enumerate(arguments):
            self._visit(argument, f"argument {i}")
        if more is not None:
            self._visit(more, "state")
        self._kept.clear()
        self._holding.clear()
        self._levels.clear()

    def listing(self) -> Iterator[tuple[str, Any]]:
        """Return what was found, each with its name."""
        for found in (self.tensors, self.modules, self.optimizers, self.generators):
            yield from found.values()

    def same_modules(self) -> bool:
        """Return whether modules have the parameters, buffers, modules and modes that they had."""
        if self.edits != edits.number:
            number = edits.number
            if any(_contents(module) != contents for module, contents in self._attributes_of_modules):
                return False
            self.edits = number
        return True

    # Search

    def _visit(self, x: Any, name: str, level: int = 0) -> bool:
        """Find state in something, and return whether it leads to any."""
        if id(x) not in self._holding or (level < self._levels[id(x)] and not self._holding[id(x)]):
            self._kept.append(x)
            self._levels[id(x)] = level
            self._holding[id(x)] = isinstance(x, _HOLDERS)  # first, for what holds itself
            self._holding[id(x)] = self._look_into(x, name, level)
        return self._holding[id(x)]

    def _look_into(self, x: Any, name: str, level: int) -> bool:
        if isinstance(x, Tensor):
            self.tensors[id(x)] = name, x
            owner = getattr(x, "_owner", None)
            return owner is None or self._visit(owner, f"{name}.data")
        if isinstance(x, Module):
            return self._module(x, name)
        if isinstance(x, Optimizer):
            self.optimizers[id(x)] = name, x
            for i, group in enumerate(x.param_groups):
                for j, p in enumerate(group["params"]):
                    self._visit(p, f"{name}.param_groups[{i}]['params'][{j}]")
            return True
        if isinstance(x, Generator):
            self.generators[id(x)] = name, x
            return True
        if is_foreign_generator(x):
            self.foreign_generators.append(x)
            return False
        if isinstance(x, Mapping):
            found = [self._item(x, key, f"{name}[{key!r}]", level) for key in list(x)]
            if any(found):
                self.sequences.append((x, tuple(x)))
            elif not x:
                self.empty.append(x)
            return any(found)
        if isinstance(x, _SEQUENCES):
            contents = tuple(x)
            found = [self._visit(part, f"{name}[{i}]", level) for i, part in enumerate(contents)]
            if not isinstance(x, (tuple, frozenset)):
                if any(found):
                    self.sequences.append((x, contents))
                elif not x:
                    self.empty.append(x)
            return any(found)
        if callable(x) and not isinstance(x, type) and (self._callable(x, name) or hasattr(x, "__wrapped__")):
            return True  # a decorated function, such as a captured step, is what it wraps
        return level == 0 and not isinstance(x, (type, ModuleType, FunctionType)) and self._object(x, name)

    def _module(self, module: Module, name: str) -> bool:
        for path, part in module.named_modules():
            full = f"{name}.{path}" if path else name
            self._holding[id(part)], self._levels[id(part)] = True, 0
            self.modules[id(part)] = full, part
            self._attributes_of_modules.append((part, _contents(part)))
            for key, value in list(vars(part).items()):
                if not isinstance(value, Module):
                    self._visit(value, f"{full}.{key}", 1)
        return True

    def _object(self, x: Any, name: str) -> bool:
        """Find state in the attributes of an object."""
        found = False
        attributes = getattr(x, "__dict__", None)
        if isinstance(attributes, dict):
            for key in list(attributes):
                found = self._item(attributes, key, f"{name}.{key}".lstrip("."), 1) or found
        for kind in type(x).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for key in (slots,) if isinstance(slots, str) else slots:
                value = getattr(x, key, None)
                if self._visit(value, f"{name}.{key}", 1):
                    self.attributes.append((x, key, value))
                    found = True
        return found

    def _item(self, mapping: Any, key: Any, name: str, level: int) -> bool:
        value = mapping[key]
        found = self._visit(value, name, level)
        if found or (value is None and level):
            self.items.append((mapping, key, value))
        return found

    def _callable(self, x: Any, name: str, followed: bool = False) -> bool:
        """Find state in what a callable refers to."""
        if isinstance(x, MethodType):
            return self._visit(x.__self__, name or "self") | self._callable(x.__func__, name, followed)
        if isinstance(x, partial):
            given = [self._visit(part, name) for part in (x.args, x.keywords)]
            return self._callable(x.func, name, followed) or any(given)
        if isinstance(x, FunctionType):
            return self._function(x, followed)
        inner = getattr(x, "__wrapped__", None)  # a decorated function, a captured step included
        if inner is not None:
            return self._visit(inner, name)
        return followed and self._visit(x, name)

    def _function(self, function: FunctionType, followed: bool) -> bool:
        """Find state in the closure, the defaults and the named globals of a function."""
        self._kept.append(function)
        self._holding[id(function)], self._levels[id(function)] = False, 0  # for those that call themselves
        found = [self._visit(function.__defaults__, "default"), self._visit(function.__kwdefaults__, "default")]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned to yet
                continue
            found.append(self._visit(value, name))
            if found[-1] or value is None:
                self.cells.append((cell, value))
        file = function.__code__.co_filename
        if followed or not (file.startswith(_LIBRARY) or str(function.__module__).partition(".")[0] == "xgrad"):
            found.append(self._globals(function))
        return any(found)

    def _globals(self, function: FunctionType) -> bool:
        found, names = False, _names(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if isinstance(value, ModuleType):
                inside = vars(value)
                for key in sorted(names & inside.keys()):
                    if isinstance(inside[key], (*_HOLDERS, *_SEQUENCES, dict)):
                        found = self._item(inside, key, f"{name}.{key}", 0) or found
            else:
                held = self._visit(value, name)
                if held or value is None:
                    self.items.append((function.__globals__, name, value))
                found = found or held
        return found


def _contents(module: Module) -> list[tuple[str, Any]]:
    """Return the mode of a module, and those of its attributes that are or may be state."""
    return [
        (name, value if name == "training" else _Is(value))
        for name, value in vars(module).items()
        if name == "training" or value is None or isinstance(value, (*_HOLDERS, *_SEQUENCES, dict))
    ]


def holds_state(container: Any) -> bool:
    """Return whether a container holds tensors, modules, optimizers or generators."""
    return any(isinstance(x, _HOLDERS) for x in (container.values() if isinstance(container, Mapping) else container))


class _Is:
    """Something that equals itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Is and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in code, and in that of functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
