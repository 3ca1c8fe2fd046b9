"""What changes between calls is followed or recorded anew: results and all that is seen are those of eager steps."""

import dis
import inspect
import textwrap
import types
from types import SimpleNamespace

import numpy as np
import pytest

import xgrad
from capturing.twins import all_of, array, batch, eagerly, replayed, training, twice
from xgrad import nn, optim
from xgrad.capturing.surroundings import _globals
from xgrad.nn import functional

scale = 2.0


@replayed
def test_the_kinds_of_containers(capture):
    step = capture(lambda t: {type(t).__name__: t[0] + t[1]})
    a, b = array(3), array(3, seed=1)
    for t in ((a, b), [a, b], {0: a, 1: b}, (a, b)):
        yield step(t)
        yield step(t)


@replayed
def test_nothing_and_empty_containers(capture):
    step = capture(lambda x, t=7: x * 2 if t is None else x * 3 if t == [] else x * 5 if t == {} else x * 7)
    for _ in range(2):
        for t in (None, [], {}, ()):
            yield step(array(3), t)
        yield step(array(3))


@replayed
def test_zeros_of_either_sign(capture):
    step = capture(lambda x, s: x * s)
    for s in (0.0, -0.0, 0.0, -0.0):
        yield step(array(3), s)


@replayed
def test_sets(capture):
    step = capture(lambda x, s: x * len(s))
    for s in ({1}, {1, 2}):
        yield step(array(3), s)
    s = {1, 2, 3}
    yield step(array(3), s)
    s.add(5)
    yield step(array(3), s)


@replayed
def test_global_numbers(capture):
    global scale
    step = capture(lambda x: x * scale)
    for s in (2.0, 2.0, 0.0, -0.0, 3, 3.0, True, float("nan"), float("nan"), 1):
        scale = s
        yield step(array(3))


@replayed
def test_numbers_of_closures(capture):
    k = 2.0

    def step(x):
        return x * k

    s = capture(step)
    for value in (2.0, 2.0, 0.0, -0.0, 3, np.float32(2), np.float64(3)):
        k = value
        yield s(array(3))


@replayed
def test_a_variable_that_a_function_of_the_step_names(capture):
    global scale

    def inner(x):
        return x * scale

    step = capture(lambda x: inner(x))
    for s in (2.0, 2.0, 4.0):
        scale = s
        yield step(array(3))


@replayed
def test_a_number_in_a_list(capture):
    ks = [2.0]
    step = capture(lambda x: x * ks[0])
    yield step(array(3))
    yield step(array(3))
    ks[0] = 3.0
    yield step(array(3))


@replayed
def test_an_attribute_of_an_argument(capture):
    c = SimpleNamespace()
    c.k = 2.0
    step = capture(lambda x, c: x * c.k)
    yield step(array(3), c)
    yield step(array(3), c)
    c.k = 3.0
    yield step(array(3), c)


@replayed
def test_numbers_in_lists_and_dicts(capture):
    ks, options = [2.0, [3.0, 4.0]], {"a": {"b": 2.0}, "c": 5.0}

    def step(x):
        for k in ks[1]:
            x = x * k
        return x * options["a"]["b"] + len(ks) + sum(options[name] for name in options if name == "c")

    s = capture(step)
    for change in (
        lambda: None,
        lambda: ks[1].append(7.0),
        lambda: ks[1].__setitem__(0, -0.0),
        lambda: ks.append(1.0),
        lambda: options["a"].update(b=3.0),
        lambda: options.update(c=-1.0),
        lambda: None,
    ):
        change()
        yield s(array(3))
        yield s(array(3))


@replayed
def test_attributes_of_objects_that_variables_name(capture):
    c = SimpleNamespace(inner=SimpleNamespace(k=2.0), unused=0)
    model = nn.Linear(3, 3)
    model.k = 2.0

    def inner(x):
        return x * c.inner.k * model.k

    s = capture(lambda x: inner(x))
    for i in range(8):
        c.unused = i
        yield s(array(3))
        if i == 2:
            c.inner.k = 3.0
        if i == 4:
            model.k = 5.0
        if i == 6:
            c.inner = SimpleNamespace(k=1.0)


