"""Replacements for names, keywords and calls of PyTorch and NumPy that xgrad does not have."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: What to write for names that xgrad, one of its modules or a tensor does not have. A name missing in a module, which
#: another module or a tensor has, needs no entry: it is found.
WRITE: dict[str, dict[str, str]] = {
    "xgrad": {
        # PyTorch
        "as_tensor": "xgrad.asarray",
        "bmm": "xgrad.matmul",
        "cat": "xgrad.concat",
        "clamp": "xgrad.clip",
        "compile": "xgrad.capture",
        "cuda": "xgrad.devices(), which lists the devices that can be used",
        "div": "xgrad.divide",
        "dsmm": "xgrad.matmul",
        "eq": "xgrad.equal",
        "flatten": "xgrad.reshape(x, (-1,)), or x.flatten()",
        "from_numpy": "xgrad.asarray",
        "func": "xgrad.grad, xgrad.vjp, xgrad.jvp, xgrad.jacobian or xgrad.hessian",
        "gather": "xgrad.take_along_axis(x, indices, axis=axis)",
        "ge": "xgrad.greater_equal",
        "ger": "xgrad.linalg.outer",
        "gt": "xgrad.greater",
        "igamma": "xgrad.special.gammainc",
        "igammac": "xgrad.special.gammaincc",
        "index_select": "xgrad.take(x, indices, axis=axis)",
        "inference_mode": "xgrad.no_grad",
        "inverse": "xgrad.linalg.inv",
        "is_tensor": "isinstance(x, xgrad.Tensor)",
        "jit": "xgrad.capture",
        "le": "xgrad.less_equal",
        "lgamma": "xgrad.special.gammaln",
        "logdet": "xgrad.linalg.slogdet",
        "lt": "xgrad.less",
        "masked_select": "x[mask]",
        "mm": "xgrad.matmul",
        "movedim": "xgrad.moveaxis",
        "mul": "xgrad.multiply",
        "mv": "xgrad.matmul",
        "mvlgamma": "xgrad.special.multigammaln",
        "ne": "xgrad.not_equal",
        "neg": "xgrad.negative",
        "numel": "x.size",
        "permute": "xgrad.permute_dims",
        "pinverse": "xgrad.linalg.pinv",
        "rand_like": "xgrad.random.rand(x.shape)",
        "randn_like": "xgrad.random.randn(x.shape)",
        "range": "xgrad.arange",
        "repeat_interleave": "xgrad.repeat",
        "seed": "xgrad.manual_seed",
        "set_default_device": "xgrad.default_device, a context manager",
        "set_grad_enabled": "xgrad.no_grad or xgrad.enable_grad, context managers",
        "sgn": "xgrad.sign",
        "sub": "xgrad.subtract",
        "t": "xgrad.matrix_transpose",
        "take_along_dim": "xgrad.take_along_axis",
        "unbind": "xgrad.unstack",
        "unsqueeze": "xgrad.expand_dims",
        "utils": "xgrad.data for torch.utils.data",
        # NumPy
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
        "asanyarray": "xgrad.asarray",
        "ascontiguousarray": "xgrad.asarray",
        "average": "xgrad.mean",
        "bitwise_not": "xgrad.bitwise_invert",
        "column_stack": "xgrad.stack(arrays, axis=1) or xgrad.concat(arrays, axis=1)",
        "concatenate": "xgrad.concat",
        "conjugate": "xgrad.conj",
        "copy": "xgrad.asarray(x, copy=True), or x.clone()",
        "cumprod": "xgrad.cumulative_prod",
        "cumsum": "xgrad.cumulative_sum",
        "dot": "xgrad.matmul",
        "fabs": "xgrad.abs",
        "fix": "xgrad.trunc",
        "flatnonzero": "xgrad.nonzero(xgrad.reshape(x, (-1,)))",
        "fliplr": "xgrad.flip(x, axis=1)",
        "flipud": "xgrad.flip(x, axis=0)",
        "float_power": "xgrad.pow",
        "hstack": "xgrad.concat(arrays, axis=1)",
        "identity": "xgrad.eye",
        "inner": "xgrad.vecdot",
        "invert": "xgrad.bitwise_invert",
        "left_shift": "xgrad.bitwise_left_shift",
        "mgrid": "xgrad.meshgrid",
        "mod": "xgrad.remainder",
        "ndarray": "xgrad.Tensor",
        "power": "xgrad.pow",
        "promote_types": "xgrad.result_type",
        "ravel": "xgrad.reshape(x, (-1,)), or x.ravel()",
        "right_shift": "xgrad.bitwise_right_shift",
        "rint": "xgrad.round",
        "row_stack": "xgrad.concat(arrays, axis=0)",
        "transpose": "xgrad.permute_dims, or xgrad.matrix_transpose",
        "true_divide": "xgrad.divide",
        "unique": "xgrad.unique_values",
        "vdot": "xgrad.vecdot",
        "vstack": "xgrad.concat(arrays, axis=0)",
        # Dtypes
        "FloatTensor": "xgrad.tensor(data, dtype=xgrad.float32)",
        "LongTensor": "xgrad.tensor(data, dtype=xgrad.int64)",
        "bool_": "xgrad.bool",
        "byte": "xgrad.uint8",
        "cdouble": "xgrad.complex128",
        "cfloat": "xgrad.complex64",
        "double": "xgrad.float64",
        "float": "xgrad.float32",
        "int": "xgrad.int32",
        "int_": "xgrad.int64",
        "intp": "xgrad.int64",
        "long": "xgrad.int64",
        "short": "xgrad.int16",
        "single": "xgrad.float32",
    },
    "Tensor": {
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
    },
    "xgrad.autograd": {
        "Variable": "xgrad.tensor(data, requires_grad=True)",
        "functional": "xgrad.jacobian(f)(x), xgrad.hessian(f)(x), xgrad.vjp(f, x) or xgrad.jvp(f, (x,), (tangent,))",
    },
    "xgrad.nn": {
        "LogSoftmax": "xgrad.nn.functional.log_softmax(x, axis=-1)",
        "Softmax": "xgrad.nn.functional.softmax(x, axis=-1)",
        "ParameterList": "xgrad.nn.Parameter attributes of a xgrad.nn.Module",
    },
    "xgrad.random": {
        "normal_": "xgrad.nn.init.normal_",
        "seed": "xgrad.manual_seed",
        "random": "xgrad.random.rand",
        "default_rng": "xgrad.random.Generator",
        "standard_normal": "xgrad.random.randn",
        "permutation": "xgrad.random.randperm",
        "integers": "xgrad.random.randint",
    },
}

#: Keywords that are written in another way, by the function's own.
KEYWORDS = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "size": "shape",
    "unbiased": "correction",
    "ddof": "correction",
}

#: Modules where a missing name of another module is looked up.
_SEARCHED = "linalg nn.functional special fft random nn nn.init nn.utils optim data testing".split()


#: A function with a derivative of its own, where PyTorch has ``forward(ctx, x)`` and ``F.apply(x)``.
FUNCTION = """
    def forward(xp, x): return x * x
    def backward(xp, g, x): return 2 * g * x  # the names of parameters choose what is saved for it
