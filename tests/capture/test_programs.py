"""The programs of captured steps: which one is used, how many are kept, and what they cost.

Counts of calls, traces and bytes are compared with bounds and with the eager step.
"""

from __future__ import annotations

import gc
import itertools
import sys
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import xgrad
from capture import twins
from capture.twins import (
    Capture,
    array,
    batch,
    compare,
    compare_replays,
    eager,
    everything,
    training,
)
from xgrad import nn, optim
from xgrad.capture import CaptureWarning
from xgrad.capture.proxies import Proxy as TracedArray
from xgrad.nn import functional
from xgrad_numpy.native import rule_kernels, update_kernels

pytestmark = twins.on_cpu

# Choice of the program


@pytest.mark.parametrize("inside", [False, True], ids=["updated outside", "updated inside"])
def test_gradients_accumulated_over_four_steps_take_few_traces(inside: bool) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, _ = training(eager)

        @capture
        def step(x: Any, y: Any, last: bool) -> Any:
            loss = functional.cross_entropy(model(x), y) / 4
            loss.backward()
            if last and inside:
                optimizer.step()
                optimizer.zero_grad()
            return loss

        for i in range(40):
            yield step(*batch(i), i % 4 == 3)
            if i % 4 == 3 and not inside:
                optimizer.step()
                optimizer.zero_grad()
            yield everything(model, optimizer)

    (captured,) = compare(scenario)
    assert captured.refusal is None and captured.recordings <= 7


def test_trace_beyond_the_limit_is_made_after_20_replays_and_replaces_the_least_recent() -> None:
    step = xgrad.capture(lambda x: x * 2 + 1, limit=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 30):
            assert step(xgrad.ones(n)).tolist() == [3] * n
        assert step.recordings == 2 and len(caught) == 1
        for _ in range(20):
            step(xgrad.ones(2))
        for n in (40, 40, 41):
            assert step(xgrad.ones(n)).tolist() == [3] * n
        assert step.recordings == 3 and len(caught) == 1
        # the program of 1 has gone
        assert step(xgrad.ones(2)).tolist() == [3, 3] and step.recordings == 3
    assert caught[0].category is CaptureWarning and "test_programs.py:" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert step.refusal is None and step.program().count("program  ") == 2


# Cost of a recording


def calls_of(run: Callable[[], Any]) -> int:
    """Return how many Python functions are called."""
    events: list[str] = []
    sys.setprofile(lambda frame, event, arg: events.append(event))
    try:
        run()
    finally:
        sys.setprofile(None)
    return events.count("call")


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_recording_makes_calls_in_proportion_to_the_layers(make: Any) -> None:
    counts = []
    for n in (100, 200, 400):
        model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(n)])
        step = twins.training_step(model, make(model.parameters(), lr=0.01))
        x, y = array(4, 2), xgrad.zeros(4, dtype=xgrad.int64)
        step(x, y)
        captured = xgrad.capture(step)

        def call(captured: Any = captured, given: Any = (x, y)) -> Any:
            return captured(*given)

        counts.append(calls_of(call))
        assert captured.recordings == 1 and captured.refusal is None
    assert all(larger <= 2.3 * smaller for smaller, larger in itertools.pairwise(counts)), counts


# Memory


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize("look", [False, True], ids=["unseen", "seen"])
@pytest.mark.filterwarnings(
    "ignore:capture. native=True:xgrad.capture.CaptureWarning"
)  # without a compiler
def test_1000_replays_leave_memory_flat_and_no_cycles(look: bool, native: bool) -> None:
    model, optimizer, step = training(partial(xgrad.capture, native=native))
    data, objects, bytes_ = batch(0), [], []
    tracemalloc.start(1)
    try:
        for i in range(1200):
            step(*data)
            if look:
                assert len(list(xgrad.support.trees.leaves(everything(model, optimizer)))) > 8
            if i in (100, 200, 1199):
                assert i == 100 or gc.collect() == 0
                gc.collect()
                objects.append(len(gc.get_objects()))
                bytes_.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert objects[2] - objects[1] < 20 and bytes_[2] - bytes_[1] < 4000
    assert step.refusal is None and step.recordings <= 2


def peak_of(run: Callable[[], Any]) -> int:
    """Return the largest amount of memory that a call takes besides what was there before."""
    run()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    run()
    return tracemalloc.get_traced_memory()[1] - before


