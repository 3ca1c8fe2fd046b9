"""Values that recorded calls save for backward, and their use in derivative rules.

The names of a rule's parameters say what is saved for it. They become the source of two kinds of
functions, which are compiled once for each op and set of inputs that need a gradient. For
``multiply(x1, x2)``, where x1 is a constant, the rule of x2 is ``lambda g, x1: g * x1``. Then

- ``save`` is ``lambda out, raws, inputs, options, residual, edges: (raws[0], weak(inputs[0]),
  edges[0], edges[1])``;
- the call of the rule is ``lambda g, xp, saved, into: rule(g, saved[0])``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import ref

from xgrad.core.dtypes import SCALARS, is_complex
from xgrad.core.graph import MultiOutputNode, Node
from xgrad.core.op import Op, Rule
from xgrad.core.signatures import parameters
from xgrad.core.tensor import Tensor, from_array, from_placement

_ENGINE_ARGUMENTS = {"g", "xp", "into"}, {"g", "xp"}  # of the rule of one input, and of one for all
# `x_shape` in a rule is the shape of the input x, which is then not saved
_ATTRIBUTES = ("shape", "device")


def reads(op: Op, rule: Rule) -> dict[str, str]:
    """Return a rule's parameters, each with a template of its argument in the source of a call.

    It is ``"{}"``, or ``"name={}"`` for a parameter that takes no positional argument. TypeError is
    raised for a name that neither the op nor the engine knows.
    """
    positional, keywords, *_ = parameters(rule)
    names = dict.fromkeys(positional, "{}") | {name: f"{name}={{}}" for name in keywords}
    known = {*_ENGINE_ARGUMENTS[op.joint_backward], "out", op.residual, *op.inputs, *op.options}
    known |= {f"{name}_{about}" for name in op.inputs for about in _ATTRIBUTES}
    if unknown := [name for name in names if name not in known]:
        raise TypeError(
            f"{op.name}: a rule asks for {unknown}: expected some of {sorted(known - {''})}"
        )
    return names


class BackwardSpec:
    """The saved values of a node and the rules it runs, for one set of inputs with gradients.

    - ``save(out, raws, inputs, options, residual, edges)`` returns the saved tuple of a call. It
      has the values for the rules, one for each of `saved_roles`; weak references to the inputs
      among them that are `constants`; and, from `first_edge` on, an edge or None for each input.
    - ``vjp_calls`` has for each wanted input the index of its edge, a callable ``(g, xp, saved,
      into)`` that runs its rule, and whether the rule can write to `into`; if `joint_backward`,
      there is one rule for all inputs.
    - Where the result is complex and the op holomorphic, each rule gets the conjugate of the
      gradient, and its result is conjugated: see `Function`.
    - `saved_roles` has the origin of each value: the number of an input, "all" inputs, "out",
      "residual", or None. `constants` are the inputs among them that need no gradient, by number.
    """

    __slots__ = (
        "constants",
        "first_edge",
        "joint_backward",
        "op",
        "save",
        "saved_roles",
        "vjp_calls",
    )
    op: Op
    joint_backward: bool
    saved_roles: list[Any]
    constants: list[int]
    first_edge: int
    save: Callable[..., tuple[Any, ...]]
    vjp_calls: list[tuple[int, Callable[..., Any], bool]]

    def __init__(self, op: Op, wanted: Sequence[bool], conjugates: bool = False) -> None:
        self.op, self.joint_backward = op, op.joint_backward
        rules = [
            (i, rule)
            for i, rule in enumerate(op.rules)
            if rule and (op.joint_backward or wanted[i])
        ]
        calls = [(i, rule, reads(op, rule)) for i, rule in rules]
        provided = _ENGINE_ARGUMENTS[op.joint_backward]
        values = list(
            dict.fromkeys(name for _, _, names in calls for name in names if name not in provided)
        )
        saved_roles: dict[str, Any] = {
            name: "all" if op.variadic else i for i, name in enumerate(op.inputs)
        }
        saved_roles |= {"out": "out", op.residual: "residual"}
        self.saved_roles = [saved_roles.get(name) for name in values]
        self.constants = [
            role for role in self.saved_roles if type(role) is int and not wanted[role]
        ]
        self.first_edge = len(values) + len(self.constants)
        self.save = _saver(op, values, self.constants)
        sources = {name: f"saved[{i}]" for i, name in enumerate(values)}
        call = "rule({})"
        if conjugates:
            sources |= {"g": "conj(xp, g)", "into": "None"}
            call = "conj(xp, rule({}))"
        self.vjp_calls = []
        for i, rule, names in calls:
            arguments = [
                template.format(sources.get(name, name)) for name, template in names.items()
            ]
            code = call.format(", ".join(arguments))
            run = _compiled("g, xp, saved, into", code, rule=rule, conj=_conj)
            self.vjp_calls.append((self.first_edge + i, run, "into" in names and not conjugates))

    def tensors(self, node: Node) -> list[Any]:
        """Return a node's saved values for `create_graph`: arrays as tensors, with their edges."""
        return [
            _as_tensor(node, role, value)
            for role, value in zip(self.saved_roles, node.saved or (), strict=False)
        ]


