"""Random programs, traced with some inputs and replayed with others, compared with eager runs.

Results have the same bits and layouts. ``CAPTURE_PROGRAMS=10000`` in the environment runs 10 000
programs; ``CAPTURE_NATIVE=1`` compiles each of them before its first replay, and alternates between
one thread and two.
"""

from __future__ import annotations

import functools
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xgrad
from capture.twins import assert_same, snapshot, take_turns_in_threads
from xgrad.capture import CaptureWarning

PROGRAMS = int(os.environ.get("CAPTURE_PROGRAMS", 250))
LARGEST = 1 << 17  # elements of a tensor of a program


def _forms(text: str) -> list[str]:
    return [form.strip() for form in text.split(" |")]


# Expressions and statements, with {x}, {y} and {z} for names

UNARY = _forms("""
xgrad.tanh({x}) | xgrad.exp(-xgrad.abs({x})) | xgrad.sin({x}) | xgrad.maximum({x}, 0) | -{x} |
abs({x}) | {x} * {x} | xgrad.sqrt(abs({x})) | xgrad.log1p(abs({x})) | {x} ** 2 | {x} ** 3 |
2 * {x} | 1 - {x} | {x} / 3 | xgrad.sign({x}) | xgrad.clip({x}, -0.5, 0.75) | xgrad.floor({x}) |
1 / {x} | {x} ** 0.5 | xgrad.cumulative_sum(xgrad.reshape({x}, (-1,))) |
xgrad.nn.functional.softmax({x}, axis=-1) | xgrad.nn.functional.relu({x}) |
xgrad.sort({x}, axis=-1) | xgrad.nn.functional.gelu({x}) | xgrad.diff({x}, axis=-1) |
xgrad.logaddexp({x}, 0) | {x} + 1e-3 | {x} * 0 | xgrad.nn.functional.sigmoid({x}) |
xgrad.special.logsumexp({x}, axis=-1) | xgrad.nn.functional.log_softmax({x}, axis=0)
""")
BINARY = _forms("""
{x} + {y} | {x} - {y} | {x} * {y} | {x} / {y} | xgrad.maximum({x}, {y}) | xgrad.minimum({x}, {y}) |
xgrad.atan2({x}, {y}) | xgrad.hypot({x}, {y}) | {x} ** 2 + {y} | xgrad.copysign({x}, {y}) |
{x} + {y} * {x} | xgrad.logaddexp({x}, {y})
""")
VIEWS = _forms("""
{x}.mT | {x}[0] | {x}[-1, ...] | {x}[..., 0] | {x}[1:] | {x}[::-1] | {x}[..., ::2] | {x}[None] |
{x}[..., None] | xgrad.reshape({x}, (-1,)) | xgrad.flip({x}) | xgrad.expand_dims({x}, axis=0) |
xgrad.moveaxis({x}, 0, -1) | xgrad.broadcast_to({x}, (2, *{x}.shape)) | xgrad.roll({x}, 1) |
{x}[:, 1] | {x}[::-2, ...] | {x}.T | xgrad.squeeze({x}, axis=0) | xgrad.reshape({x}, (2, -1)) |
xgrad.tile({x}, (2,)) | xgrad.repeat({x}, 2) | xgrad.unstack({x})[-1]
""")
PRODUCTS = _forms("""
{x} @ {y} | {x} @ {y}.mT | {x}.mT @ {y} | xgrad.vecdot({x}, {y}) | {x} @ {x}.mT |
xgrad.tensordot({x}, {y}, axes=1) |
xgrad.linalg.outer(xgrad.reshape({x}, (-1,)), xgrad.reshape({y}, (-1,))) |
xgrad.sum({x} * {y}, axis=0)
""")
JOINED = _forms("""
xgrad.concat([{x}, {y}]) | xgrad.stack([{x}, {y}]) | xgrad.concat([{x}, {y}, {x}], axis=-1) |
xgrad.stack([{y}, {x}], axis=-1)
""")
COPIES = _forms(
    "{x} * 1 | xgrad.asarray({x}, copy=True) | {x}.detach() * 2 | xgrad.zeros_like({x})"
)
IN_PLACE = _forms("""
{z} += {y} | {z} *= {y} | {z} -= 0.5 | {z}[0] = {y} | {z}[...] = {y} | {z}[..., 0] = 2 |
{z}[1:] = {z}[:-1] | {z} /= 3 | {z}[{z} > 0] = 0
""")
CONSTANTS = _forms("""
xgrad.ones({x}.shape) | xgrad.zeros_like({x}) | xgrad.arange(3.0) | xgrad.asarray([1.5, -0.0]) |
xgrad.full((2, 1), 0.5) | xgrad.eye(2) | xgrad.ones((2, 3)).T
""")
CONDITIONS = _forms("{x} > 0 | {x} < {y} | {x} == {y} | ({x} > -1) & ({x} <= {y}) | ~({x} != {y})")
CHOICES = [
    f"xgrad.where({condition}, {values})"
    for condition in CONDITIONS
    for values in _forms("{x}, 0 | 0, {x} | {x}, 0.0 | {x}, {y} | -{x}, {x} | {x}, 1")
]
CASTS = _forms("""
{x}.astype(xgrad.float32) | {x}.astype(xgrad.float64) | {x}.astype(xgrad.float32) |
{x}.astype(xgrad.bool) | xgrad.clip(xgrad.where({x} == {x}, {x}, 0), -9, 9).astype(xgrad.int64)
""")
INDICES = _forms("""
xgrad.argmax({x}, axis=-1) | xgrad.argmin({x}, axis=0) | xgrad.argsort({x}, axis=0) |
xgrad.arange({x}.shape[0])
""")
INDEXED = _forms("""
{y} * 2 - 1 | {y} % 2 | {x}[{y} % {x}.shape[0]] | {y} // 2 + {x} |
xgrad.take({x}, xgrad.reshape({y}, (-1,)) % {x}.shape[0], axis=0)
""")
REDUCTIONS = [
    f"xgrad.{name}({{x}}{axis})"
    for name in "sum mean max min prod std var sum mean any all count_nonzero".split()
    for axis in [
        "",
        ", axis=0",
        ", axis=-1",
        ", axis=-1, keepdims=True",
        ", axis=(0, 1)",
        ", axis=1",
    ]
]
#: Expressions with the kinds of the dtypes of their operands, the more frequent ones repeatedly.
EXPRESSIONS = [
    (UNARY, "f", "f"),
    *[(BINARY, "f", "fi")] * 2,
    *[(VIEWS, "fiub", "f")] * 2,
    (PRODUCTS, "f", "f"),
]
EXPRESSIONS += [
    (CONSTANTS, "f", "f"),
    (REDUCTIONS, "fib", "fib"),
    (JOINED, "f", "f"),
    (CASTS, "fib", "fib"),
]
EXPRESSIONS += [
    (CONDITIONS, "f", "fi"),
    (CHOICES, "f", "fi"),
    (INDICES, "f", "f"),
    *[(INDEXED, "f", "i")] * 2,
]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]


