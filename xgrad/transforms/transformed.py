"""What transforms of functions share: the types of their results, and the check of their form."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np

from xgrad.core.tensor import Tensor
from xgrad.transforms.call import Argnums, TransformCall

P = ParamSpec("P")
# Arguments and results, tensors or containers of them. The bound lets the bodies of lambdas pass.
A = TypeVar("A", bound=Any)
B = TypeVar("B", bound=Any)
R = TypeVar("R", bound=Any)
R_co = TypeVar("R_co", covariant=True)
Aux = TypeVar("Aux")


class Transformed(Protocol[P, R_co]):
    """A function that a transform returns, for type checkers.

    In place of a ``Callable``, which mypy takes for an untyped function where several overloads
    match.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


#: How each transform is called.
_FORMS = {
    "vjp": "result, pullback = xgrad.vjp(f, x)",
    "jvp": "xgrad.jvp(f, (x,), (tangent,))",
    "hvp": "xgrad.hvp(f, (x,), (tangent,))",
    "grad": "xgrad.grad(f)(x), or xgrad.autograd.grad(outputs, inputs) for tensors",
}


def check_form(title: str, fn: Any, argnums: Any = 0) -> None:
    """Raise TypeError for calls in PyTorch's form.

    In these, a tensor takes the place of the function, or the arguments follow the function.
    """
    numbers = argnums if isinstance(argnums, (tuple, list)) else [argnums]
    if callable(fn) and not any(isinstance(x, (Tensor, np.ndarray)) for x in numbers):
        return
    expected, got = ("argnums of int", argnums) if callable(fn) else ("a function", fn)
    form = _FORMS.get(title, f"xgrad.{title}(f)(x)")
    raise TypeError(f"{title}: expected {expected}, got {type(got).__name__}: write {form}")


def transformed_function(
    title: str,
    fn: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    derive: Callable[[TransformCall], Any],
) -> Callable[..., Any]:
    """Return a function that calls another, and passes the call to `derive`."""
    check_form(title, fn, argnums)

    @wraps(fn, updated=())
    def transformed(*args: Any, **kwargs: Any) -> Any:
        return derive(TransformCall(title, fn, args, kwargs, argnums, has_aux))

    return transformed
