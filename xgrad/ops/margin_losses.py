"""Losses that are zero beyond a margin, and their smooth variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgrad.backend.recording import run_array_code
from xgrad.core.arguments import as_tensor, is_below
from xgrad.core.dtypes import int64
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import arange
from xgrad.ops.distances import cosine_similarity, pairwise_distance
from xgrad.ops.elementwise import clip, logical_and, logical_not, minimum, softplus
from xgrad.ops.indexing import take_along_axis
from xgrad.ops.loss_reductions import check_options, loss_inputs, reduce_losses
from xgrad.ops.losses import binary_cross_entropy_with_logits
from xgrad.ops.precision import upcast
from xgrad.ops.searching import where
from xgrad.ops.statistical import any, cumulative_sum, mean, sum
from xgrad.ops.tensor_conversion import astype
from xgrad.support.hints import shown


@upcast
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, *, reduction: str = "mean"
) -> Tensor:
    r"""Return the distance of similar pairs, and ``max(0, margin - distance)`` for others.

    Parameters
    ----------
    input : Tensor
        Distances, of any shape.
    target : Tensor
        1 for similar pairs and -1 for others, of the shape of `input`.
    margin : float, default 1
        The distance from which the loss of other pairs is 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes do not fit, or an option is invalid.

    Notes
    -----
    .. math::

        y = \begin{cases}
            x & \text{if } t = 1 \\
            \max(0, m - x) & \text{if } t = -1
        \end{cases}

    - Gradient for `input`: :math:`\bar y` if :math:`t = 1`, and :math:`-\bar y\, [x \le m]` if
      :math:`t = -1`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction; :math:`m` is the margin.

    Examples
    --------
    >>> import xgrad
    >>> target = xgrad.asarray([1, -1])
    >>> xgrad.nn.functional.hinge_embedding_loss(
    ...     xgrad.asarray([0.25, 0.25]), target, reduction="none"
    ... )
    Tensor([0.25, 0.75])
    """
    check_options("hinge_embedding_loss", margin=margin)
    input, target = loss_inputs("hinge_embedding_loss", reduction, input=input, target=target)
    losses = where(target != -1, input, 0) + where(target != 1, clip(margin - input, 0), 0)
    return reduce_losses(losses, reduction)


@upcast
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    r"""Return ``1 - cosine`` for similar vectors, and ``max(0, cosine - margin)`` for others.

    Parameters
    ----------
    input1, input2 : Tensor
        Of shape (batch, features), or (features,).
    target : Tensor
        1 for similar pairs and -1 for others, of shape (batch,), or ().
    margin : float, default 0
        The cosine up to which the loss of other pairs is 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of `target`.

    Raises
    ------
    ValueError
        If the shapes do not fit, or an option is invalid.

    Notes
    -----
    .. math::

        y = \begin{cases}
            1 - c & \text{if } t = 1 \\
            \max(0, c - m) & \text{if } t = -1
        \end{cases}
        \qquad c = \frac{x_1 \cdot x_2}{\lVert x_1 \rVert\, \lVert x_2 \rVert}

    - Gradient for `input1`: :math:`\bar c \left(\frac{x_2}{\lVert x_1 \rVert\, \lVert x_2 \rVert} -
      \frac{c\, x_1}{\lVert x_1 \rVert^2}\right)`
    - Gradient for `input2`: :math:`\bar c \left(\frac{x_1}{\lVert x_1 \rVert\, \lVert x_2 \rVert} -
      \frac{c\, x_2}{\lVert x_2 \rVert^2}\right)`

    Here, :math:`t` is an element of `target`, and :math:`m` the margin; :math:`\bar c` is
    :math:`-\bar y` if :math:`t = 1`, and :math:`\bar y\, [c \ge m]` if :math:`t = -1`.

    Examples
    --------
    >>> import xgrad
    >>> x, target = xgrad.asarray([[1.0, 0.0], [1.0, 0.0]]), xgrad.asarray([1, -1])
    >>> xgrad.nn.functional.cosine_embedding_loss(
    ...     x, xgrad.asarray([[0.0, 1.0], [2.0, 0.0]]), target, reduction="none"
    ... )
    Tensor([1., 1.])
    """
    op = "cosine_embedding_loss"
    check_options(op, margin=margin)
    input1, input2 = loss_inputs(op, reduction, input1=input1, input2=input2)
    target = as_tensor(op, "target", target)
    if input1.ndim not in (1, 2) or target.shape != input1.shape[:-1]:
        raise ValueError(
            f"{op}: expected inputs of shape (batch, features) and target of shape (batch,), got"
            f" {input1.shape} and {target.shape}"
        )
    cosine = cosine_similarity(input1, input2, axis=-1)
    losses = where(target == 1, 1 - cosine, 0) + where(target == -1, clip(cosine - margin, 0), 0)
    return reduce_losses(losses, reduction)


@upcast
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    r"""Return ``max(0, margin - target * (input1 - input2))``.

    Parameters
    ----------
    input1, input2 : Tensor
        Scores, of one shape.
    target : Tensor
        1 where `input1` should be larger and -1 where `input2` should be, of the same shape.
    margin : float, default 0
        The difference from which the loss is 0.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes do not fit, or an option is invalid.

    Notes
    -----
    .. math:: y = \max(0, u), \quad u = m - t\, (x_1 - x_2)

    - Gradient for `input1`: :math:`-\bar y\, t\, [u \ge 0]`
    - Gradient for `input2`: :math:`\bar y\, t\, [u \ge 0]`
    - Gradient for `target`: :math:`-\bar y\, (x_1 - x_2)\, [u \ge 0]`

    Here, :math:`t` is an element of `target`, and :math:`m` the margin.

    Examples
    --------
    >>> import xgrad
    >>> scores, target = xgrad.asarray([1.0, 3.0]), xgrad.asarray([1, -1])
    >>> xgrad.nn.functional.margin_ranking_loss(scores, xgrad.asarray([0.0, 1.0]), target)
    Tensor(1.)
    """
    check_options("margin_ranking_loss", margin=margin)
    input1, input2, target = loss_inputs(
        "margin_ranking_loss", reduction, input1=input1, input2=input2, target=target
    )
    return reduce_losses(clip(margin - target * (input1 - input2), 0), reduction)


@upcast
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    r"""Return ``log(1 + exp(-target * input))``.

    Parameters
    ----------
    input : Tensor
        Logits, of any shape.
    target : Tensor
        1 or -1, of the shape of `input`.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the inputs.

    Raises
    ------
    ValueError
        If the shapes do not fit, or an option is invalid.

    Notes
    -----
    .. math:: y = \ln(1 + e^{-t x})

    - Gradient for `input`: :math:`-\bar y\, t\, \sigma(-t x)`
    - Gradient for `target`: :math:`-\bar y\, x\, \sigma(-t x)`

    The formulas are for elements :math:`x` of `input` and :math:`t` of `target`, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.soft_margin_loss(
    ...     xgrad.asarray([0.0, 200.0]), xgrad.asarray([1, -1]), reduction="none"
    ... )
    Tensor([  0.6931472, 200.       ])
    """
    input, target = loss_inputs("soft_margin_loss", reduction, input=input, target=target)
    return reduce_losses(softplus(-target * input), reduction)


@upcast
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    r"""Return ``max(0, margin + distance(anchor, positive) - distance(anchor, negative))``.

    The distance is `pairwise_distance`.

    V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk, "Learning local feature descriptors with triplets
    and shallow convolutional neural networks", BMVC, 2016.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of one shape, (..., features).
    margin : float, default 1
        The difference of the distances from which the loss is 0; above 0.
    p : float, default 2
        The order of the norm.
    eps : float, default 1e-6
        Added to each difference, 0 or more.
    swap : bool, default False
        Whether to use the smaller of the negative's distances to `anchor` and `positive`.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of shape (...).

    Raises
    ------
    ValueError
        If the shapes differ, `margin` is not above 0, or an option is invalid.

    Notes
    -----
    .. math:: y = \max(0, m + d(a, p) - d(a, n)), \quad
        d(u, v) = \lVert u - v + \varepsilon \rVert_p

    Here, :math:`a`, :math:`p` and :math:`n` are rows of the inputs, and :math:`m` is the margin.

    Examples
    --------
    >>> import xgrad
    >>> anchor, negative = xgrad.asarray([[0.0, 0.0]]), xgrad.asarray([[0.5, 0.0]])
    >>> xgrad.nn.functional.triplet_margin_loss(anchor, anchor, negative, eps=0.0)
    Tensor(0.5)
    """
    op = "triplet_margin_loss"
    check_options(op, margin=margin, p=p, eps=eps, swap=swap)
    anchor, positive, negative = loss_inputs(
        op, reduction, anchor=anchor, positive=positive, negative=negative
    )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduce_losses(clip(margin + near - far, 0), reduction)


@upcast
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    r"""Return the mean of `binary_cross_entropy_with_logits` over classes.

    The classes do not exclude each other.

    Parameters
    ----------
    input : Tensor
        Logits, of shape (..., classes).
    target : Tensor
        1 for the classes that apply and 0 for others, of the same shape.
    weight : Tensor, optional
        The weight of each class, of shape (classes,).
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of shape (...).

    Raises
    ------
    ValueError
        If the shapes do not fit, or an option is invalid.

    Notes
    -----
    .. math:: y = -\frac{1}{C} \sum_c \left(t_c \ln(\sigma(x_c)) +
        (1 - t_c) \ln(1 - \sigma(x_c))\right)

    - Gradient for `input`: :math:`\frac{\bar y}{C}\, (\sigma(x_c) - t_c)`
    - Gradient for `target`: :math:`-\frac{\bar y}{C}\, x_c`

    The formulas are for rows :math:`x` of `input` and :math:`t` of `target`, before the reduction.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.multilabel_soft_margin_loss(
    ...     xgrad.zeros((1, 3)), xgrad.asarray([[1, 0, 1]])
    ... )
    Tensor(0.6931472)
    """
    op = "multilabel_soft_margin_loss"
    input, target = loss_inputs(op, reduction, input=input, target=target)
    if not input.ndim:
        raise ValueError(f"{op}: expected input of shape (..., classes), got ()")
    losses = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    return reduce_losses(mean(losses, axis=-1), reduction)


@upcast
def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    r"""Return a hinge loss of several classes that apply against all others.

    It is the sum of ``max(0, 1 - (input[y] - input[i]))`` over the classes y that apply and the
    classes i that do not, divided by the number of classes.

    Parameters
    ----------
    input : Tensor
        Scores, of shape (batch, classes) or (classes,).
    target : Tensor
        Integers, of the same shape: the classes that apply, up to the first -1.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of shape (batch,) or ().

    Raises
    ------
    ValueError
        If the shapes do not fit, or `reduction` is unknown.
    TypeError
        If `target` is not of integers.
    IndexError
        If a class is not below the number of classes; not checked on ``cuda``, where the check
        would synchronize.

    Notes
    -----
    .. math:: y = \frac{1}{C} \sum_{s \in T} \sum_{c \notin T} \max(0, 1 - x_s + x_c)

    - Gradient for `input`: :math:`\frac{\bar y}{C} \sum_{s \in T} [1 - x_s + x_c \ge 0]` for
      :math:`c \notin T`, and :math:`-\frac{\bar y}{C} \sum_{c \notin T} [1 - x_s + x_c \ge 0]` for
      :math:`s \in T`

    The formulas are for a row :math:`x` of `input` and its set :math:`T` of classes, before the
    reduction.

    Examples
    --------
    >>> import xgrad
    >>> x, target = xgrad.asarray([[0.5, 0.0, 2.0]]), xgrad.asarray([[2, -1, 0]])
    >>> xgrad.nn.functional.multilabel_margin_loss(x, target)
    Tensor(0.)
    """
    op = "multilabel_margin_loss"
    input, target = loss_inputs(op, reduction, input=input, target=target)
    if input.ndim not in (1, 2) or not input.shape[-1]:
        raise ValueError(f"{op}: expected input of shape (batch, classes), got {input.shape}")
    if target.dtype.kind not in "iu":
        raise TypeError(f"{op}: expected a target of integers, got {target.dtype}")
    count, target = input.shape[-1], astype(target, int64)
    checked = target.size and not target.device.backend.asynchronous
    if checked:
        with target.device.active():
            fits = run_array_code(target.device, is_below, target._data, count)
        if not fits:
            raise IndexError(f"{op}: expected classes below {count} in target")
    applies = cumulative_sum(astype(target < 0, int64), axis=-1) == 0
    classes = where(applies, target, 0)
    numbers = arange(count, dtype=int64, device=input.device)
    pairs = logical_and(classes[..., :, None] == numbers, applies[..., :, None])
    others = logical_not(any(pairs, axis=-2))
    scores = take_along_axis(input, classes, axis=-1)
    hinges = clip(1 - scores[..., :, None] + input[..., None, :], 0)
    counted = logical_and(applies[..., :, None], others[..., None, :])
    losses = sum(where(counted, hinges, 0), axis=(-2, -1)) / count
    return reduce_losses(losses, reduction)


@upcast
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    r"""Return `triplet_margin_loss` with any distance.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Of one shape, (..., features).
    distance_function : callable, optional
        A function of two tensors that returns their distances; by default `pairwise_distance`.
    margin : float, default 1
        The difference of the distances from which the loss is 0; above 0.
    swap : bool, default False
        Whether to use the smaller of the negative's distances to `anchor` and `positive`.
    reduction : {"mean", "sum", "none"}, default "mean"
        How to reduce the losses.

    Returns
    -------
    Tensor
        A scalar; with ``reduction="none"``, a tensor of the shape of the distances.

    Raises
    ------
    ValueError
        If the shapes differ, `margin` is not above 0, or an option is invalid.
    TypeError
        If `distance_function` is not callable.

    Notes
    -----
    .. math:: y = \max(0, m + d(a, p) - d(a, n))

    :math:`m` is the ``margin``, and :math:`d` the ``distance_function``.

    Examples
    --------
    >>> import xgrad
    >>> anchor, negative = xgrad.asarray([[0.0, 0.0]]), xgrad.asarray([[0.5, 0.25]])
    >>> xgrad.nn.functional.triplet_margin_with_distance_loss(
    ...     anchor, anchor, negative, distance_function=lambda x, y: abs(x - y).sum(-1)
    ... )
    Tensor(0.25)
    """
    op = "triplet_margin_with_distance_loss"
    check_options(op, margin=margin, swap=swap)
    distance = check_distance(op, distance_function)
    anchor, positive, negative = loss_inputs(
        op, reduction, anchor=anchor, positive=positive, negative=negative
    )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce_losses(clip(margin + near - far, 0), reduction)


def check_distance(name: str, function: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of distances, by default `pairwise_distance`; TypeError for others."""
    if function is None:
        return pairwise_distance
    if not callable(function):
        raise TypeError(
            f"{name}: expected a function of two tensors for distance_function, got"
            f" {shown(function)}"
        )
    return function  # type: ignore[no-any-return]
