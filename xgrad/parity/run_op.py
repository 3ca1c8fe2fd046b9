"""Execution of an op and its derivatives on a sample, on a device or by PyTorch."""

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
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.pytorch import torch
from xgrad.support import trees


class Mismatch(Exception):
    """A result of an unexpected shape, dtype or device."""


class Run(NamedTuple):
    """The results of an op, and the gradients of its floating inputs."""

    values: list[np.ndarray]
    gradients: list[np.ndarray]


def run_op(
    op: OpCase,
    sample: Sample,
    device: Device,
    dtype: Any,
    precision: Any = None,
    gradient: bool = True,
    result: Any = None,
) -> Run:
    """Apply an op on a device in a dtype, and run backward from `weights`.

    `dtype` is a real dtype; complex inputs get the complex dtype of the same precision. The inputs
    are first rounded to the dtype `precision`, by default `dtype`. The results have the precision
    of the dtype `result`, by default `dtype`. `Mismatch` is raised if a result or a gradient has an
    unexpected shape, dtype or device.
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
        return Run([to_numpy(out) for out in outs], [])
    result = dtype if result is None else np.dtype(result)
    if op.name != "astype" and (dtypes := {np.finfo(out.dtype).dtype for out in outs}) != {result}:
        raise Mismatch(f"expected results of {result}, got {', '.join(map(str, dtypes))}")
    seeds = [
        xgrad.asarray(
            weights(out.shape, like(out.dtype, precision), sample.start),
            dtype=out.dtype,
            device=device,
        )
        for out in outs
    ]
    xgrad.autograd.backward(outs, seeds)
    for name, leaf in zip(floating(op, sample), leaves, strict=True):
        got = None if leaf.grad is None else (leaf.grad.shape, leaf.grad.dtype, leaf.grad.device)
        if got != (leaf.shape, leaf.dtype, device):
            expected = f"a gradient of shape {leaf.shape}, {leaf.dtype} on {device} for {name}"
            raise Mismatch(
                f"expected {expected}, got"
                f" {'none' if got is None else f'{got[0]}, {got[1]} on {got[2]}'}"
            )
    return Run([to_numpy(out) for out in outs], [to_numpy(leaf.grad) for leaf in leaves])


def run_op_pytorch(op: OpCase, sample: Sample, dtype: Any) -> Run:
    """Return the values and gradients of PyTorch, which must be installed."""
    dtype = np.dtype(dtype)
    sample = rounded(sample, dtype)
    inputs = []
    for x in sample.inputs:
        if isinstance(x, np.ndarray):
            kind = x.dtype.kind
            x = torch.tensor(
                np.ascontiguousarray(x, like(x.dtype, dtype) if kind in "fc" else None).reshape(
                    x.shape
                )
            )
            x = x.requires_grad_(op.differentiable) if kind in "fc" else x
        inputs.append(x)
    outs = outputs(op.torch_function()(*inputs, **sample.options))
    values = [_from_torch(out) for out in outs]
    leaves = [x for x in inputs if torch.is_tensor(x) and x.requires_grad]
    if not (op.differentiable and leaves):
        return Run(values, [])
    torch.autograd.backward(
        outs, [torch.tensor(weights(y.shape, like(y.dtype, dtype), sample.start)) for y in values]
    )
    gradients = [x.grad if x.grad is not None else torch.zeros_like(x) for x in leaves]
    return Run(values, [_from_torch(g) for g in gradients])


def _from_torch(x: Any) -> np.ndarray:
    return np.asarray(x.detach().resolve_conj().resolve_neg().numpy())


def rounded(sample: Sample, dtype: np.dtype) -> Sample:
    """Return a sample in float64 or complex128 with numbers that are rounded to a dtype."""

    def convert(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            with np.errstate(over="ignore"):
                return value.astype(like(value.dtype, dtype)).astype(value.dtype)
        if type(value) not in (float, complex):
            return value
        return like(np.dtype(type(value)), dtype).type(value).item()

    numbers = {name: convert(value) for name, value in sample.options.items()}
    return replace(sample, inputs=tuple([convert(x) for x in sample.inputs]), options=numbers)


def like(kind: np.dtype, precision: np.dtype) -> np.dtype:
    """Return a dtype of the kind of one dtype, real or complex, and the precision of another."""
    return np.result_type(precision, np.complex64) if kind.kind == "c" else precision


def tensors(sample: Sample, device: Device, dtype: Any, grad: bool) -> list[Any]:
    """Return the inputs of a sample, with arrays as tensors in the sample's memory layout."""

    def convert(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        if x.dtype.kind not in "fc":
            return xgrad.asarray(x, device=device)
        array_layout, tensor_layout = _layouts(sample.layout, x)
        tensor = xgrad.Tensor(array_layout(x).copy(), dtype=like(x.dtype, dtype), device=device)
        return tensor_layout(tensor).requires_grad_(grad)

    return [convert(x) for x in sample.inputs]


def _layouts(layout: str, x: np.ndarray) -> tuple[Any, Any]:
    """Return a change of the memory layout of an array, and its inverse for tensors."""
    if layout == "transposed" and x.ndim > 1:
        return np.matrix_transpose, xgrad.matrix_transpose
    return (np.flip, xgrad.flip) if layout == "reversed" else (np.asarray, lambda tensor: tensor)


def options(sample: Sample, device: Device) -> dict[str, Any]:
    """Return the options of a sample, with arrays as tensors of the device."""

    values = [value for _, value in trees.leaves(sample.options)]
    new = (
        xgrad.asarray(value, device=device) if isinstance(value, np.ndarray) else value
        for value in values
    )
    return dict(trees.rebuild(sample.options, new))


def outputs(result: Any) -> tuple[Any, ...]:
    """Return one or several results as a tuple."""
    return (result,) if hasattr(result, "shape") else tuple(result)


def to_numpy(x: Any) -> np.ndarray:
    """Return the values of a tensor."""
    return np.asarray(x.detach().numpy())


def weights(shape: tuple[int, ...], dtype: np.dtype, start: int = 0) -> np.ndarray:
    """Return an output gradient with a different number for each element."""
    numbers = np.arange(start, start + int(np.prod(shape)), dtype=np.float64)
    parts = np.cos(numbers) + 1j * np.sin(2 * numbers + 1) if dtype.kind == "c" else np.cos(numbers)
    return parts.reshape(shape).astype(dtype)


def input_names(op: OpCase, sample: Sample) -> list[str]:
    """Return the name of each input of a sample, by the signature of the op."""
    parameters = list(inspect.signature(op.fn).parameters.values())
    if parameters and parameters[0].kind == inspect.Parameter.VAR_POSITIONAL:
        return [f"{parameters[0].name}{i}" for i in range(len(sample.inputs))]
    return [p.name for p, _ in zip(parameters, sample.inputs, strict=False)]


def floating(op: OpCase, sample: Sample) -> list[str]:
    """Return the names of the inputs that have a gradient."""
    pairs = zip(input_names(op, sample), sample.inputs, strict=True)
    return [name for name, x in pairs if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings of NumPy and PyTorch about NaNs, infinities and empty samples."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        warnings.filterwarnings("ignore", ".*degrees of freedom is <= 0.*")
        yield
