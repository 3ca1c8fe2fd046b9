"""The base class of optimizers: groups of parameters, their options and their state.

`step` packs parameters that are alike; each `flat.FlatParameters` then applies the update rule.
`loading` reads a `state_dict`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar, overload

from xgrad.backend.recording import refuse
from xgrad.core.modes import enable_grad
from xgrad.core.tensor import Tensor
from xgrad.ops import zeros_like
from xgrad.optim.flat import FlatParameters, State, Update
from xgrad.optim.loading import read_state_dict
from xgrad.optim.rules import (
    IMPLEMENTATIONS,
    check_flags,
    check_implementation,
    check_ranges,
)
from xgrad.support.hints import shown

Params = Iterable[Tensor] | Iterable[dict[str, Any]]
R = TypeVar("R")


class Optimizer:
    """The base class of optimizers, which update parameters by their gradients.

    A subclass defines `update`, the rule for one parameter, and may define `check`. If the rule
    treats each element by itself, the subclass sets ``elementwise = True``: all parameters are then
    updated as one array.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        The parameters to optimize, such as ``model.parameters()``: leaves, on any devices. Or
        groups of parameters: dicts with the tensors under ``"params"``, and the options that differ
        for the group.
    defaults : dict
        The options, with the values for groups that do not set them. A tensor as ``"lr"`` is read
        at each step; a captured step needs a number.
    implementation : mapping, optional
        PyTorch's keywords ``foreach``, ``fused``, ``capturable`` and ``differentiable``, which
        choose between its implementations. They may be False or None, and have no effect.

    Attributes
    ----------
    param_groups : list of dict
        The groups, each with ``"params"`` and a value for every option, which may
        be changed between steps.
    state : mapping of Tensor to mapping
        The state of each parameter that was updated, read-only: numbers, and arrays on its device.

    Raises
    ------
    TypeError
        If a parameter is not a tensor, or `params` is not iterable.
    ValueError
        If there is no parameter, a parameter is given twice or is not a leaf, or an option is
        unknown or out of range.

    Examples
    --------
    >>> import xgrad
    >>> class SignDescent(xgrad.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     def update(self, xp, p, g, state, options):
    ...         return p - options["lr"] * xp.sign(g)
    >>> x = xgrad.Tensor([1.0, -1.0], requires_grad=True)
    >>> optimizer = SignDescent([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    Tensor([ 0.75, -0.75], requires_grad=True)
    """

    # The keys that the state has after any step
    required_state: ClassVar[frozenset[str]] = frozenset()
    # Whether `update` may be given many parameters as one array
    elementwise: ClassVar[bool] = False
    # The options that `check` requires to be numbers of 0 or more
    ranges: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        params: Params,
        defaults: dict[str, Any],
        implementation: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        if not isinstance(defaults, dict):
            raise TypeError(
                f"{type(self).__name__}: expected a dict of defaults, got {type(defaults).__name__}"
            )
        check_implementation(type(self).__name__, implementation)
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.packing: Callable[..., FlatParameters] = FlatParameters
        self._packed: dict[int, _PackedGroup] = {}  # by the id of the group
        self._unpacked_state: dict[Tensor, State] = {}  # of parameters that are not packed now
        groups = _as_list(type(self).__name__, params)
        for group in groups if groups and isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of one parameter; each subclass defines it.

        Parameters
        ----------
        xp : namespace
            The array API namespace of the arrays.
        p, g : array
            The parameter and its gradient, with the same shape, dtype and device; if `elementwise`,
            a part of all parameters and gradients, with one axis. Only `p` may be written to, and
            `g` is valid only during this call.
        state : dict
            The state of the parameter, empty at first: numbers, and arrays like `p`. Nothing else
            refers to the arrays, so that they may be updated in place.
        options : mapping
            The options of the parameter's group.

        Returns
        -------
        array
            The next value, like `p`, or `p` itself, updated in place.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method update, found none: define it"
        )

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option of a new group is out of range, a TypeError for a flag.

        By default, the options in `ranges` and the flags that all optimizers share are checked.
        """
        check_flags(type(self).__name__, options)
        check_ranges(type(self).__name__, options, *self.ranges)

    def state_shapes(self, p: Tensor) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of the arrays in the state of `p` that depend on its shape.

        Each of them is in the state after any step. Other arrays have the shape of `p`.
        """
        return {}

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add a group of parameters.

        `group` is a dict of ``"params"`` and the options that differ for them.

        Raises
        ------
        TypeError, ValueError
            As for the constructor; no parameter is then added.

        Examples
        --------
        >>> import xgrad
        >>> a, b = xgrad.nn.Linear(2, 2), xgrad.nn.Linear(2, 2)
        >>> optimizer = xgrad.optim.SGD(a.parameters(), lr=0.1)
        >>> optimizer.add_param_group({"params": b.parameters(), "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        name = type(self).__name__
        if not isinstance(group, dict) or "params" not in group:
            raise TypeError(
                f"{name}: expected groups that are dicts with 'params', got {shown(group)}"
            )
        choices = {key: group[key] for key in group.keys() & IMPLEMENTATIONS}
        check_implementation(name, choices)
        group = {key: value for key, value in group.items() if key not in choices}
        if unknown := sorted(group.keys() - self.defaults.keys() - {"params"}):
            raise ValueError(f"{name}: expected options of {list(self.defaults)}, got {unknown}")
        params = (
            [group["params"]]
            if isinstance(group["params"], Tensor)
            else _as_list(name, group["params"])
        )
        if not params:
            raise ValueError(f"{name}: expected parameters, got none: does the model have any?")
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"{name}: expected tensors as parameters, got {type(p).__name__} at {i}"
                )
            if not p.is_leaf:
                raise ValueError(
                    f"{name}: expected leaves as parameters, got one from {p.grad_fn.name} at {i}"
                )
            if p.dtype.kind == "c":
                raise TypeError(
                    f"{name}: expected real parameters, got {p.dtype} at {i}: keep real and"
                    " imaginary parts in two"
                )
            if id(p) in known:
                raise ValueError(
                    f"{name}: expected each parameter once, got the one at {i} of a group twice"
                )
            known.add(id(p))
        options = {**self.defaults, **group, "params": params}
        self.check(options)
        self.param_groups.append(options)
        self._pack(options)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, or set them to 0 unless `set_to_none`."""
        for group in self.param_groups:
            for p in group["params"]:
                leaf = p._leaf
                if leaf is not None and (set_to_none or leaf.grad is not None):
                    leaf.grad = None if set_to_none else zeros_like(p._without_history())

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update each parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            A function that computes the loss and its gradients. It is called first, with graph
            recording enabled.

        Returns
        -------
        object
            The result of `closure`, or None without a closure.

        Notes
        -----
        After Ctrl-C, or an exception from another signal handler, the step is either done or not
        done. If the signal comes while the update writes, some parameters and moments are updated
        and others not, as in PyTorch. In each case, the next step works.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self.apply_update(self.update)
        return loss

    def apply_update(self, update: Update) -> None:
        """Update each parameter that has a gradient, by a rule that is called like `update`."""
        flats = self.pack()
        for flat, group in flats:
            flat.step(update, group)
        lazy = [flat for flat, _ in flats if flat.device.backend.lazy]
        for flat in lazy:
            for array in flat.arrays.values():
                flat.device.backend.wrote(array._data)
        for device in {flat.device for flat in lazy}:
            device.synchronize()

    def pack(self) -> list[tuple[FlatParameters, dict[str, Any]]]:
        """Pack the parameters with their current gradients, and return them with their groups."""
        former = self._packed
        if not all(map(self._has_packed, self.param_groups)):  # groups were edited
            self._unpacked_state, self._packed = self._states(), {}
        flats = []
        for group in self.param_groups:
            packed = self._packed.get(id(group))
            if packed is None or not packed.holds():
                if packed is not None:
                    self._unpacked_state |= packed.states()
                packed = self._pack(group)
            flats += [(flat, group) for flat in packed.flats]
        del former  # kept until now: parameters that are packed in the same way stay in place
        return flats

    def flats(self) -> list[FlatParameters]:
        """Return the packed parameters of all groups."""
        return [
            flat
            for g in self.param_groups
            if id(g) in self._packed
            for flat in self._packed[id(g)].flats
        ]

    def is_packed(self) -> bool:
        """Return whether the next step will pack parameters as the last one did.

        The result is False before the first step.
        """
        packed = all(
            self._has_packed(group) and self._packed[id(group)].holds()
            for group in self.param_groups
        )
        return packed and any(flat.stepped for flat in self.flats())

    def _has_packed(self, group: dict[str, Any]) -> bool:
        packed = self._packed.get(id(group))
        return packed is not None and packed.ids == list(map(id, group["params"]))

    def _pack(self, group: dict[str, Any]) -> _PackedGroup:
        """Pack the parameters of a group, together if they are alike in all that an update uses."""
        alike: dict[Any, list[tuple[Tensor, State]]] = {}
        constants = []
        for p in group["params"]:
            leaf, dtype, stepped = p._leaf, p._data.dtype, p in self._unpacked_state
            if leaf is None:
                constants.append(p)
                continue
            state = self._unpacked_state.get(p, State(p.device, dtype)).to(p.device, dtype)
            numbers = frozenset(
                (key, None if state.is_array(key) else repr(state[key])) for key in state
            )
            kind = (
                stepped, leaf.grad is None, p.requires_grad, p.device, p.dtype, numbers,
                None if self.elementwise else id(p),
            )  # fmt: skip
            alike.setdefault(kind, []).append((p, state))
        flats = [
            self.packing(
                [p for p, _ in members],
                [state for _, state in members],
                self.elementwise,
                stepped=kind[0],
            )
            for kind, members in alike.items()
        ]
        packed = self._packed[id(group)] = _PackedGroup(
            list(map(id, group["params"])), flats, constants
        )
        for p in group["params"]:
            self._unpacked_state.pop(p, None)
        return packed

    def _states(self) -> dict[Tensor, State]:
        """Return the state of each parameter that was updated."""
        states = dict(self._unpacked_state)
        for packed in self._packed.values():
            states |= packed.states()
        return states

    @property
    def state(self) -> Mapping[Tensor, Mapping[str, Any]]:
        """The state of each parameter that was updated, read-only."""
        refuse("the state of an optimizer is read")
        return MappingProxyType({p: MappingProxyType(state) for p, state in self._states().items()})

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the buffers.

        In a copy, the parameters would not be views of them.
        """
        unpacked = {p: State(s.device, s.dtype, s) for p, s in self._states().items()}
        return vars(self) | {"_packed": {}, "_unpacked_state": unpacked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes of a copy, and pack its parameters."""
        vars(self).update(state)
        for group in self.param_groups:
            self._pack(group)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of everything needed to continue later.

        Returns
        -------
        dict
            ``"state"``: the state of each parameter, numbers and tensors, by the number of the
            parameter; ``"param_groups"``: the options, with the numbers of the parameters under
            ``"params"``.

        Examples
        --------
        >>> import xgrad
        >>> optimizer = xgrad.optim.SGD(xgrad.nn.Linear(2, 2).parameters(), lr=0.1)
        >>> optimizer.state_dict()["param_groups"][0]["lr"]
        0.1
        """
        numbers = {
            id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])
        }
        groups = [{**g, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        refuse("the state of an optimizer is read")
        state = {numbers[id(p)]: values.tensors() for p, values in self._states().items()}
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`, with parameters of the same shapes in the same order.

        On a CPU, steps continue bit for bit if the parameters have the values that they had then.

        Parameters
        ----------
        state_dict : mapping
            From an optimizer of the same class, or of PyTorch's class of this name. Its arrays are
            copied to the device and the dtype of the parameters.

        Raises
        ------
        TypeError
            If it is not a mapping of this form.
        ValueError
            If the groups, options or shapes do not match this optimizer; nothing is then loaded.

        Examples
        --------
        >>> import xgrad
        >>> layer = xgrad.nn.Linear(2, 2)
        >>> a, b = (xgrad.optim.SGD(layer.parameters(), lr=lr) for lr in (0.1, 0.2))
        >>> b.load_state_dict(a.state_dict())
        >>> b.param_groups[0]["lr"]
        0.1
        """
        groups, state = read_state_dict(self, state_dict)
        former = self._packed
        self._unpacked_state, self._packed = state, {}
        for own, group in zip(self.param_groups, groups, strict=True):
            own.update({**group, "params": own["params"]})
            self._pack(own)
        del former  # kept until now, so that parameters stay in place

    def __repr__(self) -> str:
        groups = (
            ", ".join(f"{key}={value}" for key, value in group.items() if key != "params")
            + f", {len(group['params'])} parameters"
            for group in self.param_groups
        )
        return "\n".join(f"{type(self).__name__}({group})" for group in groups)


_LEAF = attrgetter("_leaf")


class _PackedGroup(NamedTuple):
    """A group with packed parameters.

    `ids` has the ids of all its parameters, `flats` the packed ones, and `constants` the ones that
    never required a gradient.
    """

    ids: list[int]
    flats: list[FlatParameters]
    constants: list[Tensor]

    def holds(self) -> bool:
        """Return whether the parameters would be packed in the same way again."""
        return all(flat.intact() and flat.uniform() for flat in self.flats) and not any(
            map(_LEAF, self.constants)
        )

    def states(self) -> dict[Tensor, State]:
        """Return the state of each parameter that was updated."""
        stepped = (flat for flat in self.flats if flat.stepped)
        return {
            p: state
            for flat in stepped
            for p, state in zip(flat.params, flat.states(), strict=True)
        }


def _as_list(name: str, params: Any) -> list[Any]:
    if isinstance(params, (Tensor, Mapping, str)) or not isinstance(params, Iterable):
        raise TypeError(
            f"{name}: expected an iterable of tensors or of groups, such as model.parameters(), got"
            f" {type(params).__name__}"
        )
    return list(params)
