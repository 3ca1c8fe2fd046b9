"""Methods with PyTorch's names: views, writes, conversions, and their errors.

`tests/test_aliases.py` compares results and gradients with PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error

PARTS = {
    "x.split(2)": 0,
    "x.split([1, 3], dim=0)": 1,
    "x.split(2, dim=1)": 1,
    "x.chunk(2)": 1,
    "x.tensor_split(3)": 0,
    "x.tensor_split([1], dim=1)": 1,
    "[x.narrow(1, 1, 2)]": 0,
    "[x.narrow(0, -3, 2)[1:]]": 0,
}


def take(call: str, i: int, x: Any) -> Any:
    return eval(call, {"x": x})[i]


@pytest.mark.parametrize(("call", "i"), PARTS.items())
def test_parts_are_views_and_writes_reach_the_tensor(call: str, i: int, torch: Any) -> None:
    values = np.arange(12.0).reshape(4, 3)
    x, y = xgrad.asarray(values), torch.tensor(values)
    part, other = take(call, i, x), take(call, i, y)
    part.mul_(-2)
    other.mul_(-2)
    np.testing.assert_array_equal(x.numpy(), y.numpy())
    x += 1
    y += 1
    np.testing.assert_array_equal(part.numpy(), other.numpy())
    with xgrad.no_grad():
        part[0] = 7.0
    other[0] = 7.0
    np.testing.assert_array_equal(x.numpy(), y.numpy())


@pytest.mark.parametrize(("call", "i"), [pair for pair in PARTS.items() if "narrow" in pair[0]])
def test_recorded_writes_through_parts_have_the_gradients_of_pytorch(
    call: str, i: int, torch: Any
) -> None:
    values = np.arange(12.0).reshape(4, 3)
    x = xgrad.asarray(values, requires_grad=True)
    y = torch.tensor(values, requires_grad=True)
    for leaf in (x, y):
        base = leaf * 1
        take(call, i, base).mul_(3)
        (base * base).sum().backward()
    assert x.grad is not None and y.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


def test_recorded_writes_through_split_reach_the_base() -> None:
    """PyTorch refuses writes to the parts of `split`."""
    x = xgrad.asarray([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 1
    first, rest = base.split([1, 2])
    first *= 10
    rest.fill_(0)
    assert base.tolist() == [10, 0, 0]
    base.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [10, 0, 0]


def test_gradient_of_parts_is_joined_once() -> None:
    x = xgrad.zeros((6, 2), requires_grad=True)
    parts = x.split(2)
    assert {part.grad_fn.name.partition("[")[0] for part in parts} == {"split"}
    parts[1].sum().backward()
    assert x.grad is not None and x.grad.sum(1).tolist() == [0, 0, 2, 2, 0, 0]


def test_split_works_in_captured_steps_and_batches() -> None:
    def halves(x: xgrad.Tensor) -> xgrad.Tensor:
        first, second = x.chunk(2, dim=-1)
        return (first * second.sigmoid()).sum()

    x = xgrad.random.rand((3, 4))
    step = xgrad.capture(xgrad.grad(halves))
    for scale in (1, 2):
        np.testing.assert_array_equal(
            step(x * scale).numpy(), xgrad.grad(halves)(x * scale).numpy()
        )
    rows = xgrad.stack([xgrad.grad(halves)(row) for row in x])
    np.testing.assert_allclose(xgrad.vmap(xgrad.grad(halves))(x).numpy(), rows.numpy())


def test_single_index_selects_a_slice_as_in_pytorch(torch: Any) -> None:
    values, row = np.arange(6.0).reshape(3, 2), np.full((1, 2), 7.0)
    calls = {
        "index_select": (),
        "index_add": (row,),
        "index_copy": (row,),
        "index_fill": (np.asarray(7.0),),
    }
    for name, others in calls.items():
        got, expected = [
            getattr(array(values), name)(0, array(np.asarray(1)), *map(array, others))
            for array in (xgrad.asarray, torch.tensor)
        ]
        np.testing.assert_array_equal(got.numpy(), expected.numpy())


def test_lerp_to_infinity_has_the_gradients_of_pytorch(torch: Any) -> None:
    start, end, weight = [0.0, 1.0], [np.inf, 2.0], [0.25, 0.75]
    xs = [xgrad.asarray(x, dtype=xgrad.float64, requires_grad=True) for x in (start, end, weight)]
    ys = [torch.tensor(y, dtype=torch.float64, requires_grad=True) for y in (start, end, weight)]
    got, expected = xs[0].lerp(xs[1], xs[2]), ys[0].lerp(ys[1], ys[2])
    np.testing.assert_array_equal(got.detach().numpy(), expected.detach().numpy())
    got.sum().backward()
    expected.sum().backward()
    for x, y in zip(xs, ys, strict=True):
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


def test_writes_count_as_changes_of_saved_values() -> None:
    x = xgrad.nn.Parameter([1.0, 2.0])
    y = (x * x).sum()
    with xgrad.no_grad():
        x.index_add_(0, xgrad.asarray([0]), xgrad.ones(1))
    with pytest.raises(RuntimeError, match="multiply"):
        y.backward()


def test_to_takes_what_pytorch_takes() -> None:
    x = xgrad.asarray([1.0, 2.0])
    other = xgrad.zeros(3, dtype=xgrad.float64)
    assert x.to(other).dtype == x.to("cpu", xgrad.float64).dtype == xgrad.float64
    assert x.to("cpu", non_blocking=True) is x.to(x) is x.to(dtype=xgrad.float32) is x
    copied = x.to("cpu", copy=True)
    assert copied is not x and copied.tolist() == x.tolist()
    assert x.to("cpu", xgrad.float64, False, True).dtype == xgrad.float64
    assert x.half().dtype == xgrad.float16 and x.byte().dtype == xgrad.uint8
    leaf = xgrad.asarray([1.0], requires_grad=True)
    leaf.to(xgrad.float64, copy=True).sum().backward()
    assert leaf.grad is not None and leaf.grad.dtype == xgrad.float32


def test_modules_move_with_non_blocking() -> None:
    layer = xgrad.nn.Linear(2, 1).to("strict", xgrad.float64, non_blocking=True)
    assert layer.weight.device.type == "strict" and layer.weight.dtype == xgrad.float64
    with pytest.raises(TypeError, match="to: expected a bool for non_blocking, got 1"):
        layer.to("cpu", non_blocking=1)  # type: ignore[arg-type]


def test_zero_grad_of_a_module_sets_zeros_unless_to_none() -> None:
    layer = xgrad.nn.Linear(2, 1)
    layer(xgrad.ones((1, 2))).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad is not None and layer.weight.grad.tolist() == [[0, 0]]
    layer.zero_grad()
    assert layer.weight.grad is None and layer.bias.grad is None
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad is None


def test_bernoulli_draws_with_the_probabilities_of_the_tensor() -> None:
    xgrad.manual_seed(0)
    x = xgrad.asarray([[0.0, 0.25, 1.0]]).expand(4000, 3)
    draws = x.bernoulli()
    assert draws.dtype == x.dtype and set(draws.numpy().ravel()) == {0, 1}
    zero, some, one = draws.mean(0).tolist()
    assert zero == 0 and one == 1 and abs(some - 0.25) < 0.03
    counts = xgrad.zeros((100, 3), dtype=xgrad.int64).bernoulli(0.5)
    assert counts.dtype == xgrad.int64 and 100 < counts.sum().item() < 200
    generator = xgrad.random.Generator(3)
    first = x.bernoulli(generator=generator)
    assert (x.bernoulli(generator=xgrad.random.Generator(3)) == first).all()
    assert (x.to("strict").bernoulli(generator=xgrad.random.Generator(3)).to("cpu") == first).all()
    assert not xgrad.ones(2, requires_grad=True).bernoulli().requires_grad


ERRORS = [
    ("(x * 2).bernoulli()", "ValueError: bernoulli: expected probabilities from 0 to 1"),
    ("x.bernoulli(-0.5)", "ValueError: bernoulli: expected probabilities from 0 to 1"),
    ("x.bernoulli('a')", "TypeError: bernoulli: expected a number for p, got 'a'"),
    ("i.bernoulli()", "TypeError: bernoulli: expected probabilities in a floating dtype, got int"),
    ("x.add(x, alpha='a')", "TypeError: add: expected a number for alpha, got 'a'"),
    ("x.sub(x, alpha=True)", "TypeError: sub: expected a number for alpha, got True"),
    ("x.add_(x, alpha=None)", "TypeError: add: expected a number for alpha, got None"),
    (
        "x.add([1.0], alpha=2)",
        "TypeError: add: expected a tensor, an array or a number for x2, got",
    ),
    ("x.div(x, rounding_mode='up')", 'ValueError: div: expected None, "floor" or "trunc" for'),
    ("x.to('cpu', non_blocking=1)", "TypeError: to: expected a bool for non_blocking, got 1"),
    ("x.to('cpu', copy='no')", "TypeError: to: expected a bool for copy, got 'no'"),
    ("x.to(x, 'float64')", "TypeError: to: expected no dtype beside a tensor"),
    (
        "x.to(xp.float32, 'float64')",
        "TypeError: to: expected a device, got dtype('float32') and dtype",
    ),
    ("x.lerp(1.0, 0.5)", "TypeError: lerp: expected a tensor for end, got float"),
    ("x.lerp(x, 'a')", "TypeError: lerp: expected a number for weight, got 'a'"),
    ("x.addmm(x[0], x)", "ValueError: addmm: expected mat1 with 2 axes, got shape (3,), with 1"),
    ("x.addmm(x, x.T, beta='a')", "TypeError: addmm: expected a number for beta, got 'a'"),
    ("x.baddbmm(x, x)", "ValueError: baddbmm: expected batch1 with 3 axes, got shape (4, 3)"),
    ("xp.ones((4, 1)).addmm(x[:1], x.T)", "ValueError: addmm: expected a tensor that broadcasts"),
    ("xp.ones((4, 7)).addmm(x, x.T, beta=0)", "ValueError: addmm: expected a tensor that broadca"),
    ("x.split(0)", "ValueError: split: expected split_size of 1 or more, got 0"),
    ("x.split(1.5)", "TypeError: split: expected an int for split_size, got 1.5"),
    ("x.split([1, 2])", "ValueError: split: expected split_size of lengths that add up to 4, al"),
    ("x.split([5, -1])", "ValueError: split: expected split_size of lengths that add up to 4"),
    ("x.split(2, 2)", "IndexError: split: expected dim from -2 to 1 for x of shape (4, 3), got 2"),
    ("x.chunk(0)", "ValueError: chunk: expected chunks of 1 or more, got 0"),
    ("x.tensor_split(0)", "ValueError: tensor_split: expected indices_or_sections of 1 or more"),
    ("x.narrow(0, 3, 2)", "IndexError: narrow: expected start and length within 4 elements along"),
    ("x.narrow(0, -5, 1)", "IndexError: narrow: expected start and length within 4 elements"),
    ("x.unfold(0, 5, 1)", "ValueError: unfold: expected size from 0 to 4 along dimension 0 of sh"),
    ("x.unfold(0, 2, 0)", "ValueError: unfold: expected step of 1 or more, got 0"),
    ("x.masked_select(x)", "TypeError: masked_select: expected bools for mask, got float32"),
    ("x.scatter(0, i)", "TypeError: scatter: expected either src or value, got none"),
    ("x.scatter(0, i, x, value=1)", "TypeError: scatter: expected either src or value, got both"),
    ("x.scatter(0, i[0], 1.0)", "ValueError: scatter: expected index with 2 axes, no longer than"),
    ("x.scatter(0, i, x[:1])", "ValueError: scatter: expected src of the shape of index, (2, 3)"),
    ("x.scatter(0, i + 9, 1.0)", "IndexError: setitem: …"),
    ("x.scatter_add(0, i, 1.0)", "TypeError: scatter_add: expected a tensor for src, got float"),
    ("x.index_add(0, i, x)", "ValueError: index_add: expected index with one axis, got shape (2"),
    (
        "x.index_add(0, x[:, 0] > 0, x)",
        "IndexError: index_add: expected integers for index, got bo",
    ),
    (
        "x.index_copy(0, x[0], x)",
        "IndexError: index_copy: expected integers for index, got float32",
    ),
    (
        "x.index_fill_(0, x[:, 0] > 0, 1)",
        "IndexError: index_fill_: expected integers for index, go",
    ),
    ("x.scatter(0, i > 0, 1.0)", "IndexError: scatter: expected integers for index, got bool"),
    ("x.index_select(0, i)", "ValueError: index_select: expected index with one axis, got shape ("),
    (
        "x.index_add(0, i[0], x[:1])",
        "ValueError: index_add: expected source of shape (3, 3), got (1",
    ),
    (
        "x.index_add_(1, i[0], x[0])",
        "ValueError: index_add: expected source of shape (4, 3), got (3",
    ),
    (
        "x.index_copy_(0, i[0], x[0])",
        "ValueError: index_copy_: expected source of shape (3, 3), got",
    ),
    ("x.index_add(0, i[0], x[:3], alpha=[2])", "TypeError: index_add: expected a number for alpha"),
    (
        "x.index_fill(0, i[0], x[0])",
        "ValueError: index_fill: expected a number for value, got shape",
    ),
    (
        "x.scatter(0, i, value=x[:2])",
        "TypeError: scatter: expected a number for value, got Tensor: u",
    ),
    (
        "x.scatter(0, i, x[:1].numpy())",
        "TypeError: scatter: expected a tensor for src, got ndarray: m",
    ),
    ("x.index_fill(2, i[0], 1)", "IndexError: index_fill: expected dim from -2 to 1 for x of sh"),
    ("x.rot90(dims=(0, 0))", "ValueError: rot90: expected different axes for dims, got (0, 0)"),
    ("x.rot90(dims=0)", "ValueError: rot90: expected two axes for dims, got 0"),
    ("x.topk(2, sorted=1)", "TypeError: topk: expected a bool for sorted, got 1"),
]


@pytest.mark.parametrize(("call", "expected"), ERRORS)
def test_errors_say_what_was_expected_and_got(call: str, expected: str) -> None:
    check_error(call, expected, x=xgrad.ones((4, 3)), i=xgrad.asarray([[0, 1, 2], [1, 0, 3]]))
