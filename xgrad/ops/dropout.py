"""Dropout, with masks of random bits that are generated on the device."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.device import Device
from xgrad.backend.recording import run_array_code
from xgrad.core.arguments import as_number, as_tensor
from xgrad.core.tensor import Tensor, from_array
from xgrad.ops.creation import ones
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import multiply
from xgrad.ops.in_place import in_place
from xgrad.random.generator import Generator, next_call


def dropout_scale(p: float) -> tuple[int, float]:
    """Return the least signed 16-bit integer that keeps an element in `dropout`, and the scale.

    16 bits per element cost half as much as a float: `p` is rounded to a multiple of 2**-16.
    """
    dropped = round(p * 2**16)
    return min(dropped, 2**16 - 1) - 2**15, 1 / (1 - p) if dropped < 2**16 else 0.0


def _random_bits(device: Device, seed: Any, call: Any, count: int) -> Any:
    return device.backend.random_bits(seed, call, 16, count, device.index)


def dropout_mask(xp: Any, x: Any, seed: Any, call: Any, device: Device, p: float) -> Any:
    """Return the factors of `dropout`: 0 with probability `p`, else ``1 / (1 - p)``.

    `x` is an array or a tensor.
    """
    threshold, scale = dropout_scale(p)
    count = math.prod(x.shape)
    bits = run_array_code(device, _random_bits, seed, call, count)
    mask = xp.astype(
        (from_array(bits, device) if isinstance(x, Tensor) else bits) >= threshold, x.dtype
    )
    mask *= scale
    return xp.reshape(mask, x.shape)


def _dropout_rule(
    g: Any, xp: Any, mask: Any, seed: Any, call: Any, device: Device, p: float
) -> Any:
    return g * (dropout_mask(xp, g, seed, call, device, p) if mask is None else mask)


@derivative(_dropout_rule, residual="mask")
def _dropout(xp: Any, x: Any, *, seed: Any, call: Any, device: Device, p: float) -> Any:
    mask = dropout_mask(xp, x, seed, call, device, p)
    return x * mask, mask


def dropout(
    x: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    r"""Replace elements by 0, each with probability `p`, and divide the others by ``1 - p``.

    The mean is preserved, so that evaluation needs no scaling. Equal seeds drop the same elements
    on every device, in float32 and in float64.

    N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever, R. Salakhutdinov, "Dropout: a simple way
    to prevent neural networks from overfitting", JMLR 15, 2014.

    Parameters
    ----------
    x : Tensor
        Of any shape, floating.
    p : float, default 0.5
        The probability of 0, from 0 to 1; it is rounded to a multiple of 2**-16.
    training : bool, default True
        Whether to replace elements.
    inplace : bool, default False
        Whether `x` gets the value, too.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the same shape; `x` itself if nothing is replaced.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1.
    TypeError
        If `x` is not floating, or `p` is not a number.

    Notes
    -----
    .. math:: y = \frac{m\, x}{1 - p}, \quad m \in \{0, 1\}, \quad P(m = 0) = p

    - Gradient for `x`: :math:`\frac{m\, \bar y}{1 - p}`

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.functional.dropout(xgrad.ones(1000), p=0.2)
    >>> xgrad.max(y), 750 < xgrad.sum(y != 0).item() < 850
    (Tensor(1.25), True)
    """
    check_probability("dropout", p)
    x = as_tensor("dropout", "x", x)
    if x.dtype.kind != "f":
        raise TypeError(f"dropout: expected a floating x, got {x.dtype}: use .astype(float32)")
    if not (training and p):
        return x
    seed, call = next_call("dropout", generator)
    options = {"seed": seed, "call": call, "device": x.device, "p": p}
    return in_place(_dropout, x, **options) if inplace else _dropout(x, **options)


def _channel_dropout(
    name: str,
    x: Tensor,
    p: float,
    training: bool,
    inplace: bool,
    generator: Generator | None,
    shapes: dict[int, str],
) -> Tensor:
    x = as_tensor(name, "x", x)
    if x.ndim not in shapes:
        other = ": use dropout1d for sequences, and x[None, ...] for a single image"
        hint = other if name == "dropout2d" and x.ndim == 3 else ""
        raise ValueError(
            f"{name}: expected x of shape {' or '.join(shapes.values())}, got {x.shape}{hint}"
        )
    check_probability(name, p)
    if x.dtype.kind != "f":
        raise TypeError(f"{name}: expected a floating x, got {x.dtype}: use .astype(float32)")
    if not (training and p):
        return x
    mask = dropout(channels(x, x.ndim - max(shapes) + 2), p, generator=generator)
    return in_place(multiply, x, mask) if inplace else x * mask


def channels(x: Tensor, lead: int) -> Tensor:
    """Return ones that broadcast against a tensor, one for each index of its first axes."""
    return ones((*x.shape[:lead], *(1,) * (x.ndim - lead)), dtype=x.dtype, device=x.device)


def dropout1d(
    x: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    r"""Replace whole channels of sequences by 0, each with probability `p`.

    The other channels are divided by ``1 - p``.

    Parameters
    ----------
    x : Tensor
        Floating, of shape (batch, channels, length), or (channels, length) for a single sequence.
    p : float, default 0.5
        The probability of 0, from 0 to 1; it is rounded to a multiple of 2**-16.
    training : bool, default True
        Whether to replace elements.
    inplace : bool, default False
        Whether `x` gets the value, too.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the same shape; `x` itself if nothing is replaced.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1, or `x` has another number of axes.
    TypeError
        If `x` is not floating, or `p` is not a number.

    Notes
    -----
    .. math:: y = \frac{m\, x}{1 - p}, \quad m \in \{0, 1\}, \quad P(m = 0) = p

    :math:`m` is drawn for each channel.

    - Gradient for `x`: :math:`\frac{m\, \bar y}{1 - p}`

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.functional.dropout1d(xgrad.ones((10, 8, 5)))
    >>> xgrad.all(xgrad.min(y, axis=2) == xgrad.max(y, axis=2))
    Tensor(True)
    """
    shapes = {2: "(channels, length)", 3: "(batch, channels, length)"}
    return _channel_dropout("dropout1d", x, p, training, inplace, generator, shapes)


def dropout2d(
    x: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    r"""Replace whole channels of images by 0, each with probability `p`.

    The other channels are divided by ``1 - p``.

    J. Tompson, R. Goroshin, A. Jain, Y. LeCun, C. Bregler, "Efficient object localization using
    convolutional networks", CVPR, 2015.

    Parameters
    ----------
    x : Tensor
        Of shape (batch, channels, height, width), floating. Tensors with three axes are refused:
        PyTorch takes them for sequences, as `dropout1d` does.
    p : float, default 0.5
        The probability of 0, from 0 to 1; it is rounded to a multiple of 2**-16.
    training : bool, default True
        Whether to replace elements.
    inplace : bool, default False
        Whether `x` gets the value, too.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the same shape; `x` itself if nothing is replaced.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1, or `x` has another number of axes.
    TypeError
        If `x` is not floating, or `p` is not a number.

    Notes
    -----
    .. math:: y = \frac{m\, x}{1 - p}, \quad m \in \{0, 1\}, \quad P(m = 0) = p

    :math:`m` is drawn for each channel.

    - Gradient for `x`: :math:`\frac{m\, \bar y}{1 - p}`

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.functional.dropout2d(xgrad.ones((10, 8, 5, 5)))
    >>> xgrad.all(xgrad.min(y, axis=(2, 3)) == xgrad.max(y, axis=(2, 3)))
    Tensor(True)
    """
    shapes = {4: "(batch, channels, height, width)"}
    return _channel_dropout("dropout2d", x, p, training, inplace, generator, shapes)


def dropout3d(
    x: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    r"""Replace whole channels of volumes by 0, each with probability `p`.

    The other channels are divided by ``1 - p``.

    J. Tompson, R. Goroshin, A. Jain, Y. LeCun, C. Bregler, "Efficient object localization using
    convolutional networks", CVPR, 2015.

    Parameters
    ----------
    x : Tensor
        Floating, of shape (batch, channels, depth, height, width), or (channels, depth, height,
        width) for a single volume.
    p : float, default 0.5
        The probability of 0, from 0 to 1; it is rounded to a multiple of 2**-16.
    training : bool, default True
        Whether to replace elements.
    inplace : bool, default False
        Whether `x` gets the value, too.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the same shape; `x` itself if nothing is replaced.

    Raises
    ------
    ValueError
        If `p` is below 0 or above 1, or `x` has another number of axes.
    TypeError
        If `x` is not floating, or `p` is not a number.

    Notes
    -----
    .. math:: y = \frac{m\, x}{1 - p}, \quad m \in \{0, 1\}, \quad P(m = 0) = p

    :math:`m` is drawn for each channel.

    - Gradient for `x`: :math:`\frac{m\, \bar y}{1 - p}`

    Examples
    --------
    >>> import xgrad
    >>> y = xgrad.nn.functional.dropout3d(xgrad.ones((10, 8, 5, 5, 5)))
    >>> xgrad.all(xgrad.min(y, axis=(2, 3, 4)) == xgrad.max(y, axis=(2, 3, 4)))
    Tensor(True)
    """
    shapes = {
        4: "(channels, depth, height, width)",
        5: "(batch, channels, depth, height, width)",
    }
    return _channel_dropout("dropout3d", x, p, training, inplace, generator, shapes)


def check_probability(name: str, p: float) -> None:
    """Raise an error that names the function or layer unless `p` is a number from 0 to 1."""
    if not 0 <= as_number(name, "p", p) <= 1:
        raise ValueError(f"{name}: expected p from 0 to 1, got {p}")
