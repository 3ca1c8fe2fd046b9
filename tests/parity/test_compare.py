"""`compare` passes every case of the op table, and reports planted faults.

Results are compared with the reference, finite differences and PyTorch; a fault must fail exactly
the comparisons that can see it.
"""

import contextlib
import dataclasses
import io
import math
import re

import numpy as np
import pytest

import xgrad
from xgrad.parity.cases import OP_CASES, find
from xgrad.parity.compare import compare
from xgrad.parity.comparison import DIFFERENCES, PYTORCH, REFERENCE
from xgrad.parity.op_case import Sample
from xgrad.parity.pytorch import installed
from xgrad.parity.run_op import quiet

CPU = xgrad.Device("cpu")


def compare_fn(name, fn, devices=(CPU,), dtype="float64", **fields):
    """Compare the case `name` with another function in place of its own."""
    return compare(
        dataclasses.replace(find(name), fn=fn, **fields), list(devices), [dtype], time=False
    )


def printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), quiet():
        exec(compile(code, "reproducer", "exec"), {})
    return out.getvalue()


@pytest.mark.parametrize("op", OP_CASES, ids=str)
def test_every_case_is_within_its_tolerance(op, devices):
    if missing := op.missing():
        pytest.skip(f"needs {missing}")
    if op.name == "special.stdtrit":
        pytest.importorskip("scipy", "1.17", reason="before SciPy 1.17 its kernel has 10 digits")
    result = compare(
        op, [xgrad.Device(name) for name in devices], ["float32", "float64"], time=False
    )
    assert not result.failures
    assert result.compared or set(result.skipped) == set(devices)


def test_values_gradients_and_times_of_each_device_and_dtype_are_compared(strict):
    result = compare(find("divide"), [CPU, strict], ["float32", "float64"])
    expected = {
        (d, t, q)
        for d in ("cpu", "strict")
        for t in ("float32", "float64")
        for q in ("value", "gradient")
    }
    expected |= {(DIFFERENCES, "float64", "gradient")}
    expected |= {(PYTORCH, "float64", q) for q in ("value", "gradient")} if installed() else set()
    assert {(e.device, e.dtype, e.quantity) for e in result.cells} == expected
    assert all(t.small > 0 and t.large > 0 for t in result.timing) and len(result.timing) == 4
    assert 0.4 < max(e.error for e in result.cells if e.quantity == "value") <= 0.501


def test_broken_rule_fails_compared_with_differences_and_pytorch(
    broken_multiply, monkeypatch, strict
):
    result = compare(broken_multiply, [CPU, strict], ["float64"], time=False)
    assert {e.device for e in result.failures} == {DIFFERENCES, PYTORCH} - (
        set() if installed() else {PYTORCH}
    )
    assert {e.quantity for e in result.failures} == {"gradient"}
    failure = next(e for e in result.failures if e.device == DIFFERENCES)
    assert failure.what == "the gradient of x2" and failure.inputs.startswith("x1 = ")
    assert 1e-8 < failure.error < 1e-5
    monkeypatch.setattr("xgrad.parity.cases.find", lambda name: broken_multiply)
    got, expected = re.search(
        r"got (\S+) expected (\S+) by differences", printed(failure.reproducer)
    ).groups()
    assert float(got) / float(expected) - 1 == pytest.approx(1e-6, rel=0.01)


@pytest.mark.usefixtures("torch")
def test_result_of_another_shape_than_pytorch_is_a_failure():
    failures = compare_fn("sin", lambda x: xgrad.sin(x)[None]).failures
    assert "expected shapes and kinds" in next(e.note for e in failures if e.device == PYTORCH)


@pytest.mark.usefixtures("torch")
def test_broken_forward_rule_fails_compared_with_pytorch():
    failures = compare_fn("softplus", lambda x: xgrad.softplus(x) + 1e-9).failures
    assert {(e.device, e.quantity) for e in failures} == {(PYTORCH, "value")}


