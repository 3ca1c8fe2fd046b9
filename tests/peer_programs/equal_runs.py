"""Equal weights, random numbers and order of the data for two runs of a program.

The functions of a library are replaced for the life of the process, which runs one program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Enough(BaseException):
    """Ends a program after the wanted number of backward passes."""


@contextmanager
def replaced(replacements: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set attributes, given as owner, name and value, for the length of a block."""
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    for owner, name, value in replacements:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in reversed(originals):
            setattr(owner, name, value)


class Weights:
    """The initial parameters of a run, in the order in which a program first uses them.

    The first run records them; the second one sets its parameters to the recorded values. A
    parameter is used when its module is called, or when an optimizer gets it. Dropout is turned
    off, since its masks are drawn inside the libraries.
    """

    def __init__(self, recorded: list[np.ndarray] | None) -> None:
        self.values = [] if recorded is None else recorded
        self._records = recorded is None
        self._matched: dict[int, Any] = {}  # by id, and kept, so that no id is used twice

    def match(self, parameters: Any) -> None:
        """Record or set the parameters that were not used before."""
        for parameter in parameters:
            if id(parameter) in self._matched:
                continue
            if self._records:
                self.values.append(parameter.detach().cpu().numpy().copy())
            else:
                self._set(parameter, self.values[len(self._matched)])
            self._matched[id(parameter)] = parameter

    @staticmethod
    def _set(parameter: Any, value: np.ndarray) -> None:
        if tuple(parameter.shape) != value.shape:
            raise RuntimeError(
                f"expected a parameter of shape {value.shape}, as PyTorch's, got"
                f" {tuple(parameter.shape)}"
            )
        parameter.data.copy_(type(parameter.data)(value) if value.ndim else float(value))

    def replacements(self, lib: Any) -> list[tuple[Any, str, Any]]:
        """Return the replaced methods of a library that match parameters at their first use."""
        call, make = lib.nn.Module.__call__, lib.optim.Optimizer.__init__

        def match_and_call(module: Any, *args: Any, **options: Any) -> Any:
            self.match(module.parameters())
            without_dropout(module)
            return call(module, *args, **options)

        def make_and_match(optimizer: Any, *args: Any, **options: Any) -> None:
            make(optimizer, *args, **options)
            for group in optimizer.param_groups:
                self.match(group["params"])

        return [
            (lib.nn.Module, "__call__", match_and_call),
            (lib.optim.Optimizer, "__init__", make_and_match),
        ]


def without_dropout(module: Any) -> None:
    """Set the probabilities of dropout of a module and its submodules to 0."""
    for part in module.modules():
        if "Dropout" in type(part).__name__:
            part.p = 0.0
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = 0.0


class Losses:
    """The losses of the backward passes of a run, which ends after a number of them."""

    def __init__(self, count: int) -> None:
        self.values: list[float] = []
        self._count = count

    def replacements(self, lib: Any) -> list[tuple[Any, str, Any]]:
        """Return the replaced methods of a library that record losses."""
        backward = lib.Tensor.backward

        def record_and_run(loss: Any, *args: Any, **options: Any) -> None:
            if len(self.values) == self._count:
                raise Enough
            self.values.append(float(loss.detach()))
            backward(loss, *args, **options)

        return [(lib.Tensor, "backward", record_and_run)]


def random_replacements(lib: Any) -> list[tuple[Any, str, Any]]:
    """Return random functions of a library that draw from a generator of NumPy."""
    random = np.random.default_rng(0)

    def shape_of(size: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(size[0]) if size and not isinstance(size[0], int) else size

    def randn(*size: Any, **_: Any) -> Any:
        return lib.tensor(random.standard_normal(shape_of(size)))

    def rand(*size: Any, **_: Any) -> Any:
        return lib.tensor(random.random(shape_of(size)))

    def randint(low: int, high: Any = None, size: Any = None, **_: Any) -> Any:
        if size is None:  # randint(high, size)
            low, high, size = 0, low, high
        return lib.tensor(random.integers(low, high, tuple(size)))

    def multinomial(probabilities: Any, count: int, replacement: bool = False, **_: Any) -> Any:
        rows = np.atleast_2d(probabilities.detach().numpy())
        drawn = [
            random.choice(len(row), count, replace=replacement, p=row / row.sum()) for row in rows
        ]
        return lib.tensor(np.array(drawn if probabilities.ndim == 2 else drawn[0]))

    def sample(distribution: Any, sample_shape: Any = ()) -> Any:
        rows = distribution.probs.detach().numpy()
        return lib.tensor(
            np.apply_along_axis(lambda row: random.choice(len(row), p=row / row.sum()), -1, rows)
        )

    def bernoulli_(x: Any, p: float = 0.5, **_: Any) -> Any:
        return x.copy_(lib.tensor((random.random(tuple(x.shape)) < p).astype(float)))

    functions: dict[str, Callable[..., Any]] = {
        "randn": randn,
        "rand": rand,
        "randint": randint,
        "randn_like": lambda x, **_: randn(*x.shape),
        "rand_like": lambda x, **_: rand(*x.shape),
        "randperm": lambda n, **_: lib.tensor(random.permutation(n)),
        "multinomial": multinomial,
    }
    found = [(lib, name, function) for name, function in functions.items()]
    found.append((lib.nn.functional, "dropout", lambda x, *_, **__: x))  # see `Weights`
    found.append((lib.Tensor, "bernoulli_", bernoulli_))
    return [*found, (lib.distributions.Categorical, "sample", sample)]


def loader_replacements(lib: Any) -> list[tuple[Any, str, Any]]:
    """Return a loader of a library that loads in the order of the data set, in this process."""
    loader = lib.utils.data.DataLoader

    class LoaderInOrder(loader):  # type: ignore[misc, valid-type]
        """Loads batches without shuffling, samplers and workers."""

        def __init__(
            self,
            dataset: Any,
            batch_size: int = 1,
            shuffle: bool = False,
            sampler: Any = None,
            num_workers: int = 0,
            pin_memory: bool = False,
            **options: Any,
        ) -> None:
            super().__init__(dataset, batch_size=batch_size, **options)

    owners = [lib.utils.data]
    if hasattr(lib.utils.data, "dataloader"):
        owners.append(lib.utils.data.dataloader)
    return [(owner, "DataLoader", LoaderInOrder) for owner in owners]
