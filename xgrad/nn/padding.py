"""Padding layers."""

from __future__ import annotations

from typing import Any, ClassVar

from xgrad.core.arguments import as_int, as_number, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.ops.torch_padding import pad_last_axes
from xgrad.ops.windows import AXES
from xgrad.support.hints import shown


class _Padding(Module):
    """The widths of padding of the last `ndim` axes."""

    ndim: ClassVar[int]
    mode: ClassVar[str] = "constant"
    value: float = 0

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        name, count = type(self).__name__, 2 * self.ndim
        widths: Any = padding if isinstance(padding, (tuple, list)) else (padding,) * count
        if len(widths) != count:
            raise ValueError(
                f"{name}: expected an int or {count} ints for padding, got {shown(padding)}"
            )
        self.padding = tuple([as_int(name, "padding", n) for n in widths])

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        name, axes = type(self).__name__, AXES[self.ndim]
        input = as_tensor(name, "input", input)
        constant = self.mode == "constant"  # which PyTorch adds to tensors of any shape
        if input.ndim not in (self.ndim + 1, self.ndim + 2) and not constant:
            raise ValueError(
                f"{name}: expected input of shape (N, C, {axes}) or (C, {axes}), got shape"
                f" {input.shape}"
            )
        return pad_last_axes(name, input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}"


class _ConstantPadding(_Padding):
    """A constant before and after the last axes."""

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = as_number(type(self).__name__, "value", value)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, value={self.value}"


class ConstantPad1d(_ConstantPadding):
    """A constant before and after the last axis: see `functional.pad`.

    The input has shape (N, C, L) or (C, L).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right); a negative
        number removes elements.
    value : float
        The constant.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes.
    TypeError
        If a width is not an int, or `value` not a number.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ConstantPad1d((0, 1), 7.0)(xgrad.asarray([[1.0, 2.0]]))
    Tensor([[1., 2., 7.]])
    """

    ndim = 1


class ConstantPad2d(_ConstantPadding):
    """A constant before and after the last two axes: see `functional.pad`.

    The input has shape (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom); a negative
        number removes elements.
    value : float
        The constant.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes.
    TypeError
        If a width is not an int, or `value` not a number.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ConstantPad2d(1, 7.0)(xgrad.ones((2, 3, 4))).shape
    (2, 5, 6)
    """

    ndim = 2


class ConstantPad3d(_ConstantPadding):
    """A constant before and after the last three axes: see `functional.pad`.

    The input has shape (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom, front, back); a
        negative number removes elements.
    value : float
        The constant.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes.
    TypeError
        If a width is not an int, or `value` not a number.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ConstantPad3d(1, 7.0)(xgrad.ones((2, 3, 4, 5))).shape
    (2, 5, 6, 7)
    """

    ndim = 3


class ZeroPad1d(_Padding):
    """Zeros before and after the last axis: see `functional.pad`.

    The input has shape (N, C, L) or (C, L).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ZeroPad1d(1)(xgrad.asarray([[1.0, 2.0]]))
    Tensor([[0., 1., 2., 0.]])
    """

    ndim = 1


class ZeroPad2d(_Padding):
    """Zeros before and after the last two axes: see `functional.pad`.

    The input has shape (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ZeroPad2d(1)(xgrad.ones((2, 3, 4))).shape
    (2, 5, 6)
    """

    ndim = 2


class ZeroPad3d(_Padding):
    """Zeros before and after the last three axes: see `functional.pad`.

    The input has shape (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom, front, back); a
        negative number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ZeroPad3d(1)(xgrad.ones((2, 3, 4, 5))).shape
    (2, 5, 6, 7)
    """

    ndim = 3


class ReflectionPad1d(_Padding):
    """Reflected elements before and after the last axis: see `functional.pad`.

    The input has shape (N, C, L) or (C, L).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has not more elements than are added at an end.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReflectionPad1d(1)(xgrad.asarray([[1.0, 2.0, 3.0]]))
    Tensor([[2., 1., 2., 3., 2.]])
    """

    ndim, mode = 1, "reflect"


class ReflectionPad2d(_Padding):
    """Reflected elements before and after the last two axes: see `functional.pad`.

    The input has shape (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has not more elements than are added at an end.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReflectionPad2d(1)(xgrad.ones((2, 3, 4))).shape
    (2, 5, 6)
    """

    ndim, mode = 2, "reflect"


class ReflectionPad3d(_Padding):
    """Reflected elements before and after the last three axes: see `functional.pad`.

    The input has shape (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom, front, back); a
        negative number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has not more elements than are added at an end.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReflectionPad3d(1)(xgrad.ones((2, 3, 4, 5))).shape
    (2, 5, 6, 7)
    """

    ndim, mode = 3, "reflect"


class ReplicationPad1d(_Padding):
    """The element at the edge before and after the last axis: see `functional.pad`.

    The input has shape (N, C, L) or (C, L).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has none.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReplicationPad1d(1)(xgrad.asarray([[1.0, 2.0]]))
    Tensor([[1., 1., 2., 2.]])
    """

    ndim, mode = 1, "replicate"


class ReplicationPad2d(_Padding):
    """The element at the edge before and after the last two axes: see `functional.pad`.

    The input has shape (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has none.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReplicationPad2d(1)(xgrad.ones((2, 3, 4))).shape
    (2, 5, 6)
    """

    ndim, mode = 2, "replicate"


class ReplicationPad3d(_Padding):
    """The element at the edge before and after the last three axes: see `functional.pad`.

    The input has shape (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom, front, back); a
        negative number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has none.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReplicationPad3d(1)(xgrad.ones((2, 3, 4, 5))).shape
    (2, 5, 6, 7)
    """

    ndim, mode = 3, "replicate"


class CircularPad1d(_Padding):
    """The elements of the other end before and after the last axis: see `functional.pad`.

    The input has shape (N, C, L) or (C, L).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has fewer elements than are added at an end.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.CircularPad1d(1)(xgrad.asarray([[1.0, 2.0, 3.0]]))
    Tensor([[3., 1., 2., 3., 1.]])
    """

    ndim, mode = 1, "circular"


class CircularPad2d(_Padding):
    """The elements of the other end before and after the last two axes: see `functional.pad`.

    The input has shape (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom); a negative
        number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has fewer elements than are added at an end.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.CircularPad2d(1)(xgrad.ones((2, 3, 4))).shape
    (2, 5, 6)
    """

    ndim, mode = 2, "circular"


class CircularPad3d(_Padding):
    """The elements of the other end before and after the last three axes: see `functional.pad`.

    The input has shape (N, C, D, H, W) or (C, D, H, W).

    Parameters
    ----------
    padding : int or tuple of int
        The number of elements to add, one for all or (left, right, top, bottom, front, back); a
        negative number removes elements.

    Raises
    ------
    ValueError
        If `padding` has another length; in the call, if the input has another number of axes, or
        has fewer elements than are added at an end.
    TypeError
        If a width is not an int.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.CircularPad3d(1)(xgrad.ones((2, 3, 4, 5))).shape
    (2, 5, 6, 7)
    """

    ndim, mode = 3, "circular"
