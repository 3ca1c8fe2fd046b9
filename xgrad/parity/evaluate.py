"""An op applied to a sample on a device, and its gradients; by PyTorch as well."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import xgrad
from xgrad.backend.device import Device
from xgrad.core.tensor import Tensor
from xgrad.parity.pytorch import torch
from xgrad.parity.row import Op, Sample


class Mismatch(Exception):
    """A result that is not of the shape, dtype or device that it must have."""


class Run(NamedTuple):
    """The results of an op, and the gradients of its floating inputs; none, where no gradient is wanted."""

    values: list[np.ndarray]
    gradients: list[np.ndarray]


def evaluate(op: Op, sample: Sample, device: Device, dtype: Any, precision: Any = None, gradient: bool = True) -> Run:
    """Apply an op on a device in a dtype, and go back with `weights`.

    The dtype is float32 or float64; what is complex in the sample is then complex64 or complex128. The inputs are
    rounded to the dtype `precision` first, by default to `dtype`. Raises `Mismatch` if a result or a
    gradient has not the shape, dtype or device that it must have.
    """
    dtype = np.dtype(dtype)
    precision = dtype if precision is None else np.dtype(precision)
    sample = rounded(sample, precision)
    differentiable = op.differentiable and gradient
    inputs = tensors(sample, device, dtype, differentiable)
    outs = outputs(op.fn(*inputs, **options(sample, device)))
    for out in outs:
        if out.device is not device:
            raise Mismatch(f"expected a result on {device}, got one on {out.device}")
    leaves = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not (differentiable and leaves):
        if any(out.requires_grad for out in outs):
            raise Mismatch("expected a result without a gradient, got one that requires a gradient")
        return Run([host(out) for out in outs], [])
    if op.name != "astype" and (found := {np.finfo(out.dtype).dtype for out in outs}) != {dtype}:
        raise Mismatch(f"expected results of {dtype}, got {', '.join(map(str, found))}")
    seeds = [
        xgrad.asarray(weights(out.shape, like(out.dtype, precision), sample.start), dtype=out.dtype, device=device)
        for out in outs
    ]
    xgrad.autograd.backward(outs, seeds)
    for name, leaf in zip(floating(op, sample), leaves, strict=True):
        got = None if leaf.grad is None else (leaf.grad.shape, leaf.grad.dtype, leaf.grad.device)
        if got != (leaf.shape, leaf.dtype, device):
            described = "none" if got is None else f"{got[0]}, {got[1]} on {got[2]}"
            raise Mismatch(
                f"expected a gradient of shape {leaf.shape}, {leaf.dtype} on {device} for {name}, got {described}"
            )
    return Run([host(out) for out in outs], [host(leaf.grad) for leaf in leaves])


def by_pytorch(op: Op, sample: Sample, dtype: Any) -> Run:
    """Return the values and the gradients by PyTorch, which must be installed."""
    dtype = np.dtype(dtype)
    sample = rounded(sample, dtype)
    inputs = []
    for x in sample.inputs:
        if isinstance(x, np.ndarray):
            kind = x.dtype.kind
            x = torch.tensor(np.ascontiguousarray(x, like(x.dtype, dtype) if kind in "fc" else None).reshape(x.shape))
            x = x.requires_grad_(op.differentiable) if kind in "fc" else x
        inputs.append(x)
    outs = outputs(op.oracle()(*inputs, **sample.options))
    leaves = [x for x in inputs if torch.is_tensor(x) and x.requires_grad]
    if not (op.differentiable and leaves):
        return Run([plain(out) for out in outs], [])
    seeds = []
    for out in outs:
        kind = np.dtype("complex128" if out.is_complex() else "float64")
        seeds.append(torch.tensor(weights(tuple(out.shape), like(kind, dtype), sample.start)))
    torch.autograd.backward(outs, seeds)
    gradients = [x.grad if x.grad is not None else torch.zeros_like(x) for x in leaves]
    return Run([plain(out) for out in outs], [plain(g) for g in gradients])


def rounded(sample: Sample, dtype: np.dtype) -> Sample:
    """Return a sample whose numbers, in float64 or complex128 still, are numbers of a dtype."""

    def convert(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            with np.errstate(over="ignore"):
                return value.astype(like(value.dtype, dtype)).astype(value.dtype)
        if type(value) not in (float, complex):
            return value
        return like(np.dtype(type(value)), dtype).type(value).item()

    given = {name: convert(value) for name, value in sample.options.items()}
    return replace(sample, inputs=tuple([convert(x) for x in sample.inputs]), options=given)


def like(kind: np.dtype, precision: np.dtype) -> np.dtype:
    """Return the dtype of a kind, real or complex, that has the precision of a real one."""
    return np.result_type(precision, np.complex64) if kind.kind == "c" else precision


def tensors(sample: Sample, device: Device, dtype: Any, grad: bool) -> list[Any]:
    """Return the sample's arrays as leaves that lie in memory as the sample says."""
    made: list[Any] = []
    for x in sample.inputs:
        if not isinstance(x, np.ndarray):
            made.append(x)
        elif x.dtype.kind not in "fc":
            made.append(xgrad.asarray(x, device=device))
        else:
            tensor = xgrad.Tensor(_laid_out(x, sample.layout), dtype=like(x.dtype, dtype), device=device)
            if sample.layout == "transposed" and x.ndim > 1:
                tensor = xgrad.matrix_transpose(tensor)
            elif sample.layout == "reversed":
                tensor = xgrad.flip(tensor)
            made.append(tensor.requires_grad_(grad))
    return made


