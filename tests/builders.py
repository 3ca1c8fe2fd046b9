"""Leaf tensors, functions and threads that tests build."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

import xgrad
from xgrad import Tensor


def leaf(values: Any = (1.0, 2.0), **options: Any) -> Tensor:
    return Tensor(values, requires_grad=True, **options)


def function(name: str, forward: Callable[..., Any], backward: Callable[..., Any] = lambda xp, g: g) -> Any:
    """Return an instance of a subclass of `xgrad.Function` with these two methods."""
    return type(name, (xgrad.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})()


def run_threads(work: Callable[..., Any], arguments: Iterable[Any] = (None,)) -> None:
    """Call a function with each argument in a thread of its own, and wait for all of them."""
    threads = [threading.Thread(target=work, args=() if n is None else (n,)) for n in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check_error(call: str, expected: str, **names: Any) -> None:
    """Evaluate a call, in which `xp` is xgrad, that must raise `expected`: class and message, with … for any text."""
    try:
        eval(call, {"xp": xgrad, **names})
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert re.match(".*".join(map(re.escape, re.split(" ?… ?", expected))), text, re.DOTALL), text
    else:
        raise AssertionError(f"{call} raised no error")
