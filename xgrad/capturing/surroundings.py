"""What a step's own code names beside its arguments: a recording holds only as long as those are the same things."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache, partial, partialmethod
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from xgrad.capturing.descriptions import (
    ABSENT,
    ALL,
    CONTAINERS,
    PLAIN,
    Contents,
    Names,
    Others,
    attributes,
    classes,
    contents,
    described,
    is_installed,
    is_library,
    is_ours,
    parts,
)
from xgrad.graph import Leaf
from xgrad.nn.module import Module, edits
from xgrad.optim.optimizer import Optimizer
from xgrad.tensor import Tensor

_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
_IMPORT_NAME = dis.opmap["IMPORT_NAME"]
_OF_VARIABLES = _LOAD_GLOBAL, dis.opmap["LOAD_NAME"], dis.opmap["STORE_GLOBAL"]


class Modules:
    """Modules that a step calls. Called, it returns whether they have the attributes that they had.

    Parameters
    ----------
    modules : sequence of (Module, dict)
        The modules, with their attributes.

    Attributes
    ----------
    edits : int
        As of which edit of modules they had them.
    """

    def __init__(self, modules: Sequence[tuple[Any, dict[str, Any]]]) -> None:
        self._modules, self.edits = modules, edits.number

    def __call__(self) -> bool:
        for module, before in self._modules:
            now = vars(module)
            if now.keys() != before.keys():
                return False
            for name, value in before.items():
                if name != "training" and now[name] is not value and described(now[name]) != described(value):
                    return False
        self.edits = edits.number
        return True


class Watched:
    """A variable or attribute. Called, it returns a description of what it is now.

    Parameters
    ----------
    name : str
        How the step's code names it.
    holder : cell or dict
        Where it is.
    key : str or None
        Where in a dict.
    place : object
        What tells it apart from others, if that is not where it is.
    """

    __slots__ = ("base", "holder", "key", "name", "place", "read")

    def __init__(self, name: str, holder: Any, key: str | None = None, place: Any = None) -> None:
        self.name, self.holder, self.key = name, holder, key
        self.base, self.place = key or name, place or (id(holder), key)
        self.read: Callable[[], Any] = partial(_content, holder) if key is None else partial(holder.get, key, ABSENT)

    def __call__(self) -> Any:
        return described(self.read())


class Inside:
    """What is in a variable. Called, it returns a description of that.

    Parameters
    ----------
    variable : Watched
        The variable.
    names : Names
        Of attributes that the step's code may read.
    """

    __slots__ = ("_base", "_names", "name", "place", "read")

    def __init__(self, variable: Watched, names: Names) -> None:
        self.name, self.read, self._names = variable.name, variable.read, names
        self.place, self._base = variable.place, variable.base

    def __call__(self) -> Any:
        return contents(self.read(), self._names, self._base)

    def marks(self) -> list[Any]:
        """Return what is to be compared, to know without a description that what is in it is the same."""
        value = self.read()
        return [(lambda: (self.read(),), (value,)), *Contents(value, self._names, self._base).marks]


def watched(step: Any, arguments: Iterable[Any], known: Names) -> tuple[list[Watched | Inside], Names]:
    """Return the variables of a function, and attributes of what it is a method of, that are to be watched.

    Also the names that its code, and that of functions that it may call, has for attributes of whatever it is given:
    those that are known already, and more.
    """
    names, given = Names(known), [x for x in arguments if not issubclass(type(x), PLAIN) and not _is_bare(x)][:_MOST]
    code = getattr(getattr(step, "__func__", step), "__code__", None)
    if code is not None:  # often all that there is
        names.add(names_of(code))
    while True:  # for a name may lead to more code, and that to more names
        before, search = len(names), _Search(names, step)
        if type(step) not in (FunctionType, MethodType):
            search.watch(Watched("step", {"step": step}, "step"))
        for argument in given:
            search.follow(argument)
        search.run()
        if len(names) == before:
            break
    variables = list(search.variables.values())
    return [*variables, *(Inside(v, names) for v in variables if Contents(v.read(), names, v.base).anything)], names


class _Search:
    """A search for what code names, and for code of the user's that it may call.

    Parameters
    ----------
    names : Names
        Of attributes that the code has, to which those that are found are added.
    step : callable
        Where it begins, which may be of a library.
    """

    def __init__(self, names: Names, step: Any) -> None:
        self._names = names
        self.variables: dict[Any, Watched] = {}  # by where they are
        self._seen: dict[Any, Any] = {}  # with what is kept, and so its id
        self._waiting: list[tuple[Any, str, Any]] = []
        self._first = getattr(step, "__func__", step), getattr(step, "__self__", None)
        self.follow(step)

    def run(self) -> None:
        """Look at all that was found, and at what that names, up to an amount at which no step is written by hand."""
        while self._waiting and len(self._seen) < _MOST:
            self._look(*self._waiting.pop())

    def follow(self, value: Any, base: str = "", owner: Any = None) -> None:
        """Note that code names a thing: functions that it may call by that are looked for."""
        key = id(value), base, id(owner)
        if key not in self._seen and not issubclass(type(value), PLAIN):
            self._seen[key] = value, owner
            self._waiting.append((value, base, owner))

    def _look(self, value: Any, base: str, owner: Any) -> None:
        kind = type(value)
        if kind is FunctionType:
            if value is self._first[0] or not _is_installed(value):
                self._function(value, owner)
            if "__wrapped__" in vars(value):  # which a library may have decorated
                self.follow(value.__wrapped__, base, owner)
        elif kind is MethodType:
            self.follow(value.__func__, base, value.__self__)
            self.follow(value.__self__)
        elif issubclass(kind, Tensor):
            for hook in hooks(value._leaf):
                self.follow(hook)
        else:
            found = parts(value, self._names, base)
            if found is None:
                return
            self._methods(value, base)
            for part in attributes(value).values() if issubclass(kind, Module) else ():
                if issubclass(type(part), (Module, Tensor)) and not _is_bare(part):
                    self.follow(part)
            container = issubclass(kind, CONTAINERS)
            for _, keys, values in found:
                for name, part in zip(keys, values, strict=True) if keys is not None else ():
                    if part is ABSENT:
                        continue
                    if type(part) is not FunctionType or container or kind is ModuleType or kind is partial:
                        self.follow(part, "" if container else name)
            if "__wrapped__" in attributes(value):
                self.follow(attributes(value)["__wrapped__"], base, owner)

    def watch(self, variable: Watched, owner: Any = None) -> None:
        """Watch a variable, and look at what it is."""
        self.variables.setdefault(variable.place, variable)
        self.follow(variable.read(), variable.base, owner)

    def _methods(self, value: Any, base: str) -> None:
        """Look at methods and properties that code may use which names a thing, also of the classes that it extends."""
        made = issubclass(type(value), type)  # by the step itself, perhaps
        names = {*_CALLED_BACK, *self._names.of(base)}
        for kind in classes(value):
            for name, member in list(vars(kind).items()):
                special = name in _OF_NEW if made else name.startswith("__") and name not in _UNCALLED
                if name in ("__getattr__", "__getattribute__") and not self._names.handed_on:
                    self._names.hand_on()
                if name in names or special:
                    function = getattr(member, _FUNCTIONS.get(type(member), ""), member)
                    if type(function) is FunctionType:
                        self.follow(function, base, value)

    def _function(self, function: Any, owner: Any) -> None:
        code = function.__code__
        self._names.add(names_of(code))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self.watch(Watched(name, cell), owner)  # which may be what a decorator was given
        variables = function.__globals__
        for name in sorted(_globals(code)):
            if name in variables:
                self.watch(Watched(name, variables, name))
        for name in code.co_names if _IMPORT_NAME in code.co_code[::2] else ():
            if name in sys.modules and not is_library(name):
                self.watch(Watched(name, sys.modules, name))
        defaults = function.__defaults__ or ()
        first = code.co_argcount - len(defaults)
        given = dict(zip(code.co_varnames[first : code.co_argcount], defaults, strict=True))
        for name, value in [*given.items(), *(function.__kwdefaults__ or {}).items()]:
            if not issubclass(type(value), PLAIN):
                self.watch(Watched(name, {name: value}, name, (id(function), name)))
        if owner is not None:
            self._attributes(owner)

    def _attributes(self, owner: Any) -> None:
        """Watch what a method may read of what it is a method of."""
        if is_ours(owner) and owner is not self._first[1]:
            return
        own, wanted = attributes(owner) if not issubclass(type(owner), type) else {}, self._names.of("")
        for name in wanted:
            if name in own and not (name == "training" and issubclass(type(owner), Module)):  # asked where it is read
                self.watch(Watched(f"self.{name}", own, name))
        others = Others(owner, wanted)
        if Contents(others, self._names).anything:
            self.watch(Watched("self", {"self": others}, "self", (id(owner), "self")))
        self.follow(owner)


_MOST = 1 << 14  # things that a search looks at
_CALLED_BACK = ("forward", "backward", "update")  # by the library: of modules, functions and optimizers
_OF_NEW = frozenset("__init__ __new__ __post_init__".split())
#: Methods with names of Python's that are not called of what is there already, or for no value of a step.
_UNCALLED = _OF_NEW.union("__repr__ __str__ __del__ __reduce__ __getstate__ __setstate__ __init_subclass__".split())
#: Where the function is, of what is in the place of a method.
_FUNCTIONS: dict[type, str] = {
    property: "fget",
    classmethod: "__func__",
    staticmethod: "__func__",
    partialmethod: "func",
    cached_property: "func",
}


def begins(variables: Iterable[Watched | Inside], arguments: Iterable[Any]) -> bool:
    """Return whether an optimizer that a step names has not yet taken a step: the first is unlike all others."""
    return any(issubclass(type(x), Optimizer) and not x.laid() for x in (*arguments, *(w.read() for w in variables)))


def hooks(leaf: Leaf | None) -> list[Any]:
    """Return the functions that change the gradient of a leaf on its way."""
    return [] if leaf is None or not leaf.hooks else list(leaf.hooks.values())


def _is_bare(value: Any) -> bool:
    """Return whether something is a tensor without hooks, which calls no code of the user's."""
    return issubclass(type(value), Tensor) and not hooks(value._leaf)


