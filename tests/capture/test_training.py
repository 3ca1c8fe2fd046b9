"""Training runs with captured steps, compared with eager runs.

Weights, optimizers, gradients and random numbers have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
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
    replayed,
    training,
)
from xgrad import nn, optim
from xgrad.nn import functional


def test_300_steps_with_schedule_dropout_and_ragged_batch_take_four_traces() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, step = training(
            capture, lambda params: optim.Adam(params, lr=0.02, weight_decay=0.01)
        )
        evaluate = capture(
            xgrad.no_grad()(lambda x, y: (model(x), functional.cross_entropy(model(x), y)))
        )
        data = [batch(i, 6 if i % 5 else 4) for i in range(15)]
        for i in range(300):
            rate = 0.02 * (1 + math.cos(math.pi * i / 300)) / 2
            optimizer.param_groups[0]["lr"] = [rate, np.float64(rate), np.float32(rate)][i % 3]
            model.train()
            yield step(*data[i % 15])
            if i % 10 == 9:
                model.eval()
                yield evaluate(*data[i % 4]), evaluate(*data[4])
            if i % 37 == 0 or i == 299:
                yield everything(model, optimizer), xgrad.random.default_generator._state

    for captured in compare(scenario):
        assert captured.refusal is None and captured.recordings <= 4


def normalized(xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
    state["last"] = xp.asarray(g, copy=True)
    state["count"] = state.get("count", 0) + 1
    return p - options["lr"] / state["count"] * g / xp.sqrt(xp.sum(g * g))


def warming_up(xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
    state["step"] = step = state.get("step", 0) + 1
    mean = state.get("mean")
    state["mean"] = mean = g * 0.1 if mean is None else 0.9 * mean + 0.1 * g
    p -= options["lr"] * min(1.0, step / options["warm"]) * xp.sign(mean)
    return p


def alternating(xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
    state["step"] = state.get("step", 0) + 1
    if state["step"] % 2:
        return p - options["lr"] * g
    p *= 1 - options["lr"]
    return p


OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "SGD": lambda params: optim.SGD(params, lr=0.1),
    "SGD with int rate": lambda params: optim.SGD(params, lr=1),
    "SGD with momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.1),
    "SGD with nesterov": lambda params: optim.SGD(
        params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05
    ),
    "SGD that maximizes": lambda params: optim.SGD(params, lr=0.01, momentum=0.5, maximize=True),
    "Adam": lambda params: optim.Adam(params, lr=0.01, weight_decay=0.1),
    "Adam with float32 rate": lambda params: optim.Adam(params, lr=np.float32(0.01)),
    "AdamW with amsgrad": lambda params: optim.AdamW(params, lr=0.01, amsgrad=True),
    "AdamW that maximizes": lambda params: optim.AdamW(
        params, lr=0.01, maximize=True, betas=(0.8, 0.99)
    ),
    "whole parameters": twins.custom(normalized, lr=0.1),
    "in place": twins.custom(warming_up, elementwise=True, lr=0.05, warm=3),
    "alternating": twins.custom(alternating, lr=0.05),
    "groups": lambda params: optim.AdamW(
        [{"params": [p], "lr": 0.1 / (i + 1)} for i, p in enumerate(params)], lr=0.01
    ),
}


@pytest.mark.parametrize("look", [False, True], ids=["seldom", "always"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_replayed_has_the_bits_of_eager(name: str, look: bool) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, step = training(capture, OPTIMIZERS[name])
        for i in range(14):
            yield step(*batch(i))
            if look or i == 13:
                yield everything(model, optimizer)

    compare_replays(scenario)


@pytest.mark.parametrize("name", ["SGD with momentum", "Adam"])
@pytest.mark.parametrize("freeze", [False, True], ids=["unchanged", "frozen at step 4"])
def test_groups_of_several_buffers_are_replayed(name: str, freeze: bool) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(3)
        model = nn.MLP([300, 250, 10])  # the first weight takes more than one piece of an update
        params = list(model.parameters())
        optimizer = OPTIMIZERS[name]([{"params": params[:2], "lr": 0.03}, {"params": params[2:]}])
        step = capture(twins.training_step(model, optimizer, twins.mean_square))
        for i in range(8):
            model[0].bias.requires_grad_(not freeze or i != 4)
            yield step(xgrad.random.randn((4, 300)))
        yield everything(model, optimizer)

    compare_replays(scenario, None if freeze else 1)


@replayed
def test_two_optimizers_in_one_step_are_replayed(capture: Capture) -> Iterator[Any]:
    xgrad.manual_seed(1)
    maker, judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 5)), nn.MLP([5, 4, 1])
    first = optim.Adam(maker.parameters(), lr=0.01)
    second = optim.SGD(judge.parameters(), lr=0.05, momentum=0.5)

    judged = twins.training_step(
        judge,
        second,
        lambda real, made: xgrad.mean(xgrad.logaddexp(0, -real) + xgrad.logaddexp(0, judge(made))),
    )
    fooled = twins.training_step(
        judge, first, lambda made, _: xgrad.mean(xgrad.logaddexp(0, -made))
    )

    @capture
    def step(real: Any) -> Any:
        made = maker(xgrad.random.rand((6, 2)))
        return {"judge": judged(real, made.detach()), "maker": fooled(made)}

    for i in range(20):
        yield step(array(6, 5, seed=i))
    yield everything(maker, first), everything(judge, second), xgrad.random.default_generator._state


def scaled_by_hand(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    model.zero_grad()
    loss, scale = functional.cross_entropy(model(x), y), xgrad.mean(x * x)
    (loss * scale).backward()
    with xgrad.no_grad():
        for p in model.parameters():
            p -= 0.1 * (p.grad / scale)
    return loss


def with_closure(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return optimizer.step(closure)


def penalized(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    optimizer.zero_grad()
    x = x.detach().requires_grad_()
    (slope,) = xgrad.autograd.grad(xgrad.sum(xgrad.tanh(model(x))), [x], create_graph=True)
    penalty = xgrad.mean((xgrad.sqrt(xgrad.sum(slope * slope, axis=1) + 0.01) - 1) ** 2)
    penalty.backward()
    optimizer.step()
    return penalty


def nested_results(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = twins.training_step(model, optimizer)(x, y)
    return {"loss": loss, "twice": [2 * loss.detach()]}


def returning(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    optimizer.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    gradients = [p.grad for p in model.parameters()]
    optimizer.step()
    return gradients, list(model.parameters()), model[0].bias.detach()[1:]


KINDS = [scaled_by_hand, with_closure, penalized, nested_results, returning]


@pytest.mark.parametrize("look", [False, True], ids=["seldom", "always"])
@pytest.mark.parametrize("train", KINDS)
def test_kind_of_step_is_replayed(train: Callable[..., Any], look: bool) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, _ = training(eager)
        step = capture(lambda x, y: train(model, optimizer, x, y))
        for i in range(8):
            yield step(*batch(i)), optimizer.param_groups[0]["lr"]
            if look or i == 7:
                yield everything(model, optimizer)

    compare_replays(scenario)


HELD: list[Callable[[Any, Any], Any]] = [
    lambda p, loss: loss,
    lambda p, loss: p.detach(),
    lambda p, loss: p.grad,
    lambda p, loss: p.grad.cpu().numpy(),
    lambda p, loss: p.detach().cpu().numpy(),
    lambda p, loss: np.from_dlpack(p.detach().cpu()),
    lambda p, loss: p.data,
    lambda p, loss: p.detach().mT if p.ndim > 1 else p.detach()[1:],
]


def holding(
    calls: Callable[[int, int], bool], hidden: bool, kinds: list[Callable[[Any, Any], Any]]
) -> twins.Scenario:
    """Return a training run; after some of its calls, parameters, gradients or losses are held."""

    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, _ = training(eager)
        train = twins.training_step(model, optimizer)
        step = capture((lambda x, y: train(x, y)) if hidden else train)
        weights, held = list(model.parameters()), []
        for i in range(16):
            loss = step(*batch(i))
            for k, take in enumerate(kinds):
                if calls(i, k):
                    held += [take(p, loss) for p in weights]
            yield held
        yield everything(model, optimizer)

    return scenario


@pytest.mark.parametrize("hidden", [False, True], ids=["direct", "called"])
@pytest.mark.parametrize("kind", range(len(HELD)))
def test_arrays_held_between_steps_keep_their_values(kind: int, hidden: bool) -> None:
    for calls in ((0,), (1,), (2,), (3,), (0, 1, 2, 3), (2, 5), range(16)):

        def chosen(i: int, k: int, calls: Any = calls) -> bool:
            return i in calls

        compare_replays(holding(chosen, hidden, [HELD[kind]]))
    compare_replays(holding(lambda i, k: i % len(HELD) == k, hidden, HELD))


BEFORE: list[Callable[[Any], Any]] = [
    lambda w: w.detach(),
    lambda w: w.data,
    lambda w: w.detach()[1:],
]
BEFORE += [lambda w: None, lambda w: w.detach() * 1, lambda w: xgrad.exp(w.detach())]


@pytest.mark.filterwarnings("ignore::xgrad.capture.CaptureWarning")
@pytest.mark.parametrize("kind", range(len(BEFORE)))
def test_view_or_copy_of_a_parameter_taken_before_its_update_keeps_its_value(kind: int) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = xgrad.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        optimizer = optim.SGD([w], lr=0.1)

        @capture
        def step(x: Any) -> Any:
            before = BEFORE[kind](w)
            optimizer.zero_grad()
            (w * x).sum().backward()
            gradient = w.grad.detach()
            optimizer.step()
            return gradient if before is None else before

        for _ in range(8):
            yield step(xgrad.Tensor([1.0, 2.0, 3.0])).tolist(), w

    (captured,) = compare(scenario)
    assert kind < 3 or (captured.refusal is None and captured.recordings > 0)


@replayed
def test_parameters_assigned_with_another_layout_are_multiplied_as_eager_does(
    capture: Capture,
) -> Iterator[Any]:
    """NumPy's products of a vector and a matrix depend on the matrix's strides, in the last bit."""
    xgrad.manual_seed(0)
    model = nn.MLP([95, 82, 10])
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    step = capture(twins.training_step(model, optimizer, twins.mean_square))
    for i in range(12):
        if i in (4, 7, 8):
            state = {
                name: np.ascontiguousarray(value.cpu().numpy())
                for name, value in model.state_dict().items()
            }
            model.load_state_dict(state)
        if i == 10:
            model[0].weight.data = xgrad.asarray(
                np.ascontiguousarray(model[0].weight.detach().cpu().numpy())
            )
        yield step(array(1, 95, seed=i))
        yield everything(model, optimizer)


def test_gradients_of_two_backward_passes_in_one_step_add_up() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, _ = training(eager)

        @capture
        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            first = functional.cross_entropy(model(x), y)
            first.backward()
            second = (model(x) ** 2).mean()
            second.backward()
            optimizer.step()
            return first.detach() + second.detach()

        for i in range(8):
            # no gradient is looked at, so that all are added in the buffer of the optimizer
            yield step(*batch(i))
        yield everything(model, optimizer)

    compare_replays(scenario)


def test_optimizer_of_some_parameters_takes_over_from_one_of_all() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        model, whole, _ = training(eager)
        head = optim.SGD(model[3].parameters(), lr=0.1)

        def step(optimizer: Any) -> Callable[..., Any]:
            def train(x: Any, y: Any) -> Any:
                model.zero_grad()
                loss = functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                return loss.detach()

            return capture(train)

        pretrain, finetune = step(whole), step(head)
        for i in range(4):
            yield pretrain(*batch(i))
        for i in range(8):
            yield finetune(*batch(i)), model.state_dict()
            if i == 4:
                yield pretrain(*batch(i)), model.state_dict()

    compare(scenario)


def test_gradient_of_a_leaf_that_two_optimizers_had_packed_is_followed() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(2).requires_grad_()
        one, other = (optim.SGD([w], lr=0.1) for _ in range(2))

        def step(x: Any) -> None:
            assert one is not other
            (w * w * x).sum().backward()

        captured = capture(step)
        for i in range(6):
            if i == 2:
                one.step()
            if i == 3:
                w.grad = xgrad.zeros(2)
            captured(array(2))
            yield w.grad

    compare(scenario)


@pytest.mark.parametrize("packed", [True, False])
def test_gradient_that_a_step_changes_in_place_is_the_one_of_each_call(packed: bool) -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(2).requires_grad_()
        optimizer = optim.SGD([w], lr=0.1) if packed else None

        def step(x: Any) -> None:
            if optimizer is not None:
                optimizer.zero_grad()
                (w * x).sum().backward()
                optimizer.step()
            w.grad *= 0.5

        captured = capture(step)
        for i in range(6):
            if optimizer is None:
                w.grad = array(2, seed=i)
            captured(xgrad.ones(2) * (i + 1))
            yield w.grad.clone()
        w.grad = None
        (w * 10).sum().backward()
        yield w.grad

    compare(scenario)


def test_step_that_uses_gradients_from_before_follows_where_they_are() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(2).requires_grad_()
        optimizer = optim.SGD([w], lr=1.0)

        def consume() -> None:
            optimizer.step()
            optimizer.zero_grad()

        update, held = capture(consume), []
        for i in range(8):
            (w * (i + 1.0)).sum().backward()
            if i in (3, 5):
                held.append(w.grad)
            if i == 4:
                w.grad = xgrad.ones(2)
            update()
            yield w.detach().clone()
        yield held

    compare(scenario)


def test_tuple_of_numbers_in_the_state_of_an_update_is_followed() -> None:
    def update(xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
        a, b = state.get("ab", (0.0, 0.0))
        state["ab"] = a + 0.5, b + options["lr"]
        return p - a * b * g

    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, step = training(capture, twins.custom(update, lr=0.1))
        for i in range(6):
            yield step(*batch(i)), everything(model, optimizer)

    compare(scenario)


@pytest.mark.parametrize(
    "read", [round, str, "{:.2f}".format, lambda x: divmod(x, 0.3)[0], complex]
)
def test_number_that_an_update_rule_converts_refuses_the_capture(read: Any) -> None:
    def update(xp: Any, p: Any, g: Any, state: Any, options: Any) -> Any:
        read(options["lr"])
        return p - options["lr"] * g

    def scenario(capture: Capture) -> Iterator[Any]:
        model, optimizer, step = training(capture, twins.custom(update, lr=0.1))
        for i in range(4):
            yield step(*batch(i)), everything(model, optimizer)

    with pytest.warns(match="is read by its update rule"):
        (captured,) = compare(scenario)
    assert captured.refusal is not None


@twins.on_cpu  # CuPy raises no error for what has no Cholesky decomposition
def test_error_that_the_step_catches_refuses_the_capture() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        @capture
        def step(x: Any) -> Any:
            try:
                return xgrad.linalg.cholesky(x)
            except Exception:
                return x * 0

        for sign in (-1.0, 1.0, -1.0, 1.0):
            yield step(sign * xgrad.eye(2))

    with pytest.warns(match="raises LinAlgError"):
        (captured,) = compare(scenario)
    assert captured.refusal is not None


class Table(xgrad.Function):
    """A function whose result is an array from elsewhere."""

    values = np.zeros(3, np.float32)

    @staticmethod
    def forward(xp: Any, x: Any) -> Any:
        return Table.values

    @staticmethod
    def backward(xp: Any, g: Any) -> Any:
        return g


def test_array_from_elsewhere_that_a_rule_returns_refuses_the_capture() -> None:
    def scenario(capture: Capture) -> Iterator[Any]:
        step = capture(lambda x: Table()(x) * 1)
        for i in range(3):
            Table.values = np.full(3, i, np.float32)
            yield step(array(3))

    with pytest.warns(match="neither an argument"):
        (captured,) = compare(scenario)
    assert captured.refusal is not None
