"""The tensor: construction, attributes, conversions, copies, `.data`, indexing, and refusals.

They are compared with known values, NumPy and PyTorch.
"""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, leaf
from xgrad import Tensor

# Construction


VALUES = [
    (1.5, "float32"),
    (1, "int64"),
    (True, "bool"),
    (1j, "complex64"),
    ([1.0, 2], "float32"),
    ([[1, 2]], "int64"),
    ((), "float32"),
    (np.float64(1.5), "float64"),
    (np.ones(2), "float64"),
    (np.ones(2, np.uint8), "uint8"),
    (np.ones(2, ">f4"), "float32"),
]


@pytest.mark.parametrize(("data", "dtype"), VALUES)
def test_dtype_follows_python_scalars_and_arrays(data: Any, dtype: str, device: str) -> None:
    x = Tensor(data, device=device)
    assert (x.dtype, str(x.device)) == (np.dtype(dtype), device)
    np.testing.assert_array_equal(x.tolist(), np.asarray(data, dtype=dtype))


def test_given_dtype_is_taken_without_rounding_to_the_default() -> None:
    assert Tensor(0.1, dtype=xgrad.float64).item() == 0.1
    assert xgrad.full(2, 0.1, dtype=xgrad.float64).tolist() == [0.1, 0.1]
    assert Tensor([1.9], dtype="int64").tolist() == [1]
    assert xgrad.full(2, np.float64(1)).dtype == xgrad.float32
    assert xgrad.arange(np.int64(3)).dtype == xgrad.int64


def test_tensor_copies_and_asarray_shares() -> None:
    source = np.zeros(2, np.float32)
    copied, shared = Tensor(source), xgrad.asarray(source)
    source[0] = 5
    assert (copied.tolist(), shared.tolist()) == ([0, 0], [5, 0])
    shared[0] = 1  # a new value, not a write to the user's memory
    assert source.tolist() == [5, 0]


@pytest.mark.parametrize(
    "values", [lambda x: x, lambda x: x * 2, lambda x: [x[0], x[1]], lambda x: [[1.0, x[0]]]]
)
def test_tensors_with_a_graph_are_kept_by_asarray_and_refused_by_tensor(values: Any) -> None:
    x = leaf()
    with pytest.raises(
        ValueError, match=r"Tensor: .*use xgrad\.asarray, which keeps the graph, or \.detach\(\)"
    ):
        Tensor(values(x))
    with xgrad.no_grad():
        assert Tensor(values(x)).is_leaf
    xgrad.asarray(values(x), dtype=xgrad.float64).sum().backward()
    assert x.grad is not None and x.grad.dtype == xgrad.float32 and xgrad.asarray(x) is x


# Attributes and methods


def test_attributes_describe_the_array(device: str) -> None:
    x = Tensor(np.ones((2, 3)), device=device)
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, xgrad.float64)
    assert x.T.shape == x.mT.shape == (3, 2)
    assert x.__array_namespace__() is xgrad


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Tensor([1.0]), "Tensor([1.])"),
        (leaf, "Tensor([1., 2.], requires_grad=True)"),
        (lambda: leaf() * 2, "Tensor([2., 4.], grad_fn=<multiply>)"),
        (lambda: Tensor([1.0], dtype=xgrad.float64), "Tensor([1.], dtype=float64)"),
        (lambda: xgrad.zeros((0, 2)), "Tensor([], shape=(0, 2), dtype=float32)"),
    ],
)
def test_repr_shows_what_differs_from_the_defaults(make: Any, expected: str) -> None:
    assert repr(make()) == expected


def test_methods_are_the_functions_of_their_names() -> None:
    z = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (z.sum().item(), z.mean(0).tolist(), z.max(1).tolist(), z.min().item()) == (
        10,
        [2, 3],
        [2, 4],
        1,
    )
    assert (z.argmax(1).tolist(), z.var(0).tolist(), z.prod().item(), z.any().item()) == (
        [1, 1],
        [1, 1],
        24,
        True,
    )
    assert [z.reshape(4).shape, z.reshape((1, 4)).shape, z.reshape(-1, 1).shape] == [
        (4,),
        (1, 4),
        (4, 1),
    ]
    assert z.std(0, 0, True).shape == (1, 2)


