"""Linear algebra where the op table does not reach: what is refused, and what happens where derivatives end."""

from __future__ import annotations

import inspect
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import Tensor, linalg
from xgrad.autograd import grad
from xgrad.testing import gradcheck, gradgradcheck

pytestmark = pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
random = np.random.default_rng(0)


def leaf(values: Any, device: str = "cpu") -> Tensor:
    values = np.asarray(values)
    return Tensor(values.astype(np.result_type(values, np.float64)), device=device, requires_grad=True)


def host(x: Tensor) -> np.ndarray:
    return np.asarray(x.detach().cpu().numpy())


SIGNATURES = """
cholesky(x, /, *, upper=False)
cholesky_solve(x, factor, /, *, upper=False)
cross(x1, x2, /, *, axis=-1)
det(x, /)
diagonal(x, /, *, offset=0)
eig(x, /)
eigh(x, /)
eigvals(x, /)
eigvalsh(x, /)
expm(x, /)
inv(x, /)
lstsq(x1, x2, /, *, rcond=None)
matmul(x1, x2, /)
matrix_norm(x, /, *, keepdims=False, ord='fro')
matrix_power(x, n, /)
matrix_rank(x, /, *, rtol=None)
matrix_transpose(x, /)
outer(x1, x2, /)
pinv(x, /, *, rtol=None)
qr(x, /, *, mode='reduced')
slogdet(x, /)
solve(x1, x2, /)
solve_triangular(x1, x2, /, *, upper, unitriangular=False)
sqrtm(x, /)
svd(x, /, *, full_matrices=True)
svdvals(x, /)
tensordot(x1, x2, /, *, axes=2)
trace(x, /, *, offset=0, dtype=None)
vecdot(x1, x2, /, *, axis=-1)
vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
""".split("\n")[1:-1]


def test_the_signatures_are_the_standards_and_those_of_extensions() -> None:
    assert [line.partition("(")[0] for line in SIGNATURES] == linalg.__all__
    for line in SIGNATURES:
        name, _, rest = line.partition("(")
        parameters = inspect.signature(getattr(linalg, name)).parameters.values()
        bare = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
        assert str(bare) == "(" + rest
    assert linalg.matmul is xgrad.matmul and linalg.vecdot is xgrad.vecdot and linalg.tensordot is xgrad.tensordot


def test_several_results_have_the_names_of_the_standard(device: str) -> None:
    x = xgrad.asarray([[2.0, 1.0], [1.0, 2.0]], device=device)
    assert linalg.eig(x)._fields == linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert all(isinstance(part, Tensor) and part.device == xgrad.Device(device) for part in linalg.svd(x))


# What is refused

FAILING: list[tuple[str, Callable[[Tensor], Any], Any]] = [
    ("inv", linalg.inv, [[1.0, 2.0], [2.0, 4.0]]),
    ("solve", lambda x: linalg.solve(x, x), [[1.0, 2.0], [2.0, 4.0]]),
    ("cholesky", linalg.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
    ("inv", lambda x: linalg.matrix_power(x, -2), np.zeros((2, 2))),
]


@pytest.mark.parametrize(("name", "fn", "values"), FAILING)
def test_a_matrix_for_which_there_is_no_result(name: str, fn: Any, values: Any, device: str) -> None:
    x = leaf(values, device)
    if device.startswith("cuda"):
        assert not np.isfinite(host(fn(x))).all()
        return
    for _ in range(2):  # a second call may take a shorter way
        with pytest.raises(np.linalg.LinAlgError, match=rf"^{name}: .*of shape \(2, 2\), float64"):
            fn(x)


SQUARE = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]


@pytest.mark.parametrize("name", SQUARE)
def test_matrices_that_are_not_square(name: str, device: str) -> None:
    for shape in ((2, 3), (2,), ()):
        with pytest.raises(ValueError, match=rf"^{name}: expected square matrices.*{shape[0] if shape else ''}"):
            getattr(linalg, name)(xgrad.ones(shape, device=device))


