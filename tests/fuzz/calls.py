"""Calls of public functions with odd arguments, in a process with limited memory and time.

``python -m tests.fuzz calls COUNT SEED [NAME]`` makes COUNT calls of functions with NAME in their
name, and prints one line for each kind of fault: an undocumented exception, or a call that takes
longer than `SECONDS`.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xgrad
from xgrad import nn

SECONDS = 10
EXPECTED = (TypeError, ValueError, IndexError, OverflowError, RuntimeError, NotImplementedError)
EXPECTED += (OSError, ImportError, BufferError, MemoryError)
#: Subclasses of the above that are faults.
FAULTS = (RecursionError, UnicodeError)
#: Names that are not called: they use the network, change the process, or are defined by
#: subclasses.
SKIPPED = {
    "set_num_threads",
    "set_default_dtype",
    "manual_seed",
    "mnist",
    "fashion_mnist",
    "cifar10",
    "set_tf32",
    "main",
    "check",
    "update",
    "set_detect_anomaly",
}


class HostileError(Exception):
    """The exception of `Hostile`, which may pass through."""


class Hostile:
    """An object with methods that raise."""

    def _refuse(self, *args: Any, **options: Any) -> Any:
        raise HostileError

    __array__ = __len__ = __index__ = __iter__ = __float__ = __int__ = __bool__ = __getitem__ = (
        _refuse
    )


class Endless:
    """A sequence that claims to have 2**62 elements, and has none."""

    def __len__(self) -> int:
        return 1 << 62

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return "no array"

    def __index__(self) -> int:
        return 1 << 70


def values(generator: random.Random) -> list[Any]:
    """Return new odd values, and valid ones, so that some arguments of a call are valid."""
    cycle: list[Any] = [1]
    cycle.append(cycle)
    cyclic: dict[Any, Any] = {}
    cyclic["a"] = cyclic
    deep: Any = 1.0
    for _ in range(2000):
        deep = [deep]
    x = xgrad.asarray([[1.0, 2.0], [3.0, 5.0]])
    vector = xgrad.asarray([0.5, 0.25, 2.0])
    usual = [
        x,
        x,
        vector,
        x.detach().requires_grad_(),
        xgrad.asarray([0, 2, 1]),
        xgrad.asarray(1.5),
        0,
        1,
        2,
        -1,
        0.5,
        True,
        (2, 2),
        (0, 1),
        [0],
        xgrad.float32,
        xgrad.float64,
        xgrad.int64,
        "cpu",
        nn.Linear(2, 2),
        xgrad.sum,
        np.ones((2, 2)),
    ]
    odd = [
        None,
        ...,
        False,
        "",
        "mean",
        "\udc80",
        b"x",
        -2,
        7,
        1 << 31,
        -(1 << 63),
        1 << 64,
        10**400,
        1e308,
        float("nan"),
        float("inf"),
        -0.0,
        1j,
        complex("nan"),
        (),
        [],
        {},
        set(),
        (-1,),
        (1 << 40, 1 << 40),
        (0,),
        (3, -2),
        [[1], [1, 2]],
        [None],
        ["a"],
        cycle,
        cyclic,
        deep,
        {"a": 1},
        {1: x},
        {"lr": 0.1, "params": [x]},
        range(3),
        slice(None, None, 0),
        slice("a"),
        int,
        Hostile,
        Hostile(),
        Endless(),
        object(),
        iter([1.0]),
        lambda *a: a[0],
        lambda: None,
        np.float16(2),
        np.array("text"),
        np.array([None]),
        np.zeros((0, 3)),
        np.datetime64("2020"),
        np.ma.masked,
        x > 1,
        x * 1j,
        xgrad.zeros((0,)),
        xgrad.zeros((2, 0)),
        xgrad.asarray([float("nan"), float("inf")]),
        xgrad.asarray([[1, 2]]),
        xgrad.asarray(3, dtype=xgrad.uint8),
        xgrad.ones((2, 1, 2)),
        "strict",
        "cpu:7",
        np.dtype("float16"),
        "float32",
        "datetime64",
        sys,
        Ellipsis,
        type,
        [x, vector],
        (x, x),
        nn.Module(),
        nn.Sequential(),
        xgrad.Device("cpu"),
    ]
    with contextlib.suppress(xgrad.DeviceError):
        odd.append(xgrad.ones((2, 2), device="strict"))
    return [generator.choice(usual) for _ in range(24)] + odd


def targets() -> list[tuple[str, Callable[..., Any]]]:
    """Return public functions, classes and methods by name.

    Methods are given as functions that make their object.
    """
    functions: dict[str, Callable[..., Any]] = {}
    spaces = [
        xgrad,
        xgrad.linalg,
        xgrad.fft,
        xgrad.special,
        nn,
        nn.functional,
        nn.init,
        nn.utils,
        nn.utils.parametrizations,
        nn.utils.parametrize,
        nn.utils.rnn,
        xgrad.optim,
    ]
    spaces += [xgrad.autograd, xgrad.random, xgrad.data, xgrad.data.transforms]
    for space in spaces:
        for name in getattr(space, "__all__", None) or dir(space):
            value = getattr(space, name, None)
            if callable(value) and not name.startswith("_") and name not in SKIPPED:
                functions.setdefault(f"{space.__name__}.{name}", value)
    for name, make in OBJECTS.items():
        for method in dir(type(make())):
            if method in METHODS or not (method.startswith("_") or method in SKIPPED):
                functions[f"{name}.{method}"] = _method(make, method)
    return sorted(functions.items())


METHODS = (
    "__getitem__ __setitem__ __add__ __matmul__ __pow__ __eq__ __call__ __iadd__ __lshift__"
    " __rtruediv__".split()
)
OBJECTS: dict[str, Callable[[], Any]] = {
    "Tensor": lambda: xgrad.asarray([[1.0, 2.0], [3.0, 5.0]]),
    "leaf": lambda: xgrad.asarray([[1.0, 2.0], [3.0, 5.0]], requires_grad=True),
    "integers": lambda: xgrad.asarray([3, 1, 2]),
    "Linear": lambda: nn.Linear(2, 2),
    "Sequential": lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU()),
    "SGD": lambda: xgrad.optim.SGD([xgrad.ones(2, requires_grad=True)], lr=0.1),
    "Adam": lambda: xgrad.optim.Adam([xgrad.ones(2, requires_grad=True)]),
    "Generator": lambda: xgrad.random.Generator(),
    "DataLoader": lambda: xgrad.data.DataLoader([1.0, 2.0, 3.0], batch_size=2),
}


def _method(make: Callable[[], Any], name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        method = getattr(make(), name)
        return method(*args, **options) if callable(method) else None

    call.__signature__ = _signature(getattr(type(make()), name, None), skip=1)
    return call


def _signature(function: Any, skip: int = 0) -> inspect.Signature | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return signature.replace(parameters=list(signature.parameters.values())[skip:])


def arguments(function: Any, generator: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Return random arguments, mostly as many as there are required parameters."""
    pool = values(generator)
    signature = getattr(function, "__signature__", None) or _signature(function)
    parameters = list(signature.parameters.values()) if signature else []
    inputs = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = (
        sum(p.default is p.empty for p in inputs)
        if generator.random() < 0.6
        else generator.randrange(5)
    )
    named = [
        p.name
        for p in parameters
        if p.kind is p.KEYWORD_ONLY or (p in inputs[count:] and p.kind not in (0,))
    ]
    chosen = [name for name in named if generator.random() < 0.25]
    return [generator.choice(pool) for _ in range(count)], {
        name: generator.choice(pool) for name in chosen
    }


