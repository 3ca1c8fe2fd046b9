"""`detect_anomaly` names the op, the tensor and the line of the first NaN or infinity.

The tests plant values that make the first one at a known line, forward or backward.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import function, host, leaf, leaf64, on, run_threads, uniform
from xgrad import Tensor, capture, nn
from xgrad.autograd import checkpoint, detect_anomaly, set_detect_anomaly
from xgrad.backend.device import intercepting
from xgrad.capture import CaptureWarning

nan, inf = math.nan, math.inf
# with a wrong derivative, infinite at 0
double = function("double", lambda xp, x: 2 * x, lambda xp, g, x: 2 * g / x)
Tensors = dict[str, Tensor]


def model(t: Tensors) -> Tensor:
    """Return a loss in which each marked line may make the first NaN or infinity."""
    h = nn.functional.linear(t["x"], t["w1"], t["b1"])  # first layer
    h = nn.functional.layer_norm(h, (4,), t["gain"])  # norm
    h = xgrad.tanh(h) * t["gate"]  # gate
    h = h + double(t["doubled"])  # own function
    h = h + xgrad.sqrt(t["area"])  # root
    h = h + t["base"] ** 0.5  # power
    h = h + xgrad.log(t["rate"])  # logarithm
    h = h + xgrad.acos(t["cosine"])  # arc cosine
    h = h + xgrad.where(t["part"] > 0, xgrad.sqrt(t["part"]), 0.0)  # where
    h = h @ t["w2"]  # second layer
    h = h + xgrad.exp(t["exponent"])  # exponential
    h = h / t["divisor"]  # quotient
    h = xgrad.concat([h, t["more"]], axis=0)  # joined
    h = h * xgrad.sqrt(t["north"] ** 2 + t["east"] ** 2)  # length
    p = nn.functional.softmax(h + t["mask"], axis=-1)  # softmax
    return ((p - t["y"]) ** 2).mean() * t["weight"]  # loss


ONES = "x b1 gain gate doubled area base rate part exponent divisor more north east weight".split()


def tensors(device: str, **planted: float) -> Tensors:
    """Return leaves of 3 rows and 4 columns, of which some have another first element."""
    arrays = {name: np.ones((3, 4)) for name in ONES}
    arrays |= {"w1": uniform(4, 4), "w2": uniform(4, 4, seed=1), "cosine": np.full((3, 4), 0.3)}
    arrays |= {
        "b1": np.ones(4),
        "gain": np.ones(4),
        "north": np.ones((6, 4)),
        "east": np.ones((6, 4)),
    }
    arrays |= {"mask": np.zeros((6, 1)), "y": np.zeros((6, 4)), "weight": np.ones(())}
    for name, value in planted.items():
        arrays[name].flat[0] = value
    return {name: leaf(array.astype(np.float32), device=device) for name, array in arrays.items()}


#: Values planted in one element, the marked line, and the message, with … for any text and @ for
#: the line.
PLANTED: list[tuple[dict[str, float], str, str]] = [
    (
        {"x": nan},
        "first layer",
        (
            "linear: NaN in 4 of 12 elements of the result of shape (3, 4), float32 on …, at @:"
            " input of shape (3, 4) (t['x']) has NaN, weight of shape (4, 4) (t['w1']) is finite,"
            " bias …(t['b1']) is finite"
        ),
    ),
    (
        {"w1": nan},
        "first layer",
        "linear: NaN in 3 of 12 elements …, at @: …(t['w1']) has NaN, …(t['b1']) is finite",
    ),
    (
        {"b1": inf},
        "first layer",
        "linear: infinity in 3 of 12 elements …, at @: …(t['b1']) has infinity",
    ),
    (
        {"gain": nan},
        "norm",
        "normalize: NaN in 3 of 12 elements …, at @: x …(h) is finite, …(t['gain']) has NaN",
    ),
    (
        {"gate": nan},
        "gate",
        "multiply: NaN in 1 of 12 elements …, at @: …x2 of shape (3, 4) (t['gate']) has NaN",
    ),
    (
        {"doubled": inf},
        "own function",
        "double: infinity in 1 of 12 elements of the result …, at @: …has infinity",
    ),
    (
        {"doubled": 0.0},
        "own function",
        (
            "double: infinity in 1 of 12 elements of the gradient of x of shape (3, 4)"
            " (t['doubled']), float32 on …, at @: the gradient of its result of shape (3, 4) is"
            " finite"
        ),
    ),
    (
        {"area": -1.0},
        "root",
        "sqrt: NaN in 1 of 12 elements of the result …, at @: x …(t['area']) is finite",
    ),
    (
        {"area": 0.0},
        "root",
        "sqrt: infinity in 1 of 12 elements of the gradient of x …(t['area']), …, at @: …finite",
    ),
    (
        {"base": 0.0},
        "power",
        "pow: infinity in 1 of 12 elements of the gradient of x1 …, at @: …is finite",
    ),
    (
        {"rate": 0.0},
        "logarithm",
        "log: infinity in 1 of 12 elements of the result …, at @: …is finite",
    ),
    (
        {"cosine": 2.0},
        "arc cosine",
        "acos: NaN in 1 of 12 elements of the result …, at @: …is finite",
    ),
    (
        {"cosine": 1.0},
        "arc cosine",
        "acos: infinity in 1 of 12 elements of the gradient of x …, at @: …is finite",
    ),
    (
        {"part": 0.0},
        "where",
        "sqrt: NaN in 1 of 12 elements of the gradient of x …, at @: …is finite",
    ),
    (
        {"w2": nan},
        "second layer",
        "matmul: NaN in 3 of 12 elements …, at @: x1 …(h) is finite, x2 …(t['w2']) has NaN",
    ),
    (
        {"exponent": 1000.0},
        "exponential",
        "exp: infinity in 1 of 12 elements of the result …, at @: …is finite",
    ),
    (
        {"divisor": 0.0},
        "quotient",
        "divide: infinity in 1 of 12 elements …, at @: x1 …finite, x2 …finite",
    ),
    (
        {"more": nan},
        "joined",
        "concat: NaN in 1 of 24 elements …, at @: arrays[0] …is finite, arrays[1] …has NaN",
    ),
    (
        {"north": 0.0, "east": 0.0},
        "length",
        "sqrt: infinity in 1 of 24 elements of the gradient of x …, at @: …finite",
    ),
    (
        {"mask": -inf},
        "softmax",
        "add: infinity in 4 of 24 elements …, at @: x1 …(h) is finite, x2 …has infinity",
    ),
    (
        {"y": nan},
        "loss",
        "subtract: NaN in 1 of 24 elements …, at @: x1 …(p) is finite, x2 …has NaN",
    ),
    (
        {"weight": nan},
        "loss",
        "multiply: NaN in the only element of the result …, at @: x1 …is finite, x2 …has NaN",
    ),
]


def check_message(text: str, pattern: str, marker: str, code: Callable[..., Any] = model) -> None:
    """Check a message for a pattern, in which @ stands for the marked line of a function."""
    lines, first = inspect.getsourcelines(code)
    (number,) = [i for i, line in enumerate(lines, first) if line.rstrip().endswith(f"# {marker}")]
    parts = pattern.replace("@", f"{__file__}:{number}").split("…")
    assert re.fullmatch(".*".join(map(re.escape, parts)), text), text


def step(t: Tensors) -> list[Tensor]:
    loss = model(t)
    return [loss.detach(), *xgrad.autograd.grad(loss, list(t.values()))]


@pytest.fixture(scope="module")
def replayed() -> Any:
    return capture(step)


def test_model_without_anomalies_has_the_same_gradients_in_the_mode(device: str) -> None:
    wanted = step(tensors(device))
    with detect_anomaly():
        got = step(tensors(device))
    for x1, x2 in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(host(x1), host(x2))


@pytest.mark.parametrize(
    ("planted", "marker", "pattern"), PLANTED, ids=[f"{p}"[1:-1] for p, *_ in PLANTED]
)
def test_planted_value_is_found_at_its_line(
    device: str,
    replayed: Any,
    planted: dict[str, float],
    marker: str,
    pattern: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    captured = xgrad.Device(device).backend.executor is not None
    if captured:
        replayed(tensors(device))
        assert replayed.refusal is None and replayed.recordings == 1
    with pytest.raises(FloatingPointError) as caught, detect_anomaly():
        (replayed if captured else step)(tensors(device, **planted))
    in_groups = re.sub(r" ?…?\((h|p)\)", "…", pattern)  # h may have another value by then
    backend = xgrad.Device(device).backend
    check_message(str(caught.value), in_groups if backend.asynchronous else pattern, marker)
    monkeypatch.setattr(backend, "asynchronous", True)  # checks in groups
    with pytest.raises(FloatingPointError) as caught, detect_anomaly():
        step(tensors(device, **planted))
    check_message(str(caught.value), in_groups, marker)


def anomaly(run: Callable[[], Any], **options: Any) -> str:
    """Return the message of the error that a call raises, with its notes."""
    with pytest.raises(FloatingPointError) as caught, detect_anomaly(**options):
        run()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_parameters_and_layers_are_named() -> None:
    net = nn.MLP([3, 4, 2])
    with xgrad.no_grad():
        net[2].weight[1, 1] = nan
    text = anomaly(lambda: net(xgrad.ones((2, 3))))
    assert (
        "weight of shape (2, 4) (net.2.weight) has NaN" in text
        and "in layer '2' (Linear) of MLP" in text
    )


def second_order(x: Tensor) -> Tensor:
    y = xgrad.sqrt(x)  # root
    (slope,) = xgrad.autograd.grad(y.sum(), x, create_graph=True)
    return slope


def recomputed(x: Tensor) -> Tensor:
    def part(x: Tensor) -> Tensor:
        y = xgrad.sqrt(x)  # inner root
        return y * y

    return checkpoint(part, x)


ELSEWHERE: list[tuple[Callable[[Tensor], Any], Callable[..., Any], str, str]] = [
    (
        second_order,
        second_order,
        "root",
        "divide: infinity in …, at @, in its derivative of sqrt: …",
    ),
    (
        lambda x: recomputed(x).sum().backward(),
        recomputed,
        "inner root",
        "sqrt: … of the gradient of x …, at @: …",
    ),
    (
        lambda x: xgrad.vmap(xgrad.grad(lambda x: second_order(x).sum()))(x[None, ...]),
        second_order,
        "root",
        "divide: infinity in …, at @, in its …",
    ),
    (
        lambda x: xgrad.hessian(lambda x: second_order(x).sum())(x),
        second_order,
        "root",
        "divide: …, at @, in its …",
    ),
]


@pytest.mark.parametrize(
    ("run", "code", "marker", "pattern"),
    ELSEWHERE,
    ids=["create_graph", "checkpoint", "vmap", "hessian"],
)
def test_line_is_that_of_the_op_in_transforms(
    run: Callable[[Tensor], Any], code: Callable[..., Any], marker: str, pattern: str
) -> None:
    text = anomaly(lambda: run(leaf([4.0, 0.0])))
    check_message(text.partition("\n")[0], pattern, marker, code)


def test_graph_from_before_the_block_is_checked() -> None:
    x = leaf([4.0, 0.0])
    y = xgrad.sqrt(x).sum()
    assert "of x of shape (2,) (x), float32 on cpu, at a line before detect_anomaly" in anomaly(
        y.backward
    )


def test_gradient_that_arrives_with_nan_is_named() -> None:
    x = leaf([4.0, 1.0])
    y = 2 * x
    y.register_hook(lambda g: g * nan)
    text = anomaly(lambda: y.sum().backward())
    assert text.startswith("multiply: NaN in 2 of 2 elements") and "the hook" not in text


def test_infinities_of_a_mask_are_intended_but_no_nan(device: str) -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]], device=device)
    keep = on(device, [[True, False], [True, True]])

    def attention(keep: Tensor) -> None:
        scores = x + xgrad.where(keep, xgrad.zeros_like(x), -inf)
        xgrad.sum(nn.functional.softmax(scores * 2, axis=-1)[0, ...]).backward()

    with detect_anomaly():
        attention(keep)
    assert anomaly(lambda: attention(xgrad.zeros_like(keep))).startswith("softmax: NaN")
    with detect_anomaly(check_inf=False):
        xgrad.log(xgrad.zeros(2, device=device))
    assert "has infinity" in anomaly(lambda: xgrad.log(xgrad.zeros(2)) * 0, check_inf=False)


@pytest.mark.parametrize("rule", [lambda xp, g: (g, g), lambda xp, g: (), lambda xp, g: "text"])
def test_wrong_rule_is_refused_as_without_the_block(rule: Callable[..., Any]) -> None:
    y = function("square", lambda xp, x: x * x, rule)(leaf([1.0]))
    with pytest.raises(RuntimeError, match="backward returned"), detect_anomaly():
        y.sum().backward()


@pytest.mark.filterwarnings("ignore:divide by zero encountered:RuntimeWarning")
def test_captured_step_with_the_block_inside_is_refused() -> None:
    @detect_anomaly()
    def step(x: Tensor) -> Tensor:
        return xgrad.log(x)

    run = capture(step)
    with pytest.warns(CaptureWarning, match="detect_anomaly reads values"):
        assert run(xgrad.ones(2)).tolist() == [0, 0]
    with pytest.raises(FloatingPointError):
        run(xgrad.zeros(2))


@pytest.mark.filterwarnings("ignore:divide by zero encountered:RuntimeWarning")
def test_setting_holds_until_it_is_reset_in_its_thread_alone() -> None:
    x, results = leaf([0.0]), []
    set_detect_anomaly(True)
    try:
        run_threads(lambda: results.append(float(xgrad.log(xgrad.zeros(())))))
        with pytest.raises(FloatingPointError, match="x of shape"):
            xgrad.log(x)
    finally:
        set_detect_anomaly(False)
    assert results == [-inf] and xgrad.log(x).tolist() == [-inf] and intercepting.get() is None


def test_a_block_leaves_no_cycles_and_ops_outside_unwatched() -> None:
    x = leaf64([1.0, 2.0])
    with detect_anomaly():
        inside = weakref.ref(xgrad.exp(x) * x)
    assert inside() is None
    edge: Any = (x * x)._edge
    assert type(edge.spec).__name__ == "BackwardSpec"


def test_an_op_outside_of_a_block_reads_no_more_than_the_mode_that_it_shares_with_traces() -> None:
    x, reads = leaf([1.0, 2.0]), []
    x * x

    def count(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and isinstance(getattr(called, "__self__", None), ContextVar):
            reads.append(called.__self__.name)

    sys.setprofile(count)
    x * x
    sys.setprofile(None)
    assert reads == ["xgrad_intercepting", "xgrad_grad_enabled"]
