"""Replacements for names, keywords and calls of PyTorch and NumPy that xgrad lacks, and for missing packages."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Names that xgrad, one of its modules or a tensor lacks, by owner and by the expression that replaces them. A name of
#: another module or of a tensor needs no entry: it is searched for.
_NAMES: dict[str, dict[str, str]] = {
    "xgrad": {
        "isinstance(x, xgrad.Tensor)": "is_tensor",
        "x.size": "numel",
        "x[mask]": "masked_select",
        "xgrad.abs": "absolute fabs",
        "xgrad.all(x1 == x2)": "array_equal",
        "xgrad.arange": "range",
        "xgrad.asarray": "as_tensor from_numpy array asanyarray ascontiguousarray",
        "xgrad.asarray(x, copy=True), or x.clone()": "copy",
        "xgrad.bitwise_invert": "bitwise_not invert",
        "xgrad.bitwise_left_shift": "left_shift",
        "xgrad.bitwise_right_shift": "right_shift",
        "xgrad.bool": "bool_",
        "xgrad.capture": "compile jit",
        "xgrad.clip": "clamp",
        "xgrad.complex128": "cdouble",
        "xgrad.complex64": "cfloat",
        "xgrad.concat": "cat concatenate",
        "xgrad.concat(arrays, axis=0)": "row_stack vstack",
        "xgrad.concat(arrays, axis=1)": "hstack",
        "xgrad.conj": "conjugate",
        "xgrad.cumulative_prod": "cumprod",
        "xgrad.cumulative_sum": "cumsum",
        "xgrad.data for torch.utils.data, or xgrad.autograd.checkpoint for that of torch.utils.checkpoint": "utils",
        "xgrad.default_device, a context manager": "set_default_device",
        "xgrad.devices(), which lists the devices that can be used": "cuda",
        "xgrad.divide": "div true_divide",
        "xgrad.equal": "eq",
        "xgrad.expand_dims": "unsqueeze",
        "xgrad.eye": "identity",
        "xgrad.flip(x, axis=0)": "flipud",
        "xgrad.flip(x, axis=1)": "fliplr",
        "xgrad.float32": "float single",
        "xgrad.float64": "double",
        "xgrad.grad, xgrad.vjp, xgrad.jvp, xgrad.jacobian or xgrad.hessian": "func",
        "xgrad.greater": "gt",
        "xgrad.greater_equal": "ge",
        "xgrad.int16": "short",
        "xgrad.int32": "int",
        "xgrad.int64": "int_ intp long",
        "xgrad.less": "lt",
        "xgrad.less_equal": "le",
        "xgrad.linalg.inv": "inverse",
        "xgrad.linalg.outer": "ger",
        "xgrad.linalg.pinv": "pinverse",
        "xgrad.linalg.slogdet": "logdet",
        "xgrad.manual_seed": "seed",
        "xgrad.random.get_state": "get_rng_state",
        "xgrad.random.set_state": "set_rng_state",
        "xgrad.matmul": "bmm dsmm mm mv dot",
        "xgrad.matrix_transpose": "t",
        "xgrad.max": "amax",
        "xgrad.mean": "average",
        "xgrad.meshgrid": "mgrid",
        "xgrad.min": "amin",
        "xgrad.moveaxis": "movedim",
        "xgrad.multiply": "mul",
        "xgrad.negative": "neg",
        "xgrad.no_grad": "inference_mode",
        "xgrad.no_grad or xgrad.enable_grad, context managers": "set_grad_enabled",
        "xgrad.nonzero": "argwhere",
        "xgrad.nonzero(xgrad.reshape(x, (-1,)))": "flatnonzero",
        "xgrad.not_equal": "ne",
        "xgrad.permute_dims": "permute",
        "xgrad.permute_dims, or xgrad.matrix_transpose": "transpose",
        "xgrad.pow": "float_power power",
        "xgrad.random.rand(x.shape)": "rand_like",
        "xgrad.random.randn(x.shape)": "randn_like",
        "xgrad.remainder": "mod",
        "xgrad.repeat": "repeat_interleave",
        "xgrad.reshape(x, (-1,)), or x.flatten()": "flatten",
        "xgrad.reshape(x, (-1,)), or x.ravel()": "ravel",
        "xgrad.result_type": "promote_types",
        "xgrad.round": "around rint",
        "xgrad.sign": "sgn",
        "xgrad.special.gammainc": "igamma",
        "xgrad.special.gammaincc": "igammac",
        "xgrad.special.gammaln": "lgamma",
        "xgrad.special.multigammaln": "mvlgamma",
        "xgrad.stack(arrays, axis=1) or xgrad.concat(arrays, axis=1)": "column_stack",
        "xgrad.subtract": "sub",
        "xgrad.take(x, indices, axis=axis)": "index_select",
        "xgrad.take_along_axis": "take_along_dim",
        "xgrad.take_along_axis(x, indices, axis=axis)": "gather",
        "xgrad.Tensor": "ndarray",
        "xgrad.tensor(data, dtype=xgrad.float32)": "FloatTensor",
        "xgrad.tensor(data, dtype=xgrad.int64)": "LongTensor",
        "xgrad.trunc": "fix",
        "xgrad.uint8": "byte",
        "xgrad.unique_values": "unique",
        "xgrad.unstack": "unbind",
        "xgrad.vecdot": "inner vdot",
        **{f"xgrad.a{name}": f"arc{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")},
    },
    "Tensor": {
        "(x == y).all()": "equal",
        "slices of x, or x.unbind(dim)": "split",
        "x + a @ b": "addmm",
        "x = x.detach()": "detach_",
        "x = xgrad.ops.index_add(...)": "index_add_",
        "x @ v": "mv",
        "x.astype(dtype), or x.dtype": "type",
        "x.astype(xgrad.int16)": "short",
        "x.astype(xgrad.uint8)": "byte",
        "x.clamp(max=limit)": "clamp_max",
        "x.clamp(min=limit)": "clamp_min",
        "x.clone()": "copy",
        "x.conj()": "conjugate",
        "x.cumprod(dim)": "cumulative_prod",
        "x.cumsum(dim)": "cumulative_sum",
        "x.device": "get_device",
        "x.device.type == 'cuda'": "is_cuda",
        "x.expand(*shape)": "broadcast_to",
        "x.fill_(value)": "fill",
        "x.max() - x.min()": "ptp",
        "x.mT": "matrix_transpose",
        "x.ndim": "ndimension",
        "x.permute(*dims)": "permute_dims",
        "x.size": "nelement",
        "x.size * x.element_size()": "nbytes",
        "x.tile(*dims) for PyTorch's, xgrad.repeat(x, repeats) for NumPy's": "repeat",
        "x.unsqueeze(dim)": "expand_dims",
        "x[mask]": "masked_select",
        "xgrad.concat([x, y])": "concat",
        "xgrad.imag(x)": "imag",
        "xgrad.linalg.det(x)": "det",
        "xgrad.linalg.inv(x)": "inverse",
        "xgrad.linalg.trace(x)": "trace",
        "xgrad.nn.init.normal_(x)": "normal_",
        "xgrad.nn.init.uniform_(x)": "uniform_",
        "xgrad.nonzero(x)": "argwhere",
        "xgrad.nonzero(x), which returns an index for each axis": "nonzero",
        "xgrad.ops.index_add": "index_add",
        "xgrad.real(x)": "real",
        "xgrad.sort(x), and xgrad.argsort(x) for the indices": "sort",
        "xgrad.special.erf(x)": "erf",
        "xgrad.special.gammaln(x)": "lgamma",
        "xgrad.take(x, indices, axis=axis)": "take",
        "xgrad.take_along_axis(x, indices, axis=dim)": "take_along_dim",
        "xgrad.unique_values(x)": "unique",
    },
    "xgrad.autograd": {
        "xgrad.tensor(data, requires_grad=True)": "Variable",
        "xgrad.jacobian(f)(x), xgrad.hessian(f)(x), xgrad.vjp(f, x) or xgrad.jvp(f, (x,), (tangent,))": "functional",
    },
    "xgrad.random": {
        "xgrad.nn.init.normal_": "normal_",
        "xgrad.manual_seed": "seed",
        "xgrad.random.get_state": "get_rng_state",
        "xgrad.random.set_state": "set_rng_state",
        "xgrad.random.rand": "random",
        "xgrad.random.Generator": "default_rng",
        "xgrad.random.randn": "standard_normal",
        "xgrad.random.randperm": "permutation",
        "xgrad.random.randint": "integers",
    },
}

#: Expressions to write for missing names, by owner and name.
REPLACEMENTS = {
    owner: {name: expression for expression, names in table.items() for name in names.split()}
    for owner, table in _NAMES.items()
}

#: Keywords of PyTorch and NumPy, with those of xgrad.
KEYWORDS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "size": "shape",
    "unbiased": "correction",
    "ddof": "correction",
}

#: Modules to search for a name that another module lacks.
_SEARCHED = "linalg nn.functional special fft random nn nn.init nn.utils optim data testing".split()

#: Form of a function with a custom derivative, which replaces PyTorch's ``forward(ctx, x)`` and ``F.apply(x)``.
FUNCTION = """
    def forward(xp, x): return x * x
    def backward(xp, g, x): return 2 * g * x  # the names of parameters select what is saved for it
