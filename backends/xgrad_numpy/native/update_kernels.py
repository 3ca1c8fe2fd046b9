"""Elementwise update rules of optimizers in C: large parameters in blocks, on all threads.

The results have the bits of the rules on NumPy. A rule changes its arrays in place, and takes
numbers, such as a learning rate. It is compiled for one use of them: which arrays there are, and
the outcomes of conditions on numbers, such as whether there is momentum.
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
from xgrad_numpy.native.blocks import BLOCK, Blocks
from xgrad_numpy.native.kernels import warn_of
from xgrad_numpy.native.runtime import Runtime, loaded_runtime

_MOST = 64  # maximum number of compiled updates that are remembered
_ARRAY = object()  # stands for an array among arguments
_CONSTANTS = frozenset({bool, type(None)})
_NUMBERS = frozenset({float, int})

#: Kinds of calls by the name of the rule, the types of its arguments, and the dtype.
_KNOWN: dict[Any, _Kind | None] = {}


class _Kind:
    """Calls of a rule with arguments of the same types.

    It has the indices of the arguments of each type, and the updates compiled for them.
    """

    def __init__(self, types: Sequence[type]) -> None:
        self.arrays = [i for i, kind in enumerate(types) if kind is np.ndarray]
        self.numbers = [i for i, kind in enumerate(types) if kind in _NUMBERS]
        self.flags = [i for i, kind in enumerate(types) if kind is bool]
        self.updates: list[CompiledUpdate] = []
        # flags, and which numbers are 0 or 1, for which compilation was started
        self.tried = set[Any]()


def update(name: str, args: Sequence[Any]) -> tuple[bool, Any]:
    """Apply an overridable function that changes arguments, if it is compiled.

    Returns whether it was applied, and its result.
    """
    runtime, types = loaded_runtime(), tuple(map(type, args))
    if runtime is None:
        return False, None
    key = name, types, args[0].dtype
    kind = _KNOWN[key] if key in _KNOWN else _new_kind(key)
    if kind is None:
        return False, None
    arrays = [args[i] for i in kind.arrays]
    shape, dtype = arrays[0].shape, arrays[0].dtype
    if not all(x.shape == shape and x.dtype == dtype and x.flags.carray for x in arrays):
        return False, None
    addresses = runtime.addresses(*arrays)
    nbytes = arrays[0].nbytes
    if any(end - start < nbytes for start, end in itertools.pairwise(sorted(addresses))):
        return False, None  # a rule may read elements that it has written
    numbers, flags = [args[i] for i in kind.numbers], [args[i] for i in kind.flags]
    for compiled in kind.updates:
        if compiled.flags == flags and compiled.holds(*numbers):
            done = compiled(arrays, addresses, numbers)
            return done, args[compiled.result] if done and compiled.result is not None else None
    conditions = (*flags, *[(x == 0, x == 1) for x in numbers])
    if conditions not in kind.tried and len(kind.tried) < _MOST:
        kind.tried.add(conditions)
        template = tuple([_ARRAY if type(x) is np.ndarray else x for x in args])
        Thread(
            target=_make,
            args=(name, dtype, template, kind, runtime),
            name="xgrad-compile",
            daemon=True,
        ).start()
    return False, None


def _new_kind(key: Any) -> _Kind | None:
    """Remember a kind of calls; None if there can be no compiled updates."""
    _, types, dtype = key
    known = all(kind is np.ndarray or kind in _NUMBERS | _CONSTANTS for kind in types)
    kind = (
        _Kind(types)
        if known and dtype.kind == "f" and dtype.itemsize >= 4 and len(_KNOWN) < _MOST
        else None
    )
    return _KNOWN.setdefault(key, kind)


def _make(name: str, dtype: Any, template: Sequence[Any], kind: _Kind, runtime: Runtime) -> None:
    # Only the user's own calls should warn. The cache warns, too, which raises if warnings are
    # errors.
    with suppress(library.Unavailable, RuntimeWarning), np.errstate(all="ignore"):
        made = compiled_update(OVERRIDABLE[name], dtype, template, runtime)
        if made is not None:
            made.flags = [template[i] for i in kind.flags]
            kind.updates.append(made)


class CompiledUpdate:
    """An update rule: its C function, and the order in which that takes arrays.

    `numbers` and `holds` are functions of the numbers among the arguments. `numbers` returns the
    numbers for C; `holds` returns whether all conditions have the outcomes that they had in the
    trace. The update is for some `flags`. The rule returns its argument with the index `result`.
    """

    flags: Sequence[bool] = ()

    def __init__(
        self,
        blocks: Blocks,
        order: Sequence[int],
        kept: int,
        numbers: Callable[..., Any],
        holds: Callable[..., bool],
        result: int | None,
    ) -> None:
        self._blocks, self._order, self._kept = blocks, order, kept
        self._numbers, self.holds, self.result = numbers, holds, result
        self._lock = Lock()  # numbers are in memory of the function

    def __call__(
        self, arrays: Sequence[np.ndarray], addresses: Any, numbers: Sequence[Any]
    ) -> bool:
        """Change arrays, given with their addresses, in place.

        Returns False, and does nothing, while another call runs: in another thread, or in this one
        if a handler of a signal or of NumPy's errors makes the call.
        """
        values = self._numbers(*numbers)
        ordered = type(addresses)(*[addresses[i] for i in self._order])
        if not self._lock.acquire(blocking=False):
            return False
        try:
            for (array, _), value in zip(self._blocks.numbers, values, strict=True):
                array[()] = value
            raised = self._blocks.run_at(ordered, arrays[0], read=len(ordered), kept=self._kept)
        finally:
            self._lock.release()
        warn_of(raised)
        return True


def compiled_update(
    rule: Overridable, dtype: Any, template: Sequence[Any], runtime: Runtime
) -> CompiledUpdate | None:
    """Return an update rule compiled for a dtype and arguments like these.

    None if it has more than loops.
    """
    device, generic = Device("cpu"), rule.generic
    recorder = Recorder(device, "")
    args, names, changed = list(template), list[str](), set[int]()
    # known arrays and their positions among the arguments
    known, positions = (list[tuple[Any, Any]](), list[int]())
    for i, (parameter, x) in enumerate(
        zip(generic.__code__.co_varnames[1:], template, strict=False)
    ):
        if x is _ARRAY:
            if parameter in rule.changes:
                changed.add(len(known))
            known.append(
                recorder.add_array(np.linspace(0.1, 0.9, BLOCK, dtype=dtype), "state", f"x{i}")
            )
            positions.append(i)
            args[i] = known[-1][0]
        elif type(x) in _NUMBERS:
            names.append(f"n{len(names)}")
            args[i] = Number(recorder, x, names[-1])
    with recorder.active():
        returned = recorder.run(
            device, lambda device, *args: generic(device.xp, *args), tuple(args)
        )
    result = next(
        (i for i, (array, _) in zip(positions, known, strict=True) if array is returned), None
    )
    if returned is not None and result is None:
        return None
    order = sorted(range(len(known)), key=lambda i: i in changed)
    blocks = Blocks.of(recorder, [known[i] for i in order], runtime)
    if blocks is None:
        return None
    numbers = _function(names, "".join([f"{text}, " for _, text in blocks.numbers]))
    holds = _function(
        names, " and ".join([f"({text}) is {truth}" for text, truth in recorder.conditions.items()])
    )
    made = CompiledUpdate(blocks, order, len(order) - len(changed), numbers, holds, result)
    return made if _has_bits(made, generic, dtype, template, runtime) else None


def _function(names: Sequence[str], expression: str) -> Callable[..., Any]:
    """Return a function of the numbers among the arguments; it returns True for no expression."""
    function: Callable[..., Any] = eval(f"lambda {', '.join(names)}: ({expression or True})")
    return function


def _has_bits(
    compiled: CompiledUpdate,
    rule: Callable[..., Any],
    dtype: Any,
    template: Sequence[Any],
    runtime: Runtime,
) -> bool:
    """Return whether a compiled update has the bits of the rule on NumPy.

    It is tried with numbers for 2.5 blocks.
    """
    rng = np.random.default_rng(0)
    args = [rng.random(BLOCK * 5 // 2).astype(dtype) if x is _ARRAY else x for x in template]
    arrays = [x for x in args if isinstance(x, np.ndarray)]
    copies = [x.copy() for x in arrays]
    try:
        compiled(copies, runtime.addresses(*copies), [x for x in args if type(x) in _NUMBERS])
    except MemoryError:
        return False
    rule(Device("cpu").xp, *args)
    return all(map(np.array_equal, copies, arrays))