@replayed
def test_numbers_of_python_modules(capture):
    config = types.ModuleType("config")
    config.k = 2.0
    step = capture(lambda x: x * config.k)
    for k in (2.0, 2.0, 3.0, 3.0, 2.0):
        config.k = k
        yield step(array(3))


@replayed
def test_objects_in_containers_that_are_given(capture):
    c = SimpleNamespace(k=2.0)
    step = capture(lambda x, d: x * d["c"].k)
    for k in (2.0, 2.0, 3.0, 2.0):
        c.k = k
        yield step(array(3), {"c": c})


@replayed
def test_tensors_in_a_list_are_replaced(capture):
    ws = [array(3, seed=1), array(3, seed=2)]
    step = capture(lambda x: x * ws[0] + ws[1])
    for i in range(6):
        yield step(array(3))
        if i == 2:
            ws[1] = array(3, seed=3)


class Scaled(nn.Module):
    def forward(self, x):
        return x * scale * self.twice(x)

    def twice(self, x):
        return x * offset[0]


offset = [1.0]


@replayed
def test_variables_that_a_module_names(capture):
    global scale
    scale, offset[0] = 2.0, 1.0
    model = nn.Sequential(nn.ReLU(), Scaled())
    step = capture(lambda x: model(x))
    for i in range(6):
        yield step(array(3))
        if i == 2:
            scale = 3.0
        if i == 4:
            offset[0] = 3.0


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.k = Scaled(), 2.0

    def step(self, x):
        return self.layer(x) * self.k * (2 if self.training else 1)


@replayed
def test_a_method_of_a_module(capture):
    model = Trained()
    step = capture(model.step)
    for i in range(8):
        yield step(array(3))
        if i == 2:
            model.k = 3.0
        if i == 4:
            model.eval()
        if i == 6:
            model.train()


class Schedule:
    def __init__(self, k):
        self.k = k

    @property
    def double(self):
        return 2 * self.k

    def __call__(self, x):
        return x * self.double


@replayed
def test_attributes_that_methods_read(capture):
    first, second = Schedule(1.0), Schedule(2.0)
    step = capture(lambda x: first(x) + second.double)
    call = capture(second.__call__)
    for i in range(8):
        yield step(array(3))
        yield call(array(3))
        if i == 2:
            first.k = 3.0
        if i == 5:
            second.k = 4.0


def test_what_is_in_a_variable_is_looked_at_again_only_if_the_step_may_see_it():
    c, log = SimpleNamespace(k=2.0, other=0), []

    def step(x):
        log.append(1)
        return x * c.k

    captured = xgrad.capture(step)
    for i in range(10):
        c.other = i
        captured(array(3))
    assert captured.recordings == len(log) == 2 and captured.refusal is None  # the first finds that the log changes
    log.append(2)
    captured(array(3))
    assert captured.recordings == 2


def test_much_that_is_in_a_variable_is_left_alone():
    many = [[float(i) for i in range(300)]]
    step = xgrad.capture(lambda x: x * many[0][0])
    step(array(3))
    many[0][0] = 2.0
    step(array(3))
    assert step.recordings == 1


@replayed
def test_a_layer_is_replaced(capture):
    m, o, step = training(capture)
    for i in range(3):
        yield step(*batch(i))
    setattr(m, "0", nn.Linear(5, 4))
    for i in range(3):
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_an_option_of_a_layer_changes(capture):
    m, o, step = training(capture)
    for i in range(3):
        yield step(*batch(i))
    m[2].p = 0.9
    for i in range(3):
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_training_and_evaluation(capture):
    m, o, step = training(capture)
    ev = capture(lambda x: m(x).detach())
    for i in range(9):
        m.train(i % 3 != 2)
        yield step(*batch(i))
        yield ev(batch(i)[0])
    yield all_of(m, o)


