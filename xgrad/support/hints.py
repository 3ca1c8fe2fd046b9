"""Errors for names, keywords and calls of other libraries: they say what to write instead.

One table has the names; the page for users of PyTorch shows it, too. Names that Python or a search
finds have no entry: misspellings, and names of another module or of a tensor (`suggestions`). The
names of PyTorch that tensors do have are in `ops/torch_methods.py`. Missing packages are also
reported here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Expressions to write for names that a tensor, xgrad or one of its modules lacks, by owner.
NAMES: dict[str, dict[str, str]] = {
    "Tensor": {
        "argwhere": "xgrad.nonzero(x)",
        "broadcast_to": "x.expand(*shape)",
        "concat": "xgrad.concat([x, y])",
        "conjugate": "x.conj()",
        "copy": "x.clone()",
        "cumulative_prod": "x.cumprod(dim)",
        "cumulative_sum": "x.cumsum(dim)",
        "det": "xgrad.linalg.det(x)",
        "detach_": "x = x.detach()",
        "equal": "(x == y).all()",
        "expand_dims": "x.unsqueeze(dim)",
        "fill": "x.fill_(value)",
        "get_device": "x.device",
        "imag": "xgrad.imag(x)",
        "inverse": "xgrad.linalg.inv(x)",
        "is_cuda": "x.device.type == 'cuda'",
        "lgamma": "xgrad.special.gammaln(x)",
        "matrix_transpose": "x.mT",
        "mv": "x @ v",
        "median": "xgrad.median(x), which has no indices",
        "nanmedian": "xgrad.nanmedian(x), which has no indices",
        "nbytes": "x.size * x.element_size()",
        "ndimension": "x.ndim",
        "nelement": "x.size",
        "nonzero": "xgrad.nonzero(x), which returns an index for each axis",
        "normal_": "xgrad.nn.init.normal_(x)",
        "permute_dims": "x.permute(*dims)",
        "ptp": "x.max() - x.min()",
        "quantile": "xgrad.quantile(x, q)",
        "real": "xgrad.real(x)",
        "repeat": "x.tile(*dims) for PyTorch's, xgrad.repeat(x, repeats) for NumPy's",
        "sort": "xgrad.sort(x), and xgrad.argsort(x) for the indices",
        "take": "xgrad.take(x, indices, axis=axis)",
        "take_along_dim": "xgrad.take_along_axis(x, indices, axis=dim)",
        "trace": "xgrad.linalg.trace(x)",
        "type": "x.astype(dtype), or x.dtype",
        "uniform_": "xgrad.nn.init.uniform_(x)",
        "unique": "xgrad.unique_values(x)",
    },
    "xgrad": {
        "FloatTensor": "xgrad.tensor(data, dtype=xgrad.float32)",
        "LongTensor": "xgrad.tensor(data, dtype=xgrad.int64)",
        "absolute": "xgrad.abs",
        "amax": "xgrad.max",
        "amin": "xgrad.min",
        "arccos": "xgrad.acos",
        "arccosh": "xgrad.acosh",
        "arcsin": "xgrad.asin",
        "arcsinh": "xgrad.asinh",
        "arctan": "xgrad.atan",
        "arctan2": "xgrad.atan2",
        "arctanh": "xgrad.atanh",
        "argwhere": "xgrad.nonzero",
        "around": "xgrad.round",
        "array": "xgrad.asarray",
        "array_equal": "xgrad.all(x1 == x2)",
        "as_tensor": "xgrad.asarray",
        "asanyarray": "xgrad.asarray",
        "ascontiguousarray": "xgrad.asarray",
        "average": "xgrad.mean",
        "bitwise_not": "xgrad.bitwise_invert",
        "bmm": "xgrad.matmul",
        "bool_": "xgrad.bool",
        "byte": "xgrad.uint8",
        "cat": "xgrad.concat",
        "cdouble": "xgrad.complex128",
        "cfloat": "xgrad.complex64",
        "clamp": "xgrad.clip",
        "column_stack": "xgrad.stack(arrays, axis=1) or xgrad.concat(arrays, axis=1)",
        "compile": "xgrad.capture",
        "concatenate": "xgrad.concat",
        "conjugate": "xgrad.conj",
        "copy": "xgrad.asarray(x, copy=True), or x.clone()",
        "cuda": "xgrad.devices(), which lists the devices that can be used",
        "cumprod": "xgrad.cumulative_prod",
        "cumsum": "xgrad.cumulative_sum",
        "div": "xgrad.divide",
        "dot": "xgrad.matmul",
        "double": "xgrad.float64",
        "dsmm": "xgrad.matmul",
        "eq": "xgrad.equal",
        "fabs": "xgrad.abs",
        "fix": "xgrad.trunc",
        "flatnonzero": "xgrad.nonzero(xgrad.reshape(x, (-1,)))",
        "flatten": "xgrad.reshape(x, (-1,)), or x.flatten()",
        "fliplr": "xgrad.flip(x, axis=1)",
        "flipud": "xgrad.flip(x, axis=0)",
        "float": "xgrad.float32",
        "float_power": "xgrad.pow",
        "from_numpy": "xgrad.asarray",
        "func": "xgrad.grad, xgrad.vjp, xgrad.jvp, xgrad.jacobian or xgrad.hessian",
        "gather": "xgrad.take_along_axis(x, indices, axis=axis)",
        "ge": "xgrad.greater_equal",
        "ger": "xgrad.linalg.outer",
        "get_rng_state": "xgrad.random.get_state",
        "gt": "xgrad.greater",
        "histc": "xgrad.histogram(x, bins=bins, range=(min, max)).hist",
        "hstack": "xgrad.concat(arrays, axis=1)",
        "identity": "xgrad.eye",
        "igamma": "xgrad.special.gammainc",
        "igammac": "xgrad.special.gammaincc",
        "index_select": "xgrad.take(x, indices, axis=axis)",
        "inference_mode": "xgrad.no_grad",
        "inner": "xgrad.vecdot",
        "int": "xgrad.int32",
        "int_": "xgrad.int64",
        "intp": "xgrad.int64",
        "inverse": "xgrad.linalg.inv",
        "invert": "xgrad.bitwise_invert",
        "is_tensor": "isinstance(x, xgrad.Tensor)",
        "jit": "xgrad.capture",
        "le": "xgrad.less_equal",
        "left_shift": "xgrad.bitwise_left_shift",
        "lgamma": "xgrad.special.gammaln",
        "logdet": "xgrad.linalg.slogdet",
        "long": "xgrad.int64",
        "lt": "xgrad.less",
        "masked_select": "x[mask]",
        "mgrid": "xgrad.meshgrid",
        "mm": "xgrad.matmul",
        "mod": "xgrad.remainder",
        "movedim": "xgrad.moveaxis",
        "mul": "xgrad.multiply",
        "mv": "xgrad.matmul",
        "mvlgamma": "xgrad.special.multigammaln",
        "ndarray": "xgrad.Tensor",
        "ne": "xgrad.not_equal",
        "neg": "xgrad.negative",
        "numel": "x.size",
        "percentile": "xgrad.quantile(x, q / 100)",
        "permute": "xgrad.permute_dims",
        "pinverse": "xgrad.linalg.pinv",
        "power": "xgrad.pow",
        "promote_types": "xgrad.result_type",
        "rand_like": "xgrad.random.rand_like(x)",
        "randn_like": "xgrad.random.randn_like(x)",
        "range": "xgrad.arange",
        "ravel": "xgrad.reshape(x, (-1,)), or x.ravel()",
        "repeat_interleave": "xgrad.repeat",
        "right_shift": "xgrad.bitwise_right_shift",
        "rint": "xgrad.round",
        "row_stack": "xgrad.concat(arrays, axis=0)",
        "seed": "xgrad.manual_seed",
        "set_default_device": "xgrad.default_device, a context manager",
        "set_grad_enabled": "xgrad.no_grad or xgrad.enable_grad, context managers",
        "set_rng_state": "xgrad.random.set_state",
        "sgn": "xgrad.sign",
        "short": "xgrad.int16",
        "single": "xgrad.float32",
        "sub": "xgrad.subtract",
        "t": "xgrad.matrix_transpose",
        "take_along_dim": "xgrad.take_along_axis",
        "transpose": "xgrad.permute_dims, or xgrad.matrix_transpose",
        "trapz": "xgrad.trapezoid",
        "true_divide": "xgrad.divide",
        "unbind": "xgrad.unstack",
        "unique": "xgrad.unique_values",
        "unsqueeze": "xgrad.expand_dims",
        "utils": (
            "xgrad.data for torch.utils.data, or xgrad.autograd.checkpoint for"
            " torch.utils.checkpoint"
        ),
        "vdot": "xgrad.vecdot",
        "vstack": "xgrad.concat(arrays, axis=0)",
    },
    "xgrad.autograd": {
        "Variable": "xgrad.tensor(data, requires_grad=True)",
        "functional": (
            "xgrad.jacobian(f)(x), xgrad.hessian(f)(x), xgrad.vjp(f, x) or xgrad.jvp(f, (x,),"
            " (tangent,))"
        ),
    },
    "xgrad.random": {
        "default_rng": "xgrad.random.Generator",
        "get_rng_state": "xgrad.random.get_state",
        "integers": "xgrad.random.randint",
        "normal_": "xgrad.nn.init.normal_",
        "permutation": "xgrad.random.randperm",
        "random": "xgrad.random.rand",
        "seed": "xgrad.manual_seed",
        "set_rng_state": "xgrad.random.set_state",
        "standard_normal": "xgrad.random.randn",
    },
}

#: Keywords of PyTorch, NumPy and the standard, with their counterparts in functions of xgrad, which
#: have the standard's, and in methods, some of which have PyTorch's.
KEYWORDS: dict[str, Any] = {
    "axes": ("axis", "dim", "dims"),
    "axis": ("dim", "dims"),
    "dim": ("axis", "dims", "axes"),
    "dims": ("axis", "dim", "axes"),
    "keepdim": ("keepdims",),
    "keepdims": ("keepdim",),
    "size": ("shape",),
    "unbiased": ("correction",),
    "ddof": ("correction",),
}

#: Differences in meaning from PyTorch's function of an axis, by name.
DIFFERENCES = {
    "max": "the result has no indices, which argmax returns",
    "min": "the result has no indices, which argmin returns",
    "median": "the result has no indices, and is the mean of the two middle elements, if two are",
    "nanmedian": "the result has no indices, and is the mean of the two middle elements",
    "std": "divides by n, and PyTorch by n - 1, for which add correction=1",
    "var": "divides by n, and PyTorch by n - 1, for which add correction=1",
    "cummax": "the result has no indices",
    "cummin": "the result has no indices",
    "sort": "the result has no indices, which argsort returns",
}

#: The form of a function with a custom derivative, which replaces PyTorch's ``forward(ctx, x)`` and
#: ``F.apply(x)``.
FUNCTION_FORM = """
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
        what = "'Tensor' object" if owner == "Tensor" else f"module {owner!r}"
        if (expression := NAMES.get(owner, {}).get(name)) is not None:
            advice = f": write {expression}"
        else:
            advice = import_module("xgrad.support.suggestions").suggestion(owner, name)
        return f"{what} has no attribute {name!r}{advice}"


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
    locals().update({name: _Missing(name) for name in NAMES["Tensor"]})

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


