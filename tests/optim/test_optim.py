"""Optimizers: steps and defaults compared with PyTorch, convergence to known minima, errors."""

from __future__ import annotations

import copy
import pickle
import re
from inspect import signature

import numpy as np
import pytest

import xgrad
from helpers import check_error
from optim.optimizer_cases import NAMES, OPTIONS, kind
from xgrad import nn
from xgrad.optim import (
    ASGD,
    LBFGS,
    SGD,
    Adadelta,
    Adafactor,
    Adam,
    AdamW,
    Muon,
    Optimizer,
    RMSprop,
    Rprop,
)

SHAPES = ((3, 4), (), (5,))


def gradients(steps: int) -> list[list[np.ndarray]]:
    generator = np.random.default_rng(1)
    return [
        [generator.normal(size=shape) * 10.0 ** generator.integers(-3, 2) for shape in SHAPES]
        for _ in range(steps)
    ]


def parameters(device: str = "cpu", dtype=xgrad.float32) -> list[xgrad.Tensor]:
    generator = np.random.default_rng(0)
    return [
        xgrad.asarray(generator.normal(size=shape), device=device, dtype=dtype, requires_grad=True)
        for shape in SHAPES
    ]


def give(params, grads) -> None:
    for p, g in zip(params, grads, strict=True):
        p.grad = None if g is None else xgrad.asarray(g, device=p.device, dtype=p.dtype)


def run(optimizer, params, grads) -> None:
    for each in grads:
        give(params, each)
        optimizer.step()