@replayed
def test_parameters_are_assigned_to(capture):
    m, o, step = training(capture)
    for i in range(6):
        if i in (2, 4):
            m[0].weight.data = m[0].weight.data * 2
        if i == 5:
            m[0].weight.data[0, 0] = 7.0
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_a_parameter_of_an_optimizer_is_frozen_and_thawed(capture):
    m, o, step = training(capture)
    for i in range(9):
        if i == 3:
            m[0].weight.requires_grad_(False)
        if i == 6:
            m[0].weight.requires_grad_(True)
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_a_leaf_is_frozen_and_thawed(capture):
    w, v = array(3).requires_grad_(), array(3, seed=1).requires_grad_()

    @capture
    def step(x):
        w.grad = v.grad = None
        loss = (w * x + v).sum()
        loss.backward()
        return loss

    for i in range(9):
        if i == 3:
            w.requires_grad_(False)
            w.grad = None
        if i == 6:
            w.requires_grad_(True)
        yield step(array(3, seed=i))
        yield w.grad, v.grad


@pytest.mark.filterwarnings("ignore::xgrad.capturing.CaptureWarning")
def test_a_step_freezes_and_thaws():
    def scenario(capture):
        v, w = array(3).requires_grad_(), array(3, seed=1).requires_grad_()

        @capture
        def used(x, wanted):
            v.requires_grad_(wanted)
            v.grad = w.grad = None
            (v * w * x).sum().backward()

        @capture
        def unused(x):
            w.requires_grad = False
            return x * 2

        for i in range(12):
            w.requires_grad_()
            used(array(3, seed=i), i % 3 == 0)
            yield v.requires_grad, v.grad, w.grad
            if i % 2:
                yield unused(array(3))
            yield w.requires_grad

    twice(scenario)


@replayed
def test_a_step_freezes_what_is_frozen(capture):
    w = array(3)

    @capture
    def step(x):
        w.requires_grad_(False)
        return x * 2

    for i in range(6):
        w.requires_grad_(i == 4)
        yield step(array(3, seed=i)), w.requires_grad


@replayed
def test_a_step_freezes_for_a_while(capture):
    v, w = array(3).requires_grad_(), array(3, seed=1).requires_grad_()

    @capture
    def step(x):
        v.grad = w.grad = None
        v.requires_grad_(False)
        (v * w * x).sum().backward()
        v.requires_grad_()
        (v * x).sum().backward()

    for i in range(5):
        step(array(3, seed=i))
        yield v.requires_grad, v.grad, w.grad


@replayed
def test_a_hook_comes_and_goes(capture):
    w = array(3).requires_grad_()

    @capture
    def step(x):
        w.grad = None
        (w * x).sum().backward()

    h = None
    for i in range(9):
        if i == 3:
            h = w.register_hook(lambda g: 2 * g)
        if i == 6:
            h.remove()
        step(array(3, seed=i))
        yield w.grad


@pytest.mark.filterwarnings("ignore::xgrad.capturing.CaptureWarning")
@pytest.mark.parametrize("way", ["adds", "removes"])
def test_a_step_adds_or_removes_a_hook(way):
    def scenario(capture):
        w = array(3).requires_grad_()
        handle = w.register_hook(lambda g: 3 * g)

        @capture
        def step(x):
            w.grad = None
            if way == "adds":
                w.register_hook(lambda g: 2 * g)
            (w * x).sum().backward()
            if way == "removes":
                handle.remove()

        for i in range(6):
            step(array(3, seed=i))
            yield w.grad

    twice(scenario)


@replayed
def test_a_step_adds_a_hook_for_a_while(capture):
    w = array(3).requires_grad_()

    @capture
    def step(x):
        w.grad = None
        handle = w.register_hook(lambda g: 2 * g)
        (w * x).sum().backward()
        handle.remove()
        z = w * x
        handle = z.register_hook(lambda g: 3 * g)
        z.sum().backward()
        handle.remove()

    for i in range(4):
        step(array(3, seed=i))
        yield w.grad


@replayed
def test_hooks(capture):
    w = array(3).requires_grad_()
    w.register_hook(lambda g: g * g)

    @capture
    def step(x):
        w.grad = None
        z = w * x
        z.register_hook(lambda g: g * 3)
        (z * z).sum().backward()

    for i in range(4):
        step(array(3, seed=i))
        yield w.grad


