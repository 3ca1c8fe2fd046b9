"""Activations under PyTorch's names.

`sigmoid`, which follows the standard's style, is in `elementwise`, and the pieces of lines are in
`piecewise_activations`. At kinks, the derivatives are PyTorch's.

With ``inplace=True``, the tensor gets the value, as in PyTorch. This saves no memory and no time.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from xgrad.core.arguments import ArrayLike, as_number, as_tensor, front_axis
from xgrad.core.dtypes import FLOATING, float32
from xgrad.core.tensor import Tensor
from xgrad.ops import elementwise
from xgrad.ops.declare import call_op, derivative, slice_axis
from xgrad.ops.elementwise import sigmoid
from xgrad.ops.in_place import in_place
from xgrad.ops.manipulation import reshape
from xgrad.ops.searching import where
from xgrad.ops.tensor_conversion import astype
from xgrad.support.hints import explained, shown

REAL: dict[str, Any] = {"lowest": FLOATING, "highest": FLOATING}


def relu(x: Tensor, inplace: bool = False) -> Tensor:
    r"""Return positive elements unchanged and 0 for the others; the derivative at 0 is 0.

    Parameters
    ----------
    x : Tensor
        Real numbers, of any shape; bools count as integers.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    TypeError
        If `x` is complex.

    Notes
    -----
    .. math:: y = \max(x, 0)

    - Gradient for `x`: :math:`\bar y\, [x > 0]`

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([-1.0, 2.0])
    >>> xgrad.nn.functional.relu(x, inplace=True) is x
    True
    >>> x
    Tensor([0., 2.])
    """
    return in_place(elementwise.relu, x) if inplace else elementwise.relu(x)


def as_floating(op: str, x: Any) -> Tensor:
    """Return an argument as a tensor, with integers as float32."""
    x = as_tensor(op, "x", x)
    return astype(x, float32) if x.dtype.kind in "iu" else x


def _silu_rule(g: Any, xp: Any, x: Any, weight: Any) -> Any:
    weight = call_op(sigmoid, xp, x) if weight is None else weight
    return g * (weight * (1 + x * (1 - weight)))


@derivative(_silu_rule, **REAL, residual="weight")
def _silu(xp: Any, x: Any, /) -> Any:
    weight = call_op(sigmoid, xp, x)
    return x * weight, weight


def silu(x: Tensor, inplace: bool = False) -> Tensor:
    r"""Return ``x * sigmoid(x)``, also known as swish.

    S. Elfwing, E. Uchibe, K. Doya, "Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning", Neural Networks 107, 2018.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = x\, \sigma(x)

    - Gradient for `x`: :math:`\bar y\, \sigma(x) \left(1 + x\, (1 - \sigma(x))\right)`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.silu(xgrad.asarray([-1.0, 0.0, 1.0]))
    Tensor([-0.2689414,  0.       ,  0.7310586])
    """
    return in_place(_silu, x) if inplace else _silu(x)


def _mish_rule(g: Any, xp: Any, x: Any) -> Any:
    # The derivative is tanh(softplus(x)) + x * (1 - tanh(softplus(x))**2) * sigmoid(x). In this
    # form, with exp(x) = a / b, no terms cancel near -1.
    a, b = xp.exp(xp.minimum(x, 0)), xp.exp(-xp.maximum(x, 0))
    p = 2 * a * b
    q = p + 2 * b * b
    d = a * a + q
    return g * ((a * a * (d + p) + p * q * (x + 1)) / xp.square(d))


@derivative(_mish_rule, **REAL)
def _mish(xp: Any, x: Any, /) -> Any:
    return x * xp.tanh(call_op(elementwise.softplus, xp, x))


def mish(x: Tensor, inplace: bool = False) -> Tensor:
    r"""Return ``x * tanh(softplus(x))``.

    D. Misra, "Mish: a self regularized non-monotonic activation function", BMVC, 2020.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = x \tanh(s(x)), \quad s(x) = \ln(1 + e^x)

    - Gradient for `x`:
      :math:`\bar y \left(\tanh(s(x)) + x\, \sigma(x)\, (1 - \tanh^2(s(x)))\right)`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.mish(xgrad.asarray([-1.0, 0.0, 1.0]))
    Tensor([-0.3034014,  0.       ,  0.8650984])
    """
    return in_place(_mish, x) if inplace else _mish(x)


def _elu_rule(g: Any, xp: Any, x: Any, alpha: float, scale: float, slope: float) -> Any:
    return g * xp.where(x <= 0, xp.exp(xp.minimum(x, 0) * slope) * (alpha * scale * slope), scale)


@derivative(_elu_rule, **REAL)
def _elu(xp: Any, x: Any, /, alpha: float, scale: float, slope: float) -> Any:
    """Return ``scale * x`` if `x` is positive, else ``scale * alpha * (exp(slope * x) - 1)``."""
    return xp.where(x <= 0, xp.expm1(xp.minimum(x, 0) * slope) * (alpha * scale), x * scale)


def elu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Return `x` where it is positive, else ``alpha * (exp(x) - 1)``.

    D.-A. Clevert, T. Unterthiner, S. Hochreiter, "Fast and accurate deep network learning by
    exponential linear units", ICLR, 2016.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    alpha : float, default 1
        The limit far below 0 is ``-alpha``.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math::

        y = \begin{cases}
            x & \text{if } x > 0 \\
            \alpha\, (e^x - 1) & \text{otherwise}
        \end{cases}

    - Gradient for `x`: :math:`\bar y` if :math:`x > 0`, else :math:`\bar y\, \alpha\, e^x`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.elu(xgrad.asarray([-1.0, 0.0, 1.0]))
    Tensor([-0.63212055,  0.        ,  1.        ])
    """
    options = as_number("elu", "alpha", alpha), 1.0, 1.0
    return in_place(_elu, x, *options) if inplace else _elu(x, *options)


