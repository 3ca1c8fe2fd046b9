"""What is done to a whole model from outside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xgrad.core.arguments import check_tensors
from xgrad.core.grad_mode import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.functional_call import functional_call
from xgrad.ops import asarray, minimum, sqrt, square, sum
from xgrad.support import hints

__all__ = ["clip_grad_norm_", "functional_call"]
hints.install(__name__)


@no_grad()
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale gradients down so that their norm, as one vector, is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        On one device. Those without a gradient are left out.
    max_norm : float
        The largest Euclidean norm.

    Returns
    -------
    Tensor
        The norm before, a scalar on their device. If it is not finite, the gradients are not, either.

    Raises
    ------
    ValueError
        If `max_norm` is negative.
    DeviceError
        If the gradients are on several devices.

    References
    ----------
    R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of training recurrent neural networks", ICML 2013,
    algorithm 1.

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
    tensors = check_tensors("clip_grad_norm_", "parameters", parameters)
    leaves = [leaf for p in tensors if (leaf := p._leaf) is not None and leaf.grad is not None]
    if not leaves:
        return asarray(0.0)
    flat = _together(leaves)
    if flat is not None:
        square_sum = sum(square(flat.buffer))
    else:
        square_sum, *others = [sum(square(leaf.grad)) for leaf in leaves]
        for other in others:
            square_sum = square_sum + other
    norm = sqrt(square_sum)
    scale = minimum(max_norm / (norm + 1e-6), 1.0)
    if flat is not None:
        with leaves[0].placement.device.active():
            buffer = flat.buffer._data
            buffer *= scale._data
    else:
        for leaf in leaves:
            leaf.grad = leaf.grad * scale.astype(leaf.grad.dtype)
    return norm


def _together(leaves: list[Any]) -> Any:
    """Return the gradients that an optimizer keeps in one buffer, if they are just these, and nobody looks at them."""
    flat = leaves[0].slot.gradients if leaves[0].slot is not None else None
    if flat is None or flat.seen or not len(flat.views) == len(leaves) == len({id(leaf) for leaf in leaves}):
        return None
    here = all(leaf.slot is not None and leaf.slot.gradients is flat and leaf.slot.holds(leaf.grad) for leaf in leaves)
    return flat if here else None
