"""Containers and modules nested thousands deep, or in themselves, work or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xgrad
from helpers import check_error
from xgrad import nn

WRAP: dict[str, Callable[[Any], Any]] = {
    "dict": lambda x: {"a": x},
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
}


def nested(kind: str, depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = WRAP[kind](leaf)
    return leaf


def innermost(x: Any) -> Any:
    while isinstance(x, (dict, list, tuple)):
        x = x["a"] if isinstance(x, dict) else x[0]
    return x


def square(x: Any) -> Any:
    return xgrad.sum(innermost(x) ** 2)


def cycle() -> list[Any]:
    x: list[Any] = []
    x += [x, x]
    return x


@pytest.mark.parametrize("kind", WRAP)
def test_trees_work_to_the_documented_depth(kind: str) -> None:
    tree = nested(kind, 200, xgrad.asarray([3.0]))
    assert innermost(xgrad.grad(square)(tree)).tolist() == [6]
    assert innermost(xgrad.vjp(square, tree)[1](xgrad.asarray(1.0))).tolist() == [6]
    assert xgrad.asarray(nested("list", 60, 1.0)).shape == (1,) * 60


DEEP: dict[str, Any] = {kind: nested(kind, 3000, xgrad.asarray([3.0])) for kind in WRAP}
SEQUENCES = [
    cycle(),
    [xgrad.ones(1), cycle()],
    DEEP["list"],
    DEEP["tuple"],
    nested("list", 3000, 1),
]
TRANSFORMS = (
    "xp.grad(f)(t)",
    "xp.vjp(f, t)",
    "xp.jvp(f, (t,), (t,))",
    "xp.testing.gradcheck(f, t)",
)
TOO_DEEP = (
    "ValueError: … expected containers nested at most 300 deep, got deeper ones, or one that"
    " contains itself"
)
REFUSED = [
    *[(call, TOO_DEEP, tree) for call in TRANSFORMS for tree in (*DEEP.values(), cycle())],
    *[
        (call, "ValueError: … expected at most 64 axes, got sequences nested deeper", tree)
        for call in ("xp.asarray(t)", "xp.Tensor(t)", "xp.ones(3)[t]")
        for tree in SEQUENCES
    ],
    (
        "xp.data.default_collate([t])",
        "ValueError: default_collate: expected samples not nested hundreds deep",
        DEEP["list"],
    ),
]


@pytest.mark.parametrize(("call", "error", "tree"), REFUSED, ids=range(len(REFUSED)))
def test_trees_nested_deeper_are_refused(call: str, error: str, tree: Any) -> None:
    check_error(call, error, f=square, t=tree)


@pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")
@pytest.mark.parametrize("kind", WRAP)
def test_captured_steps_take_deep_and_cyclic_arguments(kind: str) -> None:
    step = xgrad.capture(lambda x, other: square(x))
    for _ in range(4):
        assert step(nested(kind, 3000, xgrad.asarray([3.0])), cycle()).item() == 9


def chain(depth: int) -> nn.Sequential:
    net: Any = nn.Linear(2, 2)
    for _ in range(depth):
        net = nn.Sequential(net, nn.ReLU())
    return net  # type: ignore[no-any-return]


@pytest.mark.parametrize("depth", [400, 1500])
def test_deeply_nested_modules_equal_a_flat_one(depth: int) -> None:
    net, flat = chain(depth), chain(1)
    name = "0." * depth + "weight"
    state = net.state_dict()
    assert list(state) == [name, name.replace("weight", "bias")]
    assert net.load_state_dict(state) == ([], [])
    assert not any(module.training for module in net.eval().modules())
    assert net.to(xgrad.float64).to(xgrad.float32).train().training
    flat.load_state_dict({key.replace("0." * depth, "0."): value for key, value in state.items()})
    x = xgrad.asarray([[1.0, -2.0]])
    assert net(x).tolist() == flat(x).tolist()
    xgrad.sum(net(x)).backward()
    assert len([p for p in net.parameters() if p.grad is not None]) == 2
    net.apply((seen := []).append)
    assert len(seen) == 2 * depth + 1 and type(seen[0]) is nn.Linear and seen[-1] is net
    assert "Sequential(...)" in repr(net) and len(repr(net)) < 20_000
    with pytest.raises(
        ValueError, match="functional_call: expected modules and containers that are not nested"
    ):
        nn.utils.functional_call(chain(1500), {}, x)


def test_module_in_itself_is_shown_and_applied_to_once() -> None:
    net = nn.Sequential(nn.ReLU())
    net.again = net
    assert repr(net) == "Sequential(\n  (0): ReLU()\n  (again): Sequential(...)\n)"
    net.apply((seen := []).append)
    assert seen == [net[0], net]
    with pytest.raises(ValueError, match="Sequential: expected no module in itself"):
        net(xgrad.ones(1))


def test_repr_of_a_subclass_is_used_and_may_extend_that_of_its_base() -> None:
    class Named(nn.Sequential):
        def __repr__(self) -> str:
            return f"<{super().__repr__()}>"

    assert (
        repr(nn.Sequential(Named(nn.ReLU())))
        == "Sequential(\n  (0): <Named(\n    (0): ReLU()\n  )>\n)"
    )


def test_module_attributes_may_contain_themselves() -> None:
    module, values = nn.Module(), cycle()
    module.values = values
    module.deep = nested("dict", 3000, 1)
    values.append(nn.ReLU())
    with pytest.warns(UserWarning, match="got modules in a list"):
        module.state_dict()
