"""Collections of modules and parameters, edited like Python's lists and dictionaries.

Names and state are compared with PyTorch.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import xgrad
from helpers import check_error
from xgrad import nn


def names(module: nn.Module) -> list[str]:
    return [name for name, _ in module.named_children()] or [
        name for name, _ in module.named_parameters()
    ]


def scaled(scale: float) -> nn.Module:
    layer = nn.Identity()
    layer.register_forward_hook(lambda module, args, output: scale * output)
    layer.scale = scale
    return layer


def test_module_list_registers_and_slices_modules():
    first, second, third = nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1)
    layers = nn.ModuleList([first, second])
    assert layers.append(third) is layers and len(layers) == 3
    assert list(layers) == [layers[0], layers[1], layers[-1]] == [first, second, third]
    assert type(layers[1:]) is nn.ModuleList and list(layers[1:]) == [second, third]
    assert [name for name, _ in layers.named_parameters()] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    with pytest.raises(NotImplementedError):
        layers(xgrad.ones(3))


@pytest.mark.parametrize("kind", [nn.ModuleList, nn.Sequential, nn.ParameterList])
def test_lists_are_edited_as_python_lists(kind):
    make: Any = nn.Parameter if kind is nn.ParameterList else scaled
    a, b, c, d, e = (make(float(i)) for i in range(5))
    collection = kind() if kind is nn.Sequential else kind([])
    expected: list[Any] = []

    def check() -> None:
        assert len(list(collection)) == len(collection) == len(expected)
        assert all(x is y for x, y in zip(collection, expected, strict=True))
        assert names(collection) == [str(i) for i in range(len(expected))]

    for edit in (
        lambda x: x.append(a),
        lambda x: x.extend([b, c]),
        lambda x: x.insert(0, d),
        lambda x: x.insert(-1, e),
        lambda x: x.pop(1),
        lambda x: x.__setitem__(-1, a),
        lambda x: x.__delitem__(0),
        lambda x: x.__delitem__(slice(0, 2)),
        lambda x: x.extend(y for y in (b, d)),
        lambda x: x.pop(),
    ):
        result, other = edit(collection), edit(expected)
        assert result is other or result is collection
        check()


def test_sequential_of_a_mapping_has_its_names(torch):
    def made(library: Any, mapping: Any) -> Any:
        return library.nn.Sequential(
            mapping([("hidden", library.nn.Linear(2, 3)), ("act", library.nn.ReLU())])
        )

    net, reference = made(xgrad, OrderedDict), made(torch, OrderedDict)
    assert repr(net) == repr(reference) and list(net.state_dict()) == list(reference.state_dict())
    assert net.hidden is net[0] and made(xgrad, dict).act(-1.0) == 0
    assert net(xgrad.ones((1, 2))).shape == (1, 3)


def test_names_of_a_chain_survive_edits_and_slices():
    net = nn.Sequential({"a": nn.Identity(), "b": nn.Tanh(), "c": nn.ReLU()})
    assert names(net[1:]) == ["b", "c"] and type(net[1:]) is nn.Sequential
    net.append(nn.Identity())
    assert names(net) == ["a", "b", "c", "3"]
    net.insert(0, nn.Sigmoid())
    assert names(net) == ["0", "a", "b", "c", "4"]
    del net[1]
    assert names(net) == ["0", "b", "c", "3"]
    net[1] = nn.ReLU()
    assert names(net) == ["0", "b", "c", "3"] and isinstance(net.b, nn.ReLU)
    assert names(net[2:]) == ["c", "1"]


def test_edited_chain_is_traced_again():
    net = nn.Sequential(scaled(2.0), scaled(3.0))
    step = xgrad.capture(net)
    x = xgrad.ones(1)
    assert step(x).item() == step(x).item() == 6
    net.append(scaled(5.0))
    assert step(x).item() == step(x).item() == 30
    net.pop(0)
    assert step(x).item() == step(x).item() == 15
    assert step.recordings == 3 and step.refusal is None


@pytest.mark.parametrize("kind", [nn.ModuleDict, nn.ParameterDict])
def test_dictionaries_are_edited_as_python_dictionaries(kind):
    make: Any = nn.Parameter if kind is nn.ParameterDict else scaled
    collection, expected = kind({"a": (a := make(1.0))}), {"a": a}
    b, c = make(2.0), make(3.0)
    for edit in (
        lambda x: x.__setitem__("b", b),
        lambda x: x.update({"a": c, "c": a}),
        lambda x: x.pop("b"),
        lambda x: x.update([("d", b)]),
        lambda x: x.__delitem__("a"),
        lambda x: x.clear(),
    ):
        assert edit(collection) is edit(expected)
        assert list(collection) == list(collection.keys()) == list(expected) == names(collection)
        assert len(collection) == len(expected) and list(collection.values()) == list(
            expected.values()
        )
        assert all(x is y for x, y in zip(collection.values(), expected.values(), strict=True))
        assert [name for name, _ in collection.items()] == list(expected)
        assert all(name in collection and collection[name] is expected[name] for name in expected)
    assert "a" not in collection


def test_collections_of_parameters_make_parameters_of_tensors(torch):
    def made(library: Any) -> Any:
        return (
            library.nn.ParameterList([library.ones(2), library.nn.Parameter(library.ones(3))]),
            library.nn.ParameterDict(
                {"a": library.ones(2), "b": library.nn.Parameter(library.ones(3))}
            ),
        )

    for collection, reference in zip(made(xgrad), made(torch), strict=True):
        assert [(n, p.shape) for n, p in collection.named_parameters()] == [
            (n, tuple(p.shape)) for n, p in reference.named_parameters()
        ]
        assert all(isinstance(p, nn.Parameter) for p in collection.parameters())
    assert repr(made(xgrad)[0]).splitlines()[1] == "  (0): Parameter of shape (2,), float32, on cpu"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("nn.ModuleList([nn.ReLU(), 3])", "TypeError: ModuleList: expected modules, got 3 at 1"),
        (
            "nn.Sequential(nn.ReLU(), nn.ReLU)",
            (
                "TypeError: Sequential: expected modules, got <class …ReLU'> at 1: call the class"
                " to make one"
            ),
        ),
        ("nn.Sequential({'a': 3})", "TypeError: Sequential: expected modules, got 3 at 'a'"),
        (
            "nn.Sequential({'a': nn.ReLU()}, {})",
            "TypeError: Sequential: expected modules, got {'a': ReLU()} at 0",
        ),
        (
            "nn.Sequential({'a.b': nn.ReLU()})",
            "ValueError: Sequential: expected a name that is free and has no dot, got 'a.b'",
        ),
        (
            "nn.Sequential({'forward': nn.ReLU()})",
            "ValueError: Sequential: expected a name that is free and has no dot, got 'forward'",
        ),
        (
            "nn.ModuleDict({3: nn.ReLU()})",
            "ValueError: ModuleDict: expected a name that is free and has no dot, got 3",
        ),
        (
            "nn.ModuleDict({'keys': nn.ReLU()})",
            "ValueError: ModuleDict: expected a name that is free and has no dot, got 'keys'",
        ),
        (
            "nn.ModuleDict({'a': nn.Parameter(1.0)})",
            "TypeError: ModuleDict: expected modules, got …",
        ),
        ("nn.ModuleDict()['a']", "KeyError: 'a'"),
        ("nn.ModuleList().pop()", "IndexError: …"),
        ("nn.ParameterList([3.0])", "TypeError: ParameterList: expected parameters, got 3.0 at 0"),
        (
            "nn.ParameterDict({'a': nn.ReLU()})",
            "TypeError: ParameterDict: expected parameters, got ReLU() at 'a'",
        ),
        (
            "nn.Sequential({'1': nn.ReLU()}).append(nn.ReLU())",
            (
                "ValueError: Sequential: expected the index 1 as a free name, got one of …: choose"
                " names that are not …"
            ),
        ),
    ],
)
def test_invalid_contents_are_refused(call, expected):
    check_error(call, expected, nn=nn)


def test_refused_edit_changes_nothing():
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    for edit in (lambda: net.insert(0, 3), lambda: net.append(3), lambda: net.__setitem__(0, 3)):
        with pytest.raises(TypeError, match="expected modules, got 3"):
            edit()
    assert [type(layer) for layer in net] == [nn.ReLU, nn.Tanh]
