"""Lookup of the rows of a matrix by index."""

from __future__ import annotations

import math
from typing import Any

from xgrad.backend.recording import run_array_code
from xgrad.core.arguments import as_int, as_number, as_tensor, is_below, is_not_negative
from xgrad.core.dtypes import int64
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor
from xgrad.ops.creation import zeros
from xgrad.ops.declare import derivative
from xgrad.ops.elementwise import abs
from xgrad.ops.indexing import index_add, take
from xgrad.ops.manipulation import expand_dims, reshape
from xgrad.ops.searching import where
from xgrad.ops.statistical import max, sum
from xgrad.ops.tensor_conversion import astype
from xgrad.ops.writing import set_data
from xgrad.support.hints import shown


def check_numbers(op: str, name: str, numbers: Tensor, count: int) -> None:
    """Raise IndexError unless all integers are from 0 to ``count - 1``.

    Not checked on a GPU, where the check would synchronize.
    """
    raw, backend, xp = numbers._data, numbers.device.backend, numbers.device.xp
    if backend.asynchronous or 0 in raw.shape:
        return
    with numbers.device.active():
        if not run_array_code(numbers.device, is_not_negative, raw):
            wrong = xp.min(raw)
        elif not run_array_code(numbers.device, is_below, raw, count):
            wrong = xp.max(raw)
        else:
            return
        got = "others" if numbers.device.level else int(wrong)
        raise IndexError(f"{op}: expected {name} from 0 to {count - 1}, got {got}")


def front_index(op: str, index: int | None, count: int) -> int | None:
    """Return a `padding_idx` counted from the front."""
    if index is None:
        return None
    if not -count <= as_int(op, "padding_idx", index) < count:
        raise ValueError(f"{op}: expected padding_idx from {-count} to {count - 1}, got {index}")
    return index % count


def check_not_sparse(op: str, sparse: bool) -> None:
    """Raise ValueError if sparse gradients are asked for."""
    if sparse:
        raise ValueError(f"{op}: expected sparse=False, got {shown(sparse)}: gradients are dense")


@derivative(lambda g, share: g * share, None)
def with_gradient_share(xp: Any, x: Any, share: Any, /) -> Any:
    r"""Return a copy of `x` whose gradient is multiplied by a share.

    Notes
    -----
    .. math:: y = x

    - Gradient for `x`: :math:`\bar y\, s`, by the share :math:`s`
    """
    return +x


def looked_up_rows(
    op: str,
    numbers: Tensor,
    weight: Tensor,
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
) -> Tensor:
    """Return the rows of a matrix at a vector of indices, with the options of `embedding`."""
    count = weight.shape[0]
    check_numbers(op, "input", numbers, count)
    if max_norm is not None:
        _renormalize(op, numbers, weight, max_norm, norm_type)
    rows = take(weight, numbers, axis=0)
    if not scale_grad_by_freq:
        return rows
    frequencies = index_add(zeros(count, dtype=int64, device=weight.device), numbers, 1)
    share = 1 / astype(take(frequencies, numbers, axis=0), weight.dtype)
    return with_gradient_share(rows, expand_dims(share, axis=1))


@no_grad()
def _renormalize(
    op: str, numbers: Tensor, weight: Tensor, max_norm: float, norm_type: float
) -> None:
    """Scale the rows at indices down to a maximum norm, in the matrix itself."""
    if not as_number(op, "max_norm", max_norm) >= 0:
        raise ValueError(f"{op}: expected max_norm >= 0, got {max_norm}")
    if not as_number(op, "norm_type", norm_type) > 0:
        raise ValueError(f"{op}: expected norm_type above 0, got {norm_type}")
    used = index_add(zeros(weight.shape[0], dtype=int64, device=weight.device), numbers, 1) > 0
    sizes = abs(weight)
    norms = max(sizes, axis=1) if norm_type == math.inf else sum(sizes**norm_type, axis=1)
    norms = norms if norm_type in (1, math.inf) else norms ** (1 / norm_type)
    factors = where(used & (norms > max_norm), max_norm / (norms + 1e-7), 1.0)
    set_data(weight, weight * expand_dims(factors, axis=1))


def lookup_arguments(op: str, input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the indices and the matrix of a lookup as tensors, after checks."""
    input, weight = as_tensor(op, "input", input), as_tensor(op, "weight", weight)
    if input.dtype.kind not in "iu":
        raise TypeError(f"{op}: expected input of integers, got {input.dtype}: use .astype(int64)")
    if weight.ndim != 2:
        raise ValueError(f"{op}: expected weight of shape (rows, features), got {weight.shape}")
    # The range of uint8 may be too short for the rows.
    return astype(input, int64, copy=False), weight


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    r"""Return the rows of a matrix at given indices.

    Parameters
    ----------
    input : Tensor
        The indices of rows, counted from 0: integers, of any shape.
    weight : Tensor
        Of shape (rows, features).
    padding_idx : int, optional
        The index of a row that gets no gradient.
    max_norm : float, optional
        The maximum norm of a row: the rows at the given indices are scaled down to it in `weight`
        itself, before they are returned.
    norm_type : float, default 2
        The order p of that norm, :math:`\left(\sum |x|^p\right)^{1 / p}`; ``inf`` for the largest
        component.
    scale_grad_by_freq : bool, default False
        Whether the gradient of a row is divided by the number of times that `input` has it.
    sparse : bool, default False
        Must be False: gradients are dense.

    Returns
    -------
    Tensor
        Of the shape of `input`, with the features as a new last axis.

    Raises
    ------
    IndexError
        If there is no such row; not checked on ``cuda``, where the check would synchronize.
    TypeError
        If `input` does not hold integers.
    ValueError
        If `weight` is not a matrix, or `padding_idx` is not the index of a row, or another option
        is out of range.

    Notes
    -----
    .. math:: y_{i, j} = w_{x_i, j}

    - Gradient for `weight`: :math:`\bar w_{r, j} = \sum_{i:\, x_i = r} \bar y_{i, j}`, 0 for the
      row `padding_idx`

    Examples
    --------
    >>> import xgrad
    >>> weight = xgrad.asarray([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> xgrad.nn.functional.embedding(xgrad.asarray([2, 0]), weight)
    Tensor([[3., 4.],
            [0., 0.]])
    >>> xgrad.nn.functional.embedding(xgrad.asarray([2]), weight, max_norm=1.0)
    Tensor([[0.6, 0.8]])
    """
    op = "embedding"
    input, weight = lookup_arguments(op, input, weight)
    check_not_sparse(op, sparse)
    count, features = weight.shape
    padding = front_index(op, padding_idx, count)
    numbers = reshape(input, (math.prod(input.shape),))
    rows = looked_up_rows(op, numbers, weight, max_norm, norm_type, scale_grad_by_freq)
    if padding is not None:
        rows = where(expand_dims(numbers == padding, axis=1), rows.detach(), rows)
    return rows if input.ndim == 1 else reshape(rows, (*input.shape, features))
