"""Products of vectors, matrices and arrays with more axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from xgrad.backend.overridable import overridable
from xgrad.core import providers
from xgrad.core.arguments import ArrayLike, as_tensor
from xgrad.core.dtypes import INTEGER, get_default_dtype, is_complex
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise, manipulation, tensor_conversion
from xgrad.ops.declare import derivative
from xgrad.support.hints import shown

__all__ = ["matmul", "tensordot", "vecdot"]


def conjugate(xp: Any, x: Any) -> Any:
    """Return the complex conjugate; a real array is returned without a copy."""
    return xp.conj(x) if is_complex(x.dtype) else x


def adjoint(xp: Any, x: Any) -> Any:
    """Return the conjugate transpose of each matrix in the last two axes."""
    return conjugate(xp, xp.matrix_transpose(x))


def identity(xp: Any, x: Any) -> Any:
    """Return an identity matrix as long as the last axis of `x`, of its dtype, on its device."""
    return xp.eye(x.shape[-1], dtype=x.dtype, device=getattr(x, "device", None))


def as_floating(op: str, name: str, x: Any) -> Tensor:
    """Return an argument as a floating or complex tensor, integers in the default dtype."""
    x = as_tensor(op, name, x)
    return x if x.dtype.kind in "fc" else tensor_conversion.astype(x, get_default_dtype())


def as_square_matrices(op: str, name: str, x: Any) -> Tensor:
    """Return an argument as a floating or complex tensor.

    Raises ValueError unless it holds square matrices.
    """
    matrices = as_floating(op, name, x)
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2]:
        raise ValueError(
            f"{op}: expected square matrices, of shape (..., n, n), for {name}, got"
            f" {matrices.shape}"
        )
    return matrices


def check_matrices(x: Any) -> None:
    """Raise ValueError unless `x` has at least two axes."""
    if len(x.shape) < 2:
        raise ValueError("expected matrices, of shape (..., m, n)")


def check_square(x: Any) -> None:
    """Raise ValueError unless the last two axes hold square matrices."""
    if len(x.shape) < 2 or x.shape[-2] != x.shape[-1]:
        raise ValueError("expected square matrices, of shape (..., n, n)")


def _as_matrices(
    g: Any, xp: Any, x1: Any, x2: Any, vectors: tuple[bool, bool]
) -> tuple[Any, Any, Any]:
    """Add the axis of length 1 that vectors have in a product.

    A vector on the left becomes a row, and a vector on the right a column.
    """
    if vectors[1]:
        g, x2 = xp.expand_dims(g, axis=-1), x2 if x2 is None else xp.expand_dims(x2, axis=-1)
    if vectors[0]:
        g, x1 = xp.expand_dims(g, axis=-2), x1 if x1 is None else xp.expand_dims(x1, axis=-2)
    return g, x1, x2


def matmul_into(xp: Any, a: Any, b: Any, into: Any) -> Any:
    """Return the product of two matrices, computed transposed in the array `into`, if given."""
    if into is None or into.dtype != a.dtype or into.dtype != b.dtype:
        return xp.matmul(a, b)
    xp.matmul(xp.matrix_transpose(b), xp.matrix_transpose(a), out=xp.matrix_transpose(into))
    return into


def _matmul_left(g: Any, xp: Any, x1_shape: tuple[int, ...], x2: Any, into: Any) -> Any:
    if len(x1_shape) == len(x2.shape) == 2:
        return matmul_into(xp, g, xp.matrix_transpose(x2), into)
    # one matrix for a batch: sums the gradients without computing each
    if len(x1_shape) < 3 <= len(x2.shape):
        batch = tuple(range(len(x2.shape) - 2))
        return xp.tensordot(g, x2, axes=((*batch, len(g.shape) - 1), (*batch, len(x2.shape) - 1)))
    vector = len(x1_shape) == 1
    g, _, x2 = _as_matrices(g, xp, None, x2, (vector, len(x2.shape) == 1))
    out = xp.matmul(g, xp.matrix_transpose(x2))
    return xp.squeeze(out, axis=-2) if vector else out


def _matmul_right(g: Any, xp: Any, x1: Any, x2_shape: tuple[int, ...], into: Any) -> Any:
    if len(x1.shape) == len(x2_shape) == 2:
        return matmul_into(xp, xp.matrix_transpose(x1), g, into)
    if len(x2_shape) < 3 <= len(x1.shape):
        rows = tuple(range(len(x1.shape) - 1))
        return xp.tensordot(x1, g, axes=(rows, rows))
    vector = len(x2_shape) == 1
    g, x1, _ = _as_matrices(g, xp, x1, None, (len(x1.shape) == 1, vector))
    out = xp.matmul(xp.matrix_transpose(x1), g)
    return xp.squeeze(out, axis=-1) if vector else out


@derivative(_matmul_left, _matmul_right, lowest=INTEGER, autocast="narrow", native=True)
def matmul(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the matrix product.

    Parameters
    ----------
    x1 : Tensor
        Of shape (..., m, k), or (k,).
    x2 : Tensor
        Of shape (..., k, n), or (k,). The batch axes broadcast.

    Returns
    -------
    Tensor
        Of shape (..., m, n), without the axis that a one-dimensional input does not have.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: Y = X_1 X_2

    - Gradient for `x1`: :math:`\bar Y X_2^\top`
    - Gradient for `x2`: :math:`X_1^\top \bar Y`

    Python array API standard, linear algebra functions: ``matmul``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.matmul(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), xgrad.asarray([1.0, 1.0]))
    Tensor([3., 7.])
    """
    return xp.matmul(x1, x2)


