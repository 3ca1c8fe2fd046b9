"""Whatever happens between captured steps, all is as it would be between eager ones."""

import random

import numpy as np
import pytest

import xgrad
from capturing.twins import all_of, array, batch, network, twice
from xgrad import nn, optim
from xgrad.nn import functional

OPTIMIZERS = [
    lambda params: optim.SGD(params, lr=0.05),
    lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    lambda params: optim.Adam(params, lr=0.02),
    lambda params: optim.AdamW(params, lr=0.02, amsgrad=True),
    lambda params: optim.Adam([{"params": [p], "lr": 0.01 * (i + 1)} for i, p in enumerate(params)]),
]
EVENTS = (
    "train train train train train add update evaluate evaluate other eager look look hold hold_gradient"
    " data write freeze zero no_gradient gradient save load rate momentum seed mode hook raise"
).split()


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.filterwarnings("ignore::xgrad.capturing.CaptureWarning")
def test_whatever_happens_in_between(seed):
    events = []

    def scenario(capture):
        chance = random.Random(seed)
        xgrad.manual_seed(seed)
        model = network()
        params = list(model.parameters())
        optimizer = OPTIMIZERS[seed % len(OPTIMIZERS)](params)

        def loss_of(x, y):
            return functional.cross_entropy(model(x), y)

        def train(x, y):
            optimizer.zero_grad()
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            return loss

        def clipped(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(params, 0.5)
            optimizer.step()
            return loss, norm

        def add(x, y):
            loss = loss_of(x, y)
            loss.backward()
            return loss

        def update(x, y):
            loss_of(x, y).backward()
            optimizer.step()
            optimizer.zero_grad()

        def evaluate(x):
            with xgrad.no_grad():
                return model(x), params[0].detach()

        eager = train
        train, clipped, add, update, evaluate = map(capture, (train, clipped, add, update, evaluate))
        kept, saved, hooks = [], None, []
        for i in range(40):
            event = chance.choice(EVENTS)
            events.append(event)
            p, x, y = chance.choice(params), *batch(i % 7, chance.choice([6, 6, 6, 3]))
            if event == "train":
                yield train(x, y)
            elif event == "other":
                yield clipped(x)
            elif event == "add":
                yield add(x, y)
            elif event == "update":
                update(x, y)
            elif event == "evaluate":
                yield evaluate(x)
            elif event == "eager":
                yield eager(x, y)
            elif event == "look":
                yield all_of(model, optimizer)
            elif event == "hold":
                kept.append(chance.choice([p.detach, p.detach().numpy, lambda p=p: np.from_dlpack(p.detach())])())
            elif event == "hold_gradient" and p.grad is not None:
                kept.append(chance.choice([p.grad, p.grad.numpy()]))
            elif event == "data":
                p.data = p.detach() * 0.9
            elif event == "write":
                with xgrad.no_grad():
                    p *= 0.9
            elif event == "freeze" and (not p.requires_grad or sum(q.requires_grad for q in params) > 1):
                p.requires_grad_(not p.requires_grad)
            elif event == "zero":
                optimizer.zero_grad(set_to_none=chance.random() < 0.5)
            elif event == "no_gradient":
                p.grad = None
            elif event == "gradient" and p.requires_grad:
                p.grad = array(*p.shape, seed=i)
            elif event == "save":
                saved = model.state_dict(), optimizer.state_dict()
            elif event == "load" and saved is not None:
                model.load_state_dict(saved[0])
                optimizer.load_state_dict(saved[1])
            elif event == "rate":
                chance.choice(optimizer.param_groups)["lr"] *= chance.choice([0.5, 2, np.float32(0.5)])
            elif event == "momentum" and "nesterov" in optimizer.defaults:
                optimizer.param_groups[0].update(momentum=chance.choice([0.0, 0.5, 0.9]), nesterov=False)
            elif event == "seed":
                xgrad.manual_seed(i)
            elif event == "mode":
                model.train(not model.training)
            elif event == "hook" and p.requires_grad:
                if hooks:
                    hooks.pop().remove()
                else:
                    hooks.append(p.register_hook(lambda g: 0.5 * g))
            elif event == "raise":
                with pytest.raises(IndexError, match="expected target from 0 to 2"):
                    train(x, y + 3)
        yield all_of(model, optimizer), kept, xgrad.random.rand(2)

    try:
        twice(scenario)
    except Exception as error:
        raise AssertionError(f"after {' '.join(events[len(events) // 2 :])}: {error}") from error