@pytest.mark.parametrize(
    ("name", "options"), [(n, {**o, "lr": 0.05}) for n, o in OPTIONS if n not in ("Lion", "Muon")]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_step_matches_pytorch(name, options, dtype, device, torch, pytorch_dtype):
    pytorch_dtype(dtype)
    ours = parameters(device, getattr(xgrad, dtype))
    others = [
        torch.tensor(p.tolist(), dtype=getattr(torch, dtype), requires_grad=True) for p in ours
    ]
    optimizer = kind(name)(ours, **options)
    reference = getattr(torch.optim, name)(others, foreach=False, **options)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for step, grads in enumerate(gradients(8)):
        if step == 3:  # one without a gradient: its step does not count
            grads[1] = None
        if step == 5:  # a schedule
            optimizer.param_groups[0]["lr"] = reference.param_groups[0]["lr"] = 0.01
        give(ours, grads)
        for q, g in zip(others, grads, strict=True):
            q.grad = None if g is None else torch.tensor(g, dtype=q.dtype)
        optimizer.step()
        reference.step()
        for p, q in zip(ours, others, strict=True):
            assert p.dtype == dtype
            assert str(p.device) == device
            assert type(p._data) is p.device.array_type
            np.testing.assert_allclose(p.tolist(), q.tolist(), tolerance, tolerance)


def test_defaults_match_pytorch(torch):
    for name in {*NAMES, "LBFGS"} - {"Lion"}:
        others = getattr(torch.optim, name)([torch.ones((1, 1), requires_grad=True)]).defaults
        ours = kind(name)([xgrad.ones((1, 1), requires_grad=True)]).defaults
        assert ours == {key: others[key] for key in ours}
        lacking = {"foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"}
        assert others.keys() - ours.keys() <= lacking


def parabola(x):
    return ((x - xgrad.asarray([3.0, -2.0], dtype=x.dtype)) ** 2).sum()


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


PROBLEMS = {
    "parabola": (parabola, [0.0, 0.0], [3.0, -2.0]),
    "rosenbrock": (rosenbrock, [-0.5, 0.5], [1.0, 1.0]),
}
TABLE = {
    ("SGD", "parabola"): ({"lr": 0.1}, 100),
    ("SGD", "rosenbrock"): ({"lr": 1e-3, "momentum": 0.9, "nesterov": True}, 3000),
    ("Adam", "parabola"): ({"lr": 0.2}, 200),
    ("Adam", "rosenbrock"): ({"lr": 0.05}, 1500),
    ("AdamW", "parabola"): ({"lr": 0.2, "weight_decay": 1e-5}, 200),
    ("AdamW", "rosenbrock"): ({"lr": 0.05, "weight_decay": 1e-5, "amsgrad": True}, 1500),
}


@pytest.mark.parametrize(("name", "problem"), TABLE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_optimizers_converge(name, problem, dtype):
    fn, start, end = PROBLEMS[problem]
    options, steps = TABLE[name, problem]
    x = xgrad.asarray(start, dtype=getattr(xgrad, dtype), requires_grad=True)
    optimizer = kind(name)([x], **options)
    for _ in range(steps):
        optimizer.zero_grad()
        fn(x).backward()
        optimizer.step()
    np.testing.assert_allclose(x.tolist(), end, atol=0.02)
    assert x.dtype == dtype


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Muon"])
def test_numpy_scalars_as_options_do_not_promote(name):
    params = parameters()
    defaults = kind(name)(params).defaults
    options = {key: np.float64(value) for key, value in defaults.items() if type(value) is float}
    options |= {"betas": (np.float64(0.9), np.float64(0.99))} if "betas" in defaults else {}
    optimizer = kind(name)(params, **options)
    for grads in gradients(2):
        give(params, grads)
        optimizer.param_groups[0]["lr"] *= np.float64(0.5)
        optimizer.step()
    assert {p.dtype for p in params} == {xgrad.float32}
    assert {
        x.dtype
        for s in optimizer.state_dict()["state"].values()
        for x in s.values()
        if isinstance(x, xgrad.Tensor)
    } <= {xgrad.float32}


def test_state_dict_has_numbers_and_tensors_and_can_be_pickled(device):
    params = parameters(device)
    optimizer = Adam(params, lr=0.1)
    run(optimizer, params, [[*gradients(1)[0][:2], None]])
    state = optimizer.state_dict()
    assert list(state["state"]) == [0, 1]
    assert state["state"][0]["step"] == 1
    assert state["state"][0]["exp_avg"].shape == (3, 4)
    assert str(state["state"][0]["exp_avg"].device) == device
    assert state["param_groups"] == [{**optimizer.defaults, "params": [0, 1, 2]}]
    restored = pickle.loads(pickle.dumps(state))
    optimizer.load_state_dict(restored)
    assert repr(optimizer.state_dict()) == repr(state)


def test_copies_of_model_and_optimizer_are_independent():
    net = nn.Linear(2, 2)
    optimizer = Adam(net.parameters(), lr=0.1)
    for restore in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        net(xgrad.ones((1, 2))).sum().backward()
        optimizer.step()
        twin, other = restore((net, optimizer))
        before = net.weight.tolist()
        twin(xgrad.ones((1, 2))).sum().backward()
        other.step()
        assert net.weight.tolist() == before
        assert twin.weight.tolist() != before
        assert (
            other.state_dict()["state"][0]["step"] == optimizer.state_dict()["state"][0]["step"] + 1
        )


def test_state_that_does_not_match_is_refused_and_changes_nothing():
    params = parameters()
    optimizer = Adam(params, lr=0.1)
    run(optimizer, params, gradients(1))
    good = optimizer.state_dict()
    (group,), first = good["param_groups"], good["state"][0]
    for state, error, text in [
        (
            Adam(params[:2]).state_dict(),
            ValueError,
            r"expected groups with .* parameters: \[3\], got \[2\]",
        ),
        (
            SGD(params).state_dict(),
            ValueError,
            r"expected the options \['amsgrad', .* in group 0, got .*'nesterov'",
        ),
        (
            good | {"state": {7: {}}},
            ValueError,
            r"expected state of the parameters \[0, 1, 2\], got state of \[7\]",
        ),
        (
            good | {"state": {0: {"exp_avg": xgrad.ones(2)}}},
            ValueError,
            r"'exp_avg' of parameter 0 of shape \(3, 4\)",
        ),
        (
            good | {"state": {0: first | {"exp_avg": np.zeros(7)}}},
            ValueError,
            r"of shape \(3, 4\), got \(7,\)",
        ),
        (
            good | {"state": {0: {"step": 3}}},
            ValueError,
            r"expected \['exp_avg', 'exp_avg_sq'\] in the state of",
        ),
        (good | {"state": {0: 5}}, TypeError, "expected mappings for the groups and for the state"),
        ({"state": {}}, TypeError, "expected a mapping with 'state' and 'param_groups'"),
        ([], TypeError, "expected a mapping with 'state' and 'param_groups'"),
        (good | {"param_groups": [group | {"lr": -1.0}]}, ValueError, "Adam: expected lr to be"),
        (good | {"param_groups": [{"lr": 1.0}]}, ValueError, "expected 'params' in every group"),
    ]:
        with pytest.raises(error, match=text):
            optimizer.load_state_dict(state)
        assert repr(optimizer.state_dict()) == repr(good)


def test_loaded_arrays_are_copied(device):
    p = parameters(device)[0]
    optimizer = Adam([p])
    array = np.zeros(p.shape, np.float32)
    state = {0: {"step": 1, "exp_avg": array, "exp_avg_sq": np.ones(p.shape, np.float32)}}
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
    run(optimizer, [p], [gradients(1)[0][:1]])
    assert not array.any()


def test_state_follows_a_parameter_to_another_device_and_dtype(device):
    grads, reference = gradients(4), parameters()
    optimizer = Adam(reference, lr=0.1, amsgrad=True)
    moving = parameters()
    follower = Adam(moving, lr=0.1, amsgrad=True)
    run(optimizer, reference, grads)
    run(follower, moving, grads[:2])
    for p in moving:
        p.data = p.detach().to(device, dtype=xgrad.float64)
    run(follower, moving, grads[2:])
    for p, q in zip(moving, reference, strict=True):
        assert (p.dtype, str(p.device)) == (xgrad.float64, device)
        np.testing.assert_allclose(p.tolist(), q.tolist(), 1e-5, 1e-5)
    assert str(follower.state_dict()["state"][0]["exp_avg"].device) == device


def test_groups_have_their_own_options():
    a, b = parameters()[:2]
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5, "momentum": 0.5}], lr=0.1)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5]
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0.5]
    c = xgrad.ones(2, requires_grad=True)
    optimizer.add_param_group({"params": iter([c]), "lr": 1.0})
    c.grad = xgrad.ones(2)
    optimizer.step()
    assert c.tolist() == [0, 0]
    assert repr(optimizer).splitlines()[2].startswith("SGD(lr=1.0, momentum=0.0, ")
    assert repr(optimizer).splitlines()[2].endswith("maximize=False, 1 parameters)")
    state = optimizer.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0], [1], [2]]
    optimizer.param_groups[2]["lr"] = 9.0
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[2]["lr"] == 1.0
    assert optimizer.param_groups[2]["params"][0] is c


