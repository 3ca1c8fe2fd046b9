"""`torch.special`: PyTorch's names over `xgrad.special`."""

from __future__ import annotations

from typing import Any

import xgrad
from xgrad import special as xspecial
from xgrad.compat.torch import elementwise, reductions
from xgrad.compat.torch.elementwise import binary, unary
from xgrad.compat.torch.tensor import torch_function
from xgrad.compat.torch.unavailable import raise_missing
from xgrad.core.tensor import Tensor

_UNARY = {
    "bessel_j0": xspecial.j0,
    "bessel_j1": xspecial.j1,
    "bessel_y0": xspecial.y0,
    "bessel_y1": xspecial.y1,
    "digamma": xspecial.digamma,
    "entr": xspecial.entr,
    "erf": xspecial.erf,
    "erfc": xspecial.erfc,
    "erfcx": xspecial.erfcx,
    "erfinv": xspecial.erfinv,
    "exp2": elementwise.UNARY["exp2"],
    "expit": xspecial.expit,
    "expm1": xgrad.expm1,
    "gammaln": xspecial.gammaln,
    "i0": xspecial.i0,
    "i0e": xspecial.i0e,
    "i1": xspecial.i1,
    "i1e": xspecial.i1e,
    "log1p": xgrad.log1p,
    "log_ndtr": xspecial.log_ndtr,
    "modified_bessel_i0": xspecial.i0,
    "modified_bessel_i1": xspecial.i1,
    "modified_bessel_k0": xspecial.k0,
    "modified_bessel_k1": xspecial.k1,
    "ndtr": xspecial.ndtr,
    "ndtri": xspecial.ndtri,
    "psi": xspecial.psi,
    "scaled_modified_bessel_k0": xspecial.k0e,
    "scaled_modified_bessel_k1": xspecial.k1e,
    "sinc": xspecial.sinc,
    "spherical_bessel_j0": lambda x: xspecial.sinc(x / xgrad.pi),
}
_BINARY = {
    "gammainc": xspecial.gammainc,
    "gammaincc": xspecial.gammaincc,
    "xlog1py": xspecial.xlog1py,
    "xlogy": xspecial.xlogy,
    "zeta": xspecial.zeta,
}


@torch_function
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Any:
    """Return exponentials divided by their sum: see `xgrad.ops.softmax`."""
    return reductions.softmax(input, dim, dtype=dtype)


FUNCTIONS: dict[str, Any] = {
    **{name: unary(name, op) for name, op in _UNARY.items()},
    **{name: binary(name, op) for name, op in _BINARY.items()},
    "log_softmax": reductions.log_softmax,
    "logit": elementwise.logit,
    "logsumexp": reductions.logsumexp,
    "multigammaln": elementwise.mvlgamma,
    "polygamma": elementwise.polygamma,
    "round": elementwise.round,
    "softmax": softmax,
}
__all__ = sorted(FUNCTIONS)


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return globals().setdefault(name, FUNCTIONS[name])
    raise_missing("torch.special", name)
