"""Optimizers and schedules with PyTorch's arguments: parameters after several steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.compat.compared import array, copy_state, to_numpy
from xgrad.compat import torch as compat

#: Constructors, evaluated with the names ``optim`` and ``p``, a list of parameters
OPTIMIZERS = """
optim.SGD(p)
optim.SGD(p, 0.1, 0.9, 0.1, 0.01)
optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True, foreach=True)
optim.SGD([{'params': p[:1], 'lr': 0.2, 'name': 'first'}, {'params': p[1:]}], lr=0.1)
optim.Adam(p)
optim.Adam(p, 0.01, (0.8, 0.9), 1e-6, 0.1, True)
optim.AdamW(p, lr=0.01, amsgrad=True, fused=False)
optim.Adagrad(p, 0.1, 0.01, 0.01, 0.1)
optim.Adadelta(p, 0.5, 0.8, weight_decay=0.1)
optim.Adamax(p, lr=0.01, weight_decay=0.1)
optim.NAdam(p, 0.01, momentum_decay=0.01)
optim.RAdam(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)
optim.RMSprop(p, 0.01, 0.9, 1e-6, 0.01, 0.5, True)
optim.ASGD(p, 0.1, 0.01, 0.5, 2.0, 0.1)
optim.Rprop(p, 0.1, (0.4, 1.3), (1e-4, 10))
optim.Adafactor(p, 0.1, -0.7, weight_decay=0.1)
optim.LBFGS(p, 0.5, 5, line_search_fn='strong_wolfe')
optim.LBFGS(p, max_iter=3, history_size=4)
""".strip().splitlines()

#: Schedules, evaluated with the names ``S``, `torch.optim.lr_scheduler`, and ``o``, the optimizer
SCHEDULES = """
S.StepLR(o, 3, 0.5)
S.MultiStepLR(o, milestones=[2, 5], gamma=0.3)
S.ExponentialLR(o, 0.9)
S.LambdaLR(o, lambda epoch: 0.95 ** epoch)
S.ConstantLR(o, 0.5, 4)
S.LinearLR(o, start_factor=0.2, total_iters=7)
S.PolynomialLR(o, total_iters=9, power=2.0)
S.CosineAnnealingLR(o, T_max=8, eta_min=0.01)
S.CosineAnnealingWarmRestarts(o, 3, 2)
S.OneCycleLR(o, 0.5, total_steps=30)
S.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode='triangular2', cycle_momentum=False)
S.MultiplicativeLR(o, lambda epoch: 0.9)
S.OneCycleLR(o, 0.5, epochs=3, steps_per_epoch=10, anneal_strategy='linear', three_phase=True)
S.SequentialLR(o, [S.LinearLR(o, 0.1), S.ExponentialLR(o, 0.9)], milestones=[4])
S.ChainedScheduler([S.ConstantLR(o, 0.5), S.ExponentialLR(o, 0.9)])
""".strip().splitlines()


def parameters(library: Any) -> list[Any]:
    return [library.nn.Parameter(library.tensor(array(shape))) for shape in ((3, 2), (3,))]


def descend(library: Any, optimizer: Any, p: list[Any], steps: int) -> list[Any]:
    """Take steps of a regression, and return the parameters and losses."""
    x, y = (library.tensor(array(shape, 1)) for shape in ((5, 2), (5, 3)))
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = library.nn.functional.mse_loss(library.nn.functional.linear(x, p[0], p[1]), y)
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(optimizer.step(closure).item())
    return [*map(to_numpy, p), losses]


@pytest.fixture
def double(torch: Any) -> Iterator[None]:
    """Set PyTorch's default dtype, which ASGD and NAdam keep numbers in, for one test."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("text", OPTIMIZERS)
def test_five_steps_of_an_optimizer(torch: Any, text: str) -> None:
    results = []
    for library in (compat, torch):
        p = parameters(library)
        optimizer = eval(text, {"optim": library.optim, "p": p})
        results.append(descend(library, optimizer, p, 5))
        groups = [{k: g.get(k) for k in ("lr", "name")} for g in optimizer.param_groups]
        results[-1].append([g["lr"] for g in groups])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


