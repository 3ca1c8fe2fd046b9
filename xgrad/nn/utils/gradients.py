"""Norms of gradients, and gradient clipping."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from xgrad.backend.recording import assign, run_array_code
from xgrad.core.arguments import as_tensor, check_tensors
from xgrad.core.dtypes import float16, float32
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.ops import (
    abs,
    asarray,
    astype,
    clip,
    isfinite,
    max,
    maximum,
    minimum,
    sqrt,
    square,
    sum,
    zeros,
)

Parameters = Tensor | Iterable[Tensor]


@no_grad()
def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    r"""Scale gradients down so that their norm, as one vector, is at most `max_norm` [1]_.

    .. math:: g \gets g \min\left(1, \frac{c}{\lVert g \rVert_p + 10^{-6}}\right)

    c is `max_norm`, and p the `norm_type`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Parameters on one device; the ones without a gradient are ignored.
    max_norm : float
        The maximum norm.
    norm_type : float, default 2
        The order p of the norm; ``inf`` for the largest component.
    error_if_nonfinite : bool, default False
        Whether to check that the norm is finite, which waits for the device.

    Returns
    -------
    Tensor
        The norm before scaling, a scalar on the parameters' device; float32 for float16 gradients.
        If it is not finite, neither are the gradients.

    Raises
    ------
    ValueError
        If `max_norm` is negative, or `norm_type` is not above 0.
    RuntimeError
        If `error_if_nonfinite` and the norm is not finite; the gradients are then unchanged.
    DeviceError
        If the gradients are on several devices.

    References
    ----------
    .. [1] R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of training recurrent neural
       networks", ICML 2013, algorithm 1.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x / 2).sum().backward()
    >>> xgrad.nn.utils.clip_grad_norm_(x, 1.0)
    Tensor(5.)
    >>> xgrad.round(100 * x.grad)
    Tensor([60., 80.])
    """
    _check_max_norm("clip_grad_norm_", max_norm)
    gradients = Gradients("clip_grad_norm_", parameters)
    norm = _checked_norm("clip_grad_norm_", gradients.arrays, norm_type, error_if_nonfinite)
    if gradients.arrays:
        gradients.scale(_factor(max_norm, norm))
    return norm


@no_grad()
def get_total_norm(
    tensors: Parameters, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    r"""Return the norm of tensors, such as gradients, as one vector.

    .. math:: y = \left(\sum_i |x_i|^p\right)^{1/p}

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        Tensors on one device.
    norm_type : float, default 2
        The order p of the norm; ``inf`` for the largest component.
    error_if_nonfinite : bool, default False
        Whether to check that the norm is finite, which waits for the device.

    Returns
    -------
    Tensor
        A scalar on the tensors' device, without a gradient; float32 for float16.

    Raises
    ------
    ValueError
        If `norm_type` is not above 0.
    RuntimeError
        If `error_if_nonfinite` and the norm is not finite.
    DeviceError
        If the tensors are on several devices.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.utils.get_total_norm([xgrad.asarray([3.0]), xgrad.asarray([[0.0, 4.0]])])
    Tensor(5.)
    """
    arrays = check_tensors("get_total_norm", "tensors", tensors)
    return _checked_norm("get_total_norm", arrays, norm_type, error_if_nonfinite)


@no_grad()
def clip_grads_with_norm_(parameters: Parameters, max_norm: float, total_norm: Tensor) -> None:
    """Scale gradients down by the factor that makes a given norm at most `max_norm`.

    `clip_grad_norm_` is `get_total_norm` of the gradients, followed by this function.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Parameters on one device; the ones without a gradient are ignored.
    max_norm : float
        The maximum norm.
    total_norm : Tensor
        The norm, a scalar on the parameters' device.

    Raises
    ------
    ValueError
        If `max_norm` is negative, or `total_norm` is not a scalar.
    DeviceError
        If the gradients are on several devices.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x / 2).sum().backward()
    >>> norm = xgrad.nn.utils.get_total_norm([x.grad])
    >>> xgrad.nn.utils.clip_grads_with_norm_(x, 1.0, norm)
    >>> xgrad.round(100 * x.grad)
    Tensor([60., 80.])
    """
    name = "clip_grads_with_norm_"
    _check_max_norm(name, max_norm)
    norm = as_tensor(name, "total_norm", total_norm)
    if norm.ndim:
        raise ValueError(f"{name}: expected a scalar for total_norm, got shape {norm.shape}")
    Gradients(name, parameters).scale(_factor(max_norm, norm))


def _check_max_norm(name: str, max_norm: float) -> None:
    if not max_norm >= 0:
        raise ValueError(f"{name}: expected max_norm >= 0, got {max_norm}")


def _factor(max_norm: float, norm: Tensor) -> Tensor:
    """Return the factor of all gradients, at most 1."""
    return minimum(max_norm / (norm + 1e-6), 1.0)


def _checked_norm(
    name: str, arrays: list[Tensor], norm_type: float, error_if_nonfinite: bool
) -> Tensor:
    if not norm_type > 0:
        raise ValueError(f"{name}: expected norm_type above 0, got {norm_type}")
    if not arrays:
        return asarray(0.0)
    norm = _norm(arrays, float(norm_type))
    if error_if_nonfinite and not isfinite(norm):
        tensors = "tensors" if name == "get_total_norm" else "gradients"
        raise RuntimeError(
            f"{name}: expected {tensors} with a finite norm, got {norm.item()}: set"
            " error_if_nonfinite=False to accept them nevertheless"
        )
    return norm


def _norm(arrays: list[Tensor], order: float) -> Tensor:
    """Return the norm of several arrays, as one vector.

    float16 is computed in float32: its squares would overflow above 65504.
    """
    arrays = [astype(x, float32) if x.dtype == float16 else x for x in arrays]
    if order == math.inf:
        return functools.reduce(
            maximum, [max(abs(x)) if x.size else zeros((), device=x.device) for x in arrays]
        )
    powers = [square(x) if order == 2 else abs(x) ** order for x in arrays]
    total = functools.reduce(operator.add, map(sum, powers))
    return sqrt(total) if order == 2 else total ** (1 / order)


@no_grad()
def clip_grad_value_(parameters: Parameters, clip_value: float) -> None:
    """Clip each component of the gradients to between ``-clip_value`` and `clip_value`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Parameters on one device; the ones without a gradient are ignored.
    clip_value : float
        The largest absolute value.

    Raises
    ------
    ValueError
        If `clip_value` is negative.
    DeviceError
        If the gradients are on several devices.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([3.0, -0.5], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> xgrad.nn.utils.clip_grad_value_(x, 2.0)
    >>> x.grad
    Tensor([ 2., -1.])
    """
    if not clip_value >= 0:
        raise ValueError(f"clip_grad_value_: expected clip_value >= 0, got {clip_value}")
    Gradients("clip_grad_value_", parameters).update(lambda g: clip(g, -clip_value, clip_value))


class Gradients:
    """The gradients of parameters, to read and update.

    They are one array if they fill the buffer of an optimizer.

    Attributes
    ----------
    arrays : list of Tensor
        The gradients, or the one buffer with all of them.
    """

    def __init__(self, name: str, parameters: Parameters) -> None:
        tensors = check_tensors(name, "parameters", parameters)
        self._leaves = [
            leaf for p in tensors if (leaf := p._leaf) is not None and leaf.grad is not None
        ]
        self._buffer = _common_buffer(self._leaves) if self._leaves else None
        self.arrays = (
            [leaf.grad for leaf in self._leaves] if self._buffer is None else [self._buffer]
        )

    def scale(self, factor: Tensor) -> None:
        """Multiply the gradients by a scalar."""
        if self._buffer is None or self._buffer.dtype == float16:
            self.update(
                lambda g: (
                    (g * factor).astype(g.dtype)
                    if g.dtype == float16
                    else g * factor.astype(g.dtype)
                )
            )
            return
        with self._buffer.device.active():
            factor = factor.astype(self._buffer.dtype)
            run_array_code(self._buffer.device, _scale, self._buffer._data, factor._data)

    def update(self, function: Callable[[Tensor], Tensor]) -> None:
        """Replace the gradients by a function of them."""
        if self._buffer is not None:
            with self._buffer.device.active():
                run_array_code(
                    self._buffer.device, assign, self._buffer._data, function(self._buffer)._data
                )
            return
        for leaf in self._leaves:
            leaf.grad = function(leaf.grad)


def _scale(device: Any, x: Any, factor: Any) -> None:
    """Multiply an array in place: array code."""
    x *= factor


def _common_buffer(leaves: list[Any]) -> Tensor | None:
    """Return the optimizer's buffer that has exactly the gradients of these leaves, or None.

    The result is also None if a user has seen one of the gradients.
    """
    packed = leaves[0].receiver.gradients if leaves[0].receiver is not None else None
    if (
        packed is None
        or packed.exposed
        or not len(packed.views) == len(leaves) == len({id(leaf) for leaf in leaves})
    ):
        return None
    slots = [(leaf.receiver, leaf.grad) for leaf in leaves]
    here = all(
        slot is not None and slot.gradients is packed and slot.contains(gradient)
        for slot, gradient in slots
    )
    return packed.buffer if here else None