and call an instance, f = {name}(); f(x)"""


class MissingNameError(AttributeError):
    """A name that an object does not have; what to write instead is looked up when the message is shown."""

    def __init__(self, owner: str, name: str) -> None:
        super().__init__(owner, name, name=name)

    def __str__(self) -> str:
        owner, name = self.args
        what = f"'{owner}' object" if owner == "Tensor" else f"module {owner!r}"
        return f"{what} has no attribute {name!r}{_instead(owner, name)}"


class _Missing:
    """An attribute that stands for a missing one; a `__getattr__` would slow down attributes that may be unset."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise MissingNameError("Tensor", self.name)


class HintedTensor:
    """The last base of `Tensor`, whose attributes are errors that say what to write."""

    __slots__ = ()
    locals().update({name: _Missing(name) for name in WRITE["Tensor"]})

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if hasattr(type(self), name)]


def install(module: str) -> None:
    """Give a module a `dir` of its public names alone, and an error of missing names that says what to write."""
    here: Any = sys.modules[module]

    def missing(name: str) -> Any:
        raise MissingNameError(module, name)

    here.__getattr__, here.__dir__ = missing, lambda: sorted(here.__all__)


def _instead(owner: str, name: str) -> str:
    """Return what to write for a name that an object does not have, after a colon; nothing if that is unknown."""
    if hint := WRITE.get(owner, {}).get(name):
        return f": write {hint}"
    if name.startswith("_"):
        return ""
    for place in ("xgrad", *[f"xgrad.{module}" for module in _SEARCHED]):
        module = import_module(place)
        if place != owner and name in module.__all__:
            return f": write {place}.{name}"
    if hasattr(tensor := sys.modules["xgrad"].Tensor, name):
        return f": write x.{name}{'(...)' if callable(getattr(tensor, name)) else ''} of a tensor x"
    names = [n for n in dir(sys.modules[owner]) if not n.startswith("_")]
    near = import_module("difflib").get_close_matches(name, names, 1)
    return f": the nearest is {owner}.{near[0]}" if near else ""


def shown(x: Any) -> str:
    """Return the representation of an argument for an error, of any type and depth."""
    try:
        return repr(x)
    except Exception as error:  # of an own __repr__, of lists nested too deep, of ints of too many digits
        return f"a {type(x).__name__}, whose representation raises {type(error).__name__}"


def keywords(given: Iterable[str], known: Iterable[str]) -> str:
    """Return what to write for the keywords that a function does not know, after a colon; nothing if there are none."""
    names = set(known)
    pairs = [(name, KEYWORDS.get(name, "")) for name in given if name not in names]
    found = [f"{own}= for {name}=" for name, own in pairs if own in names]
    return f": write {', '.join(found)}" if found else ""


def explained(function: F) -> F:
    """Return a function whose TypeError for arguments that it does not take says what to write."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised within the function
                raise
            raise TypeError(f"{error}{_arguments(function, args, options)}") from None

    return call  # type: ignore[return-value]


def _arguments(function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> str:
    parameters = inspect.signature(function).parameters
    if len(args) > 1 and next(iter(parameters)) == "shape" and all(isinstance(n, int) for n in args):
        return f": write {function.__name__}({args}) for {function.__name__}{args}"
    return keywords(options, parameters)
