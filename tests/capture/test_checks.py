"""Checks of values in captured steps: hoisted, or repeated after writes that a failure undoes.

Steps are compared with eager steps, to the bit, before and after checks that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xgrad
from capture import twins
from capture.twins import Capture, array, assert_concrete, batch, compare_replays, everything
from xgrad import nn, optim
from xgrad.nn import functional

# Programs of PyTorch's examples


class VAE(nn.Module):
    """A variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(12, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.fc3, self.fc4 = nn.Linear(2, 8), nn.Linear(8, 12)

    def forward(self, x: Any) -> Any:
        """Return the reconstruction, the means and the logarithms of the variances."""
        h = functional.relu(self.fc1(x))
        mean, log_variance = self.fc21(h), self.fc22(h)
        deviation = xgrad.exp(0.5 * log_variance)
        z = mean + xgrad.random.randn(deviation.shape) * deviation
        return xgrad.sigmoid(self.fc4(functional.relu(self.fc3(z)))), mean, log_variance


def vae(capture: Capture) -> Iterator[Any]:
    xgrad.manual_seed(1)
    model = VAE()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    @capture
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        recon, mean, log_variance = model(x)
        bce = functional.binary_cross_entropy(recon, x, reduction="sum")
        loss = bce - 0.5 * xgrad.sum(1 + log_variance - mean**2 - xgrad.exp(log_variance))
        loss.backward()
        optimizer.step()
        return loss

    for i in range(8):
        yield step(xgrad.random.rand((6, 12), generator=xgrad.random.Generator(i)))
        yield everything(model, optimizer)


def dcgan(capture: Capture) -> Iterator[Any]:
    xgrad.manual_seed(1)
    generator = nn.Sequential(
        nn.ConvTranspose2d(3, 4, 4, 1, 0, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 2, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(2, 4, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4),
        nn.LeakyReLU(0.2),
        nn.Conv2d(4, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    criterion = nn.BCELoss()
    of_discriminator = optim.Adam(discriminator.parameters(), lr=0.01, betas=(0.5, 0.999))
    of_generator = optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.999))

    @capture
    def step(real: Any, noise: Any) -> Any:
        discriminator.zero_grad()
        label = xgrad.ones(real.shape[0])
        output = discriminator(real).reshape((-1,))
        real_error = criterion(output, label)
        real_error.backward()
        fake = generator(noise)
        output = discriminator(fake.detach()).reshape((-1,))
        fake_error = criterion(output, xgrad.zeros_like(label))
        fake_error.backward()
        of_discriminator.step()
        generator.zero_grad()
        output = discriminator(fake).reshape((-1,))
        error = criterion(output, label)
        error.backward()
        of_generator.step()
        return (real_error + fake_error).detach(), error, output.detach().mean()

    for i in range(8):
        yield step(array(5, 2, 8, 8, seed=i), array(5, 3, 1, 1, seed=i + 100))
        yield everything(generator, of_generator), everything(discriminator, of_discriminator)


class CharacterMLP(nn.Module):
    """A model of the next character, given the embeddings of the last ones."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(8, 4)
        self.mlp = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 7))

    def forward(self, tokens: Any) -> Any:
        """Return scores; token 7 stands before the first one."""
        parts = []
        for _ in range(3):
            parts.append(self.wte(tokens))
            tokens = xgrad.roll(tokens, 1, axis=1)
            tokens[:, 0] = 7
        return self.mlp(xgrad.concat(parts, axis=-1))


def makemore(capture: Capture) -> Iterator[Any]:
    xgrad.manual_seed(1)
    model = CharacterMLP()
    optimizer = optim.AdamW(model.parameters(), lr=0.01)

    @capture
    def step(x: Any, y: Any) -> Any:
        scores = model(x)
        loss = functional.cross_entropy(scores.reshape((-1, 7)), y.reshape((-1,)), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for i in range(10):
        draws = np.random.default_rng(i)
        x, y = draws.integers(0, 7, (4, 5)), draws.integers(-1, 7, (4, 5))
        if i in (5, 6):
            x[1, 2] = 9
        try:
            yield step(xgrad.asarray(x), xgrad.asarray(y))
        except IndexError as error:
            yield str(error)
        yield everything(model, optimizer)


@pytest.mark.parametrize("scenario", [vae, dcgan], ids=lambda x: x.__name__)
def test_program_with_checks_after_writes_is_replayed(scenario: twins.Scenario) -> None:
    compare_replays(scenario)


@twins.on_cpu  # checks of values
def test_model_of_characters_is_replayed_and_raises_as_eager_mode() -> None:
    compare_replays(makemore)


# Failing checks


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@twins.on_cpu  # checks of values
# CaptureWarning: without a compiler
@pytest.mark.filterwarnings("ignore:capture. native=True:xgrad.capture.CaptureWarning")
@pytest.mark.parametrize("failing", [(4,), (4, 5, 9), (3, 7)], ids=str)
def test_check_that_depends_on_an_update_fails_and_leaves_what_eager_leaves(
    failing: tuple[int, ...], native: bool
) -> None:
    """The check is of parameters that the step has updated, and of a buffer and an argument."""

    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(2)
        first, second = nn.Linear(3, 2), nn.Linear(3, 2)
        optimizers = [optim.Adam(x.parameters(), lr=0.1) for x in (first, second)]
        total, kept = xgrad.zeros(2), xgrad.zeros((4, 2))[:, ::2]

        def run(x: Any, scale: Any) -> Any:
            optimizers[0].zero_grad()
            (first(x) ** 2).mean().backward()
            optimizers[0].step()
            total[...] = total + first(x).detach().sum(axis=0)
            kept[...] = kept + total[0]
            scale *= 2
            p = xgrad.sigmoid(first(x) + total) * scale + 0 * kept
            loss = functional.binary_cross_entropy(p * second(x)[0, 0] ** 0, xgrad.ones((4, 2)))
            optimizers[1].zero_grad()
            (loss * second(x).sum()).backward()
            optimizers[1].step()
            return loss

        step = capture(run, native=native)
        for i in range(12):
            scale = xgrad.asarray([0.5, 0.9 if i in failing else 0.3])
            try:
                yield step(array(4, 3, seed=i), scale)
            except ValueError as error:
                yield str(error)
            yield everything(first, optimizers[0]), everything(second, optimizers[1])
            yield total, kept, scale
            assert_concrete(first, second, *optimizers)

    compare_replays(scenario)


STEPS: dict[str, tuple[Callable[[Any, Any], Any], type[Exception]]] = {
    "take": (lambda w, x: xgrad.take(w, xgrad.astype(x * 1, xgrad.int64)), IndexError),
    "indexing": (lambda w, x: w[xgrad.astype(x, xgrad.int64)] * 2, IndexError),
    "inv": (
        lambda w, x: xgrad.linalg.inv(xgrad.eye(3) * xgrad.where(x > 5, 0.0, x + 1)),
        Exception,
    ),
    "after its own result": (
        lambda w, x: xgrad.take(w, xgrad.astype(xgrad.clip(w * 0, 0, 0) + x, xgrad.int64)),
        IndexError,
    ),
    "before a write": (
        lambda w, x: (y := xgrad.take(w, xgrad.astype(x, xgrad.int64)), w.__imul__(2), y + w)[2],
        IndexError,
    ),
}


@twins.on_cpu  # checks of values
@pytest.mark.parametrize("name", STEPS)
def test_call_that_may_raise_after_a_write_is_replayed(name: str) -> None:
    result, error_type = STEPS[name]

    def scenario(capture: Capture) -> Iterator[Any]:
        w = array(3)
        count = xgrad.zeros(1)

        @capture
        def step(x: Any) -> Any:
            count.__iadd__(1)
            w.__iadd__(count * 0.5)
            return result(w, x)

        for i in range(10):
            x = xgrad.asarray([0.0, 2.0, 9.0 if i in (4, 8) else 1.0])
            try:
                yield step(x)
            except error_type as error:
                yield str(error)
            yield w, count

    compare_replays(scenario)


INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda t, i: xgrad.take(t, i, axis=0),
    "indexing": lambda t, i: t[i],
    "indexing of the last axis": lambda t, i: t.T[..., i],
}


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@twins.on_cpu  # checks of values
# CaptureWarning: without a compiler
@pytest.mark.filterwarnings("ignore:capture. native=True:xgrad.capture.CaptureWarning")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", INDEXED)
def test_call_that_may_raise_before_an_update_that_a_check_needs(
    name: str, before: bool, native: bool
) -> None:
    """The update is moved to the start with the check, and so must be what may raise."""

    def scenario(capture: Capture) -> Iterator[Any]:
        xgrad.manual_seed(3)
        model, table = nn.Linear(3, 2), array(3, 4)
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def run(x: Any, index: Any, scale: Any) -> Any:
            optimizer.zero_grad()
            rows = INDEXED[name](table, index) if before else 0
            (model(x) ** 2).mean().backward()
            optimizer.step()
            rows = rows if before else INDEXED[name](table, index)
            p = xgrad.sigmoid(model(x).detach()) * scale
            return functional.binary_cross_entropy(p, xgrad.ones((4, 2))) + rows.sum()

        step = capture(run, native=native)
        for i in range(10):
            index = xgrad.asarray([0, 9 if i in (3, 7) else 1])
            try:
                yield step(array(4, 3, seed=i), index, xgrad.asarray(4.0 if i == 5 else 0.5))
            except (ValueError, IndexError) as error:
                yield str(error)
            yield everything(model, optimizer)

    compare_replays(scenario)


@twins.on_cpu  # checks of values
def test_reads_before_a_write_that_a_check_needs_see_what_was_there_before() -> None:
    """The write is moved to the start with the check, and so must be what reads the memory."""

    def scenario(capture: Capture) -> Iterator[Any]:
        w, v = array(4), array(4, seed=1)

        @capture
        def step(x: Any) -> Any:
            before = w * 2
            view = w[1:]
            w.__imul__(0.5)
            after = view + 1
            v.__iadd__(before)
            loss = functional.binary_cross_entropy(xgrad.sigmoid(w), x)
            view[...] = 0.25
            return before, after, loss, view.sum()

        for i in range(6):
            x = xgrad.asarray([0.0, 1.0, 0.5, 2.0 if i == 4 else 1.0])
            try:
                yield step(x)
            except ValueError as error:
                yield str(error)
            yield w, v

    compare_replays(scenario)


@twins.on_cpu  # checks of values
def test_interrupt_between_writes_that_may_be_undone_leaves_the_step_not_done() -> None:
    """A handler of NumPy's errors raises while the updated weights are computed with."""
    w = xgrad.asarray([1.0, 2.0])

    @xgrad.capture
    def step(x: Any) -> Any:
        w.__imul__(2.0)
        ratio = w / x
        return functional.binary_cross_entropy(xgrad.sigmoid(ratio), xgrad.ones(2))

    for _ in range(3):
        step(xgrad.ones(2))
    assert step.refusal is None and step.recordings == 1 and w.tolist() == [8, 16]

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with np.errstate(divide="call", call=interrupt), pytest.raises(KeyboardInterrupt):
        step(xgrad.zeros(2))
    assert w.tolist() == [8, 16]
    step(xgrad.ones(2))
    assert w.tolist() == [16, 32] and step.recordings == 1


@twins.on_cpu  # checks of values
def test_printed_program_has_a_check_after_the_writes_that_it_depends_on_only() -> None:
    model, other = nn.Linear(5, 3), nn.Linear(5, 3)
    optimizer = optim.SGD([*model.parameters()], lr=0.1)

    @xgrad.capture
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return functional.binary_cross_entropy(xgrad.sigmoid(other(x).detach()), xgrad.ones((6, 3)))

    for i in range(3):
        step(*batch(i))
    lines = step.program().splitlines()
    checks = [i for i, line in enumerate(lines) if line.startswith("check ")]
    update = next(i for i, line in enumerate(lines) if line.startswith("params -= "))
    assert checks and max(checks) < update


# Random programs

STATEMENTS = [
    "{a} += v",
    "{a}[1:] *= 0.5",
    "{a}[...] = {b} * 0.5 + v",
    "{a}.T[0] += {b}[:, 0][0] * 0.1",
    "v = {a} * x + v * 0.5",
    "v = v + {a}[::2].sum() * 0.1",
    "w = {a}[1:]; v = v + w.sum() * 0.1",
    "w += {b}[1:] * 0.1",
    "v *= 0.5",
    "v = xgrad.tanh(v)",
    "outs.append(v * 1)",
    "outs.append({a} + {b})",
    "x += 0.25 * v",
    "loss = bce(xgrad.sigmoid(v + {a}) * scale[{i}], ones); v = v + loss",
    "loss = bce(xgrad.sigmoid(x) * scale[{i}], ones); outs.append(loss)",
    "v = v + xgrad.take({a}, index + xgrad.astype(scale[{i}] > 1, index.dtype) * 9, axis=0)",
]


@twins.on_cpu  # checks of values
# CaptureWarning: without a compiler
@pytest.mark.filterwarnings("ignore:capture. native=True:xgrad.capture.CaptureWarning")
@pytest.mark.parametrize("seed", range(40))
def test_random_program_of_writes_and_checks_leaves_what_eager_leaves(seed: int) -> None:
    draws = np.random.default_rng(seed)
    lines = ["v = x * 0.5; w = x[1:] * 1; outs = []"]
    for i in range(12):
        a, b = draws.choice(["p", "q", "r"], 2)
        lines.append(STATEMENTS[draws.integers(len(STATEMENTS))].format(a=a, b=b, i=i))
    lines.append("return outs, v, w")
    body = "\n".join(f"    {line}" for line in lines)
    source = f"def step(x, scale, index, p=p, q=q, r=r):\n{body}"

    def scenario(capture: Capture) -> Iterator[Any]:
        p, q, r = [array(4, 3, seed=seed + i) for i in range(3)]
        scope = {"p": p, "q": q, "r": r[:, ::-1], "xgrad": xgrad, "ones": xgrad.ones((4, 3))}
        scope["bce"] = functional.binary_cross_entropy
        exec(compile(source, f"program {seed}", "exec"), scope)
        step = capture(scope["step"], native=seed % 5 == 0)
        for turn in range(8):
            scale = np.full(12, 0.5, np.float32)
            if turn % 3 == 2:
                scale[turn + np.arange(3)] = 4.0
            x = array(4, 3, seed=turn)
            try:
                yield step(x, xgrad.asarray(scale), xgrad.asarray([0, 2, 1, 3]))
            except (ValueError, IndexError) as error:
                yield str(error)
            yield p, q, r, x

    compare_replays(scenario)