def test_parameters_without_a_gradient_are_not_updated():
    a = xgrad.ones(2, requires_grad=True)
    b = xgrad.ones(2, requires_grad=True)
    frozen = xgrad.ones(2)
    for optimizer in (SGD([a, b, frozen], 0.1, weight_decay=1.0), AdamW([a, b, frozen])):
        a.grad = xgrad.ones(2)
        optimizer.step()
        assert b.tolist() == frozen.tolist() == [1, 1]
        assert list(optimizer.state_dict()["state"]) == [0]


def test_zero_grad_clears_or_zeroes_and_leaves_gradients_that_were_read(device):
    a, b = (xgrad.ones(2, device=device, requires_grad=True) for _ in range(2))
    optimizer = SGD([a, b], 0.1)
    (a * 2).sum().backward()
    held = a.grad
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0, 0]
    assert str(a.grad.device) == device
    assert b.grad is None
    assert held.tolist() == [2, 2]
    optimizer.zero_grad()
    assert a.grad is None


def test_closure_is_recorded_under_no_grad():
    x = xgrad.ones(2, requires_grad=True)
    optimizer = SGD([x], 0.25)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with xgrad.no_grad():
        assert optimizer.step(closure).item() == 2
    assert x.tolist() == [0.5, 0.5]
    assert optimizer.step() is None


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Muon"])
def test_step_writes_neither_to_copies_nor_to_gradients(name):
    x = xgrad.ones(3, requires_grad=True)
    optimizer = kind(name)([x], lr=0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    old, shared, grad = x.detach().clone(), x.detach(), xgrad.asarray([1.0, 2.0, 3.0])
    for _ in range(3):
        x.grad = grad
        optimizer.step()
    assert old.tolist() == [1, 1, 1] != shared.tolist() == x.tolist()
    assert grad.tolist() == [1, 2, 3]
    assert x.requires_grad
    assert x.is_leaf


class Untyped:
    def __iter__(self):
        return iter([1.0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: SGD([], 0.1),
            ValueError,
            "SGD: expected parameters, got none: does the model have any",
        ),
        (lambda x: SGD([{"params": []}], 0.1), ValueError, "SGD: expected parameters, got none"),
        (
            lambda x: SGD(nn.ReLU().parameters(), 0.1),
            ValueError,
            "SGD: expected parameters, got none",
        ),
        (
            lambda x: Adam(x),
            TypeError,
            r"Adam: expected an iterable .*model.parameters\(\), got Tensor",
        ),
        (lambda x: Adam(nn.Linear(2, 2)), TypeError, r"Adam: expected an iterable .*, got Linear"),
        (
            lambda x: Adam({"params": [x]}),
            TypeError,
            "Adam: expected an iterable of tensors or of groups.*, got dict",
        ),
        (
            lambda x: Adam(Untyped()),
            TypeError,
            "Adam: expected tensors as parameters, got float at 0",
        ),
        (
            lambda x: Adam([x, {"params": [x]}]),
            TypeError,
            "Adam: expected tensors as parameters, got dict at 1",
        ),
        (
            lambda x: Adam([{"params": [x]}, x]),
            TypeError,
            "Adam: expected groups that are dicts with 'params', got",
        ),
        (
            lambda x: Adam([{"lr": 1.0}]),
            TypeError,
            "Adam: expected groups that are dicts with 'params', got",
        ),
        (
            lambda x: Adam([x, x]),
            ValueError,
            "Adam: expected each parameter once, got the one at 1",
        ),
        (
            lambda x: Adam([{"params": x}, {"params": x}]),
            ValueError,
            "Adam: expected each parameter once",
        ),
        (
            lambda x: Adam([x * 2]),
            ValueError,
            "Adam: expected leaves as parameters, got one from multiply at 0",
        ),
        (
            lambda x: Adam([{"params": x, "momentum": 1.0}]),
            ValueError,
            r"Adam: expected options of .*\['momentum'\]",
        ),
        (
            lambda x: SGD([x], lr=-0.1),
            ValueError,
            r"SGD: expected lr to be a number of 0 or more, got -0\.1",
        ),
        (
            lambda x: SGD([x], lr="fast"),
            ValueError,
            "SGD: expected lr to be a number of 0 or more, got 'fast'",
        ),
        (lambda x: SGD([x], lr=float("nan")), ValueError, "SGD: expected lr to be a number"),
        (lambda x: SGD([{"params": x, "lr": -1}]), ValueError, "SGD: expected lr to be a number"),
        (
            lambda x: SGD([x], momentum=-1),
            ValueError,
            "SGD: expected momentum to be a number of 0 or more, got -1",
        ),
        (lambda x: SGD([x], weight_decay=-1), ValueError, "SGD: expected weight_decay to be"),
        (
            lambda x: SGD([x], nesterov=True),
            ValueError,
            "expected momentum above 0 and no dampening with nesterov",
        ),
        (
            lambda x: SGD([x], momentum=0.9, dampening=0.1, nesterov=True),
            ValueError,
            r"momentum 0.9 and dampening 0",
        ),
        (
            lambda x: SGD([x], momentum=0.9, dampening=float("nan")),
            ValueError,
            "expected dampening to be a number",
        ),
        (
            lambda x: Adam([x], betas=(0.9, 1.0)),
            ValueError,
            r"Adam: expected betas\[1\] to be .* below 1, got 1\.0",
        ),
        (
            lambda x: Adam([x], betas=0.9),
            ValueError,
            "Adam: expected betas to be two numbers, got 0.9",
        ),
        (lambda x: Adam([x], eps=-1e-8), ValueError, "Adam: expected eps to be"),
        (lambda x: AdamW([x], weight_decay=-1), ValueError, "AdamW: expected weight_decay to be"),
        (
            lambda x: RMSprop([x], alpha=-1),
            ValueError,
            "RMSprop: expected alpha to be a number of 0 or more, got -1",
        ),
        (
            lambda x: Adadelta([x], rho=1.0),
            ValueError,
            r"Adadelta: expected rho to be .* below 1, got 1\.0",
        ),
        (
            lambda x: Muon([x]),
            ValueError,
            r"Muon: expected parameters with two axes, got shape \(2,\) at 0",
        ),
        (
            lambda x: Muon([x], ns_steps=2.0),
            ValueError,
            r"Muon: expected ns_steps to be an int from 0 to 99, got 2\.0",
        ),
        (
            lambda x: Muon([x], ns_coefficients=(1, 2)),
            ValueError,
            r"ns_coefficients to be three numbers, got \(1, 2\)",
        ),
        (
            lambda x: Muon([x], adjust_lr_fn="x"),
            ValueError,
            "expected adjust_lr_fn to be one of .*, got 'x'",
        ),
        (
            lambda x: Rprop([x], etas=(1.0, 1.2)),
            ValueError,
            r"Rprop: expected etas to be a number between 0 and 1 and one above 1, got \(1.0, 1.2",
        ),
        (
            lambda x: Rprop([x], maximize=1),
            TypeError,
            "Rprop: expected maximize to be True or False, got 1",
        ),
        (
            lambda x: Adam([{"params": [x], "amsgrad": "no"}]),
            TypeError,
            "Adam: expected amsgrad to be True or False, got 'no'",
        ),
        (lambda x: Rprop([x], etas=0.5), ValueError, "Rprop: expected etas to be two numbers"),
        (
            lambda x: Rprop([x], step_sizes=(1.0, 0.5)),
            ValueError,
            r"Rprop: expected step_sizes to be a smallest and a largest one, got \(1.0, 0.5\)",
        ),
        (lambda x: ASGD([x], alpha="x"), ValueError, "ASGD: expected alpha to be a number, got"),
        (
            lambda x: Adafactor([x], beta2_decay=0.1),
            ValueError,
            "Adafactor: expected beta2_decay to be a number of at most 0, got 0.1",
        ),
        (
            lambda x: Adafactor([x], d=0.5),
            ValueError,
            "Adafactor: expected d to be a number of at least 1, got 0.5",
        ),
        (
            lambda x: Adafactor([x], eps=1e-3),
            ValueError,
            "Adafactor: expected eps to be a number or None, and a number, got 0.001",
        ),
        (
            lambda x: Adafactor([x], eps=(None, -1)),
            ValueError,
            r"Adafactor: expected eps\[1\] to be a number of 0 or more, got -1",
        ),
        (
            lambda x: LBFGS([x], max_iter=0),
            ValueError,
            "LBFGS: expected max_iter to be an int above 0, got 0",
        ),
        (
            lambda x: LBFGS([x], line_search_fn="armijo"),
            ValueError,
            "None or 'strong_wolfe', got 'armijo'",
        ),
        (
            lambda x: LBFGS([{"params": x}, {"params": x + 0}]),
            ValueError,
            "LBFGS: expected one group of parameters",
        ),
        (
            lambda x: LBFGS([x]).step(),
            TypeError,
            "LBFGS.step: expected a closure that computes the loss",
        ),
    ],
)
def test_invalid_parameters_and_options_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(xgrad.ones(2, requires_grad=True))


