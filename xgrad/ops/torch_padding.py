"""Padding in PyTorch's form: widths from the last axis on, in one flat tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xgrad.core.arguments import as_int, as_tensor
from xgrad.core.tensor import Tensor
from xgrad.ops import padding
from xgrad.ops.precision import upcast
from xgrad.ops.tensor_conversion import asarray
from xgrad.support.hints import shown

#: The modes of `xgrad.pad`, by PyTorch's names.
PADDING_MODES: dict[str, Any] = {
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    r"""Pad the last axes of a tensor with elements before and after, or remove elements.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.
    pad : tuple of int
        The number of elements to add before and after the last axis, then before and after the one
        in front of it, and so on: (left, right, top, bottom, ...). A negative number removes
        elements.
    mode : {"constant", "reflect", "replicate", "circular"}, default "constant"
        The added elements: a constant; the elements in reverse order, without the edge; the element
        at the edge; or the elements of the other end.
    value : float, optional
        The constant, by default 0.

    Returns
    -------
    Tensor
        Of the dtype of `input`.

    Raises
    ------
    ValueError
        If `pad` has an odd length or is too long, `mode` is unknown, a constant is given with
        another mode, or there are too few elements: "reflect" needs more elements than it adds at
        an end, and "circular" as many.
    TypeError
        If `pad` is not a sequence of ints.

    Notes
    -----
    .. math:: y_i = x_{k_i}, \quad \text{or the constant where } i \text{ is outside}

    - Gradient for `input`: :math:`\bar x_j = \sum_{i:\, k_i = j} \bar y_i`

    `xgrad.pad` takes a pair for each axis, from the first on, as NumPy's function does, and repeats
    elements where there are too few.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.asarray([[1.0, 2.0, 3.0]])
    >>> xgrad.nn.functional.pad(x, (2, 1), mode="reflect")
    Tensor([[3., 2., 1., 2., 3., 2.]])
    >>> xgrad.nn.functional.pad(x, (-1, 1))
    Tensor([[2., 3., 0.]])
    """
    return pad_last_axes("pad", input, pad, mode, 0 if value is None else value)


def pad_last_axes(name: str, input: Tensor, widths: Any, mode: str, value: Any) -> Tensor:
    """Return a tensor with its last axes padded; error messages start with `name`."""
    input = as_tensor(name, "input", input)
    if mode != "constant" and (not isinstance(mode, str) or mode not in PADDING_MODES):
        known = ", ".join(map(repr, ("constant", *PADDING_MODES)))
        raise ValueError(f"{name}: expected a mode of {known}, got {shown(mode)}")
    if mode != "constant" and value:
        raise ValueError(
            f"{name}: expected a value with mode 'constant' alone, got {shown(value)} with {mode!r}"
        )
    pairs = _pairs(name, widths, input.ndim)
    out = _cropped(input, pairs) if mode == "circular" else input
    for axis, (before, after) in enumerate(pairs, input.ndim - len(pairs)):
        still = (max(before, 0), max(after, 0)) if mode == "circular" else (before, after)
        _check_lengths(name, mode, out.shape, axis, *still)
    added = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if any(map(any, added)):
        every = (*((0, 0),) * (input.ndim - len(pairs)), *added)
        if mode == "constant":
            out = padding.pad(out, every, constant_values=value)
        else:
            out = _repeated(out, every, mode)
    out = out if mode == "circular" else _cropped(out, pairs)
    return asarray(out, copy=True) if out is input else out


@upcast  # because its gradient is a sum
def _repeated(x: Tensor, widths: Any, mode: str) -> Tensor:
    """Return a tensor padded with its elements."""
    return padding.pad(x, widths, PADDING_MODES[mode])


def _cropped(x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """Return a tensor without the elements that negative widths remove from the last axes."""
    if not any(before < 0 or after < 0 for before, after in pairs):
        return x
    keys = [
        slice(max(-before, 0), max(n + min(after, 0), 0))
        for n, (before, after) in zip(x.shape[x.ndim - len(pairs) :], pairs, strict=True)
    ]
    return x[(..., *keys)]


def _pairs(name: str, widths: Any, ndim: int) -> list[tuple[int, int]]:
    """Return the widths of the last axes, in the order of the axes."""
    if not isinstance(widths, (tuple, list)):
        raise TypeError(f"{name}: expected a tuple of ints for pad, got {shown(widths)}")
    numbers = [as_int(name, "pad", n) for n in widths]
    if len(numbers) % 2 or len(numbers) > 2 * ndim:
        raise ValueError(
            f"{name}: expected two ints for each of up to {ndim} axes for pad, got {shown(widths)}"
        )
    return list(zip(numbers[::2], numbers[1::2], strict=True))[::-1]


def _check_lengths(
    name: str, mode: str, shape: tuple[int, ...], axis: int, before: int, after: int
) -> None:
    """Raise ValueError unless an axis has the elements that the padding takes."""
    n, most = shape[axis], max(before, after)
    needed = {"reflect": most + 1, "circular": most, "replicate": 1}.get(mode, 0)
    if (most > 0 and n < needed) or n + before + after < 0:
        raise ValueError(
            f"{name}: expected axis {axis} of {max(needed, -before - after)} elements or more for"
            f" mode {mode!r} and widths {(before, after)}, got shape {shape}"
        )