def test_rows_of_iteration_share_one_node_and_are_differentiable_twice(device: str) -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device=device)
    rows = list(x)
    (node,) = rows[0]._edge.edges
    assert (
        len(rows) == 3 and all(row._edge.edges == (node,) for row in rows) and node is not x._edge
    )
    total = sum((i * row**3).sum() for i, row in enumerate(x))
    (slope,) = xgrad.autograd.grad(total, x, create_graph=True)
    assert slope.tolist() == [[0, 0], [27, 48], [150, 216]]
    assert xgrad.autograd.grad(slope.sum(), x)[0].tolist() == [[0, 0], [18, 24], [60, 72]]
    (next(iter(x)) * 2).sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0], [0, 0]]
    first, second = leaf(device=device)
    assert (first.item(), second.item(), first.shape) == (1, 2, ())
    assert list(xgrad.zeros((0, 3), device=device, requires_grad=True)) == []
    assert list(xgrad.zeros((2, 0), device=device, requires_grad=True))[1].shape == (0,)
    with xgrad.no_grad():
        assert [row.requires_grad for row in x] == [False] * 3


def test_iteration_over_a_vector_makes_no_call_for_each_element(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    x = Tensor([3.0, 1.0, 2.0], device=device)
    monkeypatch.setattr(xgrad.ops, "getitem", None)
    assert [v.tolist() for v in x] == [3, 1, 2] and list(xgrad.zeros(0, device=device)) == []
    assert (min(x).item(), max(x).item(), sum(x).item()) == (1, 3, 6)


# Conversions and copies


def test_numpy_conversions_share_memory_read_only() -> None:
    x = Tensor([1.0, 2.0])
    for array in (x.numpy(), np.asarray(x)):
        assert np.shares_memory(array, x._data)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    writable = np.array(x)
    writable[0] = 5
    assert x.tolist() == [1, 2]


def test_numpy_conversion_of_another_device_is_refused() -> None:
    pytest.importorskip(
        "array_api_strict", reason="array-api-strict, the other device, is not installed"
    )
    with pytest.raises(TypeError, match="this tensor is on strict: use"):
        np.asarray(Tensor([1.0], device="strict"))


CONVERSIONS = [np.asarray, np.array, Tensor.numpy, lambda t: np.ones(2) * np.asarray(t)]


@pytest.mark.parametrize("convert", [pickle.dumps, copy.copy, copy.deepcopy, *CONVERSIONS])
def test_conversion_that_would_lose_a_graph_names_detach(convert: Any) -> None:
    for x in (leaf() * 2, leaf()) if convert in CONVERSIONS else (leaf() * 2,):
        with pytest.raises(RuntimeError, match=r"use \.detach\(\)"):
            convert(x)


@pytest.mark.parametrize(
    "twin", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy]
)
def test_copies_are_equal_and_separate(twin: Any, device: str) -> None:
    for x in (leaf(device=device), Tensor([1, 2], device=device)):
        y = twin(x)
        assert y is not x and y.tolist() == x.tolist()
        assert (y.dtype, y.device, y.requires_grad) == (x.dtype, x.device, x.requires_grad)


# .data and writes behind the graph's back


def test_data_reads_and_writes_the_value_without_history() -> None:
    x = leaf()
    a, b = x.data, x.data
    assert not a.requires_grad
    a[0], b[1] = 5.0, 7.0
    a -= 1
    assert x.tolist() == [4, 6] and x.requires_grad
    x.data *= 2
    assert x.tolist() == [8, 12]
    (x * x).sum().backward()
    before = x.grad
    x.data = np.array([1.0, 2.0], np.float32)
    assert x.tolist() == [1, 2] and x.grad is before
    x.data = xgrad.zeros(5)
    assert x.grad is None


def test_refused_assignment_to_data_changes_nothing() -> None:
    y = leaf([1.0, 2.0, 3.0]) * 2
    for wrong in (xgrad.ones(5), xgrad.ones(3, dtype=xgrad.float64)):
        with pytest.raises(
            ValueError,
            match=r"data: expected shape \(3,\), float32 on cpu for a computed tensor, got",
        ):
            y.data = wrong
    assert (y.shape, y.dtype, y.tolist()) == ((3,), xgrad.float32, [2, 4, 6])
    with pytest.raises(
        TypeError, match="data: expected a floating dtype where a gradient is wanted, got int64"
    ):
        leaf().data = Tensor([1, 2])


