"""Batches of a dataset, in order or shuffled, optionally loaded ahead by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing, contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from xgrad import random
from xgrad.core.arguments import ArrayLike
from xgrad.core.tensor import Tensor
from xgrad.data.collate import default_collate, default_convert
from xgrad.data.dataset import (
    IterableDataset,
    SizedDataset,
    Subset,
    TensorDataset,
    check_index,
)
from xgrad.data.loader_arguments import Options, Ranks, check_arguments, check_options
from xgrad.data.prefetch import END, Jobs, prefetch, run
from xgrad.data.samplers import sampler_generator
from xgrad.data.workers import Workers
from xgrad.ops import asarray
from xgrad.random import manual_seed, randint, randperm
from xgrad.random.generator import generator_of, replaying
from xgrad.support.hints import shown

Batches = Generator[Any, None, None]
T = TypeVar("T")
B = TypeVar("B")
K = TypeVar("K")
Samples = SizedDataset[T] | Iterable[T]
if TYPE_CHECKING:  # a default, which `typing` has from Python 3.13 on: `DataLoader` needs no type
    import typing_extensions

    B_co = typing_extensions.TypeVar("B_co", covariant=True, default=Any)
else:
    B_co = TypeVar("B_co", covariant=True)


@dataclass
class _Position:
    """The position in an iteration.

    It consists of the generator's state before the iteration, and the number of batches so far.
    """

    generator: Mapping[str, int]
    batches: int = 0


class DataLoader(Generic[B_co]):
    """Iterable over the batches of a dataset, in order or shuffled anew at each iteration.

    Batches of a `TensorDataset`, or of a `Subset` of one, are tuples of tensors, gathered on their
    device, without workers. Samples of any other dataset are read by index, or by iteration if it
    has no indices, and `collate_fn` makes a batch of them. Equal seeds give equal batches on every
    device and with any number of workers, even if the dataset draws numbers from `xgrad.random`:
    each batch is loaded in a copy of the context with a separate seed, derived from a number that
    each iteration draws from `generator`. (Numbers from the global generators of NumPy and Python
    depend on the order in which threads draw them.)

    Parameters
    ----------
    dataset : TensorDataset, Dataset, sequence, or iterable
        Any object with ``__len__`` and ``__getitem__``, such as a `Dataset` or a list; or an
        iterable.
    batch_size : int or None, default 1
        The number of samples in a batch. With None, the loader returns single samples, converted
        by `collate_fn`, which is then `default_convert` by default.
    shuffle : bool, default False
        Whether every iteration draws a new order.
    sampler : iterable of int, optional
        The indices of the samples, in order, in place of `shuffle`, such as a `Sampler`.
    batch_sampler : iterable of list of int, optional
        The indices of the samples of each batch, in place of `batch_size`, `shuffle`, `sampler` and
        `drop_last`.
    num_workers : int, default 0
        The number of threads that load batches ahead; with 0, each batch is loaded on request.
        Threads need no pickling, and share memory. They run in parallel in file reading, image
        decoding and NumPy, which release Python's lock. An iterable is read by a single thread.
    collate_fn : callable, optional
        The function that makes a batch from a list of samples; by default `default_collate`.
    drop_last : bool, default False
        Whether to omit a last batch with fewer samples.
    generator : xgrad.random.Generator, optional
        The source of the random order; by default the generator of the sampler, or the generator of
        `xgrad.manual_seed`.
    worker_init_fn : callable, optional
        A function that each worker calls with its number before it loads a batch: see
        `get_worker_info`.
    pin_memory, persistent_workers : bool, default False
        Accepted without effect: batches are made in the memory of their device, and threads start
        fast.
    timeout : float, default 0
        Only 0: a thread that waits cannot be ended.
    prefetch_factor : int, optional
        The number of batches that each worker loads ahead, by default 2.
    ranks : Communicator, optional
        The processes that share each batch; this one loads its part. Their generators must have
        equal states.

    Raises
    ------
    TypeError, ValueError
        If an argument is none of the above, if the dataset is an iterator that an earlier iteration
        exhausted, or if a batch has fewer samples than there are ranks.
    Exception
        Any exception of the dataset or `collate_fn`, raised at the batch, with a note of the
        sample's index.

    Examples
    --------
    >>> import xgrad
    >>> pairs = xgrad.data.TensorDataset(xgrad.arange(5), xgrad.zeros((5, 2)))
    >>> [x.tolist() for x, _ in xgrad.data.DataLoader(pairs, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    >>> [x.tolist() for x in xgrad.data.DataLoader([5, 6, 7], batch_size=2, num_workers=2)]
    [[5, 6], [7]]
    """

    @overload
    def __init__(
        self: DataLoader[B],
        dataset: Samples[T],
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        collate_fn: Callable[[list[T]], B],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[T],
        dataset: Samples[T],
        batch_size: None,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        collate_fn: None = None,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Tensor],
        dataset: Samples[ArrayLike],
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        collate_fn: None = None,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[Tensor, Tensor]],
        dataset: Samples[tuple[ArrayLike, ArrayLike]],
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        collate_fn: None = None,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[tuple[Tensor, ...]],
        dataset: Samples[tuple[ArrayLike, ...]],
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        collate_fn: None = None,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[dict[K, Tensor]],
        dataset: Samples[Mapping[K, ArrayLike]],
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        collate_fn: None = None,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Samples[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        collate_fn: Callable[[Any], Any] | None = None,
        **options: Unpack[Options],
    ) -> None: ...
    def __init__(
        self,
        dataset: SizedDataset[Any] | Iterable[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        *,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        generator: random.Generator | None = None,
        worker_init_fn: Callable[[int], object] | None = None,
        pin_memory: bool = False,
        persistent_workers: bool = False,
        timeout: float = 0,
        prefetch_factor: int | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        indexed = (
            isinstance(dataset, Sized)
            and hasattr(dataset, "__getitem__")
            and not isinstance(dataset, Mapping | IterableDataset)
        )
        prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        shuffle = False if shuffle is None else shuffle
        check_arguments(
            dataset,
            indexed,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            drop_last,
            prefetch_factor,
        )
        check_options(
            num_workers,
            worker_init_fn,
            pin_memory,
            persistent_workers,
            timeout,
        )
        if batch_size is None and ranks is not None:
            raise ValueError(
                "DataLoader: expected a batch_size for ranks, got None, for single samples"
            )
        # The position of an iteration is a state of a single generator.
        drawn = sampler_generator(sampler if batch_sampler is None else batch_sampler)
        if generator is not None and drawn not in (None, generator):
            raise ValueError(
                "DataLoader: expected the generator of the sampler, got another one: leave it out"
            )
        self.dataset: Any = dataset
        self.batch_size = None if batch_sampler is not None else batch_size
        self.shuffle = shuffle
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.batched = batch_size is not None or batch_sampler is not None
        default: Callable[[Any], Any] = default_collate if self.batched else default_convert
        self.collate_fn = default if collate_fn is None else collate_fn
        self.drop_last = drop_last
        self.generator = drawn if generator is None else generator
        self.worker_init_fn = worker_init_fn
        self.pin_memory, self.persistent_workers = pin_memory, persistent_workers
        self.timeout = timeout
        self.prefetch_factor = prefetch_factor
        self.ranks = ranks
        self._indexed = indexed
        self._exhausted = False
        self._position: _Position | None = None  # of the iteration that began last
        self._resumed: _Position | None = None  # where the next iteration begins

    def __len__(self) -> int:
        """Return the number of batches of one iteration.

        Raises TypeError if the dataset or the sampler has no length.
        """
        chosen = self.sampler if self.batch_sampler is None else self.batch_sampler
        samples = self.dataset if chosen is None else chosen
        if not isinstance(samples, Sized):
            raise TypeError(f"DataLoader: {type(samples).__name__} has no length")
        size = len(samples)
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def __iter__(self) -> Iterator[B_co]:
        position, self._resumed = self._resumed, None
        resumes = position is not None
        if position is None:
            position = _Position(generator_of("DataLoader", self.generator).get_state())
        self._position = position
        with closing(
            self._batches(position.batches, position.generator if resumes else None)
        ) as batches:
            for batch in batches:
                # counted before the step on the batch, after which `state_dict` is called
                position.batches += 1
                yield batch
        if self._position is position:
            self._position = None

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the current iteration, if there is one.

        There is none if no iteration has begun, or the last one has ended. The position is small:
        the order of the samples follows from the state that the generator had when the iteration
        began. The state of the default generator is not part of it: save `xgrad.random.get_state`
        with it.

        Returns
        -------
        dict
            ``"batches"``: the number of batches returned; ``"start"``: the state of the generator
            before them, None if there are none; ``"generator"``: the state of the loader's own
            generator, if it has one; ``"batch_size"`` and ``"samples"``: the numbers of samples in
            a batch and in the dataset.

        Examples
        --------
        >>> import xgrad
        >>> loader = xgrad.data.DataLoader(range(10), batch_size=3, shuffle=True)
        >>> batches = iter(loader)
        >>> first, state = next(batches).tolist(), loader.state_dict()
        >>> rest = [batch.tolist() for batch in batches]
        >>> loader.load_state_dict(state)
        >>> [batch.tolist() for batch in loader] == rest
        True
        """
        position = self._position if self._position and self._position.batches else None
        return {
            "batches": 0 if position is None else position.batches,
            "start": None if position is None else dict(position.generator),
            "generator": None if self.generator is None else self.generator.get_state(),
            "batch_size": self.batch_size,
            "samples": len(self.dataset) if self._indexed else None,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Let the next iteration continue after the last batch returned before `state_dict`.

        The samples before are skipped without being read, except that an iterable is read up to
        that point.

        Parameters
        ----------
        state_dict : mapping
            The result of `state_dict` of a loader with the same arguments.

        Raises
        ------
        TypeError
            If it is another mapping, or not a mapping.
        ValueError
            If the batch size or the number of samples differ, or a number is out of range.
        """
        own, title = self.state_dict(), "DataLoader.load_state_dict"
        if not isinstance(state_dict, Mapping) or state_dict.keys() != own.keys():
            got = (
                sorted(state_dict) if isinstance(state_dict, Mapping) else type(state_dict).__name__
            )
            raise TypeError(f"{title}: expected a mapping with {sorted(own)}, got {got}")
        for name in ("batch_size", "samples"):
            if state_dict[name] != own[name]:
                raise ValueError(
                    f"{title}: expected {name} {own[name]}, got {state_dict[name]}: give the loader"
                    " the arguments and the dataset that it had"
                )
        batches, start, generator = (state_dict[name] for name in ("batches", "start", "generator"))
        if not isinstance(batches, int) or batches < 0 or (start is None) != (batches == 0):
            raise ValueError(
                f"{title}: expected a number of batches, 0 without a start, got {shown(batches)}"
            )
        if (generator is None) != (self.generator is None):
            raise ValueError(
                f"{title}: expected a loader with a generator of its own in both runs, or in none"
            )
        if start is not None:
            random.Generator(0).set_state(start)  # raises an error before anything changes
        if self.generator is not None:
            self.generator.set_state(generator)
        self._position = None if start is None else _Position(dict(start), batches)
        self._resumed = self._position

    def _batches(self, skipped: int, start: Mapping[str, int] | None) -> Batches:
        """Return the batches after a number of skipped ones.

        `start` is an earlier state of the generator, with which it draws their order.
        """
        dataset, indices = self.dataset, None
        while type(dataset) is Subset:
            indices = dataset.indices if indices is None else [dataset.indices[i] for i in indices]
            dataset = dataset.dataset
        generator = generator_of("DataLoader", self.generator)
        earlier = (
            replaying({generator: (start["seed"], start["calls"])}) if start else nullcontext()
        )
        if self.batched and self.collate_fn is default_collate and type(dataset) is TensorDataset:
            batches = self._gather(dataset, indices)
            with earlier:
                deque(islice(batches, skipped), 0)
            return batches
        jobs = self._jobs()
        with earlier:
            for job in islice(jobs, skipped):
                if not self._indexed:
                    job()
        if not self.num_workers:
            return run(jobs)
        # only one thread at a time may read an iterator
        workers = self.num_workers if self._indexed else 1
        return prefetch(jobs, workers, self.num_workers * self.prefetch_factor)

    def _gather(self, dataset: TensorDataset, indices: list[int] | None) -> Batches:
        """Yield batches of tensors, of all samples or of the samples at a subset's indices."""
        size, device = len(dataset), dataset.tensors[0].device
        if indices is None and self.sampler is None and self.batch_size is not None:
            order = (
                randperm(size, device=device, generator=self.generator) if self.shuffle else None
            )
            for start in range(0, len(self) * self.batch_size, self.batch_size):
                # the standard has no slices beyond the end
                part = self._part(min(self.batch_size, size - start))
                rows = slice(start + part.start, start + part.stop)
                yield dataset[rows if order is None else order[rows]]
            return
        for chosen in self._batched_indices():
            chosen = [check_index("DataLoader: sampler", i, len(self.dataset)) for i in chosen]
            chosen = chosen if indices is None else [indices[i] for i in chosen]
            yield dataset[asarray(chosen, device=device)]

    def _batched_indices(self) -> Iterator[list[Any]]:
        """Yield the indices of the samples of each batch."""
        if self.batch_sampler is not None:
            for batch in self._start(self.batch_sampler):
                if not isinstance(batch, Iterable):
                    raise TypeError(
                        f"DataLoader: expected lists of int from batch_sampler, got {shown(batch)}"
                    )
                if not (indices := list(batch)):
                    raise ValueError(
                        "DataLoader: expected at least one index in each batch of batch_sampler,"
                        " got none"
                    )
                yield self._own_part(indices)
            return
        if self.sampler is not None:
            order = self._start(self.sampler)
        elif self.shuffle:
            order = iter(
                randperm(len(self.dataset), device="cpu", generator=self.generator).tolist()
            )
        else:
            order = iter(range(len(self.dataset)))
        size = self.batch_size or 1
        while indices := list(islice(order, size)):
            if len(indices) == size or not self.drop_last:
                yield self._own_part(indices)

    def _own_part(self, indices: list[Any]) -> list[Any]:
        """Return the indices of a batch that this process loads, checked."""
        if any(isinstance(i, bool) for i in indices):
            raise TypeError(
                "DataLoader: expected indices of samples from the sampler, got bools: give indices"
            )
        return indices[self._part(len(indices))]

    def _part(self, count: int) -> slice:
        """Return the part of a batch of `count` samples that this process loads."""
        if self.ranks is None:
            return slice(0, count)
        if count < self.ranks.size:
            raise ValueError(
                f"DataLoader: expected batches of at least {self.ranks.size} samples, one for each"
                f" rank, got one of {count}: leave it out with drop_last=True, or choose another"
                " batch_size"
            )
        return self.ranks.part(count)

    def _jobs(self) -> Jobs:
        """Yield for each batch a function that loads it.

        It runs in a copy of the context, with a seed drawn here.
        """
        workers = None
        if self.num_workers:
            count_of_workers = self.num_workers if self._indexed else 1
            workers = Workers(count_of_workers, self.dataset, self.worker_init_fn)
        if self._indexed:
            for number, indices in enumerate(self._batched_indices()):
                if number == 0:  # after the order is drawn, as for a TensorDataset
                    seed = self._seed()
                yield partial(
                    copy_context().run, self._load, seed + number, number, indices, workers
                )
            return
        # one context for all batches, since a `with` block of an iterator may span several
        context = copy_context()
        if workers is not None:
            context.run(workers.enter)
        items = context.run(self._start, self.dataset)
        context.run(manual_seed, self._seed())
        try:
            for number in count():
                yield partial(context.run, self._read, number, items)
        finally:
            if items is not self.dataset and hasattr(items, "close"):
                context.run(items.close)

    def _seed(self) -> int:
        return int(randint(0, 2**63, (), device="cpu", generator=self.generator))

    def _load(self, seed: int, number: int, indices: list[Any], workers: Workers | None) -> Any:
        """Return the batch of the samples at the given indices."""
        if workers is not None:
            workers.enter()
        manual_seed(seed)
        samples = []
        for i in indices:
            try:
                samples.append(self.dataset[i])
            except Exception as error:
                error.add_note(f"DataLoader: raised by dataset[{i}], of batch {number}")
                raise
        return self._collate(number, samples)

    def _read(self, number: int, items: Iterator[Any]) -> Any:
        """Return the batch of the next samples of an iterator."""
        try:
            samples = list(islice(items, self.batch_size or 1))
        except Exception as error:
            error.add_note(f"DataLoader: raised by the iterator of the dataset, in batch {number}")
            raise
        if not samples or (self.drop_last and len(samples) < (self.batch_size or 1)):
            return END
        return self._collate(number, samples[self._part(len(samples))])

    def _collate(self, number: int, samples: list[Any]) -> Any:
        try:
            return self.collate_fn(samples if self.batched else samples[0])
        except Exception as error:
            error.add_note(f"DataLoader: raised by collate_fn, of batch {number}")
            raise

    def _start(self, items: Iterable[Any]) -> Iterator[Any]:
        """Return an iterator from the first item on; raise ValueError if `items` is exhausted."""
        iterator = iter(items)
        if iterator is items:
            if self._exhausted:
                raise ValueError(
                    "DataLoader: expected an iterable that can start anew, got"
                    f" {type(items).__name__}, an iterator that an earlier iteration exhausted:"
                    " give a list, or an object with __iter__"
                )
            self._exhausted = True
        return iterator


@contextmanager
def continued_after_errors(loader: DataLoader) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step on a batch, in a block with the loader's iteration.

    After an exception in the block, the next iteration begins with the batch after the last
    completed step, and the default generator is reset to its state after that step if a batch has
    been taken since.
    """
    position, generator = loader.state_dict(), random.get_state()

    def done() -> None:
        nonlocal position, generator
        position, generator = loader.state_dict(), random.get_state()

    try:
        yield done
    except BaseException:
        if loader.state_dict() != position:
            random.set_state(generator)
        loader.load_state_dict(position)
        raise
