"""A process of its own for one peer: it does what `harness.Worker` asks for, line by line as JSON.

A line names a class, with its module, and its arguments; the following ones methods of the instance and theirs.
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
    """Return what a name such as ``package.module:function`` stands for."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def peer(target: str) -> Callable[..., Any]:
    """Return a function of a peer, such as ``ours:step``."""
    function: Callable[..., Any] = resolve(f"benchmarks.peers.{target}")
    return function


def value(result: Any) -> float:
    """Return a number, or the sum of an array, which has to be computed for that."""
    return float(result.sum().item() if hasattr(result, "sum") else result)


class Blocks:
    """What a peer does, timed in blocks of at least `seconds`.

    Attributes
    ----------
    values : list of float
        What came of the first calls, to be compared between peers.
    """

    def __init__(self, target: str, case: Mapping[str, Any], seconds: float) -> None:
        self.call = peer(target)(**case)
        self.values = [value(self.call()) for _ in range(5)]
        self.calls = 1
        while (spent := self.timed(self.calls)) < seconds:
            self.calls = math.ceil(self.calls * min(10, 1.2 * seconds / spent))

    def first_values(self) -> list[float]:
        return self.values

    def block(self) -> float:
        """Return the seconds that a call takes, measured over a block, after a tenth of one to warm up."""
        self.timed(1 + self.calls // 10)
        return self.timed(self.calls) / self.calls

    def timed(self, calls: int) -> float:
        call, result = self.call, None
        start = time.perf_counter()
        for _ in repeat(None, calls):
            result = call()
        finite = math.isfinite(value(result))  # waits for what is queued
        spent = time.perf_counter() - start
        if not finite:
            raise ArithmeticError("a result is no longer finite")
        return spent


def serve() -> None:
    """Answer until there are no more questions."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    instance: Any = None
    for line in sys.stdin:
        name, arguments = json.loads(line)
        reply: dict[str, Any] = {}
        try:
            if ":" in name:
                instance = None
                gc.collect()  # memory of a GPU, too
                instance = resolve(name)(**arguments)
            else:
                reply["result"] = getattr(instance, name)(**arguments)
        except LeftOut as error:
            reply["left_out"] = str(error)
        except Exception as error:
            package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
            if package not in ("", "benchmarks", "xgrad"):
                reply["left_out"] = f"{package} is not installed"
            else:
                reply["failed"] = traceback.format_exc()
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    serve()
