"""Calls that type checkers refuse, each for the reason in its comment: see `test_typing.py`.

Comments for an error that a checker does not find are errors themselves. Nothing here is called.
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
    return x.sum().item()  # type: ignore[no-any-return]


def functions(x: Tensor) -> None:
    xgrad.sum(x, dim=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    xgrad.sum(x, axis="0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.exp("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.exp([1.0])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.exp(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    xgrad.add(x, "1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.reshape(x, "2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.concat(x, x)  # type: ignore[arg-type,call-arg]  # pyright: ignore[reportCallIssue]
    xgrad.linalg.inv("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.special.erf("x")
    xgrad.fft.fft(x, axes=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    xgrad.crc32(b"")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]
    nn.functional.cross_entropy(x, x, reduction=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def methods(x: Tensor) -> None:
    x + "1"  # pyright: ignore[reportUnusedExpression]
    "1" * x  # pyright: ignore[reportUnusedExpression]
    x.add("1")
    x.sum(axis="0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    x.astype(dtype=xgrad.float32, dtypes=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    x.nope()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]


def models(x: Tensor) -> None:
    model = Model()
    model(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    model()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    model(x, sclae=2.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    nn.Linear(3, 4)(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    nn.Linear("3", 4)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    nn.Sequential(nn.ReLU)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    nn.Sequential(nn.ReLU())("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    nn.CrossEntropyLoss(reductoin="sum")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    optim.Adam(model)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    optim.Adam(model.parameters(), learning_rate=0.1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    optim.Adam(model.parameters()).step(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType,reportCallIssue]


def transforms(x: Tensor) -> None:
    xgrad.grad(number)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.grad(product)(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    xgrad.grad(product)(x, "y")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    xgrad.vmap(product)(x, z=x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    xgrad.value_and_grad(product, argnums="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType,reportCallIssue]
    step("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    _: str = xgrad.grad(product)(x, x)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


def others(x: Tensor) -> None:
    data.DataLoader(data.TensorDataset(x), "4")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType,reportCallIssue]
    data.DataLoader(data.TensorDataset(x), 4, drop_lst=True)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    data.TensorDataset([1.0])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Normal("0", 1.0)
    Normal(0.0, 1.0).sample(sample_shape="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
