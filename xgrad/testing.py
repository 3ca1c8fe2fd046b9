"""Checks of derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xgrad import autograd
from xgrad.ops import asarray
from xgrad.tensor import Tensor

__all__ = ["gradcheck", "gradgradcheck"]


def gradcheck(
    fn: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
) -> bool:
    """Check every derivative of a function against central differences.

    Parameters
    ----------
    fn : callable
        Takes the inputs and returns a tensor, or a tuple of them; a function of nothing else.
    inputs : Tensor or sequence of Tensor
        Leaves, on any device. Those that require a gradient must be float64, for differences need the digits.
    eps : float, default 1e-6
        The step of the differences.
    atol, rtol : float
        How far a derivative may be off: ``atol + rtol * abs(difference)``. The defaults are PyTorch's.

    Returns
    -------
    bool
        True.

    Raises
    ------
    AssertionError
        If a derivative is off, or has the wrong shape, dtype or device; it names the output, the input, the entry
        and both values.
    TypeError
        If an input that requires a gradient is not float64, or none requires one.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([0.5, 2.0], dtype=xgrad.float64, requires_grad=True)
    >>> xgrad.testing.gradcheck(xgrad.log, x)
    True
    """
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise TypeError("gradcheck: expected an input that requires a gradient, got none")
    for i in wanted:
        if inputs[i].dtype != np.float64:
            raise TypeError(
                f"gradcheck: expected float64 for inputs[{i}], got {inputs[i].dtype}: use dtype=xgrad.float64"
            )
    for k, out in enumerate(_outputs(fn(*inputs))):
        if out.dtype.kind != "f":
            continue
        rows = _jacobian_by_backward(fn, inputs, wanted, k, out)
        for i, analytic in zip(wanted, rows, strict=True):
            numeric = _jacobian_by_differences(fn, inputs, i, k, out.size, eps)
            wrong = ~np.isclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True)
            if wrong.any():
                row, column = (int(n) for n in np.argwhere(wrong)[0])
                entry = tuple(int(n) for n in np.unravel_index(column, inputs[i].shape))
                raise AssertionError(
                    f"gradcheck: the derivative of output {k} (its element {row}) with respect to inputs[{i}]{entry} "
                    f"is {analytic[row, column]!r} by backward, {numeric[row, column]!r} by differences; "
                    f"{int(wrong.sum())} of {wrong.size} entries are off"
                )
    return True


def gradgradcheck(
    fn: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
) -> bool:
    """Check every second derivative of a function, and the derivative by the arriving gradient, as `gradcheck`.

    The parameters, the result and the errors are those of `gradcheck`.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.Tensor([0.5, 2.0], dtype=xgrad.float64, requires_grad=True)
    >>> xgrad.testing.gradgradcheck(xgrad.log, x)
    True
    """
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    outs = [out for out in _outputs(fn(*inputs)) if out.requires_grad]
    random = np.random.default_rng(0)
    gradients = [asarray(random.normal(size=out.shape), device=out.device, requires_grad=True) for out in outs]

    def first(*values: Tensor) -> tuple[Tensor, ...]:
        xs, gs = values[: len(inputs)], values[len(inputs) :]
        results = [out for out in _outputs(fn(*xs)) if out.requires_grad]
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        found = autograd.grad(results, wanted, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(first, [*inputs, *gradients], eps=eps, atol=atol, rtol=rtol)


def _outputs(result: Any) -> tuple[Tensor, ...]:
    return (result,) if isinstance(result, Tensor) else tuple(result)


def _jacobian_by_backward(
    fn: Callable[..., Any], inputs: list[Tensor], wanted: list[int], k: int, like: Tensor
) -> list[np.ndarray]:
    """Return for each wanted input the derivatives of output `k`, one row for each of its elements."""
    rows: list[list[np.ndarray]] = [[] for _ in wanted]
    for row in range(like.size):
        out = _outputs(fn(*inputs))[k]
        unit = np.zeros(like.size)
        unit[row] = 1
        found: Sequence[Tensor | None] = [None] * len(wanted)
        if out.requires_grad:
            gradient = asarray(unit.reshape(like.shape), dtype=out.dtype, device=out.device)
            found = autograd.grad(out, [inputs[i] for i in wanted], gradient, allow_unused=True)
        for i, g, collected in zip(wanted, found, rows, strict=True):
            x = inputs[i]
            if g is not None and (g.shape, g.dtype, g.device) != (x.shape, x.dtype, x.device):
                raise AssertionError(
                    f"gradcheck: expected a gradient of shape {x.shape}, {x.dtype} on {x.device} for inputs[{i}], got "
                    f"{g.shape}, {g.dtype} on {g.device}"
                )
            collected.append(np.zeros(x.size) if g is None else _host(g).reshape(-1))
    return [np.stack(r) if r else np.zeros((0, inputs[i].size)) for i, r in zip(wanted, rows, strict=True)]


def _jacobian_by_differences(
    fn: Callable[..., Any], inputs: list[Tensor], i: int, k: int, rows: int, eps: float
) -> np.ndarray:
    x = inputs[i]
    host = np.array(_host(x), dtype=np.float64)
    columns = np.zeros((rows, x.size))

    def shifted(column: int, by: float) -> np.ndarray:
        moved = host.reshape(-1).copy()
        moved[column] += by
        value = asarray(moved.reshape(x.shape), device=x.device, requires_grad=True)
        return _host(_outputs(fn(*inputs[:i], value, *inputs[i + 1 :]))[k]).reshape(-1)

    for column in range(x.size):
        columns[:, column] = (shifted(column, eps) - shifted(column, -eps)) / (2 * eps)
    return columns


def _host(x: Tensor) -> np.ndarray:
    return x.detach().cpu().numpy()
