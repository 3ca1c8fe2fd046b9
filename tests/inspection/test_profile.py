"""Profiles: counts, times and memory by op and by line, forward and backward.

Counts and bytes are compared with known ones, and results with those without a profile.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import function, leaf, run_threads
from xgrad import nn, optim
from xgrad.backend.device import Device
from xgrad.inspection.profile import EARLIER


def line_number(mark: str) -> str:
    """Return the line of this file that ends with a comment."""
    with open(__file__, encoding="utf-8") as file:
        lines = [i for i, line in enumerate(file, 1) if line.rstrip().endswith(f"# {mark}")]
    return f"{__file__}:{lines[0]}"


def test_every_op_is_listed_with_its_counts_lines_and_memory(device: str) -> None:
    x = xgrad.asarray(np.ones((4, 3), dtype=np.float32), device=device).requires_grad_()
    w = xgrad.asarray(np.ones((3, 2), dtype=np.float32), device=device).requires_grad_()
    with xgrad.profile() as prof:
        for _ in range(3):
            h = xgrad.tanh(x @ w)  # first line
            loss = xgrad.sum(h * h)  # second line
            xgrad.autograd.grad(loss, [x, w])
    ops = prof.by_op()
    calls = {name: tuple(row.calls.values()) for name, row in ops.items()}
    assert calls == {"matmul": (3, 6), "tanh": (3, 3), "multiply": (3, 6), "sum": (3, 3)}
    assert ops["tanh"].memory == 2 * 3 * 4 * 2 * 4
    lines = prof.by_line()
    assert {name: sum(row.calls.values()) for name, row in lines.items()} == {
        line_number("first line"): 3 + 6 + 3 + 3, line_number("second line"): 3 + 6 + 3 + 3
    }  # fmt: skip
    for rows in (ops, lines):
        assert 0 < sum(row.total for row in rows.values()) <= prof.seconds - prof.own < prof.seconds
        longest = [max(row.total, row.on_device) for row in rows.values()]
        assert longest == sorted(longest, reverse=True)
    assert sum(row.total for row in ops.values()) == pytest.approx(
        sum(row.total for row in lines.values())
    )


def test_results_are_those_without_a_profile_and_nothing_is_measured_after_it() -> None:
    def gradients() -> list[list[float]]:
        xgrad.manual_seed(0)
        net = nn.MLP([4, 5, 2])
        nn.functional.cross_entropy(net(xgrad.ones((3, 4))), xgrad.asarray([0, 1, 0])).backward()
        return [p.grad.tolist() for p in net.parameters() if p.grad is not None]

    with xgrad.profile() as prof:
        inside = gradients()
        late = leaf() * 2.0
    count = len(prof.events)
    assert inside == gradients() and count == len(prof.events) > 5
    late.sum().backward()
    assert count == len(prof.events)


def test_backward_pass_of_an_earlier_graph_is_measured_by_op() -> None:
    y = xgrad.exp(leaf()).sum()
    with xgrad.profile() as prof:
        y.backward()
    assert {name: tuple(row.calls.values()) for name, row in prof.by_op().items()} == {
        "sum": (0, 1),
        "exp": (0, 1),
    }
    assert list(prof.by_line()) == [EARLIER]


def test_graph_of_a_profile_is_checked_by_detect_anomaly() -> None:
    with xgrad.profile():
        y = xgrad.sqrt(leaf([0.0]))
    planted = r"sqrt: infinity .* the gradient of x .* at .*test_profile\.py:\d+"
    with pytest.raises(FloatingPointError, match=planted), xgrad.autograd.detect_anomaly():
        y.sum().backward()


def test_ops_within_derivative_rules_are_counted_once() -> None:
    x = leaf(2.0)
    with xgrad.profile() as prof:
        (slope,) = xgrad.autograd.grad(x**3.0, x, create_graph=True)
        slope.backward()
    rules = [event for event in prof.events if event.part == "backward" and event.inner]
    assert rules and all(event.inner <= event.seconds for event in rules)
    assert sum(row.total for row in prof.by_op().values()) <= prof.seconds - prof.own


def test_results_of_several_tensors_views_and_user_functions_are_listed() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    triple = function("Triple", lambda xp, x: 3 * x, lambda xp, g: 3 * g)
    with xgrad.profile() as prof:
        first, second = xgrad.unstack(triple(x).T)
        (first * second).sum().backward()
    ops = prof.by_op()
    assert {"Triple", "unstack", "matrix_transpose"} <= ops.keys()
    assert ops["matrix_transpose"].memory == 0 and ops["Triple"].memory == 2 * 16


def test_transfer_counts_the_copy_on_each_device(device: str) -> None:
    x = leaf([1.0, 2.0])
    with xgrad.profile() as prof:
        (3.0 * x).to(device).sum().backward()
    assert (
        "to_device" not in prof.by_op()
        if device == "cpu"
        else prof.by_op()["to_device"].memory == 16
    )


def test_captured_step_runs_eagerly_in_a_profile_and_replays_after_it() -> None:
    net = nn.Linear(3, 2)
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    @xgrad.capture
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = xgrad.ones((4, 3))
    for _ in range(3):
        step(x)
    traced = step.recordings
    with xgrad.profile() as prof:
        step(x)
    step(x)
    assert (
        prof.by_op()["linear"].calls == {"forward": 1, "backward": 2} and step.recordings == traced
    )


def test_profile_belongs_to_its_thread() -> None:
    with xgrad.profile() as prof:
        run_threads(lambda _: xgrad.exp(leaf()), [0, 1])
    assert not prof.events


def test_table_names_ops_and_lines_with_their_code() -> None:
    with xgrad.profile() as prof:
        xgrad.exp(leaf()).sum().backward()  # in the table
    text, time = repr(prof), r"[\d.]+ [mµ]?s"
    assert re.search(rf"^exp +1 +{time} +1 +{time} +{time} +[\d.]+ +16 B$", text, re.MULTILINE)
    line = (
        rf"^test_profile\.py:\d+ +2 +{time} +2 +{time} +{time} +[\d.]+ +\d+ B "
        r" xgrad\.exp\(leaf\(\)\)\.sum\(\)"
    )
    assert re.search(line, text, re.MULTILINE), text
    assert text.count("outside of ops") == 2 and "on device" not in text


def test_chrome_trace_has_an_entry_for_each_event() -> None:
    with xgrad.profile() as prof:
        xgrad.exp(leaf()).sum().backward()
    entries = json.loads(prof.chrome_trace())["traceEvents"]
    calls = [entry for entry in entries if entry["ph"] == "X"]
    assert Counter(e["name"] for e in calls) == {
        "exp": 1,
        "sum": 1,
        "sum backward": 1,
        "exp backward": 1,
    }
    assert all(
        e["dur"] >= 0 and 0 <= e["ts"] <= 1e6 * prof.seconds and {"pid", "tid"} <= e.keys()
        for e in calls
    )
    assert calls[0]["args"] == {"line": calls[0]["args"]["line"], "shapes": "(2,)", "bytes": 8}


def test_marks_in_the_queue_of_a_device_give_its_own_times(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, ticks = Device("cpu").backend, iter(range(100))
    monkeypatch.setattr(backend, "mark", lambda index: next(ticks), raising=False)
    monkeypatch.setattr(backend, "elapsed", lambda start, end: float(end - start), raising=False)
    with xgrad.profile() as prof:
        xgrad.exp(xgrad.ones(2))
        xgrad.sin(xgrad.ones(2))
    assert {name: row.on_device for name, row in prof.by_op().items()} == {"exp": 1.0, "sin": 1.0}
    assert repr(prof).splitlines()[0].endswith("memory  on device")
    entries = json.loads(prof.chrome_trace())["traceEvents"]
    assert [entry["args"]["name"] for entry in entries if entry["ph"] == "M"] == ["host", "cpu"]
    assert [(e["ts"], e["dur"]) for e in entries if e["tid"] == 1 and e["ph"] == "X"] == [
        (0.0, 1e6),
        (2e6, 1e6),
    ]


def test_event_of_an_error_is_closed() -> None:
    with pytest.raises(ValueError, match="reshape"), xgrad.profile() as prof:
        xgrad.reshape(xgrad.ones(3), (2,))
    assert [event.op for event in prof.events] == ["reshape"] and math.isfinite(prof.seconds)


def run_alone(code: str) -> str:
    """Return what a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_first_profile_loads_what_it_needs_before_its_block() -> None:
    code = (
        "import sys, xgrad\nwith xgrad.profile():\n    before = set(sys.modules)\n"
        "    (xgrad.ones(3, requires_grad=True) * 2).sum().backward()\n"
        "    print(sorted(set(sys.modules) - before))"
    )
    assert run_alone(code).strip() == "[]"


def test_op_whose_call_loads_modules_has_a_star_in_the_first_profile_only() -> None:
    pytest.importorskip("scipy")
    code = (
        "import xgrad\nx = xgrad.ones(3)\nfor _ in range(2):\n"
        "    with xgrad.profile() as prof:\n        xgrad.special.gammaln(x + 1)\n"
        "    print(prof)\n    print(prof.by_op()['gammaln'].loaded > 0, prof.by_op()['add'].loaded)"
    )
    first, second = run_alone(code).split("True 0\n")
    assert "\ngammaln *  " in first and "\n* with the time to load modules: profile again" in first
    assert "\ngammaln   " in second and " * " not in second and second.endswith("False 0\n")
