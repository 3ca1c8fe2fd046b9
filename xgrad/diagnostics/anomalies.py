"""Detection of anomalies: the first NaN or infinity of a computation, its op and its line."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from xgrad.backend.device import Device, intercepting
from xgrad.backend.recording import refuse
from xgrad.core.graph import Edge
from xgrad.core.op import Op
from xgrad.core.tensor import Tensor, from_array
from xgrad.diagnostics.interception import RuleInterceptor, WatchedRule
from xgrad.support.scopes import Mode, Scope
from xgrad.support.user_code import is_of_library, line_of, user_frame

#: The number of results that are checked together where reading a value waits for the device.
_GROUP = 64


class detect_anomaly(Mode[Any]):
    """Raise an error at the first NaN or infinity of an op or a derivative.

    Use it in a ``with`` block or as a decorator of a function.

    The error names the op, the arguments that have such values, tensors by their variables and
    parameters, and the line of code; for a derivative, the line that called the op. Captured steps
    run eagerly in the block. Where reading a value waits for the device, as on CUDA, results are
    checked in groups, and the error comes up to 64 ops later. The setting belongs to the thread or
    task that made it.

    Parameters
    ----------
    check_inf : bool, default True
        Whether infinities are anomalies, beside NaN. None are those that an op is given
        as a number, as for a mask, and those that come from them.

    Raises
    ------
    FloatingPointError
        In the block, at the first anomaly.

    Examples
    --------
    >>> import xgrad
    >>> with xgrad.autograd.detect_anomaly():
    ...     xgrad.log(xgrad.asarray([1.0, 0.0]))
    Traceback (most recent call last):
        ...
    FloatingPointError: log: infinity in 1 of 2 elements of the result of shape (2,),
    float32 on cpu, at example.py:3: x of shape (2,) is finite
    """

    def __init__(self, check_inf: bool = True) -> None:
        self._check_inf = check_inf
        super().__init__(intercepting, None)

    def __enter__(self) -> Any:
        refuse("detect_anomaly reads values: use it around the captured step")
        self._value = Anomalies(self._check_inf)
        return super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        if not exc or exc[0] is None:
            self._value.flush()

    def _recreate_cm(self) -> detect_anomaly:
        return detect_anomaly(self._check_inf)


def set_detect_anomaly(mode: bool, check_inf: bool = True) -> None:
    """Start or stop the detection of anomalies in this thread or task: see `detect_anomaly`.

    Parameters
    ----------
    mode : bool
        Whether to detect anomalies from now on.
    check_inf : bool, default True
        Whether infinities are anomalies.

    Examples
    --------
    >>> import xgrad
    >>> xgrad.autograd.set_detect_anomaly(True)
    >>> xgrad.autograd.set_detect_anomaly(False)
    """
    current = intercepting.get()
    if isinstance(current, Anomalies):
        intercepting.set(current.outer)
        current.flush()
    if mode:
        intercepting.set(Anomalies(check_inf))


class Check(NamedTuple):
    """A result to check: whether it is good, on the device, and what to say of it."""

    good: Any
    result: Tensor
    op: Op
    place: str  # what the result is of the op, such as "the gradient of x"
    line: str
    # what it was computed from: arguments, or the gradient of the op's result
    sources: list[tuple[str, Any]]
    edge: Edge | None = None  # that the result is the gradient of


class Anomalies(RuleInterceptor):
    """An interceptor that checks the results of ops, and of the rules of the nodes they record."""

    def __init__(self, check_inf: bool) -> None:
        self.outer, self.check_inf = intercepting.get(), check_inf
        self.pending: list[Check] = []
        # tensors with infinities, by id
        self.intended: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        # the frame around a running rule, and the line of its op
        self.rule: tuple[FrameType, str] | None = None

    def intercept(self, function: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function, and check its results."""
        # what NumPy warns of is an error here
        with (
            Scope(intercepting, self.outer),
            np.errstate(all="ignore"),
        ):
            result = function(*inputs, **options)
            line, sources = self.line(), [*function.named(inputs), *options.items()]
            parts = result if type(result) is tuple else (result,)
            for i, x in enumerate(parts):
                self.watch(x._edge, line)
                place = "the result" if len(parts) == 1 else f"result {i}"
                self.check(x, function, place, line, sources)
        return result

    def line(self) -> str:
        """Return the line of the user's code that called an op.

        For an op in a derivative rule it is the line that called the op of the rule.
        """
        frame = user_frame()[0]
        return self.rule[1] if self.rule is not None and frame is self.rule[0] else line_of(frame)

    def check(self, x: Tensor, *about: Any) -> None:
        """Check a tensor, now or in a group: `about` are the other parts of a `Check`."""
        while isinstance(inner := getattr(x._data, "tensor", None), Tensor):  # of a vmap
            x = inner
        device, xp = x.device, x.device.xp
        if not x._placement.floating:
            return
        if self.pending and self.pending[0].result.device is not device:
            self.flush()
        with device.active():
            good = xp.all(xp.isfinite(x._data)) if self.check_inf else ~xp.any(xp.isnan(x._data))
        self.pending.append(Check(good, x, *about))
        if len(self.pending) >= (_GROUP if device.backend.asynchronous else 1):
            self.flush()

    def flush(self) -> None:
        """Read the outcomes of the checks, and raise FloatingPointError for the first bad one."""
        checks, self.pending = self.pending, []
        if not checks:
            return
        device, outcomes = checks[0].result.device, [check.good for check in checks]
        if len(checks) > 1:
            with device.active():
                outcomes = device.backend.to_host(device.xp.stack(outcomes)).tolist()
        for good, check in zip(outcomes, checks, strict=True):
            if not bool(good) and not self.is_intended(check):
                raise FloatingPointError(_message(check))

    def is_intended(self, check: Check) -> bool:
        """Return whether a result has no NaN, and its infinities come from a given number."""
        values = [value for _, value in check.sources]
        given = any(
            (type(x) is float and math.isinf(x)) or self.intended.get(id(x)) is x for x in values
        )
        if not given or "NaN" in _kinds(check.result):
            return False
        self.intended[id(check.result)] = check.result
        return True

    def run_rule(self, watched: WatchedRule, g: Any, xp: Any, saved: Any, into: Any) -> Any:
        """Run a derivative rule, and check the gradients that it returns."""
        op, line, device, first, index, rule = watched
        line = line or "a line before detect_anomaly"
        outer, self.rule = self.rule, (user_frame()[0], f"{line}, in its derivative of {op.name}")
        try:
            with np.errstate(all="ignore"):
                result = rule(g, xp, saved, into)
        finally:
            self.rule = outer
        several = isinstance(result, (tuple, list))
        edges: Any = saved[first:] if len(saved) > first else ()  # none in a recorded pass
        arrived = [("the gradient of its result", x) for x in (g if isinstance(g, tuple) else (g,))]
        sources = [(name, _tensor(x, device)) for name, x in arrived]
        for i, x in enumerate(result if several else (result,), 0 if several else index - first):
            edge = edges[i] if i < len(edges) else None
            # the engine refuses what is no gradient
            if not hasattr(x, "dtype") or (edges and edge is None):
                continue
            name = (
                op.inputs[i] if i < len(op.inputs) and not op.variadic else f"{op.inputs[0]}[{i}]"
            )
            gradient = _tensor(x, device if edge is None else edge.placement.device)
            self.check(gradient, op, f"the gradient of {name}", line, sources, edge)
        return result

    def after_backward(self) -> None:
        """Read the outcomes of the checks in a backward pass."""
        self.flush()


