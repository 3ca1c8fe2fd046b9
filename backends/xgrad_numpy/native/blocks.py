"""Elementwise loops in C: arrays of one shape and layout in blocks, which threads share out.

A trace for arrays of one block is lowered and fused as a captured step is. Its intermediate results
are in a thread's scratch memory, which stays in the cache.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np

from xgrad.capture.passes import optimize
from xgrad.capture.program import Program, Value
from xgrad.capture.recorder import Recorder
from xgrad_numpy.codegen import ArraySlot, Instruction
from xgrad_numpy.lowering import Lowering
from xgrad_numpy.native import library
from xgrad_numpy.native.calls import LoopCall
from xgrad_numpy.native.fusion import Nest, Run, fuse
from xgrad_numpy.native.kernels import warn_of
from xgrad_numpy.native.places import Place
from xgrad_numpy.native.printer import Source
from xgrad_numpy.native.runtime import Runtime

BLOCK = 1 << 10  # elements of a block
_SCRATCH, _CONSTANT = -1, -2  # sources of places, as in loops.c


class _Struct(ctypes.Structure):
    """``struct blocks`` of loops.c."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        *[
            (name, ctypes.c_int64)
            for name in "size block item scratch places read kept count".split()
        ],
        *[(name, ctypes.c_void_p) for name in ("sources", "offsets", "arrays")],
    ]


def are_alike(arrays: Sequence[Any]) -> bool:
    """Return whether all are arrays of one shape, layout and dtype, without gaps.

    The dtype must be a float that C has.
    """
    x = arrays[0]
    if (
        type(x) is not np.ndarray
        or x.dtype.kind != "f"
        or x.itemsize < 4
        or not all(_is_like(y, x) for y in arrays)
    ):
        return False
    return x.flags.c_contiguous or _is_dense(x.shape, x.strides, x.itemsize)


def _is_like(y: Any, x: np.ndarray) -> bool:
    """Return whether an argument is an array with the shape, strides and dtype of `x`."""
    same = (
        type(y) is np.ndarray
        and y.shape == x.shape
        and y.strides == x.strides
        and y.dtype == x.dtype
    )
    return same and y.flags.aligned


@lru_cache(1024)
def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> bool:
    """Return whether elements lie without gaps, in any order of the axes."""
    expected = item
    for stride, n in sorted(
        [(stride, n) for stride, n in zip(strides, shape, strict=True) if n > 1]
    ):
        if stride != expected:
            return False
        expected *= n
    return True


class Blocks:
    """The C function for a block of elements, the places it accesses, and its `numbers`.

    Each number is a 0-d array, to which a caller writes the value, with the number's expression.
    """

    numbers: Sequence[tuple[np.ndarray, str]]

    def __init__(
        self,
        function: Any,
        places: Sequence[Place],
        arrays: Sequence[ArraySlot],
        lowering: Lowering,
        runtime: Runtime,
    ) -> None:
        memory = lowering.memory.array
        start = memory.__array_interface__["data"][0]
        number_of = {id(slot): i for i, slot in enumerate(arrays)}
        sources, offsets = list[int](), list[int]()
        for place in places:
            within = start <= place.address < start + memory.size
            source = number_of.get(id(place.operand), _SCRATCH if within else _CONSTANT)
            sources.append(source)
            offsets.append(place.address - start if source == _SCRATCH else place.address)
        constants = [place for place, i in zip(places, sources, strict=True) if i == _CONSTANT]
        self._kept = function, constants  # alive as long as their addresses are used
        integers = ctypes.c_int64 * len(places)
        self._sources, self._offsets = integers(*sources), integers(*offsets)
        self._run = ctypes.cast(function, ctypes.c_void_p).value
        self._scratch, self._runtime = memory.size, runtime

    @classmethod
    def of(
        cls, recorder: Recorder, known: Sequence[tuple[Any, Value]], runtime: Runtime
    ) -> Self | None:
        """Return the blocks of a trace for arrays of one block, given with their values.

        None if the trace has more than loops.
        """
        if recorder.refusal:
            return None
        program = Program([], [value for _, value in known], recorder.calls, [], recorder.constants)
        optimize(program)
        if len(program.state) < len(known):
            return None
        by_number = {value.number: array for array, value in known}
        state = [by_number[value.number] for value in program.state]
        lowering = Lowering(program, state)
        for slot, array in zip(lowering.state, state, strict=True):
            slot.array = array
        for slot in lowering.static:
            slot.array = slot.find()
        instructions, numbers = list[Instruction](), list[tuple[np.ndarray, str]]()
        number_of = dict(zip(map(id, lowering.parameters), program.numbers, strict=True))
        for x in (*lowering.before, *lowering.after):
            number = number_of.get(id(x.operands[-1])) if x.function is operator.setitem else None
            if number is not None and x.operands[1] == ():
                numbers.append((x.operands[0], number.text))
            else:
                instructions.append(x)
        (runs,) = fuse([instructions], lowering.memory.array, [], least=1)
        if any(type(x) is not Run for x in runs) or any(
            type(y) not in (Nest, LoopCall) for x in runs for y in x.parts
        ):
            return None
        source = Source()
        function = source.add(Run([part for run in runs for part in run.parts]))
        if function is None:
            return None
        compiled = library.load(source.text)
        runtime.connect(compiled, source.loops)
        slots = {
            value.number: slot for value, slot in zip(program.state, lowering.state, strict=True)
        }
        of_arrays = [slots[value.number] for _, value in known]
        made = cls(compiled[function.name], function.places, of_arrays, lowering, runtime)
        made.numbers = numbers
        return made

    def run(self, arrays: Sequence[np.ndarray], read: int, kept: int) -> None:
        """Run the function for arrays of one shape and layout.

        The first `read` arrays are read, and all but the first `kept` are written.
        """
        warn_of(self.run_at(self._runtime.addresses(*arrays), arrays[0], read, kept))

    def run_at(self, addresses: Any, x: np.ndarray, read: int, kept: int) -> int:
        """Run the function for arrays at these addresses, all like `x`: see `run`.

        Returns the floating-point exceptions, for `warn_of`.
        """
        blocks = _Struct(
            self._run,
            x.size,
            BLOCK,
            x.itemsize,
            self._scratch,
            len(self._sources),
            read,
            kept,
            len(addresses),
            ctypes.addressof(self._sources),
            ctypes.addressof(self._offsets),
            ctypes.addressof(addresses),
        )
        if not self._runtime.functions.run_blocks(ctypes.byref(blocks)):
            raise MemoryError("expected a rule of fewer arrays and results")
        raised: int = self._runtime.take_raised()
        return raised
