"""The process of one peer, which carries out the requests of `harness.Worker`.

Requests are lines of JSON. A line names a class, with its module, and its arguments; or a method of
the current instance, and its arguments.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import repeat
from typing import Any

from benchmarks.peers import LeftOut


def resolve(name: str) -> Any:
    """Return the object with a name such as ``package.module:function``."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def peer(target: str) -> Callable[..., Any]:
    """Return a function of a peer, such as ``xgrad_peer:step``."""
    function: Callable[..., Any] = resolve(f"benchmarks.peers.{target}")
    return function


def value(result: Any) -> float:
    """Return a number, or the sum of an array; both wait for the computation."""
    return float(result.sum().item() if hasattr(result, "sum") else result)


#: Seconds in which the threads of the previous peer go to sleep: OpenMP keeps threads busy for 0.2
#: s after their work.
_REST = 0.25 if os.environ.get("OMP_NUM_THREADS", "1") != "1" else 0.0


class Blocks:
    """Calls of a peer, timed in blocks of at least `seconds`.

    `values` are the first results, to be compared. A peer returns a function, or a function and
    another one that returns further figures.
    """

    def __init__(self, target: str, case: Mapping[str, Any], seconds: float) -> None:
        made = peer(target)(**case)
        # the threads of the CPU do not compute on a device
        self.rest = _REST if case.get("device", "cpu") == "cpu" else 0.0
        self.call, self.details = made if isinstance(made, tuple) else (made, dict)
        self.values = [value(self.call()) for _ in range(5)]
        self.calls = 1
        while (spent := self.timed(self.calls)) < seconds:
            self.calls = math.ceil(self.calls * min(10, 1.2 * seconds / spent))

    def first_values(self) -> list[float]:
        return self.values

    def block(self) -> float:
        """Return the seconds of a call, measured over a block.

        Before the block come a rest, and a warm-up of a tenth of it.
        """
        time.sleep(self.rest)
        self.timed(1 + self.calls // 10)
        return self.timed(self.calls) / self.calls

    def timed(self, calls: int) -> float:
        call, result = self.call, None
        start = time.perf_counter()
        for _ in repeat(None, calls):
            result = call()
        finite = math.isfinite(value(result))  # waits for queued work
        spent = time.perf_counter() - start
        if not finite:
            raise ArithmeticError("a result is no longer finite")
        return spent


def serve() -> None:
    """Answer requests until the input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries goes to standard error
    instance: Any = None
    for line in sys.stdin:
        name, arguments = json.loads(line)
        reply: dict[str, Any] = {}
        try:
            if ":" in name:
                instance = None
                gc.collect()  # also frees memory of a GPU
                instance = resolve(name)(**arguments)
            else:
                reply["result"] = getattr(instance, name)(**arguments)
        except LeftOut as error:
            reply["left_out"] = str(error)
        except Exception as error:
            package = (
                (error.name or "").partition(".")[0]
                if isinstance(error, ModuleNotFoundError)
                else ""
            )
            if package not in ("", "benchmarks", "xgrad"):
                reply["left_out"] = f"{package} is not installed"
            else:
                reply["failed"] = traceback.format_exc()
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    serve()
