"""What stands for an argument's tensor or leaf: its number, for at each replay others are in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xgrad.graph import Leaf
from xgrad.tensor import Tensor


class Arguments:
    """The tensors among the arguments of the call that was recorded."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors, leaves = tensors, [tensor._leaf for tensor in tensors]
        self._places = {id(tensor): i for i, tensor in enumerate(tensors)}
        self._leaves = {id(leaf): i for i, leaf in enumerate(leaves) if leaf is not None}

    def place(self, tensor: Tensor) -> Tensor | int:
        """Return the number of a tensor among them; itself if it is another."""
        return self._places.get(id(tensor), tensor)

    def place_of_leaf(self, leaf: Leaf) -> Leaf | int:
        """Return the number of the tensor that has a leaf; the leaf itself if it is of another."""
        return self._leaves.get(id(leaf), leaf)


def tensor_at(tensor: Tensor | int, args: Sequence[Any]) -> Any:
    """Return the tensor of this call."""
    return args[tensor] if type(tensor) is int else tensor


def leaf_at(leaf: Leaf | int, args: Sequence[Any]) -> Any:
    """Return the leaf of this call."""
    return args[leaf]._leaf if type(leaf) is int else leaf