NETWORKS = {
    (2, 16, 16, 2): 32,
    (784, 128, 10): 32,
    (784, 256, 128, 10): 128,
    (784, 1024, 1024, 10): 256,
}


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
@pytest.mark.parametrize("widths", NETWORKS)
def test_replay_takes_at_most_the_memory_of_the_eager_step(
    widths: tuple[int, ...], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only NumPy computes: compiled rules and updates of eager mode need no temporaries."""
    monkeypatch.setattr(update_kernels, "update", lambda *_: (False, None))
    monkeypatch.setattr(rule_kernels, "loaded_runtime", lambda: None)
    rows = NETWORKS[widths]
    layers = [m for n, k in itertools.pairwise(widths) for m in (nn.Linear(n, k), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    step = twins.training_step(model, make(model.parameters(), lr=0.1))
    captured = xgrad.capture(step)
    data = (array(rows, widths[0]), xgrad.zeros(rows, dtype=xgrad.int64))
    for run in (step, captured, captured, captured):
        run(*data)
    tracemalloc.start(1)
    try:
        eager_peak, peak = peak_of(lambda: step(*data)), peak_of(lambda: captured(*data))
    finally:
        tracemalloc.stop()
    assert captured.recordings == 1
    buffers = sum(program.executor.nbytes for program in captured._programs.values())
    assert peak + buffers <= eager_peak + 4096  # of Python objects, and a buffer of NumPy's sums


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("calls", [1, 2, 4])
def test_dropped_step_frees_its_programs_and_leaves_parameters_where_they_are(calls: int) -> None:
    model, optimizer, step = training(eager)
    step(*batch(0))
    places = [p._data.ctypes.data for p in model.parameters()]
    captured = xgrad.capture(step)
    for i in range(calls):
        captured(*batch(i))
    assert captured.recordings == 1
    watched = [weakref.ref(y) for x in captured._programs.values() for y in (x, x.executor)]
    del captured
    step(*batch(0))
    assert [p._data.ctypes.data for p in model.parameters()] == places
    watched += [weakref.ref(x) for x in (*model.parameters(), optimizer)]
    del model, optimizer, step
    gc.collect()
    assert [x() for x in watched if x() is not None] == []


def test_detached_parameter_and_array_follow_replays_as_eager_steps() -> None:
    def scenario(capture: Any) -> Iterator[Any]:
        model, optimizer, step = training(capture)
        p = next(model.parameters())
        held, first = p.detach(), p.detach().cpu().numpy()
        for i in range(8):
            if i == 4:
                held[0, :] = 0.5
                p.data *= 0.5
            yield step(*batch(i)), held, p.detach(), first, everything(model, optimizer)
            assert held.tolist() == p.tolist() == first.tolist()

    compare_replays(scenario)


def test_parameter_that_the_step_detached_has_its_new_value_after_the_update() -> None:
    def scenario(capture: Any) -> Iterator[Any]:
        model, optimizer, _ = training(eager)
        p = next(model.parameters())

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            before, copy, row = p.detach(), p.detach().clone(), p[0, :].detach()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            return before.sum(), copy.sum(), row * 2, (before - copy).sum(), p.detach()

        captured = capture(step)
        for i in range(6):
            results = captured(*batch(i))
            yield results, everything(model, optimizer)
            assert results[-1].tolist() == p.tolist()

    compare_replays(scenario)


def test_graph_from_before_a_replay_is_refused() -> None:
    model, _, step = training(xgrad.capture)
    for i in range(4):
        step(*batch(i))
    x = xgrad.ones(next(model.parameters()).shape, requires_grad=True)
    y = (x * next(model.parameters()).detach()).sum()
    step(*batch(0))
    with pytest.raises(RuntimeError, match="multiply needs the value that its 'x2'"):
        y.backward()


def test_program_of_parameters_packed_anew_is_freed_and_traced_arrays_are_not_kept() -> None:
    before = {id(x) for x in gc.get_objects() if type(x) is TracedArray}
    _, optimizer, step = training(xgrad.capture)
    for i in range(4):
        step(*batch(i))
    former = [weakref.ref(flat) for flat in optimizer.flats()]
    optimizer.add_param_group({"params": [array(2).requires_grad_()]})
    for i in range(6):
        step(*batch(i))
    gc.collect()
    kept = [flat() for flat in former if flat() is not None]
    assert former and [x for x in kept if all(x is not flat for flat in optimizer.flats())] == []
    assert [x for x in gc.get_objects() if type(x) is TracedArray and id(x) not in before] == []


@pytest.mark.filterwarnings("ignore:.*programs were traced:xgrad.capture.CaptureWarning")
def test_programs_beyond_the_limit_are_freed() -> None:
    step, programs = xgrad.capture(lambda x: xgrad.tanh(x) * 2 + 1, limit=3), []
    for n in range(1, 20):
        for _ in range(21):
            step(array(n))
        programs += [weakref.ref(program) for program in step._programs.values()]
    gc.collect()
    assert len({id(x()) for x in programs if x() is not None}) == 3


def test_write_that_is_not_recorded_raises_where_memory_is_locked() -> None:
    w = array(3)

    @xgrad.capture
    def step(x: Any) -> Any:
        y = x * w
        w._data[...] = 7
        return y

    with pytest.raises(ValueError, match="read-only"):
        step(array(3))
    w._data[...] = 7  # locked within the step only
    assert w.tolist() == [7, 7, 7]