@pytest.mark.parametrize("kind", [kind(name) for name in NAMES] + [LBFGS])
def test_hyperparameter_of_another_type_is_refused_by_name(kind):
    defaults = {
        name: x.default
        for name, x in signature(kind).parameters.items()
        if type(x.default) in (int, float)
    }
    for name, default in defaults.items():
        for value in ("x", str(default), None, [default]):
            with pytest.raises(
                ValueError,
                match=rf"^{kind.__name__}: expected .*\b{name}\b.*, got {re.escape(repr(value))}",
            ):
                kind([xgrad.ones((2, 2), requires_grad=True)], **{name: value})
    assert "lr" in defaults


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Muon"])
def test_choices_of_an_implementation_are_accepted_where_they_are_not_made(name, torch):
    choices = {"foreach": None, "fused": False, "capturable": False, "differentiable": False}
    x = xgrad.ones(2, requires_grad=True)
    optimizer = kind(name)([{"params": x, "foreach": None}], **choices)
    assert not optimizer.param_groups[0].keys() & choices.keys()
    known = signature(getattr(torch.optim, name, None) or kind(name)).parameters
    for key in choices:
        check_error(
            f"kind([x], {key}=True)",
            f"ValueError: {name}: expected {key} to be False or None, got True: leave it out",
            kind=kind(name),
            x=x,
        )
        check_error(
            f"kind([dict(params=x, {key}=1)])",
            f"ValueError: {name}: expected {key} to be False or None, got 1",
            kind=kind(name),
            x=x,
        )
    check_error(
        "kind([x], fuse=False)",
        f"TypeError: {name}: got an unexpected keyword argument 'fuse'",
        kind=kind(name),
        x=x,
    )
    assert {*choices} >= known.keys() & {"foreach", "fused", "capturable", "differentiable"}


