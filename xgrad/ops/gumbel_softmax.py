"""Random choices of classes that are differentiable with respect to their logits."""

from __future__ import annotations

from xgrad.core.arguments import as_number, as_tensor, front_axis
from xgrad.core.dtypes import float16, float32
from xgrad.core.tensor import Tensor
from xgrad.ops.elementwise import log, maximum
from xgrad.ops.encoding import one_hot
from xgrad.ops.precision import is_cast, upcast
from xgrad.ops.searching import argmax
from xgrad.ops.softmaxes import softmax
from xgrad.ops.tensor_conversion import astype
from xgrad.random import uniform
from xgrad.random.generator import Generator
from xgrad.support.hints import explained


@explained
def gumbel_softmax(
    logits: Tensor,
    tau: float = 1.0,
    hard: bool = False,
    *,
    axis: int = -1,
    generator: Generator | None = None,
) -> Tensor:
    r"""Return random probabilities close to one class, drawn with the probabilities of a softmax.

    They are the softmax of the logits plus Gumbel noise, divided by `tau`. The largest one is of
    class k with probability ``softmax(logits)[k]``.

    E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", ICLR, 2017; C.
    Maddison, A. Mnih, Y. W. Teh, "The concrete distribution", ICLR, 2017.

    Parameters
    ----------
    logits : Tensor
        Unnormalized logarithms of probabilities, of any shape with at least one axis; floating.
    tau : float, default 1
        The temperature, above 0: with a lower one, the result is closer to one class.
    hard : bool, default False
        Whether to return 1 for the largest probability and 0 for the others. The gradient is that
        of the probabilities nevertheless.
    axis : int, default -1
        The axis of the classes.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        Of the shape of `logits`.

    Raises
    ------
    ValueError
        If `tau` is not above 0.
    TypeError
        If `logits` is not floating.
    IndexError
        If there is no such axis.

    Notes
    -----
    .. math:: y = \operatorname{softmax}\left(\frac{x + g}{\tau}\right), \quad g = -\ln(-\ln(u))

    - Gradient for `logits`:
      :math:`\frac{1}{\tau}\, y_i \left(\bar y_i - \sum_j \bar y_j\, y_j\right)`

    Here, :math:`u` is uniform between 0 and 1; with `hard`, :math:`y` in the gradient is the
    probabilities.

    Examples
    --------
    >>> import xgrad
    >>> logits = xgrad.zeros((4, 3), requires_grad=True)
    >>> choice = xgrad.nn.functional.gumbel_softmax(logits, hard=True)
    >>> xgrad.sum(choice, axis=1)
    Tensor([1., 1., 1., 1.], grad_fn=<sum>)
    """
    op = "gumbel_softmax"
    logits = as_tensor(op, "logits", logits)
    if logits.dtype.kind != "f":
        raise TypeError(f"{op}: expected floating logits, got {logits.dtype}: use .astype(float32)")
    if not as_number(op, "tau", tau) > 0:
        raise ValueError(f"{op}: expected tau above 0, got {tau}")
    axis = front_axis(op, logits, axis, of="logits")
    dtype = float32 if logits.dtype == float16 else logits.dtype
    noise = uniform(logits.shape, dtype=dtype, device=logits.device, generator=generator)
    out = of_uniform(logits, noise, tau, hard, axis)
    return out if is_cast(logits) else astype(out, logits.dtype, copy=False)


@upcast
def of_uniform(logits: Tensor, noise: Tensor, tau: float, hard: bool, axis: int) -> Tensor:
    """Return the probabilities for uniform random numbers."""
    smallest = 2.0**-100  # instead of 0, whose noise would be infinite
    gumbel = -log(-log(maximum(noise, smallest)))
    soft = softmax((logits + gumbel) / tau, axis=axis)
    if not hard:
        return soft
    chosen = one_hot(argmax(soft, axis=axis), soft.shape[axis], axis=axis, dtype=soft.dtype)
    return chosen + (soft - soft.detach())
