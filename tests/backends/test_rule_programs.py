"""Rules of eager mode that are recorded for large arrays, and then run as programs.

Programs have the bits, the layouts and the warnings of the generic rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

import xgrad
import xgrad_numpy
from helpers import skip_without_compiler, wait_for
from xgrad import nn
from xgrad.backend.device import Device
from xgrad.backend.overridable import OVERRIDABLE
from xgrad.capture.program import leaves, map_leaves
from xgrad_numpy.native import rule_programs
from xgrad_numpy.native.rule_programs import RuleProgram, RuleRecording, call
from xgrad_numpy.native.runtime import loaded_runtime, runtime

CPU = Device("cpu")
ATTENTION = (0.0, None, None, CPU)  # no dropout


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_compiler()
    runtime()
    wait_for(loaded_runtime)
    monkeypatch.setattr(rule_programs, "_PROGRAMS", {})
    monkeypatch.setattr(rule_programs, "_CALLS", {})


def generic(name: str, args: Any) -> Any:
    return OVERRIDABLE[name].generic(CPU.xp, *args)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def standardized(
    shape: tuple[int, ...], axes: tuple[int, ...], parameters: Any, centered: bool, dtype: str
) -> Any:
    """Return arguments of `standardize`, with a weight and a bias of a shape, or without."""
    weight, bias = (
        (None, None) if parameters is None else (normal(*parameters, dtype=dtype) for _ in range(2))
    )
    return normal(*shape, dtype=dtype), weight, bias, axes, 1e-5, centered


def gradients_of(args: Any) -> Any:
    """Return arguments of `normalization_gradient`, given the arguments of `standardize`."""
    x, weight, _, axes, eps, centered = args
    _, average, scale, _ = generic("standardize", args)
    return (
        normal(*x.shape, dtype=str(x.dtype)) * 2,
        x,
        weight,
        (average, scale),
        axes,
        eps,
        centered,
    )


def attended(heads: int, queries: int, keys: int, mask: bool, causal: bool, dtype: str) -> Any:
    """Return arguments of `attention_values`, with heads as multi-head attention has them."""
    query, key, value = (
        normal(2, length, heads, 16, dtype=dtype).swapaxes(1, 2) for length in (queries, keys, keys)
    )
    added = (
        np.where(normal(queries, keys, dtype=dtype) > 1, -np.inf, 0).astype(dtype) if mask else None
    )
    return query, key, value, added, causal, 0.25, *ATTENTION


def attention_gradient_of(args: Any) -> Any:
    """Return arguments of `attention_gradient`, given the arguments of `attention_values`."""
    out, weights = generic("attention_values", args)
    return normal(*out.shape, dtype=str(out.dtype)), *args[:4], out, weights, *args[4:]


NORMALIZED = {
    "layers": ((40, 30, 17), (2,), (17,), True),
    "layers without parameters": ((400, 64), (1,), None, True),
    "root mean square": ((64, 256), (1,), (256,), False),
    "channels": ((8, 16, 12, 12), (0, 2, 3), (16, 1, 1), True),
    "groups": ((16, 4, 8, 40), (2, 3), (4, 8, 1), True),
    "samples": ((8, 16, 130), (2,), (16, 1), True),
}
ATTENDED = {
    "all": (4, 32, 32, False, False),
    "causal": (4, 40, 40, False, True),
    "masked": (3, 24, 37, True, False),
}


def _of_normalization(name: str, case: str, dtype: str) -> Any:
    args = standardized(*NORMALIZED[case], dtype)
    return args if name == "standardize" else gradients_of(args)


def _of_attention(name: str, case: str, dtype: str) -> Any:
    args = attended(*ATTENDED[case], dtype)
    return args if name == "attention_values" else attention_gradient_of(args)


#: The name of a rule, the name of a case, and a function of both and of a dtype, which returns
#: arguments.
CASES = [
    *[
        (name, case, _of_normalization)
        for name in ("standardize", "normalization_gradient")
        for case in NORMALIZED
    ],
    *[
        (name, case, _of_attention)
        for name in ("attention_values", "attention_gradient")
        for case in ATTENDED
    ],
]


def arrays_in(x: Any) -> list[np.ndarray]:
    return [leaf for leaf in leaves((x,)) if type(leaf) is np.ndarray]


def facts(x: Any) -> Any:
    """Return a nested result with bytes, strides and dtypes of arrays; NaNs have the same bits."""

    def fact(leaf: Any) -> Any:
        if type(leaf) is not np.ndarray:
            return leaf
        return (
            np.where(np.isnan(leaf), np.nan, leaf).tobytes(),
            leaf.shape,
            leaf.strides,
            leaf.dtype,
        )

    return map_leaves(fact, x)


def made(name: str, args: Any) -> RuleProgram:
    program = RuleRecording(OVERRIDABLE[name].generic, args, runtime()).compiled(runtime())
    assert program is not None
    return program


def test_all_rules_with_programs_are_tested() -> None:
    assert {name for name, _, _ in CASES} == xgrad_numpy._PROGRAMS


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "case", "arguments"), CASES, ids=lambda x: x if isinstance(x, str) else ""
)
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
def test_programs_have_the_bits_of_the_rules(
    name: str, case: str, arguments: Callable[[str, str, str], Any], dtype: str
) -> None:
    args = arguments(name, case, dtype)
    program = made(name, args)
    for special in (None, np.inf, np.nan, -0.0, 1e30, 1e-42):
        given = map_leaves(lambda x: x.copy("K") if type(x) is np.ndarray else x, args)
        if special is not None:
            for x in arrays_in(given):
                x[(0,) * x.ndim] = special
        before, right = facts(given), facts(generic(name, given))
        first, second = program(arrays_in(given)), program(arrays_in(given))
        assert facts(first) == facts(second) == right
        assert facts(given) == before
        kept = [
            x for x in arrays_in(generic(name, given)) if not any(x is y for y in arrays_in(given))
        ]
        results = [
            x
            for x in arrays_in(first)
            if not any(np.may_share_memory(x, y) for y in arrays_in(given))
        ]
        assert len(results) == len(kept)
        for other in arrays_in(second):
            assert not any(np.may_share_memory(x, other) for x in results)


def test_arguments_may_share_memory() -> None:
    x = normal(2, 4, 40, 16)
    for args in (
        (x, x, x, None, True, 0.25, *ATTENTION),
        (x, x, x[::-1], None, True, 0.25, *ATTENTION),
    ):
        assert facts(made("attention_values", args)(arrays_in(args))) == facts(
            generic("attention_values", args)
        )


def test_a_layout_with_axes_of_length_1_is_that_of_the_rule() -> None:
    """With an axis of length 1, the result has other strides than new memory would have."""
    x = normal(1, 2, 64, 300).transpose(2, 3, 0, 1)
    args = standardized(x.shape, (3,), None, True, "float32")
    args = gradients_of((x, *args[1:]))
    assert facts(made("normalization_gradient", args)(arrays_in(args))) == facts(
        generic("normalization_gradient", args)
    )


def test_arguments_that_are_not_aligned_are_left_to_numpy() -> None:
    args = attended(4, 32, 32, False, True, "float32")
    for _ in range(rule_programs._WARM):
        call("attention_values", args)
    wait_for(lambda: call("attention_values", args))
    memory = np.empty(args[1].nbytes + 1, np.uint8)
    key = np.ndarray(args[1].shape, args[1].dtype, memory, 1, args[1].strides)
    key[...] = args[1]
    assert not key.flags.aligned
    assert call("attention_values", (args[0], key, *args[2:])) is None


def test_an_error_leaves_no_exception_for_later_calls() -> None:
    def rule(xp: Any, x: Any) -> Any:
        # NumPy sums between calls of C
        return xp.cumulative_sum(xp.abs(x * 2.0 + 1.0), axis=0) * 2.0 + 1.0

    x = normal(2048)
    program = RuleRecording(rule, (x,), runtime()).compiled(runtime())
    assert program is not None
    assert facts(program([x])) == facts(rule(CPU.xp, x))
    with np.errstate(all="raise"):
        for value in (1e38, 5e34):  # NumPy raises of the sum, or C of the last product
            assert program([np.full_like(x, value)]) is None
            assert runtime().take_raised() == 0


def test_an_interrupt_of_a_recording_delays_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    args, interrupts = standardized((512, 65), (1,), (65,), True, "float32"), [KeyboardInterrupt]
    make = RuleRecording.__init__

    def interrupted(*arguments: Any) -> None:
        if interrupts:
            raise interrupts.pop()
        make(*arguments)

    monkeypatch.setattr(RuleRecording, "__init__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait_for(lambda: call("standardize", args))
    wait_for(lambda: call("standardize", args))


def test_calls_with_ever_other_arguments_drop_no_program() -> None:
    args = standardized((512, 64), (1,), (64,), True, "float32")
    for _ in range(rule_programs._WARM):
        call("standardize", args)
    wait_for(lambda: call("standardize", args))
    for i in range(rule_programs._MOST + 10):
        call("standardize", (*args[:4], 1e-5 * (i + 2), True))
    assert call("standardize", args) is not None
    assert len(rule_programs._CALLS) <= rule_programs._MOST


def test_a_program_is_made_after_some_calls_and_used() -> None:
    args = standardized((512, 64), (1,), (64,), True, "float32")
    right, kernel = facts(generic("standardize", args)), CPU.backend.kernels["standardize"]
    for _ in range(rule_programs._WARM):
        assert not any(isinstance(known, RuleProgram) for known in rule_programs._PROGRAMS.values())
        assert facts(kernel(*args)) == right
    wait_for(lambda: call("standardize", args))
    assert facts(kernel(*args)) == right
    # each is counted for itself
    for other in (
        args[0].T.copy().T,
        args[0].astype(np.float64),
        args[0][:500],
    ):
        assert call("standardize", (other, *args[1:])) is None
    assert call("standardize", (*args[:4], 1e-6, True)) is None
    # not the type that it was made for
    assert call("standardize", (*args[:4], np.float64(1e-5), True)) is None


def test_two_threads_may_call_a_program_at_once() -> None:
    inputs = [standardized((512, 64 + i), (1,), (64 + i,), True, "float32") for i in range(2)]
    x = [normal(512, 64), normal(512, 64) * 3]
    program, wrong = made("standardize", inputs[0]), list[int]()
    right = [facts(generic("standardize", (y, *inputs[0][1:]))) for y in x]

    def run(i: int) -> None:
        for _ in range(300):
            got = program([x[i], *arrays_in(inputs[0][1:])])
            if got is not None and facts(got) != right[i]:
                wrong.append(i)

    threads = [Thread(target=run, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_programs_are_bounded_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_programs, "_MEMORY", 0)
    args = gradients_of(standardized((512, 64), (1,), (64,), True, "float32"))
    for _ in range(rule_programs._WARM):
        call("normalization_gradient", args)
    time.sleep(0.5)
    assert list(rule_programs._PROGRAMS.values()) == [None]


def test_exceptions_of_arithmetic_are_those_of_the_rule() -> None:
    args = gradients_of(standardized((512, 64), (1,), (64,), True, "float32"))
    kernel = CPU.backend.kernels["normalization_gradient"]
    for _ in range(rule_programs._WARM):
        kernel(*args)
    wait_for(lambda: call("normalization_gradient", args))
    args[0][0] = args[2][:] = 1e30  # their product is too large
    for compute in (kernel, lambda *given: generic("normalization_gradient", given)):
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="overflow"):
            compute(*args)
    with np.errstate(all="ignore"):
        assert facts(kernel(*args)) == facts(generic("normalization_gradient", args))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_has_the_same_bits_with_programs_and_without(
    dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train() -> list[bytes]:
        xgrad.manual_seed(0)
        model = nn.TransformerEncoderLayer(32, 4, 64, dropout=dropout, batch_first=True)
        optimizer = xgrad.optim.AdamW(model.parameters())
        x = xgrad.random.randn((16, 40, 32))
        for _ in range(rule_programs._WARM + 4):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            for thread in [known for known in made_by if known.is_alive()]:
                thread.join()
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    made_by: list[Thread] = []

    def remembered(*args: Any, **options: Any) -> Thread:
        made_by.append(Thread(*args, **options))
        return made_by[-1]

    monkeypatch.setattr(rule_programs, "Thread", remembered)
    with_programs = train()
    assert made_by
    assert any(isinstance(known, RuleProgram) for known in rule_programs._PROGRAMS.values())
    monkeypatch.setattr(rule_programs, "call", lambda *_: None)
    assert train() == with_programs
