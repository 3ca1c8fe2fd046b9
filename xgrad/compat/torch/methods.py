"""Operators and methods of tensors: the functions of this namespace, under their names.

A method of PyTorch with the name of a function is that function, with the tensor as its first
argument. Methods that end with an underscore write the result of the function to the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import xgrad
from xgrad import random as xrandom
from xgrad.compat.torch import (
    conversions,
    creation,
    elementwise,
    indexing,
    miscellaneous,
    order_statistics,
    products,
    random,
    reductions,
    scans,
    scattering,
    sets,
    shapes,
    splitting,
    statistics,
)
from xgrad.compat.torch.promotion import as_operands, is_number
from xgrad.compat.torch.tensor import Tensor, as_torch, torch_function
from xgrad.compat.torch.unavailable import UNAVAILABLE_METHODS, Missing
from xgrad.core.methods import define_methods
from xgrad.ops import torch_methods, writing


def operator(name: str, op: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    """Return the method of a binary operator, for tensors and numbers."""

    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, xgrad.Tensor) and not is_number(other):
            return NotImplemented
        x1, x2 = as_operands(self, other)
        return as_torch(op(x2, x1) if reflected else op(x1, x2))

    method.__name__ = method.__qualname__ = name
    return method


def in_place(name: str, function: Callable[..., Any]) -> Any:
    """Return the method that writes the result of a function to its first argument."""

    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        def compute(x: Any, _: Any) -> Any:
            return function(as_torch(x), *args, **options)

        return writing.update(self, compute, ())  # type: ignore[return-value]

    method.__name__ = method.__qualname__ = name
    return method


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": xgrad.add,
    "sub": xgrad.subtract,
    "mul": xgrad.multiply,
    "truediv": xgrad.divide,
    "floordiv": xgrad.floor_divide,
    "mod": xgrad.remainder,
    "pow": elementwise.power,
    "and": xgrad.bitwise_and,
    "or": xgrad.bitwise_or,
    "xor": xgrad.bitwise_xor,
    "lshift": xgrad.bitwise_left_shift,
    "rshift": xgrad.bitwise_right_shift,
}
_COMPARISONS = {
    "eq": xgrad.equal,
    "ne": xgrad.not_equal,
    "lt": xgrad.less,
    "le": xgrad.less_equal,
    "gt": xgrad.greater,
    "ge": xgrad.greater_equal,
}


def __matmul__(self: Tensor, other: Any) -> Any:
    return products.matmul(self, other) if isinstance(other, xgrad.Tensor) else NotImplemented


def __rmatmul__(self: Tensor, other: Any) -> Any:
    return products.matmul(other, self) if isinstance(other, xgrad.Tensor) else NotImplemented


def __iter__(self: Tensor) -> Iterator[Any]:
    if not self.ndim:
        raise TypeError("iteration over a tensor without axes")
    return iter(shapes.unbind(self))


def __pos__(self: Tensor) -> Any:
    return self


def __contains__(self: Tensor, value: Any) -> bool:
    return bool(xgrad.any(elementwise.FUNCTIONS["eq"](self, value)))


def _assigned(self: Tensor, value: Any, key: Any = ...) -> Tensor:
    indexing.__setitem__(self, key, value)
    return self


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Give this tensor the values of another, and return it."""
    source = src if isinstance(src, xgrad.Tensor) else xgrad.asarray(src)
    return _assigned(self, conversions.to(source, self.device))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Give every element the same value, and return this tensor."""
    return _assigned(self, value)


def zero_(self: Tensor) -> Tensor:
    """Give every element the value 0, and return this tensor."""
    return _assigned(self, 0)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Give the elements of the diagonal of a matrix a value, and return this tensor."""
    if self.ndim != 2 or wrap:
        raise NotImplementedError(
            "fill_diagonal_: only matrices, without wrap=, are available in xgrad.compat.torch"
        )
    return _assigned(
        self, indexing.where(creation.eye(*self.shape, dtype="bool"), fill_value, self)
    )


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """Give the elements where `mask` is True a value, and return this tensor."""
    return writing.update(  # type: ignore[return-value]
        self, lambda x, _: indexing.masked_fill(as_torch(x), mask, value), ()
    )


def index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Give the elements at indices values, or add them with `accumulate`."""
    key = tuple(indices)
    if not accumulate:
        return _assigned(self, values, key)
    return writing.update(  # type: ignore[return-value]
        self, lambda x, _: xgrad.ops.index_add(x, key, values), ()
    )


def set_(self: Tensor, source: Any = None) -> Tensor:
    """Give this tensor the values and the shape of another, and return it."""
    self.data = source
    return self


def where(self: Tensor, condition: Any, other: Any) -> Any:
    """Return this tensor where a condition is True, and `other` elsewhere."""
    return indexing.where(condition, self, other)


# Random numbers in place


def _drawn(self: Tensor, draw: Callable[..., Any], generator: Any = None) -> Tensor:
    if self.dtype.kind == "c":
        raise NotImplementedError(
            "random complex numbers are not available in xgrad.compat.torch: use torch.complex"
        )
    kind = self.dtype if self.dtype.kind == "f" else xgrad.get_default_dtype()
    values = draw(tuple(self.shape), dtype=kind, device=self.device, generator=generator)
    return _assigned(self, values)


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Give every element a normal random number, and return this tensor."""
    return _drawn(
        self, lambda shape, **options: xrandom.normal(shape, mean, std, **options), generator
    )


