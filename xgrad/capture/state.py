"""The state of a step: the tensors, modules, optimizers and generators that a function uses."""

from __future__ import annotations

import random
import sysconfig
from collections import UserList, deque
from collections.abc import Container, Iterable, Mapping
from functools import partial
from operator import is_
from pickle import dumps
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy.random

from xgrad.core.function import Function
from xgrad.core.tensor import Tensor
from xgrad.core.views import base_of
from xgrad.nn.module import Module, edits
from xgrad.optim.grad_scaler import GradScaler
from xgrad.optim.optimizer import Optimizer
from xgrad.random.generator import Generator, default_generator

_LIBRARY = tuple(
    sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_HOLDERS = (Tensor, Module, Optimizer, Generator)
_SEQUENCES = (list, tuple, deque, UserList, set, frozenset)
_CONTAINERS = (*_HOLDERS, *_SEQUENCES, dict)
_FOREIGN = (random.Random, numpy.random.Generator, numpy.random.RandomState)


class Link(NamedTuple):
    """A path that may lead to state.

    It has an expression with ``{}`` for objects, the objects, and the value at the path. The value
    of a container is a tuple of its contents. `leads_to` are the ids of the state found through the
    path.
    """

    text: str
    objects: tuple[Any, ...]
    value: Any
    leads_to: set[int]


class StepState:
    """The state of a function, `named` by id.

    It includes the links that lead to the state, and generators of other libraries. Each search
    method returns the ids of the state that an object leads to.
    """

    def __init__(self, function: Any, arguments: Iterable[Any], extra: Any) -> None:
        self.named: dict[int, tuple[str, Any]] = {}
        self.links: list[Link] = []
        self.foreign_generators: list[Any] = []
        self.edits = -1
        self._contents: list[tuple[Module, list[Any]]] = []
        # objects, the levels of their searches, and the ids of the state they lead to, by id
        self._visited: dict[int, tuple[Any, int, set[int]]] = {}
        self._callable(function, "", followed=True)
        for i, argument in enumerate(arguments):
            self._visit(argument, f"argument {i}")
        self._visit(extra, "state")
        self._visit(default_generator, "xgrad.random")
        self._visited.clear()

    def of(self, kind: type) -> list[tuple[str, Any]]:
        """Return the tensors, modules, optimizers or generators, each with its name."""
        return [(name, x) for name, x in self.named.values() if isinstance(x, kind)]

    def same_modules(self) -> bool:
        """Return whether modules still have the same parameters, buffers, submodules and modes."""
        number = edits.number
        if self.edits != number and all(
            same_objects(_contents(module), known) for module, known in self._contents
        ):
            self.edits = number
        return self.edits == number

    def was_rebound(self, known: Container[int]) -> bool:
        """Return whether a path now leads to another module, or another of the `known` tensors."""
        for text, (owner, *key), value, _ in self.links:
            if text != "{}":
                now, before = [owner.get(*key) if key else getattr(owner, text[3:], None)], [value]
            elif isinstance(owner, Mapping):
                now, before = [owner[new] for new in owner.keys() - value], []
            else:
                now, before = list(owner), list(value)
            # a tensor made by the step is an escape, which is reported elsewhere
            made = any(isinstance(x, Tensor) and id(x) not in known for x in now)
            if not made and not same_objects(
                *[[x for x in part if isinstance(x, _HOLDERS)] for part in (now, before)]
            ):
                return True
        return False

    # Search

    def _visit(self, x: Any, name: str, level: int = 0) -> set[int]:
        """Search an object once.

        Level 1 is for attributes of other objects: it leaves out the attributes of the object
        itself.
        """
        _, known, ids = self._visited.get(id(x), (None, 2, set()))
        level = 0 if isinstance(x, (*_HOLDERS, GradScaler)) else level
        ids = ids | {id(x)} if isinstance(x, _HOLDERS) else ids
        if level < known:
            # before the search, since objects may contain themselves
            self._visited[id(x)] = x, level, ids
            ids |= self._search(x, name, level)
        return ids

    def _search(self, x: Any, name: str, level: int) -> set[int]:
        if isinstance(x, _HOLDERS):
            self.named[id(x)] = name, x
        if isinstance(x, Tensor):
            base = base_of(x)
            return set() if base is None else self._visit(base, f"the base of {name}")
        if isinstance(x, Module):
            return self._module(x, name)
        if isinstance(x, Optimizer):
            params = [
                (i, j, p)
                for i, group in enumerate(x.param_groups)
                for j, p in enumerate(group["params"])
            ]
            return set().union(
                *[self._visit(p, f"{name}.param_groups[{i}]['params'][{j}]") for i, j, p in params]
            )
        if isinstance(x, (Generator, Function)):
            return set()
        # for random.random, its generator
        owner = x.__self__ if isinstance(x, BuiltinMethodType) else x
        if isinstance(owner, _FOREIGN):
            self.foreign_generators.append(owner)
        elif isinstance(x, (Mapping, *_SEQUENCES)):
            if isinstance(x, Mapping):
                ids = self._contained(
                    x, [self._item(x, key, f"{name}[{key!r}]", level) for key in list(x)]
                )
            else:
                ids = self._contained(
                    x, [self._visit(part, f"{name}[{i}]", level) for i, part in enumerate(tuple(x))]
                )
            # a user-defined container may have attributes
            return ids if level else ids | self._object(x, name)
        elif callable(x) and not isinstance(x, type):
            ids = self._callable(x, name)
            if (
                ids
                or hasattr(x, "__wrapped__")
                or isinstance(x, (FunctionType, MethodType))
                or level
            ):
                return ids  # a decorated function, such as a captured step, counts as its target
            return self._object(x, name)
        elif level == 0 and not isinstance(x, (type, ModuleType)):
            return self._object(x, name)
        return set()

    def _contained(self, container: Any, parts: Iterable[set[int]]) -> set[int]:
        """Link the contents of a container, also of an empty one, which may be filled later."""
        ids = set().union(*parts)
        if (ids or not container) and not isinstance(container, (tuple, frozenset)):
            self.links.append(Link("{}", (container,), tuple(container), ids))
        return ids

    def _module(self, module: Module, name: str) -> set[int]:
        ids: set[int] = set()
        for path, part in module.named_modules():
            full = f"{name}.{path}" if path else name
            inner = self._visited.setdefault(id(part), (part, 0, {id(part)}))[2]
            self.named[id(part)] = full, part
            self._contents.append((part, _contents(part)))
            for key, value in list(vars(part).items()):
                if not isinstance(value, Module):
                    inner |= self._visit(value, f"{full}.{key}", 1)
            ids |= inner
        return ids

    def _object(self, x: Any, name: str) -> set[int]:
        """Find state in the attributes of an object."""
        attributes = getattr(x, "__dict__", None)
        keys = list(attributes) if isinstance(attributes, dict) else []
        ids = set().union(
            *[self._item(attributes, key, f"{name}.{key}".lstrip("."), 1) for key in keys]
        )
        for key in slots_of(x):
            if hasattr(x, key):
                ids |= self._link(f"{{}}.{key}", (x,), getattr(x, key), f"{name}.{key}", 1)
        return ids

    def _item(self, mapping: Any, key: Any, name: str, level: int) -> set[int]:
        return self._link("{}[{}]", (mapping, key), mapping[key], name, level)

    def _link(
        self, text: str, objects: tuple[Any, ...], value: Any, name: str, level: int
    ) -> set[int]:
        """Visit the value at a path, and link it if it leads to state or may become a tensor."""
        ids = self._visit(value, name, level)
        if ids or type(value) in (type(None), bool, int, float, complex):
            self.links.append(Link(text, objects, value, ids))
        return ids

    def _callable(self, x: Any, name: str, followed: bool = False) -> set[int]:
        """Find the state that a callable refers to."""
        if isinstance(x, MethodType):
            return self._visit(x.__self__, name or "self") | self._callable(
                x.__func__, name, followed
            )
        if isinstance(x, partial):
            arguments = self._visit(x.args, name) | self._visit(x.keywords, name)
            return arguments | self._callable(x.func, name, followed)
        if isinstance(x, FunctionType):
            return self._function(x, followed)
        inner = getattr(x, "__wrapped__", None)  # a decorated function, a captured step included
        if inner is not None:
            return self._visit(inner, name)
        return self._visit(x, name) if followed else set()

    def _function(self, function: FunctionType, followed: bool) -> set[int]:
        """Find state in the closure, the defaults and the named globals of a function."""
        # marked as visited first, since it may call itself
        _, _, ids = self._visited.setdefault(id(function), (function, 0, set()))
        ids |= self._visit(function.__defaults__, "default") | self._visit(
            function.__kwdefaults__, "default"
        )
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                ids |= self._link("{}.cell_contents", (cell,), cell.cell_contents, name, 0)
            except ValueError:  # the variable is not assigned yet
                continue
        file = function.__code__.co_filename
        if not followed and (
            file.startswith(_LIBRARY) or str(function.__module__).partition(".")[0] == "xgrad"
        ):
            return ids
        names, scope = _names(function.__code__), function.__globals__
        for name in sorted(names & scope.keys()):
            if not isinstance(scope[name], ModuleType):
                ids |= self._item(scope, name, name, 0)
                continue
            inside = vars(scope[name])
            for key in sorted(
                key for key in names & inside.keys() if isinstance(inside[key], _CONTAINERS)
            ):
                ids |= self._item(inside, key, f"{name}.{key}", 0)
        return ids


def _contents(module: Module) -> list[Any]:
    """Return a module's mode and those attributes that are or may be state, each after its name."""
    items, kinds = vars(module).items(), (*_CONTAINERS, type(None))
    return [
        part
        for item in items
        if item[0] == "training" or isinstance(item[1], kinds)
        for part in item
    ]


def slots_of(x: Any) -> list[str]:
    """Return the names of the attributes in the ``__slots__`` of an object.

    Names of private attributes are mangled, as in Python.
    """
    found = []
    for kind in type(x).__mro__:
        names, prefix = kind.__dict__.get("__slots__", ()), kind.__name__.lstrip("_")
        for name in (names,) if isinstance(names, str) else names:
            private = prefix and name.startswith("__") and not name.endswith("__")
            found.append(f"_{prefix}{name}" if private else name)
    return found


def same_objects(one: Any, other: Any) -> bool:
    """Return whether two tuples or lists hold the same objects."""
    return len(one) == len(other) and all(map(is_, one, other))


def holds_state(container: Any) -> bool:
    """Return whether a container holds tensors, modules, optimizers or generators."""
    return any(
        isinstance(x, _HOLDERS)
        for x in (container.values() if isinstance(container, Mapping) else container)
    )


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in code, including functions inside it."""
    return set(code.co_names).union(
        *[_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    )


def foreign_states(generators: Iterable[Any]) -> list[Any]:
    """Return the states of some generators of Python and NumPy.

    The states of the generator that each of the two libraries shares come first.
    """
    states = [x.getstate() if isinstance(x, random.Random) else dumps(x) for x in generators]
    shared: Any = numpy.random.get_state()
    return [random.getstate(), shared[1].tobytes(), shared[2:], *states]
