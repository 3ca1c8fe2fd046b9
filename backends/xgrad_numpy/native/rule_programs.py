"""Rules of eager mode as programs: traced once for arrays of some shapes, then replayed.

They run as a captured step does. A rule such as the gradient of a normalization makes many NumPy
calls. Traced, lowered and fused it makes a few C calls, which share out the work over all threads,
with the same bits. A program belongs to the shapes, strides and dtypes of its arrays, and to its
other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
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
from xgrad_numpy.native.runtime import Runtime, loaded_runtime

_WARM = 8  # number of calls with similar arguments after which a rule is traced for them
_MOST = 1 << 10  # maximum number of arguments that are remembered
_MEMORY = 1 << 26  # maximum bytes of buffers and constants of all programs, which keep them

#: Types of arguments that a program takes as constants.
_CONSTANTS = frozenset({bool, int, float, str, type(None), Device})

#: Programs by the properties that all their calls share; None while a program is being made, and if
#: there can be none.
_PROGRAMS: dict[Any, RuleProgram | None] = {}
#: The number of calls, by the same properties, as long as there is no program.
_CALLS: dict[Any, int] = {}
_MAKING = Lock()  # one at a time, or threads would compile on all cores


@dataclass(slots=True)
class _Output:
    """The index of an array among the outputs of a program."""

    index: int


class RuleProgram:
    """A rule for similar arguments.

    It consists of the function that runs the program, and the rule's result, in which indices stand
    for outputs of the program.
    """

    def __init__(self, code: Code, result: Any, nbytes: int, runtime: Runtime) -> None:
        self._code, self._result, self.nbytes, self._runtime = code, result, nbytes, runtime
        self._lock = Lock()

    def __call__(self, arrays: Sequence[np.ndarray]) -> Any:
        """Return the result for arrays.

        None if the program runs in another thread, or raised an error.
        """
        if not self._lock.acquire(blocking=False):
            return None
        outputs = None
        try:
            outputs = self._code.run(*arrays)
        finally:
            self._lock.release()
            if type(outputs) is not tuple:
                self._runtime.take_raised()  # or a later call would raise this call's exceptions
        if type(outputs) is not tuple:
            return None
        return map_leaves(
            lambda leaf: outputs[leaf.index] if type(leaf) is _Output else leaf, self._result
        )


def call(name: str, args: tuple[Any, ...]) -> Any:
    """Return the result of an overridable function by its program.

    None until there is a program, or if there can be none.
    """
    runtime = loaded_runtime()
    if runtime is None:
        return None
    arrays, threads = list[np.ndarray](), int(runtime.functions.threads())
    facts: list[Any] = [name, threads]
    for leaf in leaves(args):
        # unaligned arrays give products other bits
        if type(leaf) is np.ndarray and leaf.flags.aligned:
            arrays.append(leaf)
            facts += [leaf.shape, leaf.strides, leaf.dtype]
        elif type(leaf) in _CONSTANTS:
            facts += [type(leaf), repr(leaf)]  # tells -0.0 from 0.0
        else:
            return None
    key = tuple(facts)
    if key not in _PROGRAMS:
        _note(key, args, runtime)
    program = _PROGRAMS.get(key)
    return None if program is None else program(arrays)


def _note(key: Any, args: tuple[Any, ...], runtime: Runtime) -> None:
    """Count a call without a program; the last of several calls starts making one."""
    if len(_CALLS) >= _MOST:
        _CALLS.clear()
    count = _CALLS[key] = _CALLS.get(key, 0) + 1
    if count < _WARM or len(_PROGRAMS) >= _MOST:
        return
    _CALLS.pop(key, None)
    _PROGRAMS[key] = None
    if sum([x.nbytes for x in leaves(args) if type(x) is np.ndarray]) <= _MEMORY:
        try:
            # Only the user's own calls should warn.
            with suppress(Unusable, MemoryError), np.errstate(all="ignore"):
                recording = RuleRecording(OVERRIDABLE[key[0]].generic, args, runtime)
                if recording.nbytes <= _MEMORY and recording.threads == key[1]:
                    work = partial(_make, key, recording, runtime)
                    Thread(target=work, name="xgrad-compile", daemon=True).start()
        except BaseException:  # an interrupt: start counting again
            _PROGRAMS.pop(key, None)
            raise


def _make(key: Any, recording: RuleRecording, runtime: Runtime) -> None:
    # The cache warns, too; that raises if warnings are errors.
    with suppress(library.Unavailable, RuntimeWarning, MemoryError), _MAKING:
        made = recording.compiled(runtime)
        held = sum([known.nbytes for known in list(_PROGRAMS.values()) if known is not None])
        if made is None or held + made.nbytes > _MEMORY:
            return
        if runtime.functions.threads() == recording.threads:  # products were tried with this number
            _PROGRAMS[key] = made


class RuleRecording:
    """A function of a namespace, traced for arrays like the ones in `args`; its products are tried.

    The thread that calls the function does both, see `Kernels`. Another thread may call `compiled`.

    Raises
    ------
    Unusable
        If it cannot be traced.
    """

    def __init__(self, rule: Callable[..., Any], args: tuple[Any, ...], runtime: Runtime) -> None:
        device = Device("cpu")
        recorder = Recorder(device, "")
        inputs = list[Value]()

        def enter(leaf: Any) -> Any:
            if type(leaf) is not np.ndarray:
                return leaf
            # A copy: with one array given twice, the program would hold only for calls like that.
            array, value = recorder.add_array(copy_with_strides(leaf), "input", f"x{len(inputs)}")
            inputs.append(value)
            return array

        with recorder.active():
            result = recorder.run(
                device, lambda device, *args: rule(device.xp, *args), map_leaves(enter, args)
            )
        if recorder.refusal:
            raise Unusable(recorder.refusal)
        outputs: list[Value] = []

        def leave(leaf: Any) -> Any:
            value = recorder.value_of(leaf)
            if value is None:
                return leaf
            if value not in outputs:
                outputs.append(value)
            return _Output(outputs.index(value))

        self._result = map_leaves(leave, result)
        program = Program(inputs, [], recorder.calls, outputs, recorder.constants)
        optimize(program)
        program.inputs = inputs
        lowering = Lowering(program, [])
        for slot in lowering.static:
            slot.array = slot.find()
        self.nbytes = lowering.nbytes + sum([array.nbytes for array in program.constants.values()])
        self._kernels = Kernels(lowering)
        for _ in self._kernels.trials(runtime):
            pass
        self.threads = self._kernels.threads

    def compiled(self, runtime: Runtime) -> RuleProgram | None:
        """Return the program; None if C has nothing to compute. Raises as `library.load`."""
        kernels = self._kernels.prepare(runtime)
        if kernels is None:
            return None
        return RuleProgram(self._kernels.code(kernels), self._result, self.nbytes, runtime)
