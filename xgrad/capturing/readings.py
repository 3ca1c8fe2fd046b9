"""The numbers that a step reads in options and generators, what it asks about them, and which it has remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xgrad.capturing.numbers import Number
from xgrad.tensor import Tensor

if TYPE_CHECKING:
    from xgrad.capturing.recorder import Recorder


class Reading:
    """Where a number is read: in a mapping, by a key and perhaps a place; or in the state of a generator."""

    __slots__ = ("holder", "kind", "path")

    def __init__(self, holder: Any, path: tuple[Any, ...], kind: type) -> None:
        self.holder, self.path, self.kind = holder, path, kind


class Readings:
    """All that one step does with numbers.

    Whoever makes some is given the recorder, which they know; to hold it here would keep it, and what it knows of the
    step, until somebody looks for garbage.

    Attributes
    ----------
    conditions : list of Number
        What was asked about numbers, with the answers: at each replay they must be the same.
    constants : list of (Mapping, object, object)
        Mappings, keys, and what must still be there: options that are no numbers.
    written : dict
        Mappings, keys, and the numbers that are to be remembered there, by the id of the mapping and the key.
    draws : dict of int to (Generator, int)
        Generators, and how often they were asked, by id.
    """

    def __init__(self) -> None:
        self.conditions: list[Number] = []
        self.constants: list[tuple[Mapping[Any, Any], Any, Any]] = []
        self.written: dict[tuple[int, Any], tuple[dict[str, Any], str, Any]] = {}
        self.draws: dict[int, tuple[Any, int]] = {}
        self._drawn_from: dict[int, tuple[int, int]] = {}  # the states that generators had
        self._numbers: dict[Any, Number] = {}  # that were read, by place

    def condition(self, number: Number) -> None:
        """Note what a question about numbers was answered; at each replay it must be the same."""
        self.conditions.append(number)

    def read(self, recorder: Recorder, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return numbers and options as an update is to see them: see `xgrad.optim.flat.read`."""
        return {key: self._option(recorder, values, key, value) for key, value in values.items()}

    def _option(self, recorder: Recorder, values: Mapping[str, Any], key: str, value: Any) -> Any:
        if key == "params":
            return value
        written = self.written.get((id(values), key))
        if written is not None:
            return written[2]
        kind = type(value)
        if kind is int or kind is float:
            return self._number(recorder, values, (key,), value)
        if kind is tuple and all(type(part) in (int, float) for part in value):
            return tuple([self._number(recorder, values, (key, i), part) for i, part in enumerate(value)])
        if hasattr(value, "item") and getattr(value, "shape", ()) == () and not isinstance(value, Tensor):
            return self._number(recorder, values, (key,), value.item())
        if isinstance(value, Tensor):
            recorder.refuse(f"the option {key!r} of an optimizer is a tensor: give a number")
            return value.item()
        self.constants.append((values, key, value))
        return value

    def _number(self, recorder: Recorder, holder: Any, path: tuple[Any, ...], value: Any) -> Number:
        place = (id(holder), *path)
        if place not in self._numbers:
            self._numbers[place] = Number(recorder, value, "read", (Reading(holder, path, type(value)),))
        return self._numbers[place]

    def keep(self, numbers: dict[str, Any], key: str, value: Any) -> Any:
        """Note that a number is to be remembered, and return it: see `xgrad.optim.flat.write`."""
        self.written[id(numbers), key] = numbers, key, value
        return value.value if type(value) is Number else value

    def draw(self, recorder: Recorder, generator: Any, seed: int, call: int) -> tuple[Any, Any]:
        """Return the seed and the number of a call of a generator."""
        known, count = self.draws.get(id(generator), (generator, 0))
        if count == 0:
            self._drawn_from[id(generator)] = (seed, call)
        elif self._drawn_from[id(generator)] != (seed, call - count):
            recorder.refuse("a generator of random numbers is made or set within the step: do so before")
            return seed, call
        self.draws[id(generator)] = known, count + 1
        first: Any = self._number(recorder, generator, (1,), call - count)
        return self._number(recorder, generator, (0,), seed), first + count if count else first
