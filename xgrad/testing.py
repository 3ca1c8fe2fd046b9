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
        Leaves, on any device. Those that require a gradient must be float64 or complex128, for differences need the
        digits. A complex number counts as two: its real and its imaginary part.
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
        If an input that requires a gradient is neither float64 nor complex128, or none requires one.

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
        if inputs[i].dtype not in (np.float64, np.complex128):
            raise TypeError(
                f"gradcheck: expected float64 or complex128 for inputs[{i}], got {inputs[i].dtype}: use "
                "dtype=xgrad.float64"
            )
    for k, out in enumerate(_outputs(fn(*inputs))):
        if out.dtype.kind not in "fc":
            continue
        rows = _jacobian_by_backward(fn, inputs, wanted, k, out)
        for i, analytic in zip(wanted, rows, strict=True):
            numeric = _jacobian_by_differences(fn, inputs, i, k, len(_reals(out)), eps)
            wrong = ~np.isclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True)
            if wrong.any():
                row, column = (int(n) for n in np.argwhere(wrong)[0])
                raise AssertionError(
                    f"gradcheck: the derivative of output {k} (its element {_entry(row, out)}) with respect to "
                    f"inputs[{i}]{_entry(column, inputs[i])} is {analytic[row, column]!r} by backward, "
                    f"{numeric[row, column]!r} by differences; {int(wrong.sum())} of {wrong.size} entries are off"
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
    gradients = [_like(random.normal(size=len(_reals(out))), out).requires_grad_() for out in outs]

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
    for unit in np.eye(len(_reals(like))):
        out = _outputs(fn(*inputs))[k]
        found: Sequence[Tensor | None] = [None] * len(wanted)
        if out.requires_grad:
            found = autograd.grad(out, [inputs[i] for i in wanted], _like(unit, out), allow_unused=True)
        for i, g, collected in zip(wanted, found, rows, strict=True):
            x = inputs[i]
            if g is not None and (g.shape, g.dtype, g.device) != (x.shape, x.dtype, x.device):
                raise AssertionError(
                    f"gradcheck: expected a gradient of shape {x.shape}, {x.dtype} on {x.device} for inputs[{i}], got "
                    f"{g.shape}, {g.dtype} on {g.device}"
                )
            collected.append(0 * _reals(x) if g is None else _reals(g))
    return [np.stack(r) if r else np.zeros((0, len(_reals(inputs[i])))) for i, r in zip(wanted, rows, strict=True)]


def _jacobian_by_differences(
    fn: Callable[..., Any], inputs: list[Tensor], i: int, k: int, rows: int, eps: float
) -> np.ndarray:
    x = inputs[i]
    host = _reals(x)
    columns = np.zeros((rows, len(host)))

    def shifted(column: int, by: float) -> np.ndarray:
        moved = host.copy()
        moved[column] += by
        value = _like(moved, x).requires_grad_()
        return _reals(_outputs(fn(*inputs[:i], value, *inputs[i + 1 :]))[k])

    for column in range(len(host)):
        columns[:, column] = (shifted(column, eps) - shifted(column, -eps)) / (2 * eps)
    return columns


def _reals(x: Tensor) -> np.ndarray:
    """Return the elements in one row; of complex ones each real part, with the imaginary part behind it."""
    row = np.ravel(x.detach().cpu().numpy())
    return row.view(row.real.dtype)


def _like(reals: np.ndarray, x: Tensor) -> Tensor:
    """Return a tensor like `x` of what `_reals` gives."""
    return asarray(reals.astype(_reals(x).dtype).view(x.dtype).reshape(x.shape), device=x.device)


def _entry(place: int, x: Tensor) -> str:
    """Return where in a tensor one of its `_reals` is."""
    element, part = divmod(place, 2) if x.dtype.kind == "c" else (place, 0)
    entry = tuple(int(n) for n in np.unravel_index(element, x.shape))
    return f"{entry}{', its imaginary part' if part else ''}"