def arguments(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> str:
    """Return what to write for a call that a function refuses, after a colon.

    That is other keywords, or the line for options that were given by position. An empty text if
    there is no advice.
    """
    if line := _as_one_argument(name, parameters, args):
        return f": write {line}"
    known = {used: _counterpart(used, parameters) for used in options}
    replacements = [f"{own}= for {used}=" for used, own in known.items() if own]
    line = ", ".join(replacements) or _with_keywords(name, parameters, args, options)
    if not line:
        return ""
    differs = "axis=" in line and name in DIFFERENCES
    return f": write {line}{f'; {DIFFERENCES[name]}' if differs else ''}"


def _as_one_argument(
    name: str, parameters: Mapping[str, inspect.Parameter], args: Sequence[Any]
) -> str:
    """Return what to write for lengths that were given one by one, or arrays without a list.

    An empty text for other calls.
    """
    kinds = inspect.Parameter
    known = [p for p in parameters.values() if p.kind < kinds.VAR_POSITIONAL]
    is_variadic = any(p.kind is kinds.VAR_POSITIONAL for p in parameters.values())
    if is_variadic or not known or len(args) <= len(known):
        return ""
    last = tuple(args[len(known) - 1 :])
    if known[-1].name in ("shape", "axes", "repetitions") and all(type(n) is int for n in last):
        if len(known) == 1:
            return f"{name}({last}) for {name}{last}"
        return f"{last} for {', '.join(map(str, last))}"
    if known[-1].name == "arrays" and all(hasattr(x, "shape") for x in args):
        return f"{name}([x, y]) for {name}(x, y)"
    return ""


def _counterpart(used: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return the keyword of a function for one that it lacks, or an empty text."""
    if used in parameters:
        return ""
    several = inspect.Parameter.VAR_POSITIONAL  # has no keyword
    known = [name for name, p in parameters.items() if p.kind is not several]
    return next((own for own in KEYWORDS.get(used, ()) if own in known), "")


def _with_keywords(
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> str:
    """Return a call with keywords for the arguments that were given by position, but must not be.

    A bool is taken for the first option that is one, numbers for the first other option.
    """
    kinds = inspect.Parameter
    each = list(parameters.values())
    positional = [p for p in each if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    free = [p for p in each if p.kind is kinds.KEYWORD_ONLY and p.name not in options]
    extra = args[len(positional) :]
    if not extra or any(p.kind is kinds.VAR_POSITIONAL for p in each):
        return ""
    parts = [
        shown(value) if isinstance(value, (int, float, str, tuple)) else p.name
        for p, value in zip(positional, args, strict=False)
    ]
    for value in extra:
        flag, text = isinstance(value, bool), isinstance(value, str)
        fitting = [p for p in free if isinstance(p.default, bool) == flag and not text]
        option = next((p for p in fitting if p.name not in ("dtype", "device")), None)
        if option is None:
            return ""
        free.remove(option)
        parts.append(f"{option.name}={shown(value)}")
    parts += [f"{key}={shown(value)}" for key, value in options.items()]
    return f"{name}({', '.join(parts)})"


def explained(function: F) -> F:
    """Return a function that adds what to write to the TypeError of a call that does not fit."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            # errors raised inside the function are unrelated
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            advice = arguments(
                function.__name__, inspect.signature(function).parameters, args, options
            )
            raise TypeError(f"{error}{advice}") from None

    return call  # type: ignore[return-value]