@pytest.mark.usefixtures("faulty_exp")
def test_faulty_kernel_fails_on_its_device_with_a_short_reproducer(strict):
    op = dataclasses.replace(find("exp"), fn=xgrad.ops.exp)
    result = compare(op, [CPU, strict], ["float32", "float64"], time=False)
    assert {e.device for e in result.failures} == {"strict"}
    failure = next(e for e in result.failures if (e.dtype, e.quantity) == ("float64", "value"))
    assert failure.error == pytest.approx(1e-6 / 2**-53, rel=0.5)
    out = printed(failure.reproducer)  # `xgrad.ops.exp` is the faulty one here
    assert float(re.search(r"error in ULP (\S+)", out)[1]) == pytest.approx(failure.error, rel=1e-3)
    assert len(failure.reproducer.splitlines()) < 25, "one element suffices to reproduce it"


@pytest.mark.parametrize(
    "name", ["tanh", "divide", "matmul", "std", "getitem with integer arrays", "concat", "softmax"]
)
def test_reproducer_prints_the_error_that_was_measured(name):
    result = compare(find(name), [CPU], ["float32", "float64"], time=False)
    errors = [e for e in result.cells if e.reproducer]
    assert errors or name == "concat"
    for error in errors:
        assert len(error.reproducer) < 2000
        size = float(re.search(r"error in ULP (\S+)", printed(error.reproducer))[1])
        assert size == pytest.approx(error.error, rel=0.01)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("layout", ["plain", "transposed", "reversed"])
def test_reproducer_keeps_options_in_every_layout(layout):
    samples = [Sample((np.array([[1.0, 2.0, 4.0], [0.1, 0.2, 0.4]]),), {"axis": 1}, layout)]
    result = compare_fn(
        "sum", lambda x, axis: xgrad.sum(x, axis=axis) + 1.0, dtype="float32", samples=samples
    )
    failure = next(e for e in result.failures if e.device == PYTORCH)
    assert "axis=axis" in failure.reproducer.replace("axis=1", "axis=axis")


def test_exception_on_one_device_is_a_failure_with_its_message(strict):
    def fn(x):
        if x.device is strict:
            raise ValueError("not here")
        return xgrad.sin(x)

    result = compare(dataclasses.replace(find("sin"), fn=fn), [CPU, strict], ["float32"], time=True)
    (failure,) = result.failures
    assert (failure.device, failure.note, failure.error) == (
        "strict",
        "ValueError: not here",
        math.inf,
    )
    assert math.isnan(next(t.small for t in result.timing if t.device == "strict"))


def test_exception_of_the_reference_is_a_failure():
    def fn(x):
        raise ValueError("nowhere")

    result = compare_fn("sin", fn)
    (failure,) = result.failures
    assert failure.device == REFERENCE and "nowhere" in failure.note
    assert not result.compared


@pytest.mark.parametrize(
    ("on_strict", "note"),
    [
        (lambda x: xgrad.sin(x)[None], "of shape"),
        (lambda x: xgrad.sin(x).to(dtype="float64"), "float64"),
        (lambda x: xgrad.sin(x).to("cpu"), "expected a result on strict"),
        (lambda x: x.detach() * 1, "requires"),
        (lambda x: xgrad.where(x > 1.5, xgrad.nan, xgrad.sin(x)), ""),
    ],
    ids=["shape", "dtype", "device", "history", "NaN"],
)
def test_result_of_another_kind_is_a_failure(on_strict, note, strict):
    def fn(x):
        return on_strict(x) if x.device is strict else xgrad.sin(x)

    failures = compare_fn("sin", fn, [CPU, strict], "float32").failures
    assert {(e.device, e.error) for e in failures if e.quantity == "value"} == {
        ("strict", math.inf)
    }
    assert note in failures[0].note


def test_device_without_an_op_is_skipped_with_the_reason(strict):
    result = compare(find("getitem with a mask"), [CPU, strict], ["float32"], time=False)
    assert result.skipped == {"strict": "the shape of the result depends on the data"}
    assert "strict" not in {e.device for e in result.cells}
