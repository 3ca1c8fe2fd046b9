"""What a plan consists of: calls of NumPy's, with slots for the arrays and numbers that they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    shape : tuple of int, optional
        Of an array that moves: its shape.
    in_order : bool
        Of an array that moves: whether its elements lie in C order.
    ours : bool
        Of an array that moves: whether nothing else can share its memory.
    """

    __slots__ = ("in_order", "moves", "now", "ours", "shape", "turn")

    def __init__(
        self, *, moves: bool = False, shape: tuple[int, ...] | None = None, in_order: bool = False, ours: bool = False
    ) -> None:
        self.now: Any = None
        self.moves, self.shape, self.in_order, self.ours = moves, shape, in_order, ours
        self.turn = -1


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
