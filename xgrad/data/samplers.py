"""Samplers: the order of the samples of a dataset, and their batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from xgrad.core.dtypes import float64
from xgrad.core.tensor import Tensor
from xgrad.data.arguments import count, flag, sized
from xgrad.ops import asarray
from xgrad.random import Generator, multinomial, randint, randperm
from xgrad.random.generator import generator_of
from xgrad.support.hints import shown

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class of samplers: iterables of the indices of samples, anew in each iteration.

    A subclass defines ``__iter__()``, and ``__len__()`` if a `DataLoader` needs a length. Any
    iterable of ints is accepted in its place. To be resumed by `DataLoader.load_state_dict`, it
    draws all random numbers of an iteration from `xgrad.random` before the first index, since
    workers read indices ahead.

    Examples
    --------
    >>> import xgrad
    >>> class Even(xgrad.data.Sampler):
    ...     def __iter__(self):
    ...         return iter(range(0, 5, 2))
    >>> list(xgrad.data.DataLoader("abcde", batch_size=2, sampler=Even()))
    [['a', 'c'], ['e']]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: expected a subclass that defines __iter__()"
        )


class SequentialSampler(Sampler[int]):
    """All indices in order.

    Parameters
    ----------
    data_source : Sized
        The dataset.

    Raises
    ------
    TypeError
        If the dataset has no length.

    Examples
    --------
    >>> import xgrad
    >>> list(xgrad.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = sized("SequentialSampler", data_source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order, or drawn with replacement.

    Parameters
    ----------
    data_source : Sized
        The dataset.
    replacement : bool, default False
        Whether each index is drawn independently. If not, no index occurs again before all others
        have occurred.
    num_samples : int, optional
        The number of indices; by default the length of the dataset.
    generator : xgrad.random.Generator, optional
        The source of the order; by default the generator of `xgrad.manual_seed`. Equal seeds give
        equal orders.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> sampler = xgrad.data.RandomSampler("abcd", generator=xgrad.random.Generator(0))
    >>> sorted(sampler), len(xgrad.data.RandomSampler("abcd", num_samples=9))
    ([0, 1, 2, 3], 9)
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = sized("RandomSampler", data_source)
        self.replacement = flag("RandomSampler", "replacement", replacement)
        self._num_samples = (
            None if num_samples is None else count("RandomSampler", "num_samples", num_samples)
        )
        self.generator = _generator("RandomSampler", generator)

    @property
    def num_samples(self) -> int:
        """The number of indices."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, left = len(self.data_source), self.num_samples
        if not size:
            if left:
                raise ValueError(
                    f"RandomSampler: expected a dataset with samples for num_samples {left}, got"
                    " an empty one"
                )
            return
        if self.replacement:
            yield from randint(0, size, (left,), device="cpu", generator=self.generator).tolist()
            return
        # all orders are drawn before the first index: see `Sampler`
        orders = [
            randperm(size, device="cpu", generator=self.generator).tolist()
            for _ in range(-(-left // size))
        ]
        yield from islice(chain.from_iterable(orders), left)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices, in random order.

    Parameters
    ----------
    indices : sequence of int
        The indices.
    generator : xgrad.random.Generator, optional
        The source of the order; by default the generator of `xgrad.manual_seed`.

    Raises
    ------
    TypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> import xgrad
    >>> sorted(xgrad.data.SubsetRandomSampler([7, 5, 3]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = sized("SubsetRandomSampler", indices)
        self.generator = _generator("SubsetRandomSampler", generator)

    def __iter__(self) -> Iterator[int]:
        order = randperm(len(self.indices), device="cpu", generator=self.generator).tolist()
        for i in order:
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to weights, such as 1 / the size of a class.

    Parameters
    ----------
    weights : sequence of float or Tensor
        The weight of each sample, 0 or more. They need not add up to 1.
    num_samples : int
        The number of indices.
    replacement : bool, default True
        Whether each index is drawn independently. If not, no index is drawn twice.
    generator : xgrad.random.Generator, optional
        The source of the indices; by default the generator of `xgrad.manual_seed`.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> labels = [0, 0, 0, 0, 0, 0, 1]
    >>> weights = [1 / labels.count(label) for label in labels]
    >>> sampler = xgrad.data.WeightedRandomSampler(
    ...     weights, 1000, generator=xgrad.random.Generator(0)
    ... )
    >>> 450 < sum(labels[i] for i in sampler) < 550
    True
    """

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        name = "WeightedRandomSampler"
        self.num_samples = count(name, "num_samples", num_samples)
        self.replacement = flag(name, "replacement", replacement)
        self.generator = _generator(name, generator)
        if isinstance(weights, Tensor):
            weights = weights.detach().to("cpu")
        self.weights = asarray(weights, dtype=float64, device="cpu")
        if self.weights.ndim != 1:
            raise ValueError(
                f"{name}: expected one weight for each sample, got shape {self.weights.shape}"
            )

    def __iter__(self) -> Iterator[int]:
        chosen = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from chosen.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of the indices of a sampler.

    Parameters
    ----------
    sampler : iterable of int
        The sampler.
    batch_size : int
        The number of indices in a list.
    drop_last : bool
        Whether to omit a last list with fewer indices.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> list(xgrad.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(sampler, Iterable):
            raise TypeError(
                f"BatchSampler: expected an iterable of int as sampler, got {shown(sampler)}"
            )
        self.sampler = sampler
        self.batch_size = count("BatchSampler", "batch_size", batch_size)
        self.drop_last = flag("BatchSampler", "drop_last", drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        size = len(sized("BatchSampler", self.sampler))
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The part of the indices that one of several processes loads.

    With the processes of `xgrad.distributed`, ``DataLoader(..., ranks=ranks)`` is simpler, and
    gives all processes together the batches of a single one.

    Parameters
    ----------
    dataset : Sized
        The dataset.
    num_replicas, rank : int
        The number of processes, and the number of this one.
    shuffle : bool, default True
        Whether `set_epoch` chooses a random order.
    seed : int, default 0
        The seed of the order, equal in all processes.
    drop_last : bool, default False
        Whether to omit the last samples, so that all processes have as many. By default the first
        ones are repeated.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> import xgrad
    >>> [
    ...     list(xgrad.data.DistributedSampler("abcde", 2, rank, shuffle=False))
    ...     for rank in (0, 1)
    ... ]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        name = "DistributedSampler"
        if num_replicas is None or rank is None:
            raise ValueError(
                f"{name}: expected num_replicas and rank, got none: give ranks.size and ranks.rank,"
                " or DataLoader(..., ranks=ranks)"
            )
        self.dataset = sized(name, dataset)
        self.num_replicas = count(name, "num_replicas", num_replicas)
        if count(name, "rank", rank, 0) >= num_replicas:
            raise ValueError(
                f"{name}: expected a rank below num_replicas, {num_replicas}, got {rank}"
            )
        self.rank, self.seed, self.epoch = rank, count(name, "seed", seed, 0), 0
        self.shuffle = flag(name, "shuffle", shuffle)
        self.drop_last = flag(name, "drop_last", drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the epoch `epoch`; without this call, all have the same order."""
        self.epoch = count("DistributedSampler.set_epoch", "epoch", epoch, 0)

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = list(range(size))
        if self.shuffle:
            generator = Generator((self.seed + self.epoch) % 2**64)
            order = generator.randperm(size, device="cpu").tolist()
        total = len(self) * self.num_replicas
        if order:
            order *= math.ceil(total / size)
        return iter(order[self.rank : total : self.num_replicas])

    def __len__(self) -> int:
        size = len(self.dataset)
        return size // self.num_replicas if self.drop_last else -(-size // self.num_replicas)


def sampler_generator(sampler: Any) -> Generator | None:
    """Return the generator of a sampler, or of the sampler that it groups into batches."""
    while sampler is not None:
        if (generator := getattr(sampler, "generator", None)) is not None:
            return generator if isinstance(generator, Generator) else None
        sampler = getattr(sampler, "sampler", None)
    return None


def _generator(name: str, generator: Any) -> Generator | None:
    if generator is not None:
        generator_of(name, generator)
    return generator  # type: ignore[no-any-return]
