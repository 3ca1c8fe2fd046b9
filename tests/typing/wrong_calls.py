"""Calls that mypy and pyright refuse in their strict modes, in the lines that say so.

`test_typing.py` compares these lines with the errors of both. None of the functions is called.
"""

from __future__ import annotations

import xgrad
from xgrad import Tensor, data, nn, optim
from xgrad.distributions import Normal


class Model(nn.Module):
    def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
        return x * scale


@xgrad.capture
def step(x: Tensor) -> Tensor:
    return x


def product(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum()


def number(x: Tensor) -> float:
    return float(x.sum())


def functions(x: Tensor) -> None:
    xgrad.sum(x, dim=0)  # refused
    xgrad.sum(x, axis="0")  # refused
    xgrad.exp("x")  # refused
    xgrad.exp([1.0])  # refused
    xgrad.exp(x, x)  # refused
    xgrad.add(x, "1")  # refused
    xgrad.reshape(x, "2")  # refused
    xgrad.concat(x, x)  # refused
    xgrad.linalg.inv("x")  # refused
    xgrad.special.erf("x")  # refused
    xgrad.fft.fft(x, axes=0)  # refused
    xgrad.crc32(b"")  # refused
    nn.functional.cross_entropy(x, x, reduction=1)  # refused


def methods(x: Tensor) -> None:
    x + "1"  # refused
    x @ "1"  # refused
    x.add("1")  # refused
    x.sum(axis="0")  # refused
    x.astype(dtype=xgrad.float32, dtypes=1)  # refused
    x.nope()  # refused


def models(x: Tensor) -> None:
    model = Model()
    model(3)  # refused
    model()  # refused
    model(x, sclae=2.0)  # refused
    nn.Linear(3, 4)(x, x)  # refused
    nn.Linear("3", 4)  # refused
    nn.Sequential(nn.ReLU)  # refused
    nn.Sequential(nn.ReLU())("x")  # refused
    nn.CrossEntropyLoss(reductoin="sum")  # refused
    optim.Adam(model)  # refused
    optim.Adam(model.parameters(), learning_rate=0.1)  # refused
    optim.Adam(model.parameters()).step(1)  # refused


def transforms(x: Tensor) -> None:
    xgrad.grad(number)  # refused
    xgrad.grad(product)(x)  # refused
    xgrad.grad(product)(x, "y")  # refused
    xgrad.vmap(product)(x, z=x)  # refused
    xgrad.value_and_grad(product, argnums="x")  # refused
    step("x")  # refused
    _: str = xgrad.grad(product)(x, x)  # refused


def others(x: Tensor) -> None:
    data.DataLoader(data.TensorDataset(x), "4")  # refused
    data.DataLoader(data.TensorDataset(x), 4, drop_lst=True)  # refused
    data.TensorDataset([1.0])  # refused
    Normal("0", 1.0)  # refused
    Normal(0.0, 1.0).sample(sample_shape="3")  # refused
