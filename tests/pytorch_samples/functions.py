"""PyTorch's samples of function calls (OpInfo): functions, methods and their gradients."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import islice
from types import FunctionType
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import xgrad.compat.torch as compat
from tests.pytorch_samples.outcome import Arguments, Outcome, compare

DTYPES = (torch.float64, torch.int64, torch.bool, torch.complex128)
#: Functions with random results, or with memory that nobody wrote: shapes and dtypes alone agree.
UNDETERMINED = ("dropout", "rand", "empty", "bernoulli", "multinomial", "normal", "rrelu")
UNDETERMINED += (
    "cauchy",
    "exponential",
    "geometric",
    "uniform",
    "fractional",
    "multi_head_attention",
)
#: Functions of which PyTorch's are less accurate than their dtype: Bessel functions by 2e-7 beside
#: SciPy's, and a sixth of `hardsigmoid`, which is a number of float32.
LESS_ACCURATE = ("bessel", "hardsigmoid")
#: How many of the results are determined: indices of equal elements are not, nor are singular
#: values of `lstsq`, which depend on the algorithm.
DETERMINED = {"sort": 1, "topk": 1, "kthvalue": 1, "median": 1, "mode": 1, "linalg.lstsq": 2}
#: Names of PyTorch's internals, and of layouts that xgrad lacks: sparse tensors, and strides, which
#: are not part of a sample.
INTERNAL = ("jiterator", "sparse", "torch.ops", "_upsample", "_backward", "_batch_norm", "_refs")
INTERNAL += ("strided",)
#: The reason of a call of a name that the namespace lacks.
MISSING = re.compile(r"AttributeError: \S+ is not available in xgrad\.compat\.torch")


def outcomes(
    names: list[str], dtypes: Sequence[torch.dtype] = DTYPES, count: int | None = None
) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcomes of samples of the named functions, or of all.

    These are all samples, or the first ones of each function and dtype.
    """
    for op in op_db:
        name = op.name
        if (names and name not in names) or any(part in name for part in INTERNAL):
            continue
        call = compat_function(op)
        for dtype in dtypes:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            differentiable = dtype.is_floating_point and op.supports_autograd
            samples = op.sample_inputs("cpu", dtype, requires_grad=differentiable)
            for sample in islice(samples, count):
                if call is None:
                    yield name, Outcome("missing")
                else:
                    yield name, outcome(op, call, sample)


def compat_function(op: Any) -> Callable[..., Any] | None:
    """Return the function or method that has the name of a sample; None if there is none.

    Where the samples are for a lambda of PyTorch's tests, such as
    ``lambda x, n: torch.polygamma(n, x)``, it is the same lambda with the other `torch`.
    """
    if isinstance(op.op, FunctionType) and op.op.__name__ == "<lambda>":
        return with_library(compat, op.op)
    try:
        found: Any = reduce(getattr, op.name.split("."), compat)
    except AttributeError:
        found = None
    if callable(found):
        return found  # type: ignore[no-any-return]
    method = getattr(compat.Tensor, op.name, None)
    if method is None or callable(method):
        return method
    return op.op  # type: ignore[no-any-return]  # a property, which PyTorch's sample reads


def with_library(lib: Any, function: FunctionType) -> FunctionType:
    """Return the same function with another library for its global `torch`."""
    names = {**function.__globals__, "torch": lib}
    made = FunctionType(function.__code__, names, closure=function.__closure__)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


def is_floating(t: torch.Tensor) -> bool:
    """Return whether a tensor has real or complex floating numbers."""
    return t.is_floating_point() or t.is_complex()


def outcome(op: Any, call: Callable[..., Any], sample: Any) -> Outcome:
    """Compare the results of a call, and their gradients."""
    options = sample.kwargs
    if op.name == "cov" and options.get("aweights") is not None and is_floating(sample.input):
        # weights of float32, with which PyTorch computes in float32, and xgrad in the other dtype
        weights = options["aweights"]
        options = options | {"aweights": weights.detach().double()}
        options["aweights"].requires_grad_(weights.requires_grad)
    arguments = (sample.input, sample.args, options)
    given = tensors(torch, arguments)
    is_random = bool(sample.kwargs.get("dropout_p"))
    only_shapes = is_random or any(part in op.name for part in UNDETERMINED)
    only_shapes = only_shapes or (op.name == "argsort" and not sample.kwargs.get("stable"))

    def determined(out: Any) -> Any:
        # the sample's function removes signs of eigenvectors and the like
        out = out if isinstance(out, torch.Tensor | compat.Tensor) else out[: DETERMINED[op.name]]
        return sample.output_process_fn_grad(out)

    finish = determined if op.name in DETERMINED else sample.output_process_fn_grad

    def checked(lib: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        # as PyTorch checks gradients: triangular and Hermitian matrices are made such, for the
        # gradient is determined only there
        wrapper = with_library(lib, op.gradcheck_wrapper)
        return partial(wrapper, function) if any(map(is_floating, given)) else function

    found = compare(
        lambda: results(
            torch, checked(torch, op.op), Arguments(torch).of(arguments), finish, only_shapes
        ),
        lambda: results(
            compat, checked(compat, call), Arguments(compat).of(arguments), finish, only_shapes
        ),
        is_less_accurate=any(part in op.name for part in LESS_ACCURATE),
    )
    is_missing = found.kind == "refused" and MISSING.match(found.reason)
    return Outcome("missing") if is_missing else found


def results(
    lib: Any,
    function: Callable[..., Any],
    arguments: Any,
    finish: Callable[[Any], Any],
    only_shapes: bool,
) -> Any:
    """Return the results of a call, and the gradients of their sum for its arguments."""
    value, args, options = arguments
    out = finish(function(value, *args, **options))
    if only_shapes:
        return [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors(lib, out)]
    leaves = [t for t in tensors(lib, (value, args, options)) if t.requires_grad]
    ends = [t for t in tensors(lib, out) if t.requires_grad]
    gradients: list[Any] = [None] * len(leaves)
    if leaves and ends:
        total = sum((scalar(lib, t) for t in ends[1:]), scalar(lib, ends[0]))
        gradients = list(lib.autograd.grad(total, leaves, allow_unused=True))
    # a gradient is 0 where there is none
    zeros = [lib.zeros_like(t) for t in leaves]
    return out, [zero if g is None else g for zero, g in zip(zeros, gradients, strict=True)]


def scalar(lib: Any, t: Any) -> Any:
    """Return a sum of a tensor that tells its elements apart, as a real number."""
    weights = 1 + lib.arange(t.numel(), dtype=lib.float64).reshape(tuple(t.shape)) / 7
    total = (t * weights).sum()
    return total.real + 2 * total.imag if lib.is_complex(total) else total.to(lib.float64)


def tensors(lib: Any, value: Any) -> list[Any]:
    """Return the tensors in a nested value."""
    if isinstance(value, lib.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(lib, item)]
    return []