@replayed
def test_a_model_goes_to_another_dtype(capture):
    m, o, step = training(capture)
    for i in range(6):
        x, y = batch(i)
        if i == 3:
            m.to(xgrad.float64)
        if i >= 3:
            x = x.astype(xgrad.float64)
        yield step(x, y)
        yield all_of(m, o)


@replayed
def test_states_are_loaded(capture):
    m, o, step = training(capture)
    kept = None
    for i in range(8):
        if i == 2:
            kept = m.state_dict(), o.state_dict()
        if i == 5:
            m.load_state_dict(kept[0])
            o.load_state_dict(kept[1])
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_a_group_is_added(capture):
    m, o, step = training(capture, opt=lambda ps: optim.SGD(list(ps)[:2], lr=0.1, momentum=0.9))
    for i in range(6):
        if i == 3:
            o.add_param_group({"params": list(m[3].parameters()), "lr": 0.5})
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_options_of_an_optimizer_change(capture):
    m, o, step = training(capture, opt=lambda ps: optim.SGD(ps, lr=1, momentum=0))
    for i in range(12):
        g = o.param_groups[0]
        if i == 2:
            g["lr"] = 0.5
        if i == 3:
            g["lr"] = np.float32(0.1)
        if i == 4:
            g["momentum"] = 0.9
        if i == 6:
            g["nesterov"] = True
        if i == 8:
            g["weight_decay"] = 0.1
        if i == 10:
            g["momentum"] = 0.0
            g["nesterov"] = False
        if i == 11:
            g["lr"] = 0.0
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_one_tensor_is_two_arguments(capture):
    step = capture(lambda x, y: (x + 1, x is y, x * y))
    a, b = array(3), array(3, seed=1)
    for p in ((a, b), (a, a), (b, b), (a, b), (b, a)):
        yield step(*p)


@replayed
def test_a_parameter_or_a_view_of_one_is_an_argument(capture):
    m, o, _step = training(capture)
    w = m[3].weight

    @capture
    def of_params(p, x, y):
        o.zero_grad()
        loss = functional.cross_entropy(m(x), y) + (p * p).sum()
        loss.backward()
        o.step()
        return loss

    for i in range(4):
        yield of_params(w, *batch(i))
        yield all_of(m, o)
    for i in range(4):
        yield of_params(w.detach(), *batch(i))
        yield all_of(m, o)
    for i in range(4):
        yield of_params(w.detach()[1:], *batch(i))
        yield all_of(m, o)
    k = w.detach().T
    for i in range(4):
        yield of_params(k, *batch(i))
        yield all_of(m, o)
        yield k


LOOKS = [
    lambda p, loss: loss,
    lambda p, loss: p.detach(),
    lambda p, loss: p.grad,
    lambda p, loss: p.grad.numpy(),
    lambda p, loss: p.detach().numpy(),
    lambda p, loss: np.from_dlpack(p.detach()),
    lambda p, loss: p.data,
    lambda p, loss: p.detach().mT if p.ndim > 1 else p.detach()[1:],
]


@replayed
def test_what_somebody_holds_keeps_its_value(capture):
    m, o, step = training(capture)
    kept = []
    ws = list(m.parameters())
    for i in range(24):
        kept.append(LOOKS[i % len(LOOKS)](ws[i % 4], step(*batch(i))))
        yield kept
        if i % 5 == 0:
            yield all_of(m, o)
    yield all_of(m, o)


@replayed
def test_eager_steps_in_between(capture):
    m, o, step = training(capture)
    for i in range(12):
        if i % 4 == 3:
            o.zero_grad()
            functional.cross_entropy(m(batch(i)[0]), batch(i)[1]).backward()
            o.step()
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_two_steps_share_a_model(capture):
    m, o, step = training(capture)

    @capture
    def other(x):
        o.zero_grad()
        loss = (m(x) ** 2).mean()
        loss.backward()
        o.step()
        return loss

    for i in range(12):
        yield (step(*batch(i)), other(batch(i)[0]))
        yield all_of(m, o)


