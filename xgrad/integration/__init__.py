"""Solution of ordinary differential equations, with derivatives."""

from xgrad.integration.adjoint import odeint_adjoint
from xgrad.integration.direct import odeint
from xgrad.support import hints

__all__ = ["odeint", "odeint_adjoint"]
hints.install(__name__)
