"""Parametrizations of weights: orthogonal, normalized, and with a largest singular value of 1."""

from __future__ import annotations

from typing import Any

from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.nn.module import Module
from xgrad.nn.utils.orthogonal import orthogonal
from xgrad.nn.utils.parametrize import register_parametrization
from xgrad.nn.utils.weight_norms import (
    as_matrix,
    check_dim,
    check_spectral,
    divided,
    norm_except,
    normalized,
    parameter_of,
    power_iterations,
    random_vectors,
)
from xgrad.support import hints

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
hints.install(__name__)


class _WeightNorm(Module):
    """The product of lengths and directions."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    r"""Replace a weight by its length and its direction, two parameters.

    .. math:: w = g\, \frac{v}{\lVert v \rVert}

    The parameters are ``parametrizations.weight.original0`` and ``original1`` for g and v. The
    weight is computed whenever it is read; an assignment to it sets both.

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
    >>> layer = xgrad.nn.utils.parametrizations.weight_norm(xgrad.nn.Linear(3, 2))
    >>> {name: p.shape for name, p in layer.named_parameters() if name != "bias"}
    {'parametrizations.weight.original0': (2, 1),
     'parametrizations.weight.original1': (2, 3)}
    """
    weight = parameter_of("weight_norm", module, name)
    check_dim("weight_norm", weight, dim)
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """Division by the largest singular value, which power iterations approximate."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.n_power_iterations, self.dim, self.eps = iterations, dim, eps
        if weight.ndim > 1:
            matrix = as_matrix(weight, dim)
            u, v = random_vectors(matrix, eps)
            u, v = power_iterations(matrix, u, v, 15, eps, "u")
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalized(weight, self.eps)
        if self.training:
            matrix, count = as_matrix(weight, self.dim), self.n_power_iterations
            u, v = power_iterations(matrix, self._u, self._v, count, self.eps, "u")
            self._u.data, self._v.data = u, v
        return divided(weight, self._u, self._v, self.dim)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    r"""Divide a weight by its largest singular value, as a matrix.

    .. math:: w = \frac{W}{\sigma}, \quad \sigma = u^\top W v

    The parameter W is ``parametrizations.weight.original``. Its singular vectors u and v are
    buffers, which power iterations improve whenever the weight is read in training mode. A vector
    is divided by its norm.

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
    >>> layer = xgrad.nn.utils.parametrizations.spectral_norm(xgrad.nn.Linear(3, 2))
    >>> for _ in range(20):  # each read improves the approximation
    ...     weight = layer.weight.detach()
    >>> bool(abs(xgrad.linalg.svdvals(weight)[0] - 1) < 1e-3)
    True
    """
    weight = parameter_of("spectral_norm", module, name)
    axis, count = check_spectral("spectral_norm", module, weight, n_power_iterations, eps, dim)
    with no_grad():
        parametrization: Any = _SpectralNorm(weight, count, axis, eps)
    return register_parametrization(module, name, parametrization)
