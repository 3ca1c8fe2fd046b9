"""Methods of tensors with PyTorch's names: arithmetic, element by element and of matrices.

Methods that end with an underscore give this tensor the result, and return it.
"""

from __future__ import annotations

from functools import partial
from numbers import Number
from typing import Any

from xgrad.core import providers
from xgrad.core.arguments import ArrayLike, Scalar, check_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, matrix_products, searching, tensor_conversion, writing
from xgrad.support.hints import shown


def check_factor(op: str, name: str, value: Any) -> Any:
    """Return a factor; TypeError unless it is a number."""
    if type(value) is int or type(value) is float:  # the check of the class `Number` is slow
        return value
    if isinstance(value, bool) or not isinstance(value, Number):
        raise TypeError(f"{op}: expected a number for {name}, got {shown(value)}")
    return value


def scaled(x: Any, factor: Any) -> Any:
    """Return a tensor, an array or a number times a factor; the op refuses anything else."""
    return x if factor == 1 or isinstance(x, (list, tuple, str)) else x * factor


def add(self: Tensor, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
    """Add `other`, times the number `alpha`: see `xgrad.add`.

    Parameters
    ----------
    other : scalar or Tensor
        A number or a tensor that broadcasts with this one.
    alpha : scalar, default 1
        A factor of `other`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([1.0, 2.0]).add(1.0, alpha=3)
    Tensor([4., 5.])
    """
    return elementwise.add(self, scaled(other, check_factor("add", "alpha", alpha)))


def sub(self: Tensor, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
    """Subtract `other`, times the number `alpha`: see `xgrad.subtract`.

    Parameters
    ----------
    other : scalar or Tensor
        A number or a tensor that broadcasts with this one.
    alpha : scalar, default 1
        A factor of `other`.
    """
    return elementwise.subtract(self, scaled(other, check_factor("sub", "alpha", alpha)))


def div(self: Tensor, other: ArrayLike, *, rounding_mode: str | None = None) -> Tensor:
    """Divide, and round the quotient down ("floor"), towards zero ("trunc") or not at all.

    Parameters
    ----------
    other : scalar or Tensor
        The divisor.
    rounding_mode : {None, "floor", "trunc"}, optional
        How the quotient is rounded: `xgrad.divide`, `xgrad.floor_divide`, or towards zero.

    Raises
    ------
    ValueError
        If `rounding_mode` is another.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([-3.0, 3.0]).div(2, rounding_mode="trunc")
    Tensor([-1.,  1.])
    """
    if rounding_mode is None:
        return elementwise.divide(self, other)
    if rounding_mode == "floor":
        return elementwise.floor_divide(self, other)
    if rounding_mode == "trunc":
        out: Tensor = providers.module("remainders").truncated_quotient(self, other)
        return out
    raise ValueError(
        f'div: expected None, "floor" or "trunc" for rounding_mode, got {shown(rounding_mode)}'
    )


def bitwise_not(self: Tensor) -> Tensor:
    """Invert every bit; for bools, return the logical NOT."""
    return elementwise.bitwise_invert(self)


def eq(self: Tensor, other: ArrayLike, /) -> Tensor:
    """Return whether elements are equal."""
    return elementwise.equal(self, other)


def rsqrt(self: Tensor) -> Tensor:
    """Return 1 divided by the square root of each element."""
    return elementwise.reciprocal(self.sqrt())


def clamp(self: Tensor, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """Return the elements, limited to at least `min` and at most `max`: see `xgrad.clip`.

    Parameters
    ----------
    min, max : scalar or Tensor, optional
        The bounds; without one, there is none.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([-2.0, 0.5, 2.0]).clamp(min=0.0, max=1.0)
    Tensor([0. , 0.5, 1. ])
    """
    return elementwise.clip(self, min, max)


def outer(self: Tensor, vec2: ArrayLike) -> Tensor:
    """Return the products of all pairs of elements of two vectors: see `xgrad.linalg.outer`.

    Parameters
    ----------
    vec2 : Tensor
        The second vector.

    Returns
    -------
    Tensor
        A matrix with a row for each element of this vector.
    """
    return matrix_products.outer(self, vec2)


def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """Return the inner product of two vectors.

    Parameters
    ----------
    tensor : Tensor
        A vector of the same length.

    Raises
    ------
    ValueError
        If a tensor is no vector: use ``@``.
    """
    shapes = self.shape, check_tensor("dot", "its argument", tensor).shape
    if any(len(shape) != 1 for shape in shapes):
        raise ValueError(f"dot: expected vectors, got shapes {shapes[0]} and {shapes[1]}: use @")
    return matrix_products.matmul(self, tensor)


def clamp_min(self: Tensor, min: ArrayLike) -> Tensor:
    """Return the elements, limited to at least `min`.

    Parameters
    ----------
    min : scalar or Tensor
        The lower bound.
    """
    return elementwise.clip(self, min, None)


def clamp_max(self: Tensor, max: ArrayLike) -> Tensor:
    """Return the elements, limited to at most `max`.

    Parameters
    ----------
    max : scalar or Tensor
        The upper bound.
    """
    return elementwise.clip(self, None, max)


def erf(self: Tensor) -> Tensor:
    """Return the error function: see `xgrad.special.erf`."""
    out: Tensor = providers.module("special").erf(self)
    return out


def frac(self: Tensor) -> Tensor:
    """Return the fractional part of each element, with its sign."""
    return elementwise.subtract(self, elementwise.trunc(self))


def lerp(self: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Return this tensor plus `weight` times its difference from `end`.

    Parameters
    ----------
    end : Tensor
        The result for a weight of 1.
    weight : scalar or Tensor
        The part of the way to `end`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.asarray([0.0, 10.0]).lerp(xgrad.asarray([1.0, 20.0]), 0.5)
    Tensor([ 0.5, 15. ])
    """
    end = check_tensor("lerp", "end", end)
    change = end - self
    if isinstance(weight, Tensor):
        near = elementwise.abs(weight) < 0.5
        factor = searching.where(near, weight, weight - 1)
        return elementwise.add(searching.where(near, self, end), change * factor)
    if abs(check_factor("lerp", "weight", weight)) < 0.5:
        return elementwise.add(self, change * weight)
    return elementwise.add(end, change * (weight - 1))  # exact for a weight of 1


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """Add the product of two tensors, times a number.

    Parameters
    ----------
    tensor1, tensor2 : Tensor
        The factors.
    value : scalar, default 1
        A factor of the product.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([1.0, 2.0])
    >>> x.addcmul(x, x, value=0.5)
    Tensor([1.5, 4. ])
    """
    first = check_tensor("addcmul", "tensor1", tensor1)
    second = check_tensor("addcmul", "tensor2", tensor2)
    product = scaled(first * second, check_factor("addcmul", "value", value))
    return elementwise.add(self, product)


def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """Add the quotient of two tensors, times a number.

    Parameters
    ----------
    tensor1, tensor2 : Tensor
        The dividend and the divisor.
    value : scalar, default 1
        A factor of the quotient.
    """
    first = check_tensor("addcdiv", "tensor1", tensor1)
    second = check_tensor("addcdiv", "tensor2", tensor2)
    quotient = scaled(first / second, check_factor("addcdiv", "value", value))
    return elementwise.add(self, quotient)


def addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """Return `beta` times this tensor plus `alpha` times a product of matrices.

    Parameters
    ----------
    mat1, mat2 : Tensor
        Matrices of the shapes (n, k) and (k, m).
    beta : scalar, default 1
        A factor of this tensor, which broadcasts to (n, m); with 0, its values are not used.
    alpha : scalar, default 1
        A factor of the product.

    Raises
    ------
    ValueError
        If a factor is no matrix, or this tensor does not broadcast to the product.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.ones(2).addmm(xgrad.ones((1, 3)), xgrad.ones((3, 2)), alpha=2)
    Tensor([[7., 7.]])
    """
    return _add_product("addmm", self, (mat1, mat2), 2, beta, alpha)


def baddbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """Return `beta` times this tensor plus `alpha` times products of a batch of matrices.

    Parameters
    ----------
    batch1, batch2 : Tensor
        Matrices of the shapes (batch, n, k) and (batch, k, m).
    beta : scalar, default 1
        A factor of this tensor, which broadcasts to (batch, n, m); with 0, its values are not used.
    alpha : scalar, default 1
        A factor of the products.

    Raises
    ------
    ValueError
        If a factor has not three axes, or this tensor does not broadcast to the products.
    """
    return _add_product("baddbmm", self, (batch1, batch2), 3, beta, alpha)


def _add_product(
    op: str, x: Tensor, factors: tuple[Any, Any], ndim: int, beta: Any, alpha: Any
) -> Tensor:
    names = ("mat1", "mat2") if ndim == 2 else ("batch1", "batch2")
    for name, factor in zip(names, factors, strict=True):
        if (n := check_tensor(op, name, factor).ndim) != ndim:
            raise ValueError(
                f"{op}: expected {name} with {ndim} axes, got shape {factor.shape}, with {n}: use @"
            )
    check_factor(op, "beta", beta), check_factor(op, "alpha", alpha)
    product: Tensor = scaled(matrix_products.matmul(*factors), alpha)
    pairs = zip(reversed(x.shape), reversed(product.shape), strict=False)
    if x.ndim > ndim or any(n not in (1, m) for n, m in pairs):
        raise ValueError(
            f"{op}: expected a tensor that broadcasts to the product of shape {product.shape}, got"
            f" shape {x.shape}"
        )
    return product if beta == 0 else scaled(x, beta) + product  # a NaN times 0 would be NaN


def fmod(self: Tensor, other: ArrayLike) -> Tensor:
    """Return the remainder of a division, with the sign of this tensor: see `xgrad.fmod`.

    Parameters
    ----------
    other : scalar or Tensor
        The divisor.
    """
    out: Tensor = providers.module("remainders").fmod(self, other)
    return out


def nan_to_num(
    self: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return this tensor with numbers for NaNs and infinities: see `xgrad.nan_to_num`.

    Parameters
    ----------
    nan : float, default 0.0
        What replaces NaN.
    posinf, neginf : float, optional
        What replaces the infinities; by default the largest and the lowest finite number.
    """
    out: Tensor = providers.module("nonfinite").nan_to_num(
        self, nan=nan, posinf=posinf, neginf=neginf
    )
    return out


# Forms that change the tensor, and return it


def _assign(x: Tensor, value: Any, key: Any = ...) -> Tensor:
    x[key] = value
    return x


def copy_(self: Tensor, src: ArrayLike) -> Tensor:
    """Copy the values of another tensor into this one, and return it.

    Parameters
    ----------
    src : Tensor, array or scalar
        The values, cast to the dtype and moved to the device of this tensor; they broadcast.
    """
    return _assign(self, tensor_conversion.asarray(src, dtype=self.dtype, device=self.device))


def fill_(self: Tensor, value: ArrayLike) -> Tensor:
    """Give every element the same value, and return this tensor.

    Parameters
    ----------
    value : scalar or Tensor
        A number, or a tensor with one element.
    """
    return _assign(self, value)


def masked_fill_(self: Tensor, mask: ArrayLike, value: ArrayLike) -> Tensor:
    """Give the elements where `mask` is True a value, and return this tensor.

    Parameters
    ----------
    mask : Tensor of bools
        Where to write.
    value : scalar or Tensor
        A number, or a tensor with one element.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([1.0, 2.0])
    >>> x.masked_fill_(x > 1, 0.0)
    Tensor([1., 0.])
    """
    return _assign(self, value, mask)


def zero_(self: Tensor) -> Tensor:
    """Give every element the value 0, and return this tensor."""
    return _assign(self, 0)


def abs_(self: Tensor) -> Tensor:
    """Replace each element by its absolute value, and return this tensor."""
    return writing.update(self, lambda x, _: elementwise.abs(x), ())


def add_(self: Tensor, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
    """Add `other`, times the number `alpha`, to this tensor, and return it.

    The parameters are as in `add`.
    """
    op = elementwise.add if alpha == 1 else partial(add, alpha=alpha)
    return writing.update(self, op, other)


def clamp_(self: Tensor, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """Limit the elements to at least `min` and at most `max`, and return this tensor.

    The parameters are as in `clamp`.
    """
    return writing.update(self, lambda x, bounds: elementwise.clip(x, *bounds), (min, max))


def div_(self: Tensor, other: ArrayLike, *, rounding_mode: str | None = None) -> Tensor:
    """Divide this tensor, round the quotient as `div` does, and return it.

    The parameters are as in `div`.
    """
    return writing.update(self, partial(div, rounding_mode=rounding_mode), other)


def exp_(self: Tensor) -> Tensor:
    """Replace each element by its exponential, and return this tensor."""
    return writing.update(self, lambda x, _: elementwise.exp(x), ())


def mul_(self: Tensor, other: ArrayLike) -> Tensor:
    """Multiply this tensor, and return it."""
    return writing.update(self, elementwise.multiply, other)


def neg_(self: Tensor) -> Tensor:
    """Negate this tensor, and return it."""
    return writing.update(self, lambda x, _: elementwise.negative(x), ())


def pow_(self: Tensor, exponent: ArrayLike) -> Tensor:
    """Raise this tensor to a power, and return it."""
    return writing.update(self, elementwise.pow, exponent)


def sqrt_(self: Tensor) -> Tensor:
    """Replace each element by its square root, and return this tensor."""
    return writing.update(self, lambda x, _: elementwise.sqrt(x), ())


def sub_(self: Tensor, other: ArrayLike, *, alpha: Scalar = 1) -> Tensor:
    """Subtract `other`, times the number `alpha`, from this tensor, and return it."""
    op = elementwise.subtract if alpha == 1 else partial(sub, alpha=alpha)
    return writing.update(self, op, other)


def _updated(x: Tensor, method: Any, *args: Any, **options: Any) -> Tensor:
    """Give a tensor the result of a method of PyTorch's names, and return it."""
    return writing.update(x, lambda x, _: method(x, *args, **options), ())


def addcmul_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """Add the product of two tensors, times a number, to this tensor, and return it.

    The parameters are as in `addcmul`.
    """
    return _updated(self, addcmul, tensor1, tensor2, value=value)


def addcdiv_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """Add the quotient of two tensors, times a number, to this tensor, and return it.

    The parameters are as in `addcdiv`.
    """
    return _updated(self, addcdiv, tensor1, tensor2, value=value)


def addmm_(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """Give this tensor the value of `addmm`, and return it.

    The parameters are as in `addmm`.
    """
    return _updated(self, addmm, mat1, mat2, beta=beta, alpha=alpha)


def clamp_min_(self: Tensor, min: ArrayLike) -> Tensor:
    """Limit the elements to at least `min`, and return this tensor.

    The parameters are as in `clamp_min`.
    """
    return _updated(self, clamp_min, min)


def clamp_max_(self: Tensor, max: ArrayLike) -> Tensor:
    """Limit the elements to at most `max`, and return this tensor.

    The parameters are as in `clamp_max`.
    """
    return _updated(self, clamp_max, max)


def fmod_(self: Tensor, other: ArrayLike) -> Tensor:
    """Give this tensor the value of `fmod`, and return it."""
    return _updated(self, fmod, other)


def lerp_(self: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Add `weight` times the difference from `end` to this tensor, and return it.

    The parameters are as in `lerp`.
    """
    return _updated(self, lerp, end, weight)


def nan_to_num_(
    self: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaNs and infinities by numbers, and return this tensor.

    The parameters are as in `nan_to_num`.
    """
    return _updated(self, nan_to_num, nan, posinf, neginf)


METHODS: dict[str, Any] = {
    method.__name__: method
    for method in (
        add, sub, div, bitwise_not, eq, rsqrt, clamp, outer, dot, clamp_min, clamp_max, erf, frac,
        lerp, addcmul, addcdiv, addmm, baddbmm, fmod, nan_to_num, copy_, fill_, masked_fill_, zero_,
        abs_, add_, clamp_, div_, exp_, mul_, neg_, pow_, sqrt_, sub_, addcmul_, addcdiv_, addmm_,
        clamp_min_, clamp_max_, fmod_, lerp_, nan_to_num_,
    )
} | {
    "clip": clamp, "divide": div, "subtract": sub,
    "clip_": clamp_, "divide_": div_, "multiply_": mul_, "subtract_": sub_,
}  # fmt: skip
