"""Adadelta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average, check_range, penalized


class Adadelta(Optimizer):
    r"""Steps scaled by running means of the squared gradient and of the squared steps [1]_.

    With the gradient g of a parameter p, λ the weight decay, and :math:`\rho` the decay rate of the
    means:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        v &\gets \rho\, v + (1 - \rho)\, g^2 \\
        d &= \frac{\sqrt{u + \varepsilon}}{\sqrt{v + \varepsilon}}\, g \\
        u &\gets \rho\, u + (1 - \rho)\, d^2 \\
        p &\gets p - \mathrm{lr}\, d
        \end{align*}

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 1
        The learning rate, which the paper does not have.
    rho : float, default 0.9
        :math:`\rho`.
    eps : float, default 1e-6
        ε.
    weight_decay : float, default 0
        λ, the factor of an L2 penalty.
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
    .. [1] M. D. Zeiler, "Adadelta: an adaptive learning rate method", arXiv:1212.5701, algorithm 1.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor(1.0, requires_grad=True)
    >>> optimizer = xgrad.optim.Adadelta([x], rho=0.0, eps=1.0)
    >>> (3**0.5 * x).backward()
    >>> optimizer.step()
    >>> xgrad.round(1000 * x.detach())
    Tensor(134.)
    """

    elementwise = True
    required_state = frozenset({"square_avg", "acc_delta"})
    ranges = ("lr", "eps", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option is out of range."""
        super().check(options)
        check_range("Adadelta", "rho", options["rho"], below=1.0)

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        rho, eps = options["rho"], options["eps"]
        if not state:
            state["square_avg"], state["acc_delta"] = xp.zeros_like(p), xp.zeros_like(p)
        state["step"] = state.get("step", 0) + 1
        g = penalized(p, g, options)
        v, u = state["square_avg"], state["acc_delta"]
        average(v, g * g, rho)
        delta = xp.sqrt(u + eps) / xp.sqrt(v + eps) * g
        average(u, delta * delta, rho)
        p -= options["lr"] * delta
        return p
