"""Self-check of CUDA graphs: a small step is captured, replayed twice, and compared with NumPy.

A replay that computes wrong values raises no error, so a model would be trained wrongly. The step
has products by the graph's cuBLAS handle, elementwise kernels, sums, copies to its state, and an
update of the state by a number that differs between the replays. Eager work before each replay
takes memory that the graph must not use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from itertools import count
from threading import RLock
from typing import Any

import numpy as np

from xgrad.backend.device import Device
from xgrad.capture.numbers import Number
from xgrad.capture.program import Call, Program, Storage, Unusable, Value
from xgrad_cupy.cublas import takes_tf32

_SAMPLES, _INPUTS, _OUTPUTS = 6, 5, 4
_RATES = (0.5, 0.25)  # one for each replay
_EAGER = 8  # number of arrays that are made before each replay: more than the step has temporaries
_TOLERANCE, _TF32_TOLERANCE = 1e-4, 2e-2  # relative to the largest expected value


class SelfCheck:
    """Outcomes of the check, which is made once for each class of executors and device."""

    def __init__(self) -> None:
        self._failures: dict[tuple[Any, int], str | None] = {}
        self._lock = RLock()  # other threads wait for the outcome

    def require(self, executor: Callable[[Program], Any], device: Any) -> None:
        """Check the graphs of an executor on one of CuPy's devices, at the first call.

        Raises Unusable if they are wrong, and also if the check could not be made: then the next
        call makes it.
        """
        key = executor, device.id
        with self._lock:
            if key not in self._failures:
                self._failures[key] = None  # the check itself links a program
                try:
                    self._failures[key] = _failure(executor, device)
                except BaseException:
                    del self._failures[key]
                    raise
            failure = self._failures[key]
        if failure is not None:
            raise Unusable(failure)


#: Outcomes in this process.
outcomes = SelfCheck()


def _failure(executor: Callable[[Program], Any], device: Any) -> str | None:
    """Return the first difference between replays and NumPy, or None if there is none."""
    cp: Any = import_module("cupy")
    tolerance = _TF32_TOLERANCE if takes_tf32(cp) else _TOLERANCE
    with device:
        try:
            results = _replayed(cp, executor)
        except Unusable:
            raise
        except Exception as error:
            raise Unusable(
                f"the self-check of CUDA graphs ended by {type(error).__name__}: {error}"
            ) from error
    for name, got, expected in results:
        # memory of eager work has NaN, elsewhere NaN is an error
        scale = np.max(np.abs(expected), initial=1.0, where=np.isfinite(expected))
        if not np.allclose(got, expected, rtol=0, atol=tolerance * scale, equal_nan=True):
            return (
                f"CUDA graphs are wrong on cuda:{device.id}: in a self-check, expected {name} to"
                f" be NumPy's within {tolerance * scale:.1g}, got a difference of"
                f" {np.max(np.abs(got - expected)):.3g}: see that driver, CUDA and CuPy fit"
                " together"
            )
    return None


def _replayed(
    cp: Any, executor: Callable[[Program], Any]
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Return the results of two replays, each with its name and the result of NumPy in float64."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((_INPUTS, _OUTPUTS)).astype(np.float32)
    state = [cp.asarray(weights), *(cp.zeros(_OUTPUTS, np.float32) for _ in range(3))]
    graph = executor(_program(Device("cuda").backend.xp))
    results: list[tuple[str, Any, Any]] = []
    try:
        graph.link(state)
        for i, rate in enumerate(_RATES, 1):
            for _ in range(_EAGER):
                eager = cp.full(_SAMPLES * _INPUTS, np.nan, np.float32)
                results.append((f"an array made before replay {i}", eager, np.full(1, np.nan)))
            x = rng.standard_normal((_SAMPLES, _INPUTS)).astype(np.float32)
            bias = rng.standard_normal(_OUTPUTS).astype(np.float32)
            outputs = graph.run(cp.asarray(x), cp.asarray(bias), rate)
            if isinstance(outputs, Exception):
                raise outputs
            hidden = np.maximum(x.astype(np.float64) @ weights + bias, 0)
            weights = weights - rate * (x.T @ hidden)
            results += [
                (f"the sum of replay {i}", outputs[0], hidden.sum()),
                (f"the hidden units of replay {i}", outputs[1], hidden),
            ]
        results += [
            ("the weights after both replays", state[0], weights),
            ("the sums of columns after both replays", state[1], hidden.sum(axis=0)),
            ("the first copy after both replays", state[2], bias),
            ("the second copy after both replays", state[3], bias),
        ]
        return [(name, array.get(), np.asarray(expected)) for name, array, expected in results]
    finally:
        graph.release()


def _program(xp: Any) -> Program:
    """Return the program of ``w -= rate * x.mT @ relu(x @ w + bias)``, with functions of `xp`.

    Its outputs are the sum of the hidden units, and the hidden units. It also copies their sums
    over samples, and twice the bias, to its state.
    """
    numbers = count()

    def value(array: np.ndarray, storage: Storage | None = None) -> Value:
        return Value(next(numbers), storage or Storage("temporary"), array)

    def empty(*shape: int) -> np.ndarray:
        return np.empty(shape, np.float32)

    x = value(empty(_SAMPLES, _INPUTS), Storage("input"))
    bias = value(empty(_OUTPUTS), Storage("input"))
    w = value(empty(_INPUTS, _OUTPUTS), Storage("state"))
    targets = [value(empty(_OUTPUTS), Storage("state")) for _ in range(3)]
    product, shifted, hidden = [value(empty(_SAMPLES, _OUTPUTS)) for _ in range(3)]
    sums, total = value(empty(_OUTPUTS)), value(empty())
    columns = value(empty(_SAMPLES, _INPUTS).T, x.storage)
    gradient, step = [value(empty(_INPUTS, _OUTPUTS)) for _ in range(2)]
    rate = Number(None, _RATES[0], "n0")
    calls = [
        Call(xp.matmul, (x, w), {}, results=(product,)),
        Call(operator.add, (product, bias), {}, results=(shifted,)),
        Call(xp.maximum, (shifted, 0.0), {}, results=(hidden,)),
        Call(xp.sum, (hidden,), {}, results=(total,)),
        Call(xp.sum, (hidden,), {"axis": 0}, results=(sums,)),
        Call(xp.matrix_transpose, (x,), {}, results=(columns,)),
        Call(xp.matmul, (columns, hidden), {}, results=(gradient,)),
        Call(operator.mul, (gradient, rate), {}, results=(step,)),
        Call(operator.isub, (w, step), {}, writes=(w,)),
        *[
            Call(operator.setitem, (target, ..., source), {}, writes=(target,))
            for target, source in zip(targets, (sums, bias, bias), strict=True)
        ],
    ]
    return Program([x, bias], [w, *targets], calls, [total, hidden], {})
