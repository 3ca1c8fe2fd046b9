"""Functions of whole models: gradient clipping and functional calls."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any

from xgrad.core.arguments import check_tensors
from xgrad.core.grad_mode import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.functional_call import functional_call
from xgrad.ops import asarray, minimum, sqrt, square, sum
from xgrad.support import hints
from xgrad.support.docstrings import documented

__all__ = ["clip_grad_norm_", "functional_call"]
hints.install(__name__)


@no_grad()
@documented()
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale gradients down so that their norm, as one vector, is at most `max_norm` [1]_.

    parameters : Tensor or iterable of Tensor -- On one device. Those without a gradient are ignored.
    max_norm : float -- The maximal Euclidean norm.
    returns Tensor -- The norm before, a scalar on their device. If it is not finite, neither are the gradients.
    raises ValueError -- If `max_norm` is negative.
    raises DeviceError -- If the gradients are on several devices.

    .. [1] R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of training recurrent neural networks", ICML 2013,
       algorithm 1.

    >>> x = xgrad.Tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x / 2).sum().backward()
    >>> xgrad.nn.utils.clip_grad_norm_(x, 1.0)
    Tensor(5.)
    >>> xgrad.round(100 * x.grad)
    Tensor([60., 80.])
    """
    if not max_norm >= 0:
        raise ValueError(f"clip_grad_norm_: expected max_norm >= 0, got {max_norm}")
    tensors = check_tensors("clip_grad_norm_", "parameters", parameters)
    leaves = [leaf for p in tensors if (leaf := p._leaf) is not None and leaf.grad is not None]
    if not leaves:
        return asarray(0.0)
    buffer = _common_buffer(leaves)
    gradients = [leaf.grad for leaf in leaves] if buffer is None else [buffer]
    squares = [sum(square(gradient)) for gradient in gradients]
    norm = sqrt(functools.reduce(operator.add, squares))
    scale = minimum(max_norm / (norm + 1e-6), 1.0)
    if buffer is None:
        for leaf in leaves:
            leaf.grad = leaf.grad * scale.astype(leaf.grad.dtype)
    else:
        with leaves[0].placement.device.active():
            array = buffer._data
            array *= scale._data
    return norm


def _common_buffer(leaves: list[Any]) -> Tensor | None:
    """Return the buffer of an optimizer that has just the gradients of some leaves, which no user has seen; or None."""
    packed = leaves[0].slot.gradients if leaves[0].slot is not None else None
    if packed is None or packed.exposed or not len(packed.views) == len(leaves) == len({id(leaf) for leaf in leaves}):
        return None
    slots = [(leaf.slot, leaf.grad) for leaf in leaves]
    here = all(slot is not None and slot.gradients is packed and slot.contains(gradient) for slot, gradient in slots)
    return packed.buffer if here else None