def uniform_(
    self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **options: Any
) -> Tensor:
    """Give every element a uniform random number, and return this tensor."""
    low = options.pop("from", from_)
    if options:
        raise TypeError(f"uniform_: unknown arguments {sorted(options)}")
    return _drawn(self, lambda shape, **more: xrandom.uniform(shape, low, to, **more), generator)


def random_(
    self: Tensor, from_: int = 0, to: int | None = None, *, generator: Any = None, **options: Any
) -> Tensor:
    """Give every element a random integer, and return this tensor."""
    low = options.pop("from", from_)
    if to is None and low and "from" not in options:
        low, to = 0, low
    if to is None:
        kind = self.dtype
        to = 2 if kind.kind == "b" else xgrad.iinfo(kind).max if kind.kind in "iu" else 1 << 24
    values = xrandom.randint(low, to, tuple(self.shape), device=self.device, generator=generator)
    return _assigned(self, values)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Give every element 1 with a probability, else 0, and return this tensor."""
    return _drawn(
        self, lambda shape, **options: xgrad.less(xrandom.rand(shape, **options), p), generator
    )


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Give every element an exponentially distributed number, and return this tensor."""
    return _drawn(
        self,
        lambda shape, **options: -xgrad.log1p(-xrandom.rand(shape, **options)) / lambd,
        generator,
    )


def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None
) -> Tensor:
    """Give every element a random number whose logarithm is normal, and return this tensor."""
    return _drawn(
        self,
        lambda shape, **options: xgrad.exp(xrandom.normal(shape, mean, std, **options)),
        generator,
    )


def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None
) -> Tensor:
    """Give every element a random number with Cauchy's distribution, and return this tensor."""
    return _drawn(
        self,
        lambda shape, **options: (
            median + sigma * xgrad.tan(xgrad.pi * (xrandom.rand(shape, **options) - 0.5))
        ),
        generator,
    )


def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Give every element the number of trials up to a success, and return this tensor."""
    return _drawn(
        self,
        lambda shape, **options: xgrad.ceil(
            xgrad.log1p(-xrandom.rand(shape, **options)) / math.log1p(-p)
        ),
        generator,
    )


def _new(name: str, function: Callable[..., Any]) -> Any:
    def method(self: Tensor, *size: Any, **options: Any) -> Any:
        return function(*size, **{"dtype": self.dtype, "device": self.device, **options})

    method.__name__ = method.__qualname__ = name
    return method


def resize_as_(self: Tensor, other: Tensor) -> Tensor:
    """Refuse to change the shape of a tensor in place."""
    raise NotImplementedError("resize_: shapes do not change in place: make a new tensor")


def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """Refuse to change the shape of a tensor in place."""
    raise NotImplementedError("squeeze_: shapes do not change in place: write x = x.squeeze(...)")


def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Refuse to change the shape of a tensor in place."""
    raise NotImplementedError(
        "unsqueeze_: shapes do not change in place: write x = x.unsqueeze(...)"
    )


# Attributes


def _transposed(self: Tensor) -> Any:
    """The tensor with its axes in reverse order."""
    return as_torch(
        xgrad.permute_dims(self, tuple(range(self.ndim))[::-1])
        if self.ndim != 2
        else xgrad.matrix_transpose(self)
    )


def _transposed_matrices(self: Tensor) -> Any:
    """The transpose of each matrix in the last two axes."""
    return as_torch(xgrad.matrix_transpose(self))


PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "H": shapes.adjoint,
    "T": _transposed,
    "imag": elementwise.imag,
    "is_cpu": lambda self: self.device.type == "cpu",
    "is_cuda": lambda self: self.device.type == "cuda",
    "is_meta": lambda self: False,
    "is_mps": lambda self: False,
    "is_nested": lambda self: False,
    "is_quantized": lambda self: False,
    "is_sparse": lambda self: False,
    "is_xpu": lambda self: False,
    "itemsize": lambda self: self.dtype.itemsize,
    "layout": lambda self: "torch.strided",
    "mH": shapes.adjoint,
    "mT": _transposed_matrices,
    "nbytes": lambda self: int(self.size) * self.dtype.itemsize,
    "output_nr": lambda self: 0,
    "real": elementwise.real,
    "retains_grad": lambda self: self._retained_gradient is not None,
    "names": lambda self: (None,) * self.ndim,
}

