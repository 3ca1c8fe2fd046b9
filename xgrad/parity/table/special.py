"""Rows of special functions. Where a derivative has no closed form, that input is a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xgrad import special
from xgrad.parity import pytorch
from xgrad.parity.pytorch import torch
from xgrad.parity.row import PAIRS, SHAPES, Op, Sample, a, row, values
from xgrad.parity.tolerance import COMPOSED, EXACT, SPECIAL, Tolerance

PROBABILITY = (0.05, 0.95)
INNER = (0.15, 0.85)  # where differences are good enough for inverses with heavy tails
TRIGAMMA = (1e-8, "PyTorch's trigamma is off by up to 5e-10")


def unary(
    name: str,
    low: float = -2,
    high: float = 2,
    torch: str | Callable[..., Any] | None = "",
    tolerance: Tolerance = SPECIAL,
    fn: Callable[..., Any] | None = None,
    kernel: bool = True,
    **rest: Any,
) -> Op:
    """Return the row of a function of one input, which PyTorch by default calls the same."""
    samples = [Sample((values(shape, low, high, name),), layout=layout) for shape, layout in SHAPES]
    spelled = f"special.{name}" if torch == "" else torch
    function = fn or getattr(special, name)
    wide = ((low, high),)
    return Op(f"special.{name}", function, spelled, samples, tolerance, wide=wide, kernel=kernel, **rest)


def binary(
    name: str,
    first: tuple[float, float],
    second: tuple[float, float],
    torch: str | Callable[..., Any] | None,
    tolerance: Tolerance = SPECIAL,
    kernel: bool = True,
    **rest: Any,
) -> Op:
    """Return the row of a function of two inputs that broadcast, or of one and a scalar."""
    samples = []
    for shape, other, layout in PAIRS:
        pair = values(shape, *first, name, 1), values(other, *second, name, 2)
        samples.append(Sample(pair, layout=layout))
    samples.append(Sample((values((3,), *first, name, 3), second[1])))
    samples.append(Sample((first[1], values((3,), *second, name, 4))))
    spelled = pytorch.binary(torch) if isinstance(torch, str) else torch
    function = getattr(special, name)
    wide = (first, second)
    return Op(f"special.{name}", function, spelled, samples, tolerance, wide=wide, kernel=kernel, **rest)


def last(
    name: str,
    numbers: tuple[float, ...],
    low: float,
    high: float,
    torch: bool = False,
    tolerance: Tolerance = SPECIAL,
    **rest: Any,
) -> Op:
    """Return the row of a function of which the last input alone has a derivative, the others being numbers."""
    function = getattr(special, name)
    theirs = pytorch.binary(f"special.{name}")
    samples = [Sample((values(shape, low, high, name),), layout=layout) for shape, layout in SHAPES]
    return Op(
        f"special.{name}", lambda x: function(*numbers, x), (lambda x: theirs(*numbers, x)) if torch else None,
        samples, tolerance, wide=((low, high),), kernel=True, **rest,
    )  # fmt: skip


def logsumexp(a: Any, b: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Weigh and add up exponentials, of which PyTorch has no weighted sum."""
    terms = torch.exp(a) if b is None else b * torch.exp(a)
    return torch.log(torch.sum(terms, dim=pytorch.axes(terms, axis), keepdim=keepdims))


def weighted(a: Any, b: Any = None, **options: Any) -> Any:
    """Give the weights as the second input of the row."""
    return special.logsumexp(a, b=b, **options)


