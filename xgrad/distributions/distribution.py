"""The base class of distributions, and helpers for their parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, NoReturn

from xgrad import ops
from xgrad.backend.recording import check_true
from xgrad.core.arguments import ArrayLike, as_tensor
from xgrad.core.dtypes import float32, float64
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.distributions.constraints import Constraint, real
from xgrad.random.counts import open_uniform
from xgrad.random.generator import as_shape, default_generator
from xgrad.support.hints import shown

Shape = tuple[int, ...]
LOG_2PI = math.log(2 * math.pi)


class Distribution:
    """The base class of probability distributions, with PyTorch's names and shapes.

    A distribution with a `batch_shape` is an array of distributions with separate parameters. The
    `event_shape` is the shape of one sample of one of them, such as (3,) for vectors of three
    numbers. `sample` returns an array of shape ``sample_shape + batch_shape + event_shape``, and
    `log_prob` of such an array has the shape ``sample_shape + batch_shape``.

    Parameters
    ----------
    batch_shape, event_shape : tuple of int, default ()
        The shapes.
    validate_args : bool, optional
        Whether to check the values of parameters, and of the arguments of `log_prob` and `cdf`; by
        default they are checked. Not on ``cuda``, where a check would have to synchronize.

    Raises
    ------
    ValueError
        If a parameter has invalid values. A captured step checks them again at each replay.

    Attributes
    ----------
    arg_constraints : dict
        The sets of valid values of the parameters, by name.
    has_rsample : bool
        Whether `rsample` exists: samples then have derivatives by the parameters.
    has_enumerate_support : bool
        Whether `enumerate_support` exists.

    Notes
    -----
    Samples are computed from numbers of the default generator (see `xgrad.manual_seed`), which are
    bit-identical on every device; the samples themselves agree to rounding. A call uses up one call
    of the generator, or a fixed number of them, whatever the values, so that captured steps draw as
    eager ones do. In a `vmap`, drawing is refused, as for all random numbers; `log_prob` and the
    other functions work.

    Examples
    --------
    >>> import xgrad
    >>> normal = xgrad.distributions.Normal(xgrad.zeros(3), 1.0)
    >>> isinstance(normal, xgrad.distributions.Distribution), normal.batch_shape
    (True, (3,))
    >>> normal.sample((5,)).shape
    (5, 3)
    """

    arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
    has_rsample: bool = False
    has_enumerate_support: bool = False
    _support: Constraint = real

    def __init__(
        self,
        batch_shape: Shape = (),
        event_shape: Shape = (),
        validate_args: bool | None = None,
    ) -> None:
        if validate_args is not None and not isinstance(validate_args, bool):
            raise TypeError(
                f"{self._name}: expected a bool or None for validate_args, got"
                f" {shown(validate_args)}"
            )
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
        self._validates = validate_args is not False
        if self._validates:
            for name, value in self._parameters().items():
                constraint = self.arg_constraints[name]
                self._check(name, constraint.check(value), constraint)

    @property
    def _name(self) -> str:
        return type(self).__name__

    @property
    def batch_shape(self) -> Shape:
        """The shape of the array of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Shape:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def support(self) -> Constraint:
        """The set of possible samples."""
        return self._support

    @property
    def mean(self) -> Tensor:
        """The mean, of shape ``batch_shape + event_shape``."""
        self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable sample, of shape ``batch_shape + event_shape``."""
        self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each number, of shape ``batch_shape + event_shape``."""
        self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return ops.sqrt(self.variance)

    def sample(self, sample_shape: int | Shape = ()) -> Tensor:
        """Return samples without a graph, of shape ``sample_shape + batch_shape + event_shape``."""
        with no_grad():
            return self._draw(self._sample_shape(sample_shape)).detach()

    def rsample(self, sample_shape: int | Shape = ()) -> Tensor:
        """Return samples with derivatives by the parameters; NotImplementedError if there are none.

        For the same state of the generator, `sample` returns the same samples.
        """
        if not self.has_rsample:
            raise NotImplementedError(
                f"{self._name}: expected a distribution with has_rsample, got one whose samples"
                " have no derivatives by its parameters: use sample, and log_prob in the loss"
            )
        return self._draw(self._sample_shape(sample_shape))

    def log_prob(self, value: ArrayLike) -> Tensor:
        """Return the logarithm of the density, or of the probability, of samples."""
        self._lacks("log_prob")

    def cdf(self, value: ArrayLike) -> Tensor:
        """Return the probability of samples up to a value."""
        self._lacks("cdf")

    def icdf(self, value: ArrayLike) -> Tensor:
        """Return the quantiles of probabilities, the inverse of `cdf`."""
        self._lacks("icdf")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape `batch_shape`."""
        self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return ops.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all possible samples along a first axis.

        The result has the shape ``(count,) + batch_shape + event_shape``; with ``expand=False``,
        the axes of the batch have length 1.
        """
        self._lacks("enumerate_support")

    def expand(self, batch_shape: Shape) -> Distribution:
        """Return the same distributions, broadcast to a batch shape."""
        batch_shape = self._sample_shape(batch_shape)
        expanded = self._rebuilt(
            {
                name: ops.broadcast_to(x, batch_shape + x.shape[x.ndim - self._event_dim(name) :])
                for name, x in self._parameters().items()
            }
        )
        expanded._validates = self._validates
        return expanded

    def _event_dim(self, name: str) -> int:
        """Return the number of axes of one value of a parameter."""
        return self.arg_constraints[name].event_dim

    def __repr__(self) -> str:
        parameters = self._parameters()
        sizes = {
            name: f"{x.item():g}" if x.ndim == 0 and not x.device.level else f"shape {x.shape}"
            for name, x in parameters.items()
        }
        return f"{self._name}({', '.join(f'{name}: {size}' for name, size in sizes.items())})"

    # For subclasses

    def _parameters(self) -> dict[str, Tensor]:
        """Return the parameters that the distribution was made from, by name."""
        return {name: getattr(self, name) for name in self.arg_constraints}

    def _rebuilt(self, parameters: dict[str, Tensor]) -> Distribution:
        """Return a distribution of the same kind with other parameters, which are not checked."""
        return type(self)(**parameters, validate_args=False)  # type: ignore[arg-type]

    def _unchecked(self) -> Distribution:
        """Return the same distribution, which does not check the arguments of `log_prob`."""
        unchecked = copy(self)
        unchecked._validates = False
        return unchecked

    def _like(self) -> Tensor:
        """Return a tensor of the dtype and on the device of the parameters."""
        return next(iter(self._parameters().values()), ops.zeros(()))

    def _draw(self, sample_shape: Shape) -> Tensor:
        """Return samples, with a graph if the distribution has `rsample`."""
        self._lacks("sample")

    def _lacks(self, method: str) -> NoReturn:
        raise NotImplementedError(
            f"{self._name}: expected a distribution with {method}, got one that has none"
        )

    def _sample_shape(self, sample_shape: Any) -> Shape:
        return as_shape(self._name, sample_shape)

    def _full_shape(self, sample_shape: Shape) -> Shape:
        return sample_shape + self._batch_shape + self._event_shape

    def _check(self, name: str, valid: Tensor, expected: Constraint | str) -> None:
        """Raise ValueError unless all values are valid; a replay repeats the check."""
        every = ops.all(valid.detach())
        if not every.device.backend.asynchronous and not check_true(every.device, every._data):
            raise ValueError(f"{self._name}: expected {name} of {expected}, got others")

    def _value(self, value: Any, like: Tensor, floating: bool = True) -> Tensor:
        """Return an argument of `log_prob` or `cdf` as a tensor, checked."""
        x = as_like(self._name, "value", value, like)
        event = len(self._event_shape)
        shape, full = x.shape, self._batch_shape + self._event_shape
        ends = zip(reversed(shape), reversed(full), strict=False)
        if shape[len(shape) - event :] != self._event_shape or any(
            1 not in (m, n) and m != n for m, n in ends
        ):
            raise ValueError(
                f"{self._name}: expected a value of a shape that broadcasts with {full}, got"
                f" {shape}"
            )
        if self._validates:
            self._check("a value", self.support.check(x), self.support)
        return x if x.dtype.kind == "f" or not floating else x.astype(like.dtype)

    def _probability(self, value: Any, like: Tensor) -> Tensor:
        """Return an argument of `icdf` as a tensor, checked."""
        x = as_like(self._name, "value", value, like)
        if self._validates:
            self._check("a value", (x >= 0) & (x <= 1), "probabilities from 0 to 1")
        return x


