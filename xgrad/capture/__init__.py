"""Captured steps: recorded while they run eagerly, and replayed as a flat list of library calls.

When a step is recorded, raw arrays enter array code through `xgrad.backend.recording`, where
`recorder` replaces them by `proxies` that record each call. When it is replayed, a generated check
runs first, then the backend's executor, then the side effects. ``docs/capture.md`` has a picture of
both, and the contract.

=====================  =======================================  ==================================
module                 subject                                  look here when
=====================  =======================================  ==================================
`captured`             calls of a captured step: replay,        a step is recorded too often
                       record or refuse
`recorder`, `proxies`  calls of the array library, as they      ``program()`` lacks a call (or a
                       are made                                 whole backward pass: see below)
`numbers`              numbers of update rules and random       a learning rate is not followed
                       kernels
`state`                what the function of a step leads to     a tensor is not found, or is stale
`slots`                where state is kept, before and after    a change by the step is lost
                       a step
`guards`,              the conditions of a program, and the     a program is replayed although it
`check_writer`         function that checks them                should not be, or never
`effects`              what a replay leaves behind, and what    a result, gradient or count is
                       it returns                               wrong (losses that drift apart:
                                                                see below)
`cached_program`       a program with its guards, effects and   a replay works on other arrays
                       memory
`program`, `passes`    values, calls, and simplification        a call that matters was dropped
`fusion`               groups of elementwise calls, for         bits differ on `cuda` unless
                       executors                                ``native=False``
`printer`              the text of a program                    ``program()`` reads badly
`verification`         the comparison of replays with eager     ``verify=`` finds too little
                       steps
=====================  =======================================  ==================================

A write to memory of the step that bypasses array code (in the engine, in an optimizer or in its
buffers) is missing in ``program()``, together with all calls that led to it: losses and parameters
drift from the first replay on. ``docs/capture.md`` describes how to find its line.
``CONTRIBUTING.md`` describes what a new kind of state needs.

If only bits differ, look into the backend's lowering, such as ``backends/xgrad_numpy/lowering.py``.
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
    """Return a function that records `step` at the first call and replays it bit for bit later.

    The first call runs the step eagerly. Everything but tensors is a constant of the trace, as
    under ``jax.jit``: numbers, strings, configuration, and Python's control flow. Pass what may
    differ from call to call as an argument, or keep it in a tensor.

    Tensors are inputs, if they are among the arguments, or state, if they are reached from the
    function or named by `state`. Replays use their current values, the current numeric options of
    optimizers, and the current states of generators. Any other tensor, and anything that a replay
    cannot do, refuses the capture: a `CaptureWarning` names the line, and the step runs eagerly
    from then on.

    ``docs/learn/capture.md`` has the contract: what is reached, what leads to a new trace, signals
    and threads, and what to write instead of what is refused.

    Parameters
    ----------
    step : callable
        Takes and returns tensors, containers of them, and other objects. Without it, `capture`
        returns a decorator. Used in a class body, `capture` makes a method that each instance
        captures separately.
    state : object, optional
        Tensors, modules, optimizers and generators that are not reached from `step`, in containers.
    limit : int, default 16
        The number of programs to keep. Once it is reached, one more program is recorded for every
        20 replays, and replaces the least recently used one. Other calls run eagerly, with one
        warning.
    verify : int, default 0
        Run every `verify`-th call eagerly as well, from the same state, and compare the results; 0
        for none.
    native : bool, optional
        On `cpu`, whether elementwise calls become C loops, compiled on this machine, with
        bit-identical results. By default they are compiled in the background, after some replays.
        True compiles them at the recording, and warns if there is no compiler; False leaves them to
        NumPy. On `cuda`, each group of elementwise calls becomes one kernel, unless False.

    Returns
    -------
    Captured
        The function. Its results have no graph, since the step uses up its graph itself.

    Raises
    ------
    TypeError
        If `step` cannot be called.
    ValueError
        If `limit` is below 1, or `verify` below 0.
    CaptureError
        Raised by a call, if `verify` finds a difference.

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
    # imported at the first use: most programs do not capture
    return import_module("xgrad.capture.captured").Captured


def __getattr__(name: str) -> Any:
    if name == "Captured":
        return _captured()
    raise AttributeError(f"module 'xgrad.capture' has no attribute {name!r}")
