"""Trainings whose steps are captured: weights, optimizers, gradients and random numbers are those of eager ones."""

import math

import numpy as np
import pytest

import xgrad
from capturing.twins import adam, all_of, array, batch, eagerly, learning, network, replays, training, twice
from xgrad import nn, optim, transforms
from xgrad.nn import functional


def test_300_steps_with_a_schedule_dropout_a_ragged_batch_and_evaluations():
    def scenario(capture):
        xgrad.manual_seed(7)
        model = network()
        optimizer = optim.Adam(model.parameters(), lr=0.02, weight_decay=0.01)
        data = [batch(i, 6 if i % 5 else 4) for i in range(15)]  # the last of five is smaller

        @capture
        def step(x, y):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y, label_smoothing=0.1)
            loss.backward()
            optimizer.step()
            return loss

        @capture
        def evaluate(x, y):
            with xgrad.no_grad():
                scores = model(x)
                return functional.cross_entropy(scores, y), xgrad.mean(
                    (xgrad.argmax(scores, axis=1) == y).astype("float32")
                )

        for i in range(300):
            rate = 0.02 * (1 + math.cos(math.pi * i / 300)) / 2
            optimizer.param_groups[0]["lr"] = [rate, np.float64(rate), np.float32(rate)][i % 3]
            model.train()
            yield step(*data[i % 15])
            if i % 10 == 9:
                model.eval()
                yield evaluate(*data[i % 4]), evaluate(*data[4])
            if i % 37 == 0 or i == 299:
                yield all_of(model, optimizer), xgrad.random._default._state

    for captured in twice(scenario):
        assert captured.refusal is None and captured.recordings <= 4


class Normalized(optim.Optimizer):
    """Sees whole parameters, and keeps a number and an array of its own making."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def update(self, xp, p, g, state, options):
        state["seen"] = xp.asarray(g, copy=True)
        state["count"] = state.get("count", 0) + 1
        return p - options["lr"] / state["count"] * g / xp.sqrt(xp.sum(g * g))


class Signs(optim.Optimizer):
    """Updates in place, elementwise, with numbers and branches on them."""

    elementwise = True

    def __init__(self, params, lr, warm=3):
        super().__init__(params, {"lr": lr, "warm": warm})

    def update(self, xp, p, g, state, options):
        state["step"] = step = state.get("step", 0) + 1
        mean = state.get("mean")
        state["mean"] = mean = g * 0.1 if mean is None else 0.9 * mean + 0.1 * g
        p -= options["lr"] * min(1.0, step / options["warm"]) * xp.sign(mean)
        return p


class Alternating(optim.Optimizer):
    """Does something else at each second step."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def update(self, xp, p, g, state, options):
        state["step"] = state.get("step", 0) + 1
        if state["step"] % 2:
            return p - options["lr"] * g
        p *= 1 - options["lr"]
        return p


OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1),
    "SGD with an int for a rate": lambda params: optim.SGD(params, lr=1),
    "SGD with momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.1),
    "SGD with nesterov": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05),
    "SGD that maximizes": lambda params: optim.SGD(params, lr=0.01, momentum=0.5, maximize=True),
    "Adam": lambda params: optim.Adam(params, lr=0.01, weight_decay=0.1),
    "Adam with a rate of numpy": lambda params: optim.Adam(params, lr=np.float32(0.01)),
    "AdamW with amsgrad": lambda params: optim.AdamW(params, lr=0.01, amsgrad=True),
    "AdamW that maximizes": lambda params: optim.AdamW(params, lr=0.01, maximize=True, betas=(0.8, 0.99)),
    "whole parameters": lambda params: Normalized(params, 0.1),
    "in place": lambda params: Signs(params, 0.05),
    "alternating": lambda params: Alternating(params, 0.05),
}


@pytest.mark.parametrize("look", ["seldom", "always"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, look):
    def scenario(capture):
        model, optimizer, step = training(capture, OPTIMIZERS[name])
        for i in range(14):
            yield step(*batch(i))
            if look == "always" or i == 13:
                yield all_of(model, optimizer)

    replays(scenario)


def test_parameters_that_are_updated_in_pieces(monkeypatch):
    monkeypatch.setattr(xgrad.Device("cpu").backend, "piece", 7)

    def scenario(capture):
        for make in (OPTIMIZERS["Adam"], OPTIMIZERS["SGD with nesterov"]):
            model, optimizer, step = training(capture, make)
            for i in range(6):
                yield step(*batch(i))
            yield all_of(model, optimizer)

    replays(scenario)


def test_groups_with_options_of_their_own():
    def scenario(capture):
        model = None

        def make(params):
            params = list(params)
            return optim.AdamW(
                [{"params": params[:2], "lr": 0.1}, {"params": params[2:], "weight_decay": 0.0}], lr=0.01
            )

        model, optimizer, step = training(capture, make)
        for i in range(10):
            optimizer.param_groups[i % 2]["lr"] *= 0.9
            yield step(*batch(i))
        yield all_of(model, optimizer)

    replays(scenario)


def test_two_optimizers_in_one_step():
    def scenario(capture):
        xgrad.manual_seed(1)
        maker, judge = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 5)), nn.MLP([5, 4, 1])
        first, second = optim.Adam(maker.parameters(), lr=0.01), optim.SGD(judge.parameters(), lr=0.05, momentum=0.5)

        @capture
        def step(real):
            made = maker(xgrad.random.randn((6, 2)))
            second.zero_grad()
            of_judge = xgrad.mean(xgrad.logaddexp(0, -judge(real)) + xgrad.logaddexp(0, judge(made.detach())))
            of_judge.backward()
            second.step()
            first.zero_grad()
            of_maker = xgrad.mean(xgrad.logaddexp(0, -judge(made)))
            of_maker.backward()
            first.step()
            return {"judge": of_judge, "maker": of_maker}

        for i in range(20):
            yield step(array(6, 5, seed=i))
        yield all_of(maker, first), all_of(judge, second), xgrad.random._default._state

    replays(scenario)


