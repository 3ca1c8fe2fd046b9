"""Functions of shapes: views, joining and repeating, with PyTorch's meaning of each name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import xgrad
from xgrad.compat.torch.promotion import in_common_dtype
from xgrad.compat.torch.tensor import torch_function
from xgrad.core.arguments import front_axis
from xgrad.core.tensor import Tensor
from xgrad.ops import torch_methods, writing
from xgrad.ops.methods import __getitem__ as getitem


def sizes_of(sizes: Sequence[Any]) -> tuple[int, ...]:
    """Return a shape given as numbers or as one sequence; elements may be tensors without axes."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    return tuple([n if type(n) is int else n.__index__() for n in sizes])


def takes_sizes(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of functions of a tensor and one tuple, which callers may give as numbers.

    `name` is the keyword of the tuple: ``x.permute(1, 0)``, ``x.permute((1, 0))`` and
    ``x.permute(dims=(1, 0))`` are equal.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(input: Tensor, *sizes: Any, **options: Any) -> Any:
            if name in options:
                sizes = (options.pop(name),)
            return function(input, sizes_of(sizes), **options)

        return torch_function(call)

    return decorate


@takes_sizes("shape")
def reshape(input: Tensor, shape: tuple[int, ...]) -> Any:
    """Return the same elements in another shape, a view if possible: see `xgrad.reshape`."""
    return xgrad.reshape(input, shape)


@torch_function
def view(input: Tensor, *shape: Any) -> Any:
    """Return a view in another shape; a dtype in the place of the shape is refused."""
    if len(shape) == 1 and not isinstance(shape[0], (int, tuple, list)):
        raise NotImplementedError(
            "view: another dtype of the same memory is not available in xgrad.compat.torch: use"
            " .to(dtype) to convert the values"
        )
    return writing.view(input, sizes_of(shape))


@torch_function
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Return the tensor with the axes from `start_dim` to `end_dim` as one."""
    return torch_methods.flatten(input, start_dim, end_dim)


@torch_function
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Any:
    """Return the tensor with one axis as several."""
    axis = front_axis("unflatten", input, dim, "dim")
    return xgrad.reshape(input, (*input.shape[:axis], *sizes, *input.shape[axis + 1 :]))


@torch_function
def ravel(input: Tensor) -> Any:
    """Return the elements as a vector, in row order."""
    return torch_methods.ravel(input)


@takes_sizes("dims")
def permute(input: Tensor, dims: tuple[int, ...]) -> Any:
    """Return a view with the axes in another order: see `xgrad.permute_dims`."""
    return xgrad.permute_dims(input, dims)


@torch_function
def transpose(input: Tensor, dim0: int, dim1: int) -> Any:
    """Return a view with two axes exchanged: see `xgrad.permute_dims`."""
    return input if not input.ndim else torch_methods.transpose(input, dim0, dim1)


@torch_function
def t(input: Tensor) -> Any:
    """Return the transpose of a matrix, or a vector as it is."""
    if input.ndim > 2:
        raise RuntimeError(f"t: expected at most two axes, got shape {tuple(input.shape)}")
    return input if input.ndim < 2 else xgrad.matrix_transpose(input)


@torch_function
def adjoint(input: Tensor) -> Any:
    """Return the conjugate transposes of matrices."""
    transposed = xgrad.matrix_transpose(input)
    return xgrad.conj(transposed) if input.dtype.kind == "c" else transposed


@torch_function
def movedim(input: Tensor, source: Any, destination: Any) -> Any:
    """Return a view with axes in other places: see `xgrad.moveaxis`."""
    return xgrad.moveaxis(input, source, destination)


@torch_function
def squeeze(input: Tensor, dim: Any = None) -> Any:
    """Return a view without axes of length 1; other axes in `dim` stay: see `xgrad.squeeze`."""
    if not input.ndim:
        return input
    dims = range(input.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = [front_axis("squeeze", input, axis, "dim") for axis in dims]
    return xgrad.squeeze(input, axis=tuple([axis for axis in axes if input.shape[axis] == 1]))


@torch_function
def unsqueeze(input: Tensor, dim: int) -> Any:
    """Return a view with a new axis of length 1: see `xgrad.expand_dims`."""
    return xgrad.expand_dims(input, axis=dim)


@takes_sizes("size")
def expand(input: Tensor, size: tuple[int, ...]) -> Any:
    """Return a view broadcast to a shape, in which -1 keeps a length: see `xgrad.broadcast_to`."""
    return torch_methods.expand(input, size)


@torch_function
def expand_as(input: Tensor, other: Tensor) -> Any:
    """Return a view broadcast to the shape of another tensor."""
    return xgrad.broadcast_to(input, tuple(other.shape))


@torch_function
def broadcast_to(input: Tensor, size: Sequence[int]) -> Any:
    """Return a view broadcast to a shape: see `xgrad.broadcast_to`."""
    return torch_methods.expand(input, sizes_of((size,)))


def _unpacked(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors that are given one by one or as one sequence."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return tuple(given)


@torch_function
def broadcast_tensors(*tensors: Any) -> Any:
    """Return tensors broadcast against each other: see `xgrad.broadcast_arrays`."""
    tensors = _unpacked(tensors)
    shape = xgrad.broadcast_shapes(*[tuple(x.shape) for x in tensors])
    return tuple([xgrad.broadcast_to(x, shape) for x in tensors])


@takes_sizes("repeats")
def repeat(input: Tensor, repeats: tuple[int, ...]) -> Any:
    """Return the tensor repeated along its axes: see `xgrad.tile`."""
    if len(repeats) < input.ndim:
        raise RuntimeError(
            f"repeat: expected a number for each axis of shape {tuple(input.shape)}, got {repeats}"
        )
    return xgrad.tile(input, repeats)


@takes_sizes("dims")
def tile(input: Tensor, dims: tuple[int, ...]) -> Any:
    """Return the tensor repeated along its axes: see `xgrad.tile`."""
    return xgrad.tile(input, dims)


@torch_function
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Any:
    """Return the tensor with each element repeated: see `xgrad.repeat`."""
    if repeats is None:  # of the repeats alone: the index of each element
        return xgrad.repeat(xgrad.arange(input.shape[0], device=input.device), input)
    if isinstance(repeats, xgrad.Tensor) and repeats._data.size == 1:
        repeats = int(repeats)
    return xgrad.repeat(input, repeats, axis=dim)


def _joined(name: str, tensors: Any) -> list[Any]:
    if isinstance(tensors, xgrad.Tensor):
        raise TypeError(f"{name}: expected a list or tuple of tensors, got a tensor")
    return in_common_dtype(tensors)


@torch_function
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Any:
    """Return tensors joined along an axis: see `xgrad.concat`."""
    parts = _joined("cat", tensors)
    full = [x for x in parts if x._data.shape != (0,)]  # an empty vector joins any tensors
    return xgrad.concat(full or parts, axis=dim)


@torch_function
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Any:
    """Return tensors joined along a new axis: see `xgrad.stack`."""
    return xgrad.stack(_joined("stack", tensors), axis=dim)


@torch_function
def hstack(tensors: Sequence[Tensor]) -> Any:
    """Return tensors joined along their second axis, vectors along the first."""
    parts = [atleast_1d(x) for x in tensors]
    return cat(parts, dim=0 if parts[0].ndim == 1 else 1)


@torch_function
def vstack(tensors: Sequence[Tensor]) -> Any:
    """Return tensors joined along their first axis, vectors as rows."""
    return cat([atleast_2d(x) for x in tensors], dim=0)


@torch_function
def dstack(tensors: Sequence[Tensor]) -> Any:
    """Return tensors joined along their third axis."""
    return cat([atleast_3d(x) for x in tensors], dim=2)


@torch_function
def column_stack(tensors: Sequence[Tensor]) -> Any:
    """Return tensors joined along their second axis, vectors as columns."""
    return cat([xgrad.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in tensors], dim=1)


def _at_least(ndim: int, tensors: tuple[Any, ...], pad: Callable[[Any], Any]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple([x if x.ndim >= ndim else pad(x) for x in tensors[0]])
    padded = tuple([x if x.ndim >= ndim else pad(x) for x in tensors])
    return padded[0] if len(padded) == 1 else padded


@torch_function
def atleast_1d(*tensors: Any) -> Any:
    """Return tensors, ones without axes with one."""
    return _at_least(1, tensors, lambda x: xgrad.reshape(x, (1,)))


@torch_function
def atleast_2d(*tensors: Any) -> Any:
    """Return tensors with at least two axes."""
    return _at_least(2, tensors, lambda x: xgrad.reshape(x, (1, -1)))


@torch_function
def atleast_3d(*tensors: Any) -> Any:
    """Return tensors with at least three axes."""
    return _at_least(
        3,
        tensors,
        lambda x: xgrad.expand_dims(x, axis=-1) if x.ndim == 2 else xgrad.reshape(x, (1, -1, 1)),
    )


@torch_function
def unbind(input: Tensor, dim: int = 0) -> Any:
    """Return the slices along an axis: see `xgrad.unstack`.

    They are views if no graph is recorded, and values of one joint function otherwise.
    """
    axis = front_axis("unbind", input, dim, "dim")
    if input._edge is not None and xgrad.is_grad_enabled():
        return xgrad.unstack(input, axis=axis)
    front = (slice(None),) * axis
    return tuple([getitem(input, (*front, i, ...)) for i in range(input.shape[axis])])


@torch_function
def select(input: Tensor, dim: int, index: int) -> Any:
    """Return the slice at one index of an axis, as a view."""
    axis = front_axis("select", input, dim, "dim")
    return getitem(input, (*(slice(None),) * axis, index, ...))


@takes_sizes("dims")
def flip(input: Tensor, dims: tuple[int, ...]) -> Any:
    """Return a copy with the elements along axes in reverse order: see `xgrad.flip`."""
    return xgrad.asarray(xgrad.flip(input, axis=dims) if input.ndim else input, copy=True)


@torch_function
def fliplr(input: Tensor) -> Any:
    """Return a copy with the second axis reversed."""
    return flip(input, 1)


@torch_function
def flipud(input: Tensor) -> Any:
    """Return a copy with the first axis reversed."""
    return flip(input, 0)


@torch_function
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Any:
    """Return the tensor with its elements shifted along axes: see `xgrad.roll`."""
    shift, axis = (tuple(x) if isinstance(x, list) else x for x in (shifts, dims))
    return xgrad.roll(input, shift, axis=axis)


@torch_function
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """Return a copy rotated by 90 degrees in the plane of two axes."""
    first, second = dims
    k %= 4
    if k == 2:
        return flip(input, first, second)
    if k == 0:
        return xgrad.asarray(input, copy=True)
    turned = transpose(input, first, second)
    return flip(turned, first if k == 1 else second)


@torch_function
def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """Return the grids of coordinates, as views: see `xgrad.meshgrid`."""
    tensors = _unpacked(tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid: expected indexing of 'ij' or 'xy', got {indexing!r}")
    order = list(range(len(tensors)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    lengths = [x._data.size if x.ndim else 1 for x in tensors]
    shape = tuple([lengths[i] for i in order])
    return tuple(
        [
            xgrad.broadcast_to(
                xgrad.reshape(x, tuple([-1 if i == axis else 1 for axis in order])), shape
            )
            for i, x in enumerate(tensors)
        ]
    )


@torch_function
def tril(input: Tensor, diagonal: int = 0) -> Any:
    """Return the lower triangles of matrices: see `xgrad.tril`."""
    return xgrad.tril(input, k=diagonal)


@torch_function
def triu(input: Tensor, diagonal: int = 0) -> Any:
    """Return the upper triangles of matrices: see `xgrad.triu`."""
    return xgrad.triu(input, k=diagonal)


@torch_function
def diag(input: Tensor, diagonal: int = 0) -> Any:
    """Return the diagonal of a matrix, or a matrix with a diagonal: see `xgrad.diag`."""
    return xgrad.diag(input, k=diagonal)


@torch_function
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return the diagonals of the planes of two axes, as a view: see `xgrad.linalg.diagonal`."""
    return xgrad.linalg.diagonal(xgrad.moveaxis(input, (dim1, dim2), (-2, -1)), offset=offset)


@takes_sizes("size")
def sum_to_size(input: Tensor, size: tuple[int, ...]) -> Any:
    """Return the sums over axes that broadcasting a shape to this one adds or lengthens."""
    front = input.ndim - len(size)
    axes = [i for i, n in enumerate(input.shape) if i < front or (size[i - front] == 1 and n != 1)]
    if not axes and input.ndim:
        return xgrad.reshape(input, size)
    dtype = "int64" if input.dtype.kind in "bui" else input.dtype
    summed = xgrad.sum(input, axis=tuple(axes), dtype=dtype, keepdims=True)
    return xgrad.reshape(summed, size)


@torch_function
def view_as_real(input: Tensor) -> Any:
    """Return the real and imaginary parts along a new last axis; a copy, not a view."""
    return xgrad.stack([xgrad.real(input), xgrad.imag(input)], axis=-1)


@torch_function
def view_as_complex(input: Tensor) -> Any:
    """Return complex numbers of the parts in the last axis; a copy, not a view."""
    real, imag = input[..., 0], input[..., 1]
    return real + 1j * imag


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return int(input.size)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        adjoint, atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, broadcast_to, cat,
        column_stack, diag, diagonal, dstack, flatten, flip, fliplr, flipud, hstack, meshgrid,
        movedim, numel, permute, ravel, repeat_interleave, reshape, roll, rot90, select, squeeze,
        stack, sum_to_size, t, tile, transpose, tril, triu, unbind, unflatten, unsqueeze,
        view_as_complex, view_as_real, vstack,
    )
}  # fmt: skip
FUNCTIONS |= {
    "concat": cat,
    "concatenate": cat,
    "moveaxis": movedim,
    "row_stack": vstack,
    "swapaxes": transpose,
    "swapdims": transpose,
}
