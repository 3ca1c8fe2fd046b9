"""Profiles: time and memory of ops and their derivative rules, by op and by line of code."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from linecache import getline
from pathlib import Path
from time import perf_counter
from typing import Any

from xgrad.backend.device import Device, intercepting
from xgrad.backend.devices import current_device, device_of
from xgrad.backend.recording import refuse
from xgrad.core.modes import enable_grad
from xgrad.core.tensor import Tensor, from_array
from xgrad.diagnostics.interception import RuleInterceptor, WatchedRule
from xgrad.support.scopes import Scope
from xgrad.support.units import duration, size
from xgrad.support.user_code import line_of, user_frame

FORWARD, BACKWARD = "forward", "backward"
EARLIER = "before the profile"  # used in place of a line


class profile(Scope[Any]):
    """Measure time and memory of ops and of their derivative rules, in a ``with`` block.

    The result is printed as a table, and has ``by_op()``, ``by_line()``, ``chrome_trace()``,
    ``events`` and ``seconds``. The time of a derivative belongs to the line that called the op.
    Captured steps run eagerly in the block. Anything else counts as "outside of ops": sums of
    gradients, updates of optimizers, Python itself. On a device with a queue, such as CUDA, the
    time on the device is also measured, by events. The setting applies to the thread or task that
    made it. The first profile opens the device and loads what it needs before the block. An op
    whose call loads a module, as the first one of ``gelu`` loads SciPy, has a star in the table.

    Examples
    --------
    >>> import xgrad
    >>> x = xgrad.ones((100, 100), requires_grad=True)
    >>> with xgrad.profile() as prof:
    ...     (x @ x).sum().backward()
    >>> prof.by_op()["matmul"].calls, prof.by_op()["matmul"].memory
    ({'forward': 1, 'backward': 2}, 120000)
    """

    def __init__(self) -> None:
        super().__init__(intercepting, None)

    def __enter__(self) -> Any:
        refuse("profile reads a clock: use it around the captured step")
        _warm_up(current_device())
        self._value = Profile()
        return super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._value.finish()


@dataclass(eq=False)
class Event:
    """A call of an op or of a derivative rule, with times in seconds from the start of the profile.

    Attributes
    ----------
    op, part, line : str
        The name of the op; "forward" or "backward"; the line of code that called the op, as
        ``file:line``.
    device : Device
        The device.
    start, seconds, inner : float
        The start, the time on the host, and the part of that time that is spent in nested events.
    memory : int
        The bytes of results other than views.
    shapes : str
        The shapes of the results.
    marks : list
        Marks in the queue of an asynchronous device, before and after the call.
    on_device : float
        The time on an asynchronous device, from mark to mark.
    loaded : int
        The number of modules that the call loaded, without nested events: the time includes that.
    """

    op: str
    part: str
    line: str
    device: Device
    start: float = 0.0
    seconds: float = 0.0
    inner: float = 0.0
    memory: int = 0
    shapes: str = ""
    marks: list[Any] = field(default_factory=list)
    on_device: float = 0.0
    loaded: int = 0


@dataclass
class Row:
    """Sums over events: calls and seconds by part, bytes, seconds on the device, loaded modules.

    Seconds exclude nested events.
    """

    calls: dict[str, int] = field(default_factory=lambda: {FORWARD: 0, BACKWARD: 0})
    seconds: dict[str, float] = field(default_factory=lambda: {FORWARD: 0.0, BACKWARD: 0.0})
    memory: int = 0
    on_device: float = 0.0
    loaded: int = 0

    @property
    def total(self) -> float:
        """The seconds of both parts."""
        return sum(self.seconds.values())


class Profile(RuleInterceptor):
    """The result of `profile`.

    `events` are in the order of their ends. `seconds` is the time of the block, including `own`,
    the time of the profile itself.
    """

    def __init__(self) -> None:
        self.outer = intercepting.get()
        self.events = list[Event]()
        self.seconds = 0.0
        self.own = 0.0
        self._running: list[Event] = []
        self._start = perf_counter()

    def __repr__(self) -> str:
        return f"{self._table('op', self.by_op())}\n\n{self._table('line', self.by_line())}"

    def by_op(self) -> dict[str, Row]:
        """Return the sums for each op, longest time first."""
        return self._rows(lambda event: event.op)

    def by_line(self) -> dict[str, Row]:
        """Return the sums for each line of code, as ``file:line``, longest time first."""
        return self._rows(lambda event: event.line)

    def chrome_trace(self) -> str:
        """Return the events as JSON for trace viewers, with a track for each device.

        Viewers are ``chrome://tracing`` and https://ui.perfetto.dev.
        """
        tracks = {"host": 0} | {str(event.device): 0 for event in self.events if event.marks}
        tracks = {name: i for i, name in enumerate(tracks)}
        entries: list[dict[str, Any]] = [
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": i, "args": {"name": name}}
            for name, i in tracks.items()
        ]
        first: dict[Device, Any] = {}
        for event in sorted(self.events, key=lambda event: event.start):
            about = {"line": event.line, "shapes": event.shapes, "bytes": event.memory}
            name = event.op if event.part == FORWARD else f"{event.op} {BACKWARD}"
            entry = {"name": name, "cat": event.part, "ph": "X", "pid": 0, "args": about}
            entries.append(entry | {"tid": 0, "ts": 1e6 * event.start, "dur": 1e6 * event.seconds})
            if event.marks:
                device = event.device
                begin = device.backend.elapsed(
                    first.setdefault(device, event.marks[0]), event.marks[0]
                )
                times = {
                    "tid": tracks[str(device)],
                    "ts": 1e6 * begin,
                    "dur": 1e6 * event.on_device,
                }
                entries.append(entry | times)
        return json.dumps({"traceEvents": entries, "displayTimeUnit": "ms"})

    def _rows(self, key: Callable[[Event], str]) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for event in self.events:
            row = rows.setdefault(key(event), Row())
            row.calls[event.part] += 1
            row.seconds[event.part] += event.seconds - event.inner
            row.memory += event.memory
            row.on_device += event.on_device
            row.loaded += event.loaded
        return dict(sorted(rows.items(), key=lambda item: -max(item[1].total, item[1].on_device)))

    def _table(self, title: str, rows: dict[str, Row]) -> str:
        queued, whole = any(event.marks for event in self.events), self.seconds or 1.0
        lines = [
            [
                title,
                "calls",
                FORWARD,
                "calls",
                BACKWARD,
                "total",
                "%",
                "memory",
                "on device" * queued,
                "",
            ]
        ]
        for name, row in rows.items():
            shown, code = _location(name) if title == "line" else (name, "")
            cells = [f"{shown} *" if row.loaded else shown]
            for part, calls in row.calls.items():
                cells += [str(calls), duration(row.seconds[part])] if calls else ["", ""]
            cells += [
                duration(row.total),
                f"{100 * row.total / whole:.1f}",
                size(row.memory) if row.memory else "",
            ]
            lines.append([*cells, duration(row.on_device) if queued else "", code])
        rest = self.seconds - self.own - sum(row.total for row in rows.values())
        for name, seconds in (
            ("outside of ops", rest),
            ("the profile itself", self.own),
            ("all", self.seconds),
        ):
            lines.append(
                [name, *[""] * 4, duration(seconds), f"{100 * seconds / whole:.1f}", "", "", ""]
            )
        columns = [column for column in zip(*lines, strict=True) if any(column)]
        widths = [max(map(len, column)) for column in columns]
        last = len(columns) - 1 if title == "line" else len(columns)
        form = "  ".join(
            [f"{{:{'>' if 0 < i < last else '<'}{width}}}" for i, width in enumerate(widths)]
        )
        table = "\n".join(form.format(*line).rstrip() for line in zip(*columns, strict=True))
        if any(row.loaded for row in rows.values()):
            table += "\n* with the time to load modules: profile again for the time without it"
        return table

    # Measurement

    def intercept(self, function: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function as an event, and watch the derivative rules of the node it records."""
        entered, tensors = perf_counter(), [x for x in inputs if isinstance(x, Tensor)]
        line = self._running[-1].line if self._running else line_of(user_frame()[0])

        def call() -> Any:
            with Scope(intercepting, self.outer):
                return function(*inputs, **options)

        return self._measured(
            entered, Event(function.name, FORWARD, line, tensors[0].device), tensors, call
        )

    def run_rule(self, watched: WatchedRule, g: Any, xp: Any, saved: Any, into: Any) -> Any:
        """Run a derivative rule as an event."""
        event = Event(watched.op.name, BACKWARD, watched.line or EARLIER, watched.device)
        inputs = [*(g if isinstance(g, tuple) else (g,)), into]
        return self._measured(
            perf_counter(), event, inputs, lambda: watched.rule(g, xp, saved, into)
        )

    def _measured(
        self, entered: float, event: Event, inputs: list[Any], call: Callable[[], Any]
    ) -> Any:
        """Return the result of a call, which is recorded as an event.

        The rest of the time since `entered` counts as the profile's own time.
        """
        self._running.append(event)
        self._mark(event)
        event.loaded -= len(sys.modules)
        event.start = perf_counter() - self._start
        try:
            try:
                result = call()
            finally:
                event.loaded += len(sys.modules)
                event.seconds = perf_counter() - self._start - event.start
                self._mark(event)
                self.events.append(self._running.pop())
                if self._running:
                    self._running[-1].loaded -= event.loaded
            results = [
                x
                for x in (result if isinstance(result, (tuple, list)) else (result,))
                if x is not None
            ]
            self._note(
                event,
                *[
                    [getattr(x, "_data", x) for x in xs if x is not None]
                    for xs in (results, inputs)
                ],
            )
            for x in results if event.part == FORWARD else ():
                self.watch(x._edge, event.line)
            return result
        finally:
            spent = perf_counter() - entered
            self.own, self.seconds = self.own + spent - event.seconds, perf_counter() - self._start
            if self._running:
                self._running[-1].inner += spent

    def _mark(self, event: Event) -> None:
        mark = event.device.backend.mark(event.device.index)
        event.marks += [mark] if mark is not None else []

    def _note(self, event: Event, results: list[Any], inputs: list[Any]) -> None:
        """Record the shapes and the memory of an event's results."""
        event.shapes = ", ".join(str(tuple(x.shape)) for x in results)
        for x in results:
            # the result is on another device, or a NumPy scalar
            moved = type(x) is not event.device.array_type
            backend = ((moved and device_of(x)) or event.device).backend
            if not any(
                y is x or (type(y) is type(x) and backend.shares_memory(y, x)) for y in inputs
            ):
                event.memory += math.prod(x.shape) * backend.numpy_dtype(x.dtype).itemsize

    def finish(self) -> None:
        """Wait for the devices, and read the marks in their queues."""
        for device in {event.device for event in self.events if event.marks}:
            device.synchronize()
        self.seconds = perf_counter() - self._start
        for event in self.events:
            if event.marks:
                event.on_device = event.device.backend.elapsed(*event.marks)


@cache
def _warm_up(device: Device) -> None:
    """Use a device and a profile once, so that no block has the time of their first use."""
    with Scope(intercepting, None), enable_grad():
        x = from_array(device.xp.ones((1,), device=device.native), device).requires_grad_()
        with Scope[Any](intercepting, Profile()):
            (x * x).sum().backward()


def _location(line: str) -> tuple[str, str]:
    """Return the file name and number of a line, without folders, and the code of the line."""
    file, _, number = line.rpartition(":")
    if not number.isdecimal():
        return line, ""
    code = getline(file, int(number)).strip()
    return f"{Path(file).name}:{number}", code if len(code) <= 40 else f"{code[:39]}…"
