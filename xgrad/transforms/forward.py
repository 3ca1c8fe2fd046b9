"""Jacobians in forward mode: derivatives in all directions, mapped over the directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise
from typing import Any

from xgrad.backend.device import batching, intercepting
from xgrad.core.tensor import Tensor
from xgrad.ops import concat, eye, moveaxis, reshape, zeros
from xgrad.support.scopes import Scope
from xgrad.support.trees import leaves, rebuild
from xgrad.transforms.batching import Batch
from xgrad.transforms.call import Argnums, TransformCall, argument_indices, as_floating


def forward_jacobian(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    argnums: Argnums,
    has_aux: bool,
) -> Any:
    """Return the Jacobian of a function; with `has_aux`, in a pair with its second result."""
    inputs = []
    for i in argument_indices("jacfwd", argnums, len(args)):
        inputs += [as_floating("jacfwd", f"argument {i}{path}", x) for path, x in leaves(args[i])]
    if any(x.dtype.kind == "c" for x in inputs):
        raise TypeError(
            "jacfwd: expected real arguments, got complex ones: take real and imag apart"
        )
    ends = list(accumulate([x.size for x in inputs], initial=0))
    with Scope(batching, Batch(max(ends[-1], 1))) as batch, Scope(intercepting, batch):
        call = TransformCall("jacfwd", fn, args, kwargs, argnums, has_aux)
        for (path, _), out in zip(leaves(call.result), call.outputs, strict=True):
            call.check_real(path, out)
        pairs = zip(inputs, pairwise(ends), strict=True)
        directions = [
            batch.lift(_directions(x, *part, batch.size), batched=True) for x, part in pairs
        ]
        columns = [
            batch.unmapped("the result", x, 0)
            for x in map(call.visible, call.push_forward(directions))
        ]
        aux = [
            batch.unmapped("aux", x) if isinstance(x, Tensor) else x for _, x in leaves(call.aux)
        ]
    blocks = []
    for column in columns:
        parts = [moveaxis(column[start:end, ...], 0, -1) for start, end in pairwise(ends)]
        rows = [
            reshape(part, (*column.shape[1:], *x.shape))
            for part, x in zip(parts, inputs, strict=True)
        ]
        values = iter(rows)
        trees = tuple([rebuild(tree, values) for tree in call.trees])
        blocks.append(trees[0] if call.single else trees)
    jacobian = rebuild(call.result, blocks)
    return (jacobian, rebuild(call.aux, aux)) if has_aux else jacobian


def _directions(x: Tensor, start: int, end: int, count: int) -> Tensor:
    """Return one argument's part of the unit directions along all elements of all arguments.

    It is zero except from `start` to `end`, the directions along its own elements.
    """
    options: Any = {"dtype": x.dtype, "device": x.device}
    before, after = zeros((start, x.size), **options), zeros((count - end, x.size), **options)
    return reshape(concat([before, eye(end - start, x.size, **options), after]), (count, *x.shape))
