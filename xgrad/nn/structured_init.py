"""Initialization of matrices and kernels by their structure: see `xgrad.nn.init`."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from xgrad.core.arguments import as_number, check_tensor
from xgrad.core.dtypes import float64
from xgrad.core.tensor import Tensor
from xgrad.linalg import diagonal, qr
from xgrad.ops import argsort, asarray, eye, reshape, setitem, sign, where, zeros
from xgrad.ops.writing import set_data
from xgrad.random import Generator, normal, uniform
from xgrad.support.hints import shown


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    tensor : Tensor
        Of two axes.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    ValueError
        If the tensor has another number of axes.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.eye_(xgrad.zeros((2, 3)))
    Tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    rows, columns = _shape("eye_", tensor, 2, 2)
    set_data(tensor, eye(rows, columns, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it preserves as many channels as possible.

    The center of kernel i, of channel i, is 1, and all other elements are 0; with several groups,
    of each group.

    Parameters
    ----------
    tensor : Tensor
        Of shape (out, in / groups, ...), with one to three spatial axes.
    groups : int, default 1
        The number of groups of channels.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    ValueError
        If the tensor has another number of axes, or the groups do not divide its first.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.nn.init.dirac_(xgrad.zeros((1, 2, 3)))
    Tensor([[[0., 1., 0.],
             [0., 0., 0.]]])
    """
    out, channels, *kernel = _shape("dirac_", tensor, 3, 5)
    if isinstance(groups, bool) or not isinstance(groups, Integral) or groups < 1 or out % groups:
        raise ValueError(
            f"dirac_: expected groups that divide the output channels, {out}, got {shown(groups)}"
        )
    of_group = eye(out // groups, channels, dtype=tensor.dtype, device=tensor.device)
    values, center = zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device), out // groups
    for group in range(groups):
        key = slice(group * center, (group + 1) * center), slice(None), *[n // 2 for n in kernel]
        values = setitem(values, key, of_group)
    set_data(tensor, values)
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    r"""Fill a weight with a random matrix that has orthonormal rows or columns, times a gain.

    A. M. Saxe, J. L. McClelland, S. Ganguli, "Exact solutions to the nonlinear dynamics of learning
    in deep linear neural networks", ICLR, 2014.

    .. math:: W W^\top = g^2 I \text{ or } W^\top W = g^2 I

    g is the `gain`.

    Parameters
    ----------
    tensor : Tensor
        Of shape (out, in, ...), float32 or float64; further axes count as part of the second.
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
        If the dtype is neither float32 nor float64, or `gain` is not a number.

    Examples
    --------
    >>> import xgrad
    >>> w = xgrad.nn.init.orthogonal_(xgrad.zeros((2, 4)))
    >>> bool(xgrad.allclose(w @ w.T, xgrad.eye(2), atol=1e-6))
    True
    """
    rows, *rest = _shape("orthogonal_", tensor, 2, None)
    gain, columns = as_number("orthogonal_", "gain", gain), math.prod(rest)
    _check_floating("orthogonal_", tensor)
    if not tensor.size:
        return tensor
    # In float64 on the host, so that all devices get the same numbers.
    shape = max(rows, columns), min(rows, columns)
    q, r = qr(normal(shape, dtype=float64, device="cpu", generator=generator))
    signs = sign(diagonal(r))
    q = q * where(signs == 0, 1, signs)  # the sign makes the distribution uniform
    q = q.mT if rows < columns else q
    values = asarray(gain * reshape(q, tensor.shape), dtype=tensor.dtype)
    set_data(tensor, values.to(tensor.device))
    return tensor


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix from a normal distribution with mean 0, with zeros at random in each column.

    J. Martens, "Deep learning via Hessian-free optimization", ICML, 2010.

    Parameters
    ----------
    tensor : Tensor
        Of two axes, float32 or float64.
    sparsity : float
        The share of zeros in a column, from 0 to 1, rounded up.
    std : float, default 0.01
        The standard deviation of the other elements.
    generator : Generator, optional
        By default the stream of this thread or task: see `manual_seed`.

    Returns
    -------
    Tensor
        The same `tensor`.

    Raises
    ------
    ValueError
        If the tensor has another number of axes, `sparsity` is not from 0 to 1, or `std` is
        negative.
    TypeError
        If the dtype is neither float32 nor float64, or an option is not a number.

    Examples
    --------
    >>> import xgrad
    >>> w = xgrad.nn.init.sparse_(xgrad.zeros((4, 3)), 0.5)
    >>> xgrad.count_nonzero(w, axis=0).tolist()
    [2, 2, 2]
    """
    rows, _ = _shape("sparse_", tensor, 2, 2)
    if not 0 <= as_number("sparse_", "sparsity", sparsity) <= 1:
        raise ValueError(f"sparse_: expected sparsity from 0 to 1, got {sparsity}")
    if not as_number("sparse_", "std", std) >= 0:
        raise ValueError(f"sparse_: expected std >= 0, got {std}")
    _check_floating("sparse_", tensor)
    options: dict[str, Any] = {
        "dtype": tensor.dtype,
        "device": tensor.device,
        "generator": generator,
    }
    values = normal(tensor.shape, 0.0, std, **options)
    # The ranks of random numbers in each column are a random order of its rows.
    order = argsort(uniform(tensor.shape, **options), axis=0)
    ranks = argsort(order, axis=0)
    set_data(tensor, where(ranks < math.ceil(sparsity * rows), 0, values))
    return tensor


def _shape(name: str, tensor: Tensor, least: int, most: int | None) -> tuple[int, ...]:
    """Return the shape of a tensor; ValueError if it has too few or too many axes."""
    shape = check_tensor(name, "tensor", tensor).shape
    if len(shape) < least or (most is not None and len(shape) > most):
        axes = f"{least} axes" if least == most else f"{least} axes or more"
        axes = axes if most in (None, least) else f"{least} to {most} axes"
        raise ValueError(f"{name}: expected a tensor of {axes}, got shape {shape}")
    return shape


def _check_floating(name: str, tensor: Tensor) -> None:
    if tensor.dtype.kind != "f" or tensor.dtype.itemsize < 4:
        raise TypeError(f"{name}: expected a tensor of float32 or float64, got {tensor.dtype}")
