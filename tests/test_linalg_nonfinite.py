"""Matrices with NaN or infinity: an error where LAPACK may not end, else NaN, as in PyTorch."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from xgrad import linalg
from xgrad.parity.run_op import outputs

pytestmark = pytest.mark.filterwarnings(
    "ignore:(invalid value|divide by zero) encountered:RuntimeWarning"
)

SINGULAR_VALUES: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(linalg, name) for name in ("svd", "svdvals", "pinv", "matrix_rank")},
    "matrix_norm nuc": lambda x: linalg.matrix_norm(x, ord="nuc"),
    "matrix_norm 2": lambda x: linalg.matrix_norm(x, ord=2),
    "matrix_norm -2": lambda x: linalg.matrix_norm(x, ord=-2),
    "lstsq": lambda x: linalg.lstsq(x, x[..., :1]),
}

OTHERS: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(linalg, name)
        for name in "eigh eigvalsh qr cholesky inv det slogdet expm sqrtm".split()
    },
    "solve": lambda x: linalg.solve(x, x),
}


def matrix(value: float, shape: tuple[int, ...] = (2, 3, 3), dtype: str = "float32") -> np.ndarray:
    """Return random matrices with `value` as their last element."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x[..., -1, -1] = value
    return x


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", SINGULAR_VALUES)
def test_singular_values_of_nonfinite_matrices_are_refused(
    name: str, value: float, device: str
) -> None:
    if device not in ("cpu", "strict") and not (device == "torch" and np.isnan(value)):
        pytest.skip("CuPy has checks of its own, and PyTorch none for infinity")
    for dtype in ("float32", "float64", "complex64", "complex128"):
        x = xgrad.asarray(matrix(value, dtype=dtype), device=device)
        with pytest.raises(
            np.linalg.LinAlgError,
            match=r"(found NaN or infinity|non-finite values).*\(got x of shape",
        ):
            SINGULAR_VALUES[name](x)


def test_matrix_for_which_lapack_does_not_end_is_refused() -> None:
    code = """if True:
        import numpy as np, xgrad
        x = np.ones((3, 5))
        x[0, 0] = np.inf
        square = xgrad.asarray(np.diag([np.inf, 1.0, 1.0]) + np.ones((3, 3)), requires_grad=True)
        determinant = lambda x: xgrad.linalg.det(square).backward()
        for device in ("cpu", "strict"):
            for f in (xgrad.linalg.svd, xgrad.linalg.pinv, determinant):
                try:
                    f(xgrad.asarray(x, device=device))
                except np.linalg.LinAlgError:
                    print("refused")
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], timeout=100, capture_output=True, text=True
    )
    assert done.stdout.split() == ["refused"] * 6, done.stderr


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_of_nonfinite_matrices_end(name: str, value: float, device: str) -> None:
    for size in (1, 3, 40):
        with contextlib.suppress(np.linalg.LinAlgError):
            OTHERS[name](xgrad.asarray(matrix(value, (size, size)), device=device))


@pytest.mark.parametrize("name", ["inv", "solve", "det", "slogdet", "qr", "expm"])
def test_nan_is_passed_on_as_in_pytorch(name: str, device: str, torch: Any) -> None:
    others = {"solve": lambda x: torch.linalg.solve(x, x), "expm": torch.linalg.matrix_exp}
    function = others.get(name) or getattr(torch.linalg, name)
    x = matrix(np.nan, (3, 3))
    results = OTHERS[name](xgrad.asarray(x, device=device)), function(torch.from_numpy(x))
    for got, want in zip(*map(outputs, results), strict=True):
        assert bool(xgrad.any(xgrad.isnan(got))) == bool(want.isnan().any())


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 3, 2)], ids=str)
def test_nan_of_a_matrix_reaches_the_solution(shape: tuple[int, ...], device: str) -> None:
    x, y = matrix(np.nan), np.ones(shape, "float32")
    for a in (x[0], x) if shape != (2, 3, 2) else (x,):
        got = linalg.solve(xgrad.asarray(a, device=device), xgrad.asarray(y, device=device))
        assert bool(xgrad.any(xgrad.isnan(got))) and got.dtype == xgrad.float32
    if shape == (2, 3, 2):
        mixed = xgrad.asarray(np.stack([x[0], np.eye(3, dtype="float32")]), device=device)
        assert (
            linalg.solve(mixed, xgrad.asarray(y, device=device))[1, ...].tolist()
            == [[1.0, 1.0]] * 3
        )


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("fn", [linalg.eig, linalg.eigvals])
def test_eigenvalues_of_nonfinite_matrices_are_refused_on_cpu(
    fn: Callable[..., Any], value: float
) -> None:
    with pytest.raises(
        np.linalg.LinAlgError, match=rf"^{fn.__name__}: .*x of shape \(2, 3, 3\), float32"
    ):
        fn(xgrad.asarray(matrix(value)))


def test_captured_step_refuses_nonfinite_matrices() -> None:
    @xgrad.capture
    def step(x: xgrad.Tensor) -> xgrad.Tensor:
        return linalg.svdvals(x * 2)

    for _ in range(4):
        assert step(xgrad.asarray(matrix(1.0))).shape == (2, 3)
    for value in (np.inf, np.nan):
        with pytest.raises(np.linalg.LinAlgError, match="expected finite numbers"):
            step(xgrad.asarray(matrix(value)))
    expected = np.linalg.svd(2 * matrix(1.0), compute_uv=False)
    np.testing.assert_allclose(step(xgrad.asarray(matrix(1.0))).numpy(), expected, rtol=1e-5)
