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

from xgrad.ops.distributions import (
    bdtr,
    bdtrc,
    bdtri,
    binom,
    boxcox,
    boxcox1p,
    chdtr,
    chdtrc,
    chdtri,
    cosdg,
    cotdg,
    ellipk,
    ellipkm1,
    expn,
    exprel,
    fdtr,
    fdtrc,
    fdtri,
    gdtr,
    gdtrc,
    hyp1f1,
    hyp2f1,
    inv_boxcox,
    inv_boxcox1p,
    lpmv,
    multigammaln,
    nbdtr,
    nbdtrc,
    nbdtri,
    pdtr,
    pdtrc,
    pdtri,
    poch,
    radian,
    rgamma,
    sindg,
    spence,
    stdtr,
    stdtrit,
    tandg,
    yn,
)
from xgrad.ops.elementwise import sigmoid as expit
from xgrad.ops.entropy import entr, kl_div, log_expit, rel_entr, xlog1py, xlogy
from xgrad.ops.robust_losses import huber, pseudo_huber
from xgrad.ops.scipy_softmax import log_softmax, logsumexp, softmax
from xgrad.ops.special import (
    beta,
    betainc,
    betaincc,
    betaincinv,
    betaln,
    cbrt,
    cosm1,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    exp1,
    exp2,
    exp10,
    expi,
    gamma,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    gammasgn,
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    k0,
    k0e,
    k1,
    k1e,
    kv,
    kve,
    log_ndtr,
    loggamma,
    logit,
    ndtr,
    ndtri,
    polygamma,
    psi,
    sinc,
    y0,
    y1,
    yv,
    zeta,
)
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
