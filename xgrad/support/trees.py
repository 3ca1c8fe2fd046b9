"""Trees: nested dicts, lists, tuples and named tuples, with any other object as a leaf.

None is an empty container. Leaves are in the order of their containers. The path of a leaf is its
name, such as ``['layers'][0].weight``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

MAX_DEPTH = 300  # levels, well below Python's recursion limit


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves with their paths.

    Raises ValueError for trees that are too deep or contain themselves.

    Examples
    --------
    >>> list(leaves({"a": [1, 2], "b": None}))
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    stack = [(path, tree, 0)]
    while stack:
        path, tree, depth = stack.pop()
        parts = _parts(tree)
        if parts is None:
            yield path, tree
        elif parts and depth == MAX_DEPTH:
            raise ValueError(
                f"expected containers nested at most {MAX_DEPTH} deep, got deeper ones, or one that"
                f" contains itself, at {path[:40]}..."
            )
        else:
            stack += [(path + step, child, depth + 1) for step, child in reversed(parts)]


def rebuild(tree: Any, values: Iterable[Any]) -> Any:
    """Return the same containers with new values as leaves.

    Examples
    --------
    >>> rebuild({"a": [1, 2], "b": None}, "xy")
    {'a': ['x', 'y'], 'b': None}
    """
    values = iter(values)
    parts = _parts(tree)
    if parts is None:
        return next(values)
    new = [rebuild(child, values) for _, child in parts]
    if isinstance(tree, dict):
        same = copy(tree)  # of the same type, such as an OrderedDict
        same.update(zip(tree, new, strict=True))
        return same
    if isinstance(tree, Mapping):
        return dict(zip(tree, new, strict=True))
    if hasattr(tree, "_fields"):
        return type(tree)(*new)
    return None if tree is None else new if isinstance(tree, list) else tuple(new)


def matched(title: str, tree: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of `tree`, each with its path and its counterpart in `other`.

    None in `other` is the counterpart of a leaf, or of each leaf in a container. Lists and tuples
    match each other. Raises TypeError, whose message begins with `title`, if the containers do not
    match.

    Examples
    --------
    >>> list(matched("example", {"a": 1, "b": [2, 3]}, {"a": 4, "b": None}))
    [("['a']", 1, 4), ("['b'][0]", 2, None), ("['b'][1]", 3, None)]
    """
    parts, others = _parts(tree), _parts(other)
    if other is None:
        yield from ((inner, leaf, None) for inner, leaf in leaves(tree, path))
    elif parts is None and others is None:
        yield path, tree, other
    elif parts is None or others is None or not _alike(tree, other):
        where = f" at {path}" if path else ""
        raise TypeError(f"{title}: expected {_described(tree)}{where}, got {_described(other)}")
    else:
        counterparts = (
            [other[key] for key in tree]
            if isinstance(tree, Mapping)
            else [part for _, part in others]
        )
        for (step, child), counterpart in zip(parts, counterparts, strict=True):
            yield from matched(title, child, counterpart, path + step)


def _parts(tree: Any) -> list[tuple[str, Any]] | None:
    """Return the children of a container, each with its step of the path; None for a leaf."""
    if tree is None:
        return []
    if isinstance(tree, Mapping):
        return [(f"[{key!r}]", child) for key, child in tree.items()]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(f".{name}", child) for name, child in zip(tree._fields, tree, strict=True)]
    return (
        [(f"[{i}]", child) for i, child in enumerate(tree)]
        if isinstance(tree, (list, tuple))
        else None
    )


def _alike(tree: Any, other: Any) -> bool:
    if tree is None or isinstance(tree, Mapping) or isinstance(other, Mapping):
        return (
            isinstance(tree, Mapping) and isinstance(other, Mapping) and tree.keys() == other.keys()
        )
    return len(tree) == len(other)


def _described(tree: Any) -> str:
    if tree is None:
        return "None"
    if isinstance(tree, Mapping):
        return f"a {type(tree).__name__} with the keys {list(tree)}"
    return (
        f"a {type(tree).__name__} of {len(tree)}"
        if isinstance(tree, (list, tuple))
        else f"one {type(tree).__name__}"
    )
