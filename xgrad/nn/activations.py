"""Activations as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.nn import functional as F
from xgrad.nn.checks import of_dtype_of, positive_int
from xgrad.nn.init import constant_
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty
from xgrad.support.hints import explained, shown


class _Activation(Module):
    """The base class of activations: a function of a tensor and options, which are attributes."""

    function: ClassVar[Callable[..., Tensor]]
    options: tuple[str, ...]

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Refuse a tensor, which is an argument of the module that is made."""
        if args and isinstance(args[0], Tensor):
            raise TypeError(
                f"{cls.__name__}: expected options, got a tensor: write {cls.__name__}()(x)"
            )
        return super().__new__(cls)

    def __init__(self, **options: Any) -> None:
        super().__init__()
        vars(self).update(options, options=tuple(options))

    def forward(self, input: Tensor) -> Tensor:
        """Return the value of the function for `input`."""
        if not self.options:
            return type(self).function(input)
        named = vars(self)
        return type(self).function(input, **{name: named[name] for name in self.options})

    def extra_repr(self) -> str:
        return ", ".join([f"{name}={shown(getattr(self, name))}" for name in self.options])


class ReLU(_Activation):
    """The positive part of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReLU()(xgrad.asarray([-1.0, 2.0]))
    Tensor([0., 2.])
    """

    function = staticmethod(F.relu)


class Sigmoid(_Activation):
    """The logistic function of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Sigmoid()(xgrad.asarray([0.0]))
    Tensor([0.5])
    """

    function = staticmethod(F.sigmoid)


class Tanh(_Activation):
    """The hyperbolic tangent of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Tanh()(xgrad.asarray([0.0]))
    Tensor([0.])
    """

    function = staticmethod(F.tanh)


class GELU(_Activation):
    """``input * P(X <= input)`` for a standard normal X: see `functional.gelu`.

    Parameters
    ----------
    approximate : {"none", "tanh"}, default "none"
        Whether to approximate the probability by a tanh, which is faster.

    Raises
    ------
    ValueError
        In the call, if `approximate` is unknown.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GELU()(xgrad.asarray([0.0, 10.0]))
    Tensor([ 0., 10.])
    """

    function = staticmethod(F.gelu)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class SiLU(_Activation):
    """``input * sigmoid(input)``, also known as swish.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.SiLU()(xgrad.asarray([0.0, 100.0]))
    Tensor([  0., 100.])
    """

    function = staticmethod(F.silu)


class Mish(_Activation):
    """``input * tanh(softplus(input))``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Mish()(xgrad.asarray([0.0, 100.0]))
    Tensor([  0., 100.])
    """

    function = staticmethod(F.mish)


