"""Captured steps: traced once on a tracing device, and replayed as a flat list of calls of the array library."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from xgrad.core.errors import CaptureError, CaptureWarning

if TYPE_CHECKING:
    from xgrad.capture.captured import Captured

__all__ = ["CaptureError", "CaptureWarning", "Captured", "capture"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def capture(step: Callable[P, R], *, state: Any = None, limit: int = 16, verify: int = 0) -> Captured[P, R]: ...
@overload
def capture(*, state: Any = None, limit: int = 16, verify: int = 0) -> Callable[[Callable[P, R]], Captured[P, R]]: ...
def capture(step: Any = None, *, state: Any = None, limit: int = 16, verify: int = 0) -> Any:
    """Return a function that traces `step` when it is first called, and replays the program later, bit for bit.

    Everything but tensors is a constant of the trace, as under ``jax.jit``: numbers, strings, configuration, and the
    way that Python's control flow took. What may differ from call to call is passed as an argument, or is a tensor.

    - **Inputs** are the tensors among the arguments, in nested containers.
    - **State** is every tensor that modules, optimizers and generators hold, and tensors themselves, where these are
      reached from the function: its closure, its defaults, the globals that it names, ``__self__``, inside containers,
      and in the attributes of plain objects one level down; and whatever `state` names. `Captured.state` lists it.
    - **Any other tensor**, unless the step makes it, refuses the capture: none is ever stale.
    - **A new trace** is made for other shapes, dtypes, memory layouts, devices or ``requires_grad`` of tensors; for
      arguments other than tensors, by equality; for another `Parameter` as an argument; for another mode or
      other parameters of a module; for another layout, or non-numeric option, of an optimizer; for another grad mode;
      and where gradients are there that were not, or the reverse.
    - **Followed without one** are values of tensors, numeric options of optimizers such as learning rates, counts of
      steps, and states of generators.
    - **Refused**, by a `CaptureWarning` that names the line, and run eagerly from then on, are a value that is read; a
      shape that depends on values; arrays of other libraries; random numbers that are not xgrad's; a tensor that the
      step makes and something else still holds when it returns, a returned one included; a tensor that the step moves
      to another container or attribute; an attribute of a module or an optimizer that the step changes, the mode
      excepted; and a call that may raise an error after a write to the state.

    Parameters
    ----------
    step : callable
        Takes and returns tensors, containers of them, and other things. Left out, `capture` returns a decorator. In a
        class body it makes a method that each instance captures for itself.
    state : object, optional
        Tensors, modules, optimizers and generators that are not reached from `step`, in containers.
    limit : int, default 16
        The number of programs to keep. Beyond it one more is traced for every 20 replays, and takes the place of the
        one that was used least recently; where none holds the step runs eagerly, with one warning.
    verify : int, default 0
        Every `verify`-th call runs the step eagerly, too, from the same state, and compares; 0 does not.

    Returns
    -------
    Captured
        The function. What it returns has no history: the graph of a step is used up within it.

    Raises
    ------
    TypeError
        If `step` cannot be called.
    ValueError
        If `limit` is below 1, or `verify` below 0.
    CaptureError
        From a call: if `verify` finds a difference, or a tensor is used that another thread's step is being traced
        with.

    Notes
    -----
    Nothing process-wide changes while a step is traced. A signal at any point of a trace leaves the state as it was
    before. Threads that use other tensors notice nothing; of one captured function, one thread replays at a time.
    Within another captured step a captured step is part of that.

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
        return lambda step: capture(step, state=state, limit=limit, verify=verify)
    if not callable(step):
        raise TypeError(f"capture: expected a function, got {type(step).__name__}")
    if isgeneratorfunction(step) or iscoroutinefunction(step) or isasyncgenfunction(step):
        raise TypeError(f"capture: expected a plain function, got {step.__name__}, which is left and entered again")
    if limit < 1:
        raise ValueError(
            f"capture: expected a limit of at least 1, got {limit}: to run a step eagerly, do not capture it"
        )
    if verify < 0:
        raise ValueError(f"capture: expected verify of 0 or more, got {verify}")
    return _captured()(step, state, limit, verify)


def _captured() -> Any:
    return import_module("xgrad.capture.captured").Captured  # at the first use: most programs need none of it


def __getattr__(name: str) -> Any:
    if name == "Captured":
        return _captured()
    raise AttributeError(f"module 'xgrad.capture' has no attribute {name!r}")
