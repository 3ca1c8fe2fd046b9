"""Layer, group, batch, instance and root-mean-square normalization.

All but the last normalize to mean 0 and variance 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import overridable
from xgrad.backend.recording import run_array_code
from xgrad.core.arguments import as_int, as_number, as_tensor, check_tensor
from xgrad.core.dtypes import FLOATING
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor, from_placement
from xgrad.core.views import has_family
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import positive, sqrt
from xgrad.ops.manipulation import reshape
from xgrad.ops.precision import widened
from xgrad.ops.statistical import mean
from xgrad.ops.tensor_conversion import astype
from xgrad.ops.writing import assign
from xgrad.support.hints import shown

Axes = tuple[int, ...]
Shape = tuple[int, ...]


@overridable
def _sum_products(xp: Any, x: Any, y: Any, axes: Axes) -> Any:
    """Return the sums of ``x * y``, or of ``x`` if ``y`` is None, over axes.

    The axes stay, with length 1.
    """
    return xp.sum(x if y is None else x * y, axis=axes, keepdims=True)


def _product_sum(xp: Any, x: Any, y: Any, axes: Axes) -> Any:
    """Return the sums of ``x * y`` over axes; over the last axis alone, as dot products."""
    if axes == (len(x.shape) - 1,):
        return xp.expand_dims(xp.vecdot(x, y, axis=-1), axis=-1)
    return _sum_products(xp, x, y, axes)


def _sum(xp: Any, x: Any, axes: Axes) -> Any:
    if axes == (len(x.shape) - 1,):
        return xp.sum(x, axis=axes, keepdims=True)
    return _sum_products(xp, x, None, axes)


def _center(xp: Any, x: Any, axes: Axes, eps: float, centered: bool) -> tuple[Any, Any, Any, Any]:
    """Return the centered values, the mean, the scaling factor, and the variance.

    The variance takes a second pass, so that large means cost no precision. Without `centered`, the
    mean is 0 and the variance is the mean of the squares.
    """
    average = _sum(xp, x, axes) / _count(x, axes) if centered else 0
    x = x - average
    variance = _product_sum(xp, x, x, axes) / _count(x, axes)
    return x, average, 1 / xp.sqrt(variance + eps), variance


def _count(x: Any, axes: Axes) -> int:
    return math.prod([x.shape[a] for a in axes])


def _is_factor(x: Any, weight: Any, axes: Axes) -> bool:
    """Return whether a weight is None or constant along axes.

    It can then be multiplied with the scaling factor in advance.
    """
    return weight is None or all(
        weight.shape[a - len(x.shape)] == 1 for a in axes if a >= len(x.shape) - weight.ndim
    )


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    """Scale and shift in place."""
    if weight is not None:
        x *= weight
    if bias is not None:
        x += bias
    return x


@overridable
def _standardize(
    xp: Any, x: Any, weight: Any, bias: Any, axes: Axes, eps: float, centered: bool
) -> tuple[Any, ...]:
    """Return the scaled and shifted standardized values, the mean, the factor, and the variance."""
    x, average, scale, variance = _center(xp, x, axes, eps, centered)
    if _is_factor(x, weight, axes):
        return (
            _affine(x, scale if weight is None else scale * weight, bias),
            average,
            scale,
            variance,
        )
    x *= scale
    return _affine(x, weight, bias), average, scale, variance


@overridable
def _normalization_gradient(
    xp: Any, g: Any, x: Any, weight: Any, saved: Any, axes: Axes, eps: float, centered: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients of the input, the weight and the bias.

    The gradient of the input is projected onto the directions that leave the statistics unchanged,
    and scaled.
    """
    if saved is None:  # in a recorded backward pass
        x, _, scale, _ = _center(xp, x, axes, eps, centered)
    else:
        average, scale = saved
        x = x - average
    x *= scale
    count, one_factor = _count(x, axes), _is_factor(x, weight, axes)
    if one_factor:
        factor = scale if weight is None else scale * weight
    else:
        factor, products, given = scale, x * g, g
        g = g * weight
        of_weight = _sum_to(xp, products, weight.shape)
        of_bias = _sum_to(xp, given, weight.shape) if centered else given
    dots = _product_sum(xp, g, x, axes)
    total: Any = _sum(xp, g, axes) if centered else None
    if one_factor:  # a bias without a weight may vary along the axes: the engine sums its gradient
        of_weight, of_bias = dots, g if weight is None else total
    # Divide the statistics of each group first, so that all that follows can be fused into one
    # loop.
    slopes, shifts = dots / -count, total / count if centered else None
    x *= slopes
    x += g
    if centered:
        x -= shifts
    x *= factor
    return x, of_weight, of_bias