@pytest.mark.parametrize("look", [False, True])
def test_gradients_are_clipped(look):
    def scenario(capture):
        model, optimizer, _ = training(eagerly)

        @capture
        def step(x, y):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            return norm

        for i in range(10):
            yield step(*batch(i))
            if look:
                yield all_of(model)
        yield all_of(model, optimizer)

    replays(scenario)


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_gradients_add_up(look, zeros):
    def scenario(capture):
        model, optimizer, _ = training(eagerly)

        @capture
        def add(x, y):
            loss = functional.cross_entropy(model(x), y) / 3
            loss.backward()
            return loss

        @capture
        def update(x, y):
            loss = functional.cross_entropy(model(x), y) / 3
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=not zeros)
            return loss

        for i in range(18):
            yield (update if i % 3 == 2 else add)(*batch(i))
            if look and i % 4 == 1:
                yield all_of(model, optimizer)
        yield all_of(model, optimizer)

    replays(scenario)


def test_gradients_add_up_within_a_step():
    def scenario(capture):
        model, optimizer, _ = training(eagerly)

        @capture
        def step(pairs):
            optimizer.zero_grad()
            losses = []
            for x, y in pairs:
                losses.append(functional.cross_entropy(model(x), y) / len(pairs))
                losses[-1].backward()
            optimizer.step()
            return losses

        for i in range(10):
            yield step([batch(3 * i + k, 4 + k) for k in range(3)])
        yield all_of(model, optimizer)

    replays(scenario)


def test_parameters_are_updated_by_hand_and_the_loss_is_scaled():
    def scenario(capture):
        model, _, _ = training(eagerly)

        @capture
        def step(x, y, scale, rate):
            model.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            (loss * scale).backward()
            with xgrad.no_grad():
                for p in model.parameters():
                    p -= rate * (p.grad / scale)
            return loss

        for i in range(12):
            yield step(*batch(i), xgrad.asarray(2.0**i), xgrad.asarray(0.1 / (i + 1)))
            if i % 4 == 3:
                yield all_of(model)

    replays(scenario)


def test_momentum_is_switched_on_later_and_off_again():
    def scenario(capture):
        model, optimizer, step = training(capture, lambda params: optim.SGD(params, lr=0.1))
        for i in range(15):
            optimizer.param_groups[0]["momentum"] = 0.9 if 4 <= i < 10 else 0.0
            yield step(*batch(i))
        yield all_of(model, optimizer)

    replays(scenario)


def test_float64_and_a_larger_network():
    def scenario(capture):
        xgrad.manual_seed(0)
        model = nn.MLP([40, 70, 30, 2]).to(xgrad.float64)
        optimizer = adam(model.parameters())
        step = capture(learning(model, optimizer))
        for i in range(8):
            labels = xgrad.asarray(np.random.default_rng(i).integers(0, 2, 33))
            yield step(array(33, 40, seed=i, dtype=np.float64), labels)
        yield all_of(model, optimizer)

    replays(scenario)


def test_a_step_with_a_closure():
    def scenario(capture):
        model, optimizer, _ = training(eagerly)

        @capture
        def step(x, y):
            def closure():
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(x), y)
                loss.backward()
                return loss

            return optimizer.step(closure)

        for i in range(6):
            yield step(*batch(i))
        yield all_of(model, optimizer)

    replays(scenario)


def test_gradients_of_gradients():
    def scenario(capture):
        xgrad.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = adam(model.parameters())

        @capture
        def step(x):
            optimizer.zero_grad()
            x = x.detach().requires_grad_()
            (slope,) = xgrad.autograd.grad(xgrad.sum(model(x)), [x], create_graph=True)
            penalty = xgrad.mean((xgrad.sqrt(xgrad.sum(slope * slope, axis=1)) - 1) ** 2)
            penalty.backward()
            optimizer.step()
            return penalty

        for i in range(8):
            yield step(array(6, 5, seed=i))
        yield all_of(model, optimizer)

    replays(scenario)


def test_a_pure_function_and_its_gradient():
    def scenario(capture):
        def loss(params, x):
            return xgrad.sum(xgrad.tanh(x @ params["w"] + params["b"][0]))

        value, slope = capture(loss), capture(transforms.grad(loss))
        for i in range(5):
            params = {"w": array(5, 3, seed=i), "b": [array(3, seed=i + 1)]}
            yield value(params, array(6, 5, seed=i)), slope(params, array(6, 5, seed=i))

    replays(scenario, recordings=1)
