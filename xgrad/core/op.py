"""The description of an op: its inputs and options, the dtypes that it takes, and its rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from xgrad.backend.device import Device
from xgrad.core.dtypes import COMPLEX
from xgrad.core.signatures import parameters, public_signature
from xgrad.core.views import Views
from xgrad.support import hints

Rule = Callable[..., Any]


class Op:
    """The name of an op, its inputs and options, and its rules; `Function` applies it.

    `inputs` are the names of the arrays that it takes, or of the one parameter for all of them if
    it is `variadic`; `options` are the names of the other arguments, the `positional` ones among
    them may be given without a name, and `defaults` are their default values. `rules` has a
    derivative rule or None for each input, or, if `joint_backward`, one for all. `nullable` tells
    whether an input may be None.
    """

    name: str
    forward: Callable[..., Any]
    inputs: tuple[str, ...]
    options: tuple[str, ...]
    positional: tuple[str, ...]
    defaults: dict[str, Any]
    variadic: bool
    nullable: bool
    rules: tuple[Rule | None, ...]
    joint_backward: bool

    # Dtypes. Kinds are numbers of `dtypes`: BOOLEAN, INTEGER, FLOATING, COMPLEX.
    #: The op that replaces this one where all inputs are bools, or what to write for bools if it
    #: refuses them.
    of_bools: str | None = None
    instead_for_bools = ""
    #: Arrays of several dtypes are promoted, to at least this kind; None leaves them alone.
    lowest: int | None = None
    #: The highest kind that the op takes.
    highest = COMPLEX
    #: Whether integer arrays promote floating ones beside them, as in SciPy: see `promote`.
    scipy_promotion = False
    #: In `xgrad.amp.autocast`: "narrow", computed in the dtype of the mode, or "wide", in float32.
    #: The ops that lose most in float16 are wide, as in PyTorch.
    autocast: str | None = None
    #: Whether float16 is computed in float32, and the results rounded: for sums, squares and
    #: powers. A "narrow" op stays in float16 where products of it are fast.
    upcast = False

    # Shapes, devices and memory
    #: Whether inputs must broadcast against each other.
    broadcasts = False
    #: Whether the result goes to another device, given by the option `device`.
    cross_device = False
    #: Whether the result is a view, or where it shares memory.
    views: Views = False

    # Rules
    #: The name in rules of a second value that `forward` returns; it is None under `create_graph`.
    residual = ""
    #: Whether the rules of complex results need conjugates on the way in and out.
    holomorphic = True
    #: Whether the result has no value of the first input, which then has zero gradients.
    replaces = False
    #: Whether the rules may be another function than the derivative, as the rules of users may.
    own_rule = False
    #: Whether the namespace's function of the same name is the whole forward rule, for all numbers
    #: or for real ones.
    native = False
    native_of_reals = False

    def _declare(
        self,
        name: str,
        rules: tuple[Rule | None, ...],
        presets: dict[str, Any],
        joint_backward: bool,
    ) -> None:
        positional, keywords, defaults, self.variadic = parameters(self.forward)
        positional = positional[1:]  # without xp
        if self.variadic and len(positional) > 1:
            raise TypeError(
                f"{name}: expected *{positional[-1]} to be the only input, got {len(positional)}"
            )
        self.name, self.rules, self.joint_backward = name, rules, joint_backward or self.variadic
        count = len(positional) if self.joint_backward else len(rules)
        self.inputs, self.positional = positional[:count], positional[count:]
        self.options = (*self.positional, *keywords)
        taken = {"g", "xp", "out", self.residual} | ({"into"} if not self.joint_backward else set())
        taken |= {f"{name}_{about}" for name in self.inputs for about in ("shape", "device")}
        if clash := taken & {*self.inputs, *self.options}:
            raise TypeError(
                f"{name}: expected other names than {sorted(clash)} for inputs and options: in"
                " rules they mean the result, the gradient, the namespace, or what an input is"
            )
        if unknown := presets.keys() - set(self.options):
            raise TypeError(
                f"{name}: unknown option {sorted(unknown)}: expected one of {list(self.options)}"
            )
        self.nullable = any(defaults.get(n, n) is None for n in self.inputs)
        defaults = {**defaults, **presets}
        self.defaults = {n: defaults[n] for n in self.options if n in defaults}
        self._names = frozenset(self.options)
        # Bit masks of inputs: with a rule; without one, such as indices and conditions, which are
        # not promoted, unless no input has a rule; and without a part in the choice of a dtype.
        self._differentiable = (
            -1 if self.joint_backward else sum(1 << i for i, rule in enumerate(rules) if rule)
        )
        self._exempt = ~self._differentiable if any(rules) else 0
        self._undecisive = 0 if self.scipy_promotion else self._exempt
        self._kernels: dict[Any, Callable[..., Any]] = {}  # by device
        # `BackwardSpec`s by a bit mask of the inputs that need a gradient, without conjugates and
        # with them, which complex results of holomorphic ops need
        self.specs: tuple[dict[int, Any], dict[int, Any]] = {}, {}

    @cached_property
    def signature(self) -> inspect.Signature:
        """The inputs and options that a call takes, with their defaults."""
        return public_signature(self.forward, self.defaults)

    def kernel(self, device: Device, reals: bool = False) -> Callable[..., Any]:
        """Return the forward rule on a device, or the fused kernel of its backend.

        With `reals`, the rule is for real numbers alone.
        """
        if device.level and self.own_rule:
            return partial(device.call_with_own_rule, self)
        if reals and self.native_of_reals:
            return getattr(device.xp, self.name)  # type: ignore[no-any-return]
        fused = None if self.joint_backward else device.backend.kernels.get(self.name)
        return fused or (
            getattr(device.xp, self.name) if self.native else partial(self.forward, device.xp)
        )

    def named(self, inputs: Sequence[Any]) -> list[tuple[str, Any]]:
        """Return the inputs of a call, or values that belong to them, with the inputs' names."""
        names = (
            [f"{self.inputs[0]}[{i}]" for i in range(len(inputs))] if self.variadic else self.inputs
        )
        return list(zip(names, inputs, strict=False))

    def bind(
        self, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sort the arguments of a call into inputs and options, filling in defaults."""
        count = len(args) if self.variadic else len(self.inputs)
        if len(args) == count or not named:
            options = {**self.defaults, **named}
            if len(args) > count:
                options.update(zip(self.positional, args[count:], strict=False))
            if count <= len(args) <= count + len(self.positional) and options.keys() == self._names:
                return args[:count], options
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as error:
            hint = hints.arguments(self.name, self.signature.parameters, args, named)
            raise TypeError(f"{self.name}{self.signature}: {error}{hint}") from None
        bound.apply_defaults()
        return tuple([bound.arguments[n] for n in self.inputs]), {
            n: bound.arguments[n] for n in self.options
        }
