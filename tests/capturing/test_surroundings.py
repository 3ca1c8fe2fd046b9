"""What a step names, however it comes to it: in objects, classes and modules, through decorators and partial calls."""

import functools
import gc
import sys
import threading
import types
import weakref
from array import array as buffer
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import xgrad
from capturing.twins import all_of, array, batch, replayed, replays, twice
from xgrad import nn, optim
from xgrad.nn import functional

scale = 2.0
inner = None


def decorated(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


class Base:
    k = 2.0

    def plain(self, x):
        return x * self.k

    @decorated
    def wrapped(self, x):
        return x * self.k

    @xgrad.no_grad()
    def by_ours(self, x):
        return x * self.k

    def times(self, factor, x):
        return x * self.k * factor

    thrice = functools.partialmethod(times, 3.0)

    @property
    def double(self):
        return 2 * self.k

    def __getitem__(self, i):
        return self.k + i

    def __enter__(self):
        return self.k

    def __exit__(self, *error):
        pass

    @staticmethod
    def of_a_variable(x):
        return x * scale


class Derived(Base):
    def plain(self, x):
        return super().plain(x) + 1


@dataclass(slots=True)
class Slots:
    k: float = 2.0

    def plain(self, x):
        return x * self.k


class Sloppy:
    __slots__ = ("values",)

    def __init__(self):
        self.values = {"k": 2.0}

    def __getattr__(self, name):
        return self.values[name]


class Attributes(dict):
    __getattr__ = dict.__getitem__


class Options(UserDict):
    def __repr__(self):
        return f"Options({self.data})"


class Proxy:
    def __init__(self, other):
        self._other = other

    def __getattr__(self, name):
        if name == "_other":
            raise AttributeError(name)
        return getattr(self._other, name)


class Secretive:
    @property
    def __class__(self):
        raise RuntimeError("not to be known")

    @property
    def __dict__(self):
        raise RuntimeError("not to be seen")


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ks = [2.0]

    def forward(self, x):
        return x * scale * self.ks[0]


def with_context(c, x):
    with c as k:
        return x * k


def function_with_attributes():
    def function(x):
        return x * function.k

    function.k = 2.0
    return function


READS = {
    "method": (Base, lambda c: c.plain),
    "method of the class above": (Derived, lambda c: c.plain),
    "decorated method": (Base, lambda c: c.wrapped),
    "method decorated by the library": (Base, lambda c: c.by_ours),
    "partial": (Base, lambda c: functools.partial(lambda c, x: x * c.k, c)),
    "partial that a step names": (Base, lambda c: using(functools.partial(lambda c, x: x * c.k, c), lambda x, f: f(x))),
    "default": (Base, lambda c: lambda x, c=c: x * c.k),
    "partial method": (Base, lambda c: lambda x: c.thrice(x)),
    "property": (Base, lambda c: lambda x: x * c.double),
    "item": (Base, lambda c: lambda x: x * c[0]),
    "context": (Base, lambda c: lambda x: with_context(c, x)),
    "in a list": (Base, lambda c: using([c, Base()], lambda x, cs: sum(one.plain(x) for one in cs))),
    "in an object": (Base, lambda c: using(SimpleNamespace(a=SimpleNamespace(c=c)), lambda x, o: o.a.c.plain(x))),
    "in circles": (Base, lambda c: using(circle(c), lambda x, o: x * o.other.other.c.k)),
    "beside much": (Base, lambda c: using(SimpleNamespace(c=c, much=[0] * 999), lambda x, o: x * o.c.k * len(o.much))),
    "by another": (Base, lambda c: using(Proxy(c), lambda x, p: x * p.k)),
    "by text": (Base, lambda c: lambda x: x * getattr(c, "k", 1.0)),
    "by all": (SimpleNamespace, lambda c: lambda x: x * vars(c).get("k", 1.0)),
    "of a function": (function_with_attributes, lambda c: lambda x: x * c.k),
    "of a function that reads it": (function_with_attributes, lambda c: lambda x: c(x)),
    "of the step": (function_with_attributes, lambda c: c),
    "slots": (Slots, lambda c: lambda x: x * c.k),
    "slots of a method": (Slots, lambda c: c.plain),
}


def using(thing, step):
    return lambda x: step(x, thing)


def circle(c):
    one = SimpleNamespace(c=c)
    one.other = SimpleNamespace(other=one)
    return one


@pytest.mark.parametrize("name", READS)
def test_an_attribute_is_set(name):
    make, step_of = READS[name]

    def scenario(capture):
        c = make()
        step = capture(step_of(c))
        for i in range(6):
            yield step(array(3))
            if i % 2:
                c.k = float(i)

    replays(scenario, recordings=3)


@replayed
def test_attributes_of_classes(capture):
    class Config:
        k = 2.0

        class inner:
            k = 1.0

        @classmethod
        def step(cls, x):
            return x * cls.k

    c = Config()
    steps = [lambda x: x * Config.k * Config.inner.k, lambda x: x * c.k, Config.step, lambda x: Config.step(x)]
    steps = [capture(step) for step in steps]
    for i in range(8):
        yield [step(array(3)) for step in steps]
        if i % 2:
            Config.k = Config.inner.k = float(i)


@replayed
def test_a_step_is_given_an_object_with_methods(capture):
    step = capture(lambda x, c: c.plain(x))
    one, other = Base(), Derived()
    for i in range(8):
        yield step(array(3), one)
        yield step(array(3), other)
        if i % 2:
            one.k = other.k = float(i)


Pair = namedtuple("Pair", "values other")


@pytest.mark.parametrize(
    "make",
    [
        lambda: (OrderedDict(k=2.0), "k"),
        lambda: (defaultdict(float, k=2.0), "k"),
        lambda: (Attributes(k=2.0), "k"),
        lambda: (deque([2.0]), 0),
        lambda: (UserDict(k=2.0), "k"),
        lambda: (Options(k=2.0), "k"),
        lambda: (ChainMap({}, {"k": 2.0}), "k"),
        lambda: (UserList([2.0]), 0),
        lambda: (buffer("d", [2.0]), 0),
    ],
)
def test_containers_of_other_kinds(make):
    def scenario(capture):
        values, key = make()
        pair = Pair(values, 1)
        steps = capture(lambda x: x * values[key]), capture(lambda x: x * pair.values[key])
        for k in (2.0, 2.0, 3.0, 3.0, 3, -0.0, 0.0):
            values[key] = k
            yield [step(array(3)) for step in steps]

    replays(scenario)


@replayed
def test_a_mapping_that_cannot_be_written_to(capture):
    values = {"k": 2.0}
    readable = types.MappingProxyType(values)
    step = capture(lambda x: x * readable["k"])
    for k in (2.0, 2.0, 3.0, 3.0):
        values["k"] = k
        yield step(array(3))


def test_long_collections_are_left_alone():
    read = []

    class Long(Sequence):
        __module__ = "collections"  # as if it were no class of the user's

        def __len__(self):
            return 1 << 20

        def __getitem__(self, i):
            read.append(range(1000)[i])
            return float(i)

    numbers = Long()
    step = xgrad.capture(lambda x: x * numbers[3])
    for _ in range(3):
        np.testing.assert_array_equal(step(array(3)).numpy(), (array(3) * 3).numpy())
    assert step.recordings == 1 and read == [3]


def test_what_cannot_be_read_of_collections_is_left_alone():
    class Failing(dict):
        def __getitem__(self, key):
            return super().__getitem__(key) / (key != "bad")

    values = ChainMap({}, Failing(k=3.0, bad=1.0))
    step = xgrad.capture(lambda x: x * values["k"])
    for k in (3, 3, 4, 4):
        values.maps[1]["k"] = k
        np.testing.assert_array_equal(step(array(3)).numpy(), (array(3) * k).numpy())
    assert step.recordings == 2


@replayed
def test_numbers_in_arrays_of_numpy(capture):
    values, one, large = np.array([1.0, 2.0]), np.array(3), np.zeros(1000)
    cases = {"values": values, "one": [one]}
    steps = [
        lambda x: x * float(values[0]),
        lambda x: x * values.sum(),
        lambda x: x * int(cases["one"][0]),
        lambda x: x * values.tolist()[1] + len(large),
    ]
    steps = [capture(step) for step in steps]
    for i in range(8):
        values[0], values[1], one[()] = i // 2, -0.0 if i > 5 else 0.0, i // 4
        yield [step(array(3)) for step in steps]


@replayed
def test_a_set_grows(capture):
    values = {1}
    step = capture(lambda x: x * len(values))
    for i in (1, 1, 2, 2):
        values.add(i)
        yield step(array(3))


@replayed
def test_variables_of_functions_that_stand_in_containers_and_modules(capture):
    global scale
    scale, layer = 2.0, Layer()
    functions = {"a": lambda x: x * scale, "b": [Base.of_a_variable]}
    library = types.ModuleType("library")
    exec("scale, options = 2.0, {'k': 1.0}\ndef apply(x): return x * scale * options['k']", vars(library))
    steps = [
        lambda x: functions["a"](x) + functions["b"][0](x),
        lambda x: library.apply(x),
        lambda x, layers={"a": layer}: layers["a"](x),
        functools.partial(lambda k, x: x * scale * k, 2.0),
        decorated(decorated(lambda x: x * scale)),
    ]
    steps = [capture(step) for step in steps]
    given = capture(lambda x, m: m(x))
    for i in range(8):
        yield [step(array(3)) for step in steps]
        yield given(array(3), layer)
        if i % 2:
            scale = library.scale = library.options["k"] = layer.ks[0] = float(i)


def test_a_module_that_is_imported_in_the_step(monkeypatch):
    settings = types.ModuleType("settings_of_a_step")
    monkeypatch.setitem(sys.modules, "settings_of_a_step", settings)

    def imports(x):
        import settings_of_a_step
        from settings_of_a_step import k

        return x * k * settings_of_a_step.k

    def scenario(capture):
        step = capture(imports)
        for k in (2.0, 2.0, 3.0, 3.0):
            settings.k = k
            yield step(array(3))

    replays(scenario, recordings=2)


@replayed
def test_functions_that_differ_only_in_their_variables(capture):
    def scaled(k):
        def apply(x):
            return x * k

        def put(value):
            nonlocal k
            k = value

        return apply, put

    (first, _), (second, put) = scaled(2.0), scaled(3.0)
    step = capture(lambda x: first(x) + second(x))
    for k in (3.0, 3.0, 4.0):
        put(k)
        yield step(array(3))


@replayed
def test_a_function_that_a_step_names_is_written_anew(capture):
    global scale, inner
    scale, ks, inner = 2.0, [1.0], lambda x: x * 2
    others = [lambda x: x * scale, lambda x: x * ks[0]]
    step = capture(lambda x: inner(x))
    for i in range(12):
        if i % 4 == 2:
            inner = others[i // 4 % 2]
        if i % 2:
            scale = ks[0] = float(i)
        yield step(array(3))


@replayed
def test_a_variable_that_was_not_there_at_first(capture):
    globals().pop("late", None)
    step = capture(lambda x: x * late)  # noqa: F821 - which is set below
    try:
        yield step(array(3))
    except NameError as error:
        yield str(error)
    for k in (2.0, 2.0, 3.0):
        globals()["late"] = k
        yield step(array(3))


@replayed
def test_a_variable_of_a_closure_comes_and_goes(capture):
    @capture
    def step(x):
        return x * 2 if len(x) < 5 else later(x)  # noqa: F821 - which is set below, and deleted

    for _ in range(3):
        yield step(array(3))

    def later(x):
        return x * 3

    for _ in range(3):
        yield step(array(3)), step(array(6))
    del later
    for _ in range(2):
        yield step(array(3))


def test_what_only_others_have_does_not_matter():
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(5, 3)
            self.optimizer, self.step = optim.SGD(self.model.parameters(), lr=0.1), 0

        def train(self, x, y):
            self.optimizer.zero_grad()
            functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    trainer = Trainer()
    step = xgrad.capture(trainer.train)
    for i in range(6):
        step(*batch(i))
        trainer.step += 1  # which is no attribute of the optimizer
    assert step.recordings == 1 and step.refusal is None


@replayed
def test_what_is_computed_once_is_kept_in_a_dict(capture):
    kept = {}

    def step(x):
        n = len(x)
        if n not in kept:
            kept[n] = 2 * xgrad.ones(n)
        return x * kept[n]

    s = capture(step)
    for n in (3, 3, 3, 4, 4, 3, 4):
        yield s(array(n))


class Fails:
    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    def __hash__(self):
        return 1


class Unhashable(Fails):
    def __hash__(self):
        raise RuntimeError("not to be hashed")


class OfInstances:
    def __get__(self, owner, kind):
        if owner is None:
            raise ValueError("of instances only")
        return owner.value


class Described:
    k = OfInstances()

    def __init__(self, k):
        self.value = k


@pytest.mark.parametrize("kind", [Fails, Unhashable, Described])
def test_objects_that_fail_when_they_are_asked(kind):
    def scenario(capture):
        c = kind(2.0)
        step = capture(lambda x: x * c.k)
        for k in (2.0, 3.0, 3.0):
            c = kind(k)
            yield step(array(3))
            yield step(array(3))

    replays(scenario)


@replayed
def test_an_object_of_which_nothing_can_be_asked(capture):
    c = Secretive()
    step = capture(lambda x: x if c is None else x * 2)
    for _ in range(3):
        yield step(array(3))


@replayed
def test_an_object_that_knows_few_names(capture):
    c = Sloppy()
    step = capture(lambda x: x * c.k)
    for k in (2.0, 2.0, 3.0):
        c.values["k"] = k
        yield step(array(3))


@replayed
def test_an_optimizer_that_a_partial_call_is_given(capture):
    xgrad.manual_seed(0)
    model = nn.Linear(5, 3)
    optimizer = optim.Adam(model.parameters())

    def train(m, o, x, y):
        o.zero_grad()
        loss = functional.cross_entropy(m(x), y)
        loss.backward()
        o.step()
        return loss

    step = capture(functools.partial(train, model, optimizer))
    for i in range(4):
        yield step(*batch(i))
        yield all_of(model, optimizer)


def decayed(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    with xgrad.no_grad():
        for p in model.parameters():
            p *= 1 - optimizer.param_groups[0]["lr"] * 0.1
    return loss, optimizer.param_groups[0]["lr"]


@replayed
def test_options_of_an_optimizer_that_the_step_reads_itself(capture):
    xgrad.manual_seed(0)
    model = nn.Linear(5, 3)
    o = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    group, one, all_in = o.param_groups[0], SimpleNamespace(o=o), [o]

    def of_all(x):
        for each in all_in[0].param_groups:
            x = x * each["lr"]
        return x

    step = capture(lambda x, y: decayed(model, o, x, y))
    reads = [
        capture(lambda x: x * o.param_groups[0]["lr"]),
        capture(lambda x: x * one.o.param_groups[0]["lr"]),
        capture(of_all),
        capture(lambda x: x * o.defaults["lr"]),
    ]
    for i in range(9):
        group["lr"] = o.defaults["lr"] = 0.1 / (1 + i // 3)
        yield step(*batch(i))
        yield all_of(model, o)
        yield [read(array(3)) for read in reads]


def test_a_step_that_sets_an_option_itself_is_refused():
    model = nn.Linear(5, 3)
    o = optim.SGD(model.parameters(), lr=0.1)

    def scenario(capture):
        model.load_state_dict({"weight": array(3, 5), "bias": array(3)})
        o.param_groups[0]["lr"] = 0.1

        @capture
        def step(x, y):
            o.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            for group in o.param_groups:
                group["lr"] *= 0.9
            o.step()

        for i in range(4):
            step(*batch(i))
            yield all_of(model), o.param_groups[0]["lr"]

    with pytest.warns(xgrad.capturing.CaptureWarning, match="the step changes what is in o"):
        twice(scenario)


class Scaled(optim.Optimizer):
    """Reads a global variable, an attribute, and one of its class; its step does more than the others."""

    most = 1.0

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.k = 1.0

    def step(self, closure=None):
        nn.utils.clip_grad_norm_([p for group in self.param_groups for p in group["params"]], self.most)
        return super().step(closure)

    def update(self, xp, p, g, state, options):
        return p - options["lr"] * self.k * scale * xp.sign(g)


@replayed
def test_what_an_optimizer_of_the_users_reads(capture):
    global scale
    scale = 1.0
    xgrad.manual_seed(0)
    model = nn.Linear(5, 3)
    o = Scaled(model.parameters(), lr=0.1)

    @capture
    def step(x, y):
        o.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        o.step()

    for i in range(12):
        o.k, scale = 1.0 + (i >= 3), 1.0 - 0.5 * (i >= 6)
        Scaled.most = 1.0 if i < 9 else 0.1
        step(*batch(i))
        yield all_of(model)
    Scaled.most = 1.0


@pytest.mark.filterwarnings("ignore::xgrad.capturing.CaptureWarning")
def test_an_optimizer_that_counts_by_itself_is_refused():
    class Counts(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})
            self.count = 0

        def update(self, xp, p, g, state, options):
            self.count += 1
            return p - 0.1 / self.count * g

    def scenario(capture):
        w = array(3).requires_grad_()
        o = Counts([w])

        @capture
        def step():
            o.zero_grad()
            (w * w).sum().backward()
            o.step()

        for _ in range(4):
            step()
            yield w, o.count

    (captured,) = twice(scenario)
    assert "gives self.count another value" in captured.refusal


def by_scale(g):
    return g * scale


class ScaledGradient(xgrad.Function):
    @staticmethod
    def forward(xp, x):
        return x * 1

    @staticmethod
    def backward(xp, g):
        return g * scale


@replayed
def test_what_a_derivative_of_the_users_reads(capture):
    global scale
    scaled = ScaledGradient()
    step = capture(xgrad.grad(lambda x: (scaled(x) ** 2).sum()))
    for k in (2.0, 2.0, 3.0, 3.0):
        scale = k
        yield step(array(3))


@replayed
def test_what_hooks_read(capture):
    global scale
    layer, w = nn.Linear(3, 2), array(3).requires_grad_()
    layer.load_state_dict({"weight": array(2, 3), "bias": array(2)})
    w.register_hook(by_scale)
    layer.weight.register_hook(by_scale)

    def of_a_variable(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad.detach()

    def of_a_layer(x):
        layer.zero_grad()
        layer(x).sum().backward()
        return layer.weight.grad.detach()

    def of_an_argument(x, w):
        w.grad = None
        (w * x).sum().backward()

    of_a_variable, of_a_layer, of_an_argument = map(capture, (of_a_variable, of_a_layer, of_an_argument))
    for k in (2.0, 2.0, 3.0, 3.0):
        scale = k
        yield of_a_variable(array(3)), of_a_layer(array(3))
        of_an_argument(array(3), w)
        yield w.grad


def test_a_long_chain_of_objects():
    class Link:
        def __init__(self, following):
            self.k, self.following = 2.0, following

    first = None
    for _ in range(3000):
        first = Link(first)
    step = xgrad.capture(lambda x: x * first.k * first.following.k)
    for _ in range(3):
        np.testing.assert_array_equal(step(array(3)).numpy(), (array(3) * 4).numpy())
    assert step.refusal is None


def test_what_is_changed_by_another_thread_meanwhile():
    values, done = {str(i): i for i in range(50)}, threading.Event()

    def change():
        i = 0
        while not done.is_set():
            i += 1
            values[f"x{i % 100}"] = i
            values.pop(f"x{i * 7 % 100}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        step = xgrad.capture(lambda x: x * values["3"], limit=1000)
        for _ in range(300):
            np.testing.assert_array_equal(step(array(3)).numpy(), (array(3) * 3).numpy())
    finally:
        done.set()
        thread.join()


def test_a_step_keeps_nothing_of_its_object():
    c = Base()
    c.step = xgrad.capture(c.plain)
    for _ in range(3):
        c.step(array(3))
    gone = weakref.ref(c)
    del c
    gc.collect()
    assert gone() is None


def test_what_a_trainer_does_is_recorded_once_for_each_shape():
    class Trainer:
        def __init__(self):
            self.layer, self.k = nn.Linear(3, 2), 2.0
            self.step, self.losses = xgrad.capture(self.learn), []

        def learn(self, x):
            return (self.layer(x) * self.k).sum().detach()

    trainer = Trainer()
    for i in range(30):
        trainer.losses.append(trainer.step(array(3 + i % 3, 3)))
    assert trainer.step.recordings == 3