def use(result: Any) -> None:
    """Print a result, or the first results of a generator."""
    if isinstance(result, types.GeneratorType):
        for _, part in zip(range(3), result, strict=False):
            use(part)
    elif isinstance(result, (xgrad.Tensor, nn.Module)):
        repr(result)


def fault(error: BaseException, name: str) -> str | None:
    """Return a description of an exception that is a fault."""
    if isinstance(error, HostileError) or (
        isinstance(error, EXPECTED) and not isinstance(error, FAULTS)
    ):
        return None
    if isinstance(error, AttributeError) and (
        type(error).__name__ == "MissingNameError" or "__dlpack__" in str(error)
    ):
        return None  # as in NumPy and PyTorch
    if isinstance(error, AttributeError) and name.endswith("get_submodule"):
        return None  # as in PyTorch
    frames = traceback.extract_tb(error.__traceback__)
    if frames and frames[-1].filename == __file__ and not isinstance(error, RecursionError):
        return None  # raised by the odd value itself
    lines = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in frames if "xgrad" in f.filename]
    return f"{type(error).__name__} at {lines[-1] if lines else '?'} of {name}: {str(error)[:120]}"


class TooSlowError(BaseException):
    """A call that takes too long."""


def _alarm(*args: Any) -> None:
    raise TooSlowError


def run(count: int, seed: int, only: str = "") -> Iterator[str]:
    """Make calls, and yield faults."""
    functions = [(name, f) for name, f in targets() if only in name]
    for i in range(count):
        generator = random.Random(f"{seed} {i}")
        name, function = functions[generator.randrange(len(functions))]
        args, options = arguments(function, generator)
        signal.alarm(SECONDS)
        try:
            use(function(*args, **options))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            signal.alarm(0)
            if described := fault(error, name):
                shown = ", ".join(
                    [*map(_short, args), *(f"{k}={_short(v)}" for k, v in options.items())]
                )
                yield f"{described} | {name}({shown}) | call {i} of seed {seed}"
        finally:
            signal.alarm(0)


def _short(x: Any) -> str:
    try:
        return repr(x)[:60].replace("\n", " ")
    except Exception as error:
        return f"<{type(x).__name__}: {type(error).__name__}>"


def main(count: int, seed: int, only: str = "") -> None:
    """Make calls in this process, and print faults."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _alarm)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    out = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # for files that calls write
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        known: set[str] = set()
        for line in run(count, seed, only):
            if (key := line.partition(" of ")[0]) not in known:
                known.add(key)
                print(line, file=out, flush=True)
        print("done", file=out, flush=True)
        os.chdir("/")
