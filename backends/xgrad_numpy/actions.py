"""What a replay does, in order: calls of NumPy's, with slots for the arrays and numbers that they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any


class Slot:
    """What stands for an array, or for a number.

    Attributes
    ----------
    now : array, optional
        The array, of what stays where it is from replay to replay.
    turn : int
        When that was found: how often arrays had been followed.
    moves : bool
        Whether each replay is given it, or makes it, anew.
    place : int
        Of what moves: where it is among the values of a replay.
    shape : tuple of int, optional
        Of an array that moves: its shape.
    in_order : bool
        Of an array that moves: whether its elements lie in C order.
    ours : bool
        Of an array that moves: whether nothing else can share its memory.
    """

    __slots__ = ("in_order", "moves", "now", "ours", "place", "shape", "turn")

    def __init__(
        self, *, moves: bool = False, shape: tuple[int, ...] | None = None, in_order: bool = False, ours: bool = False
    ) -> None:
        self.now: Any = None
        self.moves, self.shape, self.in_order, self.ours = moves, shape, in_order, ours
        self.place = self.turn = -1


class Action:
    """A call of a function.

    Attributes
    ----------
    function : callable
        What is called.
    operands : tuple
        What it is given, by position: slots, tuples and lists of such, and what is always the same.
    options : dict of str to object
        What else it is given, by name.
    into : Slot or tuple of Slot, optional
        Where what it returns is kept.
    shape : tuple of int, optional
        Over what it is elementwise.
    written : Slot or array, optional
        Which of the operands it writes to, if it is elementwise.
    makes : bool
        Whether it but makes an array that nothing has been written to yet.
    """

    __slots__ = ("function", "into", "makes", "operands", "options", "shape", "written")

    def __init__(
        self,
        function: Callable[..., Any],
        operands: tuple[Any, ...],
        options: Mapping[str, Any] = {},
        *,
        into: Slot | tuple[Slot, ...] | None = None,
        shape: tuple[int, ...] | None = None,
        written: Any = None,
        makes: bool = False,
    ) -> None:
        self.function, self.operands, self.options, self.into = function, operands, options, into
        self.shape, self.written, self.makes = shape, written, makes


def settled(arg: Any) -> Any:
    """Return an operand with arrays in the place of slots, none of which moves."""
    kind = type(arg)
    if kind is Slot:
        return arg.now
    return kind(map(settled, arg)) if kind is tuple or kind is list else arg


def slots_in(args: Iterable[Any]) -> Iterator[Slot]:
    """Return the slots among operands."""
    for arg in args:
        kind = type(arg)
        if kind is Slot:
            yield arg
        elif kind is tuple or kind is list:
            yield from slots_in(arg)


class Calls:
    """Calls without arguments, made of actions: what stays where it is from replay to replay is part of them.

    Parameters
    ----------
    moving : sequence of Slot
        What moves, in the order in which it is to lie among the values.

    Attributes
    ----------
    values : list
        What is in the slots that move, and then operands of the calls that take some of these.
    """

    def __init__(self, moving: Sequence[Slot]) -> None:
        self.values: list[Any] = [None] * len(moving)
        for place, slot in enumerate(moving):
            slot.place = place
        self._constant: list[tuple[list[Any], int, Action, list[Slot]]] = []  # calls, and where they stand
        self._operands: list[tuple[int, Any]] = []  # what stays, of the other calls, and where it is among the values

    def of(self, actions: Iterable[Action]) -> list[Callable[[], Any]]:
        """Return the calls of actions, which `follow` completes."""
        calls: list[Callable[[], Any]] = []
        for action in actions:
            self._add(action, calls)
        return calls

    def _add(self, action: Action, calls: list[Callable[[], Any]]) -> None:
        operands = (*action.operands, *action.options.values())
        slots = list(slots_in(operands))
        if action.into is None and not any(slot.moves for slot in slots):
            self._constant.append((calls, len(calls), action, slots))
            calls.append(_constant(action))
            return
        function = partial(_by_name, action.function, tuple(action.options)) if action.options else action.function
        places = [self._place(arg, calls) for arg in operands]
        first = places[0] if places else 0
        get = itemgetter(*places) if len(places) > 1 else itemgetter(slice(first, first + len(places)))
        calls.append(_varying(self.values, function, get, action.into))

    def _place(self, arg: Any, calls: list[Callable[[], Any]]) -> int:
        """Return where an operand is among the values, once some calls are made."""
        if type(arg) is Slot and arg.moves:
            return arg.place
        place = len(self.values)
        self.values.append(None)
        if any(slot.moves for slot in slots_in((arg,))):
            together = Slot(moves=True)
            together.place = place
            self._add(Action(_tuple if type(arg) is tuple else _list, tuple(arg), into=together), calls)
        else:
            self._operands.append((place, arg))
            self.values[place] = settled(arg)
        return place

    def follow(self, turn: int) -> None:
        """Take the arrays of slots that are others since this turn."""
        for calls, i, action, slots in self._constant:
            for slot in slots:
                if slot.turn == turn:
                    calls[i] = _constant(action)
                    break
        for place, arg in self._operands:
            self.values[place] = settled(arg)


def _constant(action: Action) -> Callable[[], Any]:
    """Return a call with the same objects each time: functions are sooner called with names than a partial is."""
    function, operands = action.function, tuple(map(settled, action.operands))
    if not action.options:
        return partial(function, *operands)
    options = {name: settled(arg) for name, arg in action.options.items()}
    if options.keys() == {"out"} and len(operands) == 2:
        (x, y), out = operands, options["out"]
        return lambda: function(x, y, out=out)
    return lambda: function(*operands, **options)


def _varying(
    values: list[Any], function: Callable[..., Any], get: Callable[[Any], Any], into: Any
) -> Callable[[], Any]:
    """Return a call with what is among the values then, which keeps there what it returns."""
    if into is None:
        return lambda: function(*get(values))

    def call() -> None:
        values[place] = function(*get(values))

    def call_for_several() -> None:
        for place, part in zip(places, function(*get(values)), strict=True):
            values[place] = part

    if type(into) is Slot:
        place = into.place
        return call
    places = [slot.place for slot in into]
    return call_for_several


def _by_name(function: Callable[..., Any], names: tuple[str, ...], *operands: Any) -> Any:
    """Call a function with its last operands by name."""
    first = len(operands) - len(names)
    return function(*operands[:first], **dict(zip(names, operands[first:], strict=True)))


def _tuple(*parts: Any) -> Any:
    return parts


def _list(*parts: Any) -> Any:
    return [*parts]