def as_like(title: str, name: str, x: Any, like: Tensor) -> Tensor:
    """Return an argument as a tensor; Python numbers and lists get the dtype and device of another.

    An array of NumPy keeps its dtype.
    """
    if isinstance(x, (bool, int, float, list)):
        return ops.asarray(x, dtype=like.dtype, device=like.device)
    return as_tensor(title, name, x)


def parameters(title: str, event_dims: tuple[int, ...] = (), /, **values: Any) -> list[Tensor]:
    """Return parameters as floating tensors of one dtype, which broadcast over their batch axes.

    `event_dims` has the number of axes of one value of each parameter, by default 0.
    """
    dims = event_dims or (0,) * len(values)
    tensors = [x for x in values.values() if isinstance(x, Tensor)]
    options: dict[str, Any] = {"device": tensors[0].device} if tensors else {}
    given = [
        ops.asarray(float(x), **_float_options(tensors), **options)
        if isinstance(x, (bool, int, float))
        else as_tensor(title, name, x)
        for name, x in values.items()
    ]
    for name, x, dim in zip(values, given, dims, strict=True):
        if x.dtype.kind != "f":
            raise TypeError(
                f"{title}: expected floating numbers for {name}, got {x.dtype}: use"
                " .astype(xgrad.float32)"
            )
        if x.ndim < dim:
            raise ValueError(
                f"{title}: expected {name} with {dim} or more axes, got shape {x.shape}"
            )
    dtype = ops.result_type(*given)
    given = [x if x.dtype == dtype else x.astype(dtype) for x in given]
    batches = [x.shape[: x.ndim - dim] for x, dim in zip(given, dims, strict=True)]
    try:
        batch = ops.broadcast_shapes(*batches)
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in zip(values, given, strict=True))
        raise ValueError(
            f"{title}: expected parameters of shapes that broadcast, got {shapes}"
        ) from None
    return [
        x if own == batch else ops.broadcast_to(x, batch + x.shape[x.ndim - dim :])
        for x, own, dim in zip(given, batches, dims, strict=True)
    ]