and call an instance, f = {name}(); f(x)"""


class MissingNameError(AttributeError):
    """Access to a name that an object lacks. The replacement is looked up when the message is shown."""

    def __init__(self, owner: str, name: str) -> None:
        super().__init__(owner, name, name=name)

    def __str__(self) -> str:
        owner, name = self.args
        what = f"'{owner}' object" if owner == "Tensor" else f"module {owner!r}"
        return f"{what} has no attribute {name!r}{_instead(owner, name)}"


class _Missing:
    """Descriptor of a missing attribute; `__getattr__` would slow down attributes that may be unset."""

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
    """Last base class of `Tensor`: access to missing attributes raises errors with their replacements."""

    __slots__ = ()
    locals().update({name: _Missing(name) for name in REPLACEMENTS["Tensor"]})

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if hasattr(type(self), name)]


def install(module: str, lazy: str = "") -> None:
    """Give a module a `dir` of its public names only, and errors of missing names with their replacements.

    Public names that the module does not have are those of the module `lazy`, imported at their first use.
    """
    here: Any = sys.modules[module]

    def missing(name: str) -> Any:
        if lazy and name in here.__all__:
            vars(here)[name] = value = getattr(import_module(lazy), name)
            return value
        raise MissingNameError(module, name)

    here.__getattr__, here.__dir__ = missing, lambda: sorted(here.__all__)


def _instead(owner: str, name: str) -> str:
    """Return the replacement of a missing name, after a colon; an empty text if none is known."""
    if hint := REPLACEMENTS.get(owner, {}).get(name):
        return f": write {hint}"
    if name.startswith("_"):
        return ""
    for path in ("xgrad", *[f"xgrad.{module}" for module in _SEARCHED]):
        if path != owner and name in import_module(path).__all__:
            return f": write {path}.{name}"
    if hasattr(tensor := sys.modules["xgrad"].Tensor, name):
        return f": write x.{name}{'(...)' if callable(getattr(tensor, name)) else ''} of a tensor x"
    near = [n for n in dir(sys.modules[owner]) if not n.startswith("_") and _is_misspelling(name, n)]
    near = sorted(near, key=lambda n: _plain(n) != _plain(name))  # the same letters first
    return f": the nearest is {owner}.{near[0]}" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _is_misspelling(name: str, known: str) -> bool:
    """Return whether names differ in case, underscores and at most one letter, or two adjacent ones exchanged.

    Names that differ in digits, such as those of layers for other dimensions, are no misspellings; nor are short names
    that differ in a letter.
    """
    a, b = _plain(name), _plain(known)
    if [c for c in a if c.isdigit()] != [c for c in b if c.isdigit()] or not a:
        return False
    shorter = min(len(a), len(b))
    start = 0
    while a[start : start + 1] == b[start : start + 1] != "":
        start += 1
    a, b = a[start:], b[start:]
    while a[-1:] == b[-1:] != "":
        a, b = a[:-1], b[:-1]
    if len(a) == len(b) == 1:
        return shorter >= 6
    return a == b == "" or (shorter >= 3 and (len(a) + len(b) == 1 or (len(a) == 2 and a == b[::-1])))


def shown(x: Any) -> str:
    """Return the representation of an argument for an error message; never raise."""
    try:
        return repr(x)
    except Exception as error:  # of a custom __repr__, of lists nested too deep, of ints with too many digits
        return f"a {type(x).__name__}, whose representation raises {type(error).__name__}"


def import_optional(name: str, extra: str, caller: str = "") -> Any:
    """Return a module of an optional package; ImportError with the extra of it if it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{caller}{package} is missing ({error}): pip install 'xgrad[{extra}]'") from error


def keywords(used: Iterable[str], known: Iterable[str]) -> str:
    """Return the replacements of unknown keywords of a function, after a colon; an empty text if there are none."""
    names = set(known)
    replacements = [
        f"{KEYWORDS[name]}= for {name}=" for name in used if name not in names and KEYWORDS.get(name) in names
    ]
    return f": write {', '.join(replacements)}" if replacements else ""


def explained(function: F) -> F:
    """Return a function that adds replacements of unknown keywords to its TypeError."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised inside the function
                raise
            raise TypeError(f"{error}{_arguments(function, args, options)}") from None

    return call  # type: ignore[return-value]


def _arguments(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> str:
    parameters = inspect.signature(function).parameters
    if len(args) > 1 and next(iter(parameters)) == "shape" and all(isinstance(n, int) for n in args):
        return f": write {function.__name__}({args}) for {function.__name__}{args}"
    return keywords(options, parameters)
