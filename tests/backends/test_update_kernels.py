"""Compiled update rules of optimizers have the bits of the rules, for large parameters."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

import xgrad
import xgrad.optim
import xgrad_numpy
from helpers import skip_without_compiler, wait_for
from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad_numpy.native import update_kernels
from xgrad_numpy.native.runtime import loaded_runtime, runtime
from xgrad_numpy.native.update_kernels import update

CPU = Device("cpu")
#: The names of rules, how many arrays the arguments begin with, and the numbers and flags that
#: follow.
CASES: dict[str, tuple[str, int, tuple[Any, ...]]] = {
    "SGD": ("sgd_step", 2, (None, 0.1, 0.0, 0.0, 1.0, False, False)),
    "SGD with decay": ("sgd_step", 2, (None, 0.1, 0.01, 0.0, 1.0, False, True)),
    "SGD with momentum": ("sgd_step", 3, (0.1, 0.0, 0.9, 0.5, False, False)),
    "SGD with Nesterov's momentum": ("sgd_step", 3, (0.1, 0.01, 0.9, 1.0, True, False)),
    "SGD with whole numbers": ("sgd_step", 3, (1, 0, 1, 1, False, False)),
    "Adam": ("adam_step", 4, (None, 0.9, 0.999, 1.0, 0.0, 1e-8, 1e-3, False)),
    "Adam with decay": ("adam_step", 4, (None, 0.9, 0.999, 1.0, 0.1, 1e-8, 1e-3, True)),
    "AdamW": ("adam_step", 4, (None, 0.9, 0.999, 0.99, 0.0, 1e-8, 1e-3, False)),
    "AMSGrad": ("adam_step", 5, (0.9, 0.999, 0.99, 0.0, 1e-8, 1e-3, False)),
}


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_compiler()
    runtime()
    wait_for(loaded_runtime)
    monkeypatch.setattr(update_kernels, "_KNOWN", {})


def arguments(case: str, size: int, dtype: str, seed: int = 0) -> tuple[str, list[Any]]:
    name, count, rest = CASES[case]
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(size).astype(dtype) for _ in range(count)]
    for x in arrays[3:]:
        np.abs(x, out=x)  # second moments
    return name, [*arrays, *rest]


def compiled(name: str, args: Any) -> None:
    """Wait until an update like this one is compiled."""
    wait_for(lambda: update(name, tuple(copied(args)))[0] or None)


def updates() -> int:
    """Return how many updates are compiled."""
    return sum(
        [len(kind.updates) for kind in list(update_kernels._KNOWN.values()) if kind is not None]
    )


def copied(args: list[Any]) -> list[Any]:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def contents(args: list[Any]) -> list[Any]:
    return [x.tobytes() for x in args if isinstance(x, np.ndarray)]


def test_all_compiled_updates_are_tested() -> None:
    assert {name for name, _, _ in CASES.values()} == xgrad_numpy._UPDATES
    all_rules = xgrad_numpy._PROGRAMS | xgrad_numpy._COMPILED | xgrad_numpy._UPDATES
    assert CPU.backend.rule_kernels == all_rules | {"multiply_add"}  # of test_rule_kernels.py


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_compiled_updates_have_the_bits_of_the_rules(case: str, dtype: str) -> None:
    """Each call has other numbers, with the same outcome for the conditions of the rule."""
    for size in (1 << 14, (1 << 14) + 1, (5 << 12) - 3):
        name, args = arguments(case, size, dtype)
        compiled(name, args)
        other = copied(args)
        for step in range(1, 4):
            for given in (args, other):
                for i, x in enumerate(given):
                    if type(x) is float and x not in (0, 1):
                        given[i] = x * (1 - 0.1 / step)
            done, result = update(name, tuple(args))
            right = OVERRIDABLE[name].generic(CPU.xp, *other)
            assert done
            assert contents(args) == contents(other)
            assert (result is None) == (right is None)
            assert result is None or [x is result for x in args] == [x is right for x in other]


def test_other_conditions_are_compiled_for_themselves() -> None:
    name, args = arguments("Adam", 1 << 14, "float32")
    compiled(name, args)
    args[8] = 0.1  # of the weight decay
    assert update(name, tuple(copied(args))) == (False, None)
    compiled(name, args)
    other = copied(args)
    assert update(name, tuple(args))[0]
    OVERRIDABLE[name].generic(CPU.xp, *other)
    assert contents(args) == contents(other)
    assert updates() == 2


def test_what_is_not_alike_takes_the_rule() -> None:
    name, args = arguments("Adam", 1 << 14, "float32")
    compiled(name, args)
    p, g, m, v, *rest = args
    frozen = m.copy()
    frozen.flags.writeable = False
    both = np.concatenate([p, p])
    for arrays in (
        (p, p, m, v), (both[: p.size], both[1 : p.size + 1], m, v), (p, g, m, m), (p, g, frozen, v),
        (p, g.astype(np.float64), m, v), (p[::2], g[::2], m[::2], v[::2]),
    ):  # fmt: skip
        assert update(name, (*arrays, *rest)) == (False, None)
    assert update(name, (p, g, m, v, *rest[:-2], np.asarray(1e-3, np.float32), False)) == (
        False,
        None,
    )
    assert update(name, (p, g, m, v, *rest[:-2], np.float64(1e-3), False)) == (False, None)
    kernel, generic = CPU.backend.kernels[name], OVERRIDABLE[name].generic
    one, other = p.copy(), p.copy()
    kernel(one, one, m.copy(), v.copy(), *rest)
    generic(CPU.xp, other, other, m.copy(), v.copy(), *rest)
    assert one.tobytes() == other.tobytes()


def test_two_threads_may_update_with_other_numbers_at_once() -> None:
    name, args = arguments("SGD", 1 << 15, "float32")
    compiled(name, args)
    wrong = list[int]()

    def run(i: int) -> None:
        given = copied(args)
        given[3] = 0.1 * (i + 1)
        expected = copied(given)
        for _ in range(200):
            if not update(name, tuple(given))[0]:  # while the other thread updates
                OVERRIDABLE[name].generic(CPU.xp, *given)
            OVERRIDABLE[name].generic(CPU.xp, *expected)
        if contents(given) != contents(expected):
            wrong.append(i)

    threads = [Thread(target=run, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_handler_of_errors_may_update_other_parameters() -> None:
    """NumPy's errors are reported when the update is done."""
    name, args = arguments("SGD", 1 << 14, "float32")
    compiled(name, args)
    large = [np.full_like(args[0], 3.4e38), np.full_like(args[0], -3.4e38), *args[2:]]
    right, errors = copied(args), list[str]()
    OVERRIDABLE[name].generic(CPU.xp, *right)

    def handle(error: str, flag: int) -> None:
        errors.append(error)
        assert update(name, tuple(args))[0]

    def run() -> None:
        with np.errstate(all="call", call=handle):
            assert update(name, tuple(large))[0]

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "the handler waits for the update that has called it"
    assert errors == ["overflow"]
    assert contents(args) == contents(right) and np.isinf(large[0]).all()