class Writer:
    """Writes a program line by line.

    It runs each line, to know the tensors that the next line can use.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.large = self.random.random() < 0.15
        self.names: dict[str, Any] = {"xgrad": xgrad}
        self.lines: list[str] = []
        self.layouts = [self.layout() for _ in range(self.random.randint(1, 4))]
        self.parameters = [f"x{i}" for i in range(len(self.layouts))]
        self.names |= dict(zip(self.parameters, self.inputs(0), strict=True))
        for i, name in enumerate(self.parameters):
            if self.names[name].dtype.kind == "f" and self.random.random() < 0.8:
                self.add(f"a{i} = {name}.detach().requires_grad_()")
        self.leaves = [name for name in self.names if name.startswith("a")]
        kinds = [
            *[functools.partial(self.expression, *kind) for kind in EXPRESSIONS],
            self.in_place,
        ]
        for _ in range(self.random.randint(4, 31)):
            try:
                self.random.choice(kinds)()
            except LookupError:  # nothing of the kind to compute with
                continue
        self.gradients()
        self.results()
        self.source = f"def step({', '.join(self.parameters)}):\n" + "".join(
            f"    {line}\n" for line in self.lines
        )

    # Inputs

    def layout(self) -> tuple[tuple[int, ...], str, str]:
        """Return the shape, the dtype and the memory layout of an input."""
        lengths = [1, 3, 40, 300] if self.large else [1, 2, 2, 3, 4, 5]
        shape = tuple(
            [self.random.choice(lengths) for _ in range(self.random.choice([0, 1, 1, 2, 2, 2, 3]))]
        )
        if self.random.random() < 0.05 and shape:
            shape = (0, *shape[1:])
        dtype = self.random.choice(["float32"] * 5 + ["float64"] * 2 + ["int64", "bool", "int32"])
        return shape, dtype, self.random.choice(["plain"] * 4 + ["columns", "spaced", "reversed"])

    def inputs(self, turn: int) -> list[Any]:
        """Return inputs, which differ in each turn."""
        return [
            self.input(np.random.default_rng([self.seed, turn, i]), *x)
            for i, x in enumerate(self.layouts)
        ]

    def input(self, rng: Any, shape: tuple[int, ...], dtype: str, memory: str) -> Any:
        """Return a tensor of random values, with special ones in every third program."""
        full = (*shape[:-1], 2 * shape[-1]) if memory == "spaced" and shape else shape
        values = rng.normal(size=full)
        chosen = rng.random(size=full) < (0.08 if self.seed % 3 == 0 else 0)
        values = np.where(chosen, rng.choice(SPECIAL, size=full), values)
        if dtype.startswith("int"):
            values = rng.integers(-3, 4, size=full)
        values = np.asarray(values > 0 if dtype == "bool" else values).astype(dtype)
        if memory == "columns" and len(shape) > 1:
            return xgrad.asarray(np.ascontiguousarray(values.swapaxes(-1, -2))).mT
        if memory == "spaced" and shape:
            return xgrad.asarray(values)[..., ::2]
        return (
            xgrad.flip(xgrad.asarray(values))
            if memory == "reversed" and shape
            else xgrad.asarray(values)
        )

    # Statements

    def add(self, line: str) -> bool:
        """Add a statement, and return whether it can be run."""
        before = dict(self.names)
        try:
            with np.errstate(all="ignore"):
                exec(line, self.names)
            made = [
                x
                for name, x in self.names.items()
                if before.get(name) is not x and isinstance(x, xgrad.Tensor)
            ]
            if any(x.size > LARGEST or x.ndim > 4 for x in made):
                raise ValueError("too large")
        except Exception:
            self.names = before
            return False
        self.lines.append(line)
        return True

    def new(self) -> str:
        """Return a new name."""
        return f"v{len(self.names)}"

    def some(self, kinds: str = "fiub", test: Callable[[Any], bool] = lambda t: True) -> str:
        """Return the name of a tensor of one of the kinds, preferably a recent one."""
        tensors = [(name, x) for name, x in self.names.items() if isinstance(x, xgrad.Tensor)]
        names = [name for name, x in tensors if x.dtype.kind in kinds and test(x)]
        if not names:
            raise LookupError
        return self.random.choice(names[-6:] if self.random.random() < 0.6 else names)

    def expression(self, forms: list[str], x: str, y: str) -> None:
        first = self.some(x)
        operands = [
            first,
            self.some(y, lambda t: forms is not JOINED or t.ndim == self.names[first].ndim),
        ]
        if forms is BINARY:
            self.random.shuffle(operands)
        self.add(f"{self.new()} = {self.random.choice(forms)}".format(x=operands[0], y=operands[1]))

    def in_place(self) -> None:
        y, z = self.some("fi"), self.new()
        if self.add(f"{z} = {self.random.choice(COPIES)}".format(x=self.some("f"))):
            for _ in range(self.random.randint(1, 3)):
                self.add(self.random.choice(IN_PLACE).format(z=z, y=y))

    # Gradients and results

    def gradients(self) -> None:
        """Add gradients of something, or gradients of gradients."""
        ends = [
            n
            for n, v in self.names.items()
            if isinstance(v, xgrad.Tensor) and v.requires_grad and not v.is_leaf
        ]
        if not ends or self.random.random() < 0.1:
            return
        ends = self.random.sample(ends, min(len(ends), self.random.choice([1, 1, 2])))
        if not self.add("total = " + " + ".join(f"xgrad.sum({end})" for end in ends)):
            return
        leaves, kind = f"[{', '.join(self.leaves)}]", self.random.random()
        if kind < 0.3:
            self.add("total.backward()")
            for leaf in self.leaves:
                self.add(f"g_{leaf} = {leaf}.grad if {leaf}.grad is not None else {leaf}.detach()")
        elif kind < 0.65:
            self.add(f"gs = xgrad.autograd.grad(total, {leaves}, allow_unused=True)")
        else:
            self.add(
                f"gs = xgrad.autograd.grad(total, {leaves}, create_graph=True, allow_unused=True)"
            )
            self.add("second = sum((xgrad.sum(g * g) for g in gs if g is not None), 0 * total)")
            self.add(f"hs = xgrad.autograd.grad(second, {leaves}, allow_unused=True)")

    def results(self) -> None:
        """Add the results: some of the tensors, and views of them, perhaps of the inputs."""
        tensors = [(name, x) for name, x in self.names.items() if isinstance(x, xgrad.Tensor)]
        chosen = [(name, x) for name, x in tensors if self.random.random() < 0.4]
        texts = [f"{name}.detach()" if x.requires_grad else name for name, x in chosen]
        texts += [
            f"{again}[..., ::-1]" if x.ndim else again
            for again, (_, x) in zip(texts, chosen, strict=True)
        ][-1:]
        texts += [
            f"[g if g is None else g.detach() for g in {many}]"
            for many in ("gs", "hs")
            if many in self.names
        ]
        texts += self.random.choices(texts, k=self.random.randint(0, 1)) if texts else []
        texts += [name for name in self.parameters if self.random.random() < 0.2]
        form = (
            "return {{'some': [{0}], 'nothing': None, 'three': (3,)}}"
            if len(texts) % 3 == 0
            else "return [{0}]"
        )
        self.lines.append(form.format(", ".join(texts)))


@pytest.mark.parametrize("seed", range(PROGRAMS))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_program_replayed_has_the_bits_of_eager(seed: int) -> None:
    program = Writer(seed)
    scope: dict[str, Any] = {"xgrad": xgrad}
    exec(compile(program.source, f"program {seed}", "exec"), scope)
    captured, step = xgrad.capture(scope["step"]), scope["step"]
    # refused where the value is an array, whose shape depends on the mask
    masks = "> 0] = 0" in program.source
    for call, turn in enumerate((0, 0, 1, 2, 3)):
        take_turns_in_threads(call)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            expected = snapshot(step(*program.inputs(turn)))
            try:
                warnings.simplefilter("ignore" if masks else "error", CaptureWarning)
                assert_same([expected], [snapshot(captured(*program.inputs(turn)))])
            except Exception as error:
                raise AssertionError(f"turn {turn}: {error}\n{program.source}") from error
    assert masks or (captured.refusal is None and captured.recordings == 1), program.source
