"""Complex numbers have PyTorch's gradients ``dL/dRe z + i dL/dIm z``, on every device.

Three orders are compared with PyTorch, and functions of users with finite differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host, leaf64
from xgrad import Function, Tensor

random = np.random.default_rng(0)
Z = random.normal(size=(2, 3)) + 1j * random.normal(size=(2, 3))
X = random.normal(size=3)


def holomorphic(p: Any, z: Any, x: Any) -> Any:
    return p.real(p.exp(z) * x + z * z / (z + 3) - (1j * z) @ p.sin(z).mT @ z + p.sum(z))


def mixed(p: Any, z: Any, x: Any) -> Any:
    w = p.conj(z) * x + p.abs(z) + p.real(z) * p.imag(z)
    return p.abs(w @ w.mT) * p.real(p.sum(z) / (1 + p.abs(p.sum(w))))


@pytest.mark.parametrize("fn", [holomorphic, mixed])
def test_three_orders_agree_with_pytorch(fn: Callable[..., Any], device: str, torch: Any) -> None:
    def three(p: Any, inputs: list[Any]) -> list[Any]:
        gradients, value = [], fn(p, *inputs)
        for _ in range(3):
            gz, gx = p.autograd.grad(p.sum(value), inputs, create_graph=True)
            gradients += [gz, gx]
            value = p.abs(gz + 0.5j) * gx
        return gradients

    inputs = [leaf64(Z, device), leaf64(X, device)]
    expected = three(torch, [torch.tensor(values, requires_grad=True) for values in (Z, X)])
    for got, want, like in zip(three(xgrad, inputs), expected, inputs * 3, strict=True):
        assert (got.shape, got.dtype, got.device) == (like.shape, like.dtype, like.device)
        np.testing.assert_allclose(host(got), want.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_of_a_real_input_is_the_real_part(create_graph: bool, device: str) -> None:
    x = leaf64(np.array([1.0, 2.0], dtype=np.float32), device)
    z = x * (3 + 4j)
    assert z.dtype == xgrad.complex64
    g = xgrad.asarray(np.array([1 + 1j, 2j], dtype=np.complex64), device=device)
    (got,) = xgrad.autograd.grad(z, x, g, create_graph=create_graph)
    assert (got.dtype, got.requires_grad) == (xgrad.float32, False)
    assert got.tolist() == [7, 8]  # of g times 3 - 4i


def test_complex_gradients_accumulate(device: str) -> None:
    z = leaf64([1 + 2j, 3 - 1j], device)
    for _ in range(2):
        xgrad.sum(xgrad.abs(z) * xgrad.abs(z)).backward()
    assert z.grad.dtype == xgrad.complex128
    np.testing.assert_allclose(host(z.grad), [4 + 8j, 12 - 4j])


def test_backward_of_a_complex_scalar_needs_a_gradient() -> None:
    z = leaf64(1 + 2j)
    with pytest.raises(
        ValueError,
        match=r"backward: expected a real result or a gradient, got a tensor of complex128",
    ):
        (z * z).backward()
    with pytest.raises(
        ValueError,
        match=r"grad: expected a gradient of shape \(\), complex128 on cpu, got .*float32",
    ):
        xgrad.autograd.grad(z * z, z, xgrad.asarray(1.0))
    (z * z).backward(xgrad.asarray(1 + 0j, dtype=xgrad.complex128))
    assert z.grad.item() == 2 - 4j  # the conjugate of the derivative, as for L = Re z**2


class Square(Function):
    @staticmethod
    def forward(xp: Any, z: Any) -> Any:
        return z * z

    @staticmethod
    def backward(xp: Any, g: Any, z: Any) -> Any:
        return 2 * z * g


class Pair(Function):
    """Two inputs and two results, of which one is real: the rule keeps to the convention itself."""

    holomorphic = False

    @staticmethod
    def forward(xp: Any, z: Any, x: Any) -> Any:
        return xp.conj(z * z) * x, xp.real(z)

    @staticmethod
    def backward(xp: Any, g: Any, z: Any, x: Any) -> Any:
        return 2 * xp.conj(z * g[0]) * x + g[1], g[0] * z * z


@pytest.mark.parametrize(("fn", "values"), [(Square(), [Z]), (Square(), [X]), (Pair(), [Z, X])])
def test_complex_functions_of_users_have_exact_derivatives(
    fn: Function, values: list[np.ndarray], device: str
) -> None:
    inputs = [leaf64(x, device) for x in values]
    assert xgrad.testing.gradcheck(fn, inputs) and xgrad.testing.gradgradcheck(fn, inputs)


def test_complex_numbers_are_refused_where_they_do_not_belong() -> None:
    x = leaf64([1.0, 2.0])
    x.data = Tensor([1.0 + 1j, 2.0])
    assert x.dtype == xgrad.complex64
    with pytest.raises(
        TypeError, match="data: expected a floating dtype where a gradient is wanted, got int64"
    ):
        x.data = Tensor([1, 2])
    for cast in (xgrad.astype, lambda z, dtype: xgrad.asarray(z, dtype=dtype), Tensor.to):
        with pytest.raises(
            TypeError,
            match=r"expected a complex dtype for complex64, got float32: take xgrad\.real",
        ):
            cast(xgrad.asarray([1j]), xgrad.float32)
    assert xgrad.astype(xgrad.asarray([1j, 0]), xgrad.bool).tolist() == [True, False]
    with pytest.raises(TypeError, match="SGD: expected real parameters, got complex64 at 0"):
        xgrad.optim.SGD([x], lr=0.1)
