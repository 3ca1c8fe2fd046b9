"""Normalization by the squares of neighbouring channels: `local_response_norm`."""

from __future__ import annotations

import math

from xgrad.core.arguments import as_number, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.elementwise import pow, square
from xgrad.ops.folding import checked_factor
from xgrad.ops.manipulation import reshape
from xgrad.ops.pooling import sum_pool
from xgrad.ops.precision import upcast, widened
from xgrad.ops.windows import Window


@upcast
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    r"""Return ``input / (k + alpha * mean)**beta``, with the mean square of neighbouring channels.

    A. Krizhevsky, I. Sutskever, G. E. Hinton, "ImageNet classification with deep convolutional
    neural networks", NeurIPS, 2012.

    Parameters
    ----------
    input : Tensor
        Of shape (N, C, ...), with at least three axes, floating.
    size : int
        The number of channels in a mean; beyond the first and the last channel, zeros count.
    alpha, beta, k : float
        The options of the formula, by default 1e-4, 0.75 and 1.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Raises
    ------
    ValueError
        If `size` is not an int above 0, or `input` has fewer than three axes.
    TypeError
        If an option is not a number.

    Notes
    -----
    .. math:: y_c = \frac{x_c}{d_c^\beta}, \quad
        d_c = k + \frac{\alpha}{n} \sum_{j \in N_c} x_j^2

    - Gradient for `input`: :math:`\frac{\bar y_c}{d_c^\beta} - \frac{2 \alpha \beta}{n}\, x_c
      \sum_{j:\, c \in N_j} \frac{\bar y_j\, y_j}{d_j}`

    Here, :math:`N_c` are the :math:`n` channels around :math:`c`.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[[3.0], [4.0]]])
    >>> xgrad.nn.functional.local_response_norm(x, 2, alpha=2.0, beta=0.5, k=0.0).tolist()
    [[[1.0], [0.800000011920929]]]
    """
    name = "local_response_norm"
    (input,) = widened(as_tensor(name, "input", input))
    size = checked_factor(name, "size", size)
    for argument, value in (("alpha", alpha), ("beta", beta), ("k", k)):
        as_number(name, argument, value)
    if input.ndim < 3:
        raise ValueError(f"{name}: expected input of shape (N, C, ...), got {input.shape}")
    if not input.size:
        return +input
    batch, channels, *rest = input.shape
    shape = channels, math.prod(rest)
    around = ((size // 2, (size - 1) // 2), (0, 0))
    window = Window(shape, (size, 1), (1, 1), around, (1, 1))
    total = sum_pool(reshape(square(input), (batch, 1, *shape)), window=window)
    return input / pow(reshape(total, input.shape) * (alpha / size) + k, beta)
