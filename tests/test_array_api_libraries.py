"""array-api-extra and einops, written against the standard, run on tensors.

Values are compared with NumPy, and gradients with finite differences.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from helpers import host, leaf64, uniform
from xgrad import Tensor
from xgrad.einops import register
from xgrad.testing import gradcheck, gradgradcheck


@pytest.fixture
def extra() -> Any:
    return pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")


@pytest.fixture(params=["einops", "einops.array_api"])
def einops(request: pytest.FixtureRequest) -> Any:
    """Return einops' functions for known libraries, or its functions for arrays of the standard."""
    module = pytest.importorskip(request.param, reason="einops is not installed")
    register()
    return module


# array_api_extra.at

KEYS: list[Any] = [
    1,
    slice(None, None, 2),
    (slice(None), 1),
    ...,
    uniform(3, 2) > 1,
    np.array([2, 0]),
]


@pytest.mark.parametrize(
    "op", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"]
)
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_at_has_the_values_of_numpy_and_gradients(extra: Any, op: str, key: Any) -> None:
    x, y = leaf64(uniform(3, 2)), leaf64(uniform(seed=1))
    k = xgrad.asarray(key) if isinstance(key, np.ndarray) else key

    def changed(x: Tensor, y: Tensor) -> Tensor:
        return getattr(extra.at(1 * x, k), op)(y)

    expected = getattr(extra.at(host(x).copy(), key), op)(y.item())
    np.testing.assert_allclose(changed(x, y).tolist(), expected)
    assert gradcheck(changed, (x, y)) and gradgradcheck(changed, (x, y))


def test_at_copies_as_asked(extra: Any) -> None:
    x = leaf64(uniform(3))
    y = extra.at(x)[0].set(5.0, copy=True)
    assert x.tolist() != y.tolist() and y.requires_grad
    z = xgrad.zeros(3)
    assert extra.at(z)[1].add(2.0, copy=False) is z and z.tolist() == [0, 2, 0]


# Functions of array-api-extra

FUNCTIONS: list[tuple[str, Callable[..., Any]]] = [
    (
        "apply_where",
        lambda e, x: e.apply_where(x > 1, x, lambda t: t * t, lambda t: 3 * t, xp=xgrad),
    ),
    ("atleast_nd", lambda e, x: e.atleast_nd(x, ndim=4)),
    ("cov", lambda e, x: e.cov(x)),
    ("create_diagonal", lambda e, x: e.create_diagonal(x)),
    ("kron", lambda e, x: e.kron(x, x)),
    ("nan_to_num", lambda e, x: e.nan_to_num(x)),
    ("pad", lambda e, x: e.pad(x, 1, constant_values=2.0)),
    ("partition", lambda e, x: e.partition(x, 1, axis=-1)),
    ("sinc", lambda e, x: e.sinc(x)),
    ("angle", lambda e, x: e.angle(xgrad.astype(x, xgrad.complex128) * (1 + 1j))),
    ("deg2rad", lambda e, x: e.deg2rad(x)),
]


