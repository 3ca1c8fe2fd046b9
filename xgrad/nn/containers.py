"""Modules made of other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.support.hints import shown

T = TypeVar("T")
if TYPE_CHECKING:  # a default, which `typing` has from Python 3.13 on: `ModuleList` needs no type
    import typing_extensions

    M = typing_extensions.TypeVar("M", bound=Module, default=Module)
else:
    M = TypeVar("M", bound=Module)


class Container(Module, Generic[T]):
    """A module that is a collection of its attributes of one kind: modules or parameters."""

    _kind: ClassVar[Any] = Module
    _kinds: ClassVar[str] = "modules"

    def _items(self) -> list[tuple[str, T]]:
        return [
            (name, value) for name, value in vars(self).items() if isinstance(value, self._kind)
        ]

    def _checked(self, value: Any, key: Any) -> T:
        """Return a value for the collection; TypeError if it has the wrong kind."""
        if not isinstance(value, self._kind):
            hint = ": call the class to make one" if isinstance(value, type) else ""
            raise TypeError(
                f"{type(self).__name__}: expected {self._kinds}, got {shown(value)} at"
                f" {key!r}{hint}"
            )
        checked: T = value
        return checked

    def _add(self, name: str, value: Any) -> None:
        """Set an attribute whose name is free or belongs to the collection."""
        checked = self._checked(
            value, int(name) if isinstance(name, str) and name.isdecimal() else name
        )
        self._check_name(
            "",
            name,
            isinstance(vars(self).get(name) if isinstance(name, str) else None, self._kind),
        )
        setattr(self, name, checked)

    def __len__(self) -> int:
        return len(self._items())


class ListContainer(Container[T]):
    """A collection with access by index."""

    def __iter__(self) -> Iterator[T]:
        return (value for value in vars(self).values() if isinstance(value, self._kind))

    def _replace(self, items: Iterable[tuple[str, Any]]) -> None:
        """Replace the contents; names that are numbers become the new indices."""
        new = [
            (str(i) if name.isdecimal() else name, self._checked(value, i))
            for i, (name, value) in enumerate(items)
        ]
        for name, _ in self._items():
            delattr(self, name)
        for name, value in new:
            self._add(name, value)

    def append(self, value: Any) -> Self:
        """Add a value at the end, and return this collection."""
        i = len(self)
        if str(i) in vars(self):
            raise ValueError(
                f"{type(self).__name__}: expected the index {i} as a free name, got one of"
                f" {list(vars(self))}: choose names that are not numbers"
            )
        self._add(str(i), value)
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add several `values` at the end, and return this collection."""
        for value in list(values):
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> None:
        """Insert a value before `index`, and renumber the values after it."""
        items: list[tuple[str, Any]] = list(self._items())
        items.insert(index, ("0", value))
        self._replace(items)

    def pop(self, index: int = -1) -> T:
        """Remove and return the value at `index`, and renumber the values after it."""
        value = list(self)[index]
        del self[index]
        return value

    def __setitem__(self, index: int, value: Any) -> None:
        name, _ = self._items()[index]
        self._add(name, value)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        del items[index]
        self._replace(items)


