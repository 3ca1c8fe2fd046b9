"""Losses as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from xgrad.core.tensor import Tensor
from xgrad.nn import functional as F
from xgrad.nn.module import Module
from xgrad.ops.loss_reductions import check_options


class _Loss(Module):
    """The base class of losses: a function of tensors and options, which are attributes.

    Weights among the options are buffers.
    """

    function: ClassVar[Callable[..., Tensor]]
    options: tuple[str, ...]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse input and target, which are arguments of the module that is made."""
        if len(args) > 1 and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
            raise TypeError(
                f"{cls.__name__}: expected options, got two tensors: write"
                f" {cls.__name__}()(input, target)"
            )
        return super().__new__(cls)

    def __init__(self, **options: Any) -> None:
        super().__init__()
        vars(self)["options"] = tuple(options)
        tensors = ("weight", "pos_weight")
        numbers = {name: value for name, value in options.items() if name not in tensors}
        check_options(type(self).function.__name__, type(self).__name__, **numbers)
        for name, value in options.items():
            if name in tensors:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Tensor, **named_inputs: Tensor) -> Tensor:
        """Return the value of the function for its tensors."""
        named = vars(self)
        return type(self).function(
            *inputs, **named_inputs, **{name: named[name] for name in self.options}
        )


class CrossEntropyLoss(_Loss):
    r"""The cross-entropy between softmax probabilities and classes or probabilities, in nats.

    See `functional.cross_entropy`.

    Parameters
    ----------
    weight : Tensor, optional
        The weight of each class, of shape (classes,); a buffer.
    ignore_index : int, optional
        The class of the targets to ignore; by default -100, which must be given explicitly on
        ``cuda``.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.
    label_smoothing : float, default 0
        The share of the target probability that is distributed evenly over all
        classes, from 0 to 1.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError, TypeError, IndexError
        In the call, as for `functional.cross_entropy`.

    Notes
    -----
    .. math:: y = -\sum_c t_c \ln(p_c), \quad p_c = \frac{e^{x_c}}{\sum_k e^{x_k}}

    The formula is for a row :math:`x` of `input`, before the reduction; :math:`t` are the target
    probabilities, for a class 1 at it and else 0. A weight :math:`w_c` multiplies :math:`t_c`, and
    smoothing replaces :math:`t_c` by :math:`(1 - \varepsilon)\, t_c + \varepsilon / C`.

    Examples
    --------
    >>> import xgrad
    >>> logits = xgrad.asarray([[0.0, 0.0], [1e4, -1e4]])
    >>> xgrad.nn.functional.cross_entropy(logits, xgrad.asarray([0, 1]), reduction="none")
    Tensor([6.931472e-01, 2.000000e+04])

    Examples
    --------
    >>> import xgrad
    >>> loss = xgrad.nn.CrossEntropyLoss()
    >>> loss(xgrad.zeros((5, 2)), xgrad.asarray([0, 1, 0, 1, 1]))
    Tensor(0.6931472)
    """

    function = staticmethod(F.cross_entropy)

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )


class NLLLoss(_Loss):
    r"""The negative logarithm of the probability of classes: see `functional.nll_loss`.

    Parameters
    ----------
    weight : Tensor, optional
        The weight of each class, of shape (classes,); a buffer.
    ignore_index : int, optional
        The class of the targets to ignore; by default -100, which must be given explicitly on
        ``cuda``.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError, TypeError, IndexError
        In the call, as for `functional.nll_loss`.

    Notes
    -----
    .. math:: y = -w_t\, x_t

    The formula is for a row :math:`x` of `input` and its class :math:`t`, before the reduction.

    Examples
    --------
    >>> import xgrad
    >>> logs = xgrad.asarray([[-1.0, -2.0], [-3.0, -4.0]])
    >>> xgrad.nn.functional.nll_loss(logs, xgrad.asarray([0, 1]))
    Tensor(2.5)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.NLLLoss()(xgrad.asarray([[-1.0, -2.0]]), xgrad.asarray([1]))
    Tensor(2.)
    """

    function = staticmethod(F.nll_loss)

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)


