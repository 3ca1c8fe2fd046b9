"""Distributions, hypergeometric functions and their kin: values by mpmath, derivatives of arrays of counts as well."""

from __future__ import annotations

import numpy as np
import pytest

import xgrad
from xgrad import special
from xgrad.ops import distributions
from xgrad.parity.mpmath_reference import SpecialFunctions
from xgrad.testing import gradcheck, gradgradcheck

scipy = pytest.importorskip("scipy", reason="SciPy, whose kernels they are, is not installed")

P, X, COUNT, TRIALS = [0.2, 0.5, 0.7], [0.5, 1.0, 2.0], [0, 1, 2], [5, 6, 7]
CASES: dict[str, tuple[list[int] | list[float], ...]] = {
    **dict.fromkeys("bdtr bdtrc bdtri nbdtr nbdtrc nbdtri".split(), (COUNT, TRIALS, P)),
    **dict.fromkeys("pdtr pdtrc expn yn".split(), (COUNT, X)),
    "pdtri": (COUNT, P),
    "lpmv": (COUNT, [2.0, 3.0, 4.0], P),
    **dict.fromkeys("chdtr chdtrc".split(), ([1.0, 2.5, 4.0], X)),
    **dict.fromkeys("gdtr gdtrc fdtr fdtrc hyp1f1".split(), (X, [1.0, 2.5, 4.0], X)),
    "chdtri": (X, P),
    "fdtri": (X, X, P),
    "hyp2f1": (X, X, [1.0, 2.5, 4.0], P),
    "stdtr": ([1.0, 2.5, 4.0], [-2.0, 0.0, 0.5]),
    "stdtrit": ([1.0, 2.5, 4.0], [0.1, 0.3, 0.7]),
    **dict.fromkeys("boxcox boxcox1p inv_boxcox inv_boxcox1p".split(), (X, [0.0, 0.5, 2.0])),
    "binom": ([5.0, 4.5, 3.0], [2.0, 1.5, 3.0]),
    "poch": (X, [2.0, 0.5, 3.0]),
    "radian": ([90.0, 45.0, 0.0], [30.0, 0.0, 1.0], [0.0, 6.0, 1.0]),
    "exprel": ([0.0, 1e-5, -1.0],),
    "spence": ([1.0, 0.5, 1.5],),
    "rgamma": (X,),
    **dict.fromkeys("ellipk ellipkm1".split(), (P,)),
    **dict.fromkeys("sindg cosdg tandg cotdg".split(), ([30.0, 45.0, 80.0],)),
}


def test_all_names_are_checked_here() -> None:
    declared = {name for name in special.__all__ if name in vars(distributions)} - {"gammaln"}
    assert set(CASES) | {"multigammaln"} == declared


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_mpmath(name: str, device: str) -> None:
    pytest.importorskip("mpmath", reason="mpmath, the oracle, is not installed")
    columns = [np.array(column) for column in CASES[name]]
    want = getattr(SpecialFunctions(), name)(*[c.astype(np.longdouble) for c in columns]).astype(np.float64)
    got = getattr(special, name)(*[xgrad.asarray(c, device=device) for c in columns])
    assert got.dtype == xgrad.float64
    old = name == "stdtrit" and np.lib.NumpyVersion(scipy.__version__) < "1.17.0"  # whose kernel has 10 digits
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-10 if old else 1e-12, atol=1e-15)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_the_last_argument(name: str, device: str) -> None:
    *others, last = (xgrad.asarray(np.array(column), device=device) for column in CASES[name])
    x = xgrad.Tensor(last, requires_grad=True)
    assert gradcheck(lambda x: getattr(special, name)(*others, x), x)
    assert gradgradcheck(lambda x: getattr(special, name)(*others, x), x)


def test_an_int_of_trials_stays_one(device: str) -> None:
    x = xgrad.asarray([0.2, 0.5], device=device)
    assert special.bdtr(2, 5, x).dtype == xgrad.float32  # SciPy warns of 5.0


def test_parameters_without_a_derivative_say_so() -> None:
    df = xgrad.Tensor([2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="stdtr: expected no gradient for df"):
        special.stdtr(df, 1.0).sum().backward()


def test_multigammaln_refuses_what_is_out_of_its_domain() -> None:
    a = xgrad.asarray([2.0, 3.0])
    for d in (0, 2.0):
        with pytest.raises(ValueError, match="multigammaln: expected a positive int for d"):
            special.multigammaln(a, d)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"multigammaln: expected every a above \(d - 1\) / 2 = 2.0, got one that is not"
    ):
        special.multigammaln(a, 5)
