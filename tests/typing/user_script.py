"""A user's script, which type checkers accept in their strict modes: see `test_typing.py`.

Each `assert_type` is a type that an editor shows; none of them is Any.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import xgrad
from xgrad import Tensor, data, nn, optim
from xgrad.distributions import Normal

# A model: calls have the parameters and the result of `forward`


class Classifier(nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.blocks = nn.ModuleList(nn.Linear(features, features) for _ in range(2))
        self.head = nn.Sequential(
            nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, classes)
        )
        self.temperature = nn.Parameter(xgrad.ones(()))

    def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
        x = self.norm(x)
        for block in self.blocks:
            x = x + assert_type(block(x), Tensor).relu()
        return assert_type(self.head(x), Tensor) * scale / self.temperature


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.attention = nn.MultiheadAttention(4, 2)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        pooled = assert_type(self.pool(images), Tensor)
        mixed, _ = self.attention(pooled[:, 0], pooled[:, 0], pooled[:, 0])
        return mixed, pooled


# A custom op, written once for all devices and orders


class Cube(xgrad.Function):
    @staticmethod
    def forward(xp: Any, x: Any) -> Any:
        return x * x * x

    @staticmethod
    def backward(xp: Any, g: Any, x: Any) -> Any:
        return g * 3 * x * x


# Data


class Points(data.Dataset[tuple[Tensor, int]]):
    def __init__(self, count: int) -> None:
        self.x = xgrad.random.normal((count, 8))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.x[index], index % 3


def batches() -> Iterator[Tensor]:
    loader = data.DataLoader(Points(12), batch_size=4, shuffle=True)
    assert_type(loader, data.DataLoader[tuple[Tensor, Tensor]])
    for x, label in loader:
        assert_type(x, Tensor)
        assert_type(label, Tensor)
        yield x
    train, _ = data.random_split(data.TensorDataset(xgrad.ones((6, 8)), xgrad.zeros(6)), [4, 2])
    for batch in data.DataLoader(train, batch_size=2):
        assert_type(batch, tuple[Tensor, ...])
    for column in data.DataLoader([{"x": 1.0}, {"x": 2.0}], batch_size=2):
        assert_type(column, dict[str, Tensor])
    for size in data.DataLoader(Points(4), batch_size=2, collate_fn=count):
        assert_type(size, int)


def count(samples: list[tuple[Tensor, int]]) -> int:
    return len(samples)


# Training


def train(epochs: int) -> Classifier:
    model = Classifier(8, 16, 3)
    loss_function = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    dataset = data.TensorDataset(xgrad.random.normal((32, 8)), xgrad.arange(32) % 3)

    @xgrad.capture
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = assert_type(loss_function(model(x), y), Tensor)
        loss.backward()
        assert_type(nn.utils.clip_grad_norm_(model.parameters(), 1.0), Tensor)
        assert_type(optimizer.step(), None)
        return loss

    for _ in range(epochs):
        for x, y in data.DataLoader(dataset, batch_size=16, shuffle=True):
            assert_type(step(x, y), Tensor)
        scheduler.step()
    for name, parameter in model.named_parameters():
        assert_type(name, str)
        assert_type(parameter, nn.Parameter)
        assert_type(parameter.grad, Tensor | None)
    return model


def fit_quadratic() -> Tensor:
    x = xgrad.tensor([3.0, -2.0], requires_grad=True)
    lbfgs = optim.LBFGS([x], max_iter=5)

    def closure() -> Tensor:
        lbfgs.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    return assert_type(lbfgs.step(closure), Tensor)


# Transforms


def energy(state: dict[str, Tensor], factor: float = 1.0) -> Tensor:
    return (state["mass"] * state["speed"] ** 2).sum() * factor


def product(x: Tensor, y: Tensor) -> Tensor:
    return (x * y**2).sum()


def quartic(x: Tensor) -> Tensor:
    return x**4


def with_norm(x: Tensor) -> tuple[Tensor, float]:
    return (x * x).sum(), 1.0


def derivatives(x: Tensor) -> None:
    state = {"mass": x, "speed": x}
    assert_type(xgrad.grad(product)(x, x), Tensor)
    assert_type(xgrad.grad(product, argnums=1)(x, x), Tensor)
    assert_type(xgrad.grad(product, argnums=(0, 1))(x, x), tuple[Tensor, Tensor])
    assert_type(xgrad.grad(energy)(state, factor=2.0), dict[str, Tensor])
    assert_type(xgrad.value_and_grad(energy)(state), tuple[Tensor, dict[str, Tensor]])
    assert_type(
        xgrad.value_and_grad(with_norm, has_aux=True)(x), tuple[tuple[Tensor, float], Tensor]
    )
    assert_type(xgrad.grad(xgrad.grad(quartic))(x[0]), Tensor)
    assert_type(xgrad.vmap(xgrad.grad(product), in_axes=(0, None))(x, xgrad.ones(())), Tensor)
    assert_type(xgrad.jacobian(product)(x, x), Tensor)
    assert_type(xgrad.hessian(product)(x, x), Tensor)
    assert_type(xgrad.jvp(product, (x, x), (x, x)), tuple[Tensor, Tensor])
    assert_type(xgrad.hvp(product, (x, x), (x, x)), tuple[Tensor, Tensor])
    result, pullback = xgrad.vjp(product, x, x)
    assert_type(result, Tensor)
    assert_type(pullback(1.0), tuple[Tensor, ...])
    total, sums = xgrad.scan(lambda total, x: (total + x, total), xgrad.zeros(()), x)
    assert_type(total, Tensor)
    assert_type(sums, Tensor)
    assert_type(xgrad.odeint(lambda t, y: -y, x, [0.0, 1.0]), Tensor)
    assert_type(xgrad.autograd.checkpoint(product, x, x), Tensor)
    leaf = xgrad.tensor([1.0, 2.0], requires_grad=True)
    assert_type(xgrad.autograd.grad(product(leaf, x), leaf), tuple[Tensor, ...])


# Functions and methods


def functions(x: Tensor) -> None:
    assert_type(xgrad.exp(x), Tensor)
    assert_type(xgrad.add(x, 1.0), Tensor)
    assert_type(xgrad.multiply(np.ones(2), x), Tensor)
    assert_type(xgrad.sum(x, axis=0, keepdims=True), Tensor)
    assert_type(xgrad.where(x > 0, x, 0.0), Tensor)
    assert_type(xgrad.concat([x, x], axis=0), Tensor)
    assert_type(xgrad.einsum("i,i->", x, x), Tensor)
    assert_type(xgrad.linalg.solve(xgrad.eye(2), x), Tensor)
    assert_type(xgrad.fft.fft(x), Tensor)
    assert_type(xgrad.special.erf(x), Tensor)
    assert_type(nn.functional.max_pool1d(xgrad.ones((1, 1, 4)), 2), Tensor)
    assert_type(2 * x + x @ x - x[0], Tensor)
    assert_type(x.sum(axis=0).reshape(1, 1).to("cpu"), Tensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.device, xgrad.Device)
    assert_type(Cube()(x), Tensor)
    normal = Normal(0.0, xgrad.ones(2))
    assert_type(normal.sample((3,)), Tensor)
    assert_type(normal.log_prob(x), Tensor)


def main() -> None:
    xgrad.manual_seed(0)
    model = train(epochs=2)
    for x in batches():
        assert_type(model(x, scale=0.5), Tensor)
        break
    mixed, pooled = Encoder()(xgrad.ones((1, 3, 8, 8)))
    assert mixed.ndim == 3 and pooled.shape == (1, 3, 4, 4)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    assert_type(nn.utils.functional_call(model, parameters, xgrad.ones((1, 8))), Tensor)
    fit_quadratic()
    derivatives(xgrad.tensor([1.0, 2.0]))
    functions(xgrad.tensor([1.0, 2.0], requires_grad=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        xgrad.save(model.state_dict(), path)
        model.load_state_dict(xgrad.load(path))


if __name__ == "__main__":
    main()
