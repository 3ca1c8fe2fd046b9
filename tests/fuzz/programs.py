"""Random differentiable programs, compared with PyTorch and with finite differences: `check`.

A program is a list of instructions over tensors in float64 and complex128. An instruction is an op
of the op table near one of its samples, arithmetic with broadcasting, a view, or a write through
views. The same instructions run on xgrad and on PyTorch, whose functions have the standard's names
in array-api-compat. A program that PyTorch refuses is compared with finite differences at both
orders.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

import xgrad
from xgrad.parity.cases import OP_CASES
from xgrad.parity.op_case import OpCase, Sample
from xgrad.parity.pytorch import torch
from xgrad.parity.run_op import options, outputs, quiet

RTOL = 1e-6  # of results, relative to the largest element
LARGEST_VALUE, LARGEST_SIZE = 1e4, 600
STEP = 1e-5  # of finite differences

#: Ops that are left out of programs, with the reason.
EXCLUDED = {"svd with all vectors": "the vectors of no singular value are not unique"}


class Library:
    """The functions of xgrad or PyTorch that a program calls."""

    def __init__(self, name: str) -> None:
        self.is_xgrad = name == "xgrad"
        self.xp: Any = xgrad if self.is_xgrad else import_module("array_api_compat.torch")

    def constant(self, x: Any) -> Any:
        """Return a tensor of an array; other arguments as they are."""
        if not isinstance(x, np.ndarray):
            return x
        return xgrad.asarray(x, copy=True) if self.is_xgrad else torch.tensor(x)

    def call(self, case: OpCase, sample: Sample, inputs: Sequence[Any]) -> Any:
        """Return the first result of an op with a gradient."""
        if self.is_xgrad:
            result = case.fn(*inputs, **options(sample, xgrad.Device("cpu")))
        else:
            result = case.torch_function()(*inputs, **sample.options)
        return next(x for x in outputs(result) if x.dtype in (self.xp.float64, self.xp.complex128))

    def gradients(self, y: Any, leaves: Sequence[Any], create_graph: bool) -> list[Any]:
        """Return the gradients of leaves, zeros for those on which `y` does not depend."""
        grad = xgrad.autograd.grad if self.is_xgrad else torch.autograd.grad
        found = grad(y, leaves, create_graph=create_graph, allow_unused=True)
        return [
            self.xp.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)
        ]


def to_numpy(x: Any) -> np.ndarray:
    """Return the values of a tensor of either library."""
    return (
        x.detach().numpy()
        if isinstance(x, xgrad.Tensor)
        else x.detach().resolve_conj().resolve_neg().numpy()
    )


Instruction = Callable[..., Any]  # of a library and the tensors so far, to the next tensor


# Instructions


def is_complex(lib: Library, x: Any) -> bool:
    return x.dtype == lib.xp.complex128


def resized(lib: Library, x: Any, shape: tuple[int, ...]) -> Any:
    """Return elements of a tensor, repeated or cut to a shape."""
    xp, size = lib.xp, int(np.prod(shape))
    flat = xp.reshape(x, (-1,))
    return xp.reshape(xp.take(flat, lib.constant(np.arange(size) % flat.shape[0]), axis=0), shape)


def table_op(
    case: OpCase, sample: Sample, operands: dict[int, int], lib: Library, tensors: list[Any]
) -> Any:
    """Apply an op near a sample: at its inputs plus small functions of earlier tensors."""
    inputs = [lib.constant(x) for x in sample.inputs]
    for i, operand in operands.items():
        x = tensors[operand]
        x = lib.xp.real(x) if is_complex(lib, x) else x
        inputs[i] = inputs[i] + 0.05 * lib.xp.tanh(resized(lib, x, sample.inputs[i].shape))
    return lib.call(case, sample, inputs)


def arithmetic(form: Callable[..., Any], i: int, j: int, lib: Library, tensors: list[Any]) -> Any:
    """Combine two tensors with broadcasting."""
    return form(lib.xp, tensors[i], tensors[j])


ARITHMETIC: list[Callable[..., Any]] = [
    lambda xp, x, y: x + y,
    lambda xp, x, y: x - 2 * y,
    lambda xp, x, y: x * y,
    lambda xp, x, y: x / (3 + y * y),
    lambda xp, x, y: x + 1j * y,
    lambda xp, x, y: xp.where(
        xp.real(x * 1j) > 0.123, x, y
    ),  # not at 0, where a det of singular matrices is noise
    lambda xp, x, y: xp.real(x * (y + 1j)) + xp.imag(y * 1j * x),
    lambda xp, x, y: xp.abs(x + 0.5) * xp.conj(y + 0j),
    lambda xp, x, y: xp.exp(-xp.abs(x)) * xp.sin(y),
    lambda xp, x, y: x @ xp.matrix_transpose(y),
    lambda xp, x, y: xp.sum(x * y, axis=-1),
    lambda xp, x, y: xp.tensordot(x, y, axes=1),
    lambda xp, x, y: xp.concat([xp.reshape(x, (-1,)), xp.reshape(y, (-1,))]),
    lambda xp, x, y: xp.stack([x, y, x]),
    lambda xp, x, y: (
        xp.mean(x, axis=0) + xp.sqrt(xp.var(xp.real(y + 0j)) + 0.5)
    ),  # std has a kink at 0
    lambda xp, x, y: xp.cumulative_sum(xp.reshape(x - y, (-1,))),
    lambda xp, x, y: xp.linalg.vector_norm(x + 1) * y,
    lambda xp, x, y: xp.prod(x, axis=-1),
    lambda xp, x, y: xp.real(xp.fft.ifft(xp.fft.fft(x + 0j) * 0.3)) + y * 0.1,
    lambda xp, x, y: xp.max(xp.real(x + 0j), axis=-1) - xp.min(xp.real(y + 0j)),
]


def random_key(r: random.Random, shape: tuple[int, ...]) -> Any:
    """Return a key of slices, integers, None and ... that fits a shape and leaves an axis."""
    key: list[Any] = []
    for n in shape[: r.randint(1, len(shape))]:
        start = r.randrange(n)
        key.append(
            r.choice(
                [start, slice(start, r.randint(start + 1, n)), slice(None, None, 2), slice(None)]
            )
        )
    if all(isinstance(part, int) for part in key):
        key[-1] = slice(None)
    return (*[None] * (r.random() < 0.15), *key, *[...] * (r.random() < 0.2))


def random_view(r: random.Random, shape: tuple[int, ...]) -> Callable[[Any, Any], Any]:
    """Return a function of a namespace and a tensor that takes a view in both libraries."""
    axes, axis = tuple(r.sample(range(len(shape)), len(shape))), r.randint(0, len(shape))
    if not shape:
        return lambda xp, x: x[None]
    views: list[Callable[[Any, Any], Any]] = [
        *[partial(_item, random_key(r, shape))] * 3,
        lambda xp, x: xp.permute_dims(x, axes),
        lambda xp, x: xp.expand_dims(x, axis=axis),
        lambda xp, x: xp.moveaxis(x, 0, -1),
    ]
    return r.choice(views)


def _item(key: Any, xp: Any, x: Any) -> Any:
    return x[key]


def view(take: Callable[[Any, Any], Any], i: int, lib: Library, tensors: list[Any]) -> Any:
    """Take a view."""
    return take(lib.xp, tensors[i])


def write(
    takes: list[Callable[[Any, Any], Any]],
    form: str,
    i: int,
    j: int,
    lib: Library,
    tensors: list[Any],
) -> Any:
    """Write to a view of views of a copy, and return the copy."""
    base = tensors[i] * 1
    target = base
    for take in takes:
        target = take(lib.xp, target)
    value = resized(lib, tensors[j], tuple(target.shape))
    if not target.ndim:  # where += makes a new tensor of a constant
        target[...] = target + value
    elif form == "add":
        target += value
    elif form == "multiply":
        target *= value
    else:
        target[...] = value
    return base


@cache
def table() -> list[tuple[OpCase, list[Sample]]]:
    """Return the ops with gradients in both libraries, and their samples that programs can use."""
    found = []
    for case in OP_CASES:
        if case.name in EXCLUDED or case.torch is None or not case.differentiable or case.missing():
            continue
        samples = [s for s in case.samples + case.complex_samples() if _usable(s)]
        if samples and not case.no_derivative:
            found.append((case, samples))
    return found


def _usable(sample: Sample) -> bool:
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
    floats = [x for x in arrays if x.dtype.kind in "fc"]
    return bool(floats) and all(0 < x.size <= LARGEST_SIZE and np.isfinite(x).all() for x in arrays)


@dataclass
class Program:
    """Inputs, instructions with their descriptions, and the weights of the loss."""

    leaves: list[np.ndarray]
    instructions: list[Instruction]
    descriptions: list[str]
    seed: Any
    second: bool  # whether second derivatives are compared

    def loss(self, lib: Library, leaves: Sequence[Any]) -> Any:
        """Return the weighted sum of all tensors."""
        tensors = list(leaves)
        for instruction in self.instructions:
            tensors.append(instruction(lib, tensors))
        return weighted_sum(lib, tensors[len(leaves) // 2 :])

    def evaluate(self, library: str) -> list[np.ndarray]:
        """Return the loss, its gradients, and the gradients of a weighted sum of these."""
        lib = Library(library)
        leaves = [lib.constant(x).requires_grad_() for x in self.leaves]
        loss = self.loss(lib, leaves)
        first = lib.gradients(loss, leaves, create_graph=self.second)
        results = [loss, *first]
        if self.second:
            total = weighted_sum(lib, first)
            connected = total.requires_grad
            results += (
                lib.gradients(total, leaves, False)
                if connected
                else [lib.xp.zeros_like(x) for x in leaves]
            )
        return [to_numpy(x) for x in results]


def weighted_sum(lib: Library, tensors: Sequence[Any]) -> Any:
    """Return a real sum in which each element has another weight."""
    total: Any = 0.0
    for n, x in enumerate(tensors):
        weights = np.cos(np.arange(n, n + int(np.prod(x.shape)), dtype=np.float64)).reshape(
            tuple(x.shape)
        )
        if is_complex(lib, x):
            total = total + lib.xp.sum(
                lib.xp.imag(x) * lib.constant(weights[..., ::-1].copy() if x.ndim else weights)
            )
            x = lib.xp.real(x)
        total = total + lib.xp.sum(x * lib.constant(weights))
    return total


SHAPES = [(), (1,), (3,), (2, 3), (3, 1), (1, 3), (2, 2), (3, 2, 3), (2, 1, 3), (4, 3)]


def generate(seed: Any) -> Program:
    """Return the program of a seed."""
    r = random.Random(repr(seed))
    rng = np.random.default_rng(r.randrange(1 << 62))
    leaves = []
    for _ in range(r.randint(1, 3)):
        x = rng.normal(size=r.choice(SHAPES))
        leaves.append(np.asarray(x + 1j * rng.normal(size=x.shape) if r.random() < 0.15 else x))
    program = Program(leaves, [], [], seed, r.random() < 0.5)
    lib = Library("xgrad")
    tensors = [lib.constant(x) for x in leaves]
    for _ in range(r.randint(2, 12)):
        instruction, description = random_instruction(r, tensors)
        try:
            out = instruction(lib, tensors)
        except (TypeError, ValueError, IndexError):  # of shapes or dtypes that do not fit
            continue
        values = to_numpy(out)
        if values.dtype.kind not in "fc" or not 0 < values.size <= LARGEST_SIZE or values.ndim > 5:
            continue
        if not np.all(np.abs(values) < LARGEST_VALUE):
            continue
        tensors.append(out)
        program.instructions.append(instruction)
        program.descriptions.append(f"t{len(tensors) - 1} = {description}")
    return program


def random_instruction(r: random.Random, tensors: list[Any]) -> tuple[Instruction, str]:
    """Return an instruction on tensors, and its description."""
    i, j = r.choice([len(tensors) - 1, r.randrange(len(tensors))]), r.randrange(len(tensors))
    shape, kind = tuple(tensors[i].shape), r.random()
    if kind < 0.45:
        case, samples = r.choice(table())
        sample = r.choice(samples)
        floats = [
            n
            for n, x in enumerate(sample.inputs)
            if isinstance(x, np.ndarray) and x.dtype.kind in "fc"
        ]
        operands = {n: r.choice([i, j]) for n in floats}
        return partial(table_op, case, sample, operands), f"{case.name}({sample}) of {operands}"
    if kind < 0.7:
        number = r.randrange(len(ARITHMETIC))
        return partial(arithmetic, ARITHMETIC[number], i, j), f"arithmetic {number} of t{i}, t{j}"
    if kind < 0.85:
        return partial(view, random_view(r, shape), i), f"view of t{i}"
    takes, like = [], np.empty(shape)
    for _ in range(r.randint(0, 3)):
        take = random_view(r, like.shape)
        like = take(xgrad, xgrad.asarray(like)).numpy()
        takes.append(take)
    form = r.choice(["add", "multiply", "assign"])
    return partial(write, takes, form, i, j), f"write: {form} t{j} to {len(takes)} views of t{i}"


# Comparison


def difference(xs: list[np.ndarray], ys: list[np.ndarray]) -> float:
    """Return the largest difference, relative to the largest element of each array or 1."""
    return max(
        float(np.max(np.abs(x - y)) / max(1.0, float(np.max(np.abs(y)))))
        if x.shape == y.shape
        else np.inf
        for x, y in zip(xs, ys, strict=True)
        if y.size
    )


def check(seed: Any) -> str:
    """Run the program of a seed, and return the outcome.

    It is "agrees", the reason why the program was not compared, or a description of the mismatch.
    """
    with quiet():
        program = generate(seed)
        try:
            expected = program.evaluate("torch")
        except RuntimeError:  # also NotImplementedError, its subclass
            got, agreement = program.evaluate("xgrad"), "agrees by differences alone"
            return _check_by_differences(program, got, program.second, agreement)
        if not all(np.isfinite(x).all() for x in expected):
            return "not finite"
        got = program.evaluate("xgrad")
        count = 1 + len(program.leaves)
        error = difference(got, expected)
        if not error <= RTOL:
            if _sensitive(program, "torch", expected, error):
                return "ill-conditioned"
            if difference(got[:count], expected[:count]) <= RTOL and _is_pytorch_wrong(
                program, got, expected
            ):
                return "PyTorch differs from differences of its own gradients"
            return _report(program, "PyTorch", error)
        return _check_by_differences(program, got, False, "agrees")


def _check_by_differences(
    program: Program, got: list[np.ndarray], second: bool, agreement: str
) -> str:
    """Compare xgrad's gradients with differences of its results.

    Second derivatives are compared, too, if asked for.
    """
    if not all(np.isfinite(x).all() for x in got):
        return "not finite"
    count = 1 + len(program.leaves)
    error = _slope_error(
        program, lambda leaves: float(program.loss(Library("xgrad"), leaves).item()), got[1:count]
    )
    if second:
        error = float(
            np.maximum(error, _slope_error(program, _gradient_sum(program, "xgrad"), got[count:]))
        )
    if error <= 1e-3:
        return agreement
    return (
        "ill-conditioned"
        if _sensitive(program, "xgrad", got, error)
        else _report(program, "differences", error)
    )


def _sensitive(program: Program, library: str, results: list[np.ndarray], error: float) -> bool:
    """Return whether rounding of the inputs explains an error.

    It does if it changes a library's results by at least a tenth of the error.
    """
    rng = np.random.default_rng(0)
    moved = [np.asarray(x + 1e-13 * rng.normal(size=x.shape)) for x in program.leaves]
    return not difference(replace(program, leaves=moved).evaluate(library), results) < error / 10


def _gradient_sum(program: Program, library: str) -> Callable[[list[Any]], float]:
    """Return the function of leaves whose gradients are the second derivatives of a program."""
    lib = Library("xgrad")

    def total(leaves: list[Any]) -> float:
        first = replace(program, leaves=[to_numpy(x) for x in leaves], second=False).evaluate(
            library
        )[1:]
        return float(weighted_sum(lib, [lib.constant(x) for x in first]).item())

    return total


def _is_pytorch_wrong(program: Program, got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Return whether differences of PyTorch's gradients agree with xgrad, and not with PyTorch."""
    count, total = 1 + len(program.leaves), _gradient_sum(program, "torch")
    return _slope_error(program, total, got[count:]) < 0.01 * _slope_error(
        program, total, expected[count:]
    )


