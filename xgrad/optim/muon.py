"""Muon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import average
from xgrad.support.hints import shown

_ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    r"""Momentum with orthogonalized steps, for the matrices of hidden layers [1]_.

    With the gradient G of a parameter P of shape (m, n), λ the weight decay and μ the momentum:

    .. math::

        \begin{align*}
        B &\gets \mu\, B + (1 - \mu)\, G \\
        U &= (1 - \mu)\, G + \mu\, B \\
        P &\gets (1 - \mathrm{lr}\, \lambda)\, P - \mathrm{lr}\, r \operatorname{orthogonal}(U) \\
        r &= \sqrt{\max(1, m / n)}
        \end{align*}

    Without `nesterov`, U is B. With "match_rms_adamw" [2]_, :math:`r = 0.2 \sqrt{\max(m, n)}`.

    The nearest orthogonal matrix is approximated by Newton-Schulz steps

    .. math:: X \gets a\, X + (b\, A + c\, A^2)\, X, \quad A = X X^\top

    from :math:`X = U / \max(\lVert U \rVert, \varepsilon)` on. With the default coefficients, the
    singular values end between 0.7 and 1.2. The steps are computed in the dtype of the parameter;
    PyTorch computes them in bfloat16.

    Other parameters, such as biases, embeddings and the last layer, need another optimizer: see the
    example.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        Parameters with two axes, or groups of them: see `Optimizer`.
    lr : float, default 1e-3
        The learning rate.
    weight_decay : float, default 0.1
        λ, decoupled from the gradient.
    momentum : float, default 0.95
        μ.
    nesterov : bool, default True
        Whether to use Nesterov's momentum.
    ns_coefficients : tuple of float, default (3.4445, -4.775, 2.0315)
        a, b and c.
    eps : float, default 1e-7
        ε.
    ns_steps : int, default 5
        The number of Newton-Schulz steps.
    adjust_lr_fn : {None, "original", "match_rms_adamw"}, default None
        The choice of r; None is "original".

    Raises
    ------
    TypeError, ValueError
        As for `Optimizer`, and if an option is out of range, or a parameter does not have two axes.

    References
    ----------
    .. [1] K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
    .. [2] J. Liu et al., "Muon is scalable for LLM training", arXiv:2502.16982, section 2.2.

    Examples
    --------
    >>> import xgrad
    >>> model = xgrad.nn.MLP([4, 8, 2])
    >>> matrices = [p for p in model.parameters() if p.ndim == 2]
    >>> others = [p for p in model.parameters() if p.ndim != 2]
    >>> optimizers = xgrad.optim.Muon(matrices, lr=0.02), xgrad.optim.AdamW(others, lr=1e-3)
    >>> model(xgrad.ones((3, 4))).sum().backward()
    >>> for optimizer in optimizers:
    ...     optimizer.step()
    """

    required_state = frozenset({"momentum_buffer"})
    ranges = ("lr", "weight_decay", "momentum", "eps")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "eps": eps,
        }
        super().__init__(
            params,
            defaults
            | {
                "ns_coefficients": ns_coefficients,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option is out of range, or a parameter is not a matrix."""
        super().check(options)
        steps, coefficients, adjustment = (
            options[key] for key in ("ns_steps", "ns_coefficients", "adjust_lr_fn")
        )
        if not isinstance(steps, int) or not 0 <= steps < 100:
            raise ValueError(
                f"Muon: expected ns_steps to be an int from 0 to 99, got {shown(steps)}"
            )
        if not isinstance(coefficients, (tuple, list)) or len(coefficients) != 3:
            raise ValueError(
                f"Muon: expected ns_coefficients to be three numbers, got {shown(coefficients)}"
            )
        if adjustment not in _ADJUSTMENTS:
            raise ValueError(
                f"Muon: expected adjust_lr_fn to be one of {_ADJUSTMENTS}, got {shown(adjustment)}"
            )
        for i, p in enumerate(options["params"]):
            if getattr(p, "ndim", 2) != 2:
                raise ValueError(
                    f"Muon: expected parameters with two axes, got shape {p.shape} at {i}: give it"
                    " to another optimizer"
                )

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of one matrix."""
        lr, momentum, (rows, columns) = options["lr"], options["momentum"], p.shape
        if not state:
            state["momentum_buffer"] = xp.zeros_like(p)
        buffer = state["momentum_buffer"]
        average(buffer, g, momentum)
        step = (1 - momentum) * g + momentum * buffer if options["nesterov"] else buffer
        step = orthogonalize(
            xp, step, options["ns_coefficients"], options["ns_steps"], options["eps"]
        )
        if options["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * max(rows, columns) ** 0.5
        else:
            ratio = max(1, rows / columns) ** 0.5
        p *= 1 - lr * options["weight_decay"]
        p -= (lr * ratio) * step
        return p


def orthogonalize(
    xp: Any, x: Any, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Any:
    """Return approximately the nearest matrix with orthonormal rows or columns.

    It is computed by Newton-Schulz steps: see `Muon`.
    """
    (a, b, c), tall = coefficients, x.shape[0] > x.shape[1]
    x = xp.matrix_transpose(x) if tall else x  # so that `gram` is small
    norm = xp.sqrt(xp.sum(x * x))
    x = x / xp.where(norm < eps, xp.full_like(norm, eps), norm)
    done = 0
    while done < steps:  # not range(steps): a comparison becomes a condition of a captured step
        done += 1
        gram = xp.matmul(x, xp.matrix_transpose(x))
        x = a * x + xp.matmul(b * gram + c * xp.matmul(gram, gram), x)
    return xp.matrix_transpose(x) if tall else x