def _tensor(x: Any, device: Device) -> Tensor:
    return (
        x
        if isinstance(x, Tensor)
        else from_array(x if type(x) is device.array_type else device.as_array(x), device)
    )


# Messages


def _message(check: Check) -> str:
    """Return the message about a bad result."""
    x, op = check.result, check.op.name
    host = x.device.backend.to_host(x._data)
    count = (
        f"{np.count_nonzero(~np.isfinite(host))} of {host.size} elements"
        if host.size > 1
        else "the only element"
    )
    sources = [
        f"{_described(name, value)}"
        f" {'has ' + ' and '.join(kinds) if (kinds := _kinds(value)) else 'is finite'}"
        for name, value in check.sources
        if isinstance(value, Tensor)
    ]
    place = f"{_described(check.place, x, check.edge)}, {x.dtype} on {x.device}"
    return (
        f"{op}: {' and '.join(_kinds(x))} in {count} of {place}, at {check.line}:"
        f" {', '.join(sources)}"
    )


def _kinds(x: Tensor) -> list[str]:
    """Return the kinds of anomalies in a tensor."""
    while isinstance(inner := getattr(x._data, "tensor", None), Tensor):  # of a vmap
        x = inner
    host = x.device.backend.to_host(x._data)
    kinds = {"NaN": np.isnan, "infinity": np.isinf} if x._placement.floating else {}
    return [kind for kind, test in kinds.items() if test(host).any()]


def _described(name: str, x: Tensor, edge: Edge | None = None) -> str:
    """Return a name with the variable and the shape of a tensor."""
    variable = next(_variables(x, edge or x._edge), None)
    return f"{name} of shape {x.shape}{'' if variable is None else f' ({variable})'}"


def _variables(x: Tensor, edge: Edge | None) -> Iterator[str]:
    """Yield the names of a tensor: the callers' variables, then parameters of modules in them."""
    frames: list[dict[str, Any]] = []
    frame: FrameType | None = user_frame()[0]
    while frame is not None:
        if not is_of_library(frame):
            frames.append(dict(frame.f_locals))
        frame = frame.f_back

    def matches(value: Any) -> bool:
        return isinstance(value, Tensor) and (
            value._data is x._data or (edge is not None and value._edge is edge)
        )

    for variables in frames:
        yield from (name for name, value in variables.items() if matches(value))
        for name, value in variables.items():
            if isinstance(value, dict):
                yield from (
                    f"{name}[{key!r}]" for key, part in list(value.items()) if matches(part)
                )
    module = getattr(sys.modules.get("xgrad.nn"), "Module", ())
    for variables in reversed(frames):
        for name, value in variables.items():
            if isinstance(value, module):
                tensors = (*value.named_parameters(), *value.named_buffers())
                yield from (f"{name}.{path}" for path, part in tensors if matches(part))
