"""Rprop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, check_pair
from xgrad.support.hints import shown


class Rprop(Optimizer):
    r"""Steps by the sign of the gradient, with a step size for each element [1]_.

    With the gradient g of a parameter p, and its previous gradient g', at first 0:

    .. math::

        \begin{align*}
        \eta &= \begin{cases} \eta^+ & \text{if } g g' > 0 \\
            \eta^- & \text{if } g g' < 0 \\ 1 & \text{otherwise} \end{cases} \\
        s &\gets \min(\max(\eta\, s, s_1), s_2) \\
        g &\gets 0 \quad \text{if } g g' < 0 \\
        p &\gets p - s \operatorname{sign}(g)
        \end{align*}

    It is meant for gradients of a whole dataset: the noise of small batches changes their signs.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 0.01
        The first step size s.
    etas : tuple of float, default (0.5, 1.2)
        η⁻, between 0 and 1, and η⁺, above 1.
    step_sizes : tuple of float, default (1e-6, 50)
        s₁ and s₂, the bounds of the step sizes.
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
    .. [1] M. Riedmiller, H. Braun, "A direct adaptive method for faster backpropagation learning:
       the RPROP algorithm", ICNN 1993, without backtracking, as in PyTorch.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([5.0, -0.01], requires_grad=True)
    >>> optimizer = xgrad.optim.Rprop([x], lr=0.5)
    >>> for _ in range(2):
    ...     optimizer.zero_grad()
    ...     (x * x).sum().backward()
    ...     optimizer.step()
    >>> xgrad.round(100 * x.detach())
    Tensor([390.,  49.])
    """

    elementwise = True
    required_state = frozenset({"step", "prev", "step_size"})
    ranges = ("lr",)

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, defaults, implementation)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option is out of range."""
        super().check(options)
        for key in ("etas", "step_sizes"):
            check_pair("Rprop", key, options[key])
        if not 0 < options["etas"][0] < 1 < options["etas"][1]:
            raise ValueError(
                "Rprop: expected etas to be a number between 0 and 1 and one above 1, got"
                f" {shown(options['etas'])}"
            )
        if options["step_sizes"][0] > options["step_sizes"][1]:
            raise ValueError(
                "Rprop: expected step_sizes to be a smallest and a largest one, got"
                f" {shown(options['step_sizes'])}"
            )

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of all parameters."""
        (shrink, grow), (smallest, largest) = options["etas"], options["step_sizes"]
        if not state:
            state["step"], state["prev"] = 0, xp.zeros_like(p)
            state["step_size"] = xp.full_like(p, options["lr"])
        state["step"] += 1
        g = -g if options["maximize"] else g
        previous, size = state["prev"], state["step_size"]
        agreement = g * previous
        turned = agreement < 0
        factor = xp.where(agreement > 0, xp.full_like(p, grow), xp.ones_like(p))
        size *= xp.where(turned, xp.full_like(p, shrink), factor)
        size[...] = xp.minimum(
            xp.maximum(size, xp.full_like(p, smallest)), xp.full_like(p, largest)
        )
        previous[...] = xp.where(turned, xp.zeros_like(p), g)
        p -= size * xp.sign(previous)
        return p
