"""What the arguments of a call are like: equal for calls that one recording may serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgrad import trees
from xgrad.capturing.descriptions import Names, Same, contents, described
from xgrad.tensor import Tensor


def flattened(args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
    """Return which containers are given, and what is in them."""
    return _containers((args, kwargs)), [leaf for _, leaf in trees.leaves((args, kwargs))]


def _containers(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return type(tree), *((described(key), _containers(part)) for key, part in tree.items())
    if isinstance(tree, (list, tuple)):
        return type(tree), *map(_containers, tree)
    return tree is None


def described_argument(leaf: Any) -> Any:
    """Return what a recording depends on, of one argument."""
    if isinstance(leaf, Tensor):
        raw = leaf._data
        return type(leaf), raw.shape, leaf._place, getattr(raw, "strides", None), leaf._edge is not None
    return described(leaf)


def state_of(args: Any, kwargs: Any, names: Names) -> Any:
    """Return a description of arguments that is equal as long as they are the same things with the same in them."""
    if not kwargs and all(type(arg) is Tensor for arg in args):
        return None  # which are not changed: the tuple is the library's own
    structure, leaves = flattened(args, kwargs)
    return structure, [Same(leaf) if isinstance(leaf, Tensor) else contents(leaf, names) for leaf in leaves]
