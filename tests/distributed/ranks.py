"""Checks that all ranks of a job run, each compared with a training run of one process alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import nn, optim
from xgrad.data import DataLoader, TensorDataset
from xgrad.distributed import Communicator, DataParallel, RankError, world
from xgrad.nn.utils import clip_grad_norm_
from xgrad.training import Trainer

OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "adamw": lambda params: optim.AdamW(params, lr=0.05),
    "momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
}
IMAGES = xgrad.asarray(np.random.default_rng(0).normal(size=(7, 5)))  # parts of unequal sizes
LABELS = xgrad.asarray([0, 1, 2, 0, 1, 2, 0])


class Run:
    """A training run in float64, of all ranks or of one process."""

    def __init__(
        self, ranks: Communicator, optimizer: str, shard: bool = False, seed: int = 0
    ) -> None:
        xgrad.manual_seed(seed)
        self.ranks, self.model = ranks, nn.MLP([5, 6, 3]).to(dtype=xgrad.float64)
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.rows = ranks.part(len(LABELS))
        self.parallel = DataParallel(self.model, self.optimizer, ranks, shard)

    def backward(self) -> xgrad.Tensor:
        loss = nn.functional.cross_entropy(self.model(IMAGES[self.rows, :]), LABELS[self.rows])
        self.optimizer.zero_grad()
        loss.backward()
        return loss.detach()

    def steps(self, count: int, accumulate: bool = False, clip: float | None = None) -> Run:
        for _ in range(count):
            loss = self.backward()
            if accumulate:
                nn.functional.cross_entropy(
                    self.model(2 * IMAGES[self.rows, :]), LABELS[self.rows]
                ).backward()
            self.parallel.reduce_gradients(loss, len(LABELS[self.rows]))
            if clip is not None:
                assert self.parallel.clip_grad_norm_(clip) > clip
            self.optimizer.step()
            self.parallel.check_weights()
        return self

    def weights(self) -> np.ndarray:
        return np.concatenate([p.detach().numpy().ravel() for p in self.model.parameters()])


def check_weights(ranks: Communicator) -> None:
    for name, shard, options in product(
        OPTIMIZERS, (False, True), ({}, {"accumulate": True}, {"clip": 0.01})
    ):
        # begins with the weights of rank 0
        job = Run(ranks, name, shard, seed=ranks.rank).steps(4, **options)
        alone = Run(Communicator(), name).steps(4, **options)
        assert np.max(np.abs(job.weights() - alone.weights())) < 1e-12, (name, shard, options)
        assert not np.array_equal(job.weights(), Run(Communicator(), name).weights())


def check_clipping_of_one_process(ranks: Communicator) -> None:
    job, alone = Run(ranks, "adamw", True), Run(Communicator(), "adamw")
    for run in job, alone:
        run.steps(1).backward()
        run.parallel.reduce_gradients(samples=len(LABELS[run.rows]))
    norm = clip_grad_norm_(alone.model.parameters(), 0.01)
    assert abs(job.parallel.clip_grad_norm_(0.01) - norm.item()) < 1e-12


def check_state(ranks: Communicator) -> None:
    """Each rank holds its part of the state, and `state_dict` has the whole.

    A job of any size continues from it.
    """
    run, alone = Run(ranks, "adamw", True).steps(2), Run(Communicator(), "adamw").steps(2)
    held = sum(x.size for flat in run.optimizer.flats() for x in flat.arrays.values())
    size = alone.weights().size
    assert held <= 2 * -(-size // ranks.size)
    state, expected = run.optimizer.state_dict(), alone.optimizer.state_dict()
    for number, values in expected["state"].items():
        assert (
            np.max(np.abs(state["state"][number]["exp_avg"].numpy() - values["exp_avg"].numpy()))
            < 1e-12
        )
    resumed = Run(ranks, "adamw", True)
    resumed.model.load_state_dict(alone.model.state_dict())
    resumed.optimizer.load_state_dict(expected)
    assert np.max(np.abs(resumed.steps(2).weights() - alone.steps(2).weights())) < 1e-12


def check_gradients_that_one_rank_reads(ranks: Communicator) -> None:
    run = Run(ranks, "adamw").steps(1)
    run.backward()
    seen = [p.grad for p in run.model.parameters()] if ranks.rank == 0 else []
    before = [g.numpy().copy() for g in seen if g is not None]
    run.parallel.reduce_gradients()
    assert all(
        np.array_equal(g.numpy(), b) for g, b in zip(seen, before, strict=True) if g is not None
    )


def check_captured(ranks: Communicator) -> None:
    run, alone = Run(ranks, "adamw"), Run(Communicator(), "adamw").steps(5)
    backward, step = xgrad.capture(run.backward), xgrad.capture(run.optimizer.step)
    for _ in range(5):
        run.parallel.reduce_gradients(backward(), len(LABELS[run.rows]))
        step()
    assert backward.refusal is None and step.refusal is None
    assert np.max(np.abs(run.weights() - alone.weights())) < 1e-12


def check_trainer(ranks: Communicator) -> None:
    """Losses and accuracies of training and validation are the same.

    So is the continuation of a job of any size from a state.
    """

    def trainer(ranks: Communicator | None, shard: bool = False) -> Trainer:
        xgrad.manual_seed(0)
        model = nn.MLP([5, 6, 3]).to(dtype=xgrad.float64)
        data = TensorDataset(xgrad.concat([IMAGES] * 4), xgrad.concat([LABELS] * 4))
        optimizer = OPTIMIZERS["adamw"](model.parameters())
        return Trainer(
            model,
            optimizer,
            nn.functional.cross_entropy,
            DataLoader(data, batch_size=10, shuffle=True, ranks=ranks),
            DataLoader(data, batch_size=10),
            metrics={"accuracy": lambda logits, labels: xgrad.argmax(logits, axis=1) == labels},
            capture=True,
            parallel=None if ranks is None else DataParallel(model, optimizer, ranks, shard),
        )

    alone = trainer(None)
    alone.fit(2)
    state = alone.state_dict()
    expected, got = alone.fit(3), trainer(ranks).fit(2)
    resumed = trainer(ranks, shard=True)
    resumed.load_state_dict(state)
    for line, own in zip(expected, [*got, resumed.fit(3)[-1]], strict=True):
        assert (
            line.keys() == own.keys() and max(abs(line[name] - own[name]) for name in line) < 1e-12
        )
    for p, q in zip(alone.model.parameters(), resumed.model.parameters(), strict=True):
        assert np.max(np.abs(p.detach().numpy() - q.detach().numpy())) < 1e-12


def check_errors(ranks: Communicator) -> None:
    last = ranks.size - 1
    run = Run(ranks, "adamw").steps(1)
    with pytest.raises(RankError, match=f"^expected finite losses, got nan on rank {last}: "):
        run.parallel.reduce_gradients(float("nan") if ranks.rank == last else 1.0)
    if ranks.rank == last:
        next(run.model.parameters()).data *= 2
    with pytest.raises(
        RankError, match=f"^expected equal weights on all ranks, got others on rank {last}: "
    ):
        run.parallel.check_weights()


def check_tensors(ranks: Communicator) -> None:
    for x in xgrad.asarray(ranks.rank), xgrad.ones((2, 3), dtype=xgrad.float16) * ranks.rank:
        assert (ranks.all_reduce(x) == sum(range(ranks.size))).all()


if __name__ == "__main__":
    with world() as ranks:
        assert ranks.size == int(sys.argv[1])
        for name, check in list(globals().items()):
            if name.startswith("check_"):
                check(ranks)
