"""Elementwise update rules of optimizers as C: large parameters in blocks, on all threads, with the bits of NumPy.

A rule changes its arrays in place, and takes numbers, such as a learning rate. It is compiled for what it does with
them: which arrays there are, and how conditions of numbers come out, such as whether there is momentum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE, Overridable
from xgrad.capture.numbers import Number
from xgrad.capture.recorder import Recorder
from xgrad_numpy.native import library
from xgrad_numpy.native.blocks import BLOCK, Blocks, are_alike
from xgrad_numpy.native.runtime import Runtime, loaded_runtime

_MOST = 64  # compiled updates that are remembered
_ARRAY = object()  # stands for an array among arguments

#: Compiled updates by name, dtype, and what is the same in all their calls; None while one is made, and where there can
#: be none.
_KNOWN: dict[Any, CompiledUpdate | None] = {}


def find(name: str, args: tuple[Any, ...]) -> CompiledUpdate | None:
    """Return an overridable function compiled for calls like one, None until it is, and where it cannot be."""
    arrays = [x for x in args if type(x) is np.ndarray]
    runtime = loaded_runtime()
    if runtime is None or not are_alike(arrays) or not all(x.flags.writeable for x in arrays):
        return None
    facts = tuple(map(_fact, args))
    if None in facts:
        return None
    key = name, arrays[0].dtype, facts
    if key not in _KNOWN and len(_KNOWN) < _MOST:
        _KNOWN[key] = None
        template = tuple([_ARRAY if type(x) is np.ndarray else x for x in args])
        Thread(target=_make, args=(key, template, runtime), name="xgrad-compile", daemon=True).start()
    found = _KNOWN.get(key)
    return found if found is not None and found.fits(args, arrays) else None


def _fact(x: Any) -> Any:
    """Return what is to be the same in all calls of a compiled update: of numbers, that of which rules ask.

    None for what is neither an array, a number, a flag nor left out.
    """
    if type(x) is np.ndarray:
        return _ARRAY
    if _is_number(x):
        return type(x), x == 0, x == 1
    return ("constant", x) if x is None or type(x) is bool else None


def _is_number(x: Any) -> bool:
    return type(x) is float or type(x) is int


def _make(key: Any, template: Sequence[Any], runtime: Runtime) -> None:
    # Warnings are for the user's calls; a cache warns, too, which raises where warnings are errors.
    with suppress(library.Unavailable, RuntimeWarning), np.errstate(all="ignore"):
        name, dtype, _ = key
        _KNOWN[key] = compiled_update(OVERRIDABLE[name], dtype, template, runtime)


class CompiledUpdate:
    """An update rule: its function of C, the order in which that takes arrays, and the numbers that it is given.

    `numbers` and `conditions` are functions of the numbers among the arguments: the ones that C is given, and the
    outcomes of conditions, with which it was recorded. The rule returns its argument of the index `result`.
    """

    def __init__(
        self,
        blocks: Blocks,
        order: Sequence[int],
        kept: int,
        numbers: Callable[..., Any],
        conditions: Callable[..., bool],
        result: int | None,
    ) -> None:
        self._blocks, self._order, self._kept = blocks, order, kept
        self._numbers, self._conditions, self._result = numbers, conditions, result
        self._lock = Lock()  # numbers lie in memory of the function

    def fits(self, args: Sequence[Any], arrays: Sequence[np.ndarray]) -> bool:
        """Return whether conditions come out as recorded, and no two arrays share memory."""
        if not self._conditions(*filter(_is_number, args)):
            return False
        addresses, size = sorted(self._blocks.addresses(arrays)), arrays[0].nbytes
        return all(end - start >= size for start, end in itertools.pairwise(addresses))

    def __call__(self, args: Sequence[Any]) -> Any:
        """Change arrays in place, and return what the rule does."""
        values = self._numbers(*filter(_is_number, args))
        with self._lock:
            for (array, _), value in zip(self._blocks.numbers, values, strict=True):
                array[()] = value
            self._blocks.run([args[i] for i in self._order], read=len(self._order), kept=self._kept)
        return None if self._result is None else args[self._result]


def compiled_update(rule: Overridable, dtype: Any, template: Sequence[Any], runtime: Runtime) -> CompiledUpdate | None:
    """Return an update rule compiled for a dtype and arguments like these; None if it is more than loops."""
    device, generic = Device("cpu"), rule.generic
    recorder = Recorder(device, "")
    args, known, names, changed = list(template), dict[int, Any](), list[str](), set[int]()
    for i, (parameter, x) in enumerate(zip(generic.__code__.co_varnames[1:], template, strict=False)):
        if x is _ARRAY:
            known[i] = recorder.add_array(np.linspace(0.1, 0.9, BLOCK, dtype=dtype), "state", f"x{i}")
            args[i] = known[i][0]
            if parameter in rule.changes:
                changed.add(i)
        elif _is_number(x):
            names.append(f"n{len(names)}")
            args[i] = Number(recorder, x, names[-1])
    with recorder.active():
        returned = recorder.run(device, lambda device, *args: generic(device.xp, *args), tuple(args))
    result = next((i for i, (array, _) in known.items() if array is returned), None)
    if returned is not None and result is None:
        return None
    order = sorted(known, key=lambda i: i in changed)
    blocks = Blocks.of(recorder, [known[i] for i in order], runtime)
    if blocks is None:
        return None
    numbers = _function(names, "".join([f"{number.text}, " for _, number in blocks.numbers]))
    conditions = _function(names, " and ".join([f"({text}) is {truth}" for text, truth in recorder.conditions.items()]))
    made = CompiledUpdate(blocks, order, len(order) - len(changed), numbers, conditions, result)
    return made if _has_bits(made, generic, dtype, template) else None


def _function(names: Sequence[str], expression: str) -> Callable[..., Any]:
    """Return a function of the numbers among the arguments; of no expression, it is true."""
    function: Callable[..., Any] = eval(f"lambda {', '.join(names)}: ({expression or True})")
    return function


def _has_bits(compiled: CompiledUpdate, rule: Callable[..., Any], dtype: Any, template: Sequence[Any]) -> bool:
    """Return whether a compiled update has the bits of the rule on NumPy, tried with numbers for 2.5 blocks."""
    rng = np.random.default_rng(0)
    one = [rng.random(BLOCK * 5 // 2).astype(dtype) if x is _ARRAY else x for x in template]
    other = [x.copy() if isinstance(x, np.ndarray) else x for x in one]
    try:
        compiled(one)
    except MemoryError:
        return False
    rule(Device("cpu").xp, *other)
    return all(np.array_equal(x, y) for x, y in zip(one, other, strict=True) if isinstance(x, np.ndarray))
