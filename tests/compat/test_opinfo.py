"""PyTorch's own samples of its functions and methods, run in both libraries.

Each sample must agree with PyTorch, or be refused; results that differ without an error are
failures. Names that the namespace lacks are left out.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import pytest

from xgrad.compat import torch as compat

#: Functions whose results are random, or memory that is not initialized.
RANDOM = set(
    "bernoulli cauchy empty empty_like exponential geometric log_normal multinomial new_empty"
    " normal rand rand_like randint randint_like randn randn_like randperm uniform".split()
)
#: Functions whose results are determined up to signs, or whose gradient is then not defined.
UP_TO_SIGNS = {"linalg.eig", "linalg.eigh", "linalg.svd", "svd"}
#: Functions whose indices of equal elements are not determined.
WITH_TIES = {"argsort", "kthvalue", "sort", "topk"}
#: Functions of whose results the first one is compared: xgrad has no other ones.
ONLY_FIRST = {"linalg.lstsq"}
#: The number of samples of each function that are run.
SAMPLES = 8
#: Functions that PyTorch computes with less precision than xgrad.
IMPRECISE = {"special.bessel_j0", "special.bessel_j1", "special.bessel_y0", "special.bessel_y1"}
DTYPES = {
    f"torch.{name}": getattr(compat, name)
    for name in (
        "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128"
    ).split()
}
TOLERANCE = {"float64": 1e-7, "complex128": 1e-7}


class Unknown(Exception):
    """An argument of a sample, or a result, has a type or a dtype that xgrad lacks."""


def converted(torch: Any, value: Any) -> Any:
    """Return an argument of PyTorch as one of xgrad."""
    if isinstance(value, torch.Tensor):
        made = compat.tensor(host(torch, value))
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        if str(value) not in DTYPES:
            raise Unknown(str(value))
        return DTYPES[str(value)]
    if isinstance(value, torch.device):
        return compat.device(str(value))
    if isinstance(value, (list, tuple)):
        parts = [converted(torch, part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {key: converted(torch, part) for key, part in value.items()}
    if value is None or isinstance(value, (int, float, complex, str, slice, type(...))):
        return value
    raise Unknown(type(value).__name__)


def host(torch: Any, x: Any) -> np.ndarray:
    if x.layout != torch.strided or str(x.dtype) not in DTYPES:
        raise Unknown(f"{x.layout} {x.dtype}")
    array: np.ndarray = x.detach().resolve_conj().resolve_neg().numpy(force=True)
    return array


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def difference(torch: Any, name: str, expected: Any, got: Any) -> str:
    """Return how a result differs from PyTorch's, an empty text if it does not."""
    ones, others = list(leaves(expected)), list(leaves(got))
    ones = ones[:1] if name in ONLY_FIRST else ones
    if len(ones) != len(others):
        return f"{len(ones)} results, got {len(others)}"
    for i, (one, other) in enumerate(zip(ones, others, strict=True)):
        if not isinstance(one, torch.Tensor):
            if one != other:
                return f"{one}, got {other}"
            continue
        if type(other) is not compat.Tensor:
            return f"a tensor, got {type(other).__name__}"
        x, y = host(torch, one), other.detach().numpy()
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"{x.dtype} {x.shape}, got {y.dtype} {y.shape}"
        undetermined = name in WITH_TIES and (i == 1 or name == "argsort")
        tolerance = TOLERANCE.get(str(x.dtype), 1e-3) if x.dtype.kind in "fc" else 0
        tolerance = 1e-5 if name in IMPRECISE else tolerance
        if not undetermined and not np.allclose(
            x, y, rtol=tolerance, atol=tolerance, equal_nan=x.dtype.kind in "fc"
        ):
            return f"{x.ravel()[:4]}, got {y.ravel()[:4]}"
    return ""