#: Functions without a method in PyTorch.
_NO_METHODS = set(
    "atleast_1d atleast_2d atleast_3d broadcast_tensors cat chain_matmul column_stack"
    " concat concatenate dstack einsum hstack meshgrid numel_ row_stack rsub scalar_tensor stack"
    " std_mean tensordot bucketize fill isin searchsorted view_as_complex view_as_real var_mean"
    " vstack where polygamma".split()
)
#: Functions of the namespace that are methods, too, unless they are in `_NO_METHODS`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **elementwise.FUNCTIONS,
    **reductions.FUNCTIONS,
    **scans.FUNCTIONS,
    **shapes.FUNCTIONS,
    **indexing.FUNCTIONS,
    **products.FUNCTIONS,
    **order_statistics.FUNCTIONS,
    **scattering.FUNCTIONS,
    **sets.FUNCTIONS,
    **splitting.FUNCTIONS,
    **statistics.FUNCTIONS,
}
#: Functions whose result has the shape of the first argument, which have a form in place.
_IN_PLACE = {
    **elementwise.FUNCTIONS,
    **scattering.IN_PLACE,
    **{
        name: FUNCTIONS[name]
        for name in (
            "addbmm addmm addmv addr baddbmm cumprod cumsum index_add index_copy index_fill renorm"
            " tril triu"
        ).split()
    },
}
_NOT_IN_PLACE = {
    "allclose", "angle", "conj", "equal", "fill", "fmax", "fmin", "imag", "isclose", "isfinite",
    "isinf", "isnan", "isneginf", "isposinf", "isreal", "logaddexp", "logaddexp2", "maximum",
    "minimum", "polygamma", "positive", "real", "rsub", "signbit",
}  # fmt: skip


def polygamma(self: Tensor, n: int) -> Any:
    """Return a derivative of the digamma function."""
    return elementwise.polygamma(n, self)


METHODS: dict[str, Any] = {
    **{name: Missing(name) for name in UNAVAILABLE_METHODS},
    # xgrad's methods have PyTorch's parameters, where the lines below have no other one
    **{name: torch_function(method) for name, method in torch_methods.METHODS.items()},
    **{name: function for name, function in FUNCTIONS.items() if name not in _NO_METHODS},
    **{
        f"{name}_": in_place(f"{name}_", function)
        for name, function in _IN_PLACE.items()
        if name not in _NOT_IN_PLACE
    },
    **splitting.METHODS,
    **conversions.METHODS,
    **miscellaneous.METHODS,
    **{f"__{name}__": operator(f"__{name}__", op) for name, op in _OPERATORS.items()},
    **{f"__r{name}__": operator(f"__r{name}__", op, True) for name, op in _OPERATORS.items()},
    "__rdiv__": operator("__rdiv__", xgrad.divide, True),
    **{f"__{name}__": operator(f"__{name}__", op) for name, op in _COMPARISONS.items()},
    **{
        f"__i{name}__": in_place(f"__i{name}__", operator(f"__{name}__", op))
        for name, op in _OPERATORS.items()
    },
    "__abs__": elementwise.FUNCTIONS["abs"],
    "__contains__": __contains__,
    "__getitem__": indexing.__getitem__,
    "__hash__": object.__hash__,
    "__invert__": elementwise.FUNCTIONS["bitwise_not"],
    "__iter__": __iter__,
    "__matmul__": __matmul__,
    "__neg__": elementwise.FUNCTIONS["negative"],
    "__pos__": __pos__,
    "__rmatmul__": __rmatmul__,
    "__setitem__": indexing.__setitem__,
    "bernoulli": random.bernoulli,
    "multinomial": random.multinomial,
    "is_complex": creation.is_complex,
    "is_floating_point": creation.is_floating_point,
    "is_nonzero": creation.is_nonzero,
    "expand": shapes.expand,
    "expand_as": shapes.expand_as,
    "repeat": shapes.repeat,
    "reshape_as": lambda self, other: shapes.reshape(self, tuple(other.shape)),
    "view": shapes.view,
    "view_as": lambda self, other: shapes.view(self, tuple(other.shape)),
    "new_empty": _new("new_empty", creation.empty),
    "new_full": _new("new_full", creation.full),
    "new_ones": _new("new_ones", creation.ones),
    "new_zeros": _new("new_zeros", creation.zeros),
    **{
        method.__name__: method
        for method in (
            bernoulli_, cauchy_, copy_, exponential_, fill_, fill_diagonal_, geometric_, index_put_,
            log_normal_, masked_fill_, normal_, polygamma, random_, resize_as_, set_, squeeze_,
            uniform_, unsqueeze_, where, zero_,
        )
    },
    "resize_": resize_as_,
    **{name: property(function) for name, function in PROPERTIES.items()},
}  # fmt: skip
define_methods(Tensor, METHODS)
