"""Mutable arrays, with views that share memory, over the immutable arrays of a library."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad.backend.wrapping import ArrayType, LazyNamespace, define_operators

#: Functions whose results are views of their first argument.
_VIEWS = frozenset(
    {"expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims", "reshape", "squeeze"}
)


class MutableArray(ArrayType):
    """A writable array: it holds an immutable array, and replaces it at each write.

    A view holds its base, and the function that takes the view from the base. A write to a view is
    a write to its base, and is visible in all views of the base. A backend defines a subclass, with
    the methods `namespace` and `replaced`.

    native : array -- The array of the library.
    base, take -- The base and the function of a view.
    """

    __slots__ = ("__weakref__", "_base", "_native", "_take", "_version")

    def __init__(
        self,
        native: Any,
        base: MutableArray | None = None,
        take: Callable[[Any], Any] | None = None,
    ) -> None:
        self._native, self._base, self._take = native, base, take
        self._version: int = 0 if base is None else base._version  # the number of writes

    @staticmethod
    def namespace() -> Any:
        """Return the library's namespace, with functions of its own arrays."""
        raise NotImplementedError

    @staticmethod
    def replaced(x: Any, key: Any, value: Any) -> Any:
        """Return an array of the library with the value at a key replaced."""
        raise NotImplementedError

    @property
    def native(self) -> Any:
        """The array of the library."""
        if self._base is not None and self._version != self._base._version:
            assert self._take is not None
            self._native, self._version = self._take(self._base.native), self._base._version
        return self._native

    @property
    def base(self) -> MutableArray | None:
        """The array that it is a view of, which is not a view itself; None if it is not a view."""
        return self._base

    @property
    def root(self) -> MutableArray:
        """The array itself, or the one that it is a view of."""
        return self if self._base is None else self._base

    def write(self, native: Any) -> None:
        """Replace the library's array by another one of the same shape and dtype.

        Views are updated. Not for views.
        """
        self._native, self._version = native, self._version + 1

    def view(self, take: Callable[[Any], Any]) -> MutableArray:
        """Return a view, given the function that takes it from this array."""
        inner = self._take
        whole = take if inner is None else lambda native: take(inner(native))
        return type(self)(take(self.native), self.root, whole)

    def __getitem__(self, key: Any) -> MutableArray:
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, MutableArray) for part in parts):
            return type(self)(self.native[unwrapped(key)])
        return self.view(lambda native: native[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        base, key, value = self.root, unwrapped(key), unwrapped(value)
        if self._take is None:
            base.write(self.replaced(base.native, key, value))
        else:  # write to the elements of the base, by their indices
            xp, flat = self.namespace(), (-1,)
            selected = self._take(xp.reshape(xp.asarray(np.arange(base.size)), base.shape))[key]
            value = xp.reshape(
                xp.broadcast_to(xp.asarray(value, dtype=base.dtype), selected.shape), flat
            )
            new = self.replaced(xp.reshape(base.native, flat), xp.reshape(selected, flat), value)
            base.write(xp.reshape(new, base.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._native.shape)

    @property
    def dtype(self) -> Any:
        return self._native.dtype

    @property
    def device(self) -> Any:
        return self._native.device

    @property
    def mT(self) -> MutableArray:
        return self.view(self.namespace().matrix_transpose)

    T = mT

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.native!r})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.native, dtype)

    def __bool__(self) -> bool:
        return bool(self.native)

    def __int__(self) -> int:
        return int(self.native)

    def __float__(self) -> float:
        return float(self.native)

    def __complex__(self) -> complex:
        return complex(self.native)

    def __index__(self) -> int:
        return operator.index(self.native)

    def __dlpack__(self, **options: Any) -> Any:
        return self.native.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.native.__dlpack_device__()


def _computed(function: Callable[..., Any], *operands: Any) -> Any:
    kind = next(type(x) for x in operands if isinstance(x, MutableArray))
    return kind(function(*map(unwrapped, operands)))


def _updated(function: Callable[..., Any], x: MutableArray, y: Any) -> MutableArray:
    """Update an array in place.

    Arrays of the library are immutable, so its in-place operators make new ones.
    """
    new = function(x.native, unwrapped(y))
    if (tuple(new.shape), new.dtype) != (x.shape, x.dtype):
        raise ValueError(
            f"in place: expected shape {x.shape}, {x.dtype}, got {tuple(new.shape)}, {new.dtype}"
        )
    if x._base is None:
        x.write(new)
    else:
        x[...] = type(x)(new)
    return x


define_operators(MutableArray, _computed, _updated)


def unwrapped(x: Any) -> Any:
    """Return the native arrays of arguments, also inside tuples and lists."""
    if isinstance(x, MutableArray):
        return x.native
    return type(x)(map(unwrapped, x)) if type(x) in (tuple, list) else x


class MutableNamespace(LazyNamespace):
    """A namespace of functions of mutable arrays, given a library's namespace.

    library : namespace -- The namespace of functions of native arrays.
    array_type : type -- The subclass of `MutableArray`.
    **more -- Functions of mutable arrays, and other names.
    """

    def __init__(self, library: Any, array_type: type[MutableArray], **more: Any) -> None:
        super().__init__(library, **more)
        self._array_type = array_type

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and not hasattr(self._real, name):
            raise AttributeError(f"{self._array_type.namespace().__name__} has no {name}")
        return super().__getattr__(name)

    def part(self, name: str, real: Any) -> MutableNamespace:
        """Return an inner namespace."""
        return MutableNamespace(real, self._array_type)

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of mutable arrays."""
        array_type = self._array_type

        def wrapped(x: Any) -> Any:
            if type(x) in (tuple, list) or hasattr(x, "_fields"):
                parts = list(map(wrapped, x))
                return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
            return (
                array_type(x)
                if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.generic)
                else x
            )

        def call(*args: Any, **options: Any) -> Any:
            # Dask's norm takes a list as the axes of a matrix
            if type(axis := options.get("axis")) is list:
                options["axis"] = tuple(axis)
            return wrapped(
                function(*map(unwrapped, args), **{key: unwrapped(x) for key, x in options.items()})
            )

        def permute_dims(x: Any, axes: tuple[int, ...]) -> Any:
            # some libraries refuse negative axes
            return function(x, tuple([axis % len(axes) for axis in axes]))

        convert = permute_dims if name == "permute_dims" else function

        def view(x: Any, /, *args: Any, **options: Any) -> Any:
            if options.pop("copy", None):
                return array_type(convert(x.native, *args, **options))
            return x.view(lambda array: convert(array, *args, **options))

        return view if name in _VIEWS else call
