"""Schedules: learning rates and momenta compared with PyTorch, states, and errors.

Captured steps that follow a schedule are compared with eager ones.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error
from xgrad import optim
from xgrad.capture import CaptureWarning
from xgrad.optim import lr_scheduler
from xgrad.optim.lr_scheduler import LRScheduler

#: Functions of an optimizer and a module, xgrad's or PyTorch's, that return a schedule.
SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda o, m: m.LambdaLR(o, lambda epoch: 0.95**epoch),
    "LambdaLR of groups": lambda o, m: m.LambdaLR(
        o, [lambda epoch: 0.95**epoch, lambda epoch: 1 / (1 + epoch)]
    ),
    "MultiplicativeLR": lambda o, m: m.MultiplicativeLR(o, lambda epoch: 1 - 0.5 / epoch),
    "MultiplicativeLR of groups": lambda o, m: m.MultiplicativeLR(
        o, [lambda epoch: 0.95, lambda epoch: 1.01]
    ),
    "StepLR": lambda o, m: m.StepLR(o, 30),
    "StepLR by 0.5": lambda o, m: m.StepLR(o, 7, gamma=0.5),
    "MultiStepLR": lambda o, m: m.MultiStepLR(o, [0, 10, 40, 40, 70], gamma=0.5),
    "ExponentialLR": lambda o, m: m.ExponentialLR(o, 0.97),
    "LinearLR": lambda o, m: m.LinearLR(o),
    "LinearLR to 0": lambda o, m: m.LinearLR(o, start_factor=0.9, end_factor=0.0, total_iters=60),
    "ConstantLR": lambda o, m: m.ConstantLR(o),
    "ConstantLR for 20": lambda o, m: m.ConstantLR(o, factor=0.1, total_iters=20),
    "PolynomialLR": lambda o, m: m.PolynomialLR(o, total_iters=50),
    "PolynomialLR of power 2.5": lambda o, m: m.PolynomialLR(o, total_iters=80, power=2.5),
    "CosineAnnealingLR": lambda o, m: m.CosineAnnealingLR(o, 100),
    "CosineAnnealingLR that rises": lambda o, m: m.CosineAnnealingLR(o, 30, eta_min=1e-3),
    "CosineAnnealingWarmRestarts": lambda o, m: m.CosineAnnealingWarmRestarts(o, 13),
    "CosineAnnealingWarmRestarts doubled": lambda o, m: m.CosineAnnealingWarmRestarts(
        o, 10, T_mult=2, eta_min=1e-3
    ),
    "OneCycleLR": lambda o, m: m.OneCycleLR(o, max_lr=1.0, total_steps=100),
    "OneCycleLR of epochs": lambda o, m: m.OneCycleLR(
        o, max_lr=[1.0, 0.3], epochs=11, steps_per_epoch=10
    ),
    "OneCycleLR of three phases": lambda o, m: m.OneCycleLR(
        o,
        1.0,
        120,
        pct_start=0.4,
        anneal_strategy="linear",
        three_phase=True,
        base_momentum=0.5,
        div_factor=10.0,
    ),
    "OneCycleLR without momentum": lambda o, m: m.OneCycleLR(
        o, 1.0, 100, cycle_momentum=False, final_div_factor=10.0
    ),
    "CyclicLR": lambda o, m: m.CyclicLR(o, 0.1, 1.0, 7),
    "CyclicLR of halves": lambda o, m: m.CyclicLR(
        o, [0.1, 0.2], [1.0, 0.5], 5.5, 9, "triangular2", base_momentum=0.5, max_momentum=0.99
    ),
    "CyclicLR that shrinks": lambda o, m: m.CyclicLR(o, 0.1, 1.0, 9, 3, "exp_range", gamma=0.98),
    "CyclicLR by a function": lambda o, m: m.CyclicLR(
        o, 0.1, 1.0, 6, scale_fn=lambda x: 1 / x, cycle_momentum=False
    ),
    "CyclicLR by a function of steps": lambda o, m: m.CyclicLR(
        o, 0.1, 1.0, 6, scale_fn=lambda x: 0.99**x, scale_mode="iterations"
    ),
    "SequentialLR": lambda o, m: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=10), m.CosineAnnealingLR(o, 90)], milestones=[10]
    ),
    "SequentialLR of three": lambda o, m: m.SequentialLR(
        o, [m.ConstantLR(o, 0.1), m.ExponentialLR(o, 0.9), m.StepLR(o, 5)], milestones=[20, 50]
    ),
    "SequentialLR of products": lambda o, m: m.SequentialLR(
        o,
        [m.StepLR(o, 3, 0.5), m.MultiplicativeLR(o, lambda epoch: 0.9), m.PolynomialLR(o, 30)],
        milestones=[8, 30],
    ),
    "SequentialLR from products": lambda o, m: m.SequentialLR(
        o, [m.MultiplicativeLR(o, lambda epoch: 0.9), m.ExponentialLR(o, 0.8)], milestones=[8]
    ),
    "SequentialLR with restarts": lambda o, m: m.SequentialLR(
        o,
        [m.LinearLR(o, 0.1, total_iters=10), m.CosineAnnealingWarmRestarts(o, 20)],
        milestones=[10],
    ),
    "ChainedScheduler": lambda o, m: m.ChainedScheduler(
        [m.ConstantLR(o, 0.1, 20), m.ExponentialLR(o, 0.95)]
    ),
    "ChainedScheduler of three": lambda o, m: m.ChainedScheduler(
        [m.LinearLR(o, 0.1, total_iters=10), m.CosineAnnealingLR(o, 40), m.StepLR(o, 30, 0.5)]
    ),
    "ReduceLROnPlateau": lambda o, m: m.ReduceLROnPlateau(o, factor=0.5, patience=3),
    "ReduceLROnPlateau of a maximum": lambda o, m: m.ReduceLROnPlateau(
        o, "max", patience=2, threshold=0.1, threshold_mode="abs", cooldown=4, min_lr=[1e-3, 1e-4]
    ),
}
STEPS = 100
METRICS = np.cumsum(np.random.default_rng(0).normal(size=STEPS)) - np.arange(STEPS) / 5


def started(library: Any, name: str) -> tuple[Any, Any]:
    """Return an optimizer of two groups of xgrad or PyTorch, and its schedule."""
    tensors = [library.ones(2, requires_grad=True) for _ in range(2)]
    groups = [{"params": tensors[:1]}, {"params": tensors[1:], "lr": 0.1}]
    if ("OneCycleLR" in name or name == "CyclicLR") and "three" not in name:
        optimizer = library.optim.Adam(groups, lr=0.5)
    else:
        optimizer = library.optim.SGD(groups, lr=0.5, momentum=0.9)
    return optimizer, SCHEDULES[name](optimizer, library.optim.lr_scheduler)


def advance(schedule: Any, i: int) -> None:
    if "Plateau" in type(schedule).__name__:
        schedule.step(METRICS[i])
    else:
        schedule.step()


def settings(optimizer: Any) -> list[float]:
    """Return the learning rates and momenta of an optimizer."""
    return [
        x for g in optimizer.param_groups for x in (g["lr"], *(g.get("betas") or (g["momentum"],)))
    ]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_rates_and_momenta_match_pytorch(name, torch):
    (optimizer, schedule), (reference, other) = started(xgrad, name), started(torch, name)
    for i in range(STEPS):
        assert settings(optimizer) == pytest.approx(settings(reference), 1e-12, 1e-15), i
        assert schedule.get_last_lr() == pytest.approx(
            [float(lr) for lr in other.get_last_lr()], 1e-12, 1e-15
        ), i
        advance(schedule, i)
        advance(other, i)
    assert all(type(x) in (int, float) for x in settings(optimizer))


#: The same schedules with the number of the last epoch.
CONTINUED: dict[str, Callable[[Any, Any, int], Any]] = {
    "LambdaLR": lambda o, m, k: m.LambdaLR(o, lambda epoch: 0.95**epoch, last_epoch=k),
    "MultiplicativeLR": lambda o, m, k: m.MultiplicativeLR(
        o, lambda epoch: 1 - 0.5 / epoch, last_epoch=k
    ),
    "StepLR": lambda o, m, k: m.StepLR(o, 4, 0.5, last_epoch=k),
    "MultiStepLR": lambda o, m, k: m.MultiStepLR(o, [0, 4, 4, 8, 11], 0.5, last_epoch=k),
    "ConstantLR": lambda o, m, k: m.ConstantLR(o, 0.3, 4, last_epoch=k),
    "LinearLR": lambda o, m, k: m.LinearLR(o, 0.3, 0.8, 9, last_epoch=k),
    "ExponentialLR": lambda o, m, k: m.ExponentialLR(o, 0.9, last_epoch=k),
    "PolynomialLR": lambda o, m, k: m.PolynomialLR(o, 9, 2.0, last_epoch=k),
    "CosineAnnealingLR": lambda o, m, k: m.CosineAnnealingLR(o, 7, 1e-2, last_epoch=k),
    "CosineAnnealingWarmRestarts": lambda o, m, k: m.CosineAnnealingWarmRestarts(
        o, 5, eta_min=1e-2, last_epoch=k
    ),
    "OneCycleLR": lambda o, m, k: m.OneCycleLR(o, 1.0, 80, last_epoch=k),
    "CyclicLR": lambda o, m, k: m.CyclicLR(o, 0.01, 1.0, 5, 7, "triangular2", last_epoch=k),
}


@pytest.mark.parametrize("name", CONTINUED)
@pytest.mark.parametrize("last", [0, 3, 4, 6, 7, 10])
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_schedule_with_a_last_epoch_continues_as_in_pytorch(name, last, torch):
    optimizer, reference = started(xgrad, "StepLR")[0], started(torch, "StepLR")[0]
    for group in (*optimizer.param_groups, *reference.param_groups):
        del group["initial_lr"]
    for k in (-1, last):
        schedule = CONTINUED[name](optimizer, lr_scheduler, k)
        other = CONTINUED[name](reference, torch.optim.lr_scheduler, k)
        for i in range(last if k < 0 else 50):
            assert settings(optimizer) == pytest.approx(settings(reference), 1e-12, 1e-15), (k, i)
            if i == 20:  # changed by hand
                for group in (*optimizer.param_groups, *reference.param_groups):
                    group["lr"] *= 3
            schedule.step()
            other.step()
    assert schedule.last_epoch == other.last_epoch


@pytest.mark.parametrize("restarts", [(13,), (10, 2), (3, 3)])
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_warm_restarts_go_to_an_epoch_as_in_pytorch(restarts, torch):
    optimizer, reference = started(xgrad, "StepLR")[0], started(torch, "StepLR")[0]
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, *restarts, eta_min=1e-3)
    other = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(reference, *restarts, eta_min=1e-3)
    for epoch in (0.25, 0.5, 2, 7.75, None, None, 50.5, None, 0, 1.5, *[None] * 40):
        schedule.step(epoch)
        other.step(epoch)
        assert settings(optimizer) == pytest.approx(settings(reference), 1e-12, 1e-15), epoch
        assert (schedule.last_epoch, schedule.T_cur, schedule.T_i) == (
            other.last_epoch,
            pytest.approx(other.T_cur),
            other.T_i,
        )


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("name", ["OneCycleLR", "CyclicLR"])
def test_state_of_pytorch_optimizer_with_a_cyclic_schedule_loads(name, torch):
    (optimizer, _), (reference, other) = started(xgrad, name), started(torch, name)
    for _ in range(5):
        other.step()
    optimizer.load_state_dict(reference.state_dict())
    assert settings(optimizer) == settings(reference)
    assert "max_momentum" not in optimizer.param_groups[0]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("steps", [0, 5, 33])
def test_continuing_from_a_saved_state_is_exact(name, steps, tmp_path):
    optimizer, schedule = started(xgrad, name)
    for i in range(steps):
        advance(schedule, i)
    follower, other = started(xgrad, name)
    state, kept = schedule.state_dict(), copy.deepcopy(schedule.state_dict())
    follower.load_state_dict(optimizer.state_dict())
    xgrad.save(state, tmp_path / "state")
    other.load_state_dict(xgrad.load(tmp_path / "state"))
    for i in range(steps, steps + 40):
        assert settings(follower) == settings(optimizer)
        assert other.get_last_lr() == schedule.get_last_lr()
        advance(schedule, i)
        advance(other, i)
    assert state == kept, "what state_dict returned was written to"


@pytest.mark.parametrize("name", SCHEDULES)
def test_captured_steps_follow_without_another_recording(name):
    runs = []
    for capture in (lambda step: step, xgrad.capture):
        optimizer, schedule = started(xgrad, name)
        params = [p for group in optimizer.param_groups for p in group["params"]]

        def step(optimizer: Any = optimizer, params: Any = params) -> None:
            optimizer.zero_grad()
            sum((p * p).sum() for p in params).backward()
            optimizer.step()

        step = capture(step)
        for i in range(40):
            step()
            advance(schedule, i)
        runs.append([p.tolist() for p in params])
    assert runs[0] == runs[1]
    assert step.refusal is None
    assert step.recordings == 1


def test_schedule_in_a_captured_step_is_refused():
    _, schedule = started(xgrad, "StepLR")
    step = xgrad.capture(lambda x: (schedule.step(), x + 1)[1])
    step(xgrad.ones(2))  # runs eagerly, since the optimizer has not packed its parameters
    with pytest.warns(CaptureWarning, match="StepLR.step counts epochs: call it after the"):
        step(xgrad.ones(2))
    step(xgrad.ones(2))
    assert schedule.last_epoch == 3


def test_initial_rate_is_that_before_the_first_schedule():
    optimizer, first = started(xgrad, "ConstantLR")
    second = lr_scheduler.ExponentialLR(optimizer, 0.5)
    assert first.base_lrs == second.base_lrs == [0.5, 0.1]
    for _ in range(3):
        second.step()
    third = lr_scheduler.ExponentialLR(optimizer, 0.5, last_epoch=3)
    assert (third.last_epoch, third.base_lrs) == (4, [0.5, 0.1])
    assert third.get_last_lr() == pytest.approx([0.5 / 3 / 8, 0.1 / 3 / 8])


@pytest.mark.parametrize(
    "second", [{}, {"last_epoch": "two"}], ids=["without names", "of another type"]
)
def test_state_of_a_combination_that_does_not_fit_leaves_it_as_it_was(second):
    optimizer = optim.SGD([xgrad.nn.Parameter(xgrad.ones(2))], lr=1.0)
    module = optim.lr_scheduler
    schedule = module.SequentialLR(
        optimizer, [module.StepLR(optimizer, 1), module.StepLR(optimizer, 2)], [3]
    )
    before = schedule.state_dict()
    schedule.step()
    after, first = schedule.state_dict(), before["_schedulers"][0]
    with pytest.raises(ValueError, match=r"StepLR\.load_state_dict: expected"):
        schedule.load_state_dict(before | {"_schedulers": [first, second and first | second]})
    assert schedule.state_dict() == after != before


def test_state_of_an_optimizer_with_a_schedule_fits_one_without():
    optimizer, _ = started(xgrad, "StepLR")
    plain = optim.SGD([{"params": [xgrad.ones(2)]}, {"params": [xgrad.ones(2)]}], momentum=0.9)
    state = plain.state_dict()
    plain.load_state_dict(optimizer.state_dict())
    assert [group["lr"] for group in plain.param_groups] == [0.5, 0.1]
    optimizer.load_state_dict(state)
    assert [group["initial_lr"] for group in optimizer.param_groups] == [0.5, 0.1]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("m.StepLR(5, 3)", "TypeError: StepLR: expected an optimizer, got int"),
        (
            "m.LambdaLR(o, [abs])",
            "ValueError: LambdaLR: expected one lr_lambda, or one for each of 2 groups, got 1",
        ),
        (
            "m.LambdaLR(o, [abs, 0.5])",
            "TypeError: LambdaLR: expected a function for lr_lambda, got 0.5",
        ),
        ("m.StepLR(o, 0)", "ValueError: StepLR: expected an int of 1 or more for step_size, got 0"),
        (
            "m.StepLR(o, 2.0)",
            "ValueError: StepLR: expected an int of 1 or more for step_size, got 2.0",
        ),
        (
            "m.StepLR(p, 2, last_epoch=3)",
            "ValueError: StepLR: expected an optimizer that had a schedule, for last_epoch 3",
        ),
        (
            "m.ConstantLR(o, factor=1.5)",
            "ValueError: … a number above 0 and at most 1 for factor, got 1.5",
        ),
        (
            "m.ConstantLR(o, total_iters=-1)",
            "ValueError: ConstantLR: expected an int of 0 or more for total_iters, got -1",
        ),
        (
            "m.LinearLR(o, start_factor=0.0)",
            "ValueError: LinearLR: expected a number above 0 … for start_factor, got 0.0",
        ),
        (
            "m.LinearLR(o, end_factor=2.0)",
            "ValueError: LinearLR: expected a number from 0 to 1 for end_factor, got 2.0",
        ),
        (
            "m.PolynomialLR(o, 0)",
            "ValueError: PolynomialLR: expected an int of 1 or more for total_iters, got 0",
        ),
        (
            "m.CosineAnnealingLR(o, 0)",
            "ValueError: CosineAnnealingLR: expected an int of 1 or more for T_max, got 0",
        ),
        (
            "m.CosineAnnealingWarmRestarts(o, 5, 0)",
            "ValueError: … expected an int of 1 or more for T_mult, got 0",
        ),
        (
            "m.CosineAnnealingWarmRestarts(o, 5).step(-1)",
            "ValueError: CosineAnnealingWarmRestarts.step: expected a finite epoch of 0 or more",
        ),
        (
            "m.CosineAnnealingWarmRestarts(o, 5).step(float('inf'))",
            "ValueError: CosineAnnealingWarmRestarts.step: expected a finite epoch of 0 or more",
        ),
        (
            "m.CyclicLR(o, 0.1, [1.0])",
            "ValueError: CyclicLR: expected one max_lr, or one for each of 2 groups, got 1",
        ),
        (
            "m.CyclicLR(o, 0.1, 1.0, 0)",
            "ValueError: CyclicLR: expected a number above 0 for step_size_up, got 0",
        ),
        (
            "m.CyclicLR(o, 0.1, 1.0, mode='sine')",
            "ValueError: CyclicLR: expected mode to be one of ('triangular', … got 'sine'",
        ),
        (
            "m.CyclicLR(o, 0.1, 1.0, scale_fn=0.5)",
            "TypeError: CyclicLR: expected a function for scale_fn, got 0.5",
        ),
        (
            "m.CyclicLR(o, 0.1, 1.0, scale_mode='x')",
            "ValueError: CyclicLR: expected scale_mode 'cycle' or 'iterations', got 'x'",
        ),
        (
            "m.CyclicLR(g, 0.1, 1.0)",
            "ValueError: CyclicLR: expected an optimizer with momentum or betas, got Adagrad",
        ),
        (
            "m.MultiplicativeLR(o, [abs, 0.5])",
            "TypeError: MultiplicativeLR: expected a function for lr_lambda, got 0.5",
        ),
        (
            "m.SequentialLR(o, [m.StepLR(o, 1)], [], last_epoch=3)",
            "ValueError: SequentialLR: expected last_epoch to be -1, got 3: continue by load_state",
        ),
        ("m.StepLR(o, 1, verbose=True)", "TypeError: … unexpected keyword argument 'verbose'"),
        (
            "m.OneCycleLR(o, 1.0)",
            "ValueError: OneCycleLR: expected total_steps, or epochs and steps",
        ),
        (
            "m.OneCycleLR(o, 1.0, 5, anneal_strategy='x')",
            "ValueError: … anneal_strategy 'cos' or 'linear', got 'x'",
        ),
        (
            "m.OneCycleLR(o, [1.0], 5)",
            "ValueError: OneCycleLR: expected one max_lr, or one for each of 2 groups, got 1",
        ),
        (
            "m.OneCycleLR(g, 1.0, 5)",
            "ValueError: … expected an optimizer with momentum or betas, got Adagrad",
        ),
        (
            "[s.step() for s in [m.OneCycleLR(o, 1.0, 2)] for _ in range(3)]",
            "ValueError: OneCycleLR.step: expected at",
        ),
        (
            "m.ReduceLROnPlateau(o, factor=1.0)",
            "ValueError: ReduceLROnPlateau: expected a factor below 1, got 1.0",
        ),
        (
            "m.ReduceLROnPlateau(o, 'least')",
            "ValueError: … expected mode 'min' or 'max' … got 'least' and",
        ),
        (
            "m.SequentialLR(o, [], [])",
            "ValueError: SequentialLR: expected one milestone less than schedulers, got 0 and 0",
        ),
        (
            "m.SequentialLR(o, [m.StepLR(o, 1), m.ReduceLROnPlateau(o)], [3])",
            "TypeError: … but not ReduceLROnPlateau",
        ),
        (
            "m.SequentialLR(o, [m.StepLR(p, 1)], [])",
            "ValueError: … expected schedulers of one optimizer",
        ),
        (
            "m.SequentialLR(o, [m.StepLR(o, 1)] * 3, [5, 2])",
            "ValueError: … milestones in ascending order, got [5, 2]",
        ),
        ("m.ChainedScheduler([])", "ValueError: ChainedScheduler: expected schedulers, got none"),
        (
            "m.SequentialLR(o, [m.StepLR(o, 1)] * 2, None)",
            "TypeError: … expected a list for milestones, got None",
        ),
        (
            "m.SequentialLR(o, [m.StepLR(o, 1)] * 2, ['x'])",
            "ValueError: SequentialLR: … 0 or more for milestones, got 'x'",
        ),
        (
            "m.SequentialLR(o, 3, [1])",
            "TypeError: SequentialLR: expected a list for schedulers, got 3",
        ),
        (
            "m.ChainedScheduler(3)",
            "TypeError: ChainedScheduler: expected a list for schedulers, got 3",
        ),
        ("m.MultiStepLR(o, 3)", "TypeError: MultiStepLR: expected a list for milestones, got 3"),
        (
            "m.OneCycleLR(o, 1.0, 5, div_factor=0)",
            "ValueError: … expected a number above 0 for div_factor, got 0",
        ),
        (
            "m.OneCycleLR(o, 1.0, 5, final_div_factor=-1.0)",
            "ValueError: … above 0 for final_div_factor, got -1.0",
        ),
        (
            "m.OneCycleLR(o, 1.0, 5, epochs='x')",
            "ValueError: OneCycleLR: expected an int of 1 or more for epochs, got 'x'",
        ),
        (
            "m.OneCycleLR(o, 1.0, 5, cycle_momentum='x')",
            "TypeError: … expected a bool for cycle_momentum, got 'x'",
        ),
        (
            "m.OneCycleLR(o, 1.0, 5, three_phase=1)",
            "TypeError: OneCycleLR: expected a bool for three_phase, got 1",
        ),
        (
            "m.ReduceLROnPlateau(o).step('x')",
            "TypeError: ReduceLROnPlateau.step: expected a number for metrics, got 'x'",
        ),
        (
            "m.ReduceLROnPlateau(o).step(None)",
            "TypeError: ReduceLROnPlateau.step: expected a number for metrics, got None",
        ),
        (
            "m.LambdaLR(o, lambda epoch: None)",
            "ValueError: … a number for a result of lr_lambda, got None",
        ),
        (
            "m.ExponentialLR(o, math.nan)",
            "ValueError: ExponentialLR: expected a number for gamma, got nan",
        ),
        (
            "m.StepLR(o, 1).load_state_dict({'gamma': 1})",
            "ValueError: StepLR.load_state_dict: expected ['_last_lr', …",
        ),
        (
            "m.StepLR(o, 1).load_state_dict(m.StepLR(o, 1).state_dict() | {'last_epoch': 'x'})",
            "ValueError: StepLR.load_state_dict: expected last_epoch of the types of 0, got 'x'",
        ),
        (
            "m.LRScheduler(o)",
            "NotImplementedError: LRScheduler: expected a method get_lr, found none: define it",
        ),
    ],
)
def test_errors(call, expected):
    optimizer, _ = started(xgrad, "StepLR")
    params = [xgrad.ones(2, requires_grad=True)]
    check_error(
        call,
        expected,
        math=math,
        m=lr_scheduler,
        o=optimizer,
        p=optim.SGD(params),
        g=optim.Adagrad(params),
    )


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("StepLR", {"step_size": 2}),
        ("MultiStepLR", {"milestones": [1]}),
        ("ExponentialLR", {"gamma": 0.5}),
        ("ConstantLR", {}),
        ("LinearLR", {}),
        ("PolynomialLR", {}),
        ("CosineAnnealingLR", {"T_max": 3}),
        ("CosineAnnealingWarmRestarts", {"T_0": 3}),
        ("ReduceLROnPlateau", {"min_lr": 0.0}),
        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 9}),
    ],
)
def test_hyperparameter_of_another_type_is_refused_by_name(kind, arguments):
    optimizer, _ = started(xgrad, "StepLR")
    defaults = {
        name: x.default for name, x in signature(getattr(lr_scheduler, kind)).parameters.items()
    }
    for name, value in (defaults | arguments).items():
        if type(value) in (int, float, list):
            with pytest.raises(ValueError, match=rf"^{kind}: expected .*\b{name}, got 'x'"):
                getattr(lr_scheduler, kind)(optimizer, **arguments | {name: "x"})


def test_group_added_after_the_schedule_takes_factors_or_is_refused():
    optimizer, _ = started(xgrad, "ConstantLR")
    factors = lr_scheduler.ExponentialLR(optimizer, 0.5)
    rates = lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    optimizer.add_param_group({"params": [xgrad.ones(2)], "lr": 0.2})
    factors.step()
    assert factors.get_last_lr()[2] == 0.1
    with pytest.raises(
        ValueError, match="LambdaLR: expected 2 groups of parameters, as when it was made, got 3"
    ):
        rates.step()


def test_sequence_restarts_what_is_chained_in_it():
    optimizer, alone = (optim.SGD([xgrad.ones(2)], lr=0.5) for _ in range(2))

    def chained(optimizer: Any) -> Any:
        schedules = [
            lr_scheduler.ConstantLR(optimizer, 0.1, 2),
            lr_scheduler.ExponentialLR(optimizer, 0.9),
        ]
        return lr_scheduler.ChainedScheduler([lr_scheduler.ChainedScheduler(schedules)])

    schedule = lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.LinearLR(optimizer, 0.1), chained(optimizer)], milestones=[3]
    )
    for _ in range(3):
        schedule.step()
    reference = chained(alone)
    for _ in range(5):
        assert schedule.get_last_lr() == pytest.approx(reference.get_last_lr())
        schedule.step()
        reference.step()


def test_subclass_sets_rates():
    class Wave(LRScheduler):
        def get_lr(self) -> list[float]:
            return [lr * math.cos(self.last_epoch) for lr in self.base_lrs]

    optimizer, _ = started(xgrad, "ConstantLR")
    schedule = Wave(optimizer)
    schedule.step()
    assert [group["lr"] for group in optimizer.param_groups] == [
        0.5 * math.cos(1),
        0.1 * math.cos(1),
    ]