@replayed
def test_a_seed_in_between(capture):
    _m, _o, step = training(capture)
    for i in range(8):
        if i in (3, 5):
            xgrad.manual_seed(11)
        yield step(*batch(i))
        yield xgrad.random.rand(2)


@replayed
def test_a_tensor_of_a_closure_gets_other_values(capture):
    t = array(3)
    step = capture(lambda x: x * t)
    for i in range(8):
        if i == 2:
            t[0] = 5.0
        if i == 3:
            t.data = array(3, seed=9)
        if i == 4:
            t.data[1] = 3.0
        if i == 5:
            t += 1
        if i == 6:
            t = array(3, seed=4)
        yield step(array(3, seed=i))


@replayed
def test_a_tensor_from_before_is_written_to(capture):
    t = array(3)

    def f(x):
        t[1] = x[0] * 2
        return t * x

    step = capture(f)
    for i in range(5):
        yield step(array(3, seed=i))
        yield t


@replayed
def test_a_captured_step_within_another(capture):
    inner = capture(lambda x: x * 2 + 1)
    w = array(3).requires_grad_()
    outer = capture(lambda x: xgrad.autograd.grad(inner(x * w).sum(), [w]))
    for i in range(4):
        yield inner(array(3, seed=i))
    for i in range(4):
        yield outer(array(3, seed=i))
    for i in range(4):
        yield inner(array(3, seed=i))


@replayed
def test_a_captured_step_calls_itself(capture):
    @capture
    def step(x):
        return x if x.shape[0] == 1 else step(x[1:]) * x[0]

    for n in (1, 2, 1, 3, 2, 1):
        yield step(array(n))


@replayed
def test_no_grad_around(capture):
    w = array(3).requires_grad_()
    step = capture(lambda x: (w * x,) if not xgrad.is_grad_enabled() else xgrad.autograd.grad((w * x).sum(), [w]))
    for i in range(6):
        if i % 2:
            with xgrad.no_grad():
                yield step(array(3, seed=i))
        else:
            yield step(array(3, seed=i))


@replayed
def test_errors_before_anything_changed(capture):
    m, o, step = training(capture)
    for i in range(9):
        x, y = batch(i)
        if i in (0, 4):
            y = y + 5
        try:
            yield step(x, y)
        except Exception as e:
            yield type(e).__name__, str(e)
        yield all_of(m, o)


@replayed
def test_results_that_share_memory(capture):
    @capture
    def step(x):
        y = x * 2
        return {
            "x": x,
            "xt": x.T,
            "y": y,
            "yt": y.T,
            "yy": y[0],
            "z": [y, y],
            "n": None,
            "k": 3,
            "c": xgrad.ones((2, 3)).T,
            "t": (x,),
        }

    for i in range(4):
        yield step(array(2, 3, seed=i))


@replayed
def test_results_that_are_the_same_tensor(capture):
    @capture
    def step(x):
        y = x * 2
        return y, y, y.T, [y]

    for i in range(4):
        a, b, c, (d,) = step(array(2, 3, seed=i))
        yield a, a is b, a is c, a is d


def test_a_result_in_a_mapping_that_is_no_dict():
    step = xgrad.capture(lambda x: types.MappingProxyType({"y": x * 2}))
    for i in range(4):
        x = array(3, seed=i)
        np.testing.assert_array_equal(step(x)["y"].numpy(), 2 * x.numpy())
    assert step.recordings == 1 and step.refusal is None


@replayed
def test_a_result_that_is_a_leaf(capture):
    @capture
    def step(x):
        return (x * 2).requires_grad_()

    for i in range(4):
        yield step(array(2, 3, seed=i))


@replayed
def test_a_parameter_is_returned(capture):
    m, _o, step = training(capture)
    f = capture(lambda x: (m[0].weight, m[0].weight.detach(), m[0].weight.detach().T, m[0].weight.detach() * 2))
    for i in range(4):
        step(*batch(i))
        r = f(array(2))
        yield r
    step(*batch(0))
    yield r


