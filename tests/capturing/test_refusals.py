"""Steps that cannot be captured: the message names the line, the results stay right, and gradients work as ever."""

import gc
import inspect
import random
import threading
import types
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import xgrad
from capturing.twins import alike, all_of, array, batch, eagerly, played, snapshot, training, twice
from xgrad import nn, optim
from xgrad.capturing import CaptureWarning
from xgrad.capturing.arrays import Recorded
from xgrad.capturing.doors import _DOORS
from xgrad.capturing.numbers import Number
from xgrad.graph import Node
from xgrad.nn import functional
from xgrad_numpy import replay

STEPS = {}


def refused(why):
    """Note a function that makes a step, whose line with "here" the warning must name, and what it must say."""

    def note(make):
        STEPS[make.__name__] = make, why
        return make

    return note


def state():
    """Return what steps compute with: a leaf, and a list to keep things in."""
    return array(3, seed=9).requires_grad_(), []


@refused("is read")
def branch(w, kept):
    def step(x):
        y = w * x
        if y.sum() > 0:  # here
            return y.detach() * 2
        return y.detach()

    return step


@refused("is read")
def item(w, kept):
    return lambda x: x * x.sum().item()  # here


@refused("is read")
def float_of(w, kept):
    return lambda x: x * float(x.sum())  # here


@refused("is read")
def an_index(w, kept):
    return lambda x: x[int(xgrad.argmax(x)) :].sum()  # here


@refused("is read")
def a_range(w, kept):
    def step(x):
        for _ in range(xgrad.count_nonzero(x)):  # here
            x = x + 1
        return x

    return step


@refused("is read")
def text(w, kept):
    return lambda x: (x * 2, f"{x.sum():.3f}")  # here


@refused("is read")
def representation(w, kept):
    return lambda x: (x * 2, repr(x))  # here


@refused("is read")
def a_list(w, kept):
    return lambda x: x * sum(x.tolist())  # here


@refused("is read")
def numpy_of(w, kept):
    return lambda x: x * xgrad.asarray(x.numpy() * 2)  # here


@refused("is read")
def numpy_asarray(w, kept):
    return lambda x: x * xgrad.asarray(np.asarray(x) + 1)  # here


@refused("handed to another library")
def dlpack(w, kept):
    return lambda x: x * xgrad.asarray(np.from_dlpack(x) + 1)  # here


@refused("the shape of what nonzero")
def nonzero(w, kept):
    return lambda x: xgrad.nonzero(x > 0)[0] * 2  # here


@refused("the shape of what x[mask]")
def mask(w, kept):
    return lambda x: x[x > 0] * 2  # here


@refused("an array of numpy comes in")
def foreign_array(w, kept):
    constant = np.ones(3, np.float32)
    return lambda x: x * xgrad.asarray(constant)  # here


@refused("kept outside")
def appended(w, kept):
    def step(x):  # here
        kept.append(x * 2)
        return x * 3

    return step


@refused("changes what is in holder")
def an_attribute(w, kept):
    holder = nn.Module()

    def step(x):  # here
        holder.last = x * 2
        return x + holder.last

    return step


@refused("changes what is in counts")
def counter_in_a_dict(w, kept):
    counts = {"steps": 0}

    def step(x):  # here
        counts["steps"] += 1
        return x * counts["steps"]

    return step


@refused("another value")
def counter(w, kept):
    count = 0

    def step(x):  # here
        nonlocal count
        count += 1
        return x * count

    return step


def after_a_step(w, shown):
    """Return a step that lets an optimizer take one, and returns what is shown of it then."""
    o = optim.Adam([w], lr=0.1)

    def step(x):
        o.zero_grad()
        (w * x).sum().backward()
        o.step()
        return shown(o, x)

    return step


@refused("the state of an optimizer")
def count_of_an_optimizer(w, kept):
    return after_a_step(w, lambda o, x: (x * o.state[w]["step"], o.state[w]["exp_avg"]))  # here