def _sum_to(xp: Any, x: Any, shape: Shape) -> Any:
    """Sum over the axes along which a parameter of this shape was broadcast."""
    added = len(x.shape) - len(shape)
    axes = (*range(added), *[i for i, n in enumerate(shape, added) if n == 1 != x.shape[i]])
    return xp.reshape(xp.sum(x, axis=axes), shape) if axes else x


def _rule(
    g: Any, xp: Any, x: Any, weight: Any, saved: Any, axes: Axes, eps: float, centered: bool
) -> tuple[Any, Any, Any]:
    return _normalization_gradient(xp, g, x, weight, saved, axes, eps, centered)


@derivative(_rule, lowest=FLOATING, highest=FLOATING, residual="saved", joint_backward=True)
def _normalize(
    xp: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    axes: Axes,
    eps: float,
    centered: bool = True,
) -> Any:
    """Standardize over axes, counted from the front, then scale and shift."""
    x, average, scale, _ = _standardize(xp, x, weight, bias, axes, eps, centered)
    return x, (average, scale)


def _batch_rule(
    g: Any, xp: Any, x: Any, weight: Any, saved: Any, axes: Axes, eps: float
) -> tuple[Any, Any, Any]:
    return _normalization_gradient(xp, g[0], x, weight, saved, axes, eps, True)


@derivative(_batch_rule, lowest=FLOATING, highest=FLOATING, residual="saved", joint_backward=True)
def _normalize_batch(
    xp: Any, x: Any, weight: Any = None, bias: Any = None, *, axes: Axes, eps: float
) -> Any:
    """Return the result of `_normalize`, and the mean and variance, which pass no gradient on."""
    x, average, scale, variance = _standardize(xp, x, weight, bias, axes, eps, True)
    return (x, average, variance), (average, scale)


def _checked(
    op: str, input: Any, weight: Any, bias: Any, shape: Shape | None, eps: float
) -> list[Any]:
    """Return the input, weight and bias as tensors, after checks of dtype, shapes and `eps`."""
    tensors: list[Any] = [as_tensor(op, "input", input)]
    if tensors[0].dtype.kind != "f":
        raise TypeError(
            f"{op}: expected a floating input, got {tensors[0].dtype}: use .astype(float32)"
        )
    for name, x in (("weight", weight), ("bias", bias)):
        tensors.append(x if x is None else as_tensor(op, name, x))
        if x is not None and shape is not None and tensors[-1].shape != shape:
            raise ValueError(f"{op}: expected {name} of shape {shape}, got {tensors[-1].shape}")
    if not as_number(op, "eps", eps) >= 0:
        raise ValueError(f"{op}: expected eps >= 0, got {eps}")
    return tensors


def _run(op: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, **options: Any) -> Any:
    """Apply an op; float16 is computed in float32, since squares of numbers above 255 overflow."""
    if x.dtype.itemsize > 2:
        return op(x, weight, bias, **options)
    out = op(
        *[part if part is None else astype(part, np.float32) for part in (x, weight, bias)],
        **options,
    )
    return (
        tuple([astype(part, x.dtype) for part in out])
        if isinstance(out, tuple)
        else astype(out, x.dtype)
    )


def _reshaped(parameter: Tensor | None, shape: Shape) -> Tensor | None:
    return parameter if parameter is None or parameter.shape == shape else reshape(parameter, shape)


def _over_last(
    op: str, input: Any, shape: Any, weight: Any, bias: Any, eps: float | None, centered: bool
) -> Tensor:
    """Normalize over the last axes, which have this shape."""
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    shape = tuple([as_int(op, "normalized_shape", n) for n in lengths])
    x, weight, bias = widened(
        *_checked(op, input, weight, bias, shape, 0.0 if eps is None else eps)
    )
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{op}: expected an input whose last axes have the shape {shape}, got {x.shape}"
        )
    full, count = x.shape, math.prod(shape)
    if not x.size:
        return _affine(positive(x), weight, bias)  # type: ignore[no-any-return]
    if len(shape) > 1:  # flattened into one axis
        x = reshape(x, (-1, count))
        weight = _reshaped(weight, (count,))
        bias = _reshaped(bias, (count,))
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    out: Tensor = _run(_normalize, x, weight, bias, axes=(x.ndim - 1,), eps=eps, centered=centered)
    return reshape(out, full) if len(shape) > 1 else out