@replayed
def test_gradients_are_returned(capture):
    m, o, _ = training(eagerly)

    def f(x, y):
        o.zero_grad()
        loss = functional.cross_entropy(m(x), y)
        loss.backward()
        g = [p.grad for p in m.parameters()]
        o.step()
        return loss, g

    f = capture(f)
    rs = []
    for i in range(5):
        rs.append(f(*batch(i)))
        yield rs


@replayed
def test_gradients_add_up_over_two_captured_steps(capture):
    m, o, _ = training(eagerly)

    def f(x, y):
        loss = functional.cross_entropy(m(x), y)
        loss.backward()
        return loss

    def g(x, y):
        loss = functional.cross_entropy(m(x), y)
        loss.backward()
        o.step()
        o.zero_grad()
        return loss

    f, g = capture(f), capture(g)
    for i in range(12):
        yield (g if i % 4 == 3 else f)(*batch(i))
        yield all_of(m, o, gradients=i % 5 == 4)


@replayed
def test_gradients_add_up_where_an_optimizer_has_laid_them_anew(capture):
    m, o, train = training(eagerly)

    @capture
    def add(x, y):
        loss = functional.cross_entropy(m(x), y)
        loss.backward()
        return loss

    for i in range(8):
        if i == 6:
            o.load_state_dict(o.state_dict())  # it lays them anew at its next step
        for _ in range(2):
            train(*batch(i))
        yield add(*batch(i + 1))
    yield all_of(m, o)


@replayed
def test_another_default_device(capture):
    step = capture(lambda x: x + xgrad.ones(3))
    for i in range(6):
        with xgrad.default_device("cpu"):
            yield step(array(3, seed=i))
        yield step(array(3, seed=i))


@replayed
def test_arguments_by_name_and_defaults(capture):
    step = capture(lambda x, *, y=None, k=1: x * k if y is None else x * y)
    for _i in range(3):
        yield step(array(3))
        yield step(array(3), y=array(3, seed=1))
        yield step(x=array(3), k=3)
        yield step(array(3), k=2)
        yield step(array(3), k=2.0)
        yield step(array(3), k=True)


@replayed
def test_shapes_dtypes_and_layouts(capture):
    step = capture(lambda x: (x.sum(), x * 2, x @ x.T))
    for _i in range(3):
        for x in (
            array(4, 4),
            array(4, 4).T,
            array(8, 4)[::2],
            array(4, 8)[:, ::2],
            xgrad.flip(array(4, 4)),
            array(5, 4),
            array(4, 4, dtype=np.float64),
        ):
            yield step(x)


@replayed
def test_arguments_that_overlap(capture):
    base = array(6)
    step = capture(lambda x, y: (x + y, x * y))
    for _i in range(3):
        yield step(base[:3], base[3:])
        yield step(base[:3], base[2:5])
        yield step(base[0:3], array(3))


@replayed
def test_an_argument_that_wants_a_gradient(capture):
    @capture
    def step(x):
        (x * x).sum().backward()

    x = array(3).requires_grad_()
    for _i in range(3):
        step(x)
        yield x.grad
    y = array(3, seed=2).requires_grad_()
    for _i in range(3):
        step(y)
        yield y.grad
        yield x.grad
    z = array(3)
    for _i in range(2):
        try:
            step(z)
        except RuntimeError as e:
            yield str(e)[:20]


@replayed
def test_an_argument_is_written_to(capture):
    @capture
    def step(x):
        x[0] = 1.0
        return x * 2

    for i in range(3):
        x = array(3, seed=i)
        yield step(x)
        yield x


