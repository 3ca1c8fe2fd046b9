"""Cases of elementwise functions."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.op_case import (
    INF,
    MASK,
    NAN,
    SPECIAL_VALUES,
    OpCase,
    a,
    binary,
    ints,
    op_case,
    sample,
    unary,
    z,
)
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import (
    COMPOSED,
    EXACT,
    FUNCTIONS,
    POWERS,
    ROOTS,
    ROUNDED,
    SATURATING,
    SELECTED,
)

#: Integer exponents, with the range of the base: differences of high powers are inexact near 0.
WHOLE_POWERS = [
    (3, -2, 2),
    (3.0, -2, 2),
    (4, -2, 2),
    (5, -2, -0.5),
    (8, -2, -0.5),
    (-2, -2, -0.5),
    (-3.0, -2, -0.5),
]

CASES: list[OpCase] = [
    # arithmetic
    *[binary(name, ROUNDED, complex=True) for name in ("add", "subtract", "multiply")],
    binary("divide", ROUNDED, second=(0.5, 2), complex=True),
    binary(
        "pow",
        POWERS,
        first=(0.2, 2),
        scalars=((2.0, 2.0), (3, 3), (-1.5, -1.5)),
        special_values=(0.0, 1.0, 0.5, 2.0, 3.0, -1.0, -2.0),
        special_gradient=False,
        complex=True,
    ),
    op_case(
        "pow of negatives",
        POWERS,
        sample(a(3, low=-2, high=-1), 3),
        sample(a(3, low=-2, high=-1), 2.0),
        sample(np.zeros(2), 2),
        sample(np.zeros(2), 1),
        sample((3,), 0),
        sample((3,), 1),
    ),
    *[
        unary(
            f"pow to {exponent}",
            POWERS,
            lambda x, y=exponent: torch.pow(x, y),
            low,
            high,
            fn=lambda x, y=exponent: xgrad.pow(x, y),
            # each value twice, because NumPy's `pow` differs for few elements
            special_values=2 * SPECIAL_VALUES,
        )
        for exponent, low, high in WHOLE_POWERS
    ],
    op_case(
        "pow of 0",
        POWERS,
        sample(np.array([-1.0, 0.0, 0.5, 2.0])),
        fn=lambda y: xgrad.pow(0.0, y),
        torch=lambda y: torch.pow(torch.zeros_like(y), y),
        no_derivative="at -1 it is infinite",
    ),
    *[unary(name, EXACT, complex=True) for name in ("negative", "positive")],
    unary("abs", EXACT, special_values=SPECIAL_VALUES[:-1], complex=True),  # no NaN, as for sign
    unary("square", ROUNDED, complex=True),
    unary("reciprocal", ROUNDED, low=0.5, complex=True),
    binary("remainder", ROUNDED, first=(0.6, 2), scalars=()),
    *[binary(name, SELECTED) for name in ("maximum", "minimum")],
    # exponentials, roots, trigonometry
    *[
        unary(name, FUNCTIONS, complex=True)
        for name in "exp expm1 sin cos atan sinh cosh asinh".split()
    ],
    *[unary(name, FUNCTIONS, low=0.2, complex=True) for name in ("log", "log2", "log10")],
    unary("log1p", FUNCTIONS, low=-0.5, complex=True),
    binary("logaddexp", COMPOSED, complex=True),
    unary("sqrt", ROOTS, low=0.2, complex=True),
    binary("hypot", FUNCTIONS, first=(0.2, 2), special_values=SPECIAL_VALUES[2:]),
    unary("tan", FUNCTIONS, low=-1, high=1, complex=True),
    *[
        unary(name, FUNCTIONS, low=-0.9, high=0.9, complex=True)
        for name in ("asin", "acos", "atanh")
    ],
    binary("atan2", FUNCTIONS, first=(0.2, 2)),
    unary("tanh", SATURATING, complex=True),
    unary(
        "acosh", FUNCTIONS, low=1.2, high=3, special_values=(1.0, 2.0, 1e4, INF, NAN), complex=True
    ),
    unary("sigmoid", COMPOSED, complex=True),
    unary("relu", EXACT),
    unary(
        "softplus",
        COMPOSED,
        "nn.functional.softplus",
        special_values=(0.0, 1.0, -1.0, 15.0, -15.0, 1e4, -1e4, INF, NAN),
    ),
    # parts of complex numbers
    *[unary(name, EXACT, complex=True) for name in ("real", "conj")],
    op_case(
        "imag",
        EXACT,
        sample(z(2, 3)),
        sample(z()),
        sample(z(0)),
        sample(z(2, 3), layout="transposed"),
    ),
    # steps
    # sign of NaN: NaN by the standard, 0 in PyTorch
    unary("sign", EXACT, special_values=SPECIAL_VALUES[:-1], complex=True),
    *[unary(name, EXACT) for name in ("floor", "ceil", "trunc")],
    unary(
        "round",
        EXACT,
        lambda x: (
            torch.complex(torch.round(x.real), torch.round(x.imag))
            if x.is_complex()
            else torch.round(x)
        ),
        complex=True,
    ),
    binary("copysign", SELECTED, special_values=SPECIAL_VALUES[:-3]),
    # selection
    op_case(
        "clip",
        SELECTED,
        sample((2, 3), -1.0, 1.0),
        sample((2, 3), None, 0.5),
        sample((2, 3), -0.5, None),
        sample((2, 3)),
        sample((2, 3), a(3, low=-1, high=0), a(2, 1, low=0, high=1)),
        sample((4,), (4,), None),
        sample((4,), (4,), (4,)),
        sample((), -0.1, 0.1),
        sample((0,), -1.0, 1.0),
        torch=pytorch.clip,
    ),
    # without a derivative
    *[binary(name, EXACT, differentiable=False, complex=True) for name in ("equal", "not_equal")],
    *[
        binary(name, EXACT, differentiable=False)
        for name in ("less", "less_equal", "greater", "greater_equal")
    ],
    # for infinities, PyTorch follows Python
    binary(
        "floor_divide",
        EXACT,
        second=(0.5, 2),
        differentiable=False,
        special_values=(0.0, -0.0, 1.0, -1.0, NAN),
    ),
    *[
        unary(name, EXACT, differentiable=False, complex=True)
        for name in ("isnan", "isinf", "isfinite")
    ],
    unary("signbit", EXACT, differentiable=False),
    *[
        op_case(
            name,
            EXACT,
            sample(ints(6, -5), ints(3, 1)),
            sample(ints(6, -5), 2),
            differentiable=False,
        )
        for name in ("bitwise_left_shift", "bitwise_right_shift")
    ],
    *[
        op_case(name, EXACT, sample(MASK, ~MASK), sample(MASK, MASK[0]), differentiable=False)
        for name in (
            "logical_and",
            "logical_or",
            "logical_xor",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
        )
    ],
    *[
        op_case(name, EXACT, sample(MASK), differentiable=False)
        for name in ("logical_not", "bitwise_invert")
    ],
    op_case(
        "bitwise of integers",
        EXACT,
        sample(ints(6, 5), ints(3, 4)),
        sample(ints(6, 5), 3),
        fn=xgrad.bitwise_and,
        torch="bitwise_and",
        differentiable=False,
    ),
]
