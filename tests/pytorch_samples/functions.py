"""PyTorch's samples of function calls (OpInfo): functions, methods and their gradients."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial, reduce
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
#: How many of the results are determined: indices of equal elements are not, nor are singular
#: values of `lstsq`, which depend on the algorithm.
DETERMINED = {"sort": 1, "topk": 1, "kthvalue": 1, "median": 1, "mode": 1, "linalg.lstsq": 2}
#: Names of PyTorch's internals, and of layouts that xgrad lacks: sparse tensors, and strides, which
#: are not part of a sample.
INTERNAL = ("jiterator", "sparse", "torch.ops", "_upsample", "_backward", "_batch_norm", "_refs")
INTERNAL += ("strided",)
#: The reason of a call of a name that the namespace lacks.
MISSING = re.compile(r"AttributeError: \S+ is not available in xgrad\.compat\.torch")


def outcomes(names: list[str]) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each sample of the named functions, or of all."""
    for op in op_db:
        name = op.name
        if (names and name not in names) or any(part in name for part in INTERNAL):
            continue
        call = compat_function(op)
        for dtype in DTYPES:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            differentiable = dtype.is_floating_point and op.supports_autograd
            for sample in op.sample_inputs("cpu", dtype, requires_grad=differentiable):
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
        made = FunctionType(
            op.op.__code__, {**op.op.__globals__, "torch": compat}, closure=op.op.__closure__
        )
        made.__defaults__, made.__kwdefaults__ = op.op.__defaults__, op.op.__kwdefaults__
        return made
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


def outcome(op: Any, call: Callable[..., Any], sample: Any) -> Outcome:
    """Compare the results of a call, and their gradients."""
    arguments = (sample.input, sample.args, sample.kwargs)
    given = tensors(torch, arguments)
    is_recorded = any(t.requires_grad for t in given)
    is_mixed = any(t.dtype == torch.float32 for t in given)  # PyTorch computes parts in float32
    is_random = bool(sample.kwargs.get("dropout_p"))
    only_shapes = is_random or any(part in op.name for part in UNDETERMINED)
    only_shapes = only_shapes or (op.name == "argsort" and not sample.kwargs.get("stable"))

    def determined(out: Any) -> Any:
        # the sample's function removes signs of eigenvectors and the like
        out = out if isinstance(out, torch.Tensor | compat.Tensor) else out[: DETERMINED[op.name]]
        return sample.output_process_fn_grad(out)

    finish = determined if op.name in DETERMINED else sample.output_process_fn_grad

    def checked(function: Callable[..., Any]) -> Callable[..., Any]:
        # as PyTorch checks gradients: for triangular and Hermitian matrices they are determined
        # only as such
        return partial(op.gradcheck_wrapper, function) if is_recorded else function

    found = compare(
        lambda: results(torch, checked(op.op), Arguments(torch).of(arguments), finish, only_shapes),
        lambda: results(
            compat, checked(call), Arguments(compat).of(arguments), finish, only_shapes
        ),
        is_less_accurate=is_mixed or "bessel" in op.name,  # PyTorch's, by 2e-7 beside SciPy's
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
