"""Rows of functions that work element by element."""

from __future__ import annotations

import numpy as np

import xgrad
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import INF, MASK, NAN, SPECIAL, Op, Sample, a, binary, ints, row, unary, z
from xgrad.parity.tolerance import COMPOSED, EXACT, FUNCTIONS, POWERS, ROOTS, ROUNDED, SATURATING, SELECTED

ROWS: list[Op] = [
    # arithmetic
    binary("add", ROUNDED, complex=True),
    binary("subtract", ROUNDED, complex=True),
    binary("multiply", ROUNDED, complex=True),
    binary("divide", ROUNDED, low2=0.5, complex=True),
    binary("pow", POWERS, low=0.2, scalars=(2.0, 3, -1.5), special=(0.0, 1.0, 0.5, 2.0, 3.0, -1.0, -2.0), special_gradient=False, complex=True),
    row("pow of negatives", POWERS, xgrad.pow, "pow", Sample((a(3, low=-2, high=-1), 3)), Sample((a(3, low=-2, high=-1), 2.0)),
        Sample((np.zeros(2), 2)), Sample((np.zeros(2), 1)), Sample((a(3), 0)), Sample((a(3), 1))),
    row("pow of 0", POWERS, lambda y: xgrad.pow(0.0, y), lambda y: torch.pow(torch.zeros_like(y), y), Sample((np.array([-1.0, 0.0, 0.5, 2.0]),)), no_derivative="at -1 it is infinite"),
    unary("negative", EXACT, complex=True),
    unary("positive", EXACT, complex=True),
    unary("abs", EXACT, special=SPECIAL[:-1], complex=True),  # of NaN: as sign
    unary("square", ROUNDED, complex=True),
    unary("reciprocal", ROUNDED, low=0.5, complex=True),
    binary("remainder", ROUNDED, low=0.6, low2=0.6, scalars=()),
    binary("maximum", SELECTED),
    binary("minimum", SELECTED),
    # exponentials, roots, trigonometry
    unary("exp", FUNCTIONS, complex=True),
    unary("expm1", FUNCTIONS, complex=True),
    unary("log", FUNCTIONS, low=0.2, complex=True),
    unary("log1p", FUNCTIONS, low=-0.5, complex=True),
    unary("log2", FUNCTIONS, low=0.2, complex=True),
    unary("log10", FUNCTIONS, low=0.2, complex=True),
    binary("logaddexp", COMPOSED, complex=True),
    unary("sqrt", ROOTS, low=0.2, complex=True),
    binary("hypot", ROOTS, low=0.2, special=SPECIAL[2:]),
    unary("sin", FUNCTIONS, complex=True),
    unary("cos", FUNCTIONS, complex=True),
    unary("tan", FUNCTIONS, low=-1, high=1, complex=True),
    unary("asin", FUNCTIONS, low=-0.9, high=0.9, complex=True),
    unary("acos", FUNCTIONS, low=-0.9, high=0.9, complex=True),
    unary("atan", FUNCTIONS, complex=True),
    binary("atan2", FUNCTIONS, low=0.2),
    unary("sinh", FUNCTIONS, complex=True),
    unary("cosh", FUNCTIONS, complex=True),
    unary("tanh", SATURATING, complex=True),
    unary("asinh", FUNCTIONS, complex=True),
    unary("acosh", FUNCTIONS, low=1.2, high=3, special=(1.0, 2.0, 1e4, INF, NAN), complex=True),
    unary("atanh", FUNCTIONS, low=-0.9, high=0.9, complex=True),
    unary("sigmoid", COMPOSED, complex=True),
    unary("relu", EXACT),
    unary("softplus", COMPOSED, "nn.functional.softplus", special=(0.0, 1.0, -1.0, 15.0, -15.0, 1e4, -1e4, INF, NAN)),
    # parts of complex numbers
    unary("real", EXACT, complex=True),
    unary("conj", EXACT, complex=True),
    row("imag", EXACT, xgrad.imag, "imag", Sample((z(2, 3),)), Sample((z(),)), Sample((z(0),)), Sample((z(2, 3),), {}, "transposed")),
    # steps
    unary("sign", EXACT, pytorch.sign, special=SPECIAL[:-1], complex=True),  # of NaN: NaN by the standard, 0 in PyTorch
    unary("floor", EXACT),
    unary("ceil", EXACT),
    unary("trunc", EXACT),
    unary("round", EXACT, pytorch.round, complex=True),
    binary("copysign", SELECTED, special=SPECIAL[:-3]),
    # choosing
    row("clip", SELECTED, xgrad.clip, pytorch.clip,
        Sample((a(2, 3), -1.0, 1.0)), Sample((a(2, 3), None, 0.5)), Sample((a(2, 3), -0.5, None)), Sample((a(2, 3),)),
        Sample((a(2, 3), a(3, low=-1, high=0), a(2, 1, low=0, high=1))), Sample((a(4), a(4, key=1), None)),
        Sample((a(4), a(4, key=1), a(4, key=2))), Sample((a(), -0.1, 0.1)), Sample((a(0), -1.0, 1.0))),
    # without a derivative
    *[binary(name, EXACT, torch_name, differentiable=False, complex=True) for name, torch_name in (("equal", "eq"), ("not_equal", "ne"))],
    *[binary(name, EXACT, torch_name, differentiable=False)
      for name, torch_name in [("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge")]],
    binary("floor_divide", EXACT, low2=0.5, differentiable=False, special=(0.0, -0.0, 1.0, -1.0, NAN)),  # of infinities PyTorch follows Python
    *[unary(name, EXACT, differentiable=False, complex=True) for name in ("isnan", "isinf", "isfinite")],
    unary("signbit", EXACT, differentiable=False),
    *[row(name, EXACT, getattr(xgrad, name), name, Sample((ints(6, -5), ints(3, 1))), Sample((ints(6, -5), 2)), differentiable=False)
      for name in ("bitwise_left_shift", "bitwise_right_shift")],
    *[row(name, EXACT, getattr(xgrad, name), name, Sample((MASK, ~MASK)), Sample((MASK, MASK[0])), differentiable=False)
      for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")],
    *[row(name, EXACT, getattr(xgrad, name), other, Sample((MASK,)), differentiable=False)
      for name, other in (("logical_not", "logical_not"), ("bitwise_invert", "bitwise_not"))],
    row("bitwise of integers", EXACT, xgrad.bitwise_and, "bitwise_and", Sample((ints(6, 5), ints(3, 4))), Sample((ints(6, 5), 3)), differentiable=False),
]  # fmt: skip