ROWS: list[Op] = [
    # the error function and the normal distribution
    unary("erf"),
    unary("erfc"),
    unary("erfcx"),
    unary("erfinv", -0.9, 0.9),
    unary("erfcinv", 0.1, 1.9, lambda y: torch.special.erfinv(1 - y)),
    unary("ndtr"),
    unary("ndtri", *PROBABILITY),
    unary("log_ndtr", -8, 3),
    unary("logit", *PROBABILITY),
    unary("log_expit", torch="nn.functional.logsigmoid", tolerance=COMPOSED, kernel=False),
    # powers
    unary("cbrt", 0.2, 3, lambda x: x ** (1 / 3)),
    unary("exp2"),
    unary("exp10", torch=lambda x: 10**x),
    unary("cosm1", torch=lambda x: -2 * torch.sin(x / 2) ** 2),
    unary("sinc", 0.2, 1.3, kernel=False, complex=True),
    # gamma and beta functions
    unary("gamma", 0.2, 4, lambda z: torch.exp(torch.lgamma(z))),
    row("special.gamma of negatives", SPECIAL, special.gamma, None, Sample((a(4, low=-0.9, high=-0.1),)), Sample((a(4, low=-1.9, high=-1.1),)), kernel=True),
    unary("gammaln", 0.2, 4),
    unary("loggamma", 0.2, 4, "lgamma"),
    unary("gammasgn", 0.2, 4, lambda x: torch.sign(x), EXACT),
    unary("psi", 0.2, 4, loose=TRIGAMMA),
    *[row("special.polygamma" + (f" of order {n}" if n else ""), SPECIAL, lambda x, n=n: special.polygamma(n, x), lambda x, n=n: torch.special.polygamma(n, x),
          *[Sample((values(shape, 0.3, 4, "polygamma"),), layout=layout) for shape, layout in SHAPES], wide=((0.3, 4),), kernel=True, loose=TRIGAMMA if n < 2 else None)
      for n in range(4)],
    binary("beta", (0.3, 3), (0.3, 3), lambda a, b: _by_gammas(a, b, True)),
    binary("betaln", (0.3, 3), (0.3, 3), lambda a, b: _by_gammas(a, b, False)),
    last("gammainc", (2.5,), 0.1, 4, torch=True),
    last("gammaincc", (2.5,), 0.1, 4, torch=True),
    last("gammaincinv", (2.5,), *PROBABILITY),
    last("gammainccinv", (2.5,), *INNER),
    last("betainc", (2.5, 1.5), 0.05, 0.95),
    last("betaincc", (2.5, 1.5), 0.05, 0.95),
    last("betaincinv", (2.5, 1.5), *PROBABILITY),
    last("zeta", (2.5,), 0.3, 4, torch=True),
    # exponential integrals, Bessel functions
    unary("exp1", 0.2, 4, None),
    unary("expi", 0.2, 4, None),
    *[unary(name) for name in ("i0", "i0e", "i1", "i1e")],
    *[unary(name, 0.2, 4, None) for name in ("j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e")],
    *[last(name, (2.0,), -2, 2) for name in ("iv", "ive", "jv")],
    *[last(name, (2.0,), 0.3, 4) for name in ("yv", "kv", "kve")],
    # logarithms and losses
    binary("xlogy", (-2, 2), (0.2, 3), "special.xlogy", COMPOSED, kernel=False),
    binary("xlog1py", (-2, 2), (-0.8, 3), "special.xlog1py", COMPOSED, kernel=False),
    unary("entr", 0.2, 3, tolerance=COMPOSED, kernel=False),
    binary("rel_entr", (0.2, 3), (0.2, 3), lambda x, y: x * torch.log(_lifted(x, y) / _lifted(y, x)), COMPOSED, kernel=False),
    binary("kl_div", (0.2, 1.2), (1.5, 3), lambda x, y: x * torch.log(_lifted(x, y) / _lifted(y, x)) - x + y, COMPOSED, kernel=False),
    binary("huber", (0.2, 2), (-3, 3), lambda delta, r: torch.where(abs(_lifted(r, delta)) <= delta, _lifted(r, delta) ** 2 / 2, delta * (abs(_lifted(r, delta)) - delta / 2)), COMPOSED, kernel=False),
    binary("pseudo_huber", (0.2, 2), (-3, 3), lambda delta, r: _lifted(delta, r) ** 2 * (torch.sqrt(1 + (_lifted(r, delta) / delta) ** 2) - 1), COMPOSED, kernel=False,
           loose=(1e-7, "the definition, as spelled for PyTorch, cancels for small residuals")),
    # along axes
    *[row(f"special.{name}", COMPOSED, getattr(special, name), lambda x, axis=None, name=name: _along(name, x, axis),
          Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0}), Sample((a(2, 3, 2),), {"axis": (0, -1)}), Sample((a(),)), Sample((a(2, 3),), {"axis": 1}, "transposed"))
      for name in ("softmax", "log_softmax")],
    row("special.logsumexp", COMPOSED, weighted, logsumexp, Sample((a(2, 3),)), Sample((a(2, 3),), {"axis": 0, "keepdims": True}), Sample((a(),)),
        Sample((a(2, 3), a(3, low=0.5, key=1))), Sample((a(2, 1), a(2, 3, low=0.5, key=1)), {"axis": 1}), Sample((a(2, 3, 2), 2.0), {"axis": (0, 2)}),
        Sample((a(3), np.array([3.0, -0.1, 0.0]))), complex=True),
]  # fmt: skip


def _lifted(x: Any, other: Any) -> Any:
    return x if torch.is_tensor(x) else torch.tensor(x, dtype=other.dtype)


def _by_gammas(a: Any, b: Any, exponential: bool) -> Any:
    a, b = _lifted(a, b), _lifted(b, a)
    logarithm = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    return torch.exp(logarithm) if exponential else logarithm


def _along(name: str, x: Any, axis: Any) -> Any:
    """Apply a function along several axes, of which PyTorch takes one."""
    exponentials = torch.exp(x)
    result = exponentials / torch.sum(exponentials, dim=pytorch.axes(x, axis), keepdim=True)
    return torch.log(result) if name == "log_softmax" else result