def test_an_update_within_the_same_update_takes_the_rule() -> None:
    """A handler of a signal may make it."""
    name, args = arguments("SGD", 1 << 14, "float32")
    compiled(name, args)
    (kind,) = [kind for kind in update_kernels._KNOWN.values() if kind is not None]
    other, right = copied(args), copied(args)
    with kind.updates[0]._lock:
        assert update(name, tuple(args)) == (False, None)
        CPU.backend.kernels[name](*other)
    OVERRIDABLE[name].generic(CPU.xp, *right)
    assert contents(args) != contents(other) == contents(right)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: xgrad.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: xgrad.optim.Adam(p, lr=0.01, amsgrad=True),
        lambda p: xgrad.optim.AdamW(p, lr=0.01),
    ],
    ids=["SGD", "Adam", "AdamW"],
)
def test_training_has_the_same_bits_with_compiled_updates_and_without(
    make: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def train() -> list[bytes]:
        xgrad.manual_seed(0)
        parameters = [
            xgrad.nn.Parameter(xgrad.random.randn(shape)) for shape in ((300, 300), (300,), (70,))
        ]
        optimizer = make(parameters)
        scheduler = xgrad.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for step in range(12):
            for p in parameters:
                p.grad = xgrad.random.randn(p.shape)
            optimizer.step()
            scheduler.step()
            if step == 3 and compiles:  # the first step of SGD, which makes a buffer, is none
                wait_for(lambda: updates() or None)
        return [p.detach().numpy().tobytes() for p in parameters]

    compiles = True
    with_kernels = train()
    assert updates()
    compiles = False
    monkeypatch.setattr(update_kernels, "update", lambda *_: (False, None))
    assert train() == with_kernels
