"""What is done to the gradients of a whole model."""

from __future__ import annotations

from collections.abc import Iterable

from xgrad.grad_mode import no_grad
from xgrad.ops import asarray, minimum, sqrt, square, sum
from xgrad.tensor import Tensor

__all__ = ["clip_grad_norm_"]


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
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [(p, p.grad) for p in tensors if p.grad is not None]
    if not grads:
        return asarray(0.0)
    first, *others = [sum(square(g)) for _, g in grads]
    for other in others:
        first = first + other
    norm = sqrt(first)
    scale = minimum(max_norm / (norm + 1e-6), 1.0)
    for p, g in grads:
        p.grad = g * scale.astype(g.dtype)
    return norm