@pytest.mark.parametrize("name", ["diagonal", "matrix_norm", "matrix_rank", "pinv", "qr", "svd", "svdvals"])
def test_vectors_are_no_matrices(name: str, device: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: expected matrices, of shape \(..., m, n\).*\(3,\)"):
        getattr(linalg, name)(xgrad.ones(3, device=device))


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda one: linalg.matrix_power(one((2, 3)), 2), r"matrix_power: expected square matrices.*\(2, 3\)"),
    (lambda one: linalg.solve(one((2, 3)), one(2)), r"solve: expected square matrices.*\(2, 3\)"),
    (
        lambda one: linalg.solve(one((2, 2)), one(3)),
        r"solve: expected a vector of shape \(n,\) or matrices.* x2 .*\(3,\)",
    ),
    (lambda one: linalg.solve(one((2, 2, 2)), one((3, 2, 2))), r"solve: .*x2 of shape \(3, 2, 2\)"),
    (lambda one: linalg.qr(one((2, 2)), mode="raw"), "qr: expected mode 'reduced' or 'complete', got 'raw'"),
    (lambda one: linalg.matrix_norm(one((2, 2)), ord=3), "matrix_norm: expected ord 'fro', .* got 3"),
    (lambda one: linalg.outer(one((2, 2)), one(2)), r"outer: expected two vectors.*\(2, 2\)"),
    (lambda one: linalg.cross(one(2), one(2)), r"cross: expected length 3 along axis -1.*\(2,\)"),
    (lambda one: linalg.cross(one((3, 3)), one(3), axis=0), "cross: expected an axis that both have.*got 0"),
    (lambda one: xgrad.vecdot(one(2), one(3)), r"vecdot: expected one length along axis -1.*\(3,\)"),
    (lambda one: xgrad.vecdot(one(2), one((2, 2)), axis=-2), "vecdot: expected an axis that both have.*got -2"),
    (lambda one: xgrad.tensordot(one((2, 3)), one((2, 3)), axes=1), "tensordot: expected equal lengths"),
    (lambda one: xgrad.tensordot(one((2, 3)), one(3), axes=2), "tensordot: expected axes from 0 to 1"),
    (lambda one: xgrad.tensordot(one((2, 3)), one(3), axes=-1), "tensordot: expected axes from 0 to 1"),
    (lambda one: linalg.vector_norm(one((2, 0)), axis=1, ord=np.inf), "vector_norm: expected elements to choose from"),
]


@pytest.mark.parametrize(("fn", "message"), REFUSED)
def test_what_does_not_fit(fn: Callable[[Any], Any], message: str, device: str) -> None:
    with pytest.raises(ValueError, match=message):
        fn(lambda shape: xgrad.ones(shape, device=device))


def test_integers_count_as_floats_where_the_result_is_no_integer(device: str) -> None:
    x = xgrad.asarray([[2, 1], [1, 1]], device=device)
    assert linalg.inv(x).dtype == linalg.matrix_norm(x, ord=1).dtype == linalg.matrix_power(x, 2).dtype == xgrad.float32
    assert xgrad.vecdot(x, x).dtype == linalg.outer(x[0, ...], x[1, ...]).dtype == linalg.trace(x).dtype == xgrad.int64
    assert linalg.trace(x, dtype=xgrad.float64).dtype == xgrad.float64


def test_a_stack_of_vectors_is_a_matrix(device: str) -> None:
    """NumPy 1 and PyTorch would take the second for two vectors."""
    x1, x2 = random.normal(size=(2, 2, 2)), random.normal(size=(2, 2))
    got = linalg.solve(leaf(x1, device), leaf(x2, device))
    np.testing.assert_allclose(host(got), np.stack([np.linalg.solve(m, x2) for m in x1]))


def test_one_tolerance_for_each_matrix(device: str) -> None:
    x = xgrad.asarray(np.stack([np.diag([1.0, 0.5])] * 2), device=device)
    rtol = xgrad.asarray(np.array([0.1, 0.9]), device=device)
    assert linalg.matrix_rank(x, rtol=rtol).tolist() == [2, 1]
    np.testing.assert_allclose(host(linalg.pinv(x, rtol=rtol)), [np.diag([1, 2]), np.diag([1, 0])])


# Where derivatives end

REPEATED = np.diag([2.0, 2.0, 1.0])


def test_eigenvalues_that_repeat_have_a_gradient(device: str) -> None:
    x = leaf(REPEATED, device)
    for values in (linalg.eigvalsh(x), linalg.eigh(x).eigenvalues):
        (g,) = grad(xgrad.sum(values * values), x, retain_graph=True)
        np.testing.assert_allclose(host(g), 2 * REPEATED, atol=1e-12)


