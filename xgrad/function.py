"""How an op is declared and applied: one forward rule, and one derivative rule for each input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from xgrad import errors
from xgrad.backend import DeviceError
from xgrad.device import Device, Place
from xgrad.devices import transfer
from xgrad.dtypes import COMPLEX, SCALARS, is_complex, promote
from xgrad.grad_mode import grad_enabled
from xgrad.graph import Branching, Node, record
from xgrad.inputs import lift
from xgrad.operators import namespace
from xgrad.plan import Plan, Rule, floating, nothing, outputs, reads
from xgrad.tensor import Tensor, placed


class Function:
    """A differentiable function of arrays, written once for every device and every order.

    Subclass it, with two static methods:

    - ``forward(xp, x, ..., *, option=default)``: computes the result, or a tuple of them, from arrays, using
      operators and the functions of the namespace `xp` alone. Parameters before the ``*`` are inputs, those
      after it are options, which can be given in the constructor or in the call.
    - ``backward(xp, g, ...)``: returns the gradient for the input, or a tuple with one for each input (None
      where there is none), from the gradient `g` of the result. The names of its other parameters say what
      is kept for it: an input, an option, ``out`` for the result, ``x_shape`` or ``x_device`` of an input x.

    Under ``create_graph=True`` the same `backward` runs on tensors, so a `Function` can be differentiated to
    any order if its `backward` uses nothing but its arguments. Gradients are summed over broadcast axes, and
    cast to the dtype of the input, after it. Neither method may write to the arrays that it is given.

    A complex tensor has the gradient ``dL/dRe z + i dL/dIm z`` of a real L, as in PyTorch. `backward` is written as
    for real numbers, the transpose of the derivative, which is what holomorphic functions need: where the result is
    complex it is called with the conjugate of `g`, and what it returns is conjugated. Where that is not the
    derivative (`abs`, `conj` ...), set the class attribute ``holomorphic = False``, and `backward` is left alone. Of
    what it returns for a real input the real part is taken.

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
    _given: dict[str, Any] | None = None
    forward: Callable[..., Any]
    backward: Rule
    public: Callable[..., Any]  # of one of ours, what users call
    lowest: int | None = None  # arrays of several dtypes are promoted, to at least this kind; None: left alone
    highest = COMPLEX  # the highest kind that it takes
    broadcasts = False  # whether inputs must broadcast against each other
    crosses = False  # whether the result goes to another device, given by the option `device`
    aside = ""  # the rules' name for what forward returns beside its result, which is None in a recorded pass
    holomorphic = True  # whether the rules of complex results need conjugates on the way in and out
    native = False  # whether the namespace's function of the same name is the whole forward rule

    def __init__(self, **options: Any) -> None:
        for method in ("forward", "backward"):
            if not hasattr(self, method):
                raise TypeError(f"{type(self).__name__}: expected a static method {method}(xp, ...)")
        self._given = options
        self._declare(getattr(self, "name", type(self).__name__), (self.backward,), options, joint=True)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._given is None:  # one of ours, found by its name
            return attrgetter("function"), (self.public,)
        return partial(type(self), **self._given), ()

    @classmethod
    def of(cls, name: str, forward: Callable[..., Any], rules: Sequence[Rule | None], **flags: Any) -> Function:
        """Return the function of a forward rule and a derivative rule, or None, for each input."""
        self = object.__new__(cls)
        vars(self).update(flags, forward=forward)
        self._declare(name, tuple(rules), {}, joint=False)
        return self

    def _declare(self, name: str, rules: tuple[Rule | None, ...], options: dict[str, Any], joint: bool) -> None:
        public = list(inspect.signature(self.forward).parameters.values())[1:]  # without xp
        positional = [p for p in public if p.kind <= p.VAR_POSITIONAL]
        self.variadic = any(p.kind == p.VAR_POSITIONAL for p in positional)
        if self.variadic and len(positional) > 1:
            raise TypeError(f"{name}: expected *{positional[-1].name} to be the only input, got {len(positional)}")
        self.name, self.rules, self.joint = name, rules, joint or self.variadic
        count = len(positional) if self.joint else len(rules)
        self.inputs = tuple([p.name for p in positional[:count]])
        self.options = tuple([p.name for p in public[count:]])
        if unknown := options.keys() - set(self.options):
            raise TypeError(f"{name}: unknown option {sorted(unknown)}: expected one of {list(self.options)}")
        public = [p.replace(default=options.get(p.name, p.default), annotation=p.empty) for p in public]
        self.signature = inspect.Signature(public)
        self.nullable = any(p.default is None for p in public[:count])
        self.defaults = {p.name: p.default for p in public[count:] if p.default is not p.empty}
        self._names = frozenset(self.options)
        self.positional = tuple([p.name for p in positional[count:]])
        self._reads = [reads(self, rule) for rule in rules]
        self.plans: dict[int, Plan] = {}
        self.conjugating: dict[int, Plan] = {}
        self.call = _caller(self)

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Apply the function to tensors and Python scalars, and record the call where a gradient is wanted."""
        return self.call(*inputs, **options)

    def kernel(self, device: Device) -> Callable[..., Any]:
        """Return what computes the forward rule on a device: the backend's fused kernel, if it has one."""
        fused = None if self.joint else device.backend.kernels.get(self.name)
        return fused or (getattr(device.xp, self.name) if self.native else partial(self.forward, device.xp))

    @property
    def short(self) -> bool:
        """Whether calls may take a short way: see `shortcut`."""
        if self.joint or self.aside or self.crosses or not all(self.rules):
            return False
        two = len(self.inputs) == 2 and self.lowest is not None and not self.options
        return two or (len(self.inputs) == 1 and "dtype" not in self.positional)

    def plans_of(self, *places: Place) -> dict[int, Plan]:
        """Return the plans of calls with results there, by a bit mask of the inputs that need a gradient."""
        conjugates = self.holomorphic and any(is_complex(place.dtype) for place in places)
        return self.conjugating if conjugates else self.plans

    def input_names(self, count: int) -> list[str]:
        """Return a name for each of `count` inputs, as errors and `grad_fn` give them."""
        return [f"{self.inputs[0]}[{i}]" for i in range(count)] if self.variadic else list(self.inputs)

    def bind(self, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sort the arguments of a call into inputs and options, filling in defaults."""
        count = len(args) if self.variadic else len(self.inputs)
        if len(args) == count:
            options = {**self.defaults, **given}
            if options.keys() == self._names:
                return args, options
        if not given and len(args) > count:
            options = {**self.defaults, **dict(zip(self.positional, args[count:], strict=False))}
            if len(args) <= count + len(self.positional) and options.keys() == self._names:
                return args[:count], options
        try:
            bound = self.signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.signature}: {error}") from None
        bound.apply_defaults()
        return tuple([bound.arguments[n] for n in self.inputs]), {n: bound.arguments[n] for n in self.options}


def _caller(function: Function) -> Callable[..., Any]:
    """Return what users call: a closure, for an attribute looked up at each of a million calls has a price."""
    lowest, variadic, nullable = function.lowest, function.variadic, function.nullable
    arity, defaults, sets_aside = len(function.inputs), function.defaults, bool(function.aside)
    binds = len(defaults) < len(function.options)
    casts = "dtype" in function.options and not function.joint
    crosses = function.crosses
    differentiable = -1 if function.joint else sum(1 << i for i, rule in enumerate(function.rules) if rule)
    plans = function.plans
    kernels: dict[Any, Callable[..., Any]] = {}  # by the key of a device
    exempt = ~differentiable if any(function.rules) else 0  # indices and conditions, which need not be of one kind
    unpromoted = tuple([i for i in range(arity) if exempt >> i & 1])

    def call(*inputs: Any, **options: Any) -> Any:
        if options or binds or (len(inputs) != arity and not variadic):
            inputs, options = function.bind(inputs, options)
        elif defaults:
            options = defaults.copy()
        device = dtype = aside = None
        mixed, mask, bit, raws, edges = False, 0, 1, [], []
        for x in inputs:
            if isinstance(x, Tensor):
                raw, place, edge = x._data, x._place, x._edge
                if place.device is not device:
                    if device is not None:
                        raise DeviceError(errors.mixed_devices(function, inputs))
                    device = place.device
                if not bit & exempt:
                    mixed = mixed or (dtype is not None and place.dtype is not dtype)
                    dtype = place.dtype
                if edge is not None:
                    mask |= bit
                raws.append(raw)
                edges.append(edge)
            elif type(x) in SCALARS or (x is None and nullable):
                mixed = mixed or x is True or x is False or type(x) is complex
                raws.append(x)
                edges.append(None)
            else:
                return call(*lift(function, inputs), **options)
            bit += bit
        if device is None:
            return call(*lift(function, inputs, scalars=True), **options)
        if lowest is not None and (mixed or dtype not in device.floats):
            raws = promote(function, raws, device, unpromoted)
        if casts and options["dtype"] is not None:
            options["dtype"] = device.backend.dtype(options["dtype"])

        kernel = kernels.get(device.key)
        if kernel is None:
            kernel = kernels[device.key] = function.kernel(device)
        try:
            if device.guard is None:
                out = kernel(*raws, **options) if options else kernel(*raws)
            else:
                with device.guard():
                    out = kernel(*raws, **options)
        except Exception as error:
            explained = errors.explain(function, error, inputs)
            if explained is error:
                raise
            raise explained from error
        if sets_aside:
            out, aside = out
        if crosses:
            out, device = transfer(out, device, options["device"]), options["device"]
        if type(out) is not device.array_type:
            out = device.coerce(out) if isinstance(out, np.generic) else _settle(function, out, device)

        mask &= differentiable
        single = type(out) is not tuple
        there: Any = device.places[out.dtype] if single else [device.places[part.dtype] for part in out]
        real = single and there.dtype in device.floats
        if not mask or not grad_enabled.get() or (single and not (real or floating(there))):
            return placed(out, there) if single else tuple(map(placed, out, there))
        table = plans if real else function.plans_of(there) if single else function.plans_of(*there)
        plan = table.get(-1 if variadic else mask)
        if plan is None:
            plan = Plan(function, [bool(mask >> i & 1) for i in range(arity)], table is function.conjugating)
            table[-1 if variadic else mask] = plan
        kept = plan.keep(out, raws, inputs, options, aside, edges)
        if single:
            return placed(out, there, record(Node(), plan, kept, out.shape, there))
        node = record(Branching(), plan, kept, [part.shape for part in out], there[0])
        node.outputs, node.places = [nothing] * len(out), there
        return outputs(node, out)

    return call


def _settle(function: Function, out: Any, device: Device) -> Any:
    """Return a result, or each of several, as the device's own kind of array."""
    if isinstance(out, (tuple, list)):
        return tuple([_settle(function, part, device) for part in out])
    if type(out) in SCALARS:
        return namespace.asarray(out, device=device)._data
    if not hasattr(out, "dtype"):
        raise TypeError(f"{function.name}: expected an array, or a tuple of them, of forward, got {type(out).__name__}")
    return out if type(out) is device.array_type else device.coerce(out)
