"""Functions for whole models: gradient clipping, parameters as a vector, and functional calls."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from xgrad.backend.recording import assign, run_array_code
from xgrad.core.arguments import check_tensor, check_tensors
from xgrad.core.dtypes import float16, float32
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.functional_call import functional_call
from xgrad.ops import (
    abs,
    asarray,
    astype,
    clip,
    concat,
    isfinite,
    max,
    maximum,
    minimum,
    reshape,
    sqrt,
    square,
    sum,
    zeros,
)
from xgrad.support import hints

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "functional_call",
    "parameters_to_vector",
    "vector_to_parameters",
]
hints.install(__name__)


Parameters = Tensor | Iterable[Tensor]


@no_grad()
def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale gradients down so that their norm, as one vector, is at most `max_norm` [1]_.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Parameters on one device; the ones without a gradient are ignored.
    max_norm : float
        The maximum norm.
    norm_type : float, default 2
        The order p of the norm ``(Σ |g|^p)^(1/p)``; ``inf`` for the largest component.
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
    if not max_norm >= 0:
        raise ValueError(f"clip_grad_norm_: expected max_norm >= 0, got {max_norm}")
    if not norm_type > 0:
        raise ValueError(f"clip_grad_norm_: expected norm_type above 0, got {norm_type}")
    gradients = Gradients("clip_grad_norm_", parameters)
    if not gradients.arrays:
        return asarray(0.0)
    norm = _norm(gradients.arrays, float(norm_type))
    if error_if_nonfinite and not isfinite(norm):
        raise RuntimeError(
            f"clip_grad_norm_: expected gradients with a finite norm, got {norm.item()}: "
            "set error_if_nonfinite=False to scale them nevertheless"
        )
    scale = minimum(max_norm / (norm + 1e-6), 1.0)
    gradients.scale(scale)
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


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return parameters concatenated into one vector; differentiable.

    Parameters
    ----------
    parameters : iterable of Tensor
        At least one parameter, all on one device.

    Returns
    -------
    Tensor
        A vector.

    Raises
    ------
    DeviceError
        If the parameters are on several devices.
    ValueError
        If there are none.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.utils.parameters_to_vector(xgrad.nn.Linear(3, 2).parameters()).shape
    (8,)
    """
    tensors = check_tensors("parameters_to_vector", "parameters", parameters)
    if not tensors:
        raise ValueError("parameters_to_vector: expected parameters, got none")
    return concat([reshape(p, (-1,)) for p in tensors])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Assign the parts of a vector to parameters, in the order of `parameters_to_vector`.

    The assignment is not recorded.

    Parameters
    ----------
    vec : Tensor
        A vector with as many elements as the parameters, on their device.
    parameters : iterable of Tensor
        The parameters, which keep their dtypes.

    Raises
    ------
    ValueError
        If `vec` has another shape.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Linear(1, 2)
    >>> xgrad.nn.utils.vector_to_parameters(xgrad.arange(4.0), layer.parameters())
    >>> layer.bias.detach()
    Tensor([2., 3.])
    """
    vec = check_tensor("vector_to_parameters", "vec", vec)
    tensors, start = check_tensors("vector_to_parameters", "parameters", parameters), 0
    size = math.fsum([p.size for p in tensors])
    if vec.shape != (size,):
        raise ValueError(
            f"vector_to_parameters: expected vec of shape ({size:.0f},), got {vec.shape}"
        )
    for p in tensors:
        p.data = astype(reshape(vec[start : start + p.size], p.shape), p.dtype)
        start += p.size


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
