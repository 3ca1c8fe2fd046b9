"""How an op of xgrad is declared, its derivative rules beside its forward rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from xgrad.core.dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGER, NAMES, SCALARS
from xgrad.core.fast_paths import binary_fast_path, unary_fast_path
from xgrad.core.function import Function
from xgrad.core.op import Rule
from xgrad.core.signatures import LazySignature
from xgrad.core.tensor import Tensor
from xgrad.core.views import Views
from xgrad.support.docstrings import write_out

P = ParamSpec("P")


def derivative(
    *rules: Rule | None,
    kind: int | None = None,
    highest: int = COMPLEX,
    broadcasts: bool = False,
    residual: str = "",
    holomorphic: bool = True,
    scipy_promotion: bool = False,
    views: Views = False,
) -> Callable[[Callable[Concatenate[Any, P], Any]], Callable[P, Tensor]]:
    """Declare an op: its forward rule is decorated, its derivative rules, one for each input, are given here.

    Parameters
    ----------
    *rules : callable or None
        For each of the first parameters after `xp` the rule of its gradient, None where there is none. The
        names of a rule's parameters choose what is kept, see `Function`. Where the forward rule takes
        ``*arrays``, one rule returns the gradients of all.
    kind : int, optional
        The lowest kind of dtype (`dtypes.INTEGER`, ...) that the op works on; arrays of several kinds are
        promoted. By default dtypes are left alone.
    highest : int, default COMPLEX
        The highest kind that the op takes, where `kind` is given.
    broadcasts : bool, default False
        Whether the inputs must broadcast against each other: it makes the better error.
    holomorphic : bool, default True
        Whether rules written for real numbers hold for complex ones, up to conjugates: see `Function`.
    scipy_promotion : bool, default False
        Whether integer arrays promote floating ones, as in SciPy: float32 and int64 give float64.
    residual : str, optional
        What rules call the second of two things that the forward rule then returns: not a result, but what spares
        them work. In a pass that is recorded it is None, since it has no history; they must do without.
    views : bool or "shared", default False
        Whether the result is a view of the input, which writes go through: always, or where it shares its memory.
    """

    def declare(forward: Callable[Concatenate[Any, P], Any]) -> Callable[P, Tensor]:
        flags = {"lowest": kind, "highest": highest, "holomorphic": holomorphic, "scipy_promotion": scipy_promotion}
        name = forward.__name__.lstrip("_")
        function = Function.of(name, forward, rules, broadcasts=broadcasts, residual=residual, views=views, **flags)
        return make_callable(function, forward.__doc__, forward.__module__)

    return declare


def make_callable(function: Function, doc: str | None, module: str) -> Callable[..., Tensor]:
    """Return a function's callable with the name, signature and documentation that users look up."""
    f, count = function, len(function.inputs)
    one = count == 1 and "dtype" not in f.positional
    two = count == 2 and f.lowest is not None and not f.options
    call: Any
    if (all(f.rules) if one else two and all(f.rules) == any(f.rules)) and not (
        f.joint_backward or f.residual or f.cross_device
    ):
        call = binary_fast_path(f.name, lambda: function) if two else unary_fast_path(f.name, lambda: function, f.views)
    else:
        call = lambda *inputs, **options: function(*inputs, **options)  # noqa: E731
    function.public = call
    call.__name__ = call.__qualname__ = function.name
    call.__doc__, call.__module__ = doc, module
    call.__signature__, call.function = LazySignature(function), function
    return call  # type: ignore[no-any-return]


def call_op(op: Any, xp: Any, *inputs: Any, **options: Any) -> Any:
    """Use an op of ours in a rule: on tensors the op, so that it is recorded; on arrays its forward rule."""
    if isinstance(inputs[0], Tensor):
        return op(*inputs, **options)
    return op.function.forward(xp, *inputs, **options)


def as_arrays(xp: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return two inputs as arrays, a scalar with the dtype of the other."""
    if type(x) in SCALARS:
        return xp.full_like(y, x), y
    return x, xp.full_like(x, y) if type(y) in SCALARS else y


_KINDS = {
    (BOOLEAN, COMPLEX): "any dtype",
    (BOOLEAN, INTEGER): "integers or bools",
    (INTEGER, INTEGER): "integers; bools count as such",
    (INTEGER, FLOATING): "real numbers; bools count as integers",
    (INTEGER, COMPLEX): "numbers; bools count as integers",
    (FLOATING, FLOATING): "real numbers; integers count as float32",
    (FLOATING, COMPLEX): "numbers; integers count as float32",
}

_DOC = """{summary}

{names} : Tensor -- Of any shape{broadcast}, on one device; {kind}.{scalar}
returns Tensor -- {result}
{raises}raises DeviceError

{gradient}

>>> xgrad.{name}({call})
Tensor({value})
"""


def elementwise(
    name: str,
    *rules: Rule | None,
    doc: str,
    example: str,
    kind: int = INTEGER,
    highest: int = COMPLEX,
    holomorphic: bool = True,
    of_bools: str | None = None,
    forward: Callable[..., Any] | None = None,
    native_of_reals: bool = False,
    views: Views = False,
    notes: str = "",
    standard: bool = True,
) -> Callable[..., Tensor]:
    """Declare a function that works element by element, of the standard or not, given a rule for each input.

    `doc` is its summary, and `example` reads ``arguments -> values``, with lists for tensors. `of_bools` is the op that
    it is of bools alone, where the standard says nothing; `views` as in `derivative`. `forward` is the forward rule
    where it is more than the namespace's function of this name, of complex numbers alone if `native_of_reals`.
    """

    native, names = (_unary, "x") if len(rules) == 1 else (_binary, "x1, x2")
    flags = {"lowest": kind, "highest": highest, "holomorphic": holomorphic, "of_bools": of_bools, "views": views}
    flags |= {"native": forward is None, "native_of_reals": native_of_reals}
    function = Function.of(name, forward or native(name), rules, broadcasts=True, **flags)
    text = _document(function, names, doc, example, notes)
    text = write_out(text, name, "elementwise functions" if standard else "")
    return make_callable(function, text, "xgrad.ops.elementwise")


def _unary(name: str) -> Callable[..., Any]:
    def unary(xp: Any, x: Any, /) -> Any:
        return getattr(xp, name)(x)

    return unary


def _binary(name: str) -> Callable[..., Any]:
    def binary(xp: Any, x1: Any, x2: Any, /) -> Any:
        return getattr(xp, name)(x1, x2)

    return binary


def _document(function: Function, names: str, summary: str, example: str, notes: str) -> str:
    arguments, _, value = example.partition(" -> ")
    binary = "," in names
    mismatch = "raises ValueError -- If the shapes do not broadcast.\n" if binary else ""
    if function.highest < COMPLEX:
        mismatch += f"raises TypeError -- If an input is not of {NAMES[function.highest]}.\n"
    gradient = "Differentiable to any order." if any(function.rules) else "Not differentiable: no gradient flows."
    return _DOC.format(
        name=function.name,
        names=names,
        summary=summary,
        kind="numbers or bools" if function.of_bools else _KINDS[function.lowest or BOOLEAN, function.highest],
        broadcast="s that broadcast" if binary else "",
        scalar=" Either may be a Python scalar, which promotes nothing." if binary else "",
        result="Of the shape that the inputs broadcast to." if binary else "Of the same shape.",
        raises=mismatch,
        gradient=notes or gradient,
        call=arguments.replace("[", "xgrad.asarray([").replace("]", "])"),
        value=value,
    )
