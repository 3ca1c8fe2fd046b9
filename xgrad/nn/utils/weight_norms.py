"""Weights as a direction and a length, and weights with a largest singular value of 1."""

from __future__ import annotations

from typing import Any

from xgrad.core.arguments import as_int, as_number
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.checks import positive_int
from xgrad.nn.computed import ComputedAttribute
from xgrad.nn.module import Module
from xgrad.nn.parameter import Parameter
from xgrad.nn.utils.parametrize import check_module
from xgrad.ops import asarray, maximum, moveaxis, reshape, sqrt, square, sum
from xgrad.random import randn
from xgrad.support.hints import shown


def norm_except(x: Tensor, dim: int | None) -> Tensor:
    """Return the norm over all axes but one, which keep length 1; of all if `dim` is None or -1."""
    if dim in (None, -1):
        return sqrt(sum(square(x)))
    axes = tuple([axis for axis in range(x.ndim) if axis != dim])
    return sqrt(sum(square(x), axis=axes, keepdims=True)) if axes else sqrt(square(x))


def check_dim(op: str, weight: Tensor, dim: int | None) -> None:
    """Raise ValueError unless a weight has an axis, or `dim` stands for all of them."""
    if dim is not None and not -1 <= as_int(op, "dim", dim) < weight.ndim:
        raise ValueError(f"{op}: expected dim from -1 to {weight.ndim - 1}, or None, got {dim}")


def parameter_of(op: str, module: Module, name: str) -> Parameter:
    """Return a parameter of a module by name; ValueError if there is none."""
    check_module(op, "module", module)
    weight = vars(module).get(name) if isinstance(name, str) else None
    if not isinstance(weight, Parameter):
        raise ValueError(
            f"{op}: expected the name of a parameter of {type(module).__name__}, got {shown(name)}"
        )
    return weight


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix whose rows are along an axis."""
    weight = moveaxis(weight, dim, 0) if dim else weight
    return reshape(weight, (weight.shape[0], -1))


def normalized(x: Tensor, eps: float) -> Tensor:
    """Return a vector divided by its norm, or by `eps` if that is larger."""
    return x / maximum(sqrt(sum(square(x))), eps)


def random_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return random vectors of norm 1 for the rows and the columns of a matrix."""
    rows, columns = (
        normalized(randn(n, device=matrix.device, dtype=matrix.dtype), eps) for n in matrix.shape
    )
    return rows, columns


@no_grad()
def power_iterations(
    matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float, first: str
) -> tuple[Tensor, Tensor]:
    """Return better approximations of the left and right singular vectors of the largest value."""
    for _ in range(count):
        if first == "u":
            u = normalized(matrix @ v, eps)
            v = normalized(matrix.mT @ u, eps)
        else:
            v = normalized(matrix.mT @ u, eps)
            u = normalized(matrix @ v, eps)
    return u, v


def divided(weight: Tensor, u: Tensor, v: Tensor, dim: int) -> Tensor:
    """Return a weight divided by its largest singular value, whose singular vectors are given.

    They are copied: later power iterations must not change what the backward pass needs.
    """
    u, v = asarray(u, copy=True), asarray(v, copy=True)
    return weight / (u @ (as_matrix(weight, dim) @ v))


def rows_axis(module: Module, dim: int | None) -> int:
    """Return the axis of the output channels, by default that of a module's weight."""
    if dim is None:
        return 1 if getattr(module, "transposed", False) else 0
    return dim


def _check_assigned(module: Module, name: str, value: Any, like: Tensor) -> None:
    """Raise TypeError or ValueError unless a value has the shape and the dtype of a parameter."""
    title = f"{type(module).__name__}.{name}"
    if not isinstance(value, Tensor):
        raise TypeError(f"{title}: expected a Tensor, got {shown(value)}")
    if (value.shape, value.dtype) != (like.shape, like.dtype):
        raise ValueError(
            f"{title}: expected a tensor of shape {like.shape} and {like.dtype}, got {value.shape}"
            f" and {value.dtype}"
        )


