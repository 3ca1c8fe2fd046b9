"""Adagrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, penalized


class Adagrad(Optimizer):
    r"""Steps scaled by the sum of all squared gradients so far [1]_.

    With the gradient g of a parameter p, λ the weight decay, η the decay of the learning rate, and
    t counting the steps of p from 0:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        s &\gets s + g^2 \\
        p &\gets p - \frac{\mathrm{lr}}{1 + t \eta} \cdot \frac{g}{\sqrt{s} + \varepsilon}
        \end{align*}

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 0.01
        The learning rate.
    lr_decay : float, default 0
        η.
    weight_decay : float, default 0
        λ, the factor of an L2 penalty.
    initial_accumulator_value : float, default 0
        s before the first step.
    eps : float, default 1e-10
        ε.
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
    .. [1] J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and
       stochastic optimization", JMLR 12, 2011; the diagonal form.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -0.01], requires_grad=True)
    >>> optimizer = xgrad.optim.Adagrad([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([450.,  49.])
    """

    elementwise = True
    required_state = frozenset({"step", "sum"})
    ranges = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(
            params,
            defaults | {"initial_accumulator_value": initial_accumulator_value},
            implementation,
        )

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        if not state:
            state["step"], state["sum"] = 0, xp.zeros_like(p)
            state["sum"] += options["initial_accumulator_value"]
        rate = options["lr"] / (1 + state["step"] * options["lr_decay"])
        state["step"] += 1
        g = penalized(p, g, options)
        total = state["sum"]
        total += g * g
        p -= rate * (g / (xp.sqrt(total) + options["eps"]))
        return p
