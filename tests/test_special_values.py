"""Special values of elementwise functions, as the standard lists them.

These are signed zeros, infinities and NaNs; derivatives there are compared with known values.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan, pi
from typing import Any

import numpy as np
import pytest

import xgrad

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")

UNARY = """
acos: 2 -> nan, -2 -> nan, 1 -> 0, nan -> nan
acosh: 0.5 -> nan, 1 -> 0, inf -> inf, -inf -> nan
asin: 0 -> 0, -0. -> -0., 2 -> nan, -2 -> nan
asinh: 0 -> 0, -0. -> -0., inf -> inf, -inf -> -inf
atan: 0 -> 0, -0. -> -0., inf -> pi/2, -inf -> -pi/2
atanh: 2 -> nan, -2 -> nan, 1 -> inf, -1 -> -inf, 0 -> 0, -0. -> -0.
abs: -0. -> 0, -inf -> inf, nan -> nan
ceil: inf -> inf, -inf -> -inf, 0 -> 0, -0. -> -0., -0.5 -> -0., nan -> nan
floor: inf -> inf, -inf -> -inf, 0 -> 0, -0. -> -0., nan -> nan
trunc: inf -> inf, -inf -> -inf, 0 -> 0, -0. -> -0., -0.5 -> -0., nan -> nan
round: inf -> inf, -inf -> -inf, 0 -> 0, -0. -> -0., -0.5 -> -0.
round: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2, nan -> nan
cos: 0 -> 1, -0. -> 1, inf -> nan, -inf -> nan
cosh: 0 -> 1, -0. -> 1, inf -> inf, -inf -> inf
exp: 0 -> 1, -0. -> 1, inf -> inf, -inf -> 0, nan -> nan
expm1: 0 -> 0, -0. -> -0., inf -> inf, -inf -> -1
log: -1 -> nan, 0 -> -inf, -0. -> -inf, 1 -> 0, inf -> inf
log10: -1 -> nan, 0 -> -inf, -0. -> -inf, 1 -> 0, inf -> inf
log1p: -2 -> nan, -1 -> -inf, -0. -> -0., 0 -> 0, inf -> inf
log2: -1 -> nan, 0 -> -inf, -0. -> -inf, 1 -> 0, inf -> inf
reciprocal: inf -> 0, -inf -> -0., 0 -> inf, -0. -> -inf
sign: nan -> nan, 0 -> 0, inf -> 1, -inf -> -1
sin: 0 -> 0, -0. -> -0., inf -> nan, -inf -> nan
sinh: 0 -> 0, -0. -> -0., inf -> inf, -inf -> -inf
sqrt: -1 -> nan, 0 -> 0, -0. -> -0., inf -> inf
tan: 0 -> 0, -0. -> -0., inf -> nan, -inf -> nan
tanh: 0 -> 0, -0. -> -0., inf -> 1, -inf -> -1
isnan: nan -> True, inf -> False
isfinite: nan -> False, inf -> False, -inf -> False, 0 -> True
isinf: inf -> True, -inf -> True, nan -> False
signbit: 0 -> False, -0. -> True, inf -> False, -inf -> True
"""

BINARY = """
add: inf -inf -> nan, inf 1 -> inf, -0. -0. -> -0., -0. 0 -> 0, 1 -1 -> 0
atan2: 1 0 -> pi/2, 1 -0. -> pi/2, 0 1 -> 0, 0 0 -> 0, 0 -0. -> pi, 0 -1 -> pi
atan2: -0. 1 -> -0., -0. 0 -> -0., -0. -0. -> -pi
atan2: -0. -1 -> -pi, -1 0 -> -pi/2, -1 -0. -> -pi/2, 1 inf -> 0
atan2: 1 -inf -> pi, -1 inf -> -0., -1 -inf -> -pi
atan2: inf 1 -> pi/2, -inf 1 -> -pi/2, inf inf -> pi/4
atan2: inf -inf -> 3*pi/4, -inf inf -> -pi/4, -inf -inf -> -3*pi/4
copysign: 3 -0. -> -3, -3 0 -> 3, 0 -1 -> -0., nan 1 -> nan, inf -1 -> -inf
divide: inf inf -> nan, 0 0 -> nan, 0 1 -> 0, -0. 1 -> -0.
divide: 1 0 -> inf, 1 -0. -> -inf, 1 inf -> 0, -1 inf -> -0.
floor_divide: 0 0 -> nan, -0. 0 -> nan, 0 -0. -> nan, 0 1 -> 0
floor_divide: -0. 1 -> -0., 0 -1 -> -0., -0. -1 -> 0
floor_divide: 1 0 -> inf, 1 -0. -> -inf, -1 0 -> -inf, -1 -0. -> inf
floor_divide: inf 0 -> inf, -inf 0 -> -inf, inf -0. -> -inf
floor_divide: inf 1 -> inf, inf -1 -> -inf, -inf 1 -> -inf
floor_divide: -inf -1 -> inf, inf inf -> nan, inf -inf -> nan
floor_divide: 1 inf -> 0, 1 -inf -> -0., -1 inf -> -0., -1 -inf -> 0
floor_divide: 0 inf -> 0, -0. inf -> -0., 0 -inf -> -0.
floor_divide: nan 1 -> nan, 1 nan -> nan, nan inf -> nan, inf nan -> nan, 7 2 -> 3, -7 2 -> -4
hypot: inf nan -> inf, nan -inf -> inf, 0 -2 -> 2, nan 1 -> nan, -0. 0 -> 0
logaddexp: nan 1 -> nan, inf 1 -> inf, 1 inf -> inf, -inf 1 -> 1, inf nan -> nan
maximum: nan 1 -> nan, 1 nan -> nan, inf 1 -> inf
minimum: nan 1 -> nan, 1 nan -> nan, -inf 1 -> -inf
multiply: inf 0 -> nan, -inf -0. -> nan, inf -1 -> -inf, -1 0 -> -0., -1 -1 -> 1
nextafter: nan 1 -> nan, 1 nan -> nan, 0 -0. -> -0., -0. 0 -> 0, 1 1 -> 1
pow: 2 nan -> nan, nan 0 -> 1, inf -0. -> 1
pow: 2 inf -> inf, 2 -inf -> 0, 1 inf -> 1, 0.5 inf -> 0, 0.5 -inf -> inf, inf 1 -> inf
pow: inf -1 -> 0, -inf 3 -> -inf, -inf 2 -> inf, -inf -3 -> -0., -inf -2 -> 0
pow: 0 1 -> 0, 0 -1 -> inf, -0. 3 -> -0., -0. 2 -> 0
pow: -0. -3 -> -inf, -0. -2 -> inf, -2 0.5 -> nan, nan 1 -> nan
remainder: nan 1 -> nan, 1 nan -> nan, nan inf -> nan
remainder: inf nan -> nan, inf inf -> nan, inf -inf -> nan
remainder: 0 0 -> nan, -0. 0 -> nan, 1 0 -> nan, 1 -0. -> nan
remainder: -1 0 -> nan, inf 1 -> nan, -inf 1 -> nan, inf -1 -> nan
remainder: 0 1 -> 0, -0. 1 -> 0, 0 -1 -> -0., -0. -1 -> -0.
remainder: 2 1 -> 0, -2 1 -> 0, 2 -1 -> -0., -2 -1 -> -0.
remainder: 1 inf -> 1, 1 -inf -> -inf, -1 inf -> inf, -1 -inf -> -1
remainder: 0 inf -> 0, -0. inf -> 0, 0 -inf -> -0.
subtract: inf inf -> nan, 0 0 -> 0, -0. 0 -> -0.
"""

COMPLEX = """
abs: inf+nanj -> inf, nan-infj -> inf, -0-0j -> 0, nan+1j -> nan
conj: 1+0j -> 1-0j, inf-infj -> inf+infj
exp: 0+0j -> 1+0j, 1+infj -> nan+nanj, inf+0j -> inf+0j, -inf+1j -> 0+0j, nan+0j -> nan+0j
expm1: 0+0j -> 0+0j, -0+0j -> 0+0j, 1+infj -> nan+nanj
expm1: 1+nanj -> nan+nanj, inf+0j -> inf+0j, nan+0j -> nan+0j
expm1: -inf+1j -> -1+0j, -inf+2j -> -1+0j, -inf+4j -> -1-0j
expm1: inf+1j -> inf+infj, inf+infj -> inf+nanj
expm1: inf+2j -> -inf+infj, nan+1j -> nan+nanj, nan+nanj -> nan+nanj
expm1: inf+nanj -> inf+nanj, 1+0j -> 1.718281828459045+0j
imag: 1-0j -> -0., 1+infj -> inf
log: -0+0j -> -inf+3.141592653589793j, 0+0j -> -inf+0j
log: 1+infj -> inf+1.5707963267948966j, inf+nanj -> inf+nanj
log: -inf+1j -> inf+3.141592653589793j, inf+1j -> inf+0j, -inf+infj -> inf+2.356194490192345j
real: -0+1j -> -0., inf+1j -> inf
sign: 0+0j -> 0+0j, 3+4j -> 0.6+0.8j
sinh: 0+0j -> 0+0j, inf+0j -> inf+0j
cosh: 0+0j -> 1+0j, inf+0j -> inf+0j
sqrt: 0+0j -> 0+0j, -0+0j -> 0+0j, 1+infj -> inf+infj, -inf+1j -> 0+infj, inf+1j -> inf+0j
tanh: 0+0j -> 0+0j, inf+1j -> 1+0j, inf+2j -> 1+0j, inf+4j -> 1+0j
tanh: inf-2j -> 1-0j, -inf+2j -> -1+0j, -inf-2j -> -1-0j
tanh: 1+infj -> nan+nanj, 1+nanj -> nan+nanj, nan+0j -> nan+0j
tanh: nan+1j -> nan+nanj, nan+nanj -> nan+nanj
isnan: nan+0j -> True, 0+nanj -> True, inf+0j -> False
isinf: 0-infj -> True, nan+infj -> True, 1+0j -> False
isfinite: 0-infj -> False, 1+nanj -> False, 1+0j -> True
"""

# The standard leaves the sign of a part open.
UNSIGNED = """
sinh: 0+infj -> 0+nanj
expm1: -inf+infj -> -1+0j, -inf+nanj -> -1+0j
tanh: inf+infj -> 1+0j, inf+nanj -> 1+0j, -inf+infj -> -1+0j
"""


def cases(table: str, *options: Any) -> Iterator[Any]:
    for line in table.strip().splitlines():
        name, _, rest = line.partition(": ")
        for case in rest.split(", "):
            yield pytest.param(name, case, *options, id=f"{name}: {case}")


def number(text: str) -> Any:
    return complex(text) if text.endswith("j") else eval(text, {"inf": inf, "nan": nan, "pi": pi})


def check(name: str, case: str, device: str, dtype: str, signed: bool = True) -> None:
    arguments, _, result = case.partition(" -> ")
    inputs = [xgrad.asarray(number(text), dtype=dtype, device=device) for text in arguments.split()]
    want = number(result)
    for shape in ((), (19,)):  # vector kernels are other code
        out = getattr(xgrad, name)(*[xgrad.broadcast_to(x, shape) for x in inputs]).cpu().numpy()
        for got, expected in [(out.real, want.real), (out.imag, want.imag)][
            : 1 + np.iscomplexobj(want)
        ]:
            np.testing.assert_allclose(got, expected, rtol=1e-6)
            assert (
                not signed
                or expected != expected
                or (np.signbit(got) == np.signbit(expected)).all()
            ), got


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "case"), [*cases(UNARY), *cases(BINARY)])
def test_values_of_real_numbers(name: str, case: str, dtype: str, device: str) -> None:
    check(name, case, device, dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("name", "case", "signed"), [*cases(COMPLEX, True), *cases(UNSIGNED, False)]
)
def test_values_of_complex_numbers(
    name: str, case: str, signed: bool, dtype: str, device: str
) -> None:
    check(name, case, device, dtype, signed)


@pytest.mark.parametrize(
    ("name", "inputs", "gradients"),
    [
        ("abs", [0.0], [0]),
        ("abs", [0j], [0]),
        ("sign", [0j], [0]),
        ("hypot", [0.0, -0.0], [0, 0]),
        ("atan2", [0.0, 0.0], [0, 0]),
        ("atan2", [1e-30, 0.0], [0, -1e30]),  # its square is 0
        ("hypot", [1e30, 1e30], [0.5**0.5, 0.5**0.5]),  # its square overflows
        ("copysign", [0.0, -1.0], [0, 0]),
        ("copysign", [-3.0, 1.0], [-1, 0]),
        ("logaddexp", [inf, 1.0], [1, 0]),
        ("logaddexp", [-1e4, 1e4], [0, 1]),
        ("maximum", [1.0, 1.0], [0.5, 0.5]),
        ("pow", [0.0, 0.0], [0, 0]),
        (
            "remainder",
            [-1.0, inf],
            [1, 1],
        ),  # the result is x1 + x2 of every x2 above 1, though -1 // inf is -0.
        ("remainder", [1.0, -inf], [1, 1]),
        ("remainder", [1.0, inf], [1, 0]),
    ],
)
def test_derivatives_at_special_points(
    name: str, inputs: list[Any], gradients: list[float], device: str
) -> None:
    xs = [xgrad.asarray(x, device=device, requires_grad=True) for x in inputs]
    out = getattr(xgrad, name)(*xs)
    for create_graph in (True, False):
        computed = xgrad.autograd.grad(out, xs, xgrad.ones_like(out), create_graph=create_graph)
        np.testing.assert_allclose([g.item() for g in computed], gradients, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_nan_of_a_step_reaches_all_later_states_of_a_recurrent_layer(
    nonlinearity: str, device: str
) -> None:
    layer = xgrad.nn.RNN(2, 3, nonlinearity=nonlinearity, device=device)
    states, _ = layer(xgrad.asarray([[1.0, 2.0], [nan, 0.0], [3.0, 1.0]], device=device))
    assert xgrad.all(xgrad.isnan(states), axis=1).tolist() == [False, True, True]


def test_gradients_of_clip_sum_to_one(device: str) -> None:
    """A shift of all three inputs shifts the result by the same amount."""
    grid = np.stack(np.meshgrid(*[np.array([1.0, 2.0, 3.0])] * 3)).reshape(3, -1)
    x, low, high = (
        xgrad.Tensor(row, dtype="float64", device=device, requires_grad=True) for row in grid
    )
    xgrad.clip(x, low, high).sum().backward()
    assert (x.grad + low.grad + high.grad).tolist() == [1.0] * 27
