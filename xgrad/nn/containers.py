"""Modules made of other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, overload

from xgrad.nn.module import Module
from xgrad.support.docstrings import documented
from xgrad.support.hints import shown


@documented()
class ModuleList(Module):
    """A list of modules, which are registered as attributes are: those in a plain list are not.

    modules : iterable of Module, optional -- The modules in order; their names are their indices.
    raises TypeError -- If a value is not a module.

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

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> Self:
        """Add a module at the end, and return this list."""
        i = len(self)
        if not isinstance(module, Module):
            hint = ": call the class to make one" if isinstance(module, type) else ""
            raise TypeError(f"{type(self).__name__}: expected modules, got {shown(module)} at {i}{hint}")
        setattr(self, str(i), module)
        return self

    def __iter__(self) -> Iterator[Module]:
        return (value for value in vars(self).values() if isinstance(value, Module))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Module:
        chosen = list(self)[index]
        return chosen if isinstance(chosen, Module) else ModuleList(chosen)


@documented()
class Sequential(ModuleList):
    """A chain of modules: each is called with the result of the one before.

    *modules : Module -- The modules in order; their names are their indices.
    raises TypeError -- If a value is not a module.

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
    """

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module:
        chosen = list(self)[index]
        return chosen if isinstance(chosen, Module) else Sequential(*chosen)

    def forward(self, input: Any) -> Any:
        """Return the result of the last module."""
        stack = [iter(self)]
        while stack:
            for module in stack[-1]:
                if type(module) is Sequential and "forward" not in vars(module):  # nested, without recursion
                    if len(stack) == 10_000:
                        raise ValueError("Sequential: expected no module in itself, got modules nested 10000 deep")
                    stack.append(iter(module))
                    break
                input = module(input)
            else:
                stack.pop()
        return input


@documented()
class Residual(Module):
    """A module or function with a shortcut around it: ``input + fn(input)``.

    K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR, 2016.

    fn : Module or callable -- The module, or function, whose result has the shape of its input.
    raises TypeError -- If `fn` cannot be called, or is the class of a module.
    raises ValueError -- In the call, if the result has another shape than the input.

    >>> import xgrad
    >>> from xgrad import nn
    >>> block = nn.Residual(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)))
    >>> block(xgrad.ones((2, 4))).shape
    (2, 4)
    """

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        super().__init__()
        if not callable(fn) or isinstance(fn, type):
            hint = ": call the class to make a module" if isinstance(fn, type) else ""
            raise TypeError(f"Residual: expected a module or a function, got {shown(fn)}{hint}")
        self.fn = fn

    def forward(self, input: Any) -> Any:
        """Return the sum of the input and the result of the module."""
        out = self.fn(input)
        if out.shape != input.shape:
            raise ValueError(f"Residual: expected a result of the shape of the input {input.shape}, got {out.shape}")
        return input + out