#: The options of `_elu` for `selu`.
_SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


def selu(x: Tensor, inplace: bool = False) -> Tensor:
    r"""Return `elu` with an alpha of 1.6733, scaled by 1.0507.

    Mean 0 and variance 1 are a fixed point of layers with this activation.

    G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, "Self-normalizing neural networks",
    NeurIPS, 2017.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math::

        y = \begin{cases}
            \lambda\, x & \text{if } x > 0 \\
            \lambda\, \alpha\, (e^x - 1) & \text{otherwise}
        \end{cases}
        \qquad \alpha \approx 1.6733, \quad \lambda \approx 1.0507

    - Gradient for `x`: :math:`\bar y\, \lambda` if :math:`x > 0`, else
      :math:`\bar y\, \lambda\, \alpha\, e^x`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.selu(xgrad.asarray([-1.0, 0.0, 1.0]))
    Tensor([-1.1113307,  0.       ,  1.050701 ])
    """
    return in_place(_elu, x, *_SELU) if inplace else _elu(x, *_SELU)


def celu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Return `x` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    J. T. Barron, "Continuously differentiable exponential linear units", arXiv:1704.07483, 2017.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    alpha : float, default 1
        The limit far below 0 is ``-alpha``; must not be 0.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `alpha` is 0.

    Notes
    -----
    .. math::

        y = \begin{cases}
            x & \text{if } x > 0 \\
            \alpha\, (e^{x / \alpha} - 1) & \text{otherwise}
        \end{cases}

    - Gradient for `x`: :math:`\bar y` if :math:`x > 0`, else :math:`\bar y\, e^{x / \alpha}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.celu(xgrad.asarray([-1.0, 0.0, 1.0]), 2.0)
    Tensor([-0.78693867,  0.        ,  1.        ])
    """
    if as_number("celu", "alpha", alpha) == 0:
        raise ValueError("celu: expected an alpha other than 0, got 0")
    options = alpha, 1.0, 1 / alpha
    return in_place(_elu, x, *options) if inplace else _elu(x, *options)


@derivative(lambda g, xp, x, negative_slope: xp.where(x > 0, g, g * negative_slope), **REAL)
def _leaky_relu(xp: Any, x: Any, /, negative_slope: float = 0.01) -> Any:
    if not isinstance(negative_slope, Real):
        raise TypeError(f"expected a number for negative_slope, got {shown(negative_slope)}")
    return xp.where(x > 0, x, x * negative_slope)


def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    r"""Return `x` where it is positive, else ``negative_slope * x``.

    A. L. Maas, A. Y. Hannun, A. Y. Ng, "Rectifier nonlinearities improve neural network acoustic
    models", ICML, 2013.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    negative_slope : float, default 0.01
        The slope for negative numbers and at 0.
    inplace : bool, default False
        Whether `x` gets the value, too.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > 0 \\ s\, x & \text{otherwise} \end{cases}

    - Gradient for `x`: :math:`\bar y` if :math:`x > 0`, else :math:`\bar y\, s`, where :math:`s` is
      `negative_slope`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.leaky_relu(xgrad.asarray([-1.0, 2.0]))
    Tensor([-0.01,  2.  ])
    """
    return in_place(_leaky_relu, x, negative_slope) if inplace else _leaky_relu(x, negative_slope)


@derivative(
    lambda g, xp, x, weight: xp.where(x > 0, g, g * weight),
    lambda g, xp, x: xp.where(x > 0, 0, g * x),
    **REAL,
    broadcasts=True,
    autocast="narrow",
)
def sloped_relu(xp: Any, x: Any, weight: Any, /) -> Any:
    r"""Return positive elements, and the others times weights that broadcast.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > 0 \\ w\, x & \text{otherwise} \end{cases}

    - Gradient for `x`: :math:`\bar y` if :math:`x > 0`, else :math:`\bar y\, w`
    - Gradient for `weight`: :math:`\bar y\, \min(x, 0)`
    """
    return xp.where(x > 0, x, x * weight)


def prelu(x: Tensor, weight: Tensor) -> Tensor:
    r"""Return `x` where it is positive, else ``weight * x``, with one weight or one per channel.

    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers: surpassing human-level
    performance on ImageNet classification", ICCV, 2015.

    Parameters
    ----------
    x : Tensor
        Of shape (batch, channels, ...), or of any shape for one weight; floating.
    weight : Tensor
        Of shape (channels,), (1,) or ().

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If there are several weights, but not one for each channel.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > 0 \\ w\, x & \text{otherwise} \end{cases}

    - Gradient for `x`: :math:`\bar y` if :math:`x > 0`, else :math:`\bar y\, w`
    - Gradient for `weight`: :math:`\bar y\, \min(x, 0)`, summed over the elements with one weight

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.prelu(xgrad.asarray([[-1.0, -2.0]]), xgrad.asarray([0.5, 0.25]))
    Tensor([[-0.5, -0.5]])
    """
    x, weight = as_tensor("prelu", "x", x), as_tensor("prelu", "weight", weight)
    if weight.ndim > 1 or (weight.size != 1 and (x.ndim < 2 or x.shape[1] != weight.size)):
        raise ValueError(
            f"prelu: expected one weight, or one for each channel of {x.shape}, got shape"
            f" {weight.shape}"
        )
    if weight.size != 1 and x.ndim > 2:
        weight = reshape(weight, (-1,) + (1,) * (x.ndim - 2))
    elif not x.ndim:
        weight = reshape(weight, ())
    return sloped_relu(x, weight)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    r"""Return ``log(1 + exp(beta * x)) / beta``, without overflow.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    beta : float, default 1
        The sharpness; must not be 0.
    threshold : float, default 20
        Where ``beta * x`` is larger, the result is `x`.

    Returns
    -------
    Tensor
        Of the same shape.

    Raises
    ------
    ValueError
        If `beta` is 0.

    Notes
    -----
    .. math:: y = \frac{1}{\beta} \ln(1 + e^{\beta x})

    - Gradient for `x`: :math:`\bar y\, \sigma(\beta x)`, above the threshold :math:`\bar y`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.softplus(xgrad.asarray([0.0, 1e4]))
    Tensor([6.931472e-01, 1.000000e+04])
    """
    threshold = as_number("softplus", "threshold", threshold)
    if as_number("softplus", "beta", beta) == 0:
        raise ValueError("softplus: expected a beta other than 0, got 0")
    x = as_floating("softplus", x)
    out = elementwise.softplus(x) if beta == 1 else elementwise.softplus(x * beta) / beta
    # At the default threshold, both branches are equal in float32.
    return out if threshold == 20 else where(x * beta > threshold, x, out)


@derivative(lambda g, xp, x: g / xp.square(1 + xp.abs(x)), **REAL, upcast=True)
def softsign(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return ``x / (1 + abs(x))``.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = \frac{x}{1 + |x|}

    - Gradient for `x`: :math:`\frac{\bar y}{(1 + |x|)^2}`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.softsign(xgrad.asarray([-1.0, 0.0, 3.0]))
    Tensor([-0.5 ,  0.  ,  0.75])
    """
    return x / (1 + xp.abs(x))


def logsigmoid(x: Tensor) -> Tensor:
    r"""Return the logarithm of `sigmoid`, without overflow or loss of small probabilities.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = \ln(\sigma(x)) = -\ln(1 + e^{-x})

    - Gradient for `x`: :math:`\bar y\, (1 - \sigma(x))`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.logsigmoid(xgrad.asarray([-1e4, 0.0]))
    Tensor([-1.000000e+04, -6.931472e-01])
    """
    return -elementwise.softplus(-as_floating("logsigmoid", x))


@derivative(lambda g, xp, x: g * xp.square(xp.tanh(x)), **REAL)
def tanhshrink(xp: Any, x: ArrayLike, /) -> Any:
    r"""Return ``x - tanh(x)``.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    .. math:: y = x - \tanh(x)

    - Gradient for `x`: :math:`\bar y \tanh^2(x)`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.tanhshrink(xgrad.asarray([0.0, 2.0]))
    Tensor([0.       , 1.0359724])
    """
    return x - xp.tanh(x)


@explained
def glu(x: Tensor, axis: int = -1) -> Tensor:
    r"""Return ``a * sigmoid(b)``, where ``a`` and ``b`` are the two halves along an axis.

    Y. N. Dauphin, A. Fan, M. Auli, D. Grangier, "Language modeling with gated convolutional
    networks", ICML, 2017.

    Parameters
    ----------
    x : Tensor
        Of any shape; integers count as float32.
    axis : int, default -1
        The axis to halve, of even length.

    Returns
    -------
    Tensor
        Of the shape of `x`, with half the length along the axis.

    Raises
    ------
    ValueError
        If the length of the axis is odd, or `x` has no axes.
    IndexError
        If there is no such axis.

    Notes
    -----
    .. math:: y = a\, \sigma(b), \quad x = (a, b)

    - Gradient for `x`: :math:`\left(\bar y\, \sigma(b),\; \bar y\, a\, \sigma(b)\, (1 -
      \sigma(b))\right)`

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.functional.glu(xgrad.asarray([2.0, 4.0, 0.0, 0.0]))
    Tensor([1., 2.])
    """
    x = as_floating("glu", x)
    if not x.ndim:
        raise ValueError("glu: expected x with at least one axis, got shape ()")
    axis = front_axis("glu", x, axis)
    half, odd = divmod(x.shape[axis], 2)
    if odd:
        raise ValueError(
            f"glu: expected an axis of even length, got {x.shape[axis]} in shape {x.shape}"
        )
    return x[slice_axis(axis, 0, half)] * sigmoid(x[slice_axis(axis, half)])
