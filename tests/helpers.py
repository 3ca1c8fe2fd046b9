"""Helpers of several test modules: tensors, arrays, functions, threads, expected errors."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor
from xgrad_numpy.native import library


def skip_without_compiler() -> None:
    """Skip a test of native kernels if no C compiler is usable.

    It must be found, and accept the flags in ``CC``.
    """
    try:
        library.load("int answer(void) { return 42; }\n")
    except library.Unavailable as error:
        pytest.skip(f"needs a compiler of C: {error}")


def wait_for(find: Callable[[], Any]) -> Any:
    """Return what a function finds once another thread has made it; None counts as nothing."""
    for _ in range(1000):
        if (found := find()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("it is not made")


def leaf(values: Any = (1.0, 2.0), **options: Any) -> Tensor:
    """Return a leaf that requires a gradient."""
    return Tensor(values, requires_grad=True, **options)


def leaf64(values: Any, device: str = "cpu") -> Tensor:
    """Return a leaf of float64 or complex128; floating arrays of NumPy keep their dtype."""
    values = np.asarray(values)
    values = values.astype(np.float64) if values.dtype.kind in "biu" else values
    return leaf(values, dtype=values.dtype, device=device)


def on(device: str, values: Any) -> Tensor:
    """Return a tensor on a device; lists and numbers get the dtype that NumPy gives them."""
    return xgrad.asarray(np.asarray(values), device=device)


def host(x: Tensor) -> np.ndarray:
    """Return the values of a tensor as an array of NumPy of its own."""
    return np.array(x.detach().cpu().numpy())


def uniform(*shape: int, seed: int = 0, low: float = 0.5, high: float = 2.0) -> np.ndarray:
    """Return uniform random numbers."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def function(
    name: str, forward: Callable[..., Any], backward: Callable[..., Any] = lambda xp, g: g
) -> Any:
    """Return an instance of a subclass of `xgrad.Function` with these two methods."""
    return type(
        name,
        (xgrad.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )()


def run_threads(work: Callable[..., Any], arguments: Iterable[Any] = (None,)) -> None:
    """Call a function with each argument in a thread of its own, and wait for all of them."""
    threads = [threading.Thread(target=work, args=() if n is None else (n,)) for n in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_error(call: str, expected: str, **names: Any) -> None:
    """Evaluate a call that must raise `expected`: a class and a message, with … for any text.

    In the call, `xp` is xgrad.
    """
    try:
        eval(call, {"xp": xgrad, **names})
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert re.match(".*".join(map(re.escape, re.split(" ?… ?", expected))), text, re.DOTALL), (
            text
        )
    else:
        raise AssertionError(f"{call} raised no error")


def override(options: Sequence[Any], *others: Any) -> list[Any]:
    """Return the arguments of a command with some options replaced by name."""
    kept: list[Any] = []
    dropped = False
    for argument in options:
        if str(argument).startswith("--"):
            dropped = argument in others
        if not dropped:
            kept.append(argument)
    return [*kept, *others]