@pytest.mark.parametrize("name", NAMES)
def test_tensor_as_learning_rate_is_read_at_each_step(name):
    params = [xgrad.ones((2, 2), requires_grad=True) for _ in range(2)]
    rate = xgrad.tensor(0.5)
    optimizers = kind(name)(params[:1], lr=rate), kind(name)(params[1:], lr=0.5)
    for lr in (0.5, 0.25):
        rate.fill_(lr)
        optimizers[1].param_groups[0]["lr"] = lr
        for p, optimizer in zip(params, optimizers, strict=True):
            optimizer.zero_grad()
            ((p - 0.5) ** 3).sum().backward()
            optimizer.step()
    assert params[0].tolist() == params[1].tolist()
    with pytest.raises(ValueError, match=f"{name}: expected lr to be a number of 0 or more"):
        kind(name)(params[:1], lr=xgrad.ones(2))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Muon"])
def test_parameters_of_odd_shapes_are_updated_and_their_state_is_loaded(name):
    shapes = [(0, 3), (2, 0), (0,), (), (1, 1), (2, 3, 4, 5)]
    params = [xgrad.ones(shape, requires_grad=True) for shape in shapes]
    optimizer = kind(name)(params, lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        sum(((p - 2) ** 2).sum() for p in params).backward()
        optimizer.step()
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert [p.shape for p in params] == shapes
    values = params[3].item(), *params[5].ravel().tolist()
    assert all(1 < x < 4 for x in values)
    state = optimizer.state_dict()
    required = {*kind(name).required_state, *optimizer.state_shapes(params[-1])} - {"step"}
    for key in required if len(state["state"][5]) > 1 else ():
        lacking = copy.deepcopy(state)
        del lacking["state"][5][key]
        check_error(
            "o.load_state_dict(lacking)",
            f"ValueError: {name}.load_state_dict: expected ['{key}'] in the state of parameter 5",
            o=optimizer,
            lacking=lacking,
        )


def test_refused_group_is_not_added():
    x, y = xgrad.ones(2, requires_grad=True), xgrad.ones(2, requires_grad=True)
    optimizer = SGD([x], 0.1)
    with pytest.raises(ValueError, match="expected lr"):
        optimizer.add_param_group({"params": [y], "lr": -1})
    assert len(optimizer.param_groups) == 1
    optimizer.add_param_group({"params": [y]})


def test_optimizer_without_update_is_refused():
    x = xgrad.ones(2, requires_grad=True)
    x.grad = xgrad.ones(2)
    with pytest.raises(
        NotImplementedError, match="Optimizer: expected a method update, found none: define it"
    ):
        Optimizer([x], {}).step()
