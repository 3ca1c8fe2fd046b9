"""Captured steps: recorded once while they run eagerly, and replayed as a flat list of calls of the
array library.

A recorded call: raw arrays enter array code through `xgrad.backend.recording`, where `recorder`
gives it `proxies` that write down each call. A replayed call: a generated check, the executor of
the backend, and effects. ``docs/capture.md`` has a picture of both, and the contract.

=====================  =====================================================  ====================================
module                 subject                                                look here where
=====================  =====================================================
==================================== `captured`             the calls of a captured step: replay,
record, refuse   a step is recorded too often `recorder`, `proxies`  the calls of the array library,
as they are made       a call is missing in ``program()``
                                                                              (or a whole backward
                                                                              pass: below)
`numbers`              numbers of update rules and random kernels             a learning rate is not
followed `state`                what the function of a step leads to                   a tensor is
not found, or is stale `slots`                where state is kept, before and after a step
a change of the step is lost `guards`,              the conditions of a program, and their function
a program is replayed although it `check_writer`
should not be, or never `effects`              what a replay leaves behind, and returns
a result, gradient or count is wrong
                                                                              (losses that drift
                                                                              apart: below)
`cached_program`       a program with its guards, effects and memory          a replay works on
other arrays `program`, `passes`    values, calls, and simplification                      a call
that matters was dropped `fusion`               groups of elementwise calls, for executors
bits differ on `cuda` unless
                                                                              ``native=False``
`printer`              the text of a program                                  ``program()`` reads
badly `verification`         the comparison of replays with eager steps             ``verify=``
finds too little =====================  =====================================================
====================================

A write to memory of the step that is no array code, in the engine, in an optimizer or in its
buffers, is missing in ``program()``, with all calls that led to it: losses and parameters drift
from the first replay on. ``docs/capture.md`` has how to find its line. ``CONTRIBUTING.md`` has what
a new kind of state needs.

Where only bits differ, look into the lowering of the backend, such as
``backends/xgrad_numpy/lowering.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from xgrad.backend.recording import CaptureError, CaptureWarning

if TYPE_CHECKING:
    from xgrad.capture.captured import Captured

__all__ = ["CaptureError", "CaptureWarning", "Captured", "capture"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def capture(
    step: Callable[P, R],
    *,
    state: Any = None,
    limit: int = 16,
    verify: int = 0,
    native: bool | None = None,
) -> Captured[P, R]: ...
@overload
def capture(
    *, state: Any = None, limit: int = 16, verify: int = 0, native: bool | None = None
) -> Callable[[Callable[P, R]], Captured[P, R]]: ...
def capture(
    step: Any = None,
    *,
    state: Any = None,
    limit: int = 16,
    verify: int = 0,
    native: bool | None = None,
) -> Any:
    """Return a function that records `step` when it is first called, and replays the program later,
    bit for bit.

    The first call is the eager step. Everything but tensors is a constant of the trace, as under
    ``jax.jit``: numbers, strings, configuration, and Python's control flow. Pass what may differ
    from call to call as an argument, or keep it in a tensor.

    Tensors are inputs, among the arguments, or state: reached from the function, or named by
    `state`. Their values are followed, as are the numeric options of optimizers and the states of
    generators. Any other tensor, and what a replay cannot do, refuses the capture: a
    `CaptureWarning` names the line, and the step runs eagerly from then on.

    ``docs/capture.md`` has the contract: what is reached, what leads to a new trace, signals and
    threads, and what to write instead of what is refused.

    Parameters
    ----------
    step : callable
        Takes and returns tensors, containers of them, and other things. Left out, `capture` returns
        a decorator. In a class body it makes a method that each instance captures for itself.
    state : object, optional
        Tensors, modules, optimizers and generators that are not reached from `step`, in containers.
    limit : int, default 16
        The number of programs to keep. Beyond it, one more is recorded for every 20 replays, and
        replaces the least recently used one. Other calls run eagerly, with one warning.
    verify : int, default 0
        Run every `verify`-th call eagerly, too, from the same state, and compare; 0 for none.
    native : bool, optional
        On `cpu`, whether elementwise calls become loops of C, compiled on this machine, with the
        same bits: by default in the background, after some replays; True waits for them at the
        recording, and warns if there is no compiler; False leaves them to NumPy. On `cuda`, groups
        of them become one kernel each, unless False.

    Returns
    -------
    Captured
        The function. Its results have no graph: that of a step is used up within it.

    Raises
    ------
    TypeError
        If `step` cannot be called.
    ValueError
        If `limit` is below 1, or `verify` below 0.
    CaptureError
        From a call: if `verify` finds a difference.

    Examples
    --------
    >>> import xgrad
    >>> from xgrad import nn, optim
    >>> model = nn.Linear(3, 1)
    >>> optimizer = optim.SGD(model.parameters(), lr=0.1)
    >>> @xgrad.capture
    ... def step(x, y):
    ...     optimizer.zero_grad()
    ...     loss = nn.functional.mse_loss(model(x), y)
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> x, y = xgrad.ones((8, 3)), xgrad.zeros((8, 1))
    >>> losses = [step(x, y).item() for _ in range(20)]
    >>> losses[-1] < losses[0] / 100
    True
    """
    if step is None:
        return lambda step: capture(step, state=state, limit=limit, verify=verify, native=native)
    if not callable(step):
        raise TypeError(f"capture: expected a function, got {type(step).__name__}")
    if isgeneratorfunction(step) or iscoroutinefunction(step) or isasyncgenfunction(step):
        raise TypeError(
            f"capture: expected a plain function, got {step.__name__}, which is left and entered"
            " again"
        )
    if limit < 1:
        raise ValueError(
            f"capture: expected a limit of at least 1, got {limit}: to run a step eagerly, do not"
            " capture it"
        )
    if verify < 0:
        raise ValueError(f"capture: expected verify of 0 or more, got {verify}")
    return _captured()(step, state, limit, verify, native)


def _captured() -> Any:
    return import_module(
        "xgrad.capture.captured"
    ).Captured  # at the first use: most programs need none of it


def __getattr__(name: str) -> Any:
    if name == "Captured":
        return _captured()
    raise AttributeError(f"module 'xgrad.capture' has no attribute {name!r}")
