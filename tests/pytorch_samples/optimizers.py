"""PyTorch's samples of optimizers (OptimizerInfo): options, over some steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_optimizers import optim_db

import xgrad.compat.torch as compat
from tests.pytorch_samples.outcome import Arguments, Outcome, compare

STEPS = 6


def outcomes(names: list[str]) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each sample of the named optimizers, or of all."""
    for info in optim_db:
        name = info.optim_cls.__name__
        if names and name not in names:
            continue
        kind = getattr(compat.optim, name, None)
        for sample in info.optim_inputs_func(device="cpu", dtype=torch.float64):
            if kind is None:
                yield name, Outcome("missing")
                continue
            yield (
                name,
                compare(
                    lambda info=info, sample=sample: run(torch, info.optim_cls, sample.kwargs),
                    lambda kind=kind, sample=sample: run(
                        compat, kind, Arguments(compat).of(sample.kwargs)
                    ),
                ),
            )


def run(lib: Any, kind: Any, options: dict[str, Any]) -> list[Any]:
    """Return parameters after some steps on a least-squares problem."""
    weight = lib.linspace(-1, 1, 12, dtype=lib.float64).reshape(4, 3)
    parameters = [lib.nn.Parameter(weight), lib.nn.Parameter(lib.ones(3, dtype=lib.float64))]
    x = lib.linspace(0, 1, 20, dtype=lib.float64).reshape(5, 4)
    lib.set_default_dtype(lib.float64)  # of numbers in the state, such as the rates of ASGD
    optimizer = kind(parameters, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((x @ parameters[0] + parameters[1]) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    lib.set_default_dtype(lib.float32)
    return [parameter.detach() for parameter in parameters]
