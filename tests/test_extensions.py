"""Functions that the standard lacks, where the op table does not reach: against NumPy, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import linalg

random = np.random.default_rng(0)


def on(device: str, x: Any) -> xgrad.Tensor:
    return xgrad.asarray(np.asarray(x), device=device)


def host(x: xgrad.Tensor) -> np.ndarray:
    return x.detach().cpu().numpy()


def refuses(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


# einsum


def some_subscripts() -> tuple[str, list[tuple[int, ...]]]:
    """Return random subscripts of up to four operands, and shapes for them."""
    letters = list("abcde"[: random.integers(1, 6)])
    sizes = {letter: int(random.integers(0, 4)) for letter in letters}
    terms = ["".join(random.choice(letters, random.integers(0, 4))) for _ in range(random.integers(1, 5))]
    used = sorted({*"".join(terms)})
    result = "".join(random.permutation(used)[: random.integers(0, len(used) + 1)])
    return f"{','.join(terms)}->{result}", [tuple([sizes[letter] for letter in term]) for term in terms]


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_einsum_of_random_subscripts_is_that_of_numpy(device: str, dtype: str) -> None:
    for _ in range(200 if device == "cpu" else 20):
        subscripts, shapes = some_subscripts()
        xs = [random.integers(-3, 4, shape).astype(dtype) for shape in shapes]
        got = xgrad.einsum(subscripts, *[on(device, x) for x in xs])
        want = np.asarray(np.einsum(subscripts, *xs))
        assert (got.shape, got.dtype) == (want.shape, want.dtype), subscripts
        np.testing.assert_array_equal(host(got), want, subscripts)


def test_einsum_keeps_small_integers_and_counts_bools() -> None:
    assert xgrad.einsum("i->", xgrad.asarray([1, 2], dtype=xgrad.int8)).dtype == xgrad.int8
    assert xgrad.einsum("i,i", xgrad.asarray([True, True]), xgrad.asarray([True, True])).item() == 2


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk", [(2, 3)], "expected as many operands as terms, 2, got 1"),
        ("ij->ik", [(2, 3)], "the result has 'k', which no operand has"),
        ("ij->ii", [(2, 3)], "the result has 'i' more than once"),
        ("i->i", [(2, 3)], "expected a letter for each axis, got 'i' for shape (2, 3)"),
        ("i.j->i", [(2, 3)], "expected letters, commas, one '...' a term and one '->', got 'i.j'"),
        ("ij,jk", [(2, 3), (2, 3)], "expected one length for letter 'j', got 3 and 2"),
        ("...,...", [(2,), (3,)], "expected one length for axes of '...', got 2 and 3"),
        ("i...->i", [(2, 3)], "expected '...' in the result, too: sum over its axes afterwards"),
        ("ii", [(2, 3)], "expected one length for 'i', which is repeated, got shape (2, 3)"),
        ("", [], "expected as many operands as terms, 1, got 0"),
    ],
)
def test_einsum_names_the_subscripts_that_do_not_fit(subscripts: str, shapes: Any, message: str) -> None:
    with refuses(ValueError, f"einsum: {message}, in subscripts {subscripts!r} of operands of shapes {shapes}"):
        xgrad.einsum(subscripts, *[xgrad.ones(shape) for shape in shapes])


def test_einsum_of_other_things_is_refused() -> None:
    with refuses(TypeError, "einsum: expected a string of subscripts first, such as 'ij,jk->ik', got Tensor"):
        xgrad.einsum(xgrad.ones(2), "i")  # type: ignore[arg-type]
    with refuses(xgrad.DeviceError, "einsum: expected tensors of one device, got cpu, strict"):
        xgrad.einsum("i,i", xgrad.ones(2), xgrad.ones(2, device="strict"))


# pad


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad_is_that_of_numpy(device: str, mode: Any) -> None:
    for shape in [(1,), (2, 3), (4, 1)]:
        for dtype in ("bool", "int32", "float32", "complex64"):
            x = random.integers(0, 9, shape).astype(dtype)
            for widths in (0, 2, (1, 0), tuple(map(tuple, random.integers(0, 12, (len(shape), 2)).tolist()))):
                got, want = xgrad.pad(on(device, x), widths, mode), np.pad(x, widths, mode)
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(host(got), want)


def test_pad_refuses_what_does_not_fit() -> None:
    x = xgrad.ones((2, 3))
    with refuses(ValueError, "pad: expected an int, a pair (before, after), or such a pair for each axis"):
        xgrad.pad(x, (1, 1, 2, 2))
    with refuses(ValueError, "pad: expected no negative pad_width, got -1: slice the tensor"):
        xgrad.pad(x, -1)
    with refuses(TypeError, "pad: expected ints for pad_width, got 1.5"):
        xgrad.pad(x, 1.5)
    with refuses(ValueError, "pad: expected a mode of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'mean'"):
        xgrad.pad(x, 1, "mean")
    with refuses(TypeError, "pad: expected constant_values of integers or bools for int64, got 0.5"):
        xgrad.pad(xgrad.arange(3), 1, constant_values=0.5)
    with refuses(TypeError, "pad: expected a number for constant_values, got (1, 2)"):
        xgrad.pad(x, 1, constant_values=(1, 2))
    with refuses(ValueError, "pad: expected elements to repeat along axis 0, got shape (0, 2)"):
        xgrad.pad(xgrad.ones((0, 2)), 1, "wrap")


# one_hot, diagonals, products


def test_one_hot_refuses_what_is_out_of_range(device: str) -> None:
    for wrong in (-1, 3):
        with refuses(IndexError, "one_hot: expected x below 3, and not below 0, got values from"):
            xgrad.one_hot(on(device, [0, wrong]), 3)
    with refuses(TypeError, "one_hot: expected x of integers, got float64"):
        xgrad.one_hot(on(device, [0.0]), 3)
    with refuses(IndexError, "one_hot: expected an axis from -2 to 1 for x of shape (1,), got 2"):
        xgrad.one_hot(on(device, [0]), 3, axis=2)


def test_one_hot_of_many_classes_and_dtypes(device: str) -> None:
    x = xgrad.asarray([255, 0], dtype=xgrad.uint8, device=device)
    got = xgrad.one_hot(x, 300, dtype=xgrad.int64)
    assert (got.shape, got.dtype, str(got.device)) == ((2, 300), xgrad.int64, device)
    assert xgrad.argmax(got, axis=1).tolist() == [255, 0]
    assert xgrad.nn.functional.one_hot is xgrad.one_hot


def test_a_check_of_one_hot_is_repeated_at_each_replay() -> None:
    step = xgrad.capture(lambda x: xgrad.one_hot(x, 3))
    for _ in range(2):
        assert step(xgrad.asarray([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    with refuses(IndexError, "one_hot: expected x below 3, and not below 0, got values from 0 to 3"):
        step(xgrad.asarray([0, 3]))


def test_diagonals_refuse_what_has_none() -> None:
    with refuses(ValueError, "diagonal: expected x with two axes or more, got shape (2,)"):
        xgrad.diagonal(xgrad.ones(2))
    with refuses(ValueError, "diagonal: expected two different axes, got axis1 0 and axis2 -2"):
        xgrad.diagonal(xgrad.ones((2, 2)), 0, 0, -2)
    with refuses(IndexError, "diagonal: axis 2 is out of bounds for shape (2, 2)"):
        xgrad.diagonal(xgrad.ones((2, 2)), 0, 0, 2)
    with refuses(ValueError, "diag: expected a vector or a matrix, got shape ()"):
        xgrad.diag(xgrad.ones(()))


def test_outer_is_that_of_vectors() -> None:
    assert xgrad.outer is xgrad.linalg.outer
    with refuses(ValueError, "outer: expected two vectors"):
        xgrad.outer(xgrad.ones((2, 2)), xgrad.ones(2))


# Comparison

VALUES = np.array([0.0, -0.0, 1.0, 1.00000999, 1.1, 1e-9, 1e9, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("options", [{}, {"equal_nan": True}, {"rtol": 0.2, "atol": 0.0}, {"rtol": 0.0, "atol": 1.0}])
def test_isclose_is_that_of_numpy(device: str, dtype: str, options: Any) -> None:
    values = VALUES.astype(dtype)
    for x, y in [(values[:, None], values), (values, 1.0), (np.inf, values)]:
        got = xgrad.isclose(*[on(device, v) if isinstance(v, np.ndarray) else v for v in (x, y)], **options)
        np.testing.assert_array_equal(host(got), np.isclose(x, y, **options))


def test_close_integers_and_bools(device: str) -> None:
    x = xgrad.asarray([0, 5], dtype=xgrad.uint8, device=device)
    assert xgrad.isclose(x, xgrad.asarray([1, 5], dtype=xgrad.uint8, device=device)).tolist() == [False, True]
    assert xgrad.isclose(x, 5).tolist() == [False, True] and xgrad.isclose(x, x == 0, 0.0, 1.0).tolist() == [
        True,
        False,
    ]


def test_allclose_is_a_bool(device: str) -> None:
    x = on(device, [1.0, 2.0])
    assert xgrad.allclose(x, x + 1e-9) is True and xgrad.allclose(x, 1.0) is False
    assert xgrad.allclose(on(device, [np.nan]), np.nan) is False
    assert xgrad.allclose(on(device, [np.nan]), np.nan, equal_nan=True) is True
    with refuses(TypeError, "isclose: expected at least one tensor for x1 and x2"):
        xgrad.allclose(1.0, 1.0)
    with refuses(ValueError, "isclose: expected shapes that broadcast"):
        xgrad.allclose(x, xgrad.ones(3, dtype=xgrad.float64, device=device))


# Selection and scans


def test_topk_and_partition_refuse_what_is_not_there(device: str) -> None:
    x = on(device, [3.0, 1.0, 2.0])
    values, indices = xgrad.topk(x, 2, largest=False)
    assert (values.tolist(), indices.tolist(), indices.dtype) == ([1.0, 2.0], [1, 2], xgrad.int64)
    with refuses(ValueError, "topk: expected k from 0 to 3 along axis 0 of shape (3,), got 4"):
        xgrad.topk(x, 4)
    with refuses(ValueError, "partition: expected kth from -3 to 2 along axis 0 of shape (3,), got 3"):
        xgrad.partition(x, (0, 3))
    for fn in (xgrad.topk, xgrad.partition):
        with refuses(ValueError, f"{fn.__name__}: expected x with at least one axis"):
            fn(on(device, 1.0), 0)
        with refuses(IndexError, f"{fn.__name__}: axis 1 is out of bounds for shape (3,)"):
            fn(x, 0, axis=1)


def test_scans_of_integers_and_without_an_axis(device: str) -> None:
    x = xgrad.asarray([2, 1, 3], dtype=xgrad.int16, device=device)
    for fn, want in ((xgrad.cummax, [2, 2, 3]), (xgrad.cummin, [2, 1, 1])):
        assert (fn(x).tolist(), fn(x).dtype) == (want, xgrad.int16)
    assert xgrad.logcumsumexp(x).dtype == xgrad.float32
    for fn in (xgrad.cummax, xgrad.cummin, xgrad.logcumsumexp):
        with refuses(ValueError, f"{fn.__name__}: expected an axis for x of shape (1, 1)"):
            fn(xgrad.ones((1, 1), device=device))


def test_logcumsumexp_of_infinities(device: str) -> None:
    x = xgrad.Tensor([-np.inf, -np.inf, 0.0, 0.0, np.inf], dtype=xgrad.float64, device=device, requires_grad=True)
    out = xgrad.logcumsumexp(x)
    np.testing.assert_array_equal(host(out), np.logaddexp.accumulate(host(x)))
    out[:4].sum().backward()
    np.testing.assert_allclose(host(x.grad), [1, 0, 1.5, 0.5, 0])  # the first is itself, whatever it is


# gradient


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_that_of_numpy(device: str, edge_order: Any) -> None:
    x, rows, columns = random.normal(size=(4, 5)), np.array([0.0, 0.5, 2.0, 2.5]), np.cumsum(np.arange(1.0, 6.0))
    for spacing, axis in [
        ((), None),
        ((0.5,), None),
        ((2.0, columns), None),
        ((columns,), 1),
        ((columns, rows), (1, 0)),
    ]:
        got = xgrad.gradient(on(device, x), *spacing, axis=axis, edge_order=edge_order)
        want = np.gradient(x, *spacing, axis=axis, edge_order=edge_order)
        assert type(got) is tuple or type(want) is not tuple
        for g, w in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
            np.testing.assert_allclose(host(g), w, rtol=1e-12, atol=1e-13)


def test_gradient_keeps_infinities_to_their_neighbours() -> None:
    x = np.array([0.0, 1.0, np.inf, 2.0, 4.0])
    np.testing.assert_array_equal(host(xgrad.gradient(on("cpu", x))), np.gradient(x))


def test_gradient_refuses_what_does_not_fit() -> None:
    x = xgrad.ones((2, 3))
    with refuses(ValueError, "gradient: expected 3 or more points along axis 0 for edge_order 2, got shape (2, 3)"):
        xgrad.gradient(x, edge_order=2)
    with refuses(TypeError, "gradient: expected one spacing, or one for each of 2 axes, got 3"):
        xgrad.gradient(x, 1.0, 1.0, 1.0)
    with refuses(ValueError, "gradient: expected coordinates of shape (3,) along axis 1, got (2,)"):
        xgrad.gradient(x, xgrad.arange(2.0), axis=1)
    with refuses(ValueError, "gradient: expected different axes, got (0, -2)"):
        xgrad.gradient(x, axis=(0, -2))
    with refuses(ValueError, "gradient: expected an edge_order of 1 or 2, got 3"):
        xgrad.gradient(x, edge_order=3)


# Linear algebra


def test_triangular_solutions_read_the_triangle_alone(device: str) -> None:
    a, b = random.normal(size=(3, 3)) + 3 * np.eye(3), random.normal(size=(3, 2))
    for upper in (True, False):
        triangle = np.triu(a) if upper else np.tril(a)
        got = linalg.solve_triangular(on(device, a), on(device, b), upper=upper)
        np.testing.assert_allclose(host(got), np.linalg.solve(triangle, b), rtol=1e-12)
        np.testing.assert_allclose(
            host(linalg.cholesky_solve(on(device, b), on(device, a), upper=upper)),
            np.linalg.solve(triangle.T @ triangle if upper else triangle @ triangle.T, b),
            rtol=1e-12,
        )


def test_a_triangular_solution_is_by_substitution(device: str) -> None:
    """Elimination that exchanged rows for a larger pivot would round the small number away."""
    a, b = [[1e-30, 0.0], [1.0, 1.0]], [1e-30, 2.0]
    assert linalg.solve_triangular(on(device, a), on(device, b), upper=False).tolist() == [1.0, 1.0]


def test_linear_systems_that_do_not_fit_are_refused() -> None:
    square, wide = xgrad.ones((2, 2)), xgrad.ones((2, 3))
    with refuses(ValueError, "solve_triangular: expected square matrices, of shape (..., n, n), for x1, got (2, 3)"):
        linalg.solve_triangular(wide, xgrad.ones(2), upper=True)
    with refuses(
        ValueError, "cholesky_solve: expected a vector of shape (n,) or matrices of shape (..., n, k) for x, "
    ):
        linalg.cholesky_solve(xgrad.ones(3), square)
    with refuses(ValueError, "lstsq: expected matrices of shape (..., m, n) for x1, and a vector of shape (m,)"):
        linalg.lstsq(wide, xgrad.ones(3))
    with refuses(np.linalg.LinAlgError, "solve_triangular: expected no 0 on the diagonals of x1"):
        linalg.solve_triangular(xgrad.zeros((2, 2)), xgrad.ones(2), upper=True)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_lstsq_is_that_of_numpy(device: str, shape: tuple[int, int]) -> None:
    a, b = random.normal(size=shape), random.normal(size=(shape[0], 2))
    got, want = linalg.lstsq(on(device, a), on(device, b)), np.linalg.lstsq(a, b)
    assert got._fields == ("solution", "residuals", "rank", "singular_values") and got.rank.item() == want[2]
    np.testing.assert_allclose(host(got.solution), want[0], rtol=1e-10)
    np.testing.assert_allclose(host(got.residuals), want[1] if want[1].size else [0, 0], rtol=1e-10, atol=1e-20)
    np.testing.assert_allclose(host(got.singular_values), want[3], rtol=1e-10)


def test_lstsq_of_a_singular_matrix_has_the_least_norm(device: str) -> None:
    a, b = np.ones((3, 2)), np.array([1.0, 2.0, 3.0])
    got = linalg.lstsq(on(device, a), on(device, b))
    assert got.rank.item() == 1
    np.testing.assert_allclose(host(got.solution), [1, 1], rtol=1e-12)
    np.testing.assert_allclose(host(got.residuals), 2, rtol=1e-12)


def test_exponentials_of_small_and_large_matrices_of_one_stack(device: str) -> None:
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    angles = np.array([0.0, 1e-8, 0.3, 2.0, 1000.0])
    want = np.cos(angles)[:, None, None] * np.eye(2) + np.sin(angles)[:, None, None] * turn
    got = host(linalg.expm(on(device, angles[:, None, None] * turn)))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-15)
    assert linalg.expm(on(device, [[-1000.0, 0.0], [0.0, 1.0]])).tolist() == [[0.0, 0.0], [0.0, pytest.approx(np.e)]]


def test_square_roots_of_matrices(device: str) -> None:
    for _ in range(20):
        root = random.normal(size=(4, 4)) + 1j * random.normal(size=(4, 4)) + 5 * np.eye(4)
        got = linalg.sqrtm(on(device, root @ root))
        np.testing.assert_allclose(host(got), root, rtol=1e-10, atol=1e-10)
    for wrong in ([[-1.0, 0.0], [0.0, -2.0]], [[-3.0]], [[0.0, 1.0], [0.0, 0.0]]):
        with refuses(np.linalg.LinAlgError, "sqrtm: expected matrices without eigenvalues that are 0 or negative"):
            linalg.sqrtm(on(device, wrong))
    with refuses(ValueError, "sqrtm: expected square matrices"):
        linalg.sqrtm(on(device, np.ones((2, 3))))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_derivatives_of_matrix_functions_do_not_depend_on_the_size_of_the_gradient(scale: float) -> None:
    x = random.normal(size=(3, 3)) + 4 * np.eye(3)
    weights = random.normal(size=(3, 3))
    for fn in (linalg.expm, linalg.sqrtm):
        found = []
        for factor in (scale, 1.0):
            leaf = xgrad.Tensor(x, dtype=xgrad.float64, requires_grad=True)
            (fn(leaf) * (weights * factor)).sum().backward()
            found.append(host(leaf.grad) / factor)
        np.testing.assert_allclose(*found, rtol=1e-11, atol=1e-11)


# Arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: xgrad.topk(x, 1.5), "topk: expected an int for k, got 1.5"),
        (lambda x: xgrad.partition(x, 1.0), "partition: expected an int for kth, got 1.0"),
        (lambda x: xgrad.diag(x, k=1.0), "diag: expected an int for k, got 1.0"),
        (lambda x: xgrad.diagonal(xgrad.outer(x, x), axis1="0"), "diagonal: expected an int for axis1, got '0'"),
        (lambda x: xgrad.gradient(x, axis=0.0), "gradient: expected an int for axis, got 0.0"),
        (lambda x: xgrad.one_hot(xgrad.asarray([0]), True), "one_hot: expected an int for num_classes, got True"),
        (lambda x: xgrad.cummax(x, axis=0.0), "cummax: expected an int for axis, got 0.0"),
        (lambda x: xgrad.kron(x, 2.0), "kron: expected a tensor, an array or a number for x2, got float"),
        (lambda x: xgrad.random.multinomial(x, 1.0), "multinomial: expected an int for num_samples, got 1.0"),
    ],
)
def test_arguments_of_another_type_are_refused(call: Any, message: str) -> None:
    with refuses(TypeError, message):
        call(xgrad.ones(2))


@pytest.mark.parametrize("name", ["cummax", "cummin", "logcumsumexp", "topk", "partition"])
def test_complex_numbers_have_no_order(name: str) -> None:
    rest = (0,) if name in ("topk", "partition") else ()
    with refuses(TypeError, f"{name}: expected real numbers for x, got complex64"):
        getattr(xgrad, name)(xgrad.asarray([1j]), *rest)


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap"])
def test_pad_by_nothing_is_a_copy(mode: Any) -> None:
    x = xgrad.ones(2)
    xgrad.pad(x, 0, mode=mode)[...] = 5.0
    assert x.tolist() == [1, 1]
