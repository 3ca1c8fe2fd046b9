"""Special functions under SciPy's names, differentiable to any order.

They are computed by SciPy on ``cpu`` and ``strict`` (``pip install 'xgrad[special]'``), by PyTorch on ``torch``, and by
``cupyx.scipy.special`` on ``cuda``. Functions that PyTorch or CuPy lacks are computed by SciPy on the host. Those of
logarithms and exponentials, and `sinc`, are compositions of the standard's functions, and need no SciPy.

Inputs are real, those of `erf`, `expit`, `logsumexp` and `sinc` also complex. Results have the dtype of the inputs:
float32 gives float32. Integer arrays promote floating ones as in NumPy and SciPy: float32 and int64 give float64.
Integers alone count as float32, and Python scalars do not promote. A backward pass to a parameter with a derivative
that has no closed form, as ``a`` of `gammainc`, raises NotImplementedError.

SciPy's own functions dispatch to these for tensors under ``SCIPY_ARRAY_API=1``: ``scipy.special.erf(x)`` has a
gradient.
"""

from xgrad.ops.elementwise import sigmoid as expit
from xgrad.ops.entropy import entr, kl_div, log_expit, rel_entr, xlog1py, xlogy
from xgrad.ops.robust_losses import huber, pseudo_huber
from xgrad.ops.scipy_softmax import log_softmax, logsumexp, softmax
from xgrad.ops.special.angles import cosdg, cotdg, radian, sinc, sindg, tandg
from xgrad.ops.special.bessel import i0, i0e, i1, i1e, iv, ive, j0, j1, jv, k0, k0e, k1, k1e, kv, kve, y0, y1, yn, yv
from xgrad.ops.special.continuous_distributions import (
    chdtr,
    chdtrc,
    chdtri,
    fdtr,
    fdtrc,
    fdtri,
    gdtr,
    gdtrc,
    stdtr,
    stdtrit,
)
from xgrad.ops.special.discrete_distributions import bdtr, bdtrc, bdtri, nbdtr, nbdtrc, nbdtri, pdtr, pdtrc, pdtri
from xgrad.ops.special.error_functions import erf, erfc, erfcinv, erfcx, erfinv, log_ndtr, logit, ndtr, ndtri
from xgrad.ops.special.exponential_integrals import exp1, expi, expn, spence
from xgrad.ops.special.gamma_functions import (
    beta,
    betainc,
    betaincc,
    betaincinv,
    betaln,
    binom,
    digamma,
    gamma,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    psi,
    rgamma,
    zeta,
)
from xgrad.ops.special.hypergeometric import ellipk, ellipkm1, hyp1f1, hyp2f1, lpmv
from xgrad.ops.special.powers import boxcox, boxcox1p, cbrt, cosm1, exp2, exp10, exprel, inv_boxcox, inv_boxcox1p
from xgrad.support import hints

__all__ = [
    "bdtr", "bdtrc", "bdtri", "beta", "betainc", "betaincc", "betaincinv", "betaln", "binom", "boxcox", "boxcox1p",
    "cbrt", "chdtr", "chdtrc", "chdtri", "cosdg", "cosm1", "cotdg", "digamma", "ellipk", "ellipkm1", "entr", "erf",
    "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "exp2", "exp10", "expi", "expit", "expn", "exprel", "fdtr", "fdtrc",
    "fdtri", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc",
    "huber", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "inv_boxcox", "inv_boxcox1p", "iv", "ive", "j0", "j1", "jv",
    "k0", "k0e", "k1", "k1e", "kl_div", "kv", "kve", "log_expit", "log_ndtr", "log_softmax", "loggamma", "logit",
    "logsumexp", "lpmv", "multigammaln", "nbdtr", "nbdtrc", "nbdtri", "ndtr", "ndtri", "pdtr", "pdtrc", "pdtri", "poch",
    "polygamma", "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "sinc", "sindg", "softmax", "spence", "stdtr",
    "stdtrit", "tandg", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "zeta",
]  # fmt: skip
hints.install(__name__)
