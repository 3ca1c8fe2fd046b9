"""Rules of eager mode as programs: recorded once for arrays of some shapes, and then run as a captured step is.

A rule such as the gradient of a normalization is many calls of NumPy. Recorded, lowered and fused it is a few calls of
C, which share out the work over all threads, with the same bits. A program belongs to the shapes, strides and dtypes of
its arrays, and to its other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.capture.passes import optimize
from xgrad.capture.program import Program, Unusable, Value, leaves, map_leaves
from xgrad.capture.recorder import Recorder
from xgrad_numpy.buffer_assignment import copy_with_strides
from xgrad_numpy.codegen import Code
from xgrad_numpy.lowering import Lowering
from xgrad_numpy.native import library
from xgrad_numpy.native.kernels import Kernels
from xgrad_numpy.native.runtime import loaded_runtime

_WARM = 8  # calls with arguments alike after which a rule is recorded for them
_MOST = 1 << 10  # arguments that are remembered
_MEMORY = 1 << 26  # bytes of buffers that all programs together may have: a program keeps its buffers between calls

#: Types of arguments that a program takes as constants.
_CONSTANTS = frozenset({bool, int, float, str, type(None), Device})

#: The number of calls so far, or a program, None while it is made, and where there can be none.
_KNOWN: dict[Any, int | RuleProgram | None] = {}


@dataclass(slots=True)
class _Output:
    """The place of an array among the outputs of a program."""

    index: int


class RuleProgram:
    """A rule for arguments alike: the function that runs the program, and what the rule returns of its outputs."""

    def __init__(self, code: Code, result: Any, nbytes: int) -> None:
        self._code, self._result, self.nbytes = code, result, nbytes
        self._lock = Lock()

    def __call__(self, arrays: Sequence[np.ndarray]) -> Any:
        """Return the result for arrays; None if the program runs in another thread, or raised an error."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            outputs = self._code.run(*arrays)
        finally:
            self._lock.release()
        if type(outputs) is not tuple:
            return None
        return map_leaves(lambda leaf: outputs[leaf.index] if type(leaf) is _Output else leaf, self._result)


def call(name: str, args: tuple[Any, ...]) -> Any:
    """Return the result of an overridable function by its program; None until there is one, or if there can be none."""
    runtime = loaded_runtime()
    if runtime is None:
        return None
    arrays, key = list[np.ndarray](), [name, runtime.functions.threads()]
    for leaf in leaves(args):
        if type(leaf) is np.ndarray:
            arrays.append(leaf)
            key += [leaf.shape, leaf.strides, leaf.dtype]
        elif type(leaf) in _CONSTANTS:
            key += [type(leaf), repr(leaf)]  # -0.0 is no 0.0
        else:
            return None
    found = _KNOWN.get(tuple(key), 0)
    if isinstance(found, int):
        _count(tuple(key), found + 1, name, args)
        return None
    return None if found is None else found(arrays)


def _count(key: Any, count: int, name: str, args: tuple[Any, ...]) -> None:
    """Note a call; the first of many has a program made."""
    if len(_KNOWN) >= _MOST:
        _KNOWN.clear()
    _KNOWN[key] = count if count < _WARM else None
    if count == _WARM:
        examples = map_leaves(lambda x: copy_with_strides(x) if type(x) is np.ndarray else x, args)  # those may change
        Thread(target=_make, args=(key, name, examples), name="xgrad-compile", daemon=True).start()


def _make(key: Any, name: str, args: tuple[Any, ...]) -> None:
    # Warnings are for the user's calls; a cache warns, too, which raises where warnings are errors.
    with suppress(library.Unavailable, Unusable, RuntimeWarning), np.errstate(all="ignore"):
        made = program_of(OVERRIDABLE[name].generic, args)
        held = sum([known.nbytes for known in _KNOWN.values() if type(known) is RuleProgram])
        if made is not None and held + made.nbytes <= _MEMORY:
            _KNOWN[key] = made


def program_of(rule: Callable[..., Any], args: tuple[Any, ...]) -> RuleProgram | None:
    """Return the program of a function of a namespace for arguments like these; None if it cannot be recorded."""
    device = Device("cpu")
    recorder = Recorder(device, "")
    inputs = list[Value]()

    def enter(leaf: Any) -> Any:
        if type(leaf) is not np.ndarray:
            return leaf
        array, value = recorder.add_array(leaf, "input", f"x{len(inputs)}")
        inputs.append(value)
        return array

    with recorder.active():
        result = recorder.run(device, lambda device, *args: rule(device.xp, *args), map_leaves(enter, args))
    if recorder.refusal:
        return None
    outputs: list[Value] = []

    def leave(leaf: Any) -> Any:
        value = recorder.value_of(leaf)
        if value is None:
            return leaf
        if value not in outputs:
            outputs.append(value)
        return _Output(outputs.index(value))

    result = map_leaves(leave, result)
    program = Program(inputs, [], recorder.calls, outputs, recorder.constants)
    optimize(program)
    program.inputs = inputs
    lowering = Lowering(program, [])
    for slot in lowering.static:
        slot.array = slot.find()
    kernels = Kernels(lowering)
    compiled = kernels.prepare()
    code = None if compiled is None else kernels.code(compiled)
    return None if code is None else RuleProgram(code, result, lowering.nbytes)
