"""Replacements for PyTorch and NumPy names, keywords and calls that xgrad lacks.

Missing packages are also reported here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Expressions to write for names that a tensor lacks. Names that a module lacks are in
#: `replacements`.
ATTRIBUTES = {
    "addmm": "x + a @ b",
    "argwhere": "xgrad.nonzero(x)",
    "broadcast_to": "x.expand(*shape)",
    "byte": "x.astype(xgrad.uint8)",
    "clamp_max": "x.clamp(max=limit)",
    "clamp_min": "x.clamp(min=limit)",
    "concat": "xgrad.concat([x, y])",
    "conjugate": "x.conj()",
    "copy": "x.clone()",
    "cumulative_prod": "x.cumprod(dim)",
    "cumulative_sum": "x.cumsum(dim)",
    "det": "xgrad.linalg.det(x)",
    "detach_": "x = x.detach()",
    "equal": "(x == y).all()",
    "erf": "xgrad.special.erf(x)",
    "expand_dims": "x.unsqueeze(dim)",
    "fill": "x.fill_(value)",
    "get_device": "x.device",
    "imag": "xgrad.imag(x)",
    "index_add": "xgrad.ops.index_add",
    "index_add_": "x = xgrad.ops.index_add(...)",
    "inverse": "xgrad.linalg.inv(x)",
    "is_cuda": "x.device.type == 'cuda'",
    "lgamma": "xgrad.special.gammaln(x)",
    "masked_select": "x[mask]",
    "matrix_transpose": "x.mT",
    "mv": "x @ v",
    "nbytes": "x.size * x.element_size()",
    "ndimension": "x.ndim",
    "nelement": "x.size",
    "nonzero": "xgrad.nonzero(x), which returns an index for each axis",
    "normal_": "xgrad.nn.init.normal_(x)",
    "permute_dims": "x.permute(*dims)",
    "ptp": "x.max() - x.min()",
    "real": "xgrad.real(x)",
    "repeat": "x.tile(*dims) for PyTorch's, xgrad.repeat(x, repeats) for NumPy's",
    "short": "x.astype(xgrad.int16)",
    "sort": "xgrad.sort(x), and xgrad.argsort(x) for the indices",
    "split": "slices of x, or x.unbind(dim)",
    "take": "xgrad.take(x, indices, axis=axis)",
    "take_along_dim": "xgrad.take_along_axis(x, indices, axis=dim)",
    "trace": "xgrad.linalg.trace(x)",
    "type": "x.astype(dtype), or x.dtype",
    "uniform_": "xgrad.nn.init.uniform_(x)",
    "unique": "xgrad.unique_values(x)",
}

#: Keywords of PyTorch and NumPy, with their counterparts in xgrad.
KEYWORDS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "size": "shape",
    "unbiased": "correction",
    "ddof": "correction",
}

#: The form of a function with a custom derivative, which replaces PyTorch's ``forward(ctx, x)`` and
#: ``F.apply(x)``.
FUNCTION = """
    def forward(xp, x): return x * x
    def backward(xp, g, x): return 2 * g * x  # the names of parameters select what is saved for it
and call an instance, f = {name}(); f(x)"""


class MissingNameError(AttributeError):
    """Raised on access to a name that an object lacks.

    The replacement is looked up when the message is shown.
    """

    def __init__(self, owner: str, name: str) -> None:
        super().__init__(owner, name, name=name)

    def __str__(self) -> str:
        owner, name = self.args
        if owner == "Tensor":
            return f"'Tensor' object has no attribute {name!r}: write {ATTRIBUTES[name]}"
        instead = import_module("xgrad.support.replacements").instead(owner, name)
        return f"module {owner!r} has no attribute {name!r}{instead}"


class _Missing:
    """Descriptor of a missing attribute.

    `__getattr__` would slow down attributes that may be unset.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise MissingNameError("Tensor", self.name)


class _TensorType(type):
    """Type of `Tensor`, whose `dir` lists no names of missing attributes."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if hasattr(cls, name)]


class HintedTensor(metaclass=_TensorType):
    """Last base class of `Tensor`, which raises errors with replacements for missing attributes."""

    __slots__ = ()
    locals().update({name: _Missing(name) for name in ATTRIBUTES})

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if hasattr(type(self), name)]


def install(module: str, lazy: str = "") -> None:
    """Give a module a `dir` of its public names, and errors with replacements for missing ones.

    Public names that the module lacks are taken from the module `lazy`, which is imported at their
    first use.
    """
    here: Any = sys.modules[module]

    def missing(name: str) -> Any:
        if lazy and name in here.__all__:
            vars(here)[name] = value = getattr(import_module(lazy), name)
            return value
        raise MissingNameError(module, name)

    here.__getattr__, here.__dir__ = missing, lambda: sorted(here.__all__)


def shown(x: Any) -> str:
    """Return the representation of an argument for an error message; never raise."""
    try:
        return repr(x)
    except Exception as error:
        # from a custom __repr__, lists nested too deeply, or ints with too many digits
        return f"a {type(x).__name__}, whose representation raises {type(error).__name__}"


def import_optional(name: str, extra: str, caller: str = "") -> Any:
    """Return a module of an optional package; ImportError names its extra if it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"{caller}{package} is missing ({error}): pip install 'xgrad[{extra}]'"
        ) from error


def keywords(used: Iterable[str], known: Iterable[str]) -> str:
    """Return replacements of a function's unknown keywords, after a colon.

    An empty text if there are none.
    """
    names = set(known)
    replacements = [
        f"{KEYWORDS[name]}= for {name}="
        for name in used
        if name not in names and KEYWORDS.get(name) in names
    ]
    return f": write {', '.join(replacements)}" if replacements else ""


def explained(function: F) -> F:
    """Return a function that adds replacements of unknown keywords to its TypeError."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            # errors raised inside the function are unrelated
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise TypeError(f"{error}{_arguments(function, args, options)}") from None

    return call  # type: ignore[return-value]


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> str:
    parameters = inspect.signature(function).parameters
    if (
        len(args) > 1
        and next(iter(parameters)) == "shape"
        and all(isinstance(n, int) for n in args)
    ):
        return f": write {function.__name__}({args}) for {function.__name__}{args}"
    return keywords(options, parameters)