@refused("the state of an optimizer")
def state_of_an_optimizer(w, kept):
    return after_a_step(w, lambda o, x: o.state_dict())  # here


@refused("graph behind it")
def unused_graph(w, kept):
    def step(x):  # here
        return w * x

    return step


@refused("a value that was computed with a graph")
def graph_in_a_tensor_from_before(w, kept):
    kept.append(array(3))

    def step(x):  # here
        kept[0][0] = (w * x).sum()
        return x * 2

    return step


@refused("computed before with a graph")
def graph_from_before(w, kept):
    hidden = w * 2
    return lambda x: (hidden * x).detach()  # here


@refused("made or set within the step")
def seed(w, kept):
    def step(x):
        xgrad.random.rand(2)
        xgrad.manual_seed(3)  # here
        return x * xgrad.random.rand(3)

    return step


@refused("made or set within the step")
def first_seed(w, kept):
    def step(x):
        xgrad.manual_seed(3)  # here
        return x * xgrad.random.rand(3)

    return step


@refused("made or set within the step")
def last_seed(w, kept):
    def step(x):
        y = x * xgrad.random.rand(3)
        xgrad.manual_seed(len(kept))  # here
        return y

    return step


@refused("made or set within the step")
def generator(w, kept):
    return lambda x: x * xgrad.random.rand(3, generator=xgrad.random.Generator(5))  # here


@refused("")
def module(w, kept):
    def step(x):
        layer = nn.Linear(3, 2)
        return layer(x[None]).detach()

    return step