@pytest.mark.filterwarnings("ignore")  # of PyTorch, for schedules without steps of the optimizer
@pytest.mark.parametrize("text", SCHEDULES)
def test_twenty_epochs_of_a_schedule(torch: Any, text: str) -> None:
    results = []
    for library in (compat, torch):
        o = library.optim.SGD(parameters(library), lr=0.1, momentum=0.9)
        schedule = eval(text, {"S": library.optim.lr_scheduler, "o": o})
        rates = [schedule.get_last_lr()]
        for _ in range(20):
            o.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
        results.append(rates)
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_plateau_schedule(torch: Any) -> None:
    results = []
    for library in (compat, torch):
        o = library.optim.SGD(parameters(library), lr=0.1)
        schedule = library.optim.lr_scheduler.ReduceLROnPlateau(o, "min", 0.5, patience=2)
        rates = []
        for i in range(20):
            schedule.step(library.tensor(1.0 / (1 + i // 4)))
            rates.append(o.param_groups[0]["lr"])
        results.append(rates)
    assert results[0] == results[1]


def sign_descent(library: Any) -> type:
    class SignDescent(library.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr})

        def step(self, closure: Callable[[], Any] | None = None) -> Any:
            with library.enable_grad():
                loss = closure() if closure else None
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"], state["mean"] = 0, library.zeros_like(p)
                    state["step"] += 1
                    state["mean"].mul_(0.9).add_(p.grad, alpha=0.1)
                    p.data.add_(state["mean"].sign(), alpha=-group["lr"])
            return loss

    return SignDescent


def test_optimizer_of_a_program(torch: Any) -> None:
    results = []
    for library in (compat, torch):
        p = parameters(library)
        optimizer = sign_descent(library)(p)
        results.append(descend(library, optimizer, p, 4))
        assert optimizer.state[p[0]]["step"] == 4
        assert optimizer.state_dict()["state"][0]["step"] == 4
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_state_and_its_dict() -> None:
    p = parameters(compat)
    optimizer = compat.optim.Adam(p, lr=0.01)
    descend(compat, optimizer, p, 2)
    state = optimizer.state[p[0]]
    assert type(state["exp_avg"]) is compat.Tensor
    other = compat.optim.Adam(p, lr=0.5)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == 0.01
    optimizer.zero_grad(set_to_none=False)
    assert not p[0].grad.any()
    optimizer.zero_grad()
    assert p[0].grad is None


def test_options_without_equivalent_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="differentiable=True"):
        compat.optim.SGD(parameters(compat), differentiable=True)
    with pytest.raises(TypeError, match="unknown argument 'rate'"):
        compat.optim.Adam(parameters(compat), rate=1)
    with pytest.raises(AttributeError, match=r"torch\.optim\.SparseAdam is not available"):
        compat.optim.SparseAdam  # noqa: B018


#: One training program, evaluated with each library
PROGRAM = """
class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.body(x), 1)
        return F.log_softmax(self.head(torch.flatten(x, 1)), dim=1)

def train(net, batches):
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    losses = []
    net.train()
    for data, target in batches:
        data, target = data.to('cpu'), target.to('cpu')
        optimizer.zero_grad()
        loss = F.nll_loss(net(data), target)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        predictions = [net(x).argmax(dim=1, keepdim=True) for x, _ in batches]
        correct = sum(p.eq(y.view_as(p)).sum().item()
                      for p, (_, y) in zip(predictions, batches))
    return losses + [correct]
"""


def test_losses_of_a_training_program(torch: Any) -> None:
    spaces, nets = [], []
    for library in (torch, compat):
        names: dict[str, Any] = {
            "torch": library,
            "nn": library.nn,
            "F": library.nn.functional,
            "optim": library.optim,
        }
        exec(PROGRAM, names)
        spaces.append(names)
        nets.append(names["Net"]().double())
    copy_state(*nets)
    results = []
    for names, net in zip(spaces, nets, strict=True):
        data = names["torch"].tensor(array((8, 1, 6, 6)))
        target = names["torch"].tensor(np.arange(8) % 3)
        batches = [(data[i : i + 4], target[i : i + 4]) for i in (0, 4)] * 3
        results.append(names["train"](net, batches))
    np.testing.assert_allclose(*results, rtol=1e-12)
