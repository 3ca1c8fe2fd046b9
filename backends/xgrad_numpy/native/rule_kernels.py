"""Elementwise rules of eager mode in C: large arrays in blocks, on all threads.

The results have the bits of the rules on NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.backend.recording import assign
from xgrad.capture.recorder import Recorder
from xgrad_numpy.native import library
from xgrad_numpy.native.blocks import BLOCK, Blocks, are_alike
from xgrad_numpy.native.runtime import Runtime, loaded_runtime

#: Compiled rules by name and dtype, None for rules that cannot be compiled; and the threads that
#: compile them.
_COMPILED: dict[tuple[str, Any], CompiledRule | None] = {}
_COMPILING: dict[tuple[str, Any], Thread] = {}


def find(name: str, arrays: Sequence[Any]) -> CompiledRule | None:
    """Return a rule compiled for the dtype of some arrays.

    None until it is compiled, or if it cannot be.
    """
    runtime = loaded_runtime()
    if runtime is None or not are_alike(arrays):
        return None
    key = name, arrays[0].dtype
    if key not in _COMPILING:
        _COMPILING[key] = Thread(
            target=_compile, args=(*key, len(arrays), runtime), name="xgrad-compile", daemon=True
        )
        _COMPILING[key].start()
    return _COMPILED.get(key)


def _compile(name: str, dtype: Any, count: int, runtime: Runtime) -> None:
    # the cache warns; a RuntimeWarning is raised if warnings are errors
    with suppress(library.Unavailable, RuntimeWarning):
        _COMPILED[name, dtype] = compiled_rule(OVERRIDABLE[name].generic, dtype, count, runtime)


class CompiledRule:
    """A rule for arrays of one dtype, with its number of results; one result may be `single`."""

    def __init__(self, blocks: Blocks, outputs: int, single: bool) -> None:
        self._blocks, self._outputs, self._single = blocks, outputs, single

    def __call__(self, inputs: Sequence[np.ndarray]) -> Any:
        """Return the result for arrays of one shape and layout, without gaps.

        The result has the same layout.
        """
        outputs = [np.empty_like(inputs[0]) for _ in range(self._outputs)]
        self._blocks.run((*inputs, *outputs), read=len(inputs), kept=len(inputs))
        return outputs[0] if self._single else tuple(outputs)


def compiled_rule(
    rule: Callable[..., Any], dtype: Any, count: int, runtime: Runtime
) -> CompiledRule | None:
    """Return a rule of `count` arrays compiled for a dtype.

    None if it has more than loops over elements.
    """
    inputs = [np.linspace(0.1, 0.9, BLOCK, dtype=dtype) for _ in range(count)]
    device = Device("cpu")
    results = rule(device.xp, *inputs)
    single = not isinstance(results, tuple)
    outputs = [np.empty_like(x) for x in ([results] if single else results)]
    recorder = Recorder(device, "")
    with recorder.active():
        known = [recorder.add_array(x, "state", f"x{i}") for i, x in enumerate((*inputs, *outputs))]
        arrays = [array for array, _ in known]
        results = recorder.run(
            device, lambda device, *xs: rule(device.xp, *xs), tuple(arrays[:count])
        )
        for out, result in zip(arrays[count:], [results] if single else results, strict=True):
            recorder.run(device, assign, (out, result))
    blocks = Blocks.of(recorder, known, runtime)
    made = None if blocks is None else CompiledRule(blocks, len(outputs), single)
    return made if made is not None and _has_bits(made, rule, dtype, count) else None


def _has_bits(compiled: CompiledRule, rule: Callable[..., Any], dtype: Any, count: int) -> bool:
    """Return whether a compiled rule has the bits of the rule on NumPy.

    It is tried with numbers for 2.5 blocks.
    """
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(BLOCK * 5 // 2).astype(dtype) for _ in range(count)]
    try:
        got = compiled(inputs)
    except MemoryError:
        return False
    expected = rule(Device("cpu").xp, *inputs)
    pairs = zip(*[x if isinstance(x, tuple) else (x,) for x in (got, expected)], strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)