class ELU(_Activation):
    """Positive elements unchanged, and ``alpha * (exp(input) - 1)`` for the others.

    Parameters
    ----------
    alpha : float, default 1
        The function tends to ``-alpha`` far below 0.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ELU(2.0)(xgrad.asarray([-100.0, 1.0]))
    Tensor([-2.,  1.])
    """

    function = staticmethod(F.elu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class SELU(_Activation):
    """`ELU` with constants that keep the mean 0 and the variance 1: see `functional.selu`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.SELU()(xgrad.asarray([0.0]))
    Tensor([0.])
    """

    function = staticmethod(F.selu)


class CELU(_Activation):
    """Positive elements unchanged, and ``alpha * (exp(input / alpha) - 1)`` for the others.

    Parameters
    ----------
    alpha : float, default 1
        Not 0; the function tends to ``-alpha`` far below 0.

    Raises
    ------
    ValueError
        In the call, if `alpha` is 0.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.CELU(2.0)(xgrad.asarray([-100.0, 1.0]))
    Tensor([-2.,  1.])
    """

    function = staticmethod(F.celu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class LeakyReLU(_Activation):
    """Positive elements unchanged, and the others times `negative_slope`.

    Parameters
    ----------
    negative_slope : float, default 0.01
        The slope below 0.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LeakyReLU(0.5)(xgrad.asarray([-1.0, 2.0]))
    Tensor([-0.5,  2. ])
    """

    function = staticmethod(F.leaky_relu)

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__(negative_slope=negative_slope)


class ReLU6(_Activation):
    """Elements clipped to between 0 and 6.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReLU6()(xgrad.asarray([-1.0, 2.0, 9.0]))
    Tensor([0., 2., 6.])
    """

    function = staticmethod(F.relu6)


class Hardtanh(_Activation):
    """Elements clipped to an interval.

    Parameters
    ----------
    min_val, max_val : float
        The ends of the interval, by default -1 and 1.

    Raises
    ------
    ValueError
        In the call, if `min_val` is not below `max_val`.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardtanh()(xgrad.asarray([-2.0, 0.5, 2.0]))
    Tensor([-1. ,  0.5,  1. ])
    """

    function = staticmethod(F.hardtanh)

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__(min_val=min_val, max_val=max_val)


class Hardsigmoid(_Activation):
    """``input / 6 + 1 / 2``, clipped to between 0 and 1.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardsigmoid()(xgrad.asarray([-4.0, 0.0, 1.5]))
    Tensor([0.  , 0.5 , 0.75])
    """

    function = staticmethod(F.hardsigmoid)


class Hardswish(_Activation):
    """``input * hardsigmoid(input)``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardswish()(xgrad.asarray([0.0, 1.5, 4.0]))
    Tensor([0.   , 1.125, 4.   ])
    """

    function = staticmethod(F.hardswish)


class Softplus(_Activation):
    """``log(1 + exp(beta * input)) / beta``, which is positive.

    Parameters
    ----------
    beta : float, default 1
        The sharpness; not 0.
    threshold : float, default 20
        Where ``beta * input`` is larger, the input is returned.

    Raises
    ------
    ValueError
        In the call, if `beta` is 0.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softplus()(xgrad.asarray([-1e4, 1e4]))
    Tensor([    0., 10000.])
    """

    function = staticmethod(F.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Softsign(_Activation):
    """``input / (1 + abs(input))``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softsign()(xgrad.asarray([-1.0, 3.0]))
    Tensor([-0.5 ,  0.75])
    """

    function = staticmethod(F.softsign)


class LogSigmoid(_Activation):
    """The logarithm of the logistic function of each element.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LogSigmoid()(xgrad.asarray([-100.0]))
    Tensor([-100.])
    """

    function = staticmethod(F.logsigmoid)


class Tanhshrink(_Activation):
    """``input - tanh(input)``.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Tanhshrink()(xgrad.asarray([0.0, 100.0]))
    Tensor([ 0., 99.])
    """

    function = staticmethod(F.tanhshrink)


class Softshrink(_Activation):
    """Elements moved towards 0 by `lambd`; elements that are closer to 0 become 0.

    Parameters
    ----------
    lambd : float, default 0.5
        The distance, 0 or more.

    Raises
    ------
    ValueError
        In the call, if `lambd` is negative.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softshrink()(xgrad.asarray([-2.0, 0.25, 1.0]))
    Tensor([-1.5,  0. ,  0.5])
    """

    function = staticmethod(F.softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Hardshrink(_Activation):
    """Elements unchanged, except that those from ``-lambd`` to ``lambd`` become 0.

    Parameters
    ----------
    lambd : float, default 0.5
        The bound, 0 or more.

    Raises
    ------
    ValueError
        In the call, if `lambd` is negative.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardshrink()(xgrad.asarray([-2.0, 0.25, 1.0]))
    Tensor([-2.,  0.,  1.])
    """

    function = staticmethod(F.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Threshold(_Activation):
    """Elements above `threshold` unchanged, and `value` in place of the others.

    Parameters
    ----------
    threshold, value : float
        The threshold, and the value that replaces other elements.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Threshold(1.0, 7.0)(xgrad.asarray([0.5, 1.0, 1.5]))
    Tensor([7. , 7. , 1.5])
    """

    function = staticmethod(F.threshold)

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__(threshold=threshold, value=value)


class Softmax(_Activation):
    """Exponentials scaled to a sum of 1 along an axis.

    Parameters
    ----------
    axis : int, default -1
        The axis along which the results sum to 1.

    Raises
    ------
    IndexError
        In the call, if the axis does not exist.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softmax()(xgrad.asarray([1e4, 1e4]))
    Tensor([0.5, 0.5])
    """

    function = staticmethod(F.softmax)

    @explained
    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class LogSoftmax(_Activation):
    """The logarithm of `Softmax`, computed so that small probabilities are not lost.

    Parameters
    ----------
    axis : int, default -1
        The axis along which probabilities sum to 1.

    Raises
    ------
    IndexError
        In the call, if the axis does not exist.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LogSoftmax()(xgrad.asarray([0.0, 1e4]))
    Tensor([-10000.,      0.])
    """

    function = staticmethod(F.log_softmax)

    @explained
    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class GLU(_Activation):
    """``a * sigmoid(b)``, where ``a`` and ``b`` are the halves of an axis.

    Parameters
    ----------
    axis : int, default -1
        The axis, of even length.

    Raises
    ------
    ValueError
        In the call, if the length of the axis is odd.
    IndexError
        In the call, if the axis does not exist.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GLU()(xgrad.asarray([2.0, 4.0, 0.0, 0.0]))
    Tensor([1., 2.])
    """

    function = staticmethod(F.glu)

    @explained
    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=axis)


class PReLU(Module):
    """Positive elements unchanged, and the others times a trained weight: see `functional.prelu`.

    Parameters
    ----------
    num_parameters : int, default 1
        The number of weights: 1, or the number of channels.
    init : float, default 0.25
        The initial value of the weights.
    device : str or Device, optional
        By default the `default_device`.
    dtype : dtype, optional
        A floating dtype; by default the result of `get_default_dtype`.

    Attributes
    ----------
    weight : Parameter
        Of shape (num_parameters,).

    Raises
    ------
    ValueError
        If `num_parameters` is not an int above 0; in the call, if it is neither 1 nor the number of
        channels.
    TypeError
        In the call, if the input has another dtype than the weight.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.PReLU(2)
    >>> layer(xgrad.asarray([[-1.0, 2.0]])).tolist()
    [[-0.25, 2.0]]
    >>> layer
    PReLU(num_parameters=2)
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        *,
        device: str | Device | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_parameters = positive_int("PReLU", "num_parameters", num_parameters)
        self.init = init
        self.weight = Parameter(empty(self.num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to their initial value."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the shape of `input`."""
        return F.prelu(of_dtype_of(self.weight, input, "PReLU"), self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
