"""Communicators: the ranked processes of a job, and the sums and copies they make together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from xgrad import random
from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor, from_array
from xgrad.support import trees

#: Calls at an end, the most final one first.
ENDS = (END_OF_PROCESS, END_OF_BLOCK, END_OF_EPOCH) = (
    "the end of its process",
    "the end of the block of world()",
    "the end of an epoch of Trainer.fit",
)


class RankError(RuntimeError):
    """An error of one rank that all ranks raise, so that no rank waits for another."""


class Communicator:
    """The processes of a job, each of which calls the same methods in the same order.

    This class is a job of a single process, in which the methods do nothing.

    If ranks make different calls, or the same call with arrays of different shapes or dtypes, all
    ranks raise a `RankError` that names the ranks and the calls.

    Attributes
    ----------
    rank : int
        The number of this process, from 0.
    size : int
        The number of processes.

    Examples
    --------
    >>> import xgrad
    >>> communicator = xgrad.distributed.Communicator()
    >>> communicator.rank, communicator.size
    (0, 1)
    >>> communicator.all_reduce(xgrad.asarray([1.0, 2.0]))
    Tensor([1., 2.])
    """

    rank, size = 0, 1

    def part(self, count: int, rank: int | None = None) -> slice:
        """Return the slice of `count` elements that belongs to a rank, by default to this one.

        The parts are consecutive, in the order of ranks, and their sizes differ by at most one.
        """
        rank = self.rank if rank is None else rank
        return slice(count * rank // self.size, count * (rank + 1) // self.size)

    def all_reduce(self, x: Tensor) -> Tensor:
        """Return the sum of the tensors of all ranks, which have one shape and dtype.

        It is not recorded for gradients.
        """
        with x.device.active():
            array = x.device.xp.asarray(x._data, copy=True)
            self.sum_array(array, x.device)
        return from_array(array, x.device)

    def sums(
        self, tensors: Iterable[Tensor], count: int, call: str = "sums"
    ) -> tuple[tuple[Tensor, ...], int]:
        """Return the sums of `tensors`, and the sum of `count`, over all ranks.

        The tensors are sums over samples, `count` is their number, and `call` is for `meet`.
        """
        self.meet(call)
        return tuple(map(self.all_reduce, tensors)), sum(self.gather_objects(count))

    def broadcast(self, *objects: Any) -> None:
        """Load the state of rank 0 into the objects of all other ranks.

        `objects` are modules, optimizers or others with `state_dict`.
        """
        # on all ranks, since some objects gather their state
        states = [x.state_dict() for x in objects]
        if not self.rank and self.size > 1:  # other ranks may not have the device of rank 0
            leaves = [x for _, x in trees.leaves(states)]
            on_host = [x.detach().to("cpu") if isinstance(x, Tensor) else x for x in leaves]
            states = trees.rebuild(states, on_host)
        states = self.broadcast_object(states, "broadcast")
        if self.rank:
            for x, state in zip(objects, states, strict=True):
                x.load_state_dict(state)

    @contextmanager
    def own_random_numbers(self) -> Iterator[None]:
        """Return a context in which the default generator draws different numbers on each rank.

        All ranks draw equally many numbers, and rank 0 draws the numbers of a single process.
        Afterwards the generators of all ranks have the same state again.
        """
        start = random.get_state()
        random.set_state(start | {"seed": (start["seed"] + self.rank) % 2**64})
        try:
            yield
        finally:
            random.set_state(start | {"calls": random.get_state()["calls"]})

    def meet(self, call: str, nbytes: int = 0) -> list[int]:
        """Wait for the other ranks, and return the byte counts that all ranks pass.

        Every method in which ranks communicate begins with this call, so that no rank receives the
        data of another call.

        Parameters
        ----------
        call : str
            A description of what this rank is about to do, the same on all ranks.
        nbytes : int, default 0
            The size of the message that follows.

        Raises
        ------
        RankError
            On all ranks, with the calls and the ranks, if the calls differ.
        """
        return [nbytes]

    def all_end(self) -> bool:
        """Return whether all ranks call this within seconds, as they do at their ends."""
        return True

    def broadcast_object(self, x: Any, call: str = "broadcast_object") -> Any:
        """Return the object of rank 0, pickled for the other ranks; `call` is for `meet`."""
        return x

    def gather_objects(self, x: Any, call: str = "gather_objects") -> list[Any]:
        """Return the objects of all ranks, in order; `call` is for `meet`."""
        return [x]

    def sum_array(self, array: Any, device: Device) -> None:
        """Replace an array with at most one axis by its sum over all ranks."""

    def sum_parts(self, array: Any, device: Device) -> None:
        """Replace this rank's part of a one-dimensional array by its sum over all ranks.

        The other parts become undefined.
        """

    def gather_parts(self, array: Any, device: Device) -> None:
        """Replace each part of a one-dimensional array by the data of the rank that owns it."""

    def abort(self, status: int = 1) -> None:
        """End all processes at once, with an exit `status`, after a message that names this one."""
