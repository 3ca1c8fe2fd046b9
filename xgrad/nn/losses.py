"""Losses as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from xgrad.core.tensor import Tensor
from xgrad.nn import functional as F
from xgrad.nn.module import Module
from xgrad.ops.loss_reductions import check_options
from xgrad.ops.margin_losses import check_distance


class _Loss(Module):
    """The base class of losses: a function of tensors and options, which are attributes.

    Weights among the options are buffers.
    """

    function: ClassVar[Callable[..., Tensor]]
    options: tuple[str, ...]

    def __new__(cls, *args: Any, **options: Any) -> Any:
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
    """The cross-entropy between softmax probabilities and classes or probabilities, in nats.

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
    """The negative logarithm of the probability of classes: see `functional.nll_loss`.

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
    """The absolute error, smooth near 0: see `functional.smooth_l1_loss`.

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
    """Half the squared error, linear beyond `delta`: see `functional.huber_loss`.

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
    """The binary cross-entropy of logits: see `functional.binary_cross_entropy_with_logits`.

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
    """The Kullback-Leibler divergence: see `functional.kl_div`.

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

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.KLDivLoss("batchmean")(xgrad.asarray([[-1.0, -2.0]]), xgrad.asarray([[0.0, 1.0]]))
    Tensor(2.)
    """

    function = staticmethod(F.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)


class BCELoss(_Loss):
    """The binary cross-entropy of probabilities: see `functional.binary_cross_entropy`.

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
    """The negative log-likelihood of counts: see `functional.poisson_nll_loss`.

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
    """The negative log-likelihood of normal distributions: see `functional.gaussian_nll_loss`.

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

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GaussianNLLLoss()(xgrad.zeros(3), xgrad.ones(3), xgrad.ones(3))
    Tensor(0.5)
    """

    function = staticmethod(F.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(full=full, eps=eps, reduction=reduction)


class HingeEmbeddingLoss(_Loss):
    """The distances of similar pairs, and a hinge loss for dissimilar pairs.

    See `functional.hinge_embedding_loss`.

    Parameters
    ----------
    margin : float, default 1
        The distance from which the loss of dissimilar pairs is 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.HingeEmbeddingLoss()(xgrad.asarray([0.25]), xgrad.asarray([-1]))
    Tensor(0.75)
    """

    function = staticmethod(F.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, *, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class CosineEmbeddingLoss(_Loss):
    """A loss of the cosine between two vectors: see `functional.cosine_embedding_loss`.

    Parameters
    ----------
    margin : float, default 0
        The cosine up to which the loss of dissimilar pairs is 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes do not fit.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 0.0]])
    >>> xgrad.nn.CosineEmbeddingLoss()(x, xgrad.asarray([[0.0, 1.0]]), xgrad.asarray([1]))
    Tensor(1.)
    """

    function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class MarginRankingLoss(_Loss):
    """A hinge loss of score differences: see `functional.margin_ranking_loss`.

    Parameters
    ----------
    margin : float, default 0
        The difference from which the loss is 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.MarginRankingLoss()(xgrad.zeros(3), xgrad.ones(3), xgrad.ones(3))
    Tensor(1.)
    """

    function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, *, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class SoftMarginLoss(_Loss):
    """The cross-entropy of the classes 1 and -1: see `functional.soft_margin_loss`.

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

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.SoftMarginLoss()(xgrad.zeros(2), xgrad.asarray([1, -1]))
    Tensor(0.6931472)
    """

    function = staticmethod(F.soft_margin_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class TripletMarginLoss(_Loss):
    """A hinge loss of the difference of two distances: see `functional.triplet_margin_loss`.

    Parameters
    ----------
    margin : float, default 1
        The difference of the distances from which the loss is 0; above 0.
    p : float, default 2
        The order of the norm.
    eps : float, default 1e-6
        Added to each difference, 0 or more.
    swap : bool, default False
        Whether the smaller of the negative's distances to the anchor and the positive counts.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.zeros((1, 2))
    >>> xgrad.nn.TripletMarginLoss()(x, x, x)
    Tensor(1.)
    """

    function = staticmethod(F.triplet_margin_loss)

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)


class MultiMarginLoss(_Loss):
    """A hinge loss of class scores: see `functional.multi_margin_loss`.

    Parameters
    ----------
    p : {1, 2}, default 1
        The power of the hinge.
    margin : float, default 1
        The difference of scores from which the loss is 0.
    weight : Tensor, optional
        The weight of each class, of shape (classes,); a buffer.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError, TypeError, IndexError
        In the call, as for `functional.multi_margin_loss`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.MultiMarginLoss()(xgrad.asarray([[0.5, 0.0, 2.0]]), xgrad.asarray([0]))
    Tensor(1.)
    """

    function = staticmethod(F.multi_margin_loss)

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        *,
        reduction: str = "mean",
    ) -> None:
        super().__init__(p=p, margin=margin, weight=weight, reduction=reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """The cross-entropy of several labels per sample.

    See `functional.multilabel_soft_margin_loss`.

    Parameters
    ----------
    weight : Tensor, optional
        The weight of each class, of shape (classes,); a buffer.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes do not fit.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.MultiLabelSoftMarginLoss()(xgrad.zeros((1, 3)), xgrad.ones((1, 3)))
    Tensor(0.6931472)
    """

    function = staticmethod(F.multilabel_soft_margin_loss)

    def __init__(self, weight: Tensor | None = None, *, reduction: str = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)


class MultiLabelMarginLoss(_Loss):
    """A hinge loss of several classes per sample: see `functional.multilabel_margin_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    ValueError
        If the reduction is unknown; in the call, if the shapes do not fit.
    TypeError, IndexError
        In the call, if the target has no classes.

    Examples
    --------
    >>> import xgrad
    >>> loss = xgrad.nn.MultiLabelMarginLoss()
    >>> loss(xgrad.asarray([[0.5, 0.0, 2.0]]), xgrad.asarray([[2, -1, 0]]))
    Tensor(0.)
    """

    function = staticmethod(F.multilabel_margin_loss)

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance.

    See `functional.triplet_margin_with_distance_loss`.

    Parameters
    ----------
    distance_function : callable, optional
        A function of two tensors that returns their distances; by default
        `functional.pairwise_distance`.
    margin : float, default 1
        The difference of the distances from which the loss is 0.
    swap : bool, default False
        Whether to use the smaller of the negative's distances.
    reduction : {"mean", "sum", "none"}, default "mean"
        The reduction of the losses.

    Raises
    ------
    TypeError, ValueError
        If an option has the wrong type or is out of range.
    ValueError
        In the call, if the shapes differ.

    Examples
    --------
    >>> import xgrad
    >>> loss = xgrad.nn.TripletMarginWithDistanceLoss(
    ...     distance_function=xgrad.nn.PairwiseDistance(p=1.0, eps=0.0)
    ... )
    >>> loss(xgrad.zeros((1, 2)), xgrad.zeros((1, 2)), xgrad.asarray([[0.5, 0.25]]))
    Tensor(0.25)
    """

    function = staticmethod(F.triplet_margin_with_distance_loss)

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin=margin, swap=swap, reduction=reduction)
        name = type(self).__name__
        self.distance_function = check_distance(name, distance_function)
        self.options = (*self.options, "distance_function")