def layer_norm(
    input: Tensor,
    normalized_shape: int | Shape,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Return ``(input - mean) / sqrt(variance + eps) * weight + bias``.

    The mean and the variance are computed over the last axes.

    The variance is the population variance, computed in two passes, so that a large mean costs no
    precision. float16 is computed in float32.

    J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", arXiv:1607.06450, 2016.

    Parameters
    ----------
    input : Tensor
        Of shape ``(..., *normalized_shape)``, floating.
    normalized_shape : int or tuple of int
        The lengths of the last axes, over which the statistics are computed.
    weight, bias : Tensor, optional
        Of shape `normalized_shape`; by default 1 and 0.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    ValueError
        If a shape does not fit, or `eps` is negative.
    TypeError
        If the input is not floating.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    - Gradient for `input`: :math:`\frac{u - \langle u \rangle - \hat x\, \langle u\, \hat x
      \rangle}{\sqrt{\sigma^2 + \varepsilon}}`
    - Gradient for `weight`: :math:`\sum \bar y\, \hat x`
    - Gradient for `bias`: :math:`\sum \bar y`

    Here, :math:`\langle \cdot \rangle` is the mean over the normalized axes, :math:`\mu` the mean
    and :math:`\sigma^2` the variance of :math:`x`, and :math:`u = \gamma\, \bar y`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.layer_norm(xgrad.asarray([[1.0, 3.0], [5.0, 5.0]]), 2)
    Tensor([[-0.999995,  0.999995],
            [ 0.      ,  0.      ]])
    """
    return _over_last("layer_norm", input, normalized_shape, weight, bias, eps, True)


def rms_norm(
    input: Tensor,
    normalized_shape: int | Shape,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    r"""Return ``input / sqrt(mean(input**2) + eps) * weight``, with the mean over the last axes.

    B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS, 2019.

    Parameters
    ----------
    input : Tensor
        Of shape ``(..., *normalized_shape)``, floating.
    normalized_shape : int or tuple of int
        The lengths of the last axes, over which the mean is computed.
    weight : Tensor, optional
        Of shape `normalized_shape`; by default 1.
    eps : float, optional
        Added to the mean square; by default the machine epsilon of the dtype.

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    ValueError
        If a shape does not fit, or `eps` is negative.
    TypeError
        If the input is not floating.

    Notes
    -----
    .. math:: y = \gamma\, \hat x, \quad \hat x = \frac{x}{r}, \quad
        r = \sqrt{\langle x^2 \rangle + \varepsilon}

    - Gradient for `input`: :math:`\frac{u - \hat x\, \langle u\, \hat x \rangle}{r}`
    - Gradient for `weight`: :math:`\sum \bar y\, \hat x`

    Here, :math:`\langle \cdot \rangle` is the mean over the last axes, and
    :math:`u = \gamma\, \bar y`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.rms_norm(xgrad.asarray([1.0, 7.0]), 2)
    Tensor([0.2, 1.4])
    """
    return _over_last("rms_norm", input, normalized_shape, weight, None, eps, False)


def _channels(op: str, input: Any, weight: Any, bias: Any, eps: float) -> list[Any]:
    """Return the input of shape (batch, channels, ...), the weight and the bias as tensors."""
    shape = as_tensor(op, "input", input).shape
    if len(shape) < 2:
        raise ValueError(f"{op}: expected an input of shape (batch, channels, ...), got {shape}")
    return _checked(op, input, weight, bias, shape[1:2], eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Return ``(input - mean) / sqrt(variance + eps) * weight + bias``.

    Each group of channels has its own mean and variance.

    Y. Wu, K. He, "Group normalization", ECCV, 2018.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, ...), floating.
    num_groups : int
        The number of groups of adjacent channels, all of the same size.
    weight, bias : Tensor, optional
        Of shape (channels,); by default 1 and 0.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    ValueError
        If a shape does not fit, the groups do not divide the channels, or `eps` is negative.
    TypeError
        If the input is not floating.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    - Gradient for `input`: :math:`\frac{u - \langle u \rangle - \hat x\, \langle u\, \hat x
      \rangle}{\sqrt{\sigma^2 + \varepsilon}}`
    - Gradient for `weight`: :math:`\sum \bar y\, \hat x`
    - Gradient for `bias`: :math:`\sum \bar y`

    Here, :math:`\langle \cdot \rangle` is the mean over the normalized axes, :math:`\mu` the mean
    and :math:`\sigma^2` the variance of :math:`x`, and :math:`u = \gamma\, \bar y`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.group_norm(xgrad.asarray([[1.0, 3.0, 5.0, 5.0]]), 2)
    Tensor([[-0.999995,  0.999995,  0.      ,  0.      ]])
    """
    x, weight, bias = widened(*_channels("group_norm", input, weight, bias, eps))
    full, channels = x.shape, x.shape[1]
    if as_int("group_norm", "num_groups", num_groups) < 1 or channels % num_groups:
        raise ValueError(
            f"group_norm: expected num_groups that divides {channels} channels, got {num_groups}"
        )
    inner = (num_groups, channels // num_groups)
    rest = () if x.ndim == 2 else (math.prod(full[2:]),)
    x = reshape(x, (full[0], *inner, *rest))
    per_channel = (*inner, *[1 for _ in rest])
    weight, bias = _reshaped(weight, per_channel), _reshaped(bias, per_channel)
    if not x.size:
        return reshape(_affine(positive(x), weight, bias), full)
    axes = tuple(range(2, x.ndim))
    return reshape(_run(_normalize, x, weight, bias, axes=axes, eps=eps), full)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Return ``(input - mean) / sqrt(variance + eps) * weight + bias``.

    Each channel has its own mean and variance.

    In training, they are computed from the batch, and the running statistics move towards them in
    place: ``running = (1 - momentum) * running + momentum * new``, with the unbiased variance. In
    evaluation, the running statistics are used.

    S. Ioffe, C. Szegedy, "Batch normalization: accelerating deep network training by reducing
    internal covariate shift", ICML, 2015.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, ...), floating.
    running_mean, running_var : Tensor or None
        Of shape (channels,); None where there are none to update.
    weight, bias : Tensor, optional
        Of shape (channels,); by default 1 and 0.
    training : bool, default False
        Whether to use the statistics of the batch.
    momentum : float or Tensor, default 0.1
        The weight of the batch in the running statistics.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    ValueError
        If a shape does not fit, `eps` is negative, there is only one value for each channel in
        training, or there are no running statistics in evaluation.
    TypeError
        If the input is not floating, or running statistics are not tensors.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    - Gradient for `input`: :math:`\frac{u - \langle u \rangle - \hat x\, \langle u\, \hat x
      \rangle}{\sqrt{\sigma^2 + \varepsilon}}`; with running statistics,
      :math:`\frac{u}{\sqrt{\sigma^2 + \varepsilon}}`
    - Gradient for `weight`: :math:`\sum \bar y\, \hat x`
    - Gradient for `bias`: :math:`\sum \bar y`

    Here, :math:`\langle \cdot \rangle` is the mean over the normalized axes, :math:`\mu` the mean
    and :math:`\sigma^2` the variance of :math:`x`, and :math:`u = \gamma\, \bar y`.

    Examples
    --------
    >>> import xgrad
    >>> mean, var = xgrad.zeros(1), xgrad.ones(1)
    >>> xgrad.nn.functional.batch_norm(
    ...     xgrad.asarray([[1.0], [3.0]]), mean, var, training=True
    ... )
    Tensor([[-0.999995],
            [ 0.999995]])
    >>> mean, var
    (Tensor([0.2]), Tensor([1.1]))
    """
    return _over_batch(
        "batch_norm", input, running_mean, running_var, weight, bias, training, momentum, eps, True
    )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Return ``(input - mean) / sqrt(variance + eps) * weight + bias``.

    Each channel of each sample has its own mean and variance.

    Running statistics, if given, move towards the averages of these statistics over the batch.

    D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance normalization: the missing ingredient for fast
    stylization", arXiv:1607.08022, 2016.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, ...), floating, with at least one axis after the channels.
    running_mean, running_var : Tensor, optional
        Of shape (channels,).
    weight, bias : Tensor, optional
        Of shape (channels,); by default 1 and 0.
    use_input_stats : bool, default True
        Whether to use the statistics of the input instead of the running ones.
    momentum : float or Tensor, default 0.1
        The weight of the batch in the running statistics.
    eps : float, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    ValueError
        If a shape does not fit, `eps` is negative, there is only one value for each channel of a
        sample, or there are no running statistics where they are used.
    TypeError
        If the input is not floating, or running statistics are not tensors.

    Notes
    -----
    .. math:: y = \gamma\, \hat x + \beta, \quad
        \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}

    - Gradient for `input`: :math:`\frac{u - \langle u \rangle - \hat x\, \langle u\, \hat x
      \rangle}{\sqrt{\sigma^2 + \varepsilon}}`
    - Gradient for `weight`: :math:`\sum \bar y\, \hat x`
    - Gradient for `bias`: :math:`\sum \bar y`

    Here, :math:`\langle \cdot \rangle` is the mean over the normalized axes, :math:`\mu` the mean
    and :math:`\sigma^2` the variance of :math:`x`, and :math:`u = \gamma\, \bar y`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.instance_norm(xgrad.asarray([[[1.0, 3.0], [5.0, 5.0]]]))
    Tensor([[[-0.999995,  0.999995],
             [ 0.      ,  0.      ]]])
    """
    op = "instance_norm"
    if as_tensor(op, "input", input).ndim < 3:
        raise ValueError(
            f"{op}: expected an input of shape (batch, channels, length, ...), got {input.shape}"
        )
    return _over_batch(
        op, input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps, False
    )


def _over_batch(
    op: str,
    input: Any,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float | Tensor,
    eps: float,
    across: bool,
) -> Tensor:
    """Normalize each channel, over all samples or (without `across`) for each sample."""
    x, weight, bias = _channels(op, input, weight, bias, eps)
    full, channels = x.shape, x.shape[1]
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is None and not training:
            raise ValueError(
                f"{op}: expected {name}, got None: it is needed where statistics are not of the"
                " input"
            )
        if running is not None and check_tensor(op, name, running).shape != (channels,):
            raise ValueError(
                f"{op}: expected {name} of shape {(channels,)}, got {shown(running.shape)}"
            )
    per_channel = (channels, *(1,) * (x.ndim - 2))
    weight, bias = _reshaped(weight, per_channel), _reshaped(bias, per_channel)
    axes = (*((0,) if across else ()), *range(2, x.ndim))
    count = math.prod([x.shape[a] for a in axes])
    if not training:
        assert running_mean is not None and running_var is not None
        scale = 1 / sqrt(running_var + eps)
        scale = scale if weight is None else scale * reshape(weight, (channels,))
        out: Tensor = _affine(
            x - reshape(running_mean, per_channel), reshape(scale, per_channel), bias
        )
    elif not x.size:
        out = _affine(positive(x), weight, bias)
    elif count == 1:
        raise ValueError(
            f"{op}: expected more than 1 value for each channel"
            f" {'in training' if across else 'of a sample'}, got an input of shape {full}: the"
            " variance of one is 0"
        )
    elif running_mean is None or running_var is None:
        out = _run(_normalize, x, weight, bias, axes=axes, eps=eps)
    else:
        out, average, variance = _run(_normalize_batch, x, weight, bias, axes=axes, eps=eps)
        correction = count / (count - 1)
        with no_grad():
            if across and _is_uniform(running_mean, running_var, average, variance, momentum):
                _track(running_mean, running_var, average, variance, correction, momentum)
                return out
            for running, new in (
                (running_mean, average),
                (running_var, variance * correction),
            ):
                new = reshape(new if across else mean(new, axis=0), (channels,))
                running[...] = running + (new - running) * momentum
    return out


def _is_uniform(
    running_mean: Tensor,
    running_var: Tensor,
    average: Tensor,
    variance: Tensor,
    momentum: float | Tensor,
) -> bool:
    """Return whether all have one dtype and device, and the running statistics no common memory.

    If they had, one would be a view of the other, or both of another tensor.
    """
    placement = average._placement
    return (
        running_mean._placement is placement
        and running_var._placement is placement
        and variance._placement is placement
        and running_mean is not running_var
        and not has_family(running_mean)
        and (
            type(momentum) in (float, int)
            or (isinstance(momentum, Tensor) and momentum._placement is placement)
        )
        and not getattr(momentum, "ndim", 0)
    )


def _track(
    running_mean: Tensor,
    running_var: Tensor,
    average: Tensor,
    variance: Tensor,
    correction: float,
    momentum: float | Tensor,
) -> None:
    """Assign the next running statistics."""
    placement = average._placement
    with placement.device.active():
        new = run_array_code(
            placement.device,
            _next_statistics,
            *[x._data for x in (running_mean, running_var, average, variance)],
            correction,
            momentum._data if isinstance(momentum, Tensor) else momentum,
        )
    for running, raw in zip((running_mean, running_var), new, strict=True):
        assign(running, from_placement(raw, placement))


def _next_statistics(device: Device, *args: Any) -> tuple[Any, Any]:
    """Call `running_statistics`: array code, for `run_array_code`."""
    return running_statistics(device.xp, *args)


@overridable
def running_statistics(
    xp: Any, mean: Any, var: Any, average: Any, variance: Any, correction: Any, momentum: Any
) -> tuple[Any, Any]:
    """Return the running mean and variance after a batch.

    `average` and `variance` are the statistics of the batch, with axes of length 1; `correction` is
    the factor of the unbiased variance. `momentum` is a number or a 0-d array.
    """
    average = xp.reshape(average, mean.shape)
    variance = xp.reshape(variance * correction, var.shape)
    return mean + (average - mean) * momentum, var + (variance - var) * momentum
