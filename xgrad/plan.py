"""What a recorded call keeps for its derivative rules, and how they get at it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from xgrad.device import Device
from xgrad.dtypes import SCALARS
from xgrad.graph import Branching, Node
from xgrad.tensor import Tensor, wrap

if TYPE_CHECKING:
    from xgrad.function import Function

Rule = Callable[..., Any]
ABOUT = ("shape", "device")  # `x_shape` in a rule: that of the input x, which need not be kept


def reads(function: Function, rule: Rule | None) -> tuple[str, ...]:
    """Return the names of a rule's parameters, all of which must mean something."""
    names = tuple(inspect.signature(rule).parameters) if rule else ()
    known = {"g", "xp", "out", *function.inputs, *function.options}
    known |= {f"{name}_{about}" for name in function.inputs for about in ABOUT}
    if unknown := [name for name in names if name not in known]:
        raise TypeError(f"{function.name}: a rule asks for {unknown}: expected some of {sorted(known)}")
    return names


class Plan:
    """What a node keeps and which rules it runs, for one set of inputs that need a gradient.

    - `keep` makes the tuple of what is kept from ``(out, inputs, raws, options)`` of a call.
    - `roles` says which tensor each of these stands for: an input by number, "all" inputs, "out", or None.
    - `steps` has for each wanted input its number, its rule, and what picks the rule's arguments from
      ``(g, xp, *kept)``; a rule for all inputs stands alone, at -1.
    - `constants` are the inputs that are kept though they need no gradient.
    """

    __slots__ = ("constants", "function", "keep", "roles", "steps")

    def __init__(self, function: Function, wanted: Sequence[bool]) -> None:
        self.function = function
        asked = [
            (-1 if function.joint else i, rule, names)
            for i, (rule, names) in enumerate(zip(function.rules, function._reads, strict=True))
            if rule is not None and (function.joint or wanted[i])
        ]
        kept = list(dict.fromkeys(name for _, _, names in asked for name in names if name not in ("g", "xp")))
        place = {name: i for i, name in enumerate(["g", "xp", *kept])}
        self.steps = [(i, rule, _picker([place[name] for name in names])) for i, rule, names in asked]
        roles: dict[str, Any] = {name: "all" if function.variadic else i for i, name in enumerate(function.inputs)}
        self.roles = [roles.get(name, "out" if name == "out" else None) for name in kept]
        self.constants = [role for role in self.roles if type(role) is int and not wanted[role]]
        self.keep = _keeper(function, kept) if kept else None

    def arguments(self, node: Node, g: Any, xp: Any, as_tensors: bool) -> tuple[Any, ...]:
        """Return ``(g, xp, *kept)``, kept arrays as tensors with their edges if the pass is recorded."""
        if not as_tensors:
            return (g, xp, *node.saved)
        return (g, xp, *[_as_tensor(node, role, value) for role, value in zip(self.roles, node.saved, strict=True)])


def _as_tensor(node: Node, role: Any, value: Any) -> Any:
    if role is None or value is None or type(value) in SCALARS:
        return value
    if role == "all":
        return [_as_tensor(node, i, part) for i, part in enumerate(value)]
    if type(value) is tuple:
        assert isinstance(node, Branching)
        return outputs(node, value)
    return wrap(value, node.device, node if role == "out" else node[role])


def _picker(places: list[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what picks the values at some places, as a tuple even if there is just one."""
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))


def _keeper(function: Function, kept: list[str]) -> Callable[..., tuple[Any, ...]]:
    """Return what picks the values of some names out of a call."""
    if not function.variadic and all(name == "out" or name in function.inputs for name in kept):
        pick = _picker([0 if name == "out" else 1 + function.inputs.index(name) for name in kept])
        return lambda out, inputs, raws, options: pick((out, *raws))
    about = [name.rpartition("_") for name in kept if name not in ("out", *function.inputs, *function.options)]

    def keep(out: Any, inputs: Sequence[Any], raws: list[Any], options: dict[str, Any]) -> tuple[Any, ...]:
        values = {"out": out, **options}
        values.update([(function.inputs[0], raws)] if function.variadic else zip(function.inputs, raws, strict=True))
        for name, _, what in about:
            if function.variadic:
                values[f"{name}_{what}"] = [getattr(x, what, ()) for x in inputs]
            else:
                values[f"{name}_{what}"] = getattr(inputs[function.inputs.index(name)], what, ())
        return tuple([values[name] for name in kept])

    return keep


def outputs(node: Branching, outs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the tensors of a function with several results; those of integers have no history."""
    edges = [
        node.edge(i, out) if floating(node.plan.function, out, node.device) else None for i, out in enumerate(outs)
    ]
    return tuple([wrap(out, node.device, edge) for out, edge in zip(outs, edges, strict=True)])


def nothing() -> None:
    """Stand for the edge of a result that has none yet."""


def floating(function: Function, out: Any, device: Device) -> bool:
    """Return whether a result can have a gradient."""
    kind = device.backend.numpy_dtype(out.dtype).kind
    if kind == "c":
        raise TypeError(
            f"{function.name}: expected a real result where a gradient is wanted, got {out.dtype}: .detach()"
        )
    return bool(kind == "f")
