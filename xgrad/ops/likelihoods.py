"""Negative log-likelihood losses for Poisson and normal distributions."""

from __future__ import annotations

import math

from xgrad.backend.recording import check_true
from xgrad.core.arguments import as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops.elementwise import clip, exp, log, square
from xgrad.ops.loss_reductions import check_options, loss_inputs, reduce_losses
from xgrad.ops.manipulation import expand_dims
from xgrad.ops.precision import upcast
from xgrad.ops.searching import where
from xgrad.ops.statistical import all


@upcast
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    r"""Return the negative log-likelihood of Poisson counts, ``rate - target * log(rate)``.

    Parameters
    ----------
    input : Tensor
        The logarithms of the rates, or the rates, of any shape.
    target : Tensor
        The counts, of the shape of `input`.
    log_input : bool, default True
        Whether `input` holds logarithms.
    full : bool, default False
        Whether to add ``log(target!)`` for counts above 1, by Stirling's formula.
    eps : float, default 1e-8
        Added to a rate before its logarithm, 0 or more.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes differ, or `eps` or `reduction` is invalid.

    Notes
    -----
    .. math:: y = e^x - t x, \quad \text{or} \quad y = x - t \ln(x + \varepsilon)

    - Gradient for `input`: :math:`\bar y\, (e^x - t)`, or
      :math:`\bar y \left(1 - \frac{t}{x + \varepsilon}\right)`
    - Gradient for `target`: :math:`-\bar y\, x`, or :math:`-\bar y \ln(x + \varepsilon)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction, with `log_input` and without it; `full` adds a function of :math:`t`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.poisson_nll_loss(
    ...     xgrad.asarray([0.0, 0.0]), xgrad.asarray([1.0, 5.0])
    ... )
    Tensor(1.)
    """
    check_options("poisson_nll_loss", log_input=log_input, full=full, eps=eps)
    input, target = loss_inputs("poisson_nll_loss", reduction, input=input, target=target)
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        count = clip(target, 1)  # smaller counts may have no logarithm; it is not used
        stirling = count * log(count) - count + 0.5 * log(2 * math.pi * count)
        losses = losses + where(target > 1, stirling, 0)
    return reduce_losses(losses, reduction)


@upcast
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    r"""Return the normal negative log-likelihood, ``(log(var) + (input - target)**2 / var) / 2``.

    D. A. Nix, A. S. Weigend, "Estimating the mean and variance of the target probability
    distribution", ICNN, 1994.

    Parameters
    ----------
    input : Tensor
        The means, of any shape.
    target : Tensor
        The samples, of the shape of `input`.
    var : Tensor
        The variances, of the shape of `input`. Some lengths may be 1, or the last axis may be
        missing.
    full : bool, default False
        Whether to add the constant ``log(2 pi) / 2``.
    eps : float, default 1e-6
        The smallest variance, 0 or more. The gradient ignores this limit, so that variances can
        grow again.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of `input`.

    Raises
    ------
    ValueError
        If the shapes do not fit, `eps` or `reduction` is invalid, or a variance is negative. The
        variances are not checked on ``cuda``, where the check would have to synchronize.

    Notes
    -----
    .. math:: y = \frac{1}{2} \left(\ln(v) + \frac{(x - t)^2}{v}\right)

    - Gradient for `input`: :math:`\bar y\, \frac{x - t}{v}`
    - Gradient for `target`: :math:`\bar y\, \frac{t - x}{v}`
    - Gradient for `var`: :math:`\frac{\bar y}{2} \left(\frac{1}{v} - \frac{(x - t)^2}{v^2}\right)`

    The formulas are for elements :math:`x` of `input`, :math:`t` of `target` and :math:`v` of
    `var`, before the reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.gaussian_nll_loss(
    ...     xgrad.zeros(2), xgrad.asarray([1.0, 2.0]), xgrad.ones(2)
    ... )
    Tensor(1.25)
    """
    op = "gaussian_nll_loss"
    check_options(op, full=full, eps=eps)
    input, target = loss_inputs(op, reduction, input=input, target=target)
    var = as_tensor(op, "var", var)
    if var.ndim != input.ndim and var.shape == input.shape[:-1]:
        var = expand_dims(var, axis=-1)
    if var.ndim != input.ndim or any(
        m not in (1, n) for m, n in zip(var.shape, input.shape, strict=True)
    ):
        raise ValueError(
            f"{op}: expected var of the shape of input, {input.shape}, got {var.shape}"
        )
    backend, valid = var.device.backend, all(~(var < 0))
    if not backend.asynchronous and not check_true(valid.device, valid._data):
        raise ValueError(f"{op}: expected var of 0 or more, got negative numbers")
    var = var + (clip(var, eps) - var).detach()
    losses = (log(var) + square(input - target) / var) / 2
    return reduce_losses(losses + math.log(2 * math.pi) / 2 if full else losses, reduction)
