"""Functions that the standard lacks, beyond the op table, compared with NumPy and known values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import check_error, host, leaf, on
from xgrad import linalg

random = np.random.default_rng(0)


# einsum


def random_subscripts() -> tuple[str, list[tuple[int, ...]]]:
    """Return random subscripts of up to four operands, and shapes for them."""
    letters = list("abcde"[: random.integers(1, 6)])
    sizes = {letter: int(random.integers(0, 4)) for letter in letters}
    terms = [
        "".join(random.choice(letters, random.integers(0, 4))) for _ in range(random.integers(1, 5))
    ]
    used = sorted({*"".join(terms)})
    result = "".join(random.permutation(used)[: random.integers(0, len(used) + 1)])
    return f"{','.join(terms)}->{result}", [
        tuple([sizes[letter] for letter in term]) for term in terms
    ]


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_einsum_of_random_subscripts_equals_that_of_numpy(device: str, dtype: str) -> None:
    for _ in range(200 if device == "cpu" else 20):
        subscripts, shapes = random_subscripts()
        xs = [random.integers(-3, 4, shape).astype(dtype) for shape in shapes]
        got = xgrad.einsum(subscripts, *[on(device, x) for x in xs])
        want = np.asarray(np.einsum(subscripts, *xs))
        assert (got.shape, got.dtype) == (want.shape, want.dtype), subscripts
        np.testing.assert_array_equal(host(got), want, subscripts)


def test_einsum_keeps_small_integers_and_counts_bools() -> None:
    assert xgrad.einsum("i->", xgrad.asarray([1, 2], dtype=xgrad.int8)).dtype == xgrad.int8
    assert xgrad.einsum("i,i", xgrad.asarray([True, True]), xgrad.asarray([True, True])).item() == 2


# Padding, comparison, scans, gradients


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad_equals_that_of_numpy(device: str, mode: Any) -> None:
    for shape in [(1,), (2, 3), (4, 1)]:
        for dtype in ("bool", "int32", "float32", "complex64"):
            x = random.integers(0, 9, shape).astype(dtype)
            for widths in (
                0,
                2,
                (1, 0),
                tuple(map(tuple, random.integers(0, 12, (len(shape), 2)).tolist())),
            ):
                got, want = xgrad.pad(on(device, x), widths, mode), np.pad(x, widths, mode)
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(host(got), want)


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
def test_pad_of_width_zero_is_a_copy(mode: Any) -> None:
    x = xgrad.ones(2)
    xgrad.pad(x, 0, mode=mode)[...] = 5.0
    assert x.tolist() == [1, 1]


def test_one_hot_of_many_classes_has_dtype_and_device(device: str) -> None:
    x = xgrad.asarray([255, 0], dtype=xgrad.uint8, device=device)
    got = xgrad.one_hot(x, 300, dtype=xgrad.int64)
    assert (got.shape, got.dtype, str(got.device)) == ((2, 300), xgrad.int64, device)
    assert xgrad.argmax(got, axis=1).tolist() == [255, 0]
    assert xgrad.nn.functional.one_hot is xgrad.one_hot and xgrad.outer is xgrad.linalg.outer


def test_range_check_of_one_hot_is_repeated_at_each_replay() -> None:
    step = xgrad.capture(lambda x: xgrad.one_hot(x, 3))
    for _ in range(2):
        assert step(xgrad.asarray([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(
        IndexError, match="one_hot: expected x below 3, and not below 0, got values from 0 to 3"
    ):
        step(xgrad.asarray([0, 3]))


VALUES = np.array([0.0, -0.0, 1.0, 1.00000999, 1.1, 1e-9, 1e9, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "options", [{}, {"equal_nan": True}, {"rtol": 0.2, "atol": 0.0}, {"rtol": 0.0, "atol": 1.0}]
)
def test_isclose_equals_that_of_numpy(device: str, dtype: str, options: Any) -> None:
    values = VALUES.astype(dtype)
    for x, y in [(values[:, None], values), (values, 1.0), (np.inf, values)]:
        inputs = [on(device, v) if isinstance(v, np.ndarray) else v for v in (x, y)]
        np.testing.assert_array_equal(
            host(xgrad.isclose(*inputs, **options)), np.isclose(x, y, **options)
        )
        assert xgrad.allclose(*inputs, **options) is bool(np.allclose(x, y, **options))


def test_isclose_takes_integers_and_bools(device: str) -> None:
    x = xgrad.asarray([0, 5], dtype=xgrad.uint8, device=device)
    assert xgrad.isclose(x, xgrad.asarray([1, 5], dtype=xgrad.uint8, device=device)).tolist() == [
        False,
        True,
    ]
    assert (xgrad.isclose(x, 5).tolist(), xgrad.isclose(x, x == 0, 0.0, 1.0).tolist()) == (
        [False, True],
        [True, False],
    )


def test_topk_can_return_the_smallest(device: str) -> None:
    values, indices = xgrad.topk(on(device, [3.0, 1.0, 2.0]), 2, largest=False)
    assert (values.tolist(), indices.tolist(), indices.dtype) == ([1.0, 2.0], [1, 2], xgrad.int64)


def test_scans_of_integers_keep_or_promote_their_dtype(device: str) -> None:
    x = xgrad.asarray([2, 1, 3], dtype=xgrad.int16, device=device)
    for fn, want in ((xgrad.cummax, [2, 2, 3]), (xgrad.cummin, [2, 1, 1])):
        assert (fn(x).tolist(), fn(x).dtype) == (want, xgrad.int16)
    assert xgrad.logcumsumexp(x).dtype == xgrad.float32


def test_logcumsumexp_of_infinities_has_finite_gradients(device: str) -> None:
    x = leaf([-np.inf, -np.inf, 0.0, 0.0, np.inf], dtype=xgrad.float64, device=device)
    out = xgrad.logcumsumexp(x)
    np.testing.assert_array_equal(host(out), np.logaddexp.accumulate(host(x)))
    out[:4].sum().backward()
    # the first is itself, whatever it is
    np.testing.assert_allclose(host(x.grad), [1, 0, 1.5, 0.5, 0])


ROWS, COLUMNS = np.array([0.0, 0.5, 2.0, 2.5]), np.cumsum(np.arange(1.0, 6.0))


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize(
    ("spacing", "axis"),
    [
        ((), None),
        ((0.5,), None),
        ((2.0, COLUMNS), None),
        ((COLUMNS,), 1),
        ((COLUMNS, ROWS), (1, 0)),
    ],
)
def test_gradient_equals_that_of_numpy(
    spacing: Any, axis: Any, edge_order: Any, device: str
) -> None:
    x = random.normal(size=(4, 5))
    got = xgrad.gradient(on(device, x), *spacing, axis=axis, edge_order=edge_order)
    want = np.gradient(x, *spacing, axis=axis, edge_order=edge_order)
    assert type(got) is tuple or type(want) is not tuple
    for g, w in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
        np.testing.assert_allclose(host(g), w, rtol=1e-12, atol=1e-13)


def test_gradient_of_an_infinity_reaches_its_neighbours_alone() -> None:
    x = np.array([0.0, 1.0, np.inf, 2.0, 4.0])
    np.testing.assert_array_equal(host(xgrad.gradient(on("cpu", x))), np.gradient(x))


# Linear algebra


@pytest.mark.parametrize("upper", [True, False])
def test_triangular_solutions_read_the_triangle_alone(upper: bool, device: str) -> None:
    a, b = random.normal(size=(3, 3)) + 3 * np.eye(3), random.normal(size=(3, 2))
    triangle = np.triu(a) if upper else np.tril(a)
    product = triangle.T @ triangle if upper else triangle @ triangle.T
    got = linalg.solve_triangular(on(device, a), on(device, b), upper=upper)
    np.testing.assert_allclose(host(got), np.linalg.solve(triangle, b), rtol=1e-12)
    got = linalg.cholesky_solve(on(device, b), on(device, a), upper=upper)
    np.testing.assert_allclose(host(got), np.linalg.solve(product, b), rtol=1e-12)


def test_triangular_solution_is_by_substitution_without_pivots(device: str) -> None:
    # an exchange of rows would round the small number away
    a, b = ([[1e-30, 0.0], [1.0, 1.0]], [1e-30, 2.0])
    assert linalg.solve_triangular(on(device, a), on(device, b), upper=False).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_lstsq_equals_that_of_numpy(device: str, shape: tuple[int, int]) -> None:
    a, b = random.normal(size=shape), random.normal(size=(shape[0], 2))
    got, want = linalg.lstsq(on(device, a), on(device, b)), np.linalg.lstsq(a, b)
    assert (
        got._fields == ("solution", "residuals", "rank", "singular_values")
        and got.rank.item() == want[2]
    )
    np.testing.assert_allclose(host(got.solution), want[0], rtol=1e-10)
    np.testing.assert_allclose(
        host(got.residuals), want[1] if want[1].size else [0, 0], rtol=1e-10, atol=1e-20
    )
    np.testing.assert_allclose(host(got.singular_values), want[3], rtol=1e-10)


def test_lstsq_of_a_singular_matrix_has_the_least_norm(device: str) -> None:
    got = linalg.lstsq(on(device, np.ones((3, 2))), on(device, np.array([1.0, 2.0, 3.0])))
    assert got.rank.item() == 1
    np.testing.assert_allclose(host(got.solution), [1, 1], rtol=1e-12)
    np.testing.assert_allclose(host(got.residuals), 2, rtol=1e-12)


def test_expm_of_a_stack_is_exact_for_small_and_large_matrices(device: str) -> None:
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    angles = np.array([0.0, 1e-8, 0.3, 2.0, 1000.0])
    want = np.cos(angles)[:, None, None] * np.eye(2) + np.sin(angles)[:, None, None] * turn
    got = host(linalg.expm(on(device, angles[:, None, None] * turn)))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-15)
    assert linalg.expm(on(device, [[-1000.0, 0.0], [0.0, 1.0]])).tolist() == [
        [0.0, 0.0],
        [0.0, pytest.approx(np.e)],
    ]


def test_sqrtm_inverts_the_square(device: str) -> None:
    for _ in range(20):
        root = random.normal(size=(4, 4)) + 1j * random.normal(size=(4, 4)) + 5 * np.eye(4)
        np.testing.assert_allclose(
            host(linalg.sqrtm(on(device, root @ root))), root, rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("fn", [linalg.expm, linalg.sqrtm])
def test_derivatives_of_matrix_functions_are_linear_in_the_gradient(fn: Any, scale: float) -> None:
    values, weights = random.normal(size=(3, 3)) + 4 * np.eye(3), random.normal(size=(3, 3))
    gradients = []
    for factor in (scale, 1.0):
        x = leaf(values)
        (fn(x) * (weights * factor)).sum().backward()
        gradients.append(host(x.grad) / factor)
    np.testing.assert_allclose(*gradients, rtol=1e-11, atol=1e-11)


# Refusals: calls with `x` of shape (3,), `m` of (2, 2), `w` of (2, 3) and integers `k`

LETTERS = "TypeError: einsum: expected a string of subscripts first, such as 'ij,jk->ik', got"
RANGE = "IndexError: one_hot: expected x below 3, and not below 0, got values from"
SPLIT_AXIS = (
    "ValueError: gradient: expected 3 or more points along axis 0 for edge_order 2, got shape"
    " (2, 3)"
)
SELECT, SCANS = ("topk", "partition"), ("cummax", "cummin", "logcumsumexp")
REFUSED = [
    ("xp.einsum(x, 'i')", LETTERS),
    ("xp.einsum('ij,jk', w)", "ValueError: einsum: expected as many operands as terms, 2, got 1"),
    (
        "xp.einsum('ij->ik', w)",
        "ValueError: einsum: the result has 'k', which no operand has, in subscripts 'ij->ik'",
    ),
    (
        "xp.einsum('ij->ii', w)",
        "ValueError: einsum: the result has 'i' more than once, … operands of shapes [(2, 3)]",
    ),
    (
        "xp.einsum('i->i', w)",
        "ValueError: einsum: expected a letter for each axis, got 'i' for shape (2, 3)",
    ),
    (
        "xp.einsum('i.j->i', w)",
        "ValueError: einsum: expected letters, commas, one '...' a term and one '->', got",
    ),
    (
        "xp.einsum('ij,jk', w, w)",
        "ValueError: einsum: expected one length for letter 'j', got 3 and 2",
    ),
    (
        "xp.einsum('...,...', m[0, ...], x)",
        "ValueError: einsum: expected one length for axes of '...', got 2 and 3",
    ),
    (
        "xp.einsum('i...->i', w)",
        "ValueError: einsum: expected '...' in the result, too: sum over its axes afterwards",
    ),
    (
        "xp.einsum('ii', w)",
        "ValueError: einsum: expected one length for 'i', which is repeated, got shape (2, 3)",
    ),
    ("xp.einsum('')", "ValueError: einsum: expected as many operands as terms, 1, got 0"),
    (
        "xp.pad(w, (1, 1, 2, 2))",
        "ValueError: pad: expected an int, a pair (before, after), or such a pair for each",
    ),
    ("xp.pad(w, -1)", "ValueError: pad: expected no negative pad_width, got -1: slice the tensor"),
    ("xp.pad(w, 1.5)", "TypeError: pad: expected ints for pad_width, got 1.5"),
    (
        "xp.pad(w, 1, 'mean')",
        "ValueError: pad: expected a mode of 'constant', … 'wrap', got 'mean'",
    ),
    (
        "xp.pad(k, 1, constant_values=0.5)",
        "TypeError: pad: expected constant_values of integers or bools for int64",
    ),
    (
        "xp.pad(x, 1, constant_values=(1, 2))",
        "TypeError: pad: expected a number for constant_values, got (1, 2)",
    ),
    (
        "xp.pad(xp.ones((0, 2)), 1, 'wrap')",
        "ValueError: pad: expected elements to repeat along axis 0, got shape",
    ),
    ("xp.one_hot(k - 1, 3)", f"{RANGE} -1"),
    ("xp.one_hot(k + 1, 3)", f"{RANGE} 1 to 3"),
    ("xp.one_hot(x, 3)", "TypeError: one_hot: expected x of integers, got float32"),
    (
        "xp.one_hot(k, 3, axis=2)",
        "IndexError: one_hot: expected axis from -2 to 1 for x of shape (3,), got 2",
    ),
    ("xp.one_hot(k, True)", "TypeError: one_hot: expected an int for num_classes, got True"),
    ("xp.diagonal(x)", "ValueError: diagonal: expected x with two axes or more, got shape (3,)"),
    (
        "xp.diagonal(m, 0, 0, -2)",
        "ValueError: diagonal: expected two different axes, got axis1 0 and axis2 -2",
    ),
    (
        "xp.diagonal(m, 0, 0, 2)",
        "IndexError: diagonal: expected axis2 from -2 to 1 for x of shape (2, 2), got 2",
    ),
    ("xp.diagonal(m, axis1='0')", "TypeError: diagonal: expected an int for axis1, got '0'"),
    ("xp.diag(xp.ones(()))", "ValueError: diag: expected a vector or a matrix, got shape ()"),
    ("xp.diag(x, k=1.0)", "TypeError: diag: expected an int for k, got 1.0"),
    ("xp.outer(m, x)", "ValueError: outer: expected two vectors"),
    ("xp.allclose(1.0, 1.0)", "TypeError: isclose: expected at least one tensor for x1 and x2"),
    ("xp.allclose(x, xp.ones(2))", "ValueError: isclose: expected shapes that broadcast"),
    ("xp.topk(x, 4)", "ValueError: topk: expected k from 0 to 3 along axis 0 of shape (3,), got 4"),
    ("xp.topk(x, 1.5)", "TypeError: topk: expected an int for k, got 1.5"),
    (
        "xp.partition(x, (0, 3))",
        "ValueError: partition: expected kth from -3 to 2 along axis 0 of shape (3,), got 3",
    ),
    ("xp.partition(x, 1.0)", "TypeError: partition: expected an int for kth, got 1.0"),
    ("xp.cummax(x, axis=0.0)", "TypeError: cummax: expected an int for axis, got 0.0"),
    *[
        (f"xp.{f}(xp.ones(()), 0)", f"ValueError: {f}: expected x with at least one axis")
        for f in SELECT
    ],
    *[
        (f"xp.{f}(x, 0, axis=1)", f"IndexError: {f}: expected axis from -1 to 0 for x … got 1")
        for f in SELECT
    ],
    *[
        (f"xp.{f}(1j * x, 0)", f"TypeError: {f}: expected real numbers for x, got complex64")
        for f in SELECT
    ],
    *[(f"xp.{f}(w)", f"ValueError: {f}: expected an axis for x of shape (2, 3)") for f in SCANS],
    *[
        (f"xp.{f}(1j * x)", f"TypeError: {f}: expected real numbers for x, got complex64")
        for f in SCANS
    ],
    ("xp.gradient(w, edge_order=2)", SPLIT_AXIS),
    (
        "xp.gradient(w, 1.0, 1.0, 1.0)",
        "TypeError: gradient: expected one spacing, or one for each of 2 axes, got 3",
    ),
    (
        "xp.gradient(w, x[:2], axis=1)",
        "ValueError: gradient: expected coordinates of shape (3,) along axis 1",
    ),
    (
        "xp.gradient(w, axis=(0, -2))",
        "ValueError: gradient: expected different axes for axis, got (0, -2)",
    ),
    (
        "xp.gradient(w, edge_order=3)",
        "ValueError: gradient: expected an edge_order of 1 or 2, got 3",
    ),
    (
        "xp.gradient(x, axis=0.0)",
        "TypeError: gradient: expected an int or a tuple of ints for axis, got 0.0",
    ),
    (
        "xp.kron(x, 2.0)",
        "TypeError: kron: expected a tensor, an array or a number for x2, got float",
    ),
    (
        "xp.random.multinomial(x, 1.0)",
        "TypeError: multinomial: expected an int for num_samples, got 1.0",
    ),
    (
        "linalg.solve_triangular(w, x, upper=True)",
        "ValueError: solve_triangular: expected square matrices, of shape",
    ),
    (
        "linalg.solve_triangular(0 * m, w, upper=True)",
        "LinAlgError: solve_triangular: expected no 0 on the",
    ),
    (
        "linalg.cholesky_solve(x, m)",
        "ValueError: cholesky_solve: expected a vector of shape (n,) or matrices",
    ),
    (
        "linalg.lstsq(w, x)",
        "ValueError: lstsq: expected matrices of shape (..., m, n) for x1, and a vector",
    ),
    ("linalg.sqrtm(w)", "ValueError: sqrtm: expected square matrices"),
    *[
        (
            f"linalg.sqrtm(xp.asarray({matrix}))",
            "LinAlgError: sqrtm: expected matrices without eigenvalues that are 0",
        )
        for matrix in ("[[-1.0, 0.0], [0.0, -2.0]]", "[[-3.0]]", "[[0.0, 1.0], [0.0, 0.0]]")
    ],
]


UNCHECKED = {
    "xp.one_hot(k - 1, 3)",
    "xp.one_hot(k + 1, 3)",
    "linalg.solve_triangular(0 * m, w, upper=True)",
}


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_wrong_argument_is_named_with_what_was_expected(call: str, error: str, device: str) -> None:
    if call in UNCHECKED and xgrad.Device(device).backend.asynchronous:
        pytest.skip("a check of values would wait for the device")
    with xgrad.default_device(device):
        tensors = {
            name: xgrad.ones(shape) for name, shape in {"x": 3, "m": (2, 2), "w": (2, 3)}.items()
        }
        check_error(call, error, linalg=linalg, k=xgrad.arange(3), **tensors)


def test_einsum_of_operands_on_two_devices_is_refused() -> None:
    with pytest.raises(
        xgrad.DeviceError, match="einsum: expected tensors of one device, got cpu, strict"
    ):
        xgrad.einsum("i,i", xgrad.ones(2), xgrad.ones(2, device="strict"))
