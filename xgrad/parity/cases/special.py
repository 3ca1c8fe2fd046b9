"""Cases of special functions; an input without a derivative in closed form is a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from xgrad import special
from xgrad.parity import op_case as forms
from xgrad.parity import pytorch
from xgrad.parity.op_case import SCIPY_KERNEL, OpCase, Range, Torch, a, op_case, sample
from xgrad.parity.pytorch import like, torch
from xgrad.parity.tolerance import COMPOSED, EXACT, SPECIAL, Tolerance

PROBABILITY = (0.05, 0.95)
INNER = (0.15, 0.85)  # where differences are accurate enough for inverses with heavy tails
TRIGAMMA = (1e-8, "PyTorch's trigamma is off by up to 5e-10")


def unary(
    name: str,
    low: float = -2,
    high: float = 2,
    torch: Torch = "",
    tolerance: Tolerance = SPECIAL,
    **fields: Any,
) -> OpCase:
    """Return the case of a function of one input."""
    fields = {"special_values": (), "needs": SCIPY_KERNEL, **fields}
    return forms.unary(f"special.{name}", tolerance, torch, low, high, **fields)


def binary(
    name: str,
    first: Range,
    second: Range,
    torch: Torch,
    tolerance: Tolerance = SPECIAL,
    **fields: Any,
) -> OpCase:
    """Return the case of a function of two inputs that broadcast, or of an input and a scalar."""
    fields = {
        "scalars": ((first[1], second[1]),),
        "special_values": (),
        "needs": SCIPY_KERNEL,
        **fields,
    }
    return forms.binary(f"special.{name}", tolerance, torch, first, second, **fields)


def last(
    name: str,
    numbers: tuple[float, ...],
    low: float,
    high: float,
    torch: bool = False,
    tolerance: Tolerance = SPECIAL,
) -> OpCase:
    """Return the case of a function whose last input alone has a derivative.

    The other inputs are numbers.
    """
    function, torch_function = getattr(special, name), pytorch.with_scalars(f"special.{name}")
    spelled = (lambda x: torch_function(*numbers, x)) if torch else None
    return unary(name, low, high, spelled, tolerance, fn=lambda x: function(*numbers, x))


def _log_beta(a: Any, b: Any) -> Any:
    a, b = like(a, b), like(b, a)
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)


def _rel_entr(x: Any, y: Any) -> Any:
    return x * torch.log(like(x, y) / like(y, x))


def _huber(delta: Any, r: Any) -> Any:
    r = like(r, delta)
    return torch.where(abs(r) <= delta, r**2 / 2, delta * (abs(r) - delta / 2))


def _pseudo_huber(delta: Any, r: Any) -> Any:
    return like(delta, r) ** 2 * (torch.sqrt(1 + (like(r, delta) / delta) ** 2) - 1)


def _weighted_logsumexp(a: Any, b: Any = None, **options: Any) -> Any:
    return special.logsumexp(a, b=b, **options)


def _softmax(x: Any, axis: Any = None) -> Any:
    """Return the softmax along several axes; PyTorch's function takes one axis."""
    exponentials = torch.exp(x)
    return exponentials / torch.sum(exponentials, dim=pytorch.all_axes(x, axis), keepdim=True)