def _slope_error(
    program: Program, function: Callable[[list[Any]], float], gradients: list[np.ndarray]
) -> float:
    """Return the smallest relative error of a directional derivative over several steps.

    One-sided differences are included. At a kink, such as the maximum of equal elements, one side
    or the mean of both agrees.
    """
    rng = np.random.default_rng(0)
    directions = [np.asarray(rng.normal(size=x.shape)) for x in program.leaves]
    expected = sum(
        float(np.sum(np.real(g) * d)) for g, d in zip(gradients, directions, strict=True)
    )

    def value(t: float) -> float:
        return function(
            [xgrad.asarray(x + t * d) for x, d in zip(program.leaves, directions, strict=True)]
        )

    errors = []
    for step in (STEP, STEP / 30):
        left, middle, right = value(-step), value(0), value(step)
        slopes = ((right - left) / (2 * step), (right - middle) / step, (middle - left) / step)
        scale = max(1.0, abs(expected), 1e-4 * abs(middle))  # of the rounding of a difference, too
        errors += [abs(slope - expected) / scale for slope in slopes]
        if errors[-3] < 1e-4:
            break
    return min(errors)


def _report(program: Program, reference: str, error: float) -> str:
    lines = [
        f"t{i} = leaf {x.shape} {x.dtype}" for i, x in enumerate(program.leaves)
    ] + program.descriptions
    return f"MISMATCH with {reference}, {error:.2g}, seed {program.seed!r}:\n  " + "\n  ".join(
        lines
    )
