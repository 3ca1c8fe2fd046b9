"""Initialization functions, which fill a tensor in place and return it.

They are not recorded in the graph. Equal seeds give equal numbers on every device.
"""

from __future__ import annotations

import math
from numbers import Real

from xgrad.core.arguments import as_number, check_tensor
from xgrad.core.tensor import Tensor
from xgrad.nn.structured_init import dirac_, eye_, orthogonal_, sparse_
from xgrad.nn.truncated_normal import truncated_normal
from xgrad.ops import asarray, full_like
from xgrad.ops.writing import set_data
from xgrad.random import Generator, normal, uniform
from xgrad.support import hints

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
hints.install(__name__)

_GAINS = {
    "linear": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "leaky_relu": math.sqrt(2 / (1 + 0.01**2)),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    r"""Return the factor for weights that preserves the variance through a nonlinearity.

    Parameters
    ----------
    nonlinearity : {"linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"}
        The nonlinearity after the weights.
    param : float, optional
        The slope of ``"leaky_relu"`` below 0, by default 0.01.

    Returns
    -------
    float
        The gain: 1, 1, 5/3, :math:`\sqrt{2}`, :math:`\sqrt{2 / (1 + \mathrm{param}^2)}` and 3/4.

    Raises
    ------
    ValueError
        If the nonlinearity is unknown.
    TypeError
        If `param` is not a real number.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity not in _GAINS:
        raise ValueError(
            f"calculate_gain: expected one of {list(_GAINS)}, got {hints.shown(nonlinearity)}"
        )
    if nonlinearity == "leaky_relu" and param is not None:
        if not isinstance(param, Real):
            raise TypeError(
                f"calculate_gain: expected a real number for param, got {hints.shown(param)}"
            )
        return math.sqrt(2 / (1 + float(param) ** 2))
    return _GAINS[nonlinearity]


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    r"""Fill a tensor from the uniform distribution between `a` and `b`.

    .. math:: w \sim \mathcal{U}(a, b)

    The variance is :math:`(b - a)^2 / 12`.

    Parameters
    ----------
    tensor : Tensor
        Of any shape, float32 or float64.
    a, b : float
        The bounds, by default 0 and 1.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    TypeError
        If the dtype is neither float32 nor float64.
    ValueError
        If `a` is above `b`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.uniform_(xgrad.zeros(2), 3.0, 3.0)
    Tensor([3., 3.])
    """
    check_tensor("uniform_", "tensor", tensor)
    set_data(
        tensor,
        uniform(tensor.shape, a, b, dtype=tensor.dtype, device=tensor.device, generator=generator),
    )
    return tensor


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    r"""Fill a tensor from a normal distribution.

    .. math:: w \sim \mathcal{N}(m, s^2)

    m is the `mean`, and s the standard deviation, `std`.

    Parameters
    ----------
    tensor : Tensor
        Of any shape, float32 or float64.
    mean, std : float
        The mean and the standard deviation, by default 0 and 1.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    TypeError
        If the dtype is neither float32 nor float64.
    ValueError
        If `std` is negative.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.normal_(xgrad.zeros(2), 3.0, 0.0)
    Tensor([3., 3.])
    """
    check_tensor("normal_", "tensor", tensor)
    set_data(
        tensor,
        normal(
            tensor.shape, mean, std, dtype=tensor.dtype, device=tensor.device, generator=generator
        ),
    )
    return tensor


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill a tensor from a normal distribution, without the numbers below `a` and above `b`.

    Parameters
    ----------
    tensor : Tensor
        Of any shape, float32 or float64.
    mean, std : float
        The mean and the standard deviation of the whole distribution, by default 0 and 1.
    a, b : float
        The bounds, by default -2 and 2.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    TypeError
        If the dtype is neither float32 nor float64, or an option is not a number.
    ValueError
        If `std` is not above 0, `a` is not below `b`, or both are 8 standard deviations or more
        from the mean, on one side.

    Examples
    --------
    >>> import xgrad
    >>> w = xgrad.nn.init.trunc_normal_(xgrad.zeros(100), std=0.02, a=-0.03, b=0.03)
    >>> bool(xgrad.max(xgrad.abs(w)) <= 0.03)
    True
    """
    name = "trunc_normal_"
    check_tensor(name, "tensor", tensor)
    for argument, value in (("mean", mean), ("std", std), ("a", a), ("b", b)):
        as_number(name, argument, value)
    if tensor.dtype.kind != "f" or tensor.dtype.itemsize < 4:
        raise TypeError(f"{name}: expected a tensor of float32 or float64, got {tensor.dtype}")
    if not (std > 0 and a < b):
        raise ValueError(f"{name}: expected std > 0 and a < b, got {std}, {a} and {b}")
    low, high = (a - mean) / std, (b - mean) / std
    if not (low < 8 and high > -8):
        raise ValueError(
            f"{name}: expected bounds within 8 standard deviations of the mean, got {a} and {b} for"
            f" {mean} and {std}"
        )
    values = mean + std * truncated_normal(tensor.shape, low, high, generator)
    set_data(tensor, asarray(values, dtype=tensor.dtype).to(tensor.device))
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with one value.

    Parameters
    ----------
    tensor : Tensor
        Of any shape and dtype.
    val : scalar
        The value.

    Returns
    -------
    Tensor
        The same `tensor`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.constant_(xgrad.zeros(2), 3)
    Tensor([3., 3.])
    """
    check_tensor("constant_", "tensor", tensor)
    set_data(tensor, full_like(tensor, val))
    return tensor


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor of any dtype with zeros, and return it.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.zeros_(xgrad.ones(2))
    Tensor([0., 0.])
    """
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor of any dtype with ones, and return it.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.ones_(xgrad.zeros(2))
    Tensor([1., 1.])
    """
    return constant_(tensor, 1)


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    r"""Fill a weight uniformly, by the mean of its numbers of inputs and outputs.

    This preserves the variance, forward and backward.

    X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", AISTATS 2010, equation 16.

    .. math:: w \sim \mathcal{U}(-b, b), \quad b = g \sqrt{\frac{6}{\mathrm{in} + \mathrm{out}}}

    g is the `gain`, and the variance is :math:`2 g^2 / (\mathrm{in} + \mathrm{out})`.

    Parameters
    ----------
    tensor : Tensor
        Of shape (out, in, ...), float32 or float64; further axes multiply both numbers.
    gain : float, default 1
        See `calculate_gain`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    ValueError
        If the tensor has fewer than two axes.
    TypeError
        If the dtype is neither float32 nor float64.

    Examples
    --------
    >>> import xgrad
    >>> w = xgrad.nn.init.xavier_uniform_(xgrad.zeros((2, 4)))
    >>> bool(xgrad.all(xgrad.abs(w) <= 1))
    True
    """
    bound = gain * math.sqrt(6 / sum(_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    r"""Fill a weight from a normal distribution, by the mean of its numbers of inputs and outputs.

    This is equation 12 of the paper cited in `xavier_uniform_`.

    .. math:: w \sim \mathcal{N}(0, s^2), \quad s = g \sqrt{\frac{2}{\mathrm{in} + \mathrm{out}}}

    g is the `gain`.

    Parameters
    ----------
    tensor : Tensor
        Of shape (out, in, ...), float32 or float64; further axes multiply both numbers.
    gain : float, default 1
        See `calculate_gain`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    ValueError
        If the tensor has fewer than two axes.
    TypeError
        If the dtype is neither float32 nor float64.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.xavier_normal_(xgrad.ones((1, 2)), gain=0.0)
    Tensor([[0., 0.]])
    """
    return normal_(
        tensor, 0.0, gain * math.sqrt(2 / sum(_fans("xavier_normal_", tensor))), generator
    )


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    r"""Fill a weight uniformly, to preserve the variance through rectifiers.

    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers: surpassing human-level
    performance on ImageNet classification", ICCV 2015, section 2.2.

    .. math:: w \sim \mathcal{U}(-b, b), \quad b = g \sqrt{\frac{3}{\mathrm{fan}}}

    g is the gain of the nonlinearity, and fan the number of inputs or of outputs, by the `mode`.
    The variance is :math:`g^2 / \mathrm{fan}`.

    Parameters
    ----------
    tensor : Tensor
        Of shape (out, in, ...), float32 or float64; further axes multiply both numbers.
    a : float, default 0
        The slope below 0 of a ``'leaky_relu'`` after the weight.
    mode : {'fan_in', 'fan_out'}, default 'fan_in'
        Whether to preserve the variance forward or backward.
    nonlinearity : str, default 'leaky_relu'
        The nonlinearity after the weight: see `calculate_gain`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    ValueError
        If the tensor has fewer than two axes, or the mode or the nonlinearity is unknown.
    TypeError
        If the dtype is neither float32 nor float64.

    Examples
    --------
    >>> import xgrad
    >>> w = xgrad.nn.init.kaiming_uniform_(xgrad.zeros((2, 6)))
    >>> bool(xgrad.all(xgrad.abs(w) <= 1))
    True
    """
    bound = math.sqrt(3) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    r"""Fill a weight from a normal distribution, to preserve the variance through rectifiers.

    The options are the same as in `kaiming_uniform_`.

    .. math:: w \sim \mathcal{N}(0, s^2), \quad s = \frac{g}{\sqrt{\mathrm{fan}}}

    g is the gain of the nonlinearity, and fan the number of inputs or of outputs, by the `mode`.

    Parameters
    ----------
    tensor : Tensor
        Of shape (out, in, ...), float32 or float64; further axes multiply both numbers.
    a : float, default 0
        The slope below 0 of a ``'leaky_relu'`` after the weight.
    mode : {'fan_in', 'fan_out'}, default 'fan_in'
        Whether to preserve the variance forward or backward.
    nonlinearity : str, default 'leaky_relu'
        The nonlinearity after the weight: see `calculate_gain`.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    ValueError
        If the tensor has fewer than two axes, or the mode or the nonlinearity is unknown.
    TypeError
        If the dtype is neither float32 nor float64.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.kaiming_normal_(xgrad.zeros((2, 6))).shape
    (2, 6)
    """
    return normal_(
        tensor, 0.0, _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity), generator
    )


def _fans(name: str, tensor: Tensor) -> tuple[int, int]:
    if check_tensor(name, "tensor", tensor).ndim < 2:
        raise ValueError(
            f"{name}: expected a weight of shape (out, in, ...), got shape {tensor.shape}"
        )
    fan_out, fan_in, *rest = tensor.shape
    # At least 1, for an empty weight, which has no values to scale.
    return max(1, fan_in * math.prod(rest)), max(1, fan_out * math.prod(rest))


def _kaiming_std(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fans = dict(zip(("fan_in", "fan_out"), _fans(name, tensor), strict=True))
    if mode not in fans:
        raise ValueError(
            f"{name}: expected a mode of 'fan_in' or 'fan_out', got {hints.shown(mode)}"
        )
    return calculate_gain(nonlinearity, a) / math.sqrt(fans[mode])
