"""Activations as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from xgrad.backend.device import Device
from xgrad.core.dtypes import float32
from xgrad.core.tensor import Tensor
from xgrad.nn import functional as F
from xgrad.nn.checks import checked_flag, of_dtype_of, positive_int
from xgrad.nn.init import constant_
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.ops import empty, relu, zeros
from xgrad.ops.in_place import in_place
from xgrad.support.hints import explained, shown


class Activation(Module):
    """The base class of activations: a function of a tensor and options, which are attributes."""

    function: ClassVar[Callable[..., Tensor]]
    options: ClassVar[tuple[str, ...]] = ()
    inplace: bool = False

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse a tensor, which is an argument of the module that is made."""
        if args and isinstance(args[0], Tensor):
            raise TypeError(
                f"{cls.__name__}: expected options, got a tensor: write {cls.__name__}()(x)"
            )
        return super().__new__(cls)

    def forward(self, input: Tensor) -> Tensor:
        """Return the value of the function for `input`, which gets it, too, if `inplace` is set."""
        function, named = type(self).function, vars(self)
        if self.inplace:
            return in_place(function, input, **{name: named[name] for name in self.options})
        if not self.options:
            return function(input)
        return function(input, **{name: named[name] for name in self.options})

    def _check_options(self) -> None:
        """Raise the error of the function for invalid options, by a call without elements."""
        nothing = zeros(0, dtype=float32, device="cpu")
        type(self).function(nothing, **{name: vars(self)[name] for name in self.options})

    def extra_repr(self) -> str:
        texts = [f"{name}={shown(getattr(self, name))}" for name in self.options]
        return ", ".join([*texts, "inplace=True"] if self.inplace else texts)


