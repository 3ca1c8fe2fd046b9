"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

from xgrad.backend.overridable import overridable
from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation


class SGD(Optimizer):
    r"""Stochastic gradient descent, optionally with momentum.

    With the gradient g of a parameter p, λ the weight decay, μ the momentum and τ the dampening:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        b &\gets \mu\, b + (1 - \tau)\, g \\
        p &\gets p - \mathrm{lr}\, b
        \end{align*}

    In the first step, and without momentum, b is g. With `nesterov`, the last line is
    :math:`p \gets p - \mathrm{lr}\, (g + \mu\, b)`. As in PyTorch, the learning rate multiplies b
    as a whole; in the paper [1]_, it multiplies each gradient that is added to b.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 1e-3
        The learning rate.
    momentum : float, default 0
        μ.
    dampening : float, default 0
        τ.
    weight_decay : float, default 0
        λ, the factor of an L2 penalty.
    nesterov : bool, default False
        Whether to use Nesterov's momentum, which needs momentum and no dampening.
    maximize : bool, default False
        Whether to maximize instead of minimize.
    **implementation
        PyTorch's choices of an implementation, False or None: see `Optimizer`.

    Raises
    ------
    TypeError, ValueError
        As for `Optimizer`, and if an option is out of range.

    References
    ----------
    .. [1] I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of initialization and
       momentum in deep learning", ICML 2013.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor(1.0, requires_grad=True)
    >>> optimizer = xgrad.optim.SGD([x], lr=0.25)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    Tensor(0.5, requires_grad=True)
    """

    elementwise = True
    ranges = ("lr", "momentum", "dampening", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
        }
        super().__init__(
            params, defaults | {"nesterov": nesterov, "maximize": maximize}, implementation
        )

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option is out of range."""
        super().check(options)
        if options["nesterov"] and (not options["momentum"] or options["dampening"]):
            raise ValueError(
                "SGD: expected momentum above 0 and no dampening with nesterov, got momentum "
                f"{options['momentum']} and dampening {options['dampening']}"
            )

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        lr, momentum, decay = options["lr"], options["momentum"], options["weight_decay"]
        new, buffer = 1 - options["dampening"], state.get("momentum_buffer")
        buffer = sgd_step(
            xp, p, g, buffer, lr, decay, momentum, new, options["nesterov"], options["maximize"]
        )
        if momentum:
            state["momentum_buffer"] = buffer
        return p


@partial(overridable, changes=("p", "buffer"))
def sgd_step(
    xp: Any,
    p: Any,
    g: Any,
    buffer: Any,
    lr: Any,
    decay: Any,
    momentum: Any,
    new: Any,
    nesterov: bool,
    maximize: bool,
) -> Any:
    """Update `p`, and the momentum `buffer` unless it is None, in place, and return the buffer.

    ``b = μ b + new g``: see `SGD`. Kernels accept the factors as numbers or as 0-d arrays.
    """
    if maximize:
        g = -g
    if decay:
        g = g + decay * p
    if momentum:
        if buffer is None:
            buffer = xp.asarray(g, copy=True)
        else:
            buffer *= momentum
            buffer += new * g
        g = g + momentum * buffer if nesterov else buffer
    p -= lr * g
    return buffer
