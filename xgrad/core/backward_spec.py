"""Values saved for backward: what a recorded call saves for its derivative rules, and how these read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import ref

from xgrad.core.dtypes import SCALARS, is_complex
from xgrad.core.graph import MultiOutputNode, Node
from xgrad.core.op import Op, Rule
from xgrad.core.signatures import parameters
from xgrad.core.tensor import Tensor, from_array, from_placement

_GIVEN = {"g", "xp", "into"}, {"g", "xp"}  # to the rule of one input, and to one for all
ABOUT = ("shape", "device")  # `x_shape` in a rule: that of the input x, which need not be kept


def reads(op: Op, rule: Rule) -> tuple[str, ...]:
    """Return the names of a rule's parameters, all of which must mean something."""
    positional, keywords, *_ = parameters(rule)
    asked = (*positional, *keywords)
    known = {*_GIVEN[op.joint], "out", op.residual, *op.inputs, *op.options}
    known |= {f"{name}_{about}" for name in op.inputs for about in ABOUT}
    if unknown := [name for name in asked if name not in known]:
        raise TypeError(f"{op.name}: a rule asks for {unknown}: expected some of {sorted(known - {''})}")
    return asked


class BackwardSpec:
    """The values that a node saves and the rules that it runs, for one set of inputs that need a gradient.

    - ``save(out, raws, inputs, options, residual, edges)`` makes the tuple that is saved of a call: see `Node`.
    - `first` is the index of the first edge in it: 0 if there is nothing but edges.
    - ``vjp_calls`` has for each wanted input the index of its edge, a callable ``(g, xp, saved, into)`` that runs its
      rule, and whether this asks where to write; if `joint`, there is one rule for all inputs.
    - Where the result is complex and the op holomorphic, each rule gets the conjugate of the gradient, and
      gives that of its own: see `Function`.
    - `saved_roles` says for each value which tensor it stands for: an input by number, "all" inputs, "out", "residual",
      or None. `constants` are the inputs among them that need no gradient.
    """

    __slots__ = ("constants", "first", "joint", "op", "save", "saved_roles", "vjp_calls")

    def __init__(self, op: Op, wanted: Sequence[bool], conjugates: bool = False) -> None:
        self.op, self.joint = op, op.joint
        rules = [(i, rule) for i, rule in enumerate(op.rules) if rule and (op.joint or wanted[i])]
        asked = [(i, rule, reads(op, rule)) for i, rule in rules]
        given = _GIVEN[op.joint]
        values = list(dict.fromkeys(name for _, _, read in asked for name in read if name not in given))
        saved_roles: dict[str, Any] = {name: "all" if op.variadic else i for i, name in enumerate(op.inputs)}
        saved_roles |= {"out": "out", op.residual: "residual"}
        self.saved_roles = [saved_roles.get(name) for name in values]
        self.constants = [role for role in self.saved_roles if type(role) is int and not wanted[role]]
        self.first = len(values) + len(self.constants)
        self.save = _saver(op, values, self.constants)
        sources = {name: f"saved[{i}]" for i, name in enumerate(values)}
        form = "rule({})"
        if conjugates:
            sources, form = sources | {"g": "conj(xp, g)", "into": "None"}, "conj(xp, rule({}))"
        self.vjp_calls = []
        for i, rule, read in asked:
            code = form.format(", ".join(sources.get(name, name) for name in read))
            run = _compiled("g, xp, saved, into", code, rule=rule, conj=_conj)
            self.vjp_calls.append((self.first + i, run, "into" in read and not conjugates))

    def tensors(self, node: Node) -> list[Any]:
        """Return what a node saved for a pass that is recorded: arrays as tensors, with their edges."""
        return [_as_tensor(node, role, value) for role, value in zip(self.saved_roles, node.saved or (), strict=False)]


def _conj(xp: Any, g: Any) -> Any:
    """Conjugate a gradient, or each of several; those that are real, or none, are as they were."""
    if isinstance(g, (tuple, list)):
        return tuple([_conj(xp, part) for part in g])
    return xp.conj(g) if is_complex(getattr(g, "dtype", None)) else g


def _as_tensor(node: Node, role: Any, value: Any) -> Any:
    if role is None or value is None or type(value) in SCALARS:
        return value
    if role == "residual":  # which has no history: the rule is to compute it again
        return None
    if role == "all":
        return [_as_tensor(node, i, part) for i, part in enumerate(value)]
    if type(value) is tuple:
        assert isinstance(node, MultiOutputNode)
        return outputs(node, value)
    if role == "out":
        return from_placement(value, node.placement, node)
    return from_array(value, node.placement.device, node.edges[role])


def _saver(op: Op, values: Iterable[str], constants: Iterable[int]) -> Callable[..., tuple[Any, ...]]:
    """Return the function that makes the tuple that a node saves, from a call."""
    every = op.variadic
    source = {"out": "out", op.residual: "residual"} | {name: f"options[{name!r}]" for name in op.options}
    for i, name in enumerate(op.inputs):
        source[name] = "raws" if every else f"raws[{i}]"
        for what in ABOUT:
            one = f"about(inputs[{i}], {what!r}, ())"
            source[f"{name}_{what}"] = f"[about(x, {what!r}, ()) for x in inputs]" if every else one
    parts = [source[name] for name in values] + [f"refer(inputs[{i}])" for i in constants]
    parts += ["*edges"] if every else [f"edges[{i}]" for i in range(len(op.inputs))]
    return _compiled(
        "out, raws, inputs, options, residual, edges", f"({', '.join(parts)},)", about=getattr, refer=_refer
    )


def _refer(x: Any) -> Any:
    """Refer to a constant without holding it: one that is assigned to may come to depend on the node."""
    return ref(x) if isinstance(x, Tensor) else None


def _compiled(parameters: str, expression: str, **names: Any) -> Callable[..., Any]:
    """Return a function written out for one specification: sorting arguments at each call costs more than a rule."""
    return eval(f"lambda {parameters}: {expression}", names)  # type: ignore[no-any-return]


def outputs(node: MultiOutputNode, outs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the tensors of a function with several results; those of integers have no history."""
    edges = [node.edge(i) if placement.floating else None for i, placement in enumerate(node.placements)]
    return tuple(map(from_placement, outs, node.placements, edges))
