"""What `Captured.program` prints: every call once, with names that a reader of the step knows."""

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace

import pytest

import xgrad
from xgrad import nn, optim
from xgrad.capturing import CaptureWarning
from xgrad.capturing.listing import WIDTH, listing

WAY = "planned at once"


def adam_step():
    """Return a captured step of a network of three layers, recorded."""
    xgrad.manual_seed(0)
    model = nn.MLP([20, 16, 12, 4], "relu", 0.1)
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    @xgrad.capture
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(xgrad.random.randn((8, 20)), xgrad.asarray([0, 1, 2, 3] * 2))
    return step


def frame_of(step):
    (frame,) = step._ways
    return frame


def rows(text):
    """Return the lines of calls: those between the first two empty lines."""
    return text.split("\n\n")[-2].splitlines()


def test_a_network_with_adam_reads_well():
    step = adam_step()
    text = step.program()
    assert text.startswith("1 recording\n\ncalls ")
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "arguments  arg0 float32 (8, 20), arg1 int64 (8,)\n" in text
    assert "param0 float32 (16, 20), param1 float32 (16,), param2 float32 (12, 16)" in text
    for name in ("exp_avg", "exp_avg_sq", "grads", "params"):
        assert re.search(rf"[ ]{name} float32 \(592,\)[,\n]", text)
    assert re.search(r"numbers    n0 = eps \* \(1 - betas\[1\] \*\* \(step \+ 1\)\) \*\* 0\.5\n", text)
    assert "n1 = lr * (1 - betas[1] ** (step + 1)) ** 0.5 / (1 - betas[0] ** (step + 1))\n" in text
    for pattern in (
        r"^%\d+ float32 \(8, 16\) += dot\(arg0, %\d+\) +at \d+ +512  test_listing.py:\d+$",
        r"^%\d+ +\+= param1 +in place +test_listing.py:\d+$",
        r"^%\d+ int16 \(128,\) += random_bits\(seed, draws, .* new +256  ",
        r"^%\d+ int64 \(8,\) += arange\(8\) +\[constant\]",
        r"^%\d+ float32 \(20, 16\) += mT\(param0\) +\[view\]",
        r"^ +check that %\d+ is False",
        r"^exp_avg +\*= betas\[0\] +in place",
        r"^params +-= %\d+ +in place",
    ):
        assert re.search(pattern, text, re.MULTILINE), pattern
    assert re.search(r"\nreturns    %\d+ float32 \(\)\nchanges    grads, exp_avg, exp_avg_sq, params\nleaves ", text)
    assert text.endswith("param4.grad, param5.grad, step = step + 1, draws += 2")


def test_every_call_is_listed_once_and_counted():
    step = adam_step()
    frame, lines = frame_of(step), rows(step.program())
    constants = [line for line in lines if "  [constant]" in line]
    assert len(lines) - len(constants) == len(frame.run.calls)
    free = constants + [line for line in lines if "  [view]" in line]
    assert f"calls      {len(lines) - len(free)}, and {len(free)} in brackets that cost nothing" in step.program()
    made = [name for line in lines if " = " in line for name in re.findall(r"%\d+", line.split(" = ")[0])]
    assert made == [f"%{i}" for i in range(len(made))]  # named in order, each made once, before it is used
    for i, line in enumerate(lines):
        known = set(re.findall(r"%\d+", "\n".join(each.split(" = ")[0] for each in lines[: i + 1])))
        assert set(re.findall(r"%\d+", line)) <= known


def test_memory_is_what_is_planned():
    step = adam_step()
    replay = frame_of(step).run
    planned, alone = (
        int(n.replace(",", "")) for n in re.search(r"memory +([\d,]+) bytes; ([\d,]+) if", step.program()).groups()
    )
    assert planned == replay.nbytes < alone
    for line in rows(step.program()):
        if found := re.search(r" at (\d+) +([\d,]+)  ", line):
            offset, nbytes = (int(n.replace(",", "")) for n in found.groups())
            assert offset + nbytes <= planned


