"""A differential equation with its arguments, checked, and its options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xgrad import ops
from xgrad.backend.recording import check_true
from xgrad.core.arguments import as_int, as_number
from xgrad.core.tensor import Tensor
from xgrad.integration.methods import METHODS
from xgrad.support.hints import shown
from xgrad.support.trees import leaves, matched, rebuild

States = list[Tensor]

#: The options of adaptive methods and of those with a fixed step.
_OPTIONS = {True: ("first_step", "max_num_steps"), False: ("steps",)}
#: By default, relative and absolute tolerances for the sizes of dtypes in bytes.
_TOLERANCES = {8: (1e-7, 1e-9), 4: (1e-5, 1e-6), 2: (1e-2, 1e-3)}


class Problem:
    """An equation of states that are lists of tensors, and how to solve it.

    Attributes
    ----------
    states : list of Tensor
        The leaves of the initial state, of one dtype and device.
    times : Tensor
        Of shape (n,), in the real dtype of the states.
    args : tuple
        Further arguments of the function.
    """

    def __init__(
        self,
        title: str,
        f: Callable[..., Any],
        y0: Any,
        t: Any,
        args: Any,
        rtol: float | None,
        atol: float | None,
        method: str,
        options: Any,
    ) -> None:
        self.title = title
        if not callable(f):
            raise TypeError(
                f"{title}: expected a function of t and y, got {type(f).__name__}: write"
                f" xgrad.{title}(f, y0, t)"
            )
        if not isinstance(args, (tuple, list)):
            raise TypeError(
                f"{title}: expected a tuple of further arguments of the function for args, got"
                f" {type(args).__name__}: write args=(x,)"
            )
        self.f, self.containers, self.args = f, y0, tuple(args)
        self.states = _states(title, y0)
        self.times = _times(title, t, self.states[0])
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(
                f"{title}: expected a method of {', '.join(METHODS)}, got {shown(method)}"
            )
        self.name, self.method = method, METHODS[method]
        self._set_options({} if options is None else options)
        size = self.times.element_size()
        tolerances = (("rtol", rtol, 0), ("atol", atol, 1))
        self.rtol, self.atol = (
            _TOLERANCES[size][i] if x is None else _positive(title, name, x)
            for name, x, i in tolerances
        )

    def _set_options(self, options: Any) -> None:
        known = _OPTIONS[bool(self.method.error)]
        if not isinstance(options, dict) or set(options) - set(known):
            raise ValueError(
                f"{self.title}: expected options among {', '.join(known)} for {self.name}, got"
                f" {shown(options)}"
            )
        first = options.get("first_step")
        self.first_step = None if first is None else _positive(self.title, "first_step", first)
        self.max_num_steps = self._count(options, "max_num_steps", 100_000)
        self.steps = self._count(options, "steps", 1)

    def _count(self, options: dict[str, Any], name: str, default: int) -> int:
        count = as_int(self.title, name, options.get(name, default))
        if count < 1:
            raise ValueError(f"{self.title}: expected {name} of 1 or more, got {count}")
        return count

    def slopes(self, t: Tensor, states: Sequence[Tensor]) -> States:
        """Return the value of the function, checked."""
        value = self.f(t, rebuild(self.containers, states), *self.args)
        result = []
        pairs = matched(f"{self.title}: the function's result", self.containers, value)
        for state, (path, _, x) in zip(states, pairs, strict=True):
            if not isinstance(x, Tensor):
                raise TypeError(
                    f"{self.title}: expected a tensor of the function{path}, got"
                    f" {type(x).__name__}: it returns dy/dt in the containers of y"
                )
            if (x.shape, x.dtype) != (state.shape, state.dtype):
                raise ValueError(
                    f"{self.title}: expected dy/dt{path} of shape {state.shape}, {state.dtype}, as"
                    f" y, got shape {x.shape}, {x.dtype}"
                )
            result.append(x)
        return result


def _states(title: str, y0: Any) -> States:
    states: States = []
    for path, x in leaves(y0):
        if isinstance(x, (bool, int, float, complex)) or not hasattr(x, "dtype"):
            raise TypeError(f"{title}: expected a tensor for y0{path}, got {type(x).__name__}")
        tensor = x if isinstance(x, Tensor) else ops.asarray(x, copy=True)
        if tensor.dtype.kind not in "fc":
            raise TypeError(
                f"{title}: expected floating numbers for y0{path}, got {tensor.dtype}: use"
                " .astype(xgrad.float32)"
            )
        states.append(tensor)
    if not states:
        raise ValueError(f"{title}: expected a tensor or containers of them for y0, got none")
    kinds = {(str(x.dtype), str(x.device)) for x in states}
    if len(kinds) > 1:
        raise ValueError(
            f"{title}: expected tensors of one dtype and device in y0, got {sorted(kinds)}"
        )
    return states


def _times(title: str, t: Any, state: Tensor) -> Tensor:
    dtype = ops.abs(state.detach()).dtype if state.dtype.kind == "c" else state.dtype
    if not isinstance(t, Tensor):
        if not hasattr(t, "__array__") and not isinstance(t, Iterable):
            raise TypeError(f"{title}: expected times in a tensor or a list for t, got {shown(t)}")
        t = ops.asarray(t, dtype=dtype, device=state.device)
    if t.dtype.kind not in "fiu" or t.ndim != 1 or not t.shape[0]:
        raise ValueError(
            f"{title}: expected real times of shape (n,) for t, got {t.dtype} of shape {t.shape}"
        )
    times: Tensor = t if t.dtype == dtype else t.astype(dtype)
    steps = times.detach()[1:] - times.detach()[:-1]
    monotonic = ops.all(steps > 0) | ops.all(steps < 0)
    monotonic = monotonic & ops.all(ops.isfinite(times.detach()))
    backend = times.device.backend
    if not backend.asynchronous and not check_true(times.device, monotonic._data):
        raise ValueError(
            f"{title}: expected finite times that increase or decrease for t, got others"
        )
    return times


def _positive(title: str, name: str, value: Any) -> float:
    number = float(as_number(title, name, value))
    if not 0 < number < math.inf:
        raise ValueError(f"{title}: expected {name} above 0, got {value}")
    return number