def test_integer_results_have_no_history() -> None:
    x, y = leaf(), xgrad.zeros(2, dtype=xgrad.int64)
    y[0] = x[0].astype(xgrad.int64)
    assert not y.requires_grad and not xgrad.sum(x, dtype=xgrad.int64).requires_grad


def test_updates_under_no_grad_change_leaves_in_place() -> None:
    x = leaf()
    frozen = xgrad.nn.Parameter([1.0, 2.0], requires_grad=False)
    later = leaf().requires_grad_(False)
    with xgrad.no_grad():
        for p in (x, frozen, copy.deepcopy(frozen), later):
            same = p
            p *= 0.5
            p[0] = 5.0
            assert p is same and p.is_leaf and p.tolist() == [5, 1]
    assert x.requires_grad
    constant = same = Tensor([1.0])
    number = other = Tensor(1.0)
    with xgrad.no_grad():
        constant += 1
        number += 1
    assert constant is same and same.tolist() == [2]
    assert number is other and other.item() == 2


CHANGES: list[tuple[str, Any, tuple[Any, ...]]] = [
    *[(f"__i{name}__", 5.0, (2,)) for name in "add sub mul truediv pow mod".split()],
    *[(f"__i{name}__", 5, (2,)) for name in "floordiv and or xor lshift rshift".split()],
    *[(f"{name}_", 5.0, (2,)) for name in "add sub mul div pow fill copy".split()],
    *[(f"{name}_", 5.0, ()) for name in "neg abs exp sqrt zero".split()],
    ("clamp_", 5.0, (0, 1)),
]


@pytest.mark.parametrize(("name", "value", "others"), CHANGES)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_update_is_in_place_through_every_name(
    name: str, value: Any, others: tuple[Any, ...], shape: tuple[int, ...], device: str
) -> None:
    for requires_grad in (False, type(value) is float):
        x = same = xgrad.full(shape, value, device=device, requires_grad=requires_grad) * 1
        before = x.detach()
        expected = getattr(xgrad.full((2,), value, device=device), name)(*others)[0]
        assert getattr(x, name)(*others) is same is x and x.requires_grad == requires_grad
        assert (x.shape, x.reshape((1,)).tolist()) == (shape, [expected.item()])
        assert before.reshape((1,)).tolist() == [value]  # a value of earlier


def test_update_of_a_number_is_in_place_under_no_grad_and_in_a_function() -> None:
    def accumulate(n: Tensor) -> None:
        n += 1

    n, viewed, buffer = Tensor(1), Tensor(1), xgrad.nn.BatchNorm1d(2).num_batches_tracked
    viewed[...]
    for x in (n, viewed, buffer):
        before = x.item()
        accumulate(x)
        with xgrad.no_grad():
            accumulate(x)
        assert x.item() == before + 2
    with pytest.raises(
        TypeError, match="in place: expected a result of a dtype that int64 can hold, got float32"
    ):
        n += 0.5
    with pytest.raises(ValueError, match=r"in place: expected a result of shape \(\), got \(2,\)"):
        n += xgrad.ones(2, dtype=xgrad.int64)
    with pytest.raises(RuntimeError, match="leaf that requires a gradient"):
        accumulate(xgrad.Tensor(1.0, requires_grad=True))
    assert n.item() == 3


def test_totals_of_losses_have_the_values_and_gradients_of_pytorch(torch: Any) -> None:
    def run(xp: Any) -> Any:
        w, log, total, seen = xp.tensor([1.0, 2.0], requires_grad=True), xp.tensor(0.0), 0, []
        for i in range(1, 4):
            loss = ((w * i) ** 2).sum()
            log += loss.detach()
            total += loss
            seen.append(loss.item())
        total.backward()
        return log.item(), total.item(), seen, w.grad.tolist()

    assert run(xgrad) == run(torch)


