"""Invertible functions of samples, with the logarithms of their derivatives."""

from __future__ import annotations

import math
from typing import Any

from xgrad import ops, special
from xgrad.core.arguments import as_int
from xgrad.core.tensor import Tensor
from xgrad.distributions import constraints
from xgrad.distributions.constraints import Constraint
from xgrad.support.hints import shown

__all__ = [
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "Transform",
]


class Transform:
    """The base class of invertible, increasing or decreasing functions of samples.

    A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`, and `_codomain` if its values
    are not all real numbers. Transforms are equal if their types and parameters are: equal numbers,
    or the same tensors.

    Attributes
    ----------
    event_dim : int
        The number of axes of one sample, over which `log_abs_det_jacobian` is summed.
    sign : int or Tensor
        1 if the function increases, -1 if it decreases.

    Examples
    --------
    >>> import xgrad
    >>> exp = xgrad.distributions.transforms.ExpTransform()
    >>> exp(xgrad.asarray(0.0)), exp.inv(xgrad.asarray(1.0))
    (Tensor(1.), Tensor(0.))
    """

    _codomain: Constraint = constraints.real
    event_dim: int = 0
    sign: Any = 1

    @property
    def codomain(self) -> Constraint:
        """The set of values."""
        return self._codomain

    def __call__(self, x: Tensor) -> Tensor:
        """Return the value of samples."""
        return self._call(x)

    def inv(self, y: Tensor) -> Tensor:
        """Return the samples whose values are `y`."""
        return self._inverse(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the absolute derivative at `x`, with the value `y`."""
        raise NotImplementedError

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the values of samples of a `shape`."""
        return shape

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        names = vars(self).keys()
        pairs = [(getattr(self, name), getattr(other, name)) for name in names]
        return all(x is y or (isinstance(x, (int, float, list)) and x == y) for x, y in pairs)

    def __hash__(self) -> int:
        return hash(type(self))

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class AffineTransform(Transform):
    r"""A shift and a scale.

    .. math:: y = a + b\, x, \quad \ln\left(\left|\frac{d y}{d x}\right|\right) = \ln(|b|)

    a is `loc`, and b is `scale`.

    Parameters
    ----------
    loc, scale : Tensor or float
        The scale is not 0.
    event_dim : int, default 0
        The number of axes of one sample.

    Raises
    ------
    TypeError
        If `event_dim` is not an int.
    ValueError
        If `event_dim` is negative.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.transforms.AffineTransform(1.0, 2.0)(xgrad.asarray(3.0))
    Tensor(7.)
    """

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0) -> None:
        self.loc, self.scale = loc, scale
        self.event_dim = as_int("AffineTransform", "event_dim", event_dim)
        if self.event_dim < 0:
            raise ValueError(
                f"AffineTransform: expected event_dim of 0 or more, got {shown(event_dim)}"
            )

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, self.event_dim)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of samples, broadcast with `loc` and `scale`."""
        return ops.broadcast_shapes(shape, *map(_shape_of, (self.loc, self.scale)))

    @property
    def sign(self) -> Any:
        """1 if the function increases, -1 if it decreases."""
        return (
            ops.sign(self.scale)
            if isinstance(self.scale, Tensor)
            else (math.copysign(1, self.scale))
        )

    def _call(self, x: Tensor) -> Tensor:
        y: Tensor = self.loc + self.scale * x
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        x: Tensor = (y - self.loc) / self.scale
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the absolute scale, for each sample."""
        scale = self.scale if isinstance(self.scale, Tensor) else ops.full_like(x, self.scale)
        logs = ops.broadcast_to(ops.log(ops.abs(scale)), ops.broadcast_shapes(x.shape, scale.shape))
        axes = tuple(range(-self.event_dim, 0))
        return ops.sum(logs, axis=axes) if axes else logs

    def __repr__(self) -> str:
        return f"AffineTransform({self.loc}, {self.scale})"


class ExpTransform(Transform):
    r"""The exponential function.

    .. math:: y = e^x, \quad \ln\left(\left|\frac{d y}{d x}\right|\right) = x

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.transforms.ExpTransform()(xgrad.asarray(0.0))
    Tensor(1.)
    """

    _codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return ops.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x`."""
        return x


class SigmoidTransform(Transform):
    r"""The logistic function.

    .. math:: y = \sigma(x), \quad \ln\left(\left|\frac{d y}{d x}\right|\right) = \ln(y\, (1 - y))

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.transforms.SigmoidTransform()(xgrad.asarray(0.0))
    Tensor(0.5)
    """

    _codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return ops.sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return special.logit(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of ``y * (1 - y)``."""
        return special.log_expit(x) + special.log_expit(-x)


class TanhTransform(Transform):
    r"""The hyperbolic tangent.

    .. math:: y = \tanh(x), \quad \ln\left(\left|\frac{d y}{d x}\right|\right) = \ln(1 - y^2)

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.transforms.TanhTransform()(xgrad.asarray(0.0))
    Tensor(0.)
    """

    _codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return ops.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of ``1 - y**2``."""
        return 2 * (math.log(2) - x + special.log_expit(2 * x))


class SoftplusTransform(Transform):
    r"""The function softplus, ``log(1 + exp(x))``.

    .. math:: y = \ln(1 + e^x), \quad \ln\left(\left|\frac{d y}{d x}\right|\right) = \ln(\sigma(x))

    Examples
    --------
    >>> import xgrad
    >>> xgrad.distributions.transforms.SoftplusTransform()(xgrad.asarray(0.0))
    Tensor(0.6931472)
    """

    _codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return -special.log_expit(-x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + ops.log(-ops.expm1(-y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the logistic function."""
        return special.log_expit(x)


class ComposeTransform(Transform):
    """Several transforms, one after the other.

    Parameters
    ----------
    parts : sequence of Transform
        The first is applied first.

    Raises
    ------
    TypeError
        If a part is not a Transform.

    Examples
    --------
    >>> import xgrad
    >>> transforms = xgrad.distributions.transforms
    >>> parts = [transforms.AffineTransform(0.0, 2.0), transforms.ExpTransform()]
    >>> transforms.ComposeTransform(parts).inv(xgrad.asarray(1.0))
    Tensor(0.)
    """

    def __init__(self, parts: Any) -> None:
        self.parts = list(parts)
        for part in self.parts:
            if not isinstance(part, Transform):
                raise TypeError(f"ComposeTransform: expected Transforms, got {type(part).__name__}")
        self.event_dim = max((part.event_dim for part in self.parts), default=0)

    @property
    def codomain(self) -> Constraint:
        return self.parts[-1].codomain if self.parts else constraints.real

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the values of samples of a shape, after all parts."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    @property
    def sign(self) -> Any:
        """1 if the function increases, -1 if it decreases."""
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the logarithms of all parts."""
        total = None
        for part in self.parts:
            value = part(x)
            log = part.log_abs_det_jacobian(x, value)
            axes = tuple(range(part.event_dim - self.event_dim, 0))
            log = ops.sum(log, axis=axes) if axes else log
            total, x = log if total is None else total + log, value
        return ops.zeros_like(x) if total is None else total

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


def _shape_of(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))
