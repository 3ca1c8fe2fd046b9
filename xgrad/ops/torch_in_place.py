"""Methods of tensors with PyTorch's names that change the tensor, and return it."""

from __future__ import annotations

from functools import partial
from typing import Any

from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, tensor_conversion, torch_arithmetic, writing


def _assign(x: Tensor, value: Any, key: Any = ...) -> Tensor:
    x[key] = value
    return x


def copy_(self: Tensor, src: Any) -> Tensor:
    """Copy the values of another tensor into this one, and return it."""
    return _assign(self, tensor_conversion.asarray(src, dtype=self.dtype, device=self.device))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Give every element the same value, and return this tensor."""
    return _assign(self, value)


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """Give the elements where `mask` is True a value, and return this tensor."""
    return _assign(self, value, mask)


def zero_(self: Tensor) -> Tensor:
    """Give every element the value 0, and return this tensor."""
    return _assign(self, 0)


def abs_(self: Tensor) -> Tensor:
    """Replace each element by its absolute value, and return this tensor."""
    return writing.update(self, lambda x, _: elementwise.abs(x), ())


def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Add `other`, times the number `alpha`, to this tensor, and return it."""
    op = elementwise.add if alpha == 1 else partial(torch_arithmetic.add, alpha=alpha)
    return writing.update(self, op, other)


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limit the elements to at least `min` and at most `max`, and return this tensor."""
    return writing.update(self, lambda x, bounds: elementwise.clip(x, *bounds), (min, max))


def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide this tensor, round the quotient as `div` does, and return it."""
    return writing.update(self, partial(torch_arithmetic.div, rounding_mode=rounding_mode), other)


def exp_(self: Tensor) -> Tensor:
    """Replace each element by its exponential, and return this tensor."""
    return writing.update(self, lambda x, _: elementwise.exp(x), ())


def mul_(self: Tensor, other: Any) -> Tensor:
    """Multiply this tensor, and return it."""
    return writing.update(self, elementwise.multiply, other)


def neg_(self: Tensor) -> Tensor:
    """Negate this tensor, and return it."""
    return writing.update(self, lambda x, _: elementwise.negative(x), ())


def pow_(self: Tensor, exponent: Any) -> Tensor:
    """Raise this tensor to a power, and return it."""
    return writing.update(self, elementwise.pow, exponent)


def sqrt_(self: Tensor) -> Tensor:
    """Replace each element by its square root, and return this tensor."""
    return writing.update(self, lambda x, _: elementwise.sqrt(x), ())


def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Subtract `other`, times the number `alpha`, from this tensor, and return it."""
    op = elementwise.subtract if alpha == 1 else partial(torch_arithmetic.sub, alpha=alpha)
    return writing.update(self, op, other)


def _updated(x: Tensor, method: Any, *args: Any, **options: Any) -> Tensor:
    """Give a tensor the result of a method of PyTorch's names, and return it."""
    return writing.update(x, lambda x, _: method(x, *args, **options), ())


def addcmul_(self: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Add the product of two tensors, times a number, to this tensor, and return it."""
    return _updated(self, torch_arithmetic.addcmul, tensor1, tensor2, value=value)


def addcdiv_(self: Tensor, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Add the quotient of two tensors, times a number, to this tensor, and return it."""
    return _updated(self, torch_arithmetic.addcdiv, tensor1, tensor2, value=value)


def addmm_(self: Tensor, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Give this tensor the value of `addmm`, and return it."""
    return _updated(self, torch_arithmetic.addmm, mat1, mat2, beta=beta, alpha=alpha)


def clamp_min_(self: Tensor, min: Any) -> Tensor:
    """Limit the elements to at least `min`, and return this tensor."""
    return _updated(self, torch_arithmetic.clamp_min, min)


def clamp_max_(self: Tensor, max: Any) -> Tensor:
    """Limit the elements to at most `max`, and return this tensor."""
    return _updated(self, torch_arithmetic.clamp_max, max)


def fmod_(self: Tensor, other: Any) -> Tensor:
    """Give this tensor the value of `fmod`, and return it."""
    return _updated(self, torch_arithmetic.fmod, other)


def lerp_(self: Tensor, end: Any, weight: Any) -> Tensor:
    """Add `weight` times the difference from `end` to this tensor, and return it."""
    return _updated(self, torch_arithmetic.lerp, end, weight)


def nan_to_num_(
    self: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaNs and infinities by numbers, and return this tensor."""
    return _updated(self, torch_arithmetic.nan_to_num, nan, posinf, neginf)


METHODS: dict[str, Any] = {
    method.__name__: method
    for method in (
        copy_, fill_, masked_fill_, zero_, abs_, add_, clamp_, div_, exp_, mul_, neg_, pow_, sqrt_,
        sub_, addcmul_, addcdiv_, addmm_, clamp_min_, clamp_max_, fmod_, lerp_, nan_to_num_,
    )
} | {"clip_": clamp_, "divide_": div_, "multiply_": mul_, "subtract_": sub_}  # fmt: skip