def _conj(xp: Any, g: Any) -> Any:
    """Conjugate a gradient, or each of several; real ones and None stay."""
    if isinstance(g, (tuple, list)):
        return tuple([_conj(xp, part) for part in g])
    return xp.conj(g) if is_complex(getattr(g, "dtype", None)) else g


def _as_tensor(node: Node, role: Any, value: Any) -> Any:
    if role is None or value is None or type(value) in SCALARS:
        return value
    if role == "residual":  # without history: the rule computes it again
        return None
    if role == "all":
        return [_as_tensor(node, i, part) for i, part in enumerate(value)]
    if type(value) is tuple:
        assert isinstance(node, MultiOutputNode)
        return outputs(node, value)
    if role == "out":
        return from_placement(value, node.placement, node)
    return from_array(value, node.placement.device, node.edges[role])


def _saver(
    op: Op, values: Iterable[str], constants: Iterable[int]
) -> Callable[..., tuple[Any, ...]]:
    """Return the function from the arguments of a call to the tuple that its node saves."""
    source = {"out": "out", op.residual: "residual"} | {
        name: f"options[{name!r}]" for name in op.options
    }
    for i, name in enumerate(op.inputs):
        source[name] = "raws" if op.variadic else f"raws[{i}]"
        for attribute in _ATTRIBUTES:
            one = f"getattr(inputs[{i}], {attribute!r}, ())"
            source[f"{name}_{attribute}"] = (
                f"[getattr(x, {attribute!r}, ()) for x in inputs]" if op.variadic else one
            )
    parts = [source[name] for name in values] + [f"weak(inputs[{i}])" for i in constants]
    parts += ["*edges"] if op.variadic else [f"edges[{i}]" for i in range(len(op.inputs))]
    return _compiled(
        "out, raws, inputs, options, residual, edges", f"({', '.join(parts)},)", weak=_weak
    )


def _weak(x: Any) -> Any:
    """Return a weak reference to a constant, which may come to depend on the node by assignment."""
    return ref(x) if isinstance(x, Tensor) else None


def _compiled(parameters: str, expression: str, **names: Any) -> Callable[..., Any]:
    """Return the compiled function of one specification.

    Sorting the arguments at each call would take longer than a rule.
    """
    return eval(f"lambda {parameters}: {expression}", {"__name__": __name__, **names})  # type: ignore[no-any-return]


def outputs(node: MultiOutputNode, outs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the tensors of a function with several results; integers have no history."""
    edges = [
        node.edge(i) if placement.floating else None for i, placement in enumerate(node.placements)
    ]
    return tuple(map(from_placement, outs, node.placements, edges))
