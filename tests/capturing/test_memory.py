"""What captured steps keep: nothing that grows, nothing after they are gone, nothing in cycles."""

import gc
import itertools
import tracemalloc
import weakref

import numpy as np
import pytest

import xgrad
from capturing.twins import array, batch, training
from xgrad import nn, optim

WAY = "planned at once"


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_100_000_replays_leave_memory_flat(no_collector):
    step = xgrad.capture(lambda x, y: (x * y + 1, x[:, 1:]))
    x, y = array(4, 3), array(3, seed=1)
    for _ in range(1000):
        step(x, y)
    before = len(gc.get_objects())
    tracemalloc.start(1)
    try:
        for _ in range(500):
            step(x, y)
        first, _ = tracemalloc.get_traced_memory()
        for _ in range(1500):
            step(x, y)
        second, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for _ in range(98_000):
        step(x, y)
    assert second - first < 2000
    assert len(gc.get_objects()) - before < 20
    assert step.recordings == 1


def test_a_training_makes_no_cycles_and_grows_by_nothing(no_collector):
    model, optimizer, step = training(xgrad.capture)
    given = batch(0)
    for _ in range(50):
        step(*given)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(3000):
        step(*given)
    assert gc.collect() == 0
    assert len(gc.get_objects()) - before < 20
    assert step.recordings <= 2 and len(model.state_dict()) == 4 and optimizer.param_groups


def test_looking_on_makes_no_cycles_either(no_collector):
    model, _, step = training(xgrad.capture)
    for _i in range(5):
        step(*batch(0))
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(300):
        step(*batch(0))
        assert [p.grad for p in model.parameters()] and model.state_dict()
    assert gc.collect() == 0
    assert len(gc.get_objects()) - before < 40


NETWORKS = {  # widths, and rows of a batch
    "2-16-16-2": ((2, 16, 16, 2), 32),
    "64-64-10": ((64, 64, 10), 64),
    "784-128-10": ((784, 128, 10), 32),
    "784-256-128-10": ((784, 256, 128, 10), 128),
    "784-1024-1024-10": ((784, 1024, 1024, 10), 256),
}


@pytest.mark.parametrize("often", [0, 1000])  # replays before the plan
@pytest.mark.parametrize("algorithm", [optim.SGD, optim.Adam])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_replay_takes_no_more_memory_than_the_step(network, algorithm, often, no_collector, monkeypatch):
    sizes, rows = NETWORKS[network]
    monkeypatch.setattr("xgrad_numpy.replay._OFTEN", often)
    monkeypatch.setattr("xgrad_numpy.replay._PIECE", 1 << 60)
    layers = [layer for n, m in itertools.pairwise(sizes) for layer in (nn.Linear(n, m), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    optimizer = algorithm(model.parameters(), lr=0.1)
    x, y = array(rows, sizes[0]), xgrad.zeros(rows, dtype=xgrad.int64)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    captured = xgrad.capture(step)
    for run in (step, captured, captured, captured):
        run()
    tracemalloc.start(1)
    try:
        peaks = []
        for run in (step, captured):
            run()
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            run()
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert captured.recordings == 1
    assert [run.planned for run in planned(captured)] == [often == 0]
    buffer = 4 * rows * sizes[-1] if np.lib.NumpyVersion(np.__version__) < "2.3.0" else 0  # of sums along an axis
    assert peaks[1] + sum(run.nbytes for run in planned(captured)) <= peaks[0] + buffer


def planned(captured):
    """Return the arrays in which a step's recordings compute."""
    return [frame.run for frame in captured._ways]


def test_a_step_that_is_dropped_frees_all():
    model, optimizer, step = training(xgrad.capture)
    for i in range(4):
        step(*batch(i))
    watched = [weakref.ref(thing) for thing in [*model.parameters(), optimizer, *planned(step)]]
    assert len(watched) > 5
    del model, optimizer, step
    gc.collect()
    assert [w() for w in watched if w() is not None] == []


def test_a_step_that_is_dropped_leaves_parameters_where_they_are(no_collector):
    model, _, step = training(lambda step: step)
    step(*batch(0))
    captured = xgrad.capture(step)
    captured(*batch(0))
    places = [p._data.ctypes.data for p in model.parameters()]
    del captured  # which saw them, and was counted
    step(*batch(0))
    assert [p._data.ctypes.data for p in model.parameters()] == places
    captured = xgrad.capture(step)
    captured(*batch(0))
    assert captured.recordings == 1 and captured.program().startswith("1 recording")


@pytest.mark.filterwarnings("ignore:.*more than 3 kinds:xgrad.capturing.CaptureWarning")
def test_recordings_beyond_the_limit_are_freed():
    step = xgrad.capture(lambda x: xgrad.tanh(x) * 2 + 1, limit=3)
    runs = []
    for n in range(1, 20):
        step(array(n))
        runs += [weakref.ref(run) for run in planned(step)]
    gc.collect()
    assert len({id(run()) for run in runs if run() is not None}) == 3
    tracemalloc.start(1)
    try:
        for n in range(1000, 1020):
            step(array(n))
        gc.collect()
        first, _ = tracemalloc.get_traced_memory()
        for n in range(1020, 1060):
            step(array(n))
        gc.collect()
        second, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert second - first < 10_000


def test_results_are_the_users_own():
    step = xgrad.capture(lambda x: (xgrad.exp(x), x * 2))
    kept = [step(array(3, seed=i)) for i in range(10)]
    for i, (a, b) in enumerate(kept):
        np.testing.assert_array_equal(a.numpy(), np.exp(array(3, seed=i).numpy()))
        np.testing.assert_array_equal(b.numpy(), 2 * array(3, seed=i).numpy())


def test_the_memory_of_a_step_is_at_most_that_of_an_eager_one():
    def step(x):
        for _ in range(20):
            x = xgrad.tanh(x) * 1.5
        return x.sum()

    captured, x = xgrad.capture(step), array(400, 400)
    captured(x)
    peaks = []
    for call in (step, captured):
        tracemalloc.start(1)
        call(x)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    (run,) = planned(captured)
    assert peaks[1] + run.nbytes <= peaks[0]