@replayed
def test_buffers_are_assigned_to(capture):
    class BN(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", xgrad.zeros(5))

        def forward(self, x):
            if self.training:
                self.mean.data = self.mean * 0.9 + 0.1 * xgrad.mean(x, axis=0)
            return x - self.mean

    m = BN()
    step = capture(lambda x: m(x))
    for i in range(5):
        yield step(array(6, 5, seed=i))
        yield m.mean


@replayed
def test_gradients_are_set_by_hand(capture):
    m, o, _ = training(eagerly)

    @capture
    def step(x, y):
        functional.cross_entropy(m(x), y).backward()
        o.step()

    for i in range(10):
        if i % 3 == 0:
            o.zero_grad()
        if i % 3 == 1:
            m[0].weight.grad = xgrad.ones((4, 5))
        if i % 3 == 2:
            m[0].bias.grad = None
        step(*batch(i))
        yield all_of(m, o)


@replayed
def test_learning_rates_of_all_kinds(capture):
    m, o, step = training(capture, opt=lambda ps: optim.SGD(ps, lr=1))
    for i in range(8):
        o.param_groups[0]["lr"] = [1, 0, 2, np.int64(1), np.float64(0.1), np.float32(0.1), True, 0.5][i]
        yield step(*batch(i))
        yield all_of(m, o)


@replayed
def test_a_learning_rate_that_changes_in_itself(capture):
    m, o, step = training(capture, opt=lambda ps: optim.SGD(ps, lr=1))
    rate = o.param_groups[0]["lr"] = np.array(0.5)
    for i in range(6):
        rate[...] = [0.5, 0.5, 0.1, 0.0, 0.2, 0.2][i]
        yield step(*batch(i))
        yield all_of(m, o)


class Divided(optim.Optimizer):
    """Divides by an option."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1, "scale": 2.0})

    def update(self, xp, p, g, state, options):
        return p - options["lr"] / options["scale"] * g


@replayed
def test_options_that_cannot_be_computed_with(capture):
    m, o, step = training(capture, opt=Divided)
    for i in range(8):
        o.param_groups[0]["scale"] = [2.0, 2.0, 0.0, 0.0, 4.0, 4.0, 0.0, 2.0][i]
        try:
            yield step(*batch(i))
        except ZeroDivisionError as error:
            yield str(error)
        yield all_of(m, o)


@replayed
def test_gradients_are_clipped(capture):
    m, o, _ = training(eagerly)

    @capture
    def step(x, y):
        o.zero_grad()
        functional.cross_entropy(m(x), y).backward()
        n = nn.utils.clip_grad_norm_(m.parameters(), 0.1)
        o.step()
        return n

    for i in range(8):
        yield step(*batch(i))
        yield all_of(m, o, gradients=i % 3 == 0)


@replayed
def test_parameters_are_updated_by_hand(capture):
    m, _, _ = training(eagerly)

    @capture
    def step(x, y):
        m.zero_grad()
        functional.cross_entropy(m(x), y).backward()
        with xgrad.no_grad():
            for p in m.parameters():
                p -= 0.1 * p.grad

    for i in range(8):
        step(*batch(i))
        yield all_of(m)


@replayed
def test_a_generator_is_an_argument(capture):
    step = capture(lambda x, g: x * xgrad.random.rand(3, generator=g))
    a, b = xgrad.random.Generator(1), xgrad.random.Generator(2)
    for g in (a, b, a, a, b, b):
        yield step(array(3), g)


@replayed
def test_random_numbers_of_all_kinds(capture):
    xgrad.manual_seed(1)
    step = capture(lambda x: x * xgrad.random.rand(3) + xgrad.random.randint(0, 9, (3,)) + xgrad.random.randperm(3))
    for _i in range(5):
        yield step(array(3))
        yield xgrad.random.rand(2)


@replayed
def test_parameters_that_are_assigned_to_lie_otherwise_for_one_step(capture):
    """NumPy multiplies a vector by a matrix otherwise if that is transposed, to the last bit."""
    xgrad.manual_seed(0)
    m = nn.MLP([95, 82, 10])
    o = optim.SGD(m.parameters(), lr=0.1)

    @capture
    def step(x):
        o.zero_grad()
        loss = (m(x) ** 2).mean()
        loss.backward()
        o.step()
        return loss

    for i in range(12):
        if i in (4, 7, 8):
            m.load_state_dict({name: np.ascontiguousarray(value.numpy()) for name, value in m.state_dict().items()})
        if i == 10:
            m[0].weight.data = xgrad.asarray(np.ascontiguousarray(m[0].weight.detach().numpy()))
        yield step(array(1, 95, seed=i))
        yield all_of(m, o)


@replayed
def test_errors_after_parameters_have_changed(capture):
    m, o, _ = training(eagerly)

    @capture
    def step(x, y):
        o.zero_grad()
        (m(x) ** 2).mean().backward()
        o.step()
        return functional.cross_entropy(m(x), y).detach()

    for i in range(6):
        x, y = batch(i)
        try:
            yield step(x, y + 5 if i == 4 else y)
        except IndexError as error:
            yield str(error)
        yield all_of(m, o)


def test_evaluation_and_training_leave_the_weights_where_they_are():
    m, _, step = training(xgrad.capture)
    ev = xgrad.capture(xgrad.no_grad()(lambda x: m(x)))
    places = set()
    for i in range(8):
        step(*batch(i % 2))
        ev(batch(i % 2)[0])
        places.add(next(m.parameters())._data.ctypes.data)
    assert len(places) <= 2  # where it was made, and where the optimizer has laid it


@replayed
def test_one_of_each_row(capture):
    before, arange = xgrad.arange(5), xgrad.arange
    steps = {
        "of what is computed": capture(lambda x, y: (x * 2)[arange(5), y] + 1),
        "of what is given": capture(lambda x, y: x[arange(5), y]),
        "of what lies otherwise": capture(lambda x, y: (x * 2).mT[arange(3), y[:3]]),
        "of other rows": capture(lambda x, y: (x * 2)[xgrad.flip(arange(5)), y]),
        "of rows that might change": capture(lambda x, y: (x * 2)[before, y]),
        "of a view, by numbers that are computed": capture(lambda x, y: (x * 2)[1:][arange(4), (y - 1)[:4]]),
    }
    chosen = [[0, 1, 2, 1, 0], [2, 2, 2, 2, 2], [-1, -3, 0, 2, -2], [0, 0, 3, 0, 0], [0, 0, 0, -4, 0], [1, 0, 1, 2, 0]]
    for i, y in enumerate([*chosen, *chosen]):
        for step in steps.values():
            try:
                yield step(array(5, 3, seed=i), xgrad.asarray(y))
            except IndexError as error:
                yield str(error)


@replayed
def test_sums_of_pairs_are_never_less_than_0_by_their_sign(capture):
    """NumPy begins a sum with 0, so that of two -0 is 0."""
    values = [np.array(pairs) for pairs in ([[-0.0, -0.0], [-0.0, 0.0]], [[1.0, -1.0], [-0.0, np.inf]])]
    steps = [
        capture(lambda x: xgrad.sum(x * 1, axis=1)),
        capture(lambda x: xgrad.sum(x.mT * 1, axis=0, keepdims=True)),
        capture(lambda x: xgrad.sum(-xgrad.exp(-1 / xgrad.abs(x)), axis=1)),  # of exponentials, but not those alone
        capture(lambda x: xgrad.sum(xgrad.exp(x), axis=1)),
    ]
    with np.errstate(divide="ignore", over="ignore"):
        for pairs in [*values, *values]:
            for dtype in ("float32", "float64"):
                yield [step(xgrad.asarray(pairs.astype(dtype))) for step in steps]


@replayed
def test_a_long_run_of_calls_follows_a_parameter_that_moves(capture):
    p = xgrad.Tensor(array(4).numpy(), requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)

    @capture
    def step(x):
        optimizer.zero_grad()
        y = p
        for i in range(60):
            y = y * x - i / 7
        loss = y.sum()
        loss.backward()
        optimizer.step()
        return loss

    seen = []
    for i in range(6):
        yield step(array(4, seed=i) / 4)
        yield p, p.grad
        if i == 3:
            seen.append(p.detach())  # so that the parameter leaves this memory to it


def test_global_variables_of_code_are_those_that_dis_finds():
    def named(code):
        found = {
            i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")
        }
        return found.union(*(named(part) for part in code.co_consts if isinstance(part, types.CodeType)))

    many = "\n".join(f"x{i} = x{i + 1}.attribute" for i in range(600))  # more than an argument's eight bits can count
    texts = [inspect.getsource(module) for module in (dis, inspect, textwrap)]
    for text in [*texts, f"def f():\n  global x1\n{textwrap.indent(many, '  ')}"]:
        code = compile(text, "text", "exec")
        assert _globals(code) == named(code)
