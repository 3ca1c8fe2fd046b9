"""Data parallelism: each rank has the model and a part of each batch, and gradients are summed."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

from xgrad.backend.recording import refuse
from xgrad.core.modes import no_grad
from xgrad.core.tensor import Tensor, from_array
from xgrad.distributed.communicator import Communicator, RankError
from xgrad.nn.module import Module
from xgrad.optim.flat import FlatParameters, State, Update
from xgrad.optim.optimizer import Optimizer

CHECKED_STEPS = 100  # the number of steps after which ranks compare their weights


class ShardedParameters(FlatParameters):
    """Packed parameters with sharded optimizer state.

    Each rank updates one part of the parameters, and has only the state of that part.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        states: Sequence[State],
        elementwise: bool,
        stepped: bool,
        *,
        communicator: Communicator,
    ) -> None:
        super().__init__(params, states, elementwise, stepped)
        self.communicator, self.part = communicator, communicator.part(self.layout.size)
        for key, array in self.arrays.items():
            self.arrays[key] = from_array(
                self.device.xp.asarray(array._data[self.part], copy=True), self.device
            )

    def whole(self, array: Any) -> Any:
        """Return an array of the state, gathered from the parts of all ranks."""
        buffer = self.layout.empty()
        buffer[self.part] = array
        self.communicator.gather_parts(buffer, self.device)
        return buffer

    def updated_arrays(self) -> tuple[Any, Any]:
        """Return the parameters that this rank updates and their gradients, as one array each."""
        return self.buffer._data[self.part], self.gradients.buffer._data[self.part]

    def _update(
        self, update: Update, numbers: Mapping[str, Any], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the state after updating this rank's part, and gather the other ranks' parts."""
        check_not_captured("the step of an optimizer with sharded state")
        state = super()._update(update, numbers, options)
        self.communicator.gather_parts(self.buffer._data, self.device)
        return state


def check_not_captured(what: str) -> None:
    """Refuse to capture a step that waits for other processes."""
    refuse(f"{what} waits for other processes: capture the parts of the step before and after it")


class DataParallel:
    """The training of one model by all ranks, each with a part of each batch.

    All ranks begin with the model and optimizer of rank 0. After the backward pass,
    `reduce_gradients` replaces the gradients of the parts by the gradients of the whole batch, with
    one message for each buffer of parameters. The optimizer's step then equals the step of a single
    process, to rounding. Several backward passes may precede it, to accumulate gradients.

    Parameters
    ----------
    model : Module
        The model, with equal parameters on all ranks. Each rank has it on its own device: in a
        launched process, ``"cuda"`` is the GPU of its rank on its machine. Batch normalization
        computes its statistics over the parts.
    optimizer : Optimizer
        An optimizer of its parameters.
    communicator : Communicator
        The ranks: see `world`.
    shard_state : bool, default False
        Whether each rank has only the optimizer state of one part of the parameters, updates that
        part, and receives the other parts from their ranks [1]_ (stage 1). All ranks must then call
        `optimizer.step` and `optimizer.state_dict`, which returns the whole state; Adafactor,
        LBFGS and Muon are refused.

    Raises
    ------
    ValueError
        If the optimizer's state cannot be sharded.

    References
    ----------
    .. [1] S. Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter
       models", SC 2020.

    Examples
    --------
    >>> import xgrad
    >>> model = xgrad.nn.Linear(2, 1)
    >>> optimizer = xgrad.optim.Adam(model.parameters())
    >>> with xgrad.distributed.world() as ranks:
    ...     parallel = xgrad.distributed.DataParallel(model, optimizer, ranks)
    ...     loss = model(xgrad.ones((8, 2))[ranks.part(8), :]).mean()
    ...     loss.backward()
    ...     parallel.reduce_gradients(loss)
    ...     optimizer.step()
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        communicator: Communicator,
        shard_state: bool = False,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.communicator = communicator
        self.sharded = shard_state
        communicator.broadcast(model, optimizer)
        if shard_state:
            if not optimizer.elementwise:
                raise ValueError(
                    "DataParallel: expected an optimizer that updates each element by itself for"
                    f" shard_state, got {type(optimizer).__name__}"
                )
            state = optimizer.state_dict()
            optimizer.packing = partial(ShardedParameters, communicator=communicator)
            optimizer.load_state_dict(state)

    @no_grad()
    def reduce_gradients(self, loss: Tensor | float = 0.0, samples: int = 1) -> None:
        """Replace the gradients by their means over all ranks.

        With sharded state, only the part that this rank updates is replaced.

        Parameters
        ----------
        loss : Tensor or float, optional
            The loss of this rank, which is first checked to be finite.
        samples : int, default 1
            The weight of this rank in the mean: the number of its samples, if the loss is a mean
            over them.

        Raises
        ------
        RankError
            On all ranks alike, with the numbers of those whose loss is not finite; the gradients
            are left alone.
        """
        check_not_captured("DataParallel.reduce_gradients")
        losses, weights = zip(
            *self.communicator.gather_objects((float(loss), samples), "reduce_gradients"),
            strict=True,
        )
        if wrong := [
            f"{x} on rank {rank}" for rank, x in enumerate(losses) if not math.isfinite(x)
        ]:
            raise RankError(
                f"expected finite losses, got {', '.join(wrong)}: look for such values in its"
                " samples, or choose a smaller learning rate"
            )
        for flat, _ in self.optimizer.pack():
            if flat.leaves[0].grad is not None:
                with flat.device.active():
                    buffer = flat.take_gradients()
                    buffer *= samples / sum(weights)
                    reduce = (
                        self.communicator.sum_parts if self.sharded else self.communicator.sum_array
                    )
                    reduce(buffer, flat.device)

    def step_between(
        self, backward: Callable[..., tuple[Tensor, Any]], update: Callable[[], Any]
    ) -> Callable[..., Any]:
        """Return a step of all ranks: `backward`, reduction of gradients, and `update`.

        In `backward`, each rank draws its own random numbers.

        Parameters
        ----------
        backward : callable
            Called with the arguments of the step, inputs and targets first. It returns the mean
            loss over these samples, and a result of the step.
        update : callable
            The rest of the step, such as ``optimizer.step``. Each of the two may be a captured
            step.
        """
        numbers = count(1)

        def step(inputs: Any, targets: Any, *others: Any) -> Any:
            with self.communicator.own_random_numbers():
                loss, result = backward(inputs, targets, *others)
            self.reduce_gradients(loss, len(targets))
            update()
            if next(numbers) % CHECKED_STEPS == 0:
                self.check_weights()
            return result

        return step

    @no_grad()
    def clip_grad_norm_(self, max_norm: float) -> float:
        """Scale reduced gradients to a norm of at most `max_norm`, and return the norm before.

        Use it in place of `xgrad.nn.utils.clip_grad_norm_`, which reads only a part of the
        gradients if the state is sharded.
        """
        flats = [flat for flat, _ in self.optimizer.pack() if flat.leaves[0].grad is not None]
        parts = [flat.updated_arrays()[1] for flat in flats]
        square = math.fsum(
            float(flat.device.xp.vecdot(x, x)) for flat, x in zip(flats, parts, strict=True)
        )
        if self.sharded:
            square = math.fsum(self.communicator.gather_objects(square, "clip_grad_norm_"))
        norm = math.sqrt(square)
        if max_norm < norm + 1e-6:
            for x in parts:
                x *= max_norm / (norm + 1e-6)
        return norm

    def check_weights(self) -> None:
        """Compare the bits of all parameters between ranks; this takes as long as reading them.

        Raises
        ------
        RankError
            On all ranks, with the numbers of the ranks whose weights differ from most.
        """
        checksum = 0
        for p in self.model.parameters():
            checksum = zlib.crc32(p.device.backend.to_host(p._data).tobytes(), checksum)
        sums = self.communicator.gather_objects(checksum, "check_weights")
        usual = Counter(sums).most_common(1)[0][0]
        if wrong := [f"rank {rank}" for rank, x in enumerate(sums) if x != usual]:
            raise RankError(
                f"expected equal weights on all ranks, got others on {', '.join(wrong)}: change"
                " parameters alike on all ranks, or, if nothing changes them, test its memory"
            )
