"""Elementwise rules of eager mode as C: large arrays in blocks, on all threads, with the bits of the rule on NumPy.

A rule is written once, for the array API. It is recorded for arrays of one block, as a captured step is, and lowered
and fused as one. Its intermediate results are scratch memory of a thread, which stays in the cache.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from threading import Thread
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.backend.recording import assign
from xgrad.capture.passes import optimize
from xgrad.capture.program import Program
from xgrad.capture.recorder import Recorder
from xgrad_numpy.lowering import Lowering
from xgrad_numpy.native import library
from xgrad_numpy.native.fusion import LoopCall, Nest, Place, Run, fuse
from xgrad_numpy.native.kernels import warn_of
from xgrad_numpy.native.printer import Source
from xgrad_numpy.native.runtime import Runtime, loaded_runtime

BLOCK = 1 << 10  # elements
_SCRATCH, _CONSTANT = -1, -2  # sources of places, as in loops.c


class _Blocks(ctypes.Structure):
    """``struct blocks`` of loops.c."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        *[(name, ctypes.c_int64) for name in "size block item scratch places inputs count".split()],
        *[(name, ctypes.c_void_p) for name in ("sources", "offsets", "arrays")],
    ]


#: Compiled rules by name and dtype, None for those that cannot be compiled, and the threads that compile them.
_COMPILED: dict[tuple[str, Any], CompiledRule | None] = {}
_COMPILING: dict[tuple[str, Any], Thread] = {}


def find(name: str, arrays: Sequence[Any]) -> CompiledRule | None:
    """Return a rule compiled for the dtype of some arrays, None until it is, and where it cannot be."""
    x = arrays[0]
    if type(x) is not np.ndarray or x.dtype.kind != "f" or x.itemsize < 4 or not all(_is_like(y, x) for y in arrays):
        return None
    if not (x.flags.c_contiguous or _is_dense(x.shape, x.strides, x.itemsize)):
        return None
    key = name, x.dtype
    runtime = loaded_runtime()
    if runtime is None:
        return None
    if key not in _COMPILING:
        _COMPILING[key] = Thread(target=_compile, args=(*key, len(arrays), runtime), name="xgrad-compile", daemon=True)
        _COMPILING[key].start()
    return _COMPILED.get(key)


def _compile(name: str, dtype: Any, count: int, runtime: Runtime) -> None:
    with suppress(library.Unavailable, RuntimeWarning):  # the latter of a cache, where warnings are errors
        _COMPILED[name, dtype] = compiled_rule(OVERRIDABLE[name].generic, dtype, count, runtime)


def _is_like(y: Any, x: np.ndarray) -> bool:
    """Return whether an argument is an array of the shape, the strides and the dtype of another one."""
    same = type(y) is np.ndarray and y.shape == x.shape and y.strides == x.strides and y.dtype == x.dtype
    return same and y.flags.aligned


@lru_cache(1024)
def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> bool:
    """Return whether elements lie without gaps, in any order of the axes."""
    expected = item
    for stride, n in sorted([(stride, n) for stride, n in zip(strides, shape, strict=True) if n > 1]):
        if stride != expected:
            return False
        expected *= n
    return True


class CompiledRule:
    """A rule for arrays of a dtype: the function of C for a block, and where its places are."""

    def __init__(self, function: Any, places: Sequence[Place], arrays: Sequence[Any], inputs: int, lowering: Lowering,
                 runtime: Runtime, single: bool) -> None:  # fmt: skip
        self._kept = function, places  # with the constants
        memory = lowering.memory.array
        start = memory.__array_interface__["data"][0]
        number_of = {id(slot): i for i, slot in enumerate(arrays)}
        sources, offsets = list[int](), list[int]()
        for place in places:
            within = start <= place.address < start + memory.size
            source = number_of.get(id(place.operand), _SCRATCH if within else _CONSTANT)
            sources.append(source)
            offsets.append(place.address - start if source == _SCRATCH else place.address)
        integers = ctypes.c_int64 * len(places)
        self._sources, self._offsets = integers(*sources), integers(*offsets)
        self._run = ctypes.cast(function, ctypes.c_void_p).value
        self._scratch, self._inputs, self._runtime, self._single = memory.size, inputs, runtime, single
        self._outputs = len(arrays) - inputs

    def __call__(self, inputs: Sequence[np.ndarray]) -> Any:
        """Return the result for arrays of one shape and layout, without gaps; it has that layout, too."""
        x = inputs[0]
        outputs = [np.empty_like(x) for _ in range(self._outputs)]
        arrays = (*inputs, *outputs)
        addresses = self._runtime.addresses(*arrays)
        blocks = _Blocks(
            self._run, x.size, BLOCK, x.itemsize, self._scratch, len(self._sources), self._inputs, len(arrays),
            ctypes.addressof(self._sources), ctypes.addressof(self._offsets), ctypes.addressof(addresses),
        )  # fmt: skip
        if not self._runtime.functions.run_blocks(ctypes.byref(blocks)):
            raise MemoryError("expected a rule of fewer arrays and results")
        warn_of(self._runtime.take_raised())
        return outputs[0] if self._single else tuple(outputs)


def compiled_rule(rule: Callable[..., Any], dtype: Any, count: int, runtime: Runtime) -> CompiledRule | None:
    """Return a rule of some arrays compiled for a dtype; None if it is more than loops over elements."""
    inputs = [np.linspace(0.1, 0.9, BLOCK, dtype=dtype) for _ in range(count)]
    device = Device("cpu")
    results = rule(device.xp, *inputs)
    single = not isinstance(results, tuple)
    outputs = [np.empty_like(x) for x in ([results] if single else results)]
    recorder = Recorder(device, "")
    with recorder.active():
        known = [recorder.add_array(x, "state", f"x{i}") for i, x in enumerate((*inputs, *outputs))]
        arrays = [array for array, _ in known]
        results = recorder.run(device, lambda device, *xs: rule(device.xp, *xs), tuple(arrays[:count]))
        for out, result in zip(arrays[count:], [results] if single else results, strict=True):
            recorder.run(device, assign, (out, result))
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
    slots = {value.number: slot for value, slot in zip(program.state, lowering.state, strict=True)}
    (runs,) = fuse([[*lowering.before, *lowering.after]], lowering.memory.array, [], least=1)
    if any(type(x) is not Run for x in runs) or any(type(y) not in (Nest, LoopCall) for x in runs for y in x.parts):
        return None
    source = Source()
    named = source.add(Run([part for run in runs for part in run.parts]))
    if named is None:
        return None
    compiled = library.load(source.text)
    runtime.connect(compiled, source.loops)
    name, places = named
    ordered = [slots[value.number] for _, value in known]
    made = CompiledRule(compiled[name], places, ordered, count, lowering, runtime, single)
    return made if _has_bits(made, rule, dtype, count) else None


def _has_bits(compiled: CompiledRule, rule: Callable[..., Any], dtype: Any, count: int) -> bool:
    """Return whether a compiled rule has the bits of the rule on NumPy, tried with numbers for 2.5 blocks."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(BLOCK * 5 // 2).astype(dtype) for _ in range(count)]
    try:
        got = compiled(inputs)
    except MemoryError:
        return False
    expected = rule(Device("cpu").xp, *inputs)
    pairs = zip(*[x if isinstance(x, tuple) else (x,) for x in (got, expected)], strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)
