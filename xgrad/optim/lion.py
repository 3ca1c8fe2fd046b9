"""Lion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average


class Lion(Optimizer):
    r"""Steps by the sign of a running mean of the gradient [1]_.

    With the gradient g of a parameter p, and λ the weight decay, which is decoupled:

    .. math::

        \begin{align*}
        u &= \operatorname{sign}(\beta_1\, m + (1 - \beta_1)\, g) \\
        p &\gets p - \mathrm{lr}\, (u + \lambda\, p) \\
        m &\gets \beta_2\, m + (1 - \beta_2)\, g
        \end{align*}

    All steps have the same size, so good learning rates are 3 to 10 times smaller than for `AdamW`,
    and good weight decays larger by this factor. The single moment takes half the memory of the two
    in `AdamW`.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 1e-4
        The learning rate.
    betas : tuple of float, default (0.9, 0.99)
        β1 and β2.
    weight_decay : float, default 0
        λ.
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
    .. [1] X. Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023, algorithm
       2.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -0.01], requires_grad=True)
    >>> optimizer = xgrad.optim.Lion([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([450.,  49.])
    """

    elementwise = True
    required_state = frozenset({"exp_avg"})
    ranges = ("lr", "betas", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        lr, decay, (beta1, beta2) = options["lr"], options["weight_decay"], options["betas"]
        if not state:
            state["exp_avg"] = xp.zeros_like(p)
        if options["maximize"]:
            g = -g
        if decay:
            p *= 1 - lr * decay
        m = state["exp_avg"]
        p -= lr * xp.sign(beta1 * m + (1 - beta1) * g)
        average(m, g, beta2)
        return p
