"""What a recorded step leaves behind beside its results, to be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xgrad.capturing.arrays import Recorded
from xgrad.capturing.program import Value
from xgrad.capturing.recorder import Recorder
from xgrad.graph import Leaf
from xgrad.tensor import Tensor


@dataclass(frozen=True)
class Left:
    """What is otherwise after a step than before.

    Attributes
    ----------
    gradients : list of (Leaf, Value or None, bool)
        Leaves with a new gradient: the value that it is, or whether there is one that an optimizer keeps.
    tensors : list of (Tensor or int, Value)
        Tensors that hold another array, arguments by their number.
    numbers : list of (Mapping, str, object)
        What optimizers count, by its name: a `Number`, or what it is.
    draws : list of (Generator, int)
        Generators of random numbers, and how often each is asked.
    flats : list of Flat
        What is updated.
    modes : list of (Module, bool)
        Modules, and whether they are for training then.
    """

    gradients: list[tuple[Leaf, Value | None, bool]]
    tensors: list[tuple[Tensor | int, Value]]
    numbers: list[tuple[Mapping[str, Any], str, Any]]
    draws: list[tuple[Any, int]]
    flats: list[Any]
    modes: list[tuple[Any, bool]]

    @classmethod
    def by(cls, recorder: Recorder, last: Mapping[int, Recorded]) -> Left:
        """Return what a recorder has noted, given what the tensors hold that were given an array."""
        gradients = []
        for leaf in recorder.leaves.written.values():
            array = last.get(id(leaf.grad))
            kept = leaf.grad is not None and leaf.slot is not None and leaf.slot.holds(leaf.grad)
            gradients.append((leaf, array.value if array is not None and not kept else None, leaf.grad is not None))
        numbers = {id(tensor): i for i, tensor in enumerate(recorder.arguments)}
        tensors = [tensor for tensor in recorder.rebound.values() if id(tensor) in last]
        return cls(
            gradients,
            [(numbers.get(id(tensor), tensor), last[id(tensor)].value) for tensor in tensors],
            list(recorder.readings.written.values()),
            list(recorder.readings.draws.values()),
            list(recorder.flats.values()),
            list(recorder.modes.values()),
        )