def test_update_of_a_number_changes_no_constant_of_the_library() -> None:
    x, given = Tensor(2.0, requires_grad=True), Tensor(3.0)
    for _ in range(2):
        x.grad = None
        x.backward()
        (g,) = xgrad.autograd.grad(x * 1, x)
        (h,) = xgrad.autograd.grad([x * 1, x * 2], x, [given, given])
        assert (x.grad.item(), g.item(), h.item()) == (1, 1, 9)
        x.grad += 5
        g += 5
        h += 5
        assert (x.grad.item(), g.item(), h.item(), given.item()) == (6, 6, 14, 3)
    values = Tensor([1.0, 2.0])
    first, detached, copied = values[0], given.detach(), given.clone()
    for y in (first, detached, copied, *values, *xgrad.unstack(values)):
        y += 7
    assert values.tolist() == [1, 2] and given.item() == 3
    model, default = xgrad.nn.BatchNorm1d(2), xgrad.nn.BatchNorm1d(2)
    model.num_batches_tracked += 4
    state = model.state_dict()["num_batches_tracked"]
    state += 1
    assert (model.num_batches_tracked.item(), default.num_batches_tracked.item(), state.item()) == (
        4,
        0,
        5,
    )


def test_captured_update_of_a_number_is_that_of_the_eager_step() -> None:
    state = Tensor(1.0)

    def step(n: Tensor) -> Tensor:
        n += 1
        total = state
        total += n
        local = n.detach()
        local += 100
        return n * 2

    captured = xgrad.capture(step)
    for i in range(4):
        n = Tensor(float(i))
        assert captured(n).item() == 2 * (i + 1) and n.item() == i + 1
    assert state.item() == 11


def test_assignment_under_no_grad_keeps_the_history_of_a_computed_tensor() -> None:
    x = leaf()
    y = x * 2
    with xgrad.no_grad():
        y[0] = 0.0
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [3, 3]


# Indexing


def test_keys_may_be_tensors_arrays_and_lists(device: str) -> None:
    x = Tensor([10, 20, 30], device=device)
    assert x[Tensor(1, device=device)].item() == 20
    if device != "strict":  # which takes integer arrays for all axes at once only
        for key in (Tensor([2, 0], device=device), [2, 0], np.array([2, 0])):
            assert x[key].tolist() == [30, 10]
        assert x[x > 10].tolist() == [20, 30]
    assert x[Tensor(1, device=device) :].tolist() == [20, 30]


@pytest.mark.parametrize(
    "part", [(0, 0), [0, 0], np.array([0, 0], np.uint8), (Tensor(0), Tensor(0)), range(0, 1)]
)
def test_gradients_at_repeated_indices_add_up(part: Any) -> None:
    x, count = leaf([[1.0, 2.0], [3.0, 4.0]]), len(part)
    x[:, part].sum().backward()
    assert x.grad.tolist() == [[count, 0], [count, 0]]
    assert xgrad.ops.index_add(xgrad.zeros((2, 2)), (slice(None), part), 1.0).tolist() == [
        [count, 0],
        [count, 0],
    ]
    values = leaf(np.ones((2, count), np.float32))
    y = xgrad.zeros((2, 2))
    y[:, part] = values
    y.sum().backward()
    assert values.grad[:, -1].tolist() == [1, 1] and values.grad.sum().item() == 2


def test_integers_of_any_width_are_indices_not_a_mask(device: str) -> None:
    x = Tensor([10, 20], device=device)
    for dtype in ("int8", "uint8", "uint16", "uint32", "uint64"):
        for key in (np.array([1, 1], dtype), Tensor(np.array([1, 1], dtype), device=device)):
            assert x[key].tolist() == [20, 20]


def test_key_that_is_an_array_of_the_device_is_copied(device: str) -> None:
    x, key = leaf(device=device), Tensor([0, 0], device=device)._data
    y = x[key]
    key[0] = 1
    y.sum().backward()
    assert x.grad.tolist() == [2, 0]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_narrow_targets_choose_among_many_classes(dtype: str, device: str) -> None:
    logits = leaf(np.zeros((1, 300)), device=device)
    xgrad.nn.functional.cross_entropy(logits, Tensor([5], dtype=dtype, device=device)).backward()
    assert (logits.grad < 0).sum().item() == 1


# Refusals: calls with `x` of shape (2,), `w` of shape (2, 3), a leaf and functions `F` of
# `xgrad.nn.functional`

