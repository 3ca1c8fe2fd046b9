"""Discrete Fourier transforms: linear maps, whose derivative rules are their transposes.

A transform crops or zero-pads its input and multiplies it by a symmetric matrix: its transpose is
the same transform, followed by padding or cropping. Transforms of real numbers to half a spectrum
compute the first part of a whole one. Transforms from half a spectrum are linear only in real and
imaginary parts: their rules apply PyTorch's convention themselves (see `Function`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.core.arguments import ArrayLike
from xgrad.core.dtypes import FLOATING, get_default_dtype, standard
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import call_op, derivative, slice_axis
from xgrad.ops.tensor_conversion import asarray
from xgrad.support.hints import shown

_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _lengths(
    shape: Sequence[int], s: Sequence[int] | None, axes: Sequence[int] | None
) -> dict[int, int]:
    """Return the number of points to transform along each axis, counted from the front.

    Where `s` is -1, it is the input's length.
    """
    if axes is None:
        if s is not None and len(s) > len(shape):
            raise ValueError(
                f"expected as many lengths in s as the input has axes, {len(shape)}, or less, got"
                f" {tuple(s)}"
            )
        axes = range(len(shape) - (len(shape) if s is None else len(s)), len(shape))
    if s is not None and len(s) != len(axes):
        raise ValueError(f"expected as many lengths in s as axes, got {tuple(s)} for {tuple(axes)}")
    if any(not -len(shape) <= a < len(shape) for a in axes):
        raise IndexError(f"expected axes of an input with {len(shape)}, got {tuple(axes)}")
    front = [a % len(shape) for a in axes]
    if len(set(front)) < len(front):
        raise ValueError(f"expected different axes, got {tuple(axes)}")
    sizes = [shape[a] for a in front] if s is None else s
    return {a: shape[a] if n == -1 else n for a, n in zip(front, sizes, strict=True)}


def _resize(xp: Any, x: Any, shape: Sequence[int], axes: Iterable[int]) -> Any:
    """Crop or zero-pad axes of `x` to their lengths in `shape`.

    The transpose of a resize is the resize back.
    """
    for axis in axes:
        axis, have, want = axis % len(shape), x.shape[axis], shape[axis]
        if want < have:
            x = x[slice_axis(axis, 0, want)]
        elif want > have:
            missing = (*x.shape[:axis], want - have, *x.shape[axis + 1 :])
            x = xp.concat([x, xp.zeros(missing, dtype=x.dtype, device=x.device)], axis=axis)
    return x


def _double_mirrored(xp: Any, spectrum: Any, n: int, axis: int) -> Any:
    """Double the mirrored numbers of half a spectrum of `n` points.

    They are all but the first, and the middle one if there is one.
    """
    k = xp.arange(spectrum.shape[axis], device=spectrum.device)
    k = xp.reshape(k, (-1,) + (1,) * (len(spectrum.shape) - 1 - axis % len(spectrum.shape)))
    return xp.where((k == 0) | (2 * k == n), spectrum, 2 * spectrum)


# The rules call the ops, not the namespace, because the ops accept empty arrays.


def _transpose(
    xp: Any, transform: Any, g: Any, x_shape: Any, n: int | None, axis: int, norm: str
) -> Any:
    """Return the transpose of a transform, or of its first half.

    The gradient of the other half is zeros.
    """
    g = call_op(transform, xp, g, n=x_shape[axis] if n is None else n, axis=axis, norm=norm)
    return _resize(xp, g, x_shape, (axis,))


def _transpose_many(
    xp: Any, transform: Any, g: Any, x_shape: Any, s: Any, axes: Any, norm: str
) -> Any:
    lengths = _lengths(x_shape, s, axes)
    g = call_op(transform, xp, g, s=tuple(lengths.values()), axes=tuple(lengths), norm=norm)
    return _resize(xp, g, x_shape, lengths)


def _transpose_from_half(
    xp: Any, transform: Any, g: Any, x_shape: Any, axis: int, norm: str
) -> Any:
    """Return the transpose of a transform from half a spectrum.

    `transform` is the corresponding transform to half a spectrum.
    """
    half = call_op(transform, xp, g, axis=axis, norm=_OPPOSITE[norm])
    return _resize(xp, _double_mirrored(xp, half, g.shape[axis], axis), x_shape, (axis,))


def _irfftn(g: Any, xp: Any, x_shape: Any, s: Any, axes: Any, norm: str) -> Any:
    axes = tuple(_lengths(x_shape, s, axes))
    half = call_op(rfftn, xp, g, axes=axes, norm=_OPPOSITE[norm])
    return _resize(xp, _double_mirrored(xp, half, g.shape[axes[-1]], axes[-1]), x_shape, axes)


def _check(norm: str, lengths: dict[int, int]) -> None:
    if norm not in _OPPOSITE:
        raise ValueError(f"expected a norm of 'backward', 'ortho' or 'forward', got {shown(norm)}")
    if any(n < 1 for n in lengths.values()):
        raise ValueError(
            f"expected at least one point along each axis, got {tuple(lengths.values())}"
        )


_OF_REALS = ("rfft", "rfftn", "ihfft")
# The length of half a spectrum does not determine the length of the whole.
_OF_HALVES = ("irfft", "irfftn", "hfft")


def _as_input(xp: Any, x: Any, name: str) -> Any:
    """Check the dtype of the input; return complex numbers if the transform takes them."""
    if xp.isdtype(x.dtype, "complex floating"):
        if name in _OF_REALS:
            raise TypeError(
                f"expected real numbers, got {x.dtype}: use"
                f" {'ifft' if name == 'ihfft' else name[1:]}"
            )
        return x
    return x if name in _OF_REALS else x + 0j


def _empty_transform(xp: Any, x: Any, name: str, lengths: dict[int, int]) -> Any:
    """Return the transform of an empty array, which PyTorch and CuPy refuse."""
    shape = [lengths.get(a, m) for a, m in enumerate(x.shape)]
    if name in _OF_REALS:
        last = tuple(lengths)[-1]
        shape[last] = lengths[last] // 2 + 1
    zeros = xp.zeros(tuple(shape), dtype=x.dtype, device=x.device)
    return zeros + 0j if name in _OF_REALS else xp.real(zeros) if name in _OF_HALVES else zeros


def _along_one(xp: Any, name: str, x: Any, n: int | None, axis: int, norm: str) -> Any:
    """Return a transform along one axis, of `n` points."""
    ((only_axis, length),) = _lengths(x.shape, None, (axis,)).items()
    points = n if n is not None else 2 * (length - 1) if name in _OF_HALVES else length
    _check(norm, {only_axis: points})
    x = _as_input(xp, x, name)
    if 0 in x.shape:
        return _empty_transform(xp, x, name, {only_axis: points})
    return getattr(xp.fft, name)(x, n=points, axis=axis, norm=norm)


def _along_many(
    xp: Any, name: str, x: Any, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str
) -> Any:
    """Return a transform along several axes, of `s` points."""
    lengths = _lengths(x.shape, s, axes)
    if not lengths and name in _OF_REALS + _OF_HALVES:
        raise ValueError("expected at least one axis to transform along, got none")
    if name in _OF_HALVES and (s is None or s[-1] == -1):
        last = tuple(lengths)[-1]
        lengths[last] = 2 * (x.shape[last] - 1)
    _check(norm, lengths)
    x = _as_input(xp, x, name)
    if 0 in x.shape:
        return _empty_transform(xp, x, name, lengths)
    return getattr(xp.fft, name)(x, s=tuple(lengths.values()), axes=tuple(lengths), norm=norm)


def _fft_rule(g: Any, xp: Any, x_shape: Any, n: Any, axis: Any, norm: str) -> Any:
    return _transpose(xp, fft, g, x_shape, n, axis, norm)


@derivative(_fft_rule, lowest=FLOATING)
def fft(
    xp: Any, x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Any:
    r"""Return the discrete Fourier transform.

    Parameters
    ----------
    x : Tensor
        Complex, with at least one axis; real numbers count as complex.
    n : int, optional
        The number of points to transform; the input is cropped or zero-padded to it. By default
        the length of the input.
    axis : int, default -1
        The axis to transform along.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Complex, of the shape of `x` except for given lengths; float32 and complex64 keep their
        precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.

    Notes
    -----
    .. math:: y_k = c \sum_{j=0}^{n-1} x_j e^{-2 \pi i j k / n}

    :math:`c` is the factor of `norm`: :math:`1`, :math:`1 / \sqrt{n}` or :math:`1 / n`.

    - Gradient for `x`: :math:`c \sum_k \bar y_k e^{2 \pi i j k / n}`, and 0 for cropped elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``fft``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.fft(asarray([1.0, 0.0, 0.0]))
    Tensor([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along_one(xp, "fft", x, n, axis, norm)


def _ifft_rule(g: Any, xp: Any, x_shape: Any, n: Any, axis: Any, norm: str) -> Any:
    return _transpose(xp, ifft, g, x_shape, n, axis, norm)


@derivative(_ifft_rule, lowest=FLOATING)
def ifft(
    xp: Any, x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Any:
    r"""Return the inverse of `fft`.

    Parameters
    ----------
    x : Tensor
        Complex, with at least one axis; real numbers count as complex.
    n : int, optional
        The number of points to transform; the input is cropped or zero-padded to it. By default
        the length of the input.
    axis : int, default -1
        The axis to transform along.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Complex, of the shape of `x` except for given lengths; float32 and complex64 keep their
        precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.

    Notes
    -----
    .. math:: y_k = c \sum_{j=0}^{n-1} x_j e^{2 \pi i j k / n}

    :math:`c` is the factor of `norm`: :math:`1`, :math:`1 / \sqrt{n}` or :math:`1 / n`.

    - Gradient for `x`: :math:`c \sum_k \bar y_k e^{-2 \pi i j k / n}`, and 0 for cropped elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``ifft``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.ifft(asarray([3.0, 0.0, 0.0]))
    Tensor([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along_one(xp, "ifft", x, n, axis, norm)


def _fftn_rule(g: Any, xp: Any, x_shape: Any, s: Any, axes: Any, norm: str) -> Any:
    return _transpose_many(xp, fftn, g, x_shape, s, axes, norm)


@derivative(_fftn_rule, lowest=FLOATING)
def fftn(
    xp: Any,
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Any:
    r"""Return the discrete Fourier transform along several axes.

    Parameters
    ----------
    x : Tensor
        Complex, with at least one axis; real numbers count as complex.
    s : sequence of int, optional
        The number of points to transform along each axis; the input is cropped or zero-padded to
        it, and -1 keeps a length. By default the lengths of the input.
    axes : sequence of int, optional
        The axes to transform along, the last one first; by default all, or the last ``len(s)``.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Complex, of the shape of `x` except for given lengths; float32 and complex64 keep their
        precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.

    Notes
    -----
    .. math:: y_k = c \sum_j x_j e^{-2 \pi i\, j \cdot k / n}

    :math:`c` is the factor of `norm`, and :math:`j \cdot k / n = \sum_a j_a k_a / n_a` over the
    axes.

    - Gradient for `x`: :math:`c \sum_k \bar y_k e^{2 \pi i\, j \cdot k / n}`, and 0 for cropped
      elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``fftn``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.fftn(asarray([[1.0, 1.0]]))
    Tensor([[2.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _along_many(xp, "fftn", x, s, axes, norm)


def _ifftn_rule(g: Any, xp: Any, x_shape: Any, s: Any, axes: Any, norm: str) -> Any:
    return _transpose_many(xp, ifftn, g, x_shape, s, axes, norm)


@derivative(_ifftn_rule, lowest=FLOATING)
def ifftn(
    xp: Any,
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Any:
    r"""Return the inverse of `fftn`.

    Parameters
    ----------
    x : Tensor
        Complex, with at least one axis; real numbers count as complex.
    s : sequence of int, optional
        The number of points to transform along each axis; the input is cropped or zero-padded to
        it, and -1 keeps a length. By default the lengths of the input.
    axes : sequence of int, optional
        The axes to transform along, the last one first; by default all, or the last ``len(s)``.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Complex, of the shape of `x` except for given lengths; float32 and complex64 keep their
        precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.

    Notes
    -----
    .. math:: y_k = c \sum_j x_j e^{2 \pi i\, j \cdot k / n}

    :math:`c` is the factor of `norm`, and :math:`j \cdot k / n = \sum_a j_a k_a / n_a` over the
    axes.

    - Gradient for `x`: :math:`c \sum_k \bar y_k e^{-2 \pi i\, j \cdot k / n}`, and 0 for cropped
      elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``ifftn``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.ifftn(asarray([[2.0, 0.0]]))
    Tensor([[1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _along_many(xp, "ifftn", x, s, axes, norm)


@derivative(
    lambda g, xp, x_shape, n, axis, norm: _transpose(xp, fft, g, x_shape, n, axis, norm),
    lowest=FLOATING,
)
def rfft(
    xp: Any, x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Any:
    r"""Return the first half of the discrete Fourier transform of real numbers.

    Parameters
    ----------
    x : Tensor
        Real, with at least one axis; integers count as float32.
    n : int, optional
        The number of points to transform; the input is cropped or zero-padded to it. By default
        the length of the input.
    axis : int, default -1
        The axis to transform along.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Complex, of the shape of `x` except for given lengths, and of length n // 2 + 1 along the
        last of the axes; float32 and complex64 keep their precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y_k = c \sum_{j=0}^{n-1} x_j e^{-2 \pi i j k / n}, \quad 0 \le k \le n / 2

    :math:`c` is the factor of `norm`: :math:`1`, :math:`1 / \sqrt{n}` or :math:`1 / n`.

    - Gradient for `x`: :math:`c \operatorname{Re}(\sum_k \bar y_k e^{2 \pi i j k / n})`, and 0
      for cropped elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``rfft``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.rfft(asarray([1.0, 0.0, 0.0]))
    Tensor([1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _along_one(xp, "rfft", x, n, axis, norm)


@derivative(
    lambda g, xp, x_shape, axis, norm: _transpose_from_half(xp, rfft, g, x_shape, axis, norm),
    lowest=FLOATING,
    holomorphic=False,
)
def irfft(
    xp: Any, x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Any:
    r"""Return the inverse of `rfft`.

    Parameters
    ----------
    x : Tensor
        Half a spectrum, complex, with at least one axis: the other half consists of the conjugates.
        Real numbers count as complex.
    n : int, optional
        The number of points of the result; the input is cropped or zero-padded. By default
        ``2 * (m - 1)`` for m numbers.
    axis : int, default -1
        The axis to transform along.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Real, of the shape of `x` except along the last of the axes and for given lengths; float32
        and complex64 keep their precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.

    Notes
    -----
    .. math:: y_j = c \operatorname{Re}\left(\sum_{k \le n/2} m_k x_k e^{2 \pi i j k / n}\right)

    :math:`c` is the factor of `norm`: :math:`1`, :math:`1 / \sqrt{n}` or :math:`1 / n`. :math:`m_k`
    is 1 for :math:`k = 0` and :math:`k = n / 2`, else 2.

    - Gradient for `x`: :math:`c\, m_k \sum_j \bar y_j e^{-2 \pi i j k / n}`, and 0 for cropped
      elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``irfft``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.irfft(asarray([2.0, 0.0]))
    Tensor([1., 1.])
    """
    return _along_one(xp, "irfft", x, n, axis, norm)


@derivative(
    lambda g, xp, x_shape, s, axes, norm: _transpose_many(xp, fftn, g, x_shape, s, axes, norm),
    lowest=FLOATING,
)
def rfftn(
    xp: Any,
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Any:
    r"""Return the first half of the discrete Fourier transform of real numbers along several axes.

    Parameters
    ----------
    x : Tensor
        Real, with at least one axis; integers count as float32.
    s : sequence of int, optional
        The number of points to transform along each axis; the input is cropped or zero-padded to
        it, and -1 keeps a length. By default the lengths of the input.
    axes : sequence of int, optional
        The axes to transform along, the last one first; by default all, or the last ``len(s)``.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Complex, of the shape of `x` except for given lengths, and of length n // 2 + 1 along the
        last of the axes; float32 and complex64 keep their precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y_k = c \sum_j x_j e^{-2 \pi i\, j \cdot k / n}

    :math:`c` is the factor of `norm`, and :math:`j \cdot k / n = \sum_a j_a k_a / n_a` over the
    axes. Along the last axis, :math:`0 \le k \le n / 2`.

    - Gradient for `x`: :math:`c \operatorname{Re}(\sum_k \bar y_k e^{2 \pi i\, j \cdot k / n})`,
      and 0 for cropped elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``rfftn``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.rfftn(asarray([[1.0, 1.0]]))
    Tensor([[2.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _along_many(xp, "rfftn", x, s, axes, norm)


@derivative(_irfftn, lowest=FLOATING, holomorphic=False)
def irfftn(
    xp: Any,
    x: ArrayLike,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
) -> Any:
    r"""Return the inverse of `rfftn`.

    Parameters
    ----------
    x : Tensor
        Half a spectrum, complex, with at least one axis: the other half consists of the conjugates.
        Real numbers count as complex.
    s : sequence of int, optional
        The number of points of the result along each axis; the input is cropped or zero-padded, and
        -1 keeps a length. By default ``2 * (m - 1)`` for m numbers along the last axis.
    axes : sequence of int, optional
        The axes to transform along, the last one first; by default all, or the last ``len(s)``.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Real, of the shape of `x` except along the last of the axes and for given lengths; float32
        and complex64 keep their precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.

    Notes
    -----
    .. math:: y_j = c \operatorname{Re}\left(\sum_k m_k x_k e^{2 \pi i\, j \cdot k / n}\right)

    :math:`c` is the factor of `norm`, and :math:`j \cdot k / n = \sum_a j_a k_a / n_a` over the
    axes. Along the last axis, :math:`0 \le k \le n / 2`, and :math:`m_k` is 1 for :math:`k = 0` and
    :math:`k = n / 2`, else 2.

    - Gradient for `x`: :math:`c\, m_k \sum_j \bar y_j e^{-2 \pi i\, j \cdot k / n}`, and 0 for
      cropped elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``irfftn``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.irfftn(asarray([[2.0, 0.0]]))
    Tensor([[1., 1.]])
    """
    return _along_many(xp, "irfftn", x, s, axes, norm)


def _hfft_rule(g: Any, xp: Any, x_shape: Any, axis: int, norm: str) -> Any:
    return _transpose_from_half(xp, ihfft, g, x_shape, axis, norm)


@derivative(
    _hfft_rule,
    lowest=FLOATING,
    holomorphic=False,
)
def hfft(
    xp: Any, x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Any:
    r"""Return the discrete Fourier transform, which is real, of a signal given by its first half.

    Parameters
    ----------
    x : Tensor
        Half a signal, complex, with at least one axis: the other half consists of the conjugates.
        Real numbers count as complex.
    n : int, optional
        The number of points of the result; the input is cropped or zero-padded. By default
        ``2 * (m - 1)`` for m numbers.
    axis : int, default -1
        The axis to transform along.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Real, of the shape of `x` except along the last of the axes and for given lengths; float32
        and complex64 keep their precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.

    Notes
    -----
    .. math:: y_j = c \operatorname{Re}\left(\sum_{k \le n/2} m_k x_k e^{-2 \pi i j k / n}\right)

    :math:`c` is the factor of `norm`: :math:`1`, :math:`1 / \sqrt{n}` or :math:`1 / n`. :math:`m_k`
    is 1 for :math:`k = 0` and :math:`k = n / 2`, else 2.

    - Gradient for `x`: :math:`c\, m_k \sum_j \bar y_j e^{2 \pi i j k / n}`, and 0 for cropped
      elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``hfft``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.hfft(asarray([1.0, 0.0]))
    Tensor([1., 1.])
    """
    return _along_one(xp, "hfft", x, n, axis, norm)


@derivative(
    lambda g, xp, x_shape, n, axis, norm: _transpose(xp, ifft, g, x_shape, n, axis, norm),
    lowest=FLOATING,
)
def ihfft(
    xp: Any, x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
) -> Any:
    r"""Return the inverse of `hfft`.

    Parameters
    ----------
    x : Tensor
        Real, with at least one axis; integers count as float32.
    n : int, optional
        The number of points to transform; the input is cropped or zero-padded to it. By default
        the length of the input.
    axis : int, default -1
        The axis to transform along.
    norm : {"backward", "ortho", "forward"}, default "backward"
        How to scale transforms of n points: ``"backward"`` scales transforms with a positive
        exponent by 1/n, ``"forward"`` transforms with a negative exponent by 1/n, and ``"ortho"``
        both by 1/sqrt(n).

    Returns
    -------
    Tensor
        Complex, of the shape of `x` except for given lengths, and of length n // 2 + 1 along the
        last of the axes; float32 and complex64 keep their precision.

    Raises
    ------
    IndexError
        If an axis does not exist.
    ValueError
        If an axis is named twice, a length is not positive, or `norm` is none of the above.
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y_k = c \sum_{j=0}^{n-1} x_j e^{2 \pi i j k / n}, \quad 0 \le k \le n / 2

    :math:`c` is the factor of `norm`: :math:`1`, :math:`1 / \sqrt{n}` or :math:`1 / n`.

    - Gradient for `x`: :math:`c \operatorname{Re}(\sum_k \bar y_k e^{-2 \pi i j k / n})`, and 0
      for cropped elements

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``ihfft``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.ihfft(asarray([2.0, 0.0]))
    Tensor([1.-0.j, 1.-0.j], dtype=complex64)
    """
    return _along_one(xp, "ihfft", x, n, axis, norm)


@derivative(lambda g, xp, axes: xp.fft.ifftshift(g, axes=axes))
def fftshift(xp: Any, x: ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> Any:
    r"""Move the zero frequency from the front to the middle.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axes : int or sequence of int, optional
        The axes; by default all.

    Returns
    -------
    Tensor
        Of the same shape and dtype.

    Notes
    -----
    .. math:: y_{(i + h) \bmod n} = x_i, \quad h = \lfloor n / 2 \rfloor

    - Gradient for `x`: :math:`\bar y_{(i + h) \bmod n}`

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``fftshift``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.fftshift(asarray([0.0, 1.0, -2.0, -1.0]))
    Tensor([-2., -1.,  0.,  1.])
    """
    return xp.fft.fftshift(x, axes=axes)


@derivative(lambda g, xp, axes: xp.fft.fftshift(g, axes=axes))
def ifftshift(xp: Any, x: ArrayLike, /, *, axes: int | Sequence[int] | None = None) -> Any:
    r"""Move the zero frequency back from the middle to the front: the inverse of `fftshift`.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    axes : int or sequence of int, optional
        The axes; by default all.

    Returns
    -------
    Tensor
        Of the same shape and dtype.

    Notes
    -----
    .. math:: y_i = x_{(i + h) \bmod n}, \quad h = \lfloor n / 2 \rfloor

    - Gradient for `x`: :math:`\bar y_{(i - h) \bmod n}`

    Differentiable to any order.

    Python array API standard, Fourier transform functions: ``ifftshift``.

    Examples
    --------
    >>> from xgrad import asarray, fft
    >>> fft.ifftshift(asarray([-2.0, -1.0, 0.0, 1.0]))
    Tensor([ 0.,  1., -2., -1.])
    """
    return xp.fft.ifftshift(x, axes=axes)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | Device | None = None
) -> Tensor:
    """Return the frequencies of `fft`: first 0 and the positive ones, then the negative ones.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1
        The distance between two points; frequencies are in cycles per unit of it.
    dtype : dtype, optional
        A real floating dtype; by default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.

    Returns
    -------
    Tensor
        Of shape (n,); the same numbers on every device.

    Raises
    ------
    ValueError
        If `n` is not positive.
    TypeError
        If `dtype` is not real and floating.

    Notes
    -----
    Python array API standard, Fourier transform functions: ``fftfreq``.

    Examples
    --------
    >>> from xgrad import fft
    >>> fft.fftfreq(4)
    Tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies("fftfreq", np.fft.fftfreq, n, d, dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | Device | None = None
) -> Tensor:
    """Return the frequencies of `rfft`.

    Parameters
    ----------
    n : int
        The number of points.
    d : float, default 1
        The distance between two points; frequencies are in cycles per unit of it.
    dtype : dtype, optional
        A real floating dtype; by default float32, the default dtype.
    device : str or Device, optional
        By default the `default_device`.

    Returns
    -------
    Tensor
        Of shape (n // 2 + 1,); the same numbers on every device.

    Raises
    ------
    ValueError
        If `n` is not positive.
    TypeError
        If `dtype` is not real and floating.

    Notes
    -----
    Python array API standard, Fourier transform functions: ``rfftfreq``.

    Examples
    --------
    >>> from xgrad import fft
    >>> fft.rfftfreq(4)
    Tensor([0.  , 0.25, 0.5 ])
    """
    return _frequencies("rfftfreq", np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(
    name: str,
    function: Callable[[int, float], Any],
    n: int,
    d: float,
    dtype: Any,
    device: str | Device | None,
) -> Tensor:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"{name}: expected an int for n, got {shown(n)}")
    if n < 1:
        raise ValueError(f"{name}: expected a positive n, got {n}")
    if dtype is not None and standard(dtype).kind != "f":
        raise TypeError(f"{name}: expected a real floating dtype, got {dtype}")
    return asarray(
        function(int(n), d), dtype=get_default_dtype() if dtype is None else dtype, device=device
    )