class InPlaceActivation(Activation):
    """An activation that may write to its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = checked_flag(type(self).__name__, "inplace", inplace)


class ReLU(InPlaceActivation):
    r"""The positive part of each element.

    Parameters
    ----------
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = \max(x, 0)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReLU()(xgrad.asarray([-1.0, 2.0]))
    Tensor([0., 2.])
    """

    function = staticmethod(relu)


class Sigmoid(Activation):
    r"""The logistic function of each element.

    Notes
    -----
    .. math:: y = \sigma(x) = \frac{1}{1 + e^{-x}}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Sigmoid()(xgrad.asarray([0.0]))
    Tensor([0.5])
    """

    function = staticmethod(F.sigmoid)


class Tanh(Activation):
    r"""The hyperbolic tangent of each element.

    Notes
    -----
    .. math:: y = \tanh(x)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Tanh()(xgrad.asarray([0.0]))
    Tensor([0.])
    """

    function = staticmethod(F.tanh)


class GELU(Activation):
    r"""``input * P(X <= input)`` for a standard normal X: see `functional.gelu`.

    Parameters
    ----------
    approximate : {"none", "tanh"}, default "none"
        Whether to approximate the probability by a tanh, which is faster.

    Raises
    ------
    ValueError
        If `approximate` is unknown.

    Notes
    -----
    .. math:: y = x\, \Phi(x), \quad \Phi(x) \approx \frac{1 + \tanh(u)}{2}, \quad
        u = \sqrt{\frac{2}{\pi}} \left(x + 0.044715\, x^3\right)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GELU()(xgrad.asarray([0.0, 10.0]))
    Tensor([ 0., 10.])
    """

    function = staticmethod(F.gelu)
    options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate
        self._check_options()


class SiLU(InPlaceActivation):
    r"""``input * sigmoid(input)``, also known as swish.

    Parameters
    ----------
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = x\, \sigma(x)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.SiLU()(xgrad.asarray([0.0, 100.0]))
    Tensor([  0., 100.])
    """

    function = staticmethod(F.silu)


class Mish(InPlaceActivation):
    r"""``input * tanh(softplus(input))``.

    Parameters
    ----------
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = x \tanh(s(x)), \quad s(x) = \ln(1 + e^x)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Mish()(xgrad.asarray([0.0, 100.0]))
    Tensor([  0., 100.])
    """

    function = staticmethod(F.mish)


class ELU(InPlaceActivation):
    r"""Positive elements unchanged, and ``alpha * (exp(input) - 1)`` for the others.

    Parameters
    ----------
    alpha : float, default 1
        The function tends to ``-alpha`` far below 0.
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math::

        y = \begin{cases}
            x & \text{if } x > 0 \\
            \alpha\, (e^x - 1) & \text{otherwise}
        \end{cases}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ELU(2.0)(xgrad.asarray([-100.0, 1.0]))
    Tensor([-2.,  1.])
    """

    function = staticmethod(F.elu)
    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha
        self._check_options()


class SELU(InPlaceActivation):
    r"""`ELU` with constants that keep the mean 0 and the variance 1: see `functional.selu`.

    Parameters
    ----------
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math::

        y = \begin{cases}
            \lambda\, x & \text{if } x > 0 \\
            \lambda\, \alpha\, (e^x - 1) & \text{otherwise}
        \end{cases}
        \qquad \alpha \approx 1.6733, \quad \lambda \approx 1.0507

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.SELU()(xgrad.asarray([0.0]))
    Tensor([0.])
    """

    function = staticmethod(F.selu)


class CELU(InPlaceActivation):
    r"""Positive elements unchanged, and ``alpha * (exp(input / alpha) - 1)`` for the others.

    Parameters
    ----------
    alpha : float, default 1
        Not 0; the function tends to ``-alpha`` far below 0.
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

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

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.CELU(2.0)(xgrad.asarray([-100.0, 1.0]))
    Tensor([-2.,  1.])
    """

    function = staticmethod(F.celu)
    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha
        self._check_options()


class LeakyReLU(InPlaceActivation):
    r"""Positive elements unchanged, and the others times `negative_slope`.

    Parameters
    ----------
    negative_slope : float, default 0.01
        The slope below 0.
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > 0 \\ s\, x & \text{otherwise} \end{cases}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LeakyReLU(0.5)(xgrad.asarray([-1.0, 2.0]))
    Tensor([-0.5,  2. ])
    """

    function = staticmethod(F.leaky_relu)
    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope
        self._check_options()


class ReLU6(InPlaceActivation):
    r"""Elements clipped to between 0 and 6.

    Parameters
    ----------
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = \min(\max(x, 0), 6)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.ReLU6()(xgrad.asarray([-1.0, 2.0, 9.0]))
    Tensor([0., 2., 6.])
    """

    function = staticmethod(F.relu6)


class Hardtanh(InPlaceActivation):
    r"""Elements clipped to an interval.

    Parameters
    ----------
    min_val, max_val : float
        The ends of the interval, by default -1 and 1.
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Raises
    ------
    ValueError
        If `min_val` is not below `max_val`.

    Notes
    -----
    .. math:: y = \min(\max(x, a), b)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardtanh()(xgrad.asarray([-2.0, 0.5, 2.0]))
    Tensor([-1. ,  0.5,  1. ])
    """

    function = staticmethod(F.hardtanh)
    options = "min_val", "max_val"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val, self.max_val = min_val, max_val
        self._check_options()


class Hardsigmoid(InPlaceActivation):
    r"""``input / 6 + 1 / 2``, clipped to between 0 and 1.

    Parameters
    ----------
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = \frac{\min(\max(x + 3, 0), 6)}{6}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardsigmoid()(xgrad.asarray([-4.0, 0.0, 1.5]))
    Tensor([0.  , 0.5 , 0.75])
    """

    function = staticmethod(F.hardsigmoid)


class Hardswish(InPlaceActivation):
    r"""``input * hardsigmoid(input)``.

    Parameters
    ----------
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = x\, \frac{\min(\max(x + 3, 0), 6)}{6}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardswish()(xgrad.asarray([0.0, 1.5, 4.0]))
    Tensor([0.   , 1.125, 4.   ])
    """

    function = staticmethod(F.hardswish)


class Softplus(Activation):
    r"""``log(1 + exp(beta * input)) / beta``, which is positive.

    Parameters
    ----------
    beta : float, default 1
        The sharpness; not 0.
    threshold : float, default 20
        Where ``beta * input`` is larger, the input is returned.

    Raises
    ------
    ValueError
        If `beta` is 0.

    Notes
    -----
    .. math:: y = \frac{1}{\beta} \ln(1 + e^{\beta x})

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softplus()(xgrad.asarray([-1e4, 1e4]))
    Tensor([    0., 10000.])
    """

    function = staticmethod(F.softplus)
    options = "beta", "threshold"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold
        self._check_options()


class Softsign(Activation):
    r"""``input / (1 + abs(input))``.

    Notes
    -----
    .. math:: y = \frac{x}{1 + |x|}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softsign()(xgrad.asarray([-1.0, 3.0]))
    Tensor([-0.5 ,  0.75])
    """

    function = staticmethod(F.softsign)


class LogSigmoid(Activation):
    r"""The logarithm of the logistic function of each element.

    Notes
    -----
    .. math:: y = \ln(\sigma(x)) = -\ln(1 + e^{-x})

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.LogSigmoid()(xgrad.asarray([-100.0]))
    Tensor([-100.])
    """

    function = staticmethod(F.logsigmoid)


class Tanhshrink(Activation):
    r"""``input - tanh(input)``.

    Notes
    -----
    .. math:: y = x - \tanh(x)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Tanhshrink()(xgrad.asarray([0.0, 100.0]))
    Tensor([ 0., 99.])
    """

    function = staticmethod(F.tanhshrink)


class Softshrink(Activation):
    r"""Elements moved towards 0 by `lambd`; elements that are closer to 0 become 0.

    Parameters
    ----------
    lambd : float, default 0.5
        The distance, 0 or more.

    Raises
    ------
    ValueError
        If `lambd` is negative.

    Notes
    -----
    .. math:: y = \operatorname{sign}(x) \max(|x| - \lambda, 0)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Softshrink()(xgrad.asarray([-2.0, 0.25, 1.0]))
    Tensor([-1.5,  0. ,  0.5])
    """

    function = staticmethod(F.softshrink)
    options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd
        self._check_options()


class Hardshrink(Activation):
    r"""Elements unchanged, except that those from ``-lambd`` to ``lambd`` become 0.

    Parameters
    ----------
    lambd : float, default 0.5
        The bound, 0 or more.

    Raises
    ------
    ValueError
        If `lambd` is negative.

    Notes
    -----
    .. math:: y = x\, [|x| > \lambda]

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Hardshrink()(xgrad.asarray([-2.0, 0.25, 1.0]))
    Tensor([-2.,  0.,  1.])
    """

    function = staticmethod(F.hardshrink)
    options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd
        self._check_options()


class Threshold(InPlaceActivation):
    r"""Elements above `threshold` unchanged, and `value` in place of the others.

    Parameters
    ----------
    threshold, value : float
        The threshold, and the value that replaces other elements.
    inplace : bool, default False
        Whether the input gets the value, too: see `functional.relu`.

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > t \\ v & \text{otherwise} \end{cases}

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.Threshold(1.0, 7.0)(xgrad.asarray([0.5, 1.0, 1.5]))
    Tensor([7. , 7. , 1.5])
    """

    function = staticmethod(F.threshold)
    options = "threshold", "value"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold, self.value = threshold, value
        self._check_options()


class GLU(Activation):
    r"""``a * sigmoid(b)``, where ``a`` and ``b`` are the halves of an axis.

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

    Notes
    -----
    .. math:: y = a\, \sigma(b), \quad x = (a, b)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.GLU()(xgrad.asarray([2.0, 4.0, 0.0, 0.0]))
    Tensor([1., 2.])
    """

    function = staticmethod(F.glu)
    options = ("axis",)

    @explained
    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis


class PReLU(Module):
    r"""Positive elements unchanged, and the others times a trained weight: see `functional.prelu`.

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

    Notes
    -----
    .. math:: y = \begin{cases} x & \text{if } x > 0 \\ w\, x & \text{otherwise} \end{cases}

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
