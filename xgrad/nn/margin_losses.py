"""Losses with a margin, and of pairs and triplets of vectors, as modules."""

from __future__ import annotations

from collections.abc import Callable

from xgrad.core.tensor import Tensor
from xgrad.nn import functional as F
from xgrad.nn.losses import _Loss
from xgrad.ops.margin_losses import check_distance


class HingeEmbeddingLoss(_Loss):
    r"""The distances of similar pairs, and a hinge loss for dissimilar pairs.

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

    Notes
    -----
    .. math::

        y = \begin{cases}
            x & \text{if } t = 1 \\
            \max(0, m - x) & \text{if } t = -1
        \end{cases}

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction; :math:`m` is the margin.

    Examples
    --------
    >>> import xgrad
    >>> target = xgrad.asarray([1, -1])
    >>> xgrad.nn.functional.hinge_embedding_loss(
    ...     xgrad.asarray([0.25, 0.25]), target, reduction="none"
    ... )
    Tensor([0.25, 0.75])

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
    r"""A loss of the cosine between two vectors: see `functional.cosine_embedding_loss`.

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

    Notes
    -----
    .. math::

        y = \begin{cases}
            1 - c & \text{if } t = 1 \\
            \max(0, c - m) & \text{if } t = -1
        \end{cases}
        \qquad c = \frac{x_1 \cdot x_2}{\lVert x_1 \rVert\, \lVert x_2 \rVert}

    Here, :math:`t` is an element of `target`, and :math:`m` the margin.

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
    r"""A hinge loss of score differences: see `functional.margin_ranking_loss`.

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

    Notes
    -----
    .. math:: y = \max(0, u), \quad u = m - t\, (x_1 - x_2)

    Here, :math:`t` is an element of `target`, and :math:`m` the margin.

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
    r"""The cross-entropy of the classes 1 and -1: see `functional.soft_margin_loss`.

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
    .. math:: y = \ln(1 + e^{-t x})

    The formula is for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.soft_margin_loss(
    ...     xgrad.asarray([0.0, 200.0]), xgrad.asarray([1, -1]), reduction="none"
    ... )
    Tensor([  0.6931472, 200.       ])

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
    r"""A hinge loss of the difference of two distances: see `functional.triplet_margin_loss`.

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

    Notes
    -----
    .. math:: y = \max(0, m + d(a, p) - d(a, n)), \quad
        d(u, v) = \lVert u - v + \varepsilon \rVert_p

    Here, :math:`a`, :math:`p` and :math:`n` are rows of the inputs, and :math:`m` is the margin.

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
    r"""A hinge loss of class scores: see `functional.multi_margin_loss`.

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

    Notes
    -----
    .. math:: y = \frac{w_t}{C} \sum_{c \ne t} \max(0, m - x_t + x_c)^p

    The formula is for a row :math:`x` of `input` and its class :math:`t`, before the reduction;
    :math:`m` is the margin, and :math:`w_t` the weight of the class.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.multi_margin_loss(
    ...     xgrad.asarray([[0.5, 0.0, 2.0]]), xgrad.asarray([0])
    ... )
    Tensor(1.)

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
    r"""The cross-entropy of several labels per sample.

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

    Notes
    -----
    .. math:: y = -\frac{1}{C} \sum_c \left(t_c \ln(\sigma(x_c)) +
        (1 - t_c) \ln(1 - \sigma(x_c))\right)

    The formula is for rows :math:`x` of `input` and :math:`t` of `target`, before the reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.multilabel_soft_margin_loss(
    ...     xgrad.zeros((1, 3)), xgrad.asarray([[1, 0, 1]])
    ... )
    Tensor(0.6931472)

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
    r"""A hinge loss of several classes per sample: see `functional.multilabel_margin_loss`.

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

    Notes
    -----
    .. math:: y = \frac{1}{C} \sum_{s \in T} \sum_{c \notin T} \max(0, 1 - x_s + x_c)

    The formula is for a row :math:`x` of `input` and its set :math:`T` of classes, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> x, target = xgrad.asarray([[0.5, 0.0, 2.0]]), xgrad.asarray([[2, -1, 0]])
    >>> xgrad.nn.functional.multilabel_margin_loss(x, target)
    Tensor(0.)

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
