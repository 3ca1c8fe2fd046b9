"""Sums of products over named axes: `einsum`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_letters

import numpy as np

from xgrad.core import dtypes
from xgrad.core.tensor import Tensor
from xgrad.ops import (
    dtype_functions,
    elementwise,
    manipulation,
    matrix_products,
    statistical,
    tensor_conversion,
)
from xgrad.ops.linalg import diagonal
from xgrad.ops.manipulation import on_one_device
from xgrad.support.hints import shown

__all__ = ["einsum"]

#: A tensor and a letter for each of its axes.
Labelled = tuple[Tensor, str]


def einsum(subscripts: str, /, *operands: Tensor) -> Tensor:
    r"""Multiply tensors and sum over axes, by the Einstein summation convention.

    Parameters
    ----------
    subscripts : str
        One letter for each axis of each operand, with commas between operands, then ``->`` and the
        letters of the result: ``"ij,jk->ik"`` is a matrix product. Axes with the same letter are
        multiplied element by element; letters that are not in the result are summed over. A letter
        repeated in one operand takes its diagonal. ``...`` stands for any number of axes, which
        broadcast. Without ``->``, the result has the axes of ``...``, then the letters that occur
        once, in alphabetical order.
    *operands : Tensor
        Numbers, on one device; bools count as integers. Axes with the same letter have the same
        length, or length 1.

    Returns
    -------
    Tensor
        Of the dtype that the operands promote to.

    Raises
    ------
    ValueError
        If the subscripts are malformed, or do not fit the shapes.
    TypeError
        If `subscripts` is not a string.
    DeviceError
        If the tensors are on several devices.

    Notes
    -----
    .. math:: y_r = \sum_s \prod_k x_k[i_k]

    :math:`r` are the letters of the result, :math:`s` the others, and :math:`i_k` the letters of
    operand :math:`k`.

    - Gradient for `operands`: :math:`\sum \bar y_r \prod_{l \ne k} x_l[i_l]`, over all letters
      that are not in :math:`i_k`

    Differentiable to any order. Two operands take one call of `matmul`. For three and more,
    ``numpy.einsum_path`` searches for the order of pairs with the fewest operations, exhaustively
    for up to four operands. Like ``numpy.einsum``; ``torch.einsum`` returns
    int64 for sums of small integers.

    Examples
    --------
    >>> import xgrad
    >>> x, y = xgrad.asarray([[1.0, 2.0], [3.0, 4.0]]), xgrad.asarray([1.0, 10.0])
    >>> xgrad.einsum("ij,j->i", x, y)
    Tensor([21., 43.])
    >>> xgrad.einsum("ii", x)
    Tensor(5.)
    """
    if not isinstance(subscripts, str):
        got = type(subscripts).__name__
        raise TypeError(
            f"einsum: expected a string of subscripts first, such as 'ij,jk->ik', got {got}"
        )
    tensors = on_one_device("einsum", "operands", operands)
    shapes = tuple([x.shape for x in tensors])
    terms, result, sizes = _parse_subscripts(subscripts, shapes)
    dtype = dtype_functions.result_type(*tensors)
    dtype = dtypes.int64 if dtype.kind == "b" else dtype
    parts = [
        _diagonals(tensor_conversion.astype(x, dtype, copy=False), term, sizes)
        for x, term in zip(tensors, terms, strict=True)
    ]
    for i, (x, term) in enumerate(parts):
        others = {
            *result,
            *(letter for j, part in enumerate(parts) if j != i for letter in part[1]),
        }
        if summed := tuple([axis for axis, letter in enumerate(term) if letter not in others]):
            parts[i] = statistical.sum(x, axis=summed, dtype=dtype), _drop_letters(term, summed)
    for step in _path(tuple([labels for _, labels in parts]), result, tuple(sizes.items())):
        chosen = [parts[i] for i in step]
        parts = [part for i, part in enumerate(parts) if i not in step]
        while len(chosen) > 1:
            kept = {*result, *(letter for _, labels in (*parts, *chosen[2:]) for letter in labels)}
            chosen[:2] = [_contract_pair(chosen[0], chosen[1], kept, sizes)]
        parts += chosen
    ((x, labels),) = parts
    return manipulation.permute_dims(x, tuple([labels.index(letter) for letter in result]))


@lru_cache(256)
def _parse_subscripts(
    subscripts: str, shapes: tuple[tuple[int, ...], ...]
) -> tuple[list[str], str, dict[str, int]]:
    """Return a letter for each axis of the operands and of the result, and the letters' lengths.

    The axes of ``...`` get letters, too.
    """

    def wrong(what: str) -> ValueError:
        return ValueError(
            f"einsum: {what}, in subscripts {subscripts!r} of operands of shapes {list(shapes)}"
        )

    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        if not all(letter in ascii_letters for letter in term.replace("...", "", 1)):
            raise wrong(
                f"expected letters, commas, one '...' a term and one '->', got {shown(term)}"
            )
    if len(terms) != len(shapes) or not shapes:
        raise wrong(f"expected as many operands as terms, {len(terms)}, got {len(shapes)}")
    spare = [letter for letter in ascii_letters if letter not in text]
    extra = 0  # how many axes ``...`` stands for in the result
    for term, shape in zip(terms, shapes, strict=True):
        rest = len(shape) - len(term.replace("...", ""))
        if rest < 0 or (rest and "..." not in term):
            raise wrong(f"expected a letter for each axis, got {shown(term)} for shape {shape}")
        extra = max(extra, rest)
    if extra > len(spare):
        raise wrong(f"expected at most {len(ascii_letters)} axes in all")
    broadcast = "".join(spare[:extra])
    if not arrow:
        counts = Counter(left)
        right = "..." + "".join(
            sorted([x for x in counts if x in ascii_letters and counts[x] == 1])
        )
    elif extra and "..." not in right:
        raise wrong("expected '...' in the result, too: sum over its axes afterwards")
    result = right.replace("...", broadcast)
    sizes: dict[str, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        rest = len(shape) - len(term.replace("...", ""))
        terms[i] = term = term.replace("...", broadcast[extra - rest :])
        for letter, n in zip(term, shape, strict=True):
            if sizes.get(letter, 1) not in (1, n) and n != 1:
                axis = f"letter {letter!r}" if letter in text else "axes of '...'"
                raise wrong(f"expected one length for {axis}, got {sizes[letter]} and {n}")
            sizes[letter] = n if sizes.get(letter, 1) == 1 else sizes[letter]
            if any(other == letter and m != n for other, m in zip(term, shape, strict=True)):
                raise wrong(
                    f"expected one length for {letter!r}, which is repeated, got shape {shape}"
                )
    for letter in result:
        if letter not in sizes:
            raise wrong(f"the result has {letter!r}, which no operand has")
        if result.count(letter) > 1:
            raise wrong(f"the result has {letter!r} more than once")
    return terms, result, sizes


def _diagonals(x: Tensor, term: str, sizes: dict[str, int]) -> Labelled:
    """Take the diagonals of axes that share a letter, and drop axes of length 1 that broadcast."""
    while repeated := [letter for letter in term if term.count(letter) > 1]:
        pair = term.index(repeated[0]), term.rindex(repeated[0])
        x = diagonal(manipulation.moveaxis(x, pair, (-2, -1)))
        term = _drop_letters(term, pair) + repeated[0]
    dropped = tuple([i for i, letter in enumerate(term) if x.shape[i] == 1 != sizes[letter]])
    return manipulation.squeeze(x, axis=dropped) if dropped else x, _drop_letters(term, dropped)


def _drop_letters(term: str, positions: Sequence[int]) -> str:
    return "".join([letter for i, letter in enumerate(term) if i not in positions])


@lru_cache(256)
def _path(
    terms: tuple[str, ...], result: str, sizes: tuple[tuple[str, int], ...]
) -> list[tuple[int, ...]]:
    """Return the indices of the operands of each contraction.

    The result of a contraction is appended to the remaining operands.
    """
    if len(terms) < 3:
        return [tuple(range(len(terms)))]
    lengths, search = dict(sizes), "optimal" if len(terms) <= 4 else "greedy"
    # Only the shapes count: views of one number take no memory.
    views = [np.broadcast_to(np.zeros(()), [lengths[letter] for letter in term]) for term in terms]
    path: list[tuple[int, ...]] = np.einsum_path(
        f"{','.join(terms)}->{result}", *views, optimize=search
    )[0][1:]
    return path


def _contract_pair(
    first: Labelled, second: Labelled, kept: set[str], sizes: dict[str, int]
) -> Labelled:
    """Multiply two operands, and sum over their common axes that are not kept, in one product."""
    (x1, term1), (x2, term2) = first, second
    shared = [letter for letter in term1 if letter in term2]
    batch, summed = [x for x in shared if x in kept], [x for x in shared if x not in kept]
    rows, columns = [x for x in term1 if x not in shared], [x for x in term2 if x not in shared]
    labels = "".join([*batch, *rows, *columns])

    def arranged(x: Tensor, term: str, *groups: list[str]) -> Tensor:
        """Return `x` with the batch axes first, then one axis for each group of letters."""
        order = [term.index(letter) for group in (batch, *groups) for letter in group]
        lengths = [math.prod([sizes[letter] for letter in group]) for group in groups]
        shape = (*[sizes[letter] for letter in batch], *lengths)
        x = x if order == sorted(order) else manipulation.permute_dims(x, tuple(order))
        return x if x.shape == shape else manipulation.reshape(x, shape)

    product = matrix_products.matmul if summed else elementwise.multiply
    out = product(arranged(x1, term1, rows, summed), arranged(x2, term2, summed, columns))
    shape = tuple([sizes[letter] for letter in labels])
    return out if out.shape == shape else manipulation.reshape(out, shape), labels