@pytest.mark.parametrize(("name", "fn"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_functions_of_array_api_extra(extra: Any, name: str, fn: Callable[..., Any]) -> None:
    if not hasattr(extra, name):
        pytest.skip(f"this array-api-extra has no {name}")
    x = leaf64(uniform(2, 3))
    assert isinstance(fn(extra, x), Tensor)
    assert gradcheck(lambda x: fn(extra, x) ** 2, x) and gradgradcheck(
        lambda x: fn(extra, x) ** 2, x
    )


def test_functions_of_array_api_extra_without_a_derivative(extra: Any) -> None:
    x = leaf64(uniform(2, 3))
    assert extra.isclose(x, x + 1e-12).tolist() == [[True] * 3] * 2
    assert int(extra.nunique(xgrad.asarray([1, 2, 1]))) == 2
    assert extra.one_hot(xgrad.asarray([1, 0]), 2).tolist() == [[0, 1], [1, 0]]
    assert extra.setdiff1d(xgrad.asarray([3, 1, 2]), xgrad.asarray([1])).tolist() == [2, 3]
    assert extra.default_dtype(xgrad, "real floating") == xgrad.float32


# einops


def test_einops_has_the_values_of_numpy_and_gradients(einops: Any, device: str) -> None:
    a = uniform(2, 4, 3)
    x = leaf64(a, device)
    cases: list[tuple[Callable[[Tensor], Tensor], np.ndarray]] = [
        (
            lambda x: einops.rearrange(x, "b (h w) c -> c b w h", h=2),
            a.reshape(2, 2, 2, 3).transpose(3, 0, 2, 1),
        ),
        (
            lambda x: einops.reduce(x, "b (h w) c -> h c", "sum", h=2),
            a.reshape(2, 2, 2, 3).sum((0, 2)),
        ),
        (lambda x: einops.reduce(x, "b h c -> b 1 c", "mean"), a.mean(1, keepdims=True)),
        (lambda x: einops.reduce(x, "b h c -> b", "max"), a.max((1, 2))),
        (lambda x: einops.reduce(x, "b h c -> c", "prod"), a.prod((0, 1))),
        (lambda x: einops.repeat(x, "b h c -> b (h r) c", r=2), a.repeat(2, 1)),
        (lambda x: einops.rearrange([x, x * x], "k b h c -> b k h c"), np.stack([a, a * a], 1)),
        (lambda x: einops.pack([x, x], "b * c")[0], np.concatenate([a, a], 1)),
    ]
    for fn, expected in cases:
        np.testing.assert_allclose(fn(x).tolist(), expected)
        assert gradcheck(lambda x, fn=fn: fn(x) ** 2, x) and gradgradcheck(
            lambda x, fn=fn: fn(x) ** 2, x
        )
    packed, shapes = einops.pack([x, x], "b * c")
    if device == "strict" and einops.__name__ == "einops":
        pytest.skip("unpack leaves out the last axes of a key, which only NumPy's rules allow")
    assert [part.shape for part in einops.unpack(packed, shapes, "b * c")] == [(2, 4, 3)] * 2


def test_functions_of_einops_alone_have_the_values_of_numpy(device: str) -> None:
    einops = pytest.importorskip("einops", reason="einops is not installed")
    register()
    a, b = uniform(2, 4, 3), uniform(3, 5)
    x, y = leaf64(a, device), leaf64(b, device)
    out = einops.einsum(x, y, "b h c, c d -> h b d")
    np.testing.assert_allclose(out.tolist(), np.einsum("bhc,cd->hbd", a, b))
    assert gradcheck(lambda x, y: einops.einsum(x, y, "b h c, c d -> h b d"), (x, y))
    assert einops.parse_shape(x, "b _ c") == {"b": 2, "c": 3}
    np.testing.assert_array_equal(einops.asnumpy(x), a)
    assert einops.reduce(x > 0, "b h c -> c", "any").tolist() == (a > 0).any((0, 1)).tolist()
    whole = xgrad.asarray(a > 0, device=device)
    assert einops.repeat(whole, "b h c -> b h c 2").shape == (2, 4, 3, 2)
    with pytest.raises(einops.EinopsError, match=r"not divisible|can't divide"):
        einops.rearrange(x, "b (h w) c -> b h w c", h=3)


@pytest.mark.parametrize("first", ["xgrad", "einops"])
def test_einops_takes_tensors_in_either_order_of_imports_and_is_not_imported_by_xgrad(
    first: str,
) -> None:
    pytest.importorskip("einops", reason="einops is not installed")
    second = {"xgrad": "einops", "einops": "xgrad"}[first]
    code = (
        f"import sys, {first}\nassert {first!r} == 'einops' or 'einops' not in sys.modules\n"
        f"import {second}\nx = xgrad.ones((2, 3), requires_grad=True)\n"
        "einops.reduce(x, 'a b -> b', 'sum').sum().backward()\nprint(x.grad.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]", done.stderr


def test_program_without_einops_does_not_import_it() -> None:
    code = "import sys, xgrad\nxgrad.ones(2)\nprint([x for x in sys.modules if 'einops' in x])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