def test_eigenvectors_of_eigenvalues_that_repeat_have_none(device: str) -> None:
    x = leaf(REPEATED, device)
    vectors = linalg.eigh(x).eigenvectors
    (g,) = grad(xgrad.sum(vectors * xgrad.asarray(random.normal(size=(3, 3)), device=device)), x)
    assert not np.isfinite(host(g)).any()


@pytest.mark.parametrize("values", [REPEATED, np.diag([2.0, 1.0, 0.0]), np.zeros((2, 3))])
def test_singular_values_that_repeat_or_are_zero_have_a_gradient(values: np.ndarray, device: str) -> None:
    x = leaf(values, device)
    weights = xgrad.asarray(np.arange(1.0, 1 + min(values.shape)), device=device)
    for found in (linalg.svdvals(x), linalg.svd(x, full_matrices=False).S, linalg.svd(x).S):
        (g,) = grad(xgrad.sum(found * weights), x)
        assert np.linalg.svdvals(host(g)) == pytest.approx(np.arange(min(values.shape), 0, -1))


@pytest.mark.parametrize("values", [REPEATED, np.zeros((3, 3)), np.zeros((3, 2)), np.diag([2.0, 1.0, 0.0, 0.0])])
def test_singular_vectors_have_none_there(values: np.ndarray, device: str) -> None:
    x = leaf(values, device)
    u, _, vh = linalg.svd(x, full_matrices=False)
    for part in (u, vh):
        weights = xgrad.asarray(random.normal(size=part.shape), device=device)
        (g,) = grad(xgrad.sum(part * weights), x, retain_graph=True)
        assert not np.isfinite(host(g)).all()


def test_those_that_the_others_leave_no_choice_have_one(device: str) -> None:
    """Of a matrix of rank 1 with two columns the second of V is at right angles to the first; of U it may be any."""
    x = leaf([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]], device)
    u, _, vh = linalg.svd(x, full_matrices=False)
    (of_v,) = grad(vh[0, 1] / vh[0, 0], x, retain_graph=True)
    np.testing.assert_allclose(host(of_v), [[0, 0.5], [0, 0], [0, 0]], atol=1e-12)
    (of_u,) = grad(xgrad.sum(u * xgrad.asarray(random.normal(size=(3, 2)), device=device)), x)
    assert not np.isfinite(host(of_u)).all()


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [float, complex])
def test_det_of_any_rank_at_two_orders(rank: int, kind: type, device: str) -> None:
    parts = [random.normal(size=shape) + (1j * random.normal(size=shape) if kind is complex else 0)
             for shape in ((3, rank), (rank, 3))]  # fmt: skip
    x = leaf(parts[0] @ parts[1], device)
    assert gradcheck(linalg.det, x) and gradgradcheck(linalg.det, x)


def test_det_at_three_orders_where_singular_values_differ(device: str) -> None:
    """The third derivative of a 3 by 3 determinant is the Levi-Civita symbol, twice."""
    x = leaf(np.diag([1.0, 2.0, 3.0]) + 0.1 * random.normal(size=(3, 3)), device)
    (g,) = grad(linalg.det(x), x, create_graph=True)
    (g,) = grad(g[0, 0], x, create_graph=True)
    (g,) = grad(g[1, 1], x)
    np.testing.assert_allclose(host(g), np.diag([0, 0, 1.0]), atol=1e-12)


def test_the_pseudo_inverse_keeps_its_rank(device: str) -> None:
    """Of a change that would raise the rank it sees nothing."""
    x = leaf(np.diag([2.0, 0.0]), device)
    (g,) = grad(xgrad.sum(linalg.pinv(x)), x)
    np.testing.assert_allclose(host(g), [[-0.25, 0.25], [0.25, 0]])


@pytest.mark.parametrize("fn", [lambda x: linalg.slogdet(x).logabsdet, lambda x: xgrad.sum(linalg.qr(x).Q)])
def test_a_singular_matrix_is_not_passed_over_on_the_way_back(fn: Callable[[Tensor], Tensor], device: str) -> None:
    x = leaf(np.diag([1.0, 0.0]), device)
    if device.startswith("cuda"):
        assert not np.isfinite(host(grad(fn(x), x)[0])).all()
        return
    with pytest.raises(Exception, match=r"(?i)singular") as caught:
        grad(fn(x), x)
    assert any("in the backward pass" in note for note in caught.value.__notes__)


