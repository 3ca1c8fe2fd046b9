"""Nested containers: paths of leaves, rebuilding and matching, compared with known results."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from xgrad.support.trees import leaves, matched, rebuild


class Layer(NamedTuple):
    weight: Any
    bias: Any


TREE = {"layers": [Layer(1, None), Layer(2, (3,))], "scale": 4, "none": {}}


def test_leaves_come_in_order_with_their_paths() -> None:
    assert list(leaves(TREE)) == [
        ("['layers'][0].weight", 1),
        ("['layers'][1].weight", 2),
        ("['layers'][1].bias[0]", 3),
        ("['scale']", 4),
    ]
    assert list(leaves(5)) == [("", 5)]
    assert list(leaves(None)) == []


@pytest.mark.parametrize(
    "tree", [TREE, 5, None, [], (), (1, [2, {}]), OrderedDict(b=1, a=2), Layer(1, 2)]
)
def test_tree_rebuilt_from_its_leaves_is_equal(tree: Any) -> None:
    new = rebuild(tree, [leaf for _, leaf in leaves(tree)])
    assert new == tree and type(new) is type(tree)
    assert not isinstance(tree, (dict, list)) or new is not tree


def test_rebuilt_mappings_keep_their_type_where_they_can() -> None:
    tree = defaultdict(list, a=1)
    new = rebuild(tree, [2])
    assert new["a"] == 2 and new["missing"] == [] and tree == {"a": 1}
    assert rebuild(MappingProxyType({"a": 1}), [2]) == {"a": 2}


def test_matched_goes_by_keys_and_takes_none_for_any_container() -> None:
    assert list(matched("t", {"a": 1, "b": 2}, {"b": 20, "a": 10})) == [
        ("['a']", 1, 10),
        ("['b']", 2, 20),
    ]
    assert list(matched("t", (1, [2]), [10, None])) == [("[0]", 1, 10), ("[1][0]", 2, None)]
    assert list(matched("t", Layer(1, None), (10, None))) == [(".weight", 1, 10)]


@pytest.mark.parametrize(
    ("tree", "other", "message"),
    [
        (
            {"a": 1},
            {"b": 1},
            r"t: expected a dict with the keys \['a'\], got a dict with the keys \['b'\]",
        ),
        ({"a": [1, 2]}, {"a": [1]}, r"t: expected a list of 2 at \['a'\], got a list of 1"),
        ({"a": 1}, [1], r"t: expected a dict with the keys \['a'\], got a list of 1"),
        (1, (1,), "t: expected one int, got a tuple of 1"),
        ((1, 2), 5, "t: expected a tuple of 2, got one int"),
        ((1, None), (1, 2), r"t: expected None at \[1\], got one int"),
    ],
)
def test_trees_that_do_not_match_are_refused(tree: Any, other: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        list(matched("t", tree, other))
