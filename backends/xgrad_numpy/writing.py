"""Actions written out as a function of Python: what is done so often is worth the time that it takes to compile it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from xgrad_numpy.actions import Action, Slot, settled, slots_in

_MANY = 32  # calls, from which on a loop is worth the 10 ns by which each takes longer in it than in a line


class Written:
    """A function that does some actions.

    Parameters
    ----------
    checked : sequence of Action
        Those before anything is changed: an error of theirs is returned.
    rest : sequence of Action
        All others.
    given : sequence of Slot
        What the function takes.
    results : sequence of Slot
        What it returns, as a tuple.

    Attributes
    ----------
    run : callable
        The function.
    source : str
        What it reads.
    """

    def __init__(
        self, checked: Sequence[Action], rest: Sequence[Action], given: Sequence[Slot], results: Sequence[Slot]
    ) -> None:
        self._scope: dict[str, Any] = {}
        self._names: dict[int, str] = {}  # of slots and other things, by id
        self._slots: list[Slot] = []  # that stay, and have a name
        self._lists: list[tuple[str, list[Action]]] = []
        parameters, lines = ", ".join(map(self._text, given)), self._lines(checked)
        if lines:
            lines = ["try:", *("    " + line for line in lines), "except Exception as error:", "    return error"]
        lines += [*self._lines(rest), f"return {self._tuple(results)}"]
        self.source = "\n    ".join([f"def run({parameters}):", *lines])
        exec(compile(self.source, "<captured step>", "exec"), self._scope)
        self.run: Callable[..., Any] = self._scope["run"]

    def follow(self, turn: int) -> None:
        """Take the arrays of slots that are others since this turn."""
        moved = False
        for slot in self._slots:
            if slot.turn == turn:
                self._scope[self._names[id(slot)]] = slot.now
                moved = True
        for name, actions in self._lists if moved else ():
            self._scope[name] = _calls(actions)

    def release(self) -> None:
        """Let go of all arrays: the function and what it names know each other."""
        self._scope.clear()

    def _lines(self, actions: Sequence[Action]) -> list[str]:
        lines: list[str] = []
        alike: list[Action] = []  # calls with the same objects each time
        for action in actions:
            if action.into is None and not action.options and not any(slot.moves for slot in slots_in(action.operands)):
                alike.append(action)
            else:
                lines += [*self._loop(alike), self._line(action)]
                alike = []
        return lines + self._loop(alike)

    def _loop(self, actions: list[Action]) -> list[str]:
        if len(actions) < _MANY:
            return list(map(self._line, actions))
        name = f"calls{len(self._lists)}"
        self._scope[name] = _calls(actions)
        self._lists.append((name, actions))
        for action in actions:
            for slot in slots_in(action.operands):
                self._text(slot)
        return [f"for f, x in {name}: f(*x)"]

    def _line(self, action: Action) -> str:
        function, operands = action.function, [self._text(arg) for arg in action.operands]
        if function is operator.setitem:
            return f"{operands[0]}[{operands[1]}] = {operands[2]}"
        operands += [f"{name}={self._text(arg)}" for name, arg in action.options.items()]
        getitem = function is operator.getitem
        call = f"{operands[0]}[{operands[1]}]" if getitem else f"{self._text(function)}({', '.join(operands)})"
        if action.into is None:
            return call
        return f"{self._text(action.into) if isinstance(action.into, Slot) else self._tuple(action.into)} = {call}"

    def _tuple(self, parts: Sequence[Any]) -> str:
        return f"({', '.join(map(self._text, parts))}{',' if len(parts) == 1 else ''})"

    def _text(self, arg: Any) -> str:
        """Return what stands for something."""
        kind = type(arg)
        if arg is None or kind is bool or kind is int or kind is str:
            return repr(arg)
        if (kind is tuple or kind is list) and any(slots_in(arg)):
            return self._tuple(arg) if kind is tuple else f"[{', '.join(map(self._text, arg))}]"
        name = self._names.get(id(arg))
        if name is None:
            name = self._names[id(arg)] = f"x{len(self._names)}"
            if kind is not Slot:
                self._scope[name] = arg
            elif not arg.moves:
                self._scope[name] = arg.now
                self._slots.append(arg)
        return name


def _calls(actions: list[Action]) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    return [(action.function, tuple(map(settled, action.operands))) for action in actions]