def _is_installed(function: FunctionType) -> bool:
    """Return whether a function is of a library, and so taken to stay as it is."""
    root, path = str(function.__module__).partition(".")[0], function.__code__.co_filename
    return root == "xgrad" or root in sys.stdlib_module_names or is_installed(path)


@lru_cache(1024)
def names_of(code: CodeType) -> dict[str, set[str]]:
    """Return the names of attributes that some code has, by what it calls that of which they are: see `Names`."""
    found: dict[str, set[str]] = {"": set()}
    _find_names(code, set(code.co_freevars), found)
    return found


def _find_names(code: CodeType, free: set[str], found: dict[str, set[str]]) -> None:
    before: Any = None
    for now in dis.get_instructions(code):
        if now.opname == "IMPORT_FROM":
            found[""].add(now.argval)
        if now.opname.endswith("_ATTR") or now.opname == "LOAD_METHOD":
            known = before is not None and not now.is_jump_target and before.opname in _OF_NAMED
            base = before.argval if known and (before.opname != "LOAD_DEREF" or before.argval in free) else ""
            found.setdefault(base, set()).add(now.argval)
        if now.opname != "EXTENDED_ARG":
            before = now
    if not {"getattr", "hasattr", "attrgetter"}.isdisjoint(code.co_names):
        texts = [text for const in code.co_consts for text in (const if type(const) is tuple else (const,))]
        found[""].update(text for text in texts if type(text) is str)
    if not {"vars", "__dict__", "asdict", "astuple"}.isdisjoint(code.co_names):
        found[""].add(ALL)
    for part in code.co_consts:
        if isinstance(part, CodeType):
            _find_names(part, free - {*code.co_cellvars, *code.co_varnames}, found)


_OF_NAMED = frozenset("LOAD_ATTR LOAD_METHOD LOAD_GLOBAL LOAD_NAME LOAD_DEREF".split())


def _globals(code: CodeType) -> set[str]:
    """Return the global variables that some code names, with the code in it, such as that of comprehensions."""
    names = set()
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    for operation in _OF_VARIABLES:
        i = operations.find(operation)
        while i >= 0:
            number, shift = arguments[i], 8
            while operations[i - shift // 8] == dis.EXTENDED_ARG:  # the bits above, one instruction for eight
                number |= arguments[i - shift // 8] << shift
                shift += 8
            names.add(code.co_names[number >> 1 if operation == _LOAD_GLOBAL else number])  # whose last bit is a flag
            i = operations.find(operation, i + 1)
    return names.union(*(_globals(part) for part in code.co_consts if isinstance(part, CodeType)))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned to yet
        return ABSENT
