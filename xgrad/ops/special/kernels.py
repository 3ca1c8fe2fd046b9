"""Declaration of special functions, and densities that several derivatives share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from xgrad.core.dtypes import FLOATING
from xgrad.core.op import Rule
from xgrad.core.tensor import Tensor
from xgrad.ops.declare import as_arrays, derivative

P = ParamSpec("P")


def no_closed_form(g: Any) -> Any:
    """Mark a parameter whose derivative has no closed form: silent zeros would be wrong."""
    raise NotImplementedError


def kernel(
    *rules: Rule | None, highest: int = FLOATING, autocast: str | None = None
) -> Callable[[Callable[Concatenate[Any, P], Any]], Callable[P, Tensor]]:
    """Declare an elementwise function, given a gradient rule for each parameter.

    A rule is None for a parameter of integers. `highest` is COMPLEX where SciPy's kernel takes
    complex numbers, and `autocast` is the attribute of `Op`.
    """

    def declare(forward: Callable[Concatenate[Any, P], Any]) -> Callable[P, Tensor]:
        code = forward.__code__
        inputs = code.co_varnames[1 : code.co_argcount]  # without xp
        refusing = [
            _refuse(forward.__name__, name) if rule is no_closed_form else rule
            for name, rule in zip(inputs, rules, strict=True)
        ]
        return derivative(
            *refusing,
            lowest=FLOATING,
            highest=highest,
            broadcasts=True,
            scipy_promotion=True,
            upcast=True,
            autocast=autocast,
        )(forward)

    return declare


def _refuse(name: str, parameter: str) -> Rule:
    """Return a rule that raises NotImplementedError for the gradient of a parameter."""

    def rule(g: Any) -> Any:
        raise NotImplementedError(
            f"{name}: expected no gradient for {parameter}, whose derivative has no closed form: "
            f".detach() {parameter}, or ask for the gradients of other inputs alone"
        )

    return rule


def gamma_density(xp: Any, a: Any, x: Any) -> Any:
    a, x = as_arrays(xp, a, x)
    return xp.exp(xp.special.xlogy(a - 1, x) - x - xp.special.gammaln(a))


def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    (a, x), (b, _) = as_arrays(xp, a, x), as_arrays(xp, b, x)
    return xp.exp(
        xp.special.xlogy(a - 1, x) + xp.special.xlog1py(b - 1, -x) - xp.special.betaln(a, b)
    )