def _float_options(tensors: list[Tensor]) -> dict[str, Any]:
    floats = [x.dtype for x in tensors if x.dtype.kind == "f"]
    return {"dtype": ops.result_type(*floats)} if floats else {}


def one_of(title: str, **values: Any) -> tuple[str, Any]:
    """Return the name and value of the only argument that is not None."""
    given = [(name, x) for name, x in values.items() if x is not None]
    if len(given) != 1:
        names = [name for name, _ in given]
        got = " and ".join(names) if names else "none"
        raise ValueError(f"{title}: expected one of {', '.join(values)}, got {got}")
    return given[0]


# Noise of the default generator, without parameters


def normal_noise(shape: Shape, like: Tensor) -> Tensor:
    """Return standard normal numbers in the dtype and on the device of a tensor."""
    drawn = default_generator.randn(shape, dtype=_drawn_dtype(like), device=like.device)
    return drawn if drawn.dtype == like.dtype else drawn.astype(like.dtype)


def uniform_noise(shape: Shape, like: Tensor) -> Tensor:
    """Return uniform numbers over [0, 1) in the dtype and on the device of a tensor."""
    drawn = default_generator.rand(shape, dtype=_drawn_dtype(like), device=like.device)
    return drawn if drawn.dtype == like.dtype else drawn.astype(like.dtype)


def exponential_noise(shape: Shape, like: Tensor) -> Tensor:
    """Return exponential numbers of mean 1 in the dtype and on the device of a tensor."""
    drawn = default_generator.exponential(shape, dtype=_drawn_dtype(like), device=like.device)
    return drawn if drawn.dtype == like.dtype else drawn.astype(like.dtype)


def probability_noise(shape: Shape, like: Tensor) -> Tensor:
    """Return uniform numbers above 0 and below 1, float64, on the device of a tensor."""
    return open_uniform(default_generator, shape, like.device)


def _drawn_dtype(like: Tensor) -> Any:
    return float64 if like.dtype == float64 else float32
