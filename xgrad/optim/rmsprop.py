"""RMSprop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average, penalized


class RMSprop(Optimizer):
    r"""Steps scaled by a running mean of the squared gradient [1]_.

    With the gradient g of a parameter p, λ the weight decay, :math:`\alpha` the smoothing constant
    and μ the momentum:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        v &\gets \alpha\, v + (1 - \alpha)\, g^2 \\
        a &\gets \alpha\, a + (1 - \alpha)\, g \\
        b &\gets \mu\, b + g / (\sqrt{v - a^2} + \varepsilon) \\
        p &\gets p - \mathrm{lr}\, b
        \end{align*}

    Unless `centered` [2]_, a is 0.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 0.01
        The learning rate.
    alpha : float, default 0.99
        :math:`\alpha`.
    eps : float, default 1e-8
        ε.
    weight_decay : float, default 0
        λ, the factor of an L2 penalty.
    momentum : float, default 0
        μ.
    centered : bool, default False
        Whether to scale by the variance of the gradient instead of its mean square.
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
    .. [1] T. Tieleman, G. Hinton, "Lecture 6.5: RMSprop", Neural Networks for Machine Learning,
       2012.
    .. [2] A. Graves, "Generating sequences with recurrent neural networks", arXiv:1308.0850,
       section 4.2.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -0.01], requires_grad=True)
    >>> optimizer = xgrad.optim.RMSprop([x], lr=0.05)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([450.,  49.])
    """

    elementwise = True
    required_state = frozenset({"square_avg"})
    ranges = ("lr", "alpha", "eps", "weight_decay", "momentum")

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params,
            defaults | {"momentum": momentum, "centered": centered, "maximize": maximize},
            implementation,
        )

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        alpha, momentum = options["alpha"], options["momentum"]
        wanted = (
            ["square_avg"]
            + ["grad_avg"] * options["centered"]
            + ["momentum_buffer"] * bool(momentum)
        )
        for key in wanted:
            if key not in state:
                state[key] = xp.zeros_like(p)
        state["step"] = state.get("step", 0) + 1
        g = penalized(p, g, options)
        v = state["square_avg"]
        average(v, g * g, alpha)
        if options["centered"]:
            mean = state["grad_avg"]
            average(mean, g, alpha)
            v = v - mean * mean
        step = g / (xp.sqrt(v) + options["eps"])
        if momentum:
            buffer = state["momentum_buffer"]
            buffer *= momentum
            buffer += step
            step = buffer
        p -= options["lr"] * step
        return p
