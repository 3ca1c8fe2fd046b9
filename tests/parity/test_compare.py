import contextlib
import dataclasses
import io
import math
import re

import numpy as np
import pytest

import xgrad
from xgrad.parity.compare import DIFFERENCES, PYTORCH, REFERENCE, compare
from xgrad.parity.evaluate import quiet
from xgrad.parity.pytorch import installed
from xgrad.parity.row import Sample
from xgrad.parity.table import OPS, find

CPU, STRICT = xgrad.Device("cpu"), xgrad.Device("strict")


def printed(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), quiet():
        exec(compile(code, "reproducer", "exec"), {})
    return out.getvalue()


@pytest.mark.parametrize("op", OPS, ids=str)
def test_every_row_is_within_its_tolerance(op, devices):
    if missing := op.missing():
        pytest.skip(f"needs {missing}")
    if op.name == "special.stdtrit":
        pytest.importorskip("scipy", "1.17", reason="before SciPy 1.17 its kernel has 10 digits")
    found = compare(op, [xgrad.Device(name) for name in devices], ["float32", "float64"], time=False)
    assert not found.failures
    assert found.compared or set(found.skipped) == set(devices)


def test_what_is_compared():
    found = compare(find("divide"), [CPU, STRICT], ["float32", "float64"])
    expected = {(d, t, q) for d in ("cpu", "strict") for t in ("float32", "float64") for q in ("value", "gradient")}
    expected |= {(DIFFERENCES, "float64", "gradient")}
    expected |= {(PYTORCH, "float64", q) for q in ("value", "gradient")} if installed() else set()
    assert {(c.device, c.dtype, c.quantity) for c in found.cells} == expected
    assert all(t.small > 0 and t.large > 0 for t in found.timing) and len(found.timing) == 4
    assert 0.4 < max(c.error for c in found.cells if c.quantity == "value") <= 0.501


def test_a_broken_rule_fails_on_what_is_independent_of_it(broken_multiply):
    found = compare(broken_multiply, [CPU, STRICT], ["float64"], time=False)
    assert {c.device for c in found.failures} == {DIFFERENCES, PYTORCH} - (set() if installed() else {PYTORCH})
    failure = next(c for c in found.failures if c.device == DIFFERENCES)
    assert failure.what == "the gradient of x2" and failure.inputs.startswith("x1 = ")
    assert 1e-8 < failure.error < 1e-5


@pytest.mark.usefixtures("torch")
def test_values_and_gradients_are_compared_with_pytorch():
    found = compare(find("divide"), [CPU], ["float32"], time=False)
    assert {(c.dtype, c.quantity) for c in found.cells if c.device == PYTORCH} == {
        ("float64", "value"),
        ("float64", "gradient"),
    }


@pytest.mark.usefixtures("torch")
def test_a_broken_derivative_rule_fails_against_pytorch(broken_multiply):
    failures = compare(broken_multiply, [CPU], ["float64"], time=False).failures
    assert {(c.device, c.quantity) for c in failures} == {(DIFFERENCES, "gradient"), (PYTORCH, "gradient")}


@pytest.mark.usefixtures("torch")
def test_a_result_of_another_shape_than_that_of_pytorch_is_a_failure():
    op = dataclasses.replace(find("sin"), fn=lambda x: xgrad.sin(x)[None])
    failures = compare(op, [CPU], ["float64"], time=False).failures
    assert "expected shapes and kinds" in next(c.note for c in failures if c.device == PYTORCH)


@pytest.mark.usefixtures("torch")
def test_a_broken_forward_rule_fails_against_pytorch():
    softplus = dataclasses.replace(find("softplus"), fn=lambda x: xgrad.softplus(x) + 1e-9)
    failures = compare(softplus, [CPU], ["float64"], time=False).failures
    assert {(c.device, c.quantity) for c in failures} == {(PYTORCH, "value")}


def test_a_faulty_kernel_of_one_device_fails_there_alone(faulty_exp):
    op = dataclasses.replace(find("exp"), fn=xgrad.ops.exp)
    found = compare(op, [CPU, STRICT], ["float32", "float64"], time=False)
    assert {c.device for c in found.failures} == {"strict"}
    failure = next(c for c in found.failures if (c.dtype, c.quantity) == ("float64", "value"))
    assert failure.error == pytest.approx(1e-6 / 2**-53, rel=0.5)
    out = printed(failure.reproducer)  # `xgrad.ops.exp` is the faulty one here
    assert float(re.search(r"error in ULP (\S+)", out)[1]) == pytest.approx(failure.error, rel=1e-3)
    assert len(failure.reproducer.splitlines()) < 25, "one number is enough to show it"


