"""Adafactor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from xgrad.core.tensor import Tensor
from xgrad.optim.flat import State
from xgrad.optim.optimizer import Optimizer, Params
from xgrad.optim.rules import Implementation, average, check_number, check_range
from xgrad.support.hints import shown


class Adafactor(Optimizer):
    r"""Adam without momentum, whose second moments of a matrix are a row and a column [1]_.

    The state of a matrix of shape (m, n) has m + n numbers. With the gradient G of a parameter P, λ
    the weight decay, t counting the steps of P, δ the `beta2_decay`, and rms the root mean square:

    .. math::

        \begin{align*}
        \beta &= 1 - t^\delta, \quad
            s = \max(\varepsilon_2, \operatorname{rms}(P))\, \min(\mathrm{lr}, 1 / \sqrt{t}) \\
        P &\gets (1 - \mathrm{lr}\, \lambda)\, P \\
        r_i &\gets \beta\, r_i + (1 - \beta)\, \operatorname{mean}_j (G_{ij}^2) \\
        c_j &\gets \beta\, c_j + (1 - \beta)\, \operatorname{mean}_i (G_{ij}^2) \\
        V_{ij} &= r_i c_j / \max(\operatorname{mean}(r), \varepsilon_1) \\
        U &= G / \sqrt{\max(V, \varepsilon_1^2)} \\
        P &\gets P - s\, U / \max(1, \operatorname{rms}(U) / d)
        \end{align*}

    i and j are the last two axes. For parameters with fewer axes, V is the running mean of G²
    itself. The equations are PyTorch's, which differ from the paper in where ε1 is added.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters, or groups of them: see `Optimizer`.
    lr : float, default 0.01
        The largest learning rate, relative to the size of the parameter.
    beta2_decay : float, default -0.8
        δ, 0 or less.
    eps : tuple of float, default (None, 1e-3)
        ε1 and ε2. If ε1 is None, it is the ``eps`` of the dtype.
    d : float, default 1
        The largest root mean square of U, 1 or more.
    weight_decay : float, default 0
        λ, decoupled from the gradient.
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
    .. [1] N. Shazeer, M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
       ICML 2018, algorithms 4 and 5.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.Linear(100, 50)
    >>> optimizer = xgrad.optim.Adafactor(layer.parameters())
    >>> layer(xgrad.ones((2, 100))).sum().backward()
    >>> optimizer.step()
    >>> state = optimizer.state[layer.weight]
    >>> layer.weight.shape, state["row_var"].shape, state["col_var"].shape
    ((50, 100), (50, 1), (1, 100))
    """

    required_state = frozenset({"step"})
    ranges = ("lr", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, implementation)

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option is out of range."""
        super().check(options)
        eps = options["eps"]
        check_number("Adafactor", "beta2_decay", options["beta2_decay"], highest=0.0)
        check_number("Adafactor", "d", options["d"], lowest=1.0)
        if not isinstance(eps, (tuple, list)) or len(eps) != 2:
            raise ValueError(
                f"Adafactor: expected eps to be a number or None, and a number, got {shown(eps)}"
            )
        if eps[0] is not None:
            check_range("Adafactor", "eps[0]", eps[0])
        check_range("Adafactor", "eps[1]", eps[1])

    def state_shapes(self, p: Tensor) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the arrays in the state of a parameter."""
        if p.ndim < 2:
            return {"variance": p.shape}
        *first, rows, columns = p.shape
        return {"row_var": (*first, rows, 1), "col_var": (*first, 1, columns)}

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of one parameter."""
        (eps1, eps2), lr = options["eps"], options["lr"]
        eps1 = float(xp.finfo(p.dtype).eps) if eps1 is None else eps1
        factored = len(p.shape) > 1
        if not state:
            state["step"] = 0
            if factored:
                # sums only for their shapes, also of an empty axis
                state["row_var"] = xp.zeros_like(xp.sum(p, axis=-1, keepdims=True))
                state["col_var"] = xp.zeros_like(xp.sum(p, axis=-2, keepdims=True))
            else:
                state["variance"] = xp.zeros_like(p)
        state["step"] += 1
        if 0 in p.shape:  # no mean
            return p
        step = state["step"]
        decay = 1 - step ** options["beta2_decay"]
        scale = at_least(xp, root_mean_square(xp, p), eps2) * min(lr, step**-0.5)
        if options["weight_decay"]:
            p *= 1 - lr * options["weight_decay"]
        square = g * g
        if factored:
            rows, columns = state["row_var"], state["col_var"]
            average(rows, xp.mean(square, axis=-1, keepdims=True), decay)
            average(columns, xp.mean(square, axis=-2, keepdims=True), decay)
            size = at_least(xp, xp.mean(rows, axis=-2, keepdims=True), eps1)
            variance = rows * columns / size
        else:
            variance = state["variance"]
            average(variance, square, decay)
        change = g / xp.sqrt(at_least(xp, variance, eps1 * eps1))
        scale = scale / at_least(xp, root_mean_square(xp, change) / options["d"], 1.0)
        p += (scale if options["maximize"] else -scale) * change
        return p


def root_mean_square(xp: Any, x: Any) -> Any:
    """Return the square root of the mean square of all elements."""
    return xp.sqrt(xp.mean(x * x))


def at_least(xp: Any, x: Any, low: Any) -> Any:
    """Return the larger of an array and a number, in the array's dtype."""
    return xp.maximum(x, xp.full_like(x, low))