def _laid_out(x: np.ndarray, layout: str) -> np.ndarray:
    if layout == "transposed" and x.ndim > 1:
        return x.mT.copy()
    return np.flip(x).copy() if layout == "reversed" else x


def options(sample: Sample, device: Device) -> dict[str, Any]:
    """Return the sample's options with arrays as tensors of the device."""

    def convert(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(convert(v) for v in value)
        return xgrad.asarray(value, device=device) if isinstance(value, np.ndarray) else value

    return {name: convert(value) for name, value in sample.options.items()}


def outputs(result: Any) -> tuple[Any, ...]:
    """Return one result, or several, as a tuple."""
    return (result,) if hasattr(result, "shape") else tuple(result)


def host(x: Any) -> np.ndarray:
    """Return a tensor's values."""
    return np.asarray(x.detach().numpy())


def plain(x: Any) -> np.ndarray:
    """Return the values of a tensor of PyTorch's, which may have yet to be conjugated."""
    return np.asarray(x.detach().resolve_conj().resolve_neg().numpy())


def weights(shape: tuple[int, ...], dtype: np.dtype, start: int = 0) -> np.ndarray:
    """Return an arriving gradient that is different for every element, of numbers of a dtype."""
    numbers = np.arange(start, start + int(np.prod(shape)), dtype=np.float64)
    parts = np.cos(numbers) + 1j * np.sin(2 * numbers + 1) if dtype.kind == "c" else np.cos(numbers)
    return parts.reshape(shape).astype(dtype)


def input_names(op: Op, sample: Sample) -> list[str]:
    """Return a name for each input of a sample, as the op calls them."""
    parameters = list(inspect.signature(op.fn).parameters.values())
    if parameters and parameters[0].kind == inspect.Parameter.VAR_POSITIONAL:
        return [f"{parameters[0].name}{i}" for i in range(len(sample.inputs))]
    return [p.name for p, _ in zip(parameters, sample.inputs, strict=False)]


def floating(op: Op, sample: Sample) -> list[str]:
    """Return the names of the inputs that have a gradient."""
    pairs = zip(input_names(op, sample), sample.inputs, strict=True)
    return [name for name, x in pairs if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what NumPy and PyTorch have to say of NaNs, infinities and variances of nothing."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        warnings.filterwarnings("ignore", ".*degrees of freedom is <= 0.*")
        yield