def test_norms_at_zero_have_derivatives_of_zero(device: str) -> None:
    x = leaf(np.zeros((2, 2)), device)
    for norm in (
        linalg.vector_norm(x),
        linalg.matrix_norm(x),
        linalg.vector_norm(x, ord=1),
        linalg.matrix_norm(x, ord=1),
    ):
        (g,) = grad(norm, x, create_graph=True)
        assert not host(g).any()
        if g.requires_grad:
            (g,) = grad(xgrad.sum(g), x)
            assert not host(g).any()


# Complex numbers: phases


def test_the_sign_of_a_complex_determinant_agrees_with_pytorch(device: str, torch: Any) -> None:
    values = random.normal(size=(2, 3, 3)) + 1j * random.normal(size=(2, 3, 3))
    x, theirs = leaf(values, device), torch.tensor(values, requires_grad=True)

    def loss(p: Any, x: Any) -> Any:
        sign, logabsdet = p.linalg.slogdet(x)
        return p.sum(p.real(sign * (2 - 1j)) + logabsdet * p.imag(sign))

    (got,), (want,) = grad(loss(xgrad, x), x), torch.autograd.grad(loss(torch, theirs), theirs)
    np.testing.assert_allclose(host(got), want.numpy())
    assert gradgradcheck(lambda x: tuple(linalg.slogdet(x)), x)


def test_a_phase_may_cancel_between_both_singular_vectors(device: str, torch: Any) -> None:
    values = random.normal(size=(3, 2)) + 1j * random.normal(size=(3, 2))
    x, theirs = leaf(values, device), torch.tensor(values, requires_grad=True)

    def loss(p: Any, x: Any) -> Any:
        u, _, vh = p.linalg.svd(x, full_matrices=False)
        return p.sum(p.real((u @ vh) * (1 + 2j)))

    (got,), (want,) = grad(loss(xgrad, x), x), torch.autograd.grad(loss(torch, theirs), theirs)
    np.testing.assert_allclose(host(got), want.numpy(), rtol=1e-9)


# Larger ones


@pytest.mark.parametrize("fn", [linalg.det, linalg.inv, lambda x: linalg.slogdet(x).logabsdet, linalg.svdvals,
    lambda x: linalg.cholesky(x @ x.mT), lambda x: linalg.eigvalsh(x + x.mT), linalg.pinv,
    lambda x: linalg.matrix_power(x, 7)])  # fmt: skip
def test_matrices_of_12_agree_with_a_difference(fn: Callable[[Tensor], Tensor]) -> None:
    values, direction = np.eye(12) + 0.1 * random.normal(size=(12, 12)), random.normal(size=(12, 12))
    x = leaf(values)
    out = fn(x)
    weights = random.normal(size=out.shape)
    (g,) = grad(xgrad.sum(out * xgrad.asarray(weights)), x)
    up, down = (host(fn(leaf(values + step * direction))) for step in (1e-6, -1e-6))
    assert np.sum(host(g) * direction) == pytest.approx(np.sum(weights * (up - down)) / 2e-6, rel=1e-6)


def test_axes_and_orders_that_are_none() -> None:
    one = xgrad.ones((2, 2))
    with pytest.raises(IndexError, match=r"^tensordot: expected axes of an input with 2, got \(5,\)"):
        xgrad.tensordot(one, one, axes=((5,), (0,)))
    with pytest.raises(TypeError, match=r"^matrix_power: expected an int for n, got 1\.5"):
        linalg.matrix_power(one, 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^vector_norm: expected a number for ord"):
        linalg.vector_norm(one, ord="fro")


LARGE: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "pinv of a tall matrix": (lambda x: linalg.pinv(x), [(1000, 2)]),
    "pinv of a wide matrix": (lambda x: linalg.pinv(x), [(2, 1000)]),
    "solve by one matrix": (lambda x, y: linalg.solve(x + 9 * xgrad.eye(50), y), [(50, 50), (500, 50, 1)]),
    "matmul by one matrix": (xgrad.matmul, [(500, 2, 50), (50, 200)]),
    "matmul of one matrix": (xgrad.matmul, [(200, 50), (500, 50, 2)]),
}


@pytest.mark.parametrize("case", LARGE)
def test_gradients_make_nothing_much_larger_than_their_inputs(case: str) -> None:
    fn, shapes = LARGE[case]
    xs = [leaf(random.normal(size=shape)) for shape in shapes]
    loss = xgrad.sum(fn(*xs) ** 2)
    tracemalloc.start()
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * sum(8 * x.size for x in xs)
