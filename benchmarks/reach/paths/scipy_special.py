"""`scipy.special`: SciPy asks the namespace for a `special` module with functions of its own names.

Derivatives are with respect to the arguments that vary continuously; the parameters of
distributions are constants.
"""

from __future__ import annotations

from scipy import special

from benchmarks.reach.path import constant, normal, path, positive, uniform

ONE = {
    "cbrt": positive(5),
    "cosdg": uniform(-90, 90, 5),
    "cosm1": normal(5),
    "cotdg": uniform(20, 70, 5),
    "ellipk": uniform(0.1, 0.8, 5),
    "ellipkm1": uniform(0.1, 0.8, 5),
    "entr": positive(5),
    "erf": normal(5),
    "erfc": normal(5),
    "erfcx": normal(5),
    "erfinv": uniform(-0.8, 0.8, 5),
    "exp1": positive(5),
    "exp10": normal(5),
    "exp2": normal(5),
    "expi": positive(5),
    "expit": normal(5),
    "exprel": normal(5),
    "gamma": positive(5),
    "gammaln": positive(5),
    "i0": normal(5),
    "i0e": positive(5),
    "i1": normal(5),
    "i1e": positive(5),
    "j0": normal(5),
    "j1": normal(5),
    "k0": positive(5),
    "k0e": positive(5),
    "k1": positive(5),
    "k1e": positive(5),
    "log_ndtr": normal(5),
    "loggamma": positive(5),
    "logit": uniform(0.1, 0.9, 5),
    "ndtr": normal(5),
    "ndtri": uniform(0.1, 0.9, 5),
    "psi": positive(5),
    "rgamma": positive(5),
    "sinc": normal(5),
    "sindg": uniform(-90, 90, 5),
    "spence": uniform(0.2, 0.9, 5),
    "tandg": uniform(-60, 60, 5),
    "y0": positive(5),
    "y1": positive(5),
    "log_softmax": normal(3, 4),
    "logsumexp": normal(3, 4),
    "softmax": normal(3, 4),
}
SEVERAL = {
    "betaln": (positive(5), positive(5)),
    "binom": (uniform(4, 6, 5), uniform(1, 2, 5)),
    "boxcox": (positive(5), normal(5)),
    "boxcox1p": (positive(5), normal(5)),
    "huber": (positive(5), normal(5)),
    "inv_boxcox": (positive(5), positive(5)),
    "inv_boxcox1p": (positive(5), positive(5)),
    "kl_div": (positive(5), positive(5)),
    "poch": (positive(5), positive(5)),
    "pseudo_huber": (positive(5), normal(5)),
    "radian": (uniform(0, 90, 5), uniform(0, 60, 5), uniform(0, 60, 5)),
    "rel_entr": (positive(5), positive(5)),
    "xlog1py": (normal(5), positive(5)),
    "xlogy": (normal(5), positive(5)),
}
COUNT, ORDER, DOF = constant([1.0, 2.0, 3.0]), constant([0, 1, 2]), constant([2.0, 3.5, 5.0])
PROBABILITY, X = uniform(0.2, 0.8, 3), positive(3)
SEVERAL |= {  # differentiated with respect to the last argument
    "bdtr": (COUNT, constant([5, 6, 7]), PROBABILITY),
    "bdtrc": (COUNT, constant([5, 6, 7]), PROBABILITY),
    "bdtri": (COUNT, constant([5, 6, 7]), PROBABILITY),
    "betainc": (DOF, COUNT, PROBABILITY),
    "betaincc": (DOF, COUNT, PROBABILITY),
    "betaincinv": (DOF, COUNT, PROBABILITY),
    "chdtr": (DOF, X),
    "chdtrc": (DOF, X),
    "chdtri": (DOF, PROBABILITY),
    "expn": (ORDER, X),
    "fdtr": (DOF, COUNT, X),
    "fdtrc": (DOF, COUNT, X),
    "fdtri": (DOF, COUNT, PROBABILITY),
    "gammainc": (DOF, X),
    "gammaincc": (DOF, X),
    "gammaincinv": (DOF, PROBABILITY),
    "gammainccinv": (DOF, PROBABILITY),
    "gdtr": (DOF, COUNT, X),
    "gdtrc": (DOF, COUNT, X),
    "hyp1f1": (DOF, COUNT, X),
    "lpmv": (ORDER, constant([2.0, 3.0, 4.0]), PROBABILITY),
    "nbdtr": (ORDER, constant([5, 6, 7]), PROBABILITY),
    "nbdtrc": (ORDER, constant([5, 6, 7]), PROBABILITY),
    "nbdtri": (ORDER, constant([5, 6, 7]), PROBABILITY),
    "pdtr": (COUNT, X),
    "pdtrc": (COUNT, X),
    "pdtri": (ORDER, PROBABILITY),
    "stdtr": (DOF, normal(3)),
    "stdtrit": (DOF, PROBABILITY),
    "yn": (ORDER, X),
    "zeta": (DOF, X),
}


PATHS = [
    *(path(f"special.{name}", getattr(special, name), draw) for name, draw in ONE.items()),
    *(path(f"special.{name}", getattr(special, name), *draws) for name, draws in SEVERAL.items()),
    path(
        "special.logsumexp, axis and weights",
        lambda x, b: special.logsumexp(x, axis=1, b=b),
        normal(3, 4),
        positive(3, 4),
    ),
    path(
        "special.zetac",
        special.zetac,
        uniform(2, 4, 5),
        stops="no closed form of the derivative is known",
    ),
    path("special.multigammaln", lambda a: special.multigammaln(a, 3), uniform(2, 4, 5)),
    path("special.polygamma", lambda x: special.polygamma(2, x), positive(5)),
    path("special.softmax, axis", lambda x: special.softmax(x, axis=0), normal(3, 4)),
    path("special.log_softmax, axis", lambda x: special.log_softmax(x, axis=0), normal(3, 4)),
]