class MSELoss(_Loss):
    """The squared error: see `functional.mse_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Notes
    -----
    .. math:: y = (x - t)^2

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.mse_loss(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.0, 4.0]))
    Tensor(2.)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.MSELoss("sum")(xgrad.ones(3), xgrad.zeros(3))
    Tensor(3.)
    """

    function = staticmethod(F.mse_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class L1Loss(_Loss):
    """The absolute error: see `functional.l1_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Notes
    -----
    .. math:: y = |x - t|

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.l1_loss(xgrad.asarray([1.0, 2.0]), xgrad.asarray([1.0, 4.0]))
    Tensor(1.)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.L1Loss()(xgrad.ones(3), xgrad.zeros(3))
    Tensor(1.)
    """

    function = staticmethod(F.l1_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class SmoothL1Loss(_Loss):
    r"""The absolute error, smooth near 0: see `functional.smooth_l1_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.
    beta : float, default 1
        The error from which the loss is linear, 0 or more.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Notes
    -----
    .. math::

        y = \begin{cases}
            r^2 / (2 \beta) & \text{if } |r| \le \beta \\
            |r| - \beta / 2 & \text{otherwise}
        \end{cases}
        \qquad r = x - t

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.smooth_l1_loss(
    ...     xgrad.asarray([1.0, 3.0]), xgrad.zeros(2), beta=2.0, reduction="none"
    ... )
    Tensor([0.25, 2.  ])

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.SmoothL1Loss()(xgrad.ones(3), xgrad.zeros(3))
    Tensor(0.5)
    """

    function = staticmethod(F.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction, beta=beta)


class HuberLoss(_Loss):
    r"""Half the squared error, linear beyond `delta`: see `functional.huber_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.
    delta : float, default 1
        The error from which the loss is linear, above 0.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Notes
    -----
    .. math::

        y = \begin{cases}
            r^2 / 2 & \text{if } |r| \le \delta \\
            \delta\, (|r| - \delta / 2) & \text{otherwise}
        \end{cases}
        \qquad r = x - t

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.huber_loss(
    ...     xgrad.asarray([0.5, 3.0]), xgrad.zeros(2), reduction="none"
    ... )
    Tensor([0.125, 2.5  ])

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.HuberLoss()(xgrad.ones(3), xgrad.zeros(3))
    Tensor(0.5)
    """

    function = staticmethod(F.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class BCEWithLogitsLoss(_Loss):
    r"""The binary cross-entropy of logits: see `functional.binary_cross_entropy_with_logits`.

    Parameters
    ----------
    weight : Tensor, optional
        The weight of each loss, of a shape that broadcasts; a buffer.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.
    pos_weight : Tensor, optional
        The weight of the positive class, of a shape that broadcasts; a buffer.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Notes
    -----
    .. math:: y = -p\, t \ln(\sigma(x)) - (1 - t) \ln(1 - \sigma(x))

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction; :math:`p` is `pos_weight`, or 1.

    Examples
    --------
    >>> import xgrad
    >>> logits, target = xgrad.asarray([0.0, 100.0]), xgrad.asarray([1.0, 0.0])
    >>> xgrad.nn.functional.binary_cross_entropy_with_logits(
    ...     logits, target, reduction="none"
    ... )
    Tensor([  0.6931472, 100.       ])

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.BCEWithLogitsLoss()(xgrad.zeros(3), xgrad.ones(3))
    Tensor(0.6931472)
    """

    function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight=weight, reduction=reduction, pos_weight=pos_weight)


class KLDivLoss(_Loss):
    r"""The Kullback-Leibler divergence: see `functional.kl_div`.

    Parameters
    ----------
    reduction : {"mean", "sum", "batchmean", "none"}, default "mean"
        The reduction of the losses; "batchmean" gives the divergence.
    log_target : bool, default False
        Whether the target consists of logarithms.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Notes
    -----
    .. math:: y = t\, (\ln(t) - x)

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.kl_div(
    ...     xgrad.asarray([[-1.0, -2.0]]),
    ...     xgrad.asarray([[0.0, 1.0]]),
    ...     reduction="batchmean",
    ... )
    Tensor(2.)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.KLDivLoss("batchmean")(
    ...     xgrad.asarray([[-1.0, -2.0]]), xgrad.asarray([[0.0, 1.0]])
    ... )
    Tensor(2.)
    """

    function = staticmethod(F.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)


class BCELoss(_Loss):
    r"""The binary cross-entropy of probabilities: see `functional.binary_cross_entropy`.

    Parameters
    ----------
    weight : Tensor, optional
        The weight of each loss, of a shape that broadcasts; a buffer.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ, or an input is not from 0 to 1.

    Notes
    -----
    .. math:: y = -t \ln(x) - (1 - t) \ln(1 - x)

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> probabilities, target = xgrad.asarray([0.5, 0.0]), xgrad.asarray([1.0, 1.0])
    >>> xgrad.nn.functional.binary_cross_entropy(probabilities, target, reduction="none")
    Tensor([  0.6931472, 100.       ])

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.BCELoss()(xgrad.asarray([0.5]), xgrad.ones(1))
    Tensor(0.6931472)
    """

    function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)


class PoissonNLLLoss(_Loss):
    r"""The negative log-likelihood of counts: see `functional.poisson_nll_loss`.

    Parameters
    ----------
    log_input : bool, default True
        Whether the input consists of logarithms of rates instead of rates.
    full : bool, default False
        Whether to add an approximation of ``log(target!)``.
    eps : float, default 1e-8
        Added to a rate before the logarithm is taken, 0 or more.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Notes
    -----
    .. math:: y = e^x - t x, \quad \text{or} \quad y = x - t \ln(x + \varepsilon)

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction, with `log_input` and without it; `full` adds a function of :math:`t`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.poisson_nll_loss(
    ...     xgrad.asarray([0.0, 0.0]), xgrad.asarray([1.0, 5.0])
    ... )
    Tensor(1.)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.PoissonNLLLoss()(xgrad.zeros(3), xgrad.ones(3))
    Tensor(1.)
    """

    function = staticmethod(F.poisson_nll_loss)

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(log_input=log_input, full=full, eps=eps, reduction=reduction)


class GaussianNLLLoss(_Loss):
    r"""The negative log-likelihood of normal distributions: see `functional.gaussian_nll_loss`.

    The arguments of a call are the means, the samples and the variances.

    Parameters
    ----------
    full : bool, default False
        Whether to add the constant ``log(2 pi) / 2``.
    eps : float, default 1e-6
        The smallest variance, 0 or more.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes do not fit, or a variance is negative.

    Notes
    -----
    .. math:: y = \frac{1}{2} \left(\ln(v) + \frac{(x - t)^2}{v}\right)

    The formula is for elements :math:`x` of `input`, :math:`t` of `target` and :math:`v` of
    `var`, before the reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.gaussian_nll_loss(
    ...     xgrad.zeros(2), xgrad.asarray([1.0, 2.0]), xgrad.ones(2)
    ... )
    Tensor(1.25)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GaussianNLLLoss()(xgrad.zeros(3), xgrad.ones(3), xgrad.ones(3))
    Tensor(0.5)
    """

    function = staticmethod(F.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(full=full, eps=eps, reduction=reduction)