@pytest.mark.parametrize(
    "name", ["tanh", "divide", "matmul", "std", "getitem with integer arrays", "concat", "softmax"]
)
def test_a_reproducer_shows_the_error_that_was_measured(name):
    row = find(name)
    cells = [c for c in compare(row, [CPU], ["float32", "float64"], time=False).cells if c.reproducer]
    assert cells or name == "concat"
    for cell in cells:
        assert len(cell.reproducer) < 2000
        assert float(re.search(r"error in ULP (\S+)", printed(cell.reproducer))[1]) == pytest.approx(
            cell.error, rel=0.01
        )


def test_a_reproducer_of_a_rule_takes_its_own_differences(broken_multiply, monkeypatch):
    monkeypatch.setattr("xgrad.parity.table.find", lambda name: broken_multiply)
    failure = next(
        c for c in compare(broken_multiply, [CPU], ["float64"], time=False).failures if c.device == DIFFERENCES
    )
    got, expected = re.search(r"got (\S+) expected (\S+) by differences", printed(failure.reproducer)).groups()
    assert float(got) / float(expected) - 1 == pytest.approx(1e-6, rel=0.01)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("layout", ["plain", "transposed", "reversed"])
def test_reproducers_keep_layouts_options_and_nothing(layout):
    samples = [Sample((np.array([[1.0, 2.0, 4.0], [0.1, 0.2, 0.4]]),), {"axis": 1}, layout)]
    op = dataclasses.replace(find("sum"), samples=samples, fn=lambda x, axis: xgrad.sum(x, axis=axis) + 1.0)
    failure = next(c for c in compare(op, [CPU], ["float32"], time=False).failures if c.device == PYTORCH)
    assert "axis=axis" in failure.reproducer.replace("axis=1", "axis=axis")


def test_what_raises_is_a_failure_with_its_message():
    def fn(x):
        if x.device is STRICT:
            raise ValueError("not here")
        return xgrad.sin(x)

    found = compare(dataclasses.replace(find("sin"), fn=fn), [CPU, STRICT], ["float32"], time=True)
    (failure,) = found.failures
    assert (failure.device, failure.note, failure.error) == ("strict", "ValueError: not here", math.inf)
    assert math.isnan(next(t.small for t in found.timing if t.device == "strict"))


def test_a_reference_that_raises_is_a_failure():
    def fn(x):
        raise ValueError("nowhere")

    found = compare(dataclasses.replace(find("sin"), fn=fn), [CPU], ["float32"], time=False)
    (failure,) = found.failures
    assert failure.device == REFERENCE and "nowhere" in failure.note
    assert not found.compared


@pytest.mark.parametrize(
    ("fn", "note"),
    [
        (lambda x: xgrad.sin(x) if x.device is CPU else xgrad.sin(x)[None], "of shape"),
        (lambda x: xgrad.sin(x) if x.device is CPU else xgrad.sin(x).to(dtype="float64"), "float64"),
        (lambda x: xgrad.sin(x) if x.device is CPU else xgrad.sin(x).to("cpu"), "expected a result on strict"),
        (lambda x: xgrad.sin(x) if x.device is CPU else x.detach() * 1, "requires"),
    ],
    ids=["shape", "dtype", "device", "history"],
)
def test_results_of_another_shape_dtype_or_device_are_failures(fn, note):
    op = dataclasses.replace(find("sin"), fn=lambda x: xgrad.sin(x) if x.device not in (CPU, STRICT) else fn(x))
    failures = compare(op, [CPU, STRICT], ["float32"], time=False).failures
    assert {c.device for c in failures} == {"strict"} and note in failures[0].note


def test_a_nan_on_one_device_is_a_failure():
    def fn(x):
        return xgrad.sin(x) if x.device is not STRICT else xgrad.where(x > 1.5, xgrad.nan, xgrad.sin(x))

    failures = compare(dataclasses.replace(find("sin"), fn=fn), [CPU, STRICT], ["float32"], time=False).failures
    assert failures and {(c.device, c.error) for c in failures if c.quantity == "value"} == {("strict", math.inf)}


def test_devices_that_cannot_run_a_row_are_skipped_with_the_reason():
    found = compare(find("getitem with a mask"), [CPU, STRICT], ["float32"], time=False)
    assert found.skipped == {"strict": "the shape of the result depends on the data"}
    assert "strict" not in {c.device for c in found.cells}
