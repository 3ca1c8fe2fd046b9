"""The base of all optimizers: groups of parameters, what is remembered of each, and the step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from xgrad.core.grad_mode import enable_grad
from xgrad.core.tensor import Tensor
from xgrad.ops import asarray, astype, zeros_like
from xgrad.optim.flat import Flat, State, at_once
from xgrad.support.hints import shown

Params = Iterable[Tensor] | Iterable[dict[str, Any]]


class Optimizer:
    """The base of optimizers, which gives parameters new values according to their gradients.

    A subclass defines `update`, the rule for one parameter, and may define `check`. If the rule treats every element
    by itself, whatever parameter it is of, the subclass sets ``elementwise = True``: then all parameters are updated
    as one array.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        What to optimize, such as ``model.parameters()``: leaves, on any devices. Or groups of them: dicts with
        the tensors under ``"params"`` and the options in which the group differs.
    defaults : dict
        The options, with their values for groups that do not give their own.

    Attributes
    ----------
    param_groups : list of dict
        The groups, each with ``"params"`` and a value for every option, which may be changed between steps.
    state : mapping of Tensor to mapping
        For each parameter that was updated what is remembered of it, to look at: numbers, and arrays of its device.

    Raises
    ------
    TypeError
        If a parameter is not a tensor, or `params` is not iterable.
    ValueError
        If there is no parameter, one is there twice or is not a leaf, or an option is unknown or out of range.

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

    remembered: ClassVar[frozenset[str]] = frozenset()  # what the state of a parameter has after any step
    elementwise: ClassVar[bool] = False  # whether `update` may be given many parameters as one array

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if not isinstance(defaults, dict):
            raise TypeError(f"{type(self).__name__}: expected a dict of defaults, got {type(defaults).__name__}")
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._laid: dict[int, _Laid] = {}  # how the parameters of groups lie, by the id of the group
        self._apart: dict[Tensor, State] = {}  # what is remembered of the others
        given = _listed(type(self).__name__, params)
        for group in given if given and isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def update(self, xp: Any, p: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
        """Return the next value of one parameter: to be defined by each subclass.

        Parameters
        ----------
        xp : namespace
            That of the arrays, an array API namespace.
        p, g : array
            The parameter and its gradient, alike in shape, dtype and device; if `elementwise`, a part of all
            parameters and gradients, with one axis. Only `p` may be written to, and `g` is good for this call only.
        state : dict
            What is remembered of this parameter, empty at first: numbers, and arrays like `p`, which nothing
            else sees, so that they may be updated in place.
        options : mapping
            Those of the parameter's group.

        Returns
        -------
        array
            The next value, like `p`, or `p` itself, updated in place.
        """
        raise NotImplementedError(f"{type(self).__name__}: expected a method update, found none: define it")

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise a ValueError if an option of a new group is out of range; by default all are good."""

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Optimize further parameters: a dict of ``"params"`` and the options in which they differ.

        Raises
        ------
        TypeError, ValueError
            As the constructor; then no parameter is added.

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
            raise TypeError(f"{name}: expected groups that are dicts with 'params', got {shown(group)}")
        if unknown := sorted(group.keys() - self.defaults.keys() - {"params"}):
            raise ValueError(f"{name}: expected options of {list(self.defaults)}, got {unknown}")
        params = group["params"]
        params = [params] if isinstance(params, Tensor) else _listed(name, params)
        if not params:
            raise ValueError(f"{name}: expected parameters, got none: does the model have any?")
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(f"{name}: expected tensors as parameters, got {type(p).__name__} at {i}")
            if not p.is_leaf:
                raise ValueError(f"{name}: expected leaves as parameters, got one from {p.grad_fn.name} at {i}")
            if p.dtype.kind == "c":
                raise TypeError(
                    f"{name}: expected real parameters, got {p.dtype} at {i}: keep real and imaginary parts in two"
                )
            if id(p) in known:
                raise ValueError(f"{name}: expected each parameter once, got the one at {i} of a group twice")
            known.add(id(p))
        options = {**self.defaults, **group, "params": params}
        self.check(options)
        self.param_groups.append(options)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Take the gradients off all parameters, or make them 0, if not `set_to_none`."""
        for group in self.param_groups:
            for p in group["params"]:
                leaf = p._leaf
                if leaf is not None and (set_to_none or leaf.grad is not None):
                    leaf.grad = None if set_to_none else zeros_like(p.detach())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update each parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            What computes the loss and its gradients, called first, with the graph being recorded.

        Returns
        -------
        object
            What `closure` returned, None if there is none.

        Notes
        -----
        Ctrl-C, or the exception of another signal handler, may leave some parameters and moments updated and others
        not, as in PyTorch. Each parameter has all of its state or none, and the next step works. A step that
        `xgrad.capture` replays is done wholly or not at all.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if not all(map(self._is_known, self.param_groups)):  # some were added, or edited
            self._scatter()
        for group in self.param_groups:
            laid = self._laid.get(id(group))
            if laid is None:
                laid = self._lay(group)
            elif not laid.holds():
                self._apart |= laid.states()
                laid = self._lay(group)
            for flat in laid.flats:
                flat.step(self.update, group)
        return loss

    def laid(self) -> list[tuple[dict[str, Any], _Laid]]:
        """Return how the parameters of each group that was updated lie."""
        return [(group, self._laid[id(group)]) for group in self.param_groups if id(group) in self._laid]

    def _is_known(self, group: dict[str, Any]) -> bool:
        laid = self._laid.get(id(group))
        return laid is not None and laid.ids == list(map(id, group["params"]))

    def _lay(self, group: dict[str, Any]) -> _Laid:
        """Lay the parameters of a group side by side, as far as they are alike in all that matters to an update."""
        alike: dict[Any, list[tuple[Tensor, State]]] = {}
        waiting = []
        for p in group["params"]:
            leaf, dtype, known = p._leaf, p._data.dtype, p in self._apart
            if leaf is None:
                waiting.append(p)
                continue
            state = self._apart.get(p, State(p.device, dtype)).moved(p.device, dtype)
            numbers = frozenset((key, None if state.is_array(key) else repr(state[key])) for key in state)
            kind = (known, leaf.grad is None, p.device, p.dtype, numbers, None if self.elementwise else id(p))
            alike.setdefault(kind, []).append((p, state))
        flats = [
            Flat([p for p, _ in members], [state for _, state in members], self.elementwise, stepped=kind[0])
            for kind, members in alike.items()
        ]
        laid = self._laid[id(group)] = _Laid(list(map(id, group["params"])), flats, waiting)
        for p in group["params"]:  # what is still here where a signal handler stops this is that of `laid`
            self._apart.pop(p, None)
        return laid

    def _scatter(self) -> None:
        """Forget how parameters lie, but not what is remembered of them."""
        self._apart, self._laid = self._states(), {}

    def _states(self) -> dict[Tensor, State]:
        """Return what is remembered of each parameter."""
        states = dict(self._apart)
        for laid in self._laid.values():
            states |= laid.states()
        return states

    @property
    def state(self) -> Mapping[Tensor, Mapping[str, Any]]:
        """What is remembered of each parameter that was updated, to look at."""
        return MappingProxyType({p: MappingProxyType(state) for p, state in self._states().items()})

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the buffers, which parameters would no longer be views of in a copy."""
        apart = {p: State(s.device, s.dtype, s) for p, s in self._states().items()}
        return vars(self) | {"_laid": {}, "_apart": apart}

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to go on later, as copies.

        Returns
        -------
        dict
            ``"state"``: what is remembered, numbers and tensors, by the number of the parameter;
            ``"param_groups"``: the options, with the numbers of the parameters under ``"params"``.

        Examples
        --------
        >>> import xgrad
        >>> xgrad.optim.SGD(xgrad.nn.Linear(2, 2).parameters(), lr=0.1).state_dict()["param_groups"][0]["lr"]
        0.1
        """
        numbers = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        groups = [{**g, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        state = {numbers[id(p)]: values.tensors() for p, values in self._states().items()}
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned, with parameters of the same shapes in the same order.

        Parameters
        ----------
        state_dict : mapping
            From an optimizer of this kind. Its arrays are copied, to the device and in the dtype of the
            parameters.

        Raises
        ------
        TypeError
            If it is not such a mapping.
        ValueError
            If the groups, options or shapes are not those of this optimizer; then nothing is loaded.

        Examples
        --------
        >>> import xgrad
        >>> layer = xgrad.nn.Linear(2, 2)
        >>> a, b = (xgrad.optim.SGD(layer.parameters(), lr=lr) for lr in (0.1, 0.2))
        >>> b.load_state_dict(a.state_dict())
        >>> b.param_groups[0]["lr"]
        0.1
        """
        title = f"{type(self).__name__}.load_state_dict"
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= state_dict.keys():
            raise TypeError(f"{title}: expected a mapping with 'state' and 'param_groups', as state_dict() returns")
        if not isinstance(state_dict["state"], Mapping) or not all(
            isinstance(part, Mapping) for part in (*state_dict["param_groups"], *state_dict["state"].values())
        ):
            raise TypeError(f"{title}: expected mappings for the groups and for the state of each parameter")
        if not all("params" in group for group in state_dict["param_groups"]):
            raise ValueError(f"{title}: expected 'params' in every group")
        groups, params = state_dict["param_groups"], [p for g in self.param_groups for p in g["params"]]
        expected, got = ([len(g["params"]) for g in gs] for gs in (self.param_groups, groups))
        if expected != got:
            raise ValueError(f"{title}: expected groups with these numbers of parameters: {expected}, got {got}")
        for i, group in enumerate(groups):
            if group.keys() != self.param_groups[i].keys():
                raise ValueError(
                    f"{title}: expected the options {sorted(self.defaults)} in group {i}, got "
                    f"{sorted(group.keys() - {'params'})}: is it that of another kind of optimizer?"
                )
            self.check(group)
        numbers = [number for group in groups for number in group["params"]]
        if unknown := sorted(set(state_dict["state"]) - set(numbers)):
            raise ValueError(f"{title}: expected state of the parameters {numbers}, got that of {unknown}")
        state = {}
        for number, p in zip(numbers, params, strict=True):
            if number not in state_dict["state"]:
                continue
            state[p] = State(p.device, p._data.dtype, state_dict["state"][number])
            for key, value in state[p].items():
                if hasattr(value, "shape"):
                    value = asarray(value, device=None if isinstance(value, Tensor) else "cpu", copy=True)
                    if value.shape != p.shape:
                        raise ValueError(
                            f"{title}: expected {key!r} of parameter {number} of shape {p.shape}, got {value.shape}"
                        )
                    state[p][key] = astype(value.detach().to(p.device), p.dtype)._data
            if state[p] and (missing := self.remembered - state[p].keys()):
                raise ValueError(f"{title}: expected {sorted(missing)} in the state of parameter {number}, got none")
        options = [{**group, "params": mine["params"]} for mine, group in zip(self.param_groups, groups, strict=True)]
        at_once(
            (setattr, self, "_apart", state),
            (setattr, self, "_laid", {}),
            *[(mine.update, new) for mine, new in zip(self.param_groups, options, strict=True)],
        )

    def __repr__(self) -> str:
        groups = (
            ", ".join(f"{key}={value}" for key, value in group.items() if key != "params")
            + f", {len(group['params'])} parameters"
            for group in self.param_groups
        )
        return "\n".join(f"{type(self).__name__}({group})" for group in groups)


_LEAF = attrgetter("_leaf")


class _Laid(NamedTuple):
    """How the parameters of a group lie: which they are, those side by side, and those that never had a gradient."""

    ids: list[int]
    flats: list[Flat]
    waiting: list[Tensor]

    def holds(self) -> bool:
        """Return whether they still lie so, and those side by side all have a gradient, or none."""
        together = all(flat.intact() and flat.even() for flat in self.flats)
        return together and not any(map(_LEAF, self.waiting))

    def states(self) -> dict[Tensor, State]:
        """Return what is remembered of each that was updated."""
        stepped = (flat for flat in self.flats if flat.stepped)
        return {p: state for flat in stepped for p, state in zip(flat.params, flat.states(), strict=True)}


def _listed(name: str, params: Any) -> list[Any]:
    if isinstance(params, (Tensor, Mapping, str)) or not isinstance(params, Iterable):
        raise TypeError(
            f"{name}: expected an iterable of tensors or of groups, such as model.parameters(), got "
            f"{type(params).__name__}"
        )
    return list(params)


def check_range(name: str, option: str, value: Any, below: float = float("inf")) -> None:
    """Raise a ValueError unless an option is a number from 0 up to `below`, which is left out."""
    try:
        good = 0 <= float(value) < below
    except (TypeError, ValueError):
        good = False
    if not good:
        limit = "" if below == float("inf") else f" below {below:g}"
        raise ValueError(f"{name}: expected {option} to be a number of 0 or more{limit}, got {shown(value)}")
