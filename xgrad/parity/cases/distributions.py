"""Cases of distributions, hypergeometric functions and angles in degrees.

An input without a derivative in closed form is a number.
"""

from __future__ import annotations

import math

from xgrad import special
from xgrad.parity.cases.special import INNER, PROBABILITY, binary, last, unary
from xgrad.parity.op_case import SCIPY_KERNEL, SHAPES, OpCase, Sample, op_case, uniform
from xgrad.parity.pytorch import torch
from xgrad.parity.tolerance import COMPOSED, DISTRIBUTIONS, SPECIAL

DEGREE = math.pi / 180

CASES: list[OpCase] = [
    # discrete distributions
    *[
        last(name, (2, 5), *PROBABILITY, tolerance=DISTRIBUTIONS)
        for name in ("bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri")
    ],
    *[last(name, (2,), 0.2, 5, tolerance=DISTRIBUTIONS) for name in ("pdtr", "pdtrc")],
    last("pdtri", (2,), *PROBABILITY, tolerance=DISTRIBUTIONS),
    # continuous distributions
    *[last(name, (3.0,), 0.2, 5, tolerance=DISTRIBUTIONS) for name in ("chdtr", "chdtrc")],
    last("chdtri", (3.0,), *PROBABILITY, tolerance=DISTRIBUTIONS),
    *[last(name, (1.5, 2.5), 0.2, 4, tolerance=DISTRIBUTIONS) for name in ("gdtr", "gdtrc")],
    *[last(name, (2.5, 3.5), 0.2, 4, tolerance=DISTRIBUTIONS) for name in ("fdtr", "fdtrc")],
    last("fdtri", (2.5, 3.5), *PROBABILITY, tolerance=DISTRIBUTIONS),
    last("stdtr", (3.5,), -3, 3, tolerance=DISTRIBUTIONS),
    last("stdtrit", (3.5,), *INNER, tolerance=DISTRIBUTIONS),
    # transformations
    binary(
        "boxcox",
        (0.3, 3),
        (-1.5, 1.5),
        lambda x, lmbda: torch.expm1(torch.special.xlogy(lmbda, x)) / lmbda,
    ),
    binary(
        "boxcox1p",
        (0.3, 3),
        (-1.5, 1.5),
        lambda x, lmbda: torch.expm1(torch.special.xlog1py(lmbda, x)) / lmbda,
    ),
    binary("inv_boxcox", (0.3, 2), (0.2, 1.5), lambda y, lmbda: (1 + y * lmbda) ** (1 / lmbda)),
    binary(
        "inv_boxcox1p", (0.3, 2), (0.2, 1.5), lambda y, lmbda: (1 + y * lmbda) ** (1 / lmbda) - 1
    ),
    # hypergeometric functions
    last("hyp1f1", (1.5, 2.5), -2, 2),
    last("hyp2f1", (1.5, 0.5, 2.5), -0.7, 0.7),
    unary("exprel", -2, 2, lambda x: torch.expm1(x) / x),
    unary("spence", 0.3, 1.8, None),
    unary("ellipk", 0.05, 0.8, None),
    unary("ellipkm1", 0.2, 0.95, None),
    last("expn", (2,), 0.2, 4),
    last("lpmv", (1, 3.0), -0.8, 0.8),
    last("yn", (2,), 0.3, 4),
    # functions related to the gamma function
    unary("rgamma", 0.2, 4, lambda z: torch.exp(-torch.lgamma(z))),
    binary("binom", (3, 5), (0.5, 2), None),
    binary("poch", (0.3, 3), (0.3, 3), None),
    op_case(
        "special.multigammaln",
        COMPOSED,
        *[
            Sample((uniform(shape, 1.3, 4, "multigammaln"),), layout=layout)
            for shape, layout in SHAPES
        ],
        fn=lambda a: special.multigammaln(a, 3),
        torch=lambda a: torch.special.multigammaln(a, 3),
        needs=SCIPY_KERNEL,
    ),
    # angles
    unary("sindg", -80, 80, lambda x: torch.sin(x * DEGREE)),
    unary("cosdg", -80, 80, lambda x: torch.cos(x * DEGREE)),
    unary("tandg", -70, 70, lambda x: torch.tan(x * DEGREE)),
    op_case(
        "special.radian",
        SPECIAL,
        *[
            Sample(tuple(uniform(shape, 1, 50, "radian", i) for i in range(3)), layout=layout)
            for shape, layout in SHAPES
        ],
        torch=lambda d, m, s: (d + m / 60 + s / 3600) * DEGREE,
        needs=SCIPY_KERNEL,
    ),
    unary("cotdg", 20, 80, lambda x: 1 / torch.tan(x * DEGREE)),
]