CASES: list[OpCase] = [
    # the error function and the normal distribution
    *[unary(name) for name in ("erf", "erfc", "erfcx", "ndtr")],
    # where PyTorch's derivative cancels
    unary("erfcx of large numbers", 2, 6, None, special_values=(3.0, 3.01, 1e2, 1e4, 1e6)),
    unary("erfinv", -0.9, 0.9),
    unary("erfcinv", 0.1, 1.9, lambda y: torch.special.erfinv(1 - y)),
    *[unary(name, *PROBABILITY) for name in ("ndtri", "logit")],
    unary("log_ndtr", -8, 3),
    unary("log_expit", torch="nn.functional.logsigmoid", tolerance=COMPOSED, needs=()),
    # powers
    unary("cbrt", 0.2, 3, lambda x: x ** (1 / 3)),
    unary("exp2"),
    unary("exp10", torch=lambda x: 10**x),
    unary("cosm1", torch=lambda x: -2 * torch.sin(x / 2) ** 2),
    unary("sinc", 0.2, 1.3, needs=(), complex=True),
    # gamma and beta functions
    unary("gamma", 0.2, 4, lambda z: torch.exp(torch.lgamma(z))),
    op_case(
        "special.gamma of negatives",
        SPECIAL,
        sample(a(4, low=-0.9, high=-0.1)),
        sample(a(4, low=-1.9, high=-1.1)),
        torch=None,
        needs=SCIPY_KERNEL,
    ),
    unary("gammaln", 0.2, 4),
    unary("loggamma", 0.2, 4, "lgamma"),
    unary("gammasgn", 0.2, 4, lambda x: torch.sign(x), EXACT),
    unary("psi", 0.2, 4, torch_rtol=TRIGAMMA),
    *[
        unary(
            "polygamma" + (f" of order {n}" if n else ""),
            0.3,
            4,
            lambda x, n=n: torch.special.polygamma(n, x),
            fn=lambda x, n=n: special.polygamma(n, x),
            torch_rtol=TRIGAMMA if n < 2 else None,
        )
        for n in range(4)
    ],
    binary("beta", (0.3, 3), (0.3, 3), lambda a, b: torch.exp(_log_beta(a, b))),
    binary("betaln", (0.3, 3), (0.3, 3), _log_beta),
    *[last(name, (2.5,), 0.1, 4, torch=True) for name in ("gammainc", "gammaincc")],
    last("gammaincinv", (2.5,), *PROBABILITY),
    last("gammainccinv", (2.5,), *INNER),
    *[last(name, (2.5, 1.5), *PROBABILITY) for name in ("betainc", "betaincc", "betaincinv")],
    last("zeta", (2.5,), 0.3, 4, torch=True),
    # exponential integrals, Bessel functions
    *[unary(name) for name in ("i0", "i0e", "i1", "i1e")],
    # where PyTorch's derivative cancels, too
    *[
        unary(f"{name} of large numbers", 32, 90, None, special_values=(3e3, 1e6))
        for name in "i0e i1e k0e k1e".split()
    ],
    *[unary(name, 0.2, 4, None) for name in "exp1 expi j0 j1 y0 y1 k0 k0e k1 k1e".split()],
    *[last(name, (2.0,), -2, 2) for name in ("iv", "ive", "jv")],
    *[last(name, (2.0,), 0.3, 4) for name in ("yv", "kv", "kve")],
    # logarithms and losses
    binary("xlogy", (-2, 2), (0.2, 3), "special.xlogy", COMPOSED, needs=()),
    binary("xlog1py", (-2, 2), (-0.8, 3), "special.xlog1py", COMPOSED, needs=()),
    unary("entr", 0.2, 3, tolerance=COMPOSED, needs=()),
    binary("rel_entr", (0.2, 3), (0.2, 3), _rel_entr, COMPOSED, needs=()),
    binary(
        "kl_div", (0.2, 1.2), (1.5, 3), lambda x, y: _rel_entr(x, y) - x + y, COMPOSED, needs=()
    ),
    binary("huber", (0.2, 2), (-3, 3), _huber, COMPOSED, needs=()),
    binary(
        "pseudo_huber",
        (0.2, 2),
        (-3, 3),
        _pseudo_huber,
        COMPOSED,
        needs=(),
        torch_rtol=(1e-7, "the definition, as written for PyTorch, cancels for small residuals"),
    ),
    # along axes
    *[
        op_case(
            f"special.{name}",
            COMPOSED,
            sample((2, 3)),
            sample((2, 3), axis=0),
            sample((2, 3, 2), axis=(0, -1)),
            sample(()),
            sample((2, 3), axis=1, layout="transposed"),
            torch=torch_function,
        )
        for name, torch_function in (
            ("softmax", _softmax),
            ("log_softmax", lambda x, axis=None: torch.log(_softmax(x, axis))),
        )
    ],
    op_case(
        "special.logsumexp",
        COMPOSED,
        sample((2, 3)),
        sample((2, 3), axis=0, keepdims=True),
        sample(()),
        sample((2, 3), a(3, low=0.5, key=1)),
        sample((2, 1), a(2, 3, low=0.5, key=1), axis=1),
        sample((2, 3, 2), 2.0, axis=(0, 2)),
        sample((3,), np.array([3.0, -0.1, 0.0])),
        fn=_weighted_logsumexp,
        torch=pytorch.logsumexp,
        complex=True,
    ),
]