UNKNOWN_DTYPE = "TypeError: dtype: expected one such as xgrad.float32, got"
NO_OPERAND = "TypeError: add: expected a tensor, an array or a number for x2, got"
OUT_OF_BOUNDS = "IndexError: getitem: … got x of shape (2,), float32"
REFUSED = [
    *[
        (f"xp.Tensor({data})", "TypeError: Tensor: expected numbers, got")
        for data in (
            "'text'",
            "[1, 'a']",
            "None",
            "{1: 2}",
            "object()",
            "np.ma.masked_array([1.0, 2.0], [True, False])",
        )
    ],
    (
        "xp.Tensor([[1.0], [1.0, 2.0]])",
        "ValueError: Tensor: expected numbers of a regular shape, got list",
    ),
    *[
        (f"{make}, dtype={dtype})", UNKNOWN_DTYPE)
        for dtype in ("'float33'", "object", "'S5'", "'longdouble'")
        for make in ("xp.zeros(2", "xp.Tensor(1", "x.to('cpu'")
    ],
    ("leaf([1, 2])", "TypeError: requires_grad: expected a floating dtype, got int64"),
    (
        "xp.Tensor([True]).requires_grad_()",
        "TypeError: requires_grad: expected a floating dtype, got bool",
    ),
    ("xp.asarray([1.0], copy=False)", "ValueError: … copy=False, but a list must be copied"),
    (
        "xp.asarray(np.ones(2), dtype='int8', copy=False)",
        "ValueError: … copy=False, but another dtype",
    ),
    ("x.T", "ValueError: T: expected a matrix"),
    ("iter(leaf(1.0))", "TypeError: len: expected at least one axis"),
    ("len(xp.Tensor(1.0))", "TypeError: len: expected at least one axis"),
    *[(f"x[{key}]", OUT_OF_BOUNDS) for key in ("2", "-3", "0, 0", "[0, 5]")],
    (
        "x[xp.Tensor([0.0])]",
        "IndexError: indexing: expected integers or bools, got an array of float32",
    ),
    ("xp.take(x, x > 1)", "IndexError: take: expected indices of integers, got bool"),
    ("w @ w", "ValueError: matmul: … got x1 of shape (2, 3), float32, x2 of shape (2, 3)"),
    ("xp.reshape(x, (2, 2))", "ValueError: reshape: … got x of shape (2,)"),
    ("xp.sum(x, axis=1)", "IndexError: sum: expected axis from -1 to 0 for x of shape (2,), got 1"),
    *[(f"x + {other}", NO_OPERAND) for other in ("[1.0, 2.0]", "'text'", "{1: 2}", "object()")],
    ("xp.Tensor([1], dtype='int8') + 300", "OverflowError: add: … got x1 of shape"),
    ("xp.exp()", "TypeError: exp() missing 1 required positional argument: 'x'"),
    ("xp.add(x, 1, 2)", "TypeError: add() takes … 2 positional arguments but 3 were given"),
    ("xp.sum(x, axes=0)", "TypeError: sum(x, /, *, … 'axes'"),
    ("xp.concat([])", "TypeError: concat … expected at least one tensor, got none"),
    (
        "xp.where(x > 1, x, None)",
        "TypeError: where: expected a tensor, an array or a number for x2, got NoneType",
    ),
    (
        "bool(x)",
        (
            "ValueError: bool: expected one element, got shape (2,): use .any() or .all(); compare"
            " tensors with"
        ),
    ),
    (
        "x in [x + 1, x]",
        "ValueError: … compare tensors with `is`, as in any(p is q for q in tensors)",
    ),
    ("x in [xp.ones(3)]", "ValueError: equal: expected shapes that broadcast … compare with `is`"),
    (
        "f'{x:.2f}'",
        "ValueError: format: expected one element, got shape (2,): format each of .tolist()",
    ),
    ("float(x)", "ValueError: float: expected one element, got shape (2,): take one, as x[0]"),
    ("int(x)", "ValueError: int: expected one element"),
    ("complex(x)", "ValueError: complex: expected one element"),
    ("x.item()", "ValueError: item: expected one element, … or all by .tolist() or .numpy()"),
    ("xp.where(x > 1, 1.0, 2.0)", "TypeError: where: expected at least one tensor for x1 and x2"),
    (
        "F.mse_loss(x, w)",
        "ValueError: mse_loss: expected input and target of one shape, got (2,) and (2, 3)",
    ),
    (
        "F.mse_loss(x, x, reduction='max')",
        "ValueError: … expected a reduction of 'mean', 'sum' or 'none', got 'max'",
    ),
    (
        "F.cross_entropy(w, x)",
        "ValueError: cross_entropy: expected a target of probabilities of the shape of input",
    ),
    ("F.cross_entropy(w, xp.arange(3))", "ValueError: cross_entropy: … got (2, 3) and (3,)"),
    (
        "F.cross_entropy(w, xp.asarray([0, -1]))",
        "IndexError: cross_entropy: expected target from 0 to 2, got -1",
    ),
    (
        "F.cross_entropy(w, xp.asarray([0, 3]))",
        "IndexError: cross_entropy: expected target from 0 to 2, got 3",
    ),
    (
        "F.cross_entropy(w, xp.arange(2), label_smoothing=2)",
        "ValueError: … expected label_smoothing from 0 to 1, got",
    ),
    ("F.linear(w, xp.ones((4, 2)))", "ValueError: linear: expected input of shape"),
    ("F.linear(w, xp.ones((4, 3)), w)", "ValueError: linear: expected weight of shape"),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_wrong_argument_is_named_with_what_was_expected(call: str, error: str) -> None:
    check_error(
        call, error, x=xgrad.ones(2), w=xgrad.ones((2, 3)), leaf=leaf, F=xgrad.nn.functional, np=np
    )


def test_shapes_that_do_not_broadcast_are_named(device: str) -> None:
    a, b = xgrad.ones((2, 3), device=device), xgrad.ones(4, device=device)
    for op in (xgrad.add, xgrad.multiply, xgrad.pow, xgrad.maximum, xgrad.equal):
        message = (
            rf"{op.__name__}: expected shapes that broadcast, .* got x1 of shape \(2, 3\), float32,"
            r" x2 of .*\(4,\)"
        )
        with pytest.raises(ValueError, match=message):
            op(a, b)


def test_assignment_to_a_recorded_leaf_is_refused_and_changes_nothing() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="x is a leaf that requires a gradient"):
        x[0] = 5.0
    for write in (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow):
        with pytest.raises(
            RuntimeError, match=r"x is a leaf .* write x -= y and x\[key\] = y under no_grad\(\)"
        ):
            write(x, 2.0)  # else `w -= rate * w.grad` makes of w a tensor without a gradient
    assert x.tolist() == [1, 2] and x.is_leaf


