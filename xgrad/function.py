"""How an op is declared and applied: one forward rule, and one derivative rule for each input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Concatenate, ParamSpec

import numpy as np

from xgrad import errors
from xgrad.backend import Device, DeviceError
from xgrad.devices import transfer
from xgrad.dtypes import SCALARS, promote
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Node, Output
from xgrad.tensor import Tensor, namespace, wrap

P = ParamSpec("P")
Rule = Callable[..., Any]
_ABOUT = ("shape", "dtype", "device")  # `x_shape` in a rule: that of the input x, which need not be kept


class Function:
    """A differentiable function of arrays, written once for every device and every order.

    Subclass it, with two static methods:

    - ``forward(xp, x, ..., *, option=default)``: computes the result, or a tuple of them, from arrays, using
      operators and the functions of the namespace `xp` alone. Parameters before the ``*`` are inputs, those
      after it are options, which can be given in the constructor or in the call.
    - ``backward(xp, g, ...)``: returns the gradient for the input, or a tuple with one for each input (None
      where there is none), from the gradient `g` of the result. The names of its other parameters say what
      is kept for it: an input, an option, ``out`` for the result, ``x_shape`` or ``x_dtype`` of an input x.

    Under ``create_graph=True`` the same `backward` runs on tensors, so a `Function` can be differentiated to
    any order if its `backward` uses nothing but its arguments. Gradients are summed over broadcast axes, and
    cast to the dtype of the input, after it.

    Raises
    ------
    TypeError
        In the constructor, if `backward` asks for a name that `forward` does not have.

    Examples
    --------
    >>> import xgrad
    >>> class Power(xgrad.Function):
    ...     @staticmethod
    ...     def forward(xp, x, *, n):
    ...         return x**n
    ...
    ...     @staticmethod
    ...     def backward(xp, g, x, n):
    ...         return g * n * x ** (n - 1)
    >>> cube = Power(n=3)
    >>> x = xgrad.Tensor(2.0, requires_grad=True)
    >>> (slope,) = xgrad.autograd.grad(cube(x), x, create_graph=True)
    >>> slope, xgrad.autograd.grad(slope, x)
    (Tensor(12., grad_fn=<multiply>), (Tensor(12.),))
    """

    name: str
    forward: Callable[..., Any]
    backward: Rule
    lowest: int | None = None  # arrays of several kinds are promoted, to at least this kind; None: left alone
    broadcasts = False  # whether inputs must broadcast against each other
    crosses = False  # whether the result goes to another device, given by the option `device`
    native = False  # whether the namespace's function of the same name is the whole forward rule

    def __init__(self, **options: Any) -> None:
        for method in ("forward", "backward"):
            if not hasattr(self, method):
                raise TypeError(f"{type(self).__name__}: expected a static method {method}(xp, ...)")
        self._declare(type(self).__name__, (self.backward,), options, joint=True)

    @classmethod
    def of(
        cls,
        name: str,
        forward: Callable[..., Any],
        rules: Sequence[Rule | None],
        lowest: int | None,
        broadcasts: bool = False,
        native: bool = False,
    ) -> Function:
        """Return the function of a forward rule and a derivative rule, or None, for each input."""
        self = object.__new__(cls)
        self.forward, self.lowest, self.broadcasts, self.native = forward, lowest, broadcasts, native
        self._declare(name, tuple(rules), {}, joint=False)
        return self

    def _declare(
        self, name: str, rules: tuple[Rule | None, ...], options: dict[str, Any], joint: bool
    ) -> None:
        self.name, self.rules, self.joint = name, rules, joint
        public = list(inspect.signature(self.forward).parameters.values())[1:]  # without xp
        positional = [p for p in public if p.kind <= p.VAR_POSITIONAL]
        self.variadic = any(p.kind == p.VAR_POSITIONAL for p in positional)
        inputs = positional if joint or self.variadic else positional[: len(rules)]
        self.inputs = tuple(p.name for p in inputs)
        self.extra = tuple(p.name for p in positional[len(inputs) :])
        self.options = tuple(p.name for p in public if p not in inputs)
        if unknown := options.keys() - set(self.options):
            raise TypeError(f"{name}: unknown option {sorted(unknown)}: expected one of {list(self.options)}")
        public = [p.replace(default=options.get(p.name, p.default)) for p in public]
        self.signature = inspect.Signature(public)
        self.defaults = {
            p.name: p.default for p in public if p.name in self.options and p.default is not p.empty
        }
        self.differentiable = -1 if joint or self.variadic else sum(1 << i for i, r in enumerate(rules) if r)
        for rule in rules:
            if rule is not None:
                self._reads(rule)
        self.call = _caller(self)

    def _reads(self, rule: Rule) -> tuple[str, ...]:
        """Return the names of a rule's parameters, all of which must mean something."""
        names = tuple(inspect.signature(rule).parameters)
        known = {"g", "xp", "out", *self.inputs, *self.options}
        known |= {f"{name}_{about}" for name in self.inputs for about in _ABOUT}
        if unknown := [name for name in names if name not in known]:
            raise TypeError(
                f"{self.name}: a derivative rule asks for {unknown}: expected some of {sorted(known)}"
            )
        return names

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Apply the function to tensors and Python scalars, and record the call where a gradient is wanted."""
        return self.call(*inputs, **options)

    def kernel(self, device: Device) -> Callable[..., Any]:
        """Return what computes the forward rule on a device: the backend's fused kernel, if it has one."""
        fused = device.backend.kernels.get(self.name)
        return fused or (getattr(device.xp, self.name) if self.native else partial(self.forward, device.xp))

    def input_names(self, count: int) -> list[str]:
        """Return a name for each of `count` inputs, as errors and `grad_fn` give them."""
        return [f"{self.inputs[0]}[{i}]" for i in range(count)] if self.variadic else list(self.inputs)

    def bind(self, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sort the arguments of a call into inputs and options, filling in defaults."""
        count = len(args) if self.variadic else len(self.inputs)
        if len(args) == count or not given:
            options = {**self.defaults, **dict(zip(self.extra, args[count:], strict=False)), **given}
            if count <= len(args) <= count + len(self.extra) and options.keys() == set(self.options):
                return args[:count], options
        try:
            bound = self.signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.signature}: {error}") from None
        bound.apply_defaults()
        values = bound.arguments
        return tuple(values[name] for name in self.inputs), {name: values[name] for name in self.options}


class Plan:
    """What a node keeps and which rules it runs, for one set of inputs that need a gradient.

    Attributes
    ----------
    keep : callable or None
        From ``(out, inputs, raws, options)`` of a call to the tuple of what is kept.
    steps : list of (int, rule, callable)
        For each wanted input its rule, and what picks the rule's arguments from ``(g, xp, *kept)``. A joint
        rule stands alone, at -1.
    constants : tuple of int
        The inputs that are kept though they need no gradient.
    """

    __slots__ = ("constants", "function", "keep", "roles", "steps")

    def __init__(self, function: Function, wanted: Sequence[bool]) -> None:
        self.function = function
        rules = (
            [(-1, function.rules[0])] if function.joint or function.variadic else enumerate(function.rules)
        )
        asked = [
            (i, rule, function._reads(rule)) for i, rule in rules if rule is not None and (i < 0 or wanted[i])
        ]
        kept = list(dict.fromkeys(n for _, _, names in asked for n in names if n not in ("g", "xp")))
        place = {name: i for i, name in enumerate(["g", "xp", *kept])}
        self.steps = [(i, rule, _pick([place[name] for name in names])) for i, rule, names in asked]
        self.roles = [self._role(name) for name in kept]
        self.constants = tuple(r for r in self.roles if type(r) is int and r >= 0 and not wanted[r])
        self.keep = _keeper(function, kept)

    def _role(self, name: str) -> int | str | None:
        """Return which tensor a kept value stands for: an input's number, "out", "all" inputs, or None."""
        if name in self.function.inputs:
            return "all" if self.function.variadic else self.function.inputs.index(name)
        return "out" if name == "out" else None

    def arguments(self, node: Node, g: Any, xp: Any, as_tensors: bool) -> tuple[Any, ...]:
        """Return ``(g, xp, *kept)``, kept arrays as tensors with their edges if the pass is recorded."""
        saved = node.saved
        assert saved is not None
        if as_tensors:
            saved = tuple(
                self._tensor(node, role, value) for role, value in zip(self.roles, saved, strict=True)
            )
        return (g, xp, *saved)

    def _tensor(self, node: Node, role: int | str | None, value: Any) -> Any:
        if role is None or value is None or type(value) in SCALARS:
            return value
        if role == "all":
            return [self._tensor(node, i, v) for i, v in enumerate(value)]
        if role == "out":
            return _outputs(node, value) if type(value) is tuple else wrap(value, node.device, node)
        assert isinstance(role, int)
        return wrap(value, node.device, node[role])


def _pick(places: list[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what picks the values at some places, as a tuple even if there is just one."""
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))


def _keeper(function: Function, names: list[str]) -> Callable[..., tuple[Any, ...]] | None:
    if not names:
        return None
    if not function.variadic and all(name == "out" or name in function.inputs for name in names):
        pick = _pick([0 if name == "out" else 1 + function.inputs.index(name) for name in names])
        return lambda out, inputs, raws, options: pick((out, *raws))
    getters = [_getter(function, name) for name in names]
    return lambda out, inputs, raws, options: tuple([get(out, inputs, raws, options) for get in getters])


def _getter(function: Function, name: str) -> Callable[..., Any]:
    if name == "out":
        return lambda out, inputs, raws, options: out
    if name in function.options:
        return lambda out, inputs, raws, options: options[name]
    if name in function.inputs:
        i = slice(None) if function.variadic else function.inputs.index(name)
        return lambda out, inputs, raws, options: raws[i]
    stem, _, about = name.rpartition("_")
    if about == "device":
        i = function.inputs.index(stem)
        return lambda out, inputs, raws, options: inputs[i].device
    if function.variadic:
        return lambda out, inputs, raws, options: [getattr(raw, about) for raw in raws]
    i = function.inputs.index(stem)
    return lambda out, inputs, raws, options: getattr(raws[i], about, () if about == "shape" else None)


def _caller(function: Function) -> Callable[..., Any]:
    """Return what users call: a closure, for an attribute looked up at each of a million calls has a price."""
    name, lowest, variadic = function.name, function.lowest, function.variadic
    arity, binds = len(function.inputs), bool(function.options)
    differentiable, crosses = function.differentiable, function.crosses
    plans: dict[Any, Plan] = {}
    kernels: dict[Device, Callable[..., Any]] = {}
    exempt = [i for i, rule in enumerate(function.rules) if rule is None] if any(function.rules) else []

    def call(*inputs: Any, **options: Any) -> Any:
        if binds or options or (len(inputs) != arity and not variadic):
            inputs, options = function.bind(inputs, options)
        device = dtype = None
        mixed, mask, bit, raws, edges = False, 0, 1, [], []
        for x in inputs:
            if isinstance(x, Tensor):
                raw, edge = x._data, x._edge
                if x._device is not device:
                    if device is not None:
                        raise DeviceError(errors.mixed_devices(function, inputs))
                    device, dtype = x._device, raw.dtype
                elif raw.dtype is not dtype:
                    mixed = True
                if edge is not None:
                    mask |= bit
                raws.append(raw)
                edges.append(edge)
            elif type(x) in SCALARS or x is None:
                raws.append(x)
                edges.append(None)
            else:
                return call(*_lift(function, inputs), **options)
            bit += bit
        if device is None:
            return call(*_lift(function, inputs, scalars=True), **options)
        if lowest is not None and (mixed or dtype not in device.floats):
            raws = promote(raws, device, lowest, exempt)
        if binds and options.get("dtype") is not None:
            options["dtype"] = device.backend.dtype(options["dtype"])

        kernel = kernels.get(device)
        if kernel is None:
            kernel = kernels[device] = function.kernel(device)
        try:
            if device.guard is None:
                out = kernel(*raws, **options) if binds else kernel(*raws)
            else:
                with device.guard():
                    out = kernel(*raws, **options)
        except (ValueError, TypeError, IndexError, RuntimeError) as error:
            raise errors.explain(function, error, inputs) from error
        if crosses:
            out, device = transfer(out, device, options["device"]), options["device"]
        if type(out) is not device.array_type:
            out = _settle(out, device) if type(out) is tuple else device.coerce(out)

        mask &= differentiable
        if not mask or not grad_enabled.get():
            return (
                wrap(out, device) if type(out) is not tuple else tuple([wrap(part, device) for part in out])
            )
        key = (mask, len(inputs)) if variadic else mask
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = Plan(function, [bool(mask >> i & 1) for i in range(len(inputs))])
        saved = () if plan.keep is None else plan.keep(out, inputs, raws, options)
        constants = [inputs[i] for i in plan.constants] if plan.constants else ()
        node = Node(plan, edges, saved, constants, out, device)
        return wrap(out, device, node) if type(out) is not tuple else _outputs(node, out)

    return call


def _outputs(node: Node, outs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the tensors of a function with several results."""
    return tuple([wrap(out, node.device, Output(node, i, out)) for i, out in enumerate(outs)])


def _settle(out: Any, device: Device) -> Any:
    """Return a result, or each of several, as the device's own kind of array."""
    if type(out) is tuple:
        return tuple([_settle(part, device) for part in out])
    return out if type(out) is device.array_type else device.coerce(out)


def _lift(function: Function, inputs: Sequence[Any], scalars: bool = False) -> list[Any]:
    """Make tensors of the arrays among the inputs, and of the first scalar where there are only scalars."""
    lifted = []
    for name, x in zip(function.input_names(len(inputs)), inputs, strict=False):
        if isinstance(x, np.generic):
            x = x.item()  # weak, as Python's scalars are: a NumPy float64 does not promote either
        if type(x) in SCALARS:
            x, scalars = (namespace.asarray(x) if scalars else x), False
        elif not (x is None or isinstance(x, Tensor)):
            if isinstance(x, (str, bytes, list, tuple, dict, set)) or not hasattr(x, "__array__"):
                raise TypeError(
                    f"{function.name}: expected a tensor, an array or a number for {name}, got "
                    f"{type(x).__name__}: make a tensor with xgrad.asarray"
                )
            x = namespace.asarray(x)
        lifted.append(x)
    if scalars:
        raise TypeError(f"{function.name}{function.signature}: expected at least one tensor, got none")
    return lifted


def derivative(
    *rules: Rule | None, kind: int | None = None, broadcasts: bool = False
) -> Callable[[Callable[Concatenate[Any, P], Any]], Callable[P, Tensor]]:
    """Declare an op: its forward rule is decorated, its derivative rules, one for each input, are given here.

    Parameters
    ----------
    *rules : callable or None
        For each of the first parameters after `xp` the rule of its gradient, None where there is none. The
        names of a rule's parameters choose what is kept, see `Function`. Where the forward rule takes
        ``*arrays``, one rule returns the gradients of all.
    kind : int, optional
        The lowest kind of dtype (`dtypes.INTEGER`, ...) that the op works on; arrays of several kinds are
        promoted. By default dtypes are left alone.
    broadcasts : bool, default False
        Whether the inputs must broadcast against each other: it makes the better error.
    """

    def declare(forward: Callable[Concatenate[Any, P], Any]) -> Callable[P, Tensor]:
        function = Function.of(forward.__name__, forward, rules, kind, broadcasts)
        return public(function, forward.__doc__, forward.__module__)

    return declare


def public(function: Function, doc: str | None, module: str) -> Callable[..., Tensor]:
    """Return a function's callable with the name, signature and documentation that users look up."""
    call: Any = function.call
    call.__name__ = call.__qualname__ = function.name
    call.__doc__, call.__module__ = doc, module
    call.__signature__, call.function = function.signature, function
    return call  # type: ignore[no-any-return]


def in_rule(op: Any, xp: Any, *inputs: Any, **options: Any) -> Any:
    """Use an op of ours in a rule: on tensors the op, so that it is recorded; on arrays its forward rule."""
    if isinstance(inputs[0], Tensor):
        return op(*inputs, **options)
    return op.function.forward(xp, *inputs, **options)
