"""The tensor: construction, manners, conversions, assignment, and what it refuses."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor


def leaf(values: Any = (1.0, 2.0), **options: Any) -> Tensor:
    return Tensor(values, requires_grad=True, **options)


# Construction


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
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
    ],
)
def test_default_dtypes(data: Any, dtype: str, device: str) -> None:
    x = Tensor(data, device=device)
    assert (x.dtype, str(x.device)) == (np.dtype(dtype), device)
    np.testing.assert_array_equal(x.tolist(), np.asarray(data, dtype=dtype))


def test_a_dtype_is_taken_without_a_detour() -> None:
    assert Tensor(0.1, dtype=xgrad.float64).item() == 0.1
    assert xgrad.full(2, 0.1, dtype=xgrad.float64).tolist() == [0.1, 0.1]
    assert Tensor([1.9], dtype="int64").tolist() == [1]


def test_a_tensor_copies_and_asarray_shares() -> None:
    source = np.ones(2, np.float32)
    copied, shared = Tensor(source), xgrad.asarray(source)
    source[0] = 5
    assert (copied.tolist(), shared.tolist()) == ([1, 1], [5, 1])
    with pytest.raises(ValueError, match="copy=False, but a list must be copied"):
        xgrad.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="copy=False, but another dtype"):
        xgrad.asarray(source, dtype=xgrad.float64, copy=False)


def test_asarray_keeps_the_graph() -> None:
    x = leaf()
    assert xgrad.asarray(x) is x
    xgrad.asarray(x * 2, dtype=xgrad.float64).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2] and x.grad.dtype == xgrad.float32


@pytest.mark.parametrize("data", ["text", [1, "a"], None, {1: 2}, object()])
def test_what_is_no_number_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="Tensor: expected numbers, got"):
        Tensor(data)


def test_ragged_lists_and_unknown_dtypes_are_refused() -> None:
    with pytest.raises(ValueError, match="Tensor: expected numbers of a regular shape, got list"):
        Tensor([[1.0], [1.0, 2.0]])
    with pytest.raises(TypeError, match=r"dtype: expected one such as xgrad\.float32, got 'float33'"):
        Tensor([1.0], dtype="float33")


def test_gradients_of_integers_are_refused(device: str) -> None:
    for make in (lambda: leaf([1, 2], device=device), lambda: Tensor([True], device=device).requires_grad_()):
        with pytest.raises(TypeError, match=r"requires_grad: expected a floating dtype, got (int64|bool)"):
            make()


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_creation_by_shape(name: str, device: str) -> None:
    for shape in (3, (2, 3), (), (0, 2)):
        x = getattr(xgrad, name)(shape, device=device, requires_grad=True)
        assert x.shape == (shape if isinstance(shape, tuple) else (shape,))
        assert (x.dtype, str(x.device), x.requires_grad) == (xgrad.float32, device, True)
    like = getattr(xgrad, name + "_like")(xgrad.arange(3, device=device))
    assert (like.shape, like.dtype, str(like.device)) == ((3,), xgrad.int64, device)


def test_other_creation(device: str) -> None:
    assert xgrad.arange(1, 7, 2, device=device).tolist() == [1, 3, 5]
    assert xgrad.arange(3.0, device=device).dtype == xgrad.float32
    assert xgrad.linspace(0, 1, 3, device=device).tolist() == [0, 0.5, 1]
    assert xgrad.eye(2, 3, k=1, device=device).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xgrad.full(2, 3, device=device).dtype == xgrad.int64
    assert xgrad.full_like(xgrad.ones(2, device=device), 3).tolist() == [3, 3]


def test_full_of_a_tensor_keeps_its_graph() -> None:
    x = leaf(2.0)
    xgrad.full((2, 2), x).sum().backward()
    assert x.grad is not None and x.grad.item() == 4


# Manners


def test_attributes(device: str) -> None:
    x = Tensor(np.ones((2, 3)), device=device)
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, xgrad.float64)
    assert x.T.shape == x.mT.shape == (3, 2)
    assert x.__array_namespace__() is xgrad
    with pytest.raises(ValueError, match="T: expected a matrix"):
        _ = x[0, ...].T


def test_repr() -> None:
    assert repr(Tensor([1.0])) == "Tensor([1.])"
    assert repr(leaf()) == "Tensor([1., 2.], requires_grad=True)"
    assert repr(leaf() * 2) == "Tensor([2., 4.], grad_fn=<multiply>)"
    assert repr(Tensor([1.0], dtype=xgrad.float64)) == "Tensor([1.], dtype=float64)"
    assert repr(xgrad.zeros((0, 2))) == "Tensor([], shape=(0, 2), dtype=float32)"


@pytest.mark.parametrize("other", [2, 2.0, np.float64(2), np.int64(2), True])
def test_scalars_on_either_side_promote_nothing(other: Any, device: str) -> None:
    x = leaf(device=device)
    for out in (x + other, other + x, x * other, other - x, x / other, other / x, x**other, other**x):
        assert out.dtype == xgrad.float32
        out.sum().backward()
    assert x.grad is not None and x.grad.dtype == xgrad.float32


def test_kinds_promote_in_the_same_way_on_every_device(device: str) -> None:
    ints, bools, floats = (Tensor(v, device=device) for v in ([1, 2], [True, False], [0.5, 0.5]))
    for out in (
        ints * 1.5,
        ints / 2,
        ints + floats,
        bools * floats,
        xgrad.exp(ints),
        xgrad.mean(ints),
        ints + True * 0.5,
    ):
        assert out.dtype == xgrad.float32
    for out in (bools + 1, bools + ints, xgrad.sum(bools), -ints, ints**2):
        assert out.dtype == xgrad.int64
    assert (floats * Tensor(2.0, dtype=xgrad.float64, device=device)).dtype == xgrad.float64


def test_numpy_on_the_left_asks_the_tensor() -> None:
    x = leaf()
    for out in (np.ones(2, np.float32) + x, np.float32(2) * x, np.ones(2, np.float32) @ x):
        assert isinstance(out, Tensor) and out.dtype == xgrad.float32 and out.requires_grad


def test_operators_and_methods_are_the_functions() -> None:
    x, y = Tensor([7, -7]), Tensor([3, 2])
    assert (x // y).tolist() == [2, -4]
    assert (x % y).tolist() == [1, 1]
    assert (7 // y).tolist() == [2, 3]
    assert (~x).tolist() == [-8, 6]
    assert ((x & 3).tolist(), (x | 1).tolist(), (x ^ 1).tolist()) == ([3, 1], [7, -7], [6, -8])
    assert ((x == y).tolist(), (x != y).tolist(), (x < y).tolist(), (x >= y).tolist()) == (
        [False, False],
        [True, True],
        [False, True],
        [True, False],
    )
    z = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (z.sum().item(), z.mean(0).tolist(), z.max(1).tolist(), z.min().item()) == (10, [2, 3], [2, 4], 1)
    assert (z.argmax(1).tolist(), z.reshape(4).shape, z.reshape((1, 4)).shape, z.reshape(-1, 1).shape) == (
        [1, 1],
        (4,),
        (1, 4),
        (4, 1),
    )
    assert (z.var(0).tolist(), z.std(0, 0, True).shape, z.prod().item(), z.any().item()) == ([1, 1], (1, 2), 24, True)


def test_rows_one_after_the_other(device: str) -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device=device, requires_grad=True)
    rows = list(x)
    (node,) = rows[0]._edge.edges  # one for all of them
    assert len(rows) == 3 and all(row._edge.edges == (node,) for row in rows) and node is not x._edge
    total = sum((i * row**3).sum() for i, row in enumerate(x))
    (slope,) = xgrad.autograd.grad(total, x, create_graph=True)
    assert slope.tolist() == [[0, 0], [27, 48], [150, 216]]
    (curvature,) = xgrad.autograd.grad(slope.sum(), x)
    assert curvature.tolist() == [[0, 0], [18, 24], [60, 72]]
    for row in x:  # of which only one is used
        (row * 2).sum().backward()
        break
    assert x.grad is not None and x.grad.tolist() == [[2, 2], [0, 0], [0, 0]]
    first, second = Tensor([1.0, 2.0], device=device, requires_grad=True)
    assert (first.item(), second.item(), first.shape) == (1, 2, ())
    assert list(xgrad.zeros((0, 3), device=device, requires_grad=True)) == []
    assert list(xgrad.zeros((2, 0), device=device, requires_grad=True))[1].shape == (0,)
    with pytest.raises(TypeError, match="len: expected at least one axis"):
        iter(Tensor(1.0, device=device, requires_grad=True))
    with xgrad.no_grad():
        assert [row.requires_grad for row in x] == [False] * 3


def test_elements_one_after_the_other_are_taken_at_once(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    x = Tensor([3.0, 1.0, 2.0], device=device)
    monkeypatch.setattr(xgrad.ops, "getitem", None)
    assert [v.tolist() for v in x] == [3, 1, 2] and list(xgrad.zeros(0, device=device)) == []
    assert (min(x).item(), max(x).item(), sum(x).item()) == (1, 3, 6)


def test_conversions(device: str) -> None:
    x = Tensor(2.5, device=device)
    assert (float(x), int(x), bool(x), complex(x), x.item()) == (2.5, 2, True, 2.5 + 0j, 2.5)
    assert [10, 20, 30][Tensor(1, device=device)] == 20
    assert [row.tolist() for row in Tensor([[1, 2], [3, 4]], device=device)] == [[1, 2], [3, 4]]
    assert len(Tensor([1, 2, 3], device=device)) == 3
    assert 2.0 in Tensor([1.0, 2.0], device=device)
    with pytest.raises(TypeError, match="len: expected at least one axis"):
        len(x)
    with pytest.raises(ValueError, match=r"expected one element, got shape \(2,\)"):
        bool(Tensor([1, 2], device=device))
    with pytest.raises(TypeError, match="index: expected a 0-d tensor of integers"):
        _ = [1, 2][x]


def test_numpy_conversions_share_memory_and_are_loud() -> None:
    x = Tensor([1.0, 2.0])
    for array in (x.numpy(), np.asarray(x)):
        assert np.shares_memory(array, x._data)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    writable = np.array(x)
    writable[0] = 5
    assert x.tolist() == [1, 2]
    for convert in (lambda t: t.numpy(), np.asarray, lambda t: np.ones(2) * np.asarray(t)):
        with pytest.raises(RuntimeError, match=r"NumPy conversion: .* use \.detach\(\)"):
            convert(leaf())


def test_numpy_conversion_of_another_device_is_refused() -> None:
    pytest.importorskip("array_api_strict", reason="array-api-strict, the other device, is not installed")
    with pytest.raises(TypeError, match="this tensor is on strict: use"):
        np.asarray(Tensor([1.0], device="strict"))


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (bool, r"bool: expected one element, got shape \(2,\): use \.any\(\) or \.all\(\); compare tensors with `is`"),
        (lambda x: x in [x + 1, x], r"compare tensors with `is`, as in any\(p is q for q in tensors\)"),
        (lambda x: f"{x:.2f}", r"format: expected one element, got shape \(2,\): format each of \.tolist\(\)"),
        (float, r"float: expected one element, got shape \(2,\): take one, as x\[0\]"),
        (int, "int: expected one element"),
        (complex, "complex: expected one element"),
        (Tensor.item, r"item: expected one element, .* or all by \.tolist\(\) or \.numpy\(\)"),
    ],
)
def test_conversions_of_several_elements_name_what_to_write(convert: Any, message: str, device: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert(Tensor([1.0, 2.0], device=device))


def test_search_among_tensors_of_other_shapes_names_is() -> None:
    with pytest.raises(ValueError, match=r"equal: expected shapes that broadcast.*: to look for .* compare with `is`"):
        assert leaf() in [leaf((1.0, 2.0, 3.0))]


@pytest.mark.parametrize("convert", [pickle.dumps, copy.copy, copy.deepcopy, np.asarray, np.array, Tensor.numpy])
def test_conversions_that_would_lose_a_graph_name_detach(convert: Any) -> None:
    with pytest.raises(RuntimeError, match=r"use \.detach\(\)"):
        convert(leaf() * 2)


def test_pickle_and_copies(device: str) -> None:
    for x in (leaf(device=device), Tensor([1, 2], device=device)):
        for twin in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert (twin.tolist(), twin.dtype, twin.device, twin.requires_grad) == (
                x.tolist(),
                x.dtype,
                x.device,
                x.requires_grad,
            )
            assert twin is not x
    with pytest.raises(RuntimeError, match="copy: expected a leaf"):
        copy.deepcopy(leaf() * 2)


# Assignment


def test_assignment_makes_a_new_value_and_is_differentiable(device: str) -> None:
    x, v = leaf([1.0, 2.0, 3.0], device=device), leaf(10.0, device=device)
    y = x * 2
    before = y * y  # keeps the value that y has now
    alias = y
    y[1] = v
    assert alias is y and y.tolist() == [2, 10, 6]
    (before.sum() + y.sum()).backward()
    assert x.grad is not None and v.grad is not None
    assert (x.grad.tolist(), v.grad.item()) == ([8 + 2, 16, 24 + 2], 1)


def test_augmented_assignment_rebinds() -> None:
    x = leaf()
    y = x * x
    z = y
    y += 1
    y *= x
    assert z.tolist() == [1, 4]
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [4, 13]


def test_assignment_to_a_leaf() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="x is a leaf that requires a gradient"):
        x[0] = 5.0
    for write in (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow):
        with pytest.raises(RuntimeError, match=r"x is a leaf .* write x -= y and x\[key\] = y under no_grad\(\)"):
            write(x, 2.0)  # else `w -= rate * w.grad` makes of w a tensor without a gradient
    assert x.tolist() == [1, 2] and x.is_leaf
    with xgrad.no_grad():
        x[0] = 5.0
    assert x.tolist() == [5, 2] and x.is_leaf and x.requires_grad
    constant = Tensor([1.0, 2.0])
    constant[0] = 7
    assert constant.tolist() == [7, 2]


@pytest.mark.parametrize("values", [lambda x: x, lambda x: x * 2, lambda x: [x[0], x[1]], lambda x: [[1.0, x[0]]]])
def test_tensor_of_tensors_with_a_graph_is_refused(values: Any) -> None:
    x = leaf()
    with pytest.raises(ValueError, match=r"Tensor: .*use xgrad\.asarray, which keeps the graph, or \.detach\(\)"):
        Tensor(values(x))
    with xgrad.no_grad():
        assert Tensor(values(x)).is_leaf
    xgrad.asarray(values(x)).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("key", [..., slice(None), (..., slice(None)), np.array([True, True])], ids=str)
def test_what_is_wholly_replaced_leaves_no_trace(key: Any, device: str) -> None:
    if device == "strict" and isinstance(key, np.ndarray):
        pytest.skip("the flags of strict forbid masks")
    x = xgrad.ones(2, device=device, requires_grad=True)
    y = xgrad.sqrt(x - 1)  # whose derivative is infinite
    y[key] = 3 * x
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3]
    y = xgrad.sqrt(x - 1)
    y[key] = 5.0
    (y * y).sum().backward()  # which is part of the graph, however many elements a mask selects
    assert x.grad.tolist() == [3, 3]
    assert xgrad.grad(lambda x: y.__setitem__(key, x) or (y**3).sum())(2 * x.detach()).tolist() == [12, 12]


def test_assignment_never_writes_to_shared_memory() -> None:
    source = np.zeros(2, np.float32)
    x = xgrad.asarray(source)
    x[0] = 1
    assert source.tolist() == [0, 0]


def test_data_reads_and_writes_the_value() -> None:
    x = leaf()
    assert not x.data.requires_grad
    x.data[1] = 7.0
    x.data *= 2
    view = x.data
    view[0] = 1.0
    assert x.tolist() == [1, 14] and x.requires_grad
    x.data = np.array([1.0, 2.0], np.float32)
    assert x.tolist() == [1, 2]


def test_grad_takes_only_what_fits() -> None:
    x = leaf()
    x.grad = xgrad.ones(2)
    with pytest.raises(
        ValueError, match=r"grad: expected a gradient of shape \(2,\), float32 on cpu, got shape \(3,\)"
    ):
        x.grad = xgrad.ones(3)
    with pytest.raises(RuntimeError, match="grad: expected a leaf"):
        Tensor([1.0]).grad = xgrad.ones(1)
    assert (x * 2).grad is None


# Indexing


def test_indices_out_of_bounds_are_refused() -> None:
    x = Tensor([1.0, 2.0])
    for key in (2, -3, (0, 0), [0, 5]):
        with pytest.raises(IndexError, match=r"getitem: .*got x of shape \(2,\), float32"):
            x[key]
    with pytest.raises(IndexError, match="indexing: expected integers or bools, got an array of float32"):
        x[Tensor([0.0])]


def test_keys_may_be_tensors_arrays_and_lists(device: str) -> None:
    x = Tensor([10, 20, 30], device=device)
    assert x[Tensor(1, device=device)].item() == 20
    if device != "strict":  # which takes integer arrays for all axes at once only
        assert (
            x[Tensor([2, 0], device=device)].tolist() == x[[2, 0]].tolist() == x[np.array([2, 0])].tolist() == [30, 10]
        )
        assert x[x > 10].tolist() == [20, 30]
    assert x[Tensor(1, device=device) :].tolist() == [20, 30]


@pytest.mark.parametrize("part", [(0, 0), [0, 0], np.array([0, 0], np.uint8), (Tensor(0), Tensor(0)), range(0, 1)])
def test_indices_that_repeat_add_up_in_every_form(part: Any) -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    count = len(part)
    x[:, part].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[count, 0], [count, 0]]
    assert xgrad.ops.index_add(xgrad.zeros((2, 2)), (slice(None), part), 1.0).tolist() == [[count, 0], [count, 0]]
    values = Tensor(np.ones((2, count), np.float32), requires_grad=True)
    y = xgrad.zeros((2, 2))
    y[:, part] = values
    y.sum().backward()
    assert values.grad is not None and values.grad[:, -1].tolist() == [1, 1] and values.grad.sum().item() == 2


def test_integers_of_any_width_are_indices_not_a_mask(device: str) -> None:
    x = Tensor([10, 20], device=device)
    for dtype in ("int8", "uint8", "uint16", "uint32", "uint64"):
        for key in (np.array([1, 1], dtype), Tensor(np.array([1, 1], dtype), device=device)):
            assert x[key].tolist() == [20, 20]


def test_an_array_of_the_device_s_library_is_copied_as_a_key(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device, requires_grad=True)
    key = Tensor([0, 0], device=device)._data
    y = x[key]
    key[0] = 1
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 0]


# Errors of ops


def test_shapes_that_do_not_broadcast(device: str) -> None:
    a, b = xgrad.ones((2, 3), device=device), xgrad.ones(4, device=device)
    for op in (xgrad.add, xgrad.multiply, xgrad.pow, xgrad.maximum, xgrad.equal):
        message = (
            rf"{op.__name__}: expected shapes that broadcast, .* got x1 of shape \(2, 3\), float32, x2 of shape \(4,\)"
        )
        with pytest.raises(ValueError, match=message):
            op(a, b)


def test_errors_of_the_array_library_name_the_op_and_its_inputs() -> None:
    with pytest.raises(ValueError, match=r"matmul: .*got x1 of shape \(2, 3\), float32, x2 of shape \(2, 3\)"):
        xgrad.ones((2, 3)) @ xgrad.ones((2, 3))
    with pytest.raises(ValueError, match=r"reshape: .*got x of shape \(3,\)"):
        xgrad.reshape(xgrad.ones(3), (2, 2))
    with pytest.raises(IndexError, match=r"sum: .*got x of shape \(3,\)"):
        xgrad.sum(xgrad.ones(3), axis=1)


@pytest.mark.parametrize("other", [[1.0, 2.0], "text", {1: 2}, object()])
def test_ops_take_tensors_arrays_and_numbers_only(other: Any) -> None:
    with pytest.raises(TypeError, match=r"add: expected a tensor, an array or a number for x2, got"):
        leaf() + other


def test_wrong_arguments_name_the_op_and_its_signature() -> None:
    with pytest.raises(TypeError, match=r"exp\(\) missing 1 required positional argument: 'x'"):
        xgrad.exp()
    with pytest.raises(TypeError, match=r"add\(\) takes .*2 positional arguments but 3 were given"):
        xgrad.add(xgrad.ones(1), 1, 2)
    with pytest.raises(TypeError, match=r"sum\(x, /, \*, .*'axes'"):
        xgrad.sum(xgrad.ones(1), axes=0)
    with pytest.raises(TypeError, match="expected at least one tensor, got none"):
        xgrad.concat([])


def test_losses_refuse_what_does_not_fit() -> None:
    F, logits = xgrad.nn.functional, xgrad.ones((2, 3))
    with pytest.raises(ValueError, match=r"expected input and target of one shape, got \(2,\) and \(2, 1\)"):
        F.mse_loss(xgrad.ones(2), xgrad.ones((2, 1)))
    with pytest.raises(ValueError, match="expected a reduction of 'mean', 'sum' or 'none', got 'max'"):
        F.mse_loss(xgrad.ones(2), xgrad.ones(2), reduction="max")
    with pytest.raises(TypeError, match="expected target of integers, got float32"):
        F.cross_entropy(logits, xgrad.ones(2))
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(3,\)"):
        F.cross_entropy(logits, Tensor([0, 1, 2]))
    with pytest.raises(IndexError, match="expected target from 0 to 2, got -1"):
        F.cross_entropy(logits, Tensor([0, -1]))
    with pytest.raises(IndexError, match="expected target from 0 to 2, got 3"):
        F.cross_entropy(logits, Tensor([0, 3]))
    with pytest.raises(ValueError, match="expected label_smoothing from 0 to 1, got 2"):
        F.cross_entropy(logits, Tensor([0, 1]), label_smoothing=2)
    with pytest.raises(ValueError, match="linear: expected input of shape"):
        F.linear(logits, xgrad.ones((4, 2)))


# Found by trying to break it


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_narrow_indices_reach_long_axes(dtype: str, device: str) -> None:
    x = Tensor(np.zeros((300, 10)), device=device, requires_grad=True)
    i = Tensor((np.arange(300) % 10)[:, None].astype(dtype), device=device)
    if device.startswith("torch") and dtype != "int64":
        pytest.skip("PyTorch's arrays take int64 indices only")
    xgrad.take_along_axis(x, i, axis=1).sum().backward()
    assert x.grad is not None and x.grad.sum(1).tolist() == [1] * 300
    logits = Tensor(np.zeros((1, 300)), device=device, requires_grad=True)
    xgrad.nn.functional.cross_entropy(logits, Tensor([5], dtype=dtype, device=device)).backward()
    assert logits.grad is not None and (logits.grad < 0).sum().item() == 1


def test_float32_stays_float32_in_choices_and_joints(device: str) -> None:
    f, i, c = Tensor([1.0], device=device), Tensor([1], device=device), Tensor([True], device=device)
    for out in (xgrad.where(c, f, i), xgrad.where(c, i, 1.5), xgrad.concat([f, i]), xgrad.stack([i, f])):
        assert out.dtype == xgrad.float32
    assert xgrad.full(2, np.float64(1)).dtype == xgrad.float32
    assert xgrad.arange(np.int64(3)).dtype == xgrad.int64


def test_none_is_taken_only_where_it_may_be_left_out() -> None:
    with pytest.raises(TypeError, match="where: expected a tensor, an array or a number for x2, got NoneType"):
        xgrad.where(Tensor([True]), Tensor([1.0]), None)
    assert (Tensor([1.0]) == None) is False  # noqa: E711


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_odd_arrays_and_dtypes() -> None:
    assert (xgrad.asarray(np.matrix([[1.0, 1.0], [1.0, 1.0]])) ** 2).tolist() == [[1, 1], [1, 1]]
    assert xgrad.asarray(np.ones(2, ">f4")).dtype == xgrad.float32
    assert xgrad.ones(2, dtype="float16").dtype == np.float16
    with pytest.raises(TypeError, match="expected numbers, got MaskedArray"):
        Tensor(np.ma.masked_array([1.0, 2.0], [True, False]))
    for dtype in (object, "S5", "longdouble"):
        for make in (
            lambda d: xgrad.zeros(2, dtype=d),
            lambda d: Tensor([1.0]).astype(d),
            lambda d: Tensor(1, dtype=d),
        ):
            with pytest.raises(TypeError, match=r"dtype: expected one such as xgrad\.float32"):
                make(dtype)


def test_habits_of_pytorch() -> None:
    x = Tensor([2.5], requires_grad=True)
    assert f"{x.sum():.2f}" == "2.50"
    assert x.to(xgrad.float64).dtype == xgrad.float64
    with pytest.raises(OverflowError, match=r"add: .*got x1 of shape"):
        Tensor([1], dtype=xgrad.int8) + 300


def test_remainder_is_consistent_with_its_derivative() -> None:
    x = Tensor(0.1, dtype=xgrad.float64, requires_grad=True)
    xgrad.remainder(Tensor(1.0, dtype=xgrad.float64), x).backward()
    assert x.grad is not None and x.grad.item() == -9


def test_indices_and_biases_are_checked() -> None:
    with pytest.raises(IndexError, match="take: expected indices of integers, got bool"):
        xgrad.take(Tensor([1.0, 2.0]), Tensor([True, False]))
    with pytest.raises(ValueError, match="linear: expected weight of shape"):
        xgrad.nn.functional.linear(xgrad.ones((2, 3)), xgrad.ones((4, 3)), xgrad.ones((2, 4)))


def test_a_refused_write_changes_nothing() -> None:
    y = Tensor([1.0, 2.0, 3.0], requires_grad=True) * 2
    for wrong in (xgrad.ones(5), xgrad.ones(3, dtype=xgrad.float64)):
        with pytest.raises(ValueError, match="data: expected shape"):
            y.data = wrong
    assert (y.shape, y.dtype, y.tolist()) == ((3,), xgrad.float32, [2, 4, 6])


def test_updates_in_place_of_frozen_parameters() -> None:
    frozen = xgrad.nn.Parameter([1.0], requires_grad=False)
    later = leaf([1.0]).requires_grad_(False)
    with xgrad.no_grad():
        for p in (frozen, copy.deepcopy(frozen), later):
            same = p
            p *= 0.5
            assert p is same and same.tolist() == [0.5]
    constant = other = Tensor([1.0])
    with xgrad.no_grad():
        constant += 1
    assert other.tolist() == [1]  # a value like any other


def test_writes_that_would_lose_something_are_refused() -> None:
    x, whole = leaf(), Tensor([1, 2])
    with pytest.raises(TypeError, match="in place: expected a result that int64 can hold, got float32"):
        whole.data /= 2
    with pytest.raises(TypeError, match=r"in place: .*float32 can hold, got complex64"), xgrad.no_grad():
        x *= 1j
    y = Tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="setitem: expected real numbers for x of float32, got complex64: cast first"):
        y[0] = Tensor(1j)
    with pytest.raises(ValueError, match=r"setitem: expected a value that broadcasts to shape \(2,\)"):
        y[:] = xgrad.ones((1, 2))
    with pytest.raises(TypeError, match="where: expected at least one tensor for x1 and x2"):
        xgrad.where(Tensor([True]), 1.0, 2.0)


def test_a_step_leaves_gradients_as_they_are() -> None:
    x = leaf()
    (x * x).sum().backward()
    before = x.grad
    x.data = x.data - 1
    assert x.grad is before
