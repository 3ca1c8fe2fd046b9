"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Unpack

from xgrad.backend.overridable import overridable
from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation


class Adam(Optimizer):
    r"""Adam: steps scaled by running moments of the gradient [1]_.

    With the gradient g of a parameter p, λ the weight decay, and t counting the steps of p:

    .. math::

        \begin{align*}
        g &\gets g + \lambda\, p \\
        m &\gets \beta_1\, m + (1 - \beta_1)\, g \\
        v &\gets \beta_2\, v + (1 - \beta_2)\, g^2 \\
        \hat m &= m / (1 - \beta_1^t), \quad \hat v = v / (1 - \beta_2^t) \\
        p &\gets p - \mathrm{lr}\, \hat m / (\sqrt{\hat v} + \varepsilon)
        \end{align*}

    With `amsgrad` [2]_, the largest v so far takes the place of v in the fourth line.

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
    amsgrad : bool, default False
        Whether steps are scaled by the largest second moment so far.
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
    .. [1] D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm
       1.
    .. [2] S. J. Reddi, S. Kale, S. Kumar, "On the convergence of Adam and beyond", ICLR 2018; v̂ as
       in PyTorch.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -0.01], requires_grad=True)
    >>> optimizer = xgrad.optim.Adam([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([450.,  49.])
    """

    decoupled: ClassVar[bool] = False  # whether weight decay is decoupled from the gradient

    elementwise = True
    required_state = frozenset({"step", "exp_avg", "exp_avg_sq"})
    ranges = ("lr", "eps", "weight_decay", "betas")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        lr = options["lr"]
        eps = options["eps"]
        decay = options["weight_decay"]
        (beta1, beta2) = options["betas"]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = xp.zeros_like(p), xp.zeros_like(p)
        state["step"] += 1
        if options["amsgrad"] and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = xp.zeros_like(p)
        # lr m̂ / (√v̂ + ε), with one scalar factor, which saves two passes over the array.
        root = (1 - beta2 ** state["step"]) ** 0.5
        rate = lr * root / (1 - beta1 ** state["step"])
        moments = (
            state["exp_avg"],
            state["exp_avg_sq"],
            state["max_exp_avg_sq"] if options["amsgrad"] else None,
        )
        shrink, decay = (1 - lr * decay, 0.0) if self.decoupled else (1.0, decay)
        adam_step(
            xp, p, g, *moments, beta1, beta2, shrink, decay, eps * root, rate, options["maximize"]
        )
        return p


@partial(overridable, changes=("p", "m", "v", "largest"))
def adam_step(
    xp: Any,
    p: Any,
    g: Any,
    m: Any,
    v: Any,
    largest: Any,
    beta1: Any,
    beta2: Any,
    shrink: Any,
    decay: Any,
    eps: Any,
    rate: Any,
    maximize: bool,
) -> None:
    """Update `p`, its moments `m` and `v`, and `largest` unless it is None, in place.

    ``p = shrink p - rate m / (√v + eps)``: see `Adam`. Kernels accept the factors as numbers or as
    0-d arrays.
    """
    if maximize:
        g = -g
    if shrink != 1:
        p *= shrink
    if decay:
        g = g + decay * p
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    square = g * g
    square *= 1 - beta2
    v += square
    if largest is not None:
        # asarray: for 0-d arrays, NumPy's maximum returns a scalar.
        largest[...] = v = xp.asarray(xp.maximum(largest, v))
    divisor = xp.sqrt(v)
    divisor += eps
    step = m / divisor
    step *= rate
    p -= step


class AdamW(Adam):
    r"""Adam with decoupled weight decay [1]_.

    With λ the weight decay, a step computes

    .. math:: p \gets (1 - \mathrm{lr}\, \lambda)\, p

    and then the lines of `Adam` except the first.

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
    weight_decay : float, default 0.01
        λ.
    amsgrad : bool, default False
        Whether steps are scaled by the largest second moment so far.
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
    .. [1] I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm
       2.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor(1.0, requires_grad=True)
    >>> optimizer = xgrad.optim.AdamW([x], lr=0.5, weight_decay=0.5)
    >>> (0 * x).backward()
    >>> optimizer.step()
    >>> x
    Tensor(0.75, requires_grad=True)
    """

    decoupled = True

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **implementation
        )