class _WeightNorm(ComputedAttribute):
    """A weight that is computed from the parameters `name`_g and `name`_v."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def value(self, module: Any) -> Any:
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return v * (g / norm_except(v, self.dim))

    def assign(self, module: Any, value: Any) -> None:
        v = getattr(module, f"{self.name}_v")
        _check_assigned(module, self.name, value, v)
        with no_grad():
            getattr(module, f"{self.name}_g").data = norm_except(value, self.dim)
        v.data = value


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    r"""Replace a weight by its length and its direction, two parameters.

    .. math:: w = g\, \frac{v}{\lVert v \rVert}

    g and v are the parameters ``weight_g`` and ``weight_v``. The weight is computed whenever it is
    read. See `parametrizations.weight_norm`.

    T. Salimans, D. P. Kingma, "Weight normalization: a simple reparameterization to accelerate
    training of deep neural networks", NeurIPS, 2016.

    Parameters
    ----------
    module : Module
        The module, which is changed.
    name : str, default "weight"
        The name of the parameter.
    dim : int or None, default 0
        The axis along which each slice has a length; None or -1 for one length of the whole weight.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ValueError
        If there is no such parameter or axis.
    TypeError
        If `module` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.utils.weight_norm(xgrad.nn.Linear(3, 2))
    >>> {name: p.shape for name, p in layer.named_parameters()}
    {'bias': (2,), 'weight_g': (2, 1), 'weight_v': (2, 3)}
    """
    weight = parameter_of("weight_norm", module, name)
    check_dim("weight_norm", weight, dim)
    delattr(module, name)
    with no_grad():
        length = norm_except(weight, dim)
    setattr(module, f"{name}_g", Parameter(length, requires_grad=weight.requires_grad))
    setattr(module, f"{name}_v", Parameter(weight, requires_grad=weight.requires_grad))
    module._compute(name, _WeightNorm(name, dim))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight of `weight_norm` one parameter again, with its present value.

    Parameters
    ----------
    module : Module
        The module, which is changed.
    name : str, default "weight"
        The name of the parameter.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ValueError
        If `weight_norm` was not called.
    TypeError
        If `module` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.utils.weight_norm(xgrad.nn.Linear(3, 2))
    >>> list(xgrad.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    check_module("remove_weight_norm", "module", module)
    return _removed("remove_weight_norm", module, name, _WeightNorm, ("g", "v"))


def _removed(
    op: str, module: Module, name: str, kind: type[ComputedAttribute], parts: tuple[str, ...]
) -> Module:
    """Make a computed weight a parameter again, without the parameters and buffers of its parts."""
    attribute = module._computed.get(name) if isinstance(name, str) else None
    if not isinstance(attribute, kind):
        raise ValueError(
            f"{op}: expected the name of a weight of {op.removeprefix('remove_')} of"
            f" {type(module).__name__}, got {shown(name)}"
        )
    requires_grad = getattr(module, f"{name}_{parts[0]}").requires_grad
    with no_grad():
        weight = getattr(module, name)
    module._compute(name, None)
    for part in parts:
        delattr(module, f"{name}_{part}")
    setattr(module, name, Parameter(weight, requires_grad=requires_grad))
    return module


class _SpectralNorm(ComputedAttribute):
    """A weight that is the parameter `name`_orig, divided by its largest singular value."""

    def __init__(self, name: str, dim: int, iterations: int, eps: float) -> None:
        self.name, self.dim, self.iterations, self.eps = name, dim, iterations, eps

    def value(self, module: Any) -> Any:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        if module.training:
            matrix = as_matrix(weight, self.dim)
            new_u, new_v = power_iterations(matrix, u, v, self.iterations, self.eps, "v")
            u.data, v.data = new_u, new_v
        return divided(weight, u, v, self.dim)

    def assign(self, module: Any, value: Any) -> None:
        weight = getattr(module, f"{self.name}_orig")
        _check_assigned(module, self.name, value, weight)
        weight.data = value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    r"""Divide a weight by its largest singular value, as a matrix.

    .. math:: w = \frac{W}{\sigma}, \quad \sigma = u^\top W v

    The parameter W is ``weight_orig``. The singular vectors are the buffers ``weight_u`` and
    ``weight_v``, which power iterations improve whenever the weight is read in training mode. See
    `parametrizations.spectral_norm`.

    T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida, "Spectral normalization for generative adversarial
    networks", ICLR, 2018.

    Parameters
    ----------
    module : Module
        The module, which is changed.
    name : str, default "weight"
        The name of the parameter.
    n_power_iterations : int, default 1
        The number of power iterations.
    eps : float, default 1e-12
        The smallest norm by which a vector is divided.
    dim : int, optional
        The axis of the rows of the matrix; by default 0, or 1 for a transposed convolution.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ValueError
        If there is no such parameter or axis, or an option is out of range.
    TypeError
        If `module` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.utils.spectral_norm(xgrad.nn.Linear(3, 2), n_power_iterations=100)
    >>> weight = layer.weight.detach()
    >>> bool(abs(xgrad.linalg.svdvals(weight)[0] - 1) < 1e-5), list(layer.state_dict())
    (True, ['bias', 'weight_orig', 'weight_u', 'weight_v'])
    """
    op = "spectral_norm"
    weight = parameter_of(op, module, name)
    dim, count = check_spectral(op, module, weight, n_power_iterations, eps, dim)
    with no_grad():
        u, v = random_vectors(as_matrix(weight, dim), eps)
    delattr(module, name)
    setattr(module, f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module._compute(name, _SpectralNorm(name, dim, count, eps))
    return module


def check_spectral(
    op: str, module: Module, weight: Tensor, iterations: int, eps: float, dim: int | None
) -> tuple[int, int]:
    """Return the axis of the rows and the number of iterations, after checks of all options."""
    count = positive_int(op, "n_power_iterations", iterations)
    if not as_number(op, "eps", eps) > 0:
        raise ValueError(f"{op}: expected eps above 0, got {eps}")
    axis = as_int(op, "dim", rows_axis(module, dim))
    if not -weight.ndim <= axis < weight.ndim:
        raise ValueError(f"{op}: expected dim below {weight.ndim}, the number of axes, got {dim}")
    return axis % weight.ndim, count


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight of `spectral_norm` a usual parameter again, with its present value.

    Parameters
    ----------
    module : Module
        The module, which is changed.
    name : str, default "weight"
        The name of the parameter.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ValueError
        If `spectral_norm` was not called.
    TypeError
        If `module` is not a module.

    Examples
    --------
    >>> import xgrad
    >>> layer = xgrad.nn.utils.spectral_norm(xgrad.nn.Linear(3, 2))
    >>> list(xgrad.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    check_module("remove_spectral_norm", "module", module)
    training = module.training
    module.training = False  # no more power iterations
    try:
        return _removed("remove_spectral_norm", module, name, _SpectralNorm, ("orig", "u", "v"))
    finally:
        module.training = training
