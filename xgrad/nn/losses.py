"""Losses as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from xgrad.core.tensor import Tensor
from xgrad.nn import functional as F
from xgrad.nn.module import Module
from xgrad.support.docstrings import by_name, documented

_SHARED = by_name(
    'reduction : {"mean", "sum", "none"}, default "mean" -- The reduction of the losses.',
    "weight : Tensor, optional -- Of each class, of shape (classes,); a buffer.",
    "ignore_index : int, optional -- The class of targets that do not count; by default -100, which on ``cuda`` has to "
    "be given.",
)


class _Loss(Module):
    """A function of tensors and of options, which are attributes of their names; tensors among them are buffers."""

    function: ClassVar[Callable[..., Tensor]]
    options: tuple[str, ...]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        vars(self)["options"] = tuple(options)
        for name, value in options.items():
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of an input for a target."""
        named = vars(self)
        return type(self).function(input, target, **{name: named[name] for name in self.options})


@documented(shared=_SHARED)
class CrossEntropyLoss(_Loss):
    """The cross-entropy between softmax probabilities and classes or probabilities, in nats.

    See `functional.cross_entropy`.

    weight, ignore_index, reduction
    label_smoothing : float, default 0 -- The share of the target probability that is distributed evenly over all
        classes, from 0 to 1.
    raises ValueError, TypeError, IndexError -- In the call, as `functional.cross_entropy`.

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
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


@documented(shared=_SHARED)
class NLLLoss(_Loss):
    """The negative logarithm of the probability of classes: see `functional.nll_loss`.

    weight, ignore_index, reduction
    raises ValueError, TypeError, IndexError -- In the call, as `functional.nll_loss`.

    >>> xgrad.nn.NLLLoss()(xgrad.asarray([[-1.0, -2.0]]), xgrad.asarray([1]))
    Tensor(2.)
    """

    function = staticmethod(F.nll_loss)

    def __init__(
        self, weight: Tensor | None = None, *, ignore_index: int | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)


@documented(shared=_SHARED)
class MSELoss(_Loss):
    """The squared error: see `functional.mse_loss`.

    reduction
    raises ValueError -- In the call, if the shapes differ, or `reduction` is unknown.

    >>> xgrad.nn.MSELoss("sum")(xgrad.ones(3), xgrad.zeros(3))
    Tensor(3.)
    """

    function = staticmethod(F.mse_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


@documented(shared=_SHARED)
class L1Loss(_Loss):
    """The absolute error: see `functional.l1_loss`.

    reduction
    raises ValueError -- In the call, if the shapes differ, or `reduction` is unknown.

    >>> xgrad.nn.L1Loss()(xgrad.ones(3), xgrad.zeros(3))
    Tensor(1.)
    """

    function = staticmethod(F.l1_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


@documented(shared=_SHARED)
class SmoothL1Loss(_Loss):
    """The absolute error, smooth near 0: see `functional.smooth_l1_loss`.

    reduction
    beta : float, default 1 -- The error from which the loss is linear, 0 or more.
    raises ValueError -- In the call, if the shapes differ, `beta` is negative, or `reduction` is unknown.

    >>> xgrad.nn.SmoothL1Loss()(xgrad.ones(3), xgrad.zeros(3))
    Tensor(0.5)
    """

    function = staticmethod(F.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction, beta=beta)


@documented(shared=_SHARED)
class HuberLoss(_Loss):
    """Half the squared error, linear beyond `delta`: see `functional.huber_loss`.

    reduction
    delta : float, default 1 -- The error from which the loss is linear, above 0.
    raises ValueError -- In the call, if the shapes differ, `delta` is not above 0, or `reduction` is unknown.

    >>> xgrad.nn.HuberLoss()(xgrad.ones(3), xgrad.zeros(3))
    Tensor(0.5)
    """

    function = staticmethod(F.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


@documented(shared=_SHARED)
class BCEWithLogitsLoss(_Loss):
    """The cross-entropy of two classes: see `functional.binary_cross_entropy_with_logits`.

    weight : Tensor, optional -- Of each loss, of a shape that broadcasts; a buffer.
    reduction
    pos_weight : Tensor, optional -- Of the positive class, of a shape that broadcasts; a buffer.
    raises ValueError -- In the call, if the shapes differ, or `reduction` is unknown.

    >>> xgrad.nn.BCEWithLogitsLoss()(xgrad.zeros(3), xgrad.ones(3))
    Tensor(0.6931472)
    """

    function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(
        self, weight: Tensor | None = None, *, reduction: str = "mean", pos_weight: Tensor | None = None
    ) -> None:
        super().__init__(weight=weight, reduction=reduction, pos_weight=pos_weight)


@documented(shared=_SHARED)
class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence: see `functional.kl_div`.

    reduction : {"mean", "sum", "batchmean", "none"}, default "mean" -- The reduction; "batchmean" is the divergence.
    log_target : bool, default False -- Whether the target has logarithms.
    raises ValueError -- In the call, if the shapes differ, or `reduction` is unknown.

    >>> xgrad.nn.KLDivLoss("batchmean")(xgrad.asarray([[-1.0, -2.0]]), xgrad.asarray([[0.0, 1.0]]))
    Tensor(2.)
    """

    function = staticmethod(F.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)