def _rows(xp: Any, x: Any) -> Any:
    """Flatten all axes but the last into one."""
    return x if len(x.shape) == 2 else xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _linear_weight(g: Any, xp: Any, input: Any, into: Any) -> Any:
    # Computed transposed, so that its memory is laid out as (in, out): optimizers keep weights like
    # this, because BLAS is fastest with it.
    x, g = (input, g) if len(input.shape) == 2 else (_rows(xp, input), _rows(xp, g))
    x = xp.matrix_transpose(x)
    if into is None or into.dtype != x.dtype or into.dtype != g.dtype:
        return xp.matrix_transpose(xp.matmul(x, g))
    xp.matmul(x, g, out=xp.matrix_transpose(into))
    return into


def _linear_bias(g: Any, xp: Any) -> Any:
    return xp.sum(g, axis=tuple(range(len(g.shape) - 1)))


@overridable
def _multiply_add(xp: Any, x: Any, y: Any, added: Any) -> Any:
    """Return ``x @ y + added``."""
    out = xp.matmul(x, y)
    if added.dtype != out.dtype:
        return out + added
    out += added
    return out


@derivative(
    lambda g, xp, weight: xp.matmul(g, weight),
    _linear_weight,
    _linear_bias,
    lowest=INTEGER,
    autocast="narrow",
)
def linear(xp: Any, input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Any:
    r"""Return ``input @ weight.T + bias``.

    Parameters
    ----------
    input : Tensor
        Of shape (..., in).
    weight : Tensor
        Of shape (out, in).
    bias : Tensor, optional
        Of shape (out,).

    Returns
    -------
    Tensor
        Of shape (..., out).

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    .. math:: Y = X W^\top + b

    - Gradient for `input`: :math:`\bar Y W`
    - Gradient for `weight`: :math:`\bar Y^\top X`
    - Gradient for `bias`: :math:`\sum_n \bar y_n`, over the rows of :math:`\bar Y`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.linear(xgrad.ones((2, 3)), xgrad.ones((4, 3))).shape
    (2, 4)
    """
    shape, rows = weight.shape, input.shape
    if len(shape) != 2 or rows[-1:] != shape[1:]:
        raise ValueError("expected input of shape (..., in) and weight of shape (out, in)")
    if bias is not None and bias.shape != shape[:1]:
        raise ValueError("expected weight of shape (out, in) and bias of shape (out,)")
    x, y = _rows(xp, input), xp.matrix_transpose(weight)
    out = xp.matmul(x, y) if bias is None else _multiply_add(xp, x, y, bias)
    return out if len(rows) == 2 else xp.reshape(out, (*rows[:-1], shape[0]))


def _summed_axes(
    ndim1: int, ndim2: int, axes: int | tuple[Sequence[int], Sequence[int]]
) -> tuple[list[int], list[int]]:
    """Return the axes of each input that are summed over, counted from the front."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(ndim1, ndim2):
            raise ValueError(
                f"expected axes from 0 to {min(ndim1, ndim2)}, as many as both have, got {axes}"
            )
        return list(range(ndim1 - axes, ndim1)), list(range(axes))
    pair = axes if isinstance(axes, (tuple, list)) and len(axes) == 2 else (None, None)
    if not all(
        isinstance(part, Sequence) and all(hasattr(a, "__index__") for a in part) for part in pair
    ):
        raise TypeError(f"expected an int or two sequences of ints for axes, got {shown(axes)}")
    for name, ndim, part in (("x1", ndim1, axes[0]), ("x2", ndim2, axes[1])):
        if any(not -ndim <= a < ndim for a in part):
            raise IndexError(
                f"expected axes from {-ndim} to {ndim - 1} for {name}, got {shown(part)}"
            )
    return [a % ndim1 for a in axes[0]], [a % ndim2 for a in axes[1]]


def _permute_to(xp: Any, x: Any, order: list[int]) -> Any:
    """Move each axis of `x` to its position in `order`."""
    return xp.permute_dims(x, tuple([order.index(a) for a in range(len(order))]))


def _tensordot_left(g: Any, xp: Any, x1_shape: tuple[int, ...], x2: Any, axes: Any) -> Any:
    summed, other = _summed_axes(len(x1_shape), len(x2.shape), axes)
    free = [a for a in range(len(x1_shape)) if a not in summed]
    rest = [a for a in range(len(x2.shape)) if a not in other]
    out = xp.tensordot(g, x2, axes=(tuple(range(len(free), len(g.shape))), tuple(rest)))
    return _permute_to(xp, out, free + [summed[other.index(a)] for a in sorted(other)])


def _tensordot_right(g: Any, xp: Any, x1: Any, x2_shape: tuple[int, ...], axes: Any) -> Any:
    other, summed = _summed_axes(len(x1.shape), len(x2_shape), axes)
    free = [a for a in range(len(x2_shape)) if a not in summed]
    rest = [a for a in range(len(x1.shape)) if a not in other]
    out = xp.tensordot(x1, g, axes=(tuple(rest), tuple(range(len(rest)))))
    return _permute_to(xp, out, [summed[other.index(a)] for a in sorted(other)] + free)


@derivative(_tensordot_left, _tensordot_right, lowest=INTEGER, autocast="narrow")
def tensordot(
    xp: Any, x1: ArrayLike, x2: ArrayLike, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Any:
    r"""Multiply two tensors and sum over pairs of axes.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers, on one device.
    axes : int or tuple of two sequences of int, default 2
        The number of axes to sum over, the last of `x1` and the first of `x2`; or the axes of each,
        paired in order. The two axes of a pair have one length.

    Returns
    -------
    Tensor
        With the remaining axes of `x1`, then the remaining axes of `x2`.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    IndexError
        If an axis is out of bounds.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y_{rs} = \sum_t x_{1, rt}\, x_{2, ts}

    :math:`t` stands for the indices along the axes to sum over, :math:`r` and :math:`s` for the
    indices along the others.

    - Gradient for `x1`: :math:`\sum_s \bar y_{rs}\, x_{2, ts}`
    - Gradient for `x2`: :math:`\sum_r x_{1, rt}\, \bar y_{rs}`

    Python array API standard, linear algebra functions: ``tensordot``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.tensordot(xgrad.ones((2, 3, 4)), xgrad.ones((4, 3)), axes=((1, 2), (1, 0)))
    Tensor([12., 12.])
    """
    first, second = _summed_axes(len(x1.shape), len(x2.shape), axes)
    lengths = [[x.shape[a] for a in paired] for x, paired in ((x1, first), (x2, second))]
    if lengths[0] != lengths[1]:
        raise ValueError(f"expected equal lengths along the axes to sum over, {first} and {second}")
    return xp.tensordot(x1, x2, axes=(tuple(first), tuple(second)))


@derivative(
    lambda g, xp, x2, axis: xp.expand_dims(conjugate(xp, g), axis=axis) * x2,
    lambda g, xp, x1, axis: xp.expand_dims(g, axis=axis) * x1,
    lowest=INTEGER,
    holomorphic=False,
)
def vecdot(xp: Any, x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Any:
    r"""Return the dot products of vectors along an axis; `x1` is conjugated.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers, on one device, of shapes that broadcast, with one length along the axis.
    axis : int, default -1
        The axis of the vectors, counted from the end; or from the front, if both inputs have the
        same number of axes.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to, without the axis.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y = \sum_i \overline{x_{1, i}}\, x_{2, i}

    - Gradient for `x1`: :math:`\overline{\bar y}\, x_{2, i}`
    - Gradient for `x2`: :math:`\bar y\, x_{1, i}`

    Python array API standard, linear algebra functions: ``vecdot``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.vecdot(xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), xgrad.asarray([1.0, 1.0]))
    Tensor([3., 7.])
    """
    _check_vectors(x1, x2, axis)
    return xp.vecdot(x1, x2, axis=axis)


def _check_vectors(x1: Any, x2: Any, axis: int, length: int | None = None) -> None:
    """Raise an error unless both inputs have the axis, with one length: `length`, if given."""
    depths = len(x1.shape), len(x2.shape)
    if not hasattr(axis, "__index__"):
        raise TypeError(f"expected an int for axis, got {shown(axis)}")
    if not -min(depths) <= axis < min(depths) or (axis >= 0 and depths[0] != depths[1]):
        raise ValueError(f"expected an axis that both have, counted from the end, got {axis}")
    lengths = {x1.shape[axis], x2.shape[axis]}
    if len(lengths) > 1 or length not in (None, *lengths):
        raise ValueError(
            f"expected {'one length' if length is None else f'length {length}'} along axis {axis}"
        )


@derivative(lambda g, xp, x2: xp.matmul(g, x2), lambda g, xp, x1: xp.matmul(x1, g), lowest=INTEGER)
def outer(xp: Any, x1: ArrayLike, x2: ArrayLike, /) -> Any:
    r"""Return the outer product: each element of `x1` times each element of `x2`.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers, of shapes (m,) and (n,), on one device.

    Returns
    -------
    Tensor
        Of shape (m, n).

    Raises
    ------
    ValueError
        If an input is not a vector.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: Y = x_1 x_2^\top

    - Gradient for `x1`: :math:`\bar Y x_2`
    - Gradient for `x2`: :math:`\bar Y^\top x_1`

    Python array API standard, linear algebra extension: ``outer``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.outer(xgrad.asarray([1.0, 2.0]), xgrad.asarray([3.0, 4.0]))
    Tensor([[3., 4.],
            [6., 8.]])
    """
    if not len(x1.shape) == len(x2.shape) == 1:
        raise ValueError("expected two vectors, each with one axis")
    return xp.linalg.outer(x1, x2)


def kron(x1: Tensor, x2: Tensor, /) -> Tensor:
    r"""Return the Kronecker product.

    It consists of copies of the second tensor, each multiplied by an element of the first.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers, of any shapes, on one device. The input with fewer axes gets axes of length 1 in
        front.

    Returns
    -------
    Tensor
        The length of each axis is the product of the two inputs' lengths.

    Raises
    ------
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y_{pi + r,\, qj + s} = x_{1, ij}\, x_{2, rs}

    :math:`(p, q)` is the shape of :math:`x_2`, for two axes.

    - Gradient for `x1`: :math:`\sum_{rs} \bar y_{pi + r,\, qj + s}\, x_{2, rs}`
    - Gradient for `x2`: :math:`\sum_{ij} \bar y_{pi + r,\, qj + s}\, x_{1, ij}`

    Differentiable to any order. Like ``numpy.kron``, ``torch.kron`` and ``array_api_extra.kron``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.kron(xgrad.asarray([1.0, 10.0]), xgrad.asarray([[1.0, 2.0]]))
    Tensor([[ 1.,  2., 10., 20.]])
    """
    x1, x2 = as_tensor("kron", "x1", x1), as_tensor("kron", "x2", x2)
    ndim = max(x1.ndim, x2.ndim)
    shapes = [(1,) * (ndim - x.ndim) + x.shape for x in (x1, x2)]
    outer, inner = [n for m in shapes[0] for n in (m, 1)], [n for m in shapes[1] for n in (1, m)]
    product = elementwise.multiply(
        manipulation.reshape(x1, tuple(outer)), manipulation.reshape(x2, tuple(inner))
    )
    return manipulation.reshape(product, tuple([m * n for m, n in zip(*shapes, strict=True)]))


@derivative(
    lambda g, xp, x2, axis: xp.linalg.cross(x2, g, axis=axis),
    lambda g, xp, x1, axis: xp.linalg.cross(g, x1, axis=axis),
    lowest=INTEGER,
)
def cross(xp: Any, x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Any:
    r"""Return the cross products of vectors of length 3.

    Parameters
    ----------
    x1, x2 : Tensor
        Numbers, on one device, of shapes that broadcast.
    axis : int, default -1
        The axis of the vectors, counted from the end; or from the front, if both inputs have the
        same number of axes.

    Returns
    -------
    Tensor
        Of the shape that the inputs broadcast to.

    Raises
    ------
    ValueError
        If the vectors are not of length 3, or the shapes do not fit.
    DeviceError
        If the tensors are on different devices.

    Notes
    -----
    .. math:: y = x_1 \times x_2

    - Gradient for `x1`: :math:`x_2 \times \bar y`
    - Gradient for `x2`: :math:`\bar y \times x_1`

    Python array API standard, linear algebra extension: ``cross``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.cross(xgrad.asarray([1.0, 0.0, 0.0]), xgrad.asarray([0.0, 1.0, 0.0]))
    Tensor([0., 0., 1.])
    """
    _check_vectors(x1, x2, axis, 3)
    return xp.linalg.cross(x1, x2, axis=axis)


@derivative(lambda g, xp: xp.zeros_like(g))
def _zeroth_power(xp: Any, x: Any, /) -> Any:
    """Return the matrices to the power of 0: identity matrices.

    Notes
    -----
    .. math:: Y = I

    - Gradient for `x`: :math:`0`
    """
    return xp.broadcast_to(identity(xp, x), x.shape)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    r"""Raise square matrices to an integer power.

    Parameters
    ----------
    x : Tensor
        Of shape (..., m, m); integers count as float32.
    n : int
        The exponent; a negative one raises the inverse to the power of ``-n``.

    Returns
    -------
    Tensor
        Same shape as `x`.

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If the matrices are not square.
    numpy.linalg.LinAlgError
        If `n` is negative and a matrix is singular; on ``cuda`` the result is NaN or
        infinite instead.

    Notes
    -----
    .. math:: Y = X^n

    - Gradient for `x`: :math:`\sum_{k=0}^{n-1} (X^k)^\top \bar Y (X^{n-1-k})^\top`; for
      :math:`n < 0`, :math:`-\sum_{k=n}^{-1} (X^k)^\top \bar Y (X^{n-1-k})^\top`

    Computed by repeated squaring, in about 2 log2(n) products.

    Python array API standard, linear algebra extension: ``matrix_power``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.linalg.matrix_power(xgrad.asarray([[1.0, 1.0], [0.0, 1.0]]), 5)
    Tensor([[1., 5.],
            [0., 1.]])
    """
    x = as_square_matrices("matrix_power", "x", x)
    if not hasattr(n, "__index__"):
        raise TypeError(f"matrix_power: expected an int for n, got {shown(n)}")
    n = operator.index(n)
    if n == 0:
        return _zeroth_power(x)
    square, n = (providers.module("functions").linalg.inv(x) if n < 0 else x), abs(n)
    power: Tensor | None = None
    while True:
        if n & 1:
            power = square if power is None else matmul(power, square)
        n >>= 1
        if not n:
            return power  # type: ignore[return-value]
        square = matmul(square, square)