@pytest.fixture
def _only_new_objects():
    """Exclude objects that existed before the test from the search for leaks, which takes most of the time."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_only_new_objects")
@pytest.mark.parametrize("name", STEPS)
def test_the_line_is_named_once_and_results_are_right(name):
    make, why = STEPS[name]
    xgrad.manual_seed(1)
    eager = make(*state())
    expected = [snapshot(eager(array(3, seed=i))) for i in range(5)]
    xgrad.manual_seed(1)
    w, kept = state()
    step = make(w, kept)
    captured = xgrad.capture(step)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = [snapshot(captured(array(3, seed=i))) for i in range(5)]
    alike(expected, got)
    said = [w for w in caught if w.category is CaptureWarning]
    source, first = inspect.getsourcelines(make)
    here = [first + i for i, line in enumerate(source) if "# here" in line]
    if captured.refusal is None:
        assert name in ("generator", "module") and not said  # which can be replayed
        return
    assert len(said) == 1 and said[0].filename == __file__
    assert why in captured.refusal and captured.program() == f"runs eagerly: {captured.refusal}"
    assert not here or captured.refusal.startswith(f"test_refusals.py:{here[0]}:"), captured.refusal
    nothing_recorded_is_left()
    for thing in kept:  # its graph can be walked
        if isinstance(thing, xgrad.Tensor) and thing.requires_grad:
            w.grad = None
            thing.sum().backward()
            assert w.grad is not None


def nothing_recorded_is_left():
    """See that no tensor and no graph holds what stands for arrays."""
    gc.collect()
    held = xgrad.Tensor.__dict__["_data"]
    for thing in gc.get_objects():
        if issubclass(type(thing), xgrad.Tensor):  # isinstance would wake what is asleep in other libraries
            assert type(held.__get__(thing)) is not Recorded
        elif issubclass(type(thing), Node):
            assert not any(type(value) in (Recorded, Number) for value in thing.kept or ())


def test_an_argument_with_a_graph():
    w = array(3, seed=1).requires_grad_()
    step = xgrad.capture(lambda x: (x * x).sum())
    with pytest.warns(CaptureWarning, match=r"test_refusals.py:\d+: an argument was computed with a graph"):
        out = step(w * 2)
    out.backward()
    np.testing.assert_allclose(w.grad.numpy(), 8 * w.detach().numpy(), rtol=1e-6)


def test_a_result_with_a_graph_can_be_walked():
    w = array(3, seed=1).requires_grad_()
    step = xgrad.capture(lambda x: (w * w * x).sum())
    for i in range(3):
        x = array(3, seed=i)
        if i:
            out = step(x)
        else:
            with pytest.warns(CaptureWarning, match="graph behind it"):
                out = step(x)
        w.grad = None
        out.backward(retain_graph=True)
        out.backward()
        np.testing.assert_allclose(w.grad.numpy(), 4 * (w.detach() * x).numpy(), rtol=1e-6)
    nothing_recorded_is_left()


def test_devices_that_cannot_replay(device):
    if xgrad.Device(device).backend.replays:
        pytest.skip(f"{device} can replay")
    step = xgrad.capture(lambda x: x * 2)
    x = xgrad.ones(3, device=device)
    with pytest.warns(CaptureWarning, match="cannot be replayed yet"):
        assert step(x).cpu().tolist() == [2, 2, 2]
    assert str(step(x).device) == device


def test_a_training_that_is_refused_goes_on_as_it_began():
    def played(capture):
        model, optimizer, _ = training(eagerly)
        losses = []

        @capture
        def step(x, y):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            return loss

        for i in range(6):
            step(*batch(i))
        return [snapshot([all_of(model, optimizer), losses])]

    expected = played(eagerly)
    with pytest.warns(CaptureWarning, match=r"test_refusals.py:\d+: the value of a tensor is read"):
        got = played(xgrad.capture)
    alike(expected, got)
    nothing_recorded_is_left()


def test_an_error_leaves_the_doors_closed_and_nothing_behind():
    w = array(3).requires_grad_()
    before = doors()
    kept = []

    def step(x):
        kept.append((w * x).sum())
        raise ArithmeticError("no")

    captured = xgrad.capture(step)
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="no"):
            captured(array(3))
    assert doors() == before
    assert captured.refusal is None
    kept[0].backward()
    np.testing.assert_array_equal(w.grad.numpy(), array(3).numpy())
    nothing_recorded_is_left()


def doors():
    """Return what stands in the places that are exchanged while a step is recorded."""
    device = xgrad.Device("cpu")
    found = [vars(owner).get(name) for owner, name, _ in _DOORS]
    return [*found, device.xp, device.backend, device.key, device.coerce]


def test_two_threads_record_while_another_runs_eagerly():
    failed, stop = [], threading.Event()

    def play(turn):
        try:
            for _again in range(6):
                expected, got = [], []
                for capture, shown in ((eagerly, expected), (xgrad.capture, got)):
                    model, optimizer, step = training(capture)
                    for i in range(5):
                        shown.append(snapshot(step(*batch(i + turn))))
                    shown.append(snapshot(all_of(model, optimizer)))
                alike(expected, got)
        except BaseException as error:
            failed.append(error)

    def eager():
        try:
            w, x = array(3).requires_grad_(), array(3, seed=1)
            expected = xgrad.tanh(w * x).detach().numpy().copy()
            while not stop.is_set():
                out = xgrad.tanh(w * x)
                w.grad = None
                out.sum().backward()
                np.testing.assert_array_equal(out.detach().numpy(), expected)
                assert type(out._data) is not Recorded
        except BaseException as error:
            failed.append(error)

    bystander = threading.Thread(target=eager)
    bystander.start()
    threads = [threading.Thread(target=play, args=(turn,)) for turn in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    bystander.join()
    assert not failed, failed


def test_a_step_that_several_threads_call():
    w = array(3)
    step = xgrad.capture(lambda x: xgrad.tanh(x * w) + x)
    expected = [(xgrad.tanh(array(3, seed=i) * w) + array(3, seed=i)).numpy() for i in range(50)]
    wrong = []

    def call():
        for i in range(50):
            if not np.array_equal(step(array(3, seed=i)).numpy(), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def takes(x, given):
    return given.pop("k") * x


def sets(x, given):
    given["y"], given["k"] = given["y"] + x, 2.0
    return given


def appends(x, given):
    given["list"].append(2.0)
    return x * len(given["list"])


def sets_an_attribute(x, given):
    given["object"].k = 3.0
    return x * 2


@pytest.mark.parametrize("step", [takes, sets, appends, sets_an_attribute])
@pytest.mark.filterwarnings("ignore::xgrad.capturing.CaptureWarning")
def test_what_is_in_arguments_is_changed(step):
    def scenario(capture):
        captured = capture(step)
        for i in range(4):
            given = {"k": 1.0, "y": array(3, seed=i), "list": [], "object": SimpleNamespace(k=1.0)}
            yield captured(array(3), given)
            thing = given.pop("object")
            yield given, thing.k

    (captured,) = twice(scenario)
    assert "the step changes what is in its arguments" in captured.refusal


class Augments:
    def __init__(self):
        self.chance = np.random.default_rng(2)

    def step(self, x):
        return x * self.chance.random()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: lambda x: x * random.random(),
        lambda: lambda x: x * float(np.random.beta(1.0, 1.0)),
        lambda: lambda x: x * np.random.randn(),  # of two at a time, one is kept
        lambda: using(np.random.randn, lambda x, draw: x * draw()),
        lambda: using(random.gauss, lambda x, draw: x * draw(0, 1)),
        lambda: lambda x: x * library.shuffled([1.0, 2.0, 3.0])[0],
        lambda: using(random.Random(1), lambda x, chance: x if chance.random() < 0.5 else -x),
        lambda: using(np.random.RandomState(1), lambda x, chance: x * chance.rand()),
        lambda: Augments().step,
    ],
)
@pytest.mark.filterwarnings("ignore::xgrad.capturing.CaptureWarning")
def test_random_numbers_that_are_not_ours(draw):
    def scenario(capture):
        random.seed(0)
        np.random.seed(0)
        step = capture(draw())
        for _ in range(6):
            yield step(array(3))

    (captured,) = twice(scenario)
    assert "draws random numbers of Python's or NumPy's" in captured.refusal


library = types.ModuleType("library")  # of which the code is not looked at
exec("import random, numpy\ndef shuffled(x): numpy.random.shuffle(x); return x", vars(library))


def using(thing, step):
    return lambda x: step(x, thing)


def test_a_step_beside_which_random_numbers_are_drawn_is_captured():
    step = xgrad.capture(lambda x: 2 * x)
    for _ in range(4):
        random.random()
        step(array(3))
    assert step.recordings == 1 and step.refusal is None


def test_random_numbers_of_which_a_test_has_replaced_the_source(monkeypatch):
    monkeypatch.setattr(random, "random", lambda: 0.5)
    captured = xgrad.capture(lambda x: x * 2)
    for _ in range(3):
        np.testing.assert_array_equal(captured(array(3)).numpy(), (array(3) * 2).numpy())
    assert captured.refusal is None and captured.recordings == 1


def test_too_many_kinds_of_arguments_are_told_once():
    step = xgrad.capture(lambda x: x * 2, limit=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (1, 2, 3, 4, 5, 1, 2):
            assert step(xgrad.ones(n)).tolist() == [2] * n
    assert len(caught) == 1 and "more than 3 kinds of arguments" in str(caught[0].message)
    assert step.program().startswith("3 recordings")


def test_a_plan_that_cannot_be_made_is_no_error_of_the_step(monkeypatch):
    def fail(*args):
        raise MemoryError("too much for a plan")

    def scenario(capture):
        model, optimizer, step = training(capture)
        for i in range(8):
            yield step(*batch(i))
        yield all_of(model, optimizer)

    monkeypatch.setattr(replay, "Planned", fail)
    expected = played(scenario, eagerly)
    with pytest.warns(CaptureWarning, match="too much for a plan"):
        alike(expected, played(scenario, xgrad.capture))