class DictContainer(Container[T]):
    """A collection with access by name."""

    def __getitem__(self, key: str) -> T:
        return dict(self._items())[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._add(key, value)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._items()))

    def __contains__(self, key: object) -> bool:
        return key in dict(self._items())

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return dict(self._items()).keys()

    def values(self) -> Iterable[T]:
        """Return the values."""
        return dict(self._items()).values()

    def items(self) -> Iterable[tuple[str, T]]:
        """Return the pairs of names and values."""
        return dict(self._items()).items()

    def update(self, contents: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Set several values: `contents` has them by name, or as pairs."""
        for key, value in dict(contents).items():
            self[key] = value

    def pop(self, key: str) -> T:
        """Remove and return the value of the name `key`."""
        value = self[key]
        delattr(self, key)
        return value

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self):
            delattr(self, key)


class ModuleList(ListContainer[M]):
    """A list of modules that are registered, unlike modules in a plain list.

    Parameters
    ----------
    modules : iterable of Module, optional
        The modules in order; their names are their indices.

    Raises
    ------
    TypeError
        If a value is not a module.

    Examples
    --------
    >>> from xgrad import nn
    >>> layers = nn.ModuleList([nn.Linear(3, 4)])
    >>> layers.append(nn.Linear(4, 2))
    ModuleList(
      (0): Linear(in_features=3, out_features=4, bias=True)
      (1): Linear(in_features=4, out_features=2, bias=True)
    )
    >>> len(layers), layers[-1].out_features, [layer.in_features for layer in layers]
    (2, 2, [3, 4])
    """

    def __init__(self, modules: Iterable[M] = ()) -> None:
        super().__init__()
        self.extend(modules)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList[M]: ...
    def __getitem__(self, index: int | slice) -> M | ModuleList[M]:
        chosen = list(self)[index]
        return ModuleList(chosen) if isinstance(chosen, list) else chosen


class ModuleDict(DictContainer[M]):
    """A dictionary of modules that are registered, unlike modules in a plain dict.

    Parameters
    ----------
    modules : mapping of str to Module, or iterable of pairs, optional
        The modules by name.

    Raises
    ------
    TypeError
        If a value is not a module.
    ValueError
        If a name has a dot, is empty, or is an attribute of every module, such as "forward".

    Examples
    --------
    >>> from xgrad import nn
    >>> heads = nn.ModuleDict({"digit": nn.Linear(3, 10), "sign": nn.Linear(3, 2)})
    >>> heads["sign"], list(heads), "digit" in heads
    (Linear(in_features=3, out_features=2, bias=True), ['digit', 'sign'], True)
    """

    def __init__(self, modules: Mapping[str, M] | Iterable[tuple[str, M]] = ()) -> None:
        super().__init__()
        self.update(modules)


class Sequential(ModuleList[Module]):
    """A chain of modules, each called with the result of the previous one.

    Parameters
    ----------
    *modules : Module, or mapping of str to Module
        The modules in order, named by their indices; or a single mapping from names to modules.

    Raises
    ------
    TypeError
        If a value is not a module.
    ValueError
        If a name has a dot, is empty, or is an attribute of every module, such as "forward".

    Examples
    --------
    >>> import xgrad
    >>> from xgrad import nn
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    >>> net
    Sequential(
      (0): Linear(in_features=3, out_features=4, bias=True)
      (1): ReLU()
    )
    >>> net[0](xgrad.ones((2, 3))).shape, len(net), net[1:]
    ((2, 4), 2, Sequential(
      (0): ReLU()
    ))
    >>> nn.Sequential({"hidden": nn.Linear(3, 4), "activation": nn.ReLU()}).activation
    ReLU()
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self._add(name, module)
        else:
            self.extend(modules)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module | Sequential:
        items = self._items()
        if not isinstance(index, slice):
            return items[index][1]
        chosen = Sequential()
        chosen._replace(items[index])
        return chosen

    def _layers(self) -> list[Module]:
        return [value for value in vars(self).values() if isinstance(value, Module)]

    def forward(self, input: Tensor) -> Tensor:
        """Return the result of the last module."""
        stack = [iter(self._layers())]
        while stack:
            for module in stack[-1]:
                # A nested Sequential without hooks is walked here, not called: no recursion.
                if type(module) is Sequential and not (module._hooks or "forward" in vars(module)):
                    if len(stack) == 10_000:  # no recursion limit ends this loop
                        raise ValueError(
                            "Sequential: expected no module in itself, got modules nested 10000"
                            " deep"
                        )
                    stack.append(iter(module._layers()))
                    break
                input = module(input)
            else:
                stack.pop()
        return input


class Residual(Module):
    """A module or function with a shortcut around it: ``input + fn(input)``.

    K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR, 2016.

    Parameters
    ----------
    fn : Module or callable
        The module, or function, whose result has the shape of its input.

    Raises
    ------
    TypeError
        If `fn` cannot be called, or is the class of a module.
    ValueError
        In the call, if the result has another shape than the input.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad import nn
    >>> block = nn.Residual(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)))
    >>> block(xgrad.ones((2, 4))).shape
    (2, 4)
    """

    def __init__(self, fn: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        if not callable(fn) or isinstance(fn, type):
            hint = ": call the class to make a module" if isinstance(fn, type) else ""
            raise TypeError(f"Residual: expected a module or a function, got {shown(fn)}{hint}")
        self.fn = fn

    def forward(self, input: Tensor) -> Tensor:
        """Return the sum of the input and the result of the module."""
        out = self.fn(input)
        if out.shape != input.shape:
            raise ValueError(
                f"Residual: expected a result of the shape of the input {input.shape}, got"
                f" {out.shape}"
            )
        return input + out
