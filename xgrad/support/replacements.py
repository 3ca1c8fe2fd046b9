"""Replacements for PyTorch and NumPy names that xgrad lacks, loaded when an error is shown."""

from __future__ import annotations

import sys
from importlib import import_module

#: Names that xgrad or one of its modules lacks, by owner and by the expression that replaces them.
#: A name of another module or of a tensor needs no entry: it is found by a search.
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
        "xgrad.data for torch.utils.data, or xgrad.autograd.checkpoint for that of"
        " torch.utils.checkpoint": "utils",
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
        **{
            f"xgrad.a{name}": f"arc{name}"
            for name in ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")
        },
    },
    "xgrad.autograd": {
        "xgrad.tensor(data, requires_grad=True)": "Variable",
        "xgrad.jacobian(f)(x), xgrad.hessian(f)(x), xgrad.vjp(f, x) or"
        " xgrad.jvp(f, (x,), (tangent,))": "functional",
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
OF_MODULES = {
    owner: {name: expression for expression, names in table.items() for name in names.split()}
    for owner, table in _NAMES.items()
}


#: Modules to search for a name that another module lacks.
_SEARCHED = "linalg nn.functional special fft random nn nn.init nn.utils optim data testing".split()


def instead(owner: str, name: str) -> str:
    """Return the replacement of a missing name, after a colon; an empty text if none is known."""
    if hint := OF_MODULES.get(owner, {}).get(name):
        return f": write {hint}"
    if name.startswith("_"):
        return ""
    for path in ("xgrad", *[f"xgrad.{module}" for module in _SEARCHED]):
        if path != owner and name in import_module(path).__all__:
            return f": write {path}.{name}"
    if hasattr(tensor := sys.modules["xgrad"].Tensor, name):
        return f": write x.{name}{'(...)' if callable(getattr(tensor, name)) else ''} of a tensor x"
    near = [
        n for n in dir(sys.modules[owner]) if not n.startswith("_") and _is_misspelling(name, n)
    ]
    near = sorted(near, key=lambda n: _plain(n) != _plain(name))  # the same letters first
    return f": the nearest is {owner}.{near[0]}" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _is_misspelling(name: str, known: str) -> bool:
    """Return whether a name is a misspelling of a known one.

    The two may differ in case, in underscores, and in at most one letter, or two adjacent letters
    that are exchanged. Names with different digits, such as layers for other dimensions, are no
    misspellings; nor are short names that differ in a letter.
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
    return a == b == "" or (
        shorter >= 3 and (len(a) + len(b) == 1 or (len(a) == 2 and a == b[::-1]))
    )