# Details


def test_scalars_on_either_side_promote_neither_results_nor_gradients(device: str) -> None:
    x = leaf(device=device)
    for other in (2.0, np.float64(2), np.int64(2)):
        for out in (
            x + other,
            other + x,
            x * other,
            other - x,
            x / other,
            other / x,
            x**other,
            other**x,
        ):
            assert out.dtype == xgrad.float32
            out.sum().backward()
    assert x.grad.dtype == xgrad.float32


def test_choices_and_joints_of_float32_and_integers_are_float32(device: str) -> None:
    f = Tensor([1.0], device=device)
    i = Tensor([1], device=device)
    c = Tensor([True], device=device)
    for out in (
        xgrad.where(c, f, i),
        xgrad.where(c, i, 1.5),
        xgrad.concat([f, i]),
        xgrad.stack([i, f]),
    ):
        assert out.dtype == xgrad.float32


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrix_of_numpy_is_an_ordinary_array() -> None:
    assert (xgrad.asarray(np.matrix([[1.0, 1.0], [1.0, 1.0]])) ** 2).tolist() == [[1, 1], [1, 1]]


def test_comparison_with_none_is_false() -> None:
    assert (Tensor([1.0]) == None) is False  # noqa: E711


def test_derivative_of_remainder_is_that_of_its_quotient() -> None:
    x = leaf(0.1, dtype=xgrad.float64)
    xgrad.remainder(Tensor(1.0, dtype=xgrad.float64), x).backward()
    assert x.grad.item() == -9
