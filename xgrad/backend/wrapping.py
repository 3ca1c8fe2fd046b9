"""xgrad's array types and namespaces over an array library's, with one table of operators.

Recording proxies, batched arrays and mutable arrays have the operators of the standard; each type
defines them by one function.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from xgrad.backend.scipy_kernels import SciPyKernels

#: Operators of two operands, which also have a reflected and an in-place form: ``__add__``,
#: ``__radd__``, ``__iadd__``.
BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
UNARY = ("neg", "pos", "invert", "abs")

Call = Callable[..., Any]


def define_operators(kind: type, call: Call, in_place: Call | None = None) -> None:
    """Give a class the operators of the standard.

    ``call(function, *operands)`` computes the result of a function of the module ``operator``, such
    as ``add``. ``in_place(function, x, y)`` does the same for in-place operators, such as ``iadd``;
    without it, Python computes ``x = x + y`` for ``x += y``.
    """
    for name in BINARY:
        function = getattr(operator, f"__{name}__")
        setattr(kind, f"__{name}__", lambda x, y, f=function: call(f, x, y))
        setattr(kind, f"__r{name}__", lambda x, y, f=function: call(f, y, x))
        if in_place is not None:
            function = getattr(operator, f"__i{name}__")
            setattr(kind, f"__i{name}__", lambda x, y, f=function: in_place(f, x, y))
    for name in COMPARISONS:
        function = getattr(operator, name)
        setattr(kind, f"__{name}__", lambda x, y, f=function: call(f, x, y))
    for name in UNARY:
        function = getattr(operator, name)
        setattr(kind, f"__{name}__", lambda x, f=function: call(f, x))


class ArrayType:
    """Base class of array types over other arrays.

    A subclass has a `shape`, and operators from `define_operators`.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's arrays and scalars leave operators to this class
    __hash__ = object.__hash__

    @property
    def ndim(self: Any) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self: Any) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __len__(self: Any) -> int:
        return int(self.shape[0])


class LazyNamespace:
    """A namespace with the functions and parts of another, each wrapped at its first use.

    A subclass defines `wrapped`, for a function by its name, and `part`, for an inner namespace.
    """

    def __init__(self, real: Any, **more: Any) -> None:
        self._real = real
        vars(self).update(more)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._real, name)
        if isinstance(value, (ModuleType, SimpleNamespace, SciPyKernels)):
            value = self.part(name, value)
        elif callable(value) and not isinstance(value, type):
            value = self.wrapped(name, value)
        setattr(self, name, value)
        return value

    def wrapped(self, name: str, function: Call) -> Call:
        """Return the wrapped form of a function."""
        raise NotImplementedError

    def part(self, name: str, real: Any) -> Any:
        """Return the wrapped form of an inner namespace, such as ``linalg``."""
        return type(self)(real)