def total(values: Any, kind: type) -> Any:
    """Return a number that depends on all floating results, or None."""
    terms = [x for x in leaves(values) if isinstance(x, kind) and x.requires_grad]
    parts: list[Any] = [(x.abs() if x.is_complex() else x * x).sum() for x in terms]
    return sum(parts[1:], parts[0]) if parts else None


def gradients(torch: Any, library: Any, call: Callable[..., Any], args: Any, options: Any) -> Any:
    """Return the gradients of the floating tensors among the arguments; None if there is none."""
    tree = torch.utils._pytree
    given = tree.tree_map(
        lambda x: (
            x.detach().clone().requires_grad_()
            if isinstance(x, torch.Tensor) and x.is_floating_point()
            else x
        ),
        args,
    )
    given = given if library is torch else converted(torch, given)
    options = options if library is torch else converted(torch, options)
    inputs = [x for x in leaves(given) if isinstance(x, library.Tensor) and x.requires_grad]
    result = total(call(*given, **options), library.Tensor)
    if result is None:
        return None
    result.backward()
    return [np.zeros(tuple(x.shape)) if x.grad is None else x.grad.numpy() for x in inputs]


def variants(torch: Any, op: Any) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Yield the function, the method and the method in place of both libraries."""
    for owner, other, name in (
        (torch, compat, op.name),
        (torch.Tensor, compat.Tensor, op.name),
        (torch.Tensor, compat.Tensor, f"{op.name}_"),
    ):
        try:
            for part in name.split("."):
                owner, other = getattr(owner, part), getattr(other, part)
        except AttributeError:
            continue
        if callable(owner) and callable(other):
            yield owner, other


def run(torch: Any, op: Any, dtype: str, counts: Counter[str], failures: list[str]) -> None:
    copied = torch.utils._pytree.tree_map
    has_gradient = op.supports_autograd and dtype == "float64" and op.name not in ONLY_FIRST
    samples = op.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
    for sample in islice(samples, SAMPLES):
        args = (sample.input, *sample.args)
        for i, (theirs, ours) in enumerate(variants(torch, op)):
            try:
                own, options = converted(torch, args), converted(torch, sample.kwargs)
                again = copied(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, args)
                expected = theirs(*again, **sample.kwargs)
            except Exception:
                counts["not comparable"] += 1
                continue
            try:
                found = difference(torch, op.name, expected, ours(*own, **options))
            except Unknown:
                continue
            except Exception:
                counts["refused"] += 1
                continue
            if not found and i == 0 and has_gradient:
                found = gradient_difference(torch, theirs, ours, args, sample.kwargs)
            counts["differs" if found else "agrees"] += 1
            if found:
                failures.append(f"{op.name} {op.variant_test_name} [{i}]: {found}")


def gradient_difference(
    torch: Any, theirs: Callable[..., Any], ours: Callable[..., Any], args: Any, options: Any
) -> str:
    try:
        expected = gradients(torch, torch, theirs, args, options)
    except Exception:
        return ""
    if expected is None or any(np.isnan(x).any() for x in expected):
        return ""
    try:
        got = gradients(torch, compat, ours, args, options)
    except NotImplementedError:  # refused
        return ""
    if got is None:  # the result is constant
        got = [np.zeros(x.shape) for x in expected]
    for x, y in zip(expected, got, strict=True):
        if not np.allclose(x, y, rtol=1e-5, atol=1e-6, equal_nan=True):
            return f"gradient {x.ravel()[:4]}, got {y.ravel()[:4]}"
    return ""


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_samples_agree_or_are_refused(torch: Any, dtype: str) -> None:
    pytest.importorskip("expecttest", reason="needs expecttest: make test-peers")  # of the samples
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in import_module("torch.testing._internal.common_methods_invocations").op_db:
            if getattr(torch, dtype) in op.dtypes and op.name not in RANDOM | UP_TO_SIGNS:
                run(torch, op, dtype, counts, failures)
    assert not failures, "\n".join(dict.fromkeys(failures))
    assert counts["agrees"] > 0.8 * (counts["agrees"] + counts["refused"])