def test_a_result_takes_the_place_of_a_view_of_all_that_is_needed_no_more():
    step = xgrad.capture(lambda x: xgrad.exp(xgrad.reshape(xgrad.tanh(xgrad.reshape(x * 2, (-1,))), (50, 20))).sum())
    x = xgrad.ones((10, 100), dtype=xgrad.float32)
    expected = step(x)
    assert step(x).numpy() == expected.numpy()
    assert step.recordings == 1 and frame_of(step).run.nbytes == 64 * 63  # 4000 bytes
    assert step.program().count(" at 0 ") == 3


def test_options_of_several_optimizers_have_names_of_their_own():
    tensors = [xgrad.Tensor([1.0, 2.0], requires_grad=True) for _ in range(2)]
    optimizers = [optim.SGD([tensor], lr=0.1) for tensor in tensors]

    @xgrad.capture
    def step():
        for optimizer in optimizers:
            optimizer.zero_grad()
        (tensors[0] * tensors[1]).sum().backward()
        for optimizer in optimizers:
            optimizer.step()

    for _ in range(3):
        step()
    text = step.program()
    assert "multiply(lr, grads0)" in text and "multiply(lr_2, grads1)" in text
    assert "returns    no new tensor\n" in text


def test_what_a_step_rebinds_is_told():
    inner, given = (xgrad.Tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))

    @xgrad.capture
    def step(x, unused, leaf):
        (leaf * inner * x).sum().backward()
        with xgrad.no_grad():
            for each in (leaf, inner):
                each -= each.grad
        inner.grad = leaf.grad = None
        return {"rows": [x[::-1], x[0]], "all": xgrad.sort(x)}

    for _ in range(2):
        step(xgrad.Tensor([3.0, 1.0, 2.0]), xgrad.ones(2), given)
    text = step.program()
    assert step.refusal is None
    assert "arguments  arg0 float32 (3,), arg1 float32 (2,), not used, arg2 float32 (3,)\n" in text
    assert re.search(r"= arg0\[::-1\] +view ", text)
    assert re.search(r"\nleaves     no param\d\.grad, no param\d\.grad, arg2 = %\d+, param\d = %\d+$", text)


def test_a_gradient_that_no_optimizer_keeps_is_told():
    leaf = xgrad.Tensor([1.0, 2.0], requires_grad=True)

    @xgrad.capture
    def step(x):
        leaf.grad = None
        (leaf * x).sum().backward()

    for _ in range(2):
        step(xgrad.ones(2))
    assert re.search(r"\nleaves     param0\.grad = %\d+$", step.program())


def test_a_replay_that_knows_no_places_is_listed_too():
    frame = frame_of(adam_step())
    plain = SimpleNamespace(
        **{name: getattr(frame, name) for name in ("program", "arguments", "results", "outputs", "left")},
        run=SimpleNamespace(),
    )
    text = listing(plain)
    assert "memory" not in text.splitlines()[1] and "[" not in rows(text)[2]
    assert len(rows(text)) == len(frame.program.calls)


def test_long_calls_are_cut_to_the_width():
    @xgrad.capture
    def step(*parts):
        return xgrad.concat(list(parts)) * 2

    step(*[xgrad.ones((1, 1000)) for _ in range(40)])
    lines = step.program().splitlines()
    assert max(map(len, lines)) <= WIDTH and any("..." in line for line in lines)


def test_each_recording_is_listed():
    double = xgrad.capture(lambda x: 2 * x)
    assert double.program() == "0 recordings"
    for n in (1, 2, 3):
        double(xgrad.ones(n))
    parts = double.program().split("\n\n")
    assert parts[0] == "3 recordings" and sum(part.startswith("calls ") for part in parts) == 3


def test_a_step_that_is_not_captured_says_why():
    step = xgrad.capture(lambda x: x * 2 if x.sum().item() > 0 else x)
    with pytest.warns(CaptureWarning, match=r"test_listing\.py:\d+"):
        step(xgrad.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert re.match(r"runs eagerly: test_listing\.py:\d+: the value of", step.program())
