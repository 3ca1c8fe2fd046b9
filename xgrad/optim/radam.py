"""RAdam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average, penalized


class RAdam(Optimizer):
    r"""Adam with a rectified learning rate, which replaces a warm-up [1]_.

    With the gradient g of a parameter p, λ the weight decay, and t counting the steps of p:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        m &\gets \beta_1\, m + (1 - \beta_1)\, g \\
        v &\gets \beta_2\, v + (1 - \beta_2)\, g^2 \\
        n &= N - \frac{2 t \beta_2^t}{1 - \beta_2^t}, \quad N = \frac{2}{1 - \beta_2} - 1 \\
        r^2 &= \frac{(n - 4) (n - 2) N}{(N - 4) (N - 2)\, n} \\
        p &\gets p - \frac{\mathrm{lr}\, m}{1 - \beta_1^t} \begin{cases}
            r \sqrt{1 - \beta_2^t} / (\sqrt{v} + \varepsilon) & \text{if } n > 5 \\
            1 & \text{otherwise} \end{cases}
        \end{align*}

    As long as n is at most 5, the variance of v is too large. With `decoupled_weight_decay`, the
    first line is :math:`p \gets (1 - \mathrm{lr}\, \lambda)\, p`.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 1e-3
        The learning rate.
    betas : tuple of float, default (0.9, 0.999)
        β1 and β2, the decay rates of the moments.
    eps : float, default 1e-8
        ε.
    weight_decay : float, default 0
        λ, the factor of an L2 penalty.
    decoupled_weight_decay : bool, default False
        Whether the weight decay is decoupled, as in `AdamW`.
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
    .. [1] L. Liu, H. Jiang, P. He, W. Chen, X. Liu, J. Gao, J. Han, "On the variance of the
       adaptive learning rate and beyond", ICLR 2020, algorithm 2; the bound of 5 as in the authors'
       program.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -1.0], requires_grad=True)
    >>> optimizer = xgrad.optim.RAdam([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([250., -50.])
    """

    elementwise = True
    required_state = frozenset({"step", "exp_avg", "exp_avg_sq"})
    ranges = ("lr", "betas", "eps", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(
            params, defaults | {"decoupled_weight_decay": decoupled_weight_decay}, implementation
        )

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        lr, (beta1, beta2) = options["lr"], options["betas"]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = xp.zeros_like(p), xp.zeros_like(p)
        state["step"] += 1
        step = state["step"]
        g = penalized(p, g, options)
        m, v = state["exp_avg"], state["exp_avg_sq"]
        average(m, g, beta1)
        average(v, g * g, beta2)
        rate, power, limit = lr / (1 - beta1**step), beta2**step, 2 / (1 - beta2) - 1
        length = limit - 2 * step * power / (1 - power)
        if length > 5:
            squared = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            p -= (rate * (squared * (1 - power)) ** 0.5) * (m / (xp.sqrt(v) + options["eps"]))
        else:
            p -= rate * m
        return p
